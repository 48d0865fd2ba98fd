"""LangChain's `BaseChatMessageHistory` over any session store: `LangChainHistory(store, session_id)`.

    message                                             turn
    human, AI or system message of plain text           its role and its text
    AI message with tool calls, message with images     its role, the message in an envelope;
      by URL, a name, additional_kwargs                   tool_name is that of the first call
    tool message                                        tool, with the tool_name of its call, in an envelope
    data in base64, chat messages of a role of their    refused: ValueError before anything is written
      own, RemoveMessage

The id of a message and what its provider says about it (`response_metadata`, `usage_metadata`) are left out.
LangChain has deprecated this interface in 1.6.4, for removal in 2.0; programs that use it go on until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from tri_memory.adapters.envelope import unwrap, wrap
from tri_memory.adapters.exchange import Exchange
from tri_memory.blocking_calls import run
from tri_memory.contracts import ChatTurn, Role, SessionStore, require_text, shown

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

MARK = "[langchain message] "
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
_LEFT_OUT = {"id", "type", "response_metadata", "usage_metadata"}


def __getattr__(name: str) -> Any:
    if name == "LangChainHistory":
        return _history_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _history_class() -> type:
    """The class itself, made when it is first asked for, since its base is LangChain's."""
    try:
        from langchain_core.chat_history import BaseChatMessageHistory
    except ModuleNotFoundError as error:
        raise ImportError("LangChainHistory needs langchain-core: pip install langchain-core") from error
    members = {"__module__": __name__, "__doc__": _History.__doc__}
    return type("LangChainHistory", (_History, BaseChatMessageHistory), members)


class _History:
    """One session of a store as a chat message history.

    The plain methods wait on the background loop of `tri_memory.blocking`, the `a…` methods on yours: a store used
    through both has to serve several loops, as one in memory or made by `from_url` does. The store's summary turn
    comes out as a system message. A tool message whose call was folded away is left out. Over a guarded store, an
    exchange that was read before its user was forgotten raises Forgotten and is not kept.
    """

    def __init__(self, store: SessionStore, session_id: str) -> None:
        self.session_id = require_text("session_id", session_id)
        self.store = store
        self._exchange = Exchange(store, self.session_id)

    @property
    def messages(self) -> list[BaseMessage]:
        """Everything kept, oldest first."""
        return _to_messages(run(self._exchange.read()))

    async def aget_messages(self) -> list[BaseMessage]:
        return _to_messages(await self._exchange.read())

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append each message, in order; ValueError, before the first, for one that can't be kept."""
        run(self._exchange.write(_to_turns(messages, lambda: _to_messages(run(self._kept())))))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        earlier = _to_messages(await self._kept()) if any(each.type == "tool" for each in messages) else []
        await self._exchange.write(_to_turns(messages, lambda: earlier))

    async def _kept(self) -> list[ChatTurn]:
        return await self.store.get_history(self.session_id)

    def clear(self) -> None:
        """Drop the session, its summary included."""
        run(self.store.clear(self.session_id))

    async def aclear(self) -> None:
        await self.store.clear(self.session_id)


def _to_turns(messages: Sequence[BaseMessage], earlier: Callable[[], Sequence[BaseMessage]]) -> list[ChatTurn]:
    """All turns, or ValueError; `earlier` messages are asked for only where a tool message has no name."""
    names = _tool_names(messages)
    if any(each.type == "tool" and getattr(each, "tool_call_id", None) not in names for each in messages):
        names = _tool_names(earlier()) | names
    return [_to_turn(message, names) for message in messages]


def _to_turn(message: BaseMessage, names: Mapping[str, str]) -> ChatTurn:
    from langchain_core.messages import message_chunk_to_message

    message = message_chunk_to_message(message)
    if message.type not in _ROLES:
        raise ValueError(f"a message of type {shown(message.type)} can't be kept; turn it into {', '.join(_ROLES)}")
    role = cast(Role, _ROLES[message.type])
    data = message.model_dump(exclude=_LEFT_OUT, exclude_defaults=True)
    data["additional_kwargs"] = {k: v for k, v in message.additional_kwargs.items() if v is not None}
    if not data["additional_kwargs"]:
        del data["additional_kwargs"]
    text = message.content
    if data.keys() <= {"content"} and isinstance(text, str) and not text.startswith(MARK):
        return ChatTurn(role, text)
    calls = getattr(message, "tool_calls", None) or ()
    call_id = getattr(message, "tool_call_id", None)
    name = _name(calls[0].get("name")) if calls else _name(names.get(call_id)) if call_id else None
    return ChatTurn(role, wrap(MARK, {"type": message.type, "data": {**data, "content": text}}), name)


def _to_messages(turns: Sequence[ChatTurn]) -> list[BaseMessage]:
    called: set[str] = set()
    messages = []
    for message in map(_to_message, turns):
        called.update(_tool_names([message]))
        if message.type != "tool" or getattr(message, "tool_call_id", None) in called:
            messages.append(message)
    return messages


def _to_message(turn: ChatTurn) -> BaseMessage:
    """The message that `turn` keeps. What another program wrote becomes plain text, a tool's bare result, which has no
    call id, text of the AI."""
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, messages_from_dict

    kept = unwrap(MARK, turn.content)
    if kept is not None and _ROLES.get(str(kept.get("type"))) == turn.role:
        with suppress(ValueError, TypeError, KeyError):  # written by hand: then it is text
            return messages_from_dict([kept])[0]
    if turn.role == "tool":
        return AIMessage(f"[result of {turn.tool_name or 'a tool'}] {turn.content}")
    plain: dict[str, Callable[[str], BaseMessage]] = {
        "user": HumanMessage,
        "assistant": AIMessage,
        "system": SystemMessage,
    }
    return plain[turn.role](turn.content)


def _tool_names(messages: Iterable[BaseMessage]) -> dict[str, str]:
    """Which tool each call id of these messages called."""
    calls = [call for message in messages for call in getattr(message, "tool_calls", None) or ()]
    return {call["id"]: call["name"] for call in calls if call.get("id")}


def _name(name: Any) -> str | None:
    return name if isinstance(name, str) and name and not name.isspace() else None
