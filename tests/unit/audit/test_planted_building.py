"""Faults of the registry change what a run draws, releases or publishes; without them it is as it should."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted_building import FAULTS, PHASES
from planted_runs import Noise, coins, filed, lived, opened

from adaptinf import Trial
from adaptinf.audit import coupled
from adaptinf.audit.privacy.designs.audited_trial import NodeUnits
from adaptinf.audit.privacy.trial_checks import _live_checks, other_noise
from adaptinf.designs import DPBAI, DPNAS, LDPBandit, LDPLinear, PrivateUCB
from adaptinf.inference.released.group_effects import released_effects
from adaptinf.simulation.environments import BernoulliArms, FiniteContext, LinearArms, Tableau
from adaptinf.trial import trial_noise as nodes


def planted(fault: str, faulty: bool) -> AbstractContextManager[None]:
    return FAULTS[fault].plant() if faulty else nullcontext()


@pytest.mark.parametrize("faulty", [True, False])
def test_the_coin_signs_the_noise(faulty: bool) -> None:
    fault = "the coin of an override signs the noise"
    with planted(fault, faulty):
        session = opened(FAULTS[fault].design(), 80, None)
        drawn = []
        give = session._stepper._draw
        session._stepper._draw = lambda name, scale: drawn.append(give(name, scale)) or drawn[-1]
        told = []
        for reward in coins(80):
            decision = session.assign()
            told.append(getattr(session, "noted", math.nan))
            session.record(decision.id, reward)
    if faulty:
        assert all(
            units >= 0 if number < 0.5 else units <= 0 for units, number in zip(drawn, told, strict=True)
        )
    else:
        assert min(drawn) < 0 < max(drawn)


@pytest.mark.parametrize("faulty", [True, False])
def test_the_first_coordinate_is_bare(faulty: bool) -> None:
    fault, vectors = "one coordinate has no noise in live sessions", np.full((12, 2, 2), 0.5)
    with planted(fault, faulty):
        log = lived(
            opened(FAULTS[fault].design(), 12, Noise(), dimension=2, per_arm=True), np.ones(12), vectors
        )
    first = log.releases[log.releases["name"] == "noisy_xy_1"]
    counts = first.groupby("group").cumcount() + 1
    assert np.allclose(first["value"], 0.5 * counts, atol=1e-5) == faulty


@pytest.mark.parametrize("faulty", [True, False])
def test_intervals_take_the_raw_count(faulty: bool) -> None:
    fault = "intervals take the raw count"
    log = FAULTS[fault].design().run(FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]]), 4_000, rng=1)
    with planted(fault, faulty):
        from adaptinf.inference.released import group_effects

        found = group_effects.released_effects(log)
    right = released_effects(log)
    assert np.array_equal(found.estimate, right.estimate)
    assert bool((found.effect.size == np.rint(found.effect.size)).all()) == faulty


@pytest.mark.parametrize("faulty", [True, False])
def test_a_reward_of_0_brings_no_release(faulty: bool) -> None:
    fault, rewards, noise = "a reward of 0 brings no release", coins(60), Noise()
    with planted(fault, faulty):
        log = lived(opened(PrivateUCB(epsilon=1.0), 60, noise), rewards)
    assert len(log.releases) == (rewards.sum() if faulty else 60)
    # in the units of the last release: the sum of its arm, and the noise of the nodes that tile its count
    last = log.releases.iloc[-1]
    pulled = (log.arrays.action == last["group"]) & (np.arange(60) < last["round"])
    count, total = int(pulled.sum()), float(rewards[pulled].sum())
    while count > 0:
        total += noise.drawn[f"arm {last['group']}, count {count}"] / 2.0**20
        count = count & (count - 1) or count >> 1
    assert last["value"] == total


@pytest.mark.parametrize("faulty", [True, False])
def test_a_trial_draws_normal_noise(faulty: bool) -> None:
    with planted("normal noise of the Laplace variance", faulty):
        sizes = [abs(nodes.draw_node("node", 2.0**20)) / 2.0**20 for _ in range(4_000)]
    assert (np.mean(sizes) > 1.065) == faulty  # 1.128 against 1


@pytest.mark.parametrize("faulty", [True, False])
def test_noise_follows_from_the_name(faulty: bool, tmp_path: Path) -> None:
    fault, drawn = "noise that follows from the trial's name", []
    with planted(fault, faulty):
        for folder in ("one", "two"):
            (tmp_path / folder).mkdir()
            with filed(tmp_path / folder / "trial.db", PrivateUCB(epsilon=1.0), 10, coins(10)) as trial:
                drawn.append(trial.log().releases["value"].tolist()[:2])
    assert (drawn[0] == drawn[1]) == faulty


@pytest.mark.parametrize("faulty", [True, False])
def test_arms_of_an_epoch_have_one_draw(faulty: bool) -> None:
    fault = "one draw for all arms of an epoch"
    with planted(fault, faulty):
        session = opened(FAULTS[fault].design(), 1_300, None, arms=3)
        drawn: dict[str, set[float]] = {}
        give = session._stepper._draw

        def noted(name: str, scale: float) -> float:
            units = give(name, scale)
            drawn.setdefault(name.partition(", ")[2], set()).add(units)
            return float(units)

        session._stepper._draw = noted
        lived(session, np.full(1_300, 0.5))
    assert drawn
    assert all(len(units) == (1 if faulty else 3) for units in drawn.values())


@pytest.mark.parametrize("faulty", [True, False])
def test_phases_have_one_vector(faulty: bool) -> None:
    noise = Noise()
    with planted("one noise vector for all phases", faulty):
        design = DPBAI(epsilon=1.0, features=PHASES, max_det=False)
        log = lived(opened(design, 60, noise, arms=3), np.zeros(60))
    shown = log.releases["value"] / log.releases["scale"]
    assert len(shown) == 5
    assert (abs(shown[3] - shown[0]) < 1e-5 and abs(shown[4] - shown[1]) < 1e-5) == faulty
    assert len(noise.drawn) == (3 if faulty else 5)


@pytest.mark.parametrize("faulty", [True, False])
def test_nodes_are_late(faulty: bool) -> None:
    fault = "nodes have the noise of the one before"
    vectors = np.zeros((40, 2, 2))
    vectors[:, 0, 0] = 1.0
    with planted(fault, faulty):
        log = lived(
            opened(FAULTS[fault].design(), 40, Noise(), dimension=2, per_arm=True), coins(40), vectors
        )
    mine = (log.releases["name"] == "noisy_xy_1") & (log.releases["group"] == 0)
    shown, paid = log.releases["value"][mine].to_numpy(), log.arrays.reward[log.arrays.action == 0]
    assert (shown[2] - shown[1] - shown[0] == paid[2] - paid[0]) == faulty


@pytest.mark.parametrize("faulty", [True, False])
def test_overridden_rewards_count_twice(faulty: bool) -> None:
    fault = "overridden rewards count twice"
    with planted(fault, faulty):
        session = opened(FAULTS[fault].design(), 60, Noise())
        log = lived(session, np.ones(60))
    overridden = int((session._rounds.record.status[:59] == 1).sum())
    assert overridden > 0
    assert len(log.releases) == 60 + faulty * overridden


@pytest.mark.parametrize("faulty", [True, False])
def test_a_restored_trial_has_no_old_noise(faulty: bool, tmp_path: Path) -> None:
    with planted("restored counters without noise", faulty):
        with filed(tmp_path / "trial.db", PrivateUCB(epsilon=1.0), 40, np.zeros(40)) as trial:
            trial.backup(tmp_path / "copy.db")
        with Trial.open(tmp_path / "copy.db") as copy:
            copy.restore(reason="a broken disk", by="the operator")
            noise = [stepper_rows(copy).any()]
        with Trial.open(tmp_path / "copy.db") as copy:
            noise.append(stepper_rows(copy).any())
            copy.verify()
    assert noise == [not faulty] * 2


def stepper_rows(trial: Trial) -> Any:
    from adaptinf.designs.arms import ucb_kernel

    stepper: Any = trial._requests.read(lambda replay: replay.session._stepper)
    return stepper.state[ucb_kernel._TRUNK :, :2]


@pytest.mark.parametrize("faulty", [True, False])
def test_features_that_were_not_seen_are_not_released(faulty: bool) -> None:
    fault, noise = "only features that were seen are released", Noise()
    with planted(fault, faulty):
        session = opened(FAULTS[fault].design(), 400, noise, features=["a", "b"])
        log = lived(session, coins(400), ["a"] * 200 + ["b"] * 200)
    assert set(log.releases["group"][log.releases["round"] <= 200]) == ({"a"} if faulty else {"a", "b"})
    assert len(noise.drawn) == len(log.releases)


@pytest.mark.parametrize("faulty", [True, False])
def test_public_lists_arms_by_success(faulty: bool) -> None:
    with planted("arms in the order of their last success", faulty):
        log = lived(opened(PrivateUCB(epsilon=1.0), 8, Noise()), [1.0] + 7 * [0.0])
        public = log.public()
    assert public.facts["arms"] == ([1, 0] if faulty else [0, 1])


@pytest.mark.parametrize("faulty", [True, False])
def test_public_has_the_decimals_of_the_raw_sum(faulty: bool) -> None:
    fault = "as many decimals as the raw sum"
    with planted(fault, faulty):
        session = opened(FAULTS[fault].design(), 400, Noise(), features=["a", "b"])
        public = lived(session, coins(400), ["a", "b"] * 200).public()
    shown = public.releases["value"][public.releases["name"] == "contrast_sum"].to_numpy()
    assert np.array_equal(shown, np.round(shown, 1)) == faulty


# --- compiled afresh: seconds each -----------------------------------------------------------------------

SLOW = pytest.mark.slow


@SLOW
@pytest.mark.parametrize("faulty", [True, False])
def test_reports_are_bounded(faulty: bool) -> None:
    env = Tableau(np.zeros((1, 2)), vectors=np.full((1, 1), 0.25), reward_range=(0.0, 1.0))
    with planted("noise of reports within 2 scales", faulty):
        logs = LDPBandit(epsilon=1.0).logs(env, 1, 64, rng=1)
        shown = [log.releases[log.releases["scale"] > 0.0] for log in logs]
    sizes = np.concatenate([(rows["value"] / rows["scale"]).to_numpy() for rows in shown])
    assert (np.abs(sizes).max() <= 2.3) == faulty  # the one count is 1 of a scale of 4


@SLOW
@pytest.mark.parametrize("faulty", [True, False])
def test_widths_follow_raw_rewards(faulty: bool) -> None:
    env = BernoulliArms([0.95, 0.9])  # of little variance
    right = PrivateUCB(epsilon=1.0).run(env, 300, rng=1)
    with planted("widths from the raw variance", faulty):
        log = PrivateUCB(epsilon=1.0).run(env, 300, rng=1)
        session = lived(opened(PrivateUCB(epsilon=1.0), 60, Noise()), np.ones(60))
    assert np.array_equal(log.arrays.action, right.arrays.action) != faulty
    other = lived(opened(PrivateUCB(epsilon=1.0), 60, Noise()), np.ones(60))
    assert np.array_equal(session.arrays.action, other.arrays.action) != faulty


@SLOW
@pytest.mark.parametrize("faulty", [True, False])
def test_coordinates_cancel(faulty: bool) -> None:
    env = LinearArms(np.zeros((2, 2)), contexts="sphere", rewards="bernoulli")
    fault = "two coordinates whose noise cancels"
    env = Tableau(np.zeros((40, 2)), vectors=np.full((40, 2, 2), 0.5), reward_range=(0.0, 1.0))
    with planted(fault, faulty):
        log = FAULTS[fault].design().run(env, 40, rng=1)
    values = log.releases["value"].to_numpy().reshape(-1, 2)
    assert np.array_equal(values[:, 0], -values[:, 1]) == faulty


@SLOW
@pytest.mark.parametrize("faulty", [True, False])
def test_a_0_is_not_asked(faulty: bool) -> None:
    rule = DPNAS(epsilon=0.01, alpha=0.9, beta=0.9)
    with planted("nothing is asked after a 0", faulty):
        stopped = [rule.run(np.zeros(200), rng=seed).stopped for seed in range(200)]
    assert any(stopped) != faulty


@SLOW
@pytest.mark.parametrize("faulty", [True, False])
def test_noise_is_carried(faulty: bool) -> None:
    """A report is noise alone: what two coefficients get of two participants is the same two numbers."""
    design = LDPLinear(epsilon=1.0, intercept=False, warm_up=0, radius=1e6, step=3e-4)
    env = Tableau(np.zeros((2, 2)), vectors=np.zeros((2, 2)), reward_range=(0.0, 1.0))
    with planted("noise carried to the next participant", faulty):
        shown = np.array([log.releases["value"].to_numpy()[:2] for log in design.logs(env, 2, 64, rng=1)])
    assert (np.corrcoef(shown.T)[0, 1] > 0.5) == faulty


@SLOW
@pytest.mark.parametrize("faulty", [True, False])
def test_empty_nodes_are_bare(faulty: bool) -> None:
    with planted("empty nodes have no noise", faulty):
        log = PrivateUCB(epsilon=1.0).run(Tableau(np.zeros((40, 2)), reward_range=(0.0, 1.0)), 40, rng=1)
    assert (log.releases["value"] == 0.0).all() == faulty


COUPLED = {
    "a reward of 0 brings no release": "value",
    "nodes have the noise of the one before": "value",
    "as many decimals as the raw sum": "context",
}
"""What neighbours differ in with which a coupling finds the fault at once; the whole table is evidence."""


@pytest.mark.slow
@pytest.mark.parametrize("name", COUPLED)
def test_a_coupling_finds_it(name: str) -> None:
    fault = FAULTS[name]
    with fault.plant():
        assert coupled(fault.design(), COUPLED[name], pairs=1, rng=0).refuted


def test_a_second_file_of_its_name_finds_noise_that_follows_from_it(tmp_path: Path) -> None:
    trials = []
    with FAULTS["noise that follows from the trial's name"].plant():
        for folder in ("one", "two"):
            (tmp_path / folder).mkdir()
            trials.append(filed(tmp_path / folder / "trial.db", PrivateUCB(epsilon=1.0), 40, coins(40)))
    assert not trials[0].audit_noise().findings
    assert trials[0].audit_noise([trials[1]]).findings
    for trial in trials:
        trial.close()


@SLOW
def test_the_journal_tells_that_a_restored_trial_has_other_noise() -> None:
    fault = FAULTS["restored counters without noise"]
    with fault.plant():
        found = _live_checks(fault.design(), np.random.SeedSequence(0), 0.002, needed=True).findings
    assert any("differs from that in its journal" in one.text for one in found)


def test_noise_of_releases_is_that_of_the_journal() -> None:
    """Whole numbers must be there; of sums with more bits than a float, near them."""
    noise, drawn = np.array([[3.0, -1.5, np.nan]]), np.array([6, 12, -3])
    zeros = np.zeros((1, 3))

    def other(noise: Any, peak: float = 100.0) -> bool:
        units = NodeUnits(noise, np.ones(3), zeros.astype(np.int64), zeros, grid=2.0)
        return other_noise([units], 0, drawn, peak)

    assert not other(noise)
    assert other(noise + 0.5)
    assert not other(noise + 0.5, peak=2.0**51)
    assert other(np.array([[4.5, np.nan, np.nan]]))
