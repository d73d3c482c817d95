"""Sums over blocks of simulated trials by analysis and term, merged in order, and tables of them."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from adaptinf.errors import ParameterError
from adaptinf.inference.distributions.references import BinomialReference
from adaptinf.markup import numbered_notes, table
from adaptinf.texts import ROOM, absent, literal
from adaptinf.typing import FloatArray

# The columns `error` (sum of errors) and `spread` (sum of squares about their mean) are kept apart, because
# blocks can then be combined without cancellation.
PARTS = (
    "runs",
    "covered",
    "below",
    "above",
    "rejected",
    "error",
    "spread",
    "width",
    "std_error",
    "std_errors",
    "missing",
)
# A printed table has room for these columns only; the data frame contains all of them.
SHOWN = ("runs", "missing", "coverage", "coverage_se", "rejected", "bias", "sd", "std_error_ratio", "width")

_KEYS = ("scenario", "design", "environment", "horizon", "analysis", "term")
"""Columns that identify a row."""
_TOLD_ONCE = ("analysis", "term", "null", "kind", "missing")
"""Columns that a printed table omits if they are constant."""
# A missing result has three different causes: the log does not support the analysis, the analysis raised
# another error, or the result has no interval.
INVALID, FAILED, MISSING = "invalid", "failed", "missing"
_MOST_REASONS = 3
_NUMBER = re.compile(r"(?<![A-Za-z_])\d[\d.,]*")
_LOG_ALPHA = math.log(0.05)
_RUNS, _COVERED, _BELOW, _ABOVE, _REJECTED, _ERROR, _SPREAD, _WIDTH, _SE, _SES, _MISSING = range(len(PARTS))


class Key(NamedTuple):
    """The subject of a row of sums; `truth` is None if unknown, and `null` is None if nothing is tested."""

    analysis: str
    term: str
    truth: float | None
    null: float | None


class Gap(NamedTuple):
    """Trials in which an analysis has no result for a term, or no result at all (the term is then empty)."""

    kind: str
    analysis: str
    term: str = ""


@dataclass(slots=True)
class BlockSums:
    """Sums over the runs of a block: parts (11,) and regret (11,), and the number of gaps by reason.

    The widths of all intervals are kept, in arrays of shape (runs,), to compute their median.
    """

    parts: dict[Key, FloatArray] = field(default_factory=dict)
    gaps: dict[Gap, dict[str, int]] = field(default_factory=dict)
    regret: FloatArray = field(default_factory=lambda: np.zeros(len(PARTS)))
    widths: dict[Key, list[FloatArray]] = field(default_factory=dict)

    def merge(self, later: BlockSums) -> None:
        """Add the sums of later runs."""
        for key, parts in later.parts.items():
            self.parts[key] = merged(self.parts[key], parts) if key in self.parts else parts
        for gap, reasons in later.gaps.items():
            for reason, runs in reasons.items():
                self.add_gap(gap, reason, runs)
        self.regret = merged(self.regret, later.regret)
        for key, widths in later.widths.items():
            self.widths.setdefault(key, []).extend(widths)

    def add_gap(self, gap: Gap, reason: str, runs: int = 1) -> None:
        """Count uninformative runs, by reason."""
        known = self.gaps.setdefault(gap, {})
        known[reason] = known.get(reason, 0) + runs

    def add_regret(self, regret: FloatArray) -> None:
        """Add the regret of consecutive runs, shape (runs,)."""
        parts = np.zeros(len(PARTS))
        parts[_RUNS], parts[_ERROR] = regret.size, regret.sum()
        parts[_SPREAD] = np.square(regret - regret.mean()).sum()
        self.regret = merged(self.regret, parts)

    def add_tests(self, key: Key, pvalues: FloatArray, alpha: float) -> None:
        """Add the p-values of consecutive runs, shape (runs,); NaN if there is no test."""
        known = pvalues[~np.isnan(pvalues)]
        parts = np.full(len(PARTS), np.nan)
        parts[[_RUNS, _MISSING, _SE, _SES]] = known.size, pvalues.size - known.size, 0.0, 0.0
        parts[_REJECTED] = (known <= alpha).sum()
        self.parts[key] = merged(self.parts[key], parts) if key in self.parts else parts


def merged(first: FloatArray, second: FloatArray) -> FloatArray:
    """Sums over two sets of runs; the squares stay centred (Chan, Golub and LeVeque, 1983)."""
    total = first + second
    runs, more = first[_RUNS], second[_RUNS]
    if runs > 0 and more > 0:
        gap = second[_ERROR] / more - first[_ERROR] / runs
        total[_SPREAD] += gap * gap * (runs * more / (runs + more))
    return total


def add_runs(
    sums: BlockSums,
    keys: Iterable[Key],
    estimate: FloatArray,
    low: FloatArray,
    high: FloatArray,
    std_error: FloatArray | None = None,
) -> None:
    """Add consecutive runs of some terms; all arrays have shape (runs, terms)."""
    for column, key in enumerate(keys):
        errors = None if std_error is None else std_error[:, column]
        limits = low[:, column], high[:, column]
        parts = _parts(key, estimate[:, column], *limits, errors)
        known = np.isfinite(estimate[:, column]) & (limits[0] <= limits[1])
        sums.widths.setdefault(key, []).append((limits[1] - limits[0])[known])
        sums.parts[key] = merged(sums.parts[key], parts) if key in sums.parts else parts


def _parts(
    key: Key, estimate: FloatArray, low: FloatArray, high: FloatArray, std_error: FloatArray | None
) -> FloatArray:
    known = np.isfinite(estimate) & ~np.isnan(low) & ~np.isnan(high)
    estimate, low, high = estimate[known], low[known], high[known]
    assert key.truth is not None
    error = estimate - key.truth
    parts = np.zeros(len(PARTS))
    parts[_RUNS] = error.size
    parts[_MISSING] = known.size - error.size
    if error.size == 0:
        return parts
    parts[_COVERED] = ((low <= key.truth) & (key.truth <= high)).sum()
    some = low <= high  # An empty interval misses the truth without lying on either side of it.
    parts[_BELOW] = (some & (high < key.truth)).sum()
    parts[_ABOVE] = (some & (low > key.truth)).sum()
    if key.null is not None:
        parts[_REJECTED] = ((high < key.null) | (low > key.null)).sum()
    parts[_ERROR] = error.sum()
    parts[_SPREAD] = np.square(error - parts[_ERROR] / error.size).sum()
    parts[_WIDTH] = (high - low)[some].sum()
    if std_error is not None:
        sizes = std_error[known]
        sizes = sizes[np.isfinite(sizes)]
        parts[_SE], parts[_SES] = sizes.sum(), sizes.size
    return parts


def table_rows(sums: BlockSums, analyses: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The rows of a table, in the order in which terms first occurred."""
    rows = [_row(key, parts, sums) for key, parts in sums.parts.items()]
    seen = {_base(key.analysis) for key in sums.parts}
    silent = [gap.analysis for gap in sums.gaps if gap.analysis not in seen and not gap.term]
    nothing = np.zeros(len(PARTS))
    rows += [_row(Key(name, "", None, None), nothing, sums) for name in dict.fromkeys(silent)]
    if not analyses:
        return rows
    return sorted(rows, key=lambda row: analyses.index(_base(row["analysis"])))


