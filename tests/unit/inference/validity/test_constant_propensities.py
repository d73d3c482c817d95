"""A constant propensity that the choices contradict is told by every model whose numbers rest on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.propensities import NOT_FOLLOWED, RIGHT

STATED: dict[str, Any] = {"action": "arm", "reward": "y", "context": "x", "propensity": 0.5}


def moved(low: float, high: float, seed: int = 0, rounds: int = 1_000) -> pd.DataFrame:
    """Equal arms whose share goes from low to high half-way, while rewards rise from .2 to .5."""
    rng, time = np.random.default_rng(seed), np.arange(rounds) / rounds
    chosen = rng.random(rounds) < np.where(time < 0.5, low, high)
    return pd.DataFrame(
        {
            "arm": np.where(chosen, "B", "A"),
            "y": (rng.random(rounds) < 0.2 + 0.3 * time).astype(float),
            "x": np.where(rng.random(rounds) < 0.5, "new", "old"),
            "b": np.arange(rounds) // 100,
        }
    )


MODELS: dict[str, Callable[[ai.AdaptiveLog], Any]] = {
    "Contrast": lambda log: ai.Contrast(log, treatment="B", control="A").fit(),
    "Winner": lambda log: ai.Winner(log).fit(),
    "PolicyContrast": lambda log: ai.PolicyContrast(log, {"B": 1.0}, baseline={"A": 1.0}).fit(),
    "CATE": lambda log: ai.CATE(log, by="x", treatment="B", control="A").fit(),
    "CATE, pooled": lambda log: ai.CATE(log, by="x", treatment="B").fit("difference-in-means", pooled=True),
    "projection": lambda log: ai.CATE.from_formula("x", log, treatment="B", control="A").fit(),
    "none": lambda log: ai.AdaptiveOLS.from_formula("y ~ C(arm) + x", log).fit("none"),
    "weighted": lambda log: ai.AdaptiveOLS.from_formula("y ~ C(arm) + x", log).fit("weighted"),
    "anytime": lambda log: ai.AdaptiveOLS.from_formula("y ~ C(arm) + x", log).fit("anytime"),
}


@pytest.mark.parametrize("model", MODELS)
def test_every_model_tells_that_a_constant_was_not_followed(model: str) -> None:
    fit = MODELS[model]
    found = fit(ai.AdaptiveLog(moved(0.3, 0.7), **STATED))
    assert says(found.cautions, NOT_FOLLOWED)
    assert "Propensities are right (contradicted)" in dict(found.summary().lines)["Assumes"]
    quiet = fit(ai.AdaptiveLog(moved(0.5, 0.5), **STATED))
    assert not says(quiet.cautions, NOT_FOLLOWED)
    assert "ropensities are right (checked)" in dict(quiet.summary().lines)["Assumes"]


def test_groups_of_sums_tell_it() -> None:
    sums = ai.aggregate(moved(0.3, 0.7), action="arm", reward="y", propensity=0.5, by="x", batch="b")
    assert says(ai.CATE(sums, by="x", treatment="B", control="A").fit().cautions, NOT_FOLLOWED)


def test_a_row_of_recommend_assumes_them() -> None:
    log = ai.AdaptiveLog(moved(0.3, 0.7), **STATED)
    row = ai.recommend(log, "cate", by="x", treatment="B", control="A").frame.iloc[0]
    assert RIGHT.sentence in row["assumes"]
