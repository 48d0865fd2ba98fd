"""The hand-written conversations and their gold questions, read and checked.

Format: `data/README.md`. A broken file is a ValueError that names the file and the line.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from tri_memory.contracts import ChatTurn, require_count, require_text, shown
from tri_memory.lab.fields import Row, an_object, at, field, from_json, items, moment, rows, string, text, texts

LANGUAGES = ("en", "zh")
TRADES = ("shop", "device", "coach")
KINDS = (
    "back_reference",
    "exact_id",
    "paraphrase",
    "time",
    "preference",
    "changed_fact",
    "assistant_said",
    "unanswerable",
)
FIRST_DAY = datetime(2026, 1, 5, tzinfo=UTC)
LAST_DAY = datetime(2026, 7, 4, tzinfo=UTC)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Session:
    """One visit of one person, with the summary that a colleague wrote by hand ("" where a loaded file has none)."""

    session_id: str
    user_id: str
    started_at: datetime
    summary: str
    turns: tuple[ChatTurn, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What the person may ask later, and where the answer stands. `facts` are copied from the gold turns.

    `kind` is one of `KINDS` in the kit's own data; a loaded file may bring others, such as `"multi_hop"`, and may say
    when the question was asked.
    """

    question_id: str
    user_id: str
    kind: str
    question: str
    answer: str
    gold_sessions: tuple[str, ...]
    gold_turns: tuple[tuple[str, int], ...]
    facts: tuple[str, ...]
    outdated: tuple[str, ...] = ()
    asked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """Sessions in order of user and time, and the questions about them. `language` is "en", "zh" or "other"."""

    language: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]

    def users(self) -> list[str]:
        return sorted({session.user_id for session in self.sessions})

    def of(self, user_id: str) -> list[Session]:
        """One person's sessions, oldest first."""
        return [session for session in self.sessions if session.user_id == user_id]

    def turns_of(self, user_id: str) -> list[ChatTurn]:
        """All visits of one person as one long conversation."""
        return [turn for session in self.of(user_id) for turn in session.turns]


def data_folder() -> Path:
    """`data/` beside the package in a checkout, inside it in an installed wheel."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package.parent / "data", package / "data"):
        if (folder / "en").is_dir():
            return folder
    raise FileNotFoundError(f"no data folder beside {package}: work in a clone of the repository")


def load(language: str = "en") -> Dataset:
    """The kit's own conversations in one language, `"en"` or `"zh"`."""
    if language not in LANGUAGES:
        raise ValueError(f"language must be one of {LANGUAGES}, got {language!r}")
    folder = data_folder() / language
    sessions = [s for trade in TRADES for s in _read(folder / f"{trade}.sessions.jsonl", parse_session)]
    questions = [q for trade in TRADES for q in _read(folder / f"{trade}.questions.jsonl", _own_question)]
    sessions.sort(key=lambda session: (session.user_id, session.started_at))
    return Dataset(language, tuple(sessions), tuple(questions))


def _read(path: Path, parse: Callable[[Row], T]) -> Iterator[T]:
    with path.open("rb") as lines:  # as bytes, so that text that is not UTF-8 is the fault of its line and no other
        for number, line in enumerate(lines, start=1):
            if line.strip():
                with at(f"{path.name}, line {number}"):
                    parsed = parse(an_object("a line", from_json(_utf8(line))))
                yield parsed


