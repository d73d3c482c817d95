"""Tests of combinations of coefficients by the laws of the regression adjustments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.regression.anytime import anytime_coefficients, anytime_wald
from adaptinf.inference.regression.batched import (
    BatchRegressions,
    batched_coefficients,
    batched_wald,
    drifting_wald,
)
from adaptinf.inference.regression.ellipsoid import Ellipsoid, EllipsoidReference
from adaptinf.inference.results.formatting import format_pvalue
from adaptinf.inference.results.hypotheses import LinearHypothesis, LinearTest, WaldTest
from adaptinf.typing import FloatArray

__all__ = ["AnytimeTests", "BatchedTests", "EllipsoidTests", "JointTest", "independent"]

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
        return "\n".join(lines)


def independent(hypothesis: LinearHypothesis) -> None:
    """Refuse restrictions that depend on each other."""
    size = np.linalg.norm(hypothesis.matrix, axis=1, keepdims=True)
    values = np.linalg.svd(hypothesis.matrix / size, compute_uv=False)
    if len(size) > len(values) or values[-1] <= _DEPENDENT:
        shown = ", ".join(hypothesis.labels)
        raise ParameterError(
            "wald_test", [f"the restrictions depend on each other: leave out those that follow ({shown})"]
        )


def _vary(residuals: bool) -> None:
    if not residuals:
        raise InvalidForLog("a Wald test", "the rewards do not vary about the fit", ["the ellipsoid"])


@dataclass(frozen=True, slots=True, eq=False)
class BatchedTests:
    """By batched least squares."""

    found: BatchRegressions
    test: str = "t"
    drift: bool = False

    def linear_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> LinearTest:
        """Separate tests of q combinations."""
        rows, values = hypothesis.matrix, hypothesis.values
        gap, std_error, reference = batched_coefficients(self.found, rows, self.test, values)
        return LinearTest(hypothesis.labels, gap + values, std_error, values, reference, notes)

    def wald_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> WaldTest:
        """Joint test of q restrictions."""
        independent(hypothesis)
        _vary(bool(np.all(self.found.scale > 0.0)))
        if self.drift:
            labels = tuple(f"{label} in every batch" for label in hypothesis.labels)
            note = "Sum over batches of F statistics, each mapped to chi-squared: coefficients may drift."
            found = drifting_wald(self.found, hypothesis.matrix, hypothesis.values)
            return WaldTest(*found, labels, (note, *notes))
        law = "chi-squared" if self.test == "normal" else "sum of multivariate Student vectors by batch"
        found = batched_wald(self.found, hypothesis.matrix, hypothesis.values, self.test)
        return JointTest(*found, hypothesis.labels, notes, law)


@dataclass(frozen=True, slots=True, eq=False)
class EllipsoidTests:
    """By the self-normalised ellipsoid."""

    ellipsoid: Ellipsoid

    def linear_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> LinearTest:
        """Separate tests of q combinations, valid together."""
        reference = EllipsoidReference(self.ellipsoid, hypothesis.matrix, hypothesis.values)
        effect = reference.estimate + hypothesis.values
        return LinearTest(hypothesis.labels, effect, reference.std_error, hypothesis.values, reference, notes)

    def wald_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> WaldTest:
        """Joint test of q restrictions."""
        independent(hypothesis)
        distance, log_pvalue = self.ellipsoid.distance(hypothesis.matrix, hypothesis.values)
        statistic = (distance / self.ellipsoid.noise_scale) ** 2
        law = "self-normalised ellipsoid, valid at any time"
        size = len(hypothesis.labels)
        return JointTest(statistic, size, log_pvalue, hypothesis.labels, notes, law)


@dataclass(frozen=True, slots=True, eq=False)
class AnytimeTests:
    """By anytime-valid t and F tests; estimate (d,), inverse (d, d)."""

    estimate: FloatArray
    inverse: FloatArray
    rest: float
    df: int
    precision: float

    def linear_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> LinearTest:
        """Separate tests of q combinations."""
        rows, values = hypothesis.matrix, hypothesis.values
        reference = anytime_coefficients(
            self.estimate, self.inverse, self.rest, self.df, rows, self.precision, values
        )
        effect = reference.estimate + values
        return LinearTest(hypothesis.labels, effect, reference.std_error, values, reference, notes)

    def wald_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> WaldTest:
        """Joint test of q restrictions."""
        independent(hypothesis)
        _vary(self.rest > 0.0)
        statistic, size, log_pvalue, _ = anytime_wald(
            self.estimate,
            self.inverse,
            self.rest,
            self.df,
            hypothesis.matrix,
            hypothesis.values,
            self.precision,
        )
        law = "anytime-valid F, by its Bayes factor"
        return JointTest(statistic, size, log_pvalue, hypothesis.labels, notes, law)
