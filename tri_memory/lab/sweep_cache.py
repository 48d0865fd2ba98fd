"""Finished cells of sweeps on disk: one JSON file a cell, named by function, code version, parameters and seed.

Files are written whole or not at all, so that two kernels may share a folder. What is no such file is not believed and
is written again. Nothing is ever removed here: delete the folder when you like.
"""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

from tri_memory.lab.sweep_cell import Scalar
from tri_memory.lab.sweep_version import NotHashableError, code_version, digest


def default_folder() -> Path:
    """The environment's TRI_MEMORY_CACHE, else the user's cache folder as the operating system has it."""
    chosen = os.environ.get("TRI_MEMORY_CACHE")
    return Path(chosen) if chosen else platformdirs.user_cache_path("tri_memory", appauthor=False)


class SweepCache:
    """The finished cells of one function, as its code is now. `folder` None: nothing is kept.

    A function or parameter without a digest and a folder that can't be written are no error: the cells run anew each
    time, and one RuntimeWarning says why.
    """

    def __init__(self, folder: Path | None, function: Any) -> None:
        self._folder = folder and folder / "sweeps"
        self._warned = False
        self._held = 0
        try:
            self._version = code_version(function) if folder else ""
        except NotHashableError as error:
            self._folder = None
            self._warn(f"this sweep is not cached: {error}; make it inside the function, or hand it over as text")

    def key(self, parameters: Mapping[str, Any], seed: int) -> str | None:
        """The name of a cell's file; None: it has none."""
        if self._folder is None:
            return None
        try:
            return digest((self._version, dict(parameters), seed))
        except NotHashableError as error:
            self._warn(f"cells of this sweep are not cached: a parameter: {error}")
            return None

    def get(self, key: str | None) -> tuple[dict[str, Scalar], float] | None:
        """(results by name, seconds the cell took), or None."""
        if self._folder is None or key is None:
            return None
        try:
            kept = json.loads(self._path(key).read_text(encoding="ascii"))
            result, seconds = kept["result"], kept["seconds"]
            whole = kept["key"] == key and isinstance(seconds, float) and _is_result(result)
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            return None
        if not whole:
            return None
        self._held += 1
        return result, seconds

    def put(self, key: str | None, result: Mapping[str, Scalar], seconds: float) -> None:
        if self._folder is None or key is None:
            return
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_whole(path, json.dumps({"key": key, "result": dict(result), "seconds": seconds}))
            self._held += 1
        except OSError as error:
            self._warn(f"cells of this sweep are not cached: {error}; set TRI_MEMORY_CACHE to a folder you may write")

    def held(self) -> str:
        """How many cells were found or written, and where, as the end of a sentence about a sweep that was stopped."""
        if not self._held:
            return "none of them is kept"
        return f"{self._held} of them are kept in {self._folder}, and the same call goes on from there"

    def _path(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / key[:2] / f"{key}.json"

    def _warn(self, text: str) -> None:
        if not self._warned:
            warnings.warn(text, RuntimeWarning, stacklevel=4)
        self._warned = True


def _is_result(result: Any) -> bool:
    return isinstance(result, dict) and all(isinstance(value, Scalar) for value in result.values())


def _write_whole(path: Path, text: str) -> None:
    """Beside the place first, then moved there in one step."""
    handle, beside = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with open(handle, "w", encoding="ascii") as file:
            file.write(text)
        os.replace(beside, path)
    except OSError:
        Path(beside).unlink(missing_ok=True)
        if not path.exists():  # on Windows the move fails while another kernel reads the same cell, which is then there
            raise
