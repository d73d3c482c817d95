"""Plots: every function takes the data to draw and ``ax=None``, and returns the axes.

They require matplotlib (the extra ``plots``), which is imported when a plot is drawn. Without axes, a
function creates its own figure with pyplot, as wide as a journal column (3.4 inches), so a notebook shows it.
At most eight series are coloured, safely for colour-blind readers, and also differ in their markers; the
others are grey. ``plots.theme("dark")`` draws on a dark background.

Each plot is drawn from a tidy frame, which ``plots.forest.frame(...)`` and its counterparts return: these
take the arguments that determine the numbers, and do not require matplotlib.
"""

from adaptinf.plots.calibration_plots import bias, coverage, pvalues
from adaptinf.plots.collection_plots import allocation, propensities
from adaptinf.plots.flow_plots import flow
from adaptinf.plots.interval_plots import forest, winner
from adaptinf.plots.mean_plots import means
from adaptinf.plots.picture_files import save, save_table
from adaptinf.plots.power_plots import power
from adaptinf.plots.privacy_plots import partition, privacy
from adaptinf.plots.regret_plots import frontier, regret
from adaptinf.plots.sequence_plots import confidence_sequence
from adaptinf.plots.study_grid import study
from adaptinf.plots.style import figure, theme

__all__ = [
    "allocation",
    "bias",
    "confidence_sequence",
    "coverage",
    "figure",
    "flow",
    "forest",
    "frontier",
    "means",
    "partition",
    "power",
    "privacy",
    "propensities",
    "pvalues",
    "regret",
    "save",
    "save_table",
    "study",
    "theme",
    "winner",
]


def __dir__() -> list[str]:
    return sorted(__all__)
