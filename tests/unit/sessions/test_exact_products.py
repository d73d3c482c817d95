"""LinPriv with exact noise: sums of products in whole numbers, kernels that see what is released of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from adaptinf.audit.privacy.designs.audited_trial import public_replay
from adaptinf.audit.privacy.designs.counter_audits import linear_trials, unequal_contexts
from adaptinf.designs import Design, LinPriv, Mixture, Session, prediction_bands
from adaptinf.designs.contextual.linear_noise import (
    PRODUCT_UNITS,
    ProductSums,
    on_grid,
    product_sensitivity,
    toward_zero,
)
from adaptinf.errors import ParameterError
from adaptinf.privacy.noise import laplace
from adaptinf.privacy.release import GRID_UNITS, discrete_laplace
from adaptinf.privacy.tree_sums import counter_scales
from adaptinf.sessions import open_session
from adaptinf.sessions.session_memory import memory_of
from adaptinf.simulation.environments import Tableau
from adaptinf.simulation.replicate import block_stream, seed_sequence
from adaptinf.simulation.run import CHOOSE
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.trial.snapshot_bytes import pack, unpacked

ROUNDS, DIMENSION = 200, 4
RNG = np.random.default_rng(11)
VECTORS = unequal_contexts(ROUNDS, 2, DIMENSION)
REWARDS = RNG.random((ROUNDS, 2))
COINS = (REWARDS < 0.5).astype(float)
DESIGNS: list[Design] = [
    LinPriv(epsilon=1.0),
    LinPriv(epsilon=0.5, counter="binary", noise_width="ridge"),
    LinPriv(epsilon=2.0, calibration="published"),
    Mixture(LinPriv(epsilon=1.0), exploration=0.2),
]
every_design = pytest.mark.parametrize("design", DESIGNS, ids=lambda design: str(design)[:40])


def own(design: Design) -> LinPriv:
    found = design.design if isinstance(design, Mixture) else design
    assert isinstance(found, LinPriv)
    return found


def opened(
    design: Design,
    draw: Callable[[str, float], float],
    coins: np.random.Generator | None = None,
    dimension: int = DIMENSION,
) -> Session:
    declared = 2, None, dimension, True, (0.0, 1.0)
    return open_session(design, declared, ROUNDS, None, None, coins, noise="release", draw=draw)


def fed(session: Session, rewards: Any, vectors: Any = VECTORS) -> Session:
    for step in range(session.rounds, len(rewards)):
        decision = session.assign(context=vectors[step])
        session.record(decision.id, float(rewards[step, decision.arm]))
    return session


def named(name: str, scale: float) -> int:
    """Noise that follows from the name."""
    return hash(name) % (1 << 42) - (1 << 41)


def taken(noted: list[tuple[str, float, int]]) -> Callable[[str, float], int]:
    """Exact noise, which is written down."""

    def draw(name: str, scale: float) -> int:
        noted.append((name, scale, int(discrete_laplace(scale, 1)[0])))
        return noted[-1][2]

    return draw


def transcript(session: Session) -> Transcripts:
    record, released = session._rounds.record, session._stepper.released()
    given = record.action, released, np.zeros(0), record.status, record.reward
    return Transcripts(*(each[None] for each in given))


# --- the grid --------------------------------------------------------------------------------------------


def test_vectors_are_cut_off_towards_zero_and_never_longer_than_one() -> None:
    rng = np.random.default_rng(0)
    for dimension in (1, 2, 3, 7, 50, 1_000):
        drawn = rng.normal(size=(200, dimension))
        drawn[::3] = 1.0
        unit = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        for vectors in (unit, unit * (1.0 + 1e-9), unit * rng.random((200, 1))):
            units = toward_zero(vectors)
            assert (units.astype(object) ** 2).sum(axis=1).max() <= PRODUCT_UNITS
            assert (np.abs(units) <= np.abs(vectors) * GRID_UNITS).all()
            assert np.abs(vectors * GRID_UNITS - units).max() < 1.0 + 2.0e-3
            assert np.abs(units).sum(axis=1).max() * GRID_UNITS <= product_sensitivity(dimension)
            assert np.array_equal(toward_zero(on_grid(vectors)), units)


def test_the_nearest_units_would_exceed_the_sensitivity() -> None:
    dimension = 1_000
    vector = np.full(dimension, dimension**-0.5)
    nearest = int(np.rint(vector * GRID_UNITS).sum()) * GRID_UNITS
    assert nearest > product_sensitivity(dimension) >= int(toward_zero(vector).sum()) * GRID_UNITS


def test_a_vector_that_is_too_long_by_a_rounding_loses_a_unit() -> None:
    long = np.array([1.0 + 2.0**-20, 0.0, -0.0])
    assert toward_zero(long).tolist() == [GRID_UNITS, 0, 0]


@pytest.mark.parametrize("dimension", [1, 2, 3, 5, 17])
def test_a_reward_moves_whole_sums_by_at_most_the_sensitivity(dimension: int) -> None:
    """Two histories that differ in one reward, without noise: the sums of its arm differ, and by no more."""
    rng, largest = np.random.default_rng(dimension), 0
    for trial in range(60):
        sides = [ProductSums("hybrid", 1.0, 2, dimension, 32) for _ in range(2)]
        place = int(rng.integers(16))
        for step in range(16):
            vectors = rng.normal(size=(2, dimension))
            if trial % 2:
                vectors = np.sign(vectors)
            context = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).reshape(-1)
            arm, reward = int(rng.integers(2)), float(rng.random())
            pair = (0.0, 1.0) if step == place else (reward, reward)
            for sums, told in zip(sides, pair, strict=True):
                sums.learn(context, arm, told, lambda name, scale: 0)
        moved = [
            int(np.abs(one - two).sum()) for one, two in zip(sides[0]._sums, sides[1]._sums, strict=True)
        ]
        assert min(moved) == 0
        largest = max(largest, *moved)
    exact = product_sensitivity(dimension)
    assert 0.99 * exact < largest <= exact <= math.sqrt(dimension) * PRODUCT_UNITS * (1 + 1e-15)


# --- sessions --------------------------------------------------------------------------------------------


@every_design
def test_on_the_noise_of_a_run_a_session_is_that_run_bit_for_bit(design: Design) -> None:
    """On contexts and rewards that lie on the grid; in four dimensions sqrt(d) is exact."""
    coins, whole = block_stream(seed_sequence(5), 0), on_grid(VECTORS)

    def draw(name: str, scale: float) -> float:
        return laplace(coins, scale / PRODUCT_UNITS) * PRODUCT_UNITS

    log = fed(opened(design, draw, coins), COINS, whole).log()
    run = design.run(Tableau(COINS, vectors=whole, reward_range=(0.0, 1.0)), ROUNDS, rng=5)
    assert log.frame.equals(run.frame)
    assert log.releases is not None
    assert log.releases.equals(run.releases)
    assert (log.noise, run.noise) == ("release", "simulation")
    assert log.guarantee == run.guarantee


@every_design
def test_released_sums_are_products_and_nodes_added_up_in_whole_numbers(design: Design) -> None:
    """Literally, in rational numbers: truncated contexts times rewards in units, each node by its name."""
    noted: list[tuple[str, float, int]] = []
    log, hybrid = fed(opened(design, taken(noted)), REWARDS).log(), own(design).counter == "hybrid"
    nodes = {name: noise for name, _, noise in noted}
    assert len(nodes) == len(noted) == ROUNDS * DIMENSION
    sums, counts = [[0] * DIMENSION for _ in range(2)], [0, 0]
    assert log.releases is not None
    shown = iter(log.releases["value"].tolist())
    for step, (arm, reward) in enumerate(
        zip(log.arrays.action.tolist(), log.arrays.reward.tolist(), strict=True)
    ):
        counts[arm] += 1
        for k in range(DIMENSION):
            sums[arm][k] += math.trunc(VECTORS[step, arm, k] * GRID_UNITS) * round(reward * GRID_UNITS)
            total = sums[arm][k] + sum(
                nodes[f"arm {arm}, count {end}, coordinate {k + 1}"] for end in blocks(hybrid, counts[arm])
            )
            assert next(shown) == float(Fraction(total, PRODUCT_UNITS))


def blocks(hybrid: bool, count: int) -> list[int]:
    """Where the nodes end that make up a count: powers of two and blocks between them, or blocks alone."""
    top = 1 << (count.bit_length() - 1)
    ends, at = [1 << k for k in range(count.bit_length())] if hybrid else [top], top
    for bit in reversed(range(top.bit_length() - 1)):
        if count & (1 << bit):
            at += 1 << bit
            ends.append(at)
    return ends


@every_design
def test_scales_are_those_of_the_promise_and_never_below(design: Design) -> None:
    noted: list[tuple[str, float, int]] = []
    fed(opened(design, taken(noted), dimension=3), REWARDS, VECTORS[:, :, :3])
    inner = own(design)
    promised = Fraction(inner.epsilon)
    sensitivity = PRODUCT_UNITS if inner.calibration == "published" else product_sensitivity(3)
    for name, scale, _ in noted:
        count = int(name.split(", ")[1].rpartition(" ")[2])
        level = count.bit_length() - 1
        times = (
            ROUNDS.bit_length() if inner.counter == "binary" else 2 * (1 if count == 1 << level else level)
        )
        exact = times * sensitivity / promised
        assert exact <= Fraction(scale) <= exact * (1 + Fraction(1, 2**52))


@every_design
def test_what_a_reward_can_lose_over_its_nodes_is_the_promise_and_attained(design: Design) -> None:
    """Over the nodes that hold an item, in rational numbers: sums of sensitivity over scale."""
    scales: dict[str, Fraction] = {}

    def draw(name: str, scale: float) -> int:
        scales[name.rpartition(",")[0]] = Fraction(scale)
        return 0

    inner = dataclasses.replace(own(design), dimension=3)
    sums, hybrid = inner.exact_sums(ROUNDS, 1), inner.counter == "hybrid"
    for step in range(ROUNDS):
        sums.learn(VECTORS[step, :1, :3].reshape(-1), 0, 1.0, draw)
    worst = Fraction(0)
    for item in range(1, ROUNDS + 1):
        holding = (end for end in range(item, ROUNDS + 1) if begin(hybrid, end) < item)
        loss = (product_sensitivity(3) / scales[f"arm 0, count {end}"] for end in holding)
        worst = max(worst, sum(loss, Fraction(0)))
    promised = Fraction(inner.guarantee(ROUNDS, 2).epsilon)
    assert promised * (1 - Fraction(1, 2**19)) < worst <= promised


def begin(hybrid: bool, end: int) -> int:
    """Items before the node that ends at a count."""
    earlier = end & (end - 1)
    return end >> 1 if hybrid and earlier == 0 else earlier


@every_design
def test_no_choice_reads_what_is_not_released(design: Design) -> None:
    """Whatever is written over the private rows and the whole sums, each next choice is the same."""
    rng, session = np.random.default_rng(0), opened(design, named, np.random.default_rng(1))
    stepper: Any = session._stepper
    rows = stepper.program.n_public
    for step in range(60):
        answers = []
        for add in (0.0, 50.0):
            state, memory = stepper.state.copy(), stepper._sums.memory()
            stepper.state[rows:] += rng.normal(scale=add, size=state[rows:].shape)
            stepper._sums._sums = [each + int(add) * PRODUCT_UNITS for each in stepper._sums._sums]
            arm = stepper._call(CHOOSE, VECTORS[step].reshape(-1))
            answers.append((arm, stepper.state[:rows].tolist()))
            stepper.state[:] = state
            stepper._sums.remember(memory)
        assert answers[0] == answers[1]
        fed(session, REWARDS[: step + 1])


@every_design
def test_contexts_are_cut_off_everywhere(design: Design) -> None:
    """In V, in the index and in the sums: the same as if they had been on the grid."""
    sessions = [opened(design, named, np.random.default_rng(2)) for _ in range(2)]
    for session, vectors in zip(sessions, (VECTORS, on_grid(VECTORS)), strict=True):
        fed(session, REWARDS, vectors)
    states = [(each._stepper.state.tobytes(), each._stepper._sums.memory()) for each in sessions]  # type: ignore[attr-defined]
    assert states[0] == states[1]
    assert not np.array_equal(VECTORS, on_grid(VECTORS))


@every_design
def test_decisions_follow_from_released_numbers_and_public_contexts_to_the_last_bit(design: Design) -> None:
    session = fed(opened(design, taken([])), REWARDS)
    replay = public_replay(design, Tableau(REWARDS, vectors=on_grid(VECTORS)), ROUNDS)
    assert replay is not None
    for part in replay(transcript(session)):
        assert np.array_equal(part.seen, part.recomputed)
    assert len(set(session.log().arrays.action.tolist())) == 2


def halved(name: str, scale: float) -> int:
    return int(discrete_laplace(0.5 * scale, 1)[0])


@pytest.mark.parametrize(("draw", "right"), [(taken([]), True), (halved, False)], ids=["exact", "half"])
def test_every_node_has_the_law_of_its_promise(draw: Callable[[str, float], float], right: bool) -> None:
    """Of noisy sums less exact ones, from node to node: 1,600 uniform numbers, or half the scale."""
    noise, vectors = linear_trials(LinPriv(epsilon=1.0))[1].noise, VECTORS[:, :, :2]
    noise = dataclasses.replace(noise, vectors=on_grid(vectors))  # type: ignore[type-var]
    uniforms: list[float] = []
    for _ in range(4):
        (found,) = noise(transcript(fed(opened(LinPriv(epsilon=1.0), draw, None, 2), COINS, vectors)))  # type: ignore[misc]
        uniforms += found.uniforms[np.isfinite(found.uniforms)].tolist()
    assert len(uniforms) == 4 * 2 * ROUNDS
    assert (stats.kstest(uniforms, "uniform").pvalue > 1e-6) == right


def test_a_draw_that_fails_changes_nothing() -> None:
    """Whether the first coordinate fails or the last one."""
    fails = 0

    def draw(name: str, scale: float) -> int:
        if fails and name.endswith(f"coordinate {fails}"):
            raise OSError("no randomness")
        return named(name, scale)

    design = LinPriv(epsilon=1.0)
    session, undisturbed = opened(design, draw), opened(design, named)
    stepper: Any = session._stepper
    for step, row in enumerate(REWARDS):
        decision = session.assign(context=VECTORS[step])
        fails = 1 + (DIMENSION - 1) * (step % 2)
        before = stepper.state.tobytes(), stepper._sums.memory()
        with pytest.raises(OSError, match="no randomness"):
            session.record(decision.id, float(row[decision.arm]))
        assert (stepper.state.tobytes(), stepper._sums.memory()) == before
        fails = 0
        session.record(decision.id, float(row[decision.arm]))
    fed(undisturbed, REWARDS)
    assert session.log().frame.equals(undisturbed.log().frame)
    assert session.log().releases.equals(undisturbed.log().releases)  # type: ignore[union-attr]


def test_what_is_kept_goes_on_as_if_nothing_had_been() -> None:
    """Whole numbers of any size pass through a file."""
    design = LinPriv(epsilon=1.0)
    first, again = fed(opened(design, named), REWARDS[:120]), opened(design, named)
    memory = memory_of(first, again)
    assert memory is not None
    kept = unpacked(pack(memory))
    stepper: Any = again._stepper
    stepper.remember(kept)
    for step in range(120, ROUNDS):
        context = VECTORS[step].reshape(-1)
        arm, _ = stepper.choose(context, step)
        stepper.update(context, arm, float(REWARDS[step, arm]), 0, step + 1)
    fed(first, REWARDS)
    assert np.array_equal(first._stepper.released(), stepper.released())


def test_sums_beyond_the_bits_of_a_float_are_exact() -> None:
    sums = ProductSums("binary", 1.0, 1, 2, 1 << 40)
    memory = sums.memory()
    memory["sums"] = [[2**90 + 1, -(2**90) + 3]]
    sums.remember(memory)
    shown, _ = sums.learn(
        np.array([0.6, 0.8]), 0, 1.0, lambda name, scale: -(2**90) if name[-1] == "1" else 0
    )
    expected = 1 + math.trunc(0.6 * GRID_UNITS) * GRID_UNITS
    assert shown[0] == expected / PRODUCT_UNITS
    assert sums.memory()["sums"][0][1] == -(2**90) + 3 + math.trunc(0.8 * GRID_UNITS) * GRID_UNITS


def test_bands_of_a_log_with_exact_noise_are_those_of_the_choices() -> None:
    log = fed(opened(LinPriv(epsilon=1.0), taken([])), REWARDS).log()
    bands = prediction_bands(log)
    assert (np.argmax(bands.center + bands.width, axis=1) == log.arrays.action).all()
    assert np.array_equal(bands.contexts, on_grid(VECTORS))


@pytest.mark.parametrize(
    ("design", "words"),
    [
        (LinPriv(epsilon=1.0, delta=1e-6), "normal noise on sums of products"),
        (Mixture(LinPriv(epsilon=1.0, delta=1e-6, noise="gaussian")), "normal noise on sums of products"),
        (LinPriv(epsilon=1e-4), "larger epsilon"),
    ],
)
def test_laws_and_scales_without_whole_numbers_are_refused(design: Design, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        design.session(2, ROUNDS, dimension=2, noise="release")


def test_scales_of_the_simulation_are_those_of_a_session_in_four_dimensions() -> None:
    """What makes the comparison with a run one of equal numbers."""
    assert product_sensitivity(4) == 2 * PRODUCT_UNITS
    assert counter_scales("hybrid", 1.0, ROUNDS, 2.0) == (4.0, 4.0)
