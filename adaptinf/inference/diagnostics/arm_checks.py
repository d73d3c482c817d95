"""Checks of a log, arm by arm: estimates that should agree, effective sample sizes, and overlap.

References
----------
Hausman (1978), "Specification tests in econometrics". Hadad, Hirshberg, Zhan, Wager, Athey (2021),
"Confidence intervals for policy evaluation in adaptive experiments". Cochran (1954), "The combination of
estimates from different experiments".
Kish (1965), "Survey Sampling" (effective sample size). Hadad, Hirshberg, Zhan, Wager, Athey (2021),
"Confidence intervals for policy evaluation in adaptive experiments" (decay of propensities).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
import pandas as pd
from scipy import stats

from adaptinf.claims import Claim, propensities
from adaptinf.claims import diagnosis as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms.choice import choose
from adaptinf.inference.arms.question import Choice
from adaptinf.inference.diagnostics.accumulators import WEIGHTS, ScoreSums, score_sums
from adaptinf.inference.diagnostics.choice_checks import ChiSquare, chi_square
from adaptinf.inference.diagnostics.diagnosis_results import CAUTION, FINE, Check
from adaptinf.inference.scores.score_stream import stream_of
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog
from adaptinf.sums import Sums
from adaptinf.typing import BoolArray, FloatArray, IntArray

# A line through fewer points fits well even without a trend.
_FEW_BLOCKS = 4
# Propensities are read in blocks of rows, which avoids a second array of all of them.
_BLOCK = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class Decay:
    """Smallest propensities in blocks of rounds; first and last rounds have shape (B,), smallest (B, k)."""

    first: FloatArray
    last: FloatArray
    smallest: FloatArray
    exponent: float


def fitted_decay(propensities: FloatArray) -> Decay:
    """The rate at which the smallest propensities decrease.

    Shapes: propensities (T, k).

    Two-point weights require an exponent that was fixed before the data were collected. With an exponent
    fitted to the log, weights would depend on the future, and estimates would not be asymptotically normal.
    """

    def least(start: int, stop: int) -> FloatArray:
        found = np.full(propensities.shape[1], np.inf)
        for low in range(start, stop, _BLOCK):
            part = propensities[low : min(low + _BLOCK, stop)]
            found = np.minimum(found, np.min(part, axis=0, where=part > 0.0, initial=np.inf))
        return found

    return decay_of(len(propensities), least)


def fitted_chosen_decay(action: IntArray, propensity: FloatArray, n_arms: int) -> Decay:
    """The same from the chosen arms' propensities alone; action and propensity have shape (T,)."""

    def least(start: int, stop: int) -> FloatArray:
        found = np.full(n_arms, np.inf)
        np.minimum.at(found, action[start:stop], propensity[start:stop])
        return found

    return decay_of(len(action), least)


def decay_of(rounds: int, least: Callable[[int, int], FloatArray]) -> Decay:
    """The smallest propensities in blocks that double in length, and the exponent of a fitted power law."""
    edges = np.unique([0, *(2**power for power in range(3, 64) if 2**power < rounds), rounds])
    smallest = np.array([least(int(start), int(stop)) for start, stop in itertools.pairwise(edges)])
    smallest[np.isinf(smallest)] = np.nan
    lowest = np.fmin.reduce(smallest, axis=1)
    known = ~np.isnan(lowest)
    exponent = math.nan
    if known.sum() >= _FEW_BLOCKS:
        time = np.log(edges[1:][known])
        centred = time - time.mean()
        # Constant propensities have the exponent 0; without rounding, the sum's rounding error would appear
        # instead.
        exponent = round(-float(centred @ np.log(lowest[known]) / (centred @ centred)), 12) + 0.0
    return Decay(edges[:-1] + 1.0, edges[1:].astype(np.float64), smallest, exponent)


def low_rounds(propensities: FloatArray, limit: float) -> FloatArray:
    """Number of rounds in which each arm's propensity is below a limit, including zeros.

    Shapes: propensities (T, k); returns (k,).
    """
    found = np.zeros(propensities.shape[1])
    for low in range(0, len(propensities), _BLOCK):
        found += np.count_nonzero(propensities[low : low + _BLOCK] < limit, axis=0)
    return found


