"""The session store, call by call, on every engine. Engines: conftest.py."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime

import pytest

from tri_memory import ChatTurn, CountPolicy, ManualClock, SessionStore, TokenWatermark
from tri_memory.summary import is_summary


def user(text: str) -> ChatTurn:
    return ChatTurn("user", text)


async def fill(store: SessionStore, count: int, session_id: str = "s", start: int = 0) -> None:
    for i in range(start, start + count):
        await store.append(session_id, user(f"turn {i}"))


async def test_an_unknown_session_is_empty(sessions):
    store = sessions()
    assert await store.get_window("nobody") == []
    assert await store.get_history("nobody") == []
    assert await store.list_sessions() == []
    await store.clear("nobody")


async def test_forty_turns_stay_as_they_are_and_the_forty_first_folds_twenty_one(sessions):
    spans = []
    store = sessions(summarizer=lambda span: spans.append(span) or "likes tea")
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


async def test_a_window_is_twenty_turns_unless_told_otherwise(sessions):
    store = sessions()
    await fill(store, 30)
    assert await store.get_window("s") == [user(f"turn {i}") for i in range(10, 30)]
    assert await store.get_window("s", 0) == []
    assert len(await store.get_window("s", 1_000)) == 30


async def test_the_summariser_reads_each_turn_once_however_long_the_conversation(sessions):
    read = []
    store = sessions(summarizer=lambda span: read.extend(span) or "summary")
    await fill(store, 400)
    assert len([turn for turn in read if not is_summary(turn)]) <= 400
    assert len(read) <= 400 + 20
    assert len(await store.get_history("s")) <= 41


async def test_a_plain_function_that_hangs_is_given_up_and_blocks_nobody(sessions):
    released = threading.Event()
    store = sessions(
        policy=CountPolicy(4, 2), summarizer=lambda span: released.wait(30) and "late", summary_timeout_s=0.1
    )
    await fill(store, 5)
    assert [turn.content for turn in await store.get_history("s")] == ["turn 3", "turn 4"]
    assert "longer than 0.1 s" in store.trace[-1].reason
    released.set()
    await asyncio.sleep(0.05)
    assert len(await store.get_history("s")) == 2, "a summary that came too late was committed"


async def test_a_plain_function_does_not_block_the_loop(sessions):
    store = sessions(policy=CountPolicy(4, 2), summarizer=lambda span: time.sleep(0.2) or "slept")
    await fill(store, 4)
    fold = asyncio.ensure_future(store.append("s", user("fifth")))
    ticks = 0
    while not fold.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert ticks > 3


async def test_a_summariser_object_and_a_function_returning_a_coroutine_both_work(sessions):
    class Summarizer:
        async def __call__(self, span: tuple[ChatTurn, ...]) -> str:
            return f"object, {len(span)}"

    async def answer() -> str:
        return "coroutine"

    for summarizer, expected in ((Summarizer(), "object, 3"), (lambda span: answer(), "coroutine")):
        store = sessions(policy=CountPolicy(4, 2), summarizer=summarizer)
        await fill(store, 5)
        assert (await store.get_history("s"))[0].content == f"[conversation summary] {expected}"


@pytest.mark.parametrize("bad", [StopIteration("x"), KeyboardInterrupt(), ValueError("\ud83d"), SystemExit(1)])
async def test_whatever_a_plain_summariser_raises_the_conversation_goes_on(sessions, bad):
    def broken(span: tuple[ChatTurn, ...]) -> str:
        raise bad

    store = sessions(policy=CountPolicy(4, 2), summarizer=broken)
    await fill(store, 6)
    assert [turn.content for turn in await store.get_history("s")] == ["turn 3", "turn 4", "turn 5"]
    assert store.trace[-1].reason.encode("utf-8"), "the trace and the log can be written to a file"


async def test_a_summary_with_half_an_emoji_is_refused_and_traced(sessions):
    store = sessions(policy=CountPolicy(4, 2), summarizer=lambda span: "nice \ud83d")
    await fill(store, 5)
    assert store.trace[-1].outcome == "truncated"
    assert "surrogate" in store.trace[-1].reason


@pytest.mark.parametrize("blank", ["", " ", "\u200b", "\0", "\u2060\ufeff", "[conversation summary]", "[会话摘要] "])
async def test_a_summary_in_which_nothing_can_be_seen_is_no_summary(sessions, blank):
    store = sessions(policy=CountPolicy(4, 2), summarizer=lambda span: blank)
    await fill(store, 5)
    assert [turn.content for turn in await store.get_history("s")] == ["turn 3", "turn 4"]
    assert "blank" in store.trace[-1].reason


async def test_a_count_that_fails_on_the_summary_is_a_failed_summary_and_no_failed_append(sessions):
    def count(text: str) -> int:
        if "BOOM" in text:
            raise ValueError("special token")
        return 10

    store = sessions(policy=TokenWatermark(100, count=count), summarizer=lambda span: "BOOM")
    await fill(store, 12)
    assert (await store.get_history("s"))[-1] == user("turn 11")
    assert "special token" in store.trace[0].reason


async def test_keep_tries_again_and_truncates_only_above_the_hard_line(sessions):
    calls = []

    def broken(span: tuple[ChatTurn, ...]) -> str:
        calls.append(len(span))
        raise ConnectionError("down")

    store = sessions(policy=CountPolicy(4, 2, hard_cap=12), summarizer=broken, on_failure="keep")
    await fill(store, 12)
    assert len(await store.get_history("s")) == 12
    assert 2 <= len(calls) < 8, "each append paid for a failing summary"
    await fill(store, 1, start=12)
    assert [turn.content for turn in await store.get_history("s")] == ["turn 11", "turn 12"]
    assert [record.outcome for record in store.trace][-1] == "truncated"


async def test_keep_folds_at_the_next_append_once_the_summariser_is_back(sessions):
    answers = iter([ConnectionError("down"), "all of it"])

    def recovering(span: tuple[ChatTurn, ...]) -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    store = sessions(policy=CountPolicy(4, 2), summarizer=recovering, on_failure="keep")
    await fill(store, 6)
    assert [turn.content for turn in await store.get_history("s")] == [
        "[conversation summary] all of it",
        "turn 4",
        "turn 5",
    ]


async def test_a_session_cleared_while_its_summary_is_written_stays_cleared(sessions):
    store: SessionStore

    async def clearing(span: tuple[ChatTurn, ...]) -> str:
        await store.clear("s")
        await store.append("s", user("a new beginning"))
        return "of the old one"

    store = sessions(policy=CountPolicy(4, 2), summarizer=clearing)
    await fill(store, 5)
    assert await store.get_history("s") == [user("a new beginning")]


async def test_sessions_are_listed_most_recently_active_first_even_when_the_clock_stands_still(sessions):
    clock = ManualClock(datetime(2026, 3, 1, tzinfo=UTC))
    store = sessions(clock=clock)
    for name in ("a", "b", "c", "a"):
        await store.append(name, user("hi"))
    assert [row.session_id for row in await store.list_sessions()] == ["a", "c", "b"]
    clock.advance(minutes=5)
    await store.append("b", user("hi"))
    newest = (await store.list_sessions())[0]
    assert (newest.session_id, newest.turns, newest.updated_at) == ("b", 2, datetime(2026, 3, 1, 0, 5, tzinfo=UTC))


async def test_what_a_caller_does_to_a_returned_list_does_not_reach_the_store(sessions):
    store = sessions()
    await store.append("s", user("hi"))
    (await store.get_history("s")).clear()
    (await store.get_window("s")).clear()
    assert await store.get_history("s") == [user("hi")]


async def test_a_watermark_folds_between_its_lines_and_keeps_a_huge_turn(sessions):
    spans = []
    store = sessions(policy=TokenWatermark(100, count=len), summarizer=lambda span: spans.append(span) or "short")
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


async def test_a_count_that_raises_loses_nothing_because_nothing_was_written(sessions):
    def broken(text: str) -> int:
        raise RuntimeError("no tokenizer")

    store = sessions(policy=TokenWatermark(100, count=broken))
    with pytest.raises(RuntimeError, match="no tokenizer"):
        await store.append("s", user("hi"))
    assert await store.list_sessions() == []


@pytest.mark.parametrize("bad", ["", " ", None, 3, "a\0b", "\ud800"])
async def test_a_bad_session_id_is_refused_by_every_call_and_leaves_no_trace(sessions, bad):
    store = sessions()
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
async def test_only_a_chat_turn_can_be_appended(sessions, bad):
    store = sessions()
    with pytest.raises(ValueError, match="turn must be a ChatTurn"):
        await store.append("s", bad)
    assert await store.list_sessions() == []


@pytest.mark.parametrize("bad", [-1, 1.5, "20", None, True])
async def test_a_bad_limit_is_refused_by_name(sessions, bad):
    with pytest.raises(ValueError, match="limit"):
        await sessions().get_window("s", bad)


async def test_a_clock_without_a_zone_is_refused_before_anything_is_written(sessions):
    store = sessions(clock=lambda: datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(ValueError, match="aware"):
        await store.append("s", user("hi"))
    assert await store.list_sessions() == []


async def test_a_turn_of_five_megabytes_is_kept_to_the_letter(sessions):
    store = sessions(policy=TokenWatermark(8_000))
    big = user("线\0 x" * 1_000_000)
    await store.append("s", big)
    assert await store.get_history("s") == [big]


async def test_twenty_turns_appended_while_a_summary_is_written_are_all_there(sessions):
    writing = asyncio.Event()

    async def slow(span: tuple[ChatTurn, ...]) -> str:
        writing.set()
        await asyncio.sleep(0.5)
        return "summary"

    store = sessions(summarizer=slow)
    await fill(store, 40)
    fold = asyncio.ensure_future(store.append("s", user("the 41st")))
    await writing.wait()
    await fill(store, 20, start=100)
    assert len(await store.get_history("s")) == 61, "an append waited for somebody else's summary"
    await fold
    history = await store.get_history("s")
    assert [turn.content for turn in history[-20:]] == [f"turn {i}" for i in range(100, 120)]
    assert len(history) == 41


async def test_three_appends_that_reach_the_line_together_cost_one_summary(sessions):
    calls = []

    async def slow(span: tuple[ChatTurn, ...]) -> str:
        calls.append(span)
        await asyncio.sleep(0.3)
        return "summary"

    store = sessions(summarizer=slow)
    await fill(store, 40)
    await asyncio.gather(*(store.append("s", user(name)) for name in "abc"))
    history = await store.get_history("s")
    assert len(calls) == 1
    assert [i for i, turn in enumerate(history) if is_summary(turn)] == [0]
    assert {turn.content for turn in history} >= set("abc")


async def test_a_cut_parts_no_tool_result_from_its_call_and_the_applications_own_turn_stays(sessions):
    store = sessions(policy=CountPolicy(8, 4), summarizer=lambda span: "summary")
    own = ChatTurn("system", "You are the support desk.")
    turns = [own, *map(user, "abc"), ChatTurn("assistant", "", "search"), ChatTurn("assistant", "", "weather")]
    turns += [ChatTurn("tool", "22", "weather"), ChatTurn("tool", "found", "search"), user("d")]
    for turn in turns:
        await store.append("s", turn)
    history = await store.get_history("s")
    assert history[0] == own
    assert is_summary(history[1])
    assert history[2:] == turns[4:]
    assert await store.get_window("s", 2) == [own, history[1], user("d")]


async def test_many_sessions_at_once_keep_apart_and_each_in_order(sessions):
    async def talk(name: str) -> None:
        for i in range(10):
            await store.append(name, user(f"{name} {i}"))

    store = sessions()
    names = [f"session {i}" for i in range(20)]
    await asyncio.gather(*map(talk, names))
    for name in names:
        assert [turn.content for turn in await store.get_history(name)] == [f"{name} {i}" for i in range(10)]
    assert {row.session_id: row.turns for row in await store.list_sessions()} == dict.fromkeys(names, 10)


async def test_a_summary_in_chinese_is_recognised_and_folded_into_the_next(sessions):
    spans = []
    store = sessions(policy=CountPolicy(4, 2), summarizer=lambda span: spans.append(span) or "喜欢绿茶")
    await fill(store, 8)
    history = await store.get_history("s")
    assert history[0] == ChatTurn("system", "[会话摘要] 喜欢绿茶")
    assert len(spans) > 1
    assert all(span[0] == history[0] for span in spans[1:])
    assert sum(map(is_summary, history)) == 1
