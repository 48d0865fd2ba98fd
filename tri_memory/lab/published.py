"""The published sets of conversations and questions, from their parsed JSON to a `Dataset`.

Sources: Maharana et al. 2024 (LoCoMo), Wu et al. 2025 (LongMemEval), Zhong et al. 2023 (MemoryBank). A session is
called `<user>-s<n>`, `n` its number in the file; sessions without a turn are left out. Times without a zone are taken
as UTC. Every parse function raises ValueError that names the item.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from tri_memory.contracts import ChatTurn, shown
from tri_memory.lab.assemble import assemble, is_chinese
from tri_memory.lab.chat_log import day_start
from tri_memory.lab.datasets import Dataset, Question, Session, parse_turn
from tri_memory.lab.fields import Row, a_list, a_string, an_object, at, each, field, items, rows, string, text, texts

LOCOMO_KINDS = {1: "multi_hop", 2: "time", 3: "open_domain", 4: "single_hop", 5: "unanswerable"}
LONGMEMEVAL_KINDS = {
    "single-session-user": "single_session_user",
    "single-session-assistant": "assistant_said",
    "single-session-preference": "preference",
    "multi-session": "multi_session",
    "temporal-reasoning": "time",
    "knowledge-update": "changed_fact",
}
Item = tuple[list[Session], list[Question]]
TurnNumber = tuple[int, int]  # D3:12 is (3, 12)


def _whole(language: str, data: Any, parse: Callable[[Row], Item]) -> Dataset:
    found = each("item", a_list("the file", data), parse)
    return assemble(language, [s for sessions, _ in found for s in sessions], [q for _, asked in found for q in asked])


def parse_locomo(data: Any) -> Dataset:
    """One user a conversation. Evidence that names no turn is left out; `unanswerable` has neither gold nor answer."""
    return _whole("en", data, _locomo_item)


def _locomo_item(sample: Row) -> Item:
    user = text(sample, "sample_id")
    sessions: list[Session] = []
    turn_of: dict[TurnNumber, tuple[str, int]] = {}
    for session, names in _locomo_sessions(sample, user):
        sessions.append(session)
        turn_of |= {place: (session.session_id, i) for i, name in enumerate(names) for place in _turn_numbers(name)}
    questions = each("question", items(sample, "qa"), lambda row: _locomo_question(row, user, turn_of))
    return sessions, _called(user, questions)


def _locomo_sessions(sample: Row, user: str) -> Iterator[tuple[Session, list[str]]]:
    """Each session and the `dia_id` of each of its turns."""
    talk = an_object("conversation", field(sample, "conversation"))
    roles = {text(talk, "speaker_a"): "user", text(talk, "speaker_b"): "assistant"}
    summaries = an_object("session_summary", sample.get("session_summary", {}))
    for key in sorted((key for key in talk if re.fullmatch(r"session_[0-9]{1,6}", key)), key=lambda key: int(key[8:])):
        with at(key):
            said = rows(talk, key)
            if not said:
                continue
            start = _time(text(talk, f"{key}_date_time"), "%I:%M %p on %d %B, %Y")
            summary = a_string("summary", summaries.get(f"{key}_summary", ""))
            turns = tuple(_locomo_turn(turn, roles) for turn in said)
            found = Session(f"{user}-s{key[8:]}", user, start, summary, turns), [text(turn, "dia_id") for turn in said]
        yield found


def _locomo_turn(turn: Row, roles: dict[str, str]) -> ChatTurn:
    speaker = text(turn, "speaker")
    if speaker not in roles:
        raise ValueError(f"speaker must be one of {', '.join(roles)}; got {shown(speaker)}")
    picture = f" [picture: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return parse_turn({"role": roles[speaker], "content": f"{speaker}: {string(turn, 'text')}{picture}"})


def _locomo_question(row: Row, user: str, turn_of: dict[TurnNumber, tuple[str, int]]) -> Question:
    kind = _kind(row, "category", LOCOMO_KINDS)
    numbers = [number for written in texts(row, "evidence") for number in _turn_numbers(written)]
    if kind == "unanswerable":
        return Question("", user, kind, text(row, "question"), "", (), (), ())
    gold = tuple(dict.fromkeys(turn_of[number] for number in numbers if number in turn_of))
    gold_sessions = tuple(dict.fromkeys(session_id for session_id, _ in gold))
    return Question("", user, kind, text(row, "question"), _answer(row), gold_sessions, gold, ())


def _turn_numbers(written: str) -> list[TurnNumber]:
    """`"D8:6; D9:17"` -> `[(8, 6), (9, 17)]`, `"D:11:26"` -> `[]`: some published ids are malformed."""
    return [(int(session), int(turn)) for session, turn in re.findall(r"D([0-9]{1,6}):([0-9]{1,6})", written)]


def parse_longmemeval(data: Any) -> Dataset:
    """One user a question, since each has a history of its own; an id that ends in `_abs` is unanswerable."""
    return _whole("en", data, _longmemeval_item)


def _longmemeval_item(row: Row) -> Item:
    user = text(row, "question_id")
    kind = _kind(row, "question_type", LONGMEMEVAL_KINDS)
    evidence = texts(row, "answer_session_ids")
    if unknown := sorted(set(evidence) - set(texts(row, "haystack_session_ids"))):
        raise ValueError(f"answer_session_ids must be in the haystack; got {', '.join(unknown)}")
    if user.endswith("_abs"):
        kind, evidence = "unanswerable", ()
    history = list(_haystack(row, user))
    gold_sessions = tuple(session.session_id for name, session, _ in history if name in evidence)
    gold = tuple((s.session_id, index) for name, s, answering in history if name in evidence for index in answering)
    asked_at, asked = _haystack_time(text(row, "question_date")), text(row, "question")
    question = Question(user, user, kind, asked, _answer(row), gold_sessions, gold, (), asked_at=asked_at)
    return [session for _, session, _ in history], [question]


def _haystack(row: Row, user: str) -> Iterator[tuple[str, Session, list[int]]]:
    """Each session with its name in the file and the indexes of the turns marked `has_answer`."""
    names, dates = texts(row, "haystack_session_ids"), texts(row, "haystack_dates")
    history = items(row, "haystack_sessions")
    if not len(names) == len(dates) == len(history):
        raise ValueError(f"{len(names)} session ids, {len(dates)} dates and {len(history)} sessions in one haystack")
    for number, (name, date, said) in enumerate(zip(names, dates, history, strict=True), start=1):
        with at(f"haystack session {number}"):
            start = _haystack_time(date)
            turns = tuple(each("turn", a_list("it", said), parse_turn))
        if turns:
            answering = [index for index, turn in enumerate(said) if turn.get("has_answer") is True]
            yield name, Session(f"{user}-s{number}", user, start, "", turns), answering


def parse_memorybank(data: Any) -> Dataset:
    """One user an item and one session a day, at 09:00; gold is whole days. Chinese where most letters are Han."""
    found = _whole("en", data, _memorybank_item)
    return replace(found, language="zh") if is_chinese(found.sessions) else found


def _memorybank_item(item: Row) -> Item:
    user = text(item, "user")
    days = each("day", items(item, "days"), lambda day: (text(day, "date"), tuple(map(parse_turn, rows(day, "turns")))))
    sessions = []
    named: dict[str, str] = {}
    for number, (date, turns) in enumerate(days, start=1):
        if turns:
            with at(f"day {number}"):
                sessions.append(Session(f"{user}-s{number}", user, day_start(date), "", turns))
            named[date] = f"{user}-s{number}"
    questions = each(
        "question",
        a_list("questions", item.get("questions", [])),
        lambda row: _memorybank_question(row, user, named),
    )
    return sessions, _called(user, questions)


def _memorybank_question(row: Row, user: str, named: dict[str, str]) -> Question:
    dates = texts(row, "gold_dates")
    if unknown := [date for date in dates if date not in named]:
        raise ValueError(f"gold_dates must be days of the user with turns; got {', '.join(unknown)}")
    gold = tuple(named[date] for date in dates)
    return Question("", user, text(row, "category"), text(row, "question"), _answer(row), gold, (), ())


def _called(user: str, questions: list[Question]) -> list[Question]:
    """Questions that have no id in the file, numbered."""
    return [replace(question, question_id=f"{user}-q{i}") for i, question in enumerate(questions, start=1)]


def _kind(row: Row, name: str, kinds: dict[Any, str]) -> str:
    value = field(row, name)
    if not isinstance(value, int | str) or value not in kinds:
        raise ValueError(f"{name} must be one of {', '.join(map(str, kinds))}; got {shown(value)}")
    return kinds[value]


def _answer(row: Row) -> str:
    """The answer as text: some published answers are numbers."""
    value = field(row, "answer")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return a_string("answer", value)


def _haystack_time(written: str) -> datetime:
    return _time(re.sub(r"\([^)]*\) *", "", written), "%Y/%m/%d %H:%M")  # without "(Sat)"


def _time(written: str, layout: str) -> datetime:
    return datetime.strptime(written, layout).replace(tzinfo=UTC)
