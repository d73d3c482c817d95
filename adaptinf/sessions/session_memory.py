"""The stored state of a session, from which it can be reopened, and the erasure of participants.

A design that uses contexts cannot recompute a decision whose context was erased, or decisions that depend on
its outcome. The session of such a design is then `blind`: it adopts decisions as written, until the design's
memory from the time of the erasure is restored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import fields, replace
from typing import Any, NamedTuple, NoReturn

import numpy as np

from adaptinf.log import AdaptiveLog
from adaptinf.log.traits import BLANKED, LEFT_OUT
from adaptinf.log.validation import LogArrays
from adaptinf.log.validation.check import arrays_of
from adaptinf.parameters import OneOf, OrNone, check, refuse
from adaptinf.sessions.outcomes import Telling
from adaptinf.sessions.session import Session
from adaptinf.sessions.session_rounds import Decision, Marks
from adaptinf.sessions.steppers import KernelStepper
from adaptinf.typing import BoolArray

_IN_TIME = "in time"


def marks_of(session: Session) -> Marks:
    """The amount of data that a session has stored."""
    return session._rounds.marks()


def has_key(session: Session, key: Any) -> bool:
    """Whether a key belongs to a request that was answered."""
    return any(key in steps for steps in session._rounds.answers.steps.values())


def decision_of(session: Session, unit: Any) -> Decision | None:
    """The decision of a unit; None if it was not assigned."""
    step = session._rounds.by_unit.get(unit)
    return None if step is None else session._decision(step)


def unit_of(session: Session, decision: int) -> Any:
    """The unit of a decision; None if the decision has no unit, or the unit was erased."""
    return session._rounds.units[decision - 1]


def waits(session: Session) -> bool:
    """Whether no arm can be chosen before the last outcome is recorded."""
    return session._waits and bool(session.rounds) and session._rounds.known[session.rounds - 1] == 0


def arm_counts(session: Session, only: Iterable[int] | None = None) -> list[int]:
    """Number of rounds with each arm, of all steps or only of some."""
    action = session._rounds.record.action[: session.rounds]
    action = action if only is None else action[sorted(only)]
    found: list[int] = np.bincount(action, minlength=len(session.arms)).tolist()
    return found


def try_out(session: Session) -> None:
    """Assign one participant and record an outcome, in a session that is then discarded."""
    participants = session._participants
    context = participants.features[0] if participants.features else None
    if participants.dimension:
        context = np.zeros(
            participants.dimension if participants.shared else (len(session.arms), participants.dimension)
        )
    # The value that is nearest to 0, because the ends of the range need not be finite.
    reward = float(np.clip(0.0, *participants.reward_range))
    session.record(session.assign("nobody", context).id, reward)


def unit_alike(session: Session, unit: Any) -> Any:
    """A unit of an earlier round that looks like a new one, ignoring case; None if there is none."""
    return session._rounds.alike(unit)


def part_of(session: Session, since: Marks) -> dict[str, Any]:
    """Rounds, outcomes and keys added after `since`, in arrays and lists."""
    return session._rounds.part(since)


def memory_of(session: Session, fresh: Session) -> dict[str, Any] | None:
    """The design's memory, compared with a fresh session; None for user-defined functions."""
    # The state of user-defined functions would have to be pickled, and pickles from elsewhere must not be
    # loaded, because they can run any code.
    stepper, begun = session._stepper, fresh._stepper
    if not isinstance(stepper, KernelStepper) or not isinstance(begun, KernelStepper):
        return None
    memory = stepper.memory(begun)
    return memory if session.in_time is None else {**memory, _IN_TIME: session.in_time}


def restore(session: Session, parts: Iterable[dict[str, Any]], memory: dict[str, Any]) -> None:
    """Let a newly opened session continue from stored parts and memory."""
    for part in parts:
        session._rounds.extend(part)
    stepper = session._stepper
    assert isinstance(stepper, KernelStepper)
    session.in_time = memory.get(_IN_TIME)
    stepper.remember(memory)


class Kept(NamedTuple):
    """The state of a session: its stored data, the memory of its design, and whether it was blind."""

    marks: Marks
    memory: dict[str, Any]
    blind: bool


def kept_of(session: Session) -> Kept | None:
    """The state of a session, for `go_back`; None if its design cannot be restored."""
    memory = session._stepper.kept()
    return None if memory is None else Kept(marks_of(session), memory, session.blind)


