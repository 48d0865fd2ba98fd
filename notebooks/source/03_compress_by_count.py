# %% [markdown]
# # Compress by count
#
# A conversation grows, a prompt must not. This notebook drops old turns and pays for it, folds them into a summary
# instead, and then measures what a summary of 100 words really keeps.
#
# **What you will do**
#
# - watch an allergy and an order number vanish while nothing complains;
# - fold turns into a rolling summary, by hand and by the store (exercise 03-1 says how many);
# - break the summariser in five ways and read what the store's trace says;
# - turn the two numbers of the policy, and see how often old turns are condensed again;
# - count which facts survive one fold and four, then beat a baseline with a summariser of your own (exercise 03-2),
#   and feed one that takes only a few turns a call (exercise 03-3).
#
# **You need** [01 Keep a session](01_keep_a_session.ipynb) and [02 Write from many
# places](02_write_from_many_places.ipynb). No server, no key. About 65 minutes.

# %%
from functools import cache

from tri_memory import CountPolicy
from tri_memory.lab import datasets
from tri_memory.lab.card import text_card
from tri_memory.lab.chapters.ch03 import asking, baselines, failures, panel, survivors
from tri_memory.lab.chapters.ch03.remembering import RememberingEmbedder
from tri_memory.lab.exercises import about, check, hint, quiz, reveal
from tri_memory.lab.plots import picture
from tri_memory.summary import summary_turn
from tri_memory.session.extractive import ExtractiveSummarizer

english, chinese = datasets.load("en"), datasets.load("zh")

# %% [markdown]
# ## See it fail
#
# Xiaobei Lin (林晓蓓) has bought a bread machine from a Chinese shop. In turn 9 she says what sesame does to her. Five
# months later the shop tells her about a new machine that drops fruit and seeds into the dough, and she trusts it to
# remember. This shop's agent cuts a history of more than 40
# turns down to the newest 20, and lets it grow again.

# %%
xiaobei = chinese.turns_of("zh-shop-01")
for number in (9, 55):
    print(f"turn {number}: {xiaobei[number - 1].content}")

store = await asking.talk(xiaobei[:55])
kept = await store.get_history("desk")
sesame = sum("芝麻" in turn.content for turn in kept)
print(f"\nturns kept: {len(kept)}, of them with 芝麻 (sesame): {sesame}")

# %% [markdown]
# - Turn 9: "And the free packet of flour mix, is there sesame in it? I'm allergic, a bite and my mouth swells."
# - Turn 55: "Sure, let me know. And the seed-and-fruit pack that comes with it … you know."
# - It doesn't know. It will answer warmly, and pack the sesame.
#
# The same in English: Maeve, whom you met in notebook 02, and everything she asks later on.

# %%
maeve = english.turns_of("en-shop-01")
store = await asking.talk(maeve)
asking.marked(asking.asked(english, "en-shop-01", await store.get_history("desk")))

# %% [markdown]
# - She had told them all of it. No append failed, nothing was logged; the gap opens when she asks.
# - One place did notice. A store notes what it cut in its `trace`:

# %%
record = store.trace[-1]
print(f"{record.outcome} {record.turns} turns: {record.reason}")

# %% [markdown]
# ## Fold instead of cut
#
# A **fold** replaces the oldest turns by a single one that tells what they said, the *summary turn*. A *policy* says
# when and which: `CountPolicy(compress_after=40, keep_recent=20)` folds when a history has more than 40 turns, and
# then all but the newest 20.

# %%
policy = CountPolicy(compress_after=40, keep_recent=20)
for count in (40, 41):
    span = policy.plan(maeve[:count], [policy.weigh(turn) for turn in maeve[:count]])
    print(f"{count} turns: fold the oldest {span.stop - span.start}")

# %% [markdown]
# - At 40 turns there is nothing to do. Turn 41 starts a fold, and 21 turns go: Maeve's first two visits and one turn.
#
# A colleague at the shop wrote a note on each of these visits. So fold by hand:

# %%
visits = english.of("en-shop-01")
note = summary_turn(visits[0].summary + " " + visits[1].summary)
folded = [note, *maeve[span.stop : 41]]
text_card(f"{len(folded)} turns now, the first is a {note.role} turn", note.content)

# %% [markdown]
# - One turn stands for 21. The prefix tells the model and the next fold what it is; a Chinese one begins `[会话摘要]`
#   (conversation summary).
# - It can't go on like this: five visits would be five notes, fifty visits fifty. A summary has 100 words (150
#   characters in Chinese) however long the conversation gets. So the next fold has to condense this note, too.

# %% [markdown]
# ## Let the store do it
#
# The store takes a *summariser*: any function from turns to text, plain or async. This one only reports what it is
# given.

# %%
calls = []


def report(turns):
    calls.append(f"{len(turns)} turns, the first is {turns[0].content[:50]!r}")
    return f"summary number {len(calls)}"


store = await asking.talk(maeve, report, CountPolicy(compress_after=20, keep_recent=10))
print(*calls, sep="\n")

