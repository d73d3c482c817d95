"""How arms were chosen: one function a design, over all logs at once, in plain NumPy.

Each takes a world's outcomes, of which it looks only at those that are known by then, one uniform number for
every choice, and a generator for what else it draws. It returns the arms, and the chance of every arm before
each choice: a row a round, or a row a period, or none where the design draws nothing at random or does not
know its chances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from case_studies.scoreboard.worlds import LEAVES, World

FLOOR = 0.05
PERIODS = 20
LEAST = 0.01  # of a period's users, for every arm
DRAWS = 2_000
EPSILON = 0.1
BURN_IN = 20
GAMMA = 2.0
PRIVACY = 1.0
PULLS_FIRST = 10
ERROR = 0.1
SMALLEST = 1e-9


class Assigned(NamedTuple):
    """Arms (logs, rounds), chances (logs, rounds or periods, arms), and each log's number of rounds."""

    arms: np.ndarray
    shares: np.ndarray | None = None
    ends: np.ndarray | None = None


class Known:
    """Numbers and sums of the outcomes that are known, by log and arm."""

    def __init__(self, world: World) -> None:
        logs, self.rounds, self.n_arms = world.outcomes.shape
        self.outcomes, self.delay, self.rows = world.outcomes, world.delay, np.arange(logs)
        self.n = np.zeros((logs, self.n_arms))
        self.sums = np.zeros((logs, self.n_arms))
        self.arms = np.full((logs, self.rounds), -1)

    def chose(self, round_: int, arms: np.ndarray) -> None:
        """Arms of a round; afterwards the outcomes of `delay` rounds ago are known."""
        self.arms[:, round_] = arms
        told = round_ - self.delay
        if told >= 0:
            old = self.arms[:, told]
            self.n[self.rows, old] += 1
            self.sums[self.rows, old] += self.outcomes[self.rows, told, old]


def pick(shares: np.ndarray, coins: np.ndarray) -> np.ndarray:
    """The arm into whose part of [0, 1) a coin falls."""
    return (coins[:, None] >= np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1)


def pair(second: np.ndarray) -> np.ndarray:
    """Chances of two arms from that of the second."""
    return np.stack([1 - second, second], axis=1)


def _by_shares(world: World, coins: np.ndarray, rule: Callable[[Known, int], np.ndarray]) -> Assigned:
    known = Known(world)
    shares = np.empty(world.outcomes.shape)
    for now in range(known.rounds):
        shares[:, now] = rule(known, now)
        known.chose(now, pick(shares[:, now], coins[:, now]))
    return Assigned(known.arms, shares)


