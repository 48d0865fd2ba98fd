# %% [markdown]
# # Remember preferences
#
# Who is this user? What Maeve wears and what Xiaobei must not eat holds longer than a session. This notebook keeps such
# facts as one row a key, in memory and then in PostgreSQL, and keeps them short, visible and harmless.
#
# **What you will do**
#
# - ask an agent about yesterday, and read a list of notes that says three things at once;
# - set, replace and read preferences, the same in memory and in Postgres (exercise 06-1 says what a write changed, 06-2
#   makes one user of two);
# - send values through the guard rails, and see where a limit cuts an emoji;
# - close a fence from inside, and build one that holds (exercise 06-3);
# - let two writers lose a preference, and measure what five kinds of memory can answer.
#
# **You need** [01 Keep a session](01_keep_a_session.ipynb). No key. A PostgreSQL is started for you: a container where
# there is Docker, else a server from a Python package. About 65 minutes.

# %%
from tri_memory import InMemoryPreferenceStore, InMemorySessionStore
from tri_memory.agent.chat import Chat
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch00 import visits
from tri_memory.lab.chapters.ch06 import alike, asking, blob, cutting, fences, plots
from tri_memory.lab.chapters.ch06 import rails, rows
from tri_memory.lab.exercises import about, check, hint, quiz, reveal
from tri_memory.lab.plots import picture

english, chinese = datasets.load("en"), datasets.load("zh")

# %% [markdown]
# ## See it fail
#
# Maeve buys boots, Xiaobei Lin (林晓蓓) a bread machine. Each visits her shop five times, and tells things that hold
# beyond the visit: a size, an address. Then she comes a sixth time. A visit is a session, so the window is empty.

# %%
size = "What size should I order in shoes from now on?"
address = "我现在收快递的地址是哪里？"  # where do my parcels go now?
for data, user, question in (
    (english, "en-shop-01", size),
    (chinese, "zh-shop-01", address),
):
    agent = Chat(user, sessions=InMemorySessionStore())
    await visits.live(agent, data.of(user))
    print(f"{question}\n  {await agent.say(question)}\n")

# %% [markdown]
# - "I don't find that in what I was given", twice. Both women said it, and nothing of it is in the prompt.
#
# The first cure that comes to mind: a list of notes. Whatever the user tells goes to its end, and the whole list into
# each prompt. (A careful colleague wrote these notes. Who writes them in real life is a question for later.)

# %%
for data, user, question in (
    (english, "en-shop-01", size),
    (chinese, "zh-shop-01", address),
):
    known = asking.notes(data, user, visits=5)
    for note in known.notes:
        print(f"  {note.created_at:%Y-%m-%d}  {note.summary}")
    reply, tokens = await asking.answer(known, question)
    print(f"{question} ({tokens} tokens)\n  {reply}\n")

# %% [markdown]
# - A size three times, an address twice. The list never says that any of them is over.
# - The answer quotes an old value beside the new one. A stronger model may go by the dates. Even so, each outdated line
#   is paid for in every prompt, and the model is asked to do what a table does for certain.

# %% [markdown]
# ## One row a key
#
# A preference is a pair: a **key**, what it is about, and a **value**, what holds now. Setting a key again replaces its
# value. That is an **upsert**: insert, or update where the row exists.

# %%
memory = InMemoryPreferenceStore()
for note_size in ("39", "40", "41"):
    await memory.set("maeve", "shoe size", note_size)
await memory.set("maeve", "colour refused", "orange")
await memory.set("晓蓓", "过敏", "芝麻")

print(await memory.all("maeve"))
print(await memory.all("晓蓓"))
print(await memory.get("晓蓓", "shoe size"))

# %% [markdown]
# - Three sizes went in, one is there. Nobody has to look at dates.
# - The user id is part of the key. Xiaobei has no shoe size, whatever Maeve said.
# - Why not search the transcript? There the old sizes stand too, and as *Measure* shows, it is the longest prompt of all.

