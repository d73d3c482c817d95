"""Calibration of plans: a design with its analyses, under a null and an alternative.

Makes docs/evidence/calibration.md. ``--quick`` looks at fewer trials and writes nothing; both
versions end with an error, and a sentence for each, where a check fails.

Choices, made once, before anything was measured:

- Two arms with 0/1 rewards: means .3 and .3 under the null, .3 and .4 under the alternative; private designs,
  which need more data, have .5 and .5, and .5 and .6. Contexts as on docs/evidence/inference.md.
- Settings where the claims of the analyses hold. Exact and anytime methods claim their level at any number of
  rounds. Asymptotic ones claim it for many: Uniform has 400 rounds, or 200 an arm; EpsilonGreedy explores in
  a fifth of its 1,000 rounds, and Thompson's propensities are at least .05 in 1,000, so no arm is left with a
  handful of rewards; UCB, a stable design, has 2,000 rounds; DPConSE has 10,000, LDPBandit 8,000. The places
  where asymptotic methods fall short (small propensities, strong signals) are on docs/evidence/inference.md.
- An analysis is "not valid" where `recommend` calls it so: it is shown for comparison, without a check.
- A check fails where the coverage of a 95% interval that claims validity lies below .95, or a type I error
  above .05, by over z binomial standard errors at .05, with z the upper quantile of the normal law at 1e-4
  over the number of checks.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import evidence
import pandas as pd
from scipy.stats import norm

from adaptinf.audit.simulation.characteristics import operating_characteristics
from adaptinf.audit.simulation.measures import markdown, share_text
from adaptinf.audit.simulation.simulated_coverage import coverage
from adaptinf.audit.simulation.simulated_power import TYPE_I, power
from adaptinf.designs import (
    UCB,
    DPConSE,
    EpsilonGreedy,
    LDPBandit,
    PrivateSuccessiveElimination,
    PrivateUCB,
    Thompson,
    Uniform,
)
from adaptinf.designs.base import Design
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.effects.cate import CATE
from adaptinf.inference.released.released_bin_means import BinMeans
from adaptinf.inference.sequences.confidence_sequence import ConfidenceSequence
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import BernoulliArms, Environment, FiniteContext, SmoothArms

SEED = 2026
ALPHA = 0.05
NAIVE = "not valid"
TRIAL = {"null": BernoulliArms([0.3, 0.3]), "alternative": BernoulliArms([0.3, 0.4])}
PRIVATE = {"null": BernoulliArms([0.5, 0.5]), "alternative": BernoulliArms([0.5, 0.6])}
GROUPS = {
    name: FiniteContext([0.6, 0.4], [[0.4, 0.4 + effect], [0.6, 0.6 + effect]])
    for name, effect in (("null", 0.0), ("alternative", 0.1))
}
STUDY = PrivateUCB(epsilon=1.0), BernoulliArms([0.5, 0.5, 0.5, 0.5, 0.6]), 10_000


def difference(log: AdaptiveLog) -> Contrast:
    """Arm 1 minus arm 0."""
    return Contrast(log, treatment=1, control=0)


def bernstein(log: AdaptiveLog, estimator: str = "sample-mean") -> Any:
    """An empirical Bernstein sequence of the difference."""
    sequence = ConfidenceSequence(log, target="contrast", treatment=1, control=0)
    return sequence.fit("empirical-bernstein", estimator=estimator)


def fixed(log: AdaptiveLog) -> dict[str, Any]:
    """Analyses of a trial with constant allocation."""
    return {"Welch's t": difference(log).fit("sample-mean", test="t"), "ALEE": difference(log).fit("alee")}


def weighted(log: AdaptiveLog) -> dict[str, Any]:
    """Analyses with known propensities, and Welch's t."""
    return {
        "Welch's t": difference(log).fit("sample-mean", test="t"),
        "AIPW, sqrt weights": difference(log).fit("aipw", weights="sqrt"),
        "ALEE": difference(log).fit("alee"),
        "emp. Bernstein sequence": bernstein(log),
    }


def unweighted(log: AdaptiveLog) -> dict[str, Any]:
    """Analyses without propensities."""
    return {
        "Welch's t": difference(log).fit("sample-mean", test="t"),
        "ALEE": difference(log).fit("alee"),
        "emp. Bernstein sequence": bernstein(log),
    }


