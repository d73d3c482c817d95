"""Diagnostics against slow versions written from their formulas, round by round, and against scipy."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from claims_said import says
from scipy import stats

from adaptinf import designs
from adaptinf.claims import diagnosis as claims
from adaptinf.inference.arms.models import ArmMeans
from adaptinf.inference.arms.question import Choice
from adaptinf.inference.diagnostics.accumulators import ScoreSums, score_sums
from adaptinf.inference.diagnostics.arm_checks import (
    batch_groups,
    common_drift,
    drifts,
    fitted_chosen_decay,
    fitted_decay,
    mean_differences,
)
from adaptinf.inference.diagnostics.choice_checks import EDGES, calibration_bins, inverse_sums, log_wealth
from adaptinf.inference.diagnostics.log_checks import diagnose
from adaptinf.inference.scores.score_stream import stream_of
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import BernoulliArms

CLOSE = {"rel": 1e-9, "abs": 1e-9}
ENV = BernoulliArms([0.4, 0.6, 0.5])


@functools.cache
def thompson() -> AdaptiveLog:
    return designs.Thompson(floor=(0.3, 0.3), batch_size=40).run(ENV, 1200, rng=11)


@functools.cache
def greedy() -> AdaptiveLog:
    return designs.EpsilonGreedy(exploration=0.45).run(ENV, 900, rng=5)


@pytest.fixture
def log(request: pytest.FixtureRequest) -> AdaptiveLog:
    gathered: AdaptiveLog = request.param()
    return gathered


LOGS = pytest.mark.parametrize("log", [thompson, greedy], ids=["thompson", "greedy"], indirect=True)


def literal_scores(log: AdaptiveLog, weight: str) -> tuple[list[list[float]], list[list[float]]]:
    """AIPW scores with the running mean, and their weights, one round after another."""
    arrays = log.arrays
    seen, total, every = [0] * log.n_arms, [0.0] * log.n_arms, 0.0
    scores, weights = [], []
    for t in range(log.n_rounds):
        row, h = [], []
        for arm in range(log.n_arms):
            predicted = total[arm] / seen[arm] if seen[arm] else every / max(t, 1)
            e = arrays.propensities[t, arm]
            here = arrays.action[t] == arm
            row.append(predicted + (arrays.reward[t] - predicted) / e * here)
            h.append(0.0 if t == 0 else math.sqrt(e) if weight == "sqrt" else 1.0)
        scores.append(row)
        weights.append(h)
        seen[arrays.action[t]] += 1
        total[arrays.action[t]] += arrays.reward[t]
        every += arrays.reward[t]
    return scores, weights


def sums_of(log: AdaptiveLog, weight: str, group: np.ndarray | None = None) -> ScoreSums:
    arrays = log.arrays
    one = np.zeros(log.n_rounds, dtype=np.int64) if group is None else group
    every = arrays.propensities
    codes = np.arange(log.n_arms)
    return score_sums(
        stream_of(arrays.action, arrays.reward, arrays.propensity, every, codes, weights=weight), one
    )


def literal_mean(scores: list[float], weights: list[float]) -> tuple[float, list[float]]:
    whole = sum(weights)
    mean = sum(w * s for w, s in zip(weights, scores, strict=True)) / whole
    return mean, [w * (s - mean) / whole for w, s in zip(weights, scores, strict=True)]


@LOGS
def test_count_test(log: AdaptiveLog) -> None:
    """M' V^- M with one arm left out, V built up round by round."""
    e = log.arrays.propensities
    difference, V = np.zeros(3), np.zeros((3, 3))
    for t in range(log.n_rounds):
        for a in range(3):
            difference[a] += (log.arrays.action[t] == a) - e[t, a]
            for b in range(3):
                V[a, b] += e[t, a] * (a == b) - e[t, a] * e[t, b]
    expected = difference[:2] @ np.linalg.solve(V[:2, :2], difference[:2])
    row = diagnose(log).check("sample ratio")[0]
    assert row.statistic == pytest.approx(expected, **CLOSE)
    assert row.log_pvalue == pytest.approx(stats.chi2.logsf(expected, 2), **CLOSE)
    assert row.measure == "chi2(2)"


def test_uniform_designs_give_pearsons_test() -> None:
    log = designs.Uniform().run(ENV, 500, rng=3)
    counts = np.bincount(log.arrays.action, minlength=3)
    for row in (
        diagnose(log).check("sample ratio")[0],
        diagnose(log, expected=[2.0, 2.0, 2.0]).check("sample ratio")[0],
    ):
        pearson = stats.chisquare(counts)
        assert row.statistic == pytest.approx(pearson.statistic, **CLOSE)
        assert math.exp(row.log_pvalue) == pytest.approx(pearson.pvalue, **CLOSE)
    declared = diagnose(log, expected=[1, 2, 1]).check("sample ratio")[0]
    pearson = stats.chisquare(counts, 500 * np.array([0.25, 0.5, 0.25]))
    assert declared.statistic == pytest.approx(pearson.statistic, **CLOSE)


