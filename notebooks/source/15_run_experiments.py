# %% [markdown]
# # Run experiments that could have said no
#
# Does it work? One number always says yes. This notebook puts baselines and intervals beside it, finds out which part of
# the recall earns its place, and ends with your own data.
#
# **What you will do**
#
# - believe three numbers, and see each of them fall;
# - read a report, column by column, and write one of its measures (exercise 15-1);
# - take the recall apart, sweep it in parallel, and see where its lead ends;
# - judge a ranker of your own by the same report (exercise 15-2), then a file of yours;
# - find what is wrong with the evaluations of others (exercise 15-3).
#
# **You need** [10 Open the gate](10_open_the_gate.ipynb). No key. A PostgreSQL is started for the costs.
# About 80 minutes.

# %%
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tri_memory.lab import servers
from tri_memory.lab.ablation import ABLATIONS, WHOLE
from tri_memory.lab.chapters.ch10.kept import usual
from tri_memory.lab.chapters.ch15 import curse, desk, failing, goals, own, panel, ranked
from tri_memory.lab.chapters.ch15 import studies
from tri_memory.lab.chapters.ch15.folder import own_folder, remove_own_folder
from tri_memory.lab.chapters.ch15.ahead import ahead, plot_ahead
from tri_memory.lab.datasets import LANGUAGES, load
from tri_memory.lab.evaluation import evaluate
from tri_memory.lab.exercises import about, check, hint, quiz, reveal
from tri_memory.lab.loaders import load_any
from tri_memory.lab.metrics import interval, ndcg, recall_all, recall_any, reciprocal_rank

# %%
from tri_memory.lab.plots import picture
from tri_memory.lab.public import FOLDER, public_files
from tri_memory.lab.rankers import BM25, CONVERSATION, COSINE, EVERYTHING, FUSION, NEWEST
from tri_memory.lab.service import survey
from tri_memory.lab.sweep import sweep
from tri_memory.lab.sweep_plots import leads, plot_sweep

# %% [markdown]
# ## See it fail
#
# A colleague has built a memory. For each question it gives three of the person's earlier visits, and this is how often
# one of them has the answer, in English and in Chinese:

# %%
for language in LANGUAGES:
    built = evaluate(
        load(language), rankers={"theirs": failing.PROUD}, level="session", embedder=usual()
    )
    share = built.of("theirs", "any@3")
    print(f"{language}: {share.mean:.0%} of {share.n} questions answered")
print("and this is how it works:", failing.PROUD.__doc__)

# %% [markdown]
# - It never reads the question. People of the kit have five visits each, and it gives the three newest.
# - A number without a *baseline* beside it, what you get for nothing, is no result.
#
# The second number: somebody asks three questions, and both memories, old and new, answer as many. "No difference!" Here
# the old one is BM25 and the new one `conversation`, the kit's best. How often do a few questions, drawn blindly, say
# that the old one is at least as good?

# %%
reports = {language: ranked.report(language, 10) for language in LANGUAGES}
for language, report in reports.items():
    for count in (3, 10, 30, 100):
        share = failing.even_or_ahead(report, BM25, CONVERSATION, "any@10", count)
        print(f"{language}: {count:3} questions drawn: {share:4.0%}")
    its = failing.by_person(report, CONVERSATION, "any@10")
    low, high = its.iloc[[0, -1]]
    print(f"    one person: {its.index[0]} {low:.0%}, {its.index[-1]} {high:.0%}")

# %% [markdown]
# - One person's questions are no sample either. The same memory looks splendid to one and mediocre to another.
#
# The third number is the most expensive one, since it comes from honest work. Take 60 weightings of meaning and of the
# small extras, ask 20 questions, keep the best, report it. The kit has more questions, so how does that weighting do on
# all the others? Fifty colleagues try it, each with questions and weightings of their own.

# %%
tuned = [curse.tune(asked=20, tried=60, seed=seed) for seed in range(50)]
for name in ("reported", "on the others", "shipped"):
    shares = [one[name] for one in tuned]
    mean = interval(shares).mean
    print(f"{name:14} {mean:.0%}   from {min(shares):.0%} to {max(shares):.0%}")
