"""The command line: ``adaptinf demo``, ``validate``, ``analyze``, ``convert`` and ``trial``."""

from __future__ import annotations

import argparse
import io
import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adaptinf.cli.flag_columns import COLUMNS, HELP, SUMS
from adaptinf.cli.trial_commands import add_trial
from adaptinf.errors import AdaptinfError, ParameterError
from adaptinf.files import atomic_write
from adaptinf.texts import visible
from adaptinf.version import __version__

_LINE = "\n"
_HOLDER = "{arm}"
_FROM_BATCHES = "from batches"
_FORMATS = ("text", "markdown", "latex", "html", "csv", "json")
_ASKED = (
    *("treatment", "control", "by", "estimator", "weights"),
    *("received", "lift", "winner", "denominator", "covariate"),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what its encoding does not hold is shown as an escape
            stream.reconfigure(errors="backslashreplace")
    arguments = _parser().parse_args(argv)
    arguments.call = shlex.join(["adaptinf", *(sys.argv[1:] if argv is None else argv)])
    try:
        code: int = arguments.run(arguments)
        if sys.stdout is not None:  # as it is where it was closed
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (AdaptinfError, OSError) as error:
        print(f"adaptinf {arguments.command}: {visible(str(error), _LINE)}", file=sys.stderr)
        return 2
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="adaptinf",
        description="Valid inference for data that were gathered adaptively, with or without differential "
        "privacy.",
    )
    parser.add_argument("--version", action="version", version=f"adaptinf {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    _add_demo(commands)
    _add_validate(commands)
    _add_analyze(commands)
    _add_convert(commands)
    add_trial(commands, _path)
    return parser


def _add_demo(commands: Any) -> None:
    text = "Simulate two private adaptive trials on real outcomes and analyse them."
    parser = commands.add_parser("demo", help="two private adaptive trials, analysed", description=text)
    parser.add_argument("--rng", type=_seed, default=0, metavar="SEED", help="seed of the simulation (0)")
    parser.set_defaults(run=_demo)


def _add_validate(commands: Any) -> None:
    text = "Check a log of an adaptive experiment, and list all that is found wrong with it."
    parser = commands.add_parser("validate", help="check a log", description=text)
    _add_file(parser)
    parser.set_defaults(run=_validate)


def _add_analyze(commands: Any) -> None:
    text = (
        "Estimate the mean of every arm; the difference of two arms with --treatment and --control; that "
        "difference within groups with --by; all arms against one with --control alone."
    )
    parser = commands.add_parser("analyze", help="estimates from a log", description=text)
    _add_file(parser)
    what = parser.add_argument_group("what to estimate")
    what.add_argument("--treatment", metavar="ARM", help="minuend of a difference of two arms")
    what.add_argument("--control", metavar="ARM", help="subtrahend; without --treatment of all other arms")
    what.add_argument(
        "--lift", action="store_true", help="with --control: relative lifts in the place of differences"
    )
    what.add_argument("--denominator", metavar="COLUMN", help="of a ratio: revenue per order, say")
    what.add_argument("--covariate", action="append", metavar="COLUMN", help="context that explains rewards")
    what.add_argument("--by", action="append", metavar="COLUMN", help="context that makes the groups")
    what.add_argument(
        "--winner",
        action="store_true",
        help="the arm with the highest estimate, by an interval that knows of the choice; with --control the "
        "best of the others against that arm",
    )
    what.add_argument(
        "--estimator",
        metavar="NAME",
        help="sample-mean, ipw, aipw or alee, for a difference of two arms also batched; with --by "
        "difference-in-means, aipw or released. By default what suits the log",
    )
    what.add_argument("--weights", metavar="NAME", help="uniform, sqrt, two-point or combined: of ipw, aipw")
    what.add_argument(
        "--received",
        action="store_true",
        help="with --assigned: effect of receiving the treatment, by assignment as the instrument",
    )
    what.add_argument("--alpha", type=float, default=0.05, help="one minus the confidence level (0.05)")
    output = parser.add_argument_group("output")
    output.add_argument("--format", choices=_FORMATS, default="text", help="text unless said otherwise")
    output.add_argument("--output", metavar="FILE", type=_path, help="write there, not to standard output")
    output.add_argument("--report", metavar="FILE", type=_path, help="also write a report, as one .html file")
    parser.set_defaults(run=_analyze)


def _add_convert(commands: Any) -> None:
    text = (
        "Write a dsjson log, or a folder of the Open Bandit Dataset, as Parquet in batches: it may be larger "
        "than memory."
    )
    parser = commands.add_parser("convert", help="large logs of other formats to Parquet", description=text)
    parser.add_argument("file", metavar="INPUT", type=_path, help="dsjson file, folder of them, or campaign")
    parser.add_argument("output", metavar="OUTPUT", type=_path, help="name of the .parquet file")
    parser.add_argument("--action-id", metavar="NAME", help="feature that names an action (dsjson)")
    parser.add_argument(
        "--context", action="append", metavar="NAME", help="shared feature to keep; may be repeated (dsjson)"
    )
    parser.add_argument(
        "--affinities", action="store_true", help="keep user-item affinities too (Open Bandit Dataset)"
    )
    parser.set_defaults(run=_convert)


def _add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=_path, help="log as .csv or .parquet")
    columns = parser.add_argument_group(
        "columns", "A file that adaptinf wrote knows its columns; name none of them then."
    )
    for role in COLUMNS:
        columns.add_argument(f"--{role.replace('_', '-')}", metavar="COLUMN", help=HELP[role])
    for role in SUMS:
        columns.add_argument(f"--{role.replace('_', '-')}", metavar="COLUMN", help=HELP[role])
    columns.add_argument(
        "--propensities",
        action="append",
        type=_pairs,
        metavar="ARM=COLUMN[,...]",
        help="probability of each arm, chosen or not; or a pattern of the columns' names such as p_{arm}, or "
        "what they begin with (default: columns propensity_ARM); or 'from batches', within which those of "
        "the chosen arms stay",
    )
    columns.add_argument(
        "--success",
        type=_success,
        metavar="TEXT",
        help="what counts as 1 in a reward column of two texts; or TEXT=NUMBER[,...] for every text",
    )
    columns.add_argument(
        "--date-format", metavar="FORMAT", help="of dates in the round or batch column, such as %%d/%%m/%%Y"
    )
    columns.add_argument(
        "--sort",
        action="store_const",
        const=True,
        help="put the rows in the order of the round column, else of the batch column",
    )
    columns.add_argument(
        "--context", action="append", metavar="COLUMN", help="known before the choice; may be repeated"
    )
    columns.add_argument(
        "--reward-range", nargs=2, type=float, metavar=("LOW", "HIGH"), help="smallest and largest reward"
    )
    columns.add_argument(
        "--missing",
        choices=("drop", "worst", "best"),
        help="what a missing reward means: missing at random given the arm (and context), or anything in the "
        "reward range",
    )
    _add_statements(columns)
    columns.add_argument(
        "--epsilon",
        type=float,
        help="the actions were chosen with this pure differential privacy, unit one reward: sample means get "
        "corrected columns",
    )


