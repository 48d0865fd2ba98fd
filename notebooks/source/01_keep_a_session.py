# %% [markdown]
# # Keep a session
#
# A model call starts from nothing. What a chat seems to remember is what your program sends again. This notebook keeps
# a conversation, cuts out the part to send, and asks two questions about it: who may read it, and what does it cost?
#
# **What you will do**
#
# - watch a model forget an order number, a moment after it was given;
# - keep turns in a session, and cut a window that no endpoint refuses (exercise 01-1);
# - let two customers share a session id and see whose front door comes out (exercise 01-3 keeps them apart);
# - move the limit, and watch the prompt, the answer and the bill;
# - measure how far back people refer, and choose a limit for it (exercise 01-2).
#
# **You need** [00 Start here](00_start_here.ipynb). No server, no key. About 60 minutes.

# %%
import pandas as pd

from tri_memory import (
    InMemoryPreferenceStore,
    InMemorySessionStore,
    ManualClock,
    estimate_tokens,
)
from tri_memory.agent.models import PromptOnlyModel
from tri_memory.agent.prompt import assemble
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch01 import bill, coverage, cuts, desk, panel
from tri_memory.lab.claims import claim
from tri_memory.lab.exercises import about, check, hint, quiz, reveal
from tri_memory.lab.plots import picture

english, chinese = datasets.load("en"), datasets.load("zh")

# %% [markdown]
# ## See it fail
#
# Maeve's new boots pinch. The shop's desk asks for her order number, and she finds it.

# %%
visit = english.of("en-shop-01")[0].turns
for turn in visit[:4]:
    print(f"{turn.role:9} {turn.content[:95]}")

# %% [markdown]
# A moment later she wants to write it down. The program sends what she typed, and nothing else.

# %%
model = PromptOnlyModel()
question = "What was my order number again?"
print(await model([{"role": "user", "content": question}]))

# %% [markdown]
# - `PromptOnlyModel` is built in. It answers by quoting its prompt and knows nothing else, so forgetting is visible.
# - Every model behind an API is in the same position: the call before this one left no trace in it.
#
# The cure is to send the earlier turns, too. `assemble` makes one prompt of them.

# %%
print(await model(assemble(visit[:6], question=question)))

# %% [markdown]
# In Chinese: He Changlin ordered a pressure cooker. *What's the order number of my pressure cooker?*

# %%
cooker = chinese.of("zh-shop-02")[0].turns
asked_zh = "我那个压力锅的订单号是几多？"
print("alone:      ", await model([{"role": "user", "content": asked_zh}]))
print("with visit: ", (await model(assemble(cooker, question=asked_zh))).splitlines()[0])

# %% [markdown]
# - Alone, the model says that it doesn't find this in what it was given. With the visit it quotes the order, ZB-2391.

# %% [markdown]
# ## What is sent
#
# A **turn** is one message with a role: `user`, `assistant`, `tool`, or `system` for the program's own instructions.
# A **prompt** is a list of such messages. There is nothing else a model gets.

# %%
pd.DataFrame(visit[2:6]).fillna("")

# %%
pd.DataFrame(assemble(visit[2:6], question=question))

# %% [markdown]
# - When the assistant calls a tool, that is a turn, too (it has a `tool_name`); the result comes back as a `tool` turn.
# - The prompt begins with the system text and ends with what the user just typed.
# - `assemble` sends call and result as plain text: the role `tool` needs call ids that a turn doesn't keep.

# %% [markdown]
# ## Keep the turns
#
# A **session** is one visit: its turns, in order, under a **session id**. `append` is how they get in.

# %%
clock = ManualClock()
store = InMemorySessionStore(clock=clock)
for session in english.of("en-shop-01"):
    clock.set(session.started_at)
    await desk.tell(store, session.session_id, session.turns)
pd.DataFrame(await store.list_sessions())

# %% [markdown]
# - Five visits, five sessions, the most recent first. That is the list of old chats at the side of every chat page.

# %%
history = await store.get_history("en-shop-01-s5")
recent = await store.get_window("en-shop-01-s5", limit=4)
print(f"history: {len(history)} turns, window: the last {len(recent)}\n")
for turn in recent:
    print(f"{turn.role:9} {turn.content[:90]}")
await store.clear("en-shop-01-s1")
left = len(await store.list_sessions())
print(f"\nfirst visit cleared, {left} sessions left")

# %% [markdown]
# - The **history** is what you keep. The **window** is what you send: the last `limit` turns of it. Two decisions.
#   (Past 40 turns this store keeps less, too: [03](03_compress_by_count.ipynb).)
# - A new visit has a new session id, so its window is empty: the desk has forgotten Maeve. Layers 2 and 3 are for that.

# %% [markdown]
# ## A session id is not a user id
#
# The shop has a tablet by the till. Its app made up a session id on the first day and uses it ever since. In the
# morning Maeve writes on it. In the afternoon Desmond, a scout leader, wants tents, and asks two harmless questions.

