"""A log's statements about privacy besides its guarantee: its source, persons, auxiliary participants."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from typing import Any, Self

import pandas as pd
from numpy.typing import NDArray

from adaptinf.claims.logs import promises as claims
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log.report import Stopping
from adaptinf.log.traits import STOP_REASON, UNPROMISED, DesignTraits
from adaptinf.log.validation import DesignRecord, Label
from adaptinf.log.validation.metadata import METADATA, Metadata
from adaptinf.markup import described
from adaptinf.typing import FloatArray, IntArray

SOURCES = ("design", "stated")
"""The source of a guarantee: the design that computed it, or the person who created the log."""


class Promises:
    """Statements of a log about itself, and their implications for persons and auxiliary participants."""

    arms: tuple[Label, ...]
    reward_range: tuple[float, float] | None
    propensity_status: str
    guarantee: PrivacyGuarantee | None
    reward_guarantee: PrivacyGuarantee | None
    design: DesignRecord | None
    noise: str | None
    feedback_rounds: int | None
    released_rounds: int | None
    rounds_per_unit: int | None
    guarantee_source: str | None
    """``"design"`` if the design computed the guarantees, ``"stated"`` if they were entered by hand."""
    recommended: Label | None
    context_free: bool | None
    adaptive: bool | None
    """Whether assignment adapted to outcomes, if stated."""
    stopping: str | None
    """How the number of rounds was determined, if stated: one of `STOPPINGS`."""
    missing: str | None
    """The meaning of a missing reward, one of `MEANINGS`; None if no reward may be missing."""
    units: NDArray[Any] | None
    omitted: int = 0
    """Number of rounds omitted from a part of a log."""
    owner_only: bool = False
    """Whether only the owner may read files of the log: for a trial, or a log read from such a file."""

    def _promise(self, metadata: Metadata) -> None:
        """Store the statements; the guarantee for rewards follows from that for rounds unless given."""
        for name in METADATA:
            setattr(self, name, getattr(metadata, name))
        if self.reward_guarantee is None and self.guarantee is not None:
            self.reward_guarantee = self.guarantee.reward_level()

    @property
    def unpromised(self) -> tuple[str, ...]:
        """Reasons why the log has no guarantee although its design has one; empty if not applicable."""
        told = [] if self.design is None else self.design.parameters.get(UNPROMISED, [])
        return tuple(map(str, told)) if isinstance(told, (list, tuple)) else (str(told),)

    def unpromised_by(self, reason: str) -> Self:
        """The log without a guarantee, because part of it was chosen based on data not masked by noise."""
        if self.guarantee is None and not self.unpromised:
            return self
        made: Any = copy(self)
        made.guarantee = made.reward_guarantee = made.guarantee_source = None
        record = self.design or DesignRecord("unknown")
        told = {**record.parameters, UNPROMISED: [*self.unpromised, reason]}
        made.design, made.kept = replace(record, parameters=told), {}
        return made  # type: ignore[no-any-return]

    @property
    def adaptive_told(self) -> str:
        """The statement on whether assignment adapted to outcomes, printed after a design; or empty."""
        if self.adaptive is None:
            return ""
        return f"; {claims.ADAPTIVE(reacted='adapted' if self.adaptive else 'did not adapt')}"

    def stating(self, stopping: str) -> Self:
        """The log with a different statement on how its number of rounds was determined."""
        if self.stopping == stopping:
            return self
        made: Any = copy(self)
        made.stopping, made.kept = stopping, {}
        return made  # type: ignore[no-any-return]

    def stopped_by(self, reason: str) -> Self:
        """The log of a trial that ended before its horizon, with the reason."""
        made: Any = copy(self.stating("data-chosen"))
        record = self.design or DesignRecord("unknown")
        made.design = replace(record, parameters={**record.parameters, STOP_REASON: reason})
        made.kept = {}
        return made  # type: ignore[no-any-return]

    @property
    def stopping_told(self) -> tuple[str, ...]:
        """A printed line on how the number of rounds was determined; empty if not stated."""
        return () if self.stopping is None else (f"  stopping: {Stopping.of(self).told}",)

    @property
    def person_guarantee(self) -> PrivacyGuarantee | None:
        """The guarantee for a person with all of their rounds; None if units are not given or have one round.

        The guarantee refers to `rounds_per_unit` rounds if this number was declared. Otherwise, it refers to
        the largest number of rounds of any unit in the log, which depends on the data: if this number must
        not be disclosed, declare a cap instead.
        """
        return self._of_persons(self.guarantee)

    @property
    def declared_person_guarantee(self) -> PrivacyGuarantee | None:
        """The guarantee for a person if `rounds_per_unit` was declared; otherwise None."""
        return guarantee_of_person(self.guarantee, self.rounds_per_unit)

    @property
    def person_reward_guarantee(self) -> PrivacyGuarantee | None:
        """The guarantee for the rewards of all rounds of a person, with public contexts."""
        return self._of_persons(self.reward_guarantee)

    @property
    def auxiliary_guarantees(self) -> tuple[PrivacyGuarantee, ...]:
        """The guarantee for the participants of each auxiliary log, who reported before the trial began.

        The unit is the record, the model local and the notion standard: the actions of these participants are
        not among the trial's outputs.
        """
        return auxiliary_guarantees(None if self.design is None else self.design.traits)

    @property
    def promises(self) -> tuple[str, ...]:
        """Lines of text on persons, auxiliary participants, and what is not guaranteed."""
        person, auxiliary = self.person_guarantee, self.auxiliary_guarantees
        lines = [f"  no guarantee: {reason}" for reason in self.unpromised]
        if person is not None and person.rounds > 1:
            lines.append(f"  {claims.PERSON(guarantee=person)}")
        lines += [f"  auxiliary log {number}: {own}" for number, own in enumerate(auxiliary, 1)]
        return tuple(lines)

    def _rounds_by_arm(self) -> IntArray | FloatArray:
        """Rounds of each arm, shape (K,)."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return described(repr(self), self.arms, self._rounds_by_arm())

    def _of_persons(self, guarantee: PrivacyGuarantee | None) -> PrivacyGuarantee | None:
        most = self.rounds_per_unit
        if guarantee is None or (most is None and self.units is None):
            return None
        if most is not None:
            return guarantee_of_person(guarantee, most)
        most = most_rounds(self.units)
        if most == 1:
            return None
        grouped = guarantee.group(math.ceil(most / guarantee.rounds))
        return replace(grouped, reasons=(*grouped.reasons, claims.MOST_ROUNDS(most=most)))


def auxiliary_guarantees(traits: DesignTraits | None) -> tuple[PrivacyGuarantee, ...]:
    """The guarantee for the participants of each auxiliary log."""
    epsilons = () if traits is None else traits.auxiliary
    return tuple(PrivacyGuarantee(epsilon, unit="record", model="local") for epsilon in epsilons)


def guarantee_of_person(guarantee: PrivacyGuarantee | None, most: int | None) -> PrivacyGuarantee | None:
    """The guarantee for a person who may have this many rounds; None without a guarantee or a cap."""
    if guarantee is None or most is None:
        return None
    return guarantee.group(math.ceil(most / guarantee.rounds))


def most_rounds(units: NDArray[Any] | None) -> int:
    """The largest number of rounds for any unit; units has shape (T,)."""
    return 1 if units is None or not len(units) else int(pd.Series(units).value_counts().iloc[0])


def source_note(source: str | None) -> str:
    """The text that marks a guarantee not computed by a design."""
    return "; stated by the user, not derived" if source == "stated" else ""
