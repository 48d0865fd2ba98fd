import asyncio
import threading
import time
from datetime import UTC, datetime

import numpy as np
import pytest

from tri_memory.clock import ManualClock
from tri_memory.contracts import ChatTurn
from tri_memory.embedding import HashingEmbedder
from tri_memory.episodic.archive import ArchiveError, archive
from tri_memory.episodic.memory import InMemoryEpisodicStore
from tri_memory.session.memory import InMemorySessionStore

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def refund(turns):
    return "She asked for a refund."


class House:
    """The stores and the embedder of one application."""

    def __init__(self):
        self.sessions = InMemorySessionStore()
        self.episodes = InMemoryEpisodicStore()
        self.embedder = HashingEmbedder()
        self.clock = ManualClock(NOON)

    async def say(self, *turns, session_id="s1"):
        for role, content in turns or [("user", "My shoes squeak."), ("assistant", "I'll refund them.")]:
            await self.sessions.append(session_id, ChatTurn(role, content))

    async def archive(self, summarizer=refund, session_id="s1", user_id="ann", **options):
        house = {"sessions": self.sessions, "episodes": self.episodes, "embedder": self.embedder, "clock": self.clock}
        return await archive(session_id, user_id=user_id, summarizer=summarizer, **(house | options))

    async def recalled(self, query="a refund", user_id="ann"):
        return await self.episodes.recall(self.embedder.encode([query])[0], 10, user_id=user_id)


@pytest.fixture
def house():
    return House()


async def test_a_finished_session_can_be_recalled(house):
    await house.say()
    record = await house.archive()
    assert (record.user_id, record.session_id, record.summary) == ("ann", "s1", "She asked for a refund.")
    assert record.created_at == NOON
    [found] = await house.recalled("She asked for a refund.")
    assert (found.session_id, found.summary, found.created_at) == ("s1", record.summary, NOON)
    assert found.score == pytest.approx(1, abs=1e-6)


async def test_an_async_summariser_gets_the_turns_of_that_session(house):
    await house.say(("user", "Size 42."), ("assistant", "Noted."))
    await house.say(("user", "Something else."), session_id="s2")

    async def joined(turns):
        return " ".join(turn.content for turn in turns)

    assert (await house.archive(joined)).summary == "Size 42. Noted."


async def test_the_applications_own_system_turn_is_no_part_of_the_story_but_an_earlier_summary_is(house):
    await house.say(
        ("system", "You are a shop assistant."), ("system", "[conversation summary] Size 42."), ("user", "?")
    )
    seen = []
    await house.archive(lambda turns: seen.extend(turn.content for turn in turns) or "Size 42.")
    assert seen == ["[conversation summary] Size 42.", "?"]


async def test_a_session_folded_to_its_summary_is_archived_from_that(house):
    await house.say(("system", "[会话摘要] 四十二码。"))
    assert (await house.archive(lambda turns: turns[0].content)).summary == "四十二码。"


@pytest.mark.parametrize("turns", [[], [("system", "You are a shop assistant.")]])
async def test_a_session_in_which_nothing_was_said_is_no_episode(house, turns):
    if turns:
        await house.say(*turns)
    assert await house.archive() is None
    assert await house.recalled() == []


async def test_archiving_again_replaces_the_summary_and_keeps_the_time(house):
    await house.say()
    await house.archive()
    house.clock.advance(days=3)
    await house.archive(lambda turns: "She got a refund.")
    assert [(found.summary, found.created_at) for found in await house.recalled()] == [("She got a refund.", NOON)]


async def test_archived_twice_at_once_is_one_record(house):
    await house.say()
    await asyncio.gather(house.archive(), house.archive())
    assert len(await house.recalled()) == 1


async def test_the_session_stays_as_it_is(house):
    await house.say()
    before = await house.sessions.get_history("s1")
    await house.archive()
    assert await house.sessions.get_history("s1") == before


@pytest.mark.parametrize("prefix", ["[conversation summary] ", "[会话摘要] ", ""])
async def test_a_prefix_that_the_model_repeats_is_no_part_of_the_summary(house, prefix):
    await house.say()
    assert (await house.archive(lambda turns: f" {prefix}退了鞋。\n")).summary == "退了鞋。"


async def test_what_no_server_stores_is_dropped_from_the_summary(house):
    await house.say()
    assert (await house.archive(lambda turns: "re\0fund \ud83d😀")).summary == "refund 😀"


