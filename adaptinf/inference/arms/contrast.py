"""Differences between the means of two arms, estimated from adaptively collected data.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments". Zhang, Janson, Murphy (2020), "Inference for batched bandits".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.inference.arms.batched import drifting_test, usable_batches
from adaptinf.inference.arms.choice import (
    arm_codes,
    as_ratios,
    by_deviation,
    denominator_of,
    difference,
    fit_method,
    name_of,
    refusal,
)
from adaptinf.inference.arms.data.arms_of_releases import published
from adaptinf.inference.arms.fit import check_options, null_problems, warn_of_tiny_propensities
from adaptinf.inference.arms.question import Asked, Difference, Question, Refused
from adaptinf.inference.inputs.arguments import label_problems, require_data
from adaptinf.inference.inputs.published import from_releases, refuse_rounds
from adaptinf.inference.inputs.rounds import marked_log
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.parameters import refuse

if TYPE_CHECKING:
    from adaptinf.inference.arms.data.pair_tables import PairTable
    from adaptinf.inference.corrections.information import ChosenFrom
    from adaptinf.inference.results.hypotheses import WaldTest
    from adaptinf.log import AdaptiveLog, PublicLog
    from adaptinf.sums import Sums


class Contrast:
    """Difference between the mean rewards of two arms.

    Parameters
    ----------
    log : AdaptiveLog, Sums or PublicLog
        The data. For the public part of a log, its releases are used.
    treatment, control : label
        The two arms; the control's mean is subtracted.
    rounds, denominator : optional
        As in `ArmMeans`; with a denominator, the difference between two ratios of means is estimated.

    Raises
    ------
    ParameterError
        If an arm is unknown, both are the same, or no rounds are selected.

    Notes
    -----
    The methods are those of `ArmMeans`, applied to the rounds in which both arms could be chosen. Combined
    weights, h = (1 / e1 + 1 / e0)^(-1/2), are shared by both arms. Both means then refer to the same times,
    so common drift cancels, and if the effect changes over time, its weighted mean is estimated. If contexts
    may affect propensities, h is computed from the propensities of the previous batch.

    Batched least squares compares the arms within each batch, so only differences are estimated. The method
    assumes that assignment probabilities are constant within each batch, and is asymptotic in the batch
    sizes.

    References
    ----------
    Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
    experiments". Ying, Khamaru, Zhang (2023), "Adaptive linear estimating equations". Zhang, Janson, Murphy
    (2020), "Inference for batched bandits". Welch (1947), "The generalization of 'Student's' problem when
    several different population variances are involved". Hall (1992), "On the removal of skewness by
    transformation". Zou, Donner (2008), "Construction of confidence limits about effect measures" (MOVER).

    Examples
    --------
    >>> import adaptinf as ai
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"arm": ["a", "b"] * 3, "y": [0.1, 0.8, 0.3, 0.6, 0.2, 0.4]})
    >>> log = ai.AdaptiveLog(frame, action="arm", reward="y")
    >>> result = ai.Contrast(log, treatment="b", control="a").fit()
    >>> result.params.round(2)
    b - a    0.42
    Name: estimate, dtype: float64
    >>> result.estimator
    'alee'
    """

    def __init__(
        self,
        log: AdaptiveLog | Sums | PublicLog,
        *,
        treatment: Any,
        control: Any,
        rounds: Any = None,
        denominator: Any = None,
    ) -> None:
        log = require_data("Contrast", log, public=True)
        refuse_rounds("Contrast", log, rounds=rounds, denominator=denominator)
        problems = label_problems("treatment", [treatment]) + label_problems("control", [control])
        refuse("Contrast", problems)
        self.log, keep, self._told = marked_log("Contrast", log, rounds)
        self.denominator = denominator_of("Contrast", log, denominator, keep)
        self.treatment = treatment
        self.control = control
        self._codes = arm_codes("Contrast", log, (treatment, control))
        self.table: PairTable | None = None
        """The table of which this contrast is a row."""

    def fit(
        self,
        estimator: str | None = None,
        weights: str | None = None,
        decay: float | None = None,
        test: str = "auto",
        null: float = 0.0,
        keep_scores: bool = False,
        *,
        outcome: Any = None,
        ridge: float | None = None,
        covariate: Any = None,
        arm_error: str = "conservative",
        named: str = "before",
        chosen_from: ChosenFrom = "actions",
        estimand: str = "assigned",
        stationary: bool = False,
    ) -> Results:
        """Estimate the difference.

        Parameters
        ----------
        estimator : {"sample-mean", "ipw", "aipw", "alee", "batched", "released"}, optional
            By default, the first method listed by ``recommend(log, "contrast", treatment=..., control=...)``.
            ``"batched"`` is batched least squares, for logs with batches in which both arms were chosen;
            ``"released"`` uses only the log's private releases.
        weights : {"combined", "uniform", "sqrt", "two-point"}, optional
            Weights of the scores of IPW and AIPW. Combined weights, the default, are the same for both arms,
            so drift that both share cancels. Sqrt and two-point weights are separate for each arm.
        decay : float, optional
            Exponent in [0, 1) of the propensity floor, for two-point weights; by default that of the design.
        test : {"auto", "normal", "t", "hall", "exact"}
            Distribution used for the p-value and interval. ``"auto"`` selects it as follows. For rewards that
            take two values, it is the exact distribution of bounded differences if a correction is needed,
            and the Agresti-Caffo adjustment if the design does not adapt and an arm has few successes or
            failures. Otherwise, it is Welch's t for sample means and t for IPW and AIPW (with the degrees of
            freedom of the arm with the smaller effective size), with Hall's correction and MOVER if all
            rewards together are skewed. For other estimators, it is the normal distribution. If an arm has
            few uncommon rewards, IPW and AIPW treat these as weighted Poisson counts.
        null : float
            Difference under the null hypothesis.
        keep_scores : bool
            Whether the result stores the contribution of each round, as arrays over the rounds.
        outcome, ridge, covariate : optional
            Outcome model of AIPW, its penalty, and contexts for it, as in `ArmMeans.fit`.
        arm_error : {"conservative", "self-normalised"}
            Type of standard error for ALEE.
        named : {"before", "after"}
            For released means: whether the pair of arms was named before the trial, or after its outputs had
            been seen.
        chosen_from : {"actions", "releases"}
            Information, apart from contexts, on which the choice of arms, null and test was based. By
            default, the corrected columns allow for a choice based on the actions; with ``"releases"``, they
            also allow for a choice based on the releases.
        stationary : bool
            Whether the arm means are known not to drift. If so, each arm has separate weights by default.

        Returns
        -------
        Results
            Results with one term, treatment minus control.

        Raises
        ------
        ParameterError
            If an argument is invalid.
        InvalidForLog
            If the log does not support the request; the message gives the reason and valid alternatives.
        """
        arguments: dict[str, Any] = {"estimator": estimator, "weights": weights, "decay": decay, "test": test}
        arguments |= {"null": null, "keep_scores": keep_scores, "outcome": outcome, "ridge": ridge}
        arguments |= {"covariate": covariate, "arm_error": arm_error, "named": named}
        arguments |= {"chosen_from": chosen_from, "estimand": estimand, "stationary": stationary}
        given = {"covariate": covariate, "keep_scores": keep_scores or None}
        given["estimand"] = None if estimand == "assigned" else estimand
        public = from_releases("Contrast.fit", self.log, estimator, **given)
        profile = LogProfile(self.log) if public else profile_of(self.log)
        if not public and (result := by_deviation(self, profile, arguments)) is not None:
            return result
        options = (estimator, weights, decay, test, outcome, ridge, arm_error, named, chosen_from, stationary)
        asked = Asked("Contrast.fit", *options)
        check_options(asked, null, keep_scores)
        question = Question(profile, self._codes, True, stationary=stationary, table=self.table)
        if public:
            return self._shown(published(question, asked), null)
        method, found = fit_method(question, asked)
        if self.denominator is not None:
            question, found = as_ratios(question, method, found, asked, self.denominator)
        if not method.contrast_only:
            warn_of_tiny_propensities(asked.subject, found)
            found = difference(question, method, found, asked, keep_scores)
        return self._shown(found, null)

    def _shown(self, found: Difference, null: float) -> Results:
        """The results of a difference as a table."""
        kind = "contrast" if self.denominator is None else "ratio-contrast"
        pair = {"treatment": self.treatment, "control": self.control}
        return Results(
            model="Contrast",
            estimands=(Estimand(kind, **pair, denominator=name_of(self.denominator)),),
            terms=(f"{self.treatment} - {self.control}",),
            estimate=np.array([found.estimate]),
            std_error=np.array([found.std_error]),
            covariance=None if found.private else np.array([[found.std_error**2]]),
            reference=found.reference,
            estimator=found.choice.estimator,
            weights=found.choice.weights,
            facts=LogFacts.of(self.log, by_unit=found.by_unit, private=found.private),
            validity=found.validity,
            null=null,
            correction=found.correction,
            details=found.details,
            notes=(*found.notes, *self._told),
            cautions=found.cautions,
            efficiency_note=found.efficiency_note,
            scores=found.scores,
            private=found.private,
        )

    def batch_test(self, null: float = 0.0) -> WaldTest:
        """Test that the difference equals the null value in every batch, even if it drifts between batches.

        Parameters
        ----------
        null : float
            Difference under the null.

        Returns
        -------
        WaldTest
            The sum of the batches' squared statistics, compared with a chi-squared distribution.

        Raises
        ------
        ParameterError
            If null is not a finite number.
        InvalidForLog
            If the log has no batches, or an adaptive log has batches without one of the arms.

        References
        ----------
        Zhang, Janson, Murphy (2020), "Inference for batched bandits".
        """
        refuse("Contrast.batch_test", null_problems(null))
        question = Question(profile_of(self.log), self._codes, contrast=True)
        try:
            found, _ = usable_batches(question)
        except Refused as refused:
            raise refusal(question, refused) from None
        return drifting_test(found, null, f"{self.treatment} - {self.control}")
