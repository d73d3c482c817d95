"""Audits of the private designs for arms: neighbours, trials, and actions that follow from releases."""

from __future__ import annotations

import numpy as np

from adaptinf.audit.privacy.designs.audited_trial import AuditTrial, audit_trials, outside_rewards
from adaptinf.audit.privacy.designs.counter_ratios import CounterNoise, sum_neighbours
from adaptinf.audit.privacy.designs.epoch_ratios import EpochMeanNoise, EpochMeanScore
from adaptinf.audit.privacy.designs.neighbours import (
    UNIT_RANGE,
    Neighbours,
    neighbouring_trials,
    one_reward_apart,
    refuse_unit,
)
from adaptinf.designs.arms.elimination import PrivateSuccessiveElimination
from adaptinf.designs.arms.elimination_kernel import elimination_epochs, shortest_horizon
from adaptinf.designs.arms.ucb import PrivateUCB
from adaptinf.privacy.counters.sums import counter_scales
from adaptinf.simulation.environments import BernoulliArms, Tableau
from adaptinf.typing import FloatArray

_LONG, _SHORT = 1_100, 256
_ARMS, _SHOWN, _LONGEST = 3, 4, 100_000
_AFTER = 2
"""Rounds after an epoch of two arms that tell which of them are left."""
_REACH = 2.0
"""Scales of the noise by which the difference of two means stays below the threshold."""


@neighbouring_trials.register
def ucb_neighbours(design: PrivateUCB, unit: str | None = None) -> tuple[Neighbours, ...]:
    """Two arms and at most 16 rounds, one round's rewards being 0 and 1 and all others 1/2.

    First where the reward enters as many noisy sums as it can; then earlier (hybrid) or later (binary) in the
    trial. The scores are exact for any sequence of arms.
    """
    refuse_unit(unit)
    return sum_neighbours(design.counter)


@audit_trials.register
def ucb_trials(design: PrivateUCB) -> tuple[AuditTrial, ...]:
    """One arm and two arms for 1,100 rounds with rewards beyond [0, 1], three arms with 0/1 rewards."""
    coins = BernoulliArms([0.5, 0.5, 0.5])
    kinds = (
        ("one arm for 1,100 rounds, rewards in and beyond [0, 1]", Tableau(outside_rewards(_LONG, 1)), _LONG),
        (
            "two arms for 1,100 rounds, rewards in and beyond [0, 1]",
            Tableau(outside_rewards(_LONG, 2)),
            _LONG,
        ),
        ("three arms for 256 rounds, rewards by fair coins", coins, _SHORT),
    )
    trials = []
    for words, env, horizon in kinds:
        budget = design.guarantee(horizon, env.n_arms).epsilon
        trunk, node = counter_scales(design.counter, budget, horizon)
        noise = CounterNoise(env.n_arms, design.counter == "hybrid", trunk, node, fair=env is coins)
        trials.append(AuditTrial(words, env, horizon, noise=noise))
    return tuple(trials)


@neighbouring_trials.register
def elimination_neighbours(
    design: PrivateSuccessiveElimination, unit: str | None = None
) -> tuple[Neighbours, ...]:
    """Two arms, one epoch and two rounds more, with the reward of the first round 0 and 1.

    One pair. The score of its releases is exact, a single Laplace variable that moves by epsilon of its
    scales whatever the length of the epoch; the first arm's mean lies so far below the second's that naming
    the arms that are left tells nearly as much.
    """
    refuse_unit(unit)
    horizon, passes, threshold = _shortest_trial(design)
    rewards = np.zeros((horizon, 2))
    rewards[:, 1] = max(0.0, threshold - _REACH / (design.epsilon * passes))
    first, second = one_reward_apart(rewards, row=0)
    return (
        Neighbours(
            Tableau(first, reward_range=UNIT_RANGE),
            Tableau(second, reward_range=UNIT_RANGE),
            horizon,
            "reward",
            "the rewards of round 1 are 0 and 1",
            EpochMeanScore(first, second, row=0),
            hidden=tuple(range(2 * passes)),
        ),
    )


def _shortest_trial(design: PrivateSuccessiveElimination) -> tuple[int, int, float]:
    """Rounds of a trial of two arms that is barely longer than an epoch; its passes and threshold."""
    horizon = shortest_horizon(2, design.beta, design.epsilon) + _AFTER
    while True:
        lengths, thresholds = _epochs(design, 2, horizon)
        passes = int(lengths[2, 0])
        if 2 * passes + _AFTER <= horizon:
            return horizon, passes, float(thresholds[2, 0])
        horizon = 2 * passes + _AFTER


@audit_trials.register
def elimination_trials(design: PrivateSuccessiveElimination) -> tuple[AuditTrial, ...]:
    """Three arms and two epochs; in the first one, two arms lie about the threshold below the best."""
    trials = []
    for fair in (False, True):
        words, env, horizon = _fair_epoch(design) if fair else _near_threshold(design)
        noise = EpochMeanNoise(1.0 / float(design.epsilon), fair=fair)
        lengths, _ = _epochs(design, env.n_arms, horizon)
        opening = int(env.n_arms * lengths[env.n_arms, 0]) + _SHOWN
        trials.append(AuditTrial(words, env, horizon, noise=noise, live_rounds=opening * fair))
    return tuple(trials)


def _epochs(design: PrivateSuccessiveElimination, n_arms: int, horizon: int) -> tuple[FloatArray, FloatArray]:
    beta = 1.0 / horizon if design.beta is None else float(design.beta)
    return elimination_epochs(n_arms, horizon, beta, float(design.epsilon))


def _near_threshold(design: PrivateSuccessiveElimination) -> tuple[str, Tableau, int]:
    """Rewards beyond [0, 1], whose means once they are clipped lie a threshold apart."""
    horizon = shortest_horizon(_ARMS, design.beta, design.epsilon)
    lengths, thresholds = _epochs(design, _ARMS, horizon)
    # the second epoch of as many arms is the longest that can follow; beta may shrink with the horizon
    horizon = int(_ARMS * (lengths[_ARMS, 0] + 8.0 * lengths[_ARMS, 0]))
    lengths, thresholds = _epochs(design, _ARMS, horizon)
    one, two = (int(_ARMS * lengths[_ARMS, :epochs].sum()) + _SHOWN for epochs in (1, 2))
    horizon = min(horizon, two if two <= _LONGEST else one)
    lengths, thresholds = _epochs(design, _ARMS, horizon)
    low = max(0.0, 1.0 - float(thresholds[_ARMS, 0]))
    rewards = np.tile([3.0, low, -2.0 if low == 0.0 else low], (horizon, 1))
    return f"three arms for {horizon:,} rounds, one with rewards of 3", Tableau(rewards), horizon


def _fair_epoch(design: PrivateSuccessiveElimination) -> tuple[str, BernoulliArms, int]:
    # twice the first epoch: a mixture that skips rounds ends it too
    horizon = 2 * shortest_horizon(2, design.beta, design.epsilon) + _SHOWN
    return f"two arms for {horizon:,} rounds, rewards by fair coins", BernoulliArms([0.5, 0.5]), horizon
