"""One user's sessions in a store that holds everybody's: the user id is part of every key."""

from __future__ import annotations

import secrets
from urllib.parse import quote

from tri_memory.clock import Clock
from tri_memory.contracts import SessionStore, SessionSummary, require_text, shown


class OwnSessions:
    """Keys are the user id, percent-encoded, then "/" and the session id: nobody's session is another's."""

    def __init__(self, user_id: str, sessions: SessionStore | None, clock: Clock) -> None:
        self.user_id, self.sessions, self.clock = user_id, sessions, clock
        self._prefix = quote(user_id, safe="") + "/"

    def key(self, session_id: str) -> str:
        """Under which the store keeps the session."""
        return self._prefix + session_id

    def named(self, wished: str | None) -> str:
        """The wished session id, or a new one that begins with the time. Raises ValueError for the user id."""
        if wished is None:
            return f"{self.clock():%Y-%m-%d-%H%M%S}-{secrets.token_hex(2)}"
        if require_text("session_id", wished) == self.user_id:
            raise ValueError(f"the session id {shown(wished)} is the user id: a session ends, a user stays")
        return wished

    async def rows(self) -> list[SessionSummary]:
        """Under their session ids, most recently active first."""
        if self.sessions is None:
            return []
        rows = [row for row in await self.sessions.list_sessions() if row.session_id.startswith(self._prefix)]
        return [SessionSummary(row.session_id.removeprefix(self._prefix), row.turns, row.updated_at) for row in rows]

    async def clear(self) -> int:
        """Delete them all; how many there were."""
        rows = await self.rows()
        for row in rows:
            await self.sessions.clear(self.key(row.session_id))  # type: ignore[union-attr]
        return len(rows)
