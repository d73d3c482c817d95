from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adaptinf.designs import (
    UCB,
    DPConSE,
    EpsilonGreedy,
    FunctionDesign,
    LDPBandit,
    LinPriv,
    LinUCB,
    PrivateUCB,
    Session,
    SuccessiveElimination,
    Thompson,
)
from adaptinf.errors import ParameterError
from tests.unit.sessions.test_sessions_are_runs import assert_same_log

HORIZON = 60
REWARDS = (np.random.default_rng(2).random((HORIZON, 2)) < [0.4, 0.6]).astype(float)
HUGE = "x" * 10_000_000
SQL = "'; DROP TABLE decisions; --"


def thompson() -> Session:
    return Thompson().session(2, HORIZON, rng=1)


def refused(call: Callable[..., Any], *given: Any, **options: Any) -> str:
    """The one problem of a call, in a text that anybody can read."""
    with pytest.raises(ParameterError) as caught:
        call(*given, **options)
    assert len(str(caught.value)) < 400
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


def test_whatever_is_refused_changes_nothing() -> None:
    plain, session = thompson(), thompson()
    for step, row in enumerate(REWARDS.tolist()):
        first = plain.assign(unit=step)
        plain.record(first.id, row[first.arm])
        refused(session.assign, unit=step, context=1)
        refused(session.assign, unit=HUGE)
        refused(session.assign, unit="a" if step else True)
        refused(session.assign, unit=step, key=[1])
        refused(session.record, step + 1, 1.0)
        refused(session.record, 0, 1.0)
        decision = session.assign(unit=step)
        for reward in (np.nan, 1.5, -0.1, "1", 10**400, [1.0], HUGE):
            refused(session.record, decision.id, reward)
        assert session.record(decision.id, row[decision.arm]).in_time
        assert refused(session.record, decision.id, 1.0 - row[decision.arm]).startswith("decision ")
    assert_same_log(plain.log(), session.log())


def test_the_horizon_is_used_up() -> None:
    session = UCB().session(2, 2)
    for _ in range(2):
        session.record(session.assign(unit=f"person {session.rounds}").id, 0.0)
    assert refused(session.assign, unit="late") == "the horizon of 2 rounds has been reached"
    assert session.assign(unit="person 0").id == 1
    assert session.log().n_rounds == 2


def test_a_unit_is_assigned_once() -> None:
    session = EpsilonGreedy(exploration=1.0).session(["a", "b"], 100, features=["x", "y"], rng=4)
    first = session.assign(unit="u 1", context="x")
    assert {session.assign(unit="u 1", context="x") for _ in range(50)} == {first}
    assert refused(session.assign, unit="u 1", context="y") == (
        "unit 'u 1' was assigned in round 1 with another context"
    )
    assert refused(session.assign, context="x") == (
        "give a unit for all participants or for none: earlier participants had one"
    )
    assert "all text or all whole numbers" in refused(session.assign, unit=1, context="x")
    assert session.assign(unit=SQL, context="y").round == 2
    assert session.rounds == 2
    units = session.log(missing="drop").units
    assert units is not None
    assert units.tolist() == ["u 1", SQL]


def test_a_key_stands_for_one_request() -> None:
    session = EpsilonGreedy(exploration=1.0).session(2, 100, dimension=2, rng=4)
    first = session.assign(context=[0.1, 0.2], key="k")
    assert session.assign(context=np.array([0.1, 0.2]), key="k") == first
    assert refused(session.assign, context=[0.1, 0.3], key="k") == (
        "key 'k' already identifies another request (assign): give each request its own key"
    )
    assert "another request" in refused(session.record, 1, 1.0, key="k")
    assert session.pending == (1,)
    told = session.record(1, 1.0, key=7)
    assert session.record(1, 1.0, key=7) == session.record(1, 1.0) == session.record(1, True, key=8) == told
    refused(session.record, 1, 0.0, key=7)
    refused(session.record, 1, 0.0)
    assert session.assign(context=[0.5, 0.5], key="7").id == 2
    assert session.pending == (2,)
    assert repr(session) == "Session(EpsilonGreedy: 2 of 100 rounds, 1 pending)"


def test_unknown_decisions() -> None:
    session = thompson()
    assert refused(session.record, 1, 1.0) == "there is no decision 1: no decision has been made yet"
    session.assign()
    assert refused(session.record, 2, 1.0) == "there is no decision 2: decisions 1 to 1 have been made"
    for wrong in (0, -1, 1.0, True, SQL, None):
        refused(session.record, wrong, 1.0)


@pytest.mark.parametrize(
    "context", [None, "z", 1, np.float64(2.0), ["x"], {"x": 1}, HUGE, SQL, b"x" * 1_000_000]
)
def test_a_context_that_is_not_in_the_list(context: Any) -> None:
    session = DPConSE(epsilon=1.0).session(2, 200, features=["x", "y"])
    assert "one of 'x', 'y'" in refused(session.assign, context=context)
    assert session.rounds == 0


