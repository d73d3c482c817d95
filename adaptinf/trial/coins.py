"""Coins of a trial: each event has its own, worked out from a secret seed, so that it can be replayed."""

from __future__ import annotations

import hashlib
import hmac
import secrets

import numpy as np

_HALF = 2**128


def fresh_seed() -> bytes:
    """256 bits from the system's cryptographic source, of a trial or of a file that takes its place."""
    return secrets.token_bytes(32)


class Coins:
    """A generator that is set anew for each event, by HMAC-SHA256 of the event's name under the seed.

    Who does not know the seed cannot tell the coins of one event from those of all others.
    """

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._bits = np.random.PCG64(0)
        self.generator = np.random.Generator(self._bits)

    def stir(self, fresh: bytes) -> None:
        """Let all coins that are set from now on depend on bytes that nobody knew before, too."""
        self._seed = hmac.digest(self._seed, fresh, hashlib.sha256)

    def set(self, event: str, number: int) -> None:
        """Make the generator that of an event."""
        drawn = int.from_bytes(hmac.digest(self._seed, f"{event} {number}".encode(), hashlib.sha256), "big")
        self._bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": drawn // _HALF, "inc": drawn % _HALF | 1},
            "has_uint32": 0,
            "uinteger": 0,
        }
