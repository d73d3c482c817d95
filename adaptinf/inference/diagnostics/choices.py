"""Checks of a log's choices against its propensities: by bins of them, and by the arms' counts."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from adaptinf.claims import diagnosis as claims
from adaptinf.claims import propensities
from adaptinf.inference.diagnostics.propensities import (
    LEAST_VARIANCE,
    Bins,
    ChiSquare,
    calibration_bins,
    calibration_joint,
    chi_square,
    count_test,
    inverse_sums,
    largest_log_wealth,
)
from adaptinf.inference.diagnostics.results import Check
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog
from adaptinf.sums import Sums
from adaptinf.typing import FloatArray, IntArray

_LEAST_SPREAD = 5.0
"""Variance of an arm's count below which chi-squared is no good law of it."""
CALIBRATION, RATIO, ANYTIME = "propensity calibration", "sample ratio", "sample ratio, anytime"


def choice_checks(
    log: AdaptiveLog, every: FloatArray | None, shares: FloatArray | None, tables: dict[str, pd.DataFrame]
) -> list[Check]:
    """Checks of a log's rounds; every (T, K), shares (K,) of a declared allocation."""
    return [*_calibration(log, every, tables), *_sample_ratio(log, every, shares)]


def every_propensity(log: AdaptiveLog) -> FloatArray | None:
    """Propensities of all arms; those of two follow from that of the chosen one."""
    arrays = log.arrays
    if arrays.propensities is not None or arrays.propensity is None:
        return arrays.propensities
    if log.n_arms > 2:
        return None
    if log.n_arms == 1:
        return arrays.propensity[:, None]
    first = np.where(arrays.action == 0, arrays.propensity, 1.0 - arrays.propensity)
    return np.stack([first, 1.0 - first], axis=1)


def no_calibration(log: AdaptiveLog, every: FloatArray | None) -> str:
    """Why choices cannot be checked against propensities; empty where they can."""
    known = log.arrays.propensity if every is None else every
    if known is None:
        return propensities.NONE()
    if log.propensity_status == "estimated":
        return claims.CIRCULAR()
    return "" if ((known > 0.0) & (known < 1.0)).any() else claims.CERTAIN()


def _calibration(log: AdaptiveLog, every: FloatArray | None, tables: dict[str, pd.DataFrame]) -> list[Check]:
    reason = no_calibration(log, every)
    if reason:
        return [Check(CALIBRATION, "all arms", claims=(reason,))]
    if every is None:
        own, known = log.arrays.propensity, profile_of(log).partial_propensities
        if own is None:
            return []
        possible = None if known is None else known > 0.0
        return inverse_checks(log, *inverse_sums(log.arrays.action, own, log.n_arms, possible))
    bins = calibration_bins(log.arrays.action, every)
    return bin_checks(log, bins, lambda found, codes: calibration_joint(every, found, codes), tables)


def bin_checks(
    log: AdaptiveLog | Sums,
    bins: list[Bins | None],
    joint: Callable[[list[Bins], IntArray], ChiSquare | str],
    tables: dict[str, pd.DataFrame],
) -> list[Check]:
    """One row per arm, by its bins, and one for all together, by `joint`, or why there is none."""
    checks, found, codes = [], [], []
    for code, own in enumerate(bins):
        arm = str(log.arms[code])
        if own is None:
            checks.append(Check(CALIBRATION, arm, claims=(few_choices(),)))
            continue
        found.append(own)
        codes.append(code)
        test = chi_square(own.observed - own.expected, np.diag(own.variance))
        measure = f"chi2({test.df}), bins"
        row = Check(CALIBRATION, arm, measure, test.statistic, test.log_pvalue, "", _not_trusted())
        checks.append(row)
    if found:
        tables["calibration"] = _bin_table(log, found, codes)
    if len(found) > 1:
        together = joint(found, np.array(codes))
        if isinstance(together, str):
            return [*checks, Check(CALIBRATION, "all arms", claims=(together,))]
        figures = f"chi2({together.df}), bins", together.statistic, together.log_pvalue
        checks.append(Check(CALIBRATION, "all arms", *figures, "", _not_trusted()))
    return checks


