"""The dataset: texts with their labels, languages and sources."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from emoglot.data.lines import BadLine
from emoglot.errors import DataError
from emoglot.labels import SEMEVAL_LABELS, UNKNOWN, Targets, check_names


# Without generated `==`, since arrays do not compare to one truth value, and without a repr of all texts.
@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Texts with one column of targets per label; all per-row fields have the same length.

    Attributes
    ----------
    texts
        The texts.
    targets
        Int8 (texts, labels): 1 if the label applies, 0 if it does not, -1 if it was not annotated.
    labels
        The names of the columns of `targets`.
    languages
        The code of each text's language, such as "en" or "pt-BR"; "und" if it is unknown.
    sources
        The name of the dataset that each text comes from, such as the name of its file.
    bad_lines
        The malformed lines that `emoglot.read(…, skip_bad=True)` dropped.
    """

    texts: tuple[str, ...]
    targets: Targets  # (rows, labels): 1, 0 or UNKNOWN
    labels: tuple[str, ...]
    languages: tuple[str, ...]  # a code such as "en" or "pt-BR"
    sources: tuple[str, ...]
    bad_lines: tuple[BadLine, ...] = ()

    def __post_init__(self) -> None:
        check_names(self.labels)
        shape = (len(self.texts), len(self.labels))
        if self.targets.shape != shape or self.targets.dtype != np.int8:
            raise DataError(
                f"targets must be int8 of the shape (texts, labels) = {shape}, "
                f"got {self.targets.dtype} of the shape {self.targets.shape}"
            )
        for name, values in (("languages", self.languages), ("sources", self.sources)):
            if len(values) != len(self.texts):
                raise DataError(f"{name} must have one entry per text, got {len(values)} for {len(self.texts)} texts")
        outside = self.targets[(self.targets < UNKNOWN) | (self.targets > 1)]
        if outside.size:
            raise DataError(f"a target must be 1, 0 or {UNKNOWN} for unknown, got {outside[0]}")

    def __repr__(self) -> str:
        languages = " ".join(sorted(set(self.languages)))
        return f"Dataset({len(self)} rows, labels {' '.join(self.labels)}, languages {languages})"

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of labels, texts and targets, in hexadecimal."""
        digest = hashlib.sha256()
        for part in (*self.labels, *self.texts):
            encoded = part.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
        digest.update(np.ascontiguousarray(self.targets).tobytes())
        return digest.hexdigest()

    def select(self, indices: ArrayLike) -> Dataset:
        """Return the rows with these indices, in this order; `bad_lines` stay as they are."""
        chosen = np.asarray(indices, dtype=np.intp)
        order = chosen.tolist()
        return replace(
            self,
            texts=tuple(self.texts[index] for index in order),
            targets=self.targets[chosen],
            languages=tuple(self.languages[index] for index in order),
            sources=tuple(self.sources[index] for index in order),
        )

    def with_labels(self, labels: Sequence[str]) -> Dataset:
        """Return the dataset with these labels in this order: missing labels are unknown, others are dropped."""
        wanted = check_names(labels)
        targets = np.full((len(self), len(wanted)), UNKNOWN, dtype=np.int8)
        for column, name in enumerate(wanted):
            if name in self.labels:
                targets[:, column] = self.targets[:, self.labels.index(name)]
        return replace(self, targets=targets, labels=wanted)

    def annotated(self) -> Dataset:
        """Return the rows with at least one known label."""
        return self.select(np.flatnonzero((self.targets != UNKNOWN).any(axis=1)))

    def summary(self) -> dict[str, Any]:
        """Return the numbers of rows, languages and labels, for JSON."""
        positives = (self.targets == 1).sum(axis=0).tolist()
        known = (self.targets != UNKNOWN).sum(axis=0).tolist()
        return {
            "rows": len(self),
            "languages": dict(sorted(Counter(self.languages).items())),
            "positives": dict(zip(self.labels, positives, strict=True)),
            "known": dict(zip(self.labels, known, strict=True)),
            "fingerprint": self.fingerprint,
        }


def concatenate(datasets: Iterable[Dataset]) -> Dataset:
    """Concatenate datasets; a label that one of them does not annotate is unknown in its rows."""
    parts = list(datasets)
    if not parts:
        raise DataError("a concatenation needs at least one dataset, got none")
    seen = dict.fromkeys(name for part in parts for name in part.labels)
    labels = (
        *(name for name in SEMEVAL_LABELS if name in seen),
        *(name for name in seen if name not in SEMEVAL_LABELS),
    )
    return Dataset(
        texts=tuple(text for part in parts for text in part.texts),
        targets=np.concatenate([part.with_labels(labels).targets for part in parts]),
        labels=labels,
        languages=tuple(language for part in parts for language in part.languages),
        sources=tuple(source for part in parts for source in part.sources),
        bad_lines=tuple(bad for part in parts for bad in part.bad_lines),
    )


def map_labels(dataset: Dataset, mapping: Mapping[str, str]) -> Dataset:
    """Convert to the labels of E-c: a label is positive if its namesake or any label mapped to it is.

    A label of the dataset that is neither mapped nor a namesake is dropped. A label that nothing is mapped to is
    unknown in every row.
    """
    targets = np.full((len(dataset), len(SEMEVAL_LABELS)), UNKNOWN, dtype=np.int8)
    for column, name in enumerate(SEMEVAL_LABELS):
        if sources := [index for index, label in enumerate(dataset.labels) if mapping.get(label, label) == name]:
            targets[:, column] = _any_of(dataset.targets[:, sources])
    return replace(dataset, targets=targets, labels=SEMEVAL_LABELS)


def _any_of(targets: Targets) -> Targets:
    """Return 1 where any column is 1; else unknown where any column is; else 0."""
    positive = (targets == 1).any(axis=1)
    return np.where(positive, 1, np.where((targets == UNKNOWN).any(axis=1), UNKNOWN, 0)).astype(np.int8)
