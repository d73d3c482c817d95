"""Audits of mixtures: the trials of the underlying design, with rounds that are overridden."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.audit.privacy.designs.audited_trial import (
    UNIT_RANGE,
    AuditTrial,
    Neighbours,
    audit_trials,
    neighbouring_trials,
    one_reward_apart,
)
from adaptinf.audit.privacy.designs.conse_audits import WindowRatio
from adaptinf.audit.privacy.designs.counter_audits import CounterScore
from adaptinf.audit.privacy.designs.epoch_audits import EpochMeanScore, MomentScore, first_epoch
from adaptinf.designs.mixture import Mixture
from adaptinf.errors import ParameterError
from adaptinf.simulation.environments import Environment, Tableau
from adaptinf.simulation.replicate import Program
from adaptinf.typing import FloatArray, IntArray

# The trial has room for this many standard deviations above the expected number of overrides, so hardly any
# run ends too early.
_SPREAD = 6.0
_LONGER, _ROUNDS = 16, 4_096
_SELDOM = 0.05


@neighbouring_trials.register
def mixture_neighbours(mixture: Mixture, unit: str | None = None) -> tuple[Neighbours, ...]:
    """The neighbouring trials of the underlying design."""
    # The design's own scores stay exact if it learns from the arm that was pulled (PrivateUCB and LinPriv). A
    # design in epochs skips overridden rounds, so its trial is lengthened until nearly every run makes its
    # releases; budget and beta stay those of the shorter trial, and the score leaves out the overridden
    # rounds. A corrected DPConSE does the same. Other scores ignore overrides and state this: the audit's
    # bound is still valid, but lower. A design in epochs is refused if nearly all rounds are overridden.
    return tuple(_with_overrides(mixture, pair) for pair in neighbouring_trials(mixture.design, unit))


@audit_trials.register
def mixture_trials(mixture: Mixture) -> tuple[AuditTrial, ...]:
    """The trials of the design; an audit excludes or counts overridden rounds, as the design does."""
    return tuple(_overridden(mixture, trial) for trial in audit_trials(mixture.design))


def _overridden(mixture: Mixture, trial: AuditTrial) -> AuditTrial:
    """The trial for a mixture: its design is wrapped in the mixture, and its parts account for overrides."""
    code = mixture.program(trial.environment, trial.horizon, recording=False).n_statuses - 1
    run = mixture.design if trial.design is None else trial.design
    return dataclasses.replace(
        trial,
        replay=_with_status(trial.replay, code),
        noise=_with_status(trial.noise, code),
        design=dataclasses.replace(mixture, design=run),
        live_rounds=0,
    )


def _with_overrides(mixture: Mixture, pair: Neighbours) -> Neighbours:
    """The pair for a mixture: its design is wrapped in the mixture, and inexact scores are marked."""
    if isinstance(pair.score, (EpochMeanScore, MomentScore)):
        program = mixture.program(pair.first, pair.horizon, recording=False)
        opening = first_epoch(mixture.design, pair.first.n_arms, pair.horizon)
        longer = _stretched_neighbours(pair, opening, mixture._share, program.n_statuses - 1)
        planned = _Planned(mixture.design, mixture.exploration, mixture.decay, pair.horizon)
        return dataclasses.replace(longer, design=planned)
    if pair.design is not None:
        pair = dataclasses.replace(pair, design=dataclasses.replace(mixture, design=pair.design))
    if isinstance(pair.score, CounterScore):
        return pair
    if isinstance(pair.score, WindowRatio):
        override = mixture.program(pair.first, pair.horizon, recording=False).n_statuses - 1
        return dataclasses.replace(pair, score=dataclasses.replace(pair.score, override=override))
    return dataclasses.replace(pair, score_name=f"{pair.score_name}, computed without overrides,")


def _with_status(part: Any, code: int) -> Any:
    """A part of a trial, adjusted for overridden rounds if necessary."""
    return dataclasses.replace(part, override=code) if hasattr(part, "override") else part


@dataclass(frozen=True, repr=False)
class _Planned(Mixture):
    """A mixture whose design plans for fewer rounds than there are, because some are overridden."""

    budget: int = 1

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        program = super().program(environment, self.budget, recording=recording, by_rounds=by_rounds)
        return dataclasses.replace(program, share=self._share(horizon))

    def __repr__(self) -> str:
        own = Mixture(self.design, self.exploration, self.decay)
        return f"{own!r}, whose design plans for {self.budget} rounds"


def _stretched_neighbours(
    pair: Neighbours,
    opening: IntArray,
    share: Callable[[int], FloatArray],
    override: int,
) -> Neighbours:
    """A design's trials with rounds added, because epochs and scores skip overridden rounds."""
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
            "neighbouring_trials",
            [
                "exploration overrides so many rounds that the design's releases would reveal nothing: "
                "audit the design itself, because overrides do not affect privacy"
            ],
        )
    horizon = int(enough[0]) + 1
    rewards = score.first.copy()
    rewards[place] = rewards[place + 1 if place + 1 < opening.size else max(place - 1, 0)]
    clock = np.maximum.accumulate(np.clip(np.floor(certain[:horizon]), 0, pair.horizon - 1))
    first, second = one_reward_apart(rewards[clock.astype(np.int64)], row)
    if isinstance(score, EpochMeanScore):
        score = dataclasses.replace(score, row=row)
    score = dataclasses.replace(score, first=first, second=second, override=override)
    shown = pair.horizon - len(pair.hidden)
    # All other fields of the pair, such as its unit and the name of its score, are kept.
    return dataclasses.replace(
        pair,
        first=Tableau(first, reward_range=UNIT_RANGE),
        second=Tableau(second, reward_range=UNIT_RANGE),
        horizon=horizon,
        differs=f"the rewards of round {row + 1} are 0 and 1",
        score=score,
        hidden=tuple(range(horizon - shown)),
    )


def _likeliest_round(opening: IntArray, place: int, shares: FloatArray) -> tuple[int, float]:
    """The round near a position that most likely belongs to an arm's uninterrupted pulls, and how likely."""
    others = np.flatnonzero(opening != opening[place])
    begin = int(others[others < place].max(initial=-1)) + 1
    end = int(others[others > place].min(initial=opening.size))
    row, chance = 0, 0.0
    # `pulls` is the distribution of the number of rounds so far that were not overridden.
    pulls = np.zeros(end)
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
