"""Errors travel between processes: pickled, they keep type, text and attributes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from joblib import Parallel, delayed

from adaptinf.audit.simulation.engine import AnalysisError
from adaptinf.audit.simulation.study_folder import Damaged
from adaptinf.errors import (
    AdaptinfError,
    FileError,
    GuaranteeError,
    InvalidForLog,
    JournalError,
    LogValidationError,
    MissingDependencyError,
    ParameterError,
    Problem,
)

PROBLEM = Problem("missing-reward", "rewards are missing: drop the rows", (3, 4), 2)
ERRORS: dict[AdaptinfError, dict[str, Any]] = {
    AdaptinfError("something"): {},
    ParameterError("PrivateUCB", ["epsilon must be positive"]): {
        "subject": "PrivateUCB",
        "problems": ("epsilon must be positive",),
    },
    ParameterError("study", ["one", "two"]): {"subject": "study", "problems": ("one", "two")},
    MissingDependencyError("a forest plot", "matplotlib", "plots"): {
        "purpose": "a forest plot",
        "package": "matplotlib",
        "extra": "plots",
    },
    FileError("log.csv", "written", "No space left on device"): {
        "path": "log.csv",
        "done": "written",
        "reason": "No space left on device",
    },
    GuaranteeError("units differ"): {},
    JournalError("trial.db", "row 17 is missing"): {"path": "trial.db", "reason": "row 17 is missing"},
    LogValidationError([PROBLEM]): {"problems": (PROBLEM,)},
    InvalidForLog("aipw", "there are no propensities", ["alee"]): {
        "method": "aipw",
        "reason": "there are no propensities",
        "alternatives": ("alee",),
    },
    AnalysisError("the design failed"): {},
    Damaged("a shard is damaged"): {},
}


def every_kind(kind: type[AdaptinfError]) -> set[type[AdaptinfError]]:
    return {kind}.union(*(every_kind(other) for other in kind.__subclasses__()))


def assert_same(error: AdaptinfError, other: AdaptinfError, attributes: dict[str, Any]) -> None:
    assert type(other) is type(error)
    assert str(other) == str(error)
    assert other.args == error.args
    assert {name: getattr(other, name) for name in attributes} == attributes
    assert other.__dict__ == error.__dict__


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_errors_come_back_from_a_pickle(error: AdaptinfError, protocol: int) -> None:
    assert_same(error, pickle.loads(pickle.dumps(error, protocol)), ERRORS[error])


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_can_be_copied(error: AdaptinfError) -> None:
    assert_same(error, copy.deepcopy(error), ERRORS[error])


def test_every_kind_of_error_is_tested() -> None:
    ours = {kind for kind in every_kind(AdaptinfError) if kind.__module__.startswith("adaptinf.")}
    assert ours == {type(error) for error in ERRORS}


def test_what_an_import_error_has_of_its_own_is_kept() -> None:
    error = MissingDependencyError("a forest plot", "matplotlib", "plots")
    assert pickle.loads(pickle.dumps(error)).msg == error.msg == str(error)


def test_notes_are_kept() -> None:
    error = ParameterError("study", ["one"])
    error.add_note("in replicate 3")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["in replicate 3"]


def fail(number: int) -> None:
    raise InvalidForLog("aipw", f"log {number} has no propensities", ["alee"])


@pytest.mark.slow
def test_an_error_in_a_worker_reaches_the_parent() -> None:
    with pytest.raises(InvalidForLog, match="log 7 has no propensities") as caught:
        Parallel(n_jobs=2)(delayed(fail)(7) for _ in range(2))
    assert caught.value.alternatives == ("alee",)
