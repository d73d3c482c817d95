"""What claims ask of one confidence sequence on one kind of scores, and of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from adaptinf.claims import Finding, contexts, propensities, said
from adaptinf.inference.arms.circumstances.from_sums import read_from
from adaptinf.inference.sequences.choice import Quantity, Settings
from adaptinf.inference.sequences.methods import SequenceMethod
from adaptinf.inference.sequences.shape import shape_cautions
from adaptinf.inference.sequences.trends import value_trend
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.inference.validity.stationarity import ConstantMeans, trend_of_values


class SequenceFacts(ConstantMeans):
    """What claims ask of a sequence before there is a fit."""

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
        """It is of an arm's own rewards."""
        return self.estimator == "sample-mean"

    @property
    def is_by_round(self) -> bool:
        """It is of scores, of which every round has one."""
        return not self.is_by_pull

    @cached_property
    def drift_found(self) -> Finding | None:
        """Of the arms' own rewards, or of the value of scores in every round."""
        if self.is_by_pull:
            return self.profile.trends.of(self.codes, self.profile.log.arms)
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
        """Contexts may have had a part in the choice of arms whose plain means they follow."""
        return self.is_by_pull and not self.profile.context_free

    @property
    def never_random(self) -> str:
        """That nothing was drawn, of plain means."""
        return contexts.NEVER_RANDOM() if self.is_by_pull and self.profile.never_random else ""

    @property
    def needs_range(self) -> bool:
        return self.is_anytime

    @property
    def range_found(self) -> Finding:
        """Rewards outside the range are refused."""
        return Finding()


class FitFacts(SequenceFacts):
    """What claims ask of sequences with settings, for quantities named by terms."""

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
        return "" if self.profile.sums is None else read_from(self.profile.sums)

    @property
    def tuning(self) -> dict[str, object]:
        when = "at all rounds" if self.profile.sums is None else "after all batches"
        return {"when": when, "alpha": self.settings.alpha}

    @property
    def is_difference_of_means(self) -> bool:
        return self.is_by_pull and len(self.quantities[0].codes) > 1

    @property
    def late_start(self) -> dict[str, int]:
        return {"start": self.settings.start} if self.in_the_limit else {}

    @property
    def share_cautions(self) -> tuple[str, ...]:
        """What speaks against plain means of sums."""
        return self.profile.share_cautions if self.is_by_pull else ()

    @property
    def shape_cautions(self) -> tuple[str, ...]:
        """What speaks against the limit."""
        if self.is_anytime:
            return ()
        return shape_cautions(self.profile, self.quantities, self.terms, self.estimator)