# %%
desmond = english.of("en-shop-02")[0].turns[:5]
tablet = InMemorySessionStore()
await desk.tell(tablet, "tablet", visit)
await desk.tell(tablet, "tablet", desmond)
for harmless in ("Which door was it for the delivery?", "When can I be reached by phone?"):
    print(f"{harmless}\n{await desk.ask(tablet, 'tablet', harmless)}\n")

# %% [markdown]
# - A stranger has Maeve's address, knows that the front door doesn't open, and until when nobody is at home.
# - Nothing is broken: the store gave what belongs to that id. The mistake is to take a device for a person.
#
# A session id for each visit of each person, and Desmond gets an honest answer:

# %%
apart = InMemorySessionStore()
await desk.tell(apart, "maeve, visit 1", visit)
await desk.tell(apart, "desmond, visit 1", desmond)
print(await desk.ask(apart, "desmond, visit 1", "Which door was it for the delivery?"))

# %% [markdown]
# The same mix-up one layer up. A preference belongs to a *person*; here it is filed under the session id. (Preferences
# have a notebook of their own, [06](06_remember_preferences.ipynb).)

# %%
preferences = InMemoryPreferenceStore()
await preferences.set("tablet", "never offer", "wool, it gives her a rash")
print("Desmond, on the tablet:", await preferences.all("tablet"))
print("Maeve, on her phone:   ", await preferences.all("phone"))
try:
    await preferences.all(" ")
except ValueError as error:
    print("nobody in particular:  ", error)

# %% [markdown]
# - One wrong key, two failures: the wrong person is told, the right person is forgotten.
# - A missing user id is refused, not guessed. Otherwise all who aren't logged in would share one memory.

# %% [markdown]
# ## A window must not begin in the middle
#
# The obvious window is `turns[-20:]`. This is how it begins at one moment of one of our conversations:

# %%
naive = cuts.naive_prompts(english, limit=20)
first = naive[naive.opens_with == "tool"].iloc[0]
turns = english.turns_of(first.user)[: first.turn]
for turn in turns[-20:][:3]:
    print(f"{turn.role:9} {turn.content[:90]}")
print(f"\nendpoint: {cuts.endpoint(turns[-20:])}")

# %% [markdown]
# - The call fell out, its result stayed. `cuts.endpoint` checks what OpenAI's chat endpoint checks, in its words; other
#   endpoints say nothing, and their model reads a result that nobody asked for.
# - Libraries ship this: LangChain's `trim_messages`, unless told [where to
#   start](https://github.com/langchain-ai/langchain/issues/33245).

# %%
for name, dataset in (("en", english), ("zh", chinese)):
    for limit in (5, 20):
        opens = cuts.naive_prompts(dataset, limit).opens_with
        refused = (opens == "tool").sum()
        print(f"{name}, limit {limit:2}: {refused:2} of {len(opens)} prompts are refused")

# %%
store = InMemorySessionStore()
await desk.tell(store, "lessons", turns)
kept = await store.get_window("lessons", limit=20)
print(f"get_window: {len(kept)} turns, the first is {kept[0].role}'s")
print(f"endpoint:   {cuts.endpoint(kept)}")

# %% [markdown]
# - A handful of prompts in a hundred: rare enough to pass every demo. `get_window` leaves the orphan out instead.

# %% [markdown]
# ## What it costs
#
# Providers count **tokens**. A token is about three quarters of an English word, or one to two Chinese characters;
# [04](04_compress_by_tokens.ipynb) counts exactly. The price below is an assumption: put in yours.

# %%
dollars_per_million = 1.0  # an assumption: put in what your provider takes for input
maeve = english.turns_of("en-shop-01")
said = sum(estimate_tokens(turn.content) for turn in maeve)
print(f"everything said in five visits: {said:,} tokens\n")
for limit in (0, 5, 10, 20, 40):
    sent = bill.conversation_tokens(maeve, limit)
    price = bill.per_thousand(sent, dollars_per_million)
    print(f"limit {limit:2}: {sent:6,} tokens sent, ${price:5.2f} for 1,000 conversations")

# %% [markdown]
# - Every call sends the whole window again. So far more tokens are paid for than were ever said.
# - Without a limit the bill grows with the *square* of the conversation: twice as long, twice as many calls, and each
#   of them twice as long.
# - Some providers take less for a beginning they have just read. A full window loses its first turn at every call, so
#   behind the system text nothing begins as it did.

# %% [markdown]
# ## Turn the knob
#
# Someone asks a question at the end of five visits. Blue turns are sent; the green one holds the answer.

# %%
panel.prompt_panel()

# %% [markdown]
# - Raise the limit until Maeve's green bar is inside. In that moment the answer changes.
# - Dermot's answer is near: nearly all of his blue bars are paid for and not needed.
# - Ma Xiaoyan asks for her exam registration number. Set the limit to exactly as many turns as her answer lies back: it
#   is still not sent. Why? (It is a tool result; alone, without its call, it would open the window.)

# %% [markdown]
# ## Measure
#
# How far back do people refer? `data/` has questions that our 24 people might ask after their last visit; a
# **back-reference** points at something said before ("same as last time", "the red bit I pulled out"). For comparison:
# order and serial numbers that the assistant itself writes again while it talks. The band is a 95 % interval: the users
# drawn anew, again and again.

