"""Intervals of several lifts by the law of the largest t hold at once."""

from __future__ import annotations

import numpy as np

import adaptinf as ai

RATES = (0.3, 0.3, 0.4, 0.5)
DESIGN = ai.designs.EpsilonGreedy(exploration=0.4, batch_size=100)


def test_all_lifts_hold_at_once() -> None:
    """120 logs of four arms: .95 within 3.9 binomial errors, and single ones hold less often at once."""
    runs, truth = 120, np.array(RATES[1:]) / RATES[0] - 1.0
    held = np.zeros(2)
    for log in DESIGN.logs(ai.environments.BernoulliArms(RATES), 1_500, runs, 5):
        found = ai.Contrasts(log, control=0).fit("aipw", "combined", lift=True)
        for place, limits in enumerate((found.conf_int_simultaneous(), found.conf_int())):
            low, high = limits.to_numpy().T
            held[place] += np.all((low <= truth) & (truth <= high))
    assert abs(held[0] / runs - 0.95) < 3.9 * np.sqrt(0.95 * 0.05 / runs)
    assert held[1] < held[0]