def _add_statements(columns: Any) -> None:
    """What the user states of the collection."""
    columns.add_argument(
        "--adaptive",
        action=argparse.BooleanOptionalAction,
        help="whether assignment reacted to outcomes; --no-adaptive gives the classical analysis",
    )
    columns.add_argument(
        "--stopping",
        choices=("fixed", "data-chosen", "planned"),
        help="what decided the number of rounds: fixed beforehand, chosen by looking at outcomes, or by a "
        "planned rule",
    )


def _seed(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError(text)
    return value


def _path(text: str) -> Path:
    if "\0" in text:
        raise argparse.ArgumentTypeError("the name of a file cannot hold NUL")
    return Path(text)


def _success(text: str) -> str | dict[str, float]:
    """The text of a success, or numbers by text where there is a =."""
    if "=" not in text:
        return text
    pairs = [part.rpartition("=") for part in text.split(",")]
    if len({label for label, _, _ in pairs}) < len(pairs):
        raise ValueError(text)
    return {label: float(number) for label, _, number in pairs}


def _pairs(text: str) -> dict[str, str] | str:
    """Columns by arm; a text with one = is one pair, so that its names may hold commas; none is a pattern."""
    if "=" not in text:
        return text if _HOLDER in text or text == _FROM_BATCHES else text + _HOLDER
    parts = [text] if text.count("=") == 1 else text.split(",")
    pairs = dict(part.split("=", 1) for part in parts)
    if len(pairs) < len(parts):
        raise ValueError(text)
    return pairs


_pairs.__name__ = "ARM=COLUMN list"
_success.__name__ = "TEXT=NUMBER list"
_seed.__name__ = "seed"


def _demo(arguments: argparse.Namespace) -> int:
    from adaptinf.cli.demonstration import run_demo

    print(run_demo(rng=arguments.rng))
    return 0


def _validate(arguments: argparse.Namespace) -> int:
    from adaptinf.cli.commands import cautions_told, describe, describe_sums, holds_sums, open_log, open_sums

    options = _column_options(arguments)
    if holds_sums(arguments.file, options):
        sums, _ = open_sums(arguments.file, options)
        what, told, cautions = "table of sums", describe_sums(sums), cautions_told(sums)
    else:
        log, _ = open_log(arguments.file, options)
        what, told, cautions = "log", describe(log), cautions_told(log)
    name = visible(str(arguments.file))
    opening = f"{name} has the form of a {what}, but:" if cautions else f"{name} is a valid {what}."
    print("\n".join([opening, *cautions, told]))
    return 0


def _convert(arguments: argparse.Namespace) -> int:
    from adaptinf.formats import convert

    count = convert(
        arguments.file,
        arguments.output,
        action_id=arguments.action_id,
        context=arguments.context,
        affinities=arguments.affinities,
    )
    print(f"{count:,} rows written to {visible(str(arguments.output))}")
    return 0


def _analyze(arguments: argparse.Namespace) -> int:
    from adaptinf.cli.commands import (
        argument_problems,
        cautions_told,
        fit,
        further_options,
        holds_sums,
        open_log,
        open_sums,
        render,
        report_problems,
        with_unused,
    )
    from adaptinf.log.storage.log_files import output_problems

    options = _column_options(arguments)
    if options and arguments.by:
        role = "group" if any(name in options for name in SUMS) else "context"
        options[role] = list(dict.fromkeys([*options.get(role, []), *arguments.by]))
    if any(name in options for name in SUMS):
        options |= further_options(arguments.denominator, arguments.covariate)
    elif options and arguments.denominator not in (None, *options.get("context", ())):
        options["outcomes"] = [arguments.denominator]
    problems = argument_problems(
        arguments.alpha,
        arguments.epsilon,
        arguments.estimator,
        arguments.weights,
        grouped=bool(arguments.by),
        contrast=arguments.control is not None,
    )
    for written in (arguments.output, arguments.report):
        problems += output_problems(written, arguments.file)
    problems += report_problems(arguments.report, arguments.output)
    if any(problem.startswith("epsilon") for problem in problems):
        del options["epsilon"]
    try:
        opened = open_sums if holds_sums(arguments.file, options) else open_log
        log, unused = opened(arguments.file, options)
    except (AdaptinfError, OSError) as error:
        if problems:
            raise ParameterError("arguments and file", [*problems, *_problems_of(error)]) from error
        raise
    if problems:  # without adaptinf.parameters, which brings NumPy: help is to be quick
        raise ParameterError("arguments", problems)
    asked = {name: getattr(arguments, name) for name in _ASKED}
    results = with_unused(fit(log, **asked), unused)
    text = render(results, arguments.alpha, arguments.format)
    text = _with_cautions(text, arguments.format, [] if results.private else cautions_told(log))
    if arguments.report is not None:
        from adaptinf.reports import report

        report(results, arguments.report, log=log, alpha=arguments.alpha, call=arguments.call)
    if arguments.output is None:
        print(_ascii_json(text) if arguments.format == "json" and not _holds(text) else text)
    else:
        place = Path(arguments.output)
        atomic_write(place, lambda file: file.write(f"{text}\n".encode()), log.owner_only)
    return 0


def _with_cautions(text: str, form: str, cautions: Sequence[str]) -> str:
    """A text that begins with cautions; a table for another program has them on standard error."""
    if form == "text":
        return "\n".join([*cautions, text])
    for caution in cautions:
        print(f"adaptinf analyze: {visible(caution, _LINE)}", file=sys.stderr)
    return text


def _holds(text: str) -> bool:
    """Whether the encoding of standard output holds a text."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _ascii_json(text: str) -> str:
    """JSON in which other characters stand as JSON's own escapes, which Python's are not."""
    return "".join(char if char.isascii() else json.dumps(char)[1:-1] for char in text)


def _problems_of(error: Exception) -> list[str]:
    """What an error lists, one sentence per problem."""
    return list(map(str, getattr(error, "problems", [error])))


def _column_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Arguments of `AdaptiveLog` that were given."""
    plain = (*COLUMNS, *SUMS, "context", "epsilon", "success", "date_format", "sort", "missing")
    named = {name: getattr(arguments, name) for name in (*plain, "adaptive", "stopping")}
    options = {name: value for name, value in named.items() if value is not None}
    if arguments.reward_range is not None:
        options["reward_range"] = tuple(arguments.reward_range)
    if arguments.propensities is not None:
        options["propensities"] = _merged(arguments.propensities)
    return options


def _merged(given: Sequence[dict[str, str] | str]) -> dict[str, str] | str:
    merged: dict[str, str] = {}
    for pairs in given:
        if isinstance(pairs, str):
            if len(given) > 1:
                raise ParameterError(
                    "--propensities", [f"the pattern {pairs!r} names all columns: give it alone"]
                )
            return pairs
        repeated = [arm for arm in pairs if arm in merged]
        if repeated:
            raise ParameterError("--propensities", [f"arm {arm!r} is given twice" for arm in repeated])
        merged |= pairs
    return merged


if __name__ == "__main__":
    sys.exit(main())
