"""External participants: the declarations made in advance, and the data of each participant."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.log.validation.frame_columns import alike_labels, label_key
from adaptinf.parameters import BOOLEAN, COUNT, OrNone, number_array, problems_of, refuse
from adaptinf.simulation.environment import Environment, environment_tables, reward_range_problems
from adaptinf.simulation.environments.context_frames import arm_problems
from adaptinf.simulation.run import GIVEN, IN_ORDER, TABLEAU, EnvironmentTables
from adaptinf.spelling import told_apart
from adaptinf.texts import shown, unlisted
from adaptinf.typing import FloatArray

_ROUNDING = 1e-9
_NORMS = {"ball": 1.0, "cube": math.inf, "any": math.inf}


def plain(value: Any) -> Any:
    """A NumPy scalar as the corresponding Python value."""
    return value.item() if isinstance(value, np.generic) else value


class Participants(Environment):
    """An environment without random draws: contexts and rewards are recorded, one participant at a time.

    Raises ParameterError with the given problems and those found.
    """

    def __init__(
        self,
        arms: int | Sequence[Any],
        features: int | Sequence[Any] | None,
        dimension: int | None,
        per_arm: bool,
        reward_range: tuple[float, float],
        domain: str,
        problems: Sequence[str] = (),
    ) -> None:
        self.arms, found = _labels("arms", arms)
        problems = [*problems, *found]
        self.features: tuple[Any, ...] = ()
        if features is not None:
            self.features, further = _labels("features", features)
            problems += further
        problems += problems_of(dimension=(dimension, OrNone(COUNT)), per_arm=(per_arm, BOOLEAN))
        if features is not None and dimension is not None:
            problems.append("contexts are labels from features= or vectors of length dimension=, not both")
        if per_arm is True and dimension is None:
            problems.append("per_arm=True requires dimension=, the length of an arm's context vector")
        problems += reward_range_problems(reward_range)
        refuse("session", problems)
        self.dimension, self.shared, self.domain = int(dimension or 0), not per_arm, domain
        self.reward_range = (float(reward_range[0]), float(reward_range[1]))
        self.context_name = "feature" if self.features else None
        self.context_norm = _NORMS[domain] if self.dimension else 0.0
        coordinates = range(1, self.dimension + 1)
        self.vector_names = tuple(f"x{k}" for k in coordinates)
        if per_arm:
            self.vector_names = tuple(f"x{k}_{arm}" for arm in self.arms for k in coordinates)
        self.probabilities = np.full((1, self.n_features), 1.0 / self.n_features)
        self.means = np.full((self.n_features, self.n_arms), np.nan)
        self._codes = {label_key(label): code for code, label in enumerate(self.features)}
        self._blank = environment_tables(
            TABLEAU,
            self.means,
            arrivals=self.probabilities,
            tableau=(np.zeros((0, self.n_arms)), np.zeros(0, np.int64)),
            theta=np.zeros((self.n_arms, self.dimension)) if self.dimension else None,
            vector_law=IN_ORDER,
            shared=self.shared,
            vectors=np.zeros((0, self.n_arms * self.dimension)) if self.dimension else None,
            mean_law=GIVEN,
        )

    @property
    def law(self) -> int:
        """Rewards that are given."""
        return TABLEAU

    def tables(self, horizon: int) -> EnvironmentTables:
        """Tables without any rounds, from which nothing is drawn."""
        return self._blank

    def read(self, context: Any) -> FloatArray:
        """A context in the form used by kernels, with shape (1,) or (arms * dimension,)."""
        if self.features:
            return np.array([float(self._code(context))])
        if self.dimension:
            return self._vector(context)
        if context is not None:
            problem = "the session has no contexts: open it with features= or dimension="
            raise ParameterError("assign", [problem])
        return np.zeros(1)

    def blank(self) -> FloatArray:
        """Placeholder for a context that is no longer known."""
        if self.features:
            return np.array([-1.0])
        return np.full(self.n_arms * self.dimension, np.nan) if self.dimension else np.zeros(1)

    def arm_code(self, subject: str, arm: Any) -> int:
        """Position of an arm, or a ParameterError that lists the existing ones."""
        label = plain(arm)
        known = {label_key(label): code for code, label in enumerate(self.arms)}
        try:
            return known[label_key(label)]
        except (KeyError, TypeError):  # Values that cannot be hashed raise TypeError.
            raise ParameterError(subject, [unlisted("arm", self.arms, arm)]) from None

    def _code(self, context: Any) -> int:
        label = plain(context)
        try:
            code = self._codes.get(label_key(label))
        except TypeError:  # Values that cannot be hashed raise TypeError.
            code = None
        if code is None:
            raise ParameterError("assign", [unlisted("context", self.features, context)])
        return code

    def _vector(self, context: Any) -> FloatArray:
        wanted = (self.dimension,) if self.shared else (self.n_arms, self.dimension)
        found = number_array(context)
        problem = ""
        if found is None or found.shape != wanted:
            got = shown(context) if found is None else f"shape {found.shape}"
            problem = f"context must be numbers of shape {wanted}, got {got}"
        elif not np.isfinite(found).all():
            problem = "context must be finite numbers"
        elif self.domain == "cube" and not ((found >= 0.0) & (found <= 1.0)).all():
            problem = (
                f"context must lie in the cube [0, 1]^{self.dimension}, but its entries range from "
                f"{found.min():g} to {found.max():g}: scale contexts by constants fixed in advance"
            )
        elif self.domain == "ball":
            longest = float(np.sqrt((found * found).sum(axis=-1)).max())
            if longest > 1.0 + _ROUNDING:
                problem = (
                    f"context must have a length of at most 1, got {longest:.6g}: divide contexts by a "
                    "constant fixed in advance"
                )
        if problem or found is None:
            raise ParameterError("assign", [problem])
        return np.tile(found, self.n_arms) if self.shared else found.reshape(-1)


def _labels(name: str, given: Any) -> tuple[tuple[Any, ...], list[str]]:
    """Labels of arms or contexts, from a list or their number, and problems with them."""
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        problems = COUNT(name, given)
        return tuple(range(0 if problems else int(given))), problems
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        return (), [f"{name} must be a list of labels or their number, got {shown(given)}"]
    labels = tuple(map(plain, given))
    wrong = [label for label in labels if not isinstance(label, (str, int, float))]
    if wrong or not labels or len(set(map(label_key, labels))) < len(labels):
        return labels, [f"{name} must be distinct labels, text or numbers, got {shown(list(labels))}"]
    return labels, arm_problems(labels) if name == "arms" else _alike(name, labels)


def _alike(name: str, labels: tuple[Any, ...]) -> list[str]:
    return [f"{name} look the same or are equal: {told_apart(group)}" for group in alike_labels(labels)]
