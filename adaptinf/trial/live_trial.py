"""The state of a trial, and the trial itself."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from adaptinf.designs import Design
from adaptinf.errors import AdaptinfWarning, FileError, JournalError, ParameterError
from adaptinf.files import as_path, atomic_write, owners_alone
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import Is, OrNone, check
from adaptinf.sessions import Decision, Outcome
from adaptinf.sessions.session_memory import erased_steps, logged
from adaptinf.sessions.steppers import Draw
from adaptinf.trial.journal_rows import Entry
from adaptinf.trial.operations import Operations
from adaptinf.trial.replay import Replay
from adaptinf.trial.trial_places import PLACE, as_taken, files_of
from adaptinf.trial.trial_setup import declared_entry


@dataclass(frozen=True, slots=True)
class TrialStatus:
    """The state of a trial; it reveals no outcomes and no propensities.

    Attributes
    ----------
    design : str
        Name of the design.
    arms : tuple of labels
        The arms.
    state : {"open", "paused", "finished"}
        Whether it takes requests.
    reason : str
        Why it does not.
    rounds, horizon : int
        Participants who have been assigned, and the most that there can be.
    pending : int
        Outcomes that are not in yet.
    removed : tuple of labels
        Arms that are not assigned any more.
    erased : int
        Participants whose fields were erased.
    restored : int
        How often a copy took the trial's place.
    copied : bool
        Whether the file is a copy that has not done so, made by `backup` or in any other way: it can be read,
        and takes no requests.
    unrepeatable : int
        Decisions that stand as they were written, since they rest on a context that was erased: no one can
        make them again.
    rows : int
        Rows of the journal.
    head : str
        Digest of the last row, which stands for all of them: keep it elsewhere, and `Trial.verify` can tell
        whether rows were lost or changed since.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> path = f"{tempfile.mkdtemp()}/trial.db"
    >>> with ai.Trial.create(path, ai.designs.Thompson(), arms=["a", "b"], horizon=100) as trial:
    ...     decision = trial.assign("participant 1", key="request 1")
    ...     trial.status().pending
    1
    """

    design: str
    arms: tuple[Any, ...]
    state: str
    reason: str
    rounds: int
    horizon: int
    pending: int
    removed: tuple[Any, ...]
    erased: int
    restored: int
    copied: bool
    unrepeatable: int
    rows: int
    head: str


_PREFIX = "sqlite:///"


class Trial(Operations):
    """A design at work on people, for as long as needed: stored in a file, safe from crashes and retries.

    Made by `Trial.create` and opened by `Trial.open`. Several processes may have it open at once, each by
    `open`, and threads may share one. Every answer is on the disk before it is given. Each request has a
    key: sent again with its key, it gets the same answer.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> path = f"{tempfile.mkdtemp()}/trial.db"
    >>> trial = ai.Trial.create(path, ai.designs.Thompson(floor=0.1), arms=["letter", "call"], horizon=500)
    >>> decision = trial.assign("participant 1", key="request 1")
    >>> trial.assign("participant 1", key="request 1") == decision
    True
    >>> trial.close()
    >>> trial = ai.Trial.open(path)
    >>> trial.record(decision.id, 1.0, key="request 2")
    Outcome(id=1, reward=1.0, in_time=True)
    >>> trial.log().n_rounds
    1
    >>> trial.close()
    """

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        design: Design,
        arms: int | Sequence[Any],
        horizon: int,
        *,
        features: int | Sequence[Any] | None = None,
        dimension: int | None = None,
        per_arm: bool = False,
        reward_range: tuple[float, float] = (0.0, 1.0),
        outcome_window: int | None = None,
        in_time: float | None = None,
    ) -> Trial:
        """Create a trial in a new file.

        Parameters
        ----------
        path : path
            The SQLite file, which must not hold anything yet; ``"sqlite:///..."`` means the same. It and what
            SQLite puts beside it are for their owner alone (mode 0600), whatever the umask is.
        design : Design
            What decides. A private design draws exact noise of OpenDP; one that has none is refused.
        arms : list of labels, or int
            The arms; a number stands for 0, 1, ...
        horizon : int
            The most participants there can be.
        features, dimension, per_arm, reward_range
            Contexts and rewards, as for `Design.session`.
        outcome_window : int, optional
            Needed by private designs: after so many further participants an outcome enters, whenever it came.
            One that is missing then counts as 0, and what comes later is for the log alone.
        in_time : float, optional
            As in `Design.session`: each arm's successes and failures that were in time are released at the
            end, at so much privacy beside the design's.

        Returns
        -------
        Trial
            Open.

        Raises
        ------
        ParameterError
            Listing everything that is inconsistent; no file has been made then.
        FileError
            If the file contains something already, or cannot be written.

        Warns
        -----
        AdaptinfWarning
            If the design has no coins of its own: anyone who knows the outcomes can foresee the next arm.
        """
        place = _place("Trial.create", path)
        declared = features, dimension, per_arm, reward_range, outcome_window, in_time
        first = declared_entry(design, arms, horizon, *declared)
        if not design.traits.own_coins:
            warnings.warn(
                f"{first['design']} makes no random draws of its own, so anyone who knows the outcomes can "
                "predict the next arm: wrap it in a Mixture if assignments are to be concealed",
                AdaptinfWarning,
                stacklevel=2,
            )
        return cls._begun(place, first, design)

    @classmethod
    def _begun(cls, place: Path, first: Entry, design: Design, draw: Draw | None = None) -> Trial:
        """A trial in a new file, from this first entry; noise is given in audits, else drawn by OpenDP."""
        # The database is loaded when a trial is used: this page of the manual needs none.
        from adaptinf.trial.journal import Journal
        from adaptinf.trial.requests import now
        from adaptinf.trial.sealing import Sealing

        journal = Journal(place, create=True)
        try:
            entry = {"kind": "create", "time": now(), PLACE: journal.place, **first}
            journal.start(entry, Sealing(journal).start)
        except BaseException:
            journal.close()
            raise
        journal.close()
        return cls._opened(place, design, draw)

    @classmethod
    def open(cls, path: str | os.PathLike[str], design: Design | None = None) -> Trial:
        """Open a trial from its snapshot; later decisions are recomputed and compared.

        Parameters
        ----------
        path : path
            The file.
        design : Design, optional
            Needed for a user-defined design, which a file cannot hold.

        Returns
        -------
        Trial
            In its state after the last answer.

        Raises
        ------
        FileError
            If there is no such file, it contains no trial or cannot be read.
        JournalError
            If a row is damaged, or another decision follows from the rows before it.
        ParameterError
            If the design is needed, or another one.

        Warns
        -----
        AdaptinfWarning
            If the snapshot is damaged: every decision was made again then. If others than the owner may open
            the file: they see all outcomes and names, and with the seed the next arms.
        """
        return cls._opened(_place("Trial.open", path), design)

    @classmethod
    def _opened(cls, place: Path, design: Design | None, draw: Draw | None = None) -> Trial:
        from adaptinf.trial.journal import Journal
        from adaptinf.trial.requests import Requests

        journal = Journal(place)
        try:
            if not journal.holds_trial():
                raise FileError(str(place), "read", "it contains no trial")
            requests = Requests(journal, design, draw)
            requests.read(lambda _: None)
            requests.keep()
            _warn_of_readers(place)
        except BaseException:
            journal.close()
            raise
        return cls(requests)

    @property
    def arms(self) -> tuple[Any, ...]:
        """Labels of the arms."""
        return self._requests.read(lambda replay: replay.session.arms)

    def assign(self, unit: str | int, context: Any = None, *, key: str | int) -> Decision:
        """Choose an arm for a participant.

        Parameters
        ----------
        unit : str or int
            Who it is. A unit is assigned once: asked again, it gets its first decision. A unit that reads the
            same as another, as P1 and "p1 " do, is refused.
        context : optional
            Known before the choice, as for `Session.assign`.
        key : str or int
            Names the request: sent again, after a crash or a lost answer, it gets the same decision.

        Returns
        -------
        Decision
            The arm, and the id by which `record` knows the decision. It is on the disk.

        Raises
        ------
        ParameterError
            If the trial is paused, finished or closed, its horizon is used up, an outcome is needed first,
            the context is not what was declared, or key or unit stand for another request. Nothing has
            changed.
        FileError
            If the file cannot be written. Send the request again with its key: whether it had been kept or
            not, it counts once.
        """
        return self._requests.change(lambda replay: replay.assign_new(unit, context, key))

    def record(self, decision_id: int, reward: float | None, *, key: str | int) -> Outcome:
        """Record the outcome of a decision.

        Parameters
        ----------
        decision_id : int
            The `id` of the decision.
        reward : float or None
            A number in the range of rewards; None says that the outcome will never come.
        key : str or int
            Identifies the request, as for `assign`.

        Returns
        -------
        Outcome
            What was recorded. It is on the disk.

        Raises
        ------
        ParameterError
            If the trial is finished or closed, there is no such decision, it has another outcome already, the
            reward is out of range, or the key stands for another request. Nothing has changed.
        FileError
            As in `assign`.
        """
        return self._requests.change(lambda replay: replay.record(decision_id, reward, key))

    def log(
        self, missing: str | None = None, *, amended: bool = True, erased: str | None = None
    ) -> AdaptiveLog:
        """The log so far, with exact propensities, like `Session.log`.

        Parameters
        ----------
        missing : {"drop", "worst", "best"}, optional
            What an outcome means that is not in: needed if there are any.
        amended : bool
            Whether amended outcomes have their new values, or those that the design used.
        erased : {"keep", "drop"}, optional
            Needed where contexts of participants were erased: ``"keep"`` for a log of all rounds without
            contexts, ``"drop"`` for one without the rounds of these participants, which is right where their
            being erased has nothing to do with their outcomes. As no one knows that, it has no guarantee.

        Returns
        -------
        AdaptiveLog
            A copy; the trial goes on. Units of participants who were erased have names that tell nothing. The
            files that it writes are for their owner alone (mode 0600).
        """

        def made(replay: Replay) -> AdaptiveLog:
            log = as_taken(logged(replay.session, missing, amended, erased), replay.acts)
            log = log.unpromised_by(replay.ended) if replay.ended else log
            log = log.stopped_by(replay.reason) if replay.cut_short else log
            log.owner_only = True
            return log

        return self._requests.read(made)

    def status(self) -> TrialStatus:
        """The state of the trial."""
        return self._requests.read(self._stands)

    def _stands(self, replay: Replay) -> TrialStatus:
        session, journal = replay.session, self._requests.journal
        return TrialStatus(
            design=replay.declared["design"],
            arms=session.arms,
            state=replay.state,
            reason=replay.reason,
            rounds=session.rounds,
            horizon=replay.declared["horizon"],
            pending=len(session.pending),
            removed=replay.removed,
            erased=len(erased_steps(session)),
            restored=replay.restores,
            copied=bool(self._requests.copied(replay)),
            unrepeatable=replay.unrepeatable,
            rows=journal.rows,
            head=journal.head,
        )

    def verify(self, head: str | None = None) -> TrialStatus:
        """Verify the file from its first row: pages, digests, every decision recomputed, and the snapshot.

        Parameters
        ----------
        head : str, optional
            The `head` of an earlier status, kept elsewhere: all rows that were there then must still be.

        Returns
        -------
        TrialStatus
            As things stand.

        Raises
        ------
        JournalError
            With the first thing that is wrong.
        """
        heads: set[str] = set()

        def checked(replay: Replay) -> TrialStatus:
            journal = self._requests.journal
            journal.check_pages()
            if head is not None and head not in heads:
                problem = f"no row has the head {head:.64}: rows were lost or changed"
                raise JournalError(str(journal.path), problem)
            return self._stands(replay)

        check("verify", head=(head, OrNone(Is(str, "the text of a head"))))
        return self._requests.read_again(checked, heads)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the trial as it is now to a new file, atomically; the trial continues.

        The copy can be read, and takes no requests until `restore` lets it take the trial's place. It is for
        its owner alone (mode 0600).

        Parameters
        ----------
        path : path
            A file that does not exist yet.
        """
        place = as_path("Trial.backup", "path", path)
        if place.exists():
            raise FileError(str(place), "written", "a file of that name already exists")
        content = self._requests.read(lambda _: self._requests.journal.content())
        atomic_write(place, lambda file: file.write(content), owner_only=True)

    def close(self) -> None:
        """Close the file. The trial itself continues: `open` opens it again."""
        self._requests.close()

    def __enter__(self) -> Trial:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Trial({str(self._requests.journal.path)!r})"


def _warn_of_readers(place: Path) -> None:
    """Warn that a file has wider permissions than `create` gives."""
    wide = [file for file in files_of(place) if owners_alone(file) is False]
    if wide:
        names = " ".join(shlex.quote(str(file)) for file in wide)
        problem = (
            "users other than the owner may open the trial's file, which contains all outcomes, names and "
            "upcoming arms"
        )
        warnings.warn(f"{problem}: chmod 600 {names}", AdaptinfWarning, stacklevel=4)


def _place(subject: str, path: Any) -> Path:
    if isinstance(path, str) and path.startswith(_PREFIX):
        path = path.removeprefix(_PREFIX)
    if isinstance(path, str) and "://" in path:
        raise ParameterError(
            subject, [f"a trial is stored in a SQLite file: give its path, got {path!r:.60}"]
        )
    return as_path(subject, "path", path)
