"""Creates a small XLM-RoBERTa with random weights, and a tokenizer trained on the texts of data files.

    python examples/tiny_xlmr.py tiny-xlm-r DATA [DATA ...]

It has the architecture and the files of a pretrained model, but no knowledge of language. Use it to try anything that
works with `xlm-roberta-large` in a minute and without a download.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel
from transformers.utils import logging

import emoglot
from emoglot.text.normalise import normalise_text

# In the order of XLM-R's ids.
SPECIAL = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "mask_token": "<mask>"}


def make_xlmr(
    folder: Path,
    texts: Sequence[str],
    *,
    vocabulary: int = 8000,
    hidden: int = 128,
    layers: int = 2,
    heads: int = 4,
    max_tokens: int = 512,
) -> Path:
    """Write tokenizer and network to a folder, as `transformers` loads them."""
    logging.disable_progress_bar()
    tokenizer = _make_tokenizer(texts, vocabulary, max_tokens)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = XLMRobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        max_position_embeddings=max_tokens + 2,  # positions are numbered from 2
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        type_vocab_size=1,
    )
    # Without a pooler, like checkpoints of language models.
    XLMRobertaModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


def _make_tokenizer(texts: Sequence[str], vocabulary: int, max_tokens: int) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=vocabulary, special_tokens=list(SPECIAL.values()), unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=max_tokens, **SPECIAL)


def main() -> None:
    """Read the texts of the files and write the folder."""
    folder, *paths = map(Path, sys.argv[1:])
    data = emoglot.concatenate([emoglot.read(path) for path in paths])
    make_xlmr(folder, [normalise_text(text) for text in data.texts])


if __name__ == "__main__":
    main()
