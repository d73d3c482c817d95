"""Sums of products of rewards with additional columns, as required for ratios and covariates.

References
----------
Chan, Golub, LeVeque (1983), "Algorithms for computing the sample variance" (sums about a centre).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement, permutations

import numpy as np

from adaptinf.log.validation.frame_columns import EXACT
from adaptinf.typing import BoolArray, FloatArray, IntArray

POWERS = 4
"""Number of inverse powers of propensities, starting with power 0, by which products are multiplied."""
_ROUNDING = 1e-15
Triple = tuple[int, int, int]
"""Positions of a product's three factors in the list (1, reward, further columns), in increasing order."""


DENOMINATOR, COVARIATE = "denominator", "covariate"


@dataclass(frozen=True, slots=True)
class Further:
    """Names of additional columns, each with its role."""

    names: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()

    def having(self, role: str) -> tuple[str, ...]:
        """The columns with one role."""
        return tuple(name for name, one in zip(self.names, self.roles, strict=True) if one == role)


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """Sums of products of three entries of v, over the rounds of each batch in which an arm was chosen.

    Shapes: table (4, D, D, D, B, K), centres (D,), positive (D - 2, B, K).

    For each of B batches and K arms, the D entries of v are 1, the reward and the further columns, minus
    their centres (of which the first is 0). ``table[p, a, b, c]`` is the sum of v_a v_b v_c / e^p, or NaN if
    the sum is unknown. Since v_0 is 1, the table also contains the sums of the columns, of their squares and
    of their cubes. `positive` is the number of positive entries in each further column, or NaN if they were
    not counted; `roles` states whether each column is a denominator or a covariate.
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

    def only(self, names: Sequence[str]) -> Products:
        """The sums for only the named additional columns, in the order given."""
        places = [self.names.index(name) for name in names]
        kept = np.array([0, 1, *(place + 2 for place in places)])
        return Products(
            tuple(names),
            tuple(self.roles[place] for place in places),
            self.table[:, kept[:, None, None], kept[None, :, None], kept[None, None, :]],
            self.centres[kept],
            self.positive[places],
        )

    def of(self, places: IntArray) -> Products:
        """The sums for the batches at the given positions; places has shape (b,)."""
        return replace(self, table=self.table[..., places, :], positive=self.positive[:, places])

    def about(self, centres: FloatArray) -> Products:
        """The sums with these centres instead of the current ones; centres has shape (D,)."""
        shift = self.centres - centres
        if not np.any(shift):
            return self
        change = np.eye(self.size)
        change[:, 0] += shift
        return replace(self, table=transformed(self.table, change[..., None, None]), centres=centres)

    def by_share(self, propensities: FloatArray) -> Products:
        """The sums if these propensities are constant within each batch; propensities has shape (B, K)."""
        return replace(self, table=over_powers(self.table[0], propensities))


def over_powers(sums: FloatArray, propensities: FloatArray) -> FloatArray:
    """Sums divided by powers 0 to 3 of propensities; shapes: sums (..., B, K), propensities (B, K)."""
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
    """The table of products, from sums of powers of rewards and sums of products with additional columns.

    Shapes: moments (4, 4, B, K), by power of 1 / e and then by power of the reward; each of others (4, B, K);
    centres (D,); positive (D - 2, B, K). Products that are not supplied become NaN.
    """
    size = len(names) + 2
    table = np.full((POWERS, size, size, size, *moments.shape[2:]), np.nan)
    for triple in combinations_with_replacement(range(size), 3):
        known = moments[:POWERS, sum(triple)] if triple[2] < 2 else others.get(triple)
        if known is not None:
            for a, b, c in set(permutations(triple)):
                table[:, a, b, c] = known
    return Products(names, roles, table, centres, positive)


def further_triples(n_further: int) -> list[Triple]:
    """The factors of every product of three that includes an additional column."""
    size = n_further + 2
    return [triple for triple in combinations_with_replacement(range(size), 3) if triple[2] >= 2]


def transformed(table: FloatArray, change: FloatArray) -> FloatArray:
    """Sums of products of linear combinations of the entries of v, whose coefficients are in `change`.

    Shapes: table (4, D, D, D, B, K); change (E, D, B or 1, K or 1); the result (4, E, E, E, B, K).
    """
    unknown = np.isnan(table)
    # Since 0 times NaN is NaN, an unknown product would also spoil combinations that do not contain it.
    known = np.where(unknown, 0.0, table)
    found, size = _combined(known, change), _combined(np.abs(known), np.abs(change))
    # If terms cancel, what remains is rounding error.
    found = np.where(np.abs(found) <= _ROUNDING * size, 0.0, found)
    if not unknown.any():
        return found
    reach = _combined(unknown.astype(np.float64), (change != 0.0).astype(np.float64))
    return np.where(reach > 0.0, np.nan, found)


def _combined(table: FloatArray, change: FloatArray) -> FloatArray:
    """Apply the change to each of the three factors."""
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
    """Sums over the rows of a log.

    Shapes: columns (T, D - 1), with the reward first; propensity (T,); place (T,), the position of each row's
    cell.
    """
    v = np.column_stack([np.ones(len(columns)), columns - centres[1:]])

    def total(values: FloatArray) -> FloatArray:
        sums = np.bincount(place, weights=values, minlength=shape[0] * shape[1])
        return sums.reshape(shape).astype(np.float64)

    table = np.empty((POWERS, *(3 * (v.shape[1],)), *shape))
    weight = np.ones(len(v))
    for power in range(POWERS):
        for triple in combinations_with_replacement(range(v.shape[1]), 3):
            found = total(weight * v[:, triple[0]] * v[:, triple[1]] * v[:, triple[2]])
            for a, b, c in set(permutations(triple)):
                table[power, a, b, c] = found
        weight = weight / propensity
    positive = np.stack([total((column > 0.0).astype(np.float64)) for column in columns.T[1:]])
    return Products(names, roles, table, centres, positive)


def further_sums(products: Products) -> dict[str, FloatArray]:
    """The sums other than those of powers of rewards, keyed by name; each has shape (B, K)."""
    found = {
        f"product_{power}_{a}_{b}_{c}": products.table[power, a, b, c]
        for power in range(POWERS)
        for a, b, c in further_triples(len(products.names))
    }
    counted = enumerate(products.positive)
    return found | {f"positive_{place}": count for place, count in counted}


def read_sums(
    further: tuple[tuple[str, ...], tuple[str, ...], Sequence[float]],
    whole: Callable[[str], FloatArray],
    moments: FloatArray,
    highest: int = POWERS - 1,
) -> Products:
    """Products from named sums; `further` contains the names, the roles and the centres of the columns.

    Shapes: moments (5, 4, B, K), of rewards minus the same centre; each named sum (B, K). Sums with powers of
    inverse propensities above `highest` are unknown.
    """
    names, roles, centres = further
    unknown = np.full(moments.shape[2:], np.nan)
    others = {
        triple: np.stack(
            [
                whole(f"product_{power}_{'_'.join(map(str, triple))}") if power <= highest else unknown
                for power in range(POWERS)
            ]
        )
        for triple in further_triples(len(names))
    }
    positive = np.stack([whole(f"positive_{place}") for place in range(len(names))])
    return products_of(names, roles, moments, others, np.array(centres), positive)


def joined_products(
    first: Products, second: Products, places: tuple[IntArray, IntArray], size: int
) -> Products:
    """Merge products over different rounds; `places` gives the positions of their batches among `size`."""
    parts = (first, second.about(first.centres))
    table = np.zeros((*first.table.shape[:-2], size, first.table.shape[-1]))
    positive = np.zeros((len(first.names), size, first.table.shape[-1]))
    for part, place in zip(parts, places, strict=True):
        table[..., place, :] += part.table
        positive[:, place] += part.positive
    return replace(first, table=table, positive=positive)


def denominator_problems(name: str, values: FloatArray) -> list[str]:
    """Problems with a column used as the denominator of a ratio; values has shape (T,)."""
    kinds = _unusable(values) | {"negative": values < 0.0}
    if problems := _amiss(name, kinds):
        return problems
    return [] if values.any() else [f"{name} is 0 in every round"]


def covariate_problems(name: str, values: FloatArray) -> list[str]:
    """Problems with a column used as a covariate; values has shape (T,)."""
    return _amiss(name, _unusable(values))


def _unusable(values: FloatArray) -> dict[str, BoolArray]:
    """The entries whose powers cannot be summed, keyed by problem; values has shape (T,)."""
    large = np.isfinite(values) & (np.abs(values) >= EXACT)
    return {
        "missing": np.isnan(values),
        "infinite": np.isinf(values),
        "2**53 or more in absolute value": large,
    }


def _amiss(name: str, kinds: Mapping[str, BoolArray]) -> list[str]:
    """A message for each problem that occurs, with the number of rounds affected; each of kinds (T,)."""
    return [
        f"{name} is {kind} in {int(rows.sum())} of {len(rows)} rounds [row {int(np.argmax(rows))}]"
        for kind, rows in kinds.items()
        if rows.any()
    ]
