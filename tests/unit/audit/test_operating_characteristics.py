from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from adaptinf.audit.simulation.characteristics import operating_characteristics
from adaptinf.audit.simulation.engine import AnalysisError
from adaptinf.audit.simulation.selection import best_arms, quantile, wrong_way_trials
from adaptinf.designs import LinUCB, PrivateSuccessiveElimination, Thompson, Uniform
from adaptinf.errors import ParameterError
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.effects.cate import CATE
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import BernoulliArms, FiniteContext, LinearArms

EQUAL, BETTER = BernoulliArms([0.3, 0.3]), BernoulliArms([0.3, 0.6])


def contrast(log):
    return Contrast(log, treatment=1, control=0).fit()


def rows_of(plan, measure):
    return plan.frame[plan.frame["measure"] == measure]


def test_the_wrong_way_is_a_strict_excess_over_a_tenth():
    rounds = np.array([[110.0, 90.0], [111.0, 89.0], [90.0, 110.0]])
    best = np.array([False, True])
    assert wrong_way_trials(rounds, best, 0.1).tolist() == [0.0, 1.0, 0.0]
    assert wrong_way_trials(
        np.array([[129.0, 100.0, 71.0]]), np.array([False, True, False]), 0.29 / 3
    ).tolist() == [0.0]
    three = np.array([[50.0, 30.0, 20.0], [41.0, 30.0, 29.0], [20.0, 30.0, 50.0]])
    assert wrong_way_trials(three, np.array([False, False, True]), 0.1).tolist() == [1.0, 1.0, 0.0]
    assert wrong_way_trials(three, np.array([False, True, True]), 0.1).tolist() == [1.0, 1.0, 0.0]


def test_best_arms_are_equal_up_to_rounding():
    assert best_arms(np.array([[0.1 + 0.2, 0.3, 0.2]])).tolist() == [[True, True, False]]


def test_quantiles_are_values_of_trials():
    ordered = np.arange(1.0, 31.0)
    assert quantile(ordered, 0.1) == 3.0
    assert quantile(ordered, 0.11) == 4.0
    assert 0.07 * 100 > 7
    assert quantile(np.arange(1.0, 101.0), 0.07) == 7.0
    assert quantile(ordered, 0.0) == 1.0
    assert quantile(ordered, 1.0) == 30.0


