"""Tables of experiment platforms: read, filtered, joined to outcomes, and sorted by time."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.claims.logs import readings as claims
from adaptinf.errors import ParameterError
from adaptinf.files import as_path
from adaptinf.formats.transport import column_of, numbered_lines, read_table
from adaptinf.log.report import Reading
from adaptinf.log.validation.frame_columns import SUM_TOLERANCE
from adaptinf.log.validation.row_order import read_times
from adaptinf.parameters import refuse
from adaptinf.texts import did_you_mean, several

Weights = Mapping[Any, Any] | str | None
# BigQuery, Snowflake and Postgres write zones differently: "10:00:00 UTC", "10:00:00 +0000", "10:00:00+00".
_ZONE = re.compile(
    r"(?P<time>.*\d\d:\d\d(?::\d\d(?:\.\d+)?)?) ?(?:UTC|(?P<sign>Z|[+-]\d\d)(?P<rest>:?\d\d)?)"
)
_SHOWN = 8


@dataclass
class Table:
    """A table during filtering: its rows, their file, and the operations so far."""

    subject: str
    path: Path
    frame: pd.DataFrame
    readings: list[Reading]

    def keep(self, rows: Any, said: str) -> None:
        """Drop all other rows, and report this if there were any."""
        if not np.all(rows):
            self.frame = self.frame[rows]
            self.readings.append(Reading("dropped", said))

    def only(self, column: str, wanted: str | None, argument: str) -> None:
        """Keep the rows of one experiment; if the file has several, one must be named."""
        found = list(dict.fromkeys(self.frame[column].astype(str)))
        if wanted is None and len(found) > 1:
            listed = several(found, _SHOWN)
            raise ParameterError(
                self.subject, [f"{self.path} has more than one {column}: set {argument}= to one of {listed}"]
            )
        if wanted is not None and wanted not in found:
            near = did_you_mean(wanted, found)
            problem = f"{self.path} has no {column} {wanted!r}; available: {several(found, _SHOWN)}{near}"
            raise ParameterError(self.subject, [problem])
        if wanted is not None:
            kept = (self.frame[column].astype(str) == wanted).to_numpy()
            others = {"others": int((~kept).sum()), "rows": len(kept), "column": column, "wanted": wanted}
            self.keep(kept, claims.OTHER_EXPERIMENTS(**others))

    def in_time(self, column: str) -> None:
        """Sort the rows by time."""
        self.frame = self.frame.reset_index(drop=True)
        texts = self.frame[[column]].astype(object).map(_written)
        times, bad = read_times(column_of(texts, column))
        if (wrong := np.flatnonzero(bad | times.missing)).size:
            value = self.frame[column].iloc[wrong[0]]
            problem = f"{wrong.size} values of {column} are not times in ISO 8601, such as {value!r:.60}"
            raise ParameterError(self.subject, [f"{self.path}: {problem}"])
        order = np.argsort(np.asarray(times.values, dtype="datetime64[us]"), kind="stable")
        if (np.diff(order) < 0).any():
            self.readings.append(Reading("order", claims.ROWS_SORTED(column=column)))
        self.frame = self.frame.iloc[order].assign(**{column: np.asarray(times.values)[order]})
        self.frame = self.frame.reset_index(drop=True)

    def first_of_units(self, unit: str, arm: str) -> None:
        """Keep the first row of each unit, and drop units that were in several arms."""
        arms = self.frame.groupby(unit)[arm].transform("nunique").to_numpy()
        moved = int(self.frame.loc[arms > 1, unit].nunique())
        units = self.frame[unit].nunique()
        self.keep(arms == 1, claims.SEVERAL_ARMS(moved=moved, units=units))
        again = self.frame.duplicated(unit).to_numpy()
        self.keep(~again, claims.LATER_EXPOSURES(later=int(again.sum()), rows=len(again)))
        self.frame = self.frame.reset_index(drop=True)

    def join(self, other: Table, key: str, value: str, absent: float | None) -> None:
        """Add the outcome of every row from another table, one row per key."""
        problems = (
            [f"{self.path} also has a column {value}: rename one of them"] if value in self.frame else []
        )
        if twice := int(other.frame.duplicated(key).sum()):
            problems.append(
                f"{other.path}: {twice} of {len(other.frame)} rows repeat the {key} of an earlier row: sum "
                f"the rows of each {key} to one row"
            )
        found = other.frame.drop_duplicates(key).set_index(key)[value]
        none = ~self.frame[key].isin(found.index).to_numpy()
        if none.any() and absent is None:
            problems.append(
                f"{int(none.sum())} of {len(none)} rows have no outcome in {other.path.name}: pass "
                "absent=0 if that means 0, or add the rows"
            )
        refuse(self.subject, problems)
        unused = int((~found.index.isin(self.frame[key])).sum())
        if unused:
            self.readings.append(Reading("left out", claims.UNUSED_OUTCOMES(unused=unused, rows=len(found))))
        if none.any():
            self.readings.append(
                Reading("outcome", claims.ABSENT_OUTCOMES(absent=absent, rows=int(none.sum())))
            )
        joined = self.frame[key].map(found)
        self.frame = self.frame.assign(**{value: joined.where(~none, absent) if none.any() else joined})


def _written(value: Any) -> Any:
    """A time in ISO 8601 format with its zone."""
    found = _ZONE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    sign, rest = found["sign"] or "Z", found["rest"] or ""
    return found["time"] + (sign if sign == "Z" else f"{sign}{rest or ':00'}")


def gathered(subject: str, *made: Callable[[], Any]) -> list[Any]:
    """Results of several calls; a single error lists all problems."""
    results, problems = list[Any](), list[str]()
    for make in made:
        try:
            results.append(make())
        except ParameterError as error:
            problems += error.problems
    refuse(subject, problems)
    return results


def platform_table(
    subject: str, path: str | PathLike[str], needed: Sequence[str], text: Sequence[str] = ()
) -> Table:
    """Table of a CSV, Parquet or JSON lines file; an error names the columns that it lacks."""
    place = as_path(subject, "path", path)
    lines = place.suffix.lower() in (".jsonl", ".ndjson")
    frame = _json_lines(subject, place) if lines else read_table(subject, place, text)
    names = list(frame.columns)
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    problems = [f"{place.name} has several columns {', '.join(map(repr, twice))}"] if twice else []
    if missing := [name for name in needed if name not in names]:
        listed = several(list(map(str, names)), _SHOWN)
        problems.append(f"{place.name} has no column {', '.join(missing)}; its columns are {listed}")
    if not problems and frame.empty:
        problems.append(f"{place.name} has no rows")
    refuse(subject, problems)
    kept = [name for name in text if name in names]
    rounded = [name for name in kept if pd.api.types.is_float_dtype(frame[name])]
    refuse(subject, [f"{name} of {place.name} has fractions: store it as text" for name in rounded])
    frame = frame.assign(
        **{name: frame[name].where(frame[name].isna(), frame[name].astype(str)) for name in kept}
    )
    empty = {name: int(frame[name].isna().sum()) for name in needed if name in kept}
    refuse(subject, [f"{place.name}: {name} is empty in {rows} rows" for name, rows in empty.items() if rows])
    return Table(subject, place, frame, [])


def _json_lines(subject: str, path: Path) -> pd.DataFrame:
    rows = []
    for number, line in numbered_lines(path, subject):
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            raise ParameterError(subject, [f"{path}: line {number} is not JSON: {error!s:.120}"]) from error
        if not isinstance(rows[-1], dict):
            raise ParameterError(subject, [f"{path}: line {number} is not a JSON object"])
    return pd.DataFrame(rows)


def share_problems(weights: Weights, lacking: str) -> list[str]:
    """List problems with traffic shares; `lacking` states why they are needed."""
    if weights is None:
        return [
            f"{lacking}: pass weights={{arm: share}} if the shares of traffic were constant, or "
            'weights="unknown" for a log without propensities'
        ]
    if weights == "unknown":
        return []
    values = list(weights.values()) if isinstance(weights, Mapping) else []
    numbers = all(isinstance(value, int | float) and 0.0 < value <= 1.0 for value in values)
    if not values or not numbers or abs(math.fsum(values) - 1.0) > SUM_TOLERANCE:
        return [f'weights must be shares in (0, 1] that sum to 1, by arm, or "unknown", got {weights!r:.80}']
    return []


def shares_of(table: Table, action: str, weights: Weights) -> dict[str, Any]:
    """Arguments of the log for constant shares of traffic, whose columns are added to the table."""
    if not isinstance(weights, Mapping):
        table.readings.append(Reading("caution", claims.NO_PROPENSITIES()))
        return {}
    names = {str(arm): f"propensity of {arm}" for arm in weights}
    others = [arm for arm in dict.fromkeys(table.frame[action]) if arm not in names]
    refuse(table.subject, [f"weights= has no share for arm {arm!r}" for arm in others])
    shares = zip(names.values(), weights.values(), strict=True)
    table.frame = table.frame.assign(**{name: float(share) for name, share in shares})
    return {"propensities": names, "arms": list(names)}
