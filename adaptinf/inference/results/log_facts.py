"""The facts about a log that a result stores, and intervals that are too long to be informative."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.claims import Said, tables
from adaptinf.claims.logs.plans import OVERRIDDEN
from adaptinf.claims.logs.rows import ALIKE, COPIES
from adaptinf.claims.tables import LATE_COUNTED
from adaptinf.inference.distributions.references import (
    BinomialReference,
    EnclosedReference,
    NormalReference,
    Reference,
    StudentReference,
)
from adaptinf.inference.distributions.sample_shape import two_values
from adaptinf.inference.distributions.student_sums import BatchedReference
from adaptinf.inference.distributions.two_samples import DifferenceReference
from adaptinf.inference.results.estimand import Estimand
from adaptinf.log.dependence import alike_neighbours
from adaptinf.log.repeated_rows import copied_rows
from adaptinf.log.report import FIXED, Stopping
from adaptinf.log.stated_plans import overridden
from adaptinf.log.traits import LATE, LOOKS, UNPROMISED, WINDOW
from adaptinf.sums import Sums
from adaptinf.sums.cells import other_value
from adaptinf.texts import several
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.guarantee import PrivacyGuarantee
    from adaptinf.log import AdaptiveLog, PublicLog


@dataclass(frozen=True, slots=True, eq=False)
class ArmCounts:
    """Numbers of rounds and, if all rewards are 0 or 1, of events (rewards of 1) for each arm of a log.

    Both arrays have shape (K,).
    """

    arms: tuple[Any, ...]
    rounds: IntArray
    events: IntArray | None

    @classmethod
    def of(cls, log: AdaptiveLog | Sums) -> ArmCounts:
        """The counts of a log, which are computed only once."""
        if "counts" not in log.kept:
            log.kept["counts"] = _counts_of_sums(log) if isinstance(log, Sums) else _counts_of_rows(log)
        found: ArmCounts = log.kept["counts"]
        return found


def _counts_of_rows(log: AdaptiveLog) -> ArmCounts:
    arrays, rounds = log.arrays, log._rounds_by_arm()
    observed = slice(None) if arrays.observed is None else arrays.observed
    reward, action = arrays.recorded[observed], arrays.action[observed]
    # If some rewards are not 0 or 1, usually one of the first rows shows it, so these are checked first.
    if any(two_values(part) != (0.0, 1.0) for part in (reward[:1000], reward)):
        return ArmCounts(log.arms, rounds, None)
    return ArmCounts(log.arms, rounds, np.bincount(action, reward, log.n_arms).astype(np.int64))


def _counts_of_sums(sums: Sums) -> ArmCounts:
    count, first, squares = sums.cells.about(0.0).moments[0, :3]
    rounds = np.rint(sums._rounds_by_arm()).astype(np.int64)
    if other_value(first, squares) != 1.0 or np.any(first > count):
        return ArmCounts(sums.arms, rounds, None)
    return ArmCounts(sums.arms, rounds, np.rint(first.sum(axis=0)).astype(np.int64))


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The facts about its log that a result stores.

    Attributes
    ----------
    n_rounds : int
        Number of rounds in the log.
    design : str or None
        Name of the design that collected the log.
    guarantee : PrivacyGuarantee or None
        The guarantee that the design provides.
    noise : {"simulation", "release"} or None
        Source of the privacy noise.
    n_units : int or None
        Number of units, if some have several rounds; None if none has, or if errors are clustered by unit.
    stated : bool
        Whether the guarantee was stated by the person who created the log, rather than computed by a design.
    person : PrivacyGuarantee or None
        The guarantee for all rounds of a unit.
    auxiliary : tuple of PrivacyGuarantee
        The guarantees for participants of auxiliary logs, one per log.
    unpromised : tuple of str
        Reasons why there is no guarantee although the design has one.
    outcome : str
        The value that was assumed for outcomes after their window, in a table from releases.
    readings : tuple of str
        Sentences about how a reader processed the data, and about received arms and late outcomes.
    stopping : Stopping or None
        How the log's number of rounds was determined; None if it was fixed, or if there is no log.
    owner_only : bool
        Whether files about the log are readable only by their owner.
    spread : float
        Difference between the largest and the smallest reward, or width of the declared range. If the range
        is unknown, standard deviation of the rewards; NaN if this is not known either.
    ranged : bool
        Whether `spread` is a range.
    cautions : tuple of str
        Evidence against all results from the log, whatever the method.
    reward : str
        Name of the column of the rewards; empty if unknown.
    counts : ArmCounts or None
        Rounds and events of the arms; None if they are unknown, or if no guarantee covers them.
    """

    n_rounds: int
    design: str | None = None
    guarantee: PrivacyGuarantee | None = None
    noise: str | None = None
    n_units: int | None = None
    stated: bool = False
    person: PrivacyGuarantee | None = None
    auxiliary: tuple[PrivacyGuarantee, ...] = ()
    unpromised: tuple[str, ...] = ()
    outcome: str = ""
    readings: tuple[str, ...] = ()
    stopping: Stopping | None = None
    owner_only: bool = False
    spread: float = math.nan
    ranged: bool = True
    cautions: tuple[str, ...] = ()
    reward: str = ""
    counts: ArmCounts | None = None

    @property
    def longest(self) -> float:
        """Smallest length, in units of the rewards, of an uninformative interval; NaN if it is not known."""
        return self.spread * (RANGES if self.ranged else LONGEST)

    @classmethod
    def of(cls, log: AdaptiveLog | Sums, *, by_unit: bool = False, private: bool = False) -> LogFacts:
        """The facts about a log or sums; with `private`, only those that the guarantee covers."""
        if private:
            return cls.released(log)
        told = not isinstance(log, Sums) and (
            log._readings or log.arrays.received is not None or log.arrays.known is not None
        )
        traits = None if log.design is None else log.design.traits
        withdrawn = log.design is not None and UNPROMISED in log.design.parameters
        return cls(
            n_rounds=log.n_rounds,
            design=None if log.design is None else log.design.name,
            guarantee=log.guarantee,
            noise=log.noise,
            n_units=None if by_unit else _returning_units(log),
            stated=log.guarantee_source == "stated",
            person=None if log.guarantee is None else log.person_guarantee,
            auxiliary=() if traits is None or not traits.auxiliary else log.auxiliary_guarantees,
            unpromised=log.unpromised if withdrawn else (),
            readings=log.reading_notes if told and not isinstance(log, Sums) else (),
            stopping=_undecided(log),
            owner_only=log.owner_only,
            spread=_spread(log),
            ranged=not isinstance(log, Sums) or not math.isnan(_range_of_sums(log)),
            cautions=evidence_told(log),
            reward=_reward_name(log),
            counts=ArmCounts.of(log),
        )

    @classmethod
    def released(cls, log: AdaptiveLog | PublicLog | Sums, outcome: str = "") -> LogFacts:
        """The facts that a table from releases may show, which are the same for a log and its public part.

        `outcome` is the value assumed for late outcomes, if the table does not treat these as the design did.
        """
        late, reading = _late_told({} if log.design is None else log.design.parameters)
        return cls(
            n_rounds=log.n_rounds,
            design=None if log.design is None else log.design.name,
            guarantee=log.guarantee,
            noise=log.noise,
            stated=log.guarantee_source == "stated",
            person=log.declared_person_guarantee,
            auxiliary=log.auxiliary_guarantees,
            unpromised=log.unpromised,
            outcome=outcome or late,
            readings=(reading,) if reading and not outcome else (),
            stopping=_undecided(log, covered=True),
        )


