"""Trials of corrected DP-ConSE, and how its public state follows from the noisy sums and counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.designs.audit_trials import FAIR, AuditTrial, NodeNoise, Replayed, laplace_uniforms
from adaptinf.designs.conse.epochs import ESTIMATION_BETTER, ESTIMATION_RANDOMISED, LEARNING_BETTER
from adaptinf.designs.conse.private_kernel import window_ends
from adaptinf.simulation.environments import Tableau
from adaptinf.simulation.environments.synthetic import BernoulliArms
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray, IntArray

_CONTRAST, _ARRIVALS = 0, 1
_END, _NAME, _GROUP, _VALUE = range(4)
_LEAST, _MOST, _PER_EPSILON = 1_200, 6_000, 400


@dataclass(frozen=True, slots=True, eq=False)
class SumsReplay:
    """Whose worse arm is dropped, T_min, and who enters the trial with which probability; contexts (rounds,).

    All of it from released numbers alone. Coins decide the rest: actions are held against the public state
    where this leaves no choice.
    """

    tables: Any
    contexts: IntArray
    override: int = -1

    def __call__(self, seen: Transcripts) -> tuple[Replayed, ...]:
        """The public state at the end, and the rounds in which it leaves no choice."""
        tables, n_features = self.tables, self.tables.n_features
        runs, horizon = seen.actions.shape
        begin, half = 0, horizon // 2
        drawn = np.empty((runs, horizon), dtype=np.bool_)
        arm = np.zeros((runs, n_features))
        decided = np.zeros((runs, n_features), dtype=np.bool_)
        pooled, total = np.zeros((runs, n_features)), np.zeros((runs, n_features))
        forced = np.zeros((runs, horizon), dtype=np.int64)
        for end in tables.ends:
            contexts = self.contexts[begin:end]
            drawn[:, begin:end], forced[:, begin:end] = ~decided[:, contexts], arm[:, contexts]
            arrivals, contrast = (
                released_at(seen, int(end), code, n_features) for code in (_ARRIVALS, _CONTRAST)
            )
            total += arrivals
            pooled += np.where(decided, 0.0, contrast)
            upper = np.maximum(arrivals + tables.arrival_scale * tables.log_two, 0.0)
            threshold = np.sqrt(0.5 * upper * tables.log_four) + tables.contrast_scale * tables.log_two
            dropped = ~decided & (np.abs(contrast) > threshold)
            arm = np.where(dropped, contrast > 0.0, arm)
            decided |= dropped
            begin = int(end)
        arm = np.where(decided, arm, pooled > 0.0)
        total = np.maximum(1.0, total)
        powers = [math.pow(one, 1.0 - tables.alpha) for one in total.min(axis=1).tolist()]
        budget = np.maximum(tables.least, np.array(powers))
        inclusion = np.minimum(1.0, budget[:, None] / total)
        drawn[:, half:] = inclusion[:, self.contexts[half:]] >= 1.0
        forced[:, half:] = arm[:, self.contexts[half:]]
        kept = np.isin(seen.statuses, (LEARNING_BETTER, ESTIMATION_BETTER))
        overridden = seen.statuses == self.override
        learning = overridden | (np.arange(horizon) >= half)
        ends = 1 + 2 * n_features
        exact = (self._counts(seen),) if tables.arrival_scale == 0.0 else ()
        return (
            *exact,
            Replayed("T_min", seen.outcomes[:, :1], budget[:, None], "half-time, number"),
            Replayed("the share of the trial", seen.outcomes[:, ends:][:, :n_features], inclusion, "context"),
            Replayed("the better arm", seen.outcomes[:, ends + n_features :], arm, "context"),
            Replayed("whether a coin chose", ~kept | learning, drawn | learning),
            Replayed("the arm", seen.actions, np.where(kept & ~overridden, forced, seen.actions)),
        )

    def _counts(self, seen: Transcripts) -> Replayed:
        """Exact counts of a single context: the lengths of the windows, and who entered the trial."""
        ends = [int(end) for end in self.tables.ends]
        entered = (seen.statuses == ESTIMATION_RANDOMISED).sum(axis=1, keepdims=True)
        lengths = np.broadcast_to(np.diff([0, *ends]), (len(entered), len(ends)))
        shown = [released_at(seen, end, _ARRIVALS, 1) for end in (*ends, seen.actions.shape[1])]
        return Replayed(
            "the exact count",
            np.concatenate(shown, axis=1),
            np.concatenate([lengths, entered], axis=1),
            "release",
        )


def released_at(seen: Transcripts, end: int, code: int, n_features: int) -> FloatArray:
    """What is released of each context after a round, NaN where nothing is; shape (runs, contexts)."""
    found = np.full((seen.actions.shape[0], n_features), np.nan)
    run, row = np.nonzero((seen.releases[..., _END] == end) & (seen.releases[..., _NAME] == code))
    found[run, seen.releases[run, row, _GROUP].astype(np.int64)] = seen.releases[run, row, _VALUE]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class SumsNoise:
    """Noise of the released sums and counts; contexts (rounds,), ends of the windows (windows,)."""

    contexts: IntArray
    ends: IntArray
    contrast_scale: float
    arrival_scale: float
    fair: bool = False

    def __call__(self, seen: Transcripts) -> tuple[NodeNoise, ...]:
        """Every sum and count, window after window, and those of the trial."""
        horizon = seen.actions.shape[1]
        n_features = int(self.contexts.max()) + 1
        drawn = ~np.isin(seen.statuses, (LEARNING_BETTER, ESTIMATION_BETTER))
        drawn &= seen.statuses <= ESTIMATION_BETTER
        gain = (2.0 * seen.actions - 1.0) * (np.clip(seen.rewards, 0.0, 1.0) - 0.5) * drawn
        columns, names, groups, begin = [], [], [], 0
        for end in [*self.ends.tolist(), horizon]:
            last = end == horizon
            for code, what, scale in (
                (_ARRIVALS, "arrivals", self.arrival_scale),
                (_CONTRAST, "contrast", self.contrast_scale),
            ):
                if scale == 0.0:
                    continue  # exact counts are recomputed
                released = released_at(seen, end, code, n_features)
                for feature in range(n_features):
                    mine = self.contexts[begin:end] == feature
                    counted = (seen.statuses[:, begin:end] == ESTIMATION_RANDOMISED) | (not last)
                    part = counted if code == _ARRIVALS else gain[:, begin:end]
                    noise = released[:, feature] - (part * mine).sum(axis=1)
                    columns.append(laplace_uniforms(noise, scale))
                    names.append(f"the {what} of context {feature} at round {end}")
                    groups.append(code)
            begin = end
        return (
            NodeNoise(
                np.stack(columns, axis=1),
                names,
                np.array(groups),
                ["all contrasts", "all arrivals"],
                seen.rewards - FAIR if self.fair else np.zeros((0, 0)),
                [f"the reward of round {step + 1}" for step in range(horizon)],
            ),
        )


def corrected_trials(design: Any) -> tuple[AuditTrial, ...]:
    """Three contexts, unequally often, rewards beyond [0, 1]; and a trial without contexts, 0/1 rewards.

    With exact counts, which are for a single context, the first has none either.
    """
    exact = design.contrast_share == 1.0
    contrast_budget = design.contrast_share * design.epsilon
    scales = 1.0 / contrast_budget, 0.0 if exact else 2.0 / (design.epsilon - contrast_budget)
    horizon = int(min(_MOST, max(_LEAST, math.ceil(_PER_EPSILON / design.epsilon))))
    contexts = np.tile([0, 0, 1, 0, 2, 1], horizon // 6 + 1)[:horizon]
    pays = np.array([[-2.0, 3.0], [0.5, 0.5], [1.0, 0.25]])
    paid = pays[contexts]
    contexts = contexts * (not exact)
    mixed: Any = Tableau(paid, None if exact else contexts)
    coins: Any = BernoulliArms([FAIR, FAIR])
    short = _LEAST // 4
    number = "no" if exact else "three"
    kinds = [(f"{number} contexts, {horizon:,} rounds, rewards beyond [0, 1]", mixed, contexts)]
    kinds.append(
        (f"no contexts, {short} rounds, rewards by fair coins", coins, np.zeros(short, dtype=np.int64))
    )
    trials = []
    for words, env, features in kinds:
        rounds = features.size
        ends = window_ends(rounds, design.first_window, env.n_features)
        noise = SumsNoise(features, ends, *scales, fair=env is coins)
        tables = design.program(env, rounds, recording=True).tables
        trials.append(AuditTrial(words, env, rounds, SumsReplay(tables, features), noise))
    return tuple(trials)
