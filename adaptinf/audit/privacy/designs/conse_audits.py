"""Audits of DP-ConSE: neighbours, trials, and consequences of noisy sums and counts."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adaptinf.audit.privacy.designs.audited_trial import (
    FAIR,
    UNIT_RANGE,
    AuditTrial,
    Neighbours,
    NodeNoise,
    NodeUnits,
    Replayed,
    audit_trials,
    fair_rewards,
    laplace_uniforms,
    neighbouring_trials,
    record_unit,
)
from adaptinf.designs.contextual.conse import ESTIMATION_BETTER, ESTIMATION_RANDOMISED, LEARNING_BETTER
from adaptinf.designs.contextual.private_conse import DPConSE
from adaptinf.designs.contextual.private_conse_kernel import window_ends
from adaptinf.parameters import OneOf, refuse
from adaptinf.privacy.integer_mechanisms import TruncatedLaplace
from adaptinf.simulation.environments import Tableau
from adaptinf.simulation.environments.synthetic import BernoulliArms
from adaptinf.simulation.transcripts import Transcripts
from adaptinf.typing import FloatArray, IntArray

_ESTIMATE, _LENGTH = 2, 3
_HORIZON = 200
_MOST_ARRIVALS = 200


@dataclass(frozen=True, slots=True, eq=False)
class EstimateCame:
    """Score: -1 if only the first context's estimate was released, 1 if only the second's, otherwise 0."""

    n_rounds: int
    contexts: tuple[int, int]

    def __call__(self, transcripts: Transcripts) -> FloatArray:
        """Scores of the runs, an array of shape (runs,)."""
        columns = transcripts.releases
        at_round = (columns[..., 0] == self.n_rounds) if self.n_rounds else (columns[..., 0] > 0.0)
        came = [
            (at_round & (columns[..., 1] == _ESTIMATE) & (columns[..., 2] == context)).any(axis=1)
            for context in self.contexts
        ]
        return np.asarray(came[1].astype(np.float64) - came[0])


@dataclass(frozen=True, slots=True, eq=False)
class ActionRatio:
    """Log-likelihood ratio of other participants' actions in the second half, without other outputs.

    Shapes: log_ratios (others + 1,).
    """

    rounds: tuple[tuple[int, ...], tuple[int, ...]]
    log_ratios: tuple[FloatArray, FloatArray]

    def __call__(self, transcripts: Transcripts) -> FloatArray:
        """Scores of the runs, an array of shape (runs,)."""
        better = transcripts.outcomes[:, -2:]
        total = np.zeros(better.shape[0])
        for context, (rounds, log_ratio) in enumerate(zip(self.rounds, self.log_ratios, strict=True)):
            other = transcripts.actions[:, list(rounds)] != better[:, context : context + 1]
            positions = np.arange(1, len(rounds) + 1)
            total += log_ratio[(other * positions).max(axis=1)]
        return total


@dataclass(frozen=True, slots=True, eq=False)
class LengthRatio:
    """Log-likelihood ratio of all the released lengths for two possible values of their common centre.

    Shapes: log_ratios (lengths,).
    """

    log_ratios: FloatArray

    def __call__(self, transcripts: Transcripts) -> FloatArray:
        """Scores of the runs, an array of shape (runs,)."""
        columns = transcripts.releases
        of_lengths = columns[..., 1] == _LENGTH
        lengths = np.where(of_lengths, columns[..., 3], 0.0).astype(np.int64)
        ratios = self.log_ratios[np.minimum(lengths, self.log_ratios.size - 1)]
        return np.asarray(np.where(of_lengths, ratios, 0.0).sum(axis=1))


def published_neighbours(epsilon: float, alpha: float) -> tuple[Neighbours, ...]:
    """Neighbours that differ in the context of a second-half participant, in a trial of 200 rounds."""
    # No batch of the first half closes within 100 rounds, so all arms of the first half are chosen by fair
    # coins. In the first two pairs, the outputs of one trial are impossible in the other.
    half = _HORIZON // 2
    some = [1] * (half // 4) + [0] * (half - half // 4)
    turns = [0, 1] * (half // 2)
    center = _center(half // 4, alpha, _HORIZON)
    closing, hidden = half + 2 * (center - 1), half + 2 * max(center - 2, 0)
    rare = [0] + [1] * (half - 1)
    came = "whether the estimate of context 0 was released at all (-1 if it was)"
    closed = "which context's estimate was released with the participant (0's: -1, 1's: 1)"
    ratio = "the log-likelihood ratio of the other participants' actions"
    return (
        _context_pair(some + turns, closing, EstimateCame(closing + 1, (0, 1)), closed),
        _context_pair(rare + [1] * half, half, EstimateCame(0, (0, -1)), came),
        _context_pair(some + turns, hidden, _action_ratio(some + turns, hidden, epsilon, center), ratio),
    )


def shared_center_neighbours(epsilon: float, alpha: float, n_features: int = 20) -> Neighbours | None:
    """Neighbours in which a first-half participant changes the common centre of all lengths."""
    # One context has f arrivals in the first half, or f + 1 with the participant, as all other contexts have.
    # The rarest context determines the centre, so the participant changes it.
    for arrivals in range(1, _MOST_ARRIVALS):
        half = n_features * (arrivals + 1)
        lower, upper = (_center(count, alpha, 2 * half) for count in (arrivals, arrivals + 1))
        if lower < upper:
            break
    else:
        return None
    contexts = [feature for feature in range(n_features) for _ in range(arrivals + 1)]
    law, sizes = TruncatedLaplace(epsilon=epsilon, calibration="published"), np.arange(upper + 1)
    score = LengthRatio(np.log(law.probability(sizes, upper) / law.probability(sizes, lower)))
    name = "the log-likelihood ratio of the released lengths"
    return _context_pair(contexts * 2, 0, score, name, kinds=(1, 0))


def _center(arrivals: int, alpha: float, horizon: int) -> int:
    """Integer part of T_min if a context with this number of arrivals in the first half is the rarest."""
    return math.floor(max(math.log(horizon), math.pow(arrivals, 1.0 - alpha)))


def _context_pair(
    contexts: list[int],
    participant: int,
    score: EstimateCame | ActionRatio | LengthRatio,
    score_name: str,
    kinds: tuple[int, int] = (0, 1),
) -> Neighbours:
    """Neighbours in which one participant has either of two contexts and rewards are uninformative."""
    sides = []
    for kind in kinds:
        given = list(contexts)
        given[participant] = kind
        sides.append(Tableau(np.full((len(given), 2), 0.5), given))
    where = "first" if participant < len(contexts) // 2 else "second"
    return Neighbours(
        sides[0],
        sides[1],
        horizon=len(contexts),
        unit="record",
        differs=f"a participant of the {where} half has context {kinds[0]}, or context {kinds[1]}",
        score=score,
        score_name=score_name,
        hidden=(participant,),
    )


def _action_ratio(contexts: list[int], participant: int, epsilon: float, center: int) -> ActionRatio:
    half = len(contexts) // 2
    others = [step for step in range(half, len(contexts)) if step != participant]
    rounds = tuple(tuple(step for step in others if contexts[step] == feature) for feature in (0, 1))
    log_ratios = []
    for feature, steps in enumerate(rounds):
        place = 1 + sum(step < participant for step in steps)
        without = _log_chances(len(steps), None, epsilon, center)
        with_participant = _log_chances(len(steps), place, epsilon, center)
        log_ratios.append(with_participant - without if feature else without - with_participant)
    return ActionRatio((rounds[0], rounds[1]), (log_ratios[0], log_ratios[1]))


def _log_chances(others: int, place: int | None, epsilon: float, center: int) -> FloatArray:
    """Log-probability of a sequence of arms, by the last arrival on the worse arm; shape (others + 1,)."""
    # The first T of the other participants have fair coins, or one fewer if the participant arrives at
    # position `place`, up to T. The rest receive the better arm.
    law = TruncatedLaplace(epsilon=epsilon, calibration="published")
    lengths = np.arange(others + 1)
    coins = np.zeros(others + 1)
    randomised = lengths if place is None else lengths - (lengths >= place)
    np.add.at(coins, randomised, law.probability(lengths, center))
    coins[others] += law.tail(others, center)
    weights = coins * 0.5 ** np.arange(others + 1)
    suffix = list(itertools.accumulate(weights[::-1]))[::-1]
    return np.log(suffix)


_CONTRAST, _ARRIVALS = 0, 1
_END, _NAME, _GROUP, _VALUE = range(4)
_LEAST, _MOST, _PER_EPSILON = 1_200, 6_000, 400
_LEAST_ROUNDS = 3
_SHOWN = 10
_LONGEST = 480
_RARE = 4
_GAIN, _LOSS = (0.0, 1.0), (1.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class CountsReplay:
    """Exact counts of a single context: lengths of windows, and the number in the trial."""

    ends: IntArray

    def __call__(self, seen: Transcripts) -> tuple[Replayed, ...]:
        """The counts of all windows in order, and that of the trial."""
        ends = [int(end) for end in self.ends]
        entered = (seen.statuses == ESTIMATION_RANDOMISED).sum(axis=1, keepdims=True)
        lengths = np.broadcast_to(np.diff([0, *ends]), (len(entered), len(ends)))
        shown = [released_at(seen, end, _ARRIVALS, 1) for end in (*ends, seen.actions.shape[1])]
        counts = np.concatenate([lengths, entered], axis=1)
        return (Replayed("the exact count", np.concatenate(shown, axis=1), counts, "release"),)


def released_at(seen: Transcripts, end: int, code: int, n_features: int) -> FloatArray:
    """Releases for each context after a round, NaN if there are none; shape (runs, contexts)."""
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
        """The sums and counts of all windows in order, and those of the trial."""
        horizon = seen.actions.shape[1]
        n_features = int(self.contexts.max()) + 1
        drawn = ~np.isin(seen.statuses, (LEARNING_BETTER, ESTIMATION_BETTER))
        drawn &= seen.statuses <= ESTIMATION_BETTER
        gain = (2.0 * seen.actions - 1.0) * (np.clip(seen.rewards, 0.0, 1.0) - 0.5) * drawn
        columns, names, groups, begin = [], [], [], 0
        noises, scales, ends, hidden = [], [], [], []
        for end in [*self.ends.tolist(), horizon]:
            last = end == horizon
            for code, what, scale in (
                (_ARRIVALS, "arrivals", self.arrival_scale),
                (_CONTRAST, "contrast", self.contrast_scale),
            ):
                if scale == 0.0:
                    continue  # Exact counts have no noise: they are recomputed instead.
                released = released_at(seen, end, code, n_features)
                for feature in range(n_features):
                    mine = self.contexts[begin:end] == feature
                    counted = (seen.statuses[:, begin:end] == ESTIMATION_RANDOMISED) | (not last)
                    part = counted if code == _ARRIVALS else gain[:, begin:end]
                    total = (part * mine).sum(axis=1)
                    noise = released[:, feature] - total
                    noises.append(noise)
                    scales.append(scale)
                    ends.append(end - 1)
                    hidden.append(total * (self.fair and code == _CONTRAST))
                    columns.append(laplace_uniforms(noise, scale))
                    names.append(f"the {what} of context {feature} at round {end}")
                    groups.append(code)
            begin = end
        steps = np.broadcast_to(np.array(ends, dtype=np.int64), (len(seen.actions), len(ends)))
        units = NodeUnits(np.stack(noises, axis=1), np.array(scales), steps, np.stack(hidden, axis=1))
        return (
            NodeNoise(
                np.stack(columns, axis=1),
                names,
                np.array(groups),
                ["all contrasts", "all arrivals"],
                **fair_rewards(seen, self.fair),
                units=units,
            ),
        )


@audit_trials.register
def conse_trials(design: DPConSE) -> tuple[AuditTrial, ...]:
    """Trials in which the public state is recomputed and the noise tested; none for the published form."""
    return corrected_trials(design) if design.calibration == "corrected" else ()


def corrected_trials(design: DPConSE) -> tuple[AuditTrial, ...]:
    """Three unequally frequent contexts with rewards outside [0, 1], and 0/1 rewards without contexts."""
    # Exact counts require a single context, so the first trial then has no contexts either.
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
        (f"no contexts, {short} rounds, rewards from fair coins", coins, np.zeros(short, dtype=np.int64))
    )
    trials = []
    for words, env, features in kinds:
        rounds = features.size
        ends = window_ends(rounds, design.first_window, env.n_features)
        noise = SumsNoise(features, ends, *scales, fair=env is coins)
        trials.append(AuditTrial(words, env, rounds, CountsReplay(ends) if exact else None, noise))
    return tuple(trials)


@neighbouring_trials.register
def conse_neighbours(design: DPConSE, unit: str | None = None) -> tuple[Neighbours, ...]:
    """Neighbouring trials for the corrected or the published form of the design."""
    # Pairs for the corrected calibration: a participant of the first half, alone in the window; one of the
    # second half; one of a window with others; and, for ``view="actions"``, one whose sum decides later
    # actions. In each of them the participant spends the whole of epsilon, or of epsilon_D for rewards. If
    # `contrast_share` is 1, only rewards can differ, and the last pair is omitted.
    # Pairs for the published calibration: the participant closes a batch; determines whether there is an
    # estimate; affects only other participants' actions; or changes the T_min of twenty contexts, unless no
    # participant can at this alpha. The published calibration refuses ``"reward"``.
    unit = record_unit(unit)
    problems = OneOf("record", "reward")("unit", unit)
    if unit == "reward" and design.calibration == "published":
        problems.append("the published calibration gives no guarantee for rewards alone")
    refuse("neighbouring_trials", problems)
    if design.calibration == "corrected":
        contrasts = design.contrast_share * design.epsilon
        return corrected_neighbours(
            unit, contrasts, (1.0 - design.contrast_share) * design.epsilon, design.first_window
        )
    shared = shared_center_neighbours(design.epsilon, design.alpha)
    return published_neighbours(design.epsilon, design.alpha) + ((shared,) if shared else ())


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One of two neighbouring data sets; contexts (rounds,), rewards (rounds, 2)."""

    contexts: IntArray
    rewards: FloatArray

    def tableau(self) -> Tableau:
        """The environment of the trial."""
        return Tableau(self.rewards, self.contexts, reward_range=UNIT_RANGE)


