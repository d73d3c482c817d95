"""Sums of products of rewards with further columns: what ratios and covariates need beside powers of rewards.

References
----------
Chan, Golub, LeVeque (1983), "Algorithms for computing the sample variance" (sums about a centre).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, permutations

import numpy as np

from adaptinf.typing import BoolArray, FloatArray, IntArray

POWERS = 4
"""Inverse powers of propensities, from 0, that go with products."""
_ROUNDING = 1e-15
Triple = tuple[int, int, int]
"""Positions of the factors of a product in (1, reward, further columns), in order."""


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """Sums over the rounds of B batches that chose each of K arms of products of three of v.

    Shapes: table (4, D, D, D, B, K), centres (D,), positive (D - 2, B, K).

    The D entries of v are 1, the reward and the further columns, less their centres (the first is 0), and
    ``table[p, a, b, c]`` is the sum of v_a v_b v_c / e^p, NaN where it is not known: as v_0 is 1 it holds
    sums of columns, of their squares and of cubes alike. `positive` counts entries of further columns above
    0, NaN where nobody counted; `roles` says of each whether it is a denominator or a covariate.
    """

    names: tuple[str, ...]
    roles: tuple[str, ...]
    table: FloatArray
    centres: FloatArray
    positive: FloatArray

    @property
    def size(self) -> int:
        """Entries of v."""
        return len(self.names) + 2

    def place(self, name: str) -> int:
        """Position of a further column in v."""
        return self.names.index(name) + 2

    def of(self, places: IntArray) -> Products:
        """The sums of some batches; places (b,)."""
        return replace(self, table=self.table[..., places, :], positive=self.positive[:, places])

    def about(self, centres: FloatArray) -> Products:
        """The same sums less other centres; centres (D,)."""
        shift = self.centres - centres
        if not np.any(shift):
            return self
        change = np.eye(self.size)
        change[:, 0] += shift
        return replace(self, table=transformed(self.table, change[..., None, None]), centres=centres)

    def by_share(self, propensities: FloatArray) -> Products:
        """The same rounds with propensities that are constant in a batch; propensities (B, K)."""
        return replace(self, table=over_powers(self.table[0], propensities))


def over_powers(sums: FloatArray, propensities: FloatArray) -> FloatArray:
    """Sums over powers of propensities that are constant in a batch; sums (..., B, K), propensities (B, K)."""
    safe = np.where(propensities > 0.0, propensities, 1.0)
    return np.stack([sums / safe**power for power in range(POWERS)])


def products_of(
    names: tuple[str, ...],
    roles: tuple[str, ...],
    moments: FloatArray,
    others: Mapping[Triple, FloatArray],
    centres: FloatArray,
    positive: FloatArray,
) -> Products:
    """Sums from those of powers of rewards and those of products with further columns.

    Shapes: moments (4, 4, B, K) by inverse power and power, others (4, B, K) each, centres (D,), positive
    (D - 2, B, K). Products that are not among the others are not known.
    """
    size = len(names) + 2
    table = np.full((POWERS, size, size, size, *moments.shape[2:]), np.nan)
    for triple in combinations_with_replacement(range(size), 3):
        known = moments[:POWERS, sum(triple)] if triple[2] < 2 else others.get(triple)
        if known is not None:
            for order in set(permutations(triple)):
                table[:, *order] = known
    return Products(names, roles, table, centres, positive)


def further_triples(n_further: int) -> list[Triple]:
    """Factors of all products that have a further column among them."""
    size = n_further + 2
    return [triple for triple in combinations_with_replacement(range(size), 3) if triple[2] >= 2]


def transformed(table: FloatArray, change: FloatArray) -> FloatArray:
    """Sums of products of linear combinations of v; table (4, D, D, D, B, K), change (E, D, B or 1, K or 1).

    Returns shape (4, E, E, E, B, K).
    """
    unknown = np.isnan(table)
    known = np.where(unknown, 0.0, table)
    found, size = _combined(known, change), _combined(np.abs(known), np.abs(change))
    # What is left of terms that cancel is their rounding.
    found = np.where(np.abs(found) <= _ROUNDING * size, 0.0, found)
    if not unknown.any():
        return found
    reach = _combined(unknown.astype(np.float64), (change != 0.0).astype(np.float64))
    return np.where(reach > 0.0, np.nan, found)


def _combined(table: FloatArray, change: FloatArray) -> FloatArray:
    """The transformation itself."""
    whole = np.broadcast_to(change, (*change.shape[:2], *table.shape[-2:]))
    for step in ("axnk,pxyznk->payznk", "bynk,payznk->pabznk", "cznk,pabznk->pabcnk"):
        table = np.einsum(step, whole, table)
    return table


def products_of_rows(
    names: tuple[str, ...],
    roles: tuple[str, ...],
    columns: FloatArray,
    propensity: FloatArray,
    place: IntArray,
    shape: tuple[int, int],
    centres: FloatArray,
) -> Products:
    """Sums of rounds; columns (T, D - 1) the reward and the others, propensity, place (T,) of the cells."""
    v = np.column_stack([np.ones(len(columns)), columns - centres[1:]])

    def total(values: FloatArray) -> FloatArray:
        return np.bincount(place, weights=values, minlength=shape[0] * shape[1]).reshape(shape)

    table = np.empty((POWERS, *(3 * (v.shape[1],)), *shape))
    weight = np.ones(len(v))
    for power in range(POWERS):
        for triple in combinations_with_replacement(range(v.shape[1]), 3):
            found = total(weight * v[:, triple[0]] * v[:, triple[1]] * v[:, triple[2]])
            for order in set(permutations(triple)):
                table[power, *order] = found
        weight = weight / propensity
    positive = np.stack([total((column > 0.0).astype(np.float64)) for column in columns.T[1:]])
    return Products(names, roles, table, centres, positive)


def joined_products(
    first: Products, second: Products, places: tuple[IntArray, IntArray], size: int
) -> Products:
    """Sums of the rounds of both, whose batches have places among `size`; places (B1,), (B2,)."""
    parts = (first, second.about(first.centres))
    table = np.zeros((*first.table.shape[:-2], size, first.table.shape[-1]))
    positive = np.zeros((len(first.names), size, first.table.shape[-1]))
    for part, place in zip(parts, places, strict=True):
        table[..., place, :] += part.table
        positive[:, place] += part.positive
    return replace(first, table=table, positive=positive)


def denominator_problems(name: str, values: FloatArray) -> list[str]:
    """What is wrong with numbers by round that a ratio is to be divided by; values (T,)."""
    kinds = {"missing": np.isnan(values), "infinite": np.isinf(values), "negative": values < 0.0}
    return _amiss(name, kinds) or [f"{name} is 0 in every round"] * (not values.any())


def covariate_problems(name: str, values: FloatArray) -> list[str]:
    """What is wrong with numbers by round that are to explain rewards; values (T,)."""
    return _amiss(name, {"missing": np.isnan(values), "infinite": np.isinf(values)})


def _amiss(name: str, kinds: Mapping[str, BoolArray]) -> list[str]:
    """How many rounds are of each kind; kinds (T,) each."""
    return [
        f"{name} is {kind} in {int(rows.sum())} of {len(rows)} rounds [row {int(np.argmax(rows))}]"
        for kind, rows in kinds.items()
        if rows.any()
    ]
