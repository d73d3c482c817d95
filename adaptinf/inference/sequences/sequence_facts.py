"""Facts on which claims about one confidence sequence on one kind of scores, and about a fit, depend.

For a value with weights w, propensities e and means m of the arms' own rewards, the scores are w 1{A = k} (y
- m_k) / e + sum w_k m_k. Drift that is common to both arms of a contrast does not affect the contrast.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from adaptinf.claims import Finding, contexts, propensities, said
from adaptinf.claims.rare_outcomes import SHAPE_UNKNOWN, SKEWNESS_UNKNOWN
from adaptinf.inference.arms.data.arms_of_sums import read_from
from adaptinf.inference.arms.data.data_facts import dealt_rounds
from adaptinf.inference.arms.data.weight_propensities import changes_often
from adaptinf.inference.inputs.rounds import middles
from adaptinf.inference.scores.means import unevenness
from adaptinf.inference.sequences.common_rounds import common_rounds, within
from adaptinf.inference.sequences.sequence_records import Quantity, SequenceMethod, Settings
from adaptinf.inference.validity.constant_means import ConstantMeans
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.inference.validity.rare import rare_cautions
from adaptinf.inference.validity.stationarity import LEAST_ROUNDS, standardised, times, trend_of_values
from adaptinf.sums.cells import Cells, shifted
from adaptinf.texts import several
from adaptinf.typing import FloatArray

_SHOWN = 5


def value_trend(profile: LogProfile, quantity: Quantity) -> float:
    """Standardised slope of the value of a quantity in time; NaN if there is nothing to test."""
    if profile.repeated_units or profile.incomplete or not profile.knows_propensities:
        return math.nan
    profile, quantity = within(profile, quantity)
    if profile.sums is not None:
        return _of_sums(profile.sums.cells, quantity)
    arrays = profile.log.arrays
    assert arrays.propensity is not None
    action, weights, rounds = arrays.action, quantity.weights.arms, profile.log.n_rounds
    count = np.bincount(action, minlength=profile.log.n_arms)
    mean = np.bincount(action, arrays.reward, profile.log.n_arms) / np.maximum(count, 1)
    own = weights[np.arange(rounds), action]
    if not own.any() or count[np.unique(action[own != 0.0])].min() < LEAST_ROUNDS:
        return math.nan
    score = quantity.weights.ratios(action, arrays.propensity) * (arrays.reward - mean[action])
    if weights.strides[0] != 0:
        score += weights @ mean
    away = times(rounds, arrays.batch)
    return standardised((away - away.mean()) * (score - score.mean()))


def _of_sums(cells: Cells, quantity: Quantity) -> float:
    weights = quantity.weights.arms[0]
    used = weights != 0.0
    number, first = (part[:, used] for part in cells.moments[0, :2])
    if number.sum(axis=0).min(initial=np.inf) < LEAST_ROUNDS or len(cells.rounds) < 2:
        return math.nan
    weights = weights[used]
    mean = first.sum(axis=0) / number.sum(axis=0)
    by_inverse, by_square = shifted(cells.moments[1:3][..., used], -mean)
    total = by_inverse[1] @ weights
    squares = np.maximum(by_square[2], 0.0) @ weights**2
    level = float(total.sum() / cells.rounds.sum())
    time = middles(cells.rounds)
    away = time - float(time @ cells.rounds / cells.rounds.sum())
    size = float(away**2 @ np.maximum(squares - 2.0 * level * total + level**2 * cells.rounds, 0.0))
    slope = float(away @ (total - level * cells.rounds))
    return slope / math.sqrt(size) if 0.0 < size < math.inf else math.nan


def shape_cautions(
    profile: LogProfile, quantities: Sequence[Quantity], terms: Sequence[str], estimator: str
) -> tuple[str, ...]:
    """Cautions for quantities, based on the rarest outcomes of arms and the most skewed mean."""
    arms = [list(one.codes) or list(range(profile.log.n_arms)) for one in quantities]
    parts = [profile if estimator == "sample-mean" else within(profile, one)[0] for one in quantities]
    uncommon = np.array([part.uncommon[codes].min() for part, codes in zip(parts, arms, strict=True)])
    # One look at all arms of each part, not one for each quantity: a table may have many.
    every = {id(part): part.squared_skewness * _unevenness(part, estimator) for part in _distinct(parts)}
    skewness = np.array([every[id(part)][codes].max() for part, codes in zip(parts, arms, strict=True)])
    claim = SKEWNESS_UNKNOWN if profile.knows_rarity else SHAPE_UNKNOWN
    unknown = () if profile.knows_skewness else (claim(),)
    return (*rare_cautions(terms, uncommon, skewness), *unknown)


def _distinct(parts: Sequence[LogProfile]) -> Sequence[LogProfile]:
    """The parts of a log without repetitions."""
    return list({id(part): part for part in parts}.values())


def _unevenness(profile: LogProfile, estimator: str) -> FloatArray:
    """Factors that convert the squared skewness of rewards to that of arm means, (K,); 0 for unused arms."""
    if estimator == "sample-mean" or not profile.knows_propensities:
        return unevenness(profile.pulls, profile.pulls)
    return unevenness(profile.inverse_squares, profile.inverse_cubes)


class SequenceFacts(ConstantMeans):
    """Facts on which claims about a sequence depend before a fit."""

    def __init__(
        self,
        profile: LogProfile,
        quantities: Sequence[Quantity],
        method: SequenceMethod,
        estimator: str,
        terms: Sequence[str] = (),
    ) -> None:
        self.profile, self.method, self.estimator = profile, method, estimator
        self.quantities, self.terms = quantities, terms
        self.codes = list(dict.fromkeys(code for one in quantities for code in one.codes))
        self.known_scale: dict[str, float] = {}
        self.known_floor: dict[str, float] = {}

    @property
    def is_anytime(self) -> bool:
        return self.method.anytime

    @property
    def in_the_limit(self) -> bool:
        return not self.method.anytime

    @property
    def is_by_pull(self) -> bool:
        """Whether the sequence uses only the rewards of the arm itself."""
        return self.estimator == "sample-mean"

    @property
    def is_by_round(self) -> bool:
        """Whether the sequence uses scores that exist in every round."""
        return not self.is_by_pull

    @cached_property
    def drift_found(self) -> Finding | None:
        """Evidence of drift in the rewards of the arms, or in the mean of the scores of every round."""
        if self.is_by_pull:
            return self.profile.drift_of(self.codes)
        terms = self.terms or [""] * len(self.quantities)
        return trend_of_values(terms, [value_trend(self.profile, one) for one in self.quantities])

    @property
    def no_trend(self) -> dict[str, str]:
        return super().no_trend if self.is_by_pull else {}

    @property
    def no_trend_of_values(self) -> bool:
        return self.is_by_round and self.drift_found is not None and not self.drift_found.contradicted

    @property
    def propensities_assumed(self) -> list[str]:
        return said(propensities.ASSUMES, self) if self.is_by_round else []

    @property
    def contexts_found(self) -> Finding | None:
        return self.profile.contexts_found

    @property
    def contexts_without_part(self) -> list[str]:
        return [contexts.NO_PART.of(self, {})] if self.contexts_may_spoil else []

    @property
    def contexts_may_spoil(self) -> bool:
        """Whether unadjusted means are used for arms whose choice may have been affected by contexts."""
        return self.is_by_pull and not self.profile.context_free

    @property
    def never_random(self) -> str:
        """Why unadjusted means may be confounded because no arm was drawn at random; otherwise empty."""
        return contexts.NEVER_RANDOM() if self.is_by_pull and self.profile.never_random else ""

    @property
    def needs_range(self) -> bool:
        return self.is_anytime

    @property
    def range_found(self) -> Finding:
        """Whether rewards outside the range are refused."""
        return Finding()


class FitFacts(SequenceFacts):
    """Facts on which claims about sequences with settings depend, for named quantities."""

    def __init__(
        self,
        profile: LogProfile,
        quantities: Sequence[Quantity],
        terms: Sequence[str],
        settings: Settings,
        *,
        stationary: bool,
    ) -> None:
        super().__init__(profile, quantities, settings.method, settings.estimator, terms)
        self.settings, self.stationary = settings, stationary
        if settings.sigma is not None:
            self.known_scale = {"sigma": settings.sigma}
        if settings.floor is not None:
            self.known_floor = {"floor": settings.floor}

    @property
    def needs_range(self) -> bool:
        return self.is_anytime and not self.known_scale

    @property
    def sums_note(self) -> str:
        return read_from(self.profile)

    @property
    def tuning(self) -> dict[str, object]:
        when = "at all rounds" if self.profile.sums is None else "after all batches"
        return {"when": when, "alpha": self.settings.alpha}

    @property
    def left_out(self) -> list[dict[str, object]]:
        """Numbers of rounds in which one of the compared arms was impossible, once for each set of arms."""
        if self.is_by_pull:
            return []
        log, said = self.profile.log, dict[tuple[int, ...], dict[str, object]]()
        for one in self.quantities:
            keep = common_rounds(self.profile, one)
            if keep is not None:
                arms = [str(log.arms[code]) for code in one.among if self.profile.impossible[code]]
                left = int(np.rint(self.profile.piece_sizes @ ~keep))
                said[one.among] = {
                    "arm": several(arms, _SHOWN, " or "),
                    "left": str(left),
                    "rounds": log.n_rounds,
                }
        return list(said.values())

    @property
    def different_rounds(self) -> bool:
        """Whether arms that are compared by their own rewards joined late or left early."""
        profile, codes = self.profile, np.array(self.codes)
        if self.stationary or not (self.is_by_pull and profile.knows_propensities):
            return False
        if not profile.impossible[codes].any():
            return False
        possible = profile.possible(codes, jointly=False)[dealt_rounds(profile) :]
        # If a propensity is 0 only now and then, it followed the rewards; the arm did not join late or leave
        # early.
        return bool(np.any(possible != possible[:, :1])) and not changes_often(possible)

    @property
    def is_difference_of_means(self) -> bool:
        return self.is_by_pull and len(self.quantities[0].codes) > 1

    @property
    def late_start(self) -> dict[str, int]:
        return {"start": self.settings.start} if self.in_the_limit else {}

    @property
    def share_cautions(self) -> tuple[str, ...]:
        """Evidence against the use of unadjusted means from sums."""
        return self.profile.share_cautions if self.is_by_pull else ()

    @property
    def shape_cautions(self) -> tuple[str, ...]:
        """Evidence against the asymptotic approximation."""
        if self.is_anytime:
            return ()
        return shape_cautions(self.profile, self.quantities, self.terms, self.estimator)
