"""Tiny real things that the tests share: sentences of our own, a real XLM-R of random weights, a trained model."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings

# Before torch is imported anywhere: two test processes on two cores must not fight for threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"
# Some tests import onnxruntime by themselves.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

from emoglot.config import Config
from emoglot.data.dataset import Dataset
from emoglot.labels import to_targets
from emoglot.model import Model

# The same examples in every run, so that a change is what turns a test red; `make hostile` draws new ones.
# Without a deadline: how long an example takes depends on what else the machine does.
settings.register_profile("same", derandomize=True, database=None, deadline=None)
settings.register_profile("new", print_blob=True, deadline=None)
settings.load_profile(os.environ.get("EMOGLOT_TEST_EXAMPLES", "same"))

SENTENCES = (
    ("What a wonderful day, I am so happy", "en", {"joy"}),
    ("¡Qué alegría verte, estoy feliz!", "es", {"joy", "love"}),
    ("أنا سعيد جدا اليوم", "ar", {"joy"}),
    ("I am furious about this awful service", "en", {"anger"}),
    ("Estoy furioso, esto es horrible", "es", {"anger"}),
    ("أنا غاضب من هذا الأمر", "ar", {"anger"}),
    ("Terrified of the dark, please help", "en", {"fear"}),
    ("¡Qué miedo me da la noche!", "es", {"fear", "sadness"}),
    ("أنا خائف من الليل", "ar", {"fear"}),
    ("She left and I cannot stop crying", "en", {"sadness"}),
    ("Se fue y no paro de llorar", "es", {"sadness"}),
    ("رحلت وأنا حزين", "ar", {"sadness"}),
    ("The train leaves at noon", "en", set()),
    ("El tren sale a mediodía", "es", set()),
    ("I love you more than yesterday", "en", {"love"}),
    ("Te quiero más que ayer", "es", {"love"}),
)
LABELS = ("anger", "fear", "joy", "love", "sadness")

# A head that trains in a second.
QUICK = Config().override(
    {"head.hidden": 8, "head.layers": 1, "training.max_epochs": 4, "training.learning_rate": 0.02, "wide.buckets": 512}
)


def make_dataset(copies: int = 4) -> Dataset:
    """Repeat the sentences with a number at the end, so that all texts differ."""
    rows = [(f"{text} no{copy}", language, names) for copy in range(copies) for text, language, names in SENTENCES]
    return Dataset(
        texts=tuple(text for text, _, _ in rows),
        targets=to_targets([names for _, _, names in rows], LABELS),
        labels=LABELS,
        languages=tuple(language for _, language, _ in rows),
        sources=("ours",) * len(rows),
    )


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep tests away from the user's cache."""
    monkeypatch.setenv("EMOGLOT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    return make_dataset()


@pytest.fixture(scope="session")
def trained(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A model with a wide channel, trained on the tiny encoder."""
    cache = tmp_path_factory.mktemp("features")
    return train("tiny", dataset, wide=True, cache=cache)


def train(encoder, training, validation=None, *, config=QUICK, wide=None, **options) -> Model:
    """Train a model on datasets; here, so that tests without it do not wait for torch."""
    from emoglot.training.train import train_model

    if wide is not None:
        config = replace(config, wide=replace(config.wide, enabled=wide))
    return train_model(encoder, training, validation, config, **options)


@pytest.fixture(scope="session")
def model_folder(trained: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained.save(tmp_path_factory.mktemp("models") / "tiny-model")


@pytest.fixture(scope="session")
def xlmr_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real XLM-R: its architecture with random weights, its kind of tokenizer trained on our sentences."""
    from examples.tiny_xlmr import make_xlmr  # here, so that tests without it do not wait for torch

    folder = tmp_path_factory.mktemp("tiny-xlm-r")
    return make_xlmr(folder, [text for text, _, _ in SENTENCES], vocabulary=200, hidden=32, max_tokens=64)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what tests list for people to read, wherever they ran."""
    reports = [report for key in ("passed", "failed") for report in terminalreporter.stats.get(key, [])]
    for report in reports:
        for name, line in report.user_properties:
            if name == "listing":
                terminalreporter.write_line(line)
