"""The change of a live trial to another version on the command line."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from adaptinf.cli.grammar import CONCERN, DONE, CommandParser

SAID = "let the installed version decide, if it decides as the earlier one did"
EXAMPLE = 'trial.db --reason "version 0.2" --by "the office"'


def migration_flags(parser: CommandParser) -> None:
    """Options of ``adaptinf trial migrate``."""
    said = "only compare all decisions; exit with 1 if any differs"
    parser.add_argument("--rehearse", action="store_true", help=said)
    said = "continue although decisions differ: earlier rows stand as written"
    parser.add_argument("--decide-from-now", action="store_true", help=said)
    parser.add_argument("--reason", metavar="TEXT", help="reason; stored in the trial")
    parser.add_argument("--by", metavar="TEXT", help="who performs it; stored in the trial")


def migrated(arguments: argparse.Namespace) -> int:
    """Rehearse or make the change, and print what was compared."""
    from adaptinf.trial import Trial

    found = Trial.migrate(
        arguments.file,
        rehearse=arguments.rehearse,
        decide_from_now=arguments.decide_from_now,
        reason=arguments.reason,
        by=arguments.by,
        key_file=arguments.key_file,
        heads=arguments.heads,
    )
    print(json.dumps(asdict(found)), flush=True)
    return CONCERN if arguments.rehearse and found.differing else DONE
