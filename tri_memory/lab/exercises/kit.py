"""Exercises that check themselves: `check`, `hint`, `reveal`, and self-tests whose wrong choices explain themselves.

A chapter's module (`ch03.py`) registers its exercises and questions here. A checker gets the learner's object and a
seeded `random.Random`, compares behaviour, and raises Wrong with an explanation of that very mistake.
"""

from __future__ import annotations

import html
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from tri_memory.contracts import shown
from tri_memory.lab.card import Card, folded, text_card
from tri_memory.lab.progress import note_hint, note_reveal, note_try
from tri_memory.lab.reveal_switch import switched_off_by
from tri_memory.lab.sources import solution_of

SEEDS = (20260105, 42)
PRAISE = "Behaves as it should, on inputs drawn with two seeds."
RIGHT, NOT_YET = "#00795A", "#D55E00"

Checker = Callable[[Any, random.Random], None]


class Wrong(Exception):
    """The answer is not right yet; the message says what it does, and what it should do instead."""


@dataclass(frozen=True)
class Exercise:
    """One exercise. `dots` is its difficulty, 1 to 3; `minutes` an estimate; `hints` go from a nudge to nearly all."""

    id: str
    title: str
    dots: int
    minutes: int
    hints: tuple[str, str, str]
    checker: Checker
    praise: str


@dataclass(frozen=True)
class Option:
    """One choice of a question, and why it is right or wrong."""

    text: str
    why: str
    right: bool = False


@dataclass(frozen=True)
class Question:
    """A self-test question: with options, or open with a model answer."""

    id: str
    text: str
    options: tuple[Option, ...] = ()
    model_answer: str = ""


@dataclass(frozen=True)
class Verdict:
    """What `check` found."""

    exercise: Exercise
    passed: bool
    message: str

    def __repr__(self) -> str:
        return f"{'RIGHT' if self.passed else 'NOT YET'} {self.exercise.id}: {self.message}"

    def _repr_html_(self) -> str:
        mark = "✓ right" if self.passed else "○ not yet"
        title = f"{mark} · {self.exercise.id} {self.exercise.title}"
        return text_card(title, self.message, RIGHT if self.passed else NOT_YET)._repr_html_()


@dataclass
class _Registry:
    exercises: dict[str, Exercise] = field(default_factory=dict)
    questions: dict[str, list[Question]] = field(default_factory=dict)
    hints_given: dict[str, int] = field(default_factory=dict)


_registry = _Registry()


def exercise(
    id: str, title: str, *, dots: int, minutes: int, hints: tuple[str, str, str], praise: str = PRAISE
) -> Callable[[Checker], Checker]:
    """Register the decorated checker as exercise `id` ("03-2"). `praise` says what a right answer was held against."""

    def register(checker: Checker) -> Checker:
        _registry.exercises[id] = Exercise(id, title, dots, minutes, hints, checker, praise)
        return checker

    return register


def self_test(chapter: str, *questions: Question) -> None:
    """Register the self-test of a chapter ("03")."""
    _registry.questions[chapter] = list(questions)


def check(id: str, answer: Any) -> Verdict:
    """Whether `answer` solves exercise `id`, and if not, what it does instead. Never raises for a wrong answer."""
    task = _exercise(id)
    if answer is ... or answer is None:
        return _nothing_yet(task)
    verdict = _judged(task, answer)
    if verdict != _nothing_yet(task):
        note_try(id, verdict.passed)
    return verdict


def _nothing_yet(task: Exercise) -> Verdict:
    return Verdict(task, False, f"Nothing here yet. Fill the stub above, or call hint({task.id!r}).")


def _judged(task: Exercise, answer: Any) -> Verdict:
    try:
        for seed in SEEDS:
            task.checker(answer, random.Random(seed))
    except Wrong as wrong:
        return Verdict(task, False, str(wrong))
    except NotImplementedError:
        return _nothing_yet(task)
    except Exception as error:
        return Verdict(task, False, f"Your code raised {type(error).__name__}: {error}")
    return Verdict(task, True, task.praise)


def hint(id: str, step: int | None = None) -> Card:
    """The next of three hints, or hint number `step` (1 to 3); after the third comes the third again."""
    task = _exercise(id)
    if step is None:
        step = _registry.hints_given[id] = min(_registry.hints_given.get(id, 0) + 1, 3)
    if step not in (1, 2, 3):
        raise ValueError(f"step must be 1, 2 or 3; got {step!r}")
    note_hint(id, step)
    way_out = f" Still stuck? reveal({id!r}) shows one right answer." if step == 3 and not switched_off_by() else ""
    return text_card(f"Hint {step} of 3 · {id}", task.hints[step - 1] + way_out)


