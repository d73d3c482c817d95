"""Runs of mechanisms and counters on two neighbouring inputs, and the exact likelihood ratio of releases.

Runs are arrays: a single call of a mechanism's own `release` draws thousands of them. If a mechanism adapts
its noise to the size of its input, or stops early, its release backend is called once per run.

The noisy sums determine the noisy node sums: the value at n minus the value at the count where n's new node
begins. The nodes have independent noise, and only those that contain the changed item distinguish the
streams.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from adaptinf.audit.privacy.designs.audited_trial import NodeNoise, laplace_uniforms
from adaptinf.audit.privacy.lower_bound import Found, LearnedScore, bit_codes, digits_event
from adaptinf.audit.privacy.output_sources import CHUNK, DEFAULT_RUNS
from adaptinf.privacy.counter import Counter
from adaptinf.privacy.integer_mechanisms import DiscreteLaplace, TruncatedLaplace
from adaptinf.privacy.mechanism import Mechanism
from adaptinf.privacy.noise import generator
from adaptinf.privacy.real_mechanisms import Gaussian, Laplace
from adaptinf.privacy.release import GRID_UNITS
from adaptinf.privacy.sparse_vector import SparseVector
from adaptinf.simulation.replicate import child
from adaptinf.typing import FloatArray

# With more statistics, the answer that distinguishes the inputs best would occur less often, so the audit
# would see it less often.
_QUESTIONS = 8

Pair = tuple[FloatArray, FloatArray]


@singledispatch
def worst_inputs(mechanism: Mechanism) -> Pair:
    """The two arrays of statistics allowed by the mechanism whose releases differ most.

    Both returned arrays have shape (d,).
    """
    raise TypeError(f"no neighbouring inputs are known for {type(mechanism).__name__}")


@worst_inputs.register(Laplace)
@worst_inputs.register(Gaussian)
@worst_inputs.register(DiscreteLaplace)
def _shifted_inputs(mechanism: Any) -> Pair:
    return np.zeros(1), np.full(1, float(mechanism.sensitivity))


@worst_inputs.register
def _truncated_inputs(mechanism: TruncatedLaplace) -> Pair:
    first = np.full(mechanism.sensitivity, float(mechanism.lowest))
    return first, first + 1.0


@worst_inputs.register
def _sparse_inputs(mechanism: SparseVector) -> Pair:
    last = np.arange(_QUESTIONS) == _QUESTIONS - 1
    return np.where(last, mechanism.sensitivity, 0.0), np.where(last, 0.0, mechanism.sensitivity)


def pair_problems(mechanism: Mechanism, first: FloatArray, second: FloatArray) -> list[str]:
    """List problems with two inputs to which a mechanism's guarantee should apply."""
    if first.ndim != 1 or first.shape != second.shape or first.size == 0:
        return [
            f"neighbours must be two sequences of the same length, got shapes {first.shape}, {second.shape}"
        ]
    if not np.isfinite([first, second]).all():
        return ["neighbours must be finite"]
    whole = isinstance(mechanism, (DiscreteLaplace, TruncatedLaplace))
    if whole and np.any(np.concatenate([first, second]) % 1.0):
        return [f"neighbours must be whole numbers, as {type(mechanism).__name__} requires"]
    moved: float
    change = np.abs(second - first)
    if isinstance(mechanism, Gaussian):
        size, moved = "L2", float(np.sqrt((change**2).sum()))
    elif isinstance(mechanism, SparseVector):
        size, moved = "every statistic", float(change.max())
    else:
        size, moved = "L1", float(change.sum())
    allowed = float(getattr(mechanism, "sensitivity", np.inf))
    if not 0.0 < moved <= allowed * (1.0 + 1e-12):
        return [
            f"neighbours must differ, and by at most the sensitivity, {allowed:g} in {size}; "
            f"they differ by {moved:g}"
        ]
    return []


