"""Converts errors of compiled libraries to errors of emoglot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emoglot.errors import EmoglotError, reason_of

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
        raise kind(f"{path} {problem}: {reason_of(error)}; {way_out}") from error
