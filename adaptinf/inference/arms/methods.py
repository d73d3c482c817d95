"""The methods of `ArmMeans` and `Contrast`; names, defaults, refusals and rows of `recommend` follow."""

from __future__ import annotations

from adaptinf.inference.arms.alee import ALEE
from adaptinf.inference.arms.batched import BATCHED
from adaptinf.inference.arms.circumstances.from_releases import RELEASED
from adaptinf.inference.arms.sample_mean import SAMPLE_MEAN
from adaptinf.inference.arms.weighted import AIPW, IPW

METHODS = (
    SAMPLE_MEAN,
    IPW,
    AIPW,
    ALEE,
    BATCHED,
    RELEASED,
)