# %% [markdown]
# ## The same in Postgres
#
# `memory` ends with this kernel. `servers.postgres()` calls `engines.postgres()` once a kernel and starts it, so that
# this cell may run again; `.how` says where the server came from. It goes when the kernel goes.

# %%
from tri_memory import PostgresPreferenceStore
from tri_memory.lab import servers

server = servers.postgres()
print(f"PostgreSQL by way of: {server.how}")

table = rows.own_table()  # a name that no other kernel has
postgres = PostgresPreferenceStore(server.url, table=table)
await rows.instead_of_the_last(postgres)  # closes that of an earlier run of this cell
await alike.side_by_side({"memory": memory, server.how: postgres})

# %% [markdown]
# - The same calls, the same answers, in the same order. What differs is where the pairs lie:

# %%
await postgres.set("maeve", "shoe size", "42")
rows.rows(server.url, table)

# %% [markdown]
# - One row for (user_id, key), the table's primary key. The upsert is one statement:
#   `INSERT … ON CONFLICT (user_id, key) DO UPDATE`.
# - Maeve's size kept its place and its `created_at`; `updated_at` moved.
#
# Another Python process, which has never heard of this one, opens the same table:

# %%
print(rows.read_by_another_process(server.url, table, "maeve"))

# %% [markdown]
# What does that cost? Two hundred calls of each kind, on this machine, now:

# %%
(await alike.waits({"memory": memory, server.how: postgres}, times=200)).round(3)

# %% [markdown]
# - Memory answers at once; Postgres takes a trip through the network stack, and for `set` a write to disk. Beside a
#   model that thinks for a second, both are small.

# %% [markdown]
# ## Guard rails
#
# A value comes from a user, or from a model that listened to one. It stands in every prompt from then on. So every
# engine sends it through the same rules first: a key has at most 50 code points, a value 500. Here is what they make
# of some values.

# %%
await rails.through(postgres, "a user of this cell")

# %% [markdown]
# - What can't be seen is gone. With a zero-width space, two keys would look the same.
# - "café" has two spellings in Unicode: é, or e and an accent. Both are stored in one form, **NFC**, as one key:

# %%
await memory.set("maeve", "cafe\u0301", "closed on Mondays")
print(await memory.get("maeve", "caf\u00e9"))
print(await memory.set("maeve", "note", " \u200b "), "for a value that shows nothing")

# %% [markdown]
# - `set` returns False where nothing was stored. An agent that says "I'll remember that" should look at it.
#
# ## Turn the knob
#
# Python counts **code points**. A reader counts **graphemes**: a family emoji is one grapheme and five code points. A
# limit in code points can fall inside.

# %%
cutting.cut_panel()

# %% [markdown]
# - Take the family through 9, 11 and 12: the slice keeps the man, then man and woman, then a joiner that joins nothing.
# - Take the flags to 3: what is left of the second is a letter in a box. In "accents in code points of their own" a
#   slice at 4 takes the accent off café.
# - The guard rail steps back to the end of the last whole grapheme, and over a space in front of it. Only a grapheme
#   that is longer than the whole limit is cut all the same: take the flags to 1.

# %% [markdown]
# ## A fence around what is known
#
# Preferences go into the system prompt. There the application speaks, and a user's text must not pass for its words. So
# they stand inside a fence, `<memory …>`, and the system text declares what is inside to be data. Now somebody likes
# a strange tea:

# %%
from tri_memory.agent.prompt import preferences_text

await memory.forget("guest")
for key, value in fences.HOSTILE.items():
    await memory.set("guest", key, value)
known = await memory.all("guest")
naive, ours = fences.naive(known), preferences_text(known)
print(naive, ours, sep="\n\n")

# %%
print("outside the naive fence:", fences.outside(naive))
print("outside ours:           ", fences.outside(ours) or "nothing")

