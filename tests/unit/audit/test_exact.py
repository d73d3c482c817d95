"""Exact law of two-arm binary trials: published sizes, tests, refusals and results."""

from __future__ import annotations

import functools
import math
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from adaptinf import environments, read_log
from adaptinf.audit.binary import exact_law
from adaptinf.audit.binary.count_states import (
    certified_maximum,
    fisher_pvalue,
    pooled_score,
    tail_weights,
    unpooled_wald,
)
from adaptinf.audit.binary.exact_law import ExactLaw, exact
from adaptinf.audit.binary.log_tests import exact_test
from adaptinf.designs import UCB, EpsilonGreedy, LinUCB, Mixture, PlayTheWinner, PrivateUCB, Thompson, Uniform
from adaptinf.designs.recorded_designs import rebuilt
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.log import AdaptiveLog, LogArrays

TWO_ARMS = environments.BernoulliArms([0.3, 0.6])
THETAS = [0.1, 0.25, 0.5, 0.7, 0.9]


@functools.cache
def law(name: str, horizon: int) -> ExactLaw:
    rules: dict[str, Any] = {
        "thompson": Thompson(),
        "greedy": EpsilonGreedy(),
        "ucb": UCB(),
        "urn": PlayTheWinner(),
        "uniform": Uniform(),
        "batched": Thompson(batch_size=6, floor=0.1),
    }
    return exact(rules[name], horizon)


def log_of(
    action: list[int], reward: list[float], design: Any = None, propensity: list[float] | None = None
) -> AdaptiveLog:
    arrays = LogArrays(
        action=np.array(action),
        reward=np.array(reward, dtype=float),
        propensity=None if propensity is None else np.array(propensity),
    )
    record = None if design is None else design.record()
    return AdaptiveLog.from_arrays(arrays, arms=("control", "treatment"), design=record)


RUN = log_of([0, 1, 1, 1], [0, 1, 1, 1], Uniform())


def branching(n1: Any, s1: Any, n0: Any, s0: Any, t: int) -> Any:
    return 0.9 if s1 > s0 else 0.1


def branching_pvalue(n1: Any, s1: Any, n0: Any, s0: Any) -> Any:
    return 0.9 if s1 > s0 else 0.1


def missing(n1: Any, s1: Any, n0: Any, s0: Any) -> Any:
    return np.where(n1 > 0, s1 / np.maximum(n1, 1), np.nan)


def test_published_sizes_of_the_wald_test_under_thompson() -> None:
    """At .25 the size is .166649; rounded first to five digits and then to four it is the published .1667."""
    found = law("thompson", 200).size("wald", THETAS)
    assert found == pytest.approx([0.1811, 0.16665, 0.1404, 0.1113, 0.0564], abs=5.001e-5)
    assert found[[0, 2, 3, 4]].round(4).tolist() == [0.1811, 0.1404, 0.1113, 0.0564]
    assert float(found[1]) == pytest.approx(0.1666488, abs=5e-8)


def test_published_sizes_of_the_score_test_and_pulls_under_thompson() -> None:
    found = law("thompson", 200).size("score", THETAS)
    assert found.round(4).tolist() == [0.0168, 0.07, 0.1097, 0.1343, 0.1698]
    one, zero = law("thompson", 200).expected_pulls(0.35, 0.25)
    assert round(float(one - zero), 2) == 96.1


@pytest.mark.parametrize("name", ["thompson", "greedy", "ucb", "urn", "uniform", "batched"])
@pytest.mark.parametrize("test", ["conditional", "unconditional"])
def test_exact_tests_never_reject_too_often(name: str, test: str) -> None:
    """Given any number of successes, and so at every theta; also over a grid of thetas, for both."""
    found = law(name, 36)
    for alpha in (0.01, 0.05, 0.2):
        if test == "conditional":
            assert found.by_total(found.region(test, alpha)).max() <= alpha + 1e-12
        assert found.size(test, np.linspace(0.0, 1.0, 41), alpha).max() <= alpha + 1e-12
        assert found.max_size(test, alpha)[1] <= alpha + 1e-9


