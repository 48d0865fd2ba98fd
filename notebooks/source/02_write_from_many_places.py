# %% [markdown]
# # Write to one session from many places
#
# A customer types on the phone while a tool reports back and the agent answers: three writers, one session. This
# notebook loses messages on purpose, shows why, and builds the write that loses none.
#
# **What you will do**
#
# - watch a store lose messages that everybody saw arrive (exercise 02-1 counts them);
# - enumerate *every* order in which two writers can step, instead of hoping for the bad one;
# - build the commit that replaces only what it planned on (exercise 02-2);
# - pay for one summary where three callers want one (exercise 02-3).
#
# **You need** [01 Keep a session](01_keep_a_session.ipynb). No server, no key. About 45 minutes.

# %%
from functools import partial

from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch02 import orders, panel, writers
from tri_memory.lab.claims import claim
from tri_memory.lab.exercises import about, check, hint, quiz, reveal
from tri_memory.lab.plots import picture

# %% [markdown]
# ## See it fail
#
# Maeve's five visits to a shop's support desk make one long conversation. Past 40 turns this store folds the older ones
# into a summary: it reads the history, waits for the summary, writes everything back. The summary takes 60 ms here; a
# real model takes seconds.

# %%
maeve = datasets.load("en").turns_of("en-shop-01")
racing = await writers.deliver("racing", maeve, summary_s=0.06, gap_s=0.01)
print(f"{racing.sent} turns sent, no append raised, {len(racing.lost)} turns are gone:\n")
for turn in racing.lost[:4]:
    print(f"  {turn.role:9} {turn.content[:90]}")

# %% [markdown]
# - No exception, no warning. The shop finds out when Maeve asks about something that "was never said".
# - The turns that vanish are the newest ones: those that arrived while the summary was being written.

# %% [markdown]
# ## Every order there is
#
# Luck decides which order happens, so don't test with luck: list all of them. An append of the racing kind is two
# steps, *read the list* and *write the list with mine behind it*. Two appends, a and b, can be interleaved in six ways.

# %%
two_appends = orders.table(orders.two_racing_appends, 2, 2)
print(f"{(two_appends.lost != '').sum()} of {len(two_appends)} orders lose a message")
two_appends

# %% [markdown]
# - Only the orders in which one append is wholly done before the other begins are safe.
#
# The first cure: make the append *one* step. A list in memory and a Redis list both have that step: push. Now a fold
# of turns 1 and 2 (read, later write back) runs beside two pushes.

# %%
write_back = orders.table(partial(orders.fold_beside_two_appends, commit=False), 2, 1, 1)
print(f"{(write_back.lost != '').sum()} of {len(write_back)} orders lose a message")
write_back[write_back.lost != ""]

# %% [markdown]
# - The pushes are safe from each other now. The fold still overwrites whatever was pushed between its two steps.

# %% [markdown]
# ## Plan, summarise, commit
#
# The second cure: the fold's last step doesn't write back a list. It says *if the head is still what I planned on,
# replace those turns by the summary*. What stands behind the head is not its business.

# %%
committed = orders.table(partial(orders.fold_beside_two_appends, commit=True), 2, 1, 1)
print(f"{(committed.lost != '').sum()} of {len(committed)} orders lose a message")
committed.head(4)

# %% [markdown]
# - The same twelve orders, none of them loses anything. That is a proof for two appends and one fold, not a sample.
#
# `InMemorySessionStore` works like this. The same load as in the beginning, on all three designs:

# %%
for name in writers.WRITERS:
    found = await writers.deliver(name, maeve, summary_s=0.06, gap_s=0.01)
    print(
        f"{name:12} {len(found.lost):2} turns lost, {found.summaries} summaries paid for, "
        f"longest append {max(found.waits) * 1e3:3.0f} ms"
    )

# %% [markdown]
# - *serial* puts a queue before the racing writer. Nothing is lost; everyone who comes while the summary is written
#   waits behind it.
# - *plan-commit*: one sender waits, the one whose turn started the summary. The others don't notice.
# - *racing* pays for several summaries of nearly the same turns and keeps one.

# %% [markdown]
# ## Turn the knob
#
# Sixty turns in simulated time. A dot is the moment a turn is stored, a cross a turn that is gone in the end.

# %%
panel.race_panel()

