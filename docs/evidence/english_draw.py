"""Thirty sentences each of pages, docstrings and messages, drawn by a seed for readers to judge.

    python docs/evidence/english_draw.py --seed 20261127 > drawn.md

Prints three tables with an empty column for the answer to one question: would a native statistician write
this? Sentences are those of prose: of pages without code, headings, tables and references, of docstrings
without examples, names of parameters and references, and messages with a mark for each value.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import english

FEWEST = 5
"""Words of a sentence: shorter ones are labels."""
QUESTION = "would a native statistician write this?"
_SECTION = re.compile(r"^ *(\w[\w ]*)\n *-{3,} *\n", re.MULTILINE)
_REFERENCE = re.compile(r"\b(?:19|20)\d\d\b.*|arXiv|\bet al\b|doi|Journal|Annals|Biometrika")


def of_pages() -> Iterator[tuple[str, str]]:
    """Sentences of pages with the page."""
    for path in english.paths():
        if path.suffix == ".md":
            lines = english.page_text(path.read_text(encoding="utf-8")).split("\n")
            text = "\n".join("" if line.lstrip().startswith(("|", "#", "---")) else line for line in lines)
            for one in english.sentences(text):
                yield path.relative_to(english.ROOT).as_posix(), one


def of_docstrings() -> Iterator[tuple[str, str]]:
    """Sentences of docstrings with the module."""
    for path in english.paths():
        if path.suffix == ".py":
            for text in english.docstrings(path.read_text(encoding="utf-8")):
                for one in english.sentences(described(text)):
                    yield path.relative_to(english.ROOT).as_posix(), one


def of_messages() -> Iterator[tuple[str, str]]:
    """Messages with the module."""
    for path in english.paths():
        if path.suffix == ".py":
            for text in english.messages(path.read_text(encoding="utf-8")):
                yield path.relative_to(english.ROOT).as_posix(), " ".join(text.split())


def described(docstring: str) -> str:
    """The prose of a docstring: without examples, references, heads of sections and names of parameters."""
    parts = _SECTION.split(docstring)
    kept = [parts[0]]
    for head, body in zip(parts[1::2], parts[2::2], strict=True):
        if head in ("Notes",):
            kept.append(body)
        elif head not in ("Examples", "References", "See Also"):
            lines = body.split("\n")
            least = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
            kept.append("\n".join("" if len(line) - len(line.lstrip()) == least else line for line in lines))
    return "\n\n".join(kept)


def prose(sentence: str) -> bool:
    """Whether a sentence is one to judge: words, not references, code or a formula alone."""
    letters = sum(char.isalpha() or char.isspace() for char in sentence)
    plain = re.sub(r"code|formula|\{\}", "", sentence)
    enough = english.words(plain) >= FEWEST and letters >= 0.75 * len(sentence)
    return enough and not _REFERENCE.search(sentence)


def drawn(seed: int, number: int) -> dict[str, list[tuple[str, str]]]:
    """Sentences of each kind, without repetition."""
    sources = {"pages": of_pages, "docstrings": of_docstrings, "messages": of_messages}
    stream = random.Random(seed)
    found = {}
    for name, source in sources.items():
        distinct = {one: place for place, one in source() if prose(one)}
        found[name] = [(distinct[one], one) for one in stream.sample(sorted(distinct), number)]
    return found


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--seed", type=int, default=20261127)
    options.add_argument("--number", type=int, default=30, help="sentences of each kind (30)")
    options.add_argument("--quick", action="store_true", help="three sentences of each kind")
    given = options.parse_args()
    for name, rows in drawn(given.seed, 3 if given.quick else given.number).items():
        print(f"## {len(rows)} of the {name}\n\n| sentence | where | {QUESTION} |\n| --- | --- | --- |")
        for place, one in rows:
            print(f"| {one.replace('|', '/')} | {place} | |")
        print()


if __name__ == "__main__":
    main()
