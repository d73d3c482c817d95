"""Results of runs: the log of one run, sums over many runs, and the meaning of a kernel's codes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import AdaptiveLog, DesignRecord, DesignTraits, LogArrays
from adaptinf.log.traits import (
    ADDED,
    AMENDED,
    IN_TIME,
    IN_TIME_NAMES,
    LATE,
    PLANNED,
    REMOVED,
    SWITCHED,
    UNPROMISED,
    WINDOW,
)
from adaptinf.log.validation.column_checks import check_sizes
from adaptinf.log.validation.frame_columns import FAULTS, Findings, label_array
from adaptinf.sessions.steppers import SENSITIVITY
from adaptinf.simulation.environment import Environment
from adaptinf.simulation.replicate import Run
from adaptinf.texts import absent
from adaptinf.typing import FloatArray, IntArray


@dataclasses.dataclass(frozen=True, slots=True)
class Status:
    """Meaning of a kernel's status code."""

    phase: str
    randomised: bool


@dataclasses.dataclass(frozen=True, slots=True)
class ReleaseName:
    """Meaning of a kernel's release code: its name and the mechanism that made it private."""

    name: str
    mechanism: str


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Replications:
    """Many runs of a design in one environment, stored as sums.

    Attributes
    ----------
    tallies : ndarray of shape (replications, statuses, features, arms, 3)
        Counts, sums and sums of squares of the rewards, by status of the round.
    outcomes : ndarray of shape (replications, outcomes)
        Values that the design reported at the end of each run; columns given by `outcome_names`.
    outcome_names : tuple of str
        Names of the columns of `outcomes`.
    statuses : tuple of Status
        Meaning of the second axis of `tallies`; empty if a design has only one kind of round.
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
        """Pulls, with shape (replications, arms) or (replications, features, arms)."""
        return self._cells(0)

    @property
    def sums(self) -> FloatArray:
        """Sums of rewards, with the shape of `pulls`."""
        return self._cells(1)

    @property
    def means(self) -> FloatArray:
        """Sample means, with the shape of `pulls`; NaN if an arm was never pulled."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.sums / np.where(self.pulls > 0, self.pulls, np.nan), dtype=np.float64)

    @property
    def released(self) -> dict[str, FloatArray]:
        """Released numbers keyed by name, each with shape (replications, features)."""
        groups: dict[str, list[int]] = {}
        for column, name in enumerate(self.outcome_names):
            groups.setdefault(name, []).append(column)
        return {name: self.outcomes[:, columns] for name, columns in groups.items()}

    @property
    def recommended(self) -> IntArray:
        """Position of the arm that each run recommended at its end, or -1; shape (replications,)."""
        if "recommended" not in self.outcome_names:
            raise ParameterError("recommended", ["only best-arm designs recommend an arm at the end"])
        named = self.released["recommended"][:, 0]
        return np.where(np.isnan(named), -1.0, named).astype(np.int64)

    def phase_tallies(self, phase: str, randomised: bool | None = None) -> FloatArray:
        """Counts, sums and sums of squares for the rounds of a phase.

        Parameters
        ----------
        phase : str
            Name of the phase.
        randomised : bool, optional
            Keep only randomised (True) or other (False) rounds.

        Returns
        -------
        ndarray of shape (replications, features, arms, 3)
            The tallies of the selected rounds.
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


_BY_HAND = "arms were {} by hand, possibly by someone who had seen outcomes"
_BY_VERSION = (
    "a version that decides differently took over, possibly by a choice of someone who had seen outcomes"
)


def log_of(
    design: Any,
    run: Run,
    env: Environment,
    horizon: int,
    guarantee: PrivacyGuarantee | None,
    reward_guarantee: PrivacyGuarantee | None,
) -> AdaptiveLog:
    """The log of the completed rounds of a design that was planned for `horizon` rounds."""
    record = run.record
    phases = tuple(dict.fromkeys(status.phase for status in design.statuses))
    changes = (("removed", run.removed), ("added", run.added))
    by_hand = [_BY_HAND.format(done) for done, arms in changes if arms]
    by_hand += [_BY_VERSION] if run.switched else []
    unpromised = [] if guarantee is None else by_hand
    if _changes(run):  # Whoever changed arms may have seen outcomes, which no guarantee of the design covers.
        guarantee = reward_guarantee = None
    log = AdaptiveLog.from_arrays(
        _arrays(design, run, env, phases),
        arms=env.arms,
        phases=phases,
        reward_range=env.reward_range,
        propensity_status="exact" if record.propensities.shape[1] else "absent",
        guarantee=guarantee,
        reward_guarantee=reward_guarantee,
        design=_record(design, run, env, horizon, unpromised),
        noise=run.noise if guarantee is not None and guarantee.epsilon > 0.0 else None,
        releases=_releases(design, run, env, horizon),
        feedback_rounds=_feedback_rounds(design, run),
        released_rounds=_released_rounds(design, run),
        guarantee_source="design",
        recommended=design._recommended(run, env),
        stopping=_stopping(design, run, horizon),
        missing=run.missing,
    )
    log.units, log._outcome_rounds = run.units, run.known
    return log


def _stopping(design: Any, run: Run, horizon: int) -> str | None:
    """How the number of rounds was determined; None while participants may still arrive."""
    outputs = design.traits.outputs
    if outputs is not None and outputs.length == "releases":
        return "planned"
    return "fixed" if run.record.action.size == horizon else None


def _releases(design: Any, run: Run, env: Environment, horizon: int) -> dict[str, Any] | None:
    """Columns of the design's releases, and of timely sums if there are any."""
    own: dict[str, Any] | None = None
    if run.released.shape[0]:
        own = design._releases(run.released, env, horizon)
    if run.in_time is None or run.in_time_epsilon is None:
        return own
    counted = env.n_arms
    added: dict[str, Any] = {
        "round": np.full(2 * counted, horizon),
        "name": np.repeat(np.array(IN_TIME_NAMES, dtype=object), counted),
        "group": label_array([*env.arms, *env.arms]),
        "value": run.in_time.T.reshape(-1),
        "mechanism": np.full(2 * counted, "laplace", dtype=object),
        "scale": np.full(2 * counted, SENSITIVITY / run.in_time_epsilon),
    }
    if own is None:
        return added
    joined = {name: np.concatenate([own[name], added[name]]) for name in added if name != "group"}
    labels = [*np.asarray(own["group"]).tolist(), *added["group"].tolist()]
    return {name: label_array(labels) if name == "group" else joined[name] for name in added}