def test_the_naive_test_rejects_too_often() -> None:
    theta, most = law("thompson", 36).max_size("wald")
    assert most > 0.2
    assert float(law("thompson", 36).size("wald", theta)) == pytest.approx(most, abs=2e-9)


def test_largest_size_is_no_less_than_over_a_fine_grid() -> None:
    found = law("greedy", 36)
    for test in ("wald", "score", "fisher"):
        grid = found.size(test, np.linspace(0.0, 1.0, 20_001)).max()
        assert grid - 1e-12 <= found.max_size(test)[1] <= grid + 1e-6


def test_certified_maximum_of_known_polynomials() -> None:
    theta, most = certified_maximum(stats.binom.pmf(0, 1, 0.5) * np.array([0.0, 0.0, 6.0, 0.0, 0.0]))
    assert theta == pytest.approx(0.5, abs=1e-3)
    assert most == pytest.approx(3.0 * 6.0 / 16.0, abs=1e-9)
    assert certified_maximum(np.ones(9))[1] == 1.0
    assert certified_maximum(np.linspace(0.0, 1.0, 7)) == (1.0, 1.0)


def test_unconditional_pvalue_is_the_size_of_the_set_as_extreme() -> None:
    found = law("urn", 20)
    for counts in [(10, 8, 10, 3), (14, 9, 6, 1), (3, 0, 17, 15)]:
        seen = abs(float(unpooled_wald(*counts)))

        def as_extreme(n1: Any, s1: Any, n0: Any, s0: Any, seen: float = seen) -> Any:
            return np.where(np.abs(unpooled_wald(n1, s1, n0, s0)) >= seen - 1e-7, 0.0, 1.0)

        most = found.size(as_extreme, np.linspace(0.0, 1.0, 20_001)).max()
        assert found.unconditional_pvalue(*counts) == pytest.approx(most, abs=1e-6)


def test_one_sided_sets_at_the_worst_rate() -> None:
    found = law("urn", 20)
    theta = np.linspace(0.0, 1.0, 20_001)
    for counts in [(10, 8, 10, 3), (14, 9, 6, 1), (3, 0, 17, 15)]:
        seen = float(unpooled_wald(*counts))
        most = {}
        for side, turn in (("greater", 1.0), ("less", -1.0)):

            def beyond(n1: Any, s1: Any, n0: Any, s0: Any, turn: float = turn, seen: float = seen) -> Any:
                return np.where(turn * unpooled_wald(n1, s1, n0, s0) >= turn * seen - 1e-7, 0.0, 1.0)

            most[side] = found.size(beyond, theta).max()
            own = found.unconditional_pvalue(*counts, alternative=side)
            assert own == pytest.approx(most[side], abs=1e-6)
        central = found.unconditional_pvalue(*counts, alternative="central")
        assert central == pytest.approx(min(1.0, 2.0 * min(most.values())), abs=2e-6)


@pytest.mark.parametrize(("one", "zero"), [((10, 9), (10, 3)), ((12, 7), (8, 1)), ((6, 2), (14, 9))])
def test_fixed_groups_are_boschloos_test(one: tuple[int, int], zero: tuple[int, int]) -> None:
    """scipy searches over the rate as well; it has no ties to lose in these tables."""

    def fisher(n1: Any, s1: Any, n0: Any, s0: Any) -> Any:
        return -stats.hypergeom.sf(s1 - 1, 20, s1 + s0, n1)

    fixed = exact(lambda n1, s1, n0, s0, t: 1.0 * (n1 < one[0]), 20)
    own = fixed.unconditional_pvalue(*one, *zero, fisher, alternative="greater")
    table = [[one[1], zero[1]], [one[0] - one[1], zero[0] - zero[1]]]
    assert own == pytest.approx(stats.boschloo_exact(table, alternative="greater", n=256).pvalue, abs=2e-9)


