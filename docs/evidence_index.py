"""Make the table of docs/evidence/index.md from the pages: claim, headline figure, date and commit.

    python docs/evidence_index.py

A headline is read from its page, so that it changes with it; a page without an entry has its title.
A test demands that nothing is left to make.
"""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent / "evidence"
BEGIN, END = "<!-- made by docs/evidence_index.py -->", "<!-- end -->"
_STAMP = re.compile(r"Date:\s+(\d{4}-\d\d-\d\d),\s+commit\s+(\w+)")
_HEAD = "| claim | headline | date | commit |\n| --- | --- | --- | --- |\n"

GROUPS: dict[str, dict[str, tuple[str, str, str]]] = {
    "Intervals and tests": {
        "defaults": (
            "how defaults cover on logs as people bring them",
            r"(\d+) held, (\d+) held if not cautioned, (\d+) all cautioned, (\d+) refused, "
            r".*?\*\*(\d+) short",
            "by case, a kind of log and a question: {0} cover at least .93 (nominal .95) less simulation "
            "error, {1} do wherever no caution is printed, {2} always print one, {3} refuse, {4} fall short",
        ),
        "comparisons": (
            "where arms are compared, levels that all arms share do no harm",
            r"\*Benign\*, ([\d,]+): ([\d,]+) held.*?"
            r"\*Coverable\*, ([\d,]+): ([\d,]+) held, ([\d,]+) refused, .*?"
            r"\*Contradicted\*, ([\d,]+): ([\d,]+) refused or cautioned, ([\d,]+) held",
            "a question to the logs of a cell: {1} of {0} benign ones hold and are not cautioned; "
            "of {2} that methods can answer {3} hold, {4} are refused; "
            "of {5} contradicted ones {6} are told, {7} hold",
        ),
        "inference": (
            "exact and anytime methods never fall below their level",
            r"Lowest coverage of exact and anytime methods: ([\d.]+) \((\d+) figures\)",
            "lowest coverage {0} of {1} figures",
        ),
        "hadad": (
            "coverage of weighted means under Thompson sampling, against the paper's plot",
            r"all (\d+) figures of the paper's plot of coverage come back within ([\d.]+) points"
            r".*?(\d+ of \d+) come",
            "best minus middle: {0} of {0} within {1} points; best minus worst: {2}",
        ),
        "drift": ("contrasts hold under drift", r"(\d+ of \d+) rows keep that", "{0} rows"),
        "units": ("errors by unit hold for repeated units", r"(\d+ of \d+) keep that", "{0} rows"),
        "contrasts": (
            "all arms against a control hold at once",
            r"(\d+ of \d+) rows hold at least (\.\d+) at once",
            "{0} rows at least {1}",
        ),
        "winners": (
            "the winner's interval covers",
            r"The lowest coverage is ([\d.]+\d)",
            "lowest coverage {0} of nominal .95",
        ),
        "regression_drift": (
            "coefficients of arms hold under a drift that all arms share",
            r"Thompson, floor \.05, 2 arms \| linear \| C\(action\) \* x \| arm \| \S+ \S+ "
            r"\| ([\d.]+) \S+ \| \S+ \S+ \| ([\d.]+)",
            "Thompson sampling, drift of one standard deviation: {1}, by square roots of weights {0}",
        ),
        "small_samples": (
            "robust errors keep their level at few rounds and few units",
            r"Defaults above \.06 by more than 3 errors \(([\d.]+\d)\): (\d+ of \d+)",
            "above {0}: {1} cells",
        ),
        "ratios": (
            "ratio metrics and adjusted contrasts cover",
            r"(\d+ of \d+) shares are at\s+least ([\d.]+\d)",
            "{0} shares at least {1} less three errors",
        ),
        "answers": (
            "mixture sequences are no wider than confseq's",
            r"largest ratio is\s+([\d.]+\d)",
            "at most {0} times as wide",
        ),
        "mixtures": (
            "mixture sequences keep their level",
            r"(\d+ of \d+) shares are at most ([\d.]+\d)",
            "{0} at most {1}",
        ),
        "cate_coverage": (
            "effects by group cover under ConSE and DP-ConSE",
            r"(\d+) cells; lowest coverage ([\d.]+\d)",
            "{0} cells, lowest {1}",
        ),
        "exact": (
            "exact tests of two arms give published sizes again",
            r"published ([\d.]+), here ([\d.]+\d)",
            "E[N1 - N0] = {1}, published {0}",
        ),
        "max_information": (
            "corrected tests keep their level",
            r"keep their level in all (\d+) settings",
            "{0} of {0} settings",
        ),
        "large_logs": (
            "sums give the rows' numbers",
            r"The largest of all is ([\d.e-]+\d)",
            "largest relative distance {0}",
        ),
        "randomization": (
            "randomisation tests keep their level",
            r"studentised \| 300 \| ([\d.]+ ± [\d.]+)",
            "{0} of nominal .05",
        ),
        "exactness": (
            "corrected p-values are those of a search in 50 digits",
            r"([\d.e-]+) over (\d+) cases",
            "largest relative distance {0}, {1} cases",
        ),
        "fixes": (
            "each mend is pinned by a test",
            r"(\d+ of \d+) tests pass on the package and fail on the copy",
            "{0}",
        ),
    },
    "Plans and bias": {
        "calibration": (
            "plans keep their level and coverage",
            r"(\d+) checks: .*?No check fails",
            "{0} checks, none fails",
        ),
        "farmer_allocation": (
            "a published trial's allocation follows its stated rule",
            r"\| exploration sampling \| [^|]*\| [^|]*\| ([\d.]+) \|",
            "p = {0}",
        ),
        "farmer_trial": (
            "a published trial's ranking",
            r"(\d+ of \d+) agree with the published ranking",
            "{0} agree",
        ),
    },
    "Privacy": {
        "privacy_audits": (
            "no audit refutes a guarantee, and planted faults are caught",
            r"(\d+) audits of what is right: no bound exceeds its promise\. "
            r"(\d+) audits of faults: all are caught",
            "{0} audits right, {1} of {1} faults caught",
        ),
        "coupled": (
            "neighbouring live trials agree in all that is covered, at no more than the promised cost",
            r"(\d+ of \d+) pairs agree at no more than the promise; .*?largest cost is ([\d.]+) of",
            "{0} pairs; largest cost {1} of the promise",
        ),
        "planted_faults": (
            "faults planted by somebody who knew none of the code are caught by audits with their defaults",
            r"(\d+ of \d+) faults are caught; of the (\d+) of live sessions, trials and what\s+"
            r"they publish, (\d+)",
            "{0} faults; {2} of {1} of the live path",
        ),
        "planted_faults_sealed": (
            "so are all but one of further faults, which nobody who worked on the audits had seen",
            r"(\d+ of \d+) faults are caught; of the (\d+) of live sessions, trials and what\s+"
            r"they publish, (\d+)",
            "{0} faults; {2} of {1} of the live path",
        ),
        "live_privacy": (
            "no audit refutes a design that is used live, with exact noise",
            r"(\d+ of \d+) rows are as they should be",
            "{0} rows",
        ),
        "live_noise": (
            "audits find faults in the noise of sessions and files, and none where there is none",
            r"(\d+) audits of right designs, and one more of each with all defaults: (\d+) refuted\. "
            r"Planted faults:\s+(\d+ of \d+) found",
            "{1} of {0} right designs refuted, {2} faults found",
        ),
        "privacy_mechanisms": (
            "no audit refutes a mechanism",
            r"\| Laplace \| [^|]*\| ([\d.]+) \(",
            "Laplace noise: {0} of 1 shown",
        ),
        "two_arm_release": (
            "intervals from private releases cover",
            r"\| 1 \| 0\.5, 0\.5 \| 20,000 \| ([\d.]+ ± [\d.]+)",
            "{0} of nominal .95",
        ),
        "dp_conse": ("what privacy costs ConSE in regret", r"Ratio: \*\*([\d.]+)\*\*", "{0} times"),
        "gaussian": (
            "the classical normal noise is too large, or too small",
            r"asks for ([\d.]+) times the noise that is needed at most",
            "up to {0} times too much",
        ),
        "stopping": (
            "private stopping rules are as accurate as promised",
            r"the highest frequency was ([\d.]+) beta",
            "wrong at most {0} times as often as allowed",
        ),
    },
    "Designs": {
        "best_arm": (
            "the schedule of DP-BAI follows the equations",
            r"([\d,]+) pairs, .*? are those of the equations in ([\d,]+)\.",
            "{1} of {0} pairs",
        ),
        "linear": (
            "bands of linear bandits cover",
            r"\| LinUCB \| ([\d.]+) \|",
            "share of LinUCB runs with a miss: {0}",
        ),
        "ldp_intervals": (
            "bin means cover",
            r"\| 2, 20,000, 0\.1 \| [^|]*\|[^|]*\| (\.\d+ ± \.\d+)",
            "{0} of nominal .95",
        ),
        "thompson": (
            "Thompson sampling is fast",
            r"\| beta \| 2 \| ([\d,]+) \|",
            "{0},000 rounds a second, two arms",
        ),
    },
    "Files, speed and the house": {
        "trial_restarts": (
            "a live trial of a million decisions is opened again in seconds",
            r"from a snapshot: \*\*([\d.]+) s\*\*, where (\d+) s are allowed",
            "at most {0} s, {1} s allowed",
        ),
        "bad_input": (
            "damaged files are never read silently wrong",
            r"\| all \| ([\d,]+) (?:\| [\d,]+ ){5}\| (\d+) \| (\d+) \|",
            "{0} inputs: {1} tracebacks, {2} silent",
        ),
        "bad_tables": (
            "odd tables are read as they are, or refused with the cause",
            r"\| all \| [\d,]+ \| ([\d,]+) \| ([\d,]+) (?:\| [\d,]+ ){2}"
            r"\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|",
            "{0} files, {1} uses: {4} tracebacks, {5} silent, {2} without the cause",
        ),
        "hostile_names": (
            "hostile names break no table",
            r"names for which some result could not be made \| (\d+) \| (\d+) \| (\d+)",
            "{2} of {0} names, before {1}",
        ),
        "own_files": (
            "a flipped bit never makes another log",
            r"\| Parquet \| (\d+) \| (\d+) \| (\d+) \|",
            "Parquet: {0} refused, {1} equal, {2} another log",
        ),
        "platforms": (
            "files of other platforms are read as they are",
            r"(\d+) of (\d+) logs agree with it\. (\d+) files are refused",
            "{0} of {1} logs agree with a count of their own; {2} files refused",
        ),
        "study": ("studies survive kills", r"(\d+) kills hit", "{0} kills, the same files"),
        "invariance": (
            "what must not change does not",
            r"(\d+ of \d+) lines are beyond",
            "{0} lines beyond 1e-9",
        ),
        "default_speed": (
            "the first table is quick",
            r"\| first table, the library alone \| [^|]*\| [^|]*\| ([\d.]+) \|",
            "{0} s",
        ),
        "shell": (
            "the command line loads little before it answers",
            r"\| `analyze` \| `pandas` and `scipy.stats` \| [\d.]+ \| [\d.]+ \| ([\d.]+) \|",
            "a table of 10,000 rows takes {0} of importing pandas and scipy.stats",
        ),
        "sums_by_unit": (
            "errors by unit from sums are those of the rows",
            r"In (\d+) of\s+(\d+) logs all numbers agree to ([\d.e-]+\d)",
            "{0} of {1} logs to {2}",
        ),
        "reading": (
            "one experiment gives one answer, however it is brought",
            r"Of ([\d,]+) uses ([\d,]+) give the same means, ([\d,]+) the refusal that is due,\s+"
            r"([\d,]+) something",
            "{1} of {0} uses the same means, {2} the refusal that is due, {3} something else",
        ),
        "engines": (
            "one table gives one answer, whatever engine holds it",
            r"(\d+) tables of .*?Of ([\d,]+) answers ([\d,]+) are the same .*? and (\d+)\s+are errors",
            "{0} tables: {2} of {1} answers the same, {3} raw errors",
        ),
        "sums_further": (
            "ratios, covariates and groups from sums are those of the rows",
            r"In (\d+) of (\d+) logs all numbers agree to\s+([\d.e-]+\d)",
            "{0} of {1} logs to {2}",
        ),
        "recommend_speed": (
            "newer rows do not slow recommend down (the aim: 1.20 times)",
            r"the largest ratio is ([\d.]+\d)",
            "at most {0} times as before",
        ),
        "large_logs_speed": (
            "sums from files, against the database's own speed (the aim: 1.15 times)",
            r"\| 10,000,000 (?:\| [\d.]+ ){3}\| ([\d.]+) \|.*?\| 40,000,000 (?:\| [\d.]+ ){3}\| ([\d.]+) \|",
            "{0} times at 10 million rows, {1} at 40",
        ),
        "setup": (
            "the set-up commands work from nothing",
            r"ok, ([\d,]+) passed, (\d+) skipped",
            "{0} tests passed",
        ),
        "first_hour": (
            "a CSV file becomes a table, pictures and a report in three commands",
            r"(Three commands), the environment's included.*?three pictures in one file of ([\d,]+) bytes",
            "three commands, one file of {1} bytes with three pictures",
        ),
        "browser": (
            "reports and pages hold in a browser, at 390 and 1,280 px",
            r"Texts wider than the page: (\d+ of \d+)\. Words broken in a table: (\d+ of \d+)",
            "texts wider than the page {0} looks, broken words {1}",
        ),
        "case_studies": (
            "papers' figures, run again",
            r"(\d+), of which (\d+) agree and (\d+) differ",
            "of {0} printed figures {1} agree, {2} differ",
        ),
    },
}


