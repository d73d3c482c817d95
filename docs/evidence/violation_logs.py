"""Logs with planted violations, and their clean twins, from simulators that know nothing of the library.

All runs of a block go through the rounds together: arrays of shape (runs,) or (runs, arms). A violation
changes the world (a level that drifts, an effect that turns, a stop that looks at the data) or the file that
is made of it (propensities, rows, covariates). The twin is the same without: of damage to a file, the file
as it should have been. Sizes and gaps are in units: one standard deviation of normal rewards, half of one,
.25, of rewards of 0 and 1. The gap is the last arm's lead. Contexts of -.5 and .5 are equally likely.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from comparison_logs import TILT, best_shares, softened
from default_logs import Array, Memory, arm_name
from numpy.typing import NDArray
from violation_kinds import NONE, SUMS, Kind, arguments

DAYS, HOURS, WEEKDAYS = 10, 10, 28
EXPLORED, SURE = 0.2, 0.7
"""Shares of the rounds that explore, and of those of a batch that go to the leader by UCB."""
CONTEXT_LEVEL, COVARIATE = 1.0, 0.5
"""What the level differs by between contexts, and what a unit of a continuous covariate adds to it."""
UNIT_SHARE = 0.25
"""Share of the variance that rows of a unit have in common."""
JOINS = 1.0 / 3.0
RAMP = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
"""Shares of the last arm in the fifths of a test that is ramped up."""
FIRST_LOOK, CRITICAL = 200, 1.96
LEAST = 1e-3
"""Propensities that were logged before the floor are at least this."""
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Played:
    """Rounds of all runs: arm, reward, context (runs, T), share, free (runs, T, K), unit, day (T,)."""

    arm: Ints
    reward: Array
    context: Array
    share: Array
    free: Array
    """Shares before the floor."""
    unit: Ints
    day: Ints
    length: Ints
    """Rounds until the log stops."""


def unit_of(kind: Kind) -> float:
    """What sizes and gaps are multiples of."""
    return 0.25 if kind.binary else 1.0


def days(kind: Kind) -> int:
    """How many days, or batches, the log has."""
    if kind.violation == "weekday":
        return WEEKDAYS
    return 2 * DAYS if kind.design == "UCB by batches" else DAYS


def wave(kind: Kind) -> Array:
    """A day's wave in each round, from -1 to 1 with mean 0, constant within an hour; shape (T,)."""
    hour = np.arange(kind.rounds) * (DAYS * HOURS) // kind.rounds
    return np.asarray(np.sin(2.0 * math.pi * (hour % HOURS + 0.5) / HOURS))


