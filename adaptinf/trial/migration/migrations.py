"""The change of a running trial to another version, rehearsed on all rows, then recorded in the journal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from adaptinf.log.traits import PLAN
from adaptinf.parameters import BOOLEAN, check, refuse
from adaptinf.sessions.grown_sessions import follows_any_choices
from adaptinf.trial.access import NOISE
from adaptinf.trial.databases.addresses import address_of
from adaptinf.trial.journal_rows import Entry
from adaptinf.trial.keys.outside_key import outside_key
from adaptinf.trial.keys.sent_heads import SentHeads
from adaptinf.trial.migration.standing_rows import Difference
from adaptinf.trial.migration.switches import migrated
from adaptinf.trial.migration.versions import changes, installed
from adaptinf.trial.operator_actions import act_problems

if TYPE_CHECKING:
    from adaptinf.designs import Design
    from adaptinf.trial.replay import Replay
    from adaptinf.trial.requests import Requests

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Migration:
    """A change of the version that decides in a trial, or its rehearsal.

    Attributes
    ----------
    before, after : str
        The version of adaptinf that has made the decisions so far, and the installed one.
    changes : tuple of str
        Software whose installed version differs from the earlier one, in words: adaptinf, NumPy, Numba,
        Python, OpenDP.
    rows : int
        Number of rows that were recomputed.
    decisions : int
        Number of assignments among the recomputed rows.
    differing : int
        Number of rows that the installed version would write differently.
    differences : tuple of Difference
        The first ten differing rows.
    obstacle : str
        Why the installed version cannot continue from rows that differ; empty if it can or if no row differs.
    row : int or None
        Number of the row from which the installed version makes the decisions; None if this was a rehearsal.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> path = f"{tempfile.mkdtemp()}/trial.db"
    >>> with ai.Trial.create(path, ai.designs.Thompson(), arms=["a", "b"], horizon=100) as trial:
    ...     decision = trial.assign("participant 1", key="visit 1")
    >>> found = ai.Trial.migrate(path, rehearse=True)
    >>> found.decisions, found.differing
    (1, 0)
    >>> print(found)
    Rehearsal: 2 rows with 1 decision, recomputed by adaptinf 0.1.0; none differs
      changed  nothing
    """

    before: str
    after: str
    changes: tuple[str, ...]
    rows: int
    decisions: int
    differing: int
    differences: tuple[Difference, ...]
    obstacle: str
    row: int | None = None

    def __str__(self) -> str:
        what = "Rehearsal" if self.row is None else f"Migration by row {self.row:,}"
        many = (
            "none differs"
            if not self.differing
            else f"{self.differing:,} differ{'s' * (self.differing == 1)}"
        )
        decisions = f"{self.decisions:,} decision{'s' * (self.decisions != 1)}"
        lines = [f"{what}: {self.rows:,} rows with {decisions}, recomputed by adaptinf {self.after}; {many}"]
        lines.append(f"  changed  {', '.join(self.changes) or 'nothing'}")
        lines += [f"  {one}" for one in self._listed]
        return "\n".join([*lines, *([f"  {self.obstacle}"] if self.obstacle else [])])

    @property
    def _listed(self) -> list[str]:
        """The first differences in words, and how many more there are."""
        rest = self.differing - len(self.differences)
        return [*map(str, self.differences), *([f"... and {rest:,} more"] if rest else [])]


class Migrating:
    """The change of a trial to the installed version."""

    _requests: Requests

    @staticmethod
    def migrate(
        path: str | os.PathLike[str],
        design: Design | None = None,
        *,
        rehearse: bool = False,
        decide_from_now: bool = False,
        reason: str | None = None,
        by: str | None = None,
        key_file: str | os.PathLike[str] | None = None,
        heads: str | os.PathLike[str] | Sequence[str] | None = None,
    ) -> Migration:
        """Let the installed version of adaptinf make the decisions in a trial in place of an earlier version.

        All rows are recomputed from the first one, and every decision, propensity and noise draw is compared.
        If nothing differs, a row of the journal states that the installed version makes the decisions from
        then on, and the earlier version accepts no more requests. Rehearse first, with the trial itself or
        with a backup: a rehearsal writes nothing and delays no request. Then stop all programs that use the
        trial.

        Parameters
        ----------
        path : path or str
            The file or the address of the database, as in `open`.
        design : Design, optional
            Required for a user-defined design, as in `open`.
        rehearse : bool
            Whether to only compare, and write nothing.
        decide_from_now : bool
            Whether the installed version is to continue although it would have decided differently. All
            earlier rows are then accepted as written. This is refused for private trials, trials with a plan,
            and designs whose choices depend on more than arms and outcomes so far. The person who requests it
            may have seen outcomes, so logs state the round and guarantee neither a floor nor privacy.
        reason, by : str
            The reason and the person responsible; the journal stores both. Required unless `rehearse`.
        key_file, heads
            As in `open`.

        Returns
        -------
        Migration
            What was compared, and the first differences.

        Raises
        ------
        ParameterError
            If decisions differ, and `decide_from_now` is not set or cannot be permitted; the message lists
            the first differences. If nothing changes, or the file is a copy. Nothing has changed in this
            case.
        FileError, JournalError
            As in `open`.
        """
        outside = outside_key("Trial.migrate", key_file)
        place, sent = address_of("Trial.migrate", path), None
        problems = [] if rehearse else act_problems(reason, by)
        if rehearse and decide_from_now:
            problems.append(
                "set rehearse or decide_from_now, not both: a rehearsal always shows what differs"
            )
        given = {"rehearse": (rehearse, BOOLEAN), "decide_from_now": (decide_from_now, BOOLEAN)}
        check("Trial.migrate", problems, **given)
        if heads is not None:
            sent = SentHeads("Trial.migrate", heads)
        return _migrated(place, design, outside, sent, None if rehearse else (decide_from_now, reason, by))


def _migrated(
    place: Any, design: Design | None, outside: bytes | None, heads: SentHeads | None, act: Any
) -> Migration:
    """Recompute all rows and, if this is not a rehearsal, write the row that states which version decides."""
    # As in `Trial`, the database library is loaded only when a trial is used.
    from adaptinf.trial.requests import opened

    requests = opened("Trial.migrate", place, design, outside=outside, heads=heads)
    try:
        found: list[Difference] = []
        requests.differences = found
        rehearsed = requests.read_again(lambda replay: _found(replay, requests.journal.rows, found), set())
        if act is None:
            return rehearsed
        done = requests.change(lambda replay: _decided(replay, requests.journal.rows, found, *act))
        return replace(done, row=requests.journal.rows)
    finally:
        requests.close()


def _found(replay: Replay, rows: int, found: list[Difference]) -> Migration:
    """What was compared."""
    here = installed()
    changed = changes(replay.decides)
    return Migration(
        replay.decides["adaptinf"],
        here["adaptinf"],
        changed,
        replay.stopped or rows,
        replay.session.rounds,
        len(found),
        tuple(found[:_SHOWN]),
        _obstacle(replay, found, changed),
    )


def _obstacle(replay: Replay, found: Sequence[Difference], changed: Sequence[str]) -> str:
    """Why the installed version cannot continue from rows that differ; empty if it can, or none differs."""
    name = replay.declared["design"]
    if not found:
        return ""
    if not changed:
        return "nothing is installed in another version than before, so the file was damaged or changed"
    if NOISE in replay.declared:
        return (
            f"the trial is private, and the guarantee of {name} holds for one version from the first row on"
        )
    if PLAN in replay.declared:
        return "the trial has a plan, whose looks hold for one design from the first row on"
    if not follows_any_choices(replay.session, replay.design):
        return f"{name} plans its choices, and cannot continue from those that another version made"
    if replay.stopped:
        return f"{found[-1]}: this row cannot stand as written, only decisions of participants can"
    return ""


def _decided(
    replay: Replay, rows: int, found: list[Difference], decide_from_now: bool, reason: Any, by: Any
) -> tuple[Migration, Entry]:
    """The entry from which on the installed version makes the decisions, if that is permitted."""
    refuse("Trial.migrate", [replay.copied] if replay.copied else [])
    made = _found(replay, rows, found)
    refuse("Trial.migrate", _problems(made, decide_from_now))
    return made, migrated(replay.session.rounds, made.differing, reason, by)


def _problems(made: Migration, decide_from_now: bool) -> list[str]:
    """Why the installed version must not decide."""
    if not made.differing:
        if decide_from_now:
            return ["decide_from_now must be omitted: the installed version decides as before"]
        return [] if made.changes else [f"adaptinf {made.after} decides in this trial already"]
    changed = ", ".join(made.changes) or "nothing changed"
    told = [f"{changed}: of {made.rows:,} rows, {made.differing:,} differ", *made._listed]
    if made.obstacle:
        return [*told, made.obstacle]
    instead = (
        "continue with the earlier version, or set decide_from_now=True, so that all rows stand as written"
    )
    return [] if decide_from_now else [*told, instead]
