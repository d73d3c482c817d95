"""Ratio metrics, such as revenue per order: an arm's mean reward over its mean of another outcome.

Both means use the same estimator and the same weights. By the delta method, the error of their ratio R =
mean(y) / mean(z) is that of the mean of the linearised rewards R + (y - R z) / mean(z). The estimator is
therefore applied to the linearised rewards, and all results for means of rewards, including those on the
distributions of errors, also hold for ratios. If all denominators are 1, the linearised rewards are the
rewards themselves. For inverse weighting, errors are computed from the scores of both columns.

References
----------
Deng, Knoblich, Lu (2018), "Applying the delta method in metric analytics: a practical guide with novel
ideas".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.claims.data import ratios as claims
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms.data.arms_of_sums import arm_forms
from adaptinf.inference.inputs.arguments import by_round
from adaptinf.inference.scores.means import SampleMeans, standardised
from adaptinf.inference.scores.outcome_predictions import Covariates
from adaptinf.inference.scores.score_forms import covariance_of, cubes_of
from adaptinf.inference.validity.methods import Verdict
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.inference.validity.sums_profile import SumsProfile
from adaptinf.parameters import number_array, refuse
from adaptinf.sums import Sums
from adaptinf.sums.cells import Cells
from adaptinf.sums.covariate_products import POWERS, Products, denominator_problems, transformed
from adaptinf.typing import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import ArmFit, Asked, Question
    from adaptinf.inference.arms.record import ArmMethod
    from adaptinf.log import AdaptiveLog


FEWEST_ROUNDS = 20
"""Smallest number of rounds with a positive denominator for which an arm has a ratio."""
FEWEST_ERRORS = 3.0
"""Smallest distance of the mean denominator from 0, in standard errors, for which an arm has a ratio."""
CLOSE = 10.0
"""Distance of the mean denominator from 0, in standard errors, below which a caution is given."""
_ROUNDING = 1e-13
"""Relative size below which a residual is regarded as rounding error."""
_CONSTANT = 1e-14
"""Variance of rewards, relative to their mean square, below which they are treated as constant."""


Rows = Mapping[str, FloatArray]
"""Scores, weights and contributions to errors; each has shape (T, k), or (units, k)."""


@dataclass(frozen=True, slots=True, eq=False)
class Ratio:
    """Ratios and mean denominators of k arms, shape (k,), and the scores of numerators and denominators."""

    value: FloatArray
    bottom: FloatArray
    rows: Callable[[], tuple[Rows, Rows]]
    """Computed on request; not available for sums."""


@dataclass(frozen=True, slots=True, eq=False)
class SummedDenominator:
    """A denominator from sums: an additional column, by whose mean the mean reward is divided."""

    name: str

    def refuse_unknown(self, question: Question, covariates: Covariates) -> None:
        """Refuse covariates for which the sums have no products with the denominator."""
        products = _products(question)
        places = [products.names.index(name) + 2 for name in covariates.names]
        sums = products.table[0, 0, self._place(question)][places]
        known = [not np.isnan(one).any() for one in sums]
        lacking = [name for name, one in zip(covariates.names, known, strict=True) if not one]
        if lacking:
            raise InvalidForLog(
                "denominator= with covariate=",
                f"the sums do not contain products of {self.name!r} with {', '.join(map(repr, lacking))}",
                ["aggregate or Sums.of_log, which compute them", "one without the other"],
            )

    def under(self, question: Question) -> Question:
        """The question with denominators instead of rewards."""
        sums, place = _sums(question), self._place(question)
        products = _products(question)
        change = np.eye(products.size)
        change[1] = change[place]
        cells = _with_reward(sums.cells, change[..., None, None], products.centres[place])
        return replace(question, profile=profile_of(_of_cells(sums, cells)))

    def linear(self, question: Question, ratio: FloatArray, bottom: FloatArray) -> Question:
        """The question with linearised rewards R + (y - R z) / mean(z); ratio and bottom have shape (k,)."""
        sums, place, codes = _sums(question), self._place(question), question.codes
        cells, products = sums.cells, _products(question)
        whole = products.about(np.zeros(products.size)).table[0, :, 0, 0].sum(axis=(1, 2))
        ratios = np.full(sums.n_arms, whole[1] / whole[place])
        levels = np.full(sums.n_arms, whole[place] / whole[0])
        known = np.isfinite(ratio)
        ratios[codes[known]], levels[codes[known]] = ratio[known], bottom[known]
        centre = float(cells.pulls.sum(axis=0) @ ratios / cells.rounds.sum())
        change = np.repeat(np.eye(products.size)[..., None, None], sums.n_arms, axis=3)
        change[1, 1, 0], change[1, place, 0] = 1.0 / levels, -ratios / levels
        # Sums are of columns less their centres, so y - R z lacks the centre of y less R times the centre of
        # z.
        origin = products.centres[1] - ratios * products.centres[place]
        change[1, 0, 0] = ratios - centre + origin / levels
        found = _of_cells(sums, _with_reward(cells, change, centre))
        return replace(question, profile=SummedRatioProfile(found, question.profile))

    def with_errors(self, question: Question, fit: ArmFit, ratio: Ratio) -> ArmFit:
        """The fit to linearised rewards, with errors computed from the scores of both columns."""
        if _sums(question).shares:
            return fit
        products, forms = arm_forms(question, str(fit.choice.weights), fit.outcome, self.name)
        spread = covariance_of(products, forms)
        varies = np.diag(fit.covariance) != 0.0
        # Variances that the fit of linearised rewards leaves unknown, such as those of arms with few events,
        # stay unknown.
        covariance = np.where(np.outer(varies, varies), spread, 0.0) + 0.0 * fit.covariance
        skewness = standardised(cubes_of(products, forms), np.diag(spread))
        return replace(fit, covariance=covariance, skewness=skewness)

    def reward_name(self, log: AdaptiveLog) -> str:
        """What to call the rewards, whose column name the sums do not contain."""
        return "reward"

    def positive(self, question: Question) -> FloatArray:
        """Lower bound on each arm's number of rounds with a positive denominator, shape (k,).

        If these rounds were not counted, there are at least sum(z)^2 / sum(z^2) of them.
        """
        products = _products(question)
        place = self._place(question)
        table = products.about(np.zeros(products.size)).table[0]
        first, squares = table[place, 0, 0].sum(axis=0), table[place, place, 0].sum(axis=0)
        # By the Cauchy-Schwarz inequality, (sum z)^2 <= m sum z^2 for m positive values z. The last factor
        # allows for rounding error.
        least = np.floor(first**2 / np.where(squares > 0.0, squares, 1.0) * (1.0 + 1e-9))
        counted = products.positive[place - 2].sum(axis=0)
        return np.asarray(np.where(np.isnan(counted), least, counted)[question.codes], dtype=np.float64)

    def _place(self, question: Question) -> int:
        return _products(question).names.index(self.name) + 2


class SummedRatioProfile(SumsProfile):
    """Facts for sums of linearised rewards, which count as rare if the original rewards are rare."""

    def __init__(self, sums: Sums, own: LogProfile) -> None:
        super().__init__(sums)
        self.own = own

    @cached_property
    def uncommon(self) -> FloatArray:
        """Outcomes of each arm other than its most common one, for raw or linearised rewards; (K,)."""
        found = super().uncommon
        squares = self.own.pooled_std**2 + self.own.pooled_mean**2
        if self.own.pooled_std**2 <= _CONSTANT * squares:
            return found
        return np.minimum(found, self.own.uncommon)


def summed_denominator(subject: str, sums: Sums, given: Any) -> SummedDenominator:
    """The denominator with this name; refused if the sums lack its products with rewards."""
    if not isinstance(given, str):
        problem = f"denominator must name a column with sums, got {type(given).__name__}"
        raise ParameterError(subject, [problem])
    if given not in sums.denominators:
        raise InvalidForLog(
            f"{subject}(denominator=)",
            f"the sums do not contain products of rewards with {given!r}",
            [
                *(f"denominator={name!r}" for name in sums.denominators),
                "denominator= of aggregate, Sums or Sums.of_log",
                "an AdaptiveLog of the rows",
            ],
        )
    return SummedDenominator(given)


def _sums(question: Question) -> Sums:
    assert question.profile.sums is not None
    return question.profile.sums


def _products(question: Question) -> Products:
    """Sums of products of rewards with additional columns, which exist whenever there is a denominator."""
    products = _sums(question).cells.products
    assert products is not None
    return products


def _of_cells(sums: Sums, cells: Cells) -> Sums:
    """The sums with new rewards, without stored facts that depend on the old rewards."""
    other = copy(sums)
    other.cells, other.reward_range, other.kept = cells, None, {}
    return other


def _with_reward(cells: Cells, change: FloatArray, centre: float) -> Cells:
    """Cells in which rewards are replaced by linear combinations of v, minus a centre.

    `change` has shape (D, D, 1, K or 1), and its row 1 contains the coefficients.
    """
    products = cells.products
    assert products is not None
    table = transformed(products.table, change)
    moments = np.full_like(cells.moments, np.nan)
    for degree in range(moments.shape[1]):
        first, second, third = (int(place < degree) for place in range(3))
        moments[:POWERS, degree] = table[:, first, second, third]
    moments[POWERS, 0] = cells.moments[POWERS, 0]
    centres = products.centres.copy()
    centres[1] = centre
    return replace(
        cells,
        moments=moments,
        centre=float(centre),
        nonzero=np.full_like(cells.nonzero, np.nan),
        products=replace(products, table=table, centres=centres),
    )


@dataclass(frozen=True, slots=True, eq=False)
class RoundsDenominator:
    """A denominator with a value for each round; values has shape (T,)."""

    name: str
    values: FloatArray

    def refuse_unknown(self, question: Question, covariates: Covariates) -> None:
        """Refuse no covariates, because all products can be computed from rows."""

    def with_errors(self, question: Question, fit: ArmFit, ratio: Ratio) -> ArmFit:
        """The fit to linearised rewards, with errors computed from the scores of both columns."""
        return _by_scores(fit, ratio)

    def reward_name(self, log: AdaptiveLog) -> str:
        """The user's name for the column of rewards."""
        return next((str(name) for name, canonical in log.columns.items() if canonical == "reward"), "reward")

    def under(self, question: Question) -> Question:
        """The question with denominators instead of rewards."""
        return replace(question, profile=profile_of(with_rewards(question.profile.log, self.values)))

    def linear(self, question: Question, ratio: FloatArray, bottom: FloatArray) -> Question:
        """The question with linearised rewards; ratio and bottom have shape (k,)."""
        log = question.profile.log
        linear = linearised(log, self.values, ratio, bottom, question.codes)
        return replace(question, profile=RatioProfile(with_rewards(log, linear), question.profile))

    def positive(self, question: Question) -> FloatArray:
        """Each arm's number of rounds with a positive denominator, shape (k,)."""
        log = question.profile.log
        count = np.bincount(log.arrays.action[self.values > 0.0], minlength=log.n_arms)
        return np.asarray(count[question.codes], dtype=np.float64)


