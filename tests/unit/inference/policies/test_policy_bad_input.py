"""Wrong uses of policy values: each ends in an error that says what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from claims_said import says

from adaptinf.claims import policies as claims
from adaptinf.claims.propensities import NEEDED, OTHER_CONTEXTS_UNKNOWN
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.policies.policy_models import PolicyContrast, PolicyValue
from adaptinf.inference.validity.policies import PolicySnapshots
from adaptinf.log import AdaptiveLog, LogArrays

ARMS = ("a", "b")
HORIZON = 60
START = 20


def early(frame: pd.DataFrame) -> np.ndarray:
    return np.full((len(frame), 2), 0.5)


def late(frame: pd.DataFrame) -> np.ndarray:
    first = np.where(frame["x"] > 0, 0.75, 0.25)
    return np.column_stack([first, 1 - first])


def swapped(frame: pd.DataFrame) -> np.ndarray:
    return late(frame)[:, ::-1]


def make_log(
    known: str = "all", *, context: bool = True, arms: tuple[Any, ...] = ARMS, closed: bool = False
) -> AdaptiveLog:
    rng = np.random.default_rng(1)
    x = rng.normal(size=HORIZON)
    frame = pd.DataFrame({"x": x})
    propensities = np.vstack([early(frame[:START]), late(frame[START:])])
    if closed:
        propensities[:5] = [1.0, 0.0]
    action = (rng.random(HORIZON) > propensities[:, 0]).astype(np.int64)
    arrays = LogArrays(
        action=action,
        reward=rng.normal(size=HORIZON),
        propensity=None if known == "none" else propensities[np.arange(HORIZON), action],
        propensities=propensities if known == "all" else None,
        context={"x": x} if context else {},
    )
    return AdaptiveLog.from_arrays(arrays, arms=arms)


SNAPSHOTS = PolicySnapshots([0, START], [early, late])
MATRIX = np.full((HORIZON, 2), 0.5)


class Model:
    classes_ = ("a", "z")

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        return late(frame)


def changed(row: int, values: list[float]) -> np.ndarray:
    matrix = MATRIX.copy()
    matrix[row] = values
    return matrix


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("z", r"'z' is not an arm of the log \('a', 'b'\); a policy is an arm, 'uniform'"),
        (7, "7 is not an arm of the log"),
        (None, "None is not an arm of the log"),
        ([], "give at least one policy"),
        (changed(3, [0.5, 0.6]), r"do not sum to 1 \[row 3\]"),
        (changed(4, [-0.1, 1.1]), r"negative probabilities \[row 4\]"),
        (changed(5, [np.nan, 1.0]), r"not finite \[row 5\]"),
        (MATRIX[:-1], r"shape \(60, 2\), one column per arm, got shape \(59, 2\)"),
        (np.array([0.2, 0.2]), "do not sum to 1"),
        (np.array(["x", "y"]), "something else"),
        (lambda frame: frame["x"], "got shape"),
        ({"a": "nowhere"}, "there is no column 'nowhere'"),
        ({"a": 0.5, "z": 0.5}, "there is no arm 'z'; the log has 'a', 'b'"),
        ({"a": 0.5}, "do not sum to 1"),
        ({"a": [0.5, 0.5], "b": 0.5}, "the column of 'a' must be 60 numbers"),
        (["a", "a"], "two policies have the same name: a, a"),
        (Model(), r"classes_ \['a', 'z'\] are not the arms"),
        (pd.DataFrame(MATRIX, columns=["a", "c"]), r"labels \['a', 'c'\] are not the arms \['a', 'b'\]"),
        (pd.DataFrame(MATRIX, columns=["a", "a"]), "are not the arms"),
        (
            pd.DataFrame(MATRIX, columns=["a", "b"], index=range(HORIZON)[::-1]),
            "sort it in the order of the log",
        ),
        (pl.DataFrame(MATRIX, schema=["a", "c"]), "are not the arms"),
        (pd.Series([0.5, 0.5], index=["a", "c"]), "are not the arms"),
        (pd.Series([0.5, 0.5]), "are not the arms"),
        (lambda frame: pd.DataFrame(late(frame), columns=["a", "c"]), "are not the arms"),
        (lambda frame: pd.DataFrame(late(frame), list(frame.index)[::-1], ["a", "b"]), "its index is not 0"),
        (lambda _: {"a": 0.5, "z": 0.5}, "there is no arm 'z'; the log has 'a', 'b'"),
        (
            {"a": pd.Series(MATRIX[:, 0], index=range(1, HORIZON + 1)), "b": 0.5},
            "arm 'a': its index is not 0",
        ),
        ({"mine": "uniform", "always": "a"}, r"pass several policies as a list, with their labels in names="),
    ],
)
def test_policies(policy: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        PolicyValue(make_log(), policy)


def test_all_that_is_wrong_is_listed() -> None:
    with pytest.raises(ParameterError) as caught:
        PolicyValue(make_log(), ["z", changed(1, [0.0, 0.0])], names=["p"])
    assert len(caught.value.problems) == 3


def test_all_that_is_wrong_with_a_fit_is_listed() -> None:
    with pytest.raises(ParameterError) as caught:
        PolicyValue(make_log(), "a").fit(weights="sqrt", snapshots="contextfree", estimator="dr")
    assert [problem.split()[0] for problem in caught.value.problems] == ["snapshots", "estimator", "weights"]


def test_uniform_may_be_an_arm() -> None:
    with pytest.raises(ParameterError, match="'uniform' is ambiguous because it is also an arm of this log"):
        PolicyValue(make_log(arms=("uniform", "b")), "uniform")


def test_baselines() -> None:
    with pytest.raises(ParameterError, match="baseline must be one policy"):
        PolicyContrast(make_log(), "a", baseline=["b", "uniform"])
    with pytest.raises(ParameterError, match="same name"):
        PolicyContrast(make_log(), "a", baseline="a")
    with pytest.raises(ParameterError, match="in addition to the baseline"):
        PolicyContrast(make_log(), [], baseline="a")


@pytest.mark.parametrize("known", ["all", "chosen"])
def test_a_policy_beyond_what_the_design_could_choose(known: str) -> None:
    log = make_log(known, closed=True)
    with pytest.raises(InvalidForLog) as caught:
        PolicyValue(log, "uniform")
    beyond = {"arms": "'b' in 5", "rounds": 60}
    assert says(caught.value.reason, claims.BEYOND_SUPPORT, policy="uniform", **beyond)
    assert "only arms with positive propensity" in caught.value.alternatives[0]
    with pytest.raises(InvalidForLog) as caught:
        PolicyContrast(log, "a", baseline="b")
    assert says(caught.value.reason, claims.BEYOND_SUPPORT, policy="b", **beyond)
    PolicyValue(log, "a")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "stable"}, "weights must be one of 'uniform', 'stable-variance', 'min-variance'"),
        ({"weights": "sqrt"}, "stable-variance weights are the sqrt weights of a policy"),
        ({"estimator": "dr"}, "estimator must be one of 'aipw', 'ipw', 'cadr'"),
        ({"contextual": 1}, "contextual must be True, False or None"),
        ({"weights": "uniform", "contextual": True}, "uniform weights are not contextual"),
        ({"estimator": "cadr", "weights": "uniform"}, "cadr has its own weights: omit"),
        ({"estimator": "cadr", "burn_in": 0}, "burn_in must be a whole number of at least 1"),
        ({"estimator": "cadr", "burn_in": HORIZON}, "burn_in must be below the log's 60 rounds"),
        ({"burn_in": 5}, "burn_in applies only to estimator='cadr'"),
        ({"estimator": "ipw", "outcome": MATRIX}, "ipw has no outcome model"),
        ({"estimator": "ipw", "ridge": 1.0}, "ridge= applies to an outcome model"),
        ({"outcome": MATRIX[:5]}, r"outcome must have shape \(60, 2\)"),
        ({"null": np.nan}, "null must be"),
        ({"snapshots": [early, late]}, "snapshots must be PolicySnapshots, 'context-free' or None"),
        ({"snapshots": "known"}, "snapshots must be PolicySnapshots"),
    ],
)
def test_arguments_of_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        PolicyValue(make_log(), late).fit(**options)


def test_an_outcome_that_knows_the_rewards() -> None:
    log = make_log()
    means = [log.arrays.reward[log.arrays.action == arm].mean() for arm in range(2)]
    with pytest.raises(InvalidForLog, match="rewards that it must not use"):
        PolicyValue(log, late).fit(outcome=np.tile(means, (HORIZON, 1)))


@pytest.mark.parametrize(
    ("starts", "policies", "message"),
    [
        ([0, START], early, "policies must be a list"),
        ([0], [early, late], "one start per policy, got 1 starts and 2 policies"),
        ([1, START], [early, late], "first batch must start at row 0"),
        ([0, 0], [early, late], "starts must increase"),
        ([0, 2.5], [early, late], "starts must be whole numbers"),
        ([0, HORIZON], [early, late], "starts at row 60, beyond the log's 60 rounds"),
        (None, [early, late], "the log has no batches"),
        ([0, START], [early, np.array([0.5, 0.6])], "policy of batch 1 has probabilities that do not sum"),
        ([0, START], [early, MATRIX[:9]], r"policy of batch 1 must return .* got shape \(9, 2\)"),
        ([0, START], [early, lambda f: late(f)[:, :1]], "policy of batch 1 must return"),
        ([0, START], [early, "late"], "policy of batch 1 must return"),
        ([0, START], [early, swapped], r"differ from its propensities by up to 0.5 .*\[rows 20, 21, "),
        ([0, START + 2], [early, late], r"by up to 0.25 .*\[rows 20, 21\]"),
    ],
)
def test_snapshots(starts: Any, policies: Any, message: str) -> None:
    for known in ("all", "chosen"):
        with pytest.raises(ParameterError, match=message):
            PolicyValue(make_log(known), late).fit(
                "stable-variance", snapshots=PolicySnapshots(starts, policies)
            )


def test_snapshots_are_compared_within_a_millionth() -> None:
    def off(by: float) -> PolicySnapshots:
        return PolicySnapshots([0, START], [early, lambda f: late(f) + np.array([by, -by])])

    PolicyValue(make_log(), late).fit("stable-variance", snapshots=off(0.9e-6))
    with pytest.raises(ParameterError, match="2e-06"):
        PolicyValue(make_log(), late).fit("stable-variance", snapshots=off(2e-6))
    with pytest.raises(ParameterError, match="2e-06"):
        PolicyValue(make_log(), late).fit("uniform", snapshots=off(2e-6))


@pytest.mark.parametrize(
    "options",
    [
        {"weights": "stable-variance"},
        {"weights": "min-variance", "contextual": True},
        {"contextual": True},
        {"estimator": "cadr"},
    ],
)
class TestUnknownDesign:
    def test_contexts_without_snapshots(self, options: dict[str, Any]) -> None:
        with pytest.raises(InvalidForLog) as caught:
            PolicyValue(make_log(), late).fit(**options)
        assert says(caught.value.reason, OTHER_CONTEXTS_UNKNOWN)
        assert any("PolicySnapshots" in way for way in caught.value.alternatives)
        assert any("uniform" in way for way in caught.value.alternatives)
        PolicyValue(make_log(), late).fit(snapshots=SNAPSHOTS, **options)

    def test_a_changing_policy_and_no_contexts(self, options: dict[str, Any]) -> None:
        log = make_log(context=False)
        matrix = late(make_log().frame)
        with pytest.raises(InvalidForLog) as caught:
            PolicyValue(log, matrix).fit(**options)
        assert says(caught.value.reason, claims.UNLOGGED_CONTEXTS)
        PolicyValue(log, matrix).fit(snapshots="context-free", **options)

    def test_the_chosen_arms_propensity_alone(self, options: dict[str, Any]) -> None:
        log = make_log("chosen", context=False)
        with pytest.raises(InvalidForLog, match="every arm's propensity"):
            PolicyValue(log, "a").fit(**options)

    def test_no_propensities(self, options: dict[str, Any]) -> None:
        with pytest.raises(InvalidForLog) as caught:
            PolicyValue(make_log("none"), "a").fit(**options)
        assert says(caught.value.reason, NEEDED)
