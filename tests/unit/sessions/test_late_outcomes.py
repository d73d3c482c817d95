from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptinf.designs import (
    UCB,
    ConSE,
    Design,
    EpsilonGreedy,
    LinPriv,
    Mixture,
    PlayTheWinner,
    PrivateUCB,
    SequentialHalving,
    Session,
    SuccessiveElimination,
    Thompson,
)
from adaptinf.errors import ParameterError
from adaptinf.inference.arms.models import ArmMeans
from adaptinf.log import read_log
from adaptinf.simulation.environments import FunctionEnvironment, Tableau
from tests.unit.sessions.test_sessions_are_runs import CERTAIN, SOFTMAX, assert_same_log

ROUNDS = 300
_DRAWS = np.random.default_rng(21)
REWARDS = (_DRAWS.random((ROUNDS, 3)) < [0.3, 0.5, 0.6]).astype(float)
DELAYS = _DRAWS.integers(0, 30, (ROUNDS, 3))


def told_late(session: Session, delays: np.ndarray, contexts: Any = None) -> Session:
    """The session after all rounds, the outcome of round t told before the choice of t + 1 + delay."""
    due: list[list[int]] = [[] for _ in range(2 * ROUNDS)]
    arms: dict[int, int] = {}
    for step in range(ROUNDS + 1):
        for one in due[step]:
            session.record(one, REWARDS[one - 1, arms[one]])
        if step == ROUNDS:
            break
        decision = session.assign(context=None if contexts is None else contexts[step])
        arms[decision.id] = decision.arm
        due[step + 1 + int(delays[step, decision.arm])].append(decision.id)
    return session


@pytest.mark.parametrize("design", [SOFTMAX, CERTAIN, Mixture(SOFTMAX, exploration=0.2)])
def test_functions_learn_late_as_in_a_run_with_delays(design: Design) -> None:
    env = FunctionEnvironment(
        lambda rng, n: {"rewards": REWARDS[:n], "delays": DELAYS[:n]}, reward_range=(0, 1)
    )
    log = design.run(env, ROUNDS, rng=3)
    session = told_late(design.session(3, ROUNDS, rng=3), DELAYS)
    for one in session.pending:
        session.record(one, log.arrays.reward[one - 1])
    assert_same_log(log, session.log())


