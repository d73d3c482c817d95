"""One replay for all designs: decisions made again by a design's own kernels, from its outputs alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.audit.privacy.designs.audited_trial import AuditTrial, Replayed
from adaptinf.designs.base import Design
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replays import Outputs, replay
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.run import TABLEAU
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray

_COINS = 0.0, 1.0 - 2.0**-53
"""The lowest and the highest coin: what both of them lead to leaves no choice."""


@dataclass(frozen=True, slots=True, eq=False)
class PublicReplay:
    """Decisions of every round, from the actions and releases before it; contexts (rounds, entries).

    Coins are not outputs. Rounds are therefore held against what follows from the lowest and from the highest
    coin: a kind of round that neither gives is wrong, and so is, in a kind of round that no coin decides,
    another arm than the one that it has there.
    """

    program: Program
    contexts: FloatArray
    drawn: tuple[bool, ...]

    def __call__(self, seen: Transcripts) -> tuple[Replayed, ...]:
        """Kinds of rounds and arms, when numbers were released, and what was reported at the end."""
        outputs = Outputs(seen.actions, seen.statuses, seen.releases, self.contexts)
        sides = [replay(self.program, outputs, coin) for coin in _COINS]
        low, high = sides
        agreed = seen.statuses == low.statuses
        status = np.where(agreed, low.statuses, high.statuses)
        arm = np.where(agreed, low.actions, high.actions)
        # where both coins give this kind of round, they decide its arm unless they agree on one
        open_ = np.isin(seen.statuses, np.flatnonzero(self.drawn))
        overridden = seen.statuses == self._override
        return (
            Replayed("the round of a release", seen.releases[:, :, 0], high.ends, "release"),
            Replayed("the kind of round", seen.statuses, np.where(overridden, seen.statuses, status)),
            Replayed("the arm", seen.actions, np.where(overridden | open_, seen.actions, arm)),
            Replayed("what is reported at the end", seen.outcomes, high.outcomes, "number"),
        )

    @property
    def _override(self) -> int:
        """The status of rounds that a mixture overrides."""
        return self.program.n_statuses - 1 if self.program.share.size else -1


def public_replay(
    design: Design, environment: Environment, horizon: int, contexts: FloatArray | None = None
) -> PublicReplay | None:
    """The replay of trials there; None where releases do not settle decisions, or there are none.

    Contexts (rounds, entries) are by default those of the environment.
    """
    program = design.program(environment, horizon, recording=True)
    if program.replay is None or environment.n_arms == 1:
        return None
    drawn = tuple(status.randomised for status in design.statuses)
    given = fixed_contexts(environment, horizon) if contexts is None else contexts
    return PublicReplay(program, given, drawn)


def replays(trial: AuditTrial, design: Design) -> tuple[Any, ...]:
    """All that recomputes decisions of a trial: its own check, and the one for all designs."""
    run = design if trial.design is None else trial.design
    general = public_replay(run, trial.environment, trial.horizon)
    return tuple(part for part in (general, trial.replay) if part is not None)


def fixed_contexts(environment: Environment, horizon: int) -> FloatArray:
    """What a choice sees in every round of an environment that gives all runs the same, (rounds, entries)."""
    tables = environment.tables(horizon)
    entries = max(1, environment.n_arms * environment.dimension)
    contexts = np.zeros((horizon, entries))
    if environment.dimension:
        given = np.reshape(tables.vectors[:horizon], (horizon, -1))
        contexts[:] = np.tile(given, entries // given.shape[1])
    elif tables.kind == TABLEAU:
        contexts[:, 0] = tables.tableau_features[:horizon]
    return contexts
