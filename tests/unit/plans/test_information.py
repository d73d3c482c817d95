"""Looks by information: when they take place, what they spend, and the same looks in a live trial."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import adaptinf as ai
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.group_sequential.score_process import score_process

COIN = ai.designs.Uniform()
THOMPSON = ai.designs.Thompson(prior="normal", floor=0.1)


def plan_of(design: Any = COIN, **others: Any) -> ai.Plan:
    options: dict[str, Any] = {"arms": (0, 1), "treatment": 1, "control": 0, "clock": "information"}
    return ai.Plan(design, **{**options, "looks": [12, 24, 36], "horizon": 200, **others})


def by_hand(log: ai.AdaptiveLog, levels: list[float], least: float) -> list[int]:
    """Rounds of the looks from the definition, one round at a time; the horizon of 200 is the last look."""
    arrays, ends = log.arrays, list[int]()
    for rounds in range(1, log.n_rounds + 1):
        if len(ends) == len(levels):
            break
        one = score_process(arrays.action, arrays.reward, arrays.propensities, (1, 0), np.array([rounds]))
        enough = min(one.effective[0], one.events[0]) >= least and one.clock[0] > 0.0
        if (enough and one.slope[0] ** 2 / one.clock[0] >= levels[len(ends)]) or rounds == 200:
            ends.append(rounds)
    return ends


@pytest.mark.parametrize(("design", "scale"), [(COIN, 1.0), (THOMPSON, 1.0), (COIN, 1.4), (THOMPSON, 0.4)])
def test_a_look_takes_place_once_its_level_is_reached(design: Any, scale: float) -> None:
    plan = plan_of(design)
    log = design.run(ai.environments.NormalArms([0.0, 0.1], scale), horizon=200, rng=3)
    ends = by_hand(log, [12, 24, 36], 20)
    for rounds in {*(end - 1 for end in ends), *ends, 200}:
        reached = [end for end in ends if end <= rounds]
        look = plan.look(log[:rounds])
        assert (look.stage, look.rounds) == (len(reached), reached[-1] if reached else 0)
    if scale == 0.4:
        assert np.diff(ends).tolist() == [1, 1]


def test_the_horizon_is_the_last_look_and_spends_what_is_left() -> None:
    log = COIN.run(ai.environments.NormalArms([0.0, 0.1], 1.7), horizon=200, rng=4)
    look = plan_of().look(log)
    assert (look.stage, look.rounds, look.decision) == (2, 200, "no rejection")
    first, last = plan_of().course(log).information  # type: ignore[union-attr]
    spent = plan_of().rule.spent
    plain = plan_of(looks=[36]).look(log)
    assert plain.bound == pytest.approx(1.959964, abs=1e-6)
    assert 1.959963 < look.bound < 1.97
    assert (0.0 < spent[0] < 1e-3, 0.0 < first < last) == (True, True)
    assert spent.sum() == pytest.approx(0.025, abs=1e-12)


def test_required_information() -> None:
    one = plan_of(looks=[100])
    assert one.required_information(0.5) == pytest.approx((1.959964 + 1.281552) ** 2 / 0.25, rel=1e-6)
    assert one.required_information(-0.5) == pytest.approx(one.required_information(0.5), rel=1e-12)
    inferior = one.changed(margin=-0.2, sides=1, alpha=0.025, inflation=1.1)
    expected = ((1.959964 + 0.841621) * 1.1 / 0.2) ** 2
    assert inferior.required_information(0.0, 0.8) == pytest.approx(expected, rel=1e-5)
    three = plan_of(sides=1, alpha=0.025)
    drift, shares = math.sqrt(three.required_information(1.0)), np.array([1, 2, 3]) / 3
    together = np.sqrt(np.minimum.outer(shares, shares) / np.maximum.outer(shares, shares))
    below = stats.multivariate_normal(cov=together, seed=1).cdf(
        three.bounds["bound"] - drift * np.sqrt(shares)
    )
    assert below == pytest.approx(0.1, abs=1e-5)
    for wrong in (0.0, math.nan, "a"):
        with pytest.raises(ParameterError, match="difference must be a number other than the margin 0"):
            one.required_information(wrong)  # type: ignore[arg-type]


def test_power_does_not_depend_on_the_variance_or_the_allocation() -> None:
    """128 trials of each; the required power of .8 within 4 errors."""
    level = plan_of().required_information(0.35, 0.8)
    levels = [level / 3, 2 * level / 3, level]
    even = ai.designs.Thompson(prior="normal", floor=0.3)
    for design, scale in ((COIN, 0.8), (COIN, 1.3), (even, 1.0)):
        plan = plan_of(design, looks=levels, horizon=700)
        world = ai.environments.NormalArms([0.0, 0.35], scale)
        found = plan.operating_characteristics(world, 128, rng=1)
        assert abs(found.frame.loc[0, "rejected"] - 0.8) <= 4 * 0.0354
        assert found.looks["information"].tolist() == levels


def test_the_level_holds_if_the_allocation_adapts() -> None:
    """512 trials of Thompson sampling with drift, at a level of 20%; within 4 errors."""
    plan = plan_of(THOMPSON, alpha=0.2, spending="lan-demets-pocock")
    equal = ai.environments.NormalArms([0.0, 0.0])
    found = plan.operating_characteristics(equal, 512, rng=5).frame
    assert found.loc[0, "rejected"] <= 0.2 + 4 * 0.0177


def test_several_treatments_wait_for_the_least_known() -> None:
    arms: dict[str, Any] = {"arms": (0, 1, 2), "treatment": (1, 2)}
    rng, shares = np.random.default_rng(4), [0.4, 0.4, 0.2]
    frame = pd.DataFrame({"arm": rng.choice(3, 150, p=shares), "y": rng.normal(size=150)})
    frame[["p_0", "p_1", "p_2"]] = shares
    log = ai.AdaptiveLog(frame, action="arm", reward="y", propensities="p_{arm}")
    plan = plan_of(**arms)
    each = [plan_of(arms=(0, 1, 2), treatment=one).information(log) for one in (1, 2)]
    assert each[1] < 0.8 * each[0]
    assert plan.information(log) == each[1]
    assert plan.look(log).rounds == plan_of(arms=(0, 1, 2), treatment=2).look(log).rounds


def test_strata_and_lost_outcomes_count_in_the_information() -> None:
    log = COIN.run(ai.environments.NormalArms([0.0, 0.0]), horizon=200, rng=6)
    frame = log.frame.assign(p_0=0.5, p_1=0.5, place=np.arange(200) % 2)
    frame.loc[frame["place"] == 1, "reward"] += 3.0
    lost = frame.assign(reward=frame["reward"].where(np.arange(200) % 5 > 0))
    kept, fewer = (
        ai.AdaptiveLog(
            each, action="action", reward="reward", context="place", propensities="p_{arm}", missing=missing
        )
        for each, missing in ((frame, None), (lost, "drop"))
    )
    plain, within = plan_of(), plan_of(strata="place")
    assert within.information(kept) > 2.5 * plain.information(kept)
    assert within.information(fewer) < 0.9 * within.information(kept)


def test_a_live_trial_takes_the_same_looks(tmp_path: Path) -> None:
    plan = plan_of(ai.designs.Thompson(prior="normal", floor=0.3), looks=[4, 8, 18], horizon=60, least=4)
    with ai.Trial.create(tmp_path / "trial.db", plan, reward_range=(-9.0, 9.0)) as trial:
        assert trial.status().next_look == "information 4"
        assert str(trial.look()) == "No look yet: the first of 3 is at information 4"
        rng = np.random.default_rng(8)
        taken: list[Any] = []
        waiting: list[tuple[int, float]] = []
        while trial.status().state == "open" and trial.status().rounds < 60:
            made = trial.assign(trial.status().rounds, key=f"a{trial.status().rounds}")
            waiting.append((made.id, float(np.clip(rng.normal(0.3 * made.arm), -9, 9))))
            if len(waiting) == 4:
                for number, reward in reversed(waiting):  # The first of four is recorded last.
                    trial.record(number, reward, key=f"r{number}")
                    look = trial.look()
                    if look.stage > len(taken):  # Two levels may be reached at once.
                        taken += list(trial.looks().itertuples())[len(taken) :]
                waiting.clear()
        assert [look.stage for look in taken] == list(range(1, len(taken) + 1))
        assert len(taken) >= 2
        log = trial.log()
        trial.verify()
        verified = trial.looks()
    assert verified["rounds"].tolist() == [look.rounds for look in taken]
    arrays = log.arrays
    frame = pd.DataFrame({"arm": arrays.action, "y": arrays.reward})
    frame[["p_0", "p_1"]] = arrays.propensities
    bare = ai.AdaptiveLog(frame, action="arm", reward="y", propensities="p_{arm}")
    for look in taken:
        again = plan.look(bare[: look.rounds])
        assert (again.stage, again.rounds, again.decision) == (look.stage, look.rounds, look.decision)
        assert (again.statistic, again.bound) == pytest.approx((look.statistic, look.bound), nan_ok=True)
        assert plan.look(bare[: look.rounds - 1]).stage == look.stage - 1
    assert ai.Plan.of(log).arguments == plan.arguments
    assert ai.Plan.of(log).look(log).rounds == taken[-1].rounds


def test_a_live_plan_by_information_is_amended(tmp_path: Path) -> None:
    with ai.Trial.create(
        tmp_path / "trial.db", plan_of(looks=[6, 12], horizon=60, least=5), horizon=100
    ) as trial:
        why = {"reason": "a smaller difference", "by": "the sponsor"}
        with pytest.raises(ParameterError, match="looks that need 120"):
            trial.amend_plan([6, 20], horizon=120, **why)
        trial.amend_plan([6, 20], horizon=100, **why)
        assert trial.status().next_look == "information 6"
        assert trial.history()[-1].looks == [6.0, 20.0]


def test_refusals() -> None:
    for wrong, told in (
        ({"looks": [20, 10]}, "must be in ascending order"),
        ({"looks": [0, 10]}, "must be positive numbers"),
        ({"looks": "all"}, "must be positive numbers"),
        ({"horizon": None}, "require horizon, the largest number of participants"),
        ({"law": "rerandomization"}, 'require law="z"'),
        ({"start": "2026-01-01"}, 'start requires clock="date"'),
        ({"arms": (0, 1, 2), "treatment": (1, 2), "drop": 0.0}, "cannot drop treatments"),
    ):
        with pytest.raises(ParameterError, match=told):
            plan_of(**wrong)
    with pytest.raises(ParameterError, match='as_of requires clock="date"'):
        plan_of().look(COIN.run(ai.environments.NormalArms([0.0, 0.0]), horizon=50, rng=1), as_of=3)
    log = COIN.run(ai.environments.NormalArms([0.0, 0.0]), horizon=90, rng=1)
    with pytest.raises(InvalidForLog, match="the next one is at information 24, and the log has 2"):
        plan_of().analyse(log)
    with pytest.raises(ParameterError, match='plan must have clock="rounds"'):
        plan_of().sample_size(ai.environments.NormalArms([0.0, 1.0]))
