from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import adaptinf as ai
from adaptinf.designs import UCB, Design, LinUCB, PrivateUCB, Thompson, Uniform
from adaptinf.errors import ParameterError
from adaptinf.log import read_log
from tests.unit.sessions.test_sessions_are_runs import COINS, VECTORS, fed

ROUNDS, PLANNED = 100, 250


def test_the_log_says_for_how_many_rounds_it_was_planned(tmp_path: Path) -> None:
    session = Thompson().session(3, PLANNED, rng=1)
    early = fed(session, COINS[:ROUNDS]).log()
    assert early.design is not None
    assert early.design.parameters == {**Thompson().record().parameters, "planned_rounds": PLANNED}
    early.to_parquet(tmp_path / "log.parquet")
    stored = read_log(tmp_path / "log.parquet").design
    assert stored is not None
    assert stored.parameters["planned_rounds"] == PLANNED
    whole = fed(session, COINS[ROUNDS:PLANNED]).log()
    assert whole.design == Thompson().record()


@pytest.mark.parametrize("design", [Thompson(), Thompson(prior="normal"), UCB(), Uniform()])
def test_a_design_that_does_not_plan_is_run_again_on_a_log_that_stopped_early(design: Design) -> None:
    log = fed(design.session(3, PLANNED, rng=1), COINS[:ROUNDS]).log()
    whole = fed(design.session(3, ROUNDS, rng=1), COINS[:ROUNDS]).log()
    tests = [ai.audit.randomization_test(one, design, replications=19, rng=2) for one in (log, whole)]
    assert tests[0].pvalue == tests[1].pvalue


@pytest.mark.parametrize("resample", ["assignment", "order"])
def test_a_design_that_plans_is_not(resample: str) -> None:
    design = PrivateUCB(epsilon=1.0)
    log = fed(design.session(3, PLANNED, rng=1), COINS[:ROUNDS]).log()
    with pytest.raises(
        ParameterError, match=("the log contains 100 of 250 planned rounds, and the choices of PrivateUCB")
    ):
        ai.audit.randomization_test(log, design, replications=19, rng=2, resample=resample)
    with pytest.raises(ParameterError, match="100 of 250 planned rounds"):
        ai.audit.simulate_bias(log, replications=64, rng=2)


def test_nor_is_a_linear_one() -> None:
    design = LinUCB()
    session = design.session(3, PLANNED, dimension=2, per_arm=True, rng=1)
    log = fed(session, COINS[:ROUNDS], np.asarray(VECTORS[:ROUNDS])).log()
    with pytest.raises(ParameterError, match="100 of 250 planned rounds"):
        ai.audit.simulate_bias(log, replications=64, rng=2)
