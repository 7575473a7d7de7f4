"""`emoglot distill`: translations in, an encoder that reads one more language out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emoglot.cli import options
from emoglot.cli.output import note, warn_of_bad_lines
from emoglot.config import ExtensionConfig, parse_setting


def distill(
    extend: Annotated[str, typer.Option(help="The encoder to add languages to, such as emoglot-small, or a folder.")],
    parallel: Annotated[
        list[Path], typer.Option(help="Translations, LANGUAGE.tsv with English and text; or a folder of such files.")
    ],
    out: Annotated[Path, typer.Option(help="The encoder folder to write; a run that was interrupted goes on.")],
    set_: Annotated[list[str] | None, typer.Option("--set", help="One setting, such as epochs=3.")] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Drop malformed lines and report how many.")] = False,
) -> None:
    """Add a language to an encoder by translations."""
    from emoglot.encoders import load_encoder
    from emoglot.extension import extend as add_languages
    from emoglot.parallel import read_parallel

    options.check_new(out)
    pairs = read_parallel(parallel, skip_bad=skip_bad)
    warn_of_bad_lines(pairs.bad_lines, len(pairs))
    settings = ExtensionConfig().override(dict(map(parse_setting, set_ or [])))
    add_languages(pairs, load_encoder(extend), settings, out, note)
    typer.echo(str(out))
