"""Regressions with one weight per round for all arms, from the log to the fit.

A row x(a, c) of the model matrix depends on the arm a and the contexts c. The differences x(a, c) - x(r, c)
from a reference arm r contain everything that the formula implies for arms in a round. Given the past, the
difference between the arms' scores has mean (x(a, c) - x(r, c))'beta, whatever effects are common to all
rewards of the round. The coefficients that involve the arm are therefore estimated by projecting the score
differences of each pair, with weights of the pair that do not depend on the round's draw. The other
coefficients are estimated from the remainder by least squares with weights h / e, the round's weight divided
by the propensity of the chosen arm.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments" (weights that are known before the arm is drawn). Semenova, Chernozhukov (2021), "Debiased
machine learning of conditional average treatment effects and other causal functions" (projections of
scores). Satterthwaite (1946), "An approximate distribution of estimates of variance components".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims.propensities import EVERY_ONE_NEEDED
from adaptinf.claims.regression import weighted_regression as claims
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.distributions.references import StudentReference
from adaptinf.inference.regression.design import CoefficientFit, RegressionData
from adaptinf.inference.regression.facts.weighted_regression_facts import WeightedFacts
from adaptinf.inference.regression.least_squares import FULL_LEVERAGE, least_squares
from adaptinf.inference.regression.regression_results import CoefficientTests
from adaptinf.inference.regression.score_projection import weighted_projection
from adaptinf.inference.regression.weighted.round_weights import shared_weights
from adaptinf.inference.regression.weighted.running import Rows, predictions_of_arms, running_regression
from adaptinf.inference.scores.inverse import aipw_scores, indicators, predictions
from adaptinf.inference.scores.means import effective_size
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile

# In directions with smaller eigenvalues, the rounds contain no information.
_NULL = 1e-10
PairWeights = Callable[[int, int], FloatArray]
"""A function that returns the weights of rounds for the difference between two arms, shape (n,)."""


@dataclass(frozen=True, slots=True, eq=False)
class Gap:
    """The columns in which rows of an arm differ from those of the reference, and the differences.

    Shapes: columns (m,), rows (n, m).
    """

    code: int
    columns: IntArray
    rows: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class ArmColumns:
    """What a formula implies for arms: each arm's gap to the reference, and a basis of coefficients.

    Shapes: of_arms (p, q), others (p, p - q). `of_arms` spans the combinations of coefficients that
    differences between arms determine, and `others` spans the remaining combinations.
    """

    reference: int
    gaps: tuple[Gap, ...]
    of_arms: FloatArray
    others: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class SharedFit:
    """Coefficients, with the contribution of every round to their errors.

    Shapes: estimate, freedom, ess (p,), influence (n, p). `decided` is the number of rounds with leverage 1.
    """

    estimate: FloatArray
    influence: FloatArray
    freedom: FloatArray
    ess: FloatArray
    decided: int


@dataclass(frozen=True, slots=True, eq=False)
class _Effects:
    """The part that differences between arms determine; estimate, freedom (q,), influence, pull (n, q)."""

    estimate: FloatArray
    influence: FloatArray
    pull: FloatArray
    freedom: FloatArray


def arm_columns(rows: Rows, codes: IntArray, actual: FloatArray, action: IntArray) -> ArmColumns | None:
    """Differences between arms in the columns; None if these do not depend on arm and contexts alone.

    Shapes: codes (k,), actual (n, p), action (n,).

    The reference is the arm that has no columns of its own, if there is one, and otherwise the first arm.
    """
    first = rows(int(codes[0]))
    moved = np.zeros(actual.shape[1], dtype=bool)
    used: dict[int, BoolArray] = {}
    for code in codes:
        own = first if code == codes[0] else rows(int(code))
        mine = action == code
        if own.shape != actual.shape or not np.array_equal(own[mine], actual[mine]):
            return None
        moved |= (own != first).any(axis=0)
        used[int(code)] = np.asarray(own.any(axis=0))
    reference = next((code for code, some in used.items() if not some[moved].any()), int(codes[0]))
    base = first if reference == codes[0] else rows(reference)
    gaps = tuple(_gaps(rows, codes, base, reference))
    size = actual.shape[1]
    gram = np.zeros((size, size))
    for gap in gaps:
        gram[np.ix_(gap.columns, gap.columns)] += gap.rows.T @ gap.rows
    return ArmColumns(reference, gaps, *_bases(gram, moved))


def _gaps(rows: Rows, codes: IntArray, base: FloatArray, reference: int) -> Iterator[Gap]:
    for code in codes:
        if code == reference:
            continue
        gap = rows(int(code)) - base
        columns = np.flatnonzero(gap.any(axis=0))
        if len(columns):
            yield Gap(int(code), columns, gap[:, columns])


def _bases(gram: FloatArray, moved: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Bases of the part that differences between arms determine, and of the rest; gram (p, p), moved (p,)."""
    size = len(moved)
    place = np.flatnonzero(moved)
    fixed = np.eye(size)[:, ~moved]
    own = gram[np.ix_(place, place)]
    scale = np.sqrt(np.diag(own))
    values, vectors = np.linalg.eigh(own / np.outer(scale, scale))
    lost = values <= _NULL * len(place)
    if not lost.any():
        return np.eye(size)[:, place], fixed
    # If each arm has columns of its own, differences between arms do not determine their common level.
    null = vectors[:, lost] / scale[:, None]
    whole, _ = np.linalg.qr(np.column_stack([null, np.eye(len(place))]))
    told, left = np.zeros((size, int((~lost).sum()))), np.zeros((size, int(lost.sum())))
    told[place] = whole[:, null.shape[1] : len(place)]
    left[place] = null
    return told, np.column_stack([fixed, left])


