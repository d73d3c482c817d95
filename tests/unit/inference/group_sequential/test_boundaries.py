"""Critical values for repeated looks: published tables, closed forms, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import adaptinf as ai
from adaptinf.errors import ParameterError
from adaptinf.inference.group_sequential import Boundary
from adaptinf.inference.group_sequential.crossing import crossing
from adaptinf.inference.group_sequential.spending import SPENDING
from adaptinf.inference.group_sequential.stagewise import Stopped

FIVE = np.arange(1, 6) / 5
TABLE: list[tuple[dict[str, Any], list[float]]] = [
    ({"spending": "obrien-fleming"}, [4.5617, 3.2256, 2.6337, 2.2809, 2.0401]),
    ({"spending": "pocock"}, [2.4132] * 5),
    ({}, [4.8769, 3.3570, 2.6803, 2.2898, 2.0310]),
    ({"spending": "lan-demets-pocock"}, [2.43798, 2.42681, 2.41019, 2.39665, 2.38598]),
    ({"spending": "hwang-shih-decani", "gamma": -4.0}, [3.25267, 2.98605, 2.69166, 2.37367, 2.02532]),
    ({"spending": "power", "rho": 2.0}, [3.09023, 2.71411, 2.47278, 2.27986, 2.11403]),
]


@pytest.mark.parametrize(("options", "expected"), TABLE)
def test_published_values(options: dict[str, Any], expected: list[float]) -> None:
    digits = 4 if len(f"{expected[0]}".split(".")[1]) <= 4 else 5
    np.testing.assert_array_equal(ai.spending_bounds(FIVE, **options).round(digits), expected)


def test_looks_without_correction_reject_too_often() -> None:
    z = np.full(5, stats.norm.isf(0.025))
    assert 2.0 * crossing(-z, z, FIVE)[1].sum() == pytest.approx(0.1417, abs=5e-5)


@pytest.mark.parametrize("spending", [*SPENDING, "obrien-fleming", "pocock"])
@pytest.mark.parametrize("sides", [1, 2])
def test_all_looks_together_spend_the_level(spending: str, sides: int) -> None:
    rng = np.random.default_rng(3)
    for size in (1, 2, 7, 25 if spending in SPENDING else 7):
        looks = np.sort(rng.uniform(0.05, 1.0, size))
        looks[-1] = 1.0
        upper = ai.spending_bounds(looks, 0.05, sides, spending)
        lower = -upper if sides == 2 else np.full(size, -np.inf)
        assert Boundary(looks, lower, upper, sides).rejection(0.0) == pytest.approx(0.05, abs=1e-10)


def test_one_look_is_the_usual_test() -> None:
    assert ai.spending_bounds([1.0], 0.05)[0] == pytest.approx(stats.norm.isf(0.025), abs=1e-12)
    assert ai.spending_bounds([1.0], 0.05, 1)[0] == pytest.approx(stats.norm.isf(0.05), abs=1e-12)
    boundary = Boundary(np.ones(1), np.full(1, -np.inf), np.full(1, stats.norm.isf(0.025)), 1)
    assert boundary.drift_of_power(0.9) == pytest.approx(
        stats.norm.isf(0.025) + stats.norm.isf(0.1), abs=1e-11
    )
    stopped = Stopped(np.full(1, 4.0), np.full(1, 4.0), np.full(1, -9.0), np.full(1, 9.0), 5.0)
    assert stopped.estimate == pytest.approx(1.25, abs=1e-11)
    assert stopped.interval(0.05) == pytest.approx(
        1.25 + np.array([-0.5, 0.5]) * stats.norm.isf(0.025), abs=1e-10
    )
    assert stopped.pvalue == pytest.approx(2.0 * stats.norm.sf(2.5), abs=1e-12)


def test_two_looks_have_the_bivariate_normal_law() -> None:
    looks, upper = np.array([0.3, 1.0]), np.array([2.5, 2.0])
    root = 0.3**0.5
    joint = stats.multivariate_normal(
        [1.0 * root, 1.0], [[1.0, root], [root, 1.0]], abseps=1e-12, releps=1e-12
    )
    none = np.full(2, -np.inf)
    assert crossing(none, upper, looks, 1.0)[1].sum() == pytest.approx(1.0 - joint.cdf(upper), abs=1e-9)


def test_early_looks_do_not_depend_on_later_ones() -> None:
    for spending in SPENDING:
        whole = ai.spending_bounds(FIVE, spending=spending)
        np.testing.assert_allclose(ai.spending_bounds(FIVE[:3], spending=spending), whole[:3], atol=1e-12)


def test_a_look_that_can_spend_nothing_never_stops() -> None:
    upper = ai.spending_bounds([1e-6, 1.0])
    assert upper[0] == np.inf
    assert upper[1] == pytest.approx(stats.norm.isf(0.025), abs=1e-9)


def test_dependent_looks_by_simulation() -> None:
    """A walk of 200,000 paths: rejections, and coverage of intervals after the stop, within 4 errors."""
    looks, effect = np.array([0.25, 0.5, 1.0]), 2.0
    upper = ai.spending_bounds(looks, 0.05, 1, "pocock")
    rng = np.random.default_rng(9)
    score = np.cumsum(rng.normal(size=(200_000, 3)) * np.sqrt(np.diff(looks, prepend=0.0)), axis=1)
    score += effect * looks
    crossed = score > upper * np.sqrt(looks)
    boundary = Boundary(looks, np.full(3, -np.inf), upper, 1)
    assert crossed.any(axis=1).mean() == pytest.approx(boundary.rejection(effect), abs=4 * 0.0012)
    held, above = 0, 0
    for path in range(2_000):
        last = int(crossed[path].argmax()) if crossed[path].any() else 2
        seen = looks[: last + 1]
        tail = Stopped(seen, seen, np.full(last + 1, -np.inf), upper[: last + 1], score[path, last]).tail(
            effect
        )
        held += 0.05 <= tail <= 0.95
        above += tail < 0.5
    assert held == pytest.approx(1_800, abs=4 * 13.4)
    assert above == pytest.approx(1_000, abs=4 * 22.4)


def test_refusals_list_everything() -> None:
    with pytest.raises(ParameterError) as caught:
        ai.spending_bounds([0.5, 0.4, 1.2], 0.7, 3, "fleming", gamma=np.nan, rho=0.0)
    text = str(caught.value)
    for part in (
        "alpha",
        "fractions must be increasing",
        "sides must be 1 or 2",
        "spending must be one of",
        "gamma",
        "rho",
    ):
        assert part in text
    for wrong in ([], [np.nan], "abc", [[0.5, 1.0]]):
        with pytest.raises(ParameterError, match="fractions must be numbers, one for each look"):
            ai.spending_bounds(wrong)
