"""Published conversations on this machine: the kit ships none, and reads them where `TRI_MEMORY_DATA` says they lie.

What weights were tuned on says nothing about how good they are, so the conversations that those of
`recall/conversation.py` were tuned on are left out of what is reported.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tri_memory.lab.datasets import Dataset
from tri_memory.lab.loaders import load_any

FOLDER = "TRI_MEMORY_DATA"
TUNED_ON = frozenset({"conv-26", "conv-42"})  # of LoCoMo


def public_files(env: Mapping[str, str] | None = None) -> list[Path]:
    """The JSON files of the folder that the environment variable names, in order; [] where it is not set.

    Raises FileNotFoundError, naming the folder, where there is none.
    """
    named = (os.environ if env is None else env).get(FOLDER, "").strip()
    if not named:
        return []
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"{FOLDER} names {folder}, which is no folder")
    return sorted(folder.glob("*.json"))


def reported(source: str | Path | Dataset) -> Dataset:
    """A file or dataset without the conversations that weights were tuned on."""
    dataset = source if isinstance(source, Dataset) else load_any(source)
    return replace(
        dataset,
        sessions=tuple(one for one in dataset.sessions if one.user_id not in TUNED_ON),
        questions=tuple(one for one in dataset.questions if one.user_id not in TUNED_ON),
    )
