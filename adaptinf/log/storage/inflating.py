"""JSON that a schema carries compressed, inflated only as far as a file of its size may go."""

from __future__ import annotations

import base64
import zlib

from adaptinf.errors import ParameterError
from adaptinf.log.storage.limits import check_size, most_inflated, most_nested


def deflated(text: bytes) -> bytes:
    """Compressed text, as far as it may be inflated again, in the letters of base 64."""
    compressed = zlib.compress(text)
    kept = compressed if len(text) <= most_inflated(len(compressed)) else zlib.compress(text, level=0)
    return base64.b64encode(kept)


def inflated(encoded: bytes) -> bytes:
    """The text of `deflated`; ParameterError where it is cut, or larger than may be."""
    compressed = base64.b64decode(encoded, validate=True)
    most = most_inflated(len(compressed))
    inflater = zlib.decompressobj()
    text = inflater.decompress(compressed, most + 1)
    check_size("or more bytes of releases", len(text), most)
    if not inflater.eof or inflater.unused_data:
        raise ParameterError("file", ["has releases that are cut, or that something follows"])
    nested = text.count(b"[") + text.count(b"{")
    check_size("lists and objects in its releases", nested, most_nested(len(text)))
    return text
