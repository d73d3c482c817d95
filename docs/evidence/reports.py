"""What a reader of a report sees first, and what prints: eight reports in Chromium, on screens and as PDF.

    npm install axe-core
    python docs/evidence/reports.py --axe node_modules/axe-core/axe.min.js

The reports are those of `report_examples.py`. Measured are where the sentence and the picture end on a screen
of 1,280 x 800 and of 390 x 844 pixels, light and dark; what `docs/browser_check.py` finds; printed pages; and
whether the numbers of the picture are those of the table. Needs `chromium` on the path; nothing leaves the
machine.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import evidence
from evidence import cell, committed, hold, measured, stamp
from report_examples import EXAMPLES, written

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "tests/unit/reports")]

from browser_check import _KINDS, check  # noqa: E402
from read_pages import forest_rows, table_rows  # noqa: E402

from adaptinf.reports.shown_numbers import Shown  # noqa: E402

SCREENS = {1280: 800, 390: 844}
_PAGE = re.compile(rb"/Type\s*/Page\b")


def printed(page: Path) -> int:
    """Pages of A4 that Chromium prints of a report."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "page.pdf"
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile"]
        options += ["--no-pdf-header-footer", f"--print-to-pdf={target}"]
        command = ["chromium", *options, page.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        return len(_PAGE.findall(target.read_bytes()))


def agree(result: Any, arguments: dict[str, Any], page: str) -> int:
    """Rows of the picture whose estimate or limits are not those of the table; -1 where rows are missing."""
    shown = Shown(result, 0.05, arguments.get("adjust", result._adjustment))
    rows = forest_rows(page)
    _, table = table_rows(page, "results")
    if len(rows) != len(shown.chosen):
        return -1
    wrong = 0
    for row, place in zip(rows, shown.chosen, strict=True):
        numbers = [row.estimate, *row.interval.split(" to ")]
        wrong += not set(numbers) <= set(table[str(result.terms[place])])
    return wrong


def looked(folder: Path, axe: Path | None) -> list[dict[str, Any]]:
    """What is found on every report, whole and brief, light and dark."""
    pages = [f"{kind}{place}.html" for place in range(1, len(EXAMPLES) + 1) for kind in ("report", "brief")]
    return [
        {**row, "dark": dark} for dark in (False, True) for row in check(folder, pages, axe, ("",), dark=dark)
    ]


def report(folder: Path, axe: Path | None) -> str:
    """The page of the evidence."""
    made = written(folder)
    found = looked(folder, axe)
    rows = []
    for place, (name, (result, arguments, path)) in enumerate(made.items(), start=1):
        first = {row["width"]: row["first"] for row in found if row["page"] == path.name and not row["dark"]}
        own = [row for row in found if row["page"] in (path.name, f"brief{place}.html")]
        ends = [first[width][part] for width in SCREENS for part in ("sentence", "picture")]
        pages = [printed(one) for one in (path.with_name(f"brief{place}.html"), path)]
        wrong = agree(result, arguments, path.read_text(encoding="utf-8"))
        faults = sum(len(row[kind]) for row in own for kind in _KINDS if kind != "axe")
        rows.append([name, *ends, *pages, wrong, faults, sum(len(row["axe"]) for row in own)])
    for row in found:
        for kind in _KINDS:
            for what in row[kind]:
                print(f"{row['page']} at {row['width']}: {kind}: {what}", file=sys.stderr)
    return PAGE.format(
        stamp=stamp(),
        count=len(rows),
        first=sum(row[2] <= SCREENS[1280] and row[4] <= SCREENS[390] for row in rows),
        brief=sum(row[5] == 1 for row in rows),
        agreed=sum(row[7] == 0 for row in rows),
        violations=sum(row[9] for row in rows),
        looks=len(found),
        names=" | ".join(_NAMES),
        rules=" ---: |" * (len(_NAMES) - 1),
        rows="\n".join(f"| {' | '.join(map(str, row))} |" for row in rows),
    )


PAGE = """# What a report shows first

Command: `python docs/evidence/reports.py --axe
node_modules/axe-core/axe.min.js`. Seeds are in `report_examples.py`. Date: {stamp}.

Of {count} reports, {first} have the sentence, the picture and its numbers on the first screen at both sizes,
{brief} print on one page with `brief=True`, and {agreed} have the numbers from their table in the picture;
axe-core finds {violations} violations of WCAG 2.1 A and AA.

Each report, in full and with `brief=True`, was opened by Chromium at 1,280 and at 390 px, in light and dark
mode, which gives {looks} views. *Sentence* and *picture* are the positions of their lower ends, in px from
the top of the page; the screens are 800 and 844 px high. The picture is the forest plot with its numbers.
*Differ* is the number of rows of the plot whose numbers differ from those in the same row of the table.
*Faults* are errors on the console, texts wider than the page, headings out of order, figures without
alternative text, and words broken in a table.

| {names} |
| --- |{rules}
{rows}

A full report prints on many pages, because it includes everything that is folded on the screen: each check,
and each method that was ranked.
"""
_NAMES = (
    *("report", "sentence, 1,280", "picture, 1,280", "sentence, 390", "picture, 390", "brief, pages"),
    *("full, pages", "differ", "faults", "axe"),
)


def main() -> None:
    """Make the reports and measure them; a quick run holds one figure against the committed page."""
    options_of = evidence.parser(__doc__)
    options_of.add_argument("--axe", type=Path, help="axe.min.js of axe-core")
    options = options_of.parse_args()
    os.environ["MPLBACKEND"] = "Agg"
    with tempfile.TemporaryDirectory() as scratch:
        page = report(Path(scratch), options.axe and options.axe.resolve())
    if options.quick:
        row, column = "60 arms", "picture, 390"
        then = committed(__file__, row, column)
        now = measured(cell(page, row, column))[0]
        hold(f"{row}, {column}", (now, 10.0), (measured(then)[0], 10.0))
    evidence.publish(page, __file__, options)


if __name__ == "__main__":
    main()
