"""Arms from sums by batch and arm: their estimates, and what sums cannot tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.claims import outcome_models
from adaptinf.claims.rare_outcomes import SKEWNESS_UNKNOWN
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms.circumstances.rounds import fixed_by
from adaptinf.inference.arms.question import Refused
from adaptinf.inference.scores.batch_sums import batch_score_means, lagged_weights, shared_means
from adaptinf.inference.scores.by_unit.unit_sums import unit_score_means
from adaptinf.inference.scores.means import SampleMeans, ScoreMeans
from adaptinf.inference.scores.outcome_models import (
    BATCH_MEAN,
    Covariates,
    Outcome,
    checked_penalty,
)
from adaptinf.inference.validity.sums_profile import SumsProfile
from adaptinf.sums import NEEDS_ROWS
from adaptinf.sums.cells import Cells, shifted
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import Asked, Choice, Question
    from adaptinf.inference.validity.profile import LogProfile
    from adaptinf.sums import Sums

_BY_ROUND = "they change from round to round, and sums by batch need one weight per batch"
_MOVING = (
    "propensities move within batches, or may as batches are of single rounds, and sums by batch need one "
    "weight a batch"
)
_BY_UNIT = "units have several rounds, and their totals are of rounds with equal weights"
_OF_SHARES = (
    "propensities are the shares of each batch: weights made from them would depend on which arms its rounds "
    "happened to get"
)
_FEW_IN_A_CELL = 10
"""Rounds of an arm in a batch below which its share is a poor propensity."""


def refuse_rows() -> None:
    """Refuse what is kept by round, of which sums have none."""
    raise InvalidForLog("keep_scores=True", NEEDS_ROWS, ["an AdaptiveLog of the rows"])


def outcome_of(question: Question, asked: Asked) -> Outcome:
    """The outcome models that sums allow: means over earlier batches, with covariates or without."""
    if question.profile.repeated_units:
        return _fixed(question, asked)
    if isinstance(asked.outcome, Covariates):
        names, penalty = asked.outcome.names, checked_penalty(asked.subject, asked.ridge)
        note = outcome_models.BATCH_RIDGE(names=", ".join(names), penalty=penalty)
        return Outcome(BATCH_MEAN, note, covariates=names, penalty=penalty)
    if asked.ridge is not None or not (asked.outcome is None or _named(asked)):
        ways = [f"outcome={BATCH_MEAN!r}, their default", "an AdaptiveLog of the rows"]
        raise InvalidForLog("an outcome model other than the mean over earlier batches", NEEDS_ROWS, ways)
    return Outcome(BATCH_MEAN, outcome_models.BATCH_MEAN())


def _fixed(question: Question, asked: Asked) -> Outcome:
    """A prediction from before the rounds, which knows no unit's own rewards: the centre of the sums."""
    refuse_units(asked)
    if asked.ridge is not None or asked.outcome is not None:
        raise InvalidForLog("an outcome model of your own", NEEDS_ROWS, ["an AdaptiveLog of the rows"])
    assert question.profile.sums is not None
    centre = question.profile.sums.cells.centre
    return Outcome(
        "centre", f"Outcome model: {centre:.6g}, the centre of the sums, for all arms in all rounds."
    )


def _named(asked: Asked) -> bool:
    if isinstance(asked.outcome, Covariates):
        return asked.outcome.by_batch
    return isinstance(asked.outcome, str) and asked.outcome == BATCH_MEAN


def refuse_units(asked: Asked) -> None:
    """Refuse means over earlier batches where they would know a unit's own earlier rewards."""
    if _named(asked):
        reason = (
            "units have several rounds, and a prediction from a unit's own earlier rewards biases its score"
        )
        raise Refused(f"outcome={BATCH_MEAN!r}", reason, first=("outcome='running-mean'",))


def weights_refusal(profile: LogProfile, weights: str) -> str:
    """Why weights other than uniform ones cannot be had from sums; empty where they can."""
    assert profile.sums is not None
    if profile.repeated_units:
        return _BY_UNIT if weights != "uniform" else ""
    if weights == "two-point":
        return _BY_ROUND
    if profile.sums.shares:
        return _OF_SHARES
    moving = isinstance(profile, SumsProfile) and bool(np.any(profile.moving_batches))
    settled = bool(profile.fixed_before_contexts.all())
    return _MOVING if weights == "sqrt" and (moving or not settled) else ""


