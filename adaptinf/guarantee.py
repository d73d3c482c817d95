"""Differential-privacy guarantees as values: what is protected, how strongly, and how parts add up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from adaptinf.errors import GuaranteeError, ParameterError
from adaptinf.parameters import refuse

UNITS = ("reward", "record")
MODELS = ("central", "local")
NOTIONS = ("standard", "anticipating")

_CHOICES = {"unit": UNITS, "model": MODELS, "notion": NOTIONS}
_FIELDS = ("epsilon", "delta", "unit", "model", "notion", "reasons")


@dataclass(frozen=True, slots=True)
class PrivacyGuarantee:
    """An (epsilon, delta) differential-privacy guarantee, and what it covers.

    Parameters
    ----------
    epsilon : float
        Privacy loss, in nats; 0 or more. ``math.inf`` says that nothing is guaranteed.
    delta : float
        Failure probability in [0, 1]; 0 is pure differential privacy.
    unit : {"reward", "record"}
        What neighbouring data sets may differ in: one round's potential rewards (contexts are public), or one
        participant's whole record, context and potential rewards. Records are replaced, never removed.
    model : {"central", "local"}
        A trusted curator adds the noise, or each participant does.
    notion : {"standard", "anticipating"}
        Whether the joint law of all outputs is protected, or of all outputs except the participant's own
        action (earlier outputs included).
    reasons : tuple of str
        Why the numbers are what they are, where that needs saying.

    Raises
    ------
    ParameterError
        Listing every field that is out of range.

    Notes
    -----
    The guarantee covers the actions and the named releases. It covers neither the raw log, nor propensities,
    nor an estimate that was computed from the raw log. A participant who returns m times pays m times.

    Standard record-level implies standard reward-level. Anticipating record-level does not: let the first
    action be a fair coin and the second one the coin xor the first reward. The second action alone says
    nothing about that reward; the pair reveals it.

    References
    ----------
    Dwork, C., McSherry, F., Nissim, K. and Smith, A. (2006). Calibrating noise to sensitivity in private data
    analysis.

    Examples
    --------
    >>> half = PrivacyGuarantee(epsilon=0.5)
    >>> print(half)
    epsilon = 0.5, pure, per reward, central, standard
    >>> print(half.compose(half))
    epsilon = 1, pure, per reward, central, standard
    >>> print(parallel(half, PrivacyGuarantee(epsilon=0.2)))
    epsilon = 0.5, pure, per reward, central, standard
    """

    epsilon: float
    delta: float = 0.0
    unit: str = "reward"
    model: str = "central"
    notion: str = "standard"
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        problems = [
            *_number_problems("epsilon", self.epsilon, math.inf),
            *_number_problems("delta", self.delta, 1.0),
            *_choice_problems(self),
            *_reason_problems(self.reasons),
        ]
        refuse("PrivacyGuarantee", problems)
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))
        object.__setattr__(self, "reasons", tuple(self.reasons))

    @property
    def is_pure(self) -> bool:
        """Whether delta is 0 and epsilon finite."""
        return self.delta == 0.0 and math.isfinite(self.epsilon)

    def compose(self, *others: PrivacyGuarantee) -> PrivacyGuarantee:
        """Guarantee of this and the others run on the same data: see `sequential`."""
        return sequential(self, *others)

    def postprocess(self) -> PrivacyGuarantee:
        """Guarantee of anything computed from the protected outputs: the same one.

        Notes
        -----
        Under the anticipating notion, "the protected outputs" of a participant leave out that participant's
        own action: a function that reads it is no post-processing.
        """
        return self

    def reward_level(self) -> PrivacyGuarantee | None:
        """Standard guarantee for one round's rewards that this one implies, or None.

        Returns
        -------
        PrivacyGuarantee or None
            This guarantee with unit ``"reward"`` where the notion is standard; None where it is anticipating,
            because nothing about the joint law of all outputs follows from it.
        """
        if self.notion != "standard":
            return None
        return self if self.unit == "reward" else replace(self, unit="reward")

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON; an infinite epsilon becomes the string ``"inf"``.

        Examples
        --------
        >>> PrivacyGuarantee(epsilon=math.inf).to_dict()["epsilon"]
        'inf'
        """
        return {
            "epsilon": self.epsilon if math.isfinite(self.epsilon) else "inf",
            "delta": self.delta,
            "unit": self.unit,
            "model": self.model,
            "notion": self.notion,
            "reasons": list(self.reasons),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PrivacyGuarantee:
        """Guarantee from what `to_dict` returned; every field but epsilon has its default.

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
        return f"{strength}, per {self.unit}, {self.model}, {self.notion}"


def sequential(*guarantees: PrivacyGuarantee) -> PrivacyGuarantee:
    """Guarantee of several mechanisms run on the same data: epsilon and delta add up.

    A later mechanism may be chosen from the outputs of earlier ones. Under the anticipating notion it may not
    read the participant's own action, which those outputs leave out.
    """
    _check_combinable("sequential", guarantees)
    return replace(
        guarantees[0],
        epsilon=math.fsum(g.epsilon for g in guarantees),
        delta=min(1.0, math.fsum(g.delta for g in guarantees)),
        reasons=_distinct_reasons(guarantees),
    )


def parallel(*guarantees: PrivacyGuarantee) -> PrivacyGuarantee:
    """Guarantee of several mechanisms run on disjoint participants or arms: the largest epsilon and delta.

    Over arms this needs counters with independent noise, each clocked by its own pulls, and an arm choice
    that reads rewards through those counters only. It is then pointwise in the action sequence for delta = 0;
    for delta > 0 on adaptive streams it is proved for Gaussian noise.

    Denisov, S., McMahan, B., Rush, K., Smith, A. and Thakurta, A. (2022). Improved differential privacy for
    SGD via optimal private linear operators on adaptive streams.
    """
    _check_combinable("parallel", guarantees)
    return replace(
        guarantees[0],
        epsilon=max(g.epsilon for g in guarantees),
        delta=max(g.delta for g in guarantees),
        reasons=_distinct_reasons(guarantees),
    )


def _check_combinable(how: str, guarantees: Sequence[PrivacyGuarantee]) -> None:
    if not guarantees:
        raise ParameterError(f"{how} composition", ["at least one guarantee is needed"])
    differing = [
        f"{name} ({' and '.join(map(repr, values))})"
        for name in _CHOICES
        if len(values := list(dict.fromkeys(getattr(g, name) for g in guarantees))) > 1
    ]
    if differing:
        raise GuaranteeError(
            f"{how} composition: the guarantees differ in {', '.join(differing)} and cannot be combined; "
            "state each of them separately, or bring them to the same terms first"
        )


def _distinct_reasons(guarantees: Sequence[PrivacyGuarantee]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reason for g in guarantees for reason in g.reasons))


def _number_problems(name: str, value: object, highest: float) -> list[str]:
    bound = "0 or more (math.inf is allowed)" if math.isinf(highest) else f"between 0 and {highest:g}"
    if isinstance(value, bool) or not isinstance(value, Real):
        return [f"{name} must be a number {bound}, got {value!r}"]
    # NaN fails both comparisons.
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
