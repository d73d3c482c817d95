"""The methods that are valid for a log, in order of preference, with reasons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from adaptinf.claims import recommendations as claims
from adaptinf.claims.arms.sample_means import VARIATION
from adaptinf.claims.logs.stopping import ASSUMED_FIXED
from adaptinf.inference.arms.arm_order import ORDER
from adaptinf.inference.arms.choice import arm_codes, decay_problems
from adaptinf.inference.arms.facts.arm_facts import exact_calls
from adaptinf.inference.arms.question import Question
from adaptinf.inference.inputs.arguments import require_data, require_log
from adaptinf.inference.recommend.plan_row import plan_rows, planned_question
from adaptinf.inference.recommend.rows import (
    Method,
    arm_rows,
    cate_rows,
    contrasts_rows,
    policy_rows,
    projection_rows,
    refused,
    sequence_rows,
    winner_rows,
)
from adaptinf.inference.recommend.table import Recommendation
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log.provenance import source_note
from adaptinf.log.report import STOPPINGS, Stopping
from adaptinf.parameters import NON_NEGATIVE, OneOf, OrNone, refuse

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog
    from adaptinf.sums import Sums


def facts_of(log: AdaptiveLog, variation: float | None) -> tuple[tuple[str, str], ...]:
    """What a log states about its design, rounds, propensities, batches, contexts, rewards and guarantee."""
    profile, known = profile_of(log), "none"
    if profile.knows_propensities:
        which = "every arm's" if profile.knows_every_propensity else "the chosen arm's"
        known = f"{which}, {log.propensity_status}, smallest {smallest_propensity(log):.2g}"
        decay = profile.floor_decay
        known += "" if decay is None else f", floor decays like t^-{decay:g}"
    guarantee = log.reward_guarantee or log.guarantee
    span = log.reward_range
    bounded = span is not None and all(math.isfinite(end) for end in span)
    facts = [
        ("Design", f"{profile.design_title or 'unknown'}{log.adaptive_told}"),
        ("Rounds", f"{log.n_rounds}, stopping {Stopping.of(log).told}"),
        ("Propensities", known),
        ("Batches", batches_told(log)),
        ("Contexts", contexts_told(log)),
        (
            "Rewards",
            f"within [{span[0]:g}, {span[1]:g}]" if bounded and span is not None else "no known bounds",
        ),
        ("Guarantee", "none" if guarantee is None else f"{guarantee}{source_note(log.guarantee_source)}"),
    ]
    if variation is not None:
        facts.append(("Arm counts", VARIATION(variation=variation)))
    return tuple(facts)


def smallest_propensity(log: AdaptiveLog) -> float:
    """The smallest logged propensity, over all arms if the propensities of all arms are known."""
    if (sums := profile_of(log).sums) is not None:
        return float(sums.cells.smallest.min())
    every = log.arrays.propensity if log.arrays.propensities is None else log.arrays.propensities
    return 1.0 if every is None else float(every.min(initial=1.0))


def batches_told(log: AdaptiveLog) -> str:
    """Text on the number of batches."""
    if (sums := profile_of(log).sums) is not None:
        return str(sums.n_batches)
    return "none" if log.arrays.batch is None else str(int(log.arrays.batch[-1]) + 1)


def exact_fact(log: AdaptiveLog) -> tuple[tuple[str, str], ...]:
    """The exact interval and test for a short trial, which need the design and are not rows of the table."""
    profile = profile_of(log)
    calls = None if profile.incomplete or profile.sums is not None else exact_calls(profile)
    return () if calls is None else (("Exact", f"{calls[1]}, {calls[0]}"),)


def contexts_told(log: AdaptiveLog) -> str:
    """Text on the contexts, and on whether they affected the choice of arms."""
    known = ", ".join(log.context[:5]) + (", ..." if len(log.context) > 5 else "") or "none"
    if log.context_free is None:
        return known
    return (claims.NO_PART if log.context_free else claims.HAD_PART)(contexts=known)


_TARGETS = ("arm-means", "contrast", "contrasts", "winner", "cate", "policy-value")
_BY_ARM = ("arm-means", "contrast")
_OWN = {
    "arm-means": ("arms", "denominator", "covariate"),
    "contrast": ("treatment", "control", "denominator", "covariate"),
    "contrasts": ("control", "treatments", "lift", "denominator", "covariate"),
    "winner": ("arms", "control", "runner_up"),
    "cate": ("by", "formula", "trusted", "treatment", "control", "rounds"),
    "policy-value": ("policy", "snapshots"),
}


def recommend(
    log: AdaptiveLog | Sums,
    target: str | None = None,
    *,
    arms: Sequence[Any] | None = None,
    treatment: Any = None,
    control: Any = None,
    treatments: Sequence[Any] | None = None,
    lift: bool | None = None,
    runner_up: bool | None = None,
    by: str | Sequence[str] | None = None,
    formula: str | None = None,
    denominator: Any = None,
    covariate: Any = None,
    trusted: bool | None = None,
    rounds: Any = None,
    policy: Any = None,
    snapshots: Any = None,
    decay: float | None = None,
    stopping: str | None = None,
    stability: Any = None,
) -> Recommendation:
    """Assess the validity of every method for a target on this log.

    Parameters
    ----------
    log : AdaptiveLog or Sums
        The data.
    target : {"arm-means", "contrast", "contrasts", "winner", "cate", "policy-value"}, optional
        What to estimate. By default, arm means or, for a trial with looks, the difference that its plan
        tests. ``"contrasts"`` are those of several arms with one control, and ``"winner"`` is the mean of the
        arm with the highest estimate, or its lead over another arm.
    arms : sequence of labels, optional
        For arm means and the winner: the arms of interest, by default all arms.
    treatment, control : label, optional
        For contrasts and effects within groups: the two arms. If the log has two arms, the second is the
        treatment by default. Several contrasts also require the control, and the winner may be compared with
        a control.
    treatments, lift : optional
        For several contrasts: the arms to compare with the control, by default all other arms, and whether to
        estimate lifts over the control, as in `Contrasts`.
    runner_up : bool, optional
        For the winner: whether to compare it with the runner-up, as in `Winner`.
    by : str or sequence of str, optional
        For effects: the columns that define the groups.
    formula : str, optional
        For effects: covariates, instead of groups.
    denominator : str or array_like, optional
        For arm means and contrasts, single or several: the denominator of ratio metrics, as for `ArmMeans`.
    covariate : str or list of str, optional
        For the same targets: also include the methods with covariate adjustment, as for `ArmMeans.fit`.
    trusted : bool, optional
        For effects given by a formula: whether to allow any Python code in it, as for `CATE.from_formula`.
    rounds : str or array_like of bool, optional
        For effects: rounds whose arm was drawn at random, as for `CATE`.
    policy, snapshots : optional
        For policy values, as for `PolicyValue`.
    decay : float, optional
        Exponent in [0, 1) of the propensity floor t^-decay, fixed in advance, if the log's design does not
        state it.
    stopping : {"fixed", "data-chosen", "planned"}, optional
        How the number of rounds was determined; this overrides the log's statement. If it was chosen from the
        data or by a planned rule, only sequences are valid. If nothing is stated, methods assume that it was
        fixed.
    stability : float or result of `audit.stability`, optional
        Largest coefficient of variation of an arm's simulated counts. If it is at most 0.1, sample means are
        treated as asymptotically normal. A result must be for the log's arms and number of rounds.

    Returns
    -------
    Recommendation
        A recommendation that is printed as a table, with a reason for every method; `best` is the first
        method, and `fit` runs it.

    Raises
    ------
    ParameterError
        If an argument is invalid, or belongs to another target.

    Notes
    -----
    The order does not depend on estimates: choosing the shortest of several intervals would invalidate it.
    Lengths are expected lengths for a log without drift, based on counts, propensities, and the pooled mean
    and variance of the rewards. Sequences are ordered by length, and other methods by their assumptions. If
    there are many arms, lengths are computed for a selection of them. The length of a method that weights
    scores is unknown if an arm has at most 10 effective rewards, or fewer than 10 effective events. Without
    arguments, ``ArmMeans(log).fit()`` and ``Contrast(log, ...).fit()`` use the first method of their class.

    References
    ----------
    Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
    experiments". Ying, Khamaru, Zhang (2023), "Adaptive linear estimating equations". Neel, Roth (2018),
    "Mitigating bias in adaptive data gathering via differential privacy".

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> from adaptinf.log import LogArrays
    >>> rng = np.random.default_rng(1)
    >>> action = rng.integers(0, 2, size=400)
    >>> reward = rng.binomial(1, np.array([0.3, 0.6])[action]).astype(float)
    >>> log = ai.AdaptiveLog.from_arrays(
    ...     LogArrays(action=action, reward=reward), arms=("a", "b"), reward_range=(0, 1)
    ... )
    >>> table = ai.recommend(log)
    >>> table.best
    ArmMeans(log).fit(estimator='alee', stationary=True)  # asymptotic
    >>> table.frame.groupby("label").size().to_dict()
    {'anytime': 5, 'asymptotic': 3, 'not valid': 23}
    >>> table.fit().estimator
    'alee'
    """
    given = {"arms": arms, "treatment": treatment, "control": control, "by": by, "formula": formula}
    given |= {"treatments": treatments, "lift": lift, "runner_up": runner_up}
    given |= {"denominator": denominator, "covariate": covariate}
    given |= {"trusted": trusted, "rounds": rounds, "policy": policy, "snapshots": snapshots}
    target, given = planned_question(log, target, given)
    log = _readable(log, target, formula)
    variation = _check(log, target, given, decay, stopping, stability)
    if stopping is not None:
        log = log.stating(stopping)
    rows, always = _rows(log, target, given, decay, variation)
    rows = [_at_fixed_rounds(row, log.stopping) for row in rows]
    rows = [*rows, *_beside(rows, [*plan_rows(log, target, given), *always])]
    rows.sort(key=lambda row: row.verdict.order)
    of_means = target in _BY_ARM and denominator is None
    exact = exact_fact(log) if log.stopping in (None, "fixed") and of_means else ()
    return Recommendation(target, tuple(rows), (*facts_of(log, variation), *exact))


def _beside(rows: Sequence[Method], always: Sequence[Method]) -> list[Method]:
    """Sequences, ranked relative to the best other method as if that method had the same estimand."""
    least = min((row.verdict.unanswered for row in rows if row.verdict.valid), default=0)
    return [replace(row, verdict=replace(row.verdict, unanswered=least)) for row in always]


def _rows(
    log: AdaptiveLog, target: str, given: dict[str, Any], decay: float | None, variation: float | None
) -> tuple[list[Method], list[Method]]:
    """Rows for methods that are valid at a fixed number of rounds, and for methods valid at any number."""
    metric = {name: given[name] for name in ("denominator", "covariate")}
    profile = profile_of(log)
    if target == "contrasts":
        own = {name: given[name] for name in ("control", "treatments") if given[name] is not None}
        return contrasts_rows(log, own, decay, **metric, lift=bool(given["lift"])), []
    if target == "winner":
        codes = arm_codes("recommend", log, given["arms"])
        question = Question(profile, codes, decay=decay, variation=variation)
        return winner_rows(question, {name: given[name] for name in _OWN["winner"]}), []
    if target == "policy-value":
        from adaptinf.inference.policies.policy_order import VALUES

        policy = given["policy"]
        always = sequence_rows(log, target, {"policy": policy}, VALUES)
        return policy_rows(log, policy, given["snapshots"]), always
    if target == "arm-means":
        return _arm_rows(
            Question(profile, arm_codes("recommend", log, given["arms"]), False, decay, variation),
            {"arms": given["arms"]},
            metric,
        )
    treatment, control = _pair(log, given["treatment"], given["control"])
    pair = {"treatment": treatment, "control": control}
    if target == "contrast":
        codes = arm_codes("recommend", log, (treatment, control))
        return _arm_rows(Question(profile, codes, True, decay, variation), pair, metric)
    if given["by"] is not None:
        return cate_rows(log, {"by": given["by"], **pair, "rounds": given["rounds"]}), []
    own = {"formula": given["formula"], **pair, "rounds": given["rounds"], "trusted": given["trusted"]}
    return projection_rows(log, own, decay), []


def _arm_rows(
    question: Question, own: dict[str, Any], metric: dict[str, Any]
) -> tuple[list[Method], list[Method]]:
    """Rows for arm means or the contrast of two arms, or for their ratios, which have no sequences."""
    log, target = question.profile.log, "contrast" if question.contrast else "arm-means"
    always: list[Method] = []
    if not question.profile.incomplete:
        always = sequence_rows(log, target, own, ORDER)
    if metric["denominator"] is not None:
        always = [
            replace(row, verdict=refused(row.verdict, claims.NO_SEQUENCE_OF_RATIOS())) for row in always
        ]
    return arm_rows(question, own, **metric), always


def _readable(log: object, target: Any, formula: Any) -> AdaptiveLog:
    """Return a log, or sums if the target allows them; refuse anything else."""
    if target in (*_BY_ARM, "contrasts", "winner") or (target == "cate" and formula is None):
        return require_data("recommend", log)
    return require_log("recommend", log, incomplete=True)


def _at_fixed_rounds(row: Method, stopping: str | None) -> Method:
    """The verdict on a method for a fixed number of rounds, given how this number was determined."""
    if not row.verdict.valid or stopping == "fixed":
        return row
    if stopping is None:
        return replace(row, verdict=replace(row.verdict, assumes=(*row.verdict.assumes, ASSUMED_FIXED())))
    reason = claims.STOPPED_BY_PLAN() if stopping == "planned" else claims.STOPPED_BY_DATA()
    stopped = replace(row.verdict, label="not valid", reason=reason, baseline=True, length=math.nan)
    return replace(row, verdict=stopped)


def _pair(log: AdaptiveLog, treatment: Any, control: Any) -> tuple[Any, Any]:
    from adaptinf.inference.effects.group_question import arm_pair

    treatment, control, problems = arm_pair(log, treatment, control)
    refuse("recommend", problems)
    return treatment, control


def _check(
    log: AdaptiveLog, target: Any, given: dict[str, Any], decay: Any, stopping: Any, stability: Any
) -> float | None:
    problems = OneOf(*_TARGETS)("target", target)
    problems += OrNone(OneOf(*STOPPINGS))("stopping", stopping)
    if target in _TARGETS:
        own = _OWN[target]
        for name, value in given.items():
            if value is not None and name not in own:
                problems.append(f"{name} does not apply to target={target!r}: omit it")
        if target == "contrasts" and given["control"] is None:
            problems.append(
                "target='contrasts' requires control=, the arm with which all others are compared"
            )
        if target == "policy-value" and given["policy"] is None:
            problems.append("target='policy-value' requires policy=")
        if target == "cate" and (given["by"] is None) == (given["formula"] is None):
            problems.append(
                "target='cate' requires by= (columns that define groups) or formula=, but not both"
            )
    if decay is not None:
        problems += decay_problems(decay)
    runs = all(hasattr(stability, name) for name in ("variation", "frame", "horizon"))
    variation = stability.variation if runs else stability
    if variation is not None and (isinstance(variation, bool) or not isinstance(variation, Real)):
        problems.append("stability must be a result of audit.stability, or a coefficient of variation")
    elif variation is not None:
        problems += NON_NEGATIVE("stability", variation)
    if runs:
        problems += _other_runs(log, stability)
    refuse("recommend", problems)
    return None if variation is None else float(variation)


def _other_runs(log: AdaptiveLog, found: Any) -> list[str]:
    """Problems with simulated counts that do not belong to the experiment of this log."""
    problems = []
    arms = list(found.frame["arm"])
    if set(arms) != set(log.arms):
        problems.append(f"stability refers to the arms {arms!r:.200}, but the log has {log.arms!r:.200}")
    if found.horizon != log.n_rounds:
        problems.append(f"stability refers to {found.horizon} rounds, but the log has {log.n_rounds}")
    return problems
