"""Scores of neighbouring records against loops written from the definition, on transcripts of real runs."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from scipy import stats

from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.audit.privacy.designs.audited_trial import Neighbours
from adaptinf.audit.privacy.designs.conse_audits import WindowRatio
from adaptinf.audit.privacy.designs.local_audits import BinRatio
from adaptinf.designs import DPConSE, Mixture
from adaptinf.designs.base import Design
from adaptinf.designs.local.bins import LDPBandit
from adaptinf.designs.local.local_linear import LDPLinear
from adaptinf.errors import ParameterError
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.transcripts import Transcripts, sample_transcripts

RUNS = 64


def transcripts_of(design: Design, pair: Neighbours, env: Environment, runs: int = RUNS) -> Transcripts:
    design = design if pair.design is None else pair.design
    return next(iter(sample_transcripts(design, env, pair.horizon, 0, runs, np.random.SeedSequence(7))))


# --- corrected DP-ConSE ---


def conse_likelihood(
    transcripts: Transcripts, run: int, score: WindowRatio, side: int, epsilons: tuple[float, float]
) -> float:
    """Density of a window's sums together with the actions seen, over every coin that is not seen."""
    data = score.sides[side]
    n_features = int(data.contexts.max()) + 1
    inclusion, better = np.ones(n_features), np.zeros(n_features)
    if score.start > 0:
        reported = transcripts.outcomes[run, 1:].reshape(4, n_features)
        inclusion, better = reported[2], reported[3]
    released = {
        (int(code), int(group)): value
        for at, code, group, value, _ in transcripts.releases[run]
        if at == score.stop
    }
    window = range(score.start, score.stop)
    choices = [(arm, inside) for arm in (0, 1) for inside in (True, False) if inside or score.start > 0]
    overridden = transcripts.statuses[run] == score.override
    total = 0.0
    for coins in itertools.product(*([(0, False)] if overridden[t] else choices for t in window)):
        chance, sums, counts = 1.0, [0.0] * n_features, [0] * n_features
        for t, (coin, inside) in zip(window, coins, strict=True):
            feature = data.contexts[t]
            if overridden[t]:
                counts[feature] += score.start == 0
                continue
            chance *= 0.5 * (inclusion[feature] if inside else 1.0 - inclusion[feature])
            arm = coin if inside else int(better[feature])
            if t != score.unseen and arm != transcripts.actions[run, t]:
                chance = 0.0
                break
            if inside:
                counts[feature] += 1
                sums[feature] += (2 * coin - 1) * (data.rewards[t, coin] - 0.5)
        if chance > 0.0:
            given = [released[0, feature] for feature in range(n_features)]
            chance *= stats.laplace.pdf(given, sums, 1.0 / epsilons[0]).prod()
            given = [released[1, feature] for feature in range(n_features)]
            exact = math.isinf(epsilons[1])
            chance *= given == counts if exact else stats.laplace.pdf(given, counts, 2.0 / epsilons[1]).prod()
            total += chance
    return total


@pytest.mark.parametrize("unit", ["record", "reward"])
@pytest.mark.parametrize(("epsilon", "first_window"), [(0.5, None), (3.0, 4)])
def test_conse_score_is_the_likelihood_ratio(unit: str, epsilon: float, first_window: int | None) -> None:
    design = DPConSE(epsilon=epsilon, first_window=first_window)
    for pair in neighbouring_trials(design, unit)[:3]:
        score = pair.score
        assert isinstance(score, WindowRatio)
        budgets = 0.6 * epsilon, 0.4 * epsilon
        for env in (pair.first, pair.second):
            seen = transcripts_of(design, pair, env)
            scores = score(seen)
            for run in range(10):
                first, second = (conse_likelihood(seen, run, score, side, budgets) for side in (0, 1))
                assert scores[run] == pytest.approx(math.log(second / first), abs=1e-9)


def test_some_second_half_participants_of_the_transcripts_are_outside_the_trial() -> None:
    design = DPConSE(epsilon=3.0)
    pair = neighbouring_trials(design)[1]
    seen = transcripts_of(design, pair, pair.first)
    inclusion = seen.outcomes[:, 5:7]
    assert 0 < (inclusion < 1.0).any(axis=1).sum() < RUNS


