"""Successive elimination against literal readings of the two papers, on the same rewards and noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
import pytest

from adaptinf.designs.arms.elimination import PrivateSuccessiveElimination, SuccessiveElimination
from adaptinf.designs.arms.elimination_kernel import _choose, _finish, _update, elimination_epochs
from adaptinf.designs.mixture import Mixture
from adaptinf.privacy.noise import Buffer
from adaptinf.simulation.environments import BernoulliArms, NormalArms, Tableau
from adaptinf.simulation.replicate import iterate_runs


@dataclass
class Course:
    """What a literal run did: pulls, the scales it asked for, what it released, and how it ended."""

    actions: list[int] = field(default_factory=list)
    scales: list[float] = field(default_factory=list)
    released: list[tuple[int, int, float]] = field(default_factory=list)
    comparisons: int = 0
    decided_at: float = math.nan
    last_arm: float = math.nan


class OutOfRounds(Exception):
    """The horizon has been reached."""


def rewards_of(table: np.ndarray, course: Course) -> Any:
    """A function that pulls an arm in the next round and returns its reward."""

    def pull(arm: int) -> float:
        if len(course.actions) == len(table):
            raise OutOfRounds
        reward = float(table[len(course.actions), arm])
        course.actions.append(arm)
        return reward

    return pull


def private_elimination(
    table: np.ndarray, beta: float, epsilon: float, noises: Iterator[float], clip: bool = True
) -> Course:
    """Algorithm 3 of Sajed and Sheffet; at an infinite epsilon nothing is added and nothing clipped.

    Noises are those of sums of r rewards: a mean has one r-th of it.
    """
    course = Course()
    pull = rewards_of(table, course)
    viable, epoch = list(range(table.shape[1])), 0
    try:
        while True:
            epoch += 1
            r = 0
            means = dict.fromkeys(viable, 0.0)
            gap = 2.0**-epoch
            size = len(viable)
            least = max(
                32 * math.log(8 * size * epoch**2 / beta) / gap**2,
                8 * math.log(4 * size * epoch**2 / beta) / (epsilon * gap),
            )
            least += 1
            while r < least:
                r += 1
                for i in viable:
                    reward = pull(i)
                    if clip:
                        reward = min(1.0, max(0.0, reward))
                    means[i] += (reward - means[i]) / r
            h = math.sqrt(math.log(8 * size * epoch**2 / beta) / (2 * least))
            c = math.log(4 * size * epoch**2 / beta) / (least * epsilon)
            if math.isfinite(epsilon):
                for i in viable:
                    course.scales.append(1 / (epsilon * r))
                    means[i] += next(noises) / r
                    course.released.append((len(course.actions), i, means[i]))
            top = max(means[i] for i in viable)
            viable = [i for i in viable if not top - means[i] > 2 * h + 2 * c]
            course.comparisons = epoch
            if len(viable) == 1:
                break
        course.decided_at, course.last_arm = len(course.actions), viable[0]
        while True:
            pull(viable[0])
    except OutOfRounds:
        return course


def elimination_after_every_pass(table: np.ndarray, beta: float) -> Course:
    """Even-Dar, Mannor and Mansour: bounds of all rounds so far, compared after each pass."""
    course = Course()
    pull = rewards_of(table, course)
    k = table.shape[1]
    viable: list[int] = list(range(k))
    sums = dict.fromkeys(viable, 0.0)
    try:
        while len(viable) > 1:
            for i in viable:
                sums[i] += pull(i)
            course.comparisons += 1
            r = course.comparisons
            width = math.sqrt(math.log(4 * k * r * r / beta) / (2 * r))
            means = {i: sums[i] / r for i in viable}
            best_lower = max(means.values()) - width
            viable = [i for i in viable if not means[i] + width < best_lower]
        course.decided_at, course.last_arm = len(course.actions), viable[0]
        while True:
            pull(viable[0])
    except OutOfRounds:
        return course


# --- the kernel on a buffer ---------------------------------------------------------------------------------


@numba.njit
def drive(
    tables: Any, state: np.ndarray, rewards: np.ndarray, source: Any, actions: np.ndarray, outcome: np.ndarray
) -> None:
    context = np.zeros(1)
    for step in range(rewards.shape[0]):
        arm = _choose(tables, state, context, source)
        actions[step] = arm
        _update(tables, state, context, arm, rewards[step, arm], source)
    _finish(tables, state, outcome)


def drive_kernel(
    design: Any, table: np.ndarray, noises: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Actions, releases, outcomes and the noises used of the compiled kernel."""
    environment = BernoulliArms(np.full(table.shape[1], 0.5))
    program = design.program(environment, len(table), recording=True)
    state, actions, outcome = np.zeros(program.state_shape), np.zeros(len(table), dtype=np.int64), np.zeros(3)
    source = Buffer(np.zeros(0), noises, np.zeros(2, dtype=np.int64))
    drive(program.tables, state, table, source, actions, outcome)
    return actions, program.tables.released[: int(source.positions[1])], outcome, int(source.positions[1])


