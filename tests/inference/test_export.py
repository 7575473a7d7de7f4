"""The exported folder, run by a port that knows nothing but its files: onnxruntime, tokenizers, numpy, and integers."""

from __future__ import annotations

import json
import math
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

import emoglot
from emoglot.errors import EncoderError, UsageError
from emoglot.inference.export import export_model
from emoglot.inference.folder import listed
from tests.conftest import QUICK, SENTENCES, train


class Port:
    """What somebody would write in another language, after emoglot.json; it takes normalised texts."""

    def __init__(self, folder: Path) -> None:
        self.about = json.loads((folder / "emoglot.json").read_text(encoding="ascii"))
        self.tokenizer = Tokenizer.from_file(str(folder / self.about["tokenizer"]["file"]))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(self.about["tokenizer"]["max_tokens"])
        self.encoder, self.head = (
            onnxruntime.InferenceSession(folder / self.about[part]["file"], providers=["CPUExecutionProvider"])
            for part in ("encoder", "head")
        )
        self.wide = load_file(folder / self.about["wide"]["file"]) if self.about["wide"] else None

    def ids(self, text: str) -> list[int]:
        return self.tokenizer.encode(text).ids

    def vectors(self, text: str) -> np.ndarray:
        encoding = self.tokenizer.encode(text)
        about = self.about["encoder"]
        feeds = [np.array([encoding.ids], np.int64), np.ones((1, len(encoding.ids)), np.int64)]
        (found,) = self.encoder.run([about["output"]], dict(zip(about["inputs"], feeds, strict=True)))
        kept = found.reshape(-1, about["dim"])[np.array(encoding.special_tokens_mask) == 0]
        return kept.astype(np.float16).astype(np.float32)

    def logits(self, texts: list[str]) -> np.ndarray:
        """Run texts with tokens through the head, all at once."""
        vectors = [self.vectors(text) for text in texts]
        lengths = np.array([len(rows) for rows in vectors], np.int64)
        padded = np.zeros((len(texts), lengths.max(), self.about["encoder"]["dim"]), np.float32)
        for row, found in enumerate(vectors):
            padded[row, : len(found)] = found
        logits, attention = self.head.run(["logits", "attention"], {"vectors": padded, "lengths": lengths})
        np.testing.assert_allclose(attention.sum(axis=1), 1, atol=1e-5)
        return logits

    def join(self, text: str, logits: np.ndarray) -> np.ndarray:
        if self.wide is None:
            return logits
        about = self.about["wide"]
        counts = Counter(self._places(text))
        known, values = [], []
        for (bucket, sign), count in counts.items():
            is_known = self.wide["signs"][bucket] == sign and self.wide["idf"][bucket] > 0
            idf = float(self.wide["idf"][bucket]) if is_known else float(self.wide["unknown_idf"][0])
            known.append(bucket if is_known else None)
            values.append((1 + math.log(count)) * idf)
        norm = math.sqrt(sum(value**2 for value in values))
        own, share = self.wide["bias"].astype(np.float64), 0.0
        for bucket, value in zip(known, values, strict=True):
            if bucket is not None:
                step = float(self.wide["steps"][bucket])
                own = own + value / norm * step * self.wide["weights"][bucket].astype(np.float64)
                share += (value / norm) ** 2
        place = (share - about["known_little"]) / (about["known_enough"] - about["known_little"])
        weight = about["full_weight"] * min(1.0, max(0.0, place))
        return (1 - weight) * logits + weight * own

    def _places(self, text: str) -> list[tuple[int, int]]:
        about = self.about["wide"]
        base, mixer, characters = (int(about[name]) for name in ("base", "mixer", "characters"))
        limit = 2**64
        for unread in about["unread"]:
            text = text.replace(unread, "")
        apart = "".join(f" {sign} " if unicodedata.category(sign)[0] in "PS" else sign for sign in text.casefold())
        words = apart.split()
        hashes = []
        own = [sum(ord(sign) * pow(base, place, limit) for place, sign in enumerate(word)) % limit for word in words]
        for length in range(1, about["word_ngrams"] + 1):
            for first in range(len(own) - length + 1):
                value = own[first]
                for following in own[first + 1 : first + length]:
                    value = (value * mixer + following) % limit
                hashes.append(value)
        written = f" {' '.join(words)} "
        for length in range(2, about["char_ngrams"] + 1):
            for first in range(len(written) - length + 1):
                window = written[first : first + length]
                if " " in window[1:-1] or window.isspace():
                    continue
                value = ord(window[0])
                for sign in window[1:]:
                    value = (value * base + ord(sign)) % limit
                hashes.append(value ^ characters)
        mixed = [value * mixer % limit for value in hashes]
        return [((value >> 32) % about["buckets"], value >> 56) for value in mixed]


