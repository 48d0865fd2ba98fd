# %% [markdown]
# # Start here: see an agent forget you, then remember you
#
# You tell an agent about your allergy, and a minute later it has never heard of it. This notebook makes that happen,
# cures it in three steps, and shows you around.
#
# **What you will do**
#
# - ask an agent for something you told it two messages ago, and read the prompt that explains its shrug;
# - add three layers of memory, each for another kind of forgetting (exercise 00-1 sorts them);
# - switch them on and off, and see which part of the prompt an answer came from (exercise 00-2 fills a prompt);
# - measure what each layer brings, and where remembering turns into making up;
# - make an agent answer by changing only what is stored (exercise 00-3).
#
# **You need** nothing: no server, no key, no network, no other notebook. About 50 minutes with the exercises.
#
# Click into a cell and press Shift+Enter; that runs it. Go from top to bottom. First, is everything here?

# %%
from tri_memory import InMemoryEpisodicStore, InMemoryPreferenceStore, InMemorySessionStore
from tri_memory import ManualClock, default_embedder, doctor
from tri_memory.agent.chat import Chat
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch00 import asking, atlas, health, ladder, layers, measure
from tri_memory.lab.chapters.ch00 import panel, placing, series, visits
from tri_memory.lab.exercises import about, check, hint, progress, quiz, reveal
from tri_memory.lab.plots import picture

health.table(doctor.checks())

# %% [markdown]
# - *OK*: fine. *optional*: one thing is not there that you can do without. *FAIL*: the line says what to do about it.
# - The same lines come from `tri-memory doctor` in a terminal. Send them along when you report a problem.

# %% [markdown]
# ## See it fail
#
# Gwen looks after the pumps of a laundry. On a day in January she writes to the maintenance desk:

# %%
english, chinese = datasets.load("en"), datasets.load("zh")
gwen = english.of("en-device-01")
asking.transcript(
    gwen[1].turns[6:10], "Gwen", f"Gwen's visit of {gwen[1].started_at:%d %B}"
)

# %% [markdown]
# Now an agent takes that visit, word for word. Before she leaves, Gwen asks for two of the things she has just said.

# %%
purchase = "Which purchase order did I give you for the bearings?"
allergy = "What am I allergic to?"

chat = Chat("gwen")
await visits.replay(chat, gwen[1])
await asking.ask(chat, purchase)

# %%
await asking.ask(chat, allergy)

# %% [markdown]
# - No error, no warning. It was there for every one of her messages, and it knows nothing.
# - Look at the **prompt**, the text that the model is given: the system text (click to read it) and her question. That
#   is everything a model ever gets. Nothing stays in it from one call to the next, and it is no different with the
#   models that one pays for.
# - In May the desk sends her a fitter. Nobody tells him about gloves.
#
# A word about this model: it is no LLM. It looks for the sentences of its prompt that share words with the question,
# quotes them and says where they stood, or says that it found nothing. It can't know anything else, so you see exactly
# what memory does. Your own model goes in the same place; *How this kit works*, below, says how.

# %% [markdown]
# ## Layer 1: the session window
#
# The first cure is to send the conversation again, with every question. A **session store** keeps its turns; the
# **window**, the last 20 of them, goes into the prompt.

# %%
clock = ManualClock()
chat = Chat("gwen", sessions=InMemorySessionStore(), clock=clock)
await visits.replay(chat, gwen[1])
await asking.ask(chat, purchase)

# %% [markdown]
# - Same model, same question. What it quotes is marked: it was in the prompt, because the program put it there.
# - Each part of a prompt costs **tokens**, the pieces of text that models read and are paid for.
#
# Six weeks later Gwen is back, in a new session.

# %%
clock.set(gwen[2].started_at)
await chat.new()
await asking.ask(chat, allergy)

# %% [markdown]
# - A new session begins with an empty window. A longer one would be just as empty.

# %% [markdown]
# ## Layer 2: preferences
#
# The second layer keeps what Gwen states about herself, as `key: value`, for as long as she doesn't take it back.
# Rules notice it while she talks. It goes into every prompt.

# %%
chat = Chat(
    "gwen",
    sessions=InMemorySessionStore(),
    preferences=InMemoryPreferenceStore(),
    clock=clock,
)
await visits.live(chat, gwen[:4])
await asking.ask(chat, allergy)

# %% [markdown]
# - Four visits, a new session, and no fitter with latex gloves. The price is one short line.
# - The fence `<memory …>` tells the model that this is data about the user and no instruction.

# %%
await asking.ask(chat, purchase)

# %% [markdown]
# - A purchase order is nothing that Gwen *is*. It is something that *happened*.