@dataclass(frozen=True, slots=True, eq=False)
class WindowRatio:
    """Log-likelihood ratio of all outputs, if the participant's sums are released in one round."""

    # Outputs before that round have the same distribution on both sides, and so have later outputs, given
    # everything up to `stop`. In between, the ratio is that of the sums, given the actions. Coins that no
    # output shows are averaged over; these are the participant's own if `unseen`, and in the second half
    # those that decide who is in the trial. Rounds with the status `override` enter no sum, and their arms
    # have the same distribution on both sides.

    sides: tuple[Side, Side]
    start: int
    stop: int
    contrast_scale: float
    arrival_scale: float
    unseen: int
    override: int = -1

    def __call__(self, transcripts: Transcripts) -> FloatArray:
        """Scores of the runs, an array of shape (runs,)."""
        first, second = (self._log_density(transcripts, side) for side in self.sides)
        return np.asarray(second - first)

    def _log_density(self, transcripts: Transcripts, side: Side) -> FloatArray:
        n_features = int(side.contexts.max()) + 1
        contrasts = self._released(transcripts, _CONTRAST, n_features)
        arrivals = self._released(transcripts, _ARRIVALS, n_features)
        total = np.full(contrasts.shape[0], -np.inf)
        rounds = range(self.start, self.stop)
        for included in itertools.product((1, 0) if self.start else (1,), repeat=len(rounds)):
            for own in (0, 1) if self.start <= self.unseen < self.stop else (0,):
                log_weight = np.zeros(total.size)
                sums, counts = np.zeros(contrasts.shape), np.zeros(arrivals.shape)
                for step, inside in zip(rounds, included, strict=True):
                    feature, drawn = side.contexts[step], transcripts.statuses[:, step] != self.override
                    action = np.full(total.size, own) if step == self.unseen else transcripts.actions[:, step]
                    chance = self._log_chance(transcripts, n_features, feature, action, inside)
                    log_weight += np.where(drawn, chance, 0.0 if inside else -np.inf)
                    if inside:
                        gain = np.take(side.rewards[step], action) - 0.5
                        sums[:, feature] += (2.0 * action - 1.0) * gain * drawn
                        counts[:, feature] += drawn if self.start else 1.0
                log_weight -= (np.abs(contrasts - sums) / self.contrast_scale).sum(axis=1)
                log_weight -= self._misfit(np.abs(arrivals - counts).sum(axis=1))
                total = np.logaddexp(total, log_weight)
        return total

    def _misfit(self, distance: FloatArray) -> FloatArray:
        """For released counts, on the log scale; an exact count has probability 0 at all other counts."""
        if self.arrival_scale > 0.0:
            return distance / self.arrival_scale
        return np.where(distance > 0.0, np.inf, 0.0)

    def _released(self, transcripts: Transcripts, code: int, n_features: int) -> FloatArray:
        """The values released after round `stop`, of shape (runs, features)."""
        columns = transcripts.releases
        found = np.empty((columns.shape[0], n_features))
        for feature in range(n_features):
            rows = (columns[..., 0] == self.stop) & (columns[..., 1] == code) & (columns[..., 2] == feature)
            found[:, feature] = columns[..., 3][rows]
        return found

    def _log_chance(
        self, transcripts: Transcripts, n_features: int, feature: int, action: IntArray, inside: int
    ) -> FloatArray:
        """Log-probability that an arrival receives a given arm, whether or not it enters the trial."""
        inclusion, better = np.ones(action.size), np.zeros(action.size)
        if self.start:
            inclusion = transcripts.outcomes[:, 1 + 2 * n_features + feature]
            better = transcripts.outcomes[:, 1 + 3 * n_features + feature]
        chance = 0.5 * inclusion if inside else (1.0 - inclusion) * (action == better)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(chance))


