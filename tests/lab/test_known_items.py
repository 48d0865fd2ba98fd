"""A chat of one's own has no questions: simulated ones, own ones with a quote, other people's; and the same report."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tri_memory.contracts import ChatTurn
from tri_memory.lab.datasets import Dataset, Question, Session, load
from tri_memory.lab.evaluation import evaluate
from tri_memory.lab.known_items import KNOWN_ITEM, QUOTED, known_items, not_borrowed, off_topic, quoted
from tri_memory.lab.loaders import load_chat
from tri_memory.lab.rankers import BM25, CONVERSATION, NEWEST

CHAT = """2026-03-01
Me: My passport number starts with ZK and it expires in November 2031
Bot: I noted ZK and November 2031 for your passport
Me: The plumber called Ferreira comes on Thursday about the kitchen tap
Bot: Ferreira, Thursday, kitchen tap
2026-03-09
Me: Please remember that cousin Ottilie is allergic to hazelnuts
Bot: Understood, no hazelnuts near Ottilie
Me: ok
"""
中文 = """2026-03-01
用户：我的护照是ZK开头的，二零三一年十一月到期
助手：记下了护照和到期时间
用户：水管工费雷拉星期四来修厨房的水龙头
助手：星期四厨房水龙头，已经写进日程
2026-03-09
用户：请记住表妹奥蒂莉对榛子过敏，聚会别放坚果
助手：明白，聚会菜单里不会有榛子
"""


@pytest.fixture
def chat(tmp_path):
    def written(text, name="mine.txt"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return written


@pytest.mark.parametrize("text", [CHAT, 中文])
def test_a_chat_of_ones_own_gets_the_same_report(chat, text):
    report = evaluate(chat(text), progress=False)
    assert report.simulated
    assert "simulated" in report.headline
    assert "mine.txt: 1 person" in report.headline
    assert report.of(CONVERSATION, "any@5").n >= 3
    assert report.of(BM25, "any@5").mean > report.of(NEWEST, "any@5").mean
    assert {"off_topic", KNOWN_ITEM} == set(report.rows.kind)


def test_ones_own_questions_count_every_turn_that_holds_the_quote(chat):
    questions = [("Who repairs the tap?", "ferreira"), ("What is Ottilie allergic to?", "hazelnuts"), ("My car?", "")]
    dataset = quoted(load_chat(chat(CHAT)), questions)
    assert [len(one.gold_turns) for one in dataset.questions] == [2, 2, 0]
    report = evaluate(chat(CHAT), questions=questions, progress=False)
    assert not report.simulated
    assert report.of(CONVERSATION, "any@5").mean == 1
    assert report.of(CONVERSATION, "unanswerable admitted").n == 1
    assert (report.rows.kind == QUOTED).any()


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        ([("Who?", "Fereira")], "question 1: nobody says 'Fereira'"),
        ([("Who?", "Ferreira"), ("", "tap")], "question 2"),
        ([], "at least one pair"),
        ([("Who?", " ")], "question 1: the quote ' ' is only space"),
        (["Who repairs the tap?"], "question 1 must be a pair of texts"),
        ([("Who?", "tap", "more")], "question 1 must be a pair of texts"),
        ([("Who?", None)], "question 1 must be a pair of texts"),
        ([("Who?", "a")], "question 1: 'a' stands in 6 turns.*quote more words"),
        ([("My car?", "")], "every question is one that nothing answers; give at least one with a quote"),
    ],
)
def test_a_quote_that_nobody_said_is_named(chat, questions, said):
    with pytest.raises(ValueError, match=said):
        evaluate(chat(CHAT), questions=questions, progress=False)


def test_a_quote_of_two_people_is_ambiguous():
    with pytest.raises(ValueError, match="is said by en-coach-01, en-coach-02"):
        quoted(load("en"), [("Who?", "the")])


def test_simulated_questions_are_words_of_the_turn_and_the_same_each_time(chat):
    dataset = load_chat(chat(CHAT))
    first, again = known_items(dataset, 3), known_items(dataset, 3)
    assert first == again
    assert len(first.questions) == 3
    said = {(s.session_id, i): t.content for s in dataset.sessions for i, t in enumerate(s.turns)}
    for one in first.questions:
        assert all(word in said[one.gold_turns[0]] for word in one.question.split())
        assert len(one.question.split()) == 4


def test_a_chat_too_short_to_ask_about_says_what_to_do(chat):
    with pytest.raises(ValueError, match=r"give questions=\[\(question, quote\)"):
        evaluate(chat("Me: hi\nBot: hello\n"), progress=False)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_off_topic_questions_belong_to_somebody_else(language):
    dataset = load(language)
    owner = {question.question: question.user_id for question in dataset.questions}
    drawn = off_topic(dataset, each=4)
    assert len(drawn) == 4 * len(dataset.users())
    assert all(owner[one.question] != one.user_id and not one.gold_turns for one in drawn)
    assert len({one.question_id for one in drawn}) == len(drawn)


def test_space_around_a_quote_does_not_count(chat):
    dataset = load_chat(chat(CHAT))
    assert quoted(dataset, [("Who?", " Ferreira ")]).questions[0].gold_turns == (
        quoted(dataset, [("Who?", "Ferreira")]).questions[0].gold_turns
    )


def _two(ann: list[list[str]], bob: list[list[str]], asked: str, answered_by: int = 0) -> Dataset:
    """Ann's and Bob's sessions, one text a turn; Ann alone asks, and a turn of her first session answers."""
    start = datetime(2026, 1, 5, 9, tzinfo=UTC)
    sessions = [
        Session(f"{user}-s{i}", user, start, "", tuple(ChatTurn("user", text) for text in texts))
        for user, own in (("ann", ann), ("bob", bob))
        for i, texts in enumerate(own)
    ]
    question = Question("q1", "ann", "fact", asked, "", ("ann-s0",), (("ann-s0", answered_by),), ())
    return Dataset("en", tuple(sessions), (question,))


@pytest.mark.parametrize(
    ("bob", "shared"),
    [
        ([["Mine is green"]], 0),
        ([["my  DOG is called Rex"]], 1),  # what answers was said here too
        ([["He asked: what is my dog called? I laughed"]], 1),
        ([["Mine is green"], ["We met", "Then rain"]], 1),  # a session of hers, word for word
        ([["We met", "Then snow"]], 0),
    ],
)
def test_a_question_that_this_past_may_answer_is_not_off_topic(bob, shared):
    ann = [["My dog is called Rex"], ["We met", "Then rain"]]
    dataset = _two(ann, bob, "What is my dog called?")
    assert not_borrowed(dataset) == shared
    assert [one.user_id for one in off_topic(dataset)] == ["bob"] * (1 - shared)


def test_a_question_that_both_ask_is_not_off_topic_and_the_report_counts_it():
    dataset = _two([["My dog is called Rex"]], [["Mine is called Fido"]], "What is my dog called?")
    (hers,) = dataset.questions
    his = replace(hers, question_id="q2", user_id="bob", gold_sessions=("bob-s0",), gold_turns=(("bob-s0", 0),))
    dataset = replace(dataset, questions=(hers, his))
    assert off_topic(dataset) == []
    assert "2 times a question of somebody else was not asked as off topic" in (
        evaluate(dataset, progress=False).headline
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nobody_in_the_kit_can_answer_for_another(language):
    assert not_borrowed(load(language)) == 0
