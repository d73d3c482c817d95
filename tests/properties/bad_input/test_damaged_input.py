"""Damaged files and frames: refused by name, read right, or read as what they say; nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from damage_frames import frame_of
from foreign_readings import adam_content
from intact import draw_campaign, draw_study, draw_trial
from judge import OUTCOMES, UNSEEN, Case, Verdict, judge
from oracle import MustRefuse, log_content, read_csv
from runs import SEED, run, table

from adaptinf.log import AdaptiveLog
from adaptinf.log.validation import nested_options

IN_CI = 500
"""docs/evidence/bad_input.py tries 6,000 others."""


def faults(total: int, seed: int) -> list[str]:
    """What went wrong, one line an input; about so many are tried."""
    outcomes = list(run(total, seed))
    assert all(count.total() > 0 for count in table(outcomes).values())
    found = Counter(outcome.verdict.outcome for outcome in outcomes)
    assert set(found) <= set(OUTCOMES)
    assert min(found["error"], found["right"], found["unseen"]) > total / 50
    return [
        f"{outcome.fmt}, {outcome.kind} ({outcome.number}): {outcome.verdict}"
        for outcome in outcomes
        if outcome.verdict.outcome not in ("error", "right", "unseen")
    ]


@pytest.mark.slow
def test_five_hundred_damaged_inputs() -> None:
    assert faults(IN_CI, SEED + 1) == []


def a_case() -> tuple[Case, pd.DataFrame]:
    trial = draw_trial(np.random.default_rng(3))
    content, frame = log_content(trial.columns, trial.options), frame_of(trial.columns)
    return Case("x", lambda: AdaptiveLog(frame, **nested_options(trial.options)), content, None), frame


def test_the_judge_tells_outcomes_apart() -> None:
    case, frame = a_case()
    assert judge(case) == Verdict("right")
    other = case.intact | {"reward": [0.0] * len(frame)}
    assert judge(replace(case, intact=other)) == Verdict("silent", "must be refused")
    assert judge(replace(case, intact=other, damaged=other)) == Verdict("silent", "read as another log")
    assert judge(replace(case, intact=other, damaged=case.intact)) == Verdict("unseen", "reward")
    assert judge(replace(case, damaged=case.intact, harmless=True)) == Verdict("right")
    frame.loc[0, "y"] = np.inf
    told = judge(case)
    assert told.outcome == "error"
    assert "infinite" in told.told
    assert judge(replace(case, names=("data.csv",))).outcome == "unnamed"
    assert judge(replace(case, harmless=True)).outcome == "unread"
    assert judge(replace(case, read=lambda: 1 / 0)) == Verdict(
        "traceback", "ZeroDivisionError: division by zero"
    )


def test_reasons_have_words() -> None:
    assert set(UNSEEN) >= {"size", "order", "columns", "several", "action", "reward", "propensity", "context"}


def test_the_literal_readings_refuse() -> None:
    rng = np.random.default_rng(4)
    study = draw_study(rng)
    assert adam_content(study.adsl, study.analysis, study.options)["action"]
    study.adsl["ITTFL"][0] = "Yes"
    with pytest.raises(MustRefuse, match="a flag"):
        adam_content(study.adsl, study.analysis, study.options)
    with pytest.raises(MustRefuse, match="other length"):
        read_csv(b"a,b\n1,2\n3\n")
    with pytest.raises(MustRefuse, match="a NUL"):
        read_csv(b"a,b\n1,\0\n")
    assert read_csv(b"a,b\n1,x\n2,\n") == {"a": [1, 2], "b": ["x", None]}
    assert draw_campaign(rng)[1]["item_id"] == [0, 1, 2, 3]
