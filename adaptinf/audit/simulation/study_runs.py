"""Studies: a grid of designs, environments and analyses, stored on disk so that it can be resumed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import pyarrow as pa
from tqdm import tqdm

from adaptinf.audit.simulation.engine import (
    Chunk,
    Fit,
    LogCell,
    Truth,
    cell_problems,
    each,
    horizon_problems,
    spans,
    total_seconds,
    total_sums,
    whole,
)
from adaptinf.audit.simulation.measures import BlockSums, table_rows
from adaptinf.audit.simulation.study_folder import Folder, described, root_of, seed_of, settle, versions
from adaptinf.audit.simulation.study_tables import Study, cell_table, open_folder
from adaptinf.designs.base import Design
from adaptinf.errors import ParameterError
from adaptinf.parameters import BOOLEAN, COUNT, SEED, OneOf, alpha_problems, refuse
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import BLOCK, seed_sequence
from adaptinf.typing import RandomSource

# A process that is killed loses at most this many runs, because each chunk is written at once.
_CHUNK = 4 * BLOCK


def study(
    designs: Mapping[str, Design],
    environments: Mapping[str, Environment],
    analyses: Mapping[str, Fit],
    horizons: Sequence[int],
    replications: int,
    rng: RandomSource | None = None,
    path: str | Path | None = None,
    *,
    n_jobs: int = 1,
    alpha: float = 0.05,
    keep: str | None = None,
    truth: Mapping[str, Truth] | None = None,
    on_error: str = "raise",
    progress: bool = True,
    same_sources: bool = True,
) -> Study:
    """Coverage, error rates, bias and width of analyses over a grid, in resumable pieces.

    Parameters
    ----------
    designs : mapping of str to Design
        The designs that collect the data, by name.
    environments : mapping of str to Environment
        The environments, by name.
    analyses : mapping of str to callable
        Functions of an AdaptiveLog that return a result; or a test, that is, any object with a number
        `pvalue` (``audit.randomization_test``, ``audit.exact_test``, tests from SciPy); or a dict of these by
        name ("analysis: name" in the table). A function with a parameter `rng` receives a SeedSequence for
        the trial. All analyses of a cell use the same logs.
    horizons : sequence of int
        Rounds per trial.
    replications : int
        Number of trials in each cell.
    rng : int, SeedSequence, Generator or None
        Source of randomness. Trial r of every cell is trial r of ``design.logs(env, horizon, ..., rng)``:
        cells share their streams, so simulation errors in different cells are not independent. If None, a
        seed is drawn once and stored in the manifest.
    path : str or Path, optional
        Folder of the study. When `study` is called again with the same arguments, it resumes where it
        stopped. None keeps everything in memory.
    n_jobs : int
        Worker processes, -1 for all cores; the tables are byte for byte the same for any number.
    alpha : float
        One minus the nominal confidence level, between 0 and 0.5.
    keep : {None, "estimates"}
        Also store the estimate, standard error, limits and p-value of every trial (`Study.estimates`).
    truth : mapping of str to callable, optional
        True values by analysis, if they do not follow from the environment: a function of the environment and
        a result that returns one number per term.
    on_error : {"raise", "count"}
        Whether an error in an analysis stops the study or only the trial, which is then counted in `failed`,
        with the reason in `note`. A study that was stopped may be resumed with ``"count"``.
    progress : bool
        Show a progress bar with the remaining time.
    same_sources : bool
        Refuse to resume if the code of adaptinf has changed since the study began.

    Returns
    -------
    Study
        The tables.

    Raises
    ------
    ParameterError
        If an argument is invalid (the message lists every problem, before anything is drawn), the folder
        cannot be created, or it contains a different study (the message lists the differences).
    AnalysisError
        If a design fails, or an analysis fails and `on_error` is ``"raise"``: the message names the cell and
        the replicate, and states how to reproduce the log. Earlier results are kept.
    OSError
        If the disk fails during the run.

    Notes
    -----
    Sums are kept for each block of 64 trials, and merged block by block in order, so the order of additions
    depends neither on the number of processes nor on interruptions. Trials are stored 256 at a time, so a
    study that is stopped loses at most that many in each process; smaller cells are stored when they are
    finished. Each shard is first written under another name, then synced and renamed; it carries a digest, so
    damaged shards are detected and recomputed. An analysis that raises `InvalidForLog` is counted, and its
    reason is given in the column `note`. Trial r passes to its analyses the seed sequence with the spawn key
    (..., 0x46495453, r), which the design does not use: re-runs with one fixed seed would share their coins
    over all trials, whose rejections would no longer be independent. The bytes of the tables depend on the
    versions of Python and of the packages that the manifest lists, and floating-point results may differ
    between kinds of processors.

    Examples
    --------
    >>> import adaptinf as ai
    >>> result = ai.audit.study(
    ...     designs={"uniform": ai.designs.Uniform()},
    ...     environments={"no signal": ai.environments.BernoulliArms([0.5, 0.5])},
    ...     analyses={"means": lambda log: ai.ArmMeans(log).fit()},
    ...     horizons=[100],
    ...     replications=64,
    ...     rng=0,
    ...     progress=False,
    ... )
    >>> result.frame["term"].tolist()
    ['0', '1']
    """
    given: dict[str, Any] = {
        "designs": designs,
        "environments": environments,
        "analyses": analyses,
        "truth": truth or {},
    }
    given |= {"horizons": horizons, "replications": replications, "rng": rng, "path": path, "n_jobs": n_jobs}
    given |= {"alpha": alpha, "keep": keep, "on_error": on_error}
    given |= {"progress": progress, "same_sources": same_sources}
    refuse("study", grid_problems(given))
    manifest: dict[str, Any] = {
        "designs": described(designs),
        "environments": described(environments),
        "analyses": described(analyses),
        "truth": described(truth or {}),
        "horizons": [int(horizon) for horizon in horizons],
        "replications": int(replications),
        "seed": seed_of(seed_sequence(rng)),
        "alpha": float(alpha),
        "keep": keep,
        "shard": _CHUNK,
        "versions": versions(),
    }
    grid = itertools.product(designs.items(), environments.items(), manifest["horizons"])

    def cells() -> list[LogCell]:
        rest = (dict(analyses), float(alpha), root_of(manifest["seed"]), dict(truth or {}))
        return [
            LogCell((name, place), design, env, horizon, *rest, on_error=on_error, regret=True)
            for (name, design), (place, env), horizon in grid
        ]

    if path is None:
        return _in_memory(cells(), manifest, n_jobs, progress)
    root = _made(path)
    with Folder(root, "", ()).locked():
        manifest = settle(root, manifest, drawn=rng is None, same_sources=same_sources)
        folder = open_folder(root, manifest)
        _on_disk(cells(), folder, manifest, n_jobs, progress)
        return Study.of_folder(folder, manifest)


def _tabulate(cells: Sequence[LogCell]) -> Callable[[int, BlockSums], pa.Table]:
    def table(index: int, sums: BlockSums) -> pa.Table:
        cell = cells[index]
        return cell_table((*cell.names, cell.horizon), table_rows(sums, tuple(cell.analyses)))

    return table


def _made(path: str | Path) -> Path:
    """The folder at the given path, created if missing."""
    root = Path(path)
    try:
        root.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise ParameterError("study", [f"path: the folder {path} cannot be created: {error}"]) from error
    return root


def _in_memory(cells: Sequence[LogCell], manifest: dict[str, Any], n_jobs: int, progress: bool) -> Study:
    chunks = list(spans(manifest["replications"], _CHUNK))
    tasks = [(index, start, stop) for index in range(len(cells)) for start, stop in chunks]
    found: dict[tuple[int, int], Chunk] = {}
    with _bar(len(cells) * manifest["replications"], 0, progress) as bar:
        for index, start, chunk in each(cells, tasks, whole, n_jobs=n_jobs):
            found[index, start] = chunk
            bar.update(chunk.stop - chunk.start)
    tables, seconds = [], []
    for index in range(len(cells)):
        parts = [found[index, start] for start, _ in chunks]
        tables.append(_tabulate(cells)(index, total_sums(parts)))
        seconds.append(total_seconds(part.seconds for part in parts))
    return Study.of_tables(tables, seconds, manifest)


def _on_disk(
    cells: Sequence[LogCell], folder: Folder, manifest: dict[str, Any], n_jobs: int, progress: bool
) -> None:
    """Compute missing parts of the folder; a cell is merged once its last chunk is complete."""
    chunks = list(spans(manifest["replications"], _CHUNK))
    folder.prepare()
    left: dict[int, int] = {}
    tasks = []
    for index in range(len(cells)):
        if folder.has_cell(index):
            folder.sweep(index)
            continue
        open_chunks = [chunk for chunk in chunks if not folder.has_chunk(index, *chunk)]
        left[index] = len(open_chunks)
        tasks += [(index, start, stop) for start, stop in open_chunks]
    tabulate = _tabulate(cells)
    total = len(cells) * manifest["replications"]
    with _bar(total, total - sum(stop - start for _, start, stop in tasks), progress) as bar:
        for index in [index for index, count in left.items() if count == 0]:
            folder.finish(index, chunks, tabulate)
        keep = manifest["keep"] is not None
        for index, _, runs in each(cells, tasks, folder.save, keep=keep, n_jobs=n_jobs):
            bar.update(runs)
            left[index] -= 1
            if left[index] == 0:
                folder.finish(index, chunks, tabulate)


def _bar(total: int, initial: int, progress: bool) -> Any:
    return tqdm(total=total, initial=initial, desc="study", unit=" runs", disable=not progress)


_NAMED = (
    ("designs", Design, "a design"),
    ("environments", Environment, "an environment"),
    ("analyses", None, "a function of a log"),
    ("truth", None, "a function of an environment and a result"),
)


def grid_problems(given: Mapping[str, Any]) -> list[str]:
    """List problems with the arguments of `study`, by name."""
    problems = [problem for name, *what in _NAMED for problem in _named_problems(name, given[name], *what)]
    problems += list(horizon_problems(given["horizons"]))
    problems += COUNT("replications", given["replications"]) + SEED("rng", given["rng"])
    problems += _settings_problems(given)
    return problems or list(cell_problems(given))


def _named_problems(name: str, values: Any, kind: type | None, what: str) -> Iterator[str]:
    if not isinstance(values, Mapping) or (not values and name != "truth"):
        yield f"{name} must be a dict of {what} by name, with at least one entry, got {values!r:.60}"
        return
    for label, value in values.items():
        if not isinstance(label, str) or not label.strip():
            yield f"the names in {name} must be non-empty strings, got {label!r:.60}"
        elif name == "analyses" and (": " in label or label.endswith(", corrected")):
            yield (
                f"analyses[{label!r}]: names that contain ': ' or end in ', corrected' are reserved for "
                "table rows"
            )
        if not (callable(value) if kind is None else isinstance(value, kind)):
            yield f"{name}[{label!r}] must be {what}, got {value!r:.60}"


def _settings_problems(given: Mapping[str, Any]) -> list[str]:
    problems = alpha_problems(given["alpha"])
    path, n_jobs, keep = given["path"], given["n_jobs"], given["keep"]
    if not (path is None or isinstance(path, (str, Path))):
        problems.append(f"path must be the name of a folder, or None, got {path!r:.60}")
    elif path is not None and Path(path).exists() and not Path(path).is_dir():
        problems.append(f"path must be a folder, but {path} is a file")
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        problems.append(
            f"n_jobs must be a whole number of processes, or -1 for all cores, got {n_jobs!r:.60}"
        )
    if keep not in (None, "estimates"):
        problems.append(f"keep must be 'estimates' or None, got {keep!r:.60}")
    elif keep is not None and path is None:
        problems.append("keep='estimates' requires path=, the folder in which to keep them")
    problems += OneOf("raise", "count")("on_error", given["on_error"])
    problems += BOOLEAN("progress", given["progress"]) + BOOLEAN("same_sources", given["same_sources"])
    if isinstance(given["truth"], Mapping) and isinstance(given["analyses"], Mapping):
        strangers = [name for name in given["truth"] if name not in given["analyses"]]
        problems += [f"truth[{name!r}] does not match the name of any analysis" for name in strangers]
    return problems