def private(log: AdaptiveLog) -> dict[str, Any]:
    """Exact binomial tests of an arm and Welch's t, with their corrections; ALEE and a sequence."""
    return {
        "binomial": ArmMeans(log, arms=[1]).fit("sample-mean", test="exact", null=0.5),
        "Welch's t": difference(log).fit("sample-mean", test="t"),
        "ALEE": difference(log).fit("alee"),
        "emp. Bernstein sequence": bernstein(log),
    }


def groups(log: AdaptiveLog) -> dict[str, Any]:
    """Effects by context, from the randomised rounds and from the releases alone."""
    model = CATE(log, by="feature", treatment=1, control=0)
    names = {"difference in means": "difference-in-means", "released": "released"}
    return {name: model.fit(estimator) for name, estimator in names.items()}


def bins(log: AdaptiveLog) -> dict[str, Any]:
    """Means over bins, from locally private reports."""
    return {"bin means": BinMeans(log).fit()}


@dataclass(frozen=True)
class Plan:
    """A design over a horizon, in scenarios, with analyses and what they claim.

    Attributes
    ----------
    name : str
        Of the design.
    design : Design
        What gathers the data.
    scenarios : dict of str to Environment
        Where.
    horizon : int
        Rounds.
    fit : callable
        The analyses.
    claims : dict of str to str
        By analysis: "exact", "anytime", "asymptotic" or "not valid".
    """

    name: str
    design: Design
    scenarios: dict[str, Environment]
    horizon: int
    fit: Callable[[AdaptiveLog], dict[str, Any]]
    claims: dict[str, str]


_SEQUENCE = {"emp. Bernstein sequence": "anytime"}
_WEIGHTED = {"Welch's t": NAIVE, "AIPW, sqrt weights": "asymptotic", "ALEE": "asymptotic", **_SEQUENCE}
_PRIVATE = {
    "binomial": NAIVE,
    "binomial, corrected": "exact",
    "Welch's t": NAIVE,
    "Welch's t, corrected": "asymptotic",
    "ALEE": "asymptotic",
    **_SEQUENCE,
}
PLANS = (
    Plan("Uniform", Uniform(), TRIAL, 400, fixed, {"Welch's t": "asymptotic", "ALEE": "asymptotic"}),
    Plan("EpsilonGreedy, 0.2", EpsilonGreedy(exploration=0.2), TRIAL, 1_000, weighted, _WEIGHTED),
    Plan("Thompson, floor 0.05", Thompson(floor=0.05), TRIAL, 1_000, weighted, _WEIGHTED),
    Plan(
        "UCB",
        UCB(),
        TRIAL,
        2_000,
        unweighted,
        {"Welch's t": "asymptotic", "ALEE": "asymptotic", **_SEQUENCE},
    ),
    Plan("PrivateUCB, epsilon 0.1", PrivateUCB(epsilon=0.1), PRIVATE, 4_000, private, _PRIVATE),
    Plan(
        "PrivateSuccessiveElimination, epsilon 1",
        PrivateSuccessiveElimination(epsilon=1.0),
        PRIVATE,
        8_000,
        unweighted,
        {"Welch's t": NAIVE, "ALEE": "asymptotic", **_SEQUENCE},
    ),
    Plan(
        "DPConSE, epsilon 1, alpha 0.2",
        DPConSE(epsilon=1.0, alpha=0.2),
        GROUPS,
        10_000,
        groups,
        {"difference in means": "asymptotic", "released": "asymptotic"},
    ),
    Plan(
        "LDPBandit, epsilon 4",
        LDPBandit(epsilon=4.0, check_every=10),
        {"alternative": SmoothArms(n_arms=2, dimension=1)},
        8_000,
        bins,
        {"bin means": "asymptotic"},
    ),
)


def measured(plan: Plan, runs: int, n_jobs: int) -> pd.DataFrame:
    """Rows of a plan with their claims; corrected rows without a claim are omitted."""
    frame = power(plan.design, plan.scenarios, plan.fit, plan.horizon, runs, SEED, n_jobs=n_jobs).frame
    frame.insert(0, "plan", plan.name)
    frame.insert(4, "claim", frame["analysis"].map(plan.claims))
    return frame[frame["claim"].notna()].reset_index(drop=True)


