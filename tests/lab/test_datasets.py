"""The hand-written conversations: complete, consistent, and a broken file says where."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta

import pytest

from tri_memory.lab import datasets
from tri_memory.lab.datasets import KINDS, Dataset, load, problems


@pytest.mark.parametrize("language", datasets.LANGUAGES)
def test_the_data_is_complete_and_every_gold_exists(language):
    dataset = load(language)
    assert problems(dataset) == []
    assert len(dataset.users()) == 12
    for user in dataset.users():
        sessions = dataset.of(user)
        assert [s.session_id for s in sessions] == [f"{user}-s{i}" for i in range(1, 6)]
        assert sessions[-1].started_at - sessions[0].started_at >= timedelta(days=60)
    kinds = Counter(question.kind for question in dataset.questions)
    assert len(dataset.questions) >= 100
    assert all(kinds[kind] >= 15 for kind in KINDS)
    assert {question.user_id for question in dataset.questions} == set(dataset.users())


def test_the_two_languages_are_not_translations_of_each_other():
    assert (
        sum("\u4e00" <= letter <= "\u9fff" for s in load("en").sessions for t in s.turns for letter in t.content) == 0
    )
    zh = "".join(turn.content for session in load("zh").sessions for turn in session.turns)
    assert sum("\u4e00" <= letter <= "\u9fff" for letter in zh) > len(zh) / 2


def test_an_unknown_language_is_refused_by_name():
    with pytest.raises(ValueError, match="fr"):
        load("fr")


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of one trade's data that a test may break; `broken(line, text)` replaces a line and loads."""
    source = datasets.data_folder() / "en"
    folder = tmp_path / "en"
    folder.mkdir()
    for name in ("shop.sessions.jsonl", "shop.questions.jsonl"):
        (folder / name).write_bytes((source / name).read_bytes())
    monkeypatch.setattr(datasets, "data_folder", lambda: tmp_path)
    monkeypatch.setattr(datasets, "TRADES", ("shop",))

    def broken(name: str, number: int, change) -> Dataset:
        lines = (folder / name).read_bytes().split(b"\n")
        changed = change(lines[number - 1].decode())
        lines[number - 1] = changed if isinstance(changed, bytes) else changed.encode()
        (folder / name).write_bytes(b"\n".join(lines))
        return load("en")

    return broken


def with_field(field: str, value):
    def change(line: str) -> str:
        return json.dumps(json.loads(line) | {field: value})

    return change


@pytest.mark.parametrize(
    ("name", "change", "named"),
    [
        ("shop.sessions.jsonl", lambda line: line[:50], "shop.sessions.jsonl, line 3"),
        ("shop.sessions.jsonl", lambda line: "[]", "line 3"),
        ("shop.sessions.jsonl", lambda line: "{}", "line 3: the field 'started_at' is missing"),
        ("shop.sessions.jsonl", with_field("started_at", "2026-01-05T10:00"), "line 3: started_at needs an offset"),
        ("shop.sessions.jsonl", with_field("turns", [{"role": "robot", "content": "x"}]), "line 3: role must be"),
        ("shop.sessions.jsonl", with_field("turns", 7), "line 3"),
        ("shop.questions.jsonl", with_field("kind", "riddle"), "shop.questions.jsonl, line 3: kind must be"),
        ("shop.questions.jsonl", with_field("gold_turns", [["s"]]), "line 3"),
    ],
)
def test_a_broken_line_is_named_with_its_file_and_number(copied, name, change, named):
    with pytest.raises(ValueError, match=named):
        copied(name, 3, change)


def test_bytes_that_are_not_utf8_are_named_with_their_line(copied):
    with pytest.raises(ValueError, match=r"shop\.sessions\.jsonl, line 3: byte 15 is not UTF-8"):
        copied("shop.sessions.jsonl", 3, lambda line: b'{"session_id": \xb2\xbb}')


@pytest.mark.parametrize("depth", range(700, 1000, 20))
def test_a_deeply_nested_field_is_a_value_error_however_deep(copied, depth):
    with pytest.raises(ValueError, match="line 3"):
        copied("shop.questions.jsonl", 3, lambda line: '{"kind": ' + "[" * depth + "]" * depth + "}")


def test_json_nested_too_deeply_is_named_with_its_line(copied):
    with pytest.raises(ValueError, match=r"shop\.questions\.jsonl, line 4: the JSON is nested too deeply"):
        copied("shop.questions.jsonl", 4, lambda line: "[" * 200_000)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("user_id", 5),
        ("session_id", None),
        ("session_id", " "),
        ("started_at", 5),
        ("started_at", "yesterday"),
        ("summary", 5),
        ("summary", "half \ud83d"),
        ("turns", []),
        ("turns", 7),
        ("turns", ["hello"]),
        ("turns", [{"role": ["user"], "content": "x"}]),
        ("turns", [{"role": "user", "content": None}]),
        ("turns", [{"role": "tool", "content": "x", "toolName": 5}]),
    ],
)
def test_a_session_field_of_the_wrong_type_is_named_with_its_line(copied, field, value):
    with pytest.raises(ValueError, match=r"^shop\.sessions\.jsonl, line 2: ") as caught:
        copied("shop.sessions.jsonl", 2, with_field(field, value))
    if field != "turns":  # a fault inside a turn is named by the turn's own field
        assert field in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("question_id", []),
        ("user_id", 5),
        ("kind", ["time"]),
        ("question", ""),
        ("answer", 5),
        ("facts", "abc"),
        ("facts", [5]),
        ("gold_sessions", [5]),
        ("gold_sessions", "s1"),
        ("outdated", [5]),
        ("outdated", None),
        ("gold_turns", 7),
        ("gold_turns", ["ab"]),
        ("gold_turns", [["s", "0"]]),
        ("gold_turns", [["s", True]]),
        ("gold_turns", [["s", -1]]),
        ("gold_turns", [[5, 0]]),
        ("gold_turns", [["s", 0, 1]]),
        ("asked_at", "2026-01-05"),
    ],
)
def test_a_question_field_of_the_wrong_type_is_named_with_its_line(copied, field, value):
    with pytest.raises(ValueError, match=rf"^shop\.questions\.jsonl, line 2: .*{field}"):
        copied("shop.questions.jsonl", 2, with_field(field, value))


@pytest.mark.parametrize(
    ("name", "change", "found"),
    [
        ("shop.questions.jsonl", with_field("facts", ["never said"]), "the fact 'never said' is not in the gold turns"),
        ("shop.questions.jsonl", with_field("gold_turns", [["en-shop-01-s9", 0]]), "gold that does not exist"),
        ("shop.sessions.jsonl", with_field("summary", "word " * 101), "101 words"),
        ("shop.sessions.jsonl", with_field("session_id", "en-shop-01-s1"), "appears 2 times"),
        ("shop.sessions.jsonl", with_field("turns", [{"role": "assistant", "content": " "}]), "a blank turn"),
    ],
)
def test_data_that_reads_well_but_is_wrong_is_found(copied, name, change, found):
    assert any(found in problem for problem in problems(copied(name, 2, change)))
