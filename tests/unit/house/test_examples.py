"""Every public name has an example that can be pasted; the doctests run each in an empty namespace."""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import adaptinf as ai

_START = "import adaptinf as ai"
_REAL = (
    "CATE",
    "ArmMeans",
    "designs.FunctionDesign",
    "privacy.Counter",
    "formats.read_dsjson",
)
_PARSER = doctest.DocTestParser()


def _public() -> dict[str, Any]:
    """Public functions and classes by name, each once."""
    found: dict[str, Any] = {}
    for name in ai.__all__:
        value = getattr(ai, name)
        if inspect.ismodule(value):
            found |= {f"{name}.{part}": getattr(value, part) for part in value.__all__}
        else:
            found[name] = value
    called = {name: value for name, value in found.items() if callable(value)}
    return {
        name: value for name, value in called.items() if isinstance(value, type) or inspect.isroutine(value)
    }


def _documented(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """A public name and its own public methods, with their texts."""
    yield name, inspect.getdoc(value) or ""
    for part, member in vars(value).items() if isinstance(value, type) else ():
        inner = getattr(member, "__func__", getattr(member, "fget", member))
        if not part.startswith("_") and inspect.isfunction(inner) and inner.__doc__:
            yield f"{name}.{part}", inspect.cleandoc(inner.__doc__)


TEXTS = {name: text for public in _public().items() for name, text in _documented(*public)}
SHOWN = {name: text for name, text in TEXTS.items() if ">>>" in text}


def test_every_public_name_has_an_example() -> None:
    missing = [name for name in _public() if name not in SHOWN]
    assert not missing


def test_there_are_as_many_examples_as_there_were() -> None:
    assert len(SHOWN) >= 200


def test_examples_start_by_importing_the_package() -> None:
    first = {name: _PARSER.get_examples(text)[0].source.strip() for name, text in SHOWN.items()}
    assert {name for name, source in first.items() if source != _START} == set()


def test_examples_are_collected_with_an_empty_namespace(request: pytest.FixtureRequest) -> None:
    case = doctest.DocTest([], {"ArmMeans": ai.ArmMeans}, "case", None, 0, "")
    plugins = request.config.pluginmanager.get_plugins()
    hooks = [hook for plugin in plugins if (hook := getattr(plugin, "empty_namespaces", None))]
    hooks[0]([SimpleNamespace(dtest=case)])
    assert case.globs == {"__name__": "__main__"}


@pytest.mark.slow
@pytest.mark.parametrize("name", _REAL)
def test_an_example_runs_in_an_interpreter_of_its_own(name: str, tmp_path: Path) -> None:
    code = "\n".join(example.source for example in _PARSER.get_examples(SHOWN[name]))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
