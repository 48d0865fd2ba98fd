from __future__ import annotations

import base64
import hashlib
import hmac
import json
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tri_memory import ManualClock
from tri_memory.web.token import (
    LONGEST_TOKEN,
    Claims,
    MemoryTokens,
    TokenExpired,
    TokenForged,
    TokenMalformed,
    TokenNotYetValid,
    TokenRefused,
)

SECRET = "s3cret-" * 10  # long enough for every HMAC
OTHER = "0ther-" * 6
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW = START.timestamp()


def tokens(**options: Any) -> MemoryTokens:
    return MemoryTokens(SECRET, **{"clock": ManualClock(START), **options})


def signed(claims: Any, secret: str = SECRET, header: Any = None) -> str:
    """A token made by hand, of whatever header and claims."""

    def part(content: bytes) -> str:
        return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

    texts = [json.dumps({"alg": "HS256", "typ": "JWT"} if header is None else header), json.dumps(claims)]
    head = ".".join(part(text.encode()) for text in texts)
    return f"{head}.{part(hmac.digest(secret.encode(), head.encode(), hashlib.sha256))}"


def claims(**changed: Any) -> dict[str, Any]:
    """Those of a good token; a claim set to None is left out."""
    all_of_them = {"sub": "ann", "iat": NOW, "exp": NOW + 60, **changed}
    return {name: value for name, value in all_of_them.items() if value is not None}


@pytest.mark.parametrize("user_id", ["ann", "安", "a b", "../bob", "42", "ann\n", "o'" * 500])
def test_a_token_names_the_user_it_was_issued_for(user_id: str) -> None:
    made = tokens()
    assert made.read(made.issue(user_id)) == Claims(user_id, START, START + timedelta(hours=1))


def test_a_token_is_what_any_other_jwt_library_reads() -> None:
    read = jwt.decode(tokens().issue("ann"), SECRET, ["HS256"], options={"verify_exp": False, "verify_iat": False})
    assert read == {"sub": "ann", "iat": NOW, "exp": NOW + 3_600}
    assert tokens().read(signed(claims())).user_id == "ann"


@pytest.mark.parametrize("user_id", ["", " ", None, 7, "a\0b", "\ud83d"])
def test_no_token_is_issued_for_nobody(user_id: Any) -> None:
    with pytest.raises(ValueError, match="user_id"):
        tokens().issue(user_id)