def test_barnards_test_counts_its_ties() -> None:
    fixed = exact(lambda n1, s1, n0, s0, t: 1.0 * (n1 < 10), 20)
    for side, expected in (("two-sided", 0.0079555511), ("less", 0.0039777756), ("greater", 1.0)):
        own = fixed.unconditional_pvalue(10, 3, 10, 9, "score", alternative=side)
        assert own == pytest.approx(expected, abs=2e-9)


def test_uniform_assignment_given_the_split_is_fishers_test() -> None:
    """Where assignment ignores outcomes, the split says nothing, and given it the law is hypergeometric."""
    found = law("uniform", 20)
    n1, total = 9, 8
    s1 = np.arange(max(0, total - 11), min(n1, total) + 1)
    chance = [found.probability(n1, int(s), 11, total - int(s), 0.37, 0.37) for s in s1]
    expected = stats.hypergeom.pmf(s1, 20, total, n1)
    assert np.array(chance) / sum(chance) == pytest.approx(expected, abs=1e-13)


def test_statistics_at_their_edges() -> None:
    counts = (np.array([5, 5, 0, 5]), np.array([5, 5, 0, 2]), np.array([5, 5, 10, 5]), np.array([0, 5, 3, 1]))
    assert unpooled_wald(*counts)[:3].tolist() == [math.inf, 0.0, 0.0]
    assert pooled_score(*counts)[1:3].tolist() == [0.0, 0.0]
    assert unpooled_wald(*counts)[3] == pytest.approx(0.2 / math.sqrt(0.4 * 0.6 / 5 + 0.2 * 0.8 / 5))
    assert pooled_score(*counts)[3] == pytest.approx(0.2 / math.sqrt(0.3 * 0.7 * 0.4))


def test_fishers_pvalue_is_scipys() -> None:
    rng = np.random.default_rng(3)
    n1 = rng.integers(0, 15, 40)
    n0 = rng.integers(0, 15, 40)
    s1, s0 = rng.binomial(n1, 0.4), rng.binomial(n0, 0.6)
    found = fisher_pvalue(n1, s1, n0, s0)
    for row, pvalue in zip(zip(n1, s1, n0, s0, strict=True), found, strict=True):
        a, b, c, d = (int(entry) for entry in row)
        assert pvalue == pytest.approx(stats.fisher_exact([[b, a - b], [d, c - d]])[1], abs=1e-12)


def test_ties_that_differ_by_rounding_count() -> None:
    values, weights = np.array([0.3, 0.1 + 0.2, -0.3, 0.0]), np.array([0.1, 0.2, 0.3, 0.4])
    assert tail_weights(values, weights, "two-sided", False)[:3] == pytest.approx([0.6] * 3)
    assert tail_weights(values, weights, "greater", False) == pytest.approx([0.3, 0.3, 1.0, 0.7])
    assert tail_weights(values, weights, "greater", True) == pytest.approx([0.15, 0.15, 0.85, 0.5])
    assert tail_weights(np.array([math.inf, -math.inf, 1.0]), np.array([0.2, 0.3, 0.5]), "less", False) == (
        pytest.approx([1.0, 0.3, 0.8])
    )


