# %% [markdown]
# # Forget a person for good
#
# A user says: delete what you know about me. We delete, then look for what is left: in ten places, in what was running at
# that moment, and in the raw files of the servers.
#
# **What you will do**
#
# - delete a user's rows, and count with a hunt in how many places the user still stands;
# - reverse a hash by counting, and make a pseudonym that withstands it (exercise 13-1);
# - tell a clear yes from what only sounds like one, in English and Chinese;
# - forget with a receipt, and catch a write that is under way (exercise 13-2);
# - search raw files before and after, hunt yourself (exercise 13-3), and test a claim about time.
#
# **You need** [05 Sessions in Redis](05_sessions_in_redis.ipynb),
# [08 Recall in Postgres](08_recall_in_postgres.ipynb) and [11 Find the case](11_find_the_case.ipynb). No key. The
# servers are started for you. About 75 minutes.

# %%
import secrets

from tri_memory.lab.chapters.ch13 import answers, counting, failing, files
from tri_memory.lab.chapters.ch13 import overtaken, panel, plots, timing
from tri_memory.lab import servers
from tri_memory.lab.claims import claim
from tri_memory.lab.exercises import about, check, hint, quiz, reveal
from tri_memory.lab.plots import picture
from tri_memory.privacy.consent import Consent
from tri_memory.privacy.pseudonyms import Pseudonyms
from tri_memory.privacy.tombstones import InMemoryTombstones

# %% [markdown]
# ## See it fail
#
# A shop's assistant keeps what the earlier notebooks built. Maeve Tolliver writes about a pair of boots, 林晓蓓 about a
# bread machine. Each has an order number that exists nowhere else: the **canary**. Both ask to be deleted.
#
# First somebody deletes their rows from the table of records. Then `Chat.forget` empties its three layers: sessions,
# preferences, episodes. Then a job runs that waits in a queue.
#
# The *trace* is what each turn did, the *short context* a copy of the last turns in Redis. The hunt reads tables, keys and
# lines itself; graph and queue, which are in this process, it asks. `servers.redis()` is `engines.redis()`, started once
# for this kernel.

# %%
redis, postgres = servers.redis(), servers.postgres()
print(f"Redis by way of: {redis.how}, PostgreSQL: {postgres.how}")
english = await failing.deleted(redis.url, postgres.url, "en")
chinese = await failing.deleted(redis.url, postgres.url, "zh")
print(f"in how many entries of each place {english.canary} stands")
english.found

# %%
for name, one in (("en", english), ("zh", chinese)):
    left = (one.found > 0).sum()
    print(f"{name}: {', '.join(f'{step} {count}' for step, count in left.items())} places")
    print(f"  asked after the first step, the store of records says: {one.still[0][:52]} …")

# %% [markdown]
# - The row was deleted, and the record is answered all the same: out of the cache.
# - Three layers are empty, and the number still stands in the six places outside those layers.
# - A night later the queue's job has written, and there is a preference again.

# %% [markdown]
# ## A name instead of the id
#
# The log is a file. Nobody deletes single lines from it, so no id should get in. But people compare log lines, so equal ids
# need equal names. The usual idea is a hash. The shop's order numbers have four digits (the canaries six, to be new), a
# Chinese mobile number eleven:

# %%
stored, salted = counting.plain("BX-2207"), counting.salted("BX-2207")
print(stored[:32], "…")
print("plain ", counting.count_through(stored, counting.CASES, counting.plain))
print("salted", counting.count_through(salted, counting.CASES, counting.salted))
mobile = counting.plain("13800094417")
counted = counting.count_through(mobile, counting.mobiles("138000"), counting.plain)
print("phone ", counted, "where 138000 is known")
print(
    f"phone  at that rate, where only 138 is known: {counting.all_mobiles_s(counted):.0f} s"
)

# %% [markdown]
# - We did not invert SHA-256; we tried every number, and there are few.
# - A salt beside the hash is read together with it. It took as many tries.
#
# What helps is a secret. `Pseudonyms` is an HMAC, a hash with a secret key, and the user is part of it.
# Somebody who has the table but not the key counts with a key of their own:

