"""`tri-memory decay`: the nightly job on the store that the environment names."""

from __future__ import annotations

from collections.abc import Callable


async def faded(url: str, dry_run: bool, say: Callable[[str], None]) -> str:
    """Run the job; what it did, in a sentence. `say` hears that it has begun."""
    from psycopg import ProgrammingError

    from tri_memory.episodic.pgvector import PgVectorEpisodicStore

    store = await PgVectorEpisodicStore.existing(url)
    if store is None:
        return "no memory was ever stored there, so nothing is archived"
    async with store:
        say(f"looking through the memories at {store!r} …")
        try:
            done = await store.fade(dry_run=dry_run)
        except ProgrammingError as error:  # a user who may not write, mostly
            raise RuntimeError(str(error)) from error
    share = f"{len(done.archived):,} of {done.looked_at:,} memories"
    if dry_run:
        return f"{share} would be archived, {done.stay:,} would stay; nothing was archived"
    return f"{share} archived, {done.stay:,} stay; run again today and nothing changes"
