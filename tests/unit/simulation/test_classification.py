"""Classification data as a bandit: rows, rewards and regret, single passes, and all that is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from statsmodels.datasets import anes96

from adaptinf.designs import (
    ABSE,
    EpsilonGreedy,
    LDPBandit,
    LinUCB,
    Mixture,
    Uniform,
)
from adaptinf.designs.local.local_linear import LDPLinear
from adaptinf.errors import AdaptinfWarning, ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import Classification
from adaptinf.simulation.environments.cube_contexts import UnitCube
from adaptinf.simulation.replicate import block_stream, seed_sequence

VOTES = anes96.load_pandas().data
SURVEY = ["selfLR", "age"]
CODES = UnitCube(low=[1, 18], high=[7, 100], names=SURVEY)
ROWS = len(VOTES)


def votes(**options: Any) -> Classification:
    """A survey of voters: their choice from their place on the left and right, and their age."""
    return Classification(VOTES, "vote", SURVEY, scaler=CODES, **options)


def numbered(classes: list[Any], **options: Any) -> Classification:
    """Rows that the context tells apart."""
    frame = pd.DataFrame({"label": classes, "row": np.arange(len(classes)) / len(classes)})
    return Classification(frame, "label", "row", **options)


def rows_of(log: AdaptiveLog, rows: int) -> np.ndarray:
    """Positions of the rows of a log of `numbered` data."""
    return np.rint(log.arrays.context["row"] * rows).astype(int)


# --- rows, rewards, regret ----------------------------------------------------------------------------------


def literal_runs(environment: Classification, horizon: int, runs: int, seed: int) -> list[dict[str, Any]]:
    """Epsilon-greedy with 0.3 on a labelled data set, round by round, from the description alone."""
    source = block_stream(seed_sequence(seed), 0)
    n_rows, n_arms = environment.contexts.shape[0], len(environment.arms)
    told = []
    for _ in range(runs):
        left = list(range(n_rows))
        counts, sums = [0] * n_arms, [0] * n_arms
        rows, arms, rewards = [], [], []
        for t in range(horizon):
            if environment._order == "given":
                row = t
            elif environment._order == "resampled":
                row = int(source.random() * n_rows)
            else:
                drawn = t + int(source.random() * (n_rows - t))
                left[t], left[drawn] = left[drawn], left[t]
                row = left[t]
            means = [sums[k] / counts[k] if counts[k] else math.inf for k in range(n_arms)]
            draw = source.random()
            arm = int(draw / 0.3 * n_arms) if draw < 0.3 else means.index(max(means))
            source.random()  # the draw of a 0/1 reward, which is certain here
            reward = int(environment.classes[row] == arm)
            counts[arm] += 1
            sums[arm] += reward
            rows.append(row)
            arms.append(arm)
            rewards.append(reward)
        told.append({"rows": rows, "arms": arms, "rewards": rewards, "sums": sums, "counts": counts})
    return told


@pytest.mark.parametrize("order", ["given", "shuffled", "resampled"])
def test_a_literal_replay_loop_has_the_same_rounds(order: str) -> None:
    environment = Classification(VOTES, "PID", SURVEY, scaler=CODES, order=order)
    assert environment.arms == (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    design = EpsilonGreedy(exploration=0.3)
    literal = literal_runs(environment, 300, 3, seed=5)
    for run, log in zip(literal, design.logs(environment, 300, 3, rng=5), strict=True):
        assert log.arrays.action.tolist() == run["arms"]
        assert log.arrays.reward.tolist() == run["rewards"]
        contexts = np.stack([log.arrays.context[name] for name in SURVEY], axis=1)
        assert np.array_equal(contexts, environment.contexts[run["rows"]])
    sims = design.replicate(environment, 300, 3, rng=5)
    assert sims.pulls.tolist() == [run["counts"] for run in literal]
    assert sims.sums.tolist() == [run["sums"] for run in literal]
    assert sims.regret.tolist() == [300 - sum(run["sums"]) for run in literal]


def test_contexts_are_the_scaled_columns() -> None:
    environment = votes()
    by_hand = np.stack([(VOTES["selfLR"] - 1) / 6, (VOTES["age"] - 18) / 82], axis=1)
    np.testing.assert_allclose(environment.contexts, by_hand, rtol=1e-15)
    assert environment.classes.tolist() == VOTES["vote"].astype(int).tolist()
    assert environment.vector_names == ("selfLR", "age")
    raw = Classification(VOTES, "vote", SURVEY)
    assert np.array_equal(raw.contexts, VOTES[SURVEY].to_numpy())
    assert (environment.rows, environment.dimension, environment.n_arms) == (ROWS, 2, 2)
    assert environment.scaler is CODES


@pytest.mark.parametrize("context", [SURVEY, None])
@pytest.mark.parametrize("order", ["shuffled", "given"])
def test_a_single_pass_uses_every_row_once(order: str, context: list[str] | None) -> None:
    """An arm that is always pulled wins exactly the number of its class, in every run."""
    environment = Classification(VOTES, "vote", context, order=order)
    counts = np.bincount(VOTES["vote"].astype(int))
    sums = Uniform().replicate(environment, ROWS, 70, rng=1).sums
    assert np.ptp(sums[:, 0]) > 0.0
    pulled = EpsilonGreedy(exploration=0.0).replicate(environment, ROWS, 70, rng=1)
    alone = [np.flatnonzero(pulled.pulls[:, arm] == ROWS) for arm in range(2)]
    for arm, runs in enumerate(alone):
        assert (pulled.sums[runs, arm] == counts[arm]).all()
    numbers = numbered(list(range(40)), order=order)
    seen = [rows_of(log, 40) for log in Uniform().logs(numbers, 40, 66, rng=2)]
    assert all(sorted(rows) == list(range(40)) for rows in seen)
    assert len({tuple(rows) for rows in seen}) == (66 if order == "shuffled" else 1)
    assert order == "shuffled" or seen[0].tolist() == list(range(40))


def test_shuffles_are_uniform() -> None:
    """All 24 orders of four rows, and the first two of five rows, are equally frequent."""
    orders = [
        tuple(rows_of(log, 4))
        for log in Uniform().logs(numbered([0, 1, 2, 3], order="shuffled"), 4, 2400, rng=3)
    ]
    found = np.unique(orders, axis=0, return_counts=True)[1]
    assert found.size == 24
    assert stats.chisquare(found).pvalue > 1e-5
    part = [
        tuple(rows_of(log, 5))
        for log in Uniform().logs(numbered([0, 1, 0, 1, 0], order="shuffled"), 2, 2000, rng=4)
    ]
    found = np.unique(part, axis=0, return_counts=True)[1]
    assert found.size == 20
    assert stats.chisquare(found).pvalue > 1e-5


def test_resampled_rows_are_independent_and_uniform() -> None:
    environment = numbered([0, 1, 0, 1, 0], order="resampled")
    rows = rows_of(Uniform().run(environment, 20_000, rng=5), 5)
    assert stats.chisquare(np.bincount(rows)).pvalue > 1e-5
    pairs = np.bincount(5 * rows[:-1:2] + rows[1::2], minlength=25)
    assert stats.chisquare(pairs).pvalue > 1e-5


@pytest.mark.parametrize("context", [SURVEY, None])
@pytest.mark.parametrize("order", ["resampled", "shuffled"])
def test_arm_means_are_the_shares_of_the_classes(order: str, context: list[str] | None) -> None:
    environment = Classification(VOTES, "PID", context, order=order)
    shares = VOTES["PID"].value_counts(normalize=True).sort_index().to_numpy()
    np.testing.assert_allclose(environment.arm_means(), shares, rtol=1e-14)
    sims = Uniform().replicate(environment, 700, 640, rng=6)
    assert np.array_equal(sims.truth, shares[None])
    pulls, sums = sims.pulls.sum(axis=0), sims.sums.sum(axis=0)
    assert (np.abs(sums / pulls - shares) < 4.5 * np.sqrt(shares * (1.0 - shares) / pulls)).all()
    assert np.array_equal(sims.regret, 700.0 - sims.sums.sum(axis=1))
    assert abs(sims.regret.mean() / 700 - 6 / 7) < 4.5 * sims.regret.std() / 700 / math.sqrt(640)


@pytest.mark.parametrize(
    "design",
    [LinUCB(), EpsilonGreedy(), Mixture(LinUCB(), exploration=0.2)],
    ids=lambda design: type(design).__name__,
)
def test_designs_run_and_workers_agree(design: Any) -> None:
    environment = votes(order="shuffled")
    one = design.replicate(environment, ROWS, 130, rng=7)
    if isinstance(design, LinUCB):
        two = design.replicate(environment, ROWS, 130, rng=7, n_jobs=2)
        assert np.array_equal(one.tallies, two.tallies)
        assert np.array_equal(one.regret, two.regret)
    assert np.array_equal(one.regret, ROWS - one.sums.sum(axis=1))
    log = design.run(environment, ROWS, rng=7)
    assert log.arrays.reward.sum() == one.sums[0].sum()
    contexts = np.stack([log.arrays.context[name] for name in SURVEY], axis=1)
    used = np.unique(contexts, axis=0, return_counts=True)
    there = np.unique(environment.contexts, axis=0, return_counts=True)
    assert np.array_equal(used[0], there[0])
    assert np.array_equal(used[1], there[1])


def test_linear_designs_learn_what_a_class_is() -> None:
    """Place on the left and right tells the vote: 79% by a rule, 58% by the larger class."""
    frame = VOTES.assign(one=1)
    cube = UnitCube(low=[1, 0], high=[7, 1], names=["selfLR", "one"])
    environment = Classification(frame, "vote", ["selfLR", "one"], scaler=cube)
    sims = LinUCB().replicate(environment, 4_000, 64, rng=8)
    assert (1.0 - sims.regret / 4_000).mean() > 0.74
    assert environment.arm_means().max() < 0.6


# --- labels and frames --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "arms"),
    [
        (["b", "a", "b"], ("a", "b")),
        ([True, False, True], (False, True)),
        ([3, 1, 3], (1, 3)),
        ([0.5, -1.0, 0.5], (-1.0, 0.5)),
        (["b", 1, "b"], ("b", 1)),
        (pd.Categorical(["z", "y", "z"]), ("y", "z")),
    ],
)
def test_labels_of_any_type(labels: Any, arms: tuple[Any, ...]) -> None:
    environment = Classification(pd.DataFrame({"y": labels, "x": [0.1, 0.2, 0.3]}), "y", "x", order="given")
    assert environment.arms == arms
    assert [type(arm) for arm in environment.arms] == [type(arm) for arm in arms]
    assert [environment.arms[code] for code in environment.classes] == list(labels)
    log = Uniform().run(environment, 3, rng=10)
    right = [arm == label for arm, label in zip(log.column("action"), labels, strict=True)]
    assert log.arrays.reward.tolist() == right


def test_arms_can_be_ordered_and_may_have_classes_that_never_occur() -> None:
    frame = pd.DataFrame({"y": ["b", "a", "b"]})
    environment = Classification(frame, "y", arms=["c", "b", "a"])
    assert environment.arms == ("c", "b", "a")
    np.testing.assert_allclose(environment.arm_means(), [0.0, 2 / 3, 1 / 3])


def test_polars_frames_and_other_indices_give_the_same() -> None:
    plain = votes(order="shuffled")
    for frame in (pl.from_pandas(VOTES), VOTES.set_index(VOTES.index[::-1])):
        other = Classification(frame, "vote", SURVEY, scaler=CODES, order="shuffled")
        assert other.arms == plain.arms
        assert np.array_equal(other.contexts, plain.contexts)
        logs = [Uniform().run(one, 50, rng=11) for one in (plain, other)]
        assert logs[0].frame.equals(logs[1].frame)


def test_dummies_are_contexts() -> None:
    frame = pd.DataFrame({"y": [0, 1, 1], "colour": ["red", "blue", "red"], "size": [0.5, 0.2, 0.1]})
    with pytest.raises(ParameterError) as error:
        Classification(frame, "y", ["colour", "size"])
    assert "'colour'" in str(error.value)
    assert "pandas.get_dummies(frame, columns=['colour'], dtype=float)" in str(error.value)
    wide = pd.get_dummies(frame, columns=["colour"])
    environment = Classification(wide, "y", ["size", "colour_blue", "colour_red"])
    assert environment.contexts.tolist() == [[0.5, 0.0, 1.0], [0.2, 1.0, 0.0], [0.1, 0.0, 1.0]]


# --- auxiliary data -----------------------------------------------------------------------------------------


def test_auxiliary_cases_have_the_arms_of_a_policy() -> None:
    target, source = VOTES[VOTES["popul"] > 0], VOTES[VOTES["popul"] == 0]
    environment = Classification(target, "vote", SURVEY, scaler=CODES, order="shuffled")
    many = pd.concat([source] * 10, ignore_index=True)
    given = environment.auxiliary(many, epsilon=4.0, rng=12, behaviour=[0.25, 0.75])
    log = given.log
    assert given.epsilon == 4.0
    np.testing.assert_allclose(given.contexts, CODES.scale(many))
    assert log.arrays.reward.tolist() == (log.arrays.action == many["vote"]).astype(float).tolist()
    share = log.arrays.action.mean()
    assert abs(share - 0.75) < 4.5 * math.sqrt(0.75 * 0.25 / len(many))
    assert np.array_equal(log.arrays.propensity, np.array([0.25, 0.75])[log.arrays.action])
    assert given.mismatches(environment) == []


def test_auxiliary_cases_keep_their_order_and_may_come_from_polars() -> None:
    environment = votes()
    given = environment.auxiliary(VOTES.iloc[[5, 3, 9]], rng=13)
    assert np.array_equal(given.contexts, environment.contexts[[5, 3, 9]])
    assert np.array_equal(given.log.arrays.propensities, np.full((3, 2), 0.5))
    assert environment.auxiliary(pl.from_pandas(VOTES), rng=13).log.n_rounds == ROWS


@pytest.mark.parametrize(
    ("rows", "options", "parts"),
    [
        ([0, 1], {"epsilon": 0.0}, ["epsilon must be above 0", "frame must be a pandas or polars DataFrame"]),
        ([True] * ROWS, {"behaviour": [1.0]}, ["got list", "2 probabilities that sum to 1"]),
        (VOTES["age"] > 50, {"behaviour": [0.5, 0.6]}, ["got Series", "2 probabilities that sum to 1"]),
        ("all", {"behaviour": "best", "rng": -1}, ["got str", 'behaviour must be "uniform"', "rng"]),
        (VOTES[["vote"]], {}, ["no column 'selfLR'", "no column 'age'"]),
        (VOTES.assign(vote=7.0, age=17), {}, ["labels that are not in arms=: 7.0", "must lie in [18, 100]"]),
        (VOTES.head(0), {}, ["the frame has no rows"]),
    ],
)
def test_auxiliary_refusals(rows: Any, options: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(ParameterError) as error:
        votes().auxiliary(rows, **options)
    assert all(part in str(error.value) for part in parts), str(error.value)


def test_auxiliary_cases_need_contexts() -> None:
    with pytest.raises(ParameterError, match="there are no contexts"):
        Classification(VOTES, "vote").auxiliary(VOTES)


# --- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["shuffled", "given"])
@pytest.mark.parametrize("context", [SURVEY, None])
def test_rows_run_out(order: str, context: list[str] | None) -> None:
    environment = Classification(VOTES, "vote", context, order=order)
    assert Uniform().run(environment, ROWS, rng=0).n_rounds == ROWS
    with pytest.raises(ParameterError, match=f"at most {ROWS}, the number of rows, got {ROWS + 1}"):
        Uniform().replicate(environment, ROWS + 1, 2, rng=0)
    with pytest.raises(ParameterError, match=r"order=.resampled. draws as many as required"):
        environment.tables(ROWS + 1)


def test_everything_wrong_is_listed() -> None:
    frame = pd.DataFrame({"y": ["a", None, "b"], "x": [1.0, math.inf, math.nan], "z": [0, 1, 2]})
    with pytest.raises(ParameterError) as error:
        Classification(frame, "y", ["x", "z"])
    assert error.value.problems == (
        "column 'y' has 1 missing values, in row 1",
        "column 'x' has 1 missing values, in row 2",
        "column 'x' has 1 infinite values, in row 1",
    )


@pytest.mark.parametrize(
    ("build", "parts"),
    [
        (lambda: votes(order="random"), ["order must be one of 'resampled', 'shuffled', 'given'"]),
        (
            lambda: Classification(VOTES, "choice", ["age", "size"]),
            ["the frame has no column 'choice'", "the frame has no column 'size'"],
        ),
        (lambda: Classification([[1]], "y"), ["must be a pandas or polars DataFrame, got list"]),
        (lambda: Classification(VOTES.head(0), "vote"), ["the frame has no rows"]),
        (lambda: Classification(VOTES, "vote", "vote"), ["must be different columns"]),
        (lambda: Classification(VOTES, "vote", 3), ["context must be a column or a list of columns"]),
        (lambda: Classification(VOTES, "vote", {"age", "size"}), ["context must be a column or a list"]),
        (lambda: Classification(VOTES, "vote", b"age"), ["context must be a column or a list"]),
        (
            lambda: Classification(VOTES.rename(columns={"age": "reward"}), "vote", "reward"),
            ["'reward' has a name that logs reserve"],
        ),
        (
            lambda: Classification(pd.concat([VOTES, VOTES], axis=1), "vote", "age"),
            ["the frame has 2 columns 'vote'", "the frame has 2 columns 'age'"],
        ),
        (lambda: Classification(VOTES, "vote", "age", scaler=CODES), ["the scaler is for selfLR, age"]),
        (lambda: Classification(VOTES, "vote", scaler=CODES), ["the context is empty"]),
        (
            lambda: Classification(VOTES, "vote", SURVEY[::-1], scaler=CODES),
            ["the scaler is for selfLR, age, but the context is age, selfLR"],
        ),
        (
            lambda: Classification(VOTES, "vote", "age", scaler=(0, 1)),
            ["scaler must be a UnitCube, got tuple"],
        ),
        (
            lambda: Classification(VOTES, "vote", SURVEY, scaler=UnitCube(low=[1, 18], high=[7, 90])),
            ["column 'age' must lie in [18, 90], but 2 values do not", "fixed before the trial"],
        ),
        (lambda: Classification(VOTES, "vote", arms=[0.0]), ["not in arms=: 1.0"]),
        (lambda: Classification(VOTES, "vote", arms=[0, 1]), ["not in arms=: ", "1, 1.0 and True differ"]),
        (lambda: Classification(VOTES, "vote", arms=[0.0, 1.0, 1.0]), ["arms= names 1.0 more than once"]),
        (lambda: Classification(VOTES, "vote", arms="01"), ["arms must be a list of labels"]),
        (lambda: Classification(VOTES, "vote", arms=[None, 0.0]), ["arms must be strings"]),
        (
            lambda: Classification(pd.DataFrame({"y": [1.0, math.inf]}), "y"),
            ["column 'y' has 1 values that cannot be labels"],
        ),
        (
            lambda: Classification(pd.DataFrame({"y": [0, 1], "x": pd.Categorical([1, 2])}), "y", "x"),
            ["these columns are not: 'x'"],
        ),
        (
            lambda: Classification(
                pl.DataFrame({"y": [0, 1], "x": ["a", "b"], "z": [1, None]}), "y", ["x", "z"]
            ),
            ["these columns are not: 'x'"],
        ),
    ],
)
def test_what_is_refused(build: Any, parts: list[str]) -> None:
    with pytest.raises(ParameterError) as error:
        build()
    assert all(part in str(error.value) for part in parts), str(error.value)


def test_a_problem_is_told_once() -> None:
    with pytest.raises(ParameterError) as error:
        Classification(VOTES, ["vote"], "age")  # type: ignore[arg-type]
    assert error.value.problems == ("label must be the name of one column, got ['vote']",)
    with pytest.raises(ParameterError) as error:
        Classification(VOTES, "vote", [["age"]], scaler=CODES)  # type: ignore[list-item]
    assert error.value.problems == ("context must list columns by name, got ['age']",)


@pytest.mark.parametrize(("first", "second"), [(1, "1"), (True, "True"), (1.0, "1.0"), (1, True), (1, 1.0)])
def test_arms_that_read_the_same_or_are_equal(first: Any, second: Any) -> None:
    """Their columns in logs and releases, such as `count_1`, would hold one arm's numbers for both."""
    frame = pd.DataFrame({"y": pd.Series([first, second, second], dtype=object), "x": [0.1, 0.2, 0.3]})
    for build in (
        lambda: Classification(frame, "y", "x"),
        lambda: Classification(frame, "y", "x", arms=[first, second]),
        lambda: Classification(frame[:1], "y", "x", arms=[first, second]),
    ):
        with pytest.raises(ParameterError) as error:
            build()
        assert error.value.problems == (
            "arms that look the same or are equal cannot be distinguished in releases and files: "
            f"{first!r}, {second!r}; use arm labels of one type",
        )


