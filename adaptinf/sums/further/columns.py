"""Further columns beside the reward: denominators of ratio metrics, and covariates from before the choice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import number_array, refuse
from adaptinf.sums.cells import Cells
from adaptinf.sums.further.products import (
    COVARIATE,
    DENOMINATOR,
    Further,
    covariate_problems,
    denominator_problems,
    products_of_rows,
)
from adaptinf.sums.groups import group_names
from adaptinf.texts import absent
from adaptinf.typing import FloatArray, IntArray


def further_columns(subject: str, denominator: object, covariate: object) -> Further:
    """Denominators, then covariates, each one name, several or none."""
    below, before = group_names(DENOMINATOR, denominator), group_names(COVARIATE, covariate)
    both = [name for name in below if name in before]
    problem = f"{', '.join(both)}: a covariate was known before the choice, and a denominator was not"
    refuse(subject, [problem] if both else [])
    return Further((*below, *before), (DENOMINATOR,) * len(below) + (COVARIATE,) * len(before))


def columns_of_log(log: AdaptiveLog, further: Further) -> list[FloatArray]:
    """The columns' numbers by round, (T,) each."""
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
            problems.append(f"{role} {name} must hold numbers: make indicators of labels")
            continue
        amiss = denominator_problems if role == DENOMINATOR else covariate_problems
        problems += amiss(f"{role} {name}", values)
        found.append(values)
    refuse("Sums.of_log", problems)
    return found


def with_columns(cells: Cells, log: AdaptiveLog, further: Further, stratum: IntArray, in_first: Any) -> Cells:
    """Cells with products of further columns about their first batch's means; stratum, in_first (T,)."""
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
    """What sums with further columns can be asked."""

    cells: Cells

    @property
    def denominators(self) -> tuple[str, ...]:
        """Columns that mean rewards can be divided by the mean of."""
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
        """What a text on the sums says of them."""
        kinds = {"denominators": self.denominators, "covariates": self.covariates}
        return [f"  {kind}: {', '.join(map(repr, names))}" for kind, names in kinds.items() if names]
