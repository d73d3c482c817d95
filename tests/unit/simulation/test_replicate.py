"""Replication: streams, seeds, workers, prefixes, and the sums that are kept."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptinf.designs import (
    ConSE,
    DPConSE,
    EpsilonGreedy,
    FunctionDesign,
    LinUCB,
    PrivateUCB,
    Replications,
    Thompson,
    Uniform,
)
from adaptinf.errors import ParameterError
from adaptinf.simulation.environments import BernoulliArms, Classification, FiniteContext, NormalArms, Tableau
from adaptinf.simulation.replicate import BLOCK, seed_sequence, written_arrays
from adaptinf.workers import spread

ARMS = BernoulliArms([0.3, 0.5, 0.7])
CONTEXTS = FiniteContext([0.6, 0.4], [[0.3, 0.7], [0.6, 0.2]])


def test_kernels_write_one_status_a_propensity_an_arm_and_five_numbers_a_release() -> None:
    shapes = {name: array.shape for name, array in written_arrays(3, 2).items()}
    assert shapes == {"status": (1,), "propensity": (3,), "released": (2, 5)}


def same(one: Replications, other: Replications) -> None:
    np.testing.assert_array_equal(one.tallies, other.tallies)
    np.testing.assert_array_equal(one.outcomes, other.outcomes)
    np.testing.assert_array_equal(one.regret, other.regret)


def part(sims: Replications, rows: slice) -> Replications:
    return Replications(
        tallies=sims.tallies[rows],
        outcomes=sims.outcomes[rows],
        outcome_names=sims.outcome_names,
        statuses=sims.statuses,
        regret=sims.regret[rows],
        contextual=sims.contextual,
        truth=sims.truth,
    )


@pytest.mark.parametrize("design", [PrivateUCB(epsilon=1.0), Thompson(draws=10)])
def test_more_replications_leave_the_first_ones_alone(design: Any) -> None:
    whole = design.replicate(ARMS, horizon=60, replications=200, rng=3)
    for count in (1, 63, 64, 65, 130):
        same(design.replicate(ARMS, horizon=60, replications=count, rng=3), part(whole, slice(0, count)))
    same(design.replicate(ARMS, horizon=60, replications=200, rng=3, start=128), part(whole, slice(128, 200)))
    assert np.unique(whole.tallies.reshape(200, -1), axis=0).shape[0] > 190  # blocks do not repeat


@pytest.mark.parametrize(
    ("design", "environment"), [(PrivateUCB(epsilon=1.0), ARMS), (DPConSE(epsilon=1.0), CONTEXTS)]
)
def test_workers_do_not_change_the_numbers(design: Any, environment: Any) -> None:
    one = design.replicate(environment, horizon=200, replications=330, rng=9)
    same(one, design.replicate(environment, horizon=200, replications=330, rng=9, n_jobs=2))
    same(
        part(one, slice(64, 330)),
        design.replicate(environment, horizon=200, replications=330, rng=9, n_jobs=2, start=64),
    )


def test_compiled_designs_run_in_threads_and_functions_in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    def processes(n_jobs: int) -> Any:
        called.append("processes")
        return lambda jobs: [job[0](*job[1]) for job in jobs]

    monkeypatch.setattr("adaptinf.workers.Parallel", processes)
    Thompson(floor=0.1).replicate(ARMS, 30, 200, rng=0, n_jobs=2)
    assert called == []
    FunctionDesign(lambda state, context, rng: [1 / 3] * 3).replicate(ARMS, 30, 200, rng=0, n_jobs=2)
    assert called == ["processes"]


def test_an_interrupt_waits_for_no_thread() -> None:
    begun: list[int] = []
    release = threading.Event()
    main = threading.main_thread().ident
    assert main is not None

    def job(number: int) -> None:
        begun.append(number)
        if number == 0:
            signal.pthread_kill(main, signal.SIGINT)
        release.wait(60.0)

    # A process that a shell starts in the background ignores the signal.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            spread([(job, (number,)) for number in range(50)], 2, threads=True)
    finally:
        release.set()
        signal.signal(signal.SIGINT, handler)
    assert set(begun) <= {0, 1}


def test_threads_share_no_order_of_rows() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.random(300), "choice": rng.integers(0, 2, 300)})
    world = Classification(frame, "choice", "age", order="shuffled")
    one, four = (LinUCB().replicate(world, 250, 330, rng=1, n_jobs=jobs) for jobs in (1, 4))
    same(one, four)


def test_seeds_of_every_kind() -> None:
    design = EpsilonGreedy()

    def numbers(rng: Any) -> np.ndarray:
        return design.replicate(ARMS, horizon=30, replications=70, rng=rng).tallies

    reference = numbers(5)
    for rng in (np.int64(5), np.uint8(5), np.random.SeedSequence(5)):
        np.testing.assert_array_equal(numbers(rng), reference)
    assert not np.array_equal(numbers(6), reference)
    assert not np.array_equal(numbers(2**70), numbers(2**70 + 1))
    np.testing.assert_array_equal(numbers(2**70), numbers(2**70))


def test_a_seed_sequence_is_not_used_up_and_its_children_differ() -> None:
    root = np.random.SeedSequence(5)
    first = Uniform().replicate(ARMS, horizon=30, replications=70, rng=root).tallies
    assert root.n_children_spawned == 0
    np.testing.assert_array_equal(
        Uniform().replicate(ARMS, horizon=30, replications=70, rng=root).tallies, first
    )
    children = [Uniform().replicate(ARMS, 30, 70, rng=child).tallies for child in root.spawn(2)]
    assert not np.array_equal(children[0], children[1])
    assert not np.array_equal(children[0], first)


def test_a_generator_is_drawn_from_once() -> None:
    rng, twin = np.random.default_rng(1), np.random.default_rng(1)
    first = Uniform().replicate(ARMS, horizon=30, replications=130, rng=rng).tallies
    second = Uniform().replicate(ARMS, horizon=30, replications=130, rng=rng).tallies
    assert not np.array_equal(first, second)
    again = Uniform().replicate(ARMS, horizon=30, replications=130, rng=twin).tallies
    np.testing.assert_array_equal(again, first)
    Uniform().run(ARMS, horizon=10_000, rng=twin)
    assert rng.bit_generator.state == twin.bit_generator.state  # how much is run does not matter


def test_no_seed_means_fresh_randomness() -> None:
    first, second = (Uniform().replicate(ARMS, horizon=50, replications=64).tallies for _ in range(2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("rng", [-1, 1.5, "seed", True, [1, 2], np.random.PCG64(1)])
def test_other_seeds_are_refused(rng: Any) -> None:
    with pytest.raises(ParameterError, match="rng must be a whole number of at least 0, a SeedSequence"):
        Uniform().replicate(ARMS, horizon=5, replications=2, rng=rng)
    with pytest.raises(ParameterError, match="rng"):
        Uniform().run(ARMS, horizon=5, rng=rng)


def test_a_legacy_generator_is_refused() -> None:
    with pytest.raises(ParameterError, match="rng"):
        seed_sequence(np.random.RandomState(0))  # type: ignore[arg-type]


def test_blocks_have_streams_of_their_own() -> None:
    tallies = Uniform().replicate(NormalArms([0.0, 0.0]), horizon=20, replications=4 * BLOCK, rng=0).tallies
    sums = tallies[..., 1].sum(axis=(1, 2, 3))
    assert np.unique(sums).size == sums.size
    blocks = sums.reshape(4, BLOCK)
    correlation = np.corrcoef(blocks)[np.triu_indices(4, 1)]
    assert np.abs(correlation).max() < 4.0 / np.sqrt(BLOCK)


# --- the sums -----------------------------------------------------------------------------------


def test_sums_by_hand() -> None:
    design = DPConSE(epsilon=1.0, alpha=0.5)
    environment = FiniteContext([0.6, 0.4], [[0.3, 0.7], [0.6, 0.2]], rewards="normal")
    sims = design.replicate(environment, horizon=300, replications=3, rng=1)
    assert sims.pulls.shape == sims.means.shape == sims.sums.shape == (3, 2, 2)
    for r, log in enumerate(design.logs(environment, horizon=300, replications=3, rng=1)):
        arrays, feature = log.arrays, np.asarray(log.arrays.context["feature"])
        for j in range(2):
            for arm in range(2):
                rows = (feature == j) & (arrays.action == arm)
                assert sims.pulls[r, j, arm] == rows.sum()
                assert sims.sums[r, j, arm] == pytest.approx(arrays.reward[rows].sum(), abs=1e-9)
                assert sims.means[r, j, arm] == pytest.approx(arrays.reward[rows].mean(), abs=1e-9)
                for code, phase in enumerate(log.phases):
                    for randomised in (True, False):
                        inside = rows & (arrays.phase == code) & (arrays.randomised == randomised)
                        got = sims.phase_tallies(phase, randomised)[r, j, arm]
                        values = arrays.reward[inside]
                        expected = [inside.sum(), values.sum(), np.square(values).sum()]
                        np.testing.assert_allclose(got, expected, atol=1e-9)
                    both = sims.phase_tallies(phase)[r, j, arm, 0]
                    assert both == (rows & (arrays.phase == code)).sum()


def test_an_arm_that_was_never_pulled_has_no_mean() -> None:
    sims = PrivateUCB(epsilon=1.0).replicate(BernoulliArms([0.5] * 6), horizon=4, replications=3, rng=0)
    np.testing.assert_array_equal(sims.pulls, [[1, 1, 1, 1, 0, 0]] * 3)
    assert np.isnan(sims.means[:, 4:]).all()
    assert np.isfinite(sims.means[:, :4]).all()


def test_contexts_with_one_value_keep_their_axis() -> None:
    sims = ConSE().replicate(FiniteContext([1.0], [[0.2, 0.8]]), horizon=100, replications=2, rng=0)
    assert sims.pulls.shape == (2, 1, 2)
    assert sims.released["better_arm"].shape == (2, 1)
    flat = ConSE().replicate(BernoulliArms([0.2, 0.8]), horizon=100, replications=2, rng=0)
    assert flat.pulls.shape == (2, 2)


def test_regret_of_known_pulls() -> None:
    sims = Uniform().replicate(BernoulliArms([0.2, 0.9]), horizon=100, replications=5, rng=0)
    np.testing.assert_allclose(sims.regret, 0.7 * sims.pulls[:, 0], rtol=1e-12)
    table = Tableau(np.tile([0.25, 1.0], (100, 1)))
    sims = Uniform().replicate(table, horizon=100, replications=5, rng=0)
    np.testing.assert_allclose(sims.regret, 0.75 * sims.pulls[:, 0], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", ["environment", "environments", "replicate", "run", "environments.vector_arms", "transcripts"]
)
def test_modules_can_be_imported_first_as_a_worker_process_does(module: str) -> None:
    subprocess.run([sys.executable, "-c", f"import adaptinf.simulation.{module}"], check=True, timeout=120)
