"""jax-privacy's bounds from the scores of our audits, beside our own.

Run by path, ``pytest tests/second_opinion``, after ``pip install -e ".[second-opinion]"`` and
``pip install --no-deps -r tests/second_opinion/requirements.txt``.
"""

from __future__ import annotations

import functools
import math
import sys

import numpy as np
import pytest
from scipy import stats

from adaptinf.audit.privacy.audit import epsilon_lower_bound, privacy_scores
from adaptinf.audit.privacy.second_opinion import SecondOpinion, second_opinion
from adaptinf.privacy import Counter, Gaussian, Laplace

RUNS = 60_000
TARGETS = {
    "Laplace": Laplace(epsilon=1.0),
    "small epsilon": Laplace(epsilon=0.1),
    "Gaussian": Gaussian(epsilon=1.0, delta=0.01),
    "binary": Counter(epsilon=4.0, mechanism="binary", horizon=31),
    "hybrid": Counter(epsilon=1.0),
}


@functools.cache
def opinion_on(name: str) -> SecondOpinion:
    scores = privacy_scores(TARGETS[name], runs=RUNS, rng=1)
    return second_opinion(*scores, delta=TARGETS[name].guarantee().delta, splits=3)


@pytest.mark.parametrize("name", TARGETS)
def test_same_event_same_bound(name: str) -> None:
    opinion = opinion_on(name)
    assert opinion.own == epsilon_lower_bound(TARGETS[name], runs=RUNS, rng=1).epsilon
    assert opinion.same_event == pytest.approx(opinion.own, abs=1e-9)
    assert opinion.own > 0.0


@pytest.mark.parametrize("name", TARGETS)
def test_their_own_choices_agree_with_the_promise_and_with_ours(name: str) -> None:
    promised, opinion = TARGETS[name].guarantee().epsilon, opinion_on(name)
    for bound in (opinion.split, opinion.multi_split):
        assert bound <= promised
        assert bound == pytest.approx(opinion.own, abs=0.1 * promised + 0.01)


def test_both_refute_half_the_noise_in_either_direction() -> None:
    rng = np.random.default_rng(0)
    first, second = (np.clip(x, 0.0, 1.0) for x in (rng.laplace(0, 0.5, RUNS), rng.laplace(1, 0.5, RUNS)))
    rare = [rng.random(RUNS) < share for share in (0.02, 0.001)]
    for scores in ((first, second), (rare[0] * -1.0, rare[1] * -1.0), (rare[1] * 1.0, rare[0] * 1.0)):
        opinion = second_opinion(*scores, splits=3)
        assert min(opinion.own, opinion.same_event, opinion.split, opinion.multi_split) > 1.5


def test_the_bound_at_one_event_is_clopper_pearson() -> None:
    first, second = np.zeros(RUNS), np.zeros(RUNS)
    first[::10], second[::5] = 1.0, 1.0
    half = RUNS // 2
    low = stats.beta.ppf(0.00025, half // 5, half - half // 5 + 1)
    high = stats.beta.ppf(1 - 0.00025, half // 10 + 1, half - half // 10)
    assert second_opinion(first, second, splits=1).same_event == pytest.approx(math.log(low / high), abs=1e-9)


def test_neither_the_package_nor_jax_is_imported() -> None:
    opinion_on("Laplace")
    assert not {"jax", "jax_privacy"} & set(sys.modules)


def test_the_table_names_all_bounds() -> None:
    opinion = opinion_on("Laplace")
    lines = str(opinion).splitlines()
    assert lines[0] == "Lower bounds of epsilon, 99.9% confidence, delta = 0"
    bounds = [opinion.own, opinion.same_event, opinion.split, opinion.multi_split]
    assert [line.split()[-1] for line in lines[1:5]] == [f"{bound:.6f}" for bound in bounds]
    assert lines[5].startswith("jax-privacy 2.")
