"""What a turn has no place for (tool-call ids, images by URL) goes into its content: a mark, then the item as JSON.

So one store holds all of it, a fold never parts a call from its result, and a summariser can read what was called. Text
that happens to begin with the mark is put into an envelope too, or it could pass for one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

LONGEST_DATA = 1_000  # characters; what an image or a recording has more of
_URLS = frozenset({"image_url", "file_url", "url"})
_DATA = frozenset({"data", "file_data", "base64", "result"})
_A_TOOLS_OWN = frozenset({"args", "arguments", "input", "tool_calls", "artifact"})  # may be called anything


def wrap(mark: str, item: Mapping[str, Any]) -> str:
    """The envelope. ValueError for what is not JSON, and for data that doesn't belong into a conversation's text."""
    refuse_inline_data(item)
    try:
        return mark + json.dumps(item, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"this item can't be kept in a session, since it is not JSON: {error}") from error


def unwrap(mark: str, content: str) -> dict[str, Any] | None:
    """What is in the envelope; None for plain text."""
    if not content.startswith(mark):
        return None
    try:
        item = json.loads(content[len(mark) :])
    except (ValueError, RecursionError):
        return None
    return item if isinstance(item, dict) else None


def refuse_inline_data(value: Any, field: str = "") -> None:
    """ValueError for an image, a file or a recording that is here as base64: every window and every summary would
    carry it as text."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            if name not in _A_TOOLS_OWN:
                refuse_inline_data(part, str(name))
    elif isinstance(value, list | tuple):
        for part in value:
            refuse_inline_data(part, field)
    elif isinstance(value, str) and (
        (field in _URLS and value[:5].lower() == "data:") or (field in _DATA and len(value) > LONGEST_DATA)
    ):
        raise ValueError(
            f"{field} holds {len(value):,} characters of data, which a session store does not keep; "
            "upload it, and send its URL or its file id instead"
        )
