"""Neighbouring trials of designs by epochs under overrides: longer, as an epoch skips overridden rounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from adaptinf.designs.neighbours import Neighbours, one_reward_apart
from adaptinf.designs.ratios.epochs import EpochMeanScore, MomentScore
from adaptinf.errors import ParameterError
from adaptinf.simulation.environments import Tableau
from adaptinf.typing import FloatArray, IntArray

__all__ = ["stretched_neighbours"]

_SPREAD = 6.0
"""Standard deviations of the number of overrides that the trial has rounds for."""
_LONGER, _ROUNDS = 16, 4_096
_SELDOM = 0.05


def stretched_neighbours(
    pair: Neighbours,
    opening: IntArray,
    share: Callable[[int], FloatArray],
    override: int,
) -> Neighbours:
    """A design's trials with rounds added for those that are overridden; the score leaves these out."""
    score = pair.score
    assert isinstance(score, (EpochMeanScore, MomentScore))
    shares = share(max(_LONGER * pair.horizon, _ROUNDS))
    kept = np.cumsum(1.0 - shares)
    certain = kept - _SPREAD * np.sqrt(np.cumsum(shares * (1.0 - shares)))
    enough = np.flatnonzero(certain >= pair.horizon)
    place = int(np.flatnonzero((score.first != score.second).any(axis=1))[0])
    row, chance = _likeliest_round(opening, place, shares)
    if not enough.size or chance < _SELDOM:
        raise ParameterError(
            "Mixture.neighbours",
            [
                "exploration overrides so many rounds that the design's releases would show nothing: audit "
                "the design itself, as overrides cost no privacy"
            ],
        )
    horizon = int(enough[0]) + 1
    rewards = score.first.copy()
    rewards[place] = rewards[place + 1 if place + 1 < opening.size else max(place - 1, 0)]
    clock = np.maximum.accumulate(np.clip(np.floor(certain[:horizon]), 0, pair.horizon - 1))
    first, second = one_reward_apart(rewards[clock.astype(np.int64)], row)
    if isinstance(score, EpochMeanScore):
        score = dataclasses.replace(score, first=first, second=second, row=row, override=override)
    else:
        score = dataclasses.replace(score, first=first, second=second, override=override)
    shown = pair.horizon - len(pair.hidden)
    return dataclasses.replace(
        pair,
        first=Tableau(first),
        second=Tableau(second),
        horizon=horizon,
        differs=f"the rewards of round {row + 1} are 0 and 1",
        score=score,
        hidden=tuple(range(horizon - shown)),
    )


def _likeliest_round(opening: IntArray, place: int, shares: FloatArray) -> tuple[int, float]:
    """The round likeliest to be one of the uninterrupted pulls of an arm around a place; the probability."""
    others = np.flatnonzero(opening != opening[place])
    begin = int(others[others < place].max(initial=-1)) + 1
    end = int(others[others > place].min(initial=opening.size))
    row, chance = 0, 0.0
    pulls = np.zeros(end)  # probability of each number of rounds so far that were not overridden
    pulls[0] = 1.0
    for step, overridden in enumerate(shares):
        here = float((1.0 - overridden) * pulls[begin:end].sum())
        if here > chance:
            row, chance = step, here
        if chance > pulls.sum():
            break
        pulls[1:] = overridden * pulls[1:] + (1.0 - overridden) * pulls[:-1]
        pulls[0] *= overridden
    return row, chance
