"""Stopping rules: parameters, streams, results, replicates, bounds, and what one sample can change."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import integrate

from adaptinf.designs.stopping.stopping_kernel import Rule, halting_sum
from adaptinf.designs.stopping.stopping_rules import DPNAS, NAS, StoppingRule
from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.privacy.release import GRID_UNITS
from adaptinf.simulation.environments import (
    BernoulliArms,
    Environment,
    FiniteContext,
    NormalArms,
    Replay,
    Tableau,
    UniformArms,
)

RULES = [
    NAS(alpha=0.3, beta=0.1),
    NAS(alpha=0.3, beta=0.1, steps="exponential"),
    DPNAS(epsilon=1.0, alpha=0.3, beta=0.1),
    DPNAS(epsilon=1.0, alpha=0.3, beta=0.1, steps="exponential"),
]
NAMES = ["nas", "nas-exponential", "dpnas", "dpnas-exponential"]
every_rule = pytest.mark.parametrize("rule", RULES, ids=NAMES)


def two_points(share: Fraction, bound: float = 1.0) -> Replay:
    """A law on {-bound, bound}; `share` is the probability of the higher value."""
    values = [bound] * share.numerator + [-bound] * (share.denominator - share.numerator)
    return Replay(pd.DataFrame({"arm": 0, "y": values}), action="arm", reward="y")


# --- parameters ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, "1", True, None])
def test_epsilon_that_is_refused(epsilon: Any) -> None:
    with pytest.raises(ParameterError, match="DPNAS: epsilon must be"):
        DPNAS(epsilon=epsilon, alpha=0.1, beta=0.05)


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 1.5, math.nan, math.inf, "0.1", True, None])
def test_alpha_and_beta_lie_strictly_between_0_and_1(name: str, value: Any) -> None:
    parameters = {"alpha": 0.1, "beta": 0.05, name: value}
    message = f"{name} must be a number strictly between 0 and 1, got"
    with pytest.raises(ParameterError, match=message):
        NAS(**parameters)
    with pytest.raises(ParameterError, match=message):
        DPNAS(epsilon=1.0, **parameters)


@pytest.mark.parametrize("bound", [0.0, -1.0, math.nan, math.inf, "1", None])
def test_bound_that_is_refused(bound: Any) -> None:
    with pytest.raises(ParameterError, match="bound must be"):
        NAS(alpha=0.1, beta=0.05, bound=bound)


def test_all_bad_parameters_are_listed_at_once() -> None:
    with pytest.raises(ParameterError, match="DPNAS: 6 problems") as caught:
        DPNAS(epsilon=0.0, alpha=0.0, beta=1.0, bound=0.0, steps="double", calibration="none")
    assert [problem.split()[0] for problem in caught.value.problems] == [
        "epsilon",
        "alpha",
        "beta",
        "bound",
        "steps",
        "calibration",
    ]


@every_rule
@pytest.mark.parametrize("max_rounds", [0, -1, 2.0, "10", True])
def test_max_rounds_that_are_refused(rule: StoppingRule, max_rounds: Any) -> None:
    for stream in ([0.5, 0.5], BernoulliArms([0.5])):
        with pytest.raises(ParameterError, match="max_rounds must be a whole number of at least 1"):
            rule.run(stream, rng=0, max_rounds=max_rounds)
    with pytest.raises(ParameterError, match="max_rounds must be a whole number of at least 1"):
        rule.replicate(BernoulliArms([0.5]), 10, rng=0, max_rounds=max_rounds)


# --- arrays ----------------------------------------------------------------------------------------------


@every_rule
def test_everything_wrong_with_an_array_is_listed_with_positions(rule: StoppingRule) -> None:
    stream = [0.5, None, "0.5", math.inf, -1.5, math.nan, 1.25, 1.0, object, -1.0]
    with pytest.raises(ParameterError, match="4 problems") as caught:
        rule.run(stream, rng=0)
    assert caught.value.problems == (
        "'0.5' is not a number: positions 2, 8",
        "None is missing: positions 1, 5",
        "inf is infinite: position 3",
        "-1.5 is outside [-1, 1]: positions 4, 6",
    )


@every_rule
@pytest.mark.parametrize("kind", [np.asarray, pd.Series, list, tuple])
def test_numbers_out_of_range_in_arrays_of_every_kind(rule: StoppingRule, kind: Any) -> None:
    values = np.zeros(500)
    values[3::20] = -2.0
    with pytest.raises(ParameterError) as caught:
        rule.run(kind(values), rng=0)
    assert ": -2.0 is outside [-1, 1]: positions 3, 23, 43, 63" in str(caught.value)
    assert caught.value.problems[0].endswith("183, ... (25 in total)")


@every_rule
@pytest.mark.parametrize(
    ("stream", "shape"), [([], (0,)), (np.zeros((3, 2)), (3, 2)), (pd.Series([], dtype=float), (0,))]
)
def test_arrays_that_are_no_row_of_numbers(rule: StoppingRule, stream: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match="stream must be a single non-empty row of numbers") as caught:
        rule.run(stream, rng=0)
    assert str(shape) in str(caught.value)


@every_rule
@pytest.mark.parametrize("stream", [1.0, "0.5", b"1", {0.5: 1}, None, np.float64(0.5), np.array(0.5)])
def test_what_is_no_stream(rule: StoppingRule, stream: Any) -> None:
    with pytest.raises(ParameterError, match="stream must be an array, an iterable of numbers or an envi"):
        rule.run(stream, rng=0)


@every_rule
def test_kinds_of_numbers_do_not_matter(rule: StoppingRule) -> None:
    draws = np.random.default_rng(5).random(20_000) < 0.9
    reference = rule.run(draws.astype(float), rng=2)
    assert reference.stopped
    kinds = [
        draws,
        draws.astype(np.int8),
        draws.tolist(),
        pd.Series(draws, dtype="Int64"),
        [Fraction(int(x)) for x in draws],
        iter(draws.astype(np.float32)),
        (bool(x) for x in draws),
    ]
    for stream in kinds:
        result = rule.run(stream, rng=2)
        assert (result.estimate, result.stopping_time) == (reference.estimate, reference.stopping_time)


# --- iterables -------------------------------------------------------------------------------------------


class Counted:
    """An endless stream that knows how far it was read."""

    def __init__(self, value: float) -> None:
        self.value, self.read = value, 0

    def __iter__(self) -> Iterator[float]:
        while True:
            self.read += 1
            yield self.value


@every_rule
@pytest.mark.parametrize("value", [0.9, 0.85, -0.8, 0.7])
def test_an_iterable_is_read_no_further_than_needed(rule: StoppingRule, value: float) -> None:
    stream = Counted(value)
    result = rule.run(stream, rng=0)
    assert result.stopped
    assert stream.read == result.stopping_time == result.samples
    if rule.steps == "exponential":
        assert stream.read & (stream.read - 1) == 0


@pytest.mark.parametrize(("max_rounds", "every", "exponential"), [(1, 1, 0), (2, 2, 2), (100, 100, 64)])
@every_rule
def test_a_mean_of_zero_ends_at_max_rounds(
    rule: StoppingRule, max_rounds: int, every: int, exponential: int
) -> None:
    stream = Counted(0.0)
    result = rule.run(stream, rng=0, max_rounds=max_rounds)
    assert stream.read == result.samples == (every if rule.steps == "every" else exponential)
    assert not result.stopped
    assert math.isnan(result.estimate)
    assert math.isnan(result.stopping_time)
    assert result.reason is not None
    assert result.reason.startswith(f"max_rounds={max_rounds} was reached before the rule stopped")
    assert result.guarantee == rule.guarantee()
    assert result.noise == (None if rule.guarantee() is None else "simulation")
    array = rule.run(np.zeros(1000), rng=0, max_rounds=max_rounds)
    assert array.samples == result.samples
    assert array.reason == result.reason


@every_rule
@pytest.mark.parametrize("length", [1, 63, 64, 65])
def test_a_stream_that_ends_says_so(rule: StoppingRule, length: int) -> None:
    for stream in (np.zeros(length), iter([0.0] * length)):
        result = rule.run(stream, rng=0)
        assert result.samples == length
        assert result.reason is not None
        assert result.reason.startswith(f"the stream ended before the rule stopped ({length} samples read)")
    nothing = rule.run(iter([]), rng=0)
    assert nothing.samples == 0
    assert not nothing.stopped


@pytest.mark.parametrize("steps", ["every", "exponential"])
@pytest.mark.parametrize("bad", [1.5, -1.0001, math.nan, math.inf, None, "x", pd.NA])
def test_without_privacy_a_bad_sample_raises_where_it_stands(steps: str, bad: Any) -> None:
    stream = iter([0.5, 0.5, 0.5, 0.5, bad, 0.5, 0.5])
    with pytest.raises(ParameterError, match=r"NAS: samples must be numbers in \[-1, 1\], got") as caught:
        NAS(alpha=0.1, beta=0.05, steps=steps).run(stream)
    assert "at position 4" in str(caught.value)
    assert next(stream) == 0.5


@pytest.mark.parametrize("steps", ["every", "exponential"])
@pytest.mark.parametrize(
    ("bad", "counts_as"),
    [
        (7.5, 1.0),
        (-3.0, -1.0),
        (math.inf, 1.0),
        (-(10**400), -1.0),
        (math.nan, 0.0),
        (None, 0.0),
        (pd.NA, 0.0),
    ],
)
def test_with_privacy_a_bad_sample_does_not_show(steps: str, bad: Any, counts_as: float) -> None:
    """An exception would be an output: a sample out of range is clipped, a missing one counts as 0."""
    rule = DPNAS(epsilon=1.0, alpha=0.3, beta=0.1, steps=steps)
    good = np.random.default_rng(0).uniform(0.5, 1.0, 20_000).tolist()
    odd = [*good[:4], bad, *good[5:]]
    even = [*good[:4], counts_as, *good[5:]]
    result = rule.run(iter(odd), rng=1)
    assert result.stopped
    assert result == rule.run(even, rng=1)


def test_that_samples_are_numbers_is_public() -> None:
    with pytest.raises(ParameterError, match="got 'x' at position 1"):
        DPNAS(epsilon=1.0, alpha=0.3, beta=0.1).run(iter([0.5, "x"]), rng=0)


# --- environments ----------------------------------------------------------------------------------------


@every_rule
def test_environments_that_are_refused(rule: StoppingRule) -> None:
    refused: list[tuple[Environment, str]] = [
        (BernoulliArms([0.5, 0.5]), "must have one arm and no contexts"),
        (FiniteContext([0.5, 0.5], [[0.4], [0.6]]), "must have one arm and no contexts"),
        (UniformArms(low=[0.0], high=[1.5]), r"those of UniformArms lie in \[0, 1\.5\]: use a larger bound"),
        (UniformArms(low=[-2.0], high=[0.5]), r"lie in \[-2, 0\.5\]: use a larger bound"),
    ]
    if rule.guarantee() is None:
        refused.append((NormalArms([0.5]), "those of NormalArms are not: only private rules clip samples"))
    for env, message in refused:
        with pytest.raises(ParameterError, match=message):
            rule.run(env, rng=0, max_rounds=100)
        with pytest.raises(ParameterError, match=message):
            rule.replicate(env, 10, rng=0, max_rounds=100)
    with pytest.raises(ParameterError, match="max_rounds is required: with a mean of 0"):
        rule.run(BernoulliArms([0.5]), rng=0)
    with pytest.raises(ParameterError, match="2 problems") as caught:
        rule.replicate(BernoulliArms([0.5, 0.5]), 0, rng=0, max_rounds=10)
    assert "replications must be" in str(caught.value)
    with pytest.raises(ParameterError, match="env must be an environment of one arm"):
        rule.replicate([0.5] * 10, 10, rng=0, max_rounds=10)  # type: ignore[arg-type]


def test_a_private_rule_clips_unbounded_rewards() -> None:
    rule = DPNAS(epsilon=2.0, alpha=0.3, beta=0.1)
    sims = rule.replicate(NormalArms([1.0], scale=3.0), 64, rng=0, max_rounds=100_000)
    # mean of a normal variable clipped to [-1, 1]
    clipped = integrate.quad(
        lambda x: max(-1.0, min(1.0, 1.0 + 3.0 * x)) * math.exp(-x * x / 2) / math.sqrt(2 * math.pi),
        -9,
        9,
        points=(-2 / 3, 0.0),
    )[0]
    assert sims.stopped.all()
    assert np.abs(sims.estimate - clipped).max() < 0.3 * clipped
    assert not sims.wrong(clipped).any()
    assert sims.wrong(1.0).all()


ENVIRONMENTS = [
    BernoulliArms([0.8]),
    UniformArms(low=[-1.0], high=[0.0]),
    two_points(Fraction(1, 10)),
    Tableau(np.random.default_rng(0).uniform(0.5, 1.0, (30_000, 1))),
]


@every_rule
@pytest.mark.parametrize("env", ENVIRONMENTS, ids=["bernoulli", "uniform", "two-point", "tableau"])
def test_replicates_do_not_depend_on_how_they_are_run(rule: StoppingRule, env: Environment) -> None:
    options: dict[str, Any] = {"rng": 5, "max_rounds": 30_000}
    sims = rule.replicate(env, 130, by_rounds=True, **options)
    assert sims.stopped.all()
    parallel = rule.replicate(env, 130, n_jobs=2, by_rounds=True, **options)
    np.testing.assert_array_equal(sims.estimate, parallel.estimate)
    np.testing.assert_array_equal(sims.stopping_time, parallel.stopping_time)
    fewer = rule.replicate(env, 70, by_rounds=True, **options)
    np.testing.assert_array_equal(sims.estimate[:70], fewer.estimate)
    result = rule.run(env, **options)
    assert (result.estimate, result.stopping_time) == (sims.estimate[0], sims.stopping_time[0])
    other = rule.replicate(env, 130, rng=6, max_rounds=30_000, by_rounds=True)
    if not (isinstance(env, Tableau) and rule.guarantee() is None):
        assert (sims.estimate != other.estimate).mean() > 0.5


def test_a_tableau_that_is_too_short_is_refused() -> None:
    with pytest.raises(ParameterError, match="at most 10, the number of rounds"):
        NAS(alpha=0.1, beta=0.1).run(Tableau(np.zeros((10, 1))), max_rounds=11)


@pytest.mark.parametrize("rule", RULES[1::2], ids=NAMES[1::2])
def test_the_shortcut_serves_laws_of_two_values(rule: StoppingRule) -> None:
    for env in (BernoulliArms([0.8]), two_points(Fraction(1, 10)), two_points(Fraction(1))):
        default = rule.replicate(env, 64, rng=1, max_rounds=1 << 15)
        short = rule.replicate(env, 64, rng=1, max_rounds=1 << 15, by_rounds=False)
        np.testing.assert_array_equal(default.estimate, short.estimate)
    uniform = UniformArms(low=[0.0], high=[1.0])
    with pytest.raises(ParameterError, match="there is no shortcut for steps='exponential'"):
        rule.replicate(uniform, 64, rng=1, max_rounds=100, by_rounds=False)
    looped = rule.replicate(uniform, 64, rng=1, max_rounds=1 << 15, by_rounds=True)
    np.testing.assert_array_equal(
        looped.estimate, rule.replicate(uniform, 64, rng=1, max_rounds=1 << 15).estimate
    )


@pytest.mark.parametrize("rule", RULES[::2], ids=NAMES[::2])
def test_there_is_no_shortcut_at_every_step(rule: StoppingRule) -> None:
    with pytest.raises(ParameterError, match="there is no shortcut for steps='every'"):
        rule.replicate(BernoulliArms([0.5]), 64, rng=1, max_rounds=100, by_rounds=False)


@every_rule
def test_replicates_that_are_given_up(rule: StoppingRule) -> None:
    sims = rule.replicate(two_points(Fraction(1, 2)), 100, rng=0, max_rounds=1000)
    assert not sims.stopped.any()
    assert np.isnan(sims.estimate).all()
    assert np.isnan(sims.stopping_time).all()
    assert (sims.samples == (1000 if rule.steps == "every" else 512)).all()
    assert not sims.wrong(0.0).any()


def test_what_counts_as_wrong() -> None:
    sims = NAS(alpha=0.5, beta=0.4).replicate(BernoulliArms([1.0]), 3, rng=0, max_rounds=1000)
    assert sims.estimate.tolist() == [1.0, 1.0, 1.0]
    for mean, wrong in [(0.0, True), (0.6, True), (2 / 3, True), (0.7, False), (1.9, False), (2.0, True)]:
        assert sims.wrong(mean).tolist() == [wrong] * 3
    with pytest.raises(ParameterError, match="mean must be"):
        sims.wrong(math.nan)


# --- results ---------------------------------------------------------------------------------------------


@every_rule
def test_what_a_result_carries(rule: StoppingRule) -> None:
    samples = np.random.default_rng(1).uniform(-1.0, 0.0, 30_000)
    result = rule.run(samples, rng=3)
    assert result.stopped
    assert result.reason is None
    assert isinstance(result.stopping_time, int)
    assert (result.alpha, result.beta) == (0.3, 0.1)
    assert result.guarantee == rule.guarantee()
    assert type(rule)(**result.design.parameters) == rule
    low, high = result.interval
    assert low == pytest.approx(result.estimate / 0.7)
    assert high == pytest.approx(result.estimate / 1.3)
    assert low < -0.5 < high
    frame = result.to_frame()
    assert frame.shape == (1, 11)
    row = frame.iloc[0]
    assert row["estimate"] == result.estimate
    assert row["stopping_time"] == result.stopping_time
    assert (row["conf_low"], row["conf_high"]) == (low, high)
    assert np.isnan(row["epsilon"]) == (rule.guarantee() is None)
    with pytest.raises(AttributeError):
        result.estimate = 0.0  # type: ignore[misc]


def test_summary_of_a_run_that_stopped() -> None:
    result = NAS(alpha=0.5, beta=0.4).run([1.0] * 1000)
    assert str(result) == result.summary()
    assert result.summary().splitlines() == [
        "rule          NAS(alpha=0.5, beta=0.4, bound=1.0, steps='every')",
        "estimate      1",
        "mean between  0.666667 and 2",
        "stopped       after 239 samples",
        "accuracy      error of at least 0.5 |mean| with probability at most 0.4",
    ]


def test_summary_of_a_run_that_did_not_stop() -> None:
    text = str(DPNAS(epsilon=0.5, alpha=0.5, beta=0.4).run([0.0] * 10, rng=0))
    assert "estimate      none\nreason        the stream ended before the rule stopped (10 samples" in text
    assert "privacy       epsilon = 0.5, pure, per reward, central, standard" in text
    assert "noise         simulated: must not be published as private" in text


# --- privacy ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 0.3, 0.7, 1.0, 3.0, 1e6])
@pytest.mark.parametrize("calibration", ["corrected", "published"])
def test_the_guarantee_is_that_of_the_noise(epsilon: float, calibration: str) -> None:
    design = DPNAS(epsilon=epsilon, alpha=0.1, beta=0.05, bound=3.0, calibration=calibration)
    rule = design.rule(3.0, 1.0)
    sensitivity = 6.0
    assert rule.threshold_scale == pytest.approx(12 * 3.0 / epsilon, rel=1e-14)
    assert rule.query_scale == pytest.approx(12 * 3.0 / epsilon, rel=1e-14)
    assert rule.release_scale == pytest.approx(4 * 3.0 / epsilon, rel=1e-14)
    spent = (
        sensitivity / rule.threshold_scale
        + 2 * sensitivity / rule.query_scale
        + sensitivity / rule.release_scale
    )
    guarantee = design.guarantee()
    assert guarantee.epsilon == pytest.approx(spent, rel=1e-14)
    assert guarantee.epsilon == pytest.approx(epsilon, rel=1e-15)
    assert guarantee == PrivacyGuarantee(epsilon=guarantee.epsilon, unit="reward")
    assert guarantee.is_pure


def test_calibrations_are_one() -> None:
    samples = np.random.default_rng(2).uniform(0.0, 1.0, 30_000)
    runs = [
        DPNAS(epsilon=1.0, alpha=0.3, beta=0.1, calibration=calibration).run(samples, rng=0)
        for calibration in ("corrected", "published")
    ]
    assert runs[0].estimate == runs[1].estimate
    assert runs[0].guarantee == runs[1].guarantee


def test_a_sample_moves_an_absolute_sum_by_at_most_twice_the_bound() -> None:
    """Over all streams of five samples on a grid, and all replacements of one of them."""
    largest = 0.0
    for stream in itertools.product((-1.5, -0.5, 0.0, 1.5), repeat=5):
        sums = np.abs(np.cumsum(stream))
        for place, value in itertools.product(range(5), (-1.5, 0.5, 1.5)):
            neighbour = np.array(stream)
            neighbour[place] = value
            largest = max(largest, float(np.abs(np.abs(np.cumsum(neighbour)) - sums).max()))
    assert largest == 2 * 1.5


def stopping_law(rule: Rule, samples: np.ndarray) -> np.ndarray:
    """Log-probabilities that the rule halts at each look at 2, 4, ..., samples, by numerical integration.

    The last entry is that of not halting at all.
    """
    looks = np.arange(1, int(math.log2(samples.size)) + 1)
    sums = np.abs(np.cumsum(samples)[2**looks - 1])
    margin = sums - [halting_sum(rule, float(2**look), float(look)) for look in looks]
    spread = max(rule.threshold_scale, rule.query_scale)
    kinks = np.sort(np.concatenate([[0.0], margin]))
    ends = np.concatenate([[kinks[0] - 60 * spread], kinks, [kinks[-1] + 60 * spread]])
    nodes, weights = np.polynomial.legendre.leggauss(200)
    pieces = [
        (np.linspace(low, high, 41)[:-1, None] + (high - low) / 80 * (nodes + 1), (high - low) / 80)
        for low, high in itertools.pairwise(ends)
    ]
    b = np.concatenate([points.ravel() for points, _ in pieces])
    log_weight = np.concatenate([np.tile(np.log(weights * half), 40) for _, half in pieces if half > 0])
    b = np.concatenate([points.ravel() for points, half in pieces if half > 0])
    log_weight += -np.abs(b) / rule.threshold_scale - math.log(2 * rule.threshold_scale)
    # A_j <= margin_j - B halts
    z = (margin[:, None] - b) / rule.query_scale
    tail = np.log(0.5) - np.abs(z)
    halts = np.where(z < 0, tail, np.log1p(-np.exp(tail)))
    passes = np.where(z < 0, np.log1p(-np.exp(tail)), tail)
    before = np.concatenate([np.zeros((1, b.size)), np.cumsum(passes, axis=0)])
    joint = np.concatenate([before[:-1] + halts, before[-1:]]) + log_weight
    peak = joint.max(axis=1)
    return np.asarray(peak + np.log(np.exp(joint - peak[:, None]).sum(axis=1)))


def crossing_stream(rule: Rule, above: float) -> np.ndarray:
    """65,536 samples: sums just above the threshold from look 12 on, and just below 0 at the last look."""
    samples = np.zeros(1 << 16)
    samples[0] = 1.0
    total = 1.0
    for look in range(12, 17):
        target = halting_sum(rule, float(2**look), float(look)) + above if look < 16 else -3.0
        begin = 2 ** (look - 1)
        samples[begin : 2 * begin] = (target - total) / begin
        total = target
    assert np.abs(samples).max() <= 1.0
    return samples


def loss(rule: Rule, law: Rule, above: float) -> float:
    """Largest log-ratio of the stopping time's law between two streams that differ in their first sample."""
    stream = crossing_stream(law, above)
    neighbour = stream.copy()
    neighbour[0] = -1.0
    return float(np.abs(stopping_law(rule, stream) - stopping_law(rule, neighbour)).max())


