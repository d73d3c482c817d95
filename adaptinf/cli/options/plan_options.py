"""A change of the plan of a live trial on the command line."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from adaptinf.cli.grammar import DONE, CommandParser
from adaptinf.cli.options.design_options import json_of
from adaptinf.errors import ParameterError

if TYPE_CHECKING:
    from adaptinf.trial import Trial

SAID = "change the looks that have not been taken, and with them the length of the trial"
EXAMPLE = (
    "trial.db --looks '[250, 500, 700]' --blinded \\\n"
    '    --reason "amendment 2: more sites" --by "the sponsor"'
)


def change_flags(parser: CommandParser) -> None:
    """Flags of a change."""
    said = "all looks, as for Plan, the first ones as they were taken: '[250, 500, 700]'"
    parser.add_argument("--looks", required=True, type=json_of, metavar="JSON", help=said)
    said = 'further arguments of the plan that change, such as {"horizon": 900} with looks by date'
    parser.add_argument("--changes", type=json_of, default={}, metavar="JSON", help=said)
    said = "nobody who decided on the change had seen results by arm; required once a look has been taken"
    parser.add_argument("--blinded", action="store_true", help=said)
    parser.add_argument("--reason", required=True, metavar="TEXT", help="reason; stored in the trial")
    said = "who decided on it; stored in the trial"
    parser.add_argument("--by", required=True, metavar="TEXT", help=said)


def amend_plan(trial: Trial, arguments: argparse.Namespace) -> int:
    """Change the plan, and print its looks and when the next one is due."""
    changes = arguments.changes
    if not isinstance(changes, dict) or {"looks", "reason", "by", "blinded"} & set(changes):
        problem = "it must be a JSON object with arguments of the plan except looks"
        raise ParameterError("--changes", [problem])
    why = {"reason": arguments.reason, "by": arguments.by, "blinded": arguments.blinded}
    trial.amend_plan(arguments.looks, **why, **changes)
    looks = trial.history()[-1].looks
    print(json.dumps({"looks": looks, "next_look": trial.status().next_look}), flush=True)
    return DONE
