"""Every model's verdicts on a log, in one table."""

from adaptinf.inference.recommend.recommendation import Recommendation, recommend

__all__ = [
    "Recommendation",
    "recommend",
]
