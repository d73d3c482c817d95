"""Tables of sums: what is wrong with one, what follows from one, merging, and files."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims.data import availability
from adaptinf.errors import InvalidForLog, LogValidationError, ParameterError
from adaptinf.log.validation import OF_TABLES, nested_options
from adaptinf.sums.cells import cells_of_rows, other_value

NAMES = {
    "batch": "week",
    "arm": "arm",
    "n": "users",
    "sum": "total",
    "sum_squares": "squares",
    "propensity": "share",
}


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "week": [1, 1, 2, 2, 3, 3],
            "arm": ["a", "b"] * 3,
            "users": [500, 500, 400, 600, 350, 650],
            "total": [1000.0, 1500.0, 820.0, 1790.0, 690.0, 1990.0],
            "squares": [2600.0, 5200.0, 2100.0, 6200.0, 1800.0, 7000.0],
            "share": [0.5, 0.5, 0.4, 0.6, 0.35, 0.65],
        }
    )


def changed(column: str, row: int, value: Any) -> pd.DataFrame:
    frame = table()
    frame[column] = frame[column].astype(object)
    frame.loc[row, column] = value
    frame[column] = frame[column].infer_objects()
    return frame


def codes(frame: Any, **options: Any) -> list[str]:
    with pytest.raises(LogValidationError) as caught:
        ai.Sums(frame, **nested_options({**NAMES, **options}, OF_TABLES))
    return [problem.code for problem in caught.value.problems]


BAD = {
    "negative-count": changed("users", 1, -500),
    "broken-count": changed("users", 1, 500.5),
    "impossible-squares": changed("squares", 1, 4400.0),
    "negative-squares": changed("squares", 1, -1.0),
    "infinite-sum": changed("total", 1, np.inf),
    "missing-n": changed("users", 1, np.nan),
    "non-numeric-sum": changed("total", 1, "1,500"),
    "missing-batch": changed("week", 1, np.nan),
    "missing-action": changed("arm", 1, None),
    "propensities-sum": changed("share", 1, 0.6),
    "propensity-out-of-range": changed("share", 1, -0.5),
    "repeated-cell": pd.concat([table(), table()[:1]], ignore_index=True),
    "missing-arm": table().drop(index=3),
    "shares-against-propensities": table().assign(share=[0.5, 0.5, 0.6, 0.4, 0.35, 0.65]),
    "mixed-units": table().assign(
        total=[1000.0, 1500.0, 82_000.0, 179_000.0, 690.0, 1990.0],
        squares=[2600.0, 5200.0, 21e6, 62e6, 1800.0, 7000.0],
    ),
}


@pytest.mark.parametrize("code", BAD)
def test_one_fault_is_one_problem_of_its_rows(code: str) -> None:
    assert codes(BAD[code]) == [code]


def test_rows_are_named_and_all_faults_told_at_once() -> None:
    frame = changed("users", 1, -500)
    frame.loc[4, "squares"] = 10.0
    with pytest.raises(LogValidationError, match=r"2 problems") as caught:
        ai.Sums(frame, **NAMES)
    assert [problem.rows for problem in caught.value.problems] == [(1,), (4,)]


def test_other_faults() -> None:
    counted = table().assign(others=[400, 400, 300, 500, 2, 500], cubes=[1e9, 1, 1, 1, 1, 1])
    assert codes(counted, nonzero="others", sum_cubes="cubes") == ["impossible-cubes", "impossible-nonzero"]
    assert codes(table(), reward_range=(0, 2)) == ["reward-out-of-range"]
    assert codes(table(), reward_range=(3, 9)) == ["reward-out-of-range"]
    assert codes(table(), sum="totals") == ["missing-column"]
    assert codes(table()[:0]) == ["empty-frame"]
    assert codes(table().assign(week=[f"week {w}" for w in table()["week"]])) == ["bad-batch"]
    assert codes(table(), arms=["a"]) == ["unseen-arm", "one-arm"]
    assert codes(table(), guarantee={"epsilon": -1}) == ["bad-guarantee"]
    zero = table().assign(users=[500, 500, 400, 0, 350, 650], total=table()["total"] * [1, 1, 1, 0, 1, 1])
    zero["squares"] *= [1, 1, 1, 0, 1, 1]
    assert codes(zero.assign(total=5.0)) == ["sums-of-nobody"]
    assert codes(table(), propensity=None, propensity_status="exact") == ["bad-propensity-status"]
    with pytest.raises(ParameterError, match="frame of pandas, polars, Arrow, DuckDB or Dask, got"):
        ai.Sums([1, 2], **NAMES)


def test_units_may_differ_where_the_range_says_so() -> None:
    assert ai.Sums(BAD["mixed-units"], **NAMES, reward_range=(0, 1000)).n_rounds == 3000


def test_an_arm_without_a_row_had_propensity_zero() -> None:
    frame = table().drop(index=3).assign(share=[0.5, 0.5, 1.0, 0.35, 0.65])
    sums = ai.Sums(frame, **NAMES)
    np.testing.assert_array_equal(sums.cells.possible, [[True, True], [True, False], [True, True]])
    result = ai.Contrast(sums, treatment="b", control="a").fit()
    assert says(result.notes, availability.LEFT_OUT, rounds=2400, left="400")


def test_order_of_rows_and_kind_of_frame_do_not_matter() -> None:
    expected = ai.ArmMeans(ai.Sums(table(), **NAMES)).fit()
    dated = table().assign(
        week=["2024-03-04", "2024-03-04", "2024-03-11", "2024-03-11", "2024-04-01", "2024-04-01"]
    )
    for frame in (table()[::-1], pl.DataFrame(table()), dated.sample(frac=1, random_state=1)):
        found = ai.ArmMeans(ai.Sums(frame, **NAMES)).fit()
        np.testing.assert_allclose(found.estimate, expected.estimate, rtol=1e-13)
        np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-12)


def split(rng: np.random.Generator, pieces: int) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Tables of all rounds, and of each of several pieces."""
    week = np.repeat([1, 2, 3], 400)
    share = np.array([[0.5, 0.5], [0.3, 0.7], [0.4, 0.6]])[week - 1]
    arm = (rng.random(1200) < share[:, 1]).astype(int)
    reward = rng.gamma(2.0, 1.0 + arm)
    rows = pd.DataFrame({"week": week, "arm": arm, "y": reward, "share": share[np.arange(1200), arm]})
    rows["piece"] = rng.integers(pieces, size=1200)

    def grouped(part: pd.DataFrame) -> pd.DataFrame:
        sums = part.groupby(["week", "arm", "share"], as_index=False)["y"]
        found = sums.agg(
            users="count", total="sum", squares=lambda y: (y**2).sum(), cubes=lambda y: (y**3).sum()
        )
        return found.assign(others=found["users"])

    return grouped(rows), [grouped(part) for _, part in rows.groupby("piece")]