fell = sum(one["on the others"] < one["reported"] for one in tuned)
print(f"{fell} of 50 fell on the others")

# %% [markdown]
# - Nobody cheated. The best of 60 noisy numbers is too high by its luck: the *winner's curse*.
# - *shipped* are the kit's weights on the same other questions. They were chosen on other people's conversations.

# %% [markdown]
# ## A report
#
# `evaluate` asks every way to recall the same questions about the same past. The two ends stand beside: no memory, and
# everything. Before the table, its measures on one ranking of four memories, two of which (a and b) answer:

# %%
order, gold = ["d", "a", "c", "b"], {"a", "b"}
for k in (1, 2, 4):
    print(
        f"k={k}  any {recall_any(order, gold, k):.0f}  all {recall_all(order, gold, k):.0f}  "
        f"nDCG {ndcg(order, gold, k):.2f}"
    )
print(
    f"reciprocal rank {reciprocal_rank(order, gold):.2f}: the first hit stands at place 2"
)

# %% [markdown]
# - *any@k*: at least one that answers is among the first k. *all@k*: all of them are.
# - *MRR*: the mean of 1 / (place of the first hit). It asks how far up.
# - *nDCG*: every hit counts, the later the less (1 / log2(1 + place)), divided by what the best order would get.

# %%
report_en = evaluate(load("en"))
report_en

# %%
report_zh = evaluate(load("zh"), embedder=usual())
report_zh

# %% [markdown]
# Read a line from left to right.
#
# - Recall, with the interval in which 95 % of other dozens of people would have it: people are drawn first, then their
#   questions. Twelve people leave it wide.
# - *unanswerable admitted*, *off-topic admitted*: how often something goes into the prompt where nothing can answer. A
#   method without a gate always finds something. Look at what the gate costs in recall, and at what still passes.
# - *tokens* is what the memories take in the prompt; *ms* how long it takes to find them on this machine, in the middle
#   and for the slowest twentieth. In Chinese every text was embedded before (`usual()` keeps the vectors), so there it is
#   the search alone: most of the time goes to the embedder.
# - *everything* has recall 1.0 at the highest price, and nothing is ranked in it.
#
# Two intervals that overlap don't say that two methods are alike: both have the same hard questions. So take the
# *difference*, question by question, and its interval.

# %%
both = {"en": report_en, "zh": report_zh}
rivals = [NEWEST, BM25, COSINE, FUSION]
compared = ahead(both, CONVERSATION, rivals, "any@10")
compared.round(1)

# %%
asked_alike = ahead(both, CONVERSATION, rivals, "any@10", kind="paraphrase")
by_id = ahead(both, CONVERSATION, rivals, "any@10", kind="exact_id")
picture(
    plot_ahead(
        {"all kinds": compared, "paraphrase": asked_alike, "exact id": by_id},
        f"points of any@10 that {CONVERSATION} is ahead",
    ),
    alt="Paired differences: clearly ahead of newest, of the others only in places.",
)

# %%
report_en.by_kind("any@10").round(2).T

# %% [markdown]
# - A filled dot is a clear lead: its interval leaves 0 out. A hollow one says that these people can't tell.
# - In the table, look for the kinds in which `conversation` is not the best of those that search.
# - Of one kind there are 19 to 33 questions a language. Their intervals are as wide as that makes them.

# %% [markdown]
# ### Whole visits
#
# The same with sessions for memories, three in the prompt. From here on each text is embedded only once, and
# milliseconds are not looked at.

# %%
visits = {
    language: evaluate(load(language), level="session", embedder=usual(), progress=False)
    for language in LANGUAGES
}
own.beside(visits, "any@3")

# %% [markdown]
# - The colleague's number is in the line *newest*.

# %% [markdown]
# ## What earns its place
#
# An *ablation* leaves out one part at a time. `ABLATIONS` has the kit's best recall whole, and without each of its parts.

