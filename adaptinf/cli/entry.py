# PYTHON_ARGCOMPLETE_OK
"""The command line: the commands, what they are given, and how they end."""

from __future__ import annotations

import argparse
import io
import os
import shlex
import sys
from collections.abc import Sequence

from adaptinf import __version__
from adaptinf.cli.analyze_command import add_analyze, add_report
from adaptinf.cli.check_commands import add_diagnose, add_recommend, add_validate
from adaptinf.cli.convert_command import add_convert
from adaptinf.cli.grammar import (
    DONE,
    EXIT_CODES,
    INTERRUPTED,
    REFUSED,
    CommandParser,
    add_command,
    print_help,
    seed,
)
from adaptinf.cli.power_command import add_power
from adaptinf.cli.refusals import refusal
from adaptinf.cli.trial_commands import add_trial
from adaptinf.errors import AdaptinfError


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        Its words; by default those that the process was started with.

    Returns
    -------
    int
        The exit code: 0 done; 1 a concern; 2 refused; 130 interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what its encoding does not hold is shown as an escape
            stream.reconfigure(errors="backslashreplace")
    parser = command_parser()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what could come next
        from adaptinf.cli.completion import complete

        complete(parser)
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = parser.parse(words)
    arguments.call = shlex.join(["adaptinf", *words])
    try:
        code: int = arguments.run(arguments)
        if sys.stdout is not None:  # as it is where it was closed
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        return INTERRUPTED
    except (AdaptinfError, OSError) as error:
        print(refusal(error, arguments, words), file=sys.stderr)
        return REFUSED
    return code


def command_parser() -> CommandParser:
    """All commands."""
    parser = CommandParser(
        prog="adaptinf",
        opening="Valid inference for data that were gathered adaptively, with or without differential "
        "privacy.",
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
    for add in (
        *(add_validate, add_diagnose, add_recommend, add_analyze),
        *(add_power, add_report, add_convert, add_trial, _add_demo),
    ):
        add(commands)
    return parser


def _add_demo(commands: argparse._SubParsersAction[CommandParser]) -> None:
    parser = add_command(
        commands,
        "demo",
        _demo,
        short="two private adaptive trials, analysed",
        opening="Simulate two private adaptive trials on real outcomes and analyse them.",
        examples=("adaptinf demo", "adaptinf demo --rng 1"),
    )
    parser.add_argument("--rng", type=seed, default=0, metavar="SEED", help="seed of the simulation (0)")


def _demo(arguments: argparse.Namespace) -> int:
    from adaptinf.cli.demonstration import run_demo

    print(run_demo(rng=arguments.rng))
    return DONE
