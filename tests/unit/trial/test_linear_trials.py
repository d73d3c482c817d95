"""A private trial with context vectors: whole sums of products outlive a restart, from rows or a snapshot."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from crashes import entries

from adaptinf.audit.privacy.designs.counter_audits import unequal_contexts
from adaptinf.designs import LinPriv, Mixture
from adaptinf.privacy import GRID_UNITS
from adaptinf.trial import Trial, requests
from adaptinf.trial import trial_noise as nodes

DESIGN, PEOPLE, WINDOW = Mixture(LinPriv(epsilon=1.0), exploration=0.2), 40, 2
VECTORS = unequal_contexts(PEOPLE, 2, 3)
REWARDS = np.random.default_rng(7).random(PEOPLE).tolist()


def named_noise(name: str, scale: float) -> int:
    """Noise that follows from the name, of more bits than a float has."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big") - 2**55


def told(trial: Trial, first: int, last: int) -> None:
    for number in range(first, last):
        decision = trial.assign(f"unit {number}", VECTORS[number].tolist(), key=f"assign {number}")
        trial.record(decision.id, REWARDS[number], key=f"record {number}")


@pytest.mark.parametrize("snapshot", [True, False], ids=["snapshot", "rows"])
def test_a_trial_that_is_opened_again_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: bool
) -> None:
    monkeypatch.setattr(nodes, "draw_node", named_noise)
    monkeypatch.setattr("adaptinf.trial.trial_setup.fresh_seed", lambda: bytes(32))
    if snapshot:
        monkeypatch.setattr(requests, "EVERY", 12)
    terms = {"horizon": PEOPLE, "outcome_window": WINDOW, "dimension": 3, "per_arm": True}
    logs = []
    for name, stops in (("whole", [PEOPLE]), ("broken", [13, 27, PEOPLE])):
        path = tmp_path / f"{name}.db"
        trial, done = Trial.create(path, DESIGN, 2, **terms), 0
        for stop in stops:
            told(trial, done, stop)
            trial.close()
            trial, done = Trial.open(path), stop
        trial.verify()
        logs.append(trial.log(missing="drop"))
        trial.close()
    assert logs[0].releases.equals(logs[1].releases)
    assert logs[0].frame["action"].tolist() == logs[1].frame["action"].tolist()
    assert (logs[1].noise, logs[1].guarantee.epsilon) == ("release", 1.0)
    rows = [row for row in entries(tmp_path / "broken.db") if row["kind"] == "node"]
    assert len(rows) == 3 * (PEOPLE - WINDOW - 1) == len({row["node"] for row in rows})
    first = next(iter(logs[1].frame["action"].tolist()))
    total = math.trunc(VECTORS[0, first, 0] * GRID_UNITS) * round(REWARDS[0] * GRID_UNITS)
    assert logs[1].releases["value"].iloc[0] == float(Fraction(total + rows[0]["units"], GRID_UNITS**2))
