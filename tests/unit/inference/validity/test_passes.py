"""Sums of the checks that reach every table: literal loops, the same in NumPy and compiled."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from adaptinf.inference.validity import stationarity
from adaptinf.inference.validity.calibration import excess_pvalue
from adaptinf.inference.validity.passes import choices
from adaptinf.inference.validity.stationarity import times, trends_of_rows
from adaptinf.typing import FloatArray, IntArray

ROUNDS, ARMS = 3_000, 3
PATHS = pytest.mark.parametrize("small", [10**9, 0], ids=["NumPy", "compiled"])


def rounds_of(seed: int = 1, never: float = 0.1) -> tuple[IntArray, FloatArray]:
    """Choices, and propensities, some of which are 0, 1 or on the bounds of pieces."""
    rng = np.random.default_rng(seed)
    every = rng.integers(1, 8, (ROUNDS, ARMS)) * (rng.random((ROUNDS, ARMS)) >= never)
    every[:, 0] += every.sum(axis=1) == 0
    every = every / every.sum(axis=1, keepdims=True)
    return (rng.random(ROUNDS)[:, None] > every.cumsum(axis=1) - 1e-12).sum(axis=1), every


def literal_counts(action: IntArray, every: FloatArray, group: FloatArray, groups: int) -> FloatArray:
    """Choices, their mean and variance; group (T, K), returns (3, G, K)."""
    found = np.zeros((3, groups, ARMS))
    for t, chosen in enumerate(action.tolist()):
        for k in range(ARMS):
            e, g = every[t, k], int(group[t, k])
            found[:, g, k] += [float(chosen == k), e, e * (1.0 - e)]
    return found


@PATHS
def test_choices_by_propensity_and_by_time(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "_SMALL", small)
    action, every = rounds_of()
    found = choices.choices_of(action, every)
    time = np.repeat((np.arange(ROUNDS) * choices.STRETCHES // ROUNDS)[:, None], ARMS, axis=1)
    piece = np.minimum((every * choices.PIECES).astype(int), choices.PIECES - 1)
    for mine, group in ((found.pieces, piece), (found.stretches, time)):
        literal = literal_counts(action, every, group, len(mine.observed))
        np.testing.assert_allclose(mine, literal, rtol=1e-9, atol=1e-9)
    group = np.arange(ROUNDS) % 7
    literal = literal_counts(action, every, np.repeat(group[:, None], ARMS, axis=1), 7)
    np.testing.assert_allclose(choices.counts_by(action, every, group, 7), literal, rtol=1e-9)
    for k in range(ARMS):
        inverse = [1.0 / e for e in every[:, k].tolist() if e > 0.0]
        assert found.possible[k] == len(inverse) < ROUNDS
        assert found.inverse[k] == pytest.approx(math.fsum(inverse), rel=1e-9)
        assert found.largest[k] == max(inverse)
        own = [1.0 / e for e in every[action == k, k].tolist()]
        assert found.chosen[k] == pytest.approx(math.fsum(own), rel=1e-9)


@PATHS
def test_propensities_that_are_all_positive(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "_SMALL", small)
    action, every = rounds_of(never=0.0)
    found = choices.choices_of(action, every)
    np.testing.assert_allclose(found.inverse, (1.0 / every).sum(axis=0), rtol=1e-9)
    assert found.possible.tolist() == [ROUNDS] * ARMS
    np.testing.assert_allclose(found.stretches.total().variance, (every * (1.0 - every)).sum(axis=0))


@PATHS
@pytest.mark.parametrize("tabled", [False, True])
def test_chosen_arms_alone(small: int, tabled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "_SMALL", small)
    action, every = rounds_of(2, 0.4)
    action, every = action[action != 2][:400], every[action != 2][:400]
    action[7], every[7] = 2, (0.25, 0.25, 0.5)  # once, and early
    own = every[np.arange(400), action]
    found = choices.chosen_of(action, own, every if tabled else None, ARMS)
    assert (own >= 1.0).sum() > 20
    for k in range(ARMS):
        last = int(np.flatnonzero(action == k)[-1])
        others = [own[t] >= 1.0 and action[t] != k for t in range(last + 1)]
        possible = sum(every[: last + 1, k] > 0.0) if tabled else others.count(False)
        mine = own[action == k].tolist()
        sums = [math.fsum(p**-power for p in mine) for power in (1, 2)]
        literal = [*sums, possible, min(mine)]
        assert [part[k] for part in found] == pytest.approx(literal, rel=1e-9)


def test_neighbouring_groups_are_joined_until_they_vary() -> None:
    observed = np.array([[3.0, 50.0, 7.0], [9.0, 40.0, 7.0], [30.0, 8.0, 7.0], [2.0, 1.0, 7.0]])
    expected = np.array([[4.0, 45.0, 7.0], [5.0, 44.0, 7.0], [28.0, 9.0, 7.0], [3.0, 2.0, 7.0]])
    variance = np.array([[10.0, 30.0, 40.0], [16.0, 26.0, 5.0], [27.0, 10.0, 5.0], [3.0, 1.0, 5.0]])
    first = 3.0**2 / 26.0 + (2.0 - 1.0) ** 2 / 30.0
    second = 5.0**2 / 30.0 + (-4.0 - 1.0 - 1.0) ** 2 / 37.0
    least = min(stats.chi2.sf(first, 2), stats.chi2.sf(second, 2))
    assert excess_pvalue(observed, expected, variance) == pytest.approx(3.0 * least, rel=1e-9)
    assert excess_pvalue(observed, expected, variance / 10.0) == 3.0
    alone = [part[:, :2] for part in (observed, expected, variance)]
    assert excess_pvalue(*alone) == pytest.approx(stats.chi2.sf(first, 2), rel=1e-9)


@pytest.mark.parametrize("arms", [2, 7])
@pytest.mark.parametrize("timed", [False, True])
def test_trends_of_rows(arms: int, timed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(arms)
    action, reward = rng.integers(0, arms, 900), 1e6 + rng.normal(size=900)
    time = times(900, np.arange(900) // 90) if timed else None
    clock = (np.arange(900) + 0.5) / 900 if time is None else time
    literal = []
    for k in range(arms):
        t, y = clock[action == k], reward[action == k]
        terms = ((t - t.mean()) * (y - y.mean())).tolist()
        literal.append(math.fsum(terms) / math.sqrt(math.fsum(one**2 for one in terms)))
    pulls = np.bincount(action, minlength=arms).astype(np.float64)
    for small, block, known in ((10**9, 2**14, None), (10**9, 100, pulls), (0, 100, None)):
        monkeypatch.setattr(stationarity, "_SMALL", small)
        monkeypatch.setattr(stationarity, "_BLOCK", block)
        assert trends_of_rows(action, reward, time, arms, None, known).z == pytest.approx(literal, rel=1e-8)
    no_one = trends_of_rows(action, np.ones(900), time, arms + 1)
    assert not no_one.tested.any()
