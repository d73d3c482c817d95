"""Covariates as negative controls: whether arms could have affected what is taken to come before them.

Where e are the probabilities of the arms, given a covariate x that is older than the choice, the sum of
(x - mean x) (1{A = k} - e(k)) over rounds has mean zero and variance the sum of (x - mean x)^2 e (1 - e). Of
many arms of which the chosen one's probability is known alone, so has the sum of (x - mean x)
(1{A = k} / e - 1), whose variance the sum of (x - mean x)^2 1{A = k} (1 - e) / e^2 estimates. Of rows,
ranks stand in for x.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special

from adaptinf.claims import Finding
from adaptinf.claims.data.covariates import MOVED
from adaptinf.inference.scores.outcome_predictions import context_matrix
from adaptinf.inference.validity.calibration import some_rounds
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile
    from adaptinf.sums.cells import Cells

ALARM = 5e-4
"""P-value, times the number of arms and of columns, below which a covariate is taken to be affected."""
_LARGEST_STEP, _LARGEST_INVERSE = 0.25, 0.1
"""Of one round, in standard deviations, for a sum to be taken as normal; less where they are estimated."""
_LEAST_ROUNDS = 100


def moved_covariates(profile: LogProfile, names: Sequence[str]) -> Finding | None:
    """Whether arms differ in covariates by more than their probabilities explain; None where none can."""
    log, sums = profile.log, profile.sums
    if not names or not profile.knows_propensities or profile.estimated:
        return None
    scores = [_of_cells(sums.cells, name) if sums is not None else _of_rows(profile, name) for name in names]
    tests = sum(_tests(z) for z in scores)
    if not tests:
        return None
    found = []
    for name, z in zip(names, scores, strict=True):
        code, far = _farthest(z)
        p = min(1.0, float(2.0 * special.ndtr(-abs(far))) * tests)
        if p < ALARM:
            found.append(MOVED(name=name, arm=log.arms[code], p=p))
    return Finding(tuple(found))


class ControlTest(NamedTuple):
    """Of one covariate the arm that it differs most in, by how much, and the p-value times the tests."""

    code: int
    z: float
    log_pvalue: float


def control_test(profile: LogProfile, name: str) -> ControlTest | None:
    """Whether arms differ in one covariate of a log with propensities; None where that cannot be tested."""
    z = _of_rows(profile, name)
    tests = _tests(z)
    if not tests:
        return None
    code, far = _farthest(z)
    log_pvalue = math.log(2.0 * tests) + float(special.log_ndtr(-abs(far)))
    return ControlTest(code, far, min(0.0, log_pvalue))


def _tests(z: FloatArray) -> int:
    """Number of comparisons, of which two arms are one; z (columns, K)."""
    tested = int(np.isfinite(z).sum())
    return -(-tested // 2) if z.shape[1] == 2 else tested


def _farthest(z: FloatArray) -> tuple[int, float]:
    """The arm with the largest score, and the score; z (columns, K)."""
    size = np.where(np.isfinite(z), np.abs(z), 0.0)
    column, code = np.unravel_index(int(size.argmax()), size.shape)
    return int(code), float(z[column, code]) if size[column, code] > 0.0 else 0.0


def _of_rows(profile: LogProfile, name: str) -> FloatArray:
    """Standardised sums of a covariate's columns by arm; (columns, K), NaN where they are not normal."""
    log = profile.log
    rows = some_rounds(log.n_rounds, log.n_arms)
    values = np.column_stack([_ranks(x) for x in context_matrix("covariate", log, [name])[rows, 1:].T])
    action, own = log.arrays.action[rows], log.arrays.propensity
    every = profile.propensities
    assert own is not None
    largest = _LARGEST_STEP if every is not None or log.n_arms == 2 else _LARGEST_INVERSE
    z = np.full((values.shape[1], log.n_arms), np.nan)
    for code in range(log.n_arms):
        chosen = action == code
        if every is not None or log.n_arms == 2:
            share = every[rows, code] if every is not None else np.where(chosen, own[rows], 1.0 - own[rows])
            gap, spread = chosen - share, share * (1.0 - share)
        else:
            inverse = chosen / own[rows]
            gap, spread = inverse - 1.0, inverse * np.maximum(inverse - 1.0, 0.0)
        for column, x in enumerate(values.T):
            z[column, code] = _standardised(x, gap, spread, largest)
    return z


def _ranks(x: FloatArray) -> FloatArray:
    """Ranks less their mean, those of equal values shared, so that no value is far away; (T,)."""
    place, counts = np.unique(x, return_inverse=True, return_counts=True)[1:]
    return np.asarray((np.cumsum(counts) - 0.5 * counts)[place] - 0.5 * len(x), dtype=np.float64)


def _standardised(away: FloatArray, gap: FloatArray, spread: FloatArray, largest: float) -> float:
    """A sum over its standard deviation, NaN where single rounds may decide it; (T,), (T,), (T,)."""
    if len(away) < _LEAST_ROUNDS:
        return np.nan
    size = np.sqrt(away**2 @ spread)
    if not size > 0.0 or np.abs(away * gap).max() > largest * size:
        return np.nan
    return float(away @ gap / size)


def _of_cells(cells: Cells, name: str) -> FloatArray:
    """The same of sums, over batches in which propensities are constant; (1, K)."""
    products = cells.products
    n_arms = cells.pulls.shape[1]
    if products is None or name not in products.names:
        return np.full((1, n_arms), np.nan)
    table = products.only([name]).table[0]
    total, squares = table[0, 0, 2], table[0, 2, 2]
    rounds = cells.rounds
    mean = total.sum(axis=1) / rounds
    spread = np.maximum(squares.sum(axis=1) - rounds * mean**2, 0.0)[:, None]
    share = cells.expected / rounds[:, None]
    usable = cells.constant & np.isfinite(share)
    gap = np.where(usable, total - mean[:, None] * cells.pulls, 0.0).sum(axis=0)
    variance = np.where(usable, spread * share * (1.0 - share), 0.0)
    enough = np.where(usable, rounds[:, None] * (variance > 0.0), 0.0).sum(axis=0) >= _LEAST_ROUNDS
    size = np.sqrt(variance.sum(axis=0))
    z: FloatArray = np.divide(gap, size, out=np.full(n_arms, np.nan), where=(size > 0.0) & enough)
    return z[None, :]
