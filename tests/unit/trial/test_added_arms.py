"""Arms that join a trial: propensities from then on, equal to a literal computation from the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crashes import both, entries
from scipy import stats
from test_kits import arms_of, blinded, refused

import adaptinf as ai
from adaptinf.audit.rerun.logged_rows import late_problems
from adaptinf.designs import (
    DBCD,
    KLUCB,
    UCB,
    Design,
    EpsilonGreedy,
    FunctionDesign,
    LinUCB,
    Mixture,
    PermutedBlocks,
    PrivateSuccessiveElimination,
    PrivateUCB,
    Thompson,
    TopTwoThompson,
    Uniform,
)
from adaptinf.trial import Trial, requests

MEANS = {"a": 0.3, "b": 0.5, "c": 0.7}
WHY = {"reason": "amendment 2", "by": "the sponsor"}
JOINS, PEOPLE, LATE = 60, 200, 3


def run(trial: Trial, people: range, seed: int = 1, lost: int = 7) -> None:
    """Participants whose outcomes arrive three participants late, and some never."""
    rng = np.random.default_rng(seed)
    for number in people:
        if number == JOINS:
            assert trial.add_arm("c", key="c", **WHY) == ("a", "b", "c")
        trial.assign(number, key=f"a{number}")
        if number >= LATE:
            told(trial, number - LATE, rng, lost)


def told(trial: Trial, number: int, rng: Any, lost: int) -> None:
    arm = trial._requests.read(lambda replay: replay.session.arm_of(number + 1))
    reward = float(rng.random() < MEANS[arm]) if (number + 1) % lost else None
    trial.record(number + 1, reward, key=f"r{number}")


def history(log: ai.AdaptiveLog) -> list[tuple[np.ndarray, np.ndarray, int]]:
    """Sums and counts by arm that the design knew before each round, and the number of its arms."""
    action, reward = log.arrays.action, log.arrays.recorded
    found = []
    for step in range(log.n_rounds):
        known = np.arange(max(step - LATE, 0))
        known = known[(known + 1) % 7 != 0]
        counts = np.bincount(action[known], minlength=3).astype(float)
        sums = np.bincount(action[known], weights=reward[known], minlength=3)
        found.append((sums, counts, 2 if step < JOINS else 3))
    return found


def greedy(sums: np.ndarray, counts: np.ndarray, arms: int) -> int:
    means = [sums[arm] / counts[arm] if counts[arm] else np.inf for arm in range(arms)]
    return int(np.argmax(means))


@both
def test_epsilon_greedy_is_as_computed_by_hand(path: Path) -> None:
    with Trial.create(path, EpsilonGreedy(exploration=0.3), ["a", "b"], horizon=PEOPLE) as trial:
        run(trial, range(PEOPLE))
        log = trial.log("drop")
        trial.verify()
    for row, (sums, counts, arms) in zip(log.arrays.propensities, history(log), strict=True):
        expected = np.zeros(3)
        expected[:arms] = 0.3 / arms
        expected[greedy(sums, counts, arms)] += 0.7
        assert np.allclose(row, expected, atol=1e-12)
    assert (log.arrays.action[:JOINS] < 2).all()
    assert (log.arrays.action[JOINS:] == 2).any()


def test_outcomes_that_came_just_before_are_known(path: Path) -> None:
    with Trial.create(path, EpsilonGreedy(exploration=0.3), ["a", "b"], horizon=PEOPLE) as trial:
        made = [trial.assign(number, key=f"a{number}") for number in range(40)]
        for one in made:
            trial.record(one.id, float(one.arm == "b"), key=f"r{one.id}")
        trial.add_arm("c", key="c", **WHY)
        while made[-1].arm != "c":
            made.append(trial.assign(len(made), key=f"a{len(made)}"))
        trial.record(len(made), 0.5, key="new")
        trial.assign(len(made), key="last")
        assert trial.log("drop").arrays.propensities[-1] == pytest.approx([0.1, 0.8, 0.1])
        trial.verify()


def test_thompson_is_as_computed_from_its_posteriors(path: Path) -> None:
    design = Thompson(draws=4_000)
    with Trial.create(path, design, ["a", "b"], horizon=120) as trial:
        run(trial, range(120))
        log = trial.log("drop")
    grid = (np.arange(4_000) + 0.5) / 4_000
    for step in range(JOINS, 120, 6):
        sums, counts, _ = history(log)[step]
        laws = [stats.beta(1 + s, 1 + n - s) for s, n in zip(sums, counts, strict=True)]
        best = [
            float(
                np.mean(
                    laws[arm].pdf(grid)
                    * np.prod([laws[other].cdf(grid) for other in range(3) if other != arm], axis=0)
                )
            )
            for arm in range(3)
        ]
        found = log.arrays.propensities[step]
        assert np.abs(found - best).max() < 0.04, step


DESIGNS: list[Design] = [
    Uniform(),
    EpsilonGreedy(exploration=0.3, batch_size=7),
    Thompson(floor=0.1),
    TopTwoThompson(floor=0.1),
    Mixture(UCB(), exploration=0.3),
    Mixture(KLUCB(), exploration=0.3),
]


@pytest.mark.parametrize("design", DESIGNS, ids=[repr(design)[:16] for design in DESIGNS])
def test_a_trial_opened_again_goes_on_alike(
    path: Path, monkeypatch: pytest.MonkeyPatch, design: Design
) -> None:
    """From a snapshot, from the first row, and without a pause: the same arms and propensities."""
    monkeypatch.setattr(requests, "EVERY", 25)
    with Trial.create(path, design, ["a", "b"], horizon=PEOPLE) as trial:
        run(trial, range(80))
        trial._requests.keep()
    with Trial.open(path) as trial:
        run(trial, range(80, 110))
        status = trial.verify()
        assert status.arms == ("a", "b", "c")
        log = trial.log("drop")
    rows = log.arrays.propensities
    assert np.abs(rows.sum(axis=1) - 1.0).max() < 1e-12
    assert (rows[:JOINS, 2] == 0.0).all()
    assert (rows[JOINS:, 2] > 0.0).all()
    assert log.design is not None
    assert log.design.parameters["added_arms"] == [["c", JOINS]]
    assert log.guarantee is None
    assert log.design.traits.floor is None
    assert log.design.traits.adapts
    if isinstance(design, Uniform):
        assert np.allclose(rows[JOINS:], 1 / 3)
        assert "arms were added by hand" in log.design.parameters["no_guarantee"][0]
    if isinstance(design, Mixture):  # an arm never tried is proposed first
        assert rows[JOINS, 2] == pytest.approx(0.7 + 0.1)


def test_requests_count_once_and_refusals_say_what_to_do(path: Path) -> None:
    with Trial.create(path, Uniform(), ["a", "b"], horizon=9) as trial:
        assert (
            refused(trial.add_arm, "c", key="c", **WHY) == "no one has been assigned yet: begin with the arm"
        )
        trial.assign(1, key="k")
        assert trial.add_arm("c", key="c", **WHY) == ("a", "b", "c")
        rows = trial.status().rows
        assert trial.add_arm("c", key="c", **WHY) == ("a", "b", "c")
        assert trial.status().rows == rows
        assert "another request" in refused(trial.add_arm, "d", key="c", **WHY)
        assert "arms must be distinct labels" in refused(trial.add_arm, "c", key="d", **WHY)
        assert trial.add_arm("d", key="d", **WHY) == ("a", "b", "c", "d")
        assert trial.add_arm("c", key="c", **WHY) == ("a", "b", "c")
        assert trial.remove_arm("a", key="x", **WHY) == ("b", "c", "d")
        trial.assign(2, key="l")
        assert trial.log("drop").arrays.propensities[1].tolist() == [0.0, 1 / 3, 1 / 3, 1 / 3]
        assert [act.arm for act in trial.history()] == ["c", "d", "a"]
        trial.verify()
        trial.finish("all are in")
        assert "finished" in refused(trial.add_arm, "e", key="e", **WHY)


REFUSED: list[tuple[Design, dict[str, Any], str]] = [
    (PermutedBlocks(), {}, "PermutedBlocks cannot add arms to those with which it began"),
    (DBCD(), {}, "DBCD cannot add arms"),
    (Thompson(initial_pulls=2), {}, "Thompson cannot add arms"),
    (Mixture(LinUCB()), {"dimension": 1}, "Mixture cannot add arms"),
    (Uniform(), {"dimension": 1}, "participants have context vectors"),
    (UCB(), {}, "UCB makes no random draws"),
    (
        Mixture(PrivateUCB(epsilon=1.0)),
        {"outcome_window": 1},
        "Mixture is private, and no guarantee covers the choice of when an arm joins",
    ),
    (
        PrivateSuccessiveElimination(epsilon=1.0),
        {"outcome_window": 1},
        "PrivateSuccessiveElimination is private, and no guarantee covers the choice",
    ),
    (FunctionDesign(lambda state, context, rng: [0.4, 0.6]), {}, "FunctionDesign cannot add arms"),
]


@pytest.mark.filterwarnings("ignore:.*makes no random draws:adaptinf.errors.AdaptinfWarning")
@pytest.mark.parametrize(("design", "options", "problem"), REFUSED)
def test_designs_that_cannot_take_an_arm(path: Path, design: Design, options: Any, problem: str) -> None:
    with Trial.create(path, design, ["a", "b"], horizon=3_000, **options) as trial:
        trial.assign(1, [0.5] if "dimension" in options else None, key="k")
        rows = trial.status().rows
        with pytest.raises(ai.errors.ParameterError) as caught:
            trial.add_arm("c", key="c", **WHY)
        assert any(problem in one for one in caught.value.problems)
        assert any("begin again with the arm" in one for one in caught.value.problems)
        assert trial.status().rows == rows


def test_a_floor_that_a_further_arm_would_break_is_refused(path: Path) -> None:
    with Trial.create(path, Thompson(floor=0.4), ["a", "b"], horizon=9) as trial:
        trial.assign(1, key="k")
        before = trial.status()
        assert "floor" in refused(trial.add_arm, "c", key="c", **WHY)
        assert trial.status() == before
        assert trial.assign(2, key="l").arm in ("a", "b")
        trial.verify()


def test_a_plan_has_its_arms(path: Path) -> None:
    plan = ai.Plan(Uniform(), arms=["a", "b"], treatment="b", control="a", looks=[10, 20])
    with Trial.create(path, plan) as trial:
        trial.assign(1, key="k")
        before = trial.status()
        assert refused(trial.add_arm, "c", key="c", **WHY) == (
            "the trial has a plan, which compares its own arms: finish, and begin again with the arm"
        )
        assert trial.status() == before


def test_a_private_trial_keeps_its_guarantee_after_a_refusal(path: Path) -> None:
    design = Mixture(PrivateUCB(epsilon=1.0), exploration=0.2)
    with Trial.create(path, design, ["a", "b"], horizon=4, outcome_window=0) as trial:
        for number in range(4):
            if number == 2:
                assert "is private" in refused(trial.add_arm, "c", key="c", **WHY)
            made = trial.assign(number, key=f"a{number}")
            trial.record(made.id, 1.0, key=f"r{number}")
        guarantee = trial.log().guarantee
        assert guarantee is not None
        assert guarantee.epsilon == 1.0
        assert trial.arms == ("a", "b")
        trial.verify()


def test_a_new_arm_needs_kits(path: Path) -> None:
    with blinded(path, design=Uniform()) as trial:
        trial.assign(1, key="a", site="Basel")
        trial.add_arm("mist", key="m", **WHY)
        assert "has no kit left" in refused(trial.assign, 2, key="b", site="Basel")
        codes = {f"{number}": "mist" for number in range(700_001, 700_041)}
        trial.add_kits("Basel", codes, key="new", by="the pharmacy")
        made = [trial.assign(n, key=f"k{n}", site="Basel") for n in range(3, 43)]
        assert "has no kit left" in refused(trial.assign, 99, key="z", site="Bern")
        assert {arms_of(path)[str(one.kit)] for one in made} == {"drug", "sham", "mist"}
        trial.verify()
        stock = trial.stock(by_arm=True)
    with Trial.open(path) as trial:
        assert trial.stock(by_arm=True).equals(stock)


def test_erasure_before_and_after(path: Path) -> None:
    """The choices that are repeated for a new arm need nothing that was erased."""
    with Trial.create(path, Thompson(floor=0.1), ["a", "b"], horizon=PEOPLE) as trial:
        run(trial, range(50))
        trial.erase(3, key="e", **WHY)
        run(trial, range(50, 70), seed=2)
        trial.erase(20, key="f", **WHY)
        run(trial, range(70, 90), seed=3)
        assert trial.verify().erased == 2
        rows = entries(path)
    with Trial.open(path) as trial:
        assert trial.verify().rounds == 90
    assert [row["kind"] for row in rows].count("add_arm") == 1


def test_contrasts_use_the_rounds_that_both_arms_had(path: Path) -> None:
    with Trial.create(path, Uniform(), ["a", "b"], horizon=PEOPLE) as trial:
        run(trial, range(PEOPLE), lost=PEOPLE + 1)
        for number in range(PEOPLE - LATE, PEOPLE):
            trial.record(number + 1, 1.0, key=f"last {number}")
        log = trial.log("drop")
    found = ai.Contrast(log, treatment="c", control="a").fit(estimator="ipw", weights="uniform")
    here = np.arange(log.n_rounds) >= JOINS
    action, reward = log.arrays.action, log.arrays.recorded
    use = here & ~np.isnan(reward)
    scores = [3.0 * np.where(action == arm, np.nan_to_num(reward), 0.0)[use] for arm in (2, 0)]
    assert found.params.iloc[0] == pytest.approx(np.mean(scores[0]) - np.mean(scores[1]), abs=1e-9)
    assert f"{JOINS} of {PEOPLE} rounds without c or a left out" in dict(found.summary().lines)["Method"]
    assert ai.Contrast(log, treatment="c", control="a").fit().estimator == "aipw"
    assert (
        "left out"
        not in dict(ai.Contrast(log, treatment="b", control="a").fit(estimator="aipw").summary().lines)[
            "Method"
        ]
    )
    problem, _ = late_problems(log)
    assert problem.startswith("arms were added by hand ('c' after round 60), and Uniform would not do so")
    for count, joined in ((100, [["c", JOINS]]), (JOINS, None)):
        design = log.until(count, missing="drop").design
        assert design is not None
        assert design.parameters.get("added_arms") == joined
    path = path.with_name("log.parquet")
    log.to_parquet(path)
    assert ai.read_log(path).equals(log)


def test_an_arm_that_was_also_removed_is_a_selected_sample(path: Path) -> None:
    with Trial.create(path, Uniform(), ["a", "b"], horizon=PEOPLE) as trial:
        run(trial, range(150))
        trial.remove_arm("c", key="x", **WHY)
        run(trial, range(150, PEOPLE), seed=2)
        log = trial.log("drop")
    with pytest.raises(ai.errors.AdaptinfError, match="drops arms on the basis of earlier rewards: arm 'c'"):
        ai.Contrast(log, treatment="c", control="a").fit(estimator="aipw")
