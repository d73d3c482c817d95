"""Damaged inputs of every format, drawn at random; the kinds of damage come in turn."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import damage_bytes
import damage_events
import damage_frames
import damage_tables
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from adam_cases import adam_csv, adam_frames, adam_transport
from foreign_readings import bandit_content, bandit_tables, events_content
from intact import Trial, draw_campaign, draw_events, draw_trial
from judge import Case
from oracle import Content, MustRefuse, log_content, read_csv, roles_of, seen

from adaptinf.formats import read_dsjson, read_open_bandit
from adaptinf.log import AdaptiveLog, read_log
from adaptinf.log.validation import nested_options

Rng = np.random.Generator
Maker = Callable[[Rng, Path], Case]


def answer(reading: Callable[[], Content]) -> Content | None:
    """What a literal reading says; None where it refuses."""
    try:
        return reading()
    except MustRefuse:
        return None


def frame_case(kind: str, make: Callable[[Rng, Trial], Any], harmless: bool, rng: Rng, folder: Path) -> Case:
    """A frame given to `AdaptiveLog`."""
    trial = draw_trial(rng)
    frame = make(rng, trial)
    columns = damage_frames.content_columns(frame)
    damaged = None if columns is None else answer(lambda: log_content(columns, trial.options))
    intact = log_content(trial.columns, trial.options)
    return Case(
        kind,
        lambda: AdaptiveLog(frame, **nested_options(trial.options)),
        intact,
        damaged,
        harmless,
        keep=frame,
    )


def bytes_case(
    kind: str, make: Callable[[Trial, Rng], bytes], harmless: bool, rng: Rng, folder: Path
) -> Case:
    """A foreign CSV."""
    trial = draw_trial(rng)
    data = make(trial, rng)
    path = folder / "foreign.csv"
    path.write_bytes(data)
    roles = roles_of(trial.options)
    damaged = answer(lambda: log_content(read_csv(data, roles, any_file=True), trial.options))
    intact = log_content(trial.columns, trial.options)
    return Case(kind, lambda: read_log(path, **trial.options), intact, damaged, harmless, (path.name,), data)


def used(trial: Trial) -> list[str]:
    """Columns that the options name."""
    return damage_frames.used(trial)


def in_place(change: Callable[..., Any], trial: Trial, rng: Rng) -> bytes:
    table = damage_tables.table_of(trial.columns, used(trial))
    change(rng, table)
    return damage_tables.write(table)


def written(change: Callable[..., bytes], trial: Trial, rng: Rng) -> bytes:
    return change(rng, damage_tables.table_of(trial.columns, used(trial)))


def damaged_bytes(change: Callable[..., bytes], trial: Trial, rng: Rng) -> bytes:
    return change(rng, damage_tables.write(damage_tables.table_of(trial.columns, used(trial))))


def own_case(
    suffix: str, sidecar: bool, kind: str, change: Callable[..., bytes], rng: Rng, folder: Path
) -> Case:
    """A file that the library wrote, or the sidecar of it: refused, or read back as it was."""
    trial = draw_trial(rng)
    log = AdaptiveLog(
        pd.DataFrame(trial.columns),
        **nested_options({**trial.options, "design": "UCB", "feedback_rounds": trial.size}),
    )
    path = folder / f"own{suffix}"
    (log.to_parquet if suffix == ".parquet" else log.to_csv)(path)
    target = path.with_name(path.name + ".json") if sidecar else path
    target.write_bytes(change(rng, target.read_bytes()))

    def read() -> AdaptiveLog:
        again = read_log(path)
        assert again.equals(log) or seen(again) != seen(log), "metadata differ"
        return again

    return Case(kind, read, seen(log), None, False, (path.name,), target)


def parquet_case(
    kind: str, make: Callable[[Rng, Trial], Any], harmless: bool, rng: Rng, folder: Path
) -> Case:
    """A frame that pandas, or polars, wrote as Parquet; as it is where they cannot."""
    trial = draw_trial(rng)
    path = folder / "foreign.parquet"
    frame = make(rng, trial)
    try:
        frame.write_parquet(path) if hasattr(frame, "write_parquet") else frame.to_parquet(path)
    except Exception:  # the writer's own, of any kind
        pq.write_table(pa.table(trial.columns), path)
    return foreign_parquet(kind, path, trial, harmless)


def parquet_bytes(kind: str, change: Callable[..., bytes], rng: Rng, folder: Path) -> Case:
    """A foreign Parquet file with damaged bytes, pages with or without a checksum."""
    trial, path = draw_trial(rng), folder / "foreign.parquet"
    compression = ["snappy", "none", "zstd", "gzip"][rng.integers(4)]
    table = pa.table(trial.columns)
    pq.write_table(table, path, compression=compression, write_page_checksum=bool(rng.random() < 0.5))
    path.write_bytes(change(rng, path.read_bytes()))
    return foreign_parquet(kind, path, trial, False)


def foreign_parquet(kind: str, path: Path, trial: Trial, harmless: bool) -> Case:
    """What pyarrow finds in a file decides; a flipped bit of a value cannot be seen."""
    try:
        table = pq.read_table(path, page_checksum_verification=False)
        columns = dict(
            zip(table.column_names, (column.to_pylist() for column in table.columns), strict=False)
        )
        unique = len(columns) == table.num_columns
    except Exception:  # pyarrow's own, of any kind
        unique = False
    damaged = answer(lambda: log_content(columns, trial.options)) if unique else None
    intact = log_content(trial.columns, trial.options)
    return Case(kind, lambda: read_log(path, **trial.options), intact, damaged, harmless, (path.name,), path)


def events_case(
    kind: str, make: Callable[[Rng, list[Any]], bytes], harmless: bool, rng: Rng, folder: Path
) -> Case:
    """A dsjson file."""
    events = draw_events(rng)
    data = make(rng, events)
    path = folder / "events.dsjson"
    path.write_bytes(data)
    intact = events_content(damage_events.joined(damage_events.lines(events)))
    damaged = answer(lambda: events_content(data))
    return Case(
        kind, lambda: read_dsjson(path, action_id="article.id"), intact, damaged, harmless, (path.name,), data
    )


def event_bytes(change: Callable[..., bytes], rng: Rng, events: list[Any]) -> bytes:
    return change(rng, damage_events.joined(damage_events.lines(events)))


def bandit_case(
    kind: str, change: Callable[..., bytes], items: bool, harmless: bool, rng: Rng, folder: Path
) -> Case:
    """A folder of the Open Bandit Dataset, one of its two files damaged."""
    impressions, listed = draw_campaign(rng)
    place = folder / "random" / "men"
    place.mkdir(parents=True)
    affinities = bool(rng.random() < 0.5)
    names = list(impressions) if affinities else [name for name in impressions if "affinity" not in name]
    tables = [damage_tables.table_of(impressions, names), damage_tables.table_of(listed, ["item_id"])]
    data = [damage_tables.write(table) for table in tables]
    data[items] = change(rng, tables[items])
    for name, content in zip(("men.csv", "item_context.csv"), data, strict=True):
        (place / name).write_bytes(content)
    damaged = answer(lambda: bandit_content(*bandit_tables(*data), affinities))
    intact = bandit_content(impressions, listed, affinities)
    read = partial(read_open_bandit, place, affinities=affinities)
    return Case(kind, read, intact, damaged, harmless, ("men.csv", "item_context.csv"), data)


def no_file(suffix: str, what: str, rng: Rng, folder: Path) -> Case:
    """A path where there is no file, or a folder, or what cannot be a path."""
    path: Any = folder / f"thing{suffix}"
    if what == "a folder":
        path.mkdir()
    elif what == "a NUL in the name":
        path = f"{folder}/thi\0ng{suffix}"
    elif what == "a name too long":
        path = folder / ("x" * 300 + suffix)
    elif what == "a broken link":
        path.symlink_to(folder / "nowhere")
    elif what == "a file for a folder":
        (folder / "file").write_text("x")
        path = folder / "file" / f"thing{suffix}"
    readers: dict[str, Callable[[], Any]] = {
        "": lambda: read_open_bandit(path),
        ".dsjson": lambda: read_dsjson(path),
        ".csv": lambda: read_log(path, action="a", reward="r"),
        ".parquet": lambda: read_log(path),
    }
    return Case(what, readers[suffix], {}, None, False, ("thing", "thi", "xxx"))


PLACES = [
    "no file",
    "a folder",
    "a NUL in the name",
    "a name too long",
    "a broken link",
    "a file for a folder",
]
BYTES = {**damage_bytes.ANYWHERE, **damage_bytes.TEXT}


def on_table(change: Callable[..., Any], rng: Rng, table: damage_tables.Table) -> bytes:
    change(rng, table)
    return damage_tables.write(table)


def on_bytes(change: Callable[..., bytes], rng: Rng, table: damage_tables.Table) -> bytes:
    return change(rng, damage_tables.write(table))


def tables() -> Iterator[tuple[str, Callable[[Rng, damage_tables.Table], bytes], bool]]:
    """Every damage to a table of text as a CSV file: its name, what makes the file, if it is harmless."""
    for changes, how, harmless in (
        (damage_tables.IN_PLACE, on_table, False),
        (damage_tables.HARMLESS_IN_PLACE, on_table, True),
        (BYTES, on_bytes, False),
        (damage_bytes.HARMLESS, on_bytes, True),
    ):
        for name, change in changes.items():
            yield name, partial(how, change), harmless
    for name, change in damage_tables.WRITTEN.items():
        yield name, change, False
    for name, change in damage_tables.HARMLESS_WRITTEN.items():
        yield name, change, True


def makers() -> dict[str, list[Maker]]:
    """Makers of cases by format, one a kind of damage."""
    found: dict[str, list[Maker]] = {
        "frame": [
            partial(frame_case, name, make, harmless)
            for kinds, harmless in ((damage_frames.FRAMES, False), (damage_frames.HARMLESS, True))
            for name, make in kinds.items()
        ],
        "foreign CSV": [
            partial(bytes_case, name, partial(written, change), harmless)
            for name, change, harmless in tables()
        ],
        "own CSV": [partial(own_case, ".csv", False, name, change) for name, change in BYTES.items()]
        + [partial(own_case, ".csv", True, f"sidecar, {name}", change) for name, change in BYTES.items()],
        "own Parquet": [
            partial(own_case, ".parquet", False, name, change)
            for name, change in damage_bytes.ANYWHERE.items()
        ],
        "foreign Parquet": [parquet_case_of(name, make) for name, make in damage_frames.FRAMES.items()]
        + [partial(parquet_case, name, make, True) for name, make in damage_frames.HARMLESS.items()]
        + [partial(parquet_bytes, name, change) for name, change in damage_bytes.ANYWHERE.items()] * 2,
        "dsjson": [
            partial(events_case, name, make, harmless)
            for kinds, harmless in ((damage_events.EVENTS, False), (damage_events.HARMLESS, True))
            for name, make in kinds.items()
        ]
        + [partial(events_case, name, partial(event_bytes, change), False) for name, change in BYTES.items()]
        + [
            partial(events_case, name, partial(event_bytes, change), True)
            for name, change in damage_bytes.HARMLESS.items()
        ],
        "Open Bandit": [
            partial(bandit_case, f"{'items' if items else 'impressions'}, {name}", change, items, harmless)
            for name, change, harmless in tables()
            for items in (False, False, True)
        ],
        "ADaM frames": adam_frames(),
        "ADaM CSV": adam_csv(tables),
        "ADaM transport": adam_transport(),
    }
    for kind, suffix in (
        ("foreign CSV", ".csv"),
        ("own Parquet", ".parquet"),
        ("dsjson", ".dsjson"),
        ("Open Bandit", ""),
    ):
        found[kind] += [
            partial(no_file, suffix, what) for what in PLACES if (suffix, what) != ("", "a folder")
        ]
    return found


def parquet_case_of(name: str, make: Callable[..., Any]) -> Maker:
    return partial(parquet_case, name, make, False)


def in_turn(rng: Rng, counts: dict[str, int]) -> Iterator[tuple[str, Maker]]:
    """So many makers of every format: the kinds of damage come in a random order, and then again."""
    for fmt, listed in makers().items():
        order = itertools.chain.from_iterable(rng.permutation(len(listed)) for _ in itertools.count())
        for place in itertools.islice(order, counts[fmt]):
            yield fmt, listed[place]
