"""Chapter 13: a pseudonym, a forgetting that a running write can't undo, and a hunt through what was left."""

from __future__ import annotations

import gzip
import json
import random
import string
import unicodedata
import zlib
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from tri_memory.lab.exercises.ch13_everywhere import everywhere
from tri_memory.lab.exercises.ch13_quiz import QUESTIONS
from tri_memory.lab.exercises.kit import Wrong, exercise, self_test

Pseudonym = Callable[[str, str, bytes], str]
PlacesWith = Callable[[str, dict[str, bytes]], list[str]]


@exercise(
    "13-1",
    "A pseudonym that withstands counting",
    dots=1,
    minutes=12,
    hints=(
        "A hash alone has no secret, so whoever reads the table can compute it for every number. hmac.digest(key, "
        "message, 'sha256') has one.",
        "User and id both belong in, and it must be clear where the one ends: first salt = hmac.digest(key, "
        "user.encode(), 'sha256'), then hmac.digest(salt, id, 'sha256').",
        "Before that, unicodedata.normalize('NFC', raw.strip()), so that equal ids are equal bytes. The name is .hex() "
        "of the digest.",
    ),
)
def pseudonym(function: Pseudonym, rng: random.Random) -> None:
    key, other = rng.randbytes(32), rng.randbytes(32)
    number = rng.randrange(1_000, 9_999)
    raw = f"BX-{number}"
    name = _name(function, raw, "ann", key)
    if str(number) in name or raw in name:
        raise Wrong(f"The id itself stands in its name: {raw} became {name!r}.")
    if _name(function, raw, "ann", key) != name:
        raise Wrong(f"{raw} of ann has another name at the second call, so nothing that was stored is found again.")
    if _name(function, raw, "ann", other) == name:
        _count_through(function, name, other)
    _judge_key(function, raw, name, key)
    if _name(function, raw, "bob", key) == name:
        raise Wrong(f"{raw} has the same name for ann and for bob: who reads both rows learns that they share a case.")
    _judge_spellings(function, number, key)
    _judge_borders(function, key)
    _judge_length(function, key)


def _name(function: Pseudonym, raw: str, user: str, key: bytes) -> str:
    name = function(raw, user, key)
    if not isinstance(name, str):
        raise Wrong(f"It should return a string, to be stored in place of the id; it returned a {type(name).__name__}.")
    return name


def _count_through(function: Pseudonym, name: str, other: bytes) -> None:
    for each in range(10_000):
        if function(f"BX-{each:04}", "ann", other) == name:
            raise Wrong(
                f"I counted from BX-0000 on, with a key of my own, and after {each + 1:,} tries I had it: "
                f"BX-{each:04}. The name has to depend on the secret key."
            )
    raise Wrong("Two keys give the same name, so the key hides nothing.")


def _judge_key(function: Pseudonym, raw: str, name: str, key: bytes) -> None:
    for place in range(len(key)):
        near = key[:place] + bytes([key[place] ^ 1]) + key[place + 1 :]
        if _name(function, raw, "ann", near) == name:
            raise Wrong(
                f"Two keys that differ in byte {place} alone give the same name, so that byte counts for nothing. Two "
                "secret bytes are 65,536 keys to try: use the whole key."
            )


def _judge_length(function: Pseudonym, key: bytes) -> None:
    names = {_name(function, f"BX-{each:04}", "ann", key) for each in range(2_000)}
    shortest = min(len(name) for name in names)
    if len(names) < 2_000:
        raise Wrong(
            f"A name of {shortest} characters is too short: of 2,000 ids {2_000 - len(names)} have one that another "
            "id has, too. Keep at least 20."
        )
    if shortest < 20:
        raise Wrong(
            f"A name of {shortest} characters is too short: these 2,000 ids have one each, but the fewer characters "
            "there are, the sooner two of many millions meet. Keep at least 20."
        )


def _judge_spellings(function: Pseudonym, number: int, key: bytes) -> None:
    plain = _name(function, f"BX-{number}", "ann", key)
    if _name(function, f"  BX-{number}\n", "ann", key) != plain:
        raise Wrong("Spaces around an id make another name of it: strip them, or a copied id is never found.")
    composed = f"CAFÉ-{number}"
    if _name(function, composed, "ann", key) != _name(function, unicodedata.normalize("NFD", composed), "ann", key):
        raise Wrong(
            f"{composed} has two names: É is one character from one keyboard, and E with an accent from another. "
            "unicodedata.normalize('NFC', …) makes them one."
        )
    for one, next_one, what in (
        (f"BX-{number}", f"bx-{number}", "Upper and lower case are"),
        (f"BX 1{number}", f"BX1 {number}", "Spaces inside an id are"),
    ):
        if _name(function, one, "ann", key) == _name(function, next_one, "ann", key):
            raise Wrong(f"{one!r} and {next_one!r} have the same name. {what} part of the id, which is another then.")


def _judge_borders(function: Pseudonym, key: bytes) -> None:
    for between in ("", *string.punctuation, " ", "\t", "::", "--", "||", ", ", ": ", " | "):
        user, raw, next_user, next_raw = f"ann{between}1", "23", "ann", f"1{between}23"
        if _name(function, raw, user, key) == _name(function, next_raw, next_user, key):
            raise Wrong(
                f"User {user!r} with id {raw!r} and user {next_user!r} with id {next_raw!r} have the same name: put "
                "together they are the same text. Use the user for a salt, or hash each by itself first."
            )


