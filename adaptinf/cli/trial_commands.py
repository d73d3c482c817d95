"""A live trial on the command line: requests as flags or as lines of JSON, answers as lines of JSON."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

from adaptinf.cli.grammar import (
    CONCERN,
    DONE,
    REFUSED,
    CommandParser,
    add_command,
    path_of,
    place_of_text,
    print_help,
    tell,
)
from adaptinf.cli.options import migration_options, operator_options, plan_options
from adaptinf.cli.options.custody_options import (
    expire,
    expiry_flags,
    export_trail,
    retention,
    retention_flags,
    trail_flags,
    verification_flags,
    verify_trail,
)
from adaptinf.cli.options.design_options import PARAMETERS, design_of, json_of, plan_of
from adaptinf.cli.options.key_options import (
    chain_flag,
    checked_chain,
    heads_flags,
    key_flag,
    made_key,
    rekey_flags,
)
from adaptinf.cli.serve_commands import serve_flags, serve_trial, token_flags, token_of_trial
from adaptinf.errors import AdaptinfError, AdaptinfWarning, JournalError, ParameterError

if TYPE_CHECKING:
    from adaptinf.trial import Trial


_LOST = "lost"
_SAID = {
    "create": "create a trial in a new file or an empty database",
    "assign": "choose an arm for a participant",
    "record": "record the outcome of a decision",
    "amend": "correct an outcome that was recorded incorrectly",
    "status": "show the status of the trial",
    "look": "take the look of the plan that is due, record it, and follow its decision",
    "looks": "list the looks so far",
    "amend-plan": plan_options.SAID,
    "verify": "check the file from its first row",
    "audit-noise": "test the noise that was drawn against its distribution; not covered by the guarantee",
    "unblind": "reveal the arm of one participant in an emergency",
    "remove-arm": "stop assigning an arm permanently",
    "erase": "make the records of a participant unreadable in the file",
    **operator_options.SAID,
    "history": "list the actions taken on the trial, by whom and why",
    "export": "write the log as Parquet",
    "export-trail": "write all rows of the journal to a signed file",
    "verify-trail": "check a signed file, without the trial",
    "retention": "declare how long names are kept after the end, or show it",
    "expire": "destroy the names of all participants whose period has ended",
    "backup": "write a copy to a new file",
    "restore": "replace a lost trial file with a copy of it",
    "moved": "declare that the file was moved and that no other copy continues the trial",
    "migrate": migration_options.SAID,
    "pause": "stop assigning participants until the trial is resumed",
    "resume": "assign again",
    "finish": "end the trial permanently",
    "key": "create a key for sealing trials, in a new file",
    "rekey": "replace the key that opens the trial",
    "token": "issue, list or revoke tokens of programs that use the trial over HTTP",
    "serve": "answer requests over HTTP",
}
_FILE = "the trial: a file, or postgresql://USER@HOST/DATABASE"
_KEY_FILE = "the file to write"
_KEY = "identifies the request: a repeated request counts only once"
_HIDDEN = ("unit", "key", "reason", "by")
_DASH = "-"
_LINES = (
    "Without flags, requests are read from standard input, one JSON object per line, and answered line by "
    "line."
)
_NAMES = (
    "Flags are visible in the list of processes to everyone on the machine: if --unit, --key, --reason or "
    "--by is -, its value is read from standard input, one line each, in this order."
)


_EXAMPLES = {
    "create": "trial.db --arm letter --arm call --horizon 500 \\\n"
    "    --design Thompson --parameters '{\"floor\": 0.1}'",
    "assign": 'trial.db --unit "participant 1" --key "visit 7301"',
    "record": 'trial.db --decision 1 --reward 1 --key "form 1"',
    "amend": 'trial.db --decision 1 --reward 0 --key "form 1b" \\\n    --reason "a slip" --by "the monitor"',
    "status": "postgresql://office@server/trial",
    "look": "trial.db",
    "looks": "trial.db",
    "amend-plan": plan_options.EXAMPLE,
    "verify": "trial.db --head 3ba68be938b174b0",
    "audit-noise": "trial.db --other earlier.db",
    "unblind": 'trial.db --unit - < name.txt \\\n    --reason "a seizure" --by "the ward"',
    "remove-arm": 'trial.db --arm call --key "dsmb 3" \\\n    --reason "two seizures" --by "the board"',
    "erase": 'trial.db --unit "participant 1" --key "letter 9" \\\n    --reason "asked" --by "the office"',
    **operator_options.EXAMPLES,
    "history": "trial.db",
    "export": "trial.db log.parquet --missing drop",
    "export-trail": "trial.db trail.zip --sign private.pem",
    "verify-trail": "trail.zip --public-key public.pem",
    "retention": 'trial.db --days 365 --reason "protocol, section 9" --by "the sponsor"',
    "expire": 'trial.db --by "data protection"',
    "backup": "trial.db copy.db",
    "restore": 'copy.db --reason "the disk failed" --by "the office"',
    "moved": 'trial.db --reason "a new server" --by "the office"',
    "migrate": migration_options.EXAMPLE,
    "pause": 'trial.db --reason "for the night"',
    "resume": 'trial.db --reason "the next day"',
    "finish": 'trial.db --reason "all outcomes are in" --by "the sponsor"',
    "key": "trial.key",
    "rekey": "trial.db --key-file old.key --new-key-file new.key \\\n"
    '    --reason "a year is over" --by "the office"',
    "token": "trial.db --role assigner",
    "serve": "trial.db --host 127.0.0.1 --port 8080",
}


def _example(name: str) -> list[str]:
    """The lines of an example."""
    return f"adaptinf trial {name} {_EXAMPLES[name]}".split("\n")


def add_trial(commands: Any, short: str) -> None:
    """Add ``adaptinf trial`` and its actions."""
    parser = add_command(
        commands,
        "trial",
        print_help,
        short=short,
        opening="Run a live trial that is stored in a file or a PostgreSQL database. Responses are JSON, one "
        "object per line.",
        examples=[line for name in ("create", "assign", "record") for line in _example(name)],
    )
    actions = parser.add_subparsers(dest="action", metavar="action", title="actions")
    for name, said in _SAID.items():
        more = [_LINES] if name in _FIELDS else []
        more += [_NAMES] if name in _FLAGS and name not in _NAMELESS else []
        text = " ".join([f"{said[0].upper()}{said[1:]}.", *more])
        action = add_command(actions, name, run_trial, short=said, opening=text, examples=_example(name))
        action.add_argument(
            "file",
            metavar="FILE",
            type=place_of_text,
            help=_KEY_FILE if name == _MADE else _FILE,
        )
        _FLAGS.get(name, lambda _: None)(action)
        if name not in (_MADE, "verify-trail"):
            key_flag(action)
            heads_flags(action)
    for name in ("export", "export-trail", "backup"):
        actions.choices[name].add_argument("output", metavar="OUTPUT", type=path_of, help="the file to write")
    said = "another trial whose noise must not be reused, with the same key if it has one; once for each"
    actions.choices["audit-noise"].add_argument(
        "--other", action="append", default=[], metavar="FILE", type=place_of_text, help=said
    )


def _create_flags(parser: CommandParser) -> None:
    parser.add_argument("--design", required=True, metavar="NAME", help="such as Thompson")
    parser.add_argument(
        "--parameters",
        type=json_of,
        default={},
        metavar="JSON",
        help=PARAMETERS,
    )
    parser.add_argument("--arm", action="append", required=True, metavar="LABEL", help="once for each arm")
    parser.add_argument("--horizon", type=int, required=True, help="maximum number of participants")
    parser.add_argument("--feature", action="append", metavar="LABEL", help="once for each context label")
    parser.add_argument("--dimension", type=int, help="length of context vectors, instead of labels")
    parser.add_argument("--per-arm", action="store_true", help="each arm has its own context vector")
    parser.add_argument(
        "--reward-range", nargs=2, type=float, default=(0.0, 1.0), metavar=("LOW", "HIGH"), help="0 and 1"
    )
    parser.add_argument(
        "--outcome-window",
        type=int,
        metavar="PARTICIPANTS",
        help="after which an outcome is passed to a private design, regardless of when it arrived",
    )
    said = "assign codes of kits, and show no arm; add sites and kits first"
    parser.add_argument("--blinded", action="store_true", help=said)
    parser.add_argument(
        "--plan",
        type=json_of,
        metavar="JSON",
        help='looks and the two arms that they compare, as for Plan: \'{"treatment": "call", "control": '
        '"letter", "looks": [250, 500]}\'',
    )
    parser.add_argument(
        "--in-time",
        type=float,
        metavar="EPSILON",
        help="at which in-time successes and failures of each arm are also released, at the end",
    )


def _assign_flags(parser: CommandParser) -> None:
    parser.add_argument("--unit", metavar="TEXT", help="who it is")
    parser.add_argument("--key", metavar="TEXT", help=_KEY)
    parser.add_argument("--site", metavar="NAME", help="where, if the trial has sites")
    parser.add_argument(
        "--context", type=json_of, metavar="JSON", help='a label, such as "young", or numbers'
    )


def _record_flags(parser: CommandParser) -> None:
    parser.add_argument("--decision", type=int, metavar="ID", help="of the decision")
    parser.add_argument("--reward", type=_reward, help=f"a number, or {_LOST!r}: it will never arrive")
    parser.add_argument("--key", metavar="TEXT", help=_KEY)


def _verify_flags(parser: CommandParser) -> None:
    parser.add_argument("--head", metavar="DIGEST", help="of an earlier status that was stored elsewhere")
    chain_flag(parser)


def _export_flags(parser: CommandParser) -> None:
    parser.add_argument(
        "--missing",
        choices=("drop", "bounds", "worst", "best"),
        help="meaning of an outcome that has not arrived",
    )
    parser.add_argument(
        "--as-told", action="store_true", help="use amended outcomes with the values that the design received"
    )
    parser.add_argument(
        "--erased",
        choices=("keep", "drop"),
        help="rounds of erased participants: keep without contexts, or drop",
    )


def _reason_flags(parser: CommandParser) -> None:
    parser.add_argument("--reason", required=True, metavar="TEXT", help="reason; stored in the trial")
    parser.add_argument("--by", metavar="TEXT", help="who performs it; stored in the trial")


def _finish_flags(parser: CommandParser) -> None:
    told = "reason; stored in the trial; not needed if the plan ended it"
    parser.add_argument("--reason", metavar="TEXT", help=told)
    parser.add_argument("--by", metavar="TEXT", help="who performs it; stored in the trial")


def _unblind_flags(parser: CommandParser) -> None:
    parser.add_argument("--unit", required=True, metavar="TEXT", help="who it is")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="reason; stored in the trial")
    parser.add_argument(
        "--by", required=True, metavar="TEXT", help="the person who requests it; stored in the trial"
    )


def _amend_flags(parser: CommandParser) -> None:
    _record_flags(parser)
    _why_flags(parser)


def _why_flags(parser: CommandParser, required: bool = False) -> None:
    parser.add_argument("--reason", required=required, metavar="TEXT", help="reason; stored in the trial")
    parser.add_argument(
        "--by", required=required, metavar="TEXT", help="who performs it; stored in the trial"
    )


def _restore_flags(parser: CommandParser) -> None:
    _why_flags(parser, required=True)
    parser.add_argument("--head", metavar="DIGEST", help="of the last status of the lost file")
    parser.add_argument("--runs", type=int, help="how many files that continued from this copy are lost")


def _rekey_flags(parser: CommandParser) -> None:
    rekey_flags(parser)
    _why_flags(parser, required=True)


def _remove_arm_flags(parser: CommandParser) -> None:
    parser.add_argument("--arm", metavar="LABEL", help="the arm")
    parser.add_argument("--key", metavar="TEXT", help=_KEY)
    _why_flags(parser)


def _erase_flags(parser: CommandParser) -> None:
    parser.add_argument("--unit", metavar="TEXT", help="who it is")
    parser.add_argument("--key", metavar="TEXT", help=f"{_KEY}; it remains readable")
    _why_flags(parser)


_FLAGS = {
    "create": _create_flags,
    "assign": _assign_flags,
    "record": _record_flags,
    "amend": _amend_flags,
    "unblind": _unblind_flags,
    "remove-arm": _remove_arm_flags,
    "erase": _erase_flags,
    "restore": _restore_flags,
    "moved": lambda parser: _why_flags(parser, required=True),
    "verify": _verify_flags,
    "export": _export_flags,
    "pause": _reason_flags,
    "resume": _reason_flags,
    "finish": _finish_flags,
    "rekey": _rekey_flags,
    **operator_options.FLAGS,
    "token": token_flags,
    "serve": serve_flags,
    "export-trail": trail_flags,
    "verify-trail": verification_flags,
    "retention": retention_flags,
    "expire": expiry_flags,
    "migrate": migration_options.migration_flags,
    "amend-plan": plan_options.change_flags,
}


_OTHERS = {
    "token": token_of_trial,
    "serve": serve_trial,
    "export-trail": export_trail,
    "retention": retention,
    "expire": expire,
    "amend-plan": plan_options.amend_plan,
} | dict.fromkeys(operator_options.SAID, operator_options.act)
"""Actions that are defined in separate files."""


# Only these requests can come as lines of JSON, with these fields.
_FIELDS = {
    "assign": ("unit", "context", "key", "site"),
    "record": ("decision", "reward", "key"),
    "amend": ("decision", "reward", "key", "reason", "by"),
    "remove-arm": ("arm", "key", "reason", "by"),
    "erase": ("unit", "key", "reason", "by"),
}


_OPTIONAL = ("context", "site")


# The flags of these actions identify nobody, so their help need not explain how to keep names off the command
# line.
_NAMELESS = (
    *("create", "verify", "export", "token", "serve", "stock"),
    *("export-trail", "verify-trail", "retention", "expire"),
)
_MADE = "key"
"""The action that creates a key, for which no trial is needed."""


def _read_hidden(arguments: argparse.Namespace) -> None:
    """Replace values given as a dash with lines of standard input."""
    for name in _HIDDEN:
        if getattr(arguments, name, None) == _DASH:
            line = sys.stdin.readline()
            if not line.strip():
                problem = f"it is {_DASH}, but standard input has no line for it"
                raise ParameterError(f"--{name}", [problem])
            setattr(arguments, name, line.rstrip("\r\n"))


def _reward(text: str) -> float | str:
    return _LOST if text == _LOST else float(text)


_reward.__name__ = "reward"


def run_trial(arguments: argparse.Namespace) -> int:
    """Perform one action; return 1 for a finding in the file, 2 if one of several requests was refused."""
    if arguments.action == "create":
        _say(_status(_created(arguments)))
        return DONE
    if arguments.action == _MADE:
        _say(made_key(arguments))
        return DONE
    _read_hidden(arguments)
    if arguments.action == "migrate":
        return migration_options.migrated(arguments)
    try:
        if arguments.action == "verify" and arguments.chain:
            _say(checked_chain(arguments))
            return DONE
        return verify_trail(arguments) if arguments.action == "verify-trail" else _done(arguments)
    except JournalError as error:
        if arguments.action not in ("verify", "verify-trail"):
            raise
        tell(f"adaptinf trial {arguments.action}: {error}")
        return CONCERN


def _done(arguments: argparse.Namespace) -> int:
    from adaptinf.trial import Trial

    with _warned():
        trial = Trial.open(arguments.file, key_file=arguments.key_file, heads=arguments.heads)
    with trial:
        if arguments.action in _FIELDS:
            with _warned():
                return _answer(trial, arguments)
        if arguments.action == "unblind":
            _say(trial.unblind(arguments.unit, reason=arguments.reason, by=arguments.by).known())
            return DONE
        if arguments.action in _OTHERS:
            return _OTHERS[arguments.action](trial, arguments)
        if arguments.action == "audit-noise":
            return _audited(trial, arguments)
        if arguments.action in _LISTS:
            for row in _LISTS[arguments.action](trial):
                _say({name: value for name, value in row.items() if _is_known(value)})
            return DONE
        if arguments.action in ("pause", "resume", "finish"):
            getattr(trial, arguments.action)(arguments.reason, arguments.by)
        elif arguments.action == "restore":
            why = {"reason": arguments.reason, "by": arguments.by}
            trial.restore(**why, head=arguments.head, runs=arguments.runs)
        elif arguments.action == "rekey":
            trial.rekey(arguments.new_key_file, reason=arguments.reason, by=arguments.by)
        elif arguments.action == "moved":
            trial.moved(reason=arguments.reason, by=arguments.by)
        elif arguments.action == "verify":
            trial.verify(arguments.head)
        elif arguments.action == "backup":
            trial.backup(arguments.output)
        elif arguments.action == "export":
            log = trial.log(arguments.missing, amended=not arguments.as_told, erased=arguments.erased)
            log.to_parquet(arguments.output)
        _say(_status(trial))
    return DONE


def _is_known(value: Any) -> bool:
    """Whether a value is given and can be written as JSON."""
    return value is not None and (not isinstance(value, float) or isfinite(value))


_LISTS: Mapping[str, Callable[[Trial], Iterable[dict[Any, Any]]]] = {
    "history": lambda trial: map(asdict, trial.history()),
    "look": lambda trial: [asdict(trial.look())],
    "looks": lambda trial: trial.looks().to_dict("records"),
}
"""Actions that list rows, which are printed without missing values."""


def _audited(trial: Trial, arguments: argparse.Namespace) -> int:
    """One line for each kind of test, and one for all tests; the exit code is 1 if any test rejects."""
    from adaptinf.trial import Trial

    with ExitStack() as open_files:
        others = (Trial.open(path, key_file=arguments.key_file) for path in arguments.other)
        found = trial.audit_noise(list(map(open_files.enter_context, others)))
    for test in found.tests:
        chance = test.log_bound if isfinite(test.log_bound) else None
        _say({"test": test.kind, "tests": test.tests, "log_chance": chance, "finding": test.finding or None})
    told = {"trials": found.trials, "nodes": found.nodes, "findings": found.findings}
    _say({**told, "not_covered": found.not_covered})
    return CONCERN if found.findings else DONE


def _created(arguments: argparse.Namespace) -> Trial:
    from adaptinf.trial import Trial

    design: Any = design_of(arguments.design, arguments.parameters)
    if arguments.plan is not None:
        design = plan_of(design, arguments.arm, arguments.horizon, arguments.plan)
    with _warned():
        return Trial.create(
            arguments.file,
            design,
            arguments.arm,
            arguments.horizon,
            features=arguments.feature,
            dimension=arguments.dimension,
            per_arm=arguments.per_arm,
            reward_range=tuple(arguments.reward_range),
            outcome_window=arguments.outcome_window,
            in_time=arguments.in_time,
            key_file=arguments.key_file,
            blinded=arguments.blinded,
            heads=arguments.heads,
        )


@contextmanager
def _warned() -> Iterator[None]:
    """Print warnings as a command does, without a location in the code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AdaptinfWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        tell(f"adaptinf trial: {message}")


