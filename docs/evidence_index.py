"""Make the table of docs/evidence/index.md from the pages: claim, headline figure, date and commit.

    python docs/evidence_index.py

A headline is read from its page, so it changes with it; a page without an entry has its title. A test demands
that nothing is left to make.
"""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent / "evidence"
BEGIN, END = "<!-- made by docs/evidence_index.py -->", "<!-- end -->"
_STAMP = re.compile(r"Date:\s+(\d{4}-\d\d-\d\d),\s+commit\s+(\w+)")
_HEAD = "| claim | measured | target | date | commit |\n| --- | --- | --- | --- | --- |\n"

GROUPS: dict[str, dict[str, tuple[str, str, str, str]]] = {
    "Intervals and tests": {
        "defaults": (
            ("Default 95% intervals have sufficient coverage for 216 kinds of logs, or carry a caution"),
            (
                r"(\d+) held, (\d+) held if not cautioned, (\d+) all cautioned, (\d+) refused, "
                r".*?\*\*(\d+) short.*?Of the defaults that held, (\d+) had measured coverage below "
                r"([\d.]+\d), "
                r"within three standard errors; the lowest is ([\d.]+\d)"
            ),
            (
                "cases, each a kind of log and a question: {3} are refused; {0} have coverage of {6}, minus "
                "simulation error (in {5} of these, measured coverage is lower, at the lowest {7}); in {1}, "
                "only tables without a caution have it; in {2}, every table has a caution; **{4} have too "
                "low coverage without one**"
            ),
            "no coverage below 93% without a caution, minus simulation error (three standard errors)",
        ),
        "comparisons": (
            "Comparisons of arms remain valid if the level of all arms changes",
            (
                r"\*Benign\*, ([\d,]+): ([\d,]+) held.*?\*Coverable\*, ([\d,]+): ([\d,]+) held, ([\d,]+) "
                r"refused, .*?\*Contradicted\*, ([\d,]+): ([\d,]+) refused or cautioned, ([\d,]+) held "
                r"without a caution, ([\d,]+) \*\*short"
            ),
            (
                "{0} tables under harmless changes: {1} valid and without a caution. {2} under changes that "
                "a method can handle: {3} valid, {4} refused. {5} under other changes: {6} cautioned or "
                "refused, "
                "{7} valid nevertheless, **invalid with too few cautions: {8}**"
            ),
            "valid: coverage of at least 93%, minus simulation error",
        ),
        "inference": (
            "Methods labelled exact or anytime never have coverage below the stated level",
            r"Lowest coverage of exact and anytime methods: ([\d.]+) \((\d+) figures\)",
            "lowest of {1} coverages: {0}",
            "at least .95",
        ),
        "hadad": (
            "The coverage that Hadad et al. (2021) published for weighted means is reproduced",
            (
                r"all (\d+) figures in the paper's plot of coverage are reproduced within ([\d.]+) "
                r"points.*?(\d+ of \d+) figures are"
            ),
            ("best minus middle arm: all {0} published figures within {1} points; best minus worst arm: {2}"),
            "the paper's plot",
        ),
        "drift": (
            "Intervals for differences remain valid if the means of both arms rise together",
            r"(\d+ of \d+) rows satisfy this",
            "{0} simulations",
            "at most 6% of intervals miss (7% with a decaying floor)",
        ),
        "units": (
            "Standard errors remain valid if participants return",
            r"(\d+ of \d+) rows meet it",
            "{0} simulations",
            "coverage of at least 94% from 40 participants on, 92% with 20",
        ),
        "contrasts": (
            "Intervals for all arms compared with a control hold simultaneously",
            r"(\d+ of \d+) rows have simultaneous coverage of at least (\.\d+)",
            "{0} simulations",
            "simultaneous coverage of at least {1}",
        ),
        "winners": (
            "The interval for the best arm accounts for its selection",
            r"The lowest coverage is ([\d.]+\d)",
            "lowest coverage {0}",
            "nominal .95",
        ),
        "predictions": (
            "Scores of plans keep their level under drift, and need fewer rewards than with arm means",
            (
                r"in (\d+ of \d+) rows with the\s+plan's predictions.*?"
                r"clock is at most ([\d.]+\d), and that of arm means is at most ([\d.]+\d)"
            ),
            "errors at most .055 in {0} rows; largest clock {1}, with arm means {2}",
            "nominal .05; 1",
        ),
        "looks": (
            "Tests with planned looks keep their level, and intervals after the stop cover, whatever adapts",
            (
                r"Error rates are at most \.055, plus three Monte Carlo errors, in (\d+ of \d+) cells;\s+"
                r"the\s+largest\s+is ([\d.]+\d)\..*?less three\s+errors, in (\d+) of \d+"
            ),
            "errors at most .055 in {0} cells, at most {1}; coverage in {2}",
            "nominal .05 and .95, plus simulation error",
        ),
        "looks_dates": (
            "Plans with looks by date keep their level; intervals with outcomes after the stop cover",
            (
                r"plus three Monte Carlo errors, in (\d+ of \d+) rows.*?"
                r"less three Monte Carlo errors, in\s+(\d+) of\s+(\d+) cells"
            ),
            "errors at most .05 in {0} rows; coverage in {1} of {2} cells",
            "nominal .05 and .95, plus simulation error",
        ),
        "looks_information": (
            "Plans with looks by information keep their level, and their power at any variance",
            r"with three Monte Carlo\s+errors, in (\d+ of \d+) rows",
            "errors at most .055, and coverage, in {0} rows",
            "nominal .05 and .95, plus simulation error",
        ),
        "looks_ranks": (
            "Plans by re-randomisation keep their level where looks have few events",
            r"plus three Monte Carlo errors, in (\d+ of \d+) cells;\s+the\s+largest is ([\d.]+\d)",
            "errors at most .05 in {0} cells, at most {1}",
            "nominal .05, plus simulation error",
        ),
        "looks_several": (
            "Plans with several treatments keep their level if some leave, all drift, or outcomes are lost",
            (
                r"plus three Monte Carlo errors, in (\d+ of \d+) cells.*?"
                r"10,000 trials take \*\*(\d+) seconds"
            ),
            "family-wise errors at most .05 in {0} cells; 10,000 late trials take {1} seconds",
            "nominal .05, plus simulation error; 120 seconds",
        ),
        "regression_drift": (
            "Intervals for regression coefficients of arms remain valid if all arms' means rise together",
            (
                r"Thompson, floor \.05, 2 arms \| linear \| C\(action\) \* x \| arm \| \S+ \S+ \| "
                r"([\d.]+) \S+ \| \S+ \S+ \| ([\d.]+)"
            ),
            "coverage {1} by default, and {0} with the usual square-root weights",
            "nominal .95",
        ),
        "small_samples": (
            "Robust regression tests maintain their level with few rounds and few participants",
            (
                r"In (\d+ of \d+) cells, the default rejects at a rate above \.06 by more than 3 errors "
                r"\(([\d.]+\d)\)"
            ),
            "{0} cells reject more than {1} of true null hypotheses",
            "at most .06, plus simulation error",
        ),
        "ratios": (
            "Intervals for ratios, such as revenue per order, and adjusted differences have nominal coverage",
            r"(\d+ of \d+) shares are at\s+least ([\d.]+\d)",
            "{0} coverages",
            "at least {1}, minus simulation error",
        ),
        "answers": (
            "Confidence sequences are no wider than those of the confseq package",
            r"largest ratio is\s+([\d.]+\d)",
            "at most {0} times as wide",
            "1",
        ),
        "mixtures": (
            "Confidence sequences exclude the truth at any time no more often than stated",
            r"(\d+ of \d+) shares are at most ([\d.]+\d)",
            "{0} shares at most {1}",
            "at most {1}",
        ),
        "cate_coverage": (
            "Intervals for effects within groups have nominal coverage, private or not",
            r"Over (\d+) cells, the lowest coverage is ([\d.]+\d)",
            "lowest of {0} coverages: {1}",
            "nominal .95",
        ),
        "rare_policies": (
            "Intervals of policy values have coverage with outcomes of 2%",
            (
                r"epsilon greedy, T = 300, value \| ([\d.]+) \| ([\d.]+) \|.*?"
                r"epsilon greedy, T = 1000, value \| ([\d.]+) \| ([\d.]+) \|"
            ),
            "coverage {0} and {2} after 300 and 1,000 rounds of epsilon-greedy; normal intervals {1} and {3}",
            "at least .95",
        ),
        "rare_arms": (
            "Intervals of means and differences of arms have coverage with outcomes of .5% to 2%",
            r"The lowest coverage is ([\d.]+\d)",
            "lowest coverage {0}",
            "nominal .95",
        ),
        "expected_lengths": (
            "Lengths that `recommend` expects are those of the fits, or are not stated",
            r"Thompson, floor t\^-.7 / 3 \| ([\d.]+) \(([\d.]+) to ([\d.]+)\)",
            "median ratio {0} ({1} to {2}) with a starved arm",
            "1",
        ),
        "moving_effects": (
            "Intervals of an effect that changes sign contain the mean that the table names",
            r"\| 122 \| .*? \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|",
            "ten arms in batches: {0} with combined weights, {2} with uniform weights, {3} times as long",
            "nominal .95",
        ),
        "heavy_tails": (
            "Intervals of heavy-tailed rewards carry a caution where they undercover",
            r"the lowest coverage is ([\d.]+\d), in (\d+) rows and models",
            "with a caution in at most half of the logs: lowest coverage {0}, {1} cells",
            "at least .93, minus simulation error",
        ),
        "exact": (
            "Exact tests of two arms agree with published values",
            r"is ([\d.]+) as published, and ([\d.]+\d) here",
            "expected imbalance {1}",
            "published: {0}",
        ),
        "max_information": (
            "P-values corrected using a privacy guarantee maintain their level",
            r"maintain their level in all (\d+) settings",
            "{0} of {0} settings",
            "all",
        ),
        "large_logs": (
            "Sums give the same numbers as rows",
            r"The overall maximum is ([\d.e-]+\d)",
            "largest relative difference {0}",
            "rounding errors",
        ),
        "randomization": (
            "Randomisation tests maintain their level",
            r"studentised \| 300 \| ([\d.]+ ± [\d.]+)",
            "{0} rejected",
            "nominal .05",
        ),
        "exactness": (
            "Corrected p-values are numerically accurate",
            r"([\d.e-]+) over (\d+) cases",
            "largest relative error {0} in {1} cases, compared with a search in 50-digit arithmetic",
            "1e-9",
        ),
        "fixes": (
            "Each corrected mistake has a test that fails without the correction",
            r"(\d+ of \d+) tests pass for the package and fail for the copy",
            "{0} tests",
            "all",
        ),
    },
    "Plans and bias": {
        "calibration": (
            "Simulated plans have the stated level and power",
            r"In (\d+) checks, .*?No check fails",
            "{0} checks, none fails",
            "coverage at least .95 and type I errors at most .05, up to simulation error",
        ),
        "farmer_allocation": (
            "A published trial with farmers was allocated as its authors state",
            r"\| exploration sampling \| [^|]*\| [^|]*\| ([\d.]+) \|",
            "p = {0}",
            "above .05",
        ),
        "farmer_trial": (
            "The ranking published for this trial is reproduced",
            r"(\d+ of \d+) agree with the published ranking",
            "{0} rankings agree",
            "all",
        ),
    },
    "Privacy": {
        "privacy_audits": (
            "Audits refute no correct design, and detect planted faults",
            (
                r"In (\d+) audits of correct designs, no bound exceeds its guarantee\. In (\d+) audits of "
                r"planted faults, all faults are detected"
            ),
            "{0} audits of correct designs, none refuted; {1} of {1} faults detected",
            "none; all",
        ),
        "coupled": (
            (
                "Two live trials that differ in one participant agree in everything that is published, at "
                "the guaranteed cost"
            ),
            r"(\d+ of \d+) pairs agree at no more than the guaranteed cost; .*?largest cost is ([\d.]+) of",
            "{0} pairs; largest cost {1} of the guarantee",
            "all; at most 1",
        ),
        "planted_faults": (
            "Audits detect faults planted by someone who did not know the code",
            (
                r"(\d+ of \d+) faults are detected, including (\d+) of the (\d+) that concern live "
                r"sessions"
            ),
            "{0} detected, including {1} of {2} in live trials",
            "all",
        ),
        "planted_faults_sealed": (
            "Audits detect faults that none of their authors had seen",
            (
                r"(\d+ of \d+) faults are detected, including (\d+) of the (\d+) that concern live "
                r"sessions"
            ),
            "{0} detected, including {1} of {2} in live trials",
            "all",
        ),
        "live_privacy": (
            ("Designs in live use stay within their guarantee, and noise of half the scale is detected"),
            r"(\d+ of \d+) rows have the expected result",
            "{0} audits have the expected result",
            "all",
        ),
        "live_noise": (
            "Audits of noise detect faults, and refute no correct design",
            (
                r"Of (\d+) audits of correct designs, and one more audit of each design with all "
                r"defaults, (\d+) refuted a design\. Of the planted faults, (\d+ of \d+) were found"
            ),
            "{1} of {0} correct designs refuted; {2} faults detected",
            "none; all",
        ),
        "privacy_mechanisms": (
            "Bounds from audits come close to the guarantee of a mechanism and never exceed it",
            r"\| Laplace \| [^|]*\| ([\d.]+) \(",
            "Laplace noise at epsilon 1: bound {0}",
            "at most 1",
        ),
        "two_arm_release": (
            "Intervals from private releases have nominal coverage",
            r"\| 1 \| 0\.5, 0\.5 \| 20,000 \| ([\d.]+ ± [\d.]+)",
            "{0}",
            "nominal .95",
        ),
        "dp_conse": (
            "The cost of privacy in DP-ConSE is small",
            r"The ratio is \*\*([\d.]+)\*\*",
            "{0} times the regret without privacy",
            "1",
        ),
        "gaussian": (
            "The classical formula for normal noise is wasteful, or not private",
            r"gives up to ([\d.]+) times the necessary noise",
            "up to {0} times the necessary noise",
            "1",
        ),
        "stopping": (
            "Private stopping rules are as accurate as guaranteed",
            r"the highest frequency was ([\d.]+) beta",
            "wrong at most {0} times as often as allowed",
            "at most 1",
        ),
    },
    "Designs": {
        "best_arm": (
            "The schedule of DP-BAI follows the paper's equations",
            r"([\d,]+) pairs, .*? agree with the equations in ([\d,]+)\.",
            "{1} of {0} schedules",
            "all",
        ),
        "linear": (
            "Confidence bands of linear bandits have nominal coverage",
            r"\| LinUCB \| ([\d.]+) \|",
            "LinUCB: {0} of the runs leave their bands",
            "at most .1",
        ),
        "ldp_intervals": (
            "Intervals from a locally private trial have nominal coverage",
            r"\| 2, 20,000, 0\.1 \| [^|]*\|[^|]*\| (\.\d+ ± \.\d+)",
            "{0}",
            "nominal .95",
        ),
        "thompson": (
            "Thompson sampling is fast",
            r"\| beta \| 2 \| ([\d,]+) \|",
            "{0},000 rounds a second, two arms",
            "no target",
        ),
    },
    "Files, speed and the house": {
        "trial_restarts": (
            "A live trial with a million decisions reopens within seconds",
            r"from a snapshot: \*\*([\d.]+) s\*\*; at most (\d+) s are allowed",
            "at most {0} s",
            "{1} s",
        ),
        "trial_processes": (
            "A trial that many processes use at once loses nothing, and each of them recomputes all rows",
            (
                r"requests stored twice:\s\*\*(\d+)\*\*.*?SQLite \| 32 \| 0 \| 0 \| ([\d.]+) \| ([\d.]+)"
                r".*?PostgreSQL \| 32 \| 0 \| 0 \| ([\d.]+) \| ([\d.]+)"
            ),
            (
                "{0} lost, changed or twice; with 32 processes, a request costs {1} ms of processor on "
                "SQLite ({2} times that of one process), {3} on PostgreSQL ({4} times)"
            ),
            "none lost",
        ),
        "added_arms": (
            "Contrasts with an arm that joined a running trial are right, over all logs",
            r"\| AIPW, equal weights \| (-?[\d.]+ \([\d.]+\)) \|.*?propensities is \*\*([\d.]+)\*\*",
            "bias of AIPW with equal weights {0}; arms against their propensities: standard score {1}",
            "0; below 4",
        ),
        "trial_keys": (
            "A stolen trial with a key outside its file reveals nothing to an attack that knows the code",
            (r"names, read \| (\d+ of \d+) \| (\d+ of \d+).*?lengths of rows \| (\d+) \| (\d+)"),
            ("names found: {1}, without a key {0}; lengths of rows: {3}, without a key {2}"),
            "nothing found",
        ),
        "service": (
            "A trial over HTTP answers hundreds of requests a second",
            r"p99 below 100 ms is \*\*(\d+)\*\*; the target is (\d+)",
            "{0} pairs of an assignment and its outcome a second, from one process",
            "{1} on an idle machine",
        ),
        "service_load": (
            "A served trial answers 200 pairs of an assignment and its outcome a second within its limits",
            r"Loads for which the criterion is met: \*\*(\d+) of (\d+)\*\*.*?"
            r"Errors in ([\d,]+) requests of \d+ clients: \*\*(\d+)\*\*",
            "{0} of {1} loads; errors in {2} requests: {3}",
            "all; none in 100,000",
        ),
        "service_kills": (
            "A served trial loses nothing when its process or its database is killed under 50 clients",
            r"\| SQLite \| (\d+) \|.*?\| (\d+) \| (\d+) \| [\d,]+ \| \| PostgreSQL \| (\d+) \|"
            r".*?\| (\d+) \| (\d+) \| [\d,]+ \|",
            "{0} and {3} kills: {1} and {4} answers lost, {2} and {5} participants assigned twice",
            "200 each, none",
        ),
        "service_timing": (
            "The time of an answer does not tell the arm",
            r"\| as it is \| ([\d,]+) \| [\d.]+ \| [\d.]+ \| ([\d.]+) \| \| planted \| [\d,]+ \| [\d.]+ \| "
            r"[\d.]+ \| ([\d.]+) \|",
            "p = {1} in {0} requests; p = {2} with a planted delay of .5 ms",
            "above .001; at most .001",
        ),
        "service_hostile": (
            "Whatever is sent to a served trial has one answer",
            r"\*\*([\d,]+)\*\* requests with \*\*(\d+)\*\* server errors; failed checks: (\w+)",
            "{0} generated requests: {1} server errors, failed checks: {2}",
            "5,000; none",
        ),
        "trial_server": (
            "A live trial in PostgreSQL loses nothing when clients and the server are killed",
            (
                r"answers that were lost \| (\d+) \|.*?stored twice \| (\d+) \|.*?two values \| (\d+) \|.*?"
                r"(\d+) of them were\s+killed.*?started again\s+(\d+)"
            ),
            (
                "after {3} kills of clients and {4} of the server: {0} answers lost, {1} requests stored "
                "twice, {2} noise nodes with two values"
            ),
            "none",
        ),
        "bad_input": (
            "Damaged files are never misread silently",
            r"\| all \| ([\d,]+) (?:\| [\d,]+ ){5}\| (\d+) \| (\d+) \|",
            "{0} damaged inputs: {1} crashes, {2} silently misread",
            "none",
        ),
        "bad_tables": (
            "Odd tables are read correctly, or refused with the cause",
            (
                r"\| all \| [\d,]+ \| ([\d,]+) \| ([\d,]+) (?:\| [\d,]+ ){2}\| (\d+) \| (\d+) \| (\d+) \| "
                r"(\d+) \|"
            ),
            "{0} files in {1} uses: {4} crashes, {5} misread, {2} refused without the cause",
            "none",
        ),
        "hostile_names": (
            "Hostile names of columns and arms do not break any table",
            r"names for which some result could not be made \| (\d+) \| (\d+) \| (\d+)",
            "{2} of {0} names (before: {1})",
            "none",
        ),
        "own_files": (
            "A flipped bit in a file is detected, or changes nothing",
            r"\| Parquet \| (\d+) \| (\d+) \| (\d+) \|",
            "Parquet: {0} refused, {1} read as the same log, {2} read as another log",
            "no other log",
        ),
        "platforms": (
            "Files of experiment platforms are read correctly",
            r"for (\d+) of (\d+) logs\. (\d+) files are refused",
            "{0} of {1} logs agree with independent totals; {2} files are refused",
            "all",
        ),
        "study": (
            "A killed study resumes where it stopped",
            r"(\d+) kills affected",
            "{0} kills, the same files",
            "the same",
        ),
        "invariance": (
            "Results do not depend on units of measurement, order or names",
            r"(\d+ of \d+) lines exceed",
            "{0} figures change by more than 1e-9",
            "none",
        ),
        "dependencies": (
            "The library works with the oldest and the newest dependencies",
            r"(\d+ of \d+) sets of versions pass",
            "{0} sets of versions pass the quick tests",
            "all",
        ),
        "default_speed": (
            "The first table appears quickly",
            r"\| first table, the library alone \| [^|]*\| [^|]*\| ([\d.]+) \|",
            "{0} s",
            "1 s",
        ),
        "shell": (
            "The command line responds quickly",
            r"\| `analyze` \| `pandas` and `scipy.stats` \| [\d.]+ \| [\d.]+ \| ([\d.]+) \|",
            "a table of 10,000 rows: {0} times the time to import pandas and scipy.stats",
            "1.2",
        ),
        "sums_by_unit": (
            "Standard errors by person from sums equal those from rows",
            r"In (\d+) of\s+(\d+) logs, all numbers agree to a relative ([\d.e-]+\d)",
            "{0} of {1} logs, to {2}",
            "all",
        ),
        "reading": (
            "An experiment gives the same answer in every form of input",
            (
                r"Of ([\d,]+) uses, ([\d,]+) give the same means, ([\d,]+) the expected "
                r"refusal,\s+([\d,]+) a different result"
            ),
            "of {0} uses, {1} give the same means, {2} are refused as expected, and {3} differ",
            "none differ",
        ),
        "engines": (
            "A table gives the same answer in every engine",
            r"(\d+) tables of .*?Of ([\d,]+) answers, ([\d,]+) are the same .*? and (\d+)\s+are errors",
            "{2} of {1} answers to {0} tables are the same; {3} raw errors",
            "all; none",
        ),
        "sums_further": (
            "Results with ratios, covariates and groups from sums equal those from rows",
            r"In (\d+) of (\d+) logs, all numbers agree to a relative\s+([\d.e-]+\d)",
            "{0} of {1} logs, to {2}",
            "all",
        ),
        "recommend_speed": (
            "The rows added to the table of methods do not slow it down",
            r"the largest ratio is ([\d.]+\d)",
            "at most {0} times as slow as before",
            "1.20",
        ),
        "limits": (
            "Fifty arms, or 2,000 groups, take a few times as long as two",
            (
                r"\| Contrasts \| now (?:\| [\d,]+ ){3}\| ([\d.]+) \|.*?"
                r"\| diagnose \| now (?:\| [\d,]+ ){3}\| "
                r"([\d.]+) \|.*?\| CATE \| now (?:\| [\d,]+ ){3}\| ([\d.]+) \|"
            ),
            (
                "time with 50 arms relative to 2: contrasts {0}, diagnosis {1}; effects in 2,000 "
                "groups relative to 2: {2}"
            ),
            "3",
        ),
        "growth": (
            "Time and memory grow at most in proportion to rows, arms, groups, batches and units",
            r"(\d+ of \d+) rows have exponents of time and memory of at most ([\d.]+\d) over both",
            "{0} rows have exponents of at most {1}",
            "1.15",
        ),
        "large_logs_speed": (
            "Summing files takes little longer than eight sums in the database itself",
            (
                r"\| the chosen arm's propensity, constant in a batch \| ([\d.]+) \|.*?"
                r"\| both arms' propensities, constant in a batch \| ([\d.]+) \|"
            ),
            "{0} times as long with the chosen arm's propensity, {1} with those of both arms",
            "1.25",
        ),
        "setup": (
            "The set-up commands work on an empty machine",
            r"ok, ([\d,]+) passed, (\d+) skipped",
            "{0} tests passed",
            "all",
        ),
        "release": (
            "The wheel does its main job in an empty environment, under each version of Python",
            r"(\d+) passed",
            "{0} quick tests passed under each version tested",
            "all",
        ),
        "first_hour": (
            "A CSV file becomes a table, pictures and a report in three commands",
            (
                r"(three commands), including the one that sets up the environment.*?three figures in "
                r"one file of ([\d,]+) bytes"
            ),
            "{0}; one file of {1} bytes with three pictures",
            "three",
        ),
        "tables": (
            "Tables are narrow and short, and explain() omits nothing",
            r"\| as printed \| (\d+) \| (\d+) \| (\d+) \|.*?"
            r"Of (\d+) claims about these fits, `explain\(\)` states (\d+)\.",
            "{0} tables: at most {1} characters wide, {2} lines below; `explain()` states {4} of {3} claims",
            "80; 6; all",
        ),
        "reports": (
            "A report shows its answer first, and prints on one page",
            r"Of (\d+) reports, (\d+) have .*?, (\d+) print.*?, and (\d+) have .*?axe-core finds\s+(\d+)",
            "answer on the first screen: {1}; brief on one page: {2}; same numbers: {3}; violations: {4}",
            "{0}, {0}, {0}, 0",
        ),
        "browser": (
            "Reports and pages fit phones and screens",
            r"Texts wider than the page: (\d+ of \d+)\. Words broken in a table: (\d+ of \d+)",
            "too wide: {0} views; broken words: {1}",
            "none",
        ),
        "english": (
            "Whether a native statistician would write the sentences in pages, docstrings and messages",
            (
                r"\| pages \| (\d+) \| (\d+) \| (\d+) \| \d+ \| "
                r"\| docstrings \| (\d+) \| (\d+) \| (\d+) \| \d+ \| "
                r"\| messages \| (\d+) \| (\d+) \| (\d+) \|"
            ),
            (
                "yes, by two readers (language models): pages {1} and {2} of {0}; docstrings {4} and {5} of "
                "{3}; messages {7} and {8} of {6}"
            ),
            "27 of 30 each",
        ),
        "case_studies": (
            "Figures printed in six papers, recomputed",
            r"there are (\d+), of which (\d+) agree and (\d+) differ",
            "of {0} figures, {1} agree and {2} differ, [with reasons](../gallery.md)",
            "no target",
        ),
    },
}
"""Of each page what it claims, where its figure stands, how to say it, and what the figure should be."""


