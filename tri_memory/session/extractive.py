"""A summary without a language model: the clauses that somebody is most likely to ask for, to the letter.

Offline, Chinese and English, the same turns always give the same text. What it can't do: rephrase, or join two turns
into one sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tri_memory.contracts import ChatTurn, require_count
from tri_memory.session.clauses import Language, ends, language_of, size
from tri_memory.session.cues import values
from tri_memory.session.evidence import CENTRALITY, Candidate, candidates, chance
from tri_memory.summary import is_summary, summary_text

if TYPE_CHECKING:
    from tri_memory.embedding import Embedder

EMBEDDED = 72  # the most promising clauses, which get a vector; encoding is what takes the time
LENGTH = 0.8  # clauses are ranked by chance / size ** LENGTH, so that short ones go first
SAME = 0.85  # cosine from which two clauses say the same
SAME_THING = 0.45  # cosine from which a clause with a word of change may replace an older one
REPLACED = 0.5  # what the chance of a replaced clause is multiplied by
REPLACEABLE = frozenset({"place", "date", "day", "clock", "money", "measure"})


class ExtractiveSummarizer:
    """Turns -> at most `max_characters` characters (Chinese) or `max_words` words (English).

    Clauses are ranked by the chance that somebody asks for them (`evidence.py`, and how far they lie from the centre of
    all), then taken while there is room, and put back into their order. The old summary's clauses compete with the new.
    Of a turn longer than 10,000 characters the middle is not read. `embedder` None: the default one, from the first
    call on. Safe for several threads where the embedder is.
    """

    def __init__(self, embedder: Embedder | None = None, max_characters: int = 150, max_words: int = 100) -> None:
        self.embedder = embedder
        self.max_characters = require_count("max_characters", max_characters, least=1)
        self.max_words = require_count("max_words", max_words, least=1)

    def __call__(self, turns: Sequence[ChatTurn]) -> str:
        """The summary; blank only where all turns are. Raises what the embedder raises."""
        said = "\n".join(
            part for turn in turns for part in ends(summary_text(turn) if is_summary(turn) else turn.content)
        )
        language = language_of(said)
        budget = self.max_characters if language == "zh" else self.max_words
        different: dict[str, Candidate] = {}
        for candidate in candidates(turns, language):
            different.setdefault(candidate.text, candidate)
        likely = sorted(different.values(), key=chance, reverse=True)[:EMBEDDED]
        found = sorted(likely, key=lambda candidate: candidate.place)
        if not found:
            return shortened(said, language, budget)
        chosen = choose(found, self._encode([candidate.text for candidate in found]), language, budget)
        return joined(chosen, language) or shortened(likely[0].text, language, budget)

    def _encode(self, texts: list[str]) -> NDArray[np.float32]:
        if self.embedder is None:
            from tri_memory.embedding import default_embedder

            self.embedder = default_embedder()
        return self.embedder.encode(texts)


def choose(
    found: Sequence[Candidate], vectors: NDArray[np.float32], language: Language, budget: int
) -> list[Candidate]:
    """The candidates for the summary, in order; `vectors` has their unit rows, shape (len(found), dimensions)."""
    alike = vectors @ vectors.T
    chances = np.array([chance(c, CENTRALITY * near) for c, near in zip(found, centrality(vectors), strict=True)])
    chances[replaced(found, alike, language)] *= REPLACED
    gap = 1 if language == "zh" else 0  # the sign between two clauses is a character, but no word
    sizes = np.array([candidate.size for candidate in found]) + gap
    taken: list[int] = []
    room = budget + gap
    for i in map(int, np.argsort(-chances / sizes**LENGTH, kind="stable")):
        if sizes[i] <= room and not _repeats(i, taken, found, alike, language):
            taken.append(i)
            room -= int(sizes[i])
    return [found[i] for i in sorted(taken)]


def centrality(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Cosine of each row with the mean of all rows, shape (n,)."""
    mean = vectors.mean(axis=0)
    cosines: NDArray[np.float32] = vectors @ mean / (np.linalg.norm(mean) or 1.0)
    return cosines


def replaced(found: Sequence[Candidate], alike: NDArray[np.float32], language: Language) -> list[int]:
    """Clauses that a later one seems to replace: it has a value of the same kind, and either a word of change and
    similar words, or the same words and another value."""
    told = [values(candidate.text, language) for candidate in found]

    def replaces(newer: int, older: int) -> bool:
        if found[newer].turn <= found[older].turn or not found[newer].signs & found[older].signs & REPLACEABLE:
            return False
        likeness = SAME_THING if "change" in found[newer].signs else SAME
        return bool(alike[newer, older] >= likeness) and told[newer] != told[older]

    return [i for i in range(len(found)) if any(replaces(k, i) for k in range(i + 1, len(found)))]


def _repeats(
    i: int, taken: Sequence[int], found: Sequence[Candidate], alike: NDArray[np.float32], language: Language
) -> bool:
    """Whether a taken clause says it already: to the letter, or with the same values and about the same words."""
    own, text = values(found[i].text, language), found[i].text.casefold()
    for k in taken:
        same_signs = not found[i].signs - found[k].signs - {"label"}
        same_values = own <= values(found[k].text, language)
        same_words = alike[i, k] >= SAME or "id" in found[i].signs
        if text in found[k].text.casefold() or (same_signs and same_values and same_words):
            return True
    return False


def joined(chosen: Sequence[Candidate], language: Language) -> str:
    """One line: a comma inside a sentence, a semicolon between two."""
    comma, semicolon = ("，", "；") if language == "zh" else (", ", "; ")
    pieces = [chosen[0].text] if chosen else []
    for before, after in pairwise(chosen):
        same = (before.turn, before.sentence) == (after.turn, after.sentence)
        pieces += [comma if same else semicolon, after.text]
    return "".join(pieces)


def shortened(text: str, language: Language, budget: int) -> str:
    """The beginning of a text, as much as the budget holds."""
    if language == "zh":
        return text.strip()[:budget]
    kept: list[str] = []
    for word in text.split():
        budget -= size(word, language)
        if budget < 0:
            return " ".join(kept) or word[:16]
        kept.append(word)
    return " ".join(kept)
