"""Covariate adjustment: columns from before the experiment explain part of the rewards, and errors fall.

The covariates enter the outcome model of AIPW, a ridge regression of the arm's earlier rewards that is fitted
before each round, so that scores stay unbiased however arms were chosen: CUPED, with coefficients that only
look back.

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

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms.circumstances.by_unit import TOLD_BY_UNITS
from adaptinf.inference.arms.circumstances.deviations import running_means_alone
from adaptinf.inference.inputs.arguments import labels
from adaptinf.inference.scores.outcome_models import Covariates, context_matrix
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.inference.validity.verdicts import Verdict
from adaptinf.parameters import refuse
from adaptinf.sums import NEEDS_ROWS, Sums
from adaptinf.texts import listed
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.arms import ArmMeans, Contrast
    from adaptinf.inference.results.base import Results
    from adaptinf.log import AdaptiveLog


def covariates_of(subject: str, log: AdaptiveLog, covariate: Any) -> Covariates:
    """The context columns that a user named, one or a list of them."""
    if isinstance(cast(object, log), Sums):
        raise InvalidForLog(f"{subject}(covariate=)", NEEDS_ROWS, ["an AdaptiveLog of the rows"])
    named, problems = ((covariate,), []) if isinstance(covariate, str) else labels("covariate", covariate)
    refuse(subject, problems)
    columns = log.columns
    problems = [
        f"covariate {name!r} is no context of the log, whose contexts are {listed(log.context)}: columns "
        "that were known before the choice, named in context="
        for name in named
        if columns.get(name, name) not in log.context
    ]
    problems += ["covariate names no column"] * (not named)
    problems += ["covariate names a column more than once"] * (len(set(named)) < len(named))
    refuse(subject, problems)
    return Covariates(tuple(str(columns.get(name, name)) for name in named))


def covariates_refusal(profile: LogProfile) -> str:
    """Why no regression on earlier rewards serves; empty where one does."""
    return TOLD_BY_UNITS if profile.one_draw_a_unit else running_means_alone(profile)


def covariate_verdict(verdict: Verdict, names: Sequence[str], given: Any, share: float) -> Verdict:
    """What a variant of AIPW is worth with covariates, by what it is worth without; `given` is for `fit`.

    The expected length falls with the share of the variance of all rewards together that they `explained`.
    """
    name, rank = f"{verdict.name}, adjusted", verdict.rank - 0.5
    arguments = {**verdict.arguments, "covariate": given}
    if not verdict.valid:
        return replace(verdict, name=name, rank=rank, arguments=arguments)
    return replace(
        verdict,
        name=name,
        rank=rank,
        arguments=arguments,
        reason=f"{verdict.reason}; what {', '.join(names)} explains of the rewards is taken out",
        assumes=f"{verdict.assumes}; no arm can have moved {', '.join(names)}",
        length=verdict.length * math.sqrt(1.0 - share),
    )


def explained(log: AdaptiveLog, names: Sequence[str]) -> float:
    """Share of the variance of all rewards, whatever their arm, that a regression on columns explains."""
    x, reward = context_matrix("recommend", log, names)[:, 1:], log.arrays.reward
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
    found = covariates_of(subject, model.log, arguments["covariate"])
    if arguments["outcome"] is not None:
        raise ParameterError(subject, ["covariate= is an outcome model of its own: leave outcome= out"])
    if arguments["estimator"] not in (None, "aipw"):
        problem = f"covariate= belongs to aipw, not to {arguments['estimator']!r:.60}"
        raise ParameterError(subject, [problem])
    asked = {**arguments, "covariate": None, "estimator": "aipw"}
    result = model.fit(**{**asked, "outcome": found})
    plain = model.fit(**{**asked, "weights": result.weights, "ridge": None, "keep_scores": False})
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (result.std_error / plain.std_error) ** 2
    return replace(
        result,
        details={**result.details, "variance_ratio": ratio},
        notes=(_note(found, ratio), *result.notes),
    )


def _note(found: Covariates, ratio: FloatArray) -> str:
    """By how much variances fall; ratio (k,)."""
    told, known = f"Covariate adjustment by {', '.join(found.names)}", ratio[np.isfinite(ratio)]
    if not len(known):
        return f"{told}."
    low, high = f"{known.min():.2f}", f"{known.max():.2f}"
    spread = f"variances are {low} to {high} times those"
    many = spread if low != high else f"the variance is {low} times that"
    return (
        f"{told}: {many} without it (by running means, with the same weights). That no arm can have moved it "
        "is an assumption."
    )
