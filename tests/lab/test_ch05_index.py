"""Exercise 05-3's checker: every kind of look at an index meets an append that comes right behind it."""

from __future__ import annotations

import pytest
from redis.exceptions import WatchError

from tests.lab.proof import assert_proved
from tri_memory.lab.exercises.kit import check

DROP = """
local gone = 0
for i = 1, #ARGV, 2 do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) %s then gone = gone + redis.call('ZREM', KEYS[1], ARGV[i]) end
end
return gone
"""


async def drop_watching(client, index, seen):
    async with client.pipeline() as pipe:
        while True:
            try:
                await pipe.watch(index)
                ghosts = [member for member, score in seen if await pipe.zscore(index, member) == score]
                pipe.multi()
                for member in ghosts:
                    pipe.zrem(index, member)
                return sum(await pipe.execute())
            except WatchError:
                continue


async def drop_by_registered_script(client, index, seen):
    script = client.register_script(DROP % "== ARGV[i + 1]")
    return await script(keys=[index], args=[part for member, score in seen for part in (member, f"{score:.0f}")])


async def drop_one_by_one_in_scripts(client, index, seen):
    gone = 0
    for member, score in seen:
        gone += await client.eval(DROP % "== ARGV[i + 1]", 1, index, member, f"{score:.0f}")
    return gone


async def drop_blindly(client, index, seen):
    return await client.zrem(index, *(member for member, _ in seen))


async def drop_after_a_look(client, index, seen):
    gone = 0
    for member, score in seen:
        if await client.zscore(index, member) == score:
            gone += await client.zrem(index, member)
    return gone


async def drop_after_a_look_at_all(client, index, seen):
    now = dict(await client.zrange(index, 0, -1, withscores=True))
    return await client.zrem(index, *(member for member, score in seen if now.get(member) == score))


async def drop_in_a_pipeline_after_a_look(client, index, seen):
    async with client.pipeline() as pipe:
        for member, _ in seen:
            pipe.zscore(index, member)
        scores = await pipe.execute()
        for (member, score), now in zip(seen, scores, strict=True):
            if score == now:
                pipe.zrem(index, member)
        return sum(await pipe.execute())


async def drop_comparing_text(client, index, seen):
    return await client.eval(DROP % "== ARGV[i + 1]", 1, index, *(part for entry in seen for part in entry))


async def drop_by_score(client, index, seen):
    return await client.zremrangebyscore(index, "-inf", max(score for _, score in seen))


async def drop_the_first_only(client, index, seen):
    arguments = [part for entry in seen for part in entry][:6]
    return await client.eval(DROP.replace("%s", "+ 0 == ARGV[i + 1] + 0"), 1, index, *arguments)


async def drop_without_a_count(client, index, seen):
    await drop_watching(client, index, seen)


def test_exercise_05_3_is_proved(embedded_valkey):
    assert_proved(
        "05-3",
        right=[drop_watching, drop_by_registered_script, drop_one_by_one_in_scripts],
        wrong={
            drop_blindly: "was written to after you were told its score",
            drop_after_a_look: "between your look and your ZREM",
            drop_comparing_text: "Nothing was removed",
            drop_by_score: "were not in `seen`",
            drop_the_first_only: "are still in the index",
            drop_without_a_count: "should return how many entries it removed",
        },
    )


@pytest.mark.parametrize("racing", [drop_after_a_look_at_all, drop_in_a_pipeline_after_a_look])
def test_every_kind_of_look_meets_an_append_that_comes_right_after_it(embedded_valkey, racing):
    assert "between your look and your ZREM" in check("05-3", racing).message
