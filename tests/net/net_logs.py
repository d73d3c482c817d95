"""Environments, designs, and the logs to analyse: those of every design and those of other people."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import adaptinf as ai
from adaptinf.log.validation import nested_options

d, e = ai.designs, ai.environments
VARIANTS = (" published", " wide", " added", " share", " binary", " all", " auxiliary", " delta", " replay")
FEATURES = [[0.0, 1.0], [0.0, 0.5], [1.0, 0.0], [0.5, 0.5], [0.2, 0.3]]


def environments() -> dict[str, Any]:
    """One or two of every kind."""
    rows = np.random.default_rng(11)
    frame = pd.DataFrame({"x": rows.random(80), "z": rows.random(80), "label": rows.integers(0, 3, 80)})
    replay = pd.DataFrame({"arm": [0, 1] * 40, "y": rows.random(80).round(3), "g": [0, 0, 1, 1] * 20})
    return {
        "two": e.BernoulliArms([0.3, 0.6]),
        "equal": e.BernoulliArms([0.5, 0.5]),
        "three": e.BernoulliArms([0.3, 0.5, 0.7]),
        "five": e.BernoulliArms([0.2, 0.4, 0.5, 0.6, 0.8]),
        "normal": e.NormalArms([0.0, 0.5], scale=[1.0, 0.5]),
        "uniform": e.UniformArms([0.0, 0.2], [0.8, 1.0]),
        "contexts": e.FiniteContext([0.6, 0.4], [[0.3, 0.7], [0.6, 0.2]]),
        "contexts-normal": e.FiniteContext([0.5, 0.5], [[0.3, 0.7], [0.6, 0.2]], rewards="normal", scale=0.3),
        "orthant": e.LinearArms([[0.9, 0.1], [0.1, 0.9]], contexts="orthant", rewards="bernoulli"),
        "shared": e.LinearArms(
            [[0.9, 0.1], [0.1, 0.9]], contexts="orthant", rewards="bernoulli", shared=True
        ),
        "sphere": e.LinearArms([[0.3, 0.1], [0.1, 0.3]], noise=0.3),
        "smooth": e.SmoothArms(n_arms=2, dimension=1),
        "smooth-two": e.SmoothArms(n_arms=3, dimension=2),
        "tableau": e.Tableau(rows.random((400, 2)).round(4)),
        "replay": e.Replay(replay, "arm", "y", "g"),
        "classes": e.Classification(
            frame, "label", ["x", "z"], scaler=e.UnitCube(low=[0, 0], high=[1, 1], names=["x", "z"])
        ),
    }


def designs() -> dict[str, tuple[Any, str, int]]:
    """Design, environment and horizon by name."""
    return _simple() | _private() | _contextual() | _best_arm() | _mixtures()


def _simple() -> dict[str, tuple[Any, str, int]]:
    return {
        "uniform": (d.Uniform(), "two", 120),
        "uniform three": (d.Uniform(), "three", 120),
        "uniform normal": (d.Uniform(), "normal", 120),
        "greedy": (d.EpsilonGreedy(exploration=0.2, decay=0.1, batch_size=5), "three", 150),
        "greedy normal": (d.EpsilonGreedy(exploration=0.3), "normal", 150),
        "greedy batches": (d.EpsilonGreedy(exploration=0.4, batch_size=40), "two", 160),
        "greedy contexts": (d.EpsilonGreedy(exploration=0.3), "contexts", 160),
        "greedy replay": (d.EpsilonGreedy(exploration=0.3), "replay", 70),
        "thompson": (d.Thompson(), "two", 120),
        "thompson floor": (d.Thompson(draws=20, floor=0.05, batch_size=4), "three", 150),
        "thompson decay": (d.Thompson(floor=(0.5, 0.3), batch_size=50, initial_pulls=5), "two", 200),
        "thompson normal": (d.Thompson(prior="normal", floor=0.1), "normal", 120),
        "thompson contexts": (d.Thompson(floor=0.1), "contexts", 150),
        "ucb": (d.UCB(), "three", 150),
        "ucb wide": (d.UCB(width=3.0), "uniform", 150),
        "ucb tableau": (d.UCB(), "tableau", 150),
        "winner": (d.PlayTheWinner(), "two", 100),
        "winner added": (d.PlayTheWinner(initial=2.0, added=0.5), "two", 100),
        "elimination": (d.SuccessiveElimination(), "three", 300),
        "elimination epochs": (d.SuccessiveElimination(beta=0.5, check="epochs"), "two", 900),
    }


def _private() -> dict[str, tuple[Any, str, int]]:
    private: dict[str, tuple[Any, str, int]] = {
        "private elimination": (d.PrivateSuccessiveElimination(epsilon=2.0, beta=0.9), "two", 800),
        "private elimination published": (
            d.PrivateSuccessiveElimination(epsilon=9.0, beta=0.9, calibration="published"), "two", 900,
        ),
        "conse": (d.ConSE(), "contexts", 200),
        "conse alpha": (d.ConSE(alpha=0.3), "contexts", 200),
        "conse plain": (d.ConSE(), "two", 200),
        "dp conse": (d.DPConSE(epsilon=1.0, alpha=0.3), "contexts", 300),
        "dp conse published": (d.DPConSE(epsilon=4.0, calibration="published"), "contexts", 300),
        "dp conse share": (d.DPConSE(epsilon=20.0, contrast_share=0.5, first_window=16), "contexts", 300),
    }  # fmt: skip
    for counter in ("hybrid", "binary"):
        for calibration in ("corrected", "published"):
            design = d.PrivateUCB(epsilon=2.0, counter=counter, calibration=calibration)
            private[f"private ucb {counter} {calibration}"] = (design, "three", 200)
    widths = d.PrivateUCB(epsilon=1.0, noise_width="tail-bound", relaxation=False)
    private["private ucb tail"] = (widths, "two", 150)
    private["private ucb delta"] = (
        d.PrivateUCB(epsilon=1.0, delta=0.01, calibration="published"),
        "two",
        150,
    )
    return private


def _contextual() -> dict[str, tuple[Any, str, int]]:
    other = (environments()["smooth-two"].auxiliary(100, epsilon=4.0, rng=1),)
    return {
        "linucb": (d.LinUCB(noise_scale=0.5), "orthant", 150),
        "linucb sphere": (d.LinUCB(noise_scale=0.3, failure=0.1), "sphere", 150),
        "linpriv": (d.LinPriv(epsilon=1.0, dimension=2), "orthant", 150),
        "linpriv published": (d.LinPriv(epsilon=2.0, calibration="published"), "orthant", 150),
        "linpriv binary": (d.LinPriv(epsilon=5.0, counter="binary", noise_width="ridge"), "sphere", 150),
        "linpriv gaussian": (d.LinPriv(epsilon=2.0, delta=1e-4, noise="gaussian"), "orthant", 150),
        "ldp bandit": (d.LDPBandit(epsilon=8.0), "smooth-two", 300),
        "ldp bandit one": (d.LDPBandit(epsilon=4.0, width=0.5, axis="first"), "smooth", 400),
        "ldp bandit published": (d.LDPBandit(epsilon=8.0, calibration="published"), "smooth-two", 300),
        "ldp bandit auxiliary": (
            d.LDPBandit(epsilon=4.0, auxiliary=other), "smooth-two", 200,
        ),
        "ldp bandit classes": (d.LDPBandit(epsilon=8.0, check_every=5), "classes", 200),
        "abse": (d.ABSE(), "smooth-two", 300),
        "abse lipschitz": (d.ABSE(lipschitz=2.0), "smooth", 300),
        "ldp linear": (d.LDPLinear(epsilon=4.0), "shared", 200),
        "ldp linear identity": (
            d.LDPLinear(epsilon=8.0, link="identity", intercept=False, warm_up=20), "shared", 200,
        ),
        "ldp linear smooth": (d.LDPLinear(epsilon=8.0, warm_up=20), "smooth-two", 200),
        "ldp linear auxiliary": (d.LDPLinear(epsilon=8.0, auxiliary=other), "smooth-two", 200),
    }  # fmt: skip


def _best_arm() -> dict[str, tuple[Any, str, int]]:
    return {
        "dpbai": (d.DPBAI(epsilon=2.0, features=FEATURES), "five", 200),
        "dpbai published": (d.DPBAI(epsilon=2.0, features=FEATURES, calibration="published"), "five", 200),
        "dpbai all": (d.DPBAI(epsilon=2.0, features=FEATURES, max_det=False), "five", 200),
        "dpbai gauss": (d.DPBAIGauss(epsilon=2.0, delta=1e-3, features=FEATURES), "five", 200),
        "dpbai gauss all": (
            d.DPBAIGauss(epsilon=2.0, delta=1e-3, features=FEATURES, max_det=False), "five", 200,
        ),
        "dpod": (d.DPOD(epsilon=2.0, features=FEATURES), "five", 200),
        "odlinbai": (d.ODLinBAI(features=FEATURES), "five", 200),
        "halving": (d.SequentialHalving(), "five", 200),
    }  # fmt: skip


def _mixtures() -> dict[str, tuple[Any, str, int]]:
    inner: dict[str, tuple[Any, str, int]] = {
        "ucb": (d.UCB(), "two", 150),
        "thompson": (d.Thompson(), "two", 120),
        "private ucb": (d.PrivateUCB(epsilon=1.0), "three", 150),
        "linucb": (d.LinUCB(noise_scale=0.5), "orthant", 150),
        "linpriv": (d.LinPriv(epsilon=1.0), "orthant", 150),
        "conse": (d.ConSE(), "contexts", 150),
        "dp conse": (d.DPConSE(epsilon=1.0), "contexts", 200),
        "elimination": (d.SuccessiveElimination(), "three", 200),
        "ldp bandit": (d.LDPBandit(epsilon=8.0), "smooth-two", 200),
        "halving": (d.SequentialHalving(), "five", 100),
    }
    found: dict[str, tuple[Any, str, int]] = {}
    for name, (design, place, horizon) in inner.items():
        try:
            found[f"mixture of {name}"] = (d.Mixture(design, exploration=0.3), place, horizon)
        except ai.errors.ParameterError:
            continue
    found["mixture decaying"] = (d.Mixture(d.UCB(), exploration=0.5, decay=0.3), "contexts", 150)
    return found


def design_logs() -> dict[str, Callable[[], Any]]:
    """Functions that make one log of every design, without variants whose logs say the same."""
    places = environments()

    def maker(design: Any, place: str, horizon: int) -> Callable[[], Any]:
        return lambda: design.run(places[place], horizon, rng=7)

    kept = {name: what for name, what in designs().items() if not any(word in name for word in VARIANTS)}
    return {name: maker(*what) for name, what in kept.items()}


def frame(n: int = 240) -> pd.DataFrame:
    """A trial of three arms with contexts, batches, units, and arms drawn by known probabilities."""
    rng = np.random.default_rng(5)
    x, site = rng.normal(size=n).round(3), rng.choice(["north", "south"], n)
    batch = np.arange(n) // (n // 4)
    share = np.column_stack([0.5 - 0.1 * batch, np.full(n, 0.3), 0.2 + 0.1 * batch])
    share = np.where((site == "north")[:, None], share, share[:, ::-1])
    arm = (rng.random(n)[:, None] > share.cumsum(axis=1)).sum(axis=1)
    mean = np.array([0.3, 0.5, 0.6])[arm] + 0.1 * (site == "north")
    return pd.DataFrame(
        {
            "arm": np.array(["a", "b", "c"])[arm],
            "y": (rng.random(n) < mean).astype(float),
            "amount": (mean + 0.3 * rng.normal(size=n)).round(4),
            "p": share[np.arange(n), arm],
            "pa": share[:, 0],
            "pb": share[:, 1],
            "pc": share[:, 2],
            "x": x,
            "site": site,
            "batch": batch,
            "unit": np.arange(n) // 3,
            "phase": np.where(batch == 0, "learning", "estimation"),
            "coin": batch == 0,
        }
    )


def foreign_logs() -> dict[str, Callable[[], Any]]:
    """Functions that make logs as other people have them."""
    every = {"propensities": {"a": "pa", "b": "pb", "c": "pc"}}
    one, bounded, seen = {"propensity": "p"}, {"reward_range": (0.0, 1.0)}, {"context": ["site", "x"]}
    pure = ai.PrivacyGuarantee(epsilon=0.1)
    unknown = dataclasses.replace(d.Uniform().record(), name="OurBandit", parameters={})
    options: dict[str, dict[str, Any]] = {
        "nothing known": {},
        "nothing known, bounded": bounded,
        "chosen arm's": one,
        "chosen arm's, bounded": one | bounded,
        "chosen arm's, contexts": one | seen,
        "all": every,
        "all, bounded": every | bounded,
        "all, contexts": every | seen | bounded,
        "all, one context": every | {"context": "site"},
        "contexts only": seen,
        "batches": {"batch": "batch"},
        "batches, all": every | {"batch": "batch"},
        "batches, contexts": every | seen | {"batch": "batch"},
        "units": every | {"unit": "unit"},
        "estimated": every | {"propensity_status": "estimated"},
        "estimated, contexts": every | seen | {"propensity_status": "estimated"},
        "context free": every | seen | {"context_free": True},
        "context bound": every | {"context_free": False},
        "context bound, unknown": {"context_free": False},
        "private": bounded | {"guarantee": pure},
        "private, adaptive rounds": bounded | one | {"guarantee": pure, "feedback_rounds": 60},
        "approximately private": bounded | {"guarantee": ai.PrivacyGuarantee(epsilon=0.1, delta=1e-5)},
        "zero private": bounded | {"guarantee": ai.PrivacyGuarantee(epsilon=0.0)},
        "unknown design": every | {"design": unknown},
        "named uniform": {"design": d.Uniform().record()},
        "named thompson": every | bounded | {"design": d.Thompson(floor=(0.5, 0.5)).record()},
        "named ucb": bounded | {"design": d.UCB().record()},
        "phases": every | bounded | seen | {"phase": "phase", "randomised": "coin"},
        "recommended": {"recommended": "c", "arms": ["a", "b", "c", "never"]},
        "turned": one | {"arms": ["c", "b", "a"], "unit": "unit", "batch": "batch"},
    }
    makers: dict[str, Callable[[], Any]] = {}
    for name, given in options.items():
        makers[name] = lambda given=given: ai.AdaptiveLog(
            frame(), action="arm", reward="y", **nested_options(given)
        )
        if name in ("nothing known", "all", "all, contexts", "batches, all", "units", "context free"):
            free = {key: value for key, value in given.items() if key != "reward_range"}
            makers[f"{name}, amounts"] = lambda free=free: ai.AdaptiveLog(
                frame(), action="arm", reward="amount", **free
            )
    return makers
