# %% [markdown]
# # Open the gate to what deserves the prompt
#
# Which memory deserves the prompt? Recall brings k memories, always, also for what was never talked about. This notebook
# joins meaning and words, puts a gate behind them, and measures how far a gate can tell an answer from a likeness.
#
# **What you will do**
#
# - ask what nobody ever said, and get three confident memories;
# - find an id by its words, a Chinese phrase without a dictionary, and fuse two rankings (exercise 10-1);
# - calibrate a threshold on labelled pairs, for each embedder and language (exercise 10-2);
# - write the newest of what passes with their dates, on every engine (exercise 10-3);
# - test the claim that a gate at 0.65 lifts the share of solved cases.
#
# **You need** [07 Recall by meaning](07_recall_by_meaning.ipynb). No key. One cell and the last check use a PostgreSQL
# that is started for you. About 70 minutes.

# %%
import warnings

from tri_memory.episodic.hybrid import hybrid_recall
from tri_memory.lab.chapters.ch10 import alike, failing, gated, memories, panel, plots
from tri_memory.lab.chapters.ch10 import ranked, resolution
from tri_memory.lab.chapters.ch10.failing import brief
from tri_memory.lab.chapters.ch10.kept import embedders, usual
from tri_memory.lab.claims import claim
from tri_memory.lab.exercises import about, check, hint, quiz, reveal
from tri_memory.lab.plots import picture
from tri_memory.recall.calibration import HISTORIC, calibrate
from tri_memory.recall.fusion import fuse
from tri_memory.recall.gate import Gate, inject, written
from tri_memory.recall.lexical import LexicalIndex, tokens

# %% [markdown]
# ## See it fail
#
# Ruth had her cello repaired, Cheng Yue bought a knife for left-handers. Each of them asks for something that was never
# said: the price of fitting the bridge, the steel of the blade. A memory is now an *exchange*, what a person said and
# what was answered.

# %%
asked = {
    "en-coach-02": "How much did Pell's charge me for fitting the first new bridge?",
    "zh-shop-04": "我那把左手刀用的是什么钢，你说过吗？",  # which steel is my left-hand knife?
}
store, embedder = await failing.remembered(asked), usual()
for user, question in asked.items():
    found = await store.recall(embedder.encode([question])[0], 3, user_id=user)
    print(f"{question} (among {len(memories.memories_of(user))} memories)")
    for one in found:
        print(f"  {one.score:.2f}  {brief(one.summary)}")
    print(f"  -> {brief(await failing.reply(question, found), 110)}\n")

# %% [markdown]
# - Three memories each time. The first is about the right shop and the right knife, with a high score.
# - The last line is the built-in model's answer. £35 is what the shop takes for another job: in the exchange before, Ruth was
#   asked "Has anyone who knows about them looked it over?" A reader in a hurry will pay it, or quote it.
#
# The other failure: the answer is there and doesn't come. At which place does it stand, by cosine, by shared words, and
# by both?

# %%
for id in ("en-shop-q35", "zh-coach-q19", "zh-shop-q44", "en-shop-q53"):
    its, (by_cosine, by_words, both) = failing.places(id)
    print(
        f"cosine {by_cosine:2}, words {by_words or '-':>2}, fused {both:2}  {its.question}"
    )

# %% [markdown]
# - The first two ask for a number. The cosine hears "number" and "poles"; the words find the id.
# - The last two are asked in other words. Now the cosine is right, and the last question shares no word with its answer.
# - *fused* is what this notebook builds first. It is not always the better of the two.

# %% [markdown]
# ## Words, also where no space parts them
#
# BM25 scores a text by the words it shares with the question. A rare word is worth more than one that stands everywhere,
# and the tenth repetition adds little. Chinese has no spaces, so pairs of neighbouring characters are counted: most words
# have two, and a pair is rarer than its characters. The index counts the single characters as well, with less weight each
# because they are common, or a word of one character, such as 猫 (cat), would not be found.

