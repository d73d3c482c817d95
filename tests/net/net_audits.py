"""Audits at small sizes: coverage, power, exact laws, randomization tests, privacy bounds, studies."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from net_book import Book, fields_of, packed
from net_logs import designs, environments, foreign_logs

import adaptinf as ai

RUNS = 64
Fit = Callable[[Any], Any]


def record_audits(book: Book) -> None:
    _record_calibration(book)
    _record_plans(book)
    _record_exact(book)
    _record_randomization(book)
    _record_bias(book)
    _record_privacy(book)
    _record_study(book)


def whole(result: Any) -> dict[str, Any]:
    """Fields and text of an audit's result."""
    return {"fields": fields_of(result), "text": str(result), "repr": repr(result)[:500]}


def _naive(log: Any) -> Any:
    return ai.ArmMeans(log).fit("sample-mean", test="normal")


def _contrast(log: Any) -> Any:
    return ai.Contrast(log, treatment=log.arms[1], control=log.arms[0]).fit()


def _raising(log: Any) -> Any:
    return ai.Contrast(log, treatment=log.arms[1], control=log.arms[0]).fit("batched")


def _groups(log: Any) -> Any:
    return ai.CATE(log, by="feature", treatment=1, control=0).fit()


FITS: dict[str, Fit] = {"naive": _naive, "contrast": _contrast, "batched": _raising, "groups": _groups}
CHOSEN = (
    "uniform",
    "thompson",
    "ucb",
    "private ucb hybrid corrected",
    "conse alpha",
    "dp conse",
    "greedy normal",
)


def _record_calibration(book: Book) -> None:
    every, places = designs(), environments()
    for name in CHOSEN:
        design, place, horizon = every[name]
        for title, fit in FITS.items():
            what = (design, places[place], fit, horizon, RUNS)
            book.add(
                f"audit | coverage | {name} | {title}", lambda w=what: whole(ai.audit.coverage(*w, rng=1))
            )
    tallied = (ai.designs.Uniform(), places["two"], _intervals, [0.3, 0.6], 100, 128)
    book.add("audit | coverage_from_tallies", lambda: whole(ai.audit.coverage_from_tallies(*tallied, rng=2)))
    book.add("audit | true_value", lambda: _true_values(places["contexts"]))
    book.add("audit | coverage refused", lambda: ai.audit.coverage("design", 3, None, 0, 0, alpha=7.0))


def _intervals(sims: Any) -> Any:
    """Normal intervals of sample means, of the width of a fair coin."""
    error = 1.96 * np.sqrt(0.25 / np.maximum(sims.pulls, 1.0))
    return {"wald": (sims.means, sims.means - error, sims.means + error)}


def _true_values(env: Any) -> list[Any]:
    log = ai.designs.ConSE().run(env, 100, rng=1)
    fits = [ai.ArmMeans(log).fit("sample-mean"), _contrast(log), _groups(log)]
    return [packed(ai.audit.true_value(one, env)) for fit in fits for one in fit.estimands]


def _record_plans(book: Book) -> None:
    every, places = designs(), environments()
    grid = {"equal": places["equal"], "better": places["two"]}
    for name in ("uniform", "thompson", "ucb", "winner", "private ucb tail", "conse plain", "greedy batches"):
        design = every[name][0]
        power = (design, grid, _contrast, [40, 80], RUNS)
        book.add(f"audit | power | {name}", lambda p=power: whole(ai.audit.power(*p, rng=3)))
        plan = (design, grid, [40, 80], 128)
        book.add(
            f"audit | characteristics | {name}",
            lambda p=plan: whole(ai.audit.operating_characteristics(*p, rng=4)),
        )
        fitted = {"fit": _contrast, "selection": "analysis", "rng": 4}
        book.add(
            f"audit | characteristics with fit | {name}",
            lambda p=plan, f=fitted: whole(ai.audit.operating_characteristics(p[0], p[1], 60, 64, **f)),
        )
        ridge = (design, places["two"], 100, 40, 0.1)
        book.add(
            f"audit | decorrelation_ridge | {name}",
            lambda r=ridge: whole(ai.audit.decorrelation_ridge(*r, rng=3)),
        )
        book.add(f"audit | stability | {name}", lambda r=ridge: whole(ai.audit.stability(*r[:3], 100, rng=3)))
    book.add("audit | power refused", lambda: ai.audit.power("x", {}, None, [], 0))
    book.add("audit | stability refused", lambda: ai.audit.stability("x", None, 0, 0))


RULES: dict[str, Any] = {
    "thompson": ai.designs.Thompson(),
    "thompson floor": ai.designs.Thompson(floor=0.1, batch_size=3),
    "thompson decay": ai.designs.Thompson(floor=(0.5, 0.5), initial_pulls=2),
    "greedy": ai.designs.EpsilonGreedy(exploration=0.3),
    "winner": ai.designs.PlayTheWinner(),
    "uniform": ai.designs.Uniform(),
    "ucb": ai.designs.UCB(),
    "rule": lambda n1, s1, n0, s0, t: 0.5,
}


