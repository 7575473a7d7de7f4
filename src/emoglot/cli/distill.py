"""`emoglot distill`: translations in, an encoder folder out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emoglot.cli import options
from emoglot.cli.output import note, progress_bar, warn_of_bad_lines
from emoglot.config import DistillConfig, ExtensionConfig, parse_setting
from emoglot.errors import UsageError


def distill(
    out: Annotated[Path, typer.Option(help="The encoder folder to write; a run that was interrupted goes on.")],
    parallel: Annotated[
        list[Path] | None,
        typer.Option(help="Translations, LANGUAGE.tsv with English, text and perhaps source; or a folder of them."),
    ] = None,
    teacher: Annotated[str | None, typer.Option(help="The encoder to learn from.")] = None,
    judge: Annotated[
        Path | None, typer.Option(help="A model whose scores of the English are learnt in every language.")
    ] = None,
    extend: Annotated[
        str | None, typer.Option(help="Add languages to this encoder, whose vectors stay; needs no teacher.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Settings and data, as a TOML file: see recipes/.")] = None,
    data: Annotated[Path, typer.Option(help="Where the files that the config names are.")] = Path(),
    set_: Annotated[list[str] | None, typer.Option("--set", help="One setting, such as epochs=3.")] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Drop malformed lines and report how many.")] = False,
) -> None:
    """Make an encoder from translations, or add a language to one."""
    from emoglot.distill import distil
    from emoglot.distill import extend as extend_encoder
    from emoglot.encoders import load_encoder
    from emoglot.encoders.onnx import OnnxEncoder
    from emoglot.model import load
    from emoglot.parallel import read_parallel
    from emoglot.recipe import Recipe

    options.check_new(out)
    if (teacher is None) == (extend is None):
        raise UsageError("give either --teacher, to make an encoder, or --extend, to add languages to one")
    recipe = Recipe.from_toml(config) if config else Recipe({}, {})
    changes = {**recipe.settings, **dict(map(parse_setting, set_ or []))}
    files = parallel or recipe.files("parallel", data)
    if not files:
        raise UsageError("no translations: give --parallel, or a --config that names them under [[data.parallel]]")
    pairs = read_parallel(files, skip_bad=skip_bad)
    warn_of_bad_lines(pairs.bad_lines, len(pairs))
    if extend is not None and not getattr(base := load_encoder(extend), "is_table", False):
        from emoglot.extension import extend as add_languages

        add_languages(pairs, base, ExtensionConfig().override(changes), out, note)
    elif extend is not None:
        if not isinstance(base, OnnxEncoder) or not base.is_table:
            raise UsageError(f"only an encoder that `emoglot distill` made can be extended, got {extend!r}")
        extend_encoder(pairs, base, DistillConfig.for_extension().override(changes), out, say=note)
    else:
        assert teacher is not None
        with progress_bar("asking the teacher") as on_teaching:
            distil(
                pairs,
                load_encoder(teacher),
                DistillConfig().override(changes),
                out,
                judge=load(judge) if judge else None,
                labelled=options.read_recipe(recipe, "labelled", data),
                written=options.read_recipe(recipe, "written", data),
                say=note,
                on_teaching=on_teaching,
            )
    typer.echo(str(out))
