"""WhatsApp and ChatGPT exports are read, and what can't be told from them is asked for."""

from __future__ import annotations

import json

import pytest

from tri_memory import ChatTurn
from tri_memory.lab.loaders import load_any, load_chatgpt, load_whatsapp

BRACKETS = """\u200e[30.11.25, 23:59:00] Ann: \u200eMessages and calls are end-to-end encrypted.
[01.12.25, 10:00:00] Ann: The tap drips
and the cellar is wet: very
[01.12.25, 10:01:00] Bo: I'll send Ferreira
\u200e[01.12.25, 10:02:00] Bo: \u200eimage omitted
"""
DASHES = """12/31/25, 10:00\u202fPM - Messages are encrypted
12/31/25, 10:01\u202fPM - Ann: The tap drips
12/31/25, 10:02\u202fPM - Bo: <Media omitted>
1/1/26, 12:03\u202fAM - Bo: Happy new year
"""


@pytest.fixture
def written(tmp_path):
    def write(content, name="ann.txt"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return write


def test_a_whatsapp_message_of_two_lines_is_one_turn_and_media_are_skipped(written):
    (only,) = load_any(written(BRACKETS)).sessions
    assert f"{only.started_at:%Y-%m-%d %H:%M}" == "2025-12-01 10:00"
    assert only.turns == (
        ChatTurn("user", "The tap drips\nand the cellar is wet: very"),
        ChatTurn("assistant", "I'll send Ferreira"),
    )


def test_a_whatsapp_chat_with_the_month_first_skips_system_lines(written):
    first, second = load_any(written(DASHES)).sessions
    assert (f"{first.started_at:%m-%d %H:%M}", first.turns) == ("12-31 22:01", (ChatTurn("user", "The tap drips"),))
    assert f"{second.started_at:%Y-%m-%d %H:%M}" == "2026-01-01 00:03"


@pytest.mark.parametrize(("order", "day"), [("day first", "2026-02-01"), ("month first", "2026-01-02")])
def test_dates_that_fit_both_orders_are_asked_for_and_not_guessed(written, order, day):
    path = written("1/2/26, 10:00 - Ann: Hello\n")
    with pytest.raises(ValueError, match=r'^ann.txt: each date can be read .*order="day first"'):
        load_any(path)
    assert f"{load_whatsapp(path, order).sessions[0].started_at:%Y-%m-%d}" == day


@pytest.mark.parametrize(
    ("content", "order", "said"),
    [
        ("31/1/26, 10:00 - A: a\n31/1/26, 10:01 - B: b\n31/1/26, 10:02 - C: c", None, "a third speaker 'C'"),
        ("31/1/26, 10:00 - A: <Media omitted>", None, "there is no turn"),
        ("31/1/26, 10:00 - A: a", "month first", "month must be in"),
        ("31/1/26, 10:00 - A: a", "backwards", "order must be"),
    ],
)
def test_what_is_wrong_with_a_whatsapp_chat_is_named(written, content, order, said):
    with pytest.raises(ValueError, match=said):
        load_whatsapp(written(content), order)


def _node(parent, role, *parts):
    return {"parent": parent, "message": {"author": {"role": role}, "content": {"parts": list(parts)}}}


def _talk(**changed):
    mapping = {
        "root": {"parent": None, "message": None},
        "a": _node("root", "user", "Who mends taps?"),
        "old": _node("a", "assistant", "Nobody"),
        "b": _node("a", "tool", "searching"),
        "c": _node("b", "assistant", "Ferreira", {"image": 1}),
    }
    return {"title": "Taps", "create_time": 1772359200.0, "mapping": mapping, "current_node": "c"} | changed


def test_of_a_chatgpt_conversation_the_current_branch_is_read(written):
    path = written([_talk(), _talk(create_time=1772272800.0)], "conversations.json")
    first, second = load_any(path).sessions
    assert first.turns == (ChatTurn("user", "Who mends taps?"), ChatTurn("assistant", "Ferreira"))
    assert first.started_at < second.started_at


@pytest.mark.parametrize(
    ("talk", "said"),
    [
        (_talk(current_node="gone"), "conversation 1: current_node 'gone' is not in its mapping"),
        (_talk(mapping={"c": _node("c", "user", "x")}), "conversation 1: .*'c' is missing, or its own ancestor"),
        (_talk(create_time=None), "conversation 1: create_time must be seconds"),
        (_talk(mapping=None), "conversation 1: mapping must be"),
        (_talk(create_time=1e18), "conversation 1: create_time must be seconds"),
        (_talk(current_node=["c"]), r"conversation 1: current_node \['c'\] is not in"),
        (_talk(mapping={"c": ["x"]}), "conversation 1: Taps: a node must be an object"),
        (_talk(mapping={"c": {"message": "x"}}), "conversation 1: Taps: message must be an object"),
        (_talk(mapping={"c": {"message": {"content": "oops", "author": {}}}}), "Taps: content must be an object"),
        (_talk(mapping={"c": {"message": {"content": {"parts": "abc"}}}}), "Taps: parts must be a list"),
        (_talk(mapping={"c": _node(None, "user")}), "there is no turn"),
    ],
)
def test_what_is_wrong_with_conversations_json_is_named(written, talk, said):
    with pytest.raises(ValueError, match=rf"^conversations.json: .*{said}"):
        load_chatgpt(written([talk], "conversations.json"))


def test_an_impossible_day_is_named_by_its_line(written):
    chat = "[30/01/2026, 09:12:33] Ann: hello\n[31/02/2026, 09:12:33] Ben: hi\n"
    with pytest.raises(ValueError, match=r"^chat.txt: line 2: day is out of range"):
        load_any(written(chat, "chat.txt"))


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ValueError, match="is a folder; name a file in it"):
        load_any(tmp_path)
