"""Values of policies that were not used, estimated from adaptively collected data.

References
----------
Zhan, Hadad, Hirshberg, Athey (2021), "Off-policy evaluation via adaptive weighting with data from contextual
bandits". Bibaut, Dimakopoulou, Kallus, Chambaz, van der Laan (2021), "Post-contextual-bandit inference".
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.claims import policies as claims
from adaptinf.claims import said, under_table
from adaptinf.errors import AdaptinfWarning, ParameterError
from adaptinf.inference.inputs.arguments import require_log
from adaptinf.inference.inputs.rounds import marked_log
from adaptinf.inference.policies.fit_facts import FitFacts
from adaptinf.inference.policies.policy_methods import METHODS, Request, policy_options
from adaptinf.inference.policies.policy_question import Policy, PolicyQuestion, check_support, read_policies
from adaptinf.inference.policies.policy_scores import PolicyFit, policy_law
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog


class PolicyValue:
    """Mean reward that a policy would have earned.

    Parameters
    ----------
    log : AdaptiveLog
        The data, with at least the propensity of the chosen arm.
    policy : policy, or list of policies
        Each policy is one of the following: the label of an arm that is always chosen; ``"uniform"``; an
        array of probabilities of shape (T, K), with one row per round, or (K,), in the order of ``log.arms``;
        a frame with one column per arm, or a Series indexed by the arms, in any order; a mapping from arms to
        columns of the log, arrays of T probabilities, or numbers (arms that are left out have probability 0);
        a callable that takes the frame of contexts and returns a (T, K) array, a frame or a mapping; a model
        with ``predict_proba``. A list gives one term per policy, with their joint covariance. Rows must be in
        the order of the log's rounds; a pandas index other than 0, ..., T - 1 is refused.
    names : sequence of str, optional
        Labels of the policies.
    rounds : str or array_like of bool, shape (T,), optional
        The rounds to use, by default all: the name of a column of the log, or a mask. The selection must not
        depend on rewards. Arguments with one row per round (policies, predictions, starts of snapshots) must
        still refer to all rounds.

    Raises
    ------
    ParameterError
        If a policy is invalid, for example because of rows that do not sum to 1, negative entries or unknown
        arms; the message lists every problem.

    Notes
    -----
    The estimates assume that arms do not affect later contexts and rewards, and that logged propensities are
    the arms' probabilities given the past and the round's context. The estimates also assume that a policy
    was not chosen with the help of this log, which the log itself cannot show.

    Uniform weights, the default, estimate the mean value over the period, even under drift. The estimate is
    asymptotically normal if propensities settle, and approximately normal if they have a lower bound.

    Variance-stabilising weights make the estimate asymptotically normal if propensities depend on the data,
    as long as they do not decrease too fast. These weights assume that contexts and potential rewards are
    drawn from the same distribution in every round; under drift, they do not estimate the mean over the
    period. They require the design's policy at the contexts of other rounds: see `PolicySnapshots`.
    Non-contextual stable-variance weights and CADR do not require propensities to settle. Contextual and
    min-variance weights, which often give shorter intervals, do require this.

    If at least half of the rewards are equal, and the effective number of the other rewards is below 10,
    standard errors are unreliable. Intervals and p-values then treat the other rewards as weighted Poisson
    counts: they are the gamma limits of Fay and Feuer (1997), which allow for one more event in the round
    with the largest weight.

    References
    ----------
    Zhan, Hadad, Hirshberg, Athey (2021), "Off-policy evaluation via adaptive weighting with data from
    contextual bandits". Bibaut, Dimakopoulou, Kallus, Chambaz, van der Laan (2021), "Post-contextual-bandit
    inference". Fay, Feuer (1997), "Confidence intervals for directly standardized rates: a method based on
    the gamma distribution".

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> from adaptinf.log import LogArrays
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=2000)
    >>> action = rng.integers(0, 2, size=2000)
    >>> arrays = LogArrays(
    ...     action=action,
    ...     reward=np.where(action == (x > 0), 1.0, 0.0) + rng.normal(size=2000),
    ...     propensity=np.full(2000, 0.5),
    ...     propensities=np.full((2000, 2), 0.5),
    ...     context={"x": x},
    ... )
    >>> log = ai.AdaptiveLog.from_arrays(arrays, arms=("a", "b"))
    >>> def adapt(contexts):
    ...     right = (contexts["x"] > 0).to_numpy(float)
    ...     return np.column_stack([1 - right, right])
    >>> result = ai.PolicyValue(log, ["b", adapt]).fit()
    >>> result.conf_int().round(2)
            low  high
    b      0.38  0.52
    adapt  0.94  1.07
    """

    def __init__(
        self,
        log: AdaptiveLog,
        policy: Any,
        *,
        names: Sequence[str] | None = None,
        rounds: str | ArrayLike | None = None,
    ) -> None:
        require_log("PolicyValue", log)
        self.log = log
        self._question = _question(
            "PolicyValue", log, read_policies("PolicyValue", log, policy, names), rounds
        )
        self.policies = self._question.policies

    def fit(
        self,
        weights: str | None = None,
        contextual: bool | None = None,
        estimator: str = "aipw",
        outcome: Any = None,
        ridge: float | None = None,
        snapshots: Any = None,
        burn_in: int | None = None,
        null: float = 0.0,
        keep_scores: bool = False,
        *,
        stationary: bool = False,
    ) -> Results:
        """Estimate the values.

        Parameters
        ----------
        weights : {"uniform", "stable-variance", "min-variance"}, optional
            Uniform weights are the default. Stable-variance weights are the default if `contextual` is given,
            or if rewards are `stationary` and the design's policies at all contexts are known.
        contextual : bool, optional
            Whether weights depend on the round's own context; by default, they depend on the mean over
            earlier contexts.
        estimator : {"aipw", "ipw", "cadr"}
            Scores with an outcome model (AIPW), without one (IPW), or with an outcome model and specific
            weights (CADR).
        outcome : str, mapping, or array_like of shape (T, K), optional
            Predicted rewards of every arm: ``"running-mean"`` (the default), ``"running-ridge"``, a mapping
            from arms to columns, a frame, or an array in the order of ``log.arms``. Row t must not depend on
            the rewards of round t or later.
        ridge : float, optional
            Penalty of the running ridge.
        snapshots : PolicySnapshots or "context-free", optional
            The policy that the design would have applied to the contexts of other rounds. ``"context-free"``
            states that the design never used contexts, which is the default for logs without contexts and for
            designs known to ignore them.
        burn_in : int, optional
            Number of initial rounds that receive no weight in CADR, fixed in advance; by default a tenth of
            the log, but at most 100.
        null : float
            Value under the null hypothesis.
        keep_scores : bool
            Whether the result stores scores and weights, as arrays over the rounds.
        stationary : bool
            Whether contexts and rewards are known not to drift. If so, weights that assume this are the
            default, and there is no caution about them.

        Returns
        -------
        Results
            Results with one term per policy.

        Raises
        ------
        ParameterError
            If an argument is invalid, or snapshots disagree with the logged propensities.
        InvalidForLog
            If the log does not support the request; the message gives the reason and valid alternatives.

        Warns
        -----
        AdaptinfWarning
            If a policy chooses arms with propensity below 0.0001. Also if the effective number of uncommon
            rewards is below 10, but limits for counts do not apply, because units have several rounds or
            predictions miss the most common reward.
        """
        chosen = Request(
            weights, contextual, estimator, outcome, ridge, snapshots, burn_in, null, keep_scores, stationary
        )
        return _results("PolicyValue", replace(self._question, snapshots=snapshots), chosen)


class PolicyContrast:
    """Difference between the values of policies and that of a baseline policy.

    Parameters
    ----------
    log : AdaptiveLog
        The data, with at least the propensity of the chosen arm.
    policy : policy, or list of policies
        As in `PolicyValue`.
    baseline : policy
        The policy whose value is subtracted from each of the others.
    names : sequence of str, optional
        Labels of the policies, with the baseline's last.
    rounds : str or array_like of bool, shape (T,), optional
        As in `PolicyValue`.

    Raises
    ------
    ParameterError
        If a policy is invalid; the message lists every problem.

    Notes
    -----
    As in `PolicyValue`, except that the difference of two policies' scores is a single score with one weight
    per round, so influences common to all arms in a round cancel. Combined weights, the default, stabilise
    the variance of this score. Combined weights are v^(-1/2), where v is the mean over past rounds of the sum
    over arms of (policy - baseline)^2 / e, with propensities e. The past rounds are those of the previous
    batch, or the last 50 rounds in which the policies differ, whichever are more numerous. The round itself
    is not used, because its context may have affected its propensities. If contexts did not affect
    propensities, the round's own propensities are used; if `snapshots` give the design's policy, it is
    evaluated at the contexts of earlier rounds. Until the policies have differed, uniform propensities are
    used.

    If the difference changes over time, its weighted mean over the rounds is estimated; uniform weights
    estimate the mean over the period. For two policies that each always choose one arm, the result is the
    `Contrast` of these arms, with the same numbers if weights are computed from a round's own propensities.

    Stable-variance and min-variance weights are specific to each policy, and drift common to all arms biases
    a difference computed with them. The standard error takes into account that both policies use the same
    rounds. CADR weights the difference of the two scores by the inverse of its standard deviation.

    References
    ----------
    Zhan, Hadad, Hirshberg, Athey (2021), "Off-policy evaluation via adaptive weighting with data from
    contextual bandits". Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy
    evaluation in adaptive experiments".

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> from adaptinf.log import LogArrays
    >>> arrays = LogArrays(
    ...     action=np.array([0, 1, 0, 1, 1, 0]),
    ...     reward=np.array([0.1, 0.8, 0.3, 0.6, 0.7, 0.2]),
    ...     propensity=np.full(6, 0.5),
    ...     propensities=np.full((6, 2), 0.5),
    ... )
    >>> log = ai.AdaptiveLog.from_arrays(arrays, arms=("a", "b"))
    >>> ai.PolicyContrast(log, "b", baseline="uniform").fit(estimator="ipw").params.round(3)
    b - uniform    0.25
    Name: estimate, dtype: float64
    """

    def __init__(
        self,
        log: AdaptiveLog,
        policy: Any,
        *,
        baseline: Any,
        names: Sequence[str] | None = None,
        rounds: str | ArrayLike | None = None,
    ) -> None:
        if isinstance(baseline, (list, tuple)):
            raise ParameterError("PolicyContrast", ["baseline must be one policy, got a list"])
        require_log("PolicyContrast", log)
        self.log = log
        given = [*policy, baseline] if isinstance(policy, (list, tuple)) else [policy, baseline]
        if len(given) < 2:
            raise ParameterError("PolicyContrast", ["give at least one policy in addition to the baseline"])
        read = read_policies("PolicyContrast", log, given, names)
        self._question = _question("PolicyContrast", log, read, rounds, contrast=True)
        *first, self.baseline = self._question.policies
        self.policies = tuple(first)

    def fit(
        self,
        weights: str | None = None,
        contextual: bool | None = None,
        estimator: str = "aipw",
        outcome: Any = None,
        ridge: float | None = None,
        snapshots: Any = None,
        burn_in: int | None = None,
        null: float = 0.0,
        keep_scores: bool = False,
        *,
        stationary: bool = False,
    ) -> Results:
        """Estimate the differences.

        Parameters
        ----------
        weights : {"combined", "uniform", "stable-variance", "min-variance"}, optional
            The default is combined weights, or uniform weights if combined weights need information that the
            log lacks, or if units have several rounds. If `contextual` is given or rewards are `stationary`,
            the default is that of `PolicyValue.fit`.
        contextual, estimator, outcome, ridge, snapshots, burn_in, null, keep_scores, stationary
            As in `PolicyValue.fit`.

        Returns
        -------
        Results
            Results with one term per policy.

        Raises
        ------
        ParameterError
            If an argument is invalid, or snapshots disagree with the logged propensities.
        InvalidForLog
            If the log does not support the request; the message gives the reason and valid alternatives.

        Warns
        -----
        AdaptinfWarning
            If a policy chooses arms with propensity below 0.0001. Also if the effective number of uncommon
            rewards is below 10, but limits for counts do not apply, because units have several rounds or
            predictions miss the most common reward.
        """
        chosen = Request(
            weights, contextual, estimator, outcome, ridge, snapshots, burn_in, null, keep_scores, stationary
        )
        return _results("PolicyContrast", replace(self._question, snapshots=snapshots), chosen)


def _question(
    subject: str, log: AdaptiveLog, policies: tuple[Policy, ...], rounds: Any, *, contrast: bool = False
) -> PolicyQuestion:
    """The question about policies in the selected rounds, in which their arms must have been available."""
    used, keep, notes = marked_log(subject, log, rounds)
    if keep is not None:
        policies = tuple(policy.within(keep) for policy in policies)
    check_support(subject, used, policies)
    source = None if keep is None else log
    return PolicyQuestion(
        profile_of(used), policies, contrast=contrast, source=source, keep=keep, notes=notes
    )


def _results(model: str, question: PolicyQuestion, chosen: Request) -> Results:
    options = policy_options(f"{model}.fit", question, chosen)
    with np.errstate(under="ignore"):
        fit: PolicyFit = METHODS[options.estimator].fit(question, options)
    terms, estimands = _named(question)
    law = policy_law(question, terms, fit)
    facts = FitFacts(question, terms, fit, options, law)
    notes, cautions = under_table(claims.FIT, facts)
    for caution in said(claims.FEW_REWARDS, facts):
        warnings.warn(f"{caution}.", AdaptinfWarning, stacklevel=3)
    return Results(
        model=model,
        estimands=estimands,
        terms=terms,
        estimate=fit.estimate,
        std_error=law.std_error,
        covariance=law.covariance,
        reference=law.reference,
        estimator=options.estimator,
        weights=options.label,
        facts=LogFacts.of(question.profile.log, by_unit=fit.units is not None),
        validity="asymptotic",
        null=chosen.null,
        details={"ess": fit.ess, "min_propensity": fit.min_propensity},
        notes=(*question.notes, *notes),
        cautions=tuple(cautions),
        scores=fit.rows if chosen.keep_scores else None,
    )


def _named(question: PolicyQuestion) -> tuple[tuple[str, ...], tuple[Estimand, ...]]:
    """The terms of the table and their estimands."""
    names = tuple(policy.name for policy in question.policies)
    if not question.contrast:
        return names, tuple(Estimand("policy-value", arm=name) for name in names)
    *first, last = names
    estimands = tuple(Estimand("policy-contrast", treatment=name, control=last) for name in first)
    return tuple(f"{name} - {last}" for name in first), estimands
