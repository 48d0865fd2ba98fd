"""Constants of `tri_memory` that were set anew in this process, which a worker process would not know.

Seen are names in capitals that the file sets to a literal on one line; the file is read and not parsed, to be quick.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

_PACKAGE = "tri_memory"
_CONSTANT = re.compile(r"^([A-Z_][A-Z0-9_]*)(?:: [^=\n]+)? = (.+?)(?:  #.*)?$", re.MULTILINE)


def set_anew() -> list[tuple[str, Any, Any]]:
    """(module.NAME, value here, value in the file) over the loaded modules of `tri_memory`, in order of name."""
    found = []
    for name, module in sorted(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if name.partition(".")[0] == _PACKAGE and path:
            for constant, written in _constants(Path(path)).items():
                here = vars(module).get(constant, written)
                if type(here) is not type(written) or here != written:
                    found.append((f"{name}.{constant}", here, written))
    return found


def _constants(path: Path) -> dict[str, Any]:
    try:
        lines = _CONSTANT.findall(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return {}
    values = {}
    for name, text in lines:
        try:
            values[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):  # an expression, or the first line of several
            values.pop(name, None)
    return values
