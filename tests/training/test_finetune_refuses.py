"""What fine-tuning refuses before it trains, with the way out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from emoglot.classifier import EmotionClassifier
from emoglot.config import Config
from emoglot.encoders.hub import HubEncoder
from emoglot.encoders.registry import load_encoder, load_trainable
from emoglot.errors import EncoderError, TrainingError, UsageError
from emoglot.training.finetune import TunedNetwork
from emoglot.training.loop import find_device
from emoglot.training.trainer import Trainer
from tests.conftest import make_dataset, train
from tests.training.tuning import QUICK_TUNING, tune


def test_what_can_not_be_trained_is_refused(encoder: HubEncoder) -> None:
    for name in ("tiny", load_encoder("tiny")):
        with pytest.raises(EncoderError, match="is for prediction only and cannot be trained: use e5-small"):
            train(name, make_dataset(), config=QUICK_TUNING)
    with pytest.raises(EncoderError, match="emoglot encoders install e5-small"):
        train("e5-small", make_dataset(), config=QUICK_TUNING)
    with pytest.raises(UsageError, match=r"frozen_layers must leave one of 2 layers to train, got 2"):
        tune(encoder, make_dataset(), QUICK_TUNING.override({"fine_tune.frozen_layers": 2}))
    with pytest.raises(UsageError, match="quantize='int8' is only for fine-tuned encoders"):
        train("tiny", make_dataset(), quantize="int8")
    with pytest.raises(UsageError, match="a quantisation must be one of none, int8, got 'int4'"):
        train(encoder, make_dataset(), config=QUICK_TUNING, quantize="int4")


@pytest.mark.parametrize(
    ("missing", "message"),
    [("tokenizer", "has no tokenizer: copy the tokenizer.json"), ("model", "is not a readable transformers folder")],
)
def test_a_folder_without_a_tokenizer_or_weights_is_refused(
    xlmr_folder: Path, tmp_path: Path, missing: str, message: str
) -> None:
    folder = shutil.copytree(xlmr_folder, tmp_path / "folder")
    for path in folder.glob(f"{missing}*"):
        path.unlink()
    with pytest.raises(EncoderError, match=message):
        train(folder, make_dataset(), config=QUICK_TUNING)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ImportError("no", name="onnxscript"), r"needs 'onnxscript', .* pip install 'emoglot\[export\]'"),
        (RuntimeError("pages of reasons"), "cannot be exported to ONNX"),
    ],
)
def test_an_encoder_that_could_not_be_saved_is_not_trained(
    encoder: HubEncoder, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("emoglot.encoders.export.can_compile", lambda config: False)
    monkeypatch.setattr(torch.onnx, "export", fail)
    monkeypatch.setattr(Trainer, "start", lambda *_: pytest.fail("it was trained"))
    with pytest.raises(EncoderError, match=message):
        tune(encoder, make_dataset())


def test_one_layer_is_not_trained(xlmr_folder: Path) -> None:
    for layer in (f"{xlmr_folder}#1", load_encoder(f"{xlmr_folder}#1")):
        with pytest.raises(EncoderError, match=r"only whole networks can be trained, .* is one layer: leave out #1"):
            load_trainable(layer)


def test_layers_are_frozen_only_where_nothing_is_shared_between_them(
    encoder: HubEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emoglot.training.finetune.can_compile", lambda config: False)
    with pytest.raises(UsageError, match="layers can be frozen one by one in BERT, RoBERTa and XLM-R"):
        tune(encoder, make_dataset(), QUICK_TUNING.override({"fine_tune.frozen_layers": 1}))


def test_the_config_and_the_flag_must_agree(encoder: HubEncoder) -> None:
    with pytest.raises(UsageError, match=r"fine_tune=True contradicts the config.*Config.for_fine_tuning\(\)"):
        EmotionClassifier(encoder, config=Config(), fine_tune=True).fit(["a", "b"], [{"joy"}, {"fear"}])


def test_settings_and_flags_of_the_command_line() -> None:
    from emoglot.cli.options import TrainingOptions
    from emoglot.data.recipe import Recipe

    empty = Recipe({}, {})
    tuned = Config.for_fine_tuning()
    assert TrainingOptions(fine_tune=True).settings(empty) == tuned
    assert TrainingOptions(set_=["fine_tune.enabled=true"]).settings(empty) == tuned
    assert TrainingOptions(set_=["fine_tune.enabled=true"], fine_tune=False).settings(empty) == Config()
    assert TrainingOptions(set_=["fine_tune.enabled=false"], fine_tune=True).settings(empty) == tuned
    assert TrainingOptions(fine_tune=False).settings(Recipe({"fine_tune": {"enabled": True}}, {})) == Config()


def test_devices() -> None:
    assert find_device("cpu") == torch.device("cpu")
    assert find_device("auto").type in ("cpu", "cuda")
    for name in ("toaster", "cuda:99", "meta", ""):
        with pytest.raises(
            UsageError, match="a device must be auto, cpu or another device that torch supports here, got"
        ):
            find_device(name)


def test_too_little_memory_is_told_with_a_way_out(encoder: HubEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    def forward(self: TunedNetwork, *_: object) -> None:
        torch.empty(1 << 60)  # torch's own error, whatever it is

    monkeypatch.setattr(TunedNetwork, "forward", forward)
    with pytest.raises(TrainingError, match=r"memory.*lower training.batch_size"):
        tune(encoder, make_dataset())
