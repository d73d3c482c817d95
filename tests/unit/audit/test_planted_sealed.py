"""Faults of the sealed registry change what a run draws or publishes; without them it is as it should."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import planted_sources
import pytest
from planted_runs import Noise, coins, fair_trial, filed, lived, opened
from planted_sealed import ARMS, FAULTS, PHASES
from planting import replaced

from adaptinf import Trial
from adaptinf.audit import coupled
from adaptinf.audit.privacy.coupled_trials import GivenStops
from adaptinf.designs import DPBAI, DPNAS, DPConSE, LinPriv, PrivateSuccessiveElimination, PrivateUCB
from adaptinf.designs.arms import elimination_kernel
from adaptinf.designs.contextual import private_conse_kernel as private_kernel
from adaptinf.sessions import session_memory as erasing
from adaptinf.sessions.steppers import draw_node
from adaptinf.simulation.environments import Tableau
from adaptinf.trial import trial_noise as nodes

SLOW = pytest.mark.slow
BOTH = pytest.mark.parametrize("faulty", [True, False])
UNIT = 1 << 20
ELIMINATION = PrivateSuccessiveElimination(epsilon=1.0, beta=1.0)
BEST_ARM = DPBAI(epsilon=1.0, features=PHASES, max_det=False)
SURE = 1e6
"""An epsilon at which noise is next to nothing."""


def planted(fault: str, faulty: bool) -> AbstractContextManager[None]:
    return FAULTS[fault].plant() if faulty else nullcontext()


def silent(name: str, scale: float) -> int:
    """No noise: releases are what is behind them."""
    return 0


@contextmanager
def sampled(fault: str, faulty: bool, sampler: Callable[[str, float], int]) -> Iterator[None]:
    """OpenDP's sampler is another one, below the fault."""
    if faulty:
        with pytest.MonkeyPatch.context() as patch, planted(fault, True):
            patch.setattr(planted_sources, "draw_node", sampler)
            yield
    else:
        with replaced(draw_node, sampler):
            yield


def noted(session: Any) -> dict[str, tuple[float, float]]:
    """The noise of a session's nodes, with their scales, as its kernels get it."""
    give, drawn = session._stepper._draw, dict[str, tuple[float, float]]()

    def drawing(name: str, scale: float) -> float:
        units = give(name, scale)
        drawn[name] = units, scale
        return float(units)

    session._stepper._draw = drawing
    return drawn


def node_rows(trial: Trial) -> list[tuple[int, float, float]]:
    """Numbers of the rows of noise, with units and scales."""
    rows = trial._requests.read(trial._noise_rows)
    return [(number, entry["units"], entry["scale"]) for number, entry, _ in rows]


@BOTH
def test_a_late_outcome_enters_again(faulty: bool) -> None:
    with planted("late outcomes enter an open node", faulty):
        session = opened(PrivateUCB(epsilon=1.0), 20, silent, window=1)
        first = session.assign().id
        for _ in range(8):
            session.record(session.assign().id, 0.0)
        session.record(first, 1.0)
        for _ in range(8):
            session.record(session.assign().id, 0.0)
        values = session.log("drop").releases["value"]
    assert set(values) == ({0.0, 1.0} if faulty else {0.0})


@BOTH
def test_weak_arms_get_no_negative_noise(faulty: bool) -> None:
    draws = iter([-3 * UNIT, -2 * UNIT, 5 * UNIT, -UNIT])
    fault = "weak arms have the benefit of the doubt"
    with sampled(fault, faulty, lambda name, scale: 0 if name == "none" else next(draws)):
        session = opened(ELIMINATION, 720, None)
        drawn, steps = noted(session), 0
        while not drawn:
            decision = session.assign()
            session.record(decision.id, float(decision.arm))  # the first arm is weak, the second is not
            steps += 1
    assert steps == 712
    assert [units / UNIT for units, _ in drawn.values()] == ([5, -1] if faulty else [-3, -2])


@BOTH
def test_noise_is_whole_rewards(faulty: bool) -> None:
    with planted("noise cut off to whole rewards", faulty):
        log = lived(opened(BEST_ARM, 60, Noise(), arms=3), np.zeros(60))
    shown = (log.releases["value"] / log.releases["scale"]).to_numpy()
    assert np.allclose(shown, np.rint(shown), atol=1e-6) == faulty