def corrected_neighbours(
    unit: str, contrast_budget: float, arrival_budget: float, first_window: int | None
) -> tuple[Neighbours, ...]:
    """Neighbours that use the entire budget; the last pair is intended for audits of actions alone."""
    # The participant has rewards (0, 1) or (1, 0), and thus contributes +1/2 or -1/2 to the sum, whatever the
    # coin: hiding the coin gains nothing. The sums of rewards change by 1 in total, and with the context the
    # counts change by 2. Without a budget for counts there is one context, and records differ in rewards
    # only.
    if arrival_budget == 0.0:
        exact = 1.0 / contrast_budget, 0.0
        pairs = _alone("reward", 0, exact), _alone("reward", 2, exact)
        return tuple(
            replace(pair, unit=unit) for pair in (*pairs, _in_company("reward", exact, first_window))
        )
    scales = 1.0 / contrast_budget, 2.0 / arrival_budget
    return (
        _alone(unit, 0, scales),
        _alone(unit, 2, scales),
        _in_company(unit, scales, first_window),
        _later_actions(unit, arrival_budget, scales, first_window),
    )


def _pair(
    unit: str,
    contexts: list[int],
    rewards: FloatArray,
    participant: int,
    window: tuple[int, int],
    scales: tuple[float, float],
    differs: str,
    moved: bool = True,
    hidden: tuple[int, ...] | None = None,
) -> Neighbours:
    """Participant with context 0 and rewards (0, 1), or with rewards (1, 0) and, for records, context 1."""
    sides = []
    for own, feature in ((_GAIN, 0), (_LOSS, int(unit == "record" and moved))):
        given, paid = np.array(contexts) if scales[1] > 0.0 else np.zeros(len(contexts), int), rewards.copy()
        given[participant], paid[participant] = feature, own
        sides.append(Side(given, paid))
    unseen = participant if unit == "record" else -1
    score = WindowRatio((sides[0], sides[1]), *window, *scales, unseen)
    return Neighbours(
        sides[0].tableau(),
        sides[1].tableau(),
        horizon=len(contexts),
        unit=unit,
        differs=f"{differs} has {_differences(unit, moved)}",
        score=score,
        score_name="the log-likelihood ratio of the releases and of the actions that are outputs",
        hidden=hidden if hidden is not None else (participant,) * (unit == "record"),
    )


