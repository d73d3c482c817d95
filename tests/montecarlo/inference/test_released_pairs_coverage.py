"""Coverage of released differences of two arms, by the laws of their designs."""

from __future__ import annotations

import math

import numpy as np

from adaptinf.designs import DPConSE
from adaptinf.designs.arms.elimination_kernel import elimination_epochs
from adaptinf.inference.released.effects import effect_from_two_means, released_intervals
from adaptinf.inference.released.pair_effects import epoch_share
from adaptinf.simulation.environments import BernoulliArms

RUNS = 6_000
FALSE_ALARM = 3.72
"""Normal quantile of 1e-4."""


def slack(level: float) -> float:
    return FALSE_ALARM * math.sqrt(level * (1 - level) / RUNS)


def test_fixed_shares_cover_where_the_plain_interval_does_not() -> None:
    """Two arms whose gap makes the first epoch decide about where its interval begins to miss."""
    horizon, epsilon, means = 20_000, 1.0, np.array([0.5525, 0.4475])
    lengths, thresholds = elimination_epochs(2, horizon, 1 / horizon, epsilon)
    rng = np.random.default_rng(31)
    difference, pulls, share = np.zeros(RUNS), np.zeros(RUNS), np.zeros(RUNS)
    left = np.ones(RUNS, dtype=bool)
    for epoch in (1, 2):  # a third epoch does not fit
        count = int(lengths[2, epoch - 1])
        released = rng.binomial(count, means, (RUNS, 2)) / count
        released += rng.laplace(0.0, 1 / (epsilon * count), (RUNS, 2))
        gap = released[:, 0] - released[:, 1]
        difference[left], pulls[left] = gap[left], count
        share[left] = epoch_share(epoch, last=epoch == 2)
        left &= np.abs(gap) <= thresholds[2, epoch - 1]
    effect = effect_from_two_means(difference, pulls, scale=1 / (epsilon * pulls))
    truth = means[0] - means[1]
    plain = effect.interval(math.log(0.05))
    inside = np.zeros(RUNS, dtype=bool)
    for part in np.unique(share):
        low, high = effect.interval(math.log(0.05 * part))
        inside |= (share == part) & (low <= truth) & (truth <= high)
    assert set(np.unique(share)) == {0.1, 0.9}
    assert inside.mean() >= 0.95 - slack(0.95)
    assert np.mean((plain[0] <= truth) & (truth <= plain[1])) <= 0.9265 + slack(0.9265)


def test_one_context_with_exact_counts_covers() -> None:
    design = DPConSE(epsilon=0.5, alpha=0.2, contrast_share=1.0)
    sims = design.replicate(BernoulliArms([0.4, 0.55]), 4_000, RUNS, rng=8)
    _, low, high = released_intervals(
        sims.released["contrast_sum"],
        sims.released["arrivals"],
        epsilon_sum=0.5,
        epsilon_count=math.inf,
        minimum=0.25 * sims.outcomes[:, :1],
    )
    coverage = float(np.mean((low <= 0.15) & (high >= 0.15)))
    assert abs(coverage - 0.95) <= slack(0.95) + 0.005
