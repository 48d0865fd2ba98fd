"""Whether a teacher has switched `reveal` off: by TRI_MEMORY_REVEAL=off, or by a line in the workbook's `.tri_memory`.

It takes the button away, and not the answers: a clone has them in notebooks/solutions/.
"""

from __future__ import annotations

import os
from contextlib import suppress

from tri_memory.lab.progress import MARKER, workbook_folder

VARIABLE = "TRI_MEMORY_REVEAL"


def switched_off_by() -> str:
    """Who did it, as the end of a sentence; "" where `reveal` is on. A value that is not "on" counts as off."""
    value = os.environ.get(VARIABLE, "").strip()
    if value.lower() not in ("", "on"):
        return f"{VARIABLE}={value}, set where Jupyter was started"
    folder = workbook_folder()
    if folder is not None:
        with suppress(OSError, UnicodeDecodeError):  # no such file, mostly
            for line in (folder / MARKER).read_text(encoding="utf-8-sig").splitlines():
                name, sign, value = (part.strip() for part in line.partition("="))
                if sign and name.lower() == "reveal" and value.lower() not in ("", "on"):
                    return f"the line {line.strip()!r} in the file {MARKER} of this folder"
    return ""
