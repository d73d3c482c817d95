"""Means of arms, estimated from adaptively collected data.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments". Neel, Roth (2018), "Mitigating bias in adaptive data gathering via differential privacy"
(corrected tests of sample means). Ying, Khamaru, Zhang (2023), "Adaptive linear estimating equations".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adaptinf.inference.arms.choice import (
    arm_codes,
    as_ratios,
    bound_of,
    by_deviation,
    denominator_of,
    fit_method,
    name_of,
    tested,
    validity,
)
from adaptinf.inference.arms.contrast import Contrast
from adaptinf.inference.arms.facts.weighted_facts import OWN
from adaptinf.inference.arms.fit import (
    check_options,
    fit_efficiency,
    mean_reference,
    null_problems,
    warn_of_tiny_propensities,
)
from adaptinf.inference.arms.question import Asked, Question
from adaptinf.inference.inputs.arguments import require_data
from adaptinf.inference.inputs.published import from_releases, refuse_others, refuse_rounds
from adaptinf.inference.inputs.rounds import marked_log
from adaptinf.inference.released.in_time import in_time_means
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.inference.scores.joint_levels import JOINT
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import PublicLog
from adaptinf.parameters import refuse

if TYPE_CHECKING:
    from adaptinf.inference.arms.data.ratio_metrics import Denominator
    from adaptinf.inference.arms.question import Choice
    from adaptinf.inference.arms.record import ArmMethod
    from adaptinf.inference.corrections.information import ChosenFrom
    from adaptinf.log import AdaptiveLog
    from adaptinf.sums import Sums
    from adaptinf.typing import Validity


@dataclass(frozen=True, slots=True, eq=False)
class PairContrasts:
    """Contrasts of two arms of a table over the rounds in which both could be chosen, fitted on request."""

    log: AdaptiveLog | Sums
    arms: tuple[Any, ...]
    denominator: Denominator | None
    how: Mapping[str, Any]
    """Arguments for `Contrast.fit`."""

    def __call__(self, first: int, second: int) -> Results:
        """The contrast of two arms, given by their positions in the table."""
        pair = Contrast(self.log, treatment=self.arms[first], control=self.arms[second])
        pair.denominator = self.denominator
        return pair.fit(**self.how)


def differences_of(
    model: ArmMeans, method: ArmMethod, asked: Asked, choice: Choice, label: Validity
) -> PairContrasts | None:
    """The contrasts that test differences between a table's arms; None if arms have separate weights."""
    if not method.pairs or label == "not valid" or asked.stationary or choice.weights in OWN:
        return None
    taken = {name: getattr(asked, name) for name in ("test", "arm_error", "outcome", "ridge")}
    weights = None if asked.weights == JOINT else asked.weights
    how = {"estimator": choice.estimator, "weights": weights, **taken}
    return PairContrasts(model.log, model.arms, model.denominator, how)


