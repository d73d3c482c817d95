"""Intervals for values of policies of which few events are known, by simulation and from their formula."""

from __future__ import annotations

import numpy as np
import pytest
from claims_said import says
from scipy import stats

from adaptinf.claims import policies as claims
from adaptinf.claims import rare_outcomes
from adaptinf.claims.laws import GAMMA
from adaptinf.inference.distributions.references import JoinedReference
from adaptinf.inference.policies.policy_models import PolicyContrast, PolicyValue
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.typing import FloatArray
from case_studies.scoreboard.designs import epsilon_greedy
from case_studies.scoreboard.worlds import world

POLICY = np.array([0.25, 0.75])
RATE = 0.02


def greedy_logs(logs: int, rounds: int, seed: int) -> list[AdaptiveLog]:
    """Two equal arms with outcomes of 2%: the arm that looks best, or with chance .1 any."""
    rng = np.random.default_rng(seed)
    drawn = world("rare", logs, rounds, 2, rng)
    arms, shares, _ = epsilon_greedy(drawn, rng.random((logs, rounds)), rng)
    assert shares is not None
    return [one_log(arms[j], drawn.outcomes[j][np.arange(rounds), arms[j]], shares[j]) for j in range(logs)]


def one_log(action: np.ndarray, reward: FloatArray, shares: FloatArray) -> AdaptiveLog:
    own = shares[np.arange(len(action)), action]
    arrays = LogArrays(action, reward, propensity=own, propensities=shares)
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"))


def coverage(logs: list[AdaptiveLog]) -> tuple[float, float]:
    """Of the value of the policy, and of its difference from always choosing the first arm."""
    values = np.array([PolicyValue(log, POLICY).fit().conf_int().to_numpy()[0] for log in logs])
    pairs = [PolicyContrast(log, POLICY, baseline="a").fit().conf_int().to_numpy()[0] for log in logs]
    differences = np.array(pairs)[~np.isnan(pairs).any(axis=1)]
    assert len(differences) > 0.99 * len(logs)
    inside = (values[:, 0] <= RATE) & (values[:, 1] >= RATE)
    return float(inside.mean()), float(((differences[:, 0] <= 0) & (differences[:, 1] >= 0)).mean())


def test_intervals_cover_after_epsilon_greedy() -> None:
    value, difference = coverage(greedy_logs(100, 1000, seed=4))
    assert value >= 0.93
    assert difference >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [300, 1000, 3000])
def test_intervals_cover_in_a_thousand_logs(rounds: int) -> None:
    value, difference = coverage(greedy_logs(1000, rounds, seed=rounds))
    assert value >= 0.936
    assert difference >= 0.936


def test_the_interval_is_that_of_the_formula() -> None:
    log = greedy_logs(1, 1000, seed=8)[0]
    result = PolicyValue(log, POLICY).fit()
    arrays = log.arrays
    assert arrays.propensity is not None
    weight = POLICY[arrays.action] / arrays.propensity / 999
    weight[0] = 0.0  # no reward is known before it
    events = weight[arrays.reward == 1.0]
    y, v, w = events.sum(), (events**2).sum(), weight.max()
    v = max(v, float(result.bse.iloc[0]) ** 2)
    low = stats.gamma.ppf(0.025, y * y / v, scale=v / y)
    high = stats.gamma.isf(0.025, (y + w) ** 2 / (v + w * w), scale=(v + w * w) / (y + w))
    shift = float(result.params.iloc[0]) - y
    np.testing.assert_allclose(result.conf_int().to_numpy()[0], [low + shift, high + shift], rtol=1e-9)
    assert result.reference.name == GAMMA()
    assert result.cautions == ()
    note = next(note for note in result.notes if says(note, rare_outcomes.COUNTED, enough=10))
    worth = weight.sum() ** 2 / (weight**2).sum() * arrays.reward.mean()
    assert note.values["terms"] == f"policy ({worth:.1f})"


def test_only_the_policy_with_few_events_is_counted() -> None:
    log = greedy_logs(1, 3000, seed=5)[0]
    often = "ab"[int(log.arrays.action.mean() > 0.5)]
    seldom = {"a": "b", "b": "a"}[often]
    both = PolicyValue(log, [often, seldom]).fit()
    assert isinstance(both.reference, JoinedReference)
    note = next(note for note in both.notes if says(note, rare_outcomes.COUNTED))
    assert note.values["terms"].startswith(f"{seldom} (")
    for place, arm in enumerate((often, seldom)):
        alone = PolicyValue(log, arm).fit()
        np.testing.assert_allclose(
            both.conf_int().to_numpy()[place], alone.conf_int().to_numpy()[0], rtol=1e-9
        )
        np.testing.assert_allclose(both.log_pvalues.iloc[place], alone.log_pvalues.iloc[0], rtol=1e-9)


def test_a_policy_without_events_has_an_upper_limit() -> None:
    action = np.tile(np.repeat([0, 1], [9, 1]), 100)
    reward = np.zeros(1000)
    reward[100:400:10] = 1.0
    log = one_log(action, reward, np.tile([0.9, 0.1], (1000, 1)))
    result = PolicyValue(log, "b").fit()
    low, high = result.conf_int().to_numpy()[0]
    assert result.params.iloc[0] == low == 0.0
    assert high == pytest.approx(-np.log(0.025) / 99.9, rel=1e-9)  # 999 rounds with weights of 10
    assert not any(says(note, claims.CONSTANT) for note in result.notes)


def test_three_events_of_an_arm_leave_an_interval() -> None:
    rng = np.random.default_rng(0)
    action = (rng.random(600) < 0.5).astype(np.int64)
    reward = np.zeros(600)
    reward[np.flatnonzero(action == 0)[[50, 100, 200]]] = 1.0
    reward[np.flatnonzero(action == 1)[:40]] = 1.0
    log = one_log(action, reward, np.full((600, 2), 0.5))
    result = PolicyValue(log, "a").fit()
    low, high = result.conf_int().to_numpy()[0]
    counts = stats.chi2.ppf([0.025, 0.975], [6, 8]) / 2 / (599 / 2)  # exact limits of a count of 3
    shift = result.params.iloc[0] - 3 / (599 / 2)
    assert low == pytest.approx(counts[0] + shift, rel=0.02)
    assert high == pytest.approx(counts[1] + shift, rel=0.02)
    note = next(note for note in result.notes if says(note, rare_outcomes.COUNTED, enough=10))
    assert note.values["terms"] == "a (3.0)"
