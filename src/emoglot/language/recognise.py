"""The language of each text: as the user named it, or as it was identified."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from emoglot.arguments import ANY
from emoglot.data.dataset import NO_LANGUAGE
from emoglot.language.identify import TRUSTED_CONFIDENCE, identify


def recognise(
    texts: Sequence[str], codes: str | list[str | None] | None
) -> tuple[tuple[str | None, ...], NDArray[np.bool_]]:
    """Return the language of each text, None where it is unknown, and whether it was named or identified for sure.

    `codes` are those that the user named, one for all texts or one for each; None for a text whose language is to be
    identified, `ANY` for one whose language is not asked for.
    """
    named = codes if isinstance(codes, list) else [codes] * len(texts)
    languages = [None if code == ANY else code for code in named]
    is_sure = np.array([code is not None for code in languages], dtype=np.bool_)
    rows = [row for row, code in enumerate(named) if code is None]
    for row, found in zip(rows, identify([texts[row] for row in rows]), strict=True):
        languages[row] = None if found.code == NO_LANGUAGE else found.code
        is_sure[row] = found.confidence >= TRUSTED_CONFIDENCE
    return tuple(languages), is_sure
