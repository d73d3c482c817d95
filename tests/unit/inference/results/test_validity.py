"""What numbers are worth is a field: every model sets it, and nothing reads it off the words of a note."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from claims_said import says
from statsmodels.iolib.summary import Summary

import adaptinf as ai
import adaptinf.inference
from adaptinf import designs
from adaptinf.claims import tables
from adaptinf.claims.arms.arm_fits import AT_SHARES
from adaptinf.claims.arms.sample_means import VARIATION
from adaptinf.claims.regression import regressions
from adaptinf.claims.views import Assumed
from adaptinf.errors import InvalidForLog
from adaptinf.inference.distributions.references import NormalReference
from adaptinf.inference.results.fit_results import Results
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import BernoulliArms, FiniteContext, NormalArms
from adaptinf.simulation.environments.vector_arms import SmoothArms
from adaptinf.typing import VALIDITY_LABELS

PAIR = {"treatment": 1, "control": 0}
ARMS = BernoulliArms([0.3, 0.6])
GROUPS = FiniteContext([0.6, 0.4], [[0.3, 0.7], [0.6, 0.2]])


@cache
def log(name: str) -> AdaptiveLog:
    return {
        "uniform": lambda: designs.Uniform().run(ARMS, 300, rng=1),
        "uniform normal": lambda: designs.Uniform().run(NormalArms([0.0, 0.5]), 300, rng=1),
        "few": lambda: designs.Uniform().run(BernoulliArms([0.02, 0.03]), 200, rng=1),
        "groups": lambda: designs.Uniform().run(GROUPS, 400, rng=1),
        "thompson": lambda: designs.Thompson(floor=0.1, batch_size=50).run(ARMS, 300, rng=1),
        "ucb": lambda: designs.UCB().run(ARMS, 300, rng=1),
        "private": lambda: designs.PrivateUCB(epsilon=0.05).run(ARMS, 2000, rng=0),
        "private normal": lambda: private(designs.UCB().run(NormalArms([0.0, 0.5]), 300, rng=0)),
        "bins": lambda: designs.LDPBandit(epsilon=200.0).run(SmoothArms(3, 2), 6_000, rng=0),
    }[name]()


def private(found: AdaptiveLog) -> AdaptiveLog:
    promise = ai.PrivacyGuarantee(epsilon=0.05)
    return AdaptiveLog.from_arrays(found.arrays, arms=found.arms, guarantee=promise)


def means(*asked: Any, **options: Any) -> Callable[[AdaptiveLog], Results]:
    return lambda found: ai.ArmMeans(found).fit(*asked, **options)


def contrast(*asked: Any, **options: Any) -> Callable[[AdaptiveLog], Results]:
    return lambda found: ai.Contrast(found, **PAIR).fit(*asked, **options)


def regression(*asked: Any, **options: Any) -> Callable[[AdaptiveLog], Results]:
    return lambda found: ai.AdaptiveOLS.from_formula("reward ~ C(action)", found).fit(*asked, **options)


def sequence(method: str, target: str = "arm-means", **given: Any) -> Callable[[AdaptiveLog], Results]:
    return lambda found: ai.ConfidenceSequence(found, target, **given).fit(method)


def settled(variation: float) -> Callable[[AdaptiveLog], Results]:
    """Sample means as `recommend` fits them where re-simulated arm counts are said to vary so much."""

    def run(found: AdaptiveLog) -> Results:
        rows = ai.recommend(found, stability=variation).methods
        return next(row for row in rows if row.verdict.name == "sample-mean").run()

    return run


FITS: list[tuple[str, Callable[[AdaptiveLog], Results], str]] = [
    ("uniform", means("sample-mean"), "asymptotic"),
    ("uniform", means("sample-mean", test="exact"), "exact"),
    ("uniform", contrast("sample-mean", test="exact"), "exact"),
    ("few", means("sample-mean"), "exact"),
    ("few", contrast("sample-mean"), "asymptotic"),
    ("uniform", means(), "asymptotic"),
    ("thompson", means("sample-mean"), "not valid"),
    ("thompson", means("sample-mean", test="exact"), "not valid"),
    ("thompson", contrast("sample-mean"), "not valid"),
    ("thompson", means("alee"), "asymptotic"),
    ("thompson", means("ipw", "sqrt"), "asymptotic"),
    ("thompson", contrast("aipw"), "asymptotic"),
    ("thompson", contrast("batched"), "asymptotic"),
    ("ucb", means("sample-mean"), "asymptotic"),
    ("ucb", means("sample-mean", test="exact"), "not valid"),
    ("ucb", settled(0.02), "asymptotic"),
    ("thompson", settled(0.02), "asymptotic"),
    ("thompson", settled(0.5), "not valid"),
    ("private", means("sample-mean"), "not valid"),
    ("private", contrast("sample-mean", test="exact"), "not valid"),
    ("private normal", contrast("sample-mean"), "not valid"),
    ("private", means("alee"), "asymptotic"),
    ("uniform normal", regression("none"), "asymptotic"),
    ("uniform normal", regression("anytime"), "asymptotic"),
    ("thompson", regression("none"), "not valid"),
    ("ucb", regression("none"), "asymptotic"),
    ("private", regression("none"), "not valid"),
    ("private", regression("max-information"), "not valid"),
    ("thompson", regression("w-decorrelation"), "asymptotic"),
    ("thompson", regression("batched"), "asymptotic"),
    ("thompson", regression("ellipsoid", noise_scale=0.5, bound=2.0), "exact"),
    ("thompson", sequence("betting"), "anytime"),
    ("thompson", sequence("empirical-bernstein", "contrast", **PAIR), "anytime"),
    ("thompson", sequence("normal-mixture", "policy-value", policy=1), "anytime"),
    ("thompson", sequence("asymptotic"), "asymptotic"),
    ("thompson", lambda found: ai.PolicyValue(found, "uniform").fit(), "asymptotic"),
    ("thompson", lambda found: ai.PolicyContrast(found, 1, baseline=0).fit(), "asymptotic"),
    ("groups", lambda found: ai.CATE(found, by="feature", **PAIR).fit(), "asymptotic"),
    ("groups", lambda found: ai.CATE(found, by="feature", **PAIR).fit().interactions(), "asymptotic"),
    ("groups", lambda found: ai.CATE.from_formula("~ feature", found, **PAIR).fit(), "asymptotic"),
    ("bins", lambda found: ai.BinMeans(found).fit(method="anytime"), "exact"),
    ("bins", lambda found: ai.BinMeans(found).fit(method="budget"), "asymptotic"),
]
# a log of bins takes longer to compile than all others together
CASES = [pytest.param(*row, marks=[pytest.mark.slow] * (row[0] == "bins")) for row in FITS]
BASELINES = [(name, fit) for name, fit, label in FITS if label == "not valid"]


@pytest.mark.parametrize(("name", "fit", "label"), CASES)
def test_every_model_says_what_its_numbers_are_worth(
    name: str, fit: Callable[[AdaptiveLog], Results], label: str
) -> None:
    result = fitted(name, fit)
    assert result.validity == label
    assert label in VALIDITY_LABELS
    assert set(ai.compare({"one": result}).to_frame()["label"]) == {label}
    assert getattr(result, "naive", label == "not valid") == (label == "not valid")


@cache
def fitted(name: str, fit: Callable[[AdaptiveLog], Results]) -> Results:
    return fit(log(name))


def answers(result: Results) -> list[str]:
    """What tests, simultaneous intervals and comparisons say, refusals too."""
    first = np.eye(len(result.terms))[:1]
    calls: list[Callable[[], Any]] = [
        lambda: result.t_test(first),
        lambda: result.wald_test(first),
        lambda: result.conf_int_simultaneous(method="max-t"),
        lambda: result.conf_int_simultaneous(method="sidak"),
        lambda: result.pvalues_simultaneous("bootstrap"),
        lambda: ai.compare({"one": result}),
    ]
    said = []
    for call in calls:
        try:
            said.append(str(call()))
        except InvalidForLog as refusal:
            said.append(str(refusal))
    return said


@cache
def answered(name: str, fit: Callable[[AdaptiveLog], Results]) -> list[str]:
    return answers(fitted(name, fit))


@pytest.mark.parametrize(("name", "fit", "label"), CASES)
@pytest.mark.parametrize("words", ["Sample means: not valid", "anything"])
def test_the_words_of_notes_decide_nothing(
    name: str, fit: Callable[[AdaptiveLog], Results], label: str, words: str
) -> None:
    result = fitted(name, fit)
    other = dataclasses.replace(result, notes=tuple(f"{words} {i}" for i in range(len(result.notes))))
    assert answers(other) == answered(name, fit)
    assert other.validity == label


@pytest.mark.parametrize("name", ["ArmMeans", "ConfidenceSequence", "Contrast"])
def test_the_name_of_the_model_decides_nothing(name: str) -> None:
    for known, fit in BASELINES:
        result = fitted(known, fit)
        assert answers(dataclasses.replace(result, model=name)) == answered(known, fit)


def test_combinations_of_baselines_are_told_to_be_no_better() -> None:
    for name, fit in BASELINES:
        result = fitted(name, fit)
        first = np.eye(len(result.terms))[:1]
        for test in (result.t_test(first), result.wald_test(first)):
            text = " ".join(test.notes)
            told = (regressions.TEST_CORRECTED, regressions.TEST_NAIVE)
            assert says(text, tables.NOT_VALID) or any(says(test.notes, claim) for claim in told)
            better = dataclasses.replace(result, validity="asymptotic")
            assert not any(says(better.t_test(first).notes, claim) for claim in (*told, tables.NOT_VALID))


def test_sample_means_that_recommend_knows_to_be_valid_say_why_in_the_first_note() -> None:
    plain, known = means("sample-mean")(log("thompson")), settled(0.02)(log("thompson"))
    first, *others = (note for note in known.notes if not isinstance(note, Assumed))
    assert says(first, VARIATION, variation=0.02)
    assert others == [note for note in plain.notes if not isinstance(note, Assumed)][1:]


def references() -> list[type]:
    """Every law of estimates in the package: what has p-values and intervals, exact ones or not."""
    found = {}
    for module in pkgutil.walk_packages(adaptinf.inference.__path__, "adaptinf.inference."):
        for kind in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(kind) and all(
                hasattr(kind, name) for name in ("exact", "log_pvalues", "interval")
            ):
                found[kind.__qualname__] = kind
    return list(found.values())


def test_every_law_says_how_tables_show_it() -> None:
    laws = references()
    assert len(laws) > 10
    for law in laws:
        for name in ("statistic", "normal", "uses_std_error"):
            assert hasattr(law, name), f"{law.__qualname__} has no {name}"


@pytest.mark.parametrize(
    ("name", "fit", "letter", "described", "normal"),
    [
        ("uniform normal", means("sample-mean"), "t", False, False),
        ("uniform normal", means("aipw"), "t", False, False),
        ("uniform normal", means("aipw", test="normal"), "z", False, True),
        ("few", contrast("sample-mean"), "z", False, False),
        ("few", means("sample-mean"), "z", True, False),
        ("thompson", contrast("batched"), "t", False, False),
        ("thompson", contrast("batched", test="normal"), "z", False, True),
        ("thompson", regression("batched", test="normal"), "z", True, True),
        ("uniform normal", regression("anytime"), "t", True, False),
        ("thompson", sequence("betting"), "z", True, False),
    ],
)
def test_summaries_follow_the_law(
    name: str, fit: Callable[[AdaptiveLog], Results], letter: str, described: bool, normal: bool
) -> None:
    result = fitted(name, fit)
    law = result.reference
    assert (law.statistic, law.uses_std_error, law.normal) == (letter, not described, normal)
    text = result.summary().as_text()
    header = next(line for line in text.splitlines() if "coef" in line).split()
    assert header[header.index("err") + 1] == letter
    assert says(result.explain().texts, tables.WITHOUT_STD_ERROR) == described


def test_the_name_of_a_law_decides_nothing() -> None:
    result = means("aipw", test="normal")(log("uniform"))
    law = NormalReference(result.estimate, result.std_error)
    object.__setattr__(law, "name", "mean of Student's t by batch")
    renamed = dataclasses.replace(result, reference=law)
    assert answers(renamed) == answers(result)
    assert renamed.summary().tables[1].as_text() == result.summary().tables[1].as_text()


def test_the_note_on_efficiency_comes_from_the_fit() -> None:
    for estimator, where in (
        ("alee", AT_SHARES()),
        ("aipw", "the average propensities"),
    ):
        result = means(estimator)(log("thompson"))
        assert where in result.efficiency_note
        renamed = dataclasses.replace(result, estimator="other", notes=("Last of the notes.",))
        notes = [one.text for one in renamed.explain().of("note")]
        assert notes[-2:] == ["Last of the notes.", result.efficiency_note]
    assert means("sample-mean")(log("thompson")).efficiency_note == ""


def test_a_summary_shows_itself_as_statsmodels_does() -> None:
    summary = means()(log("uniform")).summary()
    assert not isinstance(summary, Summary)
    assert str(summary) == summary.as_text()
    assert repr(summary) == f'{type(summary)}\n"""\n{summary.as_text()}\n"""'
    assert summary._repr_html_() == summary.as_html()
    assert summary._repr_latex_() == summary.as_latex()
