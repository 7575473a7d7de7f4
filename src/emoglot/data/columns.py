"""Finds the columns of a table by their names."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches

from emoglot.errors import DataError, shown
from emoglot.labels import check_names

# The usual names of a column with texts, casefolded; serving/page/text_columns.js has the same.
_ENGLISH = ("text", "tweet", "sentence", "content", "comment", "message", "body", "post", "review")
TEXT_COLUMNS = (
    *_ENGLISH,
    *("kommentar", "kommentare", "nachricht", "beitrag"),
    *("texto", "mensaje", "comentario", "tuit", "reseña"),
    *("mensagem", "comentário"),
    *("texte", "avis", "commentaire"),
    *("testo", "messaggio", "commento", "recensione"),
    *("tekst", "bericht", "reactie", "opmerking"),
    *("meddelande", "melding", "besked", "teksti", "viesti", "kommentti"),
    *("wiadomość", "komentarz", "komentář", "zpráva", "szöveg", "üzenet", "hozzászólás", "mesaj", "comentariu"),
    *("metin", "yorum", "ileti"),
    *("teks", "pesan", "komentar", "ulasan", "ujumbe", "maoni"),
    *("κείμενο", "μήνυμα", "σχόλιο"),
    *("текст", "сообщение", "комментарий", "отзыв", "повідомлення", "коментар", "відгук"),
    *("نص", "النص", "تعليق", "التعليق", "رسالة", "متن", "پیام", "טקסט", "תגובה"),
    *("टेक्स्ट", "पाठ", "टिप्पणी", "ข้อความ"),
    *("文本", "内容", "评论", "正文", "留言", "內容", "評論"),
    *("テキスト", "本文", "コメント", "投稿", "텍스트", "내용", "댓글", "리뷰"),
)
LANGUAGE_COLUMNS = ("language", "lang")


def find_text_column(columns: Sequence[str], given: str | None, name: str) -> str:
    """Return the column with the texts: the given one, one with a usual name, or the only one."""
    if given is not None:
        return existing(columns, given, "text column", name)
    found = first_of(columns, TEXT_COLUMNS) or (columns[0] if len(columns) == 1 else None)
    if not found:
        raise DataError(
            f"a table needs a column of texts named {', '.join(_ENGLISH)} (or so in another language) or set with "
            f"--text-column, {name} has {name_columns(columns)}"
        )
    return found


def first_of(columns: Sequence[str], wanted: Sequence[str]) -> str | None:
    """Return the first wanted column that exists, with exact case if possible; None if there is none."""
    for name in wanted:
        if name in columns:
            return name
        for column in columns:
            if _folded(column) == name:
                return column
    return None


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def existing(columns: Sequence[str], column: str, role: str, name: str) -> str:
    """Return a column; raise DataError if it does not exist."""
    if column not in columns:
        raise DataError(
            f"the {role} must be a column, {column!r} is not: {did_you_mean(column, columns)}"
            f"{name} has {name_columns(columns)}"
        )
    return column


def did_you_mean(column: str, columns: Sequence[str]) -> str:
    """Return a question with the column of the most similar name, whatever its case; nothing if there is none."""
    folded = {_folded(name): name for name in columns}
    near = get_close_matches(_folded(column), folded, n=1)
    return f"did you mean {folded[near[0]]!r}? " if near else ""


def label_columns(header: Sequence[str], start: Sequence[str], labels: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the labels in a header: all columns after those that it must begin with."""
    if tuple(header[: len(start)]) != tuple(start):
        raise DataError(f"the header must begin with {' and '.join(start)}, got {shown(list(header))} in {name}")
    found = header[len(start) :]
    if unknown := [column for column in found if column not in labels]:
        raise DataError(f"a label column must be one of {', '.join(labels)}, got {unknown[0]!r} in {name}")
    return check_names(found)


def check_different(columns: Sequence[str], name: str) -> None:
    """Raise DataError if two columns of a table have the same name."""
    if repeated := [column for column, count in Counter(columns).items() if count > 1]:
        raise DataError(f"column names must be unique, {name} has {repeated[0]!r} more than once: rename all but one")


def name_columns(columns: Sequence[str]) -> str:
    """Return the names of columns as a message shows them."""
    return ", ".join(repr(name) for name in columns) or "no columns"
