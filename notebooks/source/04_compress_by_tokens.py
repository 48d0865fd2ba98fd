# %% [markdown]
# # Compress by tokens
#
# What does a turn cost? It can be "ok" or a hundred lines of a log. A model doesn't see turns. It sees tokens, refuses
# a prompt that has too many, and sends a bill for the others. This notebook folds by what a turn costs.
#
# **What you will do**
#
# - watch a model refuse a conversation that a count of 40 turns calls short;
# - find out what English, Chinese, emoji, code and logs cost, and fill a budget (exercise 04-1);
# - plan a fold between two lines (exercise 04-2) that never parts a tool result from its call (exercise 04-3);
# - set price against memory, for a grid of policies and everybody in `data/`, and see where the watermark gains
#   nothing.
#
# **You need** [03 Compress by count](03_compress_by_count.ipynb). No server, no key. About 60 minutes.

# %%
from tri_memory import ChatTurn, CountPolicy, InMemorySessionStore, TokenWatermark
from tri_memory.lab.chapters.ch04 import bills, counting, panel, people, sawtooth, stories
from tri_memory.lab.claims import claim
from tri_memory.lab.exercises import about, check, hint, quiz, reveal
from tri_memory.lab.plots import picture
from tri_memory.session.tokens import context_tokens, estimate_tokens

# %% [markdown]
# ## See it fail
#
# Gwen looks after the machines of a laundry and asks a maintenance desk for help. What she says is in `data/`; what she
# *pastes* beneath it, once a visit, is a generated log. The model behind the desk runs on a small computer: a prompt
# may have `WINDOW` tokens, those pieces of text that [notebook 01](01_keep_a_session.ipynb) paid for, and not one
# more. That is the model's **context window**. (The session window belongs to the store and is counted in turns.)

# %%
WINDOW = 4_096
gwen = people.talk("English, with logs")
print(next(turn.content for turn in gwen.turns if "\n\n" in turn.content)[:440], "…")

# %%
store, model = InMemorySessionStore(policy=CountPolicy()), bills.SmallModel(WINDOW)
for number, turn in enumerate(gwen.turns, start=1):
    if turn.role == "assistant":
        try:
            model(await store.get_history("gwen"))
        except bills.ContextOverflow as refusal:
            print(f"turn {number}: {refusal}")
            break
    await store.append("gwen", turn)
print(f"The policy wakes up at turn {store.policy.compress_after + 1}.")

# %% [markdown]
# - Nothing is broken. Forty turns have not been said yet, the policy sees no reason to fold, and Gwen gets no answer.
#
# Now the opposite. Qiu looks after the pumps of a plastics works and writes Chinese. No logs this time, only talk. The
# summariser (here and in the rest of this notebook) has the notes that the authors of `data/` wrote by hand after each
# visit, so that what we see is the policy's doing.

# %%
qiu = people.talk("Chinese, as written")
chat = await bills.replay(qiu.turns, CountPolicy(), qiu.notes, window=WINDOW)
fold = chat.folds[0]
share = fold.before / WINDOW
print(f"folded at turn {fold.turn}, {fold.before:,} tokens, {share:.0%} of the window")
print("no longer said to the letter:")
for fact, said in bills.still_said(qiu.facts, chat.history).items():
    if not said:
        print(f"  {fact}  ({people.IN_ENGLISH[fact]})")

# %% [markdown]
# - The seals are still there in other words. The serial number is not, nor that Qiu shouldn't be phoned: forgotten
#   while most of the window stood empty.

# %%
logs = await bills.replay(gwen.turns, CountPolicy(), gwen.notes, window=WINDOW)
by_count = {"Count 40: Gwen, with logs": logs, "Count 40: Qiu, talk": chat}
picture(
    sawtooth.draw_pair(by_count, WINDOW),
    alt="Left: with logs the history climbs over the window before turn 41; prompts are "
    "refused. Right: talk alone is folded at turn 41, far below the window.",
)

# %% [markdown]
# - One policy, about as many turns. Left it folds too late, right for nothing.
# - A cross is a refused prompt. From the first one on Gwen gets no answer, and the fold at turn 41 doesn't help for
#   long.

# %% [markdown]
# ## What a text costs
#
# A tokenizer cuts text into **tokens**: pieces that are frequent, whole words among them. What is rare falls into
# shreds. Here a bar is a cut; □ is a token that holds only a part of a character.

# %%
print(counting.all_pieces(counting.SAMPLES))

