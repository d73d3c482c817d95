"""What designs do: runs, replications, promises; stopping rules and the tools beside the designs."""

from __future__ import annotations

from typing import Any

import numpy as np
from net_book import Book, digest, packed
from net_logs import FEATURES, designs, environments

import adaptinf as ai
from adaptinf.audit.privacy.designs import neighbouring_trials

COLUMNS = ("action", "reward", "propensity", "propensities", "batch", "phase", "randomised")
FACTS = ("arms", "phases", "reward_range", "propensity_status", "guarantee", "reward_guarantee", "noise")
MORE = ("feedback_rounds", "recommended", "context_free", "context", "n_rounds")


def record_designs(book: Book) -> None:
    places = environments()
    for name, (design, place, horizon) in designs().items():
        env = places[place]
        key = f"design | {name}"
        book.add(f"{key} | record", lambda design=design: _described(design))
        book.add(f"{key} | run", lambda a=(design, env, horizon): log_facts(a[0].run(a[1], a[2], rng=3)))
        book.add(f"{key} | third run", lambda a=(design, env, horizon): _third(*a))
        for by_rounds in (None, True, False):
            what = (design, env, horizon, by_rounds)
            book.add(f"{key} | replicate by_rounds={by_rounds}", lambda what=what: _replicated(*what))
        for other in ("two", "three", "contexts", "orthant", "smooth"):
            book.add(f"{key} | in {other}", lambda a=(design, places[other]): _short(*a))
    for name, env in places.items():
        book.add(f"environment | {name}", lambda env=env: _environment(env))
    _record_refusals(book)
    _record_stopping(book)
    _record_tools(book)


def log_facts(log: Any) -> dict[str, Any]:
    """Everything a log holds, columns as digests."""
    arrays = log.arrays
    facts = {name: getattr(arrays, name) for name in COLUMNS}
    found: dict[str, Any] = {n: None if v is None else digest(v) for n, v in facts.items()}
    found |= {f"context {name}": digest(log.column(name)) for name in log.context}
    found |= {name: packed(getattr(log, name, "no such fact")) for name in (*FACTS, *MORE)}
    if log.releases is not None:
        found["releases"] = {str(name): digest(log.releases[name].to_numpy()) for name in log.releases}
    found["design"] = packed(log.design)
    found["repr"] = repr(log)
    found["frame"] = [f"{name} {kind}" for name, kind in log.frame.dtypes.items()]
    return found


def _described(design: Any) -> dict[str, Any]:
    described: dict[str, Any] = {"repr": repr(design), "record": packed(design.record())}
    for arms in (2, 5):
        for kind in ("guarantee", "reward_guarantee"):
            try:
                described[f"{kind} of {arms}"] = packed(getattr(design, kind)(100, arms))
            except Exception as error:
                described[f"{kind} of {arms}"] = f"{type(error).__name__}: {error}"
    try:
        described["neighbours"] = [repr(pair)[:400] for pair in neighbouring_trials(design)]
    except Exception as error:
        described["neighbours"] = f"{type(error).__name__}: {error}"
    return described


def _third(design: Any, env: Any, horizon: int) -> dict[str, Any]:
    *_, last = design.logs(env, horizon, 3, rng=np.random.SeedSequence(9))
    return log_facts(last)


def _replicated(design: Any, env: Any, horizon: int, by_rounds: bool | None) -> dict[str, Any]:
    sims = design.replicate(env, horizon, 130, rng=5, by_rounds=by_rounds)
    found: dict[str, Any] = {
        name: digest(getattr(sims, name))
        for name in ("tallies", "outcomes", "regret", "truth", "pulls", "means")
    }
    found["released"] = {name: digest(values) for name, values in sims.released.items()}
    found["names"] = list(sims.outcome_names)
    found["statuses"] = packed(sims.statuses)
    found["phases"] = {
        status.phase: digest(sims.phase_tallies(status.phase, status.randomised)) for status in sims.statuses
    }
    found["repr"] = repr(sims)
    if "recommended" in sims.outcome_names:
        found["recommended"] = digest(sims.recommended)
    return found


def _short(design: Any, env: Any) -> dict[str, Any]:
    log = design.run(env, 40, rng=1)
    return {"action": digest(log.arrays.action), "reward": digest(log.arrays.reward)}


def _environment(env: Any) -> dict[str, Any]:
    log = ai.designs.Uniform().run(env, 50, rng=2)
    found = log_facts(log) | {"text": repr(env), "means": packed(env.means), "names": list(env.vector_names)}
    try:
        found |= {"arm_means": packed(env.arm_means()), "effects": packed(env.effects())}
    except Exception as error:
        found["arm_means"] = f"{type(error).__name__}: {error}"
    return found