def test_a_log_is_tested_under_its_own_design() -> None:
    log = Thompson().run(TWO_ARMS, horizon=40, rng=5)
    result = exact_test(log)
    action, reward = log.arrays.action, log.arrays.reward
    n1, s1 = int((action == 1).sum()), int(reward[action == 1].sum())
    n0, s0 = 40 - n1, int(reward[action == 0].sum())
    own = law("thompson", 40)
    assert result.arms == (log.arms[1], log.arms[0])
    assert (result.pulls, result.successes) == ((n1, n0), (s1, s0))
    assert result.pvalue == own.conditional_pvalue(n1, s1, n0, s0)
    assert result.mid_pvalue == own.conditional_pvalue(n1, s1, n0, s0, mid_p=True)
    assert result.unconditional_pvalue == own.unconditional_pvalue(n1, s1, n0, s0)
    assert result.naive_pvalue == pytest.approx(2.0 * stats.norm.sf(abs(result.statistic)))
    greater = own.test(log, statistic="score", alternative="greater", mid_p=True)
    assert greater.pvalue == own.conditional_pvalue(n1, s1, n0, s0, "score", "greater", True)
    expected = own.unconditional_pvalue(n1, s1, n0, s0, "score", alternative="greater")
    assert greater.unconditional_pvalue == expected


def test_the_summary_names_drift_and_the_design() -> None:
    result = exact_test(log_of([0, 1, 1, 1], [0, 1, 1, 1], Thompson()))
    text = " ".join(str(result).split())
    assert "Exact test of equal arms, Thompson" in text
    assert "drift invalidates every exact p-value" in text
    assert "Assumes that Thompson assigned every arm" in text
    assert f"{result.pvalue:.3f}" in text
    assert result.to_frame()["p_value"].tolist()[0] == result.pvalue
    assert "<table" in result._repr_html_()


@pytest.mark.parametrize(
    "design",
    [
        Mixture(Thompson(floor=(0.4, 0.5), batch_size=3), exploration=0.3, decay=0.2),
        EpsilonGreedy(exploration=0.4, decay=0.3),
        Uniform(),
        Mixture(UCB(width=0.5), exploration=0.5),
    ],
)
def test_a_design_comes_back_from_a_file(design: Any, tmp_path: Path) -> None:
    log = design.run(TWO_ARMS, horizon=12, rng=1)
    log.to_parquet(tmp_path / "log.parquet")
    back = read_log(tmp_path / "log.parquet")
    assert rebuilt(back.design) == design
    assert exact_test(back).pvalue == exact(design, 12).test(log).pvalue


def test_unsuitable_logs_are_refused_with_every_reason() -> None:
    arrays = LogArrays(
        action=np.array([0, 1, 2]),
        reward=np.array([0.0, 0.5, 1.0]),
        context={"age": np.array([1.0, 2.0, 3.0])},
    )
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b", "c"))
    with pytest.raises(InvalidForLog) as caught:
        exact_test(log)
    for part in (
        "3 arms",
        "not all 0 or 1",
        "contexts (age)",
        "does not name its design",
        "randomization_test",
    ):
        assert part in str(caught.value)


@pytest.mark.parametrize("design", [PrivateUCB(epsilon=1.0), LinUCB(), Mixture(PrivateUCB(epsilon=1.0))])
def test_designs_with_more_state_are_refused(design: Any) -> None:
    with pytest.raises(ParameterError, match="do not depend only on the counts"):
        exact(design, 10)


def test_a_log_of_a_private_design_is_refused() -> None:
    log = PrivateUCB(epsilon=1.0).run(TWO_ARMS, horizon=10, rng=0)
    with pytest.raises(InvalidForLog, match="PrivateUCB do not depend only on the counts"):
        exact_test(log)


