"""What the study of weighted means under Thompson sampling computes of its runs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from adaptinf.designs import Thompson
from adaptinf.simulation.environments import UniformArms
from adaptinf.simulation.replicate import iterate_runs
from case_studies.hadad import arms, contextual, dealt
from case_studies.hadad import run as study

MEANS = (0.5, 1.0, 1.5)


def literal_aipw(log, root: bool) -> tuple[np.ndarray, np.ndarray]:
    """Weighted AIPW means and their covariance, round by round."""
    horizon, size = log.propensities.shape
    scores, weights = np.zeros((horizon, size)), np.ones((horizon, size))
    for t, arm in itertools.product(range(horizon), range(size)):
        before = [log.reward[s] for s in range(t) if log.action[s] == arm]
        every = [log.reward[s] for s in range(t)]
        predicted = sum(before) / len(before) if before else sum(every) / max(t, 1)
        chosen = log.action[t] == arm
        scores[t, arm] = predicted + chosen * (log.reward[t] - predicted) / log.propensities[t, arm]
        if root:
            weights[t, arm] = math.sqrt(log.propensities[t, arm])
    weights[0] = 0.0  # nothing predicts the first round
    estimate = (weights * scores).sum(axis=0) / weights.sum(axis=0)
    influence = weights * (scores - estimate) / weights.sum(axis=0)
    return estimate, influence.T @ influence


def test_estimates_of_a_share_are_those_of_its_logs() -> None:
    belief, horizon = arms.Belief(None, 20), 60
    found = arms.one_share(MEANS, belief, horizon, 3, 5, 8)
    design = Thompson(prior="normal", initial_pulls=5, floor=(1 / 3, 0.7), noise_scale=None, draws=20)
    world = UniformArms([-0.5, 0.0, 0.5], [1.5, 2.0, 2.5])
    for row, run in enumerate(iterate_runs(design, world, horizon, 3, 5, 8)):
        rewards = [run.record.reward[run.record.action == arm] for arm in range(3)]
        plain = np.array([part.mean() for part in rewards])
        variance = np.diag([part.var(ddof=1) / part.size for part in rewards])
        fits = {
            "sample mean": (plain, variance),
            "uniform": literal_aipw(run.record, False),
            "sqrt": literal_aipw(run.record, True),
        }
        for name, (estimate, covariance) in fits.items():
            cells = dict(zip(arms.PLACES, found[row, arms.ESTIMATORS.index(name)], strict=True))
            for place, weight in {
                "worst arm": [1, 0, 0],
                "middle arm": [0, 1, 0],
                "best arm": [0, 0, 1],
                "best - middle": [0, -1, 1],
                "best - worst": [-1, 0, 1],
            }.items():
                expected = weight @ estimate, math.sqrt(weight @ covariance @ np.array(weight))
                assert cells[place] == pytest.approx(expected, rel=1e-9), (name, place)


def test_alee_differs_in_its_standard_errors_alone() -> None:
    found = arms.one_share(MEANS, arms.READINGS["1/3"], 100, 0, 3, 8)
    wide, narrow = (found[:, arms.ESTIMATORS.index(name)] for name in ("ALEE", "ALEE, self-normalised"))
    assert np.array_equal(wide[..., 0], narrow[..., 0])
    assert np.all(wide[..., 1] > narrow[..., 1])


def test_replications_do_not_depend_on_the_number_of_workers() -> None:
    belief = arms.READINGS["estimated"]
    alone = arms.replications(MEANS, belief, 40, 70, 3, 1)
    assert alone.shape == (70, len(arms.ESTIMATORS), len(arms.PLACES), 2)
    assert np.array_equal(alone, arms.replications(MEANS, belief, 40, 70, 3, 2))
    assert np.array_equal(alone, arms.one_share(MEANS, belief, 40, 0, 70, 3))


def test_coverage_counts_intervals_that_hold_the_target() -> None:
    target = arms.targets(MEANS)
    assert target == pytest.approx([0.5, 1.5, 1.0, 0.5, 1.0])
    found = np.zeros((4, 1, 5, 2))
    found[..., 0], found[..., 1] = target, 1.0
    found[0, 0, 0, 0] += 1.64
    found[1, 0, 0, 0] -= 1.65
    found[2, 0, 1, 1] = np.nan
    assert arms.covered(found, target).tolist() == [[0.75, 0.75, 1.0, 1.0, 1.0]]


def paper_table(shift: float) -> pd.DataFrame:
    """A table that has the paper's figures everywhere, but for one that is shifted."""
    rows = [
        {"noise": noise, "of": of, "T": 1_000, "signal": signal, "estimator": name, "coverage": paper}
        for noise, of in itertools.product((*study.READINGS, dealt.DEALT), study.CONTRASTS)
        for signal, values in study.PAPER.items()
        for name, paper in values.items()
    ]
    table = pd.DataFrame(rows)
    one = (table["noise"] == "1") & (table["of"] == "best - worst") & (table["estimator"] == "sqrt")
    table.loc[one & (table["signal"] == "no signal"), "coverage"] += shift
    return table


@pytest.mark.parametrize(("shift", "agree"), [(-0.018, 8), (-0.019, 7)])
def test_readings_are_compared_with_every_figure_of_the_paper(shift: float, agree: int) -> None:
    found = study.readings(paper_table(shift)).set_index(["noise variance", "contrast"])
    shifted = found.loc[("1", "best - worst")]
    assert shifted["figures that agree, of 8"] == agree
    assert shifted["largest distance"] == pytest.approx(shift)
    assert shifted["root mean square"] == pytest.approx(-shift / math.sqrt(8))
    others = found.drop(("1", "best - worst"))
    assert len(others) == 7
    assert (others["figures that agree, of 8"] == 8).all()
    assert (others["root mean square"] == 0.0).all()


