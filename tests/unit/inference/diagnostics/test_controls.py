"""Negative controls in a diagnosis: one row each, p-values by hand; what cannot be tested or is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims import diagnosis as claims
from adaptinf.claims import propensities
from adaptinf.claims.logs.rows import NEEDS_ROWS
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms.data.covariate_adjustment import control_test
from adaptinf.inference.diagnostics.diagnosis_results import AGAINST, NO_EVIDENCE, NOT_APPLICABLE
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log.validation import nested_options

NAME = "negative control"


def frame(move: float = 0.0, rounds: int = 1_200, arms: int = 3, seed: int = 0) -> pd.DataFrame:
    """Arms by a share that moves by batch; the second arm moves x by so many standard deviations."""
    rng = np.random.default_rng(seed)
    share = 0.4 + 0.15 * np.repeat(np.linspace(-1.0, 1.0, rounds // 100), 100)
    chance = np.column_stack([share, *[(1.0 - share) / (arms - 1)] * (arms - 1)])
    arm = (rng.random(rounds)[:, None] > chance.cumsum(axis=1)).sum(axis=1).clip(max=arms - 1)
    columns = {f"p_{'abc'[k]}": chance[:, k] for k in range(arms)}
    return pd.DataFrame(
        {
            "arm": np.array(list("abc"))[arm],
            "y": rng.normal(size=rounds),
            "age": rng.normal(size=rounds) + move * (arm == 1),
            "city": np.array(["x", "y", "z"])[rng.integers(0, 3, rounds)],
            "batch": np.arange(rounds) // 100,
            **columns,
        }
    )


def log_of(data: pd.DataFrame, **more: object) -> ai.AdaptiveLog:
    known = {"propensities": {arm: f"p_{arm}" for arm in sorted(set(data["arm"]))}} | more
    columns = {"action": "arm", "reward": "y", "batch": "batch", "context": ["age", "city"]}
    return ai.AdaptiveLog(data, **nested_options({**columns, **known}))  # type: ignore[arg-type]


@pytest.mark.parametrize("arms", [2, 3])
def test_each_control_has_a_row_with_the_p_value_of_its_ranks(arms: int) -> None:
    data = frame(0.1, arms=arms)
    rank = data["age"].rank().to_numpy() - 0.5 * (len(data) + 1)
    z = []
    for arm in "abc"[:arms]:
        share = data[f"p_{arm}"].to_numpy()
        gap = (data["arm"] == arm).to_numpy() - share
        z.append(float(rank @ gap / np.sqrt(rank**2 @ (share * (1.0 - share)))))
    (age,), (city,) = (
        ai.diagnose(log_of(data), negative_control=["age", "city"]).check(NAME, one)
        for one in ("age", "city")
    )
    largest = max(z, key=abs)
    comparisons = 1 if arms == 2 else 3
    assert age.statistic == pytest.approx(largest, rel=1e-9)
    assert age.log_pvalue == pytest.approx(np.log(2.0 * comparisons * stats.norm.sf(abs(largest))), rel=1e-9)
    assert (age.verdict == AGAINST) == (age.log_adjusted <= np.log(0.05))
    assert city.verdict == NO_EVIDENCE
    assert city.log_adjusted >= city.log_pvalue


def test_one_that_differs_is_a_concern_and_others_are_not() -> None:
    found = ai.diagnose(log_of(frame(0.5)), negative_control=("city", "age"))
    (concern,) = found.concerns
    assert (concern.name, concern.term, concern.verdict) == (NAME, "age", AGAINST)
    assert concern.measure == "z of ranks, b"
    assert says(concern.advice, claims.CONTROL_DIFFERS, name="age", arm="b")
    assert says(concern.advice, claims.CONTROL_CAUSES)
    assert NAME in str(found)
    assert found.to_frame().set_index("term").loc["age", "asks"] == claims.OCCASIONAL[NAME]
    clean = ai.diagnose(log_of(frame()), negative_control="age")
    assert clean.concerns == ()
    assert NAME not in ai.diagnose(log_of(frame())).questions


def test_what_cannot_be_compared_says_why() -> None:
    data = frame()
    for log, why in (
        (log_of(data, propensities=None), propensities.NONE),
        (log_of(data, propensity_status="estimated"), claims.CONTROL_CIRCULAR),
        (log_of(data.assign(age=1.0)), claims.CONTROL_UNTESTED),
    ):
        (row,) = ai.diagnose(log, negative_control="age").check(NAME)
        assert row.verdict == NOT_APPLICABLE
        assert says(row.advice, why)
    person = np.repeat(np.arange(400), 3)
    kept = data.assign(arm=data["arm"].to_numpy()[::3][person], person=person, p_a=0.4, p_b=0.3, p_c=0.3)
    (row,) = ai.diagnose(log_of(kept, unit="person"), negative_control="age").check(NAME)
    assert says(row.advice, claims.CONTROL_ONE_DRAW)


def test_columns_that_are_no_contexts_and_sums_are_refused() -> None:
    data = frame()
    for named, words in (
        ("y", "is not a context of the log"),
        ([], "no column"),
        (["age", "age"], "more than once"),
    ):
        with pytest.raises(ParameterError, match=words):
            ai.diagnose(log_of(data), negative_control=named)
    sums = ai.Sums.of_log(log_of(data))
    with pytest.raises(InvalidForLog) as refusal:
        ai.diagnose(sums, negative_control="age")
    assert says(refusal.value.reason, NEEDS_ROWS)


@pytest.mark.slow
def test_right_propensities_keep_the_level() -> None:
    """Of .05, over 400 logs, within a probability of 1e-4."""
    tests = [control_test(profile_of(log_of(frame(rounds=300, seed=seed))), "age") for seed in range(400)]
    low = [one.log_pvalue for one in tests if one is not None]
    assert len(low) == 400
    assert sum(one <= np.log(0.05) for one in low) <= stats.binom.ppf(1.0 - 1e-4, 400, 0.05)
