"""``adaptinf demo``: two private adaptive trials."""

from __future__ import annotations

import argparse
from typing import Any

from adaptinf.cli.grammar import DONE, add_command, seed


def add_demo(commands: Any, short: str) -> None:
    """Add ``adaptinf demo``."""
    parser = add_command(
        commands,
        "demo",
        demo,
        short=short,
        opening="Simulate two private adaptive trials on real outcomes and analyse them.",
        examples=("adaptinf demo", "adaptinf demo --rng 1"),
    )
    parser.add_argument("--rng", type=seed, default=0, metavar="SEED", help="seed of the simulation (0)")


def demo(arguments: argparse.Namespace) -> int:
    """Print the report."""
    from adaptinf.cli.demonstration import run_demo

    print(run_demo(rng=arguments.rng))
    return DONE