def _undecided(log: AdaptiveLog | PublicLog | Sums, *, covered: bool = False) -> Stopping | None:
    """What the log states about its number of rounds, unless it was fixed; if `covered`, only if covered."""
    return None if log.stopping == FIXED else Stopping.of(log, covered=covered)


def _reward_name(log: AdaptiveLog | Sums) -> str:
    """The user's name for the column of rewards; empty for sums and for logs from designs."""
    names = {} if isinstance(log, Sums) else log._names or {}
    return next((str(own) for own, name in names.items() if name == "reward"), "")


def evidence_told(log: AdaptiveLog | Sums) -> tuple[str, ...]:
    """Evidence against all results from a log: repeated rows, and looks after which it was continued."""
    record = log.design
    passed = overridden(log) if record is not None and LOOKS in record.parameters else []
    told = [OVERRIDDEN(stage=look["stage"], decision=look["decision"]) for look in passed]
    return (*told, *copies_told(log))


def copies_told(log: AdaptiveLog | Sums) -> tuple[str, ...]:
    """Statements on repeated rows and dependent neighbouring rows; computed once and stored with the log.

    Sums cannot show either. Repeated stretches of rows would explain why neighbours are similar, so only the
    stretches are then reported.
    """
    if isinstance(log, Sums):
        return ()
    if "copies" not in log.kept:
        copies = copied_rows(log.arrays, log.units)
        log.kept["copies"] = copies, {} if copies or not _one_row_each(log) else alike_neighbours(log.arrays)
    copies, alike = log.kept["copies"]
    return (*([COPIES(**copies)] if copies else []), *([ALIKE(**alike)] if alike else []))


