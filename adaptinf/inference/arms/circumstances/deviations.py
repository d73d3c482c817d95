"""Rewards that are missing, and arms that were received in place of those assigned.

References
----------
Robins, Rotnitzky, Zhao (1994), "Estimation of regression coefficients when some regressors are not always
observed". Manski (1990), "Nonparametric bounds on treatment effects". Imbens, Angrist (1994), "Identification
and estimation of local average treatment effects". Anderson, Rubin (1949), "Estimation of the parameters of a
single equation in a complete system of stochastic equations".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims.units import INCOMPLETE
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms.circumstances.ratios import with_rewards
from adaptinf.inference.arms.question import Asked, Question, Refused
from adaptinf.inference.distributions.ratio import AndersonRubinReference
from adaptinf.inference.results.ends import both_ends
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.scores.inverse import ArmScores, arm_scores
from adaptinf.inference.scores.means import ScoreMeans, score_means
from adaptinf.inference.scores.missing import (
    SeenRounds,
    observed_counts,
    past_rewards,
    seen_scores,
    strata,
)
from adaptinf.inference.scores.outcome_models import (
    BATCH_MEAN,
    RUNNING_MEAN,
    Covariates,
    Outcome,
    checked_penalty,
    outcome_model,
    running_regression,
)
from adaptinf.inference.validity.profile import profile_of
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.arms import ArmMeans, Contrast
    from adaptinf.inference.results.base import Results
    from adaptinf.log import AdaptiveLog

_MOST_STRATA = 50
_ROUNDS_A_CELL = 20
"""Rounds that a stratum of one arm has on average, at the least."""
_DIFFERENT = 0.01
"""P-value below which arms are said to differ in the share of missing rewards."""

_USUAL_ALPHA = 0.05

# Missing at random, and late


_SHARE_ERROR = "the error of the share observed is only harmless beside means that run with it"
_TOO_EARLY = "it would be fitted on rewards before they were known"


def past_outcome(question: Question, asked: Asked) -> Outcome:
    """Predictions from rewards that are observed and were known, with the probabilities to observe one.

    Running means, or running regressions. Where rewards are missing these have an intercept for each arm and
    stratum of the shares observed, so that their residuals are 0 on average there, as with its mean.
    """
    profile, codes = question.profile, question.codes
    log = profile.log
    named = asked.outcome if isinstance(asked.outcome, str) else None
    covariates = asked.outcome if isinstance(asked.outcome, Covariates) else None
    regression = named == "running-ridge" or (covariates is not None and not covariates.by_batch)
    running = asked.ridge is None and (asked.outcome is None or named == "running-mean")
    fitted = named == BATCH_MEAN or covariates is not None
    if not running and not regression and (profile.incomplete or fitted):
        reason = _SHARE_ERROR if profile.incomplete else _TOO_EARLY
        raise Refused("an outcome model other than running means and regressions", reason)
    if not running and not regression:
        return outcome_model(asked.subject, log, codes, asked.outcome, asked.ridge)
    if profile.incomplete and profile.repeated_units:
        raise Refused("aipw with missing rewards", INCOMPLETE())
    if profile.repeated_units:  # rounds of units are scored by the means of others
        return RUNNING_MEAN
    arrays, observed = log.arrays, log.arrays.observed
    most = max(1, min(_MOST_STRATA, log.n_rounds // (_ROUNDS_A_CELL * log.n_arms)))
    cells, used, left_out = strata(arrays.context if profile.incomplete else {}, log.n_rounds, most)
    seen = np.ones(log.n_rounds, dtype=bool) if observed is None else observed
    past = past_rewards(arrays.action, arrays.recorded, seen, cells, codes, arrays.known)
    started = np.repeat(past.pooled[:, None] > 0.0, len(codes), axis=1)
    probability, ready = np.ones(log.n_rounds), started
    if arrays.observation is not None:
        probability = arrays.observation
    elif profile.incomplete:
        mine = arrays.action[:, None] == codes[None, :]
        probability = np.where(mine.any(axis=1), (past.share * mine).sum(axis=1), 1.0)
        ready = (past.count > 0.0) & started
    if question.contrast:
        ready = np.broadcast_to(ready.all(axis=1, keepdims=True), ready.shape)
    values, model = past.mean, ""
    if regression:
        penalty = checked_penalty(asked.subject, asked.ridge)
        found = running_regression(asked.subject, log, codes, penalty, covariates, cells)
        assert isinstance(found.values, np.ndarray)
        values, model = found.values, found.note.partition(";")[0]
    note = _outcome_note(log, used, left_out, ready, model)
    cautions = missing_cautions(question)
    return Outcome(values, note, 0, SeenRounds(seen, probability, ready), cautions)


def _outcome_note(
    log: AdaptiveLog, used: Sequence[str], left_out: Sequence[str], ready: Any, model: str
) -> str:
    """What is assumed of missing and late rewards, after the outcome model; ready (T, k)."""
    known = " that were known by then" if log.arrays.known is not None else ""
    within = f" in the stratum of {', '.join(used)}" if used else ""
    model = model or f"Outcome model: the arm's mean over earlier rewards{known}{within}"
    if log.arrays.observed is None:
        return f"{model}; rounds before any was known have no weight."
    waiting = int(np.max(np.count_nonzero(~ready, axis=0)))
    told = f"{missing_told(log)}. "
    if log.arrays.observation is not None:
        return (
            f"{told}Assumes that a reward is observed with the probability that the log gives, whatever it "
            f"is. "
            f"{model}."
        )
    given = "the arm" + (f" and {', '.join(used)}" if used else "")
    beyond = f" (not on {', '.join(left_out)}, of too many values)" if left_out else ""
    return (
        f"{told}Assumes that they are missing at random given {given}{beyond}, and that shares observed or "
        f"means "
        f"stay the same: scores are weighted by the share "
        f"observed so far{within}. Rounds before an arm's first observed reward have no weight ({waiting} at "
        f"most). {model}."
    )


def missing_cautions(question: Question) -> tuple[str, ...]:
    """Whether arms differ in the share of missing rewards."""
    log, observed = question.profile.log, question.profile.log.arrays.observed
    if observed is None or log.arrays.observation is not None:
        return ()
    drawn, seen = observed_counts(log.arrays.action, observed, log.n_arms)
    table = np.array([seen, drawn - seen])[:, question.codes]
    table = table[:, table.sum(axis=0) > 0.0]
    if table.shape[1] < 2 or np.any(table.sum(axis=1) == 0.0):
        return ()
    from scipy.stats import chi2_contingency  # scipy.stats loads when needed: longer than a first table

    found = chi2_contingency(table, correction=False)
    if not found.pvalue < _DIFFERENT:
        return ()
    return (
        f"arms differ in the share of missing rewards (chi-squared {found.statistic:.1f}, {found.dof} df, "
        f"p = {found.pvalue:.2g}): if what is missing depends on the rewards themselves, estimates are "
        f"biased, "
        "and missing='worst' tells by how much at most",
    )


def seen_rounds(question: Question, model: Outcome, options: Mapping[str, Any]) -> ArmScores:
    """Scores and weights of the arms' rounds."""
    return _scored(question, model, options)[0]


