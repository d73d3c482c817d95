"""A covariate that differs between arms by more than their probabilities explain is told under its table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.data import covariates as claims
from adaptinf.inference.arms.data.covariate_adjustment import moved_covariates
from adaptinf.inference.validity.profile import profile_of
from adaptinf.inference.validity.sums_profile import SumsProfile

EVERY = {"a": "p_a", "b": "p_b", "c": "p_c"}


def frame(move: float = 0.0, rounds: int = 1_200, seed: int = 0, by_x: bool = False) -> pd.DataFrame:
    """Three arms whose shares move by batch, or with x; arm b moves x by so many sd."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rounds)
    clock = np.repeat(np.linspace(-1.0, 1.0, rounds // 100), 100)
    share = 0.4 + 0.15 * (np.sign(x) if by_x else clock)
    chance = np.stack([share, (1.0 - share) / 2.0, (1.0 - share) / 2.0], axis=1)
    arm = (rng.random(rounds)[:, None] > chance.cumsum(axis=1)).sum(axis=1).clip(max=2)
    data = dict(zip(EVERY.values(), chance.T, strict=True))
    x = x + move * (arm == 1)
    batch = np.arange(rounds) // 100
    return pd.DataFrame(
        {
            "arm": np.array(["a", "b", "c"])[arm],
            "y": x + rng.normal(size=rounds),
            "x": x,
            "batch": batch,
            **data,
        }
    )


def log_of(data: pd.DataFrame, **more: object) -> ai.AdaptiveLog:
    known = {"propensities": EVERY} | more
    return ai.AdaptiveLog(data, action="arm", reward="y", batch="batch", context="x", **known)  # type: ignore[arg-type]


def test_the_table_that_is_adjusted_for_it_names_it() -> None:
    for move, told in ((0.4, True), (0.0, False)):
        log = log_of(frame(move))
        for table in (
            ai.ArmMeans(log).fit(covariate="x"),
            ai.Contrast(log, treatment="b", control="a").fit(covariate="x"),
        ):
            assert bool(says(table.cautions, claims.MOVED, name="x", arm="b")) == told
        assert not says(ai.ArmMeans(log).fit().cautions, claims.MOVED)


def test_arms_that_contexts_decide_by_known_propensities_move_nothing() -> None:
    for seed in range(20):
        found = moved_covariates(profile_of(log_of(frame(seed=seed, by_x=True))), ["x"])
        assert found is not None
        assert not found.contradicted


def test_the_score_is_that_of_ranks() -> None:
    data = frame()
    rank = data["x"].rank().to_numpy() - 0.5 * (len(data) + 1)
    size = {}
    for arm, column in EVERY.items():
        share = data[column].to_numpy()
        gap = (data["arm"] == arm) - share
        size[arm] = abs(rank @ gap) / np.sqrt(rank**2 @ (share * (1.0 - share)))
    for level, contradicted in ((0.9 * max(size.values()), True), (1.1 * max(size.values()), False)):
        from adaptinf.inference.arms.data import covariate_adjustment as module

        tail = 2.0 * module.special.ndtr(-level) * len(EVERY)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "ALARM", tail)
            found = moved_covariates(profile_of(log_of(data)), ["x"])
        assert found is not None
        assert found.contradicted == contradicted


def test_chosen_propensities_and_sums_find_it_too() -> None:
    for move, told in ((0.5, True), (0.0, False)):
        data = frame(move, rounds=2_400)
        own = data[list(EVERY.values())].to_numpy()[
            np.arange(len(data)), data["arm"].map({"a": 0, "b": 1, "c": 2})
        ]
        alone = log_of(data.assign(p=own), propensities=None, propensity="p")
        assert not profile_of(alone).knows_every_propensity
        sums = ai.aggregate(data, action="arm", reward="y", batch="batch", propensities=EVERY, covariate="x")
        for profile in (profile_of(alone), SumsProfile(sums)):
            found = moved_covariates(profile, ["x"])
            assert found is not None
            assert found.contradicted == told
        assert bool(says(ai.ArmMeans(sums).fit(covariate="x").cautions, claims.MOVED, name="x")) == told


def test_what_cannot_be_tested_is_not_said_to_be() -> None:
    data = frame(rounds=100)
    assert moved_covariates(profile_of(log_of(data.assign(x=1.0 * (np.arange(100) == 5)))), ["x"]) is None
    assert moved_covariates(profile_of(log_of(frame(0.5).assign(x=1.0))), ["x"]) is None
    assert moved_covariates(profile_of(log_of(frame(0.5), propensities=None)), ["x"]) is None
