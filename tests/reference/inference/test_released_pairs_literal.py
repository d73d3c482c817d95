"""The released difference of two arms against a literal reading: epochs, shares of alpha, and its law."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from adaptinf.designs import Mixture, PrivateSuccessiveElimination
from adaptinf.inference.released.effects import effect_from_two_means
from adaptinf.inference.released.pair_effects import epoch_share, pair_effect
from adaptinf.log import AdaptiveLog, FreshEpochs
from adaptinf.simulation.environments import BernoulliArms

SETTINGS = [
    (PrivateSuccessiveElimination(epsilon=1.0), [0.5, 0.5], 20_000),
    (PrivateSuccessiveElimination(epsilon=1.0), [0.57, 0.43], 100_000),
    (PrivateSuccessiveElimination(epsilon=0.05, beta=0.01), [0.6, 0.4, 0.5], 30_000),
    (PrivateSuccessiveElimination(epsilon=3.0, beta=0.2), [0.6, 0.46, 0.4, 0.1], 60_000),
]


def literal_path(log: AdaptiveLog, epsilon: float, beta: float | None) -> list[dict[str, object]]:
    """Every epoch of a run: arms, pulls, released means by arm and what of alpha was to be spent on it."""
    horizon = log.n_rounds
    beta = 1 / horizon if beta is None else beta
    left, start, alive, path = 1.0, 0, list(log.arms), []

    def pulls(arms: int, epoch: int) -> tuple[int, float]:
        wide, noise = math.log(8 * arms * epoch**2 / beta), math.log(4 * arms * epoch**2 / beta)
        length = max(32 * wide * 4**epoch, 8 * noise * 2**epoch / epsilon) + 1
        return math.ceil(length), 2 * math.sqrt(wide / (2 * length)) + 2 * noise / (length * epsilon)

    for epoch in range(1, 40):
        count, threshold = pulls(len(alive), epoch)
        end = start + len(alive) * count
        if len(alive) < 2 or end > horizon:
            return path
        share = left if end + 2 * pulls(2, epoch + 1)[0] > horizon else left / 10
        left -= share
        rows = log.releases[log.releases["round"] == end]
        means = dict(zip(rows["group"], rows["value"], strict=True))
        assert set(means) == set(alive)
        for arm in alive:
            own = (log.arrays.action[start:end] == arm).sum()
            assert own == count
            raw = log.arrays.reward[start:end][log.arrays.action[start:end] == arm].mean()
            assert abs(means[arm] - raw) < 40 / (epsilon * count)
        path.append({"means": means, "pulls": count, "share": share, "epoch": epoch})
        best = max(means.values())
        alive = [arm for arm in alive if best - means[arm] <= threshold]
        start = end
    raise AssertionError


@pytest.mark.parametrize("setting", range(len(SETTINGS)))
def test_the_pair_is_that_of_the_literal_path(setting: int) -> None:
    design, means, horizon = SETTINGS[setting]
    seen = set()
    for log in design.logs(BernoulliArms(means), horizon, 25, rng=setting):
        path = literal_path(log, design.epsilon, design.beta)
        assert sum(step["share"] for step in path) <= 1.0 + 1e-12
        for first, second in [(0, 1), (1, 0), (len(means) - 1, 0)]:
            last = [step for step in path if {first, second} <= set(step["means"])][-1]
            found = pair_effect(log, first, second)
            assert found.estimate == last["means"][first] - last["means"][second]
            assert found.details == {"pulls_an_arm": last["pulls"], "epoch": last["epoch"]}
            assert found.share == pytest.approx(last["share"], rel=1e-12)
            seen.add((last["epoch"], round(last["share"], 6)))
            after = pair_effect(log, first, second, named_after=True)
            assert after.share == pytest.approx(last["share"] / math.comb(len(means), 2), rel=1e-12)
    assert len(seen) >= (1 if setting == 0 else 2)


def test_a_mixture_ends_its_epochs_later_but_plans_the_same_shares() -> None:
    design = Mixture(PrivateSuccessiveElimination(epsilon=1.0), exploration=0.3)
    log = design.run(BernoulliArms([0.5, 0.5]), 24_000, rng=3)
    ends = np.unique(log.releases["round"])
    assert ends[0] > 2 * 1_624
    found = pair_effect(log, 0, 1)
    first = math.ceil(float(FreshEpochs(1.0).length(2, 1, 24_000)))
    second = math.ceil(float(FreshEpochs(1.0).length(2, 2, 24_000)))
    assert found.details["epoch"] == len(ends) == 1  # the second would have ended at 25,000 or later
    assert 2 * (first + second) <= 24_000
    assert found.share == epoch_share(1, last=False) == pytest.approx(0.1)


def test_shares_sum_to_at_most_one_on_every_path() -> None:
    """Whatever is dropped when, with the arms left in each epoch drawn at random."""
    rng = np.random.default_rng(7)
    totals = []
    for _ in range(500):
        horizon = int(10 ** rng.uniform(3.6, 7.0))
        epochs = FreshEpochs(10 ** rng.uniform(-2.0, 1.0), rng.choice([None, 0.01, 0.5]))
        arms, begin, total = int(rng.integers(2, 9)), 0, 0.0
        for epoch in range(1, 64):
            pulls = math.ceil(float(epochs.length(arms, epoch, horizon)))
            begin += arms * pulls
            if begin > horizon:
                break
            following = 2 * math.ceil(float(epochs.length(2, epoch + 1, horizon)))
            total += epoch_share(epoch, last=begin + following > horizon)
            arms = int(rng.integers(2, arms + 1))
        totals.append(total)
    assert max(totals) == pytest.approx(1.0)
    assert max(totals) <= 1.0 + 1e-12


def two_noises_tail(x: float, sigma: float, scale: float) -> float:
    """P(sigma Z + L + L' > x), two Laplace variables of one scale, by quadrature."""

    def integrand(y: float) -> float:
        density = (1 + abs(y) / scale) * math.exp(-abs(y) / scale) / (4 * scale)
        return density * float(stats.norm.sf((x - y) / sigma))

    parts = [(-60 * scale, 0.0), (0.0, 60 * scale)]
    return sum(integrate.quad(integrand, *part, limit=400, epsabs=1e-13)[0] for part in parts)


@pytest.mark.parametrize(("pulls", "epsilon"), [(1_624, 1.0), (400, 0.01), (60, 0.2)])
def test_pvalues_are_tails_of_the_stated_law(pulls: int, epsilon: float) -> None:
    scale = 1.0 / (epsilon * pulls)
    effect = effect_from_two_means([0.11, -0.3, 0.9], pulls, scale=scale)
    for null in (-0.2, 0.0, 0.11, 0.35):
        found = np.exp(effect.log_pvalues(null))
        for value, center in zip(found, effect.center, strict=True):
            sigma = math.sqrt((1 - null**2) / (2 * pulls))
            expected = min(1.0, 2 * two_noises_tail(abs(center - null), sigma, scale))
            assert value == pytest.approx(expected, rel=2e-6, abs=1e-9)


def test_the_variance_is_never_above_its_bound() -> None:
    """Of the difference of two means of 0/1 rewards; attained where the means sum to 1."""
    first, second = np.meshgrid(np.linspace(0, 1, 101), np.linspace(0, 1, 101))
    variance = first * (1 - first) + second * (1 - second)
    bound = (1 - (first - second) ** 2) / 2
    assert (variance <= bound + 1e-12).all()
    on_line = np.isclose(first + second, 1.0)
    np.testing.assert_allclose(variance[on_line], bound[on_line], atol=1e-12)
