"""Contents and metadata of a log: arrays, design, guarantee, noise and releases, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.guarantee import UNITS, PrivacyGuarantee
from adaptinf.log.report import STOPPINGS
from adaptinf.log.traits import DesignTraits, traits_problems
from adaptinf.log.validation.frame_columns import Findings, Label, label_key, plain_label
from adaptinf.parameters import COUNT, Count
from adaptinf.texts import unlisted
from adaptinf.typing import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class LogArrays:
    """The columns of a log as NumPy arrays, one entry per round.

    Attributes
    ----------
    action : ndarray of int64, shape (T,)
        Codes into the arms of the log.
    reward : ndarray of float64, shape (T,)
        Rewards, in the user's units.
    propensity : ndarray of float64, shape (T,), or None
        Probability of the chosen arm, given everything before the choice.
    propensities : ndarray of float64, shape (T, K), or None
        Probability of every arm.
    batch : ndarray of int64, shape (T,), or None
        Batch numbers 0, 1, 2, ... that never decrease.
    phase : ndarray of int64, shape (T,), or None
        Codes into the phases of the log.
    randomised : ndarray of bool, shape (T,), or None
        Rounds whose arm was drawn with fixed probabilities.
    context : dict of str to ndarray, shape (T,)
        Context columns by name.
    received : ndarray of int64, shape (T,), or None
        Codes of the arms that were received, if the log distinguishes them from the assigned ones in
        `action`.
    known : ndarray of int64, shape (T,), or None
        Number of rounds that had begun when the round's outcome became known, including the round itself: the
        choice of row ``known[t]``, counted from 0, was the first that it could affect.
    observation : ndarray of float64, shape (T,), or None
        Probability that the round's outcome is observed.
    outcomes : dict of str to ndarray of float64, shape (T,)
        Further outcomes by name, which the choice of the round's arm may have affected.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> from adaptinf.log import LogArrays
    >>> arrays = LogArrays(action=np.array([0, 1, 0]), reward=np.array([1.0, 0.0, 1.0]))
    >>> ai.AdaptiveLog.from_arrays(arrays, arms=("a", "b")).arms
    ('a', 'b')
    """

    action: IntArray
    reward: FloatArray
    propensity: FloatArray | None = None
    propensities: FloatArray | None = None
    batch: IntArray | None = None
    phase: IntArray | None = None
    randomised: BoolArray | None = None
    context: dict[str, NDArray[Any]] = field(default_factory=dict)
    received: IntArray | None = None
    known: IntArray | None = None
    observation: FloatArray | None = None
    outcomes: dict[str, FloatArray] = field(default_factory=dict)
    observed: ClassVar[BoolArray | None] = None
    """Rounds whose reward is observed, shape (T,); None if all are, as in a complete log."""

    @property
    def recorded(self) -> FloatArray:
        """Rewards, NaN if missing, of shape (T,)."""
        return self.reward

    def by_field(self) -> dict[str, Any]:
        """The columns by field; missing rewards are NaN."""
        names = [each.name for each in fields(self) if each.name != "reward"]
        return {**{name: getattr(self, name) for name in names}, "reward": self.recorded}


class IncompleteArrays(LogArrays):
    """The columns of a log with some missing rewards.

    Reading `reward` is refused, so no method mistakes missing values for numbers; methods that support
    missing rewards read `recorded` and `observed`.
    """

    __slots__ = ("_recorded",)
    _recorded: FloatArray

    @property
    def reward(self) -> FloatArray:
        """Refused: some rewards are missing."""
        count = int(np.count_nonzero(np.isnan(self._recorded)))
        raise InvalidForLog(
            "this use of rewards",
            f"{count:,} of {len(self._recorded):,} rewards are missing",
            (
                "ArmMeans and Contrast with estimator='aipw' (missing='drop', or 'observation')",
                "ArmMeans and Contrast with any estimator (missing='bounds')",
                "AdaptiveLog.filled, which replaces them with a number",
            ),
        )

    @reward.setter
    def reward(self, values: FloatArray) -> None:
        object.__setattr__(self, "_recorded", values)

    @property
    def observed(self) -> BoolArray:  # type: ignore[override]
        """Rounds whose reward is observed, shape (T,)."""
        return ~np.isnan(self._recorded)

    @property
    def recorded(self) -> FloatArray:
        """Rewards, NaN if missing, of shape (T,)."""
        return self._recorded

    def complete(self, reward: FloatArray) -> LogArrays:
        """The columns with other rewards, of shape (T,)."""
        return LogArrays(**{**self.by_field(), "reward": reward})

    def __repr__(self) -> str:
        return (
            f"IncompleteArrays({', '.join(f'{name}={value!r}' for name, value in self.by_field().items())})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _incomplete, (self.by_field(),)


def _incomplete(columns: dict[str, Any]) -> IncompleteArrays:
    """Arrays restored from a pickle."""
    return IncompleteArrays(**columns)


@dataclass(frozen=True, slots=True)
class DesignRecord:
    """Name and parameters of the design that produced a log.

    Attributes
    ----------
    name : str
        The design, such as ``"PrivateUCB"``.
    parameters : dict of str to object
        Its parameters as plain values: numbers, strings, None, arrays, and lists, tuples or dicts of these.
    traits : DesignTraits or None
        Its statements about itself. None if only the name is known, which determines nothing: rewards and
        contexts may then have affected the choice of arms.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.EpsilonGreedy(exploration=0.2)
    >>> log = design.run(ai.environments.BernoulliArms([0.2, 0.8]), horizon=100, rng=0)
    >>> log.design.name, log.design.parameters["exploration"]
    ('EpsilonGreedy', 0.2)
    """

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)
    traits: DesignTraits | None = None


RELEASE_COLUMNS = ("round", "name", "group", "value", "mechanism", "scale")
STATUSES = ("exact", "estimated", "absent")
BACKENDS = ("simulation", "release")


@dataclass(frozen=True, slots=True)
class Metadata:
    """A log's statements about itself, as given by the user or after checks."""

    guarantee: Any = None
    reward_guarantee: Any = None
    design: Any = None
    noise: Any = None
    releases: Any = None
    feedback_rounds: Any = None
    released_rounds: Any = None
    rounds_per_unit: Any = None
    guarantee_source: Any = None
    recommended: Any = None
    propensity_status: Any = None
    context_free: Any = None
    adaptive: Any = None
    stopping: Any = None
    missing: Any = None


