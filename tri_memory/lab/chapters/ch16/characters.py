"""Four characters a token."""

from __future__ import annotations

import random
from functools import cache

from tri_memory import InMemorySessionStore, TokenWatermark, estimate_tokens
from tri_memory.lab.chapters.ch04.counting import Count, real_counters
from tri_memory.lab.chapters.ch16.room import Exhibit, How, Outcome, kit, person

WINDOW = 1_000  # tokens that the model takes


def newest_that_fit(texts: list[str], budget: int) -> list[str]:
    """The end of the conversation, at most `budget` tokens of it."""
    kept: list[str] = []
    for text in reversed(texts):
        budget -= len(text) // 4  # about four characters a token
        if budget < 0:
            break
        kept.insert(0, text)
    return kept


@cache
def judge() -> tuple[str, Count]:
    """A real tokenizer if one is installed, else the estimate: its name, and its count."""
    return next(iter(real_counters().items()), ("the estimate", estimate_tokens))


async def show(how: How, language: str, rng: random.Random) -> Outcome:
    turns = kit(language).turns_of(person(language, rng))
    turns = turns[: rng.randrange(10, len(turns) + 1)]
    if how == "broken":
        sent = newest_that_fit([turn.content for turn in turns], int(0.75 * WINDOW))
    else:
        store = InMemorySessionStore(policy=TokenWatermark(WINDOW))
        for turn in turns:
            await store.append("desk", turn)
        sent = [turn.content for turn in await store.get_history("desk")]
    name, count = judge()
    tokens = sum(map(count, sent))
    came = f"{len(sent)} of {len(turns)} turns sent: {tokens:,} tokens ({name}) for a window of {WINDOW:,}"
    return Outcome(came, max(0, tokens - WINDOW), tokens)


EXHIBIT = Exhibit(
    name="characters",
    reference="langchainjs#11303",
    kind="compression",
    title="Four characters a token",
    unit="tokens too many",
    notebook="04_compress_by_tokens",
    broken=(newest_that_fit,),
    show=show,
    fault="Four characters are a token in English. A Chinese character alone is one, or nearly, so what is "
    "reckoned at 750 may be far over 1,000, and the endpoint refuses the call. Whoever tests in English "
    "alone will not see it.",
    ours="`TokenWatermark` with `estimate_tokens`, which counts as a tokenizer cuts, and a quarter of the "
    "window to spare.",
)