def test_floats_that_hardly_repeat_are_no_classes() -> None:
    measured = pd.DataFrame({"y": [1.5, 2.5, 3.5, 4.5, 4.5], "x": 0.5})
    told = r"column 'y' has 4 classes in 5 rows; labels must occur more than once: .* arms="
    with pytest.raises(ParameterError, match=told):
        Classification(measured, "y", "x")
    with pytest.raises(ParameterError, match="has 3 classes in 3 rows"):
        Classification(measured[:3].astype({"y": int}).astype(float), "y", "x")
    assert Classification(measured, "y", "x", arms=[4.5, 1.5, 2.5, 3.5]).n_arms == 4
    assert Classification(pd.concat([measured, measured]), "y", "x").n_arms == 4
    assert Classification(measured.astype({"y": str}), "y", "x").n_arms == 4


@pytest.mark.parametrize(
    "values", [[[0.1], [0.2], [0.3]], [[0.1, 0.2], [0.2, 0.3], [0.3, 0.4]], [[0.1], [], [1]]]
)
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_columns_of_lists_are_no_contexts(kind: Any, values: list[list[float]]) -> None:
    frame = kind({"y": ["a", "b", "b"], "x": values, "z": [0.1, 0.2, 0.3]})
    for context in ("x", ["x", "z"]):
        with pytest.raises(ParameterError) as error:
            Classification(frame, "y", context)
        assert error.value.problems == (
            "contexts must be one number per row, but these columns contain lists: 'x'; make a column of "
            "each coordinate",
        )
    with pytest.raises(ParameterError, match="these columns contain lists: 'x'"):
        UnitCube(low=[0], high=[1], names=["x"]).scale(frame)


