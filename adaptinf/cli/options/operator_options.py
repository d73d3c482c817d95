"""New arms, sites and kits of a live trial on the command line."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adaptinf.cli.grammar import DONE, CommandParser, place_of_text
from adaptinf.errors import FileError, ParameterError

if TYPE_CHECKING:
    from adaptinf.trial import Trial

SAID = {
    "add-arm": "let an arm join the trial",
    "add-site": "add a site, at which participants are then assigned",
    "add-kits": "add kits, with their arms, to the stock of a site",
    "retire-kit": "record that a kit was lost or damaged",
    "stock": "count the kits at each site",
}
EXAMPLES = {
    "add-arm": 'trial.db --arm visit --key "protocol 2" \\\n    --reason "amendment 2" --by "the sponsor"',
    "add-site": 'trial.db --site Basel --key "site 1" --by "the office"',
    "add-kits": 'trial.db --site Basel --kits kits.json \\\n    --key "delivery 1" --by "the pharmacy"',
    "retire-kit": 'trial.db --kit 471108 --key "loss 1" \\\n    --reason "broken seal" --by "the ward"',
    "stock": "trial.db",
}
_KEY = "identifies the request: a repeated request counts only once"
_DASH = "-"


def _who(parser: CommandParser) -> None:
    parser.add_argument("--key", required=True, metavar="TEXT", help=_KEY)
    parser.add_argument("--by", required=True, metavar="TEXT", help="who performs it; stored in the trial")


def _arm_flags(parser: CommandParser) -> None:
    parser.add_argument("--arm", required=True, metavar="LABEL", help="a new label")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="reason; stored in the trial")
    _who(parser)


def _site_flags(parser: CommandParser) -> None:
    parser.add_argument("--site", required=True, metavar="NAME", help="a short name")
    _who(parser)


def _kits_flags(parser: CommandParser) -> None:
    _site_flags(parser)
    said = 'JSON with the arm of each code, such as {"471108": "call"}; -: standard input'
    parser.add_argument("--kits", required=True, metavar="FILE", type=place_of_text, help=said)


def _retire_flags(parser: CommandParser) -> None:
    parser.add_argument("--kit", required=True, metavar="CODE", help="its code")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="reason; stored in the trial")
    _who(parser)


def _stock_flags(parser: CommandParser) -> None:
    said = "count by arm, which shows how often each arm was assigned"
    parser.add_argument("--by-arm", action="store_true", help=said)


FLAGS = {
    "add-arm": _arm_flags,
    "add-site": _site_flags,
    "add-kits": _kits_flags,
    "retire-kit": _retire_flags,
    "stock": _stock_flags,
}


def act(trial: Trial, arguments: argparse.Namespace) -> int:
    """Perform one action, and print the arms, or the stock of each site."""
    who = {name: getattr(arguments, name) for name in ("key", "by") if hasattr(arguments, name)}
    if arguments.action == "add-arm":
        arms = trial.add_arm(arguments.arm, reason=arguments.reason, **who)
        print(json.dumps({"arms": list(arms)}), flush=True)
        return DONE
    if arguments.action == "add-site":
        trial.add_site(arguments.site, **who)
    elif arguments.action == "add-kits":
        trial.add_kits(arguments.site, _kits(arguments.kits), **who)
    elif arguments.action == "retire-kit":
        trial.retire_kit(arguments.kit, reason=arguments.reason, **who)
    for row in trial.stock(by_arm=getattr(arguments, "by_arm", False)).to_dict("records"):
        print(json.dumps(row), flush=True)
    return DONE


def _kits(place: str) -> Any:
    """The arm of each code; a code may occur only once."""
    try:
        text = sys.stdin.read() if place == _DASH else Path(place).read_text(encoding="utf-8")
        return json.loads(text, object_pairs_hook=_once)
    except OSError as error:
        raise FileError(place, "read", error.strerror or "unknown") from None
    except ParameterError:
        raise
    except ValueError:
        problem = "must contain a JSON object with the arm of each code"
    raise ParameterError("--kits", [problem])


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ParameterError("--kits", ["a code occurs twice"])
    return dict(pairs)
