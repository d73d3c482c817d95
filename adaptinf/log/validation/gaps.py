"""Outcomes that are missing or arrive late, and arms that were received in place of those assigned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adaptinf.log.validation.arms import code_actions
from adaptinf.log.validation.columns import Column, Label, as_float, read_labels
from adaptinf.log.validation.findings import Findings
from adaptinf.log.validation.order import date_column
from adaptinf.log.validation.records import IncompleteArrays, LogArrays
from adaptinf.log.validation.rows import check_probabilities
from adaptinf.typing import BoolArray, FloatArray, IntArray

MEANINGS = ("drop", "worst", "best")
"""What a missing reward may mean: missing at random given the arm, or anything within the range."""


def check_meaning(
    missing: object, observation: bool, reward_range: tuple[float, float] | None, found: Findings
) -> str | None:
    """What missing rewards mean; None where there may be none. Probabilities of observation imply "drop"."""
    if missing is None:
        return "drop" if observation else None
    if not isinstance(missing, str) or missing not in MEANINGS:
        found.add("bad-missing", f"missing must be {' or '.join(map(repr, MEANINGS))}, got {missing!r:.60}")
        return None
    if missing != "drop" and observation:
        found.add(
            "bad-missing",
            f"observation= belongs to missing='drop': bounds (missing={missing!r}) use no probabilities",
        )
    bounded = reward_range is not None and bool(np.isfinite(reward_range).all())
    if missing != "drop" and not bounded:
        found.add(
            "bad-missing", f"missing={missing!r} needs reward_range=, the ends between which rewards are"
        )
    return missing


def check_some_observed(reward: FloatArray | None, found: Findings) -> None:
    """Refuse rewards of which none is observed; reward (T,)."""
    if reward is not None and np.isnan(reward).all():
        found.add("missing-reward", "every reward is missing: there is nothing to estimate from")


def check_observation(column: Column, name: object, found: Findings) -> FloatArray | None:
    """Probabilities that outcomes are observed, shape (T,): above 0, as they are divided by."""
    return check_probabilities(column, f"observation column {name!r}", "(0", found)


def check_received(column: Column, name: object, arms: Sequence[Label], found: Findings) -> IntArray | None:
    """Codes of the arms that were received, shape (T,); they are among the arms that can be assigned."""
    labels = read_labels(column)
    what = f"received column {name!r}"
    found.add_rows("missing-received", f"{what} has no value", labels.missing)
    found.add_rows("bad-received", f"{what} must hold labels of arms", labels.bad)
    aside = Findings()
    codes = code_actions(labels, arms, True, aside)
    unseen = [label for label in labels.values if not any(_same(label, arm) for arm in arms)]
    told = ", ".join(map(repr, unseen[:5])) + (", ..." if len(unseen) > 5 else "")
    found.add_rows(
        "unseen-received",
        f"{what} holds {told}, which are not among the arms that are assigned, {list(arms)!r:.200}; name "
        "further arms in arms=",
        (codes < 0) & (labels.codes >= 0),
    )
    return None if (codes < 0).any() else codes


def check_known(
    column: Column,
    name: object,
    rounds: NDArray[Any] | None,
    missing: BoolArray,
    date_format: str | None,
    found: Findings,
) -> tuple[NDArray[Any], IntArray] | None:
    """When outcomes became known, as written and as numbers of rounds that had begun, shape (T,) each.

    Shapes: rounds (T,), missing (T,). An outcome that is missing may have no time.
    """
    what = f"outcome_round column {name!r}"
    found.add_rows("missing-outcome-round", f"{what} has no value", column.missing & ~missing)
    if column.values.dtype.kind == "O":
        dates = date_column(column, what, "outcome-round", date_format, found)
        if dates is None:
            return None
        column = dates
    values = column.values
    own = np.arange(1, len(values) + 1) if rounds is None else rounds
    if values.dtype.kind not in "iufM" or (values.dtype.kind == "M") != (own.dtype.kind == "M"):
        kind = "times" if own.dtype.kind == "M" else "numbers"
        counted = " (1, 2, ..., as there is no round=)" if rounds is None else ""
        found.add(
            "bad-outcome-round", f"{what} must hold {kind}, as the rounds do{counted}, not {column.dtype}"
        )
        return None
    if values.dtype.kind == "f":
        values, inexact = as_float(values)
        found.add_rows(
            "bad-outcome-round", f"{what} is infinite or beyond float64", inexact | np.isinf(values)
        )
    elif values.dtype.kind in "iu" and column.missing.any():
        values = np.where(column.missing, np.nan, values.astype(np.float64))
    early = ~column.missing & (values < own)
    found.add_rows("early-outcome-round", f"{what} is before the round itself", early)
    known = np.searchsorted(own, values, side="right").astype(np.int64)
    return values.copy(), np.where(column.missing, len(own), known)


def arrays_of(columns: dict[str, Any]) -> LogArrays:
    """The arrays of a log by field: those of an incomplete log where a reward is missing."""
    gaps = bool(np.isnan(columns["reward"]).any())
    return IncompleteArrays(**columns) if gaps else LogArrays(**columns)


def incomplete(arrays: LogArrays) -> LogArrays:
    """Arrays that were not checked, as those of an incomplete log where a reward is missing."""
    if arrays.observed is not None:
        return arrays
    return arrays_of(arrays.by_field())


def _same(label: Label, arm: Label) -> bool:
    return type(label) is type(arm) and label == arm
