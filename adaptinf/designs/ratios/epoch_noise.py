"""Noise of the means that epochs release, by the law that their promise needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from adaptinf.designs.audit_trials import FAIR, NodeNoise, laplace_uniforms
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray

_END, _GROUP, _VALUE = 0, 2, 3


@dataclass(frozen=True, slots=True, eq=False)
class EpochMeanNoise:
    """Noise of noisy means: of an arm's clipped rewards since the last releases, `scale` over their number.

    Rounds whose status is `override` do not count.
    """

    scale: float
    normal: bool = False
    override: int = -1
    fair: bool = False

    def __call__(self, seen: Transcripts) -> tuple[NodeNoise, ...]:
        """Releases in their order: the first, the second, ... of each run."""
        runs, most = seen.releases.shape[:2]
        noise = np.full((runs, most), np.nan)
        for run in range(runs):
            noise[run] = self._standardised(seen, run)
        kept = np.isfinite(noise).sum(axis=0) * 2 >= runs
        uniforms = special.ndtr(noise[:, kept]) if self.normal else laplace_uniforms(noise[:, kept], 1.0)
        places = np.flatnonzero(kept)
        return (
            NodeNoise(
                uniforms,
                [f"release {place + 1}, a noisy mean," for place in places],
                np.zeros(places.size, dtype=np.int64),
                ["all noisy means"],
                seen.rewards - FAIR if self.fair else np.zeros((0, 0)),
                [f"the reward of round {step + 1}" for step in range(seen.rewards.shape[1])],
            ),
        )

    def _standardised(self, seen: Transcripts, run: int) -> FloatArray:
        """Noise of a run's releases in units of the promised scale."""
        actions, releases = seen.actions[run], seen.releases[run]
        counted = seen.statuses[run] != self.override
        clipped = np.clip(seen.rewards[run], 0.0, 1.0)
        noise = np.full(releases.shape[0], np.nan)
        ends = releases[:, _END]
        for row in np.flatnonzero(np.isfinite(ends)):
            end = int(ends[row])
            start = int(np.max(ends[ends < end], initial=0.0))
            mine = (actions[start:end] == int(releases[row, _GROUP])) & counted[start:end]
            count = max(int(mine.sum()), 1)
            mean = clipped[start:end][mine].sum() / count
            noise[row] = (releases[row, _VALUE] - mean) * count / self.scale
        return noise
