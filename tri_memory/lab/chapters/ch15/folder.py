"""A folder of this kernel's own, gone at the end of the notebook, or at the latest with the kernel."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def own_folder() -> Path:
    """Made at the first call, removed when the kernel ends."""
    folder = Path(tempfile.mkdtemp(prefix="lesson-15-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def remove_own_folder() -> None:
    """With all that is in it; the next `own_folder()` makes another."""
    shutil.rmtree(own_folder(), ignore_errors=True)
    own_folder.cache_clear()
