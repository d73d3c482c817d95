"""Sums of the rows of a log."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.log.validation.frame_columns import Column, Findings
from adaptinf.parameters import FINITE, check
from adaptinf.sums.cells import Cells, cells_of_rows, sometimes_impossible
from adaptinf.sums.covariate_columns import with_columns
from adaptinf.sums.covariate_products import COVARIATE, Further
from adaptinf.sums.groups import Parts, group_names, read_groups, strata_of
from adaptinf.sums.sums_reading import check_centre
from adaptinf.sums.unit_totals import SAME, UnitTotals, drawn_before, products, unit_problem
from adaptinf.texts import absent
from adaptinf.typing import FloatArray, IntArray


def totals_of_rows(
    action: IntArray, reward: FloatArray, propensity: FloatArray, unit: IntArray, n_arms: int, centre: float
) -> UnitTotals:
    """Totals by unit of a log's rows, whose units are numbered consecutively; all arrays have shape (T,)."""
    size = int(unit.max()) + 1
    columns = _of_units(reward - centre, propensity, unit, size)
    weight = 1.0 / propensity

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(unit, weights=values, minlength=size).astype(np.float64)

    for arm in range(n_arms):
        chosen = (action == arm).astype(np.float64)
        columns[f"inverse_{arm}"] = total(chosen * weight)
        columns[f"weighted_{arm}"] = total(chosen * weight * (reward - centre))
        kinds = {"had": chosen, "events": chosen * (reward != 0.0), "others": chosen * (reward == 0.0)}
        for name, rows in kinds.items():
            columns[f"{name}_{arm}"] = (total(rows) > 0.0).astype(np.float64)
    arms = sum(columns[f"had_{arm}"] for arm in range(n_arms))
    columns["switched"] = np.asarray(arms > 1.0, dtype=np.float64)
    found = {
        name: float(reduce(np.multiply, [columns[factor] for factor in factors]).sum())
        for name, factors in products(n_arms).items()
    }
    return UnitTotals(found, n_arms)


def _of_units(above: FloatArray, propensity: FloatArray, unit: IntArray, size: int) -> dict[str, FloatArray]:
    """Columns with one value for each unit, for all arms together; above, propensity and unit are (T,)."""
    n = np.bincount(unit, minlength=size).astype(np.float64)
    least, most = np.full(size, np.inf), np.zeros(size)
    np.minimum.at(least, unit, propensity)
    np.maximum.at(most, unit, propensity)
    return {
        "one": np.ones(size),
        "n": n,
        "mean": np.bincount(unit, weights=above, minlength=size) / n,
        "moved": (most - least > SAME).astype(np.float64),
        "keeping": np.bincount(unit, weights=np.log(propensity), minlength=size) - np.log(least),
        "sure": np.bincount(unit, weights=propensity >= 1.0 - SAME, minlength=size),
    }


_NONE = Further()


def parts_of_log(
    log: AdaptiveLog, by: str | Sequence[str], centre: float | None, further: Further = _NONE
) -> tuple[Parts, tuple[str, ...], UnitTotals | None]:
    """Sums of rewards minus a centre, by default the first batch's mean, by group, batch and arm.

    The names of the contexts and, if units have several rounds, totals by unit are also returned.
    """
    arrays = summable(log)
    names = group_names("by", by)
    unit = _repeated_units(log)
    reward, batch = arrays.reward, arrays.batch
    centre = float(reward[batch == 0].mean()) if centre is None else centre
    check("Sums.of_log", centre=(centre, FINITE))
    strata = strata_of(batch, _groups(log, names))
    cells = cells_of_rows(
        arrays.action,
        reward,
        arrays.propensity,
        arrays.propensities,
        strata.code,
        log.n_arms,
        float(centre),
    )
    found = Findings()
    ends = float(reward.min()), float(reward.max())
    check_centre(float(centre), cells.moments[0, :3].sum(axis=(1, 2)), *ends, found)
    found.raise_if_any()
    cells = with_columns(cells, log, further, strata.code, batch == 0)
    if sometimes_impossible(cells):
        where = "of a batch and group" if names else "of a batch"
        reason = f"an arm could be chosen only in some rows {where}"
        raise InvalidForLog("Sums", reason, ["smaller batches"])
    parts = Parts(names, strata.parts(cells, np.arange(int(batch[-1]) + 1)))
    totals = None
    if unit is not None:
        totals = totals_of_rows(arrays.action, reward, arrays.propensity, unit, log.n_arms, float(centre))
        _check_units((*names, *further.names), cells, totals)
    given = {log.columns.get(name, name): name for name in (*names, *further.having(COVARIATE))}
    return parts, tuple(given.get(name, name) for name in log.context), totals


def _repeated_units(log: AdaptiveLog) -> IntArray | None:
    """The code of each round's unit, shape (T,), if some units have several rounds; otherwise None."""
    if log.units is None:
        return None
    code, found = pd.factorize(log.units)
    return np.asarray(code, dtype=np.int64) if len(found) < log.n_rounds else None


def _check_units(names: Sequence[str], cells: Cells, totals: UnitTotals) -> None:
    """Refuse totals by unit that cannot be used."""
    reasons = [reason for reason in (unit_problem(cells), drawn_before(totals)) if reason is not None]
    if names:
        reasons.append(
            "units have several rounds, and standard errors by unit with by=, denominator= or covariate= "
            "require the individual rows"
        )
    if reasons:
        raise InvalidForLog("Sums", "; ".join(reasons), ["the log itself"])


def _groups(log: AdaptiveLog, by: tuple[str, ...]) -> Any:
    """The code of each round's group, shape (T,), and the labels of the groups."""
    found = Findings()
    columns = log.columns
    for name in by:
        if name not in log.context and columns.get(name) not in log.context:
            found.add("bad-group", absent("context column", name, log.context, "the log has"))
    read = None
    if not found.problems:
        values = [log.column(name) for name in by]
        whole = [Column(each, np.zeros(len(each), dtype=bool), str(each.dtype)) for each in values]
        read = read_groups(whole, [f"context {name!r}" for name in by], log.n_rounds, found)
    if read is None:
        raise ParameterError("Sums.of_log", [problem.message for problem in found.problems])
    return read


def summable(log: object) -> Any:
    """The arrays of a log; raises an error if the log cannot be summed."""
    if not isinstance(log, AdaptiveLog):
        raise ParameterError("Sums.of_log", [f"log must be an AdaptiveLog, got {type(log).__name__}"])
    arrays, reasons = log.arrays, []
    if log.n_rounds == 0:
        reasons.append("the log has no rounds")
    if arrays.batch is None:
        reasons.append("the log has no batches (give batch=)")
    if arrays.propensity is None:
        reasons.append("the log has no propensities")
    elif arrays.propensities is None and np.any(arrays.propensity >= 1.0):
        reasons.append("the log has only the chosen arm's propensity, and some are 1")
    if arrays.observed is not None:
        reasons.append("rewards are missing")
    if arrays.received is not None or arrays.known is not None:
        reasons.append("the log has received arms, or late outcomes")
    if reasons:
        raise InvalidForLog("Sums", "; ".join(reasons), ["the log itself"])
    return arrays
