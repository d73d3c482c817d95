"""Mends that `docs/evidence/fixes.py` undoes stand where it says, and so do their tests."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_mends_stand_once_where_they_are_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "evidence")
    fixes = importlib.import_module("fixes").FIXES
    assert len(fixes) == 27
    for fix in fixes:
        assert (ROOT / "adaptinf" / fix.file).read_text(encoding="utf-8").count(fix.words) == 1, fix.mend
        file, *names = fix.test.split("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        assert all(f"def {name}(" in text or f"class {name}" in text for name in names), fix.mend
