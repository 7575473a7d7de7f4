"""Fine-tuning: encoder and head learn together, can be interrupted anywhere, and predict without torch."""

from __future__ import annotations

import gc
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import emoglot
from emoglot.config import PRECISIONS
from emoglot.data.dataset import concatenate
from emoglot.encoders.export import export_encoder
from emoglot.encoders.hub import HubEncoder
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.encoders.registry import load_trainable
from emoglot.errors import TrainingError
from emoglot.model import Model
from emoglot.training import checkpoint as checkpoint_module
from emoglot.training.finetune import FineTuner, TokenIds, TunedNetwork, read_inputs
from emoglot.training.fit import fit_parts
from emoglot.training.part import Part
from emoglot.training.parts import prepare
from emoglot.training.trainer import Trainer
from tests.conftest import make_dataset, train
from tests.training.tuning import QUICK_TUNING, tune

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def tuned(encoder: HubEncoder) -> Model:
    return tune(encoder, make_dataset())


def encoder_weights(model: Model) -> dict[str, np.ndarray]:
    assert isinstance(model.encoder, OnnxEncoder)
    return load_file(model.encoder.folder / "model.safetensors")


def test_encoder_and_head_learn_together(tuned: Model, encoder: HubEncoder) -> None:
    history = tuned.state.training["history"]
    assert min(epoch["loss"] for epoch in history) < history[0]["loss"] * 0.9
    before = {name: tensor.numpy() for name, tensor in encoder.model.state_dict().items()}
    after = encoder_weights(tuned)
    assert all(np.array_equal(after[name], before[name]) for name in after if name.startswith("embeddings."))
    assert not any(np.array_equal(after[name], before[name]) for name in after if name.endswith("query.weight"))


def test_what_is_trained_is_what_predicts(encoder: HubEncoder) -> None:
    """The scores of the exported model are those of the network in torch, scaled by calibration alone."""
    data = make_dataset()
    parts = prepare(encoder, data, None, QUICK_TUNING, None)
    fitted = fit_parts(parts, encoder, QUICK_TUNING)
    part = parts.stopping.read_by(fitted.encoder)
    learner = FineTuner(encoder, QUICK_TUNING)
    network = learner.make_network(len(data.labels)).eval()
    trained = {f"encoder.{name}": torch.from_numpy(array) for name, array in encoder_weights_of(fitted.encoder).items()}
    trained |= {f"head.{name}": torch.from_numpy(array) for name, array in fitted.state.weights.items()}
    assert not network.load_state_dict(trained, strict=False).missing_keys
    padded, lengths = (torch.from_numpy(array) for array in parts.stopping.inputs.pad(np.arange(len(part.texts))))
    expected = torch.sigmoid(network(padded, lengths)[0]).detach().numpy()
    classifier = Model(fitted.state, fitted.encoder)
    # Vectors are kept in half precision between encoder and head.
    np.testing.assert_allclose(classifier.predict_proba(part.data.texts), expected, atol=2e-3)


def encoder_weights_of(encoder: OnnxEncoder) -> dict[str, np.ndarray]:
    return load_file(encoder.folder / "model.safetensors")


def test_a_saved_model_contains_its_encoder_and_predicts_without_torch(tuned: Model, tmp_path: Path) -> None:
    folder = tuned.save(tmp_path / "model")
    texts = ["I am so happy", "¡Qué miedo me da la noche!", "", "أنا خائف"]
    expected = tuned.predict_proba(texts)
    np.testing.assert_array_equal(emoglot.load(folder).predict_proba(texts), expected)
    program = (
        "import sys, json; sys.modules['torch'] = sys.modules['transformers'] = None\n"
        "import emoglot; print(json.dumps(emoglot.load(sys.argv[1]).predict_proba(json.loads(sys.argv[2])).tolist()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder), json.dumps(texts)], capture_output=True, text=True, check=True
    )
    np.testing.assert_array_equal(np.array(json.loads(done.stdout), dtype=np.float32), expected)
    assert "part of this folder" in (folder / "README.md").read_text(encoding="utf-8")
    # It can be saved over itself, and over another model.
    emoglot.load(folder).save(folder)
    np.testing.assert_array_equal(emoglot.load(folder).predict_proba(texts), expected)


def test_the_encoder_of_a_model_can_be_tuned_further(tuned: Model, tmp_path: Path) -> None:
    folder = tuned.save(tmp_path / "model")
    config = QUICK_TUNING.override({"training.max_epochs": 1, "fine_tune.learning_rate": 1e-8})
    again = tune(load_trainable(folder / "encoder"), make_dataset(), config)
    before, after = encoder_weights(tuned), encoder_weights(again)
    assert max(np.abs(before[name] - after[name]).max() for name in before) < 1e-4


