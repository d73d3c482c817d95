"""Facts on which claims about effects within groups depend, for a log with one variant and for a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from adaptinf.claims import Finding, Said, propensities, rare_outcomes, said, units
from adaptinf.claims.effects import by_group as claims
from adaptinf.claims.facts import Fitted, KindOfWeights
from adaptinf.inference.distributions.two_samples import FEW_EVENTS, Difference
from adaptinf.inference.released.effects import ReleasedReference
from adaptinf.inference.released.group_effects import Reason
from adaptinf.inference.scores.unit_errors import FEWEST_EVENTS
from adaptinf.inference.validity import rare
from adaptinf.inference.validity.methods import refusal
from adaptinf.inference.validity.profile import FEW_EFFECTIVE, TINY_PROPENSITY
from adaptinf.inference.validity.stationarity import trend_of_values
from adaptinf.inference.validity.units import FEW_UNITS, event_gaps, unit_cautions, unit_notes
from adaptinf.texts import several
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.effects.group_question import GroupQuestion, Rounds
    from adaptinf.inference.effects.group_scores import GroupEffects
    from adaptinf.inference.effects.projections.projection_question import ProjectionQuestion
    from adaptinf.inference.released.group_effects import ReleasedEffects
    from adaptinf.inference.scores.inverse import Fixed
    from adaptinf.inference.scores.means import UnitErrors


_SHOWN, _FEW = 8, 3


def some(terms: Sequence[str]) -> str:
    """Text that names the first terms and gives the number of others."""
    return several(terms, _SHOWN, "; ")


def by_reason(terms: Sequence[str], reasons: Sequence[Reason | None]) -> list[Said]:
    """Statements of the reasons, each with all terms to which it applies; terms and reasons (G,)."""
    found: dict[Any, tuple[Reason, list[str]]] = {}
    for term, reason in zip(terms, reasons, strict=True):
        if reason is not None:
            claim, values = reason
            found.setdefault((claim, *values.items()), (reason, []))[1].append(term)
    return [claim(terms=some(named), **values) for (claim, values), named in found.values()]


def gap_notes(terms: Sequence[str], counts: FloatArray, std_error: FloatArray) -> list[Said]:
    """Notes on why groups have no estimate or no standard error; counts (G, 2), std_error (G,)."""
    reasons = [
        _gap(control, treatment, error) for (control, treatment), error in zip(counts, std_error, strict=True)
    ]
    notes = by_reason(terms, reasons)
    many = sum(reason is not None for reason in reasons) > _FEW
    return [*notes, claims.SMALL_GROUPS()] if many else notes


def _gap(control: float, treatment: float, std_error: float) -> Reason | None:
    fewer = min(control, treatment)
    if fewer < 1:
        return (claims.NEITHER_ARM if control == treatment else claims.ONE_ARM_MISSING), {}
    if np.isnan(std_error):
        return (claims.SINGLE_REWARD if fewer < 2 else claims.NO_VARIATION), {}
    return None


def few_effective(terms: Sequence[str], df: FloatArray, std_error: FloatArray) -> dict[str, Any]:
    """Terms whose standard errors are based on fewer than 20 effective rounds; df, std_error (k,)."""
    found = [
        term
        for term, freedom, size in zip(terms, df, std_error, strict=True)
        if freedom + 1.0 < FEW_EFFECTIVE and size > 0.0
    ]
    if not found:
        return {}
    least = float(np.min(df[std_error > 0.0])) + 1.0
    return {"terms": some(found), "least": least, "enough": FEW_EFFECTIVE}


def tiny_propensities(terms: Sequence[str], lowest: FloatArray, ess: FloatArray) -> list[dict[str, Any]]:
    """Terms whose estimates divide by a tiny propensity; lowest and ess have shape (k,)."""
    return [
        {"term": term, "least": low, "size": size}
        for term, low, size in zip(terms, lowest, ess, strict=True)
        if low < TINY_PROPENSITY
    ]


class WeightFacts(KindOfWeights):
    """Facts about one kind of weights, with errors by unit or independent between rounds."""

    question: GroupQuestion | ProjectionQuestion
    weights: str

    @property
    def by_unit(self) -> bool:
        """Whether errors are clustered by unit; by default, rounds are independent."""
        return False

    @property
    def lacks_both_propensities(self) -> bool:
        return not self.is_uniform and self.question.propensities is None

    @property
    def tied_units(self) -> str:
        return units.TIED() if self.by_unit and not self.is_uniform else ""

    @property
    def errors_by_unit(self) -> str:
        return units.BY_UNIT() if self.by_unit else ""

    @property
    def averages_equally(self) -> bool:
        return self.is_uniform

    @property
    def unit_assumptions(self) -> list[str]:
        return said((units.INDEPENDENT, units.NO_CARRY_OVER), self) if self.by_unit else []


def lagged_by(fixed: Fixed | None) -> dict[str, str]:
    """Which earlier propensities determine weights; empty if the round's own or no propensities do."""
    if fixed is None or fixed == "round":
        return {}
    before = propensities.BATCH_BEFORE if fixed == "batch" else propensities.ROUND_BEFORE
    return {"by": before()}