def rejections(sums: BlockSums) -> list[int | None]:
    """Number of runs that rejected the null, in the order of `table_rows`; None if nothing is tested."""
    return [None if key.null is None else int(parts[_REJECTED]) for key, parts in sums.parts.items()]


def _base(analysis: str) -> str:
    """The name of an analysis, without the names of its results."""
    return analysis.partition(": ")[0].removesuffix(", corrected")


def _row(key: Key, parts: FloatArray, sums: BlockSums) -> dict[str, Any]:
    runs = parts[_RUNS] if parts[_RUNS] > 0 else math.nan
    bias = parts[_ERROR] / runs
    sd = math.sqrt(parts[_SPREAD] / runs) if parts[_RUNS] > 0 else math.nan
    rejected = parts[_REJECTED] / runs if key.null is not None else math.nan
    known = parts[_RUNS] + parts[_MISSING]
    mean_error = parts[_SE] / parts[_SES] if parts[_SES] > 0 else math.nan
    base = _base(key.analysis)
    invalid, failed = (sums.gaps.get(Gap(kind, base), {}) for kind in (INVALID, FAILED))
    trials = sums.regret[_RUNS]
    regret = sums.regret[_ERROR] / trials if trials > 0 else math.nan
    regret_sd = math.sqrt(sums.regret[_SPREAD] / trials) if trials > 1 else math.nan
    absent = max(int(trials - known) - sum(invalid.values()) - sum(failed.values()), 0)
    return {
        "analysis": key.analysis,
        "term": key.term,
        "truth": math.nan if key.truth is None else key.truth,
        "null": math.nan if key.null is None else key.null,
        "runs": int(parts[_RUNS]),
        "missing": int(parts[_MISSING]),
        "missing_share": parts[_MISSING] / known if known > 0 else math.nan,
        "coverage": parts[_COVERED] / runs,
        "coverage_se": binomial_error(parts[_COVERED] / runs, runs),
        "below": parts[_BELOW] / runs,
        "above": parts[_ABOVE] / runs,
        "rejected": rejected,
        "rejected_se": binomial_error(rejected, runs),
        "bias": bias,
        "bias_se": sd / math.sqrt(runs) if runs > 1 else math.nan,
        "sd": sd,
        "rmse": math.hypot(bias, sd),
        "width": parts[_WIDTH] / runs,
        **_widths(sums.widths.get(key, [])),
        "std_error": mean_error,
        "std_error_ratio": mean_error / sd if sd > 0 else math.nan,
        "regret": regret,
        "regret_se": regret_sd / math.sqrt(trials) if trials > 1 else math.nan,
        "invalid": sum(invalid.values()),
        "failed": sum(failed.values()),
        "absent": absent,
        "note": _note(key, sums, int(known), absent),
    }


