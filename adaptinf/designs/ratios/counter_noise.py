"""Noise of every node that the counters of a design release, by the law that their promise needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from adaptinf.designs.audit_trials import FAIR, NodeNoise, laplace_uniforms
from adaptinf.designs.ratios.counter_scores import earlier_counts
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class CounterNoise:
    """What each release of a counter adds to the noise of the node that ends with it.

    One counter an arm, of rewards clipped to [0, 1], or of these times vectors of shape (rounds, arms,
    dimension). A node's noise is that of the noisy sum less that of the sum where the node begins. Scales are
    the promised ones, not those that the releases state.
    """

    n_arms: int
    hybrid: bool
    trunk: float
    node: float
    gaussian: bool = False
    vectors: FloatArray | None = None
    fair: bool = False

    def __call__(self, seen: Transcripts) -> tuple[NodeNoise, ...]:
        """The nodes that at least half of the runs have."""
        runs, rounds = seen.actions.shape
        noise, fair = self._by_count(seen)
        counts = np.arange(1, rounds + 1)
        fresh = noise[:, :, counts] - noise[:, :, earlier_counts(self.hybrid, counts)]
        scale = self._scales(counts)[:, None]
        uniforms = special.ndtr(fresh / scale) if self.gaussian else laplace_uniforms(fresh, scale)
        kept = np.isfinite(uniforms[..., 0]).sum(axis=0) * 2 >= runs
        arm, place = np.nonzero(kept)
        dimension = noise.shape[3]
        names = [
            f"the noisy sum at count {count} of arm {one}"
            + (f", coordinate {k + 1}" if dimension > 1 else "")
            for one, count in zip(arm.tolist(), (place + 1).tolist(), strict=True)
            for k in range(dimension)
        ]
        groups, group_names = self._levels(counts[place])
        return (
            NodeNoise(
                uniforms[:, arm, place].reshape(runs, -1),
                names,
                np.repeat(groups, dimension),
                group_names,
                fair[:, arm, place + 1] if self.fair else np.zeros((0, 0)),
                [
                    f"the reward at count {count} of arm {one}"
                    for one, count in zip(arm.tolist(), (place + 1).tolist(), strict=True)
                ],
            ),
        )

    def _by_count(self, seen: Transcripts) -> tuple[FloatArray, FloatArray]:
        """Noise of the sums, shape (runs, arms, counts, dimension), and rewards, (runs, arms, counts)."""
        runs, rounds = seen.actions.shape
        steps = np.arange(rounds)
        clipped = np.clip(seen.rewards, 0.0, 1.0)[:, :, None]
        vectors = np.ones((rounds, self.n_arms, 1)) if self.vectors is None else self.vectors
        items = clipped * vectors[steps, seen.actions]
        released = seen.releases[..., 3].reshape(runs, rounds, -1)
        noise = np.full((runs, self.n_arms, rounds + 1, items.shape[2]), np.nan)
        fair = np.full((runs, self.n_arms, rounds + 1), np.nan)
        noise[:, :, 0] = 0.0
        for arm in range(self.n_arms):
            pulled = seen.actions == arm
            run, step = np.nonzero(pulled)
            count = pulled.cumsum(axis=1)[pulled]
            sums = np.cumsum(items * pulled[:, :, None], axis=1)
            noise[run, arm, count] = released[run, step] - sums[run, step]
            fair[run, arm, count] = seen.rewards[run, step] - FAIR
        return noise, fair

    def _scales(self, counts: IntArray) -> FloatArray:
        """Promised scale of the node that ends at each count."""
        level = np.frexp(counts.astype(np.float64))[1] - 1.0
        if not self.hybrid:
            return np.full(counts.shape, self.node)
        return np.where(counts & (counts - 1) == 0, self.trunk, self.node * level)

    def _levels(self, counts: IntArray) -> tuple[IntArray, list[str]]:
        """Level of the node at each count: the trunk's are powers of two."""
        level = np.frexp((counts & -counts).astype(np.float64))[1] - 1
        most = int(level.max(initial=0)) + 1
        names = [f"all nodes of level {k} of the tree" for k in range(most)]
        if self.hybrid:
            level = np.where(counts & (counts - 1) == 0, most, level)
            names.append("all noisy sums at powers of two")
        return level, names
