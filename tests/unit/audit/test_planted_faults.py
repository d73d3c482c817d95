"""Faults that an audit of short trials alone would miss: each is found by an audit's defaults, and named.

Tests that are not slow are a selection for which little is compiled. What repeats a slow one, on another
design or with another epsilon, is `long`; docs/evidence/privacy_audits.py audits right designs in `.ci/run`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import planted_arms as arms
import planted_records as records
import pytest
from planted import planted

from adaptinf.audit import EpsilonLowerBound, epsilon_lower_bound
from adaptinf.designs import (
    DPBAI,
    DPNAS,
    LDPBandit,
    LDPLinear,
    LinPriv,
    PrivateSuccessiveElimination,
    PrivateUCB,
)
from adaptinf.designs.contextual.private_conse import DPConSE
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.privacy import Counter

BOUND, REPLAY, NOISE = "bound", "replay", "noise"
LAW = "does not have the specified distribution"
COUNT_4, COUNT_64 = f"count 4 of arm 0 {LAW}", f"count 64 of arm 0 {LAW}"
ENDS = "the round of a release"
SHARED = "is associated with that of the noisy sum"
UNRELEASED = "a decision depended on data that were not released"
LONG = {"mechanism": "binary", "horizon": 2_000}
PHASES = {"features": np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.6]]), "max_det": False}
STOPPING = {"alpha": 0.5, "beta": 0.2, "steps": "exponential"}
EPOCHS = {"beta": 1.0}


class Planted(NamedTuple):
    """A fault: what runs, what is right, what must find it, in which words, and whether CI always looks."""

    faulty: Any
    right: Any
    settings: dict[str, Any]
    by: str
    words: str = ""
    runs: int = 2_000
    quick: bool = False


def _arm(fault: str, by: str, words: str, quick: bool = False, **settings: Any) -> Planted:
    return Planted(planted(arms.FaultyUCB, fault), PrivateUCB, settings, by, words, quick=quick)


def _linear(fault: str, by: str, words: str) -> Planted:
    return Planted(planted(arms.FaultyLinPriv, fault), LinPriv, {}, by, words)


def _epochs(fault: str, by: str, words: str, quick: bool = False) -> Planted:
    kind = planted(arms.FaultyElimination, fault)
    return Planted(kind, PrivateSuccessiveElimination, EPOCHS, by, words, quick=quick)


def _phases(fault: str, by: str, words: str) -> Planted:
    return Planted(planted(arms.FaultyBAI, fault), DPBAI, PHASES, by, words)


def _counter(fault: str, words: str, **settings: Any) -> Planted:
    return Planted(planted(records.QuietCounter, fault), Counter, settings, NOISE, words, quick=True)


def _stopping(fault: str, words: str) -> Planted:
    return Planted(planted(records.FaultyStopping, fault), DPNAS, STOPPING, NOISE, words, 20_000, quick=True)


FAULTS: dict[str, Planted] = {
    "counter: no noise at powers of two from 4 on": _counter("powers from 4", f"count 4 {LAW}"),
    "counter: no noise at powers of two from 64 on": _counter("powers from 64", f"count 64 {LAW}"),
    "counter, binary: no noise at powers of two from 64 on": _counter("powers from 64", LAW, **LONG),
    "counter: no node from level 6 on": _counter("level 6", f"all nodes of level 6 {LAW}"),
    "counter: half of the sensitivity": Planted(
        records.HalfSensitiveCounter, Counter, {}, BOUND, runs=40_000, quick=True
    ),
    "counter: budget not split": Planted(records.UnsplitCounter, Counter, {}, BOUND, runs=40_000, quick=True),
    "counter: one draw for all coordinates": Planted(
        records.OneDrawCounter,
        Counter,
        {"dimension": 3},
        NOISE,
        "coordinate 1 is associated with that",
        quick=True,
    ),
    "PrivateUCB: no noise at powers of two from 4 on": _arm("powers from 4", NOISE, COUNT_4),
    "PrivateUCB: no noise at powers of two from 64 on": _arm("powers from 64", NOISE, COUNT_64),
    "PrivateUCB, binary: no noise at powers of two from 64 on": _arm(
        "powers from 64", NOISE, COUNT_64, counter="binary"
    ),
    "PrivateUCB: no node from level 6 on": _arm("level 6", NOISE, f"level 6 of the tree {LAW}"),
    "PrivateUCB: noise shared across arms": _arm("shared", NOISE, SHARED, quick=True),
    "PrivateUCB: noise tied to the reward's coin": _arm("coin", NOISE, "is associated with the reward"),
    "PrivateUCB: clipping after the noise": _arm("late clip", NOISE, LAW),
    "PrivateUCB: ranking on raw means": _arm("raw index", REPLAY, UNRELEASED),
    "PrivateUCB: budget not split": _arm("unsplit", NOISE, LAW),
    "LinPriv: one draw for all coordinates": _linear(
        "one draw", NOISE, ("coordinate 1 is associated with that")
    ),
    "LinPriv: no noise at powers of two from 64 on": _linear("powers from 64", NOISE, f"1 {LAW}"),
    "LinPriv: clipping after the noise": _linear("late clip", NOISE, LAW),
    "LinPriv: ranking on raw means": _linear("raw index", REPLAY, UNRELEASED),
    "elimination on raw means": _epochs("raw elimination", REPLAY, UNRELEASED, quick=True),
    "elimination: an epoch ends on a raw gap": _epochs("raw end", REPLAY, ENDS, quick=True),
    "elimination: clipping after the noise": _epochs("late clip", NOISE, LAW),
    "elimination: noise shared across arms": _epochs("shared", NOISE, "is associated with that of release 3"),
    "elimination: noise tied to the reward's coin": _epochs(
        "coin", NOISE, "is associated with the reward", quick=True
    ),
    "DPBAI: ranking on raw means": _phases("raw ranking", REPLAY, UNRELEASED),
    "DPBAI: clipping after the noise": _phases("late clip", NOISE, LAW),
    "DPConSE: counts of half the sensitivity": Planted(
        records.HalfSensitiveCounts, DPConSE, {}, NOISE, f"all arrivals {LAW}"
    ),
    "DPConSE: budget not split": Planted(records.UnsplitSums, DPConSE, {}, BOUND, runs=40_000),
    "LDPBandit: half the scale": Planted(records.QuietReports, LDPBandit, {}, BOUND, runs=40_000),
    "LDPBandit: a wrong Gamma shape": Planted(
        planted(records.FaultyReports, "gamma shape"), LDPBandit, {}, NOISE, LAW
    ),
    "LDPLinear: half the scale": Planted(records.QuietGradients, LDPLinear, {}, BOUND, runs=40_000),
    "LDPLinear: a wrong Gamma shape": Planted(
        planted(records.FaultyGradients, "gamma shape"), LDPLinear, {}, NOISE, LAW
    ),
    "DPNAS: look noise used twice": _stopping("looks", f"the looks, by the stopping time, {LAW}"),
    "DPNAS: look noise used for the estimate": _stopping("estimate", f"the estimate {LAW}"),
}
SLOW, LONGER = pytest.mark.slow, pytest.mark.long
AGAIN = {
    "PrivateUCB: no noise at powers of two from 4 on",
    "PrivateUCB, binary: no noise at powers of two from 64 on",
    "LinPriv: no noise at powers of two from 64 on",
    "LinPriv: clipping after the noise",
    "LinPriv: ranking on raw means",
    "elimination: clipping after the noise",
    "DPBAI: ranking on raw means",
}


def audited(case: Planted, kind: Callable[..., Any], epsilon: float = 1.0) -> EpsilonLowerBound:
    return epsilon_lower_bound(kind(epsilon=epsilon, **case.settings), runs=case.runs, rng=0)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=LONGER if name in AGAIN else SLOW) for name in FAULTS]
)
def test_a_fault_is_found_and_named(name: str) -> None:
    case = FAULTS[name]
    found = audited(case, case.faulty)
    assert found.promised is not None
    assert found.refuted
    assert "REFUTED" in str(found)
    if case.by == BOUND:
        assert found.epsilon > 1.0
    else:
        told = [finding.text for finding in found.findings if finding.check == case.by]
        assert any(case.words in text for text in told)


QUICK = ("Counter{}", f"Counter{LONG}")
RIGHT = {case.right.__name__ + str(case.settings): case for case in FAULTS.values()}


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [
        pytest.param(name, epsilon, marks=() if name in QUICK else SLOW if epsilon == 1.0 else LONGER)
        for name in RIGHT
        for epsilon in (0.1, 1.0, 4.0)
    ],
)
def test_what_is_right_is_not_refuted(name: str, epsilon: float) -> None:
    found = audited(RIGHT[name], RIGHT[name].right, epsilon)
    assert not found.refuted
    assert not found.findings


NUMPY = {
    "PrivateUCB": (arms.FaultyUCB, {}),
    "PrivateSuccessiveElimination": (arms.FaultyElimination, EPOCHS),
    "LinPriv": (arms.FaultyLinPriv, {}),
    "DPBAI": (arms.FaultyBAI, PHASES),
    "LDPBandit": (records.FaultyReports, {}),
    "LDPLinear": (records.FaultyGradients, {}),
    "DPNAS": (records.FaultyStopping, STOPPING),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=SLOW if name in ("PrivateUCB", "DPNAS") else LONGER) for name in NUMPY]
)
def test_the_design_that_faults_are_planted_in_is_right_without_one(name: str) -> None:
    kind, settings = NUMPY[name]
    found = epsilon_lower_bound(kind(epsilon=1.0, **settings), runs=2_000, rng=0)
    assert not found.refuted
    assert not found.findings


def test_what_is_found_refutes_the_own_promise_and_no_weaker_one() -> None:
    faulty = records.HalfSensitiveCounter(epsilon=1.0)
    weaker = PrivacyGuarantee(epsilon=100.0)
    found = epsilon_lower_bound(faulty, promised=weaker, runs=2_000, rng=0)
    assert found.findings
    assert not found.refuted
    assert epsilon_lower_bound(faulty, runs=2_000, rng=0).refuted
