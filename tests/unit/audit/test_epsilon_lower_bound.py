"""Audits of privacy: what they look at, what they find, how they say it, and what they refuse."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from adaptinf.audit.privacy.audited_mechanisms import counter_nodes, sample
from adaptinf.audit.privacy.epsilon_audit import epsilon_lower_bound, neighbouring_inputs, privacy_scores
from adaptinf.audit.privacy.lower_bound import Finding, bound_from_scores, log_ratio_bound
from adaptinf.audit.privacy.output_sources import CHUNK
from adaptinf.designs import Uniform
from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.privacy import (
    Counter,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    SparseVector,
    TruncatedLaplace,
)

BINARY = Counter(epsilon=1.0, mechanism="binary", horizon=31)
MECHANISMS: dict[str, Any] = {
    "laplace": Laplace(epsilon=1.0, sensitivity=2.0),
    "gaussian": Gaussian(epsilon=1.0, delta=0.01),
    "classical": Gaussian(epsilon=0.9, delta=0.01, calibration="classical"),
    "discrete": DiscreteLaplace(epsilon=1.0, sensitivity=2),
    "truncated": TruncatedLaplace(epsilon=1.0),
    "truncated-published": TruncatedLaplace(epsilon=1.0, calibration="published"),
    "truncated-two": TruncatedLaplace(epsilon=1.0, sensitivity=2, lowest=1),
    "sparse": SparseVector(epsilon=1.0, sensitivity=2.0),
    "binary": BINARY,
    "hybrid": Counter(epsilon=1.0),
    "logarithmic": Counter(epsilon=1.0, mechanism="logarithmic"),
    "vector": Counter(epsilon=1.0, mechanism="binary", horizon=31, dimension=3, sensitivity=1.5),
    "normal": Counter(epsilon=1.0, delta=0.01, mechanism="binary", horizon=15, dimension=2, noise="gaussian"),
    "wide": Counter(epsilon=1.0, low=-2.0, high=3.0),
}


def response(epsilon: float) -> Any:
    """Randomised response: the true bit with odds e^epsilon."""

    def randomised_response(side: int, runs: int, rng: np.random.Generator) -> Any:
        truth = rng.random(runs) < 1.0 / (1.0 + math.exp(-epsilon))
        return (truth == (side == 1)).astype(float)

    return randomised_response


class TestBound:
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
    def test_randomised_response_is_found_and_not_overshot(self, epsilon: float) -> None:
        result = epsilon_lower_bound(response(epsilon), runs=200_000, rng=0)
        share = 1.0 / (1.0 + math.exp(-epsilon))
        tested = 100_000
        expected = log_ratio_bound(
            np.array(round(share * tested)), np.array(round((1 - share) * tested)), tested, 0.0, 0.0005
        )
        # standard error of the log of a ratio of two independent shares
        error = math.sqrt((1.0 - share) / share / tested + share / (1.0 - share) / tested)
        assert result.epsilon <= epsilon
        assert abs(result.epsilon - float(expected)) < 4.0 * error

    def test_level_of_randomised_response_at_exactly_epsilon(self) -> None:
        audits, runs, confidence = 2_000, 2_000, 0.9
        rng, share = np.random.default_rng(0), 1.0 / (1.0 + math.exp(-1.0))
        exceeded = 0
        for _ in range(audits):
            first, second = (rng.random(runs) < p for p in (1.0 - share, share))
            found = bound_from_scores(first * 1.0, second * 1.0, confidence=confidence)
            exceeded += found.epsilon > 1.0
        # a binomial count of that mean exceeds this once in 10,000
        assert exceeded <= stats.binom.ppf(1.0 - 1e-4, audits, 1.0 - confidence)

    @pytest.mark.slow
    def test_choosing_among_many_events_costs_nothing(self) -> None:
        # every event "at most c", c in the lower half, has a ratio of exactly e
        audits, runs, confidence = 400, 500, 0.5
        rng, exceeded = np.random.default_rng(1), 0
        for _ in range(audits):
            first = rng.random(runs) + (rng.random(runs) >= 0.2 * math.e)
            second = rng.random(runs) + (rng.random(runs) >= 0.2)
            exceeded += bound_from_scores(first, second, confidence=confidence).epsilon > 1.0
        # the other direction's ratios are below e^.6: one direction alone can err
        assert exceeded <= stats.binom.ppf(1.0 - 1e-4, audits, (1.0 - confidence) / 2.0)

    def test_the_runs_that_choose_an_event_do_not_bound_it(self) -> None:
        nothing, leak = np.zeros(1_000), np.r_[np.ones(500), np.zeros(500)]
        found = bound_from_scores(nothing, leak)
        assert (found.epsilon, found.hits, found.tested) == (0.0, (0, 0), 500)
        assert bound_from_scores(nothing, np.ones(1_000)).epsilon > 3.5
        chosen_early = bound_from_scores(nothing, leak, n_chosen=200)
        assert (chosen_early.hits, chosen_early.tested) == ((0, 300), 800)

    @pytest.mark.parametrize("side", [0, 1])
    @pytest.mark.parametrize("upper", [True, False])
    def test_a_leak_in_one_direction_alone_is_found(self, side: int, upper: bool) -> None:
        # an event of probability 1% on one data set and 10% on the other; no event has the opposite ratio
        def sampler(which: int, runs: int, rng: np.random.Generator) -> Any:
            return (rng.random(runs) < (0.1 if which == side else 0.01)) * (1.0 if upper else -1.0)

        result = epsilon_lower_bound(sampler, runs=100_000, rng=0)
        other = bound_from_scores(*privacy_scores(sampler, runs=100_000, rng=0))
        assert result.epsilon == other.epsilon
        assert 2.0 < result.epsilon <= math.log(10.0)
        assert other.swapped == (side == 0)
        assert other.upper == upper
        assert result.hits[side] > result.hits[1 - side]

    def test_delta_is_given_away(self) -> None:
        # with delta = 5% nothing is left of an event of 4%
        def sampler(which: int, runs: int, rng: np.random.Generator) -> Any:
            return (rng.random(runs) < (0.04 if which == 1 else 0.0)) * 1.0

        assert epsilon_lower_bound(sampler, runs=100_000, rng=0).epsilon > 5.0
        assert epsilon_lower_bound(sampler, runs=100_000, rng=0, delta=0.05).epsilon == 0.0

    def test_learned_score_of_several_numbers(self) -> None:
        # the second of two numbers tells, and the first one is noise
        def sampler(which: int, runs: int, rng: np.random.Generator) -> Any:
            return np.stack([rng.integers(0, 3, runs), rng.random(runs) < (0.6, 0.2)[which]], axis=1)

        result = epsilon_lower_bound(sampler, runs=100_000, rng=0)
        assert 1.0 < result.epsilon <= math.log(3.0)
        assert result.event.startswith("the log-ratio of the outputs, learned from the first quarter")
        assert result.tested == 50_000

    @pytest.mark.slow
    def test_workers_change_nothing(self) -> None:
        one, two = (epsilon_lower_bound(BINARY, runs=CHUNK + 10, rng=3, n_jobs=jobs) for jobs in (1, 2))
        assert one == two

    def test_a_piece_depends_on_the_seed_and_its_number_alone(self) -> None:
        short = privacy_scores(BINARY, runs=CHUNK, rng=3)[1]
        assert np.array_equal(privacy_scores(BINARY, runs=2 * CHUNK, rng=3)[1][:CHUNK], short)
        assert not np.array_equal(privacy_scores(BINARY, runs=CHUNK, rng=4)[1], short)


class TestMechanisms:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", MECHANISMS)
    def test_no_right_mechanism_is_refuted_and_much_is_found(self, name: str) -> None:
        target = MECHANISMS[name]
        result = epsilon_lower_bound(target, runs=100_000, rng=0)
        assert result.promised == target.guarantee()
        assert result.delta == target.guarantee().delta
        assert not result.refuted
        floor = {
            "classical": 0.3,
            "vector": 0.45,
            "hybrid": 0.6,
            "wide": 0.6,
            "sparse": 0.7,
            "normal": 0.7,
            "truncated-two": 0.5,
        }
        assert result.tightness > floor.get(name, 0.75)

    def test_worst_inputs(self) -> None:
        for name, ends in {
            "laplace": ([0.0], [2.0]),
            "gaussian": ([0.0], [1.0]),
            "discrete": ([0.0], [2.0]),
            "truncated-two": ([1.0, 1.0], [2.0, 2.0]),
            "sparse": ([0.0] * 7 + [2.0], [2.0] * 7 + [0.0]),
        }.items():
            assert [side.tolist() for side in neighbouring_inputs(MECHANISMS[name])] == list(ends)

    @pytest.mark.parametrize("first", [[0.0], [0.0] * 3, [0.0, 0.0]])
    def test_truncation_costs_most_at_the_default_inputs(self, first: list[float]) -> None:
        mechanism = TruncatedLaplace(epsilon=1.0, sensitivity=len(first))
        k = np.arange(200)
        low, high = (mechanism.probability(k, center) for center in (0.0, 1.0))
        loss = len(first) * float(np.log(low / high)[0])
        assert loss == pytest.approx(1.0, abs=1e-9)

    @pytest.mark.parametrize(
        ("name", "item", "ends"),
        [
            ("binary", 0, [1, 2, 4, 8, 16]),
            ("hybrid", 16, [17, 18, 20, 24, 32]),
            ("logarithmic", 31, [32]),
            ("normal", 0, [1, 2, 4, 8]),
        ],
    )
    def test_the_item_of_the_streams_pays_all_of_epsilon(self, name: str, item: int, ends: list[int]) -> None:
        counter = MECHANISMS[name]
        first, second = neighbouring_inputs(counter)
        assert np.flatnonzero((first != second).any(axis=1)).tolist() == [item]
        nodes = [node for node in counter_nodes(counter, len(first)) if node.start <= item < node.end]
        assert [node.end for node in nodes] == ends
        if counter.noise == "laplace":
            assert sum(1.0 / node.scale for node in nodes) == pytest.approx(1.0, abs=1e-12)

    def test_rounds_and_changes_of_streams(self) -> None:
        assert len(neighbouring_inputs(MECHANISMS["hybrid"], rounds=20)[0]) == 16
        assert len(neighbouring_inputs(Counter(epsilon=1.0, mechanism="binary", horizon=200))[0]) == 128
        long = Counter(epsilon=1.0, mechanism="binary", horizon=200)
        assert len(neighbouring_inputs(long, rounds=10_000)[0]) == 128
        first, second = neighbouring_inputs(MECHANISMS["vector"])
        assert (second - first)[0].tolist() == [1.0, 0.5, 0.0]
        first, second = neighbouring_inputs(MECHANISMS["normal"])
        assert np.linalg.norm(second - first) == pytest.approx(math.sqrt(2.0), abs=1e-12)
        first, second = neighbouring_inputs(MECHANISMS["wide"])
        assert (first[16, 0], second[16, 0], first[0, 0]) == (-2.0, 3.0, 0.0)

    def test_inputs_of_ones_own(self) -> None:
        near = epsilon_lower_bound(MECHANISMS["laplace"], ([5.0], [6.0]), runs=100_000, rng=0)
        assert 0.4 < near.epsilon <= 0.5
        items = np.zeros(15)
        changed = items.copy()
        changed[14] = 1.0  # the last item of 15 lies in one node of five
        last = epsilon_lower_bound(BINARY, (items, changed), runs=100_000, rng=0)
        assert 0.1 < last.epsilon <= 0.2
        assert "item 15, which lies in 1 node" in last.target
        assert "the noisy sums at 14, 15 is" in last.event

    def test_a_counter_is_audited_as_new_and_not_touched(self) -> None:
        used = Counter(epsilon=1.0, mechanism="binary", horizon=31, rng=0)
        values = [used.add(1.0) for _ in range(5)]
        fresh = privacy_scores(BINARY, runs=1_000, rng=0)
        assert np.array_equal(privacy_scores(used, runs=1_000, rng=0), fresh)
        assert (used.count, used.value) == (5, values[-1])

    @pytest.mark.parametrize("name", ["binary", "hybrid", "logarithmic", "normal", "vector"])
    def test_runs_abreast_are_those_of_counters_alone(self, name: str) -> None:
        counter = MECHANISMS[name]
        items = np.random.default_rng(5).random((15, counter.dimension))
        wide = counter._abreast(1, np.random.default_rng(7))
        settings = {
            "epsilon": 1.0,
            "mechanism": counter.mechanism,
            "horizon": counter.horizon,
            "dimension": counter.dimension,
            "sensitivity": counter.sensitivity,
            "noise": counter.noise,
            "delta": counter.delta,
        }
        alone = Counter(rng=np.random.default_rng(7), **settings)
        for item in items:
            assert np.array_equal(wide.add(item), alone.add(item))
        assert wide.scales == alone.scales
        twenty = counter._abreast(20, np.random.default_rng(7))
        assert np.unique(np.atleast_1d(twenty.add(np.zeros(20 * counter.dimension)))).size > 19

    def test_sparse_runs_have_the_law_of_questions(self) -> None:
        mechanism, runs = SparseVector(epsilon=1.0), 100_000
        values = np.array([0.5, -1.0, 2.0, 0.0])
        drawn = sample(mechanism, values, runs, np.random.default_rng(0), "simulation")[:, 0].astype(int)
        counts = np.bincount(drawn, minlength=5)
        assert stats.chisquare(counts, runs * mechanism.stopping_law(values)).pvalue > 1e-4
        released = sample(mechanism, values, 50, None, "release")[:, 0]
        assert set(released) <= set(range(5))
        assert len(set(released)) > 1


class TestResult:
    def test_table_frame_and_html(self) -> None:
        result = epsilon_lower_bound(Gaussian(epsilon=1.0, delta=0.01), runs=50_000, rng=0)
        text = str(result)
        assert len(text.splitlines()) < 30
        for words in (
            f"{result.epsilon:.4f}  99.9% confidence",
            "delta allowed for    0.01",
            "not refuted",
            "Gaussian(epsilon=1.0",
            "first data set",
            f"{result.hits[0]:,}",
        ):
            assert words in text
        frame = result.to_frame()
        assert frame.shape == (1, 13)
        row = frame.iloc[0]
        assert (row["epsilon"], row["hits_second"], row["promised"]) == (result.epsilon, result.hits[1], 1.0)
        assert row["tightness"] == result.epsilon
        assert row["findings"] == 0
        assert not row["refuted"]
        assert "<table" in result._repr_html_()

    def test_a_finding_refutes_whatever_the_bound_is(self) -> None:
        result = epsilon_lower_bound(BINARY, runs=2_000, rng=0)
        assert not result.refuted
        told = (
            Finding("noise", "the noise of a is associated with b"),
            Finding("replay", "the arm is not c"),
        )
        found = dataclasses.replace(result, findings=told)
        assert found.epsilon == result.epsilon <= 1.0
        assert found.refuted
        text = " ".join(str(found).split())
        for words in (
            "REFUTED",
            "Found (noise): the noise of a is associated with b.",
            "Found (replay): the arm is not c.",
        ):
            assert words in text
        assert "proves nothing" not in text
        assert found.to_frame()["findings"].tolist() == [2]
        assert not dataclasses.replace(found, promised=None).refuted

    def test_a_refutation_is_in_capitals_and_nothing_promised_is_no_line(self) -> None:
        guarantee = PrivacyGuarantee(epsilon=0.5)
        refuted = epsilon_lower_bound(response(1.0), runs=50_000, rng=0, promised=guarantee)
        assert refuted.refuted
        assert "REFUTED" in str(refuted)
        bare = epsilon_lower_bound(response(1.0), runs=50_000, rng=0)
        assert not bare.refuted
        assert math.isnan(bare.tightness)
        assert "promised " not in str(bare)
        assert bare.to_frame()["promised"].isna().all()

    def test_a_promise_of_nothing_at_all_has_no_share(self) -> None:
        def same(side: int, runs: int, rng: np.random.Generator) -> Any:
            return rng.random(runs)

        found = epsilon_lower_bound(same, runs=4_000, rng=0, promised=PrivacyGuarantee(epsilon=0.0))
        assert not found.refuted
        assert math.isnan(found.tightness)
        assert math.isnan(found.to_frame()["tightness"][0])
        assert "not refuted\n" in str(found)


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"target": 3}, "target must be a design, a mechanism, a counter or sample"),
            ({"runs": 10}, "runs must be a whole number of at least 1000"),
            ({"view": "both"}, "view must be one of 'all', 'releases', 'actions', 'digits'"),
            ({"view": "actions"}, "view='actions' applies only to designs"),
            ({"backend": "exact"}, "backend must be one of 'simulation', 'release'"),
            ({"backend": "release", "rng": 1}, "never seeded"),
            ({"target": BINARY, "backend": "release"}, "the counter's noise uses the simulation backend"),
            ({"target": Uniform(), "backend": "release"}, "does not specify how its decisions follow"),
            ({"target": str, "backend": "release"}, "must be simulation if target is a callable"),
            ({"target": response(1.0), "neighbours": ([0.0], [1.0])}, "neighbours must be omitted if"),
            ({"confidence": 0.2}, "confidence must be"),
            ({"delta": 2.0}, "delta must be"),
            ({"decimals": -1}, "decimals, if not None, must be"),
            ({"n_jobs": 0}, "n_jobs, if not -1, must be"),
            ({"promised": 1.0}, "promised must be a PrivacyGuarantee"),
            ({"rng": "seed"}, "rng must be"),
            ({"neighbours": 3}, "neighbours must be a pair of arrays"),
            ({"neighbours": ([0.0], [3.0])}, "by at most the sensitivity, 2 in L1; they differ by 3"),
            ({"neighbours": ([0.0], [0.0])}, "neighbours must differ"),
            ({"neighbours": ([0.0], [0.0, 1.0])}, "two sequences of the same length"),
            ({"neighbours": ([0.0], [math.inf])}, "neighbours must be finite"),
            (
                {"target": TruncatedLaplace(epsilon=1.0), "neighbours": ([0.0], [0.5])},
                "whole numbers, as TruncatedLaplace requires",
            ),
            (
                {"target": DiscreteLaplace(epsilon=1.0), "neighbours": ([0.5], [1.5])},
                "whole numbers, as DiscreteLaplace requires",
            ),
            ({"target": Uniform(), "neighbours": ([0.0], [1.0])}, "neighbours must be Neighbours"),
            ({"target": BINARY, "neighbours": ([0.0], [2.0])}, "must lie in [0, 1]"),
            ({"target": BINARY, "neighbours": ([0.0, 0.0], [1.0, 1.0])}, "differ in one item, not in 2"),
            ({"target": BINARY, "neighbours": (np.zeros(40), np.eye(40)[0])}, "at most 31 items"),
            ({"target": BINARY, "neighbours": (np.zeros((3, 2)), np.ones((3, 2)))}, "shape (items, 1) or"),
        ],
    )
    def test_each_is_named(self, arguments: dict[str, Any], words: str) -> None:
        with pytest.raises(ParameterError) as refusal:
            epsilon_lower_bound(**{"target": MECHANISMS["laplace"], "runs": 1_000, **arguments})
        assert words in str(refusal.value)

    def test_all_are_listed(self) -> None:
        with pytest.raises(ParameterError) as refusal:
            epsilon_lower_bound(3, runs=1, view="x", confidence=2, rng=-1)  # type: ignore[arg-type]
        assert len(refusal.value.problems) == 5

    def test_a_stated_sensitivity_bounds_streams(self) -> None:
        with pytest.raises(ParameterError, match=r"sensitivity 1\.5, got 3"):
            epsilon_lower_bound(MECHANISMS["vector"], (np.zeros((1, 3)), np.ones((1, 3))), runs=1_000)

    def test_neighbouring_inputs(self) -> None:
        for arguments, words in (
            ({"target": 3}, "target must be a mechanism or a counter"),
            ({"target": BINARY, "rounds": 0}, "rounds, if not None, must be"),
            ({"target": MECHANISMS["laplace"], "rounds": 3}, "rounds must be omitted if"),
        ):
            with pytest.raises(ParameterError, match=words):
                neighbouring_inputs(**arguments)  # type: ignore[arg-type]

    def test_a_sampler_of_the_wrong_shape(self) -> None:
        with pytest.raises(ParameterError, match="1000 rows of numbers"):
            epsilon_lower_bound(lambda side, runs, rng: np.zeros(3), runs=1_000)


def test_a_bound_at_a_smaller_delta_refutes_nothing() -> None:
    with pytest.raises(ParameterError, match=r"delta must be at least that of the guarantee, 0\.05"):
        epsilon_lower_bound(Gaussian(epsilon=1.0, delta=0.05), delta=0.0, runs=2_000, rng=0)
