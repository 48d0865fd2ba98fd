"""Chapter 10: reciprocal rank fusion, a threshold for a wanted precision, and the injector on every engine."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

from tri_memory.lab.exercises.ch10_everywhere import everywhere
from tri_memory.lab.exercises.kit import Option, Question, Wrong, exercise, self_test

Fuse = Callable[[list[str], list[str], int], list[str]]
Choose = Callable[[list[float], list[bool], float], float | None]


@exercise(
    "10-1",
    "Reciprocal rank fusion",
    dots=1,
    minutes=8,
    hints=(
        "A name at place p of a list gets 1 / (k + p) from it, p from 1. A list that doesn't have it gives nothing.",
        "Collect the sums in a dict: scores[name] = scores.get(name, 0) + 1 / (k + place), with enumerate(…, start=1).",
        "Fill the dict from by_cosine, then from by_words: sorted(scores, key=lambda name: -scores[name]) keeps that "
        "order for equal ones.",
    ),
)
def fused_order(function: Fuse, rng: random.Random) -> None:
    for round_ in range(60):
        pool = [f"m{i}" for i in range(12)]
        one, other = (rng.sample(pool, rng.randrange(3, 11)) for _ in range(2))
        if round_ % 3 == 0:
            other = [one[1], one[0], *(name for name in other if name not in one[:2])]  # two that change places
        _judge_fused(function, one, other, rng.choice((0, 1, 2, 5, 60)))
    _judge_fused(function, ["a", "b"], [], 60)


def _judge_fused(function: Fuse, one: list[str], other: list[str], k: int) -> None:
    scores = _scores(one, other, k, first=1)
    expected = sorted(scores, key=lambda name: -scores[name])
    try:
        got = function(list(one), list(other), k)
    except ZeroDivisionError:
        raise Wrong(f"It divides by zero where k is {k}. Places begin at 1, not at 0.") from None
    if not isinstance(got, list) or not all(isinstance(name, str) for name in got):
        raise Wrong(f"It should return a list of names, best first; it returned {got!r}.")
    if got == expected:
        return
    what = f"by_cosine {one}, by_words {other}, k={k}: expected {expected}, got {got}."
    if set(got) != set(expected):
        if set(got) == set(one) & set(other):
            raise Wrong(f"Only those that are in both lists. A name in one list counts, too. {what}")
        raise Wrong(f"Not every name of the two lists, once each. {what}")
    if got == sorted(scores, key=lambda name: scores[name]):
        raise Wrong(f"The worst comes first. {what}")
    if k and got == _order(_scores(one, other, k, first=0)):
        raise Wrong(f"Places count from 0 here; the first place is 1. {what}")
    sums = {name: -1.0 * sum(each.index(name) + 1 for each in (one, other) if name in each) for name in scores}
    if got == _order(sums):
        raise Wrong(f"The places themselves are added, so that a name in one list alone looks good. {what}")
    if got == _order(_scores(one, other, 60, first=1)):
        raise Wrong(f"It takes k = 60 whatever k is. {what}")
    if [scores[name] for name in got] == [scores[name] for name in expected]:
        raise Wrong(f"Equal scores are not in the order of by_cosine, then of by_words. {what}")
    raise Wrong(f"Not the order of the sums of 1 / (k + place). {what}")


def _scores(one: list[str], other: list[str], k: int, first: int) -> dict[str, float]:
    scores: dict[str, float] = {}
    for names in (one, other):
        for place, name in enumerate(names, start=first):
            scores[name] = scores.get(name, 0.0) + 1 / (k + place)
    return scores


def _order(scores: dict[str, float]) -> list[str]:
    return sorted(scores, key=lambda name: -scores[name])


@exercise(
    "10-2",
    "A threshold for a wanted precision",
    dots=2,
    minutes=12,
    hints=(
        "Every cosine of the list is a possible threshold. For each: who is let in, and how many of them are relevant?",
        "Precision goes up and down along the way. Don't stop at the first cosine that misses it; look at all.",
        "Of the thresholds that reach `wanted`, the lowest lets in most: min(…) over them, None where there is none.",
    ),
)
def threshold_for_precision(function: Choose, rng: random.Random) -> None:
    for _ in range(60):
        count = rng.randrange(6, 16)
        cosines = [rng.randrange(10, 60) / 100 for _ in range(count)]  # some of them equal
        relevant = [rng.random() < cosine + 0.1 for cosine in cosines]
        _judge_threshold(function, cosines, relevant, rng.choice((0.4, 0.5, 0.6, 0.75, 1.0)))
    _judge_threshold(function, [0.9, 0.8, 0.7, 0.6, 0.5], [True, False, True, True, True], 0.8)  # dips, and comes back
    _judge_threshold(function, [0.5, 0.5, 0.3], [True, False, False], 0.9)
    _judge_threshold(function, [0.5, 0.4], [False, False], 0.5)


def _judge_threshold(function: Choose, cosines: list[float], relevant: list[bool], wanted: float) -> None:
    reached = [each for each in cosines if _precision(cosines, relevant, each) >= wanted]
    expected = min(reached) if any(relevant) and reached else None
    got = function(list(cosines), list(relevant), wanted)
    pairs = sorted(zip(cosines, relevant, strict=True), reverse=True)
    shown = ", ".join(f"{cosine:.2f} {'yes' if right else 'no'}" for cosine, right in pairs)
    what = f"Pairs {shown}; wanted {wanted}: expected {expected}, got {got!r}."
    if got is None or expected is None:
        if got is not expected:
            why = "There is no threshold that reaches it: return None." if expected is None else "There is one."
            raise Wrong(f"{why} {what}")
        return
    if isinstance(got, bool) or not isinstance(got, int | float):
        raise Wrong(f"It should return a cosine of the list, or None. {what}")
    if abs(got - expected) < 1e-9:
        return
    if abs(got - max(reached)) < 1e-9:
        raise Wrong(f"That is the highest threshold that reaches it, and it lets in hardly anything. {what}")
    if not any(abs(got - each) < 1e-9 for each in cosines):
        raise Wrong(f"It is none of the cosines given. {what}")
    if _precision(cosines, relevant, got) < wanted:
        raise Wrong(f"At {got} the precision is {_precision(cosines, relevant, got):.2f}: too low. {what}")
    if got > expected:
        raise Wrong(f"A lower one reaches it, too: precision falls below and comes back. Look at all. {what}")
    raise Wrong(f"Not the lowest cosine with that precision. {what}")


def _precision(cosines: list[float], relevant: list[bool], least: float) -> float:
    let_in = [right for cosine, right in zip(cosines, relevant, strict=True) if cosine >= least]
    return sum(let_in) / len(let_in) if let_in else 0.0


@exercise(
    "10-3",
    "The injector on every engine",
    dots=3,
    minutes=18,
    hints=(
        "The store gives cosines: ask it for all of the person's memories, recall(rows[0], 1_000, user_id=user). "
        "LexicalIndex ranks their summaries.",
        "In this order: BM25 picks the first `picks`; of these keep those with score >= least; of these the newest.",
        "ranking = LexicalIndex(texts).rank(question, picks); kept = [found[row] for row, _ in ranking if "
        "found[row].score >= least]; sort by created_at, reverse=True; cut; f'[{one.created_at:%Y-%m-%d}] …'.",
    ),
)
def memory_lines(function: Callable[..., Awaitable[list[str]]], rng: random.Random) -> None:
    everywhere(function, rng)


self_test(
    "10",
    Question(
        "10-q1",
        "A fused score is 0.031 and the threshold is 0.65. What does that say about the memory?",
        (
            Option("It is far below the threshold.", "The best fused score there is, with k = 60, is 2 / 61 = 0.033."),
            Option(
                "Nothing.",
                "A fused score comes from places. The threshold belongs to the cosine of the same memory.",
                right=True,
            ),
            Option("It has to be multiplied by 20 first.", "Places have no scale that a factor could repair."),
        ),
    ),
    Question(
        "10-q2",
        "You change the embedder. What becomes of the threshold?",
        (
            Option("It stays: a cosine is a cosine.", "The same two texts have another cosine in another model."),
            Option("It is found anew, on labelled pairs of your own texts.", "And for each language.", right=True),
            Option("It is scaled by the number of dimensions.", "What a model calls near has no such law."),
        ),
    ),
    Question(
        "10-q3",
        "A person asks for an amount that was never said, about a bill that was talked about. What does the gate do?",
        (
            Option("It stays shut, since nothing answers.", "The gate measures likeness of topic, not an answer."),
            Option(
                "It is likely to open: the bill is what the question is about.",
                "Near misses pass more often than answers do. Whether the answer is there, the reader has to see.",
                right=True,
            ),
            Option("It warns.", "It warns about another embedder's threshold, and about nothing else."),
        ),
    ),
    Question(
        "10-q4",
        "Why does 成语接龙 find 今天玩成语接龙游戏 without a dictionary?",
        (
            Option("Because the embedder knows the game.", "BM25 has no embedder."),
            Option(
                "Because pairs of neighbouring characters are counted.", "成语, 语接, 接龙 are in both.", right=True
            ),
            Option("Because the sentence is cut into words.", "No one cuts it. That would take a dictionary."),
        ),
    ),
    Question(
        "10-q5",
        "Your threshold was calibrated on the same questions that you report its precision for. What is wrong?",
        model_answer="The threshold was chosen because it looks best on just these questions, which is partly chance. "
        "On other people it does worse, and how much worse differs from split to split. Find it on some people, report "
        "it for others, and repeat that with several splits.",
    ),
)
