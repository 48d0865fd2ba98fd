"""What is slow on purpose, and stops where a test wants it to."""

from __future__ import annotations

import asyncio
from typing import Any


class Gate:
    """`passing` is called by what is to be held up; `reached` says that it stands there, `open` lets it go on."""

    def __init__(self) -> None:
        self.reached, self.open = asyncio.Event(), asyncio.Event()

    async def passing(self) -> None:
        self.reached.set()
        await self.open.wait()


class Slow:
    """A store whose `method` stops at the gate before it reaches the real one, or after."""

    def __init__(self, store: Any, method: str, gate: Gate, *, after: bool = False) -> None:
        self._store, self._method, self._gate, self._after = store, method, gate, after

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._store, name)
        if name != self._method:
            return real

        async def slow(*arguments: Any, **options: Any) -> Any:
            if not self._after:
                await self._gate.passing()
            result = await real(*arguments, **options)
            if self._after:
                await self._gate.passing()
            return result

        return slow
