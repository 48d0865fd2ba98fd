"""A stable name in place of a sensitive id: a keyed hash, with a salt for each user.

HMAC-SHA-256 (RFC 2104), keyed with a salt that is itself an HMAC of the user's id. So the same id of the same user has
one name, of another user another, and who has the names but not the key learns nothing, even by trying every possible
id. Who has the key can try ids: keep it apart from the stores. What it does not do: hide how often an id occurs.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from tri_memory.contracts import require_text

VARIABLE = "MEMORY_PSEUDONYM_KEY"
PREVIOUS = "MEMORY_PSEUDONYM_PREVIOUS"
LEAST_KEY = 32  # bytes, as many as SHA-256 gives
LEAST_DIFFERENT = 8  # characters of a key that differ; 32 times the letter a is no key
HOW = "make one with: python -c 'import secrets; print(secrets.token_hex(32))'"
PATTERN = re.compile(r"\b(?:id|user)_[a-z2-7]{26}\b")


class Span(Protocol):
    """What stands in a text, as `entity.extract` finds it: `text[start:end]`."""

    @property
    def kind(self) -> str: ...

    @property
    def value(self) -> str: ...

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


class Pseudonyms:
    """Names for ids under a secret `key` of at least 32 bytes; `previous` are the keys before it, newest first.

    Safe for several threads. The `repr` shows no key. Raises ValueError for a key that is too short or too plain.

    >>> names = Pseudonyms("0123456789abcdef0123456789abcdef")
    >>> names.of("MC-3061", user_id="ann") == names.of("MC-3061", user_id="ann")
    True
    >>> names.of("MC-3061", user_id="ann") == names.of("MC-3061", user_id="bob")
    False
    """

    def __init__(self, key: str | bytes, *, previous: Iterable[str | bytes] = ()) -> None:
        if isinstance(previous, str | bytes):
            raise ValueError("previous must be several keys; write [key]")
        self._keys = [_checked("key", key), *(_checked("a previous key", each) for each in previous)]

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Pseudonyms:
        """With the key that MEMORY_PSEUDONYM_KEY holds, and the old ones in MEMORY_PSEUDONYM_PREVIOUS, divided by
        commas, newest first. ValueError where it is missing or too short, saying how to make one."""
        found = os.environ if env is None else env
        key = found.get(VARIABLE, "").strip()
        if not key:
            raise ValueError(f"{VARIABLE} is not set, and ids can't be hidden without a key; {HOW}")
        previous = [each.strip() for each in found.get(PREVIOUS, "").split(",") if each.strip()]
        try:
            return cls(key, previous=previous)
        except ValueError as error:
            raise ValueError(f"{VARIABLE} or {PREVIOUS}: {error}") from None

    def of(self, raw: str, *, user_id: str) -> str:
        """The name of one id of this user: `id_` and 26 characters, 128 bits. Spaces around the id, and how its accents
        are composed, make no difference; capitals do. ValueError for a blank id or user."""
        return _name(self._keys[0], raw, user_id)

    def of_user(self, user_id: str) -> str:
        """The name of the user: `user_` and 26 characters."""
        return _user_name(self._keys[0], user_id)

    def candidates(self, raw: str, *, user_id: str) -> list[str]:
        """Every name that this id may be stored under: today's first, then those of the previous keys."""
        return [_name(key, raw, user_id) for key in self._keys]

    def candidates_of_user(self, user_id: str) -> list[str]:
        """Every name that this user may be known by, today's first."""
        return [_user_name(key, user_id) for key in self._keys]

    def mask(self, text: str, entities: Iterable[Span], *, user_id: str) -> str:
        """`text` with the name of each entity in its place; preferences, which are no ids, stay as they are.

        The entity's `value` is what is named, so two ways to write an id give one name. Where entities overlap, all
        that they cover goes. ValueError for a span that is not in the text.
        """
        spans = sorted((each for each in entities if each.kind != "PREFERENCE"), key=lambda each: each.start)
        parts, done = [], 0
        for each in spans:
            if not 0 <= each.start < each.end <= len(text):
                raise ValueError(f"an entity spans {each.start} to {each.end}, and the text has {len(text)} characters")
            if each.start >= done:
                parts += [text[done : each.start], self.of(each.value, user_id=user_id)]
            done = max(done, each.end)
        return "".join([*parts, text[done:]])

    def mask_ids(self, text: str, extract: Callable[[str], Iterable[Span]] | None = None, *, user_id: str) -> str:
        """`mask` with what `extract` finds, by default `entity.extract.extract`."""
        if extract is None:
            from tri_memory.entity.extract import extract as by_rule

            extract = by_rule
        return self.mask(text, extract(text), user_id=user_id)

    def __repr__(self) -> str:
        return f"Pseudonyms(a key, {len(self._keys) - 1} previous)"


def _checked(name: str, key: str | bytes) -> bytes:
    if not isinstance(key, str | bytes):
        raise ValueError(f"{name} must be a string or bytes; got a {type(key).__name__}")
    as_bytes = key.encode() if isinstance(key, str) else key
    if len(as_bytes) < LEAST_KEY:
        raise ValueError(f"{name} has {len(as_bytes)} bytes, and fewer than {LEAST_KEY} can be guessed; {HOW}")
    if len(set(as_bytes)) < LEAST_DIFFERENT:
        raise ValueError(f"{name} has only {len(set(as_bytes))} different characters, which can be guessed; {HOW}")
    return as_bytes


def _name(key: bytes, raw: str, user_id: str) -> str:
    tidy = unicodedata.normalize("NFC", require_text("the id", raw).strip())
    return f"id_{_digest(_salt(key, user_id), b'id', tidy)}"


def _user_name(key: bytes, user_id: str) -> str:
    return f"user_{_digest(_salt(key, user_id), b'user', '')}"


def _salt(key: bytes, user_id: str) -> bytes:
    return hmac.digest(key, b"salt\0" + require_text("user_id", user_id).encode(), hashlib.sha256)


def _digest(salt: bytes, what: bytes, text: str) -> str:
    whole = hmac.digest(salt, what + b"\0" + text.encode(), hashlib.sha256)
    return base64.b32encode(whole[:16]).decode().rstrip("=").lower()
