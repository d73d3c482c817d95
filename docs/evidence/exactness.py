"""How exact the numbers are: makes docs/evidence/exactness.md from the oracles of the tests.

The oracles are imported from tests/, so the figures are those of the very code that the tests run.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections import Counter
from pathlib import Path

import evidence
import mpmath as mp
import numpy as np
from scipy import stats

from adaptinf.errors import LogValidationError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.arms.models import ArmMeans
from adaptinf.inference.corrections.information import Correction, correct_pvalues
from adaptinf.log import AdaptiveLog
from adaptinf.log.validation import nested_options

TESTS = Path(__file__).resolve().parents[2] / "tests"
ROOMS = ("reference/inference", "properties/inference", "properties/log", "montecarlo/designs")
sys.path += [str(TESTS / room) for room in ROOMS]

import test_aipw_literal as literal  # noqa: E402
import test_correction_duality as duality  # noqa: E402
import test_log_fuzz as fuzz  # noqa: E402
import test_maxinfo_bruteforce as brute  # noqa: E402
import test_run_vs_replicate as twins  # noqa: E402

PAGE = """\
# How exact the numbers are

Command: `python docs/evidence/exactness.py{flags}`. Seeds are given in each section. Date: {today}.

## Corrected p-values against a search

The smallest value of 2^k(beta) p + beta over beta was searched for in 50-digit arithmetic on a grid with
golden-section refinement, for epsilon in {epsilons}, n in {rounds} and p in {pvalues}: the largest relative
difference is {brute:.1e} over {brute_cases} cases (target: 1e-9). No random numbers.

## Corrected p-values and corrected intervals

Whether p* <= alpha is compared with whether the corrected interval excludes the null value, at alpha in (.05,
.3, 1e-4), for six pairs of epsilon and n and four families of tests, with null values both arbitrary and near
the ends of intervals. Cases within 1e-9 of the boundary are not counted. The seed is 20.

{duality}

## AIPW against a literal loop

Weighted AIPW estimates and standard errors of all arms are compared with a loop over rounds written from the
formula, for 2, 3 and 5 arms and three logs each (seeds 0, 1, 2). The largest relative differences are
(target: 1e-9):

{aipw}

## Runs and replicates

Every run r is compared with replicate r (seed 12, 70 runs each: counts, sums and sums of squares by kind of
round, context and arm; relative tolerance 1e-12), and 300 runs with separate seeds (1000 to 1299) are
compared with 1,024 replicates from one seed (77) by Kolmogorov-Smirnov tests of pulls, sums and regret. The
smallest p-value of each design, times its number of tests, is:

{twins}

## Bad logs

