"""What notebooks show of logs, sums, designs and plans: whole tables, with scopes, and nothing unescaped."""

from __future__ import annotations

import dataclasses
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest

import adaptinf as ai
from adaptinf.markup import numbered_notes, table

HOSTILE = "<script>alert('x')</script>\u202e"
TAGS = {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "p", "ol", "li"}


class Page(HTMLParser):
    """Tables of a fragment as (caption, columns, rows); every tag closed, every header with its scope."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[tuple[str, list[str], list[list[str]]]] = []
        self.items: list[str] = []
        self.open: list[str] = []
        self.scope = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        told = dict(attrs)
        assert tag in TAGS
        self.open.append(tag)
        self.scope = told.get("scope", "")
        if tag == "div":
            assert told["role"] == "region"
            assert told["tabindex"] == "0"
            assert told["aria-label"]
        elif tag == "table":
            self.tables.append(("", [], []))
        elif tag == "tr":
            self.tables[-1][2].append([])
        elif tag == "th":
            assert self.scope in ("row", "col")
            assert (self.scope == "col") == ("thead" in self.open)
        if tag in ("th", "td"):
            self.tables[-1][2][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "thead":
            caption, _, rows = self.tables[-1]
            self.tables[-1] = caption, rows[0], []

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "caption":
            self.tables[-1] = data, [], []
        elif self.open and self.open[-1] in ("th", "td"):
            self.tables[-1][2][-1][-1] += data
        elif self.open and self.open[-1] == "li":
            self.items.append(data)


def facts(part: tuple[str, list[str], list[list[str]]]) -> dict[str, str]:
    assert part[1] in (["property", "value"], ["parameter", "value"], ["arm", "rounds"])
    return dict(part[2])


def test_a_log() -> None:
    frame = pd.DataFrame({"arm": ["a", HOSTILE, "a", "a"], "y": [0.0, 1.0, 1.0, 0.0], "p": [0.5] * 4})
    log = ai.AdaptiveLog(frame, action="arm", reward="y", propensity="p", arms=["a", HOSTILE, "never"])
    told, counted = Page(log._repr_html_()).tables
    escape = HOSTILE.replace("\u202e", "\\u202e")
    assert told[0].startswith("AdaptiveLog: 4 rounds, 3 arms ('a', ")
    assert facts(told) == {
        "design": "unknown", "guarantee": "none", "propensities": "exact, chosen arm only"
    }  # fmt: skip
    assert counted[0] == "Rounds by arm"
    assert facts(counted) == {"a": "3", escape: "1", "never": "0"}


def test_a_log_of_a_private_trial_tells_its_promise_and_its_noise() -> None:
    env = ai.environments.BernoulliArms([0.3, 0.6])
    log = ai.designs.PrivateSuccessiveElimination(epsilon=1.0).run(env, horizon=3_000, rng=0)
    told, counted = map(facts, Page(log._repr_html_()).tables)
    assert told["guarantee"].startswith("epsilon = 1")
    assert told["guarantee"].endswith("simulated noise, not private")
    assert sum(int(count.replace(",", "")) for count in counted.values()) == 3_000


def test_arms_beyond_thirty_are_left_out_and_said_to_be() -> None:
    env = ai.environments.BernoulliArms(np.full(40, 0.5))
    log = ai.designs.Uniform().run(env, horizon=400, rng=0)
    caption, _, rows = Page(log._repr_html_()).tables[1]
    assert (caption, len(rows)) == ("Rounds by arm, the first 30 of 40", 30)
    assert int(rows[29][1]) == int((log.arrays.action == 29).sum())


def test_sums() -> None:
    rows = pd.DataFrame(
        {
            "week": [1, 1, 2, 2],
            "arm": ["a", "b"] * 2,
            "users": [1_500, 500, 700, 1_300],
            "buyers": [50, 30, 61, 80],
            "share": [0.75, 0.25, 0.35, 0.65],
        }
    )
    roles = {"batch": "week", "arm": "arm", "n": "users", "propensity": "share"}
    sums = ai.Sums(rows, **roles, sum="buyers", sum_squares="buyers")
    told, counted = Page(sums._repr_html_()).tables
    assert told[0] == "Sums: 4,000 rounds in 2 batches, 2 arms ('a', 'b')"
    assert facts(told)["guarantee"] == "none"
    assert facts(counted) == {"a": "2,200", "b": "1,800"}


def test_designs_and_rules_show_their_parameters() -> None:
    (plain,) = Page(ai.designs.Thompson(floor=0.1)._repr_html_()).tables
    assert plain[0] == "Thompson"
    assert facts(plain)["floor"] == "0.1"
    assert list(facts(plain)) == [field.name for field in dataclasses.fields(ai.designs.Thompson)]
    (mixed,) = Page(ai.designs.Mixture(ai.designs.UCB(), 0.2)._repr_html_()).tables
    assert {"exploration": "0.2", "design": "'UCB'"}.items() <= facts(mixed).items()
    assert any(name.startswith("parameters.") for name in facts(mixed))
    (rule,) = Page(ai.designs.DPNAS(alpha=0.1, beta=0.1, epsilon=1.0)._repr_html_()).tables
    assert (rule[0], facts(rule)["epsilon"]) == ("DPNAS", "1.0")
    assert Page(ai.designs.Uniform()._repr_html_()).tables == [
        ("Uniform", ["parameter", "value"], [["none", ""]])
    ]


def test_plans() -> None:
    env = {"<equal>": ai.environments.BernoulliArms([0.4, 0.4])}

    def fit(log: ai.AdaptiveLog) -> Any:
        return ai.Contrast(log, treatment=1, control=0).fit()

    how = {"horizon": 100, "replications": 64, "rng": 0}
    found = ai.audit.power(ai.designs.Uniform(), env, fit, **how)
    ((caption, columns, rows),) = Page(found._repr_html_()).tables
    assert caption == "Uniform(); 64 simulated trials per scenario and horizon, alpha 0.05"
    shown = dict(zip(columns, rows[0], strict=True))
    assert (shown["scenario"], shown["kind"]) == ("<equal>", "type-I error")
    assert shown["rejection"] == f"{found.frame['rejection'].iloc[0]:.4f}"
    characteristics = ai.audit.operating_characteristics(ai.designs.Uniform(), env, **how)
    page = Page(characteristics._repr_html_())
    assert [row[0] for row in page.tables[0][2]] == characteristics.table()["characteristic"].tolist()
    assert page.items == list(characteristics.notes) != []
    sizes = ai.audit.sample_size(
        ai.designs.Uniform(), ai.environments.BernoulliArms([0.2, 0.8]), "conditional"
    )
    assert "power 0.8 from 23 rounds" in Page(sizes._repr_html_()).tables[0][0]
    covered = ai.audit.coverage(ai.designs.Uniform(), env["<equal>"], fit, **how)
    ((caption, columns, rows),) = Page(covered._repr_html_()).tables
    assert caption.endswith("nominal coverage 0.95")
    assert rows[0][columns.index("coverage")] == f"{covered.frame['coverage'].iloc[0]:.4f}"


@pytest.mark.parametrize("text", [HOSTILE, "a\nb", "\x1b[31m", "&amp;"])
def test_texts_of_others_stay_texts(text: str) -> None:
    page = Page(table(["name", "n"], [[text, "1"], [text, "n/a"]], text) + numbered_notes([text]))
    ((caption, _, rows),) = page.tables
    assert caption == rows[0][0] == rows[1][0] == page.items[0]
    assert caption.isprintable()
    assert "<script" not in table(["n"], [[text]], text)
