from __future__ import annotations

import functools
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from adaptinf.audit.simulation.study_folder import fingerprint
from adaptinf.designs import UCB, PrivateUCB
from adaptinf.simulation.environments import BernoulliArms, FiniteContext, NormalArms, Replay

FACTOR = 2.0


def helper(x):
    return x * FACTOR


def outer(x):
    return helper(x) + 1


@dataclass(frozen=True)
class Settings:
    level: float


def same(value):
    return fingerprint(value()) == fingerprint(value())


def test_equal_things_have_equal_fingerprints():
    data = pd.DataFrame({"arm": ["a", "b"], "y": [1.0, 0.0]})
    for make in (
        lambda: BernoulliArms([0.3, 0.6]),
        lambda: FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]]),
        lambda: Replay(data, action="arm", reward="y"),
        lambda: PrivateUCB(epsilon=1.0),
        lambda: lambda log: log + 1,
        lambda: {"a": [1, 2.0, None, {3, 4}], "b": np.arange(3)},
        lambda: Settings(0.1),
        lambda: functools.partial(outer, 3),
        lambda: data,
    ):
        assert same(make)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (BernoulliArms([0.3, 0.6]), BernoulliArms([0.3, 0.7])),
        (NormalArms([0.0, 1.0]), NormalArms([0.0, 1.0], scale=2.0)),
        (PrivateUCB(epsilon=1.0), PrivateUCB(epsilon=2.0)),
        (PrivateUCB(epsilon=1.0), UCB()),
        (lambda x: x + 1, lambda x: x + 2),
        (lambda x: x.a(), lambda x: x.b()),
        (lambda x, y=1: x, lambda x, y=2: x),
        (functools.partial(outer, 3), functools.partial(outer, 4)),
        (Settings(0.1), Settings(0.2)),
        (np.arange(3), np.arange(3.0)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        ([1, [2]], [[1], 2]),
        (1, 1.0),
        ("a", b"a"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (pd.DataFrame({"x": [1]}), pd.DataFrame({"y": [1]})),
        (np.random.SeedSequence(1), np.random.SeedSequence(2)),
    ],
)
def test_different_things_have_different_fingerprints(one, other):
    assert fingerprint(one) != fingerprint(other)


def test_a_function_counts_with_what_it_closes_over_and_calls(monkeypatch):
    def closed(value):
        return lambda x: x + value

    assert fingerprint(closed(1)) == fingerprint(closed(1))
    assert fingerprint(closed(1)) != fingerprint(closed(2))
    before = fingerprint(outer)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert fingerprint(outer) != before
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    assert fingerprint(outer) == before
    monkeypatch.setitem(globals(), "helper", lambda x: x)
    assert fingerprint(outer) != before


def test_cycles_end():
    loop: list = [1]
    loop.append(loop)
    assert len(fingerprint(loop)) == 16


@pytest.mark.slow
def test_it_is_the_same_in_another_process():
    code = (
        "import adaptinf as ai; from adaptinf.audit.simulation.study_folder import fingerprint;"
        "print(fingerprint((ai.designs.UCB(), ai.environments.BernoulliArms([0.3, 0.6]), {'a', 'b', 'c'},"
        " lambda log: ai.ArmMeans(log).fit())))"
    )
    found = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in "ab"
    }
    assert len(found) == 1
    assert len(found.pop().strip()) == 16
