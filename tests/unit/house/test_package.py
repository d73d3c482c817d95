"""The package around the code: its public names, the cost of importing it, the rules of its tests."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import adaptinf

PACKAGE = Path(adaptinf.__file__).parent


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=120
    )


def test_import_loads_two_modules_and_python_s_own() -> None:
    code = (
        "import sys; before = set(sys.modules); import adaptinf; found = set(sys.modules) - before\n"
        "print(sorted(name for name in found if name.split('.')[0] not in sys.stdlib_module_names))"
    )
    result = run_python("-c", code)
    assert result.stdout.strip() == "['adaptinf', 'adaptinf.version']", result.stdout + result.stderr


@pytest.mark.parametrize("name", adaptinf.__all__)
def test_public_name_resolves(name: str) -> None:
    value = getattr(adaptinf, name)
    assert name == "__version__" or value.__name__.rpartition(".")[2] == name


def test_public_names_are_listed_once_and_all_have_a_home() -> None:
    homes = {**adaptinf._HOMES, **adaptinf._MODULES}
    assert len(homes) == len(adaptinf._HOMES) + len(adaptinf._MODULES)
    assert sorted([*homes, "__version__"]) == sorted(adaptinf.__all__)
    assert dir(adaptinf) == sorted(adaptinf.__all__)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError) as error:
        adaptinf.ArmMean  # noqa: B018 - the access is the test
    assert str(error.value) == "module 'adaptinf' has no attribute 'ArmMean'; did you mean 'ArmMeans'?"
    with pytest.raises(AttributeError) as error:
        adaptinf.__wrapped__  # noqa: B018 - the access is the test
    assert str(error.value) == "module 'adaptinf' has no attribute '__wrapped__'"


def test_version_is_that_of_the_installed_distribution() -> None:
    assert importlib.metadata.version("adaptinf") == adaptinf.__version__


def test_types_are_shipped() -> None:
    assert (PACKAGE / "py.typed").is_file()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "failures"),
    [
        ("np.random.default_rng(0).random()", 0),
        ("np.random.random()", 1),
        ("np.random.seed(0)", 1),
        ("np.random.standard_normal()", 1),
    ],
)
def test_a_test_that_touches_the_global_generator_fails(tmp_path: Path, line: str, failures: int) -> None:
    shutil.copy(Path(__file__).parents[2] / "conftest.py", tmp_path / "conftest.py")
    (tmp_path / "test_it.py").write_text(f"import numpy as np\n\n\ndef test_it():\n    {line}\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    result = run_python("-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path))
    assert result.returncode == failures, result.stdout + result.stderr
    assert ("touched NumPy's global generator" in result.stdout) == bool(failures)


def test_docstring_sections_have_their_underline_on_its_own_line() -> None:
    titles = "Parameters|Returns|Yields|Raises|Notes|References|Examples|Attributes"
    run_together = re.compile(rf"\b(?:{titles}) -{{3,}}")
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    assert len(sources) > 30
    assert [
        str(path.relative_to(PACKAGE)) for path, text in sources.items() if run_together.search(text)
    ] == []
