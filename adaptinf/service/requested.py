"""Requests to the trial, their answers, and the codes of refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from adaptinf.errors import ParameterError
from adaptinf.service.problems import closed_code, refused
from adaptinf.sessions.session_memory import (
    arm_counts,
    decision_of,
    erased_steps,
    has_key,
    unit_alike,
    waits,
)
from adaptinf.trial import Trial
from adaptinf.trial.access import event_count
from adaptinf.trial.journal_rows import Rows
from adaptinf.trial.operator_actions import FINISHED, OPEN, PAUSED
from adaptinf.trial.replay import Replay
from adaptinf.trial.supplies.supply import named_at, where_problems

Act = Callable[[Replay], tuple[Any, Rows]]
_NOBODY = 2**53
"""An id that no decision has."""


def _was_erased(replay: Replay, decision: Any = None, **names: Any) -> bool:
    """Whether a decision, a unit or a key belongs to a participant who was erased."""
    try:
        replay._refuse_erased("a request", decision, **names)
    except ParameterError:
        return True
    return False


def assigned(unit: Any, context: Any, key: Any, site: str | None = None) -> Act:
    """Assign an arm."""

    def act(replay: Replay) -> tuple[Any, Rows]:
        try:
            decision, entry = replay.assign_new(unit, context, key, site)
        except ParameterError:
            raise refused(_unassigned(replay, unit, key, site)) from None
        return decision.known(), entry

    return act


def known(replay: Replay, named: Any, site: str | None) -> Any:
    """The assignment of a unit; None if there is none."""
    unit = named_at(site, named)
    if _was_erased(replay, unit=unit):
        raise refused("erased")
    decision = decision_of(replay.session, unit)
    if decision is None:
        return None
    if replay.blinded:
        decision = replace(decision, arm=None, kit=replay.kit_of(decision.id))
    return decision.known()


def _unassigned(replay: Replay, named: Any, key: Any, site: str | None) -> str:
    """The reason why no arm was assigned, based on facts in the order in which the trial checks them."""
    session, fresh, unit = replay.session, not has_key(replay.session, key), named_at(site, named)
    known = decision_of(session, unit)
    if where_problems(site, replay.supply.sites):
        return "does-not-fit"
    if fresh and replay.closed:
        return closed_code(replay)
    if fresh and replay.state in (PAUSED, FINISHED):
        return replay.state
    if _was_erased(replay, key=key, unit=unit):
        return "erased"
    if not fresh:
        return "key-reused"
    if known is not None:
        return "unit-context-differs"
    if unit_alike(session, unit) is not None:
        return "unit-looks-alike"
    if replay.blinded and (site is None or replay.lacks_kits(site)):
        return "no-kit"
    if session.rounds == replay.declared["horizon"]:
        return "horizon-reached"
    return "outcome-needed" if waits(session) else "does-not-fit"


def recorded(decision: int, reward: float | None, key: Any, site: str | None = None) -> Act:
    """Record an outcome; for a token of one site, decisions of other sites do not exist."""

    def act(replay: Replay) -> tuple[Any, Rows]:
        here = decision if site is None or replay.site_of(decision) == site else _NOBODY
        try:
            outcome, entry = replay.record(here, reward, key)
        except ParameterError:
            raise refused(_unrecorded(replay, here, reward, key)) from None
        return asdict(outcome), entry

    return act


def _unrecorded(replay: Replay, decision: int, reward: float | None, key: Any) -> str:
    """The reason why no outcome was recorded."""
    session, fresh = replay.session, not has_key(replay.session, key)
    low, high = replay.declared["reward_range"]
    if fresh and replay.closed:
        return closed_code(replay)
    if fresh and replay.state == FINISHED:
        return "finished"
    if _was_erased(replay, decision, key=key):
        return "erased"
    if not 1 <= decision <= session.rounds:
        return "unknown-decision"
    if reward is not None and not low <= reward <= high:
        return "does-not-fit"
    if not fresh:
        return "key-reused"
    return "does-not-fit" if decision in session.pending else "outcome-differs"


def amended(
    decision: int, reward: float | None, key: Any, reason: str, by: str, site: str | None = None
) -> Act:
    """Correct an outcome; for a token of one site, decisions of other sites do not exist."""

    def act(replay: Replay) -> tuple[Any, Rows]:
        here = decision if site is None or replay.site_of(decision) == site else _NOBODY
        try:
            outcome, entry = replay.amend(here, reward, key, reason, by)
        except ParameterError:
            raise refused(_unamended(replay, here, reward, key)) from None
        return asdict(outcome), entry

    return act


def _unamended(replay: Replay, decision: int, reward: float | None, key: Any) -> str:
    """The reason why no outcome was corrected."""
    code = _unrecorded(replay, decision, reward, key)
    if code == "does-not-fit" and decision in replay.session.pending:
        low, high = replay.declared["reward_range"]
        return "outcome-missing" if reward is None or low <= reward <= high else code
    return "outcome-same" if code == "outcome-differs" else code


def unblinded(named: Any, reason: str, by: str, site: str | None = None) -> Act:
    """Reveal the arm of one participant."""
    unit = named_at(site, named)

    def act(replay: Replay) -> tuple[Any, Rows]:
        try:
            decision, entry = replay.unblind(unit, reason, by)
        except ParameterError:
            code = "erased" if _was_erased(replay, unit=unit) else "unknown-unit"
            raise refused(closed_code(replay) or code) from None
        return decision.known(), entry

    return act


_TURNS = {PAUSED: "pause", OPEN: "resume"}


def turned(state: str, reason: str, by: str) -> Act:
    """Pause or resume."""

    def act(replay: Replay) -> tuple[Any, Rows]:
        try:
            entry = replay.turn(_TURNS[state], reason, by)
        except ParameterError:
            raise refused(closed_code(replay) or "finished") from None
        return {"state": replay.state}, entry

    return act


_HIDDEN = ("arms", "removed", "reason")
"""Fields of a status that name arms, or that were written by a person, who may have named an arm."""


def status_of(trial: Trial, site: str | None = None) -> Act:
    """State and counts of the trial or of one site, without rows of noise, which would reveal arms."""

    def act(replay: Replay) -> tuple[Any, Rows]:
        told = asdict(trial._stands(replay))
        if site is not None:
            return {"site": site, "state": told["state"], **_counts(replay, site)}, None
        told["rows"] = event_count(trial, replay)
        return {name: value for name, value in told.items() if name not in _HIDDEN}, None

    return act


def _counts(replay: Replay, site: str) -> dict[str, int]:
    """Numbers of participants of one site."""
    here = replay.steps_at(site)
    waiting = {decision - 1 for decision in replay.session.pending}
    gone = erased_steps(replay.session)
    return {"rounds": len(here), "pending": len(here & waiting), "erased": len(here & gone)}


def allocation_of(site: str | None) -> Act:
    """Participants by arm, of the trial or of one site."""

    def act(replay: Replay) -> tuple[Any, Rows]:
        only = None if site is None else replay.steps_at(site)
        taken = zip(replay.session.arms, arm_counts(replay.session, only), strict=True)
        arms = [{"arm": arm, "assigned": count} for arm, count in taken]
        return {"arms": arms, "removed": list(replay.removed)}, None

    return act
