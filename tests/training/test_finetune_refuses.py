"""What fine-tuning refuses before it trains, with the way out."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from emoglot.classifier import EmotionClassifier
from emoglot.config import Config
from emoglot.encoders.export import export_encoder
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


def change(folder: Path, file: str, changes: dict[str, object]) -> None:
    path = folder / file
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")


def test_code_of_a_model_is_not_run(xlmr_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(xlmr_folder, tmp_path / "folder")
    (folder / "evil.py").write_text("raise SystemExit('it was run')", encoding="utf-8")
    change(folder, "config.json", {"model_type": "evil", "auto_map": {"AutoConfig": "evil.A", "AutoModel": "evil.B"}})
    with pytest.raises(EncoderError, match="needs code of its own, which emoglot does not run"):
        load_trainable(folder)


@pytest.mark.parametrize("layers", [2, 5])
def test_missing_weights_are_not_replaced_by_random_ones(xlmr_folder: Path, tmp_path: Path, layers: int) -> None:
    folder = shutil.copytree(xlmr_folder, tmp_path / "folder")
    change(folder, "config.json", {"num_hidden_layers": layers})
    if layers == 2:  # as in the folder
        weights = load_file(folder / "model.safetensors")
        lost = next(name for name in weights if name.endswith("layer.1.output.dense.weight"))
        save_file({name: tensor for name, tensor in weights.items() if name != lost}, folder / "model.safetensors")
    with pytest.raises(EncoderError, match=r"lack \d+ tensors that its config.json asks for, the first is .*layer"):
        load_trainable(folder)


def test_a_tokenizer_that_does_not_fit_its_network_is_refused(xlmr_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(xlmr_folder, tmp_path / "folder")
    change(folder, "tokenizer_config.json", {"model_max_length": 0})
    with pytest.raises(EncoderError, match="must be a number of at least 3, got 0"):
        load_trainable(folder)
    shutil.copy(xlmr_folder / "tokenizer_config.json", folder)
    encoder = HubEncoder("fits", source=folder)
    encoder.tokenizer.add_tokens([f"piece{number}" for number in range(1000)])
    encoder.tokenizer.save_pretrained(folder)
    with pytest.raises(EncoderError, match=r"has \d+ pieces, its network only \d+: copy both from the same model"):
        load_trainable(folder)


def test_an_export_whose_weights_changed_is_not_trained(xlmr_folder: Path, tmp_path: Path) -> None:
    export_encoder(HubEncoder("exported", source=xlmr_folder), tmp_path / "exported", "exported")
    path = tmp_path / "exported" / "model.safetensors"
    load_trainable(tmp_path / "exported")
    content = bytearray(path.read_bytes())
    content[-10:] = bytes(10)
    path.write_bytes(content)
    with pytest.raises(EncoderError, match="have changed"):
        load_trainable(tmp_path / "exported")


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
    for name in ("toaster", "cuda:99", "meta", "", "privateuseone"):
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
