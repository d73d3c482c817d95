"""Two private adaptive trials on real outcomes, whose true answers are known: ``adaptinf demo``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from tqdm import tqdm

from adaptinf.datasets import rand_hie
from adaptinf.designs import DPConSE, PrivateUCB
from adaptinf.inference.arms import Contrast
from adaptinf.inference.effects.cate import CATE
from adaptinf.inference.results.tables import format_pvalue
from adaptinf.simulation.environments import Replay

if TYPE_CHECKING:
    from adaptinf.inference.results.base import Results
    from adaptinf.log import AdaptiveLog

_TREATMENT, _CONTROL = "free care", "cost sharing"
_RANGE = (0.0, 1.0)
_ARMS = (_CONTROL, _TREATMENT)
_GROUPS = ("excellent", "good", "fair-or-poor")
_WIDTH = 96


@dataclass(frozen=True, slots=True)
class GroupTrial:
    """A trial that estimates the effect in each group."""

    log: AdaptiveLog
    full_data: pd.Series[float]
    released: Results
    difference: Results
    aipw: Results
    naive: Results


@dataclass(frozen=True, slots=True)
class ContrastTrial:
    """A trial that prefers the better arm, and the difference of its arms."""

    log: AdaptiveLog
    full_data: float
    result: Results


def full_data_effects(frame: pd.DataFrame, by: str | None = None) -> pd.Series[float]:
    """Difference in the share of any visit between free care and cost sharing."""
    group = pd.Series("all", index=frame.index) if by is None else frame[by]
    shares = frame.groupby([group, frame["arm"]])["any_visit"].mean().unstack()
    return shares[_TREATMENT] - shares[_CONTROL]


def group_trial(frame: pd.DataFrame, horizon: int, rng: np.random.SeedSequence) -> GroupTrial:
    """Effects by health under DP-ConSE at epsilon = 1."""
    environment = Replay(
        frame, action="arm", reward="any_visit", context="group", arms=_ARMS, reward_range=_RANGE
    )
    log = DPConSE(epsilon=1.0, alpha=0.2).run(environment, horizon=horizon, rng=rng)
    arms = {"treatment": _TREATMENT, "control": _CONTROL}
    model = CATE(log, by="group", **arms)
    everything = CATE(log, by="group", rounds=np.ones(log.n_rounds, dtype=bool), **arms)
    return GroupTrial(
        log=log,
        full_data=full_data_effects(frame, "group"),
        released=model.fit(estimator="released"),
        difference=model.fit(),
        aipw=model.fit(estimator="aipw"),
        naive=everything.fit(),
    )


def contrast_trial(frame: pd.DataFrame, horizon: int, rng: np.random.SeedSequence) -> ContrastTrial:
    """Difference of the arms under private UCB at epsilon = 0.02."""
    environment = Replay(frame, action="arm", reward="any_visit", arms=_ARMS, reward_range=_RANGE)
    log = PrivateUCB(epsilon=0.02).run(environment, horizon=horizon, rng=rng)
    return ContrastTrial(
        log=log,
        full_data=float(full_data_effects(frame).iloc[0]),
        result=Contrast(log, treatment=_TREATMENT, control=_CONTROL).fit(estimator="sample-mean"),
    )


def run_demo(rng: int = 0, *, horizons: tuple[int, int] = (200_000, 20_190)) -> str:
    """Run both trials and describe them."""
    # A progress bar goes to standard error where that is a terminal.
    first, second = np.random.SeedSequence(rng).spawn(2)
    bar_format = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}"
    with tqdm(total=3, desc="the data", bar_format=bar_format, disable=None, leave=False) as bar:
        frame = rand_hie()
        bar.update()
        bar.set_description("trial 1: effects by health")
        groups = group_trial(frame, horizons[0], first)
        bar.update()
        bar.set_description("trial 2: one contrast")
        contrast = contrast_trial(frame, horizons[1], second)
        bar.update()
    return "\n".join([*_introduction(frame), *_group_report(groups), *_contrast_report(contrast), *_ending()])


def _introduction(frame: pd.DataFrame) -> list[str]:
    sizes = frame["arm"].value_counts()
    return [
        *_heading("Two private adaptive trials on the RAND Health Insurance Experiment", "="),
        *_item(
            "Data",
            f"{len(frame):,} person-years of families who were given an insurance plan at random: "
            f"{_TREATMENT} ({sizes[_TREATMENT]:,}) or {_CONTROL} ({sizes[_CONTROL]:,}). Outcome: whether a "
            "doctor was seen at least once in the year.",
        ),
        *_item(
            "Question",
            f"by how much does {_TREATMENT} raise the probability of a visit? Rounds are drawn from these "
            "data with replacement, so the full data give the true answer, which no trial sees.",
        ),
    ]


def _group_report(trial: GroupTrial) -> list[str]:
    log = trial.log
    budgets = log.guarantee, log.reward_guarantee
    total, contrast = (0.0 if budget is None else budget.epsilon for budget in budgets)
    return [
        *_heading("1. Effects by self-rated health", "-"),
        *_item(
            "Design",
            f"DP-ConSE, epsilon = {total:g}, alpha = 0.2, {log.n_rounds:,} rounds. The first half learns the "
            "better plan of each group by coin flips. In the second half "
            f"{_randomised_share(log):.1%} of the rounds are still randomised, to estimate the effect, and "
            "the others get the better plan.",
        ),
        *_item("Guarantee", f"{log.guarantee}."),
        *_item(
            "Protected",
            "one round's record: a person-year, with its health and its outcomes under both plans. A person "
            "with several person-years, or drawn several times, pays for each. Anticipating: everything is "
            "covered but the plan of that very round.",
        ),
        *_item(
            "Why",
            f"a round enters one release of sums of outcomes, which costs {contrast:g}, and one of numbers "
            f"of arrivals, which costs {total - contrast:g}: windows and halves hold different rounds. "
            "Whatever else steers the trial is computed from these releases.",
        ),
        "",
        f"Effect of {_TREATMENT} on the probability of a visit, with 95% intervals:",
        "",
        *_effects_table(trial),
        "",
        *_wrapped(
            "How to read it: an interval should cover the truth 95 times in 100. The guarantee covers the "
            "released numbers alone, whose intervals allow for the noise; the rows below them read the raw "
            "log, and are for the eyes that may see it. The naive row also pools rounds whose plan depended "
            "on earlier outcomes: it is precise, and not far off in this trial, but no theory backs it."
        ),
        "",
        *_wrapped("The released rows are one result of the library, and print as this table:"),
        "",
        str(trial.released),
    ]


def _effects_table(trial: GroupTrial) -> list[str]:
    rows = [("health", "estimator", "effect", "[0.025", "0.975]", "computed from")]
    sources = {
        "released": (trial.released, "private releases"),
        "difference in means": (trial.difference, "raw log, randomised in second half"),
        "AIPW": (trial.aipw, "raw log, all of second half"),
        "naive difference": (trial.naive, "raw log, all rounds"),
    }
    numbers = {name: result.to_frame().set_index("term") for name, (result, _) in sources.items()}
    for group in _GROUPS:
        rows.append(
            (group, "full data", f"{trial.full_data[group]:.4f}", "", "", "the truth, for comparison")
        )
        for name, (_, source) in sources.items():
            columns = ["estimate", "conf_low", "conf_high"]
            estimate, low, high = numbers[name].reindex([f"group={group}"])[columns].to_numpy()[0]
            rows.append(("", name, f"{estimate:.4f}", f"{low:.4f}", f"{high:.4f}", source))
    return _table(rows, "<<>>><")


def _contrast_report(trial: ContrastTrial) -> list[str]:
    log, result = trial.log, trial.result
    correction = result.correction
    pulls = log.frame["action"].value_counts()
    return [
        *_heading("2. One contrast under a small epsilon", "-"),
        *_item(
            "Design",
            f"private UCB, epsilon = 0.02, {log.n_rounds:,} rounds: each round gets the plan with the "
            f"highest optimistic noisy mean. {_TREATMENT}: {pulls[_TREATMENT]:,} rounds, {_CONTROL}: "
            f"{pulls[_CONTROL]:,}.",
        ),
        *_item("Guarantee", f"{log.guarantee}."),
        *_item("Protected", "one round's outcomes under both plans: a person-year again, not a person."),
        *_item(
            "Why",
            "rewards are seen through one noisy running sum a plan only. An outcome enters the sum of one "
            "plan, so that each sum may spend all of epsilon.",
        ),
        "",
        f"Difference in the probability of a visit, {_TREATMENT} minus {_CONTROL}, with 95% intervals:",
        "",
        *_contrast_table(trial),
        "",
        *_wrapped(
            "How to read it: the naive row takes the plans as if they had been fixed in advance. They "
            "followed the outcomes; but privacy bounds how much of the outcomes can have leaked into the "
            "choice, and the corrected row allows for that much. P-values test for no difference at all."
        ),
        *([] if correction is None else _wrapped(f"The price: {correction.describe()}.")),
    ]


def _contrast_table(trial: ContrastTrial) -> list[str]:
    result = trial.result
    rows = [("", "difference", "p-value", "[0.025", "0.975]", "computed from")]
    rows.append(("full data", f"{trial.full_data:.4f}", "", "", "", "the truth, for comparison"))
    kinds = [("naive", result.log_pvalues, result.conf_int())]
    if result.correction is not None:
        kinds.append(("corrected", result.log_pvalues_corrected, result.conf_int_corrected()))
    for name, log_p, interval in kinds:
        low, high = interval.to_numpy()[0]
        source = f"raw log, all rounds; {result.reference.name}"
        estimate, p_value = f"{result.estimate[0]:.4f}", format_pvalue(log_p.iloc[0])
        rows.append((name, estimate, p_value, f"{low:.4f}", f"{high:.4f}", source))
    return _table(rows, "<>>>><")


def _ending() -> list[str]:
    return [
        *_heading("What this is not", "-"),
        *_wrapped(
            "The noise came from a seeded floating-point generator: right for planning a trial and for "
            "checking its statistics, but not private. Do not publish releases of a simulation as private."
        ),
    ]


def _randomised_share(log: AdaptiveLog) -> float:
    """Share of the second half's rounds whose plan was drawn by a coin."""
    second = log.frame[log.frame["phase"] == "estimation"]
    return float(second["randomised"].mean())


def _heading(text: str, rule: str) -> list[str]:
    return ["", text, rule * _WIDTH, ""] if rule == "-" else [text, rule * _WIDTH, ""]


def _item(name: str, text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=f"{name:<11}", subsequent_indent=" " * 11)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_on_hyphens=False)


def _table(rows: Sequence[Sequence[str]], aligns: str) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(f"{cell:{align}{width}}" for cell, align, width in zip(row, aligns, widths, strict=True))
        for row in rows
    ]
    return [line.rstrip() for line in _ruled(lines)]


def _ruled(lines: list[str]) -> Iterator[str]:
    yield lines[0]
    yield "-" * max(len(line.rstrip()) for line in lines)
    yield from lines[1:]
