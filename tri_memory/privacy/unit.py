"""A unit of work: what one task reads of a user and then writes, as an archive does, which reads a session, has it
summarised, and stores the summary.

A unit begins with the first guarded read of a user in a task, with each new turn of the user, or where `writing` says
so, and all writes of it are judged by that time. A task that runs for long and works on many things, such as a consumer
of a queue, says for each of them when it began: `async with writing(tombstones, user_id, began_at=…)`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from types import MappingProxyType

from tri_memory.contracts import as_utc
from tri_memory.entity.records import Forgotten
from tri_memory.privacy.tombstones import Ending, Tombstones, Write

MOST_USERS = 1_000  # whose units one task keeps apart; of more, the oldest are dropped

Undo = Callable[[], Awaitable[object]]

_NONE: Mapping[tuple[int, str], datetime] = MappingProxyType({})  # by registry and user; always replaced, never changed
_units: ContextVar[Mapping[tuple[int, str], datetime]] = ContextVar("units of work", default=_NONE)
_open: ContextVar[frozenset[tuple[int, str]]] = ContextVar("open units", default=frozenset())


async def begin_unit(tombstones: Tombstones, user_id: str, *, anew: bool = False) -> None:
    """Note that the unit begins now; where there is one already, that stays, unless `anew`."""
    key = id(tombstones), user_id
    if anew or key not in _units.get():
        _note(key, await began_now(tombstones, user_id))


async def began_now(tombstones: Tombstones, user_id: str) -> datetime:
    """The time of a unit that begins now, for who keeps it themselves and gives it to `writing`."""
    return _later(tombstones, await tombstones.forgotten_at(user_id))


def end_unit(tombstones: Tombstones, user_id: str) -> None:
    """What this task does next on that user is something new."""
    _units.set({key: at for key, at in _units.get().items() if key != (id(tombstones), user_id)})


def is_open(tombstones: Tombstones, user_id: str) -> bool:
    """Whether this task is inside `writing` for that user: a forgetting would wait for itself."""
    return (id(tombstones), user_id) in _open.get()


@asynccontextmanager
async def writing(
    tombstones: Tombstones, user_id: str, *, undo: Undo | None = None, began_at: datetime | None = None
) -> AsyncIterator[None]:
    """Around one write, or around all that a job does for a user.

    Raises Forgotten before it where the user was forgotten since the unit began, which is `began_at` or as the task
    noted it; and behind it where the user was forgotten meanwhile: then nothing of it is left. `undo` is called where
    the forgetting did not wait long enough.
    """
    key = id(tombstones), user_id
    began_at = _units.get().get(key) if began_at is None else as_utc("began_at", began_at)
    write = await tombstones.begin(user_id, began_at)
    units, opened = _units.get(), _open.set(_open.get() | {key})
    _note(key, began_at or _later(tombstones, write.forgotten_at))
    try:
        yield
    except BaseException:
        await asyncio.shield(_signed_off(tombstones, write, undo))
        raise
    else:
        if await asyncio.shield(_signed_off(tombstones, write, undo)) != "stands":
            raise Forgotten("the user was forgotten while this was being written, so it is gone again; drop the job")
    finally:
        _open.reset(opened)
        _units.set(units)


async def _signed_off(tombstones: Tombstones, write: Write, undo: Undo | None) -> Ending:
    ending = await tombstones.end(write)
    if ending == "undo" and undo is not None:
        await undo()
    return ending


def _later(tombstones: Tombstones, forgotten_at: datetime | None) -> datetime:
    """Now, and in any case after the last forgetting: a clock may stand still, or have been put back."""
    now = as_utc("the clock's time", tombstones.clock())
    return now if forgotten_at is None else max(now, forgotten_at + timedelta(microseconds=1))


def _note(key: tuple[int, str], at: datetime) -> None:
    units = {other: when for other, when in _units.get().items() if other != key} | {key: at}
    while len(units) > MOST_USERS:
        del units[next(iter(units))]
    _units.set(units)
