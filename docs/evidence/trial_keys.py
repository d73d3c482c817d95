"""What a key outside the file costs a trial, and what an attack finds in stolen files with it and without.

The attack is imported from tests/, so the figures are those of the very code that the tests run.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import evidence

import adaptinf as ai
from adaptinf.trial import requests

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / "unit" / "trial")]

from key_attack import (  # noqa: E402
    PEOPLE,
    chances,
    commits,
    groups,
    lengths,
    read,
    run,
    score,
    seen,
    stolen,
)

COMMAND = "python docs/evidence/trial_keys.py"
TURNS, PAIRS, QUICK_TURNS, OPENED = 40, 50, 4, 5
LIMIT = 1.5
DESIGNS = {
    "Thompson(floor=0.1)": (ai.designs.Thompson(floor=0.1), {}),
    "Mixture(PrivateUCB(epsilon=1.0), exploration=0.1)": (
        ai.designs.Mixture(ai.designs.PrivateUCB(epsilon=1.0), exploration=0.1),
        {"outcome_window": 0},
    ),
}


class Turn:
    """A trial in memory, of which requests are timed: seconds of processor for each."""

    def __init__(
        self, path: Path, key: Path | None, design: ai.designs.Design, private: dict[str, int]
    ) -> None:
        self.path, self.key, self.people = path, key, 0
        self.assigned: list[float] = []
        self.recorded: list[float] = []
        self.trial = ai.Trial.create(path, design, ["a", "b"], horizon=100_000, key_file=key, **private)

    def take(self, pairs: int) -> None:
        """Time this many assignments, then their outcomes."""
        names = range(self.people, self.people + pairs)
        begun = time.process_time()
        made = [self.trial.assign(f"participant {name}", key=f"visit {name}") for name in names]
        between = time.process_time()
        for one in made:
            self.trial.record(one.id, float(one.id % 2), key=f"form {one.id}")
        ended = time.process_time()
        self.people += pairs
        self.assigned.append((between - begun) / pairs)
        self.recorded.append((ended - between) / pairs)

    def opened(self) -> float:
        """Seconds of processor to open the trial, without a snapshot."""
        begun = time.process_time()
        ai.Trial.open(self.path, key_file=self.key).close()
        return time.process_time() - begun


def costs(folder: Path, turns: int) -> tuple[list[str], float]:
    """Rows of the table of costs, and the largest ratio of a request."""
    lines, largest = [], 0.0
    for number, (name, (design, private)) in enumerate(DESIGNS.items()):
        place = folder / f"costs {number}"
        place.mkdir()
        ai.Trial.make_key(place / "key")
        both = [
            Turn(place / "without.db", None, design, private),
            Turn(place / "with.db", place / "key", design, private),
        ]
        for turn in range(turns + 1):
            for one in both if turn % 2 else reversed(both):
                one.take(PAIRS)
        for what in ("assigned", "recorded"):
            # The first turn compiles.
            without, held = (getattr(one, what)[1:] for one in both)
            ratio = median(with_ / without_ for with_, without_ in zip(held, without, strict=True))
            largest = max(largest, ratio)
            told = "`assign`" if what == "assigned" else "`record`"
            lines.append(
                f"| {name} | {told} | {1e3 * median(without):.2f} | {1e3 * median(held):.2f} | {ratio:.2f} |"
            )
        for one in both:
            one.trial.close()
        without, held = ([one.opened() for _ in range(OPENED)] for one in both)
        rows = ai.Trial.verify_chain(both[0].path)[0]
        lines.append(
            f"| {name} | `open`, a row of {rows:,} | {1e3 * median(without) / rows:.3f} | "
            f"{1e3 * median(held) / rows:.3f} | {median(held) / median(without):.2f} |"
        )
        sizes = [one.path.stat().st_size / rows for one in both]
        lines.append(
            f"| {name} | bytes a row | {sizes[0]:,.0f} | {sizes[1]:,.0f} | {sizes[1] / sizes[0]:.2f} |"
        )
    return lines, largest


def attacked(folder: Path, key: Path | None) -> dict[str, str]:
    """What the attack finds, in words."""
    place, thief = folder / "trial.db", folder / "thief"
    thief.mkdir(parents=True)
    truth, trial = run(place, key)
    copied = stolen(place, thief)
    trial.backup(thief / "copy.db")
    trial.close()
    content = b"".join(file.read_bytes() for file in thief.iterdir())
    pages = [len(its) for its in commits((thief / "trial.db-wal").read_bytes())]
    known = read(copied)
    whole = {
        "unit": set(truth.units),
        "key": set(truth.keys),
        "arm": set(truth.arms),
        "reward": set(map(str, truth.rewards)),
        "seed": {truth.seed},
    }
    found = {
        f"{told}, read": f"{len(known[name] & whole[name]):,} of {len(whole[name]):,}"
        for name, told in (
            ("unit", "names"),
            ("key", "keys of requests"),
            ("arm", "arms"),
            ("reward", "different outcomes"),
            ("seed", "seed (foretells arms)"),
        )
    }
    words = truth.words()
    found["words that are in a file in any spelling"] = f"{len(seen(content, words)):,} of {len(words):,}"
    sizes = lengths(copied)
    found["different lengths of rows"] = f"{len(set(sizes['journal.entry'].values())):,}"
    told = chances(truth, sizes)
    small = sum(value <= 0.01 for value in told.values())
    found["tests of lengths with p at most .01"] = f"{small:,} of {len(told):,}"
    found["smallest p of the lengths"] = f"{min(told.values()):.3f}"
    scores = [score(pages[kind::2], its) for kind in (0, 1) for its in groups(truth).values()]
    found["largest standard score of pages of a commit"] = f"{max(scores):.1f}"
    return found


def page(folder: Path, turns: int) -> tuple[str, float, str]:
    """The page, the largest ratio, and what was read with a key."""
    lines, largest = costs(folder, turns)
    requests.EVERY = 10**9
    ai.Trial.make_key(folder / "key")
    without, held = attacked(folder / "bare", None), attacked(folder / "sealed", folder / "key")
    rows = "\n".join(f"| {name} | {without[name]} | {held[name]} |" for name in without)
    text = f"""# Trials with a key outside their file

