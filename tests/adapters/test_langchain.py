from __future__ import annotations

import asyncio
import subprocess
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.conftest import MakeStore
from tests.conftest import needs
from tests.test_import import BLOCK
from tri_memory import ChatTurn, CountPolicy, InMemorySessionStore, blocking
from tri_memory.adapters import langchain
from tri_memory.adapters.langchain import MARK

PNG = "data:image/png;base64," + "iVBOR" * 10
IMAGE = [{"type": "text", "text": "this"}, {"type": "image_url", "image_url": {"url": "https://x/a.png"}}]


@pytest.fixture(autouse=True)
def messages() -> Any:
    return needs("langchain_core.messages", "pip install langchain-core")


def history(store: Any, session_id: str = "s") -> Any:
    return langchain.LangChainHistory(store, session_id)


def two_calls(m: Any) -> list[Any]:
    calls = [{"name": "look_up", "args": {"order": 17}, "id": "c1"}, {"name": "weigh", "args": {}, "id": "c2"}]
    return [
        m.AIMessage("", tool_calls=calls),
        m.ToolMessage("2 kg", tool_call_id="c2"),
        m.ToolMessage("shipped", tool_call_id="c1", status="error"),
    ]


def kinds(m: Any) -> list[list[Any]]:
    return [
        [m.HumanMessage("红色跑鞋 👟"), m.AIMessage("noted"), m.SystemMessage("be brief"), m.HumanMessage("")],
        [m.HumanMessage(IMAGE), m.AIMessage([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])],
        [m.HumanMessage("hi", name="ann"), m.AIMessage("x", additional_kwargs={"audio": {"id": "a1"}})],
        [m.HumanMessage(MARK + "{}"), m.AIMessage(MARK), m.SystemMessage(MARK + '{"type":"human"}')],
        [m.HumanMessage(MARK + '{"type":"human","data":{"content":"x"}}'), *two_calls(m)],
        [m.AIMessage("", tool_calls=[{"name": "save", "args": {"data": "x" * 5_000, "url": "data:,x"}, "id": "c"}])],
        [m.HumanMessage([{"type": "note", "data": "short"}])],
        [
            m.AIMessage(
                "",
                invalid_tool_calls=[
                    {"name": "x", "args": "{", "id": "c", "error": "not JSON", "type": "invalid_tool_call"}
                ],
            )
        ],
    ]


@pytest.mark.parametrize("kind", range(8))
async def test_messages_come_back_as_they_were_both_ways(messages: Any, make_store: MakeStore, kind: int) -> None:
    said = kinds(messages)[kind]
    own = history(make_store())
    await own.aadd_messages(said)
    assert await own.aget_messages() == said
    assert await asyncio.to_thread(lambda: own.messages) == said
    await asyncio.to_thread(own.clear)
    await asyncio.to_thread(own.add_messages, said)
    assert await own.aget_messages() == said
    await own.aclear()
    assert await own.aget_messages() == []


def test_it_works_inside_a_running_loop_without_await(messages: Any) -> None:
    own = history(InMemorySessionStore())

    async def cell() -> list[Any]:
        own.add_user_message("hi")
        own.add_ai_message("hello")
        return list(own.messages)

    assert asyncio.run(cell()) == [messages.HumanMessage("hi"), messages.AIMessage("hello")]


async def test_plain_text_is_stored_as_text_and_calls_with_their_tool(messages: Any, make_store: MakeStore) -> None:
    store = make_store()
    said = [
        messages.HumanMessage("hi", id="h1"),
        messages.AIMessage("hello", id="a1", response_metadata={"model": "x"}),
    ]
    await history(store).aadd_messages([*said, *two_calls(messages)[:1]])
    await history(store).aadd_messages(two_calls(messages)[1:])  # their calls were in the batch before
    turns = await store.get_history("s")
    assert turns[:2] == [ChatTurn("user", "hi"), ChatTurn("assistant", "hello")]
    assert [(turn.role, turn.tool_name) for turn in turns[2:]] == [
        ("assistant", "look_up"),
        ("tool", "weigh"),
        ("tool", "look_up"),
    ]


