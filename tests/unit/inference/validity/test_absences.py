"""Arms that are missing in long stretches of a log without propensities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims import stationarity as claims
from adaptinf.inference.validity.constant_means import absences
from adaptinf.inference.validity.profile import profile_of

ROUNDS = 1_000


def late(share: float = 0.5, at: int = 500, leaves: int = ROUNDS) -> pd.DataFrame:
    """A new arm is served from one round to another; rewards of both arms rise slowly."""
    rng = np.random.default_rng(7)
    rounds = np.arange(ROUNDS)
    new = (rng.random(ROUNDS) < share) & (rounds >= at) & (rounds < leaves)
    reward = (rng.random(ROUNDS) < 0.2 + 0.15 * rounds / ROUNDS).astype(float)
    return pd.DataFrame({"arm": np.where(new, "new", "old"), "y": reward, "batch": rounds // 50})


def log_of(rows: pd.DataFrame, **given: Any) -> ai.AdaptiveLog:
    return ai.AdaptiveLog(rows, action="arm", reward="y", reward_range=(0.0, 1.0), **given)


MODELS: dict[str, Any] = {
    "ArmMeans": lambda log: ai.ArmMeans(log).fit(),
    "Contrast": lambda log: ai.Contrast(log, treatment="new", control="old").fit("sample-mean"),
    "Contrasts": lambda log: ai.Contrasts(log, control="old").fit("sample-mean"),
    "lift": lambda log: ai.Contrasts(log, control="old").fit("sample-mean", lift=True),
    "Winner": lambda log: ai.Winner(log).fit(),
    "sequence": lambda log: ai.ConfidenceSequence(log).fit(),
}
GIVEN = [{}, {"batch": "batch"}, {"adaptive": False}, {"adaptive": False, "batch": "batch"}]


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_an_arm_that_joins_late_is_a_caution_of_every_table(model: Any, given: dict[str, Any]) -> None:
    result = model(log_of(late(), **given))
    absent = claims.ABSENT_FIRST(arm="new", n=500, rounds=ROUNDS)
    assert says(result.cautions, claims.ABSENT, absent=absent)
    assert "no drift in arm means (checked" not in str(result).lower()


def test_the_words() -> None:
    (told,) = absences(profile_of(log_of(late())), [0, 1])
    assert told == (
        "arm 'new' was not chosen in the first 500 of 1,000 rounds, so drift common to all arms would bias "
        "comparisons with it; if it could not be chosen there, set rounds= to the rounds in which all arms "
        "could, or set stationary=True if nothing drifted"
    )


def test_recommendations_carry_it_and_stationary_removes_it() -> None:
    log = log_of(late())
    rows = ai.recommend(log).frame
    assert says(rows["warning"].iloc[0], claims.ABSENT_FIRST, arm="new")
    assert not says(ai.ArmMeans(log).fit(stationary=True).cautions, claims.ABSENT)
    kept = ai.ArmMeans(log, rounds=np.arange(ROUNDS) >= 500).fit()
    assert not says(kept.cautions, claims.ABSENT)


def test_exact_tests_and_regressions_carry_it() -> None:
    log = log_of(late(), adaptive=False)
    exact = ai.Contrast(log, treatment="new", control="old").fit("sample-mean", test="exact")
    assert says(exact.cautions, claims.ABSENT)
    adaptive = ai.AdaptiveOLS.from_formula("y ~ C(arm)", log_of(late())).fit()
    assert says(adaptive.cautions, claims.ABSENT)


def test_an_arm_that_leaves_counts_only_where_nothing_adapts() -> None:
    gone, between = late(at=0, leaves=500), late(at=0)
    between.loc[300:599, "arm"] = "old"
    assert absences(profile_of(log_of(gone)), [0, 1]) == ()
    assert absences(profile_of(log_of(between)), [0, 1]) == ()
    (told,) = absences(profile_of(log_of(gone, adaptive=False)), [0, 1])
    assert says([told], claims.ABSENT_LAST, arm="new", n=500)
    (told,) = absences(profile_of(log_of(between, adaptive=False)), [0, 1])
    assert says([told], claims.ABSENT_BETWEEN)
    assert "not chosen in rounds 301 to 602 of 1,000" in told


def test_arms_that_joined_together_are_compared_without_it() -> None:
    rows = late()
    other = (np.arange(ROUNDS) > 505) & (np.arange(ROUNDS) % 3 == 0)
    rows.loc[other, "arm"] = "third"
    log = log_of(rows, adaptive=False)
    new, old, third = map(log.arms.index, ("new", "old", "third"))
    assert absences(profile_of(log), [new, third]) == ()
    assert says(absences(profile_of(log), [new, old]), claims.ABSENT)
    (told,) = absences(profile_of(log), [new, old, third])
    assert says([told], claims.ABSENT_FIRST, arm="new")
    assert says([told], claims.ABSENT_FIRST, arm="third")


def test_sums_say_it_too() -> None:
    sums = ai.aggregate(
        late(at=500), action="arm", reward="y", batch="batch", reward_range=(0.0, 1.0), adaptive=False
    )
    result = ai.ArmMeans(sums).fit("sample-mean")
    assert says(result.cautions, claims.ABSENT_FIRST, arm="new", n=500)
    assert says(result.cautions, claims.ONLY_COMMON_BATCHES)


@pytest.mark.parametrize(
    "design",
    [
        ai.designs.UCB(),
        ai.designs.Thompson(),
        ai.designs.EpsilonGreedy(exploration=0.1, batch_size=50),
        ai.designs.EpsilonGreedy(exploration=0.02),
    ],
    ids=str,
)
@pytest.mark.parametrize("means", [[0.3, 0.5], [0.4, 0.4], [0.3, 0.4, 0.5, 0.3, 0.2]], ids=str)
def test_designs_that_abandon_arms_are_quiet(design: Any, means: list[float]) -> None:
    arms, told = ai.environments.BernoulliArms(means), 0
    for seed in range(20):
        run = design.run(arms, 600, rng=seed)
        rows = pd.DataFrame({"arm": run.arrays.action, "y": run.arrays.reward})
        log = log_of(rows)
        told += bool(absences(profile_of(log), range(log.n_arms)))
    assert told <= 1


def test_the_line_on_assumptions_says_what_was_checked() -> None:
    rows = late(at=0)
    told = str(ai.Contrast(log_of(rows), treatment="new", control="old").fit())
    assert "No drift in means or variances (checked for trends, not cycles)" in " ".join(told.split())


def test_an_ordinary_experiment_is_quiet() -> None:
    told = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        rows = pd.DataFrame({"arm": rng.choice(list("abc"), 400, p=[0.8, 0.15, 0.05]), "y": rng.random(400)})
        told += bool(absences(profile_of(log_of(rows, adaptive=False)), [0, 1, 2]))
    assert told == 0
