"""Draw the picture of README and of the first page: trials of each experiment of ``adaptinf demo``.

    python docs/front_figure.py

writes docs/figures/demo.svg, with the same bytes for the same versions of matplotlib and NumPy.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from figures import _short

from adaptinf import plots
from adaptinf.cli.demonstration import EXPERIMENTS
from adaptinf.plots.picture_files import drawn

_KINDS = (("textbook", "#D55E00"), ("adaptinf", "#0072B2"))
_LIMITS = (26.0, 2.6, 5.2)


def front(file: Path, trials: int = 40) -> Path:
    """Draw the first trials of each experiment; above them the shares of all recorded ones that miss."""
    page, panels = plots.figure(1, len(EXPERIMENTS), width=7.0, height=3.5)
    for axes, one, limit in zip(panels, EXPERIMENTS, _LIMITS, strict=True):
        pairs = list(one.simulated(3, trials))
        for block, (kind, colour) in enumerate(_KINDS):
            tally, top = one.recorded[block], -block * (trials + 9.0)
            ends = [
                (answer.misses, answer.low - answer.truth, answer.high - answer.truth)
                for answer in (getattr(pair, kind) for pair in pairs)
            ]
            missed, low, high = (np.array(column) for column in zip(*ends, strict=True))
            heights = top - np.arange(trials)
            for some, strength in ((~missed, 0.4), (missed, 1.0)):
                axes.hlines(heights[some], 100 * low[some], 100 * high[some], colour, alpha=strength, lw=1.1)
            said = f"{kind}: {100 * tally.missed / tally.trials:.3g}% miss the truth"
            axes.text(-limit, top + 2.0, said, color=colour, fontsize=7.5)
            axes.vlines(0.0, heights[-1] - 1.0, top + 1.0, "#6e6e6e", lw=0.8)
        axes.set(xlim=(-limit, limit), yticks=[], xlabel="95% intervals, truth at 0 (% points)")
        axes.spines["left"].set_visible(False)
        axes.set_title(one.title, loc="left", fontweight="bold", pad=10)
    file.write_text(_short(drawn(page, "svg").decode("utf-8")), encoding="utf-8")
    return file


if __name__ == "__main__":
    matplotlib.use("Agg")
    print(front(Path(__file__).with_name("figures") / "demo.svg"))
