from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptinf.designs import (
    ABSE,
    DPBAI,
    DPOD,
    ConSE,
    Design,
    DPBAIGauss,
    DPConSE,
    LDPBandit,
    LDPLinear,
    LinPriv,
    Mixture,
    PrivateSuccessiveElimination,
    PrivateUCB,
    SequentialHalving,
    Session,
    SuccessiveElimination,
    Thompson,
)
from adaptinf.errors import ParameterError
from tests.unit.sessions.test_sessions_are_runs import FEATURES, MANY, VECTORS

ROUNDS = 400
LOST = frozenset(range(3, ROUNDS, 6))


def with_lost(session: Session, value: float | None, contexts: Any = None) -> Session:
    """The session after all rounds, a value told in the place of each outcome that was lost."""
    for step in range(session._horizon):
        decision = session.assign(context=None if contexts is None else contexts[step])
        reward = MANY[step % ROUNDS, decision.arm]
        session.record(decision.id, value if step % ROUNDS in LOST else reward)
    return session


@pytest.mark.parametrize(
    ("design", "options", "counts_as"),
    [
        (PrivateUCB(epsilon=1.0), {}, 0.0),
        (LinPriv(epsilon=1.0), {"dimension": 2}, 0.0),
        (Mixture(PrivateUCB(epsilon=1.0), exploration=0.2), {}, 0.0),
        (DPConSE(epsilon=1.0), {"features": 3}, 0.0),
        (LDPBandit(epsilon=8.0), {"dimension": 2}, 0.0),
        (LDPLinear(epsilon=8.0), {"dimension": 2}, 0.0),
        (DPBAI(epsilon=1.0, features=FEATURES), {}, 0.0),
        (DPBAIGauss(epsilon=1.0, delta=1e-5, features=FEATURES), {}, 0.0),
        (DPOD(epsilon=1.0, features=FEATURES), {}, 0.0),
        (PrivateSuccessiveElimination(epsilon=8.0), {}, 0.0),
    ],
)
def test_a_lost_outcome_counts_as_the_design_says(
    design: Design, options: dict[str, Any], counts_as: float
) -> None:
    contexts: Any = None
    if "dimension" in options:
        contexts = VECTORS[:, 0]
    elif "features" in options:
        contexts = (np.arange(ROUNDS) % 3).tolist()
    arms = 8 if hasattr(design, "features") else 2
    horizon = 6_000 if isinstance(design, PrivateSuccessiveElimination) else ROUNDS
    lost, told = (
        with_lost(design.session(arms, horizon, rng=4, **options), value, contexts)
        for value in (None, counts_as)
    )
    log, full = lost.log(missing="drop"), told.log()
    assert lost.pending == ()
    np.testing.assert_array_equal(log.arrays.action, full.arrays.action)
    assert log.releases is not None
    assert full.releases is not None
    assert len(full.releases) > 0
    pd.testing.assert_frame_equal(log.releases, full.releases, check_exact=True)
    absent = log.frame["reward"].isna().to_numpy()
    assert np.flatnonzero(absent).tolist() == [step for step in range(horizon) if step % ROUNDS in LOST]
    assert (full.frame["reward"].to_numpy()[absent] == counts_as).all()
    assert log.arrays.known is not None
    np.testing.assert_array_equal(log.arrays.known, np.where(absent, horizon, np.arange(horizon) + 1))


@pytest.mark.parametrize(
    ("design", "options"),
    [
        (SuccessiveElimination(), {}),
        (SequentialHalving(), {}),
        (ConSE(), {"features": [0, 1]}),
        (ABSE(), {"dimension": 1}),
        (Mixture(SuccessiveElimination()), {}),
    ],
)
def test_a_design_without_a_rule_needs_every_outcome(design: Design, options: dict[str, Any]) -> None:
    session = design.session(2, ROUNDS, **options)
    context = 0 if "features" in options else [0.5] if "dimension" in options else None
    session.assign(context=context)
    with pytest.raises(
        ParameterError, match=r"decision 1 requires an outcome: .* no rule for an outcome that never arrives"
    ):
        session.record(1, None)
    assert session.pending == (1,)
    assert session.record(1, 1.0).in_time


def test_a_design_that_takes_any_outcomes_learns_nothing_of_a_lost_one() -> None:
    told, untold = Thompson().session(2, ROUNDS, rng=3), Thompson().session(2, ROUNDS, rng=3)
    for step in range(100):
        one, other = told.assign(), untold.assign()
        assert one == other
        if step in LOST:
            assert told.record(one.id, None).in_time is False
        else:
            told.record(one.id, MANY[step, one.arm])
            untold.record(other.id, MANY[step, one.arm])
    assert told.pending == ()
    assert untold.pending == tuple(step + 1 for step in range(100) if step in LOST)
    pd.testing.assert_frame_equal(told.log(missing="drop").frame, untold.log(missing="drop").frame)


def test_what_is_lost_stays_lost() -> None:
    session = Thompson().session(2, ROUNDS, rng=3)
    session.assign()
    first = session.record(1, None, key="k")
    assert session.record(1, None, key="k") == session.record(1, None) == first
    with pytest.raises(ParameterError, match="decision 1 already has another outcome: amend"):
        session.record(1, 1.0)
    session.assign()
    session.record(2, 0.0)
    with pytest.raises(ParameterError, match="decision 2 already has another outcome: amend"):
        session.record(2, None)


def test_a_lost_outcome_of_a_window_is_as_one_that_is_not_told() -> None:
    design = PrivateUCB(epsilon=1.0)
    told, untold = (design.session(2, ROUNDS, window=4, rng=3) for _ in range(2))
    for step in range(ROUNDS):
        one, other = told.assign(), untold.assign()
        assert one == other
        if step in LOST:
            assert told.record(one.id, None).in_time is False
        else:
            told.record(one.id, MANY[step, one.arm])
            untold.record(other.id, MANY[step, one.arm])
    logs = told.log(missing="drop"), untold.log(missing="drop")
    pd.testing.assert_frame_equal(logs[0].frame, logs[1].frame)
    assert logs[0].releases is not None
    assert logs[1].releases is not None
    pd.testing.assert_frame_equal(logs[0].releases, logs[1].releases, check_exact=True)
