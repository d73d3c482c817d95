"""Draw the figures of a page: its blocks are run, and each picture is what ``ax`` is when the page shows it.

    python docs/figures.py docs/plots.md README.md

A line ``![...](figures/name.svg)`` writes figures/name.svg beside the page, with coordinates to a hundredth
of a point. The same command writes the same bytes, with the same versions of matplotlib and NumPy. The
picture of README and of the first page is drawn by `front`.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from adaptinf import plots
from adaptinf.cli.demonstration import EXPERIMENTS
from adaptinf.plots.picture_files import drawn

_PART = re.compile(r"^```python\n(.*?)^```$|^!\[[^\]]*\]\((figures/[\w-]+\.svg)\)$", re.MULTILINE | re.DOTALL)
_DRAWN = re.compile(r'(?<= d=")[^"]*|(?<= points=")[^"]*')
_NUMBER = re.compile(r"-?\d+\.\d+")
_CIRCLE = re.compile(r"M (\S+) (\S+) ((?:C(?: [-\d.]+){6} ){8})z")  # as matplotlib draws it, of eight curves


def _short(picture: str) -> str:
    """A picture whose paths have as many digits as can be seen, on one line each."""

    def path(match: re.Match[str]) -> str:
        digits = _NUMBER.sub(lambda found: _rounded(float(found.group())), match.group())
        return _CIRCLE.sub(_arcs, digits.replace("\n", ""))

    return _DRAWN.sub(path, picture)


def _rounded(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _arcs(match: re.Match[str]) -> str:
    """A circle as two arcs, in a tenth of the characters: a hatch of dots has hundreds."""
    curves = [[float(number) for number in curve.split()] for curve in match[3].split("C")[1:]]
    xs, ys = zip(*((curve[4], curve[5]) for curve in curves), strict=True)
    x, y = sum(xs) / 8, sum(ys) / 8
    radius = (max(xs) - min(xs)) / 2
    if any(abs(((a - x) ** 2 + (b - y) ** 2) ** 0.5 - radius) > 0.02 for a, b in zip(xs, ys, strict=True)):
        return match.group()
    left, size, middle = (_rounded(number) for number in (x - radius, radius, y))
    half = f"a{size} {size} 0 1 0"
    return f"M{left} {middle}{half} {_rounded(2 * float(size))} 0{half} -{_rounded(2 * float(size))} 0z"


def draw(page: Path) -> list[Path]:
    """Write all figures of a page, and say which."""
    files: list[Path] = []
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for match in _PART.finditer(page.read_text(encoding="utf-8")):
            block, figure = match.groups()
            if figure:
                files.append(page.parent / figure)
                files[-1].parent.mkdir(exist_ok=True)
                owner = names["ax"].get_figure(root=True)
                files[-1].write_text(_short(drawn(owner, "svg").decode("utf-8")), encoding="utf-8")
            else:
                with contextlib.redirect_stdout(io.StringIO()), contextlib.chdir(folder):
                    exec(compile(block, "example", "exec"), names)
    return files


FRONT = "docs/figures/demo.svg"
_KINDS = (("textbook", "#D55E00"), ("adaptinf", "#0072B2"))
_LIMITS = (26.0, 2.6, 5.2)


def front(file: Path, trials: int = 40) -> Path:
    """Draw the picture of README: the first trials of each experiment of ``adaptinf demo``."""
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
    for argument in sys.argv[1:]:
        path = Path(argument).resolve()
        for file in [front(path.parent / FRONT)] if path.name == "README.md" else draw(path):
            print(file)
