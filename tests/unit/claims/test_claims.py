"""Claims: sentences with values, lists that are read with facts, and the rooms that may hold sentences."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace

import pytest
from claims_said import says

from adaptinf.claims import (
    Claim,
    Finding,
    Part,
    Said,
    assumptions,
    contradictions,
    first,
    said,
    sentence,
    under_table,
    with_status,
)

FEW = Claim("few", "{arm}: only {n:d} events", "caution")
KNOWN = Claim("log.known", "propensities are known", "assumes", check="log.found")
INDEPENDENT = Claim("always", "units are independent", "assumes")
AVERAGE = Claim("always", "what drifts is averaged", "target")


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
        log=SimpleNamespace(known=True, found=None),
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
    assert assumptions(["a", "b"]) == ["Assumes, cannot be checked from this log: a; b."]
    assert assumptions([]) == []


def of_a_log(found: Finding | None) -> SimpleNamespace:
    log = SimpleNamespace(known=True, found=found)
    return SimpleNamespace(log=log, always=True, few={"arm": "b", "n": 2})


def test_an_assumption_is_checked_contradicted_or_not_checkable() -> None:
    listed = (KNOWN, INDEPENDENT, AVERAGE, FEW)
    against = FEW(arm="a", n=1)
    ending = "Cannot be checked from this log: units are independent. What drifts is averaged."
    for found, status, words, cautions in (
        (Finding(), "checked", "checked", []),
        (Finding((against,)), "contradicted", "contradicted, see the caution", [against]),
    ):
        facts = of_a_log(found)
        assumed = said(listed, facts, "assumes", "target")
        assert [one.status for one in assumed if isinstance(one, Said)] == [status, "", ""]
        assert pickle.loads(pickle.dumps(assumed[0])).found == found
        assert assumptions(assumed) == [f"Assumes: propensities are known ({words}). {ending}"]
        assert contradictions(assumed * 2) == cautions
        assert with_status(assumed[:2]) == f"propensities are known ({status}); units are independent"
        assert under_table(listed, facts) == (assumptions(assumed), [*cautions, "b: only 2 events"])
    facts = of_a_log(None)
    assert contradictions(said(listed, facts)) == []
    assert under_table(listed, facts)[0] == [
        "Assumes, cannot be checked from this log: propensities are known; units are independent. What "
        "drifts is averaged."
    ]


def test_a_caution_that_is_listed_too_stands_once() -> None:
    assert under_table((KNOWN, FEW), of_a_log(Finding((FEW(arm="b", n=2),))))[1] == ["b: only 2 events"]


def test_a_phrase_of_a_claim_always_stands_in_it() -> None:
    """Called, or read from a list with a fact that is true or has values; and it can be asked for."""
    rare = Claim("few", "events", "phrase")
    few = Claim("few", "{arm}: fewer than {n:d} {rare}", "caution", phrases={"rare": rare})
    none = Claim("always", "there are no {rare}", "note", phrases={"rare": rare})
    facts = of_a_log(None)
    texts = [few(arm="b", n=2), none(), *said((few, none), facts)]
    assert texts == ["b: fewer than 2 events", "there are no events"] * 2
    assert all(says(text, rare) for text in texts)
    assert few(arm="b", n=2).values == {"rare": "events", "arm": "b", "n": 2}
    assert pickle.loads(pickle.dumps(texts)) == texts
