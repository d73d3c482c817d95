"""Checks that runs followed their releases, and that noise has the right distribution.

Every test has a bound on its false-alarm probability that holds for any number of runs. The sums over runs
are sums of products of two entries, the later of which is centred given all earlier ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from adaptinf.audit.privacy.designs import NodeNoise
from adaptinf.audit.privacy.designs.audited_trial import Replayed
from adaptinf.privacy.drawn_noise import FALSE_ALARM, Look
from adaptinf.privacy.noise_tests import COIN_RATE, PAIR_RATE, law_bound
from adaptinf.typing import FloatArray, IntArray


def difference(part: Replayed) -> str:
    """Descriptions of runs that do not follow their releases; empty if all of them do."""
    seen, recomputed = (np.asarray(side, dtype=np.float64) for side in (part.seen, part.recomputed))
    apart = (seen != recomputed) & ~(np.isnan(seen) & np.isnan(recomputed))
    if not apart.any():
        return ""
    place = int(np.flatnonzero(apart.any(axis=0))[0])
    run = int(np.flatnonzero(apart[:, place])[0])
    number = int(apart.any(axis=1).sum())
    is_, should_be = _shown(seen[run, place]), _shown(recomputed[run, place])
    return (
        f"{part.what} does not follow from the releases and earlier actions in {number} of {len(apart)} "
        f"runs: in {part.place} {place + 1} of run {run + 1} it is {is_} instead of {should_be}, so a "
        f"decision depended on data that were not released"
    )


def _shown(value: Any) -> str:
    return "none" if np.isnan(value) else f"{value:.17g}"


# The number of pairs grows with the square of the number of nodes, so no more than these are compared with
# each other.
_PAIRED = 2_400


def noise_findings(noises: Sequence[tuple[str, NodeNoise]], alarm: float = FALSE_ALARM) -> list[str]:
    """Problems with the noise of trials, at a joint level of `alarm` (Bonferroni)."""
    number = sum(_tests_of(noise) for _, noise in noises)
    if not number:
        return []
    limit = math.log(alarm / number)
    findings: dict[str, str] = {}
    for trial, noise in noises:
        for test in _tests(noise, limit):
            if (told := test.finding(limit)) and test.kind not in findings:
                findings[test.kind] = f"{told} [{trial}]"
    return list(findings.values())


def _tests_of(noise: NodeNoise) -> int:
    """Number of single tests."""
    nodes, groups, coins = noise.uniforms.shape[1], len(noise.group_names), noise.fair.shape[1]
    paired = _paired(nodes).size
    pairs = paired * (paired - 1) if noise.independent else 0
    return int(nodes + groups + pairs + 2 * nodes * coins)


def _tests(noise: NodeNoise, limit: float) -> Iterator[Look]:
    """Tests of distributions of nodes and groups, and of pairs of nodes and rewards."""
    # Noise with the wrong distribution is reported once and left out of the tests of independence, which
    # would report it again.
    uniforms, names = noise.uniforms, noise.names
    law = "does not have the specified distribution"
    laws = np.array([_law(column[~np.isnan(column)]) for column in uniforms.T])
    yield Look("nodes", laws, lambda at: f"the noise of {names[at]} {law}")
    whole = ~np.isnan(uniforms).any(axis=0)
    pooled = [uniforms[:, whole & (noise.groups == group)].ravel() for group in range(len(noise.group_names))]
    levels = np.array([_law(part) for part in pooled])
    yield Look("levels", levels, lambda at: f"the noise of {noise.group_names[at]} {law}")
    left = (laws >= limit) & ~np.isin(noise.groups, np.flatnonzero(levels < limit))
    for what, centred in (
        ("noise", uniforms - 0.5),
        ("size of the noise", np.abs(2.0 * uniforms - 1.0) - 0.5),
    ):
        entries = np.nan_to_num(centred) * left
        if noise.independent:
            yield _pairs(entries, names, what)
        if noise.fair.shape[1]:
            yield _coins(entries, np.nan_to_num(noise.fair), noise, what)


def _law(sample: FloatArray) -> float:
    """Logarithm of the bound for the distance from the uniform distribution."""
    return law_bound(sample, sample)


def _pairs(entries: FloatArray, names: Sequence[str], what: str) -> Look:
    """Test every pair of nodes of a run, among those selected by `_paired`."""
    nodes = _paired(entries.shape[1])
    kept = entries[:, nodes]
    products = np.triu(kept.T @ kept, 1).ravel()

    def words(at: int) -> str:
        first, second = (names[nodes[place]] for place in divmod(at, nodes.size))
        return f"the {what} of {first} is associated with that of {second}"

    return Look(f"pairs, {what}", math.log(2.0) - PAIR_RATE * products**2 / len(entries), words)


def _paired(nodes: int) -> IntArray:
    """Nodes that are compared: all or, if there are very many, the first ones and a selection of the rest."""
    if nodes <= _PAIRED:
        return np.arange(nodes)
    half = _PAIRED // 2
    others = np.unique(np.linspace(half, nodes - 1, half).astype(np.int64))
    return np.concatenate([np.arange(half), others])


def _coins(entries: FloatArray, fair: FloatArray, noise: NodeNoise, what: str) -> Look:
    """Test every node against every reward of a run."""
    products = (entries.T @ fair).ravel()

    def words(at: int) -> str:
        node, coin = divmod(at, fair.shape[1])
        return f"the {what} of {noise.names[node]} is associated with {noise.fair_names[coin]}"

    return Look(f"coins, {what}", math.log(2.0) - COIN_RATE * products**2 / len(entries), words)
