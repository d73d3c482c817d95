"""What designs say of single steps, and the session that takes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from adaptinf.sessions import Session, open_session
from adaptinf.sessions.releasing import ExactSums
from adaptinf.typing import RandomSource


class Stepwise:
    """What can be used step by step.

    Subclasses say which outcomes may be pending when an arm is chosen: none ("last"), any ("any"), or those
    of a public window ("window"); where context vectors must lie: "any", the unit "ball", the unit "cube"; as
    which reward an outcome counts that never comes, None where there is no rule for that; and what the stream
    and the place are that name a node of exact noise, None where there is none, for a reason.
    """

    pending: ClassVar[str] = "last"
    domain: ClassVar[str] = "any"
    lost: ClassVar[float | None] = None
    lost_unsaid: ClassVar[float | None] = None
    """As which reward one counts in trials whose file does not say; None where that never changed."""
    nodes: ClassVar[tuple[str, str] | None] = None
    inexact: ClassVar[str] = "it promises no privacy, or draws its noise only in its own kernels"

    def largest_scale(self, horizon: int, n_arms: int) -> float:
        """Largest scale of a node of exact noise, for rewards of width 1.

        Parameters
        ----------
        horizon, n_arms : int
            Rounds of the trial, and number of arms.

        Returns
        -------
        float
            Infinite where there is no exact noise.
        """
        return math.inf

    def exact_sums(self, horizon: int, n_arms: int) -> ExactSums | None:
        """What makes noisy sums in whole numbers outside of the kernels; None where kernels make them.

        Parameters
        ----------
        horizon, n_arms : int
            Rounds of the trial, and number of arms.
        """
        return None

    def longest_window(self, horizon: int) -> float:
        """The longest window that outcomes can have, in rounds.

        Parameters
        ----------
        horizon : int
            Rounds of the trial.

        Returns
        -------
        float
            Infinite where any will do.
        """
        return math.inf

    def session(
        self,
        arms: int | Sequence[Any],
        horizon: int,
        *,
        features: int | Sequence[Any] | None = None,
        dimension: int | None = None,
        per_arm: bool = False,
        reward_range: tuple[float, float] = (0.0, 1.0),
        window: int | None = None,
        in_time: float | None = None,
        rng: RandomSource | None = None,
        noise: str = "simulation",
    ) -> Session:
        """Use the design step by step, on participants who arrive one at a time.

        Parameters
        ----------
        arms : list of labels, or int
            The arms; a number stands for 0, 1, ...
        horizon : int
            The most rounds there can be. Guarantees hold for this many.
        features : list of labels, or int, optional
            Contexts that can arrive.
        dimension : int, optional
            Length of context vectors, in their place.
        per_arm : bool
            Whether each arm has a context vector of its own.
        reward_range : (float, float)
            Smallest and largest possible reward, declared beforehand.
        window : int, optional
            For private designs whose outcomes come late: the outcome of a round enters after `window` further
            rounds, whenever it comes, and counts as 0 if it is not there then.
        in_time : float, optional
            With `window`: release each arm's successes and failures that were in time as well, when the last
            window has ended, at so much privacy beside the design's. It must be asked for beforehand, and
            contexts must have no part in the choice. `ArmMeans.fit("released")` reads them.
        rng : int, SeedSequence, Generator or None
            Source of the coins, and of simulated noise.
        noise : {"simulation", "release"}
            Where privacy noise comes from. Simulated noise is not private, and the log says so. ``"release"``
            is exact noise of OpenDP, which is never seeded, on rewards rounded to a grid of 2^20 units.

        Returns
        -------
        Session
            With `assign`, `record` and `log`. On the same rewards and contexts it makes the choices of `run`
            with the same `rng`, where `run` takes these from a `Tableau`.

        Raises
        ------
        ParameterError
            Listing everything that does not fit, and for ``noise="release"`` why a design has no exact noise.
        MissingDependencyError
            If OpenDP is needed and not installed.
        """
        declared = arms, features, dimension, per_arm, reward_range
        return open_session(self, declared, horizon, window, rng, noise=noise, in_time=in_time)
