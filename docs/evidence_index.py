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
_HEAD = "| claim | measured | wanted | date | commit |\n| --- | --- | --- | --- | --- |\n"

GROUPS: dict[str, dict[str, tuple[str, str, str, str]]] = {
    "Intervals and tests": {
        "defaults": (
            (
                "95% intervals that a user gets without asking for a method cover on 216 kinds of logs, "
                "or say that they may not"
            ),
            (
                r"(\d+) held, (\d+) held if not cautioned, (\d+) all cautioned, (\d+) refused, "
                r".*?\*\*(\d+) short.*?Of the defaults that held, (\d+) measured less than ([\d.]+\d), "
                r"within three standard errors; the lowest is ([\d.]+\d)"
            ),
            (
                "cases, each a kind of log and a question: {3} are refused; {0} cover in {6}, less "
                "simulation error ({5} of these measured less, the lowest {7}); in {1} only tables without a "
                "caution do; in {2} every table has a caution; **{4} fall short without one**"
            ),
            "none short of 93% without a caution, less simulation error (three standard errors)",
        ),
        "comparisons": (
            "Comparisons of arms stay right when the level of all arms moves",
            (
                r"\*Benign\*, ([\d,]+): ([\d,]+) held.*?\*Coverable\*, ([\d,]+): ([\d,]+) held, ([\d,]+) "
                r"refused, .*?\*Contradicted\*, ([\d,]+): ([\d,]+) refused or cautioned, ([\d,]+) held "
                r"without a caution, ([\d,]+) \*\*short"
            ),
            (
                "{0} tables under harmless moves: {1} right and without caution. {2} under moves that a "
                "method can handle: {3} right, {4} refused. {5} under others: {6} cautioned or refused, "
                "{7} right nevertheless, **short with too few cautions: {8}**"
            ),
            "right: at least 93% covered, less simulation error",
        ),
        "inference": (
            "Methods labelled exact or anytime never cover less than they say",
            r"Lowest coverage of exact and anytime methods: ([\d.]+) \((\d+) figures\)",
            "lowest of {1} coverages: {0}",
            "at least .95",
        ),
        "hadad": (
            "The coverage that Hadad et al. (2021) published for weighted means comes back",
            (
                r"all (\d+) figures in the paper's plot of coverage are reproduced within ([\d.]+) "
                r"points.*?(\d+ of \d+) are"
            ),
            ("best minus middle arm: all {0} published figures within {1} points; best minus worst arm: {2}"),
            "the paper's plot",
        ),
        "drift": (
            "Differences of arms stay right while both arms' means rise together",
            r"(\d+ of \d+) rows keep that",
            "{0} simulations",
            "at most 6% of intervals miss (7% with a falling floor)",
        ),
        "units": (
            "Errors stay right when people come back",
            r"(\d+ of \d+) keep that",
            "{0} simulations",
            "at least 94% covered from 40 people on, 92% with 20",
        ),
        "contrasts": (
            "Intervals for all arms against a control hold at the same time",
            r"(\d+ of \d+) rows have simultaneous coverage of at least (\.\d+)",
            "{0} simulations",
            "at least {1} at once",
        ),
        "winners": (
            "The interval for the best arm allows for its having been picked",
            r"The lowest coverage is ([\d.]+\d)",
            "lowest coverage {0}",
            "nominal .95",
        ),
        "predictions": (
            "Scores of plans predict rewards under drift without losing level or power",
            r"in (\d+) of (\d+) rows with the\s+plan's predictions, and in (\d+)",
            "errors at most .055 in {0} of {1} rows, with arm means in {2}",
            "all rows",
        ),
        "looks": (
            "Tests with planned looks keep their level, and intervals after the stop cover, whatever adapts",
            r"Errors are at most \.055, plus three Monte Carlo errors, in (\d+ of \d+) cells",
            "errors at most .055 in {0} cells",
            "nominal .05, plus simulation error",
        ),
        "regression_drift": (
            "Regression coefficients of arms stay right while all arms' means rise together",
            (
                r"Thompson, floor \.05, 2 arms \| linear \| C\(action\) \* x \| arm \| \S+ \S+ \| "
                r"([\d.]+) \S+ \| \S+ \S+ \| ([\d.]+)"
            ),
            "coverage {1} by default; by the usual square-root weights {0}",
            "nominal .95",
        ),
        "small_samples": (
            "Robust regression tests keep their level with few rounds and few people",
            r"Defaults above \.06 by more than 3 errors \(([\d.]+\d)\): (\d+ of \d+)",
            "{1} cells reject more than {0} of true nulls",
            "at most .06, plus simulation error",
        ),
        "ratios": (
            "Ratios such as revenue per order, and adjusted differences, cover",
            r"(\d+ of \d+) shares are at\s+least ([\d.]+\d)",
            "{0} coverages",
            "at least {1}, less simulation error",
        ),
        "answers": (
            "Confidence sequences are no wider than those of the confseq package",
            r"largest ratio is\s+([\d.]+\d)",
            "at most {0} times as wide",
            "1",
        ),
        "mixtures": (
            "Confidence sequences exclude the truth no more often than they say, at any time",
            r"(\d+ of \d+) shares are at most ([\d.]+\d)",
            "{0} shares at most {1}",
            "at most {1}",
        ),
        "cate_coverage": (
            "Effects within groups cover, private or not",
            r"(\d+) cells; lowest coverage ([\d.]+\d)",
            "lowest of {0} coverages: {1}",
            "nominal .95",
        ),
        "exact": (
            "Exact tests of two arms agree with published values",
            r"published ([\d.]+), here ([\d.]+\d)",
            "expected imbalance {1}",
            "published: {0}",
        ),
        "max_information": (
            "P-values corrected by a privacy guarantee keep their level",
            r"keep their level in all (\d+) settings",
            "{0} of {0} settings",
            "all",
        ),
        "large_logs": (
            "Sums give the same numbers as the rows",
            r"The largest of all is ([\d.e-]+\d)",
            "largest relative difference {0}",
            "rounding errors",
        ),
        "randomization": (
            "Randomisation tests keep their level",
            r"studentised \| 300 \| ([\d.]+ ± [\d.]+)",
            "{0} rejected",
            "nominal .05",
        ),
        "exactness": (
            "Corrected p-values are right to many digits",
            r"([\d.e-]+) over (\d+) cases",
            "largest relative error {0} in {1} cases, against a search in 50 digits",
            "1e-9",
        ),
        "fixes": (
            "Each mended mistake has a test that fails without the mend",
            r"(\d+ of \d+) tests pass on the package and fail on the copy",
            "{0} tests",
            "all",
        ),
    },
    "Plans and bias": {
        "calibration": (
            "Simulated plans have the level and the power that they state",
            r"(\d+) checks: .*?No check fails",
            "{0} checks, none fails",
            "coverage at least .95 and type I errors at most .05, less simulation error",
        ),
        "farmer_allocation": (
            "A published farmers' trial was allocated as its authors say",
            r"\| exploration sampling \| [^|]*\| [^|]*\| ([\d.]+) \|",
            "p = {0}",
            "above .05",
        ),
        "farmer_trial": (
            "The ranking that this trial published comes back",
            r"(\d+ of \d+) agree with the published ranking",
            "{0} rankings agree",
            "all",
        ),
    },
    "Privacy": {
        "privacy_audits": (
            "Audits refute no right design, and catch planted mistakes",
            (
                r"(\d+) audits of what is right: no bound exceeds its promise\. (\d+) audits of faults: "
                r"all are caught"
            ),
            "{0} right audits, none refuted; {1} of {1} mistakes caught",
            "none; all",
        ),
        "coupled": (
            (
                "Two live trials that differ in one person agree in all that is published, at the "
                "promised cost"
            ),
            r"(\d+ of \d+) pairs agree at no more than the guaranteed cost; .*?largest cost is ([\d.]+) of",
            "{0} pairs; largest cost {1} of the promise",
            "all; at most 1",
        ),
        "planted_faults": (
            "Audits catch mistakes planted by someone who did not know the code",
            (
                r"(\d+ of \d+) faults are caught; of the (\d+) of live sessions, trials and what\s+they "
                r"publish, (\d+)"
            ),
            "{0} caught, of these {2} of {1} in live trials",
            "all",
        ),
        "planted_faults_sealed": (
            "Audits catch mistakes that none of their authors had seen",
            (
                r"(\d+ of \d+) faults are caught; of the (\d+) of live sessions, trials and what\s+they "
                r"publish, (\d+)"
            ),
            "{0} caught, of these {2} of {1} in live trials",
            "all",
        ),
        "live_privacy": (
            ("Designs that are used live stay within their promise, and noise of half the size is found out"),
            r"(\d+ of \d+) rows are as they should be",
            "{0} audits as they should be",
            "all",
        ),
        "live_noise": (
            "Audits of noise catch mistakes, and refute nothing that is right",
            (
                r"(\d+) audits of correct designs, and one more of each with all defaults: (\d+) refuted\. "
                r"Planted faults:\s+(\d+ of \d+) found"
            ),
            "{1} of {0} right designs refuted; {2} mistakes found",
            "none; all",
        ),
        "privacy_mechanisms": (
            "Audits come close to the promise of a mechanism and never exceed it",
            r"\| Laplace \| [^|]*\| ([\d.]+) \(",
            "Laplace noise at epsilon 1: {0} shown",
            "at most 1",
        ),
        "two_arm_release": (
            "Intervals from private releases cover",
            r"\| 1 \| 0\.5, 0\.5 \| 20,000 \| ([\d.]+ ± [\d.]+)",
            "{0}",
            "nominal .95",
        ),
        "dp_conse": (
            "Privacy costs little reward in DP-ConSE",
            r"Ratio: \*\*([\d.]+)\*\*",
            "{0} times the regret without privacy",
            "1",
        ),
        "gaussian": (
            "The classical formula for normal noise is wasteful, or not private",
            r"requires at most ([\d.]+) times the necessary noise",
            "up to {0} times the noise that is needed",
            "1",
        ),
        "stopping": (
            "Private stopping rules are as accurate as promised",
            r"the highest frequency was ([\d.]+) beta",
            "wrong at most {0} times as often as allowed",
            "at most 1",
        ),
    },
    "Designs": {
        "best_arm": (
            "The schedule of DP-BAI follows the paper's equations",
            r"([\d,]+) pairs, .*? are those of the equations in ([\d,]+)\.",
            "{1} of {0} schedules",
            "all",
        ),
        "linear": (
            "Confidence bands of linear bandits hold",
            r"\| LinUCB \| ([\d.]+) \|",
            "LinUCB: share of runs that leave their band {0}",
            "at most .1",
        ),
        "ldp_intervals": (
            "Intervals from a locally private trial cover",
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
            "A live trial of a million decisions opens again in seconds",
            r"from a snapshot: \*\*([\d.]+) s\*\*, where (\d+) s are allowed",
            "at most {0} s",
            "{1} s",
        ),
        "bad_input": (
            "Damaged files are never misread in silence",
            r"\| all \| ([\d,]+) (?:\| [\d,]+ ){5}\| (\d+) \| (\d+) \|",
            "{0} damaged inputs: {1} crashes, {2} misread in silence",
            "none",
        ),
        "bad_tables": (
            "Odd tables are read right, or refused with the cause",
            (
                r"\| all \| [\d,]+ \| ([\d,]+) \| ([\d,]+) (?:\| [\d,]+ ){2}\| (\d+) \| (\d+) \| (\d+) \| "
                r"(\d+) \|"
            ),
            "{0} files in {1} uses: {4} crashes, {5} misread, {2} refused without the cause",
            "none",
        ),
        "hostile_names": (
            "Hostile names of columns and arms break no table",
            r"names for which some result could not be made \| (\d+) \| (\d+) \| (\d+)",
            "{2} of {0} names (before: {1})",
            "none",
        ),
        "own_files": (
            "A flipped bit in a file is noticed, or changes nothing",
            r"\| Parquet \| (\d+) \| (\d+) \| (\d+) \|",
            "Parquet: {0} refused, {1} read as before, {2} read as another log",
            "no other log",
        ),
        "platforms": (
            "Files of experiment platforms are read right",
            r"(\d+) of (\d+) logs agree with it\. (\d+) files are refused",
            "{0} of {1} logs agree with an independent count; {2} files are refused",
            "all",
        ),
        "study": (
            "A killed study goes on where it was",
            r"(\d+) kills hit",
            "{0} kills, the same files",
            "the same",
        ),
        "invariance": (
            "What must not matter (units of measurement, order, names) does not",
            r"(\d+ of \d+) lines are beyond",
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
            "The first table comes quickly",
            r"\| first table, the library alone \| [^|]*\| [^|]*\| ([\d.]+) \|",
            "{0} s",
            "1 s",
        ),
        "shell": (
            "The command line answers quickly",
            r"\| `analyze` \| `pandas` and `scipy.stats` \| [\d.]+ \| [\d.]+ \| ([\d.]+) \|",
            "a table of 10,000 rows: {0} times the time to import pandas and scipy.stats",
            "1.2",
        ),
        "sums_by_unit": (
            "Errors by person from sums are those of the rows",
            r"In (\d+) of\s+(\d+) logs all numbers agree to ([\d.e-]+\d)",
            "{0} of {1} logs, to {2}",
            "all",
        ),
        "reading": (
            "One experiment gives one answer, in whatever form it is brought",
            (
                r"Of ([\d,]+) uses ([\d,]+) give the same means, ([\d,]+) the refusal that is "
                r"due,\s+([\d,]+) something"
            ),
            "of {0} uses {1} give the same means, {2} are refused as they should be, {3} differ",
            "none differ",
        ),
        "engines": (
            "One table gives one answer, whatever engine holds it",
            r"(\d+) tables of .*?Of ([\d,]+) answers ([\d,]+) are the same .*? and (\d+)\s+are errors",
            "{2} of {1} answers to {0} tables are the same; {3} raw errors",
            "all; none",
        ),
        "sums_further": (
            "Ratios, covariates and groups from sums are those of the rows",
            r"In (\d+) of (\d+) logs all numbers agree to\s+([\d.e-]+\d)",
            "{0} of {1} logs, to {2}",
            "all",
        ),
        "recommend_speed": (
            "Later rows of the table of methods do not slow it down",
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
                "time with 50 arms over that with 2: contrasts {0}, diagnosis {1}; effects in 2,000 "
                "groups over those in 2: {2}"
            ),
            "3",
        ),
        "large_logs_speed": (
            "Adding up files takes little longer than eight sums in the database itself",
            (
                r"\| the chosen arm's propensity, constant in a batch \| ([\d.]+) \|.*?"
                r"\| both arms' propensities, constant in a batch \| ([\d.]+) \|"
            ),
            "{0} times with the chosen arm's propensity, {1} with those of both arms",
            "1.25",
        ),
        "setup": (
            "The set-up commands work on an empty machine",
            r"ok, ([\d,]+) passed, (\d+) skipped",
            "{0} tests passed",
            "all",
        ),
        "first_hour": (
            "A CSV file becomes a table, pictures and a report in three commands",
            (
                r"(Three commands), including setting up the environment.*?three figures in one file of "
                r"([\d,]+) bytes"
            ),
            "{0}; one file of {1} bytes with three pictures",
            "three",
        ),
        "tables": (
            "Tables are narrow and short, and explain() leaves nothing out",
            r"\| as printed \| (\d+) \| (\d+) \| (\d+) \|.*?"
            r"Of (\d+) claims about these fits, `explain\(\)` has (\d+)\.",
            "{0} tables: at most {1} characters wide, {2} lines below; `explain()` has {4} of {3} claims",
            "80; 6; all",
        ),
        "reports": (
            "A report shows its answer first, and prints on a page",
            r"Of (\d+) reports (\d+) have .*?, (\d+) print.*?, and (\d+) have .*?axe-core finds\s+(\d+)",
            "answer on the first screen: {1}; brief on one page: {2}; same numbers: {3}; violations: {4}",
            "{0}, {0}, {0}, 0",
        ),
        "browser": (
            "Reports and pages fit phones and screens",
            r"Texts wider than the page: (\d+ of \d+)\. Words broken in a table: (\d+ of \d+)",
            "too wide: {0} looks; broken words: {1}",
            "none",
        ),
        "english": (
            "Whether a native statistician would write the sentences of pages, docstrings and messages",
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
            "Figures printed in six papers, run again",
            r"(\d+), of which (\d+) agree and (\d+) differ",
            "of {0} figures {1} agree and {2} differ, [with reasons](../gallery.md)",
            "no target",
        ),
    },
}
"""Of each page what it claims, where its figure stands, how to say it, and what the figure should be."""


def row(name: str, text: str, entry: tuple[str, str, str, str] | None) -> str:
    """Row of a page: what it claims, the the measured and the wanted figure, date and commit."""
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
