"""Models restricted to marked rounds: the same as on the shorter log, with a word on what a mask may know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

from adaptinf.claims.logs.rows import MARKED
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.policies.policy_models import PolicyContrast, PolicyValue
from adaptinf.inference.regression.adaptive_ols import AdaptiveOLS
from adaptinf.inference.sequences.confidence_sequence import ConfidenceSequence
from adaptinf.inference.validity.policies import PolicySnapshots
from adaptinf.log import AdaptiveLog
from adaptinf.log.validation import nested_options

ROUNDS = 240
RNG = np.random.default_rng(6)
SITE = RNG.integers(0, 2, ROUNDS)
SHARE = np.where(np.arange(ROUNDS) < 120, 0.5, np.where(SITE == 1, 0.8, 0.3))
ARM = np.where(RNG.random(ROUNDS) < SHARE, "b", "a")
KEEP = (np.arange(ROUNDS) % 3 > 0) & (np.arange(ROUNDS) >= 25)
OWN = RNG.normal(size=(ROUNDS, 2))


def frame() -> pd.DataFrame:
    reward = np.random.default_rng(7).binomial(1, np.where(ARM == "b", 0.6, 0.4)).astype(float)
    return pd.DataFrame(
        {
            "arm": ARM,
            "y": reward,
            "site": SITE,
            "pa": 1 - SHARE,
            "pb": SHARE,
            "week": np.arange(ROUNDS) // 60,
            "used": KEEP,
        }
    )


def log_of(rows: pd.DataFrame, **options: Any) -> AdaptiveLog:
    given: dict[str, Any] = {"propensities": {"a": "pa", "b": "pb"}, "batch": "week", "reward_range": (0, 1)}
    return AdaptiveLog(
        rows, action="arm", reward="y", context=["site", "used"], **nested_options(given | options)
    )


WHOLE = log_of(frame())
SHORT = log_of(frame()[KEEP].reset_index(drop=True))


def late(contexts: Any) -> Any:
    share = np.where(contexts["site"] == 1, 0.8, 0.3)
    return np.column_stack([1 - share, share])


def starts(log: AdaptiveLog, keep: Any) -> PolicySnapshots:
    return PolicySnapshots([0, int(keep[:120].sum())], [np.array([0.5, 0.5]), late])


ALL = np.full(ROUNDS, True)
FITS: dict[str, Any] = {
    "uniform": lambda log, keep, **only: PolicyValue(log, ["a", "uniform"], **only).fit("uniform"),
    "stable": lambda log, keep, **only: PolicyValue(log, "b", **only).fit(
        "stable-variance", snapshots=starts(log, keep)
    ),
    "contextual": lambda log, keep, **only: PolicyValue(log, "b", **only).fit(
        contextual=True, snapshots=starts(log, keep)
    ),
    "free": lambda log, keep, **only: PolicyValue(log, "b", **only).fit(
        "stable-variance", snapshots="context-free"
    ),
    "cadr": lambda log, keep, **only: PolicyValue(log, "b", **only).fit(
        estimator="cadr", snapshots=starts(log, keep)
    ),
    "own outcome": lambda log, keep, **only: PolicyValue(log, "b", **only).fit(
        "uniform", outcome=OWN if log.n_rounds == ROUNDS else OWN[KEEP]
    ),
    "ridge": lambda log, keep, **only: PolicyValue(log, "b", **only).fit("uniform", outcome="running-ridge"),
    "contrast": lambda log, keep, **only: PolicyContrast(log, "b", baseline="uniform", **only).fit("uniform"),
    "combined": lambda log, keep, **only: PolicyContrast(log, late(log.frame), baseline="a", **only).fit(),
    "combined, snapshots": lambda log, keep, **only: PolicyContrast(log, late, baseline="a", **only).fit(
        snapshots=starts(log, keep)
    ),
    "ols": lambda log, keep, **only: AdaptiveOLS(log, ["site"], **only).fit("none"),
    "formula": lambda log, keep, **only: AdaptiveOLS.from_formula("y ~ C(action) + site", log, **only).fit(
        "none"
    ),
    "sequence": lambda log, keep, **only: ConfidenceSequence(log, **only).fit(estimator="sample-mean"),
    "policy sequence": lambda log, keep, **only: ConfidenceSequence(
        log, "policy-value", policy=["b", np.array([0.2, 0.8])], **only
    ).fit(estimator="ipw"),
}


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("how", ["mask", "column"])
def test_marked_rounds_are_a_shorter_log(name: str, how: str) -> None:
    fit = FITS[name]
    expected = fit(SHORT, KEEP)
    found = fit(WHOLE, ALL, rounds="used" if how == "column" else KEEP)
    np.testing.assert_allclose(found.estimate, expected.estimate, rtol=1e-12)
    np.testing.assert_allclose(found.std_error, expected.std_error, rtol=1e-12)
    np.testing.assert_allclose(found.conf_int(), expected.conf_int(), rtol=1e-12)
    assert found.facts.n_rounds == KEEP.sum()
    assert found.notes[0] == MARKED(kept=KEEP.sum(), rounds=ROUNDS)
    assert not says(fit(WHOLE, ALL).notes, MARKED)


def test_predictions_at_rounds_left_out_do_not_count() -> None:
    garbage = frame()
    garbage.loc[~KEEP, "y"] = 1.0 - garbage.loc[~KEEP, "y"]
    for name in ("stable", "cadr", "ridge", "ols", "sequence"):
        one, other = (FITS[name](log, ALL, rounds=KEEP) for log in (WHOLE, log_of(garbage)))
        np.testing.assert_array_equal(one.estimate, other.estimate)


def test_support_is_asked_of_the_rounds_used() -> None:
    rows = frame()
    rows.loc[:9, ["pa", "pb", "arm"]] = [1.0, 0.0, "a"]
    log = log_of(rows)
    with pytest.raises(InvalidForLog, match=r"propensity in the log is 0 \('b' in 10 of"):
        PolicyValue(log, "b")
    assert np.isfinite(PolicyValue(log, "b", rounds=KEEP).fit("uniform").std_error).all()


def test_counts_of_feedback_rounds_and_units_follow() -> None:
    rows = frame().assign(who=np.arange(ROUNDS) // 2)
    log = log_of(rows, feedback_rounds=60, unit="who")
    sequence = ConfidenceSequence(log, rounds=KEEP)
    assert sequence.log.feedback_rounds is None
    assert sequence.log.units is not None
    np.testing.assert_array_equal(sequence.log.units, rows["who"][KEEP])
    assert ConfidenceSequence(log).log is log
    assert (log.n_rounds, log.feedback_rounds) == (ROUNDS, 60)
    later = ConfidenceSequence(log_of(rows, feedback_rounds=0), rounds=np.arange(ROUNDS) >= 100).log
    assert later.feedback_rounds == 0
    assert later.arrays.batch is not None
    np.testing.assert_array_equal(np.unique(later.arrays.batch), [0, 1, 2])
    np.testing.assert_array_equal(later.column("arm"), ARM[100:])


@pytest.mark.parametrize(
    "make",
    [
        lambda **only: PolicyValue(WHOLE, "a", **only),
        lambda **only: PolicyContrast(WHOLE, "a", baseline="b", **only),
        lambda **only: AdaptiveOLS(WHOLE, ["site"], **only),
        lambda **only: ConfidenceSequence(WHOLE, **only),
    ],
)
def test_masks_that_mark_nothing_sensible_are_refused(make: Any) -> None:
    with pytest.raises(ParameterError, match="one entry per round"):
        make(rounds=np.ones(3))
    with pytest.raises(ParameterError, match="selects no round"):
        make(rounds=np.zeros(ROUNDS))
    with pytest.raises(ParameterError, match="rounds: "):
        make(rounds="nothing")
