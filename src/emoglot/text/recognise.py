"""The language of each text, as given by the user or identified."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from emoglot.text.identify import TRUSTED_CONFIDENCE, identify
from emoglot.text.language_names import ANY, NO_LANGUAGE


def recognise_languages(
    texts: Sequence[str], codes: str | list[str | None] | None
) -> tuple[tuple[str | None, ...], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the language of each text, or None; whether it was given; and whether it was given or is confident.

    `codes` is one code for all texts or one for each: None to identify the language, `ANY` to leave it unknown.
    """
    named = codes if isinstance(codes, list) else [codes] * len(texts)
    languages = [None if code == ANY else code for code in named]
    is_named = np.array([code is not None for code in languages], dtype=np.bool_)
    is_sure = is_named.copy()
    rows = [row for row, code in enumerate(named) if code is None]
    for row, found in zip(rows, identify([texts[row] for row in rows]), strict=True):
        languages[row] = None if found.code == NO_LANGUAGE else found.code
        is_sure[row] = found.confidence >= TRUSTED_CONFIDENCE
    return tuple(languages), is_named, is_sure
