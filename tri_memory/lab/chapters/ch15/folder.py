"""A folder of this kernel's own, gone with it."""

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
