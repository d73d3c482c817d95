"""Neighbouring trials of a design on its terms: which pairs, what they cost, and whether they agree."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from adaptinf.audit.privacy.coupling.alignment import Alignment, Run, aligned
from adaptinf.audit.privacy.coupling.comparison import covered, first_difference
from adaptinf.audit.privacy.coupling.histories import (
    ENDS,
    INSIDE,
    OUTSIDE,
    History,
    NeighbouringHistory,
    Terms,
    base_history,
    neighbour,
)
from adaptinf.audit.privacy.coupling.noise import GivenNoise
from adaptinf.audit.privacy.coupling.plays import (
    ARM,
    Output,
    Released,
    SessionStage,
    Shown,
    TrialStage,
    played,
    released,
)
from adaptinf.audit.privacy.coupling.results import CoupledPair
from adaptinf.designs.base import Design
from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.parameters import refuse
from adaptinf.sessions.participants import Participants
from adaptinf.sessions.releasing import exact_problems

SUBJECT = "audit.coupled"
MORE = ("value", "context")
"""Kinds of which there are more pairs: what they cost depends on which participant differs."""
_MOVES = (ENDS, OUTSIDE, INSIDE, OUTSIDE)
"""What the first base moves, the second one, and so on, in turn."""


@dataclass(frozen=True)
class _Coins:
    """The terms of a pair, and where its coins and its noise come from."""

    terms: Terms
    seed: bytes
    noise: bytes


@dataclass(frozen=True)
class PairAudit:
    """A design in its terms, with what it promises for outcomes and for whole records."""

    design: Design
    terms: Terms
    rewards: PrivacyGuarantee
    whole: PrivacyGuarantee
    propensities: bool

    @classmethod
    def of(cls, design: Design, terms: Terms) -> PairAudit:
        """Refused where there is nothing to couple."""
        participants = Participants(*terms.declared, design.domain)
        if design.nodes is not None:  # of others it is said below why they cannot be coupled
            refuse(SUBJECT, design._environment_problems(participants, terms.horizon))
        placed = design._placed(participants)
        sizes = terms.horizon, len(terms.arms)
        whole, rewards = placed.guarantee(*sizes), placed.reward_guarantee(*sizes)
        refuse(SUBJECT, noise_problems(placed) or exact_problems(placed, *sizes))
        assert whole is not None
        assert rewards is not None
        outputs = placed.traits.outputs
        shows = outputs is not None and outputs.propensities != "not covered"
        return cls(design, terms, rewards, whole, shows)

    @property
    def words(self) -> str:
        """What is run."""
        terms = self.terms
        window = "" if terms.window is None else f", outcome window {terms.window}"
        came = "" if terms.rounds == terms.horizon else f" of {terms.horizon:,}"
        return f"{self.design!r}, {len(terms.arms)} arms, {terms.rounds:,}{came} participants{window}"

    def fitting(self, kinds: Sequence[str]) -> tuple[str, ...]:
        """Those of the kinds that apply."""
        return tuple(kind for kind in dict.fromkeys(kinds) if not self.unfit(kind))

    def unfit(self, kind: str) -> str:
        """Why a kind does not apply; empty where it does."""
        terms, name = self.terms, type(self.design).__name__
        if kind == "context" and (self.whole.unit != "record" or len(terms.features or ()) < 2):
            return f"context does not apply to {name}: its guarantee is for rewards, contexts being public"
        if kind == "early" and terms.punctual == 0:
            return f"early does not apply to {name} with window {terms.window}: outcomes come at once"
        if kind in ("late", "erased") and terms.window is None:
            return f"{kind} does not apply to {name}: it waits for each outcome, and has no live trial"
        if kind == "never" and self.design.lost is None:
            return f"never does not apply to {name}, which needs every outcome"
        return ""

    def pairs(
        self,
        number: int,
        kinds: Sequence[str],
        root: np.random.Generator,
        more: int = 0,
        step: int | None = None,
    ) -> list[CoupledPair]:
        """One pair of each kind, against one base, in which a participant differs whom `step` can name.

        Of values and contexts so many more, as sessions alone.
        """
        terms, moved = self.terms, _MOVES[number % len(_MOVES)]
        if moved == OUTSIDE:
            terms = replace(terms, reward_range=(-np.inf, np.inf))
        if step is None:
            places = 0, min(terms.rounds // 3, terms.latest - 1)
            step = places[number] if number < len(places) else int(root.integers(0, terms.latest))
        base = base_history(terms, step, moved, root)
        coins = _Coins(terms, root.bytes(32), root.bytes(32))
        one = self._session(coins, base, {})
        filed = None if terms.window is None else self._trial(coins, base, {})
        others = [neighbour(base, terms, kind, step, moved, root) for kind in kinds]
        found = [self._pair(coins, base, other, one, filed) for other in others]
        for turn in range(more):
            for kind in [kind for kind in kinds if kind in MORE]:
                # one is anybody; the others come late, when a design reports what it has found
                place = int(root.integers(2 * terms.rounds // 3 if turn else 0, terms.rounds))
                further = neighbour(base, terms, kind, place, moved, root)
                found.append(self._pair(coins, base, further, one, None))
        return found

    def _pair(
        self, coins: _Coins, base: History, other: NeighbouringHistory, one: Shown, filed: Shown | None
    ) -> CoupledPair:
        """Align a neighbour with its base, and compare what both show."""

        def run(history: History) -> Run:
            return lambda *how: self._released(coins, history, *how)

        found = aligned(one.released, run(base), run(other.history))
        sides = [(one, self._session(coins, other.history, found.shifts))]
        if filed is not None:
            sides.append((filed, self._trial(coins, other.history, found.shifts)))
        problems, compared = [], 0
        for pair in sides:
            mine, theirs = (covered(shown, other.kind, other.step, self.propensities) for shown in pair)
            compared += len(mine)
            if (difference := first_difference(mine, theirs)) is not None:
                problems.append(difference)
        return CoupledPair(
            kind=other.kind,
            differs=other.words,
            cost=float(found.cost),
            promised=self.whole if other.kind == "context" else self.rewards,
            shifted=len(found.shifts),
            outputs=compared,
            releases=len(one.released.releases),
            files=filed is not None,
            disagreement=_named(found, problems),
        )

    def _released(
        self,
        coins: _Coins,
        history: History,
        shifts: Mapping[str, int],
        stretched: frozenset[str],
        until: str,
    ) -> Released:
        given = GivenNoise(coins.noise, dict(shifts), stretched)
        stage = SessionStage(self.design, coins.terms, coins.seed, given)
        return released(stage, coins.terms, history, given, until)

    def _session(self, coins: _Coins, history: History, shifts: Mapping[str, int]) -> Shown:
        given = GivenNoise(coins.noise, dict(shifts))
        return played(SessionStage(self.design, coins.terms, coins.seed, given), coins.terms, history, given)

    def _trial(self, coins: _Coins, history: History, shifts: Mapping[str, int]) -> Shown:
        given = GivenNoise(coins.noise, dict(shifts))
        with tempfile.TemporaryDirectory() as folder:
            stage = TrialStage(self.design, coins.terms, coins.seed, given, Path(folder))
            try:
                return played(stage, coins.terms, history, given)
            finally:
                stage.close()


def _named(found: Alignment, problems: list[tuple[Output, str]]) -> str:
    """What disagrees first: an arm before the release that cannot be made equal, that, or what is left."""
    if found.problem and not (problems and problems[0][0].part == ARM and problems[0][0].step < found.round):
        return found.problem
    return problems[0][1] if problems else ""


def noise_problems(design: Design) -> list[str]:
    """Why a design has no noise that could be shifted, and what can be done instead."""
    name = type(design).__name__
    if not _promises(design):
        return [f"{name} promises no privacy, so that there is nothing to hold it to"]
    if design.nodes is not None:
        return []
    return [
        f"{name} has no whole-number noise that could be shifted ({design.inexact}): take "
        "audit.epsilon_lower_bound(design), which bounds its epsilon from below, from many runs"
    ]


def _promises(design: Design) -> bool:
    """Whether a design promises privacy; one whose promise depends on its contexts does."""
    try:
        return design.guarantee(max(design.needs.min_horizon, 2), max(design.needs.min_arms, 2)) is not None
    except ParameterError:
        return True
