"""DPBAI with exact noise: sums of a phase in whole numbers, a node of each arm, choices from noisy means."""

from __future__ import annotations

import copy
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from adaptinf.audit.privacy.designs.audited_trial import public_replay
from adaptinf.designs import DPBAI, DPOD, Design, DPBAIGauss, Mixture, Session
from adaptinf.errors import ParameterError
from adaptinf.privacy.noise import Nodes, gaussian, laplace
from adaptinf.privacy.release import GRID_UNITS, discrete_laplace
from adaptinf.sessions import open_session
from adaptinf.simulation.environments import Tableau
from adaptinf.simulation.replicate import block_stream, seed_sequence
from adaptinf.simulation.run import CHOOSE, Step
from adaptinf.simulation.transcripts import Transcripts

ARMS, ROUNDS = 12, 240
RNG = np.random.default_rng(3)
FEATURES = RNG.normal(size=(ARMS, 3))
REWARDS = RNG.random((ROUNDS, ARMS))
COINS = (np.linspace(0.2, 0.8, ARMS) > REWARDS).astype(float)
COLLECTION = DPBAI(epsilon=2.0, features=FEATURES)
DESIGNS: list[Design] = [
    COLLECTION,
    DPBAI(epsilon=0.5, features=FEATURES, max_det=False),
    Mixture(COLLECTION, exploration=0.1),
]
every_design = pytest.mark.parametrize("design", DESIGNS, ids=["collection", "all", "mixed"])


def opened(design: Design, draw: Any, coins: np.random.Generator | None = None) -> Session:
    declared = ARMS, None, None, False, (0.0, 1.0)
    return open_session(design, declared, ROUNDS, None, None, coins, noise="release", draw=draw)


def fed(session: Session, rewards: np.ndarray) -> Session:
    for row in rewards.tolist():
        decision = session.assign()
        session.record(decision.id, row[decision.arm])
    return session


def taken(noted: dict[str, tuple[float, int]]) -> Any:
    """Exact noise, which is written down, once a name."""

    def draw(name: str, scale: float) -> int:
        assert name not in noted
        noted[name] = scale, int(discrete_laplace(scale, 1)[0])
        return noted[name][1]

    return draw


@every_design
def test_on_the_noise_of_a_run_a_session_is_that_run_bit_for_bit(design: Design) -> None:
    coins = block_stream(seed_sequence(5), 0)

    def draw(name: str, scale: float) -> float:
        for _ in range(4):  # as the simulation asks for it, before it is rounded up
            scale = math.nextafter(scale, 0.0)
        return laplace(coins, scale / GRID_UNITS) * GRID_UNITS

    log = fed(opened(design, draw, coins), COINS).log()
    run = design.run(Tableau(COINS, reward_range=(0.0, 1.0)), ROUNDS, rng=5)
    assert log.frame.equals(run.frame)
    assert log.releases is not None
    assert log.releases.equals(run.releases)
    assert (log.recommended, log.guarantee) == (run.recommended, run.guarantee)
    assert (log.noise, run.noise) == ("release", "simulation")


@every_design
def test_released_means_are_whole_sums_with_their_noise(design: Design) -> None:
    """Literally: a phase's clipped rewards in units, with one node for each arm, over its pulls."""
    noted: dict[str, tuple[float, int]] = {}
    session = fed(opened(design, taken(noted)), REWARDS)
    record, releases = session._rounds.record, session._stepper.released()
    explored, units = record.status == 0, np.rint(record.reward * GRID_UNITS).astype(np.int64)
    ends = sorted({int(end) for end in releases[:, 0]})
    assert len(ends) >= 2
    assert len(noted) == len(releases)
    for end, _, arm, shown, scale in releases.tolist():
        phase = ends.index(int(end))
        begin = ends[phase - 1] if phase else 0
        mine = [step for step in range(begin, int(end)) if explored[step] and record.action[step] == arm]
        asked, noise = noted[f"arm {int(arm)}, phase {phase + 1}"]
        assert shown == float(Fraction(int(units[mine].sum()) + noise, GRID_UNITS)) / len(mine)
        epsilon = design.guarantee(ROUNDS, ARMS).epsilon  # type: ignore[union-attr]
        assert GRID_UNITS / epsilon <= asked <= GRID_UNITS / epsilon * (1 + 2.0**-49)
        assert scale == 1.0 / epsilon / len(mine)