METADATA = tuple(field.name for field in fields(Metadata) if field.name != "releases")
"""Attributes of a log copied from its metadata."""


def check_metadata(
    given: Metadata,
    *,
    n_rounds: int,
    arms: Sequence[Label],
    has_propensity: bool,
    units: NDArray[Any] | None,
    found: Findings,
) -> Metadata:
    """Checked metadata; all errors are recorded as problems. Shape units (T,)."""
    guarantee = _check_guarantee("guarantee", given.guarantee, found)
    reward_guarantee = _check_guarantee("reward_guarantee", given.reward_guarantee, found)
    if reward_guarantee is not None and reward_guarantee.unit != "reward":
        found.add("bad-guarantee", f"reward_guarantee must have unit 'reward', got {reward_guarantee.unit!r}")
    if given.noise is not None and not (isinstance(given.noise, str) and given.noise in BACKENDS):
        found.add("bad-noise", f"noise must be 'simulation', 'release' or None, got {given.noise!r}")
    design = _check_design(given.design, found)
    counts = _check_counts(given, n_rounds, units, found)
    return Metadata(
        guarantee=guarantee,
        reward_guarantee=reward_guarantee,
        design=design,
        noise=given.noise,
        releases=_check_releases(given.releases, found),
        **counts,
        guarantee_source=_check_source(given, found),
        recommended=_check_recommended(given.recommended, arms, found),
        propensity_status=_check_status(given.propensity_status, has_propensity, found),
        context_free=_check_truth("context_free", given.context_free, found),
        adaptive=_check_adaptive(given.adaptive, design, counts["feedback_rounds"], found),
        stopping=_check_stopping(given.stopping, found),
        missing=given.missing,
    )