def failures(frame: pd.DataFrame, runs: int) -> tuple[list[str], int, float]:
    """A sentence for each failed check, the number of checks and the tolerance."""
    claimed = frame[(frame["claim"] != NAIVE) & (frame["runs"] > 0)]
    sizes = claimed[claimed["kind"] == TYPE_I]
    checks = len(claimed) + len(sizes)
    z = float(norm.isf(1e-4 / checks))
    said = []
    for row in claimed.to_dict("records"):
        place = f"{row['plan']}, {row['scenario']}, {row['analysis']}, {row['term']}"
        slack = z * math.sqrt(ALPHA * (1.0 - ALPHA) / row["runs"])
        if row["coverage"] < 1.0 - ALPHA - slack:
            said.append(f"{place}: coverage {row['coverage']:.4f} is below {1.0 - ALPHA - slack:.4f}.")
        slack = z * math.sqrt(ALPHA * (1.0 - ALPHA) / runs)
        if row["kind"] == TYPE_I and row["rejection"] > ALPHA + slack:
            said.append(f"{place}: type I error {row['rejection']:.4f} is above {ALPHA + slack:.4f}.")
    return said, checks, z * math.sqrt(ALPHA * (1.0 - ALPHA) / runs)


def shares(values: pd.Series, errors: pd.Series, runs: pd.Series) -> list[str]:
    """Shares of so many runs, with standard errors, or of 0 and 1 the one-sided 95% limit, in brackets."""
    return [
        "" if math.isnan(value) else share_text(value, error, count, 4, 4)
        for value, error, count in zip(values, errors, runs, strict=True)
    ]


def shown(frame: pd.DataFrame) -> str:
    """The table, with what simulation leaves open in brackets."""
    size = frame["kind"] == TYPE_I
    trials = frame["runs"] + frame["missing"]
    rejected = pd.Series(shares(frame["rejection"], frame["rejection_se"], trials))
    bias = [
        f"{value:.4f} ({error:.4f})" for value, error in zip(frame["bias"], frame["bias_se"], strict=True)
    ]
    table = frame[["plan", "horizon", "scenario", "analysis", "claim", "term"]].assign(
        coverage=shares(frame["coverage"], frame["coverage_se"], frame["runs"]),
        **{"type I error": rejected.where(size, ""), "power": rejected.where(~size, "")},
        bias=bias,
        width=frame["width"],
        missing=frame["missing"] - frame["absent"],
    )
    return markdown(table.rename(columns={"horizon": "T"}))


def study_fit(log: AdaptiveLog) -> dict[str, Any]:
    """Sample means, which carry the correction, and confidence sequences."""
    return {
        "sample mean": ArmMeans(log).fit("sample-mean"),
        "sequence": ConfidenceSequence(log).fit("empirical-bernstein"),
    }


def study(runs: int, n_jobs: int) -> tuple[pd.DataFrame, float]:
    """The study of PrivateUCB, and its seconds by the clock."""
    design, env, horizon = STUDY
    began = time.perf_counter()
    found = coverage(design, env, study_fit, horizon, runs, SEED, n_jobs=n_jobs)
    return found.frame, time.perf_counter() - began


def protocols(runs: int, n_jobs: int) -> list[str]:
    """Operating characteristics of a two-arm trial, and of a private one."""
    two = operating_characteristics(
        Thompson(floor=0.1, initial_pulls=10),
        {"equal": TRIAL["null"], "10 points": TRIAL["alternative"], "20 points": BernoulliArms([0.3, 0.5])},
        200,
        runs,
        SEED,
        fit=lambda log: difference(log).fit("aipw", weights="sqrt"),
        n_jobs=n_jobs,
    )
    hidden = operating_characteristics(
        PrivateSuccessiveElimination(epsilon=1.0),
        {"equal": BernoulliArms([0.5] * 3), "one better": BernoulliArms([0.5, 0.5, 0.7])},
        40_000,
        runs,
        SEED,
        n_jobs=n_jobs,
    )
    heads = (
        "### A two-arm trial: Thompson sampling, 200 participants, AIPW with sqrt weights",
        "### A private trial: PrivateSuccessiveElimination, epsilon 1, three arms, 40,000 rounds",
    )
    return [f"{head}\n\n{table.to_markdown()}" for head, table in zip(heads, (two, hidden), strict=True)]


