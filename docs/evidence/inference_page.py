"""The page that `inference.py` writes: tables, rules, and every breach of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

COLUMNS = {
    "sample mean": "sample mean",
    "uniform": "AIPW uniform",
    "sqrt": "AIPW sqrt",
    "two-point": "AIPW two-point",
    "alee": "ALEE",
    "batched": "batched",
    "corrected exact": "corrected exact",
    "normal mixture": "normal mixture",
    "empirical Bernstein": "empirical Bernstein",
    "asymptotic sequence": "asymptotic",
    "empirical Bernstein, ipw": "emp. Bernstein, IPW",
    "asymptotic sequence, aipw": "asymptotic, AIPW",
}
ABOVE = ("DPConSE", "EpsilonGreedy", "batched Thompson", "Mixture(PrivateUCB)", "Mixture(LDPBandit)")
"""Designs whose propensities stay above .05, where they are used."""
LOW, EVENTUAL = 0.95, 0.93
WEALTH = "betting wealth"

PAGE = """\
# Coverage and type I errors of the inference suite

Command: `{command}`. Seed: {seed}. Date: {today}. {runs:,} replications a cell,
nominal level 95%. Processor time of the studies: {minutes:.0f} minutes on one core.

Means, designs and analyses were chosen once, before any simulation. There are two arms with 0/1 rewards and
means .5/.5 (no signal), .5/.55 (low) and .5/.7 (high). Trial r of every cell is drawn from the same stream,
so simulation errors in different cells are not independent.

| design | what it is |
| --- | --- |
| Thompson | normal prior, noise scale .5, 5 initial rounds an arm; propensities at least t^-0.7 / 2 |
| EpsilonGreedy | a fifth of the rounds explore: propensities at least .1 |
| UCB | width 2; no propensities |
| batched Thompson | ten batches; propensities at least .1 |
| PrivateUCB | epsilon = {epsilon:g}, corrected index; no propensities |
| Mixture(PrivateUCB) | the same, and a fifth of the rounds uniform: propensities are .1 or .9 |
| LDPBandit | epsilon = 4, arms dropped by bins of a context; contrasts over contexts: {contrasts} |
| Mixture(LDPBandit) | the same, and a fifth of the rounds uniform |
| DPConSE | epsilon = 1, alpha = .2; groups of .6 and .4, controls' means .4 and .6, effects 0, .05, .2 |

The labels are those of `recommend`. Exact: sample means corrected using the max-information of the private
designs' guarantee, with exact tests. Anytime: normal mixture and empirical Bernstein sequences, on the arms'
own rewards and on inverse-propensity scores, and betting; they are valid at all rounds simultaneously, and
are evaluated here after the last one. Asymptotic: AIPW by Student's t with effective sizes (without Hall's
correction, which the defaults make where rewards are skewed), ALEE with conservative errors, batched least
squares, asymptotic sequences and, under UCB, sample means. Otherwise, sample means with Welch's t are the
naive baseline. Two-point weights use the decay of the floor: .7 for Thompson, and 0 for the others. Coverage
is computed over the runs with an interval; the others are counted below.

## Rules

- The coverage of exact and anytime methods must never be below .95 by more than three standard errors, and
  the wealth of a bet at the truth may be 20 or more in at most 5% of the runs.
- Asymptotic methods must have coverage of at least .93 at T = 10,000, if propensities stay above .05 or there
  is no signal.

{verdict}

## Coverage of the contrast, arm 1 minus arm 0

{coverage}

## Type I error of the contrast's test at 5%, no signal

{errors}

## Lowest coverage of the two arm means

{arms}

## Mean width of the contrast's interval

{width}

## Bias of the contrast, in hundredths

Its standard error is at most {bias_error:.2f}. Sequences are based on sample means, or on means of IPW and
AIPW scores.

{bias}

## Betting, arm means

Bets are judged by their wealth against an arm's true mean. The table shows the coverage of the two-sided
sequence at level 95%, the share of runs whose wealth on the lower side is at least 20 at the end (at most
5%), and the mean and standard error of that wealth. The expected wealth is 1, but much of it comes from runs
that are too rare to be observed: a sample mean below 1 is typical of such a distribution, and its
standard error is uninformative.

{betting}

## Effects by group under DPConSE

{groups}

## Runs without an interval

{missing}

## What was not run

{left}
"""


def table(frame: pd.DataFrame, columns: Sequence[str], value: str, digits: int) -> str:
    """Markdown with a row per design, signal and horizon, and a column a method."""
    lines = [
        f"| T | design | means | {' | '.join(COLUMNS.get(name, name) for name in columns)} |",
        "| --- | --- | --- |" + " --- |" * len(columns),
    ]
    for (horizon, design, signal), part in frame.groupby(["horizon", "design", "signal"], sort=False):
        found = dict(zip(part["method"], part[value], strict=True))
        cells = [
            "" if math.isnan(found.get(name, math.nan)) else f"{found[name]:.{digits}f}" for name in columns
        ]
        lines.append(f"| {horizon:,} | {design} | {signal} | {' | '.join(cells)} |")
    return "\n".join(lines)


def breaches(frame: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Sentences on rows that break a rule, and on low asymptotic coverage where no rule applies."""
    broken, printed = [], []
    for row in frame.itertuples():
        slack = 3.0 * math.sqrt(LOW * (1.0 - LOW) / row.runs)
        where = f"{row.design}, {row.signal}, T = {row.horizon:,}: {row.method}, {row.quantity}"
        if row.label in ("exact", "anytime", "wealth") and row.coverage < LOW - slack:
            value = 1.0 - row.coverage if row.label == "wealth" else row.coverage
            broken.append(f"{where}: {value:.4f}")
        elif row.label == "asymptotic" and row.coverage < EVENTUAL:
            due = row.horizon >= 10_000 and (row.signal == "no signal" or row.design in ABOVE)
            (broken if due else printed).append(f"{where}: {row.coverage:.4f}")
    return broken, printed