class GroupFacts:
    """Facts that all methods use."""

    estimator: str

    @property
    def tiny_propensities(self) -> list[dict[str, Any]]:
        """Facts for methods that divide by propensities."""
        return []

    def __init__(self, question: GroupQuestion) -> None:
        self.question, self.profile = question, question.profile


@dataclass(frozen=True, slots=True, eq=False)
class Rarity:
    """How rare outcomes and how skewed estimates are in each group; uncommon, skewness, tails (G,).

    `tails` contains the tail errors that remain after a correction for skewness; None if nothing was
    corrected.
    """

    uncommon: FloatArray
    skewness: FloatArray
    tails: FloatArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class DifferenceFit:
    """Results of unweighted means, with the rounds used; counts has shape (G, 2)."""

    rounds: Rounds
    difference: Difference
    counts: FloatArray
    rarity: Rarity


@dataclass(frozen=True, slots=True, eq=False)
class WeightedFit:
    """Results of inverse weighting, with the options used; std_error has shape (G,)."""

    effects: GroupEffects
    errors: UnitErrors | None
    fixed: Fixed
    std_error: FloatArray
    rarity: Rarity
    asked: bool
    """Whether the weights were requested by the user, or were the only ones available."""
    stationary: bool


RoundFit = TypeVar("RoundFit", DifferenceFit, WeightedFit)


class _RoundFacts(GroupFacts, Fitted[RoundFit]):
    """Facts for methods that use rounds."""

    @property
    def skewness_notes(self) -> list[Said]:
        return [] if self.fit.rarity.tails is None else [rare_outcomes.CORRECTED()]

    @property
    def rare_notes(self) -> list[str]:
        return rare.rare_notes(self.question.terms, self.fit.rarity.uncommon)

    @property
    def rare_cautions(self) -> Sequence[str]:
        found = self.fit.rarity
        return rare.rare_cautions(self.question.terms, found.uncommon, found.skewness, found.tails)


class DifferenceFacts(_RoundFacts[DifferenceFit]):
    """Facts for differences in means; without a fit, for a row of `recommend`."""

    estimator = "difference-in-means"
    drift_allowed = True
    averages_equally = True

    def __init__(self, question: GroupQuestion, *, pooled: bool, fit: DifferenceFit | None = None) -> None:
        super().__init__(question)
        self.is_pooled, self.is_randomised = pooled, not pooled
        if fit is not None:
            self.fit = fit

    @property
    def rounds_refusal(self) -> str:
        asked = self.question
        return asked.gap_refusal or refusal(lambda: asked.pooled if self.is_pooled else asked.randomised)

    @property
    def rounds_notes(self) -> Sequence[str]:
        return self.fit.rounds.notes

    @property
    def adjusted(self) -> dict[str, Any]:
        """Groups to which the Agresti-Caffo adjustment was applied."""
        flags = zip(self.question.terms, self.fit.difference.adjusted, strict=True)
        found = [term for term, flag in flags if flag]
        return {"terms": some(found), "enough": FEW_EVENTS} if found else {}

    @property
    def gap_notes(self) -> list[Said]:
        return gap_notes(self.question.terms, self.fit.counts, self.fit.difference.std_error)

    @property
    def rare_notes(self) -> list[str]:
        """No notes for rewards that take two values, because their intervals are adjusted."""
        return [] if self.profile.two_values is not None else super().rare_notes