@pytest.mark.parametrize("shares", [False, True])
def test_merging_in_any_order_gives_the_whole(shares: bool) -> None:
    whole, pieces = split(np.random.default_rng(7), 3)
    names = NAMES | {"sum_cubes": "cubes", "nonzero": "others"}
    names = names | {"propensity": None} if shares else names  # type: ignore[dict-item]
    made = [ai.Sums(piece, **names) for piece in pieces]
    expected = ai.Sums(whole, **names)
    result = ai.Contrast(expected, treatment=1, control=0).fit(test="hall")
    for order in permutations(made):
        merged = order[0] + order[1] + order[2]
        np.testing.assert_allclose(merged.cells.moments, expected.cells.moments, rtol=1e-11)
        assert merged.n_rounds == 1200
        found = ai.Contrast(merged, treatment=1, control=0).fit(test="hall")
        np.testing.assert_allclose(found.conf_int(), result.conf_int(), rtol=1e-10)


def test_merged_batches_come_in_their_order() -> None:
    first, second = table()[:2], table()[2:]
    merged = ai.Sums(second, **NAMES, about={"feedback_rounds": 2000}) + ai.Sums(
        first, **NAMES, about={"feedback_rounds": 900}
    )
    np.testing.assert_array_equal(merged.batches, [1, 2, 3])
    assert merged.feedback_rounds == 2900
    whole = ai.ArmMeans(ai.Sums(table(), **NAMES)).fit()
    np.testing.assert_allclose(ai.ArmMeans(merged).fit().estimate, whole.estimate, rtol=1e-13)
    with pytest.raises(ParameterError, match="arms differs"):
        ai.Sums(first, **NAMES) + ai.Sums(second.replace({"arm": {"b": "c"}}), **NAMES)
    with pytest.raises(ParameterError, match="guarantee differs"):
        ai.Sums(first, **NAMES) + ai.Sums(second, **NAMES, guarantee={"epsilon": 1.0})
    closed = table()[:1].assign(share=1.0)
    with pytest.raises(ParameterError, match="propensity 0 in a batch of one table but not"):
        ai.Sums(first, **NAMES) + ai.Sums(closed, **NAMES, arms=["a", "b"])


