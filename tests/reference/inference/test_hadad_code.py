"""The same numbers as the published code of Hadad et al.; see hadad_code.py, which made them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai

HERE = Path(__file__).parent
REFERENCE = pd.read_csv(HERE / "hadad_code.csv")


def script() -> Any:
    spec = importlib.util.spec_from_file_location("hadad_code", HERE / "hadad_code.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("weights", ["uniform", "sqrt", "two-point"])
def test_arms_and_contrasts_are_those_of_the_published_code(weights: str) -> None:
    code = script()
    action, reward, share = code.simulated()
    frame = pd.DataFrame(share, columns=["p0", "p1", "p2"]).assign(arm=action, y=reward)
    log = ai.AdaptiveLog(frame, action="arm", reward="y", propensities="p{arm}", about={"context_free": True})
    asked: dict[str, Any] = {
        "estimator": "aipw",
        "weights": weights,
        "decay": code.DECAY if weights == "two-point" else None,
        "outcome": code.predictions(action, reward),
        "test": "normal",
        "stationary": True,
    }
    mine = REFERENCE[REFERENCE["weights"] == weights].set_index(["kind", "arm"])
    table = ai.ArmMeans(log).fit(**asked)
    np.testing.assert_allclose(table.estimate, mine.loc["mean", "estimate"], rtol=1e-12)
    np.testing.assert_allclose(table.std_error, mine.loc["mean", "std_error"], rtol=1e-12)
    for arm in (0, 1):
        pair = ai.Contrast(log, treatment=2, control=arm).fit(**{**asked, "outcome": asked["outcome"]})
        np.testing.assert_allclose(pair.estimate[0], mine.loc[("contrast", arm), "estimate"], rtol=1e-12)
        np.testing.assert_allclose(pair.std_error[0], mine.loc[("contrast", arm), "std_error"], rtol=1e-12)