def level(kind: Kind, planted: bool) -> Array:
    """Level that all arms share, in units; shape (T,)."""
    time = np.arange(kind.rounds) / kind.rounds
    always = arguments(kind.background)
    found = always.get("drift", 0.0) * (time - 0.5) + always.get("hourly", 0.0) * wave(kind)
    if not planted:
        return found
    if kind.violation == "drift":
        return found + kind.size * (time - 0.5)
    if kind.violation == "weekday":
        return found + kind.size * (np.arange(kind.rounds) * WEEKDAYS // kind.rounds % 7 >= 5)
    if kind.violation == "two periods":
        return found + kind.size * (time >= 0.5)
    return found


def lead(kind: Kind, planted: bool) -> Array:
    """What the last arm's mean is above the others', in units; shape (T,)."""
    found = np.full(kind.rounds, kind.gap)
    if kind.violation == "turn" and planted:
        found += np.where(np.arange(kind.rounds) < kind.rounds / 2.0, kind.size, -kind.size)
    return found


def truth(kind: Kind, planted: bool) -> Array:
    """Mean of each arm over the period, and over contexts; shape (K,)."""
    base = 0.5 if kind.binary else 0.0
    last = np.arange(kind.arms) == kind.arms - 1
    found = base + unit_of(kind) * (level(kind, planted).mean() + lead(kind, planted).mean() * last)
    return np.asarray(found, dtype=np.float64)


def design_of(kind: Kind, planted: bool) -> str:
    """What chooses: the twin of a violation by the design has a design without it."""
    twins = dict.fromkeys(("ones", "called a test", "shares of the day"), "coin")
    twins["hidden context"] = "Thompson"
    return kind.design if planted else twins.get(kind.violation, kind.design)


class Design:
    """What a design knows, and its shares in the next round."""

    def __init__(self, kind: Kind, name: str, runs: int) -> None:
        self.kind, self.name = kind, name
        self.memory = Memory(runs, 2 if name == "contextual Thompson" else 1, kind.arms)
        self.gained = np.zeros((runs, kind.arms))
        self.wave = wave(kind)

    @property
    def batched(self) -> bool:
        return self.name in ("batched Thompson", "UCB by batches")

    @property
    def floor(self) -> float:
        return min(0.05, 0.2 / self.kind.arms)

    def there(self, t: int) -> Ints:
        """Arms that can be chosen."""
        joins = self.name.endswith("an arm joins") and t < JOINS * self.kind.rounds
        return np.arange(self.kind.arms - joins)

    def shares(self, t: int, group: Ints) -> tuple[Array, Array]:
        """Shares of all arms in the next round, and before the floor; shape (runs, K)."""
        arms = self.there(t)
        free = np.zeros((len(group), self.kind.arms))
        free[:, arms] = self._free(t, group, arms)
        floor = np.zeros(self.kind.arms)
        if "Thompson" in self.name:
            floor[arms] = self.floor
        elif self.name in ("epsilon-greedy", "EXP3"):
            floor[arms] = EXPLORED / len(arms)
        elif self.name == "UCB by batches":
            floor[arms] = (1.0 - SURE) / len(arms)
        return floor + (1.0 - floor.sum()) * free, free

    def _free(self, t: int, group: Ints, arms: Ints) -> Array:
        """Shares before the floor, of the arms that are there."""
        kind, even = self.kind, np.full((len(group), len(arms)), 1.0 / len(arms))
        if self.name == "coin":
            return even
        if self.name == "by context":
            return np.column_stack([group == 0, group == 1]).astype(float)
        if self.name == "ramp":
            share = RAMP[t * len(RAMP) // kind.rounds]
            return np.broadcast_to([1.0 - share, share], even.shape)
        if self.name == "by the hour":
            return softened(np.broadcast_to(TILT * self.wave[t] * np.array([-0.5, 0.5]), even.shape))
        if self.name == "EXP3":
            return softened(EXPLORED / len(arms) * self.gained[:, arms])
        known = group if len(self.memory.count[0]) == 2 else np.zeros_like(group)
        count, mean, _ = (part[:, arms] for part in self.memory.of(known))
        base, spread = (0.5, 0.5) if kind.binary else (0.0, 1.0)
        size = spread / np.sqrt(count + 1.0)
        center = base + (mean - base) * count / (count + 1.0)
        if "Thompson" in self.name:
            return best_shares(center, size)
        if self.name.startswith("UCB"):
            center = center + size * math.sqrt(2.0 * math.log(kind.rounds))
        best = center >= center.max(axis=1, keepdims=True)
        return np.asarray(best / best.sum(axis=1, keepdims=True))

    def learn(self, group: Ints, arm: Ints, reward: Array, chance: Array) -> None:
        """Take in a round; chance is the share of the arm that was chosen, shape (runs,)."""
        self.memory.add(group if len(self.memory.count[0]) == 2 else np.zeros_like(group), arm, reward)
        gain = reward if self.kind.binary else np.clip(0.5 + reward / 6.0, 0.0, 1.0)
        self.gained[np.arange(len(arm)), arm] += gain / chance


def play(kind: Kind, runs: int, rng: np.random.Generator, planted: bool) -> Played:
    """All rounds of some runs, with or without what is to be planted in the world."""
    n_rounds, size, every = kind.rounds, unit_of(kind), np.arange(runs)
    design = Design(kind, design_of(kind, planted), runs)
    day = np.arange(n_rounds) * days(kind) // n_rounds
    group = rng.integers(0, 2, (runs, n_rounds))
    continuous = kind.violation == "moved covariate"
    context = rng.standard_normal((runs, n_rounds)) if continuous else group - 0.5
    choice = rng.random((runs, n_rounds))
    noise = rng.random((runs, n_rounds)) if kind.binary else rng.standard_normal((runs, n_rounds))
    base = (0.5 if kind.binary else 0.0) + size * np.broadcast_to(level(kind, planted), (runs, n_rounds))
    looks = kind.by_context or kind.violation == "hidden context"
    if continuous or looks:
        base = base + size * (COVARIATE if continuous else CONTEXT_LEVEL) * context
    ahead = np.broadcast_to(size * lead(kind, planted), (runs, n_rounds))
    if kind.design == "contextual Thompson":
        ahead = ahead + size * 2.0 * (group - 0.5) * (
            kind.size if kind.violation == "hidden context" else 1.0
        )
    unit, kept = np.arange(n_rounds), None
    if kind.violation == "units" and planted:
        number = round(n_rounds / kind.size)
        unit = np.arange(n_rounds) % number
        kept = rng.integers(0, kind.arms, (runs, number))
        noise = math.sqrt(1.0 - UNIT_SHARE) * noise
        noise += math.sqrt(UNIT_SHARE) * rng.standard_normal((runs, number))[:, unit]
    arms, rewards = np.zeros((runs, n_rounds), dtype=np.int64), np.zeros((runs, n_rounds))
    shares, free = np.zeros((2, runs, n_rounds, kind.arms))
    learnt, apart = 0, kind.violation == "two periods" and planted
    for t in range(n_rounds):
        if design.batched and t and day[t] == day[t - 1]:
            shares[:, t], free[:, t] = shares[:, t - 1], free[:, t - 1]
        else:
            if design.batched:
                for s in range(learnt, t):
                    design.learn(group[:, s], arms[:, s], rewards[:, s], shares[every, s, arms[:, s]])
                learnt = t
            shares[:, t], free[:, t] = design.shares(t, group[:, t])
        arm = (choice[:, t, None] > np.cumsum(shares[:, t], axis=1)).sum(axis=1)
        arm = np.minimum(arm, design.there(t)[-1])
        if apart:
            arm = np.full(runs, int(t >= n_rounds / 2))
        elif kept is not None:
            arm = kept[:, unit[t]]
        mean = base[:, t] + ahead[:, t] * (arm == kind.arms - 1)
        arms[:, t] = arm
        rewards[:, t] = noise[:, t] < mean if kind.binary else mean + noise[:, t]
        if not design.batched:
            design.learn(group[:, t], arm, rewards[:, t], shares[every, t, arm])
    length = np.full(runs, n_rounds)
    if kind.violation == "stop" and planted:
        length = np.array([stopped(arm, reward, kind) for arm, reward in zip(arms, rewards, strict=True)])
    return Played(arms, rewards, context, shares, free, unit, day, length)


def stopped(arm: Ints, reward: Array, kind: Kind) -> int:
    """Rounds until two arms differ at 5%, with a look every so many rounds; all where they never do."""
    for n in range(FIRST_LOOK, kind.rounds, int(kind.size)):
        one, other = reward[:n][arm[:n] == 1], reward[:n][arm[:n] == 0]
        error = math.sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other))
        if abs(one.mean() - other.mean()) > CRITICAL * error:
            return n
    return kind.rounds


