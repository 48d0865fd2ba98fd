"""Another process: writes a preference of ann's slowly, through a guarded store, and says how it ended.

    python -m tests.privacy.registry_writer URL TABLE REGISTRY KEY

It prints `writing` when it is about to store, and goes on at a line on its input.
"""

from __future__ import annotations

import asyncio
import sys

from tri_memory.entity.records import Forgotten
from tri_memory.preference.postgres import PostgresPreferenceStore
from tri_memory.privacy.guarded import guarded
from tri_memory.privacy.postgres_tombstones import PostgresTombstones
from tri_memory.privacy.pseudonyms import Pseudonyms


class Held(PostgresPreferenceStore):
    async def set(self, user_id: str, key: str, value: str) -> bool:
        print("writing", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        return await super().set(user_id, key, value)


async def main(url: str, table: str, registry: str, key: str) -> None:
    async with PostgresTombstones(url, Pseudonyms(key), table=registry) as tombstones, Held(url, table=table) as store:
        try:
            await guarded(store, tombstones).set("ann", "order", "BX-220719")
        except Forgotten:
            print("forgotten", flush=True)
        else:
            print("stored", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
