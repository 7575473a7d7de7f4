"""Makes a small XLM-RoBERTa of random weights, its tokenizer trained on the texts of data files.

    python examples/tiny_xlmr.py tiny-xlm-r DATA [DATA ...]

It knows nothing about language, but it is the real architecture in a real folder: with it, everything that works with
`xlm-roberta-large` can be tried in a minute and without a download.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel

import emoglot
from emoglot.text import normalise_text

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def make_tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    """Train a unigram model with XLM-R's conventions."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=8000, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **names)


def main() -> None:
    """Read the texts, make the tokenizer and the network, save both."""
    folder, *paths = map(Path, sys.argv[1:])
    data = emoglot.concatenate([emoglot.read(path) for path in paths])
    tokenizer = make_tokenizer([normalise_text(text) for text in data.texts])
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = XLMRobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=512,
        max_position_embeddings=514,
    )
    XLMRobertaModel(config, add_pooling_layer=False).save_pretrained(folder)


if __name__ == "__main__":
    main()