def _one_row_each(log: AdaptiveLog) -> bool:
    """Whether dependence between rows is neither declared by units nor expected because of contexts.

    Rounds of an arm have similar contexts if contexts determine the arm, and neighbouring rounds may also
    have similar contexts.
    """
    decided = log.context and log.adaptive is not False
    return not decided and _returning_units(log) is None


def _returning_units(log: AdaptiveLog | Sums) -> int | None:
    """Number of units if some have several rounds, otherwise None; counted once for each log."""
    if "returning units" not in log.kept:
        units = None if log.units is None else len(set(log.units.tolist()))
        log.kept["returning units"] = units if units is not None and units < log.n_rounds else None
    found: int | None = log.kept["returning units"]
    return found


def _spread(log: AdaptiveLog | Sums) -> float:
    """Range of the rewards, declared or observed, or standard deviation for sums with an unknown range."""
    if not math.isnan(declared := _declared(log)):
        return declared
    if isinstance(log, Sums):
        if not math.isnan(known := _range_of_sums(log)):
            return known
        count, first, squares = (float(part.sum()) for part in log.cells.moments[0, :3])
        return math.sqrt(max(squares / count - (first / count) ** 2, 0.0))
    reward = log.arrays.recorded
    return float(np.fmax.reduce(reward) - np.fmin.reduce(reward)) if len(reward) else math.nan


def _range_of_sums(sums: Sums) -> float:
    """Range of the rewards if it is declared, or if rewards take two values; otherwise NaN."""
    if not math.isnan(declared := _declared(sums)):
        return declared
    value = other_value(*sums.cells.about(0.0).moments[0, 1:3])
    return math.nan if value is None else abs(value)


def _declared(log: AdaptiveLog | Sums) -> float:
    """Width of the declared range of rewards; NaN if it is unbounded."""
    width = math.nan if log.reward_range is None else log.reward_range[1] - log.reward_range[0]
    return width if math.isfinite(width) else math.nan


def _late_told(parameters: Mapping[str, Any]) -> tuple[str, str]:
    """The value assumed for late outcomes, for the head and the notes of a table; empty without a window."""
    window, late = parameters.get(WINDOW), parameters.get(LATE)
    if window is None or late is None:
        return "", ""
    what = "success" if late == 0 else "the outcome"
    return f"within the window, late = {late:g}", LATE_COUNTED(window=window, late=late, what=what)


class StoppingFacts:
    """Facts about a table for a fixed number of rounds; `instead` lists valid alternatives."""

    def __init__(self, stopping: Stopping, instead: str) -> None:
        self.stopping = stopping
        self._values = {"rounds": stopping.counted, "instead": instead}

    @property
    def is_unstated(self) -> bool:
        """Whether the log does not state how its number of rounds was determined."""
        return self.stopping.said is None

    @property
    def stopped_by_hand(self) -> dict[str, str]:
        """The stated reason, if the trial was ended early."""
        by_hand = self.stopping.said == "data-chosen" and self.stopping.reason
        return {**self._values, "reason": self.stopping.shown_reason} if by_hand else {}

    @property
    def chosen_by_data(self) -> dict[str, str]:
        """Values for the claim, if the log states that the data determined the number of rounds."""
        by_data = self.stopping.said == "data-chosen" and not self.stopping.reason
        return self._values if by_data else {}

    @property
    def chosen_by_plan(self) -> dict[str, str]:
        """Values for the claim, if the log states that a planned rule determined the number of rounds."""
        return self._values if self.stopping.said == "planned" else {}


