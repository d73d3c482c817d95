"""Whether released noise has the law that its promise needs, and is independent of all that it must not tell.

Every test has a bound of its false-alarm probability that holds for any number of runs. Sums over runs of
products of two entries, of which the later one is centred given all that came before, are sub-Gaussian: a
uniform variable on an interval of length 1 has the proxy 1/12, a fair coin of values -1/2 and 1/2 the proxy
1/4, and the earlier one, at most 1/2 in size, multiplies the proxy by at most 1/4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from adaptinf.audit.privacy.designs.audited_trial import NodeNoise
from adaptinf.typing import FloatArray, IntArray

FALSE_ALARM = 1e-6
"""Probability of any finding, by all tests of an audit together, where there is nothing to be found."""

_PAIRED = 2_400
"""Most nodes that are held against one another."""
_PAIR_RATE, _COIN_RATE = 24.0, 8.0
"""Of exp(-rate s^2 / runs), the bound of the chance that a sum of products exceeds s, one-sided."""


class _Test(NamedTuple):
    """Logarithms of the false-alarm bounds of one kind of test, and what each of them finds, in words."""

    log_bounds: FloatArray
    words: Callable[[int], str]
    kind: str

    def finding(self, limit: float) -> str:
        """The most significant one in words, and how many more there are; empty where there is none."""
        number = int((self.log_bounds < limit).sum())
        if not number:
            return ""
        first = self.words(int(np.argmin(self.log_bounds)))
        return first if number == 1 else f"{first} (and {number - 1:,} more)"


def noise_findings(noises: Sequence[tuple[str, NodeNoise]]) -> list[str]:
    """What is wrong with the noise of trials, in words, at `FALSE_ALARM` for all together (Bonferroni)."""
    number = sum(_tests_of(noise) for _, noise in noises)
    if not number:
        return []
    limit = math.log(FALSE_ALARM / number)
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


def _tests(noise: NodeNoise, limit: float) -> Iterator[_Test]:
    """Laws of nodes and groups; then values, and sizes, of nodes against one another and rewards.

    What has not its law is found once: it is left out of the tests of independence.
    """
    uniforms, names = noise.uniforms, noise.names
    law = "has not the law that is promised"
    laws = np.array([_law_bound(column[~np.isnan(column)]) for column in uniforms.T])
    yield _Test(laws, lambda at: f"the noise of {names[at]} {law}", "nodes")
    whole = ~np.isnan(uniforms).any(axis=0)
    pooled = [uniforms[:, whole & (noise.groups == group)].ravel() for group in range(len(noise.group_names))]
    levels = np.array([_law_bound(part) for part in pooled])
    yield _Test(levels, lambda at: f"the noise of {noise.group_names[at]} {law}", "levels")
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


def _law_bound(sample: FloatArray) -> float:
    """Log of 2 exp(-2 n D^2), D the distance from the uniform law.

    Massart, P. (1990). The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality. Annals of Probability
    18.
    """
    n = sample.size
    if n == 0:
        return 0.0
    ordered = np.sort(sample)
    steps = np.arange(n + 1) / n
    distance = max(float((steps[1:] - ordered).max()), float((ordered - steps[:-1]).max()))
    return math.log(2.0) - 2.0 * n * distance**2


def _pairs(entries: FloatArray, names: Sequence[str], what: str) -> _Test:
    """Every two nodes of a run, of those that `_paired` keeps."""
    nodes = _paired(entries.shape[1])
    kept = entries[:, nodes]
    products = np.triu(kept.T @ kept, 1).ravel()

    def words(at: int) -> str:
        first, second = (names[nodes[place]] for place in divmod(at, nodes.size))
        return f"the {what} of {first} goes with that of {second}"

    return _Test(math.log(2.0) - _PAIR_RATE * products**2 / len(entries), words, f"pairs, {what}")


def _paired(nodes: int) -> IntArray:
    """Nodes that are held against one another: all, or of very many the first ones and some of the others."""
    if nodes <= _PAIRED:
        return np.arange(nodes)
    half = _PAIRED // 2
    others = np.unique(np.linspace(half, nodes - 1, half).astype(np.int64))
    return np.concatenate([np.arange(half), others])


def _coins(entries: FloatArray, fair: FloatArray, noise: NodeNoise, what: str) -> _Test:
    """Every node and every reward of a run."""
    products = (entries.T @ fair).ravel()

    def words(at: int) -> str:
        node, coin = divmod(at, fair.shape[1])
        return f"the {what} of {noise.names[node]} goes with {noise.fair_names[coin]}"

    return _Test(math.log(2.0) - _COIN_RATE * products**2 / len(entries), words, f"coins, {what}")