def shared_regression(
    x: FloatArray,
    y: FloatArray,
    action: IntArray,
    own: FloatArray,
    common: FloatArray,
    arms: ArmColumns | None,
    pair_weights: PairWeights,
    outcome: FloatArray,
    start: int,
    codes: IntArray,
) -> SharedFit:
    """Regress y on x with weights shared by the arms.

    Shapes: x (n, p), y, action, own, common (n,), outcome (n, k), codes (k,). `own` is the chosen arm's
    propensity, `common` the weight h of the round, and `outcome` contains predictions by arm from the past
    alone. Scores are used from round `start` on.

    Without `arms`, all coefficients are estimated by least squares with weights h / e. With `arms`, the
    coefficients of arms solve sum over pairs h d ((G_a - G_r) - d'b) = 0, where d = x(a, c) - x(r, c) and G
    are the scores. Variances are sums of squares of each round's contribution to a coefficient through both
    steps.
    """
    size = x.shape[1]
    of_arms, others = (np.zeros((size, 0)), np.eye(size)) if arms is None else (arms.of_arms, arms.others)
    effects = _nothing(len(y))
    if arms is not None:
        effects = _effects(y, action, own, arms, pair_weights, outcome, start, codes)
    told = x @ of_arms
    rest, weight = x @ others, np.sqrt(common / own)
    estimate, influence = of_arms @ effects.estimate, effects.influence @ of_arms.T
    pull, decided = effects.pull @ of_arms.T, 0
    if others.shape[1]:
        names = tuple(map(str, range(others.shape[1])))
        solved = least_squares(weight[:, None] * rest, weight * (y - told @ effects.estimate), names)
        left = 1.0 - solved.leverage()
        # As for HC3, division by 1 - leverage keeps errors from being too small with few rounds.
        scaled = solved.residual / np.where(left > FULL_LEVERAGE, left, np.nan)
        lever = solved.q @ solved.root.T
        carried = lever.T @ (weight[:, None] * told)
        estimate = estimate + others @ solved.coefficient
        influence = influence + (lever * scaled[:, None] - effects.influence @ carried.T) @ others.T
        pull = pull + (lever * weight[:, None] - effects.pull @ carried.T) @ others.T
        decided = solved.decided
    share = pull**2
    freedom = np.maximum(effective_size(share) - 1.0, 0.0)
    # Degrees of freedom of single coefficients are known from the first step; only combinations need the
    # approximation.
    known = np.flatnonzero((of_arms != 0.0).sum(axis=0) == 1)
    freedom[np.argmax(of_arms[:, known] != 0.0, axis=0)] = effects.freedom[known]
    return SharedFit(estimate, influence, freedom, effective_size(np.abs(pull)), decided)


