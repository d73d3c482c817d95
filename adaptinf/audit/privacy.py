"""Lower bounds of the epsilon that a design's or a mechanism's outputs really have, by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed

from adaptinf.audit.learned import LearnedScore, learn
from adaptinf.audit.lower_bound import Found, bound_from_scores
from adaptinf.audit.privacy_results import EpsilonLowerBound
from adaptinf.designs.base import Design
from adaptinf.designs.neighbours import Neighbours, Transcripts
from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.parameters import choice_problem, count_problem, number_problem, seed_problem
from adaptinf.privacy.noise import generator
from adaptinf.simulation.replicate import BLOCK, seed_sequence
from adaptinf.simulation.transcripts import sample_transcripts
from adaptinf.typing import FloatArray, RandomSource

__all__ = ["EpsilonLowerBound", "epsilon_lower_bound"]

_CHUNK = 256 * BLOCK
_VIEWS = ("releases", "actions")
_MOST_SEQUENCES = 2.0**62
_FEWEST_RUNS = 1_000

OutputSampler = Callable[[int, int, np.random.Generator], Any]
"""``sample(side, runs, rng)``: outputs on data set 0 or 1, of shape (runs,) or (runs, numbers)."""


class _Source(Protocol):
    """Where outputs come from, in pieces that do not depend on one another."""

    @property
    def name(self) -> str:
        """What is audited, in words."""

    def outputs(self, side: int, start: int, stop: int) -> Any:
        """Scores of shape (runs,), or outputs of shape (runs, numbers) whose score has to be learned."""

    def event(self, found: Found, learned: LearnedScore | None) -> str:
        """The event in words."""


def epsilon_lower_bound(
    target: Design | OutputSampler,
    neighbours: Neighbours | None = None,
    *,
    view: str = "releases",
    runs: int = 1_000_000,
    confidence: float = 0.999,
    delta: float | None = None,
    promised: PrivacyGuarantee | None = None,
    decimals: int | None = 9,
    rng: RandomSource | None = None,
    n_jobs: int = 1,
) -> EpsilonLowerBound:
    """Lower confidence bound of the epsilon that a design's or a mechanism's outputs really have.

    Parameters
    ----------
    target : Design or callable
        What is audited. A callable ``sample(side, runs, rng)`` returns outputs on data set 0 or 1, of shape
        (runs,) or (runs, numbers).
    neighbours : Neighbours, optional
        Two trials that differ in one unit; by default the worst case that the design itself supplies,
        ``design.neighbours()[0]``. None for a callable.
    view : {"releases", "actions"}
        What the onlooker of a design sees: the vector of releases with the actions (white box), or the
        actions alone (black box), which reveal less.
    runs : int
        Runs on each of the two data sets.
    confidence : float
        Of the bound: it exceeds a true epsilon in a share of at most 1 - `confidence` of audits.
    delta : float, optional
        The delta of the promise; by default that of the guarantee, or 0.
    promised : PrivacyGuarantee, optional
        What the bound is held against; by default the design's own guarantee for the unit of `neighbours`.
    decimals : int or None
        Scores are rounded to so many decimals; None keeps every digit.
    rng : int, SeedSequence, Generator or None
        Source of randomness. Piece r of the runs depends on (rng, r) alone.
    n_jobs : int
        Worker processes; the bound is the same for any.

    Returns
    -------
    EpsilonLowerBound
        The bound, its confidence, the number of runs, the event in words, and the promise.

    Raises
    ------
    ParameterError
        Listing everything that is wrong, before anything is drawn.

    Notes
    -----
    The bound is one-sided: a bound above the promise refutes it, a bound below proves nothing. It can be no
    better than the event: the score of a white-box audit is the log-likelihood ratio that the design
    supplies; where there is none, a ratio is learned from a quarter of the runs. An event is chosen on one
    half of the runs and bounded on the other by Clopper-Pearson limits, in both directions.

    References
    ----------
    Ding, Z., Wang, Y., Wang, G., Zhang, D. and Kifer, D. (2018). Detecting violations of differential
    privacy. CCS.

    Jagielski, M., Ullman, J. and Oprea, A. (2020). Auditing differentially private machine learning: how
    private is private SGD? NeurIPS.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.PrivateUCB(epsilon=1.0)
    >>> result = epsilon_lower_bound(design, runs=20_000, rng=0)
    >>> result.epsilon <= result.promised.epsilon
    True
    """
    problems = _problems(target, neighbours, view, runs, confidence, delta, promised, decimals, n_jobs)
    problems += seed_problem(rng)
    if problems:
        raise ParameterError("epsilon_lower_bound", problems)
    root = seed_sequence(rng)
    if isinstance(target, Design):
        pair = target.neighbours()[0] if neighbours is None else neighbours
        source: _Source = _design_source(target, pair, view, root)
        promised = _promise(target, pair) if promised is None else promised
    else:
        source = _Called(target, root)
    given_away = (0.0 if promised is None else promised.delta) if delta is None else float(delta)
    sides = [_gather(source, side, runs, n_jobs) for side in (0, 1)]
    learned = None
    n_chosen = runs // 2
    if sides[0].ndim == 2:
        quarter = runs // 4
        learned = learn(sides[0][:quarter], sides[1][:quarter])
        sides = [learned.scores(outputs[quarter:]) for outputs in sides]
        n_chosen -= quarter
    found = bound_from_scores(
        *sides, delta=given_away, confidence=confidence, decimals=decimals, n_chosen=n_chosen
    )
    return EpsilonLowerBound(
        epsilon=found.epsilon,
        confidence=float(confidence),
        delta=given_away,
        runs=int(runs),
        tested=found.tested,
        hits=found.hits,
        event=source.event(found, learned),
        target=source.name,
        promised=promised,
    )


def _problems(
    target: Any,
    neighbours: Any,
    view: Any,
    runs: Any,
    confidence: Any,
    delta: Any,
    promised: Any,
    decimals: Any,
    n_jobs: Any,
) -> list[str]:
    problems = count_problem("runs", runs, low=_FEWEST_RUNS)
    problems += choice_problem("view", view, _VIEWS)
    problems += number_problem("confidence", confidence, 0.5, 1.0 - 1e-9)
    if delta is not None:
        problems += number_problem("delta", delta, 0.0, 1.0)
    if decimals is not None:
        problems += count_problem("decimals, where it is not None,", decimals, low=0)
    if n_jobs != -1:
        problems += count_problem("n_jobs, where it is not -1,", n_jobs)
    if promised is not None and not isinstance(promised, PrivacyGuarantee):
        problems.append(f"promised must be a PrivacyGuarantee, got {promised!r:.60}")
    if isinstance(target, Design):
        if neighbours is not None and not isinstance(neighbours, Neighbours):
            problems.append(f"neighbours must be Neighbours, got {neighbours!r:.60}")
    elif not callable(target):
        problems.append(f"target must be a design or sample(side, runs, rng), got {target!r:.60}")
    elif neighbours is not None or view != "releases":
        problems.append("neighbours and view must be left out where target is a callable: it is both sides")
    return problems


def _promise(design: Design, pair: Neighbours) -> PrivacyGuarantee | None:
    """The design's own guarantee for what the neighbours differ in."""
    placed = design._placed(pair.first)
    guarantee = placed.guarantee(pair.horizon, pair.first.n_arms)
    if guarantee is None or guarantee.unit == pair.unit:
        return guarantee
    return placed.reward_guarantee(pair.horizon, pair.first.n_arms) if pair.unit == "reward" else None


