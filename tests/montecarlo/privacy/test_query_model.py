"""Drawing a whole tableau first and drawing rewards as one goes: one law of actions and revealed rewards."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pytest
from scipy import stats

from adaptinf.designs import UCB, DPConSE, PrivateUCB
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import BernoulliArms, FiniteContext, Tableau

History: TypeAlias = tuple[tuple[int, float], ...]
Law: TypeAlias = dict[History, Fraction]
Interaction: TypeAlias = Callable[[np.ndarray], np.ndarray]

FALSE_ALARM = 1e-4
ROUNDS = 6
MEANS = (Fraction(1, 3), Fraction(3, 4))

# --- exactly: every tableau of 0s and 1s, against a recursion over what is revealed -----------------------


def independent_rows(rows: np.ndarray) -> Fraction:
    """Probability of a tableau whose entries are all independent."""
    ones = rows.astype(int)
    chances = (MEANS[a] if ones[t, a] else 1 - MEANS[a] for t in range(len(rows)) for a in range(2))
    return math.prod(chances, start=Fraction(1))


def comonotone_rows(rows: np.ndarray) -> Fraction:
    """Probability of a tableau whose rows are independent, both entries of a row made of one uniform draw."""
    both, neither = min(MEANS), 1 - max(MEANS)
    joint = {(1, 1): both, (0, 0): neither, (0, 1): MEANS[1] - both, (1, 0): MEANS[0] - both}
    return math.prod((joint[tuple(row)] for row in rows.astype(int)), start=Fraction(1))


def copied_rows(rows: np.ndarray) -> Fraction:
    """Probability of a tableau in which each odd row is a copy of the row before it."""
    return independent_rows(rows[::2]) if (rows[1::2] == rows[::2]).all() else Fraction(0)


def law_of_tableaux(interaction: Interaction, probability: Callable[[np.ndarray], Fraction]) -> Law:
    """Law of the history when the tableau is drawn first: all 2^(rounds * arms) of them."""
    law: Law = {}
    for bits in itertools.product((0.0, 1.0), repeat=2 * ROUNDS):
        rows = np.array(bits).reshape(ROUNDS, 2)
        weight = probability(rows)
        if weight:
            actions = interaction(rows)
            history = tuple((int(arm), float(rows[t, arm])) for t, arm in enumerate(actions))
            law[history] = law.get(history, Fraction(0)) + weight
    return law


def law_as_one_goes(select: Callable[[History], int]) -> Law:
    """Law of the history when each reward is drawn after its arm has been chosen."""
    law: Law = {(): Fraction(1)}
    for _ in range(ROUNDS):
        longer: Law = {}
        for history, weight in law.items():
            arm = select(history)
            longer[(*history, (arm, 1.0))] = weight * MEANS[arm]
            longer[(*history, (arm, 0.0))] = weight * (1 - MEANS[arm])
        law = longer
    return law


def literal_ucb(history: History) -> int:
    """UCB1 from the pairs of arm and reward that were revealed, and from nothing else."""
    if len(history) < 2:
        return len(history)
    index = []
    for arm in range(2):
        rewards = [reward for pulled, reward in history if pulled == arm]
        width = math.sqrt(2.0 * math.log(len(history) + 1) / len(rewards))
        index.append(sum(rewards) / len(rewards) + width)
    return int(np.argmax(index))


def ucb(rows: np.ndarray) -> np.ndarray:
    return UCB().run(Tableau(rows), ROUNDS, rng=0).arrays.action


def with_peek(rows: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """The actions, but in the last round the arm that pays more, where the row has one."""
    changed = actions.copy()
    if rows[-1, 0] != rows[-1, 1]:
        changed[-1] = np.argmax(rows[-1])
    return changed


def peeks_at_this_round(rows: np.ndarray) -> np.ndarray:
    return with_peek(rows, ucb(rows))


def peeks_at_the_past(rows: np.ndarray) -> np.ndarray:
    actions = ucb(rows).copy()
    not_revealed = rows[0, 1 - actions[0]]
    actions[-1] = int(not_revealed)
    return actions


def distance(first: Law, second: Law) -> float:
    """Total variation."""
    keys = first.keys() | second.keys()
    return float(sum(abs(first.get(key, 0) - second.get(key, 0)) for key in keys) / 2)


@pytest.fixture(scope="module")
def as_one_goes() -> Law:
    return law_as_one_goes(literal_ucb)


@pytest.mark.parametrize("rows", [independent_rows, comonotone_rows])
def test_both_ways_have_exactly_one_law(rows: Callable[[np.ndarray], Fraction], as_one_goes: Law) -> None:
    """Whatever the dependence within a row: a run reveals one entry of it."""
    assert law_of_tableaux(ucb, rows) == as_one_goes
    assert sum(as_one_goes.values()) == 1
    assert len(as_one_goes) == 2**ROUNDS


@pytest.mark.parametrize("peeking", [peeks_at_this_round, peeks_at_the_past])
def test_a_design_that_reads_what_is_not_revealed_has_another_law(
    peeking: Interaction, as_one_goes: Law
) -> None:
    law = law_of_tableaux(peeking, independent_rows)
    assert sum(law.values()) == 1
    assert distance(law, as_one_goes) > 0.05


def test_rows_that_depend_on_each_other_have_another_law(as_one_goes: Law) -> None:
    law = law_of_tableaux(ucb, copied_rows)
    assert sum(law.values()) == 1
    assert distance(law, as_one_goes) > 0.05


# --- private designs, whose noise is no function of the history: two samples of histories -----------------


def p_value(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """Chi-square test that two samples have one law; cells that expect fewer than 10 make one cell."""
    tallies = Counter(first), Counter(second)
    counts = np.array([[tally[key] for key in {*first, *second}] for tally in tallies])
    rare = counts.sum(axis=0) < 20
    merged = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
    merged = merged[:, merged.sum(axis=0) > 0]
    assert merged.shape[1] > 10
    return float(stats.chi2_contingency(merged).pvalue)


def history_of(log: AdaptiveLog) -> History:
    return tuple(zip(log.arrays.action.tolist(), log.arrays.reward.tolist(), strict=True))


PRIVATE_RUNS = 6_000


@pytest.fixture(scope="module")
def private_histories() -> list[History]:
    logs = PrivateUCB(epsilon=2.0).logs(BernoulliArms([0.3, 0.8]), ROUNDS, PRIVATE_RUNS, rng=1)
    return [history_of(log) for log in logs]


@pytest.fixture(scope="module")
def private_tableaux() -> list[tuple[np.ndarray, np.ndarray]]:
    """Tableaux that were drawn first, and the actions on each."""
    rng = np.random.default_rng(2)
    design = PrivateUCB(epsilon=2.0)
    tableaux = [(rng.random((ROUNDS, 2)) < [0.3, 0.8]).astype(float) for _ in range(PRIVATE_RUNS)]
    return [
        (rows, design.run(Tableau(rows, reward_range=(0, 1)), ROUNDS, rng=seed).arrays.action)
        for seed, rows in enumerate(tableaux)
    ]


def revealed(rows: np.ndarray, actions: np.ndarray) -> History:
    return tuple(zip(actions.tolist(), rows[np.arange(len(rows)), actions].tolist(), strict=True))


def test_private_ucb_draws_from_one_law(private_histories: list[History], private_tableaux: list) -> None:
    first = [revealed(rows, actions) for rows, actions in private_tableaux]
    assert p_value(private_histories, first) > FALSE_ALARM


def test_a_private_design_that_peeks_is_noticed(
    private_histories: list[History], private_tableaux: list
) -> None:
    peeking = [revealed(rows, with_peek(rows, actions)) for rows, actions in private_tableaux]
    assert p_value(private_histories, peeking) < 1e-12


HORIZON = 64
TRIAL_RUNS = 4_000
TRIAL = DPConSE(epsilon=20.0, alpha=1.0, first_window=16)
TRIAL_MEANS = np.array([[0.05, 0.95], [0.6, 0.4]])


def trial_summary(feature: np.ndarray, action: np.ndarray, reward: np.ndarray) -> Hashable:
    """Pulls of arm 1 by context after the first window, some rewards, and the last round, in cells."""
    late = np.arange(HORIZON) >= HORIZON // 2
    pulls = [int(action[late & (feature == code)].sum()) // 5 for code in (0, 1)]
    middle = int(action[16:32][feature[16:32] == 0].sum()) // 3
    return (*pulls, middle, int(reward[late].sum()) // 6, int(feature[-1]), int(action[-1]))


def trial_tableaux(peek: bool) -> list[Hashable]:
    """Summaries on contexts and rewards that were drawn first."""
    rng = np.random.default_rng(4)
    summaries = []
    for seed in range(TRIAL_RUNS):
        feature = rng.integers(0, 2, HORIZON)
        rows = (rng.random((HORIZON, 2)) < TRIAL_MEANS[feature]).astype(float)
        action = TRIAL.run(Tableau(rows, feature, reward_range=(0, 1)), HORIZON, rng=seed).arrays.action
        action = with_peek(rows, action) if peek else action
        summaries.append(trial_summary(feature, action, rows[np.arange(HORIZON), action]))
    return summaries


@pytest.fixture(scope="module")
def trial_summaries() -> list[Hashable]:
    environment = FiniteContext([0.5, 0.5], TRIAL_MEANS)
    logs = TRIAL.logs(environment, HORIZON, TRIAL_RUNS, rng=3)
    return [
        trial_summary(log.arrays.context["feature"], log.arrays.action, log.arrays.reward) for log in logs
    ]


def test_dp_conse_draws_from_one_law(trial_summaries: list[Hashable]) -> None:
    assert p_value(trial_summaries, trial_tableaux(peek=False)) > FALSE_ALARM


def test_a_trial_that_peeks_is_noticed(trial_summaries: list[Hashable]) -> None:
    assert p_value(trial_summaries, trial_tableaux(peek=True)) < 1e-12
