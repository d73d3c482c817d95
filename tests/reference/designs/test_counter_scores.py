"""The score of an audit against the likelihoods of all noisy node sums, spelled out node by node."""

from __future__ import annotations

import math
import pickle
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest

from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.audit.privacy.designs.counter_audits import CounterScore
from adaptinf.designs import LinPriv, Mixture, PrivateUCB
from adaptinf.privacy.real_mechanisms import analytic_scale
from adaptinf.simulation.environments import Tableau
from adaptinf.simulation.transcripts import Transcripts, sample_transcripts

EPSILON, DELTA = 1.3, 0.02
RNG = np.random.default_rng(11)

Node = tuple[int, int, float]


def tiles(counter: str, count: int, horizon: int) -> list[Node]:
    """(first item, last item, scale at epsilon = 1) of the nodes whose sums add up to that of 1..count."""
    if counter == "binary":
        start, levels, spent, nodes = 0, range(horizon.bit_length() - 1, -1, -1), horizon.bit_length(), []
    else:
        top = count.bit_length() - 1
        nodes = [(1, 1, 2.0)] + [(2**j // 2 + 1, 2**j, 2.0) for j in range(1, top + 1)]
        start, levels, spent = 2**top, range(top - 1, -1, -1), 2 * top
    for level in levels:
        if start + 2**level <= count:
            nodes.append((start + 1, start + 2**level, float(spent)))
            start += 2**level
    return nodes


def node_sums(released: list[float], counter: str, horizon: int) -> dict[Node, float]:
    """The noisy sum of every node, from the released sums at 1, 2, ...: each count completes one node."""
    found: dict[Node, float] = {}
    for count, value in enumerate(released, 1):
        nodes = tiles(counter, count, horizon)
        (fresh,) = [node for node in nodes if node not in found]
        found[fresh] = value - sum(found[node] for node in nodes if node != fresh)
    return found


def log_density(value: float, centre: float, scale: float, gaussian: bool) -> mpmath.mpf:
    z = (mpmath.mpf(value) - mpmath.mpf(centre)) / mpmath.mpf(scale)
    if gaussian:
        return -(z**2) / 2 - mpmath.log(scale * mpmath.sqrt(2 * mpmath.pi))
    return -abs(z) - mpmath.log(2 * mpmath.mpf(scale))


def literal(
    run: Transcripts, index: int, score: CounterScore, counter: str, unit: float, horizon: int
) -> mpmath.mpf:
    """Log-likelihood on the second tape minus that on the first; `unit` is the scale at epsilon = 1."""
    dimension = 1 if score.vectors is None else score.vectors.shape[2]
    total = mpmath.mpf(0)
    values = run.releases[index, :, 3].reshape(-1, dimension)
    for arm in range(score.first.shape[1]):
        rounds = np.flatnonzero(run.actions[index] == arm)
        for k in range(dimension):
            nodes = node_sums(values[rounds, k].tolist(), counter, horizon)
            for (first, last, scale), value in nodes.items():
                width = unit if score.gaussian else unit * scale
                for sign, tape in ((1, score.second), (-1, score.first)):
                    items = [
                        min(max(tape[t, arm], 0.0), 1.0)
                        * (1.0 if score.vectors is None else score.vectors[t, arm, k])
                        for t in rounds[first - 1 : last]
                    ]
                    total += sign * log_density(value, math.fsum(items), width, score.gaussian)
    return total


def agree(design: Any, pair: Any, counter: str, unit: float, runs: int = 60) -> np.ndarray:
    """Scores on both environments, after a comparison of each."""
    seen = []
    for side, env in enumerate((pair.first, pair.second)):
        (run,) = sample_transcripts(design, env, pair.horizon, 0, runs, np.random.SeedSequence(side))
        score = pickle.loads(pickle.dumps(pair.score))
        fast = score(run)
        assert fast.shape == (runs,)
        slow = [literal(run, r, pair.score, counter, unit, pair.horizon) for r in range(runs)]
        np.testing.assert_allclose(fast, np.array(slow, dtype=float), rtol=0.0, atol=1e-9)
        seen.append(fast)
    return np.concatenate(seen)


@pytest.mark.parametrize("counter", ["binary", "hybrid"])
@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("mixed", [False, True])
def test_private_ucb(counter: str, published: bool, mixed: bool) -> None:
    options = {"calibration": "published", "relaxation": False} if published else {}
    inner = PrivateUCB(epsilon=EPSILON, counter=counter, **options)
    design = Mixture(inner, exploration=0.4) if mixed else inner
    budget = EPSILON / 2 if published else EPSILON
    for pair in neighbouring_trials(design):
        seen = agree(design, pair, counter, 1.0 / budget)
        assert np.abs(seen).max() <= budget + 1e-9
    first = neighbouring_trials(design)[0]
    assert np.abs(agree(design, first, counter, 1.0 / budget)).max() > 0.7 * budget


@pytest.mark.parametrize("counter", ["binary", "hybrid"])
@pytest.mark.parametrize("published", [False, True])
def test_linpriv_laplace(counter: str, published: bool) -> None:
    if published and counter == "binary":
        counter, options = "hybrid", {"calibration": "published", "dimension": 3}
    elif published:
        options = {"calibration": "published"}
    else:
        options = {"counter": counter}
    design = LinPriv(epsilon=EPSILON, **options)
    dimension = 2 if design.dimension is None else 3
    unit = 1.0 / EPSILON if published else math.sqrt(dimension) / EPSILON
    for pair in neighbouring_trials(design, "reward"):
        assert pair.first.context_norm == pytest.approx(1.0)
        assert pair.first.dimension == dimension
        agree(design, pair, counter, unit, runs=40)


@pytest.mark.parametrize("noise", ["gaussian", "smallest"])
def test_linpriv_gaussian(noise: str) -> None:
    design = LinPriv(epsilon=EPSILON, delta=DELTA, noise=noise, counter="binary", dimension=8)
    for pair in neighbouring_trials(design):
        if pair.score.gaussian:
            levels = pair.horizon.bit_length()
            agree(design, pair, "binary", analytic_scale(EPSILON, DELTA, math.sqrt(levels)), runs=30)
        else:
            assert noise == "smallest"


@pytest.mark.parametrize("counter", ["binary", "hybrid"])
def test_any_two_tapes_of_three_arms(counter: str) -> None:
    """Tapes that differ in every round, with a deeper tree."""
    first, second = RNG.normal(0.5, 1.0, size=(2, 40, 3))
    design = PrivateUCB(epsilon=8.0, counter=counter)
    clipped = [np.clip(tape, 0.0, 1.0) for tape in (first, second)]
    score = CounterScore(*clipped, counter == "hybrid")
    pair = SimpleNamespace(first=Tableau(clipped[0]), second=Tableau(clipped[1]), horizon=40, score=score)
    agree(design, pair, counter, 1.0 / 8.0, runs=20)