# %%
parts = {
    language: evaluate(load(language), rankers=ABLATIONS, embedder=usual(), progress=False)
    for language in LANGUAGES
}
own.beside(parts, "any@10")

# %%
without = [name for name in ABLATIONS if name != WHOLE]
ten = ahead(parts, WHOLE, without, "any@10")
order = ahead(parts, WHOLE, without, "MRR@10")
picture(
    plot_ahead({"any@10": ten, "MRR@10": order}, "points that the whole is ahead"),
    alt="What each part adds: meaning clearly in Chinese, neighbours nothing.",
)

# %%
for row in ten[ten.clear].itertuples():
    between = f"{row.low:+.1f} to {row.high:+.1f}"
    print(f"{row.language}: {row.over}: {row.points:+.1f} points ({between})")
hurting = ten[ten.points < 0]
print(
    "left of 0, where the whole is behind:",
    ", ".join(f"{r.language} {r.over}" for r in hurting.itertuples()),
)

# %% [markdown]
# - To the right of 0 the part helps. A hollow dot across 0 means: nothing to be seen on these people.
# - The neighbours were tuned on small talk, where the answer often stands beside what was asked for. The kit's visits are
#   short, and its answers stand in one turn. What lifts one kind of talk may hurt another: measure on yours.
# - Nobody in the kit is called by name, so the speaker's name can't show what it is worth.

# %% [markdown]
# ### Conversations that others published
#
# The kit ships none. Where the environment variable `TRI_MEMORY_DATA` names a folder with LoCoMo, LongMemEval or
# MemoryBank files, they are held against goals that were set beforehand. Conversations that weights were tuned on are
# left out.

# %%
files = public_files()
if files:
    print(goals.goals(files).T.to_string(header=False))
else:
    print(f"{FOLDER} is not set: nothing to report here. Your own files come further down.")

# %% [markdown]
# ## Turn the knob
#
# How many memories go into the prompt, and what do you pay for it? All methods at once, for one kind of question or all.

# %%
panel.report_panel()

# %% [markdown]
# - Move k to 20. Who is still behind whom?
# - Choose *exact_id*, then *paraphrase*, with small k: the order of BM25 and cosine turns round.
# - The gate lets fewer off-topic questions have memories. Unanswerable ones are near misses, and most of them pass.

# %% [markdown]
# ## Measure
#
# One cell of a sweep is a plain function of its parameters and a seed. The seed says which chance is meant: a random
# generator's, or here the person who is asked. Twelve people a language, twelve seeds.


# %%
def tried(language, method, k, seed):
    """Recall any@k and tokens over the questions of person number `seed`."""
    return ranked.of_person(language, method, k, seed)


methods = (NEWEST, BM25, COSINE, FUSION, CONVERSATION, EVERYTHING)
ks = (1, 2, 3, 5, 10, 20, 40)
grid = {"language": ("en",), "method": methods, "k": ks}
started = time.perf_counter()
english_runs = sweep(tried, grid, seeds=12, cache=own_folder())
print(f"{len(english_runs)} cells in {time.perf_counter() - started:.1f} s")
english_runs.head(3)

# %% [markdown]
# - Drawing the same twelve people again and again would look like many seeds, and would make each interval as narrow as you
#   like. Only another person is another case.
# - Every cell is a row: parameters, seed, results, its seconds, its error. The cells ran in processes, one a core, and the
#   embedder was loaded once in each of them.
# - Finished cells lie in a folder, under the code, the parameters and the seed. This folder is the kernel's own, so that
#   "Restart and Run All" computes everything. Leave `cache=` out, and a sweep that was interrupted goes on next week.

# %%
started = time.perf_counter()
again = sweep(tried, grid, seeds=12, cache=own_folder())
print(f"the same from the cache: {time.perf_counter() - started:.1f} s")
same = again.drop(columns="seconds").equals(english_runs.drop(columns="seconds"))
print("the same results:", same)

