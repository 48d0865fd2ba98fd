"""`tri-memory decay`: the nightly job on the store that the environment names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tri_memory.episodic.fading import Faded, MemoryId

TABLE = "episodes"
MOST_LISTED, MOST_WORDS = 20, 50  # lines of a screenful, characters of a memory


async def faded(url: str, dry_run: bool, words: bool, say: Callable[[str], None]) -> str:
    """Run the job; what it did, and to which memories. `say` hears that it has begun, and what it had to skip.

    Without `words` the list has ids and dates alone, as for a log, where nobody's text belongs.
    """
    from psycopg import Error

    from tri_memory.engines.postgres_connection import first_line
    from tri_memory.episodic.pgvector import PgVectorEpisodicStore
    from tri_memory.episodic.pgvector_look import refuse_old

    try:
        if dry_run:
            await refuse_old(url, TABLE)
        store = await PgVectorEpisodicStore.existing(url, table=TABLE)
        if store is None:
            return "no memory was ever stored there, so nothing is archived"
        async with store:
            say(f"looking through the memories at {store!r} …")
            done = await store.fade(dry_run=dry_run)
        listed = await _listed(url, done.archived, dry_run, words)
    except Error as error:  # its further lines may quote a row
        raise RuntimeError(first_line(error)) from error
    if done.skipped:
        say(_skipped(done.skipped))
    return "\n".join([_summary(done, dry_run), *listed])


def _summary(done: Faded, dry_run: bool) -> str:
    share = f"{len(done.archived):,} of {done.looked_at:,} memories"
    if dry_run:
        return f"{share} would be archived, {done.stay:,} would stay; nothing was archived"
    return f"{share} archived, {done.stay:,} stay; run again today and nothing changes"


async def _listed(url: str, memories: Sequence[MemoryId], dry_run: bool, words: bool) -> list[str]:
    from tri_memory.episodic.pgvector_archive import archive_of
    from tri_memory.episodic.pgvector_look import look

    if not memories:
        return []
    seen = await look(url, TABLE if dry_run else archive_of(TABLE), memories[:MOST_LISTED])
    lines = [f"  {_printable(_name(one.id))}  {one.day}{_first_words(one.text) if words else ''}" for one in seen]
    more = len(memories) - MOST_LISTED
    return [*lines, f"  and {more:,} more"] if more > 0 else lines


def _skipped(memories: Sequence[MemoryId]) -> str:
    some, more = memories[:MOST_LISTED], len(memories) - MOST_LISTED
    names = ", ".join(_printable(_name(one)) for one in some) + (f" and {more:,} more" if more > 0 else "")
    return (
        f"skipped {len(memories):,}, whose created_at lies outside the years 1 to 9999, as infinity does: {names}; "
        f"correct it with UPDATE {TABLE} SET created_at = …"
    )


def _name(memory: MemoryId) -> str:
    return f"{memory.user_id} / {memory.session_id}"


def _first_words(text: str) -> str:
    line = _printable(" ".join(text.split()))
    return f"  {line}" if len(line) <= MOST_WORDS else f"  {line[:MOST_WORDS]}…"


def _printable(text: str) -> str:
    """Without what would move the cursor or colour the screen of whoever reads it."""
    return "".join(each if each.isprintable() else "�" for each in text)
