"""The tables of the study's page, from `results.csv`: between marks, so that the text around them is free."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from case_studies.scoreboard import compare
from case_studies.scoreboard.tools import cells_of, left_out, read_tools

PAGE = Path(__file__).with_name("README.md")
FEWEST = 24  # cells of a tool
TARGETS = {
    "arm": "mean of an arm named in advance",
    "contrast": "difference of two arms",
    "ratio": "ratio of two arms",
    "leader": "mean of the arm that leads",
    "lowest": "mean of the lowest arm",
    "policy": "value of a policy",
    "stopped": "mean of the leader at a stop",
}
INFORMATION = {
    "all": "every arm's chance",
    "chosen": "the chosen arm's chance",
    "none": "no chances",
    "sums": "sums by period, with chances",
}


def markdown(rows: list[list[str]], heads: list[str]) -> str:
    """A table; columns whose cells all look like numbers are set to the right."""
    numbers = [all(re.fullmatch(r"[-\d.,%]*", row[place]) for row in rows) for place in range(len(heads))]
    lines = [heads, ["---:" if number else "---" for number in numbers], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float, digits: int = 3) -> str:
    """A number as the page has it: no leading zero in shares, nothing where there is none."""
    if pd.isna(value):
        return ""
    text = f"{value:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def tools_table(rows: pd.DataFrame) -> str:
    """A row a tool, those that cover most often first."""
    table = compare.by_tool(rows)
    table = table[table["answered in"] > 0]
    table["share"] = table["covers in"] / table["answered in"]
    told = read_tools()
    lines = [
        [
            row["tool"],
            told[row["tool"]].version,
            told[row["tool"]].promise,
            told[row["tool"]].adaptive,
            f"{row['covers in']} of {row['answered in']}", number(row["lowest coverage"]),
            number(row["median width"], 2),
        ]
        for _, row in table.sort_values(["share", "answered in"], ascending=False).iterrows()
    ]  # fmt: skip
    return markdown(
        lines, ["tool", "version", "promises", "for adaptive data?", "covers in", "lowest coverage", "width"]
    )


def suits_table(rows: pd.DataFrame) -> str:
    """For each kind of log and target, the tools that cover in every world that was run, narrowest first."""
    lines = []
    for (information, design, target), part in rows.groupby(["information", "design", "target"], sort=False):
        answered = part[(part["answered"] > 0) & (part["refused"] < 0.5)]
        by = answered.groupby("tool")
        complete = by["cell"].transform("nunique") == part["cell"].nunique()
        good = by["near"].transform("all") & complete
        widths = answered[good].groupby("tool")["width"].median().sort_values()
        names = ", ".join(f"{tool} {number(width, 2)}" for tool, width in widths.head(4).items())
        lines.append([design.replace("_", " "), INFORMATION[information], TARGETS[target],
                      str(part["world"].nunique()), names or "none"])  # fmt: skip
    return markdown(
        lines, ["design", "the log has", "asked", "worlds", "covers in all of them, with its width"]
    )


def not_narrowest_table(rows: pd.DataFrame) -> str:
    """Cells in which adaptinf is not the narrowest, does not cover or does not answer."""
    names = {"coverage": 3, "refused": 3, "width": 2, "narrower": None, "its coverage": 3, "its width": 2}
    lines = []
    for _, row in compare.not_narrowest(rows).iterrows():
        told = [row[name] if digits is None else number(row[name], digits) for name, digits in names.items()]
        lines.append([row["cell"], row["target"], *told, number(row["elsewhere"]), row["why"]])
    return markdown(
        lines,
        [
            "cell",
            "target",
            "covers",
            "refused",
            "width",
            "narrowest that covers",
            "covers",
            "width",
            "elsewhere",
            "why",
        ],
    )


def causes_table(rows: pd.DataFrame) -> str:
    """The same cells in groups."""
    lines = [
        [row["cause"], str(row["cells"]), number(row["wider"], 2), number(row["lowest elsewhere"])]
        for _, row in compare.causes(rows).iterrows()
    ]
    return markdown(lines, ["why", "cells", "wider by a factor of", "lowest coverage of the other"])


def few_cells(rows: pd.DataFrame) -> str:
    """Tools that were run on fewer than 24 cells, or on a part of theirs, and why."""
    run, seconds = rows.groupby("tool").size(), rows.groupby("tool")["seconds"].median()
    lines = []
    for name, tool in read_tools().items():
        spoken = len(cells_of(tool))
        if name not in run.index or run[name] == spoken >= FEWEST:
            continue
        why = "its documentation speaks to no others" if run[name] == spoken else "the others were not run"
        lines.append([name, str(run[name]), str(spoken), f"{1000 * seconds[name]:,.1f}", why])
    return markdown(lines, ["tool", "cells", "of", "ms a fit", "why no more"])


def summary(rows: pd.DataFrame) -> str:
    """The sentences with the totals."""
    ours = rows[rows["tool"] == "adaptinf"]
    answered = ours[ours["answered"] > 0]
    shares = compare.share_narrowest(rows)
    table = compare.by_tool(rows)
    others = table[(table["tool"] != "adaptinf") & (table["answered in"] > 0)]
    covering, cells = int(others["covers in"].sum()), int(others["answered in"].sum())
    asked = rows.groupby(["cell", "target"]).ngroups
    asked_for, own = int(rows["runs"].sum()), int(answered["valid"].sum())
    return (
        f"{len(rows):,} rows: {len(table)} tools, {asked} cells, {asked_for:,} intervals asked for. "
        f"adaptinf answers in {len(answered)} of {len(ours)} cells and covers in {own} of these; "
        f"the others cover in {covering:,} of {cells:,}. Of the tools that cover in a cell, adaptinf is "
        f"the narrowest in {shares['in the cell']:.0%} of its cells; of those that cover in every world "
        f"of the cell's design, in {shares['in every world']:.0%}."
    )


def not_run(rows: pd.DataFrame) -> str:
    """Tools that are not in the results, and why."""
    there = set(rows["tool"])
    listed = {name: "not run yet: it is slow" for name in read_tools() if name not in there} | left_out()
    return markdown(
        [[name, reason] for name, reason in listed.items()], ["tool", "why it is not in the results"]
    )


PARTS = {
    "summary": summary,
    "tools": tools_table,
    "not narrowest": not_narrowest_table,
    "causes": causes_table,
    "few cells": few_cells,
    "suits": suits_table,
    "not run": not_run,
}


def filled(text: str, rows: pd.DataFrame) -> str:
    """The page with its parts written anew."""
    for name, part in PARTS.items():
        mark = f"<!-- {name} -->"
        before, found, rest = text.partition(f"{mark}\n")
        _, ended, after = rest.partition("<!-- end -->")
        if not found or not ended:
            raise ValueError(f"the page must have the part {mark}, ended by <!-- end -->")
        text = f"{before}{mark}\n{part(rows)}\n<!-- end -->{after}"
    return text
