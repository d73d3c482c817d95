"""Sums by batch and arm, as arrays, which suffice for estimates whose weights are constant within batches.

References
----------
Chan, Golub, LeVeque (1983), "Algorithms for computing the sample variance" (sums about a centre).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from adaptinf.log.validation.frame_columns import SUM_TOLERANCE
from adaptinf.sums.covariate_products import Products, joined_products
from adaptinf.typing import BoolArray, FloatArray, IntArray

POWERS, DEGREES = 5, 4
_BINOMIAL = ((1,), (1, 1), (1, 2, 1), (1, 3, 3, 1))
_ROUNDING = 1e-15
_BY_BATCH = ("rounds", "inverse", "expected", "spread", "smallest", "nonzero")
_SAME = 1e-9
"""Largest relative difference at which the propensities in a batch are treated as equal."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Sums over the rounds of each of B batches in which each of K arms was chosen, and over all its rounds.

    Shapes: moments (5, 4, B, K), rounds (B,), inverse, expected, spread, smallest, nonzero (B, K).

    ``moments[p, j]`` is the sum of (y - centre)^j / e^p over the rounds that chose the arm, where e is its
    propensity, or NaN if that sum is unknown (as for j = 3 if there are no cubes, and for j > 0 if p = 4).
    Over all rounds of a batch, `inverse`, `expected` and `spread` are the sums of 1 / e, e and e (1 - e), and
    `smallest` is the smallest e. The first three are NaN if only the propensity of the chosen arm is known.
    `nonzero` is the number of rewards other than 0, or NaN if they were not counted. `products` contains the
    sums of products with further columns, if there are any.
    """

    moments: FloatArray
    rounds: FloatArray
    inverse: FloatArray
    expected: FloatArray
    spread: FloatArray
    smallest: FloatArray
    nonzero: FloatArray
    centre: float = 0.0
    products: Products | None = None

    @property
    def pulls(self) -> FloatArray:
        """Number of rounds in which each arm was chosen, shape (B, K)."""
        return np.asarray(self.moments[0, 0], dtype=np.float64)

    @property
    def knows_every(self) -> bool:
        """Whether the propensities of all arms are known, not only those of the chosen arms."""
        return not bool(np.isnan(self.expected).any())

    @property
    def possible(self) -> BoolArray:
        """Batches in which each arm could be chosen, shape (B, K)."""
        return np.asarray(self.smallest > 0.0)

    @property
    def constant(self) -> BoolArray:
        """Batches in which an arm's propensity is known to be constant, shape (B, K)."""
        mean = self.expected / self.rounds[:, None]
        return np.asarray(mean - self.smallest <= _SAME * mean)

    def of(self, places: IntArray) -> Cells:
        """The cells of the batches at the given positions; places has shape (b,)."""
        sums = {name: getattr(self, name)[places] for name in _BY_BATCH}
        products = None if self.products is None else self.products.of(places)
        return replace(self, moments=self.moments[..., places, :], products=products, **sums)

    def about(self, centre: float) -> Cells:
        """The sums of rewards relative to another centre."""
        shift = self.centre - centre
        return replace(self, moments=shifted(self.moments, shift), centre=centre) if shift else self


def sometimes_impossible(cells: Cells) -> bool:
    """Whether, in some batch, an arm could be chosen in some rounds but not in others."""
    return bool(np.any((cells.smallest == 0.0) & (cells.expected > 0.0)))


def left_no_room(counts: FloatArray, inverse: FloatArray, least: FloatArray) -> BoolArray:
    """Batches in which every chosen arm has a constant propensity, and these sum to 1; shape (B,).

    The arguments have shape (B, K): the number of rounds in which each arm was chosen, and the sum of 1 / e
    and the smallest e over these rounds.
    """
    total = np.where(counts > 0.0, least, 0.0).sum(axis=1)
    constant = chosen_with_one(counts, inverse, least).all(axis=1)
    return np.asarray(constant & (np.abs(total - 1.0) <= SUM_TOLERANCE))


def chosen_with_one(counts: FloatArray, inverse: FloatArray, least: FloatArray) -> BoolArray:
    """Whether an arm always had the same propensity when it was chosen, if ever; all shapes (B, K)."""
    same = np.where(counts > 0.0, inverse, 0.0) * np.where(counts > 0.0, least, 0.0)
    # If the propensity e is constant, the inverses add up to n / e.
    return np.asarray(counts - same <= _SAME * counts)


def shifted(moments: FloatArray, shift: FloatArray | float) -> FloatArray:
    """Moments after a constant is added to the rewards; shapes: moments (..., 4, B, K), shift (B, K)."""
    powers = [np.ones_like(np.asarray(shift, dtype=np.float64))]
    for _ in range(DEGREES - 1):
        powers.append(powers[-1] * shift)
    parts = [moments[..., degree, :, :] for degree in range(DEGREES)]
    found = []
    for degree, chances in enumerate(_BINOMIAL):
        terms = [chance * parts[low] * powers[degree - low] for low, chance in enumerate(chances)]
        total, size = sum(terms), sum(map(np.abs, terms))
        # If terms cancel, what remains is rounding error.
        found.append(np.where(np.abs(total) <= _ROUNDING * size, 0.0, total))
    return np.stack(found, axis=-3)


