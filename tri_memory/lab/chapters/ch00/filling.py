"""Exercise 00-2: what fits into a prompt, the right way and the usual wrong ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from tri_memory.contracts import Recollection
from tri_memory.session.tokens import estimate_tokens

QUESTIONS = ("Which purchase order was it?", "上次修的是哪台机器？", "What did you tell me about the valve in spring?")


def memories_for(rng: random.Random) -> list[Recollection]:
    """Five to nine episodes, some of them Chinese, in no order, no two scores alike."""
    scores = rng.sample(range(20, 95), rng.randrange(5, 10))
    words = ("bearing", "pump", "seal", "order HM-55", "valve", "night shift")
    return [
        Recollection(
            f"s{number}",
            "，".join(rng.choices(("轴承换了新的", "水泵夜里停机", "订单号是", "阀门拧小一点"), k=rng.randrange(1, 6)))
            if rng.random() < 0.4
            else " ".join(rng.choices(words, k=rng.randrange(2, 30))),
            score / 100,
            datetime(2026, 1, 5, tzinfo=UTC) + timedelta(days=rng.randrange(170)),
        )
        for number, score in enumerate(scores)
    ]


def filled(
    question: str,
    memories: Sequence[Recollection],
    budget: int,
    *,
    count: Callable[[str], int] = estimate_tokens,
    pays_for_question: bool = True,
    goes_on: bool = True,
    spares: int = 0,
) -> list[Recollection]:
    """The right answer; the options make the typical wrong ones."""
    left = budget - spares - (count(question) if pays_for_question else 0)
    chosen = []
    for memory in sorted(memories, key=lambda memory: memory.score, reverse=True):
        if count(memory.summary) <= left:
            chosen.append(memory)
            left -= count(memory.summary)
        elif not goes_on:
            break
    return chosen


class Case(NamedTuple):
    """One call of the learner's function."""

    question: str
    memories: list[Recollection]
    budget: int
    found: list[Recollection]

    def right(self, **mistake: Any) -> bool:
        """Whether this is what `filled` gives, or what it gives with a mistake in it."""
        return self.found == filled(self.question, self.memories, self.budget, **mistake)


def words(text: str) -> int:
    return len(text.split())


def quarters(text: str) -> int:
    return len(text) // 4


MISTAKES: tuple[tuple[dict[str, Any], str], ...] = (
    (
        {"pays_for_question": False},
        "The question is not paid for. It goes into the same prompt and takes its tokens, too.",
    ),
    ({"goes_on": False}, "It stops at the first memory that doesn't fit. A shorter one behind it would have."),
    ({"spares": 1}, "It leaves out a memory that fits exactly: what costs as much as is left may still go in."),
    ({"count": words}, "It counts words. A model counts tokens: estimate_tokens(text), for Chinese, too."),
    ({"count": len}, "It counts characters. A model counts tokens: estimate_tokens(text)."),
    ({"count": quarters}, "It counts characters / 4, a third of what Chinese costs: estimate_tokens(text)."),
)


def explained(cases: Sequence[Case]) -> str:
    """What these answers have in common with one of the usual mistakes, else what is wrong with the first wrong one."""
    for mistake, sentence in MISTAKES:
        if all(case.right(**mistake) for case in cases):
            return sentence
    case = next(case for case in cases if not case.right())
    right = filled(case.question, case.memories, case.budget)
    scores, wanted = ([memory.score for memory in some] for some in (case.found, right))
    if sorted(scores, reverse=True) == wanted:
        return "The right memories, but not best first: a reader of the prompt can't tell which one matters most."
    spent = sum(estimate_tokens(text) for text in [case.question, *(memory.summary for memory in case.found)])
    if spent > case.budget:
        return f"{spent} tokens with the question, and the budget is {case.budget}."
    if scores != sorted(scores, reverse=True):
        return f"It takes them in another order than best first: the scores are {scores}."
    return (
        f"Budget {case.budget}, question {estimate_tokens(case.question)}: expected the memories with the scores "
        f"{wanted}, got {scores}."
    )
