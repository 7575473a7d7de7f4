"""Exports a hub encoder to a folder for onnxruntime, optionally in int8."""

from __future__ import annotations

import hashlib
import logging
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from emoglot.encoders.bert_folder import finish_float32, write_int8, write_weights
from emoglot.encoders.bert_graph import INPUTS, OUTPUT, can_compile
from emoglot.encoders.description import LAYOUT, MODEL_FILE, TOKENIZER_FILE, EncoderDescription
from emoglot.encoders.hub import HubEncoder
from emoglot.encoders.onnx import check_quantization
from emoglot.encoders.onnxruntime import import_onnxruntime
from emoglot.encoders.registry import extended_fingerprints
from emoglot.errors import EncoderError, MissingExtraError, UsageError, needs_extra
from emoglot.files import folder_in_the_making

# Increase it when the export changes, so that cached vectors are not reused.
_RECIPE_VERSION = 1


def export_encoder(
    encoder: HubEncoder, folder: Path, name: str, quantize: str = "none", extends: Sequence[str] = ()
) -> Path:
    """Write the encoder's network, tokenizer and description to a folder.

    It can replace the encoder, and those whose fingerprints are in `extends`.
    """
    check_request(folder, quantize)
    with folder_in_the_making(folder) as draft:
        if _is_compiled(encoder):
            _compile(encoder, draft, name, quantize, extends)
        else:
            _trace(encoder, draft, name, quantize)
    return folder


def check_exportable(encoder: HubEncoder) -> None:
    """Raise EncoderError if the encoder cannot be exported, which is found by a trial export."""
    if not _is_compiled(encoder):
        with tempfile.TemporaryDirectory() as scratch, _quiet():
            _export_network(encoder, Path(scratch) / MODEL_FILE)


def _is_compiled(encoder: HubEncoder) -> bool:
    config = encoder.model.config.to_dict()
    # XLM-R derives positions from the padding id, so network and tokenizer must have the same.
    same_padding = config.get("pad_token_id") == encoder.tokenizer.pad_token_id
    return encoder.layer is None and same_padding and can_compile(config)


def _compile(encoder: HubEncoder, draft: Path, name: str, quantize: str, extends: Sequence[str]) -> None:
    """Build the graph directly: it is faster than a traced one, and in int8 more precise."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = draft if quantize == "none" else Path(scratch)
        encoder.model.config.save_pretrained(folder)
        write_weights({name: tensor.cpu().numpy() for name, tensor in encoder.model.state_dict().items()}, folder)
        encoder.tokenizer.save_pretrained(folder)
        extends = (encoder.fingerprint, *extended_fingerprints(encoder), *extends)
        if quantize == "none":
            finish_float32(folder, name, encoder.max_tokens, extends)
        else:
            write_int8(folder, draft, name, encoder.max_tokens, extends)


def _trace(encoder: HubEncoder, draft: Path, name: str, quantize: str) -> None:
    """Export any other network with torch's exporter."""
    with tempfile.TemporaryDirectory() as scratch, _quiet():
        exported = Path(scratch) / MODEL_FILE if quantize == "int8" else draft / MODEL_FILE
        _export_network(encoder, exported)
        if quantize == "int8":
            _quantize(exported, draft / MODEL_FILE)
    encoder.tokenizer.backend_tokenizer.save(str(draft / TOKENIZER_FILE))
    EncoderDescription(
        name=name,
        fingerprint=hashlib.sha256(f"{encoder.fingerprint} {quantize} {_RECIPE_VERSION}".encode()).hexdigest()[:32],
        dim=encoder.dim,
        max_tokens=encoder.max_tokens,
        layout=LAYOUT,
        input_names=INPUTS,
        output_name=OUTPUT,
        one_by_one=quantize == "int8",
        extends=(encoder.fingerprint, *extended_fingerprints(encoder)),
    ).write(draft)


def check_request(folder: Path, quantize: str) -> None:
    """Check the arguments of an export before the network is loaded."""
    check_quantization(quantize)
    if folder.exists():
        raise UsageError(f"{folder} already exists: remove it, or choose another --out")


def _export_network(encoder: HubEncoder, path: Path) -> None:
    import torch

    class OneLayer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = encoder.model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
            if encoder.layer is None:
                return self.network(**inputs).last_hidden_state
            return self.network(**inputs, output_hidden_states=True).hidden_states[encoder.layer]

    # Sizes other than 1, which the exporter may take for constants, and two tensors, since it would take one tensor
    # given twice for one input.
    device = encoder.model.device
    ids, mask = torch.full((2, 7), 5, device=device), torch.ones((2, 7), dtype=torch.int64, device=device)
    dynamic = {name: {0: "texts", 1: "tokens"} for name in INPUTS}
    import_onnxruntime()  # before the exporter imports it
    try:
        program = torch.onnx.export(
            OneLayer().eval(),
            (ids, mask),
            dynamo=True,
            dynamic_shapes=dynamic,
            input_names=list(INPUTS),
            output_names=[OUTPUT],
            verbose=False,
        )
    except ImportError as error:
        raise MissingExtraError(error.name or "onnxscript", "export", "exporting an encoder") from error
    except Exception as error:  # torch raises many types, with long messages
        raise EncoderError(
            f"{encoder.name} cannot be exported to ONNX ({type(error).__name__}): use another encoder"
        ) from error
    assert program is not None  # None only if the exporter writes the file
    program.save(str(path), external_data=_is_large(encoder))


def _is_large(encoder: HubEncoder) -> bool:
    # A protobuf is limited to 2 GB; larger weights are in a separate file.
    return bool(sum(tensor.numel() * tensor.element_size() for tensor in encoder.model.parameters()) > 1.8e9)


def _quantize(source: Path, target: Path) -> None:
    """Quantise weights to int8; activations are quantised at run time, with a scale per text."""
    with needs_extra("export", "quantising an encoder"):
        quantization = import_onnxruntime("onnxruntime.quantization")
    quantization.quantize_dynamic(str(source), str(target), weight_type=quantization.QuantType.QInt8)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress warnings and log messages of the exporters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
