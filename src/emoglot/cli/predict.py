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
    from emoglot.analysis import Prediction, TokenWeight
    from emoglot.model import EmotionClassifier

# What nearly passed is worth seeing in the table, the rest is noise; the same goes for words.
_SHOWN_OTHERS = 2
_SHOWN_WORDS = 3
# A text may come from anywhere: what it says to a terminal, such as to clear itself, must not reach one.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def predict(
    texts: Annotated[
        list[str] | None, typer.Argument(help="Texts; without any, one is read from each input line.")
    ] = None,
    file: Annotated[Path | None, typer.Option(help="Read one text from each line of this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line, with all scores.")] = False,
    explain: Annotated[bool, typer.Option(help="Also say which words weighed most.")] = False,
    language: options.Language = None,
    precision: options.Precision = None,
    recall: options.Recall = None,
    model: options.Model = None,
    encoder: options.EncoderOption = None,
) -> None:
    """Say which emotions texts carry."""
    given = _collect(texts, file)

    from emoglot.model import load

    classifier = load(model, encoder=encoder)
    predictions = classifier.predict(given, language, precision=precision, recall=recall)
    options.tell_never_given(classifier, precision, recall)
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
    from rich.table import Column, Table
    from rich.text import Text

    # A script without spaces gives no place to break a line: fold it, or its end is lost.
    headings = ["text", "emotions", "next", "sentiment", *(["words that weighed most"] if explain else [])]
    if not classifier.state.sentiment:
        headings.remove("sentiment")
    table = Table(*(Column(heading, overflow="fold") for heading in headings))
    for text, prediction in zip(texts, predictions, strict=True):
        cells = [text, *_emotions_and_next(prediction)]
        if classifier.state.sentiment:
            cells.append(_sentiment(prediction))
        if explain:
            cells.append(_heaviest_words(classifier.explain(text)))
        table.add_row(*(Text(_CONTROLS.sub("\ufffd", cell)) for cell in cells))
    console().print(table)


def _emotions_and_next(prediction: Prediction) -> tuple[str, str]:
    """Give the labels with their scores, and the highest scores that did not reach their thresholds."""
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
    """Put the pieces of a word together again and add up their weights; scripts without spaces stay in pieces."""
    from emoglot.text import UNSPACED

    unspaced = re.compile(f"[{UNSPACED}]")
    words: list[tuple[str, float]] = []
    end, space = -1, 0.0
    for token in tokens:
        if not token.token:  # the space before a word, which some tokenizers keep apart
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
