"""Effects as linear functions of covariates: weighted projections of AIPW scores.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments". Semenova, Chernozhukov (2021), "Debiased machine learning of conditional average treatment
effects and other causal functions".
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.errors import InvalidForLog
from adaptinf.inference.effects.projections.projected_scores import (
    PROJECTION,
    SUBJECT,
    WEIGHTS,
    ProjectionResults,
)
from adaptinf.inference.effects.projections.projection_question import projection_question
from adaptinf.inference.effects.projections.weighted_projection import COVARIANCES
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import FLAG, refuse
from adaptinf.texts import unlisted


class CATEProjection:
    """Best approximation of the effect of one arm over another by a linear function of covariates.

    Parameters
    ----------
    formula : str
        Covariates, such as ``"~ age + group"``, without a response. The covariates are contexts of the log,
        given by the user's names or the canonical names. Transforms such as ``scale``, ``center`` and ``bs``
        use the contexts of the whole log.
    log : AdaptiveLog
        The data.
    treatment, control : label, optional
        The arms; the control's mean is subtracted. If the log has two arms, the second is the treatment by
        default.
    rounds : str or array_like of bool, shape (T,), optional
        Rounds to use; by default those of phase "estimation" if the log has phases, otherwise all.
    trusted : bool
        Whether to evaluate any Python code in the formula, not only the kinds that `CATE.from_formula` lists.

    Raises
    ------
    ParameterError
        If an argument does not fit the log; the message lists every problem.

    Notes
    -----
    The model assumes that contexts do not depend on earlier rewards or actions, and that the propensities are
    the probabilities with which arms were chosen, given the context. If the effect at given covariates
    changes over the rounds, the estimand is the projection of its average, weighted like the rounds.

    References
    ----------
    Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
    experiments". Semenova, Chernozhukov (2021), "Debiased machine learning of conditional average treatment
    effects and other causal functions".

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> from adaptinf.inference.effects import CATEProjection
    >>> from adaptinf.log import LogArrays
    >>> rng = np.random.default_rng(1)
    >>> age, action = rng.uniform(20, 60, 2000), rng.integers(0, 2, 2000)
    >>> reward = rng.normal(0.1 * action * (age - 40), 1.0)
    >>> arrays = LogArrays(action, reward, propensity=np.full(2000, 0.5), context={"age": age})
    >>> log = ai.AdaptiveLog.from_arrays(arrays, arms=("old", "new"))
    >>> result = CATEProjection("~ age", log).fit()
    >>> result.conf_int().round(2)
                low  high
    Intercept -4.41 -3.59
    age        0.09  0.11
    >>> result.predict({"age": [20.0, 60.0]}).round(1)
       effect  std_error  low  high
    0    -2.0        0.1 -2.2  -1.7
    1     2.1        0.1  1.9   2.4
    """

    def __init__(
        self,
        formula: str,
        log: AdaptiveLog,
        *,
        treatment: Any = None,
        control: Any = None,
        rounds: str | ArrayLike | None = None,
        trusted: bool = False,
    ) -> None:
        self.formula, self.log = formula, log
        self.question = projection_question(formula, log, treatment, control, rounds, trusted)

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
        weights : {"uniform", "combined", "two-point"}, optional
            Weights of the scores, which both arms share, so that drift common to both cancels. Combined
            weights, (1/e1 + 1/e0)^(-1/2), keep variances constant even if propensities fall. They are the
            default if they are known before the round's context and therefore do not change the estimand.
            This is the case if contexts did not affect the choice, if the log has batches (if propensities
            vary within a batch, those of the previous batch determine the weight), or if the formula contains
            a separate effect for every combination of contexts. Otherwise, uniform weights are the default,
            because combined or two-point weights would weight contexts by their propensities.
        decay : float, optional
            Exponent a in [0, 1) of the propensity floor t^-a, for two-point weights, fixed in advance. By
            default, that of the log's design.
        covariance : {"HC0", "HC1", "HC2", "HC3"}
            The martingale sandwich, or its corrections for small samples.
        outcome : str, mapping or array_like, optional
            Outcome model of the scores: ``"running-mean"`` (the default), ``"running-ridge"`` on the
            contexts, or your own predictions, whose row t may depend only on rounds before t and on the
            context of round t. Predictions are given as a mapping from arms to columns, a frame with one
            column per arm, or an array of shape (T, K) with all K arms in the order of ``log.arms``.
        ridge : float, optional
            Penalty of the running ridge, fixed in advance; 1 by default.
        null : float
            Value against which every coefficient is tested.
        keep_scores : bool
            Whether to keep the contributions of the rounds, for the bootstrap of
            `Results.conf_int_simultaneous`.

        Returns
        -------
        ProjectionResults
            Results with one term for each column of the model matrix.

        Raises
        ------
        ParameterError
            If an argument is invalid, or columns of the formula cannot be distinguished.
        InvalidForLog
            If the log does not support the request; the message gives the reason and valid alternatives.
        """
        if weights == "two-point" and decay is None:
            decay = self.question.profile.floor_decay
        _check(weights, decay, covariance, null, keep_scores)
        options: dict[str, Any] = {
            "weights": weights,
            "decay": decay,
            "covariance": covariance,
            "outcome": outcome,
        }
        options |= {"ridge": ridge, "keep_scores": keep_scores}
        try:
            with np.errstate(under="ignore"):
                result: ProjectionResults = PROJECTION.fit(self.question, float(null), **options)
        except InvalidForLog as error:
            ways = error.alternatives or self.question.alternatives
            raise InvalidForLog(error.method, error.reason, ways) from None
        return result


def _check(weights: Any, decay: Any, covariance: Any, null: Any, keep_scores: Any) -> None:
    problems = FLAG("keep_scores", keep_scores)
    if weights is not None and weights not in WEIGHTS:
        problems = [*problems, unlisted("weights", WEIGHTS, weights)]
    if covariance not in COVARIANCES:
        problems = [*problems, unlisted("covariance", COVARIANCES, covariance)]
    if isinstance(null, bool) or not isinstance(null, Real) or not np.isfinite(float(null)):
        problems = [*problems, f"null must be a finite number, got {null!r}"]
    if weights == "two-point":
        if isinstance(decay, bool) or not isinstance(decay, Real) or not 0.0 <= float(decay) < 1.0:
            problems = [
                *problems,
                "two-point weights require decay=, the exponent a in [0, 1) of a propensity floor "
                f"proportional to t^-a, fixed in advance and never fitted to the log; got {decay!r}",
            ]
    elif decay is not None:
        problems = [*problems, f"decay applies to two-point weights, not to {weights}"]
    refuse(SUBJECT, problems)
