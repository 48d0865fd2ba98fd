"""Questions to ask of a chat: words taken from a turn that should be found again, quotes of yours, what others ask.

A known-item question is made of the rarest words of a turn, in their order; whoever asks it remembers the words, so it
flatters search by words and says little about paraphrases. Your own questions say more.
Source: Azzopardi, de Rijke and Balog (2007), Building simulated queries for known-item topics, SIGIR '07.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tri_memory.contracts import require_count, require_text, shown
from tri_memory.lab.datasets import Dataset, Question, Session, load
from tri_memory.recall.lexical import tokens

KNOWN_ITEM, QUOTED, OFF_TOPIC = "known_item", "quoted", "off_topic"
WORDS = 4  # of a simulated question
HANDFUL = 5  # turns that may hold a quote; of more, hardly all answer
_WORD = re.compile(r"[^\W_\u3400-\u9fff]{2,}|[\u3400-\u9fff]{2,3}")  # Chinese has no spaces: two or three characters


def known_items(dataset: Dataset, n: int = 100, *, seed: int = 0) -> Dataset:
    """The dataset with up to `n` simulated questions, drawn from all turns that have enough rare words.

    Raises ValueError where no turn has four words that are its own.
    """
    require_count("n", n, least=1)
    turns = [(s.user_id, s.session_id, i, t.content) for s in dataset.sessions for i, t in enumerate(s.turns)]
    df = Counter(token for *_, content in turns for token in set(tokens(content)))
    queries = [(turn, _query(turn[-1], df)) for turn in turns]
    usable = [(turn, query) for turn, query in queries if query]
    if not usable:
        raise ValueError(f"no turn has {WORDS} words of its own to ask by; give questions=[(question, quote), …]")
    rng = random.Random(seed)
    drawn = [usable[i] for i in sorted(rng.sample(range(len(usable)), min(n, len(usable))))]
    asked = [_question(u, KNOWN_ITEM, query, content, [(s, i)]) for (u, s, i, content), query in drawn]
    return replace(dataset, questions=_numbered(asked))


def quoted(dataset: Dataset, questions: Iterable[tuple[str, str]]) -> Dataset:
    """The dataset with your own questions: each with a quote from the turn that answers, "" where none does.

    All turns that hold the quote count as answers; case is ignored, and so is space around the quote. Raises ValueError
    for a quote that nobody said, for one said by several users, and for one in more than `HANDFUL` turns.
    """
    asked = []
    for number, pair in enumerate(questions, start=1):
        text, quote = _pair(number, pair)
        saying = _saying(dataset, quote) if quote else []
        users = sorted({user for user, *_ in saying}) if quote else dataset.users()
        if not users:
            raise ValueError(f"question {number}: nobody says {shown(quote)}; quote a few words as they stand")
        if quote and len(users) > 1:
            raise ValueError(f"question {number}: {shown(quote)} is said by {', '.join(users)}; quote more words")
        if len(saying) > HANDFUL:
            raise ValueError(
                f"question {number}: {shown(quote)} stands in {len(saying)} turns, and each would count as an answer; "
                f"quote more words, so that at most {HANDFUL} turns hold them"
            )
        gold = [(session, index) for _, session, index in saying]
        asked += [_question(user, QUOTED if quote else "unanswerable", text, quote, gold) for user in users]
    if not asked:
        raise ValueError("questions must hold at least one pair (question, quote); got none")
    return replace(dataset, questions=_numbered(asked))


def _pair(number: int, pair: object) -> tuple[str, str]:
    if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(one, str) for one in pair):
        raise ValueError(f'question {number} must be a pair of texts (question, quote or ""); got {shown(pair)}')
    require_text(f"question {number}", pair[0])
    if pair[1] and not pair[1].strip():
        raise ValueError(f'question {number}: the quote {shown(pair[1])} is only space; "" says that nothing answers')
    return pair[0], pair[1].strip()


def _saying(dataset: Dataset, quote: str) -> list[tuple[str, str, int]]:
    wanted = quote.casefold()
    return [
        (session.user_id, session.session_id, index)
        for session in dataset.sessions
        for index, turn in enumerate(session.turns)
        if wanted in turn.content.casefold()
    ]


def _query(content: str, df: Counter[str]) -> str:
    """The words of a turn whose tokens are the rarest, in the order in which they were said; "" for too few."""
    words = list(dict.fromkeys(_WORD.findall(content)))
    rarity = {word: min(df[token] for token in tokens(word)) for word in words}
    rarest = sorted(words, key=rarity.__getitem__)[:WORDS]
    own = [word for word in rarest if rarity[word] == 1]
    return " ".join(word for word in words if word in rarest) if len(own) == WORDS else ""


def off_topic(dataset: Dataset, *, each: int = 10, seed: int = 0) -> list[Question]:
    """For every user up to `each` questions that somebody else asked.

    The others are the dataset's own people; where there is one alone, those of the kit. A question is not borrowed
    where this user's past may answer it: where they ask it too, where a turn of theirs holds it or says what one of its
    gold turns says, or where the asker has a session that they have too, word for word. Case and spacing are ignored.
    That two people spoke of the same in other words, or of somebody with the same name, is not noticed.
    """
    rng = random.Random(seed)
    drawn = []
    for user, foreign in _foreign(dataset):
        others = [one for one, shared in foreign if not shared]
        for number, one in enumerate(rng.sample(others, min(each, len(others))), start=1):
            drawn.append(replace(_question(user, OFF_TOPIC, one.question, "", []), question_id=f"{user}-other{number}"))
    return drawn


def not_borrowed(dataset: Dataset) -> int:
    """How many pairs of a user and somebody else's question `off_topic` leaves out, since the user may answer it."""
    return sum(shared for _, foreign in _foreign(dataset) for _, shared in foreign)