Denominator = RoundsDenominator | SummedDenominator
"""The column by whose mean the mean reward is divided."""


class RatioProfile(LogProfile):
    """Facts for a log with linearised rewards, which count as rare if the log's own rewards are rare."""

    def __init__(self, log: AdaptiveLog, own: LogProfile) -> None:
        super().__init__(log)
        self.own = own

    @cached_property
    def uncommon(self) -> FloatArray:
        """Outcomes of each arm other than its most common one, for raw or linearised rewards; (K,)."""
        found = super().uncommon
        return found if np.ptp(self.own.rewards) == 0.0 else np.minimum(found, self.own.uncommon)


def read_denominator(
    subject: str, log: AdaptiveLog | Sums, given: Any, keep: BoolArray | None = None
) -> Denominator:
    """The denominator of a ratio metric, from sums or by round.

    `given` is the name of a column or an array of shape (T,), where T is the number of all rounds of the log;
    `keep`, also with shape (T,), marks the rounds that are used.
    """
    if isinstance(log, Sums):
        return summed_denominator(subject, log, given)
    return denominator_by_round(subject, log, given, keep)


def denominator_by_round(
    subject: str, log: AdaptiveLog, given: Any, keep: BoolArray | None = None
) -> RoundsDenominator:
    """The values of the denominator by round; the arguments are those of `read_denominator`."""
    if log.arrays.observed is not None:
        raise InvalidForLog(
            f"{subject}(denominator=)",
            "rewards are missing",
            ["AdaptiveLog.filled, which replaces missing rewards with a number"],
        )
    name = given if isinstance(given, str) else str(getattr(given, "name", None) or "the denominator")
    try:
        column = log.column(given) if isinstance(given, str) else given
    except ParameterError as error:
        raise ParameterError(subject, [f"denominator: {problem}" for problem in error.problems]) from None
    read, problems = by_round("denominator", column, pd.RangeIndex(log.n_rounds))
    values = number_array(read)
    refuse(subject, problems + _problems(values, log.n_rounds))
    assert values is not None
    return RoundsDenominator(name, values if keep is None else values[keep])