def _record_exact(book: Book) -> None:
    for name, rule in RULES.items():
        book.add(f"audit | exact | {name}", lambda rule=rule: _law(ai.audit.exact(rule, 20)))
        if callable(rule):
            continue
        log = rule.run(environments()["two"], 30, rng=6)
        for statistic in ("wald", "difference", "score"):
            for side in ("two-sided", "greater", "less"):
                options = {"statistic": statistic, "alternative": side, "mid_p": side == "greater"}
                key = f"audit | exact_test | {name} | {statistic} {side}"
                book.add(key, lambda log=log, o=options: whole(ai.audit.exact_test(log, **o)))
    for name in ("nothing known", "units"):
        book.add(
            f"audit | exact_test | foreign {name}",
            lambda name=name: ai.audit.exact_test(foreign_logs()[name](), ai.designs.Thompson()),
        )


def _law(law: Any) -> dict[str, Any]:
    """A few of the probabilities that an exact law gives."""
    bias = law.bias(0.6, 0.3)
    found = {"pulls": packed(law.expected_pulls(0.6, 0.3)), "bias": fields_of(bias), "repr": repr(law)}
    region = law.region("wald", 0.1)
    found |= {"region": int(region.sum()), "size": packed(law.size("wald", [0.2, 0.5], 0.1))}
    found |= {"max_size": packed(law.max_size("wald", 0.1)), "by_total": packed(law.by_total(region))}
    found["power"] = packed(law.power("wald", 0.7, 0.3))
    found["conditional"] = packed(law.conditional_pvalue(10, 7, 10, 3))
    found["unconditional"] = law.unconditional_pvalue(10, 7, 10, 3)
    return found | {"probability": law.probability(10, 7, 10, 3, 0.6, 0.4)}


def _record_randomization(book: Book) -> None:
    audit, every, places = ai.audit, designs(), environments()
    for name in (*CHOSEN, "linucb", "greedy batches", "mixture of ucb", "winner", "abse", "elimination"):
        design, place, horizon = every[name]
        log = design.run(places[place], min(horizon, 120), rng=8)
        for resample in (None, "assignment", "order"):
            options: dict[str, Any] = {"resample": resample, "replications": 39, "rng": 1}
            key = f"{name} | {resample}"
            book.add(
                f"audit | randomization | {key}",
                lambda a=(log, options): whole(audit.randomization_test(a[0], **a[1])),
            )
            book.add(
                f"audit | interval | {key}",
                lambda a=(log, options): whole(audit.randomization_interval(a[0], **a[1])),
            )
        for more in _randomization_options():
            options = {"replications": 39, **more}
            key = f"audit | randomization | {name} | {more}"
            book.add(key, lambda a=(log, options): whole(audit.randomization_test(a[0], **a[1])))
        for reference in ("uniform", "propensities", "observed"):
            options = {"reference": reference, "replications": 39}
            book.add(
                f"audit | weighted | {name} | {reference}",
                lambda a=(log, options): whole(audit.weighted_randomization_test(a[0], **a[1])),
            )
    for name in ("all", "nothing known", "units", "context free", "named uniform", "unknown design"):
        for kind in ("randomization_test", "weighted_randomization_test", "randomization_interval"):
            key = f"audit | {kind} | foreign {name}"
            call = getattr(audit, kind)
            book.add(key, lambda call=call, n=name: whole(call(foreign_logs()[n](), replications=39)))
            book.add(
                f"{key}, as uniform",
                lambda call=call, n=name: whole(
                    call(
                        foreign_logs()[n](), ai.designs.Uniform(), replications=39, treatment="c", control="a"
                    )
                ),
            )


def _randomization_options() -> list[dict[str, Any]]:
    ways: list[dict[str, Any]] = [
        {"statistic": s} for s in ("difference", "studentised", "f", "largest-studentised")
    ]
    return [
        *ways,
        {"alternative": "greater"},
        {"alternative": "less", "stop_after": 5},
        {"treatment": 0, "control": 1},
    ]


def _record_bias(book: Book) -> None:
    every, places = designs(), environments()
    for name in (*CHOSEN, "linucb", "linpriv", "ldp bandit one", "halving", "winner", "mixture of conse"):
        design, place, horizon = every[name]
        log = design.run(places[place], min(horizon, 150), rng=8)
        book.add(
            f"audit | simulate_bias | {name}",
            lambda log=log: whole(ai.audit.simulate_bias(log, None, 100, rng=2)),
        )
        book.add(
            f"audit | simulate_bias | {name} | control",
            lambda log=log: whole(ai.audit.simulate_bias(log, None, 64, rng=2, control=0)),
        )
        book.add(
            f"audit | stability of log | {name}",
            lambda a=(log, places[place]): whole(ai.audit.stability(*a, None, 64, 3)),
        )
    for name in ("nothing known", "named ucb", "all, contexts", "unknown design"):
        make = foreign_logs()[name]
        book.add(
            f"audit | simulate_bias | foreign {name}",
            lambda make=make: whole(ai.audit.simulate_bias(make(), None, 64, 2)),
        )


