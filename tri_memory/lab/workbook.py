"""The learner's own copy of the notebooks: `workbook/`, which git ignores and which is never overwritten."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path

from tri_memory.lab.sources import NOTEBOOKS


def prepare(root: Path | None = None) -> Path:
    """Copy the notebooks that the workbook does not have yet; the folder's path."""
    folder = (root or NOTEBOOKS.parent) / "workbook"
    folder.mkdir(exist_ok=True)
    for notebook in _notebooks():
        if not (folder / notebook.name).exists():
            shutil.copyfile(notebook, folder / notebook.name)
    return folder


def reset(name: str, root: Path | None = None) -> Path:
    """Put a fresh copy of one notebook ("03" or its whole name) in place of the learner's, which is kept beside it.

    Returns the path of the backup. Raises ValueError for an unknown or ambiguous name.
    """
    found = [notebook for notebook in _notebooks() if notebook.name.startswith(name)] if name else []
    if len(found) != 1:
        known = ", ".join(notebook.stem for notebook in _notebooks())
        raise ValueError(f"no single notebook begins with {name!r}; there are {known}")
    mine = prepare(root) / found[0].name
    backup = mine.with_name(f"{mine.stem}.{datetime.now().astimezone():%Y%m%d-%H%M%S-%f}.ipynb")
    shutil.move(mine, backup)
    shutil.copyfile(found[0], mine)
    return backup


def _notebooks() -> list[Path]:
    return sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
