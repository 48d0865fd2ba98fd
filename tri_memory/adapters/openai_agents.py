"""The OpenAI Agents SDK's `Session` over any session store: `Runner.run(agent, "Hello", session=OpenAISession(…))`.

    item                                    turn
    message of plain text                   its role and its text
    message with images by URL, several     its role, the item in an envelope
      parts, annotations, role developer
    function_call and other local calls     assistant, with tool_name, the item in an envelope
    function_call_output and the like       tool, with the tool_name of its call, the item in an envelope
    reasoning, hosted calls                 left out
    data in base64                          refused: ValueError before anything is written

Left out is what the server knows by an id and accepts only beside its neighbours, which a fold may cut away; the ids
of messages and function calls go for the same reason. What was said, and what tools were told and answered, stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from tri_memory.adapters.envelope import unwrap, wrap
from tri_memory.adapters.exchange import Exchange
from tri_memory.contracts import ChatTurn, Role, SessionStore, require_count, require_text, shown
from tri_memory.session.compression import head, window

MARK = "[openai item] "
LEFT_OUT = frozenset(
    {
        "reasoning",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
    }
)
_ID_NOT_NEEDED = frozenset({"message", "function_call", "custom_tool_call"})
_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}


class OpenAISession:
    """One session of a store as the SDK's `Session`, which is a Protocol: the SDK need not be installed.

    The store's summary turn comes out as a system message. Over a guarded store, an exchange that was read before its
    user was forgotten raises Forgotten and is not kept.
    """

    session_settings: Any = None  # the SDK's SessionSettings, of which `limit` is used

    def __init__(self, store: SessionStore, session_id: str) -> None:
        self.session_id = require_text("session_id", session_id)
        self.store = store
        self._exchange = Exchange(store, self.session_id)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """All items, oldest first, or the newest `limit`; the summary is among them where `limit` has room for more.

        A tool result whose call was folded away is left out, as the API would refuse it.
        """
        if limit is None:
            limit = getattr(self.session_settings, "limit", None)
        turns = await self._exchange.read()
        if limit is not None:
            turns = _newest(turns, require_count("limit", limit))
        return list(_with_their_calls(map(to_item, turns)))

    async def add_items(self, items: Sequence[Any]) -> None:
        """Append each item, in order; ValueError, before the first, for one that can't be kept."""
        names = {item["call_id"]: _tool_name(item) for item in items if _is_call(item)}
        answered = [item.get("call_id") for item in items if _is_output(item)]
        if any(call_id not in names for call_id in answered):
            earlier = map(to_item, await self.store.get_history(self.session_id))
            names = {item["call_id"]: _tool_name(item) for item in earlier if _is_call(item)} | names
        turns = [to_turn(item, names) for item in items]
        await self._exchange.write([turn for turn in turns if turn is not None])

    async def pop_item(self) -> Any:
        """NotImplementedError: a session store only appends. To take the last turn out, the session would have to be
        cleared and written again, and a crash or another writer in between would lose the conversation. The runner
        doesn't need it where a session holds the history: it pops only to retry a conversation that a server holds."""
        raise NotImplementedError(
            "a session store only appends, so the last item can't be taken back; "
            "append a correction, or call clear_session() and add_items(…) with what should stay"
        )

    async def clear_session(self) -> None:
        """Drop the session, its summary included."""
        await self.store.clear(self.session_id)


def to_turn(item: Any, names: Mapping[str, str]) -> ChatTurn | None:
    """The turn that keeps `item`, None for one that is left out. `names` says which tool a call id called."""
    if not isinstance(item, dict):
        raise ValueError(f"an item must be a dict, as the SDK makes them; got {shown(item)}")
    kind = _kind(item)
    if kind in LEFT_OUT:
        return None
    kept = {name: value for name, value in item.items() if not (name == "id" and kind in _ID_NOT_NEEDED)}
    if kind == "message":
        if item.get("role") not in _ROLES:
            raise ValueError(f"a message's role must be one of {', '.join(_ROLES)}; got {shown(item.get('role'))}")
        text = _plain_text(kept)
        return ChatTurn(cast(Role, _ROLES[item["role"]]), wrap(MARK, kept) if text is None else text)
    if _is_output(item):
        return ChatTurn("tool", wrap(MARK, kept), names.get(item.get("call_id", "")))
    return ChatTurn("assistant", wrap(MARK, kept), _tool_name(item) if _is_call(item) else None)


def to_item(turn: ChatTurn) -> dict[str, Any]:
    """The item that `turn` keeps. What another program wrote becomes a message; a tool's bare result, which has no
    call id, one of the assistant."""
    item = unwrap(MARK, turn.content)
    if item is not None and _may_stand_in(item, turn.role):
        return item
    if turn.role == "tool":
        return {"role": "assistant", "content": f"[result of {turn.tool_name or 'a tool'}] {turn.content}"}
    return {"role": turn.role, "content": turn.content}


def _newest(turns: Sequence[ChatTurn], limit: int) -> list[ChatTurn]:
    first = head(turns)
    if limit > first:
        return window(turns, limit - first)
    return list(turns[len(turns) - min(limit, len(turns)) :])


def _with_their_calls(items: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    called = set()
    for item in items:
        if _is_call(item):
            called.add(item["call_id"])
        if not _is_output(item) or item.get("call_id") in called:
            yield item


def _may_stand_in(item: dict[str, Any], role: str) -> bool:
    """Whether a turn of this role can hold it: nobody becomes somebody else by what he writes."""
    if _kind(item) == "message":
        return _ROLES.get(str(item.get("role"))) == role
    if not isinstance(item["type"], str):
        return False
    return role == ("tool" if _is_output(item) else "assistant")


def _plain_text(item: Mapping[str, Any]) -> str | None:
    """The text of a message that is nothing else; None for any other, and for text that looks like an envelope."""
    content = item.get("content")
    if item.keys() - {"type", "role", "content", "status"} or item.get("status") not in (None, "completed"):
        return None
    if isinstance(content, list) and len(content) == 1 and isinstance(content[0], dict):
        (part,) = content
        if part.get("type") not in ("input_text", "output_text"):
            return None
        if any(value for name, value in part.items() if name not in ("type", "text")):
            return None
        content = part.get("text")
    if item.get("role") == "developer" or not isinstance(content, str) or content.startswith(MARK):
        return None
    return content


def _kind(item: Any) -> str:
    return str((item.get("type") if isinstance(item, dict) else None) or "message")


def _is_call(item: Any) -> bool:
    return _kind(item).endswith("_call") and isinstance(item.get("call_id"), str)


def _is_output(item: Any) -> bool:
    return _kind(item).endswith("_output")


def _tool_name(item: Mapping[str, Any]) -> str:
    name = item.get("name")
    return name if isinstance(name, str) and name and not name.isspace() else _kind(item)
