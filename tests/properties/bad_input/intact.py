"""Sound logs of every kind, drawn at random: what the damage is done to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

LABELS: list[list[Any]] = [
    ["a", "b", "c"],
    ["Drug X", "Placebo"],
    [0, 1, 2],
    [3, 7],
    [False, True],
    [0.5, 1.5],
    ["01", "02", "10"],
    ["007", "7"],
]


@dataclass(frozen=True)
class Trial:
    """Columns of plain values, and the arguments of `AdaptiveLog` that read them."""

    columns: dict[str, list[Any]]
    options: dict[str, Any]

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), []))

    def with_columns(self, columns: dict[str, list[Any]]) -> Trial:
        """The same with other columns."""
        return replace(self, columns=columns)

    def rows(self, order: list[int]) -> Trial:
        """Some rows, in some order."""
        return self.with_columns(
            {name: [values[row] for row in order] for name, values in self.columns.items()}
        )

    def copy(self) -> Trial:
        """The same with columns that may be changed."""
        return self.with_columns({name: list(values) for name, values in self.columns.items()})


def draw_trial(rng: np.random.Generator, *, text_only: bool = False) -> Trial:
    """A log of 4 to 14 rounds; every arm is chosen at least once."""
    labels = LABELS[rng.integers(2 if text_only else len(LABELS))]
    size = int(rng.integers(4, 15))
    chosen = np.concatenate([np.arange(len(labels)), rng.integers(len(labels), size=size - len(labels))])
    chosen = rng.permutation(chosen)
    table = np.round(rng.dirichlet(np.full(len(labels), 5.0), size=size), 3) * 0.9 + 0.1 / len(labels)
    table[:, -1] = 1.0 - table[:, :-1].sum(axis=1)
    rewards = [
        rng.integers(0, 2, size=size).tolist(),
        rng.random(size).tolist(),
        np.round(10 * rng.random(size), 2).tolist(),
    ][rng.integers(3)]
    columns: dict[str, list[Any]] = {
        "arm": [labels[code] for code in chosen],
        "y": rewards,
        "p": table[np.arange(size), chosen].tolist(),
        "age": np.round(rng.normal(50, 9, size=size), 1).tolist(),
        "town": [["Rome", "Bern", "Köln"][code] for code in rng.integers(3, size=size)],
        "who": [f"u{number:02d}" for number in rng.integers(0, 40, size=size)],
        "week": np.sort(rng.integers(1, 4, size=size)).tolist(),
        "note": ["free text"] * size,
    }
    date_format = DATE_FORMATS[rng.integers(len(DATE_FORMATS))]
    days = np.datetime64("2024-01-30") + np.cumsum(rng.integers(1, 4, size=size))
    whole = rng.random() < 0.5
    columns["day"] = (
        (days - np.datetime64("2024-01-01")).astype(int).tolist() if whole else dated(days, date_format)
    )
    if rng.random() < 0.3:
        columns["week"] = dated(days[np.array(columns["week"]) - 1], date_format)
    options: dict[str, Any] = {"action": "arm", "reward": "y", "propensity": "p", "context": ["age", "town"]}
    if rng.random() < 0.5:
        columns |= {f"prob {label}": table[:, code].tolist() for code, label in enumerate(labels)}
        options["propensities"] = {label: f"prob {label}" for label in labels}
        if rng.random() < 0.3:
            options["propensities"] = "prob {arm}"
    if rng.random() < 0.4:
        options["arms"] = labels
    if rng.random() < 0.6:
        options["reward_range"] = (0.0, 1.0) if max(rewards) <= 1 else (0.0, 10.0)
    for role, name in (("round", "day"), ("batch", "week"), ("unit", "who")):
        if rng.random() < 0.6:
            options[role] = name
    texts = [
        role for role in ("round", "batch") if role in options and isinstance(columns[options[role]][0], str)
    ]
    if texts and (date_format in ("%m/%d/%Y", "%d.%m.%y") or rng.random() < 0.2):
        options["date_format"] = date_format
    if set(rewards) <= {0, 1} and rng.random() < 0.4:
        columns["y"] = ["Y" if reward else "N" for reward in rewards]
        options["success"] = "Y" if 1 in rewards else {"Y": 1, "N": 0}
    trial = Trial(columns, options)
    if rng.random() < 0.25 and ("round" in options or "batch" in options):
        # Stored newest first; rows of a batch stay as they stood.
        options["sort"] = True
        if "round" in options:
            return trial.rows(list(range(size))[::-1])
    return trial


DATE_FORMATS = ["%Y-%m-%d", "%Y-%m-%d", "%m/%d/%Y", "%d-%b-%Y", "%d.%m.%y"]


def dated(days: np.ndarray, date_format: str) -> list[str]:
    """Days as text of a format."""
    return [day.strftime(date_format) for day in days.astype(object)]


@dataclass(frozen=True)
class Study:
    """A trial as an ADSL and an analysis data set, and the arguments of `read_adam`."""

    adsl: dict[str, list[Any]]
    analysis: dict[str, list[Any]]
    options: dict[str, Any]

    def copy(self) -> Study:
        """The same with columns that may be changed."""
        return replace(
            self,
            adsl={name: list(values) for name, values in self.adsl.items()},
            analysis={name: list(values) for name, values in self.analysis.items()},
        )


def draw_study(rng: np.random.Generator) -> Study:
    """A trial of 4 to 13 subjects, one of them outside the population, records in any order."""
    size = int(rng.integers(4, 14))
    names = [f"S-{number:03d}" for number in rng.choice(900, size=size, replace=False)]
    arms = ["Drug" if draw < 0.5 else "Placebo" for draw in rng.random(size)]
    arms[:2] = ["Drug", "Placebo"]
    flags = ["Y"] * size
    flags[int(rng.integers(2, size))] = "N" if rng.random() < 0.7 else ""
    stage = np.sort(rng.integers(1, 3, size=size))
    chance = {1: 0.5, 2: 0.625}
    adsl: dict[str, list[Any]] = {
        "USUBJID": names,
        "ITTFL": flags,
        "TRT01P": arms,
        "TRT01A": list(arms),
        "RANDDT": (22000 + np.sort(rng.integers(0, 30, size=size))).tolist(),
        "RANDNUM": list(range(1, size + 1)),
        "STAGE": stage.tolist(),
        "AGE": np.round(rng.normal(50, 9, size=size), 1).tolist(),
        "SITE": [["Rome", "Bern"][code] for code in rng.integers(2, size=size)],
        "PROB": [chance[s] if arm == "Drug" else 1 - chance[s] for s, arm in zip(stage, arms, strict=True)],
    }
    order = rng.permutation(size).tolist()
    adsl = {name: [values[row] for row in order] for name, values in adsl.items()}
    values = rng.integers(0, 2, size=size).tolist() if rng.random() < 0.5 else rng.random(size).tolist()
    analysis: dict[str, list[Any]] = {
        "USUBJID": [name for name in names for _ in range(3)],
        "PARAMCD": ["RESP", "RESP", "OTHER"] * size,
        "AVISITN": [8, 4, 8] * size,
        "AVAL": [entry for value in values for entry in (value, 0.25, 7)],
    }
    mixed = rng.permutation(3 * size).tolist()
    analysis = {name: [column[row] for row in mixed] for name, column in analysis.items()}
    options: dict[str, Any] = {
        "parameter": "RESP",
        "order": ["RANDDT", "RANDNUM"],
        "records": {"AVISITN": 8},
        "covariates": ["AGE", "SITE"],
        "propensity": "PROB",
    }
    if rng.random() < 0.5:
        options["batch"] = "STAGE"
    if rng.random() < 0.5:
        options["reward_range"] = (0.0, 1.0)
    return Study(adsl, analysis, options)


def draw_events(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Decisions with their costs, as dsjson has them; each lists its actions in an order of its own."""
    arms = [["news", "sport"], ["news", "sport", "art"]][rng.integers(2)]
    events = []
    for number in range(int(rng.integers(3, 9))):
        listed = [arms[place] for place in rng.permutation(len(arms))]
        ranking = (1 + rng.permutation(len(arms))).tolist()
        chances = np.round(rng.dirichlet(np.full(len(arms), 4.0)) * 0.9 + 0.1 / len(arms), 4).tolist()
        chances[-1] = 1.0 - sum(chances[:-1])
        events.append(
            {
                "_label_cost": -float(np.round(rng.random(), 3)),
                "_label_probability": chances[0],
                "_label_Action": ranking[0],
                "_labelIndex": ranking[0] - 1,
                "Timestamp": f"2024-01-{number + 1:02d}T09:30:00Z",
                "EventId": f"e{number}",
                "a": ranking,
                "p": chances,
                "c": {
                    "hour": int(rng.integers(24)),
                    "user": {"age": float(np.round(rng.normal(40, 9), 1)), "town": "Köln"},
                    "_multi": [{"article": {"id": name}} for name in listed],
                },
                "VWState": {"m": "model"},
            }
        )
    return events


def draw_campaign(rng: np.random.Generator) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Impressions and items of an Open Bandit folder, impressions in any order of time."""
    size = int(rng.integers(4, 13))
    seconds = rng.permutation(np.arange(1, size + 1) * 7)
    times = [str(np.datetime64("2019-11-24T00:00:00") + int(s)).replace("T", " ") for s in seconds]
    impressions: dict[str, list[Any]] = {
        "timestamp": [f"{time}+00:00" for time in times],
        "item_id": rng.integers(0, 4, size=size).tolist(),
        "position": rng.integers(1, 4, size=size).tolist(),
        "click": rng.integers(0, 2, size=size).tolist(),
        "propensity_score": np.round(0.01 + 0.9 * rng.random(size), 6).tolist(),
        "user_feature_0": [f"{code:x}f3a" for code in rng.integers(3, size=size)],
        "user-item_affinity_0": np.round(rng.random(size), 2).tolist(),
    }
    return impressions, {"item_id": [0, 1, 2, 3], "item_feature_0": [0.5, 0.25, -1.0, 2.0]}
