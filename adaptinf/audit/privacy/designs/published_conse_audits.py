"""Neighbouring trials on which published DP-ConSE exceeds its epsilon, one for each way in which it does."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from adaptinf.audit.privacy.designs.neighbours import Neighbours
from adaptinf.privacy.integer_mechanisms import TruncatedLaplace
from adaptinf.simulation.environments import Tableau
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray

_ESTIMATE, _LENGTH = 2, 3
_HORIZON = 200
_MOST_ARRIVALS = 200


@dataclass(frozen=True, slots=True, eq=False)
class EstimateCame:
    """-1 where the first context's estimate came, 1 where the second's did, 0 where neither or both did."""

    n_rounds: int
    contexts: tuple[int, int]

    def __call__(self, transcripts: Transcripts) -> FloatArray:
        """Score of each run, shape (runs,)."""
        columns = transcripts.releases
        at_round = (columns[..., 0] == self.n_rounds) if self.n_rounds else (columns[..., 0] > 0.0)
        came = [
            (at_round & (columns[..., 1] == _ESTIMATE) & (columns[..., 2] == context)).any(axis=1)
            for context in self.contexts
        ]
        return np.asarray(came[1].astype(np.float64) - came[0])


@dataclass(frozen=True, slots=True, eq=False)
class ActionRatio:
    """Log-likelihood ratio of other participants' actions in the second half, nothing else being seen.

    Shapes: log_ratios (others + 1,).
    """

    rounds: tuple[tuple[int, ...], tuple[int, ...]]
    log_ratios: tuple[FloatArray, FloatArray]

    def __call__(self, transcripts: Transcripts) -> FloatArray:
        """Score of each run, shape (runs,)."""
        better = transcripts.outcomes[:, -2:]
        total = np.zeros(better.shape[0])
        for context, (rounds, log_ratio) in enumerate(zip(self.rounds, self.log_ratios, strict=True)):
            other = transcripts.actions[:, list(rounds)] != better[:, context : context + 1]
            positions = np.arange(1, len(rounds) + 1)
            total += log_ratio[(other * positions).max(axis=1)]
        return total


@dataclass(frozen=True, slots=True, eq=False)
class LengthRatio:
    """Log-likelihood ratio of all released lengths, whose common centre is one of two numbers.

    Shapes: log_ratios (lengths,).
    """

    log_ratios: FloatArray

    def __call__(self, transcripts: Transcripts) -> FloatArray:
        """Score of each run, shape (runs,)."""
        columns = transcripts.releases
        of_lengths = columns[..., 1] == _LENGTH
        lengths = np.where(of_lengths, columns[..., 3], 0.0).astype(np.int64)
        ratios = self.log_ratios[np.minimum(lengths, self.log_ratios.size - 1)]
        return np.asarray(np.where(of_lengths, ratios, 0.0).sum(axis=1))


def published_neighbours(epsilon: float, alpha: float) -> tuple[Neighbours, ...]:
    """Neighbours in a trial of 200 rounds, two contexts, a participant of the second half in one or other.

    No batch of the first half closes within 100 rounds, so that the first half is all fair coins. In the
    first two pairs the outputs of one trial are impossible in the other.
    """
    half = _HORIZON // 2
    some = [1] * (half // 4) + [0] * (half - half // 4)
    turns = [0, 1] * (half // 2)
    center = _center(half // 4, alpha, _HORIZON)
    closing, hidden = half + 2 * (center - 1), half + 2 * max(center - 2, 0)
    rare = [0] + [1] * (half - 1)
    came = "whether the estimate of context 0 came at all (-1 if it did)"
    closed = "which context's estimate came with the participant (0's: -1, 1's: 1)"
    ratio = "the log-likelihood ratio of the other participants' actions"
    return (
        _pair(some + turns, closing, EstimateCame(closing + 1, (0, 1)), closed),
        _pair(rare + [1] * half, half, EstimateCame(0, (0, -1)), came),
        _pair(some + turns, hidden, _action_ratio(some + turns, hidden, epsilon, center), ratio),
    )


def shared_center_neighbours(epsilon: float, alpha: float, n_features: int = 20) -> Neighbours | None:
    """A participant of the first half moves the centre that all contexts' lengths share.

    One context has f arrivals in the first half or, with the participant, f + 1 as the others have. The
    centre is that of the rarest one.
    """
    for arrivals in range(1, _MOST_ARRIVALS):
        half = n_features * (arrivals + 1)
        lower, upper = (_center(count, alpha, 2 * half) for count in (arrivals, arrivals + 1))
        if lower < upper:
            break
    else:
        return None
    contexts = [feature for feature in range(n_features) for _ in range(arrivals + 1)]
    law, sizes = TruncatedLaplace(epsilon=epsilon, calibration="published"), np.arange(upper + 1)
    score = LengthRatio(np.log(law.probability(sizes, upper) / law.probability(sizes, lower)))
    name = "the log-likelihood ratio of the released lengths"
    return _pair(contexts * 2, 0, score, name, kinds=(1, 0))


def _center(arrivals: int, alpha: float, horizon: int) -> int:
    """Whole part of T_min, where a context with so many arrivals in the first half is the rarest."""
    return math.floor(max(math.log(horizon), math.pow(arrivals, 1.0 - alpha)))


def _pair(
    contexts: list[int],
    participant: int,
    score: EstimateCame | ActionRatio | LengthRatio,
    score_name: str,
    kinds: tuple[int, int] = (0, 1),
) -> Neighbours:
    """A participant of one context or the other; nobody's rewards say anything."""
    sides = []
    for kind in kinds:
        given = list(contexts)
        given[participant] = kind
        sides.append(Tableau(np.full((len(given), 2), 0.5), given))
    where = "first" if participant < len(contexts) // 2 else "second"
    return Neighbours(
        sides[0],
        sides[1],
        horizon=len(contexts),
        unit="record",
        differs=f"a participant of the {where} half has context {kinds[0]}, or context {kinds[1]}",
        score=score,
        score_name=score_name,
        hidden=(participant,),
    )


def _action_ratio(contexts: list[int], participant: int, epsilon: float, center: int) -> ActionRatio:
    half = len(contexts) // 2
    others = [step for step in range(half, len(contexts)) if step != participant]
    rounds = tuple(tuple(step for step in others if contexts[step] == feature) for feature in (0, 1))
    log_ratios = []
    for feature, steps in enumerate(rounds):
        place = 1 + sum(step < participant for step in steps)
        without = _log_chances(len(steps), None, epsilon, center)
        with_participant = _log_chances(len(steps), place, epsilon, center)
        log_ratios.append(with_participant - without if feature else without - with_participant)
    return ActionRatio((rounds[0], rounds[1]), (log_ratios[0], log_ratios[1]))


def _log_chances(others: int, place: int | None, epsilon: float, center: int) -> FloatArray:
    """Log-probability of a sequence of arms, by its last arrival without the better one, shape (others + 1,).

    Of the others the first T have fair coins, and one fewer where the participant is arrival number `place`
    and T reaches it; the rest have the better arm.
    """
    law = TruncatedLaplace(epsilon=epsilon, calibration="published")
    lengths = np.arange(others + 1)
    coins = np.zeros(others + 1)
    randomised = lengths if place is None else lengths - (lengths >= place)
    np.add.at(coins, randomised, law.probability(lengths, center))
    coins[others] += law.tail(others, center)
    weights = coins * 0.5 ** np.arange(others + 1)
    suffix = list(itertools.accumulate(weights[::-1]))[::-1]
    return np.log(suffix)
