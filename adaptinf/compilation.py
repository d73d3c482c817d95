"""Numba decorators whose disk cache is keyed by the source files that a compiled function can use.

The standard Numba cache considers only the file that contains the function: when a kernel in another file
changes, stale machine code continues to run. Here each version of a file's code has its own folder, named by
a hash of the file and of all files of the package that it imports, directly or indirectly: an edit recompiles
only what can be affected. If the imports cannot be determined, every file of the package is included. Within
that folder, the cache is that of Numba.

The cache uses Python's pickle format, which runs code when it is read: a folder is used only if no one but
its owner can write to it, and the owner is the current user. If there is no such folder, or the disk fails,
functions are compiled in memory, and one warning says so.

The packages along the path of an imported module also execute their ``__init__`` files, but these are
ignored: they only import modules, and a module that is not imported here cannot be called by a kernel (an
``@overload`` is in the file of its function). An ``__init__`` file is included if a name is imported from it,
together with the modules from which this name comes.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import re
import shutil
import stat
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

# Without _nrt=False, each access to an array in a NamedTuple costs two atomic updates of a reference count,
# which makes the loop four times slower. Kernels must therefore allocate nothing.
_njit: Any = numba.njit
_config: Any = numba.config

_INIT = "__init__.py"
_IMPORT = re.compile(rb"import\b")
_EXAMPLE = re.compile(rb"[ \t]*>>> (?:from [\w.]+ )?import [\w., ]+$", re.MULTILINE)
_DEFINITION = re.compile(rb"^(?:@|def |class |async )", re.MULTILINE)


class _Import(NamedTuple):
    """The result of an import: a name from a module of the package or, without a name, the module."""

    module: str
    name: str


class _Source(NamedTuple):
    """A file's hash, its imports from the package, and the names it binds, each with its import or None."""

    digest: bytes
    imports: frozenset[_Import]
    bound: frozenset[tuple[str, _Import | None]]


