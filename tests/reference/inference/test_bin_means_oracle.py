"""Tests of bin means against literal sums over releases, and their laws against simulated ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from adaptinf.designs.local.bins import LDPBandit
from adaptinf.inference.released.bin_tests import (
    AnytimeTest,
    BinReports,
    BudgetTest,
    InvertedTest,
    coins,
    read_reports,
)
from adaptinf.inference.released.released_bin_means import BinMeans
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments.vector_arms import SmoothArms

ARMS = SmoothArms(3, 2)


def rows_of(log: AdaptiveLog, b: int) -> dict[tuple[str, int], float]:
    """Values of a bin's releases by name and round."""
    own = log.releases[log.releases["group"] == b]
    return dict(zip(zip(own["name"], own["round"], strict=True), own["value"], strict=True))


def literal_z(told: dict[tuple[str, int], float], scale: float, k: int, f: float, coin: float) -> float:
    """Z(f) of arm k in the bin of these releases."""
    ends = sorted(end for name, end in told if name == f"weighted_count_{k}")
    z = used = C = S = D = 0.0
    for end in ends:
        A = told["spent", end] - used
        dC = told[f"weighted_count_{k}", end] - C
        dS = told[f"weighted_sum_{k}", end] - S
        dD = told[f"weighted_squares_{k}", end] - D
        variance = 2 * scale**2 * (1 + f**2) * A + max(dD, 0.0) * f * (1 - f)
        z += math.sqrt(A) * (dS - f * dC) / math.sqrt(variance)
        used, C, S, D = used + A, C + dC, S + dS, D + dD
    return z + math.sqrt(max(1 - used, 0.0)) * coin


@pytest.mark.parametrize("epsilon", [20.0, 1024.0])
def test_statistic_and_interval_are_the_literal_ones(epsilon: float) -> None:
    log = LDPBandit(epsilon=epsilon).run(ARMS, 4_000, rng=0)
    known = read_reports(log)
    coin = coins(known, 5)
    test = BudgetTest(known, coin)
    result = BinMeans(log).fit(rng=5, null=0.3)
    limits = result.conf_int().to_numpy()
    p = result.pvalues.to_numpy()
    dense = np.linspace(0.0, 1.0, 401)
    several = 0
    for code in range(0, known.count.size, 2):
        told, k = rows_of(log, int(known.bins[code])), known.arms[code]
        several += (known.spent[code] > 0.0).sum() > 1
        z = np.array([literal_z(told, known.scale, k, f, coin[code]) for f in (0.0, 0.3, 0.9, 1.0)])
        row = np.broadcast_to([0.0, 0.3, 0.9, 1.0], (known.count.size, 4))
        np.testing.assert_allclose(test.statistic(row)[code], z, rtol=1e-9, atol=1e-9)
        if limits[code, 0] < limits[code, 1]:
            scan = [
                f for f in dense if abs(literal_z(told, known.scale, k, f, coin[code])) < 1.959963984540054
            ]
            if scan:
                assert limits[code, 0] - 1e-12 <= scan[0] <= limits[code, 0] + 1 / 400
                assert limits[code, 1] - 1 / 400 <= scan[-1] <= limits[code, 1] + 1e-12
            inside = limits[code, 0] <= 0.3 <= limits[code, 1]
            assert p[code] >= 2 * stats.norm.sf(abs(z[1])) - 1e-12
            assert (p[code] > 0.05) == inside
    assert several >= 1


def one_pair(count: float, total: float, t: int, scale: float) -> BinReports:
    one = np.ones((1, 1))
    return BinReports(
        bins=np.zeros(1, dtype=np.int64),
        arms=(0,),
        low=np.zeros((1, 1)),
        high=one,
        participants=np.array([float(t)]),
        count=np.array([count]),
        total=np.array([total]),
        ahead=np.array([1_000.0]),
        spent=one,
        weighted_count=one,
        weighted_total=one,
        weighted_squares=one,
        scale=scale,
        words=(0,),
    )


