"""The winner of the first rounds, from the last ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from claims_said import says, wording

import adaptinf as ai
from adaptinf.claims.arms import winners as claims
from adaptinf.claims.logs.rows import NEEDS_ROWS
from adaptinf.errors import InvalidForLog, ParameterError


def log_of(seed: int = 0, rounds: int = 600, batch: int = 100) -> ai.AdaptiveLog:
    env = ai.environments.NormalArms([0.0, 0.0, 0.0, 0.0])
    return ai.designs.Thompson(prior="normal", floor=0.1, batch_size=batch).run(env, horizon=rounds, rng=seed)


def test_numbers_are_those_of_the_last_rounds_alone() -> None:
    log = log_of()
    last = np.arange(600) >= 400
    best = ai.Winner(log).fit(held_out=2)
    first = ai.ArmMeans(log, rounds=~last).fit()
    assert best.winner == int(np.argmax(first.params))
    alone = ai.ArmMeans(log, [best.winner], rounds=last).fit()
    assert best.conf_int().to_numpy() == pytest.approx(alone.conf_int().to_numpy(), rel=1e-12)
    assert (best.terms, best.model, best.validity) == ((f"{best.winner} (winner)",), "Winner", alone.validity)
    assert says(best.notes[0], claims.HELD_OUT, arm=best.winner, first=400, last=200)
    masked = ai.Winner(log).fit(held_out=last)
    assert masked.conf_int().to_numpy() == pytest.approx(best.conf_int().to_numpy(), rel=1e-12)


def test_a_difference_from_a_control() -> None:
    log = log_of(1)
    best = ai.Winner(log, control=2).fit(held_out=3)
    last = np.arange(600) >= 300
    alone = ai.Contrast(log, treatment=best.winner, control=2, rounds=last).fit()
    assert best.conf_int().to_numpy() == pytest.approx(alone.conf_int().to_numpy(), rel=1e-12)
    assert best.terms == (f"{best.winner} (winner) - 2",)


@pytest.mark.slow
def test_equal_arms_are_covered() -> None:
    runs, held = 300, 0
    for seed in range(runs):
        low, high = ai.Winner(log_of(seed, 400)).fit(held_out=2).conf_int().iloc[0]
        held += low <= 0.0 <= high
    assert held / runs > 0.95 - 4.5 * math.sqrt(0.05 * 0.95 / runs)


def test_what_cannot_be_held_out() -> None:
    log = log_of()
    with pytest.raises(ParameterError, match="leave at least one of the 6 batches"):
        ai.Winner(log).fit(held_out=6)
    with pytest.raises(ParameterError, match="select the last rounds"):
        ai.Winner(log).fit(held_out=np.arange(600) < 100)
    with pytest.raises(ParameterError, match="whole number"):
        ai.Winner(log).fit(held_out=0.5)
    with pytest.raises(InvalidForLog, match=wording(NEEDS_ROWS)):
        ai.Winner(ai.Sums.of_log(log)).fit(held_out=1)
    frame = log.frame.drop(columns="batch")
    plain = ai.AdaptiveLog(frame, action="action", reward="reward", propensities="propensity_{arm}")
    with pytest.raises(InvalidForLog, match="no batches"):
        ai.Winner(plain).fit(held_out=1)
