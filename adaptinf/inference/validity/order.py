"""The order in which methods are recommended, as one list for each target."""

from __future__ import annotations

from collections.abc import Sequence

Rank = tuple[int, ...]
"""A position in an order of recommendation; ranks are compared as tuples."""


class Order:
    """Cases of methods in the order of recommendation; `order[case]` is the rank of a case.

    Examples
    --------
    >>> from adaptinf.inference.validity.order import Order, just_before
    >>> order = Order(["t", "z"])
    >>> order["t"] < just_before(order["z"]) < order["z"]
    True
    """

    def __init__(self, cases: Sequence[str]) -> None:
        self.cases = tuple(cases)
        self._place = {case: (place,) for place, case in enumerate(self.cases)}
        assert len(self._place) == len(self.cases), "a case occurs twice"

    def __getitem__(self, case: str) -> Rank:
        return self._place[case]


def just_before(rank: Rank) -> Rank:
    """A rank before all ranks that start with `rank`, for a variant that is better than the method itself."""
    return (*rank[:-1], rank[-1] - 1, 1)
