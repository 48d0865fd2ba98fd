"""Fields of a JSON file, read one at a time and checked, so that every broken file is a ValueError that says where."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from tri_memory.contracts import refuse_surrogates, require_text, shown

Row = dict[str, Any]
T = TypeVar("T")


@contextmanager
def at(place: str) -> Iterator[None]:
    """Put the place (`"line 3"`) in front of whatever ValueError is raised inside."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error
    except RecursionError as error:  # text that was just shallow enough to parse, and is too deep to show
        raise ValueError(f"{place}: the JSON is nested too deeply") from error


def read_text(path: Path) -> str:
    """A whole UTF-8 file, with or without a byte order mark.

    Raises FileNotFoundError naming the path; ValueError for a folder, and naming the line of the first byte that is
    not UTF-8.
    """
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it")
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line}: not UTF-8 ({error.reason}); save the file as UTF-8") from error


def from_json(text: str | bytes) -> Any:
    """`json.loads`, where text nested too deeply for Python's stack is a ValueError like any other broken text."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error


def an_object(name: str, value: Any) -> Row:
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be an object {{…}}; got {shown(value)}")
    return value


def a_list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list […]; got {shown(value)}")
    return value


def a_string(name: str, value: Any) -> str:
    """Text that may be empty; a lone surrogate is refused, since UTF-8 cannot hold it."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string; got {shown(value)}")
    refuse_surrogates(name, value)
    return value


def field(row: Row, name: str) -> Any:
    if name not in row:
        raise ValueError(f"the field {name!r} is missing")
    return row[name]


def text(row: Row, name: str) -> str:
    """A field with non-blank text."""
    return require_text(name, field(row, name))


def string(row: Row, name: str) -> str:
    """A field with text, which may be empty."""
    return a_string(name, field(row, name))


def items(row: Row, name: str) -> list[Any]:
    return a_list(name, field(row, name))


def texts(row: Row, name: str) -> tuple[str, ...]:
    """A field with a list of non-blank texts; the list may be empty."""
    return tuple(require_text(f"{name}[{i}]", value) for i, value in enumerate(items(row, name)))


def rows(row: Row, name: str) -> list[Row]:
    """A field with a list of objects; the list may be empty."""
    return [an_object(f"{name}[{i}]", value) for i, value in enumerate(items(row, name))]


def moment(row: Row, name: str) -> datetime:
    """A field with an ISO 8601 time; without an offset nobody knows which zone it meant, so it is refused."""
    written = text(row, name)
    with at(name):
        time = datetime.fromisoformat(written)
    if time.tzinfo is None:
        raise ValueError(f"{name} needs an offset such as +00:00, got {written!r}")
    return time


def each(name: str, values: list[Any], parse: Callable[[Row], T]) -> list[T]:
    """`parse` of every object of a list; a ValueError names the object by its number from 1: `"item 3: …"`."""
    parsed = []
    for number, value in enumerate(values, start=1):
        with at(f"{name} {number}"):
            parsed.append(parse(an_object("it", value)))
    return parsed
