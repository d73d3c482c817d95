"""What the command line does with a log, or with a table of sums: open, describe, fit, render."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow.parquet as pq

from adaptinf.claims.logs.readings import UNUSED_COLUMNS
from adaptinf.claims.tables import CAUTION
from adaptinf.cli.flag_columns import SUMS
from adaptinf.errors import ParameterError
from adaptinf.files import same_file
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import AdaptiveLog, read_log
from adaptinf.log.log_reading import dialect_from, named_log, open_source, uses_of
from adaptinf.log.storage.parquet import StoredPublic
from adaptinf.log.storage.stored import RestoredLog
from adaptinf.log.storage.tables import TableSource
from adaptinf.log.validation import OF_TABLES, nested_options
from adaptinf.parameters import OneOf, refuse
from adaptinf.reports.collection_facts import arms_seen, arms_summed
from adaptinf.sums import Sums
from adaptinf.sums.storage import KEY
from adaptinf.texts import frame_text, several, spreadsheet_cell, visible, with_texts

if TYPE_CHECKING:
    from adaptinf.inference.results.fit_results import Results


_ROLES = ("batch", "propensity", *SUMS, "denominator", "covariate")
_SUMS_NEEDED = ("action", "batch", "n", "sum", "sum_squares")
_OTHERS = ("reward_range", "context", "date_format", "group", "adaptive", "stopping")


def holds_sums(path: Path, options: Mapping[str, Any]) -> bool:
    """Whether a file is of sums: columns of sums are named, or adaptinf wrote them."""
    if any(name in options for name in SUMS):
        return True
    if options or path.suffix.lower() not in (".parquet", ".pq") or not path.is_file():
        return False
    try:
        return KEY in (pq.read_schema(path).metadata or {})
    except (OSError, ValueError):  # whoever reads the file says what is wrong with it
        return False


def open_sums(path: Path, options: Mapping[str, Any]) -> tuple[Sums, list[str]]:
    """Sums from a file, with options as they come from the command line, and columns that were not used."""
    if not options:
        return Sums.read_parquet(path), []
    dialect, options = dialect_from(str(path), options)
    known = {"action", "epsilon", *_ROLES, *_OTHERS}
    problems = [f"{_flag(name)} is needed beside --n" for name in _SUMS_NEEDED if name not in options]
    problems += [
        f"{_flag(name)} is of rows, and --n names a table of sums" for name in options if name not in known
    ]
    refuse(str(path), problems)
    content = open_source(path, dialect, options, _flag)
    if not isinstance(content, TableSource):
        raise ParameterError(str(path), ["it is a log that adaptinf wrote"])
    arguments = {name: options[name] for name in (*_ROLES, *_OTHERS) if name in options}
    if "epsilon" in options:
        arguments["guarantee"] = PrivacyGuarantee(epsilon=options["epsilon"], unit="reward")
    named = [
        options["action"],
        *arguments.get("group", ()),
        *(arguments[role] for role in _ROLES if role in arguments),
    ]
    sums = Sums(content, arm=options["action"], **nested_options(arguments, OF_TABLES))
    return sums, [str(name) for name in content.columns if name not in named]


def further_options(denominator: str | None, covariates: Sequence[str] | None) -> dict[str, str]:
    """Columns of sums of a denominator and of a covariate, as far as they are asked for."""
    several = "a table of sums takes one: several are had from rows, or from sums that adaptinf made"
    refuse("--covariate", [several] if covariates and len(covariates) > 1 else [])
    named = {"denominator": denominator, "covariate": covariates[0] if covariates else None}
    return {role: name for role, name in named.items() if name is not None}


def describe_sums(sums: Sums) -> str:
    """Arms, design and guarantee, and what was seen of each arm."""
    table = arms_summed(sums)
    return f"{sums!r}\n{frame_text(table, na_rep='-', float_format='{:.4g}'.format)}"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


_NEEDED = ("action", "reward")
_SHOWN = 12
_PUBLIC = (
    "it is the public part of a log, without rows: ArmMeans, Contrast, CATE, BinMeans and report take "
    "read_log(path) in Python"
)
_UNSEEN = re.compile("[\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def open_log(path: Path, options: Mapping[str, Any]) -> tuple[AdaptiveLog, list[str]]:
    """Log from a file, with options as they come from the command line."""
    dialect, options = dialect_from(str(path), options)
    content = open_source(path, dialect, options, _flag)
    if isinstance(content, RestoredLog):
        return read_log(path), []
    if isinstance(content, StoredPublic):
        raise ParameterError(str(path), [_PUBLIC])
    missing = [
        f"--{name} is needed, the name of its column (the file has {', '.join(map(repr, content.columns))})"
        for name in _NEEDED
        if name not in options
    ]
    refuse(content.name, missing)
    arguments = dict(options)
    if "epsilon" in arguments:
        arguments["guarantee"] = PrivacyGuarantee(epsilon=arguments.pop("epsilon"), unit="reward")
    if isinstance(named := arguments.get("propensities"), dict):
        frame, _ = content.typed(uses_of(arguments, content.columns))
        known = _labels(frame, arguments.get("assigned", arguments["action"]))
        arguments["propensities"] = {_label(arm, known): column for arm, column in named.items()}
    log = named_log(content, arguments)
    return log, [str(name) for name in content.columns if name not in log.columns]


def argument_problems(
    alpha: float,
    epsilon: float | None,
    estimator: str | None,
    weights: str | None,
    *,
    grouped: bool,
    contrast: bool,
) -> list[str]:
    """What is wrong with arguments whatever the file holds."""
    from adaptinf.inference.arms.choice import CONTRAST_ESTIMATORS, ESTIMATORS
    from adaptinf.inference.arms.weighted import WEIGHTS
    from adaptinf.parameters import alpha_problems

    problems = alpha_problems(alpha)
    if epsilon is not None:
        try:
            PrivacyGuarantee(epsilon=epsilon, unit="reward")
        except ParameterError as error:
            problems += error.problems
    known = CONTRAST_ESTIMATORS if contrast else ESTIMATORS
    if grouped:
        known = ("difference-in-means", "aipw", "released")
    if estimator is not None:
        problems += OneOf(*known)("estimator", estimator)
    if weights is not None:
        problems += OneOf(*WEIGHTS)("weights", weights)
    return problems


def report_problems(report: Path | None, output: Path | None) -> list[str]:
    """What is wrong with the file that a report is to go to."""
    if report is None:
        return []
    problems = [] if report.suffix.lower() in (".html", ".htm") else [f"--report {report} must end in .html"]
    if output is not None and same_file(report, output):
        problems.append(f"--report and --output are both {report}: name two files")
    return problems


def with_unused(results: Results, unused: Sequence[str]) -> Results:
    """Results with a note on the columns of the file that were not used."""
    if not unused:
        return results
    return replace(results, notes=(*results.notes, UNUSED_COLUMNS(names=several(unused, _SHOWN))))


def cautions_told(log: AdaptiveLog | Sums) -> list[str]:
    """What speaks against what a log states of itself, a line each."""
    from adaptinf.reports.collection_facts import log_cautions

    return [visible(CAUTION(caution=one)) for one in log_cautions(log)]


def describe(log: AdaptiveLog) -> str:
    """Arms, design and guarantee of a log, and what was seen of each arm."""
    table = arms_seen(log)
    return f"{log!r}\n{log.report}\n{frame_text(table, na_rep='-', float_format='{:.4g}'.format)}"


def fit(
    log: Any,
    *,
    treatment: str | None = None,
    control: str | None = None,
    by: Sequence[str] | None = None,
    estimator: str | None = None,
    weights: str | None = None,
    received: bool = False,
    lift: bool = False,
    winner: bool = False,
    denominator: str | None = None,
    covariate: Sequence[str] | None = None,
) -> Results:
    """Results of the model that the arguments ask for."""
    known = {str(arm): arm for arm in log.arms}
    first = None if treatment is None else _label(treatment, known)
    second = None if control is None else _label(control, known)
    chosen: dict[str, Any] = {"weights": weights}
    if estimator is not None:
        chosen["estimator"] = estimator
    if received and (by or first is None or second is None):
        raise ParameterError("--received", ["it needs --treatment and --control, without --by"])
    if lift and (by or second is None or received):
        raise ParameterError("--lift", ["it needs --control, without --by and --received"])
    if denominator is not None and (by or winner or received):
        raise ParameterError("--denominator", ["it is taken without --by, --winner and --received"])
    if covariate and (by or winner or received):
        raise ParameterError("--covariate", ["it is taken without --by, --winner and --received"])
    below: dict[str, Any] = {} if denominator is None else {"denominator": denominator}
    if covariate:
        chosen["covariate"] = covariate
    if winner:
        from adaptinf.inference.winners.winner import Winner

        if by or received or lift or first is not None:
            raise ParameterError("--winner", ["it stands alone, or with --control"])
        return Winner(log, control=second).fit(**chosen)
    if by:
        from adaptinf.inference.effects.cate import CATE

        return CATE(log, by=by, treatment=first, control=second).fit(**chosen)

    from adaptinf.inference.arms import ArmMeans, Contrast

    if first is None and second is None:
        return ArmMeans(log, **below).fit(**chosen)
    if second is not None and (first is None or lift):
        from adaptinf.inference.contrasts import Contrasts

        others = None if first is None else [first]
        return Contrasts(log, control=second, treatments=others, **below).fit(**chosen, lift=lift)
    if first is None or second is None:
        arms = ", ".join(map(repr, log.arms))
        raise ParameterError("a difference of arms", [f"give --treatment and --control; the log has {arms}"])
    estimand = "received" if received else "assigned"
    return Contrast(log, treatment=first, control=second, **below).fit(**chosen, estimand=estimand)


def render(results: Results, alpha: float, form: str) -> str:
    """Results in one of the output formats."""
    if form == "csv":
        frame = with_texts(results.to_frame(alpha), spreadsheet_cell)
        return str(frame.to_csv(index=False, lineterminator="\n")).rstrip("\n")
    if form == "json":
        text = json.dumps(_finite(_record(results, alpha)), allow_nan=False, ensure_ascii=False, indent=2)
        return _UNSEEN.sub(lambda char: f"\\u{ord(char[0]):04x}", text)
    summary = results.summary(alpha)
    forms = {
        "text": summary.as_text,
        "markdown": summary.as_markdown,
        "latex": summary.as_latex,
        "html": summary.as_html,
    }
    return forms[form]()


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
        "results": results.to_frame(alpha).to_dict("records"),
        "notes": list(results.summary(alpha).notes),
    }


def _finite(value: Any) -> Any:
    """The same without NaN and infinities, which JSON does not have."""
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _labels(frame: pd.DataFrame, action: str) -> dict[str, Any]:
    """Arms that a column holds, by their text; none where there is no such column, or several."""
    if list(frame.columns).count(action) != 1:
        return {}
    return {str(label): label for label in frame[action].unique().tolist()}


def _label(text: str, known: Mapping[str, Any]) -> Any:
    """Arm that a text means: a known one, else a number where all known ones are; 01 is no 1."""
    kinds = set(map(type, known.values()))
    if text not in known and len(kinds) == 1 and kinds <= {int, float}:
        kind = kinds.pop()
        try:
            number = kind(text)
        except ValueError:
            return text
        return number if kind is float or str(number) == text else text
    return known.get(text, text)
