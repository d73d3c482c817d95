"""Differential-privacy guarantees as values: what is protected, how strongly, and how they combine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from adaptinf.errors import GuaranteeError, ParameterError
from adaptinf.parameters import COUNT, OneOf, check, refuse

UNITS = ("reward", "record")
MODELS = ("central", "local")
NOTIONS = ("standard", "anticipating")

_CHOICES = {"unit": UNITS, "model": MODELS, "notion": NOTIONS}
_TERMS = (*_CHOICES, "rounds")
_FIELDS = ("epsilon", "delta", "unit", "model", "notion", "reasons", "rounds")
_PARTITIONS = ("participants", "epochs", "arms", "contexts")
_LARGEST_EXPONENT = 700.0  # exp overflows at about 709.


@dataclass(frozen=True, slots=True)
class PrivacyGuarantee:
    """An (epsilon, delta) differential-privacy guarantee, and what it covers.

    Parameters
    ----------
    epsilon : float
        Privacy loss in nats, at least 0. ``math.inf`` means that there is no guarantee.
    delta : float
        Failure probability in [0, 1]; 0 is pure differential privacy.
    unit : {"reward", "record"}
        The unit in which neighbouring data sets differ: one round's potential rewards (with public contexts),
        or one participant's whole record, that is, context and potential rewards. Records are replaced, never
        removed.
    model : {"central", "local"}
        Whether a trusted curator adds the noise, or each participant does.
    notion : {"standard", "anticipating"}
        Whether the joint distribution of all outputs is protected, or of all outputs except the participant's
        own action (including earlier outputs).
    reasons : tuple of str
        Explanations of the numbers, if needed.
    rounds : int
        Number of units in which neighbours may differ: 1, or the maximum number of rounds of a person, as set
        by `group`.

    Raises
    ------
    ParameterError
        If a field is out of range; the message lists every problem.

    Notes
    -----
    The guarantee covers the actions and the named releases. The guarantee does not cover the raw log, the
    propensities, or estimates computed from the raw log. A participant who returns is covered as described in
    `group`.

    Coverage depends on the notion. Under the anticipating notion, a participant's own action is *not*
    covered: a published column of actions shows everyone's own action, and under a design whose choices
    depend on the context, it may reveal the context. A participant is protected against everyone who sees the
    releases and the actions of others.

    A standard record-level guarantee implies a standard reward-level guarantee. An anticipating record-level
    guarantee does not imply one: let the first action be a fair coin and the second the coin xor the first
    reward. The second action alone contains no information about that reward, but both actions together
    reveal it.

    References
    ----------
    Dwork, C., McSherry, F., Nissim, K. and Smith, A. (2006). Calibrating noise to sensitivity in private data
    analysis.

    Examples
    --------
    >>> import adaptinf as ai
    >>> half = ai.PrivacyGuarantee(epsilon=0.5)
    >>> print(half.compose(half))
    epsilon = 1, pure, per reward, central, standard
    """

    epsilon: float
    delta: float = 0.0
    unit: str = "reward"
    model: str = "central"
    notion: str = "standard"
    reasons: tuple[str, ...] = ()
    rounds: int = 1

    def __post_init__(self) -> None:
        problems = [
            *_number_problems("epsilon", self.epsilon, math.inf),
            *_number_problems("delta", self.delta, 1.0),
            *_choice_problems(self),
            *_reason_problems(self.reasons),
            *COUNT("rounds", self.rounds),
        ]
        refuse("PrivacyGuarantee", problems)
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))
        object.__setattr__(self, "reasons", tuple(self.reasons))
        object.__setattr__(self, "rounds", int(self.rounds))

    @property
    def is_pure(self) -> bool:
        """Whether delta is 0 and epsilon is finite."""
        return self.delta == 0.0 and math.isfinite(self.epsilon)

    @property
    def protects(self) -> str:
        """Description of how neighbours differ: by the unit, or by a person and the unit of each round."""
        if self.rounds == 1:
            return self.unit
        return f"person with at most {self.rounds} rounds ({self.unit})"

    def group(self, m: int) -> PrivacyGuarantee:
        """Guarantee for a person who participates in at most m rounds.

        Parameters
        ----------
        m : int
            Maximum number of rounds per person, 1 or more. The maximum must be a cap that is fixed in
            advance, because the maximum that *actually occurred* depends on the data; which rounds belong to
            which person is public.

        Returns
        -------
        PrivacyGuarantee
            A guarantee with parameters m epsilon and delta (e^(m epsilon) - 1) / (e^epsilon - 1), which is m
            delta at epsilon = 0; the delta is capped at 1. The `rounds` of the result is m times that of this
            guarantee.

        Raises
        ------
        ParameterError
            If m is not a positive whole number.

        Notes
        -----
        Change the m rounds one at a time: P_0(A) <= e^epsilon P_1(A) + delta <= ... <= e^(m epsilon) P_m(A) +
        delta (1 + e^epsilon + ... + e^((m - 1) epsilon)). The chain P_m(A) = 0, P_(i - 1)(A) = e^epsilon
        P_i(A) + delta on two outcomes attains this delta as long as P_1(A) <= (1 - delta) / (1 + e^epsilon),
        so no smaller delta holds for every mechanism. The delta of a particular mechanism may be smaller, for
        example with normal noise. A delta of at least one half is useless, whether or not it is attained.

        Under the anticipating notion, each step compares all outputs except one of the person's own actions,
        so the chain compares all outputs except all m of them. In the local model, each of the m reports is
        private on its own, and the chain holds unchanged.

        Examples
        --------
        >>> import adaptinf as ai
        >>> print(ai.PrivacyGuarantee(1.0, 1e-5).group(10))
        epsilon = 10, delta = 0.128, per person with at most 10 rounds (reward), central, standard
        """
        check("PrivacyGuarantee.group", m=(m, COUNT))
        epsilon = self.epsilon * m
        return replace(
            self, epsilon=epsilon, delta=_group_delta(self.epsilon, self.delta, m), rounds=self.rounds * m
        )

    def compose(self, *others: PrivacyGuarantee) -> PrivacyGuarantee:
        """Guarantee of this and the other mechanisms run on the same data: see `sequential`."""
        return sequential(self, *others)

    def postprocess(self) -> PrivacyGuarantee:
        """Guarantee for anything computed from the protected outputs, which is unchanged.

        Notes
        -----
        Under the anticipating notion, "the protected outputs" for a participant exclude that participant's
        own action: a function that uses it is not post-processing.
        """
        return self

    def reward_level(self) -> PrivacyGuarantee | None:
        """Standard guarantee for the rewards of one round that this one implies, or None.

        Returns
        -------
        PrivacyGuarantee or None
            This guarantee with unit ``"reward"`` if the notion is standard; None if it is anticipating,
            because it then implies nothing about the joint distribution of all outputs.
        """
        if self.notion != "standard":
            return None
        return self if self.unit == "reward" else replace(self, unit="reward")

    def to_dict(self) -> dict[str, Any]:
        """Plain values that can be stored as JSON; an infinite epsilon becomes the string ``"inf"``.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import math
        >>> ai.PrivacyGuarantee(epsilon=math.inf).to_dict()["epsilon"]
        'inf'
        """
        return {
            "epsilon": self.epsilon if math.isfinite(self.epsilon) else "inf",
            "delta": self.delta,
            "unit": self.unit,
            "model": self.model,
            "notion": self.notion,
            "reasons": list(self.reasons),
            "rounds": self.rounds,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PrivacyGuarantee:
        """Guarantee from the output of `to_dict`; every field except epsilon has a default.

        Raises
        ------
        ParameterError
            If epsilon is missing, a field is unknown or a value is out of range.
        """
        problems = [
            f"unknown field {key!r}; known: {', '.join(_FIELDS)}" for key in values if key not in _FIELDS
        ]
        if "epsilon" not in values:
            problems.append("epsilon is missing")
        refuse("PrivacyGuarantee", problems)
        fields = dict(values)
        if fields["epsilon"] == "inf":
            fields["epsilon"] = math.inf
        return cls(**fields)

    def __str__(self) -> str:
        if math.isinf(self.epsilon):
            strength = "epsilon = inf, no guarantee"
        elif self.delta == 0.0:
            strength = f"epsilon = {self.epsilon:.6g}, pure"
        else:
            strength = f"epsilon = {self.epsilon:.6g}, delta = {self.delta:.3g}"
        return f"{strength}, per {self.protects}, {self.model}, {self.notion}"


def sequential(*guarantees: PrivacyGuarantee) -> PrivacyGuarantee:
    """Guarantee of several mechanisms run on the same data: epsilon and delta add up.

    A later mechanism may be chosen from the outputs of earlier ones. Under the anticipating notion, a later
    mechanism must not use the participant's own action, which the earlier outputs exclude.
    """
    _check_combinable("sequential", guarantees)
    return replace(
        guarantees[0],
        epsilon=math.fsum(g.epsilon for g in guarantees),
        delta=min(1.0, math.fsum(g.delta for g in guarantees)),
        reasons=_distinct_reasons(guarantees),
    )


def parallel(*guarantees: PrivacyGuarantee, over: str) -> PrivacyGuarantee:
    """Guarantee of several mechanisms if each record enters only one: the largest epsilon and delta.

    Parameters
    ----------
    *guarantees : PrivacyGuarantee
        The guarantee of each mechanism, with independent noise.
    over : {"participants", "epochs", "arms", "contexts"}
        What determines which mechanism a record enters. The mechanism must be determined before the record is
        read, by public data, earlier releases and fresh coins:

        ``"participants"``: a partition of the participants that is fixed in advance. ``"epochs"``: series of
        rounds, each with new statistics, whose ends are fixed or determined by earlier releases, never by raw
        counts or rewards. ``"arms"``: a reward enters the counter of the arm that was pulled, counters
        advance with the pulls of their own arm, and arms are chosen using only actions, releases and coins.
        ``"contexts"``: groups defined by a public context.

    Raises
    ------
    ParameterError
        If no guarantee is given, or the partition is unknown.
    GuaranteeError
        If the guarantees have different terms, or the partition is not valid for them.

    Notes
    -----
    For arms, fix a sequence of actions. This sequence determines which reward enters which counter, whatever
    the rewards are, and its occurrence is a condition on the counters' releases: one reward changes the input
    of one counter, and hence the probability by a factor of at most e^epsilon. The argument is pointwise in
    the sequence, which requires delta = 0: with positive delta, the actions form an adaptive stream (Denisov
    et al.: such a stream does no harm with normal noise, which must be shown for each design).

    A record's own context does not define a public partition. Records are replaced, so a record with a
    different context leaves one group and enters another: the cost is the sum of the two largest epsilons.

    A person with several rounds may contribute to several mechanisms. Compose the guarantees of single
    rounds, then apply `group`.

    References
    ----------
    Denisov, S., McMahan, B., Rush, K., Smith, A. and Thakurta, A. (2022). Improved differential privacy for
    SGD via optimal private linear operators on adaptive streams.

    Examples
    --------
    >>> from adaptinf.guarantee import PrivacyGuarantee, parallel
    >>> by_arm = PrivacyGuarantee(epsilon=0.5)
    >>> parallel(by_arm, by_arm, over="arms").epsilon
    0.5
    >>> by_group = PrivacyGuarantee(epsilon=1.0, unit="record")
    >>> parallel(by_group, by_group, over="contexts")
    Traceback (most recent call last):
        ...
    adaptinf.errors.GuaranteeError: parallel composition over contexts: a record is replaced together with \
    its context, and so leaves one group and enters another: the mechanisms jointly have epsilon = 2 (the \
    sum of the two largest)
    """
    check("parallel composition", over=(over, OneOf(*_PARTITIONS)))
    _check_combinable("parallel", guarantees)
    if len(guarantees) > 1 and (reason := _no_partition(guarantees, over)):
        raise GuaranteeError(f"parallel composition over {over}: {reason}")
    return replace(
        guarantees[0],
        epsilon=max(g.epsilon for g in guarantees),
        delta=max(g.delta for g in guarantees),
        reasons=_distinct_reasons(guarantees),
    )


def _no_partition(guarantees: Sequence[PrivacyGuarantee], over: str) -> str:
    """The reason why a record may enter several mechanisms; empty if it enters only one."""
    if guarantees[0].rounds > 1:
        return (
            "a person with several rounds may contribute to several mechanisms; combine the guarantees for "
            "single rounds, then use group(m)"
        )
    if over == "contexts" and guarantees[0].unit == "record":
        largest = sum(sorted(g.epsilon for g in guarantees)[-2:])
        return (
            "a record is replaced together with its context, and so leaves one group and enters another: "
            f"the mechanisms jointly have epsilon = {largest:.6g} (the sum of the two largest)"
        )
    if over == "arms" and guarantees[0].unit == "record":
        return (
            "the context in a record may determine its arm; state the cost of a record, or only the "
            "guarantee for rewards, unit='reward'"
        )
    if over == "arms" and any(g.delta > 0.0 for g in guarantees):
        return (
            "the argument is pointwise in the actions and requires delta = 0; for normal noise on adaptive "
            "streams, prove it for the mechanism as a whole"
        )
    return ""


def _group_delta(epsilon: float, delta: float, m: int) -> float:
    """Delta of a chain of m neighbours: delta (e^(m epsilon) - 1) / (e^epsilon - 1), at most 1."""
    if delta == 0.0 or m == 1:
        return delta
    if epsilon == 0.0:
        return min(1.0, m * delta)
    if m * epsilon < _LARGEST_EXPONENT:
        return min(1.0, delta * (math.expm1(m * epsilon) / math.expm1(epsilon)))
    if math.isinf(epsilon):
        return 1.0
    # Beyond this point, e^(m epsilon) - 1 equals e^(m epsilon) in doubles.
    log_delta = math.log(delta) + (m - 1) * epsilon - math.log(-math.expm1(-epsilon))
    return 1.0 if log_delta >= 0.0 else math.exp(log_delta)


def _check_combinable(how: str, guarantees: Sequence[PrivacyGuarantee]) -> None:
    if not guarantees:
        raise ParameterError(f"{how} composition", ["at least one guarantee is needed"])
    differing = [
        f"{name} ({' and '.join(map(repr, values))})"
        for name in _TERMS
        if len(values := list(dict.fromkeys(getattr(g, name) for g in guarantees))) > 1
    ]
    if differing:
        raise GuaranteeError(
            f"{how} composition: the guarantees differ in {', '.join(differing)} and cannot be combined; "
            "state each of them separately, or convert them to the same terms first"
        )


def _distinct_reasons(guarantees: Sequence[PrivacyGuarantee]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reason for g in guarantees for reason in g.reasons))


def _number_problems(name: str, value: object, highest: float) -> list[str]:
    bound = "0 or more (math.inf is allowed)" if math.isinf(highest) else f"between 0 and {highest:g}"
    if isinstance(value, bool) or not isinstance(value, Real):
        return [f"{name} must be a number {bound}, got {value!r}"]
    # NaN fails both comparisons, so it is refused as well.
    return [] if 0.0 <= float(value) <= highest else [f"{name} must be {bound}, got {value!r}"]


def _choice_problems(guarantee: PrivacyGuarantee) -> list[str]:
    return [
        f"{name} must be {' or '.join(map(repr, allowed))}, got {getattr(guarantee, name)!r:.60}"
        for name, allowed in _CHOICES.items()
        if not isinstance(getattr(guarantee, name), str) or getattr(guarantee, name) not in allowed
    ]


def _reason_problems(reasons: object) -> list[str]:
    if isinstance(reasons, (list, tuple)) and all(isinstance(reason, str) for reason in reasons):
        return []
    return [f"reasons must be a tuple of strings, got {reasons!r}"]
