"""A second opinion on a lower bound of epsilon: the same scores, bounded by jax-privacy's auditing module."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.audit.privacy.checks import CONFIDENCE
from adaptinf.audit.privacy.lower_bound import Found, bound_from_scores
from adaptinf.errors import MissingDependencyError
from adaptinf.parameters import COUNT, UNIT, Count, check, number_array
from adaptinf.typing import FloatArray

__all__ = ["SecondOpinion", "second_opinion"]

_DISTRIBUTION, _FILE = "jax-privacy", "jax_privacy/auditing.py"
_MODULE = "adaptinf_jax_privacy_auditing"
_FEWEST = 20


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """Lower bounds of epsilon from the same scores, by two implementations.

    Attributes
    ----------
    own : float
        The bound of `epsilon_lower_bound`.
    same_event : float
        jax-privacy's Clopper-Pearson bound for the same event, from the same half of the scores.
    split : float
        Its own choice of a threshold on a random half, in both directions.
    multi_split : float
        The median over such splits, at half the level, in both directions.
    confidence, delta : float
        Of all bounds.
    version : str
        Of jax-privacy.
    """

    own: float
    same_event: float
    split: float
    multi_split: float
    confidence: float
    delta: float
    version: str

    def __str__(self) -> str:
        rows = [
            ("adaptinf", self.own),
            ("jax-privacy, same event and runs", self.same_event),
            ("jax-privacy, threshold from a split of its own", self.split),
            ("jax-privacy, median over splits", self.multi_split),
        ]
        head = f"Lower bounds of epsilon, {100.0 * self.confidence:g}% confidence, delta = {self.delta:g}"
        return "\n".join(
            [head, *(f"  {name:<46} {bound:.6f}" for name, bound in rows), f"jax-privacy {self.version}"]
        )


def second_opinion(
    first: ArrayLike,
    second: ArrayLike,
    *,
    confidence: float = 0.999,
    delta: float = 0.0,
    splits: int = 10,
    seed: int = 0,
) -> SecondOpinion:
    """Bound epsilon from the same scores by jax-privacy's auditing module.

    Parameters
    ----------
    first, second : array_like of shape (runs,)
        Scores on two neighbouring data sets, such as those of `privacy_scores`, large where the second data
        set is the likelier one.
    confidence : float
        Of every bound.
    delta : float
        Probability that the guarantee gives away.
    splits : int
        Splits whose median is taken.
    seed : int
        Of the splits.

    Returns
    -------
    SecondOpinion
        Our bound and theirs.

    Raises
    ------
    ParameterError
        Listing everything that is wrong.
    MissingDependencyError
        If the module or what it imports is not installed; the message says how to.

    Notes
    -----
    One file of jax-privacy is loaded, which needs dp-accounting, NumPy and SciPy; the package itself and JAX
    are not imported and need not be installed. Its bounds look at one direction at a time, so that each of
    the two gets half of the level here. Its Bonferroni strategy is not used: it counts the thresholds on the
    convex hull of the observed curve, which the scores themselves select.

    References
    ----------
    Nasr, M., Song, S., Thakurta, A., Papernot, N. and Carlini, N. (2021). Adversary instantiation: lower
    bounds for differentially private machine learning. IEEE Symposium on Security and Privacy.

    Meinshausen, N., Meier, L. and Bühlmann, P. (2009). P-values for high-dimensional regression. Journal of
    the American Statistical Association 104.
    """
    sides = [number_array(side) for side in (first, second)]
    check(
        "second_opinion",
        confidence=(confidence, CONFIDENCE),
        delta=(delta, UNIT),
        splits=(splits, COUNT),
        seed=(seed, Count(0)),
        also=_side_problems(sides[0], sides[1]),
    )
    theirs, version = _auditing()
    low, high = (np.asarray(side, dtype=np.float64) for side in sides)
    found = bound_from_scores(low, high, delta=delta, confidence=confidence, decimals=None)
    level = (1.0 - confidence) / 2.0

    def both_directions(strategy: Any) -> float:
        # a score of at least the threshold speaks for the first argument
        auditors = (theirs.CanaryScoreAuditor(high, low), theirs.CanaryScoreAuditor(-low, -high))
        bounds = (
            auditor.epsilon_clopper_pearson(level, delta, threshold_strategy=strategy) for auditor in auditors
        )
        return max(float(bound) for bound in bounds)

    return SecondOpinion(
        own=found.epsilon,
        same_event=_same_event(theirs, found, low, high, delta, level),
        split=both_directions(theirs.Split(seed=seed)),
        multi_split=both_directions(theirs.MultiSplit(num_samples=splits, seed=seed)),
        confidence=float(confidence),
        delta=float(delta),
        version=version,
    )


def _same_event(
    theirs: ModuleType, found: Found, first: FloatArray, second: FloatArray, delta: float, level: float
) -> float:
    """Their bound for our event, from the scores that we bounded it with."""
    rarer, likelier = (second, first) if found.swapped else (first, second)
    sign = 1.0 if found.upper else -1.0
    auditor = theirs.CanaryScoreAuditor(sign * likelier[-found.tested :], sign * rarer[-found.tested :])
    event = theirs.Explicit(sign * found.cut)
    return float(auditor.epsilon_clopper_pearson(level, delta, threshold_strategy=event))


def _side_problems(first: Any, second: Any) -> list[str]:
    problems = []
    for name, side in (("first", first), ("second", second)):
        if side is None or side.ndim != 1 or side.size < _FEWEST or not np.isfinite(side).all():
            problems.append(f"{name} must be at least {_FEWEST} finite scores, one a run")
    if not problems and first.size != second.size:
        problems.append(f"there must be as many second scores as first ones, {first.size}, got {second.size}")
    return problems


@cache
def _auditing() -> tuple[ModuleType, str]:
    """The auditing module of an installed jax-privacy, loaded from its file alone, and the version."""
    try:
        distribution = importlib.metadata.distribution(_DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError as error:
        raise _missing(_DISTRIBUTION) from error
    path = Path(str(distribution.locate_file(_FILE)))
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise _missing(f"{_FILE} of {_DISTRIBUTION} {distribution.version}")
    module = importlib.util.module_from_spec(spec)
    # its dataclasses look their module up by name
    sys.modules[_MODULE] = module
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        del sys.modules[_MODULE]
        raise _missing(str(error.name)) from error
    return module, distribution.version


def _missing(package: str) -> MissingDependencyError:
    # the file alone: JAX and the other dependencies of the package are not needed
    return MissingDependencyError(
        "a second opinion", package, "second-opinion", "pip install --no-deps jax-privacy"
    )
