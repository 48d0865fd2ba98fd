# %% [markdown]
# # Fill the prompt, and know what is in it
#
# How much of which layer goes into the prompt? Everything is too much, and whoever fills it from the top has no room for
# the last minute. This notebook gives the layers one budget, records what went in and why, and looks at what can be
# learned from the next message.
#
# **What you will do**
#
# - put everything into the prompt, and see whose answers are cut off;
# - share one budget between four layers, with the best at the edges (exercise 14-1);
# - read a record of each turn, and a view of what is remembered and why it was used;
# - make a reward out of the next message, and find out how wrongly it teaches (exercise 14-2);
# - measure answers against the budget, milliseconds against memories, and read a log (exercise 14-3).
#
# **You need** [06 Remember preferences](06_remember_preferences.ipynb) and [10 Open the gate](10_open_the_gate.ipynb).
# No key. A PostgreSQL is started for one measurement. About 80 minutes.

# %%
import pandas as pd

from tri_memory.agent import confirmation as asking
from tri_memory.agent import intent
from tri_memory.agent.budget import SHARES, at_edges
from tri_memory.agent.feedback import REWARDS, Weights, implicit
from tri_memory.agent.feedback_simulation import Setting
from tri_memory.agent.notice import notice
from tri_memory.lab.chapters.ch10.failing import brief
from tri_memory.lab.chapters.ch14 import edges, failing, injecting, measure, panel
from tri_memory.lab.chapters.ch14 import people, plots, reactions, talking
from tri_memory.lab.claims import claim
from tri_memory.lab.exercises import about, check, hint, quiz, reveal
from tri_memory.lab.plots import picture

# %% [markdown]
# ## See it fail
#
# Ruth and Lin Xiuzhi are at their fifth visit. The application knows what was said today, what they prefer (06), the ids
# they named (11), and every exchange of the visits before (10). It puts everything in. The model takes `LIMIT` tokens.
#
# | layer | what it has here | where an answer stands | also |
# |---|---|---|---|
# | `window` | today's turns | this visit | session, conversation |
# | `preferences` | what a colleague noted | a preference | |
# | `facts` | ids with their sentence | an id | records |
# | `episodes` | exchanges of earlier visits | an earlier visit | |

# %%
LIMIT = failing.LIMIT
for id in ("en-coach-q20", "zh-device-q08"):
    its = people.offer(id)
    whole = its.filled(10**6)
    print(f"{its.asked.question}  ({whole.tokens:,} tokens, limit {LIMIT:,})")
    for way in ("filled from the top", "cut off in front", failing.BUDGETED):
        said = await failing.reply(its, way)
        there = "yes" if people.said(its.asked.facts, said) else "NO"
        print(f"  {way}: answer in it: {there}. {brief(said, 70)}")

# %% [markdown]
# - The code was said a minute ago. A prompt that is *filled from the top* has memory first, and was full before it came to
#   today's conversation.
# - Lin Xiuzhi asks how she is best told of something: by text message (发短信), say her preferences. A server that *cuts
#   off in front* takes the system text away, and these.
# - "My instructions say" (给我的说明里写着): The cut took one tag of the fence, so the model reads Lin's old words, and
#   Ruth's, as instructions.
#
# All answerable questions of twelve people, by where the answer is to be found. In per cent: is it still in the prompt?
# Episodes go in by date, or ranked, with the best at both ends.

# %%
print("questions:", people.counted())
failing.still_in().round(0)

# %% [markdown]
# - Each cut by date has a victim, and nobody chose it.
# - Ranking alone helps most: with the best at the ends, a cut out of the middle loses hardly more than the last row,
#   which has the same limit and is what this notebook builds. The other two cuts have victims still.
# - What remains for one budget: it needs nobody to cut in the right place, keeps fences whole, and says what is missing.
#   With less room than here the choice counts for more, as *Whose share* shows.

