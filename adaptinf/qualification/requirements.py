"""Requirements of a package on this machine, as stated in its metadata."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement

OWN = "adaptinf"


def required(distribution: metadata.Distribution, extras: tuple[str, ...]) -> Iterator[Requirement]:
    """Requirements on this machine, including those of extras; the extra "" stands for no extra."""
    for text in distribution.requires or ():
        one = Requirement(text)
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras):
            yield one