def seen_means(question: Question, model: Outcome, options: Mapping[str, Any]) -> ScoreMeans:
    """Estimates of the arms' means."""
    scored, reward, propensity = _scored(question, model, options)
    every = _every(question)
    return score_means(scored, reward, propensity, None if every is None else every[:, question.codes])


def _scored(
    question: Question, model: Outcome, options: Mapping[str, Any]
) -> tuple[ArmScores, FloatArray, FloatArray]:
    """Scores, rewards (the first one where they are missing), and propensities with those of observation."""
    arrays, codes, seen = question.profile.log.arrays, question.codes, model.seen
    assert arrays.propensity is not None
    assert seen is not None
    assert isinstance(model.values, np.ndarray)
    reward = np.where(seen.observed, arrays.recorded, arrays.recorded[np.argmax(seen.observed)])
    scored = arm_scores(arrays.action, reward, arrays.propensity, _every(question), codes, **options)
    found = seen_scores(scored, reward, arrays.propensity, model.values, seen)
    return found, reward, arrays.propensity * seen.probability


def _every(question: Question) -> FloatArray | None:
    """Every arm's propensity, as far as it is known, shape (T, K)."""
    known = question.profile.log.arrays.propensities
    return question.profile.partial_propensities if known is None else known


# Bounds


def at_both_ends(model: ArmMeans | Contrast, arguments: Mapping[str, Any]) -> Results:
    """A model's results where missing rewards are at their lowest and at their highest.

    The rewards of a control, which are subtracted, are at the other end.
    """
    log, opposed = model.log, (getattr(model, "control", None),)
    assert log.reward_range is not None
    assert log.missing is not None
    low, high = log.reward_range
    ends = {arm: (high, low) if arm in opposed else (low, high) for arm in log.arms}
    lowest = _on(model, log.filled({arm: own[0] for arm, own in ends.items()})).fit(**arguments)
    # the same method at both ends, where it was left to the log
    same = {"estimator": lowest.estimator, "weights": lowest.weights}
    settled = {name: value for name, value in same.items() if arguments.get(name) is None}
    highest = _on(model, log.filled({arm: own[1] for arm, own in ends.items()})).fit(
        **{**arguments, **settled}
    )
    return both_ends(lowest, highest, log.missing, missing_told(log))


def _on(model: Any, log: AdaptiveLog) -> Any:
    """The same model of another log with the same arms."""
    other = copy(model)
    other.log = log
    return other


def missing_told(log: AdaptiveLog) -> str:
    """How many rewards are missing, by arm."""
    observed = log.arrays.observed
    if observed is None:
        return "No reward is missing"
    drawn = np.bincount(log.arrays.action, minlength=log.n_arms)
    gone = np.bincount(log.arrays.action[~observed], minlength=log.n_arms)
    shares = ", ".join(
        f"{arm} {lost / rounds:.1%} ({lost} of {rounds})" if rounds else f"{arm} never chosen"
        for arm, lost, rounds in zip(log.arms, gone.tolist(), drawn.tolist(), strict=True)
    )
    return f"Rewards missing: {shares}"


