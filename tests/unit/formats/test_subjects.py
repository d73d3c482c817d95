"""Trials as ADaM: nobody is lost by a flag, a name, a text that is sorted or a treatment that is blank."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.formats import read_adam


def _trial() -> tuple[pd.DataFrame, pd.DataFrame]:
    adsl = pd.DataFrame(
        {
            "USUBJID": ["a", "b", "c", "d"],
            "ITTFL": ["Y", "Y", "Y", "N"],
            "TRT01P": ["Drug", "Placebo", "Drug", "Drug"],
            "TRT01A": ["Drug", "Placebo", "Drug", "Drug"],
            "RANDNUM": [9, 10, 11, 12],
            "AGE": [50.5, 61.5, 47.5, 70.5],
        }
    )
    return adsl, pd.DataFrame(
        {"USUBJID": ["a", "b", "c", "d"], "PARAMCD": "RESP", "AVAL": [0.0, 1.0, 0.5, 1.0]}
    )


def _read(adsl: Any, analysis: Any, **options: Any) -> Any:
    return read_adam(adsl, analysis, **({"parameter": "RESP", "order": "RANDNUM"} | options))


@pytest.mark.parametrize("flag", ["Yes", "y", "1", "Y ", 1, True])
def test_a_flag_that_is_neither_y_nor_n_is_refused(flag: Any) -> None:
    adsl, analysis = _trial()
    adsl["ITTFL"] = pd.Series([flag, "Y", "Y", "N"], dtype=object)
    with pytest.raises(ParameterError, match=f"ADSL: the flag ITTFL must be Y, N or empty, but is {flag!r}"):
        _read(adsl, analysis)


@pytest.mark.parametrize("flag", ["N", "", None, np.nan])
def test_a_subject_outside_the_population_is_left_out(flag: Any) -> None:
    adsl, analysis = _trial()
    adsl["ITTFL"] = pd.Series(["Y", "Y", "Y", flag], dtype=object)
    assert _read(adsl, analysis).column("USUBJID").tolist() == ["a", "b", "c"]


def test_text_is_no_order_but_dates_are() -> None:
    adsl, analysis = _trial()
    told = "ADSL: RANDNUM, by which subjects are sorted, must contain numbers, times or ISO dates"
    with pytest.raises(ParameterError, match=told):
        _read(adsl.assign(RANDNUM=adsl["RANDNUM"].map(str)), analysis)
    with pytest.raises(ParameterError, match="has '05JAN2024'; as text, 10 sorts before 9"):
        _read(adsl.assign(RANDNUM="05JAN2024"), analysis)
    dates = ["2024-02-01", "2024-01-31", "2024-01-30T23:59", "2024-03-01"]
    assert _read(adsl.assign(RANDNUM=dates), analysis).column("USUBJID").tolist() == ["c", "b", "a"]
    times = pd.to_datetime(pd.Series(dates), format="ISO8601")
    assert _read(adsl.assign(RANDNUM=times), analysis).column("USUBJID").tolist() == ["c", "b", "a"]
    for odd in (True, np.longdouble("0.1"), 2**70, np.inf, 1j, np.timedelta64(1, "s")):
        with pytest.raises(ParameterError, match=f"but has {odd!r:.9}".replace("(", r"\(")):
            _read(adsl.assign(RANDNUM=pd.Series([odd, 1.5, -1, 7], dtype=object)), analysis)
    numbers = pd.Series([2, 1.5, -1, 7], dtype=object)
    assert _read(adsl.assign(RANDNUM=numbers), analysis).column("USUBJID").tolist() == ["c", "b", "a"]


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda s, o: (s.drop(index=0), o), "ADSL lacks subjects that the analysis data set contains: a"),
        (
            lambda s, o: (s, o.assign(USUBJID=["a", "b", "c", "e"])),
            "lacks subjects that the analysis data set contains: e",
        ),
        (
            lambda s, o: (s, o.assign(USUBJID=["a", "b", "c", None])),
            "the analysis data set: USUBJID is empty in row 3",
        ),
        (lambda s, o: (s.assign(USUBJID=["a", "b", " ", "d"]), o), "ADSL: USUBJID is empty in row 2"),
        (
            lambda s, o: (s.assign(USUBJID=["a", "b", "c", "a "]), o.head(3)),
            "the subjects 'a' and 'a ' differ only in spaces",
        ),
        (lambda s, o: (s.assign(treatment=1), o), "a column of ADSL must not be called treatment"),
        (lambda s, o: (pd.concat([s, s[["AGE"]]], axis=1), o), "ADSL has several columns AGE"),
    ],
)
def test_names_that_do_not_fit_are_told(spoil: Callable[..., Any], told: str) -> None:
    subjects, outcomes = spoil(*_trial())
    with pytest.raises(ParameterError, match=told):
        _read(subjects, outcomes, covariates=["AGE", *(["treatment"] if "treatment" in subjects else [])])


@pytest.mark.parametrize("arm", [None, "", "  ", [1]])
def test_a_treatment_that_is_none_is_told(arm: Any) -> None:
    adsl, analysis = _trial()
    adsl["TRT01P"] = pd.Series([arm, "Placebo", "Drug", "Drug"], dtype=object)
    with pytest.raises(LogValidationError, match=r"no TRT01P for a \[row 0\]"):
        _read(adsl, analysis)


@pytest.mark.parametrize("value", ["0.5", "\ud800", [1.0], None])
def test_an_outcome_that_is_no_number_is_told(value: Any) -> None:
    adsl, analysis = _trial()
    analysis["AVAL"] = pd.Series([value] * 4, dtype=object)
    with pytest.raises(LogValidationError, match="reward column 'outcome'"):
        _read(adsl, analysis)


def test_treatments_that_differ_by_a_blank_are_refused() -> None:
    adsl, analysis = _trial()
    adsl.loc[2, ["TRT01P", "TRT01A"]] = "Drug "
    with pytest.raises(LogValidationError, match=r"'Drug', 'Drug ' \(U\+0020\) cannot be distinguished"):
        _read(adsl, analysis)


def test_names_are_text_in_a_csv(tmp_path: Path) -> None:
    adsl, analysis = _trial()
    names = ["001", "1", "1e5", "100000"]
    adsl.assign(USUBJID=names).to_csv(tmp_path / "adsl.csv", index=False)
    analysis.assign(USUBJID=names).to_csv(tmp_path / "adeff.csv", index=False)
    log = _read(tmp_path / "adsl.csv", tmp_path / "adeff.csv")
    assert log.column("USUBJID").tolist() == ["001", "1", "1e5"]


def test_text_among_the_numbers_of_a_covariate_is_refused(tmp_path: Path) -> None:
    adsl, analysis = _trial()
    adsl["AGE"] = ["50.5", ".", "47.5", "70.5"]
    adsl.to_csv(tmp_path / "adsl.csv", index=False)
    with pytest.raises(
        ParameterError, match=r"adsl\.csv: column 'AGE' has text among its numbers, .*such as '\.'"
    ):
        _read(tmp_path / "adsl.csv", analysis, covariates="AGE")


def test_a_table_of_propensities_of_other_types() -> None:
    adsl, analysis = _trial()
    table = pd.DataFrame({"RANDNUM": ["9", "10", "11", "12"], "Drug": 0.5, "Placebo": 0.5})
    with pytest.raises(
        ParameterError, match="the types of RANDNUM in the table of propensities differ from those in ADSL"
    ):
        _read(adsl, analysis, propensity=table)
