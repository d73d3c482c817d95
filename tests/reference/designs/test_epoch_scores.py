"""Scores of neighbouring trials against densities added up release by release, from the definition."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.audit.privacy.designs.audited_trial import Neighbours
from adaptinf.audit.privacy.designs.epoch_audits import EpochMeanScore
from adaptinf.audit.privacy.designs.stopping_audits import stopping_outputs
from adaptinf.designs.arms.elimination import PrivateSuccessiveElimination
from adaptinf.designs.base_design import Design
from adaptinf.designs.best_arm.linear_best_arm import DPBAI, DPOD, DPBAIGauss
from adaptinf.designs.stopping.stopping_kernel import halting_sum
from adaptinf.designs.stopping.stopping_rules import DPNAS
from adaptinf.simulation.environments import Tableau
from adaptinf.simulation.transcripts import Transcripts, sample_transcripts

AXES = np.eye(2)
PLANE = [[1.0, 0.0], [0.0, 1.0], [0.7, 0.6]]
MANY = np.random.default_rng(0).normal(size=(30, 3))


def transcripts(design: Design, env: Tableau, horizon: int, runs: int) -> Transcripts:
    (seen,) = sample_transcripts(design, env, horizon, 0, runs, np.random.SeedSequence(3))
    return seen


def log_density(law: Any, actions: Any, released: Any, rewards: np.ndarray) -> float:
    """Log-density of a run's noisy means: of an arm's rewards since the last releases of any arm."""
    total, begin = 0.0, 0
    ends = sorted({int(end) for end in released[:, 0] if not math.isnan(end)})
    for end in ends:
        for step, _, group, value, scale in released:
            if step == end:
                seen = [
                    min(max(rewards[t, int(group)], 0.0), 1.0)
                    for t in range(begin, end)
                    if actions[t] == int(group)
                ]
                total += float(law.logpdf(value, math.fsum(seen) / len(seen), scale))
        begin = end
    return total


def literal_means(law: Any, seen: Transcripts, first: np.ndarray, second: np.ndarray) -> list[float]:
    return [
        log_density(law, actions, released, second) - log_density(law, actions, released, first)
        for actions, released in zip(seen.actions, seen.releases, strict=True)
    ]


def named(value: Any) -> str:
    """The name of a law, and whatever else as it prints: the same in every process."""
    return str(getattr(value, "name", repr(value)))


@pytest.mark.parametrize(
    ("design", "law"),
    [
        (PrivateSuccessiveElimination(epsilon=1.0, beta=1.0), stats.laplace),
        (DPBAI(epsilon=0.5, features=AXES), stats.laplace),
        (DPBAI(epsilon=1.0, features=MANY), stats.laplace),
        (DPBAI(epsilon=2.0, features=PLANE, max_det=False), stats.laplace),
        (DPBAIGauss(epsilon=1.0, delta=0.05, features=PLANE), stats.norm),
        (DPBAIGauss(epsilon=4.0, delta=0.1, features=AXES, calibration="published"), stats.norm),
    ],
    ids=named,
)
def test_score_of_noisy_means(design: Design, law: Any) -> None:
    (pair,) = neighbouring_trials(design)
    assert isinstance(pair.score, EpochMeanScore)
    for env in (pair.first, pair.second):
        seen = transcripts(design, env, pair.horizon, 25)
        literal = literal_means(law, seen, pair.score.first, pair.score.second)
        np.testing.assert_allclose(pair.score(seen), literal, rtol=0, atol=1e-9)
        assert np.ptp(literal) > 0.5
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(pair)).score(seen), pair.score(seen))


@pytest.mark.parametrize(
    ("design", "law", "horizon", "row"),
    [
        (PrivateSuccessiveElimination(epsilon=4.0, beta=1.0), stats.laplace, 5_100, 900),
        (PrivateSuccessiveElimination(epsilon=4.0, beta=1.0), stats.laplace, 5_100, 5_050),
        (DPBAI(epsilon=1.0, features=MANY), stats.laplace, 60, 20),
        (DPBAIGauss(epsilon=1.0, delta=0.05, features=MANY, max_det=False), stats.norm, 200, 100),
    ],
    ids=named,
)
def test_score_where_the_reward_falls_into_a_later_epoch(
    design: Design, law: Any, horizon: int, row: int
) -> None:
    """Which arm it is, and which rounds count with it, then depends on the releases; clipped rewards too."""
    n_arms = len(design.features) if isinstance(design, (DPBAI, DPBAIGauss)) else 2
    first = np.random.default_rng(1).uniform(-0.2, 1.2, (horizon, n_arms))
    if n_arms == 2:
        first[:, 0] = np.clip(first[:, 0] - 0.09, 0.0, 1.0)
    second = first.copy()
    first[row], second[row] = -0.5, 1.5
    seen = transcripts(design, Tableau(first), horizon, 30)
    literal = literal_means(law, seen, first, second)
    score = EpochMeanScore(first, second, row, normal=law is stats.norm)
    np.testing.assert_allclose(score(seen), literal, rtol=0, atol=1e-9)
    assert (np.ptp(literal) > 0.0) == (row < 5_000)


@pytest.mark.parametrize("features", [AXES, PLANE, MANY], ids=["axes", "plane", "many"])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_score_of_noisy_moments(features: Any, epsilon: float) -> None:
    design = DPOD(epsilon=epsilon, features=features)
    (pair,) = neighbouring_trials(design)
    rows = np.asarray(features)
    largest = np.abs(rows).sum(axis=1).max()
    tables = [env.tables(pair.horizon).tableau for env in (pair.first, pair.second)]
    assert pair.score is not None
    for env in (pair.first, pair.second):
        seen = transcripts(design, env, pair.horizon, 25)
        literal = []
        for actions, released in zip(seen.actions, seen.releases, strict=True):
            end = int(released[0, 0])
            ratio = 0.0
            for sign, rewards in zip((-1.0, 1.0), tables, strict=True):
                for k in range(rows.shape[1]):
                    moment = math.fsum(rewards[t, actions[t]] * rows[actions[t], k] for t in range(end))
                    density = stats.laplace.logpdf(released[k, 3], moment, largest / epsilon)
                    ratio += sign * float(density)
            literal.append(ratio)
            # what is released later does not depend on the round that differs
            np.testing.assert_array_equal(*(table[end:] for table in tables))
        np.testing.assert_allclose(pair.score(seen), literal, rtol=0, atol=1e-9)
        assert np.abs(literal).max() <= epsilon * (1 + 1e-12)
        assert np.ptp(literal) > 0.5


def literal_law(rule: DPNAS, pair: Neighbours, side: int) -> list[float]:
    """Probabilities of stopping at each look at 2, 4, ... samples, and of not stopping, by quadrature."""
    constants = rule.rule(float(rule.bound), 1.0)
    stream = (pair.first, pair.second)[side].tables(pair.horizon).tableau[:, 0]
    margins = []
    for look in range(1, pair.horizon.bit_length()):
        total = abs(float(np.cumsum(stream[: 2**look])[-1]))
        margins.append(total - halting_sum(constants, 2.0**look, float(look)))
    noise = stats.laplace(scale=constants.query_scale)
    threshold = stats.laplace(scale=constants.threshold_scale)

    reach = 45.0 * constants.threshold_scale
    kinks = sorted({-reach, 0.0, reach, *(m for m in margins if abs(m) < reach)})
    edges = np.unique(np.concatenate([np.linspace(low, high, 21) for low, high in itertools.pairwise(kinks)]))
    law = np.zeros(len(margins) + 1)
    for low, high in itertools.pairwise(edges.tolist()):
        nodes, weights = special.roots_legendre(40)
        b = 0.5 * (low + high) + 0.5 * (high - low) * nodes
        going = 0.5 * (high - low) * weights * threshold.pdf(b)
        for look, margin in enumerate(margins):
            # halts where |sum| - B - A >= halting sum, that is A <= margin - B
            law[look] += float((going * noise.cdf(margin - b)).sum())
            going = going * noise.sf(margin - b)
        law[-1] += float(going.sum())
    return law.tolist()


@pytest.mark.parametrize(("epsilon", "bound"), [(4.0, 1.0), (1.0, 2.5)])
def test_score_of_a_stopping_time_and_its_estimate(epsilon: float, bound: float) -> None:
    rule = DPNAS(epsilon=epsilon, alpha=0.9, beta=0.5, bound=bound, steps="exponential")
    sampler = stopping_outputs(rule)
    pair = sampler.neighbours
    laws = [literal_law(rule, pair, side) for side in (0, 1)]
    assert sum(laws[0]) == pytest.approx(1.0, abs=1e-11)
    streams = [env.tables(pair.horizon).tableau[:, 0] for env in (pair.first, pair.second)]
    assert np.flatnonzero(streams[0] != streams[1]).tolist() == [0]
    for side in (0, 1):
        seen = sampler.transcripts(side, 400, np.random.default_rng(5))
        literal = []
        for estimate, stopped, samples in seen.outcomes:
            look = int(math.log2(samples)) - 1 if stopped else len(laws[0]) - 1
            ratio = math.log(laws[1][look] / laws[0][look])
            if stopped:
                for sign, stream in zip((-1.0, 1.0), streams, strict=True):
                    mean = math.fsum(stream[: int(samples)]) / samples
                    scale = 4.0 * bound / epsilon / samples
                    ratio += sign * float(stats.laplace.logpdf(estimate, mean, scale))
            literal.append(ratio)
        assert pair.score is not None
        np.testing.assert_allclose(pair.score(seen), literal, rtol=0, atol=1e-9)
        assert 0.3 * epsilon < np.abs(literal).max() <= epsilon
        assert {0.0, 1.0} == set(seen.outcomes[:, 1])


@pytest.mark.slow
def test_score_of_a_rule_that_looks_at_every_sample() -> None:
    """The law by the trapezoidal rule."""
    rule = DPNAS(epsilon=4.0, alpha=0.9, beta=0.5)
    (pair,) = neighbouring_trials(rule)
    constants = rule.rule(1.0, 1.0)
    b = np.linspace(-120.0, 120.0, 60_001)
    density = stats.laplace(scale=constants.threshold_scale).pdf(b) * (b[1] - b[0])
    laws = []
    for env in (pair.first, pair.second):
        sums = np.abs(np.cumsum(env.tables(pair.horizon).tableau[:, 0]))
        going, law = density.copy(), []
        for look, total in enumerate(sums.tolist(), 1):
            margin = total - halting_sum(constants, float(look), float(look))
            halts = stats.laplace.cdf(margin - b, scale=constants.query_scale)
            law.append(float((going * halts).sum()))
            going *= 1.0 - halts
        laws.append([*law, float(going.sum())])
    seen = stopping_outputs(rule, pair).transcripts(1, 2_000, np.random.default_rng(6))
    place = np.where(seen.outcomes[:, 1] > 0, seen.outcomes[:, 2] - 1, pair.horizon).astype(int)
    ratios = np.log(np.array(laws[1])[place] / np.array(laws[0])[place])
    silent = seen.outcomes[:, 0] == 0.0
    assert not silent.any()
    assert pair.score is not None
    totals = seen.outcomes[:, 0] * seen.outcomes[:, 2]
    for env, sign in ((pair.first, 1.0), (pair.second, -1.0)):
        sums = np.cumsum(env.tables(pair.horizon).tableau[:, 0])
        moved = np.abs(totals - sums[np.minimum(place, pair.horizon - 1)]) / constants.release_scale
        ratios += sign * np.where(seen.outcomes[:, 1] > 0, moved, 0.0)
    np.testing.assert_allclose(pair.score(seen), ratios, rtol=0, atol=1e-4)
