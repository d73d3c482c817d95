"""Sessions with exact noise: kernels of the simulation, nodes drawn once, choices from what is released."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numba
import numpy as np
import pytest

from adaptinf import AdaptiveLog
from adaptinf.audit.privacy.designs.audited_trial import public_replay
from adaptinf.designs import (
    UCB,
    Design,
    DPConSE,
    LDPBandit,
    LinPriv,
    Mixture,
    PrivateSuccessiveElimination,
    PrivateUCB,
    Session,
)
from adaptinf.errors import ParameterError
from adaptinf.privacy.noise import laplace
from adaptinf.privacy.release import GRID_UNITS, discrete_laplace
from adaptinf.sessions import open_session
from adaptinf.sessions import steppers as releasing
from adaptinf.simulation.environments import Tableau
from adaptinf.simulation.replicate import block_stream, seed_sequence
from adaptinf.simulation.run import CHOOSE, Step
from adaptinf.simulation.transcripts import Transcripts

ROUNDS = 300
COINS = (np.random.default_rng(3).random((ROUNDS, 3)) < [0.3, 0.5, 0.7]).astype(float)
PARTS = np.random.default_rng(4).random((ROUNDS, 3))
INDEX = [
    PrivateUCB(epsilon=1.0),
    PrivateUCB(epsilon=0.3, counter="binary", noise_width="tail-bound"),
    PrivateUCB(epsilon=3.0, calibration="published", relaxation=False),
]
DESIGNS: list[Design] = [*INDEX, Mixture(PrivateUCB(epsilon=2.0), exploration=0.3, decay=0.1)]
LONG = 1_400
PAIRS = (np.random.default_rng(5).random((LONG, 2)) < [0.2, 0.8]).astype(float)
SHARES = np.random.default_rng(6).random((LONG, 2))
CODES = np.random.default_rng(8).integers(0, 2, LONG)
PHASES: list[tuple[Design, Any]] = [
    (PrivateSuccessiveElimination(epsilon=1.0, beta=1.0), None),
    (Mixture(PrivateSuccessiveElimination(epsilon=1.0, beta=1.0), exploration=0.1), None),
    (DPConSE(epsilon=1.0), CODES),
    (DPConSE(epsilon=0.5, contrast_share=1.0), None),
    (Mixture(DPConSE(epsilon=1.0), exploration=0.2), CODES),
]
"""Designs in phases, and the contexts that they have."""


def test_units_are_four_roundings_above_the_scale_of_the_kernels() -> None:
    units = 3.0 * GRID_UNITS
    assert releasing.unit_scale(3.0) == units + 4.0 * math.ulp(units)


def kind(design: Design) -> str:
    return str(design)[:60]


def opened(
    design: Design,
    draw: Callable[[str, float], float],
    coins: np.random.Generator | None = None,
    window: int | None = None,
    horizon: int = ROUNDS,
    arms: Any = 3,
    features: int | None = None,
) -> Session:
    declared = arms, features, None, False, (0.0, 1.0)
    return open_session(design, declared, horizon, window, None, coins, noise="release", draw=draw)


def fed(session: Session, rewards: np.ndarray, codes: Any = None) -> Session:
    for step, row in enumerate(rewards.tolist()):
        decision = session.assign(context=None if codes is None else int(codes[step]))
        session.record(decision.id, row[decision.arm])
    return session


def taken(noted: list[tuple[str, float, int]]) -> Callable[[str, float], int]:
    """Exact noise, which is written down."""

    def draw(name: str, scale: float) -> int:
        noted.append((name, scale, int(discrete_laplace(scale, 1)[0])))
        return noted[-1][2]

    return draw


def transcript(log: AdaptiveLog, session: Session) -> Transcripts:
    return Transcripts(
        log.arrays.action[None],
        session._stepper.released()[None],
        np.zeros((1, 0)),
        np.zeros((1, log.n_rounds), dtype=np.int64),
    )


@pytest.mark.parametrize(
    ("design", "rewards", "codes"),
    [*((design, COINS, None) for design in DESIGNS), *((design, PAIRS, codes) for design, codes in PHASES)],
    ids=lambda given: kind(given) if isinstance(given, Design) else "",
)
def test_on_the_noise_of_a_run_a_session_is_that_run_bit_for_bit(
    design: Design, rewards: np.ndarray, codes: Any
) -> None:
    coins = block_stream(seed_sequence(5), 0)

    def draw(name: str, scale: float) -> float:
        for _ in range(4):  # as the simulation asks for it, before it is rounded up
            scale = math.nextafter(scale, 0.0)
        return laplace(coins, scale / GRID_UNITS) * GRID_UNITS

    horizon, n_arms = rewards.shape
    session = opened(design, draw, coins, None, horizon, n_arms, None if codes is None else 2)
    log = fed(session, rewards, codes).log()
    table = Tableau(rewards, contexts=codes, reward_range=(0.0, 1.0))
    run = design.run(table, horizon, rng=5)
    assert log.frame.equals(run.frame)
    assert log.releases is not None
    assert log.releases.equals(run.releases)
    assert (log.noise, run.noise) == ("release", "simulation")
    assert log.guarantee == run.guarantee


@pytest.mark.parametrize("design", INDEX, ids=kind)
def test_released_sums_are_the_sums_and_nodes_added_up_in_whole_numbers(design: PrivateUCB) -> None:
    """Literally: units in Python integers, each node a dyadic block of an arm's pulls, drawn once by name."""
    noted: list[tuple[str, float, int]] = []
    session = fed(opened(design, taken(noted)), PARTS)
    log, nodes = session.log(), {name: noise for name, _, noise in noted}
    assert len(nodes) == len(noted) == ROUNDS
    sums, counts = [0] * 3, [0] * 3
    assert log.releases is not None
    for action, reward, shown in zip(
        log.arrays.action.tolist(), log.arrays.reward.tolist(), log.releases["value"].tolist(), strict=True
    ):
        counts[action] += 1
        sums[action] += round(reward * GRID_UNITS)
        noise = sum(nodes[f"arm {action}, count {end}"] for end in blocks(design.counter, counts[action]))
        assert Fraction(shown) * GRID_UNITS == sums[action] + noise


