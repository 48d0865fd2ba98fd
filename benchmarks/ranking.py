"""What finding by words costs over 100,000 short texts, what fusing costs, and what an index of turns costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import TypeVar

import bm25s
import numpy as np
from bm25s.tokenization import Tokenized

from benchmarks.timing import Row, paired
from tri_memory.recall.conversation import ConversationIndex, Said
from tri_memory.recall.fusion import fuse
from tri_memory.recall.lexical import LexicalIndex, terms

COUNT, TOP, DIMENSIONS = 100_000, 10, 128
BUILD_GOAL_S, QUERY_GOAL_MS, FUSION_GOAL_MS = 15, 20, 1
Made = TypeVar("Made")


def rows() -> Iterator[Row]:
    texts = short_texts(COUNT)
    questions = [text[: len(text) // 2] for text in short_texts(41, seed=6)]
    yield from _lexical(texts, questions)
    yield _fusion(1_000)
    yield from _conversation(texts, questions)


def short_texts(count: int, seed: int = 5) -> list[str]:
    """Half English, half Chinese: 6 to 18 made-up words of 50,000 or characters of 3,000, as unevenly used as real ones
    (the nth is used in proportion to 1/n), and an order number that few texts share."""
    rng = np.random.default_rng(seed)
    syllables = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiou"]
    english = ["".join(np.random.default_rng(n).choice(syllables, 2 + n % 3)) for n in range(50_000)]
    chinese = [chr(0x4E00 + n) for n in range(3_000)]
    texts = []
    for row in range(count):
        signs, between = (english, " ") if row % 2 else (chinese, "")
        drawn = (len(signs) ** rng.random(rng.integers(6, 19))).astype(int) - 1
        texts.append(f"{between.join(signs[n] for n in drawn)}, BX-{rng.integers(count)}")
    return texts


def _lexical(texts: list[str], questions: list[str]) -> Iterator[Row]:
    """Bare bm25s parts all the scores to find the first ten, and most of them are 0; ours only those above 0."""
    index, built_s = timed(lambda: LexicalIndex(texts))
    vocabulary: dict[str, int] = {}
    numbered = [[vocabulary.setdefault(term, len(vocabulary)) for term in terms(text)] for text in texts]
    bare = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    _, bare_s = timed(lambda: bare.index(Tokenized(numbered, vocabulary), show_progress=False))
    work = f"BM25 of {COUNT:,} short texts, {built_s:.1f} s (goal: under {BUILD_GOAL_S} s)"
    theirs = "bare bm25s, cut and numbered before"
    yield Row(work, built_s * 1e6, theirs, bare_s * 1e6, built_s / bare_s, BUILD_GOAL_S / bare_s)

    asked, again = cycle(questions), cycle(questions)

    def bare_query() -> object:
        known = [vocabulary[term] for term in terms(next(again)) if term in vocabulary]
        return bare.retrieve([known], k=TOP, show_progress=False)

    work = f"the first {TOP} of {COUNT:,} by BM25"
    yield under(work, lambda: index.rank(next(asked), TOP), "bare bm25s", bare_query, goal_ms=QUERY_GOAL_MS)


def _fusion(size: int) -> Row:
    """Two orders of rows of which half are in both."""
    rng = np.random.default_rng(5)
    one, other = ([(int(row), 0.5) for row in start + rng.permutation(size)] for start in (0, size // 2))

    def simplest() -> object:
        scores: dict[int, float] = {}
        for ranking in (one, other):
            for place, (row, _) in enumerate(ranking, start=1):
                scores[row] = scores.get(row, 0) + 1 / (60 + place)
        return sorted(scores.items(), key=lambda item: (-item[1], item[0]))

    work = f"fuse two lists of {size:,}"
    return under(work, lambda: fuse(one, other), "the simplest loop", simplest, goal_ms=FUSION_GOAL_MS)


def _conversation(texts: list[str], questions: list[str]) -> Iterator[Row]:
    """Sessions of 20 turns, beside the index of words alone."""
    rng = np.random.default_rng(5)
    said = [Said("Ana" if row % 2 else "Ben", text, row // 20) for row, text in enumerate(texts)]
    vectors = rng.standard_normal((len(said), DIMENSIONS), dtype=np.float32)
    index, built_s = timed(lambda: ConversationIndex(said, vectors))
    words, words_s = timed(lambda: LexicalIndex(texts))
    work = f"index of {COUNT:,} turns x {DIMENSIONS}, {built_s:.1f} s"
    yield Row(work, built_s * 1e6, "LexicalIndex", words_s * 1e6, built_s / words_s, float("inf"))

    asked, again = cycle(questions), cycle(questions)
    work = f"the first {TOP} of {COUNT:,} turns"
    yield paired(
        work,
        lambda: index.rank(next(asked), vectors[7], TOP),
        "LexicalIndex",
        lambda: words.rank(next(again), TOP),
        rounds=41,
        goal=float("inf"),
    )


def under(work: str, ours: Callable[[], object], beside: str, theirs: Callable[[], object], *, goal_ms: float) -> Row:
    """A row whose goal is a time, written as the ratio to the other's median that would reach it."""
    row = paired(work, ours, beside, theirs, rounds=41, goal=float("inf"))
    work = f"{work}, {row.ours_us / 1e3:.2f} ms (goal: under {goal_ms} ms)"
    ratio = row.ours_us / row.beside_us
    return Row(work, row.ours_us, beside, row.beside_us, ratio, goal_ms * 1e3 / row.beside_us)


def timed(make: Callable[[], Made]) -> tuple[Made, float]:
    started = time.perf_counter()
    made = make()
    return made, time.perf_counter() - started