@functools.cache
def package_hash() -> str:
    """Hash of the names and contents of every Python file of the package, read once per process."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _parse(text: bytes) -> ast.Module:
    """Parse up to the first definition after the last import: parsing all of it takes ten times longer."""
    last = 0
    for found in _IMPORT.finditer(text):
        # Lines that begin with >>> are examples in a docstring and import nothing.
        if not _EXAMPLE.match(text, text.rfind(b"\n", 0, found.start()) + 1):
            last = found.end()
    definition = _DEFINITION.search(text, last)
    try:
        return ast.parse(text[: definition.start()] if definition else text)
    except SyntaxError:  # The match was inside a docstring, so the text was cut in the middle.
        return ast.parse(text)


def _statements(body: Iterable[Any]) -> Iterator[Any]:
    """Statements at any depth, without those read only by type checkers."""
    for node in body:
        yield node
        unread = isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING"
        for field in ("orelse",) if unread else ("body", "handlers", "orelse", "finalbody", "cases"):
            yield from _statements(getattr(node, field, ()))


def _bindings(node: Any, package: str) -> Iterator[tuple[str, _Import | None]]:
    """Names that a statement binds, with their imports from the package, or None for a definition."""
    if isinstance(node, ast.Import):
        own = [alias for alias in node.names if alias.name.split(".")[0] == package]
        # Without "as", an import binds the root package, through which everything it contains can be reached.
        for alias in own:
            yield alias.asname or package, _Import(alias.name if alias.asname else package, "")
    elif isinstance(node, ast.ImportFrom):
        module = node.module or ""
        if node.level:
            raise ImportError("relative imports cannot be followed")
        if module.split(".")[0] == package:
            yield from ((alias.asname or alias.name, _Import(module, alias.name)) for alias in node.names)
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name, None
    elif isinstance(node, ast.Assign):
        yield from ((target.id, None) for target in node.targets if isinstance(target, ast.Name))


@functools.cache
def _source(path: Path, package: str) -> _Source:
    """A file, read and parsed once per process: later edits do not affect imported code."""
    text = path.read_bytes()
    tree = ast.parse(text) if path.name == _INIT else _parse(text)
    bound = frozenset(found for node in _statements(tree.body) for found in _bindings(node, package))
    return _Source(hashlib.sha256(text).digest(), frozenset(found for _, found in bound if found), bound)


@functools.cache
def _home(module: str, root: Path) -> Path | None:
    """File of a module or package, if there is one."""
    place = root.parent.joinpath(*module.split("."))
    return next(filter(Path.is_file, (place / _INIT, place.with_name(f"{place.name}.py"))), None)


def _follow(wanted: _Import, root: Path) -> tuple[Path, Iterable[_Import]]:
    """File that an import reads, and the imports on which its contents can depend."""
    module, name = wanted
    file = _home(module, root)
    if file is None or (file.name == _INIT and not name):
        raise ImportError(f"{module} may call any code")
    source = _source(file, root.name)
    if file.name != _INIT:
        return file, source.imports
    names = {bound for bound, _ in source.bound}
    meant = {found for bound, found in source.bound if bound == name}
    if _home(f"{module}.{name}", root):
        meant.add(_Import(f"{module}.{name}", ""))
    # Python calls a module's own __getattr__ only for names that the module does not bind.
    if not meant or "*" in names or ("__getattr__" in names and name not in names):
        raise ImportError(f"{name} may reach {module} from anywhere")
    return file, {found for found in meant if found} | (source.imports if None in meant else set())


def source_files(path: Path, root: Path) -> set[Path]:
    """Files in folder `root` that a function in `path` can use; raises ImportError if these are unknown."""
    files, waiting, seen = {path}, set(_source(path, root.name).imports), set[_Import]()
    while waiting:
        seen.add(wanted := waiting.pop())
        file, further = _follow(wanted, root)
        files.add(file)
        waiting.update(set(further) - seen)
    return files


@functools.cache
def source_hash(path: Path) -> str:
    """Hash of the files that a function in `path` can use, or of the whole package if they are uncertain."""
    root = Path(__file__).parent
    digest = hashlib.sha256()
    try:
        for file in sorted(source_files(path, root)):
            digest.update(str(file.relative_to(root)).encode())
            digest.update(_source(file, root.name).digest)
    except (ImportError, OSError, SyntaxError, ValueError):
        return package_hash()
    return digest.hexdigest()


def is_private(path: str | Path) -> bool:
    """Whether a folder belongs to the user, and no one else can write to it."""
    found = os.stat(path)
    if os.name != "posix":  # File modes show permissions on POSIX systems only.
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _made(folder: Path) -> Path:
    """Folder that only its owner can write to, created if missing; raises OSError if that is impossible."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not is_private(folder):
            raise PermissionError(f"other users can write to {folder}") from None
    return folder


def _places(source: Path) -> Iterator[tuple[Path, ...]]:
    """Private folders in which the code of a file may be cached, in order of preference."""
    if _config.CACHE_DIR:
        yield (Path(_config.CACHE_DIR, "adaptinf"),)
    beside = source.parent / "__pycache__"
    yield beside, beside / "adaptinf"
    yield (Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "adaptinf"),)


def _fresh(place: Path, source: Path) -> Path:
    """Writable folder for this version of a file's code; folders of other versions are removed."""
    versions = place / f"{source.stem}-{hashlib.sha256(bytes(source)).hexdigest()[:12]}"
    folder = versions / source_hash(source)[:16]
    if not folder.is_dir():
        _made(versions)
        for other in versions.iterdir():  # a process that uses it still compiles anew
            if other != folder:  # which another process may just have made
                shutil.rmtree(other, ignore_errors=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()
    return folder


@functools.cache
def _folder(source: Path, cache_dir: str, home: str | None) -> Path | str:
    """Folder in which the compiled code of a file is cached, or why there is none."""
    why = "no folder"
    for place in _places(source):
        try:
            return _fresh([_made(folder) for folder in place][-1], source)
        except (OSError, RuntimeError) as error:  # RuntimeError: the user has no home folder
            why = str(error)
    return why


class _Guarded:
    """Numba's cache of one function, in which a failure of the disk is treated as missing code."""

    def __init__(self, stock: Any) -> None:
        self._stock = stock

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stock, name)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Compiled code from disk, or None if no intact code is found."""
        try:
            return self._stock.load_overload(sig, target_context)
        except Exception:  # Damaged bytes raise nearly any exception.
            self._empty()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Cache compiled code on disk, if possible."""
        try:
            self._stock.save_overload(sig, data)
        except OSError as error:
            _warn_once(str(error))
            self._empty()
        except RuntimeError:
            # An interrupt stopped LLVM from handing over the object code. The compiled code runs, but it
            # cannot be stored.
            return

    def _empty(self) -> None:
        try:
            self._stock.flush()
        except OSError as error:
            _warn_once(str(error))