def _foreign(dataset: Dataset) -> Iterator[tuple[str, list[tuple[Question, bool]]]]:
    """Each user with every question of somebody else, and whether this user's past may answer it."""
    source = dataset if len(dataset.users()) > 1 else load("zh" if dataset.language == "zh" else "en")
    said = {one.session_id: _words_of(one) for one in (*source.sessions, *dataset.sessions)}
    having: dict[tuple[str, ...], set[str]] = {}
    for one in source.sessions:
        having.setdefault(said[one.session_id], set()).add(one.user_id)
    asks = [(one, _folded(one.question)) for one in source.questions if one.kind != "unanswerable"]
    for user in dataset.users():
        visits = [said[one.session_id] for one in dataset.of(user)]
        sharing = set().union(*(having.get(words, ()) for words in visits))
        own = {text for words in visits for text in words}
        asked = {_folded(one.question) for one in dataset.questions if one.user_id == user}
        others = [(one, text) for one, text in asks if one.user_id != user]
        yield (
            user,
            [(one, one.user_id in sharing or text in asked or _told(one, text, own, said)) for one, text in others],
        )


def _told(one: Question, text: str, own: set[str], said: dict[str, tuple[str, ...]]) -> bool:
    """Whether a turn of `own` holds the question, or says what one of its gold turns says."""
    gold = one.gold_turns or [(visit, i) for visit in one.gold_sessions for i in range(len(said[visit]))]
    return any(said[visit][i] in own for visit, i in gold) or any(text in turn for turn in own)


def _folded(content: str) -> str:
    return " ".join(content.casefold().split())


def _words_of(session: Session) -> tuple[str, ...]:
    return tuple(_folded(turn.content) for turn in session.turns)


def _question(user: str, kind: str, text: str, answer: str, gold: list[tuple[str, int]]) -> Question:
    return Question("", user, kind, text, answer, tuple(dict.fromkeys(session for session, _ in gold)), tuple(gold), ())


def _numbered(questions: list[Question]) -> tuple[Question, ...]:
    return tuple(replace(one, question_id=f"q{number}") for number, one in enumerate(questions, start=1))
