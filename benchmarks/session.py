"""What an append costs: early and late in a conversation, and beside what people would use instead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from benchmarks.timing import Row, paired
from tri_memory import ChatTurn, InMemorySessionStore, TokenWatermark

TURNS = 2_000
TEXTS = [f"message number {i} about order {i * 7 % 997}" for i in range(TURNS)]


def rows() -> Iterator[Row]:
    yield _late_beside_early("default policy", InMemorySessionStore)
    yield _late_beside_early("token watermark", lambda: InMemorySessionStore(policy=TokenWatermark(8_000)))
    ours = _appends()
    for name, theirs, goal in _peers():
        yield paired("append, memory", ours, name, theirs, units=TURNS, goal=goal)


def _appends(store: InMemorySessionStore | None = None) -> Callable[[], None]:
    """Make and append `TURNS` turns; to a store of its own where none is given."""

    async def go() -> None:
        target = store if store is not None else InMemorySessionStore()
        for text in TEXTS:
            await target.append("s", ChatTurn("user", text))

    return lambda: asyncio.run(go())


def _late_beside_early(name: str, make: Callable[[], InMemorySessionStore]) -> Row:
    """A store that has taken 100,000 turns beside one that has taken 100."""
    early, late = make(), make()

    async def fill(store: InMemorySessionStore, count: int) -> None:
        for i in range(count):
            await store.append("s", ChatTurn("user", TEXTS[i % TURNS]))

    asyncio.run(fill(early, 100))
    asyncio.run(fill(late, 100_000))
    work = f"append at 100,000 turns, {name}"
    return paired(work, _appends(late), "at 100 turns", _appends(early), units=TURNS, goal=1.3)


def _peers() -> Iterator[tuple[str, Callable[[], None], float]]:
    """Those of the peers that are installed (`benchmarks/peers.txt`), with the ratio to reach."""
    try:
        from langchain_core.chat_history import InMemoryChatMessageHistory
        from langchain_core.messages import HumanMessage
    except ImportError:
        pass
    else:

        def langchain() -> None:
            history = InMemoryChatMessageHistory()
            for text in TEXTS:
                history.add_message(HumanMessage(text))

        yield "LangChain InMemoryChatMessageHistory", langchain, 1.0
    try:
        from agents import SQLiteSession
    except ImportError:
        return

    def agents() -> None:
        async def go() -> None:
            session = SQLiteSession("s")
            for text in TEXTS:
                await session.add_items([{"role": "user", "content": text}])

        asyncio.run(go())

    yield "OpenAI Agents SQLiteSession, in memory", agents, 1 / 20
