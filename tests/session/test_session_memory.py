"""The in-memory session store, call by call. Invariants under concurrency: test_invariants.py."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime

import pytest

from tests.virtual_time import VirtualTimeLoop
from tri_memory import ChatTurn, CountPolicy, InMemorySessionStore, ManualClock, TokenWatermark, blocking
from tri_memory.summary import is_summary


def user(text: str) -> ChatTurn:
    return ChatTurn("user", text)


async def fill(store: InMemorySessionStore, count: int, session_id: str = "s", start: int = 0) -> None:
    for i in range(start, start + count):
        await store.append(session_id, user(f"turn {i}"))


async def test_an_unknown_session_is_empty():
    store = InMemorySessionStore()
    assert await store.get_window("nobody") == []
    assert await store.get_history("nobody") == []
    assert await store.list_sessions() == []
    await store.clear("nobody")


async def test_forty_turns_stay_as_they_are_and_the_forty_first_folds_twenty_one():
    spans = []
    store = InMemorySessionStore(summarizer=lambda span: spans.append(span) or "likes tea")
    await fill(store, 40)
    assert await store.get_history("s") == [user(f"turn {i}") for i in range(40)]
    await fill(store, 1, start=40)
    history = await store.get_history("s")
    assert history == [
        ChatTurn("system", "[conversation summary] likes tea"),
        *[user(f"turn {i}") for i in range(21, 41)],
    ]
    assert [len(span) for span in spans] == [21]
    assert await store.get_window("s", 5) == [history[0], *history[-5:]]
    assert await store.get_window("s", 0) == history[:1]


async def test_a_window_is_twenty_turns_unless_told_otherwise():
    store = InMemorySessionStore()
    await fill(store, 30)
    assert await store.get_window("s") == [user(f"turn {i}") for i in range(10, 30)]
    assert await store.get_window("s", 0) == []
    assert len(await store.get_window("s", 1_000)) == 30


async def test_the_summariser_reads_each_turn_once_however_long_the_conversation():
    read = []
    store = InMemorySessionStore(summarizer=lambda span: read.extend(span) or "summary")
    await fill(store, 400)
    assert len([turn for turn in read if not is_summary(turn)]) <= 400
    assert len(read) <= 400 + 20
    assert len(await store.get_history("s")) <= 41


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


async def test_a_plain_function_that_hangs_is_given_up_and_blocks_nobody():
    released = threading.Event()
    store = InMemorySessionStore(
        policy=CountPolicy(4, 2), summarizer=lambda span: released.wait(30) and "late", summary_timeout_s=0.1
    )
    await fill(store, 5)
    assert [turn.content for turn in await store.get_history("s")] == ["turn 3", "turn 4"]
    assert "longer than 0.1 s" in store.trace[-1].reason
    released.set()
    await asyncio.sleep(0.05)
    assert len(await store.get_history("s")) == 2, "a summary that came too late was committed"


async def test_a_plain_function_does_not_block_the_loop():
    store = InMemorySessionStore(policy=CountPolicy(4, 2), summarizer=lambda span: time.sleep(0.2) or "slept")
    await fill(store, 4)
    fold = asyncio.ensure_future(store.append("s", user("fifth")))
    ticks = 0
    while not fold.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert ticks > 3


async def test_a_summariser_object_and_a_function_returning_a_coroutine_both_work():
    class Summarizer:
        async def __call__(self, span: tuple[ChatTurn, ...]) -> str:
            return f"object, {len(span)}"

    async def answer() -> str:
        return "coroutine"

    for summarizer, expected in ((Summarizer(), "object, 3"), (lambda span: answer(), "coroutine")):
        store = InMemorySessionStore(policy=CountPolicy(4, 2), summarizer=summarizer)
        await fill(store, 5)
        assert (await store.get_history("s"))[0].content == f"[conversation summary] {expected}"


@pytest.mark.parametrize("bad", [StopIteration("x"), KeyboardInterrupt(), ValueError("\ud83d"), SystemExit(1)])
async def test_whatever_a_plain_summariser_raises_the_conversation_goes_on(bad):
    def broken(span: tuple[ChatTurn, ...]) -> str:
        raise bad

    store = InMemorySessionStore(policy=CountPolicy(4, 2), summarizer=broken)
    await fill(store, 6)
    assert [turn.content for turn in await store.get_history("s")] == ["turn 3", "turn 4", "turn 5"]


async def test_a_summary_with_half_an_emoji_is_refused_and_traced():
    store = InMemorySessionStore(policy=CountPolicy(4, 2), summarizer=lambda span: "nice \ud83d")
    await fill(store, 5)
    assert store.trace[-1].outcome == "truncated"
    assert "surrogate" in store.trace[-1].reason


@pytest.mark.parametrize("blank", ["", " ", "\u200b", "\0", "\u2060\ufeff", "[conversation summary]", "[会话摘要] "])
async def test_a_summary_in_which_nothing_can_be_seen_is_no_summary(blank):
    store = InMemorySessionStore(policy=CountPolicy(4, 2), summarizer=lambda span: blank)
    await fill(store, 5)
    assert [turn.content for turn in await store.get_history("s")] == ["turn 3", "turn 4"]
    assert "blank" in store.trace[-1].reason


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


async def test_a_count_that_fails_on_the_summary_is_a_failed_summary_and_no_failed_append():
    def count(text: str) -> int:
        if "BOOM" in text:
            raise ValueError("special token")
        return 10

    store = InMemorySessionStore(policy=TokenWatermark(100, count=count), summarizer=lambda span: "BOOM")
    await fill(store, 12)
    assert (await store.get_history("s"))[-1] == user("turn 11")
    assert "special token" in store.trace[0].reason


async def test_keep_tries_again_and_truncates_only_above_the_hard_line():
    calls = []

    def broken(span: tuple[ChatTurn, ...]) -> str:
        calls.append(len(span))
        raise ConnectionError("down")

    store = InMemorySessionStore(policy=CountPolicy(4, 2, hard_cap=12), summarizer=broken, on_failure="keep")
    await fill(store, 12)
    assert len(await store.get_history("s")) == 12
    assert 2 <= len(calls) < 8, "each append paid for a failing summary"
    await fill(store, 1, start=12)
    assert [turn.content for turn in await store.get_history("s")] == ["turn 11", "turn 12"]
    assert [record.outcome for record in store.trace][-1] == "truncated"


async def test_keep_folds_at_the_next_append_once_the_summariser_is_back():
    answers = iter([ConnectionError("down"), "all of it"])

    def recovering(span: tuple[ChatTurn, ...]) -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    store = InMemorySessionStore(policy=CountPolicy(4, 2), summarizer=recovering, on_failure="keep")
    await fill(store, 6)
    assert [turn.content for turn in await store.get_history("s")] == [
        "[conversation summary] all of it",
        "turn 4",
        "turn 5",
    ]


async def test_a_session_cleared_while_its_summary_is_written_stays_cleared():
    store: InMemorySessionStore

    async def clearing(span: tuple[ChatTurn, ...]) -> str:
        await store.clear("s")
        await store.append("s", user("a new beginning"))
        return "of the old one"

    store = InMemorySessionStore(policy=CountPolicy(4, 2), summarizer=clearing)
    await fill(store, 5)
    assert await store.get_history("s") == [user("a new beginning")]


async def test_sessions_are_listed_most_recently_active_first_even_when_the_clock_stands_still():
    clock = ManualClock(datetime(2026, 3, 1, tzinfo=UTC))
    store = InMemorySessionStore(clock=clock)
    for name in ("a", "b", "c", "a"):
        await store.append(name, user("hi"))
    assert [row.session_id for row in await store.list_sessions()] == ["a", "c", "b"]
    clock.advance(minutes=5)
    await store.append("b", user("hi"))
    newest = (await store.list_sessions())[0]
    assert (newest.session_id, newest.turns, newest.updated_at) == ("b", 2, datetime(2026, 3, 1, 0, 5, tzinfo=UTC))


async def test_what_a_caller_does_to_a_returned_list_does_not_reach_the_store():
    store = InMemorySessionStore()
    await store.append("s", user("hi"))
    (await store.get_history("s")).clear()
    (await store.get_window("s")).clear()
    assert await store.get_history("s") == [user("hi")]


async def test_a_watermark_folds_between_its_lines_and_keeps_a_huge_turn():
    spans = []
    store = InMemorySessionStore(
        policy=TokenWatermark(100, count=len), summarizer=lambda span: spans.append(span) or "short"
    )
    for i in range(8):
        await store.append("s", user(f"{i}" * 10))
    assert sum(len(turn.content) for turn in await store.get_history("s")) <= 50
    assert [len(span) for span in spans] == [7]
    await store.append("s", user("x" * 1_000))
    calls = len(spans)
    assert (await store.get_history("s"))[-1].content == "x" * 1_000
    assert all(spans)
    await store.append("s", user("y"))
    assert len(spans) <= calls + 1


async def test_a_count_that_raises_loses_nothing_because_nothing_was_written():
    def broken(text: str) -> int:
        raise RuntimeError("no tokenizer")

    store = InMemorySessionStore(policy=TokenWatermark(100, count=broken))
    with pytest.raises(RuntimeError, match="no tokenizer"):
        await store.append("s", user("hi"))
    assert await store.list_sessions() == []


@pytest.mark.parametrize("bad", ["", " ", None, 3, "a\0b", "\ud800"])
async def test_a_bad_session_id_is_refused_by_every_call_and_leaves_no_trace(bad):
    store = InMemorySessionStore()
    for call in (
        lambda: store.append(bad, user("hi")),
        lambda: store.get_window(bad),
        lambda: store.get_history(bad),
        lambda: store.clear(bad),
    ):
        with pytest.raises(ValueError, match="session_id"):
            await call()
    assert await store.list_sessions() == []


@pytest.mark.parametrize("bad", ["hi", None, {"role": "user", "content": "hi"}, ("user", "hi")])
async def test_only_a_chat_turn_can_be_appended(bad):
    store = InMemorySessionStore()
    with pytest.raises(ValueError, match="turn must be a ChatTurn"):
        await store.append("s", bad)
    assert await store.list_sessions() == []


@pytest.mark.parametrize("bad", [-1, 1.5, "20", None, True])
async def test_a_bad_limit_is_refused_by_name(bad):
    with pytest.raises(ValueError, match="limit"):
        await InMemorySessionStore().get_window("s", bad)


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


async def test_a_clock_without_a_zone_is_refused_before_anything_is_written():
    store = InMemorySessionStore(clock=lambda: datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(ValueError, match="aware"):
        await store.append("s", user("hi"))
    assert await store.list_sessions() == []


async def test_a_turn_of_five_megabytes_is_kept_to_the_letter():
    store = InMemorySessionStore(policy=TokenWatermark(8_000))
    big = user("线\0 x" * 1_000_000)
    await store.append("s", big)
    assert await store.get_history("s") == [big]


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