def _record_refusals(book: Book) -> None:
    """What is refused, with the texts: each class without arguments and with absurd ones."""
    absurd: dict[str, Any] = {"epsilon": -1.0, "alpha": 7.0, "beta": -2.0, "width": -1.0, "exploration": 3.0}
    for name in ai.designs.__all__:
        kind = getattr(ai.designs, name)
        if not isinstance(kind, type) or not hasattr(kind, "__dataclass_fields__"):
            continue
        own = {key: value for key, value in absurd.items() if key in kind.__dataclass_fields__}
        book.add(f"refusal | {name} of nothing", lambda kind=kind: repr(kind()))
        book.add(f"refusal | {name} of absurd numbers", lambda kind=kind, own=own: repr(kind(**own)))
    env = environments()["two"]
    for text, call in {
        "horizon": lambda: ai.designs.UCB().run(env, 0, rng=1),
        "rng": lambda: ai.designs.UCB().run(env, 10, rng=-1),
        "env": lambda: ai.designs.UCB().run("two", 10, rng=1),
        "replications": lambda: ai.designs.UCB().replicate(env, 10, 0, rng=1, n_jobs=0),
        "arms": lambda: ai.environments.BernoulliArms([0.2, 1.4]),
        "contexts": lambda: ai.environments.FiniteContext([0.5, 0.6], [[0.1], [0.2, 0.3]]),
        "smooth": lambda: ai.environments.SmoothArms(n_arms=1, dimension=0, contexts="square"),
        "linear": lambda: ai.environments.LinearArms([[0.9, float("nan")]], contexts="cube", rewards="beta"),
    }.items():
        book.add(f"refusal | {text}", lambda call=call: repr(call()))


def _record_stopping(book: Book) -> None:
    streams = {
        "uniform": np.random.default_rng(0).uniform(0.0, 1.0, 20_000),
        "short": np.full(5, 0.1),
        "negative": np.full(20_000, -0.7),
        "wrong": [0.1, 2.0, float("nan")],
    }
    kinds: dict[str, Any] = {}
    for steps in ("every", "exponential"):
        given = {"alpha": 0.3, "beta": 0.1, "steps": steps}
        kinds[f"NAS {steps}"] = ai.designs.NAS(**given)
        kinds[f"DPNAS {steps}"] = ai.designs.DPNAS(epsilon=1.0, **given)
    for name, rule in kinds.items():
        for title, stream in streams.items():
            book.add(f"stopping | {name} | {title}", lambda a=(rule, stream): _stopped(a[0].run(a[1], rng=1)))
        env = ai.environments.BernoulliArms([0.6])
        book.add(
            f"stopping | {name} | arm", lambda r=rule, env=env: _stopped(r.run(env, rng=1, max_rounds=9_000))
        )
        book.add(
            f"stopping | {name} | replicate",
            lambda r=rule, env=env: _digests(r.replicate(env, replications=130, rng=2, max_rounds=5_000)),
        )
        book.add(f"stopping | {name} | record", lambda r=rule: {"repr": repr(r), "guarantee": r.guarantee()})


def _stopped(result: Any) -> dict[str, Any]:
    return {"fields": packed(result), "interval": packed(result.interval), "text": str(result.summary())}


def _digests(sims: Any) -> dict[str, Any]:
    names = ("estimate", "stopping_time", "stopped", "samples")
    return {name: digest(getattr(sims, name)) for name in names} | {"repr": repr(sims)}


def _record_tools(book: Book) -> None:
    d, places = ai.designs, environments()
    book.add("tool | max_det", lambda: d.max_det(FEATURES))
    book.add("tool | optimal_design", lambda: d.optimal_design(FEATURES))
    for name, design, place in (
        ("linpriv", d.LinPriv(epsilon=1.0), "orthant"),
        ("linucb", d.LinUCB(noise_scale=0.5), "orthant"),
        ("ucb", d.UCB(), "two"),
    ):
        what = (design, places[place])
        book.add(
            f"tool | prediction_bands of {name}",
            lambda w=what: d.prediction_bands(w[0].run(w[1], 100, rng=4)),
        )
    for name, design in (("ldp bandit", d.LDPBandit(epsilon=8.0)), ("ucb", d.UCB())):
        place = "smooth" if name == "ldp bandit" else "two"
        what = (design, places[place])
        book.add(f"tool | bin_sums of {name}", lambda w=what: d.bin_sums(w[0].run(w[1], 300, rng=4)))
