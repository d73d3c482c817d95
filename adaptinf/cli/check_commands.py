"""``adaptinf validate``, ``diagnose`` and ``recommend``: checks of a log, and valid methods for it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from adaptinf.cli.grammar import CONCERN, DONE, add_command, wrapped
from adaptinf.cli.options.asked_options import (
    Asked,
    add_alpha,
    add_target_options,
    further_columns,
    label,
)
from adaptinf.cli.options.flag_columns import SUMS
from adaptinf.cli.options.log_options import LOG_USAGE, add_log_options, log_options, shares
from adaptinf.cli.options.output_options import (
    add_output_options,
    form_of,
    place_problems,
    put,
    table_text,
)
from adaptinf.texts import visible

if TYPE_CHECKING:
    from adaptinf.cli.opened_data import OpenedData
    from adaptinf.inference.recommend import Recommendation
    from adaptinf.inference.results.summary import ResultSummary

_VISITS = "visits.csv --action page --reward bought --propensity p"


def add_validate(commands: Any, short: str) -> None:
    """Add ``adaptinf validate``."""
    parser = add_command(
        commands,
        "validate",
        validate,
        short=short,
        opening="Check a log of an adaptive experiment, and list all problems found.",
        examples=(
            "adaptinf validate visits.csv --action page --reward bought",
            "adaptinf validate visits.csv --action page --reward bought --strict",
            "adaptinf validate trial.parquet",
        ),
        usage=LOG_USAGE,
    )
    add_log_options(parser)
    add_output_options(parser, strict="if the log contradicts its own statements")


def add_diagnose(commands: Any, short: str) -> None:
    """Add ``adaptinf diagnose``."""
    parser = add_command(
        commands,
        "diagnose",
        diagnose,
        short=short,
        opening="Test the assumptions of an analysis: whether arms were assigned with the logged "
        "propensities, whether rewards drift, and whether a few rounds dominate the estimates.",
        examples=(
            f"adaptinf diagnose {_VISITS}",
            "adaptinf diagnose visits.csv --action page --reward bought \\",
            "    --expected A=0.5,B=0.5 --strict",
        ),
        usage=LOG_USAGE,
    )
    add_log_options(parser)
    tests = parser.add_argument_group("tests")
    tests.add_argument(
        "--expected",
        type=shares,
        metavar="ARM=NUMBER[,...]",
        help="intended share of the rounds for each arm, for a fixed allocation",
    )
    tests.add_argument(
        "--negative-control",
        action="append",
        metavar="COLUMN",
        help="context that arms cannot have affected; may be repeated",
    )
    add_alpha(tests, "level of all tests combined (0.05)")
    add_output_options(parser, strict="if a check finds evidence against the log, or a caution")


def add_recommend(commands: Any, short: str) -> None:
    """Add ``adaptinf recommend``."""
    parser = add_command(
        commands,
        "recommend",
        recommend,
        short=short,
        opening="List the methods that are valid for a log, in order of preference, with reasons: for the "
        "means of all arms, or for the estimand selected by the same options as in adaptinf analyze.",
        examples=(
            f"adaptinf recommend {_VISITS}",
            f"adaptinf recommend {_VISITS} \\",
            "    --treatment B --control A --format csv",
        ),
        usage=LOG_USAGE,
    )
    add_log_options(parser)
    add_target_options(parser)
    output = add_output_options(parser, strict="if no method is valid")
    output.add_argument("--explain", action="store_true", help="also print why each method is valid or not")


def _data(arguments: argparse.Namespace, asked: bool = False) -> OpenedData:
    from adaptinf.cli.opened_data import opened, sources_of
    from adaptinf.parameters import refuse

    sources = sources_of(arguments)
    refuse("arguments", place_problems(arguments, sources))
    options = log_options(arguments)
    if asked:
        further_columns(arguments, options, SUMS)
    found = opened(sources, options)
    arguments.stored = found.stored
    return found


def validate(arguments: argparse.Namespace) -> int:
    """State whether files form a valid log, evidence against its statements, and its contents."""
    from adaptinf.cli.opened_data import cautions_of

    found = _data(arguments)
    log, name = found.log, visible(found.name)
    cautions = cautions_of(log)
    but = f"{name} has the form of a {found.kind}, but:"
    opening = but if cautions else f"{name} is a valid {found.kind}."
    form, table = form_of(arguments), _arms(log)
    if form == "text":
        text = "\n".join([opening, *map(wrapped, cautions), "", *_told(log)])
    else:
        facts = {"file": found.name, "kind": found.kind, "cautions": cautions, "facts": _facts(log)}
        text = table_text(form, lambda: _summary(log, opening, cautions), table, facts, "arms")
    put(arguments, text, log.owner_only)
    return CONCERN if arguments.strict and cautions else DONE


def _told(log: Any) -> list[str]:
    """The contents of a log in 80 columns: first the arms, then its statements, then how it was read."""
    from adaptinf.inference.results.tables import plain_table, stacked
    from adaptinf.reports.collection_facts import arm_rows
    from adaptinf.texts import visible_lines

    headers, rows = arm_rows(log)
    table = stacked([plain_table(rows, headers, "l" + "r" * (len(headers) - 1))])
    read = visible_lines(log.report.lines).splitlines() if hasattr(log, "report") else []
    facts = [*repr(log).splitlines(), *read]
    return [*table, "", *map(wrapped, facts)]


def _arms(log: Any) -> Any:
    from adaptinf.reports.collection_facts import arms_seen, arms_summed
    from adaptinf.sums import Sums

    return arms_summed(log) if isinstance(log, Sums) else arms_seen(log)


def _facts(log: Any) -> dict[str, str]:
    from adaptinf.reports.collection_facts import log_facts

    return dict(log_facts(log))


def _summary(log: Any, opening: str, cautions: list[str]) -> ResultSummary:
    from adaptinf.inference.results.summary import ResultSummary
    from adaptinf.inference.results.tables import plain_table
    from adaptinf.reports.collection_facts import arm_rows

    headers, rows = arm_rows(log)
    facts = plain_table([[name, said] for name, said in _facts(log).items()], None, "ll")
    arms = plain_table(rows, ["", *headers[1:]], "l" + "r" * (len(headers) - 1))
    return ResultSummary(opening, [facts, arms], cautions)


def diagnose(arguments: argparse.Namespace) -> int:
    """Print or write the table of checks."""
    from adaptinf.inference.diagnostics import diagnose as checked

    log = _data(arguments).log
    expected = arguments.expected
    if expected is not None:
        known = {str(arm): arm for arm in log.arms}
        expected = {label(arm, known): share for arm, share in expected.items()}
    controls = arguments.negative_control
    found = checked(log, expected=expected, negative_control=controls, alpha=arguments.alpha)
    facts = {"alpha": found.alpha, "concerns": len(found.concerns), "notes": list(found.notes)}
    text = table_text(form_of(arguments), found.summary, found.to_frame(), facts, "checks")
    put(arguments, text, log.owner_only)
    return CONCERN if arguments.strict and found.concerns else DONE


def recommend(arguments: argparse.Namespace) -> int:
    """Print or write the table of methods."""
    log = _data(arguments, asked=True).log
    found = Asked.of(arguments).methods(log)
    facts = {"target": found.target, "log": dict(found.facts)}
    text = table_text(form_of(arguments), lambda: _methods(found, arguments), found.frame, facts, "methods")
    put(arguments, text, log.owner_only)
    valid = any(method.verdict.valid for method in found.methods)
    return DONE if valid or not arguments.strict else CONCERN


def _methods(found: Recommendation, arguments: argparse.Namespace) -> ResultSummary:
    """The table of methods, with all reasons if these are requested."""
    if arguments.explain:
        return found.explain()
    summary = found.summary()
    summary.lines = (*summary.lines[:-1], ("More", "the same command with --explain"))
    return summary
