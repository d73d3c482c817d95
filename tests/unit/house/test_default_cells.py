"""The list of cells of the evidence on defaults covers all pairs of levels, and is the one that was drawn."""

from __future__ import annotations

import csv
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EVIDENCE = Path(__file__).parents[3] / "docs" / "evidence"


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(EVIDENCE), *sys.path])
    spec = importlib.util.spec_from_file_location("default_cells", EVIDENCE / "default_cells.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_list_covers_all_pairs(cells: ModuleType) -> None:
    with cells.LIST.open(encoding="utf-8", newline="") as file:
        rows = [
            {name: text for name, text in row.items() if name != "number"} for row in csv.DictReader(file)
        ]
    assert len(rows) == 216
    assert all(cells.possible(row) for row in rows)
    assert cells.every_pair() <= set().union(*map(cells.pairs, rows))
    assert sum(cell.benign for cell in cells.read()) == 16


@pytest.mark.slow
def test_the_list_is_the_one_that_was_drawn(
    cells: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = cells.LIST.read_text(encoding="utf-8")
    monkeypatch.setattr(cells, "LIST", tmp_path / "list.csv")
    cells.write()
    assert cells.LIST.read_text(encoding="utf-8") == committed


@pytest.mark.parametrize("number", [0, 18, 54, 63, 117, 207])
def test_the_simulators_draw_arms_with_the_propensities_that_they_log(cells: ModuleType, number: int) -> None:
    import default_logs

    [cell] = [one for one in cells.read() if one.number == number]
    found = default_logs.simulate(
        default_logs.Cell(**{**vars(cell), "rounds": "200"}), 200, np.random.default_rng(number)
    )
    assert np.allclose(found.propensity.sum(axis=2), 1.0)
    chosen = np.arange(cell.n_arms) == found.arm[:, :, None]
    off = (chosen - found.propensity).sum(axis=1)  # sums of martingale differences, by run and arm
    if cell.one_arm_each:  # later rounds of a unit repeat its draw
        off = off / np.sqrt(200 / cell.n_units)
    z = off.sum(axis=0) / np.sqrt(np.maximum((off**2).sum(axis=0), 1e-9))
    assert np.all(np.abs(z) < 4.5)
