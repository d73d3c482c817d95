"""When rewards are too rare or too skewed for the limit that an asymptotic sequence rests on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adaptinf.claims.rare_outcomes import SKEWNESS_UNKNOWN
from adaptinf.inference.scores.means import unevenness
from adaptinf.inference.sequences.choice import Quantity
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.inference.validity.rare import rare_cautions
from adaptinf.typing import FloatArray


def shape_cautions(
    profile: LogProfile, quantities: Sequence[Quantity], terms: Sequence[str], estimator: str
) -> tuple[str, ...]:
    """Cautions for quantities by their arms' rarest outcomes, and by the skewness of their worst mean."""
    arms = [list(one.codes) or list(range(profile.log.n_arms)) for one in quantities]
    uncommon = np.array([profile.uncommon[codes].min() for codes in arms])
    every = profile.squared_skewness * _unevenness(profile, estimator)
    skewness = np.array([every[codes].max() for codes in arms])
    unknown = () if profile.knows_skewness else (SKEWNESS_UNKNOWN(),)
    return (*rare_cautions(terms, uncommon, skewness, corrected=False), *unknown)


def _unevenness(profile: LogProfile, estimator: str) -> FloatArray:
    """What the squared skewness of rewards is multiplied by in that of each arm's mean; (K,), 0 if unused."""
    if estimator == "sample-mean" or not profile.knows_propensities:
        return unevenness(profile.pulls, profile.pulls)
    return unevenness(profile.inverse_squares, profile.inverse_cubes)
