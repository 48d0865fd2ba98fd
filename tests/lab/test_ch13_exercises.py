"""The exercises of chapter 13: right answers pass, each typical mistake is named."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import hmac
import itertools
import json
import re
import unicodedata
from contextlib import suppress
from urllib.parse import quote, unquote

import pytest

from tests.lab.proof import assert_proved, assert_told_on_which_engine
from tri_memory.lab.exercises import check
from tri_memory.lab.exercises.kit import exercises_of
from tri_memory.privacy.pseudonyms import Pseudonyms
from tri_memory.privacy.tombstones import closed, drained


def tidy(raw):
    return unicodedata.normalize("NFC", raw.strip())


def of_the_kit(raw, user, key):
    return Pseudonyms(key).of(raw, user_id=user)


def in_json(raw, user, key):
    whole = json.dumps([user, tidy(raw)]).encode()
    return base64.b32encode(hmac.new(key, whole, hashlib.sha256).digest()).decode()


def plain_hash(raw, user, key):
    return hashlib.sha256(tidy(raw).encode()).hexdigest()


def salted_by_user(raw, user, key):
    return hashlib.sha256(f"{user}:{tidy(raw)}".encode()).hexdigest()


def for_everybody(raw, user, key):
    return hmac.digest(key, tidy(raw).encode(), "sha256").hex()


def joined(between):
    def pseudonym(raw, user, key):
        return hmac.digest(key, f"{user}{between}{tidy(raw)}".encode(), "sha256").hex()

    return pseudonym


def untidy(raw, user, key):
    return hmac.digest(hmac.digest(key, user.encode(), "sha256"), raw.encode(), "sha256").hex()


def only_stripped(raw, user, key):
    return untidy(raw.strip(), user, key)


def short(raw, user, key):
    return untidy(tidy(raw), user, key)[:4]


def short_but_distinct(raw, user, key):
    return untidy(tidy(raw), user, key)[:16]


def with_two_bytes(raw, user, key):
    return untidy(tidy(raw), user, key[:2])


def without_case(raw, user, key):
    return untidy(tidy(raw).lower(), user, key)


def without_spaces(raw, user, key):
    return untidy("".join(tidy(raw).split()), user, key)


def with_the_id(raw, user, key):
    return f"{tidy(raw)}-{untidy(tidy(raw), user, key)}"


def as_bytes(raw, user, key):
    return bytes.fromhex(untidy(tidy(raw), user, key))


numbers = itertools.count()


def another_each_time(raw, user, key):
    return f"user-{next(numbers):032}"


def test_exercise_13_1_is_proved():
    assert_proved(
        "13-1",
        right=[of_the_kit, in_json, joined("\0")],  # no id of the package has a NUL
        wrong={
            plain_hash: "I counted from BX-0000 on, with a key of my own",
            for_everybody: "has the same name for ann and for bob",
            joined(""): "User 'ann1' with id '23'",
            joined(":"): "User 'ann:1' with id '23' and user 'ann' with id '1:23'",
            with_two_bytes: "differ in byte 2 alone",
            without_case: "Upper and lower case are part of the id",
            without_spaces: "Spaces inside an id are part",
            untidy: "Spaces around an id",
            only_stripped: "CAFÉ",
            short: "A name of 4 characters is too short",
            with_the_id: "The id itself stands in its name",
            as_bytes: "It should return a string",
            another_each_time: "at the second call",
        },
    )


@pytest.mark.parametrize("between", ["/", "|", "-", " ", ",", ", ", "::", "\t"])
def test_whatever_stands_between_user_and_id_may_stand_in_them_as_well(between):
    verdict = check("13-1", joined(between))
    assert not verdict.passed
    assert "put together they are the same text" in verdict.message


def test_a_salt_that_is_no_secret_is_counted_through_as_well():
    verdict = check("13-1", salted_by_user)
    assert not verdict.passed
    assert "and after " in verdict.message
    assert "tries I had it" in verdict.message


def test_a_name_of_sixteen_characters_is_told_that_it_is_short():
    verdict = check("13-1", short_but_distinct)
    assert not verdict.passed
    assert "A name of 16 characters is too short: these 2,000 ids have one each" in verdict.message
    assert "of 2,000 ids " in check("13-1", short).message


async def wait_first(user, stores, tombstones):
    async with closed(tombstones, user):
        await drained(tombstones, user, 10)
        return {name: await store.forget(user) for name, store in stores.items()}


async def by_hand(user, stores, tombstones):
    counts = {}
    await tombstones.shut(user)
    try:
        await drained(tombstones, user, 5)
        for name in stores:
            counts[name] = await stores[name].forget(user)
    finally:
        await tombstones.reopen(user)
    return counts


async def only_deletes(user, stores, tombstones):
    return {name: await store.forget(user) for name, store in stores.items()}


async def closes_and_does_not_wait(user, stores, tombstones):
    async with closed(tombstones, user):
        return await only_deletes(user, stores, tombstones)


async def deletes_and_then_waits(user, stores, tombstones):
    async with closed(tombstones, user):
        counts = await only_deletes(user, stores, tombstones)
        await drained(tombstones, user, 10)
    return counts


async def waits_with_the_door_open(user, stores, tombstones):
    await drained(tombstones, user, 10)
    return await only_deletes(user, stores, tombstones)


async def leaves_the_door_shut(user, stores, tombstones):
    await tombstones.shut(user)
    await drained(tombstones, user, 10)
    return await only_deletes(user, stores, tombstones)


async def only_the_first_store(user, stores, tombstones):
    async with closed(tombstones, user):
        await drained(tombstones, user, 10)
        name, store = next(iter(stores.items()))
        return {name: await store.forget(user)}


async def waits_and_then_shuts(user, stores, tombstones):
    await drained(tombstones, user, 10)
    async with closed(tombstones, user):
        return await only_deletes(user, stores, tombstones)


async def sleeps(user, stores, tombstones):
    async with closed(tombstones, user):
        await asyncio.sleep(1)
        return await only_deletes(user, stores, tombstones)


async def with_for_async_with(user, stores, tombstones):
    with closed(tombstones, user):
        await drained(tombstones, user, 10)
        return await only_deletes(user, stores, tombstones)


async def deletes_before_and_after(user, stores, tombstones):
    counts = await only_deletes(user, stores, tombstones)
    async with closed(tombstones, user):
        await drained(tombstones, user, 10)
        return {name: counts[name] + await store.forget(user) for name, store in stores.items()}


async def counts_the_second_time_alone(user, stores, tombstones):
    async with closed(tombstones, user):
        await only_deletes(user, stores, tombstones)
        await drained(tombstones, user, 10)
        return await only_deletes(user, stores, tombstones)


async def says_nothing(user, stores, tombstones):
    await wait_first(user, stores, tombstones)


def test_exercise_13_2_is_proved():
    assert_proved(
        "13-2",
        right=[wait_first, by_hand, deletes_before_and_after],
        wrong={
            waits_with_the_door_open: "A write began while you were deleting",
            deletes_and_then_waits: "The write that was running when you began",
            waits_and_then_shuts: "A write that began just before the door was shut",
            with_for_async_with: "write `async with closed(…)`, not `with`",
            leaves_the_door_shut: "The door stays shut",
            only_the_first_store: "of records were not forgotten",
            counts_the_second_time_alone: "What was deleted at a first try counts as well",
            says_nothing: "It should return the counts by store",
        },
    )


@pytest.mark.parametrize("answer", [only_deletes, closes_and_does_not_wait])
def test_who_does_not_wait_is_told_what_came_back(answer):
    verdict = check("13-2", answer)
    assert not verdict.passed
    assert "(engine: memory)" in verdict.message
    assert "A write began while" in verdict.message or "The write that was running" in verdict.message


def test_no_sleep_is_long_enough_in_the_place_of_a_wait():
    verdict = check("13-2", sleeps)
    assert not verdict.passed
    assert "no sleep is right" in verdict.message


def test_no_hint_of_13_2_is_the_answer():
    task = next(task for task in exercises_of("13") if task.id == "13-2")
    assert not any("+=" in hint or "for name" in hint for hint in task.hints)


def test_an_answer_that_is_right_in_memory_alone_is_told_on_which_engine_it_fails():
    async def right_in_memory(user, stores, tombstones):
        counts = await wait_first(user, stores, tombstones)
        kind = type(stores["preferences"]._store).__name__
        return counts if kind == "InMemoryPreferenceStore" else dict.fromkeys(counts, 0)

    assert_told_on_which_engine("13-2", right_in_memory)


def hunt(*forms, unpack=True, blank=True):
    def places_with(canary, files):
        if blank and not canary.strip():
            raise ValueError("blank")
        found = []
        for name, content in files.items():
            if unpack and content[:2] == b"\x1f\x8b":
                content = gzip.decompress(content)
            if any(form(canary).encode() in content for form in forms):
                found.append(name)
        return found

    return places_with


def as_it_is(text):
    return text


def escaped(text):
    return json.dumps(text).strip('"')


def in_a_key(text):
    return quote(text, safe="")


def by_decoding(canary, files):
    if not canary or canary.isspace():
        raise ValueError(canary)
    found = []
    for name, content in files.items():
        with suppress(OSError):
            content = gzip.decompress(content)
        text = content.decode("utf-8", "replace")
        unescaped = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)
        forms = [text, unquote(text), unescaped]
        if any(canary in form for form in forms):
            found.append(name)
    return found


def strict(canary, files):
    if not canary.strip():
        raise ValueError(canary)
    return [name for name, content in files.items() if canary in content.decode()]


def by_name(end_of):
    def places_with(canary, files):
        plain = {name: gzip.decompress(one) if end_of(name) else one for name, one in files.items()}
        return hunt(as_it_is, escaped, in_a_key, unpack=False)(canary, plain)

    return places_with


by_a_part_of_the_name = by_name(lambda name: ".gz" in name)


def quoted_with_its_quotes(text):
    return json.dumps(text)


def in_a_key_with_slashes(text):
    return quote(text)


def no_json_in_what_is_packed(canary, files):
    packed = {name: one for name, one in files.items() if one[:2] == b"\x1f\x8b"}
    plain = {name: one for name, one in files.items() if name not in packed}
    return hunt(as_it_is)(canary, packed) + hunt(as_it_is, escaped, in_a_key)(canary, plain)


def everything(canary, files):
    return list(files)


def as_a_set(canary, files):
    return set(hunt(as_it_is, escaped, in_a_key)(canary, files))


def the_first_letters(canary, files):
    return hunt(lambda text: text[:-1], lambda text: escaped(text[:-1]), lambda text: in_a_key(text[:-1]))(
        canary, files
    )


def once_for_each_form(canary, files):
    return [name for form in (as_it_is, escaped, in_a_key) for name in hunt(form)(canary, files)]


def test_exercise_13_3_is_proved():
    assert_proved(
        "13-3",
        right=[by_decoding, hunt(in_a_key, as_it_is, escaped)],
        wrong={
            hunt(as_it_is, in_a_key): "JSON writes what is not ASCII as",
            hunt(as_it_is, escaped): "it is percent-encoded",
            strict: "Not every file is text",
            by_a_part_of_the_name: "A file that is not packed was unpacked",
            everything: "at most, and the hunt for",
            as_a_set: "It should return a list of names",
            hunt(as_it_is, escaped, in_a_key, blank=False): "A blank text is no canary",
            once_for_each_form: "Each place once",
        },
    )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (hunt(as_it_is, escaped, in_a_key, unpack=False), "packed with gzip"),
        (by_name(lambda name: name.endswith(".gz")), "its name does not end in .gz"),
        (hunt(as_it_is, quoted_with_its_quotes, in_a_key), "without quotes of its own"),
        (hunt(as_it_is, escaped, in_a_key_with_slashes), "a / in it is %2F"),
        (no_json_in_what_is_packed, "packed with gzip, and inside JSON writes"),
    ],
)
def test_a_hunt_that_knows_a_form_by_half_is_told_which_half(answer, said):
    verdict = check("13-3", answer)
    assert not verdict.passed
    assert said in verdict.message


def test_a_hunt_for_a_part_of_the_canary_is_told_what_it_named_by_mistake():
    verdict = check("13-3", the_first_letters)
    assert not verdict.passed
    assert "at most, and the hunt for" in verdict.message
