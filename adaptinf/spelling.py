"""Labels that look alike although their texts differ: invisible characters, forms and look-alike letters.

References
----------
Davis, Suignard, "Unicode security mechanisms" (Unicode Technical Standard 39), whose table of confusable
characters has the letters below.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Any

from adaptinf.texts import shown

_LOOKS = {
    "i": "\u0131\u03b9\u0456\u04cf", "a": "\u0251\u03b1\u0430", "g": "\u0261", "J": "\u037f\u0408",
    "A": "\u0391\u0410", "B": "\u0392\u0412", "E": "\u0395\u0415", "Z": "\u0396",
    "H": "\u0397\u041d", "I": "\u0399\u0406\u04c0", "K": "\u039a\u041a", "M": "\u039c\u041c",
    "N": "\u039d", "O": "\u039f\u041e", "P": "\u03a1\u0420", "T": "\u03a4\u0422",
    "Y": "\u03a5\u0423", "X": "\u03a7\u0425", "y": "\u03b3\u0443", "v": "\u03bd\u0475",
    "o": "\u03bf\u043e", "p": "\u03c1\u0440", "u": "\u03c5", "j": "\u03f3\u0458", "S": "\u0405",
    "\u0393": "\u0413", "\u039b": "\u041b", "\u03a0": "\u041f", "C": "\u0421", "\u03a6": "\u0424",
    "e": "\u0435", "\u03ba": "\u043a", "c": "\u0441", "x": "\u0445", "s": "\u0455", "V": "\u0474",
    "h": "\u04bb", "d": "\u0501", "G": "\u050c", "q": "\u051b", "W": "\u051c", "w": "\u051d",
    "-": "\u2010\u2013\u2212", "'": "\u2019",
}  # fmt: skip
"""Letters of the Latin, Greek and Cyrillic scripts, and hyphens, by the sign that they resemble.

Letters that belong to the same alphabet are kept distinct, although that table contains some of them.
"""
_UNSEEN = {"\u115f", "\u1160", "\u3164", "\u2800"}
"""Letters and marks that are blank by themselves, besides the characters in category Cf."""
_TABLE = {ord(letter): look for look, letters in _LOOKS.items() for letter in letters}
_JOINERS = "\u200c\u200d"
_JOINING = {"Lo", "Mc", "So"}
"""Categories of letters and signs whose spelling includes joiners."""
_SHOWN = 6
"""Number of characters in a label reported with code points."""


def reads_as(text: str) -> str:
    r"""The text as a reader perceives it, which is equal for texts that look alike; case matters.

    Examples
    --------
    >>> from adaptinf.spelling import reads_as
    >>> reads_as("drug\u00a0\u0410") == reads_as(" drug  A"), reads_as("a") == reads_as("A")
    (True, False)
    """
    if text.isascii():
        return " ".join(text.split())
    plain = unicodedata.normalize("NFKD", text)
    joined = any(unicodedata.category(char) in _JOINING for char in text)
    seen = [
        " " if char in _UNSEEN else char
        for char in plain
        if (unicodedata.category(char) != "Cf" or (joined and char in _JOINERS))
        and not 0xFE00 <= ord(char) <= 0xFE0F
    ]
    return unicodedata.normalize("NFC", " ".join("".join(seen).translate(_TABLE).split()))


def told_apart(labels: Sequence[Any]) -> str:
    """Labels that look alike, quoted, with the code points that they do not share.

    Examples
    --------
    >>> from adaptinf.spelling import told_apart
    >>> told_apart(["a", "a ", 1])
    "'a', 'a ' (U+0020), 1"
    """
    texts = [Counter(label) for label in labels if isinstance(label, str)]
    common = reduce(and_, texts) if texts else Counter()
    told = []
    for label in labels:
        own = list(Counter(label) - common)[:_SHOWN] if isinstance(label, str) else []
        points = " ".join(f"U+{ord(char):04X}" for char in own)
        told.append(f"{shown(label)} ({points})" if points and len(texts) > 1 else shown(label))
    return ", ".join(told)