@pytest.mark.parametrize("unit", ["record", "reward"])
def test_conse_scores_reach_the_promise_and_never_exceed_it(unit: str) -> None:
    design = DPConSE(epsilon=1.0)
    promised = 1.0 if unit == "record" else 0.6
    for pair in neighbouring_trials(design, unit):
        assert pair.unit == unit
        pieces = [transcripts_of(design, pair, env) for env in (pair.first, pair.second)]
        scores = np.concatenate([pair.score(piece) for piece in pieces])
        assert np.abs(scores).max() <= promised + 1e-9
        if "long" not in pair.differs:
            assert np.abs(scores).max() == pytest.approx(promised)


# --- published DP-ConSE ---


def length_law(epsilon: float, center: int, longest: int) -> dict[int, float]:
    weights = {k: math.exp(-0.5 * epsilon * abs(k - center)) for k in range(longest)}
    whole = sum(weights.values())
    return {k: weight / whole for k, weight in weights.items()}


def test_action_score_is_the_likelihood_ratio_of_other_participants_actions() -> None:
    epsilon = 0.3
    design = DPConSE(epsilon=epsilon, calibration="published")
    pair = neighbouring_trials(design)[2]
    (participant,) = pair.hidden
    contexts = [env._tables.tableau_features for env in (pair.first, pair.second)]
    center = 25
    law = length_law(epsilon, center, 600)
    seen = transcripts_of(design, pair, pair.first)
    scores = pair.score(seen)
    for run in range(8):
        log_chances = []
        for features in contexts:
            log_chance = 0.0
            for feature in (0, 1):
                arrivals = [t for t in range(100, 200) if features[t] == feature]
                chance = 0.0
                for length, weight in law.items():
                    for number, t in enumerate(arrivals, 1):
                        if t != participant:
                            wrong = seen.actions[run, t] != 0
                            weight *= 0.5 if number <= length else float(not wrong)
                    chance += weight
                log_chance += math.log(chance)
            log_chances.append(log_chance)
        assert scores[run] == pytest.approx(log_chances[1] - log_chances[0], abs=1e-9)


