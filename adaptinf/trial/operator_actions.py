"""Operator actions on a trial, besides its requests, each with the entry that records it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.designs import Design
from adaptinf.errors import ParameterError
from adaptinf.log.traits import PLAN
from adaptinf.parameters import refuse
from adaptinf.sessions import Decision, Outcome, Session
from adaptinf.sessions.grown_sessions import INSTEAD, grown, refuse_growth
from adaptinf.sessions.participants import plain
from adaptinf.sessions.session_memory import (
    answered,
    decision_of,
    erased_steps,
    forget,
    has_key,
    keep_key,
    keys_of,
    memory_of,
    refuse_key,
    remove_again,
    switch,
)
from adaptinf.sessions.session_rounds import identity
from adaptinf.sessions.steppers import Draw
from adaptinf.texts import shown
from adaptinf.trial.journal_rows import Entry
from adaptinf.trial.migration.versions import DIFFERING, MIGRATED, VERSIONS
from adaptinf.trial.snapshot_bytes import pack
from adaptinf.trial.trial_noise import Nodes
from adaptinf.trial.trial_places import ELSEWHERE, MARKED, PLACE, TAKEN, Place, same_place, word_problems
from adaptinf.trial.trial_setup import fresh_seed, session_of

LOOK, REKEYED, ALARM, SENT, RETENTION = "look", "rekey", "alarm", "sent", "retention"
AMENDED_PLAN = "amend_plan"
ACTS = (
    RETENTION,
    *("pause", "resume", "finish", "amend", "unblind", "remove_arm", "erase", "restore", "moved"),
    *("token", "revoke", MIGRATED, LOOK, AMENDED_PLAN, REKEYED, ALARM, SENT),
    *("add_arm", "add_site", "add_kits", "retire_kit"),
)
"""Kinds of rows that record an operator's actions."""
_LONGEST = 1_000


@dataclass(frozen=True, slots=True)
class Act:
    """An action of an operator on a trial.

    Attributes
    ----------
    row : int
        Number of the row in the journal.
    time : str
        Time of the action from the local clock, in UTC.
    kind : str
        What was done: "pause", "resume", "finish", "amend", "unblind", "remove_arm", "erase", "restore",
        "moved", "migrate", "look", "amend_plan", "token" (one was issued), "revoke", "rekey", "add_arm",
        "add_site", "add_kits", "retire_kit", "retention", "alarm" (raised or cleared by a service), or "sent"
        (a webhook was notified).
    reason : str or None
        The reason; None if the action concerned a participant who was erased.
    by : str or None
        The person who performed the action, if stated.
    decision : int or None
        Id of the decision concerned.
    reward : float or None
        The amended outcome.
    arm : label or None
        The arm that was removed or added.
    head : str or None
        The last head of the lost file, as given to `restore`.
    runs : int or None
        The number of lost runs, as given to `restore`.
    token : int or None
        Id of the token that was issued or revoked.
    role : str or None
        What an issued token permits.
    site : str or None
        The site that was added, that received kits, or to which an issued token is limited.
    kit : str or None
        Code of the kit that was retired.
    alarm : str or None
        Name of the alarm.
    raised : bool or None
        Whether the alarm was raised (True) or cleared (False).
    hook : str or None
        Name of the webhook.
    days : int or None
        How long names are kept after the end of the trial.
    version : str or None
        The version of adaptinf that decides from this row on.
    differing : int or None
        Number of earlier rows that this version would have written differently and that are accepted as
        written.
    looks : list or None
        Numbers of participants, or days, at which the looks of a changed plan are due.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> path = f"{tempfile.mkdtemp()}/trial.db"
    >>> with ai.Trial.create(path, ai.designs.Thompson(), arms=["a", "b"], horizon=100) as trial:
    ...     trial.pause("a batch was bad", by="Dr. Ames")
    ...     act = trial.history()[0]
    >>> act.kind, act.reason, act.by
    ('pause', 'a batch was bad', 'Dr. Ames')
    """

    row: int
    time: str
    kind: str
    reason: str | None = None
    by: str | None = None
    decision: int | None = None
    reward: float | None = None
    arm: Any = None
    head: str | None = None
    runs: int | None = None
    token: int | None = None
    role: str | None = None
    site: str | None = None
    kit: str | None = None
    alarm: str | None = None
    raised: bool | None = None
    hook: str | None = None
    days: int | None = None
    version: str | None = None
    differing: int | None = None
    looks: list[Any] | None = None


