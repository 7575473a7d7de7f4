"""`emoglot predict`: prints the emotions of texts as a table or as JSON lines."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emoglot.cli import options
from emoglot.cli.output import closable_output, console, note, note_never_given, show_messages, spinner
from emoglot.errors import DataError, UsageError

if TYPE_CHECKING:
    from emoglot.inference.prediction import Prediction, TokenWeight
    from emoglot.model import Model

# The table shows only the highest scores below their thresholds, and only the words with the largest weights.
_SHOWN_OTHERS = 2
_SHOWN_WORDS = 3
_SHOWN_CHARACTERS = 500  # of a text: a post fits, and an article does not fill the screen
# A file is not text if more of its characters are invalid. In a text with a wrong encoding, few or most are.
_MOST_INVALID = 0.1
# A text may contain control characters, for example to clear the terminal. They are not printed.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@options.expanded
def predict(
    *,
    chosen: options.ModelOptions,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Texts. Default: the lines of --file, or of standard input."),
    ] = None,
    file: Annotated[
        Path | None, options.option("FILE", "Read the texts from this file, one per line.", readable=False)
    ] = None,
    encoding: Annotated[
        str | None, options.option("NAME", "Encoding of the file or of standard input. Default: recognised.")
    ] = None,
    as_json: Annotated[bool, options.flag("--json", "Print one JSON object per text, with all scores.")] = False,
    explain: Annotated[
        bool, options.flag("--explain", "Also print the words with the largest weights; with --json, all tokens.")
    ] = False,
    labels: options.LabelOptions,
) -> None:
    """Print the emotions of texts.

    The table shows the emotions of each text with their scores, the next two scores, and the sentiment. A text may
    begin with a dash if it does not look like an option: "-I am sad". Put `--` before a text that does.
    """
    given = _collect(texts, file, encoding)
    if not given:
        note(f"{file or 'standard input'} is empty: there are no texts to score")
        return
    model = chosen.load()
    with spinner(f"scoring {len(given):,} texts"):
        predictions = model.predict(given, **asdict(labels))
    note_never_given(model, labels.precision, labels.recall)
    if as_json:
        with closable_output():
            _print_json(model, given, predictions, explain)
    else:
        _print_table(model, given, predictions, explain)


def _collect(texts: list[str] | None, file: Path | None, encoding: str | None) -> list[str]:
    """Return the texts of the arguments, of a file or of standard input."""
    if texts and file:
        raise UsageError("texts come from arguments or from --file, got both: use one of them")
    if texts:
        return [_as_utf8(text) for text in texts]
    if not file and sys.stdin.isatty():
        raise UsageError("at least one text is needed, got none: pass texts as arguments, with --file FILE or on stdin")
    lines = _read(file, encoding).split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]


def _as_utf8(text: str) -> str:
    """Return an argument as UTF-8 if it is, since in the C locale its bytes arrive as lone surrogates."""
    if not any("\udc80" <= character <= "\udcff" for character in text):
        return text
    try:
        return os.fsencode(text).decode("utf-8")
    except UnicodeError:
        return text


def _read(file: Path | None, encoding: str | None) -> str:
    """Return the content of a file or of standard input, decompressed and decoded as by `emoglot score`."""
    from emoglot.data.formats import PARQUET, SPREADSHEETS
    from emoglot.data.streams import Reading, explained, open_path, open_stream

    show_messages()
    reading = Reading(encoding=encoding)
    with ExitStack() as stack:
        if file:
            stream = stack.enter_context(open_path(file, reading))
        else:
            stream = open_stream(sys.stdin.buffer, "standard input", reading, stack)
        if stream.kind in (PARQUET, *SPREADSHEETS):
            raise UsageError(
                f"a file of texts must have one text per line, {stream.name} is a table: use `emoglot score`"
            )
        stream.announce()
        with explained(stream.name):
            data = stream.file.read()
    # An invalid byte in one line must not prevent the other lines from being scored.
    text = data.decode("utf-8", errors="replace")
    invalid = text.count("\ufffd") + text.count("\0")
    if invalid > _MOST_INVALID * len(text):
        raise DataError(
            f"a file of texts must be text, {stream.name} has {invalid} invalid characters of {len(text)}: "
            "choose another file, or give its encoding with --encoding"
        )
    return text


def _print_json(model: Model, texts: Sequence[str], predictions: Sequence[Prediction], explain: bool) -> None:
    for text, prediction in zip(texts, predictions, strict=True):
        record = {"text": text, **asdict(prediction)}
        if explain:
            record["tokens"] = [asdict(token) for token in model.explain(text)]
        line = json.dumps(record, ensure_ascii=False)
        # ASCII escapes can also represent what the encoding cannot, such as lone surrogates in UTF-8.
        typer.echo(line if _is_encodable(line) else json.dumps(record))


def _print_table(model: Model, texts: Sequence[str], predictions: Sequence[Prediction], explain: bool) -> None:
    from rich.table import Column, Table
    from rich.text import Text

    sentiment = ["sentiment"] if model.state.sentiment else []
    # Text in a script without spaces cannot be wrapped at words: fold it, else its end is lost.
    headings = ["text", "emotions", "next", *sentiment, *(["words that weighed most"] if explain else [])]
    table = Table(*(Column(heading, overflow="fold") for heading in headings))
    for text, prediction in zip(texts, predictions, strict=True):
        shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
        cells = [shown, *_emotions_and_next(prediction)]
        if sentiment:
            cells.append(_sentiment(prediction))
        if explain:
            cells.append(_heaviest_words(model.explain(text)))
        table.add_row(*(Text(_CONTROLS.sub("\ufffd", cell)) for cell in cells))
    console().print(table)


def _emotions_and_next(prediction: Prediction) -> tuple[str, str]:
    """Return the labels with their scores, and the highest scores below their thresholds."""
    ranked = sorted(prediction.scores.items(), key=lambda item: -item[1])
    chosen = [f"{name} {score:.2f}" for name, score in ranked if name in prediction.labels]
    others = [f"{name} {score:.2f}" for name, score in ranked if name not in prediction.labels]
    if prediction.unreadable:
        return "–\n(not read: the model does not know these letters)", ""
    cut = "\n(only the beginning was read)" if prediction.truncated else ""
    return (", ".join(chosen) or "–") + cut, ", ".join(others[:_SHOWN_OTHERS])


def _sentiment(prediction: Prediction) -> str:
    sentiment = prediction.sentiment
    return f"{sentiment.name} {sentiment.score:.2f}" if sentiment else ""


def _heaviest_words(tokens: Sequence[TokenWeight]) -> str:
    heaviest = sorted(_whole_words(tokens), key=lambda item: -item[1])[:_SHOWN_WORDS]
    return ", ".join(f"{word} {weight:.2f}" for word, weight in heaviest)


def _whole_words(tokens: Sequence[TokenWeight]) -> list[tuple[str, float]]:
    """Join the pieces of each word and add up their weights; scripts without spaces stay in pieces."""
    from emoglot.text.patterns import UNSPACED

    unspaced = re.compile(f"[{UNSPACED}]")
    words: list[tuple[str, float]] = []
    end, space = -1, 0.0
    for token in tokens:
        if not token.token:  # the space before a word, which is a separate token of some tokenizers
            space += token.weight
        elif token.start == end and not unspaced.search(words[-1][0][-1] + token.token[0]):
            words[-1] = (words[-1][0] + token.token, words[-1][1] + token.weight)
            end = token.end
        else:
            words.append((token.token, token.weight + space))
            end, space = token.end, 0.0
    return words


def _is_encodable(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return False
    return True