@pytest.mark.parametrize("change", ["encoder/encoder.json", "encoder/model.safetensors", "encoder/tokenizer.json"])
def test_an_altered_encoder_is_noticed(tuned: Model, tmp_path: Path, change: str) -> None:
    folder = tuned.save(tmp_path / "model")
    content = (folder / change).read_bytes()
    (folder / change).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(emoglot.EmoglotError, match=r"altered|not those it was made with"):
        emoglot.load(folder)


def test_same_seed_same_weights(encoder: HubEncoder, tuned: Model) -> None:
    again = tune(encoder, make_dataset())
    assert again.state.encoder_fingerprint == tuned.state.encoder_fingerprint
    other = tune(encoder, make_dataset(), QUICK_TUNING.override({"training.seed": 1}))
    assert other.state.encoder_fingerprint != tuned.state.encoder_fingerprint


KILLED = """
import sys
from pathlib import Path
from tests.training.test_finetune import run_with_checkpoint
run_with_checkpoint(Path(sys.argv[1]), Path(sys.argv[2]))
"""
KILLED_BATCHES = 13  # of an epoch


def run_with_checkpoint(xlmr: Path, checkpoint: Path) -> Model:
    """Train with steps of two batches, saved after every step."""
    config = QUICK_TUNING.override({"fine_tune.accumulate": 2, "training.max_epochs": 3})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint_module, "SECONDS", 0.0)
        return train(load_trainable(xlmr), make_dataset(8), config=config, device="cpu", checkpoint=checkpoint)


def test_killed_in_the_middle_of_an_epoch_it_goes_on_to_the_same_weights(xlmr_folder: Path, tmp_path: Path) -> None:
    whole = run_with_checkpoint(xlmr_folder, tmp_path / "whole.run")
    checkpoint = tmp_path / "killed.run"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(xlmr_folder), str(checkpoint)]) as process:
        while process.poll() is None and _batches_done(checkpoint) < 4:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "it ended before it could be killed"
    done = _batches_done(checkpoint)
    assert 0 < done < 3 * KILLED_BATCHES
    assert done % KILLED_BATCHES, "it was to be killed in the middle of an epoch"
    seen = run_with_checkpoint(xlmr_folder, checkpoint)
    for name, array in encoder_weights(whole).items():
        np.testing.assert_array_equal(encoder_weights(seen)[name], array)
    losses = [[epoch["loss"] for epoch in model.state.training["history"]] for model in (whole, seen)]
    assert losses[0] == losses[1]


def _batches_done(checkpoint: Path) -> int:
    if not checkpoint.exists():
        return 0
    from safetensors import safe_open

    with safe_open(checkpoint, framework="np") as file:
        return int(file.get_tensor("done")) + KILLED_BATCHES * len(json.loads(file.metadata()["history"]))


def test_frozen_layers_stay_and_are_read_from_the_cache(encoder: HubEncoder, tmp_path: Path) -> None:
    config = QUICK_TUNING.override({"fine_tune.frozen_layers": 1})
    model = train(encoder, make_dataset(), config=config, cache=tmp_path)
    before = {name: tensor.numpy() for name, tensor in encoder.model.state_dict().items()}
    after = encoder_weights(model)
    changed = {name.split(".")[2] for name in after if not np.array_equal(after[name], before[name])}
    assert changed == {"1"}  # the upper of two layers
    assert [path.name for path in tmp_path.iterdir()] == [f"{encoder.fingerprint}-lowest-1-of-64-n1"]


def test_the_output_of_frozen_layers_stands_in_for_them(encoder: HubEncoder) -> None:
    texts = [text for text, *_ in zip(make_dataset().texts, range(5), strict=False)]
    logits = []
    for frozen in (0, 1):
        config = QUICK_TUNING.override({"fine_tune.frozen_layers": frozen})
        torch.manual_seed(0)
        network = FineTuner(encoder, config).make_network(3).eval()
        padded, lengths = read_inputs(encoder, texts, config, None, None).pad(np.arange(5))
        tensor = torch.from_numpy(padded)
        logits.append(network(tensor.float() if frozen else tensor, torch.from_numpy(lengths))[0])
    torch.testing.assert_close(logits[0], logits[1], atol=1e-3, rtol=0)


