# %% [markdown]
# # Forget gracefully, so that it can be undone
#
# What should fade? After half a year an archive holds old settings beside new ones, and an allergy that was told once.
# This notebook lets memories fade by three laws, and measures what each of them loses.
#
# **What you will do**
#
# - see an outdated fact win, and lose an allergy to the first cure that comes to mind;
# - draw three laws of fading by hand, and write one that recalling never hurts (exercise 09-1);
# - let a system keep alive what it injects itself;
# - archive, audit and restore, over 180 days that pass in a second (exercise 09-3 does it on every engine);
# - choose a half-life, and a time to live that bridges what it should (exercise 09-2).
#
# **You need** [08 Recall from Postgres](08_recall_in_postgres.ipynb). No key. The lesson starts a PostgreSQL, as before.
# About 70 minutes.

# %%
from datetime import UTC, datetime

from tri_memory import EpisodicRecord, InMemoryEpisodicStore
from tri_memory.clock import ManualClock
from tri_memory.lab import servers
from tri_memory.lab.chapters.ch09 import curves, failing, floor, gaps, helping, life
from tri_memory.lab.chapters.ch09 import loop, panel, readings, sweep
from tri_memory.lab.chapters.ch09.ranking import in_a_crowd
from tri_memory.lab.claims import claim
from tri_memory.lab.exercises import about, check, hint, quiz, reveal
from tri_memory.lab.plots import picture
from tri_memory.recall.decay import PRESETS, Use, decay_rate, ebbinghaus, half_life, step
from tri_memory.recall.decay import ttl_from_gaps

# %% [markdown]
# ## See it fail
#
# It is the last of the kit's 180 days. Two people who look after air conditioners ask about their own machines: how often
# to clean the filters, and what temperature to set (采血室空调现在该设在多少度). The nearest of their five visits:

# %%
for user, question in failing.STALE.items():
    print(question, "\n ", failing.answer(user, question))
    for line in failing.nearest(user, question):
        print("   ", line)

# %% [markdown]
# - The older visit is nearer by its words, and the cosine has no idea that it is over.
# - Whoever takes only the first memory, or believes the first, gives an answer that was right in January.
#
# The first cure that comes to mind: delete what is older than 90 days. Gwen, who keeps pumps, and Xiaobei, who bought a
# bread machine, each told once what makes them ill: latex, and sesame (芝麻).

# %%
for user, question in failing.TOLD_ONCE.items():
    print(question, "\n ", failing.answer(user, question))
    for oldest in (180, 90):
        first = failing.nearest(user, question, k=1, oldest=oldest)[0]
        print(f"    at most {oldest:3} days old: {first}")
for language in ("en", "zh"):
    lost, of = failing.lost_by_age(language)
    print(f"{language}: {lost} of {of} questions have their answer in deleted visits alone")

# %% [markdown]
# - An old setting and an old allergy are about as old. No law of age can tell them apart.
# - What a law can do: decide what ranks lower, and what sleeps in an archive until somebody wakes it. Neither deletes.

# %% [markdown]
# ## Three laws
#
# A law turns an age in days into a *weight* from 1 to 0. The **half-life** is the age at which half is left, and after
# as long again, half of that.

# %%
for age in (0, 30, 60, 90, 45):
    print(f"{age:3} days: 0.5 ** ({age} / 30) = {half_life(age, days=30):.3f}")

# %% [markdown]
# - Three halvings by hand, 0.5, 0.25, 0.125. The last line lies between two of them.
#
# **Ebbinghaus's curve** is `exp(-t / S)`: *t* counts the days since the last use, and the *strength* S grows with each
# use. The **step rule** is for a pencil: 1.0, less 0.2 each full month, down to a floor of 0.3; 0.1 more for each use.

# %%
never = [f"{age} days: {ebbinghaus(age, strength=30):.2f}" for age in (30, 60, 90)]
print("Ebbinghaus, never used     ", *never, sep="  ")
once = [f"{age} days: {ebbinghaus(age, [Use(age - 30)], 30):.2f}" for age in (30, 60, 90)]
print("Ebbinghaus, used on day 30 ", *once, sep="  ")
floor.pencil(uses_on=(40, 70))

# %% [markdown]
# - Day 60: one use put it back to 1, and 30 days later more is left than after the first 30. The curve got flatter.
# - Follow the step rule with a pencil. Below 0.5 it archives.

