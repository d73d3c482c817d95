"""Traits of designs: stated once, kept with the log, read back, unknown in older files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.errors import InvalidForLog, LogValidationError
from adaptinf.log import DesignRecord, DesignTraits, Floor, FreshEpochs, Outputs, Stability

FILES = Path(__file__).parent / "files"
FRAME = pd.DataFrame({"arm": ["a", "b", "a"], "y": [1, 0, 1]})


def every_trait() -> DesignTraits:
    return DesignTraits(
        adapts=False,
        uses_context="groups",
        own_coins=False,
        floor=Floor(0.25, 0.7, shared=True),
        stability=Stability(True, "a condition", "a source"),
        arm_means="by-group",
        outputs=Outputs(
            "releases", "by-context", "calendar", recommended=True, epochs=FreshEpochs(0.5, 0.01)
        ),
    )


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("traits", [None, DesignTraits(), every_trait()])
def test_they_survive_files(tmp_path: Path, suffix: str, traits: DesignTraits | None) -> None:
    log = ai.AdaptiveLog(FRAME, action="arm", reward="y", design=DesignRecord("Own", {"x": 1}, traits))
    getattr(log, f"to_{suffix}")(tmp_path / f"log.{suffix}")
    found = ai.read_log(tmp_path / f"log.{suffix}")
    assert found.design == log.design
    assert found.equals(log)


def test_a_log_of_other_traits_is_another_log() -> None:
    logs = [
        ai.AdaptiveLog(FRAME, action="arm", reward="y", design=DesignRecord("Own", {}, traits))
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
    log = ai.AdaptiveLog(FRAME, action="arm", reward="y", design=ai.designs.UCB(width=3.0))
    assert log.design == ai.designs.UCB(width=3.0).record()


def test_wrong_traits_are_listed() -> None:
    wrong: Any = DesignTraits(adapts="yes", uses_context="maybe", floor=0.1)  # type: ignore[arg-type]
    with pytest.raises(LogValidationError) as caught:
        ai.AdaptiveLog(FRAME, action="arm", reward="y", design=DesignRecord("Own", {}, wrong))
    found = re.findall(r"design: traits\.(\w+) must be", str(caught.value))
    assert found == ["adapts", "uses_context", "floor"]


class TestFilesOfVersion010:
    def test_they_are_read_and_their_traits_are_unknown(self) -> None:
        for name in ("conse_0_1_0.csv", "thompson_0_1_0.parquet"):
            log = ai.read_log(FILES / name)
            assert log.design is not None
            assert log.design.traits is None
            assert log.n_rounds in (60, 40)

    def test_they_are_treated_with_care(self) -> None:
        contextual = ai.read_log(FILES / "conse_0_1_0.csv")
        for estimator in (None, "alee", "sample-mean"):
            with pytest.raises(InvalidForLog, match="does not say whether ConSE looks at contexts"):
                ai.ArmMeans(contextual).fit(estimator)
        without = ai.read_log(FILES / "thompson_0_1_0.parquet")
        assert ai.ArmMeans(without).fit().weights == "sqrt"  # the decay of its floor is not known any more
