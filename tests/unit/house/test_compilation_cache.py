"""The disk cache of compiled designs: used again when nothing changed that they can use, else stale."""

from __future__ import annotations

import ast
import os
import resource
import runpy
import shutil
import stat
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any

import numba
import pytest

import adaptinf
import adaptinf.compilation
from adaptinf.compilation import is_private, kernel, package_hash, source_files, source_hash

ROOT = Path(adaptinf.__file__).parent
COMPILED = sorted(path for path in ROOT.rglob("*.py") if "\n@compiled\n" in path.read_text())

SCRIPT = """
import sys
import adaptinf
from adaptinf.designs import PrivateUCB
from adaptinf.designs.arms.ucb_kernel import run_block
from adaptinf.simulation.environments import BernoulliArms

log = PrivateUCB(epsilon=1.0, counter="binary").run(BernoulliArms([0.5, 0.5]), horizon=20, rng=1)
print(adaptinf.__file__)
print(float(log.releases["value"].iloc[0] - log.arrays.reward[0]))
print(sum(run_block.stats.cache_hits.values()), sum(run_block.stats.cache_misses.values()))
"""


def run(home: Path) -> tuple[float, int, int]:
    """Noise of the first release, and hits and misses of the cache, in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    environment["PYTHONPATH"] = str(home)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True, cwd=home
    )
    where, noise, counts = done.stdout.splitlines()[-3:]
    assert Path(where).parent == home / "adaptinf"
    hits, misses = counts.split()
    return float(noise), int(hits), int(misses)


def cache_files(home: Path) -> dict[str, int]:
    found = [*home.rglob("*.nbi"), *home.rglob("*.nbc")]
    return {str(path.relative_to(home)): path.stat().st_mtime_ns for path in found}


Warm = tuple[Path, list[tuple[float, int, int]]]


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Warm:
    """A copy in which two processes compiled at once, and what they found."""
    home = tmp_path_factory.mktemp("warm")
    shutil.copytree(ROOT, home / "adaptinf", ignore=shutil.ignore_patterns("__pycache__"))
    with ThreadPoolExecutor(2) as pool:
        return home, list(pool.map(run, [home, home]))


@pytest.mark.slow
def test_two_processes_at_once_share_what_they_compile(warm: Warm) -> None:
    home, (one, other) = warm
    assert one[0] == other[0]
    assert 1 <= one[2] + other[2] <= 2
    assert run(home) == (one[0], 1, 0)


@pytest.mark.slow
def test_cache_is_used_again(warm: Warm) -> None:
    home, ((first, _, _), _) = warm
    written = cache_files(home)
    assert any(name.endswith(".nbi") for name in written)
    assert any(name.endswith(".nbc") for name in written)

    again, hits, misses = run(home)
    assert (hits, misses) == (1, 0)
    assert again == first
    assert cache_files(home) == written  # no file more, none written anew


@pytest.mark.slow
def test_cache_goes_stale_with_what_a_design_can_use_only(warm: Warm) -> None:
    """The last one that uses the copy: its files stay changed."""
    home, ((first, _, _), _) = warm
    unused = sorted((home / "adaptinf" / "inference").rglob("*.py"))
    assert len(unused) > 50
    for path in unused:
        edit(path)
    assert run(home) == (first, 1, 0)
    edit(home / "adaptinf" / "simulation" / "environment.py")  # imported by way of replicate
    assert run(home) == (first, 0, 1)

    drawn = "source.standard_exponential() * scale"
    edit(home / "adaptinf" / "privacy" / "noise.py", drawn, f"{drawn} * 2.0")
    changed, hits, misses = run(home)
    assert (hits, misses) == (0, 1)
    assert changed == pytest.approx(2.0 * first, rel=1e-12)


def edit(path: Path, old: str = "", new: str = "") -> None:
    """Replace a text that a file has once, or add a comment."""
    text = path.read_text()
    assert not old or text.count(old) == 1
    path.write_text(text.replace(old, new) if old else f"{text}\n# an edit\n")


SCRIPT_OF_A_MOVE = """
from tiny.entry import World, difference
print(difference(World(3.0, 1.0)), sum(difference.stats.cache_misses.values()))
"""


@pytest.mark.slow
def test_a_class_that_moved_does_not_break_what_was_cached(tmp_path: Path) -> None:
    tiny = package(
        tmp_path,
        {
            "world.py": """
                from typing import NamedTuple
                class World(NamedTuple):
                    a: float
                    b: float
            """,
            "entry.py": """
                from tiny.compilation import compiled
                from tiny.world import World
                @compiled
                def difference(world):
                    return world.a - world.b
            """,
        },
    )
    shutil.copy(ROOT / "compilation.py", tiny)
    command = [sys.executable, "-c", SCRIPT_OF_A_MOVE]

    def printed() -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        return done.stdout.strip()

    assert [printed(), printed()] == ["2.0 1", "2.0 0"]
    (tiny / "world.py").rename(tiny / "globe.py")
    entry = tiny / "entry.py"
    entry.write_text(entry.read_text().replace("tiny.world", "tiny.globe"))
    assert [printed(), printed()] == ["2.0 1", "2.0 0"]


def test_a_kernel_is_called_from_python_and_from_compiled_code() -> None:
    @kernel
    def add(x: float, y: float) -> float:
        return x + y

    @numba.njit
    def twice(x: float) -> float:
        return add(x, x)

    assert twice(2.0) == 4.0
    assert add(2.0, 3.0) == 5.0  # the version that `twice` uses has no code to take these from Python
    assert add(2, y=3) == 5
    assert twice(3) == 6


TWO_KERNELS = """
from adaptinf.compilation import compiled

