"""Simulated participants of a session: the compiled loop against the calls that it replaces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adaptinf as ai
from adaptinf.sessions.enrolment import Arrivals, enrol
from adaptinf.sessions.steppers import KernelStepper

SIZE = 90


def arrivals(n_arms: int, seed: int, lost: float = 0.0, features: int = 1, wait: float = 8.0) -> Arrivals:
    rng = np.random.default_rng(seed)
    arrival = np.cumsum(rng.exponential(size=SIZE))
    known = np.where(rng.random(SIZE) < lost, np.inf, arrival + rng.exponential(wait, SIZE))
    order = np.argsort(known)[: int(np.isfinite(known).sum())]
    reward = (rng.random((SIZE, n_arms)) < 0.4).astype(float)
    return Arrivals(arrival, known, rng.integers(0, features, SIZE), reward, order)


def trial(design: Any, people: Arrivals, fast: bool, removed: dict[int, int], **opened: Any) -> Any:
    n_arms = people.reward.shape[1]
    session = design.session([f"arm {arm}" for arm in range(n_arms)], SIZE, rng=3, **opened)
    for until in (25, 50, SIZE):
        enrol(session, people, until, float(people.arrival[until - 1]), fast)
        if until in removed:
            session.remove_arm(f"arm {removed[until]}")
    enrol(session, people, SIZE, np.inf, fast)
    return session


EVERY_ARM = ai.designs.Thompson(floor=0.1)
PRIVATE = ai.designs.PrivateUCB(epsilon=1.0)

CASES = {
    "thompson": (EVERY_ARM, {}, {}, {}),
    "lost": (EVERY_ARM, {"lost": 0.3}, {}, {}),
    "arms leave": (EVERY_ARM, {"n_arms": 4}, {25: 1, 50: 3}, {}),
    "greedy": (ai.designs.EpsilonGreedy(exploration=0.2), {}, {25: 0}, {}),
    "mixture": (ai.designs.Mixture(ai.designs.UCB(), 0.3), {"lost": 0.1}, {50: 2}, {}),
    "ucb": (ai.designs.UCB(), {}, {}, {}),
    "window": (PRIVATE, {"lost": 0.2}, {}, {"window": 6}),
    "private": (ai.designs.Mixture(PRIVATE, 0.3), {"lost": 0.2}, {}, {"window": 6}),
    "dbcd": (ai.designs.DBCD(burn_in=3), {"n_arms": 2}, {}, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_compiled_loop_makes_the_same_trial(case: str) -> None:
    design, kind, removed, opened = CASES[case]
    people = arrivals(**{"n_arms": 3, "seed": 5, **kind})
    slow, fast = (trial(design, people, quick, removed, **opened) for quick in (False, True))
    assert type(fast._stepper) is KernelStepper
    assert fast.pending == slow.pending == tuple((np.flatnonzero(np.isinf(people.known)) + 1).tolist())
    one, other = (session.log(missing="drop" if kind.get("lost") else None) for session in (slow, fast))
    assert one.frame.equals(other.frame)
    assert (one.arrays.propensities is None) == (design is PRIVATE)
    if design is not PRIVATE:
        np.testing.assert_allclose(one.arrays.propensities, other.arrays.propensities, rtol=1e-14)
    np.testing.assert_array_equal(slow._rounds.told, fast._rounds.told)
    np.testing.assert_array_equal(slow._rounds.known, fast._rounds.known)
    np.testing.assert_allclose(slow._stepper.state, fast._stepper.state, rtol=1e-14)
    assert len(set(one.frame["action"])) > 1


def test_contexts_and_functions() -> None:
    people = arrivals(2, 6, features=2)
    counts = ai.designs.FunctionDesign(
        lambda seen, context, rng: [1 - 0.5 / (1 + seen), 0.5 / (1 + seen)],
        lambda seen, context, arm, reward: seen + 1,
        start=0,
    )
    for design in (counts, ai.designs.Thompson(floor=0.1)):
        features = {"features": ["young", "old"]} if design is counts else {}
        one, other = (trial(design, people, fast, {}, **features).log() for fast in (False, True))
        assert one.frame.equals(other.frame)
    seen = np.array([(people.known[:step] < people.arrival[step]).sum() for step in range(SIZE)])
    log = trial(counts, people, True, {}, features=["young", "old"]).log()
    np.testing.assert_allclose(log.arrays.propensities[:, 1], 0.5 / (1 + seen))
    assert log.frame["feature"].tolist() == np.array(["young", "old"])[people.feature].tolist()


def test_an_outcome_at_the_moment_of_an_arrival_comes_after_it() -> None:
    ties = Arrivals(
        np.array([1.0, 2.0, 3.0]),
        np.array([2.0, 3.0, 4.0]),
        np.zeros(3, dtype=np.int64),
        np.ones((3, 2)),
        np.arange(3),
    )
    for fast in (False, True):
        session = ai.designs.EpsilonGreedy(exploration=0.5).session(2, 3, rng=0)
        enrol(session, ties, 2, 2.0, fast)
        assert session.pending == (2,)
        enrol(session, ties, 3, 3.5, fast)
        assert session._rounds.known.tolist() == [2, 3, 0]
