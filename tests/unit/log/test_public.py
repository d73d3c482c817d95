"""The covered part of a log: every column and field of its file, and why it is covered."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from adaptinf import AdaptiveLog, designs, environments, read_log
from adaptinf.claims.logs import coverage as claims
from adaptinf.claims.logs import public_part as statement
from adaptinf.errors import InvalidForLog, LogValidationError, ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import DesignRecord, DesignTraits, FreshEpochs, LogArrays, Outputs
from adaptinf.simulation.environments.vector_arms import SmoothArms

ARMS = environments.BernoulliArms([0.9, 0.5, 0.2])
PAIR = environments.BernoulliArms([0.4, 0.7])
GROUPS = environments.FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
VECTORS = environments.LinearArms([[0.6, 0.2], [0.1, 0.7]], contexts="orthant", rewards="bernoulli")
CUBE = SmoothArms(n_arms=2, dimension=1)
FEATURES = [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]

OUTPUTS, COMPUTED, DECLARED = claims.ACTIONS_ARE_OUTPUTS(), claims.COMPUTED(), claims.DECLARED()

FIELDS = {
    "releases": claims.RELEASES(),
    "design": claims.DESIGN(),
    "arms": DECLARED,
    "guarantee": DECLARED,
    "noise": DECLARED,
    "n_rounds": DECLARED,
}
ACTIONS = {"t": claims.COUNTS_ROUNDS(), "action": OUTPUTS, "pulls": OUTPUTS}
NAMED = {"phase": claims.PHASE_BY_OUTPUTS(), "recommended": claims.RECOMMENDED()}
CALENDAR = {"phase": claims.PHASE_BY_CALENDAR()}


def propensities(n_arms: int) -> dict[str, str]:
    return dict.fromkeys(["propensity", *(f"propensity_{arm}" for arm in range(n_arms))], COMPUTED)


BAI = {**FIELDS, **ACTIONS, **propensities(3), **NAMED}
COVERED: list[tuple[designs.Design, environments.Environment, int, dict[str, str]]] = [
    (designs.Uniform(), ARMS, 40, {**FIELDS, **ACTIONS, **propensities(3)}),
    (designs.PermutedBlocks(), ARMS, 40, {**FIELDS, **ACTIONS, **propensities(3)}),
    (designs.PrivateUCB(epsilon=1.0), ARMS, 40, {**FIELDS, **ACTIONS}),
    (designs.PrivateUCB(epsilon=1.0, calibration="published"), ARMS, 40, {**FIELDS, **ACTIONS}),
    (
        designs.PrivateSuccessiveElimination(epsilon=1.0),
        ARMS,
        10_000,
        {**FIELDS, **ACTIONS, **propensities(3)},
    ),
    (designs.LinPriv(epsilon=1.0), VECTORS, 40, {**FIELDS, **ACTIONS}),
    (designs.LinPriv(epsilon=1.0, delta=1e-5), VECTORS, 40, {**FIELDS, **ACTIONS}),
    (designs.LinPriv(epsilon=1.0, calibration="published"), VECTORS, 40, {**FIELDS, **ACTIONS}),
    (designs.DPConSE(epsilon=1.0), GROUPS, 400, {**FIELDS, **CALENDAR}),
    (
        designs.DPConSE(epsilon=1.0, contrast_share=1),
        PAIR,
        400,
        {**FIELDS, **ACTIONS, **propensities(2), **CALENDAR},
    ),
    (designs.DPBAI(epsilon=1.0, features=FEATURES), ARMS, 400, BAI),
    (designs.DPBAIGauss(epsilon=0.5, delta=1e-5, features=FEATURES), ARMS, 400, BAI),
    (designs.DPOD(epsilon=1.0, features=FEATURES), ARMS, 400, BAI),
    (designs.LDPBandit(epsilon=1.0), CUBE, 40, FIELDS),
    (designs.LDPLinear(epsilon=1.0), CUBE, 40, {**FIELDS, **CALENDAR}),
    (
        designs.Mixture(designs.PrivateUCB(epsilon=1.0), exploration=0.2),
        ARMS,
        40,
        {**FIELDS, **ACTIONS, **propensities(3)},
    ),
    (designs.Mixture(designs.LinPriv(epsilon=1.0), exploration=0.2), VECTORS, 40, {**FIELDS, **ACTIONS}),
    (designs.Mixture(designs.DPConSE(epsilon=1.0), exploration=0.2), GROUPS, 400, FIELDS),
    (
        designs.Mixture(designs.DPBAI(epsilon=1.0, features=FEATURES), exploration=0.2),
        ARMS,
        400,
        {name: reason for name, reason in BAI.items() if name != "phase"},
    ),
]
COLUMNS = ["round", "name", "group", "value", "mechanism", "scale"]
ALWAYS = {"design", "parameters", "traits", "arms", "contexts", "guarantee_source", "noise", "n_rounds"}


def named(part: Any) -> str:
    return f"{part!r:.60}" if isinstance(part, designs.Design) else ""


@pytest.mark.parametrize(("design", "environment", "horizon", "covered"), COVERED, ids=named)
def test_every_column_and_field(
    design: designs.Design,
    environment: environments.Environment,
    horizon: int,
    covered: dict[str, str],
    tmp_path: Path,
) -> None:
    log = design.run(environment, horizon, rng=0)
    public = log.public()
    assert public.covered == covered
    assert set(public.left_out) >= set(log.frame.columns) - set(covered) - {"t"}
    assert {"reward", "seeds, timestamps, delays", "digests of the log"} <= set(public.left_out)
    names = set(covered) & {*log.frame.columns, "t"} if "action" in covered else set()
    extra = {"stopping", *(name for name in ("recommended", "pulls") if name in covered)}
    extra |= {"calendar"} if covered.get("phase") == CALENDAR["phase"] else set()

    public.to_parquet(tmp_path / "public.parquet")
    schema = pq.read_schema(tmp_path / "public.parquet")
    told = json.loads(schema.metadata[b"adaptinf.public"])
    assert set(schema.metadata) == {b"adaptinf.public", b"adaptinf.public.tables"}
    assert set(told) == {"version", "statement", "guarantee", "facts", "parts", "digest"}
    assert set(told["facts"]) == ALWAYS | extra
    assert {name: reason for name, shown, reason in told["parts"] if shown} == public.covered
    assert schema.names == COLUMNS
    assert set(() if public.rounds is None else public.rounds) == names
    public.to_csv(tmp_path / "public.csv")
    written = {path.name for path in tmp_path.iterdir() if ".csv" in path.name}
    assert written == {"public.csv", "public.csv.json"} | ({"public_rounds.csv"} if names else set())
    beside = json.loads((tmp_path / "public.csv.json").read_text())
    assert set(beside) == {"statement", "guarantee", "facts", "covered", "left_out"}
    assert (beside["covered"], beside["left_out"]) == (public.covered, public.left_out)
    assert all(beside[name] == told[name] for name in ("statement", "guarantee", "facts"))


def test_no_private_design_is_missing() -> None:
    """Every design of the library whose logs promise privacy is among those above."""
    listed = {type(design) for design, *_ in COVERED}
    for name in designs.__all__:
        design = getattr(designs, name)
        if inspect.isclass(design) and issubclass(design, designs.Design) and design not in listed:
            promising = design.guarantee is not designs.Design.guarantee
            assert not promising or inspect.isabstract(design), name


def test_a_public_file_does_not_know_the_rewards(tmp_path: Path) -> None:
    """Two trials with the same outputs and other rewards give the same bytes."""
    log = designs.PrivateSuccessiveElimination(epsilon=1.0).run(ARMS, 10_000, rng=0)
    arrays = dataclasses.replace(log.arrays, reward=1.0 - log.arrays.reward)
    other = AdaptiveLog.from_arrays(
        arrays,
        arms=log.arms,
        reward_range=(-3.0, 7.0),
        guarantee=log.guarantee,
        design=log.design,
        noise=log.noise,
        releases=log.releases,
        feedback_rounds=3,
        stopping=log.stopping,
        guarantee_source="design",
    )
    for place, one in (("one", log), ("other", other)):
        (tmp_path / place).mkdir()
        one.public().to_parquet(tmp_path / place / "public.parquet")
        one.public().to_csv(tmp_path / place / "public.csv")
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "other" / path.name).read_bytes(), path.name


def test_an_anticipating_file_does_not_know_actions_and_contexts(tmp_path: Path) -> None:
    log = designs.DPConSE(epsilon=1.0).run(GROUPS, 400, rng=0)
    flipped = dataclasses.replace(
        log.arrays,
        action=1 - log.arrays.action,
        context={name: values[::-1] for name, values in log.arrays.context.items()},
        randomised=~log.arrays.randomised,
    )
    other = AdaptiveLog.from_arrays(
        flipped,
        arms=log.arms,
        phases=log.phases,
        guarantee=log.guarantee,
        design=log.design,
        noise=log.noise,
        releases=log.releases,
        stopping=log.stopping,
        guarantee_source="design",
    )
    log.public().to_parquet(tmp_path / "one.parquet")
    other.public().to_parquet(tmp_path / "other.parquet")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "other.parquet").read_bytes()


def test_contexts_where_declared_public() -> None:
    log = designs.LinPriv(epsilon=1.0).run(VECTORS, 40, rng=0)
    public = log.public(contexts=["x1_0", "x1_1"])
    assert public.covered["x1_0"] == claims.CONTEXT_IS_PUBLIC()
    assert public.left_out["x2_0"] == claims.CONTEXT_IS_PRIVATE()
    assert public.rounds is not None
    assert public.rounds.columns.tolist() == ["t", "action", "x1_0", "x1_1"]
    np.testing.assert_array_equal(public.rounds["x1_0"], log.column("x1_0"))


def test_contexts_that_are_protected_or_unknown() -> None:
    log = designs.DPConSE(epsilon=1.0).run(GROUPS, 400, rng=0)
    with pytest.raises(ParameterError) as caught:
        log.public(contexts=["feature", "age"])
    assert caught.value.problems == (
        "contexts contains 'age', but the log's contexts are 'feature'",
        "contexts must be omitted: the guarantee is per record, and contexts are part of it",
    )


@pytest.mark.parametrize("odd", [3, None, {"feature": 1}, [1], [["feature"]]])
def test_odd_contexts(odd: Any) -> None:
    log = designs.LinPriv(epsilon=1.0).run(VECTORS, 40, rng=0)
    with pytest.raises(ParameterError, match="contexts"):
        log.public(contexts=odd)


def test_logs_without_a_guarantee_or_facts_are_refused() -> None:
    plain = designs.UCB().run(ARMS, 40, rng=0)
    with pytest.raises(InvalidForLog, match="it has no privacy guarantee"):
        plain.public()
    published = designs.DPConSE(epsilon=1.0, calibration="published").run(GROUPS, 400, rng=0)
    with pytest.raises(InvalidForLog, match="its guarantee is infinite"):
        published.public()
    for design in ("PrivateUCB", DesignRecord("PrivateUCB", {"epsilon": 1.0}, DesignTraits())):
        frame = pd.DataFrame({"arm": ["a", "b"], "y": [1, 0]})
        log = AdaptiveLog(
            frame, action="arm", reward="y", guarantee={"epsilon": 1.0}, about={"design": design}
        )
        with pytest.raises(InvalidForLog, match="does not declare its outputs"):
            log.public()


def test_times_and_units_of_a_users_log() -> None:
    frame = pd.DataFrame(
        {
            "arm": ["a", "b", "a"],
            "y": [1, 0, 1],
            "who": ["x", "y", "x"],
            "day": pd.to_datetime(["2026-01-01", "2026-01-03", "2026-01-04"]),
        }
    )
    traits = DesignTraits(uses_context="no", outputs=Outputs())
    log = AdaptiveLog(
        frame,
        action="arm",
        reward="y",
        unit="who",
        round="day",
        guarantee={"epsilon": 1.0},
        about={"design": DesignRecord("Own", {}, traits)},
    )
    public = log.public()
    assert public.rounds is not None
    assert public.rounds.to_dict("list") == {"t": [1, 2, 3], "action": ["a", "b", "a"]}
    assert public.left_out["unit_id"] == claims.UNIT()


def test_propensities_that_were_estimated_are_not_covered() -> None:
    frame = pd.DataFrame({"arm": ["a", "b"], "y": [1, 0], "p": [0.5, 0.25]})
    public = AdaptiveLog(
        frame,
        action="arm",
        reward="y",
        propensity="p",
        guarantee={"epsilon": 1.0},
        about={"propensity_status": "estimated", "design": designs.PrivateUCB(epsilon=1.0)},
    ).public()
    assert public.left_out["propensity"] == claims.ESTIMATED()
    assert public.rounds is not None
    assert public.rounds.columns.tolist() == ["t", "action"]


def test_the_statement_is_in_words() -> None:
    public = designs.DPConSE(epsilon=1.0).run(GROUPS, 400, rng=0).public()
    text = str(public)
    assert f"\n{statement.ALL_BUT_OWN_ACTION()} {statement.RECORD()}\n" in text
    assert f"\n{statement.SIMULATED_NOISE()}\n" in text
    assert f"\n{statement.FIXED()}\n" in text
    assert f"\n{statement.PRICE(unit='record', delta='')}\n" in text
    assert f"\n  action: {claims.OWN_ACTION()}\n" in text
    assert f"\n  releases: {claims.RELEASES()}\n" in text


def test_the_statement_says_what_more_rounds_cost() -> None:
    design = designs.LinPriv(epsilon=1.0, delta=1e-5)
    text = str(design.run(VECTORS, 40, rng=0).public())
    assert f"\n{statement.PRICE(unit='reward', delta=statement.MORE_DELTA())}\n" in text


def test_names_of_files(tmp_path: Path) -> None:
    public = designs.Uniform().run(ARMS, 5, rng=0).public()
    with pytest.raises(ParameterError, match=re.escape(r"must end in .parquet or .pq, got 'a.csv'")):
        public.to_parquet(tmp_path / "a.csv")
    with pytest.raises(ParameterError, match=re.escape("must end in .csv, got 'a.parquet'")):
        public.to_csv(tmp_path / "a.parquet")


def test_files_of_private_logs_mark_what_is_not_covered(tmp_path: Path) -> None:
    log = designs.DPConSE(epsilon=1.0).run(GROUPS, 400, rng=0)
    log.to_parquet(tmp_path / "log.parquet")
    log.to_csv(tmp_path / "log.csv")
    marked = json.loads(pq.read_schema(tmp_path / "log.parquet").metadata[b"adaptinf"])["not_covered"]
    assert marked == json.loads((tmp_path / "log.csv.json").read_text())["not_covered"]
    assert set(log.frame.columns) - set(marked) == {"t", "phase"}
    assert marked["action"] == claims.OWN_ACTION()
    assert all(read_log(tmp_path / name).equals(log) for name in ("log.parquet", "log.csv"))
    plain = designs.UCB().run(ARMS, 40, rng=0)
    plain.to_parquet(tmp_path / "plain.parquet")
    assert json.loads(pq.read_schema(tmp_path / "plain.parquet").metadata[b"adaptinf"])["not_covered"] == {}


def test_a_log_prints_its_noise() -> None:
    log = designs.PrivateUCB(epsilon=1.0).run(ARMS, 40, rng=0)
    assert "standard; simulated noise, not private\n" in repr(log)
    arrays = LogArrays(np.array([0, 1]), np.array([0.0, 1.0]))
    exact = AdaptiveLog.from_arrays(
        arrays, arms=("a", "b"), guarantee=PrivacyGuarantee(epsilon=1.0), noise="release"
    )
    assert "standard; exact noise (release); stated by the user, not derived\n" in repr(exact)
    assert "guarantee: none\n" in repr(designs.UCB().run(ARMS, 40, rng=0))


@pytest.mark.parametrize(
    ("epochs", "told"),
    [
        (3, ["traits.outputs.epochs must be a FreshEpochs or None, got 3"]),
        (
            FreshEpochs(-1.0, 2.0),
            ["traits.outputs.epochs.epsilon must be", "traits.outputs.epochs.beta must be"],
        ),
    ],
)
def test_wrong_epochs_are_listed(epochs: Any, told: list[str]) -> None:
    record = DesignRecord("Own", {}, DesignTraits(outputs=Outputs(epochs=epochs)))
    frame = pd.DataFrame({"arm": ["a", "b"], "y": [1, 0]})
    with pytest.raises(LogValidationError) as caught:
        AdaptiveLog(frame, action="arm", reward="y", about={"design": record})
    assert all(text in str(caught.value) for text in told)


def test_wrong_outputs_are_listed() -> None:
    wrong: Any = DesignTraits(outputs=Outputs(length="open", phase="often", recommended="yes"))  # type: ignore[arg-type]
    frame = pd.DataFrame({"arm": ["a", "b"], "y": [1, 0]})
    with pytest.raises(LogValidationError) as caught:
        AdaptiveLog(frame, action="arm", reward="y", about={"design": DesignRecord("Own", {}, wrong)})
    assert re.findall(r"traits\.outputs\.(\w+) must be", str(caught.value)) == [
        "length",
        "phase",
        "recommended",
    ]
