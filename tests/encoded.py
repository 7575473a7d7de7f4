"""What tests of encoders share: the tokens of each text, and the property that every span keeps."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from emoglot.encoders.base import Ragged

E5_TEXTS = [
    "What a wonderful day, I am so happy",
    "",
    "¡Qué alegría verte!",
    "أنا سعيد جدا اليوم",
    "x",
    "tea 🙂 at 5… ½",
]
E5_FILES = [
    "config.json",
    "encoder.json",
    "model.onnx",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
]


def rows(ragged: Ragged) -> list[Any]:
    return [ragged.vectors[a:b] for a, b in pairwise(ragged.splits)]


def spans(ragged: Ragged) -> list[Any]:
    return [ragged.spans[a:b].tolist() for a, b in pairwise(ragged.splits)]


def check_spans(texts: list[str], encoded: Ragged) -> None:
    """They lie inside the text, go forward, and leave out nothing but white space."""
    for text, pairs in zip(texts, spans(encoded), strict=True):
        assert all(0 <= start <= end <= len(text) for start, end in pairs)
        assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(pairs))
        covered = {at for start, end in pairs for at in range(start, end)}
        assert {at for at, char in enumerate(text) if not char.isspace()} <= covered


def by_torch(folder: Path, texts: list[str]) -> list[Any]:
    """Encode texts with the BERT of a transformers folder."""
    import torch
    from transformers import AutoTokenizer, BertModel

    tokenizer = AutoTokenizer.from_pretrained(folder)
    network: Any = BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
    with torch.no_grad():
        return [network(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, 1:-1].numpy() for text in texts]
