"""Encoding with and without sorting by length: the same texts, network and token budget.

    python benchmarks/encoding.py

The network is an XLM-R of six layers of 384 with random weights, which have the speed of real ones.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel
from transformers.utils import logging

from emoglot.encoders.hub import HubEncoder
from emoglot.features import TOKEN_BUDGET, extract_features

TEXTS = 1_500


def make_texts() -> list[str]:
    """Random words; lengths spread like those of posts: most short, a few long."""
    random = np.random.default_rng(0)
    words = ["".join(random.choice(list("aeioulnrst"), size)) for size in random.integers(2, 9, 500)]
    lengths = np.clip(random.lognormal(2.7, 0.7, TEXTS).astype(int), 1, 120)
    return [" ".join(random.choice(words, length)) + f" {row}" for row, length in enumerate(lengths)]


def make_encoder(texts: list[str], folder: Path) -> HubEncoder:
    logging.disable_progress_bar()
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer.train_from_iterator(
        texts,
        trainers.UnigramTrainer(vocab_size=2000, special_tokens=special, unk_token="<unk>", show_progress=False),
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **names).save_pretrained(folder)
    torch.manual_seed(0)
    config = XLMRobertaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=6,
        intermediate_size=1536,
        max_position_embeddings=514,
    )
    XLMRobertaModel(config, add_pooling_layer=False).save_pretrained(folder)
    return HubEncoder(str(folder), source=folder)


def file_order(encoder: HubEncoder, texts: list[str]) -> None:
    """Cut batches in the order of the file, each within the same budget of padded tokens."""
    batch: list[str] = []
    longest = 0
    for text, length in zip(texts, encoder.count_tokens(texts), strict=True):
        longest = max(longest, int(length))
        if batch and longest * (len(batch) + 1) > TOKEN_BUDGET:
            encoder.encode(batch)
            batch, longest = [], int(length)
        batch.append(text)
    encoder.encode(batch)


def main() -> None:
    texts = make_texts()
    with tempfile.TemporaryDirectory() as folder:
        encoder = make_encoder(texts, Path(folder))
        encoder.encode(texts[:50])  # warm up
        began = time.perf_counter()
        extract_features(encoder, texts)
        middle = time.perf_counter()
        file_order(encoder, texts)
        ended = time.perf_counter()
    print(f"sorted by length {TEXTS / (middle - began):.0f} texts/s, file order {TEXTS / (ended - middle):.0f} texts/s")
    print(f"ratio {(ended - middle) / (middle - began):.2f}")


if __name__ == "__main__":
    main()