# Files


def names_of(kind: Kind) -> list[str]:
    return [f"p_{arm_name(k)}" for k in range(kind.arms)]


def frames(kind: Kind, runs: int, rng: np.random.Generator, planted: bool) -> Iterator[pd.DataFrame]:
    """The file of each run: rows, or sums by day and arm."""
    played = play(kind, runs, rng, planted)
    labels = np.array([arm_name(k) for k in range(kind.arms)])
    days_apart = pd.to_timedelta(np.arange(kind.rounds) * 86_400 * days(kind) // kind.rounds, unit="s")
    time = pd.Timestamp("2026-03-02") + days_apart
    damage = DAMAGE.get(kind.violation)
    for run in range(runs):
        n = int(played.length[run])
        share = played.share[run]
        table = {
            "arm": labels[played.arm[run]],
            "reward": played.reward[run],
            **{name: share[:, k] for k, name in enumerate(names_of(kind))},
            "p": share[np.arange(kind.rounds), played.arm[run]],
            "x": played.context[run],
            "day": played.day,
            "person": played.unit,
            "time": time,
        }
        frame = pd.DataFrame(table).iloc[:n]
        if damage is not None:
            frame = damage(frame, kind, played.free[run], rng, planted)
        yield summed(frame, kind) if kind.door == SUMS else frame


def summed(frame: pd.DataFrame, kind: Kind) -> pd.DataFrame:
    """Sums by day and arm, with the propensity of the arm in the day."""
    columns = {name: frame["reward"] ** power for name, power in (("squares", 2), ("cubes", 3))}
    columns["other"] = (frame["reward"] != 0).astype(float)
    groups = frame.assign(**columns).groupby(["day", "arm"], sort=True)
    table = groups.agg(
        n=("reward", "size"),
        sum=("reward", "sum"),
        squares=("squares", "sum"),
        cubes=("cubes", "sum"),
        other=("other", "sum"),
    ).reset_index()
    if kind.told != NONE:
        own = frame.groupby("day")[names_of(kind)].mean()
        table["p"] = [own.at[day, f"p_{arm}"] for day, arm in zip(table["day"], table["arm"], strict=True)]
    return table


# Damage to files, given the file, the kind, shares before the floor, a generator, and whether it is planted


def last_column(frame: pd.DataFrame, kind: Kind, free: Array, rng: object, planted: bool) -> pd.DataFrame:
    """The chosen arm's column holds the last arm's propensity."""
    return frame.assign(p=frame[names_of(kind)[-1]]) if planted else frame


def even(frame: pd.DataFrame, kind: Kind, free: Array, rng: object, planted: bool) -> pd.DataFrame:
    """Propensities are hard-coded."""
    return frame.assign(**dict.fromkeys(names_of(kind), 1.0 / kind.arms)) if planted else frame


def lagged(frame: pd.DataFrame, kind: Kind, free: Array, rng: object, planted: bool) -> pd.DataFrame:
    """Propensities are those of earlier rounds; the first ones are repeated."""
    rows = np.maximum(np.arange(len(frame)) - int(kind.size), 0)
    return (
        frame.assign(**{name: frame[name].to_numpy()[rows] for name in names_of(kind)}) if planted else frame
    )


def swapped(frame: pd.DataFrame, kind: Kind, free: Array, rng: object, planted: bool) -> pd.DataFrame:
    """Columns of the first and the last arm are exchanged."""
    first, last = names_of(kind)[0], names_of(kind)[-1]
    return frame.assign(**{first: frame[last], last: frame[first]}) if planted else frame


def before_the_floor(
    frame: pd.DataFrame, kind: Kind, free: Array, rng: object, planted: bool
) -> pd.DataFrame:
    """Propensities are those before the floor, kept a little above 0."""
    raised = LEAST + (1.0 - kind.arms * LEAST) * free
    return frame.assign(**dict(zip(names_of(kind), raised.T, strict=True))) if planted else frame


def chosen_alone(frame: pd.DataFrame, kind: Kind, free: Array, rng: object, planted: bool) -> pd.DataFrame:
    """Columns of all arms are omitted of the file."""
    return frame.drop(columns=names_of(kind)) if planted else frame


def lost(
    frame: pd.DataFrame, kind: Kind, free: Array, rng: np.random.Generator, planted: bool
) -> pd.DataFrame:
    """Some rows of the last arm with a low reward are not in the file."""
    gone = (
        (frame["arm"] == arm_name(kind.arms - 1))
        & (frame["reward"] < 0.5)
        & (rng.random(len(frame)) < kind.size)
    )
    return frame[~gone].reset_index(drop=True) if planted else frame


def by_day(frame: pd.DataFrame, kind: Kind, free: Array, rng: object, planted: bool) -> pd.DataFrame:
    """Propensities are shares of the day, in the twin of a coin."""
    arms = [arm_name(k) for k in range(kind.arms)]
    shares = pd.get_dummies(frame["arm"]).groupby(frame["day"]).transform("mean")
    return frame.assign(**{name: shares[arm] for name, arm in zip(names_of(kind), arms, strict=True)})


def twice(frame: pd.DataFrame, kind: Kind, free: Array, rng: object, planted: bool) -> pd.DataFrame:
    """The file, and its first rows once more."""
    again = frame.iloc[: round(kind.size * len(frame))]
    return pd.concat([frame, again], ignore_index=True) if planted else frame


def double_fired(
    frame: pd.DataFrame, kind: Kind, free: Array, rng: np.random.Generator, planted: bool
) -> pd.DataFrame:
    """Some rows are written twice, one after the other."""
    times = 1 + (rng.random(len(frame)) < kind.size)
    return frame.loc[frame.index.repeat(times)].reset_index(drop=True) if planted else frame


def missing(
    frame: pd.DataFrame, kind: Kind, free: Array, rng: np.random.Generator, planted: bool
) -> pd.DataFrame:
    """Some failures of the last arm are missing; in the twin, as many of all rewards."""
    if planted:
        last = frame["arm"] == arm_name(kind.arms - 1)
        gone = last & (frame["reward"] < 0.5) & (rng.random(len(frame)) < kind.size)
    else:
        gone = rng.random(len(frame)) < kind.size / (2.0 * kind.arms)
    return frame.assign(reward=frame["reward"].where(~gone))


def moved_covariate(frame: pd.DataFrame, kind: Kind, free: Array, rng: object, planted: bool) -> pd.DataFrame:
    """The last arm adds to the covariate."""
    moved = frame["x"] + kind.size * (frame["arm"] == arm_name(kind.arms - 1))
    return frame.assign(x=moved) if planted else frame


def sorted_by_arm(frame: pd.DataFrame, kind: Kind, free: Array, rng: object, planted: bool) -> pd.DataFrame:
    """Rows of the first arm, then those of the next one, and so on."""
    return frame.sort_values("arm", kind="stable", ignore_index=True) if planted else frame


DAMAGE: dict[str, Callable[..., pd.DataFrame]] = {
    "last column": last_column,
    "even shares": even,
    "lag": lagged,
    "swapped": swapped,
    "before the floor": before_the_floor,
    "chosen alone": chosen_alone,
    "lost rows": lost,
    "shares of the day": by_day,
    "twice": twice,
    "double fired": double_fired,
    "missing": missing,
    "moved covariate": moved_covariate,
    "sorted": sorted_by_arm,
}
