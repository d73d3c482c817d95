"""What claims ask of adjustments that hold at all rounds at once: the ellipsoid and anytime-valid tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from adaptinf.claims.regression import adjusted_regression as claims
from adaptinf.inference.regression.facts.common import RegressionFacts
from adaptinf.inference.scores.least_squares import least_squares


class EllipsoidFacts(RegressionFacts):
    """What is known of noise and coefficients."""

    @property
    def sub_gaussian(self) -> dict[str, Any]:
        given = self.options.settings.get("noise_scale") is not None
        return {
            "scale": self.fit.found.noise_scale,
            "source": "specified by the user" if given else claims.HALF_RANGE(),
        }

    @property
    def norm_bound(self) -> dict[str, float]:
        return {"bound": self.fit.found.bound}

    @property
    def ridge(self) -> dict[str, float]:
        return {"ridge": self.fit.found.ridge}

    @property
    def beyond_bound(self) -> dict[str, float]:
        """A doubt about the bound, which is in the units of the coefficients."""
        data = self.data
        if data.nobs <= data.size:
            return {}
        norm = float(np.linalg.norm(least_squares(data.x, data.y, data.names).coefficient))
        return {"norm": norm} if norm > self.fit.found.bound else {}


class AnytimeFacts(RegressionFacts):
    """Which coefficients its mixture is made for."""

    @property
    def mixture(self) -> dict[str, float]:
        precision = self.options.settings.get("precision", 1.0)
        return {"precision": precision, "size": 1.0 / math.sqrt(precision)}