@every_design
def test_no_choice_reads_the_sums_of_its_phase(design: Design) -> None:
    """Whatever is written over them, each next choice is the same."""
    rng, session = np.random.default_rng(0), opened(design, taken({}), np.random.default_rng(1))
    stepper: Any = session._stepper
    rows = stepper.program.n_public
    for step, row in enumerate(REWARDS.tolist()):
        answers = []
        for spread in (0.0, 50.0):
            tables, state = copy.deepcopy(stepper.program.tables), stepper.state.copy()
            state[rows:] += rng.normal(scale=spread, size=state[rows:].shape)
            nodes = stepper._nodes._replace(coins=np.random.default_rng(step))
            asked = Step(CHOOSE, 0, 0.0, np.zeros(1), np.zeros(0))
            answers.append((stepper.program.step(tables, asked, nodes, state), state[:rows].tolist()))
        assert answers[0] == answers[1]
        decision = session.assign()
        session.record(decision.id, row[decision.arm])


@every_design
def test_a_draw_that_fails_changes_nothing(design: Design) -> None:
    """Retried, it is as if it had never failed: of the draws of a phase's end each fails once."""
    failed: set[str] = set()

    def noise(name: str, scale: float) -> int:
        return hash(name) % 13 * GRID_UNITS

    def draw(name: str, scale: float) -> int:
        if name not in failed:
            failed.add(name)
            raise OSError("no randomness")
        return noise(name, scale)

    session = opened(design, draw, np.random.default_rng(2))
    undisturbed = fed(opened(design, noise, np.random.default_rng(2)), REWARDS)
    for row in REWARDS.tolist():
        decision = session.assign()
        while True:
            before = session._stepper.state.tobytes()  # type: ignore[attr-defined]
            try:
                session.record(decision.id, row[decision.arm])
                break
            except OSError:
                assert session._stepper.state.tobytes() == before  # type: ignore[attr-defined]
    assert len(failed) >= 7
    assert session.log().frame.equals(undisturbed.log().frame)
    assert session.log().releases.equals(undisturbed.log().releases)  # type: ignore[union-attr]


def test_decisions_follow_from_the_released_means_to_the_last_bit() -> None:
    for design in DESIGNS[:2]:
        session = fed(opened(design, taken({})), REWARDS)
        record = session._rounds.record
        shown = Transcripts(
            record.action[None],
            session._stepper.released()[None],
            session._stepper.outcome()[None],
            record.status[None],
        )
        replay = public_replay(design, Tableau(REWARDS), ROUNDS)
        assert replay is not None
        for part in replay(shown):
            assert np.array_equal(part.seen, part.recomputed, equal_nan=True)


def test_a_session_goes_on_where_it_was_kept() -> None:
    """In the midst of a phase: sums, plan and the arms that are left are all there."""

    def draw(name: str, scale: float) -> int:
        return hash(name) % 13 * GRID_UNITS

    for middle in (5, 100, 200):
        first = opened(COLLECTION, draw)
        for row in REWARDS[:middle].tolist():
            decision = first.assign()
            first.record(decision.id, row[decision.arm])
        kept = first._stepper.memory(opened(COLLECTION, draw)._stepper)  # type: ignore[attr-defined]
        again = opened(COLLECTION, draw)
        again._stepper.remember(kept)  # type: ignore[attr-defined]
        assert again._stepper.state.tobytes() == first._stepper.state.tobytes()  # type: ignore[attr-defined]
        for row in REWARDS[middle:].tolist():
            arms = [one._stepper.choose(np.zeros(1), 0)[0] for one in (first, again)]
            assert arms[0] == arms[1]
            for one in (first, again):
                one._stepper.update(np.zeros(1), arms[0], row[arms[0]], one._stepper.status, 0)
        assert np.array_equal(first._stepper.released(), again._stepper.released())


@pytest.mark.parametrize(
    ("design", "words"),
    [
        (DPBAIGauss(epsilon=1.0, delta=1e-5, features=FEATURES), "its noise is normal"),
        (DPOD(epsilon=1.0, features=FEATURES), "rewards times features"),
        (DPBAI(epsilon=1e-5, features=FEATURES), "larger epsilon"),
    ],
    ids=["normal", "moments", "tiny"],
)
def test_others_say_why_they_have_none(design: Design, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        design.session(ARMS, ROUNDS, noise="release")


def test_a_node_is_never_normal() -> None:
    nothing = np.zeros(1, np.int64)
    nodes = Nodes(np.random.default_rng(0), np.ones(1), np.ones(1), np.zeros((1, 2), np.int64), nothing)
    assert math.isnan(gaussian(nodes, 1.0))
