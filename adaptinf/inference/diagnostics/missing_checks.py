"""Checks of missing rewards: how many there are, and whether this depends on the arm or on time.

References
----------
Fisher (1935), "The design of experiments" (exact tests given the margins). Little (1988), "A test of missing
completely at random for multivariate data with missing values".
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from adaptinf.claims import diagnosis as claims
from adaptinf.inference.diagnostics.arm_checks import batch_groups, stretches
from adaptinf.inference.diagnostics.diagnosis_results import FINE, Check
from adaptinf.log import AdaptiveLog
from adaptinf.typing import FloatArray, IntArray

SHARE, ARMS, TIME = "missing rewards", "missing by arm", "missing by batch"
_FEW = 5.0
"""Cells are tested exactly if the expected count of some cell is below this value."""


def missing_checks(log: AdaptiveLog) -> list[Check]:
    """Rows on the share of missing rewards by arm, with tests that it varies neither by arm nor over time."""
    observed, action = log.arrays.observed, log.arrays.action
    if observed is None:
        return []
    place = _place(log)
    size = int(place.max()) + 1
    cells = place * log.n_arms + action
    rounds, lost = (
        np.bincount(rows, minlength=size * log.n_arms).reshape(size, log.n_arms).astype(np.float64)
        for rows in (cells, cells[~observed])
    )
    checks = [
        Check(SHARE, str(arm), "share missing", float(lost[:, code].sum() / count), verdict=FINE)
        for code, arm in enumerate(log.arms)
        if (count := rounds[:, code].sum()) > 0.0
    ]
    by_arm = claims.MISSING_BY_ARM(), claims.GIVE_BOUNDS()
    checks.append(_tested(ARMS, lost.sum(axis=0)[:, None], rounds.sum(axis=0)[:, None], by_arm))
    over_time = claims.MISSING_OVER_TIME(), claims.NOT_YET_IN()
    checks.append(_tested(TIME, lost, rounds, over_time))
    return checks


def _place(log: AdaptiveLog) -> IntArray:
    """The group of consecutive batches (or rounds) to which each round belongs, shape (T,)."""
    batch = log.arrays.batch
    if batch is None or int(batch[-1]) == int(batch[0]):
        return stretches(np.ones(log.n_rounds))
    return batch_groups(batch - int(batch[0]))


def _tested(name: str, lost: FloatArray, rounds: FloatArray, differ: tuple[str, ...]) -> Check:
    """Test that the share of missing rewards is the same in all rows of each column; lost, rounds (G, k).

    If some expected counts are small, each cell is tested exactly, given the margins, with Bonferroni's
    correction.
    """
    share = lost.sum(axis=0) / np.maximum(rounds.sum(axis=0), 1.0)
    there = (rounds > 0.0) & (share > 0.0) & (share < 1.0)
    there &= np.count_nonzero(there, axis=0) > 1
    size = np.count_nonzero(there, axis=0)
    df = int(np.maximum(size - 1, 0).sum())
    if df == 0:
        return Check(name, "all arms", claims=(claims.MISSING_ALIKE(),))
    expected = (rounds * share)[there]
    count, trials = lost[there], rounds[there]
    if min(expected.min(), (trials - expected).min()) >= _FEW:
        statistic = float(np.sum((count - expected) ** 2 * trials / (expected * (trials - expected))))
        log_p = float(stats.chi2.logsf(statistic, df))
        return Check(name, "all arms", f"chi2({df})", statistic, log_p, "", differ)
    every, gone = (np.broadcast_to(part.sum(axis=0), part.shape)[there] for part in (rounds, lost))
    law = stats.hypergeom(every, gone, trials)
    tails = 2.0 * np.minimum(law.cdf(count), law.sf(count - 1.0))
    # Of two cells, each contains what the other lacks, so there is only one test.
    tried = int(np.where(size == 2, 1, size).sum())
    p = min(1.0, tried * float(tails.min()))
    measure = "Fisher's exact" if tried == 1 else f"exact, {tried} cells"
    return Check(name, "all arms", measure, float(count.sum()), math.log(p), "", differ)
