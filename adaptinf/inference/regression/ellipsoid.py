"""The self-normalised confidence ellipsoid for a linear model, valid at any time and for any choice of arms.

References
----------
Abbasi-Yadkori, Pal, Szepesvari (2011), "Improved algorithms for linear stochastic bandits".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy import linalg

from adaptinf.claims.regression import adjusted_regression as claims
from adaptinf.errors import ParameterError
from adaptinf.inference.regression.design import Adjustment, CoefficientFit
from adaptinf.inference.regression.facts.batched_facts import EllipsoidFacts
from adaptinf.inference.regression.joint_tests import JointTest, check_independent
from adaptinf.inference.results.hypotheses import LinearHypothesis, LinearTest, WaldTest
from adaptinf.parameters import NON_NEGATIVE, POSITIVE, check
from adaptinf.typing import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Ellipsoid:
    """Confidence ellipsoids for coefficients at every level; estimate (d,), triangle (d, d)."""

    estimate: FloatArray
    triangle: FloatArray
    log_volume: float
    noise_scale: float
    bound: float
    ridge: float

    @property
    def slack(self) -> float:
        """The part of the radius that allows for the bias of the ridge estimate."""
        return math.sqrt(self.ridge) * self.bound

    def radius(self, log_alpha: float) -> float:
        """The radius at level 1 - exp(log_alpha), in the norm defined by V."""
        return self.noise_scale * math.sqrt(self.log_volume - 2.0 * log_alpha) + self.slack

    def log_pvalue(self, distance: FloatArray) -> FloatArray:
        """Natural logarithms of the smallest alphas whose radius is below these distances."""
        reach = np.maximum(np.asarray(distance) - self.slack, 0.0) / self.noise_scale
        return np.asarray(np.minimum(0.0, 0.5 * (self.log_volume - reach**2)), dtype=np.float64)

    def lengths(self, rows: FloatArray) -> FloatArray:
        """Half-widths of combinations for an ellipsoid of radius 1, shape (q,); rows (q, d)."""
        half = linalg.solve_triangular(self.triangle, rows.T, trans="T")
        return np.asarray(np.linalg.norm(half, axis=0), dtype=np.float64)

    def distance(self, rows: FloatArray, values: FloatArray) -> tuple[float, float]:
        """Distance of the estimate from coefficients that satisfy rows @ coefficients = values.

        Shapes: rows (q, d), values (q,).
        """
        half = linalg.solve_triangular(self.triangle, rows.T, trans="T")
        # Both half'half and inner'inner equal rows V^-1 rows', so the triangular factor `inner` gives the
        # distance without forming that product.
        inner = np.linalg.qr(half, mode="r")
        gap = linalg.solve_triangular(inner, rows @ self.estimate - values, trans="T")
        distance = float(np.linalg.norm(gap))
        return distance, float(self.log_pvalue(np.array(distance)))


@dataclass(frozen=True, slots=True, eq=False)
class EllipsoidReference:
    """Tests and intervals for combinations of coefficients, all from one ellipsoid.

    Shapes: rows (k, d), values (k,).

    The intervals are valid for all combinations simultaneously, including those chosen after looking at the
    data.
    """

    ellipsoid: Ellipsoid
    rows: FloatArray
    values: FloatArray | None = None
    name: str = field(default="self-normalised ellipsoid", init=False)
    exact: bool = field(default=True, init=False)
    statistic, normal, uses_std_error = "z", False, False

    @property
    def estimate(self) -> FloatArray:
        """Estimates of the combinations, shape (k,)."""
        combined = self.rows @ self.ellipsoid.estimate
        return np.asarray(combined if self.values is None else combined - self.values, dtype=np.float64)

    @property
    def std_error(self) -> FloatArray:
        """Noise scale times half-widths at radius 1, shape (k,), which tests do not use."""
        return self.ellipsoid.noise_scale * self.ellipsoid.lengths(self.rows)

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (k,)."""
        return self.ellipsoid.log_pvalue(np.abs(self.estimate - null) / self.ellipsoid.lengths(self.rows))

    def interval(self, log_alpha: float) -> FloatArray:
        """Intervals at level 1 - exp(log_alpha), shape (k, 2)."""
        centre, half = self.estimate, self.ellipsoid.radius(log_alpha) * self.ellipsoid.lengths(self.rows)
        return np.column_stack((centre - half, centre + half))