def other_value(first: FloatArray, squares: FloatArray) -> float | None:
    """The only nonzero value of the rewards, or None if the sums show that there are several.

    The arguments have shape (B, K): the sums of the rewards, and of their squares.

    If all rewards are 0 or v, then in every cell sum_squares equals v * sum, and sum / v is an integer.
    """
    total = float(first.sum())
    if total == 0.0:
        return 1.0 if not np.any(squares) else None
    value = float(squares.sum()) / total
    if value == 0.0 or not np.isfinite(value):
        return None
    count = first / value
    # Rounding is relative to one reward if a cell has none: sums may have been kept about another centre.
    close = _SAME * np.maximum(count, 1.0)
    proportional = np.abs(squares / value / value - count) <= close
    whole = np.abs(count - np.rint(count)) <= close
    return value if bool(np.all(proportional & whole)) else None


def cells_of_shares(
    base: FloatArray,
    rounds: FloatArray,
    propensities: FloatArray,
    nonzero: FloatArray,
    centre: float,
    products: Products | None = None,
) -> Cells:
    """Cells for batches with constant propensities.

    Shapes: base (4, B, K), for counts and for sums of rewards, squares and cubes; rounds (B,); propensities
    and nonzero (B, K).
    """
    safe = np.where(propensities > 0.0, propensities, 1.0)
    n = rounds[:, None]
    return Cells(
        np.stack([base / safe**power for power in range(POWERS)]),
        rounds,
        np.where(propensities > 0.0, n / safe, np.inf),
        n * propensities,
        n * propensities * (1.0 - propensities),
        propensities,
        nonzero,
        centre,
        None if products is None else products.by_share(propensities),
    )


def cells_of_rows(
    action: IntArray,
    reward: FloatArray,
    propensity: FloatArray,
    propensities: FloatArray | None,
    batch: IntArray,
    n_arms: int,
    centre: float,
) -> Cells:
    """Cells from the rows of a log; propensities has shape (T, K), and the other arrays have shape (T,)."""
    size = int(batch.max(initial=-1)) + 1
    shape, place = (size, n_arms), batch * n_arms + action
    above = reward - centre

    def total(values: FloatArray) -> FloatArray:
        sums = np.bincount(place, weights=values, minlength=size * n_arms)
        return sums.reshape(shape).astype(np.float64)

    weight, table = np.ones(len(reward)), np.empty((POWERS, DEGREES, *shape))
    for power in range(POWERS):
        part = weight
        for degree in range(DEGREES):
            table[power, degree] = total(part)
            part = part * above
        weight = weight / propensity
    sums, smallest = _over_all(propensities, batch, shape), np.full(shape, np.inf)
    every = np.broadcast_to(np.inf, shape) if propensities is None else propensities
    if propensities is None:
        np.minimum.at(smallest.reshape(-1), place, propensity)
    else:
        np.minimum.at(smallest, batch, every)
    rounds = np.bincount(batch, minlength=size).astype(np.float64)
    return Cells(table, rounds, *sums, smallest, total((reward != 0.0).astype(np.float64)), centre)


def _over_all(
    propensities: FloatArray | None, batch: IntArray, shape: tuple[int, int]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sums of 1 / e, e and e (1 - e) by batch and arm; NaN if the propensities of all arms are not known."""
    if propensities is None:
        unknown = np.full(shape, np.nan)
        return unknown, unknown, unknown
    with np.errstate(divide="ignore"):
        parts = (1.0 / propensities, propensities, propensities * (1.0 - propensities))
    inverse, expected, spread = (
        np.array(
            [np.bincount(batch, weights=column, minlength=shape[0]) for column in part.T], dtype=np.float64
        ).T
        for part in parts
    )
    return inverse, expected, spread


def joined(first: Cells, second: Cells, places: tuple[IntArray, IntArray], size: int) -> Cells:
    """Merge cells over different rounds; `places` gives the positions of their batches among `size`."""
    parts = (first, second.about(first.centre))
    n_arms = first.smallest.shape[1]

    def added(name: str, shape: tuple[int, ...]) -> FloatArray:
        whole = np.zeros(shape)
        for part, place in zip(parts, places, strict=True):
            # NaN marks an unknown sum, and a sum that one part lacks is unknown for both together.
            whole[..., place, :] += getattr(part, name)
        return whole

    products = None
    if first.products is not None and second.products is not None:
        products = joined_products(first.products, second.products, places, size)
    rounds, smallest = np.zeros(size), np.full((size, n_arms), np.inf)
    for part, place in zip(parts, places, strict=True):
        rounds[place] += part.rounds
        smallest[place] = np.minimum(smallest[place], part.smallest)
    inverse, expected, spread = (added(name, (size, n_arms)) for name in ("inverse", "expected", "spread"))
    return Cells(
        added("moments", (POWERS, DEGREES, size, n_arms)),
        rounds,
        inverse,
        expected,
        spread,
        smallest,
        added("nonzero", (size, n_arms)),
        first.centre,
        products,
    )