def verdict(frame: pd.DataFrame, why: str) -> str:
    """What the rules say of the figures."""
    broken, printed = breaches(frame)
    sure = frame[frame["label"].isin(["exact", "anytime"])]
    late = frame[(frame["label"] == "asymptotic") & (frame["horizon"] >= 10_000)]
    late = late[(late["signal"] == "no signal") | late["design"].isin(ABOVE)]
    lines = [
        f"Lowest coverage of exact and anytime methods: {sure['coverage'].min():.4f} ({len(sure)} figures)."
    ]
    if len(late):
        lines.append(
            "Lowest coverage of asymptotic methods for which the second rule applies: "
            f"{late['coverage'].min():.4f} ({len(late)} figures)."
        )
    if broken:
        lines += ["", f"Breaches ({len(broken)}):", "", *(f"- {line}" for line in broken)]
    else:
        lines += ["", "No figure violates these rules."]
    if printed:
        told = "The following asymptotic methods have coverage below .93 in cases to which no rule applies:"
        lines += ["", told, ""]
        lines += [f"- {line}" for line in printed]
    return "\n".join([*lines, "", why.strip()] if why else lines)


def betting(frame: pd.DataFrame) -> str:
    """Coverage and wealth of bets."""
    lines = [
        "| T | design | means | arm | coverage | wealth at least 20 | mean wealth |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    keys = ["horizon", "design", "signal", "quantity"]
    held = frame[frame["method"] == "betting"].set_index(keys)["coverage"]
    for row in frame[frame["method"] == WEALTH].itertuples():
        place = (row.horizon, row.design, row.signal, row.quantity)
        lines.append(
            f"| {row.horizon:,} | {row.design} | {row.signal} | {row.quantity[-1]} | {held[place]:.4f} | "
            f"{1.0 - row.coverage:.4f} | {1.0 + row.bias:.2f} ± {row.bias_se:.2f} |"
        )
    return "\n".join(lines)


def groups(frame: pd.DataFrame) -> str:
    """Effects by group."""
    lines = [
        "| T | effect | method | group | coverage | bias | width |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {row.horizon:,} | {row.truth:.2f} | {row.method} | {row.quantity[-1]} | {row.coverage:.4f} | "
        f"{row.bias:.4f} ± {row.bias_se:.4f} | {row.width:.3f} |"
        for row in frame.itertuples()
    ]
    return "\n".join(lines)


def missing(frame: pd.DataFrame) -> str:
    """Cells with runs that have no interval."""
    some = frame[(frame["missing"] > 0) | (frame["invalid"] > 0)]
    if some.empty:
        return "None."
    lines = ["| T | design | means | method | runs without |", "| --- | --- | --- | --- | --- |"]
    for (horizon, design, signal, method), part in some.groupby(
        ["horizon", "design", "signal", "method"], sort=False
    ):
        count = int((part["missing"] + part["invalid"]).max())
        lines.append(f"| {horizon:,} | {design} | {signal} | {method} | {count:,} |")
    return "\n".join(lines)


def page(frame: pd.DataFrame, *, why: str, left: Sequence[str], **given: object) -> str:
    """The whole page."""
    arms = frame[frame["design"] != "DPConSE"]
    pair = arms[arms["quantity"] == "contrast"]
    single = arms[arms["quantity"] != "contrast"]
    keys = ["horizon", "design", "signal", "method"]
    lowest = single.groupby(keys, sort=False, as_index=False)["coverage"].min()
    none = pair[pair["signal"] == "no signal"].assign(error=lambda rows: 1.0 - rows["coverage"])
    methods = [name for name in COLUMNS if (pair["method"] == name).any()]
    three = [name for name in methods if (lowest["method"] == name).any()]
    return PAGE.format(
        verdict=verdict(frame, why),
        coverage=table(pair, methods, "coverage", 3),
        errors=table(none, methods, "error", 3),
        arms=table(lowest, three, "coverage", 3),
        width=table(pair, methods, "width", 3),
        bias=table(pair.assign(bias=100.0 * pair["bias"]), methods, "bias", 2),
        bias_error=100.0 * pair["bias_se"].max(),
        betting=betting(arms),
        groups=groups(frame[frame["design"] == "DPConSE"]),
        missing=missing(frame),
        left="\n".join(f"- {line}" for line in left),
        **given,
    )