@compiled
def one(x):
    return x + 1

@compiled
def two(x):
    return x + 2

if __name__ == "__main__":
    print(one(1.0), two(1.0))
"""


WITHOUT_ROOT_S_POWER = (
    ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
)
"""Before a command: modes of files bind root, too."""


class TestFoldersOfTheCache:
    """Folders in which others can write, or nobody can, are not used; what is damaged is compiled anew."""

    @pytest.fixture(autouse=True)
    def _alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A module of two kernels, no other folder than the one beside it, and no warning given yet."""
        (tmp_path / "entry.py").write_text(TWO_KERNELS)
        monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/no")
        monkeypatch.setattr("numba.core.config.CACHE_DIR", "")
        monkeypatch.setattr("adaptinf.compilation._warned", [])

    def run(self, place: Path) -> tuple[int, list[str]]:
        """Hits of the cache, and warnings, of a fresh module."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            module = runpy.run_path(str(place / "entry.py"))
            assert (module["one"](1.0), module["two"](1.0)) == (2.0, 3.0)
        hits = sum(sum(module[name].stats.cache_hits.values()) for name in ("one", "two"))
        return hits, [f"{each.category.__name__}: {each.message}" for each in caught]

    def test_a_new_folder_is_private(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert [self.run(tmp_path), self.run(tmp_path)] == [(0, []), (2, [])]
        assert stat.S_IMODE((tmp_path / "__pycache__").stat().st_mode) == 0o700
        monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path / "mine"))
        assert [self.run(tmp_path), self.run(tmp_path)] == [(0, []), (2, [])]
        assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "mine").iterdir()} == {0o700}

    def test_a_folder_that_others_write_in_is_not_used(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "__pycache__").mkdir()
        (tmp_path / "__pycache__").chmod(0o777)
        hits, told = self.run(tmp_path)
        assert (hits, len(told)) == (0, 1)  # one warning for both functions
        assert told[0].startswith("RuntimeWarning: adaptinf: compiled code cannot be cached on disk")
        assert "Set NUMBA_CACHE_DIR to a folder that only you can write to" in told[0]
        assert list((tmp_path / "__pycache__").iterdir()) == []
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        assert [self.run(tmp_path), self.run(tmp_path)] == [(0, []), (2, [])]

    @pytest.mark.parametrize("suffix", ["nbi", "nbc"])
    @pytest.mark.parametrize("damage", [b"", b"\x80\x05garbage", b"(lp0\nI1\na."])
    def test_damaged_files_are_compiled_anew(self, tmp_path: Path, suffix: str, damage: bytes) -> None:
        assert self.run(tmp_path) == (0, [])
        for path in (tmp_path / "__pycache__").rglob(f"*.{suffix}"):
            path.write_bytes(damage)
        assert len(cache_files(tmp_path)) == 4
        assert [self.run(tmp_path), self.run(tmp_path)] == [(0, []), (2, [])]

    def test_code_of_earlier_versions_is_removed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert self.run(tmp_path) == (0, [])
        before = set(cache_files(tmp_path))
        monkeypatch.setattr("adaptinf.compilation.source_hash", lambda _: "another version")
        adaptinf.compilation._folder.cache_clear()
        assert [self.run(tmp_path), self.run(tmp_path)] == [(0, []), (2, [])]
        after = set(cache_files(tmp_path))
        assert (len(after), before & after) == (len(before), set())

    def test_a_folder_that_cannot_be_made_is_passed_over(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("numba.core.config.CACHE_DIR", "/dev/null/no")
        assert [self.run(tmp_path), self.run(tmp_path)] == [(0, []), (2, [])]
        assert {Path(name).parts[:2] for name in cache_files(tmp_path)} == {("__pycache__", "adaptinf")}
        assert numba.config.CACHE_DIR == "/dev/null/no"

    def test_a_folder_that_numba_finds_by_itself_is_not_used(self, tmp_path: Path) -> None:
        for cache_path, used in [(tmp_path / "deeper", True), (tmp_path.parent, False)]:
            stats = SimpleNamespace(cache_path=str(cache_path))
            dispatcher = SimpleNamespace(enable_caching=lambda: None, _cache=None, stats=stats)
            assert adaptinf.compilation._cache_on_disk(dispatcher, tmp_path) == used

    def test_a_full_disk_is_told_of_once(self, tmp_path: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
        done = subprocess.run(
            [sys.executable, str(tmp_path / "entry.py")],
            env={**kept, "PYTHONPATH": str(ROOT.parent)},
            capture_output=True,
            text=True,
            check=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200)),
        )
        assert done.stdout == "2.0 3.0\n"
        assert done.stderr.count("compiled code cannot be cached on disk ([Errno 27] File too large)") == 1
        assert [self.run(tmp_path), self.run(tmp_path)] == [(0, []), (2, [])]

    def test_a_read_only_home_and_installation_are_told_of_once(self, tmp_path: Path) -> None:
        (home := tmp_path / "home").mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG"))}
        told = {**kept, "HOME": str(home), "PYTHONPATH": str(ROOT.parent)}
        command = [*WITHOUT_ROOT_S_POWER, sys.executable, str(tmp_path / "entry.py")]

        def run(**more: str) -> tuple[str, str]:
            done = subprocess.run(
                command, env={**told, **more}, capture_output=True, text=True, check=True, cwd=home
            )
            return done.stdout, done.stderr

        (elsewhere := tmp_path / "elsewhere").mkdir(mode=0o700)
        for place in (home, tmp_path):
            place.chmod(0o500)
        try:
            for _ in range(2):
                out, err = run()
                assert out == "2.0 3.0\n"
                assert err.count("compiled code cannot be cached on disk ([Errno 13] Permission denied") == 1
            assert cache_files(tmp_path) == {}
            assert run(NUMBA_CACHE_DIR=str(elsewhere)) == ("2.0 3.0\n", "")
            written = cache_files(elsewhere)
            assert len(written) == 4
            assert run(NUMBA_CACHE_DIR=str(elsewhere)) == ("2.0 3.0\n", "")
            assert cache_files(elsewhere) == written
        finally:
            tmp_path.chmod(0o700)

    def test_folders_are_private_by_owner_and_mode(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for mode, private in [(0o700, True), (0o755, True), (0o775, False), (0o757, False)]:
            tmp_path.chmod(mode)
            assert is_private(str(tmp_path)) == private
        tmp_path.chmod(0o700)
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert not is_private(str(tmp_path))


def package(home: Path, files: dict[str, str]) -> Path:
    """A package `tiny` with an empty `__init__` in every folder that is given none."""
    root = home / "tiny"
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = text.split("\n")
        indent = len(lines[1]) - len(lines[1].lstrip()) if len(lines) > 1 and not lines[0] else 0
        path.write_text("\n".join(line[indent:] for line in lines))
    for folder in {root, *(path.parent for path in root.rglob("*.py"))}:
        (folder / "__init__.py").touch()
    return root


def used(home: Path, files: dict[str, str]) -> set[str]:
    """Files that a function in `kernel.py` of the package can use, but for itself."""
    root = package(home, files)
    found = source_files(root / "kernel.py", root)
    return {path.relative_to(root).as_posix() for path in found} - {"kernel.py"}


LEAVES = {"a.py": "", "b.py": "", "c.py": ""}


def test_imports_are_followed_through_modules(tmp_path: Path) -> None:
    files = {
        "kernel.py": "import numpy\nfrom tiny.a import x, y\n",
        "a.py": "import tiny.rooms.b as other\nx = y = 1\n",
        "rooms/b.py": "from tiny.kernel import f\n",  # in a circle
        "rooms/__init__.py": "from tiny.rooms import c\n",
        "rooms/c.py": "",
        "unused.py": "",
    }
    assert used(tmp_path, files) == {"a.py", "rooms/b.py"}


def test_packages_on_the_way_do_not_count(tmp_path: Path) -> None:
    files = {
        "kernel.py": "from tiny.designs.arms.a import f\n",
        "designs/__init__.py": "from tiny.designs.arms import a, b\n",
        "designs/arms/__init__.py": "from tiny.designs.arms.a import f\nfrom tiny.designs.arms.b import g\n",
        "designs/arms/a.py": "",
        "designs/arms/b.py": "",
    }
    assert used(tmp_path, files) == {"designs/arms/a.py"}


def test_a_name_from_a_package_leads_to_where_it_comes_from(tmp_path: Path) -> None:
    files = {
        "kernel.py": "from tiny.outer import f as own\n",
        "outer/__init__.py": "from tiny.inner import g as f, unused\n",
        "inner/__init__.py": "from tiny.a import h as g\nfrom tiny.b import unused\n",
    }
    found = used(tmp_path, {**LEAVES, **files})
    assert found == {"outer/__init__.py", "inner/__init__.py", "a.py"}


def test_a_package_hides_a_module_of_its_name(tmp_path: Path) -> None:
    files = {"room.py": "", "room/__init__.py": "from tiny.a import f\n"}
    found = used(tmp_path, {**LEAVES, **files, "kernel.py": "from tiny.room import f\n"})
    assert found == {"room/__init__.py", "a.py"}


def test_a_submodule_from_a_package_is_followed(tmp_path: Path) -> None:
    files = {
        "kernel.py": "from tiny.room import module, both\n",
        "room/__init__.py": "from tiny.b import both\n",
        "room/module.py": "from tiny.a import f\n",
        "room/both.py": "",
    }
    found = used(tmp_path, {**LEAVES, **files})
    assert found == {"room/__init__.py", "room/module.py", "room/both.py", "a.py", "b.py"}


@pytest.mark.parametrize("definition", ["def f():\n    return x\n", "class f:\n    y = x\n", "f = x\n"])
def test_a_name_that_a_package_defines_leads_to_all_that_the_package_imports(
    tmp_path: Path, definition: str
) -> None:
    files = {"room/__init__.py": f"from tiny.a import x\n{definition}"}
    assert used(tmp_path, {**LEAVES, **files, "kernel.py": "from tiny.room import f\n"}) == {
        "room/__init__.py",
        "a.py",
    }


IMPORTS_AT_ANY_DEPTH = """
    def f():
        'A docstring'
        with open('file'):
            from tiny.a import x
        return x
    try:
        pass
    except ValueError:
        match 1:
            case 1:
                import tiny.b as b
