"""Sentences that are too long, and phrases that no native speaker would write: pages, docstrings, messages.

    python docs/english.py
    python docs/english.py README.md docs/quickstart.md adaptinf/guarantee.py

Code, rules of tables and addresses of links do not count; a cell of a table, a heading and an item of a list
end a sentence, and a formula counts as one word. Of a module its docstrings are read, public and internal,
and every string with words in it: claims, errors, help and labels. A test demands that nothing is found.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST = 35
MOST_OF_PROOFS = 75
"""Words of a sentence on pages of proofs, errata and measurements."""
MOST_ITEMS = 7
"""Commas and semicolons from which on a sentence is a list, and has no limit."""
_PROOFS = ("docs/theory", "docs/errata", "docs/evidence")
_OWN = ("docs/changelog.md", "docs/generated", "docs/studies", "docs/english.py")
"""What is written elsewhere, is a record of the past, or names the phrases."""
_CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$\n]+(?:\n[^$\n]+)*?\$", re.DOTALL)
_END = re.compile(
    r"(?<!et al)(?<!vs)(?<!cf)[.!?][)\"'*_]*\s+(?=[\"'(*_\[`]*(?:[A-Z0-9`]|adaptinf|formula\b))"
)
_BREAK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*#|>]|\d+\.)\s)|\|")
ODD = (
    r"\bsay(?:s|ing)? of (?:each|every) \w+(?: \w+)* what (?:it|they)",
    r"\bwhat (?:it is|they are) worth (?:for|here|there)",
    r"\bprotocol takes \d",
    r"\brewards' part in\b",
    r"\b(?:[Ii]t|them|that) wants (?:a|an|both|the)\b",
    r"\bhopeless\b",
    r"\b[Oo]ne (?:row|column|entry|number|term|sentence|file|record) an? (?!(?:user|half)\b)[a-z]+\b",
    r"\b(?:a|an|one) (?:row|column|number|line|weight|coordinate|counter|file|bit) an? "
    r"(?:round|arm|row|run|batch|unit|group|term|day|context|label|pair)\b",
    r"\b[Ww]hoever\b",
    r"\b(?:is|are|be|was|were) had (?:by|from|at|in|without)\b",
    r"\btold apart\b|\btells? (?:them|two|these|the \w+) apart\b",
    r"\bspeaks? against\b",
    r"\bheld against\b",
    r"\bfixed beforehand\b|\bbeforehand\b",
    r"\bgathered (?:adaptively|by|the)\b",
    r"\bin the place of\b",
    r"\b(?:a|an|the) [\w ]{1,30} of (?:one's|your) own\b(?! (?:data|code))",
    r"\bwith (?:all|everything) that is (?:found )?wrong\b",
    r"\b(?:[Ww]hat|all that) is (?:found )?wrong with\b",
    r"\b[Ll]isting (?:all|everything|what) (?:that )?(?:is|does)(?: found)? (?:wrong|not fit)\b",
    r"\b[Ww]here there (?:is|are) (?:no|none)\b",
    r"\b(?:None|NaN|empty) where (?:it|there|they|nobody|no|none|nothing|the|a|an|all|one)\b",
    r"\b(?:stands?|stood) (?:under|beside|behind|below|above|in a|in the|at the|after the|before the)\b",
    r"\b(?:is|are|was|were) looked at\b",
    r"\b(?:is|are) no (?:times|dates|numbers|shares|ranking|UUID|text|JSON|UTF-8)\b",
    r"\bargument makes no sense\b",
    r"\bsomebody\b|\banybody\b",
    r"\bthe very (?:design|rule|moment|numbers)\b",
    r"\bto speak of\b",
    r"\bcounted anew\b|\banew\b",
    r"\bthat there (?:is|are)\b(?! (?:no|one|an?|at|more|several|evidence)\b)",
    r"\bnobody (?:states|says|asks|is to|need|named|can tell|chose|knows that)\b",
    r"\bknows? of (?:the|it|them|these|none|no)\b",
    r"\b(?:outcomes?|rewards?|design|session|trial) (?:is|are|was|were) told\b",
    r"\bgoes by\b|\bgo by (?:the|contexts|counts)\b",
    r"\b(?:is|are) the way out\b",
)
_ODD = tuple(re.compile(pattern) for pattern in ODD)


def sentences(page: str) -> list[str]:
    """Sentences of a page in Markdown, without code and the addresses of links."""
    text = _FORMULA.sub("formula", _CODE.sub("\n\n", page))
    text = re.sub(r"`[^`]*`", "`code`", re.sub(r"\]\([^)]*\)", "]", text))
    found = [part for block in _BREAK.split(text) for part in _END.split(block)]
    return [" ".join(part.split()) for part in found if part.strip()]


def words(sentence: str) -> int:
    """Words of a sentence."""
    return sum(any(char.isalnum() for char in part) for part in sentence.split())


def too_long(page: str, most: int = MOST) -> list[str]:
    """Sentences of more words than `most`, each with its number of words; lists of many items are none."""
    told = [one for one in sentences(page) if len(re.findall("[,;] ", one)) < MOST_ITEMS]
    return [f"{words(one)} words: {one}" for one in told if words(one) > most]


def odd(text: str) -> list[str]:
    """Phrases of `ODD` in a text, whatever its line breaks."""
    plain = " ".join(text.split())
    return [match.group() for pattern in _ODD for match in pattern.finditer(plain)]


def page_text(page: str) -> str:
    """The prose of a page in Markdown, without its blocks of code."""
    return _CODE.sub("\n\n", page)


def docstrings(source: str) -> Iterator[str]:
    """Docstrings of a module, its classes and functions, and those below attributes."""
    for value in _standing(ast.parse(source)):
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield re.sub(r"^\s*(?:>>>|\.\.\.).*$", "", value.value, flags=re.MULTILINE)


def messages(source: str) -> Iterator[str]:
    """Strings of a module with words in them that are no docstrings: claims, errors, help and labels."""
    tree = ast.parse(source)
    skipped = {id(value) for value in _standing(tree)}
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        text = None if id(node) in skipped else _text(node)
        if text is None:
            waiting += ast.iter_child_nodes(node)
        elif text.count(" ") > 1:
            yield text


def _standing(tree: ast.AST) -> Iterator[ast.expr]:
    """Values that stand by themselves, as docstrings do."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            yield node.value


def _text(node: ast.AST) -> str | None:
    """The text of a string, with a mark for each value that is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return None


def paths() -> list[Path]:
    """Every page and module that is read."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found += sorted((ROOT / "adaptinf").rglob("*.py"))
    return [path for path in found if not path.relative_to(ROOT).as_posix().startswith(_OWN)]


def findings(path: Path) -> list[str]:
    """What is found in a page or a module, one line each."""
    name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        texts = [*docstrings(text), *messages(text)]
        return [f"{name}: {phrase}" for one in texts for phrase in odd(one)]
    most = MOST_OF_PROOFS if name.startswith(_PROOFS) else MOST
    return [f"{name}: {one}" for one in [*too_long(text, most), *odd(page_text(text))]]


if __name__ == "__main__":
    asked = [Path(name).resolve() for name in sys.argv[1:]] or paths()
    problems = [one for path in asked for one in findings(path)]
    print("\n".join(problems))
    sys.exit(1 if problems else 0)
