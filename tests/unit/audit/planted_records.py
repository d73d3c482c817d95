"""Faults in locally private designs, DP-ConSE, stopping rules and counters."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
from planted import Coins, Planted, quiet_from

from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.audit.privacy.designs.local_audits import BinReplay
from adaptinf.designs import DPNAS, DPConSE, LDPBandit, LDPLinear
from adaptinf.designs.local.bins_kernel import ldp_program
from adaptinf.designs.stopping import stopping_kernel as kernel
from adaptinf.privacy import Counter
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.transcripts import Transcripts


class FaultyReports(Planted, LDPBandit):
    """All participants report on one bin, and there is one check: the trials on which noise is tested."""

    def covers(self, environment: Environment, horizon: int) -> bool:
        return not self.auxiliary

    def simulate(self, tables: Any, world: Any, rng: np.random.Generator, results: Any) -> None:
        record = results.record
        runs, rounds = record.actions.shape
        arms = rng.integers(0, tables.n_arms, size=(runs, rounds))
        coins = Coins(world, runs, rng)
        paid = np.stack([coins.rewards(step, arms[:, step])[0] for step in range(rounds)], axis=1)
        record.actions[:], record.releases[:] = arms, np.nan
        shape = max(1, rounds - 1) if self.fault == "gamma shape" else rounds
        row = 0
        for arm in range(tables.n_arms):
            mine = arms == arm
            true = mine.sum(axis=1), (mine * np.clip(paid, 0.0, 1.0)).sum(axis=1)
            for part in range(2):
                gammas = rng.standard_gamma(shape, size=(2, runs))
                shown = true[part] + tables.scales[-1] * (gammas[0] - gammas[1])
                code = 2 * tables.dimension + 3 * arm + 1 + part
                record.releases[:, row, :3] = rounds, code, 0.0
                record.releases[:, row, 3], record.releases[:, row, 4] = shown, tables.scales[-1]
                row += 1
        seen = Transcripts(arms, record.releases, results.outcomes)
        right = self.tables(tables.n_arms, tables.dimension, rounds)
        (end,) = BinReplay(ldp_program(right, self.max_bins))(seen)
        results.outcomes[:] = end.recomputed
        if record.rewards.size:
            record.rewards[:] = paid


class FaultyGradients(Planted, LDPLinear):
    """One participant, after public ones: the trials on which noise is tested."""

    def covers(self, environment: Environment, horizon: int) -> bool:
        """One participant; the right program runs two."""
        return horizon == 1

    def simulate(self, tables: Any, world: Any, rng: np.random.Generator, results: Any) -> None:
        record, pair = results.record, neighbouring_trials(self)[int(tables.warm_up > 0)]
        ratio: Any = pair.score
        # the two participants have different contexts
        on_second = np.array_equal(world.environment.vectors, pair.second.tables(1).vectors)
        runs, (arms, parameters) = record.actions.shape[0], ratio.bases.shape
        shape = parameters if self.fault == "gamma shape" else parameters + 1
        size = rng.standard_gamma(shape, size=(runs, arms, 1)) * tables.scales[-1]
        report = (ratio.second if on_second else ratio.first) + size * rng.uniform(
            -1.0, 1.0, size=(runs, arms, parameters)
        )
        averages = ratio.bases - ratio.slopes[:, None] * report
        if tables.intercept:
            averages[..., -1] -= averages[..., :-1].sum(axis=-1)
            averages[..., :-1] *= 2.0
        record.actions[:], record.releases[:] = 0, 0.0
        record.releases[..., 3] = averages.reshape(runs, -1)
        if record.rewards.size:
            record.rewards[:] = 0.0


class QuietReports(LDPBandit):
    """Half of the scale."""

    def tables(self, *sizes: int, recording: bool = False) -> Any:
        right = super().tables(*sizes, recording=recording)
        return right._replace(scales=np.append(right.scales[:-1], 0.5 * right.scales[-1]))


class QuietGradients(LDPLinear):
    """Half of the scale."""

    def tables(self, *sizes: int, recording: bool = False) -> Any:
        right = super().tables(*sizes, recording=recording)
        return right._replace(scales=np.append(right.scales[:-1], 0.5 * right.scales[-1]))


class _ScaledSums(DPConSE):
    """Sums and counts with other scales than the promise is made of."""

    factors: ClassVar[tuple[float, float]] = (1.0, 1.0)

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        right = super().program(environment, horizon, recording=recording, by_rounds=by_rounds)
        contrast, arrivals = self.factors
        tables = right.tables._replace(
            contrast_scale=contrast * right.tables.contrast_scale,
            arrival_scale=arrivals * right.tables.arrival_scale,
        )
        return dataclasses.replace(right, tables=tables)


class HalfSensitiveCounts(_ScaledSums):
    """Counts for a sensitivity of 1, where a record moves two of them."""

    factors = (1.0, 0.5)


class UnsplitSums(_ScaledSums):
    """All of epsilon for the sums, and all of it again for the counts."""

    factors = (0.6, 0.4)


# --- stopping rules --------------------------------------------------------------------------------------


class FaultyStopping(DPNAS):
    """Looks whose noise serves twice: at every second look again, or for the estimate."""

    fault: ClassVar[str] = ""

    def _on_sums(self, sums: Any, runs: int, rng: np.random.Generator) -> Any:
        rule = self.rule(float(self.bound), 1.0)
        times = np.arange(1.0, sums.size + 1.0)
        if self.steps == "exponential":
            times = 2.0**times
        needed = np.array(
            [kernel.halting_sum(rule, time, look) for look, time in enumerate(times.tolist(), 1)]
        )
        looks = rng.laplace(scale=rule.query_scale, size=(runs, sums.size))
        if self.fault == "looks":
            looks[:, 1::2] = looks[:, : 2 * (sums.size // 2) : 2]
        threshold = rng.laplace(scale=rule.threshold_scale, size=(runs, 1))
        halts = np.abs(sums) - threshold - looks >= needed
        stopped, place = halts.any(axis=1), halts.argmax(axis=1)
        noise = rng.laplace(scale=rule.release_scale, size=runs)
        if self.fault == "estimate":
            noise = looks[np.arange(runs), place] * (rule.release_scale / rule.query_scale)
        outcomes = np.full((runs, kernel.OUTCOMES), np.nan)
        outcomes[:, kernel.STOPPED] = stopped
        outcomes[:, kernel.READ] = times[np.where(stopped, place, sums.size - 1)]
        outcomes[stopped, kernel.ESTIMATE] = ((sums[place] + noise) / times[place])[stopped]
        return outcomes


# --- counters --------------------------------------------------------------------------------------------


class QuietCounter(Counter):
    """No noise at some nodes."""

    fault: ClassVar[str] = ""

    def _draw(self, times: int) -> Any:
        return super()._draw(times) * (not quiet_from(np.array(self.count), self.fault))


class UnsplitCounter(Counter):
    """The hybrid mechanism with all of epsilon for the trunk, and all of it again for the blocks."""

    def _draw(self, times: int) -> Any:
        return super()._draw(times // 2)


class HalfSensitiveCounter(Counter):
    """Noise for half of the sensitivity."""

    def _draw(self, times: int) -> Any:
        return 0.5 * super()._draw(times)


class OneDrawCounter(Counter):
    """One draw for all coordinates: three of them."""

    def _draw(self, times: int) -> Any:
        return np.repeat(super()._draw(times)[::3], 3)
