"""ppi-python: the arm's rounds are labelled, others not; the prediction is the mean of the others."""

import numpy as np
from ppi_py import ppi_mean_ci


def interval(log, target):
    labelled = log.arms == log.arm
    if labelled.all():
        return None
    predicted = np.full(log.rounds, log.rewards[~labelled].mean())
    weights = None if log.chosen is None else 1 / log.chosen[labelled]
    low, high = ppi_mean_ci(
        log.rewards[labelled], predicted[labelled], predicted[~labelled], alpha=0.05, w=weights
    )
    return float(np.squeeze(low)), float(np.squeeze(high))