@pytest.mark.parametrize(
    "design",
    [
        EpsilonGreedy(batch_size=20, exploration=0.3, decay=0.2),
        Thompson(batch_size=20),
        Thompson(prior="normal", batch_size=20, floor=(0.1, 0.3)),
        Mixture(Thompson(batch_size=20), exploration=0.2),
    ],
)
def test_outcomes_told_at_the_end_of_a_batch_are_in_time(design: Design) -> None:
    log = design.run(Tableau(REWARDS, reward_range=(0, 1)), ROUNDS, rng=3)
    session = design.session(3, ROUNDS, rng=3)
    for _ in range(ROUNDS // 20):
        decisions = [session.assign() for _ in range(20)]
        for one in decisions:
            session.record(one.id, REWARDS[one.id - 1, one.arm])
    found = session.log()
    pd.testing.assert_frame_equal(log.frame, found.frame.drop(columns="outcome_round", errors="ignore"))
    assert found._outcome_rounds is not None
    expected = np.repeat(np.arange(20, ROUNDS + 1, 20), 20)
    np.testing.assert_array_equal(found._outcome_rounds, expected)


def slow_ucb(delays: np.ndarray) -> list[int]:
    """UCB1 on the outcomes that are in, t the round."""
    known: list[list[float]] = [[], [], []]
    due: list[list[tuple[int, float]]] = [[] for _ in range(2 * ROUNDS)]
    arms = []
    for step in range(ROUNDS):
        for arm, reward in due[step]:
            known[arm].append(reward)
        index = [
            math.inf if not seen else np.mean(seen) + math.sqrt(2.0 * math.log(step + 1) / len(seen))
            for seen in known
        ]
        arms.append(int(np.argmax(index)))
        due[step + 1 + int(delays[step, arms[-1]])].append((arms[-1], REWARDS[step, arms[-1]]))
    return arms


@pytest.mark.parametrize("longest", [1, 5, 30])
def test_ucb_reads_the_clock_of_the_rounds_and_the_outcomes_that_are_in(longest: int) -> None:
    delays = DELAYS % longest
    log = told_late(UCB().session(3, ROUNDS), delays).log(missing="drop" if longest > 1 else None)
    assert log.arrays.action.tolist() == slow_ucb(delays)


def test_an_urn_fills_with_outcomes_in_any_order() -> None:
    session = PlayTheWinner(initial=1.0, added=2.0).session(2, 10, rng=0)
    arms = [session.assign().arm for _ in range(6)]
    balls = np.array([1.0, 1.0])
    for one in (4, 1, 6):
        success = float(one != 1)
        session.record(one, success)
        balls[arms[one - 1] if success else 1 - arms[one - 1]] += 2.0
    session.assign()
    found = session.log(missing="drop").arrays.propensities
    assert found is not None
    np.testing.assert_allclose(found[:6], 0.5)
    np.testing.assert_allclose(found[6], balls / balls.sum(), rtol=1e-15)


@pytest.mark.parametrize(
    "design",
    [SuccessiveElimination(), SequentialHalving(), PrivateUCB(epsilon=1.0), Mixture(PrivateUCB(epsilon=1.0))],
)
def test_a_choice_that_needs_the_outcome_before_waits_for_it(design: Design) -> None:
    session = design.session(3, ROUNDS, rng=1)
    decision = session.assign()
    with pytest.raises(ParameterError, match="outcome of decision 1 must be recorded first"):
        session.assign()
    session.record(decision.id, 0.0)
    assert session.assign().id == 2


def test_contextual_epochs_wait_too() -> None:
    session = ConSE().session(2, ROUNDS, features=2, rng=1)
    session.assign(context=1)
    with pytest.raises(ParameterError, match="must be recorded first"):
        session.assign(context=0)


WINDOW = 12


def windowed(design: Design, when: np.ndarray, missing: frozenset[int], contexts: Any = None) -> Session:
    """A session of a design with a window, outcomes being told `when` further rounds have been assigned."""
    options = {} if contexts is None else {"dimension": 2}
    session = design.session(3, ROUNDS, window=WINDOW, rng=6, **options)
    arms: list[int] = []
    for step in range(ROUNDS + 1):
        for one in range(max(0, step - 40), step):
            if one + 1 + when[one] == step and one not in missing:
                session.record(one + 1, REWARDS[one, arms[one]])
        if step == ROUNDS:
            break
        arms.append(session.assign(context=None if contexts is None else contexts[step]).arm)
    return session


@pytest.mark.parametrize(
    "design",
    [PrivateUCB(epsilon=1.0), LinPriv(epsilon=1.0), Mixture(PrivateUCB(epsilon=1.0), exploration=0.2)],
)
def test_what_is_released_does_not_depend_on_when_an_outcome_comes(design: Design) -> None:
    contexts = _DRAWS.random((ROUNDS, 2)) / 2.0 if isinstance(design, LinPriv) else None
    early, late = np.zeros(ROUNDS, dtype=np.int64), np.full(ROUNDS, WINDOW)
    by_reward = np.where(REWARDS[:, 0] > 0.0, 0, WINDOW)
    lost = frozenset(range(5, ROUNDS, 7))
    logs = [windowed(design, when, lost, contexts).log(missing="drop") for when in (early, late, by_reward)]
    assert logs[0].releases is not None
    for log in logs[1:]:
        assert log.releases is not None
        pd.testing.assert_frame_equal(logs[0].releases, log.releases, check_exact=True)
        np.testing.assert_array_equal(logs[0].arrays.action, log.arrays.action)


def test_sums_are_of_the_outcomes_whose_window_has_ended_in_the_order_of_decisions() -> None:
    when = DELAYS[:, 0]  # some come after the window
    lost = frozenset(range(5, ROUNDS, 7))
    session = windowed(PrivateUCB(epsilon=1e9), when, lost)
    log = session.log(missing="drop")
    releases, arms = log.releases, log.arrays.action
    assert releases is not None
    due = np.arange(ROUNDS - WINDOW - 1)
    entered = np.where(
        (when <= WINDOW) & ~np.isin(np.arange(ROUNDS), list(lost)), REWARDS[np.arange(ROUNDS), arms], 0.0
    )
    sums = [entered[: one + 1][arms[: one + 1] == arms[one]].sum() for one in due]
    assert releases["round"].tolist() == (due + WINDOW + 1).tolist()
    assert releases["group"].tolist() == arms[due].tolist()
    np.testing.assert_allclose(releases["value"], sums, atol=1e-5)
    first = np.where(
        (when <= WINDOW) & ~np.isin(np.arange(ROUNDS), list(lost)), np.arange(ROUNDS) + 1 + WINDOW, ROUNDS
    )
    assert log._outcome_rounds is not None
    np.testing.assert_array_equal(log._outcome_rounds, np.minimum(first, ROUNDS))


def test_a_missing_outcome_counts_as_nothing_and_a_late_one_is_in_the_log_alone() -> None:
    when, lost = np.zeros(ROUNDS, dtype=np.int64), frozenset([7, 30])
    session = windowed(PrivateUCB(epsilon=1.0), when, lost)
    before = session.log(missing="drop")
    assert session.record(8, 1.0).in_time is False
    assert session.record(31, 0.5).in_time is False
    assert session.record(31, 0.5).in_time is False
    after = session.log()
    assert before.releases is not None
    assert after.releases is not None
    pd.testing.assert_frame_equal(before.releases, after.releases)
    assert after.arrays.reward[[7, 30]].tolist() == [1.0, 0.5]
    assert after.guarantee == before.guarantee == PrivateUCB(epsilon=1.0).guarantee(ROUNDS, 3)


def test_an_outcome_is_in_time_until_the_choice_at_which_its_window_has_ended() -> None:
    session = PrivateUCB(epsilon=1.0).session(3, ROUNDS, window=2, rng=6)
    for _ in range(3):
        session.assign()
    assert session.record(1, 1.0).in_time
    session.assign()
    session.assign()
    assert not session.record(2, 1.0).in_time
    assert session.record(3, 1.0).in_time
    assert session.log(missing="drop")._outcome_rounds is not None


def test_a_log_keeps_its_gaps_when_the_outcomes_come() -> None:
    session = Thompson().session(3, ROUNDS, rng=6)
    session.assign()
    log = session.log(missing="drop")
    session.record(1, 1.0)
    assert log.frame["reward"].isna().tolist() == [True]


def test_a_window_of_no_rounds_is_the_run_but_for_the_last_outcome() -> None:
    design = PrivateUCB(epsilon=1.0)
    log = design.run(Tableau(REWARDS, reward_range=(0, 1)), ROUNDS, rng=6)
    session = design.session(3, ROUNDS, window=0, rng=6)
    for row in REWARDS:
        decision = session.assign()
        assert session.record(decision.id, row[decision.arm]).in_time
    found = session.log()
    pd.testing.assert_frame_equal(log.frame, found.frame)
    assert log.releases is not None
    assert found.releases is not None
    pd.testing.assert_frame_equal(log.releases[:-1], found.releases)


def test_a_log_with_pending_outcomes_is_analysed_as_its_meaning_says() -> None:
    session = told_late(Thompson(floor=0.1).session(3, ROUNDS, rng=3), DELAYS)
    waiting = len(session.pending)
    assert 0 < waiting < 30
    result = ArmMeans(session.log(missing="drop")).fit()
    assert result.estimator == "aipw"
    assert any(f"of {ROUNDS}" in note or "missing" in note.lower() for note in result.notes)


def test_a_log_with_late_outcomes_can_be_kept_in_a_file(tmp_path: Path) -> None:
    session = Thompson().session(2, horizon=6, rng=1)
    for _ in range(3):
        session.assign()
    session.record(2, 1.0)
    for _ in range(3):
        session.assign()
    for step in (1, 3, 4, 5, 6):
        session.record(step, 1.0)
    log = session.log()
    assert log.feedback_rounds == 1
    log.to_parquet(tmp_path / "log.parquet")
    assert read_log(tmp_path / "log.parquet").frame.equals(log.frame)