def release_columns(
    released: FloatArray, names: Sequence[str], groups: Sequence[Any], mechanisms: Sequence[str]
) -> dict[str, Any]:
    """Columns of the releases written by a kernel, with one mechanism for all names or one for each."""
    codes = released[:, 1].astype(np.int64)
    by_name = mechanisms if len(mechanisms) > 1 else [*mechanisms] * len(names)
    return {
        "round": released[:, 0].astype(np.int64),
        "name": np.array(names, dtype=object)[codes],
        "group": label_array(groups)[released[:, 2].astype(np.int64)],
        "value": released[:, 3],
        "mechanism": np.array(by_name, dtype=object)[codes],
        "scale": released[:, 4],
    }


def check_run(run: Run) -> None:
    """Refuse rewards of a run that would be refused in a data frame."""
    reward, found = run.record.reward, Findings()
    what = "the environment's reward"
    found.add_rows("infinite-reward", f"{what} {FAULTS['infinite']}", np.isinf(reward))
    check_sizes(reward, what, found)
    found.raise_if_any("the run")


def _feedback_rounds(design: Any, run: Run) -> int | None:
    """Rounds whose reward can change a later action, and so must be known before the last choice."""
    rounds = run.record.action.size
    most = _at_least(design._feedback_rounds(run, rounds), _last_change(run))
    return most if most is None or run.known is None else min(most, int((run.known < rounds).sum()))


