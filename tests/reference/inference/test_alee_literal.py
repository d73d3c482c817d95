"""ALEE against its formula written out round by round, the mass of its weights, and Monte Carlo."""

from __future__ import annotations

import math

import numpy as np
import pytest
from claims_said import says
from scipy import integrate

from adaptinf import designs
from adaptinf.claims import rare_outcomes
from adaptinf.claims.arms import alee, arm_fits
from adaptinf.designs import UCB, Thompson
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.arms.alee import alee_means, alee_offset, alee_weights, allocation
from adaptinf.inference.results.fit_results import Results
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import NormalArms


def literal(log: AdaptiveLog, arm: int) -> tuple[float, float, float]:
    """Estimate and both standard errors: the count is of pulls so far, this round's included."""
    horizon = log.n_rounds
    offset = math.e**2 * math.log(horizon)
    pulls, own = 0, []
    weights: list[float] = []
    for t in range(horizon):
        if int(log.arrays.action[t]) != arm:
            continue
        pulls += 1
        x = (offset + pulls) / offset
        weights.append(math.sqrt(math.log(2.0) / (x * math.log(2.0 * x) ** 2)) / math.sqrt(offset))
        own.append(float(log.arrays.reward[t]))
    total = math.fsum(weights)
    estimate = math.fsum(w * y for w, y in zip(weights, own, strict=True)) / total
    mean = math.fsum(own) / pulls
    sigma = math.sqrt(math.fsum((y - mean) ** 2 for y in own) / (pulls - 1))
    return estimate, sigma * math.sqrt(math.fsum(w * w for w in weights)) / total, sigma / total


@pytest.mark.parametrize("seed", range(3))
def test_against_the_literal_loop(seed: int) -> None:
    log = UCB().run(NormalArms([5.0, 5.2, 4.9]), horizon=700, rng=seed)
    short = ArmMeans(log).fit("alee", arm_error="self-normalised")
    long = ArmMeans(log).fit("alee")
    for arm in range(3):
        estimate, self_normalised, conservative = literal(log, arm)
        assert short.estimate[arm] == pytest.approx(estimate, rel=1e-9)
        assert short.std_error[arm] == pytest.approx(self_normalised, rel=1e-9)
        assert long.std_error[arm] == pytest.approx(conservative, rel=1e-9)
    contrast = Contrast(log, treatment=2, control=0).fit("alee")
    first, second = literal(log, 2), literal(log, 0)
    assert contrast.estimate[0] == pytest.approx(first[0] - second[0], rel=1e-9, abs=1e-12)
    assert contrast.std_error[0] == pytest.approx(math.hypot(first[2], second[2]), rel=1e-9)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_squared_allocation_has_mass_one(exponent: float) -> None:
    """With x = exp(u) / 2 the integral is of f^2(x) x over u from log 2."""

    def integrand(u: float) -> float:
        x = math.exp(u) / 2.0
        return float(allocation(x, exponent)) ** 2 * x

    top = 300.0
    mass, error = integrate.quad(integrand, math.log(2.0), top, limit=500)
    assert mass + (math.log(2.0) / top) ** exponent == pytest.approx(1.0, abs=1e-7)
    assert error < 1e-6


def test_squared_weights_stay_below_one_and_approach_it() -> None:
    for horizon in (2, 10, 1_000, 10**6):
        offset = alee_offset(horizon)
        squares = np.cumsum(alee_weights(horizon, offset) ** 2)
        bound = 1.0 - math.log(2.0) / np.log(2.0 + 2.0 * np.arange(1, horizon + 1) / offset)
        assert np.all(squares <= bound)
    assert squares[-1] == pytest.approx(bound[-1], abs=0.01)
    assert bound[-1] > 0.92
    # Counting earlier pulls only would break the bound.
    early = np.cumsum(allocation(1.0 + np.arange(0.0, 50.0)) ** 2)
    assert early[-1] > 1.0


