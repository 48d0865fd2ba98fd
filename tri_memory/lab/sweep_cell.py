"""One cell of a sweep, as a worker runs it, and the loop of a worker process.

A worker process starts with this file and nothing of `tri_memory` besides, so it imports little.
"""

from __future__ import annotations

import functools
import math
import os
import pickle
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Scalar = bool | int | float | str

LIBRARY_FOLDERS = {"site-packages", "dist-packages"}
_STDLIB = str(Path(os.__file__).parent)


@dataclass(frozen=True)
class Outcome:
    """How a cell ended: its results by name, or an error and where in the learner's code (file, line) it came up."""

    result: dict[str, Scalar] = field(default_factory=dict)
    seconds: float = math.nan
    error: str | None = None
    where: tuple[str, int] | None = None


def run_cell(function: Callable[..., Any], parameters: Mapping[str, Any], seed: int) -> Outcome:
    """Call the function; whatever it raises is part of the outcome, but for KeyboardInterrupt."""
    started = time.perf_counter()
    try:
        result = _results(function(**parameters, seed=seed))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an asyncio.CancelledError is no Exception, and is the cell's own affair
        return failed(error, time.perf_counter() - started)
    return Outcome(result, time.perf_counter() - started)


def run_packed(function: bytes, cell: bytes) -> Outcome:
    """`run_cell` in a worker process."""
    try:
        parameters, seed = pickle.loads(cell)
        unpacked = _unpack(function)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # what unpacking imports may raise anything
        return failed(error, math.nan)
    return run_cell(unpacked, parameters, seed)


def serve() -> None:
    """The loop of a worker process: the packed function and then cells come in at stdin, until it ends; what becomes
    of each goes out at stdout, its outcome or the KeyboardInterrupt that it raised.

    A cell sees neither: its own stdin is empty, and what it prints goes to stderr.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of the terminal; the parent sees to it
    with os.fdopen(os.dup(0), "rb") as tasks, os.fdopen(os.dup(1), "wb") as answers, open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)
        function = pickle.load(tasks)
        while True:
            try:
                cell = pickle.load(tasks)
            except EOFError:
                return
            answer: Outcome | KeyboardInterrupt
            try:
                answer = run_packed(function, cell)
            except KeyboardInterrupt:
                answer = KeyboardInterrupt()
            pickle.dump(answer, answers)
            answers.flush()


def failed(error: BaseException, seconds: float) -> Outcome:
    """An outcome without results, on one line, with the last place in the learner's own code."""
    import traceback  # most workers never need it

    text = f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_learners(frame.filename)]
    where = (own[-1].filename, own[-1].lineno or 0) if own else None
    return Outcome(seconds=seconds, error=text, where=where)


@functools.lru_cache(maxsize=1)
def _unpack(function: bytes) -> Any:
    return pickle.loads(function)


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


def _is_learners(filename: str) -> bool:
    ours = Path(__file__).parents[1]
    library = bool(LIBRARY_FOLDERS & set(Path(filename).parts)) or ours in Path(filename).parents
    return not library and not filename.startswith((_STDLIB, "<frozen"))
