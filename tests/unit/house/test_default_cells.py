"""The evidence on defaults: cells cover all pairs of levels, counts are kept whole, promises are judged."""

from __future__ import annotations

import csv
import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EVIDENCE = Path(__file__).parents[3] / "docs" / "evidence"


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(EVIDENCE)
    return importlib.import_module("default_cells")


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


def test_counts_are_read_as_they_were_kept(cells: ModuleType, tmp_path: Path) -> None:
    import default_counts as kept

    default = kept.Tally(200, 7, 1, 398, 380, 384, 366, 9, {"aipw, uniform": 150, "alee": 50})
    other = kept.Tally(100, 0, 0, 200, 190, 200, 190)
    tallies = {
        kept.Key("contrast", "default", "asymptotic"): default,
        kept.Key("contrast", "betting", "anytime"): other,
    }
    counts = {
        (3, "abc"): kept.Measured({0, 1, 2, 5}, tallies),
        (3, "def"): kept.Measured({7}, {kept.Key("contrast", "betting", "anytime"): kept.Tally(1)}),
    }
    kept.write(counts, tmp_path / "counts.csv")
    assert kept.read(tmp_path / "counts.csv") == counts
    assert kept.blocks_of(counts, 3) == {0, 1, 2, 5, 7}
    assert kept.of_cell(counts, 3)[kept.Key("contrast", "betting", "anytime")].logs == 101
    assert kept.read(tmp_path / "none.csv") == {}


@pytest.mark.parametrize(
    ("label", "intervals", "covered", "clean", "clean_covered", "expected"),
    [
        ("asymptotic", 4_000, 3_672, 4_000, 3_672, "held"),  # .918, and .93 less three errors is .9179
        ("asymptotic", 4_000, 3_671, 4_000, 3_671, "**short**"),
        ("asymptotic", 4_000, 3_600, 2_000, 1_900, "held if not cautioned"),
        ("asymptotic", 4_000, 3_600, 0, 0, "all cautioned"),
        ("asymptotic", 4_000, 3_600, 2_000, 1_820, "**short**"),
        ("exact", 4_000, 3_720, 2_000, 1_990, "**short**"),
        ("anytime", 4_000, 3_760, 4_000, 3_760, "held"),
        ("asymptotic", 0, 0, 0, 0, "refused"),
    ],
)
def test_a_promise_is_kept_by_all_intervals_or_by_those_without_a_caution(
    cells: ModuleType,
    label: str,
    intervals: int,
    covered: int,
    clean: int,
    clean_covered: int,
    expected: str,
) -> None:
    import default_counts
    import default_page

    tally = default_counts.Tally(
        intervals=intervals, covered=covered, clean=clean, clean_covered=clean_covered
    )
    assert default_page.verdict(label, tally) == expected
    tally.belied = 1
    assert default_page.verdict(label, tally) == ("states what is not so" if intervals else expected)


def test_what_held_below_the_promise_is_counted(cells: ModuleType) -> None:
    import default_counts
    import default_page

    key = default_counts.Key("contrast", default_page.DEFAULT, "asymptotic")
    entries = [
        (cells.read()[0], key, default_counts.Tally(intervals=200, covered=covered))
        for covered in (190, 184, 178, 170)  # the last is short
    ]
    wanted = "2 had measured coverage below 0.93, within three standard errors; the lowest is 0.890"
    assert default_page._below(entries) == wanted
    assert (
        default_page._below(entries[:1]) == "0 had measured coverage below 0.93, within three standard errors"
    )
