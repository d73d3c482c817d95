"""A constant propensity that the choices contradict is told by every model whose numbers rest on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims.arms.batched import MOVED_INSIDE
from adaptinf.claims.propensities import NOT_FOLLOWED, RIGHT
from adaptinf.claims.stationarity import BOTH_MOVED
from adaptinf.inference.validity.profile import profile_of
from adaptinf.sums.homogeneity import homogeneity_pvalue, within_pvalue

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


def by_hour(seed: int, rounds: int = 1_920, arms: int = 2) -> pd.DataFrame:
    """Equal arms, 20 rounds an hour: shares and rewards are higher from 9 to 18 h than at other hours."""
    rng, hour = np.random.default_rng(seed), np.arange(rounds) // 20
    busy = (hour % 24 >= 9) & (hour % 24 < 18)
    chosen = rng.random(rounds) < np.where(busy, 0.7, 0.4)
    code = np.where(chosen, 0, 1 + rng.integers(0, arms - 1, rounds))
    frame = pd.DataFrame({"arm": code, "hour": hour, "day": hour // 24})
    frame["y"] = (rng.random(rounds) < np.where(busy, 0.5, 0.3)).astype(float)
    frame["p"] = frame["arm"].map(frame["arm"].value_counts(normalize=True))
    return frame


def contrast(data: Any) -> Any:
    return ai.Contrast(data, treatment=0, control=1).fit()


@pytest.mark.parametrize("arms", [2, 3])
@pytest.mark.parametrize("batch", [None, "hour", "day"])
def test_the_overall_share_is_not_the_propensity_of_every_hour(batch: str | None, arms: int) -> None:
    roles = {"action": "arm", "reward": "y", "propensity": "p", "batch": batch}
    seen = [
        says(contrast(ai.AdaptiveLog(by_hour(s, arms=arms), **roles)).cautions, NOT_FOLLOWED)
        for s in range(5)
    ]
    assert all(seen)


@pytest.mark.parametrize("arms", [2, 3])
def test_sums_by_hour_tell_it(arms: int) -> None:
    for seed in range(5):
        frame = by_hour(seed, arms=arms)
        sums = ai.aggregate(frame, action="arm", reward="y", propensity="p", batch="hour")
        assert says(contrast(sums).cautions, NOT_FOLLOWED)


def test_batches_hide_no_shares_that_change_within_them() -> None:
    for seed in range(10):
        frame = by_hour(seed)
        days, plain = (
            profile_of(ai.AdaptiveLog(frame, action="arm", reward="y", adaptive=False, batch=batch))
            for batch in ("day", None)
        )
        assert days.shares_move
        assert days.shares_move_in_batches
        assert plain.shares_move
        fitted = ai.Contrast(days.log, treatment=0, control=1).fit()
        assert says(fitted.cautions, BOTH_MOVED)
        stated = ai.AdaptiveLog(frame, action="arm", reward="y", propensity="p", batch="day")
        batched = ai.Contrast(stated, treatment=0, control=1).fit("batched")
        assert says(batched.cautions, MOVED_INSIDE)


def test_counts_by_stretch_by_hand() -> None:
    batch = np.repeat([0, 1], [100, 60])
    action = np.r_[np.zeros(40), np.ones(10), np.zeros(10), np.ones(40), np.tile([0.0, 1.0], 30)].astype(int)
    counts = np.array([[40, 10], [10, 40]])
    due = homogeneity_pvalue(*(place.ravel() for place in (0 * counts, *np.indices((2, 2)))), counts.ravel())
    assert within_pvalue(action, 2, batch) == pytest.approx(due, rel=1e-12)
    assert due == pytest.approx(stats.chi2_contingency(counts, correction=False).pvalue, rel=1.0)
    assert within_pvalue(action, 2, np.repeat(np.arange(4), 40)) == 1.0


@pytest.mark.slow
def test_right_constants_are_rarely_doubted() -> None:
    rows, sums, inside = [], [], []
    for seed in range(600):
        rng = np.random.default_rng(seed)
        share = rng.uniform(0.1, 0.9)
        arm = (rng.random(1_000) < share).astype(int)
        frame = pd.DataFrame({"arm": arm, "y": rng.normal(size=1_000), "b": np.arange(1_000) // 40})
        frame["p"] = np.where(arm == 1, share, 1.0 - share)
        roles = {"action": "arm", "reward": "y", "propensity": "p", "batch": "b"}
        for kept, made in ((rows, ai.AdaptiveLog), (sums, ai.aggregate)):
            found = profile_of(made(frame, **roles)).propensities_found
            assert found is not None
            kept.append(found.contradicted)
        inside.append(within_pvalue(arm, 2, np.arange(1_000) // 200))
    assert max(np.count_nonzero(rows), np.count_nonzero(sums)) <= 4
    assert 600 * 0.1 - 30 <= np.count_nonzero(np.array(inside) < 0.1) <= 600 * 0.1 + 30