def literal_bins(chosen: list[bool], e: list[float]) -> list[tuple[float, float, float, int]]:
    """Observed, expected and variance of each bin: bins from low to high, joined until the variance is 10."""
    bounds = [0.0, *EDGES, 1.0]
    bins, current = [], [0.0, 0.0, 0.0, 0]
    for low, high in itertools.pairwise(bounds):
        for here, p in zip(chosen, e, strict=True):
            if low < p <= high and p < 1.0:
                current[0] += here
                current[1] += p
                current[2] += p * (1.0 - p)
                current[3] += 1
        if current[2] >= 10.0:
            bins.append(current)
            current = [0.0, 0.0, 0.0, 0]
    for place in range(4):
        bins[-1][place] += current[place]
    return [tuple(part) for part in bins]


@LOGS
def test_calibration_bins(log: AdaptiveLog) -> None:
    found = diagnose(log)
    for arm in range(3):
        chosen = (log.arrays.action == arm).tolist()
        bins = literal_bins(chosen, log.arrays.propensities[:, arm].tolist())
        assert len(bins) > 1 or (log is greedy() and arm == 0)
        expected = sum((o - m) ** 2 / v for o, m, v, _ in bins)
        row = found.check("propensity calibration", str(arm))[0]
        assert row.statistic == pytest.approx(expected, **CLOSE)
        assert row.measure == f"chi2({len(bins)}), bins"
        assert row.log_pvalue == pytest.approx(stats.chi2.logsf(expected, len(bins)), **CLOSE)
        table = found.tables["calibration"].query("arm == @arm")
        assert table["rounds"].tolist() == [part[3] for part in bins]
        assert table["expected"].tolist() == pytest.approx([part[1] for part in bins])
        assert table["observed"].tolist() == [part[0] for part in bins]


@LOGS
def test_joint_calibration(log: AdaptiveLog) -> None:
    """Increments of every arm and bin in each round; predictable covariance added up over the rounds."""
    e = log.arrays.propensities
    parts = calibration_bins(log.arrays.action, e)
    code = [parts[a].merged[np.searchsorted(EDGES, e[:, a])] for a in range(3)]
    places = [(a, j) for a in range(3) for j in range(parts[a].rounds.size)]
    M, V = np.zeros(len(places)), np.zeros((len(places), len(places)))
    for t in range(log.n_rounds):
        active = [code[a][t] == j for a, j in places]
        for i, (a, _) in enumerate(places):
            M[i] += active[i] * ((log.arrays.action[t] == a) - e[t, a])
            for k, (b, _) in enumerate(places):
                V[i, k] += active[i] * active[k] * (e[t, a] * (a == b) - e[t, a] * e[t, b])
    size = np.sqrt(np.diag(V))
    correlation = V / np.outer(size, size)
    inverse = np.linalg.pinv(correlation, rcond=1e-3, hermitian=True)
    rank = int(np.linalg.matrix_rank(correlation, tol=1e-3 * np.linalg.eigvalsh(correlation).max()))
    expected = (M / size) @ inverse @ (M / size)
    row = diagnose(log).check("propensity calibration", "all arms")[0]
    assert row.statistic == pytest.approx(expected, **CLOSE)
    assert row.measure == f"chi2({rank}), bins"
    assert rank < len(places)


def test_wealth() -> None:
    """The bet on each arm is its past choices over its past propensities, ten of each to start with."""
    e, action = thompson().arrays.propensities, thompson().arrays.action
    seen, due, wealth, path = [10.0] * 3, [10.0] * 3, 0.0, []
    for t in range(len(action)):
        bet = [e[t, a] * seen[a] / due[a] for a in range(3)]
        wealth += math.log(bet[action[t]] / sum(bet) / e[t, action[t]])
        path.append(wealth)
        for a in range(3):
            seen[a] += action[t] == a
            due[a] += e[t, a]
    assert log_wealth(action, e).tolist() == pytest.approx(path, rel=1e-9, abs=1e-9)
    row = diagnose(thompson()).check("sample ratio, anytime")[0]
    assert row.log_pvalue == pytest.approx(-max(0.0, *path), **CLOSE)


def test_wealth_has_mean_one() -> None:
    """Every sequence of choices of four rounds with propensities that follow the choices."""

    def propensities(actions: tuple[int, ...]) -> np.ndarray:
        share = [(1.0 + sum(actions[:t])) / (3.0 + t) for t in range(len(actions))]
        return np.array([[1.0 - p, p] for p in share])

    total = 0.0
    for code in range(16):
        actions = tuple((code >> t) & 1 for t in range(4))
        e = propensities(actions)
        chance = np.prod([e[t, a] for t, a in enumerate(actions)])
        total += chance * math.exp(log_wealth(np.array(actions), e, prior=0.5)[-1])
    assert total == pytest.approx(1.0, abs=1e-12)


