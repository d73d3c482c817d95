"""What claims ask of effects by inverse propensities with one kind of weights, in groups or on covariates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaptinf.claims import said, units
from adaptinf.claims.facts import KindOfWeights

if TYPE_CHECKING:
    from adaptinf.inference.effects.projections.projected_scores import ProjectionQuestion
    from adaptinf.inference.effects.question import GroupQuestion


class WeightFacts(KindOfWeights):
    """Of one kind of weights, with errors by unit or by round."""

    question: GroupQuestion | ProjectionQuestion
    weights: str

    @property
    def by_unit(self) -> bool:
        """Whether errors are by unit; where nothing else is said, they are by round."""
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
