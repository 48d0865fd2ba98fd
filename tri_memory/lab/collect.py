"""Which exercises returned notebooks solve, found by running each once more; stored outputs are not read.

All its code cells run in a fresh kernel, in an empty folder, with a time limit, without Python's network and without
the environment's secrets. Behind each `check(…)` a cell of ours asks the checker. That is care and no wall: the code
runs with the rights of whoever collects, and somebody who wants to deceive the checker from inside its process can.
"""

from __future__ import annotations

import ast
import os
import re
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from subprocess import DEVNULL
from typing import Any

from nbclient import NotebookClient

from tri_memory.contracts import shown
from tri_memory.lab.exercises.kit import exercises_of
from tri_memory.lab.offline import without_network
from tri_memory.lab.sources import KERNEL, cells_of, source_files

KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT")
HOMES = ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TMPDIR", "TEMP", "TMP", "MPLCONFIGDIR", "IPYTHONDIR")

_BACKUP = re.compile(r"\.\d{8}-\d{6}-\d{6}$")  # what workbook.reset keeps
_JUDGE = """try:
    from tri_memory.lab.exercises.kit import check as _check
    _verdict = _check({id!r}, {answer})
    _verdict = [{id!r}, _verdict.passed is True, str(_verdict.message)]
except Exception as _error:
    _verdict = [{id!r}, False, f"{{type(_error).__name__}}: {{_error}}"]
from IPython.display import publish_display_data as _publish
_publish({{{mime!r}: _verdict}})"""


@dataclass(frozen=True)
class Result:
    """One exercise of one returned notebook, or one notebook that has none to judge (`exercise` is "")."""

    learner: str
    notebook: str
    exercise: str
    solved: bool
    found: str


@dataclass(frozen=True)
class _Asked:
    """What a notebook was handed out with: the stub of an exercise, and the expression that `check` is given."""

    stub: str
    answer: str


def notebooks_in(folder: Path) -> list[tuple[str, Path]]:
    """(learner, notebook) of all below `folder`: a learner is a sub-folder's name, or a notebook's own.

    Hidden folders (Jupyter's checkpoints) and the backups of `workbook.reset` are passed over.
    """
    found = []
    for path in sorted(folder.rglob("*.ipynb")):
        parts = path.relative_to(folder).parts
        if not any(part.startswith(".") for part in parts) and not _BACKUP.search(path.stem):
            found.append((parts[0] if len(parts) > 1 else path.stem, path))
    return found


def judge(learner: str, path: Path, limit_s: float) -> Iterator[Result]:
    """A result for each exercise of the notebook at `path`. Whatever is wrong with the notebook is one, too."""

    def result(exercise: str, solved: bool, found: str) -> Result:
        return Result(learner, path.name, exercise, solved, found)

    try:
        cells = _code_cells(path)
        chapter = _chapter(path, cells)
        asked = _asked(chapter)
    except Exception as error:  # a file may be anything
        yield result("", False, f"not run: {type(error).__name__}: {error}")
        return
    if _is_untouched(cells, asked):
        yield from (result(id, False, "not run: every stub is as it was handed out") for id in asked)
        return
    verdicts, why_not = _run(cells, asked, limit_s)
    for id in asked:
        solved, message = verdicts.get(id, (False, why_not or "the checker gave no answer"))
        yield result(id, solved, ("checker: " if id in verdicts else "") + message)


