"""The stopping rules against the papers' pseudo-code, spelled out in plain Python on the same noise."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from adaptinf.designs.stopping.stopping_kernel import halting_sum
from adaptinf.designs.stopping.stopping_rules import DPNAS, NAS
from adaptinf.privacy.noise import generator, laplace
from adaptinf.simulation.environments import BernoulliArms, UniformArms

STEPS = ["every", "exponential"]


def stream_of(seed: int) -> np.random.Generator:
    """The stream that a run on data draws its noise from."""
    return generator(np.random.SeedSequence(seed, spawn_key=(0,)))


# --- literal rules: each draws its samples and its noise in the order of the pseudo-code -----------------


def every_step(
    samples: Iterator[float], noise: np.random.Generator, epsilon: float, alpha: float, beta: float, r: float
) -> tuple[int, float]:
    """Sajed and Sheffet, Algorithm 1."""
    sigma_1, sigma_2, sigma_3 = 12 * r / epsilon, 12 * r / epsilon, 4 * r / epsilon
    b = laplace(noise, sigma_1)
    t, total = 0, 0.0
    while True:
        t += 1
        total += next(samples)
        a = laplace(noise, sigma_2)
        h = r * math.sqrt(2 / t * math.log(16 * t**2 / beta))
        c = (
            sigma_1 * math.log(4 / beta)
            + sigma_2 * math.log(8 * t**2 / beta)
            + sigma_3 / alpha * math.log(4 / beta)
        )
        if abs(total / t) >= h * (1 + 1 / alpha) + (c + b + a) / t:
            return t, total / t + laplace(noise, sigma_3) / t


def exponential_steps(
    samples: Iterator[float], noise: np.random.Generator, epsilon: float, alpha: float, beta: float, r: float
) -> tuple[int, float]:
    """Sajed and Sheffet, Algorithm 2."""
    sigma_1, sigma_2, sigma_3 = 12 * r / epsilon, 12 * r / epsilon, 4 * r / epsilon
    b = laplace(noise, sigma_1)
    k, t, total = 0, 0, 0.0
    while True:
        k += 1
        while t != 2**k:
            t += 1
            total += next(samples)
        a = laplace(noise, sigma_2)
        c = (
            sigma_1 * math.log(4 / beta)
            + sigma_2 * math.log(8 * k**2 / beta)
            + sigma_3 / alpha * math.log(4 / beta)
        )
        h = r * math.sqrt(2 / t * math.log(16 * k**2 / beta))
        if abs(total / t) >= h * (1 + 1 / alpha) + (c + b + a) / t:
            return t, total / t + laplace(noise, sigma_3) / t


def plain(samples: Iterator[float], alpha: float, beta: float, r: float, steps: str) -> tuple[int, float]:
    """NAS: Hoeffding's inequality at confidence 1 - beta / (2 j^2) at look j."""
    t, look, total = 0, 0, 0.0
    while True:
        t += 1
        total += next(samples)
        if steps == "exponential" and (t < 2 or t & (t - 1)):
            continue
        look += 1
        # 2 exp(-2 t h^2 / (2 r)^2) = beta / (2 look^2)
        h = math.sqrt((2 * r) ** 2 / (2 * t) * math.log(2 / (beta / (2 * look**2))))
        if abs(total / t) >= h * (1 / alpha + 1):
            return t, total / t


LITERAL = {"every": every_step, "exponential": exponential_steps}


@pytest.mark.slow
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize(
    ("epsilon", "alpha", "beta", "bound", "mean"),
    [(1.0, 0.3, 0.05, 1.0, 0.5), (0.1, 0.5, 0.2, 2.0, -0.9), (5.0, 0.2, 0.01, 0.5, 0.3)],
)
def test_private_rule_is_the_pseudo_code(
    steps: str, epsilon: float, alpha: float, beta: float, bound: float, mean: float
) -> None:
    rule = DPNAS(epsilon=epsilon, alpha=alpha, beta=beta, bound=bound, steps=steps)
    for seed in range(4):
        rng = np.random.default_rng([seed, 7])
        samples = bound * np.where(rng.random(70_000) < (1 + mean) / 2, 1.0, -1.0)
        time, estimate = LITERAL[steps](iter(samples), stream_of(seed), epsilon, alpha, beta, bound)
        for stream in (samples, iter(samples)):
            result = rule.run(stream, rng=seed)
            assert result.stopping_time == time
            assert result.estimate == pytest.approx(estimate, rel=1e-12)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize(("alpha", "beta", "bound"), [(0.1, 0.05, 1.0), (0.5, 0.4, 3.0)])
