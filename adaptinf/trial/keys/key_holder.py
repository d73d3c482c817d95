"""The operations on keys: create one, replace it, and check a trial without one."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

from adaptinf.errors import AdaptinfWarning, FileError, JournalError
from adaptinf.files import as_path
from adaptinf.parameters import Is, OrNone, check, refuse
from adaptinf.trial.databases.addresses import address_of
from adaptinf.trial.journal_rows import Entry
from adaptinf.trial.keys.outside_key import key_in, make_key
from adaptinf.trial.operator_actions import REKEYED, Acts, act_problems

if TYPE_CHECKING:
    from adaptinf.trial.requests import Requests

_REMAINS = (
    "rekey: the earlier key still opens what PostgreSQL keeps in dead rows of the table wrapped_key until "
    "VACUUM FULL is run, in the write-ahead log and its archive, and in replicas and dumps made earlier: "
    "destroy that key"
)


class KeyHolder:
    """The key of a trial that is kept outside its file."""

    _requests: Requests

    @staticmethod
    def make_key(path: str | os.PathLike[str]) -> None:
        """Write a new key, 32 random bytes, to a new file that only its owner can open (mode 0600).

        Parameters
        ----------
        path : path
            Path of a file that does not exist yet. Keep the file and a copy of it separate from the trial and
            its backups: without the key, no one can open the trial.

        Raises
        ------
        FileError
            If the file exists, or cannot be written.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> ai.Trial.make_key(f"{folder}/key")
        >>> design = ai.designs.Thompson(floor=0.1)
        >>> place = f"{folder}/trial.db"
        >>> with ai.Trial.create(place, design, ["a", "b"], 100, key_file=f"{folder}/key") as trial:
        ...     trial.status().rounds
        0
        """
        make_key(as_path("Trial.make_key", "path", path))

    def rekey(self, key_file: str | os.PathLike[str], *, reason: str, by: str) -> None:
        """Replace the key that opens the trial; the previous key no longer opens it.

        Rows are not written again: the outside key opens the trial's data key, which remains the same.
        Someone who had both the earlier key and the file can therefore also open later copies of the file; in
        this case, continue in a new trial. Earlier backups still have the earlier key. Programs that have
        opened the trial continue to run.

        Parameters
        ----------
        key_file : path
            The file with the new key, from `make_key`.
        reason, by : str
            The reason and the person responsible; the journal stores both.

        Raises
        ------
        ParameterError
            If the trial was created without a key, it already has this one, or `reason` or `by` is missing.
            Nothing has changed in this case.
        FileError
            If the file with the key cannot be read or others can open it, or as in `assign`.

        Warns
        -----
        AdaptinfWarning
            If the trial is in PostgreSQL, which keeps values that were overwritten.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> for name in ("old", "new"):
        ...     ai.Trial.make_key(f"{folder}/{name}")
        >>> design = ai.designs.Thompson(floor=0.1)
        >>> place = f"{folder}/trial.db"
        >>> with ai.Trial.create(place, design, ["a", "b"], 100, key_file=f"{folder}/old") as trial:
        ...     trial.rekey(f"{folder}/new", reason="a year is over", by="Dr. Ames")
        >>> with ai.Trial.open(place, key_file=f"{folder}/new") as trial:
        ...     trial.history()[0].kind
        'rekey'
        """
        from adaptinf.trial.keys.wrapping import wrapped_anew

        refuse("rekey", act_problems(reason, by))
        new = key_in(as_path("rekey", "key_file", key_file))

        def rekeyed(_: Acts) -> tuple[None, Entry]:
            wrapped_anew(self._requests.journal, new)
            return None, {"kind": REKEYED, "reason": reason, "by": by}

        self._requests.change(rekeyed, purge=True)
        if self._requests.journal.store.remains:
            warnings.warn(_REMAINS, AdaptinfWarning, stacklevel=2)

    @staticmethod
    def verify_chain(path: str | os.PathLike[str], head: str | None = None) -> tuple[int, str]:
        """Check the digests of all rows, which needs no key and reads no content.

        Parameters
        ----------
        path : path or str
            The file, or the address of the database.
        head : str, optional
            The `head` of an earlier status, kept elsewhere: all rows that existed then must still exist.

        Returns
        -------
        rows : int
            The number of rows.
        head : str
            The digest of the last row.

        Raises
        ------
        JournalError
            If a row does not follow from those before it, no row has the head, or pages are damaged.
        FileError
            If there is no such file or database, or it contains no trial or cannot be read.

        Notes
        -----
        Decisions are not recomputed, even if the trial has no key: `verify` does this.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> ai.Trial.make_key(f"{folder}/key")
        >>> design = ai.designs.Thompson(floor=0.1)
        >>> place = f"{folder}/trial.db"
        >>> with ai.Trial.create(place, design, ["a", "b"], 100, key_file=f"{folder}/key") as trial:
        ...     decision = trial.assign("participant 1", key="visit 1")
        ...     before = trial.status()
        >>> ai.Trial.verify_chain(place, before.head) == (before.rows, before.head)
        True
        """
        from adaptinf.trial.journal import Journal

        check("verify_chain", head=(head, OrNone(Is(str, "the head of a journal as text"))))
        place = address_of("Trial.verify_chain", path)
        journal = Journal(place)
        try:
            if not journal.holds_trial():
                raise FileError(str(place), "read", "it contains no trial")
            journal.begin(write=False)
            known: Any = {digest for _, digest in journal.chain()}
            journal.check_pages()
            rows, last = journal.rows, journal.head
            journal.rollback()
        finally:
            journal.close()
        if head is not None and head not in known:
            raise JournalError(str(place), MISSING.format(head))
        return rows, last


MISSING = "no row has the head {:.64}: rows were lost or changed"
"""The message if no row has a head that was stored elsewhere."""