# %% [markdown]
# ## Layer 3: episodes
#
# When a session ends, a **summariser** writes a note of it, and an **embedder** turns the note into a row of numbers:
# that is an **episode**. Here the notes are those that a colleague wrote by hand; notebook
# [03](03_compress_by_count.ipynb) has a summariser that needs no hand. With each new question, the three nearest
# episodes go into the prompt.

# %%
chat = Chat(
    "gwen",
    sessions=InMemorySessionStore(),
    preferences=InMemoryPreferenceStore(),
    episodes=InMemoryEpisodicStore(),
    embedder=default_embedder(),
    summarizer=visits.by_hand(gwen),
    clock=clock,
)
await visits.live(chat, gwen[:4])
await asking.ask(chat, purchase)

# %% [markdown]
# - The right number, with its day. And a second quote that nobody needs: three episodes come back, whether they help
#   or not, and they are most of what this prompt costs.
#
# *Nearest* means near in meaning. None of these words is in a note of Gwen's visits; 橡胶手套 is Chinese for *rubber
# gloves*.

# %%
await asking.nearest(
    chat, ["rubber gloves", "橡胶手套", "Is anything leaking?", "warranty"]
)

# %% [markdown]
# - A row a query, a column a visit; 1 would be the same direction. The notes say *latex*, *weeps* and *guarantee*.
# - These four are chosen. Notebook 07 shows others, for which the nearest is the wrong one.

# %% [markdown]
# ## The same in Chinese
#
# Xiaobei Lin (林晓蓓) bought a bread machine. Her agent has all three layers and four visits behind it. She asks *What
# am I allergic to?*, and then *The new machine you swapped mine for, what is its serial number?*

# %%
xiaobei = chinese.of("zh-shop-01")
stores = await layers.remembered(xiaobei[:4])
agent = stores.agent(xiaobei[0].user_id)
await asking.ask(agent, "我对什么过敏？", "What am I allergic to?")

# %%
serial = "换给我的那台新面包机，序列号是多少来着？"
await asking.ask(agent, serial, "the new machine's serial number?")

# %% [markdown]
# - First answer: *An earlier conversation says … allergic to sesame (芝麻). Your preferences say: sesame: allergic.*
# - Second: the note of March, with *new serial number M6-0067720* (新序列号). Nothing was translated for that.

# %% [markdown]
# ## The map
#
# That is all: **what an agent remembers is what the program puts back into the prompt.** The three layers differ in
# what they keep, for how long, and how it finds its way back.

# %%
topics = ("a pump whines", "new bearings", "a drip", "the flood")
picture(
    atlas.draw(gwen, topics, (1, "latex: allergic")),
    alt="Five visits. The window holds the present one only. The preference reaches the prompt "
    "from January on, and so does each earlier visit as an episode.",
)

# %%
series.table()

# %% [markdown]
# ## Turn the knob
#
# The last visits of Gwen and Xiaobei (晓蓓), all but over. Only the window is on. Before you move a slider: which layer
# has the answer?

# %%
panel.layer_panel()

# %% [markdown]
# - Purchase order, allergy, parking place: each question has its cheapest layer. Find the three.
# - Take the question that has no answer (*never said*), and switch layers on and off: even with the window alone the
#   agent answers, with something beside the question. It has no sense of what was never said.

# %% [markdown]
# ## Measure
#
# Twelve people of `data/`, half of them writing Chinese, and everything they ask later on: once at the end of the visit
# in which they told it, once in a new visit when all five are over. *Answered* means that the answer has the fact to
# the letter.

# %%
import pandas as pd

everybody = [(data, data.users()[::2]) for data in (english, chinese)]
table = pd.concat([await measure.ask_everybody(data, users) for data, users in everybody])
picture(
    ladder.draw(table),
    alt="In the same visit the window answers. In a new visit only episodes do. With episodes, "
    "questions that nobody can answer get an answer, too.",
)

# %%
print(ladder.facts(table))
print("\nall that the rules noticed:")
for data, users in everybody:
    print(" ", measure.noticed(data, users))

# %% [markdown]
# - The outline is memory's work: the answer stands in the prompt. The filled part is this model's, which can only
#   match words. A real model fills more of the outline; it can't get beyond it.
# - Preferences look useless here (名字 is *name*, 过敏 *allergic*). The rules are cautious, and a preference serves
#   when nobody asks: a fitter packs his gloves without a question. Notebook 06 notices more, and shows what it costs.

# %%
print(ladder.where_it_stops(table))

# %% [markdown]
# **Where the winner stops winning.** Three layers bring back the most, and they bring something near for every
# question, also for those that nobody can answer. This model takes what is near. Which memory deserves the prompt is
# the question of notebook 10.

