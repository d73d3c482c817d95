"""Bad input is refused by one error that lists everything, before anything is collected."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptinf import (
    AdaptiveLog,
    PrivacyGuarantee,
    bias_bound,
    designs,
    environments,
    linear_bias,
    linear_bias_bound,
    privacy,
    theory,
)
from adaptinf.errors import InvalidForLog, MissingDependencyError, ParameterError

ODD: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    -1.0,
    "1",
    True,
    [1.0],
    {},
    1j,
    np.array([0.5, 2.0]),
    10**400,
]

BUILT: list[tuple[Callable[..., Any], dict[str, Any], tuple[str, ...]]] = [
    (designs.SuccessiveElimination, {}, ("beta",)),
    (designs.PrivateSuccessiveElimination, {"epsilon": 1.0}, ("epsilon", "beta")),
    (designs.LinUCB, {}, ("regularisation", "failure", "noise_scale", "bound")),
    (designs.LinPriv, {"epsilon": 1.0}, ("epsilon", "delta", "failure", "regularisation", "bound")),
    (designs.NAS, {"alpha": 0.1, "beta": 0.1}, ("alpha", "beta", "bound")),
    (designs.DPNAS, {"epsilon": 1.0, "alpha": 0.1, "beta": 0.1}, ("epsilon", "alpha", "beta", "bound")),
    (designs.DPBAI, {"epsilon": 1.0, "features": [[1.0, 0.0], [0.6, 0.8]]}, ("epsilon",)),
    (designs.DPOD, {"epsilon": 1.0, "features": [[1.0, 0.0], [0.6, 0.8]]}, ("epsilon",)),
    (designs.LDPBandit, {"epsilon": 1.0}, ("epsilon", "width", "refinement", "check_every", "max_bins")),
    (designs.LDPLinear, {"epsilon": 1.0}, ("epsilon", "link", "step")),
    (designs.ABSE, {}, ("lipschitz",)),
    (designs.PlayTheWinner, {}, ("initial", "added")),
    (designs.DBCD, {}, ("gamma", "burn_in")),
    (designs.ERADE, {}, ("alpha", "burn_in")),
    (designs.PermutedBlocks, {}, ("per_arm",)),
    (designs.Mixture, {"design": designs.UCB()}, ("design", "exploration", "decay")),
    (designs.PrivateUCB, {"epsilon": 1.0}, ("epsilon", "width")),
    (designs.DPConSE, {"epsilon": 1.0}, ("epsilon", "alpha", "contrast_share")),
    (privacy.Laplace, {"epsilon": 1.0}, ("epsilon", "sensitivity")),
    (privacy.Gaussian, {"epsilon": 0.5, "delta": 1e-5}, ("epsilon", "delta", "sensitivity")),
    (privacy.DiscreteLaplace, {"epsilon": 1.0}, ("epsilon", "sensitivity")),
    (privacy.TruncatedLaplace, {"epsilon": 1.0}, ("epsilon", "sensitivity", "lowest")),
    (privacy.SparseVector, {"epsilon": 1.0}, ("epsilon", "sensitivity", "threshold_share")),
    (privacy.Counter, {"epsilon": 1.0}, ("epsilon", "horizon", "dimension", "sensitivity", "delta")),
    (privacy.analytic_scale, {"epsilon": 1.0, "delta": 0.1}, ("epsilon", "delta", "sensitivity")),
    (privacy.classical_scale, {"epsilon": 0.5, "delta": 0.1}, ("epsilon", "delta", "sensitivity")),
    (privacy.gaussian_delta, {"epsilon": 1.0, "scale": 1.0}, ("epsilon", "scale", "sensitivity")),
    (
        privacy.gaussian_norm_bound,
        {"sigma": 1.0, "terms": 2, "dimension": 2, "log_failure": -1.0},
        ("sigma", "terms", "dimension"),
    ),
]


@pytest.mark.parametrize("odd", ODD, ids=lambda value: f"{value!r:.12}")
@pytest.mark.parametrize(
    ("build", "given", "name"),
    [(build, given, name) for build, given, names in BUILT for name in names],
    ids=lambda part: getattr(part, "__name__", part) if not isinstance(part, dict) else "",
)
def test_odd_parameters(build: Callable[..., Any], given: dict[str, Any], name: str, odd: Any) -> None:
    build(**given)
    with pytest.raises(ParameterError, match=name):
        build(**{**given, name: odd})


@pytest.mark.parametrize("odd", ["0", None, [1.0], {}, True, 10**400, 0.0, math.nan])
def test_log_failures(odd: Any) -> None:
    with pytest.raises(ParameterError, match="log_failure must be"):
        privacy.gaussian_norm_bound(1.0, 2, 2, odd)


def test_everything_wrong_with_a_counter_is_listed() -> None:
    with pytest.raises(ParameterError) as caught:
        privacy.Counter(
            epsilon=-1.0,
            mechanism="tree",
            horizon=2.5,  # type: ignore[arg-type]
            dimension=0,
            low=1.0,
            high=0.0,
            sensitivity=-1.0,
            noise="cauchy",
            rng="seed",  # type: ignore[arg-type]
            backend="real",
        )
    assert len(caught.value.problems) == 10 - 1  # without a known backend a seed is not judged by it
    for name in ("epsilon", "mechanism", "horizon", "dimension", "low", "sensitivity", "noise", "backend"):
        assert any(problem.startswith(name) for problem in caught.value.problems)


TWO = environments.BernoulliArms([0.4, 0.6])
VECTORS = environments.LinearArms([[0.6, 0.2], [0.1, 0.7]], contexts="orthant", rewards="bernoulli")
FEATURES = [[1.0, 0.0], [0.6, 0.8]]
RUN: list[designs.Design] = [
    designs.Uniform(),
    designs.EpsilonGreedy(),
    designs.Thompson(),
    designs.ExplorationSampling(),
    designs.TopTwoThompson(),
    designs.KLUCB(),
    designs.FunctionDesign(lambda state, context, rng: [0.5, 0.5]),
    designs.UCB(),
    designs.PlayTheWinner(),
    designs.DBCD(burn_in=2),
    designs.ERADE(burn_in=2),
    designs.PermutedBlocks(),
    designs.PrivateUCB(epsilon=1.0),
    designs.PrivateUCB(epsilon=1.0, calibration="published"),
    designs.SuccessiveElimination(),
    designs.SuccessiveElimination(check="epochs"),
    designs.PrivateSuccessiveElimination(epsilon=1.0),
    designs.ConSE(),
    designs.DPConSE(epsilon=1.0),
    designs.LinUCB(),
    designs.LinPriv(epsilon=1.0),
    designs.LinPriv(epsilon=1.0, delta=1e-6),
    designs.Mixture(designs.LinPriv(epsilon=1.0)),
    designs.DPBAI(epsilon=1.0, features=FEATURES),
    designs.DPBAIGauss(epsilon=1.0, delta=1e-6, features=FEATURES),
    designs.DPOD(epsilon=1.0, features=FEATURES),
    designs.ODLinBAI(features=FEATURES),
    designs.SequentialHalving(),
    designs.LDPBandit(epsilon=1.0),
    designs.LDPLinear(epsilon=1.0),
    designs.ABSE(),
]
each_design = pytest.mark.parametrize("design", RUN, ids=lambda design: f"{design!r:.40}")


@each_design
@pytest.mark.parametrize("horizon", [0, -5, 2.5, 100.0, math.nan, "100", None, True, 2**63, 10**400])
def test_horizons(design: designs.Design, horizon: Any) -> None:
    environment = VECTORS if design.needs.vectors == "needed" else TWO
    for call in (lambda: design.run(environment, horizon), lambda: design.replicate(environment, horizon, 2)):
        with pytest.raises(ParameterError, match="horizon must be"):
            call()
    with pytest.raises(ParameterError, match="horizon must be"):
        design.guarantee(horizon, 2)


@each_design
@pytest.mark.parametrize("n_arms", [0, -1, 2.5, "2", None])
def test_numbers_of_arms(design: designs.Design, n_arms: Any) -> None:
    with pytest.raises(ParameterError, match="n_arms must be"):
        design.reward_guarantee(100, n_arms)


@each_design
@pytest.mark.parametrize("environment", [None, "BernoulliArms", environments.BernoulliArms, np.ones((9, 2))])
def test_what_is_no_environment(design: designs.Design, environment: Any) -> None:
    with pytest.raises(ParameterError, match="env must be an environment"):
        design.run(environment, horizon=10_000)


def test_everything_wrong_with_a_run_is_listed() -> None:
    tableau = environments.Tableau(np.full((50, 2), 1.5))
    with pytest.raises(ParameterError) as caught:
        designs.LinPriv(epsilon=1.0).replicate(
            tableau,
            horizon=60,
            replications=0,
            rng="seed",  # type: ignore[arg-type]
            n_jobs=0,
            by_rounds="no",  # type: ignore[arg-type]
        )
    message = str(caught.value)
    for part in ("replications", "n_jobs", "rng", "by_rounds", "context vectors", "[0, 1]", "at most 50"):
        assert part in message
    assert len(caught.value.problems) == 7


def test_a_horizon_longer_than_the_contexts() -> None:
    contexts = np.full((40, 2, 2), 0.5)
    environment = environments.LinearArms([[0.6, 0.2], [0.1, 0.7]], contexts=contexts, rewards="bernoulli")
    with pytest.raises(
        ParameterError, match=r"LinUCB: horizon must be at most 40, the number of rows of contexts, got 41"
    ):
        designs.LinUCB().run(environment, horizon=41)
    assert designs.LinUCB().run(environment, horizon=40, rng=0).n_rounds == 40


def test_one_arm_is_not_told_the_length_of_an_epoch() -> None:
    with pytest.raises(ParameterError) as caught:
        designs.PrivateSuccessiveElimination(epsilon=1.0).run(environments.BernoulliArms([0.5]), horizon=10)
    assert caught.value.problems == ("the environment must have at least 2 arms, got 1",)


@pytest.mark.parametrize("odd", ["a", ["1"], {}, [1j], [[1.0], [2.0, 3.0]], [10**400], {0.5}])
@pytest.mark.parametrize(
    "mechanism",
    [
        privacy.Laplace(epsilon=1.0),
        privacy.Gaussian(epsilon=1.0, delta=1e-5),
        privacy.DiscreteLaplace(epsilon=1.0),
        privacy.TruncatedLaplace(epsilon=1.0),
        privacy.SparseVector(epsilon=1.0),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_what_a_mechanism_does_not_take(mechanism: Any, odd: Any) -> None:
    more = {"center": 1.0} if isinstance(mechanism, privacy.TruncatedLaplace) else {}
    calls = [
        lambda: mechanism.release(odd, rng=0),
        lambda: mechanism.tail(odd, **more),
        lambda: mechanism.quantile(odd, **more),
    ]
    if hasattr(mechanism, "probability"):
        calls.append(lambda: mechanism.probability(odd, **more))
    for call in calls:
        with pytest.raises(ParameterError, match="must be numbers in rows of equal length"):
            call()


@pytest.mark.parametrize("rng", [-1, 1.5, "seed", True, [1]])
def test_seeds_of_mechanisms(rng: Any) -> None:
    with pytest.raises(ParameterError, match="rng must be a whole number"):
        privacy.Laplace(epsilon=1.0).release([1.0], rng=rng)


def test_one_number_is_one_number() -> None:
    lap = privacy.TruncatedLaplace(epsilon=1.0)
    calls: list[Callable[[], Any]] = [
        lambda: lap.moments([1.0, 2.0]),  # type: ignore[arg-type]
        lambda: privacy.Counter(epsilon=1.0).norm_bound(3, [0.5, 0.9]),  # type: ignore[arg-type]
        lambda: privacy.SparseVector(epsilon=1.0).start(rng=0).above([1.0, 2.0]),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(ParameterError, match=r"a single number is required, got shape \(2,\)"):
            call()


def test_the_tail_of_a_missing_number_is_missing() -> None:
    tail = privacy.TruncatedLaplace(epsilon=1.0).tail([math.nan, -1.0], center=3)
    assert math.isnan(tail[0])
    assert tail[1] == 1.0


@pytest.mark.parametrize(
    ("frame", "more", "said"),
    [
        (None, {}, "frame must be a pandas DataFrame"),
        (pd.DataFrame({"a": [0, 1], "y": ["1", "2"]}), {}, "column 'y' must contain numbers"),
        (
            pd.DataFrame({"a": [0, 1], "y": pd.to_datetime(["2020", "2021"])}),
            {},
            "column 'y' must contain numbers",
        ),
        (pd.DataFrame({"a": [0, 1], "y": [1j, 1.0]}), {}, "column 'y' must contain numbers"),
        (
            pd.DataFrame({"a": [0, 1], "y": pd.Series([10**400, 1], dtype=object)}),
            {},
            "column 'y' must contain numbers",
        ),
        (pd.DataFrame({"a": [0, "b"], "y": [1, 2]}), {}, "all of the same type if arms= is not"),
        (pd.DataFrame({"a": [[0], [1]], "y": [1, 2]}), {}, "all of the same type if arms= is not"),
        (pd.DataFrame({"a": [0, 1], "y": [1, 2]}), {"arms": 2}, "arms must be a list of labels"),
        (pd.DataFrame({"a": [0, 1], "y": [1, 2]}), {"context": 2.0}, "context must be a column or a list"),
        (pd.DataFrame([[0, 1, 2]], columns=["a", "y", "y"]), {}, "more than one column 'y'"),
        (
            pd.DataFrame({"a": [0, 0], "y": [1, 2], "c": ["x", 1]}),
            {"context": "c"},
            "labels of contexts must be strings or numbers",
        ),
    ],
)
def test_data_that_cannot_be_replayed(frame: Any, more: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        environments.Replay(frame, "a", "y", **more)


def test_labels_of_several_kinds_in_an_order_that_is_given() -> None:
    frame = pd.DataFrame({"a": [0, "b"], "y": [1, 2]})
    assert environments.Replay(frame, "a", "y", arms=["b", 0]).arm_means().tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: environments.BernoulliArms([10**400]),
        lambda: environments.NormalArms(np.array(["2020"], dtype="M8[D]")),
        lambda: environments.FiniteContext([1e308, 1e308], [[0.1, 0.2], [0.3, 0.4]]),
        lambda: environments.FiniteContext([0.5, 0.5], [[0.1, 0.2], [0.3, 0.4]], rewards=["normal"]),
        lambda: environments.Tableau(np.ones((2, 2)), contexts=[0, 1e308]),
        lambda: environments.LinearArms([[0.1, 0.2]], rewards=np.array(["normal", "uniform"])),
    ],
)
def test_environments_that_cannot_be(call: Callable[[], Any]) -> None:
    with pytest.raises(ParameterError):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: privacy.Laplace(epsilon=1.0).release([1.0], backend="release"),
        lambda: privacy.Gaussian(epsilon=1.0, delta=1e-5).release([1.0], backend="release"),
        lambda: privacy.DiscreteLaplace(epsilon=1.0).release([1], backend="release"),
        lambda: privacy.TruncatedLaplace(epsilon=1.0).release([1], backend="release"),
        lambda: privacy.SparseVector(epsilon=1.0).start(backend="release"),
        lambda: privacy.Counter(epsilon=1.0, backend="release"),
        lambda: designs.DPNAS(epsilon=1.0, alpha=0.1, beta=0.1).run([0.5] * 9, backend="release"),
    ],
)
def test_a_release_without_its_library(call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(MissingDependencyError, match=r"pip install '\.\[release\]' in the source tree"):
        call()


def test_what_prints() -> None:
    counter = privacy.Counter(epsilon=0.5, mechanism="binary", horizon=8, noise="gaussian", delta=1e-6, rng=0)
    counter.add(1.0)
    assert repr(counter) == (
        "<Counter: 1 items; epsilon=0.5, delta=1e-06, noise='gaussian', mechanism='binary', horizon=8, "
        "dimension=1, backend='simulation'>"
    )
    questions = privacy.SparseVector(epsilon=1.0).start(rng=0)
    assert repr(questions).startswith(
        "<Questions: 0 asked, waiting; SparseVector(epsilon=1.0, sensitivity=1.0"
    )

    assert repr(VECTORS) == "LinearArms(arms=[0, 1], dimension=2)"
    log = designs.LinUCB().run(VECTORS, horizon=20, rng=0)
    assert repr(designs.prediction_bands(log)) == "<PredictionBands: 20 rounds, 2 arms, 2 coordinates>"
    runs = designs.Uniform().replicate(environments.FiniteContext([1.0], [[0.5, 0.5]]), 9, 3, rng=0)
    assert repr(runs) == "<Replications: 3 runs of 2 arms in 1 contexts, mean regret 0>"
    rule = designs.NAS(alpha=0.5, beta=0.1)
    sure = environments.BernoulliArms([1.0])
    halted = rule.replicate(sure, 2, rng=0, max_rounds=400)
    assert repr(halted).startswith("<StoppingReplications: 2 runs, 2 stopped, after ")
    assert repr(rule.replicate(sure, 2, rng=0, max_rounds=9)) == "<StoppingReplications: 2 runs, 0 stopped>"


def test_bands_need_a_whole_run() -> None:
    log = designs.LinPriv(epsilon=1.0).run(VECTORS, horizon=60, rng=0)
    roles: dict[str, Any] = {"action": "action", "reward": "reward", "arms": log.arms}
    about = {"design": log.design, "releases": log.releases}
    whole = AdaptiveLog(log.frame, context=log.context[::-1], **roles, about=about)
    np.testing.assert_array_equal(designs.prediction_bands(whole).width, designs.prediction_bands(log).width)
    later = log.frame.iloc[10:].reset_index(drop=True)
    for part in (
        AdaptiveLog(later, context=log.context, **roles, about=about),
        AdaptiveLog(log.frame, context=log.context, **roles, about={"design": log.design}),
    ):
        with pytest.raises(InvalidForLog, match="a complete run with its releases is required"):
            designs.prediction_bands(part)
    for context in ((), log.context[:3]):
        with pytest.raises(InvalidForLog, match="context columns"):
            designs.prediction_bands(AdaptiveLog(log.frame, context=context, **roles, about=about))


def test_every_design_is_tried() -> None:
    made = {type(design) for design in RUN}
    public = {getattr(designs, name) for name in designs.__all__}
    assert {kind for kind in public if inspect.isclass(kind) and issubclass(kind, designs.Design)} == {
        *made,
        designs.Design,
    }


FORMULAS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (theory.counter_norm_bound, {"horizon": 9, "n_arms": 2, "dimension": 2, "epsilon": 1.0, "failure": 0.1}),
    (theory.hybrid_error, {"count": 9, "epsilon": 1.0, "delta": 0.1}),
    (theory.linpriv_regret, {"horizon": 9, "n_arms": 2, "dimension": 2, "epsilon": 1.0, "bound": 1.0}),
    (theory.potential_bound, {"count": 9, "dimension": 2}),
    (theory.private_elimination_pulls, {"means": [0.7, 0.5], "horizon": 9, "epsilon": 1.0, "beta": 0.1}),
    (theory.private_ucb_regret, {"means": [0.7, 0.5], "horizon": 9, "epsilon": 1.0}),
    (theory.private_ucb_worst_case, {"horizon": 9, "n_arms": 2, "epsilon": 0.1}),
    (theory.private_stopping_limit, {"mean": 0.5, "alpha": 0.1, "beta": 0.1, "epsilon": 1.0}),
    (theory.stopping_limit, {"mean": 0.5, "alpha": 0.1, "beta": 0.1, "bound": 1.0}),
    (theory.stopping_time_bound, {"mean": 0.5, "alpha": 0.1, "beta": 0.1, "epsilon": 1.0, "bound": 1.0}),
    (theory.stopping_time_closed_form, {"mean": 0.5, "alpha": 0.1, "beta": 0.1, "epsilon": 1.0}),
    (theory.stopping_time_lower_bound, {"mean": 0.5, "alpha": 0.1, "beta": 0.1, "epsilon": 1.0}),
]


@pytest.mark.parametrize(
    "odd", [None, "1", ["a"], {}, [[1.0], [1.0, 2.0]], 1j, [10**400], -2.0, 1e-320, math.nan]
)
@pytest.mark.parametrize(
    ("formula", "given", "name"),
    [(formula, given, name) for formula, given in FORMULAS for name in given],
    ids=lambda part: getattr(part, "__name__", part) if not isinstance(part, dict) else "",
)
def test_arguments_of_formulas(
    formula: Callable[..., Any], given: dict[str, Any], name: str, odd: Any
) -> None:
    formula(**given)
    tiny = odd == 1e-320 if isinstance(odd, float) else False
    if odd is None and (formula, name) in {
        (theory.stopping_time_bound, "epsilon"),
        (theory.private_elimination_pulls, "beta"),
    }:
        return  # left out: NAS, and a probability of 1 / horizon
    if (
        tiny
        and name in {"means", "bound"}
        and formula
        in {
            theory.private_elimination_pulls,
            theory.private_ucb_regret,
            theory.linpriv_regret,
        }
    ):
        return  # nothing is divided by it
    with pytest.raises(ParameterError, match=name):
        formula(**{**given, name: odd})


def test_a_limit_at_a_tiny_error_does_not_cancel() -> None:
    alpha, mean, epsilon = 1e-9, 1e-7, 0.3
    exact = math.log(20.0) / (2.0 * alpha * mean / (1.0 + alpha) * math.expm1(epsilon))
    limit = float(theory.private_stopping_limit(mean, alpha=alpha, beta=0.05, epsilon=epsilon))
    assert limit == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("odd", [None, "a", ["a"], {}, [1j, 1j], [[1.0], [1.0, 2.0]], [10**400], {0.5}])
def test_what_has_no_bias(odd: Any) -> None:
    X, theta = [[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5]
    selected, rewards = np.ones((200, 2), dtype=bool), np.ones((200, 2))
    calls: list[Callable[[], Any]] = [
        lambda: linear_bias_bound(odd, X, theta),
        lambda: linear_bias_bound(0.1, odd, theta),
        lambda: linear_bias_bound(0.1, X, odd),
        lambda: linear_bias(odd, rewards, [[1.0], [1.0]], [0.5]),
        lambda: linear_bias(selected, odd, [[1.0], [1.0]], [0.5]),
        lambda: linear_bias(selected, rewards, odd, [0.5]),
        lambda: linear_bias(selected, rewards, [[1.0], [1.0]], odd),
        lambda: bias_bound(odd, 10, [0.5]),
        lambda: bias_bound(PrivacyGuarantee(epsilon=0.1), 10, odd),
        lambda: theory.frontier(odd),
        lambda: theory.difference_in_means(odd),
        lambda: designs.prediction_bands(odd),
    ]
    for call in calls:
        with pytest.raises(ParameterError):
            call()


def test_no_privacy_at_all_is_an_epsilon() -> None:
    bound = linear_bias_bound(math.inf, [[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5])
    assert bound.bound == 0.5


@pytest.mark.parametrize("theta", ["a", [[1.0], [1.0, 2.0]], [0.5, 0.5]])
def test_coefficients_that_bands_cannot_miss(theta: Any) -> None:
    bands = designs.prediction_bands(designs.LinUCB().run(VECTORS, horizon=20, rng=0))
    with pytest.raises(ParameterError, match=r"shape \(2, 2\), got"):
        bands.misses(theta)