# %%
names = Pseudonyms(secrets.token_bytes(64))  # in earnest: Pseudonyms.from_env()
guess = Pseudonyms(secrets.token_bytes(64))
stored = names.of("BX-2207", user_id="ann")
print(
    counting.count_through(stored, counting.CASES, lambda id: guess.of(id, user_id="ann"))
)
print("again, with a space:", names.of("BX-2207 ", user_id="ann") == stored)
print("another user:       ", names.of("BX-2207", user_id="bob") == stored)
print("another key:        ", guess.of("BX-2207", user_id="ann") == stored)

# %% [markdown]
# - Same user, same id, same name. That two users share a case doesn't show.
# - A new key finds nothing that was stored. A **rotation** keeps the old key for looking up, and writes with the new:

# %%
old, new = secrets.token_hex(32), secrets.token_hex(32)
stored = Pseudonyms(old).of("13800004417", user_id="zh-shop-01")
both = Pseudonyms(new, previous=[old])
candidates = both.candidates("13800004417", user_id="zh-shop-01")
print("found under place", candidates.index(stored), "of", len(candidates))
print("written now as the old one:", candidates[0] == stored)

# %% [markdown]
# - A key that leaks makes counting possible again. Keep it where the table is not.
# - How often an id occurs can still be seen, which can be enough to guess whose it is.

# %% [markdown]
# ## A clear yes
#
# Some memories may be kept and still not be brought up unasked. The user is asked first, and anything but a clear yes is no.

# %%
print(Consent().ask("订单ZB-2207", user_id="zh-shop-01", session_id="s1").text)
for language in ("en", "zh"):
    for answer, taken, meaning in answers.judged(language).itertuples(index=False):
        print(f"  {taken:3}  {answer}  {meaning}".rstrip())

# %% [markdown]
# - The question is: “Do you want me to tell the details of order ZB-2207?”
# - “Sure, why not” and 行行行 were meant as a yes, probably. They count as no, and that case is not asked about again in this
#   session: the user goes without the details, and nobody is talked into a yes.
# - “Yeah, right” and “可以，不过…” begin like a yes. The whole answer has to be one.
#
# A yes has a subject, a conversation, and an end:

# %%
for event, allowed in answers.over_time():
    print(f"{'yes' if allowed else 'no ':4} {event}")

# %% [markdown]
# - Nothing here is stored. After a restart nobody would remember having given that yes.

# %% [markdown]
# ## Forget, with a receipt
#
# `forget_user` goes through every store it is told of: the queue first, then what its jobs write, the truth before its cache.
# Afterwards it searches again. The log had no raw id from the beginning. The last column hunts the name, not the number.

# %%
forgot = await failing.forgotten(redis.url, postgres.url, "zh")
forgot.found

# %% [markdown]
# - Only the records are hidden: no call of a store finds them, a look into the table does. `purge` deletes what was hidden
#   for seven days; here it ran on day 8. Until then an operator can look into a complaint.
# - What the person gets is a page, `to_html()`; a program takes `to_json()`.

# %%
forgot.receipt

# %%
print(f"forgotten once more: {forgot.again.erased} erased, ok {forgot.again.ok}")
for entry in forgot.audit:
    count = sum(entry.counts.values())
    print(f"{entry.number} {entry.who}: {entry.what} {entry.whom[:14]}… {count} entries")
print("a count changed by hand:", forgot.changed)
print("a line of the log:", forgot.log)

# %% [markdown]
# - On the page *user_memory* is the records, *jobs* the queue, and all entries count; in the table above, those with the
#   number.
# - The page has no line for the cache, which *user_memory* clears, and none for the log. What has no line was not searched.
# - Who did what to whom is kept, and no word of what it was. Each entry's digest covers the one before, so a change is found.
#   Whoever may write the file can write a whole new chain, unless the log has a key.
# - In the last line number and user have pseudonyms, and the name 林晓蓓 stands there. A rule finds ids. A name has no shape.
#   The log should not have been given the sentence at all.

# %% [markdown]
# ## Turn the knob
#
# Ten places in memory, ten days, three ways to forget. The user said 订单号BX-220719：我对花生过敏 (I am allergic to
# peanuts). Here each store is asked, and the log read.

