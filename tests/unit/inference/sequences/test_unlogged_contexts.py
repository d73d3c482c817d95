"""Bounds of scores that a context may move which the file lacks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from claims_said import says

from adaptinf import AdaptiveLog, ConfidenceSequence
from adaptinf.claims.sequences import UNLOGGED_TOO_LATE
from adaptinf.errors import InvalidForLog
from adaptinf.log.validation import nested_options
from adaptinf.typing import FloatArray

BOUNDED = (
    ("betting", "aipw"),
    ("empirical-bernstein", "aipw"),
    ("gamma-exponential", "aipw"),
    ("normal-mixture", "aipw"),
    ("normal-mixture", "ipw"),
)


def frame_of(rng: np.random.Generator, horizon: int = 4_000) -> pd.DataFrame:
    """Arm b with chance .9 or .1 by a hidden coin, and rewards that only one side of the coin has."""
    side = rng.integers(0, 2, horizon)
    chance = np.where(side == 1, 0.9, 0.1)
    arm = np.array(["a", "b"])[(rng.random(horizon) < chance).astype(int)]
    reward = (rng.random(horizon) < 0.02 * side).astype(float)
    return pd.DataFrame({"arm": arm, "reward": reward, "p_a": 1.0 - chance, "p_b": chance})


def log_of(frame: pd.DataFrame, **options: object) -> AdaptiveLog:
    return AdaptiveLog(
        frame,
        action="arm",
        reward="reward",
        propensities="p_{arm}",
        reward_range=(0.0, 1.0),
        **nested_options(options),
    )


def misses(limits: FloatArray, truth: float) -> FloatArray:
    """Whether each interval lacks the truth; limits (k, 2)."""
    return ((limits[:, 0] > truth) | (limits[:, 1] < truth)).astype(float)


@pytest.mark.parametrize(("method", "estimator"), BOUNDED)
def test_bounds_by_propensities_that_contexts_may_move_are_refused(method: str, estimator: str) -> None:
    frame = frame_of(np.random.default_rng(1), 400)
    two = {"treatment": "b", "control": "a"}
    for make in (
        lambda log: ConfidenceSequence(log),
        lambda log: ConfidenceSequence(log, "contrast", **two),
        lambda log: ConfidenceSequence(log, "policy-value", policy="b"),
        lambda log: ConfidenceSequence(log, "policy-value", policy=np.tile([0.3, 0.7], (400, 1))),
    ):
        with pytest.raises(InvalidForLog) as caught:
            make(log_of(frame)).fit(method, estimator=estimator)
        assert says(caught.value.reason, UNLOGGED_TOO_LATE)
        said = make(log_of(frame, context_free=True)).fit(method, estimator=estimator)
        assert said.validity == "anytime"
        bounded = make(log_of(frame)).fit(method, estimator=estimator, floor=0.1)
        assert bounded.validity == "anytime"
        # The same bounds in every round are wider than those that follow the propensities.
        assert np.all(np.diff(bounded.conf_int(), axis=1) >= np.diff(said.conf_int(), axis=1) - 1e-9)


def test_bounds_by_propensities_of_batches_are_known() -> None:
    """What stays for a batch was fixed before the contexts of its rounds, but for batches of one round."""
    rng = np.random.default_rng(2)
    frame = frame_of(rng, 400).assign(wave=np.arange(400) // 50)
    chance = np.repeat(rng.uniform(0.2, 0.8, 8), 50)
    frame["p_a"], frame["p_b"] = 1.0 - chance, chance
    kept = ConfidenceSequence(log_of(frame, batch="wave")).fit("betting", estimator="aipw").conf_int()
    said = ConfidenceSequence(log_of(frame, context_free=True)).fit("betting", estimator="aipw").conf_int()
    pd.testing.assert_frame_equal(kept, said)
    single = log_of(frame_of(rng, 400).assign(wave=np.arange(400)), batch="wave")
    with pytest.raises(InvalidForLog) as caught:
        ConfidenceSequence(single).fit("betting", estimator="aipw")
    assert says(caught.value.reason, UNLOGGED_TOO_LATE)


@pytest.mark.slow
def test_sequences_with_a_floor_hold_where_a_hidden_context_moves_the_arms() -> None:
    """The mean of both arms is .01; with bounds by each round's propensities a quarter of logs missed it."""
    rng = np.random.default_rng(3)
    runs, found = 60, []
    for _ in range(runs):
        log = log_of(frame_of(rng))
        for method in ("betting", "empirical-bernstein", "gamma-exponential"):
            limits = ConfidenceSequence(log).fit(method, estimator="aipw", floor=0.1).conf_int()
            found.append(misses(limits.to_numpy(), 0.01).mean())
        found.append(
            misses(ConfidenceSequence(log).fit("betting", estimator="ipw").conf_int().to_numpy(), 0.01).mean()
        )
    missed = np.array(found).reshape(runs, 4).mean(axis=0)
    # A share of .05 in 60 logs is above .20 with chance 3e-6.
    assert np.all(missed <= 0.20), missed