# %% [markdown]
# ## How this kit works
#
# - **Exercises** have a stub: replace `...` or the `raise` by your answer, run it, then run `check`. It says what
#   your answer does. `hint("00-2")` gives the next of three hints, `reveal("00-2")` one right answer.
# - **Your copy.** You work in `workbook/`; nothing overwrites it. A fresh copy of this notebook, with yours kept
#   beside it: `from tri_memory.lab import workbook; workbook.reset("00")`, then *File > Reload Notebook from Disk*.
# - **Two languages.** The people in `data/` write English or Chinese. Whenever Chinese is shown, the English is
#   beside it.
# - **Offline.** No notebook needs the network. `tri-memory chat --user you` talks to the agent in a terminal.
# - **Your own model**, if you like: set `OPENAI_MODEL` with `OPENAI_API_KEY` or `OPENAI_BASE_URL` (any server that
#   speaks OpenAI's chat completions, one on your own machine, too) before you start Jupyter. Then `Chat("gwen",
#   model=model_from_env(), …)` with `from tri_memory.agent.models import model_from_env`. Your prompts go to that
#   server, then, and may cost money.

# %% [markdown]
# ## Exercises

# %%
about("00-1")

# %%
placing.table()

# %% tags=["stub"]
placed = {  # "session", "preferences" or "episodes"
    "a": ...,
    "b": ...,
    "c": ...,
    "d": ...,
    "e": ...,
    "f": ...,
}

# %% tags=["solution"]
placed = {  # "session", "preferences" or "episodes"
    "a": "preferences",
    "b": "session",
    "c": "episodes",
    "d": "preferences",
    "e": "session",
    "f": "episodes",
}

# %%
check("00-1", placed)

# %%
about("00-2")

# %% tags=["stub"]
from tri_memory import Recollection, estimate_tokens


def fill(question: str, memories: list[Recollection], budget: int) -> list[Recollection]:
    """The memories to put into the prompt beside the question, best score first.

    Question and summaries together cost at most `budget` tokens. Go from the best score to
    the worst; what doesn't fit is passed over, a shorter one behind it may still go in.
    """
    raise NotImplementedError


# %% tags=["solution"]
from tri_memory import Recollection, estimate_tokens


def fill(question: str, memories: list[Recollection], budget: int) -> list[Recollection]:
    """The memories to put into the prompt beside the question, best score first.

    Question and summaries together cost at most `budget` tokens. Go from the best score to
    the worst; what doesn't fit is passed over, a shorter one behind it may still go in.
    """
    chosen, left = [], budget - estimate_tokens(question)
    for memory in sorted(memories, key=lambda memory: memory.score, reverse=True):
        cost = estimate_tokens(memory.summary)
        if cost <= left:
            chosen.append(memory)
            left -= cost
    return chosen


# %%
check("00-2", fill)

# %%
about("00-3")

# %% [markdown]
# A workshop kept its notes on paper, such as "Fitted a new fan; its number is PN-4711." Type them into the agent, so
# that in a new session it answers *What number does the new fan have?* with the number and the day. The model stays
# as it is, and a prompt must not carry all the notes.

# %% tags=["stub"]
from datetime import datetime

from tri_memory import EpisodicRecord


async def put_back(chat, notes: list[tuple[datetime, str]]) -> None:
    """Store the notes, each with its day, where `chat` finds the right one in a new session.

    There are `chat.sessions`, `chat.preferences`, `chat.episodes`, and `chat.embedder`.
    """
    raise NotImplementedError


# %% tags=["solution"]
from datetime import datetime

from tri_memory import EpisodicRecord


async def put_back(chat, notes: list[tuple[datetime, str]]) -> None:
    """Store the notes, each with its day, where `chat` finds the right one in a new session.

    There are `chat.sessions`, `chat.preferences`, `chat.episodes`, and `chat.embedder`.
    """
    vectors = chat.embedder.encode([text for _, text in notes])
    for number, (day, text) in enumerate(notes):
        record = EpisodicRecord(chat.user_id, f"paper-{number}", text, vectors[number], day)
        await chat.episodes.remember(record)


# %%
check("00-3", put_back)

# %% [markdown]
# What you have solved is kept in `workbook/progress.json`: times and counts, and nothing of your code.

# %%
progress()

# %%
quiz("00")

# %% [markdown]
# ## What you saw
#
# - A model keeps nothing. What it seems to remember stands in its prompt, put there by the program.
# - The window knows what was just said, preferences who this is, episodes what happened; each is for what the one
#   before forgets (00-1).
# - The prompt has a price and a limit, so something has to choose what goes in (00-2).
# - Memory and model fail apart: a fact may be stored and not recalled, or recalled and not read. And with more to
#   quote there is more to misquote.
# - An agent says something else when its stores hold something else, with the very same model (00-3).
#
# **Claims tested here**: none; the first is in 01. **What breaks this idea**: everything here lives in this process.
# Restart the kernel, and the agent has forgotten you again.
#
# Next: [01 Keep a session](01_keep_a_session.ipynb), what "remember the conversation" means.