def _check_guarantee(name: str, given: object, found: Findings) -> PrivacyGuarantee | None:
    if given is None or isinstance(given, PrivacyGuarantee):
        return given
    if not isinstance(given, Mapping):
        found.add(
            "bad-guarantee", f"{name} must be a PrivacyGuarantee or a dict of its fields, got {given!r}"
        )
        return None
    unit = given.get("unit", "reward")
    known = isinstance(unit, str) and unit in UNITS
    if not known:
        found.add(
            "unknown-guarantee-unit",
            f"{name} has the unit {unit!r}; it must be {' or '.join(map(repr, UNITS))}",
        )
    try:
        guarantee = PrivacyGuarantee.from_dict({**given, "unit": unit if known else "reward"})
    except ParameterError as error:
        for problem in error.problems:
            found.add("bad-guarantee", f"{name}: {problem}")
        return None
    except (TypeError, ValueError) as error:  # Some values cannot even be compared, such as arrays.
        found.add("bad-guarantee", f"{name} has fields of the wrong type: {error}")
        return None
    return guarantee if known else None


def _check_truth(name: str, given: object, found: Findings) -> bool | None:
    if given is None or isinstance(given, (bool, np.bool_)):
        return None if given is None else bool(given)
    found.add("bad-truth-value", f"{name} must be True, False or None, got {given!r}")
    return None


def _check_adaptive(
    given: object, design: DesignRecord | None, rounds: int | None, found: Findings
) -> bool | None:
    """Whether assignment reacted to outcomes, if stated; other statements must agree."""
    stated = _check_truth("adaptive", given, found)
    if stated is None:
        return None
    said = f"adaptive={stated} states that assignment {'adapted' if stated else 'did not adapt'} to outcomes"
    traits = None if design is None else design.traits
    if design is not None and isinstance(traits, DesignTraits) and traits.adapts is not stated:
        does = "does not adapt" if stated else "adapts"
        found.add(
            "contradicted-adaptive",
            f"{said}, but the design {design.name} states that it {does} (traits.adapts): omit the one that "
            "is wrong",
        )
    if rounds is not None and (rounds > 0) is not stated:
        found.add(
            "contradicted-adaptive",
            f"{said}, but feedback_rounds = {rounds} states that {rounds} rewards could change a later "
            "choice: omit the one that is wrong",
        )
    return stated


def _check_stopping(given: object, found: Findings) -> str | None:
    if given is None or (isinstance(given, str) and given in STOPPINGS):
        return given
    found.add("bad-stopping", unlisted("stopping", STOPPINGS, given))
    return None


def _check_design(given: object, found: Findings) -> DesignRecord | None:
    if isinstance(given, str):
        return DesignRecord(given)
    record = given.record() if callable(getattr(given, "record", None)) else given  # type: ignore[attr-defined]
    if record is not None and not isinstance(record, DesignRecord):
        found.add("bad-design", f"design must be a design, a DesignRecord or a name, got {given!r:.200}")
        return None
    said: tuple[Any, Any] = ("", {}) if record is None else (record.name, record.parameters)
    named = isinstance(said[0], str) and isinstance(said[1], dict)
    if not named or not all(isinstance(name, str) for name in said[1]):
        found.add("bad-design", f"design must have a name and parameters by name, got {given!r:.200}")
    if record is not None and record.traits is not None:
        for problem in traits_problems(record.traits):
            found.add("bad-design", f"design: {problem}")
    return record


def _check_releases(given: object, found: Findings) -> pd.DataFrame | None:
    if given is None:
        return None
    if not isinstance(given, (pd.DataFrame, Mapping)) or sorted(map(str, given)) != sorted(RELEASE_COLUMNS):
        found.add("bad-releases", f"releases must be a frame with the columns {', '.join(RELEASE_COLUMNS)}")
        return None
    try:
        releases = pd.DataFrame(given)[list(RELEASE_COLUMNS)].reset_index(drop=True)
    except ValueError as error:
        found.add("bad-releases", f"releases cannot be converted to a frame: {error}")
        return None
    for name, (test, what) in _RELEASE_VALUES.items():
        wrong = np.array([not test(value) for value in releases[name].tolist()], dtype=bool)
        found.add_rows("bad-releases", f"releases: {name} must be {what}", wrong)
    return releases


