"""What the study of the RAND experiment computes by itself."""

from __future__ import annotations

import numpy as np
import pytest

from adaptinf.datasets import rand_hie
from adaptinf.simulation.environments import Replay
from case_studies.rand_hie.run import ARMS, GROUPS, coin_regret, full_data


def test_full_data_effects() -> None:
    frame = rand_hie()
    table = full_data(frame, {"any visit": "any_visit"}).set_index("group")
    assert list(table.index) == ["all", *GROUPS]
    assert table.loc["all", "effect"] == pytest.approx(0.781882 - 0.639437, abs=1e-5)
    expected = np.sqrt(0.781882 * 0.218118 / 6821 + 0.639437 * 0.360563 / 13367)
    assert table.loc["all", "std_error"] == pytest.approx(expected, rel=1e-4)


def test_a_coin_forgoes_half_of_each_gap() -> None:
    frame = rand_hie()
    means = frame.groupby(["group", "arm"])["any_visit"].mean().unstack()
    gaps = (means[ARMS[1]] - means[ARMS[0]]).abs()
    shares = frame["group"].value_counts(normalize=True)
    expected = 20_190 * float((shares * gaps).sum()) / 2.0
    assert coin_regret(Replay(frame, "arm", "any_visit", "group", arms=ARMS)) == pytest.approx(expected)
