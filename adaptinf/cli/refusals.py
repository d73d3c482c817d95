"""Messages for a refused command, worded in terms of its options rather than function names."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Sequence

from adaptinf.cli.options.flag_columns import COLUMNS
from adaptinf.errors import ParameterError
from adaptinf.texts import visible, visible_lines

_OF_FILES = {f"--{name.replace('_', '-')}" for name in (*COLUMNS, "propensities", "context", "missing")}
"""Options that do not apply to a file written by adaptinf."""
_STORED = "the file itself states the roles of its columns: write it again from its source with the option"
_INTERNAL = re.compile(r"[A-Za-z_][\w.]*(?: files)?")
"""Names of functions and classes, as they appear in Python errors."""
_GENERAL = ("arguments", "arguments and file")
_TWICE = re.compile(r"(?:set )?'\w+'(?: to True|, such as '[^']*')? \((--[^()]*) on the command line\)")
_QUOTED = re.compile(r"'(sort|sep|decimal|encoding|(?<=set ')success|[a-z]+(?:_[a-z]+)+)'")
_ARGUMENT = re.compile(r"(?<![\w.\'\"-])([a-z_]+)=(True\b)?(?=(.?))")


def refusal(error: Exception, arguments: argparse.Namespace, words: Sequence[str]) -> str:
    """The message of an error, one problem per line."""
    flags = set(arguments.parser._option_string_actions)
    text = in_flags(_said(error, words), flags)
    if getattr(arguments, "stored", False) and _OF_FILES & set(re.findall(r"--[a-z-]+", text)):
        text = f"{text} ({_STORED})"
    return f"{arguments.parser.prog}: {visible(text, chr(10))}"


def _said(error: Exception, words: Sequence[str]) -> str:
    """An error message without the name of a function that the user did not type."""
    if not isinstance(error, ParameterError):
        text = str(error)
        head, _, rest = text.partition(": ")
        return rest if rest and _INTERNAL.fullmatch(head) and isinstance(error, FileNotFoundError) else text
    # A design's name was typed by the user, and if several were typed it shows which one is at fault, so the
    # error keeps it.
    typed = error.subject[:1].isupper() and any(error.subject in word for word in words)
    if error.subject not in _GENERAL and (typed or not _INTERNAL.fullmatch(error.subject)):
        return str(error)
    if len(error.problems) == 1:
        return visible(" ".join(error.problems[0].split()))
    listed = [f"  - {' '.join(problem.split())}" for problem in error.problems]
    return visible_lines([f"{len(listed)} problems", *listed])


def in_flags(text: str, flags: Collection[str]) -> str:
    """A text in which Python arguments, such as ``sort=True``, are replaced by options of the command.

    Examples
    --------
    >>> from adaptinf.cli.refusals import in_flags
    >>> in_flags("'sort' needs round= or batch=", {"--sort", "--round", "--batch"})
    '--sort needs --round or --batch'
    """
    text = _TWICE.sub(_given, text)

    def option(match: re.Match[str]) -> str:
        flag = f"--{match[1].replace('_', '-')}"
        if flag not in flags:
            return match[0]
        valued = match.re is _ARGUMENT and not match[2]
        value = valued and match[3] not in ("", " ", ",", ".", ";", ":", ")")
        return f"{flag} " if value else flag

    return _QUOTED.sub(option, _ARGUMENT.sub(option, text))


def _given(match: re.Match[str]) -> str:
    """An option with different names in Python and on the command line."""
    return f"give {match[1]}" if match[0].startswith("set ") else match[1]
