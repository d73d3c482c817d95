"""Means of arms, and contrasts of two arms, from adaptively gathered data.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments". Neel, Roth (2018), "Mitigating bias in adaptive data gathering via differential privacy"
(corrected tests of sample means). Ying, Khamaru, Zhang (2023), "Adaptive linear estimating equations".
Zhang, Janson, Murphy (2020), "Inference for batched bandits".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.inference.arms.batched import batched_fit, batched_notes, drifting_test, usable_batches
from adaptinf.inference.arms.choice import arm_codes, choose, default_estimator
from adaptinf.inference.arms.efficiency import fit_efficiency
from adaptinf.inference.arms.fit import (
    ArmFit,
    check_test,
    difference_reference,
    fit_arms,
    influence_rows,
    mean_reference,
    resolve_test,
    warn_of_tiny_propensities,
)
from adaptinf.inference.arms.notes import fit_notes
from adaptinf.inference.inputs.arguments import label_problems, require_log, text_problems
from adaptinf.inference.results.base import Estimand, LogFacts, Results
from adaptinf.inference.scores.outcome_models import outcome_model
from adaptinf.inference.validity.profile import profile_of
from adaptinf.parameters import flag_problem
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.results.hypotheses import WaldTest
    from adaptinf.log import AdaptiveLog

__all__ = ["ArmMeans", "Contrast", "default_estimator"]


class ArmMeans:
    """Mean rewards of arms.

    Parameters
    ----------
    log : AdaptiveLog
        The data.
    arms : sequence of labels, optional
        The arms of interest, by default all of the log's.

    Raises
    ------
    ParameterError
        If an arm is unknown or repeated.

    Notes
    -----
    IPW and AIPW assume that the logged propensities are the arms' probabilities given the past, positive in
    every round, and that each arm's expected reward does not change over time. Their normal intervals are
    asymptotic; stabilising weights (sqrt, two-point) keep them so when propensities move with the data.

    ALEE weighs an arm's rewards by the past alone and needs no propensities; its normal intervals are
    asymptotic too, for stable and unstable designs alike.

    Sample means are not valid under adaptivity. Where the design was differentially private in the rewards,
    their p-values and intervals are also given in a corrected form, which is.

    References
    ----------
    Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
    experiments". Ying, Khamaru, Zhang (2023), "Adaptive linear estimating equations". Neel, Roth (2018),
    "Mitigating bias in adaptive data gathering via differential privacy".

    Examples
    --------
    >>> from adaptinf.log import AdaptiveLog, LogArrays
    >>> rng = np.random.default_rng(1)
    >>> action = rng.integers(0, 2, size=400)
    >>> arrays = LogArrays(
    ...     action=action,
    ...     reward=rng.binomial(1, np.array([0.3, 0.6])[action]).astype(float),
    ...     propensity=np.full(400, 0.5),
    ...     propensities=np.full((400, 2), 0.5),
    ... )
    >>> log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"))
    >>> result = ArmMeans(log).fit()
    >>> result.estimator, result.weights
    ('aipw', 'sqrt')
    >>> result.conf_int().round(2)
        low  high
    a  0.20  0.32
    b  0.53  0.66
    """

    def __init__(self, log: AdaptiveLog, arms: Sequence[Any] | None = None) -> None:
        require_log("ArmMeans", log)
        self.log = log
        self._codes = arm_codes("ArmMeans", log, log.arms if arms is None else arms)
        self.arms = tuple(log.arms[code] for code in self._codes)

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
        arm_error: str = "conservative",
    ) -> Results:
        """Estimate the means.

        Parameters
        ----------
        estimator : {"sample-mean", "ipw", "aipw", "alee"}, optional
            By default what `default_estimator` says.
        weights : {"uniform", "sqrt", "two-point"}, optional
            Weights of the scores of IPW and AIPW.
        decay : float, optional
            Exponent in [0, 1) of the propensity floor, for two-point weights; by default the design's.
        test : {"auto", "normal", "t", "exact"}
            Distribution of p-values and intervals. ``"auto"``: exact binomial where all rewards are 0 or 1
            and a correction is due, or the design does not adapt and an arm has few successes or failures;
            otherwise t for sample means and normal for the other estimators.
        null : float
            Value that the means are tested against.
        keep_scores : bool
            Whether the result keeps what each round contributes, arrays over the rounds.
        outcome : {"running-mean", "running-ridge"}, mapping of arm to str, or array of shape (T, k), optional
            Outcome model of AIPW. The running mean of the arm by default; a ridge regression on the log's
            contexts, fitted before each round; or predictions of your own, as columns of the log or as an
            array, whose row t may depend on rounds before t and this round's context only.
        ridge : float, optional
            Penalty of the running ridge, fixed in advance; 1 by default.
        arm_error : {"conservative", "self-normalised"}
            Standard error of ALEE.

        Returns
        -------
        Results
            One term an arm.

        Raises
        ------
        ParameterError
            If an argument makes no sense.
        InvalidForLog
            If the log does not support what was asked for; it names the reason and what is valid.
        """
        _check_kinds("ArmMeans.fit", estimator, weights, test, arm_error, keep_scores)
        check_test("ArmMeans.fit", test, null, arm_error)
        asked = (estimator, weights, decay)
        fit = _fit("ArmMeans.fit", self.log, self._codes, asked, test, outcome, ridge, arm_error)
        correction = profile_of(self.log).correction if fit.naive else None
        kind = resolve_test(self.log, fit, test, corrected=correction is not None)
        reference = mean_reference(fit, kind)
        validity, notes = fit_notes(self.log, fit, kind, correction, exact=reference.exact)
        efficiency, lost = fit_efficiency(self.log, self._codes, fit, fit.std_error**2)
        rows = influence_rows(self.log, self._codes, fit) if keep_scores else None
        return Results(
            model="ArmMeans",
            estimands=tuple(Estimand("arm-mean", arm=arm) for arm in self.arms),
            terms=tuple(map(str, self.arms)),
            estimate=fit.estimate,
            std_error=fit.std_error,
            covariance=fit.covariance,
            reference=reference,
            estimator=fit.choice.estimator,
            weights=fit.choice.weights,
            facts=LogFacts.of(self.log),
            validity=validity,
            null=null,
            correction=correction,
            details={
                "pulls": fit.pulls,
                "ess": fit.ess,
                "min_propensity": fit.min_propensity,
                **efficiency,
            },
            notes=notes,
            efficiency_note=lost,
            scores=rows,
        )


class Contrast:
    """Difference of the mean rewards of two arms.

    Parameters
    ----------
    log : AdaptiveLog
        The data.
    treatment, control : label
        The arms; the control's mean is subtracted.

    Raises
    ------
    ParameterError
        If an arm is unknown, or both are the same.

    Notes
    -----
    As for `ArmMeans`. Each arm's scores have their own weights; the standard error takes into account that
    both are computed from the same rounds.

    Batched least squares compares the arms within each batch, so that only differences are estimated; it
    assumes arms that were chosen with fixed probabilities within a batch, and is asymptotic in the sizes of
    the batches.

    References
    ----------
    Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
    experiments". Ying, Khamaru, Zhang (2023), "Adaptive linear estimating equations". Zhang, Janson, Murphy
    (2020), "Inference for batched bandits". Welch (1947), "The generalization of 'Student's' problem when
    several different population variances are involved".

    Examples
    --------
    >>> from adaptinf.log import AdaptiveLog, LogArrays
    >>> arrays = LogArrays(
    ...     action=np.array([0, 1, 0, 1, 0, 1]), reward=np.array([0.1, 0.8, 0.3, 0.6, 0.2, 0.4])
    ... )
    >>> log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"))
    >>> result = Contrast(log, treatment="b", control="a").fit()
    >>> result.params.round(2)
    b - a    0.42
    Name: estimate, dtype: float64
    >>> result.estimator
    'alee'
    """

    def __init__(self, log: AdaptiveLog, *, treatment: Any, control: Any) -> None:
        require_log("Contrast", log)
        problems = label_problems("treatment", [treatment]) + label_problems("control", [control])
        if problems:
            raise ParameterError("Contrast", problems)
        self.log = log
        self.treatment = treatment
        self.control = control
        self._codes = arm_codes("Contrast", log, (treatment, control))

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
        arm_error: str = "conservative",
    ) -> Results:
        """Estimate the difference.

        Parameters
        ----------
        estimator : {"sample-mean", "ipw", "aipw", "alee", "batched"}, optional
            By default what `default_estimator` says. ``"batched"`` is batched least squares, for logs with
            batches in which both arms were chosen.
        weights : {"uniform", "sqrt", "two-point"}, optional
            Weights of the scores of IPW and AIPW.
        decay : float, optional
            Exponent in [0, 1) of the propensity floor, for two-point weights; by default the design's.
        test : {"auto", "normal", "t", "exact"}
            Distribution of the p-value and interval. ``"auto"``: where all rewards are 0 or 1, the exact one
            of bounded differences if a correction is due, and the Agresti-Caffo adjustment if the design does
            not adapt and an arm has few successes or failures; otherwise Welch's t for sample means and
            normal for the other estimators.
        null : float
            Value that the difference is tested against.
        keep_scores : bool
            Whether the result keeps what each round contributes, arrays over the rounds.
        outcome : {"running-mean", "running-ridge"}, mapping of arm to str, or array of shape (T, k), optional
            Outcome model of AIPW. The running mean of the arm by default; a ridge regression on the log's
            contexts, fitted before each round; or predictions of your own, as columns of the log or as an
            array, whose row t may depend on rounds before t and this round's context only.
        ridge : float, optional
            Penalty of the running ridge, fixed in advance; 1 by default.
        arm_error : {"conservative", "self-normalised"}
            Standard error of ALEE.

        Returns
        -------
        Results
            One term, treatment minus control.

        Raises
        ------
        ParameterError
            If an argument makes no sense.
        InvalidForLog
            If the log does not support what was asked for; it names the reason and what is valid.
        """
        _check_kinds("Contrast.fit", estimator, weights, test, arm_error, keep_scores)
        check_test("Contrast.fit", test, null, arm_error)
        if estimator == "batched":
            refused = {"weights": weights, "decay": decay, "outcome": outcome, "ridge": ridge}
            return self._batched(test, null, [name for name, value in refused.items() if value is not None])
        asked = (estimator, weights, decay)
        fit = _fit("Contrast.fit", self.log, self._codes, asked, test, outcome, ridge, arm_error)
        correction = profile_of(self.log).correction if fit.naive else None
        kind = resolve_test(self.log, fit, test, corrected=correction is not None)
        difference, std_error, df = fit.difference(0, 1)
        reference = difference_reference(fit, kind, difference, std_error, df)
        validity, notes = fit_notes(self.log, fit, kind, correction, exact=reference.exact)
        efficiency, lost = fit_efficiency(self.log, self._codes, fit, np.array([std_error**2]))
        rows = _difference_rows(influence_rows(self.log, self._codes, fit)) if keep_scores else None
        return Results(
            model="Contrast",
            estimands=(Estimand("contrast", treatment=self.treatment, control=self.control),),
            terms=(f"{self.treatment} - {self.control}",),
            estimate=np.array([difference]),
            std_error=np.array([std_error]),
            covariance=np.array([[std_error**2]]),
            reference=reference,
            estimator=fit.choice.estimator,
            weights=fit.choice.weights,
            facts=LogFacts.of(self.log),
            validity=validity,
            null=null,
            correction=correction,
            details={
                "pulls_treatment": fit.pulls[:1],
                "pulls_control": fit.pulls[1:],
                "ess": fit.ess.min(keepdims=True),
                "min_propensity": fit.min_propensity.min(keepdims=True),
                **efficiency,
            },
            notes=notes,
            efficiency_note=lost,
            scores=rows,
        )

    def batch_test(self, null: float = 0.0) -> WaldTest:
        """Test that the difference is the null in every batch, when it may drift from batch to batch.

        Parameters
        ----------
        null : float
            Difference under the null.

        Returns
        -------
        WaldTest
            Sum of the squared statistics of the batches, against chi-squared.

        Raises
        ------
        ParameterError
            If null is no finite number.
        InvalidForLog
            If the log has no batches, or an adaptive log has batches without one of the arms.

        References
        ----------
        Zhang, Janson, Murphy (2020), "Inference for batched bandits".
        """
        check_test("Contrast.batch_test", "auto", null)
        found, _ = usable_batches(self.log, self._codes, profile_of(self.log).adaptive)
        return drifting_test(found, null, f"{self.treatment} - {self.control}")

    def _batched(self, test: str, null: float, refused: list[str]) -> Results:
        problems = [f"{name} does not apply to batched least squares" for name in refused]
        if test == "exact":
            problems.append("test must be auto, normal or t for batched least squares, got 'exact'")
        if problems:
            raise ParameterError("Contrast.fit", problems)
        found, left_out = usable_batches(self.log, self._codes, profile_of(self.log).adaptive)
        estimate, std_error, reference = batched_fit(found, test)
        notes = batched_notes(self.log, left_out, reference)
        return Results(
            model="Contrast",
            estimands=(Estimand("contrast", treatment=self.treatment, control=self.control),),
            terms=(f"{self.treatment} - {self.control}",),
            estimate=np.array([estimate]),
            std_error=np.array([std_error]),
            covariance=np.array([[std_error**2]]),
            reference=reference,
            estimator="batched",
            facts=LogFacts.of(self.log),
            validity="asymptotic",
            null=null,
            details={
                "pulls_treatment": found.treated.sum(keepdims=True),
                "pulls_control": found.control.sum(keepdims=True),
                "batches": np.array([float(len(found.difference))]),
            },
            notes=notes,
        )


def _check_kinds(
    subject: str, estimator: Any, weights: Any, test: Any, arm_error: Any, keep_scores: Any
) -> None:
    """Refuse what is no string, or no truth value, where one belongs."""
    problems = text_problems(estimator=estimator, weights=weights, test=test, arm_error=arm_error)
    problems += flag_problem("keep_scores", keep_scores)
    if problems:
        raise ParameterError(subject, problems)


def _fit(
    subject: str,
    log: AdaptiveLog,
    codes: IntArray,
    asked: tuple[str | None, str | None, float | None],
    test: str,
    outcome: Any,
    ridge: float | None,
    arm_error: str,
) -> ArmFit:
    """Choice of estimator, weights and outcome model, and the fit; warns of tiny propensities."""
    estimator, weights, decay = asked
    augmented = outcome is not None or ridge is not None
    if test == "exact" and not augmented and asked == (None, None, None):
        estimator = "sample-mean"  # exact tests are of sample means
    if augmented and estimator not in (None, "aipw"):
        raise ParameterError(subject, [f"outcome and ridge belong to aipw, not to {estimator}"])
    choice = choose(subject, log, codes, "aipw" if augmented else estimator, weights, decay)
    model = outcome_model(subject, log, codes, outcome, ridge) if augmented else None
    fit = fit_arms(log, codes, choice, model, arm_error)
    warn_of_tiny_propensities(subject, fit)
    return fit


def _difference_rows(rows: Mapping[str, FloatArray]) -> Mapping[str, FloatArray]:
    influence = rows["influence"]
    return {**rows, "influence": influence[:, :1] - influence[:, 1:]}
