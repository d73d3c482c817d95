"""A trial in memory, as its journal tells it: every decision is a function of the rows before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adaptinf.designs import Design
from adaptinf.errors import JournalError, ParameterError
from adaptinf.parameters import check
from adaptinf.sessions import Decision, Outcome
from adaptinf.sessions.requests import identity, plain
from adaptinf.texts import shown
from adaptinf.trial.journal import Entry
from adaptinf.trial.opening import session_of

OPEN, PAUSED, FINISHED = "open", "paused", "finished"
_STATES = {"pause": PAUSED, "resume": OPEN, "finish": FINISHED}


class Replay:
    """The session of a trial, its keys, and whether it takes requests."""

    def __init__(self, first: Entry, design: Design) -> None:
        self.declared, self.design = first, design
        self.session, self._coins = session_of(first, design)
        self.state, self.reason = OPEN, ""
        self._keys: set[tuple[type, Any]] = set()

    def assign(self, unit: Any, context: Any, key: Any) -> tuple[Decision, Entry | None]:
        """Assign an arm; with the entry to write where the key is new."""
        fresh = self._fresh("assign", key, refused=(PAUSED, FINISHED))
        check("assign", unit=(unit, _named))
        self._coins.set("assign", self.session.rounds + 1)
        decision = self.session.assign(unit, context, key)
        if not fresh:
            return decision, None
        self._keys.add((type(plain(key)), plain(key)))
        return decision, {
            "kind": "assign",
            "key": plain(key),
            "unit": plain(unit),
            "context": _kept(context),
            "round": decision.round,
            "arm": decision.arm,
            "propensities": _listed(self.session.propensities(decision.id)),
        }

    def record(self, decision_id: Any, reward: Any, key: Any) -> tuple[Outcome, Entry | None]:
        """Record an outcome; with the entry to write where the key is new."""
        fresh = self._fresh("record", key, refused=(FINISHED,))
        self._coins.set("record", decision_id if isinstance(decision_id, int) else 0)
        outcome = self.session.record(decision_id, reward, key)
        if not fresh:
            return outcome, None
        self._keys.add((type(plain(key)), plain(key)))
        return outcome, {
            "kind": "record",
            "key": plain(key),
            "decision": outcome.id,
            "reward": outcome.reward,
        }

    def turn(self, kind: str, reason: Any) -> Entry | None:
        """Pause, resume or finish; None where that is how things stand."""
        if not isinstance(reason, str) or not reason.strip() or len(reason) > 1_000:
            problem = f"reason must be a text of at most 1,000 characters, got {shown(reason)}"
            raise ParameterError(kind, [problem])
        if self.state == FINISHED and kind != "finish":
            raise ParameterError(kind, [f"the trial is finished: {self.reason:.200}"])
        if self.state == _STATES[kind]:
            return None
        self.state, self.reason = _STATES[kind], reason if kind != "resume" else ""
        return {"kind": kind, "reason": reason}

    def _fresh(self, subject: str, key: Any, refused: tuple[str, ...]) -> bool:
        """Whether a key is new; refused where the trial takes no new requests of this kind."""
        check(subject, key=(key, _named))
        fresh = (type(plain(key)), plain(key)) not in self._keys
        if fresh and self.state in refused:
            raise ParameterError(subject, [f"the trial is {self.state}: {self.reason:.200}"])
        return fresh

    def follow(self, path: str, number: int, entry: Entry) -> None:
        """Do what a row says was done.

        Raises
        ------
        JournalError
            If the same request has another answer now.
        """
        try:
            again = self._again(entry)
        except (ParameterError, KeyError, TypeError) as error:
            raise JournalError(path, f"row {number} cannot be followed: {error}") from error
        said = {name: value for name, value in entry.items() if name != "time"}
        if again != said:
            told = "is not what its design decides on the rows before it, in this version of adaptinf"
            raise JournalError(path, f"row {number} {told}")

    def _again(self, entry: Entry) -> Entry | None:
        requests: dict[str, Callable[[], tuple[Any, Entry | None]]] = {
            "assign": lambda: self.assign(entry["unit"], entry["context"], entry["key"]),
            "record": lambda: self.record(entry["decision"], entry["reward"], entry["key"]),
        }
        if entry["kind"] in requests:
            return requests[entry["kind"]]()[1]
        return self.turn(entry["kind"], entry["reason"])


def _named(name: str, value: Any) -> list[str]:
    """What is wrong with a unit or a key, which is needed."""
    return identity(name, plain(value)) if value is not None else [f"{name} is needed"]


def _kept(context: Any) -> Any:
    """A context as a journal keeps it: a label, or numbers in lists."""
    value = plain(context)
    if value is None or isinstance(value, (str, int, float)):
        return value
    return np.asarray(value, dtype=np.float64).tolist()


def _listed(propensities: tuple[float, ...] | None) -> list[float] | None:
    return None if propensities is None else list(propensities)
