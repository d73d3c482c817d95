"""Which arm a trial selects at its end: what the design names, or the highest estimate or sample mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from adaptinf.designs.base import Design
from adaptinf.designs.replications import Replications
from adaptinf.errors import ParameterError
from adaptinf.inference.results import Results
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import Environment
from adaptinf.typing import FloatArray

__all__ = ["SELECTIONS", "Picker", "Select", "Selection", "arm_scores", "chooses_by_vectors", "shared_choice"]

Select: TypeAlias = "Callable[[AdaptiveLog, Any], Any]"

SELECTIONS = ("design", "analysis", "sample mean")
_NAMED = ("recommended", "last_arm", "better_arm")
_BY_VECTORS = (
    "No arm is selected: the design chooses by context vectors, so that sample means are over different "
    "contexts"
)


@dataclass(frozen=True, slots=True)
class Selection:
    """Where the selected arm of a trial comes from.

    Attributes
    ----------
    source : {"design", "analysis", "sample mean", "function", "none"}
        What selects.
    name : str
        Column of the design's outcomes, or name of the result among those of the analysis.
    by_context : bool
        Whether an arm is selected for every context.
    text : str
        The rule in words, or why no arm is selected.
    """

    source: str
    name: str = ""
    by_context: bool = False
    text: str = ""

    @classmethod
    def of(cls, selection: Any, design: Design, env: Environment, fitted: Any) -> Selection:
        """The rule for a design in an environment.

        Parameters
        ----------
        selection : str, callable or None
            What was asked for; None takes the first of `SELECTIONS` that there is.
        design, env : Design, Environment
            What gathers the data, and where.
        fitted : Results, or dict of Results, or None
            The analysis of the first trial, where there is one.

        Raises
        ------
        ParameterError
            If what was asked for does not name an arm.
        """
        if selection is not None and not isinstance(selection, str):
            return cls("function", text="Selected: what selection= returns.")
        found = {
            "design": _by_design(design, env),
            "analysis": _by_analysis(fitted, env),
            "sample mean": None if chooses_by_vectors(design) else _by_means(env),
        }
        if selection is None:
            known = [rule for rule in found.values() if rule is not None]
            return known[0] if known else cls("none", text=_BY_VECTORS)
        rule = found[selection]
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


def _by_analysis(fitted: Any, env: Environment) -> Selection | None:
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
    return getattr(design, "design", design).vectors == "needed"


def arm_scores(result: Results, env: Environment) -> FloatArray | None:
    """Estimates that rank all arms, over all rounds or in every context.

    Parameters
    ----------
    result : Results
        Means of all arms; or contrasts of all other arms with the same one, which then has 0; or, with two
        arms, their contrast in every context.
    env : Environment
        Where it was gathered.

    Returns
    -------
    ndarray of shape (1, arms) or (features, arms), or None
        NaN where an estimate is missing; None if the result does not rank the arms.
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
        groups = [estimand.group for estimand in result.estimands]
        if set(groups) != set(env.features):
            return None
        scores = np.zeros((len(env.features), 2))
        for estimand, value in zip(result.estimands, result.estimate, strict=True):
            scores[env.features.index(estimand.group), arms.index(estimand.treatment)] = value
        return scores
    return None


def _contrast_scores(result: Results, arms: tuple[Any, ...]) -> FloatArray | None:
    """Differences from the one arm that all contrasts have in common."""
    controls = {estimand.control for estimand in result.estimands}
    treatments = {estimand.treatment for estimand in result.estimands}
    if len(controls) == 1 and treatments | controls == set(arms):
        sign, other = 1.0, "treatment"
    elif len(treatments) == 1 and treatments | controls == set(arms):
        sign, other = -1.0, "control"
    else:
        return None
    scores = np.zeros((1, len(arms)))
    for estimand, value in zip(result.estimands, result.estimate, strict=True):
        scores[0, arms.index(getattr(estimand, other))] = sign * value
    return scores


def shared_choice(scores: FloatArray, common: FloatArray | None = None) -> FloatArray:
    """Shares of the arms with the highest score.

    Parameters
    ----------
    scores : ndarray of shape (..., arms)
        NaN where an arm has none.
    common : ndarray of shape (...), optional
        Whether anything is known; otherwise wherever some score is.

    Returns
    -------
    ndarray of the same shape
        1 over the number of tied arms for those with the highest score; all 0 where nothing is known.
    """
    known = ~np.isnan(scores)
    highest = np.where(known, scores, -np.inf).max(axis=-1, keepdims=True)
    top = known & (scores == highest)
    if common is not None:
        top &= np.asarray(common, dtype=bool)[..., None]
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
    """An analysis that notes which arm each trial selects.

    Attributes
    ----------
    fit : callable
        The analysis.
    env : Environment
        Where the logs are from.
    rule : Selection, optional
        Where the arm comes from; without it only the last fit is kept.
    select : callable, optional
        Takes a log and what `fit` returned, and returns the label of an arm, or None.
    found : list of ndarray of shape (places, arms)
        Selections of the trials so far.
    fitted : object
        What `fit` returned last.
    """

    fit: Callable[[AdaptiveLog], Any]
    env: Environment
    rule: Selection | None = None
    select: Select | None = None
    found: list[FloatArray] = field(default_factory=list)
    fitted: Any = None

    def __call__(self, log: AdaptiveLog) -> Any:
        """Fit, and note the selected arm."""
        self.fitted = self.fit(log)
        if self.rule is not None and self.rule.source == "analysis":
            self.found.append(self._estimated(self.rule))
        elif self.rule is not None and self.select is not None:
            self.found.append(self._returned(self.select(log, self.fitted)))
        return self.fitted

    def _estimated(self, rule: Selection) -> FloatArray:
        places = self.env.n_features if rule.by_context else 1
        results = self.fitted if isinstance(self.fitted, Mapping) else {"": self.fitted}
        result = results.get(rule.name)
        scores = None if result is None else arm_scores(result, self.env)
        if scores is None or result is None:
            return np.zeros((places, self.env.n_arms))
        # Without a single estimate, the 0 of an arm that the others are compared with says nothing.
        estimated = np.full(places, bool(np.isfinite(result.estimate).any()))
        return shared_choice(scores, estimated)

    def _returned(self, label: Any) -> FloatArray:
        chosen = np.zeros((1, self.env.n_arms))
        if label is None:
            return chosen
        if label not in self.env.arms:
            known = ", ".join(map(str, self.env.arms))
            raise ParameterError("selection", [f"it returned {label!r:.60}, the arms are {known}, or None"])
        chosen[0, self.env.arms.index(label)] = 1.0
        return chosen
