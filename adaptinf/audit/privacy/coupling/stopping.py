"""The alignment of a private stopping rule, whose looks are not released.

Let S_j be the sums at the looks, B the noise of the threshold, A_j that of look j, L that of the estimate.
The rule halts at the first look with abs(S_j) - B - A_j >= T_j. A neighbour's sums differ by at most Delta.
Let run one halt at look k. With B' = B + Delta and A'_j = A_j for j < k,

    abs(S'_j) - B' - A'_j <= abs(S_j) + Delta - B - Delta - A_j < T_j,

so that the neighbour does not halt before k; with A'_k = A_k - 2 Delta it halts at k, as

    abs(S'_k) - B' - A'_k >= abs(S_k) - Delta - B - Delta - A_k + 2 Delta >= T_k;

and with L' = L + S_k - S'_k the estimates are equal. The noise has scales 6, 6 and 2 times Delta / epsilon:
the shifts cost epsilon / 6, epsilon / 3 and at most epsilon / 2. A run that does not halt shifts that of the
threshold alone. Which look is shifted follows from where run one halts, which is an output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from adaptinf.audit.privacy.coupling.pairs import first_difference
from adaptinf.audit.privacy.coupling.plays import RELEASE, GivenNoise, Output
from adaptinf.audit.privacy.coupling.results import Coupled, CoupledPair
from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.designs.stopping.stopping_rules import DPNAS
from adaptinf.designs.stopping.stopping_samples import ReleaseNoise
from adaptinf.parameters import refuse
from adaptinf.privacy.noise import Buffer
from adaptinf.typing import FloatArray

_THRESHOLD, _LOOK, _ESTIMATE = "threshold", "look", "estimate"
_KINDS = ("value", "never")
_RUNS = 4
"""Draws of the noise by pair: at which look a rule halts depends on them."""


class GivenStops(ReleaseNoise):
    """Noise of a stopping rule that is given: by the names of its draws, and shifted."""

    def __init__(self, given: GivenNoise) -> None:
        super().__init__()
        self.given, self._queue = given, _buffer([])
        self.looked, self._made = 0, 0

    def threshold(self, scale: float) -> Buffer:
        """The threshold's."""
        return _buffer([self.given(_THRESHOLD, scale)])

    def looks(self, scale: float, count: int) -> Buffer:
        """That of the next looks; what was not used is kept."""
        unused = self._queue.noises[self._queue.positions[1] :].tolist()
        fresh = max(count - len(unused), 0)
        names = [f"{_LOOK} {self._made + number}" for number in range(1, fresh + 1)]
        self._queue, self._made = (
            _buffer([*unused, *(self.given(name, scale) for name in names)]),
            self._made + fresh,
        )
        return self._queue

    def release(self, scale: float) -> Buffer:
        """That of the final sum."""
        return _buffer([self.given(_ESTIMATE, scale)])

    @property
    def halted(self) -> str:
        """Name of the last look whose noise was used."""
        used = self._made - (len(self._queue.noises) - int(self._queue.positions[1]))
        return f"{_LOOK} {used}"


@dataclass(frozen=True)
class _Stopped:
    """What a run showed, the samples that it read, where it halted, and the scales of its noise."""

    outputs: list[Output]
    read: int
    look: str | None
    scales: Mapping[str, float]


def coupled_stopping(
    rule: DPNAS, kinds: Sequence[str], asked: bool, pairs: int, root: np.random.Generator
) -> Coupled:
    """Couple runs of a rule on two streams that differ in one sample."""
    wrong = [kind for kind in kinds if kind not in _KINDS] if asked else []
    refuse(
        "audit.coupled",
        [
            f"{kind} does not apply to {type(rule).__name__}: a stream has samples that differ or miss"
            for kind in wrong
        ],
    )
    (pair,) = neighbouring_trials(rule)
    stream = pair.first.tables(pair.horizon).tableau[:, 0]
    found = []
    for number in range(pairs):
        for kind in (kind for kind in dict.fromkeys(kinds) if kind in _KINDS):
            found.append(stream_pair(rule, stream, kind, number, root))
    return Coupled(f"{rule!r}, {stream.size:,} samples", tuple(found))


def stream_pair(
    rule: DPNAS, stream: FloatArray, kind: str, number: int, root: np.random.Generator
) -> CoupledPair:
    """Two streams, and several draws of noise; the largest cost and the first disagreement of these."""
    bound = float(rule.bound)
    place = 0 if number == 0 else int(root.integers(0, max(stream.size // 64, 2)))
    first: list[Any] = stream.tolist()
    second = first.copy()
    beyond = 4.0 if number % 2 else 1.0  # an iterable is clipped
    first[place] = beyond * bound
    second[place] = -beyond * bound if kind == "value" else None
    other = f"{second[place]:g}" if kind == "value" else "missing"
    words = f"sample {place + 1} is {first[place]:g} and {other}"
    cost, problem, compared, shifted = Fraction(0), "", 0, 0
    for _ in range(_RUNS):
        seed = root.bytes(32)
        one = _run(rule, first, GivenNoise(seed))
        shifts = _shifts(rule, one, first, second)
        two = _run(rule, second, GivenNoise(seed, shifts))
        difference = first_difference(one.outputs, two.outputs)
        drawn = {name: shift for name, shift in shifts.items() if name in one.scales}
        if bare := sorted(shifts.keys() - drawn.keys()):
            problem = problem or f"no noise is drawn for the {bare[0]}, which the sample moves"
        problem = problem or (difference[1] if difference else "")
        compared += len(one.outputs)
        paid = sum(
            (Fraction(abs(shift)) / Fraction(one.scales[name]) for name, shift in drawn.items()), Fraction(0)
        )
        if paid >= cost:
            cost, shifted = paid, len(shifts)
    return CoupledPair(kind, words, float(cost), rule.guarantee(), shifted, compared, _RUNS, False, problem)


def _run(rule: DPNAS, samples: list[Any], given: GivenNoise) -> _Stopped:
    """The rule on an iterable of samples, whose release noise is given."""
    noise = GivenStops(given)
    result = rule._run(iter(samples), None, None, noise)
    told = {name: repr(getattr(result, name)) for name in result.__slots__}
    told["summary()"] = result.summary()
    outputs = [Output(f"the result's {name}", text, RELEASE) for name, text in told.items()]
    outputs += [
        Output(f"draw of {name}", repr(given.asked.get(name)), RELEASE) for name in (_THRESHOLD, _ESTIMATE)
    ]
    return _Stopped(outputs, result.samples, noise.halted if result.stopped else None, given.asked)


def _shifts(rule: DPNAS, one: _Stopped, first: list[Any], second: list[Any]) -> dict[str, int]:
    """The shifts of the second run's noise, by what the first run showed."""
    units = ReleaseNoise()
    bound = float(rule.bound)
    sensitivity = round(2.0 * bound / units.unit(bound))
    shifts = {_THRESHOLD: sensitivity}
    if one.look is not None:
        shifts[one.look] = -2 * sensitivity
        sums = [_sum(units, samples[: one.read], bound) for samples in (first, second)]
        shifts[_ESTIMATE] = sums[0] - sums[1]
    return shifts


def _sum(units: ReleaseNoise, samples: list[Any], bound: float) -> int:
    """The exact sum of samples as a rule takes them: 0 for a missing one, clipped, in units."""
    values = np.array([0.0 if value is None else value for value in samples], dtype=np.float64)
    return int(units.to_units(values, bound).sum())


def _buffer(values: Sequence[int]) -> Buffer:
    return Buffer(np.zeros(0), np.array(values, dtype=np.float64), np.zeros(2, dtype=np.int64))
