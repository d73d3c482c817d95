"""The verdicts of all models on a log, in one table."""

from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.inference.recommend.table import Recommendation

__all__ = [
    "Recommendation",
    "recommend",
]