def reveal(id: str) -> Card:
    """One right answer, folded away; where a teacher has switched that off, who did."""
    task = _exercise(id)
    if who := switched_off_by():
        return text_card("reveal is switched off", f"It was switched off by {who}. hint({id!r}) still works.")
    code = solution_of(id)
    note_reveal(id)
    body = folded("one right answer (click)", f"<pre>{html.escape(code)}</pre>")
    return Card(f"{id} {task.title}", body, code)


def about(id: str) -> Card:
    """Title, difficulty and minutes of an exercise, as they stand above its stub."""
    task = _exercise(id)
    dots = "●" * task.dots + "○" * (3 - task.dots)
    return text_card(f"Exercise {id} · {task.title}", f"difficulty {dots} · about {task.minutes} minutes")


def quiz(chapter: str) -> Card:
    """The self-test of a chapter. Every choice opens and says why it is right or wrong."""
    questions = _questions(chapter)
    body = "".join(_question_html(number, question) for number, question in enumerate(questions, start=1))
    plain = "\n".join(f"{q.id} {q.text}\n" + "\n".join(_plain_options(q)) for q in questions)
    return Card("Self-test: answer from memory first, then look", body, plain)


def answer(question_id: str, choice: str) -> Card:
    """What `quiz` says to choice "a", "b", … of a question such as "03-q1"."""
    question = next((q for q in _questions(question_id[:2]) if q.id == question_id), None)
    if question is None:
        raise ValueError(f"no question {question_id!r}")
    index = ord(choice.strip().lower()) - ord("a") if len(choice.strip()) == 1 else -1
    if not 0 <= index < len(question.options):
        raise ValueError(f"choice must be one of {', '.join(_letters(question))}; got {choice!r}")
    option = question.options[index]
    return text_card("Right" if option.right else "Not this one", option.why, RIGHT if option.right else NOT_YET)


def exercises_of(chapter: str) -> list[Exercise]:
    """A chapter's exercises in order."""
    _load(chapter)
    return [task for id, task in sorted(_registry.exercises.items()) if id.startswith(f"{chapter}-")]


def questions_of(chapter: str) -> list[Question]:
    """A chapter's self-test."""
    return _questions(chapter)


def _exercise(id: str) -> Exercise:
    if not (isinstance(id, str) and re.fullmatch(r"\d\d-\d", id)):
        raise ValueError(f"an exercise has a number such as '03-2'; got {shown(id)}")
    _load(id[:2])
    if id not in _registry.exercises:
        known = ", ".join(task.id for task in exercises_of(id[:2]))
        raise ValueError(f"no exercise {id!r}; this chapter has {known}")
    return _registry.exercises[id]


def _questions(chapter: str) -> list[Question]:
    _load(chapter)
    return _registry.questions.get(chapter, [])


def _load(chapter: str) -> None:
    try:
        import_module(f"tri_memory.lab.exercises.ch{chapter}")
    except ModuleNotFoundError as error:
        if error.name != f"tri_memory.lab.exercises.ch{chapter}":
            raise
        raise ValueError(f"there is no chapter {chapter!r} with exercises") from None


def _letters(question: Question) -> list[str]:
    return [chr(ord("a") + i) for i in range(len(question.options))]


def _plain_options(question: Question) -> list[str]:
    if not question.options:
        return ["   (open question)"]
    return [f"   {letter}) {option.text}" for letter, option in zip(_letters(question), question.options, strict=True)]


def _question_html(number: int, question: Question) -> str:
    if question.options:
        parts = [
            folded(f"{letter}) {option.text}", f"<p style='margin:.3em 1.6em'>{_why(option)}</p>")
            for letter, option in zip(_letters(question), question.options, strict=True)
        ]
    else:
        parts = [folded("a model answer", f"<p style='margin:.3em 1.6em'>{html.escape(question.model_answer)}</p>")]
    return f"<p style='margin:.8em 0 .2em'>{number}. {html.escape(question.text)}</p>{''.join(parts)}"


def _why(option: Option) -> str:
    word, colour = ("Right.", RIGHT) if option.right else ("Not this one.", NOT_YET)
    return f"<b style='color:{colour}'>{word}</b> {html.escape(option.why)}"