# %%
print(tokens("今天玩成语接龙游戏"))  # "today we play the game of idioms"
print(tokens("Returned the BX-2207 for 1,299.50"))
texts = ["昨天下了一整天的雨", "今天玩成语接龙游戏", "今天去买菜", "成都今天很热"]
words = LexicalIndex(texts)
for query in ("成语接龙", "今天"):
    print(query, [(texts[row], round(score, 2)) for row, score in words.rank(query, 4)])

# %% [markdown]
# - `tokens` shows the pairs. 成语接龙 is found inside a longer run; nobody cut the sentence into words. 成都 (Chengdu) shares
#   the single character 成 and scores little. So does 昨天 (yesterday), which shares 天 with 今天 (today).
# - An id is kept whole and in parts. 今天 stands in three of four texts and is worth little.
#
# ## Fuse places, not scores
#
# A BM25 score has no upper end, a cosine ends at 1. Their sum would be BM25 with noise. **Reciprocal rank fusion** looks
# at places alone: place p in a list is worth 1 / (60 + p), and a memory gets what it is worth in all lists.

# %%
by_meaning = [("harness", 0.61), ("rope", 0.58), ("boots", 0.20)]
by_words = [("boots", 14.2), ("rope", 9.0)]
rows = ["harness", "rope", "boots"]  # fuse takes row numbers
fused = fuse(*[[(rows.index(a), s) for a, s in each] for each in (by_meaning, by_words)])
print(f"rope by hand: 1/62 + 1/62 = {1 / 62 + 1 / 62:.5f}")
for row, score in fused:
    print(f"{score.value:.5f}  {rows[row]}")

# %% [markdown]
# - Boots are third by meaning and first by words, and win by a hair. The harness is in one list and comes last.
# - The best score there can be is 2/61 = 0.033. So what does a threshold of 0.65 say about it? Nothing, and the score
#   refuses to be compared:

# %%
try:
    print(fused[0][1] >= 0.65)
except TypeError as error:
    print("TypeError:", error)

# %% [markdown]
# - The order comes from the fused score. The verdict comes from the cosine of the same memory.
#
# All answered questions of the kit, in per cent: is an answer among the first three?

# %%
table = ranked.table()  # every question against every memory of its person
print(f"{len(table):,} pairs")
ranked.hits(table, k=3).round(0)

# %% [markdown]
# - With the sentence encoder the fused ranking is ahead of both. With *hashing*, which knows no meaning, fusing makes the
#   words worse: half of the vote goes to a poor voter.

# %% [markdown]
# ## A threshold belongs to an embedder
#
# From which cosine on does a memory deserve the prompt? Nobody can know without examples. Each **labelled pair** is a
# question, a memory that recall would bring (one of the first ten), and whether it answers. Each threshold then has a
# *precision*, the share of what it lets in that answers, and a *recall*, the share of the answers that it lets in.

# %%
found = {}
for language in ("English", "Chinese"):
    for name, each in embedders(language).items():
        people = memories.users("en" if language == "English" else "zh")
        pairs = gated.pairs(people, language, name)
        found[f"{name}, {language}"] = calibrate(pairs, each)
for name, threshold in found.items():
    print(f"{threshold.value:.2f}  {name}")
print(
    f"{len(pairs):,} Chinese pairs, {sum(pair.relevant for pair in pairs)} of them answer"
)

# %%
picture(
    plots.curves(found),
    alt="Precision against recall for each embedder and language. All curves are low: beyond "
    "the first few per cent of recall, less than half of what is let in answers.",
)

# %% [markdown]
# - A dot is the threshold with the best F1, the harmonic mean of precision and recall. To its right more complete; to
#   its left mostly more precise, until too few are left to say.
# - No curve comes near the upper right corner. There is no threshold that keeps the answers and only them.
# - The same encoder has another threshold in Chinese than in English. A threshold belongs to an embedder *and* to the
#   texts it was found on.
#
# 0.65 is the historic value, set by hand for MiniLM. With another embedder it is just a number, and the gate says so:

