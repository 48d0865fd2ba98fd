"""Recall by what a question names: exact, scoped to the user, within the days, and honest about what it did."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tri_memory import InMemoryEpisodicStore, ManualClock
from tri_memory.contracts import EpisodicRecord
from tri_memory.embedding import HashingEmbedder
from tri_memory.entity.extract import extract as extract_entities
from tri_memory.entity.memory import InMemoryUserMemoryStore
from tri_memory.entity.structured import Recalled, structured_recall

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
KINDS = {"BX": "CASE_ID", "SN": "DEVICE_ID", "PX": "PERSON_ID"}


class Entity(NamedTuple):
    kind: str
    value: str


def extract(text):
    return [Entity(KINDS[one[:2]], one) for one in re.findall(r"(?:BX|SN|PX)-\d+", text)]


class CountingEmbedder(HashingEmbedder):
    calls = 0

    def encode(self, texts):
        self.calls += 1
        return super().encode(texts)


class House:
    """Ann and Bob, their records, and their episodes."""

    def __init__(self) -> None:
        self.clock = ManualClock(START)
        self.memories = InMemoryUserMemoryStore(clock=self.clock)
        self.episodes = InMemoryEpisodicStore()
        self.embedder = CountingEmbedder()

    async def episode(self, user_id, session_id, summary):
        [vector] = self.embedder.encode([summary])
        await self.episodes.remember(EpisodicRecord(user_id, session_id, summary, vector, START))
        self.embedder.calls = 0

    async def ask(self, question, user_id="ann", **options) -> Recalled:
        given = {
            "memories": self.memories,
            "episodes": self.episodes,
            "embedder": self.embedder,
            "extract": extract,
            "clock": self.clock,
        }
        return await structured_recall(question, user_id=user_id, **{**given, **options})


@pytest.fixture
def house():
    return House()


async def test_a_named_case_comes_with_its_content_and_nothing_else(house):
    for number in range(50):
        await house.memories.put("ann", "case", f"BX-22{number:02}", {"n": number})
    found = await house.ask("What about BX-2207?")
    assert (found.how, [one.content for one in found.memories], found.episodes) == ("exact", [{"n": 7}], ())
    assert found.reason == "1 of the 1 cases and devices named, from the last 7 days"
    assert house.embedder.calls == 0


async def test_a_case_and_a_device_of_the_same_question_come_newest_first(house):
    await house.memories.put("ann", "device", "SN-1", {"model": "P9"})
    house.clock.advance(hours=1)
    await house.memories.put("ann", "case", "BX-1", {"status": "open"})
    house.clock.advance(hours=1)
    await house.memories.put("ann", "device", "SN-2", {"model": "P10"})
    found = await house.ask("BX-1: SN-1 and SN-2, not SN-9")
    assert [one.entity_id for one in found.memories] == ["SN-2", "BX-1", "SN-1"]
    assert found.reason.startswith("3 of the 4 ")


async def test_a_case_number_does_not_find_the_device_of_that_number(house):
    await house.memories.put("ann", "device", "BX-1", {})
    await house.memories.put("ann", "preference", "BX-1", {})
    assert (await house.ask("BX-1")).how == "nothing"


async def test_the_id_of_another_user_finds_nothing_and_says_no_more_than_of_an_id_that_nobody_has(house):
    await house.memories.put("bob", "case", "BX-1", {"secret": "canary", "session_id": "s1"})
    await house.episode("bob", "s1", "BX-1 canary")
    await house.episode("ann", "s2", "BX-2 something of ann's")
    found = await house.ask("What about BX-1?")
    assert found == await house.ask("What about BX-999?")
    assert found == Recalled("nothing", "of the 1 named, this user has no case or device from the last 7 days")


async def test_what_is_older_than_the_days_is_not_found_and_to_the_microsecond(house):
    await house.memories.put("ann", "case", "BX-1", {})
    house.clock.advance(days=7)
    assert (await house.ask("BX-1")).how == "exact"
    house.clock.advance(microseconds=1)
    assert (await house.ask("BX-1")).how == "nothing"
    assert (await house.ask("BX-1", days=8)).how == "exact"
    assert (await house.ask("BX-1", days=10**12)).how == "exact"
    assert (await house.ask("BX-1", days=1)).reason.endswith("from the last day")


async def test_a_forgotten_case_is_not_found(house):
    await house.memories.put("ann", "case", "BX-1", {})
    await house.memories.forget("ann")
    assert (await house.ask("BX-1")).how == "nothing"


async def test_a_case_brings_the_episodes_that_it_names_and_only_this_users(house):
    await house.episode("ann", "s1", "the screen of the phone is broken")
    await house.episode("ann", "s2", "the invoice was sent again")
    await house.episode("ann", "s3", "BX-1 BX-1 what is near to the question")
    await house.episode("bob", "s4", "BX-1 canary of bob's")
    await house.memories.put("ann", "case", "BX-1", {"session_id": "s2", "session_ids": ["s1", "s4", 7]})
    found = await house.ask("How is BX-1 going?", k=1)
    assert {one.session_id for one in found.episodes} == {"s1", "s2"}
    assert found.reason.endswith(", with 2 of the 3 episodes they name")
    assert (await house.ask("BX-1", episodes=None, embedder=None)).episodes == ()


@pytest.mark.parametrize(
    "question", ["Do it like last time, with the broken screen", "上次那个 broken screen", "PX-3: screen"]
)
async def test_a_question_that_names_no_case_and_no_device_goes_to_the_episodes(house, question):
    await house.memories.put("ann", "case", "BX-1", {})
    for session, summary in (("s1", "broken screen repaired"), ("s2", "an invoice"), ("s3", "screen"), ("s4", "tea")):
        await house.episode("ann", session, summary)
    await house.episode("bob", "s5", question)
    found = await house.ask(question, k=2)
    assert (found.how, found.memories) == ("episodes", ())
    assert [one.session_id for one in found.episodes] == [
        one.session_id for one in await house.episodes.recall(house.embedder.encode([question])[0], 2, user_id="ann")
    ]
    assert found.reason == "the question names no case and no device: the 2 nearest episodes"


async def test_without_episodes_a_question_that_names_nothing_finds_nothing_and_says_why(house):
    await house.memories.put("ann", "case", "BX-1", {})
    found = await house.ask("like last time", episodes=None, embedder=None)
    assert found == Recalled(
        "nothing", "the question names no case and no device, and no episodes were given to look in"
    )
    for question in ("like last time", "", " \n"):
        found = await house.ask(question)
        assert found == Recalled(
            "nothing", "the question names no case and no device, and no episode of this user is near to it"
        )


async def test_an_id_that_no_store_can_have_is_not_found(house):
    await house.memories.put("ann", "case", "BX-1", {})
    for value in ("BX-" + "1" * 1_000, " ", "\ud800", "a\0"):
        found = await house.ask("?", extract=lambda _, value=value: [Entity("CASE_ID", value)])
        assert found.how == "nothing"
        both = await house.ask(
            "?", extract=lambda _, value=value: [Entity("CASE_ID", value), Entity("CASE_ID", "BX-1")]
        )
        assert [one.entity_id for one in both.memories] == ["BX-1"]


async def test_the_reason_holds_no_id(house):
    await house.memories.put("ann-7731", "case", "BX-4410", {"session_ids": ["s-9902"]})
    await house.episode("ann-7731", "s-9902", "something")
    for question in ("BX-4410", "BX-4411", "like last time"):
        reason = (await house.ask(question, user_id="ann-7731")).reason
        assert not re.search("7731|441|9902", reason)


@pytest.mark.parametrize(
    ("question", "options", "named"),
    [
        ("BX-1", {"user_id": " "}, "user_id"),
        ("BX-1", {"user_id": None}, "user_id"),
        (None, {}, "question must be a string; got None"),
        (b"BX-1", {}, "question"),
        ("BX-1", {"days": 0}, "days must be a whole number of at least 1"),
        ("BX-1", {"k": 0}, "k must be a whole number of at least 1"),
        ("BX-1", {"embedder": None}, "give both episodes and embedder, or neither"),
        ("BX-1", {"episodes": None}, "give both episodes and embedder, or neither"),
    ],
)
async def test_a_call_that_makes_no_sense_is_refused(house, question, options, named):
    with pytest.raises(ValueError, match=named):
        await house.ask(question, **options)


@given(
    st.lists(st.tuples(st.sampled_from(["ann", "bob"]), st.integers(1, 6), st.integers(0, 12)), max_size=12),
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
)
async def test_exactly_the_named_recent_records_of_the_user_are_found(puts, numbers):
    house, newest = House(), {}
    for user, number, hours in puts:
        house.clock.advance(hours=hours)
        await house.memories.put(user, "case", f"BX-{number}", {})
        newest[user, f"BX-{number}"] = house.clock()
    named = {f"BX-{number}" for number in numbers}
    found = await house.ask(" ".join(named), days=1)
    expected = {
        case
        for (user, case), said in newest.items()
        if user == "ann" and case in named and (house.clock() - said).total_seconds() <= 86_400
    }
    assert {one.entity_id for one in found.memories} == expected
    assert {one.user_id for one in found.memories} <= {"ann"}
    assert found.how == ("exact" if expected else "nothing")
    times = [one.updated_at for one in found.memories]
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Order #BX-2207 came without the pump.", "Any news of order #bx 2207?"),
        ("订单号BX2207还没到", "ＢＸ-2207 怎么样了？"),
        ("Order #BX-2207 came without the pump.", "订单号BX2207还没到吗"),
    ],
)
async def test_with_the_kits_rules_an_id_is_found_in_whatever_spelling_it_is_asked_for(house, said, asked):
    [entity] = [one for one in extract_entities(said) if one.kind == "CASE_ID"]
    await house.memories.put("ann", "case", entity.value, {"said": said})
    options = {"user_id": "ann", "memories": house.memories, "clock": house.clock}
    found = await structured_recall(asked, **options)
    assert (found.how, [one.content for one in found.memories]) == ("exact", [{"said": said}])
    assert (await structured_recall("上次那个怎么样了？", **options)).how == "nothing"


async def test_a_vector_takes_the_nearest_number_where_the_lookup_takes_the_right_one_or_none(house):
    """Why this exists: by cosine the case that Ann doesn't have still finds one that she has."""
    for number in range(20):
        await house.episode("ann", f"BX-{number}", f"case BX-{number} is open")
        await house.memories.put("ann", "case", f"BX-{number}", {})
    question = "case BX-99 is open"
    [nearest] = await house.episodes.recall(house.embedder.encode([question])[0], 1, user_id="ann")
    assert nearest.score > 0.5
    assert (await house.ask(question)).how == "nothing"
    assert np.all([(await house.ask(f"BX-{n}")).memories[0].entity_id == f"BX-{n}" for n in range(20)])
