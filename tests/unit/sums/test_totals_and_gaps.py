"""Totals without batches, batches without an arm, and propensities of tables that are constant or rounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.claims.data import sums as claims
from adaptinf.errors import LogValidationError, ParameterError

NAMES = {
    "batch": "day",
    "arm": "arm",
    "n": "n",
    "sum": "total",
    "sum_squares": "total",
    "reward_range": (0, 1),
}
TABLE = pd.DataFrame(
    {
        "day": [1, 1, 2, 2, 2, 3, 3, 3],
        "arm": ["a", "b", "a", "b", "d", "a", "b", "d"],
        "n": [500, 500, 300, 310, 390, 620, 580, 800],
        "total": [50, 60, 45, 40, 78, 80, 70, 170],
        "p": [0.5, 0.5, 0.3, 0.3, 0.4, 0.3, 0.3, 0.4],
    }
)
TOTALS = TABLE.groupby("arm", as_index=False)[["n", "total"]].sum()


def sums(frame: pd.DataFrame = TABLE, **options: Any) -> ai.Sums:
    """The sums of a table."""
    return ai.Sums(frame, **{**NAMES, **options})


def refused(frame: pd.DataFrame = TABLE, **options: Any) -> list[str]:
    """What is said of a table that is refused."""
    with pytest.raises(LogValidationError) as caught:
        sums(frame, **options)
    return [str(problem) for problem in caught.value.problems]


def rows(table: pd.DataFrame = TABLE) -> pd.DataFrame:
    """Rows that have the sums of a table."""
    parts = [
        pd.DataFrame({"day": row.day, "arm": row.arm, "y": np.arange(row.n) < row.total})
        for row in table.itertuples()
    ]
    return pd.concat(parts, ignore_index=True)


def aggregated() -> ai.Sums:
    """The sums of rows in an engine."""
    return ai.aggregate(rows(), action="arm", reward="y", batch="day", reward_range=(0, 1))


ZERO = pd.concat([TABLE, pd.DataFrame({"day": [1], "arm": ["d"], "n": [0], "total": [0], "p": [0.0]})])


@pytest.mark.parametrize("read", [sums, lambda: sums(ZERO), aggregated], ids=["no row", "n = 0", "aggregate"])
def test_a_day_without_an_arm_is_left_out_of_what_is_said_of_that_arm(read: Any) -> None:
    found = read()
    assert found.cells.possible.tolist() == [[True, True, False], [True] * 3, [True] * 3]
    means = ai.ArmMeans(found).fit()
    days = np.array([1000.0, 1000.0, 2000.0])
    a = days / days.sum() @ np.array([50 / 500, 45 / 300, 80 / 620])
    d = days[1:] / days[1:].sum() @ np.array([78 / 390, 170 / 800])
    np.testing.assert_allclose(means.estimate[[0, 2]], [a, d], rtol=1e-12)
    later = sums(TABLE[TABLE["day"] > 1])
    for treatment, control in (("d", "a"), ("d", "b")):
        whole, part = (
            ai.Contrast(each, treatment=treatment, control=control).fit() for each in (found, later)
        )
        np.testing.assert_allclose(whole.estimate, part.estimate, rtol=1e-12)
        np.testing.assert_allclose(whole.std_error, part.std_error, rtol=1e-12)
    assert not [said for said in means.cautions if getattr(said, "claim", None) is claims.FEW_IN_A_BATCH]


def test_contrasts_of_arms_that_were_not_there_all_the_time_are_each_pairs_own() -> None:
    together = ai.Contrasts(sums(), control="a").fit()
    alone = [ai.Contrast(sums(), treatment=arm, control="a").fit() for arm in ("b", "d")]
    np.testing.assert_allclose(together.estimate, [fit.estimate[0] for fit in alone], rtol=1e-12)
    np.testing.assert_allclose(together.std_error, [fit.std_error[0] for fit in alone], rtol=1e-12)


def test_an_arm_without_a_row_has_what_the_others_leave_where_nobody_need_have_got_it() -> None:
    few = TABLE.assign(n=[5, 5, 3, 3, 4, 3, 3, 4], total=[1, 1, 1, 1, 2, 1, 1, 2])
    filled = sums(few.drop(index=4), propensity="p")
    np.testing.assert_allclose(filled.cells.smallest, [[0.5, 0.5, 0.0], [0.3, 0.3, 0.4], [0.3, 0.3, 0.4]])
    assert filled.cells.pulls[1].tolist() == [3.0, 3.0, 0.0]
    given = sums(
        few.assign(n=few["n"] * (few.index != 4), total=few["total"] * (few.index != 4)), propensity="p"
    )
    np.testing.assert_array_equal(filled.cells.smallest, given.cells.smallest)
    (problem,) = refused(TABLE.drop(index=4), propensity="p")
    assert problem == (
        "batch 2 has no row of arm 'd', but the propensities of the others leave it a positive share (0.4 "
        "in the first batch): add its row, with n = 0 if it was never assigned"
    )


def test_totals_without_batches_are_one_batch_and_say_what_they_need() -> None:
    totals = sums(TOTALS, batch=None)
    assert (totals.n_batches, totals.n_rounds, totals.batched) == (1, 4000, False)
    fit = ai.Contrast(totals, treatment="b", control="a").fit()
    np.testing.assert_allclose(fit.estimate, [170 / 1390 - 175 / 1420], rtol=1e-12)
    told = claims.WITHOUT_BATCHES()
    assert told == (
        "the table has no batches, so propensities are assumed constant over all rounds; if they changed "
        "with "
        "earlier rewards, estimates are biased and intervals may undercover"
    )
    assert told in fit.cautions
    assert told not in ai.Contrast(sums(), treatment="b", control="a").fit().cautions
    test = sums(TOTALS, batch=None, adaptive=False)
    assert told not in ai.Contrast(test, treatment="b", control="a").fit().cautions


def test_totals_are_kept_as_such_and_not_merged(tmp_path: Path) -> None:
    totals = sums(TOTALS, batch=None)
    totals.to_parquet(tmp_path / "totals.parquet")
    again = ai.Sums.read_parquet(tmp_path / "totals.parquet")
    assert not again.batched
    with pytest.raises(ParameterError, match="totals without batches cannot be merged"):
        totals + again
    assert refused(batch=None) == [
        "an arm has several rows: name the batch column in batch=, or sum each arm's rows [rows 0, "
        "1, 2, "
        "3, 4, 5, 6, 7]"
    ]


def test_one_propensity_for_all_arms() -> None:
    pair = TABLE[TABLE["day"] == 1]
    known = sums(pair, propensity=0.5)
    np.testing.assert_array_equal(known.cells.smallest, [[0.5, 0.5]])
    assert not known.shares
    assert refused(pair, propensity=0.4) == [
        "the propensities of a batch do not sum to 1 (tolerance 1e-06) but to 0.8 [rows 0, 1]"
    ]
    assert refused(pair, propensity=1.4) == [
        "propensity= must be a number in [0, 1] or name a column, got 1.4"
    ]


def test_rounded_propensities_of_a_table() -> None:
    frame = TABLE.assign(n=100, total=10, p=[0.5, 0.5, *[0.3333] * 6])
    assert refused(frame, propensity="p") == [
        "the propensities of a batch do not sum to 1 (tolerance 1e-06) but to 0.9999; if they were rounded "
        "to 4 "
        "decimals, set 'round_propensities' to True (--round-propensities on the command line) to "
        "renormalise the "
        "rows [rows 2, 3, 4, 5, 6, 7]"
    ]
    read = sums(frame, propensity="p", reading={"round_propensities": True})
    np.testing.assert_allclose(read.cells.smallest[1:], 1 / 3, rtol=1e-12)
    far = frame.assign(p=[0.5, 0.5, *[0.3323] * 6])
    assert refused(far, propensity="p", reading={"round_propensities": True}) == [
        "the propensities of a batch do not sum to 1 (tolerance 1e-06) but to 0.9969 [rows 2, 3, 4, 5, 6, 7]"
    ]
    assert refused(reading={"round_propensities": 1}) == ["'round_propensities' must be True or False, got 1"]
