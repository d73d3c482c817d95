"""Covariate adjustment: columns from before the experiment explain part of the rewards, which reduces errors.

The covariates enter the outcome model of AIPW, a ridge regression of the arm's earlier rewards that is fitted
before each round or batch. Scores therefore remain unbiased however the arms were chosen. This is CUPED with
coefficients from past data only.

References
----------
Deng, Xu, Kohavi, Walker (2013), "Improving the sensitivity of online controlled experiments by utilizing
pre-experiment data" (CUPED). Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy
evaluation in adaptive experiments".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from scipy import special

from adaptinf.claims import Finding, sentence
from adaptinf.claims.data import covariates as claims
from adaptinf.claims.data.covariates import MOVED
from adaptinf.claims.units import OWN_PAST_TELLS
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms.question import ArmModel
from adaptinf.inference.inputs.arguments import labels
from adaptinf.inference.scores.outcome_predictions import BATCH_MEAN, Covariates, context_matrix
from adaptinf.inference.validity.calibration import some_rounds
from adaptinf.inference.validity.methods import Verdict
from adaptinf.inference.validity.order import just_before
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.parameters import refuse
from adaptinf.sums import Sums
from adaptinf.texts import listed
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.results.fit_results import Results
    from adaptinf.inference.validity.profile import LogProfile
    from adaptinf.log import AdaptiveLog
    from adaptinf.sums.cells import Cells


def covariates_of(subject: str, log: AdaptiveLog, covariate: Any, outcome: Any = None) -> Covariates:
    """The covariates that the user named, and whether slopes are fitted before each batch."""
    named, problems = ((covariate,), []) if isinstance(covariate, str) else labels("covariate", covariate)
    if outcome is not None and not (isinstance(outcome, str) and outcome == BATCH_MEAN):
        problems.append(
            f"covariate= defines its own outcome model: omit outcome=, or set it to {BATCH_MEAN!r}"
        )
    refuse(subject, problems)
    if isinstance(cast(object, log), Sums):
        return _of_sums(subject, cast(Sums, log), named)
    columns = log.columns
    problems = [
        f"covariate {name!r} is not a context of the log, whose contexts are {listed(log.context)}: "
        f"covariates must be known before the choice, and be named in context="
        for name in named
        if columns.get(name, name) not in log.context
    ]
    refuse(subject, problems + _count_problems(named))
    if outcome is not None and log.arrays.batch is not None:
        _refuse_one_batch(subject, int(log.arrays.batch[-1]) + 1)
    return Covariates(tuple(str(columns.get(name, name)) for name in named), by_batch=outcome is not None)


def _of_sums(subject: str, sums: Sums, named: Sequence[Any]) -> Covariates:
    """The named covariates, after a check that the sums contain their products with rewards."""
    lacking = [repr(name) for name in named if name not in sums.covariates]
    if lacking:
        raise InvalidForLog(
            f"{subject}(covariate=)",
            f"the sums do not contain products of rewards with {', '.join(lacking)}",
            [
                *(f"covariate={name!r}" for name in sums.covariates),
                "covariate= of aggregate, Sums or Sums.of_log",
                "an AdaptiveLog of the rows",
            ],
        )
    refuse(subject, _count_problems(named))
    if sums.shares:
        raise InvalidForLog(
            f"{subject}(covariate=)",
            "the sums have no propensities, and the shares used in their place give valid errors only for "
            "plain means",
            ["propensity= of aggregate or Sums"],
        )
    _refuse_one_batch(subject, sums.n_batches)
    return Covariates(tuple(named), by_batch=True)


def _count_problems(named: Sequence[Any]) -> list[str]:
    """Problems with the list of named columns: none, or repetitions."""
    if not named:
        return ["covariate names no column"]
    return [] if len(set(named)) == len(named) else ["covariate names a column more than once"]


def _refuse_one_batch(subject: str, n_batches: int) -> None:
    """Refuse slopes from earlier batches if there is only one batch."""
    if n_batches < 2:
        raise InvalidForLog(
            f"{subject}(covariate=)",
            "slopes are estimated from earlier batches, but there is only one batch",
            ["shorter batches", "a log, by round"],
        )


def covariates_refusal(profile: LogProfile) -> str:
    """The reason why no regression of earlier rewards is possible; empty if it is possible."""
    return OWN_PAST_TELLS() if profile.one_draw_a_unit else ""


def covariate_verdict(verdict: Verdict, names: Sequence[str], given: Any, share: float) -> Verdict:
    """Verdict on AIPW with covariates, from the verdict without; `given` is the argument of `fit`.

    The expected length decreases with `share`, the share of the variance of all rewards that covariates
    explain.
    """
    name, rank = f"{verdict.name}, adjusted", just_before(verdict.rank)
    arguments = {**verdict.arguments, "covariate": given}
    if not verdict.valid:
        return replace(verdict, name=name, rank=rank, arguments=arguments)
    return replace(
        verdict,
        name=name,
        rank=rank,
        arguments=arguments,
        reason=sentence([verdict.reason, claims.TAKEN_OUT(names=", ".join(names))]),
        assumes=(*verdict.assumes, claims.UNMOVED(names=", ".join(names))),
        length=verdict.length * math.sqrt(1.0 - share),
    )


def explained(log: AdaptiveLog, names: Sequence[str]) -> float:
    """Share of the variance of rewards, pooled over arms, that a regression on the columns explains."""
    profile = profile_of(log)
    x, reward = context_matrix("recommend", log, names)[:, 1:], profile.rewards
    if log.arrays.observed is not None:
        x = x[log.arrays.observed]
    away, spread = x - x.mean(axis=0), reward - reward.mean()
    total = float(spread @ spread)
    if not total > 0.0:
        return 0.0
    along = away.T @ spread
    # `solve` would fail here: linearly dependent columns make the matrix singular, but they still explain
    # rewards.
    slope = np.linalg.lstsq(away.T @ away, along, rcond=None)[0]
    return min(max(float(slope @ along) / total, 0.0), 1.0)


def adjusted(model: ArmModel, arguments: Mapping[str, Any]) -> Results:
    """Results of AIPW with covariates, with variances relative to those without covariates."""
    subject = f"{type(model).__name__}.fit"
    found = covariates_of(subject, model.log, arguments["covariate"], arguments["outcome"])
    if arguments["estimator"] not in (None, "aipw"):
        problem = f"covariate= applies to aipw, not to {arguments['estimator']!r:.60}"
        raise ParameterError(subject, [problem])
    asked = {**arguments, "covariate": None, "estimator": "aipw"}
    result = model.fit(**{**asked, "outcome": found})
    without = {"weights": result.weights, "outcome": BATCH_MEAN if found.by_batch else None}
    plain = model.fit(**{**asked, **without, "ridge": None, "keep_scores": False})
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (result.std_error / plain.std_error) ** 2
    return replace(
        result,
        details={**result.details, "variance_ratio": ratio},
        notes=(_note(found, ratio), *result.notes),
    )


def _note(found: Covariates, ratio: FloatArray) -> str:
    """A note on the reduction in variance; ratio, the relative variances, has shape (k,)."""
    names, known = ", ".join(found.names), ratio[np.isfinite(ratio)]
    if not len(known):
        return claims.ADJUSTED(names=names)
    means = "means over earlier batches" if found.by_batch else "running means"
    low, high = f"{known.min():.2f}", f"{known.max():.2f}"
    return claims.VARIANCE(names=names, ratio=low if low == high else f"{low} to {high}", means=means)


ALARM = 5e-4
"""If the p-value times the number of comparisons is below this, arms are taken to differ in a covariate."""
_LARGEST_STEP, _LARGEST_INVERSE = 0.25, 0.1
"""Largest contribution of one round, in standard deviations, for which a sum is treated as normal; the second
value is for estimated variances."""
_LEAST_ROUNDS = 100


def moved_covariates(profile: LogProfile, names: Sequence[str]) -> Finding | None:
    """Whether arms differ in covariates by more than propensities explain; None if this cannot be tested."""
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
    """For one covariate: the arm that differs most, its standardised difference, and the adjusted p-value."""

    code: int
    z: float
    log_pvalue: float


def control_test(profile: LogProfile, name: str) -> ControlTest | None:
    """Whether arms differ in one covariate of a log with propensities; None if that cannot be tested."""
    z = _of_rows(profile, name)
    tests = _tests(z)
    if not tests:
        return None
    code, far = _farthest(z)
    log_pvalue = math.log(2.0 * tests) + float(special.log_ndtr(-abs(far)))
    return ControlTest(code, far, min(0.0, log_pvalue))


def _tests(z: FloatArray) -> int:
    """Number of comparisons, which is one for each column if there are two arms; z has shape (columns, K)."""
    tested = int(np.isfinite(z).sum())
    return -(-tested // 2) if z.shape[1] == 2 else tested


def _farthest(z: FloatArray) -> tuple[int, float]:
    """The arm with the score of largest absolute value, and the score; z has shape (columns, K)."""
    size = np.where(np.isfinite(z), np.abs(z), 0.0)
    column, code = np.unravel_index(int(size.argmax()), size.shape)
    return int(code), float(z[column, code]) if size[column, code] > 0.0 else 0.0


def _of_rows(profile: LogProfile, name: str) -> FloatArray:
    """Standardised sums of a covariate's columns by arm, shape (columns, K); NaN if they are not normal."""
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
            # The term 1{A = k} (1 - e) / e^2 has mean (1 - e) / e and requires only the propensities of
            # rounds that chose arm k.
            gap, spread = inverse - 1.0, inverse * np.maximum(inverse - 1.0, 0.0)
        for column, x in enumerate(values.T):
            z[column, code] = _standardised(x, gap, spread, largest)
    return z


