"""The lower bound of epsilon written out: loops over events, scipy's limits, densities of whole vectors."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from adaptinf.audit.privacy.audited_mechanisms import CounterSource, counter_nodes, log_ratio, sample
from adaptinf.audit.privacy.epsilon_audit import neighbouring_inputs
from adaptinf.audit.privacy.lower_bound import bound_from_scores, learn, log_ratio_bound
from adaptinf.privacy import (
    Counter,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    SparseVector,
    TruncatedLaplace,
)
from adaptinf.privacy.noise import generator
from adaptinf.simulation.replicate import child


@functools.cache
def clopper_pearson(hits: int, runs: int, level: float) -> tuple[float, float]:
    """Both one-sided limits, each of confidence 1 - level."""
    limits = stats.binomtest(hits, runs).proportion_ci(confidence_level=1.0 - 2.0 * level, method="exact")
    return float(limits.low), float(limits.high)


def literal_log_ratio(likelier: int, rarer: int, runs: int, delta: float, level: float) -> float:
    p, q = clopper_pearson(likelier, runs, level / 2.0)[0], clopper_pearson(rarer, runs, level / 2.0)[1]
    return math.log((p - delta) / q) if p > delta else -math.inf


def literal_bound(first: Any, second: Any, delta: float, confidence: float) -> float:
    """Every score as a threshold, events of both kinds, both directions, one loop inside the other."""
    half = len(first) // 2
    level = (1.0 - confidence) / 2.0
    best = 0.0
    for likelier, rarer in ((second, first), (first, second)):
        chosen, largest = None, -math.inf
        for upper in (True, False):
            for cut in sorted({*first[:half], *second[:half]}):
                counts = [
                    sum((score >= cut) if upper else (score <= cut) for score in side[:half])
                    for side in (likelier, rarer)
                ]
                bound = literal_log_ratio(counts[0], counts[1], half, delta, level)
                if bound > largest:
                    chosen, largest = (cut, upper), bound
        if chosen is None:
            continue
        cut, upper = chosen
        counts = [
            sum((score >= cut) if upper else (score <= cut) for score in side[half:])
            for side in (likelier, rarer)
        ]
        best = max(best, literal_log_ratio(counts[0], counts[1], len(first) - half, delta, level))
    return best


@pytest.mark.parametrize("delta", [0.0, 0.03])
@pytest.mark.parametrize("level", [0.0005, 0.1])
def test_limits(delta: float, level: float) -> None:
    runs = 500
    for likelier, rarer in [(0, 0), (1, 0), (500, 0), (500, 500), (20, 3), (250, 100), (3, 499)]:
        fast = float(log_ratio_bound(np.array(likelier), np.array(rarer), runs, delta, level))
        slow = literal_log_ratio(likelier, rarer, runs, delta, level)
        # binomtest looks for its limits to 2e-12
        assert fast == slow or fast == pytest.approx(slow, abs=1e-7)


def test_limits_against_the_beta_law() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        runs = int(rng.integers(10, 2_000_000))
        likelier, rarer = (int(rng.integers(1, runs)) for _ in range(2))
        level = 10.0 ** rng.uniform(-6, -1)
        low = stats.beta.ppf(level / 2.0, likelier, runs - likelier + 1)
        high = stats.beta.isf(level / 2.0, rarer + 1, runs - rarer)
        fast = float(log_ratio_bound(np.array(likelier), np.array(rarer), runs, 0.0, level))
        assert fast == pytest.approx(math.log(low) - math.log(high), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_whole_bound(seed: int, delta: float) -> None:
    rng = np.random.default_rng(seed)
    first = rng.laplace(0.0, 0.4, 120).round(1)
    second = rng.laplace((-1.0, 1.0)[seed % 2], 0.4, 120).round(1)
    fast = bound_from_scores(first, second, delta=delta, confidence=0.9)
    assert fast.epsilon == pytest.approx(literal_bound(first, second, delta, 0.9), abs=1e-9)
    assert fast.epsilon > 0.5


def test_rounding_joins_what_additions_tell_apart() -> None:
    first, second = np.full(400, 0.1 + 0.2), np.full(400, 0.3)
    assert bound_from_scores(first, second).epsilon == 0.0
    assert bound_from_scores(first, second, decimals=None).epsilon > 3.0


@pytest.mark.parametrize(
    "settings",
    [
        {"mechanism": "binary", "horizon": 15},
        {"mechanism": "hybrid"},
        {"mechanism": "logarithmic"},
        {"mechanism": "binary", "horizon": 10, "noise": "gaussian", "delta": 0.01, "dimension": 2},
        {"mechanism": "hybrid", "dimension": 3, "sensitivity": 1.2, "low": -1.0},
    ],
    ids=["binary", "hybrid", "logarithmic", "normal", "vector"],
)
def test_a_counters_score_is_the_density_ratio_of_all_of_its_sums(settings: dict[str, Any]) -> None:
    counter = Counter(epsilon=0.7, **settings)
    first, second = neighbouring_inputs(counter)
    source = CounterSource(counter, (first, second), "releases", np.random.SeedSequence(1))
    rounds, runs = len(first), 40
    releases = np.array(
        [at for at in range(1, rounds + 1) if counter.mechanism != "logarithmic" or at & (at - 1) == 0]
    )
    # which noises are in which released sum, from the variances' decomposition: a set of nodes that tile 1..n
    nodes = counter_nodes(counter, rounds)
    tiling = np.zeros((len(releases), len(nodes)))
    for row, at in enumerate(releases):
        end = at
        while end > 0:
            column = next(i for i, node in enumerate(nodes) if node.end == end)
            tiling[row, column] = 1.0
            end = nodes[column].start
        assert counter.noise_variance(int(at)) == pytest.approx(
            sum(
                (1.0 if counter.noise == "gaussian" else 2.0) * nodes[i].scale ** 2
                for i in np.flatnonzero(tiling[row])
            ),
            rel=1e-12,
        )
    law = stats.norm if counter.noise == "gaussian" else stats.laplace
    scales = np.array([node.scale for node in nodes])[:, None]
    for side in (0, 1):
        # the whole vector of sums, from the counter itself
        wide = counter._abreast(runs, generator(child(source.root, side, 0)))
        sums = [np.reshape(wide.add(np.tile(item, runs)), (runs, -1)) for item in (first, second)[side]]
        score = source.outputs(side, 0, runs)
        for run in range(runs):
            vector = np.array([sums[at - 1][run] for at in releases])
            logs = [
                law.logpdf(
                    np.linalg.solve(tiling, vector - stream.cumsum(axis=0)[releases - 1]), scale=scales
                )
                for stream in (first, second)
            ]
            assert score[run] == pytest.approx(float((logs[1] - logs[0]).sum()), abs=1e-9)


@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(epsilon=0.7, sensitivity=1.5),
        Gaussian(epsilon=0.7, delta=0.01, sensitivity=2.0),
        DiscreteLaplace(epsilon=0.7, sensitivity=2),
        TruncatedLaplace(epsilon=0.7, sensitivity=2, lowest=1),
        SparseVector(epsilon=0.7),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_a_mechanisms_score_is_the_ratio_of_its_densities(mechanism: Any) -> None:
    first, second = neighbouring_inputs(mechanism)
    outputs = sample(mechanism, first, 200, np.random.default_rng(0), "simulation")
    if isinstance(mechanism, SparseVector):
        laws = [mechanism.stopping_law(side) for side in (first, second)]
        expected = [math.log(laws[1][int(k)] / laws[0][int(k)]) for k in outputs[:, 0]]
    else:

        def log_density(row: Any, centers: Any) -> float:
            pairs = list(zip(row, centers, strict=True))
            if isinstance(mechanism, TruncatedLaplace):
                return sum(math.log(float(mechanism.probability(x, c))) for x, c in pairs)
            if isinstance(mechanism, DiscreteLaplace):
                return sum(math.log(float(mechanism.probability(x - c))) for x, c in pairs)
            law = stats.norm if isinstance(mechanism, Gaussian) else stats.laplace
            return sum(float(law.logpdf(x, c, mechanism.scale)) for x, c in pairs)

        expected = [log_density(row, second) - log_density(row, first) for row in outputs]
    assert log_ratio(mechanism, outputs, first, second) == pytest.approx(np.array(expected), abs=1e-9)


def test_learned_scores_are_log_ratios_of_counts() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 4, (300, 2)), rng.integers(1, 5, (300, 2))
    scores = learn(first, second).scores(np.array([[0, 1], [4, 3], [9, 2]]))
    for score, row in zip(scores, [[0, 1], [4, 3], [9, 2]], strict=True):
        expected = 0.0
        for column, value in enumerate(row):
            counts = [int((side[:, column] == value).sum()) for side in (first, second)]
            expected += math.log((counts[1] + 0.5) / (counts[0] + 0.5))
        assert score == pytest.approx(expected, abs=1e-12)
