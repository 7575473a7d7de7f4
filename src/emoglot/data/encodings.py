"""The character encoding of a file: given by the user, by a byte order mark, or recognised from a sample."""

from __future__ import annotations

import codecs
import io
from typing import IO

from emoglot.errors import UsageError

UTF_8 = "utf-8"
# UTF-32 first, since its byte order mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# The encodings of spreadsheets and editors. If several fit a sample equally well, the first is chosen.
_CANDIDATES = (
    *("cp1252", "cp1254", "cp1250", "cp1251", "cp1253", "cp1255", "cp1256", "koi8_r"),
    *("gb18030", "cp932", "big5", "cp949", "euc_jp"),
)
_NUL_SHARE = 0.2  # of UTF-16: every second byte of Latin letters and, in other scripts, of commas and digits
_CHUNK_BYTES = 1 << 18


def check_encoding(given: str | None) -> None:
    """Raise UsageError for an encoding that Python does not know."""
    try:
        "".encode(UTF_8 if given is None else given)
    except LookupError:
        raise UsageError(
            f"an encoding must be a name such as utf-8, cp1252, latin-1 or utf-16, got {given!r}"
        ) from None


def is_utf8(encoding: str) -> bool:
    """Return whether bytes in this encoding can be read as UTF-8."""
    return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii")


def find_encoding(sample: bytes) -> tuple[str, bool]:
    """Return the encoding of a file that begins with this sample, and whether it is a guess.

    If most of the sample is valid UTF-8, the file is UTF-8, and invalid lines are malformed.
    """
    for mark, encoding in _MARKS:
        if sample.startswith(mark):
            return encoding, False
    if sample.count(0) >= _NUL_SHARE * len(sample) > 0:
        return ("utf-16-be" if sample[::2].count(0) > sample[1::2].count(0) else "utf-16-le"), True
    text = sample.decode(UTF_8, "surrogateescape")
    foreign = sum("\udc80" <= character <= "\udcff" for character in text)
    if foreign <= sum(character > "\x7f" for character in text) - foreign:
        return UTF_8, False
    guess = _guess(sample)
    return (guess, True) if guess else (UTF_8, False)


def _guess(sample: bytes) -> str | None:
    from charset_normalizer import from_bytes

    matches = from_bytes(sample, cp_isolation=list(_CANDIDATES), preemptive_behaviour=False)
    best = matches.best()
    if best is None:
        return None
    equal = [match for match in matches if (match.chaos, match.coherence) == (best.chaos, best.coherence)]
    names = {name for match in equal for name in match.could_be_from_charset}
    return next((name for name in _CANDIDATES if name in names), None)


class Transcoded(io.RawIOBase):
    """A stream in another encoding as UTF-8; what cannot be decoded stays invalid, so that its line is rejected."""

    def __init__(self, stream: IO[bytes], encoding: str) -> None:
        self._stream = stream
        is_wide = codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
        self._errors = "surrogatepass" if is_wide else "surrogateescape"
        self._decoder = codecs.getincrementaldecoder(encoding)(self._errors)
        self._waiting = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer with UTF-8."""
        while not self._waiting:
            data = self._stream.read(_CHUNK_BYTES)
            try:
                text = self._decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                raise OSError(f"it is not {error.encoding}: {error.reason}") from error
            self._waiting = text.encode(UTF_8, self._errors)
            if not data:
                break
        count = min(len(buffer), len(self._waiting))
        buffer[:count] = self._waiting[:count]
        self._waiting = self._waiting[count:]
        return count
