"""Rows of operating characteristics: tidy from simulated trials, and wide for a protocol."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.audit.planning.detection import POWER, TYPE_I
from adaptinf.audit.simulation.measures import binomial_error, binomial_limits, share_text
from adaptinf.audit.simulation.selection import chooses_by_vectors
from adaptinf.audit.simulation.trials import (
    QUANTILES,
    TrialCell,
    Trials,
    best_arms,
    estimated,
    wrong_way_reason,
    wrong_way_trials,
)
from adaptinf.typing import FloatArray

_SAME = 1e-12
_LARGE = ("rounds", "successes", "total reward", "regret")
_QUANTILES = tuple(f"q{level:g}" for level in QUANTILES)
_SAID = {"rounds": "rounds", "share": "share of rounds", "selected": "P(selected)"}
_SAID |= {"wrong way": "P(wrong way)", "no selection": "P(none selected)"}
_SAID |= {"correct selection": "P(best arm selected)", "without interval": "share without interval"}


@dataclass(frozen=True, slots=True)
class Place:
    """Scenario and horizon of a row."""

    scenario: str
    horizon: int

    def row(
        self, measure: str, statistic: str, value: float, mc_error: float, trials: int, **where: Any
    ) -> dict[str, Any]:
        """A row of the tidy table; `where`: arm, context, analysis, term, low, high, note."""
        return {
            "scenario": self.scenario,
            "horizon": self.horizon,
            "measure": measure,
            **{name: str(where.get(name, "")) for name in ("arm", "context", "analysis", "term")},
            "statistic": statistic,
            "value": float(value),
            "mc_error": float(mc_error),
            "low": where.get("low", math.nan),
            "high": where.get("high", math.nan),
            "trials": int(trials),
            "note": where.get("note", ""),
        }

    def rows(
        self, measure: str, values: FloatArray, *statistics: str, **where: Any
    ) -> Iterator[dict[str, Any]]:
        """Rows of one number per trial."""
        for statistic, value, error in estimated(values, statistics):
            yield self.row(measure, statistic, value, error, values.size, **where)

    def shares(self, measure: str, values: FloatArray, **where: Any) -> dict[str, Any]:
        """The row of a probability: of numbers of trials from 0 to 1."""
        [(_, value, error)] = estimated(np.asarray(values, dtype=np.float64), ("mean",))
        low, high = binomial_limits((values > 0.0).sum(), values.size, (values >= 1.0 - _SAME).sum())
        return self.row(measure, "probability", value, error, values.size, low=low, high=high, **where)

    def counted(self, measure: str, share: float, trials: int, **where: Any) -> dict[str, Any]:
        """The row of a share of trials."""
        low, high = (math.nan, math.nan)
        if not math.isnan(share):
            low, high = binomial_limits(round(share * trials), trials)
        error = binomial_error(share, trials)
        return self.row(measure, "probability", share, error, trials, low=low, high=high, **where)

    def missing(self, measure: str, reason: str, **where: Any) -> dict[str, Any]:
        """A row of what is not defined."""
        return self.row(measure, "probability", math.nan, math.nan, 0, note=reason, **where)

    def analysis_rows(self, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Rows of one term of an analysis, from its row of `Power.frame`."""
        where = {"analysis": row["analysis"], "term": row["term"]}
        runs, trials = row["runs"], row["runs"] + row["missing"]
        yield self.counted(row["kind"], row["rejection"], trials, **where)
        yield self.counted("coverage", row["coverage"], runs, **where)
        yield self.row("bias", "mean", row["bias"], row["bias_se"], runs, **where)
        note = f"in {row['absent']:,} trials there is no such result or term" if row["absent"] else ""
        yield self.counted("without interval", row["missing"] / trials, trials, note=note, **where)


def trial_rows(
    place: Place, cell: TrialCell, trials: Trials, reward: str, margin: float
) -> Iterator[dict[str, Any]]:
    """Rows of all that needs no analysis."""
    env = cell.env
    rounds = trials.rounds.sum(axis=1)
    for measure, numbers in (("rounds", rounds), ("share", rounds / cell.horizon)):
        for code, arm in enumerate(env.arms):
            yield from place.rows(measure, numbers[:, code], "mean", "sd", "quantiles", arm=arm)
    yield from place.rows(reward, trials.reward, "mean", "sd")
    yield from place.rows("regret", trials.regret, "mean", "sd")
    yield from _wrong_way_rows(place, cell, trials, margin)
    yield from _selection_rows(place, cell, trials)


