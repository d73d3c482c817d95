"""Batched least squares (BOLS): a contrast that is asymptotically normal within each batch.

References
----------
Zhang, Janson, Murphy (2020), "Inference for batched bandits".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import special

from adaptinf.claims import Finding, said, under_table
from adaptinf.claims.arms import batched as claims
from adaptinf.inference.arms.arm_lengths import batched_length
from adaptinf.inference.arms.arm_order import ORDER
from adaptinf.inference.arms.data.arms_of_sums import cell_means
from adaptinf.inference.arms.facts.arm_facts import ArmFacts
from adaptinf.inference.arms.fit import arm_labels, independent_rounds
from adaptinf.inference.arms.question import Asked, Choice, Difference, Question, Refused
from adaptinf.inference.arms.record import ArmMethod
from adaptinf.inference.distributions.references import PartialReference, Reference
from adaptinf.inference.distributions.student_sums import NORMAL, BatchedReference
from adaptinf.inference.distributions.tails import log_student_tail, normal_quantile
from adaptinf.inference.validity.methods import Verdict
from adaptinf.inference.validity.profile import compared
from adaptinf.inference.validity.rare import rare_cautions, rare_notes, without_interval
from adaptinf.parameters import refuse
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.inference.results.hypotheses import WaldTest

_STRETCH = 2**18
MOVES = 5e-4
"""Differences are treated as varying if the p-value of either of two tests is below this threshold."""
_LEAST_PULLS, _LEAST_BATCHES = 10, 3


class ArmBatches(NamedTuple):
    """By batch and arm: numbers of rewards, means, and sums of squares about the means; shapes (B, K)."""

    counts: FloatArray
    means: FloatArray
    squares: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class BatchContrasts:
    """The difference between two arms in each batch; treated, control, difference and scale (B,)."""

    treated: FloatArray
    control: FloatArray
    difference: FloatArray
    scale: FloatArray

    @property
    def precision(self) -> FloatArray:
        """Inverse standard errors sqrt(N1 N0 / (N1 + N0)) / scale, shape (B,)."""
        total = np.maximum(self.treated + self.control, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.sqrt(self.treated * self.control / total) / self.scale

    @property
    def df(self) -> FloatArray:
        """Degrees of freedom N1 + N0 - 2, shape (B,)."""
        return self.treated + self.control - 2.0

    def only(self, keep: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> BatchContrasts:
        """The differences in the batches that are kept."""
        return BatchContrasts(self.treated[keep], self.control[keep], self.difference[keep], self.scale[keep])


def batch_contrasts(
    batch: IntArray, action: IntArray, reward: FloatArray, treatment: int, control: int
) -> BatchContrasts:
    """Differences between two arms in each batch; batch, action and reward have shape (T,)."""
    own = (action == treatment) | (action == control)
    treated, size = (action[own] == treatment).astype(np.int64), _batches(batch)
    return _of_pair(arm_batches(batch[own], treated, reward[own], 2, size), 1, 0)


def arm_batches(batch: IntArray, action: IntArray, reward: FloatArray, n_arms: int, size: int) -> ArmBatches:
    """Summaries of each arm's rewards in `size` batches; batch, action and reward have shape (T,)."""
    counts, squares = np.zeros((size, n_arms)), np.zeros((size, n_arms))
    means = np.full((size, n_arms), np.nan)
    shift = np.zeros(n_arms)
    shift[action[::-1]] = reward[::-1]  # an arm's first reward
    for part in _whole_batches(batch):
        first, stop = int(batch[part.start]), int(batch[part.stop - 1]) + 1
        place = (batch[part] - first) * n_arms + action[part]
        value = reward[part] - shift[action[part]]
        number = np.bincount(place, minlength=(stop - first) * n_arms)
        above = np.bincount(place, value, len(number)) / np.maximum(number, 1.0)
        value -= above[place]
        value *= value
        counts[first:stop] = number.reshape(-1, n_arms)
        means[first:stop] = np.where(counts[first:stop] > 0, shift + above.reshape(-1, n_arms), np.nan)
        squares[first:stop] = np.bincount(place, value, len(number)).reshape(-1, n_arms)
    return ArmBatches(counts, means, squares)


def _of_pair(found: ArmBatches, treatment: int, control: int) -> BatchContrasts:
    return _contrasts(*(part[:, [treatment, control]].T for part in found))


def _batches(batch: IntArray) -> int:
    """Number of batches; batch has shape (T,)."""
    return int(batch[-1]) + 1 if len(batch) else 0


def _whole_batches(batch: IntArray) -> list[slice]:
    """Slices of consecutive whole batches, which are processed one at a time to save memory."""
    starts = np.unique(np.searchsorted(batch, batch[::_STRETCH]))
    return [slice(start, stop) for start, stop in pairwise((*starts.tolist(), len(batch)))]


def _contrasts(counts: FloatArray, means: FloatArray, squares: FloatArray) -> BatchContrasts:
    """Differences from counts, means and sums of squared residuals, treatment first; all shapes (2, B)."""
    freedom = counts.sum(axis=0) - 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.sqrt(np.where(freedom > 0.0, squares.sum(axis=0) / freedom, np.nan))
    return BatchContrasts(counts[0], counts[1], means[0] - means[1], scale)


