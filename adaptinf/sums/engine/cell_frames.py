"""The result of a query by batch and arm: checks for faulty rows, and sums over powers of propensities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from adaptinf.log.validation.frame_columns import EXACT, MATCH_TOLERANCE, SUM_TOLERANCE
from adaptinf.sums.cells import DEGREES
from adaptinf.sums.covariate_products import DENOMINATOR, further_triples
from adaptinf.sums.engine.queries import (
    COUNT,
    HIGHEST,
    KNOWN,
    KNOWN_SUM,
    LEAST,
    LOGS,
    MISMATCHED,
    MOST,
    SURE,
    TOTAL,
)
from adaptinf.sums.engine.query_columns import (
    ARM,
    FURTHER,
    PROPENSITY,
    REWARD,
    SHARE,
    Columns,
    propensities_of,
)
from adaptinf.sums.unit_totals import SAME
from adaptinf.typing import BoolArray, FloatArray


def sound(
    frame: pd.DataFrame,
    columns: Columns,
    centres: Sequence[float],
    reward_range: tuple[float, float] | None,
) -> bool:
    """Whether counts, sums and extremes show that no row has a fault; if not, a row may or may not have one.

    Either the frame contains sums divided by powers of propensities, or propensities are constant within each
    batch and arm.
    """
    fine = _floats(frame, KNOWN) == _floats(frame, COUNT)
    fine &= np.isfinite(_floats(frame, KNOWN_SUM))
    squares = ["moment_0_2"]
    for place, role in enumerate(columns.further.roles):
        squares.append(f"product_0_0_{place + 2}_{place + 2}")
        fine &= _floats(frame, f"{LEAST}{FURTHER}{place}") >= 0.0 if role == DENOMINATOR else True
    for name, centre in zip(squares, centres, strict=True):
        # No number can be further from the centre than the root of the sum of squares, so rows need not be
        # read.
        fine &= np.sqrt(_floats(frame, name)) + abs(centre) < 0.5 * EXACT
    if reward_range is not None:
        fine &= _between(frame, REWARD, *reward_range)
    return bool(np.all(fine & _possible(frame, columns)))


def _possible(frame: pd.DataFrame, columns: Columns) -> BoolArray:
    """Whether propensities are probabilities, agree with each other, and are positive for the chosen arms."""
    fine = np.ones(len(frame), dtype=bool)
    for name in propensities_of(columns):
        fine &= _between(frame, name, 0.0, 1.0)
    if columns.shares:
        return fine
    if f"moment_{HIGHEST}_0" in frame:  # These sums come from rows, so their weights are known.
        if columns.every:
            fine &= _between(frame, TOTAL, 1.0 - SUM_TOLERANCE, 1.0 + SUM_TOLERANCE)
        return fine & (_floats(frame, MISMATCHED) == 0.0) if MISMATCHED in frame else fine
    own = _own(frame, columns)
    fine &= own > 0.0
    if columns.every:
        total = sum(_floats(frame, f"{LEAST}{SHARE}{place}") for place in range(len(columns.every)))
        share = _chosen(frame, columns)
        fine &= (np.abs(total - 1.0) <= SUM_TOLERANCE) & (np.abs(share - own) <= MATCH_TOLERANCE * share)
    return fine


def constant(frame: pd.DataFrame, columns: Columns) -> bool:
    """Whether propensities are constant over the rows of each batch and arm."""
    ends = ((f"{LEAST}{name}", f"{MOST}{name}") for name in propensities_of(columns))
    return all(np.array_equal(_floats(frame, low), _floats(frame, high)) for low, high in ends)


def with_powers(frame: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """The frame with sums divided by powers of propensities, which are constant within each batch and arm."""
    count, own = _floats(frame, COUNT), _own(frame, columns)
    triples = ["_".join(map(str, triple)) for triple in further_triples(len(columns.further.names))]
    found = dict[str, FloatArray]()
    for power in range(1, HIGHEST + 2):
        weight = own**-power
        found[f"moment_{power}_0"] = count * weight
        if power <= HIGHEST:
            moments = {f"{power}_{n}": f"moment_0_{n}" for n in range(1, DEGREES)}
            found |= {f"moment_{name}": _floats(frame, of) * weight for name, of in moments.items()}
            for triple in triples:
                found[f"product_{power}_{triple}"] = _floats(frame, f"product_0_{triple}") * weight
    if columns.unit is not None:
        found |= {LOGS: count * np.log(own), SURE: count * (own >= 1.0 - SAME)}
    for place in range(len(columns.every)):
        share = _floats(frame, f"{LEAST}{SHARE}{place}")
        found[f"inverse_{place}"] = np.where(share > 0.0, count / np.where(share > 0.0, share, 1.0), 0.0)
        found[f"expected_{place}"] = count * share
        found[f"spread_{place}"] = count * (share * (1.0 - share))
    return pd.concat([frame, pd.DataFrame(found, index=frame.index)], axis=1)


def _own(frame: pd.DataFrame, columns: Columns) -> FloatArray:
    """The smallest propensity of the chosen arm in each batch and arm, shape (R,)."""
    least = f"{LEAST}{PROPENSITY}"
    return _floats(frame, least) if least in frame else _chosen(frame, columns)


def _chosen(frame: pd.DataFrame, columns: Columns) -> FloatArray:
    """The smallest propensity in the chosen arm's own column, or NaN if it has no column; shape (R,)."""
    found = np.full(len(frame), np.nan)
    for place, arm in enumerate(columns.every):
        rows = frame[ARM].eq(arm).fillna(False).to_numpy(dtype=bool)
        found[rows] = _floats(frame, f"{LEAST}{SHARE}{place}")[rows]
    return found


def _between(frame: pd.DataFrame, name: str, low: float, high: float) -> BoolArray:
    """Whether all numbers that each row of the frame summarises lie within the limits."""
    return (_floats(frame, f"{LEAST}{name}") >= low) & (_floats(frame, f"{MOST}{name}") <= high)


def _floats(frame: pd.DataFrame, name: str) -> FloatArray:
    """A column as floats, with NaN for missing values."""
    return np.asarray(frame[name], dtype=np.float64)
