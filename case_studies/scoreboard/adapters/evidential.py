"""Evidential's bandit: quantiles of an arm's Beta posterior, flat before the first draw."""

import numpy as np
from scipy.stats import beta


def interval(log, target):
    successes, failures = log.sums.sum(axis=0), (log.n - log.sums).sum(axis=0)
    mean = (1 + successes) / (2 + successes + failures)
    arm = {"leader": mean.argmax(), "lowest": mean.argmin()}.get(target, 0)
    low, high = beta.ppf([0.025, 0.975], 1 + successes[arm], 1 + failures[arm])
    return np.round(low, 9), np.round(high, 9), arm