def blocks(counter: str, count: int) -> list[int]:
    """Where the nodes end that make up a count: powers of two and blocks between them, or blocks alone."""
    top = 1 << (count.bit_length() - 1)
    ends = [1 << k for k in range(count.bit_length())] if counter == "hybrid" else [top]
    at = top
    for bit in reversed(range(top.bit_length() - 1)):
        if count & (1 << bit):
            at += 1 << bit
            ends.append(at)
    return ends


@pytest.mark.parametrize("design", INDEX, ids=kind)
def test_scales_in_units_are_the_promised_ones_and_never_below(design: PrivateUCB) -> None:
    noted: list[tuple[str, float, int]] = []
    fed(opened(design, taken(noted)), COINS)
    epsilon = Fraction(design.guarantee(ROUNDS, 3).epsilon)
    for name, scale, _ in noted:
        count = int(name.rpartition(" ")[2])
        level = count.bit_length() - 1
        times = (
            ROUNDS.bit_length() if design.counter == "binary" else 2 * (level if count != 1 << level else 1)
        )
        exact = times * GRID_UNITS / epsilon
        assert exact <= Fraction(scale) <= exact * (1 + Fraction(1, 2**49))


@pytest.mark.parametrize("design", DESIGNS, ids=kind)
def test_no_choice_reads_what_is_not_released(design: Design) -> None:
    """Whatever is written over the private rows, each next choice is the same."""
    rng, session = np.random.default_rng(0), opened(design, lambda name, scale: round(scale))
    stepper: Any = session._stepper
    rows = stepper.program.n_public
    for row in PARTS:
        others = stepper.state.copy()
        others[rows:] += rng.normal(scale=50.0, size=others[rows:].shape)
        answers = []
        for state in (stepper.state.copy(), others):
            step = Step(CHOOSE, 0, 0.0, np.zeros(1), np.zeros(0))
            answers.append((stepper.program.step(stepper.program.tables, step, stepper._nodes, state), state))
        assert answers[0][0] == answers[1][0]
        assert np.array_equal(answers[0][1][:rows], answers[1][1][:rows])
        decision = session.assign()
        session.record(decision.id, float(row[decision.arm]))


