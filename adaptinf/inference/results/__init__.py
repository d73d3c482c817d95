"""Results of fits: estimates with one distribution for p-values and intervals, and tests and tables."""

from adaptinf.inference.results.comparison import Comparison, compare
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.hypotheses import LinearTest, WaldTest
from adaptinf.inference.results.own import result

__all__ = [
    "Comparison",
    "LinearTest",
    "Results",
    "WaldTest",
    "compare",
    "result",
]
