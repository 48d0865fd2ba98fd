"""The preference store, call by call, on every engine. Engines: conftest.py."""

from __future__ import annotations

import pytest


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
