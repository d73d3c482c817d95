"""Success rates of arms from released in-time successes and failures, with Manski's bounds.

References
----------
Manski (1990), "Nonparametric bounds on treatment effects" (the limits whatever late outcomes are). Anderson
(1955), on the probability of a symmetric convex set under a symmetric unimodal law.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.claims.privacy import releases as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.corrections.information import Correction, guarantee_refusal
from adaptinf.inference.distributions.tails import log_normal_two_laplace_tail
from adaptinf.inference.inputs.published import answered_by
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.log import AdaptiveLog, PublicLog
from adaptinf.log.traits import IN_TIME_NAMES, WINDOW
from adaptinf.typing import FloatArray, IntArray

_NAME = "released"
_GRID = 1_001
_BISECTIONS = 50
_FEWEST = 6.0
"""Multiple of the noise scale that the in-time count must exceed, which is three standard deviations of its
noise."""


@dataclass(frozen=True, slots=True, eq=False)
class InTimeReference:
    """Test that a rate is p, based on (1 - p) S - p F: a normal variable plus two Laplace noises of scale b.

    Shapes: won, failed (k,); valid indicates which rates exist.
    """

    won: FloatArray
    failed: FloatArray
    scale: float
    name: str = "normal + Laplace (inverted test)"
    exact: bool = False
    statistic, normal, uses_std_error = "z", False, False

    @property
    def valid(self) -> Any:
        """Whether the number of in-time outcomes can be distinguished from its noise, shape (k,)."""
        return self.won + self.failed > _FEWEST * self.scale

    @property
    def size(self) -> FloatArray:
        """The count used for the variance: the released count plus one standard deviation of its noise."""
        # The sum of two Laplace variables of scale b has variance 4 b^2.
        return np.where(self.valid, self.won + self.failed, 1.0) + 2.0 * self.scale

    def log_pvalues(self, null: float) -> FloatArray:
        """Natural logarithms of the two-sided p-values, shape (k,); rates outside [0, 1] are impossible.

        A rate between two accepted rates is also accepted, so p-values and intervals agree.
        """
        if not 0.0 <= null <= 1.0:
            return np.where(self.valid, -np.inf, np.nan)
        rates = np.union1d(np.linspace(0.0, 1.0, _GRID), [null])
        logs = self._log_p(rates[:, None])
        low, high = rates <= null, rates >= null
        return np.where(self.valid, np.minimum(logs[low].max(axis=0), logs[high].max(axis=0)), np.nan)

    def interval(self, log_alpha: float) -> FloatArray:
        """Limits at level ``1 - exp(log_alpha)``, shape (k, 2): the hull of the accepted rates."""
        grid = np.linspace(0.0, 1.0, _GRID)
        inside = np.clip(self.won / np.where(self.valid, self.won + self.failed, 1.0), 0.0, 1.0)
        accepted = self._log_p(grid[:, None]) > log_alpha
        # All accepted rates may lie between two points of the grid, so the observed rate is tried as well.
        some = self.valid & (accepted.any(axis=0) | (self._log_p(inside) > log_alpha))
        first = np.where(accepted.any(axis=0), np.minimum(grid[accepted.argmax(axis=0)], inside), inside)
        last_place = _GRID - 1 - accepted[::-1].argmax(axis=0)
        last = np.where(accepted.any(axis=0), np.maximum(grid[last_place], inside), inside)
        step = 1.0 / (_GRID - 1)
        limits = [
            self._edge(first, np.maximum(first - step, 0.0), log_alpha),
            self._edge(last, np.minimum(last + step, 1.0), log_alpha),
        ]
        return np.where(some[:, None], np.stack(limits, axis=-1), np.nan)

    def _edge(self, accepted: FloatArray, beyond: FloatArray, log_alpha: float) -> FloatArray:
        """The point between two rates beyond which rates are rejected; the outer rate if it is accepted."""
        outer = beyond.copy()
        whole = self._log_p(outer) > log_alpha
        for _ in range(_BISECTIONS):
            middle = 0.5 * (accepted + beyond)
            keep = self._log_p(middle) > log_alpha
            accepted, beyond = np.where(keep, middle, accepted), np.where(keep, beyond, middle)
        return np.where(whole, outer, accepted)

    def _log_p(self, rate: FloatArray) -> FloatArray:
        """Logs of the two-sided p-values of rates, whose shape must broadcast with (k,)."""
        gap = np.abs((1.0 - rate) * self.won - rate * self.failed)
        spread = np.sqrt(self.size * rate * (1.0 - rate))
        gap, spread, one, other = np.broadcast_arrays(
            gap, spread, (1.0 - rate) * self.scale, rate * self.scale
        )
        tail = log_normal_two_laplace_tail(gap, spread, one, other)
        return np.asarray(np.minimum(tail + np.log(2.0), 0.0), dtype=np.float64)


def in_time_means(log: AdaptiveLog | PublicLog, codes: IntArray, null: float) -> Results:
    """Success rates of arms among outcomes in time, from releases alone; codes has shape (k,)."""
    releases = log.releases
    rows = [releases[releases["name"] == name].set_index("group") for name in IN_TIME_NAMES]
    if any(part.empty for part in rows):
        raise InvalidForLog(_NAME, claims.NOTHING_IN_TIME(), answered_by(log))
    arms = tuple(log.arms[code] for code in codes)
    won, failed = (np.array([float(part["value"][arm]) for arm in arms]) for part in rows)
    scale = float(rows[0]["scale"].iloc[0])
    pulls = _pulls(log)[codes]
    reference = InTimeReference(won, failed, scale)
    count = np.where(reference.valid, won + failed, np.nan)
    rate = np.clip(won / count, 0.0, 1.0)
    spread = reference.size * rate * (1.0 - rate)
    noise = 2.0 * scale**2 * ((1.0 - rate) ** 2 + rate**2)
    lowest, highest = (np.clip(part, 0.0, 1.0) for part in (won / pulls, 1.0 - failed / pulls))
    terms = tuple(map(str, arms))
    adapts = log.design is None or log.design.traits is None or log.design.traits.adapts
    return Results(
        model="ArmMeans",
        estimands=tuple(Estimand("arm-mean", arm=arm) for arm in arms),
        terms=terms,
        estimate=rate,
        std_error=np.sqrt(spread + noise) / count,
        reference=reference,
        estimator=_NAME,
        facts=LogFacts.released(log, outcome=claims.IN_TIME_OUTCOME()),
        validity="not valid" if adapts else "asymptotic",
        null=null,
        correction=_correction(log) if adapts else None,
        details={"in_time": won + failed, "lowest": lowest, "highest": highest},
        notes=(
            claims.IN_TIME_ALONE(window=0 if log.design is None else log.design.parameters.get(WINDOW, 0)),
            claims.CLIPPED(),
            claims.MANSKI(limits=_limits(terms, lowest, highest)),
            *_drowned(terms, reference),
        ),
        private=True,
    )


def _limits(terms: tuple[str, ...], lowest: FloatArray, highest: FloatArray) -> str:
    """A note on Manski's bounds, which need no assumption about late outcomes."""
    limits = zip(terms, lowest, highest, strict=True)
    return "; ".join(f"{term} {low:.3f} to {high:.3f}" for term, low, high in limits)


def _drowned(terms: tuple[str, ...], reference: InTimeReference) -> tuple[str, ...]:
    few = [term for term, valid in zip(terms, reference.valid, strict=True) if not valid]
    return (claims.DROWNED(terms="; ".join(few)),) if few else ()


def _pulls(log: AdaptiveLog | PublicLog) -> FloatArray:
    """Number of rounds of each arm, known from the actions, shape (K,)."""
    if isinstance(log, PublicLog):
        return np.array([float(log.facts["pulls"][arm]) for arm in log.arms])
    return log._rounds_by_arm().astype(np.float64)


def _correction(log: AdaptiveLog | PublicLog) -> Correction | None:
    """The correction for a test whose choice is based on the releases, if the guarantee permits one."""
    level = None if log.guarantee is None else log.guarantee.reward_level()
    if level is None or guarantee_refusal(level):
        return None
    return Correction(level.epsilon, log.n_rounds, level, chosen_from="releases")