def test_plain_rule_is_hoeffding_at_every_look(steps: str, alpha: float, beta: float, bound: float) -> None:
    rule = NAS(alpha=alpha, beta=beta, bound=bound, steps=steps)
    for seed in range(4):
        samples = bound * np.random.default_rng(seed).uniform(-0.2, 1.0, 70_000)
        time, estimate = plain(iter(samples), alpha, beta, bound, steps)
        result = rule.run(samples)
        assert result.stopping_time == time
        assert result.estimate == pytest.approx(estimate, rel=1e-12)
        assert result.guarantee is None
        assert result.noise is None


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("law", ["bernoulli", "uniform"])
def test_replicates_are_the_pseudo_code(steps: str, law: str) -> None:
    """Samples and noise come from one stream, in the order in which the pseudo-code asks for them."""
    env = BernoulliArms([0.6]) if law == "bernoulli" else UniformArms(low=[-0.2], high=[1.0])
    stream = stream_of(11)

    def samples() -> Iterator[float]:
        while True:
            draw = stream.random()
            yield float(draw < 0.6) if law == "bernoulli" else -0.2 + 1.2 * draw

    sims = DPNAS(epsilon=0.7, alpha=0.4, beta=0.1, steps=steps).replicate(
        env, 5, rng=11, max_rounds=1 << 20, by_rounds=True
    )
    for run in range(5):
        time, estimate = LITERAL[steps](samples(), stream, 0.7, 0.4, 0.1, 1.0)
        assert sims.stopping_time[run] == time
        assert sims.estimate[run] == pytest.approx(estimate, rel=1e-12)


@pytest.mark.parametrize("steps", STEPS)
def test_threshold_identities(steps: str) -> None:
    """t h_t (1 + 1/alpha) + c_t, and the probabilities that its parts leave out."""
    epsilon, alpha, beta, bound = 0.3, 0.25, 0.07, 1.5
    rule = DPNAS(epsilon=epsilon, alpha=alpha, beta=beta, bound=bound, steps=steps).rule(bound, 1.0)
    plain_rule = NAS(alpha=alpha, beta=beta, bound=bound, steps=steps).rule(bound, 1.0)
    for look in (1, 2, 7, 30):
        t = look if steps == "every" else 2**look
        sigma = 12 * bound / epsilon
        h = bound * math.sqrt(2 / t * math.log(16 * look**2 / beta))
        c = (
            sigma * math.log(4 / beta)
            + sigma * math.log(8 * look**2 / beta)
            + 4 * bound / epsilon / alpha * math.log(4 / beta)
        )
        assert halting_sum(rule, float(t), float(look)) == pytest.approx(
            t * h * (1 + 1 / alpha) + c, rel=1e-13
        )
        # Hoeffding for values in an interval of length 2 bound: beta / (8 look^2) is left out
        assert 2 * math.exp(-2 * t * h**2 / (2 * bound) ** 2) == pytest.approx(beta / (8 * look**2))
        width = halting_sum(plain_rule, float(t), float(look)) / (t * (1 + 1 / alpha))
        assert 2 * math.exp(-2 * t * width**2 / (2 * bound) ** 2) == pytest.approx(beta / (2 * look**2))
    # together: deviations and A_t beta/8 a look squared, B and L beta/4 each, where sum 1/j^2 = pi^2/6
    assert beta * (2 * math.pi**2 / 48 + 2 / 4) < beta
    assert beta * math.pi**2 / 12 < beta


@pytest.mark.parametrize("steps", STEPS)
def test_without_noise_only_the_width_is_left(steps: str) -> None:
    """As epsilon grows the private rule becomes NAS at beta / 4, whose log is that of 16 j^2 / beta."""
    samples = np.random.default_rng(3).uniform(0.0, 1.0, 60_000)
    private = DPNAS(epsilon=1e9, alpha=0.2, beta=0.2, steps=steps).run(samples, rng=0)
    limit = NAS(alpha=0.2, beta=0.05, steps=steps).run(samples)
    assert private.stopping_time == limit.stopping_time
    assert private.estimate == pytest.approx(limit.estimate, rel=1e-6)
