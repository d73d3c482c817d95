"""Checks of a log: propensities that are right, arms that stay the same, and rewards enough to weight.

References
----------
Hausman (1978), "Specification tests in econometrics". Hadad, Hirshberg, Zhan, Wager, Athey (2021),
"Confidence intervals for policy evaluation in adaptive experiments". Lindon, Malek (2022), "Anytime-valid
inference for multinomial count data". Fabijan et al. (2019), "Diagnosing sample ratio mismatch in online
controlled experiments".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.errors import ParameterError
from adaptinf.inference.diagnostics.arms import MIN_ROUNDS, arm_checks, missed_note, score_checks
from adaptinf.inference.diagnostics.overlap import fitted_chosen_decay, fitted_decay
from adaptinf.inference.diagnostics.propensities import (
    Bins,
    calibration_bins,
    calibration_joint,
    chi_square,
    count_test,
    inverse_sums,
    largest_log_wealth,
)
from adaptinf.inference.diagnostics.results import CAUTION, FINE, Check, Diagnosis, judged, tests_among
from adaptinf.inference.inputs.arguments import require_log
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import check_alpha, number_array
from adaptinf.typing import FloatArray

QUESTIONS = {
    "propensity calibration": "Were arms chosen as often as their propensities say, at every level of them?",
    "sample ratio": "Do the arms' counts match the propensities, or the declared allocation?",
    "sample ratio, anytime": "The same, exact and at every round: was it ever in doubt?",
    "sample mean against AIPW": "Does weighting change the estimates by more than chance?",
    "common drift": "Do the arms' means rise or fall together from the first round to the last?",
    "drift over time": "Does an arm's mean rise or fall from the first round to the last?",
    "drift by batch": "Is an arm's mean the same in all stretches of batches?",
    "drift that could be missed": "Which steady change, in sd, would have been found 4 times out of 5?",
    "decay of propensities": "How small do propensities get, and how do they fall?",
    "effective sample size": "How many equally weighted rewards is an arm's estimate worth?",
    "overlap": "In how many rounds could an arm hardly be chosen?",
}
_FIX_PROPENSITIES = (
    "estimates that weight by these propensities are not to be trusted; look for propensities that were "
    "logged after the choice, rounds that were lost or filtered, or overrides of the design"
)
_NO_PROPENSITIES = "the log has no propensities"
_CERTAIN = "every known propensity is 0 or 1: the design makes no random choice that could be checked"
_FEW = "too few random choices: the variance of the count is below 10"
_CIRCULAR = (
    "the propensities are estimated from the choices themselves, and agree with them by construction: a "
    "check would be circular"
)
_TINY = 1e-3


def diagnose(log: AdaptiveLog, *, expected: Any = None, alpha: float = 0.05) -> Diagnosis:
    """Check what the analysis of a log takes for granted, as far as the log can tell.

    Parameters
    ----------
    log : AdaptiveLog
        The data.
    expected : array_like of shape (K,) or mapping of label to float, optional
        Share of the rounds that each arm was to have, in the order of ``log.arms`` or by their labels, for a
        design with a fixed allocation; scaled to sum to 1. The counts are then compared with it and not with
        the propensities.
    alpha : float
        Level of all tests of the table together, between 0 and 0.5.

    Returns
    -------
    Diagnosis
        A table with one row per check and arm. A check that does not apply says why.

    Raises
    ------
    ParameterError
        If `log` is no log, `expected` is not one positive share per arm, or alpha is out of range.

    Notes
    -----
    Calibration and sample ratio: where e(a) is the probability of arm a given the past, the sums of
    1{A = a} - e(a) over any rounds that are picked by the past are martingales, whatever the design and the
    rewards, with predictable variance the sum of e (1 - e). The anytime form is a test martingale and exact.

    Drift: AIPW scores have the arm's mean as their expectation given the past, so that their regression on
    time has the slope 0 while the arm's mean stays the same. Each arm has its own slope, by least squares
    with the weights of its scores, and all arms together have one, by the inverse variances of their own:
    common drift, such as a season, shows there first. Weights that keep the variance of the scores even make
    the sums behind a slope jointly normal whatever moves the propensities; the slope itself is normal where
    these settle. The smallest drift that such a test finds with probability 80%, at the level of Holm's first
    step, is told in standard deviations of an arm's rewards. With contexts it also takes contexts that keep
    arriving alike.

    Sample mean against AIPW: the standard error is that of what each round contributes to the difference;
    the textbook difference of two variances is not valid under adaptive collection. It takes designs whose
    arm counts settle (``audit.stability``) for its level. A rejection says that adaptivity, drift or contexts
    moved the sample mean; none does not say that the sample mean is unbiased (``audit.simulate_bias``).

    References
    ----------
    Hausman (1978), "Specification tests in econometrics". Hadad, Hirshberg, Zhan, Wager, Athey (2021),
    "Confidence intervals for policy evaluation in adaptive experiments". Lindon, Malek (2022), "Anytime-valid
    inference for multinomial count data".

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.EpsilonGreedy(exploration=0.3)
    >>> log = design.run(ai.environments.BernoulliArms([0.4, 0.6]), horizon=2000, rng=1)
    >>> ai.diagnose(log).concerns
    ()
    >>> arms = ai.environments.BernoulliArms([0.4, 0.6])
    >>> found = ai.diagnose(ai.designs.UCB().run(arms, horizon=200, rng=1))
    >>> found.check("propensity calibration")[0].advice
    'every known propensity is 0 or 1: the design makes no random choice that could be checked'
    """
    require_log("diagnose", log)
    check_alpha("diagnose", alpha)
    shares = _shares(log, expected)
    every = _every_propensity(log)
    tables: dict[str, pd.DataFrame] = {}
    with np.errstate(under="ignore"):
        choices = [*_calibration(log, every, tables), *_sample_ratio(log, every, shares)]
        checks = [
            *choices,
            *score_checks(log, tables, alpha, tests_among(choices)),
            *_decay(log, every, tables),
            *arm_checks(log, every, tables),
        ]
    tested = tests_among(checks)
    notes = []
    if log.propensity_status == "estimated":
        notes.append("The propensities are estimates, whose error the tests of means and drift ignore.")
    if tested:
        notes.append(
            f"Holm: adjusted for the number of p-values in the table, {tested}; all verdicts together are at "
            f"{alpha:g}. A test that does not reject is no proof."
        )
    notes += missed_note(tables)
    return Diagnosis(judged(checks, alpha), QUESTIONS, float(alpha), tables, tuple(notes))


def _shares(log: AdaptiveLog, expected: Any) -> FloatArray | None:
    if expected is None:
        return None
    if isinstance(expected, Mapping):
        problems = [f"expected has no share for arm {arm!r}" for arm in log.arms if arm not in expected]
        problems += [f"expected names {arm!r}, which is no arm" for arm in expected if arm not in log.arms]
        if problems:
            raise ParameterError("diagnose", [*problems, f"the log has {', '.join(map(repr, log.arms))}"])
        array = number_array([expected[arm] for arm in log.arms])
    else:
        array = number_array(expected)
    if array is None or array.shape != (log.n_arms,) or not (np.isfinite(array) & (array > 0.0)).all():
        problem = (
            f"expected must be one positive share for each of the {log.n_arms} arms, got {expected!r:.60}"
        )
        raise ParameterError("diagnose", [problem])
    return np.asarray(array / array.sum(), dtype=np.float64)


def _every_propensity(log: AdaptiveLog) -> FloatArray | None:
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
        return _NO_PROPENSITIES
    if log.propensity_status == "estimated":
        return _CIRCULAR
    return "" if ((known > 0.0) & (known < 1.0)).any() else _CERTAIN


def _calibration(log: AdaptiveLog, every: FloatArray | None, tables: dict[str, pd.DataFrame]) -> list[Check]:
    name = "propensity calibration"
    reason = _no_calibration(log, every)
    if reason:
        return [Check(name, "all arms", advice=reason)]
    if every is None:
        own = log.arrays.propensity
        return [] if own is None else _inverse_calibration(log, name, own)
    checks, found, codes = [], [], []
    for code, bins in enumerate(calibration_bins(log.arrays.action, every)):
        arm = str(log.arms[code])
        if bins is None:
            checks.append(Check(name, arm, advice=_FEW))
            continue
        found.append(bins)
        codes.append(code)
        test = chi_square(bins.observed - bins.expected, np.diag(bins.variance))
        measure = f"chi2({test.df}), bins"
        checks.append(Check(name, arm, measure, test.statistic, test.log_pvalue, "", _FIX_PROPENSITIES))
    if found:
        tables["calibration"] = _bin_table(log, found, codes)
    if len(found) > 1:
        test = calibration_joint(every, found, np.array(codes))
        measure = f"chi2({test.df}), bins"
        row = Check(name, "all arms", measure, test.statistic, test.log_pvalue, "", _FIX_PROPENSITIES)
        checks.append(row)
    return checks


def _bin_table(log: AdaptiveLog, found: list[Bins], codes: list[int]) -> pd.DataFrame:
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


def _inverse_calibration(log: AdaptiveLog, name: str, own: FloatArray) -> list[Check]:
    """Sums of inverse propensities, where those of the arms that were not chosen are unknown."""
    total, covariance = inverse_sums(log.arrays.action, own, log.n_arms)
    advice = (
        f"{_FIX_PROPENSITIES} (from the chosen arms' propensities alone: it also takes arms that could be "
        "chosen in every round)"
    )
    checks = []
    for code, arm in enumerate(log.arms):
        test = chi_square(total[[code]], covariance[[code]][:, [code]])
        z = float(total[code]) / math.sqrt(float(covariance[code, code])) if test.df else math.nan
        checks.append(Check(name, str(arm), "z, inverse", z, test.log_pvalue, "", advice))
    test = chi_square(total, covariance)
    measure = f"chi2({test.df}), inverse"
    return [*checks, Check(name, "all arms", measure, test.statistic, test.log_pvalue, "", advice)]


def _sample_ratio(log: AdaptiveLog, every: FloatArray | None, shares: FloatArray | None) -> list[Check]:
    names = "sample ratio", "sample ratio, anytime"
    counts = np.bincount(log.arrays.action, minlength=log.n_arms).astype(np.float64)
    whole = every if shares is None else shares[None, :]
    reason = "" if shares is not None else _no_calibration(log, every)
    if not reason and whole is None:
        reason = "it needs every arm's propensity at every round, or expected= for a fixed allocation"
    if not reason and log.n_arms == 1:
        reason = "there is one arm"
    if reason or whole is None:
        return [Check(name, "all arms", advice=reason) for name in names]
    advice = (
        "the counts are not those that the propensities lead to: look for rounds that were lost or filtered"
        if shares is None
        else "the counts are not those of the declared allocation: look for rounds that were lost or filtered"
    )
    total, products = _products(whole, log.n_rounds)
    test = count_test(counts, total, products)
    least = float(np.min((total - np.diag(products))[counts < log.n_rounds], initial=np.inf))
    few = "" if least >= 5.0 else "; an arm has few random choices: see the anytime row, which is exact"
    wealth = largest_log_wealth(log.arrays.action, whole)
    measure = f"chi2({test.df})"
    return [
        Check(names[0], "all arms", measure, test.statistic, test.log_pvalue, "", advice + few)
        if test.df
        else Check(names[0], "all arms", advice=_FEW),
        Check(names[1], "all arms", "log wealth", wealth, -wealth, "", advice),
    ]


def _products(whole: FloatArray, rounds: int) -> tuple[FloatArray, FloatArray]:
    """Sums over the rounds of propensities and of their products; whole (T, K), or (1, K) for all rounds."""
    times = float(rounds) if len(whole) == 1 else 1.0
    return np.einsum("tk->k", whole) * times, (whole.T @ whole) * times


def _decay(log: AdaptiveLog, every: FloatArray | None, tables: dict[str, pd.DataFrame]) -> list[Check]:
    name = "decay of propensities"
    arrays = log.arrays
    if arrays.propensity is None:
        return [Check(name, "all arms", advice=_NO_PROPENSITIES)]
    decay = (
        fitted_chosen_decay(arrays.action, arrays.propensity, log.n_arms)
        if every is None
        else fitted_decay(every)
    )
    frame = pd.DataFrame({"first_round": decay.first, "last_round": decay.last})
    for code, arm in enumerate(log.arms):
        frame[f"smallest_{arm}"] = decay.smallest[:, code]
    tables["decay"] = frame
    smallest = float(np.nanmin(decay.smallest))
    small = smallest < _TINY
    low = Check(
        name, "all arms", "smallest above 0", smallest, math.nan, CAUTION if small else FINE,
        "a reward at the smallest propensity weighs a thousand times one that was sure; see the effective "
        "sample sizes" if small else "",
    )  # fmt: skip
    if math.isnan(decay.exponent):
        return [low, Check(name, "all arms", "fitted exponent", advice=f"fewer than {MIN_ROUNDS} rounds")]
    note = (
        "the exponent is for a look: two-point weights need one that was fixed before the data, never fitted"
    )
    fast = decay.exponent >= 1.0
    return [
        low,
        Check(name, "all arms", "fitted exponent", decay.exponent, math.nan, CAUTION if fast else FINE, note),
    ]
