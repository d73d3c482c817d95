"""Pictures: every function takes what it draws and ``ax=None``, and returns the axes.

They need matplotlib (the extra ``plots``), which is imported when a picture is drawn. Without axes a function
draws a figure of its own, as wide as a column of a page (3.4 inches), by pyplot, so that a notebook shows it.
Colours are those of Okabe and Ito, and series differ in marker and line as well, so that they stay apart in
grey.
"""

from adaptinf.plots.calibration_plots import bias, coverage, pvalues
from adaptinf.plots.collection_plots import allocation, partition, propensities
from adaptinf.plots.interval_plots import forest, privacy, winner
from adaptinf.plots.picture_files import save, save_table
from adaptinf.plots.regret_plots import frontier, regret
from adaptinf.plots.sequence_plots import confidence_sequence
from adaptinf.plots.study_grid import study
from adaptinf.plots.style import figure

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
