"""Arguments of a plan: their interpretation, and problems with them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from adaptinf.designs.base import Design
from adaptinf.inference.group_sequential.joint_crossing import MOST
from adaptinf.inference.group_sequential.spending import SHAPES, SPENDING
from adaptinf.parameters import (
    COUNT,
    FINITE,
    NON_NEGATIVE,
    POSITIVE,
    Constraint,
    Count,
    Is,
    OneOf,
    OrNone,
    alpha_problems,
    number_array,
)
from adaptinf.plans.planning.count_looks import count_problems
from adaptinf.plans.planning.dates import date_problems
from adaptinf.plans.planning.information_looks import information_problems
from adaptinf.plans.planning.timing import timing_problems
from adaptinf.texts import absent
from adaptinf.typing import FloatArray


def plan_problems(
    given: Mapping[str, Any], labels: tuple[Any, ...], treatments: tuple[Any, ...]
) -> list[str]:
    """All problems with the arguments of a plan."""
    law, looks, drop = given["law"], given["looks"], given["drop"]
    problems = arm_problems(given["arms"], labels, treatments, given["control"])
    problems += [found for name, allowed in _ALLOWED.items() for found in allowed(name, given[name])]
    problems += alpha_problems(given["alpha"])
    problems += timing_problems(given["delay"], given["accrual"], given["dropout"])
    rounds = number_array(looks)
    clock = given["clock"]
    if clock == "date":
        problems += date_problems(looks, given["start"], given["horizon"], given["accrual"], law)
    elif clock == "information":
        problems += information_problems(looks, given["horizon"], law, drop)
    else:
        problems += look_problems(looks, rounds, given["horizon"])
    if clock != "date" and given["start"] is not None:
        problems.append('start requires clock="date"')
    problems += earlier_problems(given["earlier"], looks, given["spending"], law)
    for name in ("futility", "drop"):
        problems += limit_problems(name, given[name], by_look(given[name], looks))
    if drop is not None and (len(treatments) < 2 or law != "z"):
        problems.append("drop requires several treatments and law 'z'")
    if given["strata"] is not None and law != "z":
        problems.append(f'strata requires law="z", got {law!r}')
    return problems + law_problems(
        law, given["margin"], given["design"], len(labels), None if problems or clock != "rounds" else rounds
    )


_ALLOWED: Mapping[str, Constraint] = MappingProxyType(
    {
        "design": Is(Design, "a design"),
        "horizon": OrNone(COUNT),
        "spending": OneOf(*SPENDING, *SHAPES),
        "gamma": FINITE,
        "rho": POSITIVE,
        "sides": Is(lambda sides: sides in (1, 2), "1 or 2"),
        "margin": FINITE,
        "inflation": POSITIVE,
        "law": OneOf("z", "rerandomization", "exact"),
        "replays": COUNT,
        "seed": Count(0),
        "least": NON_NEGATIVE,
        "clock": OneOf("rounds", "date", "information"),
        "strata": OrNone(Is(str, "the name of a column")),
    }
)


def treatments_of(treatment: Any, labels: tuple[Any, ...]) -> tuple[Any, ...]:
    """The treatments; a label may itself be a tuple."""
    several = isinstance(treatment, (list, tuple)) and treatment not in labels
    return tuple(treatment) if several else (treatment,)


def arm_problems(arms: Any, labels: tuple[Any, ...], treatments: tuple[Any, ...], control: Any) -> list[str]:
    """Problems with the labels of arms."""
    if len(labels) < 2 or len(set(labels)) < len(labels):
        return [f"arms must be a list of at least two labels, got {arms!r:.60}"]
    named = (*(("treatment", one) for one in treatments), ("control", control))
    problems = [absent(name, one, labels, "the plan has") for name, one in named if one not in labels]
    if control in treatments:
        problems.append(f"treatment and control must be two arms, got {control!r} twice")
    if not 1 <= len(treatments) <= MOST or any(treatments.count(one) > 1 for one in treatments):
        problems.append(f"treatments must be one to {MOST} different arms, got {treatments!r:.80}")
    return problems


def look_problems(looks: Any, rounds: FloatArray | None, horizon: Any) -> list[str]:
    """Problems with the rounds of looks."""
    listed = rounds is not None and rounds.ndim == 1 and len(rounds) > 0
    if not listed or rounds is None or not np.array_equal(rounds, np.floor(rounds)):
        return [f"looks must be whole numbers of rounds, got {looks!r:.60}"]
    if rounds[0] < 1 or np.any(np.diff(rounds) <= 0):
        return [f"looks must be positive numbers of rounds in ascending order, got {looks!r:.60}"]
    if horizon is not None and horizon != rounds[-1]:
        return [f"the last look must be at the horizon, {horizon!r:.20}, got {looks!r:.60}"]
    return []


def earlier_problems(earlier: Any, looks: Any, spending: Any, law: Any) -> list[str]:
    """Problems with the shares of looks that were planned before a change."""
    shares = number_array(earlier)
    size = len(looks) if hasattr(looks, "__len__") else 1
    told = f"earlier must be ascending shares between 0 and 1 of the first looks, got {earlier!r:.60}"
    if shares is None or shares.ndim != 1 or len(shares) >= size:
        return [told]
    if len(shares) and (shares[0] <= 0.0 or shares[-1] >= 1.0 or np.any(np.diff(shares) <= 0.0)):
        return [told]
    if len(shares) and (law == "exact" or spending not in SPENDING):
        return ["a plan can be changed if it has a spending function, and law is not 'exact'"]
    return []


def by_look(scores: Any, looks: Any) -> FloatArray | None:
    """Limits of scores for the looks before the last, minus infinity if there is no rule; None if invalid."""
    size = len(looks) if hasattr(looks, "__len__") else 1
    found = np.full(size, -np.inf)
    if scores is None:
        return found
    given = number_array(scores)
    if given is None or not np.all(np.isfinite(given)) or given.shape not in ((), (size - 1,)):
        return None
    found[:-1] = given
    return found


def limit_problems(name: str, given: Any, found: FloatArray | None) -> list[str]:
    """Problems with scores at which something stops."""
    if found is not None:
        return []
    return [f"{name} must be one number, or one for each look except the last, got {given!r:.60}"]


def law_problems(law: Any, margin: Any, design: Any, n_arms: int, rounds: FloatArray | None) -> list[str]:
    """Problems with the exact laws; rounds (k,) are those of the looks, None if something else is wrong."""
    if law == "rerandomization" and margin != 0.0:
        return [f"margin must be 0, because re-randomisation tests a difference of 0, got {margin!r:.20}"]
    return count_problems(design, n_arms, rounds, margin) if law == "exact" else []
