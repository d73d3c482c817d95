"""Which arm a trial selects at its end: what the design names, or the highest estimate or sample mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from adaptinf.audit.simulation.analyses import analysed
from adaptinf.designs.base_design import Design
from adaptinf.designs.run_results import Replications
from adaptinf.errors import ParameterError
from adaptinf.inference.results.base import Results
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import Environment
from adaptinf.typing import FloatArray

Select: TypeAlias = "Callable[[AdaptiveLog, Any], Any]"

SELECTIONS = ("design", "analysis", "sample mean")
_NAMED = ("recommended", "last_arm", "better_arm")
_BY_VECTORS = (
    "No arm is selected: the design chooses by context vectors, so that sample means are over different "
    "contexts"
)


@dataclass(frozen=True, slots=True)
class Selection:
    """Where the selected arm of a trial comes from."""

    source: str
    name: str = ""
    by_context: bool = False
    text: str = ""

    @classmethod
    def of(cls, selection: Any, design: Design, env: Environment, fits: Iterable[Any]) -> Selection:
        """The rule for a design in an environment."""
        if selection is not None and not isinstance(selection, str):
            return cls("function", text="Selected: what selection= returns.")
        rules: dict[str, Callable[[], Selection | None]] = {
            "design": lambda: _by_design(design, env),
            "analysis": lambda: _by_analysis(fits, env),
            "sample mean": lambda: None if chooses_by_vectors(design) else _by_means(env),
        }
        if selection is None:
            known = (rule for find in rules.values() if (rule := find()) is not None)
            return next(known, cls("none", text=_BY_VECTORS))
        rule = rules[selection]()
        if rule is None:
            reasons = {
                "design": f"{type(design).__name__} names no arm at the end",
                "analysis": "no result of fit ranks all arms, by means or by contrasts with one of them",
                "sample mean": _BY_VECTORS,
            }
            raise ParameterError(
                "operating_characteristics", [f"selection={selection!r}: {reasons[selection]}"]
            )
        return rule


def _by_design(design: Design, env: Environment) -> Selection | None:
    names = design.outcome_names(env.n_features)
    for name in _NAMED:
        if name in names:
            by_context = name == "better_arm" and bool(env.features)
            return Selection(
                "design", name, by_context, "Selected: the arm that the design names at its end."
            )
    return None


def _by_analysis(fits: Iterable[Any], env: Environment) -> Selection | None:
    for fitted in fits:
        results = fitted if isinstance(fitted, Mapping) else {"": fitted}
        for name, result in results.items():
            if isinstance(result, Results) and (scores := arm_scores(result, env)) is not None:
                of = f" of {name!r}" if name else ""
                text = f"Selected: the arm with the highest estimate{of}; tied arms share the trial."
                return Selection("analysis", str(name), scores.shape[0] > 1, text)
    return None


def _by_means(env: Environment) -> Selection:
    within = " in the context" if env.features else ""
    text = f"Selected: the arm with the highest sample mean{within}; tied arms share the trial."
    return Selection("sample mean", "", bool(env.features), text)


def chooses_by_vectors(design: Design) -> bool:
    """Whether arms are chosen by context vectors."""
    return getattr(design, "design", design).needs.vectors == "needed"


def arm_scores(result: Results, env: Environment) -> FloatArray | None:
    """Estimates that rank all arms, over all rounds or in every context.

    Returns shape (1, arms) or (features, arms).
    """
    kinds = {estimand.kind for estimand in result.estimands}
    arms = env.arms
    if kinds == {"arm-mean"} and {estimand.arm for estimand in result.estimands} >= set(arms):
        scores = np.empty((1, len(arms)))
        for estimand, value in zip(result.estimands, result.estimate, strict=True):
            scores[0, arms.index(estimand.arm)] = value
        return scores
    if kinds == {"contrast"}:
        return _contrast_scores(result, arms)
    if kinds == {"cate"} and len(arms) == 2 and env.features:
        if any(estimand.group not in env.features for estimand in result.estimands):
            return None
        scores = np.full((len(env.features), 2), np.nan)
        for estimand, value in zip(result.estimands, result.estimate, strict=True):
            row = scores[env.features.index(estimand.group)]
            row[arms.index(estimand.treatment)] = value
            row[arms.index(estimand.control)] = 0.0 if np.isfinite(value) else np.nan
        return scores
    return None


def _contrast_scores(result: Results, arms: tuple[Any, ...]) -> FloatArray | None:
    """Differences from the one arm that all contrasts have in common."""
    controls = {estimand.control for estimand in result.estimands}
    treatments = {estimand.treatment for estimand in result.estimands}
    if len(controls) == 1 and treatments | controls == set(arms):
        sign, other, [common] = 1.0, "treatment", controls
    elif len(treatments) == 1 and treatments | controls == set(arms):
        sign, other, [common] = -1.0, "control", treatments
    else:
        return None
    scores = np.zeros((1, len(arms)))
    # Without a single estimate, the 0 of the arm that the others are compared with says nothing.
    scores[0, arms.index(common)] = 0.0 if np.isfinite(result.estimate).any() else np.nan
    for estimand, value in zip(result.estimands, result.estimate, strict=True):
        scores[0, arms.index(getattr(estimand, other))] = sign * value
    return scores


def shared_choice(scores: FloatArray) -> FloatArray:
    """Shares of the arms with the highest score; scores (..., arms)."""
    known = ~np.isnan(scores)
    highest = np.where(known, scores, -np.inf).max(axis=-1, keepdims=True)
    top = known & (scores == highest)
    return np.asarray(top / np.maximum(top.sum(axis=-1, keepdims=True), 1), dtype=np.float64)


def named_by_design(sims: Replications, rule: Selection, n_arms: int) -> FloatArray:
    """Selections that runs named, of shape (runs, places, arms)."""
    codes = sims.released[rule.name]
    return np.asarray(codes[..., None] == np.arange(n_arms), dtype=np.float64)


def highest_means(sims: Replications) -> FloatArray:
    """Selections by the highest sample mean, of shape (runs, places, arms)."""
    means = sims.means
    return shared_choice(means if means.ndim == 3 else means[:, None])


@dataclass(eq=False)
class Picker:
    """An analysis that notes which arm each trial selects; found (places, arms)."""

    fit: Callable[[AdaptiveLog], Any]
    env: Environment
    rule: Selection
    select: Select | None = None
    found: list[FloatArray] = field(default_factory=list)

    def __call__(self, log: AdaptiveLog, rng: np.random.SeedSequence) -> Any:
        """Fit, and note the selected arm."""
        fitted = analysed(self.fit, log, rng)
        if self.rule.source == "analysis":
            self.found.append(self._estimated(fitted))
        elif self.select is not None:
            self.found.append(self._returned(self.select(log, fitted)))
        return fitted

    def _estimated(self, fitted: Any) -> FloatArray:
        places = self.env.n_features if self.rule.by_context else 1
        results = fitted if isinstance(fitted, Mapping) else {"": fitted}
        result = results.get(self.rule.name)
        scores = arm_scores(result, self.env) if isinstance(result, Results) else None
        if scores is None or scores.shape[0] != places:
            return np.zeros((places, self.env.n_arms))
        return shared_choice(scores)

    def _returned(self, label: Any) -> FloatArray:
        chosen = np.zeros((1, self.env.n_arms))
        if label is None:
            return chosen
        if label not in self.env.arms:
            known = ", ".join(map(str, self.env.arms))
            raise ParameterError("selection", [f"it returned {label!r:.60}, the arms are {known}, or None"])
        chosen[0, self.env.arms.index(label)] = 1.0
        return chosen
