"""Treatment effects within groups, estimated from adaptively collected data.

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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.claims.effects import by_group as group_effects
from adaptinf.claims.effects import rounds_and_weights as effects
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.effects.comparisons import GroupResults
from adaptinf.inference.effects.effect_methods import EffectMethod, group_results
from adaptinf.inference.effects.group_methods import AIPW, DIFFERENCE_IN_MEANS, POOLED, RELEASED
from adaptinf.inference.effects.group_question import GroupQuestion, group_question
from adaptinf.inference.effects.groups_of_sums import FROM_SUMS, SumsQuestion, sums_question
from adaptinf.inference.effects.projections.projection import CATEProjection
from adaptinf.inference.inputs.arguments import require_log, text_problems
from adaptinf.inference.inputs.published import answered_by, from_releases
from adaptinf.inference.validity.methods import Verdict
from adaptinf.log import AdaptiveLog, PublicLog
from adaptinf.parameters import FLAG, refuse
from adaptinf.sums import Sums
from adaptinf.texts import unlisted

Record = EffectMethod[GroupQuestion]
METHODS: tuple[Record, ...] = (DIFFERENCE_IN_MEANS, POOLED, AIPW, RELEASED)
ESTIMATORS: Mapping[str, Record] = {one.name: one for one in METHODS if one is not POOLED}
"""Methods keyed by estimator; the first has an option to pool rounds."""


def default_method(question: GroupQuestion) -> tuple[Record, str]:
    """The first method that the log supports, and a note that explains why an earlier one was skipped.

    If rewards are missing, there is no default: a table that used releases instead would reveal that some
    rewards are missing.
    """
    if question.gap_refusal:
        return METHODS[0], ""
    refused: list[Verdict] = []
    for record in METHODS:
        found = record.assess(question)
        if any(verdict.valid for verdict in found):
            return record, _note(refused)
        refused += found
    # The refusal of this method is the one that explains what the log lacks.
    return AIPW if question.profile.repeated_units else METHODS[0], ""


def valid_alternatives(question: GroupQuestion, refused: Any) -> list[str]:
    """The alternatives that an error message suggests if a method is refused."""
    ways = [one.name for one in (DIFFERENCE_IN_MEANS, AIPW) if one is not refused and _valid(one, question)]
    if refused is POOLED:
        ways = [f"{way} with pooled=False" if way == METHODS[0].name else way for way in ways]
    if refused is RELEASED:
        return ways
    return [*ways, effects.MARK_THE_ROUNDS(), *([RELEASED.name] if _valid(RELEASED, question) else [])]


def _valid(record: Record, question: GroupQuestion) -> bool:
    return any(verdict.valid for verdict in record.assess(question))


def _note(refused: list[Verdict]) -> str:
    if not refused:
        return ""
    return group_effects.CHOSEN(name=refused[0].name, reason=refused[0].reason)


_WEIGHTS = ("uniform", "sqrt", "combined")


class CATE:
    """Effect of one arm relative to another within groups defined by the context.

    Parameters
    ----------
    log : AdaptiveLog, Sums or PublicLog
        The data. Sums must be broken down by the requested groups, and may also be broken down by other
        columns. For the public part of a log, its releases are used.
    by : str or sequence of str
        Context columns whose combinations of labels define the groups, given by the user's names or the
        canonical names.
    treatment, control : label, optional
        The two arms; the control's mean is subtracted. If the log has two arms, the second is the treatment
        by default.
    rounds : str or array_like of bool, shape (T,), optional
        Rounds whose arm was drawn at random: the name of a column of the log, or a mask. By default, the
        randomised rounds of phase "estimation" if the log has phases, or else the rounds marked as
        randomised, or else all rounds, provided that propensities are constant within each group.

    Raises
    ------
    ParameterError
        If an argument does not suit the log; the message lists every problem.

    Notes
    -----
    Groups are treated as fixed, and contexts are assumed not to depend on earlier rewards or actions. Plain
    means over randomised rounds estimate the average effect over these rounds; if the effect changes, the
    estimand of AIPW depends on its weights.

    If the numbers come from the randomised rounds of a second phase, no correction for adaptivity is needed:
    the propensities were fixed by the first phase before those rounds began.

    For sums, each group's effect is the `Contrast` of the group's own sums, estimated by the same method in
    all groups: plain means if propensities are constant in every group, and otherwise AIPW.

    References
    ----------
    Li, Shi, Simchi-Levi (2024), "Privacy preserving adaptive experiment design". Hadad, Hirshberg, Zhan,
    Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive experiments".

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> from adaptinf.log import LogArrays
    >>> rng = np.random.default_rng(1)
    >>> group, action = rng.integers(0, 2, 800), rng.integers(0, 2, 800)
    >>> reward = rng.binomial(1, np.array([[0.4, 0.7], [0.6, 0.3]])[group, action]).astype(float)
    >>> arrays = LogArrays(action, reward, randomised=np.full(800, True), context={"feature": group})
    >>> log = ai.AdaptiveLog.from_arrays(arrays, arms=("old", "new"))
    >>> result = ai.CATE(log, by="feature").fit()
    >>> result.conf_int().round(2)
                low  high
    feature=0  0.17  0.36
    feature=1 -0.43 -0.24
    """

    def __init__(
        self,
        log: AdaptiveLog | Sums | PublicLog,
        *,
        by: str | Sequence[str],
        treatment: Any = None,
        control: Any = None,
        rounds: str | ArrayLike | None = None,
    ) -> None:
        self.question: GroupQuestion | SumsQuestion
        if isinstance(log, Sums):
            self.question = sums_question(log, by, treatment, control, rounds)
        else:
            self.question = group_question(log, by, treatment, control, rounds)
        self.log = log

    @classmethod
    def from_formula(
        cls,
        formula: str,
        log: AdaptiveLog,
        *,
        treatment: Any = None,
        control: Any = None,
        rounds: str | ArrayLike | None = None,
        trusted: bool = False,
    ) -> CATEProjection:
        """Model the effect as a linear function of covariates.

        Parameters
        ----------
        formula : str
            Covariates, such as ``"~ age + group"``, without a response. The covariates are contexts of the
            log, given by the user's names or the canonical names.
        log, treatment, control, rounds
            As in `CATE`.
        trusted : bool
            Whether to evaluate any Python code in the formula. Because a formula is code, only arithmetic,
            comparisons, formulaic's transforms and NumPy functions of columns are allowed by default.

        Returns
        -------
        CATEProjection

        Raises
        ------
        ParameterError
            If the formula cannot be read or used, contains Python code that is not allowed, or other
            arguments do not suit the log.
        """
        given: Any = log
        if isinstance(given, str):
            problem = "the formula comes first and the log second, as in CATE.from_formula('age', log)"
            raise ParameterError("CATE.from_formula", [problem])
        return CATEProjection(
            formula, log, treatment=treatment, control=control, rounds=rounds, trusted=trusted
        )

    def fit(
        self,
        estimator: str | None = None,
        *,
        pooled: bool = False,
        weights: str | None = None,
        null: float = 0.0,
        stationary: bool = False,
    ) -> GroupResults:
        """Estimate the effects.

        Parameters
        ----------
        estimator : {"difference-in-means", "aipw", "released"}, optional
            By default, the first of these that the log supports, which is the first row of ``recommend(log,
            "cate", by=...)``. In that order, plain means over all rounds with constant propensity
            (``pooled``) come second. ``"difference-in-means"`` compares plain means over randomised rounds by
            Welch's t or, if rewards are 0 and 1 and an arm has few successes or failures, with the
            Agresti-Caffo adjustment. ``"aipw"`` uses all rounds in which both arms could be chosen, and a t
            distribution whose degrees of freedom are the smaller arm's effective number of rewards minus 1.
            ``"released"`` uses only the log's private releases.
        pooled : bool
            Whether the difference in means uses every round of the estimation phase, not only rounds marked
            as randomised. Propensities must then be constant within each group.
        weights : {"combined", "uniform", "sqrt"}, optional
            Weights of the AIPW scores. If the propensities of both arms are known, the default is combined
            weights: one weight for both arms, (1/e1 + 1/e0)^(-1/2), so that common drift cancels. It is
            computed from the round's own propensities if these are constant within the group or its batches,
            or if contexts other than the group are known to be irrelevant. Otherwise, a context that is not
            in the log may have affected the propensities, so those of the group's previous batch or round are
            used. If contexts in the log other than those of ``by`` may affect the propensities and there are
            no batches, weights are uniform. If the effect changes over the rounds, the target is its average
            with these weights; uniform weights estimate the plain average. Sqrt weights, which are separate
            for each arm, are determined in the same way. Sqrt weights require arm means that do not drift.
        null : float
            Effect under the null hypothesis.
        stationary : bool
            Whether the arm means within groups are known not to drift. If so, sqrt weights are the default,
            unless other contexts may affect the propensities within a group.

        Returns
        -------
        GroupResults
            Results with the methods ``interactions`` and ``heterogeneity``. One term per group, such as
            ``"feature=0"``. Estimates for groups without enough data are NaN, and the notes give the reason.

        Raises
        ------
        ParameterError
            If an argument is invalid.
        InvalidForLog
            If the log does not support the estimator; the message gives the reason and valid alternatives.
        """
        if from_releases("CATE.fit", self.log, estimator, pooled=pooled or None, weights=weights):
            estimator = "released"
        if estimator is None and (pooled or weights is not None):
            estimator = "difference-in-means" if weights is None else "aipw"
        _check_arguments(self.question, estimator, pooled, weights, null, stationary)
        if isinstance(self.question, SumsQuestion):
            how = {"estimator": estimator, "weights": weights, "stationary": stationary}
            with np.errstate(under="ignore"):
                of_sums: GroupResults = FROM_SUMS.fit(self.question, float(null), **how)
            return of_sums
        note = ""
        options: dict[str, Any] = {} if weights is None else {"weights": weights}
        if estimator is None:
            record, note = default_method(self.question)
        else:
            record = POOLED if pooled else ESTIMATORS[estimator]
        if record is ESTIMATORS["aipw"]:
            options["stationary"] = stationary
        _refuse_gaps(self.question, record)
        try:
            with np.errstate(under="ignore"):
                found = record.fit(self.question, **options)
                result = group_results(self.question, record, found, float(null))
        except InvalidForLog as error:
            if isinstance(self.log, PublicLog):
                raise InvalidForLog(error.method, error.reason, answered_by(self.log)) from None
            ways = error.alternatives or valid_alternatives(self.question, record)
            raise InvalidForLog(error.method, error.reason, ways) from None
        return replace(result, notes=(*result.notes, note)) if note else result


def _refuse_gaps(question: GroupQuestion, record: Record) -> None:
    """Refuse a log with missing rewards, except for the method that uses only its releases."""
    if record is ESTIMATORS["released"]:
        return
    log = question.profile.log
    try:
        require_log("CATE.fit", log)
    except InvalidForLog as error:
        raise InvalidForLog(error.method, error.reason, [*error.alternatives, *answered_by(log)]) from None


def _check_arguments(
    question: GroupQuestion | SumsQuestion,
    estimator: str | None,
    pooled: bool,
    weights: str | None,
    null: Any,
    stationary: Any,
) -> None:
    problems = text_problems(estimator=estimator, weights=weights)
    problems += FLAG("pooled", pooled) + FLAG("stationary", stationary)
    refuse("CATE.fit", problems)
    if estimator is not None and estimator not in ESTIMATORS:
        problems.append(unlisted("estimator", ESTIMATORS, estimator))
    if weights is not None and weights not in _WEIGHTS:
        problems.append(unlisted("weights", _WEIGHTS, weights))
    if weights is not None and estimator != "aipw":
        problems.append("weights apply to aipw")
    if pooled and estimator != "difference-in-means":
        problems.append("pooled applies only to difference-in-means (aipw pools all usable rounds anyway)")
    if pooled and isinstance(question, GroupQuestion) and question.marked is not None:
        problems.append("pooled and rounds= cannot be combined: use only one of them")
    if isinstance(null, bool) or not isinstance(null, Real) or not np.isfinite(float(null)):
        problems.append(f"null must be a finite number, got {null!r}")
    refuse("CATE.fit", problems)
