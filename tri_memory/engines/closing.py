"""`async with` for a store that holds connections."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Closing:
    """Closed at the end of its `async with` block."""

    async def close(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
