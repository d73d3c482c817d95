"""Comparisons of all arms with a control.

References
----------
Dunnett (1955), "A multiple comparison procedure for comparing several treatments with a control".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from adaptinf.claims.arms import contrasts as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms import Contrast
from adaptinf.inference.arms.choice import arm_codes, as_ratios, denominator_of, fit_method, name_of
from adaptinf.inference.arms.data.covariate_adjustment import covariates_of
from adaptinf.inference.arms.data.pair_tables import PairTable
from adaptinf.inference.arms.fit import null_problems
from adaptinf.inference.arms.question import Asked, Question
from adaptinf.inference.contrasts.contrast_verdicts import lift_refusal
from adaptinf.inference.contrasts.shared_control import (
    Lift,
    joint_covariance,
    lift_of,
    negative_control,
    pairs_correlation,
    rows_correlation,
    sums_correlation,
)
from adaptinf.inference.distributions.references import joined
from adaptinf.inference.inputs.arguments import label_problems, require_data
from adaptinf.inference.inputs.rounds import marked_log
from adaptinf.inference.results import Results
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.multiplicity import AT_ONCE
from adaptinf.inference.results.tables import said_of
from adaptinf.inference.validity.profile import profile_of
from adaptinf.inference.validity.rare import without_interval
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import FLAG, refuse
from adaptinf.sums import Sums
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.inference.results.explanation import Explanation
    from adaptinf.inference.results.summary import ResultSummary


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ContrastsResults(Results):
    """Differences between arms and a control, or lifts over it.

    The printed table is that of all results, followed by simultaneous p-values and intervals.

    Parameters
    ----------
    control : label
        The arm with which all others are compared.
    pairs : tuple of Results
        The results of each contrast by itself.
    **others
        As in `Results`.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.30, 0.32, 0.45])
    >>> log = ai.designs.EpsilonGreedy(exploration=0.3).run(arms, horizon=3_000, rng=0)
    >>> result = ai.Contrasts(log, control=0).fit()
    >>> result.control, [pair.terms for pair in result.pairs]
    (0, [('1 - 0',), ('2 - 0',)])
    """

    control: Any
    pairs: tuple[Results, ...]
    _adjustment: ClassVar[str | None] = AT_ONCE

    def summary(self, alpha: float = 0.05, adjust: str | None = "max-t") -> ResultSummary:
        """Summarise all terms in a table, with simultaneous p-values and intervals.

        Parameters
        ----------
        alpha : float
            One minus the confidence level of the intervals, between 0 and 0.5.
        adjust : {"max-t", "holm", "bh"} or None
            As for other results, whose tables have no simultaneous intervals by default. If a correction for
            adaptive collection is needed, Holm's method replaces ``"max-t"``.

        Returns
        -------
        ResultSummary
            A summary that prints as text; ``as_markdown()``, ``as_latex()`` and ``as_html()`` give the other
            formats.

        Raises
        ------
        ParameterError
            If alpha is not between 0 and 0.5, or the adjustment is unknown.
        """
        return super().summary(alpha, self._allowed(adjust))

    def explain(self, alpha: float = 0.05, adjust: str | None = "max-t") -> Explanation:
        """Explain the data on which the table is based.

        Parameters
        ----------
        alpha, adjust
            As for `summary`.

        Returns
        -------
        Explanation
            As for other results.

        Raises
        ------
        ParameterError
            If alpha is not between 0 and 0.5, or the adjustment is unknown.
        """
        return super().explain(alpha, self._allowed(adjust))

    def sentence(
        self,
        term: str | None = None,
        alpha: float = 0.05,
        unit: str | None = None,
        adjust: str | None = "max-t",
    ) -> str:
        """State the findings in one sentence, based on simultaneous intervals.

        Parameters
        ----------
        term, alpha, unit
            As for other results.
        adjust : {"max-t", "holm", "bh"} or None
            As for `summary`.

        Returns
        -------
        str
            A sentence with estimates and limits as in the printed table.

        Raises
        ------
        ParameterError
            If there is no such term, alpha is not between 0 and 0.5, or the adjustment is unknown.
        """
        return super().sentence(term, alpha, unit, self._allowed(adjust))

    def to_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """Return all numbers, including the simultaneous ones, as a plain frame.

        Parameters
        ----------
        alpha : float
            One minus the confidence level of the intervals, between 0 and 0.5.

        Returns
        -------
        DataFrame
            The columns of other results, and p_value_simultaneous, conf_low_simultaneous and
            conf_high_simultaneous. If a correction is needed, only p_value_holm is added.

        Raises
        ------
        ParameterError
            If alpha is not between 0 and 0.5.
        """
        frame = super().to_frame(alpha)
        if self.correction is not None:
            return frame.assign(p_value_holm=self.adjust("holm").to_numpy())
        limits = self.conf_int_simultaneous(alpha)
        return frame.assign(
            p_value_simultaneous=self.pvalues_simultaneous().to_numpy(),
            conf_low_simultaneous=limits["low"].to_numpy(),
            conf_high_simultaneous=limits["high"].to_numpy(),
        )


_ORDER = {"not valid": 0, "asymptotic": 1, "anytime": 2, "exact": 3}


class Contrasts:
    """Differences between the mean rewards of several arms and that of a control.

    Parameters
    ----------
    log : AdaptiveLog or Sums
        The data.
    control : label
        The arm with which all others are compared.
    treatments : sequence of labels, optional
        The other arms, by default all of them.
    rounds, denominator : optional
        As in `ArmMeans`; with a denominator, differences between (or lifts of) ratios of means are estimated.

    Raises
    ------
    ParameterError
        If an arm is unknown or repeated, or the control is among the treatments.

    Notes
    -----
    Each row is the `Contrast` of its pair, over the rounds in which both arms could be chosen, with weights
    specific to the pair. The covariance of the estimates is computed from the contribution of each round (or
    unit) to all errors. As in Dunnett's test, the distribution of the largest t statistic then gives
    intervals and p-values that hold for all comparisons simultaneously. They are printed below those of
    single terms. `adjust` also offers the methods of Holm and of Benjamini and Hochberg.

    References
    ----------
    Dunnett (1955), "A multiple comparison procedure for comparing several treatments with a control".
    Hothorn, Bretz, Westfall (2008), "Simultaneous inference in general parametric models". Fieller (1954),
    "Some problems in interval estimation".

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.30, 0.32, 0.45])
    >>> log = ai.designs.EpsilonGreedy(exploration=0.3).run(arms, horizon=3_000, rng=0)
    >>> result = ai.Contrasts(log, control=0).fit()
    >>> result.conf_int_simultaneous().round(2)
            low  high
    1 - 0 -0.06  0.10
    2 - 0  0.11  0.23
    >>> lifts = ai.Contrasts(log, control=0).fit(lift=True)
    >>> lifts.params.round(2).to_dict()
    {'1 / 0 - 1': 0.06, '2 / 0 - 1': 0.61}
    """

    def __init__(
        self,
        log: AdaptiveLog | Sums,
        *,
        control: Any,
        treatments: Sequence[Any] | None = None,
        rounds: Any = None,
        denominator: Any = None,
    ) -> None:
        log = require_data("Contrasts", log)
        refuse("Contrasts", label_problems("control", [control]))
        arm_codes("Contrasts", log, (control,))
        others = tuple(arm for arm in log.arms if arm != control) if treatments is None else treatments
        codes = arm_codes("Contrasts", log, others)
        self.treatments = tuple(log.arms[code] for code in codes)
        if control in self.treatments:
            refuse("Contrasts", [f"the control {control!r} is among the treatments"])
        self.log, keep, self._told = marked_log("Contrasts", log, rounds)
        self.denominator = denominator_of("Contrasts", log, denominator, keep)
        self.control = control

    def fit(
        self,
        estimator: str | None = None,
        weights: str | None = None,
        *,
        lift: bool = False,
        null: float = 0.0,
        stationary: bool = False,
        **options: Any,
    ) -> ContrastsResults:
        """Estimate all differences, or lifts.

        Parameters
        ----------
        estimator, weights : str, optional
            As in `Contrast.fit`. The default is that of the first pair. If some arm's outcomes are so rare
            that some methods have no interval, it is that of the first pair with such an arm.
        lift : bool
            Whether to estimate the ratio of an arm's mean to the control's, minus 1, instead of their
            difference. A lift requires 20 outcomes other than the most common one in each arm (if rewards
            have a most common value), and a control mean at least 3 standard errors from 0. Otherwise, it is
            NaN, and a note gives the reason. A negative control mean reverses the sign of lifts, and a
            caution says so.
        null : float
            Difference, or lift, under the null hypothesis.
        stationary : bool
            Whether the arm means are known not to drift.
        **options
            Other arguments of `Contrast.fit`.

        Returns
        -------
        ContrastsResults
            Results with one term per treatment.

        Raises
        ------
        ParameterError
            If an argument is invalid.
        InvalidForLog
            If the log does not support the estimator, or if lifts are requested but the estimator does not
            estimate arm means.
        """
        refuse("Contrasts.fit", [*FLAG("lift", lift), *_unusable(options, lift), *null_problems(null)])
        given = {**options, "null": 0.0 if lift else null, "stationary": stationary}
        sums = profile_of(self.log).sums
        keep = not lift and sums is None
        try:
            pairs, kept = self._fitted_pairs(keep, estimator, weights, given)
        except InvalidForLog as error:
            if not lift:
                raise
            raise lift_refusal(self._question(self.treatments[0]), error.method, error.reason) from None
        if lift:
            return self._lifts(pairs, null, {**options, "stationary": stationary})
        estimate, std_error = (_stacked(pairs, name) for name in ("estimate", "std_error"))
        if sums is None:
            correlation = pairs_correlation(kept)
        else:
            asked = Asked("Contrasts.fit", **self._modelled(options), stationary=stationary)
            correlation = sums_correlation(sums, pairs[0], self._pair_codes, asked, self.denominator)
        covariance = joint_covariance(correlation, std_error)
        law = joined([pair.reference for pair in pairs], estimate, std_error)
        return self._results(pairs, estimate, std_error, law, covariance, null=null)

    def _fitted_pairs(
        self, keep: bool, estimator: str | None, weights: str | None, given: dict[str, Any]
    ) -> tuple[list[Results], list[Kept]]:
        """The results of all contrasts, fitted by the same method, and the errors that the fits stored."""
        fitted: dict[int, tuple[Results, Kept]] = {}
        # An effect of receiving an arm joins the errors of rounds with those of other columns.
        at_once = given.get("estimand", "assigned") == "assigned"
        table, lead = PairTable(profile_of(self.log), self._pair_codes, at_once), self._rarest()
        for place in (lead, *(other for other in range(len(self.treatments)) if other != lead)):
            pair = Contrast(self.log, treatment=self.treatments[place], control=self.control)
            pair.denominator, pair.table = self.denominator, table
            found, kept = _fitted(pair, keep, estimator=estimator, weights=weights, **given)
            first = fitted[lead][0] if fitted else found
            # Each pair alone might get another default method than the first pair, but the rows of one table
            # must share a method.
            if (found.estimator, found.weights) != (first.estimator, first.weights):
                same = {"estimator": first.estimator, "weights": first.weights}
                found, kept = _fitted(pair, keep, **same, **given)
            fitted[place] = found, kept
        order = sorted(fitted)
        return [fitted[place][0] for place in order], [fitted[place][1] for place in order]

    def _question(self, treatment: Any, *, stationary: bool = False) -> Question:
        """The question about one pair."""
        codes = np.array(self._codes(treatment))
        return Question(profile_of(self.log), codes, contrast=True, stationary=stationary)

    def _lifts(self, pairs: list[Results], null: float, options: dict[str, Any]) -> ContrastsResults:
        """Lifts, computed by the same methods as the contrasts."""
        lifts, influences = list[Lift](), list[FloatArray | None]()
        for pair, treatment in zip(pairs, self.treatments, strict=True):
            lift, influence = self._lift(pair, treatment, options, joint=len(pairs) > 1)
            lifts.append(lift)
            influences.append(influence)
        terms = tuple(f"{arm} / {self.control} - 1" for arm in self.treatments)
        told = [
            claims.NO_LIFT(term=term, reason=one.reason)
            for term, one in zip(terms, lifts, strict=True)
            if one.reason
        ]
        estimate = np.array([one.estimate for one in lifts])
        std_error = np.array([one.std_error for one in lifts])
        law, notes = joined([one.reference for one in lifts], estimate, std_error), (claims.LIFTS(), *told)
        if (sums := profile_of(self.log).sums) is None:
            correlation = rows_correlation(influences)
        else:
            codes = self._pair_codes
            ratios = np.array([0.0 if one.reason else one.ratio for one in lifts])
            steady = bool(options["stationary"])
            asked = Asked("Contrasts.fit", **self._modelled(options), stationary=steady)
            correlation = sums_correlation(sums, pairs[0], codes, asked, self.denominator, ratios)
        covariance = joint_covariance(correlation, std_error)
        told_with = {"notes": notes, "cautions": negative_control(lifts, self.control, self._what)}
        return self._results(pairs, estimate, std_error, law, covariance, null=null, terms=terms, **told_with)

    @property
    def _what(self) -> str:
        """The word for what lifts compare: means, or ratios."""
        return "mean" if self.denominator is None else "ratio"

    def _rarest(self) -> int:
        """Position of the first pair whose treatment has outcomes too rare for some methods, or else 0."""
        uncommon = profile_of(self.log).uncommon
        rare = without_interval(uncommon[[self._codes(treatment)[0] for treatment in self.treatments]])
        return int(np.argmax(rare))

    @property
    def _pair_codes(self) -> IntArray:
        """Positions of the two arms of each pair, shape (P, 2)."""
        return np.array([self._codes(treatment) for treatment in self.treatments])

    def _codes(self, treatment: Any) -> tuple[int, int]:
        """Positions of the two arms of a pair."""
        return self.log.arms.index(treatment), self.log.arms.index(self.control)

    def _modelled(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options that estimators of arm means accept, with covariates turned into an outcome model."""
        taken = ("decay", "outcome", "ridge", "arm_error")
        also = {name: options[name] for name in taken if name in options}
        if options.get("covariate") is not None:
            named = options["covariate"], options.get("outcome")
            also["outcome"] = covariates_of("Contrasts.fit", self.log, *named)
        return also

    def _lift(
        self, pair: Results, treatment: Any, options: dict[str, Any], *, joint: bool
    ) -> tuple[Lift, FloatArray | None]:
        """The lift for a pair, from the means in its contrast, and the rounds' contributions to its error."""
        stationary = bool(options["stationary"])
        question = self._question(treatment, stationary=stationary)
        also = self._modelled(options)
        asked = Asked("Contrasts.fit", pair.estimator, pair.weights, **also, stationary=stationary)
        method, fit = fit_method(question, asked)
        if method.contrast_only or pair.correction is not None or question.profile.incomplete:
            raise lift_refusal(question, f"a lift by {pair.estimator}", claims.NO_MEANS())
        if self.denominator is not None:
            question, fit = as_ratios(question, method, fit, asked, self.denominator)
        lift = lift_of(question, fit, self._what)
        if not joint or question.profile.rows_refusal:
            return lift, None
        kept = method.contributions(question, fit)
        rows = kept.get("influence_by_unit", kept["influence"])
        return lift, np.zeros(len(rows)) if lift.reason else lift.influence(rows)

    def _results(
        self,
        pairs: list[Results],
        estimate: FloatArray,
        std_error: FloatArray,
        law: Any,
        covariance: FloatArray | None,
        *,
        null: float,
        terms: tuple[str, ...] | None = None,
        notes: tuple[str, ...] = (),
        cautions: tuple[str, ...] = (),
    ) -> ContrastsResults:
        """The results of all pairs in one table, where each note appears only once."""
        first = pairs[0]
        names = tuple(pair.terms[0] for pair in pairs)
        kind = "contrast" if terms is None else "lift"
        unknown = (claims.NO_COVARIANCE(),) if covariance is None and len(pairs) > 1 else ()
        details = {
            name: np.concatenate([pair.details.get(name, np.full(1, np.nan)) for pair in pairs])
            for name in first.details
        }
        return ContrastsResults(
            model="Contrasts",
            estimands=tuple(
                Estimand(
                    kind if self.denominator is None else f"ratio-{kind}",
                    treatment=arm,
                    control=self.control,
                    denominator=name_of(self.denominator),
                )
                for arm in self.treatments
            ),
            terms=names if terms is None else terms,
            estimate=estimate,
            std_error=std_error,
            covariance=covariance,
            reference=law,
            estimator=first.estimator,
            weights=first.weights,
            facts=first.facts,
            validity=min((pair.validity for pair in pairs), key=lambda label: _ORDER[label]),
            null=null,
            correction=first.correction,
            details=details,
            notes=(*notes, *said_of(names, pairs, lambda pair: pair.notes), *unknown, *self._told),
            cautions=(*cautions, *said_of(names, pairs, lambda pair: pair.cautions)),
            private=first.private,
            control=self.control,
            pairs=tuple(pairs),
        )


def _unusable(options: dict[str, Any], lift: bool) -> list[str]:
    """Problems with options that a single contrast accepts, but several contrasts or lifts do not."""
    problems = []
    if "keep_scores" in options:
        problems.append("keep_scores is not supported here: use single contrasts, Contrast(log, ...)")
    if lift and options.get("estimand", "assigned") != "assigned":
        problems.append("lift=True refers to assigned arms: omit estimand=")
    return problems


Kept = Mapping[str, FloatArray]
"""What a fit stored: contributions to errors by round or unit, or sums of their products for all pairs."""


def _fitted(pair: Contrast, keep: bool, **given: Any) -> tuple[Results, Kept]:
    """The results of a contrast, and any contributions to errors that its fit stored."""
    if not keep:
        return pair.fit(**given), {}
    try:
        found = pair.fit(**given, keep_scores=True)
    except InvalidForLog:
        return pair.fit(**given), {}
    return replace(found, scores=None), found.scores or {}


def _stacked(pairs: Sequence[Results], name: str) -> FloatArray:
    """The attribute of this name for each pair, shape (P,)."""
    return np.array([float(getattr(pair, name)[0]) for pair in pairs])
