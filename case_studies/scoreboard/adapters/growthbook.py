"""GrowthBook's bandit: means weighted by the periods' users; the formula restated from its SQL."""

import numpy as np


def interval(log, target):
    weights = log.n.sum(axis=1, keepdims=True) / log.n.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(log.n > 0, log.sums / log.n, 0)
        variances = np.where(log.n > 1, (log.squares - log.n * means**2) / (log.n - 1) / log.n, 0)
    mean, error = (weights * means).sum(axis=0), np.sqrt((weights**2 * variances).sum(axis=0))
    arm = {"leader": mean.argmax(), "lowest": mean.argmin()}.get(target, 0)
    return mean[arm] - 1.959964 * error[arm], mean[arm] + 1.959964 * error[arm], arm
