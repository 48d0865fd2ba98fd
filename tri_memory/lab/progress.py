"""What a learner has solved: one small JSON file in the workbook folder, and a table of it.

Only a kernel that runs in a workbook folder writes it: a folder named `workbook`, or one with a file `.tri_memory`.
It holds times, counts and exercise ids, and nothing of the learner's code.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from tri_memory.lab.card import Card
from tri_memory.lab.sources import source_files

NAME, MARKER = "progress.json", ".tri_memory"
WAIT_S = 2.0  # for another kernel that writes; a write takes milliseconds

_CHECKED = re.compile(r"^check\(\s*[\"'](\d\d-\d)[\"']", re.MULTILINE)
_FIELDS = {"first_try": (str, type(None)), "solved": (str, type(None)), "tries": int, "hints": int, "revealed": bool}

Entry = dict[str, Any]


def workbook_folder() -> Path | None:
    """The workbook folder that this process runs in, or None."""
    with suppress(OSError):  # the folder was deleted under the kernel
        here = Path.cwd()
        if here.name == "workbook" or (here / MARKER).is_file():
            return here
    return None


def note_try(exercise_id: str, passed: bool) -> None:
    """An answer was checked. Later tries of a solved exercise are not counted, and do not undo it."""

    def change(entry: Entry) -> None:
        if entry["solved"] is None:
            now = _now()
            entry["first_try"] = entry["first_try"] or now
            entry["tries"] += 1
            entry["solved"] = now if passed else None

    _note(exercise_id, change)


def note_hint(exercise_id: str, step: int) -> None:
    """Hint number `step` was shown; the highest counts."""
    _note(exercise_id, lambda entry: entry.update(hints=max(entry["hints"], step)))


def note_reveal(exercise_id: str) -> None:
    """The answer was shown."""
    _note(exercise_id, lambda entry: entry.update(revealed=True))


def load(folder: Path) -> dict[str, Entry]:
    """Exercise id -> `first_try`, `solved` (ISO times or None), `tries`, `hints` (0 to 3) and `revealed`.

    ValueError where the file is not what this module writes, OSError where it can't be read.
    """
    try:
        entries = json.loads((folder / NAME).read_text(encoding="utf-8"))["exercises"]
        fine = all(_is_entry(entry) and re.fullmatch(r"\d\d-\d", id) for id, entry in entries.items())
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        fine = False
    if not fine:
        raise ValueError(f"{folder / NAME} is not a file of progress")
    return entries


def progress() -> Card:
    """A table of what is solved in this workbook, a row for every notebook."""
    folder = workbook_folder()
    if folder is None:
        where = "This kernel runs outside a workbook folder, so nothing is kept. Open yours with: tri-memory lab"
        return Card("Progress", f"<p>{where}</p>", where, "#D55E00")
    try:
        entries = load(folder)
    except (ValueError, OSError) as error:
        said = f"{error}; the next check() begins a new one, and keeps a broken one beside it."
        return Card("Progress", "<p>progress.json can't be read</p>", said, "#D55E00")
    rows = [("notebook", "solved", "tries", "hints")]
    for source in source_files():
        ids = exercise_ids(source)
        mine = [entries[id] for id in ids if id in entries]
        solved = sum(entry["solved"] is not None for entry in mine)
        hints = str(sum(entry["hints"] for entry in mine)) + " and answers" * any(e["revealed"] for e in mine)
        rows.append((source.stem, f"{solved} of {len(ids)}", str(sum(entry["tries"] for entry in mine)), hints))
    plain = "\n".join(f"{name:28} {solved:>7} {tries:>6}  {hints}" for name, solved, tries, hints in rows)
    return Card("Progress", _table(rows), plain)


def exercise_ids(source: Path) -> list[str]:
    """The ids of the exercises that a notebook's source checks, in order."""
    return sorted(set(_CHECKED.findall(source.read_text(encoding="utf-8"))))


def _table(rows: list[tuple[str, str, str, str]]) -> str:
    lines = [f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows]
    lines[0] = lines[0].replace("td>", "th>")
    return f"<table>{''.join(lines)}</table>"


def _note(exercise_id: str, change: Callable[[Entry], object]) -> None:
    """Change one entry. Whatever goes wrong is a line on stderr: the learner's answer matters more than the record."""
    folder = workbook_folder()
    if folder is None:
        return
    try:
        with _alone(folder / f".{NAME}.lock"):
            entries = _load_or_set_aside(folder)
            before = entries.get(exercise_id)
            entry = dict(before or {"first_try": None, "solved": None, "tries": 0, "hints": 0, "revealed": False})
            change(entry)
            if entry != before:
                _write(folder / NAME, {"version": 1, "exercises": {**entries, exercise_id: entry}})
    except OSError as error:
        print(f"your progress was not kept ({error}); the answer above counts all the same", file=sys.stderr)


def _load_or_set_aside(folder: Path) -> dict[str, Entry]:
    try:
        return load(folder)
    except ValueError as error:
        kept = folder / f"progress.broken-{datetime.now().astimezone():%Y%m%d-%H%M%S-%f}.json"
        os.replace(folder / NAME, kept)
        print(f"{error}; it is kept as {kept.name}, and a new one begins", file=sys.stderr)
        return {}


def _is_entry(entry: Entry) -> bool:
    return entry.keys() == _FIELDS.keys() and all(isinstance(entry[name], kind) for name, kind in _FIELDS.items())  # type: ignore[arg-type]


def _write(path: Path, value: object) -> None:
    """The whole file or the old one: written beside it, then moved into its place."""
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=".progress-", suffix=".json")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1, sort_keys=True)
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the lock file; the system lets go of it when a kernel dies. OSError after WAIT_S."""
    with open(path, "a+b") as file:
        until = time.monotonic() + WAIT_S
        while True:
            try:
                _lock(file.fileno())
                break
            except OSError:
                if time.monotonic() > until:
                    raise OSError(f"another kernel has held {path.name} for {WAIT_S:.0f} s") from None
                time.sleep(0.02)
        yield  # closing the file lets go


def _lock(handle: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")
