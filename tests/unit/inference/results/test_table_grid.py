"""Tables of sixty default fits: their width, what stands below them, and sentences with their numbers."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.errors import AdaptinfWarning, InvalidForLog, ParameterError
from adaptinf.inference.results import Results
from adaptinf.inference.results.tables import format_number

NAMES = ("checkout, one page 2", "checkout, two pages_", "the control of old..", "a fourth & last page")
MOST = 6
WARNED = ("Caution", "Missing")


def frame(n_arms: int, rounds: int, *, binary: bool, seed: int) -> pd.DataFrame:
    """Shares that move by batch, plain NumPy; columns version, click, batch, segment, age, visitor, p_*."""
    rng = np.random.default_rng(seed)
    share, rows = np.full(n_arms, 1.0 / n_arms), []
    for batch in range(10):
        size = rounds // 10
        arm = rng.choice(n_arms, size, p=share)
        level = 0.2 + 0.1 * arm
        reward = rng.binomial(1, level).astype(float) if binary else rng.normal(level, 1.0)
        rows.append(pd.DataFrame({"version": [NAMES[k] for k in arm], "click": reward, "batch": batch}))
        rows[-1][[f"p_{name}" for name in NAMES[:n_arms]]] = share
        tilt = np.exp(0.3 * rng.normal(size=n_arms))
        share = 0.1 + (1.0 - 0.1 * n_arms) * tilt / tilt.sum()
    found = pd.concat(rows, ignore_index=True)
    found["segment"] = rng.choice(["new", "returning"], len(found))
    found["age"] = rng.normal(40.0, 10.0, len(found)).round(1)
    found["visitor"] = rng.integers(0, len(found) // 2, len(found))
    return found


def read(data: pd.DataFrame, *, known: bool = True, **options: Any) -> ai.AdaptiveLog:
    arms = [name for name in NAMES if (data["version"] == name).any()]
    given = {"propensities": {name: f"p_{name}" for name in arms}} if known else {}
    return ai.AdaptiveLog(data, action="version", reward="click", **given, **options)


@cache
def log(name: str) -> Any:
    two, four = frame(2, 1000, binary=True, seed=1), frame(4, 1200, binary=False, seed=2)
    if name == "two arms":
        return read(two, batch="batch", context=["segment"], stopping="fixed")
    if name == "four arms":
        return read(four, batch="batch", context=["age"])
    if name == "nothing known":
        return read(two, known=False)
    if name == "plain test":
        return read(two, known=False, adaptive=False)
    if name == "units":
        return read(two, unit="visitor")
    if name == "missing":
        return read(two.assign(click=two["click"].mask(two.index % 7 == 0)), missing="drop")
    if name == "peeked":
        return read(two, stopping="data-chosen")
    if name == "few":
        return read(two.iloc[:40])
    if name == "sums":
        return ai.aggregate(
            four, action="version", reward="click", batch="batch", propensities={n: f"p_{n}" for n in NAMES}
        )
    if name == "sums of groups":
        return ai.aggregate(
            two,
            action="version",
            reward="click",
            batch="batch",
            propensities={n: f"p_{n}" for n in NAMES[:2]},
            by="segment",
        )
    arms = ai.environments.BernoulliArms([0.3, 0.5])
    if name == "private":
        return ai.designs.PrivateUCB(epsilon=1.0).run(arms, horizon=2_000, rng=0)
    if name == "live":
        session = ai.designs.PrivateUCB(epsilon=5.0).session(2, 300, noise="release")
        rng = np.random.default_rng(0)
        for _ in range(300):
            decision = session.assign()
            session.record(decision.id, float(rng.random() < (0.3, 0.5)[decision.arm]))
        return session.log()
    groups = ai.environments.FiniteContext([0.5, 0.5], [[0.3, 0.5], [0.4, 0.4]])
    return ai.designs.DPConSE(epsilon=1.0).run(groups, horizon=20_000, rng=5)


def pair(log: Any) -> dict[str, Any]:
    return {"treatment": log.arms[1], "control": log.arms[0]}


MODELS: dict[str, Callable[[Any], Any]] = {
    "means": lambda log: ai.ArmMeans(log).fit(),
    "naive means": lambda log: ai.ArmMeans(log).fit("sample-mean"),
    "contrast": lambda log: ai.Contrast(log, **pair(log)).fit(),
    "naive contrast": lambda log: ai.Contrast(log, **pair(log)).fit("sample-mean"),
    "contrasts": lambda log: ai.Contrasts(log, control=log.arms[0]).fit(),
    "winner": lambda log: ai.Winner(log).fit(),
    "lead": lambda log: ai.Winner(log, control=log.arms[0]).fit(),
    "sequence": lambda log: ai.ConfidenceSequence(log).fit(),
    "regression": lambda log: ai.AdaptiveOLS(log).fit(),
    "policy": lambda log: ai.PolicyValue(log, {"first": log.arms[0], "last": log.arms[-1]}).fit(),
    "policies": lambda log: ai.PolicyContrast(log, log.arms[-1], baseline=log.arms[0]).fit(),
    "by segment": lambda log: ai.CATE(log, by="segment", **pair(log)).fit(),
    "by feature": lambda log: ai.CATE(log, by="feature", **pair(log)).fit(),
    "released": lambda log: ai.CATE(log, by="feature", **pair(log)).fit("released"),
}
LOGS = (
    *("two arms", "four arms", "nothing known", "plain test", "units", "missing", "peeked", "few", "sums"),
    *("sums of groups", "private", "live", "conse"),
)


@cache
def fits() -> dict[str, Results]:
    """Every fit that the logs allow."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptinfWarning)
        for name in LOGS:
            for model, fit in MODELS.items():
                with contextlib.suppress(InvalidForLog, ParameterError):
                    found[f"{name}, {model}"] = fit(log(name))
    return found