def check(folder: Path, model: emoglot.Model) -> None:
    """The port gives what the examples say at every step, and what the model says of other texts."""
    port = Port(folder)
    examples = [json.loads(line) for line in (folder / "examples.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(examples) >= 8
    full = [example for example in examples if example["normalised"]]
    together = port.logits([example["normalised"] for example in full])
    for example, logits in zip(full, together, strict=True):
        text = example["normalised"]
        assert port.ids(text) == example["ids"]
        np.testing.assert_allclose(logits, example["head"], atol=1e-4)
        np.testing.assert_allclose(port.logits([text])[0], logits, atol=1e-4)
        joined = port.join(text, logits)
        np.testing.assert_allclose(joined, example["logits"], atol=1e-3)
        if any(example["scores"]):
            scores = 1 / (1 + np.exp(-joined[: len(port.about["labels"])]))  # without sentiment
            np.testing.assert_allclose(scores, example["scores"], atol=1e-3)
            chosen = [
                name
                for name, score, threshold in zip(port.about["labels"], scores, port.about["thresholds"], strict=True)
                if threshold is not None and score >= threshold
            ]
            assert chosen == example["labels"]
    texts = [emoglot.text.normalise.normalise_text(text) for text, _, _ in SENTENCES]
    expected = model.predict_proba(texts)
    joined = [port.join(text, row) for text, row in zip(texts, port.logits(texts), strict=True)]
    found = 1 / (1 + np.exp(-np.array(joined)[:, : len(model.labels)]))
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_the_model_in_the_package(tmp_path):
    model = emoglot.load()
    check(export_model(model, tmp_path / "exported"), model)


@pytest.mark.parametrize("has_ngrams", [False, True])
def test_a_model_on_a_transformer(xlmr_folder, dataset, tmp_path, has_ngrams):
    config = QUICK.override({"wide.enabled": has_ngrams})
    model = train(str(xlmr_folder), dataset, config=config, cache=tmp_path / "cache")
    folder = export_model(model, tmp_path / "exported")
    assert (folder / "wide.safetensors").exists() == has_ngrams
    check(folder, model)
    assert weights_of(folder) == ["model.safetensors"]


def weights_of(folder):
    return json.loads((folder / "emoglot.json").read_text(encoding="ascii"))["encoder"]["weights"]


def test_a_model_on_a_layer_of_a_transformer(xlmr_folder, dataset, tmp_path, monkeypatch):
    """Its graph is found by torch; one too large for a file has its weights beside it."""
    layer = f"{xlmr_folder}#1"
    model = train(layer, dataset, config=QUICK, cache=tmp_path / "cache")
    folder = export_model(model, tmp_path / "exported")
    check(folder, model)
    assert weights_of(folder) == []
    monkeypatch.setattr("emoglot.encoders.export._is_large", lambda encoder: True)
    large = export_model(model, tmp_path / "large")
    check(large, model)
    (weights,) = weights_of(large)
    assert {path.name for path in large.iterdir()} - {path.name for path in folder.iterdir()} == {weights}


def test_the_examples_of_a_quantized_model_are_its_own(xlmr_folder, dataset, tmp_path):
    model = train(str(xlmr_folder), dataset, config=QUICK, cache=tmp_path / "cache")
    folder = export_model(model, tmp_path / "exported", "int8")
    for line in (folder / "examples.jsonl").read_text(encoding="utf-8").splitlines():
        example = json.loads(line)
        if any(example["scores"]):
            scores = 1 / (1 + np.exp(-np.array(example["logits"])))
            np.testing.assert_allclose(example["scores"], scores[: len(example["scores"])], atol=1e-6)


def test_the_description_names_every_file(tmp_path):
    folder = export_model(emoglot.load(), tmp_path / "exported")
    about: dict[str, Any] = json.loads((folder / "emoglot.json").read_text(encoding="ascii"))
    named = {about[part]["file"] for part in ("tokenizer", "encoder", "head", "wide")}
    assert named | {"emoglot.json", "examples.jsonl", "README.md"} == {path.name for path in folder.iterdir()}
    state = emoglot.load().state
    assert about["language_thresholds"].keys() == state.language_thresholds.keys() | state.matched_thresholds.keys()
    for language, thresholds in about["language_thresholds"].items():
        assert thresholds == listed(state.thresholds_for(language))


def test_what_can_not_be_exported_is_refused(trained, tmp_path):
    with pytest.raises(UsageError, match="already exists"):
        export_model(emoglot.load(), tmp_path)
    with pytest.raises(EncoderError, match="no network"):
        export_model(trained, tmp_path / "tiny")
    with pytest.raises(UsageError, match="--quantize is only for encoders of the hub"):
        export_model(emoglot.load(), tmp_path / "int8", quantize="int8")
    assert not list(tmp_path.iterdir())
