"""Winners that were chosen by private releases: figures, a literal integral, coverage, bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

import adaptinf as ai
from adaptinf.errors import ParameterError
from adaptinf.inference.winners.winner_law import log_choice


@pytest.mark.parametrize(("scale", "limits"), [(0.5, (-1.2696, 3.5516)), (1.0, (-0.5726, 3.6733))])
def test_two_estimates_by_the_definition(scale: float, limits: tuple[float, float]) -> None:
    found = ai.winner_interval([2.0, 1.9], np.eye(2), method="conditional", noise=scale, winner=0)
    assert (found.low, found.high) == pytest.approx(limits, abs=1e-4)

    def chance(lead: float) -> float:
        tail = math.exp(-abs(lead) / scale) * (2.0 + abs(lead) / scale) / 4.0
        return 1.0 - tail if lead >= 0.0 else tail

    for mean, share in ((found.low, 0.975), (found.median_unbiased, 0.5), (found.high, 0.025)):
        parts = [
            integrate.quad(
                lambda y, mean=mean: stats.norm.pdf(y - mean) * chance(y - 1.9), *ends, epsabs=1e-13
            )[0]
            for ends in ((mean - 12.0, 1.9), (1.9, 2.0), (2.0, 14.0))
        ]
        assert (parts[0] + parts[1]) / sum(parts) == pytest.approx(share, abs=1e-6)


def test_the_chance_of_the_choice_by_simulation_and_of_equals() -> None:
    rng = np.random.default_rng(0)
    own, noise, leads = 0.7, np.array([0.7, 1.1, 0.4]), np.array([[0.3, -0.5, 1.0], [0.0, 0.0, 0.0]])
    draws = rng.laplace(0.0, own, 400_000)[:, None] - noise * rng.laplace(0.0, 1.0, (400_000, 3))
    share = np.exp(log_choice(leads, own, noise))
    for lead, expected in zip(leads, share, strict=True):
        assert abs(np.mean((draws + lead > 0).all(axis=1)) - expected) < 4.5 * math.sqrt(0.25 / 400_000)
    assert math.exp(log_choice(np.zeros((1, 4)), 1.0, np.ones(4))[0]) == pytest.approx(0.2, rel=1e-9)
    far = log_choice(np.array([[-30.0], [4.0]]), 1.0, np.array([1.0 + 1e-13]))
    assert far == pytest.approx(log_choice(np.array([[-30.0], [4.0]]), 1.0, np.ones(1)), rel=1e-9)


@pytest.mark.parametrize("method", ["hybrid", "conditional"])
def test_large_noise_chooses_nothing(method: str) -> None:
    found = ai.winner_interval([0.0, 0.4, 1.0], np.eye(3), 0.05, method, noise=1e4, winner=1)
    usual = found.naive if method == "conditional" else (found.low, found.high)
    assert (found.low, found.high) == pytest.approx(usual, abs=1e-3)
    assert found.median_unbiased == pytest.approx(0.4, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "asked"), [(2, {}), (3, {"control": 0})], ids=["mean", "control"])
def test_the_winner_of_the_releases_is_covered(size: int, asked: dict[str, object]) -> None:
    rng, runs, scale = np.random.default_rng(5), 120, 0.6
    sigma = np.diag([1.0, 1.5, 0.7][:size]) + 0.2
    held = {"conditional": 0, "hybrid": 0}
    usual = 0
    for x in rng.multivariate_normal(np.zeros(size), sigma, runs):
        released = x + rng.laplace(0.0, scale, size)
        if asked:
            released[0] = -math.inf
        won = int(np.argmax(released))
        for method in held:
            found = ai.winner_interval(x, sigma, method=method, noise=scale, winner=won, **asked)  # type: ignore[arg-type]
            held[method] += found.low <= 0.0 <= found.high
        usual += found.naive[0] <= 0.0 <= found.naive[1]
    error = 4.5 * math.sqrt(0.05 * 0.95 / runs)
    assert abs(held["conditional"] / runs - 0.95) < error
    assert held["hybrid"] / runs > 0.95 - error
    assert usual < runs


def test_everything_wrong_is_listed() -> None:
    with pytest.raises(ParameterError) as caught:
        ai.winner_interval([1.0, 2.0], np.eye(2), noise=-1.0, runner_up=True)
    for part in ("positive scale", "noise requires winner", "runner_up is not available"):
        assert part in str(caught.value)
    with pytest.raises(ParameterError, match="highest estimate: winner= applies only with noise="):
        ai.winner_interval([1.0, 2.0], np.eye(2), winner=1)
    with pytest.raises(ParameterError, match="winner must be one of 1"):
        ai.winner_interval([1.0, 2.0], np.eye(2), noise=1.0, winner=0, control=0)
    with pytest.raises(ParameterError, match=r"at least 0\.05 standard errors"):
        ai.winner_interval([1.0, 2.0], np.eye(2), noise=0.001, winner=1)
