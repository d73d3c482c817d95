"""Audits of private successive elimination: never above epsilon, and close to it."""

from __future__ import annotations

import numpy as np
import pytest

from adaptinf.audit import epsilon_lower_bound
from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.designs.arms.elimination import PrivateSuccessiveElimination
from adaptinf.errors import ParameterError


@pytest.mark.parametrize(
    ("epsilon", "least"),
    # at 30,000 runs; 10^6 give .9 epsilon or more at 1 and 4, .85 at .1 (one Laplace variable)
    [(0.1, 0.0), (1.0, 0.85), (4.0, 3.5)],
)
def test_releases(epsilon: float, least: float) -> None:
    design = PrivateSuccessiveElimination(epsilon=epsilon, beta=1.0)
    found = epsilon_lower_bound(design, view="releases", runs=30_000, rng=1)
    assert found.promised == design.guarantee(1_000, 2)
    assert least <= found.epsilon <= epsilon
    assert not found.refuted


@pytest.mark.parametrize(("epsilon", "least"), [(0.1, 0.0), (1.0, 0.45), (4.0, 2.5)])
def test_actions(epsilon: float, least: float) -> None:
    """Whether the first arm is dropped is a tail of the difference of two Laplace variables."""
    design = PrivateSuccessiveElimination(epsilon=epsilon, beta=1.0)
    found = epsilon_lower_bound(design, view="actions", runs=20_000, rng=2)
    assert least <= found.epsilon <= epsilon
    if epsilon >= 1.0:
        assert found.event.startswith("the arms pulled in rounds 713, 714 are ")


@pytest.mark.parametrize("beta", [1.0, 0.1, None])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 50.0])
def test_neighbours_hold_one_epoch(epsilon: float, beta: float | None) -> None:
    design = PrivateSuccessiveElimination(epsilon=epsilon, beta=beta)
    (pair,) = neighbouring_trials(design, "reward")
    tables = [env.tables(pair.horizon).tableau for env in (pair.first, pair.second)]
    assert np.flatnonzero((tables[0] != tables[1]).any(axis=1)).tolist() == [0]
    assert (tables[0][0].tolist(), tables[1][0].tolist()) == ([0.0, 0.0], [1.0, 1.0])
    log = design.run(pair.first, pair.horizon, rng=0)
    assert log.releases["round"].tolist() == [len(pair.hidden)] * 2
    assert pair.horizon - len(pair.hidden) in (2, 3)


def test_units_that_are_refused() -> None:
    design = PrivateSuccessiveElimination(epsilon=1.0)
    for unit in ("record", "round", 1):
        with pytest.raises(ParameterError, match=r"neighbouring_trials: unit, if"):
            neighbouring_trials(design, unit)  # type: ignore[arg-type]
