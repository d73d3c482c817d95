"""What the stopping rules promise, measured: accuracy, sample sizes, and one law however they are run."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from adaptinf.designs.stopping import stopping_kernel as kernel
from adaptinf.designs.stopping.stopping_results import StoppingReplications
from adaptinf.designs.stopping.stopping_rules import DPNAS, NAS, StoppingRule
from adaptinf.simulation.environments import BernoulliArms, Environment, Replay, UniformArms
from adaptinf.theory.stopping_bounds import (
    private_stopping_limit,
    stopping_limit,
    stopping_time_bound,
    stopping_time_closed_form,
    stopping_time_lower_bound,
)

FOR_EVER = 1 << 40
FALSE_ALARM = 1e-6


def two_points(mean: str, bound: float = 1.0) -> Replay:
    """A law on {-bound, bound} with mean `mean` times the bound."""
    share = (1 + Fraction(mean)) / 2
    values = [bound] * share.numerator + [-bound] * (share.denominator - share.numerator)
    return Replay(pd.DataFrame({"arm": 0, "y": values}), action="arm", reward="y")


def not_above(count: int, runs: int, share: float) -> bool:
    """Whether so many of the runs are compatible with a probability of at most `share`."""
    return bool(stats.binom.sf(count - 1, runs, share) > FALSE_ALARM)


def rules(alpha: float, beta: float, steps: str, epsilons: tuple[float, ...]) -> list[StoppingRule]:
    plain: list[StoppingRule] = [NAS(alpha=alpha, beta=beta, steps=steps)]
    return plain + [DPNAS(epsilon=epsilon, alpha=alpha, beta=beta, steps=steps) for epsilon in epsilons]


def enough(rule: StoppingRule, mean: float) -> float:
    """Samples within which the rule stops with probability at least 1 - beta."""
    epsilon = getattr(rule, "epsilon", None)
    return float(stopping_time_bound(mean, rule.alpha, rule.beta, epsilon, rule.bound, steps=rule.steps))


def check_accuracy(rule: StoppingRule, sims: StoppingReplications, mean: float) -> None:
    runs = sims.stopped.size
    assert sims.stopped.all()
    assert not_above(int(sims.wrong(mean).sum()), runs, rule.beta)
    late = sims.stopping_time > enough(rule, mean)
    assert not_above(int(late.sum()), runs, rule.beta)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("beta", [0.05, 0.9])
def test_estimates_are_as_accurate_as_asked_for(alpha: float, beta: float) -> None:
    laws: list[tuple[Environment, float]] = [
        (two_points("1/5"), 0.2),
        (two_points("-1/20"), -0.05),
        (BernoulliArms([0.02]), 0.02),
        (BernoulliArms([0.97]), 0.97),
    ]
    seen = []
    for rule in rules(alpha, beta, "exponential", (0.01, 0.3, 3.0)):
        for seed, (env, mean) in enumerate(laws):
            sims = rule.replicate(env, 10_000, rng=seed, max_rounds=FOR_EVER)
            check_accuracy(rule, sims, mean)
            seen.append(sims.wrong(mean).mean())
    assert max(seen) > (0.02 if alpha > 0.4 and beta == 0.9 else -1.0)


@pytest.mark.parametrize(
    ("env", "mean"),
    [(UniformArms(low=[-0.4], high=[1.0]), 0.3), (two_points("-4/5"), -0.8), (BernoulliArms([0.5]), 0.5)],
    ids=["uniform", "two-point", "bernoulli"],
)
@pytest.mark.parametrize("steps", ["every", "exponential"])
def test_accuracy_sample_by_sample(env: Environment, mean: float, steps: str) -> None:
    for beta in (0.05, 0.9):
        for rule in rules(0.5, beta, steps, (0.1, 1.0)):
            sims = rule.replicate(env, 400, rng=1, max_rounds=1 << 18, by_rounds=True)
            check_accuracy(rule, sims, mean)


@pytest.mark.parametrize("epsilon", [0.01, 0.3])
def test_without_the_allowance_for_noise_the_promise_is_broken(epsilon: float) -> None:
    """The same kernel with c_t = 0 where noise dominates."""
    design = DPNAS(epsilon=epsilon, alpha=0.5, beta=0.1, steps="exponential")
    rule = design.rule(1.0, 1.0)
    careless = rule._replace(allowance=-rule.query_scale * rule.noise_log)
    for broken, law in ((False, rule), (True, careless)):
        outcomes = np.zeros((5_000, kernel.OUTCOMES))
        rng = np.random.Generator(np.random.SFC64(1))
        kernel.run_by_looks(law, -1.0, 1.0, 0.6, FOR_EVER, rng, np.zeros(kernel.STATE), outcomes)
        wrong = int((np.abs(outcomes[:, kernel.ESTIMATE] - 0.2) >= 0.1).sum())
        assert not_above(wrong, 5_000, 0.1) != broken


@pytest.mark.parametrize("beta", [0.05, 0.9])
def test_a_mean_of_zero_hardly_ever_stops(beta: float) -> None:
    for rule in rules(0.9, beta, "exponential", (0.01, 1.0)):
        sims = rule.replicate(two_points("0"), 20_000, rng=2, max_rounds=1 << 36)
        assert not_above(int(sims.wrong(0.0).sum()), 20_000, beta)
        np.testing.assert_array_equal(sims.wrong(0.0), sims.stopped)
        assert (sims.samples[~sims.stopped] == 1 << 36).all()
    for rule in rules(0.9, beta, "every", (1.0,)):
        sims = rule.replicate(two_points("0"), 200, rng=2, max_rounds=20_000)
        assert not_above(int(sims.stopped.sum()), 200, beta)


@pytest.mark.parametrize("epsilon", [1e-4, 0.01, 0.3, 3.0])
@pytest.mark.parametrize(("mean", "alpha"), [("1/20", 0.1), ("-1/2", 0.5), ("1", 0.9)])
def test_sample_sizes_lie_between_the_bounds(epsilon: float, mean: str, alpha: float) -> None:
    beta, value = 0.05, float(Fraction(mean))
    rule = DPNAS(epsilon=epsilon, alpha=alpha, beta=beta, steps="exponential")
    sims = rule.replicate(two_points(mean), 5_000, rng=3, max_rounds=FOR_EVER)
    upper = stopping_time_closed_form(value, alpha, beta, epsilon)
    assert sims.stopping_time.max() <= upper
    assert enough(rule, value) <= upper
    # more than the private bounds with probability at least 1 - sqrt(beta) - beta
    for lower in (stopping_time_lower_bound, private_stopping_limit):
        exceeded = sims.stopping_time > float(lower(value, alpha, beta, epsilon))
        assert exceeded.mean() > 1 - math.sqrt(beta) - beta
    assert sims.stopping_time.mean() > stopping_limit(value, alpha, beta)


@pytest.mark.parametrize("epsilon", [None, 0.03, 1.0])
@pytest.mark.parametrize("mean", [0.3, 0.9])
def test_exponential_steps_take_at_most_twice_as_many_samples(epsilon: float | None, mean: float) -> None:
    medians = {}
    for steps in ("every", "exponential"):
        design: dict[str, Any] = {"alpha": 0.5, "beta": 0.05, "steps": steps}
        rule = NAS(**design) if epsilon is None else DPNAS(epsilon=epsilon, **design)
        sims = rule.replicate(BernoulliArms([mean]), 192, rng=4, max_rounds=1 << 22)
        medians[steps] = np.median(sims.stopping_time)
    assert medians["exponential"] <= 2.0 * medians["every"]


def test_shortcut_and_samples_agree_in_distribution() -> None:
    rule = DPNAS(epsilon=0.3, alpha=0.5, beta=0.3, steps="exponential")
    for env in (BernoulliArms([0.45]), two_points("3/10")):
        short = rule.replicate(env, 4_096, rng=5, max_rounds=1 << 20)
        loop = rule.replicate(env, 1_024, rng=6, max_rounds=1 << 20, by_rounds=True)
        times = np.unique(short.stopping_time)
        assert times.size >= 2
        table = [[(sims.stopping_time == time).sum() for time in times] for sims in (short, loop)]
        assert stats.chi2_contingency(np.maximum(table, 1)).pvalue > 1e-5
        for time in times:
            parts = [sims.estimate[sims.stopping_time == time] for sims in (short, loop)]
            if min(part.size for part in parts) > 20:
                assert stats.ks_2samp(*parts, method="asymp").pvalue > 1e-5


@pytest.mark.parametrize("steps", ["every", "exponential"])
def test_released_and_simulated_noise_agree_in_distribution(steps: str) -> None:
    rule = DPNAS(epsilon=5.0, alpha=0.9, beta=0.9, bound=2.0, steps=steps)
    samples = np.tile([2.0, 1.0, 2.0], 200)
    runs = 200
    simulated = [rule.run(samples, rng=seed) for seed in range(runs)]
    released = [rule.run(samples, backend="release") for _ in range(runs)]
    assert all(result.stopped for result in simulated + released)
    for name in ("stopping_time", "estimate"):
        values = [[getattr(result, name) for result in results] for results in (simulated, released)]
        assert stats.ks_2samp(*values, method="asymp").pvalue > 1e-5
    assert len({result.stopping_time for result in released}) > (20 if steps == "every" else 1)


def test_two_blocks_are_independent() -> None:
    """Replicates of different blocks share no stream."""
    sims = DPNAS(epsilon=0.3, alpha=0.5, beta=0.3).replicate(
        BernoulliArms([0.9]), 1024, rng=7, max_rounds=FOR_EVER
    )
    blocks = sims.estimate.reshape(-1, 64)
    assert np.unique(blocks).size == 1024
    correlation = np.corrcoef(blocks)[np.triu_indices(16, 1)]
    assert np.abs(correlation).max() < stats.norm.isf(1e-7) / math.sqrt(63)