def _problems(values: FloatArray | None, n_rounds: int) -> list[str]:
    """Problems with a column of denominators."""
    if values is None:
        return ["denominator must contain numbers, one per round, or name a column of them"]
    if values.shape != (n_rounds,):
        return [f"denominator must have one entry per round, shape ({n_rounds},), got shape {values.shape}"]
    return denominator_problems("denominator", values)


def with_rewards(
    log: AdaptiveLog, reward: FloatArray, reward_range: tuple[float, float] | None = None
) -> AdaptiveLog:
    """The log with other rewards, without stored facts that depend on the old ones; reward (T,)."""
    other = copy(log)
    other.arrays = replace(log.arrays, reward=reward)
    other.reward_range, other.kept, other._frame = reward_range, {}, None
    return other


def ratio_question(question: Question, below: RoundsDenominator) -> Question:
    """The question with contributions to the overall ratio, which ignores arms, in place of rewards."""
    log, none = question.profile.log, np.full(len(question.codes), np.nan)
    ratio = log.arrays.reward.sum() / below.values.sum()
    added = linearised(log, below.values, none, none, question.codes) - ratio
    return replace(question, profile=RatioProfile(with_rewards(log, added), question.profile))


def ratio_verdict(verdict: Verdict, *, contrast_only: bool) -> Verdict:
    """The verdict on a method for ratios, based on its verdict for means of linearised rewards."""
    if not contrast_only:
        return verdict
    return Verdict(verdict.name, "not valid", verdict.rank, verdict.arguments, claims.DIFFERENCES_ALONE())


