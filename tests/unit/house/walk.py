"""How far a call walks through the package: modules that it touches, depth, returns to rooms that it left."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pandas as pd

import adaptinf as ai
from adaptinf.claims import first, said, under_table

ROOT = Path(ai.__file__).parent
READERS = (said.__code__, first.__code__, under_table.__code__)
"""What reads a list of claims."""


@dataclass(frozen=True)
class Walk:
    """The calls of functions of the package, in order: depth among themselves, and module.

    To read a list of claims is one step: what facts are asked on the way is counted apart. The rooms of
    claims and of facts, like texts, lie on everybody's way, and are no part of it.
    """

    calls: tuple[tuple[int, str], ...]
    asked: int

    @property
    def modules(self) -> set[str]:
        return {module for _, module in self.calls}

    @property
    def depth(self) -> int:
        return max(depth for depth, _ in self.calls)

    @property
    def returns(self) -> int:
        """How often a call enters a room that was left: no function of it was still at work.

        The caller's own steps, from fit to summary, are the way and no returns; what stands in no room lies
        on everybody's way.
        """
        count, seen, at_work = 0, set(), []
        for depth, module in self.calls:
            room = str(Path(module).parent) if "/" in module else ""
            del at_work[depth - 1 :]
            if room and room not in at_work:
                count += room in seen and depth > 1
                seen.add(room)
            at_work.append(room)
        return count


def walk(call: Callable[[], Any]) -> Walk:
    """Follow a call, after a first one that imports and computes what is kept."""
    call()
    calls: list[tuple[int, str]] = []
    stack: list[FrameType] = []
    readers: list[FrameType] = []
    asked = 0

    def follow(frame: FrameType, event: str, _: Any) -> None:
        nonlocal asked
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT) and not frame.f_code.co_name.startswith("<"):
            module = path.relative_to(ROOT).with_suffix("").as_posix()
            if frame.f_code in READERS:
                readers.append(frame)
            of_facts = path.parent.name == "facts" or path.stem.endswith("_facts")
            if module.startswith("claims/") or of_facts:
                asked += of_facts
                return
            if readers:
                asked += 1
            else:
                calls.append((len(stack) + 1, module))
            stack.append(frame)
        elif event == "return":
            if stack and stack[-1] is frame:
                stack.pop()
            elif readers and readers[-1] is frame:
                readers.pop()

    before = sys.getprofile()
    sys.setprofile(follow)
    try:
        call()
    finally:
        sys.setprofile(before)
    return Walk(tuple(calls), asked)


def walks() -> dict[str, Walk]:
    """A collected log and what is asked of it most often."""
    thompson, bernoulli = ai.designs.Thompson(floor=0.05), ai.environments.BernoulliArms([0.5, 0.6])
    log = thompson.run(bernoulli, horizon=500, rng=2)  # with 0, cautions take a longer way
    groups = ai.environments.FiniteContext([0.5, 0.5], means=[[0.4, 0.7], [0.6, 0.3]], rewards="bernoulli")
    grouped = ai.designs.ConSE().run(groups, horizon=500, rng=0)
    by = grouped.context[0]
    return {
        "design.run": walk(lambda: thompson.run(bernoulli, horizon=500, rng=0)),
        "ArmMeans.fit": walk(lambda: ai.ArmMeans(log).fit()),
        "log to summary": walk(lambda: str(ai.ArmMeans(log).fit().summary())),
        "CATE.fit": walk(lambda: ai.CATE(grouped, by=by, treatment=1, control=0).fit()),
        "AdaptiveOLS.fit": walk(lambda: ai.AdaptiveOLS.from_formula("reward ~ C(action)", log).fit()),
    }


def table(found: dict[str, Walk]) -> pd.DataFrame:
    """One row a walk."""
    rows = {
        name: (len(one.modules), one.depth, one.returns, len(one.calls), one.asked)
        for name, one in found.items()
    }
    columns = ["modules", "depth", "returns", "calls", "asked of facts"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


if __name__ == "__main__":
    sys.stdout.write(f"{table(walks())}\n")
