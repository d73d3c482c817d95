"""The rounds and the model matrix of a regression, from a formula, covariates or a selected arm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from adaptinf.claims import Claim, Part
from adaptinf.claims.regression import regressions as claims
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.inputs.arguments import label_problems, labels
from adaptinf.inference.inputs.formulas import (
    CovariateModel,
    Formula,
    column_problems,
    context_frame,
    main_effects,
    model_on,
    name_in_formula,
    read_formula,
)
from adaptinf.inference.regression.least_squares import LeastSquares, least_squares
from adaptinf.inference.validity.profile import profile_of
from adaptinf.parameters import refuse
from adaptinf.texts import absent, did_you_mean, listed, shown
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.inference.corrections.information import Correction
    from adaptinf.inference.distributions.references import Reference
    from adaptinf.inference.results.hypotheses import LinearHypothesis, LinearTest, WaldTest
    from adaptinf.inference.validity.profile import LogProfile
    from adaptinf.log import AdaptiveLog

Facts = TypeVar("Facts")
"""The facts on which the claims of an adjustment depend."""


@dataclass(frozen=True, eq=False)
class RegressionData:
    """Rewards and model matrix for the n rounds that a regression uses, in time order.

    Shapes: y (n,), x (n, p), rounds (n,), action (n,), batch (n,), propensity (n,), clusters (n,).

    `rows_of` returns the model matrix with another arm in place of the chosen arm; it is None if the arm is
    not in the formula.
    """

    y: FloatArray
    x: FloatArray
    names: tuple[str, ...]
    rounds: IntArray
    action: IntArray
    n_rounds: int
    n_arms: int
    formula: str
    response: str
    covariates: tuple[str, ...] = ()
    arm: Any = None
    selector: str | None = None
    adaptive: bool = True
    batch: IntArray | None = None
    propensity: FloatArray | None = None
    clusters: IntArray | None = None
    rows_of: Callable[[int], FloatArray] | None = None

    @property
    def nobs(self) -> int:
        """Number of rounds used, n."""
        return len(self.y)

    @property
    def size(self) -> int:
        """Number of columns, p."""
        return int(self.x.shape[1])

    @cached_property
    def squares(self) -> LeastSquares:
        """The plain least-squares fit, computed once for estimates, covariances and cautions."""
        return least_squares(self.x, self.y, self.names)


class JointTests(Protocol):
    """Tests of combinations of coefficients by the estimator's own distribution."""

    def linear_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> LinearTest:
        """Separate tests of q combinations."""

    def wald_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> WaldTest:
        """Joint test of q restrictions."""


@dataclass(frozen=True, slots=True, eq=False)
class CoefficientFit:
    """Coefficients, with everything that tests and tables need.

    Shapes: estimate, std_error (p,), covariance (p, p), details (p,).

    `found` contains further facts for the adjustment's claims. `decided` is the number of rounds that each
    determine a coefficient alone; if there are any, there are no standard errors.
    """

    estimate: FloatArray
    std_error: FloatArray
    reference: Reference
    estimator: str
    covariance: FloatArray | None = None
    weights: str | None = None
    details: Mapping[str, FloatArray] = field(default_factory=dict)
    df_resid: float | None = None
    correction: Correction | None = None
    joint: JointTests | None = None
    rsquared: float | None = None
    df_model: int | None = None
    naive: bool = False
    decided: int = 0
    found: Any = None


@dataclass(frozen=True, slots=True)
class FitOptions:
    """The user's options for an adjustment, and notes on the defaults that were chosen."""

    covariance: str
    null: float = 0.0
    settings: Mapping[str, Any] = field(default_factory=dict)
    stationary: bool = False
    chosen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Adjustment(Generic[Facts]):
    """A way to make least squares valid under adaptive collection.

    `fit` raises `InvalidForLog` if the log does not support the adjustment; the model adds valid alternatives
    to the error.
    """

    name: str
    facts: Callable[[RegressionData, LogProfile, FitOptions | None], Facts]
    """Creates the facts about a log and, once there is a fit, about the fit."""
    fit: Callable[[Facts], CoefficientFit]
    claims: tuple[Claim | Part, ...]
    """The claims that a fit may state, in order: notes and cautions."""
    needs: tuple[Claim | Part, ...] = ()
    """Reasons why a log does not support the adjustment, whatever the options of a fit."""
    reasons: tuple[Claim | Part, ...] = ()
    """Reasons why the adjustment is the default for a log."""
    covariances: tuple[str, ...] = ("classical",)
    options: tuple[str, ...] = ()
    why: str = ""
    """The reason why no other covariances are available."""
    plain: bool = False
    """Whether the estimates are those of plain least squares, which allow arms to be selected by pulls."""


def check_freedom(name: str, data: RegressionData) -> None:
    """Refuse regressions without residual degrees of freedom."""
    if data.nobs <= data.size:
        problem = (
            f"{data.nobs} rounds and {data.size} columns leave no residual degrees of freedom: use "
            "fewer columns"
        )
        raise ParameterError(name, [problem])


