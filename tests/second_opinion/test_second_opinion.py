"""jax-privacy's bounds from the scores of our audits, beside our own.

Run by path, ``pytest tests/second_opinion``, after ``pip install -e ".[second-opinion]"`` and
``pip install --no-deps -r tests/second_opinion/requirements.txt``: one file of jax-privacy is loaded, and
neither the package nor JAX is imported.

Its bounds look at one direction at a time, so that each of the two gets half of the level. Its Bonferroni
strategy is not used: it counts the thresholds on the convex hull of the observed curve, which the scores
themselves select.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import math
import sys
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from adaptinf.audit.privacy.epsilon_audit import epsilon_lower_bound, privacy_scores
from adaptinf.audit.privacy.lower_bound import bound_from_scores
from adaptinf.privacy import Counter, Gaussian, Laplace
from adaptinf.typing import FloatArray

RUNS, CONFIDENCE = 60_000, 0.999
TARGETS = {
    "Laplace": Laplace(epsilon=1.0),
    "small epsilon": Laplace(epsilon=0.1),
    "Gaussian": Gaussian(epsilon=1.0, delta=0.01),
    "binary": Counter(epsilon=4.0, mechanism="binary", horizon=31),
    "hybrid": Counter(epsilon=1.0),
}


class Bounds(NamedTuple):
    """Ours, and jax-privacy's: for the same event and runs, by one split of its own, the median of more."""

    own: float
    same_event: float
    split: float
    multi_split: float


@functools.cache
def auditing() -> ModuleType:
    """The auditing module of the installed jax-privacy, loaded from its file alone."""
    path = importlib.metadata.distribution("jax-privacy").locate_file("jax_privacy/auditing.py")
    spec = importlib.util.spec_from_file_location("jax_privacy_auditing", str(path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


def bounds(first: FloatArray, second: FloatArray, delta: float = 0.0) -> Bounds:
    """Bound epsilon from scores that are large where the second data set is the likelier one."""
    theirs, level = auditing(), (1.0 - CONFIDENCE) / 2.0
    found = bound_from_scores(first, second, delta=delta, confidence=CONFIDENCE, decimals=None)

    def bound(likelier: FloatArray, rarer: FloatArray, strategy: Any) -> float:
        auditor = theirs.CanaryScoreAuditor(likelier, rarer)
        return float(auditor.epsilon_clopper_pearson(level, delta, threshold_strategy=strategy))

    # our event, from the scores that it was bounded with
    rarer, likelier = (second, first) if found.swapped else (first, second)
    sign = 1.0 if found.upper else -1.0
    tested = slice(-found.tested, None)
    same = bound(sign * likelier[tested], sign * rarer[tested], theirs.Explicit(sign * found.cut))
    chosen = (theirs.Split(seed=0), theirs.MultiSplit(num_samples=3, seed=0))
    # a score of at least the threshold speaks for the first argument
    return Bounds(
        found.epsilon, same, *(max(bound(second, first, s), bound(-first, -second, s)) for s in chosen)
    )


@functools.cache
def bounds_on(name: str) -> Bounds:
    scores = privacy_scores(TARGETS[name], runs=RUNS, rng=1)
    return bounds(*scores, delta=TARGETS[name].guarantee().delta)


@pytest.mark.parametrize("name", TARGETS)
def test_same_event_same_bound(name: str) -> None:
    found = bounds_on(name)
    assert found.own == epsilon_lower_bound(TARGETS[name], runs=RUNS, rng=1).epsilon
    assert found.same_event == pytest.approx(found.own, abs=1e-9)
    assert found.own > 0.0


@pytest.mark.parametrize("name", TARGETS)
def test_their_own_choices_agree_with_the_promise_and_with_ours(name: str) -> None:
    promised, found = TARGETS[name].guarantee().epsilon, bounds_on(name)
    for bound in (found.split, found.multi_split):
        assert bound <= promised
        assert bound == pytest.approx(found.own, abs=0.1 * promised + 0.01)


def test_both_refute_half_the_noise_in_either_direction() -> None:
    rng = np.random.default_rng(0)
    first, second = (np.clip(x, 0.0, 1.0) for x in (rng.laplace(0, 0.5, RUNS), rng.laplace(1, 0.5, RUNS)))
    rare = [rng.random(RUNS) < share for share in (0.02, 0.001)]
    for scores in ((first, second), (rare[0] * -1.0, rare[1] * -1.0), (rare[1] * 1.0, rare[0] * 1.0)):
        assert min(bounds(*scores)) > 1.5


def test_the_bound_at_one_event_is_clopper_pearson() -> None:
    first, second = np.zeros(RUNS), np.zeros(RUNS)
    first[::10], second[::5] = 1.0, 1.0
    half = RUNS // 2
    low = stats.beta.ppf(0.00025, half // 5, half - half // 5 + 1)
    high = stats.beta.ppf(1 - 0.00025, half // 10 + 1, half - half // 10)
    assert bounds(first, second).same_event == pytest.approx(math.log(low / high), abs=1e-9)


def test_neither_the_package_nor_jax_is_imported() -> None:
    bounds_on("Laplace")
    assert not {"jax", "jax_privacy"} & set(sys.modules)