def act_of(entry: Mapping[str, Any]) -> Act:
    """An action from its row."""
    known = {"version": entry[VERSIONS]["adaptinf"]} if VERSIONS in entry else {}
    return Act(**{name: entry[name] for name in Act.__dataclass_fields__ if name in entry}, **known)


def act_problems(reason: Any, by: Any) -> list[str]:
    """Problems with the reason for an action, and with who performs it."""
    return [
        f"{name} must be a string of at most {_LONGEST:,} characters, got {shown(value)}"
        for name, value in (("reason", reason), ("by", by))
        if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST
    ]


OPEN, PAUSED, FINISHED = "open", "paused", "finished"
_STATES = {"pause": PAUSED, "resume": OPEN, "finish": FINISHED}
Mark = Callable[[str, Any], str | None]
"""Substitute for the name of an erased unit or key, from `Sealing.mark`."""


class Acts:
    """A session, whether it accepts requests, and the actions performed on it."""

    copied = ""
    """Why the file is a copy that must not be changed, `MARKED` or `ELSEWHERE`; empty if it is not one."""
    foreign = ""
    """Why the installed version accepts no requests (another one decides); empty if it decides itself."""
    here: Place | None = None
    """Location of the file. Any caller that requests a change sets `copied`, `foreign` and `here`."""

    def __init__(self, path: str, first: Entry, design: Design, mark: Mark, draw: Draw | None = None) -> None:
        self.path, self.declared, self.design, self._mark = path, first, design, mark
        self.place: Place | None = first.get(PLACE)
        self.nodes = Nodes(path, draw)
        self.session, self._coins = session_of(first, design, self.nodes)
        self.state, self.reason = OPEN, ""
        self.acts: list[Entry] = []
        self.decides: dict[str, str] = first[VERSIONS]
        self._marks: dict[str, int] = {}

    @property
    def removed(self) -> tuple[Any, ...]:
        """Arms that are no longer assigned."""
        return tuple(act["arm"] for act in self.acts if act["kind"] == "remove_arm")

    @property
    def ended(self) -> str:
        """Why no guarantee covers the number of rounds, if someone ended the trial early; otherwise empty."""
        came, most = self.session.rounds, self.declared["horizon"]
        if self.state == OPEN or came == most:
            return ""
        return (
            f"the trial was {self.state} by hand after {came:,} of {most:,} rounds, possibly by someone who "
            "had seen outcomes"
        )

    @property
    def cut_short(self) -> bool:
        """Whether the trial was finished early, possibly by someone who had seen outcomes."""
        return self.state == FINISHED and self.session.rounds < self.declared["horizon"]

    @property
    def unrepeatable(self) -> int:
        """Number of decisions from the one with an erased context until the erasure, if contexts are used."""
        found: set[int] = set()
        for act in self.acts:
            if act["kind"] == "erase" and act["memory"] is not None:
                found.update(range(act["decision"], act["rounds"] + 1))
        return len(found)

    @property
    def restores(self) -> int:
        """How often a copy replaced the trial, as `restore` allows."""
        return sum(act["kind"] == "restore" for act in self.acts)

    def copy_of(self, here: Place, marked: bool) -> str:
        """Why this file, which `backup` may have marked, is a copy; empty if it is not a copy."""
        if marked:
            return MARKED
        return "" if self.place is None or same_place(self.place, here) else ELSEWHERE

    def amend(
        self, decision_id: Any, reward: Any, key: Any, reason: Any, by: Any
    ) -> tuple[Outcome, Entry | None]:
        """Correct an outcome; return, if the key is new, the entry to write."""
        refuse("amend", act_problems(reason, by))
        fresh = self._fresh("amend", key, refused=(FINISHED,))
        self._refuse_erased("amend", decision_id, key=key)
        outcome = self.session.amend(decision_id, reward, key)
        if not fresh:
            return outcome, None
        told = {"kind": "amend", "key": plain(key), "decision": outcome.id, "reward": outcome.reward}
        return outcome, {**told, "reason": reason, "by": by}

    def unblind(self, unit: Any, reason: Any, by: Any) -> tuple[Decision, Entry]:
        """The decision about a unit, with the entry that records who requested it."""
        refuse("unblind", [*named("unit", unit), *act_problems(reason, by), *self._if_closed()])
        decision = self._assigned("unblind", unit)
        return decision, {"kind": "unblind", "decision": decision.id, "reason": reason, "by": by}

    def turn(self, kind: str, reason: Any, by: Any = None) -> Entry | None:
        """Pause, resume or finish the trial; None if it is already in that state."""
        refuse(kind, [*act_problems(reason, "nobody" if by is None else by), *self._if_closed()])
        if self.state == FINISHED and kind != "finish":
            raise ParameterError(kind, [f"the trial is finished: {self.reason:.200}"])
        if self.state == _STATES[kind]:
            return None
        if kind == "finish":
            self.session.end_windows()
        self.state, self.reason = _STATES[kind], reason if kind != "resume" else ""
        return {"kind": kind, "reason": reason, **({} if by is None else {"by": by})}

    def restore(
        self, reason: Any, by: Any, head: Any, runs: Any, behind: Callable[[str], Sequence[str] | None]
    ) -> Entry | None:
        """Let a copy replace the trial; None if it has already replaced it."""
        refuse("restore", act_problems(reason, by))
        if self.state == FINISHED:
            raise ParameterError("restore", [f"the trial is finished: {self.reason:.200}"])
        said = {"kind": "restore", "reason": reason, "by": by, "head": head, "runs": plain(runs)}
        if self._taken_before(said, "the file is not a copy: it is in the location recorded in its journal"):
            return None
        refuse("restore", word_problems(head, runs, behind))
        return self._taken(said)

    def moved(self, reason: Any, by: Any) -> Entry | None:
        """Declare that a file in another place is the trial itself; None if that was already declared."""
        refuse("moved", act_problems(reason, by))
        said = {"kind": "moved", "reason": reason, "by": by}
        if self._taken_before(
            said, "the file is in the location recorded in its journal: there is nothing to declare"
        ):
            return None
        refuse("moved", [MARKED] if self.copied == MARKED else [])
        return self._taken(said)

    def _taken_before(self, said: Entry, problem: str) -> bool:
        """Whether this action already let the file replace the trial; refused if another action did."""
        if self.copied:
            return False
        last = next((act for act in reversed(self.acts) if act["kind"] in TAKEN), {})
        refuse(said["kind"], [] if all(last.get(name) == said[name] for name in said) else [problem])
        return True

    def _taken(self, said: Entry) -> Entry:
        """The entry by which the file replaces the trial: its location, and bytes for all later coins."""
        # Fresh bytes ensure that the file does not repeat the arms of the one it was copied from, and that
        # two copies do not draw the same coins.
        entry = {**said, "coins": fresh_seed().hex(), PLACE: self.here}
        self._take(entry)
        return entry

    def _take(self, entry: Entry) -> None:
        """Replace the trial as a row records it; rows in the previous format lack location and coins."""
        self.copied, self.place = "", entry.get(PLACE, self.place)
        if "coins" in entry:
            self._coins.stir(bytes.fromhex(entry["coins"]))

    def remove_arm(self, arm: Any, key: Any, reason: Any, by: Any) -> tuple[tuple[Any, ...], Entry | None]:
        """Remove an arm; return the remaining arms and, if the key is new, the entry to write."""
        refuse("remove_arm", act_problems(reason, by))
        fresh = self._fresh("remove_arm", key, refused=(FINISHED,))
        self._refuse_erased("remove_arm", key=key)
        left = self.session.remove_arm(arm, key)
        if not fresh:
            return left, None
        told = {"kind": "remove_arm", "key": plain(key), "arm": plain(arm), "rounds": self.session.rounds}
        return left, {**told, "reason": reason, "by": by}

    def add_arm(self, arm: Any, key: Any, reason: Any, by: Any) -> tuple[tuple[Any, ...], Entry | None]:
        """Add an arm; return all arms and, if the key is new, the entry to write."""
        refuse("add_arm", act_problems(reason, by))
        session, said = self.session, {"arm": plain(arm)}
        if not self._fresh("add_arm", key, refused=(FINISHED,)):
            place = answered(session, "add_arm", plain(key))
            code, _ = session._rounds.added[place]
            if session.arms[code] != said["arm"]:
                refuse_key(session, "add_arm", plain(key))
            return session.arms[: code + 1], None
        self._refuse_erased("add_arm", key=key)
        planned = [f"the trial has a plan, which compares its own arms: {INSTEAD}"]
        refuse("add_arm", planned if PLAN in self.declared else [])
        refuse_growth(session, self.design)
        rounds = session.rounds
        self.widen(said["arm"])
        keep_key(self.session, "add_arm", plain(key), len(self.session._rounds.added) - 1)
        told = {"kind": "add_arm", "key": plain(key), **said, "rounds": rounds}
        return self.session.arms, {**told, "reason": reason, "by": by}

    def widen(self, arm: Any) -> None:
        """Let the session continue with one more arm."""
        declared = {**self.declared, "arms": [*self.session.arms, arm]}
        try:
            fresh, _ = session_of(declared, self.design, self.nodes)
        except ParameterError as error:
            problems = error.problems
        else:
            self.session = grown(self.session, fresh)
            return
        raise ParameterError("add_arm", problems)

    def erase(self, unit: Any, key: Any, reason: Any, by: Any) -> tuple[int, Entry | None]:
        """Erase a participant; return the decision's id and, if the key is new, the entry to write."""
        refuse("erase", [*named("unit", unit), *act_problems(reason, by)])
        if not self._fresh("erase", key, refused=()):
            return self._erased_before(unit, key), None
        self._refuse_erased("erase", key=key)
        step = self._assigned("erase", unit).id - 1
        self._refuse_unkept(step)
        names = [("unit", plain(unit)), *(("key", known) for known in keys_of(self.session, step))]
        self._forget(step, key)
        marks = sorted(mark for name in names if (mark := self._mark(*name)) is not None)
        told = {"kind": "erase", "key": plain(key), "decision": step + 1, "rounds": self.session.rounds}
        return step + 1, {**told, "marks": marks, "memory": self.memory(), "reason": reason, "by": by}

    def _erased_before(self, unit: Any, key: Any) -> int:
        """The decision that was erased under a key, if it was about this unit."""
        step, mark = answered(self.session, "erase", plain(key)), self._mark("unit", plain(unit))
        if mark is not None and self._marks.get(mark) != step + 1:
            problem = (
                f"key {plain(key)!r:.60} already identifies another erasure: give each request its own key"
            )
            raise ParameterError("erase", [problem])
        return step + 1

    def _forget(self, step: int, key: Any) -> None:
        """Erase a participant from memory."""
        self._coins.set("record", step + 1)
        forget(self.session, step)
        keep_key(self.session, "erase", plain(key), step)

    def _refuse_unkept(self, step: int) -> None:
        """Refuse an erasure if the design still needs the context, or if no file can store its memory."""
        if not self.session.by_context:
            return
        name, problems = self.declared["design"], []
        if self.memory() is None:
            problems.append(f"{name} uses contexts, and no file can store what it remembers")
        if self.state != FINISHED and self.session.undue(step):
            problems.append(
                f"{name} needs the context of decision {step + 1} until its window has ended: erase the "
                "participant then, or when the trial is finished"
            )
        refuse("erase", problems)

    def memory(self) -> str | None:
        """Memory of a design that uses contexts, as stored in a row."""
        memory = memory_of(self.session, self._opened()) if self.session.by_context else None
        return None if memory is None else base64.b64encode(pack(memory)).decode()

    def _opened(self) -> Session:
        """The session in its initial state, with its own coins and all arms that have joined."""
        declared = {**self.declared, "arms": list(self.session.arms)}
        return session_of(declared, self.design, self.nodes)[0]

    def _assigned(self, subject: str, unit: Any) -> Decision:
        decision = decision_of(self.session, plain(unit))
        if decision is None:
            self._refuse_erased(subject, unit=unit)
            raise ParameterError(subject, [f"unit {plain(unit)!r:.60} was not assigned"])
        return decision

    @property
    def closed(self) -> str:
        """Why no requests are accepted: the file is a copy, or another version decides; empty if neither."""
        return self.copied or self.foreign

    def _if_closed(self) -> list[str]:
        return [self.closed] if self.closed else []

    def _refuse_erased(self, subject: str, decision_id: Any = None, **names: Any) -> None:
        """Refuse a unit, a key or a decision that belongs to an erased participant."""
        erased = erased_steps(self.session)
        if not erased:
            return
        if isinstance(decision_id, (int, np.integer)) and int(decision_id) - 1 in erased:
            problem = (
                f"the participant of decision {decision_id} has been erased: no further records are kept for "
                "them"
            )
            raise ParameterError(subject, [problem])
        for name, value in names.items():
            mark = self._mark(name, plain(value))
            if mark is not None and mark in self._marks:
                problem = (
                    f"{name} {plain(value)!r:.60} belongs to the participant of decision {self._marks[mark]}"
                )
                raise ParameterError(subject, [f"{problem}, who was erased"])

    def noted(self, number: int, entry: Entry) -> None:
        """Store a row that records an action on the trial."""
        if entry["kind"] in ACTS:
            self.acts.append({"row": number, **entry})
            self._noted_erasure(entry)
            self._noted_version(entry)

    def _noted_erasure(self, entry: Entry) -> None:
        if entry["kind"] != "erase":
            return
        self._marks.update(dict.fromkeys(entry["marks"], entry["decision"]))
        for act in self.acts:
            if act["kind"] in ("amend", "unblind") and act["decision"] == entry["decision"]:
                act.pop("reason", None)
                act.pop("key", None)

    def _noted_version(self, entry: Entry) -> None:
        if entry["kind"] == MIGRATED:
            self.decides = entry[VERSIONS]
            if entry[DIFFERING]:
                switch(self.session, self.decides["adaptinf"], entry["rounds"])

    def stand(self, standing: dict[str, Any]) -> None:
        """Restore the state at the time of a snapshot."""
        self.state, self.reason, self.acts = standing["state"], standing["reason"], standing["acts"]
        for act in self.acts:
            if act["kind"] == "remove_arm":
                remove_again(self.session, act["arm"], act["rounds"])
            elif act["kind"] == "erase":
                erased_steps(self.session).add(act["decision"] - 1)
                self._noted_erasure(act)
            elif act["kind"] in TAKEN:
                self._take(act)
            self._noted_version(act)
        self.place = standing[PLACE]

    def _fresh(self, subject: str, key: Any, refused: tuple[str, ...]) -> bool:
        """Whether a key is new; an error if the trial accepts no new requests of this kind."""
        refuse(subject, named("key", key))
        fresh = not has_key(self.session, plain(key))
        if fresh:
            # Copies can still be purged of a participant; another version would write another memory.
            refuse(
                subject, [self.foreign] if self.foreign else self._if_closed() if subject != "erase" else []
            )
        if fresh and self.state in refused:
            raise ParameterError(subject, [f"the trial is {self.state}: {self.reason:.200}"])
        return fresh


def named(name: str, value: Any) -> list[str]:
    """Problems with a required unit or key."""
    return identity(name, plain(value)) if value is not None else [f"{name} is required"]
