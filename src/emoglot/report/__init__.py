"""Reports: one self-contained HTML page about a scored file."""

from emoglot.errors import MissingExtraError

try:
    import polars  # noqa: F401 - checked here, before any module of the report is imported
except ImportError as error:
    raise MissingExtraError("polars", "report", "a report") from error
