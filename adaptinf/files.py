"""Files that are written completely or not at all, and names that refer to the same file."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import stat
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from adaptinf.errors import FileError, ParameterError

_STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")
_LEFTOVER_SECONDS = 86_400.0


def as_path(subject: str, name: str, value: Any, more: str = "") -> Path:
    """Path given by a user."""
    try:
        path = Path(os.fsdecode(os.fspath(value)))
    except TypeError:
        kinds = f"the name of a file or folder{more}"
        raise ParameterError(subject, [f"{name} must be {kinds}, got {type(value).__name__}"]) from None
    if "\0" in str(path):
        raise ParameterError(subject, [f"{name} must not contain a NUL character, got {value!r:.80}"])
    return path


OWNER_ONLY = 0o600
"""Mode of a file that only its owner may read or write."""


def atomic_write(path: Path, fill: Callable[[BinaryIO], Any], owner_only: bool = False) -> None:
    """Write a file using `fill`; after any interruption, the file has its complete old or new content.

    Links are followed; an existing file keeps its mode, and its owner if the system allows it. A new file has
    the mode that the umask allows. With `owner_only`, an existing or new file has mode 0600 from the first
    byte on. A device or a pipe is written to directly.
    """
    with told(path, "written"):
        if "\0" in str(path):
            raise FileError(repr(str(path)), "written", "its name contains a NUL character")
        if is_stream(path):
            # A stream may be redirected to a file with >>, whose contents must be kept.
            with path.open("ab") as stream:
                fill(stream)
            return
        place = real(path)
        publish(stage(place, fill, owner_only=owner_only), place)


def real(path: Path) -> Path:
    """Target of links; a cycle of links is left unresolved, so the system refuses it."""
    return Path(os.path.realpath(path))


def stage(
    place: Path, fill: Callable[[BinaryIO], Any], like: Path | None = None, owner_only: bool = False
) -> Path:
    """A temporary file next to `place`, with its content on disk; it is removed if anything fails.

    The temporary file has the mode and owner of the file at `place`, or otherwise of the file `like`; with
    `owner_only`, it has mode 0600.
    """
    old = _checked_status(place)
    if old is None and like is not None:
        old = _checked_status(like)
    _sweep(place)
    temporary = place.with_name(f".{place.name[:50]}.{uuid.uuid4().hex}.tmp")
    mode = OWNER_ONLY if owner_only else 0o666 if old is None else stat.S_IMODE(old.st_mode)
    try:
        # The temporary file must never have wider permissions than the final one.
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(handle, "wb") as file:
            fill(file)
            file.flush()
            if old is not None:
                _keep_owner(temporary, old)
                os.chmod(temporary, mode)
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def publish(temporary: Path, place: Path) -> None:
    """Rename a temporary file in one step."""
    try:
        os.replace(temporary, place)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(place.parent)


def owners_alone(path: Path) -> bool | None:
    """Whether only its owner may access a file; None if there is no file, or the system has no such modes."""
    if os.name != "posix":
        return None
    with contextlib.suppress(OSError):
        return not path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    return None


def same_file(first: Path, second: Path) -> bool:
    """Whether two names refer to the same file: equal, or linked in either direction; they need not exist."""
    try:
        return os.path.samefile(first, second)
    except OSError:
        return os.path.realpath(first) == os.path.realpath(second)


def file_digest(path: Path) -> str | None:
    """Hash of the bytes of a file; None if there is none."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def told(path: Path, done: str) -> Iterator[None]:
    """Convert a system error about a file into an error that names the file."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise FileError(str(path), done, error.strerror or str(error)) from error


def is_stream(path: Path) -> bool:
    """Whether a device or a pipe has this name, which no file may replace."""
    with contextlib.suppress(OSError):
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISSOCK(mode)):
            return True
    return os.path.abspath(path).startswith(_STREAMS)


def _checked_status(place: Path) -> os.stat_result | None:
    """Status of a file that may be replaced; None if there is none yet."""
    try:
        status = place.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "no file"
        raise FileError(str(place), "written", f"it is {kind}")
    if not os.access(place, os.W_OK):  # Renaming would replace even a write-protected file.
        raise FileError(str(place), "written", "it is write-protected")
    return status


def _keep_owner(temporary: Path, old: os.stat_result) -> None:
    if hasattr(os, "chown"):
        with contextlib.suppress(PermissionError):
            os.chown(temporary, old.st_uid, old.st_gid)


def _sweep(place: Path) -> None:
    """Remove temporary files for this name that were left by processes killed at least a day ago."""
    for leftover in place.parent.glob(f".{glob.escape(place.name[:50])}.{'?' * 32}.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > _LEFTOVER_SECONDS:
                leftover.unlink()


def _sync_folder(folder: Path) -> None:
    """Ensure that a new name survives a power cut, if the system can open folders."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
