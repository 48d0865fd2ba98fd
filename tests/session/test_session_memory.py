"""The in-memory session store, call by call. Invariants under concurrency: test_invariants.py."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.virtual_time import VirtualTimeLoop
from tri_memory import ChatTurn, CountPolicy, InMemorySessionStore, blocking
from tri_memory.summary import is_summary


def user(text: str) -> ChatTurn:
    return ChatTurn("user", text)


async def fill(store: InMemorySessionStore, count: int, session_id: str = "s", start: int = 0) -> None:
    for i in range(start, start + count):
        await store.append(session_id, user(f"turn {i}"))


def test_turns_appended_while_a_summary_is_written_are_all_there():
    async def go() -> list[ChatTurn]:
        store = InMemorySessionStore(summarizer=slow)
        await fill(store, 40)
        first = asyncio.ensure_future(store.append("s", user("the 41st")))
        await asyncio.sleep(0.1)
        await fill(store, 20, start=100)
        assert len(await store.get_history("s")) == 61, "an append waited for somebody else's summary"
        await first
        return await store.get_history("s")

    async def slow(span: tuple[ChatTurn, ...]) -> str:
        await asyncio.sleep(2)
        return "summary"

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        history = runner.run(go())
    assert [turn.content for turn in history[-20:]] == [f"turn {i}" for i in range(100, 120)]
    assert len(history) == 41


def test_three_appends_reaching_the_line_together_cost_one_summary():
    calls = []

    async def slow(span: tuple[ChatTurn, ...]) -> str:
        calls.append(span)
        await asyncio.sleep(1)
        return "summary"

    async def go() -> list[ChatTurn]:
        store = InMemorySessionStore(summarizer=slow)
        await fill(store, 40)
        await asyncio.gather(*(store.append("s", user(name)) for name in "abc"))
        return await store.get_history("s")

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        history = runner.run(go())
    assert len(calls) == 1
    assert sum(is_summary(turn) for turn in history) == 1
    assert {turn.content for turn in history} >= set("abc")


def test_a_session_that_waits_for_its_summary_does_not_hold_up_another():
    async def never(span: tuple[ChatTurn, ...]) -> str:
        await asyncio.sleep(3_600)
        return "too late"

    async def go() -> float:
        store = InMemorySessionStore(summarizer=never)
        await fill(store, 40)
        stuck = asyncio.ensure_future(store.append("s", user("x")))
        await asyncio.sleep(0)
        started = asyncio.get_running_loop().time()
        await fill(store, 40, session_id="other")
        waited = asyncio.get_running_loop().time() - started
        await stuck
        return waited

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(go()) == 0


@pytest.mark.parametrize("bad", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
def test_what_an_async_summariser_raises_ends_neither_the_append_nor_the_blocking_loop(bad):
    async def broken(span: tuple[ChatTurn, ...]) -> str:
        raise bad

    plain = blocking(InMemorySessionStore(policy=CountPolicy(4, 2), summarizer=broken))
    for i in range(5):
        plain.append("s", user(f"turn {i}"))
    assert [turn.content for turn in plain.get_history("s")] == ["turn 3", "turn 4"]


def test_appends_that_are_cancelled_again_and_again_neither_stop_compression_nor_repeat_it():
    read = []

    async def slow(span: tuple[ChatTurn, ...]) -> str:
        await asyncio.sleep(5)
        read.extend(turn for turn in span if not is_summary(turn))
        return "summary"

    async def go() -> list[ChatTurn]:
        store = InMemorySessionStore(summarizer=slow)
        for i in range(600):
            try:
                await asyncio.wait_for(store.append("s", user(f"turn {i}")), 0.2)
            except TimeoutError:
                continue
        await asyncio.sleep(20)
        return await store.get_history("s")

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        history = runner.run(go())
    assert sum(is_summary(turn) for turn in history) == 1
    assert len({turn.content for turn in read}) == len(read)
    assert len(read) + len(history) - 1 == 600


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("on_failure", "retry"),
        ("summarizer", "gpt"),
        ("policy", CountPolicy),
        ("policy", 5),
        ("clock", 5),
        ("summary_timeout_s", "10"),
        ("summary_timeout_s", 0),
        ("longest_summary", -5),
        ("longest_summary", None),
    ],
)
def test_a_bad_option_is_refused_when_the_store_is_made(option, value):
    with pytest.raises(ValueError, match=option):
        InMemorySessionStore(**{option: value})


def test_two_threads_with_loops_of_their_own_lose_nothing():
    store = InMemorySessionStore(policy=CountPolicy(10_000, 10))
    plain = blocking(store)

    def write(name: str) -> None:
        for i in range(300):
            plain.append("s", user(f"{name} {i}"))

    async def write_here() -> None:
        for i in range(300):
            await store.append("s", user(f"here {i}"))
            await asyncio.sleep(0)

    threads = [threading.Thread(target=write, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    asyncio.run(write_here())
    for thread in threads:
        thread.join()
    said = [turn.content for turn in plain.get_history("s")]
    for name in ("a", "b", "here"):
        assert [text for text in said if text.startswith(f"{name} ")] == [f"{name} {i}" for i in range(300)]
