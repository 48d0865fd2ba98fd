"""Every format is read into the same form, and a broken file says where it is broken. All files are written here."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime

import pytest

from tests.lab.samples import LOCOMO, LONGMEMEVAL, MEMORYBANK, PLAIN
from tri_memory import ChatTurn
from tri_memory.lab.loaders import load_any, load_chat, load_json, load_locomo, load_longmemeval, load_memorybank


@pytest.fixture
def written(tmp_path):
    def write(content, name="mine.json"):
        path = tmp_path / name
        if not isinstance(content, bytes):
            content = (content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)).encode()
        path.write_bytes(content)
        return path

    return write


def test_locomo_sessions_are_in_order_and_hold_names_captions_and_times(written):
    dataset = load_locomo(written(LOCOMO))
    assert [s.session_id for s in dataset.of("c1")] == ["c1-s2", "c1-s10"]
    first, second = dataset.sessions
    assert first.started_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert second.started_at == datetime(2023, 6, 9, 0, 5, tzinfo=UTC)
    assert first.turns == (
        ChatTurn("user", "Ann: Look [picture: a red kite]"),
        ChatTurn("assistant", "Bo: Nice kite."),
    )
    assert (first.summary, second.summary) == ("They flew a kite.", "")


def test_locomo_evidence_is_found_in_malformed_ids_and_dropped_where_no_turn_is_meant(written):
    kite, boats, car = load_locomo(written(LOCOMO)).questions
    assert (kite.kind, kite.gold_turns) == ("multi_hop", (("c1-s2", 0), ("c1-s2", 1)))
    assert kite.gold_sessions == ("c1-s2",)
    assert (boats.kind, boats.answer, boats.gold_turns) == ("single_hop", "1", (("c1-s10", 0),))
    assert (car.kind, car.answer, car.gold_sessions, car.gold_turns) == ("unanswerable", "", (), ())


def test_longmemeval_gives_each_question_its_own_history_by_time_with_gold(written):
    dataset = load_longmemeval(written(LONGMEMEVAL))
    assert [s.session_id for s in dataset.of("q7")] == ["q7-s3", "q7-s1"]
    (question,) = dataset.questions
    assert (question.kind, question.answer) == ("changed_fact", "12")
    assert (question.gold_sessions, question.gold_turns) == (("q7-s1",), (("q7-s1", 1),))
    assert question.asked_at == datetime(2023, 5, 30, 23, 40, tzinfo=UTC)


def test_a_longmemeval_abstention_has_no_gold(written):
    (question,) = load_longmemeval(written([LONGMEMEVAL[0] | {"question_id": "q7_abs"}])).questions
    assert (question.kind, question.gold_sessions, question.gold_turns) == ("unanswerable", (), ())


def test_memorybank_days_are_sessions_at_nine_and_gold_days_are_gold_sessions(written):
    dataset = load_memorybank(written(MEMORYBANK))
    assert dataset.language == "zh"
    assert [(s.session_id, s.started_at) for s in dataset.sessions] == [
        ("林-s2", datetime(2023, 5, 1, 9, tzinfo=UTC)),
        ("林-s1", datetime(2023, 5, 2, 9, tzinfo=UTC)),
    ]
    assert (dataset.questions[0].kind, dataset.questions[0].gold_sessions) == ("fact", ("林-s2",))


def test_plain_json_needs_only_sessions_and_keeps_any_kind(written):
    dataset = load_json(written(PLAIN))
    assert dataset.sessions[0].turns == (ChatTurn("assistant", "look", "search"),)
    assert (dataset.questions[0].kind, dataset.questions[0].gold_turns) == ("riddle", (("a", 0),))
    bare = load_json(written({"sessions": PLAIN["sessions"]}))
    assert (bare.language, bare.questions, bare.sessions) == ("other", (), dataset.sessions)


@pytest.mark.parametrize(
    "chat",
    [
        "Ann: hello: there\n\n  Bo: hi\r\nAnn: bye",
        "\ufeffAnn> hello: there\nBo> hi\nAnn> bye",
        "用户：hello: there\n助手：hi\n用户: bye",
        "User: hello: there\nASSISTANT: hi\nuser: bye",
        '{"role": "Ann", "content": "hello: there"}\n{"role": "Bo", "content": "hi"}\n{"role":"Ann","content":"bye"}',
    ],
)
def test_a_chat_is_one_turn_a_line_in_any_of_its_shapes(written, chat):
    path = written(chat, "mum.txt")
    dataset = load_chat(path)
    (session,) = dataset.sessions
    assert (session.session_id, session.user_id, session.started_at.tzinfo) == ("mum-s1", "mum", UTC)
    assert [(t.role, t.content) for t in session.turns] == [
        ("user", "hello: there"),
        ("assistant", "hi"),
        ("user", "bye"),
    ]
    assert load_any(path) == dataset


def test_a_role_keeps_its_meaning_even_where_the_assistant_speaks_first(written):
    (session,) = load_chat(written("assistant: hi\nuser: hello\nsystem: be kind")).sessions
    assert [t.role for t in session.turns] == ["assistant", "user", "system"]


def test_a_line_with_a_date_begins_a_session_at_nine_or_at_its_own_time(written):
    first, second = load_chat(written("2026-01-05\nAnn: a\n2026-01-06 18:30\nBo: b\nAnn: c\n2026-01-07")).sessions
    assert (first.started_at, len(first.turns)) == (datetime(2026, 1, 5, 9, tzinfo=UTC), 1)
    assert (second.started_at, second.turns[0].role) == (datetime(2026, 1, 6, 18, 30, tzinfo=UTC), "assistant")


@pytest.mark.parametrize(
    ("content", "load"),
    [
        (LOCOMO, load_locomo),
        (LONGMEMEVAL, load_longmemeval),
        (MEMORYBANK, load_memorybank),
        (PLAIN, load_json),
        ('{"role": "user", "content": "one line"}', load_chat),
    ],
)
def test_any_format_is_recognised(written, content, load):
    path = written(content)
    assert load_any(path) == load(path)


@pytest.mark.parametrize("content", ["{}", "[]", "[1]", "7", '[{"role": "user"}]'])
def test_an_unknown_format_is_told_what_was_looked_for(written, content):
    with pytest.raises(ValueError, match=r"mine\.json: .*LoCoMo.*LongMemEval.*MemoryBank.*plain JSON.*exported chat"):
        load_any(written(content))


def test_text_that_is_neither_json_nor_a_chat_says_why_of_both(written):
    with pytest.raises(ValueError, match=r"mine\.json: neither JSON \(.*\) nor a chat .*line 2"):
        load_any(written("Ann: hi\nand so on"))


@pytest.mark.parametrize("load", [load_any, load_chat, load_json, load_locomo, load_longmemeval, load_memorybank])
def test_a_missing_file_is_named(tmp_path, load):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.json"):
        load(tmp_path / "nowhere.json")


@pytest.mark.parametrize("load", [load_any, load_chat, load_json, load_locomo, load_longmemeval, load_memorybank])
@pytest.mark.parametrize("content", [b"a: \xff", b"", b"[" * 100_000, b"[5]", b"{}", b"null", b"\x00"])
def test_a_file_of_rubbish_is_a_value_error_with_its_name(written, load, content):
    with pytest.raises(ValueError, match=r"mine\.json: "):
        load(written(content))


def changed(data, path, value):
    """A copy of `data` where the place at `path` holds `value`."""
    data = copy.deepcopy(data)
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("load", "content", "named"),
    [
        (load_locomo, changed(LOCOMO, [0, "sample_id"], 5), "item 1: sample_id"),
        (load_locomo, changed(LOCOMO, [0, "conversation", "session_2"], 7), "item 1: session_2"),
        (load_locomo, changed(LOCOMO, [0, "conversation", "session_2_date_time"], "noon"), "session_2: .*noon"),
        (load_locomo, changed(LOCOMO, [0, "conversation", "speaker_a"], "Cy"), "session_2: speaker .*Ann"),
        (load_locomo, changed(LOCOMO, [0, "qa", 1, "category"], 9), "item 1: question 2: category"),
        (load_locomo, changed(LOCOMO, [0, "qa", 1, "category"], [1]), "item 1: question 2: category"),
        (load_locomo, changed(LOCOMO, [0, "qa", 0, "evidence"], "D2:1"), "question 1: evidence"),
        (load_locomo, LOCOMO * 2, "c1-s2.* more than once"),
        (load_longmemeval, changed(LONGMEMEVAL, [0, "haystack_dates"], []), "item 1: 3 session ids, 0 dates"),
        (load_longmemeval, changed(LONGMEMEVAL, [0, "haystack_dates", 2], "soon"), "haystack session 3: .*soon"),
        (load_longmemeval, changed(LONGMEMEVAL, [0, "haystack_sessions", 2, 0], "x"), "session 3: turn 1"),
        (load_longmemeval, changed(LONGMEMEVAL, [0, "answer_session_ids"], ["gone"]), "item 1: .*gone"),
        (load_longmemeval, changed(LONGMEMEVAL, [0, "question_type"], "riddle"), "item 1: question_type"),
        (load_longmemeval, changed(LONGMEMEVAL, [0, "answer"], None), "item 1: answer"),
        (load_memorybank, changed(MEMORYBANK, [0, "days", 1, "date"], "May"), "item 1: day 2: .*May"),
        (load_memorybank, changed(MEMORYBANK, [0, "days", 1, "turns"], 7), "item 1: day 2: turns"),
        (load_memorybank, changed(MEMORYBANK, [0, "questions", 0, "gold_dates"], ["2020-01-01"]), "question 1: gold"),
        (load_json, changed(PLAIN, ["sessions", 0, "turns", 0, "role"], "robot"), "session 1: role"),
        (load_json, changed(PLAIN, ["sessions", 0, "started_at"], "2026-02-01"), "session 1: started_at"),
        (load_json, changed(PLAIN, ["questions", 0, "gold_turns"], [["a", 1]]), r"question q: gold a\[1\]"),
        (load_json, changed(PLAIN, ["questions", 0, "gold_sessions"], ["b"]), r"question q: gold b"),
        (load_json, PLAIN | {"questions": 7}, "questions must be a list"),
        (load_chat, "Ann: a\nBo: b\nCy: c", "line 3: a third speaker 'Cy' after Ann and Bo"),
        (load_chat, "Ann: a\nhttps://example.org", "line 2: a turn is"),
        (load_chat, 'Ann: a\n{"role": "Bo"}', "line 2: the field 'content' is missing"),
        (load_chat, 'Ann: a\n{"role": 5, "content": "x"}', "line 2: role"),
        (load_chat, "Ann: a\n2026-13-01", "line 2: .*month"),
        (load_chat, b"Ann: a\nBo: \xe4\xbd", "line 2: not UTF-8"),
        (load_chat, "2026-01-05\n\n", "there is no turn"),
    ],
)
def test_a_broken_place_is_named_with_its_file(written, load, content, named):
    with pytest.raises(ValueError, match=rf"^mine\.json: .*{named}"):
        load(written(content))
