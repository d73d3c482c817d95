"""Requests to a trial, one transaction each: read others' rows, decide, write, and only then answer."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from adaptinf.designs import Design
from adaptinf.errors import AdaptinfWarning, FileError, JournalError, ParameterError
from adaptinf.sessions.session_memory import erased_steps
from adaptinf.sessions.session_rounds import Marks
from adaptinf.sessions.steppers import Draw
from adaptinf.trial.databases.addresses import Address
from adaptinf.trial.journal import Journal
from adaptinf.trial.journal_rows import Entry, Rows
from adaptinf.trial.keys.sent_heads import SentHeads
from adaptinf.trial.keys.wrapping import data_key
from adaptinf.trial.migration.standing_rows import Difference
from adaptinf.trial.migration.versions import DIFFERING, MIGRATED, other_version
from adaptinf.trial.operator_actions import FINISHED
from adaptinf.trial.replay import Replay
from adaptinf.trial.sealing import MARKS, Sealing, Snapshots
from adaptinf.trial.trial_places import PLACE
from adaptinf.trial.trial_setup import design_of

EVERY = 2_000
"""Number of rows after which a snapshot is written: it limits the decisions recomputed on opening."""
_Answer = TypeVar("_Answer")


class Requests:
    """A journal and its content, in one process; threads wait for each other."""

    def __init__(
        self,
        journal: Journal,
        design: Design | None,
        draw: Draw | None = None,
        heads: SentHeads | None = None,
    ) -> None:
        self._heads = heads
        self.journal, self._design, self._draw = journal, design, draw
        self._replay: Replay | None = None
        self.sealing = Sealing(journal)
        self._snapshots = Snapshots(journal, self.sealing)
        self._kept, self._stale, self._copied = 0, False, "not known yet"
        self._lock, self._process, self._closed = threading.RLock(), os.getpid(), False
        self._switch = self._searched = 0
        self.differences: list[Difference] | None = None

    def read(self, look: Callable[[Replay], _Answer], heads: set[str] | None = None) -> _Answer:
        """Information from the current rows."""
        with self._lock:
            self._refuse_strangers()
            self.journal.begin(write=False)
            try:
                return look(self._caught_up(heads))
            except ParameterError:
                raise
            except BaseException:
                self._forget()
                raise
            finally:
                self._end()

    def change(self, act: Callable[[Replay], tuple[_Answer, Rows]], purge: bool = False) -> _Answer:
        """One transaction: read others' rows, answer, write the row, and only then return the answer."""
        # With `purge`, nothing that was overwritten remains in the files when the answer is given.
        # A refused request changes nothing. After any other failure it is unknown what the disk contains, so
        # the memory is discarded, and the next request reads the journal from its first row.
        return self._change(lambda replay: [act(replay)], purge)[0]

    def change_all(
        self, acts: Callable[[Replay], Iterable[tuple[_Answer, Rows]]], purge: bool = False
    ) -> list[_Answer]:
        """Perform several requests or actions as `change` does: afterwards, all are on disk, or none."""
        return self._change(acts, purge, several=not purge)

    def change_each(
        self, acts: Sequence[Callable[[Replay], tuple[_Answer, Rows]]]
    ) -> list[_Answer | ParameterError]:
        """Perform independent requests as `change` does; the answer to a refused request is its error."""

        def each(replay: Replay) -> Iterator[tuple[_Answer | ParameterError, Rows]]:
            for act in acts:
                begun, done = replay.begun(), None
                try:
                    done = act(replay)
                except ParameterError as error:
                    replay.back_to(begun)
                    refused = error
                yield (refused, None) if done is None else done

        return self._change(each)

    def _change(
        self,
        acts: Callable[[Replay], Iterable[tuple[_Answer, Rows]]],
        purge: bool = False,
        several: bool = False,
    ) -> list[_Answer]:
        with self._lock:
            self._refuse_strangers()
            self.journal.begin()
            written, answers, begun = False, [], None
            try:
                replay = self._caught_up()
                replay.copied, replay.here = self._still_copied(replay), self.journal.place
                replay.foreign = self._foreign(replay)
                if replay.by_date:
                    replay.now = now()
                begun = replay.begun() if several else None
                for answer, entry in acts(replay):
                    answers.append(answer)
                    written |= self._write(replay, entry)
                if written:
                    self.journal.commit()
            except ParameterError:
                if written and (begun is None or not replay.back_to(begun)):
                    self._forget()  # The memory contains changes that the file will not contain.
                raise
            except BaseException:
                self._forget()
                raise
            finally:
                self._end()
            if written:
                self.tell_head()
            if purge:
                self.journal.purge()
            self.keep()
            return answers

    def tell_head(self) -> None:
        """Send the head elsewhere, if requested."""
        if self._heads is not None:
            self._heads.send(self.journal.rows, self.journal.head)
            self._heads.warn()

    def _end(self) -> None:
        """End a transaction; anything that was not committed is lost."""
        self.sealing.let_go()
        self.journal.rollback()

    def _still_copied(self, replay: Replay) -> str:
        """Why the file is a copy; empty if it is not, which cannot change and is checked only once."""
        self._copied = self._copied and self.copied(replay)
        return self._copied

    def _foreign(self, replay: Replay) -> str:
        """Why the installed version accepts no requests; empty if it makes the decisions, or soon will."""
        return "" if self.differences is not None else other_version(replay.decides["adaptinf"])

    def copied(self, replay: Replay) -> str:
        """Why the file is a copy; empty if it is not."""
        return replay.copy_of(self.journal.place, self.journal.marked())

    def _write(self, replay: Replay, entry: Rows) -> bool:
        """Add the rows of an action, each after those of its noise draws; returns False if there are none."""
        if entry is None:
            return False
        if isinstance(entry, Iterator):
            written = [self._write(replay, one) for one in entry]
            return any(written)
        whole = {"kind": entry["kind"], "time": now(), **entry}
        before = replay.nodes.drawn()
        if replay.place is None:  # Files in the previous format do not record their location.
            replay.place = self.journal.place
            before.append({"kind": PLACE, "time": now(), PLACE: replay.place})
        if self.journal.key is not None:  # An arm that joins here must not show in the length of a row.
            self.journal.key.allow(replay.session.arms)
        for row in (*before, whole):
            self.journal.append(self.sealing.sealed(self.journal.next, row))
        self._destroy(entry)
        replay.noted(self.journal.next - 1, whole)
        return True

    def _destroy(self, entry: Entry) -> None:
        """Destroy secrets if a row requires it; for an erasure, also those of snapshots."""
        if entry["kind"] == "restore":
            self.journal.take_up()
        elif entry["kind"] == "erase":
            self.sealing.destroy(entry["decision"])
            self._snapshots.drop()
            self.sealing.renew_snapshots()
            self._stale = True
        elif entry["kind"] == "finish":  # No participant arrives any more who would have to be recognised.
            self.sealing.destroy(MARKS)

    def keep(self) -> None:
        """Write a snapshot if many rows have been written since the last one, or if that one was unusable."""
        # The trial does not need the snapshot, so failures to write one are ignored.
        replay, rows = self._replay, self.journal.rows
        if replay is None or replay.declared["own"] or (rows - self._kept < EVERY and not self._stale):
            return
        try:
            self.journal.begin()
            # A copy of a trial's file must not be changed, and another version could not use the snapshot.
            if not self._still_copied(replay) and not self._foreign(replay):
                self._kept = self._written(replay)
                self.journal.commit()
        except self.journal.failures:
            self._kept = rows  # After a failure, the next attempt comes only after as many rows.
        finally:
            self._stale = False
            self._end()

    def stuck(self, replay: Replay) -> bool:
        """Whether snapshots that are due have not been written."""
        behind = self.journal.rows - self._snapshots.number()
        return not replay.declared["own"] and behind >= 2 * EVERY

    def _written(self, replay: Replay) -> int:
        """The row of the snapshot, after writing one if it is due."""
        try:
            number, marks = (0, Marks()) if self._stale else self._snapshots.last()
        except JournalError:
            number, marks = 0, Marks()
        if number == 0:
            self._snapshots.drop()
        if self.journal.rows - number >= EVERY and (image := replay.image(marks)) is not None:
            self._snapshots.write(*image)
            return self.journal.rows
        return number

    def _caught_up(self, heads: set[str] | None = None) -> Replay:
        """The trial after all current rows; from the first row on if heads are required."""
        path, snapshot = str(self.journal.path), None
        if self.journal.renewed:  # Rows may be missing that the server had before it was lost.
            self._forget()
            self.journal.renewed = False
        if heads is not None:
            snapshot = self._snapshots.read()
        elif self._replay is None:
            self._resume(path)
        for number, entry, digest in self.journal.news():
            if self._replay is None:
                self._replay = self._begun(path, entry)
                self._replay.recomputes = heads is not None
                self.sealing.load()
            else:
                self._replay.follow(path, number, self.sealing.opened(number, entry))
            if heads is not None:
                heads.add(digest)
            if snapshot is not None and number == snapshot.number and not self._replay.is_as(snapshot):
                raise JournalError(path, f"its snapshot does not match its rows up to row {number}")
        self.sealing.let_go()
        if self._replay is None:
            raise FileError(path, "read", "it contains no trial")
        if self.journal.key is not None:
            self.journal.key.allow(self._replay.session.arms)
        if self._replay.stopped:
            return self._replay
        if self._replay.unread or self._replay.session.blind:
            lost = min(self._replay.unread, default=0)
            problem = f"the secret of decision {lost} is gone, although no row records an erasure"
            raise JournalError(path, problem)
        if heads is not None:
            self._check_secrets(path, self._replay)
        return self._replay

    def _begun(self, path: str, first: Entry) -> Replay:
        replay = Replay(path, first, design_of(path, first, self._design), self.sealing.mark, self._draw)
        replay.switched, replay.differences = self._switched, self.differences
        return replay

    def _switched(self) -> int:
        """Number of a row after the current one before which all rows are accepted as written; 0 if none."""
        journal = self.journal
        if journal.rows >= self._searched:
            for number, entry, _ in journal.after(journal.rows, journal.head):
                self._searched = number
                if entry["kind"] == MIGRATED and entry[DIFFERING]:
                    self._switch = number
        return self._switch

    def _check_secrets(self, path: str, replay: Replay) -> None:
        """Check that each participant who was not erased has a secret."""
        erased = {step + 1 for step in erased_steps(replay.session)}
        gone = {*erased, MARKS} if replay.state == FINISHED else erased
        if problems := self.sealing.problems(replay.session.rounds, gone):
            raise JournalError(path, problems[0])

    def _resume(self, path: str) -> None:
        """Continue from the snapshot if there is one; if it is damaged, it is reported and later replaced."""
        _, entry, _ = next(self.journal.news(), (0, None, ""))
        if entry is None or entry["own"]:
            return
        replay = self._begun(path, entry)
        try:
            snapshot = self._snapshots.read()
            if snapshot is not None:
                replay.resume(snapshot)
                self._replay, self._kept = replay, snapshot.number
                self.journal.skip(snapshot.number, snapshot.head)
        except (JournalError, KeyError, ValueError, IndexError, AttributeError) as error:
            self._stale = True
            found = error.reason if isinstance(error, JournalError) else "it has the wrong layout"
            warnings.warn(
                f"{path}: the snapshot is damaged, so every decision was replayed ({found}): check the disk",
                AdaptinfWarning,
                stacklevel=2,
            )

    def read_again(self, look: Callable[[Replay], _Answer], heads: set[str]) -> _Answer:
        """The state from all rows, read from the first one; their digests are added to heads."""
        with self._lock:
            self._forget()
            return self.read(look, heads)

    def _forget(self) -> None:
        self._replay, self._copied = None, "not known yet"
        self._switch = self._searched = 0
        self.sealing.forget()
        self.journal.rewind()

    def _refuse_strangers(self) -> None:
        if self._closed:
            raise ParameterError("Trial", ["it was closed: reopen it with Trial.open"])
        if self._process != os.getpid():
            raise ParameterError(
                "Trial", ["another process opened it: open it with Trial.open in each process"]
            )

    def close(self) -> None:
        """Close the journal."""
        with self._lock:
            if not self._closed and self._process == os.getpid():
                self._closed = True
                self.journal.close()
                self._replay = None
                if self._heads is not None:
                    self._heads.close()


def opened(
    subject: str,
    place: Address,
    design: Design | None,
    draw: Draw | None = None,
    outside: bytes | None = None,
    heads: SentHeads | None = None,
) -> Requests:
    """The journal of an existing trial, of which nothing has been read yet."""
    journal = Journal(place)
    try:
        if not journal.holds_trial():
            raise FileError(str(place), "read", "it contains no trial")
        journal.key = data_key(journal, subject, outside)
    except BaseException:
        journal.close()
        raise
    return Requests(journal, design, draw, heads)


def now() -> str:
    """The time of a row."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
