"""Reports: one self-contained HTML page about a scored file."""

from emoglot.errors import needs_extra

with needs_extra("report", "a report"):
    import polars  # noqa: F401 - checked here, before any module of the report is imported
