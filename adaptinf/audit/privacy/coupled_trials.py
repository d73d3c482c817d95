"""Coupling of neighbouring trials, and the alignment of a private stopping rule.

Let S_j be the sums at the looks, B the noise of the threshold, A_j the noise of look j, and L the noise of
the estimate. The rule stops at the first look with abs(S_j) - B - A_j >= T_j. A neighbour's sums differ by
at most Delta. Suppose that the first run stops at look k. The neighbour's noise is B' = B + Delta, A'_j =
A_j for j < k, and A'_k = A_k - 2 Delta. The neighbour does not stop before k, because abs(S'_j) - B' - A'_j
<= abs(S_j) + Delta - B - Delta - A_j < T_j for j < k. The neighbour stops at k, because abs(S'_k) - B' -
A'_k >= abs(S_k) - Delta - B - Delta - A_k + 2 Delta >= T_k. With L' = L + S_k - S'_k, the estimates are
equal.

The noise has scales 6, 6 and 2 times Delta / epsilon: the shifts cost epsilon / 6, epsilon / 3 and at most
epsilon / 2. If a run does not stop, only the noise of its threshold is shifted. The look whose noise is
shifted depends on where the first run stops, which is an output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.audit.privacy.coupled_pairs import (
    MORE,
    SUBJECT,
    Coupled,
    CoupledPair,
    PairAudit,
    first_difference,
    noise_problems,
)
from adaptinf.audit.privacy.coupled_plays import RELEASE, GivenNoise, Output
from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.audit.privacy.histories import KINDS, declared_terms, design_terms
from adaptinf.designs.base import Design
from adaptinf.designs.stopping.stopping_rules import DPNAS
from adaptinf.designs.stopping.stopping_samples import ReleaseNoise
from adaptinf.parameters import COUNT, SEED, OrNone, problems_of, refuse
from adaptinf.privacy.noise import Buffer
from adaptinf.simulation.replicate import seed_sequence
from adaptinf.texts import shown
from adaptinf.typing import FloatArray, RandomSource

if TYPE_CHECKING:
    from adaptinf.trial import Trial


_THRESHOLD, _LOOK, _ESTIMATE = "threshold", "look", "estimate"
_KINDS = ("value", "never")
# Each pair is run with several draws of the noise, because the noise determines the look at which a rule
# stops.
_RUNS = 4


class GivenStops(ReleaseNoise):
    """Noise supplied to a stopping rule, including shifts, keyed by the names of the draws."""

    def __init__(self, given: GivenNoise) -> None:
        super().__init__()
        self.given, self._queue = given, _buffer([])
        self.looked, self._made = 0, 0

    def threshold(self, scale: float) -> Buffer:
        """The threshold's."""
        return _buffer([self.given(_THRESHOLD, scale)])

    def looks(self, scale: float, count: int) -> Buffer:
        """Noise for the next looks; unused noise is kept."""
        unused = self._queue.noises[self._queue.positions[1] :].tolist()
        fresh = max(count - len(unused), 0)
        names = [f"{_LOOK} {self._made + number}" for number in range(1, fresh + 1)]
        self._queue, self._made = (
            _buffer([*unused, *(self.given(name, scale) for name in names)]),
            self._made + fresh,
        )
        return self._queue

    def release(self, scale: float) -> Buffer:
        """Noise for the final sum."""
        return _buffer([self.given(_ESTIMATE, scale)])

    @property
    def halted(self) -> str:
        """Name of the last look whose noise was used."""
        used = self._made - (len(self._queue.noises) - int(self._queue.positions[1]))
        return f"{_LOOK} {used}"


