"""Chapter 12: a cache that serves nothing old, one that survives its Redis, and a token verified by hand."""

from __future__ import annotations

import base64
import json
import random
import secrets
import time
from collections.abc import Callable
from typing import Any

import jwt

from tri_memory.lab.exercises.ch12_outage import hold_outage
from tri_memory.lab.exercises.ch12_phones import Phones, everywhere, hold_orders
from tri_memory.lab.exercises.kit import Option, Question, Wrong, exercise, self_test


@exercise(
    "12-1",
    "A cache that serves nothing old",
    dots=2,
    minutes=20,
    hints=(
        "Whoever fills late does no harm if nobody looks there any more. What could the key name, besides the user?",
        "book.version(user) is another number after each write. Ask for it first, then look under a key that has both, "
        "and fill under that very key.",
        "read: key = f'{user}:{await self.book.version(user)}'; get it; on None, read the book and set(key, …, ex=60). "
        "write: only the book.",
    ),
)
def phones(answer: Phones, rng: random.Random) -> None:
    everywhere(answer, rng, hold_orders)


@exercise(
    "12-2",
    "A cache that may die",
    dots=2,
    minutes=15,
    hints=(
        "Only calls to the cache may fail in silence. What the book raises has to come out.",
        "Put all calls to the cache through one method with a limit, async with asyncio.timeout(0.2), which gives None "
        "for RedisError, OSError and TimeoutError.",
        "kept = await self._tried(lambda: self.cache.get(key)), the same for set; the keys of 12-1, with the version, "
        "make the rest right: what Redis brings back lies under an old version.",
    ),
)
def sure_phones(answer: Phones, rng: random.Random) -> None:
    everywhere(answer, rng, hold_outage)


@exercise(
    "12-3",
    "Verify a token by hand",
    dots=1,
    minutes=12,
    hints=(
        "jwt.decode(token, secret, algorithms=['HS256']) checks the signature and, where there is one, the expiry.",
        "A token without exp or sub must not pass: options={'require': ['exp', 'sub']}. Whatever is wrong with a "
        "token is a jwt.PyJWTError: 401.",
        "try: claims = jwt.decode(token, secret, algorithms=['HS256'], options={'require': ['exp', 'sub']}); except "
        "jwt.PyJWTError: return 401; return 200 if claims['sub'] == user else 403.",
    ),
)
def status(function: Callable[[str, str, str], int], rng: random.Random) -> None:
    secret, now = secrets.token_urlsafe(48), time.time()  # long enough for HS512 too
    user = rng.choice(("ann", "林", "Zoë"))
    good = {"sub": user, "iat": now, "exp": now + 3_600}

    def signed(claims: dict[str, Any], key: str = secret, algorithm: str = "HS256") -> str:
        return jwt.encode(claims, key, algorithm)

    mine = signed(good)
    head, _, signature = mine.split(".")
    _same(function, mine, secret, user, 200, "The user's own good token")
    other_key = signed(good, secrets.token_urlsafe(32))
    _same(function, other_key, secret, user, 401, "A token signed with another key")
    past = {**good, "iat": now - 7_200, "exp": now - rng.randrange(60, 3_600)}
    _same(function, signed(past), secret, user, 401, "A token that has expired")
    none = f"{_part({'alg': 'none', 'typ': 'JWT'})}.{_part(good)}."
    _same(function, none, secret, user, 401, "An unsigned token, alg none,")
    other_way = signed(good, algorithm="HS512")
    _same(function, other_way, secret, user, 401, "A token signed with HS512, where the door takes HS256 alone,")
    bent = f"{head}.{_part({**good, 'sub': 'bob'})}.{signature}"
    _same(function, bent, secret, "bob", 401, "A token whose user was changed after it was signed")
    _same(function, signed({"sub": user, "iat": now}), secret, user, 401, "A signed token without an expiry")
    _same(function, signed({"iat": now, "exp": now + 60}), secret, user, 401, "A signed token without a user")
    for rubbish in ("", "abc", "a.b.c", mine[:-3], f"{mine}x"):
        _same(function, rubbish, secret, user, 401, f"Rubbish, {rubbish[:12]!r},")
    _same(function, mine, secret, "bob", 403, "A good token of another user")
    _same(function, mine, secret, user.upper(), 403, "A good token of a user whose id differs in case")


def _part(fields: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).rstrip(b"=").decode()


def _same(
    function: Callable[[str, str, str], int], token: str, secret: str, user: str, expected: int, what: str
) -> None:
    try:
        got = function(token, secret, user)
    except NotImplementedError:
        raise
    except Exception as error:
        raise Wrong(f"{what} makes it raise {type(error).__name__}; it should return {expected}.") from None
    if got != expected:
        raise Wrong(f"{what} should get {expected}; it gets {got!r}.")


self_test(
    "12",
    Question(
        "12-q1",
        "A write goes to Postgres and then deletes the entry in Redis. How can an old number be served for an hour?",
        (
            Option("Redis deletes late.", "The write returns only after Redis has answered that the key is gone."),
            Option(
                "A reader asked Postgres before the write, and fills after the deletion.",
                "It fills what it read. Nobody deletes that any more, until it expires.",
                right=True,
            ),
            Option("Postgres shows the old row to readers.", "After the commit, a new question gets the new row."),
        ),
    ),
    Question(
        "12-q2",
        "Why do keys with a version help?",
        (
            Option(
                "A late fill lands under a version that nobody asks for any more.",
                "It stays there until it expires, and is never read.",
                right=True,
            ),
            Option("Redis compares versions and refuses older ones.", "Redis knows of no versions; a key is a key."),
            Option("They make an entry live for a shorter time.", "The TTL is the same. It is just not looked at."),
        ),
    ),
    Question(
        "12-q3",
        "Redis is killed while a write is under way, and starts again with what was on its disk. What may it serve?",
        (
            Option("Everything: it lost nothing.", "It has not heard of what was written meanwhile."),
            Option(
                "Nothing: the cache must be emptied.", "Safe, and for every user slow at once. There is a finer way."
            ),
            Option(
                "What Postgres says is still the version of that user.",
                "One small question a user, and all entries that are still good may stay.",
                right=True,
            ),
        ),
    ),
    Question(
        "12-q4",
        "Somebody copies ann's token out of a log and uses it ten minutes later, for ann's own records. What happens?",
        (
            Option("401: it was used before.", "Nobody keeps a list of tokens that were used."),
            Option(
                "200. Until it expires, whoever holds it is ann.",
                "So it is short-lived, goes over TLS alone, and never into a log.",
                right=True,
            ),
            Option("403: another machine sends it.", "The token names a user, not a machine."),
        ),
    ),
    Question(
        "12-q5",
        "A team has 2,000 users, small records, and Postgres on the same machine. Does it need the cache?",
        model_answer="Hardly for speed: a hit is not much faster than a question by the index, and a miss pays for "
        "both. Measure the hit rate and both times first. Reasons that may remain: a Postgres far away or busy "
        "with other things, many records a user, or too many connections. Each cache brings a way to be wrong.",
    ),
)
