"""Retention and export as methods of a trial."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

from adaptinf.errors import AdaptinfWarning, FileError
from adaptinf.files import as_path, atomic_write
from adaptinf.parameters import Is, OrNone, check
from adaptinf.trial.custody.retention import Retention, declared, expired, retention_of
from adaptinf.trial.custody.trail import (
    EVENTS,
    MANIFEST,
    ROWS,
    SIGNATURE,
    Trail,
    archive,
    event_line,
    manifest_of,
    stored_line,
    trail_of,
    verified,
)
from adaptinf.version import __version__

if TYPE_CHECKING:
    from adaptinf.trial.replay import Replay
    from adaptinf.trial.requests import Requests

_HEAD = OrNone(Is(str, "the head of a journal as text"))


class Custody:
    """Retention and export of a trial's records."""

    _requests: Requests

    def set_retention(self, days: int, *, reason: str, by: str) -> None:
        """Declare how long after the end of the trial names, contexts and keys are kept.

        This call deletes nothing, and nothing is deleted automatically: `expire` destroys the data when the
        period has ended. The last declaration counts; `history` lists all of them.

        Parameters
        ----------
        days : int
            Days after `finish`, from 0 to 36,500.
        reason, by : str
            The reason, such as a section of the protocol, and the person responsible; the journal stores
            both.

        Raises
        ------
        ParameterError
            If an argument is out of range, or the file is a copy. Nothing has changed in this case.
        FileError
            As in `assign`.
        """
        self._requests.change(lambda replay: (None, declared(replay, days, reason, by)))

    def retention(self) -> Retention:
        """The declared period, the date from which names may be destroyed, and the data that remain."""
        return self._requests.read(retention_of)

    def expire(self, *, by: str) -> Retention:
        """Destroy the names, contexts and keys of all participants, if their period has ended.

        This does what `erase` does for each participant: the secret that makes these fields readable is
        overwritten. Arms, propensities, outcomes and times remain, and can identify participants together
        with other records. Backups, exports and logs made earlier must be deleted separately.

        Parameters
        ----------
        by : str
            The person responsible; the journal stores it.

        Returns
        -------
        Retention
            What is left. If no names remained, nothing has changed.

        Raises
        ------
        ParameterError
            If no period was declared, the trial is not finished, or the period has not ended; if the file is
            a copy; or if the design is user-defined and uses contexts. Nothing has changed in this case.
        FileError
            As in `erase`: call `expire` again, so that nothing remains of the fields.

        Warns
        -----
        AdaptinfWarning
            If the trial is in PostgreSQL, which keeps values that were overwritten; the warning says where
            they remain.
        """
        done = self._requests.change_all(lambda replay: expired(replay, by), purge=True)
        if done and (remains := self._requests.journal.store.remains):
            warnings.warn(f"expire: {remains}", AdaptinfWarning, stacklevel=2)
        return self.retention()

    def export_trail(self, path: str | os.PathLike[str], *, sign: str | os.PathLike[str]) -> Trail:
        """Write all rows of the journal to a signed file, which can be verified without the trial.

        The file contains the rows as they are stored, and the same in readable form: who was assigned when,
        to which arm, with which propensities; outcomes, corrections and the actions of operators. The file is
        as confidential as the trial itself: in a trial without a key, the first row contains the seed, which
        reveals the next arms. Participants who are erased later remain readable in the file. The copy is
        readable only by its owner (mode 0600).

        Parameters
        ----------
        path : path
            Path of a file that does not exist yet.
        sign : path
            PEM file with an Ed25519 private key that only you can read, as made by ``openssl genpkey
            -algorithm ed25519``.

        Returns
        -------
        Trail
            The number of rows, the head, and the fingerprint of the key.

        Raises
        ------
        JournalError
            If the trial does not pass `verify`: nothing is written.
        FileError
            If the file exists or cannot be written, or the key file cannot be read or contains no such key.
        """
        from adaptinf.trial.custody.signing import signature

        place, key = as_path("export_trail", "path", path), as_path("export_trail", "sign", sign)
        if place.exists():
            raise FileError(str(place), "written", "a file of that name already exists")
        facts, members = self._requests.read_again(self._trail, set())
        manifest = manifest_of(facts, members)
        signed, signer = signature(key, manifest)
        content = archive({**members, MANIFEST: manifest, SIGNATURE: signed})
        atomic_write(place, lambda file: file.write(content), owner_only=True)
        return trail_of(manifest, signer)

    def _trail(self, replay: Replay) -> tuple[dict[str, object], dict[str, bytes]]:
        """The content of the manifest and the members of the archive, read within one transaction."""
        from adaptinf.trial.requests import now

        journal, sealing = self._requests.journal, self._requests.sealing
        journal.check_pages()
        stored = b"".join(stored_line(*row) for row in journal.stored())
        journal.rewind()
        sealing.load()
        events = b"".join(
            event_line(number, sealing.opened(number, entry)) for number, entry, _ in journal.news()
        )
        sealing.let_go()
        facts: dict[str, object] = {"rows": journal.rows, "head": journal.head, "time": now()}
        facts |= {"design": replay.declared["design"], "adaptinf": __version__, "state": replay.state}
        return facts, {ROWS: stored, EVENTS: events}

    @staticmethod
    def verify_trail(
        path: str | os.PathLike[str], *, public_key: str | os.PathLike[str], head: str | None = None
    ) -> Trail:
        """Verify an exported trail: its signature, its content, and the chain of its rows.

        Parameters
        ----------
        path : path
            The file that `export_trail` wrote.
        public_key : path
            PEM file with the public key of the person who signed the file, from a source that you trust: the
            file itself does not identify the signer.
        head : str, optional
            The `head` of an earlier status, kept elsewhere: all rows that existed then must be in the trail.

        Returns
        -------
        Trail
            What it contains.

        Raises
        ------
        JournalError
            If the trail was not signed with this key, was changed, or does not contain the row of the head.
        FileError
            If a file cannot be read, or does not have the expected content.
        """
        check("verify_trail", head=(head, _HEAD))
        place, key = as_path("verify_trail", "path", path), as_path("verify_trail", "public_key", public_key)
        return verified(place, key, head)
