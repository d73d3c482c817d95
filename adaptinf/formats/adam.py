"""Trials as CDISC ADaM data sets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
import pandas as pd

from adaptinf.claims.logs import readings as claims
from adaptinf.errors import AdaptinfWarning, ParameterError
from adaptinf.files import as_path
from adaptinf.formats.transport import column_of, labels_of, log_of, names_problems, read_table
from adaptinf.formats.typed_csv import as_written, merged_problems, mixed_problems
from adaptinf.log import AdaptiveLog
from adaptinf.log.report import Reading
from adaptinf.log.validation import nested_options
from adaptinf.log.validation.frame_columns import Column, Findings, as_float, blank_rows, label_key
from adaptinf.log.validation.row_order import ISO_EXAMPLES, read_times
from adaptinf.parameters import refuse
from adaptinf.typing import BoolArray

SUBJECT = "USUBJID"
_SHOWN = 5
_FLAGS = ("Y", "N", "")


def name_problems(adsl: str, subjects: pd.DataFrame, analysis: str, outcomes: pd.DataFrame) -> list[str]:
    """Invalid subject identifiers, those that differ only in blanks, and those missing from ADSL."""
    known, problems = _names(adsl, subjects)
    found, more = _names(analysis, outcomes)
    problems += more
    strangers = [label for label in found if label_key(label) not in set(map(label_key, known))]
    if strangers:
        problems.append(f"{adsl} lacks subjects that {analysis} contains: {examples(strangers)}")
    spelled: dict[str, Any] = {}
    for label in [*known, *found]:
        other = spelled.setdefault(str(label).strip(), label)
        if label_key(other) != label_key(label) and label not in strangers:
            problems.append(f"{adsl}: the subjects {other!r} and {label!r} differ only in spaces or type")
    return problems


def _names(what: str, frame: pd.DataFrame) -> tuple[list[Any], list[str]]:
    labels = labels_of(frame, SUBJECT)
    wrong = labels.missing | labels.bad | blank_rows(labels)
    problems = [f"{what}: {SUBJECT} is empty in row {np.flatnonzero(wrong)[0]}"] if wrong.any() else []
    return labels.values, problems


def flag_problems(adsl: str, subjects: pd.DataFrame, population: str) -> list[str]:
    """Flags that are neither Y, N nor missing, so their meaning is unknown."""
    odd = [flag for flag in subjects[population].tolist() if not _is_flag(flag)]
    listed = ", ".join(dict.fromkeys(f"{flag!r:.40}" for flag in odd[:_SHOWN]))
    return [f"{adsl}: the flag {population} must be Y, N or empty, but is {listed}"] if odd else []


def _is_flag(flag: Any) -> bool:
    missing = flag is None or flag is pd.NA or (isinstance(flag, float) and np.isnan(flag))
    return missing or (isinstance(flag, str) and flag in _FLAGS)


def chosen_records(records: pd.DataFrame, wanted: Mapping[str, Any]) -> pd.DataFrame:
    """Records whose columns have exactly the required values."""
    keep = np.ones(len(records), dtype=np.bool_)
    for column, value in wanted.items():
        keep &= np.array([_is(entry, value) for entry in records[column].tolist()], dtype=np.bool_)
    return records[keep]


def _is(entry: Any, value: Any) -> bool:
    if isinstance(entry, bool) != isinstance(value, bool):
        return False
    try:
        return bool(entry == value)
    except (TypeError, ValueError):  # Arrays and missing values have no single truth value.
        return False


def order_values(adsl: str, subjects: pd.DataFrame, keys: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Columns by which subjects are sorted (text dates as times), and columns without a clear order."""
    values, problems = {}, []
    for key in keys:
        column, bad = _ordered(column_of(subjects, key))
        values[key] = pd.Series(column.values, index=subjects.index).mask(column.missing)
        if bad.any():
            first = subjects[key].iloc[np.flatnonzero(bad)[0]]
            problems.append(
                f"{adsl}: {key}, by which subjects are sorted, must contain numbers, times or ISO dates "
                f"such as {ISO_EXAMPLES}, but has {first!r:.40}; as text, 10 sorts before 9"
            )
    return pd.DataFrame(values, index=subjects.index), problems


