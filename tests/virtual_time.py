"""An event loop that never waits: where it would sleep, its clock jumps, so experiments run at once and exactly."""

from __future__ import annotations

import asyncio
import selectors
from typing import Any


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Sleeping costs nothing; `time()` moves by what would have been slept. For code without real I/O only."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_NeverWaiting(self))

    def time(self) -> float:
        return self._now


class _NeverWaiting(selectors.DefaultSelector):  # type: ignore[misc, valid-type]
    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self.loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready and timeout:
            self.loop._now += timeout
        return ready
