"""Errors of arms, ratios and contrasts from sums, as what the rounds of each batch add to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.arms.circumstances.from_sums import batch_weights
from adaptinf.inference.scores.score_forms import Forms, forms_of, scores_of, share_of
from adaptinf.sums.cells import Cells
from adaptinf.sums.further.products import Products, products_of

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import Question
    from adaptinf.inference.scores.outcome_models import Outcome


def arm_forms(
    question: Question, weights: str, outcome: Outcome | None, below: str | None = None
) -> tuple[Products, Forms]:
    """What rounds add to the errors of arm means, or of their ratios to those of a denominator.

    `outcome` is the outcome model of the fit, None with inverse weighting alone.
    """
    assert question.profile.sums is not None
    cells, codes = question.profile.sums.cells, question.codes
    covariates, penalty = ((), 1.0) if outcome is None else (outcome.covariates, outcome.penalty)
    products = _products(cells, (*(() if below is None else (below,)), *covariates))
    augmented = outcome is not None
    places = range(products.size - len(covariates), products.size)
    scores = scores_of(products, cells.rounds, places, penalty, augmented=augmented)
    _, share = share_of(batch_weights(question, weights), cells.rounds, augmented=augmented)
    basis = np.eye(products.size)
    if not augmented:  # whose scores rest on the origin
        basis[:, 0] += products.centres
    reward = np.broadcast_to(basis[1], (len(codes), products.size))
    if below is not None:
        origin = products.centres * augmented
        top, bottom = (
            forms_of(products, scores, codes, share, basis[place])[0] + origin[place] for place in (1, 2)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            reward = (reward - (top / bottom)[:, None] * basis[2]) / bottom[:, None]
    return products, forms_of(products, scores, codes, share, reward)[1]


def _products(cells: Cells, names: tuple[str, ...]) -> Products:
    """Sums of products of the reward with the columns of these names alone."""
    if names:
        assert cells.products is not None
        return cells.products.only(names)
    nobody = np.zeros((0, *cells.smallest.shape))
    return products_of((), (), cells.moments, {}, np.array([0.0, cells.centre]), nobody)