def row(name: str, text: str, entry: tuple[str, str, str] | None) -> str:
    """Row of a page: what it claims, its headline figure, its date and commit."""
    found = _STAMP.search(text)
    date, commit = found.groups() if found else ("", "")
    claim, headline = text.splitlines()[0].lstrip("# "), ""
    if entry is not None:
        claim, pattern, form = entry
        match = re.search(pattern, " ".join(text.split()))
        if match is None:
            raise SystemExit(
                f"docs/evidence/{name}.md no longer has the headline {pattern!r}: change the entry"
            )
        headline = form.format(*match.groups())
    return f"| [{claim}]({name}.md) | {headline} | {date} | {commit} |\n"


def table(pages: dict[str, str]) -> str:
    """The tables of all pages, by group; those without an entry come last."""
    known = {name for group in GROUPS.values() for name in group}
    parts = []
    for title, group in GROUPS.items():
        rows = [row(name, pages[name], entry) for name, entry in group.items() if name in pages]
        parts.append(f"## {title}\n\n{_HEAD}{''.join(rows)}")
    rest = "".join(row(name, text, None) for name, text in pages.items() if name not in known)
    return "\n".join([*parts, f"## Other pages\n\n{_HEAD}{rest}"])


def made(index: str, pages: dict[str, str]) -> str:
    """The index with its tables made anew."""
    before, _, rest = index.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table(pages)}\n{END}{rest.partition(END)[2]}"


def pages() -> dict[str, str]:
    """Texts of the evidence's pages by name, without the index."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in sorted(HERE.glob("*.md"))}
    return {name: text for name, text in found.items() if name != "index"}


if __name__ == "__main__":
    place = HERE / "index.md"
    place.write_text(made(place.read_text(encoding="utf-8"), pages()), encoding="utf-8")
