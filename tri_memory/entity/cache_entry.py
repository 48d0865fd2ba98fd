"""What stands in the cache: all active records of a user, or those of one type, as JSON; and the search among them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from tri_memory.entity.records import UserMemory

MOST_RECORDS = 200  # of a user and type; who has more is served by the truth, which has an index
LARGEST_ENTRY = 200_000  # bytes, by rule of thumb: Redis serves one at a time, and a large value holds up all others

_TOO_LARGE = "null"


class TooLarge(Exception):
    """There is an entry, and it says that the truth is to be asked."""


def encoded(records: Sequence[UserMemory]) -> str:
    """The entry for these records, which only names their user in its key."""
    if len(records) > MOST_RECORDS:
        return _TOO_LARGE
    rows = [
        [
            one.memory_type,
            one.entity_id,
            one.content,
            one.created_at.isoformat(),
            one.updated_at.isoformat(),
            one.relevance_score,
        ]
        for one in records
    ]
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    return text if len(text.encode()) <= LARGEST_ENTRY else _TOO_LARGE


def decoded(user_id: str, kind: str, entry: bytes | str) -> list[UserMemory]:
    """The records of an entry, in its order. ValueError for what `encoded` did not write; TooLarge."""
    try:
        rows = json.loads(entry)
        if rows is None:
            raise TooLarge
        if not isinstance(rows, list):
            raise ValueError(f"an entry of the cache is a list; got a {type(rows).__name__}")
        records = [_record(user_id, *row) for row in rows]
    except (TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"an entry of the cache is not one: {type(error).__name__}") from error
    if kind != "any" and any(one.memory_type != kind for one in records):
        raise ValueError("an entry of the cache holds records of another type")
    return records


def _record(
    user_id: str, memory_type: str, entity_id: str, content: object, created: str, updated: str, score: float
) -> UserMemory:
    if not (isinstance(entity_id, str) and isinstance(content, dict) and isinstance(score, int | float)):
        raise ValueError("a record of the cache is not one")
    at, since = datetime.fromisoformat(updated), datetime.fromisoformat(created)
    return UserMemory(user_id, memory_type, entity_id, content, since, at, score)  # type: ignore[arg-type]
