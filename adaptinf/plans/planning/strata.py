"""Scores within strata, summed: rewards are predicted by earlier rewards of the same stratum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from adaptinf.inference.group_sequential.score_process import (
    RunningSums,
    ScoreProcesses,
    running_sums,
    score_processes,
)
from adaptinf.parameters import refuse
from adaptinf.plans.stored_plans import outcomes_of
from adaptinf.texts import absent
from adaptinf.typing import IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog


def stratified_processes(
    log: AdaptiveLog, strata: str | None, codes: Sequence[int], looks: IntArray, null: float
) -> ScoreProcesses:
    """Scores at looks (k,) of the whole log, or summed over the values of a column.

    `codes` are the positions of the treatments and the control.
    """
    known = outcomes_of(log)
    arms = tuple(codes[:-1]), codes[-1]
    if strata is None or looks[-1] == 0:
        return score_processes(*known, *arms, looks, null)
    columns = list(log.frame.columns)
    refuse("Plan", [absent("strata", strata, columns, "the log has")] if strata not in columns else [])
    stratum = pd.factorize(log.frame[strata])[0][: int(looks[-1])]
    parts = []
    for code in np.unique(stratum):
        rows = np.flatnonzero(stratum == code)
        ends = np.searchsorted(rows, looks, side="left")
        action, reward, propensities = known[0][rows], known[1][rows], known[2][rows]
        parts.append(running_sums(action, reward, propensities, *arms, ends, null))
    return RunningSums(*(np.sum(values, axis=0) for values in zip(*parts, strict=True))).processes()


def inflated(found: ScoreProcesses, factor: float) -> ScoreProcesses:
    """Scores divided by a factor of all standard errors."""
    each = (one._replace(score=one.score / factor, slope=one.slope / factor) for one in found.each)
    return found if factor == 1.0 else found._replace(each=tuple(each))