def test_chances_are_those_of_the_posterior_and_above_the_floor() -> None:
    counts, sums = np.array([[4.0, 9.0], [0.0, 50.0]]), np.array([[4.0, 3.0], [0.0, 60.0]])
    found = dealt.best_chances(counts, sums, 1 / 3, 0.1, 1_000, np.random.default_rng(0))
    precision = 1.0 + 3.0 * counts
    gap = (3.0 * sums / precision) @ np.array([-1.0, 1.0])
    chance = stats.norm.cdf(gap / np.sqrt((1.0 / precision).sum(axis=1)))
    first = np.maximum(np.column_stack([1.0 - chance, chance]) - 0.1, 0.0)
    expected = 0.1 + 0.8 * first / first.sum(axis=1, keepdims=True)
    assert found.sum(axis=1) == pytest.approx(1.0)
    assert found.min() >= 0.1
    assert found == pytest.approx(expected, abs=0.05)
    assert found[0, 0] > found[0, 1]


def test_arms_are_dealt_in_turn_before_they_are_drawn() -> None:
    logs = dealt.dealt_logs(MEANS, 200, 50, np.random.default_rng(1))
    assert np.array_equal(logs.action[:, :15], np.tile(np.arange(15) % 3, (50, 1)))
    assert logs.propensities[:, :15] == pytest.approx(1.0 / 3.0)
    assert logs.propensities.sum(axis=2) == pytest.approx(1.0)
    floor = np.arange(16, 201) ** -0.7 / 3.0
    assert np.all(logs.propensities[:, 15:].min(axis=(0, 2)) >= floor - 1e-12)
    assert np.abs(logs.reward - np.array(MEANS)[logs.action]).max() <= 1.0
    # drawn with the logged probabilities
    chosen = np.eye(3)[logs.action[:, 15:]]
    drift = (chosen - logs.propensities[:, 15:]).sum(axis=(0, 1))
    spread = (logs.propensities * (1.0 - logs.propensities))[:, 15:].sum(axis=(0, 1))
    assert np.abs(drift / np.sqrt(spread)).max() < 4.0
    assert (logs.action[:, 100:] == 2).mean() > 0.9


def test_dealt_trials_believe_in_the_noise_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def chances(counts, sums, noise, floor, draws, rng):
        seen.append((counts.copy(), sums.copy(), noise, floor, draws))
        return np.full(counts.shape, 1.0 / 3.0)

    monkeypatch.setattr(dealt, "best_chances", chances)
    logs = dealt.dealt_logs(MEANS, 17, 4, np.random.default_rng(1))
    counts, sums, noise, floor, draws = seen[-1]
    for run in range(4):
        rewards = [logs.reward[run, :16][logs.action[run, :16] == arm] for arm in range(3)]
        assert counts[run].tolist() == [part.size for part in rewards]
        assert sums[run] == pytest.approx([part.sum() for part in rewards])
        assert noise[run] == pytest.approx([part.var() for part in rewards])
    assert (floor, draws) == (pytest.approx(17.0**-0.7 / 3.0), 20)


def test_a_trial_logs_what_its_snapshots_say() -> None:
    means = (0.0, 5.0, 10.0)
    log, snapshots = contextual.trial(means, np.random.default_rng(4))
    x, action = log.arrays.context["x"], log.arrays.action
    true = np.where(x > 0.0, np.array(means)[action], np.array(means)[2 - action])
    assert np.abs(log.arrays.reward - true).max() <= 1.0
    for batch, policy in enumerate(snapshots.policies):
        rows = slice(100 * batch, 100 * (batch + 1))
        assert log.arrays.propensities[rows] == pytest.approx(policy(pd.DataFrame({"x": x[rows]})))
    assert log.arrays.propensities[:100] == pytest.approx(1.0 / 3.0)
    assert log.arrays.propensities[900:].min() == pytest.approx(901.0**-0.7 / 3.0)
    assert log.arrays.propensity == pytest.approx(log.arrays.propensities[np.arange(1_000), action])


def test_policies_take_the_same_arm_on_each_side() -> None:
    means = (0.0, 5.0, 10.0)
    log, _ = contextual.trial(means, np.random.default_rng(4))
    assert contextual.contextual_targets(means).tolist() == [0.0, 10.0, 5.0]
    for rows, mean in ((contextual.WORST, 0.0), (contextual.MIDDLE, 5.0), (contextual.BEST, 10.0)):
        value, variance = contextual.matched(log, rows)
        assert abs(value - mean) < 5.0 * math.sqrt(variance)


def test_terms_of_a_contextual_trial_are_about_their_targets() -> None:
    found = contextual.one_trial(MEANS, (2, 0), 5)
    assert found.shape == (1 + len(contextual.FITS), len(contextual.TERMS), 2)
    errors = found[..., 0] - contextual.contextual_targets(MEANS)
    assert np.abs(errors / found[..., 1]).max() < 5.0
    assert not np.array_equal(found, contextual.one_trial(MEANS, (2, 1), 5))


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("best - middle", "best_minus_middle"),
        ("min-variance, contextual", "min_variance_contextual"),
        ("1/3", "1_of_3"),
    ],
)
def test_labels_become_names(label: str, expected: str) -> None:
    assert study.short(label) == expected