def _ordered(column: Column) -> tuple[Column, BoolArray]:
    """A column as numbers or times, and the rows in which it is neither."""
    kind = column.values.dtype.kind
    if kind == "O":
        rows = list(zip(column.values, column.missing, strict=True))
        if all(missing or isinstance(value, int | float | np.number) for value, missing in rows):
            bad = np.array([not missing and _no_number(value) for value, missing in rows], dtype=np.bool_)
            values = np.array(
                [
                    math.nan if odd else float(value)
                    for odd, value in zip(bad | column.missing, column.values, strict=True)
                ]
            )
            return Column(values, column.missing, column.dtype), bad
        return read_times(column)
    if kind in "iuf":
        values, inexact = as_float(column.values)
        return column, (inexact | np.isinf(values)) & ~column.missing
    return column, np.full(len(column.values), kind != "M") & ~column.missing


def _no_number(value: Any) -> bool:
    """Whether a value has no exact float, as booleans, time spans and numbers that a float rounds."""
    odd = isinstance(value, bool | np.bool_ | np.timedelta64 | complex | np.complexfloating)
    # Half-precision floats cannot represent 2**53, so they are widened before the comparison.
    size = float(value) if isinstance(value, np.floating) else value
    return odd or abs(size) > 2**53 or float(value) != value


def check_subjects(
    source: str, subjects: pd.DataFrame, outcomes: pd.DataFrame, order: pd.DataFrame, treatment: str
) -> None:
    """Raise a single error that lists every subject without a treatment, an outcome, or a unique place."""
    findings = Findings()
    names, keys = subjects[SUBJECT], ", ".join(map(str, order))
    repeated = names.duplicated(keep=False).to_numpy()
    findings.add_rows("repeated-subject", "ADSL contains a subject more than once", repeated)
    labels = labels_of(subjects, treatment)
    untreated = labels.missing | labels.bad | blank_rows(labels)
    findings.add_rows("no-treatment", f"no {treatment} for {examples(names[untreated])}", untreated)
    counts = outcomes[SUBJECT].value_counts()
    records = counts.reindex(names.drop_duplicates()).fillna(0).reindex(names).to_numpy()
    findings.add_rows("no-outcome", f"no record for {examples(names[records == 0])}", records == 0)
    findings.add_rows(
        "several-outcomes",
        f"several records for {examples(names[records > 1])}: select one with records=",
        records > 1,
    )
    unordered = order.isna().any(axis=1).to_numpy()
    findings.add_rows("no-order", f"no value of {keys}", unordered)
    tied = order.duplicated(keep=False).to_numpy() & ~unordered
    findings.add_rows(
        "tied-order",
        f"subjects share a position in the order ({keys}): add a column that distinguishes them",
        tied,
    )
    findings.raise_if_any(source)


def tell_deviations(subjects: pd.DataFrame, planned: str, actual: str) -> None:
    """Warn about subjects who received a treatment other than the planned one."""
    columns = [labels_of(subjects, name) for name in (planned, actual)]
    one, two = ([*map(label_key, labels.values), None] for labels in columns)
    pairs = zip(columns[0].codes, columns[1].codes, strict=True)
    other = np.array([one[first] != two[second] for first, second in pairs], dtype=np.bool_)
    if other.any():
        warn(
            f"{int(other.sum())} of {len(subjects)} subjects received a treatment other than the planned "
            f"one ({examples(subjects[SUBJECT][other])}): {actual} differs from {planned}",
            AdaptinfWarning,
            stacklevel=3,
        )


def examples(names: Any) -> str:
    """The first few names, as text."""
    listed = list(names)
    shown = ", ".join(map(str, listed[:_SHOWN]))
    return f"{shown}, ..." if len(listed) > _SHOWN else shown


_PERIOD = ("TRT01P", "TRT01A")
_TEXT = (SUBJECT, "PARAMCD")
_OWN = ("treatment", "outcome")