"""


def test_imports_at_any_depth_are_followed(tmp_path: Path) -> None:
    assert used(tmp_path, {**LEAVES, "kernel.py": IMPORTS_AT_ANY_DEPTH}) == {"a.py", "b.py"}


EXAMPLES = """
    from tiny.a import x
    '''Explain.

    def f(): stands here at the margin, and
    >>> from tiny.b import x
    '''
"""


def test_examples_are_no_imports(tmp_path: Path) -> None:
    assert used(tmp_path, {**LEAVES, "kernel.py": EXAMPLES}) == {"a.py"}


@pytest.mark.parametrize(
    "hidden",
    [
        "x = 1; from tiny.a import y",
        "if True: import numpy, tiny.a as a",
        "from tiny \\\n.a \\\nimport y",
        "from tiny.a import(y)",
        "from\ttiny.a\timport\ty",
        "x = '''\n>>> import this'''; import tiny.a as a",
        "def h():\n  pass\nimport tiny.a as a",
    ],
)
def test_an_import_cannot_hide_behind_a_definition(tmp_path: Path, hidden: str) -> None:
    assert used(tmp_path, {**LEAVES, "kernel.py": f"def f():\n    pass\n{hidden}\n"}) == {"a.py"}


def test_what_only_a_type_checker_reads_is_left_out(tmp_path: Path) -> None:
    text = """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from tiny.a import x
        else:
            from tiny.b import x
        if not TYPE_CHECKING:
            from tiny.c import y
    """
    assert used(tmp_path, {**LEAVES, "kernel.py": text}) == {"b.py", "c.py"}


STAR = "from tiny.a import *\n"
LAZY = "def __getattr__(name):\n    return import_module('tiny.b')\n"


def test_names_that_a_lazy_face_binds_itself_come_from_there(tmp_path: Path) -> None:
    face = f"from tiny.a import f\n{LAZY}"
    files = {"kernel.py": "from tiny.room import f\n", "room/__init__.py": face}
    assert used(tmp_path, {**LEAVES, **files}) == {"room/__init__.py", "a.py"}


@pytest.mark.parametrize(
    "files",
    [
        {"kernel.py": "from tiny.absent import f\n"},
        {"kernel.py": "from tiny.a import f\n", "a.py": "def g():\n    from tiny.room.absent import h\n"},
        {"kernel.py": "from tiny.room import absent\n", "room/a.py": ""},
        {"kernel.py": "from tiny.room import f\n", "room/__init__.py": LAZY},
        {"kernel.py": "from tiny.room import f\n", "room/__init__.py": LAZY, "room/f.py": ""},
        {"kernel.py": "from tiny.room import f\n", "room/__init__.py": STAR, "room/f.py": ""},
        {"kernel.py": "from tiny.room import *\n", "room/a.py": ""},
        {"kernel.py": "from tiny import room\n", "room/a.py": ""},
        {"kernel.py": "import tiny.a\n"},
        {"kernel.py": "from . import a\n"},
        {"kernel.py": "from .a import f\n"},
    ],
)
def test_what_is_uncertain_is_refused(tmp_path: Path, files: dict[str, str]) -> None:
    with pytest.raises(ImportError):
        used(tmp_path, {**LEAVES, **files})


@pytest.mark.parametrize("text", ["from tiny.absent import f\n", "from tiny.a import f\n", "x = (\n", "\0"])
def test_the_whole_package_counts_where_imports_are_uncertain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    root = package(tmp_path, {**LEAVES, "kernel.py": text, "compilation.py": ""})
    monkeypatch.setattr("adaptinf.compilation.__file__", str(root / "compilation.py"))
    monkeypatch.setattr("adaptinf.compilation.package_hash", lambda: "whole")
    certain = text == "from tiny.a import f\n"
    assert (source_hash(root / "kernel.py") != "whole") == certain
    (tmp_path / "elsewhere.py").touch()
    assert source_hash(tmp_path / "elsewhere.py") == "whole"


def test_the_hash_changes_with_a_file_that_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = set()
    for place, name, text in [("1", "a", ""), ("2", "b", ""), ("3", "a", "x = 1\n"), ("4", "a", "")]:
        files = {**LEAVES, "kernel.py": "from tiny.middle import f\n", f"{name}.py": text}
        root = package(tmp_path / place, {**files, "middle.py": f"from tiny.{name} import f\n"})
        monkeypatch.setattr("adaptinf.compilation.__file__", str(root / "compilation.py"))
        hashes.add(source_hash(root / "kernel.py"))
    assert len(hashes) == 3


def named(code: CodeType) -> Iterator[str]:
    """Names that a function looks up, inner functions included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from named(constant)


