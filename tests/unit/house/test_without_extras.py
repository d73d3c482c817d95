"""The package without any of its extras: help works, and what needs an extra names it in one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

EXTRAS = (
    *(
        "sqlalchemy",
        "cryptography",
        "psycopg",
        "matplotlib",
        "polars",
        "duckdb",
        "dask",
        "distributed",
        "opendp",
    ),
    *("ibis", "sklearn", "pyspark", "IPython", "nbclient", "nbformat", "mpmath", "hypothesis"),
    *("great_tables", "docx", "argcomplete", "jsonschema", "jinja2"),
    *("fastapi", "starlette", "pydantic", "uvicorn", "uvloop", "httptools", "prometheus_client"),
)
MAIN_JOB = Path(__file__).parents[3] / "docs" / "release" / "main_job.py"
TITLES = ["ArmMeans Results", "AdaptiveOLS Results", "relative to the first method"]
BLOCKED = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
import json
import adaptinf as ai
"""


def without_extras(code: str) -> Any:
    """What a program prints, as JSON, in which no extra can be imported."""
    program = BLOCKED + textwrap.dedent(code)
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


@pytest.fixture(scope="module")
def walked() -> Any:
    return without_extras(
        """
        import inspect, pydoc, types

        failed, seen = [], {"adaptinf"}
        def walk(module):
            for name in dir(module):
                try:
                    value = getattr(module, name)
                except BaseException as error:
                    failed.append(f"{module.__name__}.{name}: {error}")
                    continue
                own = isinstance(value, types.ModuleType) and value.__name__.startswith("adaptinf.")
                if own and value.__name__ not in seen:
                    seen.add(value.__name__)
                    walk(value)
        walk(ai)
        page = pydoc.render_doc(ai, renderer=pydoc.plaintext)
        print(json.dumps({
            "failed": failed,
            "seen": len(seen),
            "members": [name for name, _ in inspect.getmembers(ai)],
            "names": ai.__all__,
            "page": [text for text in ("class AdaptiveLog", "class Trial", "forest") if text in page],
        }))
        """
    )


def test_every_public_name_can_be_had(walked: Any) -> None:
    assert walked["failed"] == []
    assert walked["seen"] > 8


def test_help_and_inspect_show_all_of_it(walked: Any) -> None:
    assert set(walked["names"]) <= set(walked["members"])
    assert walked["page"][:2] == ["class AdaptiveLog", "class Trial"]


USES = {
    "a picture": ("log.plot()", "matplotlib", "plots"),
    "a picture of results": ("ai.ArmMeans(log).fit().plot()", "matplotlib", "plots"),
    "a figure": ("ai.plots.figure()", "matplotlib", "plots"),
    "a file of a picture": ("ai.plots.save(None, 'picture.svg')", "matplotlib", "plots"),
    "a Great Table": ("ai.ArmMeans(log).fit().summary().to_gt()", "great-tables", "tables"),
    "a Word report": (
        "ai.report(ai.ArmMeans(log).fit(), folder + '/r.html', docx=folder + '/r.docx')",
        "python-docx",
        "word",
    ),
    "exact noise": ("ai.privacy.Laplace(epsilon=1.0).release([1.0], backend='release')", "opendp", "release"),
    "a trial": (
        "ai.Trial.create(folder + '/trial.db', ai.designs.Thompson(floor=.1), 2, 9)",
        "SQLAlchemy and cryptography",
        "trial",
    ),
    "an open trial": ("ai.Trial.open(folder + '/trial.db')", "SQLAlchemy and cryptography", "trial"),
    "a trial on a server": (
        "ai.Trial.open('postgresql://user@host/database')",
        "SQLAlchemy and cryptography",
        "trial",
    ),
    "a trial over HTTP": ("__import__('adaptinf.service.server')", "FastAPI", "serve"),
    "data files": (
        "ai.aggregate(folder + '/rows.parquet', action='a', reward='y', batch='b')",
        "duckdb",
        "large",
    ),
}


@pytest.fixture(scope="module")
def uses() -> Any:
    return without_extras(
        f"""
        import pathlib, tempfile
        import pandas as pd

        folder = tempfile.mkdtemp()
        pd.DataFrame({{"a": [0, 1] * 4, "y": [0, 1, 1, 0] * 2, "b": [0] * 4 + [1] * 4}}).to_parquet(
            folder + "/rows.parquet"
        )
        log = ai.designs.Thompson(floor=0.1).run(ai.environments.BernoulliArms([0.3, 0.6]), 60, rng=0)
        told = {{}}
        for name, (code, _, _) in {USES!r}.items():
            try:
                eval(code)
                told[name] = "it works"
            except Exception as error:
                told[name] = f"{{type(error).__name__}}: {{error}}"
        print(json.dumps({{"told": told, "left": sorted(p.name for p in pathlib.Path(folder).iterdir())}}))
        """
    )


@pytest.mark.parametrize("name", USES)
def test_what_needs_an_extra_names_it(uses: Any, name: str) -> None:
    _, package, extra = USES[name]
    told = uses["told"][name]
    assert told.startswith("MissingDependencyError: ")
    assert told.endswith(
        f" requires {package}, which cannot be imported: pip install '.[{extra}]' in the source tree, or "
        f"pip install -e '.[{extra}]' if adaptinf was installed with -e"
    )


def test_nothing_is_left_of_what_could_not_be_done(uses: Any) -> None:
    assert uses["left"] == ["rows.parquet"]


def test_the_main_job_is_done_without_extras(tmp_path: Path) -> None:
    """The script that a release runs in an empty environment, and the command line on what it writes."""
    found = without_extras(
        f"""
        import contextlib, io, runpy, sys
        from adaptinf.cli import main

        told = io.StringIO()
        with contextlib.redirect_stdout(told), contextlib.chdir({str(tmp_path)!r}):
            sys.argv = ["main_job.py", "rows.csv"]
            runpy.run_path({str(MAIN_JOB)!r}, run_name="__main__")
            line = "rows.csv --action arm --reward reward --propensities p"
            code = main(["analyze", *line.split()])
        print(json.dumps([code, told.getvalue()]))
        """
    )
    code, told = found
    assert code == 0
    assert [title for title in TITLES if title in told] == TITLES
    assert told.count("ArmMeans Results") == 2
    assert "500 rounds" in told
