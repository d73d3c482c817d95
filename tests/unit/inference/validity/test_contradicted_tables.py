"""Every model, on rows and on sums, says which of its assumptions the log contradicts, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims.propensities import NOT_FOLLOWED, RIGHT


def frame_of(wrong: bool) -> pd.DataFrame:
    """Two arms with chances that move by batch; the columns of the wrong file are off by .045."""
    rng = np.random.default_rng(2)
    batch = np.arange(3_000) // 100
    share = rng.uniform(0.2, 0.8, 30)[batch]
    arm = (rng.random(3_000) < share).astype(int)
    logged = share + 0.045 * wrong
    x = rng.integers(0, 2, 3_000)
    return pd.DataFrame(
        {"a": arm, "y": rng.normal(size=3_000), "b": batch, "x": x, "p_0": 1.0 - logged, "p_1": logged}
    )


ROLES = {"action": "a", "reward": "y", "batch": "b", "propensities": "p_{arm}"}
PAIR = {"treatment": 1, "control": 0}
MODELS: dict[str, Callable[[Any], ai.Results]] = {
    "ArmMeans": lambda log: ai.ArmMeans(log).fit(),
    "Contrast": lambda log: ai.Contrast(log, **PAIR).fit(),
    "Contrasts": lambda log: ai.Contrasts(log, control=0).fit(),
    "Winner": lambda log: ai.Winner(log).fit(),
    "CATE": lambda log: ai.CATE(log, by="x", **PAIR).fit(),
    "ConfidenceSequence": lambda log: ai.ConfidenceSequence(log).fit("asymptotic", estimator="aipw"),
}
OF_ROWS: dict[str, Callable[[Any], ai.Results]] = {
    "PolicyValue": lambda log: ai.PolicyValue(log, 1).fit(),
    "PolicyContrast": lambda log: ai.PolicyContrast(log, 1, baseline=0).fit(),
    "projection": lambda log: ai.CATE.from_formula("~ x", log, **PAIR).fit(),
    "AdaptiveOLS": lambda log: ai.AdaptiveOLS(log, arm=1).fit("weighted"),
}
CASES = [(name, kind) for name in MODELS for kind in ("rows", "sums")] + [(name, "rows") for name in OF_ROWS]


def source(kind: str, wrong: bool) -> Any:
    frame = frame_of(wrong)
    if kind == "rows":
        return ai.AdaptiveLog(frame, **ROLES, context="x")
    return ai.aggregate(frame, **ROLES, by="x")


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_note_and_the_caution_agree(name: str, kind: str) -> None:
    model = {**MODELS, **OF_ROWS}[name]
    for wrong, status in ((True, "contradicted, see the caution"), (False, "checked")):
        result = model(source(kind, wrong))
        assert any(f"{RIGHT()} ({status})" in note for note in result.notes), result.notes
        assert sum(says(one, NOT_FOLLOWED) for one in result.cautions) == wrong
