"""Units with several rounds: against literal versions, and limits in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from adaptinf.inference.scores.inverse import aipw_scores, indicators, running_means
from adaptinf.inference.scores.means import weighted_means
from adaptinf.inference.scores.unit_errors import (
    effective_units,
    others_means,
    totals_by_unit,
    unit_covariance,
    unit_errors,
    unit_group_effects,
    units_with,
    units_with_events,
)
from adaptinf.typing import FloatArray, IntArray


def _rounds(seed: int, rounds: int = 200, units: int = 17) -> tuple[IntArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    unit = rng.integers(0, units, rounds)
    chosen = indicators(rng.integers(0, 3, rounds), np.array([2, 0]))
    return unit, chosen, rng.normal(3.0, 2.0, rounds)


def _literal_covariance(influence: FloatArray, unit: IntArray) -> FloatArray:
    total = np.zeros((influence.shape[1], influence.shape[1]))
    names = sorted(set(unit.tolist()))
    for name in names:
        own = influence[unit == name].sum(axis=0)
        total += np.outer(own, own)
    return total * len(names) / (len(names) - 1)


def _literal_others(chosen: FloatArray, reward: FloatArray, unit: IntArray) -> tuple[FloatArray, list[bool]]:
    predicted, known = np.full(chosen.shape, np.nan), []
    for t in range(len(reward)):
        others = [s for s in range(t) if unit[s] != unit[t]]
        known.append(bool(others))
        for k in range(chosen.shape[1]):
            with_arm = [s for s in others if chosen[s, k] == 1.0]
            source = with_arm or others
            predicted[t, k] = np.mean([reward[s] for s in source]) if source else reward[0]
    return predicted, known


@pytest.mark.parametrize("seed", range(3))
def test_covariance_by_unit_is_the_sum_over_units(seed: int) -> None:
    unit, _, _ = _rounds(seed)
    influence = np.random.default_rng(seed + 100).normal(size=(len(unit), 3))
    np.testing.assert_allclose(
        unit_covariance(influence, 5 * unit + 2), _literal_covariance(influence, unit), rtol=1e-13, atol=1e-13
    )


def test_one_round_a_unit_gives_the_plain_covariance_times_its_factor() -> None:
    influence = np.random.default_rng(4).normal(size=(50, 2))
    found = unit_covariance(influence, np.random.default_rng(5).permutation(50))
    np.testing.assert_allclose(found, influence.T @ influence * 50 / 49, rtol=1e-13)


def test_a_single_unit_has_no_covariance() -> None:
    assert np.all(np.isnan(unit_covariance(np.ones((5, 2)), np.zeros(5, dtype=np.int64))))


def test_copies_of_every_round_within_its_unit_change_nothing() -> None:
    scores = np.random.default_rng(6).normal(size=(40, 2))
    once = weighted_means(scores, np.ones(scores.shape))
    twice = weighted_means(np.repeat(scores, 3, axis=0), np.ones((120, 2)))
    np.testing.assert_allclose(
        unit_covariance(twice.influence, np.repeat(np.arange(40), 3)),
        unit_covariance(once.influence, np.arange(40)),
        rtol=1e-12,
    )


@pytest.mark.parametrize("seed", range(3))
def test_predictions_are_means_of_the_earlier_rounds_of_others(seed: int) -> None:
    unit, chosen, reward = _rounds(seed)
    unit[:4] = 1  # the first unit comes several times before any other
    predicted, known = others_means(chosen, reward, unit)
    literal, literal_known = _literal_others(chosen, reward, unit)
    assert known.tolist() == literal_known
    np.testing.assert_allclose(predicted, literal, rtol=1e-12)


def test_rewards_that_are_late_count_from_when_they_are_known() -> None:
    unit, chosen, reward = _rounds(21, rounds=80, units=6)
    arrival = np.arange(80) + 1 + np.random.default_rng(22).integers(0, 15, 80)
    arrival = np.minimum(arrival, 80)
    predicted, known = others_means(chosen, reward, unit, arrival=arrival)
    for t in range(80):
        others = [s for s in range(80) if arrival[s] <= t and unit[s] != unit[t]]
        assert known[t] == bool(others)
        for k in range(2):
            own = [s for s in others if chosen[s, k] == 1.0]
            expected = np.mean(reward[own or others]) if others else reward[0]
            np.testing.assert_allclose(predicted[t, k], expected, rtol=1e-12)


def test_predictions_of_units_with_one_round_are_running_means() -> None:
    _, chosen, reward = _rounds(7)
    predicted, known = others_means(chosen, reward, np.arange(200))
    plain = running_means(chosen, reward)
    started = np.cumsum(chosen, axis=0) - chosen > 0.0
    np.testing.assert_allclose(predicted[started], plain[started], rtol=1e-12)
    assert known.tolist() == [False] + [True] * 199


@pytest.mark.parametrize("shift", [1e6, -1e9])
def test_predictions_move_with_the_origin_of_rewards(shift: float) -> None:
    unit, chosen, reward = _rounds(8)
    reward = np.round(reward * 64.0) / 64.0  # so that the shift itself is exact
    plain, moved = others_means(chosen, reward, unit)[0], others_means(chosen, reward + shift, unit)[0]
    np.testing.assert_allclose(moved - shift, plain, atol=abs(shift) * 1e-15 * 4)


def test_no_prediction_knows_a_reward_of_its_own_unit() -> None:
    unit, chosen, reward = _rounds(9)
    before = others_means(chosen, reward, unit)[0]
    changed = reward.copy()
    changed[unit == 3] += 50.0
    after = others_means(chosen, changed, unit)[0]
    np.testing.assert_allclose(after[unit == 3], before[unit == 3], rtol=1e-12)
    assert np.abs(after[unit != 3] - before[unit != 3]).max() > 0.1


def test_units_that_had_an_arm_are_counted_once() -> None:
    unit, chosen, _ = _rounds(10, rounds=30)
    literal = [
        len({u for u, c in zip(unit.tolist(), column.tolist(), strict=True) if c}) for column in chosen.T
    ]
    assert units_with(chosen, unit).tolist() == literal


def test_effective_units_are_units_where_all_weigh_the_same() -> None:
    unit = np.repeat(np.arange(12), 5)
    chosen = indicators((np.repeat(np.arange(12), 5) % 3 == 0).astype(np.int64), np.array([0, 1]))
    np.testing.assert_allclose(effective_units(np.ones((60, 2)), chosen, unit), [8.0, 4.0], rtol=1e-14)


def test_effective_units_by_the_formula_where_sizes_differ() -> None:
    unit, chosen, _ = _rounds(11)
    weights = np.random.default_rng(12).uniform(0.1, 2.0, chosen.shape)
    literal = []
    for k in range(2):
        own = [weights[unit == u, k].sum() for u in np.unique(unit) if chosen[unit == u, k].any()]
        literal.append(sum(h**2 for h in own) ** 2 / sum(h**4 for h in own))
    np.testing.assert_allclose(effective_units(weights, chosen, unit), literal, rtol=1e-12)
    assert np.all(effective_units(weights, chosen, unit) <= units_with(chosen, unit))


def test_effective_units_of_an_arm_that_nobody_had_are_none() -> None:
    chosen = indicators(np.zeros(6, dtype=np.int64), np.array([0, 1]))
    assert effective_units(np.ones((6, 2)), chosen, np.arange(6) // 2).tolist() == [3.0, 0.0]


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.0, 100.0), (-3.0, 7.5)])
def test_events_by_unit_do_not_depend_on_the_coding(low: float, high: float) -> None:
    unit = np.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4])
    chosen = indicators(np.array([0, 1] * 5), np.array([0, 1]))
    success = np.array([1, 0, 1, 1, 0, 0, 1, 0, 1, 0])
    found = units_with_events(chosen, np.where(success == 1, high, low), unit)
    assert found.tolist() == [1.0, 1.0]  # one failure under arm 0, one success under arm 1


def test_events_of_a_spike_with_other_values_are_the_other_values() -> None:
    unit = np.repeat(np.arange(5), 4)
    reward = np.zeros(20)
    reward[[0, 1, 5, 9]] = [2.5, 3.5, 7.0, 1.0]
    chosen = indicators(np.tile([0, 1], 10), np.array([0, 1]))
    assert units_with_events(chosen, reward, unit).tolist() == [1.0, 3.0]


def test_rewards_without_a_usual_value_have_no_events() -> None:
    unit, chosen, reward = _rounds(13)
    assert np.all(np.isinf(units_with_events(chosen, reward, unit)))


def test_totals_are_of_the_units_that_occur() -> None:
    found = totals_by_unit(np.array([[1.0], [2.0], [4.0]]), np.array([7, 2, 7]))
    assert found.tolist() == [[2.0], [5.0]]


def _literal_errors(
    influence: FloatArray, weights: FloatArray, observed: FloatArray, unit: IntArray
) -> tuple[list[float], list[float], list[int]]:
    """Variances, degrees of freedom and units, by the formulas."""
    variance, freedom, units = [], [], []
    names = sorted(set(unit.tolist()))
    for k in range(influence.shape[1]):
        sums = [sum(influence[unit == u, k]) for u in names]
        variance.append(len(names) / (len(names) - 1) * sum(s**2 for s in sums))
        gain = [(h * o) ** 2 for h, o in zip(weights[:, k], observed[:, k], strict=True) if h * o > 0]
        rounds = sum(gain) ** 2 / sum(g**2 for g in gain)
        had = [u for u in names if np.any(weights[unit == u, k] * observed[unit == u, k] > 0)]
        mass = [weights[unit == u, k].sum() for u in had]
        effective = sum(h**2 for h in mass) ** 2 / sum(h**4 for h in mass)
        freedom.append(min(rounds, effective) - 1.0)
        units.append(len(had))
    return variance, freedom, units


def test_errors_by_unit_by_the_formulas() -> None:
    unit, chosen, reward = _rounds(14)
    rng = np.random.default_rng(15)
    weights, observed = rng.uniform(0.0, 1.0, chosen.shape), chosen / rng.uniform(0.1, 0.9, (len(unit), 1))
    weights[:20] = 0.0
    means = weighted_means(rng.normal(size=chosen.shape), weights)
    found = unit_errors(means.estimate, means.influence, weights, observed, reward, unit)
    variance, freedom, units = _literal_errors(means.influence, weights, observed, unit)
    np.testing.assert_allclose(np.diag(found.covariance), variance, rtol=1e-12)
    np.testing.assert_allclose(found.freedom, freedom, rtol=1e-12)
    assert found.units.tolist() == units


def test_degrees_of_freedom_of_a_fair_coin_a_unit_are_its_units_minus_one() -> None:
    unit, arm = np.tile(np.arange(30), 4), np.tile(np.arange(30) % 3 == 0, 4).astype(np.int64)
    chosen = indicators(arm, np.arange(2))
    influence, reward = np.random.default_rng(16).normal(size=(2, 120, 2))
    found = unit_errors(np.ones(2), influence, np.ones((120, 2)), 2.0 * chosen, reward[:, 0], unit)
    np.testing.assert_allclose(found.freedom, [19.0, 9.0], rtol=1e-12)


@pytest.mark.parametrize(("units", "known"), [(4, False), (5, True)])
def test_below_five_units_with_an_event_there_is_no_error(units: int, known: bool) -> None:
    unit, arm = np.repeat(np.arange(20), 4), np.tile([0, 1], 40)
    reward = np.zeros(80)
    reward[np.arange(units) * 4] = 1.0  # successes of arm 0 in as many units
    reward[np.arange(12) * 4 + 1] = 1.0
    chosen = indicators(arm, np.arange(2))
    influence = np.random.default_rng(17).normal(size=(80, 2))
    found = unit_errors(np.ones(2), influence, np.ones((80, 2)), 2.0 * chosen, reward, unit)
    assert found.events.tolist() == [float(units), 12.0]
    assert np.isfinite(found.covariance[0]).tolist() == [known, known]
    assert np.isfinite(found.covariance[1, 1])


def test_effects_by_group_are_those_of_the_groups_rounds() -> None:
    """Units in several groups: one column per arm and group, zero elsewhere, gives the same numbers."""
    rng, rounds = np.random.default_rng(18), 240
    unit, group, treated = (
        rng.integers(0, 25, rounds),
        rng.integers(0, 3, rounds),
        rng.integers(-1, 2, rounds),
    )
    reward, propensity = rng.normal(2.0, 1.0, rounds), rng.uniform(0.1, 0.6, rounds)
    weights = rng.uniform(0.2, 1.0, (rounds, 2))
    found = unit_group_effects(group, treated, reward, propensity, 3, unit, weights)
    effects, influence = [], np.zeros((rounds, 3))
    for g in range(3):
        means = []
        for arm in (0, 1):
            score = np.zeros(rounds)
            for t in np.flatnonzero(group == g):
                earlier = [s for s in range(t) if unit[s] != unit[t]]
                own = [s for s in earlier if group[s] == g and treated[s] == arm]
                m = np.mean(reward[own or earlier]) if earlier else 0.0
                score[t] = m + (treated[t] == arm) * (reward[t] - m) / propensity[t]
            h = weights[:, arm] * (group == g) * (np.arange(rounds) >= np.flatnonzero(unit != unit[0])[0])
            means.append((h @ score) / h.sum())
            influence[:, g] += (2 * arm - 1) * h * (score - means[-1]) / h.sum()
        effects.append(means[1] - means[0])
    np.testing.assert_allclose(found.estimate, effects, rtol=1e-11)
    np.testing.assert_allclose(found.errors.covariance, _literal_covariance(influence, unit), rtol=1e-10)
    assert np.abs(found.errors.covariance[0, 1]) > 0.0
    counts = [[np.sum((group == g) & (treated == arm)) for arm in (0, 1)] for g in range(3)]
    assert found.count.tolist() == counts


def test_a_group_with_one_arm_has_no_effect() -> None:
    unit, group = np.tile(np.arange(12), 4), np.repeat([0, 1], 24)
    treated = np.where(group == 0, np.tile([0, 1], 24), 0)
    reward = np.random.default_rng(19).normal(size=48)
    found = unit_group_effects(group, treated, reward, np.full(48, 0.5), 3, unit)
    assert np.isfinite(found.estimate).tolist() == [True, False, False]
    assert np.isfinite(np.diag(found.errors.covariance)).tolist() == [True, False, False]


@pytest.mark.slow
def test_coverage_where_units_keep_one_arm_needs_errors_by_unit() -> None:
    """40 units of 10 rounds, each with one arm by a fair coin, an effect of its own of sd 1."""
    rng, runs, units, size = np.random.default_rng(20), 1000, 40, 10
    unit = np.tile(np.arange(units), size)
    hits, plain = 0, 0
    for _ in range(runs):
        action = rng.integers(0, 2, units)[unit]
        reward = rng.normal(size=units)[unit] + rng.normal(size=units * size)
        chosen = indicators(action, np.arange(2))
        predicted, known = others_means(chosen, reward, unit)
        scores = aipw_scores(chosen, reward, np.full(len(unit), 0.5), predicted)
        means = weighted_means(scores, np.repeat(known[:, None], 2, axis=1).astype(float))
        contrast = np.array([-1.0, 1.0])
        error = abs(float(contrast @ means.estimate))
        freedom = float(effective_units(np.ones(chosen.shape), chosen, unit).min()) - 1.0
        by_unit = np.sqrt(contrast @ unit_covariance(means.influence, unit) @ contrast)
        hits += error <= stats.t.ppf(0.975, freedom) * by_unit
        plain += error <= 1.96 * np.sqrt(contrast @ means.covariance @ contrast)
    # false alarm below 1e-4 at a coverage of .95; errors by round cover about .6
    assert stats.binom.cdf(hits, runs, 0.95) > 1e-4
    assert plain < 0.75 * runs
