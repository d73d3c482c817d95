"""``adaptinf demo``: three simulated experiments, and a report of one of them."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from adaptinf.cli.grammar import DONE, add_command, path_of, seed
from adaptinf.cli.options.output_options import page_problems
from adaptinf.parameters import Count, refuse
from adaptinf.texts import visible


def add_demo(commands: Any, short: str) -> None:
    """Add ``adaptinf demo``."""
    parser = add_command(
        commands,
        "demo",
        demo,
        short=short,
        opening="Simulate three experiments whose truth is known, analyse each with a textbook method and "
        "with adaptinf, and write a report on one of them.",
        examples=("adaptinf demo", "adaptinf demo --rng 1 --trials 100 --report late_page.html"),
    )
    parser.add_argument("--rng", type=seed, default=3, metavar="SEED", help="seed of the simulations (3)")
    parser.add_argument(
        "--trials",
        type=int,
        metavar="NUMBER",
        help="simulate this many trials of each experiment now, instead of using the 500 that were run in "
        "advance",
    )
    parser.add_argument(
        "--report", type=path_of, metavar="FILE", help="name of the report (.html); a new folder by default"
    )
    parser.add_argument("--no-open", action="store_true", help="do not open the report in a browser")


def demo(arguments: argparse.Namespace) -> int:
    """Print the findings of the experiments, write the report and open it."""
    problems = page_problems("--report", arguments.report, None, [])
    if arguments.trials is not None:
        problems += Count()("--trials", arguments.trials)
    refuse("arguments", problems)
    from adaptinf.cli.demonstration import demonstration, write_report

    print(demonstration(arguments.rng, arguments.trials))
    page = arguments.report or Path(tempfile.mkdtemp(prefix="adaptinf-demo-")) / "late_page.html"
    print(f"\n{write_report(page, arguments.rng)}\n\nThe report: {visible(str(page))}")
    if find_spec("matplotlib") is None:
        print('Its pictures require matplotlib, which is installed by: pip install -e ".[plots]"')
    if not arguments.no_open and _watched():
        webbrowser.open(page.resolve().as_uri())
    return DONE


def _watched() -> bool:
    """Whether a browser would be visible: a terminal with a graphical desktop, not inside a browser."""
    windows = sys.platform in ("win32", "darwin") or {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)
    return bool(windows) and sys.stdout is not None and sys.stdout.isatty()