# %% [markdown]
# - The Chinese says what the English says: *I'm left-handed, send me the mirrored version*. 我是 (*I am*) is frequent
#   enough to be one token, most characters are one each.
# - An emoji takes several tokens, and a mechanic is two emoji with invisible glue (+) between them.
# - Dates and hexadecimal numbers are never frequent. A log costs more than it looks.
#
# `estimate_tokens` needs no tokenizer: one regular expression cuts about where a tokenizer would, and the pieces are
# counted. Beside it stand two rules of thumb (words, characters / 4) and the real tokenizers that are installed here.

# %%
real = counting.real_counters()
print(counting.missing() or "Both real tokenizers are here.")
counting.count_table({**counting.SAMPLES, "你好世界 × 500": "你好世界" * 500}, real)

# %% [markdown]
# - 你好世界 (*hello world*) five hundred times has no space in it, so it is *one* word.
#
# A few texts prove little. Here are all visits in `data/`, generated logs, messages full of emoji, the source code of
# this package.

# %%
if real:
    ratios = counting.ratios(counting.corpus(), real)
    print(counting.ratio_sentence(ratios))
    shown = picture(
        counting.plot_ratios(ratios),
        alt="The estimate is near the real count of all texts, characters / 4 of some.",
    )
else:
    shown = f"No picture: {counting.missing()}"
shown

# %% [markdown]
# - Characters / 4 is a fine rule for English talk and for code. On everything else it sees a part.
# - On Chinese the two real tokenizers disagree with each other. No estimate pleases both.
# - Emoji are the estimate's weak spot. They come in short messages, so it is off by few tokens.
#
# Does it matter? Here Qiu, too, pastes logs, in Chinese. Two watermarks (that policy is next) for the same window, one
# of them with the rule of thumb:

# %%
pasting = people.talk("Chinese, with logs")
for count in (counting.chars_over_four, estimate_tokens):
    guarded = TokenWatermark(WINDOW, count=count)
    bill = await bills.replay(pasting.turns, guarded, pasting.notes, window=WINDOW)
    print(f"{count.__name__:16} {len(bill.refused)} of {len(bill.prompts)} prompts refused")

# %% [markdown]
# - The trigger was there and did not fire. A policy is as good as its count.

# %% [markdown]
# ## Fold by tokens
#
# `TokenWatermark(context_tokens, high=0.75, low=0.50)`: above the high line, fold the shortest head that brings the
# rest down to the low line, the summary's own cost included.

# %%
policy = TokenWatermark(WINDOW)
print(f"above {policy.high_line:,} tokens: fold down to {policy.low_line:,}")
fitted = await bills.replay(gwen.turns, policy, gwen.notes, window=WINDOW)
whole = await bills.replay(qiu.turns, policy, qiu.notes, window=WINDOW)
by_tokens = {"Watermark: Gwen, with logs": fitted, "Watermark: Qiu, talk": whole}
picture(
    sawtooth.draw_pair(by_tokens, WINDOW),
    alt="Left: with logs the history is folded whenever it nears the window, no prompt is "
    "refused. Right: of talk alone nothing is folded.",
)

# %%
for name, bill in {"count 40": logs, "watermark": fitted}.items():
    said = sum(bills.still_said(gwen.facts, bill.history).values())
    print(
        f"Gwen, {name:9}: {len(bill.refused):2} of {len(bill.prompts)} prompts refused, "
        f"{said:2} of {len(gwen.facts)} facts at the end, {bill.price:6,} tokens sent"
    )

# %% [markdown]
# - No cross. A log may lift the history over the window for a moment; the fold comes before the next prompt.
# - Right, there is nothing to fold and nothing is forgotten.
# - Room costs memory: Gwen's logs push her words out. The count kept them in prompts that nobody could read.
# - The quarter above the high line is not waste: the answer has to fit, each turn's role costs a few tokens, the count
#   is an estimate, and turns arrive while the summary is being written.
#
# How large is the window? `MODEL_CONTEXT_TOKENS` says it, else a table of published windows.

# %%
for name in ("gpt-4", "gpt-4o", "qwen2.5:7b", "a-model-of-our-own"):
    print(f"{name:19} {context_tokens(name, env={})}")
env = {"MODEL_CONTEXT_TOKENS": "32k"}
print(f"{'the same, told so':19} {context_tokens('a-model-of-our-own', env=env)}")

# %% [markdown]
# - `None`: nobody knows. Then the stores fold by count.
# - A huge window is no reason never to fold. The whole history is in every prompt, and every prompt is paid for.
#
# ### A turn larger than the window
#
# The newest turn is what the model has to answer. It stays, whatever it costs.

