"""The exercises of chapter 14: right answers pass, each typical mistake is named."""

from __future__ import annotations

import math
import statistics

import numpy as np

from tests.lab.proof import assert_proved
from tri_memory.agent.feedback import REWARDS, implicit
from tri_memory.agent.matching import terms
from tri_memory.agent.sentences import is_question
from tri_memory.lab.exercises.ch14_log import USELESS


def edged(kept):
    front, back = [], []
    for place, memory in enumerate(kept):
        (back if place % 2 else front).append(memory)
    return front + back[::-1]


def packed(arrange=edged, room=0, skip=False, left=lambda rest: rest, always=True, cut=False):
    def pack(system, memories, question, budget, count):
        free = budget - (count(system) + count(question)) * always + room
        kept = []
        for memory in memories:
            if count(memory) > free:
                if cut:
                    kept.append(memory[: len(memory) // 2])
                if not skip:
                    break
            else:
                free -= count(memory)
                kept.append(memory)
        return [system, *arrange(kept), question], left([memory for memory in memories if memory not in kept])

    return pack


def pack_by_sums(system, memories, question, budget, count):
    sums = [count(system) + count(question) + sum(map(count, memories[:n])) for n in range(len(memories) + 1)]
    n = max([n for n, total in enumerate(sums) if total <= budget], default=0)
    return [system, *edged(memories[:n]), question], memories[n:]


def pack_one_list(system, memories, question, budget, count):
    return packed()(system, memories, question, budget, count)[0]


def pack_question_first(system, memories, question, budget, count):
    lines, left_out = packed()(system, memories, question, budget, count)
    return [system, question, *lines[1:-1]], left_out


def pack_nothing_when_tight(system, memories, question, budget, count):
    lines, left_out = packed()(system, memories, question, budget, count)
    return ([], memories) if count(system) + count(question) > budget else (lines, left_out)


def test_exercise_14_1_is_proved():
    assert_proved(
        "14-1",
        right=[packed(), pack_by_sums],
        wrong={
            pack_one_list: "It should return two lists",
            pack_question_first: "The system text stands first and the question last",
            packed(always=False): "Over budget",
            packed(cut=True): "A memory goes in whole or not at all",
            packed(left=lambda rest: []): "each belongs in one of the two",
            packed(skip=True): "was passed over",
            packed(room=-1): "to the last token",
            packed(arrange=list): "In order of rank",
            packed(arrange=lambda kept: edged(kept)[::-1]): "The best stands first, the second best last",
            packed(left=lambda rest: rest[::-1]): "What is left out is listed best first",
        },
    )


def test_a_prompt_that_is_empty_when_even_the_question_is_too_long_is_told_so():
    from tri_memory.lab.exercises import check

    verdict = check("14-1", pack_nothing_when_tight)
    assert not verdict.passed
    assert "whatever the budget" in verdict.message


def rewarded(again=True, unused=True, number=lambda signal: REWARDS[signal] if signal else 0.0):
    def reward(asked, then, memories):
        if unused and not memories:
            return 0.0
        signal = implicit(asked, then, memories)
        if again and signal == "relevant" and not terms(then) - terms(asked):
            signal = "irrelevant"
        return number(signal)

    return reward


def reward_by_table(asked, then, memories):
    if not memories or implicit(asked, then, memories) is None:
        return 0
    signal = implicit(asked, then, memories)
    table = {"wrong": -0.2, "irrelevant": -0.1, "relevant": -0.1 if terms(then) <= terms(asked) else 0.1}
    return table[signal]


def reward_of_thanks(asked, then, memories):
    if memories and implicit(asked, then, memories) is None and ("hank" in then or "谢" in then):
        return 0.2
    return rewarded()(asked, then, memories)


def reward_no_thanks_no_praise(asked, then, memories):
    return 0.0 if "hank" in then or "谢" in then else rewarded()(asked, then, memories)


def reward_any_question(asked, then, memories):
    return 0.1 if memories and is_question(then) else rewarded()(asked, then, memories)


def reward_again_before_corrections(asked, then, memories):
    if not memories or not then:
        return 0.0
    return -0.1 if terms(then) <= terms(asked) and "hank" not in then else rewarded()(asked, then, memories)


def reward_without_memories(asked, then, memories):
    signal = implicit(asked, then) if memories else None
    return REWARDS[signal] if signal else 0.0


def reward_none(asked, then, memories):
    return REWARDS[implicit(asked, then, memories)] if memories else 0.0


def reward_signal(asked, then, memories):
    return implicit(asked, then, memories)


def reward_statements(asked, then, memories):
    return rewarded(number=lambda signal: REWARDS[signal] if signal else 0.1 * then.startswith("I "))(
        asked, then, memories
    )


def reward_silence(asked, then, memories):
    return rewarded(number=lambda signal: REWARDS[signal] if signal else -0.1 * (not then))(asked, then, memories)


def test_exercise_14_2_is_proved():
    assert_proved(
        "14-2",
        right=[rewarded(), reward_by_table],
        wrong={
            reward_of_thanks: "is politeness and says nothing",
            reward_any_question: "changes the subject: -0.1, not 0.1",
            rewarded(again=False): "asks the same again",
            rewarded(unused=False): "No memory was in the prompt",
            reward_signal: "A reward is a number",
            reward_again_before_corrections: "corrects all the same: -0.2, not -0.1",
            reward_without_memories: "pass memories to implicit",
            reward_none: "REWARDS has no number for None",
            reward_statements: "is a statement: 0",
            reward_silence: "Nothing was said after it",
        },
    )


def test_whoever_ignores_all_that_begins_with_thanks_misses_what_stands_behind_it():
    from tri_memory.lab.exercises import check

    verdict = check("14-2", reward_no_thanks_no_praise)
    assert not verdict.passed
    assert "thanks and" in verdict.message


def test_a_correction_that_counts_as_little_as_a_changed_subject_is_told_so():
    from tri_memory.lab.exercises import check

    verdict = check("14-2", rewarded(number=lambda signal: {"relevant": 0.1, None: 0.0}.get(signal, -0.1)))
    assert not verdict.passed
    assert "corrects: -0.2, not -0.1" in verdict.message


def fine(turns):
    return [(trace, signal) for trace, signal in turns if trace.error is None]


def p95(turns):
    ms = sorted(trace.latency_ms for trace, _ in turns)
    return next((x for x in ms if 100 * sum(y <= x for y in ms) >= 95 * len(ms)), 0.0)


def share(turns, useless=USELESS, of=None):
    used = [signal for trace, signal in turns if trace.memory_used]
    whole = len(used) if of is None else of(turns, used)
    return sum(signal in useless for signal in used) / whole if whole else 0.0


def log(latency=lambda turns: p95(fine(turns)), useless=lambda turns: share(fine(turns))):
    def judged(turns):
        return latency(turns), useless(turns)

    return judged


def judged_by_loop(turns):
    ms, used, bad = [], 0, 0
    for trace, signal in turns:
        if not trace.error:
            ms.append(trace.latency_ms)
            used += trace.memory_used
            bad += trace.memory_used and signal in {"irrelevant", "unhelpful", "wrong"}
    ms.sort()
    return (ms[math.ceil(95 * len(ms) / 100) - 1] if ms else 0.0), (bad / used if used else 0.0)


def mean(turns):
    ms = [trace.latency_ms for trace, _ in fine(turns)]
    return statistics.mean(ms) if ms else 0.0


def slowest(turns):
    return max((trace.latency_ms for trace, _ in fine(turns)), default=0.0)


def median(turns):
    ms = [trace.latency_ms for trace, _ in fine(turns)]
    return statistics.median(ms) if ms else 0.0


def with_the_answer(turns):
    ms = sorted(trace.latency_ms + trace.answer_ms for trace, _ in fine(turns))
    return ms[math.ceil(95 * len(ms) / 100) - 1] if ms else 0.0


def rounded_down(turns):
    ms = sorted(trace.latency_ms for trace, _ in fine(turns))
    return ms[max(0, int(0.95 * len(ms)) - 1)] if ms else 0.0


def between_two(turns):
    ms = [trace.latency_ms for trace, _ in fine(turns)]
    return float(np.percentile(ms, 95)) if ms else 0.0


def of_any_turn(turns):
    its = fine(turns)
    return sum(signal in USELESS for _, signal in its) / len(its) if its else 0.0


def only_the_share(turns):
    return share(fine(turns))


def never_empty(turns):
    return log()(turns) if turns else (float("nan"), 0.0)


def test_exercise_14_3_is_proved():
    assert_proved(
        "14-3",
        right=[log(), judged_by_loop],
        wrong={
            only_the_share: "It should return two numbers",
            log(latency=p95): "Turns that failed are in it",
            log(latency=mean): "ms is the mean",
            log(latency=slowest): "ms is the slowest of",
            log(latency=median): "P95 should be",
            log(useless=lambda turns: share(fine(turns), (*USELESS, None))): "Silence is no judgement",
            log(useless=lambda turns: share(fine(turns), of=lambda its, used: len(its))): "The share is of the turns",
            log(useless=of_any_turn): "Turns without memory are in it",
            log(
                useless=lambda turns: share(fine(turns), of=lambda its, used: sum(s is not None for s in used))
            ): "also of those after which nobody said anything",
            log(useless=lambda turns: share(fine(turns), USELESS[:2])): "'unhelpful' was said outright",
            log(useless=share): "Turns that failed are in the share",
            log(useless=lambda turns: 100 * share(fine(turns))): "no per cent",
            log(useless=lambda turns: share(fine(turns), ("wrong",))): "not only wrong ones",
            log(useless=lambda turns: share(fine(turns)) + 0.01): "The share of useless memory should be",
            log(latency=with_the_answer): "has the model's answer in it",
            log(latency=rounded_down): "fewer than 95 %. Round up",
            log(latency=between_two): "lies between two measured latencies",
            never_empty: "Without turns both numbers are 0",
        },
    )
