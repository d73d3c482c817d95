"""Exact probabilities that a Beta posterior is the highest, and Thompson sampling with them."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

from adaptinf.compilation import compiled
from adaptinf.designs import Thompson
from adaptinf.designs.arms.beta_kernel import BetaSpace, best_of_betas, beta_space, log_beta_ratio
from adaptinf.simulation.environments import BernoulliArms, UniformArms
from adaptinf.typing import FloatArray


@compiled
def enter(space: BetaSpace, first: FloatArray, second: FloatArray, best: FloatArray) -> None:
    best_of_betas(space, first, second, best.size, best)


def probabilities(
    first: Any, second: Any, space: BetaSpace | None = None, *, small: bool = False
) -> np.ndarray:
    """What the kernel writes."""
    best = np.zeros(len(first))
    space = beta_space(len(first), small=small) if space is None else space
    enter(space, np.array(first, dtype=float), np.array(second, dtype=float), best)
    return best


def marks(a: float, b: float) -> list[float]:
    """Places on the scale of log-odds between which a variable's density is smooth."""
    places = [math.log(a / b)]
    for sign in (-1.0, 1.0):
        distance = step = math.sqrt(1.0 / a + 1.0 / b)
        fallen = 0.0
        while fallen < 45.0:
            share = a / (a + b) * math.exp(sign * distance) + b / (a + b)
            fallen = (a + b) * math.log(share) - a * sign * distance
            places.append(places[0] + sign * distance)
            distance += min(0.6 * step, 0.6)
    return places


def literal(first: Any, second: Any) -> np.ndarray:
    """The integral of each density times the others' distribution functions, in long double."""
    node, weight = np.polynomial.legendre.leggauss(20)
    values = np.polynomial.legendre.legvander(node, 19)
    upto = [np.polynomial.legendre.legint(row, lbnd=-1.0) for row in np.eye(20)]
    inner = np.stack([np.polynomial.legendre.legval(node, row) for row in upto], axis=1) @ np.linalg.inv(
        values
    )
    ends = np.unique([place for a, b in zip(first, second, strict=True) for place in marks(a, b)])
    half = np.diff(ends) / 2.0
    y = ((ends[1:] + ends[:-1])[:, None] / 2.0 + half[:, None] * node).astype(np.longdouble)
    log_x, log_rest = -np.log1p(np.exp(-y)), -np.log1p(np.exp(y))
    density, below = [], []
    for a, b in zip(first, second, strict=True):
        with mpmath.workdps(40):
            exact = -mpmath.log(mpmath.beta(float(a), float(b)))
            scale = np.longdouble(float(exact)) + np.longdouble(float(exact - float(exact)))
        found = np.exp(np.longdouble(a) * log_x + np.longdouble(b) * log_rest + scale).astype(float)
        start = np.concatenate([[0.0], np.cumsum((found * weight).sum(axis=1) * half)])
        assert start[-1] == pytest.approx(1.0, abs=1e-11)
        density.append(found)
        below.append(start[:-1, None] + half[:, None] * (found @ inner.T))
    return np.array(
        [
            (
                (density[arm] * np.prod(np.delete(below, arm, axis=0), axis=0) * weight).sum(axis=1) * half
            ).sum()
            for arm in range(len(first))
        ]
    )


