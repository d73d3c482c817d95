"""vw-estimators: the sequence for the value of a policy; an arm is the policy that always chooses it."""

import numpy as np
from estimators.bandits import cs


def interval(log, target):
    rules = log.policy if target == "policy" else np.tile(np.eye(log.n_arms)[log.arm], (log.rounds, 1))
    found = cs.Interval()
    for chance, reward, wanted in zip(
        log.chosen.tolist(),
        log.rewards.tolist(),
        rules[np.arange(log.rounds), log.arms].tolist(),
        strict=True,
    ):
        found.add_example(chance, reward, wanted)
    return found.get(0.05)
