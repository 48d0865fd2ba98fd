"""Chapter 15: nDCG by hand, a ranker that keeps the contract, and what is wrong with an evaluation."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable

from tri_memory.contracts import shown
from tri_memory.lab.chapters.ch15 import studies
from tri_memory.lab.chapters.ch15.studies import LEAKED, TUNED, UNCOMPARED, Study
from tri_memory.lab.exercises.ch15_quiz import QUESTIONS
from tri_memory.lab.exercises.ch15_ranker import judge
from tri_memory.lab.exercises.kit import Wrong, exercise, self_test
from tri_memory.lab.metrics import ndcg
from tri_memory.lab.rankers import Ranker


@exercise(
    "15-1",
    "nDCG by hand",
    dots=1,
    minutes=10,
    hints=(
        "Places count from 1. A hit at place i is worth 1 / log2(1 + i), so the first place is worth 1.",
        "Add up the hits among the first k. The best order has its hits at places 1, 2, 3 … as many as can be.",
        "There can be min(k, len(gold)) hits: divide by sum(1 / log2(1 + i) for i in 1 … min(k, len(gold))).",
    ),
)
def ndcg_by_hand(function: Callable[[list[str], set[str], int], float], rng: random.Random) -> None:
    cases = [(["a", "b", "c"], {"a", "b"}, 3), (["x", "a"], {"a"}, 2), (["a", "x", "y", "b"], {"a", "b", "c"}, 2)]
    pool = [f"m{i}" for i in range(12)]
    for _ in range(60):
        ranked = rng.sample(pool, rng.randrange(1, 10))
        cases.append((ranked, set(rng.sample(pool, rng.randrange(1, 6))), rng.randrange(1, 8)))
    try:
        got = [_number(function(list(ranked), set(gold), k)) for ranked, gold, k in cases]
    except ZeroDivisionError:
        raise Wrong(
            "It divides by 0. Places count from 1: counted from 0, the first is discounted by log2(1 + 0), which is 0."
        ) from None
    expected = [ndcg(ranked, gold, k) for ranked, gold, k in cases]
    wrong = next((i for i, (one, other) in enumerate(zip(got, expected, strict=True)) if not _same(one, other)), None)
    if wrong is None:
        return
    ranked, gold, k = cases[wrong]
    what = f"ranked={ranked}, gold={sorted(gold)}, k={k}: expected {expected[wrong]:.3f}, got {got[wrong]:.3f}."
    for why, mistaken in _MISTAKES.items():
        if all(_same(one, mistaken(*_places(*case))) for one, case in zip(got, cases, strict=True)):
            raise Wrong(f"{why} {what}")
    raise Wrong(f"Not the discounted gain of the first k, divided by that of the best order. {what}")


def _number(got: object) -> float:
    if isinstance(got, bool) or not isinstance(got, int | float):
        raise Wrong(f"It should return one number; it returned {shown(got)}.")
    return float(got)


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, abs_tol=1e-9)


def _places(ranked: list[str], gold: set[str], k: int) -> tuple[list[int], int, int]:
    """The places of all hits, how much gold there is, and k."""
    return [place for place, one in enumerate(ranked, start=1) if one in gold], len(gold), k


def _gain(places: Iterable[int], k: int = 99) -> float:
    return sum(1 / math.log2(1 + place) for place in places if place <= k)


def _over(gained: float, best: float) -> float:
    return gained / best if best else 0.0


def _by_place(hits: list[int], gold: int, k: int) -> float:
    return _over(sum(1 / place for place in hits if place <= k), sum(1 / i for i in range(1, min(k, gold) + 1)))


_MISTAKES: dict[str, Callable[[list[int], int, int], float]] = {
    "The sum is not divided by what the best order would have got.": lambda hits, gold, k: _gain(hits, k),
    "A hit is divided by its place itself, as in a reciprocal rank. Here by log2(1 + place).": _by_place,
    "The best order has a hit at each of the k places, though there is less gold than that.": (
        lambda hits, gold, k: _over(_gain(hits, k), _gain(range(1, k + 1)))
    ),
    "The best order puts all gold first, though only k places count.": (
        lambda hits, gold, k: _over(_gain(hits, k), _gain(range(1, gold + 1)))
    ),
    "The best order is made of what was found. What was missed must cost something.": (
        lambda hits, gold, k: _over(_gain(hits, k), _gain(range(1, sum(place <= k for place in hits) + 1)))
    ),
    "Hits behind the first k count, and they should not.": (
        lambda hits, gold, k: _over(_gain(hits), _gain(range(1, min(k, gold) + 1)))
    ),
}


@exercise(
    "15-2",
    "A ranker of your own",
    dots=2,
    minutes=15,
    hints=(
        "Work once for the history, outside ask: what words has each of history.texts? ask only compares and sorts.",
        "tokens(text) of recall/lexical.py cuts English and Chinese. Count how many of the question's a memory shares.",
        "shared = [len(wanted & own) for own in terms]; return sorted(range(len(shared)), key=lambda m: -shared[m]).",
    ),
)
def ranker_of_ones_own(ranker: Ranker, rng: random.Random) -> None:
    judge(ranker, rng)


@exercise(
    "15-3",
    "What is wrong with this evaluation",
    dots=3,
    minutes=15,
    hints=(
        "One set to start with: found = set(). Three questions, each answered from the study alone.",
        "TUNED is about people: {one.user_id for one in study.tuned_on} against those of reported_on. For LEAKED, fold "
        "both texts with casefold() and look for the one inside the other.",
        "UNCOMPARED where {'newest', 'everything'} and set(study.methods) have nothing in common. LEAKED where any "
        "reported question stands inside any memory.",
    ),
)
def audit(function: Callable[[Study], Iterable[str]], rng: random.Random) -> None:
    for _ in range(40):
        study, expected = studies.draw(rng)
        got = function(study)
        if got is None or isinstance(got, str) or not isinstance(got, Iterable):
            raise Wrong(f"It should return the faults as a set; it returned {shown(got)}.")
        faults = set(got)
        if unknown := faults - {TUNED, LEAKED, UNCOMPARED}:
            raise Wrong(f"The faults are TUNED, LEAKED and UNCOMPARED; it returned {shown(unknown)}.")
        for fault in sorted(faults ^ expected):
            raise Wrong(_why(study, fault, missed=fault in expected))


def _why(study: Study, fault: str, *, missed: bool) -> str:
    if fault == UNCOMPARED:
        return f"{'Nothing' if missed else 'Something'} to compare with: methods are {', '.join(study.methods)}. " + (
            "A name that only resembles a baseline is none." if missed else "That has a baseline in it."
        )
    if fault == TUNED:
        both = sorted({one.user_id for one in study.tuned_on} & {one.user_id for one in study.reported_on})
        return (
            f"Tuned on {', '.join(both)}, and reported on questions of the same. Other questions of one person are no "
            "other people: their words and topics are known already."
            if missed
            else "Nobody whose questions were tuned on is reported, so that is no fault here."
        )
    if missed:
        return (
            "A reported question stands in a memory, and whoever asks it finds that memory first. It may stand inside "
            "a longer text, and in other capitals."
        )
    return "What lies in the memories is a question that is not reported. It takes up room, but it gives nothing away."


self_test("15", *QUESTIONS)
