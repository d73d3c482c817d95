"""A session that is opened again from what was kept goes on as the one that never stopped, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

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
from adaptinf.sessions.session_memory import marks_of, memory_of, part_of, restore
from adaptinf.sessions.session_rounds import Marks
from adaptinf.trial.snapshot_bytes import pack, unpacked

ROUNDS, LONG = 240, 9_000
_DRAWS = np.random.default_rng(8)
FEATURES = _DRAWS.normal(size=(4, 2))
VECTORS = _DRAWS.random((ROUNDS, 2)) / 2.0
REWARDS = (_DRAWS.random((LONG, 4)) < [0.2, 0.4, 0.6, 0.8]).astype(float)
LABELS = ["young", "old"]
DESIGNS: list[tuple[Design, dict[str, Any], str]] = [
    *[
        (design, {}, "late")
        for design in (
            Uniform(),
            EpsilonGreedy(batch_size=30),
            Thompson(floor=0.1),
            Thompson(prior="normal", noise_scale=None, initial="dealt", initial_pulls=3),
            TopTwoThompson(),
            ExplorationSampling(),
            UCB(),
            KLUCB(),
            PlayTheWinner(),
            Mixture(UCB(), exploration=0.3, decay=0.2),
        )
    ],
    *[
        (design, {}, "")
        for design in (
            PrivateUCB(epsilon=1.0),
            SuccessiveElimination(),
            SequentialHalving(),
            DPBAI(epsilon=1.0, features=FEATURES),
            DPBAIGauss(epsilon=1.0, delta=1e-5, features=FEATURES),
            DPOD(epsilon=1.0, features=FEATURES),
            ODLinBAI(features=FEATURES),
            Mixture(DPBAI(epsilon=1.0, features=FEATURES), exploration=0.05),
        )
    ],
    *[
        (design, {"arms": 2, "horizon": LONG}, "")
        for design in (SuccessiveElimination(check="epochs"), PrivateSuccessiveElimination(epsilon=40.0))
    ],
    *[
        (design, {"arms": ["a", "b"], "features": LABELS}, "")
        for design in (
            ConSE(),
            DPConSE(epsilon=1.0),
            DPConSE(epsilon=1.0, calibration="published"),
            EpsilonGreedy(),
        )
    ],
    (LinUCB(), {"dimension": 2}, "late"),
    (LinPriv(epsilon=1.0), {"dimension": 2}, ""),
    (LinPriv(epsilon=1.0), {"dimension": 2, "window": 3}, "window"),
    (PrivateUCB(epsilon=1.0), {"window": 5}, "window"),
    *[(design, {"dimension": 2}, "") for design in (LDPBandit(epsilon=8.0), LDPLinear(epsilon=4.0), ABSE())],
]


def opened(design: Design, options: dict[str, Any]) -> Session:
    given = {"arms": 4, "horizon": ROUNDS, **options}
    return design.session(given.pop("arms"), given.pop("horizon"), rng=5, **given)


def walk(session: Session, steps: Sequence[int], options: dict[str, Any], late: str) -> list[Any]:
    """Decisions of some steps; outcomes at once, or two rounds late with every seventh lost."""
    codes = {arm: code for code, arm in enumerate(session.arms)}
    answers: list[Any] = []
    for step in steps:
        decision = session.assign(unit=f"unit {step}", context=_context(step, options), key=f"assign {step}")
        answers.append(decision)
        due = step - 2 if late else step
        if due >= 0:
            arm = codes[session.assign(f"unit {due}", _context(due, options)).arm]
            reward = None if late and due % 7 == 3 else REWARDS[due, arm].item()
            answers.append(session.record(due + 1, reward, key=due))
    return answers


def _context(step: int, options: dict[str, Any]) -> Any:
    return VECTORS[step] if "dimension" in options else LABELS[step % 2] if "features" in options else None


def kept(session: Session, fresh: Session, since: Marks) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a file would hold: packed, and read again."""
    memory = memory_of(session, fresh)
    assert memory is not None
    return unpacked(pack(part_of(session, since))), unpacked(pack(memory))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("design", "options", "late"),
    DESIGNS,
    ids=[f"{type(design).__name__}-{number}" for number, (design, _, _) in enumerate(DESIGNS)],
)
def test_a_session_that_was_kept_in_parts_goes_on_as_if_nothing_had_been(
    design: Design, options: dict[str, Any], late: str
) -> None:
    whole, stopped = opened(design, options), opened(design, options)
    rounds = options.get("horizon", ROUNDS)
    first, second = range(rounds // 3), range(rounds // 3, 2 * rounds // 3)
    walk(whole, [*first, *second], options, late)
    parts, since = [], Marks()
    for steps in (first, second):
        walk(stopped, steps, options, late)
        part, memory = kept(stopped, opened(design, options), since)
        parts.append(part)
        since = marks_of(stopped)
        stopped.log("drop")  # looking does no harm
    again = opened(design, options)
    restore(again, parts, memory)
    again._coins.bit_generator.state = stopped._coins.bit_generator.state
    assert again.pending == whole.pending
    assert marks_of(again) == marks_of(whole)
    assert pack(part_of(again, Marks())) == pack(part_of(whole, Marks()))
    rest = range(second.stop, rounds)
    assert walk(again, rest, options, late) == walk(whole, rest, options, late)
    mine, theirs = again.log("drop"), whole.log("drop")
    assert mine.frame.equals(theirs.frame)
    assert mine.units.tolist() == theirs.units.tolist()
    assert (mine.releases is None) == (theirs.releases is None)
    assert mine.releases is None or mine.releases.equals(theirs.releases)
    ends = [kept(session, opened(design, options), Marks()) for session in (again, whole)]
    assert pack(ends[0][0]) == pack(ends[1][0])
    assert pack(ends[0][1]) == pack(ends[1][1])


def test_requests_that_come_again_after_a_restart_have_their_answers() -> None:
    session, again = Thompson().session(2, 9, rng=1), Thompson().session(2, 9, rng=1)
    first = session.assign("one", key="k")
    outcome = session.record(first.id, 1.0, key=7)
    restore(again, *_all_of(session))
    assert again.assign("one", key="k") == again.assign("one", key="other") == first
    assert again.record(first.id, 1.0, key=7) == outcome
    with pytest.raises(ValueError, match=r"key 'k' already identifies another request .assign"):
        again.assign("two", key="k")
    with pytest.raises(ValueError, match=r"key 7 already identifies another request .record"):
        again.record(first.id, 0.0, key=7)
    with pytest.raises(ValueError, match="already has another outcome"):
        again.record(first.id, 0.0, key=8)


def _all_of(session: Session) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    part, memory = kept(session, Thompson().session(2, 9, rng=1), Marks())
    return [part], memory


def test_functions_of_a_user_are_not_kept() -> None:
    design = FunctionDesign(lambda state, context, rng: [0.5, 0.5])
    assert memory_of(design.session(2, 5, rng=1), design.session(2, 5, rng=1)) is None