@pytest.mark.slow
def test_the_stopping_times_law_spends_half_of_epsilon() -> None:
    """Exactly computed on neighbours that are nearly the worst: all of epsilon/2 is used, and no more."""
    design = DPNAS(epsilon=1.0, alpha=0.5, beta=0.5, steps="exponential")
    rule = design.rule(1.0, 1.0)
    np.testing.assert_allclose(np.exp(stopping_law(rule, crossing_stream(rule, 50.0))).sum(), 1.0, rtol=1e-9)
    losses = [loss(rule, rule, above) for above in (-20.0, 0.0, 30.0, 80.0, 150.0)]
    assert max(losses) <= 0.5 * (1 + 1e-9)
    assert max(losses) > 0.49


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        {"query_scale": 0.5},  # the factor 2 of the sparse vector technique left out
        {"threshold_scale": 0.5},  # a sensitivity of bound, where it is twice that
        {"threshold_scale": 0.5, "query_scale": 0.5},
    ],
    ids=["query", "threshold", "both"],
)
def test_too_little_noise_is_noticed(fault: dict[str, float]) -> None:
    rule = DPNAS(epsilon=1.0, alpha=0.5, beta=0.5, steps="exponential").rule(1.0, 1.0)
    weaker = rule._replace(**{name: factor * getattr(rule, name) for name, factor in fault.items()})
    assert max(loss(weaker, weaker, above) for above in (30.0, 80.0, 150.0)) > 0.55


