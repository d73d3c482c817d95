"""Rooms, files and functions are of a size to be read; no circles; faces show their public names."""

from __future__ import annotations

import ast
import functools
import importlib
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import adaptinf

ROOT = Path(adaptinf.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
ROOMS = sorted({path.parent for path in FILES})
FACES = ("audit", "datasets", "designs", "environments", "formats", "plots", "privacy", "theory")

SMALL_ROOMS = {
    "adaptinf/audit": "its files are in the rooms inside",
    "adaptinf/inference": "its files are in the rooms inside",
    "adaptinf/inference/validity/passes": "one question by NumPy and, of long logs, by one compiled loop",
}


def named(path: Path) -> str:
    return path.relative_to(ROOT.parent).as_posix()


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in FILES}


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but expressions, which hold no statement."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.expr):
            yield node
            yield from statements(node)


def imported(path: Path) -> set[str]:
    """Modules of the package that a file imports, inside functions and for types as well."""
    found = set()
    for node in statements(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in MODULES else str(node.module) for name in names}
    return found & set(MODULES)


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Sets of modules that all import each other, directly or not."""
    names = sorted(graph)
    places = {name: place for place, name in enumerate(names)}
    edges = [(places[name], places[other]) for name in names for other in graph[name]]
    matrix = coo_array((np.ones(len(edges)), tuple(zip(*edges, strict=True))), (len(names), len(names)))
    count, labels = connected_components(matrix, connection="strong")
    found = [{names[place] for place in np.flatnonzero(labels == label)} for label in range(count)]
    return sorted((circle for circle in found if len(circle) > 1), key=sorted)


def test_circles_are_seen() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [{"b", "c"}]


def test_no_modules_import_each_other() -> None:
    graph = {name: imported(path) - {name} for name, path in MODULES.items()}
    assert sum(map(len, graph.values())) > 1000
    assert "adaptinf.log" in graph["adaptinf.plans.planning.conditional"]  # for types alone
    assert [sorted(circle) for circle in circles(graph)] == []


@pytest.mark.parametrize("room", ROOMS, ids=named)
def test_a_room_says_what_it_holds_and_can_be_looked_over(room: Path) -> None:
    assert ast.get_docstring(parsed(room / "__init__.py"))
    files = [path for path in room.glob("*.py") if path.name != "__init__.py"]
    assert len(files) <= 15
    assert (len(files) < 3) == (named(room) in SMALL_ROOMS)


def test_files_hold_one_idea() -> None:
    """An idea takes 60 lines or 600."""
    lines = {named(path): path.read_text(encoding="utf-8").count("\n") for path in FILES}
    assert {name: count for name, count in lines.items() if count > 600} == {}


def test_few_files_have_the_name_of_another() -> None:
    """Mostly, claims have the name of the method or the check whose sentences they are."""
    names = Counter(path.name for path in FILES if path.stem not in ("__init__", "__main__"))
    assert len([name for name, count in names.items() if count > 1]) <= 12


def lengths(path: Path) -> Iterator[tuple[str, int]]:
    """Lines of each function, those of its docstring left out."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.FunctionDef):
            first = node.body[0] if ast.get_docstring(node) is not None else None
            text = 0 if first is None else int(first.end_lineno or 0) - first.lineno + 1
            yield f"{named(path)}:{node.name}", int(node.end_lineno or 0) - node.lineno + 1 - text


def test_functions_are_short() -> None:
    assert {name: count for path in FILES for name, count in lengths(path) if count > 60} == {}


def test_no_public_name_hides_a_module() -> None:
    for name in MODULES:
        if name != "adaptinf.__main__":
            importlib.import_module(name)
    for module in (adaptinf, *(getattr(adaptinf, face) for face in FACES)):
        for name in dir(module):
            getattr(module, name)  # a lazy name stands in its package from now on
    hidden = []
    for name in MODULES:
        package, _, last = name.rpartition(".")
        if (
            package
            and last != "__main__"
            and not isinstance(getattr(importlib.import_module(package), last, None), types.ModuleType)
        ):
            hidden.append(name)
    assert hidden == []


@pytest.mark.parametrize("face", FACES)
def test_a_face_shows_its_public_names_alone(face: str) -> None:
    module = getattr(adaptinf, face)
    assert dir(module) == sorted(module.__all__)
    assert [name for name in module.__all__ if name.startswith("_") or not hasattr(module, name)] == []


def test_no_two_files_of_tests_have_one_name() -> None:
    """The folders of the tests are no packages: pytest would take the second file for the first."""
    names = [path.name for path in Path(__file__).parents[2].rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
