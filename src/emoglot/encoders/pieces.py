"""An encoder made of a vocabulary and one vector per piece: the table is int8, the tokenizer a Unigram.

It reads nothing but the piece itself; context is the head's work. That makes it as fast as its tokenizer.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emoglot.encoders.onnx import IR_VERSION, MODEL_FILE, OPSET, TOKENIZER_FILE, Description
from emoglot.errors import DataError, MissingExtraError
from emoglot.files import folder_in_the_making
from emoglot.text import UNREAD

if TYPE_CHECKING:
    from tokenizers import Tokenizer

UNKNOWN_ID = 0
MAX_TOKENS = 512  # as long as XLM-R reads, which users know

_IDS, _SPLITS, _VECTORS = "ids", "splits", "vectors"
_LEVELS = 127  # of int8 on either side of zero


def train_tokenizer(texts: Iterable[str], size: int, required: Iterable[str] = ()) -> Tokenizer:
    """Learn a Unigram vocabulary of about `size` pieces from normalised texts; case is folded."""
    try:
        import sentencepiece
    except ImportError as error:
        raise MissingExtraError("sentencepiece", "train", "learning a vocabulary") from error
    from tokenizers import normalizers

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=model,
            vocab_size=size,
            model_type="unigram",
            hard_vocab_limit=False,  # a small collection has fewer pieces than it could hold
            character_coverage=0.9999,  # what is left out are ideographs and signs seen once or twice
            required_chars="".join(required),
            normalization_rule_name="nfkc_cf",
            split_digits=True,
            max_sentence_length=4096,
            unk_id=UNKNOWN_ID,
            bos_id=-1,
            eos_id=-1,
            pad_id=-1,
            minloglevel=2,
        )
    except RuntimeError as error:  # sentencepiece has no types of its own
        raise DataError(f"no vocabulary of {size} pieces can be learnt from these texts: {error}") from error
    tokenizer = to_tokenizer(model.getvalue())
    removals = [normalizers.Replace(sign, "") for sign in UNREAD]
    tokenizer.normalizer = normalizers.Sequence([*removals, tokenizer.normalizer])
    return tokenizer


def to_tokenizer(sentencepiece_model: bytes, frame: Sequence[str] = ()) -> Tokenizer:
    """Rebuild a SentencePiece unigram model with the tokenizers library, which also gives spans.

    `frame` are the pieces put before and after every text.
    """
    from sentencepiece import sentencepiece_model_pb2 as generated
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    messages: Any = generated  # generated code has no types
    proto = messages.ModelProto()
    proto.ParseFromString(sentencepiece_model)
    pieces = [(piece.piece, piece.score) for piece in proto.pieces]
    tokenizer = Tokenizer(models.Unigram(pieces, proto.trainer_spec.unk_id, False))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap),
            normalizers.Strip(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=not frame)
    if frame:
        ids = {name: index for index, (name, _) in enumerate(pieces) if name in frame}
        begin, end = frame
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{begin} $A {end}", special_tokens=list(ids.items())
        )
    return tokenizer


def extend_tokenizer(tokenizer: Tokenizer, texts: Iterable[str], size: int) -> Tokenizer:
    """Add the pieces of a language of which there are normalised texts; the old pieces keep their ids."""
    from tokenizers import Tokenizer

    # As in a mixture of languages of which the new one is a hundredth, so that the others are cut as before.
    share = math.log(100)
    description = json.loads(tokenizer.to_str())
    vocabulary = description["model"]["vocab"]
    known = {piece for piece, _ in vocabulary}
    learnt = json.loads(train_tokenizer(texts, size).to_str())["model"]["vocab"]
    vocabulary += [[piece, score - share] for piece, score in learnt if piece not in known]
    return Tokenizer.from_str(json.dumps(description))


def write_pieces(
    folder: Path, name: str, tokenizer: Tokenizer, vectors: NDArray[np.float32], extends: Sequence[str] = ()
) -> None:
    """Write the folder of an encoder whole or not at all; `extends` are the fingerprints of those it was made from.

    What the vocabulary lacks gets a vector of zeros: it keeps its place in the text, and says nothing.
    """
    vectors = vectors.copy()
    vectors[UNKNOWN_ID] = 0
    scales = _scales(vectors)
    table = np.rint(vectors / scales).astype(np.int8)
    digest = hashlib.sha256(tokenizer.to_str().encode() + table.tobytes() + scales.tobytes()).hexdigest()
    with folder_in_the_making(folder) as draft:
        (draft / TOKENIZER_FILE).write_text(tokenizer.to_str(), encoding="utf-8")
        (draft / MODEL_FILE).write_bytes(_graph(table, scales))
        Description(
            name=name,
            fingerprint=digest[:32],
            dim=vectors.shape[1],
            max_tokens=MAX_TOKENS,
            layout="ragged",
            input_names=(_IDS, _SPLITS),
            output_name=_VECTORS,
            one_by_one=False,
            extends=tuple(extends),
        ).write(draft)


def _scales(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Give the step between int8 levels for every piece, so that a vector read from an encoder is written unchanged."""
    scales = np.maximum(np.abs(vectors).max(axis=1, keepdims=True), np.float32(1e-12)) / np.float32(_LEVELS)
    # Largest level × step, divided again, may come out one rounding beside the step it was made with.
    for other in (np.nextafter(scales, np.float32(0)), np.nextafter(scales, np.float32(np.inf))):
        was_made_so = (np.rint(vectors / other) * other == vectors).all(axis=1, keepdims=True)
        scales = np.where(was_made_so, other, scales)
    return np.asarray(scales, dtype=np.float32)


def _graph(table: NDArray[np.int8], scales: NDArray[np.float32]) -> bytes:
    """Look the pieces up and scale them; the splits are part of the layout, though nothing reads them."""
    try:
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise MissingExtraError("onnx", "train", "writing an encoder") from error
    nodes = [
        helper.make_node("Gather", ["table", _IDS], ["levels"]),
        helper.make_node("Cast", ["levels"], ["whole"], to=TensorProto.FLOAT),
        helper.make_node("Gather", ["scales", _IDS], ["scale"]),
        helper.make_node("Mul", ["whole", "scale"], [_VECTORS]),
    ]
    graph = helper.make_graph(
        nodes,
        "pieces",
        inputs=[
            helper.make_tensor_value_info(_IDS, TensorProto.INT32, ["tokens"]),
            helper.make_tensor_value_info(_SPLITS, TensorProto.INT64, ["splits"]),
        ],
        outputs=[helper.make_tensor_value_info(_VECTORS, TensorProto.FLOAT, ["tokens", table.shape[1]])],
        initializer=[numpy_helper.from_array(table, "table"), numpy_helper.from_array(scales, "scales")],
    )
    opsets = [helper.make_opsetid("", OPSET)]
    serialised: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION).SerializeToString()
    return serialised
