"""A live trial over HTTP on the command line: serve it, and issue, list and revoke tokens."""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from adaptinf.cli.grammar import DONE, CommandParser, path_of, tell

if TYPE_CHECKING:
    from adaptinf.trial import Trial

_PASSWORD = re.compile(r"://[^/]*@")
_ROLES = ("assigner", "recorder", "monitor", "statistician", "operator", "unblinder")


def serve_flags(parser: CommandParser) -> None:
    """Options of ``adaptinf trial serve``."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; 127.0.0.1: this machine")
    parser.add_argument("--port", type=int, default=8080, help="port; 0: any free port")
    said = "PEM file with the certificate; required if other machines can reach the host"
    parser.add_argument("--certificate", type=path_of, metavar="FILE", help=said)
    said = "processes that answer, for a trial in PostgreSQL; 1"
    parser.add_argument("--workers", type=int, default=1, metavar="N", help=said)
    said = "TOML file that turns on alarms, webhooks and other options; readable only by its owner"
    parser.add_argument("--configuration", type=path_of, metavar="FILE", help=said)
    parser.add_argument("--private-key", type=path_of, metavar="FILE", help="PEM file with its private key")


def token_flags(parser: CommandParser) -> None:
    """Options of ``adaptinf trial token``."""
    parser.add_argument("--role", choices=_ROLES, help="issue a token that permits what this role may do")
    parser.add_argument("--days", type=int, help="days until it expires; 365")
    parser.add_argument("--site", metavar="NAME", help="limit the token to the participants of a site")
    parser.add_argument("--revoke", type=int, metavar="ID", help="refuse a token from now on")
    parser.add_argument("--by", metavar="TEXT", help="the person responsible; stored in the trial")


def serve_trial(trial: Trial, arguments: argparse.Namespace) -> int:
    """Serve the trial until a signal arrives; prints one line once it accepts requests."""
    from adaptinf.service.server import Place, serve
    from adaptinf.service.settings import NOTHING, settings_from
    from adaptinf.service.workers import serve_by_workers, worker_problems
    from adaptinf.trial.migration.versions import other_version

    chosen, workers = arguments.configuration, arguments.workers
    place = Place(arguments.host, arguments.port, arguments.certificate, arguments.private_key)

    def say(address: str) -> None:
        # The address of a database may contain its password.
        print(f"serving {_PASSWORD.sub('://', arguments.file)} at {address}", flush=True)

    other = other_version(trial.status().version)
    place.check([*([other] if other else []), *worker_problems(trial, workers)])
    settings = settings_from(chosen) if chosen else NOTHING
    if workers == 1:
        serve(trial, *place, say, settings)
        return DONE
    trial.close()
    opened = partial(type(trial).open, arguments.file, key_file=arguments.key_file, heads=arguments.heads)
    serve_by_workers(opened, workers, place, say, settings)
    return DONE


def token_of_trial(trial: Trial, arguments: argparse.Namespace) -> int:
    """Issue a token and print only the token, revoke a token, or list all tokens."""
    if arguments.role is not None and arguments.revoke is not None:
        arguments.parser.error("give --role to issue a token or --revoke to revoke one, not both")
    if arguments.role is not None:
        days = {} if arguments.days is None else {"days": arguments.days}
        token = trial.add_token(arguments.role, by=arguments.by, site=arguments.site, **days)
        print(token.text, flush=True)
        where = "" if token.site is None else f" at {token.site}"
        tell(f"token {token.id}: {token.role}{where}, until {token.expires}; it is not shown again")
        return DONE
    if arguments.revoke is not None:
        trial.revoke_token(arguments.revoke, by=arguments.by)
    for token in trial.tokens():
        print(json.dumps({name: value for name, value in asdict(token).items() if name != "text"}))
    return DONE
