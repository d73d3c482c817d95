"""Arm means from sums by batch and arm: the estimates, and what sums do not allow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.claims import first, said
from adaptinf.claims.data import outcome_models
from adaptinf.claims.data import sums as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms.data.data_facts import SumsFacts, SumsWeightsFacts
from adaptinf.inference.arms.data.weight_propensities import fixed_by
from adaptinf.inference.arms.question import Refused
from adaptinf.inference.distributions.event_sums import EventSums, event_sums_of_cells
from adaptinf.inference.scores.batch_sums import batch_score_means, lagged_weights, shared_means
from adaptinf.inference.scores.inverse import earlier_inverse
from adaptinf.inference.scores.joint_levels import JOINT
from adaptinf.inference.scores.joint_sums import Batches, batch_levels
from adaptinf.inference.scores.means import SampleMeans, ScoreMeans
from adaptinf.inference.scores.outcome_predictions import BATCH_MEAN, Covariates, Outcome, checked_penalty
from adaptinf.inference.scores.score_forms import Forms, Scores, forms_of, scores_of, share_of
from adaptinf.inference.scores.unit_sums import unit_score_means
from adaptinf.sums import NEEDS_ROWS
from adaptinf.sums.cells import Cells, shifted
from adaptinf.sums.covariate_products import Products, products_of
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import Asked, Choice, Question
    from adaptinf.inference.validity.profile import LogProfile


def refuse_rows() -> None:
    """Refuse options that need data by round, which sums do not contain."""
    raise InvalidForLog("keep_scores=True", NEEDS_ROWS, ["an AdaptiveLog of the rows"])


def outcome_of(question: Question, asked: Asked) -> Outcome:
    """The outcome model, which for sums must be means over earlier batches, with or without covariates."""
    if question.profile.repeated_units:
        return _fixed(question, asked)
    if isinstance(asked.outcome, Covariates):
        names, penalty = asked.outcome.names, checked_penalty(asked.subject, asked.ridge)
        note = outcome_models.BATCH_RIDGE(names=", ".join(names), penalty=penalty)
        return Outcome(BATCH_MEAN, note, covariates=names, penalty=penalty)
    if asked.ridge is not None or not (asked.outcome is None or _named(asked)):
        raise InvalidForLog(
            "an outcome model other than the mean over earlier batches",
            NEEDS_ROWS,
            [f"outcome={BATCH_MEAN!r}, their default", "an AdaptiveLog of the rows"],
        )
    return Outcome(BATCH_MEAN, outcome_models.BATCH_MEAN())


def _fixed(question: Question, asked: Asked) -> Outcome:
    """The centre of the sums as prediction: it was fixed before the trial, so no unit's rewards affect it."""
    refuse_units(asked)
    if asked.ridge is not None or asked.outcome is not None:
        raise InvalidForLog("a user-supplied outcome model", NEEDS_ROWS, ["an AdaptiveLog of the rows"])
    assert question.profile.sums is not None
    centre = question.profile.sums.cells.centre
    return Outcome("centre", claims.CENTRE(centre=centre))


def _named(asked: Asked) -> bool:
    if isinstance(asked.outcome, Covariates):
        return asked.outcome.by_batch
    return isinstance(asked.outcome, str) and asked.outcome == BATCH_MEAN


def refuse_units(asked: Asked) -> None:
    """Refuse means over earlier batches, which would include a unit's own earlier rewards."""
    if _named(asked):
        raise Refused(
            f"outcome={BATCH_MEAN!r}",
            "units have several rounds, and predictions from a unit's own earlier rewards bias its scores",
            first=("outcome='running-mean'",),
        )


def weights_refusal(profile: LogProfile, weights: str) -> str:
    """The reason why these weights cannot be computed from sums; empty if they can."""
    return first(claims.WEIGHTS_NEED, SumsWeightsFacts(profile, weights))


