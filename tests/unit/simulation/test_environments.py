"""Environments: laws of rewards and arrivals, truths, regret, and everything that is refused."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from adaptinf.designs import UCB, EpsilonGreedy, LinPriv, LinUCB, Mixture, PrivateUCB, Uniform
from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import (
    BernoulliArms,
    Classification,
    Environment,
    FiniteContext,
    NormalArms,
    Replay,
    SmoothArms,
    Tableau,
    UniformArms,
)


def rounds(environment: Environment, horizon: int = 60_000, seed: int = 0) -> AdaptiveLog:
    return Uniform().run(environment, horizon=horizon, rng=seed)


def cell(log: AdaptiveLog, arm: int, feature: int | None = None) -> np.ndarray:
    rows = log.arrays.action == arm
    if feature is not None:
        rows &= np.asarray(log.arrays.context["feature"]) == feature
    return log.arrays.reward[rows]


# --- laws ------------------------------------------------------------------------------------------------


def test_bernoulli_arms() -> None:
    environment = BernoulliArms([0.0, 1.0, 0.3])
    log = rounds(environment)
    assert not cell(log, 0).any()
    assert cell(log, 1).all()
    rewards = cell(log, 2)
    assert set(np.unique(rewards)) == {0.0, 1.0}
    assert stats.binomtest(int(rewards.sum()), rewards.size, 0.3).pvalue > 1e-4
    assert environment.reward_range == log.reward_range == (0.0, 1.0)
    np.testing.assert_allclose(environment.arm_means(), [0.0, 1.0, 0.3])
    assert (environment.n_arms, environment.n_features, environment.arms) == (3, 1, (0, 1, 2))
    assert log.context == ()


@pytest.mark.parametrize("scale", [0.5, [0.5, 2.0]])
def test_normal_arms(scale: Any) -> None:
    environment = NormalArms([-1.0, 3.0], scale=scale)
    log = rounds(environment)
    for arm, (mean, spread) in enumerate(zip([-1.0, 3.0], np.broadcast_to(scale, 2), strict=True)):
        assert stats.kstest(cell(log, arm), stats.norm(mean, spread).cdf).pvalue > 1e-4
    assert environment.reward_range == (-math.inf, math.inf)
    np.testing.assert_allclose(environment.arm_means(), [-1.0, 3.0])


def test_read_only_input_compiles_nothing_anew() -> None:
    rewards = np.ones((3, 2))
    rewards.flags.writeable = False
    spread = NormalArms([0.2, 0.6], scale=[0.5, 0.5])
    for env in (BernoulliArms([0.2, 0.6]), spread, Tableau(rewards)):
        assert len({numba.typeof(env.tables(3)), numba.typeof(BernoulliArms([0.5, 0.5]).tables(3))}) == 1
    np.testing.assert_array_equal(spread.tables(3).scale, [[0.5, 0.5]])


def test_uniform_arms() -> None:
    environment = UniformArms(low=[0.0, -1.0, 2.0], high=[1.0, 0.5, 2.0])
    log = rounds(environment)
    assert stats.kstest(cell(log, 0), stats.uniform(0.0, 1.0).cdf).pvalue > 1e-4
    assert stats.kstest(cell(log, 1), stats.uniform(-1.0, 1.5).cdf).pvalue > 1e-4
    assert (cell(log, 2) == 2.0).all()
    np.testing.assert_allclose(environment.arm_means(), [0.5, -0.25, 2.0])
    assert environment.reward_range == (-1.0, 2.0)


def test_finite_context_arrivals_and_bernoulli_rewards() -> None:
    probabilities, means = np.array([0.5, 0.3, 0.2]), np.array([[0.4, 0.7], [0.6, 0.3], [0.3, 0.65]])
    environment = FiniteContext(probabilities, means)
    log = rounds(environment)
    counts = np.bincount(np.asarray(log.arrays.context["feature"]), minlength=3)
    assert stats.chisquare(counts, probabilities * log.n_rounds).pvalue > 1e-4
    for feature in range(3):
        for arm in range(2):
            rewards = cell(log, arm, feature)
            assert stats.binomtest(int(rewards.sum()), rewards.size, means[feature, arm]).pvalue > 1e-4
    np.testing.assert_allclose(environment.effects(), means[:, 1] - means[:, 0])
    np.testing.assert_allclose(environment.effects(treatment=0, control=1), means[:, 0] - means[:, 1])
    np.testing.assert_allclose(environment.arm_means(), probabilities @ means)
    assert log.context == ("feature",)


@pytest.mark.parametrize(
    ("rewards", "options", "law"),
    [
        ("uniform", {}, lambda m: stats.uniform(m - min(m, 1 - m), 2 * min(m, 1 - m))),
        ("uniform", {"half_width": 0.9}, lambda m: stats.uniform(m - 0.9, 1.8)),
        ("normal", {"scale": 0.2}, lambda m: stats.norm(m, 0.2)),
    ],
)
def test_finite_context_other_laws(rewards: str, options: dict[str, float], law: Any) -> None:
    means = np.array([[0.4, 0.9], [0.15, 0.5]])
    environment = FiniteContext([0.25, 0.75], means, rewards=rewards, **options)
    log = rounds(environment)
    for feature in range(2):
        for arm in range(2):
            assert stats.kstest(cell(log, arm, feature), law(means[feature, arm]).cdf).pvalue > 1e-4
    low, high = environment.reward_range
    assert low <= log.arrays.reward.min()
    assert log.arrays.reward.max() <= high


def test_successive_rounds_are_independent() -> None:
    log = rounds(FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]]))
    columns = [log.arrays.reward, np.asarray(log.arrays.context["feature"]).astype(float), log.arrays.action]
    bound = 4.5 / math.sqrt(log.n_rounds)
    for first in columns:
        for second in columns:
            assert abs(np.corrcoef(first[1:], second[:-1])[0, 1]) < bound
    assert abs(np.corrcoef(columns[1], columns[2])[0, 1]) < bound


def test_seasons_follow_each_other() -> None:
    probabilities = np.array([[1.0, 0.0], [0.2, 0.8], [0.0, 1.0]])
    environment = FiniteContext(probabilities, [[0.4, 0.7], [0.6, 0.3]], period=1_000)
    log = rounds(environment, horizon=9_500)
    feature = np.asarray(log.arrays.context["feature"])
    season = np.arange(9_500) // 1_000 % 3
    assert not feature[season == 0].any()
    assert feature[season == 2].all()
    middle = feature[season == 1]
    assert stats.binomtest(int(middle.sum()), middle.size, 0.8).pvalue > 1e-4
    np.testing.assert_allclose(environment.arm_means(), np.array([0.4, 0.6]) @ environment.means)


# --- fixed potential rewards ---------------------------------------------------------------------------


def test_tableau_pays_what_it_says() -> None:
    rng = np.random.default_rng(3)
    rewards, contexts = rng.normal(size=(500, 3)), rng.permutation(np.arange(500) % 4)
    environment = Tableau(rewards, contexts)
    log = rounds(environment, horizon=500)
    np.testing.assert_array_equal(log.arrays.reward, rewards[np.arange(500), log.arrays.action])
    np.testing.assert_array_equal(log.arrays.context["feature"], contexts)
    for feature in range(4):
        np.testing.assert_allclose(environment.means[feature], rewards[contexts == feature].mean(axis=0))
    np.testing.assert_allclose(environment.arm_means(), rewards.mean(axis=0))
    assert environment.reward_range == (rewards.min(), rewards.max())


@pytest.mark.parametrize("contextual", [False, True])
def test_tableau_regret_is_against_the_best_fixed_arm(contextual: bool) -> None:
    rng = np.random.default_rng(4)
    rewards = rng.uniform(size=(300, 2))
    environment = Tableau(rewards, np.arange(300) % 2 if contextual else None)
    design, horizon = EpsilonGreedy(exploration=0.5), 200
    sims = design.replicate(environment, horizon=horizon, replications=5, rng=0)
    for r, log in enumerate(design.logs(environment, horizon=horizon, replications=5, rng=0)):
        expected = rewards[:horizon].sum(axis=0).max() - log.arrays.reward.sum()
        assert sims.regret[r] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("shared", [False, True])
def test_tableau_with_context_vectors(shared: bool) -> None:
    rng = np.random.default_rng(5)
    rewards = rng.uniform(size=(60, 3))
    given = rng.uniform(-0.5, 0.5, size=(60, 2) if shared else (60, 3, 2))
    environment = Tableau(rewards, vectors=given)
    assert environment.dimension == 2
    assert environment.context_norm == pytest.approx(np.sqrt((given**2).sum(axis=-1)).max())
    if shared:
        assert environment.vector_names == ("x1", "x2")
    else:
        assert environment.vector_names == ("x1_0", "x2_0", "x1_1", "x2_1", "x1_2", "x2_2")
    design = LinUCB(regularisation=0.1)
    sims = design.replicate(environment, horizon=50, replications=1, rng=0)
    log = design.run(environment, horizon=50, rng=0)
    assert set(log.arrays.action) == {0, 1, 2}
    np.testing.assert_array_equal(log.arrays.reward, rewards[np.arange(50), log.arrays.action])
    columns = np.stack([log.arrays.context[name] for name in environment.vector_names], axis=1)
    np.testing.assert_array_equal(columns, given.reshape(60, -1)[:50])
    assert sims.regret[0] == pytest.approx((rewards[:50].max(axis=1) - log.arrays.reward).sum())
    with pytest.raises(ParameterError, match="horizon must be at most 60"):
        design.run(environment, horizon=61, rng=0)


def test_every_environment_with_vectors_says_how_long_they_can_be() -> None:
    frame = pd.DataFrame({"a": [0.0, 3.0], "b": [1.0, 4.0], "label": [0, 1]})
    assert Classification(frame, "label", ["a", "b"]).context_norm == 5.0
    assert SmoothArms(2, 4).context_norm == 2.0
    assert SmoothArms(2, 2, contexts=[[0.6, 0.8], [0.1, 0.2]]).context_norm == pytest.approx(1.0)
    assert Tableau([[0.0], [1.0]]).context_norm == BernoulliArms([0.5]).context_norm == 0.0
    for environment in (SmoothArms(2, 2), Tableau([[0.0, 1.0]], vectors=[[1.0, 0.1]])):
        with pytest.raises(ParameterError, match="contexts must have a length of at most 1"):
            LinPriv(epsilon=1.0).run(environment, horizon=1, rng=0)


def test_tableau_has_only_so_many_rounds() -> None:
    environment = Tableau([[1.0, 0.0], [0.0, 0.0]])
    assert environment.features == ()
    with pytest.raises(ParameterError, match="horizon must be at most 2, the number of rounds, got 3"):
        Uniform().run(environment, horizon=3, rng=0)
    with pytest.raises(ParameterError, match="horizon must be at most 2"):
        Uniform().replicate(environment, horizon=3, replications=2, rng=0)


def test_pseudo_regret_adds_the_gaps() -> None:
    environment = FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
    design = EpsilonGreedy(exploration=0.3)
    sims = design.replicate(environment, horizon=400, replications=4, rng=1)
    for r, log in enumerate(design.logs(environment, horizon=400, replications=4, rng=1)):
        feature = np.asarray(log.arrays.context["feature"])
        best = environment.means.max(axis=1)[feature]
        expected = (best - environment.means[feature, log.arrays.action]).sum()
        assert sims.regret[r] == pytest.approx(expected, abs=1e-10)


# --- real data, resampled ---------------------------------------------------------------------------


def table() -> pd.DataFrame:
    rng = np.random.default_rng(9)
    n = 400
    return pd.DataFrame(
        {
            "drug": rng.choice(["new", "old", "none"], n),
            "outcome": rng.normal(size=n).round(3),
            "sex": rng.choice(["f", "m"], n, p=[0.3, 0.7]),
            "age": rng.choice([30, 60], n),
        }
    )


def test_replay_without_contexts_resamples_each_arm() -> None:
    frame = table()
    environment = Replay(frame, action="drug", reward="outcome")
    assert environment.arms == ("new", "none", "old")
    log = rounds(environment, horizon=30_000)
    for position, arm in enumerate(environment.arms):
        rows = frame.loc[frame["drug"] == arm, "outcome"]
        assert environment.arm_means()[position] == pytest.approx(rows.mean(), abs=1e-12)
        values, counts = np.unique(cell(log, position), return_counts=True)
        kinds, frequency = np.unique(rows, return_counts=True)
        assert set(values) <= set(kinds)
        expected = frequency / frequency.sum() * counts.sum()
        observed = np.array([counts[values == kind].sum() for kind in kinds])
        assert stats.chisquare(observed, expected).pvalue > 1e-4
    assert environment.reward_range == (frame["outcome"].min(), frame["outcome"].max())


def test_replay_truths_are_cell_means() -> None:
    frame = table()
    environment = Replay(
        frame, action="drug", reward="outcome", context=["sex", "age"], arms=["old", "new", "none"]
    )
    assert environment.arms == ("old", "new", "none")
    assert environment.features == (("f", 30), ("f", 60), ("m", 30), ("m", 60))
    assert environment.context_name == "sex_age"
    means = frame.groupby(["sex", "age", "drug"])["outcome"].mean()
    log = rounds(environment, horizon=40_000)
    seen = log.arrays.context["sex_age"]
    for row, (sex, age) in enumerate(environment.features):
        share = ((frame["sex"] == sex) & (frame["age"] == age)).mean()
        assert environment.probabilities[0, row] == pytest.approx(share)
        here = np.array([label == (sex, age) for label in seen])
        assert stats.binomtest(int(here.sum()), here.size, share).pvalue > 1e-4
        for column, arm in enumerate(environment.arms):
            assert environment.means[row, column] == pytest.approx(means[sex, age, arm], abs=1e-12)
            pool = frame[(frame["sex"] == sex) & (frame["age"] == age) & (frame["drug"] == arm)]["outcome"]
            drawn = log.arrays.reward[here & (log.arrays.action == column)]
            assert set(drawn) <= set(pool)
            error = pool.std(ddof=0) / math.sqrt(drawn.size)
            assert abs(drawn.mean() - pool.mean()) < 4.5 * error + 1e-12


@pytest.mark.parametrize("kind", ["category", "int", "bool reward"])
def test_replay_takes_other_column_types(kind: str) -> None:
    frame = table()
    if kind == "category":
        frame["drug"] = frame["drug"].astype("category")
    elif kind == "int":
        frame["drug"] = frame["drug"].map({"new": 3, "old": 1, "none": 2})
    else:
        frame["outcome"] = frame["outcome"] > 0
    environment = Replay(frame, action="drug", reward="outcome", context="sex")
    assert environment.n_arms == 3
    assert environment.context_name == "sex"
    means = frame.groupby(["sex", "drug"], observed=True)["outcome"].mean().unstack()
    np.testing.assert_allclose(environment.means, means[list(environment.arms)].to_numpy(dtype=float))
    assert rounds(environment, horizon=50).arms == environment.arms


# --- refusals ---------------------------------------------------------------------------

GOOD = ([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
NAN = math.nan


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: BernoulliArms([0.5, 1.5]), ["means must lie in [0, 1]"]),
        (lambda: BernoulliArms([0.5, NAN]), ["means must be finite"]),
        (lambda: BernoulliArms([]), ["means must be a list with one number per arm"]),
        (lambda: BernoulliArms([[0.5], [0.5]]), ["means must be a list with one number per arm"]),
        (lambda: BernoulliArms(["a", "b"]), ["means must be numbers"]),
        (lambda: NormalArms([0.0, NAN], scale=[math.inf]), ["means must be finite", "scale must be finite"]),
        (lambda: NormalArms([0.0, 1.0], scale=0.0), ["scale must be positive"]),
        (lambda: NormalArms([0.0, 1.0], scale=[1.0, 2.0, 3.0]), ["scale must be one number or one per arm"]),
        (lambda: UniformArms([0.0], [1.0, 2.0]), ["low and high must have one number per arm"]),
        (lambda: UniformArms([0.0, 1.0], [1.0, 0.5]), ["low must not be above high"]),
        (lambda: UniformArms([0.0, NAN], [1.0, math.inf]), ["low must be finite", "high must be finite"]),
        (lambda: FiniteContext([0.5, 0.4], GOOD[1]), ["probabilities must sum to 1"]),
        (
            lambda: FiniteContext([1.5, -0.5], [[0.4, 1.7]], "poisson", scale=0.0, half_width=-1.0, period=0),
            [
                "probabilities must be",
                "means must have shape",
                "rewards must be",
                "scale",
                "half_width",
                "period",
            ],
        ),
        (lambda: FiniteContext(GOOD[0], [[0.4, 1.7], [0.6, 0.3]]), ["means of bernoulli rewards must lie"]),
        (
            lambda: FiniteContext(GOOD[0], [[0.4, 1.7], [0.6, 0.3]], half_width=0.1),
            ["means of bernoulli rewards must lie"],
        ),
        (lambda: FiniteContext(GOOD[0], [[0.4, NAN], [0.6, 0.3]], "normal"), ["means must be finite"]),
        (
            lambda: FiniteContext([GOOD[0], GOOD[0]], GOOD[1]),
            ["period= (the number of rounds in a period) is required"],
        ),
        (lambda: FiniteContext(*GOOD, period=2.5), ["period must be a whole number"]),
        (lambda: FiniteContext(*GOOD, scale=math.inf, rewards="normal"), ["scale must be"]),
        (lambda: FiniteContext(*GOOD, half_width=math.inf, rewards="uniform"), ["half_width must be"]),
        (
            lambda: FiniteContext(["x", "y"], "means"),
            ["probabilities must be numbers", "means must be numbers"],
        ),
        (lambda: Tableau([[1.0, NAN]]), ["rewards must be finite numbers"]),
        (
            lambda: Tableau([1.0, 2.0], [0]),
            ["rewards must be finite numbers", "contexts must have one entry"],
        ),
        (lambda: Tableau([[1.0], [0.0]], [0, 0.5]), ["contexts must be the integers 0, 1, 2, ..."]),
        (lambda: Tableau([[1.0], [0.0]], [0, NAN]), ["contexts must be the integers"]),
        (lambda: Tableau([[1.0], [0.0]], [0, -1]), ["contexts must be the integers"]),
        (lambda: Tableau([[1.0], [0.0]], [0, 3]), ["context 1 never occurs", "context 2 never occurs"]),
        (
            lambda: Tableau([["a"], ["b"]], ["c", "d"]),
            ["rewards must be numbers", "contexts must be numbers"],
        ),
        (lambda: Tableau([[1.0], [0.0]], vectors=[[1.0]]), ["vectors must have shape (rounds, dimension)"]),
        (lambda: Tableau([[1.0]], vectors=[[[1.0], [2.0]]]), ["got (1, 2, 1)"]),
        (lambda: Tableau([[1.0]], vectors=[["x"]]), ["vectors must be numbers"]),
        (
            lambda: Tableau([[1.0], [0.0]], [0, 1], vectors=[[1.0], [NAN]]),
            ["vectors must be finite numbers", "contexts and vectors cannot both be given"],
        ),
    ],
)
def test_refusals_list_everything(build: Any, named: list[str]) -> None:
    with pytest.raises(ParameterError) as caught:
        build()
    message = str(caught.value)
    for part in named:
        assert part in message
    assert len(caught.value.problems) == len(named)


def test_replay_refusals() -> None:
    frame = table()
    with pytest.raises(ParameterError, match="no column 'x'") as caught:
        Replay(frame, action="x", reward="y", context=["sex", "z"])
    assert len(caught.value.problems) == 3
    broken = frame.assign(
        outcome=np.where(np.arange(len(frame)) < 3, np.nan, frame["outcome"]),
        drug=frame["drug"].mask(frame.index == 7),
    )
    with pytest.raises(ParameterError, match="'outcome' has 3 missing or infinite values") as caught:
        Replay(broken, action="drug", reward="outcome")
    assert "column 'drug' has 1 missing values" in str(caught.value)
    with pytest.raises(ParameterError, match="column 'sex' must contain numbers"):
        Replay(frame, action="drug", reward="sex")
    with pytest.raises(ParameterError, match="not in arms=: none, old"):
        Replay(frame, action="drug", reward="outcome", arms=["new"])
    alone = frame[~((frame["drug"] == "new") & (frame["sex"] == "f"))]
    with pytest.raises(ParameterError, match="no row has arm 'new' in context 'f'"):
        Replay(alone, action="drug", reward="outcome", context="sex")
    with pytest.raises(ParameterError, match="no row has arm 'zinc'"):
        Replay(frame, action="drug", reward="outcome", arms=["new", "old", "none", "zinc"])
    with pytest.raises(ParameterError, match="the frame has no rows"):
        Replay(frame.iloc[:0], action="drug", reward="outcome", context="sex")
    with pytest.raises(ParameterError, match="arms= names 'new' more than once"):
        Replay(frame, action="drug", reward="outcome", arms=["new", "old", "none", "new"])


@pytest.mark.parametrize("alike", [(1, "1"), (True, "True"), (1.0, "1.0"), (1, True)])
def test_replayed_arms_that_cannot_be_told_apart(alike: tuple[Any, Any]) -> None:
    frame = pd.DataFrame({"a": pd.Series([*alike, *alike], dtype=object), "y": [1, 2, 3, 4]})
    with pytest.raises(ParameterError) as error:
        Replay(frame, "a", "y", arms=list(dict.fromkeys(alike)))
    assert error.value.problems == (
        f"arms that look the same or are equal cannot be distinguished in releases and files: {alike[0]!r}, "
        f"{alike[1]!r}; use arm labels of one type",
    )


def test_replayed_contexts_are_named_by_anything_that_lists_names() -> None:
    frame = table()
    plain = Replay(frame, action="drug", reward="outcome", context=["sex"])
    for context in (frame[["sex"]].columns, np.array(["sex"]), iter(["sex"])):
        environment = Replay(frame, action="drug", reward="outcome", context=context)
        assert environment.context_name == "sex"
        assert np.array_equal(environment.means, plain.means)
    with pytest.raises(ParameterError, match="context must be a column or a list of columns"):
        Replay(frame, action="drug", reward="outcome", context={"sex"})


def test_repr_names_arms_and_contexts() -> None:
    assert repr(BernoulliArms([0.1, 0.2])) == "BernoulliArms(arms=[0, 1])"
    assert repr(FiniteContext(*GOOD)) == "FiniteContext(arms=[0, 1], features=[0, 1])"


FOUR = pd.DataFrame({"a": ["x", "y"] * 4, "r": [0.2, 0.9] * 4})
LEARNT = {
    "tableau": lambda **more: Tableau(np.full((60, 2), [0.6, 0.7]), **more),
    "replay": lambda **more: Replay(FOUR, action="a", reward="r", **more),
}


@pytest.mark.parametrize("kind", LEARNT)
def test_private_designs_make_no_log_with_a_range_learnt_from_the_data(kind: str) -> None:
    learnt, declared = LEARNT[kind](), LEARNT[kind](reward_range=(0, 1))
    assert (learnt.range_learnt, declared.range_learnt, declared.reward_range) == (True, False, (0.0, 1.0))
    private = PrivateUCB(epsilon=1.0)
    for design in (private, Mixture(private)):
        with pytest.raises(ParameterError, match="declare it there, for example reward_range=") as caught:
            design.run(learnt, 40, rng=0)
        assert "learned from the data of" in str(caught.value)
        assert "0.9" not in str(caught.value)
        assert design.run(declared, 40, rng=0).reward_range == (0.0, 1.0)
    for public in (UCB(), Uniform()):
        assert public.run(learnt, 40, rng=0).reward_range == learnt.reward_range


@pytest.mark.parametrize("kind", LEARNT)
def test_a_declared_range_that_rewards_leave_names_no_reward(kind: str) -> None:
    with pytest.raises(ParameterError) as caught:
        LEARNT[kind](reward_range=(0.0, 0.5))
    assert str(caught.value).endswith("rewards must lie in reward_range=(0, 0.5), but some do not")
    for odd in ((1.0, 0.0), (0.0, NAN), (0.0,), 1.0, "01", ["a", "b"], (0.0, np.inf)):
        with pytest.raises(ParameterError, match="reward_range must be two finite numbers, low < high"):
            LEARNT[kind](reward_range=odd)