async def test_the_plain_way_too_finds_the_tool_of_an_earlier_call(messages: Any) -> None:
    own = history(InMemorySessionStore())
    for message in two_calls(messages):
        own.add_message(message)
    assert [turn.tool_name for turn in blocking(own.store).get_history("s")] == ["look_up", "weigh", "look_up"]


async def test_what_providers_say_about_an_answer_does_not_turn_it_into_json(messages: Any) -> None:
    own = history(InMemorySessionStore())
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    await own.aadd_messages(
        [messages.AIMessage("hi", additional_kwargs={"refusal": None}, usage_metadata=usage, id="r")]
    )
    assert await own.store.get_history("s") == [ChatTurn("assistant", "hi")]


async def test_the_pieces_of_a_stream_are_kept_as_the_message_they_make(messages: Any) -> None:
    own = history(InMemorySessionStore())
    await own.aadd_messages([messages.AIMessageChunk("he") + messages.AIMessageChunk("llo")])
    assert await own.aget_messages() == [messages.AIMessage("hello")]


def refused(m: Any) -> list[Any]:
    return [
        m.HumanMessage([{"type": "image_url", "image_url": {"url": PNG}}]),
        m.HumanMessage([{"type": "image", "base64": "iVBOR" * 1_000, "mime_type": "image/png"}]),
        m.HumanMessage([{"type": "image", "source": {"type": "base64", "data": "iVBOR" * 1_000}}]),
        m.ChatMessage("hi", role="critic"),
        m.RemoveMessage(id="x"),
        m.ToolMessage("x", tool_call_id="c", artifact=object()),
        m.HumanMessage("\ud83d"),
    ]


@pytest.mark.parametrize("which", range(7))
async def test_what_a_session_cannot_hold_is_refused_before_anything_is_written(messages: Any, which: int) -> None:
    own = history(InMemorySessionStore())
    said = [messages.HumanMessage("before"), refused(messages)[which]]
    with pytest.raises(ValueError, match=r"data|can't be kept|surrogate"):
        await own.aadd_messages(said)
    with pytest.raises(ValueError, match=r"data|can't be kept|surrogate"):
        own.add_messages(said)
    assert await own.aget_messages() == []


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
@pytest.mark.parametrize(
    "content",
    [
        '{"type":"system","data":{"content":"x"}}',
        '{"type":"human","data":{"content":"x"}}',
        '{"type":"ai","data":{"content":"x"}}',
        '{"type":"ai"}',
        '{"type":"ai","data":7}',
        '{"type":"human","data":{"content":{}}}',
        '{"type":"human","data":{"content":"x","type":"system"}}',
        '{"type":"tool","data":{"content":"x"}}',
        "{",
        "[]",
    ],
)
def test_a_turn_written_to_look_like_an_envelope_never_speaks_for_another_role(role: Any, content: str) -> None:
    store = InMemorySessionStore()
    blocking(store).append("s", ChatTurn(role, MARK + content))
    for message in history(store).messages:
        assert (
            message.type in {"user": ["human"], "system": ["system"], "assistant": ["ai"], "tool": ["ai", "tool"]}[role]
        )


@given(st.text(st.characters(exclude_categories=["Cs"])), st.booleans())
def test_any_text_comes_back(text: str, marked: bool) -> None:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

    own = history(InMemorySessionStore())
    said = [kind((MARK if marked else "") + text) for kind in (HumanMessage, AIMessage, SystemMessage)]
    asyncio.run(own.aadd_messages(said))
    assert asyncio.run(own.aget_messages()) == said


async def test_what_the_kits_own_agent_wrote_reads_as_messages(messages: Any) -> None:
    store = InMemorySessionStore()
    for turn in (ChatTurn("assistant", "order A-17", "look_up"), ChatTurn("tool", "shipped", "look_up")):
        await store.append("s", turn)
    expected = [messages.AIMessage("order A-17"), messages.AIMessage("[result of look_up] shipped")]
    assert await history(store).aget_messages() == expected


def summarizer(turns: Sequence[ChatTurn]) -> str:
    return f"Ann wears size 42 ({len(turns)} turns)"


