"""Files and schemas of public repositories, read: makes docs/evidence/platforms.md.

FOLDER holds one git directory a repository, ``<owner>+<name>/repo`` or ``<owner>+<name>``; nothing of them is
kept here. Of a file, the number of rounds, the total of the rewards and that of 1/propensity are compared
with a count that a few lines below make without the library. Of a schema, a table of all its columns is made
and read. Data of R need Rscript.
"""

from __future__ import annotations

import io
import json
import math
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import evidence
import pandas as pd

import adaptinf as ai
from adaptinf.errors import AdaptinfError

Truth = tuple[int, float, float]
VW, OBP = "VowpalWabbit/vowpal_wabbit", "st-tech/zr-obp"
GROWTHBOOK, EPPO, STATSIG = "growthbook/growthbook", "Eppo-exp/eppo-docs", "statsig-io/docs"
TENSORZERO, EVIDENTIAL = "tensorzero/tensorzero", "agency-fund/evidential-be"
MRT, HYBRID = "cran/MRTAnalysis", "venerahm/hybrid-experimental-design"
LICENCES = {
    VW: "BSD 3-Clause",
    OBP: "Apache 2.0",
    GROWTHBOOK: "MIT outside `enterprise` folders",
    EPPO: "none stated",
    STATSIG: "none stated",
    TENSORZERO: "Apache 2.0",
    EVIDENTIAL: "Apache 2.0",
    MRT: "GPL-3",
    HYBRID: "none stated",
}
PAGE = """\
# Files and schemas of other platforms

Command: `python docs/evidence/platforms.py FOLDER`, with the repositories below in FOLDER. No random numbers.
Date: {stamp}. None of the files in these repositories is shipped; the tests build small ones in the same
format.

| repository | commit | licence |
| --- | --- | --- |
{repositories}

## Files

The number of rounds, the total of the rewards and the total of 1/propensity are compared with figures that
the script computes without the library: they agree for {agree} of {read} logs. {refused} files are refused,
with a reason.

| file | reader | what came out |
| --- | --- | --- |
{files}

## Schemas

If a platform publishes the columns of its tables but no data, the script takes the columns from the stated
file, creates a table with these columns and two rows, and reads it.

| schema | reader | columns | what came out |
| --- | --- | ---: | --- |
{schemas}
"""


@dataclass(frozen=True)
class Case:
    """A file, its reader with arguments, and a count of what it holds."""

    repository: str
    path: str
    reader: str
    options: dict[str, Any] = field(default_factory=dict)
    truth: Callable[[str], Truth] | None = None


def labelled(text: str) -> Truth:
    """Events of a choice each: decisions that are learnt from."""
    events = [json.loads(line) for line in text.splitlines() if line.strip()]
    kept = [event for event in events if not event.get("_skipLearn")]
    shares = [event["_label_probability"] for event in kept]
    return len(kept), -sum(event["_label_cost"] for event in kept), sum(1.0 / share for share in shares)


def of_slot(slot: int) -> Callable[[str], Truth]:
    """Events with slots: those that have the slot."""

    def count(text: str) -> Truth:
        found = [json.loads(line)["_outcomes"] for line in text.splitlines() if line.strip()]
        own = [outcomes[slot - 1] for outcomes in found if len(outcomes) >= slot]
        costs = [each["_label_cost"] for each in own]
        return len(own), -sum(costs), sum(1.0 / each["_p"][0] for each in own)

    return count


def in_text(pattern: str) -> Callable[[str], Truth]:
    """Labels action:cost:probability that a pattern finds."""

    def count(text: str) -> Truth:
        found = re.findall(pattern + r"\d+:(-?[\d.]+):([\d.]+)[ ,]", text, re.MULTILINE)
        costs = [float(cost) for cost, _ in found]
        return len(found), -sum(costs), sum(1.0 / float(share) for _, share in found)

    return count


