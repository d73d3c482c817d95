"""Rounds that a user restricts a model to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.errors import ParameterError
from adaptinf.inference.inputs.labelled import by_round
from adaptinf.parameters import refuse
from adaptinf.typing import BoolArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog


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