# Standard errors below this share of a mean are rounding error.
_CONSTANT = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Differences:
    """Differences between two estimates for the same arms, which have mean 0 under the null.

    Shapes: difference (k,), covariance (k, k).
    """

    difference: FloatArray
    covariance: FloatArray

    @property
    def std_error(self) -> FloatArray:
        """Standard errors, shape (k,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)), dtype=np.float64)

    @property
    def z(self) -> FloatArray:
        """Differences divided by their standard errors, shape (k,); NaN if a standard error is 0."""
        size = self.std_error
        return np.asarray(self.difference / np.where(size > 0.0, size, np.nan), dtype=np.float64)

    @property
    def joint(self) -> ChiSquare:
        """Joint test that all differences are 0."""
        return chi_square(self.difference, self.covariance)


def mean_differences(sums: ScoreSums) -> Differences:
    """Sample means minus weighted means of scores.

    Hausman's variance, which is the variance of one estimate minus that of the other, requires that the
    covariance of the two estimates equals the variance of the sample mean. This holds if propensities were
    fixed in advance and rewards have a common variance, but not under adaptive collection, where the result
    may even be negative.
    """
    return _settled(sums.change, sums.change_covariance, sums.mean)


def drifts(sums: ScoreSums) -> Differences:
    """Slopes of the arms' scores over time, as changes from the first round of the log to the last."""
    return _settled(sums.drift, sums.drift_covariance, sums.estimate)


def common_drift(slopes: Differences) -> tuple[float, float]:
    """A common slope for all arms, weighted by inverse variances, and its standard error.

    Both are NaN if no slope has a positive standard error.
    """
    size = slopes.std_error
    kept = size > 0.0
    if not kept.any():
        return math.nan, math.nan
    share = 1.0 / size[kept] ** 2
    share /= share.sum()
    spread = float(share @ slopes.covariance[np.ix_(kept, kept)] @ share)
    return float(share @ slopes.difference[kept]), math.sqrt(max(spread, 0.0))


def _settled(difference: FloatArray, covariance: FloatArray, scale: FloatArray) -> Differences:
    """Differences whose variances are set to 0 if they are only rounding error."""
    size = np.sqrt(np.diag(covariance))
    constant = size <= _CONSTANT * np.maximum(np.abs(scale), np.finfo(np.float64).tiny)
    covariance = covariance.copy()
    covariance[constant, :] = covariance[:, constant] = 0.0
    return Differences(difference, covariance)


def batch_groups(batch: IntArray, most: int = 6) -> IntArray:
    """Consecutive batches merged into a few groups with about the same number of rounds.

    Shapes: batch (T,); returns (T,).
    """
    return stretches(np.bincount(batch).astype(np.float64), most)[batch]


def stretches(rounds: FloatArray, most: int = 6) -> IntArray:
    """The group of each batch, if consecutive batches are merged into a few groups of similar size.

    Shapes: rounds, the number of rounds in each batch, (B,); returns (B,).
    """
    middle = np.cumsum(rounds) - 0.5 * rounds
    group = np.minimum((middle * most / rounds.sum()).astype(np.int64), most - 1)
    return np.asarray(np.unique(group, return_inverse=True)[1].reshape(-1), dtype=np.int64)


def homogeneity(means: FloatArray, variances: FloatArray) -> ChiSquare:
    """Test that an arm's mean is the same in all groups of rounds; means and variances have shape (G,)."""
    if means.size < 2 or not (variances > (_CONSTANT * np.abs(means)) ** 2).all():
        return ChiSquare(np.nan, 0)
    centre = float(np.sum(means / variances) / np.sum(1.0 / variances))
    return ChiSquare(float(np.sum((means - centre) ** 2 / variances)), means.size - 1)


