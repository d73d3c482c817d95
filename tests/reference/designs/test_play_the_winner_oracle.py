"""Randomised play-the-winner against a literal urn and the enumeration of all paths; the ECMO trial."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from adaptinf.audit.binary.log_tests import exact_test
from adaptinf.audit.randomization.randomization_tests import randomization_test
from adaptinf.audit.randomization.rerun_plan import Runner, make_plan
from adaptinf.designs.arms.play_the_winner import PlayTheWinner
from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms, NormalArms, Tableau, UniformArms
from adaptinf.simulation.replicate import block_stream

ECMO = [1, 0] + [1] * 10
ARMS = [0, 1] + [0] * 10  # 0 is extracorporeal oxygenation, 1 the conventional treatment


def path_probabilities(outcomes: list[int], n_arms: int = 2) -> dict[tuple[int, ...], Fraction]:
    """Probability of every sequence of arms, whatever arm the outcomes came from, one ball of each first."""
    found = {}
    for path in itertools.product(range(n_arms), repeat=len(outcomes)):
        urn = [Fraction(1)] * n_arms
        probability = Fraction(1)
        for arm, outcome in zip(path, outcomes, strict=True):
            probability *= urn[arm] / sum(urn)
            for other in range(n_arms):
                if (other == arm) == bool(outcome):
                    urn[other] += Fraction(1) if outcome else Fraction(1, n_arms - 1)
        found[path] = probability
    return found


def successes_on_e(action: np.ndarray, reward: np.ndarray, context: object = None) -> np.ndarray:
    return (reward * (action == 0)).sum(axis=-1)


def test_the_ecmo_trial_by_enumeration() -> None:
    """All eleven survivors on E: 2/39, of which 1/26 with the logged arms; .6168 given eleven on E."""
    exact = path_probabilities(ECMO)
    assert sum(exact.values()) == 1
    survivors = np.array(ECMO)
    every = {path: successes_on_e(np.array(path), survivors) for path in exact}
    assert max(every.values()) == 11 == every[tuple(ARMS)]
    assert sum(p for path, p in exact.items() if every[path] == 11) == Fraction(2, 39)
    assert exact[tuple(ARMS)] == Fraction(1, 26)
    eleven = {path: p for path, p in exact.items() if path.count(0) == 11}
    extreme = sum(p for path, p in eleven.items() if every[path] == 11)
    assert float(extreme / sum(eleven.values())) == pytest.approx(0.6168, abs=5e-5)


def ecmo_log() -> AdaptiveLog:
    arrays = LogArrays(action=np.array(ARMS), reward=np.array(ECMO, dtype=float))
    return AdaptiveLog.from_arrays(arrays, arms=("E", "C"), reward_range=(0.0, 1.0))


@pytest.mark.slow
def test_the_ecmo_trial_by_re_running() -> None:
    """The same numbers from the machinery that every randomisation test uses."""
    runs = 20_000
    plan = make_plan(ecmo_log(), PlayTheWinner(), None, None, 7)
    runner = Runner(plan)
    stream = block_stream(plan.root, 0)
    action, order = runner.paths(plan, plan.rows.paying(plan.rewards()), stream, runs)
    assert (order == np.arange(12)).all()
    survivors = successes_on_e(action, np.array(ECMO)) == 11
    eleven = (action == 0).sum(axis=1) == 11
    for hits, size, p in ((survivors, runs, 2 / 39), (survivors & eleven, eleven.sum(), 0.6168)):
        assert abs(hits.sum() - size * p) < 4.2 * np.sqrt(size * p * (1 - p))
    test = randomization_test(ecmo_log(), PlayTheWinner(), successes_on_e, replications=9_999, rng=1)
    assert (test.exceedances, test.statistic) == (0, 11.0)
    assert test.pvalue_conservative == (1 + test.ties) / 10_000
    assert abs(test.pvalue_conservative - 2 / 39) < 4.2 * np.sqrt(2 / 39 * 37 / 39 / 9_999) + 1e-4
    whole = randomization_test(
        ecmo_log(), PlayTheWinner(), successes_on_e, replications=9_999, rng=1, vectorised=True
    )
    np.testing.assert_array_equal(whole.draws, test.draws)


def test_the_p_value_of_the_ecmo_trial() -> None:
    """Difference in success rates, E minus C: no path has a larger one."""
    exact = path_probabilities(ECMO)

    def gap(path: tuple[int, ...]) -> float:
        on = [y for a, y in zip(path, ECMO, strict=True) if a == 0]
        off = [y for a, y in zip(path, ECMO, strict=True) if a == 1]
        return sum(on) / len(on) - sum(off) / len(off) if on and off else 0.0

    above = float(sum(p for path, p in exact.items() if gap(path) > 1 - 1e-9))
    test = randomization_test(
        ecmo_log(), PlayTheWinner(), "difference", replications=9_999, rng=3, treatment="E", control="C",
        alternative="greater",
    )  # fmt: skip
    assert test.statistic == 1.0
    assert test.exceedances == 0
    error = np.sqrt(above * (1 - above) / 9_999)
    assert abs(test.pvalue_conservative - above) < 4.2 * error + 1e-4


@pytest.mark.slow
def test_the_ecmo_trial_without_a_seed() -> None:
    """All 4,096 paths: 2/39 with eleven survivors on E, ties in full, whatever the seed."""
    for rng in (0, 1, None):
        test = randomization_test(ecmo_log(), PlayTheWinner(), successes_on_e, rng=rng)
        assert test.pvalue == pytest.approx(2 / 39, rel=1e-12)
        assert test.pvalue_conservative == test.pvalue
    assert (test.replications, test.monte_carlo_error) == (4096, 0.0)
    assert "all 4,096 paths" in str(test)
    assert "all 4,096 paths" in repr(test)
    exact = path_probabilities(ECMO)
    assert test.path_probabilities == pytest.approx([float(p) for p in exact.values()], rel=1e-12)
    one = randomization_test(
        ecmo_log(), PlayTheWinner(), "difference", treatment="E", control="C", alternative="greater"
    )
    assert one.pvalue == pytest.approx(1 / 26, rel=1e-12)
    assert randomization_test(ecmo_log(), PlayTheWinner(), "difference").pvalue == pytest.approx(1 / 13)


@pytest.mark.slow
def test_the_exact_test_of_the_ecmo_trial_without_a_seed() -> None:
    """Given eleven survivors at any place, by the enumeration of paths over all twelve places."""
    chance = Fraction(0)
    for place in range(12):
        outcomes = [int(i != place) for i in range(12)]
        for path, p in path_probabilities(outcomes).items():
            chance += p / 12 if path.count(1) == 1 and path[place] == 1 else 0
    assert float(chance) == pytest.approx(0.019892, abs=5e-7)
    for side, times in (("less", 1), ("two-sided", 2)):
        found = exact_test(ecmo_log(), PlayTheWinner(), alternative=side)
        assert found.pvalue == pytest.approx(times * float(chance), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("n_arms", [2, 3, 4])
def test_paths_have_their_exact_probabilities(n_arms: int) -> None:
    outcomes = [1, 0, 0, 1]
    exact = path_probabilities(outcomes, n_arms)
    environment = Tableau(np.repeat(np.array(outcomes, dtype=float)[:, None], n_arms, axis=1))
    runs = 6_000
    counts = dict.fromkeys(exact, 0)
    for log in PlayTheWinner().logs(environment, 4, runs, rng=1):
        path = tuple(log.arrays.action.tolist())
        counts[path] += 1
        assert float(exact[path]) == pytest.approx(np.prod(log.arrays.propensity), rel=1e-12)
    expected = np.array([float(p) * runs for p in exact.values()])
    seen = np.array(list(counts.values()))
    chi2 = ((seen - expected) ** 2 / expected).sum()
    freedom = len(exact) - 1
    assert abs(chi2 - freedom) < 4.5 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("n_arms", [2, 3])
def test_number_for_number(n_arms: int) -> None:
    """The same stream read literally: one uniform for the arm, one for the reward."""
    means = np.array([0.2, 0.6, 0.9])[:n_arms]
    log = PlayTheWinner(initial=0.7, added=1.3).run(BernoulliArms(means), horizon=300, rng=5)
    stream = block_stream(np.random.SeedSequence(5), 0)
    urn = np.full(n_arms, 0.7)
    for t in range(300):
        share = urn / urn.sum()
        np.testing.assert_allclose(log.arrays.propensities[t], share, rtol=1e-12)
        arm = min(int(np.searchsorted(np.cumsum(share), stream.random(), side="right")), n_arms - 1)
        reward = float(stream.random() < means[arm])
        assert (log.arrays.action[t], log.arrays.reward[t]) == (arm, reward)
        urn += 1.3 * np.where(np.arange(n_arms) == arm, reward, (1 - reward) / (n_arms - 1))


def test_fractions_of_a_success_and_clipping() -> None:
    log = PlayTheWinner().run(UniformArms([0.0, 0.2], [0.6, 1.0]), horizon=100, rng=2)
    urn = np.ones(2)
    for t in range(100):
        np.testing.assert_allclose(log.arrays.propensities[t], urn / urn.sum(), rtol=1e-10)
        arm, reward = log.arrays.action[t], log.arrays.reward[t]
        urn[arm] += reward
        urn[1 - arm] += 1 - reward
    wild = PlayTheWinner().run(NormalArms([0.0, 5.0], scale=3.0), horizon=200, rng=2)
    assert (wild.arrays.propensities > 0).all()
    assert wild.arrays.propensities[-1].sum() == pytest.approx(1.0)


def test_the_better_arm_is_pulled_more_often() -> None:
    """The share of an arm tends to (1 - p other) / (2 - p - p other) (Wei and Durham)."""
    sims = PlayTheWinner().replicate(BernoulliArms([0.3, 0.5]), horizon=4_000, replications=256, rng=0)
    share = sims.pulls[:, 1] / 4_000
    limit = 0.7 / 1.2
    assert share.mean() == pytest.approx(limit, abs=4.5 * share.std() / 16 + 2e-3)


@pytest.mark.parametrize("name", ["initial", "added"])
@pytest.mark.parametrize("odd", [0.0, -1.0, np.nan, np.inf, "1", None, True])
def test_odd_numbers_of_balls(name: str, odd: object) -> None:
    with pytest.raises(ParameterError, match=name):
        PlayTheWinner(**{name: odd})  # type: ignore[arg-type]


def test_rewards_of_another_range_and_a_single_arm() -> None:
    with pytest.raises(ParameterError) as caught:
        PlayTheWinner().run(UniformArms([0.0], [2.0]), horizon=10, rng=0)
    assert "at least 2 arms" in str(caught.value)
    assert "rewards must lie in [0, 1]" in str(caught.value)
