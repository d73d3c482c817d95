"""Requirements of a package on this machine, as its metadata state them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement

OWN = "adaptinf"


def required(distribution: metadata.Distribution, extras: tuple[str, ...]) -> Iterator[Requirement]:
    """Requirements on this machine, with those of some extras; the extra "" has those without any."""
    for text in distribution.requires or ():
        one = Requirement(text)
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras):
            yield one