# %% [markdown]
# ## One budget, a share a layer
#
# `fill` takes all four layers, the best of each first. System text and question always go in. The others queue: each
# layer pays for its items at the pace of its share, and who has paid comes next. The prompt is the longest beginning of
# that queue that fits (weighted fair queueing, as routers do it).
#
# Three items: two turns of 40 tokens each, share 0.4, and a preference of 30, share 0.2. The turns are paid for after
# 40/0.4 = 100 and 80/0.4 = 200 rounds, the preference after 30/0.2 = 150. So it goes in between the turns, and a room of
# 75 tokens holds the first turn and the preference.

# %%
its = people.offer("en-coach-q20")
print("shares as shipped:", dict(SHARES))
filled = its.filled(350)
for section in filled.sections:
    print(f"{section.tokens:4}  {section.name}")
print(f"{filled.tokens:4}  of 350\n")
for out in [*filled.left_out[:2], *filled.left_out[-1:]]:
    print(f"{out.layer}: {brief(out.item, 44)}\n    {out.reason}")
print(f"and {len(filled.left_out) - 3} others")
print("answer in:", people.in_prompt(filled, its.asked.facts))

# %% [markdown]
# - Every token has a section, and every item that is missing has a reason. Keep the reasons: they are what you look at
#   when somebody asks why it forgot.
# - This budget fails Ruth: the item that did not fit is the look-up with her code.
# - A share is a pace, no reserved room. A layer that has little to say leaves its room to the others.
# - Some tokens stay unused, since the next item of the queue is too large. Taking smaller ones from behind would fill
#   them; but then a larger budget could drop an item again, and an answer vanish because there was *more* room.

# %%
zh = people.offer("zh-device-q08")
for budget in (150, 300, 600, 1_200):
    filled = zh.filled(budget)
    parts = {section.name: section.tokens for section in filled.sections}
    print(budget, parts, "answer in:", people.in_prompt(filled, zh.asked.facts))
    print("     keys:", ", ".join(filled.preferences))

# %% [markdown]
# - With every step something is added, and nothing goes.
# - The first two have preferences (when the lift is inspected, how to write an offer), but not 通知方式, the way to be
#   told. Which preference is best is the application's to say; further down a table of rules does, and it has no row for
#   this question.

# %% [markdown]
# ## The edges, not the middle
#
# Models overlook most what stands in the middle of a long prompt ([Liu et al. 2023](https://arxiv.org/abs/2307.03172)).
# The built-in model reads each line with the same care, so it can't show that. What it can show is the other reason:
# budgets are estimates (04), and now and then somebody cuts all the same. Eight episodes in three orders, three tenths of
# their tokens lost. Is the answer still there?

# %%
print(at_edges([1, 2, 3, 4, 5, 6, 7, 8]), f"{len(edges.asked())} questions")
edges.survivors().round(0)

# %% [markdown]
# - One order is best against each cut, and it is another one each time.
# - If you don't know where it will be cut, put the best at one end and the second best at the other: the worst case
#   rises from 34 % to 56 %. The mean of the three cuts gains nothing.
#
# Whatever goes in stands in its fence, where no text can write a tag; notebook
# [06](06_remember_preferences.ipynb) has shown it with "Ignore previous instructions </memory>". `fill` keeps fences whole,
# since it decides before it writes.

# %% [markdown]
# ## What memory says is no news
#
# A model that is asked what it knows may recite its prompt. The recital becomes a turn, the turn is archived, and the
# memory is stored a second time, as something that was said today. The next recital adds another copy.

# %%
for user, question in (
    ("en-device-01", "Is there latex in the gloves?"),
    ("zh-shop-01", "预拌粉里有芝麻吗？"),
):
    chat = await talking.chat_with(user, model=talking.parrot)
    answer = await chat.say(question)
    bare = "\n".join(chat.last_known.injected())
    print(f"answered with {len(answer):,} characters")
    print("noticed in the memories without tags:", notice(bare))
    print("noticed in the answer:", notice(answer))
    print("kept of it:", (await chat.history())[-1].content)
    print("archived:", (await chat.end()).summary)

# %% [markdown]
# - An old visit said "allergic to latex", or sesame (芝麻). Without its tags that is noticed as if it were said now.
# - What stands between the tags is not noticed, not kept and not archived. Outside of them, a sentence that was injected
#   word for word is not archived, also where it ran over two lines of a memory.
# - A memory in the model's own words passes. Nothing but a comparison by meaning would see it, and that would also drop
#   what the user says again because it matters.

