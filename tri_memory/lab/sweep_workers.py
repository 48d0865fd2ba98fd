"""The cells of a sweep, run at once: in processes of our own, or on any `concurrent.futures` executor.

A process gets function and arguments by cloudpickle, so that what a notebook defines works there, and unpacks the
function once: what a `functools.cache` in it holds is made once a worker.
"""

from __future__ import annotations

import functools
import io
import math
import queue
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from types import CodeType
from typing import Any

import cloudpickle

from tri_memory.lab.sweep_cell import Outcome, failed, run_cell, run_packed
from tri_memory.lab.sweep_processes import in_processes, wait_for

Cell = tuple[dict[str, Any], int]

_Cached = type(functools.lru_cache(maxsize=1)(len))


def outcomes(
    function: Callable[..., Any], cells: Mapping[int, Cell], jobs: int | Executor
) -> Generator[tuple[int, Outcome], None, None]:
    """(number of the cell, outcome) as they finish; closing it drops what has not begun and ends our workers.

    ValueError where the function or a parameter can't be sent to a process.
    """
    if isinstance(jobs, ThreadPoolExecutor):
        yield from _on_executor(jobs, {i: (run_cell, function, *cell) for i, cell in cells.items()})
        return
    packed = _pack(function)
    sent = {i: _pack(cell) for i, cell in cells.items()}
    if isinstance(jobs, Executor):
        yield from _on_executor(jobs, {i: (run_packed, packed, cell) for i, cell in sent.items()})
    else:
        yield from in_processes(jobs, packed, sent)


def _on_executor(executor: Executor, tasks: Mapping[int, tuple[Any, ...]]) -> Iterator[tuple[int, Outcome]]:
    numbers: dict[Future[Outcome], int] = {}
    done: queue.SimpleQueue[Future[Outcome]] = queue.SimpleQueue()
    try:
        for number, task in tasks.items():
            try:
                future = executor.submit(*task)
            except BrokenExecutor as error:
                yield number, failed(error, math.nan)
                continue
            numbers[future] = number
            future.add_done_callback(done.put)
        for _ in range(len(numbers)):
            future = wait_for(done)
            yield numbers[future], _outcome(future)
    finally:
        for future in numbers:
            future.cancel()


def _outcome(future: Future[Outcome]) -> Outcome:
    try:
        return future.result()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # of the executor: a lost worker, a cancelled future
        return failed(error, math.nan)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Takes along what cloudpickle leaves behind: a notebook's functions under `functools.cache`, and the file names of
    code, without which an error could not show the line it comes from.
    """

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, _Cached) and obj.__module__ == "__main__":
            return functools.lru_cache(**obj.cache_parameters()), (obj.__wrapped__,)
        if isinstance(obj, CodeType):
            make, arguments = self.dispatch_table[CodeType](obj)
            return make, tuple(obj.co_filename if argument == "<dynamic-code>" else argument for argument in arguments)
        return super().reducer_override(obj)


def _pack(value: Any) -> bytes:
    buffer = io.BytesIO()
    try:
        _Pickler(buffer).dump(value)
    except Exception as error:
        raise ValueError(
            f"a worker process can't get what the sweep needs ({type(error).__name__}: {error}): make it inside the "
            "function, or pass jobs=ThreadPoolExecutor()"
        ) from error
    return buffer.getvalue()
