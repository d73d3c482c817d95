"""Covariate adjustment on adaptive logs of a simulator of their own: intervals cover, and are shorter."""

from __future__ import annotations

import numpy as np

from adaptinf.inference.arms import Contrast
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.typing import FloatArray

ROUNDS, BATCHES, EFFECT = 600, 6, 0.2


def one_log(rng: np.random.Generator) -> LogArrays:
    """A covariate explains three quarters of the variance; the arm ahead gets 85% of the next batch."""
    size = ROUNDS // BATCHES
    x = rng.normal(size=ROUNDS)
    noise = rng.normal(size=ROUNDS)
    action, share = np.empty(ROUNDS, dtype=np.int64), np.empty(ROUNDS)
    reward = np.empty(ROUNDS)
    chance = 0.5
    for batch in range(BATCHES):
        rows = slice(batch * size, (batch + 1) * size)
        share[rows] = chance
        action[rows] = rng.random(size) < chance
        reward[rows] = np.sqrt(3.0) * x[rows] + noise[rows] + EFFECT * action[rows]
        seen, arm = reward[: rows.stop], action[: rows.stop]
        chance = 0.85 if seen[arm == 1].mean() > seen[arm == 0].mean() else 0.15
    every = np.column_stack([1.0 - share, share])
    own = every[np.arange(ROUNDS), action]
    batch = np.repeat(np.arange(BATCHES), size)
    return LogArrays(action, reward, own, every, batch, context={"x": x})


def test_adjusted_intervals_cover_and_are_half_as_long() -> None:
    """500 logs, 3 binomial errors; variances a quarter, and a little for the first rounds."""
    rng = np.random.default_rng(31)
    runs, missed, ratios, errors = 500, 0, list[float](), list[float]()
    for _ in range(runs):
        log = AdaptiveLog.from_arrays(one_log(rng), arms=("a", "b"), context_free=True)
        result = Contrast(log, treatment="b", control="a").fit(covariate="x")
        low, high = result.conf_int().to_numpy()[0]
        missed += not low <= EFFECT <= high
        ratios.append(float(result.details["variance_ratio"][0]))
        errors.append(float(result.estimate[0] - EFFECT))
    spread: FloatArray = np.array(errors)
    assert abs(missed / runs - 0.05) < 3.0 * np.sqrt(0.05 * 0.95 / runs)
    assert abs(spread.mean()) < 3.0 * spread.std() / np.sqrt(runs)
    assert 0.25 < np.mean(ratios) < 0.33