# --- integer noise ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", ["every", "exponential"])
def test_released_numbers_are_whole_units(steps: str) -> None:
    rule = DPNAS(epsilon=2.0, alpha=0.4, beta=0.1, bound=0.3, steps=steps)
    samples = np.random.default_rng(1).uniform(0.0, 0.3, 8_192)
    for stream in (samples, iter(samples)):
        result = rule.run(stream, backend="release")
        assert result.stopped
        assert result.noise == "release"
        assert "integers from a cryptographic source" in str(result)
        units = result.estimate * result.samples / 0.3 * GRID_UNITS
        assert units == pytest.approx(round(units), abs=1e-3)
        grid = np.rint(samples[: result.samples] / 0.3 * GRID_UNITS).sum()
        noise = units - grid
        assert noise != 0.0
        # scale 4 bound / epsilon: e^-30
        assert abs(noise) < 30 * 4 * GRID_UNITS / 2.0
        assert result.guarantee == rule.guarantee()


def test_a_release_hides_bad_samples_too() -> None:
    rule = DPNAS(epsilon=2.0, alpha=0.4, beta=0.1)
    odd = [math.inf, -math.inf, None, math.nan, 10**400, 1e300]
    result = rule.run(iter([*odd, *[0.9] * 8_192]), backend="release")
    assert result.stopped
    assert 0.5 < result.estimate < 1.3