def usable_batches(question: Question) -> tuple[BatchContrasts, str]:
    """Batches with a difference and a scale, and a text on the batches without (empty if there are none).

    Whether a batch lacks an arm is determined before its own rewards, but not before those of earlier
    batches. Under a design that abandons an arm after an extreme first batch, the number of usable batches
    depends on their statistics. A sum is not normal if the number of its terms depends on the terms: stopping
    when the first term is large can double the error rate. Adaptive logs with such batches are therefore
    refused.
    """
    independent_rounds("batched", question)
    found = _contrasts_of(question)
    keep = (found.treated > 0) & (found.control > 0) & (found.df > 0)
    missing = np.flatnonzero(~keep)
    if len(missing) == 0:
        return found, ""
    lacking = claims.LACKING(n=len(missing), batches=len(keep), which=_shown(missing))
    if not np.any(keep):
        raise Refused("batched", lacking)
    if question.profile.adaptive:
        raise Refused("batched", claims.BENT(lacking=lacking))
    return found.only(keep), lacking


def _contrasts_of(question: Question) -> BatchContrasts:
    """Differences in all batches; refused if propensities vary within a batch."""
    codes, sums = question.codes, question.profile.sums
    if sums is not None:
        counts, means, squares = (part[:, codes].T for part in cell_means(sums.cells))
        found = _contrasts(counts, means, squares)
    else:
        arrays = question.profile.log.arrays
        if arrays.batch is None:
            raise Refused("batched", claims.NO_BATCHES())
        columns, pair = (arrays.batch, arrays.action, arrays.reward), (int(codes[0]), int(codes[1]))
        n_arms, size = question.profile.log.n_arms, _batches(arrays.batch)
        if size * n_arms <= len(arrays.batch):
            every = question.profile.once(arm_batches, lambda: arm_batches(*columns, n_arms, size))
            found = _of_pair(every, *pair)
        else:  # of small batches a table of all arms may be larger than the log
            found = batch_contrasts(*columns, *pair)
    moved = np.flatnonzero(question.profile.moving_batches)
    if len(moved) and question.profile.knows_every_propensity:
        raise Refused("batched", claims.MOVE_WITHIN(n=len(moved), which=_shown(moved)))
    return found


def _shown(batches: IntArray) -> str:
    return ", ".join(map(str, batches[:10])) + ", ..." * (len(batches) > 10)


def batched_fit(found: BatchContrasts, test: str) -> tuple[float, float, BatchedReference]:
    """Estimate, standard error and reference distribution for a constant difference.

    With precisions c_b, the statistic for a difference d is sum c_b (D_b - d) / sqrt(B). Since it is linear
    in d, the interval is sum c_b D_b / sum c_b plus or minus a quantile times sqrt(B) / sum c_b.
    """
    precision = found.precision
    total = float(precision.sum())
    if not math.isfinite(total):
        return math.nan, math.nan, BatchedReference(math.nan, math.nan, None)
    estimate = float(precision @ found.difference) / total
    std_error = math.sqrt(len(precision)) / total
    df = None if test == "normal" or np.all(found.df > NORMAL) else found.df
    return estimate, std_error, BatchedReference(estimate, std_error, df)


def drifting_test(found: BatchContrasts, null: float, label: str) -> WaldTest:
    """Test that the difference equals the null in every batch, against any alternative."""
    from adaptinf.inference.distributions.tails import log_chi2_tail
    from adaptinf.inference.results.hypotheses import WaldTest

    # Squares of t statistics do not add up to a chi-squared variable, so each statistic is first replaced by
    # the normal quantile with the same tail probability.
    t = found.precision * (found.difference - null)
    log_tail = log_student_tail(np.abs(t), found.df)
    z = np.array([float(normal_quantile(float(x))) for x in log_tail])
    statistic, df = float(z @ z), len(z)
    return WaldTest(
        statistic,
        df,
        log_chi2_tail(statistic, df),
        (f"{label} = {null:g} in every batch",),
        (claims.DRIFTS(),),
    )


def moving_pvalue(found: BatchContrasts) -> float:
    """P-value for equal differences in all batches, by two tests; NaN if there are too few rounds.

    With precisions c_b and the mean D of the differences with weights c_b^2, the sum of (c_b (D_b - D))^2 is
    chi-squared; the terms c_b (D_b - D), which follow Student's t distributions, are first transformed to
    normality. The slope of D_b over the batches' times is normal with a variance that follows from the
    weights. The result is twice the smaller of the two p-values. Batches in which an arm has few rounds are
    not used.
    """
    kept = found.only(np.minimum(found.treated, found.control) >= _LEAST_PULLS)
    precision, df = kept.precision, kept.df
    if len(df) < _LEAST_BATCHES or not np.isfinite(precision).all():
        return math.nan
    # The squared precisions themselves might overflow, so they are taken relative to the largest.
    size = precision.max()
    # The weights are inverse variances, and Student's t has variance df / (df - 2).
    weight = (precision / size) ** 2 / (df / (df - 2.0))
    gap = kept.difference - float(weight @ kept.difference) / float(weight.sum())
    z = special.ndtri_exp(log_student_tail(precision * gap, df))
    time = np.arange(len(df)) - float(weight @ np.arange(len(df))) / float(weight.sum())
    slope = float((weight * time) @ (size * gap)) / math.sqrt(float((weight * time) @ time))
    varied, sloped = special.chdtrc(len(df) - 1.0, float(z @ z)), 2.0 * special.ndtr(-abs(slope))
    return min(1.0, 2.0 * float(min(varied, sloped)))


