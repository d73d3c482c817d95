"""Options for the key of a trial that is kept outside its file."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from adaptinf.cli.grammar import CommandParser, path_of

_KEY = "file with the trial's key, if it was created with one (or set ADAPTINF_KEY_FILE)"


def key_flag(parser: CommandParser) -> None:
    """The option of every action on a trial, for its key."""
    parser.add_argument("--key-file", type=path_of, metavar="FILE", help=_KEY)


def heads_flags(parser: CommandParser) -> None:
    """Options of every action that opens a trial."""
    to_file, to_command = (
        "file to which heads are appended",
        "command that receives each head, or the latest one, on standard input",
    )
    parser.add_argument("--heads", type=path_of, metavar="FILE", help=to_file)
    parser.add_argument("--heads-command", type=shlex.split, metavar="COMMAND", dest="heads", help=to_command)


def rekey_flags(parser: CommandParser) -> None:
    """Options of ``adaptinf trial rekey``."""
    said = "file with the new key, from adaptinf trial key"
    parser.add_argument("--new-key-file", type=path_of, required=True, metavar="FILE", help=said)


def chain_flag(parser: CommandParser) -> None:
    """The option of ``adaptinf trial verify`` that needs no key."""
    said = "check only the digests of the rows, which needs no key and reads no content"
    parser.add_argument("--chain", action="store_true", help=said)


def made_key(arguments: argparse.Namespace) -> dict[str, Any]:
    """Create a key; returns the text to be printed."""
    from adaptinf.trial import Trial

    Trial.make_key(arguments.file)
    return {"key_file": arguments.file}


def checked_chain(arguments: argparse.Namespace) -> dict[str, Any]:
    """Check the digests of a trial; returns the text to be printed."""
    from adaptinf.trial import Trial

    rows, head = Trial.verify_chain(arguments.file, arguments.head)
    return {"rows": rows, "head": head}
