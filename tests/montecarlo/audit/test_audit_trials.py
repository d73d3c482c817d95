"""Replays and tests of noise of every private design: nothing is found in what is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adaptinf.audit.privacy.trial_checks import design_checks, stopping_checks
from adaptinf.designs import (
    DPBAI,
    DPNAS,
    DPOD,
    DPBAIGauss,
    DPConSE,
    LDPBandit,
    LDPLinear,
    LinPriv,
    Mixture,
    PrivateSuccessiveElimination,
    PrivateUCB,
)

LONG = pytest.mark.long  # privacy_audits.py of the evidence has these for every design, too
FEATURES = np.array([[0.0, 1.0], [0.0, 0.5], [1.0, 0.0], [0.5, 0.5], [0.2, 0.3], [0.7, 0.6], [0.9, 0.2]])
MANY = np.random.default_rng(0).random((9, 4))
DESIGNS: dict[str, Any] = {
    "PrivateUCB": lambda epsilon: PrivateUCB(epsilon=epsilon),
    "PrivateUCB, binary": lambda epsilon: PrivateUCB(epsilon=epsilon, counter="binary"),
    "PrivateUCB, tail bound": lambda epsilon: PrivateUCB(epsilon=epsilon, noise_width="tail-bound"),
    "PrivateUCB, published": lambda epsilon: PrivateUCB(
        epsilon=epsilon, calibration="published", relaxation=False
    ),
    "LinPriv": lambda epsilon: LinPriv(epsilon=epsilon),
    "LinPriv, ridge": lambda epsilon: LinPriv(epsilon=epsilon, noise_width="ridge", dimension=3),
    "LinPriv, normal": lambda epsilon: LinPriv(epsilon=epsilon, delta=1e-3, noise="gaussian"),
    "LinPriv, published": lambda epsilon: LinPriv(epsilon=epsilon, calibration="published", dimension=2),
    "elimination": lambda epsilon: PrivateSuccessiveElimination(epsilon=epsilon),
    "DPBAI": lambda epsilon: DPBAI(epsilon=epsilon, features=FEATURES),
    "DPBAI, all arms": lambda epsilon: DPBAI(epsilon=epsilon, features=FEATURES, max_det=False),
    "DPBAIGauss": lambda epsilon: DPBAIGauss(epsilon=epsilon, delta=1e-3, features=FEATURES),
    "DPBAIGauss, published": lambda epsilon: DPBAIGauss(
        epsilon=epsilon, delta=1e-3, features=FEATURES, calibration="published"
    ),
    "DPOD": lambda epsilon: DPOD(epsilon=epsilon, features=FEATURES),
    "DPOD, four coordinates": lambda epsilon: DPOD(epsilon=epsilon, features=MANY),
    "DPConSE": lambda epsilon: DPConSE(epsilon=epsilon),
    "DPConSE, short windows": lambda epsilon: DPConSE(epsilon=epsilon, alpha=0.3, first_window=20),
    "LDPBandit": lambda epsilon: LDPBandit(epsilon=epsilon),
    "LDPBandit, published": lambda epsilon: LDPBandit(epsilon=epsilon, calibration="published"),
    "LDPLinear": lambda epsilon: LDPLinear(epsilon=epsilon),
    "LDPLinear, identity": lambda epsilon: LDPLinear(epsilon=epsilon, link="identity", intercept=False),
    "Mixture of PrivateUCB": lambda epsilon: Mixture(PrivateUCB(epsilon=epsilon), exploration=0.2),
    "Mixture of LinPriv": lambda epsilon: Mixture(LinPriv(epsilon=epsilon), exploration=0.2),
    "Mixture of elimination": lambda epsilon: Mixture(
        PrivateSuccessiveElimination(epsilon=epsilon, beta=1.0), exploration=0.2
    ),
    "Mixture of DPBAI": lambda epsilon: Mixture(DPBAI(epsilon=epsilon, features=FEATURES), exploration=0.2),
    "Mixture of DPOD": lambda epsilon: Mixture(DPOD(epsilon=epsilon, features=FEATURES), exploration=0.2),
    "Mixture of DPConSE": lambda epsilon: Mixture(DPConSE(epsilon=epsilon), exploration=0.2),
    "Mixture of LDPBandit": lambda epsilon: Mixture(LDPBandit(epsilon=epsilon), exploration=0.2),
}


@pytest.mark.parametrize("epsilon", [pytest.param(0.1, marks=LONG), 1.0, pytest.param(4.0, marks=LONG)])
@pytest.mark.parametrize("name", DESIGNS)
def test_nothing_is_found_in_a_right_design(name: str, epsilon: float) -> None:
    checked = design_checks(DESIGNS[name](epsilon), np.random.SeedSequence(11), share=0.0)
    assert checked.findings == ()
    assert checked.looked[-1].startswith("Noise tested, 512 runs each: ")


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("steps", ["every", "exponential"])
def test_nothing_is_found_in_the_stopping_rule(steps: str, epsilon: float) -> None:
    rule = DPNAS(epsilon=epsilon, alpha=0.9, beta=0.5, steps=steps)
    checked = stopping_checks(rule, None, np.random.SeedSequence(12), share=0.0)
    assert checked.findings == ()
    assert checked.looked[0] == "The looks were not replayed, because their noise is not released."