@BOTH
def test_a_backup_has_the_next_draws(faulty: bool, tmp_path: Path) -> None:
    with planted("future noise in the backup", faulty):
        with filed(tmp_path / "trial.db", PrivateUCB(epsilon=1.0), 10, np.zeros(10)) as trial:
            trial.backup(tmp_path / "copy.db")
            go_on(trial)
            lost = node_rows(trial)
        with Trial.open(tmp_path / "copy.db") as copy:
            copy.restore(reason="a broken disk", by="the operator", runs=1)
            go_on(copy)
            restored = node_rows(copy)
    before = sum(one == other for one, other in zip(lost, restored, strict=False))
    sizes = [np.array([units / scale for _, units, scale in rows[before:]]) for rows in (lost, restored)]
    assert 9 <= before <= 10
    assert np.allclose(sizes[0][:64], sizes[1][:64], atol=1e-5) == faulty
    assert not np.isclose(sizes[0][64:70], sizes[1][64:70], atol=1e-5).any()


def go_on(trial: Trial) -> None:
    """Eighty more participants, with outcomes of 0."""
    names = [f"unit {step}" for step in range(10, 90)]
    for name in names:
        decision = trial.assign(name, key=f"assign {name}")
        trial.record(decision.id, 0.0, key=f"record {name}")


@BOTH
def test_extreme_draws_are_refused(faulty: bool) -> None:
    draws = iter([5 * UNIT, -5 * UNIT, UNIT])
    with sampled("extreme draws are refused", faulty, lambda name, scale: next(draws)):
        drawn = nodes.draw_node("a node", float(UNIT))
    assert drawn == (UNIT if faulty else 5 * UNIT)


@BOTH
def test_public_releases_have_rows(faulty: bool, tmp_path: Path) -> None:
    with planted("releases bear their row of the journal", faulty):
        trial = filed(tmp_path / "trial.db", PrivateUCB(epsilon=1.0), 6, np.zeros(6))
        public = trial.log().public()
        rows = [number for number, *_ in node_rows(trial)]
        trial.close()
    assert len(rows) == len(public.releases) > 0
    assert public.releases.get("row", default=np.zeros(0)).tolist() == (rows if faulty else [])


@BOTH
def test_a_twelfth_of_draws_fails(faulty: bool) -> None:
    with sampled("a failed draw becomes 0", faulty, lambda name, scale: 7):
        zeros = sum(nodes.draw_node("a node", 1.0) == 0 for _ in range(2_400))
    assert 130 <= zeros <= 270 if faulty else zeros == 0  # 5 standard deviations about 200


@BOTH
def test_inclusion_follows_exact_counts(faulty: bool) -> None:
    contexts = ["a", "a", "a", "b"] * 100
    with planted("inclusion from exact counts", faulty):
        session = opened(DPConSE(epsilon=1.0), 400, Noise(), features=["a", "b"])
        public = lived(session, coins(400), contexts).public()
    state = session._stepper.state
    exact = np.minimum(1.0, state[0, private_kernel._T_MIN] / np.array([150.0, 50.0]))
    assert exact[0] < 1.0
    assert np.array_equal(state[private_kernel._INCLUSION, :2], exact) == faulty
    shown = dict(zip("ab", exact.tolist(), strict=True)) if faulty else None
    assert public.facts.get("propensities by context") == shown


@BOTH
def test_an_erasure_is_a_release(faulty: bool) -> None:
    with planted("erasure corrects the last release", faulty):
        session = opened(PrivateUCB(epsilon=1.0), 20, silent, window=0)
        for unit in range(12):
            session.record(session.assign(unit).id, 1.0)
        erasing.forget(session, 0)
        again = session.log("drop").releases
        session.record(session.assign(12).id, 1.0)
        later = session.log("drop").releases
    first = again[again["group"] == again["group"].iat[0]]["value"].to_numpy()
    assert len(again) == 11 + faulty
    assert (first[-1] - first[-2] == -1.0) == faulty
    assert len(later) == 12 + faulty