# %% [markdown]
# - The value ends the naive fence, gives an order in the open, and opens the fence again. (The Chinese line says the same.)
# - In ours every `<` of a key or value is written `&lt;`. The text is all there, and it can't make a tag.
# - Nothing was filtered. "Ignore previous instructions" may stand in a table; the guard is where the text meets a prompt.
# - What it doesn't do: make a model deaf. Text inside the fence is still read. The fence makes sure that the prompt
#   says truly where the data end.

# %% [markdown]
# ## Two writers
#
# Another design is tempting: all preferences of a user in one JSON text. Two writers, each with its own connection, set
# twenty preferences of Maeve's each; no key is the same. Five runs, with other pauses each time, on the PostgreSQL
# above:

# %%
import asyncio

losses = await asyncio.to_thread(blob.counted, server.url, range(5), keys=20)
losses.groupby("design", sort=False).lost.agg(["min", "median", "max"])

# %% [markdown]
# - Of the 40 preferences of a run, the first design loses about as many as one writer wrote. Each reads all, adds one,
#   and writes all back: its own new one, and an old picture of the other's. No call failed. This is the **lost
#   update**, notebook 02's racing append in another place.
# - JSON is not the fault, reading and writing back is: merged inside one UPDATE, it loses nothing.
# - A row a key loses nothing, without a lock and without a merge: the writers touch different rows.
# - If both set the *same* key, the later write stays. An upsert doesn't know who is right.

# %% [markdown]
# ## Measure
#
# The people of `data/` tell what they prefer, and change their minds. After five visits each comes again and asks. Five
# memories fill the prompt, and the built-in model answers; it can only quote. *Right*: every fact of the answer, and no
# value that held before.

# %%
table_of_answers = await asking.ask_everybody([english, chinese])
picture(
    plots.plot_answers(table_of_answers),
    alt="Keys written by hand give the most right answers in both languages, "
    "no outdated value, and a small prompt. Notes and full transcripts quote "
    "outdated values; the window and the rules answer nothing.",
)

# %%
counts = (
    table_of_answers.groupby(["memory", "verdict"], sort=False).size().unstack(fill_value=0)
)
counts["tokens (mean)"] = (
    table_of_answers.groupby("memory").tokens.mean().round().astype(int)
)
counts

# %% [markdown]
# - The lines in the plot are 95 % intervals over people; those of the prompt go from the smallest to the largest.
# - Notes and keys hold the same facts, written by the same hand. The difference between them is the replacing.
# - That hand knew the questions and chose its words to match. Take both rows as the best that such a memory can do.
# - The built-in model matches words, so compare the memories with each other. No model can answer from an empty
#   window, and none makes the transcript shorter.
#
# **Where the winner stops winning.** *Keys, by hand* had a colleague who noticed everything and always chose the same
# key. *Keys, by rule* is the same table, filled by the kit's own rules. See what they found in all that was said,
# and what happens to a size that is told in other words:

# %%
from tri_memory.agent.notice import notice

by_rule, by_hand = asking.pairs_of([english, chinese])
print(f"a colleague wrote {by_hand} pairs, the rules {len(by_rule)}:")
print("; ".join(f"{key}: {value}" for key, value in by_rule), "\n")
for said in ("I wear size 41.", "My shoe size is 42.", "我穿41码。", "我的鞋码是42码。"):
    print(f"{said:20} {notice(said)}")

# %%
from tri_memory.session.tokens import estimate_tokens

for number in (10, 100, 1000):
    known = {f"preference {n}": "a value of five words" for n in range(number)}
    print(f"{number:5} keys: {estimate_tokens(preferences_text(known)):6,} tokens")

# %% [markdown]
# - The rules know a few turns of phrase. Nearly all of what was told has no row, and the table can't keep what nobody
#   notices.
# - In English the new size went under a second key, and the old one stands beside it: a list of notes again. The Chinese
#   rule has one key for both sentences.
# - All keys go into each prompt. Ten are cheap. Of a thousand, somebody has to choose, as in notebooks 10 and 14.
# - A fact without a key ("the day the sole came off") belongs to layer 3, the next two notebooks.

