"""Rounds that a user restricts a model to."""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.errors import ParameterError
from adaptinf.inference.inputs.labelled import by_round
from adaptinf.parameters import refuse
from adaptinf.typing import BoolArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog


def marked_log(
    subject: str, log: AdaptiveLog, rounds: Any
) -> tuple[AdaptiveLog, BoolArray | None, tuple[str, ...]]:
    """The log of the rounds that the user marked, their mask, shape (T,), and a note; rounds (T,).

    A shorter log serves every model as the whole one does where the mask looks at no rewards: given the past,
    each of its arms was still drawn with the logged propensities.
    """
    keep = round_mask(subject, log, rounds)
    if keep is None:
        return log, None, ()
    used = f"{int(keep.sum())} of {log.n_rounds}"
    note = f"Rounds: {used}, those marked by rounds=, which must not depend on rewards."
    return shorter_log(log, keep), keep, (note,)


def shorter_log(log: AdaptiveLog, keep: BoolArray) -> AdaptiveLog:
    """Some rounds of a log, with all that is known of it; keep (T,)."""
    shorter = copy.copy(log)
    columns = {one.name: getattr(log.arrays, one.name) for one in fields(log.arrays)}
    context = {name: values[keep] for name, values in columns.pop("context").items()}
    rows = {name: None if values is None else values[keep] for name, values in columns.items()}
    if rows["batch"] is not None:
        rows["batch"] = np.unique(rows["batch"], return_inverse=True)[1].astype(np.int64)
    shorter.arrays = type(log.arrays)(**rows, context=context)
    shorter.n_rounds = int(keep.sum())
    shorter.units = None if log.units is None else log.units[keep]
    for name in ("adaptive_rounds", "released_rounds"):
        first = getattr(log, name)
        setattr(shorter, name, None if first is None else int(keep[:first].sum()))
    shorter._rounds = None if log._rounds is None else log._rounds[keep]
    shorter._frame, shorter.kept = None, {}
    return shorter


def round_mask(subject: str, log: AdaptiveLog, rounds: Any) -> BoolArray | None:
    """Rounds that the user marked; rounds (T,); returns (T,), None where none are asked for."""
    if rounds is None:
        return None
    try:
        given = log.column(rounds) if isinstance(rounds, str) else rounds
    except ParameterError as error:
        raise ParameterError(subject, [f"rounds: {problem}" for problem in error.problems]) from None
    values, problems = by_round("rounds", given, pd.RangeIndex(log.n_rounds))
    refuse(subject, problems)
    problem = None
    if values.shape != (log.n_rounds,):
        problem = f"rounds must have one entry a round, shape ({log.n_rounds},), got shape {values.shape}"
    elif not set(np.unique(values).tolist()) <= {0, 1}:
        problem = "rounds must hold booleans (or 0 and 1): true for the rounds that are used"
    elif not values.any():
        problem = "rounds marks no round"
    if problem is not None:
        raise ParameterError(subject, [problem])
    return values.astype(bool)