def each() -> Iterator[tuple[str, Results]]:
    yield from fits().items()


def below(text: str) -> dict[str, list[str]]:
    """Lines under a table, by label."""
    found: dict[str, list[str]] = {}
    label = ""
    for line in text[text.rindex("=" * 70) :].splitlines()[1:]:
        label = line[:10].strip() or label
        found.setdefault(label, []).append(line[10:])
    return found


def test_there_are_sixty() -> None:
    assert len(fits()) >= 60, len(fits())
    assert {name.partition(", ")[0] for name in fits()} == set(LOGS)


@pytest.mark.parametrize("adjust", [None, "holm", "max-t"])
def test_eighty_columns_and_six_lines(adjust: str | None) -> None:
    for name, result in each():
        try:
            text = result.summary(adjust=adjust).as_text()
        except InvalidForLog:
            assert adjust == "max-t", name
            continue
        assert max(map(len, text.splitlines())) <= 80, f"{name}\n{text}"
        lines = below(text)
        others = [line for label, part in lines.items() if label not in WARNED for line in part]
        assert 3 <= len(others) <= MOST, f"{name}\n{text}"
        assert list(lines)[-1] == "More", name
        assert {"Method", "More"} <= set(lines), name


def test_cautions_are_whole_and_first() -> None:
    cautioned = 0
    for name, result in each():
        shown = result.summary()
        labels = [label for label, _ in shown.lines]
        first = next(place for place, label in enumerate(labels) if label not in WARNED)
        assert not set(labels[first:]) & set(WARNED), name
        text = " ".join(line for part in below(shown.as_text()).values() for line in part).lower()
        text = " ".join(text.split())
        for one in [*result.explain().of("caution"), *result.explain().of("missing")]:
            assert " ".join(one.text.split()).lower().rstrip(".") in text, f"{name}: {one.text}"
        assert set(result.cautions) <= {one.text for one in result.explain().of("caution")}, name
        cautioned += bool(result.cautions)
    assert cautioned >= 10


def test_every_claim_is_explained() -> None:
    for name, result in each():
        told = " ".join(result.explain().texts)
        for note in result.notes:
            for clause in getattr(note, "clauses", (note,)):
                assert str(clause) in told, f"{name}: {clause}"
        assert set(result.explain().to_frame()["kind"]) <= {
            *("caution", "missing", "note", "assumes", "target", "advice", "privacy")
        }
        assert (result.explain().to_frame().query("kind == 'assumes'")["check"] != "").all(), name


def test_sentences_hold_the_numbers_of_the_table() -> None:
    asked = 0
    for name, result in each():
        corrected = result.correction is not None and not result.correction.vacuous(0.05)
        limits = (result.conf_int_corrected() if corrected else result.conf_int()).to_numpy()
        table = str(result)
        for place, term in enumerate(result.terms):
            told = result.sentence(term)
            numbers = [float(result.estimate[place]), *limits[place].tolist()]
            if np.isnan(numbers).any():
                assert "without an interval" in told, (name, told)
                continue
            for number in numbers:
                assert format_number(number) in told, (name, told)
                assert format_number(number) in table, name
            asked += 1
            holds = limits[place, 0] <= result.null <= limits[place, 1]
            if result.estimands[place].kind in ("contrast", "cate", "policy-contrast"):
                assert ("ndecided" in told) == holds, (name, told)
        assert result.sentence().endswith("."), name
    assert asked >= 100
