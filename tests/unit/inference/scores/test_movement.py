"""Whether an effect moves, from the passes of its fit: written out, and as joint weights have it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims.arms import weighted_arms
from adaptinf.inference.arms import weighted
from adaptinf.inference.arms.data.arms_of_rows import joint_rounds
from adaptinf.inference.arms.data.arms_of_sums import joint_means_of_sums
from adaptinf.inference.scores.joint_levels import joint_means
from adaptinf.inference.scores.moving_effects import SEEN
from adaptinf.log.validation import nested_options

PAIR = {"treatment": "B", "control": "A"}


def frame_of(rounds: int = 1_200, turn: float = 0.5, moving: bool = False, seed: int = 3) -> pd.DataFrame:
    """Three arms, propensities by day or by round, an effect of B that turns, and which rewards are seen."""
    rng = np.random.default_rng(seed)
    day = np.arange(rounds) * 12 // rounds
    share = rng.dirichlet([4.0, 4.0, 4.0], rounds if moving else 12)
    share = 0.7 * (share if moving else share[day]) + 0.1
    arm = (rng.random(rounds)[:, None] > share.cumsum(axis=1)).sum(axis=1)
    effect = np.where(np.arange(rounds) < rounds / 2, turn, -turn) * (arm == 1)
    frame = pd.DataFrame(
        {"arm": np.array(list("ABC"))[arm], "y": rng.normal(size=rounds) + effect, "day": day}
    )
    frame = frame.assign(x=rng.normal(size=rounds), seen=rng.random(rounds) < 0.9)
    return frame.assign(**{f"p_{name}": share[:, k] for k, name in enumerate("ABC")})


def log_of(frame: pd.DataFrame, **options: Any) -> ai.AdaptiveLog:
    return ai.AdaptiveLog(frame, action="arm", reward="y", propensities="p_{arm}", **nested_options(options))


def fits_of(monkeypatch: pytest.MonkeyPatch, data: Any, **options: Any) -> tuple[ai.Results, list[Any]]:
    """A contrast, and what its estimates were made of."""
    kept: list[Any] = []
    estimates = weighted._estimates

    def keep(*asked: Any) -> Any:
        found = estimates(*asked)
        kept.append((*asked, found))
        return found

    monkeypatch.setattr(weighted, "_estimates", keep)
    result = ai.Contrast(data, **PAIR).fit(options.pop("estimator", "aipw"), "combined", **options)
    return result, list(kept[0])


def written_out(scores: np.ndarray, weights: np.ndarray, clock: np.ndarray) -> float:
    h, gap = weights[:, 0].tolist(), (scores[:, 0] - scores[:, 1]).tolist()
    total = math.fsum(h)
    effect = math.fsum(a * b for a, b in zip(h, gap, strict=True)) / total
    middle = math.fsum(a * b for a, b in zip(h, clock.tolist(), strict=True)) / total
    terms = [a * (t - middle) * (b - effect) for a, b, t in zip(h, gap, clock.tolist(), strict=True)]
    return float(2.0 * stats.norm.sf(abs(math.fsum(terms)) / math.sqrt(math.fsum(one**2 for one in terms))))


CASES: dict[str, dict[str, Any]] = {
    "rounds": {"context_free": True, "moving": True},
    "the round before": {"moving": True},
    "batches": {"batch": "day"},
    "batches, weights of the batch before": {"batch": "day", "moving": True},
    "missing rewards": {"context_free": True, "missing": "drop"},
    "inverse weighting": {"context_free": True, "estimator": "ipw", "moving": True},
    "regressions": {"context": "x", "context_free": True, "outcome": "running-ridge"},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("small", [10**9, 0])
def test_rows_tell_it_from_scores_and_weights(case: str, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    options = dict(CASES[case])
    frame = frame_of(moving=options.pop("moving", False))
    asked = {name: options.pop(name) for name in ("estimator", "outcome") if name in options}
    if "missing" in options:
        frame.loc[~frame["seen"], "y"] = np.nan
    log = log_of(frame, **options)
    monkeypatch.setattr(weighted, "FEW_SCORES", small)
    result, (question, _, model, means) = fits_of(monkeypatch, log, **asked, keep_scores=True)
    assert 1e-12 < means.movement < 1e-2
    clock = (frame["day"].to_numpy() + 0.5) / 12 if "batch" in options else np.arange(len(frame)) / len(frame)
    assert result.scores is not None
    h, scores = result.scores["weights"], result.scores["scores"]
    assert means.movement == pytest.approx(written_out(scores, h, clock), rel=1e-8)
    if "before" not in case:
        joint = joint_means(joint_rounds(question, model)).movement
        assert means.movement == pytest.approx(joint, rel=1e-9)
    told = says(result.cautions, weighted_arms.DIFFERENCE_MOVES, p=means.movement)
    assert told == (means.movement < SEEN)


@pytest.mark.parametrize("covariate", [None, "x"])
def test_sums_tell_it_as_joint_weights_do(covariate: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of(frame_of(), batch="day", context="x", context_free=True)
    sums = ai.Sums.of_log(log, covariate=["x"])
    options = {} if covariate is None else {"covariate": covariate}
    result, (question, _, model, means) = fits_of(monkeypatch, sums, **options)
    assert means.movement == pytest.approx(joint_means_of_sums(question, model).movement, rel=1e-9)
    _, (*_, of_rows) = fits_of(monkeypatch, log, outcome="batch-mean", **options)
    assert means.movement == pytest.approx(of_rows.movement, rel=1e-8)
    assert says(result.cautions, weighted_arms.DIFFERENCE_MOVES)


def test_a_steady_effect_and_uniform_weights_tell_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    steady = log_of(frame_of(turn=0.0), context_free=True)
    result, (*_, means) = fits_of(monkeypatch, steady)
    assert 0.01 < means.movement < 1.0
    assert not says(result.cautions, weighted_arms.DIFFERENCE_MOVES)
    turning = log_of(frame_of(turn=2.0), context_free=True)
    assert ai.Contrast(turning, **PAIR).fit("aipw", "uniform").cautions == ()
    assert ai.ArmMeans(turning).fit("aipw", "combined").weights == "combined"