# %%
picture(
    curves.plot(days=30, used_on=(40, 80)),
    alt="Three weights over 180 days. Never used, all fall below 0.5 by day 90. Used twice, "
    "Ebbinghaus jumps to 1 each time and falls more slowly; the step rule gains a tenth.",
)

# %% [markdown]
# - The half-life doesn't know about uses: the blue curve is the same on both sides.
# - One use moves the orange curve more than the green one. Which is better depends on who says what a use is.

# %% [markdown]
# ### A rate without a unit
#
# Some texts give a rate in place of a half-life, `exp(-r * days)`. Then one should reckon once what it does.

# %%
read = readings.readings()
print(read.to_string(index=False))
for left in (0.9, 0.5):
    rate = decay_rate(period=180, retention=left)
    print(f"to leave {left} after 180 days: {rate:.5f} a day")

# %%
claim("C13", measured=readings.sentence(read), verdict=readings.verdict(read))

# %% [markdown]
# - 0.9 comes out where the rate is meant per week, or where the part that is *lost* is taken for what is left. Say what has
#   to be left after how long, and let `decay_rate` find the rate.

# %% [markdown]
# ## Turn the knob
#
# A law, its days, and recalls: each memory is recalled 20 days after it was made, 20 days later, and so on, as often as
# the slider says. The days are the half-life, or Ebbinghaus's strength; the step rule has none. The dots are one person's
# visits, each with its date, at the age it has on the last day: full where it reaches the archive line, hollow below.
# Triangles at the bottom are the recalls.

# %%
panel.fade_panel()

# %% [markdown]
# - With the half-life, only its length moves a dot over the line, and then it moves all dots.
# - Ebbinghaus with eight recalls keeps everything, also after they have stopped. Find the number at which Gwen's first
#   visit stays.
# - The step rule: a recall each 20 days adds 0.15 a month, and a month takes 0.2. It sinks all the same, slowly.

# %% [markdown]
# ## What doesn't count as a use
#
# A memory that was recalled may have helped. Or it was merely the third of three that the system put into the prompt. If
# that counts as a use, the system keeps alive what it injects itself.
#
# Sixty visits as if of one person, 180 days, two questions a day. Half of the visits, drawn by a seed, are asked about.
# Nobody ever needs the other half. The step rule archives. Either each injected memory counts as used, or only the one
# that held the answer:

# %%
lives = loop.lives(seeds=range(5))
picture(
    loop.plot(lives),
    alt="Memories not archived over 180 days. Where injections count, most unneeded ones "
    "stay; where answers count, all unneeded ones go on day 90, and many needed ones later.",
)

# %%
loop.at_the_end(lives)

# %% [markdown]
# - The table: how many of 30 are left on the last day, the mean, least and most of five seeds; *answered* is the share of
#   the last 90 days' questions.
# - Dashed is what nobody needs. Where injections count, most of it is still there: being near to many questions is enough.
# - Where answers count, it is gone after 90 days. So is much of what is needed, if it isn't needed often: a use a month
#   does not hold against the step rule.
# - These questions fare about the same in both. Counting honestly left fewer memories to recall from,
#   and made no answer better here.
#
# In the kit a use is told, not guessed: `Use(age, injected=True)` counts for nothing.

# %%
print(step(90, [Use(1)]), step(90, [Use(1, injected=True)]))

# %% [markdown]
# ## Multiply, don't delete
#
# The mildest way to fade: rank by cosine times weight. Everything stays, old memories only stand further back. Does it
# bring the changed facts to the front, and what does it do to the others?
#
# All answerable questions of the kit, asked on the last day. The first three of a person's five visits *serve* where the
# answer is among them, and for a changed fact, where it also stands before every outdated visit. *Told long ago*: no
# visit with the answer is younger than 90 days.

# %%
ways = sweep.compare()
sweep.spread(ways, "share")

# %%
sweep.spread(sweep.differences(), "points")

# %% [markdown]
# - First table: per cent of questions served. Second: points more or less than the cosine alone, question by question. In
#   brackets the 95 % interval over people.
# - 30 days: many more changed facts, far fewer old answers. 365 days: next to nothing lost, and something won
#   in Chinese.
# - The archive loses every old answer. Nothing was used in this table; that is what the uses are for.
# - *cosine, then newest first*: the cosine chooses three, their dates only order them. It loses no answer, since the same
#   three are there.

