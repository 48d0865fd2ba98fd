"""A WhatsApp chat or ChatGPT's conversations.json, as sessions of one user.

Two speakers only: the first to speak in WhatsApp is the user, the second the assistant. WhatsApp writes days as the
phone does, so a file in which every day fits both orders is refused rather than guessed. Times are taken as UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Literal

from tri_memory.contracts import ChatTurn, shown
from tri_memory.lab.chat_log import Speakers
from tri_memory.lab.datasets import Session, parse_turn
from tri_memory.lab.fields import a_list, an_object, at, each

Order = Literal["day first", "month first"]
_DAY = r"(\d{1,2})[./-](\d{1,2})[./-](\d{4}|\d\d),? (\d{1,2}):(\d\d)(?::\d\d)?\s?([AaPp]\.?[Mm]\.?)?"
WHATSAPP = re.compile(rf"(?:\[{_DAY}\]|{_DAY} -) (.*)")
_SPOKEN = re.compile(r"([^:]{1,40}): (.*)", re.DOTALL)
_MARKS = "\u200e\u200f\ufeff"  # iOS begins what nobody typed with the first of them, Android puts media in <…>
_NO_TURN = re.compile(r"\u200e.*|<[^<>]+>|(image|video|audio|sticker|GIF|document) omitted", re.DOTALL)


def is_whatsapp(content: str) -> bool:
    return bool(WHATSAPP.match(content.lstrip(f"{_MARKS}\r\n ").replace("\u202f", " ")))


def parse_whatsapp(chat: str, user_id: str, order: Order | None = None) -> list[Session]:
    """A session a day. Lines without a date belong to the message before; system lines and left-out media are skipped.

    Raises ValueError where the order of day and month can't be told, and for a third speaker.
    """
    messages: list[tuple[list[str], str]] = []
    lines: list[int] = []  # where each begins
    for number, line in enumerate(chat.split("\n"), start=1):
        line = line.lstrip(_MARKS).rstrip("\r").replace("\u202f", " ")
        if found := WHATSAPP.fullmatch(line):
            values = [one or "" for one in found.groups()]
            messages.append(((values[:6] if values[0] else values[6:12]), values[12]))
            lines.append(number)
        elif messages:
            messages[-1] = (messages[-1][0], f"{messages[-1][1]}\n{line}")
        elif line.strip():
            raise ValueError(f"line {number}: a WhatsApp chat begins with a date; got {shown(line)}")
    order = order or _order([when for when, _ in messages])
    speakers, days = Speakers(), dict[str, tuple[datetime, list[ChatTurn]]]()
    for number, (when, said) in zip(lines, messages, strict=True):
        spoken = _SPOKEN.fullmatch(said.strip())
        if spoken and not _NO_TURN.fullmatch(spoken[2].strip()):
            with at(f"line {number}"):
                start = _time(when, order)
            _, turns = days.setdefault(f"{start:%Y-%m-%d}", (start, []))
            turns.append(parse_turn({"role": speakers.role(spoken[1]), "content": spoken[2].strip()}))
    return _sessions(days.values(), user_id)


def _order(days: list[list[str]]) -> Order:
    first, second = (max((int(day[i]) for day in days), default=0) for i in (0, 1))
    if (first > 12) == (second > 12):
        raise ValueError(
            "each date can be read with the day or the month first; say which: "
            'load_whatsapp(path, order="day first") or order="month first"'
        )
    return "day first" if first > 12 else "month first"


def _time(when: list[str], order: Order) -> datetime:
    first, second, year, hour, minute = (int(one) for one in when[:5])
    day, month = (first, second) if order == "day first" else (second, first)
    if when[5]:
        hour = hour % 12 + 12 * (when[5][0] in "Pp")
    return datetime(year + 2000 * (year < 100), month, day, hour, minute, tzinfo=UTC)


def parse_chatgpt(data: Any, user_id: str) -> list[Session]:
    """A session a conversation, its current branch only; what tools and the system said, and pictures, are left out."""
    spoken = each("conversation", a_list("the file", data), _conversation)
    return _sessions(sorted((one for one in spoken if one[1]), key=lambda one: one[0]), user_id)


def _conversation(given: Any) -> tuple[datetime, list[ChatTurn]]:
    row = an_object("a conversation", given)
    nodes, node, turns = an_object("mapping", row.get("mapping")), row.get("current_node"), list[ChatTurn]()
    created = row.get("create_time")
    start = _since_1970(created)
    if not isinstance(node, str) or node not in nodes:
        raise ValueError(f"current_node {shown(node)} is not in its mapping")
    with at(str(row.get("title"))):
        while node is not None:
            one = nodes.pop(node, None)  # so that a loop ends as a missing node
            if one is None:
                raise ValueError(f"the node {shown(node)} is missing, or its own ancestor")
            message = an_object("message", an_object("a node", one).get("message") or {})
            role = an_object("author", message.get("author") or {}).get("role")
            parts = a_list("parts", an_object("content", message.get("content") or {}).get("parts") or [])
            text = "\n".join(part for part in parts if isinstance(part, str)).strip()
            if role in ("user", "assistant") and text:
                turns.append(ChatTurn(role, text))
            node = one.get("parent")
    return start, turns[::-1]


def _since_1970(created: Any) -> datetime:
    try:
        return datetime.fromtimestamp(created, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        raise ValueError(f"create_time must be seconds since 1970; got {shown(created)}") from None


def _sessions(days: Iterable[tuple[datetime, list[ChatTurn]]], user_id: str) -> list[Session]:
    found = [
        Session(f"{user_id}-s{i}", user_id, start, "", tuple(turns)) for i, (start, turns) in enumerate(days, start=1)
    ]
    if not found:
        raise ValueError("there is no turn in the file")
    return found
