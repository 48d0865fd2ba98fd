"""Freeze the running environment into constraints.txt: `make constraints` calls this from a fresh `.[full]`.

A package that exists on some platforms only has an environment marker in constraints.txt, written by hand. Such a line
keeps its marker, and where the package is not installed here, its version too.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HEADER = """\
# Every version that `.[full]` takes: `pip install -c constraints.txt -e .` gives everybody the same environment.
# A constraint asks for nothing; it only says which version, if something else asks.
# Made by `make constraints` on Python 3.11; good for 3.11 to 3.13 on Linux, macOS and Windows.
# A marker (`; sys_platform == ...`) is written by hand and kept. The torch version is too: change its line first.
"""
TORCH_PINS_ITSELF = re.compile(r"(nvidia|cuda|triton)\b")


def canonical(name: str) -> str:
    """The one spelling of a distribution name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def merged(frozen: str, old: str) -> str:
    """The new constraints.txt, from what `pip freeze` printed and the file as it was."""
    marked = {canonical(line.partition("==")[0]): line for line in old.splitlines() if ";" in line and line[0] != "#"}
    lines = dict(marked)
    for line in frozen.splitlines():
        name, equals, version = line.partition("==")
        key = canonical(name)
        if not equals or line.startswith(("#", "-e")) or TORCH_PINS_ITSELF.match(key):
            continue
        _, semicolon, marker = marked.get(key, "").partition(";")
        lines[key] = f"{key}=={version.partition('+')[0]}{' ;' if semicolon else ''}{marker}"
    return HEADER + "".join(f"{lines[key]}\n" for key in sorted(lines))


def main() -> None:
    command = [sys.executable, "-m", "pip", "freeze", "--all"]
    frozen = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    path = Path(__file__).parents[1] / "constraints.txt"
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(merged(frozen, old), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