# %%
panel.canary_panel()

# %% [markdown]
# - *Three layers*, day 2: the job has run, and an episode is back.
# - Caches empty after an hour. With *one table*, whoever asks for the records on the next day thinks it works.
# - *Forget*, log as it was said: one line stays. Mask the ids: it stays for the allergy. Now leave only the number in the
#   text.

# %% [markdown]
# ## What was running
#
# A session is being archived. While the model writes its summary, the user is forgotten.

# %%
for tombstones in (None, InMemoryTombstones()):
    told = await overtaken.slow_summary(tombstones=tombstones)
    print("with a registry" if tombstones else "without", "- receipt ok:", told.verified)
    for step in told.steps:
        print("   ", step)

# %% [markdown]
# - Both receipts were right when they were written. The first was wrong when the summary was ready.
# - Searching more often does not help. The writer had read everything before; only its write can be stopped.
# - The registry notes that this user was forgotten, and when: a **tombstone**. `guarded(store, tombstones)` refuses what began
#   before that. What the user says afterwards is written.
#
# A job announces itself in the registry when it is taken from the queue. Its user is forgotten twice; the second time
# `forget` is told of that registry:

# %%
for judged in (False, True):
    told = await overtaken.queued_job(judged=judged)
    print("told of the registry" if judged else "not told")
    for step in told.steps:
        print("   ", step)

# %% [markdown]
# - The archive was refused when it began to write. The job had announced itself before, so `forget` waits for it.
# - A tombstone holds a pseudonym and a time. `purge` drops it after seven days, whatever still waits. From then on a job from
#   before that forgetting is refused, whoever it is of.

# %% [markdown]
# ## What the files say
#
# No call of a store finds anything, plain SQL only what is hidden. Then somebody copies the disk. Two servers of their own,
# thirty entries in each of four stores, and a search through every byte of their folders:

# %%
on_disk = await files.hunted()
picture(
    plots.in_files(on_disk),
    alt="How often the text stands in files. Postgres: more often after forgetting, the "
    "log more again after the purge. Valkey: as often as before. Scrubbed: nowhere.",
)

# %% [markdown]
# - In Postgres forgetting made it more. Hiding a record writes a second version of its row. Not quite one more for each:
#   Postgres moved rows together in a full page, over an old one.
# - The write-ahead log grew by more, and again with the purge: the first change to a page after a checkpoint logs the whole
#   page, old rows included. The search makes a checkpoint before each count.
# - The purge left the text in the tables as often as before: Postgres only marks. Valkey appends a deletion to the file that
#   holds what is deleted.
# - `scrub_postgres` and `scrub_redis` rewrite. That needs a superuser, a lock on each table, and room for a copy.

# %% [markdown]
# ## Measure
#
# "Forgetting 127 records takes 47 s." Preferences in memory and in Postgres, sessions in Redis, all of one user;
# `forget_user` with its search afterwards. And by hand: each preference deleted by itself.

# %%
timed = await timing.timed(redis.url, postgres.url)
picture(
    plots.durations(timed),
    alt="Left: time against the user's own entries, all far below the claimed point; Redis "
    "and one by one grow with them. Right: one session waits for all those of others.",
)

# %%
claim("C18", measured=timing.sentence(timed), verdict=timing.verdict(timed))

# %% [markdown]
# - Postgres needs one statement, however many rows there are. Redis gets one request per session, and others to search.
# - Right: sessions have no index by user, so everybody's are listed to find these, three times in one forget.
#
# **Where the winner stops winning.** Postgres is that fast because it only marks, as the files showed. To be rid of the bytes
# `scrub_postgres` writes each table anew. That is not in these times, and its cost depends on what *stays*.
#
# ## Where the cure ends
#
# The receipt names what was searched. It cannot name:
#
# - **backups**, replicas and snapshots: give them an age at which they are deleted, and forget again after a restore;
# - **the model provider**, who got every prompt and keeps it for as long as the contract says;
# - **others' memories**: "my sister Maeve wears 40" belongs to the sister, and stays;
# - **what a model was trained on**, from which nothing can be taken out again.
#
# Say so to the person, with a date where there is one.

