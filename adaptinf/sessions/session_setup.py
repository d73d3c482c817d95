"""Opening a session: everything is checked before the first participant arrives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import SEED, Count, OneOf, OrNone, problems_of, refuse
from adaptinf.sessions.participants import Participants
from adaptinf.sessions.session import Session
from adaptinf.sessions.steppers import (
    Draw,
    ReleaseStepper,
    Stepper,
    SumsStepper,
    draw_node,
    exact_problems,
    in_time_problems,
    in_time_releaser,
    stepper_of,
    with_in_time,
)
from adaptinf.simulation.replicate import Run, block_stream, seed_sequence
from adaptinf.typing import RandomSource

_NO_WINDOW = {
    "any": "learns from outcomes as they arrive, in any order",
    "last": "uses the outcome of the previous round to choose, so outcomes must be recorded in order",
}


def _window_problems(design: Any, horizon: int, window: int | None, *, checked: bool) -> list[str]:
    """Why outcomes cannot have this window; `checked` indicates that window and horizon are numbers."""
    if window is not None and design.pending != "window":
        return [f"window must be omitted: {type(design).__name__} {_NO_WINDOW[design.pending]}"]
    if checked and window is not None and window > (most := design.longest_window(horizon)):
        return [f"window must be at most {most:,} at a horizon of {horizon:,}, got {window:,}"]
    return []


def open_session(
    design: Any,
    declared: tuple[Any, Any, Any, Any, Any],
    horizon: int,
    window: int | None,
    rng: RandomSource | None,
    coins: np.random.Generator | None = None,
    noise: str = "simulation",
    draw: Draw | None = None,
    in_time: float | None = None,
    lost: float | None = None,
) -> Session:
    """Open a session of a design; `declared` contains the arguments of `Participants`.

    The session draws from `coins` if given, otherwise from a stream started by `rng`; the nodes of exact
    noise come from `draw`, by default from OpenDP. In-time outcomes are counted at privacy `in_time`. A
    missing outcome is replaced with `lost`, by default the value declared by the design.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem.
    """
    name = type(design).__name__
    problems = problems_of(
        horizon=(horizon, Count(design.needs.min_horizon)),
        window=(window, OrNone(Count(0))),
        rng=(rng, SEED),
        noise=(noise, OneOf("simulation", "release")),
    )
    problems += _window_problems(design, horizon, window, checked=not problems)
    problems += [] if problems else in_time_problems(design, in_time, window)
    participants = Participants(*declared, design.domain, problems)
    refuse(name, design._environment_problems(participants, horizon))
    placed = design._placed(participants)
    if noise == "release":
        refuse(name, exact_problems(placed, horizon, participants.n_arms))
    coins = block_stream(seed_sequence(rng), 0) if coins is None else coins
    try:
        return _opened(design, placed, participants, horizon, window, coins, noise, draw, in_time, lost)
    except MemoryError:
        size = 8.0 * horizon * participants.n_arms / 2**30
    problem = (
        f"{horizon:,} rounds of {participants.n_arms:,} arms require more memory than is available (one "
        f"number for each round and arm takes {size:,.1f} GiB): declare fewer rounds or arms"
    )
    raise ParameterError(name, [problem])


def _opened(
    design: Any,
    placed: Any,
    participants: Participants,
    horizon: int,
    window: int | None,
    coins: np.random.Generator,
    noise: str,
    draw: Draw | None,
    in_time: float | None,
    lost: float | None,
) -> Session:
    """The session, after all checks."""
    name = type(design).__name__
    promised = (
        with_in_time(placed.guarantee(horizon, participants.n_arms), in_time),
        with_in_time(placed.reward_guarantee(horizon, participants.n_arms), in_time),
    )
    program = design.program(participants, horizon, recording=True)
    clocked = design.pending != "last"
    stepper: Stepper | None
    drawn = draw or draw_node
    if noise == "release":
        if draw is None:
            # A missing library should cause an error before the first participant arrives.
            draw_node("none", 1.0)
        how = program, horizon, participants.n_arms, clocked, coins, design.nodes, drawn
        sums = placed.exact_sums(horizon, participants.n_arms)
        stepper = ReleaseStepper(*how) if sums is None else SumsStepper(*how, sums)
    else:
        stepper = stepper_of(program, horizon, participants.n_arms, participants.shared, clocked, coins)
    if stepper is None:
        problem = (
            "cannot be used step by step: its program has no step=, the compiled entry point for a "
            "single step"
        )
        refuse(name, [problem])
    assert stepper is not None

    def log(run: Run) -> AdaptiveLog:
        whole = replace(run, in_time_epsilon=in_time)
        made: AdaptiveLog = placed._log(whole, participants, horizon, *promised)
        return made

    own_coins = design.traits.own_coins
    by_context = bool(participants.features or participants.dimension) and placed.traits.uses_context != "no"
    rules = design.pending, window, design.lost if lost is None else lost, own_coins, by_context
    counted = in_time_releaser(in_time, drawn if noise == "release" else None, coins)
    return Session(name, participants, horizon, program, stepper, coins, log, *rules, counted)
