"""Numbers of theory, of corrections, and of the mechanisms and counters of privacy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from net_audits import mechanisms
from net_book import Book, fields_of, packed
from net_logs import FEATURES

import adaptinf as ai

MEANS = [0.9, 0.5, 0.4]
STOPPING = ([0.5, 0.1, 0.01], 0.1, 0.05)


def record_numbers(book: Book) -> None:
    for name, call in (_theory() | _corrections()).items():
        book.add(f"theory | {name}", call)
    for name, target in mechanisms().items():
        book.add(f"privacy | {name} | facts", lambda t=target: _facts(t))
    for name, call in _released().items():
        book.add(f"privacy | {name}", call)


def _theory() -> dict[str, Callable[[], Any]]:
    t, conse, env = ai.theory, ai.designs.ConSE(alpha=0.2), _groups()
    many = [10**3, 10**5, 10**7]
    calls: dict[str, Callable[[], Any]] = {
        "hardness": lambda: t.hardness(FEATURES, [0.2, 0.9], 0.1),
        "dp_bai_error published": lambda: t.dp_bai_error(FEATURES, [0.2, 0.9], 1_000, 1.0, form="published"),
        "dp_bai_error": lambda: t.dp_bai_error(FEATURES, [0.2, 0.9], 1_000, 1.0),
        "dp_bai_gauss_error": lambda: t.dp_bai_gauss_error(FEATURES, [0.2, 0.9], 1_000, 4.0),
        "iterated_log": lambda: t.iterated_log([1, 2, 4, 16, 17, 65_536]),
        "counter_norm_bound": lambda: t.counter_norm_bound(1000, 2, 3, [0.5, 1.0], 0.05),
        "counter_norm_bound binary": lambda: t.counter_norm_bound(1000, 2, 3, 0.5, 0.05, "binary"),
        "ldp_regret_exponent": lambda: t.ldp_regret_exponent([1, 2, 5], 1.0),
        "ldp_regret_exponent open": lambda: t.ldp_regret_exponent([1, 2, 5], 0.5, private=False),
        "ldp_transfer_exponent": lambda: t.ldp_transfer_exponent(2, 1.0, gamma=[0.0, 1.0]),
        "ldp_transfer_rate": lambda: t.ldp_transfer_rate(80_000, [1.0, 2.0], 3, 2, 1.0),
        "potential_bound": lambda: t.potential_bound([1, 10, 100], 3, 0.5),
        "private_elimination_pulls": lambda: t.private_elimination_pulls(MEANS, many, 1.0),
        "private_elimination_regret": lambda: t.private_elimination_regret(MEANS, many, 0.5),
        "private_elimination_regret published": lambda: t.private_elimination_regret(
            MEANS, many, 1.0, form="published"
        ),
        "private_elimination_worst_case": lambda: t.private_elimination_worst_case(many, 5, 0.1),
        "private_ucb_regret": lambda: t.private_ucb_regret(MEANS, many, 1.0),
        "private_ucb_worst_case": lambda: t.private_ucb_worst_case(many, 50, 0.01),
        "private_ucb_worst_case published": lambda: t.private_ucb_worst_case(
            many, 50, 0.01, form="published"
        ),
        "private_stopping_limit": lambda: t.private_stopping_limit(*STOPPING, 0.1),
        "stopping_limit": lambda: t.stopping_limit(*STOPPING),
        "stopping_time_closed_form": lambda: t.stopping_time_closed_form(*STOPPING, 1.0),
        "stopping_time_lower_bound": lambda: t.stopping_time_lower_bound(*STOPPING, 0.1),
        "stopping_time_order": lambda: t.stopping_time_order(*STOPPING, 1.0),
        "frontier": lambda: fields_of(t.frontier(conse.replicate(env, 2_000, 128, rng=0))),
        "difference_in_means": lambda: t.difference_in_means(conse.replicate(env, 2_000, 64, rng=0)),
        "refusal": lambda: t.private_ucb_regret([2.0], -1, 0.0),
    }
    for form in ("exact", "published"):
        calls[f"hybrid_error {form}"] = lambda f=form: t.hybrid_error([1, 100, 10**4], 1.0, 0.05, form=f)
    for form in ("explicit", "published"):
        for steps in ("every", "exponential"):
            options = {"form": form, "steps": steps}
            calls[f"stopping_time_bound {options}"] = lambda o=options: t.stopping_time_bound(
                *STOPPING, 1.0, **o
            )
        calls[f"linpriv_regret {form}"] = lambda f=form: t.linpriv_regret(10**6, 5, 5, [1.0, 10.0], form=f)
    return calls


def _groups() -> Any:
    return ai.environments.FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])


def _corrections() -> dict[str, Callable[[], Any]]:
    pure, approximate = ai.PrivacyGuarantee(epsilon=0.1), ai.PrivacyGuarantee(epsilon=0.1, delta=1e-6)
    contexts, theta = [[1.0, 0.0], [0.6, 0.6], [0.0, 1.0]], [0.5, 0.5]
    levels = [0.2, 1e-3, 1e-9]
    calls: dict[str, Callable[[], Any]] = {
        "max_information": lambda: [ai.max_information(0.1, 100, b) for b in (0.0, 0.01, 0.5, 1.0)],
        "correct_pvalues": lambda: ai.correct_pvalues(levels, epsilon=0.1, n=100),
        "correct_pvalues beta": lambda: ai.correct_pvalues(levels, epsilon=0.1, n=100, beta=0.01),
        "corrected_level": lambda: [ai.corrected_level(0.05, epsilon=0.1, n=n) for n in (10, 100, 1000)],
        "corrected_level refused": lambda: ai.corrected_level(2.0, epsilon=-1.0, n=0),
        "bias_bound": lambda: ai.bias_bound(pure, 500, [0.5, 0.9]),
        "bias_bound approximate": lambda: ai.bias_bound(approximate, 500, [0.5, 0.9]),
        "linear_bias_bound": lambda: _both(ai.linear_bias_bound(0.1, contexts, theta)),
        "linear_bias_bound of a guarantee": lambda: _both(ai.linear_bias_bound(pure, contexts, theta)),
        "linear_bias_bound refused": lambda: ai.linear_bias_bound(approximate, contexts, [0.5]),
        "linear_bias": _linear_bias,
        "guarantee": lambda: [str(pure), str(pure.compose(approximate)), str(approximate.postprocess())],
        "guarantee reward": lambda: [
            str(ai.PrivacyGuarantee(0.1, unit=u).reward_level()) for u in ("reward", "record")
        ],
        "guarantee refused": lambda: ai.PrivacyGuarantee(
            -1.0, delta=2.0, unit="person", model="x", notion="y"
        ),
    }
    for bound in ("max-information", "moment", "expected"):
        options: dict[str, Any] = {"epsilon": 0.1, "n": 100, "bound": bound}
        calls[f"correct_pvalues {bound}"] = lambda o=options: ai.correct_pvalues(levels, **o)
    return calls


def _both(result: Any) -> dict[str, Any]:
    return {"fields": fields_of(result), "text": str(result)}


def _linear_bias() -> Any:
    rewards = (np.random.default_rng(0).random((4000, 2)) < 0.5).astype(float)
    selected = np.stack([np.ones(4000, bool), rewards[:, 0] == 1.0], axis=1)
    return _both(ai.linear_bias(selected, rewards, [[1.0], [1.0]], [0.5]))


def _facts(target: Any) -> dict[str, Any]:
    """Scales, guarantees and quantiles, as far as a mechanism has them."""
    found: dict[str, Any] = {"repr": repr(target)}
    names = (
        "scale",
        "variance",
        "scales",
        "sensitivity",
        "threshold_scale",
        "query_scale",
        "rate",
        "backend",
    )
    for name in names:
        if hasattr(target, name):
            found[name] = packed(getattr(target, name))
    calls: dict[str, tuple[Any, ...]] = {
        "guarantee": (),
        "tail": ([0.0, 1.5],),
        "quantile": ([0.1, 0.5, 0.99],),
    }
    calls |= {
        "probability": ([0, 1, 5],),
        "noise_variance": (7,),
        "noise_quantile": ([0.1, 0.9], 7),
        "norm_bound": (7,),
    }
    for name, given in calls.items():
        if hasattr(target, name):
            found[name] = _attempt(lambda name=name, given=given: getattr(target, name)(*given))
    return found


def _attempt(call: Callable[[], Any]) -> Any:
    try:
        return packed(call())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _released() -> dict[str, Callable[[], Any]]:
    p = ai.privacy
    named = mechanisms()
    calls: dict[str, Callable[[], Any]] = {
        f"{name} | release": lambda m=named[name]: m.release([10, 20, 30], rng=0)
        for name in ("laplace", "gaussian", "classical", "discrete", "truncated", "truncated published")
    }
    calls |= {
        f"{name} | counts": lambda c=named[name]: _counted(c) for name in ("binary", "hybrid", "logarithmic")
    }
    calls |= {f"{name} | counts": lambda c=named[name]: _counted_rows(c) for name in ("vector", "normal")}
    calls["sparse | release"] = lambda: named["sparse"].release(np.arange(40.0) - 20.0, rng=1, threshold=3.0)
    calls["sparse | law"] = lambda: named["sparse"].stopping_law([0.5, -3.0, 11.0])
    calls["laplace | grid"] = lambda: _on_grid(named["laplace"])
    calls["truncated | center"] = lambda: [packed(named["truncated"].tail([-1.0, 2.5], c)) for c in (0, 2)]
    calls["truncated | moments"] = lambda: named["truncated"].moments(3.0)
    calls["analytic_scale"] = lambda: [p.analytic_scale(1.0, x) for x in (1e-2, 1e-5, 1e-9)]
    calls["classical_scale"] = lambda: p.classical_scale(0.5, 1e-5)
    calls["gaussian_delta"] = lambda: [p.gaussian_delta(1.0, x) for x in (0.5, 1.0, 4.0)]
    calls["gaussian_norm_bound"] = lambda: p.gaussian_norm_bound(2.0, 4, 3, -3.0)
    calls["laplace_norm_bound"] = lambda: p.laplace_norm_bound(1.0, 2, 3.0, 4, 5, -3.0)
    calls["to_grid"] = lambda: p.to_grid([0.0, 0.25, 1.0, 1 / 3])
    calls["refusal laplace"] = lambda: p.Laplace(epsilon=-1.0, sensitivity=0.0)
    calls["refusal counter"] = lambda: p.Counter(
        epsilon=0.0, mechanism="ternary", dimension=0, noise="uniform"
    )
    calls["refusal scale"] = lambda: p.analytic_scale(-1.0, 2.0)
    return calls


def _counted(counter: Any) -> list[float]:
    return [float(counter.add(0.5 + 0.5 * (step % 2))) for step in range(30)]


def _counted_rows(counter: Any) -> list[Any]:
    return [packed(counter.add([0.1 * (step % 3)] * counter.dimension)) for step in range(15)]


def _on_grid(mechanism: Any) -> bool:
    return bool((mechanism.release([3.0, 4.0], backend="release") * ai.privacy.GRID_UNITS % 1 == 0).all())