def _released_rounds(design: Any, run: Run) -> int | None:
    """Rounds whose reward can change a release or a later action; all if timely outcomes are counted."""
    rounds = run.record.action.size
    if run.in_time_epsilon is not None:
        return rounds
    return _at_least(design._released_rounds(run, rounds), _last_change(run))


def _changes(run: Run) -> tuple[tuple[Any, int], ...]:
    """Arms removed or added by hand, and changes of version, each with the number of rounds before it."""
    return (*run.removed, *run.added, *run.switched)


def _last_change(run: Run) -> int:
    """Number of rounds before the last change by hand that was followed by a choice; 0 if there was none."""
    rounds = run.record.action.size
    return max((before for _, before in _changes(run) if before < rounds), default=0)


def _at_least(counted: int | None, least: int) -> int | None:
    return counted if counted is None else max(counted, least)


def _record(design: Any, run: Run, env: Environment, horizon: int, unpromised: list[str]) -> DesignRecord:
    """A log's record of its design, and of its collection if that differed from an ordinary run."""
    record: DesignRecord = design.record()
    told: dict[str, Any] = {}
    if run.record.action.size < horizon:
        told[PLANNED] = horizon
    if run.window is not None:
        told |= {WINDOW: run.window, LATE: run.late}
    if run.in_time_epsilon is not None:
        told[IN_TIME] = run.in_time_epsilon
    if run.amended:
        told[AMENDED] = run.amended
    if run.removed:
        told[REMOVED] = [[env.arms[code], before] for code, before in run.removed]
    if run.added:
        told[ADDED] = [[env.arms[code], before] for code, before in run.added]
    if run.switched:
        told[SWITCHED] = list(map(list, run.switched))
    if _changes(run):
        record = replace(record, traits=_by_hand(record.traits))
    if unpromised:
        told[UNPROMISED] = unpromised
    return replace(record, parameters={**record.parameters, **told}) if told else record


def _by_hand(traits: DesignTraits | None) -> DesignTraits | None:
    """Traits of a design whose arms were changed: rewards may be the reason, and no floor holds."""
    if traits is None:
        return None
    return replace(traits, adapts=True, floor=None, stability=None, outputs=None)


def _arrays(design: Any, run: Run, env: Environment, phases: tuple[str, ...]) -> LogArrays:
    record = run.record
    phase = randomised = None
    if statuses := design.statuses:
        phase = np.array([phases.index(status.phase) for status in statuses])[record.status]
        randomised = np.array([status.randomised for status in statuses])[record.status]
    context: dict[str, Any] = dict(zip(env.vector_names, record.vectors.T, strict=False))
    if env.features:
        coded = env.features == tuple(range(env.n_features))
        context[str(env.context_name)] = (
            record.feature if coded else label_array(env.features)[record.feature]
        )
    return LogArrays(
        action=record.action,
        reward=record.reward,
        propensity=record.propensity if record.propensities.shape[1] else None,
        propensities=record.propensities if record.propensities.shape[1] else None,
        batch=_batches(design, run, env),
        phase=phase,
        randomised=randomised,
        context=context,
        outcomes=dict(run.outcomes),
        known=run.known,
    )


def _batches(design: Any, run: Run, env: Environment) -> Any:
    """Batch number of each round, or None; changing the arms within a batch starts a new batch."""
    rounds = run.record.action.size
    batch = design._batches(rounds, env.n_arms)
    if batch is None or not _changes(run):
        return batch
    cuts = np.zeros(rounds, dtype=bool)
    cuts[1:] = batch[1:] != batch[:-1]
    cuts[[before for _, before in _changes(run) if before < rounds]] = True
    return np.cumsum(cuts)
