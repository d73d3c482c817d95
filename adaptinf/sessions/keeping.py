"""What a session has to keep to be opened again where it stood, without its requests made again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from adaptinf.sessions.requests import Decision
from adaptinf.sessions.rounds import Marks
from adaptinf.sessions.session import Session
from adaptinf.sessions.steppers import KernelStepper

_IN_TIME = "in time"


def marks_of(session: Session) -> Marks:
    """How much a session has kept."""
    return session._rounds.marks()


def has_key(session: Session, key: Any) -> bool:
    """Whether a key stands for a request that was answered."""
    return any(key in steps for steps in session._rounds.answers.steps.values())


def decision_of(session: Session, unit: Any) -> Decision | None:
    """The decision of a unit; None where it was not assigned."""
    step = session._rounds.by_unit.get(unit)
    return None if step is None else session._decision(step)


def unit_alike(session: Session, unit: Any) -> Any:
    """A unit of an earlier round that reads the same as a new one, whatever the case; None without any."""
    return session._rounds.alike(unit)


def part_of(session: Session, since: Marks) -> dict[str, Any]:
    """Rounds, outcomes and keys since then, in arrays and lists."""
    return session._rounds.part(since)


def memory_of(session: Session, fresh: Session) -> dict[str, Any] | None:
    """What the design remembers, beside a session opened alike; None of a user's own functions.

    What these hold is pickled, and a file from elsewhere must not be unpickled.
    """
    stepper, begun = session._stepper, fresh._stepper
    if not isinstance(stepper, KernelStepper) or not isinstance(begun, KernelStepper):
        return None
    memory = stepper.memory(begun)
    return memory if session.in_time is None else {**memory, _IN_TIME: session.in_time}


def restore(session: Session, parts: Iterable[dict[str, Any]], memory: dict[str, Any]) -> None:
    """Let a session that was just opened go on where parts and memory were taken."""
    for part in parts:
        session._rounds.extend(part)
    stepper = session._stepper
    assert isinstance(stepper, KernelStepper)
    session.in_time = memory.get(_IN_TIME)
    stepper.remember(memory)


class Kept(NamedTuple):
    """A session as it stood: what it had kept, what its design remembered, and whether it was blind."""

    marks: Marks
    memory: dict[str, Any]
    blind: bool


def kept_of(session: Session) -> Kept | None:
    """How a session stands, for `go_back`; None where its design cannot be brought back."""
    memory = session._stepper.kept()
    return None if memory is None else Kept(marks_of(session), memory, session.blind)


def go_back(session: Session, kept: Kept) -> None:
    """Undo what was assigned, recorded and amended since then."""
    session._rounds.cut(kept.marks)
    session._stepper.remember(kept.memory)
    session.blind = kept.blind


def answered(session: Session, kind: str, key: Any) -> int:
    """What answered a request of a kind under its key.

    Raises
    ------
    ParameterError
        If the key stands for a request of another kind.
    """
    found = session._rounds.answers.known(kind, key)
    assert found is not None
    return found


def keep_key(session: Session, kind: str, key: Any, step: int) -> None:
    """Note what answered a request under its key."""
    session._rounds.answers.keep(kind, key, step)


def remove_again(session: Session, arm: Any, rounds: int) -> None:
    """Take an arm out that was removed after so many rounds."""
    session._rounds.removed.append((session._participants.arm_code("remove_arm", arm), rounds))