def read_adam(
    adsl: str | PathLike[str] | pd.DataFrame,
    analysis: str | PathLike[str] | pd.DataFrame,
    *,
    parameter: str,
    order: str | Sequence[str],
    propensity: str | Mapping[Any, float] | pd.DataFrame | None = None,
    treatment: str = "planned",
    planned: str = _PERIOD[0],
    actual: str = _PERIOD[1],
    records: Mapping[str, Any] | None = None,
    population: str | None = "ITTFL",
    value: str = "AVAL",
    covariates: Sequence[str] = (),
    batch: str | None = None,
    **options: Any,
) -> AdaptiveLog:
    """Read a trial from its subject-level data set (ADSL) and one analysis data set.

    Parameters
    ----------
    adsl : path or DataFrame
        Data set with one row per subject. A path must end in ``.xpt`` (SAS transport, version 5), ``.csv`` or
        ``.parquet``.
    analysis : path or DataFrame
        Data set in the basic data structure (``PARAMCD``, ``AVAL``), with one row per subject after
        filtering.
    parameter : str
        The ``PARAMCD`` of the outcome.
    order : str or sequence of str
        Columns of ADSL that give the order of assignment, such as ``["RANDDT", "RANDNUM"]``: numbers, times
        or ISO dates; other text is refused, because it would be sorted alphabetically.
    propensity : str, mapping of arm to float, or DataFrame, optional
        ADaM has no variable for assignment probabilities. Either the name of a column of ADSL with the
        probability of the planned arm; or one probability per arm, the same for all subjects; or a table with
        one column named after each arm and, in addition, the columns of ADSL by which rows are looked up,
        such as a stage or stratum.
    treatment : {"planned", "actual"}
        Whether the action is the planned or the actual treatment. Propensities apply to the planned treatment
        only.
    planned, actual : str
        The columns of ADSL that contain the treatments.
    records : mapping of str to value, optional
        Values that select records of the analysis data set, such as ``{"AVISITN": 8, "ANL01FL": "Y"}``.
    population : str, optional
        Flag of ADSL that is ``"Y"`` for the subjects to include, and ``"N"`` or missing for others; None
        includes all subjects.
    value : str
        Column of the outcome.
    covariates : sequence of str
        Baseline columns of ADSL to keep as contexts. Columns by which propensities are looked up are always
        kept, except for the stage: estimators must know what affected the propensities.
    batch : str, optional
        Column of ADSL with the stage of the trial; the stages must be consecutive in `order`.
    **options
        As in `read_log`: ``reward_range``, ``design``, ``guarantee``, ``arms``, ...

    Returns
    -------
    AdaptiveLog
        A log with one round per subject, where ``unit`` is ``USUBJID``.

    Raises
    ------
    ParameterError
        If files, columns or arguments are invalid, a flag is neither Y, N nor missing, a subject of the
        analysis data set is absent from ADSL, or subject identifiers are blank or differ only in blanks.
    LogValidationError
        If subjects are invalid (the message lists every problem, counting rows in the order of assignment):
        no treatment, no outcome, several outcomes, no unique place in the order, or no row in the table of
        propensities; and for any problem found by `AdaptiveLog`.

    Warns
    -----
    AdaptinfWarning
        If subjects received a treatment other than the planned one; the message gives their number.

    Notes
    -----
    No subject is dropped: a subject of the population without an outcome is an error, because without such
    subjects the arms would no longer be comparable. In a CSV file, ``USUBJID`` and ``PARAMCD`` are read as
    text: 001 is not 1.

    References
    ----------
    CDISC, "Analysis Data Model Implementation Guide", version 1.3.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import pandas as pd
    >>> adsl = pd.DataFrame(
    ...     {
    ...         "USUBJID": ["01-1", "01-2", "01-3"],
    ...         "ITTFL": ["Y", "Y", "Y"],
    ...         "TRT01P": ["Placebo", "Drug", "Drug"],
    ...         "TRT01A": ["Placebo", "Drug", "Drug"],
    ...         "RANDNUM": [1, 2, 3],
    ...         "STAGE": [1, 1, 2],
    ...     }
    ... )
    >>> adeff = pd.DataFrame({"USUBJID": ["01-1", "01-2", "01-3"], "PARAMCD": "RESP", "AVAL": [0, 1, 1]})
    >>> stages = pd.DataFrame({"STAGE": [1, 2], "Placebo": [0.5, 0.3], "Drug": [0.5, 0.7]})
    >>> log = ai.formats.read_adam(
    ...     adsl, adeff, parameter="RESP", order="RANDNUM", propensity=stages, batch="STAGE"
    ... )
    >>> log.frame[["action", "reward", "propensity", "batch"]]
        action  reward  propensity  batch
    0  Placebo     0.0         0.5      0
    1     Drug     1.0         0.5      0
    2     Drug     1.0         0.7      1
    """
    problems = names_problems("order", order) + names_problems("covariates", covariates)
    refuse("read_adam", problems + _kind_problems(treatment, records, propensity))
    subjects, path, adsl_name = _frame(adsl, "adsl", "ADSL")
    outcomes, other, analysis_name = _frame(analysis, "analysis", "the analysis data set")
    covariates = [covariates] if isinstance(covariates, str) else list(covariates)
    keys = [order] if isinstance(order, str) else list(order)
    chosen = planned if treatment == "planned" else actual
    problems = _treatment_problems(treatment, propensity)
    more = [x for x in (population, batch, propensity) if x is not None and isinstance(x, str)]
    problems += _column_problems(adsl_name, subjects, [SUBJECT, planned, actual, *keys, *covariates, *more])
    problems += _column_problems(analysis_name, outcomes, [SUBJECT, "PARAMCD", value, *(records or {})])
    strata = [name for name in _strata(subjects, propensity) if name not in (batch, *covariates)]
    refuse("read_adam", problems + _list_problems(keys, [*covariates, *strata]))
    subjects, found, readings = _written(path, subjects, [planned, actual], covariates, batch)
    problems = name_problems(adsl_name, subjects, analysis_name, outcomes) + found
    outcomes = _text_outcomes(other, outcomes, value, options.get("success"))
    if population is not None:
        refuse("read_adam", problems + flag_problems(adsl_name, subjects, population))
        subjects, left = _in_population(subjects, population)
        problems += [f"{adsl_name} has no subject with {population} = Y"] if subjects.empty else []
        readings += left
    outcomes = chosen_records(outcomes, {"PARAMCD": parameter, **(records or {})})
    refuse("read_adam", problems + ([f"{analysis_name} has no such records"] if outcomes.empty else []))
    subjects, places, moved = _in_order(subjects, adsl_name, keys)
    source = f"the log of {adsl_name} and {analysis_name}" if path or other else "the log"
    check_subjects(source, subjects, outcomes, places, chosen)
    tell_deviations(subjects, planned, actual)
    kept = dict.fromkeys([SUBJECT, *covariates, *([batch] if batch else []), *strata])
    rewards = outcomes.set_index(SUBJECT)[value].loc[subjects[SUBJECT]]
    rounds = subjects[list(kept)].assign(treatment=subjects[chosen], outcome=rewards.set_axis(subjects.index))
    with log_of(source):
        probabilities, columns = _propensities(subjects, chosen, propensity)
        log = AdaptiveLog(
            pd.concat([rounds, probabilities], axis=1),
            action="treatment",
            reward="outcome",
            unit=SUBJECT,
            context=[*covariates, *strata],
            batch=batch,
            **nested_options({**columns, **options}),
        )
    return log.read_from(source.removeprefix("the log of ").replace("the log", "data sets"), readings + moved)