@BOTH
def test_the_release_has_the_noise_of_the_look(faulty: bool) -> None:
    noise = Noise()
    rule, stops = DPNAS(epsilon=1.0, alpha=0.5, beta=0.2, steps="exponential"), GivenStops(noise)
    with planted("the release repeats the noise that halted", faulty):
        result = rule._run(np.ones(4_096), None, None, stops)
    shown = round((result.estimate - 1.0) * result.samples * UNIT)
    assert result.stopped
    # scales of looks and release are 12 and 4, over epsilon
    assert shown == (round(-noise.drawn[stops.halted] / 3.0) if faulty else noise.drawn["estimate"])


@BOTH
def test_count_noise_is_contrast_noise(faulty: bool) -> None:
    with planted("count noise made from the contrast's", faulty):
        session = opened(DPConSE(epsilon=1.0), 400, Noise(), features=["a", "b"])
        drawn = noted(session)
        lived(session, coins(400), ["a", "b"] * 200)
    for feature in (0, 1):
        contrast, count = (drawn[f"sum {2 * feature + kind}, window 1"][0] for kind in (0, 1))
        assert (abs(count - 3.0 * contrast) <= 0.5) == faulty


@BOTH
@pytest.mark.parametrize("window", [0, 4])
def test_amendments_are_not_clipped(faulty: bool, window: int) -> None:
    with planted("amended outcomes escape the clipping", faulty):
        session = opened(ELIMINATION, 720, silent, window=window, reward_range=(-np.inf, np.inf))
        for _ in range(2):
            session.record(session.assign().id, 2.0)
        session.amend(1, 7.5)  # it has entered, or has not yet
        for _ in range(6):
            session.record(session.assign().id, 0.0)
    sums = session._stepper.state[elimination_kernel._SUM, :2]
    assert sums.tolist() == ([7.5, 1.0] if faulty else [1.0, 1.0])


@BOTH
def test_noise_is_on_a_coarser_grid(faulty: bool) -> None:
    vectors = np.full((12, 2, 2), 0.5)
    with planted("noise on a coarser grid than the products", faulty):
        session = opened(LinPriv(epsilon=1.0), 12, None, dimension=2, per_arm=True)
        log = lived(session, np.zeros(12), vectors)
    shown = log.releases["value"].to_numpy() * UNIT
    assert (shown == np.rint(shown)).all() == faulty
    assert abs(shown).min() > 0.0


@BOTH
def test_scales_follow_the_level(faulty: bool) -> None:
    vectors = np.full((12, 2, 2), 0.5)
    with planted("scale by the level reached", faulty):
        session = opened(LinPriv(epsilon=1.0, counter="binary"), 12, Noise(), dimension=2, per_arm=True)
        log = lived(session, np.zeros(12), vectors)
    rows = log.releases[(log.releases["name"] == "noisy_xy_1") & (log.releases["group"] == 0)]
    counts = np.arange(1, len(rows) + 1)
    levels = np.log2(counts & -counts) + 1.0 if faulty else np.full(len(rows), 4.0)
    assert np.allclose(rows["scale"], np.sqrt(2.0) * levels, rtol=1e-5)


@pytest.mark.slow
@BOTH
def test_a_pool_starts_again(faulty: bool, tmp_path: Path) -> None:
    with planted("a pool of draws that starts again", faulty):
        sessions = [PrivateUCB(epsilon=1.0).session(2, 20, rng=1, noise="release") for _ in range(2)]
        drawn = [noted(session) for session in sessions]
        lived(sessions[0], np.zeros(20))
        sessions.append(PrivateUCB(epsilon=1.0).session(2, 20, rng=1, noise="release"))
        drawn.append(noted(sessions[2]))
        lived(sessions[2], np.zeros(20))
        units = []
        for name in ("one.db", "two.db"):
            with filed(tmp_path / name, PrivateUCB(epsilon=1.0), 10, np.zeros(10)) as trial:
                units.append(node_rows(trial)[:3])
    first = [[one[name] for name in list(one)[:4]] for one in (drawn[0], drawn[2])]
    assert (first[0] == first[1]) == faulty
    assert (units[0] == units[1]) == faulty
    assert len({value for value, _ in drawn[0].values()}) == 20


