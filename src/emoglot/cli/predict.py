"""`emoglot predict`: texts in, emotions out; a table for people, JSON lines for programs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emoglot.cli import options
from emoglot.cli.output import console
from emoglot.errors import DataError, UsageError

if TYPE_CHECKING:
    from emoglot.model import EmotionClassifier, Prediction

# Scores shown in the table beside those of the chosen labels: what nearly passed is worth seeing, the rest is noise.
_SHOWN_SCORES = 3
# A text may come from anywhere: what it says to a terminal, such as to clear itself, must not reach one.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def predict(
    model: Annotated[Path, typer.Option(help="A model folder, made by `emoglot train`.")],
    texts: Annotated[
        list[str] | None, typer.Argument(help="Texts; without any, one is read from each input line.")
    ] = None,
    file: Annotated[Path | None, typer.Option(help="Read one text from each line of this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line, with all scores.")] = False,
    explain: Annotated[bool, typer.Option(help="Also say which words weighed most.")] = False,
    encoder: options.EncoderOption = None,
) -> None:
    """Say which emotions texts carry."""
    given = _collect(texts, file)

    from emoglot.model import load

    classifier = load(model, encoder=encoder)
    predictions = classifier.predict(given)
    if as_json:
        _print_json(classifier, given, predictions, explain)
    else:
        _print_table(classifier, given, predictions, explain)


def _collect(texts: list[str] | None, file: Path | None) -> list[str]:
    """Take texts from the arguments, a file or standard input, and from just one of them."""
    if texts and file:
        raise UsageError("give texts or --file, not both")
    if texts:
        return texts
    if file:
        try:
            data = file.read_bytes()
        except OSError as error:
            raise DataError(f"can't read {file}: {error.strerror}") from error
    elif sys.stdin.isatty():
        raise UsageError("no text: give texts as arguments, --file FILE, or pipe lines in")
    else:
        data = sys.stdin.buffer.read()
    # A stray byte in one line must not cost the other lines their answer.
    lines = data.decode("utf-8-sig", errors="replace").split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]


def _print_json(
    classifier: EmotionClassifier, texts: Sequence[str], predictions: Sequence[Prediction], explain: bool
) -> None:
    for text, prediction in zip(texts, predictions, strict=True):
        record = {"text": text, **asdict(prediction)}
        if explain:
            record["tokens"] = [asdict(token) for token in classifier.explain(text)]
        line = json.dumps(record, ensure_ascii=False)
        # ASCII escapes also carry what the encoding can't: in UTF-8, lone surrogates.
        typer.echo(line if _is_encodable(line) else json.dumps(record))


def _print_table(
    classifier: EmotionClassifier, texts: Sequence[str], predictions: Sequence[Prediction], explain: bool
) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("text", "emotions", "highest scores", *(["words that weighed most"] if explain else []))
    for text, prediction in zip(texts, predictions, strict=True):
        cells = [
            Text(_CONTROLS.sub("\ufffd", text)),
            Text(", ".join(prediction.labels) or "–"),
            Text(_highest(prediction)),
        ]
        if explain:
            cells.append(Text(_CONTROLS.sub("\ufffd", _heaviest_words(classifier, text))))
        table.add_row(*cells)
    console().print(table)


def _highest(prediction: Prediction) -> str:
    ranked = sorted(prediction.scores.items(), key=lambda item: -item[1])
    count = max(_SHOWN_SCORES, len(prediction.labels))
    cut = " (only the beginning was read)" if prediction.truncated else ""
    return " ".join(f"{name} {score:.2f}" for name, score in ranked[:count]) + cut


def _heaviest_words(classifier: EmotionClassifier, text: str) -> str:
    tokens = [token for token in classifier.explain(text) if token.token]
    heaviest = sorted(tokens, key=lambda token: -token.weight)[:_SHOWN_SCORES]
    return " ".join(f"{token.token} {token.weight:.2f}" for token in heaviest)


def _is_encodable(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return False
    return True
