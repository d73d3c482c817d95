"""The flowchart of `recommend`: drawn from its script, legible, and right about a log for every answer."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import adaptinf as ai

DOCS = Path(__file__).parents[3] / "docs"
ARMS = ai.environments.BernoulliArms([0.4, 0.5])
GROUPS = ai.environments.FiniteContext([0.5, 0.5], [[0.4, 0.6], [0.6, 0.3]])
EAGER = ai.designs.Thompson(floor=0.1)
BOTH = ("arm-means", "contrast")
SEQUENCE = "ConfidenceSequence(log, target="


@pytest.fixture(scope="module")
def flowchart() -> ModuleType:
    spec = importlib.util.spec_from_file_location("flowchart", DOCS / "flowchart.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kept(log: ai.AdaptiveLog, *columns: str, **said: Any) -> ai.AdaptiveLog:
    """A log of these columns alone, as a file of others would have it."""
    roles = {name: name for name in columns if name in ("action", "reward", "propensity")}
    context = ["feature"] if "feature" in columns else None
    return ai.AdaptiveLog(log.frame[list(columns)], **roles, context=context, reward_range=(0, 1), **said)


def by_context() -> ai.AdaptiveLog:
    """A log whose contexts visibly decide the arms."""

    def choose(state: Any, context: Any, rng: Any) -> Any:
        return np.array([0.8, 0.2] if int(context) == 0 else [0.2, 0.8])

    return ai.designs.FunctionDesign(choose).run(GROUPS, horizon=1_000, rng=1)


def first(log: ai.AdaptiveLog, target: str, **said: Any) -> str:
    pair = {"treatment": 1, "control": 0} if target == "contrast" else {}
    return str(ai.recommend(log, target, **pair, **said).best)


# Answers in the order of the picture: what is named there, a log that gets there, targets, what comes first.
ANSWERS: list[tuple[str, Callable[[], ai.AdaptiveLog], tuple[str, ...], dict[str, Any], str]] = [
    ("Confidence sequences", lambda: EAGER.run(ARMS, 1_000, 1), BOTH, {"stopping": "data-chosen"}, SEQUENCE),
    ("Sample means", lambda: ai.designs.Uniform().run(ARMS, 1_000, 1), BOTH, {}, "estimator='sample-mean'"),
    ("AIPW, uniform weights", by_context, BOTH, {}, "estimator='aipw', weights='uniform'"),
    (
        "ALEE",
        lambda: kept(EAGER.run(ARMS, 1_000, 1), "action", "reward"),
        BOTH,
        {},
        "estimator='alee'",
    ),
    (
        "AIPW, uniform weights",
        lambda: kept(EAGER.run(ARMS, 1_000, 1), "action", "reward", "propensity"),
        BOTH,
        {},
        "estimator='aipw', weights='uniform'",
    ),
    ("AIPW, combined weights", lambda: EAGER.run(ARMS, 1_000, 1), BOTH[1:], {}, "weights='combined'"),
    ("AIPW, joint weights", lambda: EAGER.run(ARMS, 1_000, 1), BOTH[:1], {}, "weights='joint'"),
]


def test_every_answer_has_its_log(flowchart: ModuleType) -> None:
    names = [*(step.answer[0] for step in flowchart.STEPS), flowchart.LAST[0]]
    assert [answer[0] for answer in ANSWERS] == names


@pytest.mark.parametrize("place", range(len(ANSWERS)))
def test_recommend_puts_the_answer_first(place: int) -> None:
    _, log, targets, said, call = ANSWERS[place]
    made = log()
    for target in targets:
        assert call in first(made, target, **said)


def test_what_stands_below_the_answers() -> None:
    with pytest.raises(ai.errors.InvalidForLog, match="propensities"):
        first(kept(by_context(), "action", "reward", "feature"), "arm-means")
    private = ai.designs.PrivateUCB(epsilon=0.05).run(ARMS, 1_000, 1)
    assert private.propensity_status == "absent"
    assert "estimator='sample-mean')  # exact" in first(private, "contrast")
    falling = ai.designs.Thompson(floor=(0.1, 0.3)).run(ARMS, 1_000, 1)
    assert ai.ArmMeans(falling).fit(stationary=True).weights == "two-point"


def test_the_picture_is_that_of_the_script(flowchart: ModuleType) -> None:
    light, dark = (
        (DOCS / "figures" / f"recommend{end}.svg").read_text(encoding="utf-8") for end in ("", "_dark")
    )
    assert light == flowchart.drawn(), "run python docs/flowchart.py"
    assert dark == flowchart.on_dark(light)
    assert not {"#1a1a1a", "#ffffff"} & set(dark.replace(";", " ").replace('"', " ").split())
    assert "](figures/recommend.svg)" in (DOCS / "choosing.md").read_text(encoding="utf-8")


def test_texts_stay_in_their_boxes_and_the_picture_has_words(flowchart: ModuleType) -> None:
    root = ElementTree.fromstring(flowchart.drawn())
    space = "{http://www.w3.org/2000/svg}"
    assert root.findtext(f"{space}title") == "Which estimator comes first"
    assert root.findtext(f"{space}desc") == flowchart.alternative()
    boxes = [
        tuple(int(box.get(name, "0")) for name in ("x", "y", "width", "height"))
        for box in root.findall(f"{space}rect")
        if box.get("class")
    ]
    assert len(boxes) == 2 * len(flowchart.STEPS) + 1
    lines = [line for line in root.findall(f"{space}text") if line.get("class") != "reply"]
    assert len(lines) == sum(len(step.question) + len(step.answer) for step in flowchart.STEPS) + 3
    for line in lines:
        x, y = int(line.get("x", "0")), int(line.get("y", "0"))
        size = flowchart.SMALL if line.get("class") == "small" else flowchart.FONT
        half = 0.58 * size * len(str(line.text)) / 2  # DejaVu Sans is wider than most
        inside = [
            left + 8 <= x - half and x + half <= left + width - 8 and top + size <= y <= top + height - 5
            for left, top, width, height in boxes
        ]
        assert sum(inside) == 1, line.text
