"""Pictures in a notebook: each cell that makes one shows it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import adaptinf

BEGIN = """
import adaptinf as ai
arms = ai.environments.BernoulliArms([0.3, 0.6])
log = ai.designs.Thompson(floor=0.1).run(arms, horizon=300, rng=0)
results = ai.ArmMeans(log).fit()
"""


def shown(cells: list[str], monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What each cell of a notebook displays, by kind."""
    root = str(Path(adaptinf.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.delenv("MPLBACKEND", raising=False)
    book: Any = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(book, timeout=240, kernel_name="python3").execute()
    return [
        [kind for output in cell.outputs for kind in output.get("data", {}) if kind.startswith("image/")]
        for cell in book.cells
    ]


@pytest.mark.slow
def test_three_pictures_in_three_cells_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [BEGIN, "ai.plots.forest(results)", "log.plot()", "ai.plots.propensities(log)", "results"]
    assert shown(cells, monkeypatch) == [[], ["image/png"], ["image/png"], ["image/png"], []]
