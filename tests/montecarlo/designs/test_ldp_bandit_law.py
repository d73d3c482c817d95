"""The locally private bandit: law of its noise, regret in the paper's setting, and what its radius holds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from adaptinf.designs.local.bins import LDPBandit, bin_sums
from adaptinf.simulation.environments.vector_arms import SmoothArms
from adaptinf.simulation.transcripts import sample_transcripts

ARMS = SmoothArms(3, 2)
UNIFORM = 34_978


def first_sums(check_every: int, horizon: int, runs: int, seed: int) -> np.ndarray:
    """Noise of both sums of the cube where no bin is ever halved, in units of one participant's scale."""
    design = LDPBandit(epsilon=1e-6, check_every=check_every, max_bins=1)
    values = []
    for seen in sample_transcripts(design, ARMS, horizon, 0, runs, np.random.SeedSequence(seed)):
        name, end = seen.releases[:, :, 1], seen.releases[:, :, 0] == horizon
        for arm in range(3):
            participants, count, total = (end & (name == 4 + 3 * arm + part) for part in range(3))
            assert (seen.releases[participants][:, 3] == horizon).all()
            values += [seen.releases[count][:, 3], seen.releases[total][:, 3]]
    assert [len(each) for each in values] == [runs] * 6
    return np.concatenate(values) / 4e6


@pytest.mark.parametrize("check_every", [1, 2, 5, 100])
def test_noise_is_a_sum_of_as_many_laplace_draws_as_participants(check_every: int) -> None:
    """Five participants: far from normal, so that a wrong law of a gap's noise would show."""
    for horizon in (2, 5):
        sample = first_sums(check_every, horizon, 700, check_every)
        reference = np.random.default_rng(1).laplace(size=(200_000, horizon)).sum(axis=1)
        assert stats.ks_2samp(sample, reference).pvalue > 1e-5
        assert abs((sample**2).mean() / (2.0 * horizon) - 1.0) < 4.5 * math.sqrt(5.0 / sample.size)


def mean_regret(design: LDPBandit, runs: int) -> tuple[float, float]:
    regret = design.replicate(ARMS, 80_000, runs, rng=2).regret
    return float(regret.mean()), float(regret.std(ddof=1) / math.sqrt(runs))


@pytest.mark.parametrize("axis", ["random", "first"])
def test_regret_falls_with_epsilon_and_there_is_no_learning_at_one(axis: str) -> None:
    """n = 80,000, K = 3, d = 2; uniform choice has 34,978."""
    figures = [mean_regret(LDPBandit(epsilon=epsilon, axis=axis), 12) for epsilon in (2.0, 4.0, 8.0, 1024.0)]
    assert all(now[0] < before[0] for before, now in itertools.pairwise(figures))
    assert figures[-1][0] < 0.2 * UNIFORM
    mean, error = mean_regret(LDPBandit(epsilon=1.0, axis=axis), 12)
    assert abs(mean - UNIFORM) < 4.5 * max(error, 20.0)
    if axis == "first":
        for (mean, _), known in zip(figures, (32_800, 17_700, 10_100, 3_600), strict=True):
            assert mean == pytest.approx(known, rel=0.2)


def test_the_published_radius_halves_bins_on_noise_and_learns_nothing() -> None:
    for epsilon in (1.0, 2.0):
        design = LDPBandit(epsilon=epsilon, calibration="published")
        sims = design.replicate(ARMS, 80_000, 8, rng=3)
        error = sims.regret.std(ddof=1) / math.sqrt(8)
        assert sims.regret.mean() > UNIFORM - 4.5 * error - 500
        assert sims.released["bins"].mean() > 50
        corrected = LDPBandit(epsilon=epsilon).replicate(ARMS, 80_000, 8, rng=3)
        assert corrected.released["bins"].mean() < 4


def test_a_single_check_misses_no_more_often_than_the_normal_law_says() -> None:
    """One bin and check: at C = 4 |f - mean over the arm's visitors| exceeds r in less than 4.6%."""
    design = LDPBandit(epsilon=20.0, width=4.0, max_bins=1, check_every=4_000)
    missed = total = 0
    for log in design.logs(ARMS, 4_000, 400, rng=4):
        points = np.stack([log.arrays.context["x1"], log.arrays.context["x2"]], axis=1)
        f = ARMS.expected(points)
        for row in bin_sums(log).itertuples():
            own = log.arrays.action == row.arm
            shortfall = math.sqrt(32 * 4.0 * 4_000) / 20.0
            assert row.count > shortfall
            radius = math.sqrt(4.0 * (64 * 4_000 / 400.0 + row.count / 4)) / (row.count - shortfall)
            missed += abs(row.sum / row.count - f[own, row.arm].mean()) > radius
            total += 1
    assert total == 1_200
    assert missed < stats.binom.ppf(1 - 1e-5, total, 0.0456)
    assert missed >= 1
