"""What opens a session: everything is checked before the first participant comes."""

from __future__ import annotations

from typing import Any

import numpy as np

from adaptinf.log import AdaptiveLog
from adaptinf.parameters import SEED, Count, OneOf, OrNone, problems_of, refuse
from adaptinf.sessions.participants import Participants
from adaptinf.sessions.releasing import Draw, ReleaseStepper, SumsStepper, draw_node, exact_problems
from adaptinf.sessions.session import Session
from adaptinf.sessions.steppers import Stepper, stepper_of
from adaptinf.simulation.replicate import Run, block_stream, seed_sequence
from adaptinf.typing import RandomSource

_NO_WINDOW = {
    "any": "learns from outcomes as they come, in any order",
    "last": "chooses by the outcome of the round before, so that no other order can be had",
}


def open_session(
    design: Any,
    declared: tuple[Any, Any, Any, Any, Any],
    horizon: int,
    window: int | None,
    rng: RandomSource | None,
    coins: np.random.Generator | None = None,
    noise: str = "simulation",
    draw: Draw | None = None,
) -> Session:
    """Open a session of a design; `declared` is what `Participants` are told.

    It draws from `coins` where they are given, and from a stream that `rng` starts otherwise; the nodes of
    exact noise come from `draw`, by default from OpenDP.

    Raises
    ------
    ParameterError
        Listing what does not fit.
    """
    name = type(design).__name__
    problems = problems_of(
        horizon=(horizon, Count(design.needs.min_horizon)),
        window=(window, OrNone(Count(0))),
        rng=(rng, SEED),
        noise=(noise, OneOf("simulation", "release")),
    )
    if window is not None and design.pending != "window":
        problems.append(f"window must be left out: {name} {_NO_WINDOW[design.pending]}")
    elif not problems and window is not None and window > (most := design.longest_window(horizon)):
        problems.append(f"window must be at most {most:,} at a horizon of {horizon:,}, got {window:,}")
    participants = Participants(*declared, design.domain, problems)
    refuse(name, design._environment_problems(participants, horizon))
    placed = design._placed(participants)
    if noise == "release":
        refuse(name, exact_problems(placed, horizon, participants.n_arms))
    promised = (
        placed.guarantee(horizon, participants.n_arms),
        placed.reward_guarantee(horizon, participants.n_arms),
    )
    program = design.program(participants, horizon, recording=True)
    coins = block_stream(seed_sequence(rng), 0) if coins is None else coins
    clocked = design.pending != "last"
    stepper: Stepper | None
    if noise == "release":
        if draw is None:
            draw_node("none", 1.0)  # a missing library is noticed before anybody comes
        drawn = draw or draw_node
        how = program, participants.n_arms, clocked, coins, design.nodes, drawn
        sums = placed.exact_sums(horizon, participants.n_arms)
        stepper = ReleaseStepper(*how) if sums is None else SumsStepper(*how, sums)
    else:
        stepper = stepper_of(program, participants.n_arms, participants.shared, clocked, coins)
    if stepper is None:
        problem = "cannot be used step by step: its program has no step=, the compiled entry point for one"
        refuse(name, [problem])
    assert stepper is not None

    def log(run: Run) -> AdaptiveLog:
        made: AdaptiveLog = placed._log(run, participants, horizon, *promised)
        return made

    own_coins = design.traits.own_coins
    by_context = bool(participants.features or participants.dimension) and placed.traits.uses_context != "no"
    rules = design.pending, window, design.lost, own_coins, by_context
    return Session(name, participants, horizon, program, stepper, coins, log, *rules)
