"""Layer 2 in a dictionary: what each user said about themselves. It does not outlive the process."""

from __future__ import annotations

import threading

from tri_memory.contracts import require_text
from tri_memory.preference.rules import clean, clean_key


class InMemoryPreferenceStore:
    """Preferences in this process: setting again replaces. Safe for several coroutines and threads."""

    def __init__(self) -> None:
        self._users: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()

    async def get(self, user_id: str, key: str) -> str | None:
        require_text("user_id", user_id)
        return self._users.get(user_id, {}).get(clean_key(key))

    async def set(self, user_id: str, key: str, value: str) -> bool:
        require_text("user_id", user_id)
        pair = clean(key, value)
        if pair is None:
            return False
        with self._lock:
            self._users.setdefault(user_id, {})[pair[0]] = pair[1]
        return True

    async def all(self, user_id: str) -> dict[str, str]:
        require_text("user_id", user_id)
        with self._lock:
            return dict(self._users.get(user_id, {}))

    async def forget(self, user_id: str) -> int:
        require_text("user_id", user_id)
        with self._lock:
            return len(self._users.pop(user_id, {}))