# %%
both = (english, chinese)
asked = pd.concat(map(coverage.asked_back, both))
repeated = pd.concat(map(coverage.repeated_codes, both))
tokens = pd.concat(map(coverage.window_tokens, both), axis=1)
picture(
    coverage.plot(asked, repeated, tokens),
    alt="Left: the share covered against the limit. 20 turns cover nearly all codes that "
    "the assistant repeats, but few back-references, whose curves rise all the way. Right: "
    "tokens in the prompt rise in a straight line; the answer alone weighs little.",
)

# %%
table = coverage.shares(asked, repeated, limit=20)
table

# %%
print(coverage.price_sentence(asked, tokens, percent=80))

# %% [markdown]
# - *Purple*: the codes that an assistant needs to go on lie a few turns back.
# - *Blue and orange*: no knee. What people ask back lies anywhere, down to the first visit.
# - What these data can't say: how *often* people refer back. The questions were written to reach into earlier visits;
#   nobody asks about the sentence before. And within one visit of 8 to 12 turns, a limit of 20 can't miss anything.
#
# **Where the winner stops winning.** The widest window covers everything, as long as everything fits: each further turn
# is paid for at every call, needed or not, and after the next visit the oldest answers are out of reach again.

# %%
claim("C02", measured=coverage.coverage_sentence(table), verdict="depends")

# %% [markdown]
# ## Exercises
#
# Fill the stub, run the check, take a hint when you need one.

# %%
about("01-1")


# %% tags=["stub"]
def window(turns: list, limit: int) -> list:
    """The last `limit` turns, but never opening with a tool result.

    A system turn at the very beginning always stays in front; it doesn't count.
    """
    raise NotImplementedError


# %% tags=["solution"]
def window(turns: list, limit: int) -> list:
    """The last `limit` turns, but never opening with a tool result.

    A system turn at the very beginning always stays in front; it doesn't count.
    """
    head = turns[:1] if turns and turns[0].role == "system" else []
    begin = max(len(head), len(turns) - limit)
    while begin < len(turns) and turns[begin].role == "tool":
        begin += 1
    return head + turns[begin:]


# %%
check("01-1", window)

# %%
about("01-2")


# %% tags=["stub"]
def smallest_limit(turns_back: list[int], percent: int) -> int:
    """The smallest limit that covers at least `percent` (1 to 100) % of the questions.

    `turns_back[i]` says how far back the answer of question i stands; 1 is the last turn.
    """
    raise NotImplementedError


# %% tags=["solution"]
def smallest_limit(turns_back: list[int], percent: int) -> int:
    """The smallest limit that covers at least `percent` (1 to 100) % of the questions.

    `turns_back[i]` says how far back the answer of question i stands; 1 is the last turn.
    """
    enough = -(-percent * len(turns_back) // 100)  # rounded up
    return sorted(turns_back)[enough - 1]


# %%
check("01-2", smallest_limit)

# %% [markdown]
# Then try it on the measurement: `smallest_limit(list(asked.turns_back), 50)`, and 90, and 100.

# %%
about("01-3")


# %% tags=["stub"]
class Desk:
    """The sessions of many users in one session store; a blank user id is a ValueError."""

    def __init__(self, store):
        self.store = store

    async def append(self, user_id: str, session_id: str, turn) -> None:
        """Add a turn to this user's session. Another user may have a session of that id."""
        raise NotImplementedError

    async def turns_of(self, user_id: str) -> list:
        """All turns of this user's sessions; the session active last comes last."""
        raise NotImplementedError


# %% tags=["solution"]
import json

from tri_memory.contracts import require_text


class Desk:
    def __init__(self, store):
        self.store = store

    async def append(self, user_id: str, session_id: str, turn) -> None:
        key = json.dumps([require_text("user_id", user_id), session_id])
        await self.store.append(key, turn)

    async def turns_of(self, user_id: str) -> list:
        require_text("user_id", user_id)
        keys = [row.session_id for row in reversed(await self.store.list_sessions())]
        mine = [key for key in keys if json.loads(key)[0] == user_id]
        return [turn for key in mine for turn in await self.store.get_history(key)]


# %%
check("01-3", Desk)

# %% [markdown]
# Stuck? `hint("01-2")` gives the next of three hints, `reveal("01-2")` one right answer.

# %%
quiz("01")

# %% [markdown]
# ## What you saw
#
# - A model has its prompt and nothing else. It forgets an order number in a moment.
# - A session keeps turns; a window is the part that is sent, and it must not open with an orphaned result (01-1).
# - A session id is a visit, a user id a person. Mixed up, they tell a stranger where Maeve lives (01-3).
# - The limit decides what is known and what is paid, and the window is paid for at every call.
# - The codes an assistant repeats lie close by, what people ask back lies anywhere: choose a share, not a limit (01-2).
#
# **Claim tested here**: C02. **What breaks this idea**: the limit counts turns, and a turn may be two words or two
# pages (04 counts tokens). What falls out of the window is gone (03 folds it into a summary). And all of this lives in
# one process and dies with it (05).
#
# Next: [02 Write from many places](02_write_from_many_places.ipynb), where two writers meet in one session.