@singledispatch
def sample(
    mechanism: Any, values: FloatArray, runs: int, rng: np.random.Generator | None, backend: str
) -> FloatArray:
    """Independent releases of the same statistics, values of shape (d,), as an array of shape (runs, d)."""
    return np.asarray(mechanism.release(np.tile(values, (runs, 1)), rng, backend), dtype=np.float64)


@sample.register(Laplace)
@sample.register(Gaussian)
def _real_sample(
    mechanism: Any, values: FloatArray, runs: int, rng: np.random.Generator | None, backend: str
) -> FloatArray:
    if backend == "simulation":
        return np.asarray(mechanism.release(np.tile(values, (runs, 1)), rng))
    on_grid = not np.any(values / mechanism.sensitivity * GRID_UNITS % 1.0)
    if values.size == 1 and on_grid:
        # On the grid, the noise of a number does not depend on how many numbers are released with it, so all
        # runs take one call.
        return np.asarray(mechanism.release(np.tile(values, (runs, 1)), backend=backend, on_grid=True))
    return np.array([mechanism.release(values, backend=backend) for _ in range(runs)])


@sample.register
def _sparse_sample(
    mechanism: SparseVector, values: FloatArray, runs: int, rng: np.random.Generator | None, backend: str
) -> FloatArray:
    if rng is None:
        answers = (mechanism.release(values, backend=backend) for _ in range(runs))
        return np.array([[float((~given).sum())] for given in answers])
    threshold = rng.laplace(scale=mechanism.threshold_scale, size=(runs, 1))
    above = values + rng.laplace(scale=mechanism.query_scale, size=(runs, values.size)) >= threshold
    below = np.where(above.any(axis=1), above.argmax(axis=1), values.size)
    return np.asarray(below[:, None], dtype=np.float64)