@pytest.mark.slow
@pytest.mark.parametrize(("design", "codes"), PHASES, ids=lambda given: str(given)[:40])
def test_no_choice_of_a_phase_reads_its_running_sums(design: Design, codes: Any) -> None:
    """Written over, these change nothing until they are released; names are asked for once."""
    noted: list[tuple[str, float, int]] = []
    rng, features = np.random.default_rng(0), None if codes is None else 2
    session = opened(design, taken(noted), np.random.default_rng(1), None, LONG, 2, features)
    stepper: Any = session._stepper
    rows, tables = stepper.program.n_public, stepper.program.tables
    for step, row in enumerate(SHARES.tolist()):
        code = 0 if codes is None else int(codes[step])
        state, arms = stepper.state.copy(), []
        for add in (0.0, 30.0):
            seen = state.copy()
            seen[rows:] += rng.normal(scale=add, size=seen[rows:].shape)
            nodes = stepper._nodes._replace(coins=np.random.default_rng(step))
            asked = Step(CHOOSE, 0, 0.0, np.array([float(code)]), np.zeros(0))
            arms.append((stepper.program.step(tables, asked, nodes, seen), seen[:rows].tolist()))
        assert arms[0] == arms[1]
        decision = session.assign(context=None if codes is None else code)
        session.record(decision.id, row[decision.arm])
    assert len({name for name, _, _ in noted}) == len(noted) >= 2


@pytest.mark.slow
def test_released_means_are_whole_sums_with_their_noise() -> None:
    """Literally: an epoch pulls both arms in turn; its sums in units, with one node each, over its passes."""
    noted: list[tuple[str, float, int]] = []
    design = PrivateSuccessiveElimination(epsilon=1.0, beta=1.0)
    log = fed(opened(design, taken(noted), horizon=LONG, arms=2), SHARES).log()
    assert log.releases is not None
    end = int(log.releases["round"].iloc[0])
    units = np.rint(log.arrays.reward[:end] * GRID_UNITS).astype(np.int64)
    for arm, shown in enumerate(log.releases["value"].tolist()[:2]):
        pulled = log.arrays.action[:end] == arm
        (noise,) = (noise for name, _, noise in noted if name == f"arm {arm}, epoch 1")
        total = Fraction(int(units[pulled].sum()) + noise, GRID_UNITS)
        assert shown == float(total) / int(pulled.sum())
    assert all(GRID_UNITS <= scale <= GRID_UNITS * (1 + 2.0**-49) for _, scale, _ in noted)


def test_released_contrasts_and_arrivals_are_whole_numbers_with_their_noise() -> None:
    """Literally: D = sum (2a - 1)(r - 1/2) over randomised rounds of a window, N its arrivals, by context."""
    noted: list[tuple[str, float, int]] = []
    log = fed(opened(DPConSE(epsilon=1.0), taken(noted), None, None, LONG, 2, 2), SHARES, CODES).log()
    assert log.releases is not None
    arrays, noises = log.arrays, {name: noise for name, _, noise in noted}
    ends = sorted(set(log.releases["round"].tolist()))
    for name, group, end, shown in log.releases[["name", "group", "round", "value"]].values.tolist():
        window = ends.index(end)
        begin = LONG // 2 if end == LONG else ([0, *ends])[window]
        rows = np.arange(begin, end)[CODES[begin:end] == group]
        chosen = rows[arrays.randomised[rows]] if name == "contrast_sum" or end == LONG else rows  # type: ignore[index]
        if name == "arrivals":
            exact = len(chosen) * GRID_UNITS + noises[f"sum {2 * group + 1}, window {window + 1}"]
        else:
            units = np.rint(arrays.reward[chosen] * GRID_UNITS).astype(np.int64) - GRID_UNITS // 2
            exact = int(((2 * arrays.action[chosen] - 1) * units).sum())
            exact += noises[f"sum {2 * group}, window {window + 1}"]
        assert Fraction(shown) * GRID_UNITS == exact


@pytest.mark.parametrize("design", INDEX, ids=kind)
def test_decisions_follow_from_the_released_numbers_to_the_last_bit(design: PrivateUCB) -> None:
    session = fed(opened(design, taken([])), PARTS)
    replay = public_replay(design, Tableau(PARTS), ROUNDS)
    assert replay is not None
    for part in replay(transcript(session.log(), session)):
        assert np.array_equal(part.seen, part.recomputed)


def test_machine_code_takes_all_rooms_and_contexts_for_what_they_are() -> None:
    """A stepper asks for it once: nodes have one type whatever their number, contexts one layout."""
    rooms = [releasing._room(np.random.default_rng(size), size) for size in (1, 16, 32)]
    assert len({numba.typeof(room) for room in rooms}) == 1
    stepper = opened(INDEX[0], taken([]))._stepper
    assert isinstance(stepper, releasing.ReleaseStepper)
    for given in (np.arange(6.0)[::-2], np.array([5, 3, 1]), np.array([5.0, 3.0, 1.0])):
        context = stepper._step(CHOOSE, given, 0, 0.0).context
        assert context.flags.c_contiguous
        assert np.frombuffer(context.tobytes(), np.float64).tolist() == [5.0, 3.0, 1.0]