def of_columns(outcome: str, share: Callable[[pd.DataFrame], Any], keep: str = "") -> Callable[[str], Truth]:
    """Rows of a table."""

    def count(text: str) -> Truth:
        table = pd.read_csv(io.StringIO(text))
        table = table[table[keep] == 1] if keep else table
        return len(table), float(table[outcome].sum()), float((1.0 / share(table)).sum())

    return count


def treated(column: str) -> Callable[[pd.DataFrame], Any]:
    """Probability of the treatment that was drawn."""
    return lambda table: table["rand_prob"].where(table[column] == 1, 1.0 - table["rand_prob"])


def clicked(path: str, **options: Any) -> Case:
    truth = of_columns("click", lambda table: table["propensity_score"])
    return Case(OBP, path, "read_open_bandit", options, truth)


def _vw(
    name: str, reader: str = "read_dsjson", truth: Callable[[str], Truth] | None = None, **options: Any
) -> Case:
    return Case(VW, f"test/train-sets/{name}", reader, options, truth)


ADF, SLOT = in_text(r"^"), in_text(r"^ccb slot ")
CASES = [
    *(_vw(f"{name}.json", truth=labelled) for name in ("dsjson_cb", "dsjson_cb_part1", "dsjson_cb_part2")),
    *(_vw(f"{name}.json", truth=labelled) for name in ("decisionservice", "cb_simple", "cb_as_ccb")),
    _vw("dsjson_cb_default_ns.json", truth=labelled),
    _vw("cb_l_namespace.txt", truth=labelled),
    _vw("cb_simple_pdrop.json", truth=labelled),
    _vw("cb_simple_pdrop1.json"),
    _vw("igl.dsjson"),
    *(
        _vw(f"{name}.dsjson", truth=labelled, played="label")
        for name in ("igl", "igl_3states", "igl_3states_1")
    ),
    _vw("igl_3states_2.dsjson", truth=labelled, played="label"),
    _vw("cb_features_w_zero_vals.dsjson", truth=labelled, played="label"),
    _vw("cb_test.json"),
    _vw("b1848_dsjson_parser_regression.txt"),
    _vw("cats_train.json"),
    _vw("ccb_data.json"),
    *(_vw("ccb_data.json", truth=of_slot(slot), slot=slot) for slot in (1, 2)),
    *(_vw("ccb_data_noevent.json", truth=of_slot(slot), slot=slot) for slot in (1, 2)),
    *(_vw("ccb_simple.json", truth=of_slot(slot), slot=slot) for slot in (1, 2)),
    *(_vw("ccb_reuse_medium.dsjson", truth=of_slot(slot), slot=slot) for slot in (1, 2, 3)),
    _vw("issue4669.dsjson", truth=of_slot(1), slot=1),
    _vw("ccb_automl.dsjson", slot=1),
    _vw("ccb_data_parse_error.json", slot=1),
    _vw("slates_simple_unlabeled.dsjson"),
    *(_vw(name, "read_vw", ADF) for name in ("cb_eval", "cb_explore_cover.dat", "rcv1_raw_cb_small.vw")),
    *(_vw(name, "read_vw", ADF) for name in ("issue3062.txt", "cb_adf_crash_1.data")),
    _vw("cb_adf_multipass_crash_1.data", "read_vw", ADF),
    _vw("cb_load.dat", "read_vw", ADF, action_id="Action"),
    _vw("explore_eval_egreedy.dat", "read_vw", ADF),
    *(
        _vw(name, "read_vw")
        for name in ("rcv1_cb_eval", "cb_multi_cost.dat", "cs_cb", "cb_test.ldf", "slate.vw")
    ),
    *(_vw("ccb_reuse_small.data", "read_vw", SLOT, slot=1) for _ in range(1)),
    *(_vw("ccb_losses.txt", "read_vw", slot=slot) for slot in (1, 2)),
    *(_vw(name, "read_vw", slot=1) for name in ("ccb_test_interactions.dat", "ccb_lots_of_interactions.dat")),
    _vw("ccb_test.dat", "read_vw", slot=1),
    _vw("slates_simple.txt", "read_vw"),
    *(clicked(f"obd/{policy}/{campaign}") for policy in ("random", "bts") for campaign in ("men", "women")),
    Case(
        MRT,
        "data/data_mimicHeartSteps.rda",
        "read_mrt",
        {
            "unit": "userid",
            "treatment": "intervention",
            "probability": "rand_prob",
            "outcome": "logstep_30min",
            "decision": "decision_point",
            "available": "avail",
            "adaptive": False,
        },
        of_columns("logstep_30min", treated("intervention"), "avail"),
    ),
    Case(
        MRT,
        "data/data_binary.rda",
        "read_mrt",
        {
            "unit": "userid",
            "treatment": "A",
            "probability": "rand_prob",
            "outcome": "Y",
            "decision": "time",
            "available": "avail",
            "adaptive": False,
        },
        of_columns("Y", treated("A"), "avail"),
    ),
    Case(
        HYBRID,
        "sim_data_for_proximal.csv",
        "read_mrt",
        {
            "unit": "id",
            "treatment": "A",
            "probability": "Probability of Microrandomization",
            "outcome": "Outcome",
        },
    ),
]