def _ranks(x: FloatArray) -> FloatArray:
    """Centred ranks, with ties averaged, so that no value is extreme; shape (T,)."""
    place, counts = np.unique(x, return_inverse=True, return_counts=True)[1:]
    return np.asarray((np.cumsum(counts) - 0.5 * counts)[place] - 0.5 * len(x), dtype=np.float64)


def _standardised(away: FloatArray, gap: FloatArray, spread: FloatArray, largest: float) -> float:
    """A sum divided by its standard deviation; NaN if a single round may dominate it; all arrays (T,)."""
    if len(away) < _LEAST_ROUNDS:
        return np.nan
    size = np.sqrt(away**2 @ spread)
    if not size > 0.0 or np.abs(away * gap).max() > largest * size:
        return np.nan
    return float(away @ gap / size)


def _of_cells(cells: Cells, name: str) -> FloatArray:
    """Standardised sums of a covariate by arm, from batches with constant propensities; shape (1, K)."""
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
    # If e is constant in a batch, the sum of (x - mean x)(1{A = k} - e) does not depend on e, because
    # deviations from the mean add up to 0.
    gap = np.where(usable, total - mean[:, None] * cells.pulls, 0.0).sum(axis=0)
    variance = np.where(usable, spread * share * (1.0 - share), 0.0)
    enough = np.where(usable, rounds[:, None] * (variance > 0.0), 0.0).sum(axis=0) >= _LEAST_ROUNDS
    size = np.sqrt(variance.sum(axis=0))
    z: FloatArray = np.divide(gap, size, out=np.full(n_arms, np.nan), where=(size > 0.0) & enough)
    return z[None, :]
