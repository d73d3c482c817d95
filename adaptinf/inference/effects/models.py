"""Treatment effects within groups of adaptively gathered data.

References
----------
Li, Shi, Simchi-Levi (2024), "Privacy preserving adaptive experiment design". Hadad, Hirshberg, Zhan,
Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive experiments". Welch (1947),
"The generalization of 'Student's' problem when several different population variances are involved".
Agresti, Caffo (2000), "Simple and effective confidence intervals for proportions and differences of
proportions result from adding two successes and two failures".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.distributions.base import Reference, StudentReference
from adaptinf.inference.distributions.two_samples import (
    DifferenceReference,
    agresti_caffo,
    choose_difference,
    few_events,
    welch,
)
from adaptinf.inference.effects.comparisons import GroupResults
from adaptinf.inference.effects.from_releases import ReleasedEffects, released_effects
from adaptinf.inference.effects.groups import arm_moments, group_aipw, group_codes
from adaptinf.inference.effects.inputs import arm_pair, context_problems, group_terms
from adaptinf.inference.effects.notes import (
    adjustment_notes,
    by_reason,
    empty_interval_notes,
    estimated_propensities,
    gap_notes,
    warn_of_tiny,
    weight_notes,
)
from adaptinf.inference.effects.rounds import (
    Rounds,
    arm_propensities,
    randomised_rounds,
    round_mask,
    weightable_rounds,
)
from adaptinf.inference.inputs.arguments import label_problems, labels, require_log, text_problems
from adaptinf.inference.released.effects import ReleasedReference, released_std_error
from adaptinf.inference.results.base import Estimand, LogFacts
from adaptinf.inference.validity.profile import is_binary
from adaptinf.parameters import flag_problem
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.effects.projection import CATEProjection
    from adaptinf.log import AdaptiveLog

__all__ = ["CATE"]

_ESTIMATORS = ("difference-in-means", "aipw", "released")
_WEIGHTS = ("uniform", "sqrt")
_ORDER = (("difference-in-means", False), ("difference-in-means", True), ("aipw", False), ("released", False))


class CATE:
    """Effect of one arm over another within groups of the context.

    Parameters
    ----------
    log : AdaptiveLog
        The data.
    by : str or sequence of str
        Context columns whose combinations of labels are the groups, by the user's or the canonical names.
    treatment, control : label, optional
        The arms; the control's mean is subtracted. With two arms the second is the treatment.
    rounds : str or array_like of bool, shape (T,), optional
        Rounds whose arm was drawn at random: the name of a column of the log, or a mask. By default the
        randomised rounds of phase "estimation" where the log has phases, else the rounds it marks as
        randomised, else all rounds if the propensities are constant within each group.

    Raises
    ------
    ParameterError
        Listing every argument that does not fit the log.

    Notes
    -----
    Groups are taken to be fixed, and contexts not to depend on earlier rewards or actions. The effect within
    a group is taken not to change over the rounds used.

    Where the numbers come from the randomised rounds of a second phase, no correction for adaptivity is due:
    what was learnt in the first phase fixed the propensities before those rounds began.

    References
    ----------
    Li, Shi, Simchi-Levi (2024), "Privacy preserving adaptive experiment design". Hadad, Hirshberg, Zhan,
    Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive experiments".

    Examples
    --------
    >>> from adaptinf.log import AdaptiveLog, LogArrays
    >>> rng = np.random.default_rng(1)
    >>> group, action = rng.integers(0, 2, 800), rng.integers(0, 2, 800)
    >>> reward = rng.binomial(1, np.array([[0.4, 0.7], [0.6, 0.3]])[group, action]).astype(float)
    >>> arrays = LogArrays(action, reward, randomised=np.full(800, True), context={"feature": group})
    >>> log = AdaptiveLog.from_arrays(arrays, arms=("old", "new"))
    >>> result = CATE(log, by="feature").fit()
    >>> result.conf_int().round(2)
                low  high
    feature=0  0.17  0.36
    feature=1 -0.43 -0.24
    """

    def __init__(
        self,
        log: AdaptiveLog,
        *,
        by: str | Sequence[str],
        treatment: Any = None,
        control: Any = None,
        rounds: str | ArrayLike | None = None,
    ) -> None:
        require_log("CATE", log)
        self.log = log
        self.by, problems = ((by,), []) if isinstance(by, str) else labels("by", by)
        problems += label_problems("treatment", [treatment]) + label_problems("control", [control])
        if problems:
            raise ParameterError("CATE", problems)
        self.treatment, self.control, problems = arm_pair(log, treatment, control)
        problems += context_problems(log, self.by)
        if problems:
            raise ParameterError("CATE", problems)
        self._marked = round_mask(log, rounds)
        self._pair = np.array([log.arms.index(self.control), log.arms.index(self.treatment)])
        self._group, self._labels = group_codes([log.column(name) for name in self.by])
        self._terms = group_terms(self.by, self._labels)

    @classmethod
    def from_formula(
        cls,
        formula: str,
        log: AdaptiveLog,
        *,
        treatment: Any = None,
        control: Any = None,
        rounds: str | ArrayLike | None = None,
    ) -> CATEProjection:
        """Effect as a linear function of covariates.

        Parameters
        ----------
        formula : str
            Covariates, such as ``"~ age + group"``, without a response: contexts of the log, by the user's or
            the canonical names.
        log, treatment, control, rounds
            As for `CATE`.

        Returns
        -------
        CATEProjection

        Raises
        ------
        ParameterError
            If the formula cannot be read or used, or other arguments do not fit the log.
        """
        from adaptinf.inference.effects.projection import CATEProjection

        if isinstance(log, str):
            problem = "the formula comes first and the log second, as in CATE.from_formula('age', log)"
            raise ParameterError("CATE.from_formula", [problem])
        return CATEProjection(formula, log, treatment=treatment, control=control, rounds=rounds)

    def fit(
        self,
        estimator: str | None = None,
        *,
        pooled: bool = False,
        weights: str | None = None,
        null: float = 0.0,
    ) -> GroupResults:
        """Estimate the effects.

        Parameters
        ----------
        estimator : {"difference-in-means", "aipw", "released"}, optional
            By default the first of these that the log supports, plain means over all rounds of constant
            propensity (``pooled``) coming second: the first of ``recommend(log, "cate", by=...)``.
            Plain means over randomised rounds, with Welch's t, or with the Agresti-Caffo adjustment for
            rewards of 0 and 1 where an arm has few successes or failures; AIPW over all rounds in which both
            arms could be chosen, with a t whose degrees of freedom are the smaller arm's rewards minus 1; or
            the estimate from the log's private releases alone.
        pooled : bool
            Difference in means over every round of the estimation phase, not only those marked as randomised;
            the propensities must be constant within each group.
        weights : {"sqrt", "uniform"}, optional
            Weights of the AIPW scores. By default sqrt where both arms' propensities are known and the
            groups tell all contexts apart, else uniform: sqrt weights are valid only if the propensities
            within a group do not depend on other contexts.
        null : float
            Effect that is tested.

        Returns
        -------
        GroupResults
            Results with methods ``interactions`` and ``heterogeneity``. One term a group, such as
            ``"feature=0"``. Groups without enough data are NaN, with the reason in the notes.

        Raises
        ------
        ParameterError
            If an argument makes no sense.
        InvalidForLog
            If the log does not support the estimator; it names the reason and what is valid.
        """
        if estimator is None and (pooled or weights is not None):
            estimator = "difference-in-means" if weights is None else "aipw"
        self._check_arguments(estimator, pooled, weights, null)
        try:
            if estimator is None:
                return self._default(float(null))
            return self._fit(estimator, pooled, weights, float(null))
        except InvalidForLog as error:
            ways = [way for way in error.alternatives if self._runs(way)]
            raise InvalidForLog(error.method, error.reason, ways) from None

    def _default(self, null: float) -> GroupResults:
        """The first estimator that the log supports, with the reason why the one before does not serve."""
        refusals: list[InvalidForLog] = []
        for estimator, pooled in _ORDER:
            if self._marked is not None and (pooled or estimator == "released"):
                continue
            try:
                result = self._fit(estimator, pooled, None, null)
            except InvalidForLog as refusal:
                refusals.append(refusal)
                continue
            if not refusals:
                return result
            why = f"{refusals[0].method} is not valid for this log, as {refusals[0].reason}"
            note = f"Chosen as the first of recommend(log, 'cate', ...): {why}."
            return replace(result, notes=(*result.notes, note))
        raise refusals[0]

    def _runs(self, way: str) -> bool:
        """Whether what an error offers is advice on the data, or an estimator that the log supports."""
        estimator, _, rest = way.partition(" with ")
        if estimator not in _ESTIMATORS:
            return True
        try:
            self._fit(
                estimator, False, rest.removesuffix(" weights") if estimator == "aipw" and rest else None, 0.0
            )
        except (InvalidForLog, ParameterError):
            return False
        return True

    def _fit(self, estimator: str, pooled: bool, weights: str | None, null: float) -> GroupResults:
        if estimator == "released":
            return self._released(null)
        if estimator == "aipw":
            return self._aipw(weights, null)
        return self._difference_in_means(pooled, null)

    def _difference_in_means(self, pooled: bool, null: float) -> GroupResults:
        log = self.log
        rounds = randomised_rounds(log, self._marked, self._pair, self._group, self._terms, pooled=pooled)
        rows = np.flatnonzero(rounds.keep & np.isin(log.arrays.action, self._pair))
        treated = (log.arrays.action[rows] == self._pair[1]).astype(np.int64)
        moments = arm_moments(self._group[rows], treated, log.arrays.reward[rows], len(self._terms))
        (n0, n1), (m0, m1), (v0, v1) = (part.T for part in (moments.count, moments.mean, moments.variance))
        difference = welch(n1, m1, v1, n0, m0, v0)
        if is_binary(log.arrays.reward):
            arms = (n1, np.rint(n1 * m1), n0, np.rint(n0 * m0))
            difference = choose_difference(difference, agresti_caffo(*arms), few_events(*arms))
        return self._results(
            "difference-in-means",
            difference.estimate,
            difference.std_error,
            DifferenceReference(difference),
            null=null,
            details={"pulls_treatment": n1, "pulls_control": n0, "ess": np.minimum(n1, n0)},
            notes=(
                *rounds.notes,
                *adjustment_notes(self._terms, difference),
                *gap_notes(self._terms, moments.count, difference.std_error),
            ),
        )

    def _aipw(self, weights: str | None, null: float) -> GroupResults:
        log = self.log
        rounds = weightable_rounds(log, self._marked, self._pair)
        both = arm_propensities(log, self._pair)
        if weights == "sqrt" and both is None:
            reason = (
                "they need both arms' propensities at every round, and the log has the chosen arm's alone"
            )
            raise InvalidForLog("aipw with sqrt weights", reason, ["aipw with uniform weights"])
        others = self._other_contexts()
        weighted = weights == "sqrt" or (weights is None and both is not None and not others)
        result = group_aipw(
            *self._weighting_arrays(rounds),
            len(self._terms),
            both[rounds.keep] if both is not None and weighted else None,
        )
        warn_of_tiny("CATE.fit", self._terms, result.min_propensity, result.ess)
        notes = (
            *rounds.notes,
            "Outcome model: the arm's mean reward over the earlier rounds of its group among these. Student's"
            " t with the smaller arm's rewards minus 1 degrees of freedom.",
            *weight_notes(others, weighted=weighted, asked=weights is not None or both is None),
            *estimated_propensities(log),
            *gap_notes(self._terms, result.count, result.std_error),
        )
        control, treatment = result.count.T
        return self._results(
            "aipw",
            result.estimate,
            result.std_error,
            StudentReference(result.estimate, result.std_error, result.df),
            null=null,
            weights="sqrt" if weighted else "uniform",
            details={
                "pulls_treatment": treatment,
                "pulls_control": control,
                "ess": result.ess,
                "min_propensity": result.min_propensity,
            },
            notes=notes,
        )

    def _other_contexts(self) -> tuple[str, ...]:
        """Contexts of the log that vary within a group."""
        columns, contexts = self.log.columns, self.log.arrays.context
        used = {name if name in contexts else columns[name] for name in self.by}
        grouped = [contexts[name] for name in contexts if name in used]
        return tuple(
            name
            for name, values in contexts.items()
            if name not in used and len(group_codes([*grouped, values])[1]) > len(self._labels)
        )

    def _weighting_arrays(self, rounds: Rounds) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """Group, arm (0 control, 1 treatment, -1 another), reward and propensity of the rounds used."""
        arrays, keep = self.log.arrays, rounds.keep
        role = np.full(self.log.n_arms, -1)
        role[self._pair] = (0, 1)
        propensity = np.ones(self.log.n_rounds) if arrays.propensity is None else arrays.propensity
        return self._group[keep], role[arrays.action[keep]], arrays.reward[keep], propensity[keep]

    def _released(self, null: float) -> GroupResults:
        if self._marked is not None:
            raise ParameterError("CATE.fit", ["rounds= does not apply to releases: leave it out"])
        effects = released_effects(self.log)
        self._check_groups(effects)
        if self.treatment == self.log.arms[0]:
            effect = replace(effects.effect, center=-effects.effect.center)
            effects = replace(effects, effect=effect, estimate=-effects.estimate)
        terms = group_terms(self.by, [(label,) for label in effects.groups])
        reference = ReleasedReference(effects.effect)
        return self._results(
            "released",
            effects.estimate,
            released_std_error(effects.effect),
            reference,
            null=null,
            terms=terms,
            groups=effects.groups,
            private=True,
            details=effects.details,
            notes=(
                *effects.notes,
                *by_reason(terms, [effects.reasons.get(i, "") for i in range(len(terms))]),
                *empty_interval_notes(terms, reference, effects.estimate),
            ),
        )

    def _check_groups(self, effects: ReleasedEffects) -> None:
        observed = {label[0] for label in self._labels}
        if len(self.by) > 1 or not observed <= set(effects.groups):
            shown = ", ".join(map(repr, effects.groups[:10]))
            reason = f"its releases are for the groups {shown}, which are not the labels of by="
            raise InvalidForLog("released", f"{reason} {', '.join(self.by)}", ["difference-in-means", "aipw"])

    def _results(
        self,
        estimator: str,
        estimate: FloatArray,
        std_error: FloatArray,
        reference: Reference,
        *,
        null: float,
        details: Mapping[str, FloatArray],
        notes: tuple[str, ...],
        weights: str | None = None,
        terms: tuple[str, ...] | None = None,
        groups: Sequence[Any] | None = None,
        private: bool = False,
    ) -> GroupResults:
        if groups is None:
            groups = [label[0] if len(label) == 1 else label for label in self._labels]
        return GroupResults(
            model="CATE",
            estimands=tuple(
                Estimand("cate", treatment=self.treatment, control=self.control, group=group)
                for group in groups
            ),
            terms=self._terms if terms is None else terms,
            estimate=estimate,
            std_error=std_error,
            covariance=None if private else np.diag(std_error**2),
            reference=reference,
            estimator=estimator,
            facts=LogFacts.of(self.log),
            validity="asymptotic",
            weights=weights,
            null=null,
            details=details,
            notes=(f"Effect of {self.treatment!r} over {self.control!r}.", *notes),
            private=private,
        )

    def _check_arguments(self, estimator: str | None, pooled: bool, weights: str | None, null: Any) -> None:
        problems = text_problems(estimator=estimator, weights=weights) + flag_problem("pooled", pooled)
        if problems:
            raise ParameterError("CATE.fit", problems)
        if estimator is not None and estimator not in _ESTIMATORS:
            problems.append(f"estimator must be one of {', '.join(_ESTIMATORS)}, got {estimator!r}")
        if weights is not None and weights not in _WEIGHTS:
            problems.append(f"weights must be one of {', '.join(_WEIGHTS)}, got {weights!r}")
        if weights is not None and estimator != "aipw":
            problems.append("weights belong to aipw")
        if pooled and estimator != "difference-in-means":
            problems.append("pooled belongs to difference-in-means (aipw pools all usable rounds anyway)")
        if pooled and self._marked is not None:
            problems.append("pooled and rounds= contradict each other: give one of them")
        if isinstance(null, bool) or not isinstance(null, Real) or not np.isfinite(float(null)):
            problems.append(f"null must be a finite number, got {null!r}")
        if problems:
            raise ParameterError("CATE.fit", problems)