@pytest.mark.parametrize(
    "context",
    [None, 1.0, [1.0], [[0.1, 0.2]], [0.1, "b"], HUGE, np.zeros(1_000_000), [0.1, [0.2]], [1j, 0.0]],
)
def test_a_context_of_a_wrong_shape(context: Any) -> None:
    session = LinUCB().session(2, 200, dimension=2)
    assert "numbers of shape (2,)" in refused(session.assign, context=context)
    per_arm = LinUCB().session(2, 200, dimension=2, per_arm=True)
    if not isinstance(context, list) or context != [[0.1, 0.2]]:
        assert "numbers of shape (2, 2)" in refused(per_arm.assign, context=context)
    assert (session.rounds, per_arm.rounds) == (0, 0)


def test_contexts_beyond_what_a_design_allows() -> None:
    ball = LinPriv(epsilon=1.0).session(2, 200, dimension=2)
    assert "length of at most 1, got 1.06066" in refused(ball.assign, context=[0.75, 0.75])
    cube = LDPBandit(epsilon=1.0).session(2, 200, dimension=2)
    assert "in the cube [0, 1]^2" in refused(cube.assign, context=[0.5, -0.1])
    for session in (ball, cube):
        assert "finite" in refused(session.assign, context=[np.nan, 0.0])
        assert session.assign(context=[0.6, 0.8]).round == 1


def test_opening_lists_all_that_is_wrong() -> None:
    with pytest.raises(ParameterError) as caught:
        Thompson().session(["a", "a"], 0, features=[], per_arm=True, reward_range=(1, 0), window=3, rng=-1)
    problems = " | ".join(caught.value.problems)
    for part in ("horizon", "window", "rng", "arms", "features", "per_arm", "reward_range"):
        assert part in problems
    assert len(caught.value.problems) == 7


@pytest.mark.parametrize(
    ("design", "options", "part"),
    [
        (Thompson(), {"window": 3}, "in any order"),
        (SuccessiveElimination(), {"window": 3}, "outcome of the previous round"),
        (LinUCB(), {}, "requires context vectors"),
        (DPConSE(epsilon=1.0), {"dimension": 2}, "finite list"),
        (PrivateUCB(epsilon=1.0), {"reward_range": (0, 5)}, "rewards must lie in [0, 1]"),
    ],
)
def test_what_a_design_cannot_do(design: Any, options: dict[str, Any], part: str) -> None:
    assert part in refused(design.session, 2, 200, **options)


def test_labels_of_arms() -> None:
    assert thompson().arms == (0, 1)
    assert Thompson().session(np.array(["x", "y"]), 5).arms == ("x", "y")
    for wrong in ("ab", 0, True, [], [None], [1, 1.0], [1, "1"], {"a": 1}.get, [["a"], ["b"]]):
        refused(Thompson().session, wrong, 5)


def test_nothing_to_log() -> None:
    session = thompson()
    assert refused(session.log) == "no one has been assigned yet"
    session.assign()
    assert refused(session.log).startswith("1 outcome is missing: set missing=")
    assert "one of 'drop', 'bounds', 'worst', 'best'" in refused(session.log, missing="guess")
    log = session.log(missing="drop")
    assert (log.missing, log.frame["reward"].isna().tolist()) == ("drop", [True])
    unbounded = Thompson(prior="normal").session(2, 5, reward_range=(0, np.inf))
    unbounded.assign()
    assert "reward_range" in refused(unbounded.log, missing="worst")


def test_a_function_that_fails_costs_no_coin_and_no_outcome() -> None:
    fails: list[str] = []

    def choose(state: Any, context: Any, rng: np.random.Generator) -> Any:
        tilt = 0.2 * rng.random()
        if "choose" in fails:
            state.append(1)
            raise RuntimeError("no answer")
        return [0.4 + tilt, 0.6 - tilt]

    def update(state: Any, context: Any, arm: int, reward: float) -> Any:
        if "update" in fails:
            raise RuntimeError("no answer")
        return [*state, reward]

    design = FunctionDesign(choose, update, start=[])
    plain, session = design.session(2, 30, rng=8), design.session(2, 30, rng=8)
    for row in REWARDS[:30].tolist():
        first = plain.assign()
        plain.record(first.id, row[first.arm])
        fails.append("choose")
        assert "choose failed" in refused(session.assign)
        fails[:] = ["update"]
        decision = session.assign(key=session.rounds)
        assert "update failed" in refused(session.record, decision.id, row[decision.arm])
        assert session.pending == (decision.id,)
        fails.clear()
        session.record(decision.id, row[decision.arm])
    assert_same_log(plain.log(), session.log())
