"""Every arm's outcome in every round, drawn before any design sees it, in plain NumPy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

UNITS = 200  # participants of the world of repeated units, in turn
DELAY = 100  # rounds between a choice and its outcome
LEAVES = 4
LEAF_MEANS = np.array([[0.3, 0.7], [0.5, 0.5], [0.5, 0.5], [0.7, 0.3]])


@dataclass(frozen=True)
class World:
    """Outcomes of some logs, shape (logs, rounds, arms), all in [0, 1].

    `means` and `deviations` are true, by arm; `units` are the participants of the rounds, `leaves` (logs,
    rounds) the contexts. An outcome is known `delay` rounds after its choice.
    """

    outcomes: np.ndarray
    means: np.ndarray
    deviations: np.ndarray
    units: np.ndarray | None = None
    leaves: np.ndarray | None = None
    delay: int = 0


def _zeros_and_ones(rng: np.random.Generator, shape: tuple[int, int, int], chance: np.ndarray) -> np.ndarray:
    return (rng.random(shape) < chance).astype(float)


def _binary(
    rng: np.random.Generator, shape: tuple[int, int, int], means: np.ndarray, delay: int = 0
) -> World:
    outcomes = _zeros_and_ones(rng, shape, means)
    return World(outcomes, means, np.sqrt(means * (1 - means)), delay=delay)


def _better(arms: int) -> np.ndarray:
    """Arm 1 is better by .1."""
    means = np.full(arms, 0.5)
    means[1] = 0.6
    return means


def _drift(rng: np.random.Generator, shape: tuple[int, int, int]) -> World:
    """Means of all arms rise together from .3 to .7."""
    _, rounds, arms = shape
    chance = 0.3 + 0.4 * (np.arange(rounds) + 0.5) / rounds
    outcomes = _zeros_and_ones(rng, shape, chance[None, :, None])
    return World(outcomes, np.full(arms, 0.5), np.full(arms, np.sqrt(np.mean(chance * (1 - chance)))))


def _units(rng: np.random.Generator, shape: tuple[int, int, int]) -> World:
    """Each participant has their own mean, Beta(2, 2), the same for every arm, and comes again in turn."""
    logs, rounds, arms = shape
    units = np.arange(rounds) % UNITS
    chance = rng.beta(2.0, 2.0, (logs, UNITS))[:, units, None]
    return World(_zeros_and_ones(rng, shape, chance), np.full(arms, 0.5), np.full(arms, 0.5), units=units)


def _skewed(rng: np.random.Generator, shape: tuple[int, int, int]) -> World:
    """Beta(.2, 1.8): mean .1, standard deviation .173, skewness 2.0."""
    arms = shape[2]
    return World(rng.beta(0.2, 1.8, shape), np.full(arms, 0.1), np.full(arms, np.sqrt(0.03)))


def _leaves(rng: np.random.Generator, shape: tuple[int, int, int]) -> World:
    """Which of two arms is better depends on the context; overall both have mean .5."""
    arms = shape[2]
    leaves = rng.integers(LEAVES, size=shape[:2])
    outcomes = _zeros_and_ones(rng, shape, LEAF_MEANS[leaves])
    return World(outcomes, np.full(arms, 0.5), np.full(arms, 0.5), leaves=leaves)


def with_leaves(world: World, rng: np.random.Generator) -> World:
    """The same outcomes, with contexts that tell nothing of them where it has none."""
    if world.leaves is not None:
        return world
    return replace(world, leaves=rng.integers(LEAVES, size=world.outcomes.shape[:2]))


def world(name: str, logs: int, rounds: int, arms: int, rng: np.random.Generator) -> World:
    """Outcomes of a world by its name."""
    shape = (logs, rounds, arms)
    if name in ("drift", "units", "skewed", "leaves"):
        return {"drift": _drift, "units": _units, "skewed": _skewed, "leaves": _leaves}[name](rng, shape)
    means = {"equal": 0.5, "tenth": 0.1, "rare": 0.02, "delay": 0.5}.get(name)
    if means is None and name != "better":
        raise ValueError(f"no such world: {name!r}")
    law = _better(arms) if means is None else np.full(arms, means)
    return _binary(rng, shape, law, DELAY if name == "delay" else 0)
