"""Chapter 09: its checkers tell right from wrong, on each engine that this machine has."""

from __future__ import annotations

import math
import statistics
from itertools import pairwise

from tests.lab.proof import assert_proved, assert_told_on_which_engine
from tri_memory.lab.exercises.kit import check
from tri_memory.recall.decay import ebbinghaus, half_life, step


def own(uses):
    return [use.age for use in uses if not use.injected]


def law_of_the_package(age, uses):
    return ebbinghaus(age, uses, strength=20)


def law_with_a_pencil(age, uses):
    return step(age, uses)


def law_by_the_last_use(age, uses):
    return half_life(min(own(uses), default=age), 60)


def law_counting_injections(age, uses):
    ages = [use.age for use in uses]
    return math.exp(-min(ages, default=age) / (30 * (1 + len(ages))))


def law_multiplying_the_age(age, uses):
    ages = own(uses)
    return math.exp(-min(ages, default=age) * (1 + len(ages)) / 60)


def law_by_the_last_in_the_list(age, uses):
    ages = own(uses)
    return math.exp(-(ages[-1] if ages else age) / (30 * (1 + len(ages))))


def law_beyond_one(age, uses):
    return half_life(age, 30) + 0.1 * len(own(uses))


def law_that_never_fades(age, uses):
    return 1.0


def law_blind_to_uses(age, uses):
    return half_life(age, 30)


def law_too_slow(age, uses):
    return half_life(min(own(uses), default=age), 1_000)


def ttl_by_counting(times, share):
    times = sorted(times)
    gaps = [(b - a).total_seconds() for a, b in pairwise(times)]
    return min(g for g in gaps if sum(other <= g for other in gaps) >= share * len(gaps))


def ttl_of_the_thumb(times, share):
    return 1.5 * statistics.median((b - a).total_seconds() for a, b in pairwise(sorted(times)))


def ttl_unsorted(times, share):
    gaps = sorted(abs((b - a).total_seconds()) for a, b in pairwise(times))
    return next(gap for i, gap in enumerate(gaps, 1) if i / len(gaps) >= share)


def ttl_without_days(times, share):
    gaps = sorted((b - a).seconds for a, b in pairwise(sorted(times)))
    return next(gap for i, gap in enumerate(gaps, 1) if i / len(gaps) >= share)


def ttl_one_too_short(times, share):
    gaps = sorted((b - a).total_seconds() for a, b in pairwise(sorted(times)))
    return gaps[max(0, math.ceil(share * len(gaps)) - 2)]


def ttl_of_the_longest(times, share):
    return max((b - a).total_seconds() for a, b in pairwise(sorted(times)))


async def kept_awake(store, pair):
    if not await store.restore(*pair):
        for _ in range(2):
            await store.use(*pair)


async def night_lifting_what_would_go(store, hold):
    for pair in hold:
        await store.restore(*pair)
    for pair in set((await store.fade(dry_run=True)).archived) & hold:
        while pair in (await store.fade(dry_run=True)).archived:
            await store.use(*pair)
    return [tuple(pair) for pair in (await store.fade()).archived]


async def night_with_ten_uses(store, hold):
    for pair in sorted(hold):
        await store.restore(*pair)
        for _ in range(10):
            await store.use(*pair)
    done = await store.fade()
    return sorted(set(done.archived) - hold)


async def night_restoring_afterwards(store, hold):
    faded = await store.fade()
    for pair in hold:
        await store.restore(*pair)
    return sorted(set(faded.archived) - hold)


async def night_with_one_use(store, hold):
    for pair in hold:
        if not await store.restore(*pair):
            await store.use(*pair)
    return sorted((await store.fade()).archived)


async def night_of_uses_only(store, hold):
    for pair in hold:
        for _ in range(2):
            await store.use(*pair)
    return sorted((await store.fade()).archived)


async def night_without_hold(store, hold):
    return sorted((await store.fade()).archived)


async def night_only_dry(store, hold):
    return sorted(set((await store.fade(dry_run=True)).archived) - hold)


async def night_with_the_held_in_the_list(store, hold):
    for pair in hold:
        await kept_awake(store, pair)
    return sorted([*(await store.fade()).archived, *hold])


async def night_of_the_whole_archive(store, hold):
    for pair in hold:
        await kept_awake(store, pair)
    await store.fade()
    users = {user for user, _ in hold}
    return sorted([(user, one.session_id) for user in users for one in await store.archived(user)])


async def night_backwards(store, hold):
    for pair in hold:
        await kept_awake(store, pair)
    return sorted((await store.fade()).archived, reverse=True)


async def night_that_deletes(store, hold):
    for pair in hold:
        await kept_awake(store, pair)
    done = (await store.fade()).archived
    for user, _ in done:
        await store.forget(user)
    return sorted(done)


async def night_counting(store, hold):
    for pair in hold:
        await kept_awake(store, pair)
    return len((await store.fade()).archived)


def test_exercise_09_1_is_proved():
    assert_proved(
        "09-1",
        right=[law_of_the_package, law_with_a_pencil, law_by_the_last_use],
        wrong={
            law_counting_injections: "injected use",
            law_multiplying_the_age: "Recalling hurts",
            law_by_the_last_in_the_list: "order of the list",
            law_beyond_one: "between 0 and 1",
            law_that_never_fades: "Nothing fades",
            law_blind_to_uses: "no more than one that never was",
            law_too_slow: "After a year",
        },
    )


def test_exercise_09_2_is_proved():
    assert_proved(
        "09-2",
        right=[ttl_by_counting],
        wrong={
            ttl_of_the_thumb: "1.5 times the median",
            ttl_unsorted: "several processes write one log",
            ttl_without_days: "The days are lost",
            ttl_one_too_short: "Too short",
            ttl_of_the_longest: "Longer than it need be",
        },
    )


def test_exercise_09_3_is_proved():
    assert_proved(
        "09-3",
        right=[night_lifting_what_would_go, night_with_ten_uses],
        wrong={
            night_restoring_afterwards: "On hold, archived and brought back",
            night_of_uses_only: "was then killed",
            night_without_hold: "On hold and still in the archive",
            night_only_dry: "recalled all the same",
            night_with_the_held_in_the_list: "stands in the returned list",
            night_of_the_whole_archive: "The second run of the same night",
            night_backwards: "not sorted",
            night_that_deletes: "Neither recalled nor archived",
            night_counting: "a list of (user, session) pairs",
        },
    )


def test_one_use_is_too_few_for_what_lies_on_the_floor():
    verdict = check("09-3", night_with_one_use)
    assert not verdict.passed
    assert "On hold and still in the archive" in verdict.message


def test_an_answer_that_is_right_in_memory_alone_is_told_on_which_engine_it_fails():
    async def right_in_memory(store, hold):
        if type(store).__name__ == "InMemoryEpisodicStore":
            return await night_with_ten_uses(store, hold)
        return await night_without_hold(store, hold)

    assert_told_on_which_engine("09-3", right_in_memory)
