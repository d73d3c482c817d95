"""Ratio metrics from sums: linearised rewards are linear in both columns, their sums in sums of products."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms.circumstances.forms import arm_forms
from adaptinf.inference.scores.means import standardised
from adaptinf.inference.scores.score_forms import covariance_of, cubes_of
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.inference.validity.sums_profile import SumsProfile
from adaptinf.sums import Sums
from adaptinf.sums.cells import Cells
from adaptinf.sums.further.products import POWERS, Products, transformed
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.arms.fit import ArmFit
    from adaptinf.inference.arms.question import Question
    from adaptinf.inference.scores.outcome_models import Covariates

_CONSTANT = 1e-14
"""Variance of rewards over their mean square below which they are all the same."""


@dataclass(frozen=True, slots=True, eq=False)
class SummedDenominator:
    """A further column of sums that the mean reward is divided by the mean of."""

    name: str

    def refuse_unknown(self, question: Question, covariates: Covariates) -> None:
        """Refuse covariates of which the sums have no products with the denominator."""
        products = _products(question)
        places = [products.names.index(name) + 2 for name in covariates.names]
        sums = products.table[0, 0, self._place(question)][places]
        known = [not np.isnan(one).any() for one in sums]
        lacking = [name for name, one in zip(covariates.names, known, strict=True) if not one]
        if lacking:
            raise InvalidForLog(
                "denominator= with covariate=",
                f"the sums have no products of {self.name!r} with {', '.join(map(repr, lacking))}",
                ["aggregate or Sums.of_log, which make them", "one without the other"],
            )

    def under(self, question: Question) -> Question:
        """The question with the denominators in the place of rewards."""
        sums, place = _sums(question), self._place(question)
        products = _products(question)
        change = np.eye(products.size)
        change[1] = change[place]
        cells = _with_reward(sums.cells, change[..., None, None], products.centres[place])
        return replace(question, profile=profile_of(_of_cells(sums, cells)))

    def linear(self, question: Question, ratio: FloatArray, bottom: FloatArray) -> Question:
        """The question with linearised rewards R + (y - R z) / mean(z); ratio, bottom (k,)."""
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
        origin = products.centres[1] - ratios * products.centres[place]
        change[1, 0, 0] = ratios - centre + origin / levels
        found = _of_cells(sums, _with_reward(cells, change, centre))
        return replace(question, profile=SummedRatioProfile(found, question.profile))

    def with_errors(self, question: Question, fit: ArmFit) -> ArmFit:
        """The fit of linearised rewards with errors by the scores of both columns."""
        if _sums(question).shares:
            return fit
        products, forms = arm_forms(question, str(fit.choice.weights), fit.outcome, self.name)
        spread = covariance_of(products, forms)
        varies = np.diag(fit.covariance) != 0.0
        # What the fit of linearised rewards does not know, such as errors of few events, stays unknown.
        covariance = np.where(np.outer(varies, varies), spread, 0.0) + 0.0 * fit.covariance
        skewness = standardised(cubes_of(products, forms), np.diag(spread))
        return replace(fit, covariance=covariance, skewness=skewness)

    def positive(self, question: Question) -> FloatArray:
        """Rounds of each arm whose denominator is above 0, at least; shape (k,).

        Where nobody counted them there are at least sum(z)^2 / sum(z^2).
        """
        products = _products(question)
        place = self._place(question)
        table = products.about(np.zeros(products.size)).table[0]
        first, squares = table[place, 0, 0].sum(axis=0), table[place, place, 0].sum(axis=0)
        least = np.floor(first**2 / np.where(squares > 0.0, squares, 1.0) * (1.0 + 1e-9))
        counted = products.positive[place - 2].sum(axis=0)
        return np.asarray(np.where(np.isnan(counted), least, counted)[question.codes], dtype=np.float64)

    def _place(self, question: Question) -> int:
        return _products(question).names.index(self.name) + 2


class SummedRatioProfile(SumsProfile):
    """The facts of sums of linearised rewards; outcomes are rare where those of the rewards are."""

    def __init__(self, sums: Sums, own: LogProfile) -> None:
        super().__init__(sums)
        self.own = own

    @cached_property
    def uncommon(self) -> FloatArray:
        """Number of each arm's outcomes other than its commonest, of rewards or linearised ones; (K,)."""
        found = super().uncommon
        squares = self.own.pooled_std**2 + self.own.pooled_mean**2
        if self.own.pooled_std**2 <= _CONSTANT * squares:
            return found
        return np.minimum(found, self.own.uncommon)


def summed_denominator(subject: str, sums: Sums, given: Any) -> SummedDenominator:
    """The denominator of a name, of which the sums have products with rewards."""
    if not isinstance(given, str):
        problem = f"denominator must name a column whose sums there are, got {type(given).__name__}"
        raise ParameterError(subject, [problem])
    if given not in sums.denominators:
        raise InvalidForLog(
            f"{subject}(denominator=)",
            f"the sums have no products of rewards with {given!r}",
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
    """Sums of products of rewards with further columns, which there are where a denominator is."""
    products = _sums(question).cells.products
    assert products is not None
    return products


def _of_cells(sums: Sums, cells: Cells) -> Sums:
    """The sums with other rewards, and nothing known of them but what follows from them."""
    other = copy(sums)
    other.cells, other.reward_range, other.kept = cells, None, {}
    return other


def _with_reward(cells: Cells, change: FloatArray, centre: float) -> Cells:
    """Cells with linear combinations of v in the place of rewards, less a centre.

    Shapes: change (D, D, 1, K or 1), whose row 1 holds the combination.
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