def _written(
    path: Path | None, subjects: pd.DataFrame, arms: list[str], covariates: list[str], batch: str | None
) -> tuple[pd.DataFrame, list[str], list[Reading]]:
    """Subjects with labels as written in a CSV file, problems with them, and labels left unchanged."""
    if path is None:
        return subjects, [], []
    problems = mixed_problems(path, subjects, covariates)
    problems += merged_problems(path, subjects, arms, [batch] if batch else [])
    subjects, told = as_written(path, subjects, arms, covariates)
    return subjects, problems, [Reading("labels", f"in ADSL, {text}") for text in told]


def _text_outcomes(path: Path | None, outcomes: pd.DataFrame, value: str, success: Any) -> pd.DataFrame:
    """Records whose outcomes are text, if the value for success is text."""
    if path is None or not isinstance(success, str):
        return outcomes
    return as_written(path, outcomes, text=[value])[0]


def _in_population(subjects: pd.DataFrame, population: str) -> tuple[pd.DataFrame, list[Reading]]:
    """Subjects whose flag is Y, and the number of other subjects."""
    chosen = chosen_records(subjects, {population: "Y"})
    left, everyone = len(subjects) - len(chosen), len(subjects)
    if not left:
        return chosen, []
    told = claims.OUTSIDE_POPULATION(left=left, everyone=everyone, population=population)
    return chosen, [Reading("dropped", told)]


def _in_order(
    subjects: pd.DataFrame, name: str, keys: list[str]
) -> tuple[pd.DataFrame, pd.DataFrame, list[Reading]]:
    """Subjects in the order of their assignment, the columns that define it, and whether they were sorted."""
    places, problems = order_values(name, subjects, keys)
    refuse("read_adam", problems)
    places = places.sort_values(keys, kind="stable")
    told = [Reading("order", claims.SUBJECTS_SORTED(keys=", ".join(keys)))]
    ordered = bool(places.index.is_monotonic_increasing)
    return subjects.loc[places.index].reset_index(drop=True), places, [] if ordered else told


