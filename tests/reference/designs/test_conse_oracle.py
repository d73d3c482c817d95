"""ConSE against a literal reading of its pseudo-code: every round recomputed from contexts and rewards."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from adaptinf.designs import ConSE
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import FiniteContext


@dataclass
class Group:
    """What the algorithm remembers of one context."""

    alive: set[int] = field(default_factory=lambda: {0, 1})
    epoch: int = 1
    rewards: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    everything: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    arrivals: int = 0
    trial: int = 0

    def better(self) -> int:
        if len(self.alive) == 1:
            return next(iter(self.alive))
        means = [np.mean(r) if r else 0.0 for r in self.everything]
        return int(means[1] > means[0])


@dataclass
class Expected:
    """What the log should say, round by round; an action of None is a coin."""

    action: list[int | None] = field(default_factory=list)
    propensities: list[tuple[float, float]] = field(default_factory=list)
    phase: list[str] = field(default_factory=list)
    randomised: list[bool] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    budget: float = math.nan


def epoch_length(n: int, e: int) -> float:
    gap = 2.0**-e
    return max(32 * math.log(16 * n * e**2) / gap**2, 8 * math.log(8 * n * e**2) / gap) + 1


def conse(features: np.ndarray, actions: np.ndarray, rewards: np.ndarray, alpha: float, m: int) -> Expected:
    n, expected = len(features), Expected()
    groups = [Group() for _ in range(m)]

    def write(group: Group, coin: bool, phase: str) -> None:
        arm = None if coin else group.better()
        expected.action.append(arm)
        expected.propensities.append((0.5, 0.5) if coin else (1.0 - arm, float(arm)))  # type: ignore[operator, arg-type]
        expected.phase.append(phase)
        expected.randomised.append(coin)

    for t in range(n // 2):
        group = groups[features[t]]
        group.arrivals += 1
        write(group, len(group.alive) == 2, "learning")
        if len(group.alive) == 1:
            continue
        group.rewards[actions[t]].append(rewards[t])
        group.everything[actions[t]].append(rewards[t])
        length = epoch_length(n, group.epoch)
        if len(group.rewards[0]) + len(group.rewards[1]) >= length:
            half_width = math.sqrt(math.log(16 * n * group.epoch**2) / (2 * length))
            means = [float(np.mean(r)) for r in group.rewards]
            group.alive -= {i for i in (0, 1) if max(means) - means[i] > 2 * half_width}
            group.epoch += 1
            group.rewards = ([], [])
    expected.epochs = [group.epoch for group in groups]
    expected.budget = max(math.log(n), min(float(g.arrivals) ** (1 - alpha) for g in groups))
    for group in groups:
        group.alive = {group.better()}
    for t in range(n // 2, n):
        group = groups[features[t]]
        group.trial += 1
        write(group, group.trial <= math.ceil(expected.budget), "estimation")
    return expected


def feature_of(log: AdaptiveLog) -> np.ndarray:
    return np.asarray(log.arrays.context["feature"]).astype(int)


def check(log: AdaptiveLog, alpha: float, m: int) -> Expected:
    arrays = log.arrays
    expected = conse(feature_of(log), arrays.action, arrays.reward, alpha, m)
    np.testing.assert_array_equal(arrays.propensities, np.array(expected.propensities))
    np.testing.assert_array_equal(arrays.randomised, np.array(expected.randomised))
    assert [log.phases[code] for code in arrays.phase] == expected.phase
    fixed = [t for t, arm in enumerate(expected.action) if arm is not None]
    np.testing.assert_array_equal(arrays.action[fixed], [expected.action[t] for t in fixed])
    chosen = arrays.propensities[np.arange(log.n_rounds), arrays.action]
    np.testing.assert_array_equal(arrays.propensity, chosen)
    return expected


THREE = ([0.5, 0.3, 0.2], [[0.4, 0.7], [0.6, 0.3], [0.3, 0.65]])


@pytest.mark.parametrize("alpha", [0.0, 0.2, 0.5, 1.0])
@pytest.mark.parametrize(
    ("probabilities", "means", "horizon"),
    [
        (*THREE, 20_000),
        ([0.9, 0.1], [[0.1, 0.9], [0.5, 0.55]], 30_001),
        ([0.7, 0.3], [[0.2, 0.8], [0.8, 0.1]], 300),
        ([1.0], [[0.5, 0.4]], 60_000),
    ],
)
def test_every_round(
    alpha: float, probabilities: list[float], means: list[list[float]], horizon: int
) -> None:
    design = ConSE(alpha=alpha)
    environment = FiniteContext(probabilities, means)
    for seed in range(2):
        log = design.run(environment, horizon=horizon, rng=seed)
        check(log, alpha, len(probabilities))


def test_several_epochs_are_needed_for_a_small_gap() -> None:
    log = ConSE(alpha=0.3).run(FiniteContext([1.0], [[0.45, 0.53]]), horizon=60_000, rng=1)
    expected = check(log, 0.3, 1)
    assert expected.epochs[0] == 3
    assert not log.arrays.randomised[:30_000].all()


def test_gaps_close_to_the_threshold() -> None:
    """Means that differ by about 2 h_1 = 1/8: some runs are decided by a hair, some just not."""
    design, environment = ConSE(alpha=0.5), FiniteContext([1.0], [[0.45, 0.575]])
    epochs = [
        check(log, 0.5, 1).epochs[0] - int(log.arrays.randomised[:4_000].all())
        for log in design.logs(environment, horizon=8_000, replications=60, rng=4)
    ]
    assert 10 < sum(epochs) < 110


def test_a_context_that_is_never_decided() -> None:
    log = ConSE(alpha=0.5).run(FiniteContext([0.5, 0.5], [[0.5, 0.5], [0.1, 0.9]]), horizon=8_000, rng=3)
    expected = check(log, 0.5, 2)
    first = feature_of(log)[:4_000] == 0
    assert log.arrays.randomised[:4_000][first].all()
    assert expected.budget == pytest.approx(
        max(math.log(8_000), min(first.sum(), 4_000 - first.sum()) ** 0.5)
    )


@pytest.mark.parametrize("horizon", [2, 3, 5, 11])
def test_very_short_trials(horizon: int) -> None:
    for seed in range(20):
        log = ConSE(alpha=0.5).run(FiniteContext(*THREE), horizon=horizon, rng=seed)
        check(log, 0.5, 3)


def test_a_context_that_does_not_arrive_in_the_first_half() -> None:
    arrivals = [[1.0, 0.0], [0.0, 1.0]]
    environment = FiniteContext(arrivals, [[0.2, 0.9], [0.9, 0.2]], period=2_000)
    for alpha in (0.0, 1.0):
        expected = check(ConSE(alpha=alpha).run(environment, horizon=4_000, rng=0), alpha, 2)
        assert expected.budget == pytest.approx(math.log(4_000))


def test_coins_are_fair_and_independent_of_the_context() -> None:
    log = ConSE(alpha=0.0).run(FiniteContext(*THREE), horizon=40_000, rng=5)
    for feature in range(3):
        rows = (feature_of(log) == feature) & log.arrays.randomised
        treated, total = int(log.arrays.action[rows].sum()), int(rows.sum())
        assert abs(treated - total / 2) < 4.0 * math.sqrt(total / 4)


def test_reported_outcomes() -> None:
    design, environment = ConSE(alpha=0.4), FiniteContext(*THREE)
    sims = design.replicate(environment, horizon=9_000, replications=5, rng=8, by_rounds=True)
    names = list(sims.outcome_names)
    for row, log in enumerate(design.logs(environment, horizon=9_000, replications=5, rng=8)):
        expected = conse(feature_of(log), log.arrays.action, log.arrays.reward, 0.4, 3)
        assert sims.outcomes[row, names.index("t_min")] == pytest.approx(expected.budget, rel=1e-12)
        late = [
            next(
                (a for a, f in zip(expected.action[::-1], feature_of(log)[::-1], strict=True) if f == j), None
            )
            for j in range(3)
        ]
        better = sims.released["better_arm"][row]
        assert all(arm is None or arm == better[j] for j, arm in enumerate(late))


def test_rewards_outside_the_unit_interval_are_not_clipped() -> None:
    """The design makes no promise that needs clipping: the means are those of the raw rewards."""
    environment = FiniteContext([1.0], [[0.2, 1.5]], rewards="normal", scale=0.5)
    check(ConSE(alpha=0.0).run(environment, horizon=8_000, rng=2), 0.0, 1)