def _answer(trial: Trial, arguments: argparse.Namespace) -> int:
    """Answer one request from flags, or those on standard input; return 2 if any of the latter is refused."""
    names = _FIELDS[arguments.action]
    flags = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    if flags:
        _say(_one(trial, names, flags))
        return DONE
    code = DONE
    for line in sys.stdin:
        if not line.strip():
            continue
        try:
            answer = _one(trial, names, _request(line))
        except AdaptinfError as error:
            answer, code = {"error": str(error)}, REFUSED
        _say(answer)
    return code


def _request(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        # JSONDecodeError keeps the line, which may identify a participant; a new error does not show it.
        problem = f"it is not JSON: {error}"
    raise ParameterError("a line", [problem])


def _one(trial: Trial, names: tuple[str, ...], request: Any) -> dict[str, Any]:
    """The response to one request."""
    if not isinstance(request, dict) or not set(request) <= set(names):
        raise ParameterError(
            "a request", [f"it must be a JSON object with {', '.join(names)} and nothing else"]
        )
    missing = [name for name in names if name not in request and name not in _OPTIONAL]
    if missing:
        raise ParameterError("a request", [f"{name} is required" for name in missing])
    if "reward" not in names:
        return _of_participant(trial, names, request)
    decision, key = request["decision"], request["key"]
    reward = None if request["reward"] == _LOST else request["reward"]
    if "by" in names:
        return asdict(trial.amend(decision, reward, key=key, reason=request["reason"], by=request["by"]))
    return asdict(trial.record(decision, reward, key=key))


def _of_participant(trial: Trial, names: tuple[str, ...], request: Any) -> dict[str, Any]:
    """The response to a request about an arm or a participant."""
    if "context" in names:
        where = {"key": request["key"], "site": request.get("site")}
        return trial.assign(request["unit"], request.get("context"), **where).known()
    why = {name: request[name] for name in ("key", "reason", "by")}
    if "arm" in names:
        return {"left": list(trial.remove_arm(request["arm"], **why))}
    return {"decision": trial.erase(request["unit"], **why)}


def _status(trial: Trial) -> dict[str, Any]:
    return asdict(trial.status())


def _say(answer: Any) -> None:
    """One line of JSON, flushed immediately, because the reader may wait for it."""
    print(json.dumps(answer), flush=True)