def test_a_weight_looks_only_back() -> None:
    log = UCB().run(NormalArms([0.0, 0.3]), horizon=300, rng=4)
    late = np.where(np.arange(300) >= 200, 50.0, log.arrays.reward)
    codes = np.array([0, 1])
    whole = alee_means(log.arrays.action, late, codes)
    again = alee_means(log.arrays.action, log.arrays.reward, codes)
    np.testing.assert_array_equal(whole.total, again.total)
    np.testing.assert_array_equal(whole.squares, again.squares)


def test_one_arm_constant_rewards_and_one_round() -> None:
    one = AdaptiveLog.from_arrays(LogArrays(action=np.array([0]), reward=np.array([2.5])), arms=("a", "b"))
    result = ArmMeans(one).fit("alee")
    assert result.params["a"] == 2.5
    assert result.params.isna().tolist() == [False, True]
    assert result.pvalues.isna().all()
    assert says(result.notes, arm_fits.CHOSEN_ONCE, arm="a")
    assert says(result.notes, arm_fits.NEVER_CHOSEN, arm="b")
    same = LogArrays(action=np.zeros(50, dtype=np.int64), reward=np.full(50, 0.1))
    constant = ArmMeans(AdaptiveLog.from_arrays(same, arms=("a",))).fit("alee")
    assert constant.params["a"] == 0.1
    assert constant.bse["a"] == 0.0
    assert says(constant.cautions, rare_outcomes.UNVARYING, arm="a")


def test_wrong_uses() -> None:
    log = UCB().run(NormalArms([0.0, 0.3]), horizon=100, rng=4)
    with pytest.raises(ParameterError, match="weights do not apply to ALEE"):
        ArmMeans(log).fit("alee", "sqrt")
    with pytest.raises(ParameterError, match="arm_error must be one of 'self-normalised', 'conservative'"):
        ArmMeans(log).fit("alee", arm_error="robust")
    with pytest.raises(InvalidForLog, match="exact binomial tests"):
        ArmMeans(log).fit("alee", test="exact")
    with pytest.raises(ParameterError, match="offset must be positive"):
        alee_weights(10, 0.0)
    assert says(ArmMeans(log).fit("alee").notes, alee.NO_DRIFT)


def test_refused_where_the_design_looks_at_the_context() -> None:
    arrays = LogArrays(action=np.array([0, 1, 0, 1]), reward=np.array([0.1, 0.2, 0.3, 0.5]))
    log = AdaptiveLog.from_arrays(arrays, arms=(0, 1), design=designs.ConSE(alpha=0.2).record())
    with pytest.raises(InvalidForLog, match="ConSE uses contexts to assign arms"):
        ArmMeans(log).fit("alee")


def covered(result: Results, value: float) -> np.ndarray:
    limits = result.conf_int().to_numpy()
    return (limits[:, 0] <= value) & (value <= limits[:, 1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "figures"),
    [("UCB", (0.923, 0.942, 0.981)), ("Thompson", (0.909, 0.929, 0.985))],
)
def test_coverage_of_equal_arms(name: str, figures: tuple[float, float, float]) -> None:
    """Coverage of two normal arms without a difference, T = 1,000, nominal .95.

    The figures are those of published simulations and of long runs of our own. The two intervals of a run
    count as one observation, so that the tolerance of 4.5 standard errors also holds if both fail at once.
    """
    runs, horizon = 1_200, 1_000
    design = (
        UCB(width=2.0 * math.log(horizon) / math.log(1000.0))
        if name == "UCB"
        else Thompson(prior="normal", prior_parameters=(0.0, 1e4), initial_pulls=1)
    )
    hits = np.zeros((3, 2))
    for log in design.logs(NormalArms([0.0, 0.0]), horizon=horizon, replications=runs, rng=5):
        model = ArmMeans(log)
        for row, options in enumerate(
            ({"estimator": "sample-mean"}, {"estimator": "alee", "arm_error": "self-normalised"},
             {"estimator": "alee"})
        ):  # fmt: skip
            hits[row] += covered(model.fit(**options), 0.0)
    for row, figure in enumerate(figures):
        tolerance = 4.5 * math.sqrt(figure * (1.0 - figure) / runs)
        assert hits[row].mean() / runs == pytest.approx(figure, abs=tolerance)
