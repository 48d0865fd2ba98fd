"""Conversations from a file of yours: LoCoMo, LongMemEval, MemoryBank, plain JSON, a chat, WhatsApp, ChatGPT.

Every `load_…` takes a path and returns a `Dataset`; `load_any` recognises the format. A missing file is a
FileNotFoundError naming the path, a broken one a ValueError naming the file and the line or item. The kit ships none of
these files; mind their licences. `summary` is "" where a file has none; how each format is read: `published.py`,
`chat_log.py`, `exports.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tri_memory.contracts import shown
from tri_memory.lab.assemble import assemble, is_chinese
from tri_memory.lab.chat_log import parse_chat
from tri_memory.lab.datasets import Dataset, Session, parse_question, parse_session
from tri_memory.lab.exports import Order, is_whatsapp, parse_chatgpt, parse_whatsapp
from tri_memory.lab.fields import a_list, an_object, at, each, from_json, items, read_text, text
from tri_memory.lab.published import parse_locomo, parse_longmemeval, parse_memorybank

# The key that tells each list of objects from the others.
LISTS = {"conversation": parse_locomo, "haystack_sessions": parse_longmemeval, "days": parse_memorybank}


def load_locomo(path: str | Path) -> Dataset:
    """LoCoMo: `speaker_a` is the user, `speaker_b` the assistant. Each turn begins with its speaker's name, since the
    questions call them by name; the caption of a picture stands behind the text."""
    return _load(path, lambda content, _: parse_locomo(from_json(content)))


def load_longmemeval(path: str | Path) -> Dataset:
    """LongMemEval: each question is a user with a history of its own, and has `asked_at`."""
    return _load(path, lambda content, _: parse_longmemeval(from_json(content)))


def load_memorybank(path: str | Path) -> Dataset:
    """MemoryBank in days: `[{"user", "days": [{"date", "turns"}], "questions": [{…, "gold_dates"}]}]`."""
    return _load(path, lambda content, _: parse_memorybank(from_json(content)))


def load_json(path: str | Path) -> Dataset:
    """`{"language": …, "sessions": […], "questions": […]}` with the fields of `data/README.md`, `kind` any text.

    May be absent: `language` ("other"), `questions`, `summary`, `answer` and the gold.
    """
    return _load(path, lambda content, _: parse_plain(from_json(content)))


def load_chat(path: str | Path) -> Dataset:
    """An exported chat, one turn a line; the user is called as the file is, without its ending. Its language is "zh"
    where most letters are Han, else "other"."""
    return _load(path, _chat)


def load_whatsapp(path: str | Path, order: Order | None = None) -> Dataset:
    """A chat of two as WhatsApp exports it; `order` is "day first" or "month first", needed where no day tells."""
    if order not in (None, "day first", "month first"):
        raise ValueError(f'order must be "day first" or "month first"; got {shown(order)}')
    return _load(path, lambda content, user_id: _whatsapp(content, user_id, order))


def load_chatgpt(path: str | Path) -> Dataset:
    """ChatGPT's conversations.json, of each conversation the branch that is shown."""
    return _load(path, lambda content, user_id: _assembled(parse_chatgpt(from_json(content), user_id)))


def load_any(path: str | Path) -> Dataset:
    """Whichever of the seven formats the file is in."""
    return _load(path, parse_any)


def _load(path: str | Path, parse: Callable[[str, str], Dataset]) -> Dataset:
    path = Path(path)
    with at(path.name):
        return parse(read_text(path), path.stem)


def _chat(content: str, user_id: str) -> Dataset:
    if is_whatsapp(content):
        return _whatsapp(content, user_id, None)
    return _assembled(parse_chat(content, user_id))


def _whatsapp(content: str, user_id: str, order: Order | None) -> Dataset:
    return _assembled(parse_whatsapp(content, user_id, order))


def _assembled(sessions: list[Session]) -> Dataset:
    return assemble("zh" if is_chinese(sessions) else "other", sessions, [])


def parse_plain(data: Any) -> Dataset:
    """See `load_json`; `data` is the parsed JSON."""
    row = an_object("the file", data)
    sessions = each("session", items(row, "sessions"), lambda given: parse_session({"summary": ""} | given))
    nothing = {"answer": "", "gold_sessions": [], "gold_turns": [], "facts": []}
    written = a_list("questions", row.get("questions", []))
    questions = each("question", written, lambda given: parse_question(nothing | given))
    return assemble(text({"language": "other"} | row, "language"), sessions, questions)


def parse_any(content: str, user_id: str) -> Dataset:
    """The text of a file in any of the seven formats; `user_id` is the user's name if it is a chat."""
    try:
        data = from_json(content)
    except ValueError as no_json:
        try:
            return _chat(content, user_id)
        except ValueError as no_chat:
            if is_whatsapp(content):
                raise
            raise ValueError(f"neither JSON ({no_json}) nor a chat with one turn a line ({no_chat})") from no_chat
    if isinstance(data, list) and data and isinstance(data[0], dict):
        for key, parse in LISTS.items():
            if key in data[0]:
                return parse(data)
        if "mapping" in data[0]:
            return _assembled(parse_chatgpt(data, user_id))
    if isinstance(data, dict) and "sessions" in data:
        return parse_plain(data)
    if isinstance(data, dict) and {"role", "content"} <= data.keys():  # a chat of one line
        return _chat(content, user_id)
    raise ValueError(
        "an unknown format; looked for a list of objects with conversation (LoCoMo), haystack_sessions (LongMemEval), "
        "days (MemoryBank) or mapping (ChatGPT), for an object with sessions (plain JSON), for one "
        f"turn a line (exported chat) and for WhatsApp; got {shown(data)}"
    )
