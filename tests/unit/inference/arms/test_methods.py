"""The list of methods of arm means: what follows from it, for every method and log."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from claims_said import says

from adaptinf import designs
from adaptinf.claims import Claim
from adaptinf.claims.arms.arm_fits import CHOSEN
from adaptinf.claims.privacy import releases
from adaptinf.errors import AdaptinfWarning, InvalidForLog, ParameterError
from adaptinf.inference.arms import ArmMeans, Contrast, choice
from adaptinf.inference.arms.choice import (
    CONTRAST_ESTIMATORS,
    ESTIMATORS,
    METHODS,
    arm_verdicts,
    default_estimator,
    valid_alternatives,
)
from adaptinf.inference.arms.question import Question
from adaptinf.inference.arms.record import ArmMethod
from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.inference.validity.methods import Verdict
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms, FiniteContext, NormalArms

OPTIONS = {"weights": "uniform", "decay": 0.3, "outcome": "running-mean"}


def steady(*, batch: bool) -> AdaptiveLog:
    rng = np.random.default_rng(2)
    action = rng.integers(0, 2, size=120)
    arrays = LogArrays(
        action=action,
        reward=rng.normal(action, 1.0),
        propensity=np.full(120, 0.5),
        propensities=np.full((120, 2), 0.5),
        batch=np.arange(120) // 40 if batch else None,
    )
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"))


TWO = BernoulliArms([0.4, 0.6])
GROUPS = FiniteContext([0.5, 0.5], [[0.3, 0.6], [0.7, 0.4]])
LOGS: dict[str, Callable[[], AdaptiveLog]] = {
    "steady": lambda: steady(batch=True),
    "without batches": lambda: steady(batch=False),
    "ucb": lambda: designs.UCB().run(TWO, 200, rng=1),
    "private": lambda: designs.PrivateUCB(epsilon=0.1).run(TWO, 200, rng=1),
    "elimination": lambda: designs.PrivateSuccessiveElimination(epsilon=1.0, beta=0.5).run(TWO, 1_000, rng=1),
    "thompson": lambda: designs.Thompson(floor=(0.5, 0.7), batch_size=20).run(TWO, 200, rng=1),
    "uniform": lambda: designs.Uniform().run(NormalArms([0.0, 1.0]), 200, rng=1),
    "groups": lambda: designs.Thompson(floor=0.05, batch_size=20).run(GROUPS, 200, rng=1),
}


@functools.cache
def log_of(name: str) -> AdaptiveLog:
    """Run when a test asks for it, not while tests are collected."""
    return LOGS[name]()


def models(log: AdaptiveLog) -> Iterator[tuple[Any, Question]]:
    yield ArmMeans(log), Question(profile_of(log), np.array([0, 1]))
    pair = {"treatment": log.arms[1], "control": log.arms[0]}
    yield Contrast(log, **pair), Question(profile_of(log), np.array([1, 0]), contrast=True)


def quietly(model: Any, **arguments: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptinfWarning)
        return model.fit(**arguments)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_name_is_accepted_by_fit(method: ArmMethod) -> None:
    log = log_of("elimination" if method.name == "released" else "steady")
    contrast = Contrast(log, treatment=log.arms[1], control=log.arms[0])
    assert contrast.fit(method.name).estimator == method.name
    if method.name == "released":  # means have releases of their own
        with pytest.raises(InvalidForLog) as error:
            ArmMeans(log_of("steady")).fit(method.name)
        assert says(error.value.reason, releases.NOTHING_IN_TIME)
    elif method.contrast_only:
        with pytest.raises(ParameterError, match=f"estimator '{method.name}' is for contrasts"):
            ArmMeans(log_of("steady")).fit(method.name)
    else:
        assert ArmMeans(log_of("steady")).fit(method.name).estimator == method.name


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("option", OPTIONS)
def test_options_of_other_methods_are_refused(method: ArmMethod, option: str) -> None:
    model = Contrast(log_of("steady"), treatment="b", control="a")
    arguments = {"estimator": method.name, option: OPTIONS[option]}
    if option in method.options:
        assert quietly(model, **arguments).estimator == method.name
        return
    with pytest.raises(
        ParameterError, match=r"outcome and ridge apply to aipw, not to|do not apply|does not apply"
    ):
        model.fit(**arguments)


@pytest.mark.parametrize("name", LOGS)
def test_verdicts_run_or_are_refused_with_their_reason(name: str) -> None:
    for model, question in models(log_of(name)):
        found = arm_verdicts(question)
        assert {one.arguments["estimator"] for one in found} == set(
            CONTRAST_ESTIMATORS if question.contrast else ESTIMATORS
        )
        for one in found:
            asked = dict(one.arguments)
            if one.valid or one.baseline:
                result = quietly(model, **asked)
                assert result.estimator == asked["estimator"]
                notes = " ".join(result.notes)
                warned = "not valid" in notes or "invalid under adaptive assignment" in notes
                assert warned == (not one.valid or "corrected" in one.name)
                continue
            if one.arguments in [other.arguments for other in found if other.valid or other.baseline]:
                continue  # a column of a table that another verdict is of
            with pytest.raises((InvalidForLog, ParameterError)) as caught:
                quietly(model, **asked)
            if isinstance(caught.value, InvalidForLog):
                assert one.reason.removeprefix("it needs") in str(caught.value).replace("they need", "")
            else:
                assert "decay=" in one.reason
                assert "decay=" in str(caught.value)


@pytest.mark.parametrize("name", LOGS)
def test_the_default_is_the_first_valid_verdict(name: str) -> None:
    log = log_of(name)
    for model, question in models(log):
        first = arm_verdicts(question)[0]
        if not first.valid:
            with pytest.raises(InvalidForLog):
                model.fit()
            continue
        default, asked = quietly(model), quietly(model, **first.arguments)
        np.testing.assert_array_equal(default.estimate, asked.estimate)
        reason = f"{first.reason}. Caution: {first.warning}" if first.warning else first.reason
        assert says(default.notes, CHOSEN, data="log", reason=reason)


def test_a_method_that_is_listed_is_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name, default, alternatives, notes and rows follow from the record."""
    mean = next(method for method in METHODS if method.name == "sample-mean")
    own = replace(
        mean,
        name="own",
        assess=lambda question: [Verdict("own", "asymptotic", (-1,), {"estimator": "own"}, "why", "what")],
        settle=lambda question, asked: choice.Choice("own"),
        claims=(Claim("always", "Own: a note.", "note"),),
        implied_by=(),
        no_weights="own",
        baseline=False,
    )
    monkeypatch.setattr(choice, "METHODS", (*METHODS, own))
    monkeypatch.setattr(choice, "_NAMED", {**choice._NAMED, "own": own})
    log = log_of("ucb")
    assert default_estimator(log).estimator == "own"
    assert valid_alternatives(log)[0] == "own"
    assert ArmMeans(log).fit().notes[0] == "Own: a note."
    assert recommend(log).best.call == "ArmMeans(log).fit(estimator='own')"
    with pytest.raises(
        ParameterError, match="weights do not apply to own: omit weights and decay, or choose"
    ):
        ArmMeans(log).fit("own", weights="sqrt")
    with pytest.raises(InvalidForLog, match="possible alternatives: own; alee"):
        ArmMeans(log).fit("aipw")
