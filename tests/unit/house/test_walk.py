"""A datum walks through the house and never back: how many modules, how deep, how often back."""

from __future__ import annotations

import pytest
from walk import Walk, table, walks


@pytest.fixture(scope="module")
def found() -> dict[str, Walk]:
    return walks()


def test_a_fit_touches_few_modules_and_is_shallow(found: dict[str, Walk]) -> None:
    fit = found["ArmMeans.fit"]
    assert len(fit.modules) <= 15, f"{table(found)}\n" + "\n".join(sorted(fit.modules))
    assert fit.depth <= 9, f"{table(found)}"


def test_a_datum_seldom_returns_to_a_room_that_it_left(found: dict[str, Walk]) -> None:
    assert found["log to summary"].returns <= 8, f"{table(found)}"