def _widths(kept: Sequence[FloatArray]) -> dict[str, float]:
    """Standard error of the mean width, and the median width; NaN without intervals."""
    widths = np.concatenate([np.zeros(0), *kept])
    finite = widths.size > 1 and bool(np.isfinite(widths).all())
    return {
        "width_se": float(widths.std() / math.sqrt(widths.size)) if finite else math.nan,
        "width_median": float(np.median(widths)) if widths.size else math.nan,
    }


def _note(key: Key, sums: BlockSums, known: int, absent: int) -> str:
    """The number of uninformative trials, with the reasons."""
    base = _base(key.analysis)
    found = {kind: sums.gaps.get(Gap(kind, base), {}) for kind in (INVALID, FAILED)}
    texts = []
    for kind, said in ((INVALID, "not valid"), (FAILED, "failed")):
        if reasons := found[kind]:
            alone = known + absent == 0 and len([one for one in found.values() if one]) == 1
            texts.append(f"{said}{_count(reasons, alone)}: {_reasons(reasons)}")
    if reasons := sums.gaps.get(Gap(MISSING, key.analysis, key.term), {}):
        what = "p-value" if key.truth is None or math.isnan(sums.parts[key][_ERROR]) else "interval"
        texts.append(f"no {what}{_count(reasons, False)}: {_reasons(reasons)}")
    if absent:
        texts.append(f"no such result or term in {absent:,} runs")
    return "; ".join(texts)


def _count(reasons: Mapping[str, int], alone: bool) -> str:
    return "" if alone else f" in {sum(reasons.values()):,} runs"


def _reasons(reasons: Mapping[str, int]) -> str:
    """The most frequent reasons with their numbers of trials, merging those that differ only in numbers."""
    groups: dict[str, list[tuple[int, str]]] = {}
    for reason, runs in reasons.items():
        groups.setdefault(_NUMBER.sub("0", reason), []).append((runs, reason))
    ordered = sorted(groups.values(), key=lambda group: -sum(runs for runs, _ in group))
    texts = []
    for group in ordered[:_MOST_REASONS]:
        text = max(group, key=lambda entry: entry[0])[1] + (
            " (or with other numbers)" if len(group) > 1 else ""
        )
        texts.append(f"{text} ({sum(runs for runs, _ in group):,})" if len(ordered) > 1 else text)
    rest = [runs for group in ordered[_MOST_REASONS:] for runs, _ in group]
    more = [f"{len(ordered) - _MOST_REASONS} other reasons ({sum(rest):,})"] if rest else []
    return "; ".join(texts + more)


def binomial_error(share: float, runs: float) -> float:
    """Standard error of a proportion of simulated trials; NaN for a single trial, which is uninformative."""
    return math.sqrt(share * (1.0 - share) / runs) if runs > 1 else math.nan


def binomial_limits(count: float, runs: float, surely: float | None = None) -> tuple[float, float]:
    """Exact 95% limits (Clopper and Pearson) for the mean of a number in [0, 1] over trials."""
    if not runs > 0:
        return math.nan, math.nan
    counts = np.array([count if surely is None else surely, count], dtype=np.float64)
    limits = BinomialReference(counts, np.full(2, float(runs))).interval(_LOG_ALPHA)
    return float(limits[0, 0]), float(limits[1, 1])


