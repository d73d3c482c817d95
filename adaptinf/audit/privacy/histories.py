"""Events in a live trial, participant by participant, and how one of them can differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.designs.base import Design
from adaptinf.errors import ParameterError
from adaptinf.parameters import Count, refuse
from adaptinf.sessions.participants import Participants
from adaptinf.typing import FloatArray

# Neighbours may differ in an outcome or context; in an outcome that comes earlier, later or never, or is
# corrected; or in a participant who is erased. A guarantee need not cover all of these, so each is a kind of
# its own.
KINDS = ("value", "context", "early", "late", "never", "amended", "erased")
# Delays are counted in blocks from 0, so -1 can stand for an outcome that is never recorded.
NEVER = -1
ASSIGN, RECORD, LOSE, AMEND, ERASE = "assign", "record", "lose", "amend", "erase"
_OUTSIDE = np.array([-3.0, 0.0, 0.25, 0.5, 1.0, 4.0])
_RARE, _CORRECTED = 0.08, 0.3125
# The neighbour's outcome is the other end of the range, a value beyond it, which is clipped, or a value
# inside, which is rounded.
ENDS, OUTSIDE, INSIDE = range(3)


@dataclass(frozen=True)
class Terms:
    """The declaration of a trial and its number of participants; the guarantee refers to the horizon."""

    # Participants arrive in blocks, and outcomes are recorded when a block is complete, so several decisions
    # are pending at once. Without a window each outcome is recorded immediately.

    arms: tuple[Any, ...]
    horizon: int
    rounds: int
    window: int | None
    features: tuple[Any, ...] | None = None
    dimension: int | None = None
    per_arm: bool = False
    reward_range: tuple[float, float] = (0.0, 1.0)
    fewest: int | None = None
    """The smallest number of arms allowed by the design; None if the arms were declared by the user."""

    @property
    def declared(self) -> tuple[Any, Any, Any, Any, Any]:
        """The information about participants that is declared in advance."""
        return self.arms, self.features, self.dimension, self.per_arm, self.reward_range

    @property
    def block(self) -> int:
        """Number of participants in a block; outcomes that arrive one block later are still timely."""
        return 1 if self.window is None else min(max((self.window + 1) // 2, 1), 16)

    @property
    def punctual(self) -> int:
        """Largest number of blocks by which a timely outcome may be delayed."""
        return 0 if self.window is None or self.window < 2 * self.block - 1 else 1

    @property
    def overdue(self) -> int:
        """Number of blocks after which an outcome is certain to be late."""
        return 0 if self.window is None else self.window // self.block + 1

    @property
    def latest(self) -> int:
        """Number of participants whose windows end before the last participant arrives."""
        return max(self.rounds - (self.overdue + 2) * self.block, 1)


@dataclass(frozen=True)
class History:
    """Potential outcomes, contexts and times of arrival, by step (counted from 0).

    Shapes: rewards (rounds, arms), contexts (rounds,) codes or (rounds, arms, dimension).
    """

    # Delays count blocks. `amended` contains the new outcome and the blocks since the assignment, `erased`
    # the blocks.

    rewards: FloatArray
    contexts: Any
    delays: tuple[int, ...]
    amended: Mapping[int, tuple[float, int]] = field(default_factory=dict)
    erased: Mapping[int, int] = field(default_factory=dict)

    def events(self, terms: Terms) -> Iterator[tuple[str, list[int]]]:
        """Events in order, each with its kind and the participants concerned."""
        rounds, block = len(self.delays), terms.block
        last = (rounds - 1) // block
        waiting: dict[int, list[tuple[str, int]]] = {}

        def later(step: int, blocks: int, kind: str) -> None:
            waiting.setdefault(min(step // block + blocks, last), []).append((kind, step))

        for step, delay in enumerate(self.delays):
            gone = self.erased.get(step)
            if delay == NEVER:
                if terms.window is None:
                    later(step, 0, LOSE)
            elif gone is None or delay < gone:
                later(step, delay, RECORD)
        for step, (_, blocks) in self.amended.items():
            later(step, blocks, AMEND)
        for step, blocks in self.erased.items():
            later(step, blocks, ERASE)
        for number in range(last + 1):
            yield ASSIGN, list(range(number * block, min((number + 1) * block, rounds)))
            happened = waiting.get(number, [])
            for kind in (RECORD, LOSE, AMEND, ERASE):
                if steps := [step for what, step in happened if what == kind]:
                    yield kind, steps


@dataclass(frozen=True)
class NeighbouringHistory:
    """A history that differs in one participant, with a description of the difference."""

    kind: str
    history: History
    step: int
    words: str


def base_history(terms: Terms, step: int, moved: int, rng: np.random.Generator) -> History:
    """A history in which a participant has a timely outcome of at least 1, which an audit then changes."""
    # For ENDS, the other participants have timely outcomes of 0 and 1: otherwise their own late or amended
    # outcomes could hide the one that differs. For the other kinds, outcomes are clipped or lie anywhere in
    # [0, 1], and a few are late, missing or corrected. If some are clipped and there are contexts, nobody
    # else has the participant's context.
    shape = terms.rounds, len(terms.arms)
    if moved == OUTSIDE:
        rewards = rng.choice(_OUTSIDE, shape)
    elif moved == INSIDE:
        rewards = rng.random(shape)
    else:
        rewards = (rng.random(shape) < 0.5).astype(np.float64)
    rewards[step] = 4.0 if moved == OUTSIDE else 1.0
    delays = np.zeros(terms.rounds, dtype=np.int64)
    amended: dict[int, tuple[float, int]] = {}
    if terms.window is not None:
        delays = rng.integers(0, terms.punctual + 1, terms.rounds)
        luck = np.full(terms.rounds, 0.5) if moved == ENDS else rng.random(terms.rounds)
        delays[luck < _RARE] = terms.overdue
        delays[luck < _RARE / 2.0] = NEVER
        for place in np.flatnonzero((luck > 1.0 - _RARE) & (delays >= 0)).tolist():
            amended[place] = _CORRECTED, int(delays[place]) + 1
        delays[step] = terms.punctual
        amended.pop(step, None)
    contexts = _contexts(terms, rng)
    if moved == OUTSIDE and terms.features is not None:
        contexts[:], contexts[step] = 0, len(terms.features) - 1
    return History(rewards, contexts, tuple(delays.tolist()), amended)


def _contexts(terms: Terms, rng: np.random.Generator) -> Any:
    """Contexts as recorded: codes of labels, vectors in the unit ball, or None."""
    if terms.features is not None:
        return rng.integers(0, len(terms.features), terms.rounds)
    if terms.dimension is None:
        return None
    vectors = rng.standard_normal((terms.rounds, len(terms.arms), terms.dimension))
    vectors *= (0.999 * rng.random(vectors.shape[:2]) ** 0.5 / np.linalg.norm(vectors, axis=2))[..., None]
    return vectors if terms.per_arm else vectors[:, 0]


def neighbour(
    base: History, terms: Terms, kind: str, step: int, moved: int, rng: np.random.Generator
) -> NeighbouringHistory:
    """The history that differs in one participant, in the way named by a kind in `KINDS`."""
    who = f"participant {step + 1}"
    if kind in ("value", "context"):
        rewards, words = _other_rewards(base.rewards, step, moved, rng)
        history = replace(base, rewards=rewards)
        if kind == "context":
            contexts = base.contexts.copy()
            contexts[step] = (contexts[step] + 1) % len(terms.features or (0,))
            history, words = replace(history, contexts=contexts), f"{words}, and another context"
        return NeighbouringHistory(kind, history, step, f"{who} has {words}")
    if kind == "amended":
        return _amended(base, terms, step, moved)
    if kind == "erased":
        return _erased(base, terms, step, moved)
    blocks, when = _OTHER_TIMES[kind](terms)
    delays = (*base.delays[:step], blocks, *base.delays[step + 1 :])
    return NeighbouringHistory(
        kind, replace(base, delays=delays), step, f"the outcome of {who} arrives {when}"
    )


def _amended(base: History, terms: Terms, step: int, moved: int) -> NeighbouringHistory:
    """An amended outcome: the correct value is changed, or a wrong first value is corrected."""
    right = float(base.rewards[step, 0])
    blocks = base.delays[step] + (terms.overdue if moved == OUTSIDE else 0)
    first, last = (right, 0.0) if moved == ENDS else ({OUTSIDE: -3.0, INSIDE: 0.0}[moved], right)
    rewards = base.rewards.copy()
    rewards[step] = first
    history = replace(base, rewards=rewards, amended={**base.amended, step: (last, blocks)})
    told = f"recorded as {first:.3g} and amended to {last:.3g}"
    words = f"the outcome {right:.3g} of participant {step + 1} is {told}"
    return NeighbouringHistory("amended", history, step, words)


def _erased(base: History, terms: Terms, step: int, moved: int) -> NeighbouringHistory:
    """The erasure of a participant before the outcome is recorded, or after the window."""
    # A design that uses contexts keeps a context until its window has ended, so its participants are erased
    # after the window.
    by_context = terms.features is not None or terms.dimension is not None
    if moved == OUTSIDE and not by_context:
        blocks, when = base.delays[step], "before the outcome is recorded"
    else:
        blocks, when = terms.overdue + 1, "after the window"
    rewards = base.rewards
    if moved == INSIDE:
        places = range(min(terms.rounds // 3, terms.latest - 1), terms.latest)
        step = next((low for low in places if _low_in_time(base, terms, low)), step)
        rewards = base.rewards.copy()
        rewards[step], when = 1.0, f"{when}, with an outcome of 1"
    history = replace(base, rewards=rewards, erased={step: blocks})
    return NeighbouringHistory("erased", history, step, f"participant {step + 1} is erased {when}")


def _low_in_time(base: History, terms: Terms, step: int) -> bool:
    in_time = 0 <= base.delays[step] <= terms.punctual
    return in_time and step not in base.amended and float(base.rewards[step].max()) < 0.5


_OTHER_TIMES: dict[str, Callable[[Terms], tuple[int, str]]] = {
    "early": lambda terms: (0, "earlier, with the block of participants"),
    "late": lambda terms: (terms.overdue, "later, after the window"),
    "never": lambda terms: (NEVER, "never"),
}


def _other_rewards(
    rewards: FloatArray, step: int, moved: int, rng: np.random.Generator
) -> tuple[FloatArray, str]:
    """Rewards (rounds, arms) with one row moved to the other end of its range, and a description."""
    low, high = {ENDS: (0.0, 1.0), OUTSIDE: (-3.0, 4.0)}.get(
        moved, (0.5 * rng.random(), 0.5 + 0.5 * rng.random())
    )
    others = rewards.copy()
    others[step] = np.where(rewards[step] < 0.5, high, low)
    told = [" or ".join(f"{value:.3g}" for value in np.unique(table[step])) for table in (others, rewards)]
    return others, f"the outcome {told[0]} instead of {told[1]}"


# A design's trial has at least the first number of participants; a declared trial is run with at most the
# second, which limits the time.
_LEAST, _MOST = 48, 64
_LONG, _SHORT_WINDOW, _LONG_WINDOW = 200, 9, 33
# Trials are this much longer than the design's own neighbouring trials, because outcomes that are still
# awaited enter no sum.
_SPARE = 1.1


def declared_terms(trial: Any) -> tuple[Design, Terms]:
    """The design of a trial and its terms; nothing else of the trial is read."""
    replay = trial._requests.read(lambda replay: replay)
    entry = replay.declared
    features = entry["features"]
    terms = Terms(
        arms=tuple(entry["arms"]),
        horizon=entry["horizon"],
        rounds=min(entry["horizon"], _MOST),
        window=entry.get("outcome_window"),
        features=None if features is None else tuple(features),
        dimension=entry["dimension"],
        per_arm=entry["per_arm"],
        reward_range=tuple(entry["reward_range"]),
    )
    return replay.design, terms


def design_terms(design: Design, horizon: int | None) -> tuple[Design, Terms]:
    """Arms and contexts of the design's own neighbouring trials, and a window if the design uses one."""
    # The design is that of the neighbouring trials, which may plan for fewer rounds; later outcomes then
    # enter no sum.
    try:
        pair = neighbouring_trials(design)[0]
    except ParameterError:
        n_arms, features, dimension, least = max(2, design.needs.min_arms), None, None, _LEAST
    else:
        n_arms, dimension = pair.first.n_arms, pair.first.dimension or None
        features = tuple(pair.first.features) or None
        least = round(_SPARE * pair.horizon)
        if pair.design is None:
            least = max(_LEAST, least)
        else:
            design = pair.design
    window = None
    if design.pending == "window":
        window = _SHORT_WINDOW if least <= _LONG else _LONG_WINDOW
        least += 0 if least <= _LONG else 2 * window
        longest = design.longest_window(least if horizon is None else horizon)
        window = int(max(0, min(window, longest)))
    rounds = least if horizon is None else int(horizon)
    refuse("audit.coupled", Count(design.needs.min_horizon)("horizon", rounds))
    arms = tuple(f"arm {number}" for number in range(n_arms))
    terms = Terms(arms, rounds, rounds, window, features, dimension, dimension is not None)
    alone = replace(terms, arms=arms[: design.needs.min_arms])
    participants = Participants(*alone.declared, design.domain)
    fits = not design._environment_problems(participants, rounds)
    return design, replace(terms, fewest=design.needs.min_arms if fits else n_arms)
