"""The declaration of a trial: the first entry of its journal, its session, and its coins."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from adaptinf.designs import Design
from adaptinf.designs.recorded_designs import rebuilt
from adaptinf.errors import FileError, ParameterError
from adaptinf.log import DesignRecord
from adaptinf.log.stated_plans import StatedPlan
from adaptinf.log.storage.stored import encode
from adaptinf.log.traits import LOOKS, PLAN
from adaptinf.parameters import COUNT, Is, problems_of, refuse
from adaptinf.sessions import Session, open_session
from adaptinf.sessions.participants import plain
from adaptinf.sessions.steppers import Draw
from adaptinf.texts import shown
from adaptinf.trial.journal_rows import Entry
from adaptinf.trial.migration.versions import VERSIONS, installed
from adaptinf.trial.trial_noise import private_terms

_HALF = 2**128


def fresh_seed() -> bytes:
    """256 bits from the system's cryptographic source, for a trial or for a file that replaces it."""
    return secrets.token_bytes(32)


class Coins:
    """A generator that is reset for each event, by HMAC-SHA256 of the event's name under the seed.

    Without the seed, the coins of one event cannot be distinguished from those of all others.
    """

    def __init__(self, seed: bytes) -> None:
        self._keyed = _keyed(seed)
        self._bits = np.random.PCG64(0)
        self.generator = np.random.Generator(self._bits)

    def stir(self, fresh: bytes) -> None:
        """Make all later coins also depend on bytes that no one knew before."""
        self._keyed = _keyed(self._of(fresh))

    def _of(self, event: bytes) -> bytes:
        """HMAC-SHA256 of an event's name, with the seed as the key, which was prepared once."""
        mac = self._keyed.copy()
        mac.update(event)
        return mac.digest()

    def set(self, event: str, number: int) -> None:
        """Set the generator to the state for an event."""
        drawn = int.from_bytes(self._of(f"{event} {number}".encode()), "big")
        self._bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": drawn // _HALF, "inc": drawn % _HALF | 1},
            "has_uint32": 0,
            "uinteger": 0,
        }


def _keyed(seed: bytes) -> hmac.HMAC:
    return hmac.new(seed, digestmod=hashlib.sha256)


FORMAT = 3
"""Version since which rows are salted."""
_FORMATS = (2, FORMAT)
"""Versions whose files can be continued."""
_DESIGN = Is(Design, "a design, such as Thompson(floor=0.1)")
_DECLARED = ("arms", "features", "dimension", "per_arm", "reward_range")


def declared_entry(
    design: Any,
    arms: Any,
    horizon: Any,
    features: int | Sequence[Any] | None,
    dimension: int | None,
    per_arm: bool,
    reward_range: tuple[float, float],
    outcome_window: int | None = None,
    in_time: float | None = None,
) -> Entry:
    """The first entry of a trial, after all checks."""
    problems = problems_of(design=(design, _DESIGN))
    problems += [
        f"{name} is required with a design, because only a plan specifies it"
        for name, given in (("arms", arms), ("horizon", horizon))
        if given is None and not problems
    ]
    refuse("Trial.create", problems)
    seed = fresh_seed()
    declared, coins = (arms, features, dimension, per_arm, reward_range), Coins(seed).generator
    session = open_session(design, declared, horizon, None, None, coins)
    exact = private_terms(design, horizon, len(session.arms), outcome_window)
    if exact or in_time is not None:
        open_session(design, declared, horizon, outcome_window, None, coins, "release", in_time=in_time)
        exact |= {"late": design.lost, **({} if in_time is None else {"in_time": float(in_time)})}
    record = design.record()
    low, high = reward_range
    return {
        "format": FORMAT,
        "design": record.name,
        "parameters": record.parameters,
        "own": not _known(design, record),
        "arms": list(session.arms),
        "horizon": int(horizon),
        "features": _listed(features),
        "dimension": None if dimension is None else int(dimension),
        "per_arm": per_arm,
        "reward_range": [float(low), float(high)],
        "seed": seed.hex(),
        **exact,
        VERSIONS: installed(),
    }


def planned_terms(plan: StatedPlan, arms: Any, horizon: Any) -> tuple[Design, tuple[Any, ...], int, Entry]:
    """Design, arms and horizon of a plan, and its part of a first entry; other values are refused."""
    problems = []
    if arms is not None and (not isinstance(arms, (list, tuple)) or tuple(arms) != plan.arms):
        problems.append(
            f"arms must be those of the plan, {list(plan.arms)!r:.200}, or omitted: got {shown(arms)}"
        )
    beyond = horizon is not None and horizon != plan.horizon
    if beyond and (COUNT("horizon", horizon) or horizon < plan.horizon or plan.arguments["law"] != "z"):
        problems.append(
            f"horizon must be that of the plan, {plan.horizon:,}, omitted, or for a plan with law='z' "
            f"larger, to allow for changes of the plan: got {shown(horizon)}"
        )
    if not plan.design.traits.own_coins:
        name = type(plan.design).__name__
        problems.append(
            f"looks weight outcomes by the inverse of the arms' probabilities, but {name} does not draw arms "
            "at random: wrap it in a Mixture"
        )
    refuse("Trial.create", problems)
    most = plan.horizon if horizon is None else int(horizon)
    return plan.design, plan.arms, most, {PLAN: plan.arguments, LOOKS: plan.looks.tolist()}


def _known(design: Design, record: DesignRecord) -> bool:
    """Whether the design can be reconstructed from the record alone."""
    made = rebuilt(record)
    return made is not None and type(made) is type(design) and encode_record(made) == encode_record(design)


def encode_record(design: Design) -> Any:
    """Name and parameters of a design, as stored in a journal."""
    record = design.record()
    return encode([record.name, record.parameters])


def _listed(features: Any) -> list[Any] | None:
    if features is None:
        return None
    return list(range(features)) if isinstance(features, (int, np.integer)) else list(map(plain, features))


def design_of(path: str, entry: Entry, given: Any) -> Design:
    """The design of a trial: reconstructed from its first entry, or passed in if it is user-defined."""
    if entry["format"] not in _FORMATS:
        when = "a later" if entry["format"] > FORMAT else "an earlier"
        problem = (
            f"{when} version of adaptinf wrote it (in format {entry['format']}; this version writes {FORMAT})"
        )
        raise FileError(path, "read", f"{problem}: continue with that version")
    stated = encode([entry["design"], entry["parameters"]])
    if given is not None:
        refuse("Trial.open", problems_of(design=(given, _DESIGN)))
        if encode_record(given) != stated:
            raise ParameterError(
                "Trial.open", [f"the trial's design, {entry['design']}, differs from {given!r:.100}"]
            )
        return given  # type: ignore[no-any-return]
    made = None if entry["own"] else rebuilt(DesignRecord(entry["design"], entry["parameters"]))
    if made is None or encode_record(made) != stated:
        raise ParameterError(
            "Trial.open", [f"{entry['design']} is a user-defined design: pass it as design="]
        )
    return made


def session_of(entry: Entry, design: Design, draw: Draw) -> tuple[Session, Coins]:
    """The session that a first entry describes, and its coins; exact noise comes from `draw`."""
    coins = Coins(bytes.fromhex(entry["seed"]))
    declared: Any = tuple(entry[name] for name in _DECLARED)
    window, noise = entry.get("outcome_window"), entry.get("noise", "simulation")
    late, in_time = entry.get("late", design.lost_unsaid), entry.get("in_time")
    how = window, None, coins.generator, noise, draw, in_time, late
    session = open_session(design, declared, entry["horizon"], *how)
    return session, coins