Command: `{COMMAND}`.
Seed: 7, for outcomes; the keys and coins of trials are new in every run. Date: {evidence.stamp()}.

## Cost

Two trials in memory, one of them with a key, take turns of {PAIRS} requests, {turns} turns each. The table
shows the median processor time of a request in ms; the ratio is the median over turns. Opening recomputes all
decisions after the last snapshot.

| design | | without a key | with a key | ratio |
| --- | --- | ---: | ---: | ---: |
{chr(10).join(lines)}

Largest ratio for a request: **{largest:.2f}**; at most {LIMIT:g} is allowed. Time spent waiting for a disk is
not included.

## Attack

The trial has {PEOPLE} participants, two arms whose names differ in length, and outcomes that differ in their
number of digits. The thief is assumed to have the database, its write-ahead log with every commit, and a
backup, and to know the code: rows are parsed, sealed fields are opened with all secrets in the files, words
are searched for as text, UTF-16, hexadecimal digits and base64, and the lengths of all stored values are
compared by arm, outcome and number of digits (permutation tests with 999 draws), as are the pages of each
commit.

| the thief finds | without a key | with a key |
| --- | ---: | ---: |
{rows}
"""
    return text, largest, held["names, read"]


def main() -> None:
    """Make the page."""
    options = evidence.parser(__doc__).parse_args()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        text, largest, names = page(Path(folder), QUICK_TURNS if options.quick else TURNS)
    evidence.publish(text, __file__, options)
    if largest > LIMIT or not names.startswith("0 of"):
        raise SystemExit(f"OFF: a request takes {largest:.2f} times as long, and {names} names were read")


if __name__ == "__main__":
    main()
