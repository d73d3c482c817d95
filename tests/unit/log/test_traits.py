"""Traits of designs: stated once, kept with the log, read back, unknown in older files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.claims import contexts
from adaptinf.errors import InvalidForLog, LogValidationError, ParameterError
from adaptinf.log import DesignRecord, DesignTraits, Floor, FreshEpochs, Outputs, Stability

FILES = Path(__file__).parent / "files"
FRAME = pd.DataFrame({"arm": ["a", "b", "a"], "y": [1, 0, 1]})


def every_trait() -> DesignTraits:
    return DesignTraits(
        adapts=False,
        uses_context="groups",
        own_coins=False,
        floor=Floor(0.25, 0.7, shared=True),
        dealt=3,
        stability=Stability(True, "a condition", "a source"),
        arm_means="by-group",
        outputs=Outputs(
            "releases", "by-context", "calendar", recommended=True, epochs=FreshEpochs(0.5, 0.01)
        ),
    )


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("traits", [None, DesignTraits(), every_trait()])
def test_they_survive_files(tmp_path: Path, suffix: str, traits: DesignTraits | None) -> None:
    log = ai.AdaptiveLog(
        FRAME, action="arm", reward="y", about={"design": DesignRecord("Own", {"x": 1}, traits)}
    )
    getattr(log, f"to_{suffix}")(tmp_path / f"log.{suffix}")
    found = ai.read_log(tmp_path / f"log.{suffix}")
    assert found.design == log.design
    assert found.equals(log)


def test_a_log_of_other_traits_is_another_log() -> None:
    logs = [
        ai.AdaptiveLog(FRAME, action="arm", reward="y", about={"design": DesignRecord("Own", {}, traits)})
        for traits in (None, DesignTraits(), every_trait())
    ]
    assert [[one.equals(other) for one in logs] for other in logs] == [
        [True, False, False],
        [False, True, False],
        [False, False, True],
    ]


def test_runs_keep_the_traits_of_their_design() -> None:
    design = ai.designs.Thompson(floor=(0.5, 0.7), batch_size=5)
    log = design.run(ai.environments.BernoulliArms([0.3, 0.5]), horizon=40, rng=0)
    assert log.design is not None
    assert log.design.traits == design.traits
    assert design.traits.floor == Floor(0.5, 0.7)


def test_a_mixture_has_coins_and_a_floor() -> None:
    inner = ai.designs.UCB()
    traits = ai.designs.Mixture(inner, 0.2, decay=0.3).traits
    assert (inner.traits.replays_by, traits.replays_by) == ("order", "assignment")
    assert traits.floor == Floor(0.2, 0.3, shared=True)
    assert (inner.traits.stability is None, traits.stability) == (False, None)
    wrapped = ai.designs.Mixture(ai.designs.ConSE(alpha=0.2), 0.2).traits
    assert (wrapped.uses_context, wrapped.arm_means) == ("groups", "by-group")


def test_a_design_itself_can_be_given() -> None:
    log = ai.AdaptiveLog(FRAME, action="arm", reward="y", about={"design": ai.designs.UCB(width=3.0)})
    assert log.design == ai.designs.UCB(width=3.0).record()


def test_wrong_traits_are_listed() -> None:
    wrong: Any = DesignTraits(adapts="yes", uses_context="maybe", floor=0.1)  # type: ignore[arg-type]
    with pytest.raises(LogValidationError) as caught:
        ai.AdaptiveLog(FRAME, action="arm", reward="y", about={"design": DesignRecord("Own", {}, wrong)})
    found = re.findall(r"design: traits\.(\w+) must be", str(caught.value))
    assert found == ["adapts", "uses_context", "floor"]


def test_logs_of_designs_that_state_no_traits_are_treated_with_care() -> None:
    frame = FRAME.assign(feature=[0, 1, 0])
    contextual = ai.AdaptiveLog(frame, action="arm", reward="y", context="feature", about={"design": "ConSE"})
    for estimator in (None, "alee", "sample-mean"):
        with pytest.raises(InvalidForLog, match=re.escape(contexts.PERHAPS_BY_DESIGN(design="ConSE"))):
            ai.ArmMeans(contextual).fit(estimator)


@pytest.mark.parametrize("name", ["conse_0_1_0.csv", "thompson_0_1_0.parquet"])
def test_files_of_version_1_are_refused_by_name_but_for_named_columns(name: str) -> None:
    """They have no digest that would tell damage, and no traits."""
    with pytest.raises(ParameterError, match=rf"{name} is a log of format version 1, which has no digest"):
        ai.read_log(FILES / name)
    log = ai.read_log(FILES / name, action="action", reward="reward", propensity="propensity")
    assert log.design is None
    assert log.n_rounds in (60, 40)


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"floor": {"scale": 2.0, "decay": 0.0, "shared": False}}, r"traits\.floor\.scale must be at least 0"),
    ({"floor": {"scale": 0.1, "decay": "x", "shared": False}}, r"traits\.floor\.decay must be a number"),
    ({"floor": {"scale": 0.1}}, r"traits\.floor must have the fields scale, decay, shared, got scale"),
    ({"stability": {"stable": 1, "condition": "", "source": ""}}, r"traits\.stability\.stable must be True"),
    ({"adapts": 1}, r"traits\.adapts must be one of True, False, got 1"),
    ({"arm_means": ["comparable"]}, r"traits\.arm_means must be one of"),
    ({"dealt": -1}, r"traits\.dealt must be"),
    ({"colour": "red"}, r"traits must have the fields adapts, .*, got .*colour"),
]


@pytest.mark.parametrize(("damage", "message"), BROKEN)
def test_stored_traits_are_checked(damage: dict[str, Any], message: str) -> None:
    assert DesignTraits.from_dict(every_trait().to_dict()) == every_trait()
    with pytest.raises(ParameterError, match=message):
        DesignTraits.from_dict({**every_trait().to_dict(), **damage})


def test_traits_of_files_from_before_there_were_dealt_rounds() -> None:
    assert "dealt" not in DesignTraits().to_dict()
    assert every_trait().to_dict()["dealt"] == 3
    earlier = {name: value for name, value in every_trait().to_dict().items() if name != "dealt"}
    assert DesignTraits.from_dict(earlier).dealt == 0
