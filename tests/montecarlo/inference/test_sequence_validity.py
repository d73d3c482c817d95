"""Confidence sequences keep their promise: exactly, over every path of small designs, and by simulation.

A small adaptive design is a tree. Its paths, each with its probability, give the expected wealth at the true
value without any sampling error: 1 for bets, at most 1 for the other processes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from adaptinf.designs import UCB, EpsilonGreedy, Thompson
from adaptinf.designs.base_design import Design
from adaptinf.inference.sequences.confidence_sequence import ConfidenceSequence
from adaptinf.inference.sequences.mixtures import GammaExponentialSide, gamma_wealth
from adaptinf.inference.sequences.sides import BettingSide, LinearSide, MixtureSide, Side
from adaptinf.inference.sequences.tracks import SingleTrack
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms

MEANS = ((0.3, 0.7), (0.6, 0.2))  # by group, then arm
SHARE = 0.35  # of the second group
FLOOR = 0.15


def paths(horizon: int, by_context: bool) -> Iterator[tuple[float, AdaptiveLog]]:
    """Every path of a design that leans towards the arm that did better, or away from it by group."""
    groups = (0, 1) if by_context else (0,)
    for steps in itertools.product(itertools.product(groups, (0, 1), (0, 1)), repeat=horizon):
        probability, lead = 1.0, 0
        rows = np.zeros((horizon, 2))
        for t, (group, arm, reward) in enumerate(steps):
            lean = math.tanh(1.5 * lead) * (1 - 2 * group)
            rows[t, 1] = 0.5 + (0.5 - FLOOR) * lean
            rows[t, 0] = 1.0 - rows[t, 1]
            mean = MEANS[group][arm]
            probability *= rows[t, arm] * (mean if reward else 1.0 - mean)
            if by_context:
                probability *= SHARE if group else 1.0 - SHARE
            lead += (2 * arm - 1) * (2 * reward - 1)
        group, action, reward = np.array(steps, dtype=np.int64).T
        arrays = LogArrays(
            action=action,
            reward=reward.astype(float),
            propensity=rows[np.arange(horizon), action],
            propensities=rows,
            context={"group": group} if by_context else {},
        )
        free = None if by_context else True
        log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), reward_range=(0.0, 1.0), context_free=free)
        yield probability, log


def last_wealth(side: Side, mean: float) -> float:
    if isinstance(side, BettingSide):
        most = side.cap / np.maximum(mean - side.floor, 1e-300)
        return float(np.prod(1.0 + np.minimum(side.bet, most) * (side.score - mean)))
    if isinstance(side, LinearSide):
        return math.exp(side.gain[-1] - mean * side.stake[-1]) if len(side.gain) else 1.0
    if isinstance(side, GammaExponentialSide):
        if len(side.gain) == 0:
            return 1.0
        excess = side.gain[-1:] - mean * side.stake[-1:]
        return math.exp(gamma_wealth(excess, side.variance[-1:], side.scale)[0])
    assert isinstance(side, MixtureSide)
    if len(side.total) == 0:
        return 1.0
    total = side.variance[-1] + side.scale
    return math.exp((side.total[-1] - side.count[-1] * mean) ** 2 / (2.0 * total)) * math.sqrt(
        side.scale / total
    )


def truth(target: dict[str, Any], by_context: bool) -> float:
    mix = SHARE if by_context else 0.0
    first, second = ((1.0 - mix) * MEANS[0][arm] + mix * MEANS[1][arm] for arm in (0, 1))
    if target["target"] == "contrast":
        return second - first
    if target["target"] == "arm-means":
        return second
    if np.ndim(target["policy"]) == 1:
        return 0.2 * first + 0.8 * second
    return (1.0 - mix) * (0.1 * MEANS[0][0] + 0.9 * MEANS[0][1]) + mix * (
        0.6 * MEANS[1][0] + 0.4 * MEANS[1][1]
    )


ARM = {"target": "arm-means", "arms": ["b"]}
CONTRAST = {"target": "contrast", "treatment": "b", "control": "a"}
CASES: dict[str, tuple[dict[str, Any], str | None, bool]] = {
    "own rewards": (ARM, "sample-mean", False),
    "ipw": (ARM, "ipw", False),
    "aipw": (ARM, "aipw", False),
    "ipw contrast": (CONTRAST, "ipw", False),
    "aipw contrast": (CONTRAST, "aipw", False),
    "ipw contrast by context": (CONTRAST, "ipw", True),
    "aipw arm by context": (ARM, "aipw", True),
    "ipw policy by context": ({"target": "policy-value", "policy": "by group"}, "ipw", True),
    "aipw policy by context": ({"target": "policy-value", "policy": "by group"}, "aipw", True),
    "aipw policy": ({"target": "policy-value", "policy": np.array([0.2, 0.8])}, "aipw", False),
}


@pytest.mark.parametrize("case", CASES)
def test_expected_wealth_over_all_paths(case: str) -> None:
    target, estimator, by_context = CASES[case]
    value = truth(target, by_context)
    weights, wealth = [], []
    misses: list[bool] = []
    for probability, log in paths(3 if by_context else 5, by_context):
        own = dict(target)
        if isinstance(own.get("policy"), str):
            group = log.arrays.context["group"]
            own["policy"] = np.where(group[:, None] == 0, [0.1, 0.9], [0.6, 0.4])
        model = ConfidenceSequence(log, **own)
        row = []
        for method in ("betting", "empirical-bernstein", "gamma-exponential", "normal-mixture"):
            bounded = estimator == "aipw" or (method == "normal-mixture" and estimator == "ipw")
            floor = FLOOR if by_context and bounded else None
            result = model.fit(method, estimator=estimator, floor=floor)
            track = result.reference.tracks[0]
            assert isinstance(track, SingleTrack)
            mean = (value - track.origin) / track.width
            row.append(last_wealth(track.lower, mean))
            row.append(last_wealth(track.upper, 1.0 - mean))
        weights.append(probability)
        wealth.append(row)
        misses.append(track.log_pvalue(value) <= math.log(0.3))
    expected = np.array(weights) @ np.array(wealth)
    assert math.fsum(weights) == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(expected[:2], 1.0, atol=1e-12)
    assert np.all(expected[2:] <= 1.0)
    assert np.all(expected[2:] > 0.05)
    assert np.array(weights) @ misses <= 0.3


@pytest.mark.parametrize("design", [EpsilonGreedy(), Thompson(floor=(0.4, 0.3), draws=30), UCB()], ids=repr)
def test_truth_is_hardly_ever_excluded(design: Design) -> None:
    """At most alpha of the logs ever exclude it; tolerance: binomial, false alarm below 1e-4."""
    means, alpha, replications = (0.35, 0.5), 0.1, 150
    environment = BernoulliArms(list(means))
    count: dict[str, int] = {}
    for seed in range(replications):
        log = design.run(environment, horizon=200, rng=seed)
        for method in ("betting", "empirical-bernstein", "normal-mixture", "asymptotic"):
            for estimator in ("sample-mean",) if isinstance(design, UCB) else ("sample-mean", "ipw", "aipw"):
                tuning = {"t_opt": 100} if method in ("normal-mixture", "asymptotic") else {}
                options = {"method": method, "alpha": alpha, "estimator": estimator, **tuning}
                tracks = ConfidenceSequence(log).fit(**options).reference.tracks
                truths = [*zip(tracks, means, strict=True)]
                if estimator == "sample-mean":
                    both = ConfidenceSequence(log, "contrast", treatment=1, control=0).fit(**options)
                    truths.append((both.reference.tracks[0], means[1] - means[0]))
                for k, (track, value) in enumerate(truths):
                    key = f"{method}, {estimator}, {('first', 'second', 'contrast')[k]}"
                    count[key] = count.get(key, 0) + (track.log_pvalue(value) <= math.log(alpha))
    limit = replications * alpha + 3.8 * math.sqrt(replications * alpha * (1.0 - alpha))
    assert len(count) == (12 if isinstance(design, UCB) else 28)
    worst = max(count, key=lambda key: count[key])
    assert count[worst] <= limit, (worst, count[worst])
    assert max(count.values()) >= 0.2 * replications * alpha  # bounds that never fail would be too wide
