# PYTHON_ARGCOMPLETE_OK
"""The command line: the commands, their arguments, and their exit codes."""

from __future__ import annotations

import io
import os
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module

from adaptinf.cli.grammar import DONE, EXIT_CODES, INTERRUPTED, REFUSED, CommandParser, print_help, tell
from adaptinf.errors import AdaptinfError
from adaptinf.version import __version__

_COMMANDS = {
    "validate": ("check_commands", "check a log, and list all problems"),
    "diagnose": ("check_commands", "test the assumptions of an analysis"),
    "recommend": (
        "check_commands",
        "list the methods that are valid for a log, in order of preference, with reasons",
    ),
    "analyze": ("analyze_command", "estimate effects from a log with a method that is valid for it"),
    "power": (
        "power_command",
        "compute the power and type I error of a plan, or the number of participants required",
    ),
    "report": ("analyze_command", "write an HTML page: collection, checks, valid methods, results"),
    "convert": (
        "convert_command",
        "write a log to a file that stores the roles of its columns, or other formats to Parquet",
    ),
    "trial": ("trial_commands", "run a live trial that is stored in a file"),
    "qualify": ("qualify_command", "check this installation, with tests whose answers are known"),
    "demo": (
        "demo_command",
        "simulate three experiments in which textbook intervals fail, and write a report",
    ),
}
"""The module of each command, and its line in the list; options are loaded when needed."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        Command-line arguments; by default those of the process.

    Returns
    -------
    int
        The exit code: 0 success; 1 a concern; 2 refused; 130 interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        # Characters that the stream's encoding lacks are printed as escapes, because an error would lose the
        # output.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # The shell sets this variable to request completions; nothing else may then be printed.
    if "_ARGCOMPLETE" in os.environ:
        from adaptinf.cli.completion import complete

        complete(command_parser(*_COMMANDS))
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = command_parser(*words[:1]).parse(words)
    arguments.call = shlex.join(["adaptinf", *words])
    try:
        code: int = arguments.run(arguments)
        if sys.stdout is not None:  # Standard output is None if it was closed before the start.
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader of a pipe has closed it, as `head` does. Without this redirection, Python would report
        # the error again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except (AdaptinfError, OSError) as error:
        from adaptinf.cli.refusals import refusal

        tell(refusal(error, arguments, words))
        return REFUSED
    return code


def command_parser(*wanted: str) -> CommandParser:
    """All commands, with options for the requested ones."""
    parser = CommandParser(
        prog="adaptinf",
        opening="Valid inference for adaptively collected data, with or without differential privacy.",
        examples=(
            "adaptinf validate visits.csv --action page --reward bought",
            "adaptinf analyze visits.csv --action page --reward bought --propensity p",
            "adaptinf analyze --help",
        ),
        epilog=EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=f"adaptinf {__version__}")
    parser.set_defaults(run=print_help, parser=parser, command="")
    commands = parser.add_subparsers(dest="command", metavar="command", title="commands")
    for name, (module, short) in _COMMANDS.items():
        if name in wanted:
            getattr(import_module(f"adaptinf.cli.{module}"), f"add_{name}")(commands, short)
        else:
            commands.add_parser(name, help=short)
    return parser
