"""Noise that is given and not drawn: by the names of the nodes, and shifted where an alignment says so."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

_STRETCH = 3
"""Of the noise that takes the place of a node's, so that a shift is tried at two places of its law."""


@dataclass(eq=False)
class GivenNoise:
    """A whole number for each node, of about its scale, that follows from seed and name alone.

    `shifts` are added to those of the named nodes; `stretched` are nodes whose noise is another one. `asked`
    has the nodes with their scales, in order; one that is asked for again has a name of its own there.
    """

    seed: bytes
    shifts: Mapping[str, int] = field(default_factory=dict)
    stretched: frozenset[str] = frozenset()
    asked: dict[str, float] = field(default_factory=dict)

    def __call__(self, name: str, scale: float) -> int:
        """The noise of a node whose scale is given, both in units."""
        while name in self.asked:
            name += ", again"
        self.asked[name] = scale
        drawn = round(scale * self._standard(name))
        if name in self.stretched:
            drawn = -_STRETCH * drawn - round(scale)
        return drawn + self.shifts.get(name, 0)

    def _standard(self, name: str) -> float:
        """A number of the Laplace law with scale 1, by inversion."""
        digest = hashlib.sha256(self.seed + name.encode()).digest()
        place = (int.from_bytes(digest[:8], "big") + 0.5) / 2.0**63 - 1.0
        return math.copysign(-math.log1p(-abs(place)), place)
