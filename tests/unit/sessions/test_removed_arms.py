"""An arm that is taken out: the others share its probability, and the log says what that costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.data import availability
from adaptinf.designs import (
    ABSE,
    KLUCB,
    UCB,
    ConSE,
    Design,
    DPConSE,
    EpsilonGreedy,
    ExplorationSampling,
    FunctionDesign,
    LinUCB,
    Mixture,
    PlayTheWinner,
    PrivateUCB,
    SequentialHalving,
    SuccessiveElimination,
    Thompson,
    TopTwoThompson,
    Uniform,
)
from adaptinf.errors import ParameterError
from adaptinf.sessions.session import drawn, without

BEFORE, ROUNDS = 40, 120
ARMS = ["a", "b", "c"]


def rule(state: Any, context: Any, rng: np.random.Generator) -> list[float]:
    return [0.5, 0.3, 0.2]


FIT: list[Design] = [
    Uniform(),
    EpsilonGreedy(exploration=0.3, batch_size=7),
    Thompson(floor=0.1),
    Thompson(initial_pulls=20, initial="dealt", draws=50),
    TopTwoThompson(),
    ExplorationSampling(),
    PlayTheWinner(),
    Mixture(UCB(), exploration=0.3),
    Mixture(KLUCB(), exploration=0.3, decay=0.5),
    FunctionDesign(rule),
]


def told(session: ai.sessions.Session, rounds: int, rewards: np.random.Generator) -> None:
    for _ in range(rounds):
        session.record(session.assign().id, float(rewards.integers(0, 2)))


@pytest.mark.parametrize("design", FIT, ids=lambda design: type(design).__name__)
def test_the_others_share_the_probability_in_proportion(design: Design) -> None:
    """The design's own probabilities are those of a session without a removal that learns the same."""
    session, whole = (design.session(ARMS, ROUNDS, rng=3) for _ in range(2))
    rewards = np.random.default_rng(1)
    for step in range(BEFORE):
        decision, same = session.assign(), whole.assign()
        assert decision == same
        reward = float(rewards.integers(0, 2))
        session.record(decision.id, reward)
        whole.record(same.id, reward)
        assert session.propensities(step + 1) == whole.propensities(step + 1)
    assert session.remove_arm("b", key="k") == ("a", "c")
    assigned = []
    for step in range(BEFORE, ROUNDS):
        if step == BEFORE:  # from here on their pasts differ
            own = np.array(whole.propensities(whole.assign().id))
            assigned.append(session.assign())
            rest = own[0] + own[2]
            expected = [own[0] / rest, 0.0, own[2] / rest] if rest > 0.0 else [0.5, 0.0, 0.5]
            assert np.allclose(session.propensities(step + 1), expected, rtol=1e-14, atol=0.0)
        else:
            assigned.append(session.assign())
        session.record(assigned[-1].id, float(rewards.integers(0, 2)))
    assert "b" not in {decision.arm for decision in assigned}
    log = session.log()
    later = log.arrays.propensities[BEFORE:]
    assert (later[:, 1] == 0.0).all()
    assert np.allclose(later.sum(axis=1), 1.0, rtol=1e-12)
    assert np.array_equal(log.arrays.propensity, log.arrays.propensities[range(ROUNDS), log.arrays.action])


def test_the_arm_is_drawn_by_the_numbers_that_are_logged() -> None:
    """Chi-squared of 40,000 draws with (5, 0, 2) / 7: beyond 19.5 with probability 1e-5."""
    session = FunctionDesign(rule).session(ARMS, 40_001, rng=5)
    session.assign()
    session.remove_arm("b")
    counts = np.zeros(3)
    for _ in range(40_000):
        counts[ARMS.index(session.assign().arm)] += 1
    expected = np.array([5.0, 2.0]) / 7.0 * 40_000
    assert counts[1] == 0
    assert ((counts[[0, 2]] - expected) ** 2 / expected).sum() < 19.5


def test_arms_that_the_design_gives_nothing_share_equally_and_a_single_one_is_certain() -> None:
    assert without(np.array([0.0, 1.0, 0.0]), [1]).tolist() == [0.5, 0.0, 0.5]
    assert without(np.array([0.0, 0.4, 0.6]), [1, 2]).tolist() == [1.0, 0.0, 0.0]
    assert without(np.array([5e-324, 1.0, 5e-324]), [1]).tolist() == [0.5, 0.0, 0.5]
    assert [drawn(np.array([0.0, 0.25, 0.0, 0.75]), draw) for draw in (0.0, 0.2499, 0.25, 1 - 2**-53)] == [
        1,
        1,
        3,
        3,
    ]
    session = EpsilonGreedy(exploration=0.0).session(ARMS, 30, rng=1)
    told(session, 3, np.random.default_rng(1))
    assert session.remove_arm("a") == ("b", "c")
    assert session.remove_arm("c") == ("b",)
    told(session, 20, np.random.default_rng(1))
    assert set(session.log().frame["action"][3:]) == {"b"}
    assert session.propensities(23) == (0.0, 1.0, 0.0)


