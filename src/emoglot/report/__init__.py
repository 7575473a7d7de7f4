"""A scored file summed up in one page of HTML that can be sent on."""

from emoglot.errors import MissingExtraError

try:
    import polars  # noqa: F401 - here, where every module of the report is imported through
except ImportError as error:
    raise MissingExtraError("polars", "report", "a report") from error
