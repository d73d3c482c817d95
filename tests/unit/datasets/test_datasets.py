"""The RAND data: every column against the file that statsmodels ships."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from statsmodels.datasets import randhie

from adaptinf.datasets import rand_hie


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return rand_hie()


@pytest.fixture(scope="module")
def source() -> pd.DataFrame:
    data: pd.DataFrame = randhie.load_pandas().data
    return data


def test_one_row_a_person_year_in_the_order_of_the_file(frame: pd.DataFrame, source: pd.DataFrame) -> None:
    assert len(frame) == 20_190
    assert frame["visits"].tolist() == source["mdvis"].tolist()
    assert frame.index.tolist() == list(range(20_190))
    assert not frame.isna().any().any()


def test_outcome_is_one_visit_or_more(frame: pd.DataFrame, source: pd.DataFrame) -> None:
    assert set(frame["any_visit"]) == {0, 1}
    assert int(frame["any_visit"].sum()) == int(np.count_nonzero(source["mdvis"].to_numpy() >= 1))


def test_free_care_leaves_the_individual_deductible_plan_out(frame: pd.DataFrame) -> None:
    # Manning et al. (1987) count person-years by plan: free 6,822, individual deductible 4,175 (of those that
    # the file gives a coinsurance of 0), 25% 4,065, 50% 1,401, 95% 3,727.
    free = frame[frame["arm"] == "free care"]
    assert len(free) == 6_822
    assert set(free["coinsurance"]) == {0}
    assert set(free["individual_deductible"]) == {0}
    paying = frame[frame["arm"] == "cost sharing"]
    assert len(paying) == 13_368
    assert paying.groupby("coinsurance").size().to_dict() == {
        0: 4_175,
        25: 4_065,
        50: 1_401,
        95: 2_653,
        100: 1_074,
    }
    assert set(paying.loc[paying["coinsurance"] == 0, "individual_deductible"]) == {1}


@pytest.mark.parametrize(
    ("group", "dummies"),
    [("excellent", (0, 0, 0)), ("good", (1, 0, 0)), ("fair-or-poor", (0, 1, 0)), ("fair-or-poor", (0, 0, 1))],
)
def test_groups_are_the_health_dummies(
    frame: pd.DataFrame, source: pd.DataFrame, group: str, dummies: tuple[int, int, int]
) -> None:
    rows = (source[["hlthg", "hlthf", "hlthp"]].to_numpy() == dummies).all(axis=1)
    assert rows.any()
    assert set(frame.loc[rows, "group"]) == {group}


def test_each_call_gives_a_frame_of_its_own(frame: pd.DataFrame) -> None:
    other = rand_hie()
    other.loc[0, "visits"] = -1
    assert rand_hie()["visits"].tolist() == frame["visits"].tolist()
