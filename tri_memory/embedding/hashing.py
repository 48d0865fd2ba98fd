"""An embedder without a model: texts that share pieces of words point in similar directions.

It knows no meaning ("trainers" and "sneakers" are strangers), costs nothing to load and gives the same vectors on every
machine, which is what a test wants.
Source of the signs: Weinberger et al. (2009), Feature Hashing for Large Scale Multitask Learning, arXiv:0902.2206.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from hashlib import blake2b

import numpy as np
import regex
from numpy.typing import NDArray

from tri_memory.contracts import require_count
from tri_memory.embedding.texts import unit_rows

# A run of characters written without spaces; a word or number; any other sign by itself.
_TOKEN = regex.compile(
    r"(?V1)(?P<unspaced>[\p{Han}\p{Hiragana}\p{Katakana}]+)|[[\p{L}\p{M}\p{N}]--[\p{Han}\p{Hiragana}\p{Katakana}]]+|\S"
)


class HashingEmbedder:
    """Pieces of the text, each hashed to one of `dimensions` places and counted there with a sign.

    Of each text the first 10,000 characters are read.
    """

    def __init__(self, dimensions: int = 256) -> None:
        self.dimensions = require_count("dimensions", dimensions, least=1)
        self.name = f"hashing-{dimensions}"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32 (n, dimensions), rows of length 1, a blank text as zeros; ValueError for what is not text."""
        return unit_rows(texts, self.dimensions, self._encode)

    def _encode(self, texts: list[str]) -> NDArray[np.float64]:
        return np.stack([self._counts(text) for text in texts])

    def _counts(self, text: str) -> NDArray[np.float64]:
        text = unicodedata.normalize("NFKC", text).casefold()
        counts = np.zeros(self.dimensions)
        for piece in pieces(text):
            place, sign = self._place(piece)
            counts[place] += sign
        # Opposite signs can cancel out. The whole text counts a half, which no sum of whole numbers can cancel.
        place, sign = self._place(text)
        counts[place] += sign / 2
        return counts

    def _place(self, piece: str) -> tuple[int, int]:
        number = int.from_bytes(blake2b(piece.encode(), digest_size=8).digest(), "big")
        return (number >> 1) % self.dimensions, 1 if number & 1 else -1


def pieces(text: str) -> Iterator[str]:
    """Chinese and Japanese: characters and pairs of them. Elsewhere: words, and their pieces of 3 and 4 letters.

    >>> list(pieces("退货 ok"))
    ['退', '货', '退货', 'ok', '<ok', 'ok>', '<ok>']
    """
    for match in _TOKEN.finditer(text):
        token = match.group()
        if match.group("unspaced"):
            yield from token
            yield from ngrams(token, 2)
        else:
            yield token
            yield from ngrams(f"<{token}>", 3)
            yield from ngrams(f"<{token}>", 4)


def ngrams(text: str, n: int) -> Iterator[str]:
    """Every `n` neighbouring characters; nothing where there are fewer."""
    return (text[i : i + n] for i in range(len(text) - n + 1))