# %% [markdown]
# - Make the summary instant: all three are equal. The designs differ only in what happens *during* the summary.
# - Let a turn come every 3 seconds and a summary take 2: racing loses nothing, for this load. That is the test that
#   passes on a developer's machine.

# %% [markdown]
# ## Measure
#
# Real coroutines, real waiting, five random arrival patterns for each delay, a turn every 4 ms on average. A dot is one
# run; the line goes through the medians.

# %%
table = await writers.losses_and_waits([0, 0.025, 0.05, 0.1, 0.2], seeds=range(5))
picture(
    writers.plot_losses_and_waits(table),
    alt="Left: turns lost grow with the summary's delay for racing and stay 0 for the others. "
    "Right: waits grow with the delay for racing and serial and stay near 0 for plan-commit.",
)

# %%
slow = table[table.delay_ms == 200].groupby("writer")[["lost", "p95_ms"]].median()
print(
    f"with a 200 ms summary, racing loses {slow.lost['racing']:.0f} of 80 turns (median);"
)
print(f"95 % of appends return within {slow.p95_ms['serial']:.0f} ms (serial)")
print(f"                          and {slow.p95_ms['plan-commit']:.1f} ms (plan-commit)")

# %% [markdown]
# **Where the winner stops winning.** With one writer that waits for every append, all three store the same and the
# racing writer is the shortest code. And plan-commit has a price: while a summary is on its way the history is longer
# than the policy says, by as many turns as arrive meanwhile.

# %%
claim("C01", measured=writers.loss_sentence(table), verdict="depends")

# %% [markdown]
# ## Exercises
#
# Fill the stub, run the check, take a hint when you need one.

# %%
about("02-1")


# %% tags=["stub"]
def lost(sent: list[str], stored: list[str]) -> list[str]:
    """The messages that were sent but are not stored, sorted.

    A message sent twice and stored once is lost once.
    """
    raise NotImplementedError


# %% tags=["solution"]
from collections import Counter


def lost(sent: list[str], stored: list[str]) -> list[str]:
    """The messages that were sent but are not stored, sorted.

    A message sent twice and stored once is lost once.
    """
    return sorted((Counter(sent) - Counter(stored)).elements())


# %%
check("02-1", lost)

# %%
about("02-2")


# %% tags=["stub"]
def commit(history: list[str], planned: list[str], summary: str) -> list[str]:
    """The new history: `summary` in place of the head `planned`, if that is still the head.

    Otherwise the history as it is.
    """
    raise NotImplementedError


# %% tags=["solution"]
def commit(history: list[str], planned: list[str], summary: str) -> list[str]:
    """The new history: `summary` in place of the head `planned`, if that is still the head.

    Otherwise the history as it is.
    """
    if history[: len(planned)] != planned:
        return list(history)
    return [summary, *history[len(planned) :]]


# %%
check("02-2", commit)

# %%
about("02-3")


# %% tags=["stub"]
async def fold(state, summarize) -> None:
    """Await the summary of `state.turns` and put it into `state.summary`.

    `state.folding` is the flag. Who finds it up returns at once and leaves the summary to
    the one who raised it. A summariser that raises must not leave the flag up.
    """
    raise NotImplementedError


# %% tags=["solution"]
async def fold(state, summarize) -> None:
    """Await the summary of `state.turns` and put it into `state.summary`.

    `state.folding` is the flag. Who finds it up returns at once and leaves the summary to
    the one who raised it. A summariser that raises must not leave the flag up.
    """
    if state.folding:
        return
    state.folding = True
    try:
        state.summary = await summarize(state.turns)
    finally:
        state.folding = False


# %%
check("02-3", fold)

# %% [markdown]
# Stuck? `hint("02-2")` gives the next of three hints, `reveal("02-2")` one right answer.

# %%
quiz("02")

# %% [markdown]
# ## What you saw
#
# - A read, a wait and a write back lose what arrives in between, and nothing says so (02-1).
# - Enumerating all orders proves what a test that passes can only suggest.
# - A commit that checks its head and leaves the tail alone loses nothing and makes nobody wait (02-2).
# - One flag per session saves the money for the second summary; it is not what keeps the turns safe (02-3).
#
# **Claim tested here**: C01. **What breaks this idea**: a second *process* has its own memory and its own flag.
# Notebook 05 moves the commit into Redis, where a script does the check and the replacement in one step.
#
# Next: [03 Compress by count](03_compress_by_count.ipynb), what to fold, when, and what survives it.
