"""The state of a trial, and the trial itself."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from adaptinf.designs import Design
from adaptinf.errors import AdaptinfWarning, FileError, JournalError
from adaptinf.files import as_path, atomic_write
from adaptinf.log import AdaptiveLog
from adaptinf.log.stated_plans import StatedPlan
from adaptinf.parameters import BOOLEAN, Is, OrNone, check
from adaptinf.sessions import Decision, Outcome
from adaptinf.sessions.session_memory import erased_steps, logged
from adaptinf.sessions.steppers import Draw
from adaptinf.trial.access import Access
from adaptinf.trial.custody.custody import Custody
from adaptinf.trial.databases.addresses import Address, address_of
from adaptinf.trial.journal_rows import Entry
from adaptinf.trial.keys.key_holder import MISSING, KeyHolder
from adaptinf.trial.keys.outside_key import outside_key
from adaptinf.trial.keys.sent_heads import SentHeads
from adaptinf.trial.migration.migrations import Migrating
from adaptinf.trial.operations import Operations
from adaptinf.trial.replay import Replay
from adaptinf.trial.supplies.supplied import BLINDED
from adaptinf.trial.supplies.supply_operations import SupplyOperations, with_sites
from adaptinf.trial.trial_places import PLACE, as_taken
from adaptinf.trial.trial_setup import declared_entry, planned_terms


@dataclass(frozen=True, slots=True)
class TrialStatus:
    """The state of a trial, which reveals no outcomes and no propensities.

    Attributes
    ----------
    design : str
        Name of the design.
    arms : tuple of labels
        The arms.
    state : {"open", "paused", "finished"}
        Whether the trial accepts requests.
    reason : str
        The reason, if the trial does not accept requests.
    rounds, horizon : int
        Number of participants assigned, and the largest possible number.
    pending : int
        Number of outcomes that have not arrived yet.
    removed : tuple of labels
        Arms that are no longer assigned.
    erased : int
        Number of participants whose fields were erased.
    restored : int
        Number of times that a copy replaced the trial.
    copied : bool
        Whether the file is a copy, made by `backup` or in any other way, that has not replaced the trial: it
        can be read, but accepts no requests.
    next_look : int, str or None
        Number of participants after which the plan has its next look, or its time in UTC, or the information
        for which it waits. None if there is no plan, the plan has ended the trial, or looks are by date and
        the trial has not begun.
    unrepeatable : int
        Number of decisions that can no longer be recomputed, because they depend on a context that was
        erased.
    version : str
        The version of adaptinf that makes the decisions: other versions accept no requests until `migrate` is
        called.
    rows : int
        Number of rows in the journal.
    head : str
        Digest of the last row, which covers all rows: if it is kept elsewhere, `Trial.verify` can detect rows
        that were lost or changed later.

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
    next_look: int | str | None
    unrepeatable: int
    version: str
    rows: int
    head: str