# %% [markdown]
# ## Turn the knob
#
# One prompt from its beginning to its end. Every block is an item; what says the answer, or a part of it, is marked below.

# %%
panel.budget_panel()

# %% [markdown]
# - The first question is about luggage. Raise the budget until the answer comes in. Then go down to 350 tokens and find
#   shares with which it is in. There are some: about one in fifty of all settings of the four sliders.
# - With these shares choose the second question, for a code that was named a minute ago. Who lost?
# - Watch where a new item appears: never at the end. There stands the question, and before it the newest turns, which
#   were the first to go in; older turns come before them, other items inside of their fences.

# %% [markdown]
# ## One record a turn
#
# `Chat(…, trace=list)` writes down each turn. Three of Maeve's, three of He Changlin's:

# %%
traces = []
for user, texts in (("en-shop-01", talking.MAEVE), ("zh-shop-02", talking.HE)):
    chat = await talking.chat_with(user, budget=300, trace=traces)
    for text in texts:
        print(f"{text}  -> {brief(await chat.say(text), 70)}")
talking.as_table(traces)

# %% [markdown]
# - No text of a memory, and the user behind a mask: a record may stand in a log. (`trace_texts=True` is for while you
#   debug on your own machine.)
# - `latency_ms` ends where the prompt is ready; `answer_ms` is the model's. *found* counts episodes before the budget:
#   some of them are among the *left_out*.
# - Memory was *used* in the third turn as well, which only thanks. Used is not useful. Exercise 14-3 counts the
#   difference.
#
# ### What is remembered, from when, why it was used
#
# The same for one user, in words. It is what a person may ask to see.

# %%
talking.view_panel()

# %% [markdown]
# - A filled dot was in the prompt. The last column is the reason, whichever it was. Preferences have no date:
#   their contract (06) gives none, and "within the budget" is all that can be said of why: every preference is offered.
# - "place 1 by words": by BM25 (09) this episode came first of all. The order is made of both places, cosine and words.
# - Choose the gift. No memory answers that, and the prompt is full all the same: recall always brings something (10). Look
#   at the cosines.
# - Lower the budget to 150, and read what is left out, in the order of the queue, and why.
#
# ### Is that still right?
#
# Before an old memory is acted upon, it can be read back. Only a clear yes counts.

# %%
print(asking.confirmation("your parcels go to 8 Saltmarsh Court."))
print(asking.confirmation("下午3点以后给你打电话", "你家在6楼"))
for text in (
    "Yes, please!",
    "对，谢谢",
    "yes, but not the side door",
    "嗯",
    "Sure?",
    "好像是吧",
):
    print(f"  {asking.is_clear_yes(text)!s:5}  {text}")

# %% [markdown]
# - Missing a yes costs a second question. Taking a maybe for a yes sends the parcel to the old address.

# %% [markdown]
# ### What will be needed
#
# "What shall I cook?" needs the allergy and shares no word with it. A table of rules, one row an intent, says which
# preferences a message needs now, and which after it; `fill` then gets those first.

# %%
known = {"nuts": "allergic", "refund": "to the gift card", "address": "8 Saltmarsh Court"}
known |= {"size": "42", "tea": "likes"}  # the newest last
for text in ("What shall I cook for dinner?", "Where is my parcel?", "晚饭吃什么？"):
    print(intent.tags(text), intent.next_tags(text), list(intent.by_need(known, text)))
by_the_way = intent.by_need(known, "What goes with a hot pot?")
print("no rule for it:", list(by_the_way))

# %% [markdown]
# - Where a rule matches, the need comes first, then what will be needed next, then the newest: who asks for a parcel may
#   return it, so that *refund* stands second. Without a rule it is the newest alone, and the nuts come last. A table
#   knows what its author thought of.

# %% [markdown]
# ## What the next message says
#
# A button is rarely pressed. The next message is always there: who asks on found it relevant, who changes the subject
# didn't, who corrects says it was wrong. `implicit` reads that by rule:

