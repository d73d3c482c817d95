"""Where values of rounds move, and which stay, against loops over rounds."""

from __future__ import annotations

import numpy as np
import pytest

from adaptinf.inference.inputs import rounds
from adaptinf.inference.inputs.rounds import moves, stays


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("piece", [1, 7, 2**18])
def test_moves_and_stays_as_loops_find_them(monkeypatch: pytest.MonkeyPatch, seed: int, piece: int) -> None:
    monkeypatch.setattr(rounds, "_PIECE", piece)
    rng = np.random.default_rng(seed)
    place = np.sort(rng.integers(0, 9, 60))
    values = rng.dirichlet(np.ones(3), 9)[place]
    for at in rng.integers(0, 60, seed % 3):
        values[at, rng.integers(0, 3)] += (1e-12, 1e-3)[seed % 2]
    for beyond in (0.0, 1e-9):
        due = [
            t
            for t in range(1, 60)
            if place[t] == place[t - 1] and max(abs(values[t] - values[t - 1])) > beyond
        ]
        np.testing.assert_array_equal(moves(values, place, beyond), due)
        everywhere = [t for t in range(1, 60) if max(abs(values[t] - values[t - 1])) > beyond]
        np.testing.assert_array_equal(moves(values, None, beyond), everywhere)
    parts = [values[place == k] for k in np.unique(place)]
    still = [
        all(part[:, k].max() - part[:, k].min() <= 1e-9 * part[:, k].max() for part in parts)
        for k in range(3)
    ]
    np.testing.assert_array_equal(stays(values, place), still)
    order = rng.permutation(60)
    np.testing.assert_array_equal(stays(values[order], place[order]), still)


def test_places_of_single_rounds_show_nothing() -> None:
    values = np.full((6, 2), 0.5)
    assert stays(values, None).all()
    assert stays(values, np.array([0, 0, 1, 1, 2, 2])).all()
    assert not stays(values, np.arange(6)).any()
    assert not stays(values[:0], None).any()
    assert len(moves(values[:0], None)) == len(moves(values[:1], None)) == 0
