"""The adapters over stores behind the registry of the forgotten: what was read before a forgetting is not written."""

from __future__ import annotations

import asyncio

import pytest

from tests.conftest import needs
from tri_memory import ChatTurn, InMemorySessionStore
from tri_memory.adapters.openai_agents import OpenAISession
from tri_memory.blocking_calls import run
from tri_memory.entity.records import Forgotten
from tri_memory.privacy.forget import Stores, forget_user
from tri_memory.privacy.guarded import guarded
from tri_memory.privacy.tombstones import InMemoryTombstones

KEY = "ann/s1"
CANARY = "BX-220719"


class House:
    """A store on an engine, the registry, and one way for a framework to talk to it."""

    def __init__(self, store) -> None:
        self.bare, self.tombstones = store, InMemoryTombstones()
        self.store = guarded(store, self.tombstones)

    async def forget(self) -> None:
        receipt = await forget_user("ann", stores=Stores(sessions=self.bare), tombstones=self.tombstones)
        assert receipt.ok


class Failing(InMemorySessionStore):
    fails = False

    async def append(self, session_id, turn) -> None:
        if self.fails:
            raise ConnectionError("the server is away")
        await super().append(session_id, turn)


class OpenAI:
    def __init__(self, store, key) -> None:
        self.session = OpenAISession(store, key)

    async def read(self) -> list:
        return await self.session.get_items()

    async def write(self, *said: str) -> None:
        roles = ("user", "assistant")
        await self.session.add_items([{"role": roles[n % 2], "content": text} for n, text in enumerate(said)])


class LangChain:
    def __init__(self, store, key) -> None:
        needs("langchain_core", "pip install langchain-core")
        from tri_memory.adapters.langchain import LangChainHistory

        self.history = LangChainHistory(store, key)

    async def read(self) -> list:
        return await self.history.aget_messages()

    async def write(self, *said: str) -> None:
        await self.history.aadd_messages(messages(*said))


class LangChainBlocking(LangChain):
    async def read(self) -> list:
        return await asyncio.to_thread(lambda: self.history.messages)

    async def write(self, *said: str) -> None:
        await asyncio.to_thread(self.history.add_messages, messages(*said))


def messages(*said: str) -> list:
    from langchain_core.messages import AIMessage, HumanMessage

    return [(HumanMessage, AIMessage)[number % 2](text) for number, text in enumerate(said)]


@pytest.fixture(params=[OpenAI, LangChain, LangChainBlocking])
def framework(request):
    return request.param


@pytest.fixture(params=["memory", "embedded_valkey"])
async def house(request):
    if request.param == "memory":
        yield House(InMemorySessionStore())
        return
    from uuid import uuid4

    from tri_memory import RedisSessionStore

    async with RedisSessionStore.from_url(request.getfixturevalue(request.param), prefix=f"{uuid4().hex}:") as store:
        yield House(store)


async def test_an_exchange_goes_through_and_is_read_again(house, framework):
    talk = framework(house.store, KEY)
    assert await talk.read() == []
    await talk.write("My order is late.", "I am sorry.")
    assert len(await talk.read()) == 2
    await talk.write("Where is it?", "In Leeds.")
    assert [turn.content for turn in await house.bare.get_history(KEY)][2:] == ["Where is it?", "In Leeds."]


async def test_input_43_an_exchange_that_a_forgetting_overtakes_is_not_written_and_the_next_one_is(house, framework):
    talk = framework(house.store, KEY)
    await talk.write("My order is late.", "I am sorry.")
    await talk.read()  # the framework reads, then asks its model, which takes its time
    await house.forget()
    with pytest.raises(Forgotten):
        await talk.write(f"It is {CANARY}.", f"I look for {CANARY}.")
    assert await house.bare.get_history(KEY) == []

    assert await talk.read() == []
    await talk.write("Hello.", "Hello!")
    assert [turn.content for turn in await house.bare.get_history(KEY)] == ["Hello.", "Hello!"]


async def test_who_writes_without_reading_is_refused_no_longer_than_once(house, framework):
    talk = framework(house.store, KEY)
    await talk.read()
    await house.forget()
    with pytest.raises(Forgotten):
        await talk.write("Said before.")
    await talk.write("Said after.")
    assert [turn.content for turn in await house.bare.get_history(KEY)] == ["Said after."]


async def test_a_write_that_failed_is_judged_by_the_same_reading_when_it_is_tried_again(framework):
    store = Failing()
    house = House(store)
    talk = framework(house.store, KEY)
    await talk.read()
    store.fails = True
    with pytest.raises(ConnectionError):
        await talk.write(f"It is {CANARY}.")
    store.fails = False
    await house.forget()
    with pytest.raises(Forgotten):
        await talk.write(f"It is {CANARY}.")
    assert await house.bare.get_history(KEY) == []


async def test_a_session_that_is_nobodys_is_written_as_it_comes(house, framework):
    talk = framework(house.store, "shared")
    await talk.read()
    await house.forget()
    await talk.write("Hello.")
    assert [turn.content for turn in await house.bare.get_history("shared")] == ["Hello."]


def test_the_blocking_history_works_where_no_loop_runs():
    house = House(InMemorySessionStore())
    needs("langchain_core", "pip install langchain-core")
    from tri_memory.adapters.langchain import LangChainHistory

    history = LangChainHistory(house.store, KEY)
    history.add_messages(messages("Hello.", "Hello!"))
    run(house.forget())
    assert history.messages == []
    assert run(house.bare.get_history(KEY)) == []
    run(house.store.append(KEY, ChatTurn("user", "Again.")))
    assert [each.content for each in history.messages] == ["Again."]
