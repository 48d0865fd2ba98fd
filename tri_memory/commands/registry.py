"""The registry of the forgotten that the commands share, where the environment has what it needs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tri_memory.privacy.pseudonyms import VARIABLE, Pseudonyms

if TYPE_CHECKING:
    from tri_memory.privacy.postgres_tombstones import PostgresTombstones


STORES = {"PREFERENCE_STORE": "pg", "EPISODIC_STORE": "pgvector", "USER_MEMORY_STORE": "pg"}  # those in Postgres


def pseudonyms_from_env() -> Pseudonyms | None:
    """None where no key is set; ValueError for one that is too short."""
    return Pseudonyms.from_env() if os.environ.get(VARIABLE, "").strip() else None


def registry_from_env() -> PostgresTombstones | None:
    """In the database that DATABASE_URL names, if a store there is chosen and MEMORY_PSEUDONYM_KEY is set."""
    url, names = os.environ.get("DATABASE_URL", "").strip(), pseudonyms_from_env()
    is_used = any(os.environ.get(name, "").strip().lower() == engine for name, engine in STORES.items())
    if not url or names is None or not is_used:
        return None
    from tri_memory.privacy.postgres_tombstones import PostgresTombstones

    return PostgresTombstones(url, names)