# %% [markdown]
# - From the second call on, the first turn given is the old summary. There is only ever one, and it *rolls* over the
#   conversation: a **rolling summary**. What the new one leaves out is gone.
# - Each turn is read once. Nobody goes back to it.
#
# Now a summariser that works for its living, offline: `ExtractiveSummarizer` picks the clauses with names, numbers
# and wishes in them and those that the rest of the talk revolves around. Xiaobei again, at turn 55:

# %%
embedder = RememberingEmbedder()  # encodes each text once,
extractive = cache(ExtractiveSummarizer(embedder))  # and the same turns are condensed once
store = await asking.talk(xiaobei[:55], extractive)
kept = await store.get_history("desk")
text_card(f"芝麻 (sesame) in it: {'芝麻' in kept[0].content}", kept[0].content)

# %%
store = await asking.talk(maeve, extractive)
history = await store.get_history("desk")
text_card("Maeve, after one fold", history[0].content)

# %%
asking.marked(asking.asked(english, "en-shop-01", history).head(9))

# %% [markdown]
# - The order number and the wool are back. It reads like a telegram: every word is paid for.

# %% [markdown]
# ## When the summary doesn't come
#
# Most summarisers are a call to a model somewhere, so they fail. Five ways, each at the second fold of Maeve's talk:

# %%
asking.marked(await failures.after_a_failure(maeve))

# %% [markdown]
# - Ten failures, no exception, and the old summary is there every time. The customer notices nothing yet.
# - `on_failure="truncate"` cuts the turns that couldn't be folded. `"keep"` keeps them, and the prompt grows.
# - The reason stands in the trace and in the log `tri_memory.session`.
#
# Now the model is down from turn 30 to turn 45, and comes back:

# %%
for on_failure in ("truncate", "keep"):
    trace = await failures.through_an_outage(maeve, on_failure)
    cut = trace[trace.outcome == "truncated"].turns.sum()
    print(
        f"{on_failure}: {cut} turns never reached a summary\n{trace.to_string(index=False)}\n"
    )

# %% [markdown]
# - `"keep"` tries again after 1, 2, 4, 8, … appends, so a dead model isn't hammered, and folds everything in the end.
# - Its patience has an end, `hard_cap` (five times `compress_after`, unless you set it). Then it cuts, too.
# - Outages of a minute: keep. Prompts so near the model's limit that twenty turns more are refused: truncate. In both
#   cases ring a bell at `outcome == "truncated"`: that is the moment a fact dies.

# %% [markdown]
# ## Turn the knob
#
# A conversation, replayed append by append. Pick a turn on the left and follow it to the right.
# %%
panel.fold_panel()

# %% [markdown]
# - Blue, then pale orange, then darker: each step to the right is one more chance to be dropped.
# - The *distance* between the two numbers sets the rhythm. Raise `keep_recent` to just below `compress_after`: one
#   call for each turn, and the first turn is condensed dozens of times.
# - Double the conversation: the turns read double, too. A summariser that starts from the first turn each time would
#   read four times as many.

# %% [markdown]
# ## Measure
#
# `data/` has questions whose answers are known, *gold questions*. Each names the *facts* without which it can't be answered: "BX-2207", "wool", "对芝麻过敏" (allergic to
# sesame). A fact survives where it stands to the letter. First `ExtractiveSummarizer` on all users, after one fold of
# the default policy and after four folds:

# %%
both = [english, chinese]
figures = await survivors.figures(both, extractive)
print(f"{embedder.encoded:,} clauses encoded")
figures

# %% [markdown]
# - Read the first row aloud: of all facts told by then, this share stands in the history after one fold. Without a
#   summary it would be the share *in kept turns*.
# - *% in kept turns*: what truncation leaves, the newest 20 turns or the newest 10.
# - *% in summary*: of the facts whose turns are all folded away, those that stand in the summary. Nothing else can
#   save them.
#
# Now beside two summarisers that don't look at what is said: the first sentences that fit, and sentences drawn at random (five
# seeds). A dot is all users together; its bar holds 95 % of bootstrap samples of the users.

# %%
table = await survivors.by_summariser(
    both,
    {
        "extractive": [extractive],
        "random sentences": [baselines.RandomSentences(seed) for seed in range(5)],
        "first sentences": [baselines.first_sentences],
    },
)
picture(
    survivors.plot(table, survivors.by_hand(both)),
    alt="Facts still in the history after one to four folds: extractive highest, then random "
    "and first sentences, no summary near zero; all fall with the folds.",
)

# %% [markdown]
# - Without a summary a folded fact lives on only where somebody happens to say it again.
# - The star is a colleague's note on a single visit, about as many turns as the first fold takes. People drop some
#   facts, too, and put others in their own words, which counts as lost.
# - The lines fall, for the facts keep coming and the room stays at 100 words.
#
# Now the oldest facts alone, those that the first fold took (share in % after one fold and after four):

# %%
survivors.first_fold(table)