def reached(function: Any, seen: set[Any]) -> None:
    """Collect the Python functions and classes that compiling a function can read by its globals."""
    function = getattr(function, "py_func", getattr(function, "_defn", function))
    module = str(getattr(function, "__module__", ""))
    if function in seen or module.split(".")[0] != "adaptinf":
        return
    seen.add(function)
    if hasattr(function, "__code__"):
        for name in named(function.__code__):
            if callable(value := function.__globals__.get(name)):
                reached(value, seen)


@pytest.mark.parametrize("path", COMPILED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_hold_all_that_a_compiled_function_reaches(path: Path) -> None:
    module = import_module(".".join(["adaptinf", *path.relative_to(ROOT).with_suffix("").parts]))
    seen: set[Any] = set()
    for value in vars(module).values():
        if hasattr(value, "py_func"):
            reached(value, seen)
    homes = {Path(str(sys.modules[function.__module__].__file__)) for function in seen}
    files = source_files(path, ROOT)
    assert seen
    assert homes <= files
    assert source_hash(path) != package_hash()


@pytest.mark.parametrize("room", ["designs", "privacy", "simulation", "audit"])
def test_an_edit_in_inference_compiles_no_design_anew(room: str) -> None:
    for path in COMPILED:
        if path.is_relative_to(ROOT / room):
            assert not [file for file in source_files(path, ROOT) if file.is_relative_to(ROOT / "inference")]


def test_overloads_stand_in_the_file_of_their_function() -> None:
    found = 0
    for path in ROOT.rglob("*.py"):
        tree = ast.parse(path.read_bytes())
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        for function in functions.values():
            for decorator in function.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).startswith("overload"):
                    assert ast.unparse(decorator.args[0]) in functions
                    found += 1
    assert found >= 5


def test_code_of_an_interrupted_hand_over_runs_and_is_not_kept(tmp_path, monkeypatch):
    (tmp_path / "interrupted.py").write_text(
        "from adaptinf.compilation import compiled\n\n\n@compiled\ndef twice(x):\n    return 2.0 * x\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    library = numba.core.codegen.CodeLibrary
    real = library._get_compiled_object

    def lost(self: Any) -> Any:
        self._compiled_object = None  # as an interrupt leaves it in LLVM's call back, where Python drops it
        return real(self)

    monkeypatch.setattr(library, "_get_compiled_object", lost)
    twice = import_module("interrupted").twice
    assert twice(1.5) == 3.0
    assert twice(2.5) == 5.0
    assert not list(tmp_path.rglob("*.nbc"))