UNFIT: list[tuple[Design, dict[str, Any], str]] = [
    (UCB(), {}, "makes no random draws"),
    (LinUCB(), {"dimension": 2}, "makes no random draws"),
    (SuccessiveElimination(), {}, "waits for outcomes"),
    (Mixture(SuccessiveElimination()), {}, "waits for outcomes"),
    (ConSE(), {"features": 2}, "waits for outcomes"),
    (DPConSE(epsilon=1.0), {"features": 2}, "waits for outcomes"),
    (ABSE(), {"dimension": 2}, "waits for outcomes"),
    (SequentialHalving(), {}, "waits for outcomes"),
    (PrivateUCB(epsilon=1.0), {}, "waits for outcomes"),
    (FunctionDesign(lambda state, context, rng: 0), {}, "without probabilities that could be divided"),
]


@pytest.mark.parametrize(("design", "options", "reason"), UNFIT, ids=lambda given: type(given).__name__)
def test_a_design_that_cannot_go_on_without_an_arm_says_why(
    design: Design, options: dict[str, Any], reason: str
) -> None:
    arms = ["a", "b"] if design.needs.max_arms == 2 else ARMS
    session = design.session(arms, 5_000, **options, rng=1)
    context = 0 if "features" in options else [0.1, 0.2] if options else None
    session.assign(context=context)
    with pytest.raises(ParameterError, match=f"{reason}.*pause or finish"):
        session.remove_arm("a")


def test_what_is_asked_wrongly_changes_nothing_and_a_key_has_one_answer() -> None:
    session = Thompson().session(ARMS, 50, rng=1)
    with pytest.raises(ParameterError, match="no one has been assigned yet: open a session without the arm"):
        session.remove_arm("a")
    decision = session.assign(key="one")
    for arm, key, problem in [
        ("d", None, "arm must be .*'d'"),
        (["a"], None, "arm must be"),
        ("a", "one", "another request .assign"),
        ("a", "", "key must be text"),
    ]:
        with pytest.raises(ParameterError, match=problem):
            session.remove_arm(arm, key)
    assert session.remove_arm("a", "k") == ("b", "c")
    with pytest.raises(ParameterError, match="already removed after round 1"):
        session.remove_arm("a", "another key")
    assert session.remove_arm("b", "l") == ("c",)
    assert session.remove_arm("a", "k") == ("b", "c")
    with pytest.raises(ParameterError, match=r"another request .remove_arm"):
        session.remove_arm("b", "k")
    with pytest.raises(ParameterError, match="'c' is the only one left: pause or finish"):
        session.remove_arm("c")
    assert session.record(decision.id, 1.0).in_time  # an outcome of an arm that is gone still counts


def test_the_log_promises_no_more_than_holds(tmp_path: Any) -> None:
    session = Uniform().session(ARMS, ROUNDS, rng=2)
    told(session, BEFORE, np.random.default_rng(4))
    assert session.log().guarantee is not None
    session.remove_arm("c")
    assert session.log().feedback_rounds == 0  # nobody has been assigned since
    told(session, ROUNDS - BEFORE, np.random.default_rng(5))
    log = session.log()
    assert (log.guarantee, log.reward_guarantee) == (None, None)
    assert (log.feedback_rounds, log.released_rounds) == (BEFORE, BEFORE)
    assert log.design is not None
    traits = log.design.traits
    assert traits is not None
    assert (traits.adapts, traits.floor, traits.stability, traits.own_coins) == (True, None, None, True)
    assert log.design.parameters["removed_arms"] == [["c", BEFORE]]
    for again in (
        lambda: ai.audit.randomization_test(log, Uniform()),
        lambda: ai.audit.simulate_bias(log, Uniform()),
    ):
        with pytest.raises(ParameterError, match=r"arms were removed by hand \('c' after round 40\)"):
            again()
    path = tmp_path / "log.parquet"
    log.to_parquet(path)
    assert ai.read_log(path).equals(log)
    with pytest.raises(ai.errors.InvalidForLog) as caught:
        ai.ArmMeans(log).fit(estimator="ipw", weights="uniform")
    assert says(caught.value.reason, availability.TAKEN_AWAY, arm="c", n=80, rounds=120)
    assert np.isfinite(ai.Contrast(log, treatment="a", control="b").fit().bse).all()


def test_a_batch_ends_where_an_arm_is_removed() -> None:
    session = EpsilonGreedy(batch_size=10).session(ARMS, 40, rng=1)
    told(session, 14, np.random.default_rng(1))
    session.remove_arm("a")
    told(session, 11, np.random.default_rng(2))
    batch = session.log().arrays.batch
    assert batch is not None
    assert np.bincount(batch).tolist() == [10, 4, 6, 5]
