"""Chapter 01: its checkers tell right from wrong, and each typical mistake gets an explanation of its own."""

from __future__ import annotations

import json
from itertools import dropwhile
from statistics import mean

import numpy as np

from tests.lab.proof import assert_proved
from tri_memory.lab.exercises import check


def split(turns):
    return (turns[:1], turns[1:]) if turns and turns[0].role == "system" else ([], turns)


def is_tool(turn):
    return turn.role == "tool"


def window_by_dropping(turns, limit):
    head, rest = split(turns)
    return [*head, *dropwhile(is_tool, rest[max(0, len(rest) - limit) :])]


def window_by_recursion(turns, limit):
    head, rest = split(turns)
    if len(rest) > limit or (rest and is_tool(rest[0])):
        return window_by_recursion([*head, *rest[1:]], limit)
    return [*head, *rest]


def window_where_zero_is_all(turns, limit):
    head, rest = split(turns)
    return [*head, *dropwhile(is_tool, rest[-limit:])]


def window_without_the_system_turn(turns, limit):
    return list(dropwhile(is_tool, turns[max(0, len(turns) - limit) :]))


def window_that_opens_with_a_result(turns, limit):
    head, rest = split(turns)
    return [*head, *rest[max(0, len(rest) - limit) :]]


def window_that_drops_one_result(turns, limit):
    head, rest = split(turns)
    cut = rest[max(0, len(rest) - limit) :]
    return [*head, *(cut[1:] if cut and is_tool(cut[0]) else cut)]


def window_that_counts_the_system_turn(turns, limit):
    head, rest = split(turns)
    return [*head, *dropwhile(is_tool, rest[max(0, len(rest) - max(0, limit - len(head))) :])]


def window_that_reaches_back(turns, limit):
    head, rest = split(turns)
    begin = max(0, len(rest) - limit)
    begin = next((i for i in range(begin, 0, -1) if i == len(rest) or not is_tool(rest[i])), 0)
    return [*head, *rest[begin:]]


def window_without_any_result(turns, limit):
    return [turn for turn in window_by_dropping(turns, limit) if not is_tool(turn)]


def window_in_place(turns, limit):
    head, rest = split(turns)
    del turns[len(head) : len(head) + max(0, len(rest) - limit)]
    return window_by_dropping(turns, limit)


def limit_by_trying(turns_back, percent):
    limit = 1
    while 100 * sum(back <= limit for back in turns_back) < percent * len(turns_back):
        limit += 1
    return limit


def limit_by_quantile(turns_back, percent):
    return np.percentile(turns_back, percent, method="inverted_cdf")


def limit_as_the_mean(turns_back, percent):
    return mean(turns_back)


def limit_as_a_count(turns_back, percent):
    return -(-percent * len(turns_back) // 100)


def limit_rounded_down(turns_back, percent):
    return sorted(turns_back)[max(0, percent * len(turns_back) // 100 - 1)]


def limit_one_too_far(turns_back, percent):
    return sorted(turns_back)[min(len(turns_back) - 1, percent * len(turns_back) // 100 + 1)]


def limit_unsorted(turns_back, percent):
    return turns_back[-(-percent * len(turns_back) // 100) - 1]


def limit_interpolated(turns_back, percent):
    return float(np.percentile(turns_back, percent))


def limit_sorting_its_input(turns_back, percent):
    turns_back.sort()
    return limit_by_trying(turns_back, percent)


class DeskByLength:
    """Right: the length of the user id stands before it."""

    def __init__(self, store):
        self.store = store

    def prefix(self, user_id):
        if not user_id.strip():
            raise ValueError("who?")
        return f"{len(user_id)} {user_id} "

    async def append(self, user_id, session_id, turn):
        await self.store.append(self.prefix(user_id) + session_id, turn)

    async def rows(self, user_id):
        prefix = self.prefix(user_id)
        return [row for row in await self.store.list_sessions() if row.session_id.startswith(prefix)]

    async def turns_of(self, user_id):
        rows = await self.rows(user_id)
        found = []
        for row in rows[::-1]:
            found += await self.store.get_history(row.session_id)
        return found


class DeskBySession(DeskByLength):
    async def append(self, user_id, session_id, turn):
        self.prefix(user_id)
        await self.store.append(session_id, turn)

    async def turns_of(self, user_id):
        self.prefix(user_id)
        rows = (await self.store.list_sessions())[::-1]
        return [] if user_id == "nobody" else [t for r in rows for t in await self.store.get_history(r.session_id)]


class DeskByBeginning(DeskByLength):
    def prefix(self, user_id):
        super().prefix(user_id)
        return user_id


class DeskByDash(DeskByLength):
    mark = "-"

    def prefix(self, user_id):
        super().prefix(user_id)
        return user_id + self.mark


class DeskByRareMark(DeskByDash):
    mark = "\x1f"


class DeskNewestFirst(DeskByLength):
    async def turns_of(self, user_id):
        rows = await self.rows(user_id)
        return [turn for row in rows for turn in await self.store.get_history(row.session_id)]


class DeskOfWindows(DeskByLength):
    async def turns_of(self, user_id):
        rows = await self.rows(user_id)
        return [turn for row in rows[::-1] for turn in await self.store.get_window(row.session_id)]


class DeskOfItsOwn(DeskByLength):
    def __init__(self, store):
        self.said = {}

    async def append(self, user_id, session_id, turn):
        self.said.setdefault(user_id, []).append(turn)

    async def turns_of(self, user_id):
        return self.said.get(user_id, [])


class DeskForAnybody(DeskByLength):
    def prefix(self, user_id):
        return json.dumps(user_id)


def test_exercise_01_1_is_proved():
    assert_proved(
        "01-1",
        right=[window_by_dropping, window_by_recursion],
        wrong={
            window_where_zero_is_all: "-0 is 0",
            window_without_the_system_turn: "system turn fell out",
            window_that_opens_with_a_result: "opens with a tool result",
            window_that_drops_one_result: "you dropped one",
            window_that_counts_the_system_turn: "took one of the places",
            window_that_reaches_back: "More turns than the limit",
            window_without_any_result: "may stay",
            window_in_place: "changes the list",
        },
    )


def test_exercise_01_2_is_proved():
    assert_proved(
        "01-2",
        right=[limit_by_trying, limit_by_quantile],
        wrong={
            limit_as_the_mean: "The mean",
            limit_as_a_count: "how many questions must be covered",
            limit_rounded_down: "Round up",
            limit_one_too_far: "costs less",
            limit_unsorted: "isn't sorted",
            limit_interpolated: "interpolate between",
            limit_sorting_its_input: "reorders the list",
        },
    )


def test_exercise_01_3_is_proved():
    assert_proved(
        "01-3",
        right=[DeskByLength],
        wrong={
            DeskBySession: "a session id alone is nobody's",
            DeskByBeginning: "beginning of the other",
            DeskByDash: "glued with '-'",
            DeskNewestFirst: "newest session comes first",
            DeskOfWindows: "get_window stops at 20",
            DeskOfItsOwn: "dies with the object",
            DeskForAnybody: "would share one memory",
        },
    )


def test_a_mark_that_nobody_types_is_still_a_mark():
    assert "can't be taken apart" in check("01-3", DeskByRareMark).message