def test_reduced_precision_is_close_and_used_in_training_only(encoder: HubEncoder) -> None:
    texts = list(make_dataset().texts[:8])
    logits, gradients = {}, {}
    for precision in PRECISIONS:
        config = QUICK_TUNING.override({"fine_tune.precision": precision, "fine_tune.dropout": 0, "head.dropout": 0})
        padded, lengths = map(torch.from_numpy, read_inputs(encoder, texts, config, None, None).pad(np.arange(8)))
        torch.manual_seed(0)
        network = FineTuner(encoder, config).make_network(3)
        for mode in (True, False):
            logits[precision, mode] = network.train(mode)(padded, lengths)[0]
        logits[precision, True].sum().backward()
        gradients[precision] = network.encoder.encoder.layer[0].attention.self.query.weight.grad
    assert torch.equal(logits["float32", False], logits["bfloat16", False])
    assert not torch.equal(logits["float32", True], logits["bfloat16", True])
    torch.testing.assert_close(logits["float32", True], logits["bfloat16", True], atol=0.05, rtol=0.05)
    assert gradients["bfloat16"].dtype == torch.float32
    assert torch.cosine_similarity(*(grad.flatten() for grad in gradients.values()), dim=0) > 0.98


def test_embeddings_are_trained_on_request(encoder: HubEncoder) -> None:
    config = QUICK_TUNING.override({"fine_tune.embeddings": True, "training.max_epochs": 1})
    after = encoder_weights(tune(encoder, make_dataset(), config))
    table = "embeddings.word_embeddings.weight"
    assert not np.array_equal(after[table], encoder.model.state_dict()[table].numpy())


def test_lower_layers_learn_more_slowly(encoder: HubEncoder) -> None:
    config = QUICK_TUNING.override({"fine_tune.layer_decay": 0.5, "fine_tune.embeddings": True})
    learner = FineTuner(encoder, config)
    network = learner.make_network(5)
    assert isinstance(network, TunedNetwork)
    rate_of = {
        id(tensor): (group["lr"], group["weight_decay"])
        for group in learner.make_optimiser(network, []).param_groups
        for tensor in group["params"]
    }
    rates = {name: rate_of.get(id(tensor)) for name, tensor in network.named_parameters()}
    assert None not in rates.values()
    assert rates["head.output.weight"] == (1e-2, 0.01)
    assert rates["encoder.encoder.layer.1.output.dense.weight"] == (3e-3, 0.01)
    assert rates["encoder.encoder.layer.1.output.dense.bias"] == (3e-3, 0.0)
    assert rates["encoder.encoder.layer.0.output.dense.weight"] == (1.5e-3, 0.01)
    assert rates["encoder.embeddings.word_embeddings.weight"] == (0.75e-3, 0.01)


def test_learning_rates_rise_then_fall(encoder: HubEncoder) -> None:
    learner = FineTuner(encoder, QUICK_TUNING.override({"fine_tune.warm_up": 0.1}))
    rates = [learner.rate(step, 100) for step in range(100)]
    assert int(np.argmax(rates)) == 9
    assert np.all(np.diff(rates[:10]) > 0)
    assert np.all(np.diff(rates[9:]) <= 0)
    assert 0 < rates[0] <= 0.1
    assert rates[-1] == 0.02


def test_a_step_of_several_batches_takes_their_mean_gradient(encoder: HubEncoder) -> None:
    data = make_dataset(1)
    settings = {"fine_tune.dropout": 0.0, "head.dropout": 0.0, "loss.weighting": "uniform", "fine_tune.accumulate": 2}
    config = QUICK_TUNING.override(settings)
    labelled = Part(data, data.texts, read_inputs(encoder, data.texts, config, None, None))
    moved = []
    for batches in ([np.arange(8), np.arange(8, 16)], [np.arange(16)]):
        trainer = Trainer(FineTuner(encoder, config), labelled, config, CPU)
        with torch.random.fork_rng():
            trainer.start()
            trainer._take_step(batches, epoch=1, first=0, count=2)
        gradients = {name: tensor.grad for name, tensor in trainer._trained_parameters().items()}
        moved.append(gradients)
    for name, gradient in moved[0].items():
        torch.testing.assert_close(gradient, moved[1][name], atol=1e-6, rtol=1e-3)


def test_int8_is_a_quarter_of_the_size_and_its_loss_is_measured(encoder: HubEncoder, tmp_path: Path) -> None:
    model = tune(encoder, make_dataset(), quantize="int8")
    measured = model.state.training["macro_f1_by_quantization"]
    assert measured["int8"] == model.metrics.overall.macro_f1
    assert set(measured) == {"none", "int8"}
    folder = model.save(tmp_path / "small")
    assert not (folder / "encoder" / "model.safetensors").exists()
    texts = ["I am so happy", "Se fue y no paro de llorar"]
    np.testing.assert_array_equal(emoglot.load(folder).predict_proba(texts), model.predict_proba(texts))
    alone = np.concatenate([model.predict_proba([text]) for text in texts])
    np.testing.assert_allclose(alone, model.predict_proba(texts), atol=1e-6)


