"""A few entries of the record of behaviour, against those that are kept beside this file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from net_book import read_entries
from net_compare import differences
from record import recorded

REFERENCE = Path(__file__).with_name("reference.json.gz")
RTOL = 1e-9  # other machines have other mathematical libraries
SECTIONS = ("designs", "fits", "numbers")
KEPT = read_entries(REFERENCE) if REFERENCE.exists() else {}


def chosen(key: str) -> bool:
    """Whether an entry is kept: none that would not survive another machine's floating-point numbers."""
    return key in KEPT


@pytest.fixture(scope="module")
def entries() -> dict[str, Any]:
    """The entries as they are now."""
    return recorded(list(SECTIONS), chosen).entries


@pytest.mark.parametrize("key", sorted(KEPT))
def test_behaviour_is_as_recorded(entries: dict[str, Any], key: str) -> None:
    found = list(differences(KEPT[key], entries.get(key, "(missing)"), RTOL))
    assert not found, "\n".join([key, *found[:10]])


def test_differences_are_found() -> None:
    old = {"a": [1.0, float("nan")], "b": "same", "c": {"d": 3}}
    assert not list(differences(old, {"a": [1.0 + 1e-14, float("nan")], "b": "same", "c": {"d": 3}}, 1e-12))
    new = {"a": [1.1, float("nan")], "b": "sane", "c": {}}
    places = [line.split(": ")[0] for line in differences(old, new, 1e-12)]
    assert places == ["a[0]", "b", "c > d"]