@dataclass(frozen=True)
class _Stopped:
    """The outputs of a run, the samples that were read, where it stopped, and the scales of its noise."""

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
            f"{kind} does not apply to {type(rule).__name__}: a stream only has samples that differ or are "
            "missing"
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
    """The largest cost and the first disagreement of two streams over several draws of noise."""
    bound = float(rule.bound)
    place = 0 if number == 0 else int(root.integers(0, max(stream.size // 64, 2)))
    first: list[Any] = stream.tolist()
    second = first.copy()
    # Every second pair exceeds the bound, which tests that iterables are clipped too.
    beyond = 4.0 if number % 2 else 1.0
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
            problem = problem or f"no noise is drawn for the {bare[0]}, which the sample changes"
        problem = problem or (difference[1] if difference else "")
        compared += len(one.outputs)
        paid = sum(
            (Fraction(abs(shift)) / Fraction(one.scales[name]) for name, shift in drawn.items()), Fraction(0)
        )
        if paid >= cost:
            cost, shifted = paid, len(shifts)
    return CoupledPair(kind, words, float(cost), rule.guarantee(), shifted, compared, _RUNS, False, problem)


def _run(rule: DPNAS, samples: list[Any], given: GivenNoise) -> _Stopped:
    """Run the rule on an iterable of samples, with given release noise."""
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
    """Shifts of the second run's noise, determined by the outputs of the first run."""
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
    """The exact sum of the samples as used by the rule: clipped, in units, with 0 for missing samples."""
    values = np.array([0.0 if value is None else value for value in samples], dtype=np.float64)
    return int(units.to_units(values, bound).sum())


def _buffer(values: Sequence[int]) -> Buffer:
    return Buffer(np.zeros(0), np.array(values, dtype=np.float64), np.zeros(2, dtype=np.int64))


# Two of the four pairs use the fewest arms that the design allows, because an outcome then enters the most
# nodes.
_ALONE = (1, 2)
# Pairs of each kind, and further ones that differ in values and contexts. Trials with more participants than
# the last number get fewer pairs, because they are slow.
_PAIRS, _FURTHER, _LONG = 4, 3, 200
# In long trials, the pair that differs in an amendment also runs on the base with clipped outcomes: the
# corrected outcome has to be clipped as well.
_CLIPPED = 1


def coupled(
    target: Design | DPNAS | Trial,
    neighbours: str | Sequence[str] | None = None,
    *,
    pairs: int | None = None,
    horizon: int | None = None,
    rng: RandomSource | None = None,
) -> Coupled:
    """Run neighbouring live trials, check that their covered outputs are identical, and add up the cost.

    The two trials have equal coins and differ in one participant. Their noise is supplied as integers. The
    noise of the second trial is shifted, draw by draw, by the difference between the sums that it masks,
    until both release the same values. Every covered output must then be the same, and the sum of abs(shift)
    / scale over all draws, with the scales at which noise was drawn, must be at most the guaranteed epsilon.

    Parameters
    ----------
    target : Design, DPNAS or Trial
        A private design with integer-valued noise: `PrivateUCB`, `PrivateSuccessiveElimination`, `DPConSE`,
        `LinPriv` with delta 0, `DPBAI`, a `Mixture` of one of them, or a user-defined design with named
        nodes; or `DPNAS`. For a trial, only its declaration is read: separate trials with the same terms are
        run, with at most 64 participants.
    neighbours : str or sequence of str, optional
        Kinds of pairs, by default all that apply: an outcome has another value (``"value"``), or a whole
        record differs (``"context"``); an outcome arrives ``"early"``, ``"late"`` (after the window) or
        ``"never"``; it is ``"amended"``; or the participant is ``"erased"``.
    pairs : int, optional
        Number of pairs of each kind, by default 4. Each pair is accompanied by three pairs with other values
        and contexts, because the cost depends on the participant. In trials with more than 200 participants
        there are no such additional pairs, and the default is 1 pair of each kind, or 2 for amendments.
    horizon : int, optional
        For a design, the length of the trials; by default, long enough for the design to release something.
    rng : int, SeedSequence, Generator or None
        Source of randomness for the pairs, coins and noise.

    Returns
    -------
    Coupled
        The pairs, their cost and the guarantee, the outputs that were compared, and a description of the
        first disagreement.

    Raises
    ------
    ParameterError
        If an argument is invalid (the message lists every problem), or the design cannot be coupled (the
        message states what can be audited instead).
    MissingDependencyError
        If SQLAlchemy or OpenDP is missing, which trials in files require.

    Notes
    -----
    A pair checks the design against the proof of its privacy guarantee. The comparison covers coins, arms,
    propensities if covered, names and scales of all draws, releases, the whole of `public`, including its
    files, halfway and at the end, and the status of a trial. The comparison excludes the responses to the
    participant who differs; that participant's own arm, if contexts differ; the number of outcomes received
    in a status, if the neighbours differ in it; and the header.

    Shifts are computed from the releases of the two runs, and must be the same for any other noise of the
    node: they depend on the data and on earlier releases, never on the noise. `DPNAS` does not release its
    looks; its alignment follows the proof: the threshold's noise is shifted by the sensitivity Delta, the
    noise of the look at which it stops by 2 Delta, and the noise of the estimate by the difference between
    the sums.

    Equal outputs demonstrate an alignment for these pairs, coins and noise only. The noise is supplied, so a
    design from which the real noise had been removed would pass. Equal outputs are evidence of privacy only
    if the distribution, drawn scale, independence, support and lattice of the noise are tested too: see
    `epsilon_lower_bound`.

    References
    ----------
    Ding, Z., Wang, Y., Wang, G., Zhang, D. and Kifer, D. (2018). Detecting violations of differential
    privacy. CCS.

    Zhang, D. and Kifer, D. (2017). LightDP: towards automating differential privacy proofs. POPL.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.PrivateUCB(epsilon=1.0, counter="binary")
    >>> found = ai.audit.coupled(design, ["value", "never"], pairs=1, rng=0)
    >>> found.refuted, found.disagreement, found.cost <= 1.0
    (False, '', True)
    """
    refuse(SUBJECT, _call_problems(target, neighbours, pairs, horizon, rng))
    kinds = (
        KINDS if neighbours is None else (neighbours,) if isinstance(neighbours, str) else tuple(neighbours)
    )
    root = np.random.default_rng(seed_sequence(rng))
    if isinstance(target, DPNAS):
        return coupled_stopping(target, kinds, neighbours is not None, pairs or _PAIRS, root)
    if isinstance(target, Design):
        refuse(SUBJECT, noise_problems(target))
        design, terms = design_terms(target, horizon)
    else:
        design, terms = declared_terms(target)
        refuse(SUBJECT, noise_problems(design))
    audit = PairAudit.of(design, terms)
    fewest = (
        audit
        if terms.fewest is None
        else PairAudit.of(design, replace(terms, arms=terms.arms[: terms.fewest]))
    )
    fitting = audit.fitting(kinds)
    refuse(
        SUBJECT, [] if neighbours is None else [audit.unfit(kind) for kind in kinds if kind not in fitting]
    )
    found = []
    for number in range(pairs or _PAIRS):
        long = terms.rounds > _LONG
        few = pairs is None and long and number > 0
        again = (*MORE, "amended") if number == _CLIPPED else MORE
        here = [kind for kind in fitting if kind in again or not few]
        one = fewest if number % 4 in _ALONE else audit
        found += one.pairs(number, here, root, 0 if long else _FURTHER)
    return Coupled(audit.words, tuple(sorted(found, key=lambda pair: KINDS.index(pair.kind))))


def _call_problems(target: Any, neighbours: Any, pairs: Any, horizon: Any, rng: Any) -> list[str]:
    """Problems with the arguments of a call."""
    from adaptinf.trial import Trial

    problems = problems_of(pairs=(pairs, OrNone(COUNT)), horizon=(horizon, OrNone(COUNT)), rng=(rng, SEED))
    kinds = (neighbours,) if isinstance(neighbours, str) else neighbours
    if kinds is not None:
        known = isinstance(kinds, Sequence) and len(kinds) > 0 and all(kind in KINDS for kind in kinds)
        if not known:
            problems.append(f"neighbours must be among {', '.join(KINDS)}, got {shown(neighbours)}")
    if not isinstance(target, (Design, DPNAS, Trial)):
        problems.append(f"target must be a private design, a DPNAS or a trial, got {shown(target)}")
    if horizon is not None and not isinstance(target, Design):
        problems.append("horizon must be omitted if target is not a design: a stream or trial has its own")
    return problems
