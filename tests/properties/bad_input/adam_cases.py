"""Damaged trials as ADaM data sets: frames, CSV and SAS transport files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import damage_bytes
import damage_frames
import damage_tables
import numpy as np
import pandas as pd
from foreign_readings import adam_content, read_transport
from intact import Study, Trial, draw_study
from judge import Case
from oracle import Content, MustRefuse, read_csv, text_of
from transport import write_transport

from adaptinf.formats import read_adam

Rng = np.random.Generator
USED = (
    ["USUBJID", "ITTFL", "TRT01P", "TRT01A", "RANDDT", "RANDNUM", "AGE", "SITE", "PROB"],
    ["USUBJID", "PARAMCD", "AVISITN", "AVAL"],
)
TEXT = {"USUBJID", "PARAMCD"}
ROLES = {"TRT01P": "label", "TRT01A": "label", "AGE": "context", "SITE": "context"}


def some(rng: Rng, study: Study, flag: str = "Y") -> int:
    """A subject of the population."""
    rows = [row for row, value in enumerate(study.adsl["ITTFL"]) if value == flag]
    return rows[rng.integers(len(rows))]


def put(rng: Rng, study: Study, name: str, value: Any, everyone: bool = False) -> None:
    """A value of ADSL for one subject of the population, or for all who have it."""
    row = some(rng, study)
    old = study.adsl[name][row]
    for at in range(len(study.adsl[name])):
        if at == row or (everyone and study.adsl[name][at] == old):
            study.adsl[name][at] = value(old) if callable(value) else value


def record(rng: Rng, study: Study) -> int:
    """A record that the log needs."""
    wanted = {
        name for name, flag in zip(study.adsl["USUBJID"], study.adsl["ITTFL"], strict=True) if flag == "Y"
    }
    rows = [
        row
        for row, who in enumerate(study.analysis["USUBJID"])
        if who in wanted and study.analysis["PARAMCD"][row] == "RESP" and study.analysis["AVISITN"][row] == 8
    ]
    return rows[rng.integers(len(rows))]


def put_record(rng: Rng, study: Study, name: str, value: Any) -> None:
    row = record(rng, study)
    study.analysis[name][row] = value(study.analysis[name][row]) if callable(value) else value


def columns_of(columns: dict[str, list[Any]], change: Callable[[str, list[Any]], list[Any]]) -> None:
    for name in list(columns):
        columns[name] = change(name, columns[name])


def repeat(columns: dict[str, list[Any]], row: int, **other: Any) -> None:
    """A row once more, at the end, with other values."""
    for name, values in columns.items():
        values.append(other.get(name, values[row]))


def remove(columns: dict[str, list[Any]], row: int) -> None:
    for values in columns.values():
        del values[row]


def rename(columns: dict[str, list[Any]], old: str, new: str) -> None:
    columns[new] = columns.pop(old)


def everywhere(study: Study, name: str, value: Callable[[Any], Any]) -> None:
    study.adsl[name] = [value(old) for old in study.adsl[name]]


STUDIES: dict[str, Callable[[Rng, Study], Any]] = {
    **{
        f"a flag is {flag!r}": (lambda rng, s, flag=flag: put(rng, s, "ITTFL", flag))
        for flag in ("Yes", "y", "N", "", "No", "1", "Y ", " Y", "TRUE", "U", "NA")
    },
    "all flags are Yes and No": lambda rng, s: everywhere(
        s, "ITTFL", lambda f: {"Y": "Yes", "N": "No"}.get(f, f)
    ),
    "half of the flags are Yes": lambda rng, s: put(rng, s, "ITTFL", "Yes", bool(rng.random() < 0.5)),
    "all flags are 1 and 0": lambda rng, s: everywhere(s, "ITTFL", lambda f: 1 if f == "Y" else 0),
    "all flags small": lambda rng, s: everywhere(s, "ITTFL", str.lower),
    "nobody": lambda rng, s: everywhere(s, "ITTFL", lambda f: "N"),
    "order as text": lambda rng, s: everywhere(s, "RANDNUM", lambda n: f"R{n}"),
    "order as numbers in text": lambda rng, s: everywhere(s, "RANDDT", lambda n: f"#{n % 17}"),
    "order as dates in words": lambda rng, s: everywhere(s, "RANDDT", lambda n: f"{n % 28 + 1:02d}JAN2024"),
    "order as dates of another country": lambda rng, s: everywhere(
        s, "RANDDT", lambda n: f"{n % 28 + 1}/02/2024"
    ),
    "order as ISO dates": lambda rng, s: everywhere(
        s, "RANDDT", lambda n: str(np.datetime64("2024-01-01") + n % 99)
    ),
    "order tied": lambda rng, s: (
        everywhere(s, "RANDNUM", lambda n: 1) or everywhere(s, "RANDDT", lambda n: 22000)
    ),
    "order missing": lambda rng, s: put(rng, s, "RANDNUM", None),
    "order negative": lambda rng, s: put(rng, s, "RANDDT", lambda n: -n),
    "a subject twice in ADSL": lambda rng, s: repeat(s.adsl, some(rng, s), RANDNUM=99),
    "a subject twice in ADSL, once outside": lambda rng, s: repeat(
        s.adsl, some(rng, s), RANDNUM=99, ITTFL="N"
    ),
    "a subject lost from ADSL": lambda rng, s: remove(s.adsl, some(rng, s)),
    "a subject lost from the analysis": lambda rng, s: remove(s.analysis, record(rng, s)),
    "a subject that ADSL lacks": lambda rng, s: repeat(s.analysis, record(rng, s), USUBJID="S-999"),
    "a subject that ADSL lacks, another record": lambda rng, s: repeat(
        s.analysis, record(rng, s), USUBJID="S-999", PARAMCD="OTHER"
    ),
    "a name of a subject in small letters": lambda rng, s: put_record(rng, s, "USUBJID", str.lower),
    "a name of a subject with a blank": lambda rng, s: put_record(rng, s, "USUBJID", lambda who: who + " "),
    "a name of a subject missing": lambda rng, s: put(rng, s, "USUBJID", None),
    "a name of a subject missing in the analysis": lambda rng, s: put_record(rng, s, "USUBJID", None),
    "a name of a subject empty": lambda rng, s: put(rng, s, "USUBJID", ""),
    "two names of subjects differ by a blank": lambda rng, s: repeat(
        s.adsl, (row := some(rng, s)), USUBJID=s.adsl["USUBJID"][row] + " ", RANDNUM=98
    ),
    "a record twice": lambda rng, s: repeat(s.analysis, record(rng, s)),
    "a record twice with another value": lambda rng, s: repeat(s.analysis, record(rng, s), AVAL=0.75),
    "a record of the parameter in small letters": lambda rng, s: put_record(rng, s, "PARAMCD", "Resp"),
    "the parameter in small letters": lambda rng, s: columns_of(
        s.analysis, lambda name, values: [v.lower() for v in values] if name == "PARAMCD" else values
    ),
    "a parameter with a blank": lambda rng, s: put_record(rng, s, "PARAMCD", "RESP "),
    "a parameter missing": lambda rng, s: put_record(rng, s, "PARAMCD", None),
    "a visit as text": lambda rng, s: put_record(rng, s, "AVISITN", "8"),
    "a visit missing": lambda rng, s: put_record(rng, s, "AVISITN", None),
    "all visits as text": lambda rng, s: columns_of(
        s.analysis, lambda name, values: [f"{v}" for v in values] if name == "AVISITN" else values
    ),
    "an outcome missing": lambda rng, s: put_record(rng, s, "AVAL", None),
    "an outcome as text": lambda rng, s: put_record(rng, s, "AVAL", "0.5 mg"),
    "an outcome of 999": lambda rng, s: put_record(rng, s, "AVAL", 999),
    "a treatment missing": lambda rng, s: put(rng, s, "TRT01P", None),
    "a treatment empty": lambda rng, s: put(rng, s, "TRT01P", ""),
    "a treatment with a blank": lambda rng, s: put(rng, s, "TRT01P", lambda arm: arm + " "),
    "a treatment in capitals": lambda rng, s: put(rng, s, "TRT01P", str.upper),
    "a treatment actually missing": lambda rng, s: put(rng, s, "TRT01A", None),
    "another treatment": lambda rng, s: put(rng, s, "TRT01A", "Drug"),
    "a covariate missing": lambda rng, s: put(rng, s, "AGE", None),
    "a site missing": lambda rng, s: put(rng, s, "SITE", None),
    "a probability in percent": lambda rng, s: put(rng, s, "PROB", lambda p: 100 * p),
    "a probability missing": lambda rng, s: put(rng, s, "PROB", None),
    "a probability of zero": lambda rng, s: put(rng, s, "PROB", 0.0),
    "a stage that returns": lambda rng, s: put(rng, s, "STAGE", lambda stage: 3 - stage),
    "names of columns in small letters": lambda rng, s: rename(s.adsl, "USUBJID", "usubjid"),
    "names of columns in small letters, analysis": lambda rng, s: rename(s.analysis, "AVAL", "aval"),
    "no flag": lambda rng, s: s.adsl.pop("ITTFL") and None,
    "no outcome": lambda rng, s: s.analysis.pop("AVAL") and None,
    "ADSL for the analysis": lambda rng, s: s.analysis.clear() or s.analysis.update(s.adsl),
    "no subjects": lambda rng, s: columns_of(s.adsl, lambda name, values: []),
    "no records": lambda rng, s: columns_of(s.analysis, lambda name, values: []),
}
HARMLESS: dict[str, Callable[[Rng, Study], Any]] = {
    "as it is": lambda rng, s: None,
    "an outcome missing in another record": lambda rng, s: repeat(
        s.analysis, record(rng, s), PARAMCD="OTHER", AVAL=None
    ),
    "a subject outside without a treatment": lambda rng, s: repeat(
        s.adsl, some(rng, s), USUBJID="S-998", ITTFL="N", TRT01P=None, RANDNUM=None
    ),
    "more columns": lambda rng, s: s.adsl.update(SEX=["F"] * len(s.adsl["USUBJID"])),
}


def padded(rng: Rng, study: Study, length: int) -> None:
    """A last column of text, mostly blank, that makes the last card end in blanks."""
    study.adsl["NOTE"] = ["x" * length] + [None] * (len(study.adsl["USUBJID"]) - 1)


TRANSPORT: dict[str, Callable[[Rng, Study], Any]] = {
    **{
        f"last column of {n} blanks": (lambda rng, s, n=n: padded(rng, s, n))
        for n in (8, 16, 30, 47, 64, 79, 80, 150)
    },
    "text with umlauts": lambda rng, s: everywhere(s, "SITE", lambda site: site + "ü"),
    "numbers of every size": lambda rng, s: everywhere(
        s, "AGE", lambda age: age * 10.0 ** int(rng.integers(-30, 30))
    ),
    "zeros": lambda rng, s: everywhere(s, "AGE", lambda age: 0.0),
}
"""Good transport files."""


def content(study: Study) -> Content:
    """What the study says; a blank text is missing in every format."""
    return adam_content(study.adsl, study.analysis, study.options)


def answer(reading: Callable[[], Content]) -> Content | None:
    try:
        return reading()
    except MustRefuse:
        return None


def frames_case(
    kind: str, change: Callable[[Rng, Study], Any], harmless: bool, rng: Rng, folder: Path
) -> Case:
    """Two frames."""
    study = draw_study(rng)
    intact = content(study)
    damaged = study.copy()
    change(rng, damaged)
    frames = [damage_frames.frame_of(columns) for columns in (damaged.adsl, damaged.analysis)]
    return Case(
        kind,
        lambda: read_adam(frames[0], frames[1], **damaged.options),
        intact,
        answer(lambda: content(damaged)),
        harmless,
        keep=frames,
    )


def odd_frames_case(kind: str, make: Callable[[Rng, Trial], Any], side: int, rng: Rng, folder: Path) -> Case:
    """Two frames, one of them with odd values or types."""
    study = draw_study(rng)
    intact = content(study)
    sides: list[Any] = [study.adsl, study.analysis]
    trial = Trial(sides[side], {"context": list(USED[side])})
    frames = [damage_frames.frame_of(columns) for columns in sides]
    frames[side] = make(rng, trial)
    columns = [damage_frames.content_columns(frame) for frame in frames]
    damaged = None if None in columns else answer(lambda: adam_content(columns[0], columns[1], study.options))
    return Case(kind, lambda: read_adam(frames[0], frames[1], **study.options), intact, damaged, keep=frames)


def adam_frames() -> list[Any]:
    """Makers of cases with frames."""
    plain = [
        name
        for name in damage_frames.FRAMES
        if name.startswith(("a value", "a column", "a row", "rows", "all", "no rows", "no columns", "a null"))
    ]
    return [
        partial(frames_case, name, change, harmless)
        for kinds, harmless in ((STUDIES, False), (HARMLESS, True))
        for name, change in kinds.items()
    ] + [
        partial(
            odd_frames_case, f"{name}, {'analysis' if side else 'ADSL'}", damage_frames.FRAMES[name], side
        )
        for name in plain
        for side in (0, 1)
    ]


def read_text(data: bytes) -> dict[str, list[Any]]:
    """A CSV whose identifiers are text as it stands there."""
    columns = read_csv(data, ROLES)
    quoted = {name for name in columns if name in TEXT}
    if quoted:
        import csv
        import io

        rows = [row for row in csv.reader(io.StringIO(text_of(data), newline="")) if row]
        for name in quoted:
            at = rows[0].index(name)
            columns[name] = [
                None if value is None else row[at] for value, row in zip(columns[name], rows[1:], strict=True)
            ]
            columns[name] = [None if value in (None, "") else value for value in columns[name]]
    return columns


def csv_case(
    kind: str, change: Callable[..., bytes], side: int, harmless: bool, rng: Rng, folder: Path
) -> Case:
    """Two CSV files, one damaged."""
    study = draw_study(rng)
    tables = [
        damage_tables.table_of(columns, used)
        for columns, used in zip((study.adsl, study.analysis), USED, strict=True)
    ]
    data = [damage_tables.write(table) for table in tables]
    data[side] = change(rng, tables[side])
    return files_case(kind, data, ".csv", read_text, study, harmless, folder)


def study_csv_case(
    kind: str, change: Callable[[Rng, Study], Any], harmless: bool, rng: Rng, folder: Path
) -> Case:
    """A damaged trial as two CSV files."""
    study = draw_study(rng)
    damaged = study.copy()
    change(rng, damaged)
    data = [
        damage_tables.write(damage_tables.table_of(columns, []))
        for columns in (damaged.adsl, damaged.analysis)
    ]
    return files_case(kind, data, ".csv", read_text, study, harmless, folder)


def files_case(
    kind: str, data: list[bytes], suffix: str, reading: Any, study: Study, harmless: bool, folder: Path
) -> Case:
    """Two files, and what a literal reading makes of them."""
    paths = [folder / f"adsl{suffix}", folder / f"adeff{suffix}"]
    for path, content_bytes in zip(paths, data, strict=True):
        path.write_bytes(content_bytes)
    damaged = answer(lambda: adam_content(reading(data[0]), reading(data[1]), study.options))
    names = tuple(path.name for path in paths)
    return Case(
        kind,
        lambda: read_adam(paths[0], paths[1], **study.options),
        content(study),
        damaged,
        harmless,
        names,
        data,
    )


def adam_csv(tables: Callable[[], Iterable[tuple[str, Any, bool]]]) -> list[Any]:
    """Makers of cases with CSV files."""
    return [
        partial(csv_case, f"{'adeff' if side else 'adsl'}, {name}", change, side, harmless)
        for name, change, harmless in tables()
        for side in (0, 1)
    ] + [
        partial(study_csv_case, name, change, harmless)
        for kinds, harmless in ((STUDIES, False), (HARMLESS, True))
        for name, change in kinds.items()
    ]


def transport_bytes(study: Study, folder: Path) -> list[bytes]:
    """The two data sets as transport files."""
    return [
        write_transport(folder / f"{name}.xpt", pd.DataFrame(columns), name.upper()).read_bytes()
        for name, columns in (("adsl", study.adsl), ("adeff", study.analysis))
    ]


def transport_case(
    kind: str, change: Callable[[Rng, Study], Any], harmless: bool, rng: Rng, folder: Path
) -> Case:
    """A damaged trial as two transport files."""
    study = draw_study(rng)
    damaged = study.copy()
    change(rng, damaged)
    data = transport_bytes(damaged, folder)
    return files_case(kind, data, ".xpt", read_transport, study, harmless, folder)


def transport_bytes_case(kind: str, change: Callable[..., bytes], side: int, rng: Rng, folder: Path) -> Case:
    """Two transport files, one with damaged bytes; half of the damage is to its records."""
    study = draw_study(rng)
    data = transport_bytes(study, folder)
    start = data[side].index(b"HEADER RECORD*******OBS ") + 80 if rng.random() < 0.5 else 0
    data[side] = data[side][:start] + change(rng, data[side][start:])
    return files_case(kind, data, ".xpt", read_transport, study, False, folder)


def cards(change: Callable[[Rng, list[bytes]], Any]) -> Callable[[Rng, bytes], bytes]:
    """Cards of 80 bytes changed in place."""

    def make(rng: Rng, data: bytes) -> bytes:
        listed = [data[at : at + 80] for at in range(0, len(data), 80)]
        change(rng, listed)
        return b"".join(listed)

    return make


def at(rng: Rng, listed: list[bytes]) -> int:
    return int(rng.integers(len(listed)))


CARDS: dict[str, Callable[[Rng, bytes], bytes]] = {
    "last card lost": cards(lambda rng, c: c.pop()),
    "last cards lost": cards(lambda rng, c: c.__delitem__(slice(-int(rng.integers(2, 5)), None))),
    "a card lost": cards(lambda rng, c: c.pop(at(rng, c))),
    "a card twice": cards(lambda rng, c: c.insert(at(rng, c), c[at(rng, c)])),
    "cards swapped": cards(lambda rng, c: c.insert(at(rng, c), c.pop(at(rng, c)))),
    "a blank card at the end": cards(lambda rng, c: c.append(b" " * 80)),
    "blank cards at the end": cards(lambda rng, c: c.extend([b" " * 80] * 5)),
    "a card of NULs": cards(lambda rng, c: c.__setitem__(at(rng, c), bytes(80))),
    "newlines behind cards": cards(lambda rng, c: c.__setitem__(slice(None), [card + b"\n" for card in c])),
    "a second data set": lambda rng, data: data + data[240:],
    "padding lost": lambda rng, data: data.rstrip(b" "),
}


def adam_transport() -> list[Any]:
    """Makers of cases with transport files."""
    text_only = {"order as numbers in text", "a visit as text", "an outcome as text", "all flags are 1 and 0"}
    return (
        [
            partial(transport_case, name, change, False)
            for name, change in STUDIES.items()
            if name not in text_only
        ]
        + [partial(transport_case, name, change, True) for name, change in {**HARMLESS, **TRANSPORT}.items()]
        * 2
        + [
            partial(transport_bytes_case, f"{'adeff' if side else 'adsl'}, {name}", change, side)
            for name, change in {**damage_bytes.ANYWHERE, **CARDS}.items()
            for side in (0, 1)
        ]
    )
