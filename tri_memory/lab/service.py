"""What a service desk measures: how long a visit is, who has to ask twice, who ends with a human, what the survey says.

Each rate is a mean with its bootstrap interval and `n`, people drawn first; of nothing it is NaN with n = 0. None of
them says whether memory helped: that takes the same measure without it, beside.
"""

from __future__ import annotations

import csv
import io
import os
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import regex

from tri_memory.agent.sentences import asks, split
from tri_memory.contracts import ChatTurn, require_text, shown
from tri_memory.embedding import Embedder
from tri_memory.lab.datasets import Dataset, Session
from tri_memory.lab.fields import at, read_text
from tri_memory.lab.metrics import Interval, interval
from tri_memory.recall.calibration import Threshold
from tri_memory.recall.cosine import top_k
from tri_memory.recall.gate import Gate

HANDOVER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "en": (
            "transfer you to",
            "transferring you to",
            "put you through to",
            "putting you through to",
            "hand you over to",
            "handing you over to",
            "pass you on to",
            "passing you on to",
            "connect you with",
            "connecting you with",
            "a colleague will take over",
            "transfer to human",  # as a tool is called, transfer_to_human
        ),
        "zh": (
            "转人工",
            "转接人工",
            "接入人工",
            "转到人工",
            "转给人工",
            "为您转接",
            "帮您转接",
            "转给同事",
            "由同事接手",
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Depth:
    """Turns of a session: `mean` with `mean.n` sessions, and the quartiles (25 %, 50 %, 75 %)."""

    mean: Interval
    quartiles: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A question and the nearest one that the same user asked in an earlier session."""

    user_id: str
    session_id: str
    question: str
    earlier_session_id: str
    earlier_question: str
    cosine: float


@dataclass(frozen=True, slots=True)
class Repeats:
    """`rate` of `rate.n` user turns, and of each turn that counts its nearest pair of questions, to be read."""

    rate: Interval
    found: tuple[Repeat, ...]


@dataclass(frozen=True, slots=True)
class Handovers:
    """`rate` of `rate.n` sessions, and the ids of those that count."""

    rate: Interval
    session_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Survey:
    """Scores from 1 to 5: of all `overall.n` answers, and of each group in order of appearance, if there are groups."""

    overall: Interval
    groups: Mapping[str, Interval]


def session_depth(dataset: Dataset) -> Depth:
    """How many turns a session has that the user sees: of user and assistant, without tool calls and their results."""
    depths = [sum(_is_seen(turn) for turn in session.turns) for session in dataset.sessions]
    quartiles = np.percentile(depths, [25, 50, 75]) if depths else np.full(3, np.nan)
    low, middle, high = quartiles.tolist()
    return Depth(interval(depths, [session.user_id for session in dataset.sessions]), (low, middle, high))


def repeat_question_rate(dataset: Dataset, embedder: Embedder, threshold: Threshold) -> Repeats:
    """The share of user turns that ask again what the same user asked in an earlier session.

    Of: every user turn, asking or not, of each user's second session and later ones. Counted: a turn in which at least
    one sentence asks (`agent.sentences.asks`) and has a cosine of at least the threshold with an asking sentence of an
    earlier session. Again within one session doesn't count; "are you there?" each time does, and so does a question
    whose answer changes ("is it open today?"). Raises TypeError for a bare number, and warns (OtherEmbedderWarning)
    where the threshold was found with another embedder.
    """
    least = Gate(threshold, embedder.name).threshold.value
    repeated: list[bool] = []
    found: list[Repeat] = []
    users: list[str] = []
    for user_id in dataset.users():
        for pairs in _pairs_by_turn(dataset.of(user_id), embedder):
            near = [pair for pair in pairs if pair.cosine >= least]
            found += [max(near, key=lambda pair: pair.cosine)] if near else []
            repeated.append(bool(near))
            users.append(user_id)
    return Repeats(interval(repeated, users), tuple(found))


def handover_rate(dataset: Dataset, phrases: Mapping[str, Sequence[str]] = HANDOVER) -> Handovers:
    """The share of sessions that end with a human: since the last user turn but one (so that a last "thanks" hides
    nothing), the assistant has said one of the phrases or called a tool of that name.

    `phrases` are looked for in every session, whichever language they stand under: whole words, whatever the capitals,
    the spaces and the width of the letters. `{**HANDOVER, "fr": ["je vous passe"]}` adds to them. "I can't transfer you
    to anybody" counts, too: read the sessions. Raises ValueError where there is no phrase, and for a blank one.
    """
    pattern = _pattern(phrases)
    ended = [any(pattern.search(_folded(turn)) for turn in _ending(session.turns)) for session in dataset.sessions]
    ids = tuple(session.session_id for session, yes in zip(dataset.sessions, ended, strict=True) if yes)
    return Handovers(interval(ended, [session.user_id for session in dataset.sessions]), ids)


def survey(path: str | os.PathLike[str]) -> Survey:
    """Means of the column `score` (whole numbers from 1 to 5) of a CSV with a header, one line an answer.

    A column `group` ("with memory", "without") gives a mean for each; other columns are not looked at. Comma or
    semicolon, UTF-8. Raises FileNotFoundError, and ValueError naming the line for whatever is no such file.
    """
    file = Path(path)
    by_group: dict[str, list[int]] = {}
    scores: list[int] = []
    with at(file.name):
        for group, score in _answers(read_text(file)):
            scores.append(score)
            if group is not None:
                by_group.setdefault(group, []).append(score)
        if not scores:
            raise ValueError("there is no answer in it, only a header")
    return Survey(interval(scores), MappingProxyType({group: interval(own) for group, own in by_group.items()}))


def _is_seen(turn: ChatTurn) -> bool:
    return turn.role in ("user", "assistant") and turn.tool_name is None


def _pairs_by_turn(sessions: Sequence[Session], embedder: Embedder) -> Iterator[list[Repeat]]:
    """For each user turn behind the first session: each of its questions beside the nearest of the earlier sessions."""
    asked: list[tuple[str, str]] = []  # (session, question), and the vectors of these questions
    vectors = np.empty((0, embedder.dimensions), np.float32)
    for number, session in enumerate(sessions):
        here: list[str] = []
        for turn in (turn for turn in session.turns if turn.role == "user"):
            questions = [sentence for sentence in split(turn.content) if asks(sentence)]
            here += questions
            if number:
                yield [
                    Repeat(session.user_id, session.session_id, question, *asked[row], cosine)
                    for question, vector in zip(questions, embedder.encode(questions), strict=True)
                    for row, cosine in top_k(vectors, vector, 1)
                ]
        asked += [(session.session_id, question) for question in here]
        vectors = np.concatenate([vectors, embedder.encode(here)])


def _ending(turns: Sequence[ChatTurn]) -> list[ChatTurn]:
    said_by_user = [place for place, turn in enumerate(turns) if turn.role == "user"]
    start = said_by_user[-2] if len(said_by_user) > 1 else 0
    return [turn for turn in turns[start:] if turn.role == "assistant"]


def _pattern(phrases: Mapping[str, Sequence[str]]) -> regex.Pattern[str]:
    for language, some in phrases.items():
        if isinstance(some, str):
            raise ValueError(f"the phrases of {language!r} must be a list; got the single text {shown(some)}")
    plain = [_plain(require_text("a phrase", phrase)) for some in phrases.values() for phrase in some]
    if not plain:
        raise ValueError("handover_rate needs phrases; HANDOVER has some in English and Chinese")
    return regex.compile(rf"(?<!\p{{Latin}})(?:{'|'.join(map(regex.escape, plain))})(?!\p{{Latin}})")


def _folded(turn: ChatTurn) -> str:
    """What was said, and the name of the tool that was called."""
    return _plain(f"{turn.content}\n{(turn.tool_name or '').replace('_', ' ')}")


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().replace("’", "'").split())


def _answers(text: str) -> Iterator[tuple[str | None, int]]:
    """(group or None, score) of each line."""
    header = text.partition("\n")[0]
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=";" if ";" in header and "," not in header else ",")
    names = [name.strip().casefold() for name in next(lines, [])]
    with at("line 1"):
        if names.count("score") != 1 or names.count("group") > 1:
            raise ValueError(f"needs one column 'score' and at most one 'group'; got {shown(', '.join(names))}")
    while True:
        try:
            row = next(lines, None)
        except csv.Error as error:
            raise ValueError(f"line {lines.line_num}: {error}") from error
        if row is None:
            return
        if not any(cell.strip() for cell in row):
            continue
        with at(f"line {lines.line_num}"):
            if len(row) != len(names):
                raise ValueError(f"has {len(row)} cells, and the header {len(names)}; a comma in a text needs quotes")
            group = require_text("group", row[names.index("group")]).strip() if "group" in names else None
            yield group, _score(row[names.index("score")])


def _score(cell: str) -> int:
    score = unicodedata.normalize("NFKC", cell).strip()
    if score not in {"1", "2", "3", "4", "5"}:
        raise ValueError(f"score must be a whole number from 1 to 5; got {shown(cell)}; leave out who gave none")
    return int(score)