@singledispatch
def log_ratio(mechanism: Any, outputs: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Log-likelihood ratio of releases, second statistics against first.

    Shapes: outputs (runs, d), first, second (d,); returns (runs,).
    """
    distance = np.abs(outputs - first) - np.abs(outputs - second)
    return np.asarray((distance / mechanism.scale).sum(axis=1))


@log_ratio.register
def _gaussian_ratio(
    mechanism: Gaussian, outputs: FloatArray, first: FloatArray, second: FloatArray
) -> FloatArray:
    return (outputs - 0.5 * (first + second)) @ (second - first) / mechanism.scale**2


@log_ratio.register
def _truncated_ratio(
    mechanism: TruncatedLaplace, outputs: FloatArray, first: FloatArray, second: FloatArray
) -> FloatArray:
    totals = [
        np.log1p(np.exp(-mechanism.rate) - np.exp(-mechanism.rate * (m + 1.0))) for m in (first, second)
    ]
    distance = np.abs(outputs - first) - np.abs(outputs - second)
    return np.asarray(mechanism.rate * distance.sum(axis=1) + float((totals[0] - totals[1]).sum()))


@log_ratio.register
def _sparse_ratio(
    mechanism: SparseVector, outputs: FloatArray, first: FloatArray, second: FloatArray
) -> FloatArray:
    law = np.log(mechanism.stopping_law(second)) - np.log(mechanism.stopping_law(first))
    return np.asarray(law[outputs[:, 0].astype(np.int64)])


@dataclass(frozen=True, eq=False)
class MechanismSource:
    """Releases of a mechanism on two neighbouring inputs."""

    mechanism: Mechanism
    pair: Pair
    view: str
    backend: str
    root: np.random.SeedSequence
    default_runs: int = DEFAULT_RUNS

    @property
    def name(self) -> str:
        """The mechanism and its inputs."""
        first, second = (", ".join(f"{value:g}" for value in side) for side in self.pair)
        return f"{self.mechanism!r}, {self.backend} noise: ({first}) against ({second})"

    def outputs(self, side: int, start: int, stop: int) -> FloatArray:
        """Scores of shape (runs,), or codes of bits of shape (runs, numbers)."""
        rng = None if self.backend == "release" else generator(child(self.root, side, start // CHUNK))
        released = sample(self.mechanism, self.pair[side], stop - start, rng, self.backend)
        if self.view == "digits":
            return bit_codes(released)
        return log_ratio(self.mechanism, released, *self.pair)

    def event(self, found: Found, learned: LearnedScore | None) -> str:
        """Description of the event."""
        if learned is not None:
            return digits_event(found, learned, "the release")
        subject = "number of statistics below the threshold"
        what = subject if isinstance(self.mechanism, SparseVector) else "release"
        side = "least" if found.upper else "most"
        return f"the log-likelihood ratio of the {what} is at {side} {found.cut:.9g}"


# A counter without levels spends all of epsilon within this many items; with more nodes, each would reveal
# less.
_ROUNDS = 32
# More numbers than this in a default stream would take too much memory and time.
_NUMBERS = 1 << 20
# Only this many items are added one by one. Later items that cannot matter are passed over, which saves time.
_ADDED = 32


class Node(NamedTuple):
    """Items `start` + 1 to `end`, and the scale of the noise on their sum."""

    start: int
    end: int
    scale: float


def counter_nodes(counter: Counter, rounds: int) -> list[Node]:
    """Nodes that a counter's releases up to a count reveal, at most one per release."""
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
    """Noise of every node revealed by this number of releases, for items that cover the whole range."""
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
    """Two streams that differ as much as possible in the most revealing item.

    Both returned arrays have shape (items, dimension).
    """
    if counter.mechanism == "binary":
        # Only the first item lies in a node of every level, so it affects the most releases.
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
    """How an item changes: in as few coordinates as possible for L1, equally in all coordinates for L2."""
    width, d = counter.high - counter.low, counter.dimension
    if counter.noise == "gaussian":
        return np.full(d, min(width, counter.sensitivity / np.sqrt(d)))
    left = min(counter.sensitivity, d * width)
    return np.clip(left - width * np.arange(d), 0.0, width)


def stream_problems(counter: Counter, first: FloatArray, second: FloatArray) -> list[str]:
    """List problems with two streams to which a counter's guarantee should apply."""
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
        problems.append(f"neighbours must have at most {counter.horizon} items, the horizon of the counter")
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
        """Description of the largest privacy loss on these streams, if it is less than epsilon."""
        if self.counter.noise != "laplace":
            return ""
        shift = float(np.abs(self.pair[1] - self.pair[0]).sum())
        loss = sum(shift / node.scale for node in self._telling())
        if loss >= self.counter.epsilon * (1.0 - 1e-6):
            return ""
        return (
            f" and reveals at most {loss / self.counter.epsilon:.2g} of epsilon: "
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
        """Scores of shape (runs,), or codes of bits of shape (runs, numbers)."""
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
        """Noisy sums at the ends of the relevant nodes, of shape (runs, dimension)."""
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
        """Description of the event."""
        nodes = self._telling()
        if learned is not None:
            return digits_event(found, learned, _sums_at({node.end for node in nodes}))
        looked_at = {count for node in nodes for count in (node.start, node.end)}
        return (
            f"the log-likelihood ratio of {_sums_at(looked_at - {0})} is at "
            f"{'least' if found.upper else 'most'} {found.cut:.9g}"
        )


def _nodes_of_item(item: int, rounds: int, scale: float) -> list[Node]:
    """Nodes of the binary mechanism that contain an item (counted from 0), in the order of their ends."""
    nodes = []
    for level in range(rounds.bit_length()):
        start = item >> level << level
        # A parent node is the sum of two halves, and only the parent and the first half are released, so the
        # second half has no noise of its own.
        if not item >> level & 1 and start + (1 << level) <= rounds:
            nodes.append(Node(start, start + (1 << level), scale))
    return nodes


def _sums_at(counts: set[int]) -> str:
    """Description of the noisy sums."""
    return f"the noisy sum{'s' if len(counts) > 1 else ''} at {', '.join(map(str, sorted(counts)))}"
