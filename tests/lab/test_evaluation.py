"""An evaluation that can fail: on made-up pasts the right numbers are known, on the kit's own they must be reached."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from tri_memory.contracts import ChatTurn
from tri_memory.embedding import HashingEmbedder
from tri_memory.lab.admission import Answer, gated
from tri_memory.lab.datasets import Dataset, Question, Session, load
from tri_memory.lab.evaluation import GATED, evaluate
from tri_memory.lab.rankers import BM25, CONVERSATION, COSINE, EVERYTHING, FUSION, NEWEST, NO_MEMORY, RANKERS
from tri_memory.lab.report import OFF_TOPIC, UNANSWERABLE

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
EN = [
    "My dentist moved to Elm Street", "The boiler makes a whistling noise", "Our cat Biscuit had surgery",
    "I ordered walnut shelves", "The marathon is in October", "Grandma plays the accordion",
]  # fmt: skip
ZH = [
    "我的牙医搬到榆树街了",
    "锅炉发出哨声",
    "我们的猫饼干做了手术",
    "我订了胡桃木架子",
    "马拉松在十月",
    "奶奶会拉手风琴",
]


def past(said=EN, users=("ann", "bob"), answer="Noted") -> Dataset:
    """Each user says each sentence in a session of its own; what the users say differs by their name."""
    sessions, questions = [], []
    for user in users:
        for number, text in enumerate(said):
            session = f"{user}-s{number}"
            turns = (ChatTurn("user", f"{text} {user}"), ChatTurn("assistant", answer))
            sessions.append(Session(session, user, START + timedelta(days=number), "", turns))
            asked = (f"{user}-q{number}", user, "copy", f"{text} {user}", text, (session,), ((session, 0),), ())
            questions.append(Question(*asked))
    return Dataset("en", tuple(sessions), tuple(questions))


def tried(dataset, **more):
    return evaluate(dataset, embedder=HashingEmbedder(), progress=False, **more)


@pytest.mark.parametrize("said", [EN, ZH])
def test_a_question_that_repeats_the_turn_finds_it_first_by_words_and_by_meaning(said):
    report = tried(past(said), ks=(1, 3))
    for method in (BM25, COSINE, FUSION, CONVERSATION, EVERYTHING):
        assert report.of(method, "any@1").mean == 1, method
    assert report.of(NO_MEMORY, "any@3").mean == 0
    assert report.of(NEWEST, "any@1").mean == 0  # the newest turn is an assistant's "Noted"
    assert report.of(NEWEST, "any@3").mean == pytest.approx(1 / 6)


def test_with_the_wrong_gold_the_same_ranking_is_worth_nothing():
    right = past()
    wrong = replace(right, questions=tuple(_next_session(one) for one in right.questions))
    assert tried(wrong, ks=(1,)).of(BM25, "any@1").mean == 0


def _next_session(question: Question) -> Question:
    user, _, number = question.gold_sessions[0].partition("-s")
    session = f"{user}-s{(int(number) + 1) % len(EN)}"
    return replace(question, gold_sessions=(session,), gold_turns=((session, 0),))


def test_the_two_ends_cost_nothing_and_everything():
    report = tried(past())
    table = report.table()
    assert table.loc[NO_MEMORY, "tokens"] == 0
    assert table.loc[EVERYTHING, "tokens"] > table.loc[CONVERSATION, "tokens"] > 0
    assert report.of(EVERYTHING, "all@10").mean == 1
    assert np.isnan(report.of(EVERYTHING, "MRR@10").mean)  # nothing is ranked there


def test_every_method_was_asked_the_same_questions_in_the_same_order():
    report = tried(past())
    asked = [report.rows[report.rows.method == method].question.tolist() for method in report.methods]
    assert report.methods == [*RANKERS, GATED]
    assert all(one == asked[0] for one in asked)
    assert len(asked[0]) == 12 + 12  # six of one's own and six of the other's, each


def test_off_topic_questions_are_other_peoples_and_admission_is_counted_beside_recall():
    report = tried(past())
    foreign = report.rows[report.rows.kind == "off_topic"]
    assert set(foreign.user) == {"ann", "bob"}
    assert report.of(NEWEST, OFF_TOPIC).mean == 1
    assert report.of(NO_MEMORY, OFF_TOPIC).mean == 0
    assert report.of(NEWEST, UNANSWERABLE).n == 0  # none was asked


def test_a_gate_keeps_out_what_nobody_spoke_of():
    dataset = past()
    nonsense = [Question(f"{u}-x", u, "unanswerable", "zebra quartz", "", (), (), ()) for u in ("ann", "bob")]
    report = tried(replace(dataset, questions=(*dataset.questions, *nonsense)))
    assert report.of(CONVERSATION, "any@5").mean == 1
    assert 0.8 <= report.of(GATED, "any@5").mean < 1  # the price, a tenth of what the other person got
    assert report.of(COSINE, UNANSWERABLE).mean == 1
    assert report.of(GATED, UNANSWERABLE).mean == 0


def _answer(user: str, nearest: float, gold: bool = True) -> Answer:
    question = Question("q", user, "copy" if gold else "unanswerable", "?", "", (), (), ())
    return Answer("m", question, frozenset(["a"] if gold else []), ("a",), nearest, 10, 1.0)


def test_nobody_is_judged_by_a_threshold_that_their_own_answers_chose():
    others = [_answer("ann", 0.8) for _ in range(10)]
    for own in (0.1, 0.79, 0.81, 0.99):
        *_, last = gated([*others, _answer("bob", own), _answer("bob", own)], "gated")
        assert bool(last.found) == (own >= 0.8)


def test_one_person_alone_is_judged_by_every_second_question():
    even_high = [_answer("ann", 0.9 if number % 2 == 0 else 0.2) for number in range(20)]
    found = [bool(answer.found) for answer in gated(even_high, "gated")]
    assert found == [number % 2 == 0 for number in range(20)]  # 0.9 clears 0.2, and 0.2 does not clear 0.9


def test_the_gate_keeps_nine_in_ten_of_what_was_answered():
    answers = [_answer(user, value) for user in "abcdefgh" for value in np.linspace(0.3, 0.9, 40)]
    kept = gated(answers, "gated")
    assert 0.88 <= np.mean([bool(answer.found) for answer in kept]) <= 0.93
    assert all(answer.tokens == 0 and answer.nearest == -1 for answer in kept if not answer.found)


def test_without_a_single_hit_there_is_no_threshold_and_no_gated_line():
    assert gated([_answer("ann", 0.5, gold=False), _answer("bob", 0.5, gold=False)], "gated") == []


def test_a_report_says_why_there_is_no_gated_line():
    dataset = past()
    answered = tuple(one for one in dataset.questions if one.user_id == "ann")
    only_ann = tried(replace(dataset, questions=answered))
    assert GATED not in only_ann.methods
    assert "no gate: only ann has questions that recall answered" in only_ann.headline
    assert "no gate" not in tried(dataset).headline
    alone = tried(replace(past(users=("ann",)), questions=answered[:1]))
    assert "no gate: of one person" in alone.headline


def test_no_lead_over_a_method_that_ranks_nothing():
    report = tried(past())
    for pair in ((CONVERSATION, EVERYTHING), (EVERYTHING, CONVERSATION)):
        with pytest.raises(ValueError, match="everything ranks nothing and has no MRR@10; compare by any@5"):
            report.lead(*pair, "MRR@10")


def test_a_files_own_kind_called_off_topic_keeps_its_gold():
    dataset = past()
    report = tried(replace(dataset, questions=tuple(replace(one, kind="off_topic") for one in dataset.questions)))
    assert report.of(BM25, "any@5").n == 12
    assert report.of(NEWEST, OFF_TOPIC).n == 12
    assert "12 questions with an answer, 0 without, 12 off topic" in report.headline


def test_sessions_are_the_level_where_a_file_marks_no_turns():
    dataset = past()
    undated = replace(dataset, questions=tuple(replace(one, gold_turns=()) for one in dataset.questions))
    report = tried(undated)
    assert (report.level, report.ks) == ("session", (1, 3))
    with pytest.raises(ValueError, match=r'none of the 12 questions has gold on the level "turn"'):
        tried(undated, level="turn")


def test_questions_whose_gold_names_no_turn_are_left_out_and_counted():
    dataset = past()
    first, *rest = dataset.questions
    report = tried(replace(dataset, questions=(replace(first, gold_turns=()), *rest)))
    assert report.left_out == 1
    assert "1 left out" in report.headline


def test_the_difference_of_two_methods_is_measured_on_the_same_questions():
    report = tried(past(), ks=(1,))
    lead = report.lead(CONVERSATION, NEWEST, "any@1")
    assert (lead.mean, lead.low, lead.n) == (1.0, 1.0, 12)
    assert report.lead(BM25, BM25, "any@1") == (0, 0, 0, 12)


def test_by_kind_adds_up_to_the_whole():
    dataset = past()
    kinds = tuple(replace(one, kind="first" if i % 3 else "third") for i, one in enumerate(dataset.questions))
    report = tried(replace(dataset, questions=kinds), ks=(3,))
    table = report.by_kind("any@3")
    assert list(table) == ["third (4)", "first (8)"]
    assert (table["third (4)"] * 4 + table["first (8)"] * 8)[NEWEST] / 12 == report.of(NEWEST, "any@3").mean
    assert report.of(NEWEST, "any@3", "third").n == 4


def test_a_report_is_a_table_in_a_notebook_and_in_a_terminal():
    report = tried(past())
    for text in (str(report), report._repr_html_()):
        assert "12 questions with an answer" in text
        assert "any@10" in text
        assert GATED in text


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"ks": ()}, "at least one"), ({"ks": (0,)}, "item of ks"), ({"level": "word"}, 'must be "turn" or "session"')],
)
def test_wrong_settings_are_named(wrong, said):
    with pytest.raises(ValueError, match=said):
        tried(past(), **wrong)


@pytest.mark.parametrize(
    ("method", "measure", "kind", "said"),
    [
        ("bm25", "any@5", None, "method must be one of no memory, .*'bm25'"),
        (BM25, "any@7", None, "measure must be one of any@5, .*'any@7'"),
        (BM25, "any@5", "riddle", "kind must be one of copy, off_topic; got 'riddle'"),
    ],
)
def test_what_was_not_measured_is_named(method, measure, kind, said):
    with pytest.raises(ValueError, match=said):
        tried(past()).of(method, measure, kind)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_right_past_session_is_among_the_first_three_in_nine_of_ten_questions(language):
    report = evaluate(load(language), level="session", progress=False)
    assert report.of(CONVERSATION, "any@3").mean >= 0.90
    for baseline in (NEWEST, BM25, COSINE):
        assert report.of(CONVERSATION, "any@3").mean > report.of(baseline, "any@3").mean


@pytest.mark.parametrize("language", ["en", "zh"])
def test_on_turns_the_kits_best_recall_is_ahead_of_words_and_of_vectors_alone(language):
    report = evaluate(load(language), progress=False)
    for k in ("any@5", "any@10"):
        assert report.of(CONVERSATION, k).mean > max(report.of(BM25, k).mean, report.of(COSINE, k).mean)
