"""The hub encoder against transformers itself."""

from __future__ import annotations

import copy
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emoglot.encoders.hub import HubEncoder
from emoglot.encoders.registry import load_encoder


def direct(folder: Path, text: str) -> Any:
    import torch
    from transformers import AutoTokenizer, XLMRobertaModel

    network = XLMRobertaModel.from_pretrained(folder, add_pooling_layer=False).eval()
    with torch.no_grad():
        return network(**AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt"), output_hidden_states=True)


def test_hub_vectors_are_those_of_transformers(hub: HubEncoder, xlmr_folder: Path) -> None:
    for text in ("What a day", "أنا سعيد"):
        expected = direct(xlmr_folder, text).last_hidden_state[0, 1:-1].numpy()
        np.testing.assert_allclose(hub.encode([text]).vectors, expected, atol=1e-6)


def test_it_can_be_pickled_and_copied(hub: HubEncoder) -> None:
    for twin in (pickle.loads(pickle.dumps(hub)), copy.deepcopy(hub)):
        assert twin.fingerprint == hub.fingerprint
        np.testing.assert_array_equal(twin.encode(["so happy"]).vectors, hub.encode(["so happy"]).vectors)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_a_layer_is_a_hidden_state_of_transformers(layer: int, xlmr_folder: Path) -> None:
    encoder = load_encoder(f"{xlmr_folder}#{layer}")
    expected = direct(xlmr_folder, "What a day").hidden_states[layer][0, 1:-1].numpy()
    np.testing.assert_allclose(encoder.encode(["What a day"]).vectors, expected, atol=1e-6)
    assert encoder.name == f"{xlmr_folder}#{layer}"


def test_a_fingerprint_is_of_the_weights_that_matter(hub: HubEncoder, xlmr_folder: Path, tmp_path: Path) -> None:
    """The checkpoint has no pooler: each load draws another, which must not count."""
    again = HubEncoder("again", source=xlmr_folder)
    assert not (again.model.pooler.dense.weight == hub.model.pooler.dense.weight).all()
    moved = shutil.copytree(xlmr_folder, tmp_path / "moved")
    layers = [HubEncoder("layer", layer=layer, source=xlmr_folder).fingerprint for layer in (0, 1, 2)]
    assert hub.fingerprint == again.fingerprint == load_encoder(str(moved)).fingerprint
    assert len({hub.fingerprint, *layers}) == 4
    again.model.encoder.layer[0].output.dense.bias.data[3] += 1e-3
    del again.fingerprint
    assert again.fingerprint != hub.fingerprint


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_checkpoint_in_half_precision_runs_in_single(dtype: str, hub: HubEncoder, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModel

    folder = tmp_path / "half"
    hub.tokenizer.save_pretrained(folder)
    AutoModel.from_config(hub.model.config).to(getattr(torch, dtype)).save_pretrained(folder)
    half = load_encoder(str(folder))
    assert half.encode(["What a day"]).vectors.dtype == np.float32
    assert half.fingerprint == load_encoder(str(folder)).fingerprint
