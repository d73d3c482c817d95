"""pyssed: the mixture adaptive design's sequence; its own effects and radius, fed with the log's rounds."""

import numpy as np
from pyssed import MAD, Bandit


class Logged(Bandit):
    """A bandit of which only the number of arms is asked: choices and rewards are the log's."""

    def __init__(self):
        self._active_arms = [1]

    def control(self):
        return 0

    def k(self):
        return 2

    def t(self):
        return 0

    def probabilities(self):
        return {0: 0.5, 1: 0.5}

    def reward(self, arm):
        return None


def interval(log, target):
    design = MAD(Logged(), alpha=0.05, delta=lambda t: 1 / t**0.24, t_star=log.rounds)
    for arm, reward, chance in zip(log.arms.tolist(), log.rewards, log.chosen, strict=True):
        design._compute_ite(selected_arm=arm, outcome=reward, propensity=chance)
    centre, radius = design._compute_ate(1)
    return (centre - radius, centre + radius) if np.isfinite(radius) else None
