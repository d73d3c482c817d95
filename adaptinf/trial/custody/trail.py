"""The whole trail of a trial in one signed file, and its verification without the trial.

The file is a ZIP archive of `rows.jsonl`, the rows as stored, each with its number and digest; of
`events.jsonl`, the same rows in readable form; of `manifest.json`, with the digests of both; and of
`signature`, an Ed25519 signature of the manifest. Digests chain the rows, so that the head of any earlier
status can be looked up.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaptinf.errors import FileError, JournalError
from adaptinf.files import told
from adaptinf.log.storage.stored import encode
from adaptinf.trial.journal_rows import GONE, START, Entry, digest_after

MANIFEST, SIGNATURE, ROWS, EVENTS = "manifest.json", "signature", "rows.jsonl", "events.jsonl"
FORMAT = 1
_HIDDEN = ("seed", "coins", "memory", "marks", "digest", "place", "units")
"""Fields that readers do not need: coins, memories and noise."""
_LARGEST = 2**20
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Trail:
    """An exported trail whose signature and chain have been verified.

    Attributes
    ----------
    rows : int
        Number of rows of the journal.
    head : str
        Digest of the last row.
    time : str
        Time of the export, in UTC.
    design : str
        Name of the design.
    adaptinf : str
        The version of adaptinf that exported the trail.
    signer : str
        Fingerprint of the public key: the first 16 digits of its SHA-256.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import subprocess, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> made = subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", f"{folder}/k.pem"])
    >>> public = ["openssl", "pkey", "-in", f"{folder}/k.pem", "-pubout", "-out", f"{folder}/public.pem"]
    >>> made = subprocess.run(public)
    >>> with ai.Trial.create(f"{folder}/trial.db", ai.designs.Thompson(), 2, horizon=100) as trial:
    ...     decision = trial.assign("participant 1", key="request 1")
    ...     trial.export_trail(f"{folder}/trail.zip", sign=f"{folder}/k.pem").rows
    2
    >>> ai.Trial.verify_trail(f"{folder}/trail.zip", public_key=f"{folder}/public.pem").design
    'Thompson'
    """

    rows: int
    head: str
    time: str
    design: str
    adaptinf: str
    signer: str


def stored_line(number: int, text: str, digest: str) -> bytes:
    """A row as stored."""
    return json.dumps([number, text, digest]).encode() + b"\n"


def event_line(number: int, entry: Entry) -> bytes:
    """A row in readable form, without coins and noise; fields that were erased are missing."""
    shown = {name: value for name, value in entry.items() if name not in _HIDDEN and name != "sealed"}
    erased = {"erased": True} if shown.pop(GONE, False) else {}
    return json.dumps({"row": number, **encode(shown), **erased}).encode() + b"\n"


def archive(members: dict[str, bytes]) -> bytes:
    """The members as one file, which depends only on them."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED)
    return whole.getvalue()


def manifest_of(facts: dict[str, Any], members: dict[str, bytes]) -> bytes:
    """The text that is signed."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    return json.dumps({"format": FORMAT, **facts, "sha256": digests}, sort_keys=True, indent=1).encode()


def trail_of(manifest: bytes, signer: str) -> Trail:
    """What a manifest states."""
    stated = json.loads(manifest)
    return Trail(**{name: stated[name] for name in Trail.__slots__ if name != "signer"}, signer=signer)


def verified(path: Path, key_path: Path, head: str | None) -> Trail:
    """The trail in a file, if its signature, its members and the chain of its rows are valid."""
    # cryptography comes with an extra, and this module is also imported for its documentation.
    from adaptinf.trial.custody.signing import fingerprint, is_signed, public_key

    key = public_key(key_path)
    with told(path, "read"):
        content = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as file:
            manifest, signed = _small(file, MANIFEST), _small(file, SIGNATURE)
            if not is_signed(key, signed, manifest):
                raise JournalError(
                    str(path), f"it was not signed with the key in {key_path}, or was changed after signing"
                )
            stated = json.loads(manifest)
            for name, digest in stated["sha256"].items():
                if hashlib.sha256(file.read(name)).hexdigest() != digest:
                    raise JournalError(str(path), f"{name} differs from the file that was signed")
            trail = trail_of(manifest, fingerprint(key))
            heads = list(_chained(path, file.read(ROWS).splitlines()))
    except JournalError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        LookupError,
        ValueError,
        TypeError,
        EOFError,
        RuntimeError,
        OSError,
    ):
        raise FileError(str(path), "read", "it is not a trail written by export_trail") from None
    if (len(heads), heads[-1]) != (trail.rows, trail.head):
        raise JournalError(str(path), "its rows differ from those stated in its manifest")
    if head is not None and head not in heads:
        raise JournalError(str(path), f"no row has the head {head:.64}: rows were lost or changed")
    return trail


def _small(file: zipfile.ZipFile, name: str) -> bytes:
    """A member of the archive whose size is limited, because it is read before its signature is verified."""
    with file.open(name) as member:
        return member.read(_LARGEST)


def _chained(path: Path, lines: list[bytes]) -> Iterator[str]:
    """Digests of the rows, each of which covers those before it."""
    before = START
    for number, line in enumerate(lines, 1):
        stated, text, digest = json.loads(line)
        if stated != number or digest_after(before, text) != digest:
            raise JournalError(str(path), f"row {number} does not follow from the rows before it")
        before = digest
        yield digest