RANGES = 10.0
"""Smallest length, in ranges of the rewards, of an uninformative interval for a mean or a difference."""
LONGEST = 1e6
"""Smallest length of an uninformative interval in other units than ranges of the rewards."""
_OF_REWARDS = ("arm-mean", "contrast", "received-contrast", "cate", "interaction", "bin-mean")
_RELATIVE = ("lift", "ratio-lift")
_NOT_LONG = (NormalReference, StudentReference, BinomialReference, BatchedReference, DifferenceReference)
_WIDE = 0.02
"""Standard error, relative to these lengths, above which an interval may be too long if df is at least 1."""
_SHOWN = 5
USUAL = 0.05
"""One minus the level of the intervals to which notes on missing intervals refer."""


def meaningful(
    limits: FloatArray, estimands: Sequence[Estimand], longest: float, std_error: FloatArray
) -> FloatArray:
    """Limits, set to NaN for intervals that are too long to be informative; infinite ends are kept.

    Shapes: limits (k, 2), std_error (k,); returns (k, 2).

    The largest informative length is on the scale of the rewards for means, differences and values, in units
    of the control's mean for relative effects, and in standard errors for terms with other scales.
    """
    most = _lengths(estimands, longest, std_error)
    with np.errstate(invalid="ignore", over="ignore"):
        length = limits[:, 1] - limits[:, 0]
        long = np.isfinite(limits).all(axis=1) & (most > 0.0) & (length > most)
    return np.where(long[:, None], np.nan, limits)


def may_lack_meaning(
    reference: Reference, estimands: Sequence[Estimand], longest: float, std_error: FloatArray
) -> bool:
    """Whether some interval may be uninformative, which is checked before computing it; std_error (k,)."""
    if not isinstance(reference, _NOT_LONG):
        if not isinstance(reference, EnclosedReference):
            return True
        around = reference.enclosure(math.log(USUAL))
        known = np.isfinite(around).all()
        return not known or bool(np.isnan(meaningful(around, estimands, longest, std_error)).any())
    if not {one.kind for one in estimands}.isdisjoint(_RELATIVE):
        return True
    if isinstance(reference, StudentReference) and (reference.df < 1.0).any():
        return True
    # Estimands with a scale of their own are measured in standard errors, and no interval is that many of
    # them long.
    wide = std_error > _WIDE * longest
    return bool(wide.any()) and any(_of_rewards(estimands[k].kind) for k in np.flatnonzero(wide).tolist())


def without_meaning(
    limits: FloatArray,
    terms: Sequence[str],
    estimands: Sequence[Estimand],
    facts: LogFacts,
    std_error: FloatArray,
) -> tuple[str, ...]:
    """Notes on terms without an interval because it would be uninformative; shapes as in `meaningful`."""
    with np.errstate(invalid="ignore"):
        left = meaningful(limits, estimands, facts.longest, std_error)
    lacking = np.isnan(left[:, 0]) & ~np.isnan(limits[:, 0])
    if not lacking.any():
        return ()
    names = several([str(term) for term, one in zip(terms, lacking, strict=True) if one], _SHOWN)
    scale = _scale_of(estimands[int(np.argmax(lacking))].kind, facts)
    longest = RANGES if scale.claim is tables.OF_RANGE else LONGEST
    return (tables.TOO_LONG(terms=names, longest=int(longest), scale=scale),)


def _lengths(estimands: Sequence[Estimand], longest: float, std_error: FloatArray) -> FloatArray:
    """Length of the longest informative interval for each term, shape (k,)."""
    own = [
        LONGEST if one.kind in _RELATIVE else longest if _of_rewards(one.kind) else np.nan
        for one in estimands
    ]
    return np.where(np.isnan(own), LONGEST * std_error, own)


def _of_rewards(kind: str) -> bool:
    """Whether an estimand is on the scale of rewards."""
    return kind in _OF_REWARDS or kind.startswith("policy-")


def _scale_of(kind: str, facts: LogFacts) -> Said:
    """The name of the scale to which the lengths of intervals are compared."""
    if kind in _RELATIVE:
        return tables.OF_CONTROL()
    if not _of_rewards(kind) or math.isnan(facts.spread):
        return tables.OF_ERROR()
    return tables.OF_RANGE() if facts.ranged else tables.OF_REWARDS()