@LOGS
@pytest.mark.parametrize("weight", ["sqrt", "uniform"])
def test_sample_mean_against_aipw(log: AdaptiveLog, weight: str) -> None:
    scores, weights = literal_scores(log, weight)
    arrays = log.arrays
    rows, difference = [], []
    for arm in range(3):
        own = [t for t in range(log.n_rounds) if arrays.action[t] == arm]
        mean = sum(arrays.reward[t] for t in own) / len(own)
        estimate, influence = literal_mean([r[arm] for r in scores], [w[arm] for w in weights])
        here = [(arrays.reward[t] - mean) / len(own) if arrays.action[t] == arm else 0.0
                for t in range(log.n_rounds)]  # fmt: skip
        rows.append([a - b for a, b in zip(here, influence, strict=True)])
        difference.append(mean - estimate)
    found = mean_differences(sums_of(log, weight))
    covariance = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in rows] for x in rows]
    assert found.difference.tolist() == pytest.approx(difference, **CLOSE)
    assert found.covariance.ravel().tolist() == pytest.approx(np.ravel(covariance).tolist(), **CLOSE)
    z = [d / math.sqrt(covariance[a][a]) for a, d in enumerate(difference)]
    joint = np.array(difference) @ np.linalg.solve(np.array(covariance), np.array(difference))
    assert found.joint.statistic == pytest.approx(joint, rel=1e-8)
    if weight == "sqrt" and log is greedy():
        table = diagnose(log)
        for arm in range(3):
            row = table.check("sample mean against AIPW", str(arm))[0]
            assert row.statistic == pytest.approx(z[arm], **CLOSE)
            assert row.log_pvalue == pytest.approx(math.log(2.0) + stats.norm.logsf(abs(z[arm])), **CLOSE)


@LOGS
def test_the_estimates_are_those_of_arm_means(log: AdaptiveLog) -> None:
    """By another route: the rows of two fitted results."""
    naive = ArmMeans(log).fit("sample-mean", keep_scores=True)
    fitted = ArmMeans(log).fit(keep_scores=True, stationary=True)
    table = diagnose(log).tables["arms"]
    assert table["sample_mean"].tolist() == pytest.approx(naive.params.tolist(), **CLOSE)
    assert table["aipw"].tolist() == pytest.approx(fitted.params.tolist(), **CLOSE)
    counts = table["pulls"].to_numpy()
    # The rows of a result are scaled to a standard error with n - 1; here they are not.
    own = naive.scores["influence"] * np.sqrt((counts - 1.0) / counts)
    change = own - fitted.scores["influence"]
    assert table["std_error"].tolist() == pytest.approx(np.sqrt((change**2).sum(axis=0)).tolist(), **CLOSE)


@pytest.mark.parametrize("weight", ["sqrt", "uniform"])
def test_drift_over_time(weight: str) -> None:
    """Weighted least squares of the scores on time, and the sandwich about one mean."""
    log = greedy()
    scores, weights = (np.array(part) for part in literal_scores(log, weight))
    x = np.array([(t + 0.5) / log.n_rounds for t in range(log.n_rounds)])
    slopes, rows = [], []
    for arm in range(3):
        design = np.column_stack([np.ones(len(x)), x])
        W = np.diag(weights[:, arm])
        slopes.append(np.linalg.solve(design.T @ W @ design, design.T @ W @ scores[:, arm])[1])
        centre = np.average(x, weights=weights[:, arm])
        mean = np.average(scores[:, arm], weights=weights[:, arm])
        part = weights[:, arm] * (x - centre)
        rows.append(part * (scores[:, arm] - mean) / (part @ (x - centre)))
    covariance = np.array(rows) @ np.array(rows).T
    found = drifts(sums_of(log, weight))
    assert found.difference.tolist() == pytest.approx(slopes, **CLOSE)
    assert found.covariance.ravel().tolist() == pytest.approx(covariance.ravel().tolist(), **CLOSE)
    share = (1.0 / np.diag(covariance)) / (1.0 / np.diag(covariance)).sum()
    slope, error = common_drift(found)
    assert slope == pytest.approx(share @ slopes, **CLOSE)
    assert error == pytest.approx(math.sqrt(share @ covariance @ share), **CLOSE)
    if weight == "sqrt":
        table = diagnose(log)
        pulls = np.bincount(log.arrays.action)
        for arm in range(3):
            row = table.check("drift over time", str(arm))[0]
            t = slopes[arm] / math.sqrt(covariance[arm, arm])
            assert row.statistic == pytest.approx(t, **CLOSE)
            p = 2.0 * stats.t.sf(abs(t), pulls[arm] - 2)
            assert math.exp(row.log_pvalue) == pytest.approx(p, rel=1e-8)
        row = table.check("common drift")[0]
        assert row.statistic == pytest.approx(slope / error, **CLOSE)


