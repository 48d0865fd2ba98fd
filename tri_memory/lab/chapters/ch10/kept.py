"""The embedders of this machine, each of which works once for each text: this chapter asks for the same ones often."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tri_memory.embedding import Embedder
from tri_memory.lab.chapters.ch07 import searches


class Kept:
    """`embedder`, with every vector it gave kept until the kernel ends."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self.name, self.dimensions = embedder.name, embedder.dimensions

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As the embedder does it."""
        new = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        if new:
            self._vectors.update(zip(new, self._embedder.encode(new), strict=True))
        return np.array([self._vectors[text] for text in texts], np.float32).reshape(len(texts), self.dimensions)


@cache
def embedders(language: str) -> dict[str, Kept]:
    """Those that this machine has and that know the language ("English", "Chinese"), by the name in the plots."""
    return {name: _kept(name) for name in searches.embedders(language)}


@cache
def _kept(name: str) -> Kept:
    """MiniLM knows English only, and is loaded only where it is asked for."""
    known = searches.embedders("Chinese")
    return Kept(known[name] if name in known else searches.embedders("English")[name])


def usual() -> Kept:
    """The default embedder."""
    return _kept(searches.USE)
