"""The key that is kept outside a trial's file: from a file, or from a command named in the environment."""

from __future__ import annotations

import os
import secrets
import shlex
import stat
import subprocess
from pathlib import Path
from typing import Any

from adaptinf.errors import FileError, ParameterError
from adaptinf.files import OWNER_ONLY, as_path, told

BY_FILE, BY_COMMAND = "ADAPTINF_KEY_FILE", "ADAPTINF_KEY_COMMAND"
"""Names in the environment: a key's file, and a command that prints a key."""
KEY_BYTES = 32
_MOST, _PATIENCE = 1_024, 60.0
_FORM = "32 bytes, or 64 hexadecimal digits"


def outside_key(subject: str, key_file: Any = None) -> bytes | None:
    """The key in a file or from the environment; None if neither specifies one."""
    if key_file is not None:
        return key_in(as_path(subject, "key_file", key_file))
    path, command = os.environ.get(BY_FILE), os.environ.get(BY_COMMAND)
    if path and command:
        raise ParameterError(subject, [f"{BY_FILE} and {BY_COMMAND} are both set: unset one of them"])
    if path:
        return key_in(Path(path))
    return _printed(command) if command else None


def key_in(path: Path) -> bytes:
    """The key in a file that only its owner can open."""
    with told(path, "read"), open(path, "rb") as file:
        # The mode is that of the opened file, which nobody can exchange between the two questions.
        mode = os.fstat(file.fileno()).st_mode
        if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
            problem = f"users other than the owner can read it: run chmod 600 {shlex.quote(str(path))}"
            raise FileError(str(path), "read", problem)
        content = file.read(_MOST)
    return _key(str(path), content)


def make_key(path: Path) -> None:
    """Write a new key to a new file, which only its owner can open."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with told(path, "written"):
        handle = os.open(path, flags, OWNER_ONLY)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())


def _printed(command: str) -> bytes:
    """The key printed by a command, whose own messages go to standard error."""
    try:
        done = subprocess.run(
            shlex.split(command), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=_PATIENCE
        )
    except subprocess.TimeoutExpired:
        problem = f"the command did not finish within {_PATIENCE:g} s"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "a quotation mark is not closed"
        problem = f"the command cannot be started: {reason}"
    else:
        if done.returncode == 0:
            return _key(BY_COMMAND, done.stdout)
        problem = f"the command failed with exit code {done.returncode}"
    # The original error contains the command, which may contain a password.
    raise FileError(BY_COMMAND, "read", problem)


def _key(source: str, content: bytes) -> bytes:
    """The key, from its bytes or its digits."""
    if len(content) == KEY_BYTES:
        return content
    digits = content.strip()
    # Python would also read digits with spaces between them.
    if len(digits) == 2 * KEY_BYTES and digits.isalnum():
        try:
            return bytes.fromhex(digits.decode())
        except ValueError:
            pass  # The original error would quote a part of the key.
    raise FileError(source, "read", f"it is not a key ({_FORM}): make one with adaptinf trial key")
