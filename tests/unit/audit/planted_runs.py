"""Short sessions and trials in which a fault shows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from adaptinf import Trial
from adaptinf.errors import AdaptinfWarning
from adaptinf.sessions import open_session

Given = Callable[[str, float], int]


class Noise:
    """Noise that is drawn from a seed, and every draw by its node."""

    def __init__(self, seed: int = 0) -> None:
        self.rng, self.drawn = np.random.default_rng(seed), dict[str, int]()

    def __call__(self, name: str, scale: float) -> int:
        self.drawn[name] = round(self.rng.laplace(scale=scale))
        return self.drawn[name]


def opened(design: Any, horizon: int, draw: Given | None, **declared: Any) -> Any:
    terms = (
        declared.get("arms", 2),
        declared.get("features"),
        declared.get("dimension"),
        declared.get("per_arm", False),
        declared.get("reward_range", (0.0, 1.0)),
    )
    return open_session(design, terms, horizon, declared.get("window"), 1, noise="release", draw=draw)


def lived(session: Any, rewards: Any, contexts: Any = None) -> Any:
    """All rounds of a session, each with its outcome at once; the log."""
    for step, reward in enumerate(rewards):
        decision = session.assign(context=None if contexts is None else contexts[step])
        session.record(decision.id, float(reward))
    return session.log()


def filed(place: Path, design: Any, rounds: int, rewards: Any) -> Trial:
    """A trial in a file, whose first rounds are over."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptinfWarning)  # the design has no coins of its own
        trial = Trial.create(place, design, arms=2, horizon=200, outcome_window=0)
    for step in range(rounds):
        decision = trial.assign(f"unit {step}", key=f"assign {step}")
        trial.record(decision.id, float(rewards[step]), key=f"record {step}")
    return trial


def coins(rounds: int, seed: int = 3) -> Any:
    return (np.random.default_rng(seed).random(rounds) < 0.5) * 1.0


def fair_trial(place: Path, design: Any, terms: Mapping[str, Any], seed: int = 0) -> Trial:
    """A trial that is full, to whose participants outcomes come by fair coins; terms as of `Trial.create`."""
    rng, n, features = np.random.default_rng(seed), terms["horizon"], terms.get("features")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptinfWarning)  # designs without coins of their own
        trial = Trial.create(place, design, **terms)
    contexts: list[Any] = [None] * n
    if features is not None:
        contexts = [features[code] for code in rng.integers(0, len(features), n)]
    elif "dimension" in terms:
        shape = (n, terms["arms"], terms["dimension"])
        contexts = list(rng.uniform(-1.0, 1.0, shape) / np.sqrt(terms["dimension"]))
    units = [f"unit {step}" for step in range(n)]
    for start in range(0, n, 50):
        part = slice(start, start + 50)
        made = trial.assign_many(units[part], contexts[part], keys=[f"assign {unit}" for unit in units[part]])
        rewards = (rng.random(len(made)) < 0.5).astype(float).tolist()
        keys = [f"record {unit}" for unit in units[part]]
        trial.record_many([decision.id for decision in made], rewards, keys=keys)
    return trial
