"""Many runs of one function over a grid of parameters and seeds, side by side, as a tidy table.

    def score(k, seed):
        return {"hits": ..., "milliseconds": ...}

    table = sweep(score, {"k": [1, 3, 10]}, seeds=20)

Something slow to make, an embedder say, belongs in the function and not beside it: `default_embedder()` loads its model
once a process, and so does any function of yours under `functools.cache`, in a module or in the notebook.
"""

from __future__ import annotations

import inspect
import linecache
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from itertools import product
from operator import index
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from tri_memory.contracts import shown
from tri_memory.lab.sweep_cache import SweepCache, default_folder
from tri_memory.lab.sweep_cell import Outcome
from tri_memory.lab.sweep_constants import set_anew
from tri_memory.lab.sweep_workers import Cell, outcomes

OURS = ("seed", "seconds", "error")


def sweep(
    function: Callable[..., Any],
    grid: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]],
    *,
    seeds: int | Iterable[int] = 1,
    jobs: int | Executor | None = None,
    cache: bool | str | Path = True,
) -> pd.DataFrame:
    """One row a call of `function(**parameters, seed=seed)`, in the order of the grid, then of the seeds.

    `grid`: names and their values, of which every combination is run, or a list of mappings. `seeds`: how many (from
    0), or which. `function` returns a number (column "value") or a mapping of names to numbers and text (a column
    each). Columns: the parameters, seed, the results, seconds (of the call), error (None, or what it raised and where;
    such a row has no results).

    `jobs`: processes (None: one a core, with one thread each for numpy), or a `concurrent.futures` executor, which
    stays open: a ThreadPoolExecutor, or a Dask cluster by `client.get_executor()`. `cache`: finished cells are kept on
    disk until their code, parameters or seed change (`sweep_version` says what counts); False keeps none, a path
    chooses the folder, and TRI_MEMORY_CACHE the usual one. A cell that reads a file does not notice when it changes.

    Ctrl-C raises KeyboardInterrupt, which says how many cells the cache has and where. TQDM_DISABLE=1 in the
    environment hides the progress bar. ValueError before anything runs for a grid, seeds, jobs or parameters that
    don't fit, and for a constant of `tri_memory` that was set anew here, which no other process would know; after the
    first cell for a result that has the name of another column.
    """
    cells = _cells(grid, seeds)
    workers = _workers(jobs)
    _check_call(function, cells)
    _check_constants(workers)
    kept = SweepCache(None if cache is False else default_folder() if cache is True else Path(cache), function)
    keys = [kept.key(*cell) for cell in cells]
    ended: dict[int, Outcome] = {}
    for number, key in enumerate(keys):
        if (found := kept.get(key)) is not None:
            ended[number] = Outcome(*found)
    left = {number: cell for number, cell in enumerate(cells) if number not in ended}
    hidden = bool(os.environ.get("TQDM_DISABLE"))  # as it is now: tqdm looks when it is imported
    bar = tqdm(total=len(cells), initial=len(ended), unit="cell", desc=_name(function), disable=hidden)
    try:
        with bar, closing(outcomes(function, left, workers)) as finished:
            failed = 0
            for number, outcome in finished if left else ():
                _check_names(cells[number], outcome)
                ended[number] = outcome
                if outcome.error is None:
                    kept.put(keys[number], outcome.result, outcome.seconds)
                else:
                    failed += 1
                    bar.set_postfix_str(f"{failed} failed", refresh=False)
                bar.update()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{len(ended)} of {len(cells)} cells have ended; {kept.held()}") from None
    return _table(cells, [ended[number] for number in range(len(cells))])


def _cells(grid: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]], seeds: int | Iterable[int]) -> list[Cell]:
    chosen = _seeds(seeds)
    points = _product(grid) if isinstance(grid, Mapping) else _points(grid)
    if not points:
        raise ValueError(f"the grid is empty: {grid!r}; give names and their values, such as {{'k': [1, 3]}}")
    for name in {name for point in points for name in point}:
        if not isinstance(name, str) or name in OURS:
            raise ValueError(f"no parameter can be called {name!r}: {', '.join(OURS)} are columns of the table")
    return [(point, seed) for point in points for seed in chosen]


