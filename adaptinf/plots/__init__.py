"""Pictures: every function takes what it draws and ``ax=None``, and returns the axes.

They need matplotlib (``pip install '.[plots]'`` in the source tree), which is imported when a picture is
drawn. Without axes a function draws a figure of its own, as wide as a column of a page (3.4 inches), by
pyplot. Colours are those of Okabe and Ito, and series differ in marker and line as well, so that they stay
apart in grey.
"""

from adaptinf.plots.audits import privacy
from adaptinf.plots.calibration import bias, coverage
from adaptinf.plots.collection import allocation, propensities
from adaptinf.plots.drawing.files import save, save_table
from adaptinf.plots.drawing.style import figure
from adaptinf.plots.estimates import forest
from adaptinf.plots.grids import study
from adaptinf.plots.regions import partition
from adaptinf.plots.regrets import frontier, regret
from adaptinf.plots.sequences import confidence_sequence
from adaptinf.plots.uniformity import pvalues
from adaptinf.plots.winners import winner

__all__ = [
    "allocation",
    "bias",
    "confidence_sequence",
    "coverage",
    "figure",
    "forest",
    "frontier",
    "partition",
    "privacy",
    "propensities",
    "pvalues",
    "regret",
    "save",
    "save_table",
    "study",
    "winner",
]


def __dir__() -> list[str]:
    return sorted(__all__)
