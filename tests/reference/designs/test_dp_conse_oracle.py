"""DP-ConSE against literal readings: the corrected design and the published pseudo-code."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from adaptinf.designs import DPConSE
from adaptinf.designs.contextual.private_conse_kernel import window_ends
from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import BernoulliArms, Environment, FiniteContext

THREE = FiniteContext([0.5, 0.3, 0.2], [[0.4, 0.7], [0.6, 0.3], [0.3, 0.65]])


def feature_of(log: AdaptiveLog) -> np.ndarray:
    return np.asarray(log.arrays.context.get("feature", np.zeros(log.n_rounds))).astype(int)


def released(log: AdaptiveLog, name: str) -> pd.DataFrame:
    return log.releases[log.releases["name"] == name].reset_index(drop=True)


def value_at(table: pd.DataFrame, round_: int, group: int) -> float | None:
    rows = table[(table["round"] == round_) & (table["group"] == group)]
    assert len(rows) <= 1
    return float(rows["value"].iloc[0]) if len(rows) else None


# --- corrected ---------------------------------------------------------------------------------------------


def literal_windows(horizon: int, first: int | None, contexts: int = 1) -> list[int]:
    """Ends of the windows: doubling lengths, a remainder shorter than half a window joins the last one."""
    half = horizon // 2
    largest = math.ceil(256 * contexts * math.log(horizon))
    length = max(64, min(math.ceil(horizon / 64), largest)) if first is None else first
    ends, end = [], 0
    while end < half:
        if half - end < length / 2 and ends:
            ends[-1] = half
            break
        end = min(end + length, half)
        ends.append(end)
        length *= 2
    return ends


class CorrectedOracle:
    """Recomputes, from contexts, coins, rewards and releases, everything that follows from the releases."""

    def __init__(self, log: AdaptiveLog, design: DPConSE, m: int) -> None:
        self.n, self.m, self.log = log.n_rounds, m, log
        self.epsilon_d = design.contrast_share * design.epsilon
        self.epsilon_n = design.epsilon - self.epsilon_d
        self.ends = literal_windows(self.n, design.first_window)
        self.feature, self.action = feature_of(log), log.arrays.action
        self.clipped = np.clip(log.arrays.reward, 0.0, 1.0)
        self.contrasts, self.arrivals = released(log, "contrast_sum"), released(log, "arrivals")
        self.contrast_noise: list[float] = []
        self.arrival_noise: list[float] = []
        self.expected_releases = 0
        self.decided: dict[int, int] = {}
        self.decided_at: dict[int, int] = {}
        self.pooled, self.total = np.zeros(m), np.zeros(m)
        self.first_half()
        self.half_time(design)
        self.second_half()

    def sums(self, rows: np.ndarray) -> tuple[float, int]:
        signs = 2 * self.action[rows] - 1
        return float(np.sum(signs * (self.clipped[rows] - 0.5))), int(rows.sum())

    def first_half(self) -> None:
        beta, n_windows, start = 1 / self.n, len(self.ends), 0
        for end in self.ends:
            for j in range(self.m):
                rows = np.zeros(self.n, dtype=bool)
                rows[start:end] = self.feature[start:end] == j
                true_d, true_n = self.sums(rows)
                noisy_n = value_at(self.arrivals, end, j)
                noisy_d = value_at(self.contrasts, end, j)
                assert noisy_n is not None
                self.arrival_noise.append(noisy_n - true_n)
                self.total[j] += noisy_n
                self.expected_releases += 1
                if j in self.decided:
                    assert noisy_d is None
                    continue
                assert noisy_d is not None
                self.expected_releases += 1
                self.contrast_noise.append(noisy_d - true_d)
                self.pooled[j] += noisy_d
                log_two = math.log(2 * self.m * n_windows / beta)
                upper_n = noisy_n + (2 / self.epsilon_n * log_two if self.epsilon_n else 0.0)
                root = math.sqrt(max(upper_n, 0.0) * math.log(4 * self.m * n_windows / beta) / 2)
                if abs(noisy_d) > root + log_two / self.epsilon_d:
                    self.decided[j] = int(noisy_d > 0)
                    self.decided_at[j] = end
            start = end

    def half_time(self, design: DPConSE) -> None:
        self.better = np.array([self.decided.get(j, int(self.pooled[j] > 0)) for j in range(self.m)])
        total = np.maximum(1.0, self.total)
        c = 4 * design.epsilon / (self.epsilon_n or self.epsilon_d)
        self.t_min = max(c * math.log(self.n) / design.epsilon, float(np.min(total ** (1 - design.alpha))))
        self.inclusion = np.minimum(1.0, self.t_min / total)

    def second_half(self) -> None:
        half = self.n // 2
        inside = self.log.arrays.randomised & (np.arange(self.n) >= half)
        for j in range(self.m):
            true_d, true_n = self.sums(inside & (self.feature == j))
            noisy_d, noisy_n = value_at(self.contrasts, self.n, j), value_at(self.arrivals, self.n, j)
            assert noisy_d is not None
            assert noisy_n is not None
            self.contrast_noise.append(noisy_d - true_d)
            self.arrival_noise.append(noisy_n - true_n)
            self.expected_releases += 2

    def check_rounds(self) -> None:
        half, arrays = self.n // 2, self.log.arrays
        coin = np.array(
            [t < self.decided_at.get(j, half) for t, j in enumerate(self.feature[:half])], dtype=bool
        )
        np.testing.assert_array_equal(arrays.randomised[:half], coin)
        late = np.arange(half, self.n)
        j = self.feature[late]
        better = self.better[j]
        treated = np.concatenate(
            [
                np.where(coin, 0.5, np.array([self.decided.get(k, -1) for k in self.feature[:half]])),
                self.inclusion[j] / 2 + (1 - self.inclusion[j]) * better,
            ]
        )
        np.testing.assert_allclose(arrays.propensities[:, 1], treated, rtol=1e-12, atol=0)
        np.testing.assert_allclose(arrays.propensities.sum(axis=1), 1.0, rtol=1e-12)
        chosen = arrays.propensities[np.arange(self.n), arrays.action]
        np.testing.assert_array_equal(arrays.propensity, chosen)
        assert (arrays.propensity > 0).all()
        outside = ~arrays.randomised[late]
        np.testing.assert_array_equal(arrays.action[late][outside], better[outside])
        expected = ["learning"] * half + ["estimation"] * (self.n - half)
        assert [self.log.phases[code] for code in arrays.phase] == expected
        assert len(self.log.releases) == self.expected_releases
        assert self.log.feedback_rounds == int(coin.sum())
        if self.epsilon_n == 0.0:
            assert set(self.arrival_noise) == {0.0}


SETTINGS: list[tuple[Environment, DPConSE, int]] = [
    (THREE, DPConSE(epsilon=1.0, alpha=0.2), 20_000),
    (THREE, DPConSE(epsilon=0.3, alpha=0.0), 5_001),
    (THREE, DPConSE(epsilon=4.0, alpha=0.5, contrast_share=0.3), 3_000),
    (FiniteContext([0.9, 0.1], [[0.1, 0.9], [0.5, 0.5]]), DPConSE(epsilon=2.0, alpha=1.0), 6_000),
    (FiniteContext([1.0], [[0.2, 0.9]]), DPConSE(epsilon=1.0, alpha=0.3, first_window=100), 4_000),
    (
        FiniteContext([0.5, 0.5], [[0.3, 0.7], [0.8, 0.2]], rewards="normal", scale=0.8),
        DPConSE(epsilon=1.5, alpha=0.4, first_window=17),
        3_000,
    ),
    (BernoulliArms([0.4, 0.7]), DPConSE(epsilon=1.0, contrast_share=1.0), 4_000),
    (BernoulliArms([0.8, 0.2]), DPConSE(epsilon=0.5, alpha=0.6, contrast_share=1.0, first_window=50), 6_000),
    (
        FiniteContext([1.0], [[0.2, 0.9]], rewards="normal", scale=0.5),
        DPConSE(epsilon=2.0, alpha=1.0, contrast_share=1.0),
        5_000,
    ),
    (BernoulliArms([0.5, 0.5]), DPConSE(epsilon=0.2, contrast_share=1.0), 40),
    (THREE, DPConSE(epsilon=1.0, alpha=0.5), 40),
    (THREE, DPConSE(epsilon=1.0, alpha=0.0), 2),
    (
        FiniteContext([[1.0, 0.0], [0.0, 1.0]], [[0.2, 0.9], [0.9, 0.2]], period=500),
        DPConSE(epsilon=1.0, alpha=0.1),
        1_000,
    ),
]


@pytest.mark.parametrize("setting", range(len(SETTINGS)))
def test_corrected_rounds_follow_from_the_releases(setting: int) -> None:
    environment, design, horizon = SETTINGS[setting]
    for seed in range(3):
        log = design.run(environment, horizon=horizon, rng=seed)
        CorrectedOracle(log, design, environment.n_features).check_rounds()


def test_corrected_scales_and_names_in_the_releases() -> None:
    design = DPConSE(epsilon=0.5, contrast_share=0.7)
    table = design.run(THREE, horizon=2_000, rng=0).releases
    assert set(table["name"]) == {"contrast_sum", "arrivals"}
    assert table.loc[table["name"] == "contrast_sum", "scale"].unique() == pytest.approx([1 / 0.35])
    assert table.loc[table["name"] == "arrivals", "scale"].unique() == pytest.approx([2 / 0.15])
    assert set(table["mechanism"]) == {"laplace"}


@pytest.mark.parametrize("rewards", ["bernoulli", "normal"])
def test_corrected_noise_has_the_stated_law(rewards: str) -> None:
    environment = FiniteContext([0.6, 0.4], [[0.4, 0.7], [0.6, 0.3]], rewards=rewards)
    design = DPConSE(epsilon=0.8, alpha=0.3, contrast_share=0.25, first_window=64)
    contrast, arrival = [], []
    for log in design.logs(environment, horizon=1_000, replications=64, rng=4):
        oracle = CorrectedOracle(log, design, 2)
        contrast += oracle.contrast_noise
        arrival += oracle.arrival_noise
    assert len(arrival) >= 64 * 2 * 4
    assert stats.kstest(contrast, stats.laplace(scale=1 / 0.2).cdf).pvalue > 1e-4
    assert stats.kstest(arrival, stats.laplace(scale=2 / 0.6).cdf).pvalue > 1e-4
    assert abs(np.corrcoef(contrast[1:], contrast[:-1])[0, 1]) < 4.0 / math.sqrt(len(contrast))
    assert abs(np.corrcoef(arrival[1:], arrival[:-1])[0, 1]) < 4.0 / math.sqrt(len(arrival))


def test_corrected_replicates_report_the_releases_of_the_log() -> None:
    design = DPConSE(epsilon=1.0, alpha=0.2)
    sims = design.replicate(THREE, horizon=3_000, replications=70, rng=11, by_rounds=True)
    logs = list(design.logs(THREE, horizon=3_000, replications=70, rng=11))
    for r in (0, 1, 7, 63, 64, 69):
        oracle = CorrectedOracle(logs[r], design, 3)
        last = logs[r].releases[logs[r].releases["round"] == 3_000]
        for name in ("contrast_sum", "arrivals"):
            rows = last[last["name"] == name].sort_values("group")
            np.testing.assert_array_equal(sims.released[name][r], rows["value"])
        assert sims.outcomes[r, sims.outcome_names.index("t_min")] == pytest.approx(oracle.t_min, rel=1e-12)
        np.testing.assert_allclose(sims.released["inclusion"][r], oracle.inclusion, rtol=1e-12)
        np.testing.assert_array_equal(sims.released["better_arm"][r], oracle.better)


def test_guarantees() -> None:
    design = DPConSE(epsilon=0.9, contrast_share=0.4)
    whole = design.guarantee(horizon=1_000, n_arms=2)
    assert (whole.epsilon, whole.delta) == (pytest.approx(0.9), 0.0)
    assert (whole.unit, whole.notion, whole.model) == ("record", "anticipating", "central")
    part = design.reward_guarantee(horizon=1_000, n_arms=2)
    assert part is not None
    assert (part.epsilon, part.delta) == (pytest.approx(0.36), 0.0)
    assert (part.unit, part.notion, part.model) == ("reward", "standard", "central")
    published = DPConSE(epsilon=0.9, calibration="published").guarantee(horizon=1_000, n_arms=2)
    assert math.isinf(published.epsilon)
    assert published.reasons
    log = design.run(THREE, horizon=500, rng=0)
    assert log.guarantee == whole
    assert log.reward_guarantee == part


def test_one_context_has_exact_counts_and_one_guarantee() -> None:
    design = DPConSE(epsilon=0.5, contrast_share=1.0)
    log = design.run(BernoulliArms([0.4, 0.7]), horizon=2_000, rng=0)
    assert str(log.guarantee) == "epsilon = 0.5, pure, per record, central, standard"
    assert str(log.reward_guarantee) == "epsilon = 0.5, pure, per reward, central, standard"
    table = log.releases
    exact = table["name"] == "arrivals"
    assert (set(table.loc[exact, "mechanism"]), set(table.loc[exact, "scale"])) == ({"public"}, {0.0})
    assert (set(table.loc[~exact, "mechanism"]), set(table.loc[~exact, "scale"])) == ({"laplace"}, {2.0})
    assert table.loc[exact, "value"].iloc[-1] == 1_000.0  # alpha = 0: all of the second half
    with pytest.raises(
        ParameterError, match=r"contrast_share=1 leaves no budget .* a single context, but .* has 3"
    ):
        design.run(THREE, horizon=2_000, rng=0)


@pytest.mark.parametrize("first", [None, 1, 64, 100, 1_000])
@pytest.mark.parametrize("horizon", [2, 127, 128, 200, 640, 20_000])
def test_windows_are_those_of_the_calendar(horizon: int, first: int | None) -> None:
    design = DPConSE(epsilon=1.0, first_window=first)
    log = design.run(THREE, horizon=horizon, rng=0)
    rounds = released(log, "arrivals")["round"].unique().tolist()
    assert rounds == [*literal_windows(horizon, first), horizon]


@pytest.mark.parametrize("contexts", [1, 10])
@pytest.mark.parametrize("horizon", [200_000, 10**6, 10**8])
def test_the_first_window_is_of_order_m_log_n(horizon: int, contexts: int) -> None:
    ends = window_ends(horizon, n_features=contexts).tolist()
    assert ends == literal_windows(horizon, None, contexts)
    assert ends[0] <= 256 * contexts * math.log(horizon) + 1


# --- published ---------------------------------------------------------------------------------------------


def published_sequences(n: int, e: int, epsilon: float) -> tuple[float, float, float]:
    gap = 2.0**-e
    length = max(32 * math.log(16 * n * e**2) / gap**2, 8 * math.log(8 * n * e**2) / (epsilon * gap)) + 1
    half_width = math.sqrt(math.log(16 * n * e**2) / (2 * length))
    return length, half_width, 2 * math.log(8 * n * e**2) / (length * epsilon)


def length_probability(length: np.ndarray, centre: float, epsilon: float) -> np.ndarray:
    """P(Lap+ = length): two-sided geometric around floor(centre), given at least 0, summed literally."""
    middle = math.floor(centre)
    support = np.arange(middle + 1 + math.ceil(80 / epsilon))
    mass = np.exp(-epsilon / 2 * np.abs(support - middle))
    probability = mass / mass.sum()
    inside = length < support.size
    return np.where(inside, probability[np.minimum(length, support.size - 1)], 0.0)


class PublishedOracle:
    """Follows each context through its epochs and its trial; keeps noise and random lengths for tests."""

    def __init__(self, log: AdaptiveLog, design: DPConSE, m: int) -> None:
        self.log, self.design, self.m, self.n = log, design, m, log.n_rounds
        self.feature = feature_of(log)
        self.reward = np.clip(log.arrays.reward, 0.0, 1.0)
        self.noise: list[float] = []
        self.lengths: list[tuple[int, float]] = []
        self.coin = np.zeros(self.n, dtype=bool)
        self.fixed = np.full(self.n, -1)
        self.better = np.full(m, -1)
        self.used = 0
        half = self.n // 2
        arrivals = np.array([np.sum(self.feature[:half] == j) for j in range(m)])
        smallest = float(np.min(arrivals.astype(float) ** (1 - design.alpha)))
        self.t_min = max(math.log(self.n), smallest)
        for j in range(m):
            self.learn(j, np.flatnonzero(self.feature[:half] == j))
            self.estimate(j, half + np.flatnonzero(self.feature[half:] == j))

    def means(self, rows: np.ndarray) -> list[float]:
        arms = self.log.arrays.action[rows]
        return [float(np.mean(self.reward[rows][arms == arm])) for arm in (0, 1)]

    def learn(self, j: int, rows: np.ndarray) -> None:
        tables = [released(self.log, f"mean_{arm}") for arm in (0, 1)]
        start, epoch, alive = 0, 1, {0, 1}
        closings = sorted(tables[0].loc[tables[0]["group"] == j, "round"])
        for closing in closings:
            stop = int(np.searchsorted(rows, closing - 1)) + 1
            assert rows[stop - 1] == closing - 1  # a batch closes at an arrival of its own context
            length, half_width, noise_width = published_sequences(self.n, epoch, self.design.epsilon)
            noisy = [value_at(table, closing, j) for table in tables]
            self.used += 2
            batch = rows[start:stop]
            for got, mean in zip(noisy, self.means(batch), strict=True):
                assert got is not None
                self.noise.append((got - mean) * self.design.epsilon * length / 2)
            self.lengths.append((stop - start, 2 * length))
            self.coin[batch] = True
            start, epoch = stop, epoch + 1
            top = max(noisy)  # type: ignore[type-var]
            alive -= {i for i in (0, 1) if top - noisy[i] > 2 * half_width + 2 * noise_width}  # type: ignore[operator]
            if len(alive) == 1:
                break
        assert start == (0 if not closings else int(np.searchsorted(rows, closings[-1] - 1)) + 1)
        if len(alive) == 2:
            self.coin[rows[start:]] = True
        else:
            self.better[j] = next(iter(alive))
            self.fixed[rows[start:]] = self.better[j]

    def estimate(self, j: int, rows: np.ndarray) -> None:
        length = value_at(released(self.log, "length"), self.n // 2, j)
        assert length is not None
        self.used += 1
        self.lengths.append((int(length), self.t_min))
        trial = rows[: int(length)]
        self.coin[trial] = True
        self.fixed[rows[int(length) :]] = self.better[j]
        table = released(self.log, "estimate")
        table = table[table["group"] == j]
        arms = self.log.arrays.action[trial]
        complete = 0 < length == len(trial)
        assert len(table) == int(complete)
        if complete:
            self.used += 1
            assert table["round"].iloc[0] == trial[-1] + 1
            assert table["scale"].iloc[0] == pytest.approx(2 / (self.design.epsilon * length))
            value = float(table["value"].iloc[0])
            assert math.isnan(value) == (len(set(arms.tolist())) < 2)  # one arm has no mean: no estimate
            if not math.isnan(value):
                low, high = self.means(trial)
                self.noise.append((value - (high - low)) * self.design.epsilon * length / 2)

    def check_rounds(self) -> None:
        arrays = self.log.arrays
        np.testing.assert_array_equal(arrays.randomised, self.coin)
        np.testing.assert_array_equal(arrays.propensities[self.coin], 0.5)
        chosen = arrays.propensities[np.arange(self.n), arrays.action]
        np.testing.assert_array_equal(chosen[~self.coin], 1.0)
        known = ~self.coin & (self.fixed >= 0)
        np.testing.assert_array_equal(arrays.action[known], self.fixed[known])
        for j in range(self.m):  # an undecided context keeps to one arm after its trial
            rest = (self.feature == j) & ~self.coin
            assert len(set(arrays.action[rest].tolist())) <= 1
        assert self.used == len(self.log.releases)
        for length, centre in self.lengths:  # beyond this with probability exp(-20)
            assert abs(length - centre) <= 40.0 / self.design.epsilon + 1.0


PUBLISHED: list[tuple[Environment, DPConSE, int]] = [
    (
        FiniteContext([0.5, 0.5], [[0.4, 0.9], [0.8, 0.2]]),
        DPConSE(epsilon=1.0, calibration="published"),
        20_000,
    ),
    (THREE, DPConSE(epsilon=0.5, alpha=0.3, calibration="published"), 15_001),
    (FiniteContext([1.0], [[0.4, 0.6]]), DPConSE(epsilon=2.0, alpha=0.5, calibration="published"), 80_000),
    (FiniteContext([1.0], [[0.5, 0.5]]), DPConSE(epsilon=1.0, calibration="published"), 50_000),
    (THREE, DPConSE(epsilon=0.3, alpha=1.0, calibration="published"), 400),
    (THREE, DPConSE(epsilon=3.0, alpha=1.0, calibration="published"), 2),
    (
        FiniteContext([1.0], [[0.3, 0.9]], rewards="normal", scale=0.5),
        DPConSE(epsilon=1.0, alpha=0.4, calibration="published"),
        12_000,
    ),
]


@pytest.mark.parametrize("setting", range(len(PUBLISHED)))
def test_published_rounds_follow_the_pseudo_code(setting: int) -> None:
    environment, design, horizon = PUBLISHED[setting]
    for seed in range(3):
        log = design.run(environment, horizon=horizon, rng=seed)
        PublishedOracle(log, design, environment.n_features).check_rounds()


def test_published_lengths_and_noise_have_the_stated_law() -> None:
    """Lengths by randomised probability integral transform, noise by its own scale: both uniform."""
    rng = np.random.default_rng(0)
    design = DPConSE(epsilon=0.2, alpha=0.5, calibration="published")
    environment = FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
    uniform, noise = [], []
    for log in design.logs(environment, horizon=16_000, replications=40, rng=5):
        oracle = PublishedOracle(log, design, 2)
        assert len(oracle.lengths) == 4  # an epoch and a trial of each context
        noise += oracle.noise
        for length, centre in oracle.lengths:
            below = length_probability(np.arange(length), centre, 0.2).sum()
            at = length_probability(np.array([length]), centre, 0.2)[0]
            uniform.append(below + rng.uniform() * at)
    assert stats.kstest(noise, stats.laplace.cdf).pvalue > 1e-4
    assert stats.kstest(uniform, "uniform").pvalue > 1e-4


@pytest.mark.parametrize(("epsilon", "horizon"), [(0.3, 200), (0.05, 200), (2.0, 60)])
def test_length_probabilities_by_chi_square(epsilon: float, horizon: int) -> None:
    """With alpha = 1 the centre is log n whatever happened; zero is possible and has the mended mass."""
    design = DPConSE(epsilon=epsilon, alpha=1.0, calibration="published")
    environment = FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
    sims = design.replicate(environment, horizon=horizon, replications=4_000, rng=6)
    lengths = sims.released["length"].ravel().astype(int)
    middle = math.floor(math.log(horizon))
    ratio = math.exp(-epsilon / 2)
    normaliser = (math.exp(epsilon / 2) + 1 - ratio**middle) / (math.exp(epsilon / 2) - 1)
    support = np.arange(lengths.max() + 1)
    probability = ratio ** np.abs(support - middle) / normaliser
    np.testing.assert_allclose(
        probability, length_probability(support, math.log(horizon), epsilon), rtol=1e-9
    )
    counts = np.bincount(lengths, minlength=support.size).astype(float)
    expected = probability * lengths.size
    keep = int(np.argmax(np.cumsum(expected[::-1]) >= 20.0))
    last = support.size - 1 - keep
    observed = np.append(counts[:last], counts[last:].sum())
    anticipated = np.append(expected[:last], lengths.size - expected[:last].sum())
    order = anticipated >= 10.0
    observed = np.append(observed[order], observed[~order].sum())
    anticipated = np.append(anticipated[order], anticipated[~order].sum())
    statistic = np.sum((observed - anticipated)[anticipated > 0] ** 2 / anticipated[anticipated > 0])
    assert stats.chi2.sf(statistic, int((anticipated > 0).sum()) - 1) > 1e-4
    if epsilon == 0.3:
        assert counts[0] > 0
