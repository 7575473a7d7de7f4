"""Encoders: shapes, spans, independence of neighbours, export, and what a user is told when one can't be had."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emoglot.config import Config
from emoglot.encoders import Encoder, list_encoders, load_encoder, store
from emoglot.encoders.export import export_encoder
from emoglot.encoders.hub import HubEncoder
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.encoders.tiny import TinyEncoder
from emoglot.errors import EncoderError, MissingExtraError, ModelError, UsageError
from emoglot.model import EmotionClassifier, load
from tests.encoded import check_spans, rows, spans

TEXTS = [
    "What a wonderful day, I am so happy",
    "",
    "¡Qué alegría verte!",
    "أنا سعيد جدا اليوم",
    "x",
    "tea 🙂 at 5… <user> ½",
    "   ",
    "Se fue y no paro de llorar, y no vuelve más, y la noche es larga",
]
NETWORKS = ("hub", "onnx", "int8")


@pytest.fixture(scope="module")
def hub(xlmr_folder: Path) -> HubEncoder:
    encoder = load_encoder(str(xlmr_folder))
    assert isinstance(encoder, HubEncoder)
    return encoder


@pytest.fixture(scope="module")
def float_folder(hub: HubEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_encoder(hub, tmp_path_factory.mktemp("export") / "float", "our-float")


@pytest.fixture(scope="module")
def int8_folder(hub: HubEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_encoder(hub, tmp_path_factory.mktemp("export") / "int8", "our-int8", "int8")


@pytest.fixture(scope="module")
def encoders(hub: HubEncoder, float_folder: Path, int8_folder: Path) -> dict[str, Encoder]:
    return {"tiny": TinyEncoder(), "hub": hub, "onnx": OnnxEncoder(float_folder), "int8": OnnxEncoder(int8_folder)}


@pytest.fixture(params=["tiny", *NETWORKS])
def encoder(request: pytest.FixtureRequest, encoders: dict[str, Encoder]) -> Encoder:
    return encoders[request.param]


def python_without(*modules: str, code: str, arguments: tuple[str, ...] = ()) -> str:
    """Run code where importing these modules fails, as if they were not installed."""
    block = f"import sys\nsys.modules.update(dict.fromkeys({modules!r}))\n"
    command = [sys.executable, "-W", "error", "-c", block + code, *arguments]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.strip()


# What every encoder keeps


def test_shapes_agree(encoder: Encoder) -> None:
    encoded = encoder.encode(TEXTS)
    assert len(encoded) == len(TEXTS)
    assert encoded.splits[0] == 0
    assert (np.diff(encoded.splits) >= 0).all()
    assert encoded.vectors.shape == (encoded.splits[-1], encoder.dim)
    assert encoded.spans.shape == (encoded.splits[-1], 2)
    assert encoded.vectors.dtype == np.float32
    assert np.isfinite(encoded.vectors).all()
    frame = 0 if encoder.name == "tiny" else 2
    assert encoder.count_tokens(TEXTS).tolist() == (np.diff(encoded.splits) + frame).tolist()


def test_a_text_without_words_has_no_tokens(encoder: Encoder) -> None:
    assert np.diff(encoder.encode(["", "word", ""]).splits)[[0, 2]].tolist() == [0, 0]
    assert encoder.encode([""]).vectors.shape == (0, encoder.dim)


def test_no_texts_are_a_batch_too(encoder: Encoder) -> None:
    assert encoder.count_tokens([]).tolist() == []
    assert len(encoder.encode([])) == 0


def test_spans_lead_back_to_the_text(encoder: Encoder) -> None:
    check_spans(TEXTS, encoder.encode(TEXTS))


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), max_size=12), min_size=1, max_size=3))
def test_spans_of_any_text(texts: list[str], encoders: dict[str, Encoder]) -> None:
    spaced = [" ".join(text) if index % 2 else text for index, text in enumerate(texts)]
    for name in ("tiny", "hub"):
        check_spans(spaced, encoders[name].encode(spaced))
    assert spans(encoders["hub"].encode(spaced)) == spans(encoders["onnx"].encode(spaced))


def test_the_tiny_encoder_reads_words() -> None:
    text = " So  happy,\ttoday "
    assert [text[start:end] for start, end in TinyEncoder().encode([text]).spans] == ["So", "happy,", "today"]


def test_a_span_covers_the_characters_of_its_token(hub: HubEncoder) -> None:
    text = "¡Qué alegría! I am so happy أنا"
    encoded = hub.encode([text])
    tokens = hub.tokenizer.convert_ids_to_tokens(hub.tokenizer(text)["input_ids"])[1:-1]
    pieces = [unicodedata.normalize("NFKC", text[start:end]).strip() for start, end in encoded.spans]
    # The mark of a word's beginning may stand alone, and belongs to the character after it.
    known = [(token.strip("▁"), piece) for token, piece in zip(tokens, pieces, strict=True) if token not in "▁<unk>"]
    assert len(known) > 10
    assert [token for token, _ in known] == [piece for _, piece in known]


def test_neighbours_and_padding_change_nothing(encoder: Encoder, encoders: dict[str, Encoder]) -> None:
    tolerance = 1e-5 if encoder in (encoders["hub"], encoders["onnx"]) else 0
    alone = [encoder.encode([text]).vectors for text in TEXTS]
    order = [5, 0, 7, 1, 4, 2, 6, 3, 0]
    for row, vectors in zip(order, rows(encoder.encode([TEXTS[row] for row in order])), strict=True):
        np.testing.assert_allclose(vectors, alone[row], rtol=0, atol=tolerance)


def test_where_a_folder_pads_and_cuts_changes_nothing(hub: HubEncoder, xlmr_folder: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(xlmr_folder, tmp_path / "left"))
    path = other / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(settings | {"padding_side": "left", "truncation_side": "left"}), encoding="utf-8")
    left = HubEncoder("left", source=other)
    texts = ["short", "a text that is longer", " ".join(["happy", "day"] * 300)]
    np.testing.assert_allclose(left.encode(texts).vectors, hub.encode(texts).vectors, rtol=0, atol=1e-5)
    assert left.fingerprint == hub.fingerprint


def test_a_fingerprint_does_not_depend_on_what_transformers_adds(
    hub: HubEncoder, xlmr_folder: Path, tmp_path: Path
) -> None:
    """Versions differ in the defaults that they know, and in those that they write."""
    terse = Path(shutil.copytree(xlmr_folder, tmp_path / "terse"))
    path = terse / "config.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    defaults = type(hub.model.config)().to_dict()
    told = {name: value for name, value in stored.items() if name == "model_type" or value != defaults.get(name)}
    assert len(told) < len(stored)
    path.write_text(json.dumps(told | {"a_setting_of_a_later_version": 7}), encoding="utf-8")
    assert HubEncoder("terse", source=terse).fingerprint == hub.fingerprint
    path.write_text(json.dumps(told | {"num_attention_heads": 1}), encoding="utf-8")
    assert HubEncoder("other", source=terse).fingerprint != hub.fingerprint


def test_different_texts_get_different_vectors(encoder: Encoder) -> None:
    happy, furious = rows(encoder.encode(["I am so happy", "I am so furious"]))
    assert not np.allclose(happy[-1], furious[-1], atol=1e-2)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_long_text_is_cut(name: str, encoders: dict[str, Encoder]) -> None:
    encoder = encoders[name]
    long = " ".join(["happy", "day"] * 300)
    encoded = encoder.encode([long, "short"])
    assert np.diff(encoded.splits)[0] == 64 - 2
    assert encoded.spans[61, 1] < len(long)
    assert encoder.count_tokens([long]).tolist() == [64]


# The hub encoder against transformers itself


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


# Export


def test_a_float_export_agrees_with_torch(encoders: dict[str, Encoder]) -> None:
    texts = [*TEXTS, "happy day " * 100]
    torch_vectors, onnx_vectors = encoders["hub"].encode(texts), encoders["onnx"].encode(texts)
    np.testing.assert_array_equal(torch_vectors.spans, onnx_vectors.spans)
    np.testing.assert_array_equal(torch_vectors.splits, onnx_vectors.splits)
    np.testing.assert_allclose(torch_vectors.vectors, onnx_vectors.vectors, rtol=0, atol=1e-4)


def test_an_int8_export_is_smaller_and_similar(
    encoders: dict[str, Encoder], float_folder: Path, int8_folder: Path
) -> None:
    assert store.folder_size(int8_folder) < store.folder_size(float_folder)
    exact, rough = encoders["onnx"].encode(TEXTS).vectors, encoders["int8"].encode(TEXTS).vectors
    norms = np.linalg.norm(exact, axis=1) * np.linalg.norm(rough, axis=1)
    assert ((exact * rough).sum(axis=1) / norms).mean() > 0.9
    assert not np.array_equal(exact, rough)


@pytest.mark.parametrize(("kind", "difference"), [("float", 1e-3), ("int8", 0.1)])
def test_a_model_takes_the_export_of_its_encoder_but_no_other(
    kind: str, difference: float, hub: HubEncoder, float_folder: Path, int8_folder: Path, tmp_path: Path
) -> None:
    config = Config().override({"training.max_epochs": 2, "head.hidden": 8, "head.layers": 1})
    model = EmotionClassifier(hub, config=config, cache=tmp_path / "cache")
    texts = TEXTS * 6
    labels = [{"joy"} if row % 2 else {"fear"} for row in range(len(texts))]
    model.fit(texts, labels, validation=([f"then {text}" for text in texts], labels)).save(tmp_path / "model")
    folder = float_folder if kind == "float" else int8_folder
    moved = load(tmp_path / "model", encoder=folder)
    assert np.abs(moved.predict_proba(TEXTS) - model.predict_proba(TEXTS)).max() < difference
    with pytest.raises(ModelError, match="its scores would mean nothing"):
        load(tmp_path / "model", encoder="emoglot-small")


def test_a_layer_can_be_exported(xlmr_folder: Path, float_folder: Path, tmp_path: Path) -> None:
    layer = HubEncoder("layer", layer=1, source=xlmr_folder)
    exported = OnnxEncoder(export_encoder(layer, tmp_path / "one", "one"))
    np.testing.assert_allclose(exported.encode(TEXTS).vectors, layer.encode(TEXTS).vectors, rtol=0, atol=1e-4)
    assert exported.fingerprint != OnnxEncoder(float_folder).fingerprint


def test_fingerprints_of_exports(encoders: dict[str, Encoder], float_folder: Path) -> None:
    assert load_encoder(str(float_folder)).fingerprint == encoders["onnx"].fingerprint
    assert len({encoders[name].fingerprint for name in NETWORKS}) == 3


@pytest.mark.parametrize("kind", ["onnx", "int8"])
def test_an_export_needs_neither_torch_nor_transformers(
    kind: str, encoders: dict[str, Encoder], float_folder: Path, int8_folder: Path
) -> None:
    folder = {"onnx": float_folder, "int8": int8_folder}[kind]
    code = (
        "from emoglot.encoders import load_encoder\n"
        "print(load_encoder(sys.argv[1]).encode(sys.argv[2:]).vectors.tobytes().hex())"
    )
    arguments = (str(folder), *TEXTS[:4])
    output = python_without("torch", "transformers", "onnx", "sklearn", "scipy", code=code, arguments=arguments)
    np.testing.assert_allclose(
        np.frombuffer(bytes.fromhex(output), np.float32).reshape(-1, 32),
        encoders[kind].encode(TEXTS[:4]).vectors,
        rtol=0,
        atol=1e-5,
    )


def test_an_export_refuses_what_it_can_not_mean(hub: HubEncoder, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(UsageError, match=r"there exists already.*another --out"):
        export_encoder(hub, tmp_path / "there", "name")
    with pytest.raises(UsageError, match="one of none, int8, got 'int4'"):
        export_encoder(hub, tmp_path / "new", "name", "int4")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert not any((tmp_path / "there").iterdir())


def test_a_failed_export_leaves_nothing(xlmr_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = HubEncoder("layer", layer=1, source=xlmr_folder)
    monkeypatch.setitem(sys.modules, "onnxruntime.quantization", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'emoglot\[export\]'"):
        export_encoder(layer, tmp_path / "new", "name", "int8")
    assert list(tmp_path.iterdir()) == []


def test_without_the_export_extra(xlmr_folder: Path, tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\nfrom emoglot.encoders import load_encoder\n"
        "from emoglot.encoders.export import export_encoder\nfrom emoglot.errors import MissingExtraError\n"
        "try: export_encoder(load_encoder(sys.argv[1]), Path(sys.argv[2]), 'name')\n"
        "except MissingExtraError as error: print(error)"
    )
    output = python_without("onnxscript", code=code, arguments=(f"{xlmr_folder}#1", str(tmp_path / "new")))
    assert output == "exporting an encoder needs 'onnxscript', which is not installed: pip install 'emoglot[export]'"
    assert list(tmp_path.iterdir()) == []


# Names


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("nobody/has-this", "`emoglot encoders` lists what can be used"),
        ("/gone/away", "`emoglot encoders` lists what can be used"),
        ("e5-small", "emoglot encoders install e5-small"),
        ("nobody/has-this#x", "as in nobody/has-this#12, got 'x'"),
        ("nobody/has-this#", "as in nobody/has-this#12, got ''"),
        ("nobody/has-this#²", "as in nobody/has-this#12, got '²'"),
        ("nobody/has-this#-1", "as in nobody/has-this#12, got '-1'"),
    ],
)
def test_a_name_without_an_encoder(name: str, way_out: str) -> None:
    with pytest.raises(EncoderError) as caught:
        load_encoder(name)
    assert way_out in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_layer_that_is_not_there(xlmr_folder: Path) -> None:
    with pytest.raises(EncoderError, match=r"layers 0 \(embeddings\) to 2, got layer 3"):
        load_encoder(f"{xlmr_folder}#3")


def test_a_folder_that_is_no_encoder(tmp_path: Path) -> None:
    with pytest.raises(
        EncoderError, match=r"neither encoder.json \(made by `emoglot encoders export`\) nor config.json"
    ):
        load_encoder(str(tmp_path))


def test_an_encoder_is_its_own_name() -> None:
    tiny = TinyEncoder()
    assert load_encoder(tiny) is tiny
    assert isinstance(load_encoder("tiny"), TinyEncoder)


@pytest.mark.parametrize("blocked", ["torch", "transformers"])
def test_without_the_hub_extra(blocked: str, xlmr_folder: Path) -> None:
    code = (
        "from emoglot.encoders import load_encoder\nfrom emoglot.errors import MissingExtraError\n"
        "try: load_encoder(sys.argv[1])\nexcept MissingExtraError as error: print(error)"
    )
    output = python_without(blocked, code=code, arguments=(str(xlmr_folder),))
    assert f"needs {blocked!r}" in output
    assert "pip install 'emoglot[hub]'" in output


def test_the_list(float_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMOGLOT_CACHE", str(tmp_path))
    before = {info.name: info for info in list_encoders()}
    assert before["tiny"].installed
    for name, options in (("e5-small", "e5-small"), ("e5-small-int8", "e5-small --quantize int8")):
        assert (before[name].installed, before[name].megabytes) == (False, 91)
        assert before[name].hint == f"emoglot encoders install {options}"
    assert (before["xlm-roberta-large"].kind, before["xlm-roberta-large"].megabytes) == ("hub", 2250)

    shutil.copytree(float_folder, store.encoder_folder("our-float"))
    changed_copy(float_folder, store.encoder_folder(".our-draft"), name="our-draft")  # of a process that died
    damaged = shutil.copytree(float_folder, store.encoder_folder("our-damaged"))
    (damaged / "encoder.json").write_text("{")
    after = {info.name: info for info in list_encoders()}
    assert after.keys() - before.keys() == {"our-float"}
    assert after["our-float"].installed
    assert after["our-float"].megabytes == store.folder_size(float_folder) / 1e6
    assert len(list_encoders()) == len(after)
    assert load_encoder("our-float").fingerprint == OnnxEncoder(float_folder).fingerprint


# Damage


def changed_copy(folder: Path, target: Path, **changes: Any) -> Path:
    shutil.copytree(folder, target)
    values = json.loads((target / "encoder.json").read_text())
    (target / "encoder.json").write_text(json.dumps(values | changes))
    return target


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"version": "1"},
        {"version": 0},
        {"name": 5},
        {"fingerprint": None},
        {"fingerprint": "../elsewhere"},
        {"dim": 33},
        {"dim": "32"},
        {"max_tokens": 2},
        {"max_tokens": -1},
        {"max_tokens": 1e3},
        {"max_tokens": None},
        {"layout": "circular"},
        {"input_names": ["input_ids"]},
        {"input_names": ["input_ids", "mask"]},
        {"input_names": "ab"},
        {"input_names": [1, 2]},
        {"input_names": [{}, []]},
        {"output_name": "nothing"},
        {"output_name": {}},
        {"one_by_one": "no"},
    ],
    ids=str,
)
def test_a_description_that_is_wrong(change: dict[str, Any], float_folder: Path, tmp_path: Path) -> None:
    folder = changed_copy(float_folder, tmp_path / "damaged", **change)
    with pytest.raises(EncoderError, match=r"install it again|install the encoder again|pip install -U emoglot"):
        load_encoder(str(folder))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"{}", b"\xff\xfe", b"[" * 100_000])
def test_a_description_that_is_none(content: bytes, float_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(float_folder, tmp_path / "damaged")
    (folder / "encoder.json").write_bytes(content)
    with pytest.raises(EncoderError, match="install it again"):
        load_encoder(str(folder))


@pytest.mark.parametrize("part", [0, 0.3, 0.9, None], ids=["empty", "third", "most", "missing"])
@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_a_truncated_export(file: str, part: float | None, float_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(float_folder, tmp_path / "damaged")
    content = (folder / file).read_bytes()
    (folder / file).unlink() if part is None else (folder / file).write_bytes(content[: int(part * len(content))])
    with pytest.raises(EncoderError, match="install or export it again"):
        load_encoder(str(folder))


def test_a_network_of_another_export_is_refused(float_folder: Path, int8_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(float_folder, tmp_path / "swapped")
    shutil.copy(int8_folder / "model.onnx", folder / "model.onnx")
    with pytest.raises(EncoderError, match="not those it was made with"):
        load_encoder(str(folder))


@pytest.mark.parametrize("setting", ["hidden_act", "layer_norm_eps"])
def test_the_fingerprint_sees_the_settings_of_a_network(setting: str, xlmr_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(xlmr_folder, tmp_path / "other")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config[setting] = {"hidden_act": "relu", "layer_norm_eps": 0.1}[setting]
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert load_encoder(folder).fingerprint != load_encoder(xlmr_folder).fingerprint


def test_a_folder_is_never_looked_up_on_the_hub(xlmr_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(xlmr_folder.parent)
    name = load_encoder(xlmr_folder.name).name
    assert name == f"./{xlmr_folder.name}"
    monkeypatch.chdir("/")
    with pytest.raises(EncoderError, match=r"there is no encoder folder \./"):
        load_encoder(name)


@pytest.mark.parametrize("name", [3, None, ["tiny"]])
def test_what_is_no_encoder_is_refused(name: object) -> None:
    with pytest.raises(UsageError, match="a name, a folder or an Encoder"):
        load_encoder(name)


@pytest.mark.parametrize("part", [0, 0.5])
@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_truncated_transformers_folder(file: str, part: float, xlmr_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(xlmr_folder, tmp_path / "damaged")
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[: int(part * len(content))])
    with pytest.raises(EncoderError, match="is not a readable transformers folder"):
        load_encoder(str(folder))
