"""Propensities of another arm, hard-coded, or of 1 in all rounds are seen; right ones are not doubted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.contexts import VISIBLY
from adaptinf.claims.propensities import CHOSEN_NOT_FOLLOWED, NOT_FOLLOWED, RIGHT
from adaptinf.errors import InvalidForLog
from adaptinf.inference.validity.profile import profile_of
from adaptinf.typing import FloatArray, IntArray

ROLES = {"action": "a", "reward": "y"}


def drawn(rng: np.random.Generator, every: FloatArray) -> IntArray:
    """Arms with given probabilities."""
    return np.asarray(
        (rng.random(len(every))[:, None] > every.cumsum(axis=1)).sum(axis=1).clip(0, every.shape[1] - 1)
    )


def thompson(rng: np.random.Generator, rounds: int, arms: int, floor: float) -> tuple[IntArray, FloatArray]:
    """Choices of Thompson sampling between equal arms in batches of 20, and its propensities."""
    count, total = np.ones(arms), np.zeros(arms)
    action, every = np.zeros(rounds, dtype=np.int64), np.zeros((rounds, arms))
    for start in range(0, rounds, 20):
        best = rng.normal(total / count, 1.0 / np.sqrt(count), (200, arms)).argmax(axis=1)
        p = floor + (1.0 - arms * floor) * np.bincount(best, minlength=arms) / 200.0
        every[start : start + 20] = p / p.sum()
        action[start : start + 20] = rng.choice(arms, 20, p=p / p.sum())
        np.add.at(count, action[start : start + 20], 1.0)
        np.add.at(total, action[start : start + 20], rng.normal(size=20))
    return action, every


def chosen(action: IntArray, propensity: FloatArray) -> Iterator[ai.AdaptiveLog | ai.Sums]:
    """A log with one propensity a round, and its sums by batches of 100."""
    frame = pd.DataFrame({"a": action, "y": np.arange(len(action)) % 7.0, "p": propensity})
    yield ai.AdaptiveLog(frame, **ROLES, propensity="p")
    yield ai.aggregate(
        frame.assign(b=np.arange(len(action)) // 100),
        **ROLES,
        propensity="p",
        batch="b",
    )


def told(log: ai.AdaptiveLog | ai.Sums) -> tuple[str, ...]:
    """What the table of the first method says of the propensities."""
    means = ai.ArmMeans(log)
    return means.fit("aipw").cautions


def test_the_probability_of_one_arm_for_whichever_was_chosen() -> None:
    rng = np.random.default_rng(3)
    share = rng.uniform(0.1, 0.9, 900)
    log, _ = chosen(drawn(rng, np.c_[1.0 - share, share]), share), None
    assert says(told(next(log)), NOT_FOLLOWED)
    every = rng.dirichlet([2.0, 2.0, 2.0], 6_000)
    for log in chosen(drawn(rng, every), every[:, 0]):
        assert says(told(log), CHOSEN_NOT_FOLLOWED)


@pytest.mark.parametrize("arms", [2, 3])
def test_a_constant_while_a_bandit_ran(arms: int) -> None:
    seen = 0
    for seed in range(20):
        action, _ = thompson(np.random.default_rng(seed), 1_000, arms, 0.05)
        log = next(chosen(action, np.full(1_000, 1.0 / arms)))
        found = profile_of(log).propensities_found
        seen += found is not None and found.contradicted
    assert seen >= 18


def test_propensities_of_one_are_no_answer_to_a_context_that_decides() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, 3_000)
    frame = pd.DataFrame({"x": x, "a": x % 2, "y": rng.normal(2.0 * (x == 1)), "p": 1.0})
    log = ai.AdaptiveLog(frame, **ROLES, context="x", propensity="p")
    with pytest.raises(InvalidForLog) as caught:
        ai.Contrast(log, treatment=1, control=0).fit()
    assert says(caught.value.reason, VISIBLY, context="x")
    assert ai.recommend(log).frame["label"].unique().tolist() == ["not valid"]


def test_small_groups_are_joined() -> None:
    """Each of 20 pieces of propensities, and each of 8 stretches of rounds, has a variance below 25."""
    rng = np.random.default_rng(5)
    share = rng.uniform(0.1, 0.9, 400)
    action = drawn(rng, np.c_[1.0 - share, share])
    own = np.where(action == 1, 1.0 - share, share)
    (log, *_) = chosen(action, own)
    assert says(told(log), NOT_FOLLOWED)


def test_right_ones_are_checked_and_few_are_not_checkable() -> None:
    rng = np.random.default_rng(1)
    action, every = thompson(rng, 1_000, 3, 0.05)
    for log in chosen(action, every[np.arange(1_000), action]):
        result = ai.ArmMeans(log).fit("aipw")
        (note,) = [one for one in result.notes if says(one, RIGHT)]
        assert note.startswith(f"Assumes: {RIGHT()} (checked)")
        assert not result.cautions
    few = next(chosen(action[:25], every[np.arange(25), action[:25]]))
    (note,) = [one for one in ai.ArmMeans(few).fit("aipw").notes if says(one, RIGHT)]
    assert note.startswith("Assumes, cannot be checked from this log: ")
    assert f"{RIGHT()} (" not in note


def test_a_propensity_that_falls_to_nothing_is_right() -> None:
    """Arms that a design without a floor gives up are missing in most rounds, as they should be."""
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        every = np.full((1_000, 3), 0.0005)
        every[:100] = 1.0 / 3.0
        every[100:, 0] = 0.999
        action = drawn(rng, every)
        found = profile_of(next(chosen(action, every[np.arange(1_000), action]))).propensities_found
        alarms += found is not None and found.contradicted
    assert alarms == 0


def test_contradicted_rows_of_recommend_say_so() -> None:
    rng = np.random.default_rng(3)
    share = rng.uniform(0.1, 0.9, 900)
    log = next(chosen(drawn(rng, np.c_[1.0 - share, share]), share))
    table = ai.recommend(log).frame.set_index("method")
    weighed = table[[says(one, RIGHT) for one in table["assumes"]]]
    assert len(weighed) > 0
    for row in weighed.itertuples():
        assert f"{RIGHT()} (contradicted)" in row.assumes
        assert says(row.warning, NOT_FOLLOWED)
