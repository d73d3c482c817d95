"""From the bytes of a text file to lines and fields: compression, encoding and separator."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from adaptinf.claims.logs import readings as claims
from adaptinf.log.report import Reading
from adaptinf.log.storage.header import check_size, most_decoded

NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
"""Separators that are tried, with their names."""
GZIP, ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
"""How compressed files begin."""
_COMPRESSED = {GZIP: "gzip", ZSTANDARD: "zstd", b"BZh": "bz2"}
_BLOCK = 1 << 20
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte-order marks and their encodings; longer ones first, as that of UTF-32 begins like that of UTF-16."""
_GUESS = "cp1252"
_SAMPLED = 200
"""Number of lines that are read to detect the separator."""
_SHOWN = 80
"""Number of characters of a line in an error."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """A user's declarations about a text file; None means that the property is detected."""

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    missing_values: tuple[str, ...] | None = None

    @property
    def said(self) -> dict[str, Any]:
        """The fields that are not None, by name."""
        named = {name: getattr(self, name) for name in OPTIONS}
        return {name: value for name, value in named.items() if value is not None}


PLAIN = Dialect()
OPTIONS = ("sep", "decimal", "encoding", "missing_values")
"""Names of the arguments for how a text is read."""


def dialect_of(given: Mapping[str, Any]) -> tuple[Dialect, list[str]]:
    """The dialect given by the arguments, and problems with them."""
    sep, decimal, encoding = given.get("sep"), given.get("decimal"), given.get("encoding")
    missing, problems = given.get("missing_values"), list[str]()
    if sep is not None and not (isinstance(sep, str) and len(sep) == 1 and sep.isprintable() | (sep == "\t")):
        problems.append(f"sep must be one character, such as ';' or a tab, got {sep!r:.40}")
    elif sep in ('"', "'") or (isinstance(sep, str) and sep.isalnum()):
        problems.append(f"sep cannot be a letter, a digit or a quote, got {sep!r}")
    if decimal not in (None, ".", ","):
        problems.append(f"decimal must be '.' or ',', got {decimal!r:.40}")
    elif decimal is not None and decimal == sep:
        problems.append(f"sep and decimal are both {sep!r}")
    if encoding is not None and not _is_encoding(encoding):
        problems.append(
            f"encoding must be the name of a text encoding, such as 'utf-8', 'utf-16' or 'cp1252', got "
            f"{encoding!r:.40}"
        )
    if missing is not None:
        listed = list(missing) if isinstance(missing, (list, tuple, set, frozenset)) else [None]
        if not all(isinstance(text, str) for text in listed):
            problems.append(
                f"missing_values must be a list of strings, such as ['NA', '-'], got {missing!r:.60}"
            )
            listed = []
        missing = tuple(listed)
    return Dialect(sep, decimal, encoding, missing), problems


def _is_encoding(name: Any) -> bool:
    try:
        return isinstance(name, str) and isinstance("a".encode(name), bytes)
    except (LookupError, ValueError):
        return False


def decompressed(data: bytes) -> bytes:
    """Bytes before compression by gzip, Zstandard or bzip2; other bytes are returned unchanged."""
    kind = next((name for mark, name in _COMPRESSED.items() if data.startswith(mark)), None)
    if kind is None:
        return data
    most, found, size = most_decoded(len(data)), [], 0
    with pa.CompressedInputStream(pa.BufferReader(data), kind) as stream:
        while block := stream.read(_BLOCK):
            size += len(block)
            check_size("bytes once it is decompressed", size, most)
            found.append(block)
    return b"".join(found)


def decoded(data: bytes, encoding: str | None) -> tuple[bytes, list[Reading]]:
    """A text as UTF-8 without a mark, and its encoding if different; raises ValueError if undecodable."""
    marked = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    name = encoding or marked or "utf-8"
    if marked == "utf-8-sig" and codecs.lookup(name).name == "utf-8":
        name = "utf-8-sig"
    try:
        text = data.decode(name)
    except UnicodeDecodeError as error:
        raise ValueError(_undecoded(data, name, error)) from None
    if (at := text.find("\0")) >= 0:
        raise ValueError(_with_nul(data, text.count("\n", 0, at) + 1, encoding))
    own = codecs.lookup(name).name
    told = [] if own.startswith("utf-8") else [Reading("dialect", claims.DECODED(encoding=own))]
    return (data if own == "utf-8" else text.encode("utf-8", "strict")), told


def _undecoded(data: bytes, name: str, error: UnicodeDecodeError) -> str:
    """The place at which a text violates its encoding, and the encodings that are possible."""
    number = data.count(b"\n", 0, error.start) + 1
    if codecs.lookup(name).name not in ("utf-8", "utf-8-sig"):
        return (
            f"line {number} is not {name} text ({error.reason}): specify its encoding, as in encoding='utf-8'"
        )
    begin = data.rfind(b"\n", 0, error.start) + 1
    line = data[begin : (data.find(b"\n", begin) + 1 or len(data))].rstrip()
    guessed = line.decode(_GUESS, "replace")
    return (
        f"line {number} is not UTF-8 text ({error.reason}): save it as UTF-8, or specify encoding=, such as "
        f"{_GUESS!r}, with which the line reads {guessed[:_SHOWN]!r}"
    )


def _with_nul(data: bytes, number: int, encoding: str | None) -> str:
    told = f"line {number} has a NUL character, which text files must not contain"
    pairs = data[: 2 * _SHOWN]
    if encoding is None and len(pairs) > 3 and pairs.count(b"\0") * 3 > len(pairs):
        name = "utf-16-le" if pairs[1] == 0 else "utf-16-be"
        told += f": it seems to be UTF-16 without a byte order mark, so specify encoding={name!r}"
    return told


def separator(data: bytes, given: str | None, wanted: Collection[str]) -> str:
    """The given separator, or the one detected in a text; ValueError if several are possible.

    `wanted` contains the names of columns that must exist.
    """
    if given is not None:
        return given
    lines = _head(data)
    # Such a line is refused when the names are read, because there are too many of them.
    if not lines or len(lines[0]) > 1_000_000:
        return ","
    heads = {sep: next(_rows(lines[:1], sep), []) for sep in NAMES}
    several = [sep for sep, names in heads.items() if len(names) > 1]
    if len(several) < 2:
        return several[0] if several else ","
    fits = [sep for sep in several if wanted and set(wanted) <= set(heads[sep])]
    if len(fits) != 1:
        fits = [sep for sep in fits or several if _even(lines, sep, len(heads[sep]))]
    if len(fits) == 1:
        return fits[0]
    likely = max(fits or several, key=lambda sep: len(heads[sep]))
    others = " or ".join(repr(sep) for sep in several)
    raise ValueError(
        f"its first line, {lines[0].strip()[:_SHOWN]!r}, can be divided at {others}: specify the separator, "
        f"as in sep={likely!r} (a guess)"
    )


def _head(data: bytes) -> list[str]:
    with io.TextIOWrapper(
        io.BytesIO(data[: 4 * _BLOCK]), encoding="utf-8", errors="replace", newline=""
    ) as text:
        return [line for line, _ in zip(text, range(_SAMPLED), strict=False) if not line.isspace()]


def _rows(lines: list[str], sep: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader(lines, delimiter=sep)
    except csv.Error:
        return


def _even(lines: list[str], sep: str, width: int) -> bool:
    """Whether all lines except the last, which may be cut off, have as many fields as the header."""
    rows = list(_rows(lines, sep))
    return all(len(row) == width for row in (rows[:-1] or rows))