# %%
hello = [ChatTurn("user", "Hello"), ChatTurn("assistant", "Hello, what is wrong?")]
huge = ChatTurn("user", "The whole log of the year: …")
stories.plan_table(policy, [*hello, huge], weights=[2, 6, 10 * WINDOW])

# %%
policy.plan([huge], weights=[10 * WINDOW])

# %% [markdown]
# - Alone it gives an empty span: there is nothing to summarise, and the summariser isn't called.
# - The model will refuse this prompt all the same. A policy chooses among turns; it can't shorten one.
#
# ### No result without its call
#
# An API refuses a tool result whose call is not in the prompt. Here two tools are called at once, and the results come
# back in the other order.

# %%
pump = [
    ChatTurn("user", "P-3 whines again."),
    ChatTurn("assistant", "manual(P-3)", "manual"),
    ChatTurn("assistant", "visits(P-3)", "visits"),
    ChatTurn("tool", "three visits, the last one in March", "visits"),
    ChatTurn("tool", "whining: see bearings", "manual"),
    ChatTurn("assistant", "The bearing, as in March."),
]
weights, small = [50, 60, 60, 400, 300, 60], TokenWatermark(1_000, summary_tokens=0)
print(f"without four turns {sum(weights[4:])} tokens are left; low is {small.low_line}")
stories.plan_table(small, pump, weights)

# %% [markdown]
# - Four turns would do. But then the call of `manual` is folded and its result stays. The cut moves on to where nothing
#   is parted.

# %% [markdown]
# ## Turn the knob
#
# A conversation, turn by turn. Move the window and the two lines.

# %%
panel.watermark_panel()

# %% [markdown]
# - Make the window small. Folds come in pairs: one makes room for a log, the next throws the log out.
# - Pull *down to* to the left: fewer summary calls, and each forgets more at once.
# - Take a conversation as written and the smallest window. The teeth are regular; a count would cut about the same.

# %% [markdown]
# ## Measure
#
# ### Is the turn count a proxy for tokens?
#
# Everybody in `data/`, as written, and with logs of random length in random places, three times each. On the right the
# moment at which a count of 40 folds.

# %%
from tri_memory.lab.chapters.ch04 import spread

turns = spread.turn_table(seeds=range(3))
picture(
    spread.plot_spread(turns, WINDOW),
    alt="Tokens of one turn and of 41 turns. As written, conversations in one language lie "
    "close together; with logs, 41 turns lie far apart, on both sides of the window.",
)

# %%
proxy = spread.proxy_table(turns)
proxy.round(2)

# %%
claim("C03", measured=spread.proxy_sentence(proxy), verdict="depends")

# %% [markdown]
# - `error`: say for each person "41 turns cost what they cost the others on average", and be off by so many per cent.
#   In plain chat of one language that is no bad guess.
# - `r`, the correlation of turn number and tokens so far, flatters. More turns are always more tokens; the question is
#   how many more.

# %% [markdown]
# ### What does a fact cost?
#
# A grid of policies, each on everybody in `data/`. **Price**: the tokens of all prompts of a conversation (those that
# our small model refuses as well; a larger one would take and bill them) and those that the summary calls read and
# wrote. **Facts at hand**: of the gold facts told so far, the share that the prompt says to the letter, averaged over
# all prompts, since a question may come at any time. A dot is the mean over people, its lines are 95 % intervals (the
# people resampled). On the **frontier** nobody else keeps as much for less.

# %%
from tri_memory.lab.chapters.ch04 import notes, sweep

table = await sweep.run_grid(notes.Notes, window=WINDOW)
picture(
    sweep.plot_sweep(table),
    alt="Price against facts at hand. As written, counts and watermarks lie on one curve. "
    "With logs, watermarks keep more at each price, and most counts have prompts refused.",
)

# %% [markdown]
# - Both plots are the same people and the same turns. Only a few turns are longer on the right.
# - A hollow dot has its facts in prompts that the model of this notebook refuses.
# - Whoever keeps more pays more, on either curve.

# %%
sweep.standings(table, "with logs")

# %%
sweep.gains(table)

# %% [markdown]
# - How many points more than a count does a watermark keep, at the count's own price? (In brackets the 95 % interval;
#   between two watermarks the line in the plot is read.)
# - *At hand* looks at every prompt. *At the end* looks once, at the last history. That depends on how long ago the last
#   fold was, and since all our conversations are about as long, it is the same luck for everybody.
#
# Is that the doing of the hand-written notes? Without any summary (old turns are cut off):

