"""Faults of the live path, each planted in the code that sessions and trials run: a patch by name."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest

from adaptinf.audit.privacy import coupled_plays as plays
from adaptinf.designs import DPNAS
from adaptinf.designs.contextual import linear_noise as whole
from adaptinf.designs.stopping import stopping_kernel as kernel
from adaptinf.errors import ParameterError
from adaptinf.log.public import PublicLog, Publishable
from adaptinf.privacy.release import scale_above
from adaptinf.sessions import Session, steppers
from adaptinf.sessions import session_memory as erasing
from adaptinf.sessions import steppers as releasing
from adaptinf.sessions.outcomes import Telling
from adaptinf.sessions.steppers import ReleaseStepper
from adaptinf.trial import operator_actions as acts
from adaptinf.trial.live_trial import Trial

Patch = pytest.MonkeyPatch
Fault = Callable[[Patch], None]
_SUM = 7
"""Row of the raw sums of PrivateUCB's arms."""
_CONTRAST = 7
"""Row of the sums of a window of DPConSE."""


def told(session: Any) -> float:
    """The sum of all outcomes that a session was told."""
    return float(np.nansum(np.clip(session._rounds.record.reward[: session.rounds], 0.0, 1.0)))


def around(patch: Patch, owner: Any, name: str, wrapped: Callable[..., Any]) -> None:
    """Let `wrapped(right, self, *arguments)` take the place of a method."""
    right = getattr(owner, name)
    patch.setattr(owner, name, lambda self, *given, **named: wrapped(right, self, *given, **named))


def stops_on_raw_sums(patch: Patch) -> None:
    """Nobody is assigned once the raw outcomes come to 15."""

    def refusing(right: Any, self: Any, unit: Any) -> None:
        right(self, unit)
        if told(self) >= 15.0:
            raise ParameterError("assign", ["the trial has stopped early"])

    around(patch, Session, "_refuse_assignment", refusing)


def lost_enters_nothing(patch: Patch) -> None:
    """An outcome that is not in when its window ends does not count."""

    def learning(right: Any, self: Any, step: int, reward: float) -> None:
        if not math.isnan(reward):
            right(self, step, reward)

    around(patch, Session, "_learn", learning)


def one_more_draw_at_a_count(patch: Patch) -> None:
    """Where the raw sum of an arm is 6 a further node is drawn, which nothing uses."""

    def learning(right: Any, self: Any, step: Any) -> None:
        before = self.state[_SUM].copy()
        right(self, step)
        if 6.0 in self.state[_SUM] and 6.0 not in before:
            self._draw("a check", 2.0**20)

    around(patch, ReleaseStepper, "_learn", learning)


def decimals_by_raw_sums(patch: Patch) -> None:
    """Releases are rounded to three decimals from a raw sum of 5 on."""

    def released(right: Any, self: Any) -> Any:
        rows = right(self)
        if self.state[_SUM].max() >= 5.0:
            rows[:, 3] = np.round(rows[:, 3], 3)
        return rows

    around(patch, steppers.KernelStepper, "released", released)


def rounding_by_raw_sums(patch: Patch) -> None:
    """Outcomes are rounded up to 1, or down to 0, by the parity of the raw sum."""

    def learning(right: Any, self: Any, step: Any) -> None:
        odd = int(self.state[_SUM].sum()) % 2
        right(self, step._replace(reward=float(math.ceil(step.reward) if odd else math.floor(step.reward))))

    around(patch, ReleaseStepper, "_learn", learning)


def decides_by_raw_sums(patch: Patch) -> None:
    """The arm of the highest raw sum is chosen from the 20th round on."""

    def choosing(right: Any, self: Any, context: Any, now: int) -> Any:
        arm, propensities = right(self, context, now)
        return (int(np.argmax(self.state[_SUM, :2])) if now >= 20 else arm), propensities

    around(patch, ReleaseStepper, "choose", choosing)


def last_bits_of_raw_sums(patch: Patch) -> None:
    """Propensities carry the raw sum in their last bits."""

    def choosing(right: Any, self: Any, context: Any, now: int) -> Any:
        arm, propensities = right(self, context, now)
        return arm, propensities * (1.0 - self.state[_SUM].sum() * 2.0**-50)

    around(patch, ReleaseStepper, "choose", choosing)


def status_counts_events(patch: Patch) -> None:
    """The reason that a status shows tells how many outcomes were 1."""

    def standing(right: Any, self: Any, replay: Any) -> Any:
        return dataclasses.replace(right(self, replay), reason=f"{told(replay.session):g} events")

    around(patch, Trial, "_stands", standing)


def public_counts_events(patch: Patch) -> None:
    """What is public has the mean outcome among its facts."""

    def public(right: Any, self: Any, *given: Any) -> PublicLog:
        made = right(self, *given)
        facts = {**made.facts, "mean outcome": float(np.nanmean(self.arrays.reward))}
        changed: PublicLog = dataclasses.replace(made, facts=facts)
        return changed

    around(patch, Publishable, "public", public)


def files_count_events(patch: Patch) -> None:
    """The file of what is public has the last digit of the raw sum, which no attribute shows."""
    sums: list[float] = []

    def public(right: Any, self: Any, *given: Any) -> PublicLog:
        sums.append(float(np.nansum(self.arrays.reward)))
        made: PublicLog = right(self, *given)
        return made

    def written(right: Any, self: Any) -> Any:
        return {**right(self), "check": sums[-1] % 10.0}

    around(patch, Publishable, "public", public)
    around(patch, PublicLog, "_told", written)


