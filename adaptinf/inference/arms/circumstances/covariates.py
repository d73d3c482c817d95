"""Covariate adjustment: columns from before the experiment explain part of the rewards, and errors fall.

The covariates enter the outcome model of AIPW, a ridge regression of the arm's earlier rewards that is fitted
before each round, or each batch, so that scores stay unbiased however arms were chosen: CUPED, with
coefficients that only look back.

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
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from adaptinf.claims import sentence
from adaptinf.claims.data import covariates as claims
from adaptinf.claims.units import OWN_PAST_TELLS
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.inputs.arguments import labels
from adaptinf.inference.scores.outcome_predictions import BATCH_MEAN, Covariates, context_matrix
from adaptinf.inference.validity.methods import Verdict
from adaptinf.inference.validity.order import just_before
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.parameters import refuse
from adaptinf.sums import Sums
from adaptinf.texts import listed
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.arms import ArmMeans, Contrast
    from adaptinf.inference.results.base import Results
    from adaptinf.log import AdaptiveLog


def covariates_of(subject: str, log: AdaptiveLog, covariate: Any, outcome: Any = None) -> Covariates:
    """The context columns that a user named, one or a list of them, and whether slopes are by batch."""
    named, problems = ((covariate,), []) if isinstance(covariate, str) else labels("covariate", covariate)
    if outcome is not None and not (isinstance(outcome, str) and outcome == BATCH_MEAN):
        problems.append(
            f"covariate= is an outcome model of its own: leave outcome= out, or give {BATCH_MEAN!r}"
        )
    refuse(subject, problems)
    if isinstance(cast(object, log), Sums):
        return _of_sums(subject, cast(Sums, log), named)
    columns = log.columns
    problems = [
        f"covariate {name!r} is no context of the log, whose contexts are {listed(log.context)}: columns "
        "that were known before the choice, named in context="
        for name in named
        if columns.get(name, name) not in log.context
    ]
    refuse(subject, problems + _count_problems(named))
    if outcome is not None and log.arrays.batch is not None:
        _refuse_one_batch(subject, int(log.arrays.batch[-1]) + 1)
    return Covariates(tuple(str(columns.get(name, name)) for name in named), by_batch=outcome is not None)


def _of_sums(subject: str, sums: Sums, named: Sequence[Any]) -> Covariates:
    """Columns that the sums have products of rewards with."""
    lacking = [repr(name) for name in named if name not in sums.covariates]
    if lacking:
        raise InvalidForLog(
            f"{subject}(covariate=)",
            f"the sums have no products of rewards with {', '.join(lacking)}",
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
            "the sums have no propensities, and shares in their place tell errors of plain means alone",
            ["propensity= of aggregate or Sums"],
        )
    _refuse_one_batch(subject, sums.n_batches)
    return Covariates(tuple(named), by_batch=True)


def _count_problems(named: Sequence[Any]) -> list[str]:
    """What is wrong with how many columns are named."""
    if not named:
        return ["covariate names no column"]
    return [] if len(set(named)) == len(named) else ["covariate names a column more than once"]


def _refuse_one_batch(subject: str, n_batches: int) -> None:
    """Refuse slopes from earlier batches where there are none."""
    if n_batches < 2:
        raise InvalidForLog(
            f"{subject}(covariate=)",
            "slopes come from earlier batches, and there is one batch",
            ["shorter batches", "a log, by round"],
        )


def covariates_refusal(profile: LogProfile) -> str:
    """Why no regression on earlier rewards serves; empty where one does."""
    return OWN_PAST_TELLS() if profile.one_draw_a_unit else ""


def covariate_verdict(verdict: Verdict, names: Sequence[str], given: Any, share: float) -> Verdict:
    """What a variant of AIPW is worth with covariates, by what it is worth without; `given` is for `fit`.

    The expected length falls with the share of the variance of all rewards together that they `explained`.
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
    """Share of the variance of all rewards, whatever their arm, that a regression on columns explains."""
    profile = profile_of(log)
    x, reward = context_matrix("recommend", log, names)[:, 1:], profile.rewards
    if log.arrays.observed is not None:
        x = x[log.arrays.observed]
    away, spread = x - x.mean(axis=0), reward - reward.mean()
    total = float(spread @ spread)
    if not total > 0.0:
        return 0.0
    along = away.T @ spread
    slope = np.linalg.lstsq(away.T @ away, along, rcond=None)[0]
    return min(max(float(slope @ along) / total, 0.0), 1.0)


def adjusted(model: ArmMeans | Contrast, arguments: Mapping[str, Any]) -> Results:
    """Results of AIPW with covariates in the outcome model, and their variances over those without."""
    subject = f"{type(model).__name__}.fit"
    found = covariates_of(subject, model.log, arguments["covariate"], arguments["outcome"])
    if arguments["estimator"] not in (None, "aipw"):
        problem = f"covariate= belongs to aipw, not to {arguments['estimator']!r:.60}"
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
    """By how much variances fall; ratio (k,)."""
    names, known = ", ".join(found.names), ratio[np.isfinite(ratio)]
    if not len(known):
        return claims.ADJUSTED(names=names)
    means = "means over earlier batches" if found.by_batch else "running means"
    low, high = f"{known.min():.2f}", f"{known.max():.2f}"
    return claims.VARIANCE(names=names, ratio=low if low == high else f"{low} to {high}", means=means)