# %% [markdown]
# ## Measure
#
# Is there a half-life that serves both? Nine of them, each from 4 days to nearly three years, bands from 2,000
# resamplings of the people.

# %%
swept = sweep.sweep()
picture(
    sweep.plot(swept, ways),
    alt="Share served against half-life. Changed facts fall from the left to the right, old "
    "answers rise; the lines cross. Newest first among the found keeps both high.",
)

# %% [markdown]
# - The lines cross. A short half-life is right for what changes, a long one for what was told once, and no place on the
#   axis is best for both.
# - At the right end there is no half-life: *never* is the cosine alone, *by date* is newest first among the three found.
#
# A short half-life wins the changed facts, with five visits a person. Now all sixty visits of a language compete, as
# if one person had been here sixty times:

# %%
crowd = sweep.spread(sweep.compare(in_a_crowd), "share")
crowd.loc[["cosine alone", "half-life 30 days"]]

# %%
sweep.spread(sweep.differences(in_a_crowd), "points")

# %% [markdown]
# - Per cent served, then points against the cosine alone, as before. With 30 days no old answer is left, of 62 and 51 %, and
#   what the changed facts had gained has turned into a loss, in English at the edge of the interval: whatever was said
#   last week, about anything, pushes in front.
#
# **Where the winner stops winning.** A short half-life is best for changed facts as long as there is little else that is
# new. Among sixty visits it wins none. *Newest first among the three found* loses no old answer in either room. But
# it can't lift a new fact that the cosine left outside the three, and it puts the newest in front even where the
# question is about what was once. A fact that has one value at a time belongs in a preference (06), where the old one
# is overwritten.

# %% [markdown]
# ### Is what lies below 0.5 worth anything?
#
# A *score* is a weight or a cosine, and *helps* can be counted by question or by memory. So the claim has three readings:
# of all questions, how many only a memory below 0.5 answers; of the memories among the first three, how many below 0.5 hold
# the answer, by weight and by cosine. To compare with: those of weight 0.5 or more, and any visit drawn blindly.

# %%
helps = helping.readings()
helps.round(0)

# %%
claim("C21", measured=helping.sentence(helps), verdict=helping.verdict(helps))

# %% [markdown]
# - A person has five visits, and about one of them answers. So a blind draw already helps more often than the claim
#   allows, and no way to choose could stay below it: these people can't test it. What they show is the comparison: the
#   faded ones help less often than the others in English, and about as often in Chinese.
# - By cosine nothing is set apart: every memory that was recalled has one below 0.5, helpful or not.
# - The kit's authors spread their questions over all visits. Real people may ask about the last week nearly always.
#   Count in your own logs before you believe any such number, also these.

# %% [markdown]
# ## Archive, audit, restore
#
# An episodic store of the kit fades by the step rule. It takes a clock, and `ManualClock` moves only when told to.

# %%
clock = ManualClock(datetime(2026, 1, 5, tzinfo=UTC))
store = InMemoryEpisodicStore(clock=clock)
told = EpisodicRecord("gwen", "visit-1", "Gwen: no latex.", [1.0, 0.0], clock())
await store.remember(told)
for days in (89, 1, 0):
    clock.advance(days=days)
    age, night = (clock() - told.created_at).days, await store.fade()
    print(f"{clock():%d %b}, day {age}, weight {step(age)}:", end=" ")
    print(f"looked at {night.looked_at}, archived {len(night.archived)}")
print("recalled:", await store.recall([1.0, 0.0], user_id="gwen"))

# %%
for one in await store.archived("gwen"):
    print(f"{one.summary} Made {one.created_at:%d %b}, archived {one.archived_at:%d %b}.")
print("restored:", await store.restore("gwen", "visit-1"))
print("recalled:", [one.summary for one in await store.recall([1.0, 0.0], user_id="gwen")])

# %% [markdown]
# - On day 89 it weighs 0.6, on day 90 0.4. The third run, on the same day, finds nothing left to do.
# - In the archive it is not found and not lost. Restored, it weighs 1.0 from that day on.
#
# Now Gwen's and Xiaobei's real visits, half a year of nights. Gwen's latex helps somebody every 14 days, Xiaobei's sesame
# every 35. All other visits are injected daily, and that is no use.

