"""What a framework writes when an exchange is over was said when it began, perhaps before its user was forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tri_memory.contracts import ChatTurn, SessionStore
from tri_memory.entity.records import Forgotten


class Exchange:
    """One session of a store. Behind the registry of the forgotten (`privacy.guarded`), what is written is judged by
    when the session was last read here; any other store takes it as it comes."""

    def __init__(self, store: SessionStore, session_id: str) -> None:
        self._store: Any = store
        self._session_id = session_id
        self._began_at: datetime | None = None

    async def read(self) -> list[ChatTurn]:
        """Everything kept, oldest first; an exchange begins."""
        if hasattr(self._store, "began"):
            self._began_at = await self._store.began(self._session_id)
        turns: list[ChatTurn] = await self._store.get_history(self._session_id)
        return turns

    async def write(self, turns: Sequence[ChatTurn]) -> None:
        """Append them in order. Raises Forgotten where the user was forgotten since `read`; what comes then is new."""
        if not hasattr(self._store, "append_all"):
            for turn in turns:
                await self._store.append(self._session_id, turn)
            return
        try:
            await self._store.append_all(self._session_id, turns, self._began_at)
        except Forgotten:
            self._began_at = None
            raise