def _differences(unit: str, moved: bool) -> str:
    if unit == "record" and moved:
        return "context 0 and rewards 0 and 1 of the two arms, or context 1 and rewards 1 and 0"
    return "rewards 0 and 1 of the two arms, or 1 and 0"


def _alone(unit: str, participant: int, scales: tuple[float, float]) -> Neighbours:
    """The smallest trial: one participant in the first half, two in the second; one of them changes."""
    contexts = [0, 0, 1] if participant == 0 else [0, 1, 0]
    window = (0, 1) if participant == 0 else (1, _LEAST_ROUNDS)
    where = "first half, alone in its window," if participant == 0 else "second half"
    rewards = np.full((_LEAST_ROUNDS, 2), 0.5)
    return _pair(unit, contexts, rewards, participant, window, scales, f"a participant of the {where}")


def _in_company(unit: str, scales: tuple[float, float], first_window: int | None) -> Neighbours:
    """A first window of up to six participants, whose contributions depend on their coins."""
    contexts = [0, 1, 0, 1, 0, 1] * 2
    window = (0, int(window_ends(len(contexts), first_window, 2)[0]))
    rewards = np.array([[0.5, 0.5], [0.0, 0.25], [1.0, 1.0], [0.0, 0.0], [0.75, 0.25], [1.0, 0.5]] * 2)
    return _pair(unit, contexts, rewards, 0, window, scales, "the first participant of a trial of 12")


def _later_actions(
    unit: str, arrival_budget: float, scales: tuple[float, float], first_window: int | None
) -> Neighbours:
    """A long second half, in which most participants receive the arm favoured by the first half's sums."""
    # The other participants have rewards of 1/2, which add nothing to the sums. A second context is so rare
    # that T_min is low, so the first half is short of data.
    horizon = 64
    while horizon < _LONGEST and horizon / 2 - _RARE < 16.0 * math.log(horizon) / arrival_budget:
        horizon += 16
    half = horizon // 2
    contexts = ([0] * (half - _RARE) + [1] * _RARE) * 2
    hidden = tuple(step for step in range(horizon) if not half <= step < half + _SHOWN)
    window = (0, int(window_ends(horizon, first_window, 2)[0]))
    rewards = np.full((horizon, 2), 0.5)
    differs = "the first participant of a trial whose second half is long"
    pair = _pair(unit, contexts, rewards, 0, window, scales, differs, moved=False, hidden=hidden)
    return replace(pair, for_actions=True)
