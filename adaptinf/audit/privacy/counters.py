"""Runs of a counter on two streams that differ in one item, and the exact log-likelihood ratio of its sums.

The noisy sums determine the noisy node sums: the value at n less the value at the count where n's fresh node
begins. The nodes have independent noise, and only those that hold the changed item tell the streams apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from adaptinf.audit.privacy.designs.audited_trial import NodeNoise, laplace_uniforms
from adaptinf.audit.privacy.digits import bit_codes, digits_event
from adaptinf.audit.privacy.lower_bound import Found, LearnedScore
from adaptinf.audit.privacy.sources import CHUNK, DEFAULT_RUNS, child
from adaptinf.privacy.counter import Counter
from adaptinf.privacy.noise import generator
from adaptinf.typing import FloatArray

_ROUNDS = 32
"""Items of a counter without levels, which show all of epsilon; more nodes would each show less."""
_NUMBERS = 1 << 20
"""The most numbers in a stream that is made by default."""
_ADDED = 32
"""Items that are added one by one; between later ones that matter, those that do not are passed over."""


class Node(NamedTuple):
    """Items `start` + 1 to `end`, and the scale of the noise on their sum."""

    start: int
    end: int
    scale: float


def counter_nodes(counter: Counter, rounds: int) -> list[Node]:
    """Nodes that a counter's releases up to a count reveal, one a release at most."""
    trunk, node = counter.scales
    nodes = []
    for end in range(1, rounds + 1):
        level = end.bit_length() - 1
        if counter.mechanism == "binary":
            nodes.append(Node(end & (end - 1), end, node))
        elif end == 1 << level:
            nodes.append(Node(end >> 1, end, trunk))
        elif counter.mechanism == "hybrid":
            nodes.append(Node(end & (end - 1), end, level * node))
    return nodes


def node_noise(counter: Counter, rounds: int, runs: int, rng: np.random.Generator) -> NodeNoise:
    """Noise of every node that so many releases reveal, with items from all over the range."""
    d = counter.dimension
    wide = counter._abreast(runs, rng)
    total, noise = np.zeros(d), np.zeros((runs, rounds + 1, d))
    nodes = {node.end: node for node in counter_nodes(counter, rounds)}
    for count in range(1, rounds + 1):
        item = np.full(d, counter.low + (counter.high - counter.low) * (count % 4) / 3.0)
        total = total + item
        noise[:, count] = np.reshape(wide.add(np.tile(item, runs)), (runs, d)) - total
    fresh = [(noise[:, node.end] - noise[:, node.start]) / node.scale for node in nodes.values()]
    standard = np.stack(fresh, axis=1)
    uniforms = special.ndtr(standard) if counter.noise == "gaussian" else laplace_uniforms(standard, 1.0)
    levels = [(node.end & -node.end).bit_length() - 1 for node in nodes.values()]
    return NodeNoise(
        uniforms.reshape(runs, -1),
        [
            f"the noisy sum at count {end}" + (f", coordinate {k + 1}" if d > 1 else "")
            for end in nodes
            for k in range(d)
        ],
        np.repeat(levels, d),
        [f"all nodes of level {level}" for level in range(max(levels) + 1)],
    )


