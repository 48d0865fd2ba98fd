"""The house stands as it was drawn: imports point one way, no store knows another, one idea a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tri_memory import _MODULE_OF

ROOT = Path(__file__).parents[1]
FLOORS = (  # the ground floor first; a room imports from its own floor or from below
    {"contracts"},
    {"clock", "blocking_calls", "endpoint", "summary"},
    {"embedding", "recall", "engines"},
    {"session", "preference", "episodic", "entity"},
    {"agent", "privacy", "factory"},
    {"lab", "adapters", "web", "commands", "cli", "doctor", "selftest"},
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
STORES = FLOORS[3]

MOST_LINES = 250
LONGEST_FUNCTION = 60


def sources(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def room_of(path: Path) -> str:
    """`session` for tri_memory/session/memory.py, `clock` for tri_memory/clock.py, "" for the front door."""
    part = path.relative_to(ROOT / "tri_memory").parts[0].removesuffix(".py")
    return "" if part == "__init__" else part


def imported_rooms(source: str) -> Iterator[tuple[int, str]]:
    """(line, room) of every import of ours, wherever it stands; `from tri_memory import x` counts as the room of x."""
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield node.lineno, "a relative import"
        elif isinstance(node, ast.ImportFrom) and node.module == "tri_memory":
            names = [_MODULE_OF.get(alias.name, f"tri_memory.{alias.name}") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        for name in names:
            if name.startswith("tri_memory."):
                yield node.lineno, name.split(".")[1]


def breaches(room: str, source: str) -> list[str]:
    """What `source`, a file of `room`, imports against the rules; one sentence each."""
    found = []
    for line, other in imported_rooms(source):
        if other in {room, "__version__", "missing_package"}:
            continue
        if other not in FLOOR_OF:
            found.append(f"line {line}: {other} is on no floor; give it one in tests/test_architecture.py")
        elif FLOOR_OF[other] > FLOOR_OF[room]:
            found.append(f"line {line}: {room} imports {other}, which stands above it")
        elif {room, other} <= STORES:
            found.append(f"line {line}: the store {room} imports the store {other}")
    return found


@pytest.mark.parametrize("path", sources("tri_memory"), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    if room := room_of(path):
        assert room in FLOOR_OF, f"the room {room} is on no floor; give it one"
        found = breaches(room, path.read_text(encoding="utf-8"))
        assert not found


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("session", "import tri_memory.agent.chat"),
        ("session", "from tri_memory.preference.memory import InMemoryPreferenceStore"),
        ("episodic", "def f():\n    from tri_memory.session import memory"),
        ("episodic", "from tri_memory import InMemorySessionStore"),
        ("recall", "from tri_memory.session.tokens import estimate_tokens"),
        ("contracts", "from tri_memory.clock import system_clock"),
        ("agent", "from tri_memory.lab import plots"),
        ("agent", "from tri_memory import lab"),
        ("agent", "from tri_memory.utils import thing"),
        ("lab", "from . import plots"),
    ],
)
def test_a_breach_would_be_found(room: str, source: str) -> None:
    assert len(breaches(room, source)) == 1


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("episodic", "from tri_memory.contracts import EpisodicRecord\nfrom tri_memory.recall.cosine import top_k"),
        ("agent", "from tri_memory.session.memory import InMemorySessionStore\nfrom tri_memory.agent.prompt import x"),
        ("cli", "import tri_memory\nfrom tri_memory import __version__, doctor\nfrom tri_memory.lab import workbook"),
        ("session", "import numpy as np\nfrom collections.abc import Sequence"),
    ],
)
def test_what_the_drawing_allows_is_no_breach(room: str, source: str) -> None:
    assert breaches(room, source) == []


def test_no_two_rooms_import_each_other() -> None:
    needs: dict[str, set[str]] = {}
    for path in sources("tri_memory"):
        room = room_of(path)
        needs.setdefault(room, set()).update(
            o for _, o in imported_rooms(path.read_text(encoding="utf-8")) if o != room
        )
    TopologicalSorter(needs).prepare()  # raises CycleError, which names the rooms


@pytest.mark.parametrize("path", sources("tri_memory", "benchmarks", "scripts"), ids=lambda p: str(p.relative_to(ROOT)))
def test_one_idea_a_file_and_short_functions(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lines = len(text.splitlines())
    assert lines <= MOST_LINES
    long = [
        f"{node.name} has {length} lines"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > LONGEST_FUNCTION
    ]
    assert not long