def test_length_score_is_the_likelihood_ratio_of_the_lengths() -> None:
    epsilon = 0.3
    design = DPConSE(epsilon=epsilon, calibration="published")
    pair = neighbouring_trials(design)[3]
    laws = []
    for env in (pair.first, pair.second):
        rarest = np.bincount(env._tables.tableau_features[: pair.horizon // 2]).min()
        laws.append(length_law(epsilon, math.floor(max(math.log(pair.horizon), rarest)), 900))
    seen = transcripts_of(design, pair, pair.second)
    for releases, score in zip(seen.releases, pair.score(seen), strict=True):
        lengths = [int(row[3]) for row in releases if row[1] == 3]
        assert len(lengths) == 20
        ratio = sum(math.log(laws[1][length] / laws[0][length]) for length in lengths)
        assert score == pytest.approx(ratio, abs=1e-9)


def test_what_the_two_other_published_scores_say() -> None:
    design = DPConSE(epsilon=1.0, calibration="published")
    closing, came = neighbouring_trials(design)[:2]
    for pair in (closing, came):
        for env in (pair.first, pair.second):
            seen = transcripts_of(design, pair, env)
            for releases, score in zip(seen.releases, pair.score(seen), strict=True):
                estimates = {(int(row[2]), int(row[0])) for row in releases if row[1] == 2}
                if pair is came:
                    assert score == -float(any(group == 0 for group, _ in estimates))
                else:
                    at = pair.hidden[0] + 1
                    assert score == float((1, at) in estimates) - float((0, at) in estimates)


# --- local privacy ---


@pytest.mark.parametrize("calibration", ["corrected", "published"])
@pytest.mark.parametrize("unit", ["record", "reward"])
def test_bin_score_is_the_likelihood_ratio(unit: str, calibration: str) -> None:
    design = LDPBandit(epsilon=2.0, calibration=calibration)
    (pair,) = neighbouring_trials(design, unit)
    other = [0.0, 0.0, 1.0, 1.0] if unit == "record" else [1.0, 0.0, 0.0, 0.0]
    for env in (pair.first, pair.second):
        seen = transcripts_of(design, pair, env)
        for releases, score in zip(seen.releases, pair.score(seen), strict=True):
            told = {(int(row[2]), int(row[1])): row for row in releases if not np.isnan(row[0])}
            report = [told[cell] for cell in ((1, 3), (1, 4), (2, 3), (2, 4))]
            assert all(row[4] == 2.0 for row in report)
            assert told[1, 2][3] == told[2, 2][3] == 1.0
            values = [row[3] for row in report]
            densities = [stats.laplace.logpdf(values, at, 2.0).sum() for at in ([1.0, 1.0, 0.0, 0.0], other)]
            ratio = densities[1] - densities[0]
            assert score == pytest.approx(ratio, abs=1e-9)


def test_bin_score_where_bins_are_never_halved() -> None:
    design = LDPBandit(epsilon=2.0, max_bins=1)
    (pair,) = neighbouring_trials(design)
    assert isinstance(pair.score, BinRatio)
    seen = transcripts_of(design, pair, pair.first)
    for releases, score in zip(seen.releases, pair.score(seen), strict=True):
        told = {int(row[1]): row[3] for row in releases if row[2] == 0}
        assert score == pytest.approx((abs(told[4] - 1.0) - abs(told[4])) / 2.0, abs=1e-9)


def linear_report(design: Design, pair: Neighbours, seen: Transcripts, run: int) -> np.ndarray:
    """The participant's report, from the steps that the documentation states."""
    assert isinstance(design, LDPLinear)
    part = design.auxiliary[0].log.arrays
    contexts = np.stack(list(part.context.values()), axis=1)
    dimension = contexts.shape[1]
    parameters = dimension + design.intercept
    noise = 4.0 * (parameters + 1) * (parameters + 2) / (3.0 * design.epsilon**2)
    thetas, averages, weights = (np.zeros((2, parameters)), np.zeros((2, parameters)), np.zeros(2))
    informations = np.zeros(2)

    def rate(information: float, total: float) -> float:
        return design.step * design.radius * information / math.sqrt(total)

    def mean(predictor: float) -> float:
        if design.link == "identity":
            return min(max(predictor, 0.0), 1.0)
        return 1.0 / (1.0 + math.exp(-predictor))

    for x, arm, reward in zip(contexts, part.action, part.reward, strict=True):
        z = np.append(2.0 * x - 1.0, 1.0) if design.intercept else x
        for other in (0, 1):
            informations[other] += 1.0 / parameters
            gradient = (mean(thetas[arm] @ z) - reward) * z if other == arm else np.zeros(parameters)
            thetas[other] -= rate(1.0 / parameters, informations[other]) * gradient
            weight = informations[other] / parameters
            weights[other] += weight
            averages[other] += weight / weights[other] * (thetas[other] - averages[other])
    own = 1.0 / (parameters * (1.0 + noise))
    report = np.empty((2, parameters))
    for arm in (0, 1):
        told = {int(row[1]): row[3] for row in seen.releases[run] if row[2] == arm}
        after = np.array([told[k] for k in range(parameters)])
        if design.intercept:
            after[:-1] /= 2.0
            after[-1] += after[:-1].sum()
        total = informations[arm] + own
        share = own * total / (weights[arm] + own * total)
        theta = averages[arm] + (after - averages[arm]) / share
        report[arm] = (thetas[arm] - theta) / rate(own, total)
    return report


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("link", ["logistic", "identity"])
@pytest.mark.parametrize("unit", ["record", "reward"])
def test_gradient_score_is_the_likelihood_ratio(unit: str, link: str, intercept: bool) -> None:
    epsilon = 2.0
    for stage, pair in enumerate(
        neighbouring_trials(LDPLinear(epsilon=epsilon, link=link, intercept=intercept), unit)
    ):
        high = np.array([1.0, 1.0])
        low = np.array([-1.0, 1.0]) if intercept else np.array([0.0, 1.0])
        first, second = np.zeros((2, 2)), np.zeros((2, 2))
        first[0] = high  # predicted 1, reward 0
        if unit == "record":
            second[1 - stage] = -low  # predicted 0, reward 1; the warm-up has arm 0
        arms = (0, 1) if stage == 0 else (0,)
        for env in (pair.first, pair.second):
            seen = transcripts_of(pair.design, pair, env)
            scores = pair.score(seen)
            for run in range(RUNS):
                report = linear_report(pair.design, pair, seen, run)
                log_densities = [
                    sum(-0.5 * epsilon * np.abs(report[arm] - side[arm]).max() for arm in arms)
                    for side in (first, second)
                ]
                assert scores[run] == pytest.approx(log_densities[1] - log_densities[0], abs=1e-9)


@pytest.mark.parametrize(
    "design",
    [
        DPConSE(epsilon=1.0),
        DPConSE(epsilon=1.0, alpha=0.2, calibration="published"),
        LDPBandit(epsilon=1.0),
        LDPLinear(epsilon=1.0),
    ],
)
def test_scores_can_be_sent_to_workers(design: Design) -> None:
    for pair in neighbouring_trials(design):
        seen = transcripts_of(design, pair, pair.first)
        assert pickle.loads(pickle.dumps(pair.score))(seen) == pytest.approx(pair.score(seen))


@pytest.mark.parametrize("design", [DPConSE(epsilon=1.0), LDPBandit(epsilon=1.0), LDPLinear(epsilon=1.0)])
def test_units_are_record_and_reward(design: Design) -> None:
    with pytest.raises(ParameterError, match="unit must be one of 'record', 'reward', got 'arm'"):
        neighbouring_trials(design, "arm")


def test_refusals_that_name_the_reason() -> None:
    with pytest.raises(ParameterError, match="gives no guarantee for rewards"):
        neighbouring_trials(DPConSE(epsilon=1.0, calibration="published"), "reward")
    with pytest.raises(ParameterError, match="width must be smaller"):
        neighbouring_trials(LDPBandit(epsilon=1.0, width=1e6))
    assert len(neighbouring_trials(DPConSE(epsilon=1.0, alpha=1.0, calibration="published"))) == 3


@pytest.mark.parametrize("unit", ["record", "reward"])
def test_conse_scores_with_exact_counts_reach_epsilon_and_never_exceed_it(unit: str) -> None:
    design = DPConSE(epsilon=1.5, contrast_share=1.0)
    pairs = neighbouring_trials(design, unit)
    assert len(pairs) == 3
    for pair in pairs:
        assert (pair.unit, pair.hidden) == (unit, ())
        pieces = [transcripts_of(design, pair, env) for env in (pair.first, pair.second)]
        scores = np.concatenate([pair.score(piece) for piece in pieces])
        assert np.abs(scores).max() == pytest.approx(1.5)


@pytest.mark.parametrize("unit", ["record", "reward"])
@pytest.mark.parametrize("share", [0.6, 1.0])
def test_conse_score_of_a_mixture_is_the_likelihood_ratio(unit: str, share: float) -> None:
    """Overridden rounds are in no sum; counts are exact where all of epsilon is for the sums."""
    design = Mixture(DPConSE(epsilon=2.0, contrast_share=share), exploration=0.4)
    budgets = 2.0 * share, 0.8 if share < 1.0 else math.inf
    for pair in neighbouring_trials(design, unit)[:3]:
        score, overrides = pair.score, 0
        assert isinstance(score, WindowRatio)
        assert "overrides" not in pair.score_name
        for env in (pair.first, pair.second):
            seen = transcripts_of(design, pair, env)
            scores = score(seen)
            assert np.isfinite(scores).all()
            overrides += int((seen.statuses[:, score.start : score.stop] == score.override).sum())
            for run in range(10):
                first, second = (conse_likelihood(seen, run, score, side, budgets) for side in (0, 1))
                assert scores[run] == pytest.approx(math.log(second / first), abs=1e-9)
        assert overrides > 20
