"""The evidence on comparisons: cells, classes, simulators with their truths, and verdicts."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

EVIDENCE = Path(__file__).parents[3] / "docs" / "evidence"
NAMES = ("cells", "logs", "fits", "page")


@pytest.fixture
def comparison(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    monkeypatch.syspath_prepend(EVIDENCE)
    return SimpleNamespace(**{name: importlib.import_module(f"comparison_{name}") for name in NAMES})


def test_the_list_crosses_designs_moves_and_lengths(comparison: SimpleNamespace) -> None:
    cells: ModuleType = comparison.cells
    grid = [cell for cell in cells.read() if not cell.in_first_table]
    assert len(grid) == len({(cell.design, cell.move, cell.rounds) for cell in grid}) == 160
    levels = [{name: getattr(cell, name) for name in cells.FACTORS} for cell in grid]
    assert all(map(cells.possible, levels))
    assert cells.every(2) <= set().union(*(cells.tuples(one, 2) for one in levels))
    assert len(set().union(*(cells.tuples(one, 3) for one in levels))) > 0.97 * len(cells.every(3))


def test_the_lists_are_those_that_were_drawn(
    comparison: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells: ModuleType = comparison.cells
    committed = [path.read_text(encoding="utf-8") for path in (cells.LIST, cells.CLASSES)]
    for name in ("LIST", "CLASSES"):
        monkeypatch.setattr(cells, name, tmp_path / name)
    cells.write()
    assert [path.read_text(encoding="utf-8") for path in (cells.LIST, cells.CLASSES)] == committed
    classes = cells.read_classes()
    assert set(classes) == {(cell.number, *one) for cell in cells.read() for one in cells.asked(cell)}


def cell_of(comparison: SimpleNamespace, **levels: str) -> object:
    """A cell that has some levels, else those of a plain one."""
    plain = {"design": "Thompson", "move": "none", "rounds": "1000", "rewards": "normal", "arms": "4"}
    return comparison.cells.Cell(0, **{**plain, "gap": "0", **levels})


DESIGNS = (
    "coin",
    "hourly shares",
    "Thompson",
    "top-two Thompson",
    "EXP3",
    "softmax",
    "epsilon-greedy",
    "batched Thompson, 4 arms",
    "contextual Thompson",
)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("move", ["hourly", "an arm joins"])
def test_arms_are_drawn_with_the_shares_that_are_told(
    comparison: SimpleNamespace, design: str, move: str
) -> None:
    cell = cell_of(comparison, design=design, move=move, rounds="200", rewards="0/1")
    found = comparison.logs.simulate(cell, 200, np.random.default_rng(7))
    assert np.allclose(found.share.sum(axis=2), 1.0)
    off = ((np.arange(4) == found.arm[:, :, None]) - found.share).sum(axis=1)
    assert np.all(np.abs(off.sum(axis=0)) < 4.5 * np.sqrt((off**2).sum(axis=0)))
    there = comparison.logs.there(cell)
    assert found.share[:, ~there].max(initial=0.0) == 0.0
    least = 0.5 * cell.floor if move == "hourly" and cell.adapts else cell.floor
    assert found.share[:, there].min() >= least - 1e-12


MOVES = ("none", "linear", "hourly", "step", "weekend", "the effect turns", "AR(.5)", "an arm joins")


@pytest.mark.parametrize("rewards", ["normal", "0/1"])
@pytest.mark.parametrize("move", MOVES)
def test_the_truth_is_the_mean_of_what_arms_would_have_earned(
    comparison: SimpleNamespace, move: str, rewards: str
) -> None:
    """By inverse shares: the mean of A, and the last arm against A in common rounds, under a coin."""
    cell = cell_of(comparison, design="coin", move=move, gap=".3 sd", rewards=rewards)
    found = comparison.logs.simulate(cell, 300, np.random.default_rng(11))
    together = comparison.logs.there(cell).all(axis=1)
    first, last = (
        np.where(found.arm == arm, found.reward / np.maximum(found.share[:, :, arm], 1e-9), 0.0)
        for arm in (0, cell.n_arms - 1)
    )
    apart = (last - first)[:, together].mean(axis=1) - (found.truth[:, -1] - found.truth[:, 0])
    for off in (first.mean(axis=1) - found.truth[:, 0], apart):
        assert abs(off.mean()) < 4.5 * off.std() / np.sqrt(len(off))
    unit = comparison.logs.unit_of(cell)
    assert np.allclose(found.truth[:, 0] - found.truth[:, 1], 0.3 * unit)
    assert found.truth.shape == (300, 4)


def test_effects_by_context_are_those_of_the_rewards(comparison: SimpleNamespace) -> None:
    cell = cell_of(comparison, design="contextual Thompson", gap=".3 sd")
    found = comparison.logs.simulate(cell, 100, np.random.default_rng(3))
    share = np.take_along_axis(found.share, found.arm[:, :, None], axis=2)[:, :, 0]
    lead = found.reward / share * ((found.arm == 0) * 1.0 - (found.arm == 3))
    effects = comparison.logs.effects_by_context(cell)
    assert sum(effects) == 0.0  # so that the truth is that of both contexts together
    for context, more in zip((-0.5, 0.5), effects, strict=True):
        paid = np.array([row[x == context].mean() for row, x in zip(lead, found.context, strict=True)])
        assert abs(paid.mean() - (0.3 + more)) < 4.5 * paid.std() / 10.0


def test_shares_of_the_best_are_those_of_draws(comparison: SimpleNamespace) -> None:
    rng = np.random.default_rng(5)
    center, size = np.array([[0.1, 0.0, -0.2, 0.3]]), np.array([[0.2, 0.1, 0.3, 0.25]])
    drawn = center + size * rng.standard_normal((400_000, 4))
    best = np.bincount(drawn.argmax(axis=1), minlength=4) / len(drawn)
    shares = comparison.logs.best_shares(center, size)
    assert np.allclose(shares[0], best, atol=0.01)
    again = np.zeros(4)
    for first in range(4):  # the challenger is best among draws whose best is another
        rest = np.delete(np.arange(4), first)
        again[rest] += best[first] * best[rest] / best[rest].sum()
    assert np.allclose(comparison.logs.top_two(best[None])[0], 0.5 * (best + again), atol=1e-12)


@pytest.mark.parametrize(
    ("standard", "numbers", "expected"),
    [
        # .93 less three errors of 1,000 logs is .9058, whatever the number of intervals
        ("coverable", {"intervals": 4_000, "covered": 3_624}, "held"),
        ("coverable", {"intervals": 4_000, "covered": 3_623}, "**short**"),
        ("coverable", {"intervals": 4_000, "covered": 3_624, "cautioned": 1_000}, "held"),
        ("coverable", {"refused": 1_000}, "refused"),
        ("benign", {"intervals": 4_000, "covered": 3_624, "cautioned": 50}, "held"),
        ("benign", {"intervals": 4_000, "covered": 3_624, "cautioned": 51}, "**cautioned without need**"),
        ("benign", {"intervals": 3_799, "covered": 3_799}, "**no answer**"),
        ("contradicted", {"intervals": 1_000, "covered": 500, "cautioned": 600, "refused": 300}, "told"),
        ("contradicted", {"intervals": 1_000, "covered": 500, "cautioned": 899}, "**short**"),
        ("contradicted", {"intervals": 1_000, "covered": 950}, "untold"),
    ],
)
def test_a_table_is_judged_by_its_class(
    comparison: SimpleNamespace, standard: str, numbers: dict[str, int], expected: str
) -> None:
    named = {"told": comparison.page.TOLD, "untold": comparison.page.UNTOLD}
    tally = comparison.fits.Compared(logs=1_000, asked=4_000, **numbers)
    assert comparison.page.verdict(standard, tally) == named.get(expected, expected)


def test_answers_are_counted(comparison: SimpleNamespace) -> None:
    fits: ModuleType = comparison.fits
    limits = [[0.0, 1.0], [0.5, 1.0], [np.nan, 1.0], [-np.inf, 1.0]]
    answer = fits.of_limits(limits, [0.25, 0.25, 0.25, 0.25], ("a caution",))
    tally = fits.tally(lambda: answer, 4)
    assert (tally.intervals, tally.covered, tally.asked, tally.length) == (2, 1, 4, 1_500_000)
    assert (tally.logs, tally.cautioned, tally.clean) == (1, 1, 0)
    assert comparison.page.price(tally, fits.Compared(intervals=1, length=500_000)) == 1.5