@pytest.mark.parametrize(
    "context",
    [VOTES[SURVEY].columns, np.array(SURVEY), pd.Series(SURVEY), tuple(SURVEY), iter(SURVEY)],
)
def test_contexts_are_named_by_anything_that_lists_names(context: Any) -> None:
    environment = Classification(VOTES, "vote", context, scaler=CODES)
    assert environment.vector_names == tuple(SURVEY)
    assert np.array_equal(environment.contexts, votes().contexts)


def test_clipping_is_told() -> None:
    cube = UnitCube(low=[1, 18], high=[7, 90], outside="clip")
    with pytest.warns(
        AdaptinfWarning, match="among 944 rows, values were clipped to the bounds: 2 of column 'age'"
    ):
        environment = Classification(VOTES, "vote", SURVEY, scaler=cube)
    assert environment.contexts.max() == 1.0


@pytest.mark.parametrize("design", [LDPBandit(epsilon=1.0), ABSE(), LDPLinear(epsilon=1.0)])
def test_contexts_outside_the_cube_are_refused_by_designs_that_need_it(design: Any) -> None:
    with pytest.raises(ParameterError, match=r"contexts must lie in the cube \[0, 1\]\^2"):
        design.run(Classification(VOTES, "vote", SURVEY), 100, rng=0)
    with pytest.raises(ParameterError, match="requires context vectors"):
        design.run(Classification(VOTES, "vote"), 100, rng=0)
