"""Looks by information: the inverse of the squared standard error of the difference so far.

A look takes place after the first participant with whom the information reaches its level. This is a stopping
time, so the score there is a value of the same martingale as at any look.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adaptinf.inference.group_sequential.score_process import ScoreProcesses
from adaptinf.parameters import number_array
from adaptinf.typing import FloatArray, IntArray


def information_problems(looks: Any, horizon: Any, law: Any, drop: Any) -> list[str]:
    """Problems with looks by information."""
    levels, problems = number_array(looks), []
    listed = levels is not None and levels.ndim == 1 and len(levels) > 0
    if not listed or levels is None or not np.all(np.isfinite(levels)) or levels[0] <= 0.0:
        problems.append(f"looks by information must be positive numbers, got {looks!r:.60}")
    elif np.any(np.diff(levels) <= 0.0):
        problems.append(f"looks by information must be in ascending order, got {looks!r:.60}")
    if horizon is None:
        problems.append("looks by information require horizon, the largest number of participants")
    if law != "z":
        problems.append(f'looks by information require law="z", got {law!r}')
    if drop is not None:
        problems.append("looks by information cannot drop treatments")
    return problems


def informed(found: ScoreProcesses, possible: FloatArray, least: float) -> FloatArray:
    """Information after rounds (k,): the smallest over treatments that could be drawn in the last round.

    Information counts only once both arms have the least number of effective rewards and outcomes; possible
    (k, J) are the propensities of the treatments in these rounds, after each of which `found` has a look.
    """
    levels = np.full((len(possible), len(found.each)), np.inf)
    for place, one in enumerate(found.each):
        enough = (np.minimum(one.effective, one.events) >= least) & (one.clock > 0.0)
        level = np.divide(one.slope**2, one.clock, out=np.zeros(len(enough)), where=enough)
        levels[:, place] = np.where(possible[:, place] > 0.0, level, np.inf)
    least_of = levels.min(axis=1)
    return np.where(np.isfinite(least_of), least_of, 0.0)


def rounds_reached(
    information: FloatArray, levels: FloatArray, stated: Sequence[int], rounds: int, horizon: int
) -> IntArray:
    """Rounds up to each look that a log of some rounds has reached; information (T,), levels (k,).

    Looks that the log states stay where they were, even if outcomes were amended later. The horizon is a
    look, and then the last one, if no later look has been reached.
    """
    ends = [end for end in stated if end <= rounds]
    for level in levels[len(ends) :].tolist():
        begun = ends[-1] if ends else 0
        later = np.flatnonzero(information[begun:] >= level)
        if not len(later):
            break
        ends.append(begun + int(later[0]) + 1)
    if len(ends) < len(levels) and rounds >= horizon > (ends[-1] if ends else 0):
        ends.append(horizon)
    return np.array(ends, dtype=np.int64)
