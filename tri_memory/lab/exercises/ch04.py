"""Chapter 04: filling a budget, planning a fold by tokens, and never parting a tool result from its call."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tri_memory.contracts import ChatTurn
from tri_memory.lab.chapters.ch04.patience import patiently
from tri_memory.lab.chapters.ch04.slips import (
    FITTING_SLIPS,
    PLAN_SLIPS,
    first_miss,
    fitting,
    shortest_head,
    slip_of,
)
from tri_memory.lab.chapters.ch04.stories import told, why_not
from tri_memory.lab.exercises.kit import Option, Question, Wrong, exercise, self_test

Count = Callable[[str], int]


@exercise(
    "04-1",
    "What fits into the budget",
    dots=1,
    minutes=5,
    hints=(
        "Begin at the newest turn, the last of the list, and walk back.",
        "Keep a running total of count(text). The first turn that would lift it over the budget ends the walk.",
        "for text in reversed(texts): left -= count(text); if left < 0: break; fitting += 1",
    ),
)
def newest_within(function: Callable[[list[str], int, Count], int], rng: random.Random) -> None:
    cases, answers = [], []
    for _ in range(40):
        weights = [rng.choice([1, 2, 3, 5, 30]) for _ in range(rng.randrange(0, 9))]
        budget = rng.randrange(0, 45)
        if weights and rng.random() < 0.3:
            budget = sum(weights[-rng.randrange(1, len(weights) + 1) :])
        texts = [f"turn {i} " + "x" * rng.randrange(0, 9) for i in range(len(weights))]
        count = dict(zip(texts, weights, strict=True)).__getitem__  # no rule of thumb can guess it
        cases.append((weights, budget, [len(text) for text in texts]))
        answers.append(_whole_number(patiently(function, texts, budget, count)))
    expected = [fitting(weights, budget) for weights, budget, _ in cases]
    if answers != expected:
        (weights, budget, _), right, found = first_miss(cases, expected, answers)
        raise Wrong(
            f"{slip_of(FITTING_SLIPS, cases, answers) or 'Not these turns.'} Turns of {weights} tokens, oldest first, "
            f"budget {budget}: {right} fit, you answer {found}."
        )


@exercise(
    "04-2",
    "Plan a fold by tokens",
    dots=2,
    minutes=10,
    hints=(
        "Two questions: is it over the high line at all? If so, how many leading turns must go until low is reached?",
        "Fold one more leading turn while what is left is above low. Stop before the newest turn.",
        "while left > low and fold < len(weights) - 1: left -= weights[fold]; fold += 1",
    ),
)
def plan(function: Callable[[list[int], int, int], int], rng: random.Random) -> None:
    cases = [([400], 30, 20), ([5, 5, 400], 30, 20), ([10, 10, 10], 30, 20), ([10, 10, 11], 30, 21), ([], 30, 20)]
    for _ in range(40):
        low = rng.randrange(10, 40)
        high = low + rng.randrange(1, 30)
        cases.append(([rng.choice([1, 2, 5, 8, 13, 60]) for _ in range(rng.randrange(1, 12))], high, low))
    answers = []
    for weights, high, low in cases:
        given = list(weights)
        answers.append(_whole_number(patiently(function, given, high, low)))
        if given != weights:
            raise Wrong("It changes the list of weights. The store still needs them: count on a copy.")
    expected = [shortest_head(*case) for case in cases]
    if answers != expected:
        (weights, high, low), right, found = first_miss(cases, expected, answers)
        raise Wrong(
            f"{slip_of(PLAN_SLIPS, cases, answers) or 'Not this many.'} Turns of {weights} tokens, {sum(weights)} in "
            f"all, high {high}, low {low}: {right} leading turns go, you fold {found}."
        )


@exercise(
    "04-3",
    "Keep call and result together",
    dots=3,
    minutes=15,
    hints=(
        "Where is a cut harmless? Where no call that stands before it still waits for its result.",
        "Walk along and count the calls that wait: +1 for an assistant turn with a tool_name, -1 for a tool turn.",
        "Collect the cuts 1 … len - 1 where the count is 0. Then min of those >= wanted, else max of all, else 0.",
    ),
)
def safe_cut(function: Callable[[list[ChatTurn], int], int], rng: random.Random) -> None:
    stories = ["c" * 18 + "tccc", "ccpcc", "cstc", "ttct", "cpco", "o", "cts", "so", "c"]
    stories += ["".join(rng.choices("ccstp", k=rng.randrange(2, 8))) + rng.choice(["", "c", "o"]) for _ in range(15)]
    for story in stories:
        turns, good = told(story, rng)
        for wanted in range(1, len(turns)):
            found = _whole_number(patiently(function, list(turns), wanted))
            expected = min((cut for cut in good if cut >= wanted), default=max(good, default=0))
            if found != expected:
                raise Wrong(why_not(found, turns, good, wanted, expected))


def _whole_number(found: Any) -> int:
    if isinstance(found, bool) or not isinstance(found, int):
        raise Wrong(f"It should return a whole number; it returned {found!r}.")
    return found


self_test(
    "04",
    Question(
        "04-q1",
        "A customer pastes 2,000 Chinese characters. Your watermark counts characters / 4. What happens?",
        (
            Option(
                "It folds too early.",
                "Too early would mean that the guess is too high. A Chinese character costs about one token, not a "
                "quarter of one.",
            ),
            Option(
                "It folds too late, perhaps after the model has refused.",
                "The guess is about a third of the truth, so the history is three times as full as it seems.",
                right=True,
            ),
            Option(
                "Nothing: the quarter above the high line absorbs the error.",
                "That quarter absorbs 10 or 20 per cent. This guess is off by a factor of three.",
            ),
        ),
    ),
    Question(
        "04-q2",
        "Why does a fold go down to low and not just back under high?",
        (
            Option(
                "The next turns would fold again and again, a summary call each time.",
                "The room between low and high is what the conversation can grow before it costs another summary.",
                right=True,
            ),
            Option(
                "A summary of many turns is better than one of few.",
                "Longer spans lose more. Depth is paid for with facts; it saves calls.",
            ),
            Option(
                "The model reads only half of its window.",
                "It is charged for all of it, and answers from all of it.",
            ),
        ),
    ),
    Question(
        "04-q3",
        "The newest turn alone is ten times the window. What does the watermark do?",
        (
            Option("It folds that turn, too.", "Then the model would have to answer what it can't see."),
            Option(
                "It cuts the turn down to size.",
                "Which half would go? A policy chooses turns, it never changes what somebody wrote.",
            ),
            Option(
                "It keeps the turn and folds what stands before it, once.",
                "The model will refuse this prompt. Shortening a paste is the application's business.",
                right=True,
            ),
        ),
    ),
    Question(
        "04-q4",
        "call a, call b, result b, result a. The plan wants to cut behind call b. Where may the cut go?",
        (
            Option("Behind result b: then b is complete.", "Call a would be folded, and its result stays alone."),
            Option("Between the two calls.", "The result of a stays, and a itself is folded."),
            Option("Behind result a, or before call a.", "All four stay on one side.", right=True),
        ),
    ),
    Question(
        "04-q5",
        "The high line stands at 75 % of the window. What is the other quarter for?",
        model_answer="The answer has to fit into the same window. Each turn costs a few tokens more than its text, for "
        "its role and its marks. The count is an estimate. And turns arrive while the summary is being written.",
    ),
    Question(
        "04-q6",
        "When would you still fold by count?",
        model_answer="When nobody knows the window (context_tokens gives None), or when all turns are about equally "
        "long: then so many turns are so many tokens, both policies lie on one curve, and the count is simpler to "
        "explain and to test. It stops being true with the first pasted log.",
    ),
)