def confidence_ellipsoid(
    design: FloatArray, response: FloatArray, noise_scale: float, bound: float, ridge: float = 1.0
) -> Ellipsoid:
    """Confidence ellipsoid for the coefficients of a linear model.

    Shapes: design (T, d), response (T,).

    Let V = lambda I + X'X, and let b be the ridge estimate. With probability at least 1 - alpha, the norm of
    b - beta with respect to V is at all rounds at most

        R sqrt(2 log(sqrt(det V / lambda^d) / alpha)) + sqrt(lambda) S,

    for any rule that chose the regressors from the past. A stopping rule therefore needs no further
    correction.
    """
    check(
        "the confidence ellipsoid",
        noise_scale=(noise_scale, POSITIVE),
        bound=(bound, NON_NEGATIVE),
        ridge=(ridge, POSITIVE),
    )
    size = design.shape[1]
    # A QR decomposition gives V = R'R without forming X'X, which would square the condition number.
    rows = np.vstack((math.sqrt(ridge) * np.eye(size), design))
    q, triangle = np.linalg.qr(rows)
    estimate = linalg.solve_triangular(triangle, q[size:].T @ response)
    log_volume = 2.0 * float(np.sum(np.log(np.abs(np.diag(triangle))))) - size * math.log(ridge)
    return Ellipsoid(estimate, triangle, max(log_volume, 0.0), float(noise_scale), float(bound), float(ridge))


@dataclass(frozen=True, slots=True, eq=False)
class EllipsoidTests:
    """Tests of combinations of coefficients by the self-normalised ellipsoid."""

    ellipsoid: Ellipsoid

    def linear_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> LinearTest:
        """Separate tests of q combinations, valid simultaneously."""
        reference = EllipsoidReference(self.ellipsoid, hypothesis.matrix, hypothesis.values)
        effect = reference.estimate + hypothesis.values
        return LinearTest(hypothesis.labels, effect, reference.std_error, hypothesis.values, reference, notes)

    def wald_test(self, hypothesis: LinearHypothesis, notes: tuple[str, ...]) -> WaldTest:
        """Joint test of q restrictions."""
        check_independent(hypothesis)
        distance, log_pvalue = self.ellipsoid.distance(hypothesis.matrix, hypothesis.values)
        statistic = (distance / self.ellipsoid.noise_scale) ** 2
        labels, law = hypothesis.labels, claims.ELLIPSOID_LAW()
        return JointTest(statistic, len(labels), log_pvalue, labels, notes, law=law)


def _fit(facts: EllipsoidFacts) -> CoefficientFit:
    settings, log = facts.options.settings, facts.profile.log
    scale, bound = settings.get("noise_scale"), settings.get("bound")
    if scale is None and log.reward_range is not None and math.isfinite(np.ptp(log.reward_range)):
        # By Hoeffding's lemma, bounded noise is sub-Gaussian with scale half its range.
        scale = 0.5 * float(np.ptp(log.reward_range))
    problems = []
    if scale is None:
        problems.append(
            "give noise_scale=, the sub-Gaussian scale of the noise: the log has no finite reward_range"
        )
    if bound is None:
        problems.append("give bound=, the largest possible Euclidean norm of the coefficients")
    if problems or scale is None or bound is None:
        raise ParameterError("the confidence ellipsoid", problems)
    found = confidence_ellipsoid(facts.data.x, facts.data.y, scale, bound, settings.get("ridge", 1.0))
    reference = EllipsoidReference(found, np.eye(facts.data.size))
    return CoefficientFit(
        estimate=found.estimate,
        std_error=reference.std_error,
        reference=reference,
        estimator="ridge",
        joint=EllipsoidTests(found),
        found=found,
    )


ELLIPSOID = Adjustment(
    name="ellipsoid",
    facts=EllipsoidFacts,
    fit=_fit,
    claims=claims.ELLIPSOID,
    options=("noise_scale", "bound", "ridge"),
)
"""This adjustment has tests valid at all rounds simultaneously, given bounds on noise and coefficients."""
