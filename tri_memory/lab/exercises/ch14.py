"""Chapter 14: a prompt under a budget, a reward out of the next message, and what a log of traces tells."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from tri_memory.agent.feedback import Signal, implicit
from tri_memory.agent.trace import TurnTrace
from tri_memory.lab.exercises.ch14_log import a_turn, judge_log
from tri_memory.lab.exercises.ch14_quiz import QUESTIONS
from tri_memory.lab.exercises.kit import Wrong, exercise, self_test

Count = Callable[[str], int]
Packed = tuple[list[str], list[str]]
WORDS = "boots size 42 鞋码 不要 orange parcel 周三 returns Quarry Lane 订单 zip".split()


@exercise(
    "14-1",
    "A prompt under a budget",
    dots=2,
    minutes=15,
    hints=(
        "What do system text and question cost before the first memory is in? And what may happen to an item that "
        "doesn't fit: cut, passed over, or the end?",
        "The room for memories is the budget less count(system) and count(question). Go through them best first; the "
        "first that doesn't fit ends it, and is left out with all behind it.",
        "Of the kept ones, kept[::2] come first and kept[1::2][::-1] last: the best at one edge, the second best at "
        "the other.",
    ),
)
def pack(function: Callable[[str, list[str], str, int, Count], Packed], rng: random.Random) -> None:
    for turn in range(60):
        system, question = "Be kind and brief.", f"Which {rng.choice(WORDS)}, please?"
        memories = [f"{i}: {' '.join(rng.choices(WORDS, k=rng.randrange(1, 9)))}" for i in range(rng.randrange(2, 9))]
        weight = rng.randrange(1, 4)

        def count(text: str, weight: int = weight) -> int:
            return weight * len(text.split()) + 1

        always, costs = count(system) + count(question), [count(memory) for memory in memories]
        kept = rng.randrange(len(memories) + 1)
        spare = rng.randrange(costs[kept]) if kept < len(memories) and turn % 3 else 0
        budget = always + sum(costs[:kept]) + spare
        if turn % 10 == 9:
            budget = always - 1
        _judge_pack(
            function(system, list(memories), question, budget, count), system, memories, question, budget, count
        )


def _judge_pack(got: Any, system: str, memories: list[str], question: str, budget: int, count: Count) -> None:
    if not (isinstance(got, tuple) and len(got) == 2 and all(isinstance(part, list) for part in got)):
        raise Wrong(f"It should return two lists, the prompt's lines and what was left out; got {str(got)[:80]}.")
    lines, left_out = got
    if lines[:1] != [system] or lines[-1:] != [question] or len(lines) < 2:
        raise Wrong(f"The system text stands first and the question last, whatever the budget; got {str(lines)[:90]}.")
    inside, tokens = lines[1:-1], sum(map(count, lines))
    if strangers := [line for line in [*inside, *left_out] if line not in memories]:
        raise Wrong(f"A memory goes in whole or not at all; this is none of the memories: {str(strangers[0])[:60]!r}.")
    if tokens > budget and inside:
        raise Wrong(f"Over budget: {tokens} tokens, and the budget is {budget}. System text and question cost, too.")
    if sorted([*inside, *left_out]) != sorted(memories):
        raise Wrong(
            f"{len(memories)} memories, {len(inside)} in the prompt, {len(left_out)} said to be left out: each belongs "
            "in one of the two."
        )
    wanted = memories[: _fitting(memories, budget - count(system) - count(question), count)]
    _judge_choice(inside, wanted, memories)
    expected = [*wanted[::2], *wanted[1::2][::-1]]
    if inside != expected:
        if inside == wanted:
            raise Wrong("In order of rank: the second best stands second, and the worst next to the question.")
        raise Wrong(
            f"The best stands first, the second best last, and so on inwards: "
            f"{[memories.index(m) for m in expected]}; yours is {[memories.index(m) for m in inside]}."
        )
    if left_out != memories[len(wanted) :]:
        raise Wrong("What is left out is listed best first, too.")


def _fitting(memories: Sequence[str], room: int, count: Count) -> int:
    for place, memory in enumerate(memories):
        room -= count(memory)
        if room < 0:
            return place
    return len(memories)


def _judge_choice(inside: list[str], wanted: list[str], memories: list[str]) -> None:
    if set(inside) == set(wanted):
        return
    if set(inside) < set(wanted):
        raise Wrong(f"There is room for the best {len(wanted)} memories, to the last token; {len(inside)} are in.")
    first_out = next(memory for memory in memories if memory not in inside)
    behind = next(memory for memory in memories if memory in inside and memory not in wanted)
    raise Wrong(
        f"Memory {memories.index(first_out)} was passed over and memory {memories.index(behind)}, a worse one, taken. "
        "The prompt holds the longest beginning of the ranking that fits: then a larger budget only adds."
    )


PRAISE = ("size: 42",)
AGAIN = "“{}” asks the same again: the answer was no good. -0.1, not {}."
BARE = "“{}” has no new word, and corrects all the same: -0.2, not {}. Only a question can be asked again."
POLITE = "“{}” is politeness and says nothing about the memories. 0, not {}."
# (asked, then, memories, reward, what to say where another is given)
CASES: tuple[tuple[str, str, tuple[str, ...], float, str], ...] = (
    ("Which size do I wear?", "And is 42 in stock?", PRAISE, 0.1, "“{}” asks on: +0.1, not {}."),
    ("我穿几码？", "42码还有货吗？", ("尺码: 42码",), 0.1, "“{}” asks on: +0.1, not {}."),
    ("Which size do I wear?", "Who won the cup final?", PRAISE, -0.1, "“{}” changes the subject: -0.1, not {}."),
    ("我穿几码？", "谁赢了决赛？", ("尺码: 42码",), -0.1, "“{}” changes the subject: -0.1, not {}."),
    ("Which size do I wear?", "No, that was my old size.", PRAISE, -0.2, "“{}” corrects: -0.2, not {}."),
    ("我穿几码？", "不对，我穿43码", ("尺码: 42码",), -0.2, "“{}” corrects: -0.2, not {}."),
    ("Which size do I wear?", "No.", PRAISE, -0.2, BARE),
    ("我穿几码？", "不对", ("尺码: 42码",), -0.2, BARE),
    ("Which size do I wear?", "Thanks, that's great!", PRAISE, 0.0, POLITE),
    ("我穿几码？", "太好了，谢谢！", ("尺码: 42码",), 0.0, POLITE),
    ("Which size do I wear?", "No thanks.", PRAISE, 0.0, POLITE),
    ("Which size do I wear?", "I bought a lamp.", PRAISE, 0.0, "“{}” is a statement: 0, not {}."),
    ("Which size do I wear?", "", PRAISE, 0.0, "Nothing was said after it {}: 0, not {}."),
    ("Which size do I wear?", "Thanks! Is size 42 in stock?", PRAISE, 0.1, "“{}” thanks and asks on: +0.1, not {}."),
    (
        "Which size do I wear?",
        "Thanks, but that was my old size.",
        PRAISE,
        -0.2,
        "“{}” thanks and corrects: -0.2, not {}.",
    ),
    ("我穿几码？", "谢谢，不过那是以前的尺码", ("尺码: 42码",), -0.2, "“{}” thanks and corrects: -0.2, not {}."),
    ("Which size do I wear?", "Which size do I wear?", PRAISE, -0.1, AGAIN),
    ("Which size do I wear?", "Please, what is my size?", PRAISE, -0.1, AGAIN),
    ("我穿几码？", "请问我穿几码？", ("尺码: 42码",), -0.1, AGAIN),
    ("Which size do I wear?", "And is 42 in stock?", (), 0.0, "No memory was in the prompt, and “{}” gave {}: 0."),
    ("Which size do I wear?", "No, that is wrong.", (), 0.0, "No memory was in the prompt, and “{}” gave {}: 0."),
)


@exercise(
    "14-2",
    "A reward out of the next message",
    dots=2,
    minutes=15,
    hints=(
        "Which of the sentences in the docstring does implicit decide already, and which two does it not know?",
        "implicit(asked, then, memories) gives a signal or None; REWARDS has its number, None is 0. Without memories "
        "it is 0 as well. That leaves the question that was asked before.",
        "Where the signal is 'relevant' and terms(then) <= terms(asked), nothing new was asked: 'irrelevant'. "
        "Corrections keep their signal: “No.” has no new word either.",
    ),
)
def reward(function: Callable[[str, str, list[str]], float], rng: random.Random) -> None:
    size = str(rng.choice((38, 39, 40, 41, 44)))
    for asked, now, known, expected, explained in CASES:
        then, memories = now.replace("42", size), [memory.replace("42", size) for memory in known]
        got = _rewarded(function, asked, then, memories)
        if got != expected and memories and got == -0.1 and implicit(asked, then) == "irrelevant" and expected > 0:
            raise Wrong(f"“{then}” takes up a word of the memory, not of the question: pass memories to implicit.")
        if isinstance(got, bool) or not isinstance(got, int | float):
            raise Wrong(f"A reward is a number, such as 0.1; got {str(got)[:60]!r} for “{then}”.")
        if not math.isclose(got, expected, abs_tol=1e-9):
            raise Wrong(explained.format(then, f"{got:g}"))


def _rewarded(function: Callable[[str, str, list[str]], float], asked: str, then: str, memories: list[str]) -> Any:
    try:
        return function(asked, then, memories)
    except KeyError as failed:
        if failed.args != (None,):
            raise
        raise Wrong(
            f"“{then}” says nothing: implicit gives None, and REWARDS has no number for None. It is 0."
        ) from None


@exercise(
    "14-3",
    "What the traces tell",
    dots=3,
    minutes=15,
    hints=(
        "Which turns count in the first number, and which in the second? Of 30 latencies, how many may be above P95?",
        "Keep the turns whose trace.error is None, for both numbers. Of 30 sorted latencies P95 is the 29th: 28 are "
        "93 %. The share divides by all turns with memory, also those after which nobody said anything.",
        "sorted(ms)[ceil(95 * n / 100) - 1]; used = the signals of turns with trace.memory_used; useless are those in "
        "('irrelevant', 'wrong', 'unhelpful'); divide by len(used), which may be 0.",
    ),
)
def judged(
    function: Callable[[list[tuple[TurnTrace, Signal | None]]], tuple[float, float]], rng: random.Random
) -> None:
    for number in range(40):
        turns = [a_turn(rng, never_used=number == 38) for _ in range(rng.choice((1, 7, 19, 30, 57, 83)))]
        judge_log(function(list(turns)), turns)
    judge_log(function([]), [])


self_test("14", *QUESTIONS)