def test_an_id_too_long_for_a_header_is_refused_when_the_token_is_made_not_when_it_is_used() -> None:
    with pytest.raises(ValueError, match="too long"):
        tokens().issue("a" * LONGEST_TOKEN)
    made = tokens()
    assert made.read(made.issue("a" * (LONGEST_TOKEN // 2))).user_id == "a" * (LONGEST_TOKEN // 2)


def test_a_token_is_good_until_the_last_moment_of_its_life_and_not_after() -> None:
    clock = ManualClock(START)
    made = tokens(clock=clock, lifetime_s=90)
    token = made.issue("ann")
    clock.advance(seconds=90, microseconds=-1)
    assert made.read(token).user_id == "ann"
    clock.advance(microseconds=1)
    with pytest.raises(TokenExpired, match="expired"):
        made.read(token)


def test_a_clock_that_runs_a_little_ahead_is_forgiven_and_a_lot_is_not() -> None:
    made = tokens()
    assert made.read(signed(claims(iat=NOW + 9))).user_id == "ann"
    for wrong in (claims(iat=NOW + 11), claims(nbf=NOW + 11), claims(iat=NOW + 11, nbf=NOW - 5)):
        with pytest.raises(TokenNotYetValid):
            made.read(signed(wrong))


@pytest.mark.parametrize("secret", ["", " " * 40, "x" * 31, None, b"x" * 40, "密" * 10])
def test_a_secret_that_is_short_is_refused_with_the_command_that_makes_one(secret: Any) -> None:
    with pytest.raises(ValueError, match=r"secrets\.token_urlsafe\(32\)") as refused:
        MemoryTokens(secret)
    if secret and secret != " " * 40:
        assert str(secret) not in str(refused.value)


@pytest.mark.parametrize("secret", ["x" * 32, "密" * 11])
def test_the_length_of_a_secret_counts_bytes(secret: str) -> None:
    made = MemoryTokens(secret)
    assert made.read(made.issue("ann")).user_id == "ann"


def test_a_public_key_is_no_secret() -> None:
    pem = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----"
    with pytest.raises(ValueError, match="public key"):
        MemoryTokens(pem)


@pytest.mark.parametrize("env", [{}, {"MEMORY_TOKEN_SECRET": ""}, {"MEMORY_TOKEN_SECRET": " \n"}])
def test_a_missing_secret_stops_the_start_up(env: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"MEMORY_TOKEN_SECRET is not set; make .*token_urlsafe\(32\)"):
        MemoryTokens.from_env(env)


def test_the_command_in_the_error_makes_a_secret_that_is_taken() -> None:
    code = "import secrets; print(secrets.token_urlsafe(32))"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    found = MemoryTokens.from_env({"MEMORY_TOKEN_SECRET": made}, clock=ManualClock(START))
    assert found.read(found.issue("ann")).user_id == "ann"


def test_after_a_new_secret_old_tokens_are_read_for_as_long_as_the_old_secret_is_given() -> None:
    old = tokens().issue("ann")
    env = {"MEMORY_TOKEN_SECRET": OTHER, "MEMORY_TOKEN_PREVIOUS_SECRET": SECRET}
    changed = MemoryTokens.from_env(env, clock=ManualClock(START))
    assert changed.read(old).user_id == "ann"
    with pytest.raises(TokenForged):
        tokens().read(changed.issue("ann"))  # the new one signs
    with pytest.raises(TokenForged):
        MemoryTokens(OTHER, clock=ManualClock(START)).read(old)
    with pytest.raises(ValueError, match="at least 32 bytes"):
        MemoryTokens.from_env({**env, "MEMORY_TOKEN_PREVIOUS_SECRET": "short"})
    with pytest.raises(ValueError, match="not one string"):
        MemoryTokens(OTHER, previous=SECRET)


def with_key_of(algorithm: str) -> str:
    """Signed with our own secret, by another algorithm."""
    return jwt.encode(claims(), SECRET, algorithm=algorithm)


FORGED = {
    "another secret": lambda: signed(claims(), OTHER),
    "alg none, no signature": lambda: jwt.encode(claims(), None, algorithm="none"),
    "alg none, a signature": lambda: signed(claims(), header={"alg": "none"}),
    "alg nOnE": lambda: signed(claims(), header={"alg": "nOnE"}),
    "alg hs256": lambda: signed(claims(), header={"alg": "hs256"}),
    "alg HS384": lambda: with_key_of("HS384"),
    "alg HS512": lambda: with_key_of("HS512"),
    "alg RS256": lambda: signed(claims(), header={"alg": "RS256"}),
    "no alg": lambda: signed(claims(), header={"typ": "JWT"}),
    "alg a list": lambda: signed(claims(), header={"alg": ["HS256"]}),
    "no signature": lambda: signed(claims()).rpartition(".")[0] + ".",
    "the claims of another": lambda: ".".join(
        [signed(claims()).split(".")[0], signed(claims(sub="bob")).split(".")[1], signed(claims()).split(".")[2]]
    ),
}


@pytest.mark.parametrize("make", FORGED.values(), ids=FORGED)
def test_a_forged_token_is_told_from_a_good_one(make: Any) -> None:
    with pytest.raises(TokenForged):
        tokens().read(make())


MALFORMED = {
    "no user": claims(sub=None),
    "blank user": claims(sub="  "),
    "a number as user": claims(sub=7),
    "a user in a list": claims(sub=["ann"]),
    "a user with NUL": claims(sub="a\0"),
    "half an emoji": claims(sub="\ud83d"),
    "no issued-at": claims(iat=None),
    "no expiry": claims(exp=None),
    "an expiry of true": claims(exp=True),
    "an expiry in words": claims(exp="tomorrow"),
    "NaN": claims(exp=float("nan")),
    "infinity": claims(exp=float("inf")),
    "after the year 9999": claims(exp=1e15),
    "not before a word": claims(nbf="later"),
    "a list": ["ann"],
    "a string": "ann",
}


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
def test_claims_that_lack_a_user_or_a_time_are_refused_though_the_signature_is_ours(content: Any) -> None:
    with pytest.raises(TokenMalformed):
        tokens().read(signed(content))


@pytest.mark.parametrize(
    "token",
    [
        "",
        "ann",
        "a.b",
        "..",
        "a.b.c.d",
        signed(claims()) + "\n",
        " " + signed(claims()),
        signed(claims()) + "=",
        signed(claims()) + ", " + signed(claims()),
        "Bearer " + signed(claims()),
        signed(claims()).replace(".", "。"),
        signed(claims(), header=["HS256"]),
        signed(claims(), header={"alg": "HS256", "crit": ["exp"]}),
        signed(claims(), header={"alg": "HS256", "b64": False}),
        "W1tb" * 1_500 + ".e30.e30",  # a header of 4,500 opening brackets
        signed(claims(padding="x" * LONGEST_TOKEN)),
        None,
        b"a.b.c",
    ],
)
def test_what_is_not_shaped_like_a_token_is_refused(token: Any) -> None:
    with pytest.raises(TokenMalformed):
        tokens().read(token)


@given(st.text() | st.from_regex(r"[\w-]{0,80}\.[\w-]{0,80}\.[\w-]{0,80}", fullmatch=True))
def test_no_text_is_a_token_or_an_error_other_than_a_refusal(text: str) -> None:
    with pytest.raises(TokenRefused):
        tokens().read(text)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_token_with_one_letter_changed_never_names_another_user(place: int, shift: int) -> None:
    made = tokens()
    token = made.issue("ann")
    place %= len(token)
    changed = token[:place] + chr((ord(token[place]) + shift) % 256) + token[place + 1 :]
    with suppress(TokenRefused):
        assert made.read(changed).user_id == "ann"  # the last letter of the signature has bits to spare


def test_neither_the_secret_nor_the_token_stands_in_an_error_or_a_repr() -> None:
    made = tokens(previous=["th1rd-" * 6])
    for bad in [*(make() for make in FORGED.values()), *(signed(each) for each in MALFORMED.values())]:
        with pytest.raises(TokenRefused) as refused:
            made.read(bad)
        chain, error = "", refused.value
        while error is not None:
            chain += f"{error!r} "
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        assert not any(text in chain for text in (SECRET, "th1rd", bad, bad.split(".")[1]))
    assert repr(made) == "MemoryTokens(lifetime_s=3600, secrets=2)"


@pytest.mark.parametrize("lifetime", [0, -1, float("nan"), float("inf"), True, "1h"])
def test_a_life_time_is_a_number_of_seconds_above_0(lifetime: Any) -> None:
    with pytest.raises(ValueError, match="lifetime_s"):
        tokens(lifetime_s=lifetime)


def test_half_over_is_after_half_of_that_tokens_own_life() -> None:
    clock = ManualClock(START)
    made = tokens(clock=clock)
    read = made.read(made.issue("ann"))
    clock.advance(minutes=30)
    assert not made.half_over(read)
    clock.advance(seconds=1)
    assert made.half_over(read)