SELECTORS = ("most-pulled", "least-pulled", "last-pulled", "recommended")
"""Ways to select an arm, by the action history alone or by the design's recommendation."""
_SUBJECT = "AdaptiveOLS"


def select_arm(log: AdaptiveLog, selector: str) -> Any:
    """The arm that a selector chooses."""
    if selector == "recommended":
        if log.recommended is None:
            reason = claims.NO_ARM_NAMED()
            raise InvalidForLog(
                "arm='recommended'", reason, ["arm='most-pulled'", "arm= set to an arm's label"]
            )
        return log.recommended
    action = log.arrays.action
    if len(action) == 0:
        raise InvalidForLog(f"arm={selector!r}", "the log has no rounds", ["a log with at least one round"])
    if selector == "last-pulled":
        return log.arms[action[-1]]
    pulls = np.bincount(action, minlength=log.n_arms)
    if selector == "least-pulled":
        pulls = -np.where(pulls > 0, pulls, len(action) + 1)
    return log.arms[int(np.argmax(pulls))]


def regression_data(
    log: AdaptiveLog, formula: Any = None, covariates: Any = None, arm: Any = None, *, trusted: bool = False
) -> RegressionData:
    """The rewards and model matrix of a regression, from a formula or named contexts."""
    problems = label_problems("arm", [arm])
    selector = None
    if not problems and arm is not None and arm not in log.arms:
        if isinstance(arm, str) and arm in SELECTORS:
            selector, arm = arm, select_arm(log, arm)
        else:
            problems.append(
                f"there is no arm {shown(arm)}; the log has {listed(log.arms)}, and the valid selectors are "
                f"{listed(SELECTORS)}{did_you_mean(arm, [*log.arms, *SELECTORS])}"
            )
    arrays = log.arrays
    rounds = np.arange(log.n_rounds)
    if arm is not None and not problems:
        rounds = np.flatnonzero(arrays.action == log.arms.index(arm))
        if len(rounds) == 0:
            raise InvalidForLog(f"a regression of arm {arm!r}", "the arm was never chosen", ["another arm"])
    every = arm is None or bool(problems)
    rows_of = None
    if formula is None:
        contexts = _contexts(log)
        names, found = _covariates(log, contexts, covariates)
        refuse(_SUBJECT, [*problems, *found])
        response, used = _names_of(log, "reward")[0], tuple(names)
        right = " + ".join(map(name_in_formula, names)) if names else "1"
        formula = f"{name_in_formula(response)} ~ {right}"
        x, terms = main_effects(
            {name: contexts[name] for name in names}, None if every else rounds, len(rounds)
        )
        refuse(_SUBJECT, column_problems(x, list(terms)))
    else:
        refuse(_SUBJECT, problems)
        x, terms, used, response, rows_of = _from_formula(log, formula, rounds, every=every, trusted=trusted)
    chosen = arrays.action if every else arrays.action[rounds]
    return RegressionData(
        y=arrays.reward if every else arrays.reward[rounds],
        x=x,
        names=terms,
        rounds=rounds,
        action=chosen,
        n_rounds=log.n_rounds,
        n_arms=log.n_arms,
        formula=formula.strip(),
        response=response,
        covariates=used,
        arm=arm,
        selector=selector,
        # The choice of the recommended arm depends on the rewards.
        adaptive=profile_of(log).adaptive or selector == "recommended",
        batch=None if arrays.batch is None else arrays.batch[rounds],
        propensity=None if arrays.propensity is None else arrays.propensity[rounds],
        rows_of=rows_of,
    )


@dataclass(frozen=True, slots=True, eq=False)
class ArmRows:
    """The rows of a formula's model matrix with another arm in place of the chosen arm."""

    model: CovariateModel
    frame: pd.DataFrame
    names: tuple[str, ...]
    codes: IntArray

    def __call__(self, code: int) -> FloatArray:
        """Model matrix, shape (n, p), as if every round had chosen the arm with this code."""
        import pandas as pd

        place = np.full(len(self.frame), int(np.searchsorted(self.codes, code)))
        arm = pd.Categorical.from_codes(place, categories=self.frame[self.names[0]].cat.categories)
        return self.model.rows(_SUBJECT, self.frame.assign(**dict.fromkeys(self.names, arm)))


def unit_codes(log: AdaptiveLog, rounds: IntArray) -> IntArray:
    """Codes 0, ..., G - 1 of the units in these rounds; rounds and result have shape (n,)."""
    import pandas as pd

    if "unit_id" not in log.columns.values():
        ways = ["covariance='HC1'", "covariance='classical'"]
        raise InvalidForLog("covariance='cluster'", claims.NO_UNITS(), ways)
    return np.asarray(pd.factorize(log.column("unit_id")[rounds])[0], dtype=np.int64)


def _names_of(log: AdaptiveLog, canonical: str) -> list[str]:
    """The names of a column, starting with the user's name."""
    own = [str(name) for name, column in log.columns.items() if column == canonical]
    return own if canonical in own else [*own, canonical]