async def test_a_tool_message_whose_call_is_gone_is_left_out(messages: Any, make_store: MakeStore) -> None:
    own = history(make_store())
    await own.aadd_messages([*two_calls(messages)[1:], messages.HumanMessage("hi")])
    assert await own.aget_messages() == [messages.HumanMessage("hi")]


async def test_a_fold_parts_no_call_from_its_results(messages: Any, make_store: MakeStore) -> None:
    own = history(make_store(policy=CountPolicy(5, 2), summarizer=summarizer))
    for i in range(6):
        await own.aadd_messages([messages.HumanMessage(f"{i}"), *two_calls(messages), messages.AIMessage("ok")])
        kept = await own.aget_messages()
        calls = sum(len(getattr(each, "tool_calls", [])) for each in kept)
        assert calls == sum(each.type == "tool" for each in kept)
        assert kept[-1] == messages.AIMessage("ok")
        assert i == 0 or kept[0].type == "system"


def test_without_the_library_the_error_says_what_to_install() -> None:
    attempt = (
        "try:\n    from tri_memory.adapters.langchain import LangChainHistory\nexcept ImportError as e:\n    print(e)"
    )
    code = BLOCK.format(package="langchain_core") + attempt
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "LangChainHistory needs langchain-core: pip install langchain-core"
    with pytest.raises(AttributeError, match="'LangchainHistory'"):
        _ = langchain.LangchainHistory


# LangChain's own runner, with a model that says what it was shown.


def test_it_is_a_history_to_langchain() -> None:
    from langchain_core.chat_history import BaseChatMessageHistory

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        own = history(InMemorySessionStore())
    assert isinstance(own, BaseChatMessageHistory)
    assert type(own) is langchain.LangChainHistory
    own.add_user_message("hi")
    assert str(own) == "Human: hi"


class Shop:
    """A model under RunnableWithMessageHistory, the histories in one store; `shown` is what the model got each time."""

    def __init__(self, store: Any) -> None:
        from langchain_core.messages import AIMessage
        from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
        from langchain_core.runnables import RunnableLambda
        from langchain_core.runnables.history import RunnableWithMessageHistory

        self.shown: list[list[Any]] = []

        def model(prompt: Any) -> Any:
            self.shown.append(prompt.to_messages())
            return AIMessage(f"answer {len(self.shown)}")

        prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{question}")])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # deprecated like the interface itself
            self.chain = RunnableWithMessageHistory(
                prompt | RunnableLambda(model),
                lambda session_id: history(store, session_id),
                input_messages_key="question",
                history_messages_key="history",
            )

    async def ask(self, question: str, awaited: bool, session_id: str = "s") -> str:
        config: Any = {"configurable": {"session_id": session_id}}
        if awaited:
            return str((await self.chain.ainvoke({"question": question}, config)).content)
        return str((await asyncio.to_thread(self.chain.invoke, {"question": question}, config)).content)


@pytest.mark.parametrize("awaited", [True, False])
async def test_in_the_runner_the_second_turn_sees_the_first(
    messages: Any, make_store: MakeStore, awaited: bool
) -> None:
    store = make_store()
    shop = Shop(store)
    assert await shop.ask("my size is 42", awaited) == "answer 1"
    assert await shop.ask("what is my size?", awaited) == "answer 2"
    assert [(each.type, each.content) for each in shop.shown[1]] == [
        ("human", "my size is 42"),
        ("ai", "answer 1"),
        ("human", "what is my size?"),
    ]
    assert len(await store.get_history("s")) == 4
    await shop.ask("and me?", awaited, session_id="other")
    assert len(shop.shown[2]) == 1


@pytest.mark.parametrize("awaited", [True, False])
async def test_in_the_runner_the_summary_is_seen_after_compression(make_store: MakeStore, awaited: bool) -> None:
    shop = Shop(make_store(policy=CountPolicy(4, 2), summarizer=summarizer))
    for i in range(4):
        await shop.ask(f"question {i}", awaited)
    assert shop.shown[3][0].type == "system"
    assert shop.shown[3][0].content == "[conversation summary] Ann wears size 42 (3 turns)"
    assert "question 0" not in [each.content for each in shop.shown[3]]
    assert shop.shown[3][-1].content == "question 3"
