"""A small part of docs/evidence/reading.py: one experiment, one answer, however it is brought."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_sources_and_doors_give_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "evidence")
    reading = importlib.import_module("reading")
    pairs = [("Decimal", "bool"), ("text", "text"), ("int8", "category")]
    places = [(source, door) for source in reading.SOURCES for door in reading.DOORS]
    keys = [(*place, *pairs[count % len(pairs)]) for count, place in enumerate(places)]
    found = {key: reading.outcome_of(*key) for key in keys}
    assert {key: told for key, (kind, told) in found.items() if kind in (reading.OTHER, reading.RAW)} == {}
    counts = {kind: sum(one[0] == kind for one in found.values()) for kind in (reading.SAME, reading.REFUSED)}
    assert counts == {reading.SAME: 43, reading.REFUSED: 7}