def test_files_keep_guarantee_and_design(tmp_path: Path) -> None:
    arms = ai.environments.BernoulliArms([0.4, 0.6])
    log = ai.designs.PrivateUCB(epsilon=1.0).run(arms, horizon=300, rng=0)
    with pytest.raises(InvalidForLog, match="no batches"):
        ai.Sums.of_log(log)
    sums = ai.Sums(
        table(), **NAMES, guarantee=log.guarantee, about={"design": log.design, "feedback_rounds": 5}
    )
    sums.to_parquet(tmp_path / "sums.parquet")
    again = ai.Sums.read_parquet(tmp_path / "sums.parquet")
    assert (again.guarantee, again.feedback_rounds, again.arms) == (log.guarantee, 5, ("a", "b"))
    assert again.reward_guarantee == sums.reward_guarantee
    assert again.design is not None
    assert again.design.traits == log.design.traits
    for name in ("moments", "rounds", "inverse", "expected", "spread", "smallest", "nonzero"):
        np.testing.assert_array_equal(getattr(again.cells, name), getattr(sums.cells, name))
    assert str(ai.ArmMeans(again).fit().summary()) == str(ai.ArmMeans(sums).fit().summary())
    whole = (tmp_path / "sums.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[:-100])
    with pytest.raises(ParameterError, match=r"cut\.parquet"):
        ai.Sums.read_parquet(tmp_path / "cut.parquet")
    table().to_parquet(tmp_path / "plain.parquet")
    with pytest.raises(ParameterError, match="contains no sums written by adaptinf"):
        ai.Sums.read_parquet(tmp_path / "plain.parquet")


def test_models_that_need_rows_refuse_by_name() -> None:
    sums: Any = ai.Sums(table(), **NAMES)
    calls = {
        "CATE": lambda: ai.CATE.from_formula("~ x", sums, treatment="b", control="a"),
        "AdaptiveOLS": lambda: ai.AdaptiveOLS.from_formula("reward ~ 1", sums),
        "PolicyValue": lambda: ai.PolicyValue(sums, "a"),
        "betting sequence": lambda: ai.ConfidenceSequence(sums).fit("betting"),
        "alee": lambda: ai.ArmMeans(sums).fit("alee"),
        "rounds=": lambda: ai.ArmMeans(sums, rounds=[True]),
        "keep_scores": lambda: ai.ArmMeans(sums).fit(keep_scores=True),
        "two-point": lambda: ai.ArmMeans(sums).fit("aipw", weights="two-point", decay=0.5),
        "outcome model": lambda: ai.ArmMeans(sums).fit(outcome="running-mean"),
        "received": lambda: ai.Contrast(sums, treatment="b", control="a").fit(estimand="received"),
    }
    for name, call in calls.items():
        with pytest.raises(InvalidForLog, match=f"{name}.*sums by batch"):
            call()


def test_shares_have_the_errors_of_their_own_batches() -> None:
    """Against the definition: sum w mean, sum w^2 s^2 / N, Satterthwaite; one batch has one reward of b."""
    rng = np.random.default_rng(12)
    counts = {"a": (30, 12, 50), "b": (10, 1, 25)}
    rewards = {
        (batch, arm): rng.gamma(2.0, 3.0, counts[arm][batch]) + 5.0 * batch
        for batch in range(3)
        for arm in "ab"
    }
    frame = pd.DataFrame(
        [(batch, arm, len(y), y.sum(), (y**2).sum(), (y**3).sum()) for (batch, arm), y in rewards.items()],
        columns=["batch", "arm", "n", "s", "q", "c"],
    )
    sums = ai.Sums(frame, batch="batch", arm="arm", n="n", sum="s", sum_squares="q", sum_cubes="c")
    result = ai.ArmMeans(sums).fit("aipw", weights="uniform", test="t")
    share = np.array([40.0, 13.0, 75.0]) / 128.0
    for place, arm in enumerate("ab"):
        own = [rewards[batch, arm] for batch in range(3)]
        many = [y for y in own if len(y) > 1]
        pooled = sum(((y - y.mean()) ** 2).sum() for y in many) / sum(len(y) - 1 for y in many)
        variance = [pooled if len(y) == 1 else y.var(ddof=1) for y in own]
        parts = [w**2 / len(y) for w, y in zip(share, own, strict=True)]
        df = sum(parts) ** 2 / sum(c**2 / (len(y) - 1) for c, y in zip(parts, own, strict=True) if len(y) > 1)
        estimate = sum(w * y.mean() for w, y in zip(share, own, strict=True))
        error = np.sqrt(sum(c * s for c, s in zip(parts, variance, strict=True)))
        assert result.estimate[place] == pytest.approx(estimate, rel=1e-12)
        assert result.std_error[place] == pytest.approx(error, rel=1e-9)
        reach = stats.t(df).ppf(0.975) * error
        assert result.conf_int().to_numpy()[place] == pytest.approx(
            [estimate - reach, estimate + reach], rel=1e-9
        )


def test_two_values_are_recognised_about_any_centre() -> None:
    """Cells without a success keep only rounding when sums about the mean are moved to 0."""
    batch, action, reward = np.repeat(np.arange(6), 300), np.arange(1_800) % 2, np.zeros(1_800)
    for cell, count in enumerate((1, 1, 1, 5, 1, 0, 4, 1, 0, 3, 0, 2)):
        reward[np.flatnonzero((2 * batch + action) == cell)[:count]] = 1.0
    half = np.full(1_800, 0.5)
    for centre in (0.0, 1.0 / 150.0, 0.3):
        cells = cells_of_rows(action, reward, half, np.full((1_800, 2), 0.5), batch, 2, centre).about(0.0)
        for factor in (1.0, 1e-4, -250.0):
            first, squares = cells.moments[0, 1] * factor, cells.moments[0, 2] * factor**2
            assert other_value(first, squares) == pytest.approx(factor, rel=1e-9)
            assert other_value(first + factor * np.eye(6, 2) * 0.5, squares) is None


def test_rounds_that_both_have_are_not_added_twice() -> None:
    whole, pieces = split(np.random.default_rng(7), 2)
    names = NAMES | {"sum_cubes": "cubes", "nonzero": "others"}
    sums, first, second = (ai.Sums(each, **names) for each in (whole, *pieces))
    early = ai.Sums(whole[whole["week"] < 3], **names)
    centred = ai.Sums(whole.assign(total=whole["total"] * (1.0 + 1e-13)), **names)
    for one, same in ((sums, sums), (sums, early), (early, sums), (sums, centred)):
        with pytest.raises(ParameterError, match=r"that both have, 1, 2.* are the same: add each round once"):
            one + same
    assert (first + second).n_rounds == 1200  # the same batches, with other rounds
    few = table().assign(users=[8, 8, 6, 9, 5, 9], total=[4, 5, 3, 6, 2, 7], squares=[4, 5, 3, 6, 2, 7])
    small = ai.Sums(few.assign(share=[0.5, 0.5, 0.4, 0.6, 0.35, 0.65]), **NAMES)
    assert (small + small).n_rounds == 90  # too few to exclude chance
