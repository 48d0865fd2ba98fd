"""The in-memory preference store."""

from __future__ import annotations

import pytest

from tri_memory import InMemoryPreferenceStore


async def test_setting_again_replaces_and_users_do_not_see_each_other():
    store = InMemoryPreferenceStore()
    assert await store.set("ann", "size", "41")
    assert await store.set("ann", "size", "42")
    assert await store.set("bob", "size", "46")
    assert await store.get("ann", "size") == "42"
    assert await store.all("ann") == {"size": "42"}
    assert await store.get("ann", "colour") is None
    assert await store.all("carol") == {}


async def test_a_key_is_found_in_whatever_form_it_is_written():
    store = InMemoryPreferenceStore()
    await store.set("ann", "cafe\u0301 ", "oat milk")
    assert await store.get("ann", "café") == "oat milk"
    assert await store.get("ann", "ca\u200bfé") == "oat milk"


async def test_what_the_guard_rails_drop_is_told_and_nothing_is_stored():
    store = InMemoryPreferenceStore()
    assert await store.set("ann", " ", "x") is False
    assert await store.set("ann", "x", "\u200b") is False
    assert await store.all("ann") == {}
    assert await store.get("ann", "") is None


async def test_a_blank_value_does_not_erase_what_was_there():
    store = InMemoryPreferenceStore()
    await store.set("ann", "size", "42")
    assert await store.set("ann", "size", "  ") is False
    assert await store.get("ann", "size") == "42"


async def test_forgetting_counts_and_forgets_only_one_user():
    store = InMemoryPreferenceStore()
    await store.set("ann", "size", "42")
    await store.set("ann", "tea", "green")
    await store.set("bob", "size", "46")
    assert await store.forget("ann") == 2
    assert await store.forget("ann") == 0
    assert await store.all("ann") == {}
    assert await store.all("bob") == {"size": "46"}


async def test_a_returned_dictionary_is_a_copy():
    store = InMemoryPreferenceStore()
    await store.set("ann", "size", "42")
    (await store.all("ann")).clear()
    assert await store.all("ann") == {"size": "42"}


@pytest.mark.parametrize("bad", ["", "  ", None, 7, "a\0"])
async def test_no_user_no_preferences(bad):
    store = InMemoryPreferenceStore()
    for call in (
        lambda: store.get(bad, "k"),
        lambda: store.set(bad, "k", "v"),
        lambda: store.all(bad),
        lambda: store.forget(bad),
    ):
        with pytest.raises(ValueError, match="user_id"):
            await call()
