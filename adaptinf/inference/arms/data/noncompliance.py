"""The effect of the arms that participants received, as opposed to those that were assigned.

References
----------
Imbens, Angrist (1994), "Identification and estimation of local average treatment effects". Anderson, Rubin
(1949), "Estimation of the parameters of a single equation in a complete system of stochastic equations".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import assumptions
from adaptinf.claims.data import received_arms
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms.data.incomplete_rewards import on_log
from adaptinf.inference.arms.data.ratio_metrics import with_rewards
from adaptinf.inference.arms.question import ContrastModel
from adaptinf.inference.distributions.ratio import AndersonRubinReference
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.validity.profile import profile_of

if TYPE_CHECKING:
    from adaptinf.inference.results.fit_results import Results
    from adaptinf.log import AdaptiveLog


_USUAL_ALPHA = 0.05


def received_effect(model: ContrastModel, arguments: Mapping[str, Any]) -> Results:
    """The effect of receiving the treatment rather than the control, with assignment as the instrument."""
    _check_received(model, arguments)
    asked = {**arguments, "estimand": "assigned", "estimator": "aipw", "keep_scores": True}
    effect = model.fit(**asked)
    own = {"outcome": None, "ridge": None, "null": 0.0, "weights": effect.weights}
    share = on_log(model, _share_log(model)).fit(**{**asked, **own})
    influence = np.column_stack([_influence(effect), _influence(share)])
    covariance = influence.T @ influence
    top, bottom = float(effect.estimate[0]), float(share.estimate[0])
    df = min(float(np.ravel(getattr(one.reference, "df", math.inf))[0]) for one in (effect, share))
    reference = AndersonRubinReference(top, bottom, covariance, df)
    ratio = top / bottom if bottom != 0.0 else math.nan
    weights = np.array([1.0, -ratio])
    size = math.sqrt(float(weights @ covariance @ weights)) / abs(bottom) if bottom != 0.0 else math.nan
    rows = {"influence": (influence @ weights / bottom)[:, None]} if bottom != 0.0 else {}
    told = received_arms.EFFECT(
        treatment=model.treatment,
        control=model.control,
        effect=top,
        effect_error=math.sqrt(covariance[0, 0]),
        share=bottom,
        share_error=math.sqrt(covariance[1, 1]),
    )
    assumed = (received_arms.EXCLUSION(), received_arms.MONOTONE(), received_arms.STEADY())
    return replace(
        effect,
        estimands=(Estimand("received-contrast", treatment=model.treatment, control=model.control),),
        estimate=np.array([ratio]),
        std_error=np.array([size]),
        covariance=None,
        reference=reference,
        details={**effect.details, "assigned_effect": np.array([top]), "received_share": np.array([bottom])},
        notes=(told, *assumptions(assumed), received_arms.ANDERSON_RUBIN(), *effect.notes),
        cautions=(*effect.cautions, *set_cautions(reference)),
        efficiency_note="",
        scores=rows if arguments["keep_scores"] else None,
    )


def _check_received(model: ContrastModel, arguments: Mapping[str, Any]) -> None:
    """Refuse logs and options that the instrumental estimate cannot use."""
    subject = "Contrast.fit"
    if not isinstance(arguments["estimand"], str) or arguments["estimand"] != "received":
        named = arguments["estimand"]
        raise ParameterError(subject, [f"estimand must be 'assigned' or 'received', got {named!r:.60}"])
    if arguments["estimator"] not in (None, "aipw"):
        problem = "estimand='received' is a ratio of two aipw effects: omit estimator"
        raise ParameterError(subject, [problem])
    if problem := _received_problem(model):
        raise InvalidForLog("estimand='received'", problem, ["estimand='assigned', the effect of assignment"])


def _received_problem(model: ContrastModel) -> str:
    """The reason why a log does not identify the effect of the received arms; empty if it does."""
    log = model.log
    arrays, pair = log.arrays, [log.arms.index(model.treatment), log.arms.index(model.control)]
    if arrays.received is None:
        return (
            "the log does not distinguish received arms from assigned ones (use assigned= together with "
            "action=)"
        )
    if model.denominator is not None:
        return "a ratio metric has no instrumental-variable estimate"
    if arrays.observed is not None:
        return "rewards are missing"
    if profile_of(log).repeated_units:
        return "units have several rounds, but its standard error treats rounds as independent"
    third = int(np.count_nonzero(np.isin(arrays.action, pair) & ~np.isin(arrays.received, pair)))
    return f"in {third} rounds, one of the arms was assigned and a third one received" if third else ""


def _share_log(model: ContrastModel) -> AdaptiveLog:
    """The log with rewards of 1 in the rounds in which the treatment was received, and 0 in the others."""
    assert model.log.arrays.received is not None
    received = model.log.arrays.received == model.log.arms.index(model.treatment)
    return with_rewards(model.log, received.astype(np.float64), (0.0, 1.0))


def _influence(result: Results) -> Any:
    """Contribution of each round to the error of a difference, shape (T,)."""
    assert result.scores is not None
    return result.scores["influence"][:, 0]


def set_cautions(reference: AndersonRubinReference) -> list[str]:
    """A caution that states the 95% confidence set, if it is not a bounded interval."""
    found = reference.confidence_set(math.log(_USUAL_ALPHA))
    if len(found) == 1 and np.isfinite(found[0]).all():
        return []
    if len(found) == 2:
        return [received_arms.TWO_RAYS(low=found[0][1], high=found[1][0])]
    return [received_arms.NO_END()]
