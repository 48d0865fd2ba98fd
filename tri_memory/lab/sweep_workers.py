"""The cells of a sweep, run at once: in processes of our own, or on any `concurrent.futures` executor.

A worker imports this file, so it stays light. A process gets function and arguments by cloudpickle, so that what a
notebook defines works there, and unpacks the function once: what a `functools.cache` in it holds is made once a worker.
"""

from __future__ import annotations

import functools
import io
import math
import queue
import re
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

import cloudpickle
from joblib.externals.loky import ProcessPoolExecutor

from tri_memory.lab.sweep_version import LIBRARY_FOLDERS

Scalar = bool | int | float | str
Cell = tuple[dict[str, Any], int]
Task = tuple[int, tuple[Any, ...]]

# One cell a core is all a machine can do: threads of numpy inside the cells would only get in each other's way.
ONE_THREAD = {
    f"{library}_THREADS": "1"
    for library in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "NUMEXPR_NUM", "VECLIB_MAXIMUM")
}
_IDLE_S = 30.0  # after which a worker ends by itself, should this process be killed before it can end it
_POLL_S = 0.2  # on Windows, Ctrl-C is only seen between two waits
_STDLIB = str(Path(traceback.__file__).parent)
_Cached = type(functools.lru_cache(maxsize=1)(len))


@dataclass(frozen=True)
class Outcome:
    """How a cell ended: its results by name, or an error and where in the learner's code (file, line) it came up."""

    result: dict[str, Scalar] = field(default_factory=dict)
    seconds: float = math.nan
    error: str | None = None
    where: tuple[str, int] | None = None


def run_cell(function: Callable[..., Any], parameters: Mapping[str, Any], seed: int) -> Outcome:
    """Call the function; whatever it raises is part of the outcome."""
    started = time.perf_counter()
    try:
        result = _results(function(**parameters, seed=seed))
    except (Exception, SystemExit) as error:
        return _failed(error, time.perf_counter() - started)
    return Outcome(result, time.perf_counter() - started)


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
    tasks: dict[int, tuple[Any, ...]] = {i: (run_packed, packed, _pack(cell)) for i, cell in cells.items()}
    if isinstance(jobs, Executor):
        yield from _on_executor(jobs, tasks)
    else:
        yield from _in_processes(jobs, tasks)


def run_packed(function: bytes, cell: bytes) -> Outcome:
    """`run_cell` in a worker process."""
    try:
        parameters, seed = cloudpickle.loads(cell)
        unpacked = _unpack(function)
    except Exception as error:
        return _failed(error, math.nan)
    return run_cell(unpacked, parameters, seed)


@functools.lru_cache(maxsize=1)
def _unpack(function: bytes) -> Any:
    return cloudpickle.loads(function)


def _on_executor(executor: Executor, tasks: Mapping[int, tuple[Any, ...]]) -> Iterator[tuple[int, Outcome]]:
    numbers: dict[Future[Outcome], int] = {}
    done: queue.SimpleQueue[Future[Outcome]] = queue.SimpleQueue()
    try:
        for number, task in tasks.items():
            try:
                future = executor.submit(*task)
            except BrokenExecutor as error:
                yield number, _failed(error, math.nan)
                continue
            numbers[future] = number
            future.add_done_callback(done.put)
        for _ in range(len(numbers)):
            future = _next(done)
            yield numbers[future], _outcome(future)
    finally:
        for future in numbers:
            future.cancel()


def _outcome(future: Future[Outcome]) -> Outcome:
    try:
        return future.result()
    except (Exception, SystemExit) as error:  # of the executor: a lost worker, a cancelled future
        return _failed(error, math.nan)


def _in_processes(workers: int, tasks: Mapping[int, tuple[Any, ...]]) -> Iterator[tuple[int, Outcome]]:
    """All tasks, whatever becomes of the workers: who was running when one died is run once more, alone."""
    waiting = deque(tasks.items())
    while waiting:
        for number, task in (yield from _until_one_dies(workers, waiting)):
            if (yield from _until_one_dies(1, deque([(number, task)]))):
                error = "the cell's worker process died: out of memory, a crash in C code, or an os._exit"
                yield number, Outcome(error=f"WorkerDied: {error}")


def _until_one_dies(workers: int, waiting: deque[Task]) -> Generator[tuple[int, Outcome], None, list[Task]]:
    """Work off `waiting`; returns the tasks that were running when a worker died, [] if none did."""
    pool = ProcessPoolExecutor(workers, timeout=_IDLE_S, env=ONE_THREAD, initializer=_leave_interrupts_to_the_parent)
    running: dict[Future[Outcome], Task] = {}
    done: queue.SimpleQueue[Future[Outcome]] = queue.SimpleQueue()
    lost: list[Task] = []
    ended = False
    try:
        while running or (waiting and not lost):
            while waiting and not lost and len(running) < 2 * workers:  # one in work, one at hand
                try:
                    future = pool.submit(*waiting[0][1])
                except BrokenExecutor:
                    lost += [] if running else [waiting.popleft()]
                    break
                running[future] = waiting.popleft()
                future.add_done_callback(done.put)
            if running:
                future = _next(done)
                task = running.pop(future)
                if isinstance(future.exception(), BrokenExecutor):
                    lost.append(task)
                else:
                    yield task[0], _outcome(future)
        ended = not lost
    finally:
        pool.shutdown(wait=True, kill_workers=not ended)
    return lost


def _next(done: queue.SimpleQueue[Future[Outcome]]) -> Future[Outcome]:
    while True:
        try:
            return done.get(timeout=_POLL_S)
        except queue.Empty:
            continue


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of the terminal or kernel


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


def _results(returned: Any) -> dict[str, Scalar]:
    if not isinstance(returned, Mapping):
        return {"value": _scalar("the result", returned)}
    for name in returned:
        if not isinstance(name, str):
            raise TypeError(f"the result's name {name!r} is a {type(name).__name__}, not text")
    return {name: _scalar(f"the result {name!r}", value) for name, value in returned.items()}


def _scalar(name: str, value: Any) -> Scalar:
    plain = value.item() if hasattr(value, "dtype") and getattr(value, "ndim", None) == 0 else value
    for kind in (bool, int, float, str):
        if isinstance(plain, kind):
            return kind(plain)
    raise TypeError(f"{name} is a {type(value).__name__}: return a number, or a mapping of names to numbers and text")


def _failed(error: BaseException, seconds: float) -> Outcome:
    text = re.sub(r"\s+", " ", f"{type(error).__name__}: {error}").strip().removesuffix(":")
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_learners(frame.filename)]
    where = (own[-1].filename, own[-1].lineno or 0) if own else None
    return Outcome(seconds=seconds, error=text, where=where)


def _is_learners(filename: str) -> bool:
    parts = Path(filename).parts
    ours = Path(__file__).parents[1]
    library = bool(LIBRARY_FOLDERS & set(parts)) or ours in Path(filename).parents
    return not library and not filename.startswith((_STDLIB, "<frozen"))
