"""Levels of arms with shared weights, from sums by batch, where each pair has one weight per batch.

Scores are linear in a round's reward, and levels are linear in scores. As for single arms, the contributions
of a batch's rounds to the errors of levels therefore follow from sums of powers of rewards divided by powers
of propensities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from adaptinf.inference.inputs.rounds import middles
from adaptinf.inference.scores.joint_levels import (
    Projection,
    Spread,
    Totals,
    components_of,
    described_levels,
    level_shares,
    pairs_of,
    project,
    scattered,
)
from adaptinf.inference.scores.means import ScoreMeans
from adaptinf.inference.scores.score_forms import Forms, Scores, cubes_of, shared_covariance, totals
from adaptinf.sums.cells import Cells
from adaptinf.sums.covariate_products import Products
from adaptinf.typing import BoolArray, FloatArray, IntArray

# The arrays of a few batches at a time have this many numbers, 32 MB as doubles.
_CELLS = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """Batches of rounds with the scores of the arms with these codes.

    Shapes: rounds (B,), inverse, possible (B, k), codes (k,). `inverse` contains the means of 1 / e that fix
    the weights, infinite if an arm could not be chosen, and `possible` whether it could.
    """

    products: Products
    scores: Scores
    rounds: FloatArray
    inverse: FloatArray
    possible: BoolArray
    codes: IntArray

    @property
    def time(self) -> FloatArray:
        """Times of the batches' middles, shape (B,)."""
        return middles(self.rounds)

    def sums(self, reward: FloatArray) -> FloatArray:
        """Sums of an outcome's scores, shape (B, k); reward (D,) contains the coefficients of v."""
        own, gain = (np.einsum("bkdx,d->bkx", part[:, self.codes], reward) for part in self.scores)
        return totals(self.products, Forms(own, gain[:, :, None], self.codes[:, None]))

    def project(self, reward: FloatArray) -> Projection:
        """The levels for an outcome; reward (D,) contains the coefficients of v."""
        pulls = self.products.table[0, 0, 0, 0].sum(axis=0)[self.codes]
        pairs, n = pairs_of(pulls, len(self.rounds)), self.rounds[:, None]
        h, first = pairs.weights(self.inverse), self.sums(reward)
        member = components_of(pairs, np.any(h > 0.0, axis=0))
        cost = (np.where(self.possible, self.inverse, 0.0) * n).sum(axis=0)
        weight = np.divide(1.0, cost, out=np.zeros_like(cost), where=cost > 0.0)
        v = level_shares(self.possible, weight, member)
        found = Totals(
            weight=self.rounds @ h,
            gap=np.einsum("bp,bp->p", h, pairs.gaps(first)),
            moment=(self.rounds * self.time) @ h,
            share=member.T * (v * n).sum(axis=0),
            level=(v * first).sum(axis=0) @ member,
            rounds=self.rounds @ (self.possible @ member > 0.0),
        )
        return project(pairs, found, member, weight)

    def forms(self, reward: FloatArray) -> Iterator[tuple[IntArray, FloatArray, Forms]]:
        """Coefficients of scores in levels, and contributions to errors, for blocks of batches.

        Shapes: reward (k, D), by level. Each block consists of positions of batches (b,), coefficients (b, k,
        k) and the contributions.
        """
        every = [self.project(entry) for entry in np.eye(self.products.size)]
        contrast, levels = (
            np.array([getattr(one, name) for one in every]) for name in ("contrast", "levels")
        )
        pairs, member, carry = every[0].pairs, every[0].member, every[0].carry
        pull = pairs.weights(self.inverse) * every[0].factor
        v = level_shares(self.possible, every[0].weight, member)
        inner, outer = carry[:, : pairs.size], carry[:, pairs.size :] / every[0].rounds
        step = inner[:, pairs.first] - inner[:, pairs.second]
        for places in self._parts():
            parts = [pairs.gathered(step * row) for row in pull[places]]
            matrix = np.array(parts) + (outer @ member.T) * v[places][:, None, :]
            below = (pull[places] * contrast[:, None]) @ step.T
            below += ((v[places] * levels[:, None]) @ member) @ outer.T
            constant = np.einsum("dbk,kd->bk", below, reward)
            yield places, matrix, self._linear(places, matrix, constant, reward)

    def slopes(self, projection: Projection, reward: FloatArray) -> FloatArray:
        """Sums of the slopes in time of each arm's contrasts, and of their squares; reward (D,)."""
        pairs, found = projection.pairs, np.zeros((2, projection.pairs.size))
        pull = pairs.weights(self.inverse) * projection.factor
        pull *= self.time[:, None] - projection.centre
        every = np.broadcast_to(reward, (pairs.size, len(reward)))
        sign = np.eye(pairs.size)
        step = sign[:, pairs.first] - sign[:, pairs.second]
        for places in self._parts():
            matrix = np.array([pairs.gathered(step * row) for row in pull[places]])
            constant = (pull[places] * projection.contrast) @ step.T
            forms = self._linear(places, matrix, constant, every)
            products = self.products.of(places)
            found[1] += np.diag(shared_covariance(products, forms))
            found[0] += totals(products, forms).sum(axis=0)
        return found

    def _parts(self) -> Iterator[IntArray]:
        step = max(1, _CELLS // (len(self.codes) ** 2 * self.products.size))
        for begin in range(0, len(self.rounds), step):
            yield np.arange(begin, min(begin + step, len(self.rounds)))

    def _linear(
        self, places: IntArray, matrix: FloatArray, constant: FloatArray, reward: FloatArray
    ) -> Forms:
        """Combinations of the arms' scores minus constants.

        Shapes: places (b,), matrix (b, p, k), constant (b, p), reward (p, D).
        """
        own, gain = (part[places][:, self.codes] for part in self.scores)
        own = np.einsum("bpm,bmdx,pd->bpx", matrix, own, reward, optimize=True)
        own[..., 0] -= constant
        gain = np.einsum("bpm,bmdx,pd->bpmx", matrix, gain, reward, optimize=True)
        return Forms(own, gain, np.broadcast_to(self.codes, matrix.shape[1:]))


def batch_levels(cells: Cells, batches: Batches, pulled: tuple[FloatArray, FloatArray]) -> ScoreMeans:
    """Levels of arms, and the quantities for tests and tables; pulled has numbers and sums of rewards (k,).

    The levels of arms without a reward are NaN, and these arms do not affect the other levels.
    """
    pulls, successes = pulled
    smallest = np.where(batches.possible, cells.smallest[:, batches.codes], np.inf).min(
        axis=0, initial=np.inf
    )
    smallest = np.where(np.isfinite(smallest), smallest, np.nan)
    there = np.flatnonzero(pulls > 0.0)
    if len(there) < len(pulls):
        some = Batches(
            batches.products,
            batches.scores,
            batches.rounds,
            batches.inverse[:, there],
            batches.possible[:, there],
            batches.codes[there],
        )
        found = batch_levels(cells, some, (pulls[there], successes[there]))
        return scattered(found, there, (pulls, successes, smallest))
    size = batches.products.size
    reward = np.eye(size)[1]
    projection, spread = batches.project(reward), Spread.empty(len(pulls))
    for places, given, forms in batches.forms(np.broadcast_to(reward, (len(pulls), size))):
        products = batches.products.of(places)
        spread.covariance += shared_covariance(products, forms)
        spread.cubes += cubes_of(products, forms)
        inverse = cells.moments[:, 0, places][..., batches.codes]
        spread.powers += [np.einsum("bps,bs->p", given**power, inverse[power]) for power in (2, 3, 4)]
        mine = np.einsum("bkk->bk", given)
        spread.own += [np.einsum("bk,bk->k", np.abs(mine) ** power, inverse[power]) for power in (1, 2)]
    spread.slope += batches.slopes(projection, reward)
    spread.used += batches.rounds @ batches.possible
    return described_levels(projection, spread, (pulls, successes, smallest), cells.centre)
