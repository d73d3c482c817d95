"""ville: betting sequences of an arm's outcomes, and of an effect where every unit had the same chance."""

import numpy as np
import ville


def interval(log, target):
    if target == "contrast":
        if not np.allclose(log.shares, log.shares[0]):
            return None
        test = ville.BettingABTest(bounds=(0, 1), alpha=0.05).fit(log.rewards, (log.arms == 1).astype(float))
        return test.lower_[-1], test.upper_[-1]
    sequence = ville.BettingCS(bounds=(0, 1), alpha=0.05, grid=1_000).fit(log.of(log.arm))
    return sequence.lower_[-1], sequence.upper_[-1]
