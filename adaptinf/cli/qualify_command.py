"""``adaptinf qualify``: check this installation, and write a report of it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from adaptinf.cli.grammar import CONCERN, DONE, add_command, path_of, tell
from adaptinf.cli.options.output_options import confirm, json_text, overwritten, page_problems
from adaptinf.files import atomic_write
from adaptinf.parameters import refuse


def add_qualify(commands: Any, short: str) -> None:
    """Add ``adaptinf qualify``."""
    parser = add_command(
        commands,
        "qualify",
        qualify,
        short=short,
        opening="Check that the installed files are those that were installed, and run tests with known "
        "answers on this machine. The report is for the records of regulated work: installation and "
        "operational qualification. It takes a minute or two if designs are compiled for the first time.",
        examples=(
            "adaptinf qualify",
            "adaptinf qualify --html qualification.html --json qualification.json",
            "adaptinf qualify --compare last_year.json",
        ),
    )
    parser.add_argument("--html", type=path_of, metavar="FILE", help="write the report as a page")
    parser.add_argument("--json", type=path_of, metavar="FILE", help="write the report as JSON")
    said = "an earlier report in JSON: files that differ from it are failures"
    parser.add_argument("--compare", type=path_of, metavar="FILE", help=said)
    parser.add_argument("--quiet", action="store_true", help="do not list the tests as they run")


def qualify(arguments: argparse.Namespace) -> int:
    """Print the result; the exit code is 1 if a check failed."""
    page: Path | None = arguments.html
    record: Path | None = arguments.json
    sources = [place for place in (arguments.compare,) if place is not None]
    problems = page_problems("--html", page, record, sources) + overwritten(record, sources)
    refuse("arguments", problems)
    from adaptinf.qualification.earlier import read_report
    from adaptinf.qualification.qualification_page import html_of, text_of
    from adaptinf.qualification.qualified import qualify as qualified

    earlier = None if arguments.compare is None else read_report(arguments.compare)
    shown = not arguments.quiet and sys.stderr is not None and sys.stderr.isatty()
    done = qualified(earlier, tell if shown else lambda _: None)
    if page is not None:
        _write(arguments, page, html_of(done), "a report")
    if record is not None:
        _write(arguments, record, f"{json_text(done.to_dict())}\n", "JSON")
    print(text_of(done))
    return DONE if done.passed else CONCERN


def _write(arguments: argparse.Namespace, place: Path, text: str, what: str) -> None:
    atomic_write(place, lambda file: file.write(text.encode()))
    confirm(arguments, place, what)
