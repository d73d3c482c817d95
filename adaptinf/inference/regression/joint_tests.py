"""What the joint tests of the regression adjustments share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from adaptinf.claims.regression import regressions as claims
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.distributions.references import PartialReference
from adaptinf.inference.regression.design import JointTests
from adaptinf.inference.results.hypotheses import LinearHypothesis, LinearTest, WaldTest
from adaptinf.inference.results.tables import format_pvalue
from adaptinf.texts import visible_lines
from adaptinf.typing import BoolArray

# Restrictions are scaled to length 1, so a smaller singular value is the rounding error of a redundant
# restriction.
_DEPENDENT = 1e-10


@dataclass(frozen=True, slots=True)
class JointTest(WaldTest):
    """A joint test whose p-value comes from the method's own distribution."""

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


@dataclass(frozen=True, slots=True, eq=False)
class PartialTests:
    """Tests without coefficients that are based on too few outcomes; hidden has shape (p,)."""

    inner: JointTests
    names: Sequence[str]
    hidden: BoolArray

    def linear_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> LinearTest:
        """Separate tests of q combinations; combinations with a hidden coefficient have no standard error."""
        found = self.inner.linear_test(hypothesis, notes)
        without = np.any((hypothesis.matrix != 0.0) & self.hidden, axis=1)
        std_error = np.where(without, np.nan, found.std_error)
        return replace(found, std_error=std_error, reference=PartialReference(found.reference, without))

    def wald_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> WaldTest:
        """Joint test of q restrictions, none of which may involve a hidden coefficient."""
        used = np.any(hypothesis.matrix != 0.0, axis=0) & self.hidden
        if np.any(used):
            named = ", ".join(name for name, one in zip(self.names, used, strict=True) if one)
            reason, ways = claims.TOO_FEW_TO_TEST(terms=named), [claims.OTHER_COEFFICIENTS(), "t_test"]
            raise InvalidForLog("a joint test of these coefficients", reason, ways)
        return self.inner.wald_test(hypothesis, notes)


def check_independent(hypothesis: LinearHypothesis) -> None:
    """Refuse linearly dependent restrictions."""
    size = np.linalg.norm(hypothesis.matrix, axis=1, keepdims=True)
    values = np.linalg.svd(hypothesis.matrix / size, compute_uv=False)
    if len(size) > len(values) or values[-1] <= _DEPENDENT:
        shown = ", ".join(hypothesis.labels)
        raise ParameterError(
            "wald_test", [f"the restrictions are linearly dependent: omit those implied by others ({shown})"]
        )


def check_residuals(residuals: bool) -> None:
    """Refuse joint tests if all residuals are zero."""
    if not residuals:
        raise InvalidForLog("a Wald test", "all residuals are zero", ["adjustment='ellipsoid'"])
