"""A small encoder folder, made without torch, and a model that includes it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from emoglot import load
from emoglot.encoders.description import LAYOUT, EncoderDescription
from emoglot.encoders.graph import GraphBuilder
from emoglot.inference.folder import write_model
from emoglot.model import Model

DIM = 32  # as that of the tiny encoder, whose head reads these vectors, too
# The first stands for all other words; a name that the alphabet knows would make every letter foreign.
WORDS = ("[none]", "<s>", "</s>", "so", "happy", "today", "sad")


def make_network() -> onnx.ModelProto:
    """Build a network that looks up one vector for each token, and reads the mask."""
    builder = GraphBuilder()
    table = builder.constant(np.random.default_rng(0).normal(size=(len(WORDS), DIM)), name="table")
    vectors = builder.node("Gather", table, "input_ids")
    mask = builder.node("Cast", "attention_mask", to=TensorProto.FLOAT)
    builder.node("Mul", vectors, builder.node("Unsqueeze", mask, builder.integers(2)), result="states")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in INPUTS]
    output = helper.make_tensor_value_info("states", TensorProto.FLOAT, ["texts", "tokens", DIM])
    return builder.model("encoder", inputs, [output])


INPUTS = ("input_ids", "attention_mask")


def make_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token=WORDS[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    marks = [("<s>", 1), ("</s>", 2)]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=marks)
    return tokenizer


@pytest.fixture(scope="session")
def plain_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    onnx.save(make_network(), folder / "model.onnx")
    make_tokenizer().save(str(folder / "tokenizer.json"))
    EncoderDescription("plain", "plain-1", DIM, 64, LAYOUT, INPUTS, "states", one_by_one=False).write(folder)
    return folder


@pytest.fixture
def encoder_folder(plain_encoder: Path, tmp_path: Path) -> Path:
    """A copy to be altered."""
    return Path(shutil.copytree(plain_encoder, tmp_path / "encoder"))


@pytest.fixture(scope="session")
def whole_model(trained: Model, plain_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder that includes its encoder."""
    folder = tmp_path_factory.mktemp("whole") / "model"
    state = replace(trained.state, encoder_name="plain", encoder_fingerprint="plain-1", includes_encoder=True)
    write_model(state, folder, "0", plain_encoder)
    assert load(folder).predict("so happy")
    return folder