class ArmMeans:
    """Mean rewards of arms.

    Parameters
    ----------
    log : AdaptiveLog, Sums or PublicLog
        The data. For the public part of a log, its releases are used.
    arms : sequence of labels, optional
        The arms of interest, by default all arms in the log.
    rounds : str or array_like of bool, shape (T,), optional
        A column or mask that selects rounds, which must not depend on rewards; by default all rounds.
    denominator : str or array_like, shape (T,), optional
        Column of the log (for example, one of its outcomes), or one nonnegative number per round. If it is
        given, the model estimates ratios of means, such as revenue per order.

    Raises
    ------
    ParameterError
        If an arm is unknown or repeated, or no rounds are selected.

    Notes
    -----
    IPW and AIPW assume that the logged propensities are the arms' probabilities given the past. Both use the
    rounds in which an arm could be chosen. The t intervals of IPW and AIPW are asymptotic, and the weights
    keep them valid if propensities depend on the data. Joint weights, the default, are shared by the arms of
    the table. Each pair is compared over the rounds in which both could be chosen, with one weight per round,
    h = (1 / e1 + 1 / e0)^(-1/2). Levels are fitted to these comparisons by least squares and shifted to the
    mean over all rounds. A season or trend that is common to all arms then does not affect comparisons, and
    if the arms' means move in parallel, levels are means over the period. If differences between arms clearly
    change over time, joint weights are replaced with uniform ones, and a caution says so. Separate weights
    for each arm (sqrt, two-point) give shorter intervals if means are constant, but make equally good arms
    appear different if they drift. Tests of the difference between two arms (`Results.t_test`) are those of
    `Contrast`.

    ALEE computes the weights of an arm's rewards from the past alone, and needs no propensities. Its normal
    intervals are also asymptotic, and are valid for both stable and unstable designs.

    A ratio metric is an arm's mean reward divided by the mean of its denominator, both by the same estimator
    with the same weights. By the delta method, its error is that of the mean of linearised rewards, to which
    stored scores also refer. An arm's ratio is withheld, with a caution, if the mean of its denominator is
    within 3 standard errors of 0, or if fewer than 20 of its rounds have a positive denominator.

    Sample means are not valid under adaptive collection. If the design was differentially private in the
    rewards, the table also contains corrected p-values and intervals, which are valid.

    References
    ----------
    Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
    experiments". Ying, Khamaru, Zhang (2023), "Adaptive linear estimating equations". Neel, Roth (2018),
    "Mitigating bias in adaptive data gathering via differential privacy". Hall (1992), "On the removal of
    skewness by transformation". Deng, Knoblich, Lu (2018), "Applying the delta method in metric analytics".

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> import pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> share = np.repeat([[0.5, 0.5], [0.4, 0.6]], 200, axis=0)
    >>> action = (rng.random(400) < share[:, 1]).astype(int)
    >>> reward = rng.binomial(1, np.array([0.3, 0.6])[action])
    >>> frame = pd.DataFrame({"arm": np.array(["a", "b"])[action], "y": reward})
    >>> frame[["p_a", "p_b"]] = share
    >>> log = ai.AdaptiveLog(frame, action="arm", reward="y", propensities="p_{arm}")
    >>> result = ai.ArmMeans(log).fit()
    >>> result.estimator, result.weights
    ('aipw', 'joint')
    >>> result.conf_int().round(2)
        low  high
    a  0.29  0.43
    b  0.52  0.66
    """

    def __init__(
        self,
        log: AdaptiveLog | Sums | PublicLog,
        arms: Sequence[Any] | None = None,
        *,
        rounds: Any = None,
        denominator: Any = None,
    ) -> None:
        self._public = isinstance(log, PublicLog)
        self.log = log = require_data("ArmMeans", log, public=True)
        if self._public:
            refuse_rounds("ArmMeans", log, rounds=rounds, denominator=denominator)
        keep = None
        self._told: tuple[str, ...] = ()
        if rounds is not None:
            self.log, keep, self._told = marked_log("ArmMeans", log, rounds)
        self.denominator = denominator_of("ArmMeans", log, denominator, keep)
        self._codes = arm_codes("ArmMeans", log, arms)
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
        covariate: Any = None,
        arm_error: str = "conservative",
        chosen_from: ChosenFrom = "actions",
        stationary: bool = False,
    ) -> Results:
        """Estimate the means.

        Parameters
        ----------
        estimator : {"sample-mean", "ipw", "aipw", "alee", "released"}, optional
            By default, the first method listed by ``recommend(log)``. ``"released"`` uses the numbers of
            successes S and failures F known in time, if these were released (``in_time=`` of a session or
            trial). The estimate is S / (S + F), which assumes that delays do not depend on outcomes; Manski's
            limits S / n and 1 - F / n are also given. For the public part of a log, only this estimator is
            available.
        weights : {"joint", "uniform", "sqrt", "two-point", "combined"}, optional
            Weights of the scores of IPW and AIPW. Joint weights are the default; they are replaced with
            uniform ones if the log lacks the propensities of some arms, or if no weight can be computed
            before the context is known. Sqrt and two-point weights are separate for each arm. Combined
            weights consist of one weight per round for all arms, so the estimated means are weighted means
            over the period.
        decay : float, optional
            Exponent in [0, 1) of the propensity floor, for two-point weights; by default that of the design.
        test : {"auto", "normal", "t", "hall", "exact"}
            Distribution used for p-values and intervals. ``"auto"`` selects it as follows. For rewards that
            take two values, it is exact binomial if a correction is needed, or if the design does not adapt
            and an arm has few successes or failures. Otherwise, it is t for sample means, IPW and AIPW (with
            degrees of freedom from the effective size), with Hall's correction for skewness if all rewards
            together are skewed, and normal for other estimators. If an arm has few uncommon rewards, IPW and
            AIPW treat these as weighted Poisson counts.
        null : float
            Value of the means under the null hypothesis.
        keep_scores : bool
            Whether the result stores the contribution of each round, as arrays over the rounds.
        outcome : {"running-mean", "running-ridge", "batch-mean"}, mapping, frame, or array, optional
            Outcome model of AIPW. The default is the running mean of the arm or, for sums, its mean over
            earlier batches (in the first batch, the mean of its other rounds). Alternatives are a ridge
            regression on the log's contexts, fitted before each round, and your own predictions, whose row t
            may depend only on rounds before t and on the context of round t. These are given as a mapping
            from arms to columns, a frame with one column per arm, or an array of shape (T, K) with all K arms
            in the order of ``log.arms``.
        ridge : float, optional
            Penalty of the running ridge, fixed in advance; 1 by default.
        covariate : str or list of str, optional
            Contexts from before the experiment, such as earlier spending. The outcome model is then a running
            ridge regression on these alone, standardised over the rounds so far, which is like CUPED with
            coefficients from past data only. The notes and ``details["variance_ratio"]`` report the ratio of
            the variances with and without this adjustment.
        arm_error : {"conservative", "self-normalised"}
            Type of standard error for ALEE.
        chosen_from : {"actions", "releases"}
            Information other than contexts on which the choice of arms, null and test was based. By default,
            the corrected columns allow for a choice based on the actions; with ``"releases"``, they also
            allow for one based on the releases.
        stationary : bool
            Whether each arm's mean is known to be constant, which requires that there is no drift and that
            contexts do not affect assignment. If so, each arm has separate weights by default.

        Returns
        -------
        Results
            Results with one term per arm.

        Raises
        ------
        ParameterError
            If an argument is invalid.
        InvalidForLog
            If the log does not support the request; the message gives the reason and valid alternatives.
        """
        given: dict[str, Any] = {"estimator": estimator, "weights": weights, "decay": decay, "test": test}
        given |= {"null": null, "keep_scores": keep_scores, "outcome": outcome, "ridge": ridge}
        given |= {"covariate": covariate, "arm_error": arm_error, "chosen_from": chosen_from}
        given |= {"stationary": stationary}
        if self._public or (isinstance(estimator, str) and estimator == "released"):
            return self._released(given)
        profile = profile_of(self.log)
        if (result := by_deviation(self, profile, given)) is not None:
            return result
        options = (estimator, weights, decay, test, outcome, ridge, arm_error)
        asked = Asked("ArmMeans.fit", *options, chosen_from=chosen_from, stationary=stationary)
        check_options(asked, null, keep_scores)
        question = Question(profile, self._codes, stationary=stationary)
        method, fit = fit_method(question, asked)
        if self.denominator is not None:
            question, fit = as_ratios(question, method, fit, asked, self.denominator)
        warn_of_tiny_propensities(asked.subject, fit)
        fit, shown = tested(question, method, fit, asked)
        reference = mean_reference(question, fit, shown.kind)
        efficiency, lost = fit_efficiency(question, bound_of(method, fit), fit.std_error)
        kind, below = "arm-mean" if self.denominator is None else "ratio", name_of(self.denominator)
        label = validity(question, method, shown.kind, shown.correction, reference)
        contrasts = differences_of(self, method, asked, fit.choice, label)
        return Results(
            model="ArmMeans",
            estimands=tuple(Estimand(kind, arm=arm, denominator=below) for arm in self.arms),
            terms=tuple(map(str, self.arms)),
            estimate=fit.estimate,
            std_error=fit.std_error,
            covariance=fit.covariance,
            reference=reference,
            estimator=fit.choice.estimator,
            weights=fit.choice.weights,
            facts=LogFacts.of(self.log, by_unit=fit.by_unit is not None),
            validity=label,
            null=null,
            correction=shown.correction,
            details={"pulls": fit.pulls, "ess": fit.ess, "min_propensity": fit.min_propensity, **efficiency},
            notes=(*shown.notes, *self._told),
            cautions=shown.cautions,
            efficiency_note=lost,
            scores=method.contributions(question, fit) if keep_scores else None,
            contrast_of=contrasts,
        )

    def _released(self, arguments: Mapping[str, Any]) -> Results:
        """Means from released numbers of successes and failures; `arguments` contains those of `fit`."""
        from_releases("ArmMeans.fit", self.log, arguments["estimator"])
        kept = ("estimator", "null")
        refuse_others("ArmMeans.fit", arguments, kept, "of released successes and failures")
        refuse("ArmMeans.fit", null_problems(arguments["null"]))
        return in_time_means(self.log, self._codes, arguments["null"])
