"""The tables and figures of the paper, each defined by a TOML file."""