def _is_number(value: object, least: float = -np.inf) -> bool:
    # NaN means that a number is unknown; it passes, because every comparison with it is false.
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return real and not float(value) < least  # type: ignore[arg-type]


def _is_round(value: object) -> bool:
    return value is None or value is pd.NA or (_is_number(value, 0) and float(value) % 1 == 0)  # type: ignore[arg-type]


_RELEASE_VALUES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "round": (_is_round, "a whole number of at least 0, or None"),
    "name": (lambda value: isinstance(value, str), "a text"),
    "value": (_is_number, "a number"),
    "mechanism": (lambda value: isinstance(value, str), "a text"),
    "scale": (lambda value: _is_number(value, 0.0), "a number of at least 0"),
}


def _check_counts(
    given: Metadata, n_rounds: int, units: NDArray[Any] | None, found: Findings
) -> dict[str, int | None]:
    """Counts of rounds: those that can affect actions or releases, and the maximum for a unit."""
    rounds = Count(0, n_rounds)
    allowed = {"feedback_rounds": rounds, "released_rounds": rounds, "rounds_per_unit": COUNT}
    counts = {name: _check_count(name, getattr(given, name), one, found) for name, one in allowed.items()}
    adaptive, released, cap = counts.values()
    if adaptive is not None and released is not None and released < adaptive:
        found.add(
            "bad-released-rounds",
            f"released_rounds = {released} must be at least feedback_rounds = {adaptive}: a reward that "
            "affects an action counts towards both",
        )
    if cap is not None and units is None:
        found.add(
            "bad-rounds-per-unit", "rounds_per_unit requires unit=, the column that identifies participants"
        )
    elif cap is not None and len(units):  # type: ignore[arg-type]
        sizes = pd.Series(units).value_counts()
        if over := int((sizes > cap).sum()):
            units_told = "1 unit has" if over == 1 else f"{over} units have"
            found.add(
                "bad-rounds-per-unit",
                f"rounds_per_unit is {cap}, but {units_told} more (up to {sizes.iloc[0]})",
            )
    return counts


def _check_count(name: str, given: Any, allowed: Count, found: Findings) -> int | None:
    if given is None:
        return None
    problems = allowed(name, given)
    for problem in problems:
        found.add(f"bad-{name.replace('_', '-')}", problem)
    return None if problems else int(given)


def _check_source(given: Metadata, found: Findings) -> str | None:
    """Source of the guarantees: the person who states them, unless a design did."""
    if given.guarantee is None and given.reward_guarantee is None:
        return None
    if given.guarantee_source not in (None, "stated", "design"):
        source = given.guarantee_source
        found.add("bad-guarantee", f"guarantee_source must be 'stated' or 'design', got {source!r:.60}")
    return "stated" if given.guarantee_source is None else str(given.guarantee_source)


def _check_recommended(given: object, arms: Sequence[Label], found: Findings) -> Label | None:
    if given is None:
        return None
    label = plain_label(given)
    # If there are no arms, another problem has already been reported.
    if arms and (label is None or label_key(label) not in set(map(label_key, arms))):
        found.add("bad-recommended", unlisted("recommended", arms, given))
    return label


def _check_status(given: object, has_propensity: bool, found: Findings) -> str:
    default = "exact" if has_propensity else "absent"
    if given is None:
        return default
    if not isinstance(given, str) or given not in STATUSES:
        found.add("bad-propensity-status", unlisted("propensity_status", STATUSES, given))
        return default
    if (given == "absent") == has_propensity:
        state = "has" if has_propensity else "has no"
        found.add(
            "bad-propensity-status", f"propensity_status is {given!r}, but the log {state} propensities"
        )
    return given
