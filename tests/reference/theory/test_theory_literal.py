"""Theory as functions against literal readings, solved programs, and algorithms written from the papers."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from adaptinf import theory
from adaptinf.designs import ConSE, DPConSE, PrivateUCB
from adaptinf.designs.contextual.linear_bandits import LinPriv, LinUCB
from adaptinf.designs.contextual.linear_bands import prediction_bands
from adaptinf.privacy.counter_noise import laplace_norm_bound
from adaptinf.privacy.tree_sums import counter_scales, next_noise, noise_nodes
from adaptinf.simulation.environments import BernoulliArms, FiniteContext
from adaptinf.simulation.environments.vector_arms import LinearArms

# --- Theorem 3 of Neel and Roth ---------------------------------------------------------------------------


def literal_arm(gap: float, horizon: int, epsilon: float) -> mp.mpf:
    """max(B (ln B + 7), 32 / gap log T) + (gap + 2 pi^2 gap / 3), in 40 digits."""
    with mp.workdps(40):
        scale = mp.sqrt(8) / (2 * mp.mpf(epsilon)) * mp.log(4 * mp.mpf(horizon) ** 4)
        first = max(scale * (mp.log(scale) + 7), 32 / mp.mpf(gap) * mp.log(horizon))
        return first + (gap + 2 * mp.pi**2 * gap / 3)


@pytest.mark.parametrize("horizon", [1, 500, 100_000, 50_000_000])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 400.0, 1e6])
def test_private_ucb_regret_with_given_pulls(horizon: int, epsilon: float) -> None:
    means = [0.9, 0.7, 0.9, 0.25]
    pulls = np.array([0.0, 0.3, 0.5, 0.2]) * horizon
    gaps = [0.2, 0.65]
    taken = [pulls[1], pulls[3]]
    literal = sum(
        min(literal_arm(gap, horizon, epsilon), gap * n) for gap, n in zip(gaps, taken, strict=True)
    )
    ours = theory.private_ucb_regret(means, horizon, epsilon, pulls)
    assert float(ours) == pytest.approx(float(literal), rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_private_ucb_regret_is_the_largest_over_divisions(seed: int) -> None:
    """Against a linear program in z_k (what an arm adds) and n_k (its pulls)."""
    rng = np.random.default_rng(seed)
    means = rng.random(int(rng.integers(2, 7)))
    horizon, epsilon = int(10 ** rng.uniform(1, 7)), float(10 ** rng.uniform(-2, 1))
    gaps = means.max() - means
    gaps = gaps[gaps > 0]
    size = gaps.size
    allowed = [float(literal_arm(gap, horizon, epsilon)) for gap in gaps]
    solved = optimize.linprog(
        np.r_[-np.ones(size), np.zeros(size)],
        A_ub=np.vstack([np.c_[np.eye(size), -np.diag(gaps)], np.r_[np.zeros(size), np.ones(size)]]),
        b_ub=np.r_[np.zeros(size), horizon],
        bounds=[*((0, bound) for bound in allowed), *((0, None) for _ in range(size))],
    )
    assert float(theory.private_ucb_regret(means, horizon, epsilon)) == pytest.approx(-solved.fun, rel=1e-9)


def test_the_explicit_worst_case_holds_for_any_means() -> None:
    rng = np.random.default_rng(0)
    closest = 0.0
    for _ in range(3_000):
        n_arms, horizon = int(rng.integers(2, 60)), int(10 ** rng.uniform(0.31, 8))
        epsilon = float(10 ** rng.uniform(-4, 2))
        gap = min(1.0, 10 ** rng.uniform(-5, 0.3))
        means = np.r_[1.0, 1.0 - gap * rng.uniform(0.8, 1.0, n_arms - 1)]
        ratio = theory.private_ucb_regret(means, horizon, epsilon) / theory.private_ucb_worst_case(
            horizon, n_arms, epsilon
        )
        closest = max(closest, float(ratio))
        assert ratio <= 1.0
    assert closest > 0.9


def test_the_published_worst_case_lacks_a_factor_k() -> None:
    """Gaps of 1: each of K - 1 arms adds B (ln B + 7), so the ratio to the printed order grows with K."""
    ratios = []
    for n_arms in (10, 100, 1_000, 10_000):
        horizon, means = n_arms**3 * 1_000, np.r_[1.0, np.zeros(n_arms - 1)]

        def one_arm_too_many(epsilon: float, n_arms: int = n_arms, horizon: int = horizon) -> float:
            return float(literal_arm(1.0, horizon, epsilon)) - horizon / n_arms

        epsilon = optimize.brentq(one_arm_too_many, 1e-9, 1e3)
        regret = theory.private_ucb_regret(means, horizon, epsilon)
        assert regret == pytest.approx(horizon * (1 - 1 / n_arms), rel=1e-6)
        ratios.append(float(regret / theory.private_ucb_worst_case(horizon, n_arms, epsilon, "published")))
    growth = np.array(ratios[1:]) / np.array(ratios[:-1])
    assert (growth > 8.0).all()


# --- private successive elimination -----------------------------------------------------------------------


def literal_lengths(n_arms: int, epoch: int, epsilon: float, beta: float) -> tuple[float, float, float]:
    """R_e, h_e and c_e of Algorithm 3."""
    gap = 2.0**-epoch
    length = (
        max(
            32 * math.log(8 * n_arms * epoch**2 / beta) / gap**2,
            8 * math.log(4 * n_arms * epoch**2 / beta) / (epsilon * gap),
        )
        + 1
    )
    width = math.sqrt(math.log(8 * n_arms * epoch**2 / beta) / (2 * length))
    return length, width, math.log(4 * n_arms * epoch**2 / beta) / (length * epsilon)


def test_an_arm_is_gone_by_the_epoch_of_its_gap_and_no_sooner() -> None:
    """4 (h_e + c_e) is below 2^-e, and gets to within 1% of it where both terms of R_e are equal."""
    largest = 0.0
    for n_arms in (2, 5, 100):
        for epoch in range(1, 20):
            for beta in (0.5, 1e-3, 1e-9):
                wide = 32 * math.log(8 * n_arms * epoch**2 / beta) * 4.0**epoch
                noisy = 8 * math.log(4 * n_arms * epoch**2 / beta) * 2.0**epoch
                for epsilon in (1e-4, noisy / wide, 1.0, math.inf):
                    _, width, slack = literal_lengths(n_arms, epoch, epsilon, beta)
                    share = 4 * (width + slack) * 2.0**epoch
                    largest = max(largest, share)
                    assert share < 1.0
    assert largest > 0.99


def eliminate(rng: np.random.Generator, means: np.ndarray, horizon: int, epsilon: float, beta: float):
    """Algorithm 3 once, epoch by epoch with binomial sums of rewards: pulls of each arm."""
    pulls = np.zeros(means.size, dtype=int)
    left, epoch = list(range(means.size)), 0
    while len(left) > 1:
        epoch += 1
        length, width, slack = literal_lengths(len(left), epoch, epsilon, beta)
        rounds = math.ceil(length)
        if pulls.sum() + rounds * len(left) > horizon:
            rest = horizon - pulls.sum()
            for position, arm in enumerate(left):
                pulls[arm] += rest // len(left) + (position < rest % len(left))
            return pulls
        pulls[left] += rounds
        noisy = rng.binomial(rounds, means[left]) / rounds + rng.laplace(0, 1 / (epsilon * rounds), len(left))
        left = [
            arm for arm, mean in zip(left, noisy, strict=True) if noisy.max() - mean <= 2 * width + 2 * slack
        ]
    pulls[left[0]] += horizon - pulls.sum()
    return pulls


@pytest.mark.parametrize(("epsilon", "beta"), [(0.05, 0.3), (1.0, 0.3), (1.0, None)])
def test_elimination_stays_within_its_bounds(epsilon: float, beta: float | None) -> None:
    means, horizon, runs = np.array([0.8, 0.55, 0.67, 0.3]), 300_000, 2_000
    rng = np.random.default_rng(7)
    failure = 1 / horizon if beta is None else beta
    pulls = np.array([eliminate(rng, means, horizon, epsilon, failure) for _ in range(runs)])
    np.testing.assert_array_equal(pulls.sum(axis=1), horizon)
    bound = theory.private_elimination_pulls(means, horizon, epsilon, beta)
    outside = int((pulls > bound).any(axis=1).sum())
    assert outside <= stats.binom.isf(1e-4, runs, failure)
    regret = (pulls * (0.8 - means)).sum(axis=1)
    limit = float(theory.private_elimination_regret(means, horizon, epsilon, beta))
    assert regret.mean() + 5 * regret.std() / math.sqrt(runs) < limit
    # the arm with a gap of .13 has three epochs in the bound; one would not be enough
    assert (pulls[:, 2] > math.ceil(literal_lengths(4, 1, epsilon, failure)[0])).mean() > 0.5


def test_elimination_pulls_add_up_epochs() -> None:
    means, epsilon, beta = [0.9, 0.65, 0.9, 0.1, 0.78], 0.3, 0.01
    # gaps .25, .8 and .12: gone after epochs 2, 1 and 4; left are 5, then 4 (gaps below 1/2), then 3
    lengths = [
        math.ceil(literal_lengths(left, e, epsilon, beta)[0]) for e, left in ((1, 5), (2, 4), (3, 3), (4, 3))
    ]
    expected = [10**9, sum(lengths[:2]), 10**9, lengths[0], sum(lengths)]
    np.testing.assert_array_equal(theory.private_elimination_pulls(means, 10**9, epsilon, beta), expected)
    capped = theory.private_elimination_pulls(means, [lengths[0] + 1, 10**9], epsilon, beta)
    assert capped.shape == (2, 5)
    np.testing.assert_array_equal(capped[0], [lengths[0] + 1] * 3 + [lengths[0], lengths[0] + 1])
    np.testing.assert_array_equal(capped[1], expected)


def test_elimination_regret_adds_gaps_times_pulls_and_the_failures() -> None:
    means, epsilon, beta = [0.9, 0.65, 0.9, 0.1], 0.3, 0.01
    pulls = theory.private_elimination_pulls(means, 10**6, epsilon, beta)
    expected = 0.25 * pulls[1] + 0.8 * pulls[3] + beta * 10**6 * 0.8
    assert float(theory.private_elimination_regret(means, 10**6, epsilon, beta)) == pytest.approx(expected)
    # with fewer rounds than that the largest gap comes first
    horizon = int(pulls[3]) + 100
    expected = 0.8 * pulls[3] + 0.25 * 100 + beta * horizon * 0.8
    assert float(theory.private_elimination_regret(means, horizon, epsilon, beta)) == pytest.approx(expected)


def test_orders_of_elimination() -> None:
    horizon, epsilon = 10_000, 0.4
    order = theory.private_elimination_regret([0.9, 0.4, 0.7], horizon, epsilon, form="published")
    assert float(order) == pytest.approx(math.log(horizon) * (1 / 0.5 + 1 / 0.2 + 3 / 0.4))
    worst = theory.private_elimination_worst_case(horizon, 3, epsilon)
    log_rounds = math.log(horizon)
    assert float(worst) == pytest.approx(math.sqrt(3 * horizon * log_rounds) + 3 * log_rounds / epsilon)


# --- LinPriv ----------------------------------------------------------------------------------------------


def lengths_before(contexts: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray]:
    """Squared length of each context in the norm of the inverse matrix before it, and log determinants."""
    matrix = ridge * np.eye(contexts.shape[1])
    squares, determinants = [], []
    for x in contexts:
        squares.append(float(x @ np.linalg.solve(matrix, x)))
        determinants.append(float(np.linalg.slogdet(matrix / ridge)[1]))
        matrix = matrix + np.outer(x, x)
    return np.array(squares), np.array(determinants)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(1, 120),
    dimension=st.integers(1, 4),
    ridge=st.sampled_from([0.05, 0.5, 1.0, 3.0, 50.0]),
    spread=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_potential_bound_holds(seed: int, count: int, dimension: int, ridge: float, spread: float) -> None:
    rng = np.random.default_rng(seed)
    raw = rng.standard_normal((count, dimension)) * spread + np.eye(dimension)[0]
    contexts = raw / np.maximum(1.0, np.linalg.norm(raw, axis=1))[:, None]
    squares, _ = lengths_before(contexts, ridge)
    bound = float(theory.potential_bound(count, dimension, ridge))
    assert squares.sum() <= bound * (1 + 1e-12)
    assert np.sqrt(squares).sum() <= math.sqrt(count * bound) * (1 + 1e-12)


def test_potential_bound_is_attained_and_below_the_papers_constant() -> None:
    for ridge in (0.2, 1.0, 4.0):
        assert float(theory.potential_bound(1, 1, ridge)) == pytest.approx(1 / ridge)
    counts = np.array([1, 10, 1_000])
    assert (theory.potential_bound(counts, 3) <= 0.7214 * 2 * 3 * np.log1p(counts / 3)).all()


def test_the_sum_of_lengths_in_the_proof_of_theorem_5_is_no_logarithm() -> None:
    """d = 1, x = 1, lambda = 1: the sum of 1 / sqrt(1 + k) exceeds 2 log(1 + n) from n = 9 on."""
    for n, exceeds in ((8, False), (9, True), (100, True), (10_000, True)):
        squares, _ = lengths_before(np.ones((n, 1)), 1.0)
        total = np.sqrt(squares).sum()
        assert total == pytest.approx(sum(1 / math.sqrt(1 + k) for k in range(n)))
        assert (total > 2 * math.log1p(n)) == exceeds
    assert total == pytest.approx(198.54, abs=0.01)
    assert 2 * math.log1p(10_000) == pytest.approx(18.42, abs=0.01)


def projected_lengths(contexts: np.ndarray, ridge: float) -> np.ndarray:
    """Euclidean lengths of V^-1 x, V the matrix before each context."""
    matrix, lengths = ridge * np.eye(contexts.shape[1]), []
    for x in contexts:
        lengths.append(float(np.linalg.norm(np.linalg.solve(matrix, x))))
        matrix += np.outer(x, x)
    return np.array(lengths)


def test_projected_lengths_add_up_to_a_root_and_no_logarithm() -> None:
    """Unit contexts that alternate in one coordinate and have 1 / sqrt(n) in the other, seen rarely."""
    totals = []
    for n in (100, 400, 1_600):
        contexts = np.column_stack([(-1.0) ** np.arange(n) * math.sqrt(1 - 1 / n), np.full(n, n**-0.5)])
        for ridge in (0.3, 1.0, 5.0):
            squares = np.square(projected_lengths(contexts, ridge))
            assert squares.sum() <= 2 * (1 + 1 / ridge) / ridge
        totals.append(projected_lengths(contexts, 1.0).sum())
    assert (np.diff(np.log(totals)) > 0.4 * math.log(4)).all()
    assert totals[-1] > 2 * 2 * math.log1p(1_600 / 2)


@pytest.mark.parametrize("noise_width", ["projected", "ridge"])
@pytest.mark.parametrize("ridge", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("seed", range(4))
def test_twice_the_widths_stay_within_the_explicit_regret(noise_width: str, ridge: float, seed: int) -> None:
    """Whatever is pulled, by whatever rule: the bound adds up widths, it does not need the design."""
    rng = np.random.default_rng(seed)
    rounds, n_arms, dimension, failure, noise = 400, 3, 2, 0.1, 1.7
    pulled = rng.choice(n_arms, rounds, p=[[1 / 3, 1 / 3, 1 / 3], [0.9, 0.05, 0.05]][seed % 2])
    raw = rng.standard_normal((rounds, dimension)) + [[0.0, 0.0], [3.0, 0.0]][seed // 2]
    contexts = raw / np.linalg.norm(raw, axis=1)[:, None]
    total = 0.0
    for arm in range(n_arms):
        own = contexts[pulled == arm]
        squares, determinants = lengths_before(own, ridge)
        widths = 0.5 * np.sqrt(determinants + 2 * math.log(n_arms / (failure / 2))) + math.sqrt(ridge) * 0.8
        total += 2 * (widths * np.sqrt(squares)).sum()
        if noise_width == "ridge":
            total += 2 * noise * np.sqrt(squares / ridge).sum()
        else:
            total += 2 * noise * projected_lengths(own, ridge).sum()
    bound = theory.linpriv_regret(
        rounds,
        n_arms,
        dimension,
        1.0,
        failure=failure,
        regularisation=ridge,
        bound=0.8,
        noise_norm=noise,
        noise_width=noise_width,
    )
    assert 0.2 * bound < total <= bound


@pytest.mark.parametrize(
    ("design", "epsilon", "options"),
    [
        (LinUCB(failure=0.1, regularisation=0.5), math.inf, {"failure": 0.1, "regularisation": 0.5}),
        (LinPriv(epsilon=3.0, failure=0.2), 3.0, {"failure": 0.2}),
        (LinPriv(epsilon=3.0, counter="binary"), 3.0, {"counter": "binary"}),
        (LinPriv(epsilon=9.0, noise_width="ridge", bound=2.0), 9.0, {"noise_width": "ridge", "bound": 2.0}),
    ],
    ids=["linucb", "projected", "binary", "ridge"],
)
def test_the_designs_own_widths_stay_within_the_explicit_regret(design, epsilon, options) -> None:
    theta = [[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]]
    environment = LinearArms(theta, contexts="orthant", rewards="bernoulli")
    for horizon in (50, 1_000):
        log = design.run(environment, horizon, rng=4)
        bands = prediction_bands(log)
        assert not bands.misses(theta).any()
        widths = bands.width[np.arange(horizon), log.arrays.action]
        bound = float(theory.linpriv_regret(horizon, 3, 2, epsilon, **options))
        assert 0.05 * bound < 2 * widths.sum() <= bound


def test_linpriv_explicit_and_published_are_what_their_docstrings_say() -> None:
    horizon, n_arms, dimension, epsilon, ridge, failure = 5_000, 4, 3, 0.7, 2.0, 0.02
    inner = dimension * math.log(1 + horizon / (n_arms * dimension * ridge))
    published = dimension * math.sqrt(horizon * n_arms) + math.sqrt(horizon * n_arms * dimension * ridge)
    logs = math.log(horizon / n_arms) ** 1.5 * math.log(n_arms / failure)
    published += n_arms / math.sqrt(ridge) / epsilon * logs * 2 * inner
    arguments = (horizon, n_arms, dimension, epsilon)
    options = {"regularisation": ridge, "failure": failure}
    assert float(theory.linpriv_regret(*arguments, **options, form="published")) == pytest.approx(published)

    noise = float(theory.counter_norm_bound(horizon, n_arms, dimension, epsilon, failure / 2))
    default = theory.linpriv_regret(*arguments, **options)
    assert default == theory.linpriv_regret(*arguments, **options, noise_norm=noise)
    grown = dimension * math.log(1 + horizon / (dimension * ridge))
    radius = 0.5 * math.sqrt(grown + 2 * math.log(2 * n_arms / failure)) + math.sqrt(ridge)
    constant = (1 / ridge) / math.log(1 + 1 / ridge)
    projected = n_arms * dimension * (1 + 1 / ridge) / ridge
    explicit = radius * math.sqrt(constant * n_arms * inner) + noise * math.sqrt(projected)
    assert float(default) == pytest.approx(2 * math.sqrt(horizon) * explicit, rel=1e-12)
    ridge_noise = radius + noise / math.sqrt(ridge)
    explicit = 2 * ridge_noise * math.sqrt(constant * horizon * n_arms * inner)
    other = theory.linpriv_regret(*arguments, **options, noise_width="ridge")
    assert float(other) == pytest.approx(explicit, rel=1e-12)
    assert theory.linpriv_regret(horizon, n_arms, dimension, epsilon) == theory.linpriv_regret(
        horizon, n_arms, dimension, epsilon, failure=1 / horizon
    )


@pytest.mark.parametrize("counter", ["hybrid", "binary"])
@pytest.mark.parametrize("horizon", [1, 2, 3, 6, 16, 23, 64, 100])
def test_counter_norm_bound_is_the_largest_over_counts(counter: str, horizon: int) -> None:
    dimension, n_arms, epsilon, failure = 2, 3, 0.5, 0.1
    trunk, node = counter_scales(counter, epsilon, horizon, math.sqrt(dimension))
    powers = len([k for k in range(20) if 2**k <= horizon])
    shares, bounds = [], {}
    for count in range(1, horizon + 1):
        power = 2 ** math.floor(math.log2(count))
        shares.append(failure / n_arms / powers / power)
        first, second, level = noise_nodes(counter, count)
        if (law := (first, second, level, power)) not in bounds:
            bounds[law] = laplace_norm_bound(
                trunk, first, node * level, second, dimension, math.log(shares[-1])
            )
    assert n_arms * sum(shares) <= failure * (1 + 1e-12)
    ours = theory.counter_norm_bound(horizon, n_arms, dimension, epsilon, failure, counter)
    assert float(ours) == pytest.approx(max(bounds.values()), rel=1e-9)


def counter_noise(rng: np.random.Generator, horizon: int, epsilon: float, sensitivity: float) -> np.ndarray:
    """Noise of one hybrid counter at counts 1, ..., horizon."""
    trunk, node = counter_scales("hybrid", epsilon, horizon, sensitivity)
    state = np.zeros((horizon.bit_length() + 2, 1))
    return np.array([next_noise(True, trunk, node, state, 0, 0, n, rng) for n in range(1, horizon + 1)])


@pytest.mark.slow
def test_counter_norm_bound_covers_all_counts_of_all_arms() -> None:
    rng = np.random.default_rng(3)
    horizon, n_arms, dimension, failure, runs = 40, 2, 2, 0.2, 500
    bound = float(theory.counter_norm_bound(horizon, n_arms, dimension, 1.0, failure))
    longest = np.empty(runs)
    for run in range(runs):
        noise = [
            [counter_noise(rng, horizon, 1.0, math.sqrt(dimension)) for _ in range(dimension)]
            for _ in range(n_arms)
        ]
        longest[run] = np.linalg.norm(noise, axis=1).max()
    assert (longest > bound).sum() <= stats.binom.isf(1e-4, runs, failure)
    assert (longest > 0.5 * bound).mean() > failure


# --- the hybrid mechanism ---------------------------------------------------------------------------------


def tower(x: mp.mpf) -> list[mp.mpf]:
    """x, log x, log log x, ... to the first one that is at most 1; base 2."""
    terms = [mp.mpf(x)]
    while terms[-1] > 1:
        terms.append(mp.log(terms[-1], 2))
    return terms


@pytest.mark.parametrize("count", [3, 4, 5, 16, 17, 100, 65_536, 65_537, 10**9, 2**61])
def test_published_error_of_the_hybrid_mechanism(count: int) -> None:
    epsilon, delta = 0.3, 0.01
    with mp.workdps(60):
        log_count = mp.log(count, 2)
        stars = len(tower(log_count)) - 1
        literal = stars / (epsilon * count) * log_count ** mp.mpf("1.5")
        literal *= mp.fprod(tower(mp.log(log_count, 2))) * mp.log(1 / mp.mpf(delta))
    ours = theory.hybrid_error(count, epsilon, delta, form="published")
    assert float(ours) == pytest.approx(float(literal), rel=1e-9)


def test_published_error_means_nothing_at_small_counts_and_is_no_bound() -> None:
    assert np.isnan(theory.hybrid_error([1, 2], 1.0, 0.05, form="published")).all()
    printed = theory.hybrid_error([16, 17], 1.0, 0.05, form="published")
    exact = theory.hybrid_error([16, 17], 1.0, 0.05)
    np.testing.assert_allclose(printed, [5.991, 0.289], atol=5e-4)
    np.testing.assert_allclose(exact, [0.792, 1.561], atol=5e-4)


def test_exact_error_of_the_hybrid_mechanism_in_closed_form() -> None:
    """One Laplace(2 / epsilon) at t = 1; two at t = 2, whose sum has the tail (1 + x / 2b) exp(-x / b)."""
    deltas = np.array([1.0, 0.5, 0.05, 1e-6, 1e-100])
    np.testing.assert_allclose(theory.hybrid_error(1, 0.4, deltas), -5.0 * np.log(deltas), atol=1e-9)
    for delta in deltas[1:]:
        x = 2 * float(theory.hybrid_error(2, 0.4, delta))
        assert math.log1p(x / 10) - x / 5 == pytest.approx(math.log(delta), rel=1e-7)


@pytest.mark.parametrize("count", [13, 31])
def test_exact_error_of_the_hybrid_mechanism_by_simulation(count: int) -> None:
    rng = np.random.default_rng(count)
    runs, epsilon, delta = 20_000, 0.8, 0.1
    trunk, node = counter_scales("hybrid", epsilon, count)
    first, second, level = noise_nodes("hybrid", count)
    noise = rng.laplace(0, trunk, (runs, first)).sum(axis=1)
    noise += rng.laplace(0, node * level, (runs, second)).sum(axis=1)
    limit = count * float(theory.hybrid_error(count, epsilon, delta))
    exceed = int((np.abs(noise) > limit).sum())
    low, high = stats.binom.ppf([5e-5, 1 - 5e-5], runs, delta)
    assert low <= exceed <= high


def test_error_of_the_hybrid_mechanism_broadcasts() -> None:
    errors = theory.hybrid_error(np.arange(1, 6)[:, None], [0.5, 1.0], 0.1)
    assert errors.shape == (5, 2)
    np.testing.assert_allclose(errors[:, 0], 2 * errors[:, 1])
    assert float(errors[2, 1]) == pytest.approx(float(theory.hybrid_error(3, 1.0, 0.1)))
    assert float(theory.hybrid_error(7, math.inf, 0.1)) == 0.0


# --- stopping rules ---------------------------------------------------------------------------------------


def literal_looks(steps: str):
    """Pairs of t and of the number that stands in the logarithms."""
    t = 1 if steps == "every" else 2
    k = 1
    while True:
        yield t, (t if steps == "every" else k)
        t, k = (t + 1 if steps == "every" else 2 * t), k + 1


def literal_time(mean: float, alpha: float, beta: float, epsilon: float, bound: float, steps: str) -> int:
    s1 = s2 = 12 * bound / epsilon
    s3 = 4 * bound / epsilon
    for t, m in literal_looks(steps):
        width = bound * math.sqrt(2 / t * math.log(16 * m**2 / beta))
        slack = s1 * math.log(4 / beta) + s2 * math.log(8 * m**2 / beta) + s3 / alpha * math.log(4 / beta)
        worst = (slack + s1 * math.log(4 / beta) + s2 * math.log(8 * m**2 / beta)) / t
        if abs(mean) - width >= width * (1 + 1 / alpha) + worst:
            return t
    raise AssertionError


@pytest.mark.parametrize("steps", ["every", "exponential"])
@pytest.mark.parametrize("epsilon", [0.3, 5.0, math.inf])
def test_stopping_time_bound_solves_the_condition(steps: str, epsilon: float) -> None:
    for mean, alpha, beta, bound in ((0.9, 0.5, 0.05, 1.0), (-1.5, 0.9, 0.3, 2.0), (0.4, 0.4, 0.7, 0.5)):
        ours = theory.stopping_time_bound(mean, alpha, beta, epsilon, bound, steps=steps)
        assert float(ours) == literal_time(mean, alpha, beta, epsilon, bound, steps)


def test_nas_without_noise_has_its_own_width() -> None:
    for mean, alpha, beta in ((0.9, 0.5, 0.05), (0.2, 0.9, 0.9), (1.0, 0.99, 0.95)):
        t = 1
        while mean < math.sqrt(2 / t * math.log(4 * t**2 / beta)) * (2 + 1 / alpha):
            t += 1
        assert float(theory.stopping_time_bound(mean, alpha, beta, steps="every")) == t


def test_dp_nas_stops_in_time_as_often_as_promised() -> None:
    """Algorithm 2 on signs of mean .5, literally."""
    rng = np.random.default_rng(11)
    mean, alpha, beta, epsilon, runs = 0.5, 0.5, 0.05, 1.0, 3_000
    bound = float(theory.stopping_time_bound(mean, alpha, beta, epsilon))
    times = np.zeros(runs)
    total, seen = np.zeros(runs), 0
    threshold = rng.laplace(0, 12 / epsilon, runs)
    k = 0
    while not times.all():
        k += 1
        t = 2**k
        total += 2.0 * rng.binomial(t - seen, (1 + mean) / 2, runs) - (t - seen)
        seen = t
        width = math.sqrt(2 / t * math.log(16 * k**2 / beta))
        slack = 12 / epsilon * (math.log(4 / beta) + math.log(8 * k**2 / beta))
        slack += 4 / epsilon / alpha * math.log(4 / beta)
        query = rng.laplace(0, 12 / epsilon, runs)
        stops = np.abs(total) / t >= width * (1 + 1 / alpha) + (slack + threshold + query) / t
        times[(times == 0) & stops] = t
    late = int((times > bound).sum())
    assert late <= stats.binom.isf(1e-4, runs, beta)
    assert (times > bound / 8).mean() > 0.99
    lower = float(theory.stopping_time_lower_bound(mean, alpha, 0.05, epsilon))
    assert (times > lower).mean() > 0.25
    assert bound <= float(theory.stopping_time_bound(mean, alpha, beta, epsilon, form="published"))


def test_theorem_3_3_as_printed_and_with_a_floor() -> None:
    """2000 (t0 + t1 + t2); read with log(R / (alpha |mean|)) of at least 1 it is 12 times too large."""
    mean, alpha, beta, epsilon, bound = 0.3, 0.2, 0.04, 0.5, 2.0
    scaled = math.log(bound / (alpha * mean))
    t0 = bound**2 * math.log(1 / beta * scaled) / (alpha * mean) ** 2
    t1 = bound * math.log(1 / beta * scaled) / (epsilon * mean)
    t2 = bound * math.log(1 / beta) / (epsilon * alpha * mean)
    printed = theory.stopping_time_bound(mean, alpha, beta, epsilon, bound, form="published")
    assert float(printed) == pytest.approx(2000 * (t0 + t1 + t2), rel=1e-12)

    largest = 0.0
    for beta in (0.08, 1e-2, 1e-6, 1e-30):
        for alpha in (0.01, 0.3, 0.9, 0.999):
            for mean in (1.0, 0.5, 1e-2, 1e-5):
                for epsilon in (1e-3, 0.1, 1.0, 1e3, math.inf):
                    inner = math.log(max(1.0, math.log(1 / (alpha * mean))) / beta)
                    floored = inner / (alpha * mean) ** 2 + inner / (epsilon * mean)
                    floored = 2000 * (floored - math.log(beta) / (epsilon * alpha * mean))
                    explicit = float(theory.stopping_time_bound(mean, alpha, beta, epsilon))
                    largest = max(largest, explicit / floored)
    assert 0.05 < largest < 1 / 12
    assert math.isnan(theory.stopping_time_bound(1.0, 0.95, 0.08, 1e9, form="published"))
    assert float(theory.stopping_time_bound(1.0, 0.95, 0.08, 1e9)) == 256


def test_lower_bounds_of_stopping_times() -> None:
    mean, alpha, beta, epsilon, bound = -0.3, 0.2, 0.04, 0.5, 2.0
    n = bound * math.log(1 / beta) / (12 * alpha * 0.3 * epsilon)
    assert float(theory.stopping_time_lower_bound(mean, alpha, beta, epsilon, bound)) == pytest.approx(n)
    order = bound**2 * math.log(1 / beta) / (alpha * mean) ** 2 + 12 * n
    assert float(theory.stopping_time_order(mean, alpha, beta, epsilon, bound)) == pytest.approx(order)


# --- the frontier -----------------------------------------------------------------------------------------


def literal_point(estimates: np.ndarray, effects: np.ndarray, regret: np.ndarray) -> tuple[float, int, float]:
    """Error, its feature and the product, by loops."""
    errors = []
    for feature in range(effects.size):
        squares = [
            (row[feature] - effects[feature]) ** 2 for row in estimates if not math.isnan(row[feature])
        ]
        errors.append(math.fsum(squares) / len(squares))
    worst = errors.index(max(errors))
    return errors[worst], worst, errors[worst] * math.fsum(regret) / len(regret) / effects.size


def jackknife(estimates: np.ndarray, effects: np.ndarray, regret: np.ndarray) -> float:
    """Standard error of the product by leaving out one run at a time."""
    runs = len(regret)
    without = [
        literal_point(np.delete(estimates, run, axis=0), effects, np.delete(regret, run))[2]
        for run in range(runs)
    ]
    return math.sqrt((runs - 1) / runs * np.square(without - np.mean(without)).sum())


@pytest.mark.parametrize(
    "design", [ConSE(alpha=1.0), DPConSE(epsilon=1.0, alpha=0.3)], ids=["conse", "dp-conse"]
)
def test_frontier_against_loops_and_the_jackknife(design) -> None:
    environment = FiniteContext([0.6, 0.4], [[0.4, 0.7], [0.6, 0.3]])
    sims = design.replicate(environment, 3_000, 256, rng=5)
    tallies = sims.phase_tallies("estimation", randomised=True)
    estimates = np.full((256, 2), np.nan)
    for run in range(256):
        for feature in range(2):
            (n0, s0, _), (n1, s1, _) = tallies[run, feature]
            if n0 > 0 and n1 > 0:
                estimates[run, feature] = s1 / n1 - s0 / n0
    effects = np.array([0.3, -0.3])
    point = theory.frontier(sims)
    error, worst, product = literal_point(estimates, effects, sims.regret)
    assert point.error == pytest.approx(error, rel=1e-12)
    assert point.worst == worst
    assert point.product == pytest.approx(product, rel=1e-12)
    np.testing.assert_array_equal(point.undefined, np.isnan(estimates).sum(axis=0))
    assert point.runs == 256

    assert point.product_se == pytest.approx(jackknife(estimates, effects, sims.regret), rel=0.02)
    assert point.regret_se == pytest.approx(sims.regret.std(ddof=1) / 16, rel=1e-12)


def test_frontier_of_given_estimates_counts_the_runs_without_one() -> None:
    environment = FiniteContext([0.6, 0.4], [[0.4, 0.7], [0.6, 0.3]])
    sims = ConSE(alpha=0.5).replicate(environment, 2_000, 64, rng=5)
    estimates = np.tile([0.3, -0.1], (64, 1))
    estimates[:40, 0] = np.nan
    point = theory.frontier(sims, estimates)
    np.testing.assert_array_equal(point.undefined, [40, 0])
    np.testing.assert_allclose(point.errors, [0.0, 0.04], atol=1e-15)
    assert (point.worst, point.error) == (1, pytest.approx(0.04))
    assert point.product == pytest.approx(0.04 * sims.regret.mean() / 2)
    assert point.product_se == pytest.approx(0.02 * sims.regret.std(ddof=1) / 8, rel=1e-9)


def test_standard_errors_count_only_the_runs_with_an_estimate() -> None:
    rng = np.random.default_rng(9)
    environment = FiniteContext([0.6, 0.4], [[0.4, 0.7], [0.6, 0.3]])
    sims = ConSE(alpha=0.5).replicate(environment, 2_000, 256, rng=5)
    effects = np.array([0.3, -0.3])
    estimates = effects + rng.normal(0.0, [0.3, 0.1], (256, 2))
    estimates[rng.random(256) < 0.6, 0] = np.nan
    point = theory.frontier(sims, estimates)
    known = estimates[~np.isnan(estimates[:, 0]), 0]
    assert point.worst == 0
    expected = np.square(known - 0.3).std() / math.sqrt(known.size)
    assert point.error_se == pytest.approx(expected, rel=0.01)
    assert point.product_se == pytest.approx(jackknife(estimates, effects, sims.regret), rel=0.03)


# --- what the papers' algorithms do beside their bounds -----------------------------------------------------


def test_the_algorithm_of_the_appendix_is_not_the_one_of_theorem_3() -> None:
    """Private UCB as printed, with its relaxation, has many times the regret that (2) allows."""
    means, horizon = [0.75, 0.625, 0.5, 0.375, 0.25], 200_000
    bound = float(theory.private_ucb_regret(means, horizon, 1.0))
    published, corrected = (
        PrivateUCB(epsilon=1.0, calibration=kind).replicate(BernoulliArms(means), horizon, 8, rng=0)
        for kind in ("published", "corrected")
    )
    assert published.regret.min() > 4 * bound
    assert corrected.regret.max() < 0.5 * bound


@pytest.mark.slow
def test_the_printed_index_of_linpriv_can_starve_an_arm() -> None:
    """One context of length 1: s / lambda grows with the pulls, faster than the other arm's width."""
    environment = LinearArms(
        [[0.9], [0.5]], contexts=np.ones((1, 2, 1)), order="resampled", rewards="bernoulli"
    )
    shares = []
    for horizon in (1_000, 10_000, 100_000):
        design = LinPriv(epsilon=1.0, calibration="published", failure=0.05)
        regret = design.replicate(environment, horizon, 256, rng=0).regret
        shares.append(float((regret > 0.399 * horizon).mean()))
    assert min(shares) > 0.2
    assert shares[-1] > 0.3
    corrected = LinPriv(epsilon=1.0, failure=0.05).replicate(environment, 100_000, 64, rng=0).regret
    assert corrected.max() < 0.01 * 100_000
