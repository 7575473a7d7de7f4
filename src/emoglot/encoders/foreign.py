"""The errors of compiled libraries, as one sentence of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emoglot.errors import EmoglotError

_LONGEST_REASON = 200  # characters of another library's message that fit into a sentence
_PANIC = "PanicException"  # of Rust; a BaseException that no module exports


@contextmanager
def foreign_errors(path: Path | str, kind: type[EmoglotError], problem: str, way_out: str) -> Iterator[None]:
    """Raise what onnxruntime, tokenizers or safetensors raise, a panic of Rust included, as an error of ours."""
    try:
        yield
    except (EmoglotError, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != _PANIC:
            raise  # Ctrl-C, and the end of the program
        reason = " ".join(str(error).split())[:_LONGEST_REASON] or type(error).__name__
        raise kind(f"{path} {problem}: {reason}; {way_out}") from error
