"""One call forgets a user everywhere, searches again, and gives a receipt; another deletes for good after 7 days.

Every store is tried, also where others fail, and twice where writes were under way. Again is harmless, and gives zeros.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from tri_memory.clock import Clock, system_clock
from tri_memory.contracts import EpisodicStore, PreferenceStore, SessionStore, as_utc, require_text
from tri_memory.entity.graph import EntityGraph
from tri_memory.entity.records import UserMemoryStore
from tri_memory.privacy import forgettable
from tri_memory.privacy.audit import AuditLog
from tri_memory.privacy.forgettable import Forgettable, Purgeable
from tri_memory.privacy.pseudonyms import Pseudonyms
from tri_memory.privacy.receipt import Line, Receipt
from tri_memory.privacy.tombstones import Tombstones, closed, drained
from tri_memory.privacy.unit import end_unit, is_open

HIDDEN_FOR = timedelta(days=7)
PATIENCE_S = 60.0  # longer than any statement and any summary may take


@dataclass(frozen=True, slots=True)
class Stores:
    """Where something of a user may be. `cache` and `short_context` need a `forget(user_id)`; `queue` and all `others`
    are `Forgettable`. Give the stores themselves or the guarded ones. `dimensions` is the size of the episodes'
    vectors, without which those can't be searched afterwards; `trace` is the list that records were written to."""

    sessions: SessionStore | None = None
    preferences: PreferenceStore | None = None
    episodes: EpisodicStore | None = None
    dimensions: int | None = None
    user_memory: UserMemoryStore | None = None
    cache: Any = None
    short_context: Any = None
    graph: EntityGraph | None = None
    trace: Forgettable | list[Any] | None = None
    queue: Forgettable | None = None
    others: Sequence[Forgettable] = ()

    def all(self) -> list[Forgettable]:
        """Each behind the protocol, those first that others are filled from: a queue before what its jobs write, the
        truth before its cache."""
        found: list[Forgettable] = [] if self.queue is None else [self.queue]
        if self.sessions is not None:
            found.append(forgettable.Sessions(self.sessions))
        if self.preferences is not None:
            found.append(forgettable.Preferences(self.preferences))
        if self.episodes is not None:
            found.append(forgettable.Episodes(self.episodes, self.dimensions))
        if self.user_memory is not None:
            found.append(forgettable.UserMemories(self.user_memory))
        if self.cache is not None:
            found.append(forgettable.Held("cache", self.cache))
        if self.short_context is not None:
            found.append(forgettable.Held("short_context", self.short_context))
        if self.graph is not None:
            found.append(forgettable.Graph(self.graph))
        if self.trace is not None:
            found.append(forgettable.Trace(self.trace) if isinstance(self.trace, list) else self.trace)
        return [*found, *self.others]


async def forget_user(
    user_id: str,
    *,
    stores: Stores,
    tombstones: Tombstones | None = None,
    pseudonyms: Pseudonyms | None = None,
    audit: AuditLog | None = None,
    who: str = "tri_memory",
    canaries: Iterable[str] = (),
    clock: Clock = system_clock,
    patience_s: float = PATIENCE_S,
) -> Receipt:
    """Forget this user in every store, and say what was there and what a search finds afterwards.

    `tombstones` is the registry of the guarded stores: with it nothing that is being written now comes back; without
    it, only what was stored goes. `canaries` are texts that must not be found in any store afterwards. `pseudonyms`
    names the user in receipt and `audit`; without, the name is made up for this receipt. A store that fails is a line
    of the receipt, and no error: look at `receipt.ok`.
    Raises ValueError for a blank user or canary, RuntimeError inside `writing` for that user.
    """
    require_text("user_id", user_id)
    texts = [require_text("a canary", each) for each in canaries]
    names = pseudonyms or Pseudonyms(secrets.token_bytes(64))
    holders = stores.all()
    if tombstones is None:
        at, overtaken, left = as_utc("the clock's time", clock()), 0, 0
        erased = [await _erase(holder, user_id) for holder in holders]
        lines = [await _line(holder, user_id, found, texts) for holder, found in zip(holders, erased, strict=True)]
    else:
        if is_open(tombstones, user_id):
            raise RuntimeError("this task is writing for the user it is to forget, and would wait for itself")
        async with closed(tombstones, user_id) as at:
            overtaken = await tombstones.under_way(user_id)
            erased = [await _erase(holder, user_id) for holder in holders]
            left = await drained(tombstones, user_id, patience_s)
            if overtaken:  # what they brought since
                erased = [await _erase(holder, user_id, before) for holder, before in zip(holders, erased, strict=True)]
            lines = [await _line(holder, user_id, found, texts) for holder, found in zip(holders, erased, strict=True)]
        end_unit(tombstones, user_id)
    lines += [line for holder in holders if (line := _out_of_reach(holder, user_id))]
    whom = names.of_user(user_id)
    receipt = Receipt(whom, at, at + HIDDEN_FOR, len(texts), overtaken - left, left, tuple(lines))
    if audit is not None and (failed := await _audited(audit, who, receipt)):
        receipt = replace(receipt, lines=(*receipt.lines, failed))
    return receipt