# %% [markdown]
# Processes need no setting up. Any executor of `concurrent.futures` does, too: here threads, which see what this kernel
# has computed already. In a cluster it is Dask's (`pip install distributed`), and nothing else changes:
#
# ```python
# from dask.distributed import Client
#
# with Client("tcp://scheduler:8786") as client:
#     table = sweep(tried, grid, seeds=12, jobs=client.get_executor())
# ```

# %%
with ThreadPoolExecutor(2) as threads:
    chinese = grid | {"language": ("zh",)}
    chinese_runs = sweep(tried, chinese, seeds=12, jobs=threads, cache=own_folder())
    nonsense = chinese | {"k": (0, 5)}
    broken = sweep(tried, nonsense, jobs=threads, cache=False)
runs = {"en": english_runs, "zh": chinese_runs}
for row in broken.head(2).itertuples():
    print(f"k={row.k}: recall {row.recall:.2f}, error: {row.error}")

# %% [markdown]
# - k = 0 is nonsense. Its row says so and from which line it comes, and the other cells are done all the same.
#
# Along k, who leads, and how clearly? `leads` takes the best and the second best, person by person. *winner* has a name
# where the best is clearly ahead of all others.

# %%
searched = {code: its[its.method != EVERYTHING] for code, its in runs.items()}
picture(
    plot_sweep(
        searched["en"],
        "k",
        "recall",
        "method",
        xlabel="k, memories in the prompt",
        ylabel="recall (any@k)",
        title="English: a point a person, a band of one standard deviation",
        log_x=True,
    ),
    alt="Recall against memories: five lines close together, newest far below.",
)

# %%
for code, its in searched.items():
    print(code)
    print(leads(its, "k", "recall", "method").round(2).to_string(index=False))
    fewer = leads(its[its.method != FUSION], "k", "recall", "method").dropna()
    print(
        "winners, had fusion been left out:", fewer.set_index("k")["winner"].to_dict(), "\n"
    )

# %%
for code, its in runs.items():
    mean = its.groupby(["method", "k"])[["recall", "tokens"]].mean()
    for method, k in (
        (CONVERSATION, 10),
        (CONVERSATION, 40),
        (NEWEST, 40),
        (EVERYTHING, 40),
    ):
        recall, tokens = mean.loc[(method, k)]
        print(f"{code}  {method:13} k={k:2}  recall {recall:.2f}  {tokens:6,.0f} tokens")

# %% [markdown]
# **Where the winner stops winning.** At once, because the fusion of words and meaning stands in the table: with ten
# memories the best recall is ahead of it, and twelve people can't tell whether that is luck. Leave fusion out, and the same
# run names a winner in English. So who wins also depends on who was asked, and a baseline that is missing can't object. In
# Chinese the best recall is nowhere clearly ahead of all others. With forty of some fifty turns even the newest find most. And *everything*
# needs no search at all: as long as a past fits into the prompt at a price that you pay gladly, no recall beats it. Five
# visits fit; five hundred don't.

# %% [markdown]
# ### The more you try
#
# The winner's curse again: twenty questions, and ever more weightings to choose from.

# %%
with ThreadPoolExecutor(2) as threads:
    counts = {"asked": (20,), "tried": (1, 2, 5, 10, 20, curse.MOST_TRIED)}
    chosen = sweep(curse.tune, counts, seeds=50, jobs=threads, cache=own_folder())

# %%
long = chosen.melt(["tried", "seed"], ["reported", "on the others"], "seen", "recall")
picture(
    plot_sweep(
        long,
        "tried",
        "recall",
        "seen",
        xlabel="weightings tried on 20 questions",
        ylabel=f"share answered (any@{curse.K})",
        log_x=True,
    ),
    alt="The reported share rises with the number of weightings tried, the true one hardly.",
)

# %%
for count, its in chosen.groupby("tried"):
    gap = interval(100 * (its["reported"] - its["on the others"]))
    between = f"{gap.low:+.1f} to {gap.high:+.1f}"
    print(f"{count:2} tried: reported too high by {gap.mean:+.1f} points ({between})")

