"""`emoglot thresholds`: fits the thresholds of a model to labelled data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emoglot.cli import options
from emoglot.cli.inputs import read_labelled, read_recipe, read_translations
from emoglot.cli.output import note, spinner
from emoglot.errors import UsageError

if TYPE_CHECKING:
    from emoglot.data.dataset import Dataset
    from emoglot.model import Model


@options.expanded
def thresholds(
    *,
    chosen: options.ModelOptions,
    out: Annotated[Path, options.option("DIR", "Model folder to write.")],
    data: options.OptionalDataFiles = None,
    config: Annotated[
        Path | None, options.data_option("FILE", "TOML file with data files in tables [[data.thresholds]].")
    ] = None,
    root: options.Root = Path(),
    pooled: Annotated[
        bool, options.flag("--pooled", "Choose one set of thresholds for any text instead of one per language.")
    ] = False,
    domain: Annotated[
        str | None,
        options.option("NAME", "Choose thresholds for one kind of text, used with `--language en-x-NAME`."),
    ] = None,
    least_precision: Annotated[
        float,
        options.option(
            "SHARE",
            "Raise the threshold of a label until its precision is at least this, such as 0.4.",
            min=0,
            max=1,
        ),
    ] = 0.0,
    parallel: Annotated[
        list[Path] | None,
        options.data_option(
            "PATH", "Match thresholds to languages without labels, by translations: LANGUAGE.tsv, or a folder."
        ),
    ] = None,
    reading: options.ReadingOptions,
) -> None:
    """Choose the thresholds of a model on your own data.

    This takes seconds, because nothing is trained. Languages that are not in the data keep their thresholds.
    """
    from emoglot.evaluation.language_thresholds import calibrate
    from emoglot.inference.folder import check_target
    from emoglot.text.language_names import NO_LANGUAGE

    options.check_new(out)
    check_target(out)
    model = chosen.load()
    if parallel:
        if data or config or pooled or domain or least_precision:
            raise UsageError("--parallel takes no labelled data and no options for it: run the command once for each")
        _match(model, parallel, reading).save(out)
        typer.echo(str(out))
        return
    rows = _read(data, config, root, reading, model.labels)
    with spinner(f"scoring {len(rows):,} texts"):
        fitted = calibrate(model, rows, pooled=pooled, domain=domain, least_precision=least_precision)
    fitted.save(out)
    languages = {NO_LANGUAGE} if pooled else set(rows.languages)
    names = ", ".join("any language" if code == NO_LANGUAGE else code for code in sorted(languages))
    note(f"thresholds for {names}{f' of {domain}' if domain else ''}, chosen on {len(rows):,} rows")
    typer.echo(str(out))


def _match(model: Model, paths: list[Path], reading: options.ReadingOptions) -> Model:
    """Return the model with thresholds matched by translations."""
    from emoglot.evaluation.translation_thresholds import match_thresholds

    pairs = read_translations(paths, skip_bad=reading.skip_bad)
    with spinner(f"scoring translations into {len(set(pairs.languages))} languages"):
        matched = match_thresholds(model, pairs)
    note(f"thresholds for {', '.join(sorted(matched.state.matched_thresholds))}, matched by translations")
    return matched


def _read(
    data: list[Path] | None, config: Path | None, root: Path, reading: options.ReadingOptions, labels: Sequence[str]
) -> Dataset:
    """Read the labelled rows of files and of a config."""
    from emoglot.data.dataset import concatenate
    from emoglot.data.recipe import Recipe

    listed = read_recipe(Recipe.from_toml(config), "thresholds", root) if config else None
    given = read_labelled(data, reading, labels) if data else None
    parts = [part for part in (listed, given) if part is not None]
    if not parts:
        raise UsageError("no data: use --data, or a --config that lists files as [[data.thresholds]]")
    return concatenate(parts)
