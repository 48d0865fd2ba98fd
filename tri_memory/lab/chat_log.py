"""An exported chat, one turn a line, as sessions of one user.

A line is a JSON object `{"role": …, "content": …}`, or `speaker: text`, or `speaker> text`. The roles of the kit keep
their meaning, in Chinese as well (用户, 助手); of other names the first to speak is the user and the second the
assistant. A line with nothing but a date (`2026-01-05`) or a date and a time begins a new session.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from tri_memory.contracts import ROLES, ChatTurn, shown
from tri_memory.lab.datasets import FIRST_DAY, Session, parse_turn
from tri_memory.lab.fields import an_object, at, from_json, text

START_OF_DAY = timedelta(hours=9)  # where a file gives the day only; the same for every day, so that order is kept
NAMES = {"human": "user", "ai": "assistant", "用户": "user", "助手": "assistant"}
_SPOKEN = re.compile(r"([^\W\d][^:：>]{0,39}?)\s*[:：>](?!//)\s*(.*)")
_DAY = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?)?(Z|[+-]\d\d:\d\d)?")


def day_start(day: str) -> datetime:
    """A day such as `2026-01-05` at 09:00, a time as it stands; UTC where no offset is given. ValueError otherwise."""
    time = datetime.fromisoformat(day)
    if len(day) == len("2026-01-05"):
        time += START_OF_DAY
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def parse_chat(chat: str, user_id: str) -> list[Session]:
    """The sessions of one exported chat; one session where no line is a date.

    Raises ValueError, naming the line, for a line that is no turn, for a third speaker, and where there is no turn.
    """
    speakers = Speakers()
    days: list[tuple[datetime, list[ChatTurn]]] = []
    for number, line in enumerate(chat.split("\n"), start=1):  # not splitlines: U+2028 may stand inside a turn
        line = line.strip()
        with at(f"line {number}"):
            if _DAY.fullmatch(line):
                days.append((day_start(line), []))
            elif line:
                turn = _turn(line, speakers)
                if not days:
                    days.append((FIRST_DAY + START_OF_DAY, []))
                days[-1][1].append(turn)
    spoken = [(start, turns) for start, turns in days if turns]
    if not spoken:
        raise ValueError("there is no turn in the file")
    return [Session(f"{user_id}-s{i}", user_id, start, "", tuple(ts)) for i, (start, ts) in enumerate(spoken, start=1)]


class Speakers:
    """Which name is which role, learned in order of appearance."""

    def __init__(self) -> None:
        self._roles: dict[str, str] = {}

    def role(self, name: str) -> str:
        known = name.lower()
        if known in ROLES:
            return known
        if known in NAMES:
            return NAMES[known]
        if name not in self._roles:
            if len(self._roles) == 2:
                raise ValueError(f"a third speaker {shown(name)} after {' and '.join(self._roles)}; a turn is one line")
            self._roles[name] = ("user", "assistant")[len(self._roles)]
        return self._roles[name]


def _turn(line: str, speakers: Speakers) -> ChatTurn:
    if line.startswith("{"):
        row = an_object("a line", from_json(line))
        return parse_turn(row | {"role": speakers.role(text(row, "role"))})
    spoken = _SPOKEN.fullmatch(line)
    if not spoken:
        raise ValueError(f'a turn is {{"role": …, "content": …}} or `speaker: text`; got {shown(line)}')
    return parse_turn({"role": speakers.role(spoken[1]), "content": spoken[2]})
