"""Treatment effects by group, and projections of effects on covariates."""

from adaptinf.inference.effects.cate import CATE
from adaptinf.inference.effects.comparisons import GroupResults, HeterogeneityTest
from adaptinf.inference.effects.projections.projected_scores import ProjectionResults
from adaptinf.inference.effects.projections.projection import CATEProjection

__all__ = [
    "CATE",
    "CATEProjection",
    "GroupResults",
    "HeterogeneityTest",
    "ProjectionResults",
]
