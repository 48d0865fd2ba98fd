"""Chapter 06: hand-written keys fit the data, the panel cuts as the store does, and the lost update is no accident."""

from __future__ import annotations

import subprocess
import threading
from functools import partial

import psycopg
import pytest
import regex

from tri_memory import InMemoryPreferenceStore, PostgresPreferenceStore
from tri_memory.agent.prompt import SYSTEM, assemble, preferences_text
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch06 import alike, asking, blob, cutting, fences, plots, rails, rows, told
from tri_memory.lab.chapters.ch06.keys import CHINESE, ENGLISH
from tri_memory.lab.plots import png
from tri_memory.preference.rules import clean_key, cut


@pytest.fixture(scope="module", params=["en", "zh"])
def data(request):
    return datasets.load(request.param)


def question_of(data, question_id):
    return next(question for question in data.questions if question.question_id == question_id)


@pytest.mark.parametrize(("language", "keys"), [("en", ENGLISH), ("zh", CHINESE)])
def test_each_question_about_a_preference_or_a_change_has_a_key_and_no_other_has(language, keys):
    questions = datasets.load(language).questions
    assert set(keys) == {q.question_id for q in questions if q.kind in ("preference", "changed_fact")}


def test_nobody_has_the_same_key_twice_and_every_key_is_stored_as_it_is_written(data):
    for user in data.users():
        keys = [told.KEYS[question.question_id] for question in told.asked_of(data, user)]
        assert len(set(keys)) == len(keys)
        assert [clean_key(key) for key in keys] == keys


def test_the_value_that_holds_comes_last_and_each_changed_fact_had_another_before(data):
    for question in (q for q in data.questions if q.question_id in told.KEYS):
        *older, newest = told.about(data, question)
        assert bool(older) == (question.kind == "changed_fact")
        assert all(pair.visit <= newest.visit for pair in older)
        assert newest.value not in [pair.value for pair in older]


def test_a_row_a_key_keeps_the_newest_value_and_a_list_of_notes_keeps_all():
    english = datasets.load("en")
    assert asking.a_row_a_key(english, "en-shop-01", 5).preferences["shoe size"] == "41"
    assert asking.a_row_a_key(english, "en-shop-01", 4).preferences["shoe size"] == "40"
    sizes = [n.summary for n in asking.notes(english, "en-shop-01", 5).notes if n.session_id == "shoe size"]
    assert sizes == ["shoe size: 39", "shoe size: 40", "shoe size: 41"]
    assert not asking.a_row_a_key(english, "en-shop-01", 0).preferences


def test_an_answer_that_names_an_old_value_is_outdated_even_where_the_new_one_stands_beside_it():
    english = datasets.load("en")
    size = partial(asking.verdict, english, question_of(english, "en-shop-q12"))
    assert (size("You take 41."), size("41, it was 39"), size("39"), size("I don't know")) == (
        "right",
        "outdated",
        "outdated",
        "not known",
    )


async def test_notes_and_keys_hold_the_same_newest_facts_and_only_notes_give_outdated_answers(data):
    table = await asking.ask_everybody([data])
    by_memory = {name: its.verdict.value_counts() for name, its in table.groupby("memory")}
    assert set(by_memory) == set(asking.MEMORIES)
    assert "right" not in by_memory["window only"]
    assert "outdated" not in by_memory["keys, by hand"]
    assert by_memory["list of notes"]["outdated"] > 10
    assert by_memory["keys, by hand"]["right"] > 2 * by_memory["list of notes"]["right"]
    found = asking.shares(table, "right")
    assert ((found.low <= found.share) & (found.share <= found.high)).all()
    assert png(plots.plot_answers(table))[:4] == b"\x89PNG"


def test_the_rules_of_the_kit_call_one_size_by_two_names_in_english_as_the_notebook_says():
    named = [dict(asking.notice(said)) for said in ("I wear size 41.", "My shoe size is 42.")]
    assert named == [{"size": "41"}, {"shoe size": "42"}]
    assert asking.notice("我穿41码。")[0][0] == asking.notice("我的鞋码是42码。")[0][0]


@pytest.mark.parametrize("name", list(cutting.TEXTS))
def test_the_panel_cuts_where_the_store_cuts_and_says_when_a_slice_breaks_something(name):
    whole = cutting.TEXTS[name]
    ends = {0} | {grapheme.end() for grapheme in regex.finditer(r"\X", whole)}
    for limit in range(1, cutting.LONGEST + 1):
        shown = cutting.cuts(name, limit)
        assert shown.kept == cut(whole, limit)
        assert bool(shown.split) == (limit < len(whole) and limit not in ends)
        assert shown.split in shown.graphemes or not shown.split


