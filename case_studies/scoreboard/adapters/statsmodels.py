"""statsmodels: least squares on arms with robust errors, by unit where units repeat; Poisson for ratios."""

import numpy as np
from statsmodels.discrete.discrete_model import Poisson
from statsmodels.regression.linear_model import OLS


def interval(log, target):
    if target == "policy" and (log.policy != log.policy[0]).any():
        return None  # a policy by context is more than a sum of coefficients
    arms = (log.arms[:, None] == np.arange(log.n_arms)).astype(float)
    asked = {"contrast": [-1, 1], "policy": log.policy.mean(axis=0)}.get(target, np.eye(log.n_arms)[log.arm])
    robust = {"cov_type": "HC1"}
    if log.units is not None:
        robust = {"cov_type": "cluster", "cov_kwds": {"groups": log.units}}
    if target == "ratio":
        arms[:, 0] = 1
        return np.exp(Poisson(log.rewards, arms).fit(disp=0, **robust).conf_int()[1])
    return OLS(log.rewards, arms).fit(**robust).t_test(np.array(asked)).conf_int()[0]
