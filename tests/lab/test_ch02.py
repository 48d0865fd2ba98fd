"""Chapter 02: its checkers tell right from wrong, and its panel counts what the classes do."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from tests.lab.proof import assert_proved
from tests.virtual_time import VirtualTimeLoop
from tri_memory.lab.chapters.ch02 import orders, panel, writers


def lost_by_removing(sent, stored):
    rest = list(sent)
    for text in stored:
        rest.remove(text)
    return sorted(rest)


def lost_as_a_set(sent, stored):
    return sorted(set(sent) - set(stored))


def lost_unsorted(sent, stored):
    return list((Counter(sent) - Counter(stored)).elements())[::-1]


def lost_eating_its_input(sent, stored):
    for text in stored:
        sent.remove(text)
    return sorted(sent)


def commit_by_comparing_each(history, planned, summary):
    same = len(history) >= len(planned) and all(a == b for a, b in zip(history, planned, strict=False))
    return [summary, *history[len(planned) :]] if same else history[:]


def commit_unchecked(history, planned, summary):
    return [summary, *history[len(planned) :]]


def commit_only_the_summary(history, planned, summary):
    return [summary] if history[: len(planned)] == planned else list(history)


def commit_in_place(history, planned, summary):
    if history[: len(planned)] == planned:
        history[: len(planned)] = [summary]
    return history


async def fold_without_finally(state, summarize):
    if not state.folding:
        state.folding = True
        state.summary = await summarize(state.turns)
        state.folding = False


async def fold_without_a_flag(state, summarize):
    state.summary = await summarize(state.turns)


async def fold_once_for_ever(state, summarize):
    if state.folding:
        return
    state.folding = True
    state.summary = await summarize(state.turns)


async def fold_swallowing_the_error(state, summarize):
    if state.folding:
        return
    state.folding = True
    try:
        state.summary = await summarize(state.turns)
    except Exception:
        state.summary = None
    finally:
        state.folding = False


def test_exercise_02_1_is_proved():
    assert_proved(
        "02-1",
        right=[lost_by_removing],
        wrong={
            lost_as_a_set: "Repeats are miscounted",
            lost_unsorted: "not sorted",
            lost_eating_its_input: "changes the lists",
        },
    )


def test_exercise_02_2_is_proved():
    assert_proved(
        "02-2",
        right=[commit_by_comparing_each],
        wrong={
            commit_unchecked: "Another summary is there already",
            commit_only_the_summary: "Only the summary is left",
            commit_in_place: "changes the history",
        },
    )


def test_exercise_02_3_is_proved():
    assert_proved(
        "02-3",
        right=[fold_swallowing_the_error],
        wrong={
            fold_without_finally: "After a summariser that raises",
            fold_without_a_flag: "summaries written and paid for",
            fold_once_for_ever: "the flag stays up",
        },
    )


def test_four_of_six_orders_lose_a_racing_append_and_no_order_loses_a_committed_one():
    assert (orders.table(orders.two_racing_appends, 2, 2).lost != "").sum() == 4
    committed = orders.table(lambda order: orders.fold_beside_two_appends(order, commit=True), 2, 1, 1)
    assert len(committed) == 12
    assert (committed.lost == "").all()


@pytest.mark.parametrize("summary_s", [0, 0.5, 5.5, 9.5])
@pytest.mark.parametrize("writer", list(writers.WRITERS))
def test_the_panel_counts_what_the_classes_do(writer, summary_s):
    counted = {line.writer: line for line in panel.race(summary_s=summary_s, gap_s=1.0)}[writer]
    turns = writers.numbered_turns(panel.TURNS)
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        found = runner.run(writers.deliver(writer, turns, summary_s=summary_s, gap_s=1.0, jitter=0))
    gone = [turns[i] for i, moment in enumerate(counted.stored) if moment is None]
    assert list(found.lost) == gone
    assert found.summaries == len(counted.summaries)


def test_nothing_is_lost_by_anybody_when_the_summary_is_instant():
    assert [line.lost for line in panel.race(summary_s=0, gap_s=1)] == [0, 0, 0]


def test_the_panel_follows_its_sliders():
    shown = panel.race_panel()
    before = shown.png, shown.text
    shown.set(summary_s=12)
    assert shown.png != before[0]
    assert shown.text != before[1]
    assert "Racing loses" in shown.view.value
    assert shown.view.value.count("<img") == 1