def few_choices() -> str:
    """That there are too few random choices for a test of counts."""
    return claims.FEW_CHOICES(least=LEAST_VARIANCE)


def _not_trusted() -> tuple[str, ...]:
    """What propensities mean that choices contradict, and where to look."""
    return claims.NOT_TRUSTED(), claims.HOW_LOGGED()


def _bin_table(log: AdaptiveLog | Sums, found: list[Bins], codes: list[int]) -> pd.DataFrame:
    parts = [
        pd.DataFrame(
            {
                "arm": [log.arms[code]] * bins.rounds.size,
                "low": bins.low,
                "high": bins.high,
                "rounds": bins.rounds,
                "expected": bins.expected,
                "observed": bins.observed,
                "z": bins.z,
            }
        )
        for bins, code in zip(found, codes, strict=True)
    ]
    return pd.concat(parts, ignore_index=True)


def inverse_checks(log: AdaptiveLog | Sums, total: FloatArray, covariance: FloatArray) -> list[Check]:
    """Sums of inverse propensities, where those of the arms that were not chosen are unknown.

    Shapes: total (K,), covariance (K, K).
    """
    found = (*_not_trusted(), claims.EVERY_ARM_POSSIBLE())
    checks = []
    for code, arm in enumerate(log.arms):
        test = chi_square(total[[code]], covariance[[code]][:, [code]])
        z = float(total[code]) / math.sqrt(float(covariance[code, code])) if test.df else math.nan
        checks.append(Check(CALIBRATION, str(arm), "z, inverse", z, test.log_pvalue, "", found))
    test = chi_square(total, covariance)
    measure = f"chi2({test.df}), inverse"
    return [*checks, Check(CALIBRATION, "all arms", measure, test.statistic, test.log_pvalue, "", found)]


def _sample_ratio(log: AdaptiveLog, every: FloatArray | None, shares: FloatArray | None) -> list[Check]:
    whole = every if shares is None else shares[None, :]
    reason = "" if shares is not None else no_calibration(log, every)
    if not reason and whole is None:
        reason = claims.NEEDS_EVERY()
    if not reason and log.n_arms == 1:
        reason = claims.ONE_ARM()
    if reason or whole is None:
        return no_ratio(reason)
    counts = np.bincount(log.arrays.action, minlength=log.n_arms).astype(np.float64)
    wealth = largest_log_wealth(log.arrays.action, whole)
    return ratio_checks(counts, *_products(whole, log.n_rounds), wealth, declared=shares is not None)


def no_ratio(reason: str) -> list[Check]:
    """Why counts cannot be checked."""
    return [Check(name, "all arms", claims=(reason,)) for name in (RATIO, ANYTIME)]


def ratio_checks(
    counts: FloatArray, total: FloatArray, products: FloatArray, wealth: float, *, declared: bool
) -> list[Check]:
    """The arms' counts against sums of propensities and of their products.

    Shapes: counts, total (K,), products (K, K).
    """
    expected = "the declared allocation" if declared else "the propensities"
    found: list[str] = [claims.COUNTS_OFF(expected=expected), claims.LOST_ROUNDS()]
    anytime = Check(ANYTIME, "all arms", "log wealth", wealth, -wealth, "", tuple(found))
    test = count_test(counts, total, products)
    if not test.df:
        return [Check(RATIO, "all arms", claims=(few_choices(),)), anytime]
    if np.min((total - np.diag(products))[counts < counts.sum()], initial=np.inf) < _LEAST_SPREAD:
        found.append(claims.SEE_ANYTIME())
    figures = f"chi2({test.df})", test.statistic, test.log_pvalue
    return [Check(RATIO, "all arms", *figures, "", tuple(found)), anytime]


def _products(whole: FloatArray, rounds: int) -> tuple[FloatArray, FloatArray]:
    """Sums over the rounds of propensities and of their products; whole (T, K), or (1, K) for all rounds."""
    times = float(rounds) if len(whole) == 1 else 1.0
    return np.einsum("tk->k", whole) * times, (whole.T @ whole) * times