def check_outcome(outcome: np.ndarray, course: Course) -> None:
    np.testing.assert_array_equal(outcome, [course.comparisons, course.decided_at, course.last_arm])


CASES = [
    ([0.9, 0.2], 4_000, 0.9, 1.0),
    ([0.6, 0.5], 12_000, 0.9, 0.5),
    ([0.5, 0.5, 0.5], 30_000, 1.0, 2.0),
    ([0.3, 0.7, 0.65, 0.1], 14_001, 0.7, 0.05),
    (list(np.linspace(0.1, 0.9, 6)), 25_000, 0.9, 10.0),
]


@pytest.mark.parametrize(("means", "horizon", "beta", "epsilon"), CASES)
@pytest.mark.parametrize("spread", [5.0, 75.0])
def test_private_elimination_on_one_buffer(
    means: list[float], horizon: int, beta: float, epsilon: float, spread: float
) -> None:
    """A wide spread of the noise drops arms one by one, several at once, and the best ones too."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        table = rng.binomial(1, means, size=(horizon, len(means))).astype(float)
        noises = rng.laplace(scale=spread, size=200)
        design = PrivateSuccessiveElimination(epsilon=epsilon, beta=beta)
        course = private_elimination(table, beta, epsilon, iter(noises))
        actions, released, outcome, used = drive_kernel(design, table, noises)
        np.testing.assert_array_equal(actions, course.actions)
        check_outcome(outcome, course)
        assert used == len(course.scales) > 0
        np.testing.assert_array_equal(released[:, [0, 2]], [row[:2] for row in course.released])
        np.testing.assert_allclose(released[:, 3], [row[2] for row in course.released], rtol=0, atol=1e-12)
        np.testing.assert_allclose(released[:, 4], course.scales, rtol=1e-14)


def test_noise_alone_can_drop_the_best_arm() -> None:
    design = PrivateSuccessiveElimination(epsilon=1.0, beta=0.9)
    table = np.tile([1.0, 0.0, 0.0], (6_000, 1))
    passes = elimination_epochs(3, 6_000, 0.9, 1.0)[0][3, 0]
    _, released, outcome, used = drive_kernel(design, table, passes * np.array([-2.0, 0.0, 3.0]))
    assert (outcome[2], used) == (2.0, 3)
    np.testing.assert_array_equal(released[:, 3], [-1.0, 0.0, 3.0])


def test_private_elimination_clips_what_enters_a_mean() -> None:
    rng = np.random.default_rng(3)
    table = rng.normal([0.2, 0.9, 0.5], 1.0, size=(9_000, 3))
    noises = rng.laplace(scale=5.0, size=100)
    design = PrivateSuccessiveElimination(epsilon=1.0, beta=0.9)
    course = private_elimination(table, 0.9, 1.0, iter(noises))
    raw = private_elimination(table, 0.9, 1.0, iter(noises), clip=False)
    actions, released, _, _ = drive_kernel(design, table, noises)
    np.testing.assert_array_equal(actions, course.actions)
    np.testing.assert_allclose(released[:, 3], [row[2] for row in course.released], atol=1e-12)
    assert abs(raw.released[0][2] - course.released[0][2]) > 0.05


@pytest.mark.parametrize(("means", "horizon", "beta"), [case[:3] for case in CASES])
def test_a_default_run_follows_the_literal_algorithm(means: list[float], horizon: int, beta: float) -> None:
    """Run by the loop, on the noise that it drew itself: it is what a release has above the mean."""
    rng = np.random.default_rng(7)
    table = rng.binomial(1, means, size=(horizon, len(means))).astype(float)
    log = PrivateSuccessiveElimination(epsilon=0.8, beta=beta).run(
        Tableau(table, reward_range=(0, 1)), horizon=horizon, rng=1
    )
    releases, noises = log.releases, []
    arms = np.asarray(log.arrays.action)
    begin = 0
    for end, group in releases.groupby("round", sort=True):
        for arm, value in zip(group["group"], group["value"], strict=True):
            rows = np.arange(begin, end)[arms[begin:end] == arm]
            noises.append(value * rows.size - table[rows, arm].sum())
        begin = end
    course = private_elimination(table, beta, 0.8, iter(noises))
    np.testing.assert_array_equal(log.arrays.action, course.actions)
    np.testing.assert_allclose(releases["scale"], course.scales, rtol=1e-14)


@pytest.mark.parametrize("check", ["every-round", "epochs"])
@pytest.mark.parametrize("law", ["bernoulli", "normal"])
@pytest.mark.parametrize(("means", "horizon", "beta"), [case[:3] for case in CASES])
def test_elimination_without_privacy(
    check: str, law: str, means: list[float], horizon: int, beta: float
) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        if law == "bernoulli":
            table = rng.binomial(1, means, size=(horizon, len(means))).astype(float)
        else:
            table = rng.normal(means, 0.4, size=(horizon, len(means)))
        design = SuccessiveElimination(beta=beta, check=check)
        if check == "epochs":
            course = private_elimination(table, beta, math.inf, iter(()), clip=False)
        else:
            course = elimination_after_every_pass(table, beta)
        actions, _, outcome, used = drive_kernel(design, table, np.zeros(0))
        np.testing.assert_array_equal(actions, course.actions)
        check_outcome(outcome, course)
        assert used == 0


def test_default_beta_is_one_over_the_horizon() -> None:
    horizon = 40_000
    table = np.random.default_rng(5).binomial(1, [0.5, 0.8, 0.7], size=(horizon, 3)).astype(float)
    for design, course in (
        (SuccessiveElimination(), elimination_after_every_pass(table, 1 / horizon)),
        (
            SuccessiveElimination(check="epochs"),
            private_elimination(table, 1 / horizon, math.inf, iter(()), clip=False),
        ),
        (
            PrivateSuccessiveElimination(epsilon=0.1),
            private_elimination(table, 1 / horizon, 0.1, iter(np.zeros(50))),
        ),
    ):
        actions, _, outcome, _ = drive_kernel(design, table, np.zeros(50))
        np.testing.assert_array_equal(actions, course.actions)
        check_outcome(outcome, course)


@pytest.mark.parametrize(
    "design",
    [
        SuccessiveElimination(beta=0.9),
        SuccessiveElimination(beta=0.9, check="epochs"),
        PrivateSuccessiveElimination(epsilon=5.0, beta=0.9),
    ],
    ids=["every-round", "epochs", "private"],
)
def test_overridden_rounds_are_skipped_and_the_proposal_repeated(design: Any) -> None:
    """Without the overridden rounds a mixture is the design itself, on the rewards that are left."""
    horizon = 9_000
    mixture = Mixture(design, exploration=0.3)
    run = next(iterate_runs(mixture, NormalArms([0.3, 0.9, 0.5], scale=0.3), horizon, 0, 1, 11))
    kept = run.record.status == 0
    assert 0.6 < kept.mean() < 0.8
    table = np.repeat(run.record.reward[kept, None], 3, axis=1)
    if isinstance(design, PrivateSuccessiveElimination):
        noises = []
        arms, rewards = run.record.action[kept], np.clip(run.record.reward[kept], 0.0, 1.0)
        ends = np.cumsum(kept)
        begin = 0
        for end in np.unique(run.released[:, 0]):
            now = int(ends[int(end) - 1])
            for row in run.released[run.released[:, 0] == end]:
                inside = np.arange(begin, now)[arms[begin:now] == row[2]]
                noises.append(row[3] - rewards[inside].mean())
            begin = now
        course = private_elimination(table, 0.9, 5.0, iter(noises))
    elif design.check == "epochs":
        course = private_elimination(table, 0.9, math.inf, iter(()), clip=False)
    else:
        course = elimination_after_every_pass(table, 0.9)
    np.testing.assert_array_equal(run.record.action[kept], course.actions)
    assert run.outcome[0] == course.comparisons > 0
    assert run.outcome[2] == course.last_arm == 1
