"""Worst-case neighbouring trials of corrected DP-ConSE, and the exact likelihood ratio of their outputs."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from adaptinf.designs.conse.private_kernel import window_ends
from adaptinf.designs.neighbours import UNIT_RANGE, Neighbours
from adaptinf.simulation.environments import Tableau
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray, IntArray

_CONTRAST, _ARRIVALS = 0, 1
_LEAST_ROUNDS = 3
_SHOWN = 10
_LONGEST = 480
_RARE = 4
_GAIN, _LOSS = (0.0, 1.0), (1.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One of two neighbouring data sets; contexts (rounds,), rewards (rounds, 2)."""

    contexts: IntArray
    rewards: FloatArray

    def tableau(self) -> Tableau:
        """Where the trial is run."""
        return Tableau(self.rewards, self.contexts, reward_range=UNIT_RANGE)


@dataclass(frozen=True, slots=True, eq=False)
class WindowRatio:
    """Log-likelihood ratio of all outputs, where the participant's sums are released at one round.

    Outputs before that round have the same law on both sides, and given all up to it so have the later
    ones. In between, the ratio is that of the sums, given the actions: coins that no output shows (the
    participant's own where `unseen`, and in the second half who is in the trial) are averaged over.
    """

    sides: tuple[Side, Side]
    start: int
    stop: int
    contrast_scale: float
    arrival_scale: float
    unseen: int

    def __call__(self, transcripts: Transcripts) -> FloatArray:
        """Score of each run, shape (runs,)."""
        first, second = (self._log_density(transcripts, side) for side in self.sides)
        return np.asarray(second - first)

    def _log_density(self, transcripts: Transcripts, side: Side) -> FloatArray:
        n_features = int(side.contexts.max()) + 1
        contrasts = self._released(transcripts, _CONTRAST, n_features)
        arrivals = self._released(transcripts, _ARRIVALS, n_features)
        total = np.full(contrasts.shape[0], -np.inf)
        rounds = range(self.start, self.stop)
        for included in itertools.product((1, 0) if self.start else (1,), repeat=len(rounds)):
            for own in (0, 1) if self.start <= self.unseen < self.stop else (0,):
                log_weight = np.zeros(total.size)
                sums, counts = np.zeros(contrasts.shape), np.zeros(arrivals.shape)
                for step, inside in zip(rounds, included, strict=True):
                    feature = side.contexts[step]
                    action = np.full(total.size, own) if step == self.unseen else transcripts.actions[:, step]
                    log_weight += self._log_chance(transcripts, n_features, feature, action, inside)
                    if inside:
                        gain = np.take(side.rewards[step], action) - 0.5
                        sums[:, feature] += (2.0 * action - 1.0) * gain
                        counts[:, feature] += 1.0
                log_weight -= (np.abs(contrasts - sums) / self.contrast_scale).sum(axis=1)
                log_weight -= self._misfit(np.abs(arrivals - counts).sum(axis=1))
                total = np.logaddexp(total, log_weight)
        return total

    def _misfit(self, distance: FloatArray) -> FloatArray:
        """Of released counts, on the log scale: exact ones rule out all others."""
        if self.arrival_scale > 0.0:
            return distance / self.arrival_scale
        return np.where(distance > 0.0, np.inf, 0.0)

    def _released(self, transcripts: Transcripts, code: int, n_features: int) -> FloatArray:
        """What is released at the end of the rounds, shape (runs, features)."""
        columns = transcripts.releases
        found = np.empty((columns.shape[0], n_features))
        for feature in range(n_features):
            rows = (columns[..., 0] == self.stop) & (columns[..., 1] == code) & (columns[..., 2] == feature)
            found[:, feature] = columns[..., 3][rows]
        return found

    def _log_chance(
        self, transcripts: Transcripts, n_features: int, feature: int, action: IntArray, inside: int
    ) -> FloatArray:
        """Log-probability that an arrival gets the arm and enters the trial, or gets it otherwise."""
        inclusion, better = np.ones(action.size), np.zeros(action.size)
        if self.start:
            inclusion = transcripts.outcomes[:, 1 + 2 * n_features + feature]
            better = transcripts.outcomes[:, 1 + 3 * n_features + feature]
        chance = 0.5 * inclusion if inside else (1.0 - inclusion) * (action == better)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(chance))


