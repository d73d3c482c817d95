"""Faults in designs that release noisy sums or means of rewards."""

from __future__ import annotations

from typing import Any

import numpy as np
from literal_replays import LinearChoice, UCBChoice
from planted import Coins, Planted, quiet_from

from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.audit.privacy.designs.audited_trial import Neighbours
from adaptinf.audit.privacy.designs.counter_audits import earlier_counts
from adaptinf.designs import DPBAI, LinPriv, PrivateSuccessiveElimination, PrivateUCB
from adaptinf.simulation.run import BERNOULLI


class FaultyUCB(Planted, PrivateUCB):
    def simulate(self, tables: Any, world: Any, rng: np.random.Generator, results: Any) -> None:
        record, fault = results.record, self.fault
        runs, rounds = record.actions.shape
        every, coins = np.arange(runs), Coins(world, runs, rng)
        choice, raw = UCBChoice(tables, runs, rounds), UCBChoice(tables, runs, rounds)
        counts, sums = (np.zeros((runs, tables.n_arms), dtype=kind) for kind in (np.int64, np.float64))
        noise = np.zeros((runs, tables.n_arms, rounds + 1))
        shared = rng.laplace(size=(runs, rounds + 1)) if fault == "shared" else None
        for step in range(rounds):
            arms = (raw if fault == "raw index" else choice).arms(step)
            reward, coin = coins.rewards(step, arms)
            counts[every, arms] += 1
            sums[every, arms] += reward if fault == "late clip" else np.clip(reward, 0.0, 1.0)
            count = counts[every, arms]
            level = np.frexp(count.astype(float))[1] - 1.0
            power = (count & (count - 1)) == 0
            scale = np.where(power, tables.trunk, tables.node * level) if tables.hybrid else tables.node
            fresh = rng.laplace(size=runs) if shared is None else shared[every, count]
            if fault == "coin":
                fresh = np.copysign(fresh, coin - 0.5)
            if fault in ("half", "unsplit"):
                scale = 0.5 * scale
            fresh = np.where(quiet_from(count, fault), 0.0, fresh * scale)
            total = fresh + noise[every, arms, earlier_counts(tables.hybrid, count)]
            noise[every, arms, count] = total
            shown = sums[every, arms] + total
            if fault == "late clip":
                shown = np.clip(shown, 0.0, count)
            choice.learn(arms, shown)
            raw.learn(arms, sums[every, arms])
            record.actions[:, step], record.releases[:, step] = arms, 0.0
            record.releases[:, step, 0], record.releases[:, step, 2] = step + 1, arms
            record.releases[:, step, 3], record.releases[:, step, 4] = shown, scale
            if record.rewards.size:
                record.rewards[:, step] = reward


class FaultyLinPriv(Planted, LinPriv):
    def simulate(self, tables: Any, world: Any, rng: np.random.Generator, results: Any) -> None:
        record, fault, d = results.record, self.fault, tables.dimension
        runs, rounds = record.actions.shape
        every, coins = np.arange(runs), Coins(world, runs, rng)
        choice, raw = LinearChoice(tables, runs), LinearChoice(tables, runs)
        vectors = world.environment.vectors.reshape(-1, tables.n_arms, d)
        counts, sums = np.zeros((runs, tables.n_arms), dtype=np.int64), np.zeros((runs, tables.n_arms, d))
        noise = np.zeros((runs, tables.n_arms, rounds + 1, d))
        for step in range(rounds):
            arms = (raw if fault == "raw index" else choice).arms(step, vectors[step])
            reward, _ = coins.rewards(step, arms)
            counts[every, arms] += 1
            paid = reward if fault == "late clip" else np.clip(reward, 0.0, 1.0)
            sums[every, arms] += vectors[step, arms] * paid[:, None]
            count = counts[every, arms]
            level = np.frexp(count.astype(float))[1] - 1.0
            scale = np.full(runs, tables.node)
            if tables.hybrid:
                scale = np.where((count & (count - 1)) == 0, tables.trunk, tables.node * level)
            fresh = np.repeat(rng.laplace(size=(runs, 1)), d, axis=1) if fault == "one draw" else None
            fresh = rng.laplace(size=(runs, d)) if fresh is None else fresh
            fresh = np.where(quiet_from(count, fault)[:, None], 0.0, fresh * scale[:, None])
            total = fresh + noise[every, arms, earlier_counts(tables.hybrid, count)]
            noise[every, arms, count] = total
            shown = sums[every, arms] + total
            choice.learn(arms, vectors[step], shown)
            raw.learn(arms, vectors[step], sums[every, arms])
            record.actions[:, step] = arms
            rows = record.releases[:, step * d : (step + 1) * d]
            rows[:, :, 0], rows[:, :, 1], rows[:, :, 2] = step + 1, np.arange(d), arms[:, None]
            rows[:, :, 3], rows[:, :, 4] = shown, scale[:, None]
            if record.rewards.size:
                record.rewards[:, step] = reward


