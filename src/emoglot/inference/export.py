"""Exports a model for other programming languages: two ONNX graphs, a tokenizer, and the rest as JSON.

exported/
├── emoglot.json       labels, thresholds, and every step before, between and after the graphs
├── tokenizer.json     for the tokenizers library, which exists for many programming languages
├── encoder.onnx       token ids → one vector per token
├── head.onnx          vectors → logits and attention; any number of texts and tokens
├── wide.safetensors   the n-grams, if the model has them
├── examples.jsonl     texts with the expected result of each step, to test a port
└── README.md
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors.numpy import save as save_tensors

from emoglot._version import __version__
from emoglot.encoders.base import Encoder
from emoglot.encoders.description import MODEL_FILE, TOKENIZER_FILE, EncoderDescription
from emoglot.encoders.features import extract_features
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.errors import EncoderError, UsageError
from emoglot.files import copy_files, folder_in_the_making
from emoglot.inference import ngrams
from emoglot.inference.folder import listed, listed_by_language
from emoglot.inference.head import HeadRuntime, logits_of
from emoglot.text import letters, patterns
from emoglot.text import normalise as text
from emoglot.text.language_names import ANY

if TYPE_CHECKING:
    from emoglot.model import Model

FORMAT, FORMAT_VERSION = "emoglot-export", 1
DESCRIPTION_FILE, ENCODER_FILE, HEAD_FILE = "emoglot.json", "encoder.onnx", "head.onnx"
WIDE_FILE, EXAMPLES_FILE, CARD_FILE = "wide.safetensors", "examples.jsonl", "README.md"

# Each tests something that a port may get wrong.
EXAMPLES = (
    "I am sooooo happy today!!! 😀😀😀😀",
    "@maria ¿Qué   miedo?? https://example.org/x #NoPuedoMás",
    "أنا خائف من الليل",
    "मुझे बहुत गुस्सा आ रहा है",
    "Fish &amp; chips at 19:30 for £12, 50% off",
    "e\u0301galite\u0301 👩‍👩‍👧 ❤️",
    "你好，世界",
    "",
)


def export_model(model: Model, folder: Path, quantize: str = "none") -> Path:
    """Write the folder, atomically."""
    if folder.exists():
        raise UsageError(f"{folder} already exists: choose another --out")
    state = model.state
    with folder_in_the_making(folder) as draft:
        encoder = _write_encoder(model.encoder, draft, quantize)
        (draft / HEAD_FILE).write_bytes(state.graph)
        if state.wide:
            arrays = {**vars(state.wide.ngrams), **state.wide.weight_arrays()}
            contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
            (draft / WIDE_FILE).write_bytes(save_tensors(contiguous))
        description = _describe(model, encoder)
        # In ASCII: the patterns contain surrogates, which UTF-8 cannot encode.
        (draft / DESCRIPTION_FILE).write_text(json.dumps(description, indent=1), encoding="utf-8")
        (draft / EXAMPLES_FILE).write_text("".join(_examples(model, encoder)), encoding="utf-8")
        (draft / CARD_FILE).write_text(_CARD, encoding="utf-8")
    return folder


def _write_encoder(encoder: Encoder, draft: Path, quantize: str) -> OnnxEncoder:
    """Copy an ONNX encoder, or export any other."""
    scratch = draft / "encoder"
    if isinstance(encoder, OnnxEncoder):
        if quantize != "none":
            raise UsageError(f"--quantize is only for encoders of the hub, got {encoder.name}: leave it out")
        copy_files(encoder.folder, scratch)
    else:
        from emoglot.encoders.export import export_encoder
        from emoglot.encoders.hub import HubEncoder

        if not isinstance(encoder, HubEncoder):
            raise EncoderError(f"the encoder {encoder.name!r} has no network to export")
        export_encoder(encoder, scratch, encoder.name, quantize)
    exported = OnnxEncoder(scratch)
    shutil.copy(scratch / MODEL_FILE, draft / ENCODER_FILE)
    for name in (TOKENIZER_FILE, *_beside(exported.description)):
        shutil.copy(scratch / name, draft / name)
    shutil.rmtree(scratch)
    return exported


def _describe(model: Model, encoder: OnnxEncoder) -> dict[str, Any]:
    state = model.state
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "emoglot": __version__,
        "task": state.config.task,
        "labels": list(state.labels),
        "sentiment": list(state.sentiment),
        "thresholds": listed(state.thresholds),
        "language_thresholds": listed_by_language({**state.matched_thresholds, **state.language_thresholds}),
        "normalisation": _normalisation(),
        "tokenizer": {"file": TOKENIZER_FILE, "max_tokens": encoder.description.max_tokens},
        "encoder": _encoder(encoder.description),
        "head": {
            "file": HEAD_FILE,
            "inputs": {
                "vectors": "float32 (texts, tokens, dim): the vectors of each text, then zeros",
                "lengths": "int64 (texts): its tokens; leave out a text without tokens, its scores are 0",
            },
            "outputs": {
                "logits": "float32 (texts, labels, then sentiment)",
                "attention": "float32 (texts, tokens), sums to 1",
            },
        },
        "wide": _wide(state.wide) if state.wide else None,
        "score": "1 / (1 + exp(-logit))",
        "unread": list(text.UNREAD),
        "unreadable": "remove the strings in unread from the normalised text and tokenise its characters one by one; "
        "if more than half of the letters, or all characters but white space, have no token, all scores are 0",
        "choose": "the highest score"
        if state.config.single_label
        else "every label whose score is at least its threshold; null is never. The thresholds are those of the text's "
        "language in language_thresholds, if it is known and listed; else of its code without region; else thresholds, "
        "which the examples use. Language identification is not part of the export",
        "choose_sentiment": "with the scores p of positive and n of negative, the largest of positive p(1 - n), "
        "negative (1 - p)n, neutral (1 - p)(1 - n) and mixed pn"
        if state.sentiment
        else None,
    }


def _normalisation() -> dict[str, Any]:
    described = {
        "entity": patterns.ENTITY,
        "unwanted": patterns.UNWANTED,
        "irregular_space": patterns.IRREGULAR_SPACE,
        "long_mark": patterns.LONG_MARK,
        "long_letter": patterns.LONG_LETTER,
        "repeated_sign": patterns.REPEATED_SIGN,
        "not_a_sign": patterns.NOT_A_SIGN,
        "repeated_emoji": patterns.REPEATED_EMOJI,
    }
    return {
        "version": text.NORMALISATION_VERSION,
        "until": "run the steps in order, repeatedly, until a whole pass changes nothing",
        "steps": [
            "decode HTML entities (entity), also those that result from decoding",
            "remove what matches unwanted; a surrogate pair becomes its character",
            "compose (Unicode NFC)",
            "what matches irregular_space becomes one space, or nothing at either end",
            "of three or more of one mark (long_mark), keep two",
            "of three or more of one letter with its marks (long_letter), keep two",
            "of a repeated sign (repeated_sign, unless not_a_sign) keep one; several dots become …",
            "replace each token that matches a kind by its placeholder between spaces; put spaces around emoji; "
            "split a hashtag into # and its words, also at CamelCase and snake_case",
            "of three or more of one emoji with spaces between (repeated_emoji), keep two",
        ],
        "placeholders": list(patterns.PLACEHOLDERS),
        "kinds": dict(patterns.KINDS),
        "patterns": {name: pattern.pattern for name, pattern in described.items()},
        "dialect": "regular expressions as Python's re reads them",
    }


def _beside(description: EncoderDescription) -> set[str]:
    """Return the names of the files with the weights of the graph, if it does not contain them."""
    return {name for name in description.files if name != MODEL_FILE and not name.endswith(".json")}


def _encoder(description: EncoderDescription) -> dict[str, Any]:
    return {
        "file": ENCODER_FILE,
        "weights": sorted(_beside(description)),
        "name": description.name,
        "dim": description.dim,
        "layout": description.layout,
        "inputs": list(description.input_names),
        "output": description.output_name,
        "meaning": "ids and mask, int64 (texts, tokens), 0 after a text's end → (texts, tokens, dim)",
        "one_by_one": description.one_by_one,
        "then": "remove the vectors of special tokens and round the rest to float16, as in training"
        + ("; run each text alone, since int8 activations are scaled per batch" if description.one_by_one else ""),
    }


def _wide(channel: ngrams.WideChannel) -> dict[str, Any]:
    """Return how to hash and weight the n-grams."""
    return {
        "file": WIDE_FILE,
        "word_ngrams": channel.config.word_ngrams,
        "char_ngrams": channel.config.char_ngrams,
        "buckets": channel.config.buckets,
        "unread": list(text.UNREAD),
        "base": str(letters.BASE),
        "mixer": str(letters.MIXER),
        "characters": str(ngrams.CHARACTERS),
        "known_little": ngrams.KNOWN_LITTLE,
        "known_enough": ngrams.KNOWN_ENOUGH,
        "full_weight": channel.config.weight,
        "arithmetic": "unsigned, modulo 2^64; numbers of that size are strings here",
        "steps": [
            "of the normalised text, leave out what is unread, fold case, put spaces around every character of Unicode "
            "category P or S, and split at white space into words; a character is its code point",
            "hash of a word: the sum of character × base^place, places from 0; of a run of words: hash × mixer + next",
            "word n-grams: runs of 1 to word_ngrams words",
            "character n-grams: windows of 2 to char_ngrams characters of the words written with one space before, "
            "between and after them, that hold no space but at their ends; hash: hash × base + next character, from "
            "the first character; at last XOR characters",
            "of each hash × mixer: bucket = (its bits 32 to 63) mod buckets, sign = its bits 56 to 63",
            "count equal (bucket, sign) in a text; it is known if signs[bucket] is the sign and idf[bucket] > 0",
            "value = (1 + ln count) × (idf[bucket] if known, else unknown_idf), divided by the root of the sum of "
            "squares of all values of the text",
            "wide logits = bias + the sum of value × steps[bucket] × weights[bucket] over what is known; share known = "
            "the sum of its squared values",
            "weight = full_weight × clip((share known - known_little) / (known_enough - known_little), 0, 1)",
            "logits = (1 - weight) × the head's + weight × the wide logits",
        ],
    }


def _examples(model: Model, encoder: OnnxEncoder) -> Sequence[str]:
    """Return the expected result of each step for each example, as JSON lines."""
    state, head = model.state, HeadRuntime(model.state.graph)
    exported = type(model)(state, encoder)  # whose encoder may be quantized
    lines = []
    for given in EXAMPLES:
        normalised = text.normalise_text(given)
        features = extract_features(encoder, [normalised])
        logits = head.logits(features)
        joined = logits_of(head, state.wide, features, [normalised])
        (prediction,) = exported.predict([given], ANY)
        record = {
            "text": given,
            "normalised": normalised,
            "ids": encoder.tokenizer.encode(normalised).ids,
            "head": [float(value) if np.isfinite(value) else None for value in logits[0]],
            "logits": [float(value) if np.isfinite(value) else None for value in joined[0]],
            "scores": exported.predict_proba([given])[0].tolist(),
            "labels": list(prediction.labels),
            "sentiment": prediction.sentiment.name if prediction.sentiment else None,
        }
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    return lines


_CARD = """# An exported emoglot model

`emoglot.json` describes how to run it, step by step: normalisation, tokenizer (`tokenizer.json`), `encoder.onnx`,
`head.onnx`, n-grams (`wide.safetensors`, if present), scores, labels. `examples.jsonl` contains texts with the expected
result of each step: a port is correct if its results are the same. The graphs use only standard ONNX operators and
accept any number of texts and tokens.
"""
