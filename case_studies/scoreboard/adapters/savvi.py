"""savvi: anytime-valid linear regression on arms, updated a round at a time."""

import numpy as np
from savvi.linear_regression import LinearRegression


def interval(log, target):
    arms = (log.arms[:, None] == np.arange(log.n_arms)).astype(float)
    if target == "contrast":
        arms[:, 0] = 1
    model = LinearRegression(alpha=0.05, p=log.n_arms)
    for row in np.column_stack([log.rewards, arms]):
        model.update(row)
    return model.calculate_conf_int()[1 if target == "contrast" else log.arm]