class FaultyElimination(Planted, PrivateSuccessiveElimination):
    def simulate(self, tables: Any, world: Any, rng: np.random.Generator, results: Any) -> None:
        record = results.record
        runs, rounds = record.actions.shape
        every, coins = np.arange(rounds), Coins(world, rounds, rng)
        for run in range(runs):
            drawn = coins.rng.random((rounds, tables.n_arms)) < 0.5 if coins.drawn else None
            paid = drawn * 1.0 if drawn is not None else world.environment.tableau[:rounds]
            actions, releases, results.outcomes[run] = self._run(tables, paid, rng)
            record.actions[run] = actions
            record.releases[run] = np.nan
            record.releases[run, : len(releases)] = np.array(releases).reshape(-1, 5)
            if record.rewards.size:
                record.rewards[run] = paid[every, actions]

    def _run(self, tables: Any, paid: Any, rng: np.random.Generator) -> tuple[Any, list[list[float]], Any]:
        fault, rounds, start, epoch = self.fault, len(paid), 0, 0
        left, actions, releases = list(range(tables.n_arms)), np.empty(len(paid), dtype=np.int64), []
        clipped = paid if fault == "late clip" else np.clip(paid, 0.0, 1.0)
        while len(left) > 1:
            column = min(epoch, tables.lengths.shape[1] - 1)  # epochs that end early are more than planned
            passes = int(tables.lengths[len(left), column])
            threshold = tables.thresholds[len(left), column]
            if fault == "raw end":
                passes = self._until_gap(clipped[start:], left, passes)
            end = start + passes * len(left)
            if end > rounds or len(releases) + len(left) > tables.released.shape[0]:
                break
            actions[start:end] = np.tile(left, passes)
            sums = clipped[start:end].reshape(passes, len(left), -1)
            means = np.array([sums[:, place, arm].mean() for place, arm in enumerate(left)])
            scale = 1.0 / (self.epsilon * passes)
            draws = rng.laplace(size=len(left))
            if fault == "shared":
                draws = np.full(len(left), draws[0])
            if fault == "coin":
                draws = np.copysign(draws, clipped[end - 1, left[-1]] - 0.5)
            shown = means + scale * draws
            if fault == "late clip":
                shown = np.clip(shown, 0.0, 1.0)
            releases += [[end, 0, arm, value, scale] for arm, value in zip(left, shown, strict=True)]
            judged = means if fault == "raw elimination" else shown
            left = [arm for arm, one in zip(left, judged, strict=True) if not judged.max() - one > threshold]
            start, epoch = end, epoch + 1
        tail = rounds - start
        actions[start:] = np.tile(left, tail // len(left) + 1)[:tail]
        decided = (start, left[0]) if len(left) == 1 else (np.nan, np.nan)
        return actions, releases, (epoch, *decided)

    def _until_gap(self, paid: Any, left: list[int], passes: int) -> int:
        """Passes until the raw sums lie 20 apart."""
        most = min(passes, len(paid) // len(left))
        rows = paid[: most * len(left)].reshape(most, len(left), paid.shape[1])
        sums = np.stack([np.cumsum(rows[:, place, arm]) for place, arm in enumerate(left)])
        wide = np.flatnonzero(np.ptp(sums, axis=0) >= 20.0)
        return int(wide[0]) + 1 if wide.size else passes


class FaultyBAI(Planted, DPBAI):
    """Every phase pulls all arms that are left: for `max_det=False`."""

    def simulate(self, tables: Any, world: Any, rng: np.random.Generator, results: Any) -> None:
        record = results.record
        runs, rounds = record.actions.shape
        drawn, sizes = world.environment.kind == BERNOULLI, tables.sizes
        for run in range(runs):
            paid = world.environment.tableau[:rounds]
            if drawn:
                paid = (rng.random((rounds, len(self.features))) < 0.5) * 1.0
            clipped = paid if self.fault == "late clip" else np.clip(paid, 0.0, 1.0)
            left, start, releases = list(range(int(sizes[0]))), 0, []
            for kept in sizes[1:].tolist():
                count = tables.budget // ((sizes.size - 1) * len(left))
                scale, means = 1.0 / (self.epsilon * count), []
                for arm in left:
                    record.actions[run, start : start + count] = arm
                    means.append(clipped[start : start + count, arm].mean())
                    start += count
                shown = np.array(means) + rng.laplace(scale=scale, size=len(left))
                if self.fault == "late clip":
                    shown = np.clip(shown, 0.0, 1.0)
                releases += [[start, 0, arm, value, scale] for arm, value in zip(left, shown, strict=True)]
                judged = np.array(means) if self.fault == "raw ranking" else shown
                left = [left[place] for place in np.lexsort((left, -judged))[:kept]]
            record.actions[run, start:] = left[0]
            record.statuses[run, start:] = 1
            record.releases[run] = np.nan
            record.releases[run, : len(releases)] = releases
            results.outcomes[run] = left[0], start
            if record.rewards.size:
                record.rewards[run] = paid[np.arange(rounds), record.actions[run]]


@neighbouring_trials.register
def bai_neighbours(design: FaultyBAI, unit: str | None = None) -> tuple[Neighbours, ...]:
    return neighbouring_trials(DPBAI(epsilon=design.epsilon, features=design.features, max_det=False), unit)
