"""The content of a user's record: a JSON object that every engine stores, gives back and searches alike."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from tri_memory.contracts import refuse_surrogates

LARGEST_CONTENT = 1_000_000  # bytes of JSON
DEEPEST = 100  # objects and lists inside each other
MOST_BITS = 1_024  # of a whole number: as large as the largest float


def to_text(name: str, content: Any) -> str:
    """`content` as the JSON text that every engine can store. ValueError names the place, and not what stands there."""
    if not isinstance(content, Mapping):
        raise ValueError(f"{name} must be a JSON object, such as a dict; got a {type(content).__name__}")
    text = json.dumps(_plain(name, content, 0), ensure_ascii=False, separators=(",", ":"))
    size = len(text.encode())
    if size > LARGEST_CONTENT:
        raise ValueError(
            f"{name} has {size:,} bytes as JSON, and at most {LARGEST_CONTENT:,} are stored: keep the large part "
            "elsewhere, and here where it is"
        )
    return text


def from_text(text: str) -> dict[str, Any]:
    """Keys in order, since Postgres keeps them in one of its own."""
    content: dict[str, Any] = json.loads(text, object_pairs_hook=lambda pairs: dict(sorted(pairs)))
    return content


def sessions_of(content: Mapping[str, Any]) -> list[str]:
    """The sessions that a record names, under `session_id` or in the list `session_ids`."""
    several = content.get("session_ids")
    named = [content.get("session_id"), *(several if isinstance(several, list) else [])]
    return [each for each in named if isinstance(each, str)]


def contains(whole: Any, part: Any) -> bool:
    """As `@>` in Postgres: numbers by value, 1 is not True, a list by its elements, whatever their order and number."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and contains(whole[key], part[key]) for key in part)
    if isinstance(part, list):
        return isinstance(whole, list) and all(any(contains(one, each) for one in whole) for each in part)
    return isinstance(whole, bool) == isinstance(part, bool) and bool(whole == part)


def _plain(where: str, value: Any, depth: int) -> Any:
    if depth > DEEPEST:
        raise ValueError(f"{where[:60]}… has more than {DEEPEST} objects and lists inside each other")
    if isinstance(value, str):
        return _text(where, value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if value.bit_length() > MOST_BITS:
            raise ValueError(f"{where} is a number of more than 300 digits; write it as a string")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{where} is {value}, which JSON does not have; write None, or leave it out")
        # From here on a float has no digits after the point, and Postgres gives it back as a whole number.
        return int(value) if abs(value) >= 1e16 else float(value)
    if isinstance(value, list | tuple):
        return [_plain(f"{where}[{place}]", each, depth + 1) for place, each in enumerate(value)]
    if not isinstance(value, Mapping):
        raise ValueError(f"{where} is a {type(value).__name__}, which JSON does not have; convert it, a time to text")
    for key in value:
        if not isinstance(key, str):
            raise ValueError(f"a key in {where} is a {type(key).__name__}, and JSON's keys are strings")
    return {_text(f"a key in {where}", key): _plain(f"{where}.{key[:40]}", value[key], depth + 1) for key in value}


def _text(where: str, text: str) -> str:
    if "\0" in text:
        raise ValueError(f"{where} must not contain NUL, which Postgres cannot hold")
    refuse_surrogates(where, text)
    return text
