"""What the joint tests of the regression adjustments have in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.results.formatting import format_pvalue
from adaptinf.inference.results.hypotheses import LinearHypothesis, WaldTest
from adaptinf.texts import visible_lines

_DEPENDENT = 1e-10


@dataclass(frozen=True, slots=True)
class JointTest(WaldTest):
    """A joint test whose p-value is by a law of its own."""

    law: str = ""

    def __str__(self) -> str:
        count = f"{self.df} restriction{'s' if self.df != 1 else ''}"
        lines = [
            f"Joint test of {count}: statistic {self.statistic:.4f}, P = {format_pvalue(self.log_pvalue)} "
            f"({self.law})",
            *(f"  H0: {label}" for label in self.hypothesis),
            *(f"  {note}" for note in self.notes),
        ]
        return visible_lines(lines)


def check_independent(hypothesis: LinearHypothesis) -> None:
    """Refuse restrictions that depend on each other."""
    size = np.linalg.norm(hypothesis.matrix, axis=1, keepdims=True)
    values = np.linalg.svd(hypothesis.matrix / size, compute_uv=False)
    if len(size) > len(values) or values[-1] <= _DEPENDENT:
        shown = ", ".join(hypothesis.labels)
        raise ParameterError(
            "wald_test", [f"the restrictions depend on each other: leave out those that follow ({shown})"]
        )


def check_residuals(residuals: bool) -> None:
    """Refuse joint tests where the rewards do not vary about the fit."""
    if not residuals:
        raise InvalidForLog("a Wald test", "the rewards do not vary about the fit", ["the ellipsoid"])