def corrected_neighbours(
    unit: str, contrast_budget: float, arrival_budget: float, first_window: int | None
) -> tuple[Neighbours, ...]:
    """Neighbours on which all of the budget is spent; the last pair is for an audit of the actions alone.

    The participant has rewards (0, 1), or (1, 0): the contribution to the sum is +1/2, or -1/2, whatever the
    coin, so that nothing is gained by not seeing it. The sums of rewards move by 1 in all. With the context
    the counts move by 2. Without a budget for counts there is one context, and records differ in rewards.
    """
    if arrival_budget == 0.0:
        exact = 1.0 / contrast_budget, 0.0
        pairs = _alone("reward", 0, exact), _alone("reward", 2, exact)
        return tuple(
            replace(pair, unit=unit) for pair in (*pairs, _in_company("reward", exact, first_window))
        )
    scales = 1.0 / contrast_budget, 2.0 / arrival_budget
    return (
        _alone(unit, 0, scales),
        _alone(unit, 2, scales),
        _in_company(unit, scales, first_window),
        _later_actions(unit, arrival_budget, scales, first_window),
    )


def _pair(
    unit: str,
    contexts: list[int],
    rewards: FloatArray,
    participant: int,
    window: tuple[int, int],
    scales: tuple[float, float],
    differs: str,
    moved: bool = True,
    hidden: tuple[int, ...] | None = None,
) -> Neighbours:
    """The participant has context 0 and rewards (0, 1), or rewards (1, 0) and in a record context 1."""
    sides = []
    for own, feature in ((_GAIN, 0), (_LOSS, int(unit == "record" and moved))):
        given, paid = np.array(contexts) if scales[1] > 0.0 else np.zeros(len(contexts), int), rewards.copy()
        given[participant], paid[participant] = feature, own
        sides.append(Side(given, paid))
    unseen = participant if unit == "record" else -1
    score = WindowRatio((sides[0], sides[1]), *window, *scales, unseen)
    return Neighbours(
        sides[0].tableau(),
        sides[1].tableau(),
        horizon=len(contexts),
        unit=unit,
        differs=f"{differs} has {_differences(unit, moved)}",
        score=score,
        score_name="the log-likelihood ratio of the releases and of the actions that are outputs",
        hidden=hidden if hidden is not None else (participant,) * (unit == "record"),
    )


def _differences(unit: str, moved: bool) -> str:
    if unit == "record" and moved:
        return "context 0 and rewards 0 and 1 of the two arms, or context 1 and rewards 1 and 0"
    return "rewards 0 and 1 of the two arms, or 1 and 0"


def _alone(unit: str, participant: int, scales: tuple[float, float]) -> Neighbours:
    """The smallest trial, one participant in the first half and two in the second, one of them changes."""
    contexts = [0, 0, 1] if participant == 0 else [0, 1, 0]
    window = (0, 1) if participant == 0 else (1, _LEAST_ROUNDS)
    where = "first half, alone in its window," if participant == 0 else "second half"
    rewards = np.full((_LEAST_ROUNDS, 2), 0.5)
    return _pair(unit, contexts, rewards, participant, window, scales, f"a participant of the {where}")


def _in_company(unit: str, scales: tuple[float, float], first_window: int | None) -> Neighbours:
    """A first window of up to six, whose other participants' contributions depend on their coins."""
    contexts = [0, 1, 0, 1, 0, 1] * 2
    window = (0, int(window_ends(len(contexts), first_window, 2)[0]))
    rewards = np.array([[0.5, 0.5], [0.0, 0.25], [1.0, 1.0], [0.0, 0.0], [0.75, 0.25], [1.0, 0.5]] * 2)
    return _pair(unit, contexts, rewards, 0, window, scales, "the first participant of a trial of 12")


def _later_actions(
    unit: str, arrival_budget: float, scales: tuple[float, float], first_window: int | None
) -> Neighbours:
    """A long second half, in which most participants get the arm that the sums of the first half speak for.

    The others' rewards of 1/2 add nothing to the sums. A second context is so rare that T_min is low.
    """
    horizon = 64
    while horizon < _LONGEST and horizon / 2 - _RARE < 16.0 * math.log(horizon) / arrival_budget:
        horizon += 16
    half = horizon // 2
    contexts = ([0] * (half - _RARE) + [1] * _RARE) * 2
    hidden = tuple(step for step in range(horizon) if not half <= step < half + _SHOWN)
    window = (0, int(window_ends(horizon, first_window, 2)[0]))
    rewards = np.full((horizon, 2), 0.5)
    differs = "the first participant of a trial with a long second half"
    pair = _pair(unit, contexts, rewards, 0, window, scales, differs, moved=False, hidden=hidden)
    return replace(pair, for_actions=True)