# %% [markdown]
# ## Exercises
#
# Fill the stub and run the check. `key` is 32 secret bytes. Spaces around an id and how an accent is composed make no
# difference; anything else does. A name has at least 20 characters.

# %%
about("13-1")


# %% tags=["stub"]
def pseudonym(raw: str, user: str, key: bytes) -> str:
    """A name for this user's id: stable, another for each user, nothing without the key."""
    raise NotImplementedError


# %% tags=["solution"]
import hmac
import unicodedata


def pseudonym(raw: str, user: str, key: bytes) -> str:
    """A name for this user's id: stable, another for each user, nothing without the key."""
    tidy = unicodedata.normalize("NFC", raw.strip())
    salt = hmac.digest(key, user.encode(), "sha256")
    return hmac.digest(salt, tidy.encode(), "sha256").hex()


# %%
check("13-1", pseudonym)

# %% [markdown]
# The next one runs on every engine of this machine. When you begin, a write of that user is under way. It announced itself
# in the registry, will store, and sign off; it undoes nothing. Others try to begin. Inside
# `async with closed(tombstones, user)` none can; `await drained(tombstones, user, seconds)` waits for those that had begun.

# %%
from tri_memory.privacy.tombstones import closed, drained

about("13-2")


# %% tags=["stub"]
async def forget_all(user: str, stores: dict, tombstones) -> dict[str, int]:
    """Forget `user` in each store, also what is being written; how many entries went, by name.

    `await stores[name].forget(user)` deletes there and counts.
    """
    raise NotImplementedError


# %% tags=["solution"]
from tri_memory.privacy import tombstones as registry


async def forget_all(user: str, stores: dict, tombstones) -> dict[str, int]:
    """Forget `user` in each store, also what is being written; how many entries went, by name.

    `await stores[name].forget(user)` deletes there and counts.
    """
    counts = dict.fromkeys(stores, 0)
    async with registry.closed(tombstones, user):
        for name, store in stores.items():  # gone for readers at once
            counts[name] += await store.forget(user)
        await registry.drained(tombstones, user, 10)
        for name, store in stores.items():  # what the running write brought
            counts[name] += await store.forget(user)
    return counts


# %%
check("13-2", forget_all)

# %% [markdown]
# A forget left the canary in one place. You get the files as bytes. In them texts stand as they are, as JSON, in a key, or
# packed. A blank canary is a ValueError.

# %%
about("13-3")


# %% tags=["stub"]
def places_with(canary: str, files: dict[str, bytes]) -> list[str]:
    """The names of the files in which the canary stands, in whatever form."""
    raise NotImplementedError


# %% tags=["solution"]
import gzip
import json
from urllib.parse import quote


def places_with(canary: str, files: dict[str, bytes]) -> list[str]:
    """The names of the files in which the canary stands, in whatever form."""
    if not canary.strip():
        raise ValueError("a blank text is no canary")
    forms = {canary, json.dumps(canary)[1:-1], quote(canary, safe="")}
    found = []
    for name, content in files.items():
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        if any(form.encode() in content for form in forms):
            found.append(name)
    return found


# %%
check("13-3", places_with)

# %% [markdown]
# Stuck? `hint("13-2")` gives the next hint, `reveal("13-2")` one right answer.

# %%
quiz("13")

# %% [markdown]
# ## What you saw
#
# - A user's rows are deleted, and the user still stands in cache, queue, graph, trace and log.
# - A hash of a short number is the number. A keyed one, with the user in it, is not (13-1).
# - Anything but a clear yes is no, and a yes ends with the conversation.
# - Forget deletes at once, and hides the records until a purge. The receipt comes from a search, the audit log has no content.
# - What was running brings it back, unless its write is refused (13-2).
# - A text has several forms, and files keep what queries no longer find (13-3).
#
# **Claim tested here**: C18. **What breaks this idea**: a place that nobody told `forget_user` of. Review the list of places.
#
# Next in the series: [14 Fill the prompt](14_fill_the_prompt.ipynb), which asks how much of each layer goes in.
