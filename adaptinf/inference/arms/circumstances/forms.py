"""Errors of arms, ratios and contrasts from sums, as what the rounds of each batch add to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.arms.circumstances.from_sums import batch_weights
from adaptinf.inference.arms.circumstances.rounds import fixed_by
from adaptinf.inference.scores.joint import JOINT, earlier_inverse
from adaptinf.inference.scores.joint_sums import Batches, batch_levels
from adaptinf.inference.scores.score_forms import Forms, Scores, forms_of, scores_of, share_of
from adaptinf.sums.cells import Cells
from adaptinf.sums.further.products import Products, products_of

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import Question
    from adaptinf.inference.scores.means import ScoreMeans
    from adaptinf.inference.scores.outcome_models import Outcome
    from adaptinf.typing import FloatArray


def arm_forms(
    question: Question, weights: str, outcome: Outcome | None, below: str | None = None
) -> tuple[Products, Forms]:
    """What rounds add to the errors of arm means, or of their ratios to those of a denominator.

    `outcome` is the outcome model of the fit, None with inverse weighting alone.
    """
    assert question.profile.sums is not None
    cells, codes = question.profile.sums.cells, question.codes
    covariates = () if outcome is None else outcome.covariates
    products = _products(cells, (*(() if below is None else (below,)), *covariates))
    augmented = outcome is not None
    scores = _scores(products, cells, outcome)
    basis = np.eye(products.size)
    if not augmented:  # whose scores rest on the origin
        basis[:, 0] += products.centres
    joint = _batches(question, products, scores, augmented=augmented) if weights == JOINT else None
    _, share = share_of(batch_weights(question, weights), cells.rounds, augmented=augmented)

    def means(entry: FloatArray) -> FloatArray:
        if joint is not None:
            return joint.project(entry).levels
        return forms_of(products, scores, codes, share, entry)[0]

    reward = np.broadcast_to(basis[1], (len(codes), products.size))
    if below is not None:
        origin = products.centres * augmented
        top, bottom = (means(basis[place]) + origin[place] for place in (1, 2))
        with np.errstate(divide="ignore", invalid="ignore"):
            reward = (reward - (top / bottom)[:, None] * basis[2]) / bottom[:, None]
    if joint is None:
        return products, forms_of(products, scores, codes, share, reward)[1]
    parts = [forms for _, _, forms in joint.forms(reward)]
    own, gain = (np.concatenate([getattr(one, name) for one in parts]) for name in ("own", "gain"))
    return products, Forms(own, gain, parts[0].arms)


def joint_means_of_sums(question: Question, outcome: Outcome | None) -> ScoreMeans:
    """Levels of arms that share their weights, from sums; without an outcome model those of IPW."""
    assert question.profile.sums is not None
    cells, codes, augmented = question.profile.sums.cells, question.codes, outcome is not None
    cells = cells if augmented else cells.about(0.0)
    products = _products(cells, () if outcome is None else outcome.covariates)
    cells = cells.about(float(products.centres[1]))
    scores = _scores(products, cells, outcome)
    pulls = cells.pulls[:, codes].sum(axis=0)
    successes = cells.moments[0, 1][:, codes].sum(axis=0) + cells.centre * pulls
    batches = _batches(question, products, scores, augmented=augmented)
    return batch_levels(cells, batches, (pulls, successes))


def _scores(products: Products, cells: Cells, outcome: Outcome | None) -> Scores:
    """Scores by the outcome model of the fit, or of inverse weighting alone."""
    covariates, penalty = ((), 1.0) if outcome is None else (outcome.covariates, outcome.penalty)
    places = range(products.size - len(covariates), products.size)
    return scores_of(products, cells.rounds, places, penalty, augmented=outcome is not None)


def _batches(question: Question, products: Products, scores: Scores, *, augmented: bool) -> Batches:
    """The batches with the propensities that fix the weights of pairs."""
    profile, codes = question.profile, question.codes
    assert profile.sums is not None
    cells = profile.sums.cells
    possible = cells.possible[:, codes]
    mean = cells.inverse[:, codes] / cells.rounds[:, None]
    if fixed_by(question) == "batch":
        mean = earlier_inverse(mean, possible, profile.sums.n_arms)
    if augmented and cells.rounds[0] == 1.0:
        possible = possible & (np.arange(len(possible)) > 0)[:, None]  # nothing is known of its one reward
    return Batches(products, scores, cells.rounds, np.where(possible, mean, np.inf), possible, codes)


def _products(cells: Cells, names: tuple[str, ...]) -> Products:
    """Sums of products of the reward with the columns of these names alone."""
    if names:
        assert cells.products is not None
        return cells.products.only(names)
    nobody = np.zeros((0, *cells.smallest.shape))
    return products_of((), (), cells.moments, {}, np.array([0.0, cells.centre]), nobody)