class WeightedFacts(_RoundFacts[WeightedFit], WeightFacts):
    """Facts about inverse weighting with given weights; without a fit, for a row of `recommend`."""

    estimator = "aipw"

    question: GroupQuestion

    def __init__(self, question: GroupQuestion, weights: str, fit: WeightedFit | None = None) -> None:
        super().__init__(question)
        self.weights = weights
        if fit is not None:
            self.fit = fit

    @cached_property
    def rounds_refusal(self) -> str:
        return self.question.gap_refusal or refusal(lambda: self.question.weightable)

    @property
    def combined_refusal(self) -> str:
        return refusal(lambda: self.question.combined) if self.is_combined else ""

    @property
    def by_unit(self) -> bool:
        return not self.rounds_refusal and self.question.by_unit is not None

    @property
    def by_round(self) -> bool:
        return not self.by_unit

    @property
    def is_combined_by_round(self) -> bool:
        return self.is_combined and self.by_round

    @property
    def is_sqrt_by_round(self) -> bool:
        return self.is_sqrt and self.by_round

    @property
    def every_round(self) -> bool:
        return self.is_uniform or self.by_unit

    @property
    def pair_shares_drift(self) -> bool:
        return not self.is_sqrt

    @property
    def averages_by_weight(self) -> bool:
        return self.is_combined

    @property
    def rounds_notes(self) -> Sequence[str]:
        return self.question.weightable.notes

    @property
    def unit_notes(self) -> list[str]:
        unit, errors = self.question.by_unit, self.fit.errors
        if unit is None or errors is None:
            return []
        return [
            *unit_notes(self.profile, len(np.unique(unit)), len(unit)),
            *event_gaps(self.question.terms, errors.events, FEWEST_EVENTS),
        ]

    @property
    def unit_cautions(self) -> list[str]:
        unit, errors = self.question.by_unit, self.fit.errors
        if unit is None or errors is None:
            return []
        counts, n_units = (errors.units, errors.events), len(np.unique(unit))
        return unit_cautions(self.profile, n_units, self.question.terms, *counts, uniform=self.is_uniform)

    @property
    def uniform_for_contexts(self) -> dict[str, str]:
        if not self.is_uniform or self.fit.asked or not self.question.movers:
            return {}
        return {"contexts": ", ".join(self.question.movers), **self._unsettled}

    @property
    def uniform_weights(self) -> dict[str, str]:
        return self._unsettled if self.is_uniform and not self.uniform_for_contexts else {}

    @property
    def _unsettled(self) -> dict[str, str]:
        return {"unsettled": propensities.UNSETTLED()}

    @property
    def lagged_by(self) -> dict[str, str]:
        return lagged_by(self.fit.fixed)

    @property
    def gap_notes(self) -> list[Said]:
        """Notes on why groups have no estimate or no error, except for groups with too few events."""
        found, errors = self.fit.effects, self.fit.errors
        size = found.std_error
        if errors is not None:
            size = np.where(errors.events < FEWEST_EVENTS, 1.0, size)
        return gap_notes(self.question.terms, found.used, size)

    @property
    def own_weights_of_pair_unstated(self) -> dict[str, str]:
        untested = self.is_sqrt and self.drift_found is None
        return {"weights": self.weights} if untested and not self.fit.stationary else {}

    @cached_property
    def drift_found(self) -> Finding | None:
        """A trend in the rewards of an arm within a group; None if trends cannot be tested."""
        question, arms = self.question, self.profile.log.arms
        names = [f"arm {arms[code]!r} within {term}" for term in question.terms for code in question.pair]
        every = zip(names, question.trends.z, question.trends.tested, strict=True)
        tested = [(name, z) for name, z, yes in every if yes]
        return trend_of_values(*zip(*tested, strict=True)) if tested else None

    @property
    def few_effective(self) -> dict[str, Any]:
        """Groups with few effective rounds; for groups with few units, there is a separate note."""
        fit, size = self.fit, self.fit.std_error
        if fit.errors is not None:
            size = np.where(fit.errors.units < FEW_UNITS, np.nan, size)
        return few_effective(self.question.terms, fit.effects.df, size)

    @property
    def tiny_propensities(self) -> list[dict[str, Any]]:
        found = self.fit.effects
        return tiny_propensities(self.question.terms, found.min_propensity, found.ess)


class ReleasedFacts(GroupFacts):
    """Facts for private releases; terms has shape (G,)."""

    estimator = "released"
    of_releases = True
    drift_allowed = True
    averages_equally = True

    def __init__(
        self,
        question: GroupQuestion,
        effects: ReleasedEffects | None = None,
        reference: ReleasedReference | None = None,
        names: tuple[str, ...] = (),
    ) -> None:
        super().__init__(question)
        self._effects, self._reference, self.terms = effects, reference, names

    @property
    def effects(self) -> ReleasedEffects:
        """The effects that the releases show."""
        assert self._effects is not None
        return self._effects

    @property
    def release_notes(self) -> Sequence[str]:
        return self.effects.notes

    @property
    def gap_notes(self) -> list[Said]:
        return by_reason(self.terms, [self.effects.reasons.get(i) for i in range(len(self.terms))])

    @property
    def empty_interval(self) -> dict[str, str]:
        assert self._reference is not None
        empty = np.isnan(self._reference.interval(float(np.log(0.05)))[:, 0])
        flags = empty & np.isfinite(self.effects.estimate)
        found = [term for term, flag in zip(self.terms, flags, strict=True) if flag]
        return {"terms": some(found)} if found else {}
