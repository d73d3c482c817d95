"""Numba decorators whose cache on disk is keyed by every source file of the package.

A stock Numba cache looks only at the file that holds the function: when a kernel in another file
changes, the stale machine code runs on. Here the stamp of each cached function is a hash of all of the
package's sources, so that an edit anywhere recompiles, and an unchanged package loads from disk.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import FunctionCache

__all__ = ["compiled", "inlined", "kernel", "package_hash"]

Function = TypeVar("Function", bound=Callable[..., Any])

# _nrt=False: reading an array out of a NamedTuple would otherwise cost two atomic reference counts a time,
# which makes the loop four times slower. Kernels therefore allocate nothing.
_njit: Any = numba.njit


@functools.cache
def package_hash() -> str:
    """Hash of the names and contents of every Python file of the package, read once a process."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _PackageCache(FunctionCache):
    """Numba's function cache, stale as soon as any file of the package changes."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)  # type: ignore[no-untyped-call]
        self._cache_file._source_stamp = (self._cache_file._source_stamp, package_hash())


def kernel(function: Function) -> Function:
    """Compile a decision or noise kernel: inlined by LLVM into whatever calls it."""
    decorated: Function = _njit(forceinline=True, error_model="numpy", _nrt=False)(function)
    return decorated


def inlined(function: Function) -> Function:
    """Make a loop that takes kernels as arguments: inlined by Numba into a compiled entry point."""
    decorated: Function = _njit(inline="always", error_model="numpy")(function)
    return decorated


def compiled(function: Function) -> Function:
    """Compile an entry point and cache it on disk, stale when any file of the package changes."""
    dispatcher = _njit(error_model="numpy", nogil=True, _nrt=False)(function)
    dispatcher._cache = _PackageCache(function)
    entry: Function = dispatcher
    return entry