_enabling = threading.Lock()


def _cache_on_disk(dispatcher: Any, folder: Path) -> bool:
    """Let Numba cache a function in a folder; returns False if Numba chooses a different folder."""
    with _enabling:
        before = _config.CACHE_DIR
        _config.CACHE_DIR = str(folder)
        try:
            dispatcher.enable_caching()
        except RuntimeError:
            return False
        finally:
            _config.CACHE_DIR = before
    dispatcher._cache = _Guarded(dispatcher._cache)
    return Path(dispatcher.stats.cache_path).is_relative_to(folder)


_warned: list[str] = []


def _warn_once(why: str) -> None:
    if not _warned:
        _warned.append(why)
        warnings.warn(
            f"adaptinf: compiled code cannot be cached on disk ({why}): every process recompiles, which "
            "takes up to a minute per design. Set NUMBA_CACHE_DIR to a folder that only you can write to",
            RuntimeWarning,
            stacklevel=2,
        )


def kernel(function: Function) -> Function:
    """Compile a decision or noise kernel, which LLVM inlines into its callers.

    Code that receives arguments from Python would account for a third of a design's compiled code, but few
    kernels are ever called from Python, so a separate version is compiled for those.
    """
    options = {"forceinline": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
    decorated: Function = _njit(no_cpython_wrapper=True, **options)(function)
    if decorated is not function:  # With NUMBA_DISABLE_JIT set, numba returns the function itself.
        # Versions without the CPython wrapper must not be called from Python. The dispatcher is told of none
        # of them, so it compiles another version for such calls.
        for_python = _njit(**options)(function)
        decorated._insert = lambda *_, **__: None  # type: ignore[attr-defined]
        decorated._compile_for_args = lambda *_, **__: for_python  # type: ignore[attr-defined]
    return decorated


def inlined(function: Function) -> Function:
    """Mark a loop that takes kernels as arguments, to be inlined by Numba into a compiled entry point."""
    decorated: Function = _njit(inline="always", error_model="numpy")(function)
    return decorated


def compiled(function: Function) -> Function:
    """Compile an entry point and cache it on disk, until a file that it can use changes.

    Code typed into an interpreter has no file: it is compiled in memory.
    """
    options = {"error_model": "numpy", "nogil": True, "_nrt": False, "no_cfunc_wrapper": True}
    entry: Function = _njit(**options)(function)
    source = Path(function.__code__.co_filename)
    if entry is function or not source.exists():
        return entry
    folder = _folder(source, _config.CACHE_DIR, os.environ.get("XDG_CACHE_HOME"))
    if isinstance(folder, Path):
        if _cache_on_disk(entry, folder):
            return entry
        folder = f"no file can be written in {folder}"
    _warn_once(folder)
    in_memory: Function = _njit(**options)(function)
    return in_memory


def machine_code(entry: Any, *arguments: Any) -> Any:
    """An entry point for arguments of exactly these types and layouts, which are not checked again.

    Numba's inspection of the types of a generator and of tables takes longer than a step of a design.
    """
    if not hasattr(entry, "compile"):  # where NUMBA_DISABLE_JIT is set
        return entry
    return entry.compile(tuple(map(numba.typeof, arguments)))
