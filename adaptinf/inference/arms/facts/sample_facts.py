"""Facts on which claims about sample means depend, for a log and for a fit."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

from adaptinf.claims import propensities, said
from adaptinf.claims.arms import sample_means as claims
from adaptinf.claims.contexts import NO_PART
from adaptinf.inference.arms.alee import alee_offset, alee_weights
from adaptinf.inference.arms.facts.arm_facts import ArmFacts
from adaptinf.inference.distributions.tails import normal_quantile
from adaptinf.inference.distributions.two_samples import FEW_EVENTS
from adaptinf.inference.validity.assignment import MOVED
from adaptinf.inference.validity.constant_means import shares_moved
from adaptinf.inference.validity.profile import compared

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import ArmFit, Question
    from adaptinf.inference.corrections.information import Correction
    from adaptinf.log import Stability

STABLE_ENOUGH = 0.1
"""Simulated arm counts are considered stable if their coefficient of variation is below this threshold."""
_PATIENCE = 2.0
"""Exact intervals come first if they are at most this many times as long as those of ALEE."""
_USUAL_ALPHA = 0.05


def length_ratio(question: Question, correction: Correction) -> float:
    """Length of corrected intervals relative to those of ALEE, computed from pull counts alone."""
    log = question.profile.log
    z = float(normal_quantile(correction.level(math.log(_USUAL_ALPHA)) - math.log(2.0)))
    usual = float(normal_quantile(math.log(_USUAL_ALPHA / 2.0)))
    counts = question.profile.pulls[question.codes]
    offset = alee_offset(log.n_rounds)
    totals = [float(alee_weights(int(n), offset).sum()) / math.sqrt(n) for n in counts if n > 0]
    return z / usual * max(totals, default=1.0)


def holds(question: Question, test: str, correction: Correction | None) -> bool:
    """Whether nothing adapted, or counts are stable, so that no correction is needed."""
    profile = question.profile
    if profile.repeated_units:
        return False
    known = profile.stability
    stable = known is not None and known.stable and test != "exact"
    return not profile.adaptive or (correction is None and stable)


class SampleFacts(ArmFacts):
    """Facts about unadjusted sample means and, if there is a fit, about the fit."""

    def __init__(
        self,
        question: Question,
        fit: ArmFit | None = None,
        test: str = "",
        correction: Correction | None = None,
    ) -> None:
        super().__init__(question, fit, test)
        self.correction = correction

    @property
    def means_stay(self) -> bool:
        """Whether an arm's rounds may be unevenly distributed over time, so that drift biases its mean."""
        return self.profile.adaptive or self.profile.shares_move

    @property
    def not_adaptive(self) -> dict[str, str]:
        return {} if self.profile.adaptive else {"why": self.profile.why_not_adaptive}

    @property
    def shares_moved(self) -> str:
        return shares_moved(self.profile, self.codes) if not self.profile.adaptive else ""

    @property
    def only_shares_moved(self) -> bool:
        return not self.profile.adaptive and self.profile.shares_move and not self.shares_moved

    @property
    def vary(self) -> str:
        return claims.VARIATION(variation=self.question.variation)

    @property
    def simulated(self) -> bool:
        return self.profile.adaptive and self.question.variation is not None

    @property
    def counts_vary(self) -> dict[str, Any]:
        variation = self.question.variation
        if not self.simulated or variation is None or variation <= STABLE_ENOUGH:
            return {}
        return {"vary": self.vary, "most": STABLE_ENOUGH}

    @property
    def counts_settled(self) -> dict[str, str]:
        return {"vary": self.vary} if self.simulated and not self.counts_vary else {}

    @property
    def _by_design(self) -> Stability | None:
        """What the design implies about the stability of counts, if none were simulated."""
        return self.profile.stability if self.profile.adaptive and not self.simulated else None

    @property
    def biased(self) -> bool:
        return self.profile.adaptive and not self.simulated and self._by_design is None

    @property
    def unstable(self) -> dict[str, str]:
        known = self._by_design
        if known is None or known.stable:
            return {}
        parts = {"condition": known.condition, "source": known.source}
        return {"biased": claims.BIASED(), "design": self.profile.design_title, **parts}

    @property
    def stable(self) -> bool:
        return self._by_design is not None and self._by_design.stable

    @property
    def stable_design(self) -> dict[str, str]:
        known = self._by_design
        if known is None or not self.stable:
            return {}
        return {"design": self.profile.design_title, "source": known.source}

    @property
    def stable_if(self) -> dict[str, str]:
        known = self._by_design
        return {} if known is None or not self.stable else {"condition": known.condition}

    @property
    def is_exact(self) -> bool:
        return not self.has_fit or self.test == "exact"

    @property
    def worth(self) -> dict[str, str]:
        """The validity of uncorrected means."""
        profile, known = self.profile, self.profile.stability
        if profile.repeated_units:
            return {"worth": claims.UNITS_DEPEND()}
        if profile.reaction_found is not None and profile.reaction_found.contradicted:
            return {"worth": claims.STATED()}
        if not profile.adaptive:
            return {"worth": claims.NOT_DUE(why=profile.why_not_adaptive)}
        if known is not None and holds(self.question, self.test, self.correction):
            parts = {"source": known.source, "condition": known.condition}
            short = claims.SHORT_RUNS()
            return {"worth": claims.LONG_RUNS(design=profile.design_title, short_runs=short, **parts)}
        return {"worth": claims.NAIVE() if self.correction is None else claims.ACCOUNTED()}

    @property
    def design_untold(self) -> bool:
        return self.fit.naive and self.profile.log.design is None

    @property
    def no_corrected_columns(self) -> dict[str, str]:
        lacks = self.fit.naive and self.correction is None and self.profile.log.guarantee is not None
        return {"reason": self.profile.no_correction} if lacks else {}

    @property
    def few_events(self) -> dict[str, int]:
        return {"fewest": FEW_EVENTS} if self.test == "few" else {}

    @property
    def moved(self) -> list[str]:
        return said(claims.MOVED, self) if self.shares_moved else []

    @property
    def moved_with_propensities(self) -> dict[str, str]:
        known = self.profile.knows_propensities and not self.profile.estimated
        return {"moved": self.shares_moved} if known else {}

    @property
    def moved_with_batches(self) -> dict[str, Any]:
        profile = self.profile
        steady = profile.batched and not profile.shares_move_in_batches
        return self._visibly_moved if steady else {}

    @property
    def moved_without_batches(self) -> dict[str, Any]:
        return {} if self.moved_with_batches else self._visibly_moved

    @property
    def _visibly_moved(self) -> dict[str, Any]:
        """How the arms' shares changed, if there are no propensities that explain the change."""
        return {} if self.moved_with_propensities else {"moved": self.shares_moved, "p": MOVED}

    @property
    def propensities_right(self) -> list[str]:
        """The assumption made if arms with constant propensities are treated as random samples."""
        return said((propensities.RIGHT,), self) if self.profile.constant_propensities else []


