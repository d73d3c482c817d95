"""Effects as linear functions of covariates: weighted projections of AIPW scores.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments". Semenova, Chernozhukov (2021), "Debiased machine learning of conditional average treatment
effects and other causal functions".
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.distributions.base import NormalReference
from adaptinf.inference.effects.groups import group_codes
from adaptinf.inference.effects.inputs import arm_pair
from adaptinf.inference.effects.notes import estimated_propensities, warn_of_tiny
from adaptinf.inference.effects.rounds import arm_propensities, round_mask, weightable_rounds
from adaptinf.inference.effects.weighted_projection import (
    COVARIANCES,
    Projection,
    contrast_weights,
    weighted_projection,
)
from adaptinf.inference.inputs.arguments import require_log
from adaptinf.inference.inputs.formulas import CovariateModel, covariate_model
from adaptinf.inference.results.base import Estimand, LogFacts, Results
from adaptinf.inference.scores.inverse import aipw_scores, indicators, running_means
from adaptinf.inference.scores.means import effective_size
from adaptinf.inference.scores.outcome_models import outcome_model
from adaptinf.inference.validity.profile import profile_of
from adaptinf.parameters import check_alpha, flag_problem
from adaptinf.typing import BoolArray, FloatArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = ["CATEProjection", "ProjectionResults"]

_WEIGHTS = ("uniform", "sqrt", "two-point")
_GROUPS = "CATE(log, by=...).fit() with rounds= that marks the rounds whose arm was drawn at random"
_LOW = 0.05
_SUBJECT = "CATEProjection.fit"


@dataclass(frozen=True, eq=False, kw_only=True)
class ProjectionResults(Results):
    """Coefficients of the effect's projection on covariates; made by `CATEProjection.fit`.

    Attributes
    ----------
    covariates : CovariateModel
        The formula, with the levels and statistics of the log.
    projection : Projection
        The fit.
    """

    covariates: CovariateModel
    projection: Projection

    def predict(self, frame: Any, alpha: float = 0.05) -> pd.DataFrame:
        """Effects at given covariates.

        Parameters
        ----------
        frame : DataFrame, or mapping of name to values
            Covariates by the names in the formula.
        alpha : float
            One minus the level of each interval, between 0 and 0.5.

        Returns
        -------
        DataFrame
            Columns effect, std_error, low and high. The intervals are for the value of the projection, one at
            a time; where the formula does not hold exactly it is not the effect at that point.

        Raises
        ------
        ParameterError
            If a covariate is missing, or has a label that the log has not.
        """
        check_alpha("predict", alpha)
        rows = self.covariates.rows("predict", frame)
        effect, std_error = self.projection.predict(rows)
        std_error = np.where(np.all(np.isfinite(self.std_error)) & (std_error > 0.0), std_error, np.nan)
        half = -float(special.ndtri(0.5 * alpha)) * std_error
        columns = {"effect": effect, "std_error": std_error, "low": effect - half, "high": effect + half}
        return pd.DataFrame(columns, index=frame.index if isinstance(frame, pd.DataFrame) else None)


class CATEProjection:
    """Best linear approximation of the effect of one arm over another by covariates.

    Parameters
    ----------
    formula : str
        Covariates, such as ``"~ age + group"``, without a response: contexts of the log, by the user's or the
        canonical names. Transforms such as ``scale``, ``center`` and ``bs`` use the contexts of the whole
        log.
    log : AdaptiveLog
        The data.
    treatment, control : label, optional
        The arms; the control's mean is subtracted. With two arms the second is the treatment.
    rounds : str or array_like of bool, shape (T,), optional
        Rounds to use; by default those of phase "estimation" where the log has phases, else all.

    Raises
    ------
    ParameterError
        Listing every argument that does not fit the log.

    Notes
    -----
    Assumes that contexts do not depend on earlier rewards or actions, that the effect at given covariates
    does not change over the rounds, and that the propensities are those the arms were drawn with, given the
    context.

    References
    ----------
    Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
    experiments". Semenova, Chernozhukov (2021), "Debiased machine learning of conditional average treatment
    effects and other causal functions".

    Examples
    --------
    >>> from adaptinf.log import AdaptiveLog, LogArrays
    >>> rng = np.random.default_rng(1)
    >>> age, action = rng.uniform(20, 60, 2000), rng.integers(0, 2, 2000)
    >>> reward = rng.normal(0.1 * action * (age - 40), 1.0)
    >>> arrays = LogArrays(action, reward, propensity=np.full(2000, 0.5), context={"age": age})
    >>> log = AdaptiveLog.from_arrays(arrays, arms=("old", "new"))
    >>> result = CATEProjection("~ age", log).fit()
    >>> result.conf_int().round(2)
                low  high
    Intercept -4.41 -3.59
    age        0.09  0.11
    >>> result.predict({"age": [20.0, 60.0]}).round(1)
       effect  std_error  low  high
    0    -2.0        0.1 -2.2  -1.7
    1     2.1        0.1  1.9   2.3
    """

    def __init__(
        self,
        formula: str,
        log: AdaptiveLog,
        *,
        treatment: Any = None,
        control: Any = None,
        rounds: str | ArrayLike | None = None,
    ) -> None:
        self.formula = formula
        require_log("CATE.from_formula", log)
        self.log = log
        self.treatment, self.control, problems = arm_pair(log, treatment, control)
        if not log.context:
            problems.append("the log has no context columns for a formula: give context= when making the log")
        if problems:
            raise ParameterError("CATEProjection", problems)
        self._covariates = covariate_model("CATEProjection", formula, log)
        self._marked = round_mask(log, rounds)
        self._pair = np.array([log.arms.index(self.control), log.arms.index(self.treatment)])

    def fit(
        self,
        weights: str | None = None,
        *,
        decay: float | None = None,
        covariance: str = "HC0",
        outcome: Any = None,
        ridge: float | None = None,
        null: float = 0.0,
        keep_scores: bool = False,
    ) -> ProjectionResults:
        """Estimate the coefficients.

        Parameters
        ----------
        weights : {"uniform", "sqrt", "two-point"}, optional
            Weights of the scores. Uniform ones estimate the best linear approximation over the log's contexts
            whatever the propensities. The others give more even variances where propensities fall, but weigh
            contexts by their propensities: they are the default only where the formula fits every combination
            of contexts its own effect (sqrt).
        decay : float, optional
            Exponent a in [0, 1) of the propensity floor t^-a, for two-point weights; fixed in advance. By
            default the one that the log's design states.
        covariance : {"HC0", "HC1", "HC2", "HC3"}
            Sandwich of the martingale, or its corrections for small samples.
        outcome : str, mapping or array_like, optional
            Outcome model of the scores: ``"running-mean"`` (default), ``"running-ridge"`` on the contexts, or
            predictions of your own for the control and the treatment, as columns of the log or as an array of
            shape (T, 2), whose row t may depend on rounds before t and this round's context only.
        ridge : float, optional
            Penalty of the running ridge, fixed in advance; 1 by default.
        null : float
            Value that every coefficient is tested against.
        keep_scores : bool
            Keep what each round contributes, for the bootstrap of `Results.conf_int_simultaneous`.

        Returns
        -------
        ProjectionResults
            One term a column of the model matrix.

        Raises
        ------
        ParameterError
            If an argument makes no sense, or columns of the formula cannot be told apart.
        InvalidForLog
            If the log does not support what was asked for; it names the reason and what is valid.
        """
        if weights == "two-point" and decay is None:
            decay = profile_of(self.log).floor_decay
        _check(weights, decay, covariance, null, keep_scores)
        log, names = self.log, self._covariates.names
        propensity = self._own_propensity()
        rounds = weightable_rounds(log, self._marked, self._pair)
        both = arm_propensities(log, self._pair)
        kept = np.flatnonzero(rounds.keep)
        x = self._covariates.matrix[kept]
        saturated = self._saturated(rounds.keep)
        kind = weights or ("sqrt" if saturated and both is not None else "uniform")
        if kind != "uniform" and both is None:
            reason = (
                "they need both arms' propensities at every round, and the log has the chosen arm's alone"
            )
            raise InvalidForLog(f"a projection with {kind} weights", reason, ["uniform weights"])
        weight = np.ones(len(kept)) if both is None else contrast_weights(both, kind, decay)[kept]
        chosen = indicators(log.arrays.action, self._pair)[kept]
        self._check_arms(chosen)
        model = outcome_model(_SUBJECT, log, self._pair, outcome, ridge)
        reward, own = log.arrays.reward[kept], propensity[kept]
        predicted = (
            model.values[kept] if isinstance(model.values, np.ndarray) else running_means(chosen, reward)
        )
        scores = aipw_scores(chosen, reward, own, predicted)
        fit = weighted_projection(x, scores[:, 1] - scores[:, 0], weight, names, covariance)
        std_error, gaps = _standard_errors(fit, kept)
        size = effective_size(chosen * (weight / own)[:, None]).min()
        lowest = (own if both is None else both[kept]).min()
        warn_of_tiny(_SUBJECT, ["the projection"], np.array([lowest]), np.array([size]))
        return ProjectionResults(
            model="CATE projection",
            estimands=tuple(
                Estimand("projection", treatment=self.treatment, control=self.control) for _ in names
            ),
            terms=names,
            estimate=fit.coefficient,
            std_error=std_error,
            covariance=fit.covariance,
            reference=NormalReference(fit.coefficient, std_error),
            estimator="aipw",
            facts=LogFacts.of(log),
            validity="asymptotic",
            weights=kind,
            null=float(null),
            details={"ess": np.full(len(names), size), "min_propensity": np.full(len(names), lowest)},
            notes=(
                f"Effect of {self.treatment!r} over {self.control!r}: {self.formula.strip()}. Covariance "
                f"{covariance}.",
                *rounds.notes,
                model.note,
                _meaning(kind, saturated=saturated, complete=len(rounds.notes) == 1),
                "Assumes contexts that do not depend on earlier rewards or actions, and an effect that does "
                "not change over the rounds.",
                *_low_propensity(lowest),
                *_bare_columns(x, chosen, names),
                *estimated_propensities(log),
                *gaps,
            ),
            scores={"influence": self._spread(fit.influence, kept)} if keep_scores else None,
            covariates=self._covariates,
            projection=fit,
        )

    def _own_propensity(self) -> FloatArray:
        propensity = self.log.arrays.propensity
        if propensity is not None:
            return propensity
        raise InvalidForLog("aipw", "it divides by propensities, and the log has none", [_GROUPS])

    def _saturated(self, keep: BoolArray) -> bool:
        """Whether the formula gives every combination of contexts its own effect."""
        columns = [values[keep] for values in self.log.arrays.context.values()]
        width = len(self._covariates.names)
        # Few distinct rows first: counting combinations of continuous contexts is slow and needless.
        if any(len(np.unique(column)) > width for column in columns if column.dtype.kind in "fiub"):
            return False
        return len(group_codes(columns)[1]) == width

    def _check_arms(self, chosen: FloatArray) -> None:
        counts = chosen.sum(axis=0)
        empty = [repr(arm) for arm, n in zip((self.control, self.treatment), counts, strict=True) if n == 0]
        if empty:
            reason = f"in the rounds used, {' and '.join(empty)} was never chosen"
            raise InvalidForLog("a projection of the effect", reason, ["other rounds=", "other arms"])

    def _spread(self, influence: FloatArray, kept: Any) -> FloatArray:
        rows = np.zeros((self.log.n_rounds, influence.shape[1]))
        rows[kept] = influence
        return rows


def _standard_errors(fit: Projection, kept: Any) -> tuple[FloatArray, list[str]]:
    n, p = len(kept), len(fit.coefficient)
    alone = np.asarray(kept)[np.isnan(fit.influence).any(axis=1)]
    if n > p and 0 < len(alone) < n:
        shown = ", ".join(map(str, alone[:10])) + (", ..." if len(alone) > 10 else "")
        reason = f"round {shown} (counted from 0) alone decides a coefficient, so that it has no residual"
        return np.full(p, np.nan), [f"No standard errors by HC2 or HC3: {reason}; HC0 and HC1 exist."]
    std_error = np.sqrt(np.maximum(np.diag(fit.covariance), 0.0))
    if n <= p:
        return np.full(p, np.nan), [f"No standard errors: {n} rounds for {p} columns."]
    if not np.all(np.isfinite(std_error)) or np.all(std_error == 0.0):
        return np.full(p, np.nan), ["No standard errors: the scores do not vary about the fit."]
    return np.where(std_error > 0.0, std_error, np.nan), []


def _meaning(kind: str, *, saturated: bool, complete: bool) -> str:
    if saturated:
        return "The formula gives every combination of contexts its own effect: the weights do not change it."
    if kind == "uniform" and complete:
        return (
            "Estimand: the best linear approximation of the effect over the log's contexts. The normal law "
            "needs propensities that settle or stay away from 0."
        )
    what = f"{kind} weights" if kind != "uniform" else "Uniform weights over the rounds that could be used"
    return (
        f"{what}: valid if the formula holds exactly, or the propensities do not depend on the context. Else "
        "they estimate an approximation weighted by propensities that the log itself determined."
    )


def _low_propensity(lowest: float) -> list[str]:
    if lowest >= _LOW:
        return []
    return [
        f"Propensities as low as {lowest:.2g}: a few rounds carry much of the estimate, and intervals may "
        "fall short of their level. An outcome model that predicts well (outcome=) makes them count for less."
    ]


def _bare_columns(x: FloatArray, chosen: FloatArray, names: tuple[str, ...]) -> list[str]:
    """Indicator columns on which an arm was never observed."""
    binary = ((x == 0.0) | (x == 1.0)).all(axis=0)
    bare = binary & ((x.T @ chosen) == 0.0).any(axis=1)
    return [
        f"{name}: one of the arms has no rewards where it is 1; the coefficient rests on the outcome model, "
        "and its standard error is too small."
        for name, flag in zip(names, bare, strict=True)
        if flag
    ]


def _check(weights: Any, decay: Any, covariance: Any, null: Any, keep_scores: Any) -> None:
    problems = flag_problem("keep_scores", keep_scores)
    if weights is not None and weights not in _WEIGHTS:
        problems = [*problems, f"weights must be one of {', '.join(_WEIGHTS)}, got {weights!r}"]
    if covariance not in COVARIANCES:
        problems = [*problems, f"covariance must be one of {', '.join(COVARIANCES)}, got {covariance!r}"]
    if isinstance(null, bool) or not isinstance(null, Real) or not np.isfinite(float(null)):
        problems = [*problems, f"null must be a finite number, got {null!r}"]
    if weights == "two-point":
        if isinstance(decay, bool) or not isinstance(decay, Real) or not 0.0 <= float(decay) < 1.0:
            problems = [
                *problems,
                "two-point weights need decay=, the exponent a in [0, 1) of a propensity floor that falls "
                f"like t^-a, fixed in advance and never fitted on the log; got {decay!r}",
            ]
    elif decay is not None:
        problems = [*problems, f"decay belongs to two-point weights, not to {weights}"]
    if problems:
        raise ParameterError(_SUBJECT, problems)