# %%
sweep.gains(await sweep.run_grid(lambda data, user: None, window=WINDOW))

# %% [markdown]
# **Where the winner stops winning.** In plain chat so many turns are so many tokens: the families lie on one curve, and
# now one, now the other is a few points ahead. A log larger than the window is refused under any policy. And a
# watermark limits what logs cost in the prompt, not what they do to a summary:

# %%
from tri_memory.lab.chapters.ch04 import distraction
from tri_memory.session.extractive import ExtractiveSummarizer

distracted = await distraction.same_fold(ExtractiveSummarizer())
print(distraction.distraction_sentence(distracted))

# %% [markdown]
# - The same fold at the same turn, by the package's own summariser. A summary is short, and a log is full of what looks
#   worth keeping: codes, times, numbers. A paste is better shortened before it gets into the memory.

# %% [markdown]
# ## Exercises
#
# Fill the stub, run the check, take a hint when you need one.

# %%
about("04-1")


# %% tags=["stub"]
def newest_within(texts: list[str], budget: int, count) -> int:
    """How many of the newest turns (the last of `texts`) fit into `budget` tokens, no gap.

    `count(text)` says what a text costs.
    """
    raise NotImplementedError


# %% tags=["solution"]
def newest_within(texts: list[str], budget: int, count) -> int:
    """How many of the newest turns (the last of `texts`) fit into `budget` tokens, no gap.

    `count(text)` says what a text costs.
    """
    fitting = 0
    for text in reversed(texts):
        budget -= count(text)
        if budget < 0:
            break
        fitting += 1
    return fitting


# %%
check("04-1", newest_within)

# %%
about("04-2")


# %% tags=["stub"]
def plan(weights: list[int], high: int, low: int) -> int:
    """How many leading turns to fold: 0 unless all weigh more than `high`.

    Else the fewest that leave `low` or less. The newest turn stays, whatever it weighs.
    """
    raise NotImplementedError


# %% tags=["solution"]
def plan(weights: list[int], high: int, low: int) -> int:
    """How many leading turns to fold: 0 unless all weigh more than `high`.

    Else the fewest that leave `low` or less. The newest turn stays, whatever it weighs.
    """
    left, fold = sum(weights), 0
    if left <= high:
        return 0
    while left > low and fold < len(weights) - 1:
        left -= weights[fold]
        fold += 1
    return fold


# %%
check("04-2", plan)

# %%
about("04-3")


# %% tags=["stub"]
def safe_cut(turns: list[ChatTurn], wanted: int) -> int:
    """The cut nearest at or behind `wanted` that parts no tool result from its call.

    Where there is none, the nearest before it, else 0. A cut c folds turns[:c]; the newest
    turn stays. A call is an assistant turn with a tool_name; its result may be yet to come.
    """
    raise NotImplementedError


# %% tags=["solution"]
def safe_cut(turns: list[ChatTurn], wanted: int) -> int:
    """The cut nearest at or behind `wanted` that parts no tool result from its call.

    Where there is none, the nearest before it, else 0. A cut c folds turns[:c]; the newest
    turn stays. A call is an assistant turn with a tool_name; its result may be yet to come.
    """
    good, waiting = [], 0
    for cut, turn in enumerate(turns[:-1], start=1):
        waiting += turn.role == "assistant" and turn.tool_name is not None
        waiting -= turn.role == "tool"
        if waiting == 0:
            good.append(cut)
    behind = [cut for cut in good if cut >= wanted]
    return min(behind) if behind else max(good, default=0)


# %%
check("04-3", safe_cut)

# %% [markdown]
# Stuck? `hint("04-2")` gives the next of three hints, `reveal("04-2")` one right answer.

# %%
quiz("04")

# %% [markdown]
# ## What you saw
#
# - A count of turns folds too late where logs are pasted, and for nothing where people chat.
# - A text costs what its tokenizer says. An estimate that knows Chinese, emoji and logs is close; characters / 4 is
#   right for English talk, and a trigger that trusts it doesn't fire (04-1).
# - Two lines, one to start and one to stop (04-2), the newest turn always kept, calls and results together (04-3).
# - At the same price the watermark keeps more facts where turns differ in length, and no more where they don't.
#
# **Claim tested here**: C03. **What breaks this idea**: one paste larger than the window. Many providers charge a
# fraction for a prompt that begins like the last one, and a fold begins it anew: the fewest tokens aren't always the
# cheapest bill. And all of this is the memory of one process. When it ends, everything is gone.
#
# Next: [05 Sessions in Redis](05_sessions_in_redis.ipynb), a session that outlives the process.
