"""bayesianbandits: quantiles of an arm's posterior, Dirichlet for 0 and 1, else normal-inverse-gamma."""

import numpy as np
from bayesianbandits import Arm, DirichletClassifier, NormalInverseGammaRegressor


def posterior(log, arm, number=4_000):
    outcomes = log.of(arm)
    if set(np.unique(outcomes)) <= {0.0, 1.0}:
        learner, values = DirichletClassifier({0: 1.0, 1: 1.0}, random_state=arm), outcomes.astype(int)
    else:
        learner, values = NormalInverseGammaRegressor(random_state=arm), outcomes
    told = Arm(arm, learner=learner)
    told.update(np.ones((len(values), 1)), values)
    draws = np.asarray(told.learner.sample(np.ones((1, 1)), size=number))
    return draws.reshape(number, -1)[:, -1]


def interval(log, target):
    draws = posterior(log, 1) - posterior(log, 0) if target == "contrast" else posterior(log, log.arm)
    return np.quantile(draws, [0.025, 0.975])