def hard(kind: str, n_arms: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Parameters from 1/2 to a million."""
    if kind == "any":
        return tuple(10.0 ** rng.uniform(math.log10(0.5), 6.0, (2, n_arms)))  # type: ignore[return-value]
    if kind == "few":
        return rng.choice([0.5, 1.0, 2.0, 3.0, 5.0], n_arms), rng.choice([0.5, 1.0, 2.0, 3.0], n_arms)
    if kind == "rare":
        return rng.uniform(0.5, 4.0, n_arms), 10.0 ** rng.uniform(0.0, 6.0, n_arms)
    spread = n_arms if kind == "scales" else None
    size, share = 10.0 ** rng.uniform(0.5, 6.0, spread), rng.uniform(0.02, 0.98)
    shares = np.clip(share + rng.normal(size=n_arms) * np.sqrt(share * (1 - share) / size), 1e-3, 1 - 1e-3)
    sizes = size * np.exp(rng.normal(size=n_arms) * 0.3)
    return np.maximum(sizes * shares, 0.5), np.maximum(sizes * (1.0 - shares), 0.5)


@pytest.mark.parametrize("kind", ["close", "scales", "few", "rare", "any"])
@pytest.mark.parametrize("n_arms", [2, 3, 5, 20])
def test_against_the_integral(kind: str, n_arms: int) -> None:
    rng = np.random.default_rng(n_arms)
    for _ in range(3):
        first, second = hard(kind, n_arms, rng)
        expected = literal(first, second)
        for small in (False, True):
            found = probabilities(first, second, small=small)
            np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-10)
            assert found.sum() == pytest.approx(1.0, abs=1e-14)
            assert found.min() >= 0.0


def test_against_scipy_and_mpmath() -> None:
    first, second = [3.0, 40.0, 0.5, 12.5], [2.0, 31.0, 0.5, 9.25]

    def density(x: float, arm: int) -> float:
        others = [other for other in range(4) if other != arm]
        below = [stats.beta.cdf(x, first[other], second[other]) for other in others]
        return float(stats.beta.pdf(x, first[arm], second[arm]) * np.prod(below))

    found = probabilities(first, second)
    for arm in range(4):
        value, _ = integrate.quad(density, 0.0, 1.0, args=(arm,), points=[0.4, 0.6], epsabs=1e-13, limit=500)
        assert found[arm] == pytest.approx(value, abs=1e-8 if arm == 2 else 1e-11)  # a pole at 1 in x
    with mpmath.workdps(30):  # a sum of whole numbers: P(X > Y) for X of whole parameters
        a, b, c, d = 2_001, 1_950, 3_000, 2_960
        terms = (
            mpmath.exp(mpmath.log(mpmath.beta(c + i, b + d)) - mpmath.log(mpmath.beta(1 + i, b)))
            / ((b + i) * mpmath.beta(c, d))
            for i in range(a)
        )
        expected = float(mpmath.fsum(terms))
    assert probabilities([a, c], [b, d])[0] == pytest.approx(expected, abs=1e-12)


def test_small_probabilities_keep_their_ratios() -> None:
    first, second = np.array([600.0, 400.0, 380.0]), np.array([400.0, 600.0, 620.0])
    expected, found = literal(first, second), probabilities(first, second, small=True)
    assert expected[1] < 1e-15
    np.testing.assert_allclose(found[1:], expected[1:], rtol=1e-6)


def test_what_is_kept_never_changes_a_number() -> None:
    """The same parameters give the same bits after any others, and without anything kept."""
    rng, space = np.random.default_rng(5), beta_space(4, small=False)
    first, second = np.ones(4), np.ones(4)
    for step in range(400):
        arm = rng.integers(4)
        fraction = rng.random() if step % 7 == 0 else float(rng.random() < 0.3 + 0.1 * arm)
        first[arm] += fraction
        second[arm] += 1.0 - fraction
        np.testing.assert_array_equal(probabilities(first, second, space), probabilities(first, second))


@pytest.mark.parametrize("parts", [(1.0, 1.0, 1.0, 1.0), (0.5, 7.0, 30.5, 2.0), (2e5, 3e5, 4e5, 7e5)])
def test_the_ratio_of_beta_functions(parts: tuple[float, float, float, float]) -> None:
    a, b, c, d = (mpmath.mpf(part) for part in parts)
    with mpmath.workdps(40):
        expected = mpmath.log(mpmath.beta(a + c, b + d) / mpmath.beta(a, b) / mpmath.beta(c, d))

    @compiled
    def ratio(a: float, b: float, c: float, d: float) -> float:
        return log_beta_ratio(a, b, c, d)

    assert ratio(*parts) == pytest.approx(float(expected), abs=2e-9)


def posteriors(log: Any, prior: tuple[float, float], t: int) -> tuple[np.ndarray, np.ndarray]:
    """Parameters of each arm's posterior before round t."""
    rows = [log.arrays.action[:t] == arm for arm in range(log.arrays.propensities.shape[1])]
    won = np.array([np.clip(log.arrays.reward[:t], 0.0, 1.0)[row].sum() for row in rows])
    return prior[0] + won, prior[1] + np.array([row.sum() for row in rows]) - won


@pytest.mark.parametrize("rewards", ["0 or 1", "fractions"])
@pytest.mark.parametrize("n_arms", [2, 4])
def test_propensities_of_a_log(rewards: str, n_arms: int) -> None:
    means = np.linspace(0.4, 0.6, n_arms)
    env = BernoulliArms(means) if rewards == "0 or 1" else UniformArms(low=means - 0.4, high=means + 0.4)
    log = Thompson(prior_parameters=(2.0, 1.0), floor=(0.1, 0.2)).run(env, horizon=3_000, rng=4)
    for t in [0, 1, 2, 5, 40, 300, 1_023, 1_024, 1_025, 2_999]:
        chance = literal(*posteriors(log, (2.0, 1.0), t))
        floor = 0.1 * (t + 1.0) ** -0.2
        excess = np.clip(chance - floor, 0.0, None)
        expected = floor + (1.0 - n_arms * floor) * excess / excess.sum()
        np.testing.assert_allclose(log.arrays.propensities[t], expected, rtol=0.0, atol=1e-10)


def test_two_arms_stay_exact_over_a_long_run() -> None:
    """A million changes by rewards of 0 and 1 between and across renewals."""
    log = Thompson().run(BernoulliArms([0.5, 0.501]), horizon=200_000, rng=0)
    for t in (1_000, 99_999, 150_000, 199_999):
        expected = literal(*posteriors(log, (1.0, 1.0), t))
        np.testing.assert_allclose(log.arrays.propensities[t], expected, rtol=0.0, atol=1e-11)


def test_arms_far_behind_keep_the_probability_of_beating_the_leader() -> None:
    first, second = [30, 60, 901], [970, 940, 99]
    found = probabilities(first, second, small=True)
    for arm in (0, 1):
        with mpmath.workdps(60):
            terms = (
                mpmath.beta(901 + i, second[arm] + 99) / (second[arm] + i) / mpmath.beta(1 + i, second[arm])
                for i in range(first[arm])
            )
            expected = float(mpmath.fsum(terms) / mpmath.beta(901, 99))
        assert expected < 1e-100
        assert found[arm] == pytest.approx(expected, rel=0.1)