def worst_streams(counter: Counter, rounds: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Two streams that differ in one item as much as they may, at the item that reveals most.

    Returns shape first, second (items, dimension).
    """
    if counter.mechanism == "binary":
        # the first item alone lies in a node of every level
        longest = max(1, _NUMBERS // counter.dimension) if rounds is None else rounds
        changed, items = 0, 1 << (min(longest, counter.horizon or longest).bit_length() - 1)
    else:
        longest = _ROUNDS if rounds is None else rounds
        nodes = counter_nodes(counter, longest)
        held = [[node for node in nodes if node.start < item <= node.end] for item in range(1, longest + 1)]
        losses = [round(sum(1.0 / node.scale for node in held[i]), 9) for i in range(longest)]
        changed = max(range(longest), key=lambda i: (losses[i], len(held[i]), i))
        items = held[changed][-1].end
    first = np.full((items, counter.dimension), np.clip(0.0, counter.low, counter.high))
    first[changed] = counter.low
    second = first.copy()
    second[changed] += _largest_change(counter)
    return first, second


def _largest_change(counter: Counter) -> FloatArray:
    """What an item moves by: in as few coordinates as possible in L1, in all of them alike in L2."""
    width, d = counter.high - counter.low, counter.dimension
    if counter.noise == "gaussian":
        return np.full(d, min(width, counter.sensitivity / np.sqrt(d)))
    left = min(counter.sensitivity, d * width)
    return np.clip(left - width * np.arange(d), 0.0, width)


def stream_problems(counter: Counter, first: FloatArray, second: FloatArray) -> list[str]:
    """Say what is wrong with two streams that a counter's guarantee is to hold for."""
    shape = f"(items, {counter.dimension})" + (" or (items,)" if counter.dimension == 1 else "")
    if (
        first.shape != second.shape
        or first.ndim != 2
        or first.shape[1] != counter.dimension
        or not len(first)
    ):
        return [f"neighbours must be two streams of shape {shape}, got {first.shape} and {second.shape}"]
    problems = []
    for stream in (first, second):
        if not ((stream >= counter.low) & (stream <= counter.high)).all():
            problems = [f"every item of neighbours must lie in [{counter.low:g}, {counter.high:g}]"]
    if counter.mechanism == "binary" and len(first) > (counter.horizon or 0):
        problems.append(f"neighbours must have at most {counter.horizon} items, the horizon")
    changed = np.flatnonzero((first != second).any(axis=1))
    if changed.size != 1:
        problems.append(f"neighbours must differ in one item, not in {changed.size}")
        return problems
    change = np.abs(second - first)[changed[0]]
    moved = float(change.sum() if counter.noise == "laplace" else np.sqrt((change**2).sum()))
    if moved > counter.sensitivity * (1.0 + 1e-12):
        problems.append(
            f"neighbours must differ by at most the sensitivity {counter.sensitivity:g}, got {moved:g}"
        )
    return problems


def node_ratio(noise: str, scale: float, excess: FloatArray, shift: FloatArray) -> FloatArray:
    """Log-likelihood ratio of one noisy node sum.

    Shapes: excess (runs, dimension), shift (dimension,); returns (runs,).
    """
    if noise == "gaussian":
        return (excess - 0.5 * shift) @ shift / scale**2
    return np.asarray(((np.abs(excess) - np.abs(excess - shift)) / scale).sum(axis=1))


@dataclass(frozen=True, eq=False)
class CounterSource:
    """Noisy sums of a counter on two streams that differ in one item."""

    counter: Counter
    pair: tuple[FloatArray, FloatArray]
    view: str
    root: np.random.SeedSequence
    default_runs: int = DEFAULT_RUNS

    @property
    def name(self) -> str:
        """The counter and its streams."""
        first, second = self.pair
        changed = int(np.flatnonzero((first != second).any(axis=1))[0])
        count = len(self._telling())
        return (
            f"{self.counter!r}: {len(first)} items that differ in item {changed + 1}, "
            f"which lies in {count} node{'s' if count > 1 else ''}{self._limit()}"
        )

    def _limit(self) -> str:
        """What streams show at most, in words, where it is less than all of epsilon."""
        if self.counter.noise != "laplace":
            return ""
        shift = float(np.abs(self.pair[1] - self.pair[0]).sum())
        loss = sum(shift / node.scale for node in self._telling())
        if loss >= self.counter.epsilon * (1.0 - 1e-6):
            return ""
        return (
            f" and shows at most {loss / self.counter.epsilon:.2g} of epsilon: "
            "neighbouring_inputs(target, rounds=) gives longer streams"
        )

    def _telling(self) -> list[Node]:
        """Nodes whose sums differ between the streams."""
        first, second = self.pair
        changed = int(np.flatnonzero((first != second).any(axis=1))[0])
        if self.counter.mechanism == "binary":
            return _nodes_of_item(changed, len(first), self.counter.scales[1])
        return [node for node in counter_nodes(self.counter, len(first)) if node.start <= changed < node.end]

    def outputs(self, side: int, start: int, stop: int) -> FloatArray:
        """Scores of shape (runs,), or codes of bits, shape (runs, numbers)."""
        sums = self._sums(side, start, stop)
        nodes = self._telling()
        if self.view == "digits":
            return bit_codes(np.concatenate([sums[node.end] for node in nodes], axis=1))
        first, second = self.pair
        total = np.zeros(stop - start)
        for node in nodes:
            inside = slice(node.start, node.end)
            excess = sums[node.end] - sums[node.start] - first[inside].sum(axis=0)
            shift = (second - first)[inside].sum(axis=0)
            total += node_ratio(self.counter.noise, node.scale, excess, shift)
        return total

    def _sums(self, side: int, start: int, stop: int) -> dict[int, FloatArray]:
        """Noisy sums at the ends of the nodes that matter, of shape (runs, dimension)."""
        runs, release = stop - start, self.counter.backend == "release"
        rng = None if release else generator(child(self.root, side, start // CHUNK))
        counter = self.counter._abreast(runs, rng)
        nodes = self._telling()
        kept = {count for node in nodes for count in (node.start, node.end)}
        sums = {0: np.zeros((runs, self.counter.dimension))}
        items = self.pair[side]
        one_by_one = set(
            range(1, min(_ADDED if self.counter.mechanism == "binary" else len(items), max(kept)) + 1)
        )
        for count in sorted((kept | one_by_one) - {0}):
            if counter.count < count - 1:
                counter._pass_over(items[counter.count : count - 1])
            noisy = counter.add(np.tile(items[count - 1], runs))
            if count in kept:
                sums[count] = np.reshape(noisy, (runs, self.counter.dimension))
        return sums

    def event(self, found: Found, learned: LearnedScore | None) -> str:
        """The event in words."""
        nodes = self._telling()
        if learned is not None:
            return digits_event(found, learned, _sums_at({node.end for node in nodes}))
        looked_at = {count for node in nodes for count in (node.start, node.end)}
        return (
            f"the log-likelihood ratio of {_sums_at(looked_at - {0})} is at "
            f"{'least' if found.upper else 'most'} {found.cut:.9g}"
        )


def _nodes_of_item(item: int, rounds: int, scale: float) -> list[Node]:
    """Nodes of the binary mechanism that hold an item, counted from 0, in the order of their ends."""
    nodes = []
    for level in range(rounds.bit_length()):
        start = item >> level << level
        # the other half of a node above has no release of its own
        if not item >> level & 1 and start + (1 << level) <= rounds:
            nodes.append(Node(start, start + (1 << level), scale))
    return nodes


def _sums_at(counts: set[int]) -> str:
    """The noisy sums in words."""
    return f"the noisy sum{'s' if len(counts) > 1 else ''} at {', '.join(map(str, sorted(counts)))}"