def test_a_log_that_the_design_cannot_have_made_is_refused() -> None:
    with pytest.raises(InvalidForLog, match="UCB could not have chosen 'treatment' in row 0"):
        exact_test(log_of([1, 0, 1], [1, 1, 0]), UCB())
    log = EpsilonGreedy(exploration=0.2).run(TWO_ARMS, horizon=20, rng=0)
    assert exact_test(log).pvalue <= 1.0
    with pytest.raises(InvalidForLog, match="collected under another design"):
        exact_test(log, EpsilonGreedy(exploration=0.5))
    with pytest.raises(InvalidForLog, match="it has 20 rounds, but the law has 21"):
        exact(EpsilonGreedy(), 21).test(log)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exact(Thompson(), 0), "horizon must be"),
        (lambda: exact(Thompson(), 1001), "at most 1,000"),
        (lambda: exact("thompson", 10), "design must be Thompson"),  # type: ignore[arg-type]
        (lambda: exact(Thompson(prior_parameters=(0.01, 1.0)), 10), "at least 0.05"),
        (lambda: exact(Thompson(floor=0.6), 10), "at most 1/2"),
        (lambda: exact(Thompson(batch_size=500), 1000), "take too long"),
        (lambda: exact(lambda n1, s1, n0, s0, t: 1.5, 3), "probabilities in"),
        (lambda: law("urn", 20).size("t-test", 0.5), "test must be wald"),
        (lambda: law("urn", 20).size("wald", 1.5), r"in \[0, 1\]"),
        (lambda: law("urn", 20).size("wald", 0.5, 0.0), "ExactLaw.size: alpha must be between 0 and 0.5"),
        (lambda: law("urn", 20).size("wald", 0.5, 0.95), "ExactLaw.size: alpha must be between 0 and 0.5"),
        (lambda: law("urn", 20).power("wald", 0.5, 0.4, 0.95), "ExactLaw.power: alpha must be between"),
        (lambda: law("urn", 20).max_size("wald", 0.5), "ExactLaw.max_size: alpha must be between"),
        (lambda: law("urn", 20).region("wald", "5%"), "ExactLaw.region: alpha must be between"),  # type: ignore[arg-type]
        (lambda: exact(Thompson, 10), r"exact: design must be an instance.* Thompson\(\)"),  # type: ignore[arg-type]
        (lambda: exact(lambda n1, s1: 0.5, 10), "called with 5 arguments, "),
        (lambda: exact(branching, 10), "integer arrays that contain many states.*ValueError.*use np.where"),
        (lambda: exact(lambda n1, s1, n0, s0, t: math.exp(s1 - s0), 10), "TypeError.*use np.where"),
        (lambda: exact(lambda n1, s1, n0, s0, t: "half", 10), "use np.where"),
        (lambda: law("urn", 20).size(branching_pvalue, 0.5), "ExactLaw.size: .*use np.where"),
        (lambda: law("urn", 20).expectation(branching_pvalue, 0.5, 0.5), "ExactLaw.expectation: .*np.where"),
        (lambda: law("urn", 20).unconditional_pvalue(5, 2, 15, 2, missing), "missing is NaN in"),
        (lambda: law("urn", 20).conditional_pvalue(5, 2, 15, 2, missing), "NaN in 1 of .* n1=0, s1=0, n0=20"),
        (
            lambda: law("urn", 20).conditional_pvalue(5, 2, 15, 2, lambda s1, s0: s1),
            "called with 4 arguments",
        ),
        (lambda: exact_test(RUN, statistic="median", mid_p=1), "exact_test: 2 problems"),  # type: ignore[arg-type]
        (lambda: exact_test(RUN, statistic=missing), "exact_test: missing is NaN"),
        (lambda: law("urn", 4).test(RUN, alternative="both"), "ExactLaw.test: alternative"),
        (
            lambda: law("urn", 20).power("wald", [0.1, 0.2], [0.1, 0.2, 0.3]),
            "all thetas must have the same shape",
        ),
        (lambda: law("urn", 20).conditional_pvalue(5, 6, 15, 2), "more successes than pulls"),
        (lambda: law("urn", 20).conditional_pvalue(5, 2, 5, 2), "20 rounds"),
        (lambda: law("urn", 20).conditional_pvalue(5, 2, 15, 2, "median"), "statistic must be one of"),
        (lambda: law("urn", 20).conditional_pvalue(5, 2, 15, 2, alternative="both"), "alternative must be"),
        (lambda: law("ucb", 36).conditional_pvalue(36, 2, 0, 0), "cannot reach"),
        (
            lambda: law("urn", 20).size(lambda n1, s1, n0, s0: math.nan, 0.5),
            "one number for each of 21 states",
        ),
        (lambda: PlayTheWinner(initial=0.0), "initial must be"),
        (lambda: exact_test("log"), "exact_test: log must be an AdaptiveLog"),  # type: ignore[arg-type]
        (lambda: law("urn", 20).test(log_of([0], [1]), mid_p="yes"), "mid_p must be"),
    ],
)
def test_wrong_calls_say_what_is_wrong(call: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()


def test_only_named_options_are_taken() -> None:
    for call in (exact_test, law("urn", 4).test):
        with pytest.raises(
            TypeError, match=rf"{call.__name__}\(\) got an unexpected keyword argument 'alpha'"
        ):
            call(RUN, alpha=0.05)  # type: ignore[operator]
    found = exact_test(RUN, statistic="score", alternative="greater", mid_p=True)
    assert (found.statistic_name, found.alternative, found.mid_p) == ("score", "greater", True)


def test_mid_p_says_that_the_size_may_exceed_alpha() -> None:
    assert "size of the test may exceed alpha" in " ".join(str(exact_test(RUN, mid_p=True)).split())
    assert "may exceed" not in str(exact_test(RUN))


def test_a_law_is_printed_short() -> None:
    assert str(law("urn", 20)) == repr(law("urn", 20)) == "<ExactLaw: PlayTheWinner, 20 rounds, 1,771 states>"


def test_a_rule_in_arrays_is_the_same_rule() -> None:
    """The advice of the refusal: np.where in place of the branch."""
    found = exact(lambda n1, s1, n0, s0, t: np.where(s1 > s0, 0.9, 0.1), 3)
    assert found.probability(3, 3, 0, 0, 0.5, 0.5) == pytest.approx(0.1 * 0.9 * 0.9 / 8.0)


def test_weights_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="read-only"):
        law("urn", 20).weights[0] = 1.0