def row(name: str, text: str, entry: tuple[str, str, str, str] | None) -> str:
    """Row of a page: what it claims, the measured figure and its target, date and commit."""
    found = _STAMP.search(text)
    date, commit = found.groups() if found else ("", "")
    claim, measured, wanted = text.splitlines()[0].lstrip("# "), "", ""
    if entry is not None:
        claim, pattern, *forms = entry
        match = re.search(pattern, " ".join(text.split()))
        if match is None:
            raise SystemExit(
                f"docs/evidence/{name}.md no longer has the headline {pattern!r}: change the entry"
            )
        measured, wanted = (form.format(*match.groups()) for form in forms)
    return f"| [{claim}]({name}.md) | {measured} | {wanted} | {date} | {commit} |\n"


def table(pages: dict[str, str]) -> str:
    """The tables of all pages, by group; those without an entry come last."""
    known = {name for group in GROUPS.values() for name in group}
    parts = []
    for title, group in GROUPS.items():
        rows = [row(name, pages[name], entry) for name, entry in group.items() if name in pages]
        parts.append(f"## {title}\n\n{_HEAD}{''.join(rows)}")
    rest = "".join(row(name, text, None) for name, text in pages.items() if name not in known)
    return "\n".join([*parts, f"## Details, and pages without one figure\n\n{_HEAD}{rest}"])


def made(index: str, pages: dict[str, str]) -> str:
    """The index with its tables made again."""
    before, _, rest = index.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table(pages)}\n{END}{rest.partition(END)[2]}"


def pages() -> dict[str, str]:
    """Texts of the evidence's pages by name, without the index."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in sorted(HERE.glob("*.md"))}
    return {name: text for name, text in found.items() if name != "index"}


if __name__ == "__main__":
    place = HERE / "index.md"
    place.write_text(made(place.read_text(encoding="utf-8"), pages()), encoding="utf-8")
