"""Steps of a design beyond its horizon: one error, whatever its kernels would do with their tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adaptinf.designs import (
    UCB,
    Design,
    DPConSE,
    LinPriv,
    PrivateSuccessiveElimination,
    PrivateUCB,
    Thompson,
)
from adaptinf.errors import ParameterError

DESIGNS: dict[str, tuple[Design, int]] = {
    "UCB": (UCB(), 12),
    "Thompson": (Thompson(), 12),
    "PrivateUCB": (PrivateUCB(epsilon=1.0), 12),
    "DPConSE": (DPConSE(epsilon=1.0, contrast_share=1), 12),
    "PrivateSuccessiveElimination": (PrivateSuccessiveElimination(epsilon=50.0, beta=1.0), 712),
    "LinPriv": (LinPriv(epsilon=1.0), 12),
}
CASES = [
    (name, noise)
    for name, (design, _) in DESIGNS.items()
    for noise in ("simulation", "release")
    if noise == "simulation" or design.guarantee(12, 2) is not None
]


@pytest.mark.parametrize(("name", "noise"), CASES)
def test_a_step_beyond_the_horizon_is_refused_and_changes_nothing(name: str, noise: str) -> None:
    (design, horizon), linear = DESIGNS[name], name == "LinPriv"
    given: dict[str, Any] = {"dimension": 2} if linear else {}
    given |= {"noise": "release"} if noise == "release" else {"rng": 0}
    stepper: Any = design.session([0, 1], horizon, **given)._stepper
    context = np.full(4, 0.5) if linear else np.zeros(1)
    for now in range(horizon):
        arm, _ = stepper.choose(context, now)
        status = stepper.status
        stepper.begun(status, now + 1)
        stepper.update(context, arm, 1.0, status, now + 1)
    before = stepper.state.tobytes(), stepper.released().tobytes()
    for step in (
        lambda: stepper.choose(context, horizon),
        lambda: stepper.begun(status, horizon + 1),
        lambda: stepper.update(context, arm, 1.0, status, horizon + 1),
    ):
        with pytest.raises(ParameterError, match=f"the horizon of {horizon} rounds has been reached"):
            step()
    assert (stepper.state.tobytes(), stepper.released().tobytes()) == before
