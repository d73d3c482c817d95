"""The flowchart of `recommend`: which estimator of arm means and differences comes first, as a picture.

    python docs/flowchart.py

writes figures/recommend.svg, and recommend_dark.svg for dark screens. A test draws them again, and asks
`recommend` about a log for every answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape


class Step(NamedTuple):
    """A question, the reply that leads to the answer beside it, and that answer, a line each."""

    question: tuple[str, ...]
    turn: str
    answer: tuple[str, ...]


STEPS = (
    Step(
        ("Will the data decide", "when the trial stops?"),
        "yes",
        ("Confidence sequences", "valid at all rounds together"),
    ),
    Step(
        ("Could rewards change", "which arm came next?"),
        "no",
        ("Sample means", "exact tests with few events"),
    ),
    Step(
        ("Could contexts have moved", "the choice of arms?"),
        "yes",
        ("AIPW, uniform weights", "without probabilities: none,", "ask for effects within groups"),
    ),
    Step(
        ("Were the probabilities", "of the arms logged?"),
        "no",
        ("ALEE", "with a strong privacy guarantee:", "corrected sample means"),
    ),
    Step(("Those of every arm, not", "of the chosen one alone?"), "no", ("AIPW, uniform weights",)),
    Step(
        ("Do you want a difference", "of two arms?"),
        "yes",
        ("AIPW, combined weights", "a common drift cancels"),
    ),
)
LAST = ("AIPW, joint weights", "each arm's own weights", "with stationary=True")
"""The answer where no step has turned aside: means of arms."""

WIDTH, BOX, ANSWER, HEIGHT, GAP, MARGIN = 640, 250, 280, 74, 30, 16
FONT, SMALL = 15, 13
_RIGHT = WIDTH - MARGIN - ANSWER
_STYLE = f"""text {{ font: {FONT}px system-ui, "DejaVu Sans", sans-serif; }}
text {{ fill: #1a1a1a; text-anchor: middle; }}
.first {{ font-weight: 600; }}
.small, .reply {{ font-size: {SMALL}px; }}
.question {{ fill: #ffffff; stroke: #1a1a1a; stroke-width: 1.5; }}
.answer {{ fill: #e3eff9; stroke: #0072b2; stroke-width: 1.5; }}
.way {{ fill: none; stroke: #1a1a1a; stroke-width: 1.5; marker-end: url(#head); }}
#head path {{ fill: #1a1a1a; }}"""
_DARK = {"#1a1a1a": "#cfd0d0", "#ffffff": "#131416", "#e3eff9": "#10283c"}


def alternative() -> str:
    """The picture in words."""
    told = [f"{' '.join(one.question)} If {one.turn}: {'; '.join(one.answer)}." for one in STEPS]
    return " ".join([*told, f"Else: {'; '.join(LAST)}."])


def on_dark(picture: str) -> str:
    """The picture for dark screens."""
    for light, dark in _DARK.items():
        picture = picture.replace(light, dark)
    return picture


def drawn() -> str:
    """The picture as SVG."""
    parts: list[str] = []
    for place, step in enumerate(STEPS):
        top = MARGIN + place * (HEIGHT + GAP)
        middle, below = top + HEIGHT // 2, top + HEIGHT
        other = "no" if step.turn == "yes" else "yes"
        parts += [
            *_box(MARGIN, top, BOX, step.question, "question"),
            *_box(_RIGHT, top, ANSWER, step.answer, "answer"),
            f'<path class="way" d="M {MARGIN + BOX} {middle} H {_RIGHT - 3}"/>',
            _text(MARGIN + BOX + 45, middle - 7, step.turn, "reply"),
            f'<path class="way" d="M {MARGIN + BOX // 2} {below} V {below + GAP - 3}"/>',
            _text(MARGIN + BOX // 2 + 20, below + 19, other, "reply"),
        ]
    last = MARGIN + len(STEPS) * (HEIGHT + GAP)
    parts += _box(MARGIN, last, BOX, LAST, "answer")
    height = last + HEIGHT + MARGIN
    size = 'markerWidth="8" markerHeight="8" refX="6" refY="4" orient="auto"'
    head = f'<marker id="head" {size}><path d="M 0 0 L 8 4 L 0 8 z"/></marker>'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
            'aria-labelledby="title desc">',
            '<title id="title">Which estimator comes first</title>',
            f'<desc id="desc">{escape(alternative())}</desc>',
            f"<style>{_STYLE}</style>",
            f"<defs>{head}</defs>",
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _box(left: int, top: int, width: int, lines: tuple[str, ...], kind: str) -> list[str]:
    """A box with its lines of text; the first line of an answer is its name."""
    step = 20
    first = top + HEIGHT / 2 + 5 - step * (len(lines) - 1) / 2
    classes = ["first", *["small"] * 2] if kind == "answer" else [""] * 2
    return [
        f'<rect class="{kind}" x="{left}" y="{top}" width="{width}" height="{HEIGHT}" '
        f'rx="{6 if kind == "answer" else 30}"/>',
        *(
            _text(left + width // 2, round(first + step * place), line, classes[place])
            for place, line in enumerate(lines)
        ),
    ]


def _text(x: int, y: int, line: str, kind: str) -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y}"{named}>{escape(line)}</text>'


if __name__ == "__main__":
    folder = Path(__file__).parent / "figures"
    for name, picture in {"recommend": drawn(), "recommend_dark": on_dark(drawn())}.items():
        (folder / f"{name}.svg").write_text(picture, encoding="utf-8")
        print(folder / f"{name}.svg")
