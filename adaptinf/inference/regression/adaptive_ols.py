"""Regressions of rewards on contexts and arms, adjusted for adaptive collection.

References
----------
Neel, Roth (2018), "Mitigating bias in adaptive data gathering via differential privacy". Deshpande, Mackey,
Syrgkanis, Taddy (2018), "Accurate inference for adaptive linear models". Zhang, Janson, Murphy (2020),
"Inference for batched bandits"; (2021), "Statistical inference with M-estimators on adaptively collected
data". Abbasi-Yadkori, Pál, Szepesvári (2011), "Improved algorithms for linear stochastic bandits". Lindon,
Ham, Tingley, Bojinov (2022), "Anytime-valid linear models and regression adjusted causal inference in
randomized experiments".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.claims import under_table
from adaptinf.claims.regression import regressions as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.inputs.arguments import require_log, text_problems
from adaptinf.inference.inputs.rounds import marked_log
from adaptinf.inference.regression.adjustments import (
    ADJUSTMENTS,
    check_selection,
    default_adjustment,
    valid_alternatives,
)
from adaptinf.inference.regression.design import Adjustment, FitOptions, RegressionData, regression_data
from adaptinf.inference.regression.facts.regression_facts import RegressionFacts
from adaptinf.inference.regression.least_squares import BY_CLUSTER
from adaptinf.inference.regression.plain_regression import NONE
from adaptinf.inference.regression.rare_coefficients import without_hidden
from adaptinf.inference.regression.regression_results import RegressionResults
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.inference.validity.profile import profile_of
from adaptinf.parameters import BOOLEAN, refuse
from adaptinf.texts import absent, unlisted

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile
    from adaptinf.log import AdaptiveLog

_SUBJECT = "AdaptiveOLS.fit"
_MODERATE = 250
"""Number of rounds below which HC3 keeps the level best (Long and Ervin 2000)."""


class AdaptiveOLS:
    """Linear regression of rewards on contexts and arms.

    Parameters
    ----------
    log : AdaptiveLog
        The data.
    covariates : sequence of str, optional
        Contexts to use as regressors, together with an intercept, by the user's names or the canonical names;
        by default, all contexts. For arms, interactions and transformations, see `from_formula`.
    arm : label or selector, optional
        Use only the rounds of one arm: its label, or ``"most-pulled"``, ``"least-pulled"``,
        ``"last-pulled"``, or ``"recommended"`` if a best-arm design recommended one. These selectors use only
        the action history, so a max-information correction covers the choice. By default, all rounds are
        used.
    rounds : str or array_like of bool, shape (T,), optional
        Rounds to use, by default all: the name of a column of the log, or a mask. The selection must not
        depend on rewards; selectors of arms use the actions in these rounds.

    Attributes
    ----------
    data : RegressionData
        Rewards and model matrix.

    Raises
    ------
    ParameterError
        If a name is unknown, or some columns are linear combinations of others; the message names them.
    InvalidForLog
        If the log does not support the selector, or the arm was never chosen.

    Notes
    -----
    The t tests of plain least squares are not valid if rewards affected later actions. When an adjustment is
    valid depends on its assumptions, which the notes under each table state. All adjustments assume that the
    mean reward is linear in the columns, with constant coefficients.

    References
    ----------
    Neel, Roth (2018), "Mitigating bias in adaptive data gathering via differential privacy". Deshpande,
    Mackey, Syrgkanis, Taddy (2018), "Accurate inference for adaptive linear models". Zhang, Janson, Murphy
    (2020), "Inference for batched bandits"; (2021), "Statistical inference with M-estimators on adaptively
    collected data". Abbasi-Yadkori, Pál, Szepesvári (2011), "Improved algorithms for linear stochastic
    bandits". Lindon, Ham, Tingley, Bojinov (2022), "Anytime-valid linear models and regression adjusted
    causal inference in randomized experiments".

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> from adaptinf.log import LogArrays
    >>> rng = np.random.default_rng(1)
    >>> action, dose = rng.integers(0, 2, 400), rng.normal(size=400)
    >>> reward = rng.normal(1.0 + 0.5 * action + dose, 1.0)
    >>> arrays = LogArrays(action, reward, context={"dose": dose})
    >>> log = ai.AdaptiveLog.from_arrays(arrays, arms=("a", "b"), design=ai.designs.Uniform().record())
    >>> result = ai.AdaptiveOLS.from_formula("reward ~ C(action) + dose", log).fit()
    >>> result.adjustment
    'none'
    >>> result.conf_int().round(2)
                     low  high
    Intercept       0.83  1.12
    C(action)[T.b]  0.22  0.63
    dose            0.94  1.16
    """

    def __init__(
        self,
        log: AdaptiveLog,
        covariates: Sequence[str] | None = None,
        *,
        arm: Any = None,
        rounds: str | ArrayLike | None = None,
    ) -> None:
        require_log("AdaptiveOLS", log)
        self.log, _, self._notes = marked_log("AdaptiveOLS", log, rounds)
        self.data = regression_data(self.log, None, covariates, arm)

    @classmethod
    def from_formula(
        cls,
        formula: str,
        log: AdaptiveLog,
        *,
        arm: Any = None,
        rounds: str | ArrayLike | None = None,
        trusted: bool = False,
    ) -> AdaptiveOLS:
        """Specify a regression by a formula.

        Parameters
        ----------
        formula : str
            A formula such as ``"reward ~ x1 + x2"``, or ``"reward ~ C(action) * x1"`` for arms with separate
            coefficients. The response is the log's reward; covariates are contexts and the arm, by the user's
            names or the canonical names. Arms are treated as labels in the log's order, even if they are
            numbers. Transformations such as ``center`` use the contexts of the rounds in the regression.
        log : AdaptiveLog
            The data.
        arm : label or selector, optional
            As for the class.
        rounds : str or array_like of bool, shape (T,), optional
            As for the class.
        trusted : bool
            Whether to evaluate any Python code in the formula. Because a formula is code, only arithmetic,
            comparisons, formulaic's transforms and NumPy functions of columns are allowed by default.

        Returns
        -------
        AdaptiveOLS

        Raises
        ------
        ParameterError
            If the text is not a formula, if its response is not the reward, or if it contains a name that is
            neither a context nor the arm, or Python code that is not allowed.
        InvalidForLog
            If the log does not support the selector, or the arm was never chosen.
        """
        require_log("AdaptiveOLS", log)
        refuse("AdaptiveOLS", BOOLEAN("trusted", trusted))
        model = cls.__new__(cls)
        model.log, _, model._notes = marked_log("AdaptiveOLS", log, rounds)
        model.data = regression_data(model.log, _required(formula), None, arm, trusted=trusted)
        return model

    def fit(
        self,
        adjustment: str | None = None,
        covariance: str | None = None,
        *,
        null: float = 0.0,
        stationary: bool = False,
        **settings: Any,
    ) -> RegressionResults:
        """Estimate the coefficients.

        Parameters
        ----------
        adjustment : str, optional
            Adjustment for adaptive collection; by default, that of `default_adjustment`, with a note that
            states the reason.

            ``"none"`` is plain least squares, which is naive unless the design does not adapt.
            ``"max-information"`` is plain least squares with p-values and intervals that are corrected by
            means of the log's privacy guarantee. The correction also covers arms that are selected by their
            pulls. ``"w-decorrelation"`` removes the bias by weights that are computed from the columns alone.
            ``"batched"`` fits a separate regression in each batch. ``"weighted"`` requires logged
            propensities. This method has one weight per round for all arms, so influences common to all arms
            are not attributed to one of them. ``"ellipsoid"`` is valid at all rounds simultaneously, given
            bounds on the noise and the coefficients. ``"anytime"`` has t and F tests that are valid at all
            rounds simultaneously, for a design that does not adapt.
        covariance : {"classical", "HC0", "HC1", "HC2", "HC3", "CR2", "cluster"}, optional
            Covariance for plain least squares, with t and F tests. By default, it is robust to unequal
            variances: HC3 below 250 rounds, and HC2 otherwise. If units have several rounds and the
            adjustment is also the default, it is clustered by unit: CR2, with Satterthwaite's degrees of
            freedom. Other adjustments have their own covariance.
        null : float
            Value of every coefficient under the null hypothesis.
        stationary : bool
            Whether coefficients are known to be the same in all rounds. If so, weights are square roots of
            importance weights, separate for each arm, and the covariance of plain least squares is classical,
            or clustered by unit without CR2's correction.
        **settings
            Options of specific adjustments: ``chosen_from`` (max-information: ``"actions"``, or
            ``"releases"`` if the choice of arm, formula or null also depended on the releases), ``ridge``
            (w-decorrelation, ellipsoid), ``test`` and ``drift`` (batched), ``weights`` (weighted:
            ``"combined"``, ``"uniform"`` or ``"sqrt"``), ``target`` (weighted by sqrt), ``noise_scale`` and
            ``bound`` (ellipsoid), ``precision`` (anytime).

        Returns
        -------
        RegressionResults
            Results with one term per column.

        Raises
        ------
        ParameterError
            If an argument is invalid, or some columns are linear combinations of others; the message names
            them.
        InvalidForLog
            If the log does not support the request; the message gives the reason and valid alternatives.
        """
        _check(adjustment, covariance, null, stationary, settings)
        data, profile = self.data, profile_of(self.log)
        entry, covariance, chosen = _chosen(data, profile, adjustment, covariance, stationary)
        kind, notes = (covariance, []) if covariance else _covariance(data, entry, stationary)
        _check_for(entry, kind, settings)
        check_selection(data, entry)
        given = {name: value for name, value in settings.items() if value is not None}
        options = FitOptions(kind, float(null), given, stationary=stationary, chosen=(*chosen, *notes))
        facts = entry.facts(data, profile, options)
        try:
            with np.errstate(under="ignore"):
                facts.fit = entry.fit(facts)
        except InvalidForLog as error:
            with np.errstate(under="ignore"):
                ways = error.alternatives or valid_alternatives(data, profile, entry.name)
            raise InvalidForLog(error.method, error.reason, ways) from None
        with np.errstate(under="ignore"):
            fit = without_hidden(data, facts.fit, facts.rare.hidden)
            notes, cautions = under_table(entry.claims, facts)
        return RegressionResults(
            model="AdaptiveOLS",
            estimands=tuple(Estimand("coefficient", arm=data.arm, term=name) for name in data.names),
            terms=data.names,
            estimate=fit.estimate,
            std_error=fit.std_error,
            covariance=fit.covariance,
            reference=fit.reference,
            estimator=fit.estimator,
            weights=fit.weights,
            facts=LogFacts.of(self.log, by_unit=kind in BY_CLUSTER),
            validity="not valid" if fit.naive else "exact" if fit.reference.exact else "asymptotic",
            null=float(null),
            correction=fit.correction,
            details=fit.details,
            notes=(*self._notes, *notes),
            cautions=tuple(cautions),
            adjustment=entry.name,
            formula=data.formula,
            covariance_type=kind,
            nobs=data.nobs,
            df_model=data.size if fit.df_model is None else fit.df_model,
            df_resid=math.nan if fit.df_resid is None else fit.df_resid,
            rsquared=math.nan if fit.rsquared is None else fit.rsquared,
            arm=data.arm,
            joint=fit.joint,
        )


def _required(formula: Any) -> Any:
    """Treat None as if the formula were missing."""
    return "" if formula is None else formula


def _chosen(
    data: RegressionData,
    profile: LogProfile,
    adjustment: str | None,
    covariance: str | None,
    stationary: bool,
) -> tuple[Adjustment[Any], str | None, list[str]]:
    """The adjustment and covariance to use, and notes on the choice."""
    if adjustment is not None:
        return ADJUSTMENTS[adjustment], covariance, []
    entry, reason = default_adjustment(data, profile)
    if covariance not in (None, *entry.covariances):
        ways = [f"covariance={entry.covariances[0]!r}, or none"]
        ways += [claims.BASELINE()] if data.adaptive else []
        reason = claims.NO_SUCH_COVARIANCE(name=entry.name, covariance=covariance)
        raise InvalidForLog(f"covariance={covariance!r}", reason, ways)
    notes: list[str] = [claims.CHOSEN(name=entry.name, reason=reason)]
    by_unit = "cluster" in entry.covariances and RegressionFacts(data, profile).repeated_units
    if covariance is None and by_unit:
        return entry, "cluster" if stationary else "CR2", [*notes, claims.CLUSTERED()]
    return entry, covariance, notes


def _covariance(data: RegressionData, entry: Adjustment[Any], stationary: bool) -> tuple[str, list[str]]:
    """The covariance that is used if none is requested, and a note on it.

    For plain least squares, it is HC3 below 250 rounds and HC2 otherwise. The covariance is classical if a
    single round determines a coefficient, in which case the other kinds are undefined, or if coefficients are
    stated to be the same in all rounds.
    """
    if "HC3" not in entry.covariances or stationary:
        return entry.covariances[0], []
    with np.errstate(under="ignore"):
        fit = data.squares
        decided = data.nobs > data.size and not fit.perfect and fit.decided > 0
    if decided:
        return "classical", [claims.CLASSICAL()]
    return ("HC3" if data.nobs < _MODERATE else "HC2"), []


def _check(adjustment: Any, covariance: Any, null: Any, stationary: Any, settings: Mapping[str, Any]) -> None:
    problems = text_problems(adjustment=adjustment, covariance=covariance)
    problems += BOOLEAN("stationary", stationary)
    if isinstance(adjustment, str) and adjustment not in ADJUSTMENTS:
        problems.append(unlisted("adjustment", ADJUSTMENTS, adjustment))
    known = {name for entry in ADJUSTMENTS.values() for name in entry.covariances}
    if isinstance(covariance, str) and covariance not in known:
        problems.append(unlisted("covariance", NONE.covariances, covariance))
    if isinstance(null, bool) or not isinstance(null, Real) or not math.isfinite(float(null)):
        problems.append(f"null must be a finite number, got {null!r:.60}")
    if "level" in settings or "alpha" in settings:
        problems.append(
            "significance levels are set in the results: conf_int(alpha=0.05), summary(alpha=0.05)"
        )
    if "cov_type" in settings:
        problems.append("statsmodels' cov_type is called covariance= here")
    options = {name for entry in ADJUSTMENTS.values() for name in entry.options}
    unknown = [name for name in settings if name not in options | {"level", "alpha", "cov_type"}]
    problems += [absent("option", name, sorted(options), "the adjustments have") for name in unknown]
    refuse(_SUBJECT, problems)


def _check_for(entry: Adjustment[Any], covariance: str, settings: Mapping[str, Any]) -> None:
    problems = []
    if covariance not in entry.covariances:
        why = f": {entry.why}" if entry.why else ""
        problems.append(
            f"covariance={covariance!r} is not available with adjustment={entry.name!r}, which has "
            f"{', '.join(entry.covariances)}{why}"
        )
    for name, value in settings.items():
        if value is not None and name not in entry.options:
            own = ", ".join(entry.options) or "none"
            problems.append(f"{name} does not apply to adjustment={entry.name!r}; its options: {own}")
    refuse(_SUBJECT, problems)
