"""Checks of a log's choices against its propensities: by bins of them, and by the arms' counts."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from adaptinf.inference.diagnostics.propensities import (
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

CALIBRATION, RATIO, ANYTIME = "propensity calibration", "sample ratio", "sample ratio, anytime"
NO_PROPENSITIES = "the log has no propensities"
_FIX_PROPENSITIES = (
    "estimates that weight by these propensities are not to be trusted; look for propensities that were "
    "logged after the choice, rounds that were lost or filtered, or overrides of the design"
)
CERTAIN = "every known propensity is 0 or 1: the design makes no random choice that could be checked"
_FEW = "too few random choices: the variance of the count is below 10"
CIRCULAR = (
    "the propensities are estimated from the choices themselves, and agree with them by construction: a "
    "check would be circular"
)


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


def _no_calibration(log: AdaptiveLog, every: FloatArray | None) -> str:
    """Why choices cannot be checked against propensities; empty where they can."""
    known = log.arrays.propensity if every is None else every
    if known is None:
        return NO_PROPENSITIES
    if log.propensity_status == "estimated":
        return CIRCULAR
    return "" if ((known > 0.0) & (known < 1.0)).any() else CERTAIN


def _calibration(log: AdaptiveLog, every: FloatArray | None, tables: dict[str, pd.DataFrame]) -> list[Check]:
    reason = _no_calibration(log, every)
    if reason:
        return [Check(CALIBRATION, "all arms", advice=reason)]
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
            checks.append(Check(CALIBRATION, arm, advice=_FEW))
            continue
        found.append(own)
        codes.append(code)
        test = chi_square(own.observed - own.expected, np.diag(own.variance))
        measure = f"chi2({test.df}), bins"
        row = Check(CALIBRATION, arm, measure, test.statistic, test.log_pvalue, "", _FIX_PROPENSITIES)
        checks.append(row)
    if found:
        tables["calibration"] = _bin_table(log, found, codes)
    if len(found) > 1:
        together = joint(found, np.array(codes))
        if isinstance(together, str):
            return [*checks, Check(CALIBRATION, "all arms", advice=together)]
        figures = f"chi2({together.df}), bins", together.statistic, together.log_pvalue
        checks.append(Check(CALIBRATION, "all arms", *figures, "", _FIX_PROPENSITIES))
    return checks


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
    advice = (
        f"{_FIX_PROPENSITIES} (from the chosen arms' propensities alone: it also takes arms that could be "
        "chosen in every round)"
    )
    checks = []
    for code, arm in enumerate(log.arms):
        test = chi_square(total[[code]], covariance[[code]][:, [code]])
        z = float(total[code]) / math.sqrt(float(covariance[code, code])) if test.df else math.nan
        checks.append(Check(CALIBRATION, str(arm), "z, inverse", z, test.log_pvalue, "", advice))
    test = chi_square(total, covariance)
    measure = f"chi2({test.df}), inverse"
    return [*checks, Check(CALIBRATION, "all arms", measure, test.statistic, test.log_pvalue, "", advice)]


def _sample_ratio(log: AdaptiveLog, every: FloatArray | None, shares: FloatArray | None) -> list[Check]:
    whole = every if shares is None else shares[None, :]
    reason = "" if shares is not None else _no_calibration(log, every)
    if not reason and whole is None:
        reason = "it needs every arm's propensity at every round, or expected= for a fixed allocation"
    if not reason and log.n_arms == 1:
        reason = "there is one arm"
    if reason or whole is None:
        return no_ratio(reason)
    counts = np.bincount(log.arrays.action, minlength=log.n_arms).astype(np.float64)
    wealth = largest_log_wealth(log.arrays.action, whole)
    return ratio_checks(counts, *_products(whole, log.n_rounds), wealth, declared=shares is not None)


def no_ratio(reason: str) -> list[Check]:
    """Why counts cannot be checked."""
    return [Check(name, "all arms", advice=reason) for name in (RATIO, ANYTIME)]


def ratio_checks(
    counts: FloatArray, total: FloatArray, products: FloatArray, wealth: float, *, declared: bool
) -> list[Check]:
    """The arms' counts against sums of propensities and of their products.

    Shapes: counts, total (K,), products (K, K).
    """
    due = "of the declared allocation" if declared else "that the propensities lead to"
    advice = f"the counts are not those {due}: look for rounds that were lost or filtered"
    test = count_test(counts, total, products)
    least = float(np.min((total - np.diag(products))[counts < counts.sum()], initial=np.inf))
    few = "" if least >= 5.0 else "; an arm has few random choices: see the anytime row, which is exact"
    figures = f"chi2({test.df})", test.statistic, test.log_pvalue
    return [
        Check(RATIO, "all arms", *figures, "", advice + few)
        if test.df
        else Check(RATIO, "all arms", advice=_FEW),
        Check(ANYTIME, "all arms", "log wealth", wealth, -wealth, "", advice),
    ]


def _products(whole: FloatArray, rounds: int) -> tuple[FloatArray, FloatArray]:
    """Sums over the rounds of propensities and of their products; whole (T, K), or (1, K) for all rounds."""
    times = float(rounds) if len(whole) == 1 else 1.0
    return np.einsum("tk->k", whole) * times, (whole.T @ whole) * times
