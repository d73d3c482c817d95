"""Sources of the outputs that a privacy audit examines: callables and designs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from adaptinf.audit.privacy.designs import Neighbours
from adaptinf.audit.privacy.live_runs import session_transcripts
from adaptinf.audit.privacy.lower_bound import Found, LearnedScore, bit_codes, digits_event
from adaptinf.designs.base import Design
from adaptinf.errors import ParameterError
from adaptinf.parameters import refuse
from adaptinf.privacy.noise import generator
from adaptinf.simulation.replicate import BLOCK, child
from adaptinf.simulation.transcripts import Transcripts, sample_transcripts
from adaptinf.typing import FloatArray

# Default numbers of runs on each data set, simulated and live; live runs are slower, so there are fewer.
DEFAULT_RUNS, LIVE_RUNS = 1_000_000, 1_000
# If the runs would take more rounds in total than these limits, their number is reduced, but not below these
# minima.
_ROUNDS, _FEWEST, _LIVE_ROUNDS, _FEWEST_LIVE = 1 << 28, 100_000, 80_000, 100
# Each piece of runs depends only on the seed and its own number, so results do not depend on the number of
# workers.
CHUNK = 256 * BLOCK

_MOST_SEQUENCES = 2.0**62
_VALUE = 3

# A user's sampler ``sample(side, runs, rng)`` returns outputs on data set 0 or 1 in the shape (runs,) or
# (runs, numbers).
OutputSampler = Callable[[int, int, np.random.Generator], Any]


class Source(Protocol):
    """A source of outputs, which are produced in mutually independent pieces."""

    @property
    def name(self) -> str:
        """Description of the target."""

    @property
    def default_runs(self) -> int:
        """Default number of runs on each data set."""

    def outputs(self, side: int, start: int, stop: int) -> Any:
        """Scores of shape (runs,), or outputs of shape (runs, numbers) from which a score must be learned."""

    def event(self, found: Found, learned: LearnedScore | None) -> str:
        """Description of the event."""


@dataclass(frozen=True, eq=False)
class CalledSource:
    """Outputs of a callable."""

    sample: OutputSampler
    view: str
    root: np.random.SeedSequence
    default_runs: int = DEFAULT_RUNS

    @property
    def name(self) -> str:
        """Name of the callable."""
        return str(getattr(self.sample, "__name__", repr(self.sample)))

    def outputs(self, side: int, start: int, stop: int) -> Any:
        """See `Source`."""
        rng = generator(child(self.root, side, start // CHUNK))
        found = np.asarray(self.sample(side, stop - start, rng), dtype=np.float64)
        if found.ndim not in (1, 2) or found.shape[0] != stop - start or np.isnan(found).any():
            raise ParameterError(
                "epsilon_lower_bound",
                [
                    f"the sampler must return {stop - start} rows of numbers without NaN, "
                    f"got shape {found.shape}"
                ],
            )
        return bit_codes(found) if self.view == "digits" else found

    def event(self, found: Found, learned: LearnedScore | None) -> str:
        """See `Source`."""
        if learned is None:
            return f"the output is at {'least' if found.upper else 'most'} {found.cut:.9g}"
        if self.view == "digits":
            return digits_event(found, learned, "the output")
        return learned.event(found, "the outputs")


def design_source(
    design: Design, pair: Neighbours, view: str, root: np.random.SeedSequence, live: bool = False
) -> Source:
    """Outputs of a design on two neighbouring trials, simulated or from sessions with exact noise."""
    for env in (pair.first, pair.second):
        design._check(env, pair.horizon, 1, None, 0)
    if view == "digits":
        return _Digits(design, pair, root, live)
    if view == "actions":
        refuse("epsilon_lower_bound", actions_problem(pair))
        return _Actions(design, pair, root, live)
    if pair.score is None:
        raise ParameterError("epsilon_lower_bound", ["neighbours must have a score if view is 'releases'"])
    return _Releases(design, pair, root, live)


def actions_problem(pair: Neighbours) -> list[str]:
    """Reasons why the actions of two neighbouring trials cannot be examined."""
    shown = pair.horizon - len(set(pair.hidden))
    if shown == 0:
        return [
            "view='actions' leaves nothing to examine: all actions of these neighbours are the "
            "participant's own"
        ]
    if shown * math.log(pair.first.n_arms) > math.log(_MOST_SEQUENCES):
        return [f"view='actions' requires a shorter horizon: {shown} rounds have too many action sequences"]
    return []


@dataclass(frozen=True, eq=False)
class _Designed:
    """Runs of a design on two neighbouring trials."""

    design: Design
    pair: Neighbours
    root: np.random.SeedSequence
    live: bool = False

    @property
    def name(self) -> str:
        how = ", sessions with exact noise" if self.live else ""
        return f"{self.design!r}{how}, {self.pair.horizon} rounds: {self.pair.differs}"

    @property
    def default_runs(self) -> int:
        if self.live:
            return min(LIVE_RUNS, max(_FEWEST_LIVE, _LIVE_ROUNDS // self.pair.horizon))
        return min(DEFAULT_RUNS, max(_FEWEST, _ROUNDS // self.pair.horizon))

    def transcripts(self, side: int, start: int, stop: int) -> Any:
        env = (self.pair.first, self.pair.second)[side]
        if self.live:
            seeds = [child(self.root, side, run) for run in range(start, stop)]
            return session_transcripts(self.design, env, self.pair.horizon, seeds)
        return sample_transcripts(self.design, env, self.pair.horizon, start, stop, child(self.root, side))


@dataclass(frozen=True, eq=False)
class _Releases(_Designed):
    """Scores of all releases (white box)."""

    def outputs(self, side: int, start: int, stop: int) -> FloatArray:
        return np.concatenate([self._scores(piece) for piece in self.transcripts(side, start, stop)])

    def _scores(self, piece: Transcripts) -> FloatArray:
        score = self.pair.score
        assert score is not None
        found = np.asarray(score(piece), dtype=np.float64)
        runs = piece.actions.shape[0]
        if self.live:  # A live run that lacks a release has no score; the replay reports the missing release.
            found = np.where(np.isnan(found), 0.0, found)
        if found.shape != (runs,) or np.isnan(found).any():
            raise ParameterError(
                "epsilon_lower_bound",
                [
                    f"the score of the neighbours must return one number per run ({runs} in total) without "
                    f"NaN; got shape {found.shape} with {int(np.isnan(found).sum())} NaN"
                ],
            )
        return found

    def event(self, found: Found, learned: LearnedScore | None) -> str:
        return f"{self.pair.score_name} is at {'least' if found.upper else 'most'} {found.cut:.9g}"


@dataclass(frozen=True, eq=False)
class _Digits(_Designed):
    """Magnitudes and lowest set bits of the released values."""

    def outputs(self, side: int, start: int, stop: int) -> FloatArray:
        return np.concatenate(
            [bit_codes(piece.releases[:, :, _VALUE]) for piece in self.transcripts(side, start, stop)]
        )

    def event(self, found: Found, learned: LearnedScore | None) -> str:
        assert learned is not None
        return digits_event(found, learned, "the released values")


@dataclass(frozen=True, eq=False)
class _Actions(_Designed):
    """Sequences of actions (black box), each coded as one number."""

    def outputs(self, side: int, start: int, stop: int) -> FloatArray:
        return np.concatenate([self._codes(piece) for piece in self.transcripts(side, start, stop)])

    def _codes(self, piece: Transcripts) -> FloatArray:
        shown = self._shown()
        powers = self.pair.first.n_arms ** np.arange(len(shown) - 1, -1, -1, dtype=np.int64)
        return np.asarray((piece.actions[:, shown] @ powers)[:, None])

    def _shown(self) -> list[int]:
        return sorted(set(range(self.pair.horizon)).difference(self.pair.hidden))

    def event(self, found: Found, learned: LearnedScore | None) -> str:
        assert learned is not None
        codes = learned.members(found)
        n_arms = self.pair.first.n_arms
        shown = self._shown()
        sequence = [str(int(codes[0]) // n_arms**place % n_arms) for place in range(len(shown) - 1, -1, -1)]
        more = f", or one of {codes.size - 1} other sequences" if codes.size > 1 else ""
        rounds = f"rounds {', '.join(str(step + 1) for step in shown)}" if self.pair.hidden else "all rounds"
        return f"the arms pulled in {rounds} are {' '.join(sequence)}{more}"
