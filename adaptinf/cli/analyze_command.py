"""``adaptinf analyze`` and ``adaptinf report``: estimates from a log, as a table or a report."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adaptinf.cli.grammar import CONCERN, DONE, add_command, path_of, wrapped
from adaptinf.cli.options.asked_options import (
    Asked,
    add_alpha,
    add_method_options,
    add_target_options,
    argument_problems,
    further_columns,
)
from adaptinf.cli.options.flag_columns import SUMS
from adaptinf.cli.options.log_options import LOG_USAGE, add_log_options, log_options
from adaptinf.cli.options.output_options import (
    add_output_options,
    confirm,
    form_of,
    json_text,
    page_problems,
    place_problems,
    put,
    say,
)
from adaptinf.errors import AdaptinfError, ParameterError
from adaptinf.texts import csv_text, several

if TYPE_CHECKING:
    from adaptinf.cli.opened_data import OpenedData
    from adaptinf.inference.results.fit_results import Results
    from adaptinf.log import AdaptiveLog, PublicLog
    from adaptinf.sums import Sums

_SHOWN = 12
_VISITS = "visits.csv --action page --reward bought --propensity p"


def add_analyze(commands: Any, short: str) -> None:
    """Add ``adaptinf analyze``."""
    parser = add_command(
        commands,
        "analyze",
        analyze,
        short=short,
        opening="Estimate the mean of every arm; with --treatment and --control, the difference between two "
        "arms; with --by as well, that difference within groups; with --control alone, all arms "
        "against one.",
        examples=(
            f"adaptinf analyze {_VISITS}",
            f"adaptinf analyze {_VISITS} \\",
            "    --treatment B --control A --output effect.csv",
            "adaptinf analyze trial.parquet --by region --format json",
            "gzip -dc visits.csv.gz | adaptinf analyze - --action page --reward bought",
        ),
        usage=LOG_USAGE,
    )
    add_log_options(parser)
    what = add_target_options(parser)
    add_method_options(what)
    add_alpha(what)
    output = add_output_options(parser, strict="if the log contradicts its own statements")
    output.add_argument(
        "--explain", action="store_true", help="also print everything on which the table is based"
    )
    output.add_argument(
        "--report", metavar="FILE", type=path_of, help="also write a report, as one .html file"
    )


def add_report(commands: Any, short: str) -> None:
    """Add ``adaptinf report``."""
    parser = add_command(
        commands,
        "report",
        report,
        short=short,
        opening="Write a report on a log as one HTML file: a sentence and a picture of what was found, "
        "whether the log is sound, what is assumed, and the methods.",
        examples=(
            f"adaptinf report {_VISITS} \\",
            "    --output report.html",
            "adaptinf report trial.parquet --treatment B --control A --brief \\",
            "    --output page.html",
        ),
        usage="FILE... --output FILE [options]",
    )
    add_log_options(parser)
    what = add_target_options(parser)
    add_method_options(what)
    add_alpha(what)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output", metavar="FILE", type=path_of, required=True, help="name of the .html file"
    )
    output.add_argument("--title", metavar="TEXT", help="heading of the page")
    output.add_argument("--brief", action="store_true", help="only what fits on one printed page")
    output.add_argument(
        "--checklist",
        action="append",
        choices=("consort", "ich-e20"),
        help="add the items of a guideline, with the answers that the log contains; may be repeated",
    )
    output.add_argument("--adjust", choices=("max-t", "holm", "bh"), help="adjust for the number of terms")


def _checked_data(
    arguments: argparse.Namespace, problems: Sequence[str], sources: Sequence[Path]
) -> OpenedData:
    """The data; a single error lists all problems with arguments and files."""
    from adaptinf.cli.opened_data import opened

    options = log_options(arguments)
    further_columns(arguments, options, SUMS)
    if any(problem.startswith("epsilon") for problem in problems):
        del options["epsilon"]
    try:
        found = opened(sources, options)
    except (AdaptinfError, OSError) as error:
        if problems:
            listed = getattr(error, "problems", [error])
            raise ParameterError("arguments and file", [*problems, *map(str, listed)]) from error
        raise
    if problems:
        raise ParameterError("arguments", problems)
    arguments.stored = found.stored
    return found


def analyze(arguments: argparse.Namespace) -> int:
    """Fit, and print or write the table."""
    from adaptinf.cli.opened_data import cautions_of, sources_of

    sources = sources_of(arguments)
    problems = argument_problems(arguments) + place_problems(arguments, sources)
    problems += page_problems("--report", arguments.report, arguments.output, sources)
    if arguments.explain and form_of(arguments) not in ("text", "json"):
        problems.append("--explain applies only to --format text; json contains every claim")
    found = _checked_data(arguments, problems, sources)
    log, form = found.data, form_of(arguments)
    results = with_unused(_fitted(Asked.of(arguments), log), found.unused)
    cautions = [] if results.private else cautions_of(log)
    if form == "text":
        explained = [str(results.explain(arguments.alpha))] if arguments.explain else []
        text = "\n\n".join([*_answer(results, arguments.alpha, cautions), *explained])
    else:  # Tables for other programs contain nothing else; notes and cautions are printed on standard error.
        text = rendered(results, arguments.alpha, form)
        say(arguments, cautions)
    if arguments.report is not None:
        from adaptinf.reports import report as write_report

        common = {"alpha": arguments.alpha, "call": arguments.call, "source": _files(sources)}
        write_report(results, arguments.report, log=log, **common)
        confirm(arguments, arguments.report, "a report")
    put(arguments, text, getattr(log, "owner_only", False))
    return CONCERN if arguments.strict and cautions else DONE


def _answer(results: Results, alpha: float, cautions: Sequence[str]) -> list[str]:
    """Cautions that are not in the table, the findings in a sentence, and the table."""
    table = rendered(results, alpha, "text")
    below = " ".join(table.split()).lower()
    others = [wrapped(one) for one in cautions if one.partition(": ")[2].lower() not in below]
    first = ["\n".join(others)] if others else []
    return [*first, wrapped(results.sentence(alpha=alpha), indent=""), table]


def report(arguments: argparse.Namespace) -> int:
    """Write the page."""
    from adaptinf.cli.opened_data import sources_of
    from adaptinf.reports import report as write_report

    sources = sources_of(arguments)
    problems = argument_problems(arguments)
    problems += page_problems("--output", arguments.output, None, sources)
    found = _checked_data(arguments, problems, sources)
    asked = Asked.of(arguments)
    common = {"alpha": arguments.alpha, "title": arguments.title, "call": arguments.call}
    common |= {"source": _files(sources), "brief": arguments.brief, "checklist": arguments.checklist}
    if arguments.adjust is not None:
        common["adjust"] = arguments.adjust
    if not asked.nothing:
        results = with_unused(_fitted(asked, found.data), found.unused)
        write_report(results, arguments.output, log=found.data, **common)
    else:
        write_report(found.data, arguments.output, **common)
    confirm(arguments, arguments.output, "a report")
    return DONE


def _fitted(asked: Asked, data: AdaptiveLog | Sums | PublicLog) -> Results:
    """Results for the request; for a public part, the table that follows from its releases."""
    from adaptinf.log import PublicLog

    if not (isinstance(data, PublicLog) and asked.nothing):
        return asked.fit(data)
    from adaptinf.reports.public_sections import answer_of

    determined, _ = answer_of(data)
    return asked.fit(data) if determined is None else determined


def _files(sources: Sequence[Path]) -> list[Path] | None:
    """The files that were read, if they can be read again, unlike streams and folders."""
    return list(sources) if all(source.is_file() for source in sources) else None


def with_unused(results: Results, unused: Sequence[str]) -> Results:
    """Results with a note on unused columns of the file."""
    from adaptinf.claims.logs.readings import UNUSED_COLUMNS

    if not unused:
        return results
    return replace(results, notes=(*results.notes, UNUSED_COLUMNS(names=several(unused, _SHOWN))))


def rendered(results: Results, alpha: float, form: str) -> str:
    """Results in one of the output forms."""
    if form == "csv":
        return csv_text(results.to_frame(alpha)).rstrip("\n")
    if form == "json":
        return json_text(_record(results, alpha))
    summary = results.summary(alpha)
    summary.lines = (*summary.lines[:-1], ("More", "the same command with --explain"))
    return str(getattr(summary, f"as_{form}")())


def _record(results: Results, alpha: float) -> dict[str, Any]:
    facts, correction = results.facts, results.correction
    return {
        "model": results.model,
        "estimator": results.estimator,
        "weights": results.weights,
        "test": results.reference.name,
        "exact": results.reference.exact,
        "null": results.null,
        "alpha": alpha,
        "n_rounds": facts.n_rounds,
        "design": facts.design,
        "guarantee": None if facts.guarantee is None else facts.guarantee.to_dict(),
        "guarantee_stated": facts.stated,
        "covered": facts.guarantee is not None and results.private,
        "noise": facts.noise,
        "correction": None
        if correction is None
        else {"epsilon": correction.epsilon, "n": correction.n, "chosen_from": correction.chosen_from},
        "sentence": results.sentence(alpha=alpha),
        "results": results.to_frame(alpha).to_dict("records"),
        "claims": results.explain(alpha).to_frame().to_dict("records"),
    }
