"""Scripts of the evidence and the benchmarks import what they need; running them is asked for by name."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = (ROOT / "docs" / "evidence", ROOT / "tests" / "benchmarks")
SCRIPTS = [script for folder in FOLDERS for script in sorted(folder.glob("*.py"))]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_imports(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(script.parent), str(ROOT), *sys.path])
    before = set(sys.modules)
    spec = importlib.util.spec_from_file_location(f"script_{script.stem}", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    for name in set(sys.modules) - before:  # neighbours that it imports have names of any kind
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(script.parent):
            del sys.modules[name]


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) > 30
