"""Sentences stand in the room of claims: elsewhere in inference there are errors alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import adaptinf

ROOT = Path(adaptinf.__file__).parent
FILES = sorted((ROOT / "inference").rglob("*.py"))
LEAST = 5
"""Words from which a text is a sentence."""
NAMES = {
    "inference/arms/alee.py": 1,
    "inference/arms/sample_mean.py": 2,
    "inference/inputs/expressions.py": 6,  # of functions that formulas may use
    "inference/winners/winner_methods.py": 1,
}
"""Names of five words or more, most of them of methods, by file."""

RAISES = re.compile(r"Error$|InvalidForLog|^Refused$|^refuse|^check|^warn|^Is$")
"""Names of what is called with the text of an error."""
FINDS_FAULTS = re.compile(r"problem|fault")
"""Names of functions that return what is wrong with an argument."""
Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def words(node: ast.AST) -> int:
    """Words of a text, of which an f-string's values are none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return len(re.findall(r"[A-Za-z]{2,}", node.value))
    return sum(map(words, node.values)) if isinstance(node, ast.JoinedStr) else 0


def is_error(node: ast.AST) -> bool:
    """Whether texts in a node are of errors: raised, given to what refuses, or listed as problems."""
    if isinstance(node, ast.Raise):
        return True
    if isinstance(node, Function):
        return FINDS_FAULTS.search(node.name) is not None
    if isinstance(node, ast.Call):
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if RAISES.search(name):
            return True
    is_named = isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Call))
    return is_named and "problem" in ast.dump(node)[:300].lower()


def is_place(node: ast.AST) -> bool:
    """Whether texts in a node name a method's place: cases of an order, or one by which it is asked."""
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Order"


def docstrings(tree: ast.AST) -> set[ast.AST]:
    """Texts that stand alone in a module, class or function."""
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef, *Function))]
    lines = [line.value for body in bodies for line in body if isinstance(line, ast.Expr)]
    return {value for value in lines if isinstance(value, ast.Constant)}


def sentences(node: ast.AST, apart: set[ast.AST]) -> Iterator[int]:
    """Lines of the sentences in a node, without those that are told apart and errors."""
    if node in apart or is_error(node) or is_place(node):
        return
    if isinstance(node, ast.Subscript):  # what is looked up by a text is not said
        yield from sentences(node.value, apart)
        return
    if isinstance(node, (ast.Constant, ast.JoinedStr)):
        if words(node) >= LEAST:
            yield node.lineno
        return
    for child in ast.iter_child_nodes(node):
        yield from sentences(child, apart)


def lines_said(text: str) -> list[int]:
    tree = ast.parse(text)
    return list(sentences(tree, docstrings(tree)))


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_sentences_are_seen_and_errors_are_not() -> None:
    source = '''
"""A module that says what it is for."""
LIMIT = 3
"""What it is a limit of, in words."""
NOTE = "this is a sentence of words"
SHORT = "of four short words"


def f(x):
    """Say what it does, in some words."""
    if x > LIMIT:
        raise ValueError("this is an error that is raised")
    problems = ["this is one of several problems found"]
    place = Order(["a method with weights of its own"])["a method with weights of its own"]
    return f"a value {x} in a sentence of words"


def f_problems(x):
    return "this is what is wrong with x"
'''
    assert lines_said(source) == [5, 15]


@pytest.mark.parametrize("path", FILES, ids=named)
def test_it_says_nothing_of_a_log(path: Path) -> None:
    found = lines_said(path.read_text(encoding="utf-8"))
    assert len(found) == NAMES.get(named(path), 0), f"lines {found}: say it by a claim, in adaptinf/claims"


def test_names_are_of_files_that_are_there() -> None:
    assert set(NAMES) <= set(map(named, FILES))