async def purge(
    *,
    stores: Stores,
    tombstones: Tombstones | None = None,
    clock: Clock = system_clock,
    hidden_for: timedelta = HIDDEN_FOR,
) -> dict[str, int]:
    """Delete for good what was hidden longer ago than `hidden_for`, of all users, and drop the notes on who was
    forgotten before; how many entries went, by store. Run it once a day; `scrub` then cleans the servers' files.

    Stores that delete at once have nothing to purge. What a store raises goes through, after all others were tried.
    """
    before = as_utc("the clock's time", clock()) - hidden_for
    gone: dict[str, int] = {}
    errors: list[Exception] = []
    for holder in stores.all():
        if isinstance(holder, Purgeable):
            try:
                gone[holder.name] = await holder.purge(before)
            except Exception as error:
                errors.append(error)
    if tombstones is not None:
        await tombstones.purge(before)
    if errors:
        raise ExceptionGroup("not every store was purged; run it again", errors) if len(errors) > 1 else errors[0]
    return gone


async def _audited(audit: AuditLog, who: str, receipt: Receipt) -> Line | None:
    """None, or the receipt's line on a log that could not be written: what is erased is erased all the same."""
    what = "forget" if receipt.ok else "forget_incomplete"
    counts = {line.store: line.erased for line in receipt.lines}
    try:
        await asyncio.to_thread(audit.add, who=who, what=what, whom=receipt.user, counts=counts)
    except (OSError, RuntimeError) as error:
        return Line("audit", 0, None, None, error=type(error).__name__, what_to_do="the log was not written; mend it")
    return None


@dataclass(frozen=True, slots=True)
class _Erased:
    count: int = 0
    error: Exception | None = None


async def _erase(holder: Forgettable, user_id: str, before: _Erased | None = None) -> _Erased:
    count = before.count if before else 0
    try:
        return _Erased(count + await holder.forget(user_id))
    except Exception as error:
        return _Erased(count, error)


async def _line(holder: Forgettable, user_id: str, erased: _Erased, canaries: Sequence[str]) -> Line:
    """Search again. Of an error only the kind is told: its message may quote what was to be erased."""
    left = with_canary = None
    error = erased.error
    if error is None:
        try:
            left = await holder.find(user_id, "")
            found = [await holder.find(user_id, each) for each in canaries]
            with_canary = None if None in found else sum(each or 0 for each in found)
            if isinstance(holder, forgettable.UserMemories):
                await holder.searched(user_id)
        except Exception as failed:
            error = failed
    return Line(
        holder.name,
        erased.count,
        left,
        with_canary,
        hidden_until_purge=isinstance(holder, forgettable.UserMemories),
        error=None if error is None else type(error).__name__,
        what_to_do=None if error is None else _what_to_do(error),
    )


def _out_of_reach(holder: Forgettable, user_id: str) -> Line | None:
    """The line on a cache that could not be told, where the truth behind it forgot."""
    owed_s = holder.owed_s(user_id) if isinstance(holder, forgettable.UserMemories | forgettable.Held) else None
    if owed_s is None:
        return None
    what_to_do = (
        f"copies that nobody is served any more stay there until they expire, at most {owed_s:,.0f} s after they were "
        "read; to be rid of them at once, start its server, then forget again"
    )
    return Line("copies in Redis", 0, None, None, error="ConnectionError", what_to_do=what_to_do)


def _what_to_do(error: Exception) -> str:
    if isinstance(error, ConnectionError | TimeoutError | OSError):
        return "this store can't be reached: start its server, then forget again; what is gone elsewhere stays gone"
    if isinstance(error, ImportError):
        return "a package is missing: tri-memory doctor says which; then forget again"
    return "this store refused: forget again, and where it refuses again, look into its server's log"