def ratio_fit(
    question: Question, method: ArmMethod, fit: ArmFit, asked: Asked, below: Denominator
) -> tuple[Question, ArmFit]:
    """The fit to the rewards converted to ratios of means, and the question with linearised rewards."""
    _check(method, asked)
    if isinstance(asked.outcome, Covariates):
        below.refuse_unknown(question, asked.outcome)
    under = below.under(question)
    bottom = method.fit(under, fit.choice, asked)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = fit.estimate / bottom.estimate
    own = below.linear(question, ratio, bottom.estimate)
    found: ArmFit = method.fit(own, fit.choice, asked)
    if fit.choice.weights is not None:
        rows = Ratio(ratio, bottom.estimate, lambda: (method.rows(question, fit), method.rows(under, bottom)))
        found = below.with_errors(question, found, rows)
    refused = without_ratio(question, bottom, below)
    hidden = np.array([np.nan if label in refused else 0.0 for label in fit.labels])
    sample = None
    if found.sample is not None:
        sample = SampleMeans(found.sample.count, ratio + hidden, found.sample.std_error + hidden)
    return own, replace(
        found,
        estimate=ratio + hidden,
        above=None,
        covariance=found.covariance + hidden[:, None] + hidden[None, :],
        sample=sample,
        told=(_note(question.profile, below, bottom),),
        warned=(*refused.values(), *rather_near_zero(bottom, below, refused)),
    )