def _product(grid: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    values: dict[str, list[Any]] = {}
    for name, its in grid.items():
        if isinstance(its, str) or not isinstance(its, Iterable):
            raise ValueError(f"the values of {name!r} are {its!r}: write [{its!r}]")
        values[name] = list(its)
        if not values[name]:
            raise ValueError(f"the grid is empty: {name!r} has no value")
    return [dict(zip(values, point, strict=True)) for point in product(*values.values())] if values else []


def _points(grid: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    points = list(grid) if isinstance(grid, Iterable) else [grid]
    for point in points:
        if not isinstance(point, Mapping):
            raise ValueError(
                f"grid={shown(grid)}: {shown(point)} is no mapping; give names and their values, such as "
                "{'k': [1, 3]}, or a list of mappings, such as [{'k': 1}, {'k': 3}]"
            )
    return [dict(point) for point in points]


def _seeds(seeds: int | Iterable[int]) -> list[int]:
    try:
        chosen = list(range(index(seeds))) if isinstance(seeds, int | np.integer) else [index(seed) for seed in seeds]
    except TypeError:  # neither a number nor a list of them
        chosen = []
    if not chosen or isinstance(seeds, bool):
        raise ValueError(f"seeds={shown(seeds)}: give how many, from 1 on, or which, as a list of whole numbers")
    return chosen


def _workers(jobs: int | Executor | None) -> int | Executor:
    if jobs is None:
        return int(joblib.cpu_count())
    if isinstance(jobs, Executor) or (isinstance(jobs, int) and not isinstance(jobs, bool) and jobs > 0):
        return jobs
    raise ValueError(f"jobs={jobs!r}: None for all cores, a number from 1 on, or a concurrent.futures executor")


def _check_call(function: Callable[..., Any], cells: list[Cell]) -> None:
    """Whether the function takes these parameters, so that a slip is seen now and not in every row."""
    if inspect.iscoroutinefunction(function):
        raise ValueError(
            f"{_name(function)} is a coroutine: sweep a function that calls asyncio.run({_name(function)}(…))"
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C have none
        return
    for parameters, seed in cells:
        try:
            signature.bind(**parameters, seed=seed)
        except TypeError as error:
            given = ", ".join([*parameters, "seed"])
            raise ValueError(f"{_name(function)}{signature} can't be called with {given}: {error}") from None


def _check_constants(workers: int | Executor) -> None:
    """A worker process imports the files, and would run with what stands there."""
    if isinstance(workers, ThreadPoolExecutor):
        return
    for name, here, written in set_anew():
        raise ValueError(
            f"{name} is {shown(here)} here and {shown(written)} in its file, as a worker process would have it: set it "
            "in the function, or pass jobs=ThreadPoolExecutor()"
        )


def _check_names(cell: Cell, outcome: Outcome) -> None:
    for name in outcome.result:
        if name in cell[0] or name in OURS:
            raise ValueError(f"the function returns {name!r}, which is a column already: give the result another name")


def _table(cells: list[Cell], ended: list[Outcome]) -> pd.DataFrame:
    parameters = dict.fromkeys(name for cell in cells for name in cell[0])
    results = dict.fromkeys(name for outcome in ended for name in outcome.result)
    columns: dict[str, list[Any]] = {name: [cell[0].get(name) for cell in cells] for name in parameters}
    columns["seed"] = [cell[1] for cell in cells]
    columns |= {name: [outcome.result.get(name) for outcome in ended] for name in results}
    columns["seconds"] = [outcome.seconds for outcome in ended]
    return pd.DataFrame(columns).assign(error=pd.Series([_error(outcome) for outcome in ended], dtype=object))


def _error(outcome: Outcome) -> str | None:
    """The error with the line of the notebook that it comes from; only this process knows the text of a cell."""
    if outcome.error is None or outcome.where is None:
        return outcome.error
    file, line = outcome.where
    return f"{outcome.error} (line {line}: {linecache.getline(file, line).strip()})"


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
