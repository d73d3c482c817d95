"""A trial in memory, reconstructed from its journal: every decision is a function of earlier rows."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from adaptinf.errors import JournalError, ParameterError
from adaptinf.parameters import refuse
from adaptinf.sessions import Decision, Outcome
from adaptinf.sessions.participants import plain
from adaptinf.sessions.session_memory import (
    Kept,
    amend_blank,
    assign_as_written,
    assign_blank,
    decision_of,
    erased_steps,
    go_back,
    kept_of,
    made,
    marks_of,
    memory_of,
    part_of,
    recall,
    record_blank,
    restore,
    stand,
    unit_alike,
)
from adaptinf.sessions.session_rounds import Marks
from adaptinf.spelling import told_apart
from adaptinf.trial.custody.retention import declared
from adaptinf.trial.journal_rows import GONE, Entry
from adaptinf.trial.migration.standing_rows import Difference, difference_of
from adaptinf.trial.migration.switches import migrated_again
from adaptinf.trial.migration.versions import MIGRATED, changes
from adaptinf.trial.operator_actions import (
    ALARM,
    AMENDED_PLAN,
    FINISHED,
    LOOK,
    PAUSED,
    REKEYED,
    RETENTION,
    SENT,
    act_problems,
    named,
)
from adaptinf.trial.served_rows import ISSUED, REVOKED, alarm_again, token_again
from adaptinf.trial.snapshot_bytes import Snapshot, pack, unpacked
from adaptinf.trial.supplies.supplied import KITS, RETIRED, SITE, Supplied
from adaptinf.trial.trial_noise import NODE
from adaptinf.trial.trial_places import PLACE, TAKEN, Place

MOMENTS = "moments"
"""Part of a snapshot: times of participants, if looks are by date."""


class Begun(NamedTuple):
    """State of a trial before a group of requests."""

    kept: Kept | None
    place: Place | None


class Replay(Supplied):
    """The session of a trial, its keys, and whether it accepts requests."""

    unread: frozenset[int] = frozenset()
    """Decisions with unreadable fields that no row read so far has declared erased."""
    stopped = 0
    """In a rehearsal: number of the row that cannot be accepted as written, which ends the rehearsal."""
    differences: list[Difference] | None = None
    """In a rehearsal: rows that the installed version would write differently."""

    switched: Callable[[], int] = staticmethod(int)
    """Number of a row before which all rows are accepted as written; 0 if there is none."""

    def assign(
        self, unit: Any, context: Any, key: Any, site: Any = None, new: bool = False
    ) -> tuple[Decision, Entry | None]:
        """Assign an arm; return, if the key is new, the entry to write."""
        fresh = self._fresh("assign", key, refused=(PAUSED, FINISHED))
        refuse("assign", named("unit", unit))
        if new and fresh:
            self._refuse_alike(plain(unit))
        self._refuse_erased("assign", key=key, unit=unit)
        before = self.session.rounds
        if fresh and decision_of(self.session, plain(unit)) is None:
            self.refuse_unsupplied(site)
        self._coins.set("assign", before + 1)
        decision = self.session.assign(unit, context, key)
        if self.session.rounds > before:
            self.supplied(site)
        if self.blinded:
            decision = replace(decision, arm=None, kit=self.kit_of(decision.id))
        if not fresh:
            return decision, None
        whose = {"key": plain(key), "unit": plain(unit), "context": _kept(context)}
        return decision, {"kind": "assign", **whose, **self._decided(decision.round)}

    def assign_new(
        self, unit: Any, context: Any, key: Any, site: Any = None
    ) -> tuple[Decision, Entry | None]:
        """As `assign`, for a new request: its unit, named within its site, must not look like another's."""
        # Replays skip this check, because journals of earlier versions may contain such units.
        return self.assign(self.at_site("assign", site, unit), context, key, plain(site), new=True)

    def _refuse_alike(self, unit: Any) -> None:
        """Refuse a unit whose name looks like another's."""
        other = unit_alike(self.session, unit)
        if other is not None:
            told = told_apart([unit, other])
            problem = f"two units differ only in case, in spaces or in letters that look alike: {told}"
            raise ParameterError("assign", [f"{problem}; give the unit exactly as before"])

    def _decided(self, number: int) -> Entry:
        """A row's content about a decision, except the participant."""
        return {"round": number, **made(self.session, number - 1), **self.supply.of(number - 1)}

    def record(self, decision_id: Any, reward: Any, key: Any) -> tuple[Outcome, Entry | None]:
        """Record an outcome; return, if the key is new, the entry to write."""
        fresh = self._fresh("record", key, refused=(FINISHED,))
        self._refuse_erased("record", decision_id, key=key)
        self._coins.set("record", decision_id if isinstance(decision_id, int) else 0)
        outcome = self.session.record(decision_id, reward, key)
        if not fresh:
            return outcome, None
        return outcome, {
            "kind": "record",
            "key": plain(key),
            "decision": outcome.id,
            "reward": outcome.reward,
        }

    def begun(self) -> Begun:
        """State before a group of assignments or outcomes."""
        return Begun(kept_of(self.session), self.place)

    def back_to(self, begun: Begun) -> bool:
        """Undo a group in which one request was refused; returns whether that was possible."""
        if begun.kept is None:
            return False
        go_back(self.session, begun.kept)
        del self.moments[self.session.rounds :]
        self.supply.cut(self.session.rounds)
        self.nodes.drawn()
        self.place = begun.place
        return True

    def image(self, since: Marks) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """What was added after `since`, and the current state; None for a user-defined design."""
        # The code of a user-defined design may have changed since a snapshot, which only a replay can detect.
        if self.declared["own"]:
            return None
        memory = memory_of(self.session, self._opened())
        standing: dict[str, Any] = {
            "state": self.state,
            "reason": self.reason,
            "acts": self.acts,
            PLACE: self.place,
        }
        if self.by_date:
            standing[MOMENTS] = np.array(self.moments, dtype=np.float64)
        state = {"marks": marks_of(self.session), "memory": memory, "standing": standing}
        return {**part_of(self.session, since), **self.supply.part(since.decided)}, state

    def resume(self, snapshot: Snapshot) -> None:
        """Continue from an image, with a session that was just opened."""
        for act in snapshot.state["standing"]["acts"]:
            if act["kind"] == "add_arm":
                self.widen(act["arm"])
                self.session._rounds.added[-1] = len(self.session.arms) - 1, act["rounds"]
        restore(self.session, snapshot.parts, snapshot.state["memory"])
        for part in snapshot.parts:
            self.supply.extend(part)
        self.stand(snapshot.state["standing"])
        self.moments[:] = snapshot.state["standing"].get(MOMENTS, np.zeros((0, 2))).tolist()

    def is_as(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot agrees with the last row processed."""
        other = Replay(self.path, self.declared, self.design, self._mark)
        other.resume(snapshot)
        mine, theirs = self.image(Marks()), other.image(Marks())
        return mine is not None and theirs is not None and all(map(_same, mine, theirs))

    def follow(self, path: str, number: int, entry: Entry) -> None:
        """Perform the action in a row; the row of a noise node waits for that of its request."""
        if entry["kind"] == NODE:
            self.nodes.expect(entry)
            return
        if entry["kind"] == PLACE:
            self.place = entry[PLACE]
            return
        if self.stopped:
            return
        said = {name: value for name, value in entry.items() if name not in ("time", GONE)}
        self.copied = self.foreign = ""
        again = self._recomputed(said, GONE in entry)
        if again != said and not self._stands(number, said, again):
            if self.differences is None:
                raise JournalError(path, self._told(number, again))
            self.stopped = number
            return
        self.noted(number, {name: value for name, value in entry.items() if name != GONE})

    def _recomputed(self, said: Entry, gone: bool) -> Entry | None:
        """The entry of a row, recomputed with the noise in the rows before it; None if that is impossible."""
        try:
            with self.nodes.following():
                blind = self.session.blind
                again = self._again_blank(said) if gone else self._again(said)
                if blind or self.session.blind:
                    self.nodes.leave()
        except JournalError:  # A row of noise differs.
            if self.differences is None:
                raise
            return None
        except (ParameterError, KeyError, TypeError, ValueError, IndexError):
            return None  # The error is discarded, because its text would quote the row.
        return again

    def _told(self, number: int, again: Entry | None) -> str:
        """Why a row is refused."""
        since = ", ".join(changes(self.decides))
        hint = (
            f" (changed since: {since}; Trial.migrate with rehearse=True compares all rows)" if since else ""
        )
        if again is None:
            problem = "cannot be replayed: it is inconsistent with the rows before it"
        else:
            problem = (
                "differs from what its design decides in this version of adaptinf, given the rows before it"
            )
        return f"row {number} {problem}{hint}"

    def _stands(self, number: int, said: Entry, again: Entry | None) -> bool:
        """Accept a decision as written, if that is permitted."""
        difference = difference_of(number, said, again)
        if number >= self.switched():
            if self.differences is None:
                return False
            self.differences.append(difference)
        return again is not None and difference.may_stand and self._adopted(said, again) == said

    def _adopted(self, said: Entry, again: Entry) -> Entry | None:
        """The entry of a decision, accepted as written; the design continues from it."""
        step = said["round"] - 1
        try:
            stand(self.session, step, said["arm"], said["status"], said["propensities"])
            self.supply.cut(step)
            self.supplied(said.get("site"))
        except (ParameterError, KeyError, TypeError, ValueError, IndexError):
            return None
        return {**again, **self._decided(step + 1)}

    def _again(self, said: Entry) -> Entry | None:
        """The entry of a row, recomputed."""
        requests: dict[str, Callable[[], tuple[Any, Entry | None]]] = {
            "assign": lambda: self.assign(said["unit"], said["context"], said["key"], said.get("site")),
            "record": lambda: self.record(said["decision"], said["reward"], said["key"]),
            "amend": lambda: self.amend(
                said["decision"], said["reward"], said["key"], said["reason"], said["by"]
            ),
            "remove_arm": lambda: self.remove_arm(said["arm"], said["key"], said["reason"], said["by"]),
            "add_arm": lambda: self.add_arm(said["arm"], said["key"], said["reason"], said["by"]),
            SITE: lambda: self.add_site(said["site"], said["key"], said["by"]),
            KITS: lambda: self.add_kits(said["site"], dict(said["codes"]), said["key"], said["by"]),
            RETIRED: lambda: self.retire_kit(said["kit"], said["key"], said["reason"], said["by"]),
        }
        if said["kind"] == MIGRATED:
            return migrated_again(said, self.session.rounds)
        if said["kind"] == LOOK:
            return self.looked_again(said)
        if said["kind"] == AMENDED_PLAN:
            return self.plan_amended_again(said)
        if said["kind"] == "unblind":
            return self._looked_up(said)
        if said["kind"] == "erase":
            return self._erased_again(said)
        if said["kind"] in TAKEN:
            return self._taken_again(said)
        if said["kind"] == RETENTION:
            return declared(self, said["days"], said["reason"], said["by"])
        if said["kind"] == REKEYED:
            refuse(REKEYED, act_problems(said["reason"], said["by"]))
            return {name: said[name] for name in ("kind", "reason", "by")}
        if said["kind"] in (ISSUED, REVOKED):
            return token_again(self, said)
        if said["kind"] in (ALARM, SENT):
            return alarm_again(self, said)
        if said["kind"] == "assign" and self.session.blind and said["round"] > self.session.rounds:
            return self._as_written(said, (said["unit"], said["context"], said["key"]))
        if said["kind"] in requests:
            return requests[said["kind"]]()[1]
        return self.turn(said["kind"], said["reason"], said.get("by"))

    def _looked_up(self, said: Entry) -> Entry:
        """The entry for an unblinding, which names its decision but no unit."""
        names = "decision", "reason", "by"
        refuse("unblind", act_problems(said["reason"], said["by"]))
        self.session.propensities(said["decision"])  # This call refuses decisions that do not exist.
        return {"kind": "unblind", **{name: said[name] for name in names}}

    def _taken_again(self, said: Entry) -> Entry:
        """The entry for a file that replaced the trial, if that is permitted."""
        refuse(said["kind"], act_problems(said["reason"], said["by"]))
        if self.state == FINISHED and said["kind"] == "restore":
            raise ParameterError("restore", ["the trial is finished"])
        self._take(said)
        return said

    def _erased_again(self, said: Entry) -> Entry:
        """The entry for an erasure; the design's memory at the time is taken from the entry if needed."""
        refuse("erase", act_problems(said["reason"], said["by"]))
        self._fresh("erase", said["key"], refused=())
        self._forget(said["decision"] - 1, said["key"])
        self.unread -= {said["decision"]}
        memory = self.memory()
        if self.session.blind and said["memory"] is not None:
            recall(self.session, self._opened(), unpacked(base64.b64decode(said["memory"], validate=True)))
            memory = said["memory"]
            others = erased_steps(self.session) - {said["decision"] - 1}
            self.session.blind = self.state != FINISHED and any(map(self.session.undue, others))
        return {**said, "rounds": self.session.rounds, "memory": memory}

    def _as_written(self, said: Entry, known: tuple[Any, Any, Any] | None) -> Entry:
        """The entry for a decision that used an erased context: it cannot be recomputed."""
        step = assign_as_written(self.session, known, said["arm"], said["status"], said["propensities"])
        self.supplied(said.get("site"))
        whose = {} if known is None else dict(zip(("unit", "context", "key"), known, strict=True))
        return {"kind": "assign", **whose, **self._decided(step + 1)}

    def _again_blank(self, said: Entry) -> Entry:
        """The entry of a row about a participant erased later, without its unreadable parts."""
        kind, decision = said["kind"], said["round" if said["kind"] == "assign" else "decision"]
        self.unread |= {decision}
        session, step = self.session, decision - 1
        if kind == "assign" and step >= session.rounds:
            if session.by_context or session.blind:
                return self._as_written(said, None)
            self._coins.set("assign", session.rounds + 1)
            number = assign_blank(session) + 1
            self.supplied(said.get("site"))
            return {"kind": kind, **self._decided(number)}
        session.propensities(decision)  # This call refuses decisions that do not exist.
        if kind == "assign":
            return {"kind": kind, **self._decided(decision)}
        self._coins.set("record", decision)
        if kind == "record":
            record_blank(session, step, said["reward"])
        elif kind == "amend":
            amend_blank(session, step, said["reward"])
        return said


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return pack(one) == pack(other)


def _kept(context: Any) -> Any:
    """A context as stored in a journal: a label, or numbers in lists."""
    value = plain(context)
    if value is None or isinstance(value, (str, int, float)):
        return value
    return np.asarray(value, dtype=np.float64).tolist()