def posterior_chance(n: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Chance that arm 1 is the better one: normal posteriors with prior mean and variance .5 and .25."""
    mean, variance = (0.5 + sums) / (1 + n), 0.25 / (1 + n)
    return ndtr((mean[..., 1] - mean[..., 0]) / np.sqrt(variance.sum(axis=-1)))


def coin(world: World, coins: np.ndarray, rng: np.random.Generator) -> Assigned:
    """Every arm alike."""
    return _by_shares(world, coins, lambda known, now: np.full(known.n.shape, 1 / known.n_arms))


def epsilon_greedy(world: World, coins: np.ndarray, rng: np.random.Generator) -> Assigned:
    """The arm that looks best, and with chance .1 any."""

    def rule(known: Known, now: int) -> np.ndarray:
        best = np.argmax((known.sums + 0.5) / (known.n + 1), axis=1)
        return EPSILON / known.n_arms + (1 - EPSILON) * np.eye(known.n_arms)[best]

    return _by_shares(world, coins, rule)


def thompson(world: World, coins: np.ndarray, rng: np.random.Generator, floor: float = SMALLEST) -> Assigned:
    """Arm 1 with the posterior chance that it is the better of two."""
    return _by_shares(
        world,
        coins,
        lambda known, now: pair(np.clip(posterior_chance(known.n, known.sums), floor, 1 - floor)),
    )


def thompson_floor(world: World, coins: np.ndarray, rng: np.random.Generator) -> Assigned:
    """Thompson sampling that gives each arm a chance of at least .05."""
    return thompson(world, coins, rng, FLOOR)


def mad(world: World, coins: np.ndarray, rng: np.random.Generator) -> Assigned:
    """Thompson sampling mixed with a fair coin, whose weight falls like t to the power -.24."""

    def rule(known: Known, now: int) -> np.ndarray:
        weight = (now + 1.0) ** -0.24
        return pair(weight / 2 + (1 - weight) * posterior_chance(known.n, known.sums))

    return _by_shares(world, coins, rule)


def dbcd(world: World, coins: np.ndarray, rng: np.random.Generator) -> Assigned:
    """Doubly adaptive biased coin of Hu and Zhang, gamma 2, towards shares like the roots of the means."""

    def rule(known: Known, now: int) -> np.ndarray:
        if now < BURN_IN:
            return np.full(known.n.shape, 0.5)
        roots = np.sqrt((known.sums + 0.5) / (known.n + 1))
        target = roots[:, 1] / roots.sum(axis=1)
        share = np.clip((known.arms[:, :now] == 1).mean(axis=1), 0.02, 0.98)
        second = target * (target / share) ** GAMMA
        return pair(second / (second + (1 - target) * ((1 - target) / (1 - share)) ** GAMMA))

    return _by_shares(world, coins, rule)


def play_the_winner(world: World, coins: np.ndarray, rng: np.random.Generator) -> Assigned:
    """An urn with one ball an arm; a success adds a ball of its arm, a failure one of the other."""

    def rule(known: Known, now: int) -> np.ndarray:
        second = 1 + known.sums[:, 1] + known.n[:, 0] - known.sums[:, 0]
        return pair(second / (2 + known.n.sum(axis=1)))

    return _by_shares(world, coins, rule)


def tree_thompson(world: World, coins: np.ndarray, rng: np.random.Generator) -> Assigned:
    """Thompson sampling of its own in each of four leaves, with chances of at least .05."""
    known = Known(world)
    leaves, rows = world.leaves, known.rows
    n, sums = np.zeros((len(rows), LEAVES, 2)), np.zeros((len(rows), LEAVES, 2))
    shares = np.empty(world.outcomes.shape)
    for now in range(known.rounds):
        leaf = leaves[:, now]
        second = np.clip(posterior_chance(n[rows, leaf], sums[rows, leaf]), FLOOR, 1 - FLOOR)
        shares[:, now] = pair(second)
        arms = pick(shares[:, now], coins[:, now])
        known.chose(now, arms)
        n[rows, leaf, arms] += 1
        sums[rows, leaf, arms] += world.outcomes[rows, now, arms]
    return Assigned(known.arms, shares)


def _index(known: Known, sums: np.ndarray, now: int) -> np.ndarray:
    return sums / known.n + np.sqrt(np.log(now) / (2 * known.n))


def ucb(world: World, coins: np.ndarray, rng: np.random.Generator) -> Assigned:
    """The arm with the highest mean plus root of log t / 2n; no chance is involved."""
    known = Known(world)
    for now in range(known.rounds):
        if now < known.n_arms:
            known.chose(now, np.full(len(known.rows), now))
        else:
            known.chose(now, np.argmax(_index(known, known.sums, now), axis=1))
    return Assigned(known.arms)


def private_ucb(world: World, coins: np.ndarray, rng: np.random.Generator) -> Assigned:
    """UCB on running sums with tree noise: each arm's sums are private with epsilon 1 in all."""
    known = Known(world)
    levels = int(np.ceil(np.log2(known.rounds))) + 1
    noise = rng.laplace(scale=levels / PRIVACY, size=coins.shape)
    nodes = np.zeros((len(known.rows), known.n_arms, levels))
    for now in range(known.rounds):
        if now < PULLS_FIRST * known.n_arms:
            arms = np.full(len(known.rows), now % known.n_arms)
        else:
            arms = np.argmax(_index(known, known.sums + nodes.sum(axis=2), now), axis=1)
        known.chose(now, arms)
        number = known.n[known.rows, arms].astype(int)
        level = np.log2(number & -number).astype(int)  # the node that this outcome closes
        chosen = nodes[known.rows, arms]
        chosen[np.arange(levels) < level[:, None]] = 0
        chosen[known.rows, level] = noise[:, now]
        nodes[known.rows, arms] = chosen
    return Assigned(known.arms)


def track_and_stop(world: World, coins: np.ndarray, rng: np.random.Generator) -> Assigned:
    """Half of the rounds to the leader, else to its closest rival; a likelihood ratio stops it."""
    known = Known(world)
    rows, leading = known.rows, np.zeros(len(known.rows))
    ends = np.full(len(rows), known.rounds)
    for now in range(known.rounds):
        if now < PULLS_FIRST * known.n_arms:
            known.chose(now, np.full(len(rows), now % known.n_arms))
            continue
        means = known.sums / known.n
        leader = np.argmax(means, axis=1)
        gaps = (means[rows, leader][:, None] - means) ** 2
        ratios = gaps / (0.5 * (1 / known.n[rows, leader][:, None] + 1 / known.n))
        ratios[rows, leader] = np.inf
        rival = np.argmin(ratios, axis=1)
        done = ratios[rows, rival] > np.log((1 + np.log(now)) / ERROR)
        ends = np.where(done & (ends == known.rounds), now, ends)
        lead = leading <= (now - PULLS_FIRST * known.n_arms) / 2
        leading += lead
        known.chose(now, np.where(lead, leader, rival))
    return Assigned(known.arms, ends=ends)


def period_means(n: np.ndarray, sums: np.ndarray, squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means weighted by the periods' users and their variances; axes are logs, periods, arms."""
    weights = n.sum(axis=2, keepdims=True) / n.sum(axis=(1, 2), keepdims=True)
    means = np.divide(sums, n, out=np.zeros_like(sums), where=n > 0)
    spread = np.divide(squares - n * means**2, n - 1, out=np.zeros_like(sums), where=n > 1)
    parts = np.divide(spread, n, out=np.zeros_like(sums), where=n > 1)
    return (weights * means).sum(axis=1), (weights**2 * np.maximum(parts, 0)).sum(axis=1)


def top_two(world: World, coins: np.ndarray, rng: np.random.Generator) -> Assigned:
    """Shares of a period by how often an arm is among the two best of 2,000 posterior draws, at least 1%."""
    logs, rounds, n_arms = world.outcomes.shape
    length = rounds // PERIODS
    shares = np.full((logs, PERIODS, n_arms), 1 / n_arms)
    arms = np.empty((logs, rounds), dtype=int)
    told = np.zeros((3, logs, PERIODS, n_arms))
    for period in range(PERIODS):
        if period:
            means, variances = period_means(*told[:, :, :period])
            draws = means[:, None] + np.sqrt(variances)[:, None] * rng.standard_normal((logs, DRAWS, n_arms))
            best = np.argpartition(draws, -2, axis=2)[:, :, -2:]
            share = (best[..., None] == np.arange(n_arms)).sum(axis=(1, 2)) / (2 * DRAWS)
            share = np.maximum(share, LEAST)
            shares[:, period] = share / share.sum(axis=1, keepdims=True)
        for now in range(period * length, (period + 1) * length):
            arms[:, now] = pick(shares[:, period], coins[:, now])
        part = slice(period * length, (period + 1) * length)
        seen = np.take_along_axis(world.outcomes[:, part], arms[:, part, None], axis=2)
        chosen = arms[:, part, None] == np.arange(n_arms)
        told[:, :, period] = chosen.sum(axis=1), (chosen * seen).sum(axis=1), (chosen * seen**2).sum(axis=1)
    return Assigned(arms, shares)


def beta_thompson(world: World, coins: np.ndarray, rng: np.random.Generator) -> Assigned:
    """The arm with the highest of one draw from each Beta posterior; the chances are not computed."""
    known = Known(world)
    for now in range(known.rounds):
        draws = rng.beta(1 + known.sums, 1 + known.n - known.sums)
        known.chose(now, np.argmax(draws, axis=1))
    return Assigned(known.arms)


DESIGNS: dict[str, Callable[[World, np.ndarray, np.random.Generator], Assigned]] = {
    rule.__name__: rule
    for rule in (
        coin, epsilon_greedy, thompson, thompson_floor, mad, dbcd, play_the_winner, tree_thompson, ucb,
        private_ucb, track_and_stop, top_two, beta_thompson, ) }  # fmt: skip