# %% [markdown]
# - With one weighting nothing is chosen, and the report is right in the mean. Each further try adds to what it promises.
# - The cure: choose on some people, report on others.

# %% [markdown]
# ## Your own data
#
# Put the path of a file of yours here: a chat of two with one turn a line, WhatsApp's export, ChatGPT's
# `conversations.json`, or any other format of `lab/loaders.py`. Until then a small chat in two languages stands in.

# %%
path = own.example()  # or the path of your file, such as Path("chat.txt")
print(path.read_text(encoding="utf-8")[:330])
simulated = evaluate(path, embedder=usual())
simulated

# %% [markdown]
# - The file has no questions, so they are simulated: the rarest words of a turn, to find that turn by. The headline says
#   it. They show that the file is read rightly, how fast it is and what it costs. They can't tell how people ask.
#
# So write questions as your users would ask them, each with a quote from the turn that answers, or "" where none does.

# %%
questions = (
    own.QUESTIONS
)  # those of the small chat; for a file of yours write your own here
for question, quote in own.fitting(questions, path):
    print(f"{question}  ->  {quote or '(nothing)'}")
asked = evaluate(path, questions=questions, ks=(3, 5), embedder=usual())
own.beside({"simulated": simulated, "asked by hand": asked}, "any@5")

# %% [markdown]
# - What words alone find falls. Eight questions of one person: the intervals say how little that proves.
# - Copy the list, write twenty of your own, and let somebody else write twenty more.

# %% [markdown]
# ### What a service desk counts
#
# Recall is a means. A desk counts how long a visit is, who has to ask twice, who ends with a human, and what people
# say afterwards. The kit's people were written never to ask twice; the small chat does.

# %%
chats = {
    "small chat": load_any(own.example()),
    "kit, en": load("en"),
    "kit, zh": load("zh"),
}
print(desk.rates(chats, cosine=0.6).to_string(), "\n")
answers = survey(desk.answers())  # made up: a CSV with the columns group and score
for group, score in answers.groups.items():
    print(f"{group} memory: {score} of {score.n} answers")

# %% [markdown]
# - None of these says that memory helped, unless the same is counted without it, at the same time, with people sorted
#   blindly.
#
# And what does remembering cost, beside tokens? How long until a new memory is found (the lag), and how many bytes it
# takes. `servers.postgres()` is `engines.postgres()`, started once for this kernel.

# %%
server = servers.postgres()
print(f"PostgreSQL, taken by the way {server.how!r}; {len(desk.records())} summaries")
(await desk.costs(server.url)).round(2)

# %% [markdown]
# - Of *bytes a memory*, the vector's 512 numbers take 2,048 in memory, four each. In PostgreSQL they take 1,024, two
#   each, and the index has the vector again.

# %% [markdown]
# ## Exercises
#
# Fill the stub, run the check, take a hint when you need one.

# %%
about("15-1")


# %% tags=["stub"]
def my_ndcg(ranked: list[str], gold: set[str], k: int) -> float:
    """nDCG of the first k, between 0 and 1: each hit counts 1 / log2(1 + its place), from 1.

    Divided by what the best order of this gold would have got. `gold` is never empty.
    """
    raise NotImplementedError


# %% tags=["solution"]
import math


def my_ndcg(ranked: list[str], gold: set[str], k: int) -> float:
    """nDCG of the first k, between 0 and 1: each hit counts 1 / log2(1 + its place), from 1.

    Divided by what the best order of this gold would have got. `gold` is never empty.
    """
    places = [place for place, one in enumerate(ranked[:k], start=1) if one in gold]
    best = range(1, min(k, len(gold)) + 1)
    gained, possible = (sum(1 / math.log2(1 + i) for i in each) for each in (places, best))
    return gained / possible


# %%
check("15-1", my_ndcg)

# %% [markdown]
# A ranker is made once for a history and then asked. It may read `history.texts` (one text a memory), and
# `history.vectors` (a row for each of `history.said`; `history.memories(rows)` says to which memory rows lead);
# `asked.text` and `asked.vector` are the question.