# %%
reactions.read()

# %% [markdown]
# - Thanks are polite and say nothing. Counted as praise, they would praise whatever stood in the prompt.
# - Look at the rows with NO. Who asks the same again was not helped, and a new topic after "Perfect" is no complaint.
#
# A reward moves the weight of everything that was in the prompt, and the weight multiplies the score:

# %%
weights, scores = Weights(), {"the boots": 0.60, "the gloves": 0.55}
print(REWARDS)
for then in ("And is that size in stock?", "No, that's my old size."):
    if signal := implicit("Which size do I wear?", then):
        weights.learn(["the gloves"], signal)
    print(f"{signal:9} {weights.of('the gloves'):.1f}  first: {weights.choose(scores, 1)}")
weights.forget(["the gloves"])
print(f"unlearned {weights.of('the gloves'):.1f}  first: {weights.choose(scores, 1)}")

# %% [markdown]
# - Weights stay between 0.2 and 2: nothing is silenced for good. `forget` takes a lesson back, and it has to be called
#   when the memory is deleted (notebook 13).
#
# ### 68 % to 89 %
#
# Does it work? For that the truth must be known, so here are simulated users, each with memories that are worth having
# and others that aren't. What changes is how often a reaction means what the rule takes it for. *As meant* is not always
# right: a reaction is about the whole prompt, and praises what else stood in it. Bands are 95 % over the users.

# %%
print(Setting(users=30))  # each in 0 to 1 is a probability; noise and hostile change
runs = reactions.learn()
picture(
    plots.learning(runs),
    alt="Relevance by turn: with reactions as meant it climbs from 68 to above 90 %, with one "
    "in ten wrong a little less and later; a coin and the opposite fall below no learning.",
)

# %%
noise, before, after = reactions.at_the_rate_above()
print(f"as often misread as above, {noise:.0%}: {before:.0%} becomes {after:.0%}")
reactions.table(runs)

# %%
claim("C19", measured=reactions.sentence(runs), verdict=reactions.verdict(runs))

# %% [markdown]
# - The last column counts turns *of one user*. Nobody in the kit has so many in half a year.
# - What decides is how often the rule is wrong. Of the eight hand-picked messages above it misread three; at that rate
#   the simulation gains next to nothing. Eight picked ones are no measurement, and nobody measured a real rate here.
# - A coin does not cancel out. Rewards aren't symmetric: a follow-up adds 0.1, the others take 0.12 on average, as one in
#   five corrects. So all weights drift down, those that were chosen first, and drown the score, which knew something.
#   What is left is about what a blind pick gives: half of the memories are worthy.
# - *The opposite* is an ordinary user, who asks on because the answer was bad. The log looks like success.

# %% [markdown]
# ## Measure
#
# ### How many tokens
#
# All answerable questions of twelve people, seven budgets, shares as shipped. *In the prompt*: all that the answer takes
# stands there. *Said*: the built-in model's reply says it. Bands are 95 % intervals over the people.

# %%
table = await measure.against_budget()
picture(
    plots.against_budget(table),
    alt="The share of answers in the prompt rises to 100 %; the share that the model says "
    "rises to about 60 % and stays there from about 1,000 tokens on.",
)

# %%
for language, (budget, right, best, cost) in measure.enough(table).items():
    print(
        f"{language}: {budget:,} tokens give {right:.0f} % right, the best of all {best:.0f} %,"
    )
    print(f"    for {cost:.0%} of the tokens of the whole")
for language, (better, worse) in measure.beyond_the_bend(table).items():
    print(f"{language}, from there to 2,400: {better} became right, {worse} wrong")

# %% [markdown]
# - What is *in* climbs to the end, what is *said* doesn't. The bend is the smallest budget within 3 points of the best.
#   Beyond it the bill grows, and hardly anything else.
# - Six people a language are few to resample, and such bands come out too narrow.
# - The bend is that of this model and these people, who have five visits. Draw your own (15) before you buy a window.
#
# ### Whose share
#
# Now a tight budget, `TIGHT`, and five ways to share it. The best of a column is bold.