def _gather(source: _Source, side: int, runs: int, n_jobs: int) -> Any:
    pieces = [(start, min(start + _CHUNK, runs)) for start in range(0, runs, _CHUNK)]
    if n_jobs == 1 or len(pieces) == 1:
        parts = [source.outputs(side, *piece) for piece in pieces]
    else:
        parts = Parallel(n_jobs=n_jobs)(delayed(source.outputs)(side, *piece) for piece in pieces)
    return np.concatenate(parts)


def _child(root: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key))


@dataclass(frozen=True, eq=False)
class _Called:
    """Outputs of a callable."""

    sample: OutputSampler
    root: np.random.SeedSequence

    @property
    def name(self) -> str:
        return str(getattr(self.sample, "__name__", repr(self.sample)))

    def outputs(self, side: int, start: int, stop: int) -> Any:
        rng = generator(_child(self.root, side, start // _CHUNK))
        found = np.asarray(self.sample(side, stop - start, rng), dtype=np.float64)
        if found.ndim not in (1, 2) or found.shape[0] != stop - start or np.isnan(found).any():
            raise ParameterError(
                "epsilon_lower_bound",
                [
                    f"the sampler must return {stop - start} rows of numbers without NaN, "
                    f"got shape {found.shape}"
                ],
            )
        return found

    def event(self, found: Found, learned: LearnedScore | None) -> str:
        if learned is None:
            return f"the output is at {'least' if found.upper else 'most'} {found.cut:.9g}"
        return learned.event(found, "the outputs")


def _design_source(design: Design, pair: Neighbours, view: str, root: np.random.SeedSequence) -> _Source:
    for env in (pair.first, pair.second):
        design._check(env, pair.horizon, 1, None, 0)
    if view == "actions":
        shown = pair.horizon - len(pair.hidden)
        if shown * math.log(pair.first.n_arms) > math.log(_MOST_SEQUENCES):
            raise ParameterError(
                "epsilon_lower_bound",
                [f"view='actions' needs a shorter horizon: {shown} rounds have too many action sequences"],
            )
        return _Actions(design, pair, root)
    if pair.score is None:
        raise ParameterError("epsilon_lower_bound", ["neighbours must have a score where view is 'releases'"])
    return _Releases(design, pair, root)


@dataclass(frozen=True, eq=False)
class _Designed:
    """Runs of a design on two neighbouring trials."""

    design: Design
    pair: Neighbours
    root: np.random.SeedSequence

    @property
    def name(self) -> str:
        return f"{self.design!r}, {self.pair.horizon} rounds: {self.pair.differs}"

    def transcripts(self, side: int, start: int, stop: int) -> Any:
        env = (self.pair.first, self.pair.second)[side]
        return sample_transcripts(self.design, env, self.pair.horizon, start, stop, _child(self.root, side))


@dataclass(frozen=True, eq=False)
class _Releases(_Designed):
    """Scores of all that is released, white box."""

    def outputs(self, side: int, start: int, stop: int) -> FloatArray:
        score = self.pair.score
        assert score is not None
        return np.concatenate(
            [np.asarray(score(piece), dtype=np.float64) for piece in self.transcripts(side, start, stop)]
        )

    def event(self, found: Found, learned: LearnedScore | None) -> str:
        return f"{self.pair.score_name} is at {'least' if found.upper else 'most'} {found.cut:.9g}"


@dataclass(frozen=True, eq=False)
class _Actions(_Designed):
    """Sequences of actions, black box: each as one number."""

    def outputs(self, side: int, start: int, stop: int) -> FloatArray:
        return np.concatenate([self._codes(piece) for piece in self.transcripts(side, start, stop)])

    def _codes(self, piece: Transcripts) -> FloatArray:
        shown = self._shown()
        powers = self.pair.first.n_arms ** np.arange(len(shown) - 1, -1, -1, dtype=np.int64)
        return np.asarray((piece.actions[:, shown] @ powers)[:, None])

    def _shown(self) -> list[int]:
        return [step for step in range(self.pair.horizon) if step not in self.pair.hidden]

    def event(self, found: Found, learned: LearnedScore | None) -> str:
        assert learned is not None
        codes = learned.members(found)
        n_arms = self.pair.first.n_arms
        shown = self._shown()
        sequence = [str(int(codes[0]) // n_arms**place % n_arms) for place in range(len(shown) - 1, -1, -1)]
        more = f", or one of {codes.size - 1} other sequences" if codes.size > 1 else ""
        rounds = f"rounds {', '.join(str(step + 1) for step in shown)}" if self.pair.hidden else "all rounds"
        return f"the arms pulled in {rounds} are {' '.join(sequence)}{more}"