# %% [markdown]
# - *First sentences* never drops what it once took, and so has no room for anything new. (Where a row rises, somebody
#   said a fact again.)
# - *Random sentences* forgets by compound interest: half a chance at each fold is a sixteenth after four.
#
# Is the room too small, then? How much of it would all facts take that four folds took away?

# %%
for dataset, unit in zip(both, ("of 100 words", "of 150 characters"), strict=True):
    median, most = survivors.room(dataset)
    print(f"{dataset.language}: {median} {unit} (median user), at most {most}")

# %% [markdown]
# - They would have fitted. The limit isn't the room: at the time of the fold nobody knows what will be asked.

# %%
print("extractive, after four folds:", survivors.fitted_and_others(table))

# %% [markdown]
# **Where the winner stops winning.** It copies clauses and this measure counts letters, so a model that writes
# "2 April" for "the Thursday before Easter" loses here and serves Maeve just as well; and whoever only asks about the
# newest 20 turns has everything in them, for nothing.

# %% [markdown]
# ## Exercises
#
# Fill the stub, run the check, take a hint when you need one.

# %%
about("03-1")


# %% tags=["stub"]
def turns_to_fold(length: int, compress_after: int, keep_recent: int) -> int:
    """How many of the oldest of `length` turns a fold takes; 0 where none is due."""
    raise NotImplementedError


# %% tags=["solution"]
def turns_to_fold(length: int, compress_after: int, keep_recent: int) -> int:
    """How many of the oldest of `length` turns a fold takes; 0 where none is due."""
    return length - keep_recent if length > compress_after else 0


# %%
check("03-1", turns_to_fold)

# %%
about("03-2")


# %% tags=["stub"]
def summarise(turns) -> str:
    """At most 100 words (Chinese: 150 characters) with every id and number of `turns` in it.

    The first turn may be the old summary. "BX-2207", "1,150" and "14:30" count as one each.
    """
    raise NotImplementedError


# %% tags=["solution"]
import re

from tri_memory.summary import is_summary, summary_text


def summarise(turns) -> str:
    """At most 100 words (Chinese: 150 characters) with every id and number of `turns` in it.

    The first turn may be the old summary. "BX-2207", "1,150" and "14:30" count as one each.
    """
    text = " ".join(
        summary_text(turn) if is_summary(turn) else turn.content for turn in turns
    )
    pieces = re.findall(r"[A-Za-z0-9]+(?:[-.,:][A-Za-z0-9]+)*", text)
    return " ".join(dict.fromkeys(piece for piece in pieces if re.search(r"\d", piece)))


# %%
check("03-2", summarise)

# %% [markdown]
# And how does yours do on the real conversations?

# %%
print(await survivors.beside(table, summarise, both))

# %%
about("03-3")


# %% tags=["stub"]
def feed(summarise, cap: int):
    """A summariser of any number of turns, from one that takes at most `cap` (> 1) a call.

    Each call but the first gets the text before it, as `summary_turn(text)`, so that
    nothing read is forgotten.
    """
    raise NotImplementedError


# %% tags=["solution"]
from tri_memory.summary import summary_turn


def feed(summarise, cap: int):
    """A summariser of any number of turns, from one that takes at most `cap` (> 1) a call.

    Each call but the first gets the text before it, as `summary_turn(text)`, so that
    nothing read is forgotten.
    """

    def fed(turns) -> str:
        waiting = list(turns)
        while len(waiting) > cap:
            waiting[:cap] = [summary_turn(summarise(waiting[:cap]))]
        return summarise(waiting)

    return fed


# %%
check("03-3", feed)

# %% [markdown]
# The package has this as `in_pieces` in `tri_memory.session.summarizers`. Next to it stands
# `openai_summarizer_from_env()`, for those who have an endpoint and want a model to write the summary.
#
# Stuck? `hint("03-2")` gives the next of three hints, `reveal("03-2")` one right answer.

# %%
quiz("03")

# %% [markdown]
# ## What you saw
#
# - Truncation loses an allergy without a sound; only the trace knows.
# - A fold puts one summary turn in the place of the oldest turns and condenses the old summary with them (03-1).
# - A summariser that is missing, raises, hangs, says nothing or too much never stops the talk. `on_failure` decides
#   whether turns are cut or wait, and the trace says so.
# - The distance between `compress_after` and `keep_recent` decides how often old turns are condensed again.
# - Most facts survive one fold, fewer survive four. The room would do; what is missing is to know what will be asked,
#   and ids and numbers are a good guess (03-2). A summariser that takes few turns is fed in pieces, each with the last
#   one's text at its head (03-3).
#
# **What breaks this idea**: what must *never*
# be lost. A summary can't promise that, whoever writes it. An allergy belongs in the preference store (notebook 06),
# which goes into every prompt as it is. And turns are a poor measure: one of them may be a word or a page.
#
# Next: [04 Compress by tokens](04_compress_by_tokens.ipynb), what a turn costs, and folding by that.