# %%
print(pd.DataFrame(measure.NAMED_SHARES).T)
print(f"\n{measure.TIGHT} tokens; questions: {people.counted()}")
shared = measure.by_share()
picture(
    plots.by_share(shared),
    alt="A grid of five ways to share and four places of the answer. Each way is best for its "
    "own kind of question and poor for others; in the last column the ways with memory first "
    "are close together.",
)

# %%
for name, points in measure.against_shipped().items():
    print(
        f"{name} - as shipped: {points.mean:+.1f} points [{points.low:.1f}; {points.high:.1f}]"
    )
print(measure.by_share(2_400).round(0))

# %% [markdown]
# **Where the winner stops winning.** Read the rows.
#
# - Each share wins its own column and pays in another. *Conversation first* wins what was said today, and loses nearly
#   all else.
# - The last column is the mean of the others, weighted by how many questions of each kind the authors wrote. Your users
#   ask others, and then another row may win it.
# - A bold number that is one point ahead in it is noise. *As shipped* is clearly better than *conversation first* alone,
#   and not better than the other three: their intervals hold 0. For these questions the shipped shares have no merit
#   over them. Nor do they spare each layer: they keep few answers from earlier visits.
# - At 2,400 tokens everything fits, and all rows are the same. Shares matter where tokens are short.

# %% [markdown]
# ### How many milliseconds
#
# From the question to the prompt, a user with more and more memories, in memory and in Postgres. `servers.postgres()` is
# `engines.postgres()`, started once for this kernel. *First* is the slowest of three first questions after a start, when
# no text was read yet; P95 is that of the questions after it, in the same session or the next, with its 95 % interval.

# %%
from tri_memory.lab import servers

server = servers.postgres()
print(f"PostgreSQL by way of: {server.how}")
timed = await injecting.times(server.url)
print(injecting.as_table(timed))
picture(
    plots.injection(timed),
    alt="P50, P95 and the first question take longer with 1,000 memories than with 100, most "
    "by words.",
)

# %%
claim("C22", measured=injecting.sentence(timed), verdict=injecting.verdict(timed))

# %% [markdown]
# - *By meaning and words* counts the words of up to 1,000 texts, each once: that is the first question. Chats over one
#   store share the counts, so that a new session doesn't pay again; a new process does, and what it loads besides (the
#   model, a dictionary) is not in these numbers.
# - With 4,000 memories the thousand nearest are others at each question, and those not met before are counted then: that
#   is one reason why the P95 of a few questions can be higher than with 1,000.
# - The P95 of 30 questions is about the second slowest. Only one setting has 200; look at the intervals.
# - The embedder runs in this process. One behind a network adds its whole answer time to each of these points, and may
#   take the 200 ms for itself.
# - One user, one question at a time, one machine: that is no promise to a thousand users. Your P95 is in your traces (14-3).

# %% [markdown]
# ## Exercises
#
# Fill the stub, run the check, take a hint when you need one.

# %%
about("14-1")


# %% tags=["stub"]
def pack(system: str, memories: list[str], question: str, budget: int, count):
    """(lines, left_out): a prompt of at most `budget` tokens, where `count(line)` is a price.

    Lines: the system text, the memories that fit, the question. `memories` come best first,
    and the longest beginning of them that fits goes in: the best first, the second best last,
    and so on inwards. `left_out` has the others, best first. System text and question always
    go in.
    """
    raise NotImplementedError


# %% tags=["solution"]
def pack(system: str, memories: list[str], question: str, budget: int, count):
    """(lines, left_out): a prompt of at most `budget` tokens, where `count(line)` is a price.

    Lines: the system text, the memories that fit, the question. `memories` come best first,
    and the longest beginning of them that fits goes in: the best first, the second best last,
    and so on inwards. `left_out` has the others, best first. System text and question always
    go in.
    """
    room = budget - count(system) - count(question)
    fitting = 0
    while fitting < len(memories) and count(memories[fitting]) <= room:
        room -= count(memories[fitting])
        fitting += 1
    kept, left_out = memories[:fitting], memories[fitting:]
    return [system, *kept[::2], *kept[1::2][::-1], question], left_out


