"""Run case studies: all of them, or those that are named.

    python -m case_studies                 all, in full
    python -m case_studies --quick         all, in minutes
    python -m case_studies hadad           one
    python -m case_studies --list          their names and titles

A full run writes the figures and tables of each study into its folder; a quick one writes nothing, unless
--output names a folder. Ends with 1 where a figure is not what expected.toml says.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path

from case_studies.expected import Expected, Verdict, judge, read_expected
from case_studies.outcome import Outcome, Settings

HERE = Path(__file__).parent


def names() -> list[str]:
    """Studies, in the order of the alphabet."""
    return sorted(path.parent.name for path in HERE.glob("*/run.py"))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m case_studies",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("study", nargs="*", help="names of studies; all by default")
    parser.add_argument("--quick", action="store_true", help="fewer replications")
    parser.add_argument("--list", action="store_true", help="print the studies and stop")
    parser.add_argument("--n-jobs", type=int, default=-1, help="worker processes (default: all cores)")
    parser.add_argument("--output", type=Path, help="write figures and tables under this folder instead")
    parser.add_argument(
        "--cache", type=Path, default=Path.home() / ".cache" / "adaptinf", help="folder for what is fetched"
    )
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.study) - set(names()))
    if unknown:
        parser.error(f"no such study: {', '.join(unknown)}; available: {', '.join(names())}")
    if options.list:
        for name in names():
            print(f"{name:<22}{read_expected(HERE / name / 'expected.toml').title}")
        return 0
    settings = Settings(options.quick, options.n_jobs, options.cache)
    failed = [name for name in options.study or names() if not run_study(name, settings, options.output)]
    if failed:
        print(f"\nnot as expected: {', '.join(failed)}")
    return 1 if failed else 0


def run_study(name: str, settings: Settings, output: Path | None) -> bool:
    """Run one study, print its figures, and say whether all are as expected."""
    start = time.perf_counter()
    expected = read_expected(HERE / name / "expected.toml")
    print(f"\n=== {name}: {expected.title} ({'quick' if settings.quick else 'full'})", flush=True)
    try:
        outcome: Outcome = import_module(f"case_studies.{name}.run").run(settings)
        verdicts = judge(expected, outcome.figures, settings.quick)
        if output is not None or not settings.quick:
            write(HERE / name if output is None else output / name, outcome)
    except Exception:
        traceback.print_exc(file=sys.stdout)
        return False
    report(expected, verdicts)
    wrong = [verdict for verdict in verdicts if verdict.problem]
    for verdict in wrong:
        print(f"NOT AS EXPECTED: {verdict.row.name} {verdict.problem}")
    print(f"{name}: {len(verdicts) - len(wrong)} of {len(verdicts)} figures as expected, "
          f"{time.perf_counter() - start:.0f} s", flush=True)  # fmt: skip
    return not wrong


def report(expected: Expected, verdicts: list[Verdict]) -> None:
    """Print every figure with the paper's beside it."""
    print(f"{expected.source}\n{'measured':>10} {'ours':>10} {'paper':>10}  figure")
    for verdict in verdicts:
        row = verdict.row
        paper = "" if row.paper is None else f"{row.paper:.5g}"
        against = f" ({verdict.against_paper})" if verdict.against_paper else ""
        print(f"{verdict.measured:>10.5g} {row.ours:>10.5g} {paper:>10}  {row.what}{against}")


def write(folder: Path, outcome: Outcome) -> None:
    """Write pictures as PNG and SVG, and close them; tables as CSV and Markdown."""
    from matplotlib import pyplot

    from adaptinf import plots

    for kind in ("figures", "tables"):
        if outcome.pictures if kind == "figures" else outcome.tables:
            (folder / kind).mkdir(parents=True, exist_ok=True)
    for name, picture in outcome.pictures.items():
        plots.save(picture, folder / "figures" / name)
        pyplot.close(picture)
    for name, table in outcome.tables.items():
        plots.save_table(table, folder / "tables" / name)


if __name__ == "__main__":
    sys.exit(main())