def test_the_law_of_a_design_is_kept() -> None:
    """One a design, its parameters and a horizon; a function, which may change, is followed anew."""
    one = exact(Thompson(floor=0.1), 12)
    assert exact(Thompson(floor=0.1), 12) is one
    for other in (exact(Thompson(floor=0.1), 13), exact(Thompson(floor=0.2), 12), exact(Uniform(), 12)):
        assert other is not one
        assert other.weights.size != one.weights.size or np.any(other.weights != one.weights)
    share = [0.5]

    def rule(n1: Any, s1: Any, n0: Any, s0: Any, t: int) -> Any:
        return share[0] + 0.0 * n1

    before = exact(rule, 3).weights
    share[0] = 0.9
    assert np.any(exact(rule, 3).weights != before)


def test_laws_that_were_not_asked_for_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_law, "_KEPT", OrderedDict())
    monkeypatch.setattr(exact_law, "_MOST_KEPT", 1000)
    first, second = exact(Uniform(), 12), exact(Uniform(), 11)
    assert exact(Uniform(), 12) is first
    exact(Uniform(), 10)
    assert exact(Uniform(), 12) is first
    assert exact(Uniform(), 11) is not second


def test_size_at_the_ends_and_shapes() -> None:
    found = law("thompson", 36)
    assert found.size("wald", [0.0, 1.0]) == pytest.approx([0.0, 0.0], abs=1e-15)
    assert found.size("wald", np.full((2, 3), 0.4)).shape == (2, 3)
    assert found.power("wald", [[0.4], [0.5]], [0.3, 0.4, 0.5]).shape == (2, 3)
    assert found.power("wald", 0.4, 0.4) == pytest.approx(float(found.size("wald", 0.4)), abs=1e-13)
    total = found.expectation(lambda n1, s1, n0, s0: np.ones(n1.shape), [0.0, 0.3, 1.0], 0.8)
    assert total == pytest.approx([1.0] * 3, abs=1e-12)
