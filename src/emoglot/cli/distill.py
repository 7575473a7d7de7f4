"""`emoglot distill`: extends an encoder by a language with translations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emoglot.cli import options
from emoglot.cli.inputs import read_translations
from emoglot.cli.output import kept_when_interrupted, note, progress_bar
from emoglot.config import ExtensionConfig, parse_setting
from emoglot.schema import fill


def distill(
    extend: Annotated[str, options.option("NAME", "Encoder to add languages to: emoglot-small, or a folder.")],
    parallel: options.Translations,
    out: Annotated[Path, options.option("DIR", "Encoder folder to write; an interrupted run continues from DIR.work.")],
    set_: Annotated[
        list[str] | None,
        options.option("NAME=VALUE", "One setting, such as epochs=3. Repeat the option for more.", "--set"),
    ] = None,
    skip_bad: options.SkipBad = False,
) -> None:
    """Add a language to an encoder with translations.

    The new encoder maps a text close to its English translation, so that a model trained with the old encoder can read
    the language: `emoglot predict --encoder DIR`.
    """
    from emoglot.encoders.registry import load_encoder
    from emoglot.training.extension import extend as add_languages

    options.check_new(out)
    pairs = read_translations(parallel, skip_bad=skip_bad)
    settings = fill(ExtensionConfig(), dict(map(parse_setting, set_ or [])))
    work = out.with_name(f"{out.name}.work")
    interrupted = kept_when_interrupted(f"the state in {work}", (work / "words").exists)
    with interrupted, progress_bar("training") as on_step:
        add_languages(pairs, load_encoder(extend), settings, out, note, on_step)
    typer.echo(str(out))