def half_the_scale(patch: Patch) -> None:
    """Noise has half of its scale."""
    right = releasing.unit_scale
    patch.setattr(releasing, "unit_scale", lambda scale: right(scale / 2.0))


def half_the_product_scale(patch: Patch) -> None:
    """The same of sums of products."""
    right = scale_above
    patch.setattr(whole, "scale_above", lambda sensitivity, epsilon: right(sensitivity, 2.0 * epsilon))


def carried_to_later_windows(patch: Patch) -> None:
    """What a window released is in the two windows after it again."""

    def learning(right: Any, self: Any, step: Any) -> None:
        before, window = self.state[_CONTRAST].copy(), self.state[0, 2]
        right(self, step)
        if self.state[0, 2] > window:
            self.state[_CONTRAST] += before

    around(patch, ReleaseStepper, "_learn", learning)


def counts_for_the_next_too(patch: Patch) -> None:
    """The next outcome of whatever arm is no lower than this one."""
    held: WeakKeyDictionary[Any, float] = WeakKeyDictionary()

    def learning(right: Any, self: Any, step: Any) -> None:
        before = held.get(self, 0.0)
        held[self] = step.reward
        right(self, step._replace(reward=max(step.reward, before)))

    around(patch, ReleaseStepper, "_learn", learning)


def clipping_left_out(patch: Patch) -> None:
    """Outcomes enter as they are."""
    patch.setattr(releasing, "min", lambda one, other: one, raising=False)
    patch.setattr(releasing, "max", lambda one, other: one, raising=False)


def enter_contrast(session: Any, step: int, feature: int, amount: float) -> None:
    """Add to the sum of DPConSE's window that is running."""
    arm = int(session._rounds.record.action[step])
    session._stepper.state[_CONTRAST, feature] += (2 * arm - 1) * amount


def amended_enters_again(patch: Patch) -> None:
    """A corrected outcome enters the window that is running, beside the first one in its own."""

    def amending(right: Any, self: Any, decision: int, reward: float, key: Any = None) -> Any:
        answer, feature = right(self, decision, reward, key), self._rounds.record.feature[decision - 1]
        enter_contrast(self, decision - 1, feature, float(np.clip(reward, 0.0, 1.0)) - 0.5)
        return answer

    around(patch, Telling, "amend", amending)


def enters_as_it_comes(patch: Patch) -> None:
    """An outcome enters when it is recorded, and its window is not waited for."""

    def entering(right: Any, self: Any, step: int, value: float | None) -> None:
        right(self, step, value)
        if value is not None:
            Session._learn(self, step, value)

    right = Session._choose

    def choosing(self: Any, context: Any) -> int:
        window, self._window = self._window, None
        try:
            return right(self, context)
        finally:
            self._window = window

    around(patch, Telling, "_enter", entering)
    patch.setattr(Session, "_choose", choosing)
    patch.setattr(Session, "end_windows", lambda self: None)


def erased_leaves_the_sums(patch: Patch) -> None:
    """The outcome of a participant who is erased is taken out of the sums, of whatever window."""
    right = erasing.forget

    def forgetting(session: Any, step: int) -> None:
        feature, reward = (getattr(session._rounds.record, name)[step] for name in ("feature", "reward"))
        right(session, step)
        enter_contrast(session, step, feature, 0.5 - float(np.clip(reward, 0.0, 1.0)))

    for place in (erasing, plays, acts):
        patch.setattr(place, "forget", forgetting)


def noise_turned_by_sums(patch: Patch) -> None:
    """The sign of the noise follows the parity of the raw sum, which leaves each law as it is."""

    def learning(right: Any, self: Any, step: Any) -> None:
        draw, odd = self._draw, int(self.state[_SUM].sum()) % 2
        self._draw = lambda name, scale: (-1 if odd else 1) * draw(name, scale)
        try:
            right(self, step)
        finally:
            self._draw = draw

    around(patch, ReleaseStepper, "_learn", learning)


def scale_by_sums(patch: Patch) -> None:
    """The scale of the noise follows the raw sum."""

    def learning(right: Any, self: Any, step: Any) -> None:
        draw, total = self._draw, float(self.state[_SUM].sum())
        self._draw = lambda name, scale: draw(name, scale * (1.0 + total))
        try:
            right(self, step)
        finally:
            self._draw = draw

    around(patch, ReleaseStepper, "_learn", learning)


def half_the_threshold(patch: Patch) -> None:
    """The threshold of a stopping rule has half of its noise."""

    def rule(right: Any, self: Any, *given: Any) -> Any:
        made = right(self, *given)
        return made._replace(threshold_scale=made.threshold_scale / 2.0)

    around(patch, DPNAS, "rule", rule)


def half_the_estimate(patch: Patch) -> None:
    """The estimate of a stopping rule has the noise of twice the epsilon."""

    def parts(right: Any, self: Any) -> tuple[Fraction, ...]:
        threshold, looks, release = right(self)
        return threshold, looks, 2 * release

    patch.setattr(
        DPNAS, "guarantee", lambda self: DPNAS.time_guarantee(self).compose(DPNAS.time_guarantee(self))
    )
    around(patch, DPNAS, "_parts", parts)


def estimate_carries_raw_sums(patch: Patch) -> None:
    """The last digits of an estimate are those of the raw sum."""
    right = kernel.finish_run

    def finishing(rule: Any, state: Any, source: Any) -> float:
        return float(right(rule, state, source) + 1e-12 * state[kernel.TOTAL])

    patch.setattr(kernel, "finish_run", finishing)
