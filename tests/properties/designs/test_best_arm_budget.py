"""DP-BAI's pulls never exceed its budget, whatever the dimension of the arms that are left."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptinf.designs.best_arm.fixed_budget import max_det_schedule, printed_reserve, reserve


def rounds(sizes: list[int], ranks: list[int], budget: int) -> int:
    """Rounds that M phases take: ranks of the spans in `ranks`, T' the budget."""
    phases, total = len(ranks), 0
    for size, rank in zip(sizes, ranks, strict=False):
        pulled = rank if rank < math.sqrt(size) else size
        total += pulled * math.ceil(budget / (phases * pulled))
    return total


def longest(sizes: list[int], dimension: int, budget: int) -> int:
    """Most rounds that the phases can take: arms differ, so that two of them span a dimension at least."""
    total, phases = 0, len(sizes) - 1
    for place, size in enumerate(sizes[:-1]):
        ranks = range(1 if place else dimension, min(dimension, size) + 1)
        numbers = {rank if rank < math.sqrt(size) else size for rank in ranks}
        total += max(pulled * math.ceil(budget / (phases * pulled)) for pulled in numbers)
    return total


@pytest.mark.parametrize("dimension", range(1, 8))
def test_as_little_is_set_aside_as_can_be(dimension: int) -> None:
    """All spans and budgets: what (8) sets aside where it suffices, elsewhere the least that does."""
    more = []
    for n_arms in range(max(2, dimension), 2 * dimension**2 + 12):
        schedule = max_det_schedule(n_arms, dimension)
        sizes = schedule.sizes.tolist()
        needed = max(longest(sizes, dimension, budget) - budget for budget in range(1, 400))
        printed = printed_reserve(schedule, dimension)
        assert reserve(schedule, dimension) == max(printed, needed)
        more += [n_arms] * (needed > printed)
    assert more == {2: [4], 3: [5, 6, 7, 8, 9], 4: [*range(7, 17)]}.get(dimension, more)
    assert (len(more) > 0) == (dimension > 1)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_budget_is_exceeded(data: st.DataObject) -> None:
    dimension = data.draw(st.integers(1, 60), label="d")
    n_arms = data.draw(st.integers(max(2, dimension), 2 * dimension**2 + 20), label="K")
    schedule = max_det_schedule(n_arms, dimension)
    sizes = schedule.sizes.tolist()
    later = [data.draw(st.integers(1, min(dimension, size)), label="rank") for size in sizes[1:-1]]
    budget = data.draw(st.integers(1, 10**6), label="T'")
    horizon = budget + reserve(schedule, dimension)
    assert rounds(sizes, [dimension, *later], budget) <= horizon
    assert longest(sizes, dimension, budget) <= horizon


def test_the_printed_budget_is_exceeded() -> None:
    """K = 4 arms in the plane, T = 7: T' = 5 as printed, two pulls of each arm."""
    schedule = max_det_schedule(4, 2)
    assert rounds(schedule.sizes.tolist(), [2], 7 - printed_reserve(schedule, 2)) == 8
    assert rounds(schedule.sizes.tolist(), [2], 7 - reserve(schedule, 2)) == 4
    large = max_det_schedule(1_024, 32)
    assert (printed_reserve(large, 32), reserve(large, 32)) == (1_920, 2_176)