def _nothing(n: int) -> _Effects:
    return _Effects(np.zeros(0), np.zeros((n, 0)), np.zeros((n, 0)), np.zeros(0))


def _effects(
    y: FloatArray,
    action: IntArray,
    own: FloatArray,
    arms: ArmColumns,
    pair_weights: PairWeights,
    outcome: FloatArray,
    start: int,
    codes: IntArray,
) -> _Effects:
    """Projections of score differences, separately for each arm unless arms share coefficients."""
    n, q = len(y), arms.of_arms.shape[1]
    origin = float(y[0])
    chosen = indicators(action, codes)
    scores = aipw_scores(chosen, y - origin, own, outcome - origin)
    place = {int(code): j for j, code in enumerate(codes)}
    base = place[arms.reference]
    found = _Effects(np.zeros(q), np.zeros((n, q)), np.zeros((n, q)), np.zeros(q))
    for group in _groups(arms):
        stacked: list[tuple[Any, ...]] = []
        terms = _terms(arms, group)
        for gap in group:
            j = place[gap.code]
            weight = pair_weights(arms.reference, gap.code)
            used = np.flatnonzero(weight > 0.0)
            used = used[used >= start]
            if len(used) == 0:
                raise ParameterError(
                    "score differences", ["two of the arms were never both possible in the same round"]
                )
            h, pair = weight[used], chosen[used][:, [base, j]]
            gain = pair * (h / own[used])[:, None]
            rows = gap.rows[used] @ arms.of_arms[np.ix_(gap.columns, terms)]
            step = (pair[:, 1] - pair[:, 0]) / own[used]
            stacked.append((rows, scores[used, j] - scores[used, base], h, gain, step, used))
        rows, score, h, gain, step, used = (np.concatenate(part) for part in zip(*stacked, strict=True))
        names = tuple(map(str, range(len(terms))))
        fit = weighted_projection(rows, score, h, names, "HC0", gain)
        found.estimate[terms], found.freedom[terms] = fit.coefficient, fit.df
        pull = fit.pull * (np.sqrt(h) * step)[:, None]
        for column, term in enumerate(terms):
            found.influence[:, term] = np.bincount(used, weights=fit.influence[:, column], minlength=n)
            found.pull[:, term] = np.bincount(used, weights=pull[:, column], minlength=n)
    return found


def _groups(arms: ArmColumns) -> Iterator[tuple[Gap, ...]]:
    """Groups of arms to fit: each arm alone if no two share a coefficient, and otherwise all together."""
    terms = [_terms(arms, (gap,)) for gap in arms.gaps]
    if sum(map(len, terms)) == arms.of_arms.shape[1]:
        yield from ((gap,) for gap in arms.gaps)
    elif arms.gaps:
        yield arms.gaps


def _terms(arms: ArmColumns, group: tuple[Gap, ...]) -> IntArray:
    """The combinations of coefficients that the gaps of these arms involve."""
    touched = np.zeros(arms.of_arms.shape[1], dtype=bool)
    for gap in group:
        touched |= (arms.of_arms[gap.columns] != 0.0).any(axis=0)
    return np.flatnonzero(touched)


_LARGEST = 2 * 10**8
"""Largest total number of entries of the arms' model matrices for which differences are projected."""
_KEPT = 4 * 10**6
"""Largest total number of entries for which model matrices are kept during a fit: 32 MB."""


