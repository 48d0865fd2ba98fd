"""A process that writes to a session until it is told to stop, or killed: `python -m tests.faults.writer …`.

It prints a line for each turn: `+ text` where the append was confirmed, `? text` where it raised ConnectionError.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from tri_memory import ChatTurn, CountPolicy, RedisSessionStore


async def write(url: str, prefix: str, session: str, name: str, count: int) -> None:
    async with RedisSessionStore.from_url(url, prefix=prefix, policy=CountPolicy(10**6, 10)) as store:
        for i in range(count):
            text = f"{name} {i}"
            try:
                await store.append(session, ChatTurn("user", text))
            except ConnectionError:
                print(f"? {text}", flush=True)
            else:
                print(f"+ {text}", flush=True)


async def stop_while_summarising(url: str, prefix: str, session: str) -> None:
    async def summarise(turns: Sequence[ChatTurn]) -> str:
        print(f"summarising {len(turns)}", flush=True)
        await asyncio.sleep(3_600)
        return "never"

    async with RedisSessionStore.from_url(
        url, prefix=prefix, policy=CountPolicy(40, 20), summarizer=summarise, summary_timeout_s=3_600, lock_s=1
    ) as store:
        for i in range(41):
            await store.append(session, ChatTurn("user", f"turn {i}"))


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    if what == "write":
        *texts, count = arguments
        asyncio.run(write(*texts, int(count)))
    else:
        asyncio.run(stop_while_summarising(*arguments))
