"""Exact intervals of two-arm trials: literal tests of effects, coverage by the law, symmetry, refusals."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

from adaptinf.audit.binary import effect_inversion as inversion
from adaptinf.audit.binary.effect_inversion import SCALES, SIDES, Inversion, smoothed
from adaptinf.audit.binary.exact_law import ExactLaw, exact
from adaptinf.audit.binary.log_tests import exact_interval
from adaptinf.designs import PlayTheWinner, PrivateUCB, Thompson, Uniform
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms

EFFECTS = {"difference": (-0.6, 0.15, 0.5), "ratio": (-2.0, 0.3, 1.5), "odds-ratio": (-2.5, 0.4, 2.0)}
FREE = {
    "difference": lambda one, zero: one - zero,
    "ratio": lambda one, zero: one / zero,
    "odds-ratio": lambda one, zero: one * (1.0 - zero) / (zero * (1.0 - one)),
}


@functools.cache
def law(rounds: int) -> ExactLaw:
    return exact(Thompson(), rounds)


def states(rounds: int) -> list[tuple[int, int, int, int]]:
    return [
        (n1, s1, rounds - n1, s0)
        for n1 in range(rounds + 1)
        for s1 in range(n1 + 1)
        for s0 in range(rounds - n1 + 1)
    ]


def literal_statistic(name: str, effect: float, n1: int, s1: int, n0: int, s0: int) -> float:
    one, zero = (s1 + 0.5) / (n1 + 1), (s0 + 0.5) / (n0 + 1)
    first, second = one * (1 - one) / (n1 + 1), zero * (1 - zero) / (n0 + 1)
    if name == "difference":
        return (one - zero - effect) / math.sqrt(first + second)
    ratio = math.exp(effect)
    if name == "ratio":
        return (one - ratio * zero) / math.sqrt(first + ratio**2 * second)
    slope1, slope0 = (1 - zero) + ratio * zero, one + ratio * (1 - one)
    gap = one * (1 - zero) - ratio * zero * (1 - one)
    return gap / math.sqrt(slope1**2 * first + slope0**2 * second)


def literal_rates(name: str, effect: float, zero: np.ndarray) -> np.ndarray:
    if name == "difference":
        return zero + effect
    if name == "ratio":
        return np.asarray(zero * math.exp(effect))
    odds = math.exp(effect) * zero / (1.0 - zero)
    return np.asarray(odds / (1.0 + odds))


@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize("outcome", [(4, 3, 2, 0), (5, 2, 1, 1), (1, 1, 5, 2)])
def test_an_effect_is_tested_at_its_worst_nuisance_rate(name: str, outcome: tuple[int, ...]) -> None:
    """Term by term over all outcomes that lie as far off, at 20,001 rates of arm 0."""
    found = law(6)
    for side, turn in SIDES.items():
        for effect in EFFECTS[name]:
            zero = np.linspace(1e-9, 1.0 - 1e-9, 20_001)
            one = literal_rates(name, effect, zero)
            inside = (one >= 0.0) & (one <= 1.0)
            zero, one = zero[inside], one[inside]
            seen = literal_statistic(name, effect, *outcome)
            total = np.zeros(zero.size)
            for n1, s1, n0, s0 in states(6):
                value = literal_statistic(name, effect, n1, s1, n0, s0)
                far = {"two-sided": abs(value) - abs(seen), "greater": value - seen, "less": seen - value}
                if far[side] < -1e-9:
                    continue
                weight = found.probability(n1, s1, n0, s0, 0.5, 0.5) * 2.0**6
                total += weight * one**s1 * (1 - one) ** (n1 - s1) * zero**s0 * (1 - zero) ** (n0 - s0)
            own = Inversion(found, SCALES[name], outcome, turn).pvalue(effect)  # type: ignore[arg-type]
            assert -2e-5 < own - min(total.max(), 1.0) < 1e-4  # the literal grid stops short of the ends


@pytest.mark.parametrize("outcome", [(30, 16, 20, 8), (42, 25, 8, 1), (3, 0, 47, 25)])
@pytest.mark.parametrize("side", SIDES)
def test_at_equal_arms_every_scale_is_the_unconditional_test(outcome: Any, side: str) -> None:
    """By its certified maximum over the common rate."""

    def statistic(n1: Any, s1: Any, n0: Any, s0: Any) -> Any:
        return SCALES["difference"].statistic(0.0, *smoothed(n1, s1, n0, s0))

    expected = law(50).unconditional_pvalue(*outcome, statistic, alternative=side)
    for scale in SCALES.values():
        assert Inversion(law(50), scale, outcome, SIDES[side]).pvalue(0.0) == pytest.approx(
            expected, abs=1e-6
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize(("side", "alpha"), [("two-sided", 0.1), ("greater", 0.05)])
def test_intervals_cover_at_every_pair_of_rates(name: str, side: str, alpha: float) -> None:
    """The law of all 56 outcomes of five rounds, and the interval of each."""
    found = law(5)
    every = [one for one in states(5) if found.probability(*one, 0.5, 0.5) > 0.0]
    limits = np.array([found.interval(*one, name, alternative=side, alpha=alpha) for one in every])
    rates = np.linspace(0.015, 0.985, 23)
    for one in rates:
        for zero in rates:
            truth = FREE[name](one, zero)
            covers = (limits[:, 0] <= truth + 1e-12) & (truth - 1e-12 <= limits[:, 1])
            chances = np.array([found.probability(*outcome, one, zero) for outcome in every])
            assert chances.sum() == pytest.approx(1.0)
            assert chances[covers].sum() >= 1.0 - alpha - 1e-6
    assert np.all(limits[:, 0] < limits[:, 1])


@pytest.mark.parametrize("name", SCALES)
def test_limits_are_the_first_rejected_effects(name: str) -> None:
    outcome = (30, 16, 20, 8)
    tested = Inversion(law(50), SCALES[name], outcome, 0.0)
    for limit, inwards in zip(law(50).interval(*outcome, name), (1.0, -1.0), strict=True):
        effect = limit if name == "difference" else math.log(limit)
        assert tested.pvalue(effect) <= 0.05 + 1e-9
        assert tested.pvalue(effect + inwards * 0.002 * tested.error) > 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "outcome", "effect"),
    [
        ("odds-ratio", (50, 5, 50, 1), math.log(0.00062)),
        ("ratio", (60, 40, 40, 15), math.log(1.0563)),
    ],
)
def test_accepted_effects_beyond_a_gap_are_found(name: str, outcome: Any, effect: float) -> None:
    """Rejected for several standard errors, and accepted again beyond."""
    found = exact(Uniform(), 100)
    tested = Inversion(found, SCALES[name], outcome, 0.0)
    between = np.linspace(effect, tested.effect, 60)
    pvalues = np.array([tested.pvalue(one) for one in between])
    low, high = found.interval(*outcome, name)
    assert math.log(low) < between[pvalues > 0.05].min()
    accepted = [one for one in effect + np.linspace(0.0, 0.01, 21) if tested.pvalue(one) > 0.05]
    assert math.log(low) < accepted[0] < math.log(low) + 0.02
    assert np.any(pvalues[:30] < 0.045)
    assert math.log(high) > tested.effect


@pytest.mark.slow
@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize("side", SIDES)
def test_intervals_hold_every_accepted_effect(name: str, side: str) -> None:
    """Of 801 effects over the whole scale, tested one by one."""
    found = exact(Uniform(), 14)
    for outcome in ((7, 7, 7, 4), (9, 1, 5, 3), (2, 0, 12, 6)):
        tested = Inversion(found, SCALES[name], outcome, SIDES[side])
        effects = np.linspace(-tested.scale.reach, tested.scale.reach, 801)[1:-1]
        pvalues = np.array([tested.pvalue(one) for one in effects])
        low, high = found.interval(*outcome, name, alternative=side)
        shown = np.array([tested.scale.shown(one) for one in effects])
        assert low <= shown[pvalues > 0.05].min()
        assert shown[pvalues > 0.05].max() <= high
        values = np.array([tested.scale.statistic(one, *tested.every) for one in effects])
        assert np.all(np.diff(values, axis=0) < 0.0)


@pytest.mark.parametrize("name", SCALES)
def test_no_peak_in_the_nuisance_rate_is_lost(name: str) -> None:
    """Against 2,001 rates, for p-values and for single outcomes, which have the sharpest peaks."""
    found = exact(Uniform(), 60)
    tested = Inversion(found, SCALES[name], (40, 26, 20, 7), 0.0)
    dense = np.linspace(0.0, 1.0, 2001)
    for effect in (-0.3, 0.05, tested.effect + 2.0 * tested.error):
        sets = [tested._as_far(effect, effect)]
        for place in (20_000, 39_000):
            sets.append(np.zeros(tested.ways.size))
            sets[-1][place] = tested.ways[place]
        for terms in sets:
            most = tested._chance(terms, effect, dense).max()
            assert -1e-5 < tested._worst(terms, effect) / most - 1.0 < 1e-4


def test_points_are_doubled_until_the_expansion_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    found = law(50)
    for name, scale in SCALES.items():
        tested = Inversion(found, scale, (30, 16, 20, 8), 0.0)
        expected = [tested.pvalue(effect) for effect in (*EFFECTS[name], 0.01)]
        with monkeypatch.context() as patched:
            patched.setattr(inversion, "_NODES", 8)
            again = [tested.pvalue(effect) for effect in (*EFFECTS[name], 0.01)]
        assert again == pytest.approx(expected, abs=1e-6)


def test_arms_that_change_places_mirror_the_interval() -> None:
    found = exact(Uniform(), 40)
    for name in SCALES:
        low, high = found.interval(22, 15, 18, 6, name)
        mirrored = found.interval(18, 6, 22, 15, name)
        expected = (-high, -low) if name == "difference" else (1.0 / high, 1.0 / low)
        assert mirrored == pytest.approx(expected, rel=1e-6)


def test_one_sided_limits_leave_the_other_end_open() -> None:
    for name, (lowest, highest) in (("difference", (-1.0, 1.0)), ("ratio", (0.0, math.inf))):
        low, top = law(50).interval(30, 16, 20, 8, name, alternative="greater", alpha=0.05)
        bottom, high = law(50).interval(30, 16, 20, 8, name, alternative="less", alpha=0.05)
        assert (bottom, top) == (lowest, highest)
        both = law(50).interval(30, 16, 20, 8, name)
        assert both[0] < low < high < both[1]
    assert law(50).interval(47, 25, 3, 0, "odds-ratio")[1] == math.inf
    assert law(50).interval(3, 0, 47, 25, "ratio")[0] == 0.0


def test_a_log_has_its_intervals_in_one_table() -> None:
    log = Thompson().run(BernoulliArms([0.3, 0.8]), horizon=50, rng=5)
    found = exact_interval(log)
    outcome = found.pulls[0], found.successes[0], found.pulls[1], found.successes[1]
    assert sum(found.pulls) == 50
    for name in SCALES:
        assert found.limits[name] == law(50).interval(*outcome, name)
    one, zero = (won / pulls for won, pulls in zip(found.successes, found.pulls, strict=True))
    assert found.estimates["difference"] == pytest.approx(one - zero)
    assert found.to_frame().shape == (3, 4)
    text = " ".join(str(found).split())
    for part in ("Exact intervals, Thompson", "risk difference", "95% low", "do not drift", "equal arms"):
        assert part in text
    assert found.validity == "exact"
    assert "<table" in found._repr_html_()
    single = exact_interval(log, scale="ratio", alternative="greater", alpha=0.1)
    assert list(single.limits) == list(single.estimates) == ["ratio"]
    assert "90% low" in str(single)


def test_an_arm_without_pulls_has_an_interval() -> None:
    arrays = LogArrays(action=np.zeros(6, dtype=np.int64), reward=np.array([1.0, 0, 1, 1, 0, 1]))
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), design=PlayTheWinner().record())
    found = exact_interval(log)
    assert math.isnan(found.estimates["ratio"])
    assert found.limits["ratio"][0] < 1.0 < found.limits["ratio"][1]
    assert "b was never pulled" in str(found)


def test_what_cannot_be_inverted_is_refused() -> None:
    private = PrivateUCB(epsilon=1.0).run(BernoulliArms([0.3, 0.6]), horizon=10, rng=0)
    with pytest.raises(InvalidForLog, match=r"exact_interval.*do not depend only on the counts"):
        exact_interval(private)
    with pytest.raises(InvalidForLog, match="301 rounds, more than 300"):
        exact_interval(Uniform().run(BernoulliArms([0.3, 0.6]), horizon=301, rng=0))
    with pytest.raises(ParameterError) as caught:
        exact_interval("log", scale="lift", alternative="both", alpha=0.7)  # type: ignore[arg-type]
    for part in ("4 problems", "scale must be", "alternative must be", "alpha must be", "an AdaptiveLog"):
        assert part in str(caught.value)
    with pytest.raises(ParameterError, match="6 rounds of the trial"):
        law(6).interval(5, 2, 5, 2)
    with pytest.raises(ParameterError, match="cannot reach"):
        exact(lambda n1, s1, n0, s0, t: 1.0 * (n1 < 3), 6).interval(2, 1, 4, 1)