def test_everything_else_works_as_with_a_frozen_encoder(encoder: HubEncoder) -> None:
    """Masked labels, a bias for each dataset, n-grams, dropped tokens, another head."""
    first = make_dataset()
    second = replace(first.with_labels(("joy", "fear")), sources=("other",) * len(first))
    config = QUICK_TUNING.override(
        {"training.token_dropout": 0.1, "head.kind": "lstm", "head.hidden": 8, "training.single_choice": {"other": 0.5}}
    )
    model = tune(encoder, concatenate([first, second]), config, wide=True)
    assert model.labels == first.labels
    assert np.isfinite(model.predict_proba(first.texts)).all()
    assert model.explain("I am so happy")


def test_texts_are_cut_in_training_only(encoder: HubEncoder) -> None:
    config = QUICK_TUNING.override({"fine_tune.max_tokens": 8})
    inputs = read_inputs(encoder, ["happy day " * 20, "", "joy"], config, None, None)
    assert isinstance(inputs, TokenIds)
    assert inputs.lengths.tolist()[0] == 8
    assert inputs.rows_with_tokens.tolist() == [0, 2]


def test_an_int8_encoder_is_trained_as_what_its_bytes_stand_for(encoder: HubEncoder, tmp_path: Path) -> None:
    exported = export_encoder(encoder, tmp_path / "int8", "x", "int8")
    restored = load_trainable(exported)
    texts = make_dataset().texts
    given, found = encoder.encode(texts).vectors, restored.encode(texts).vectors
    cosines = (given * found).sum(axis=1) / np.linalg.norm(given, axis=1) / np.linalg.norm(found, axis=1)
    assert cosines.min() > 0.99
    model = train(exported, make_dataset(), config=QUICK_TUNING, quantize="int8")
    folder = model.save(tmp_path / "model")
    assert np.isfinite(emoglot.load(folder).predict_proba(texts)).all()
    # Training can go on from an int8 model, too.
    train(folder / "encoder", make_dataset(), config=QUICK_TUNING, start=emoglot.load(folder))


def test_a_model_can_be_fitted_again(encoder: HubEncoder, tmp_path: Path) -> None:
    """A second time from where the first began; a loaded one from its own encoder."""
    data, config = make_dataset(), QUICK_TUNING.override({"training.max_epochs": 1})
    model = train(encoder, data, config=config)
    first = model.state.encoder_fingerprint
    assert train(encoder, data, config=config).state.encoder_fingerprint == first
    loaded = emoglot.load(model.save(tmp_path / "model"))
    again = train(loaded.encoder, data, config=config)
    assert again.state.encoder_fingerprint != first


def test_training_starts_from_a_fine_tuned_model_or_a_frozen_one(
    tuned: Model, xlmr_folder: Path, tmp_path: Path
) -> None:
    data, config = make_dataset(), QUICK_TUNING.override({"training.max_epochs": 1})
    folder = tuned.save(tmp_path / "model")
    again = train(folder / "encoder", data, config=config, start=emoglot.load(folder))
    assert again.state.training["history"][0]["loss"] < tuned.state.training["history"][0]["loss"]
    frozen_config = config.override({"fine_tune.enabled": False})
    frozen = train(xlmr_folder, data, config=frozen_config, cache=tmp_path / "cache")
    train(xlmr_folder, data, config=config, start=frozen)
    with pytest.raises(TrainingError, match=r"the same encoder: .*it is the folder `encoder` of the model"):
        train(xlmr_folder, data, config=config, start=tuned)


def test_a_fine_tuned_model_takes_the_int8_export_of_its_encoder(tuned: Model, tmp_path: Path) -> None:
    folder = tuned.save(tmp_path / "model")
    small = export_encoder(load_trainable(folder / "encoder"), tmp_path / "small", "small", "int8")
    texts = ["I am so happy", "أنا خائف"]
    np.testing.assert_allclose(
        emoglot.load(folder, encoder=small).predict_proba(texts), tuned.predict_proba(texts), atol=0.05
    )


def test_no_temporary_folder_is_left(encoder: HubEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    config = QUICK_TUNING.override({"training.max_epochs": 1})
    model = tune(encoder, make_dataset(), config, quantize="int8")
    assert len(list(tmp_path.iterdir())) == 1
    del model
    gc.collect()
    assert not list(tmp_path.iterdir())
