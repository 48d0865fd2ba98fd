"""The exercise kit: verdicts, hints, reveals and self-tests of every chapter there is."""

from __future__ import annotations

import pytest

from tri_memory.lab.exercises import about, answer, check, hint, quiz, reveal
from tri_memory.lab.exercises.kit import exercises_of, questions_of
from tri_memory.lab.sources import source_files

CHAPTERS = [path.name[:2] for path in source_files()]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_three_exercises_and_a_self_test_that_explains_itself(chapter):
    tasks, questions = exercises_of(chapter), questions_of(chapter)
    assert len(tasks) >= 3
    assert [task.id for task in tasks] == [f"{chapter}-{i + 1}" for i in range(len(tasks))]
    assert all(1 <= task.dots <= 3 and task.minutes > 0 and len(set(task.hints)) == 3 for task in tasks)
    assert 3 <= len(questions) <= 6
    assert any(not question.options and question.model_answer for question in questions)
    for question in questions:
        if question.options:
            assert sum(option.right for option in question.options) == 1
            assert len({option.why for option in question.options}) == len(question.options)
            assert all(len(option.why) > 15 for option in question.options)


def test_the_right_choice_is_not_always_at_the_same_place():
    places = [
        [option.right for option in question.options].index(True)
        for chapter in CHAPTERS
        for question in questions_of(chapter)
        if question.options
    ]
    assert len(set(places)) >= 3


@pytest.mark.parametrize("chapter", CHAPTERS)
@pytest.mark.parametrize("odd", [..., None, 3, "text", print, lambda *a, **k: None, lambda: 1 / 0, object()])
def test_whatever_a_learner_hands_in_check_answers_in_words(chapter, odd):
    for task in exercises_of(chapter):
        verdict = check(task.id, odd)
        assert not verdict.passed
        assert verdict.message
        assert task.id in repr(verdict)
        assert "not yet" in verdict._repr_html_()


def test_hints_come_one_after_the_other_and_the_last_one_stays():
    steps = [repr(hint("02-1")).splitlines()[0] for _ in range(4)]
    assert steps == ["Hint 1 of 3 · 02-1", "Hint 2 of 3 · 02-1", "Hint 3 of 3 · 02-1", "Hint 3 of 3 · 02-1"]
    assert "Hint 1" in repr(hint("02-1", step=1))
    with pytest.raises(ValueError, match="step"):
        hint("02-1", step=4)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_last_hint_of_every_exercise_points_to_the_answer_and_the_others_do_not(chapter):
    for task in exercises_of(chapter):
        said = [f"reveal('{task.id}')" in repr(hint(task.id, step)) for step in (1, 2, 3)]
        assert said == [False, False, True]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_reveal_shows_the_solution_and_about_its_difficulty(chapter):
    for task in exercises_of(chapter):
        assert "raise NotImplementedError" not in repr(reveal(task.id))
        assert "<details" in reveal(task.id)._repr_html_()
        assert task.title in repr(about(task.id))


def test_every_choice_of_a_quiz_opens_and_answers():
    html = quiz("02")._repr_html_()
    questions = questions_of("02")
    assert html.count("<details") == sum(max(1, len(question.options)) for question in questions)
    assert "Right" in repr(answer("02-q1", "B"))
    assert "Not this one" in repr(answer("02-q1", "a"))


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: check("02-9", 1), "02-1"),
        (lambda: hint("99-1"), "99"),
        (lambda: check("3-2", 1), "such as '03-2'; got '3-2'"),
        (lambda: reveal(32), "got 32"),
        (lambda: quiz("99"), "99"),
        (lambda: answer("02-q1", "z"), "a, b, c"),
        (lambda: answer("02-q9", "a"), "02-q9"),
    ],
)
def test_an_unknown_exercise_or_choice_is_an_error_that_names_the_known_ones(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_html_in_an_answer_is_shown_and_not_run():
    verdict = check("02-1", lambda sent, stored: ["<script>alert(1)</script>"])
    assert "<script>" not in verdict._repr_html_()
