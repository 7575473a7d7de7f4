"""Converts errors of compiled libraries to errors of emoglot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emoglot.errors import EmoglotError

_LONGEST_REASON = 200  # characters of another library's message
_PANIC = "PanicException"  # of Rust code; a BaseException that no module exports


@contextmanager
def foreign_errors(path: Path | str, kind: type[EmoglotError], problem: str, way_out: str) -> Iterator[None]:
    """Convert errors of onnxruntime, tokenizers and safetensors, including Rust panics, to an error of emoglot."""
    try:
        yield
    except (EmoglotError, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != _PANIC:
            raise  # KeyboardInterrupt and SystemExit
        reason = " ".join(str(error).split())[:_LONGEST_REASON] or type(error).__name__
        raise kind(f"{path} {problem}: {reason}; {way_out}") from error