# %%
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    historic = Gate(HISTORIC, embedder.name)
print(told[0].category.__name__, "-", told[0].message)
own = table[(table.embedder == "sentence encoder") & table.gold]
print(f"answers with a cosine of at least 0.65: {(own.cosine_value >= 0.65).mean():.1%}")

# %% [markdown]
# ## Recall, explained
#
# `hybrid_recall` puts the parts together behind any store: the store gives cosines, BM25 ranks the same texts, fusion
# orders them, the gate judges each by its cosine. `servers.postgres()` is `engines.postgres()`, started once for this
# kernel; its table goes when the cell ends.

# %%
from tri_memory.lab import servers

server = servers.postgres()
gate = Gate(found["sentence encoder, English"], embedder.name)
question = "What was the number stamped on my first pair of poles?"
both = await alike.on_both(server.url, "en-shop-03", question, embedder, gate)
for hit in both["memory"][:6]:
    its = hit.candidate
    print(f"{hit.verdict:3}  words {its.lexical_rank or '-':>2}  {hit.reason}")
    print(f"     {brief(its.text, 110, around='P-5526')}")
said = {
    engine: [(hit.candidate.key, hit.verdict) for hit in each]
    for engine, each in both.items()
}
print(f"Postgres ({server.how}) says the same: {said['Postgres'] == said['memory']}")

# %% [markdown]
# - Each hit says its verdict, its place by words, its cosine and the threshold. The first in fused order is the one that
#   has the number, P-5526, and the gate keeps it out by a hair.
# - `k` counts what goes in; what was passed over on the way stands in the list, too. Here are the first six.
# - Given `weight=PRESETS["service"].weight`, age multiplies the fused score and leaves the verdict alone. Fading itself is
#   notebook 09's.
#
# Another way to choose is the **injector**: BM25 picks ten, the gate keeps those that are near enough, and of these the
# newest three are written with their dates. Two questions about something that changed:

# %%
changed = {
    "en-device-04": "How often do I have to clean the filters in the medicine room?",
    "zh-device-04": "采血室空调现在该设在多少度？",  # how many degrees in the blood room?
}
nurses = await failing.remembered(changed)
for user, question in changed.items():
    asking = {"user_id": user, "episodes": nurses, "embedder": embedder}
    hits = await hybrid_recall(question, k=1_000, **asking)
    language = memories.LANGUAGES[user[:2]]
    gate = Gate(found[f"sentence encoder, {language}"], embedder.name)
    print(question)
    for line in written(inject([hit.candidate for hit in hits], gate)):
        print(f"  {brief(line, 100, around='every 5 weeks')}")

# %% [markdown]
# - Both were told twice, and both times come. The dates say which one holds: every 5 weeks and 24 degrees (24度), not every 8
#   weeks and 26.
# - Newest first suits what changes. Where nothing changes, it drops an old answer for new chatter: the injector has no
#   idea of an answer either.

# %% [markdown]
# ## Turn the knob
#
# One question and its candidates at the left; at the right what the same threshold does to all questions of that
# language. A *near miss* is one of the kit's unanswerable questions. *Another topic*: a question that somebody else asked
# about something else, put to this person's memories.

# %%
panel.gate_panel()

# %% [markdown]
# - Raise the threshold slowly. The dotted line falls first: what was never talked about is kept out.
# - Take the knife (左手刀): its best candidate passes thresholds that hardly any answer passes.
# - Choose the embedder *hashing* with the same threshold, and look how far its lines are from the encoder's.

# %% [markdown]
# ## Measure
#
# Every threshold, the first three of the fused order that pass it, all people. Bands are 95 % intervals over the twelve
# people of a language.

# %%
picture(
    plots.against_threshold("sentence encoder"),
    alt="Four rates against the threshold. Another topic falls first, then recall; near misses "
    "stay above recall at almost every threshold; precision rises little.",
)

# %%
for language in ("English", "Chinese"):
    its = gated.of(language, "sentence encoder")
    value = found[f"sentence encoder, {language}"].value
    for name, least in (("no gate", -1), (f"gate at {value:.2f}", value)):
        rates = gated.rates(gated.questions(its, least))
        print(f"{language}, {name}:", ", ".join(f"{a} {b:.0f} %" for a, b in rates.items()))

