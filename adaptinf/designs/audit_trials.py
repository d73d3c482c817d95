"""Trials on which an audit recomputes a design's decisions from its releases, and tests their noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from adaptinf.simulation.environments import Environment
from adaptinf.simulation.transcripts import Transcripts, join_transcripts, sample_transcripts
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.designs.base import Design

FAIR = 0.5
"""Mean of rewards of 0 and 1 that a test of independence centres."""
_OUTSIDE = np.array([-3.0, 0.0, 0.25, 0.5, 1.0, 4.0])
"""Rewards of which some are clipped: their mean is 1/2 once they are."""


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """What runs showed, beside what their releases and earlier actions say it should have been.

    Shapes: seen, recomputed (runs, places).
    """

    what: str
    seen: Any
    recomputed: Any
    place: str = "round"


@dataclass(frozen=True, slots=True, eq=False)
class NodeNoise:
    """Noise of released numbers, each put through the distribution function that its promise needs.

    Where the promise holds, the entries of a run are independent and uniform on (0, 1), and independent of
    every reward. NaN where a run has no such number.

    Parameters
    ----------
    uniforms : ndarray of shape (runs, nodes)
        The noise.
    names : sequence of str
        Of the nodes.
    groups : ndarray of shape (nodes,)
        Nodes of one number are also tested as one sample: levels of a tree, say.
    group_names : sequence of str
        Of the groups.
    fair : ndarray of shape (runs, rewards)
        Rewards drawn by fair coins, less 1/2, to be independent of; none by default.
    fair_names : sequence of str
        Of these rewards.
    independent : bool
        Whether the nodes are independent of one another; with False their laws alone are tested.
    """

    uniforms: FloatArray
    names: Sequence[str]
    groups: IntArray
    group_names: Sequence[str]
    fair: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    fair_names: Sequence[str] = ()
    independent: bool = True


Replay = Callable[[Transcripts], tuple[Replayed, ...]]
Noise = Callable[[Transcripts], tuple[NodeNoise, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class AuditTrial:
    """A trial of a design, and how an audit looks at it.

    Parameters
    ----------
    words : str
        What is particular about the trial.
    environment : Environment
        Where it is run; rewards may leave the range that the design declares.
    horizon : int
        Its rounds.
    replay : callable, optional
        Recomputes, from the releases and actions of `Transcripts`, what the design decided.
    noise : callable, optional
        Takes `Transcripts` and returns the noise of what they release.
    design : Design, optional
        What is run, where it is not the audited design itself.
    """

    words: str
    environment: Environment
    horizon: int
    replay: Replay | None = None
    noise: Noise | None = None
    design: Design | None = None

    def sample(self, design: Design, runs: int, root: np.random.SeedSequence) -> Transcripts:
        """So many runs, with their rewards."""
        run = design if self.design is None else self.design
        pieces = sample_transcripts(run, self.environment, self.horizon, 0, runs, root, with_rewards=True)
        return join_transcripts(pieces)


@runtime_checkable
class Audited(Protocol):
    """A design that says on which trials, and how, an audit recomputes its decisions."""

    def audit_trials(self) -> tuple[AuditTrial, ...]:
        """Trials on which decisions are recomputed and noise is tested.

        Returns
        -------
        tuple of AuditTrial
            Among them longer ones than `neighbours` has, with rewards beyond the declared range, and with
            rewards by coins. Promised laws of noise are worked out from the parameters, not read off what the
            design draws.
        """


def trials_of(design: Design) -> tuple[AuditTrial, ...]:
    """Trials of a design; none where it does not say how its decisions follow from its releases."""
    return design.audit_trials() if isinstance(design, Audited) else ()


def laplace_uniforms(noise: FloatArray, scale: Any) -> FloatArray:
    """Distribution function of a centred Laplace variable of a scale, at its own value."""
    half = 0.5 * np.exp(-np.abs(noise) / scale)
    return np.asarray(np.where(noise < 0.0, half, 1.0 - half))


def outside_rewards(rounds: int, n_arms: int) -> FloatArray:
    """Rewards in and beyond [0, 1], in another order for every arm; shape (rounds, arms)."""
    steps = np.arange(rounds)[:, None] + 2 * np.arange(n_arms)
    return np.asarray(_OUTSIDE[steps % _OUTSIDE.size])