class ExactFacts(SampleFacts):
    """Facts on which claims about exact binomial tests depend."""

    @property
    def not_binary(self) -> bool:
        return not compared(self.question).binary


class CorrectedFacts(SampleFacts):
    """Facts for the columns that are corrected for adaptive collection."""

    def __init__(self, question: Question) -> None:
        super().__init__(question, correction=question.profile.correction)

    @cached_property
    def _bound(self) -> str:
        assert self.correction is not None
        return self.correction.describe(_USUAL_ALPHA)

    @cached_property
    def _ratio(self) -> float:
        assert self.correction is not None
        return length_ratio(self.question, self.correction)

    @cached_property
    def useless(self) -> bool:
        assert self.correction is not None
        return bool(self.correction.vacuous(_USUAL_ALPHA))

    @property
    def units_of_rows(self) -> dict[str, str]:
        rows = self.profile.repeated_units and not self.profile.rows_refusal
        return {"refusal": self.profile.unit_refusal} if rows else {}

    @property
    def binary(self) -> bool:
        """Whether rewards take two values, so that the method is exact rather than asymptotic."""
        return compared(self.question).binary

    @property
    def label(self) -> str:
        return "exact" if self.binary else "asymptotic"

    @property
    def vacuous(self) -> dict[str, str]:
        return {"bound": self._bound} if self.useless else {}

    @property
    def are_short(self) -> bool:
        """Whether intervals are short enough to come first."""
        return not self.useless and self._ratio <= (_PATIENCE if self.binary else 1.0)

    @property
    def short(self) -> dict[str, Any]:
        return {"bound": self._bound, "ratio": self._ratio} if self.are_short else {}

    @property
    def long(self) -> dict[str, str]:
        if self.useless or self.are_short:
            return {}
        return {"guaranteed": claims.GUARANTEED(bound=self._bound, ratio=self._ratio)}

    @property
    def guaranteed(self) -> bool:
        return True

    @property
    def one_law(self) -> bool:
        return not self.useless

    @property
    def mixed(self) -> list[str]:
        return said((NO_PART,), self) if self.one_law else []

    @property
    def of_tails(self) -> bool:
        return not self.useless and not self.binary

    @property
    def contexts_untold(self) -> dict[str, str]:
        untold = not self.useless and not self.profile.context_free
        return {"label": self.label, "no_part": NO_PART()} if untold else {}