# %% [markdown]
# - What was never talked about mostly stays out. That is what a gate is good for.
# - It costs half of the answers: recall falls from 57 to 28 % in English and from 74 to 35 % in Chinese. Precision gains 7
#   and 9 points.
#
# These thresholds were found on the people they are judged on. Now on six people, judged on the other six, twenty times:

# %%
splits = gated.everywhere(seeds=range(20))
picture(
    plots.where_thresholds_lie(splits),
    alt="Thresholds found on half of the people, by embedder and language: they scatter by a "
    "tenth or more within a row, and lie far below 0.65.",
)

# %%
by = splits.groupby(["language", "embedder"], sort=False)
by[list(gated.RATES)].agg(["mean", "std"]).round(0)

# %% [markdown]
# - From the labelled questions of six people a threshold is known to 0.1 or 0.2 of a cosine. Two decimals in a
#   configuration file promise more than was measured.
# - The columns are the four rates of the picture before: *precision*, what goes in answers; *recall*, an answer goes in; and
#   how often something goes in for a *near miss* and for *another topic*. *mean* and *std* are over the twenty splits, of the
#   six people judged.
# - Recall and the two kinds of false admission depend on whom the threshold was found
#   on.
#
# **Where the winner stops winning.** Follow *near miss* in the picture: over most of the range it lies above recall. A
# question about what was nearly talked about passes more often than an answer does, since a cosine measures whether two
# texts are about the same thing, and they are. No threshold mends that. Whether a memory *answers* has to be seen by who
# reads it: the model, told to say when the answer is not there, or a check against the text. And an id, a date, an
# amount is looked up by its key, not by its likeness.

# %% [markdown]
# ### 54 % to 73 %
#
# It is claimed that a gate at 0.65 lifts resolution, the share of cases solved, from 54 % to 73 %, for 87 ms. First the
# arithmetic. How many conversations does it take to see such a difference, and what does a gate do that could bring it?

# %%
before, after = resolution.CLAIMED
print(f"conversations in each group: {resolution.cases_needed(before, after)}")
print(f"for a difference of 5 points: {resolution.cases_needed(0.54, 0.59)}")
print(f"unsolved cases that became solved: {(after - before) / (1 - before):.0%}")
whole, embedding = await resolution.recall_ms()
print(f"one recall: {whole:.1f} ms, of which the embedding {embedding:.1f} ms; ", end="")
print(f"judging 30 candidates: {resolution.gate_ms():.3f} ms")

# %% [markdown]
# - A gate adds no knowledge; it takes memories away. Two of five unsolved cases would have failed only because wrong
#   memories stood in the prompt.
# - Judging is arithmetic on numbers that are already there. The milliseconds go into embedding and ranking, which a recall
#   without a gate needs as well.
#
# Then the experiment. The built-in model answers every own question with what went in. *right*: it says all facts of the
# answer, or says that it doesn't find it where there is none. In per cent: *right* without a gate and *right_gated* with
# 0.65, their difference *change* in points with its 95 % interval, *low* to *high*; *answer_in* and *answer_in_gated* are
# the questions for which an answer went in at all.

# %%
answers = resolution.shares(await resolution.ask())
answers.round(0)

# %%
judging = resolution.gate_ms()
claim(
    "C11",
    measured=resolution.sentence(answers, judging),
    verdict=resolution.verdict(answers, judging),
)

# %% [markdown]
# - At 0.65 hardly anything goes in. What is left of *right* are the unanswerable questions: who gives nothing is never
#   wrong.
# - Their service had other texts, other cases and perhaps a much poorer recall before. A number like this is moved to
#   another system by measuring it there.
# - The built-in model only quotes. A stronger model may be more easily led astray, or less.

# %% [markdown]
# ## Exercises
#
# Fill the stub, run the check, take a hint when you need one.

# %%
about("10-1")


