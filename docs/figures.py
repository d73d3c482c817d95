"""Draw the figures of a page: its blocks are run, and each picture is what ``ax`` is when the page shows it.

    python docs/figures.py docs/plots.md

A line ``![...](figures/name.svg)`` writes figures/name.svg beside the page, with coordinates to a hundredth
of a point. The same command writes the same bytes, with the same versions of matplotlib and NumPy.
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


if __name__ == "__main__":
    matplotlib.use("Agg")
    for argument in sys.argv[1:]:
        for file in draw(Path(argument).resolve()):
            print(file)
