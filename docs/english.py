"""Sentences of pages that are too long to be read at once, and phrases that no native speaker would write.

    python docs/english.py README.md docs/quickstart.md

Code, rules of tables and addresses of links do not count; a cell of a table, a heading and an item of a list
end a sentence. A test demands that README, the quick start and the how-to pages have none.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

MOST = 35
PAGES = ("README.md", "docs/quickstart.md", "docs/howto.md", "docs/from_statsmodels.md", "docs/glossary.md")
PAGES += ("docs/contributing.md", "docs/citing.md", "docs/index.md", "docs/contents.md", "docs/r.md")
PAGES += ("docs/need.md",)
PAGES += tuple(f"docs/tutorials/{name}.md" for name in ("trial_statistician", "product_analyst"))
PAGES += ("docs/tutorials/methodologist.md", "docs/tutorials/data_protection_officer.md")
_CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_END = re.compile(r"(?<!et al)(?<!vs)(?<!cf)[.!?][)\"'*_]*\s+(?=[\"'(*_\[`]*(?:[A-Z0-9`]|adaptinf))")
_BREAK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*#|>]|\d+\.)\s)|\|")
ODD = (
    r"\bsay(?:s|ing)? of (?:each|every) \w+(?: \w+)* what (?:it|they)",
    r"\bwhat (?:it is|they are) worth (?:for|here|there)",
    r"\bprotocol takes \d",
    r"\brewards' part in\b",
    r"\b(?:[Ii]t|them|that) wants (?:a|an|both|the)\b",
    r"\bhopeless\b",
    r"\b[Oo]ne (?:row|column|entry|number|term|sentence|file|record) an? (?!(?:user|half)\b)[a-z]+\b",
)


def sentences(page: str) -> list[str]:
    """Sentences of a page in Markdown, without code and the addresses of links."""
    text = re.sub(r"\]\([^)]*\)", "]", _CODE.sub("\n\n", page))
    text = re.sub(r"`[^`]*`", "`code`", text)
    found = [part for block in _BREAK.split(text) for part in _END.split(block)]
    return [" ".join(part.split()) for part in found if part.strip()]


def words(sentence: str) -> int:
    """Words of a sentence."""
    return sum(any(char.isalnum() for char in part) for part in sentence.split())


def too_long(page: str) -> list[str]:
    """Sentences of more than `MOST` words, each with its number of words."""
    return [f"{words(one)} words: {one}" for one in sentences(page) if words(one) > MOST]


def odd(text: str) -> list[str]:
    """Phrases of `ODD` in a text, whatever its line breaks."""
    plain = " ".join(text.split())
    return [match.group() for pattern in ODD for match in re.finditer(pattern, plain)]


if __name__ == "__main__":
    root = Path(__file__).resolve().parents[1]
    paths = [Path(name) for name in sys.argv[1:]] or [root / name for name in PAGES]
    found = [f"{path}: {one}" for path in paths for one in too_long(path.read_text(encoding="utf-8"))]
    print("\n".join(found))
    sys.exit(1 if found else 0)
