"""The max-information correction that a log's guarantee permits, and the choices of a test that it covers.

A test whose choice depends on the actions depends on at most n = `feedback_rounds` rewards. A test whose
choice also depends on the releases depends on at most `released_rounds` rewards. Each design defines these
numbers in its own file, and its logs store them; if a log has no such numbers, every round is counted.
"""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from adaptinf.claims.privacy import max_information as claims
from adaptinf.errors import InvalidForLog
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.corrections.information import (
    CHOSEN_FROM,
    COUNTED_UNIT,
    ChosenFrom,
    Correction,
    CountedUnit,
    guarantee_refusal,
)
from adaptinf.parameters import check


class GuaranteedLog(Protocol):
    """The parts of a log that a correction requires."""

    @property
    def reward_guarantee(self) -> PrivacyGuarantee | None:
        """The guarantee for the rewards of one round."""

    @property
    def feedback_rounds(self) -> int | None:
        """Number of rounds whose reward can change a later action."""

    @property
    def released_rounds(self) -> int | None:
        """Number of rounds whose reward can change a release or a later action."""

    @property
    def n_rounds(self) -> int:
        """Number of rounds."""

    @property
    def units(self) -> NDArray[Any] | None:
        """Participants' identifiers, shape (T,)."""

    @property
    def person_reward_guarantee(self) -> PrivacyGuarantee | None:
        """The guarantee for the rewards of all rounds of a person."""


def correction_for(
    log: GuaranteedLog, *, chosen_from: ChosenFrom = "actions", unit: CountedUnit = "round"
) -> Correction | None:
    """The correction that a log's guarantee permits, or None, in which case `why_not` gives the reason.

    Parameters
    ----------
    log : AdaptiveLog
        The data.
    chosen_from : {"actions", "releases"}
        Information, apart from contexts, on which the choice of the test depends; the terms, the null and the
        centre are all part of the test. Accordingly, n is the number of rounds whose reward can change a
        later action, or the number of those whose reward can change a later action or a release. If the log
        does not state these numbers, n is the number of all rounds.
    unit : {"round", "person"}
        The independent units. If the unit is the person, epsilon is that of all rounds of a person, and n is
        the number of persons. The test must then be valid under any dependence within persons, and one
        person's rounds must not affect another's. The tests of `ArmMeans`, `Contrast` and `AdaptiveOLS` are
        not valid in this sense, so supply your own p-value.

    Returns
    -------
    Correction or None
        The correction; its `apply` takes logarithms of p-values.

    Raises
    ------
    ParameterError
        If an argument is not one of the allowed values.
    InvalidForLog
        If the unit is the person, but the log has no `unit=` or no finite pure guarantee for persons.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.5, 0.5])
    >>> log = ai.designs.PrivateUCB(epsilon=0.1).run(arms, horizon=300, rng=0)
    >>> ai.correction_for(log).n, ai.correction_for(log, chosen_from="releases").n
    (299, 300)
    """
    check("correction_for", chosen_from=(chosen_from, CHOSEN_FROM), unit=(unit, COUNTED_UNIT))
    if unit == "person":
        return _by_person(log, chosen_from)
    guarantee = log.reward_guarantee
    if guarantee is None or guarantee_refusal(guarantee):
        return None
    n = log.feedback_rounds if chosen_from == "actions" else log.released_rounds
    return Correction(
        guarantee.epsilon, int(log.n_rounds if n is None else n), guarantee, chosen_from=chosen_from
    )


def _by_person(log: GuaranteedLog, chosen_from: ChosenFrom) -> Correction:
    """Correction by person, valid for any design: one person affects the actions by at most their epsilon."""
    subject, ways = "a correction by person", ["AdaptiveLog(..., unit=)", "unit='round'"]
    if log.units is None:
        raise InvalidForLog(
            subject, "the log does not record which rounds belong to the same participant", ways
        )
    guarantee = log.person_reward_guarantee or log.reward_guarantee
    if (reason := why_not(log)) or guarantee is None:
        raise InvalidForLog(subject, reason, ways)
    persons = len(set(log.units.tolist()))
    return Correction(guarantee.epsilon, persons, guarantee, chosen_from=chosen_from, unit="person")


def why_not(log: GuaranteedLog) -> str:
    """The reason why a log has no max-information correction; empty if it has one."""
    if log.reward_guarantee is None:
        return claims.NOT_STATED()
    return guarantee_refusal(log.reward_guarantee)
