"""A session that is fed the rewards and contexts of a run makes its choices and its log, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from adaptinf.compilation import compiled, kernel
from adaptinf.designs import (
    ABSE,
    DPBAI,
    DPOD,
    KLUCB,
    UCB,
    ConSE,
    Design,
    DPBAIGauss,
    DPConSE,
    EpsilonGreedy,
    ExplorationSampling,
    FunctionDesign,
    LDPBandit,
    LDPLinear,
    LinPriv,
    LinUCB,
    Mixture,
    ODLinBAI,
    PlayTheWinner,
    PrivateSuccessiveElimination,
    PrivateUCB,
    SequentialHalving,
    Session,
    SuccessiveElimination,
    Thompson,
    TopTwoThompson,
    Uniform,
)
from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import AuxiliaryLog, Environment, FunctionEnvironment, Tableau
from adaptinf.simulation.replicate import Program, written_arrays
from adaptinf.simulation.run import no_outcome, pass_round, simulate_block, single_step

FIELDS = (
    "arms",
    "phases",
    "reward_range",
    "propensity_status",
    "design",
    "guarantee",
    "reward_guarantee",
    "guarantee_source",
    "noise",
    "feedback_rounds",
    "released_rounds",
    "recommended",
    "missing",
)
LONG, SHORT = 9_000, 400
_DRAWS = np.random.default_rng(11)
COINS = (_DRAWS.random((LONG, 3)) < [0.3, 0.5, 0.7]).astype(float)
MANY = (_DRAWS.random((SHORT, 8)) < np.linspace(0.2, 0.8, 8)).astype(float)
PAIRS = (_DRAWS.random((SHORT, 2)) < [0.4, 0.6]).astype(float)
CODES = _DRAWS.integers(0, 3, SHORT)
VECTORS = _DRAWS.random((SHORT, 3, 2)) / 2.0
FEATURES = _DRAWS.normal(size=(8, 3))


def assert_same_log(one: AdaptiveLog, other: AdaptiveLog) -> None:
    pd.testing.assert_frame_equal(one.frame, other.frame, check_exact=True)
    assert (one.releases is None) == (other.releases is None)
    if one.releases is not None:
        pd.testing.assert_frame_equal(one.releases, other.releases, check_exact=True)
    assert [getattr(one, name) for name in FIELDS] == [getattr(other, name) for name in FIELDS]
    for name in ("units", "_outcome_rounds"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def fed(session: Session, rewards: np.ndarray, contexts: Sequence[Any] | None = None) -> Session:
    """The session after all rounds, each outcome recorded before the next participant comes."""
    position = {arm: code for code, arm in enumerate(session.arms)}
    for step, row in enumerate(rewards.tolist()):
        decision = session.assign(context=None if contexts is None else contexts[step])
        session.record(decision.id, row[position[decision.arm]])
    return session


def kind(design: Design) -> str:
    inner = f"-{type(design.design).__name__}" if isinstance(design, Mixture) else ""
    return f"{type(design).__name__}{inner}"


def choose(state: Any, context: Any, rng: np.random.Generator) -> Any:
    pulls, sums = state
    shares = np.exp(3.0 * (sums + 0.5) / (pulls + 1.0)) + 0.01 * rng.random()
    return shares / shares.sum()


def update(state: Any, context: Any, arm: int, reward: float) -> Any:
    chosen = np.arange(len(state[0])) == arm
    return state[0] + chosen, state[1] + reward * chosen


def start(n_arms: int) -> Any:
    return np.zeros(n_arms), np.zeros(n_arms)


SOFTMAX = FunctionDesign(choose, update, start)
CERTAIN = FunctionDesign(lambda state, context, rng: int(np.argmax(state[1])), update, start)
ARMS = (
    Uniform(),
    EpsilonGreedy(exploration=0.3, decay=0.1),
    EpsilonGreedy(batch_size=50),
    Thompson(),
    Thompson(prior="normal", batch_size=20, initial_pulls=2, floor=0.05),
    Thompson(prior="normal", noise_scale=None, initial="dealt", initial_pulls=3),
    TopTwoThompson(),
    ExplorationSampling(),
    UCB(),
    KLUCB(),
    PlayTheWinner(),
    SOFTMAX,
    CERTAIN,
    Mixture(UCB(), exploration=0.3, decay=0.2),
    Mixture(Thompson(), exploration=0.3),
    Mixture(SOFTMAX, exploration=0.3),
    Mixture(CERTAIN, exploration=0.3),
    PrivateUCB(epsilon=1.0),
    PrivateUCB(epsilon=4.0, calibration="published", counter="binary"),
    Mixture(PrivateUCB(epsilon=1.0), exploration=0.1),
)


@pytest.mark.parametrize("design", ARMS, ids=kind)
def test_arms(design: Design) -> None:
    rewards = COINS[:SHORT]
    log = design.run(Tableau(rewards, reward_range=(0, 1)), SHORT, rng=5)
    assert_same_log(log, fed(design.session(3, SHORT, rng=5), rewards).log())


@pytest.mark.parametrize(
    "design",
    [
        SuccessiveElimination(),
        SuccessiveElimination(check="epochs"),
        PrivateSuccessiveElimination(epsilon=4.0),
        Mixture(PrivateSuccessiveElimination(epsilon=4.0), exploration=0.1),
    ],
    ids=kind,
)
def test_elimination(design: Design) -> None:
    log = design.run(Tableau(COINS, reward_range=(0, 1)), LONG, rng=5)
    assert_same_log(log, fed(design.session(3, LONG, rng=5), COINS).log())


@pytest.mark.parametrize(
    "design",
    [
        SequentialHalving(),
        DPBAI(epsilon=1.0, features=FEATURES),
        DPBAIGauss(epsilon=1.0, delta=1e-5, features=FEATURES),
        DPOD(epsilon=1.0, features=FEATURES),
        ODLinBAI(features=FEATURES),
        Mixture(DPBAI(epsilon=1.0, features=FEATURES), exploration=0.05),
    ],
    ids=kind,
)
def test_best_arm(design: Design) -> None:
    log = design.run(Tableau(MANY, reward_range=(0, 1)), SHORT, rng=5)
    assert_same_log(log, fed(design.session(8, SHORT, rng=5), MANY).log())


@pytest.mark.parametrize("labels", [(0, 1, 2), ("young", "old", "unknown")], ids=["codes", "text"])
@pytest.mark.parametrize(
    "design",
    [
        ConSE(),
        DPConSE(epsilon=1.0),
        DPConSE(epsilon=1.0, calibration="published"),
        Mixture(DPConSE(epsilon=1.0), exploration=0.1),
        EpsilonGreedy(),
        SOFTMAX,
    ],
    ids=kind,
)
def test_contexts_from_a_list(design: Design, labels: tuple[Any, ...]) -> None:
    contexts = [labels[code] for code in CODES]
    log = design.run(given(PAIRS, np.array(contexts), labels, ("a", "b")), SHORT, rng=5)
    session = design.session(["a", "b"], SHORT, features=labels, rng=5)
    assert_same_log(log, fed(session, PAIRS, contexts).log())


def given(
    rewards: np.ndarray, contexts: np.ndarray, labels: Sequence[Any], arms: Sequence[Any]
) -> Environment:
    def draw(rng: np.random.Generator, horizon: int) -> Any:
        return rewards[:horizon], contexts[:horizon]

    return FunctionEnvironment(draw, features=labels, arms=arms, reward_range=(0, 1))


@pytest.mark.parametrize("per_arm", [True, False], ids=["per-arm", "shared"])
@pytest.mark.parametrize(
    "design",
    [
        LinUCB(),
        LinPriv(epsilon=1.0),
        Mixture(LinPriv(epsilon=1.0, delta=1e-5), exploration=0.2),
        FunctionDesign(
            lambda state, context, rng: [0.25 + 0.5 * context.mean(), 0.75 - 0.5 * context.mean()]
        ),
    ],
    ids=kind,
)
def test_context_vectors(design: Design, per_arm: bool) -> None:
    vectors = VECTORS[:, :2] if per_arm else VECTORS[:, 0]
    log = design.run(Tableau(PAIRS, vectors=vectors, reward_range=(0, 1)), SHORT, rng=5)
    session = design.session(2, SHORT, dimension=2, per_arm=per_arm, rng=5)
    assert_same_log(log, fed(session, PAIRS, vectors).log())


@pytest.mark.parametrize("design", [LDPBandit(epsilon=8.0), LDPLinear(epsilon=4.0), ABSE()], ids=kind)
def test_local_designs(design: Design) -> None:
    vectors, rewards = VECTORS[:, 0], COINS[:SHORT]
    log = design.run(Tableau(rewards, vectors=vectors, reward_range=(0, 1)), SHORT, rng=5)
    assert_same_log(log, fed(design.session(3, SHORT, dimension=2, rng=5), rewards, vectors).log())


@pytest.mark.parametrize(
    "source", [lambda: 3, lambda: np.random.SeedSequence(3), lambda: np.random.default_rng(3)]
)
def test_any_source_of_randomness(source: Callable[[], Any]) -> None:
    design = Thompson()
    log = design.run(Tableau(PAIRS, reward_range=(0, 1)), SHORT, rng=source())
    assert_same_log(log, fed(design.session(2, SHORT, rng=source()), PAIRS).log())


@pytest.mark.parametrize("mine", [True, False])
def test_auxiliary_participants_come_before_the_first_round(mine: bool) -> None:
    vectors, rewards = VECTORS[:, 0], COINS[:SHORT]
    before = Uniform().run(Tableau(rewards, vectors=vectors, reward_range=(0, 1)), 100, rng=1)
    design = (LDPBandit if mine else LDPLinear)(epsilon=8.0, auxiliary=(AuxiliaryLog(before, epsilon=4.0),))
    log = design.run(Tableau(rewards, vectors=vectors, reward_range=(0, 1)), SHORT, rng=5)
    assert_same_log(log, fed(design.session(3, SHORT, dimension=2, rng=5), rewards, vectors).log())


class OwnTables(NamedTuple):
    n_arms: int
    status: Any
    propensity: Any
    released: Any


@kernel
def next_arm(tables: Any, state: Any, context: Any, source: Any) -> int:
    return int(state[1, 0]) % tables.n_arms


@kernel
def count(tables: Any, state: Any, context: Any, arm: int, reward: float, source: Any) -> None:
    state[1, 0] += 1.0 + reward


@compiled
def own_block(tables: Any, world: Any, rng: Any, state: Any, results: Any) -> None:
    simulate_block(next_arm, count, no_outcome, tables, world, rng, state, results)


@compiled
def own_step(tables: Any, step: Any, rng: Any, state: Any) -> int:
    return single_step(next_arm, pass_round, count, no_outcome, tables, step, rng, state)


@dataclass(frozen=True)
class Own(Design):
    stepping: bool = True

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        tables = OwnTables(environment.n_arms, **written_arrays(0))
        return Program(own_block, tables, (2, 2), step=own_step if self.stepping else None)


def test_a_compiled_design_of_ones_own() -> None:
    log = Own().run(Tableau(PAIRS, reward_range=(0, 1)), SHORT, rng=5)
    session = Own().session(2, SHORT, rng=5)
    session.assign()
    with pytest.raises(ParameterError, match="must be recorded first, because Own uses it to choose"):
        session.assign()
    assert_same_log(log, fed(Own().session(2, SHORT, rng=5), PAIRS).log())
    with pytest.raises(ParameterError, match="Own: cannot be used step by step: its program has no step="):
        Own(stepping=False).session(2, SHORT)


def test_a_log_on_the_way_is_the_beginning_of_the_last_one_and_stays_as_it_is() -> None:
    design = LinPriv(epsilon=1.0, delta=1e-5)
    session = design.session(2, SHORT, dimension=2, per_arm=True, rng=5)
    half = SHORT // 2
    early = fed(session, PAIRS[:half], VECTORS[:half, :2]).log()
    kept = early.frame.copy()
    for step in range(half, SHORT):
        decision = session.assign(context=VECTORS[step, :2])
        session.record(decision.id, PAIRS[step, decision.arm])
    last = session.log()
    pd.testing.assert_frame_equal(early.frame, kept)
    pd.testing.assert_frame_equal(early.frame, last.frame[:half], check_exact=True)
    assert early.releases is not None
    assert last.releases is not None
    pd.testing.assert_frame_equal(early.releases, last.releases[: len(early.releases)], check_exact=True)
    assert early.guarantee == last.guarantee
    assert (early.feedback_rounds, early.released_rounds) == (half - 1, half)
