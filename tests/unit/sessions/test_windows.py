"""Designs in epochs and calendar windows with pending outcomes: their rules, what one participant moves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptinf import AdaptiveLog
from adaptinf.designs import Design, DPConSE, Mixture, PrivateSuccessiveElimination, PrivateUCB, Session
from adaptinf.errors import ParameterError
from adaptinf.privacy.release import GRID_UNITS
from adaptinf.sessions import open_session
from adaptinf.simulation.environments import Tableau

LONG, SHORT, HORIZON = 6_600, 1_000, 400
ELIMINATION = PrivateSuccessiveElimination(epsilon=4.0, beta=1.0)
EPOCHS = (np.random.default_rng(5).random((LONG, 3)) < [0.1, 0.85, 0.9]).astype(float)
TWO = (np.random.default_rng(4).random((SHORT, 2)) < [0.2, 0.8]).astype(float)
PAIRS = (np.random.default_rng(6).random((HORIZON, 2)) < [0.2, 0.8]).astype(float)
CODES = np.random.default_rng(8).integers(0, 2, HORIZON)
CONTEXTUAL = DPConSE(epsilon=1.0, first_window=32)
STATES = [np.random.PCG64(step).state for step in range(LONG)]
WINDOWED: list[tuple[Design, np.ndarray, Any]] = [
    (ELIMINATION, TWO, None),
    (Mixture(ELIMINATION, exploration=0.1), TWO, None),
    (CONTEXTUAL, PAIRS, CODES),
    (DPConSE(epsilon=1.0, contrast_share=1.0), PAIRS, None),
    (Mixture(CONTEXTUAL, exploration=0.2), PAIRS, CODES),
]
Draw = Callable[[str, float], float]


def still(name: str, scale: float) -> float:
    return 0.0


def opened(design: Design, rewards: np.ndarray, codes: Any, window: int, draw: Draw = still) -> Session:
    features = None if codes is None else 2
    declared = rewards.shape[1], features, None, False, (0.0, 1.0)
    coins = np.random.Generator(np.random.PCG64(0))
    return open_session(design, declared, len(rewards), window, None, coins, "release", draw)


def lived(
    session: Session,
    rewards: np.ndarray,
    codes: Any,
    delays: Any = 0,
    missing: frozenset[int] = frozenset(),
) -> AdaptiveLog:
    """The log when all have come, each with coins of the round, and the last windows have been ended."""
    waiting: dict[int, list[tuple[int, float]]] = {}
    when = np.broadcast_to(delays, len(rewards))
    for step, row in enumerate(rewards.tolist()):
        session._coins.bit_generator.state = STATES[step]
        decision = session.assign(context=None if codes is None else int(codes[step]))
        if step not in missing:
            waiting.setdefault(step + int(when[step]), []).append((decision.id, row[decision.arm]))
        for told in reversed(waiting.pop(step, [])):
            session.record(*told)
    for last in waiting.values():
        for told in last:
            session.record(*told)
    session.finish()
    return session.log(missing="drop" if missing else None)


@pytest.mark.parametrize(
    ("design", "rewards", "codes"),
    [(PrivateUCB(epsilon=1.0), PAIRS[:200], None), *WINDOWED],
    ids=lambda given: str(given)[:40] if isinstance(given, Design) else "",
)
def test_a_window_of_no_rounds_is_the_run_bit_for_bit(
    design: Design, rewards: np.ndarray, codes: Any
) -> None:
    options = {} if codes is None else {"features": 2}
    session = design.session(rewards.shape[1], len(rewards), window=0, rng=6, **options)
    for step, row in enumerate(rewards.tolist()):
        decision = session.assign(context=None if codes is None else int(codes[step]))
        session.record(decision.id, row[decision.arm])
    session.finish()
    run = design.run(Tableau(rewards, contexts=codes, reward_range=(0.0, 1.0)), len(rewards), rng=6)
    log = session.log()
    assert log.frame.equals(run.frame)
    assert log.releases is not None
    assert len(log.releases)
    assert log.releases.equals(run.releases)


def slow_elimination(window: int, overridden: np.ndarray) -> tuple[list[int], list[tuple[int, int, float]]]:
    """Literally: proposals by round, and releases (rounds begun, arm, mean); there is no noise."""
    left, epoch, turn, fresh = [0, 1, 2], 1, 0, 0
    proposals: list[int] = []
    releases: list[tuple[int, int, float]] = []
    seen: list[int] = []

    def learn(due: int, begun: int) -> None:
        nonlocal left, epoch, turn, fresh, seen
        if len(left) == 1 or due < fresh or overridden[due]:
            return
        seen.append(due)
        wide, noise = math.log(8 * len(left) * epoch**2), math.log(4 * len(left) * epoch**2)
        real = max(32.0 * wide * 4.0**epoch, 8.0 * noise * 2.0**epoch / 4.0) + 1.0
        if len(seen) < math.ceil(real) * len(left):
            return
        means = {}
        for arm in left:
            pulled = [step for step in seen if proposals[step] == arm]
            assert len(pulled) == math.ceil(real)
            means[arm] = EPOCHS[pulled, arm].mean()
            releases.append((begun, arm, means[arm]))
        gap = 2.0 * math.sqrt(wide / (2.0 * real)) + 2.0 * noise / (real * 4.0)
        left = [arm for arm in left if max(means.values()) - means[arm] <= gap]
        epoch, turn, fresh, seen = epoch + 1, 0, begun, []

    for step in range(LONG):
        if step > window:
            learn(step - 1 - window, step)
        proposals.append(left[turn % len(left)])
        turn += 0 if overridden[step] else 1
    for due in range(LONG - 1 - window, LONG):
        learn(due, LONG)
    return proposals, releases


@pytest.mark.parametrize(
    ("design", "window"), [(WINDOWED[0][0], 7), (WINDOWED[1][0], 100)], ids=["alone", "mixed"]
)
def test_elimination_takes_turns_while_outcomes_are_pending(design: Design, window: int) -> None:
    session = opened(design, EPOCHS, None, window)
    log = lived(session, EPOCHS, None)
    overridden = session._rounds.record.status[:LONG] == 1
    assert overridden.any() == isinstance(design, Mixture)
    proposals, releases = slow_elimination(window, overridden)
    kept = ~overridden
    np.testing.assert_array_equal(log.arrays.action[kept], np.array(proposals)[kept])
    assert log.releases is not None
    assert {arm for _, arm, _ in releases} == {0, 1, 2}
    assert len(releases) == 5  # three arms in an epoch, then two
    found = log.releases[["round", "group", "value"]].to_numpy()
    np.testing.assert_allclose(found, np.array(releases), rtol=1e-12)


@pytest.mark.parametrize("window", [7, 60])
@pytest.mark.parametrize(("design", "rewards", "codes"), [WINDOWED[2], WINDOWED[4]], ids=["alone", "mixed"])
def test_sums_of_the_calendar_are_of_the_rounds_of_their_window(
    design: Design, rewards: np.ndarray, codes: Any, window: int
) -> None:
    """Literally: D and N of windows that end after 32, 96 and 200 rounds, and of the trial after."""
    session = opened(design, rewards, codes, window)
    log = lived(session, rewards, codes)
    status = session._rounds.record.status[:HORIZON]
    half = HORIZON // 2
    assert np.isin(status[: half + window], [0, 1, 4]).all()
    assert np.isin(status[half + window :], [2, 3, 4]).all()
    assert log.releases is not None
    begins, ends = [0, 32, 96, half], [32, 96, half, HORIZON]
    assert sorted(set(log.releases["round"])) == [*(end + window for end in ends[:-1]), HORIZON]
    signs = (2 * log.arrays.action - 1) * (log.arrays.reward - 0.5)
    for begin, end in zip(begins, ends, strict=True):
        coin, last = (2, True) if begin == half else (0, False)
        rows = np.arange(begin, end)
        shown = log.releases[log.releases["round"] == min(end + window, HORIZON)]
        for name, group, value in shown[["name", "group", "value"]].values.tolist():
            mine = rows[CODES[rows] == group]
            chosen = mine[status[mine] == coin] if last or name == "contrast_sum" else mine
            assert value == (signs[chosen].sum() if name == "contrast_sum" else len(chosen))


def hashed(name: str, scale: float) -> float:
    """Noise that follows from its name, of about its scale."""
    return float(round(scale * np.random.default_rng(list(name.encode())).laplace()))


@pytest.mark.parametrize(("design", "rewards", "codes"), WINDOWED, ids=lambda given: str(given)[:40])
def test_nothing_that_is_shown_depends_on_when_a_report_came(
    design: Design, rewards: np.ndarray, codes: Any
) -> None:
    """At once, as late as can be, by its value, or too late, which is as good as never."""
    window, rng = 9, np.random.default_rng(2)
    missing = frozenset(range(5, len(rewards), 17))
    too_late = np.where(np.isin(np.arange(len(rewards)), list(missing)), 30, 0)
    logs = []
    for delays, never in (
        (rng.integers(0, window + 1, len(rewards)), missing),
        (np.where(rewards[:, 0] > 0.5, 0, window), missing),
        (np.where(np.arange(len(rewards)) < len(rewards) - 30, too_late, 0), frozenset(range(10**5))),
    ):
        gone = never if len(never) < 10**5 else frozenset(one for one in missing if one >= len(rewards) - 30)
        logs.append(lived(opened(design, rewards, codes, window, hashed), rewards, codes, delays, gone))
    for log in logs[1:]:
        np.testing.assert_array_equal(log.arrays.action, logs[0].arrays.action)
        assert log.releases is not None
        assert len(log.releases)
        pd.testing.assert_frame_equal(log.releases, logs[0].releases, check_exact=True)


def spent(design: Design, sides: list[dict[str, Any]], window: int, private: frozenset[int]) -> float:
    """Sum over nodes of the shift of noise, in scales, by which the second side shows what the first one did.

    All actions but those of the `private` rounds have to be the same then, and all releases.
    """
    scales: dict[str, float] = {}
    shifts: dict[str, float] = {}

    def draw(name: str, scale: float) -> float:
        scales[name] = scale
        return hashed(name, scale) + moved.get(name, 0.0)

    logs: list[AdaptiveLog] = []
    moved: dict[str, float] = {}
    names: list[str] = []

    def noted(name: str, scale: float) -> float:
        names.append(name)
        return draw(name, scale)

    def show(side: dict[str, Any]) -> AdaptiveLog:
        names.clear()
        return lived(opened(design, side["rewards"], side["codes"], window, noted), **side)

    logs.append(show(sides[0]))
    assert logs[0].releases is not None
    order = list(names)
    wanted, weights = logs[0].releases["value"].to_numpy(), logs[0].releases["scale"].to_numpy()
    moved = shifts
    for _ in range(10):
        log = show(sides[1])
        assert log.releases is not None
        found = log.releases["value"].to_numpy()
        wrong = np.flatnonzero(found != wanted[: len(found)])
        if not wrong.size and len(found) == len(wanted):
            break
        place = int(wrong[0])
        assert names[: place + 1] == order[: place + 1]
        whole = (wanted[place] - found[place]) * scales[order[place]] / (weights[place] * GRID_UNITS)
        shifts[order[place]] = shifts.get(order[place], 0.0) + float(round(whole * GRID_UNITS))
    else:
        raise AssertionError("no noise leads to the same releases")
    others = [step for step in range(len(sides[0]["rewards"])) if step not in private]
    np.testing.assert_array_equal(log.arrays.action[others], logs[0].arrays.action[others])
    return sum(abs(shift) / scales[name] for name, shift in shifts.items())


@pytest.mark.parametrize(
    ("place", "step", "moves"),
    [(0, 0, True), (0, 714, False), (1, 1, True)],
    ids=["alone", "alone, between epochs", "mixed"],
)
def test_an_outcome_and_its_delay_move_one_mean_by_no_more_than_promised(
    place: int, step: int, moves: bool
) -> None:
    design, rewards, codes = WINDOWED[place]
    sides = []
    for value, gone in ((1.0, frozenset()), (0.0, frozenset()), (1.0, frozenset([step]))):
        changed = rewards.copy()
        changed[step] = value
        sides.append({"rewards": changed, "codes": codes, "delays": 0, "missing": gone})
    costs = [spent(design, [sides[0], other], 5, frozenset()) for other in sides[1:]]
    assert costs[0] == costs[1]  # missing is as good as 0
    assert costs[0] == pytest.approx(4.0 if moves else 0.0, abs=1e-9)
    assert costs[0] <= 4.0


@pytest.mark.slow
@pytest.mark.parametrize(("place", "step"), [(2, 0), (2, 98), (2, 203), (2, HORIZON - 1), (4, 98)])
def test_a_record_and_its_delay_move_sums_by_no_more_than_promised(place: int, step: int) -> None:
    design, rewards, codes = WINDOWED[place]
    first = rewards.copy()
    first[step] = 1.0
    other, swapped = first.copy(), codes.copy()
    other[step], swapped[step] = 0.0, 1 - codes[step]
    base: dict[str, Any] = {"rewards": first, "codes": codes, "delays": 0, "missing": frozenset()}
    late = {**base, "missing": frozenset([step])}
    costs = [
        spent(design, [base, side], 5, frozenset([step]))
        for side in ({**base, "rewards": other}, late, {**base, "rewards": other, "codes": swapped})
    ]
    assert costs[0] <= 0.6
    assert costs[1] == costs[0]  # missing is as good as 0
    assert costs[2] <= 1.0
    if step == 98:  # a coin was tossed, in a window whose sums are released
        assert costs[0] == pytest.approx(0.6)
        assert costs[2] == pytest.approx(1.0)
    elif step == 203:  # begun before half-time's numbers were out: in no sum
        assert costs == [0.0, 0.0, 0.0]


def test_rounds_that_no_outcome_can_decide_any_more_are_told() -> None:
    session = opened(ELIMINATION, TWO, None, 3)
    session.assign()
    with pytest.raises(ParameterError, match="999 more participants can still enrol, so windows"):
        session.finish()
    with pytest.raises(ParameterError, match="has no window"):
        PrivateUCB(epsilon=1.0).session(2, 10).finish()
    with pytest.raises(ParameterError, match="window must be at most 199 at a horizon of 400, got 200"):
        opened(CONTEXTUAL, PAIRS, CODES, 200)
    small = PrivateUCB(epsilon=1.0).session(1, 2, window=4, rng=1)
    for number in (1, 2):
        small.assign()
        small.record(number, 1.0) if number == 1 else None
    small.finish()
    small.finish()
    with pytest.raises(ParameterError, match="the session is finished"):
        small.record(2, 1.0)
    assert small.log(missing="drop").releases["round"].tolist() == [2, 2]  # type: ignore[index]


def test_a_draw_that_fails_while_outcomes_are_pending_leaves_the_turn_where_it_was() -> None:
    fails = False

    def draw(name: str, scale: float) -> float:
        if fails:
            raise OSError("no randomness")
        return hashed(name, scale)

    disturbed, calm = (opened(ELIMINATION, TWO, None, 4, one) for one in (draw, hashed))
    failures = 0
    for row in TWO.tolist():
        fails = True
        try:
            decision = disturbed.assign()
        except OSError:
            failures += 1
            fails = False
            decision = disturbed.assign()
        assert decision == calm.assign()
        for session in (disturbed, calm):
            session.record(decision.id, row[decision.arm])
    assert failures == 1
    assert disturbed.log().releases.equals(calm.log().releases)  # type: ignore[union-attr]