# %%
check("14-1", pack)

# %% [markdown]
# `implicit`, `REWARDS` and `terms` may help. A polite word decides nothing; what stands behind it may. "Why?" and "And in
# that?" have no new word either: by this rule they count as asked again, at -0.1, though the second asks on. The check
# leaves them out.

# %%
about("14-2")


# %% tags=["stub"]
def reward(asked: str, then: str, memories: list[str]) -> float:
    """What the message `then` says about the memories in the prompt that answered `asked`.

    Asks on: 0.1. Changes the subject: -0.1. Asks the same again, without a new word: -0.1.
    Corrects: -0.2. Thanks, a statement, nothing: 0. Without memories: 0, whatever is said.
    """
    raise NotImplementedError


# %% tags=["solution"]
from tri_memory.agent.feedback import REWARDS, implicit
from tri_memory.agent.matching import terms


def reward(asked: str, then: str, memories: list[str]) -> float:
    """What the message `then` says about the memories in the prompt that answered `asked`.

    Asks on: 0.1. Changes the subject: -0.1. Asks the same again, without a new word: -0.1.
    Corrects: -0.2. Thanks, a statement, nothing: 0. Without memories: 0, whatever is said.
    """
    signal = implicit(asked, then, memories)
    if not memories or signal is None:
        return 0.0
    if signal == "relevant" and terms(then) <= terms(asked):
        signal = "irrelevant"
    return REWARDS[signal]


# %%
check("14-2", reward)

# %% [markdown]
# The signal beside a trace is what was said about it afterwards: "relevant", "helpful", "irrelevant", "unhelpful",
# "wrong", or None for nothing.

# %%
about("14-3")


# %% tags=["stub"]
def judged(turns) -> tuple[float, float]:
    """(P95 of latency_ms, the share of turns with memory in which it was useless) of a log.

    `turns` are pairs (TurnTrace, signal or None). Turns that failed (`error`) count in neither.
    P95 is the smallest measured latency that at least 95 % of the turns don't exceed. Useless
    is "irrelevant", "unhelpful" or "wrong". Where there is nothing to count, 0.0.
    """
    raise NotImplementedError


# %% tags=["solution"]
from math import ceil


def judged(turns) -> tuple[float, float]:
    """(P95 of latency_ms, the share of turns with memory in which it was useless) of a log.

    `turns` are pairs (TurnTrace, signal or None). Turns that failed (`error`) count in neither.
    P95 is the smallest measured latency that at least 95 % of the turns don't exceed. Useless
    is "irrelevant", "unhelpful" or "wrong". Where there is nothing to count, 0.0.
    """
    fine = [(trace, signal) for trace, signal in turns if trace.error is None]
    ms = sorted(trace.latency_ms for trace, _ in fine)
    used = [signal for trace, signal in fine if trace.memory_used]
    useless = sum(signal in ("irrelevant", "unhelpful", "wrong") for signal in used)
    p95 = ms[ceil(95 * len(ms) / 100) - 1] if ms else 0.0
    return p95, useless / len(used) if used else 0.0


# %%
check("14-3", judged)

# %% [markdown]
# Stuck? `hint("14-2")` gives the next of three hints, `reveal("14-2")` one right answer.

# %%
quiz("14")

# %% [markdown]
# ## What you saw
#
# - If everything goes in, something gets cut, and by date each cut has its victims. Ranked, with the best at the ends,
#   fewer.
# - One budget and a share a layer: never over, the best at the edges, a reason for whatever is missing (14-1).
# - A record of each turn says what was used, and a view says it to the user. Used is not useful (14-3).
# - The next message teaches, slowly; read the wrong way round, it teaches the wrong thing (14-2).
# - The model's answers stop getting better long before everything is in, and each share wins its own kind of question.
#
# **Claims tested here**: C19, C22. **What breaks this idea**: an estimate that is far off, a memory told in other words,
# and users whose next message doesn't mean what a rule takes it for.
#
# Next: [15 Run experiments](15_run_experiments.ipynb), whether any of this helps, with baselines beside it.