# %% tags=["stub"]
def fused_order(by_cosine: list[str], by_words: list[str], k: int = 60) -> list[str]:
    """Every name of the two lists, best first: 1 / (k + place) from each list, place from 1.

    Equal ones in the order of by_cosine, then of by_words.
    """
    raise NotImplementedError


# %% tags=["solution"]
def fused_order(by_cosine: list[str], by_words: list[str], k: int = 60) -> list[str]:
    """Every name of the two lists, best first: 1 / (k + place) from each list, place from 1.

    Equal ones in the order of by_cosine, then of by_words.
    """
    scores: dict[str, float] = {}
    for names in (by_cosine, by_words):
        for place, name in enumerate(names, start=1):
            scores[name] = scores.get(name, 0.0) + 1 / (k + place)
    return sorted(scores, key=lambda name: -scores[name])


# %%
check("10-1", fused_order)

# %%
about("10-2")


# %% tags=["stub"]
def threshold_for_precision(
    cosines: list[float], relevant: list[bool], wanted: float
) -> float | None:
    """The lowest of the cosines for which letting in all that is at least as high has a
    precision of at least `wanted`; None where there is none."""
    raise NotImplementedError


# %% tags=["solution"]
def threshold_for_precision(
    cosines: list[float], relevant: list[bool], wanted: float
) -> float | None:
    """The lowest of the cosines for which letting in all that is at least as high has a
    precision of at least `wanted`; None where there is none."""
    reached = []
    for least in set(cosines):
        let_in = [
            right
            for cosine, right in zip(cosines, relevant, strict=True)
            if cosine >= least
        ]
        if sum(let_in) / len(let_in) >= wanted:
            reached.append(least)
    return min(reached, default=None)


# %%
check("10-2", threshold_for_precision)

# %% [markdown]
# The last one is the injector, yours. Its check runs on every engine of this machine.

# %%
about("10-3")


# %% tags=["stub"]
async def memory_lines(
    store, embedder, question, user, least, picks=10, newest=3
) -> list[str]:
    """Lines `[2026-03-01] summary`, newest first.

    Of all the user's records BM25 (LexicalIndex) picks the first `picks`, those with a score of
    at least `least` are kept, and of these the `newest` are written.
    """
    raise NotImplementedError


# %% tags=["solution"]
import asyncio

from tri_memory.recall import lexical


async def memory_lines(
    store, embedder, question, user, least, picks=10, newest=3
) -> list[str]:
    """Lines `[2026-03-01] summary`, newest first.

    Of all the user's records BM25 (LexicalIndex) picks the first `picks`, those with a score of
    at least `least` are kept, and of these the `newest` are written.
    """
    rows = await asyncio.to_thread(embedder.encode, [question])
    everything = await store.recall(rows[0], 1_000, user_id=user)
    words = lexical.LexicalIndex([one.summary for one in everything])
    ranking = words.rank(question, picks)
    kept = [everything[row] for row, _ in ranking if everything[row].score >= least]
    kept.sort(key=lambda one: one.created_at, reverse=True)
    return [f"[{one.created_at:%Y-%m-%d}] {one.summary}" for one in kept[:newest]]


# %%
check("10-3", memory_lines)

# %% [markdown]
# Stuck? `hint("10-3")` gives the next of three hints, `reveal("10-3")` one right answer.

# %%
quiz("10")

# %% [markdown]
# ## What you saw
#
# - Recall brings k memories whatever is asked, and the nearest of them looks like an answer.
# - Words find the id, meaning finds the paraphrase, pairs of characters find Chinese. Places can be fused, scores can't
#   (10-1).
# - A threshold is found on labelled pairs, for one embedder and one kind of text, and judged on other people (10-2).
# - Pick, gate, write with a date: the same on every engine (10-3).
# - A gate keeps out what was never talked about, at the price of half of the answers. What was nearly talked about passes.
#
# **Claims tested here**: C11. **What breaks this idea**: questions whose answer is one exact value. Likeness is the wrong
# tool for an order, a device, a case.
#
# Next: [11 Find the case](11_find_the_case.ipynb), by its number and not by its likeness.
