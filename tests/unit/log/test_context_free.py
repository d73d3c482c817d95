"""What a log says of contexts that had a part in the choice of arms, and what follows from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from adaptinf.claims.propensities import ROUND_BEFORE
from adaptinf.claims.recommendations import HAD_PART
from adaptinf.errors import InvalidForLog, LogValidationError
from adaptinf.formats import read_adam, read_dsjson
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog, DesignRecord, read_log
from adaptinf.log.validation import nested_options
from tests.claims_said import says

ROUNDS = 2_000
RNG = np.random.default_rng(0)
STRATUM = RNG.integers(0, 2, ROUNDS)
CHANCE = np.where(STRATUM == 1, 0.9, 0.2)
TREATED = RNG.random(ROUNDS) < CHANCE
REWARD = RNG.normal(STRATUM, 0.5)
"""The drug does nothing; the stratum moves both the outcome and the probability of the drug."""


def frame_log(**options: Any) -> AdaptiveLog:
    frame = pd.DataFrame(
        {
            "arm": np.where(TREATED, "drug", "placebo"),
            "y": REWARD,
            "p_drug": CHANCE,
            "p_placebo": 1.0 - CHANCE,
            "s": STRATUM,
        }
    )
    propensities = {"drug": "p_drug", "placebo": "p_placebo"}
    return AdaptiveLog(frame, action="arm", reward="y", propensities=propensities, **nested_options(options))


def effect(log: AdaptiveLog, treatment: Any = "drug", control: Any = "placebo") -> Any:
    return Contrast(log, treatment=treatment, control=control).fit()


class TestStatement:
    def test_without_it_weights_are_fixed_by_the_round_before(self) -> None:
        log = frame_log()
        result = effect(log)
        assert result.weights == "combined"
        assert abs(result.estimate[0]) < 3.0 * result.std_error[0]
        own = Contrast(log, treatment="drug", control="placebo").fit(weights="sqrt")
        assert abs(own.estimate[0]) < 3.0 * own.std_error[0]
        assert any(ROUND_BEFORE() in note for note in own.notes)

    def test_a_statement_that_is_not_so_is_believed(self) -> None:
        said = Contrast(frame_log(context_free=True), treatment="drug", control="placebo")
        assert abs(said.fit().estimate[0]) < 3.0 * said.fit().std_error[0]  # one weight for both does no harm
        own = said.fit(weights="sqrt")
        assert own.estimate[0] > 0.3
        assert not any(ROUND_BEFORE() in note for note in own.notes)

    def test_contexts_that_the_log_does_not_have(self) -> None:
        log = frame_log(context_free=False)
        result = effect(log)
        assert (result.estimator, result.weights) == ("aipw", "uniform")
        assert abs(result.estimate[0]) < 3.0 * result.std_error[0]
        for call in ({"estimator": "alee"}, {"estimator": "sample-mean"}, {"weights": "sqrt"}):
            with pytest.raises(InvalidForLog, match="contexts"):
                ArmMeans(log).fit(**call)
        assert says(str(recommend(log)), HAD_PART)

    def test_contexts_that_had_no_part(self) -> None:
        log = frame_log(context=["s"])
        assert not profile_of(log).context_free
        assert effect(log).weights == "uniform"
        asked = ArmMeans(log).fit(weights="sqrt")
        assert any(ROUND_BEFORE() in note for note in asked.notes)
        assert not any("as the log has none" in note for note in effect(frame_log(context_free=True)).notes)
        said = frame_log(context=["s"], context_free=True)
        assert profile_of(said).context_free
        assert effect(said).weights == "combined"

    def test_it_survives_files(self, tmp_path: Path) -> None:
        for value in (None, True, False):
            log = frame_log(context_free=value)
            log.to_parquet(tmp_path / "log.parquet")
            assert read_log(tmp_path / "log.parquet").context_free is value
            log.to_csv(tmp_path / "log.csv")
            assert read_log(tmp_path / "log.csv").context_free is value

    def test_other_values_are_refused(self) -> None:
        with pytest.raises(LogValidationError, match="context_free must be True, False or None, got 'no'"):
            frame_log(context_free="no")

    def test_a_uniform_record_that_the_propensities_contradict_is_not_believed(self) -> None:
        log = frame_log(context=["s"], design=DesignRecord("Uniform", {"source": "somewhere"}))
        assert not profile_of(log).context_free


class TestFormats:
    def test_strata_of_a_trial_are_contexts(self) -> None:
        names = [f"s{i}" for i in range(ROUNDS)]
        arm = np.where(TREATED, "drug", "placebo")
        adsl = pd.DataFrame(
            {
                "USUBJID": names,
                "ITTFL": "Y",
                "TRT01P": arm,
                "TRT01A": arm,
                "RANDNUM": range(ROUNDS),
                "STRATUM": STRATUM,
            }
        )
        analysis = pd.DataFrame({"USUBJID": names, "PARAMCD": "X", "AVAL": REWARD})
        table = pd.DataFrame({"STRATUM": [0, 1], "placebo": [0.8, 0.1], "drug": [0.2, 0.9]})
        log = read_adam(adsl, analysis, parameter="X", order="RANDNUM", propensity=table)
        assert log.context == ("STRATUM",)
        result = effect(log)
        assert result.weights == "uniform"
        assert abs(result.estimate[0]) < 3.0 * result.std_error[0]

    @pytest.mark.parametrize("kind", ["list", "action", "sometimes", "left out", "constant"])
    def test_features_that_a_log_cannot_hold(self, tmp_path: Path, kind: str) -> None:
        lines = []
        for s, p, treated, y in zip(STRATUM, CHANCE, TREATED, REWARD, strict=True):
            features: dict[str, Any] = {"user": {}, "_multi": [{"id": "placebo"}, {"id": "drug"}]}
            if kind == "list":
                features["user"]["tags"] = [f"s{s}"]
            elif kind == "action":
                features["_multi"][1]["match"] = float(s)
            elif kind == "sometimes" and s:
                features["user"]["sick"] = 1
            elif kind == "left out":
                features["user"]["s"] = int(s)
            place, chance = (2, p) if treated else (1, 1.0 - p)
            event = {
                "_label_cost": -float(y),
                "_label_probability": float(chance),
                "_label_Action": place,
                "a": [place, 3 - place],
                "p": [float(chance), float(1.0 - chance)],
                "c": features,
            }
            lines.append(json.dumps(event))
        path = tmp_path / "log.dsjson"
        path.write_text("\n".join(lines))
        log = read_dsjson(path, action_id="id", context=[] if kind == "left out" else None)
        assert log.context == ()
        assert log.context_free is (None if kind == "constant" else False)
        if kind != "constant":
            result = effect(log)
            assert result.weights == "uniform"
            assert abs(result.estimate[0]) < 3.0 * result.std_error[0]
