"""The file that contains a trial: its location, its permissions, and the guarantee after it was replaced.

The location of a file, which is preserved when it is renamed, distinguishes the trial's own file from a copy.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from adaptinf.errors import FileError
from adaptinf.files import OWNER_ONLY, told
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import Count, Is, OrNone, problems_of

Place = dict[str, Any]
PLACE = "place"
"""Name of the field with the file's location, and kind of a row that contains nothing else."""
_HERE, _BORN, _SIZE = -100, 0x800, 256
_MASK, _SECONDS, _NANOSECONDS = slice(0, 4), slice(80, 88), slice(88, 92)
"""For Linux's statx: the folder in which paths begin, the request for a birth time, and its position."""
SERVER = "system"
"""Name of the field by which the place of a database is identified: the server's number."""
TAKEN = ("restore", "moved")
"""Kinds of rows by which a file replaces the trial; each gives its location, and fresh coins."""
MARKED = (
    "the file is a copy made by backup, and its trial may have continued: use restore if the copy replaces "
    "the trial"
)
ELSEWHERE = (
    "its location differs from the one recorded in its journal, so it may be a copy of a trial that has "
    "continued elsewhere: use restore if it replaces that trial, or moved to declare that it is the trial "
    "itself and that no other copy continues"
)
_HEAD, _RUNS = OrNone(Is(str, "the head of a journal as text")), OrNone(Count(0))
_NOTHING = (
    "the trial's file was replaced by a copy, and draws made after the copy are unknown (restore was called "
    "without head= and runs=)"
)


def word_problems(head: Any, runs: Any, behind: Callable[[str], Sequence[str] | None]) -> list[str]:
    """Problems with the statement about the lost file; `behind` gives the kinds of rows after a head."""
    # Only erasures and new keys may follow the head, because copies accept them and they draw nothing.
    problems = problems_of(head=(head, _HEAD), runs=(runs, _RUNS))
    if problems or head is None:
        return problems
    if runs is not None:
        return ["pass head= or runs=, not both: a correct head implies that no runs were lost"]
    instead = (
        "set runs= to the number of lost files that continued from it, or omit both, in which case there "
        "is no guarantee"
    )
    kinds = behind(head)
    if kinds is None:
        return [
            f"no row of the copy has this head, so the trial continued after the copy was made: {instead}"
        ]
    if set(kinds) - {"erase", "rekey"}:
        return [
            f"{len(kinds):,} rows of the copy come after this head, so it is not the last known head of the "
            f"lost file: {instead}"
        ]
    return []


def as_taken(log: AdaptiveLog, acts: Iterable[Mapping[str, Any]]) -> AdaptiveLog:
    """The log with its guarantee after files replaced the trial."""
    # An outcome enters nodes of each lost file that continued from a copy, and of the file in its place;
    # nodes after the copy draw their noise in each of them. A run spends at most epsilon on an outcome over
    # all its nodes, so several runs, each chosen given the output of earlier ones, spend their sum.
    taken = [act for act in acts if act["kind"] in TAKEN]
    if any(act["kind"] == "restore" and act.get("head") is None and act.get("runs") is None for act in taken):
        return log.unpromised_by(_NOTHING)
    if log.guarantee is None or not taken:
        return log
    lost = sum(act.get("runs") or 0 for act in taken)
    stated = [act for act in taken if act.get("head") is None]
    made = copy(log)
    for name in ("guarantee", "reward_guarantee"):
        if (promised := getattr(log, name)) is not None:
            setattr(made, name, _once_more(promised, lost, len(taken), bool(stated)))
    if stated:
        made.guarantee_source = "stated"
    made.kept = {}
    return made


def _once_more(promised: PrivacyGuarantee, lost: int, taken: int, stated: bool) -> PrivacyGuarantee:
    """Total guarantee of the lost runs and the current one."""
    times = "once" if taken == 1 else f"{taken} times"
    whose = "the operator states" if stated else "the last head that was stored shows"
    runs = "1 lost run" if lost == 1 else f"{lost:,} lost runs"
    reason = f"another file replaced the trial's file {times}; {whose} that {runs} continued from it"
    return replace(
        promised,
        epsilon=promised.epsilon * (1 + lost),
        delta=min(1.0, promised.delta * (1 + lost)),
        reasons=(*promised.reasons, reason),
    )


def place_of(path: Path) -> Place:
    """Device, inode and birth time of a file, in nanoseconds or None if the system does not provide it."""
    # The file is not opened, because closing it would release SQLite's locks on it in this process.
    status = os.stat(path)
    return {"device": status.st_dev, "inode": status.st_ino, "born": _born(path, status)}


def same_place(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two locations belong to one file, or to one database."""
    if SERVER in one or SERVER in other:
        # A timeline ends where a standby or an archive goes on; while one only follows, it has none.
        return dict(one) == dict(other)
    # Inodes are reused after a file is removed, so the birth time has to agree as well; no program can set it
    # when copying. Device numbers may change when a machine restarts, so they serve only if the birth time is
    # unknown.
    if one["inode"] != other["inode"]:
        return False
    if one["born"] is not None and other["born"] is not None:
        return bool(one["born"] == other["born"])
    return bool(one["device"] == other["device"])


def _born(path: Path, status: os.stat_result) -> int | None:
    seconds = getattr(status, "st_birthtime", None)
    if seconds is not None:
        return int(getattr(status, "st_birthtime_ns", round(seconds * 1e9)))
    statx = _statx()
    answer = ctypes.create_string_buffer(_SIZE)
    if statx is None or statx(_HERE, os.fsencode(path), 0, _BORN, answer) != 0:
        return None
    mask, whole, rest = (
        int.from_bytes(answer.raw[part], sys.byteorder) for part in (_MASK, _SECONDS, _NANOSECONDS)
    )
    return whole * 1_000_000_000 + rest if mask & _BORN else None


@functools.cache
def _statx() -> Any:
    """Linux's call for birth times, which `os.stat` omits; None on other systems."""
    if sys.platform != "linux":
        return None
    try:
        return ctypes.CDLL(None).statx
    except (OSError, AttributeError):
        return None


def make_owners(path: Path) -> None:
    """Create the file, readable only by its owner, before SQLite creates it; an existing file is kept."""
    # Links are not followed, because other users may have placed them. SQLite gives the files that it creates
    # beside this one the same mode, whatever the umask.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with told(path, "written"):
        try:
            os.close(os.open(path, flags, OWNER_ONLY))
        except FileExistsError:
            # The file is not opened, because closing it would release SQLite's locks on it in this process.
            if path.is_symlink():
                problem = "it is a symbolic link, which another user may have created: give the file itself"
                raise FileError(str(path), "written", problem) from None


def files_of(path: Path) -> list[Path]:
    """The files that SQLite may use: the database, and those next to it."""
    return [path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-shm", "-journal")]