MIN_ROUNDS = 33
"""Smallest number of rounds with four blocks, which are needed to fit an exponent."""
MEAN, TREND, BATCHES = "sample mean against AIPW", "drift over time", "drift by batch"
COMMON = "common drift"
MISSED = claims.COULD_BE_MISSED
_POWER = 0.8
# With fewer rewards, means are too far from normal for z tests.
_LEAST_PULLS = 20
# An effective sample size is reported as small if a normal approximation needs more rewards, or if it is less
# than a tenth of the rewards collected.
_LEAST_SIZE = 30.0
_LEAST_SHARE = 0.1
LIMITS = {0.01: 0.01, 0.001: 0.0}
"""Largest permitted share of rounds with propensities below each limit."""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Sums of scores for the arms that can be compared, and the reasons why the others cannot.

    Shapes: codes, squares (k,), counts (G, k). `squares` contains sums of squares of each arm's rewards about
    their mean, and `counts` its numbers of rewards in each block of batches. `settled` states whether
    propensities never change.
    """

    codes: IntArray
    refused: dict[str, str]
    weights: str | None
    sums: ScoreSums
    squares: FloatArray
    counts: FloatArray
    settled: bool


def score_checks(log: AdaptiveLog | Sums, scored: Scored, tables: dict[str, pd.DataFrame]) -> list[Check]:
    """Checks of sample means against AIPW, and of drift."""
    checks: dict[str, list[Check]] = {MEAN: [], COMMON: [], TREND: [], BATCHES: []}
    for name in checks:
        checks[name] += [Check(name, term, claims=(reason,)) for term, reason in scored.refused.items()]
    if scored.codes.size:
        checks[MEAN] += _mean_checks(log, scored, tables)
        for check in _trend_checks(log, scored, tables):
            checks[check.name].append(check)
        checks[BATCHES] += _batch_checks(log, scored)
    return [check for rows in checks.values() for check in _by_arm(log, rows)]


def _by_arm(log: AdaptiveLog | Sums, checks: list[Check]) -> list[Check]:
    """The checks in the order of the arms, followed by those for all arms together."""
    place = {str(arm): code for code, arm in enumerate(log.arms)}
    return sorted(checks, key=lambda row: place.get(row.term, log.n_arms))


def missed_checks(
    log: AdaptiveLog | Sums, scored: Scored, tables: dict[str, pd.DataFrame], level: float
) -> list[Check]:
    """Rows on the drift that tests at this level could miss, for scores tested by `score_checks`."""
    checks = [Check(MISSED, term, claims=(reason,)) for term, reason in scored.refused.items()]
    if scored.codes.size:
        checks += _missed(scored, tables["drift"], level)
    return _by_arm(log, checks)


def scored_rows(log: AdaptiveLog) -> Scored:
    """Sums of scores for the rounds of a log."""
    if log.arrays.propensity is None:
        return nothing_scored({"all arms": propensities.NONE()})
    action, reward = log.arrays.action, log.arrays.reward
    low, high = np.full(log.n_arms, np.inf), np.full(log.n_arms, -np.inf)
    np.minimum.at(low, action, reward)
    np.maximum.at(high, action, reward)
    pulls = np.bincount(action, minlength=log.n_arms).astype(np.float64)
    codes, refused = usable(log, profile_of(log).impossible, pulls, low == high)
    if not codes.size:
        return nothing_scored(refused)
    choice, group = score_weights(log, codes), _groups(log)
    counts = np.bincount(group * log.n_arms + action, minlength=(int(group[-1]) + 1) * log.n_arms)
    squares = np.zeros(log.n_arms)
    np.add.at(squares, action, (reward - _means(log)[action]) ** 2)
    return Scored(
        codes,
        refused,
        choice.weights,
        _sums(log, codes, choice, group),
        squares[codes],
        counts.reshape(-1, log.n_arms)[:, codes].astype(np.float64),
        _hardly_varying(log),
    )


def nothing_scored(refused: dict[str, str]) -> Scored:
    """Sums of scores if no arms can be compared, with the reasons."""
    none, one, two = np.zeros(0), np.zeros((0, 0)), np.zeros((1, 0))
    sums = ScoreSums(none, none, none, none, one, none, one, two, two)
    return Scored(np.zeros(0, dtype=np.int64), refused, None, sums, none, two, True)


def _groups(log: AdaptiveLog) -> IntArray:
    """The group of batches of each round, shape (T,); without batches, all rounds form one group."""
    batch = log.arrays.batch
    if batch is None or int(batch[-1]) == int(batch[0]):
        return np.zeros(log.n_rounds, dtype=np.int64)
    return batch_groups(batch - int(batch[0]))


def _sums(log: AdaptiveLog, codes: IntArray, choice: Choice, group: IntArray) -> ScoreSums:
    arrays, kind = log.arrays, choice.weights or "uniform"
    assert arrays.propensity is not None
    # Uniform weights use only the chosen arms' propensities, so the matrix of all propensities need not be
    # read.
    every = None if kind == "uniform" else arrays.propensities
    rounds = arrays.action, arrays.reward, arrays.propensity, every, codes
    return score_sums(stream_of(*rounds, weights=kind, decay=choice.decay), group)


def score_weights(log: AdaptiveLog | Sums, codes: IntArray) -> Choice:
    """AIPW with its default weights if they are separate for each arm; otherwise, with uniform weights."""
    try:
        given = ("diagnose", cast(AdaptiveLog, log), codes, "aipw", None, None)
        # Each arm is compared with itself over time, so it may have weights of its own, as if means were
        # constant.
        found = choose(*given, stationary=True)
    except InvalidForLog:
        return Choice("aipw", "uniform")
    return found if found.weights in WEIGHTS else Choice("aipw", "uniform")


def usable(
    log: AdaptiveLog | Sums, impossible: IntArray, pulls: FloatArray, same: BoolArray
) -> tuple[IntArray, dict[str, str]]:
    """Arms whose scores can be compared, and the reasons why the others cannot.

    Shapes (K,): impossible, the number of rounds with propensity 0; pulls, the number of rewards; same,
    whether all rewards are equal.
    """
    refused: dict[str, str] = {}
    kept = []
    for code, arm in enumerate(map(str, log.arms)):
        if impossible[code]:
            refused[arm] = claims.NEVER_POSSIBLE()
        elif pulls[code] < _LEAST_PULLS:
            refused[arm] = claims.FEW_REWARDS(fewest=_LEAST_PULLS)
        elif same[code]:
            refused[arm] = claims.ONE_REWARD()
        else:
            kept.append(code)
    return np.array(kept, dtype=np.int64), refused


def _mean_checks(log: AdaptiveLog | Sums, scored: Scored, tables: dict[str, pd.DataFrame]) -> list[Check]:
    sums, codes = scored.sums, scored.codes
    found = mean_differences(sums)
    tables["arms"] = pd.DataFrame(
        {
            "arm": [log.arms[code] for code in codes],
            "pulls": sums.pulls,
            "sample_mean": sums.mean,
            "aipw": sums.estimate,
            "weights": scored.weights,
            "difference": found.difference,
            "std_error": found.std_error,
        }
    )
    if scored.settled:
        return [Check(MEAN, "all arms", claims=(claims.SETTLED(),))]
    differ = [claims.ESTIMATES_CHANGE(), claims.USE_VALID_ONES(), claims.DRIFT_TOO()]
    if profile_of(log).decides_by_context:
        differ.append(claims.DIFFERENT_MEANS())
    return _difference_checks(MEAN, log, codes, found, tuple(differ))


def _hardly_varying(log: AdaptiveLog) -> bool:
    """Whether the known propensities never change."""
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
    name: str, log: AdaptiveLog | Sums, codes: IntArray, found: Differences, differ: tuple[str, ...]
) -> list[Check]:
    """One row for each arm, and one for all arms together."""
    checks, every = [], found.z
    log_pvalues = math.log(2.0) + stats.norm.logsf(np.abs(every))
    for code, z, log_p in zip(codes, every.tolist(), log_pvalues.tolist(), strict=True):
        if math.isnan(z):
            checks.append(Check(name, str(log.arms[code]), claims=(claims.UNVARYING(),)))
            continue
        checks.append(Check(name, str(log.arms[code]), "z", z, min(0.0, log_p), "", differ))
    joint = found.joint
    if joint.df > 1:
        measure = f"chi2({joint.df})"
        checks.append(Check(name, "all arms", measure, joint.statistic, joint.log_pvalue, "", differ))
    return checks


def _changed(log: AdaptiveLog | Sums) -> tuple[str, ...]:
    """What a changing mean implies for estimates, and how arms can still be compared."""
    found = claims.MEAN_CHANGED(), claims.AVERAGES(), claims.COMPARE_WITHIN()
    return (*found, claims.CONTEXTS_CHANGE()) if log.context else found


def _trend_checks(log: AdaptiveLog | Sums, scored: Scored, tables: dict[str, pd.DataFrame]) -> list[Check]:
    """One row for the slope of each arm, and one for the common slope."""
    sums, codes = scored.sums, scored.codes
    found, changed = drifts(sums), _changed(log)
    slopes, errors = found.difference, found.std_error
    terms, freedom = [str(log.arms[code]) for code in codes], sums.pulls - 2.0
    if len(codes) > 1:
        slope, error = common_drift(found)
        slopes, errors = np.append(slopes, slope), np.append(errors, error)
        terms.append("all arms")
        freedom = np.append(freedom, sums.pulls.sum() - len(codes) - 1.0)
    checks = [] if len(codes) > 1 else [Check(COMMON, "all arms", claims=(claims.ONE_ARM(),))]
    ratios = np.asarray(slopes / np.where(errors > 0.0, errors, np.nan))
    log_pvalues = np.asarray(math.log(2.0) + stats.t.logsf(np.abs(ratios), freedom))
    for place, (term, t, log_p) in enumerate(zip(terms, ratios.tolist(), log_pvalues.tolist(), strict=True)):
        name = TREND if place < len(codes) else COMMON
        if math.isnan(t):
            checks.append(Check(name, term, claims=(claims.UNVARYING(),)))
            continue
        checks.append(Check(name, term, "t, slope", t, min(0.0, log_p), "", changed))
    tables["drift"] = pd.DataFrame({"of": terms, "change": slopes, "std_error": errors, "df": freedom})
    return checks


def _missed(scored: Scored, frame: pd.DataFrame, level: float) -> list[Check]:
    """Rows on the drift detected with power 80% at this level, in standard deviations of rewards."""
    squares, df = scored.squares, scored.sums.pulls - 1.0
    size = np.sqrt(squares / df)
    if len(frame) > len(squares):
        size = np.append(size, math.sqrt(squares.sum() / df.sum()))
    critical = stats.t.isf(0.5 * level, frame["df"])
    frame["sd"] = size
    frame["could_be_missed"] = (critical + stats.norm.ppf(_POWER)) * frame["std_error"] / size
    checks = []
    for term, least in zip(frame["of"], frame["could_be_missed"], strict=True):
        if math.isfinite(least):
            checks.append(Check(MISSED, term, "sd, power 80%", float(least), math.nan, FINE))
        else:
            checks.append(Check(MISSED, term, claims=(claims.UNVARYING(),)))
    return checks


def _means(log: AdaptiveLog) -> FloatArray:
    """Mean reward of each arm, shape (K,); 0 for arms that were never chosen."""
    arrays = log.arrays
    count = np.bincount(arrays.action, minlength=log.n_arms)
    total = np.bincount(arrays.action, weights=arrays.reward, minlength=log.n_arms)
    return np.asarray(total / np.maximum(count, 1), dtype=np.float64)


def _batch_checks(log: AdaptiveLog | Sums, scored: Scored) -> list[Check]:
    if len(scored.counts) == 1:
        return [Check(BATCHES, "all arms", claims=(claims.NO_BATCHES(),))]
    sums, checks, changed = scored.sums, [], _changed(log)
    for place, code in enumerate(scored.codes):
        term = str(log.arms[code])
        if scored.counts[:, place].min() < _LEAST_PULLS:
            checks.append(Check(BATCHES, term, claims=(claims.FEW_IN_STRETCH(fewest=_LEAST_PULLS),)))
            continue
        test = homogeneity(sums.group_mean[:, place], sums.group_variance[:, place])
        if test.df == 0:
            checks.append(Check(BATCHES, term, claims=(claims.UNVARYING(),)))
            continue
        measure = f"chi2({test.df})"
        checks.append(Check(BATCHES, term, measure, test.statistic, test.log_pvalue, "", changed))
    return checks


def arm_checks(log: AdaptiveLog, every: FloatArray | None, tables: dict[str, pd.DataFrame]) -> list[Check]:
    """Rows on effective sample sizes, overlap and availability; every has shape (T, K)."""
    own = log.arrays.propensity
    if own is None:
        reason = propensities.NONE()
        return [Check(name, "all arms", claims=(reason,)) for name in ("effective sample size", "overlap")]
    action = log.arrays.action
    gain, squares, pulls = (
        np.bincount(action, weights=own**-power, minlength=log.n_arms).astype(np.float64)
        for power in (1.0, 2.0, 0.0)
    )
    size = gain**2 / np.where(squares > 0.0, squares, 1.0)
    if "arms" in tables:
        order = [log.arms.index(arm) for arm in tables["arms"]["arm"]]
        tables["arms"]["ess"] = size[order]
    counts = {
        limit: np.bincount(action[own < limit], minlength=log.n_arms).astype(np.float64)
        if every is None
        else low_rounds(every, limit)
        for limit in LIMITS
    }
    scope = claims.BELOW if every is not None else claims.BELOW_WHERE_CHOSEN
    absent = np.zeros(log.n_arms) if every is None else unavailable_rounds(every)
    last = np.ones(log.n_arms) if every is None else every[-1]
    return [
        *size_checks(log, size, pulls),
        *overlap_checks(log, counts, scope, absent),
        *availability_checks(log, absent, last),
    ]


def unavailable_rounds(propensities: FloatArray) -> FloatArray:
    """Numbers of rounds with propensity 0, for arms that are assigned at random in other rounds; else 0.

    Shapes: propensities (T, k); returns (k,).
    """
    none, drawn = np.zeros(propensities.shape[1]), np.zeros(propensities.shape[1], dtype=bool)
    for low in range(0, len(propensities), _BLOCK):
        part = propensities[low : low + _BLOCK]
        none += np.count_nonzero(part == 0.0, axis=0)
        drawn |= ((part > 0.0) & (part < 1.0)).any(axis=0)
    return np.where(drawn, none, 0.0)


def availability_checks(log: AdaptiveLog | Sums, absent: FloatArray, last: FloatArray) -> list[Check]:
    """Rows on rounds in which arms could not be chosen, and whether they return; absent, last (K,)."""
    checks = []
    for code in np.flatnonzero(absent).tolist():
        gone = last[code] == 0.0
        why = (claims.NOT_THERE(), claims.WENT_AWAY()) if gone else (claims.NOT_THERE(),)
        figures = claims.ABSENT(), float(absent[code]), math.nan, CAUTION if gone else FINE
        checks.append(Check("availability", str(log.arms[code]), *figures, why))
    return checks


def size_checks(log: AdaptiveLog | Sums, size: FloatArray, pulls: FloatArray) -> list[Check]:
    """Rows on effective sample sizes; size and pulls have shape (K,)."""
    checks = []
    for code, arm in enumerate(log.arms):
        small = size[code] < min(_LEAST_SIZE, log.n_rounds) or size[code] < _LEAST_SHARE * pulls[code]
        figures = "1/propensity weights", float(size[code]), math.nan
        why = (claims.FEW_CARRY(), claims.STABILISE()) if small else ()
        checks.append(Check("effective sample size", str(arm), *figures, CAUTION if small else FINE, why))
    return checks


def overlap_checks(
    log: AdaptiveLog | Sums, counts: dict[float, FloatArray], scope: Claim, absent: FloatArray
) -> list[Check]:
    """Rows on rounds in which an available arm had a propensity below each limit; counts, absent (K,)."""
    checks = []
    for limit, share in LIMITS.items():
        rounds = counts[limit] - absent
        for code, arm in enumerate(log.arms):
            low = rounds[code] > share * log.n_rounds
            figures = scope(limit=limit), float(rounds[code]), math.nan
            why = (claims.HARDLY_CHOSEN(),) if low else ()
            checks.append(Check("overlap", str(arm), *figures, CAUTION if low else FINE, why))
    return checks