def _utf8(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8 ({error.reason}); save the file as UTF-8") from error


def parse_session(row: Row) -> Session:
    """One session from its JSON object; ValueError names the field that is missing or of the wrong type."""
    started_at = moment(row, "started_at")
    turns = tuple(parse_turn(turn) for turn in rows(row, "turns"))
    if not turns:
        raise ValueError("turns must hold at least one turn; got []")
    return Session(text(row, "session_id"), text(row, "user_id"), started_at, string(row, "summary"), turns)


def parse_turn(row: Row) -> ChatTurn:
    """`{"role": …, "content": …, "toolName": …}`; the last may be absent."""
    return ChatTurn(field(row, "role"), field(row, "content"), row.get("toolName"))


def parse_question(row: Row) -> Question:
    """One question from its JSON object, of any kind; ValueError names the field."""
    return Question(
        text(row, "question_id"),
        text(row, "user_id"),
        text(row, "kind"),
        text(row, "question"),
        string(row, "answer"),
        texts(row, "gold_sessions"),
        tuple(_gold_turn(f"gold_turns[{i}]", pair) for i, pair in enumerate(items(row, "gold_turns"))),
        texts(row, "facts"),
        texts({"outdated": []} | row, "outdated"),
        moment(row, "asked_at") if "asked_at" in row else None,
    )


def _gold_turn(name: str, pair: Any) -> tuple[str, int]:
    if not (isinstance(pair, list) and len(pair) == 2):
        raise ValueError(f"{name} must be a pair [session_id, index of the turn]; got {shown(pair)}")
    return require_text(f"{name}[0]", pair[0]), require_count(f"{name}[1]", pair[1])


def _own_question(row: Row) -> Question:
    if field(row, "kind") not in KINDS:
        raise ValueError(f"kind must be one of {KINDS}, got {shown(row['kind'])}")
    return parse_question(row)


def problems(dataset: Dataset) -> list[str]:
    """Everything that contradicts `data/README.md`, one sentence each; empty when all is well."""
    by_id = {session.session_id: session for session in dataset.sessions}
    found = [f"{i}: appears {n} times" for i, n in Counter(s.session_id for s in dataset.sessions).items() if n > 1]
    found += [f"{i}: appears {n} times" for i, n in Counter(q.question_id for q in dataset.questions).items() if n > 1]
    for session in dataset.sessions:
        found += [f"{session.session_id}: {what}" for what in _session_problems(session, dataset.language)]
    for question in dataset.questions:
        found += [f"{question.question_id}: {what}" for what in _question_problems(question, by_id)]
    return found


def _session_problems(session: Session, language: str) -> Iterator[str]:
    if not session.session_id.startswith(session.user_id + "-s"):
        yield f"the id does not start with {session.user_id}-s"
    if not 8 <= len(session.turns) <= 12:
        yield f"{len(session.turns)} turns, not 8 to 12"
    if session.turns[0].role != "user":
        yield "does not open with a user turn"
    if not FIRST_DAY <= session.started_at < LAST_DAY:
        yield f"started_at {session.started_at:%Y-%m-%d} is outside the 180 days"
    length, most = (len(session.summary), 150) if language == "zh" else (len(session.summary.split()), 100)
    if not 0 < length <= most:
        yield f"the summary has {length} {'characters' if language == 'zh' else 'words'}, not 1 to {most}"
    for before, turn in zip((None, *session.turns), session.turns, strict=False):
        if not turn.content.strip():
            yield "a blank turn"
        if turn.role == "tool" and not (before and before.tool_name and turn.tool_name):
            yield "a tool turn without toolName, or not behind the assistant turn that calls it"


def _question_problems(question: Question, sessions: dict[str, Session]) -> Iterator[str]:
    if question.kind == "unanswerable":
        if question.gold_sessions or question.gold_turns or question.facts:
            yield "unanswerable, yet it has gold"
        return
    if not (question.gold_sessions and question.gold_turns and question.facts):
        yield "gold_sessions, gold_turns or facts is empty"
    missing = [s for s in question.gold_sessions if s not in sessions]
    missing += [f"{s}[{i}]" for s, i in question.gold_turns if s not in sessions or not 0 <= i < len(sessions[s].turns)]
    if missing:
        yield f"gold that does not exist: {', '.join(missing)}"
        return
    if any(sessions[s].user_id != question.user_id for s in question.gold_sessions):
        yield "gold of another person"
    if {s for s, _ in question.gold_turns} != set(question.gold_sessions):
        yield "gold_turns and gold_sessions name different sessions"
    said = "\n".join(sessions[s].turns[i].content for s, i in question.gold_turns)
    for fact in question.facts:
        if fact not in said:
            yield f"the fact {fact!r} is not in the gold turns"
        if len(fact) > 40:
            yield f"the fact {fact!r} is longer than 40 characters"
    if question.kind == "changed_fact":
        everything = "\n".join(t.content for s in sessions.values() if s.user_id == question.user_id for t in s.turns)
        if not question.outdated or any(old not in everything for old in question.outdated):
            yield "outdated is empty or not said by anybody"


def main() -> int:
    """Check both languages; the exit code tells."""
    wrong = 0
    for language in LANGUAGES:
        try:
            dataset = load(language)
        except (ValueError, OSError) as error:
            print(f"{language}: {error}")
            wrong += 1
            continue
        found = problems(dataset)
        print(*found, sep="\n", end="\n" if found else "")
        kinds = Counter(question.kind for question in dataset.questions)
        print(f"{language}: {len(dataset.users())} users, {len(dataset.sessions)} sessions, {dict(kinds)}")
        wrong += len(found)
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