def test_released_noise_has_the_scales_of_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    from adaptinf.privacy import release

    asked: list[float] = []

    def no_noise(scale: float, size: int) -> np.ndarray:
        asked.append(scale)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(release, "discrete_laplace", no_noise)
    rule = DPNAS(epsilon=0.7, alpha=0.4, beta=0.1, bound=2.0)
    samples = np.full(30_000, 1.7)
    result = rule.run(iter(samples), backend="release")
    # rounded to the grid: the mean of what was summed
    assert result.estimate == pytest.approx(np.rint(1.7 / 2.0 * GRID_UNITS) / GRID_UNITS * 2.0, rel=1e-15)
    exact = [12 * GRID_UNITS / 0.7, 12 * GRID_UNITS / 0.7, 4 * GRID_UNITS / 0.7]
    assert [asked[0], asked[1], asked[-1]] == pytest.approx(exact, rel=1e-15)
    assert set(asked[1:-1]) == {asked[1]}
    # the same test in units: without noise it halts where the rule in real numbers does
    real = rule.rule(2.0, 1.0)
    time = int(result.stopping_time)
    assert 1.7 * time >= halting_sum(real, float(time), float(time)) - 1e-3
    assert 1.7 * (time - 1) < halting_sum(real, time - 1.0, time - 1.0) + 1e-3


def test_release_takes_no_seed_no_environment_and_no_tiny_epsilon() -> None:
    with pytest.raises(ParameterError, match="3 problems") as caught:
        DPNAS(epsilon=1e-6, alpha=0.1, beta=0.05).run(
            BernoulliArms([0.5]), rng=0, max_rounds=10, backend="release"
        )
    assert "rng must be None" in str(caught.value)
    assert "an environment is simulated" in str(caught.value)
    assert "epsilon must be at least 1e-05" in str(caught.value)
    with pytest.raises(ParameterError, match="backend must be one of 'simulation', 'release'"):
        DPNAS(epsilon=1.0, alpha=0.1, beta=0.05).run([0.5], backend="opendp")