def raising(turns):
    raise KeyError("no such prompt")


@pytest.mark.parametrize(
    ("summarizer", "message"),
    [
        (raising, "the summariser raised KeyError: 'no such prompt'"),
        (lambda turns: " \n", "blank"),
        (lambda turns: "\u200b", "blank"),
        (lambda turns: "[conversation summary] ", "blank"),
        (lambda turns: None, "returned None, not text"),
        (lambda turns: b"refund", "returned b'refund', not text"),
        (lambda turns: "x" * 5_000_000, "5,000,000 characters, more than 2,000"),
        (lambda turns: asyncio.sleep(60), "took longer than 0.1 s"),
        (None, "summariser raised TypeError"),
    ],
)
async def test_without_a_summary_nothing_is_stored_and_the_error_says_why(house, summarizer, message):
    await house.say()
    with pytest.raises(ArchiveError, match=f"session 's1' was not archived, nothing was stored: .*{message}"):
        await house.archive(summarizer, summary_timeout_s=0.1)
    assert await house.recalled() == []


async def test_the_cause_of_a_failure_stays_visible(house):
    await house.say()
    with pytest.raises(ArchiveError) as caught:
        await house.archive(raising)
    assert isinstance(caught.value.__cause__, KeyError)


class BrokenEmbedder(HashingEmbedder):
    def encode(self, texts):
        raise MemoryError("out of memory")


async def test_an_embedder_that_raises_is_named_and_nothing_is_stored(house):
    await house.say()
    with pytest.raises(ArchiveError, match=r"session 's1'.*the embedder hashing-256 raised MemoryError: out of memory"):
        await house.archive(embedder=BrokenEmbedder())
    assert await house.recalled() == []


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], r"shape \(0,\), not \(1, 256\)"),
        (None, r"shape \(\), not"),
        ("vector", "'vector', not an array of numbers"),
        ([[1.0], [1.0, 2.0]], "not an array of numbers"),
        (np.ones(256), r"shape \(256,\), not"),
        (np.ones((1, 64)), r"shape \(1, 64\), not"),
        (np.ones((2, 256)), r"shape \(2, 256\), not"),
        (np.zeros((1, 256)), "a vector of zeros"),
        (np.full((1, 256), np.nan), "NaN or infinity"),
        (np.full((1, 256), np.inf), "NaN or infinity"),
    ],
    ids=["empty", "None", "text", "ragged", "flat", "short", "two rows", "zeros", "NaN", "infinity"],
)
async def test_an_embedder_that_gives_no_vector_is_named_and_nothing_is_stored(house, monkeypatch, rows, message):
    await house.say()
    embedder = HashingEmbedder()
    monkeypatch.setattr(embedder, "encode", lambda texts: rows)
    with pytest.raises(ArchiveError, match=f"session 's1'.*the embedder hashing-256 returned .*{message}"):
        await house.archive(embedder=embedder)
    assert await house.recalled() == []


async def test_a_failure_leaves_the_earlier_record_as_it_was(house):
    await house.say()
    await house.archive()
    with pytest.raises(ArchiveError):
        await house.archive(lambda turns: "changed", embedder=BrokenEmbedder())
    assert [found.summary for found in await house.recalled()] == ["She asked for a refund."]


async def test_an_embedder_of_another_size_is_refused_naming_both(house):
    await house.say()
    await house.archive()
    with pytest.raises(ValueError, match="64 dimensions, but 256"):
        await house.archive(embedder=HashingEmbedder(64))


class SlowEmbedder(HashingEmbedder):
    def encode(self, texts):
        self.thread = threading.current_thread()
        time.sleep(0.05)
        return np.ones((1, self.dimensions), np.float32)


async def test_the_loop_goes_on_while_the_embedder_works(house):
    await house.say()
    embedder = SlowEmbedder()
    await house.archive(embedder=embedder)
    assert embedder.thread is not threading.current_thread()


@pytest.mark.parametrize("blank", ["", "  ", None, 7])
async def test_without_a_user_or_a_session_there_is_no_memory(house, blank):
    await house.say()
    with pytest.raises(ValueError, match="user_id must be a non-blank string"):
        await house.archive(user_id=blank)
    with pytest.raises(ValueError, match="session_id must be a non-blank string"):
        await house.archive(session_id=blank)