def _wrong_way_rows(place: Place, cell: TrialCell, trials: Trials, margin: float) -> Iterator[dict[str, Any]]:
    best = best_arms(cell.env.means)
    for code, context in enumerate(cell.env.features or ("",)):
        reason = wrong_way_reason(cell.design, cell.env, best[code])
        if reason:
            yield place.missing("wrong way", reason, context=context)
            continue
        values = wrong_way_trials(trials.rounds[:, code], best[code], margin)
        yield place.shares("wrong way", values, context=context)


def _selection_rows(place: Place, cell: TrialCell, trials: Trials) -> Iterator[dict[str, Any]]:
    env, rule = cell.env, cell.rule
    if rule.source == "none":
        yield place.missing("selected", rule.text)
        return
    by_context = trials.selected.shape[1] > 1 or rule.by_context
    means = env.means if by_context else env.arm_means()[None]
    best = best_arms(means)
    for code, context in enumerate(env.features if by_context else ("",)):
        chosen = trials.selected[:, code]
        for arm_code, arm in enumerate(env.arms):
            yield place.shares("selected", chosen[:, arm_code], arm=arm, context=context)
        nobody = 1.0 - chosen.max(axis=1, initial=0.0).astype(bool)
        yield place.shares("no selection", nobody, context=context)
        reason = "" if (~best[code]).any() else "no arm is better than another"
        if env.dimension and chooses_by_vectors(cell.design):
            reason = "the best arm depends on the context vector"
        if reason:
            yield place.missing("correct selection", reason, context=context)
        else:
            correct = chosen[:, best[code]].sum(axis=1)
            yield place.shares("correct selection", correct, context=context)


def wide_rows(frame: pd.DataFrame, digits: int, errors: bool) -> pd.DataFrame:
    """Text of a table with a column for each scenario, and horizon where there are several."""
    several = frame["horizon"].nunique() > 1
    cells: dict[str, dict[str, str]] = {}
    columns: dict[str, None] = {}
    quantiles: dict[tuple[str, str], list[str]] = {}
    for row in frame.to_dict("records"):
        column = f"{row['scenario']}, n = {row['horizon']:,}" if several else row["scenario"]
        columns[column] = None
        if row["measure"] == "no test" or (row["measure"] == "without interval" and row["value"] == 0.0):
            continue
        places = 1 if row["measure"] in _LARGE else digits
        if row["statistic"] in _QUANTILES:
            label = f"{_label(row)}, quantiles {', '.join(f'{level:g}' for level in QUANTILES)}"
            quantiles.setdefault((label, column), []).append(
                f"{row['value']:,.{0 if places == 1 else places}f}"
            )
            cells.setdefault(label, {})[column] = "; ".join(quantiles[label, column])
            continue
        label = _label(row) + (", SD" if row["statistic"] == "sd" else "")
        if row["measure"] in (TYPE_I, POWER):  # side by side, whichever scenario comes first
            for kind in (TYPE_I, POWER):
                cells.setdefault(_label({**row, "measure": kind}), {})
        cells.setdefault(label, {})[column] = _cell(row, places, errors)
    rows = [
        {"characteristic": label, **{column: found.get(column, "") for column in columns}}
        for label, found in cells.items()
        if found
    ]
    return pd.DataFrame(rows)


def _cell(row: Mapping[Any, Any], places: int, errors: bool) -> str:
    if math.isnan(row["value"]):
        return "n/a"
    if errors and row["statistic"] == "probability":
        return share_text(row["value"], row["mc_error"], row["trials"], places, places + 1)
    text = f"{row['value']:,.{places}f}"
    if not errors:
        return text
    error = row["mc_error"]
    return f"{text} (n/a)" if math.isnan(error) else f"{text} ({error:,.{places + 1}f})"


def _label(row: Mapping[Any, Any]) -> str:
    label = _SAID.get(row["measure"], row["measure"])
    parts = [
        f"arm {row['arm']}" if row["arm"] != "" else "",
        f"context {row['context']}" if row["context"] != "" else "",
    ]
    parts += [row["term"], row["analysis"]]
    named = [part for part in parts if part]
    return f"{label}: {', '.join(named)}" if named else label