def estimates(question: Question, choice: Choice, model: Outcome | None) -> ScoreMeans:
    """Estimates of arm means, and what tests and tables need of them; without a model those of IPW."""
    sums = question.profile.sums
    assert sums is not None
    if sums.by_unit is not None and question.profile.repeated_units:
        return unit_score_means(sums.cells, sums.by_unit, question.codes, augmented=model is not None)
    weights = batch_weights(question, choice.weights or "uniform")
    if model is not None and model.covariates:
        from adaptinf.inference.scores.score_forms import line_score_means  # loads when it is needed

        given = model.covariates, model.penalty
        return line_score_means(sums.cells, question.codes, weights, *given)
    means = batch_score_means(sums.cells, question.codes, weights, augmented=model is not None)
    return shared_means(sums.cells, question.codes, means) if sums.shares else means


def batch_weights(question: Question, kind: str) -> FloatArray:
    """Weights of batches, 0 where an arm (one of the arms, for a contrast) could not be chosen; (B, k)."""
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
        one = np.sqrt(cells.rounds / inverse.sum(axis=1)) * both
    return np.repeat(one[:, None], len(codes), axis=1)


def sample_means_of(cells: Cells) -> SampleMeans:
    """Plain means of all arms; returns shapes (K,)."""
    total = cells.moments[0].sum(axis=1, keepdims=True)  # (4, 1, K)
    count = total[0, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        above = total[1, 0] / count
        inside = shifted(total, -above[None, :])[2, 0]
        inside = np.where(inside > 1e-14 * total[2, 0], inside, 0.0)
        variance = np.where(count > 1.0, inside / (count - 1.0), np.nan)
        return SampleMeans(count, above, np.sqrt(variance / count), cells.centre)


def cell_means(cells: Cells) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Counts, means and squared residuals of each arm in each batch, shapes (B, K)."""
    count = cells.pulls
    above = cells.moments[0, 1] / np.where(count > 0.0, count, np.nan)
    inside = shifted(cells.moments[0], -np.nan_to_num(above))[2]
    # Rewards that are all the same leave the rounding of their squares.
    inside = np.where(inside > 1e-14 * cells.moments[0, 2], inside, 0.0)
    return count, above + cells.centre, inside


def own_skewness(cells: Cells) -> FloatArray:
    """Sums of cubed residuals of each arm over those of squares to the power 3/2; returns (K,)."""
    total = cells.moments[0].sum(axis=1, keepdims=True)
    inside = shifted(total, -total[1] / np.maximum(total[0], 1.0))[:, 0]
    root = np.sqrt(np.where(inside[2] > 0.0, inside[2], np.inf))
    return np.asarray(inside[3] / root / root / root, dtype=np.float64)


def read_from(sums: Sums) -> str:
    """What was read, in a sentence."""
    by = " and ".join(["arm", *sums.group_names])
    return f"From sums of {sums.n_rounds:,} rounds in {sums.n_batches:,} batches, by {by}."


def notes(question: Question) -> list[str]:
    """What an estimate from sums rests on, beyond what one from rows does."""
    sums = question.profile.sums
    assert sums is not None
    found = [read_from(sums)]
    if sums.shares:
        found.append(
            "The sums have no propensities: the arms' shares of each batch stand in for them, as for arms "
            "that were drawn with equal probabilities for all rounds of a batch. Standard errors are given "
            "those shares, with a variance of the arm in each batch."
        )
    return found


def cautions(question: Question) -> list[str]:
    """Why numbers from sums may be worth less than their label says."""
    profile = question.profile
    if not isinstance(profile, SumsProfile):
        return []
    found: list[str] = [] if profile.knows_skewness else [SKEWNESS_UNKNOWN()]
    least = int(profile.cells.pulls[:, question.codes].min())
    if profile.sums.shares and least < _FEW_IN_A_CELL:
        found.append(
            f"a batch has {least} rounds of an arm, fewer than {_FEW_IN_A_CELL}: its share is a poor "
            "propensity, and intervals may be short"
        )
    return found
