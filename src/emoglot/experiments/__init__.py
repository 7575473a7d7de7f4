"""The tables and figures of the paper, each a TOML file beside this one."""