def go_back(session: Session, kept: Kept) -> None:
    """Undo the assignments, outcomes and amendments made after a state was stored."""
    session._rounds.cut(kept.marks)
    session._stepper.remember(kept.memory)
    session.blind = kept.blind


def answered(session: Session, kind: str, key: Any) -> int:
    """The answer to a request of some kind under its key."""
    found = session._rounds.answers.known(kind, key)
    assert found is not None
    return found


def keep_key(session: Session, kind: str, key: Any, step: int) -> None:
    """Store the answer to a request under its key."""
    session._rounds.answers.keep(kind, key, step)


def refuse_key(session: Session, kind: str, key: Any) -> NoReturn:
    """Report that a key belongs to another request of its kind."""
    session._rounds.answers.refuse(kind, key, kind)


def remove_again(session: Session, arm: Any, rounds: int) -> None:
    """Remove an arm that was removed after this many rounds."""
    session._rounds.removed.append((session._participants.arm_code("remove_arm", arm), rounds))


_MEANINGS = OrNone(OneOf("keep", "drop"))
_ASKED = "rounds of erased participants are excluded, and requests for erasure may have depended on outcomes"


def erased_steps(session: Session) -> set[int]:
    """Steps of the rounds whose participants were erased."""
    return session._rounds.erased


def keys_of(session: Session, step: int) -> list[Any]:
    """Keys of all requests about a round."""
    answers, amendments = session._rounds.answers.steps, session._rounds.amendments
    found = [key for kind in ("assign", "record") for key, place in answers[kind].items() if place == step]
    return found + [key for key, place in answers["amend"].items() if amendments[place][0] == step]


def forget(session: Session, step: int) -> None:
    """Keep only the decision and outcome of a round's participant; a pending outcome is treated as lost."""
    rounds = session._rounds
    if not rounds.known[step]:
        session._enter(step, None)
    keys = keys_of(session, step)
    for kind in ("assign", "record", "amend"):
        for key in keys:
            rounds.answers.steps[kind].pop(key, None)
    rounds.forget_unit(step)
    rounds.blank(step)
    rounds.erased.add(step)


def assign_blank(session: Session) -> int:
    """Recompute a decision without its participant, for a design that ignores contexts; return the step."""
    step = session._choose(session._participants.blank())
    session._rounds.belongs(step, None)
    session._rounds.erased.add(step)
    return step


def assign_as_written(
    session: Session,
    known: tuple[Any, Any, Any] | None,
    arm: Any,
    status: int,
    propensities: Sequence[float] | None,
) -> int:
    """Adopt a decision as written, with unit, context and key if they are known; return the step."""
    session.blind = True
    rounds, participants = session._rounds, session._participants
    unit, context, key = known or (None, None, None)
    found = participants.blank() if known is None else participants.read(context)
    step = rounds.begin(found, participants.arm_code("assign", arm), status)
    _decide(session, step, propensities)
    rounds.belongs(step, unit)
    rounds.answers.keep("assign", key, step)
    if known is None:
        rounds.erased.add(step)
    return step


def stand(session: Session, step: int, arm: Any, status: int, propensities: Sequence[float] | None) -> None:
    """Replace a decision that was just made with the one that was written."""
    record = session._rounds.record
    record.action[step], record.status[step] = session._participants.arm_code("assign", arm), status
    _decide(session, step, propensities)


def _decide(session: Session, step: int, propensities: Sequence[float] | None) -> None:
    """Store propensities as written; None if the design names arms without probabilities."""
    record = session._rounds.record
    if propensities is not None:
        record.propensities[step] = propensities
        record.propensity[step] = record.propensities[step, record.action[step]]


def switch(session: Session, version: str, rounds: int) -> None:
    """Note that a version that decides differently took over after this many rounds."""
    session._rounds.switched.append((version, rounds))


def made(session: Session, step: int) -> dict[str, Any]:
    """A decision: its arm, the kind of its round, and a list of propensities, or None if there are none."""
    record = session._rounds.record
    return {
        "arm": session.arms[record.action[step]],
        "status": int(record.status[step]),
        "propensities": _listed(record.propensities[step].tolist()),
    }