def _record_privacy(book: Book) -> None:
    every = designs()
    targets: dict[str, Any] = {name: every[name][0] for name in every if _private(every[name][0])}
    targets |= {name: every[name][0] for name in ("uniform", "ucb", "conse")}
    targets |= mechanisms()
    for steps in ("every", "exponential"):
        targets[f"DPNAS {steps}"] = ai.designs.DPNAS(epsilon=1.0, alpha=0.3, beta=0.1, steps=steps)
    for name, target in targets.items():
        for view in ("releases", "actions", "digits"):
            if view == "digits" and not name.startswith(("laplace", "binary", "discrete")):
                continue
            key = f"audit | epsilon | {name} | {view}"
            options = {"view": view, "runs": 2_000, "rng": 0}
            book.add(key, lambda a=(target, options): whole(ai.audit.epsilon_lower_bound(a[0], **a[1])))
    for name in ("laplace", "sparse", "binary", "vector"):
        target = mechanisms()[name]
        book.add(f"audit | inputs | {name}", lambda t=target: ai.audit.neighbouring_inputs(t))
        book.add(f"audit | scores | {name}", lambda t=target: ai.audit.privacy_scores(t, runs=1_000, rng=0))
    book.add(
        "audit | epsilon | nothing",
        lambda: ai.audit.epsilon_lower_bound(3, runs=1, view="x", confidence=2, rng=-1),
    )


def _private(design: Any) -> bool:
    return hasattr(design, "epsilon") or hasattr(getattr(design, "design", None), "epsilon")


def mechanisms() -> dict[str, Any]:
    """Mechanisms and counters by name."""
    p = ai.privacy
    return {
        "laplace": p.Laplace(epsilon=1.0, sensitivity=2.0),
        "gaussian": p.Gaussian(epsilon=1.0, delta=0.01),
        "classical": p.Gaussian(epsilon=0.9, delta=0.01, calibration="classical"),
        "discrete": p.DiscreteLaplace(epsilon=1.0, sensitivity=2),
        "truncated": p.TruncatedLaplace(epsilon=1.0),
        "truncated published": p.TruncatedLaplace(epsilon=1.0, calibration="published"),
        "sparse": p.SparseVector(epsilon=1.0, sensitivity=2.0),
        "binary": p.Counter(epsilon=1.0, mechanism="binary", horizon=31, rng=0),
        "hybrid": p.Counter(epsilon=1.0, rng=0),
        "logarithmic": p.Counter(epsilon=1.0, mechanism="logarithmic", rng=0),
        "vector": p.Counter(epsilon=1.0, mechanism="binary", horizon=31, dimension=3, sensitivity=1.5, rng=0),
        "normal": p.Counter(
            epsilon=1.0, delta=0.01, mechanism="binary", horizon=15, dimension=2, noise="gaussian", rng=0
        ),
    }


def _record_study(book: Book) -> None:
    places = environments()
    grid: dict[str, Any] = {
        "designs": {"uniform": ai.designs.Uniform(), "private": ai.designs.PrivateUCB(epsilon=1.0)},
        "environments": {"two": places["two"], "equal": places["equal"]},
        "analyses": {"naive": _naive, "contrast": _contrast},
        "horizons": [30, 60],
        "replications": 70,
        "rng": 5,
        "progress": False,
    }
    book.add("audit | study", lambda: _study(ai.audit.study(**grid)))
    book.add("audit | study in a folder", lambda: _kept(grid))
    book.add(
        "audit | study with an error", lambda: ai.audit.study(**{**grid, "analyses": {"batched": _raising}})
    )
    book.add("audit | study refused", lambda: ai.audit.study({}, {}, {}, [0], 0, keep="all"))


def _study(found: Any) -> dict[str, Any]:
    return {"frame": packed(found.frame), "text": str(found), "settings": packed(list(found.settings))}


def _kept(grid: dict[str, Any]) -> dict[str, Any]:
    """A study that keeps its estimates, and what its folder holds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study"
        found = _study(ai.audit.study(**grid, path=path, keep="estimates"))
        again = ai.audit.study(**grid, path=path, keep="estimates")
        files = sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())
        text = found.pop("text").replace(folder, "<TEMP>")
        return found | {"text": text, "again": packed(again.frame), "files": files}