def estimates(question: Question, choice: Choice, model: Outcome | None) -> ScoreMeans:
    """Estimates of arm means, with the inputs of tests and tables; without an outcome model, by IPW."""
    sums = question.profile.sums
    assert sums is not None
    if sums.by_unit is not None and question.profile.repeated_units:
        return unit_score_means(sums.cells, sums.by_unit, question.codes, augmented=model is not None)
    weights = batch_weights(question, choice.weights or "uniform")
    if model is not None and model.covariates:
        from adaptinf.inference.scores.score_forms import line_score_means

        given = model.covariates, model.penalty
        return line_score_means(sums.cells, question.codes, weights, *given)
    means = batch_score_means(sums.cells, question.codes, weights, augmented=model is not None)
    return shared_means(sums.cells, question.codes, weights, means) if sums.shares else means


def events(question: Question, choice: Choice, model: Outcome | None) -> EventSums | None:
    """Sums of uncommon rewards from which means, or a difference, are computed; None if unavailable.

    The result is None if rewards do not take two values, or if units have several rounds.
    """
    profile, codes = question.profile, question.codes
    values, sums = profile.two_values, profile.sums
    if sums is None or values is None or profile.repeated_units:
        return None
    cells = sums.cells.about(0.0)
    moments = cells.moments[..., codes]
    chosen = moments[0, 0].any(axis=0)
    coefficient = np.zeros((len(cells.rounds), len(codes), len(codes)))
    if choice.weights == JOINT:
        there = np.flatnonzero(chosen)
        coefficient[:, there[:, None], there] = _joint_coefficients(question, model, codes[there])
    else:
        _, share = share_of(
            batch_weights(question, choice.weights or "uniform"), cells.rounds, augmented=model is not None
        )
        coefficient[:, range(len(codes)), range(len(codes))] = np.nan_to_num(share)
    if question.contrast:
        coefficient = coefficient[:, :1] - coefficient[:, 1:]
    return event_sums_of_cells(coefficient, moments, cells.smallest[:, codes], values)


def _joint_coefficients(question: Question, model: Outcome | None, codes: IntArray) -> FloatArray:
    """Coefficients of arms' scores in levels with shared weights; codes (k,), returns (B, k, k)."""
    assert question.profile.sums is not None
    products = _products(question.profile.sums.cells, () if model is None else model.covariates)
    scores = _scores(products, question.profile.sums.cells, model)
    some = replace(question, codes=codes)
    batches = _batches(some, products, scores, augmented=model is not None)
    reward = np.broadcast_to(np.eye(products.size)[1], (len(codes), products.size))
    return np.concatenate([matrix for _, matrix, _ in batches.forms(reward)])


def batch_weights(question: Question, kind: str) -> FloatArray:
    """Weights of batches, shape (B, k); 0 if the arm (for a contrast, either arm) could not be chosen."""
    assert question.profile.sums is not None
    cells, codes = question.profile.sums.cells, question.codes
    possible = cells.possible[:, codes]
    if question.contrast:
        possible = np.broadcast_to(possible.all(axis=1, keepdims=True), possible.shape)
    if kind == "sqrt":
        return np.asarray(np.sqrt(cells.smallest[:, codes]) * possible)
    if kind != "combined":
        return possible.astype(np.float64)
    both, inverse = np.asarray(possible.all(axis=1)), cells.inverse[:, codes]
    if fixed_by(question) == "batch":
        one = lagged_weights(inverse, cells.rounds, both)
    else:
        # The variance of a contrast's score is proportional to the sum of 1 / e over both arms, of which sums
        # show the batch's mean.
        one = np.sqrt(cells.rounds / inverse.sum(axis=1)) * both
    return np.repeat(one[:, None], len(codes), axis=1)


