"""The memory token: whose memory a request may touch, signed so that nobody can say somebody else.

A JSON Web Token (RFC 7519), HMAC-SHA-256, with the claims `sub` (the user id), `iat` and `exp` (seconds since 1970).
Its content can be read by whoever holds it; it is signed, not encrypted. What it does not do: end before it expires.
A new secret ends all tokens at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

import jwt

from tri_memory.clock import Clock, system_clock
from tri_memory.contracts import as_utc, require_seconds, require_text

ALGORITHM = "HS256"
SHORTEST_SECRET = 32  # bytes: as many as the hash has (RFC 7518, 3.2)
LONGEST_TOKEN = 8_192  # characters; what most servers take of a header
CLOCKS_APART_S = 10  # how far the clock of the machine that issued a token may run ahead

HOW_TO_MAKE_A_SECRET = 'python -c "import secrets; print(secrets.token_urlsafe(32))"'
_SHAPE = re.compile(r"[\w-]+\.[\w-]+\.[\w-]*", re.ASCII)


class TokenRefused(Exception):
    """The token is not to be trusted. `error` is the kind, for a program; the message, which quotes neither the token
    nor the secret, is for a person."""

    error: ClassVar[str] = "refused"


class TokenMalformed(TokenRefused):
    """Nothing like a token, or one without a user id or a time that it needs."""

    error = "malformed"


class TokenForged(TokenRefused):
    """Signed with another secret, in another way, or not at all."""

    error = "forged"


class TokenExpired(TokenRefused):
    """It was good once."""

    error = "expired"


class TokenNotYetValid(TokenRefused):
    """It says that it was issued in the future, or is to be used only later."""

    error = "not_yet_valid"


@dataclass(frozen=True, slots=True)
class Claims:
    """What a good token says; both times are aware UTC."""

    user_id: str
    issued_at: datetime
    expires_at: datetime


class MemoryTokens:
    """Issues tokens that are good for `lifetime_s` seconds, and reads them.

    `secret` signs, and should sign nothing else; a token signed with one of `previous` is still read, so that a secret
    can be changed without logging anybody out. Raises ValueError for a secret of fewer than 32 bytes.
    """

    def __init__(
        self, secret: str, *, lifetime_s: float = 3_600, clock: Clock = system_clock, previous: Sequence[str] = ()
    ) -> None:
        if isinstance(previous, str):
            raise ValueError("previous must be a list of secrets, not one string")
        self._secrets = [_checked(secret), *map(_checked, previous)]
        self.lifetime_s = require_seconds("lifetime_s", lifetime_s)
        self._clock = clock

    @classmethod
    def from_env(
        cls, env: Mapping[str, str] | None = None, *, lifetime_s: float = 3_600, clock: Clock = system_clock
    ) -> MemoryTokens:
        """With the secret in `MEMORY_TOKEN_SECRET` and, after a change, the one before in
        `MEMORY_TOKEN_PREVIOUS_SECRET`. ValueError, which says how to make one, where there is no secret."""
        given = os.environ if env is None else env
        secret, before = (given.get(f"MEMORY_TOKEN_{name}", "").strip() for name in ("SECRET", "PREVIOUS_SECRET"))
        if not secret:
            raise ValueError(f"MEMORY_TOKEN_SECRET is not set; make a secret with {HOW_TO_MAKE_A_SECRET}")
        return cls(secret, lifetime_s=lifetime_s, clock=clock, previous=[before] if before else [])

    def issue(self, user_id: str) -> str:
        """A token for this user, from now on. ValueError for a blank id, and for one too long to go into a header."""
        require_text("user_id", user_id)
        now = self._now()
        token = jwt.encode({"sub": user_id, "iat": now, "exp": now + self.lifetime_s}, self._secrets[0], ALGORITHM)
        if len(token) > LONGEST_TOKEN:
            raise ValueError(f"user_id is too long for a token: {len(user_id):,} characters")
        return token

    def read(self, token: str) -> Claims:
        """Who it is for, and from when to when. Raises TokenRefused, as one of its kinds."""
        if not isinstance(token, str) or len(token) > LONGEST_TOKEN or not _SHAPE.fullmatch(token):
            raise TokenMalformed(
                "this is not a memory token: three parts of letters, digits, - and _, with dots between"
            )
        claims = self._signed_claims(token)
        user_id, issued_at, expires_at = claims.get("sub"), _time(claims, "iat"), _time(claims, "exp")
        not_before = _time(claims, "nbf") if "nbf" in claims else issued_at
        try:
            require_text("user_id", user_id)
        except ValueError:
            raise TokenMalformed("the token names no user") from None
        now = self._now()
        if max(not_before, issued_at) > now + CLOCKS_APART_S:
            raise TokenNotYetValid("the token is not valid yet; check the clock of the machine that issued it")
        if now >= expires_at:
            raise TokenExpired("the token has expired; get a new one")
        return Claims(str(user_id), _moment(issued_at), _moment(expires_at))

    def half_over(self, claims: Claims) -> bool:
        """Whether less than half of the token's life is left."""
        return self._clock() > claims.issued_at + (claims.expires_at - claims.issued_at) / 2

    def __repr__(self) -> str:
        return f"MemoryTokens(lifetime_s={self.lifetime_s:g}, secrets={len(self._secrets)})"

    def _signed_claims(self, token: str) -> dict[str, Any]:
        # The times are read below, against our own clock; here only the signature is asked about.
        options: Any = {f"verify_{claim}": False for claim in ("exp", "iat", "nbf", "aud", "iss", "sub", "jti")}
        for secret in self._secrets:
            try:
                return jwt.decode(token, secret, algorithms=[ALGORITHM], options=options)
            except jwt.InvalidSignatureError:
                continue
            except jwt.InvalidAlgorithmError:
                raise TokenForged(f"the token is not signed with {ALGORITHM}") from None
            except Exception:  # whatever else a parser makes of a stranger's bytes
                raise TokenMalformed("this is not a memory token: its header or its claims can't be read") from None
        raise TokenForged("the token was not signed here, or was changed since")

    def _now(self) -> float:
        return as_utc("clock()", self._clock()).timestamp()


def _checked(secret: Any) -> str:
    size = len(secret.encode("utf-8", "surrogatepass")) if isinstance(secret, str) else 0
    if size < SHORTEST_SECRET or secret.isspace():
        raise ValueError(
            f"a secret for memory tokens is a string of at least {SHORTEST_SECRET} bytes; this one has {size}. "
            f"Make one with {HOW_TO_MAKE_A_SECRET}"
        )
    try:
        jwt.encode({}, secret, ALGORITHM)
    except (jwt.InvalidKeyError, UnicodeEncodeError):
        message = f"this can't be a secret (a public key, or half an emoji); make one with {HOW_TO_MAKE_A_SECRET}"
        raise ValueError(message) from None
    return str(secret)


def _time(claims: Mapping[str, Any], name: str) -> float:
    """Seconds since 1970, within what a datetime can hold."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenMalformed(f"the token has no time {name!r}")
    if not 0 <= value <= 253_402_300_799:  # NaN is not either
        raise TokenMalformed(f"the token has a time {name!r} outside the years 1970 to 9999")
    return float(value)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