def test_a_draw_that_fails_changes_nothing() -> None:
    """Retried, it is as if it had never failed; noise comes first and the state changes after."""
    design, fails = PrivateUCB(epsilon=1.0), False

    def noise(name: str, scale: float) -> int:
        return hash(name) % 7 * GRID_UNITS

    def draw(name: str, scale: float) -> int:
        if fails:
            raise OSError("no randomness")
        return noise(name, scale)

    session, undisturbed = opened(design, draw), opened(design, noise)
    for row in COINS:
        decision = session.assign()
        fails = True
        before = session._stepper.state.tobytes()  # type: ignore[attr-defined]
        with pytest.raises(OSError, match="no randomness"):
            session.record(decision.id, float(row[decision.arm]))
        assert session._stepper.state.tobytes() == before  # type: ignore[attr-defined]
        fails = False
        session.record(decision.id, float(row[decision.arm]))
    fed(undisturbed, COINS)
    assert session.log().frame.equals(undisturbed.log().frame)
    assert session.log().releases.equals(undisturbed.log().releases)  # type: ignore[union-attr]


@pytest.mark.parametrize("design", [DESIGNS[0], DESIGNS[-1]], ids=kind)
def test_released_numbers_do_not_depend_on_when_a_report_came(design: Design) -> None:
    """At once, at the last moment, or in any order within the window; late ones are as good as missing."""
    window = 5
    noise = {
        f"arm {arm}, count {count}": arm + 31 * count % 17 for arm in range(3) for count in range(ROUNDS + 1)
    }
    kinds = {"at once": 0, "at the last moment": window, "in between": -1}
    logs = []
    for delay in kinds.values():
        session = opened(
            design, lambda name, scale: noise[name] * GRID_UNITS, np.random.default_rng(1), window
        )
        delays = np.random.default_rng(2).integers(0, window + 1, ROUNDS) if delay < 0 else [delay] * ROUNDS
        waiting: dict[int, list[tuple[int, float]]] = {}
        for step, row in enumerate(PARTS):
            decision = session.assign()
            waiting.setdefault(step + int(delays[step]), []).append((decision.id, float(row[decision.arm])))
            if decision.id % 10 == 0:  # lost, and told long after, or never
                waiting[step + int(delays[step])].pop()
                if decision.id % 20 == 0:
                    waiting.setdefault(step + 40, []).append((decision.id, 1.0))
            for told in reversed(waiting.pop(step, [])):
                session.record(*told)
        logs.append(session.log(missing="drop"))
    for log in logs:
        assert np.array_equal(log.arrays.action, logs[0].arrays.action)
        assert log.releases is not None
        assert log.releases.equals(logs[0].releases)
        assert len(log.releases) == ROUNDS - window - 1  # a missing outcome counts


def test_a_missing_outcome_adds_nothing_and_the_count_rises() -> None:
    session = opened(PrivateUCB(epsilon=1.0), lambda name, scale: 0, window=0, horizon=10, arms=1)
    for told in (1.0, None, 0.5, None):
        decision = session.assign()
        if told is not None:
            session.record(decision.id, told)
    session.assign()
    session.record(2, 1.0)
    session.amend(1, 0.0)
    session.assign()
    assert session._stepper.released()[:, 3].tolist() == [1.0, 1.0, 1.5, 1.5, 1.5]
    told = session.log(missing="drop").frame["reward"].tolist()
    assert told[:3] == [0.0, 1.0, 0.5]


@pytest.mark.parametrize(
    ("design", "more", "words"),
    [
        (UCB(), {}, "no privacy guarantee"),
        (Mixture(UCB()), {}, "no privacy guarantee"),
        (LinPriv(epsilon=1.0, delta=1e-6), {"dimension": 2}, "no exact integer version"),
        (LDPBandit(epsilon=1.0), {"dimension": 2}, "added by the participant"),
        (PrivateUCB(epsilon=1e-5), {}, "larger epsilon"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_designs_without_exact_noise_say_why(design: Design, more: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        design.session(3, ROUNDS, noise="release", **more)


def test_a_design_that_promises_nothing_as_published_has_no_exact_noise() -> None:
    with pytest.raises(ParameterError, match="the published version has no guarantee"):
        DPConSE(epsilon=1.0, calibration="published").session(2, 200, features=2, noise="release")


def test_where_noise_comes_from_is_one_of_two() -> None:
    with pytest.raises(ParameterError, match="noise must be"):
        PrivateUCB(epsilon=1.0).session(3, ROUNDS, noise="exact")