class Trial(Operations, SupplyOperations, Access, KeyHolder, Custody, Migrating):
    """A design in use for real participants, stored so that it survives crashes and retried requests.

    A trial is kept in a SQLite file or, with the extra `postgres`, in a PostgreSQL database. Trials are
    created by `Trial.create` and opened by `Trial.open`. Several processes may use a trial simultaneously,
    each with its own `open`, and threads may share an object. Every answer is on disk before it is returned.
    Each request has a key: if it is repeated with the same key, it receives the same answer.

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
        design: Design | StatedPlan,
        arms: int | Sequence[Any] | None = None,
        horizon: int | None = None,
        *,
        features: int | Sequence[Any] | None = None,
        dimension: int | None = None,
        per_arm: bool = False,
        reward_range: tuple[float, float] = (0.0, 1.0),
        outcome_window: int | None = None,
        in_time: float | None = None,
        key_file: str | os.PathLike[str] | None = None,
        blinded: bool = False,
        heads: str | os.PathLike[str] | Sequence[str] | None = None,
    ) -> Trial:
        """Create a trial in a new file or an empty database.

        Parameters
        ----------
        path : path or str
            The SQLite file, which must not contain anything yet; ``"sqlite:///..."`` is equivalent. The file
            and those that SQLite creates beside it are readable only by their owner (mode 0600), whatever the
            umask. The address of a PostgreSQL database without tables is also accepted, such as
            ``"postgresql://user@host/db"``.
        design : Design or Plan
            What decides. A private design draws exact noise from OpenDP; a private design without exact noise
            is refused. A `Plan` has a design, arms and a horizon: `look` follows its rule, and the file and
            its logs contain it.
        arms : list of labels, or int, optional
            The labels of the arms; a number stands for 0, 1, ... Required with a design.
        horizon : int, optional
            Largest possible number of participants. Required with a design. With a plan, the horizon may be
            larger than the plan's, so that `amend_plan` can make the trial longer.
        features, dimension, per_arm, reward_range
            Contexts and rewards, as for `Design.session`.
        outcome_window : int, optional
            Required for private designs: the number of further participants after which an outcome enters,
            whenever it arrived. An outcome that is missing at that time counts as 0, and anything that
            arrives later is used only in the log.
        in_time : float, optional
            As in `Design.session`: the timely successes and failures of each arm are released at the end, at
            this privacy cost in addition to the design's.
        key_file : path, optional
            A file with a key, from `make_key`: the trial is sealed, and cannot be opened without it. If
            omitted, the environment may name a file (``ADAPTINF_KEY_FILE``) or a command that prints a key
            (``ADAPTINF_KEY_COMMAND``); otherwise the trial has no key.
        blinded : bool
            Whether `assign` returns the code of a kit instead of the arm: `add_site` and `add_kits` must
            come first.
        heads : path or list of str, optional
            Where heads are sent after each write, as in `open`.

        Returns
        -------
        Trial
            Open.

        Raises
        ------
        ParameterError
            If arguments are inconsistent (the message lists every problem); no file is created.
        FileError
            If the file or the database already contains something, or cannot be written; if the key cannot be
            read, or others can open its file.

        Warns
        -----
        AdaptinfWarning
            If the design has no coins of its own, so that anyone who knows the outcomes can predict the next
            arm.
        """
        place, outside = address_of("Trial.create", path), outside_key("Trial.create", key_file)
        sent = None if heads is None else SentHeads("Trial.create", heads)
        declared = features, dimension, per_arm, reward_range, outcome_window, in_time
        planned: Entry = {}
        if isinstance(design, StatedPlan):
            design, arms, horizon, planned = planned_terms(design, arms, horizon)
        check("Trial.create", blinded=(blinded, BOOLEAN))
        first = {**declared_entry(design, arms, horizon, *declared), **planned}
        first |= {BLINDED: True} if blinded else {}
        if not design.traits.own_coins:
            warnings.warn(
                f"{first['design']} makes no random draws of its own, so anyone who knows the outcomes can "
                "predict the next arm: wrap it in a Mixture if assignments are to be concealed",
                AdaptinfWarning,
                stacklevel=2,
            )
        return cls._begun(place, first, design, outside=outside, heads=sent)

    @classmethod
    def _begun(
        cls,
        place: Address,
        first: Entry,
        design: Design,
        draw: Draw | None = None,
        outside: bytes | None = None,
        heads: SentHeads | None = None,
    ) -> Trial:
        """Create a trial in a new file from its first entry; noise is supplied in audits only."""
        # The database library is loaded only when a trial is used, because this module is also imported for
        # its documentation.
        from adaptinf.trial.journal import Journal
        from adaptinf.trial.keys.wrapping import begun
        from adaptinf.trial.requests import now
        from adaptinf.trial.sealing import Sealing

        journal = Journal(place, create=True)

        def secrets() -> None:
            if outside is not None:
                journal.key = begun(journal, outside)
            Sealing(journal).start()

        try:
            entry = {"kind": "create", "time": now(), PLACE: journal.place, **first}
            journal.start(entry, secrets)
        except BaseException:
            journal.close()
            raise
        journal.close()
        return cls._opened(place, design, draw, outside, heads)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        design: Design | None = None,
        *,
        key_file: str | os.PathLike[str] | None = None,
        heads: str | os.PathLike[str] | Sequence[str] | None = None,
    ) -> Trial:
        """Open a trial from its snapshot; later decisions are recomputed and compared.

        Parameters
        ----------
        path : path or str
            The file, or the address of the database.
        design : Design, optional
            Required for a user-defined design, which a file cannot store.
        key_file : path, optional
            The file with the key of a trial that was created with one. If omitted, the key is taken from the
            environment, as in `create`.
        heads : path or list of str, optional
            A file, to which a line of JSON with time, number of rows and head is appended after each write;
            or a command, as a list of strings, that reads the latest line from its standard input. No request
            waits for the file or the command. If this fails, a later request issues a warning, and the trial
            continues.

        Returns
        -------
        Trial
            The trial, in its state after the last answer.

        Raises
        ------
        FileError
            If there is no such file or database, or it contains no trial or cannot be read; if the key cannot
            be read, or others can open its file.
        JournalError
            If a row is damaged, or a decision does not follow from the rows before it.
        ParameterError
            If the design is required or differs from the trial's; if a key is required, is not the trial's,
            or is given for a trial that has none.

        Warns
        -----
        AdaptinfWarning
            If the snapshot is damaged, in which case every decision was recomputed. If users other than the
            owner can open the file, or every user of the server the tables: they can see all outcomes and
            names and, with the seed, the next arms.
        """
        place, outside = address_of("Trial.open", path), outside_key("Trial.open", key_file)
        sent = None if heads is None else SentHeads("Trial.open", heads)
        return cls._opened(place, design, outside=outside, heads=sent)

    @classmethod
    def _opened(
        cls,
        place: Address,
        design: Design | None,
        draw: Draw | None = None,
        outside: bytes | None = None,
        heads: SentHeads | None = None,
    ) -> Trial:
        from adaptinf.trial.requests import opened

        requests = opened("Trial.open", place, design, draw, outside, heads)
        journal = requests.journal
        try:
            requests.read(lambda _: None)
            requests.tell_head()
            requests.keep()
            if readers := journal.readers():
                warnings.warn(readers, AdaptinfWarning, stacklevel=3)
        except BaseException:
            journal.close()
            raise
        return cls(requests)

    @property
    def arms(self) -> tuple[Any, ...]:
        """Labels of the arms."""
        return self._requests.read(lambda replay: replay.session.arms)

    def assign(
        self, unit: str | int, context: Any = None, *, key: str | int, site: str | None = None
    ) -> Decision:
        """Assign an arm to a participant.

        Parameters
        ----------
        unit : str or int
            Identifier of the participant. A unit is assigned only once: a repeated request returns its first
            decision. A unit is refused if its name looks the same as another's, as "p1 " and P1 do.
        context : optional
            Context known before the choice, as for `Session.assign`.
        key : str or int
            Identifies the request: if it is repeated after a crash or a lost response, it receives the same
            decision.
        site : str, optional
            The participant's site: required if the trial has sites. Units are named within their site.

        Returns
        -------
        Decision
            The arm (in a blinded trial, the kit) and the id that `record` requires. It is on disk.

        Raises
        ------
        ParameterError
            If the trial is paused, finished or closed, its horizon is exhausted, an outcome is needed first,
            the context does not match the declaration, or the key or the unit belongs to another request. In
            a blinded trial, if any arm has no kit at the site, even if another arm would be drawn. Nothing
            has changed in this case.
        FileError
            If the file cannot be written. Repeat the request with its key: it counts once, whether or not it
            was stored before.
        """
        return self._requests.change(lambda replay: replay.assign_new(unit, context, key, site))

    def record(self, decision_id: int, reward: float | None, *, key: str | int) -> Outcome:
        """Record the outcome of a decision.

        Parameters
        ----------
        decision_id : int
            The `id` of the decision.
        reward : float or None
            A number in the reward range; None if the outcome will never arrive.
        key : str or int
            Identifies the request, as for `assign`.

        Returns
        -------
        Outcome
            The recorded outcome. It is on disk.

        Raises
        ------
        ParameterError
            If the trial is finished or closed, there is no such decision, it already has a different outcome,
            the reward is out of range, or the key belongs to another request. Nothing has changed in this
            case.
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
            The meaning of an outcome that has not arrived: required if there are such outcomes.
        amended : bool
            Whether amended outcomes have their new values, or those that the design used.
        erased : {"keep", "drop"}, optional
            Required if contexts of participants were erased: ``"keep"`` for a log of all rounds without
            contexts, ``"drop"`` for a log without the rounds of these participants, which is valid if their
            erasure is unrelated to their outcomes. Because this cannot be known, such a log has no guarantee.

        Returns
        -------
        AdaptiveLog
            The log, which is a copy; the trial continues. Units of erased participants have uninformative
            names. Sites are a context named "site". Files that the log writes are readable only by their
            owner (mode 0600).
        """
        return self._requests.read(lambda replay: self._logged(replay, missing, amended, erased))

    @staticmethod
    def _logged(replay: Replay, missing: str | None, amended: bool, erased: str | None) -> AdaptiveLog:
        log = as_taken(logged(replay.session, missing, amended, erased), replay.acts)
        log = log.unpromised_by(replay.ended) if replay.ended else log
        log = log.stopped_by(replay.reason) if replay.cut_short else log
        log = replay.planned(with_sites(log, replay, erased))
        log.owner_only = True
        return log

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
            next_look=replay.next_look,
            unrepeatable=replay.unrepeatable,
            version=replay.decides["adaptinf"],
            rows=journal.rows,
            head=journal.head,
        )

    def verify(self, head: str | None = None) -> TrialStatus:
        """Verify the trial from its first row: digests, recomputed decisions, the snapshot, a file's pages.

        Parameters
        ----------
        head : str, optional
            The `head` of an earlier status, kept elsewhere: all rows that existed then must still exist.

        Returns
        -------
        TrialStatus
            The current state.

        Raises
        ------
        JournalError
            If a problem is found; the message describes the first one.
        """
        heads: set[str] = set()

        def checked(replay: Replay) -> TrialStatus:
            journal = self._requests.journal
            journal.check_pages()
            if head is not None and head not in heads:
                raise JournalError(str(journal.path), MISSING.format(head))
            return self._stands(replay)

        check("verify", head=(head, OrNone(Is(str, "the head of a journal as text"))))
        return self._requests.read_again(checked, heads)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the trial in its present state to a new file, atomically; the trial continues.

        The copy can be read, but accepts no requests until `restore` makes it replace the trial. The copy is
        readable only by its owner (mode 0600).

        Parameters
        ----------
        path : path
            Path of a file that does not exist yet.

        Raises
        ------
        ParameterError
            If the trial is in a PostgreSQL database, which is copied with ``pg_dump``.
        FileError
            If the file exists, or cannot be written.
        """
        place = as_path("Trial.backup", "path", path)
        if place.exists():
            raise FileError(str(place), "written", "a file of that name already exists")
        content = self._requests.read(lambda _: self._requests.journal.content())
        atomic_write(place, lambda file: file.write(content), owner_only=True)

    def close(self) -> None:
        """Close the file. The trial itself continues, and `open` opens it again."""
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