def fit_shared(facts: WeightedFacts, kind: str) -> CoefficientFit:
    """Fit coefficients with combined or uniform weights."""
    profile, codes = facts.profile, facts.arms_used
    if kind == "combined" and profile.propensities is None:
        ways = ("weights='uniform'",)
        raise InvalidForLog("weighted with combined weights", EVERY_ONE_NEEDED(), ways)
    data = _computed_once(facts.data, codes)
    # Least squares refuses columns that cannot be distinguished, and names them.
    plain = data.squares
    arms = _columns_of_arms(data, codes)
    fit = _shared(data, profile, kind, arms, codes)
    errors = np.sqrt(np.einsum("tj,tj->j", fit.influence, fit.influence))
    errors = np.where(fit.freedom > 0.0, errors, np.nan)
    if plain.perfect:
        errors[:] = 0.0
    df = np.minimum(fit.freedom, float(data.nobs - data.size))
    covariance = fit.influence.T @ fit.influence
    return CoefficientFit(
        estimate=fit.estimate,
        std_error=errors,
        reference=StudentReference(fit.estimate, errors, df),
        estimator="weighted",
        covariance=covariance,
        weights=kind,
        details={"ess": fit.ess},
        df_resid=float(data.nobs - data.size),
        joint=CoefficientTests(fit.estimate, covariance, np.eye(data.size), df),
        decided=fit.decided,
        found=arms,
    )


def _computed_once(data: RegressionData, codes: IntArray) -> RegressionData:
    """The same data with model matrices of arms that are computed only once if they are small enough."""
    if data.rows_of is None or data.nobs * data.size * len(codes) > _KEPT:
        return data
    return replace(data, rows_of=cache(data.rows_of))


def _columns_of_arms(data: RegressionData, codes: IntArray) -> ArmColumns | None:
    """What the formula implies for arms; None if this is unknown or would need too much memory."""
    if data.rows_of is None or len(codes) < 2 or data.nobs * data.size * len(codes) > _LARGEST:
        return None
    return arm_columns(data.rows_of, codes, data.x, data.action)


def _shared(
    data: RegressionData, profile: LogProfile, kind: str, arms: ArmColumns | None, codes: IntArray
) -> SharedFit:
    assert profile.propensity is not None

    def weights(some: IntArray, jointly: bool = True) -> FloatArray:
        if kind == "combined":
            return shared_weights(profile, some, jointly=jointly)[data.rounds]
        every = profile.propensities
        possible = np.ones(data.nobs) if every is None else every[data.rounds][:, some] > 0.0
        return np.asarray(possible if every is None else possible.all(axis=1) | (not jointly), dtype=float)

    common = weights(codes, jointly=arms is None)
    if not common.any():
        raise InvalidForLog("weighted", claims.NEVER_TOGETHER(), ())
    known = profile.log.arrays.known
    values, start = _outcome(data, arms, codes, None if known is None else known[data.rounds])
    try:
        return shared_regression(
            data.x,
            data.y,
            data.action,
            profile.propensity[data.rounds],
            common,
            arms,
            lambda control, treatment: weights(np.array([control, treatment])),
            values,
            start,
            codes,
        )
    except ParameterError:
        if arms is None:
            raise
        raise InvalidForLog("weighted", claims.NOT_TOLD_APART(), ()) from None


def _outcome(
    data: RegressionData, arms: ArmColumns | None, codes: IntArray, known: IntArray | None
) -> tuple[FloatArray, int]:
    """Predictions for each arm from earlier rounds, shape (n, k), and the first round that has them.

    If the formula has no contexts, predictions are running means of the arms, as in `Contrast`.
    """
    if arms is None or data.rows_of is None:
        return np.zeros((data.nobs, len(codes))), 0
    gaps = all(bool((gap.rows == gap.rows[0]).all()) for gap in arms.gaps)
    others = data.x @ arms.others
    if gaps and known is None and np.allclose(others, others[:1], rtol=1e-12, atol=0.0):
        origin = float(data.y[0])
        return origin + predictions(indicators(data.action, codes), data.y - origin), 1
    fitted = running_regression(data.x, data.y, known)
    return predictions_of_arms(fitted, data.rows_of, codes, data.nobs), fitted.start
