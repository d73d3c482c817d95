"""Trials with a plan: looks are recorded once, end the trial, and are what its log states."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from claims_said import says
from crashes import STEPS, arm, entries, in_child, rechained

import adaptinf as ai
from adaptinf.claims.logs import plans as claims
from adaptinf.claims.logs.plans import OVERRIDDEN, USE_PLAN
from adaptinf.claims.logs.stopping import DATA_CHOSEN, STOPPED
from adaptinf.errors import InvalidForLog, JournalError, ParameterError
from adaptinf.inference.group_sequential.score_process import score_process
from adaptinf.inference.results import Results
from adaptinf.simulation.replicate import block_stream
from adaptinf.trial import Trial, requests
from adaptinf.trial.trial_setup import Coins

COIN = ai.designs.Uniform()
LOOKS = [40, 80, 120]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trial.db"


def plan_of(design: Any = COIN, **others: Any) -> ai.Plan:
    options = {"arms": ("usual", "new"), "treatment": "new", "control": "usual", "looks": LOOKS, "least": 2}
    return ai.Plan(design, **{**options, **others})


def outcomes_of(usual: float, new: float, seed: int = 1, count: int = 120) -> Callable[[int, Any], float]:
    """Outcomes that every participant would have with either arm."""
    drawn = np.random.default_rng(seed).random(count)
    return lambda number, given: float(drawn[number - 1] < (new if given == "new" else usual))


def enrol(trial: Trial, outcome: Callable[[int, Any], float], until: int) -> None:
    """Participants up to a number, with their outcomes."""
    for number in range(trial.status().rounds + 1, until + 1):
        decision = trial.assign(number, key=f"assign {number}")
        trial.record(decision.id, outcome(number, decision.arm), key=f"record {number}")


def refused(call: Callable[..., Any], *given: Any, **named: Any) -> str:
    with pytest.raises(ParameterError) as caught:
        call(*given, **named)
    return str(caught.value).partition(": ")[2]


@pytest.fixture(autouse=True)
def same_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adaptinf.trial.trial_setup.fresh_seed", lambda: bytes(range(32)))


def stopped(path: Path, until: int = 80) -> Trial:
    """A trial that its plan ended at the second look, or that may still continue."""
    trial = Trial.create(path, plan_of())
    for rounds in LOOKS:
        enrol(trial, outcomes_of(0.15, 0.6), min(rounds, until))
        trial.look()
        if rounds == until:
            break
    return trial


def test_a_look_is_recorded_once_and_ends_the_trial(path: Path) -> None:
    trial, outcome = Trial.create(path, plan_of()), outcomes_of(0.15, 0.6)
    assert (trial.status().horizon, trial.status().next_look, trial.arms) == (120, 40, ("usual", "new"))
    assert str(trial.look()) == "No look yet: the first of 3 is after 40 participants"
    enrol(trial, outcome, 39)
    last = trial.assign(40, key="assign 40")
    waiting = (
        "look 1 is after 40 participants, and 1 outcome has not arrived (decision 40): record each, as None "
        "if it will never arrive, and look again"
    )
    assert refused(trial.look) == waiting
    trial.record(last.id, outcome(40, last.arm), key="record 40")
    first, rows = trial.look(), trial.status().rows
    assert (first.stage, first.rounds, first.decision, first.next) == (1, 40, "continue", 80)
    assert trial.look() == first
    assert (trial.status().rows, trial.status().next_look) == (rows, 80)
    enrol(trial, outcome, 80)
    second = trial.look()
    assert str(second).startswith("Look 2 of 3, after 80 participants\n  statistic  ")
    assert str(second).endswith(f"rejects from {second.bound:.3f}\n  decision   reject")
    status = trial.status()
    assert (status.state, status.next_look) == ("paused", None)
    assert status.reason == "look 2 of 3, after 80 participants: reject"
    assert refused(trial.assign, 81, key="assign 81") == f"the trial is paused: {status.reason}"
    assert trial.look() == second
    trial.finish()
    assert trial.history()[-1].reason == status.reason
    assert trial.look() == second
    frame = trial.looks()
    assert frame["decision"].tolist() == ["continue", "reject"]
    assert frame["statistic"].tolist() == [first.statistic, second.statistic]
    assert frame["lost"].tolist() == [0, 0]
    assert trial.verify().rows == status.rows + 1
    trial.close()


def test_a_file_states_its_plan_and_its_table_is_the_stage_wise_one(path: Path, tmp_path: Path) -> None:
    with stopped(path) as trial:
        trial.finish()
    with Trial.open(path) as trial:
        log = trial.log()
    assert log.stopping == "planned"
    assert "stopping: planned, after 80 of 120 rounds ('look 2 of 3, after 80 participants: reject')" in str(
        log
    )
    log.to_csv(tmp_path / "log.csv")
    log.to_parquet(tmp_path / "log.parquet")
    for name in ("log.csv", "log.parquet"):
        found = ai.read_log(tmp_path / name)
        assert found.equals(log)
        again = ai.Plan.of(found)
        assert again.arguments == plan_of().arguments
        result = again.analyse(found)
        assert (result.decision, result.rounds) == ("reject", 80)
        methods = ai.recommend(found)
        assert methods.target == "contrast"
        assert (methods.best.call, methods.best.verdict.label) == ("Plan.of(log).analyse(log)", "asymptotic")
        assert methods.fit().to_frame().equals(result.to_frame())
        assert not next(one for one in methods.methods if one.verdict.name == "alee").verdict.valid
        naive = ai.Contrast(found, treatment="new", control="usual").fit()
        assert any(USE_PLAN() in caution for caution in naive.cautions)
        assert ai.recommend(found, "arm-means").best.verdict.label == "anytime"
    assert ai.recommend(log, "contrast", treatment="usual", control="new").best.verdict.label == "anytime"


def test_a_report_of_a_stopped_trial_shows_the_stage_wise_table(path: Path, tmp_path: Path) -> None:
    with stopped(path) as trial:
        log = trial.log()
    ai.report(log, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Plan Results: 95% confidence intervals" in text
    assert "Plan.of(log).analyse(log)" in text
    assert "Uniform (planned_rounds = 120" in text
    assert "plan = {" not in text


class OneStream(Coins):
    """Coins as a simulation draws them: one after the other, from one seed."""

    def __init__(self, seed: bytes) -> None:
        super().__init__(seed)
        self.generator = block_stream(np.random.SeedSequence(5), 0)

    def set(self, event: str, number: int) -> None:
        """Nothing is set."""


@pytest.mark.parametrize("law", ["z", "rerandomization"])
@pytest.mark.parametrize(
    "design",
    [COIN, ai.designs.Thompson(floor=0.2), ai.designs.EpsilonGreedy()],
    ids=lambda one: type(one).__name__,
)
def test_live_decisions_are_those_of_the_simulation_with_the_same_coins(
    path: Path, monkeypatch: pytest.MonkeyPatch, design: Any, law: str
) -> None:
    monkeypatch.setattr("adaptinf.trial.trial_setup.Coins", OneStream)
    table = (np.random.default_rng(2).random((120, 2)) < [0.2, 0.6]).astype(float)
    plan = plan_of(design, law=law, replays=99, futility=0.0, looks=[60, 120])
    simulated = design.run(ai.environments.Tableau(table), horizon=120, rng=5)
    trial = Trial.create(path, plan)
    for number in range(1, 121):
        decision = trial.assign(number, key=f"assign {number}")
        assert decision.arm == plan.arms[simulated.arrays.action[number - 1]]
        trial.record(decision.id, table[number - 1, plan.arms.index(decision.arm)], key=f"record {number}")
        if number in (60, 120):
            found = trial.look()
            assert found == plan.look(simulated[:number])
            if found.decision != "continue":
                break
    assert found.decision != "continue"
    told, expected = plan.analyse(trial.log()), plan.analyse(simulated)
    np.testing.assert_array_equal(told.params.to_numpy(), expected.params.to_numpy())
    np.testing.assert_array_equal(told.pvalues.to_numpy(), expected.pvalues.to_numpy())
    trial.close()


def test_a_person_may_continue_after_a_rejection_and_every_table_says_so(path: Path) -> None:
    trial = stopped(path)
    why = "the board wants more safety data"
    told = (
        "by is required: look 2 of 3, after 80 participants: reject, and someone must answer for continuing"
    )
    assert refused(trial.resume, why) == told
    trial.resume(why, by="the board")
    assert (trial.status().state, trial.status().next_look) == ("open", None)
    assert refused(trial.finish) == "reason is required: no look of the plan has ended the trial"
    enrol(trial, outcomes_of(0.15, 0.6), 120)
    assert (trial.look().stage, trial.look().decision) == (2, "reject")
    frame = trial.looks()
    assert frame["continued_by"].fillna("").tolist() == ["", "the board"]
    assert frame["continued_because"].fillna("").tolist() == ["", why]
    trial.close()
    with Trial.open(path) as trial:
        log = trial.log()
    said = OVERRIDDEN(stage=2, decision="reject")
    results: list[Results] = [
        ai.Plan.of(log).analyse(log),
        ai.ArmMeans(log).fit(),
        ai.ConfidenceSequence(log, target="contrast", treatment="new", control="usual").fit(),
    ]
    assert all(said in result.cautions for result in results)
    assert results[0].decision == "reject"
    assert "Caution   The trial was continued manually after look 2" in str(results[1])


def test_a_futile_trial_may_continue_to_its_next_looks(path: Path) -> None:
    plan, outcome = plan_of(futility=1.0), outcomes_of(0.4, 0.4, seed=4)
    trial = Trial.create(path, plan)
    enrol(trial, outcome, 40)
    assert trial.look().decision == "futility"
    trial.resume("more sites join", by="the sponsor")
    assert trial.status().next_look == 80
    enrol(trial, outcome, 80)
    assert (trial.look().stage, trial.look().decision) == (2, "futility")
    trial.resume("more sites join", by="the sponsor")
    enrol(trial, outcome, 120)
    last = trial.look()
    assert (last.stage, last.decision) == (3, "no rejection")
    assert trial.verify().state == "paused"
    trial.finish()
    log = trial.log()
    assert ai.Plan.of(log).analyse(log).decision == "no rejection"
    assert plan.look(log) == last
    assert [look["overridden"] for look in log.design.parameters["looks"]] == [True, True, False]
    trial.close()


def test_lost_outcomes_divide_by_the_observed_share(path: Path) -> None:
    trial, outcome = Trial.create(path, plan_of()), outcomes_of(0.3, 0.5, seed=8)
    for number in range(1, 41):
        decision = trial.assign(number, key=f"assign {number}")
        lost = number % 4 == 0 and decision.arm == "new"
        trial.record(decision.id, None if lost else outcome(number, decision.arm), key=f"record {number}")
    found, log = trial.look(), trial.log("drop")
    drawn, seen, expected = [0, 0], [0, 0], []
    arrays = log.arrays
    for action, reward in zip(arrays.action.tolist(), arrays.recorded.tolist(), strict=True):
        expected.append([0.5 * seen[one] / drawn[one] if drawn[one] else 0.5 for one in (0, 1)])
        drawn[action] += 1
        seen[action] += not np.isnan(reward)
    lost = np.isnan(arrays.recorded)
    known = np.where(lost, -1, arrays.action), np.where(lost, 7.0, arrays.recorded), np.array(expected)
    assert 0 < lost.sum() < 10
    score = score_process(*known, (1, 0), np.array([40]))
    process = plan_of().process(log, np.array([40]))
    np.testing.assert_allclose([process.score, process.clock], [score.score, score.clock], rtol=1e-12)
    assert trial.looks()["lost"].tolist() == [int(np.isnan(log.arrays.recorded).sum())]
    assert found.stage == 1
    for missing in ("worst", "best", "bounds"):
        with pytest.raises(InvalidForLog) as caught:
            plan_of().look(trial.log(missing))
        assert caught.value.reason == claims.BOUNDED()
    trial.close()


def test_looks_that_were_not_taken_in_time_are_taken_in_order(path: Path) -> None:
    with Trial.create(path, plan_of()) as trial:
        enrol(trial, outcomes_of(0.4, 0.45, seed=3), 100)
        assert trial.status().next_look == 40
        assert trial.look().stage == 2
        assert trial.looks()["stage"].tolist() == [1, 2]
        trial.assign(101, key="ahead")
        assert trial.log("drop").stopping == "planned"
    with Trial.create(path.with_name("two.db"), plan_of()) as trial:
        enrol(trial, outcomes_of(0.4, 0.45, seed=3), 79)
        trial.assign(80, key="80")
        assert trial.look().stage == 1
        assert refused(trial.look).startswith("look 2 is after 80 participants")


def test_a_trial_finished_by_hand_is_chosen_by_the_data(path: Path) -> None:
    with Trial.create(path, plan_of()) as trial:
        enrol(trial, outcomes_of(0.4, 0.45, seed=3), 60)
        trial.look()
        trial.finish("no money", by="the sponsor")
        log = trial.log()
    assert log.stopping == "data-chosen"
    methods = ai.recommend(log)
    assert methods.best.verdict.label == "anytime"
    plan = next(one for one in methods.methods if one.verdict.name == "plan")
    assert plan.verdict.reason == claims.GOES_ON(rounds=60, after=80)
    naive = ai.Contrast(log, treatment="new", control="usual").fit()
    assert says(naive.cautions, STOPPED)
    assert not says(naive.cautions, DATA_CHOSEN)


def test_amended_outcomes_leave_the_look_and_the_table_says_so(path: Path) -> None:
    trial = stopped(path)
    second, why = trial.look(), {"reason": "a slip", "by": "a monitor"}
    given = trial.log().frame
    for number in range(80):
        if given["action"][number] == "new" and given["reward"][number] == 1.0:
            trial.amend(number + 1, 0.0, key=f"amend {number}", **why)
    assert trial.look() == second
    log = trial.log()
    with pytest.raises(InvalidForLog) as caught:
        ai.Plan.of(log).analyse(log)
    assert says([caught.value.reason], claims.DIFFERS)
    assert "the decision recorded at look 2 was 'reject', but" in caught.value.reason
    unamended = trial.log(amended=False)
    assert ai.Plan.of(unamended).analyse(unamended).decision == "reject"
    assert trial.verify().state == "paused"
    trial.close()


def test_verify_recomputes_looks(path: Path, tmp_path: Path) -> None:
    stopped(path).close()

    def changed(number: int, entry: dict[str, Any]) -> dict[str, Any]:
        last = entry["kind"] == "look" and entry["stage"] == 2
        return {**entry, "statistic": entry["statistic"] + 1e-3} if last else entry

    with closing(sqlite3.connect(path)) as file:
        file.execute("DROP TABLE IF EXISTS snapshot_state")
        rechained(file, changed)
    with Trial.open(path) as trial:
        assert trial.status().state == "paused"
        with pytest.raises(JournalError, match="differs from what its design decides"):
            trial.verify()


def test_looks_are_seen_by_others_and_kept_in_snapshots(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "EVERY", 7)
    trial = Trial.create(path, plan_of())
    other = Trial.open(path)
    for rounds in (40, 80):
        enrol(trial, outcomes_of(0.15, 0.6), rounds)
        found = trial.look()
        assert other.look() == found
    assert "the trial is paused: look 2" in refused(other.assign, 81, key="81")
    assert trial.verify() == other.status()
    trial.close()
    other.close()
    with Trial.open(path) as trial:
        assert trial.look() == found
        assert trial.looks()["stage"].tolist() == [1, 2]
        trial.backup(path.with_name("copy.db"))
    with Trial.open(path.with_name("copy.db")) as copy:
        assert "use restore" in refused(copy.look)
        assert copy.looks()["stage"].tolist() == [1, 2]


def test_a_trial_without_a_plan_is_as_before(path: Path) -> None:
    with Trial.create(path, COIN, ["a", "b"], horizon=9) as trial:
        assert "plan" not in entries(path)[0]
        assert refused(trial.look) == "the trial has no plan: create it with Trial.create(path, plan)"
        assert trial.looks().empty
        assert trial.status().next_look is None
        assert refused(trial.finish).startswith("reason must be a string")
        trial.assign(1, key=1)
        log = trial.log("drop")
    assert "plan" not in log.design.parameters
    assert refused(ai.Plan.of, log) == "the log does not state a plan: its trial was created without one"


def test_what_a_plan_states_cannot_be_stated_otherwise(path: Path) -> None:
    with pytest.raises(ParameterError) as caught:
        Trial.create(path, plan_of(ai.designs.UCB()), ["a", "b"], horizon=10)
    assert len(caught.value.problems) == 3
    told = str(caught.value)
    assert "arms must be those of the plan, ['usual', 'new'], or omitted: got ['a', 'b']" in told
    assert "horizon must be that of the plan, 120, omitted, or for a plan with law='z' larger" in told
    assert (
        "looks weight outcomes by the inverse of the arms' probabilities, but UCB does not draw arms at "
        "random: wrap it in a Mixture"
    ) in told
    with pytest.raises(ParameterError) as caught:
        Trial.create(path, COIN)
    assert [one.partition(" ")[0] for one in caught.value.problems] == ["arms", "horizon"]
    assert not path.exists()
    Trial.create(path, plan_of(), ["usual", "new"], 120, reward_range=(0.0, 2.0)).close()


def test_a_user_defined_design_is_not_needed_for_the_table(path: Path) -> None:
    def choose(state: Any, context: Any, rng: np.random.Generator) -> list[float]:
        return [0.5, 0.5]

    design = ai.designs.FunctionDesign(choose, traits=ai.designs.DesignTraits(uses_context="no"))
    with Trial.create(path, plan_of(design)) as trial:
        enrol(trial, outcomes_of(0.15, 0.6), 40)
        assert trial.look().stage == 1
    with Trial.open(path, design) as trial:
        enrol(trial, outcomes_of(0.15, 0.6), 80)
        assert trial.look().decision == "reject"
        log = trial.log()
    assert ai.Plan.of(log).analyse(log).decision == "reject"
    alone = ai.Plan.of(log)
    told = (
        "FunctionDesign is a user-defined design, which cannot be stored in a file: use Plan.of(log, "
        "design=...)"
    )
    with pytest.raises(ParameterError, match=r"cannot be stored in a file") as caught:
        alone.design.run(ai.environments.BernoulliArms([0.5, 0.5]), horizon=5, rng=0)
    assert told in str(caught.value)
    assert ai.Plan.of(log, design).design is design


def test_no_guarantee_covers_the_number_of_rounds_once_a_plan_has_looked(path: Path) -> None:
    with Trial.create(path, plan_of()) as trial:
        enrol(trial, outcomes_of(0.4, 0.45, seed=3), 39)
        assert trial.log().guarantee is not None
        enrol(trial, outcomes_of(0.4, 0.45, seed=3), 40)
        trial.look()
        log = trial.log()
    assert log.guarantee is None
    told = "the trial's plan looked at outcomes after 40 participants to decide whether it continues"
    assert log.unpromised == (told,)


def test_a_beginning_of_a_log_has_the_looks_up_to_it(path: Path) -> None:
    with stopped(path) as trial:
        log = trial.log()
    part = log.until(50)
    assert [look["rounds"] for look in part.design.parameters["looks"]] == [40]
    assert ai.Plan.of(part).look(part).stage == 1


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_a_kill_during_a_look_leaves_all_of_it_or_none(path: Path) -> None:
    """Killed at every step of a request; afterwards, the look is taken once and is the same."""
    with Trial.create(path, plan_of()) as trial:
        enrol(trial, outcomes_of(0.15, 0.6), 80)
        trial.backup(path.with_name("calm.db"))
    with Trial.open(path.with_name("calm.db")) as calm:
        log = calm.log()
        expected = [plan_of().look(log, stage) for stage in (1, 2)]
    kept, deaths = [], 0
    for point in range(2 * len(STEPS)):
        for count in (1, 2):
            source = path.with_name(f"{point} {count}.db")
            with Trial.create(source, plan_of()) as trial:
                enrol(trial, outcomes_of(0.15, 0.6), 80)

            def work(source: Path = source, point: int = point, count: int = count) -> None:
                with Trial.open(source) as trial:
                    arm(point, count)
                    trial.look()

            deaths += os.WIFSIGNALED(os.waitpid(in_child(work), 0)[1])
            with Trial.open(source) as trial:
                kept.append(len(trial.looks()))
                assert trial.look() == expected[1]
                frame = trial.looks()
                assert frame["statistic"].tolist() == [one.statistic for one in expected]
                assert trial.verify().state == "paused"
    assert set(kept) == {0, 2}
    assert deaths >= 8


def test_several_treatments_are_looked_at_together_and_one_leaves(path: Path, tmp_path: Path) -> None:
    plan = ai.Plan(
        COIN,
        arms=("usual", "low", "high"),
        treatment=("low", "high"),
        control="usual",
        looks=[60, 120, 180],
        drop=-0.5,
        sides=1,
        alpha=0.025,
        least=0,
    )
    chances = {"usual": 0.4, "low": 0.1, "high": 0.8}
    drawn = np.random.default_rng(6).random(180)
    with Trial.create(path, plan) as trial:
        enrol(trial, lambda number, given: float(drawn[number - 1] < chances[given]), 60)
        first = trial.look()
        assert (first.decision, first.dropped, trial.status().removed) == ("continue", ("low",), ("low",))
        assert trial.history()[-1].by == "the plan"
        assert trial.look() == first
        enrol(trial, lambda number, given: float(drawn[number - 1] < chances[given]), 120)
        second = trial.look()
        assert (second.decision, second.leading, second.rejected) == ("reject", "high", ("high",))
        assert trial.verify().state == "paused"
        trial.finish()
        log = trial.log()
    with Trial.open(path) as trial:
        assert trial.look() == second
        assert trial.looks()["dropped"].tolist() == [["low"], ["low"]]
    log.to_parquet(tmp_path / "log.parquet")
    methods = ai.recommend(ai.read_log(tmp_path / "log.parquet"))
    assert (methods.target, methods.best.call) == ("contrasts", "Plan.of(log).analyse(log)")
    assert methods.fit().rejected == ("high",)


def test_a_plan_may_be_changed_blindly_and_keeps_what_was_spent(path: Path) -> None:
    with Trial.create(path, plan_of(), horizon=200) as trial:
        outcome = outcomes_of(0.4, 0.45, count=200)
        trial.amend_plan([50, 100, 150], reason="the pilot took ten more", by="the sponsor")
        assert trial.status().next_look == 50
        enrol(trial, outcome, 50)
        told = refused(trial.amend_plan, [60, 120], reason="slow", by="the sponsor", blinded=True)
        assert told == "a look is due: take it first"
        first = trial.look()
        told = refused(trial.amend_plan, [50, 180], reason="slow", by="the sponsor")
        assert told.startswith("looks have been taken: blinded=True is required")
        for looks, why in (
            ([60, 120], "looks must begin with the 1 that have been taken, [50], of 3, got [60, 120]"),
            ([50, 220], "the trial can have at most 200 participants, got looks that need 220"),
        ):
            assert refused(trial.amend_plan, looks, reason="slow", by="him", blinded=True) == why
        trial.amend_plan([50, 120, 180], reason="more sites join", by="the sponsor", blinded=True)
        assert trial.look() == plan_of(looks=[50, 120, 180], earlier=[1 / 3]).recorded(
            {**{name: getattr(first, name) for name in ("stage", "rounds", "statistic", "bound")}}
            | {"decision": first.decision, "leading": "new"}
        )
        enrol(trial, outcome, 120)
        second = trial.look()
        assert (second.stage, second.rounds, second.planned) == (2, 120, (50, 120, 180))
        act = [one for one in trial.history() if one.kind == "amend_plan"][-1]
        assert (act.looks, act.reason, act.by) == ([50, 120, 180], "more sites join", "the sponsor")
        trial.verify()
    with Trial.open(path) as trial:
        assert trial.status().next_look == 180
        enrol(trial, outcome, 180)
        trial.look()
        log = trial.log()
        trial.verify()
    plan = ai.Plan.of(log)
    assert (plan.horizon, plan.fractions.tolist()) == (180, [1 / 3, 120 / 180, 1.0])
    assert plan.look(log[:120]).bound == pytest.approx(second.bound, rel=1e-9)
    result = plan.analyse(log)
    assert result.decision in ("reject", "no rejection")


def test_what_a_change_of_plan_refuses(path: Path) -> None:
    with Trial.create(path, plan_of(law="rerandomization")) as trial:
        assert "only plans with law" in refused(trial.amend_plan, [10], reason="r", by="b")
        assert "reason must be" in refused(trial.amend_plan, [10], reason="", by="b")
    with stopped(path.with_name("other.db")) as trial:
        assert refused(trial.amend_plan, [40, 80, 100], reason="r", by="b", blinded=True) == (
            "a look has ended the trial"
        )