# %%
about("15-2")


# %% tags=["stub"]
def my_ranker(history):
    """Returns ask: a question to numbers of memories (0 to n - 1), best first, each once.

    The same question gets the same answer every time, in English and in Chinese. The
    history stays as it is.
    """
    raise NotImplementedError


# %% tags=["solution"]
from tri_memory.recall.lexical import tokens


def my_ranker(history):
    """Returns ask: a question to numbers of memories (0 to n - 1), best first, each once.

    The same question gets the same answer every time, in English and in Chinese. The
    history stays as it is.
    """
    terms = [set(tokens(text)) for text in history.texts]

    def ask(asked):
        wanted = set(tokens(asked.text))
        shared = [len(wanted & its) for its in terms]
        return sorted(range(len(terms)), key=lambda memory: (-shared[memory], -memory))

    return ask


# %%
check("15-2", my_ranker)

# %%
own.against_baselines(my_ranker)  # any@10 on the kit

# %% [markdown]
# The last one is about the work of others. A `Study` says what was in the memories, whose questions settings were chosen
# on (`tuned_on`), whose are reported (`reported_on`), and which methods were compared. It may have up to three faults:

# %%
import random

study, _ = studies.draw(random.Random(3))
print(studies.described(study))
print(
    "\nfaults that it may have:",
    studies.TUNED,
    studies.LEAKED,
    studies.UNCOMPARED,
    sep="\n  ",
)

# %%
about("15-3")


# %% tags=["stub"]
from tri_memory.lab.chapters.ch15.studies import BASELINES, LEAKED, TUNED, UNCOMPARED


def faults(study) -> set[str]:
    """TUNED: somebody who is reported was tuned on, with whatever question of theirs.
    LEAKED: a reported question stands in a memory, alone or inside a longer text, in
    whatever capitals. UNCOMPARED: none of BASELINES is among the methods."""
    raise NotImplementedError


# %% tags=["solution"]
from tri_memory.lab.chapters.ch15.studies import BASELINES, LEAKED, TUNED, UNCOMPARED


def faults(study) -> set[str]:
    """TUNED: somebody who is reported was tuned on, with whatever question of theirs.
    LEAKED: a reported question stands in a memory, alone or inside a longer text, in
    whatever capitals. UNCOMPARED: none of BASELINES is among the methods."""
    found = set()
    if {one.user_id for one in study.tuned_on} & {one.user_id for one in study.reported_on}:
        found.add(TUNED)
    remembered = "\n".join(study.memories).casefold()
    if any(one.question.casefold() in remembered for one in study.reported_on):
        found.add(LEAKED)
    if not set(BASELINES) & set(study.methods):
        found.add(UNCOMPARED)
    return found


# %%
check("15-3", faults)

# %% [markdown]
# Stuck? `hint("15-3")` gives the next of three hints, `reveal("15-3")` one right answer.

# %%
quiz("15")

# %%
remove_own_folder()  # the small chat, the survey, and the cells of the sweeps

# %% [markdown]
# ## What you saw
#
# - Seven in ten can be what you get for nothing, three questions can say anything, and the best of sixty is too good.
# - any, all, MRR, nDCG: which question each of them answers (15-1). Recall is read beside false admissions and tokens.
# - A lead is a paired difference with an interval. Parts earn their place on some conversations and not on others.
# - A sweep is a function, a grid and seeds: in processes, threads or on a cluster, with a failing cell as a row.
# - A ranker of your own gets the same report as the rest (15-2). Your own questions say more than simulated ones.
# - Tuned on whom it reports, gold in the memories, no baseline: three faults that no number shows (15-3).
#
# **Claims tested here**: none of others, all of one's own. **What breaks this idea**: recall asks whether the memory was
# found. Whether the model then gives the right answer takes answers that somebody has read.
#
# Next: [16 Visit the bug museum](16_bug_museum.ipynb).