class Repositories:
    """Git directories in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _git(self, repository: str, *command: str) -> bytes:
        place = self._folder / repository.replace("/", "+")
        place = place / "repo" if (place / "repo").is_dir() else place
        return subprocess.run(["git", "-C", str(place), *command], capture_output=True, check=True).stdout

    def commit(self, repository: str) -> str:
        return self._git(repository, "rev-parse", "HEAD").decode().strip()

    def data(self, repository: str, path: str) -> bytes:
        return self._git(repository, "show", f"HEAD:{path}")


def placed(repositories: Repositories, case: Case, folder: Path) -> tuple[Path, str]:
    """The file or folder that a reader is given, and the text that is counted."""
    name = Path(case.path).name
    if case.reader == "read_open_bandit":
        place = folder / Path(case.path).parent.name / name
        place.mkdir(parents=True)
        for each in (f"{name}.csv", "item_context.csv"):
            (place / each).write_bytes(repositories.data(case.repository, f"{case.path}/{each}"))
        return place, (place / f"{name}.csv").read_text()
    place = folder / name
    place.write_bytes(repositories.data(case.repository, case.path))
    if place.suffix == ".rda":
        script = f'n <- load("{place}"); write.csv(get(n), "{place.with_suffix(".csv")}", row.names = FALSE)'
        subprocess.run([str(shutil.which("Rscript")), "-e", script], check=True)
        place = place.with_suffix(".csv")
    return place, place.read_text()


def outcome(place: Path, text: str, case: Case) -> tuple[str, bool | None]:
    """What a reader makes of a file, and whether the count agrees; None if it refuses the file."""
    try:
        log = getattr(ai.formats, case.reader)(place, **case.options)
    except AdaptinfError as error:
        problems = [getattr(problem, "message", problem) for problem in error.problems]
        return f"refused: {str(problems[0]).replace(str(place), place.name)}", None
    found = (log.n_rounds, float(log.arrays.reward.sum()), float((1.0 / log.arrays.propensity).sum()))
    sums = f"rewards {found[1]:.6g}, 1/propensity {found[2]:.6g}"
    told = f"rounds {log.n_rounds:,}, arms {log.n_arms}, {sums}"
    if case.truth is None:
        return told, None
    close = all(
        math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)
        for one, other in zip(found, case.truth(text), strict=True)
    )
    return told + ("" if close else f", and the count says {case.truth(text)}"), close


def listed(reader: str, options: dict[str, Any]) -> str:
    shown = [f"{name}={value!r}" for name, value in options.items()] if reader != "read_mrt" else []
    return f"`{reader}({', '.join(shown)})`" if shown else f"`{reader}`"


# --- schemas ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Schema:
    """Where a platform says what its columns are, how they are found in it, and what the two rows contain."""

    repository: str
    path: str
    pattern: str
    reader: str
    rows: dict[str, tuple[Any, Any]]
    options: dict[str, Any] = field(default_factory=dict)
    other: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    other_path: str = ""


TIMES = ("2025-01-01T00:00:00Z", "2025-01-02T00:00:00Z")
IDS = ("01940000-0000-7000-8000-000000000000", "01950000-0000-7000-8000-000000000000")
EVEN = {"a": 0.5, "b": 0.5}
MARKDOWN = "md"  # a page of theirs, not the one that this script writes
TABLES = "crates/tensorzero-core/src/db/postgres/migrations/"
INFERENCES = {"id": IDS, "function_name": ("f", "f"), "variant_name": ("a", "b"), "episode_id": IDS}
SCHEMAS = [
    Schema(
        EPPO,
        "docs/sdks/sdk-features/bandits.mdx",
        r"^\| (\w+) \(",
        "read_eppo",
        {"timestamp": TIMES, "subject": ("u", "v"), "action": ("a", "b"), "action_probability": (0.5, 0.25)},
        other={"subject": ("u", "v"), "value": (1, 0)},
    ),
    Schema(
        EPPO,
        f"docs/sdks/event-logging/assignment-logging.{MARKDOWN}",
        r"(?<=\| )(experiment|subject|variation|timestamp|subject_attributes)(?=  +\|| \|)",
        "read_eppo",
        {"timestamp": TIMES, "experiment": ("e", "e"), "subject": ("u", "v"), "variation": ("a", "b")},
        {"weights": EVEN},
        {"subject": ("u", "v"), "value": (1, 0)},
    ),
    Schema(
        STATSIG,
        "integrations/data-exports/data_warehouse_exports.mdx",
        r"^    \| (company_id|unit_\w+|exposure_type|name|rule\w*|experiment_group|first_\w+|\w+_pst_date"
        r"|percent|rollout|user_dimensions|inserted_at|group_id|non_analytics) ",
        "read_statsig",
        {
            "unit_id": ("u", "v"),
            "name": ("e", "e"),
            "experiment_group": ("a", "b"),
            "first_exposure_utc": TIMES,
        },
        {"weights": EVEN},
        {"unit_id": ("u", "v"), "value": (1, 0)},
    ),
    Schema(
        TENSORZERO,
        f"{TABLES}20260116194140_inference_tables.sql",
        r"^    (\w+) (?:UUID|TEXT|JSONB|INTEGER|BOOLEAN|BYTEA|TIMESTAMPTZ)",
        "read_tensorzero",
        INFERENCES,
        {"weights": EVEN},
        {"id": IDS, "target_id": IDS, "metric_name": ("m", "m"), "value": (True, False)},
        f"{TABLES}20260116210000_feedback_tables.sql",
    ),
    Schema(
        EVIDENTIAL,
        "src/xngin/apiserver/routers/experiments/experiments_common_csv.py",
        r"(?:AS |a\.name AS )(participant_id|arm_id|arm_name|created_at|outcome|context_vals)\b",
        "read_evidential",
        {
            "participant_id": ("u", "v"),
            "arm_id": ("1", "2"),
            "arm_name": ("a", "b"),
            "created_at": TIMES,
            "outcome": (1, 0),
            "context_vals": ("{1,2}", "{3,4}"),
        },
        {"weights": "unknown", "context": ["x", "y"]},
    ),
]


def read_schema(repositories: Repositories, schema: Schema, folder: Path) -> tuple[int, str]:
    """Columns that a schema has, and what a table of them all gives."""
    text = repositories.data(schema.repository, schema.path).decode()
    columns = list(dict.fromkeys(re.findall(schema.pattern, text, re.MULTILINE)))
    if missing := [name for name in schema.rows if name not in columns]:
        raise SystemExit(f"{schema.path} has no {missing}: it has {columns}")
    if schema.other_path:
        known = repositories.data(schema.repository, schema.other_path).decode()
        if missing := [name for name in schema.other if not re.search(rf"^    {name} ", known, re.MULTILINE)]:
            raise SystemExit(f"{schema.other_path} has no {missing}")
    table = pd.DataFrame({name: schema.rows.get(name, (None, None)) for name in columns})
    if "bandit_key" in table:
        table["bandit_key"] = "b"
    paths = [folder / "table.csv"]
    table.to_csv(paths[0], index=False)
    if schema.other:
        paths.append(folder / "outcomes.csv")
        pd.DataFrame(schema.other).to_csv(paths[1], index=False)
    return len(columns), _two_rounds(getattr(ai.formats, schema.reader)(*paths, **schema.options))


def read_growthbook(repositories: Repositories, folder: Path) -> tuple[int, str]:
    """A bandit with every name of the schema that the reader needs."""
    path = "packages/shared/src/validators/experiments.ts"
    text = repositories.data(GROWTHBOOK, path).decode()
    needed = ("variations", "key", "id", "phases", "banditEvents", "date", "banditResult", "updatedWeights")
    if missing := [name for name in needed if not re.search(rf"^\s+{name}: ", text, re.MULTILINE)]:
        raise SystemExit(f"{path} has no {missing}")
    period = repositories.data(
        GROWTHBOOK, "packages/back-end/src/integrations/sql/clauses/bandit-case-when.ts"
    )
    if b"first_exposure_timestamp >=" not in period:
        raise SystemExit("periods are no longer those of first_exposure_timestamp")
    events = [{"date": date, "banditResult": {"updatedWeights": [0.5, 0.5]}} for date in TIMES]
    variations = [{"id": "v0", "key": "a"}, {"id": "v1", "key": "b"}]
    bandit = {"variations": variations, "phases": [{"banditEvents": events}]}
    (folder / "bandit.json").write_text(json.dumps(bandit))
    units = {
        "user_id": ("u", "v"),
        "variation": ("a", "v1"),
        "first_exposure_timestamp": TIMES,
        "value": (1, 0),
    }
    pd.DataFrame(units).to_csv(folder / "units.csv", index=False)
    log = ai.formats.read_growthbook(folder / "bandit.json", folder / "units.csv")
    return len(needed), _two_rounds(log)


def _two_rounds(log: ai.AdaptiveLog) -> str:
    rewards = sorted(log.arrays.reward.tolist())
    if (log.n_rounds, log.arms, rewards) != (2, ("a", "b"), [0.0, 1.0]):
        raise SystemExit(f"{log} is another log")
    known = "propensities" if log.arrays.propensity is not None else "no propensities"
    return f"2 rounds, arms a and b, {known}"


def main() -> None:
    found = evidence.parser(__doc__)
    found.add_argument("folder", type=Path, nargs="?", help="where the git directories are")
    options = found.parse_args()
    if options.folder is None:
        print("no folder was given, so nothing is read; the tests read small files of the same forms")
        return
    repositories = Repositories(options.folder)
    rows, results = [], []
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            told, agrees = outcome(*placed(repositories, case, Path(folder)), case)
        rows.append(
            f"| `{case.path}` | {listed(case.reader, case.options)} | {told.replace('|', chr(92) + '|')} |"
        )
        results.append((told.startswith("refused"), agrees))
    schemas = []
    with tempfile.TemporaryDirectory() as folder:
        count, told = read_growthbook(repositories, Path(folder))
        name = "packages/shared/src/validators/experiments.ts"
        schemas.append(f"| {GROWTHBOOK} `{name}` | `read_growthbook` | {count} | {told} |")
        for schema in SCHEMAS:
            count, told = read_schema(repositories, schema, Path(folder))
            shown = f"| {schema.repository} `{schema.path}` | `{schema.reader}` | {count} | {told} |"
            schemas.append(shown)
    known = [
        f"| {name} | {repositories.commit(name)[:10]} | {licence} |" for name, licence in LICENCES.items()
    ]
    page = PAGE.format(
        stamp=evidence.stamp(),
        repositories="\n".join(known),
        files="\n".join(rows),
        schemas="\n".join(schemas),
        agree=sum(agrees is True for _, agrees in results),
        read=sum(agrees is not None for _, agrees in results),
        refused=sum(refused for refused, _ in results),
    )
    evidence.publish(page, __file__, options)
    if any(agrees is False for _, agrees in results):
        raise SystemExit("a log is not what its file contains")


if __name__ == "__main__":
    main()