def test_drift_that_could_be_missed() -> None:
    """The slope at which a t statistic, moved by so much, passes its critical value with probability 80%."""
    log = greedy()
    table = diagnose(log)
    slopes = drifts(sums_of(log, "sqrt"))
    reward, action = log.arrays.reward, log.arrays.action
    size = np.array([reward[action == arm].std(ddof=1) for arm in range(3)])
    pulls = np.bincount(action)
    pooled = math.sqrt((size**2 @ (pulls - 1.0)) / (pulls - 1.0).sum())
    tail = 0.025 / sum(not math.isnan(row.log_pvalue) for row in table.checks)
    reach = [stats.t.isf(tail, n - 2) + stats.norm.ppf(0.8) for n in pulls]
    expected = [r * e / s for r, e, s in zip(reach, slopes.std_error, size, strict=True)]
    common = (stats.t.isf(tail, len(action) - 4) + stats.norm.ppf(0.8)) * common_drift(slopes)[1] / pooled
    rows = table.check("drift that could be missed")
    assert [row.statistic for row in rows] == pytest.approx([*expected, common], rel=1e-9)
    assert says(table.notes, claims.MISSED, least=rows[-1].statistic)
    assert f"of {common:.2g} reward standard deviations" in " ".join(table.notes)


def test_drift_by_batch() -> None:
    log = designs.EpsilonGreedy(exploration=0.5, batch_size=50).run(ENV, 1200, rng=9)
    scores, weights = literal_scores(log, "sqrt")
    group = batch_groups(log.arrays.batch)
    assert np.bincount(group).tolist() == [200] * 6
    for arm in range(3):
        means, variances = [], []
        for code in range(6):
            here = [t for t in range(1200) if group[t] == code]
            mean, rows = literal_mean([scores[t][arm] for t in here], [weights[t][arm] for t in here])
            means.append(mean)
            variances.append(sum(x * x for x in rows))
        centre = sum(m / v for m, v in zip(means, variances, strict=True)) / sum(1 / v for v in variances)
        expected = sum((m - centre) ** 2 / v for m, v in zip(means, variances, strict=True))
        row = diagnose(log).check("drift by batch", str(arm))[0]
        assert row.statistic == pytest.approx(expected, **CLOSE)
        assert row.measure == "chi2(5)"


def test_inverse_sums() -> None:
    action, e = thompson().arrays.action, thompson().arrays.propensity
    rows = np.array([[(a == k) / p - 1.0 for k in range(3)] for a, p in zip(action, e, strict=True)])
    total, products = inverse_sums(action, e, 3)
    assert total.tolist() == pytest.approx(rows.sum(axis=0).tolist(), rel=1e-9)
    assert products.ravel().tolist() == pytest.approx((rows.T @ rows).ravel().tolist(), rel=1e-9)


def test_decay_is_a_line_through_block_minima() -> None:
    e = thompson().arrays.propensities
    edges = [0, 8, 16, 32, 64, 128, 256, 512, 1024, 1200]
    lowest = [e[a:b].min() for a, b in itertools.pairwise(edges)]
    slope = np.polyfit(np.log(edges[1:]), np.log(lowest), 1)[0]
    found = fitted_decay(e)
    assert found.exponent == pytest.approx(-slope, **CLOSE)
    assert found.last.tolist() == edges[1:]
    assert found.smallest.min(axis=1).tolist() == lowest
    action, own = thompson().arrays.action, thompson().arrays.propensity
    chosen = np.where(action[:, None] == np.arange(3), own[:, None], 0.0)
    assert fitted_chosen_decay(action, own, 3).exponent == fitted_decay(chosen).exponent
    np.testing.assert_array_equal(fitted_chosen_decay(action, own, 3).smallest, fitted_decay(chosen).smallest)


def test_effective_sizes_are_those_of_uniform_weights() -> None:
    result = ArmMeans(greedy()).fit("aipw", weights="uniform")
    rows = diagnose(greedy()).check("effective sample size")
    found = np.array([row.statistic for row in rows])
    others = np.arange(3) != greedy().arrays.action[0]  # the first round has no weight in an estimate
    assert found[others].tolist() == pytest.approx(result.ess[others].tolist(), **CLOSE)
    assert found.tolist() == pytest.approx(result.ess.tolist(), abs=1.0)
    assert Choice("aipw", "sqrt").weights == diagnose(greedy()).tables["arms"]["weights"][0]