def _code_cells(path: Path) -> list[str]:
    import nbformat

    try:
        notebook = nbformat.read(path, as_version=4)
        return [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    except (nbformat.reader.NotJSONError, AttributeError, UnicodeDecodeError) as error:
        raise ValueError(f"no notebook: {shown(str(error))}") from None


def _chapter(path: Path, cells: list[str]) -> str:
    counted = Counter(id[:2] for cell in cells for id in _checks(cell))
    if counted:
        return counted.most_common(1)[0][0]
    if re.match(r"\d\d_", path.name):
        return path.name[:2]
    raise ValueError("it checks no exercise of this series")


def _asked(chapter: str) -> dict[str, _Asked]:
    stub, asked = "", {}
    for source in source_files():
        for cell in cells_of(source) if source.name.startswith(chapter) else ():
            stub = cell.source if "stub" in cell.metadata.get("tags", []) else stub
            for id, answer in _checks(cell.source).items() if cell.cell_type == "code" else ():
                asked[id] = _Asked(stub, answer)
    return {task.id: asked[task.id] for task in exercises_of(chapter)}


def _checks(cell: str) -> dict[str, str]:
    """Exercise id -> the expression that `check` is given, for the calls in a cell; none where it is no Python."""
    try:
        tree = compile(cell, "<cell>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found = {}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name("check"), args=[ast.Constant(str(id)), answer]) if re.match(r"\d\d-\d$", id):
                found[id] = ast.unparse(answer)
    return found


def _is_untouched(cells: list[str], asked: dict[str, _Asked]) -> bool:
    checked = {id: answer for cell in cells for id, answer in _checks(cell).items()}
    return all(one.stub in cells and checked.get(id) == one.answer for id, one in asked.items())


def _run(cells: list[str], asked: dict[str, _Asked], limit_s: float) -> tuple[dict[str, tuple[bool, str]], str]:
    """The checkers' verdicts, and why the run ended early ("" where it didn't)."""
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from nbformat.v4 import new_code_cell, new_notebook

    mime = f"application/x-{token_hex(8)}+json"
    left, code = dict(asked), []
    for cell in cells:
        code.append(cell)
        for id, answer in _checks(cell).items():
            code.append(_JUDGE.format(id=id, answer=answer, mime=mime))
            left.pop(id, None)
    code += [_JUDGE.format(id=id, answer=one.answer, mime=mime) for id, one in left.items()]
    until = time.monotonic() + limit_s
    with tempfile.TemporaryDirectory(prefix="tri-memory-collect-", ignore_cleanup_errors=True) as place:
        client = _Judge(
            new_notebook(cells=[new_code_cell(text) for text in code], metadata=KERNEL),
            mime=mime,
            allow_errors=True,
            timeout_func=lambda cell: max(1, round(until - time.monotonic())),
            kernel_name="python3",
            resources={"metadata": {"path": place}},
        )
        ended = ""
        try:
            client.execute(env=_env(place), stdout=DEVNULL, stderr=DEVNULL)  # ours is the table, and no child's
        except CellTimeoutError:
            ended = f"not reached: the notebook was stopped after {limit_s:.0f} s"
        except DeadKernelError:
            ended = "not reached: the notebook ended its own kernel"
        except Exception as error:
            ended = f"not reached: {type(error).__name__}: {error}"
        finally:
            client.end_all()
    return client.verdicts, ended


def _env(place: str) -> dict[str, str]:
    """No key and no password goes along, and no way to Docker, which would be one to the whole machine."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    hidden = {"DOCKER_HOST": "unix:///no/docker/here", "PYTHONIOENCODING": "utf-8"}
    return without_network(kept | hidden | dict.fromkeys(HOMES, place))


class _Judge(NotebookClient):
    """Keeps the verdicts of our cells and forgets all else that a notebook prints, however much that is."""

    def __init__(self, notebook: Any, *, mime: str, **options: Any) -> None:
        super().__init__(notebook, **options)
        self.mime = mime
        self.verdicts: dict[str, tuple[bool, str]] = {}
        self.group = 0

    async def async_start_new_kernel(self, **options: Any) -> None:
        await super().async_start_new_kernel(**options)
        self.group = getattr(getattr(self.km, "provisioner", None), "pgid", None) or 0

    def output(self, outs: Any, msg: Any, display_id: Any, cell_index: int) -> None:
        verdict = msg["content"].get("data", {}).get(self.mime)
        if verdict:
            id, solved, message = verdict
            self.verdicts[id] = (solved, message)

    def end_all(self) -> None:
        """What the notebook started is ended with it."""
        if self.group > 1 and hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.group, signal.SIGKILL)
