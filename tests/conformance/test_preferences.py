"""The preference store, call by call, on every engine. Engines: conftest.py."""

from __future__ import annotations

import asyncio
import random

import pytest

from tri_memory import InMemoryPreferenceStore, blocking


async def test_setting_again_replaces_and_users_do_not_see_each_other(preferences):
    assert await preferences.set("ann", "size", "41")
    assert await preferences.set("ann", "size", "42")
    assert await preferences.set("bob", "size", "46")
    assert await preferences.get("ann", "size") == "42"
    assert await preferences.all("ann") == {"size": "42"}
    assert await preferences.get("ann", "colour") is None
    assert await preferences.all("carol") == {}


async def test_a_key_is_found_in_whatever_form_it_is_written(preferences):
    await preferences.set("ann", "cafe\u0301 ", "oat milk")
    assert await preferences.get("ann", "café") == "oat milk"
    assert await preferences.get("ann", "ca\u200bfé") == "oat milk"


async def test_what_the_guard_rails_drop_is_told_and_nothing_is_stored(preferences):
    assert await preferences.set("ann", " ", "x") is False
    assert await preferences.set("ann", "x", "\u200b") is False
    assert await preferences.all("ann") == {}
    assert await preferences.get("ann", "") is None


async def test_a_blank_value_does_not_erase_what_was_there(preferences):
    await preferences.set("ann", "size", "42")
    assert await preferences.set("ann", "size", "  ") is False
    assert await preferences.get("ann", "size") == "42"


async def test_forgetting_counts_and_forgets_only_one_user(preferences):
    await preferences.set("ann", "size", "42")
    await preferences.set("ann", "tea", "green")
    await preferences.set("bob", "size", "46")
    assert await preferences.forget("ann") == 2
    assert await preferences.forget("ann") == 0
    assert await preferences.all("ann") == {}
    assert await preferences.all("bob") == {"size": "46"}


async def test_a_returned_dictionary_is_a_copy(preferences):
    await preferences.set("ann", "size", "42")
    (await preferences.all("ann")).clear()
    assert await preferences.all("ann") == {"size": "42"}


@pytest.mark.parametrize("bad", ["", "  ", None, 7, "a\0"])
async def test_no_user_no_preferences(preferences, bad):
    for call in (
        lambda: preferences.get(bad, "k"),
        lambda: preferences.set(bad, "k", "v"),
        lambda: preferences.all(bad),
        lambda: preferences.forget(bad),
    ):
        with pytest.raises(ValueError, match="user_id"):
            await call()


async def test_setting_again_keeps_the_place_in_the_order_of_first_writing(preferences):
    for key in ("tea", "size", "颜色"):
        await preferences.set("ann", key, "first")
    await preferences.set("ann", "tea", "again")
    assert list((await preferences.all("ann")).items()) == [("tea", "again"), ("size", "first"), ("颜色", "first")]


async def test_a_key_that_was_forgotten_and_comes_back_is_the_newest(preferences):
    for key in ("tea", "size"):
        await preferences.set("ann", key, "first")
    await preferences.forget("ann")
    for key in ("size", "tea"):
        await preferences.set("ann", key, "again")
    assert list(await preferences.all("ann")) == ["size", "tea"]


async def test_the_same_key_set_fifty_times_at_once_is_one_row_with_one_of_the_values(preferences):
    answers = await asyncio.gather(*(preferences.set("ann", "size", str(i)) for i in range(50)))
    assert answers == [True] * 50
    assert list(await preferences.all("ann")) == ["size"]
    assert int(await preferences.get("ann", "size")) in range(50)


async def test_fifty_keys_set_at_once_are_all_there(preferences):
    await asyncio.gather(*(preferences.set("ann", f"key {i}", f"value {i}") for i in range(50)))
    assert await preferences.all("ann") == {f"key {i}": f"value {i}" for i in range(50)}


async def test_user_ids_that_only_look_alike_are_different_users(preferences):
    users = ["a-b:{c}@d.com *", "ann", "Ann", "ann ", "a%n", "a_n", "ａｎｎ", "安", "ann'; DROP TABLE preferences; --"]
    for user in users:
        await preferences.set(user, "who", user)
    for user in users:
        assert await preferences.all(user) == {"who": user.strip()}


async def test_whatever_is_typed_it_is_stored_and_found_as_in_memory(preferences):
    """Two hundred keys and values of awkward text, the same calls on both, the same answers."""
    rng = random.Random(20260301)
    pieces = [*"aé中文👨\t\n'\"\\ ", "e\u0301", "\u200b", "\u202e", "\u200d", "%s", "{}", "x" * 60]
    memory = InMemoryPreferenceStore()
    for _ in range(200):
        key = "".join(rng.choices(pieces, k=rng.randrange(4)))
        value = "".join(rng.choices(pieces, k=rng.randrange(1, 40)))
        assert await preferences.set("ann", key, value) == await memory.set("ann", key, value)
        assert await preferences.get("ann", key) == await memory.get("ann", key)
    assert list((await preferences.all("ann")).items()) == list((await memory.all("ann")).items())
    assert await preferences.forget("ann") == await memory.forget("ann")


@pytest.mark.parametrize(("key", "value"), [(7, "x"), ("x", None), ("\ud800", "x"), ("x", "half \ud83d")])
async def test_what_is_no_text_is_refused_and_changes_nothing(preferences, key, value):
    with pytest.raises(ValueError, match=r"must be a string|surrogate"):
        await preferences.set("ann", key, value)
    assert await preferences.all("ann") == {}


def test_it_works_as_plain_calls_too(preferences):
    plain = blocking(preferences)
    assert plain.set("ann", "size", "42")
    assert plain.all("ann") == {"size": "42"}