def sample_means_of(cells: Cells) -> SampleMeans:
    """Unweighted means of all arms, with arrays of shape (K,)."""
    total = cells.moments[0].sum(axis=1, keepdims=True)
    count = total[0, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        above = total[1, 0] / count
        inside = shifted(total, -above[None, :])[2, 0]
        inside = np.where(inside > 1e-14 * total[2, 0], inside, 0.0)
        variance = np.where(count > 1.0, inside / (count - 1.0), np.nan)
        return SampleMeans(count, above, np.sqrt(variance / count), cells.centre)


def cell_means(cells: Cells) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Counts, means and sums of squared residuals of each arm in each batch, shapes (B, K)."""
    count = cells.pulls
    above = cells.moments[0, 1] / np.where(count > 0.0, count, np.nan)
    inside = shifted(cells.moments[0], -np.nan_to_num(above))[2]
    # If all rewards are equal, their sum of squares about the mean is only rounding error.
    inside = np.where(inside > 1e-14 * cells.moments[0, 2], inside, 0.0)
    return count, above + cells.centre, inside


def read_from(profile: LogProfile) -> str:
    """A sentence on the rows that were summed; empty for a log of rows."""
    read = profile.read_facts()
    return claims.READ(**read) if read else ""


def notes(question: Question) -> list[str]:
    """Assumptions that an estimate from sums makes, but an estimate from rows does not."""
    assert question.profile.sums is not None
    return said(claims.FIT, SumsFacts(question, question.profile.sums), "note")


def cautions(question: Question) -> list[str]:
    """Reasons why results from sums may be less reliable than their label suggests."""
    assert question.profile.sums is not None
    return said(claims.FIT, SumsFacts(question, question.profile.sums), "caution")


def arm_forms(
    question: Question, weights: str, outcome: Outcome | None, below: str | None = None
) -> tuple[Products, Forms]:
    """The rounds' contributions to the errors of arm means or, with a denominator, of ratios of means.

    `outcome` is the outcome model of the fit, or None for inverse weighting alone.
    """
    assert question.profile.sums is not None
    cells, codes = question.profile.sums.cells, question.codes
    covariates = () if outcome is None else outcome.covariates
    products = _products(cells, (*(() if below is None else (below,)), *covariates))
    augmented = outcome is not None
    scores = _scores(products, cells, outcome)
    basis = np.eye(products.size)
    # Without an outcome model, scores use the rewards themselves and not deviations from the centre, so
    # centres are added back.
    if not augmented:
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
    """Arm means with shared weights, from sums; without an outcome model, by IPW."""
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
    """Scores with the outcome model of the fit, or by inverse weighting alone."""
    covariates, penalty = ((), 1.0) if outcome is None else (outcome.covariates, outcome.penalty)
    places = range(products.size - len(covariates), products.size)
    return scores_of(products, cells.rounds, places, penalty, augmented=outcome is not None)


def _batches(question: Question, products: Products, scores: Scores, *, augmented: bool) -> Batches:
    """The batches, with the propensities that determine the weights of pairs of arms."""
    profile, codes = question.profile, question.codes
    assert profile.sums is not None
    cells = profile.sums.cells
    possible = cells.possible[:, codes]
    mean = cells.inverse[:, codes] / cells.rounds[:, None]
    if fixed_by(question) == "batch":
        mean = earlier_inverse(mean, possible, profile.sums.n_arms)
    if augmented and cells.rounds[0] == 1.0:
        # A first batch of one round has no earlier reward that could predict its own.
        possible = possible & (np.arange(len(possible)) > 0)[:, None]
    return Batches(products, scores, cells.rounds, np.where(possible, mean, np.inf), possible, codes)


def _products(cells: Cells, names: tuple[str, ...]) -> Products:
    """Sums of products of the reward and the named columns only."""
    if names:
        assert cells.products is not None
        return cells.products.only(names)
    nobody = np.zeros((0, *cells.smallest.shape))
    return products_of((), (), cells.moments, {}, np.array([0.0, cells.centre]), nobody)