# %%
latex, sesame = (life.told_once()[user] for user in life.USERS)
year = InMemoryEpisodicStore(clock=clock)
nights = await life.half_year(year, clock, every={latex: 14, sesame: 35})
for told in (latex, sesame):
    visits = await year.recall([1.0] * 512, user_id=told.user_id, k=5)
    left = ", ".join(sorted(visit.session_id for visit in visits))
    print(f"told in {told.session_id}; still recalled: {left}")
nights

# %% [markdown]
# - The latex is still recalled: a use every 14 days adds 0.1 about twice a month, as much as a month takes. The sesame is in
#   the table of the archived, for all its four uses.
# - The others in it went on the ninetieth day, injected daily or not. The rest of what is still recalled is younger.
#
# The same half year in PostgreSQL: `PgVectorEpisodicStore.connect(url, 512, clock=…)`, a table for the memories and one
# for the archive. `servers.postgres()` is `engines.postgres()`, started once for this kernel.

# %%
server = servers.postgres()
print(f"PostgreSQL, taken by the way {server.how!r}")
there = await life.half_year_in_postgres(server.url, every={latex: 14, sesame: 35})
print("the same nights, the same memories:", there.equals(nights))

# %% [markdown]
# - In production no cell runs at night: `tri-memory decay` in a terminal or from cron is one `fade` over the table.
#   With `--dry-run` it lists what would go, and changes nothing.
#
# Xiaobei asks again, and somebody looks into the archive:

# %%
print("first:", (await life.first(year, sesame.user_id)).summary[:40])
for one in await year.archived(sesame.user_id):
    print(f"  {one.archived_at:%d %b}  {one.summary[:60]}…")
print("restored:", await year.restore(*sesame))
print("first:", (await life.first(year, sesame.user_id)).summary[:40])

# %% [markdown]
# - While the sesame slept, a visit about a food flask came first, and nothing said that the answer lay in the archive.
# - An allergy should not hang on how often it helps. It belongs in a preference, or on a list that the nightly job
#   respects. That list is exercise 09-3.

# %% [markdown]
# ### A floor and a line
#
# The step rule has a floor of 0.3 and archives below 0.5. Does the floor ever change what is recalled? Random uses, 360
# days, each memory once with the floor and once without:

# %%
floors = floor.histories(seeds=range(10))
claim("C14", measured=floor.sentence(floors), verdict=floor.verdict(floors))

# %% [markdown]
# - What sleeps in the archive is not used, so it never climbs back: whether it lies at 0.3 or at 0 is all the same. That
#   first zero is logic and no finding. In this store the floor changes nothing, since `restore` starts at 1.0.
# - It would matter if looks into the archive counted as uses. Then from 0.3 two of them lead back over the line.

# %% [markdown]
# ## How long for whom?
#
# Three presets to start from: an agent that does one task, a support desk, a companion.

# %%
for name, its in PRESETS.items():
    left = ", ".join(f"{its.weight(days):.2f}" for days in (7, 30, 180))
    print(
        f"{name:10} session {its.ttl_s / 3_600:4.1f} h   weight after 7, 30, 180 days: {left}"
    )

# %% [markdown]
# - Look for the marks at 7 and 30 days in the picture of *Measure*. They suit agents whose users ask about last week.
#
# The session's *time to live* can be taken from the gaps between messages. A rule of thumb says 1.5 times the median. Gaps
# of three kinds, all drawn with a seed; the TTL comes from 200 of them and meets new ones:

# %%
drawn, real = gaps.drawn(seeds=range(10)), gaps.visits()
print("four gaps of 40, 50, 60, 600 s:", ttl_from_gaps(gaps.times([40, 50, 60, 600])), "s")
drawn.groupby("gaps", sort=False)[["ttl_s", "bridged", "whole"]].mean().round(2)

# %%
claim("C12", measured=gaps.sentence(drawn, real), verdict=gaps.verdict(drawn, real))

# %% [markdown]
# - *bridged* is the share of gaps no longer than the TTL, *whole* of sessions with ten gaps in which all were.
# - The kit's people: the TTL from their first four visits, held against the fifth. A rule is good here where it surely
#   bridges 90 %; it does for steady gaps alone.
# - Half of the gaps are longer than the median, whatever it is. How many are longer than 1.5 times as much depends on their
#   spread, and one is enough to end a session.
# - Better: say what share has to be bridged, and take the TTL from the gaps themselves. That is exercise 09-2.