def test_the_panel_follows_its_controls():
    shown = cutting.cut_panel()
    before = shown.png, shown.text
    shown.set(text="flags", limit=3)
    assert shown.png != before[0]
    assert "🇨🇳" in shown.text
    shown.set(limit=cutting.LONGEST)
    assert "All of it fits" in shown.text
    assert shown.view.value.count("<img") == 1
    shown.set(limit=1)
    assert shown.text.endswith("1 code point.")


@pytest.mark.parametrize("value", fences.HOSTILE.values())
def test_a_value_that_closes_the_naive_fence_stays_inside_ours(value):
    preferences = {"tea": value}
    assert "Ignore" in fences.outside(fences.naive(preferences)) or "忽略" in fences.outside(fences.naive(preferences))
    assert fences.outside(preferences_text(preferences)) == ""
    (system,) = assemble([], preferences=preferences)
    rest = system["content"].removeprefix(SYSTEM)
    assert fences.outside(rest) == ""


async def test_what_the_guard_rails_table_shows_is_what_was_stored():
    table = await rails.through(InMemoryPreferenceStore(), "ann")
    row = table.set_index("value").loc
    assert row["e and an accent (NFD)", "stored"] == "caf\u00e9"
    assert row["one family of five code points", "graphemes stored"] == 1
    assert row["498 letters and a family", "code points stored"] == 498
    assert list(table["set"]) == [True] * 8 + [False]
    assert rails.escaped("te\u200ba\n") == "te\\u200ba\\u000a"


async def test_the_same_calls_get_the_same_answers_in_memory_and_in_postgres(embedded_postgres):
    table = rows.own_table()
    store = PostgresPreferenceStore(embedded_postgres, table=table)
    try:
        for _ in range(2):  # as a cell that is run twice
            found = await alike.side_by_side({"memory": InMemoryPreferenceStore(), "postgres": store})
            assert list(found.memory) == list(found.postgres)
        await store.set("maeve", "shoe size", "42")
        shown = rows.rows(embedded_postgres, table)
        assert list(shown.key) == ["shoe size", "colour refused", "过敏"]
        assert shown["ms between"][0] > 0 == shown["ms between"][1]
        assert "'shoe size': '42'" in rows.read_by_another_process(embedded_postgres, table, "maeve")
    finally:
        await store.close()
        rows.drop(embedded_postgres, table)


async def test_a_cell_that_opens_a_store_twice_closes_the_first(embedded_postgres):
    table = rows.own_table()
    first, second = (PostgresPreferenceStore(embedded_postgres, table=table) for _ in range(2))
    try:
        assert await (await rows.instead_of_the_last(first)).set("maeve", "size", "41")
        assert await (await rows.instead_of_the_last(second)).get("maeve", "size") == "41"
        with pytest.raises(RuntimeError, match="closed"):
            await first.get("maeve", "size")
    finally:
        await second.close()
        rows.drop(embedded_postgres, table)


def test_a_process_that_fails_says_why(embedded_postgres):
    with pytest.raises(RuntimeError, match="user_id must be a non-blank string"):
        rows.read_by_another_process(embedded_postgres, rows.own_table(), " ")
    rows.drop(embedded_postgres, rows.own_table())


def test_a_process_that_says_nothing_is_not_waited_for_for_ever(embedded_postgres, monkeypatch):
    monkeypatch.setattr(rows, "CHILD_S", 0.01)
    with pytest.raises(subprocess.TimeoutExpired):
        rows.read_by_another_process(embedded_postgres, rows.own_table(), "maeve")


@pytest.mark.parametrize(("write", "gone"), [(blob.rewrite, 3), (blob.merge, 0), (blob.upsert, 0)])
def test_two_writers_that_read_before_either_writes_lose_one_of_each_two_preferences(embedded_postgres, write, gone):
    both_have_read = threading.Barrier(2)
    before = _tables(embedded_postgres)
    pauses = [lambda: both_have_read.wait(20)] * 2
    assert blob.lost(embedded_postgres, write, 3, pauses) >= gone
    if not gone:
        assert blob.lost(embedded_postgres, write, 3, pauses) == 0
    assert _tables(embedded_postgres) == before


def test_a_single_writer_loses_nothing_in_any_design(embedded_postgres):
    turn = threading.Lock()

    def alone(write, *arguments):
        with turn:
            write(*arguments)

    for write in blob.DESIGNS.values():
        assert blob.lost(embedded_postgres, partial(alone, write), 3, [lambda: None] * 2) == 0


def test_the_count_has_a_row_for_each_design_and_seed(embedded_postgres):
    found = blob.counted(embedded_postgres, range(2), keys=4)
    assert [tuple(pair) for pair in found[["design", "seed"]].to_numpy()] == [
        (design, seed) for design in blob.DESIGNS for seed in range(2)
    ]
    assert found[found.design != "JSON, read and write back"].lost.sum() == 0


def _tables(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        found = connection.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE 'lesson\\_06\\_%'").fetchall()
    return {name for (name,) in found}
