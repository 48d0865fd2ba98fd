"""A keyword search that cuts at spaces."""

from __future__ import annotations

import random
import re

from tri_memory.lab.chapters.ch16.room import Exhibit, How, Outcome, kit
from tri_memory.recall.lexical import LexicalIndex

ASKED = 5


def search(query: str, texts: list[str], k: int = 3) -> list[str]:
    """The texts that share most words with the query."""
    wanted = set(query.lower().split())
    shared = {text: len(wanted & set(text.lower().split())) for text in texts}
    found = [text for text in texts if shared[text]]
    return sorted(found, key=lambda text: -shared[text])[:k]


def phrase(text: str, language: str, rng: random.Random) -> str:
    """Two neighbouring words of a text, or four Chinese characters, without the marks around."""
    pattern = r"[\u4e00-\u9fff]{4}" if language == "zh" else r"[A-Za-z']{5,} [A-Za-z']{5,}"
    found = re.findall(pattern, text)
    return str(rng.choice(found)) if found else ""


async def show(how: How, language: str, rng: random.Random) -> Outcome:
    said = sorted({turn.content for one in kit(language).sessions for turn in one.turns if turn.role == "user"})
    texts = rng.sample(said, 60)
    drawn = [(text, phrase(text, language, rng)) for text in texts]
    asked = [pair for pair in drawn if pair[1]][:ASKED]
    index = LexicalIndex(texts)
    missed = []
    for text, query in asked:
        found = search(query, texts) if how == "broken" else [texts[row] for row, _ in index.rank(query, 3)]
        if text not in found:
            missed.append(query)
    came = f"asked for {', '.join(query for _, query in asked)}"
    return Outcome(f"{came}; not found: {', '.join(missed)}" if missed else came, len(missed), len(asked))


EXHIBIT = Exhibit(
    name="no spaces",
    reference="mem0#7164",
    kind="recall",
    title="Words are what spaces part",
    unit="phrases not found",
    notebook="10_open_the_gate",
    broken=(search,),
    show=show,
    fault="Chinese has no spaces, so a whole clause is one word, and a query finds it only if it is that clause."
    " What comes back is an empty list. In English it finds what it should, so the tests were green.",
    ours="`LexicalIndex`: Chinese in pairs of neighbouring characters, English in stems, marks left out, "
    "ranked by BM25.",
)
