"""Single steps of a design: the kernels that the run loop calls, called one at a time from outside.

As the loop, a step is inlined into an entry point of the design's own, so that Numba caches it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from adaptinf.compilation import inlined, kernel
from adaptinf.simulation.run import ROUND, SCALARS
from adaptinf.typing import FloatArray

CHOOSE, WAIT, UPDATE, FINISH = range(4)
"""Which kernel a step calls."""


class Step(NamedTuple):
    """One call of a kernel, with the arm and the reward that `UPDATE` needs.

    Shapes: context as in `Record`, outcome (outcomes,), which `FINISH` writes.
    """

    kernel: int
    arm: int
    reward: float
    context: FloatArray
    outcome: FloatArray


@kernel
def pass_round(tables: Any, state: FloatArray) -> None:
    """A round whose outcome is not in yet: the clock moves on, and nothing is learnt."""
    state[SCALARS, ROUND] += 1.0


@inlined
def single_step(
    choose: Callable[..., int],
    wait: Callable[..., None],
    update: Callable[..., None],
    finish: Callable[..., None],
    tables: Any,
    step: Step,
    rng: np.random.Generator,
    state: FloatArray,
) -> int:
    """Call one kernel of a design; the arm where it chooses, else -1. Shapes: state (rows, columns)."""
    arm = -1
    if step.kernel == CHOOSE:
        arm = choose(tables, state, step.context, rng)
    elif step.kernel == WAIT:
        wait(tables, state)
    elif step.kernel == UPDATE:
        update(tables, state, step.context, step.arm, step.reward, rng)
    else:
        finish(tables, state, step.outcome)
    return arm
