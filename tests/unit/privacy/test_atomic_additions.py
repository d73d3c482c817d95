"""An addition or a question that fails, at whatever point, leaves everything as it was."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import adaptinf.privacy.counter as counters
from adaptinf.errors import ParameterError
from adaptinf.privacy.counter import Counter
from adaptinf.privacy.sparse_vector import SparseVector

ITEMS = np.random.default_rng(0).uniform(size=12)
MECHANISMS = ["hybrid", "binary", "logarithmic"]
BAD_ITEMS: list[Any] = [np.nan, np.inf, -0.1, 1.1, "1", None, [0.1, 0.2], object(), 1e300, np.array([[0.5]])]


def interrupted_at(line: int, call: Callable[[], Any]) -> bool:
    """Run a call that an interrupt stops before the given line of the package; whether it came so far."""
    left = line

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        if "adaptinf" not in frame.f_code.co_filename:
            return None
        if event == "line":
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def snapshot(counter: Counter) -> tuple[Any, ...]:
    """Everything that a counter holds, but the position of its generator."""
    nodes = [node.tolist() for node in counter._nodes]
    parts = counter._sum, counter._trunk, counter._latest
    return counter.count, counter.value, nodes, *(part.tolist() for part in parts)


def filled(mechanism: str, count: int) -> Counter:
    counter = Counter(epsilon=1.0, mechanism=mechanism, horizon=12, rng=1)
    for item in ITEMS[:count]:
        counter.add(item)
    return counter


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_bad_items_at_every_position_change_neither_sum_nor_noise(mechanism: str) -> None:
    plain, tried = (Counter(epsilon=1.0, mechanism=mechanism, horizon=12, rng=1) for _ in range(2))
    for item in ITEMS:
        for bad in BAD_ITEMS:
            before = snapshot(tried)
            with pytest.raises(ParameterError):
                tried.add(bad)
            assert snapshot(tried) == before
        assert tried.add(item) == plain.add(item)
    if mechanism == "binary":
        before = snapshot(tried)
        with pytest.raises(ParameterError, match="horizon of 12 items has been reached"):
            tried.add(0.5)
        assert snapshot(tried) == before


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("count", [0, 3, 7])
def test_an_interrupt_at_any_line_leaves_all_or_nothing(mechanism: str, count: int) -> None:
    line, stopped = 0, True
    while stopped:
        counter = filled(mechanism, count)
        before = snapshot(counter)
        stopped = interrupted_at(line, lambda counter=counter: counter.add(0.5))  # type: ignore[misc]
        assert snapshot(counter) == before or counter.count == count + 1
        if counter.count == count + 1:
            assert counter._sum.tolist() == [sum([*ITEMS[:count].tolist(), 0.5])]
            assert counter.value == counter._shown(counter._latest)
        line += 1
    assert line > 10
    assert counter.count == count + 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("point", ["_draw", "_measured", "_shown", "_next_noise"])
def test_errors_inside_leave_the_counter_as_it_was(
    mechanism: str, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for count in (0, 1, 3, 7):
        counter = filled(mechanism, count)
        before = snapshot(counter)

        def broken(*given: Any, **named: Any) -> Any:
            raise OverflowError("beyond the range")

        with monkeypatch.context() as patched:
            patched.setattr(Counter, point, broken)
            with pytest.raises(OverflowError):
                counter.add(0.5)
        assert snapshot(counter) == before


def test_noise_that_opendp_cannot_draw_leaves_a_release_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of exact noise, item after item: the third draw of every counter fails once."""
    monkeypatch.setattr(counters, "discrete_laplace", lambda scale, size: np.zeros(size, np.int64))
    counter = Counter(epsilon=1.0, dimension=2, sensitivity=2.0, backend="release")
    added = np.zeros(2)
    for item in ITEMS:
        before = snapshot_of_release(counter)
        with monkeypatch.context() as patched:
            patched.setattr(counters, "discrete_laplace", overflowing)
            with pytest.raises(OverflowError):
                counter.add([item, 1.0])
        assert snapshot_of_release(counter) == before
        added += [item, 1.0]
        np.testing.assert_allclose(counter.add([item, 1.0]), added, atol=1e-5)


def overflowing(scale: float, size: int) -> Any:
    raise OverflowError("of more than 64 bits")


def snapshot_of_release(counter: Counter) -> tuple[Any, ...]:
    return counter.count, counter._sum.tolist(), counter._trunk.tolist(), len(counter._nodes)


def test_questions_that_fail_do_not_count() -> None:
    questions = SparseVector(epsilon=1.0).start(rng=1)
    for value in (np.nan, "many", None, [1.0, 2.0], 1e300):
        with pytest.raises(ParameterError):
            questions.above(value, threshold=50.0)  # type: ignore[arg-type]
    assert (questions.asked, questions.stopped) == (0, False)
    plain = SparseVector(epsilon=1.0).start(rng=1)
    asked = [questions.above(2.0, threshold=50.0), questions.above(200.0, threshold=50.0)]
    assert asked == [plain.above(2.0, threshold=50.0), plain.above(200.0, threshold=50.0)]


def test_a_question_that_is_interrupted_is_asked_wholly_or_not_at_all() -> None:
    line, stopped = 0, True
    while stopped:
        questions = SparseVector(epsilon=1.0).start(rng=1)
        stopped = interrupted_at(line, lambda asked=questions: asked.above(200.0))  # type: ignore[misc]
        assert (questions.asked, questions.stopped) in ((0, False), (1, True))
        line += 1
    assert (questions.asked, questions.stopped) == (1, True)
    assert line > 5
