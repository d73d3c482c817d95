"""Simulated trials stored as arrays, and the arm that each trial selects at its end."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from adaptinf.audit.simulation.engine import Chunk, LogCell, analysed
from adaptinf.designs.base import Design
from adaptinf.designs.run_results import Replications
from adaptinf.errors import ParameterError
from adaptinf.inference.results.fit_results import Results
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import Environment
from adaptinf.typing import BoolArray, FloatArray

Select: TypeAlias = "Callable[[AdaptiveLog, Any], Any]"

SELECTIONS = ("design", "analysis", "sample mean")
_NAMED = ("recommended", "last_arm", "better_arm")
_BY_VECTORS = (
    "No arm is selected: the design chooses by context vectors, so sample means average over different "
    "contexts"
)


@dataclass(frozen=True, slots=True)
class Selection:
    """The rule by which a trial selects an arm."""

    source: str
    name: str = ""
    by_context: bool = False
    text: str = ""

    @classmethod
    def of(cls, selection: Any, design: Design, env: Environment, fits: Iterable[Any]) -> Selection:
        """The rule for a design in an environment."""
        if selection is not None and not isinstance(selection, str):
            return cls("function", text="Selected: the arm returned by selection=.")
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
                "design": f"{type(design).__name__} recommends no arm at the end",
                "analysis": "no result of fit ranks all arms, either by means or by contrasts with one of "
                "them",
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
                "design", name, by_context, "Selected: the arm that the design recommends at its end."
            )
    return None


def _by_analysis(fits: Iterable[Any], env: Environment) -> Selection | None:
    for fitted in fits:
        results = fitted if isinstance(fitted, Mapping) else {"": fitted}
        for name, result in results.items():
            if isinstance(result, Results) and (scores := arm_scores(result, env)) is not None:
                of = f" of {name!r}" if name else ""
                text = (
                    f"Selected: the arm with the highest estimate{of}; if arms tie, the trial is divided "
                    f"equally among them."
                )
                return Selection("analysis", str(name), scores.shape[0] > 1, text)
    return None


def _by_means(env: Environment) -> Selection:
    within = " in the context" if env.features else ""
    text = (
        f"Selected: the arm with the highest sample mean{within}; if arms tie, the trial is divided "
        f"equally among them."
    )
    return Selection("sample mean", "", bool(env.features), text)


def chooses_by_vectors(design: Design) -> bool:
    """Whether arms are chosen by context vectors."""
    return getattr(design, "design", design).needs.vectors == "needed"


def arm_scores(result: Results, env: Environment) -> FloatArray | None:
    """Estimates that rank all arms, over all rounds or in every context.

    The returned array has shape (1, arms) or (features, arms).
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
    """Differences from the arm that is common to all contrasts."""
    controls = {estimand.control for estimand in result.estimands}
    treatments = {estimand.treatment for estimand in result.estimands}
    if len(controls) == 1 and treatments | controls == set(arms):
        sign, other, [common] = 1.0, "treatment", controls
    elif len(treatments) == 1 and treatments | controls == set(arms):
        sign, other, [common] = -1.0, "control", treatments
    else:
        return None
    scores = np.zeros((1, len(arms)))
    # If no contrast was estimated, the 0 of the common arm carries no information.
    scores[0, arms.index(common)] = 0.0 if np.isfinite(result.estimate).any() else np.nan
    for estimand, value in zip(result.estimands, result.estimate, strict=True):
        scores[0, arms.index(getattr(estimand, other))] = sign * value
    return scores


def shared_choice(scores: FloatArray) -> FloatArray:
    """Equal shares for the arms with the highest score, and 0 for the others; scores (..., arms)."""
    known = ~np.isnan(scores)
    highest = np.where(known, scores, -np.inf).max(axis=-1, keepdims=True)
    top = known & (scores == highest)
    return np.asarray(top / np.maximum(top.sum(axis=-1, keepdims=True), 1), dtype=np.float64)


def named_by_design(sims: Replications, rule: Selection, n_arms: int) -> FloatArray:
    """Selections recommended by the runs, of shape (runs, places, arms)."""
    codes = sims.released[rule.name]
    return np.asarray(codes[..., None] == np.arange(n_arms), dtype=np.float64)


def highest_means(sims: Replications) -> FloatArray:
    """Selections by the highest sample mean, of shape (runs, places, arms)."""
    means = sims.means
    return shared_choice(means if means.ndim == 3 else means[:, None])


@dataclass(eq=False)
class Picker:
    """An analysis that records which arm each trial selects; found has shape (places, arms)."""

    fit: Callable[[AdaptiveLog], Any]
    env: Environment
    rule: Selection
    select: Select | None = None
    found: list[FloatArray] = field(default_factory=list)

    def __call__(self, log: AdaptiveLog, rng: np.random.SeedSequence) -> Any:
        """Fit the analysis, and record the selected arm."""
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
            raise ParameterError(
                "selection", [f"it returned {label!r:.60}; it must return one of the arms {known}, or None"]
            )
        chosen[0, self.env.arms.index(label)] = 1.0
        return chosen


QUANTILES = (0.025, 0.1, 0.5, 0.9, 0.975)
_SAME = 1e-12


