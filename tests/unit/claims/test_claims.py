"""Claims: sentences with values, lists that are read with facts, and the rooms that may hold sentences."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace

import pytest

from adaptinf.claims import Claim, Part, Said, assumptions, first, said, sentence

FEW = Claim("few", "{arm}: only {n:d} events", "caution")
KNOWN = Claim("log.known", "propensities are known", "assumes", check="diagnose")


def test_a_claim_is_said_with_its_values() -> None:
    text = FEW(arm="b", n=3)
    assert text == "b: only 3 events"
    assert text.claim is FEW
    assert text.values == {"arm": "b", "n": 3}
    for again in (pickle.loads(pickle.dumps(text)), copy.deepcopy(text)):
        assert (again, again.claim, again.values) == (text, FEW, text.values)
        assert isinstance(again, Said)
    with pytest.raises(KeyError):
        FEW(arm="b")


def test_a_list_says_what_is_so_in_its_order() -> None:
    listed = (KNOWN, FEW, Part("more", "note"), Part("one", "note"))
    facts = SimpleNamespace(
        log=SimpleNamespace(known=True),
        few=[{"arm": "a", "n": 1}, {"arm": "b", "n": 2}],
        more=("x",),
        one="y",
    )
    assert said(listed, facts) == ["propensities are known", "a: only 1 events", "b: only 2 events", "x", "y"]
    assert said(listed, facts, "note", "assumes") == ["propensities are known", "x", "y"]
    assert first(listed[1:], facts) == "a: only 1 events"
    silent = SimpleNamespace(log=SimpleNamespace(known=False), few={}, more=[], one="")
    assert said(listed, silent) == []
    assert first(listed, silent) == ""
    assert said((FEW,), SimpleNamespace(few={"arm": "c", "n": 4})) == ["c: only 4 events"]


def test_clauses_are_joined_in_one_way() -> None:
    assert sentence(["a", "", "b"]) == "a; b"
    assert assumptions(["a", "b"]) == ["Assumes: a; b."]
    assert assumptions([]) == []