def test_no_log_is_made_without_an_analysis(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a log was made")

    monkeypatch.setattr(AdaptiveLog, "from_arrays", refuse)
    plan = operating_characteristics(Thompson(), {"equal": EQUAL, "better": BETTER}, [40, 80], 64, rng=0)
    assert set(plan.frame["measure"]) == {
        *(
            "rounds",
            "share",
            "successes",
            "regret",
            "wrong way",
            "selected",
            "no selection",
            "correct selection",
        )
    }
    with pytest.raises(AnalysisError, match="a log was made"):
        operating_characteristics(Thompson(), EQUAL, 40, 64, rng=0, fit=contrast)


def test_where_no_arm_is_better_there_is_no_wrong_way():
    frame = operating_characteristics(Uniform(), EQUAL, 40, 64, rng=0).frame
    for measure in ("wrong way", "correct selection"):
        [row] = frame[frame["measure"] == measure].to_dict("records")
        assert np.isnan(row["value"])
        assert row["note"] == "no arm is better than another"


def test_a_design_that_follows_context_vectors_has_regret_instead():
    plan = operating_characteristics(LinUCB(), LinearArms([[0.5, 0.1], [0.1, 0.5]]), 60, 64, rng=0)
    [wrong] = rows_of(plan, "wrong way")["note"]
    assert wrong == "the best arm depends on the context vector: see the regret"
    [chosen] = rows_of(plan, "selected")["note"]
    assert chosen.startswith("No arm is selected: the design chooses by context vectors")
    assert rows_of(plan, "regret")["value"].iloc[0] > 0
    with pytest.raises(ParameterError, match="selection='sample mean': No arm is selected"):
        operating_characteristics(
            LinUCB(), LinearArms([[0.5, 0.1], [0.1, 0.5]]), 60, 64, rng=0, selection="sample mean"
        )


def test_contexts_have_rows_of_their_own():
    env = FiniteContext([0.5, 0.5], [[0.2, 0.8], [0.8, 0.2]])
    plan = operating_characteristics(Uniform(), env, 100, 64, rng=0)
    assert rows_of(plan, "wrong way")["context"].tolist() == ["0", "1"]
    chosen = rows_of(plan, "selected").set_index(["context", "arm"])["value"]
    assert chosen["0", "1"] > 0.99
    assert chosen["1", "0"] > 0.99
    assert rows_of(plan, "rounds")["context"].tolist() == [""] * 14


def test_designs_that_name_an_arm_select_it():
    design = PrivateSuccessiveElimination(epsilon=2.0)
    plan = operating_characteristics(
        design, {"clear": BernoulliArms([0.1, 0.9]), "equal": BernoulliArms([0.5, 0.5])}, 8_000, 64, rng=0
    )
    named = rows_of(plan, "selected").set_index(["scenario", "arm"])["value"]
    assert named["clear", "1"] == 1.0
    assert rows_of(plan, "no selection")["value"].tolist() == [0.0, 1.0]
    means = operating_characteristics(
        design, BernoulliArms([0.5, 0.5]), 8_000, 64, rng=0, selection="sample mean"
    )
    assert rows_of(means, "no selection")["value"].tolist() == [0.0]


def test_tied_arms_share_the_trial():
    plan = operating_characteristics(Uniform(), BernoulliArms([1.0, 1.0, 0.0]), 60, 64, rng=0)
    assert rows_of(plan, "selected")["value"].tolist() == [0.5, 0.5, 0.0]
    assert rows_of(plan, "correct selection")["value"].tolist() == [1.0]


def test_a_function_selects():
    def superior(log, result):
        low, high = result.conf_int().iloc[0]
        return 1 if low > 0 else 0 if high < 0 else None

    plan = operating_characteristics(Uniform(), BETTER, 100, 64, rng=0, fit=contrast, selection=superior)
    chosen = rows_of(plan, "selected")["value"].tolist()
    assert chosen[1] == rows_of(plan, "power")["value"].iloc[0]
    assert chosen[0] == 0.0
    assert rows_of(plan, "no selection")["value"].iloc[0] == 1.0 - chosen[1]
    with pytest.raises(
        AnalysisError, match=("it returned 'best'; it must return one of the arms 0, 1, or None")
    ):
        operating_characteristics(
            Uniform(), BETTER, 100, 64, rng=0, fit=contrast, selection=lambda log, result: "best"
        )


def test_an_analysis_of_one_arm_cannot_select():
    with pytest.raises(ParameterError, match="selection='analysis': no result of fit ranks all arms"):
        operating_characteristics(
            Uniform(),
            BETTER,
            60,
            64,
            rng=0,
            fit=lambda log: ArmMeans(log, arms=[0]).fit(),
            selection="analysis",
        )


@pytest.mark.slow
def test_the_same_numbers_for_any_number_of_workers():
    arguments = (Thompson(floor=0.1), {"equal": EQUAL, "better": BETTER}, 40, 330)
    for fit in (None, contrast):
        one, two = (
            operating_characteristics(*arguments, rng=1, fit=fit, n_jobs=jobs).frame for jobs in (1, 2)
        )
        pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_the_margin_of_the_wrong_way_can_be_said():
    none, some = (
        rows_of(operating_characteristics(Uniform(), BETTER, 50, 256, rng=0, wrong_way=margin), "wrong way")
        for margin in (1.0, 0.0)
    )
    assert none["value"].tolist() == [0.0]
    assert 0.3 < some["value"].iloc[0] < 0.6


def test_everything_wrong_is_said_at_once():
    with pytest.raises(ParameterError) as error:
        operating_characteristics(
            "Thompson",
            {"": BETTER},
            0,
            0,
            rng="x",
            selection="best",
            wrong_way=2,
            null=0.3,
            alpha=1,
            n_jobs=0,
        )
    text = str(error.value)
    for part in (
        *(
            "design must be",
            "scenario names",
            "horizon must be",
            "replications must be",
            "rng must be",
            "alpha",
        ),
        *(
            "n_jobs",
            "selection, if it is not a function, must be one of",
            "wrong_way must be",
            "null applies to",
        ),
    ):
        assert part in text, part
    with pytest.raises(ParameterError, match="requires fit="):
        operating_characteristics(Uniform(), BETTER, 50, 64, rng=0, selection=lambda log, result: 0)
    with pytest.raises(ParameterError, match="null: there is no term '2 - 0'; available: '1 - 0'"):
        operating_characteristics(Uniform(), BETTER, 50, 64, rng=0, fit=contrast, null={"2 - 0": 0.0})


def test_the_table_has_a_column_for_each_scenario(tmp_path):
    plan = operating_characteristics(
        Uniform(), {"better": BETTER, "equal": EQUAL}, 60, 64, rng=1, fit=contrast
    )
    table = plan.table(digits=2)
    assert table.columns.tolist() == ["characteristic", "better", "equal"]
    cells = table.set_index("characteristic")
    assert cells.loc["P(wrong way)", "equal"] == "n/a"
    names = cells.index.tolist()
    [analysis] = rows_of(plan, "power")["analysis"]
    size, power = (f"{kind}: 1 - 0, {analysis}" for kind in ("type-I error", "power"))
    assert names.index(power) == names.index(size) + 1
    assert (cells.loc[size, "better"], cells.loc[power, "equal"]) == ("", "")
    row = rows_of(plan, "power").iloc[0]
    assert cells.loc[power, "better"] == f"{row['value']:.2f} ({row['mc_error']:.3f})"
    plain = plan.table(errors=False).set_index("characteristic")
    assert plain.loc["rounds: arm 0", "better"] == f"{rows_of(plan, 'rounds')['value'].iloc[0]:.1f}"
    text = str(plan)
    assert text.splitlines()[0] == "Uniform()"
    told = "[1] Wrong way: in n rounds, an inferior arm is assigned over 0.1 n times more than the best arm."
    assert told in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    quantiles = [line for line in text.splitlines() if line.startswith("rounds: arm 0, quantiles")]
    assert plan.table()["better"].iloc[2].split()[0] in quantiles[0]
    assert plan.to_markdown().startswith("| characteristic | better | equal |")
    plan.to_csv(tmp_path / "plan.csv")
    assert len(pd.read_csv(tmp_path / "plan.csv")) == len(plan.frame)
    several = operating_characteristics(Uniform(), {"better": BETTER}, [1_000, 60], 64, rng=1).table()
    assert several.columns.tolist() == ["characteristic", "better, n = 1,000", "better, n = 60"]


RARE = FiniteContext([0.97, 0.03], [[0.3, 0.6], [0.3, 0.6]])


def literal_choices(runs, seed):
    """Selections by context, of shape (runs, contexts, arms)."""
    chosen = np.zeros((runs, 2, 2))
    for run, log in enumerate(Uniform().logs(RARE, 60, runs, seed)):
        arrays = log.arrays
        for place in range(2):
            own = [
                arrays.reward[(arrays.context["feature"] == place) & (arrays.action == arm)] for arm in (0, 1)
            ]
            if min(part.size for part in own) == 0:
                continue
            means = [part.mean() for part in own]
            top = [mean >= max(means) - 1e-12 for mean in means]
            chosen[run, place] = np.array(top) / sum(top)
    return chosen


@pytest.mark.parametrize("pair", [(1, 0), (0, 1)])
@pytest.mark.parametrize("seed", [0, 1])
def test_contexts_without_an_estimate_select_no_arm(pair, seed):
    """In trial 0 of seed 0 the rare context does not occur, and in many trials it has rounds of one arm."""

    def fit(log):
        return CATE(log, by="feature", treatment=pair[0], control=pair[1]).fit("difference-in-means")

    plan = operating_characteristics(
        Uniform(), RARE, 60, 128, rng=seed, fit=fit, selection=None if seed else "analysis"
    )
    assert plan.notes[1] == (
        "Selected: the arm with the highest estimate; if arms tie, the trial is divided equally among them."
    )
    expected = literal_choices(128, seed)
    assert 0.2 < (expected[:, 1].sum(axis=1) == 0).mean() < 0.8
    shares = rows_of(plan, "selected").set_index(["context", "arm"])["value"]
    for place in range(2):
        for arm in range(2):
            assert shares[str(place), str(arm)] == pytest.approx(expected[:, place, arm].mean(), abs=1e-12)
    nobody = rows_of(plan, "no selection")["value"].tolist()
    assert nobody == pytest.approx((expected.sum(axis=2) == 0).mean(axis=0))
    correct = rows_of(plan, "correct selection")["value"].tolist()
    assert correct == pytest.approx(expected[:, :, 1].mean(axis=0))


def test_the_rule_does_not_depend_on_what_the_first_trial_has():
    calls = []

    def late(log):
        calls.append(0)
        return {} if len(calls) <= 3 else {"a": contrast(log)}

    plan = operating_characteristics(Uniform(), BETTER, 60, 64, rng=0, fit=late)
    assert plan.notes[1].startswith("Selected: the arm with the highest estimate of 'a'")


def test_trials_of_another_kind_of_result_select_no_arm():
    calls = []

    def fit(log):
        calls.append(0)
        cate = CATE(log, by="feature", treatment=1, control=0).fit("difference-in-means")
        return {"a": cate if len(calls) % 2 else contrast(log)}

    env = FiniteContext([0.5, 0.5], [[0.2, 0.8], [0.8, 0.2]])
    plan = operating_characteristics(Uniform(), env, 80, 64, rng=0, fit=fit, selection="analysis")
    assert rows_of(plan, "no selection")["value"].tolist() == [0.5, 0.5]


def sometimes(log):
    """A result in logs with an even sum of rewards."""
    return {} if log.arrays.reward.sum() % 2 else {"a": contrast(log)}


def test_trials_without_a_result_are_without_an_interval():
    logs = list(Uniform().logs(EQUAL, 50, 128, 0))
    there = sum(float(log.arrays.reward.sum()) % 2 == 0 for log in logs)
    assert 40 < there < 90
    plan = operating_characteristics(Uniform(), EQUAL, 50, 128, rng=0, fit=sometimes)
    [row] = rows_of(plan, "without interval").to_dict("records")
    assert row["value"] == (128 - there) / 128
    assert row["trials"] == 128
    assert row["note"] == f"{128 - there} trials have no such result or term"
    [covered] = rows_of(plan, "coverage").to_dict("records")
    assert covered["trials"] == there
    assert any(
        f"In up to {128 - there} trials, the analysis returned no such result" in n for n in plan.notes
    )
    assert "share without interval: 1 - 0, a" in plan.table()["characteristic"].tolist()


def test_shares_have_exact_limits():
    plan = operating_characteristics(Uniform(), {"a": BETTER}, 60, 64, rng=0, fit=contrast)
    for measure in ("power", "coverage", "wrong way"):
        row = rows_of(plan, measure).iloc[0]
        count = round(row["value"] * 64)
        assert 0 < count < 64
        assert row["low"] == pytest.approx(beta.ppf(0.025, count, 65 - count))
        assert row["high"] == pytest.approx(beta.ppf(0.975, count + 1, 64 - count))
    [nobody] = rows_of(plan, "no selection").to_dict("records")
    assert (nobody["value"], nobody["mc_error"], nobody["low"]) == (0.0, 0.0, 0.0)
    assert nobody["high"] == pytest.approx(1 - 0.025 ** (1 / 64))
    assert rows_of(plan, "rounds")[["low", "high"]].isna().all(axis=None)
    cells = plan.table().set_index("characteristic")["a"]
    assert cells["P(none selected)"] == "0.000 (< 0.0458)"  # 1 - .05^(1/64) = 0.04573
    assert plan.table(errors=False).set_index("characteristic")["a"]["P(none selected)"] == "0.000"
    assert plan.notes[-1].startswith("A share of 0 or 1 has no standard error")


def test_tied_arms_widen_the_limits():
    plan = operating_characteristics(Uniform(), BernoulliArms([1.0, 1.0, 0.0]), 60, 64, rng=0)
    chosen = rows_of(plan, "selected")
    assert chosen["low"].tolist() == [0.0, 0.0, 0.0]
    assert chosen["high"].tolist() == pytest.approx([1.0, 1.0, 1 - 0.025 ** (1 / 64)])
    cells = plan.table().set_index("characteristic")["BernoulliArms"]
    assert cells["P(best arm selected)"] == "1.000 (> 0.9542)"


def test_one_trial_has_no_standard_error():
    plan = operating_characteristics(Uniform(), BETTER, 60, 1, rng=0, fit=contrast)
    assert plan.frame["mc_error"].isna().all()
    power = rows_of(plan, "power").iloc[0]
    assert (power["low"], power["high"]) == pytest.approx(
        (0.0, 0.975) if power["value"] == 0 else (0.025, 1.0)
    )
    assert plan.table().set_index("characteristic")["BernoulliArms"]["rounds: arm 0"].endswith("(n/a)")