def _list_problems(keys: list[str], kept: list[str]) -> list[str]:
    problems = [] if keys else ["order must name at least one column of ADSL"]
    taken = [name for name in kept if name in _OWN]
    return problems + [
        f"a column of ADSL must not be called {name}, a column name of the log" for name in taken
    ]


def _treatment_problems(treatment: str, propensity: Any) -> list[str]:
    problems = []
    if treatment not in ("planned", "actual"):
        problems.append(f"treatment must be planned or actual, got {treatment!r}")
    if treatment == "actual" and propensity is not None:
        problems.append(
            "propensities refer to the planned treatment: omit them, or use the planned treatment"
        )
    return problems


def _kind_problems(treatment: Any, records: Any, propensity: Any) -> list[str]:
    problems = []
    if not isinstance(treatment, str):
        problems.append(f"treatment must be planned or actual, got {type(treatment).__name__}")
    if not (records is None or isinstance(records, Mapping)):
        problems.append(f"records must be a mapping of columns to values, got {records!r:.60}")
    if not (propensity is None or isinstance(propensity, (str, Mapping, pd.DataFrame))):
        problems.append(f"propensity must be a column, a mapping or a DataFrame, got {propensity!r:.60}")
    return problems


def _frame(
    source: str | PathLike[str] | pd.DataFrame, name: str, what: str
) -> tuple[pd.DataFrame, Path | None, str]:
    """A data set with rows counted from 0, its file if it has one, and its name for error messages."""
    if isinstance(source, pd.DataFrame):
        return source.reset_index(drop=True), None, what
    path = as_path("read_adam", name, source, " or a DataFrame")
    return read_table("read_adam", path, text=_TEXT), path, f"{what} {path}"


def _column_problems(what: str, frame: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Columns that are missing or duplicated."""
    absent = [column for column in dict.fromkeys(columns) if column not in frame]
    problems = [f"{what} has no column {', '.join(absent)}"] if absent else []
    twice = dict.fromkeys(frame.columns[frame.columns.duplicated()])
    if twice:
        problems.append(f"{what} has several columns {', '.join(map(str, twice))}")
    return problems


def _propensities(
    subjects: pd.DataFrame, planned: str, propensity: str | Mapping[Any, float] | pd.DataFrame | None
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Columns with probabilities, and the corresponding arguments of `AdaptiveLog`."""
    if propensity is None:
        return pd.DataFrame(index=subjects.index), {}
    if isinstance(propensity, str):
        return subjects[[propensity]].set_axis(["probability"], axis=1), {"propensity": "probability"}
    if isinstance(propensity, Mapping):
        table = pd.DataFrame([dict(propensity)] * len(subjects), index=subjects.index)
        arms = list(propensity)
    else:
        arms = [column for column in propensity if column not in subjects]
        table = _looked_up(subjects, propensity, arms)
    unknown = sorted(set(subjects[planned]) - set(arms), key=str)
    if unknown:
        raise ParameterError("read_adam", [f"propensity has no column for {', '.join(map(str, unknown))}"])
    table = table.set_axis([f"probability of {arm}" for arm in arms], axis=1)
    return table, {"propensities": {arm: f"probability of {arm}" for arm in arms}}


def _strata(subjects: pd.DataFrame, propensity: Any) -> list[str]:
    """Columns of ADSL that are used to look up propensities in a table."""
    table = isinstance(propensity, pd.DataFrame)
    return [str(column) for column in propensity if column in subjects] if table else []


def _looked_up(subjects: pd.DataFrame, table: pd.DataFrame, arms: list[Any]) -> pd.DataFrame:
    keys = [column for column in table if column in subjects]
    problems = (
        [] if keys else ["the table of propensities shares no column with ADSL by which to match its rows"]
    )
    problems += [] if arms else ["the table of propensities has no columns named after arms"]
    if keys and table.duplicated(keys).any():
        problems.append(
            f"the table of propensities has several rows for the same {', '.join(map(str, keys))}"
        )
    refuse("read_adam", problems)
    try:
        found = subjects[keys].merge(table, on=keys, how="left", indicator=True, validate="many_to_one")
    except (TypeError, ValueError) as error:
        problem = (
            f"the types of {', '.join(map(str, keys))} in the table of propensities differ from those in "
            f"ADSL: {error}"
        )
        raise ParameterError("read_adam", [problem]) from error
    findings = Findings()
    findings.add_rows(
        "no-propensity",
        f"the table of propensities has no row for the subject's {', '.join(map(str, keys))}",
        (found["_merge"] == "left_only").to_numpy(),
    )
    findings.raise_if_any()
    return found[arms]
