"""Checks of a log arm by arm: estimates that should agree, effective sample sizes, overlap."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy import stats

from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms.choice import choose
from adaptinf.inference.arms.question import Choice, Question
from adaptinf.inference.arms.weighted import scored_rounds
from adaptinf.inference.diagnostics.agreement import (
    Differences,
    batch_groups,
    drift_differences,
    homogeneity,
    mean_differences,
)
from adaptinf.inference.diagnostics.overlap import low_rounds
from adaptinf.inference.diagnostics.results import CAUTION, FINE, Check
from adaptinf.inference.scores.inverse import indicators
from adaptinf.inference.scores.means import effective_size, weighted_means
from adaptinf.inference.scores.outcome_models import RUNNING_MEAN
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog
from adaptinf.typing import FloatArray, IntArray

MIN_ROUNDS = 33
"""Rounds from which there are four blocks to fit an exponent to."""
MEAN, HALVES, BATCHES = "sample mean against AIPW", "drift, early against late", "drift by batch"
_LEAST_PULLS = 20
_LEAST_SIZE = 30.0
_LEAST_SHARE = 0.1
_LIMITS = {0.01: 0.01, 0.001: 0.0}
"""Share of the rounds that may have a propensity below each limit."""
_DIFFER = (
    "weighting changes the estimates: use valid ones (ArmMeans), and see audit.simulate_bias for how far "
    "adaptivity alone moves the sample mean; drift and contexts do it too"
)
_DRIFT = (
    "an arm's mean changed while it was sampled: estimates are averages over the rounds with their weights, "
    "and methods that assume means that stay the same do not apply; compare arms within batches "
    "(Contrast(...).batch_test) or by period"
)
_CONTEXTS = "; contexts that arrive differently later look the same"


def score_checks(log: AdaptiveLog, tables: dict[str, pd.DataFrame]) -> list[Check]:
    """Sample means against AIPW, and drift."""
    codes, refused = _usable(log)
    checks: dict[str, list[Check]] = {MEAN: [], HALVES: [], BATCHES: []}
    for name in checks:
        checks[name] += [Check(name, term, advice=reason) for term, reason in refused.items()]
    if codes.size:
        choice = _choice(log, codes)
        found = scored_rounds(Question(profile_of(log), codes), choice, RUNNING_MEAN)
        scores, weights = found.scores + found.origin, found.weights
        checks[MEAN] += _mean_checks(log, codes, choice, scores, weights, tables)
        checks[HALVES] += _half_checks(log, codes, scores, weights)
        checks[BATCHES] += _batch_checks(log, codes, scores, weights)
    place = {str(arm): code for code, arm in enumerate(log.arms)}
    return [
        check
        for rows in checks.values()
        for check in sorted(rows, key=lambda row: place.get(row.term, log.n_arms))
    ]


def _choice(log: AdaptiveLog, codes: IntArray) -> Choice:
    """AIPW with the weights that it has by default."""
    try:
        return choose("diagnose", log, codes, "aipw", None, None)
    except InvalidForLog:
        return Choice("aipw", "uniform")


def _usable(log: AdaptiveLog) -> tuple[IntArray, dict[str, str]]:
    """Arms whose scores can be compared, and why the others cannot."""
    if log.arrays.propensity is None:
        return np.zeros(0, dtype=np.int64), {"all arms": "the log has no propensities"}
    codes = np.arange(log.n_arms)
    never = profile_of(log).impossible[codes]
    pulls = np.bincount(log.arrays.action, minlength=log.n_arms)
    refused, kept = {}, []
    for code in codes.tolist():
        rewards = log.arrays.reward[log.arrays.action == code]
        if never[code]:
            refused[str(log.arms[code])] = (
                "an arm has propensity 0 in some rounds, where there is nothing to weight"
            )
        elif pulls[code] < _LEAST_PULLS:
            refused[str(log.arms[code])] = f"an arm has fewer than {_LEAST_PULLS} rewards"
        elif rewards.min() == rewards.max():
            refused[str(log.arms[code])] = "an arm's rewards are all the same"
        else:
            kept.append(code)
    return np.array(kept, dtype=np.int64), refused


def _mean_checks(
    log: AdaptiveLog,
    codes: IntArray,
    choice: Choice,
    scores: FloatArray,
    weights: FloatArray,
    tables: dict[str, pd.DataFrame],
) -> list[Check]:
    arrays = log.arrays
    chosen = indicators(arrays.action, codes)
    found = mean_differences(chosen, arrays.reward, scores, weights)
    mean = (arrays.reward @ chosen) / chosen.sum(axis=0)
    tables["arms"] = pd.DataFrame(
        {
            "arm": [log.arms[code] for code in codes],
            "pulls": chosen.sum(axis=0),
            "sample_mean": mean,
            "aipw": weighted_means(scores, weights).estimate,
            "weights": choice.weights,
            "difference": found.difference,
            "std_error": found.std_error,
        }
    )
    if _hardly_varying(log):
        reason = (
            "propensities do not change: both estimates are the same but for terms of order 1 / rounds, and "
            "their difference is not normal"
        )
        return [Check(MEAN, "all arms", advice=reason)]
    more = (
        "; the design chooses by context, so that they estimate different means"
        * profile_of(log).decides_by_context
    )
    return _difference_checks(MEAN, log, codes, found, _DIFFER + more)


def _hardly_varying(log: AdaptiveLog) -> bool:
    """Whether the propensities that are known never move."""
    if profile_of(log).constant_propensities:
        return True
    arrays = log.arrays
    if arrays.propensity is None:
        return True
    return all(
        bool(np.ptp(arrays.propensity[arrays.action == code]) <= 1e-9)
        for code in range(log.n_arms)
        if (arrays.action == code).any()
    ) and (arrays.propensities is None or bool((np.ptp(arrays.propensities, axis=0) <= 1e-9).all()))


def _difference_checks(
    name: str, log: AdaptiveLog, codes: IntArray, found: Differences, advice: str
) -> list[Check]:
    """One row an arm, and one for all together."""
    checks = []
    for place, code in enumerate(codes):
        z = float(found.z[place])
        if math.isnan(z):
            checks.append(Check(name, str(log.arms[code]), advice="what is compared does not vary"))
            continue
        log_p = math.log(2.0) + float(stats.norm.logsf(abs(z)))
        checks.append(Check(name, str(log.arms[code]), "z", z, min(0.0, log_p), "", advice))
    joint = found.joint
    if joint.df > 1:
        measure = f"chi2({joint.df})"
        checks.append(Check(name, "all arms", measure, joint.statistic, joint.log_pvalue, "", advice))
    return checks


def _half_checks(log: AdaptiveLog, codes: IntArray, scores: FloatArray, weights: FloatArray) -> list[Check]:
    split = log.n_rounds // 2
    action = log.arrays.action
    enough = np.array(
        [
            min((action[:split] == code).sum(), (action[split:] == code).sum()) >= _LEAST_PULLS
            for code in codes
        ]
    )
    checks = _too_few(HALVES, log, codes[~enough], "half")
    if enough.any():
        found = drift_differences(scores[:, enough], weights[:, enough], split)
        advice = _DRIFT + _CONTEXTS * bool(log.context)
        checks += _difference_checks(HALVES, log, codes[enough], found, advice)
    return checks


def _batch_checks(log: AdaptiveLog, codes: IntArray, scores: FloatArray, weights: FloatArray) -> list[Check]:
    batch = log.arrays.batch
    if batch is None or int(batch[-1]) == int(batch[0]):
        return [Check(BATCHES, "all arms", advice="the log has no batches, or one")]
    group = batch_groups(batch - int(batch[0]))
    checks = []
    for place, code in enumerate(codes):
        own = np.bincount(group[log.arrays.action == code], minlength=int(group.max()) + 1)
        if own.min() < _LEAST_PULLS:
            checks += _too_few(BATCHES, log, codes[[place]], "stretch of batches")
            continue
        test = homogeneity(scores[:, place], weights[:, place], group)
        if test.df == 0:
            reason = "what is compared does not vary"
            checks.append(Check(BATCHES, str(log.arms[code]), advice=reason))
            continue
        measure = f"chi2({test.df})"
        advice = _DRIFT + _CONTEXTS * bool(log.context)
        row = Check(BATCHES, str(log.arms[code]), measure, test.statistic, test.log_pvalue, "", advice)
        checks.append(row)
    return checks


def _too_few(name: str, log: AdaptiveLog, codes: IntArray, where: str) -> list[Check]:
    reason = f"an arm has fewer than {_LEAST_PULLS} rewards in a {where}"
    return [Check(name, str(log.arms[code]), advice=reason) for code in codes]


def arm_checks(log: AdaptiveLog, every: FloatArray | None, tables: dict[str, pd.DataFrame]) -> list[Check]:
    """Effective sample sizes and overlap; every (T, K)."""
    own = log.arrays.propensity
    if own is None:
        reason = "the log has no propensities"
        return [Check(name, "all arms", advice=reason) for name in ("effective sample size", "overlap")]
    codes = np.arange(log.n_arms)
    chosen = indicators(log.arrays.action, codes)
    size = effective_size(chosen / own[:, None])
    pulls = chosen.sum(axis=0)
    checks = []
    for code, arm in enumerate(log.arms):
        small = size[code] < min(_LEAST_SIZE, log.n_rounds) or size[code] < _LEAST_SHARE * pulls[code]
        advice = (
            "few rewards, or a few of many, carry an arm's weighted estimate: take weights that stabilise it "
            "(sqrt, two-point), and trust no normal interval of so small a sample"
        )
        verdict = CAUTION if small else FINE
        row = Check(
            "effective sample size",
            str(arm),
            "1/propensity weights",
            float(size[code]),
            math.nan,
            verdict,
            advice if small else "",
        )
        checks.append(row)
    if "arms" in tables:
        order = [log.arms.index(arm) for arm in tables["arms"]["arm"]]
        tables["arms"]["ess"] = size[order]
    known = every if every is not None else np.where(chosen > 0.0, own[:, None], np.nan)
    scope = "" if every is not None else " where chosen"
    for limit, share in _LIMITS.items():
        rounds = low_rounds(known, limit)
        for code, arm in enumerate(log.arms):
            low = rounds[code] > share * log.n_rounds
            advice = (
                "an arm can hardly be chosen in some rounds: its weighted estimate leans on the assumption "
                "that those rounds are like the others"
            )
            measure = f"rounds below {limit:g}{scope}"
            verdict = CAUTION if low else FINE
            row = Check(
                "overlap", str(arm), measure, float(rounds[code]), math.nan, verdict, advice if low else ""
            )
            checks.append(row)
    return checks