# %% [markdown]
# ## Exercises
#
# Fill the stub, run the check, take a hint when you need one.
#
# The first has many right answers. Somebody multiplied the age by the number of uses, and what was recalled often faded
# first. Write a law with which that can't happen.

# %%
about("09-1")


# %% tags=["stub"]
def my_law(age: float, uses: list[Use]) -> float:
    """The weight, 0 to 1, of a memory of `age` days.

    Each use has `.age` (days ago) and `.injected`. 1 when made, below 0.5 after a year without
    a use. One more use never lowers it, now or later; an injected one changes nothing.
    """
    raise NotImplementedError


# %% tags=["solution"]
import math


def my_law(age: float, uses: list[Use]) -> float:
    """The weight, 0 to 1, of a memory of `age` days.

    Each use has `.age` (days ago) and `.injected`. 1 when made, below 0.5 after a year without
    a use. One more use never lowers it, now or later; an injected one changes nothing.
    """
    ages = [use.age for use in uses if not use.injected]
    since = min(ages, default=age)
    return math.exp(-since / (30 * (1 + len(ages))))


# %%
check("09-1", my_law)

# %% [markdown]
# The second takes its times from a log that several processes write. They don't come in order of time, and a gap is
# between neighbours in time.

# %%
about("09-2")


# %% tags=["stub"]
def ttl_that_bridges(times: list[datetime], share: float) -> float:
    """The shortest TTL in seconds for which at least `share` of the gaps are no longer than it.

    `times` come in any order, two or more; 0 < share <= 1.
    """
    raise NotImplementedError


# %% tags=["solution"]
from itertools import pairwise


def ttl_that_bridges(times: list[datetime], share: float) -> float:
    """The shortest TTL in seconds for which at least `share` of the gaps are no longer than it.

    `times` come in any order, two or more; 0 < share <= 1.
    """
    gaps_s = sorted(
        (after - before).total_seconds() for before, after in pairwise(sorted(times))
    )
    return next(gap for i, gap in enumerate(gaps_s, start=1) if i / len(gaps_s) >= share)


# %%
check("09-2", ttl_that_bridges)

# %% [markdown]
# The last one is the night's work with a list of memories on hold, which somebody wrote: their word may count as a use. None
# of them may go through the archive, not even for a moment. The night may be run twice, and the run before may have been
# killed half-way, or have known another list. The check runs on every engine of this machine.

# %%
about("09-3")


# %% tags=["stub"]
async def nightly(store, hold: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """Archive what is over, but keep the (user, session) pairs on hold recalled all the time.

    Returns, sorted, the pairs that this run archived. Run again, or after a run that was
    killed, it leaves the same memories active: what is on hold and sleeps comes back.
    """
    raise NotImplementedError


# %% tags=["solution"]
async def nightly(store, hold: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """Archive what is over, but keep the (user, session) pairs on hold recalled all the time.

    Returns, sorted, the pairs that this run archived. Run again, or after a run that was
    killed, it leaves the same memories active: what is on hold and sleeps comes back.
    """
    for pair in hold:
        if not await store.restore(
            *pair
        ):  # it doesn't sleep: two uses lift any weight to 0.5
            await store.use(*pair)
            await store.use(*pair)
    faded = await store.fade()
    return list(faded.archived)


# %%
check("09-3", nightly)

# %% [markdown]
# Stuck? `hint("09-3")` gives the next of three hints, `reveal("09-3")` one right answer.

# %%
quiz("09")

# %% [markdown]
# ## What you saw
#
# - An outdated fact can be nearest, and an allergy can be old. Age alone doesn't tell them apart.
# - Half-life, Ebbinghaus, step rule: from age and uses to a weight. A use may flatten the curve, never steepen it (09-1).
# - What the system injects itself is no use, or it keeps alive what it happens to inject.
# - A short half-life trades old answers for changed facts, and in a crowd wins neither. Putting what was found in order of
#   date loses no answer.
# - A TTL is chosen by the share of gaps that it has to bridge (09-2).
# - Archive, audit, restore: the night's work may run twice, and what is on hold stays (09-3).
#
# **Claims tested here**: C12, C13, C14, C21. **What breaks this idea**: a law of age ranks what there is. It can't say that
# nothing there is good enough.
#
# Next: [10 Open the gate](10_open_the_gate.ipynb), which memory deserves the prompt.