@pytest.mark.parametrize("scale", [0.004, 0.5, 2.0])
def test_wealth_is_the_mean_of_its_factors_and_each_factor_has_mean_one(scale: float) -> None:
    known = one_pair(31.0, 12.5, 100, scale)
    test = AnytimeTest(known)
    f = 0.35
    slopes = test.slopes()[0]
    g = np.log(1 - f + f * np.exp(slopes))
    per = (1 - slopes**2 * scale**2) * (1 - g**2 * scale**2)
    wealth = np.mean(np.exp(slopes * 12.5 - g * 31.0 + 100 * np.log(per)))
    assert test.log_wealth(np.array([[f]]))[0, 0] == pytest.approx(math.log(wealth), rel=1e-10)
    for p in (0.05, 1.0):
        # one participant: Laplace moment generating functions, and a pull with a reward of 0 or 1
        noise = 1 / ((1 - slopes**2 * scale**2) * (1 - g**2 * scale**2))
        pull = 1 - p + p * np.exp(-g) * (1 - f + f * np.exp(slopes))
        np.testing.assert_allclose(per * noise * pull, 1.0, rtol=1e-12)
        # a reward of the same mean that is not binary has less
        milder = 1 - p + p * np.exp(-g) * (0.5 * np.exp(slopes * 0.3) + 0.5 * np.exp(slopes * 0.4))
        assert (per * noise * milder <= 1.0 + 1e-12).all()


def test_whoever_stops_at_the_smallest_p_value_is_still_right() -> None:
    """Analysts who look after every 20 participants and stop once p <= .1; a plain z would not do."""
    rng = np.random.default_rng(1)
    runs, n, f, p, scale = 1_500, 1_000, 0.3, 0.3, 0.2
    pull = rng.random((runs, n)) < p
    count = np.cumsum(pull + rng.laplace(scale=scale, size=(runs, n)), axis=1)[:, 19::20]
    total = np.cumsum(pull * (rng.random((runs, n)) < f) + rng.laplace(scale=scale, size=(runs, n)), axis=1)
    total = total[:, 19::20]
    rejected, naive = np.zeros(runs, dtype=bool), np.zeros(runs, dtype=bool)
    for look in range(count.shape[1]):
        t = 20.0 * (look + 1)
        known = one_pair(0.0, 0.0, 1, scale)
        wealth = [
            np.full(runs, 0.0) + slope * total[:, look] - g * count[:, look] + t * c
            for slope, g, c in factors(known, f)
        ]
        rejected |= np.mean(np.exp(wealth), axis=0) >= 10.0
        spread = np.sqrt(2 * scale**2 * t * (1 + f**2) + t * p * f * (1 - f))
        naive |= np.abs(total[:, look] - f * count[:, look]) >= 1.645 * spread
    assert rejected.sum() <= stats.binom.ppf(1 - 1e-5, runs, 0.1)
    assert naive.mean() > 0.3


def factors(known: BinReports, f: float) -> list[tuple[float, float, float]]:
    """Slope, cost of a count and of a participant, for the slopes that the library takes."""
    rows = []
    for slope in AnytimeTest(known).slopes()[0]:
        g = math.log(1 - f + f * math.exp(slope))
        rows.append((slope, g, math.log((1 - (slope * known.scale) ** 2) * (1 - (g * known.scale) ** 2))))
    return rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "horizon", "runs"),
    [
        (LDPBandit(epsilon=1024.0), 4_000, 60),
        (LDPBandit(epsilon=32.0, refinement=0.4), 10_000, 30),
        (LDPBandit(epsilon=4.0), 20_000, 120),
        (LDPBandit(epsilon=8.0, calibration="published", check_every=20), 10_000, 30),
    ],
)
def test_z_at_the_truth_is_standard_normal_for_every_pair_and_intervals_cover(
    design: LDPBandit, horizon: int, runs: int
) -> None:
    """First and second moments and coverage, with errors over runs: pairs of one run are dependent."""
    z, hits, sizes = [], [], []
    for log in design.logs(ARMS, horizon, runs, rng=7):
        known = read_reports(log)
        truth = ARMS.averages(known.low, known.high)[np.arange(known.count.size), list(known.arms)]
        test = BudgetTest(known, coins(known, 0))
        z.append(test.statistic(truth[:, None])[:, 0])
        low, high = InvertedTest(test, "", False).interval(math.log(0.05)).T
        hits.append(((low <= truth) & (truth <= high)).sum())
        sizes.append(truth.size)
    total = sum(sizes)
    for power, centre in ((1, 0.0), (2, 1.0)):
        sums = np.array([(part**power - centre).sum() for part in z])
        assert abs(sums.sum()) < 4.5 * math.sqrt(runs) * sums.std() + 0.02 * total
    off = np.array(hits) - 0.95 * np.array(sizes)
    assert abs(off.sum()) < 4.5 * math.sqrt(runs) * off.std() + 0.005 * total
    assert total > 800