@dataclass(slots=True)
class Trials(Chunk):
    """Consecutive trials, with the results of the analysis in `blocks`.

    Shapes: rounds (trials, features, arms), reward (trials,), regret (trials,), selected (trials, places,
    arms).
    """

    rounds: FloatArray = field(default_factory=lambda: np.zeros((0, 1, 1)))
    reward: FloatArray = field(default_factory=lambda: np.zeros(0))
    regret: FloatArray = field(default_factory=lambda: np.zeros(0))
    selected: FloatArray = field(default_factory=lambda: np.zeros((0, 1, 1)))
    binary: bool = True

    @classmethod
    def joined(cls, parts: Sequence[Trials]) -> Trials:
        """All trials, in order."""
        whole = cls(parts[0].start, parts[-1].stop, [block for part in parts for block in part.blocks])
        whole.rounds = np.concatenate([part.rounds for part in parts])
        whole.reward = np.concatenate([part.reward for part in parts])
        whole.regret = np.concatenate([part.regret for part in parts])
        whole.selected = np.concatenate([part.selected for part in parts])
        whole.binary = all(part.binary for part in parts)
        return whole


@dataclass(frozen=True, eq=False)
class TrialCell:
    """Trials of a design in an environment over a horizon, with or without an analysis."""

    design: Design
    env: Environment
    horizon: int
    root: np.random.SeedSequence
    rule: Selection
    analysis: LogCell | None = None
    select: Select | None = None

    def chunk(self, start: int, stop: int, keep: bool) -> Chunk:
        """Trials `start` (a multiple of 64) to `stop`."""
        by_rounds = None if self.analysis is None else True
        sims = self.design.replicate(
            self.env, self.horizon, stop, self.root, start=start, by_rounds=by_rounds
        )
        cells = sims.tallies.sum(axis=1)
        trials = Trials(start, stop)
        trials.rounds = cells[..., 0]
        trials.reward = cells[..., 1].sum(axis=(1, 2))
        trials.regret = sims.regret
        trials.binary = bool((cells[..., 1] == cells[..., 2]).all())
        picked: list[FloatArray] = []
        if self.analysis is not None:
            [fit] = self.analysis.analyses.values()
            picker = Picker(fit, self.env, self.rule, self.select)
            trials.blocks = (
                dataclasses.replace(self.analysis, analyses={"": picker}).chunk(start, stop, keep).blocks
            )
            picked = picker.found
        if self.rule.source == "design":
            trials.selected = named_by_design(sims, self.rule, self.env.n_arms)
        elif self.rule.source == "sample mean":
            trials.selected = highest_means(sims)
        elif self.rule.source != "none":
            trials.selected = np.array(picked)
        else:
            trials.selected = np.zeros((stop - start, 0, self.env.n_arms))
        return trials


def best_arms(means: FloatArray) -> BoolArray:
    """Whether an arm has the highest mean in its row, up to rounding; an array shaped like `means`."""
    highest = means.max(axis=1, keepdims=True)
    return np.asarray(np.isclose(means, highest, rtol=_SAME, atol=_SAME), dtype=np.bool_)


def wrong_way_trials(rounds: FloatArray, best: BoolArray, margin: float) -> FloatArray:
    """Trials that assign too many rounds to an inferior arm.

    Shapes: rounds (trials, arms), best (arms,); returns (trials,).
    """
    excess = rounds[:, ~best].max(axis=1) - rounds[:, best].max(axis=1)
    return np.asarray(excess > margin * rounds.sum(axis=1) * (1.0 + _SAME), dtype=np.float64)


def quantile(ordered: FloatArray, level: float) -> float:
    """The smallest of the ordered values such that at least a share `level` of them do not exceed it."""
    rank = math.ceil(min(max(level, 0.0), 1.0) * ordered.size - 1e-9)
    return float(ordered[max(rank, 1) - 1])


def estimated(
    values: FloatArray, statistics: Sequence[str] = ("mean", "sd")
) -> Iterator[tuple[str, float, float]]:
    """Statistics of simulated values of shape (trials,), each with its Monte Carlo standard error."""
    count, mean = values.size, float(values.mean())
    squares = np.square(values - mean)
    variance = float(squares.mean())
    sd = math.sqrt(variance)
    if "mean" in statistics:
        yield "mean", mean, sd / math.sqrt(count) if count > 1 else math.nan
    if "sd" in statistics:
        spread = max(float(np.square(squares).mean()) - variance**2, 0.0)
        error = math.sqrt(spread / count) / (2.0 * sd) if sd > 0.0 else 0.0
        yield "sd", sd, error if count > 1 else math.nan
    if "quantiles" in statistics:
        ordered = np.sort(values)
        for level in QUANTILES:
            step = math.sqrt(level * (1.0 - level) / count)
            error = 0.5 * (quantile(ordered, level + step) - quantile(ordered, level - step))
            yield f"q{level:g}", quantile(ordered, level), error if count > 1 else math.nan


def wrong_way_reason(design: Design, env: Environment, best: BoolArray) -> str:
    """The reason why the wrong direction is undefined; empty if it is defined."""
    if env.dimension and chooses_by_vectors(design):
        return "the best arm depends on the context vector: see the regret"
    return "" if (~best).any() else "no arm is better than another"