@exercise(
    "13-2",
    "Forget, and catch the running write",
    dots=3,
    minutes=20,
    hints=(
        "Deleting is not enough: a write that has begun lands behind it. `async with closed(tombstones, user):` "
        "refuses new writes, and `await drained(tombstones, user, 10)` waits for those that run.",
        "What the running write brought must go as well, so delete (again) after `drained`, and all of it inside "
        "`closed`.",
        "In this order: shut the door, wait, then go through `stores` and keep what each `forget` returns. If you "
        "delete before the wait as well, add the two counts.",
    ),
)
def forget_all(function: Callable[..., Awaitable[dict[str, int]]], rng: random.Random) -> None:
    everywhere(function, rng)


@exercise(
    "13-3",
    "Hunt for what was left",
    dots=2,
    minutes=18,
    hints=(
        "Search bytes, in each form in which a program writes a text: canary.encode() is one.",
        "json.dumps(canary)[1:-1] is how JSON writes Chinese where nobody said ensure_ascii=False, and quote(canary, "
        "safe='') from urllib.parse how it stands in a key or an address.",
        "A file that begins with b'\\x1f\\x8b' is packed: gzip.decompress(content) first. Then any(form in content "
        "for form in forms), each form encoded.",
    ),
)
def places_with(function: PlacesWith, rng: random.Random) -> None:
    for canary in (f"BX-{rng.randrange(10**5, 10**6)}", f"我对花生过敏{rng.randrange(10**5)}", "ann müller / 林晓蓓"):
        for form in FORMS:
            _judge_form(function, canary, form, rng)
    _judge_nothing(function, rng)


def _in_json(text: str) -> bytes:
    return json.dumps({"level": "info", "said": f"… {text}"}).encode()


def _packed(text: str) -> bytes:
    return gzip.compress(f"GET /\nsaid {text}\n".encode() * 3)


def _json_packed(text: str) -> bytes:
    return gzip.compress(_in_json(text))


IN_JSON = "JSON writes what is not ASCII as \\u…, and it is a part of a longer text there, without quotes of its own"
FORMS: dict[str, tuple[Callable[[str], bytes], str]] = {
    "row": (lambda text: f"42\t{text}\t2026-01-05\n".encode(), "it stands there as it is, in UTF-8"),
    "trace.jsonl": (_in_json, IN_JSON),
    "keys": (
        lambda text: f"session:{quote(text, safe='')}/s1".encode(),
        "in a key it is percent-encoded, and a / in it is %2F, since the key has slashes of its own",
    ),
    "app.log.1.gz": (_packed, "the file is packed with gzip, which its first bytes say; its name does not end in .gz"),
    "trace.jsonl.1.gz": (_json_packed, f"the file is packed with gzip, and inside {IN_JSON}"),
}


def _found(function: PlacesWith, canary: str, files: dict[str, bytes]) -> list[str]:
    try:
        return function(canary, files)
    except UnicodeDecodeError as error:
        raise Wrong(
            f"Not every file is text: {error.object[:8]!r} … can't be decoded as {error.encoding}. Search the bytes "
            "themselves, with each form encoded."
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Wrong(
            f"A file that is not packed was unpacked ({error}). What is packed begins with b'\\x1f\\x8b'; a name with "
            ".gz in it says nothing."
        ) from None


def _judge_form(function: PlacesWith, canary: str, form: str, rng: random.Random) -> None:
    write, how = FORMS[form]
    near = canary[:-1] + ("7" if canary[-1] != "7" else "8")
    files = {f"{name}-{rng.randrange(100)}": other(near) for name, (other, _) in FORMS.items()}
    files["torn.gz.part"] = b"\x1f" + rng.randbytes(40)
    files["picture"] = b"\x89PNG\xff\xfe" + rng.randbytes(60)
    left = f"{form} of backup"
    files[left] = write(canary)
    names = list(files)
    rng.shuffle(names)
    got = _found(function, canary, {name: files[name] for name in names})
    if not isinstance(got, list) or not all(isinstance(one, str) for one in got):
        raise Wrong(f"It should return a list of names, such as ['app.log']; it returned {str(got)[:80]}.")
    if left not in got:
        raise Wrong(f"{canary!r} is in {left!r}, and the hunt missed it: {how}.")
    if others := sorted(set(got) - {left}):
        raise Wrong(f"{others[0]!r} holds {near!r} at most, and the hunt for {canary!r} names it.")
    if len(got) > 1:
        raise Wrong(f"Each place once: {left!r} comes {len(got)} times.")


def _judge_nothing(function: PlacesWith, rng: random.Random) -> None:
    if found := _found(function, "BX-770001", {"empty": b"", "noise": rng.randbytes(200)}):
        raise Wrong(f"Nothing was left, and the hunt names {found[0]!r}.")
    for blank in ("", " "):
        try:
            got = function(blank, {"a": b"x y"})
        except ValueError:
            continue
        raise Wrong(
            f"A hunt for {blank!r} came back with {got}. A blank text is no canary: raise a ValueError, or a forgotten "
            "argument looks like a clean house."
        )


self_test("13", *QUESTIONS)
