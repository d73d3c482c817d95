"""Robust errors at 10 to 100 rounds against R's sandwich, estimatr and clubSandwich, by robust_errors.R."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.inference.regression.regression_results import RegressionResults

CASES: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("robust_errors.json").read_text(encoding="utf-8")
)["cases"]
ROWS = [case for case in CASES if case["kind"] == "rows"]
UNITS = [case for case in CASES if case["kind"] == "units"]


def fitted(case: dict[str, Any], formula: str, covariance: str) -> RegressionResults:
    frame = pd.DataFrame(case["data"])
    log = ai.AdaptiveLog(
        frame,
        action="arm",
        reward="y",
        context="x",
        unit="unit",
        about={"feedback_rounds": 0, "context_free": True},
    )
    return ai.AdaptiveOLS.from_formula(formula, log).fit("none", covariance)


@pytest.mark.parametrize("kind", ["HC0", "HC1", "HC2", "HC3"])
@pytest.mark.parametrize("case", ROWS, ids=lambda case: str(len(case["data"]["y"])))
def test_robust_errors_are_those_of_sandwich_and_estimatr(case: dict[str, Any], kind: str) -> None:
    result, found = fitted(case, "y ~ C(arm) * x", kind), case["found"][kind]
    np.testing.assert_allclose(result.params, case["found"]["estimate"], rtol=1e-8)
    np.testing.assert_allclose(result.covariance, found["covariance"], rtol=1e-8)
    if kind == "HC0":
        return
    np.testing.assert_allclose(result.bse, found["std_error"], rtol=1e-8)
    np.testing.assert_allclose(result.pvalues, found["p_value"], rtol=1e-8)
    np.testing.assert_allclose(result.conf_int(), np.transpose([found["low"], found["high"]]), rtol=1e-8)


@pytest.mark.parametrize("case", UNITS, ids=lambda case: str(len(case["data"]["y"])))
def test_errors_by_unit_are_those_of_clubsandwich_and_estimatr(case: dict[str, Any]) -> None:
    result, found = fitted(case, "y ~ C(arm) + x", "CR2"), case["found"]
    np.testing.assert_allclose(result.params, found["estimate"], rtol=1e-8)
    np.testing.assert_allclose(result.covariance, found["covariance"], rtol=1e-8)
    np.testing.assert_allclose(result.bse, found["std_error"], rtol=1e-8)
    np.testing.assert_allclose(result.pvalues, found["p_value"], rtol=1e-8)
    other = found["estimatr"]
    np.testing.assert_allclose(result.pvalues, other["p_value"], rtol=1e-8)
    np.testing.assert_allclose(result.conf_int(), np.transpose([other["low"], other["high"]]), rtol=1e-8)
    test = result.t_test([[0.0, 1.0, 3.0]])
    combination = found["combination"]
    np.testing.assert_allclose(test.effect, combination["estimate"], rtol=1e-8)
    np.testing.assert_allclose(test.std_error, combination["std_error"], rtol=1e-8)
    np.testing.assert_allclose(test.reference.df, combination["df"], rtol=1e-8)