class BatchedRow(ArmFacts):
    """Facts for a row of `recommend`, based on the differences in the batches."""

    def __init__(self, question: Question, found: BatchContrasts) -> None:
        super().__init__(question)
        self._found = found

    @cached_property
    def difference_found(self) -> Finding | None:
        """Whether the data show that differences vary between batches; None if there are too few rounds."""
        p = moving_pvalue(self._found)
        if math.isnan(p):
            return None
        return Finding((claims.DIFFERENCE_MOVES(p=p),) if p < 2.0 * MOVES else ())


class BatchedFacts(BatchedRow):
    """Facts for a fit; pulls has shape (2,), and `lacking` is a text on the batches left out."""

    def __init__(
        self,
        question: Question,
        found: BatchContrasts,
        lacking: str,
        pulls: FloatArray,
        estimate: float,
        std_error: float,
        reference: BatchedReference,
    ) -> None:
        super().__init__(question, found)
        self._lacking, self._pulls, self._reference = lacking, pulls, reference
        self._estimate, self._std_error = estimate, std_error

    @property
    def left_out(self) -> dict[str, str]:
        """The batches without a difference or a scale that were left out, in a log that does not adapt."""
        if not self._lacking:
            return {}
        return {"lacking": self._lacking, "why": self.profile.why_not_adaptive}

    @property
    def is_exact(self) -> bool:
        """Whether the reference distribution uses the degrees of freedom of each batch."""
        return self._reference.df is not None

    @property
    def _uncommon(self) -> FloatArray:
        found: FloatArray = self.profile.uncommon[self.question.codes]
        return found

    @property
    def rare_notes(self) -> list[str]:
        """Reasons why there is no interval."""
        return rare_notes(arm_labels(self.question), self._uncommon) if self._std_error > 0.0 else []

    @property
    def rare_cautions(self) -> tuple[str, ...]:
        """Reasons why an interval may be too short."""
        skewness = compared(self.question).squared_skewness / np.maximum(self._pulls, 1.0)
        return rare_cautions(arm_labels(self.question), self._uncommon, skewness)

    @property
    def unvarying(self) -> bool:
        """Whether the rewards are constant, so that there is no estimate."""
        return math.isnan(self._estimate)


def _assess(question: Question) -> list[Verdict]:
    call = {"estimator": "batched"}
    try:
        found, _ = usable_batches(question)
    except Refused as refused:
        return [Verdict("batched", "not valid", ORDER["batched"], call, refused.reason)]
    assumes = tuple(said(claims.ASSUMES, BatchedRow(question, found)))
    # If shares moved although nothing adapted, sample means compare arms at different times; comparisons
    # within batches do not, so they come first.
    profile = question.profile
    first = not profile.adaptive and profile.shares_move and not profile.shares_move_in_batches
    place = ORDER["batched: shares moved" if first else "batched"]
    return [Verdict("batched", "asymptotic", place, call, claims.REASON(), assumes)]


def _settle(question: Question, asked: Asked) -> Choice:
    options = ("weights", "decay", "outcome", "ridge")
    problems = [
        f"{name} does not apply to batched least squares"
        for name in options
        if getattr(asked, name) is not None
    ]
    if asked.test in ("exact", "hall"):
        problems.append(f"test must be auto, normal or t for batched least squares, got {asked.test!r}")
    refuse(asked.subject, problems)
    return Choice("batched")


def _fit(question: Question, choice: Choice, asked: Asked) -> Difference:
    found, lacking = usable_batches(question)
    estimate, std_error, reference = batched_fit(found, asked.test)
    details = {
        "pulls_treatment": found.treated.sum(keepdims=True),
        "pulls_control": found.control.sum(keepdims=True),
        "batches": np.array([float(len(found.difference))]),
    }
    pulls = np.array([found.treated.sum(), found.control.sum()])
    facts = BatchedFacts(question, found, lacking, pulls, estimate, std_error, reference)
    notes, cautions = under_table(claims.FIT, facts)
    uncommon = question.profile.uncommon[question.codes]
    law: Reference = reference
    if np.any(without_interval(uncommon)) and std_error > 0.0:
        std_error, law = math.nan, PartialReference(reference, np.array([True]))
    return Difference(choice, estimate, std_error, law, details, tuple(notes), tuple(cautions))


BATCHED = ArmMethod(
    name="batched",
    assess=_assess,
    settle=_settle,
    fit=_fit,
    length=batched_length,
    contrast_only=True,
    takes_sums=True,
)