def linearised(
    log: AdaptiveLog, below: FloatArray, ratio: FloatArray, bottom: FloatArray, codes: IntArray
) -> FloatArray:
    """Rewards R + (y - R z) / mean(z), each with the ratio and the mean denominator of its own arm.

    Shapes: below (T,), ratio, bottom, codes (k,); returns (T,). For arms that have no ratio, or were not
    requested, the ratio of all rounds is used.
    """
    reward, action = log.arrays.reward, log.arrays.action
    overall, level = reward.sum() / below.sum(), below.mean()
    ratios, levels = np.full(log.n_arms, overall), np.full(log.n_arms, level)
    known = np.isfinite(ratio)
    ratios[codes[known]], levels[codes[known]] = ratio[known], bottom[known]
    expected = ratios[action] * below
    residual = reward - expected
    # Rewards that are proportional to their denominators have no error: what remains of them is rounding
    # error.
    residual[np.abs(residual) <= _ROUNDING * (np.abs(reward) + np.abs(expected))] = 0.0
    return np.asarray(ratios[action] + residual / levels[action], dtype=np.float64)


def _by_scores(fit: ArmFit, ratio: Ratio) -> ArmFit:
    """The fit to linearised rewards, with errors computed from the scores of both columns."""
    top, under = ratio.rows()
    with np.errstate(divide="ignore", invalid="ignore"):
        kept = {
            name: (top[name] - ratio.value * under[name]) / ratio.bottom for name in top if name != "weights"
        }
    kept["scores"] = ratio.value + kept["scores"]
    parts = kept.get("influence_by_unit", kept["influence"])
    varies = np.diag(fit.covariance) != 0.0
    # Variances that the fit of linearised rewards leaves unknown, such as those of arms with few events, stay
    # unknown.
    covariance = np.where(np.outer(varies, varies), parts.T @ parts, 0.0) + 0.0 * fit.covariance
    cubes = np.einsum("tk,tk,tk->k", *(3 * [kept["influence"]]))
    squares = np.einsum("tk,tk->k", kept["influence"], kept["influence"])
    skewness = standardised(cubes, squares)
    weights = {name: top[name] for name in ("weights",) if name in top}
    return replace(fit, covariance=covariance, skewness=skewness, kept={**kept, **weights})


def _check(method: ArmMethod, asked: Asked) -> None:
    """Refuse methods that do not estimate arm means, and outcome models that do not predict denominators."""
    if method.contrast_only:
        raise InvalidForLog(
            f"denominator= with {method.name}",
            claims.DIFFERENCES_ALONE(),
            ["aipw, for a log with propensities", "alee"],
        )
    if asked.outcome is not None and not isinstance(asked.outcome, (str, Covariates)):
        problem = (
            "outcome must be the name of an outcome model if denominator= is given: predictions of rewards "
            "do not apply to denominators"
        )
        raise ParameterError(asked.subject, [problem])


def without_ratio(question: Question, bottom: ArmFit, below: Denominator) -> dict[str, str]:
    """The arms that have no ratio, with the reasons."""
    found: dict[str, str] = {}
    each = zip(bottom.labels, below.positive(question), bottom.estimate, bottom.std_error, strict=True)
    for label, n, mean, error in each:
        if n < FEWEST_ROUNDS:
            found[label] = claims.FEW_ROUNDS(arm=label, below=below.name, n=n, fewest=FEWEST_ROUNDS)
        elif not mean >= FEWEST_ERRORS * error and np.isfinite(error):
            how = {"errors": mean / error, "fewest": FEWEST_ERRORS}
            found[label] = claims.NEAR_ZERO(arm=label, below=below.name, **how)
    return found


def rather_near_zero(bottom: ArmFit, below: Denominator, refused: Mapping[str, str]) -> list[str]:
    """Cautions about arms whose mean denominator is close to 0."""
    return [
        claims.RATHER_NEAR_ZERO(arm=label, below=below.name, errors=mean / error, enough=CLOSE)
        for label, mean, error in zip(bottom.labels, bottom.estimate, bottom.std_error, strict=True)
        if mean < CLOSE * error and label not in refused
    ]


def _note(profile: LogProfile, below: Denominator, bottom: ArmFit) -> str:
    """A note that describes the estimand and its denominator."""
    means = ", ".join(
        f"{label} {mean:.4g} ({error:.2g})"
        for label, mean, error in zip(bottom.labels[:8], bottom.estimate, bottom.std_error, strict=False)
    )
    return claims.ESTIMATED(reward=below.reward_name(profile.log), below=below.name, means=means)
