"""Columns besides the reward: denominators of ratio metrics, and pre-assignment covariates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.log.validation.frame_columns import Findings
from adaptinf.parameters import number_array, refuse
from adaptinf.sums.cells import Cells, other_value
from adaptinf.sums.covariate_products import (
    COVARIATE,
    DENOMINATOR,
    Further,
    Products,
    Triple,
    covariate_problems,
    denominator_problems,
    products_of,
    products_of_rows,
)
from adaptinf.sums.groups import group_names
from adaptinf.texts import absent
from adaptinf.typing import FloatArray, IntArray


def further_columns(subject: str, denominator: object, covariate: object) -> Further:
    """The denominators, followed by the covariates; each argument may be a name, several names, or None."""
    below, before = group_names(DENOMINATOR, denominator), group_names(COVARIATE, covariate)
    both = [name for name in below if name in before]
    problem = f"{', '.join(both)}: covariates are known before the choice, but denominators are not"
    refuse(subject, [problem] if both else [])
    return Further((*below, *before), (DENOMINATOR,) * len(below) + (COVARIATE,) * len(before))


def columns_of_log(log: AdaptiveLog, further: Further) -> list[FloatArray]:
    """The values of each column, an array of shape (T,)."""
    found, problems = [], []
    for name, role in zip(further.names, further.roles, strict=True):
        canonical = log.columns.get(name, name)
        if role == COVARIATE and canonical not in log.context:
            problems.append(absent("context column", name, log.context, "the log has"))
            continue
        try:
            values = number_array(log.column(name))
        except ParameterError as error:
            problems += error.problems
            continue
        if values is None:
            problems.append(f"{role} {name} must contain numbers: convert labels to indicators")
            continue
        amiss = denominator_problems if role == DENOMINATOR else covariate_problems
        problems += amiss(f"{role} {name}", values)
        found.append(values)
    refuse("Sums.of_log", problems)
    return found


def with_columns(cells: Cells, log: AdaptiveLog, further: Further, stratum: IntArray, in_first: Any) -> Cells:
    """Cells with products of additional columns, centred at their means in the first batch."""
    if not further.names:
        return cells
    arrays, columns = log.arrays, columns_of_log(log, further)
    assert arrays.propensity is not None
    centres = np.array([0.0, cells.centre, *(float(column[in_first].mean()) for column in columns)])
    products = products_of_rows(
        further.names,
        further.roles,
        np.column_stack([arrays.reward, *columns]),
        arrays.propensity,
        stratum * log.n_arms + arrays.action,
        cells.smallest.shape,
        centres,
    )
    return replace(cells, products=products)


class WithFurther:
    """The additional columns that sums contain."""

    cells: Cells

    @property
    def denominators(self) -> tuple[str, ...]:
        """Columns whose means can serve as denominators of ratios of means."""
        return self._further.having(DENOMINATOR)

    @property
    def covariates(self) -> tuple[str, ...]:
        """Columns that can explain rewards."""
        return self._further.having(COVARIATE)

    @property
    def _further(self) -> Further:
        products = self.cells.products
        return Further() if products is None else Further(products.names, products.roles)

    def _further_lines(self) -> list[str]:
        """The lines that name these columns in a description of the sums."""
        kinds = {"denominators": self.denominators, "covariates": self.covariates}
        return [f"  {kind}: {', '.join(map(repr, names))}" for kind, names in kinds.items() if names]


ROLES = (DENOMINATOR, COVARIATE)
_PARTS = ("_sum_squares", "_sum_products")
_CUBES = ("_sum_cubes 1", "_sum_cubes 2", "_sum_cubes 3")
_SLACK = 1e-9
"""Largest relative rounding error allowed for in sums of floats."""


def further_roles(given: Mapping[str, object], found: Findings) -> dict[str, object]:
    """Columns keyed by role, such as "denominator_sum_squares"; the keys of sums of cubes are numbered."""
    roles = dict[str, object]()
    for role in ROLES:
        names = {part: given.get(f"{role}{part}") for part in ("", *_PARTS)}
        cubes = given.get(f"{role}_sum_cubes") or ()
        if given[role] is None:
            stray = [repr(f"{role}{part}") for part in _PARTS if names[part] is not None]
            if cubes:
                stray.append(repr(f"{role}_sum_cubes"))
            if stray:
                found.add(
                    "bad-column-name",
                    f"{', '.join(stray)} cannot be used without {role}=, the column of sums",
                )
            continue
        lacking = [repr(f"{role}{part}") for part in _PARTS if names[part] is None]
        if lacking:
            found.add("bad-column-name", f"{role}= also requires {' and '.join(lacking)}")
        roles |= {f"{role}{part}": name for part, name in names.items() if name is not None}
        if not isinstance(cubes, Sequence) or isinstance(cubes, str) or len(cubes) not in (0, 3):
            told = f"'{role}_sum_cubes' must name three columns, got {cubes!r:.80}"
            found.add("bad-column-name", told)
            continue
        roles |= {f"{role}{part}": name for part, name in zip(_CUBES, cubes, strict=False)}
    return roles


def check_further(sums: Mapping[str, FloatArray], further: Mapping[str, FloatArray], found: Findings) -> None:
    """Check the sums in each cell against each other and against those of the rewards; all shapes (R,)."""
    n, rewards, squared = (sums[name] for name in ("n", "sum", "sum_squares"))
    size = np.maximum(n, 1.0)
    for role in ROLES:
        if role not in further:
            continue
        first, squares, products = (further[f"{role}{part}"] for part in ("", *_PARTS))
        cubes = [further[f"{role}{part}"] for part in _CUBES if f"{role}{part}" in further]
        empty = (n == 0.0) & ((first != 0.0) | (squares != 0.0) | (products != 0.0))
        found.add_rows("sums-of-nobody", f"n is 0, but the sums of the {role} are not", empty)
        if role == DENOMINATOR:
            found.add_rows("bad-denominator", "the sum of the denominator is negative", first < 0.0)
            if not np.any(first):
                found.add("bad-denominator", "the denominator is 0 in every round")
        found.add_rows("negative-squares", f"{role}_sum_squares must be at least 0", squares < 0.0)
        some = (n > 0.0) & (squares >= 0.0)
        found.add_rows(
            "impossible-squares",
            f"the squared sum of the {role} exceeds n * {role}_sum_squares, which is impossible for any "
            "numbers",
            some & (first * first > n * squares * (1.0 + _SLACK)),
        )
        gap = products - rewards * first / size
        most = np.maximum(squared - rewards**2 / size, 0.0) * np.maximum(squares - first**2 / size, 0.0)
        found.add_rows(
            "impossible-products",
            f"{role}_sum_products is further from sum * {role} / n than the squares of rewards and {role} "
            "allow (Cauchy-Schwarz): check for products of other rounds, or of rewards before the centre "
            "was subtracted",
            some & (gap * gap > most + _SLACK * np.maximum(squared, 0.0) * squares),
        )
        root = np.sqrt(np.maximum(squared, 0.0)), np.sqrt(np.maximum(squares, 0.0))
        bounds = (root[0] ** 2 * root[1], root[0] * root[1] ** 2, root[1] ** 3)
        for cube, bound in zip(cubes, bounds, strict=False):
            found.add_rows(
                "impossible-cubes",
                f"a column of {role}_sum_cubes is larger than the squares allow, which is impossible for "
                "any numbers",
                np.abs(cube) > bound * (1.0 + _SLACK),
            )


def further_products(
    base: FloatArray,
    centre: float,
    names: Mapping[str, object],
    further: Mapping[str, FloatArray],
    spread: Callable[[FloatArray], FloatArray],
) -> Products | None:
    """Sums of products, not yet divided by propensities; None if there are no additional columns.

    Shape of base: (4, B, K), for the counts and the sums of rewards, squares and cubes. `spread` arranges a
    column of the table as an array of shape (B, K).
    """
    roles = tuple(role for role in ROLES if role in further)
    if not roles:
        return None
    others, positive = dict[Triple, FloatArray](), np.full((len(roles), *base.shape[1:]), np.nan)
    rewards = None if centre else other_value(base[1], base[2])
    for place, role in enumerate(roles, start=2):
        first, squares, products = (spread(further[f"{role}{part}"]) for part in ("", *_PARTS))
        found = {(0, 0, place): first, (0, place, place): squares, (0, 1, place): products}
        value = other_value(first, squares)
        if value is not None:  # If a column is 0 or one other value, its other sums follow.
            found |= {(1, place, place): value * products, (place, place, place): value * squares}
            positive[place - 2] = np.rint(first / value)
        if rewards is not None:
            found[1, 1, place] = rewards * products
        triples = ((1, 1, place), (1, place, place), (place, place, place))
        for triple, part in zip(triples, _CUBES, strict=True):
            if f"{role}{part}" in further:
                found[triple] = spread(further[f"{role}{part}"])
        others |= found
    told = tuple(str(names[role]) for role in roles)
    moments = np.broadcast_to(base, (4, *base.shape))
    repeated = {triple: np.broadcast_to(sums, (4, *sums.shape)) for triple, sums in others.items()}
    centres = np.array([0.0, centre, *[0.0] * len(roles)])
    return products_of(told, roles, moments, repeated, centres, positive)
