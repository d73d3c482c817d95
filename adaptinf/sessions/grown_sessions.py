"""Adding an arm to a session: its rounds are passed to a new session that is opened with one more arm.

The new session repeats every choice and every outcome in their original order, so it is in the state
of a design that has had the arm from the beginning and has never assigned it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adaptinf.parameters import refuse
from adaptinf.sessions.session import Session

INSTEAD = "finish, and begin again with the arm"
_COPIED = ("action", "status", "feature", "reward", "propensity")
_PASSED = (
    *(
        "decided",
        "n_told",
        "amendments",
        "removed",
        "added",
        "switched",
        "erased",
        "units",
        "by_unit",
        "answers",
    ),
    *("_looks", "_looked"),
)


def follows_any_choices(session: Session, design: Any) -> bool:
    """Whether the next choice depends on earlier ones only through the arms and outcomes themselves."""
    return bool(design.growing and session._window is None and session._own_coins)


def refuse_growth(session: Session, design: Any) -> None:
    """Explain why no arm can join."""
    name, problems = type(design).__name__, []
    if not session.rounds:
        problems.append("no one has been assigned yet: begin with the arm")
    if session._window is not None:
        problems.append(
            f"{name} is private, and no guarantee covers the choice of when an arm joins, which may depend "
            f"on outcomes: {INSTEAD}"
        )
    elif not design.growing:
        problems.append(f"{name} cannot add arms to those with which it began: {INSTEAD}")
    elif not session._own_coins:
        problems.append(f"{name} makes no random draws, so there are no probabilities to log: {INSTEAD}")
    if session._participants.dimension:
        problems.append(f"participants have context vectors, which no new arm can join: {INSTEAD}")
    refuse("add_arm", problems)


def grown(session: Session, fresh: Session) -> Session:
    """The session with one more arm, built from a new session that was opened with that arm."""
    rounds, wider = session._rounds, fresh._rounds
    done, before = rounds.decided, len(session.arms)
    for name in _COPIED:
        getattr(wider.record, name)[:done] = getattr(rounds.record, name)[:done]
    if wider.record.propensities.shape[1]:
        wider.record.propensities[:done] = 0.0
        wider.record.propensities[:done, :before] = rounds.record.propensities[:done]
    wider.known[:], wider.told[:] = rounds.known, rounds.told
    wider.codes[:] = rounds.codes
    for name in _PASSED:
        setattr(wider, name, getattr(rounds, name))
    wider.added.append((before, done))
    _repeat(fresh)
    fresh._coins = session._coins
    fresh._stepper.rng = session._coins  # type: ignore[attr-defined]
    return fresh


def _repeat(session: Session) -> None:
    """Let the design make all choices, with coins that are discarded, and learn all outcomes in order."""
    rounds, stepper = session._rounds, session._stepper
    record, told = rounds.record, rounds.told[: rounds.n_told].tolist()
    place = 0

    def learn(now: int) -> None:
        nonlocal place
        while place < len(told) and rounds.known[told[place]] <= now:
            step = told[place]
            arm, status = int(record.action[step]), int(record.status[step])
            if not np.isnan(record.reward[step]):
                stepper.update(rounds.context(step), arm, float(record.reward[step]), status, now)
            place += 1

    for step in range(rounds.decided):
        learn(step)
        if step:
            stepper.begun(int(record.status[step - 1]), step)
        stepper.choose(rounds.context(step), step)
    learn(rounds.decided)