# Received


def received_effect(model: Contrast, arguments: Mapping[str, Any]) -> Results:
    """The effect of receiving the treatment rather than the control, by assignment as the instrument."""
    _check_received(model, arguments)
    asked = {**arguments, "estimand": "assigned", "estimator": "aipw", "keep_scores": True}
    effect = model.fit(**asked)
    own = {"outcome": None, "ridge": None, "null": 0.0, "weights": effect.weights}
    share = _on(model, _share_log(model)).fit(**{**asked, **own})
    influence = np.column_stack([_influence(effect), _influence(share)])
    covariance = influence.T @ influence
    top, bottom = float(effect.estimate[0]), float(share.estimate[0])
    df = min(float(np.ravel(getattr(one.reference, "df", math.inf))[0]) for one in (effect, share))
    reference = AndersonRubinReference(top, bottom, covariance, df)
    ratio = top / bottom if bottom != 0.0 else math.nan
    weights = np.array([1.0, -ratio])
    size = math.sqrt(float(weights @ covariance @ weights)) / abs(bottom) if bottom != 0.0 else math.nan
    rows = {"influence": (influence @ weights / bottom)[:, None]} if bottom != 0.0 else {}
    note = (
        f"Effect of receiving {model.treatment} rather than {model.control}, among those who receive what "
        f"they "
        f"are assigned: the effect of assignment on rewards, {top:.4g} (standard error "
        f"{math.sqrt(covariance[0, 0]):.2g}), over that on the share that received {model.treatment}, "
        f"{bottom:.4g} ({math.sqrt(covariance[1, 1]):.2g}). Assumes that assignment moves rewards through "
        f"what is "
        "received alone (exclusion), that nobody receives the opposite of what they are assigned "
        "(monotonicity), "
        "and that this effect and the shares that receive stay the same. The interval inverts the "
        "Anderson-Rubin "
        "test, which holds however few follow their assignment."
    )
    return replace(
        effect,
        estimands=(Estimand("received-contrast", treatment=model.treatment, control=model.control),),
        estimate=np.array([ratio]),
        std_error=np.array([size]),
        covariance=None,
        reference=reference,
        details={**effect.details, "assigned_effect": np.array([top]), "received_share": np.array([bottom])},
        notes=(note, *effect.notes),
        cautions=(*effect.cautions, *_set_caution(reference)),
        efficiency_note="",
        scores=rows if arguments["keep_scores"] else None,
    )


def _check_received(model: Contrast, arguments: Mapping[str, Any]) -> None:
    """Refuse what the instrumental estimate cannot use."""
    log, subject = model.log, "Contrast.fit"
    if not isinstance(arguments["estimand"], str) or arguments["estimand"] != "received":
        named = arguments["estimand"]
        raise ParameterError(subject, [f"estimand must be 'assigned' or 'received', got {named!r:.60}"])
    if arguments["estimator"] not in (None, "aipw"):
        problem = "estimand='received' is a ratio of two aipw effects: leave estimator out"
        raise ParameterError(subject, [problem])
    arrays, pair = log.arrays, [log.arms.index(model.treatment), log.arms.index(model.control)]
    reason = ""
    if arrays.received is None:
        reason = "the log does not tell received arms from assigned ones (assigned= beside action=)"
    elif model.denominator is not None:
        reason = "a ratio metric has no instrumental estimate"
    elif arrays.observed is not None:
        reason = "rewards are missing"
    elif profile_of(log).repeated_units:
        reason = "units have several rounds, which its standard error takes to be independent"
    else:
        others = np.isin(arrays.action, pair) & ~np.isin(arrays.received, pair)
        if others.any():
            reason = f"in {int(others.sum())} rounds one of the arms was assigned and a third one received"
    if reason:
        raise InvalidForLog("estimand='received'", reason, ["estimand='assigned', the effect of assignment"])


def _share_log(model: Contrast) -> AdaptiveLog:
    """The log with 1 in place of the rewards of rounds that received the treatment, 0 of others."""
    assert model.log.arrays.received is not None
    received = model.log.arrays.received == model.log.arms.index(model.treatment)
    return with_rewards(model.log, received.astype(np.float64), (0.0, 1.0))


def _influence(result: Results) -> Any:
    """What each round contributes to the error of a difference, shape (T,)."""
    assert result.scores is not None
    return result.scores["influence"][:, 0]


def _set_caution(reference: AndersonRubinReference) -> list[str]:
    """What the 95% confidence set is where it is no bounded interval."""
    found = reference.confidence_set(math.log(_USUAL_ALPHA))
    if len(found) == 1 and np.isfinite(found[0]).all():
        return []
    if len(found) == 2:
        return [
            f"the 95% confidence set is two rays, up to {found[0][1]:.4g} and from {found[1][0]:.4g} on: too "
            f"few "
            "follow their assignment for an interval with two ends"
        ]
    return ["the 95% confidence set has no end: too few follow their assignment"]
