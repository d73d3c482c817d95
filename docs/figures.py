"""Draw the figures of a page: its blocks are run, and each picture is what ``ax`` is when the page shows it.

    python docs/figures.py docs/plots.md

A line ``![...](figures/name.png)`` writes figures/name.png and figures/name.svg beside the page. The same
command writes the same bytes, with the same versions of matplotlib and NumPy.
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

from adaptinf import plots

_PART = re.compile(r"^```python\n(.*?)^```$|^!\[[^\]]*\]\((figures/[\w-]+)\.png\)$", re.MULTILINE | re.DOTALL)


def draw(page: Path) -> list[Path]:
    """Write all figures of a page, and say which."""
    files: list[Path] = []
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for match in _PART.finditer(page.read_text(encoding="utf-8")):
            block, figure = match.groups()
            if figure:
                (page.parent / figure).parent.mkdir(exist_ok=True)
                files += plots.save(names["ax"], page.parent / figure, dpi=200)
            else:
                with contextlib.redirect_stdout(io.StringIO()), contextlib.chdir(folder):
                    exec(compile(block, "example", "exec"), names)
    return files


if __name__ == "__main__":
    matplotlib.use("Agg")
    for argument in sys.argv[1:]:
        for file in draw(Path(argument).resolve()):
            print(file)
