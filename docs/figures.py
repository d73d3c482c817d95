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

from adaptinf.plots.drawing.files import drawn

_PART = re.compile(r"^```python\n(.*?)^```$|^!\[[^\]]*\]\((figures/[\w-]+\.svg)\)$", re.MULTILINE | re.DOTALL)
_DRAWN = re.compile(r'(?<= d=")[^"]*|(?<= points=")[^"]*')
_NUMBER = re.compile(r"-?\d+\.\d+")


def _short(picture: str) -> str:
    """A picture whose paths have as many digits as can be seen, on one line each."""

    def rounded(match: re.Match[str]) -> str:
        return f"{float(match.group()):.2f}".rstrip("0").rstrip(".")

    def path(match: re.Match[str]) -> str:
        return _NUMBER.sub(rounded, match.group()).replace("\n", "")

    return _DRAWN.sub(path, picture)


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
