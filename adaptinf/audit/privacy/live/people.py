"""Participants of live runs: what each is like, and would answer to every arm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.audit.privacy.designs.audited_trial import FAIR
from adaptinf.simulation.environment import Environment
from adaptinf.simulation.environments import Tableau
from adaptinf.typing import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class People:
    """Potential outcomes, and contexts where there are any.

    Shapes: rewards (rounds, arms), NaN where an outcome never comes; features (rounds,), codes below
    `n_features`; vectors (rounds, arms, dimension).
    """

    rewards: FloatArray
    features: IntArray | None = None
    n_features: int = 1
    vectors: FloatArray | None = None

    @property
    def rounds(self) -> int:
        """How many there are."""
        return len(self.rewards)

    def declared(self) -> dict[str, Any]:
        """What a session or a trial is told of them beforehand."""
        told: dict[str, Any] = {"arms": self.rewards.shape[1]}
        if self.vectors is not None:
            told |= {"dimension": self.vectors.shape[2], "per_arm": True}
        elif self.features is not None:
            told["features"] = self.n_features
        return told

    def context(self, step: int) -> Any:
        """What is known of one."""
        if self.vectors is not None:
            return self.vectors[step]
        return None if self.features is None else int(self.features[step])


def people_of(env: Tableau, horizon: int) -> People:
    """Those whose potential outcomes are given."""
    return People(env.tables(horizon).tableau[:horizon], *_contexts(env, horizon))


def with_coins(env: Environment, horizon: int, rounds: int, lost: float, rng: np.random.Generator) -> People:
    """The first of an environment, with outcomes 0 and 1 by fair coins; a share of them never comes."""
    rewards = np.asarray(rng.random((rounds, env.n_arms)) < FAIR, dtype=np.float64)
    rewards[rng.random(rounds) < lost] = np.nan
    features, n_features, vectors = _contexts(env, horizon)
    return People(
        rewards,
        None if features is None else features[:rounds],
        n_features,
        None if vectors is None else vectors[:rounds],
    )


def _contexts(env: Environment, horizon: int) -> tuple[IntArray | None, int, FloatArray | None]:
    """Codes of contexts and their number, or vectors of every arm."""
    tables = env.tables(horizon)
    if env.dimension:
        given = tables.vectors[:horizon].reshape(horizon, -1, env.dimension)
        return None, 1, np.broadcast_to(given, (horizon, env.n_arms, env.dimension))
    if not env.features:
        return None, 1, None
    return np.asarray(tables.tableau_features[:horizon], dtype=np.int64), env.n_features, None