# %% [markdown]
# ## Exercises
#
# Fill the stub, run the check, take a hint when you need one. Each check runs your answer in memory and then on every
# PostgreSQL that this machine can start; the answer must be the same.

# %%
about("06-1")


# %% tags=["stub"]
async def note(store, user: str, key: str, value: str) -> str:
    """Set the preference, and say what that changed.

    "new": there was none. "changed": another value was stored before. "same": this very value
    was. "dropped": the guard rails stored nothing.
    """
    raise NotImplementedError


# %% tags=["solution"]
async def note(store, user: str, key: str, value: str) -> str:
    """Set the preference, and say what that changed.

    "new": there was none. "changed": another value was stored before. "same": this very value
    was. "dropped": the guard rails stored nothing.
    """
    before = await store.get(user, key)
    if not await store.set(user, key, value):
        return "dropped"
    after = await store.get(user, key)
    if before is None:
        return "new"
    return "same" if before == after else "changed"


# %%
check("06-1", note)

# %%
about("06-2")


# %% tags=["stub"]
async def merge(store, user: str, other: str) -> int:
    """Give `user` what `other` has and `user` hasn't, then forget `other`; how many that were.

    The user's own values stay, and stand first; the others follow in their order. If any call
    fails, nothing is lost, and merging again finishes.
    """
    raise NotImplementedError


# %% tags=["solution"]
async def merge(store, user: str, other: str) -> int:
    """Give `user` what `other` has and `user` hasn't, then forget `other`; how many that were.

    The user's own values stay, and stand first; the others follow in their order. If any call
    fails, nothing is lost, and merging again finishes.
    """
    if user == other:
        return 0
    own = await store.all(user)
    taken = 0
    for key, value in (await store.all(other)).items():
        if key not in own:
            await store.set(user, key, value)
            taken += 1
    await store.forget(other)
    return taken


# %%
check("06-2", merge)

# %%
about("06-3")


# %% tags=["stub"]
def fence(preferences: dict[str, str]) -> str:
    """A line `- key: value` each, after `<memory name="preferences">`, before `</memory>`.

    "" without preferences. No key or value makes a tag, in any spelling, and `html.unescape` of
    a line gives back what was stored.
    """
    raise NotImplementedError


# %% tags=["solution"]
import html


def fence(preferences: dict[str, str]) -> str:
    """A line `- key: value` each, after `<memory name="preferences">`, before `</memory>`.

    "" without preferences. No key or value makes a tag, in any spelling, and `html.unescape` of
    a line gives back what was stored.
    """
    if not preferences:
        return ""
    lines = [
        html.escape(f"- {key}: {value}", quote=False) for key, value in preferences.items()
    ]
    return "\n".join(['<memory name="preferences">', *lines, "</memory>"])


# %%
check("06-3", fence)

# %% [markdown]
# Stuck? `hint("06-2")` gives the next of three hints, `reveal("06-2")` one right answer.

# %%
quiz("06")

# %% [markdown]
# The table of this notebook goes; run *The same in Postgres* again to have it back.

# %%
await postgres.close()
rows.drop(server.url, table)

# %% [markdown]
# ## What you saw
#
# - A new session knows nothing of the last one, and a list of notes knows too much: it keeps what is over.
# - One row for (user, key): setting again replaces, in memory and in Postgres alike. What is stored is not always what
#   was sent (06-1), and two users become one without loss if the forgetting comes last (06-2).
# - Guard rails make a value short and visible, and cut between graphemes.
# - A fence holds if no text inside can write its tag (06-3). It marks data; it doesn't make a model obey.
# - Reading all, changing one and writing all back loses what others wrote. A row a key doesn't.
#
# **Claims tested here**: none of the table's; the numbers above are this run's own. **What breaks this idea**: a fact that
# nobody notices, a key that is called something else next time, and everything that happened and is no preference.
#
# Next: [07 Recall by meaning](07_recall_by_meaning.ipynb), what happened before, found again in other words.