def page(runs: int, trials: int, n_jobs: int, command: str) -> tuple[str, list[str]]:
    """The page, and its failed checks."""
    began = time.perf_counter()
    frame = pd.concat([measured(plan, runs, n_jobs) for plan in PLANS], ignore_index=True)
    failed, checks, slack = failures(frame, runs)
    tables = protocols(runs, n_jobs)
    numbers, seconds = study(trials, n_jobs)
    numbers["coverage"] = shares(numbers["coverage"], numbers["coverage_se"], numbers["runs"])
    columns = ["analysis", "term", "truth", "runs", "coverage", "bias", "bias_se", "width"]
    spent = time.perf_counter() - began
    lines = [
        "# Calibration of plans",
        f"Command: `{command}`. Seed: {SEED}. Date: {evidence.stamp()}. {runs:,} trials for each "
        f"design and scenario. {spent:.0f} seconds with {n_jobs} processes on a machine with two cores that "
        "had other work.",
        "A plan is a design with an analysis. Each plan is simulated under a null hypothesis and an "
        "alternative; Monte Carlo standard errors are in parentheses. The number after < or > is the "
        "one-sided 95% limit for a share of 0 or 1 (1 - .05^(1/n) for none of n trials). Settings were "
        "chosen "
        "before any measurement, such "
        "that the claims of the methods apply: exact and anytime methods claim 95% at any number of rounds, "
        "asymptotic ones for many rounds and propensities that are not small. Cases in which asymptotic "
        "methods fall short are shown on [the page of the inference suite](inference.md), and regressions "
        "(LinUCB, LinPriv) are "
        "on [theirs](regression.md). Rows labelled `not valid` are the naive baseline, and are not checked.",
        f"In {checks} checks, coverage must not be below .95 for methods that claim 95%, and type I "
        f"error rates must not be above .05, by more than {slack:.4f} (this gives one false alarm in 10,000 "
        "runs of the whole page). " + (" ".join(failed) if failed else "No check fails."),
        "## Plans",
        "There are two arms with means .3 and .3 or .4, or, for private designs, .5 and .5 or .6. The "
        "binomial test compares arm 1's mean with .5. DPConSE has two groups with effects 0 or .1; "
        "LDPBandit's bin means are "
        "tested against .5. `missing` is the share of trials whose result has no interval for the term. "
        "Trials whose result lacks the term, for example because LDPBandit stored no mean of an arm in a "
        "bin, are not counted there or in the coverage; in both cases, the null hypothesis is not "
        "rejected.",
        shown(frame),
        "## Operating characteristics",
        "These tables are not checked. For AIPW, 200 participants are few: its type I error rate must be "
        "considered before a protocol specifies this test.",
        *tables,
        f"## PrivateUCB: {trials:,} trials of 10,000 rounds",
        "This example has epsilon 1 and five arms. Sample means, their correction by max-information and "
        f"empirical Bernstein sequences took {seconds:.1f} seconds of clock time with {n_jobs} processes; no "
        f"frame is created for any trial. At epsilon 1 and 10,000 rounds, the correction is nearly "
        f"uninformative; "
        "it is included to show its cost.",
        markdown(numbers[columns]),
    ]
    return "\n\n".join(lines) + "\n", failed


def main() -> int:
    parser = evidence.parser(
        "Calibration of plans; --quick takes some twenty seconds on two cores, compiled."
    )
    parser.add_argument("--n-jobs", type=int, default=2)
    options = parser.parse_args()
    runs, trials = (320, 640) if options.quick else (2_048, 10_000)
    command = "python docs/evidence/calibration.py" + (" --quick" if options.quick else "")
    text, failed = page(runs, trials, options.n_jobs, command)
    evidence.publish(text, __file__, options)
    print(*failed or ["No check fails"], sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