{fuzz}
"""

FUZZ = """\
{frames:,} random frames (seed 20240607; pandas and polars; every kind of damage, alone and in combination):
{logs:,} became logs, each equal to an independent reading of its frame; {errors:,} led to one
LogValidationError each, with {problems:.1f} problems on average; no frame caused any other exception or
warning.
The {count} codes of problems that occurred were: {codes}."""


def brute_force(first: int | None) -> tuple[float, int]:
    worst, cases = 0.0, 0
    for epsilon in brute.EPSILONS[:first]:
        for n in brute.ROUNDS:
            with mp.workdps(50):
                searched = [
                    float(brute._searched_pvalue(mp.log(mp.mpf(p)), epsilon, n)) for p in brute.PVALUES
                ]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ours = correct_pvalues(brute.PVALUES, epsilon=epsilon, n=n)
            worst = max(worst, float(np.max(np.abs(ours / np.array(searched) - 1.0))))
            cases += len(searched)
    return worst, cases


def duality_table(first: int | None) -> str:
    lines = ["| tests | cases | too close to call | disagreements |", "| --- | --- | --- | --- |"]
    pairs = [(0.0, 10), (0.01, 20_000), (0.05, 500), (0.1, 100), (0.1, 1000), (0.3, 2000)]
    for maker in (duality.normal, duality.student, duality.binomial, duality.binomial_difference):
        cases = wrong = close = 0
        for alpha in (0.05, 0.3, 1e-4):
            rng = np.random.default_rng(20)
            for epsilon, n in pairs[:first]:
                reference = maker(rng)
                correction = Correction(epsilon, n, PrivacyGuarantee(epsilon=epsilon))
                level = correction.level(math.log(alpha))
                limits = reference.interval(level)
                for null in duality.nulls(rng, limits):
                    plain = reference.log_pvalues(null)
                    against, near = duality.disagreements(limits, null, level, plain)
                    corrected = correction.apply(plain) <= math.log(alpha)
                    apart = np.abs(plain - level) > duality.MARGIN * max(1.0, abs(level))
                    wrong += against + int(np.sum((corrected != (plain <= level)) & apart))
                    cases, close = cases + plain.size, close + near
        lines.append(f"| {reference.name} | {cases:,} | {close:,} | {wrong} |")
    return "\n".join(lines)


def aipw_table() -> str:
    lines = ["| weights | estimates | standard errors |", "| --- | --- | --- |"]
    for kind in ("uniform", "sqrt", "two-point"):
        worst = np.zeros(2)
        for n_arms in (2, 3, 5):
            for seed in range(3):
                log = literal.adaptive_log(n_arms, seed, binary=seed == 2)
                result = ArmMeans(log).fit("aipw", kind)
                for arm in range(n_arms):
                    estimate, parts = literal.literal_parts(log, arm, "aipw", kind)
                    size = math.sqrt(math.fsum(x * x for x in parts))
                    ours = np.array([result.estimate[arm], result.std_error[arm]])
                    exact = np.array([estimate, size])
                    scale = np.where(exact == 0.0, 1.0, np.abs(exact))
                    worst = np.maximum(worst, np.abs(ours - exact) / scale)
        lines.append(f"| {kind} | {worst[0]:.1e} | {worst[1]:.1e} |")
    return "\n".join(lines)


def twins_table(first: int | None) -> str:
    lines = [
        "| design | environment | runs equal replicates | smallest p, times tests |",
        "| --- | --- | --- | --- |",
    ]
    for design, environment in twins.EVERY[:first]:
        twins.test_run_r_has_the_numbers_of_replicate_r(design, environment)
        logs = [design.run(environment, horizon=twins.HORIZON, rng=1_000 + i) for i in range(300)]
        cells = np.array([twins.tally(log, design, environment) for log in logs]).sum(axis=1)
        regret = environment.regret(cells[..., 0], cells[..., 1])
        runs = np.column_stack([cells[..., 0].reshape(300, -1), cells[..., 1].reshape(300, -1), regret])
        sims = design.replicate(environment, horizon=twins.HORIZON, replications=1_024, rng=77)
        replicates = twins.features_of_runs(sims)[:, : runs.shape[1]]
        p_values = [
            stats.ks_2samp(runs[:, column], replicates[:, column]).pvalue
            for column in range(runs.shape[1])
            if np.ptp(replicates[:, column]) > 0
        ]
        smallest = min(1.0, min(p_values) * len(p_values))
        label = f"{type(design).__name__}({getattr(design, 'calibration', '')})".replace("()", "")
        lines.append(f"| {label} | {type(environment).__name__} | yes | {smallest:.3f} |")
    return "\n".join(lines)


def fuzz_text(frames: int) -> str:
    rng = np.random.default_rng(20240607)
    outcomes: Counter[str] = Counter()
    problems = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(frames):
            frame, options = fuzz.random_case(rng)
            try:
                log = AdaptiveLog(frame, **nested_options(options))
            except LogValidationError as error:
                fuzz.check_error(error, len(frame))
                outcomes["error"] += 1
                problems += len(error.problems)
                outcomes.update({problem.code for problem in error.problems})
            else:
                fuzz.check_log(log, frame, options)
                outcomes["log"] += 1
    codes = sorted(set(outcomes) - {"error", "log"})
    return FUZZ.format(
        frames=frames,
        logs=outcomes["log"],
        errors=outcomes["error"],
        problems=problems / outcomes["error"],
        count=len(codes),
        codes=", ".join(codes),
    )


def main() -> None:
    options = evidence.parser(__doc__).parse_args()
    worst, cases = brute_force(2 if options.quick else None)
    page = PAGE.format(
        today=evidence.stamp(),
        flags=" --quick" * options.quick,
        epsilons=brute.EPSILONS,
        rounds=brute.ROUNDS,
        pvalues=brute.PVALUES,
        brute=worst,
        brute_cases=cases,
        duality=duality_table(2 if options.quick else None),
        aipw=aipw_table(),
        twins=twins_table(1 if options.quick else None),
        fuzz=fuzz_text(200 if options.quick else fuzz.FRAMES),
    )
    evidence.publish(page, __file__, options)
    if worst > 1e-9:
        raise SystemExit(
            f"OFF: corrected p-values differ from the search by a relative {worst:.1g}, over 1e-9"
        )


if __name__ == "__main__":
    main()