def share_text(share: float, error: float, runs: float, digits: int, places: int) -> str:
    """A proportion of simulated trials, with its simulation error in parentheses."""
    text = f"{share:.{digits}f}"
    if share not in (0.0, 1.0):
        return f"{text} ({error:.{places}f})"
    limit = math.ceil((1.0 - 0.05 ** (1.0 / runs)) * 10.0**places - 1e-9) / 10.0**places
    return f"{text} (< {limit:.{places}f})" if share == 0.0 else f"{text} (> {1.0 - limit:.{places}f})"


def check_columns(frame: pd.DataFrame, columns: Sequence[str], subject: str = "to_markdown") -> None:
    """Refuse columns that a table does not have."""
    unknown = [name for name in columns if name not in frame.columns]
    if unknown:
        raise ParameterError(subject, [absent("column", name, list(frame.columns)) for name in unknown])


def markdown(frame: pd.DataFrame, digits: int = 4) -> str:
    """A frame as a Markdown table; unknown values are left empty."""
    lines = [list(map(str, frame.columns)), ["---"] * frame.shape[1]]
    lines += [[cell.replace("|", r"\|") for cell in row] for row in _cells(frame, digits)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def hypertext(frame: pd.DataFrame, caption: str, notes: Sequence[str], digits: int = 4) -> str:
    """A frame as an HTML table with its caption and a list of notes; unknown values are left empty."""
    rows = table(list(map(str, frame.columns)), _cells(frame, digits), caption)
    return "\n".join([rows, numbered_notes(notes)])


def plain(
    frame: pd.DataFrame,
    head: Sequence[str],
    notes: Sequence[str],
    digits: int = 4,
    *,
    aligns: str | None = None,
    once: Sequence[str] = _TOLD_ONCE,
) -> str:
    """A frame as a text table of at most 80 columns, below a heading and above its notes.

    Columns that identify rows (`once`) but are constant are stated only once, in the heading. `aligns` is
    passed to `LiteralTable`; by default, numbers are aligned on the right.
    """
    # statsmodels is slow to import, so tables load it only when they are printed.
    from adaptinf.inference.results.tables import plain_table

    alike = [name for name in once if name in frame and frame[name].nunique(dropna=False) == 1]
    told = _cells(frame[alike].iloc[:1], digits)[0] if alike else []
    given = ", ".join(f"{name} {cell}" for name, cell in zip(alike, told, strict=True) if cell)
    shown = frame.drop(columns=alike)
    sides = aligns or "".join("l" if shown[name].dtype.kind == "O" else "r" for name in shown.columns)
    heads = [str(name).replace("_", " ") for name in shown.columns]
    keys = max(1, sum(name in _KEYS for name in shown.columns))
    table = plain_table(_cells(shown, digits), heads, sides, folds=keys)
    above = [line for text in (*head, given) for line in textwrap.wrap(text, ROOM, subsequent_indent="  ")]
    return "\n".join([*above, table.as_text(), *numbered(notes, ROOM)])


def numbered(notes: Sequence[str], width: int | None = None) -> list[str]:
    """Numbered notes, wrapped to a given width."""
    texts = [(f"[{number}] ", literal(note)) for number, note in enumerate(notes, start=1)]
    if width is None:
        return [head + text for head, text in texts]
    return [
        line
        for head, text in texts
        for line in textwrap.wrap(text, width, initial_indent=head, subsequent_indent=" " * len(head))
    ]


def latex(frame: pd.DataFrame, title: str, notes: Sequence[str], digits: int = 4) -> str:
    """A frame as a LaTeX tabular with a title and notes below; unknown values are left empty."""
    # statsmodels is slow to import, so tables load it only when they are printed.
    from adaptinf.inference.results.summary import ResultSummary
    from adaptinf.inference.results.tables import plain_table

    aligns = "".join("l" if frame[name].dtype.kind == "O" else "r" for name in frame.columns)
    tabular = plain_table(_cells(frame, digits), list(map(str, frame.columns)), aligns)
    return ResultSummary(title, [tabular], notes).as_latex()


def _cells(frame: pd.DataFrame, digits: int) -> list[list[str]]:
    rows = frame.itertuples(index=False, name=None)
    return [[_written(value, digits) for value in row] for row in rows]


def _written(value: Any, digits: int) -> str:
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if isinstance(value, (float, np.floating)):
        return "" if math.isnan(value) else f"{value:.{digits}f}"
    return literal(str(value))
