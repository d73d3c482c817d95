"""Retention and signed trails of a live trial on the command line."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from adaptinf.cli.grammar import DONE, CommandParser, path_of

if TYPE_CHECKING:
    from adaptinf.trial import Trial

_BY = "the person responsible; stored in the trial"


def trail_flags(parser: CommandParser) -> None:
    """Options of ``adaptinf trial export-trail``."""
    said = "PEM file with an Ed25519 private key that only you can read"
    parser.add_argument("--sign", required=True, type=path_of, metavar="FILE", help=said)


def verification_flags(parser: CommandParser) -> None:
    """Options of ``adaptinf trial verify-trail``."""
    said = "PEM file with the public key of the signer"
    parser.add_argument("--public-key", required=True, type=path_of, metavar="FILE", help=said)
    parser.add_argument("--head", metavar="DIGEST", help="of an earlier status that was stored elsewhere")


def retention_flags(parser: CommandParser) -> None:
    """Options of ``adaptinf trial retention``."""
    parser.add_argument("--days", type=int, help="days after the end for which names are kept")
    parser.add_argument("--reason", metavar="TEXT", help="reason; stored in the trial")
    parser.add_argument("--by", metavar="TEXT", help=_BY)


def expiry_flags(parser: CommandParser) -> None:
    """Options of ``adaptinf trial expire``."""
    parser.add_argument("--by", required=True, metavar="TEXT", help=_BY)


def export_trail(trial: Trial, arguments: argparse.Namespace) -> int:
    """Write the signed trail, and print what it contains."""
    print(json.dumps(asdict(trial.export_trail(arguments.output, sign=arguments.sign))))
    return DONE


def verify_trail(arguments: argparse.Namespace) -> int:
    """Verify a signed trail, and print what it contains."""
    from adaptinf.trial import Trial

    found = Trial.verify_trail(arguments.file, public_key=arguments.public_key, head=arguments.head)
    print(json.dumps(asdict(found)))
    return DONE


def retention(trial: Trial, arguments: argparse.Namespace) -> int:
    """Declare a retention period, if one is given; print the current one."""
    if arguments.days is not None:
        trial.set_retention(arguments.days, reason=arguments.reason, by=arguments.by)
    print(json.dumps(asdict(trial.retention())))
    return DONE


def expire(trial: Trial, arguments: argparse.Namespace) -> int:
    """Destroy names whose retention period has ended; print how many are left."""
    print(json.dumps(asdict(trial.expire(by=arguments.by))))
    return DONE