def _listed(row: list[float]) -> list[float] | None:
    """Propensities of a round; None if the design names arms without probabilities."""
    return None if not row or any(map(math.isnan, row)) else row


def record_blank(session: Telling, step: int, reward: float | None) -> None:
    """Adopt an outcome of a participant who was erased later."""
    if not session._rounds.known[step]:
        session._enter(step, reward)


def amend_blank(session: Telling, step: int, reward: float | None) -> None:
    """Adopt a correction of the outcome of a participant who was erased later."""
    session._rounds.amendments.append((step, np.nan if reward is None else reward))


def recall(session: Session, fresh: Session, memory: dict[str, Any]) -> None:
    """End blindness: from here on, the design continues with its restored memory."""
    stepper = fresh._stepper
    assert isinstance(stepper, KernelStepper)
    stepper.remember(memory)
    stepper.rng = session._coins
    session._stepper, session.blind = stepper, False


def logged(session: Session, missing: str | None, amended: bool, erased: str | None) -> AdaptiveLog:
    """The log of a session; `erased` determines what happens to rounds without contexts."""
    check("log", erased=(erased, _MEANINGS))
    steps, log = session._rounds.erased, session.log(missing, amended=amended)
    # The promise is withdrawn even if nobody was erased, because that is not an output either.
    if erased == "drop":
        return (_without_rounds(log, steps) if steps else log).unpromised_by(_ASKED)
    if not steps:
        return log
    if log.context and erased is None:
        count = len(steps)
        whose = "1 participant's context was" if count == 1 else f"{count:,} participants' contexts were"
        problem = (
            f'{whose} erased: set erased="drop" for a log without these rounds, or "keep" '
            "for a log of all rounds without contexts"
        )
        refuse("log", [problem])
    return _without_contexts(log, session.by_context) if log.context else log


def _without_contexts(log: AdaptiveLog, by_context: bool) -> AdaptiveLog:
    made = copy(log)
    made.arrays, made.context = type(log.arrays)(**{**log.arrays.by_field(), "context": {}}), ()
    made.context_free = not by_context
    if log.design is not None:
        made.design = replace(log.design, parameters={**log.design.parameters, BLANKED: list(log.context)})
    made.kept = {}
    return made


def _without_rounds(log: AdaptiveLog, steps: Iterable[int]) -> AdaptiveLog:
    """The same log without the rounds of erased participants, whose omission it states."""
    keep = np.ones(log.n_rounds, dtype=bool)
    keep[list(steps)] = False
    if not keep.any():
        refuse("log", ["all participants were erased"])
    made = _with_rounds(log, keep)
    if log.design is not None:
        told = {**log.design.parameters, LEFT_OUT: log.n_rounds - made.n_rounds}
        made.design = replace(log.design, parameters=told)
    return made


def first_rounds(log: AdaptiveLog, count: int) -> AdaptiveLog:
    """The first rounds of a session's log with their outcomes, even those that became known later."""
    keep = np.arange(log.n_rounds) < count
    return (log if keep.all() else _with_rounds(log, keep)).stating("data-chosen")


def _with_rounds(log: AdaptiveLog, keep: BoolArray) -> AdaptiveLog:
    """The same log with the rounds in `keep`, of shape (rounds,), to which its counts then refer."""
    before = np.concatenate([[0], np.cumsum(keep)])
    columns: dict[str, Any] = log.arrays.by_field()
    for name in (each.name for each in fields(LogArrays)):
        if isinstance(columns[name], dict):
            columns[name] = {label: values[keep] for label, values in columns[name].items()}
        elif columns[name] is not None:
            columns[name] = columns[name][keep]
    if columns["known"] is not None:
        columns["known"] = before[columns["known"]]
    if columns["batch"] is not None:
        columns["batch"] = np.unique(columns["batch"], return_inverse=True)[1]
    made = copy(log)
    made.arrays = arrays_of(columns)
    made.missing = log.missing if np.isnan(columns["reward"]).any() else None
    made.n_rounds = int(keep.sum())
    for name in ("feedback_rounds", "released_rounds"):
        if (count := getattr(log, name)) is not None:
            setattr(made, name, int(before[count]))
    made.units = None if log.units is None else log.units[keep]
    made.ids = None if log.ids is None else log.ids[keep]
    made._outcome_rounds = columns["known"]
    made.kept = {}
    return made
