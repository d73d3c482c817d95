"""Many runs of a design kept as sums, and what the codes of its kernel mean."""

from __future__ import annotations

import dataclasses

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.texts import absent
from adaptinf.typing import FloatArray, IntArray


@dataclasses.dataclass(frozen=True, slots=True)
class Status:
    """What a status code of a kernel means."""

    phase: str
    randomised: bool


@dataclasses.dataclass(frozen=True, slots=True)
class ReleaseName:
    """What a release code of a kernel means: its name and the mechanism that made it private."""

    name: str
    mechanism: str


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Replications:
    """Many runs of a design in one environment, kept as sums.

    Attributes
    ----------
    tallies : ndarray of shape (replications, statuses, features, arms, 3)
        Counts, sums and sums of squares of the rewards, by status of the round.
    outcomes : ndarray of shape (replications, outcomes)
        What the design reported at the end of each run; columns by `outcome_names`.
    outcome_names : tuple of str
        Names of the columns of `outcomes`.
    statuses : tuple of Status
        What the second axis of `tallies` means; empty where a design has one kind of round.
    regret : ndarray of shape (replications,)
        Pseudo-regret of each run.
    contextual : bool
        Whether the environment has contexts.
    truth : ndarray of shape (features, arms)
        True mean reward of every cell.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.4, 0.6])
    >>> runs = ai.designs.UCB().replicate(arms, horizon=200, replications=640, rng=0)
    >>> runs.means.mean(axis=0).round(2), float(runs.regret.mean().round(1))
    (array([0.38, 0.59]), 10.0)
    """

    tallies: FloatArray
    outcomes: FloatArray
    outcome_names: tuple[str, ...]
    statuses: tuple[Status, ...]
    regret: FloatArray
    contextual: bool
    truth: FloatArray

    def __repr__(self) -> str:
        features, arms = self.truth.shape
        contexts = f" in {features} contexts" if self.contextual else ""
        return (
            f"<Replications: {self.regret.size:,} runs of {arms} arms{contexts}, "
            f"mean regret {self.regret.mean():.6g}>"
        )

    def _cells(self, part: int) -> FloatArray:
        cells: FloatArray = self.tallies[..., part].sum(axis=1)
        return cells if self.contextual else cells[:, 0]

    @property
    def pulls(self) -> FloatArray:
        """Pulls, of shape (replications, arms) or (replications, features, arms)."""
        return self._cells(0)

    @property
    def sums(self) -> FloatArray:
        """Sums of rewards, of the shape of `pulls`."""
        return self._cells(1)

    @property
    def means(self) -> FloatArray:
        """Sample means, of the shape of `pulls`; NaN where an arm was never pulled."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.sums / np.where(self.pulls > 0, self.pulls, np.nan), dtype=np.float64)

    @property
    def released(self) -> dict[str, FloatArray]:
        """Released numbers by name, each of shape (replications, features)."""
        groups: dict[str, list[int]] = {}
        for column, name in enumerate(self.outcome_names):
            groups.setdefault(name, []).append(column)
        return {name: self.outcomes[:, columns] for name, columns in groups.items()}

    @property
    def recommended(self) -> IntArray:
        """Position of the arm that each run named at its end, shape (replications,); -1 where none."""
        if "recommended" not in self.outcome_names:
            raise ParameterError("recommended", ["only best-arm designs name an arm at the end"])
        named = self.released["recommended"][:, 0]
        return np.where(np.isnan(named), -1.0, named).astype(np.int64)

    def phase_tallies(self, phase: str, randomised: bool | None = None) -> FloatArray:
        """Counts, sums and squares of the rounds of a phase.

        Parameters
        ----------
        phase : str
            Name of the phase.
        randomised : bool, optional
            Keep only randomised (True) or other (False) rounds.

        Returns
        -------
        ndarray of shape (replications, features, arms, 3)
            Tallies of those rounds.
        """
        keep = [
            code
            for code, status in enumerate(self.statuses)
            if status.phase == phase and randomised in (None, status.randomised)
        ]
        if not keep:
            known = sorted({status.phase for status in self.statuses})
            raise ParameterError("phase_tallies", [absent("phase", phase, known)])
        return np.asarray(self.tallies[:, keep].sum(axis=1), dtype=np.float64)