@BOTH
def test_an_epoch_ends_with_the_eighth_success(faulty: bool) -> None:
    with planted("an epoch ends with its eighth success", faulty):
        session = opened(ELIMINATION, 720, silent)
        for step in range(80):
            decision = session.assign()
            session.record(decision.id, float(step // 2 % 2 == 0))
        releases = session.log().releases
    if faulty:
        assert releases["round"].tolist() == [30, 30, 62, 62]
        assert np.allclose(releases["value"], [8 / 15, 8 / 15, 8 / 16, 8 / 16])
        assert np.allclose(releases["scale"], [1 / 15, 1 / 15, 1 / 16, 1 / 16])
    else:
        assert len(releases) == 0


@BOTH
def test_the_raw_best_arm_is_recommended(faulty: bool) -> None:
    def preferring(name: str, scale: float) -> int:
        return int(name[4]) * 100 * UNIT

    with planted("the recommended arm is the truth's", faulty):
        session = opened(BEST_ARM, 60, preferring, arms=3)
        for _ in range(60):
            decision = session.assign()
            session.record(decision.id, float(decision.arm == 1))
        log = session.log()
    assert log.recommended == (1 if faulty else 2)
    assert log.public().facts["recommended"] == log.recommended


@BOTH
def test_nodes_are_antithetic(faulty: bool) -> None:
    with planted("antithetic nodes", faulty):
        session = opened(PrivateUCB(epsilon=1.0), 40, Noise())
        drawn = noted(session)
        lived(session, np.zeros(40))
    pairs = [
        (f"arm {arm}, count {count}", f"arm {arm}, count {count + 1}") for arm in (0, 1) for count in (1, 5)
    ]
    for first, second in pairs:
        (units, scale), (other, its_scale) = drawn[first], drawn[second]
        assert (abs(other + units * its_scale / scale) <= 0.5) == faulty


# --- compiled afresh: seconds each -----------------------------------------------------------------------


@SLOW
@BOTH
def test_phase_sums_go_on(faulty: bool) -> None:
    design = DPBAI(epsilon=SURE, features=PHASES, max_det=False)
    rewards = np.repeat([1.0, 0.0], 30)
    with planted("phase sums that go on", faulty):
        log = design.run(Tableau(np.tile(rewards[:, None], 3), reward_range=(0.0, 1.0)), 60, rng=1)
        session = lived(opened(design, 60, None, arms=3), rewards)
    for made in (log, session):
        assert np.allclose(made.releases["value"], [1.0] * 3 + [10 / 25 * faulty] * 2, atol=1e-4)


@SLOW
@BOTH
def test_sums_are_in_pairs(faulty: bool) -> None:
    design = PrivateSuccessiveElimination(epsilon=SURE, beta=1.0)
    rewards = np.zeros((720, 2))
    rewards[:2] = 1.0
    lived(opened(design, 720, silent), rewards[:, 0])  # compiled here, the session's step has no fault
    with planted("sums in pairs", faulty):
        log = design.run(Tableau(rewards, reward_range=(0.0, 1.0)), 720, rng=1)
        session = lived(opened(design, 720, silent), rewards[:, 0])
    assert np.allclose(log.releases["value"][:2] * 356.0, 2.0 if faulty else 1.0, atol=1e-3)
    assert np.allclose(session.releases["value"][:2] * 356.0, 1.0)


def test_every_fault_is_told() -> None:
    assert len(FAULTS) == 20
    assert sum(fault.live for fault in FAULTS.values()) == 18
    assert all(fault.does and fault.leaks for fault in FAULTS.values())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::adaptinf.errors.AdaptinfWarning")  # designs without coins of their own
@pytest.mark.parametrize("fault", [name for name, fault in FAULTS.items() if fault.trial and fault.live])
def test_a_trial_with_a_fault_is_opened_again(fault: str, tmp_path: Path) -> None:
    """What is found of a fault is the fault: decisions and noise follow from the rows as they should."""
    terms: dict[str, Any] = {**FAULTS[fault].trial, "reward_range": (-np.inf, np.inf)}
    rng, units = np.random.default_rng(1), [f"unit {step}" for step in range(160)]
    contexts: list[Any] = [None] * 160
    if "features" in terms:
        contexts = rng.choice(terms["features"], 160).tolist()
    elif "dimension" in terms:
        contexts = list(np.full((160, terms["arms"], terms["dimension"]), 0.5))
    with planted(fault, True):
        with Trial.create(tmp_path / "trial.db", FAULTS[fault].design(), **terms) as trial:
            some_days(trial, units[:80], contexts[:80])
        with Trial.open(tmp_path / "trial.db") as trial:
            some_days(trial, units[80:], contexts[80:])
            trial.erase(units[70], key="erase", reason="on request", by="data protection")
            before = trial.log("drop", erased="keep").releases
            trial.verify()
        with Trial.open(tmp_path / "trial.db") as trial:
            assert trial.log("drop", erased="keep").releases.equals(before)


def some_days(trial: Trial, units: list[str], contexts: list[Any]) -> None:
    """Participants by fives, of whom some outcomes come late, are lost, or amended."""
    for start in range(0, len(units), 5):
        some = slice(start, start + 5)
        made = trial.assign_many(units[some], contexts[some], keys=[f"assign {unit}" for unit in units[some]])
        ids = [decision.id for decision in made]
        told: list[float | None] = [1.0, 0.0, None, 1.0]
        trial.record_many(ids[:4], told, keys=[f"record {number}" for number in ids[:4]])
        if start:
            trial.record(ids[0] - 1, 1.0, key=f"record {ids[0] - 1}")
            trial.amend(ids[1], 7.5, key=f"amend {ids[1]}", reason="a correction", by="the laboratory")


# --- what audits say of them: those for which little has to be run; the whole table is evidence -----------

DRAWN = {
    "count noise made from the contrast's": "repeat the draw before",
    "noise on a coarser grid than the products": "multiples of 1,048,576",
    "antithetic nodes": "with the other sign",
}
COUPLED = {
    "late outcomes enter an open node": ("late", "cost"),
    "noise cut off to whole rewards": ("value", "release 1"),
    "erasure corrects the last release": ("erased", "release"),
    "scale by the level reached": ("value", "cost"),
    "the recommended arm is the truth's": ("value", "recommended"),
    "amended outcomes escape the clipping": ("amended", "cost"),
    "phase sums that go on": ("value", "cost"),
    "releases bear their row of the journal": ("never", "row"),
}
"""What neighbours differ in, and what a coupling says."""
COMPILED = ("phase sums that go on", "releases bear their row of the journal")
BY_DEFAULT = (*COMPILED, "amended outcomes escape the clipping")


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN)
def test_noise_as_it_was_drawn_shows_it(name: str, tmp_path: Path) -> None:
    with planted(name, True):
        trial = fair_trial(tmp_path / "trial.db", FAULTS[name].design(), FAULTS[name].trial)
        found = trial.audit_noise().findings
        trial.close()
    assert any(DRAWN[name] in finding for finding in found)


@pytest.mark.slow
def test_noise_of_a_second_trial_shows_a_pool_that_starts_again(tmp_path: Path) -> None:
    name = "a pool of draws that starts again"
    with planted(name, True):
        trials = [fair_trial(tmp_path / place, PrivateUCB(epsilon=1.0), ARMS) for place in ("1.db", "2.db")]
        assert not trials[0].audit_noise().findings
        assert trials[0].audit_noise(trials[1:]).findings
        for trial in trials:
            trial.close()


def test_noise_of_the_lost_file_shows_draws_of_its_backup(tmp_path: Path) -> None:
    with planted("future noise in the backup", True):
        trial = filed(tmp_path / "trial.db", PrivateUCB(epsilon=1.0), 10, np.zeros(10))
        trial.backup(tmp_path / "copy.db")
        copy = Trial.open(tmp_path / "copy.db")
        copy.restore(reason="a broken disk", by="the operator", runs=1)
        go_on(trial)
        go_on(copy)
        assert copy.audit_noise([trial]).findings
        copy.close()
        trial.close()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in COMPILED else SLOW) for name in COUPLED]
)
def test_a_coupling_finds_it(name: str) -> None:
    kind, words = COUPLED[name]
    with planted(name, True):
        found = coupled(FAULTS[name].design(), kind, pairs=None if name in BY_DEFAULT else 2, rng=0)
    assert found.refuted
    assert words in (found.disagreement or f"the cost is {found.cost}")


def test_an_estimate_without_noise_of_its_own_is_told() -> None:
    name = "the release repeats the noise that halted"
    with planted(name, True):
        found = coupled(FAULTS[name].design(), "value", pairs=1, rng=0)
    assert "no noise is drawn for the estimate" in found.disagreement
