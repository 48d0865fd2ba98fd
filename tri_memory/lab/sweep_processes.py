"""The worker processes of a sweep: one Python each, which a thread here feeds cell by cell over pipes.

Ours and no pool of joblib's: those workers import numpy before they begin, and so do the helpers that they start, which
costs 200 cells of 0.1 s on two cores 5 % of their time. And here it is known which cell a worker died of.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from typing import IO, TypeVar, cast

from tri_memory.lab.sweep_cell import Outcome

T = TypeVar("T")
Waiting = deque[tuple[int, bytes]]
Ended = queue.SimpleQueue[tuple[int, Outcome | BaseException | None]]

# One cell a core is all a machine can do: threads of numpy inside the cells would only get in each other's way.
ONE_THREAD = {
    f"{library}_THREADS": "1"
    for library in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "BLIS_NUM", "NUMEXPR_NUM", "VECLIB_MAXIMUM")
}
_START = """
import sys
sys.path[:] = sys.argv[1:]
del sys.argv[1:]
from tri_memory.lab.sweep_cell import serve
serve()
"""
_POLL_S = 0.2  # on Windows, Ctrl-C is only seen between two waits
_LAST_S = 5.0  # for a worker to leave by itself: an `atexit` of the learner's may have something to write
_DIED = "WorkerDied: the cell's worker process died: out of memory, a crash in C code, or an os._exit"


def in_processes(workers: int, function: bytes, cells: Mapping[int, bytes]) -> Iterator[tuple[int, Outcome]]:
    """(number of the cell, outcome) as they finish; closing it kills what is running.

    A cell whose worker died is run once more when all are done, alone: it may have been the others that took its
    memory. Raises KeyboardInterrupt where a cell does.
    """
    for number in (yield from _run(workers, function, cells)):
        if (yield from _run(1, function, {number: cells[number]})):
            yield number, Outcome(error=_DIED)


def wait_for(ended: queue.SimpleQueue[T]) -> T:
    """The next thing in the queue, however long it takes."""
    while True:
        try:
            return ended.get(timeout=_POLL_S)
        except queue.Empty:
            continue


def _run(workers: int, function: bytes, cells: Mapping[int, bytes]) -> Generator[tuple[int, Outcome], None, list[int]]:
    """Yields the cells that ended; returns the numbers of those whose worker died."""
    waiting: Waiting = deque(cells.items())
    ended: Ended = queue.SimpleQueue()
    lost: list[int] = []
    crew = [_Worker(function, waiting, ended) for _ in range(min(workers, len(cells)))]
    try:
        for worker in crew:
            worker.start()
        for _ in cells:
            number, answer = wait_for(ended)
            if isinstance(answer, BaseException):
                raise answer
            if answer is None:
                lost.append(number)
            else:
                yield number, answer
        for worker in crew:
            worker.join(_LAST_S)
    finally:
        waiting.clear()
        for worker in crew:
            worker.end()
    return lost


class _Worker(threading.Thread):
    """Has a process do what is waiting, and another one when it died."""

    def __init__(self, function: bytes, waiting: Waiting, ended: Ended) -> None:
        super().__init__(daemon=True)
        self._function, self._waiting, self._ended = function, waiting, ended
        self._process: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        try:
            while self._waiting:
                self._process = _started()
                self._feed(self._process)
        except BaseException as error:  # unseen, the sweep would wait for ever
            self._ended.put((-1, error))

    def end(self) -> None:
        """Kill what is still running; nothing may be waiting."""
        while self.is_alive():
            if self._process:
                self._process.kill()
            self.join(0.05)

    def _feed(self, process: subprocess.Popen[bytes]) -> None:
        """Until nothing is waiting or the process died, which is reported as None for the cell that it died of."""
        tasks, answers = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
        before = [self._function]
        with suppress(IndexError):  # nothing is waiting any more
            while True:
                number, cell = self._waiting.popleft()
                try:
                    tasks.writelines(pickle.dumps(message) for message in (*before, cell))
                    tasks.flush()
                    self._ended.put((number, pickle.load(answers)))
                except (OSError, EOFError, pickle.UnpicklingError):
                    self._ended.put((number, None))
                    process.kill()
                    break
                before = []
        with suppress(OSError):
            tasks.close()
        answers.close()
        process.wait()


def _started() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", _START, *map(str, sys.path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | ONE_THREAD)
