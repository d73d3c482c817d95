"""Tests of noise as it was drawn: exact laws, right noise passes, and each kind of fault has its finding."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from adaptinf.privacy import discrete_gaussian, discrete_laplace
from adaptinf.privacy.drawn_noise import ODDS, Draws, intervals, multiple_probability, probability, too_often
from adaptinf.privacy.noise_tests import _all_earlier, _run_before, draw_findings, noise_tests, scale_bounds

SCALE = 2.0**21
RUNS = 16


def draws(units: Any, scales: Any = SCALE, runs: int = RUNS, law: str = "laplace", **more: Any) -> Draws:
    """Draws of equally long runs."""
    each = len(units) // runs
    kept = np.asarray(units[: each * runs], dtype=np.int64)
    wide = np.broadcast_to(np.asarray(scales, dtype=np.float64), np.shape(units))[: kept.size].copy()
    names = [f"node {place}" for place in range(each)]
    places = np.tile(np.arange(each), runs)
    return Draws(kept, wide, np.repeat(np.arange(runs), each), places, names, law, **more)


def simulated(n: int, scale: float = SCALE, seed: int = 0) -> Any:
    """Seeded draws of the discrete Laplace law: the difference of two geometric variables."""
    rng = np.random.default_rng(seed)
    chance = -math.expm1(-1.0 / scale)
    return rng.geometric(chance, n) - rng.geometric(chance, n)


def kinds(found: Draws) -> set[str]:
    return {test.kind for test in noise_tests(found) if test.finding}


@pytest.mark.parametrize(
    ("law", "scale"), [("laplace", 0.7), ("laplace", 9.0), ("gaussian", 0.4), ("gaussian", 6.3)]
)
def test_intervals_are_those_of_the_law_summed_term_by_term(law: str, scale: float) -> None:
    reach = np.arange(-2_000, 2_001)
    weights = np.exp(-np.abs(reach) / scale) if law == "laplace" else np.exp(-0.5 * (reach / scale) ** 2)
    weights /= weights.sum()
    below = np.cumsum(weights) - weights
    values = np.arange(-20, 21)
    found = intervals(draws(values, scale, 1, law))
    at = values + 2_000
    np.testing.assert_allclose(found.low, below[at], rtol=0, atol=1e-13)
    np.testing.assert_allclose(found.high, (below + weights)[at], rtol=0, atol=1e-13)
    sizes = [weights[np.abs(reach) >= abs(value)].sum() for value in values]
    np.testing.assert_allclose(np.exp(-found.reached), sizes, rtol=1e-10)
    np.testing.assert_allclose(
        np.exp(-found.beyond),
        sizes - np.array([weights[np.abs(reach) == abs(value)].sum() for value in values]),
        rtol=1e-9,
        atol=1e-15,
    )
    np.testing.assert_allclose(
        probability(draws(values, scale, 1, law), values.astype(float)), weights[at], rtol=1e-12
    )
    for step in (2, 5, 12):
        each = multiple_probability(draws(values, scale, 1, law), step)
        np.testing.assert_allclose(each, weights[reach % step == 0].sum(), rtol=1e-12)


def test_the_middle_and_the_size_are_centred_and_below_the_uniform_law() -> None:
    values = np.arange(-400, 401)
    for law, scale in (("laplace", 1.5), ("gaussian", 2.0)):
        found = intervals(draws(values, scale, 1, law))
        weight = found.high - found.low
        for entry in (found.middle, found.size):
            assert float((weight * entry).sum()) == pytest.approx(0.0, abs=1e-12)
            for theta in (-3.0, 0.5, 4.0):
                uniform = math.sinh(theta / 2.0) / (theta / 2.0)
                assert float((weight * np.exp(theta * entry)).sum()) <= uniform * (1 + 1e-12)


def test_wide_normal_laws_join_the_tabled_ones() -> None:
    values = np.array([-1500, -3, 0, 1, 700])
    narrow, wide = (
        intervals(draws(values, scale, 1, "gaussian")) for scale in (512.0, np.nextafter(512.0, 600.0))
    )
    np.testing.assert_allclose(narrow.low, wide.low, atol=1e-6)
    np.testing.assert_allclose(narrow.beyond, wide.beyond, rtol=1e-4)


def test_a_count_of_unlikely_hits_has_the_bound_of_its_products() -> None:
    hits, chances = np.array([True, False, True, True]), np.array([0.1, 0.2, 1e-6, 0.05])
    products = [
        np.prod([(1 + (c - 1) * hit) / (1 + (c - 1) * p) for hit, p in zip(hits, chances, strict=True)])
        for c in np.exp(ODDS)
    ]
    assert too_often(hits, chances) == pytest.approx(-math.log(np.mean(products)))
    # the mean of the product over all outcomes is at most 1
    mean = sum(
        math.prod(p if hit else 1 - p for hit, p in zip(row, chances, strict=True))
        * math.exp(-too_often(np.array(row), chances))
        for row in itertools.product([True, False], repeat=4)
        if any(row)
    )
    assert mean <= 1.0


def test_sums_of_sizes_have_a_gamma_law() -> None:
    sizes = np.array([0.3, 2.0, 0.1])
    low, high = scale_bounds(sizes, sizes)
    assert low == pytest.approx(math.log(stats.gamma.cdf(2.4, 3)))
    assert high == pytest.approx(math.log(stats.gamma.sf(2.4, 3)))


def chance(values: set[int], scale: float) -> float:
    q = math.exp(-1.0 / scale)
    return sum((1 - q) / (1 + q) * q ** abs(value) for value in values)


@pytest.mark.parametrize("sign", [1, -1])
def test_chances_of_a_repeat_are_the_sums_over_what_was_drawn_before(sign: int) -> None:
    values, scales = [3, -1, 3, 0, -3, 1, 1, 0, 3, -3], [2.0, 5.0, 2.0, 5.0, 2.0, 2.0, 5.0, 2.0, 5.0, 5.0]
    runs = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
    found = Draws(np.array(values), np.array(scales), np.array(runs), np.arange(10) % 4, list("abcd"))
    scopes: dict[str, Any] = {
        "all": (_all_earlier(found, sign, 0), lambda place: range(place)),
        "run": (
            _all_earlier(found, sign, 1),
            lambda place: [at for at in range(place) if runs[at] == runs[place]],
        ),
        "before": (
            _run_before(found, sign, 1),
            lambda place: [at for at in range(place) if runs[at] == runs[place] - 1],
        ),
    }
    for (earlier, chances), held in scopes.values():
        for place, scale in enumerate(scales):
            seen = [
                at for at in held(place) if values[at] == sign * values[place] and (sign > 0 or values[place])
            ]
            assert earlier[place] == (seen[0] if seen else -1)
            assert chances[place] == pytest.approx(chance({values[at] for at in held(place)}, scale))


@pytest.mark.parametrize("pairs", [(2.0**21, 0.0595), (64.0, 1_951.0)])
def test_equal_pairs_among_a_thousand_nodes(pairs: tuple[float, float]) -> None:
    scale, expected = pairs
    q = math.exp(-1.0 / scale)
    alike = ((1 - q) / (1 + q)) ** 2 * (1 + q * q) / (1 - q * q)
    assert 499_500 * alike == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("scale", [0.3, 1.3, 64.0, 2.0**20, 1.37 * 2.0**41])
def test_right_noise_passes(scale: float) -> None:
    assert kinds(draws(discrete_laplace(scale, 4_096), scale)) == set()


@pytest.mark.parametrize("scale", [0.4, 3.3, 2.0**20])
def test_right_normal_noise_passes(scale: float) -> None:
    assert kinds(draws(discrete_gaussian(scale, 4_096), scale, law="gaussian")) == set()


def test_right_noise_of_several_scales_passes() -> None:
    scales = SCALE * np.array([1.0, 2.0, 4.0])[np.arange(4_098) % 3]
    units = np.array([discrete_laplace(scale, 1)[0] for scale in scales[:1_026]])
    assert kinds(draws(units, scales[:1_026], 6)) == set()


NOISE = simulated(8_192)
HALVES = np.random.default_rng(5).random(8_192) < 0.3


def antithetic() -> Any:
    units = NOISE.copy()
    units[1::2] = -units[::2]
    return units


def carried(last: int = 256) -> Any:
    """The first nodes of a run are the last of the run before."""
    table = NOISE.reshape(16, 512).copy()
    table[1:, :last] = table[:-1, -last:]
    return table.ravel()


def by_name() -> Any:
    """Seeded by the name of the node: runs are alike."""
    return np.tile(NOISE[:512], 16)


def again_at(count: int) -> Any:
    table = NOISE.reshape(16, 512).copy()
    table[:, count] = table[:, 0]
    return table.ravel()


def off_by_one() -> Any:
    table = NOISE.reshape(16, 512).copy()
    table[:, 1::2] = table[:, ::2]
    return table.ravel()


FAULTS: dict[str, tuple[Any, str]] = {
    "no noise": (0 * NOISE, "zeros"),
    "half of its scale": (NOISE // 2, "scale"),
    "a tenth less": (simulated(8_192, 0.9 * SCALE), "scale"),
    "no noise in one draw of 500": (np.where(np.arange(8_192) % 500, NOISE, 0), "zeros"),
    "redrawn beyond 6 scales": (NOISE[np.abs(NOISE) < 6 * SCALE], "tails"),
    "set to 0 beyond 6 scales": (np.where(np.abs(NOISE) < 6 * SCALE, NOISE, 0), "zeros"),
    "held at 5 scales": (np.clip(NOISE, int(-5 * SCALE), int(5 * SCALE)), "repeats"),
    "cut above 5 scales": (NOISE[NOISE < 5 * SCALE], "one tail"),
    "one draw far out": (np.where(np.arange(8_192) == 77, int(45 * SCALE), NOISE), "one tail"),
    "none near 0": (NOISE[np.abs(NOISE) > SCALE / 64], "holes"),
    "antithetic": (antithetic(), "repeats"),
    "carried to the next run": (carried(), "repeats"),
    "two nodes carried to the next run": (carried(2), "repeats"),
    "seeded by name": (by_name(), "repeats"),
    "the first node again at a count": (again_at(200), "repeats"),
    "off by one node": (off_by_one(), "repeats at a distance"),
    "even": (NOISE // 2 * 2, "divisor"),
    "odd": (NOISE // 2 * 2 + 1, "lattices"),
    "multiples of 1,024": (NOISE // 1_024 * 1_024, "divisor"),
    "multiples of 7": (NOISE // 7 * 7, "divisor"),
    "multiples of 16, one draw of three": (np.where(HALVES, NOISE // 16 * 16, NOISE), "lattices"),
    "3 decimals, one draw of three": (
        np.where(HALVES, np.rint(np.round(NOISE / 2**20, 3) * 2**20).astype(np.int64), NOISE),
        "decimals",
    ),
    "hundredths of the scale": (np.rint(np.round(NOISE / SCALE, 2) * SCALE).astype(np.int64), "decimals"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str) -> None:
    units, kind = FAULTS[fault]
    assert kind in kinds(draws(units))


def test_the_same_seeded_noise_without_a_fault_passes() -> None:
    assert kinds(draws(NOISE)) == set()


def test_a_few_nodes_tell_that_there_is_no_noise_and_that_noise_is_the_same() -> None:
    assert "scale" in kinds(draws(np.zeros(3, dtype=np.int64), runs=1))
    assert "repeats" in kinds(draws(np.repeat(NOISE[:2], 3), runs=1))
    assert kinds(draws(NOISE[:2], runs=1)) == set()


def test_noise_that_repeats_in_units_of_its_scale_is_found() -> None:
    """Another file has the same noise at another scale."""
    first, scale = NOISE[:64], 3.0 * SCALE
    units = np.concatenate([first, 3 * first])
    found = draws(units, np.repeat([SCALE, scale], 64), 2)
    assert "repeats at a distance" in kinds(found)
    fresh = draws(np.concatenate([first, simulated(64, scale, 1)]), np.repeat([SCALE, scale], 64), 2)
    assert kinds(fresh) == set()


def test_weak_dependence_is_found_at_its_distance() -> None:
    """A quarter of the sizes of neighbours are alike, with signs of their own."""
    units = NOISE.copy()
    rng = np.random.default_rng(3)
    share = np.flatnonzero(rng.random(4_096) < 0.5) * 2
    units[share + 1] = units[share] * rng.choice([-1, 1], share.size) + rng.integers(
        -2_000, 2_000, share.size
    )
    tests = {test.kind: test.finding for test in noise_tests(draws(units))}
    assert tests["lags"].startswith("the sizes of the draws are associated with the draw before")


def test_noise_that_goes_with_outcomes_is_found() -> None:
    rng = np.random.default_rng(4)
    coins = rng.integers(0, 2, (8_192, 3)) - 0.5
    tilted = np.where(rng.random(8_192) < 0.15, np.abs(NOISE) * np.sign(coins[:, 1]).astype(np.int64), NOISE)
    own = np.sign(coins[:, 1]) * 0.5
    found = {test.kind: test.finding for test in noise_tests(draws(tilted, coins=coins, before=2, own=own))}
    assert found["outcomes"] == "the draws are associated with the outcomes of their own round"
    assert found["hidden outcomes"] == "the draws are associated with the outcomes that they should hide"
    assert kinds(draws(NOISE, coins=coins, before=2, own=own)) == set()
    later = draws(np.abs(NOISE) * np.sign(coins[:, 2]).astype(np.int64), coins=coins, before=2, own=own)
    assert "the draws are associated with the outcomes of 1 rounds after" in {
        test.finding for test in noise_tests(later)
    }


def test_noise_that_goes_with_what_was_settled_is_found() -> None:
    """A seventh of the rounds is of a kind whose noise has one sign; what is settled need not be centred."""
    rng = np.random.default_rng(5)
    kind = rng.random((8_192, 1)) < 1.0 / 7.0
    facts = {"facts": kind - 0.5, "fact_names": ["the kind of their own round"]}
    signed = np.where(kind[:, 0], np.abs(NOISE), NOISE)
    found = {test.kind: test.finding for test in noise_tests(draws(signed, **facts))}
    assert found["facts"] == "the draws are associated with the kind of their own round"
    assert kinds(draws(NOISE, **facts)) == set()
    gone = np.where(rng.random(kind.shape) < 0.5, np.nan, kind - 0.5)
    assert kinds(draws(NOISE, facts=gone, fact_names=["a kind that is not always known"])) == set()


def test_a_finding_names_the_draw_and_counts_the_others() -> None:
    (told,) = [one for one in draw_findings([("16 runs", draws(again_at(200)))]) if "occurred before" in one]
    assert told.startswith("16 draws of 8,192 occurred before in its run, ")
    assert told.endswith("the first is node 200 of run 1, as node 0 of run 1 [16 runs]")


@pytest.mark.slow
def test_all_tests_together_keep_to_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 5% for all together no more than 5% of right noise is called wrong."""
    alarms = sum(
        bool(draw_findings([("", draws(simulated(512, scale, seed), scale, 8))], 0.05))
        for seed, scale in enumerate([1.0, 30.0, 2.0**21] * 40)
    )
    assert alarms <= 14  # binomial, 120 at 5%: above 14 with probability 1e-3
