"""Which sentences speak to a question? Shared words, weighted by rarity, in English and Chinese.

English is cut into words without their endings, Chinese into single characters and pairs of neighbours; what every
question has in common (who, please, 什么, 请问) carries no weight. *Coverage* is the weight of those terms of the
question that a sentence shares, divided by the weight of all its terms: 1 means that nothing asked about is missing.
Source of the weight, the idf of BM25: Robertson and Zaragoza (2009), The Probabilistic Relevance Framework, eq. 3.3.

What it does not do: know that a nurse is a living, or that trainers are shoes. That takes a real model.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Set
from typing import NamedTuple

from tri_memory.agent import words

# A question weighs its terms as if this many other sentences stood in the prompt too, so that a prompt of one sentence
# is not judged by chance.
BACKGROUND = 20
SINGLE_CHARACTER = 0.3  # what one Chinese character weighs beside a pair
GENERIC = 0.2  # what a word weighs that only says which kind of answer is wanted

_WORD = re.compile(r"[^\W_]+(?:[-.:'][^\W_]+)*", re.ASCII)
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+")


class Question(NamedTuple):
    """What to look for: each term with its weight, and what an answer must have to fit (None: anything fits)."""

    weights: dict[str, float]
    wanted: re.Pattern[str] | None
    about_assistant: bool

    def coverage(self, found: Set[str]) -> float:
        """The share of the question's weight that `found` has, in [0, 1]; 0 for a question without terms."""
        total = sum(self.weights.values())
        return sum(weight for term, weight in self.weights.items() if term in found) / total if total else 0.0

    def fit(self, sentence: str) -> float:
        """0.1 where the sentence has the number or the time that is asked for, -0.2 where not, 0 where none is."""
        if self.wanted is None:
            return 0.0
        return 0.1 if self.wanted.search(sentence) else -0.2


def question(text: str, sentences: Iterable[Set[str]]) -> Question:
    """A question as weighed against the terms of all sentences of a prompt."""
    documents = [*sentences]
    frequency = Counter(term for document in documents for term in document)
    count = len(documents) + BACKGROUND
    weights = {
        term: _share(term) * math.log(1 + (count - frequency[term] + 0.5) / (frequency[term] + 0.5))
        for term in sorted(terms(text))
    }
    wanted = next((kind.has for kind in words.KINDS if kind.asks.search(text)), None)
    return Question(weights, wanted, bool(words.ABOUT_ASSISTANT.search(text)))


def terms(text: str) -> set[str]:
    """What a text is matched by.

    >>> sorted(terms("What sizes do I wear?")), sorted(terms("我穿什么鞋"))
    (['size', 'wear'], ['穿', '鞋'])
    """
    for pattern, word in words.IN_ENGLISH:
        text = pattern.sub(word, text)
    spelled = _WORD.findall(text.lower().replace("’", "'"))
    found = {_stem(word) for word in spelled if word not in words.STOP}
    for run in _HAN.findall(words.STOP_HAN.sub(" ", text)):
        found.update(run)
        found.update(run[i : i + 2] for i in range(len(run) - 1))
    return found - words.STOP


def _stem(word: str) -> str:
    """The word without its English ending: coarse, but the same for question and answer."""
    word = word.removesuffix("'s")
    word = words.ALIKE.get(word, word)
    if len(word) < 4 or not word.isalpha() or word.endswith("ss"):
        return word
    for ending, instead in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("e", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending) + instead
            break
    return word[:-1] if len(word) > 4 and word[-1] == word[-2] else word


_GENERIC = frozenset(_stem(word) for word in words.GENERIC)


def _share(term: str) -> float:
    if term in _GENERIC:
        return GENERIC
    return SINGLE_CHARACTER if len(term) == 1 and _HAN.match(term) else 1.0
