"""The accessor `frame.emoglot`."""

from __future__ import annotations

from typing import Any

from emoglot.batch.frame import score_frame


class Accessor:
    """The methods of emoglot for a data frame."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def score(self, text_column: str | None = None, **options: Any) -> Any:
        """Return the frame with columns for labels and scores; the options are those of `emoglot.score_frame`."""
        return score_frame(self._frame, text_column, **options)