def _contexts(log: AdaptiveLog) -> dict[str, Any]:
    """The contexts, keyed by the user's names and then by the canonical names."""
    context = log.arrays.context
    own = {str(name): context[column] for name, column in log.columns.items() if column in context}
    return {**own, **{name: values for name, values in context.items() if name not in own}}


def _covariates(log: AdaptiveLog, contexts: dict[str, Any], covariates: Any) -> tuple[list[str], list[str]]:
    """The names of the contexts to use, and any problems with them."""
    if covariates is None:
        return list(contexts)[: len(log.context)], []
    named, problems = labels("covariates", covariates)
    for name in named:
        if not isinstance(name, str) or name not in contexts:
            problems.append(absent("covariate", name, contexts, "the log's contexts are"))
    if len(set(named)) < len(named):
        problems.append(f"a covariate is named more than once: {', '.join(map(repr, named))}")
    return [str(name) for name in named], problems


def _from_formula(
    log: AdaptiveLog, text: Any, rounds: IntArray, *, every: bool, trusted: bool
) -> tuple[FloatArray, tuple[str, ...], tuple[str, ...], str, ArmRows | None]:
    """Model matrix for these rounds, its columns and contexts, the name of the reward, and rows by arm."""
    formula, response = _parsed(log, text, trusted)
    contexts = context_frame(log)
    arms = _names_of(log, "action")
    if unknown := sorted(formula.needed - set(contexts.columns) - set(arms)):
        raise ParameterError(_SUBJECT, [_unknown_problem(log, unknown, contexts, arms)])
    used = tuple(name for name in contexts.columns if name in formula.names)
    frame = contexts if trusted else contexts[list(used)]
    frame = frame if every else frame.iloc[rounds]
    with_arms = [name for name in arms if name not in contexts.columns and name in formula.names]
    if with_arms:
        codes = log.arrays.action if every else log.arrays.action[rounds]
        arm = _categories(log, codes)
        if len(arm.categories) < 2:
            problem = (
                f"only arm {arm.categories[0]!r} was chosen in the rounds used: omit {', '.join(with_arms)} "
                "from the formula"
            )
            raise ParameterError(_SUBJECT, [problem])
        frame = frame.assign(**dict.fromkeys(with_arms, arm))
    model = model_on(_SUBJECT, formula, frame)
    rows_of = None
    if with_arms:
        rows_of = ArmRows(model, frame, tuple(with_arms), np.unique(codes))
    return model.matrix, model.names, used, response, rows_of


def _categories(log: AdaptiveLog, codes: IntArray) -> pd.Categorical[Any]:
    """The arms as labels in the log's order, restricted to arms that were chosen."""
    import pandas as pd

    seen = np.flatnonzero(np.bincount(codes, minlength=log.n_arms))
    place = np.full(log.n_arms, -1)
    place[seen] = np.arange(len(seen))
    named: Any = pd.Index([log.arms[code] for code in seen])
    return pd.Categorical.from_codes(place[codes], categories=named)


def _parsed(log: AdaptiveLog, text: Any, trusted: bool) -> tuple[Formula, str]:
    """The parsed formula, and the name of the reward in it."""
    names = _names_of(log, "reward")
    example = f"'{name_in_formula(names[0])} ~ x1 + x2'"
    if not isinstance(text, str) or not text.strip():
        raise ParameterError(_SUBJECT, [f"formula must be text such as {example}, got {text!r:.60}"])
    formula = read_formula(_SUBJECT, text, trusted=trusted)
    if formula.left is None or formula.right is None:
        problem = f"the formula {text!r} must have one response and one right-hand side, as in {example}"
        raise ParameterError(_SUBJECT, [problem])
    terms = [":".join(factor.expr for factor in term.factors) for term in formula.left]
    if len(terms) != 1 or terms[0] not in names:
        problem = (
            f"the response must be the log's reward, {' or '.join(map(repr, names))}, untransformed; got "
            f"{' + '.join(terms) or 'none'!r} (create another log for another outcome)"
        )
        raise ParameterError(_SUBJECT, [problem])
    if formula.names.intersection(names):
        problem = f"the response {terms[0]!r} is on both sides of the formula {text!r}"
        raise ParameterError(_SUBJECT, [problem])
    return formula, terms[0]


def _unknown_problem(log: AdaptiveLog, names: list[str], contexts: pd.DataFrame, arms: list[str]) -> str:
    known = f"the log's contexts are {', '.join(map(str, contexts.columns))}"
    columns = {str(name) for name in log.columns} | set(log.columns.values())
    other = [name for name in names if name in columns]
    end = f" ({', '.join(other)}: only contexts and the arm can be covariates)" if other else ""
    return (
        f"there is no covariate {', '.join(map(repr, names))}: "
        f"{known if len(contexts.columns) else 'the log has no contexts'}, and "
        f"{' or '.join(map(repr, arms))} is the arm{end}{did_you_mean(names[0], [*contexts.columns, *arms])}"
    )
