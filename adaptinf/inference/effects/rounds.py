"""Which rounds of a log serve an estimate of group effects, and why the others do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.claims import Said, propensities
from adaptinf.claims.effects import rounds_and_weights as claims
from adaptinf.errors import InvalidForLog
from adaptinf.texts import several
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.effects.question import GroupQuestion
    from adaptinf.inference.validity.profile import LogProfile
    from adaptinf.log import AdaptiveLog

_PHASE, _PLAIN = "estimation", "difference-in-means"
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Rounds:
    """Rounds that an estimate uses; keep (T,)."""

    keep: BoolArray
    notes: tuple[Said, ...]
    left_out: int = 0
    """Rounds in which one of the two arms was impossible."""


def arm_propensities(profile: LogProfile, pair: IntArray) -> FloatArray | None:
    """Propensities of two arms in every round, as far as the log tells; pair (2,); returns (T, 2)."""
    own, every = profile.propensity, profile.propensities
    if every is not None:
        return np.asarray(every[:, pair], dtype=float)
    if own is None or profile.log.n_arms != 2:
        return None
    chosen = profile.log.arrays.action[:, None] == pair[None, :]
    return np.where(chosen, own[:, None], 1.0 - own[:, None])


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """What orders the rounds used within their cells; cell, unit, batch (n,), the last two where known.

    `free` says that nothing but the cell moved propensities.
    """

    cell: IntArray
    unit: IntArray | None
    batch: IntArray | None
    free: bool


def past_of(profile: LogProfile, cell: IntArray, keep: BoolArray, *, others: bool) -> Past:
    """Of the rounds used, shapes cell (n,), keep (T,); `others`: the log has contexts beside the cells.

    Where the design says that it looks at contexts, the log has those that it looked at.
    """
    traits = profile.traits
    unit, batch = (
        None if column is None else column[keep] for column in (profile.units, profile.log.arrays.batch)
    )
    told = traits is not None and traits.uses_context != "unknown" and not others
    return Past(cell, unit, batch, profile.fixed_in_time or told)


def randomised_rounds(question: GroupQuestion, *, pooled: bool) -> Rounds:
    """Rounds whose arms can be compared by plain means within a group."""
    profile, marked, terms = question.profile, question.marked, question.terms
    log = profile.log
    in_phase, where = _phase_rounds(log)
    if marked is None and not pooled and log.arrays.randomised is not None:
        marked, where = in_phase & log.arrays.randomised, f"the randomised rounds of {where}"
    elif marked is not None:
        where = "the marked rounds"
    candidates = in_phase if marked is None else marked
    _check_units(profile, candidates & np.isin(log.arrays.action, question.pair))
    varying = _varying_groups(question, candidates)
    if marked is None:
        method = f"{_PLAIN} with pooled=True" if pooled else _PLAIN
        _check_constant(method, profile, varying, terms)
        used = int(in_phase.sum())
        notes = [claims.ALL_ROUNDS(n=used, where=where), claims.CONSTANT_IN_GROUPS()]
        notes += [claims.CONSTANT_BY_ESTIMATES()] if profile.estimated else []
        return Rounds(in_phase, tuple(notes))
    notes = [claims.MARKED(where=where, n=int(marked.sum()), all=log.n_rounds)]
    if varying is not None and np.any(varying):
        notes.append(claims.MARKED_VARY(groups=_some(terms, varying)))
    return Rounds(marked, tuple(notes))


def weightable_rounds(profile: LogProfile, marked: BoolArray | None, both: FloatArray | None) -> Rounds:
    """Rounds in which both arms could be chosen, for inverse weighting; marked (T,), both (T, 2)."""
    log = profile.log
    if log.arrays.propensity is None:
        raise InvalidForLog("aipw", propensities.NEEDED(), ())
    if profile.contradicted_draws:
        raise InvalidForLog("aipw", profile.contradicted_draws, ())
    candidates, where = _phase_rounds(log)
    if marked is not None:
        candidates, where = marked, "the selection (rounds=)"
    if both is None:
        used = claims.ALL_ROUNDS(n=int(candidates.sum()), where=where)
        return Rounds(candidates, (used, claims.CHOSEN_ALONE()))
    keep = candidates & (both > 0.0).all(axis=1)
    dropped = int(candidates.sum() - keep.sum())
    if not keep.any():
        raise InvalidForLog("aipw", claims.NEVER_BOTH(n=dropped, where=where), ())
    notes = [claims.WEIGHTABLE(n=int(keep.sum()), where=where)]
    notes += [claims.LEFT_OUT(n=dropped, where=where)] if dropped else []
    return Rounds(keep, tuple(notes), dropped)


def _phase_rounds(log: AdaptiveLog) -> tuple[BoolArray, str]:
    """Rounds of the estimation phase, or all where the log has no such phase; and what to call them."""
    phase = log.arrays.phase
    if phase is None or _PHASE not in log.phases:
        return np.ones(log.n_rounds, dtype=bool), "the log"
    return phase == log.phases.index(_PHASE), f"phase {_PHASE!r}"


def _varying_groups(question: GroupQuestion, keep: BoolArray) -> BoolArray | None:
    """Groups in which the share of the treatment among the two arms varies, keep (T,).

    Returns shape (G,), and None if it is not known.
    """
    log, both, pair, group = question.profile.log, question.propensities, question.pair, question.group
    n_groups = len(question.labels)
    if log.arrays.propensity is None:
        return None
    action = log.arrays.action
    rows = np.flatnonzero(keep & np.isin(action, pair))
    if both is None:
        # The chosen arm's propensity alone: each arm's own must not move.
        cell = 2 * group[rows] + (action[rows] == pair[1])
        spread = _spread(log.arrays.propensity[rows], cell, 2 * n_groups)
        return np.asarray(spread.reshape(n_groups, 2).max(axis=1) > _SAME)
    share = both[rows, 1] / both[rows].sum(axis=1)
    return np.asarray(_spread(share, group[rows], n_groups) > _SAME)


def _spread(values: FloatArray, cell: IntArray, n_cells: int) -> FloatArray:
    low, high = np.full(n_cells, np.inf), np.full(n_cells, -np.inf)
    np.minimum.at(low, cell, values)
    np.maximum.at(high, cell, values)
    return np.where(high >= low, high - np.where(high >= low, low, 0.0), 0.0)


def _check_units(profile: LogProfile, keep: BoolArray) -> None:
    """Refuse plain means where units have several of the rounds; keep (T,)."""
    if profile.repeats_in(keep):
        ways = [claims.KNOW_PROPENSITIES()] if profile.propensity is None else []
        raise InvalidForLog(_PLAIN, profile.unit_refusal, ways)


def _check_constant(
    method: str, profile: LogProfile, varying: BoolArray | None, terms: Sequence[str]
) -> None:
    if varying is None:
        raise InvalidForLog(method, claims.NOTHING_RANDOMISED(), ())
    if profile.estimated and profile.adaptive:
        raise InvalidForLog(method, claims.ESTIMATES_SHOW_NOTHING(), ())
    if np.any(varying):
        raise InvalidForLog(method, claims.PROPENSITIES_VARY(groups=_some(terms, varying)), ())


def _some(terms: Sequence[str], where: BoolArray, most: int = 5) -> str:
    return several([term for term, flag in zip(terms, where, strict=True) if flag], most)
