"""What results say: estimates, intervals, tables and notes of every model and method on every log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from net_book import Book, guarded, packed
from net_logs import design_logs, foreign_logs

import adaptinf as ai

PARTS = ("params", "bse", "pvalues", "pvalues_corrected", "ess", "min_propensity")
FACTS = ("model", "estimator", "weights", "notes", "naive", "private", "terms", "rsquared_adj")
SHOWN = ("as_latex", "as_html", "as_markdown", "as_csv")
FULL = ("uniform", "thompson", "ucb", "greedy batches", "thompson contexts", "mixture of ucb")
CORE = (" {}", "recommend", "diagnose", "sample-mean", "asymptotic", "'none', 'covariance': 'HC1'")
Spec = Callable[[Any], Any]


def record_fits(book: Book) -> None:
    made = {f"design {name}": make for name, make in design_logs().items()}
    made |= {f"foreign {name}": make for name, make in foreign_logs().items()}
    for name, make in made.items():
        if not any(book.wants(f"fit | {name} | {title}") for title in ("", *all_names())):
            continue
        try:
            log = make()
        except Exception as error:
            book.add(f"fit | {name} | log", lambda error=error: f"{type(error).__name__}: {error}")
            continue
        for title, call in specs(log):
            if (
                name.startswith("design ")
                and name[7:] not in FULL
                and not any(word in title for word in CORE)
            ):
                continue
            book.add(f"fit | {name} | {title}", lambda call=call, log=log: told(call(log)))


def all_names() -> list[str]:
    """The titles of all specs."""
    one = (
        *arm_specs(),
        *cate_specs("g"),
        *policy_specs(),
        *ols_specs(),
        *sequence_specs(),
        *other_specs("g"),
    )
    return [title for title, _ in one]


def told(result: Any) -> Any:
    """Everything that a result says; of what is no result, its text or its value."""
    if not hasattr(result, "conf_int_corrected"):
        return packed(result)
    found: dict[str, Any] = {name: packed(getattr(result, name)) for name in FACTS if hasattr(result, name)}
    for name in PARTS:
        found[name] = guarded(lambda name=name: getattr(result, name))
    found["diagnostics"] = guarded(lambda: result.diagnostics())
    found["conf_int"] = guarded(lambda: result.conf_int(alpha=0.1))
    found["conf_int_corrected"] = guarded(lambda: result.conf_int_corrected())
    found["cov_params"] = guarded(lambda: result.cov_params())
    found["frame"] = guarded(lambda: result.to_frame())
    found["text"] = guarded(lambda: f"{result.summary()}\n{result.explain()}")
    found["adjusted"] = guarded(lambda: result.adjust("bh", corrected=False))
    for name in ("t_test", "wald_test"):
        found[name] = guarded(lambda name=name: _tested(result, name))
    if hasattr(result, "heterogeneity"):
        found["heterogeneity"] = guarded(lambda: _both(result.heterogeneity()))
        found["interactions"] = guarded(lambda: result.interactions().to_frame())
    if hasattr(result, "table"):
        found["table"] = guarded(lambda: result.table())
    return found


def _tested(result: Any, name: str) -> dict[str, Any]:
    """All terms at once against zero."""
    return _both(getattr(result, name)(np.eye(len(result.terms))))


def _both(test: Any) -> dict[str, Any]:
    """Fields and text of a test."""
    found = {"text": str(test), "pvalue": packed(test.pvalue)}
    for name in ("pvalue_corrected", "statistic", "tvalue"):
        if hasattr(test, name):
            found[name] = packed(getattr(test, name))
    if hasattr(test, "conf_int"):
        found |= {"conf_int": packed(test.conf_int()), "frame": packed(test.to_frame())}
    return found


def specs(log: Any) -> Iterator[tuple[str, Spec]]:
    """Titles and calls for a log."""
    yield from arm_specs()
    by = log.context[0] if log.context else "g"
    yield from cate_specs(by)
    yield from policy_specs()
    yield from ols_specs()
    yield from sequence_specs()
    yield from other_specs(by)


def _pair(log: Any) -> dict[str, Any]:
    return {"treatment": log.arms[1], "control": log.arms[0]}


def _means(options: dict[str, Any]) -> Spec:
    return lambda log: ai.ArmMeans(log).fit(**options)


def _contrast(options: dict[str, Any]) -> Spec:
    return lambda log: ai.Contrast(log, **_pair(log)).fit(**options)


def arm_specs() -> Iterator[tuple[str, Spec]]:
    """Means of arms and their differences."""
    ways: list[dict[str, Any]] = [{}, {"null": 0.3}, {"estimator": "sample-mean", "keep_scores": True}]
    ways += [{"estimator": "sample-mean", "test": test} for test in ("normal", "t", "exact")]
    ways += [
        {"estimator": "alee"},
        {"estimator": "alee", "arm_error": "self-normalised"},
        {"arm_error": "stated"},
    ]
    ways += [{"estimator": "ipw", "weights": w} for w in ("uniform", "sqrt", "two-point")]
    ways += [{"estimator": "aipw", "weights": w} for w in (None, "uniform", "sqrt", "two-point")]
    ways += [{"estimator": "aipw", "weights": "two-point", "decay": 0.5}]
    ways += [{"estimator": "aipw", "outcome": "running-ridge", "ridge": 2.0, "keep_scores": True}]
    ways += [{"estimator": "aipw", "outcome": "running-mean", "test": "t"}, {"estimator": "median"}]
    for options in ways:
        yield f"ArmMeans {options}", _means(options)
        yield f"Contrast {options}", _contrast(options)
    yield "Contrast batched", _contrast({"estimator": "batched"})
    yield "Contrast batched weights", _contrast({"estimator": "batched", "weights": "sqrt"})
    yield "Contrast batch_test", lambda log: _both(ai.Contrast(log, **_pair(log)).batch_test(0.1))
    yield "ArmMeans one arm", lambda log: ai.ArmMeans(log, arms=[log.arms[-1]]).fit()
    yield "ArmMeans no such arm", lambda log: ai.ArmMeans(log, arms=["nobody"]).fit()
    yield (
        "Contrast with itself",
        lambda log: ai.Contrast(log, treatment=log.arms[0], control=log.arms[0]).fit(),
    )


def cate_specs(by: str) -> Iterator[tuple[str, Spec]]:
    """Effects in groups and their projections."""
    ways: list[dict[str, Any]] = [{}, {"estimator": "difference-in-means"}, {"pooled": True}]
    ways += [{"estimator": "difference-in-means", "pooled": True, "null": 0.1}]
    ways += [{"estimator": "aipw", "weights": w} for w in (None, "combined", "sqrt", "uniform")]
    ways += [{"estimator": "released"}, {"estimator": "ipw"}]
    for options in ways:
        yield f"CATE {options}", lambda log, o=options: ai.CATE(log, by=by, **_pair(log)).fit(**o)
    yield "CATE rounds", lambda log: ai.CATE(log, by=by, rounds="randomised", **_pair(log)).fit()
    yield "CATE two contexts", lambda log: ai.CATE(log, by=list(log.context)[:2], **_pair(log)).fit()
    fits: list[dict[str, Any]] = [{}, {"weights": "uniform", "covariance": "HC3"}, {"weights": "combined"}]
    fits += [
        {"covariance": "HC1", "outcome": "running-ridge", "null": 0.1},
        {"weights": "two-point", "decay": 0.4},
    ]
    for options in fits:
        yield f"CATE formula {options}", lambda log, o=options: _projected(log, f"~ {by}", o)
    yield "CATE formula groups", lambda log: _projected(log, f"~ 0 + C({by})", {})
    yield "CATE formula constant", lambda log: _projected(log, "~ 1", {"keep_scores": True})


def _projected(log: Any, formula: str, options: dict[str, Any]) -> Any:
    return ai.CATE.from_formula(formula, log, **_pair(log)).fit(**options)


def policy_specs() -> Iterator[tuple[str, Spec]]:
    """Values of policies and their differences."""
    ways: list[dict[str, Any]] = [{}, {"weights": "uniform"}, {"estimator": "ipw"}, {"estimator": "cadr"}]
    for weights in ("stable-variance", "min-variance"):
        ways += [
            {"weights": weights, "contextual": flag, "snapshots": "context-free"} for flag in (True, False)
        ]
    ways += [{"estimator": "cadr", "snapshots": "context-free", "burn_in": 20}, {"snapshots": "context-free"}]
    ways += [{"outcome": "running-ridge", "ridge": 3.0, "keep_scores": True}, {"weights": "sqrt"}]
    for options in ways:
        yield f"PolicyValue {options}", lambda log, o=options: ai.PolicyValue(log, log.arms[1]).fit(**o)
        yield f"PolicyContrast {options}", lambda log, o=options: _policy_contrast(log, "uniform", o)
    yield "PolicyValue several", lambda log: _policies(log).fit()
    yield "PolicyValue snapshots", lambda log: _policies(log).fit(snapshots=_snapshots(log))
    yield "PolicyContrast arm", lambda log: _policy_contrast(log, log.arms[0], {"null": 0.1})


def _policy_contrast(log: Any, baseline: Any, options: dict[str, Any]) -> Any:
    return ai.PolicyContrast(log, log.arms[1], baseline=baseline).fit(**options)


def _policies(log: Any) -> Any:
    return ai.PolicyValue(log, [log.arms[0], _leaning, "uniform"], names=["first", "leaning", "uniform"])


def _leaning(frame: Any) -> np.ndarray:
    """The second arm for the first half of the rows given; needs two arms."""
    right = (np.arange(len(frame)) % 2).astype(float)
    return np.column_stack([1.0 - right, right])


def _snapshots(log: Any) -> Any:
    arms = len(log.arms)
    return ai.PolicySnapshots([0, log.n_rounds // 2], [np.full(arms, 1.0 / arms)] * 2)


def ols_specs() -> Iterator[tuple[str, Spec]]:
    """Regressions with every adjustment and covariance."""
    ways: list[dict[str, Any]] = [{"adjustment": "none", "covariance": c} for c in _COVARIANCES]
    ways += [{"adjustment": name} for name in _ADJUSTMENTS]
    ways += [{}, {"adjustment": "w-decorrelation", "ridge": 2.0}, {"adjustment": "batched", "test": "t"}]
    ways += [{"adjustment": "batched", "drift": True}, {"adjustment": "weighted", "target": "uniform"}]
    ways += [{"adjustment": "weighted", "weights": weights} for weights in ("uniform", "sqrt")]
    ways += [{"stationary": True}]
    ways += [{"adjustment": "ellipsoid", "noise_scale": 0.5, "bound": 2.0, "ridge": 1.0}]
    ways += [{"adjustment": "anytime", "precision": 2.0}, {"adjustment": "anytime", "null": 0.2}]
    ways += [{"adjustment": "weighted", "covariance": "HC1"}, {"adjustment": "robust", "cov_type": "HC0"}]
    for options in ways:
        yield f"AdaptiveOLS arms {options}", lambda log, o=options: _regression(log, "C(action)").fit(**o)
        yield f"AdaptiveOLS contexts {options}", lambda log, o=options: ai.AdaptiveOLS(log).fit(**o)
    for arm in ("recommended", "most-pulled", "least-pulled", None):
        yield f"AdaptiveOLS arm {arm}", lambda log, arm=arm: _of_arm(log, arm).fit()
        yield f"AdaptiveOLS arm {arm} plain", lambda log, arm=arm: _of_arm(log, arm).fit("none")
    yield (
        "AdaptiveOLS t_test text",
        lambda log: _both(_regression(log, "1").fit("none").t_test("Intercept = 0.5")),
    )
    yield (
        "AdaptiveOLS wald text",
        lambda log: _both(_regression(log, "1").fit("none").wald_test("Intercept = x")),
    )


_COVARIANCES = ("classical", "HC0", "HC1", "HC2", "HC3", "CR2", "cluster")
_ADJUSTMENTS = ("max-information", "w-decorrelation", "batched", "weighted", "ellipsoid", "anytime")


def _regression(log: Any, right: str) -> Any:
    return ai.AdaptiveOLS.from_formula(f"reward ~ {right}", log)


def _of_arm(log: Any, arm: Any) -> Any:
    return ai.AdaptiveOLS.from_formula("reward ~ 1", log, arm=log.arms[1] if arm is None else arm)


def sequence_specs() -> Iterator[tuple[str, Spec]]:
    """Confidence sequences."""
    for target in ("arm-means", "contrast", "policy-value"):
        for method in ("betting", "empirical-bernstein", "normal-mixture", "asymptotic"):
            yield (
                f"Sequence {target} {method}",
                lambda log, a=(target, method): _sequence(log, a[0], {"method": a[1]}),
            )
    more: list[dict[str, Any]] = [{"method": "betting", "estimator": "ipw", "floor": 0.05}]
    more += [{"method": "normal-mixture", "sigma": 1.0, "t_opt": 50}, {"method": "asymptotic", "start": 30}]
    more += [{"method": "asymptotic", "estimator": "aipw", "alpha": 0.1}, {"method": "betting", "null": 0.4}]
    more += [{"method": "empirical-bernstein", "estimator": "ipw"}, {"method": "wald"}]
    for options in more:
        yield f"Sequence {options}", lambda log, o=options: _sequence(log, "arm-means", o)


def _sequence(log: Any, target: str, options: dict[str, Any]) -> Any:
    given: dict[str, Any] = {"contrast": _pair(log), "policy-value": {"policy": log.arms[1]}}.get(target, {})
    return ai.ConfidenceSequence(log, target, **given).fit(**options)


def other_specs(by: str) -> Iterator[tuple[str, Spec]]:
    """Means of bins; advice, checks, comparisons, and other ways to print."""
    for options in ({}, {"method": "anytime"}, {"null": 0.4, "rng": 3}):
        yield f"BinMeans {options}", lambda log, o=options: ai.BinMeans(log).fit(**o)
    yield "recommend", lambda log: _advice(log)
    yield "recommend contrast", lambda log: _advice(log, "contrast", **_pair(log))
    yield (
        "recommend contrast stopping",
        lambda log: _advice(log, "contrast", stopping="data-chosen", **_pair(log)),
    )
    yield "recommend cate", lambda log: _advice(log, "cate", by=by, **_pair(log))
    yield "recommend cate formula", lambda log: _advice(log, "cate", formula=f"~ {by}", **_pair(log))
    yield "recommend policy", lambda log: _advice(log, "policy-value", policy=log.arms[0])
    yield "recommend policy contrast", lambda log: _advice(log, "policy-contrast", policy=log.arms[0])
    yield "recommend stability", lambda log: _advice(log, stability=0.05, decay=0.3)
    yield "recommended fit", lambda log: ai.recommend(log).fit()
    yield "diagnose", lambda log: _diagnosis(ai.diagnose(log))
    yield (
        "diagnose expected",
        lambda log: _diagnosis(ai.diagnose(log, expected=np.ones(len(log.arms)), alpha=0.1)),
    )
    yield "compare", _compared
    for name in SHOWN:
        yield (
            f"shown {name}",
            lambda log, n=name: getattr(ai.Contrast(log, **_pair(log)).fit().summary(), n)(),
        )
        yield f"shown {name} holm", lambda log, n=name: getattr(_naive(log).summary(0.1, "holm"), n)()


def _naive(log: Any) -> Any:
    return ai.ArmMeans(log).fit("sample-mean")


def _advice(log: Any, *target: str, **options: Any) -> dict[str, Any]:
    advice = ai.recommend(log, *target, **options)
    best = guarded(lambda: advice.best.verdict.name)
    return {"text": str(advice), "frame": packed(advice.frame), "repr": repr(advice), "best": best}


def _diagnosis(found: Any) -> dict[str, Any]:
    return {"text": str(found), "frame": packed(found.to_frame()), "concerns": len(found.concerns)}


def _compared(log: Any) -> dict[str, Any]:
    """Naive means beside everything else that the log supports."""
    fits = {"naive": _naive(log)}
    for name, estimator in (("default", None), ("alee", "alee"), ("weighted", "aipw")):
        try:
            fits[name] = ai.ArmMeans(log).fit(estimator)
        except ai.errors.AdaptinfError:
            continue
    table = ai.compare(fits)
    return {"text": str(table), "frame": packed(table.to_frame()), "latex": table.summary().as_latex()}
