"""Chapter 06: its checkers tell right from wrong, on each engine that this machine has."""

from __future__ import annotations

import asyncio
import html

from tests.lab.proof import assert_proved
from tri_memory.agent.prompt import preferences_text
from tri_memory.lab.exercises import ch06_everywhere, check
from tri_memory.preference.rules import clean


async def announce_by_the_rules(store, user, key, value):
    pair = clean(key, value)
    if pair is None:
        return "dropped"
    before = (await store.all(user)).get(pair[0])
    await store.set(user, key, value)
    return "new" if before is None else "same" if before == pair[1] else "changed"


async def announce_comparing_what_was_sent(store, user, key, value):
    before = await store.get(user, key)
    if not await store.set(user, key, value):
        return "dropped"
    return "new" if before is None else "same" if before == value else "changed"


async def announce_reading_too_late(store, user, key, value):
    if not await store.set(user, key, value):
        return "dropped"
    return "same" if await store.get(user, key) else "new"


async def announce_without_the_answer_of_set(store, user, key, value):
    before = await store.get(user, key)
    await store.set(user, key, value)
    after = await store.get(user, key)
    return "new" if before is None else "same" if before == after else "changed"


async def announce_and_write_nothing(store, user, key, value):
    return "new"


async def announce_in_another_language(store, user, key, value):
    await store.set(user, key, value)
    return "created"


async def merge_from_a_copy(store, user, other):
    if user == other:
        return 0
    own, others = await store.all(user), await store.all(other)
    missing = {key: value for key, value in others.items() if key not in own}
    for key, value in missing.items():
        await store.set(user, key, value)
    await store.forget(other)
    return len(missing)


async def merge_asking_for_each_key(store, user, other):
    taken = 0
    if user != other:
        for key, value in (await store.all(other)).items():
            if await store.get(user, key) is None:
                taken += await store.set(user, key, value)
        await store.forget(other)
    return taken


async def merge_over_everything(store, user, other):
    others = await store.all(other)
    for key, value in others.items():
        await store.set(user, key, value)
    await store.forget(other)
    return len(others)


async def merge_forgetting_first(store, user, other):
    own, others = await store.all(user), await store.all(other)
    missing = {key: value for key, value in others.items() if key not in own}
    if user != other:
        await store.forget(other)
    for key, value in missing.items():
        await store.set(user, key, value)
    return len(missing)


async def merge_that_eats_itself(store, user, other):
    own, others = await store.all(user), await store.all(other)
    missing = {key: value for key, value in others.items() if key not in own}
    for key, value in missing.items():
        await store.set(user, key, value)
    await store.forget(other)
    return len(missing)


async def merge_forgetting_nobody(store, user, other):
    own, others = await store.all(user), await store.all(other)
    for key, value in others.items():
        if key not in own:
            await store.set(user, key, value)
    return len(others.keys() - own.keys())


async def merge_anew(store, user, other):
    if user == other:
        return 0
    own, others = await store.all(user), await store.all(other)
    both = others | own
    for key, value in both.items():
        await store.set("scratch", key, value)
    await store.forget(user)
    for key, value in both.items():
        await store.set(user, key, value)
    await store.forget(other)
    return len(both) - len(own)


def fenced(preferences, escape_key, escape_value):
    lines = [f"- {escape_key(key)}: {escape_value(value)}" for key, value in preferences.items()]
    return "\n".join(['<memory name="preferences">', *lines, "</memory>"]) if lines else ""


def fence_with_quotes_escaped(preferences):
    return fenced(preferences, html.escape, html.escape)


def fence_as_it_is(preferences):
    return fenced(preferences, str, str)


def fence_with_open_keys(preferences):
    return fenced(preferences, str, html.escape)


def fence_without_the_ampersand(preferences):
    return fenced(preferences, *[lambda text: text.replace("<", "&lt;")] * 2)


def fence_escaped_in_the_wrong_order(preferences):
    return fenced(preferences, *[lambda text: text.replace("<", "&lt;").replace("&", "&amp;")] * 2)


def fence_without_any_signs(preferences):
    return fenced(preferences, *[lambda text: text.replace("<", "").replace(">", "")] * 2)


def fence_around_nothing(preferences):
    return fenced(preferences, html.escape, html.escape) or "<memory></memory>"


def fence_on_one_line(preferences):
    return preferences_text(preferences).replace("\n", " ")


def test_exercise_06_1_is_proved():
    assert_proved(
        "06-1",
        right=[announce_by_the_rules],
        wrong={
            announce_comparing_what_was_sent: "You say 'changed': “",
            announce_reading_too_late: "Read it before you write",
            announce_without_the_answer_of_set: "set returned False",
            announce_and_write_nothing: "the store should hold",
            announce_in_another_language: "The answer is one of",
        },
    )


def test_exercise_06_2_is_proved():
    assert_proved(
        "06-2",
        right=[merge_from_a_copy, merge_asking_for_each_key],
        wrong={
            merge_over_everything: "the user's own value stays",
            merge_forgetting_first: "The network failed",
            merge_that_eats_itself: "Merged with itself",
            merge_forgetting_nobody: "still there",
        },
    )


def test_exercise_06_3_is_proved():
    assert_proved(
        "06-3",
        right=[fence_with_quotes_escaped, preferences_text],
        wrong={
            fence_as_it_is: "stands in the prompt as one",
            fence_with_open_keys: "A key is the user's text too",
            fence_without_the_ampersand: "Escape & too",
            fence_escaped_in_the_wrong_order: "Escaped twice",
            fence_without_any_signs: "Part of the text is gone",
            fence_around_nothing: "Without preferences",
            fence_on_one_line: "The first line is",
        },
    )


def test_merging_by_way_of_a_third_place_changes_the_order_and_is_told_so():
    assert "order" in check("06-2", merge_anew).message


def test_an_answer_that_works_in_memory_alone_is_told_where_it_fails():
    async def by_the_back_door(store, user, key, value):
        before = store._users.get(user, {}).get(key)
        if not await store.set(user, key, value):
            return "dropped"
        return "new" if before is None else "same" if before == store._users[user][key] else "changed"

    assert "in PostgreSQL (" in check("06-1", by_the_back_door).message


def test_an_answer_that_never_comes_back_from_one_engine_is_not_waited_for_for_ever(monkeypatch):
    async def waits(store, user, key, value):
        await asyncio.Event().wait()

    monkeypatch.setattr(ch06_everywhere, "LIMIT_S", 0.05)
    assert "still waiting" in check("06-1", waits).message
