"""Ids that stand in no store: stable, of one user, and not to be undone."""

from __future__ import annotations

import io
import json
import logging
from urllib.parse import quote

import pytest

from tri_memory.entity.extract import extract
from tri_memory.privacy.log_filter import MaskIds
from tri_memory.privacy.pseudonyms import PATTERN, Pseudonyms

KEY, OLD = "k3y-0123456789-abcdefghijklmnop-XYZ", "0ld-9876543210-qrstuvwxyzabcdef-ABC"
TEXT = "Order #bx 2207 came without the pump, serial KW-448120. I prefer email."


@pytest.fixture
def names() -> Pseudonyms:
    return Pseudonyms(KEY, previous=[OLD])


def test_the_same_id_has_one_name_for_a_user_and_another_for_another_user_and_under_another_key(names):
    of_ann = names.of("MC-3061", user_id="ann")

    assert PATTERN.fullmatch(of_ann)
    assert of_ann == Pseudonyms(KEY).of(" MC-3061 ", user_id="ann")
    others = {names.of("MC-3062", user_id="ann"), names.of("MC-3061", user_id="bob")}
    others |= {Pseudonyms(OLD).of("MC-3061", user_id="ann"), names.of_user("ann"), names.of("ann", user_id="ann")}
    assert len(others - {of_ann}) == 5


def test_ids_and_users_that_join_to_the_same_text_have_different_names(names):
    assert names.of("b", user_id="a\tc") != names.of("c\tb", user_id="a")
    assert len({names.of("ab", user_id="c"), names.of("b", user_id="ac"), names.of("b", user_id="ca")}) == 3


def test_the_name_is_the_hmac_that_the_docstring_says(names):
    import base64
    import hashlib
    import hmac

    salt = hmac.new(KEY.encode(), b"salt\0ann", hashlib.sha256).digest()
    whole = hmac.new(salt, b"id\0MC-3061", hashlib.sha256).digest()
    assert names.of("MC-3061", user_id="ann") == "id_" + base64.b32encode(whole[:16]).decode().rstrip("=").lower()


def test_composed_and_decomposed_accents_are_one_id_and_capitals_are_not(names):
    assert names.of("caf\u00e9-1", user_id="ann") == names.of("cafe\u0301-1", user_id="ann")
    assert names.of("MC-1", user_id="ann") != names.of("mc-1", user_id="ann")


def test_after_a_rotation_what_was_stored_under_the_old_key_is_still_found(names):
    stored = Pseudonyms(OLD).of("MC-3061", user_id="ann")

    assert names.candidates("MC-3061", user_id="ann") == [names.of("MC-3061", user_id="ann"), stored]
    assert names.candidates_of_user("ann") == [names.of_user("ann"), Pseudonyms(OLD).of_user("ann")]


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({}, ["MEMORY_PSEUDONYM_KEY is not set", "secrets.token_hex(32)"]),
        ({"MEMORY_PSEUDONYM_KEY": "  "}, ["is not set", "secrets.token_hex(32)"]),
        ({"MEMORY_PSEUDONYM_KEY": "short-secret"}, ["12 bytes", "secrets.token_hex(32)"]),
        ({"MEMORY_PSEUDONYM_KEY": "ab" * 40}, ["2 different", "secrets.token_hex(32)"]),
        ({"MEMORY_PSEUDONYM_KEY": KEY, "MEMORY_PSEUDONYM_PREVIOUS": "short-secret"}, ["MEMORY_PSEUDONYM_PREVIOUS"]),
    ],
)
def test_a_missing_or_weak_key_is_an_error_that_says_how_to_make_one_and_shows_none(env, words):
    with pytest.raises(ValueError, match="MEMORY_PSEUDONYM_KEY") as error:
        Pseudonyms.from_env(env)

    assert all(word in str(error.value) for word in words)
    assert "short-secret" not in str(error.value)


def test_the_environment_gives_the_key_and_the_old_ones_and_the_repr_gives_neither(names):
    found = Pseudonyms.from_env({"MEMORY_PSEUDONYM_KEY": f" {KEY}\n", "MEMORY_PSEUDONYM_PREVIOUS": f"{OLD}, "})

    assert found.candidates("x", user_id="ann") == names.candidates("x", user_id="ann")
    assert KEY not in repr(found)
    assert OLD not in repr(found)


@pytest.mark.parametrize(
    ("raw", "user"), [("", "ann"), (" ", "ann"), ("x", ""), ("x", " "), (None, "ann"), ("x", None)]
)
def test_a_blank_id_or_user_is_refused(names, raw, user):
    with pytest.raises(ValueError, match="must be a non-blank string"):
        names.of(raw, user_id=user)


def test_masking_replaces_ids_whichever_way_they_are_written_and_leaves_preferences(names):
    masked = names.mask(TEXT, extract(TEXT), user_id="ann")

    assert names.of("BX-2207", user_id="ann") in masked
    assert names.of("KW-448120", user_id="ann") in masked
    assert "2207" not in masked
    assert "448120" not in masked
    assert masked.endswith("I prefer email.")
    assert names.mask_ids(masked, user_id="ann") == masked  # a name is no id


def test_many_masked_texts_hold_no_name_that_is_taken_for_an_id_again(names):
    texts = [f"My order number is BX-{n}, case MC-{n}, serial KW-{n}." for n in range(1_000, 1_300)]
    masked = [names.mask_ids(text, user_id="ann") for text in texts]

    assert [names.mask_ids(text, user_id="ann") for text in masked] == masked
    assert not any("BX-" in text or "MC-" in text or "KW-" in text for text in masked)


def test_overlapping_spans_leave_nothing_of_either(names):
    class Span:
        def __init__(self, start, end):
            self.kind, self.value, self.start, self.end = "CASE_ID", "v", start, end

    assert names.mask("ab12345cd", [Span(4, 7), Span(2, 6)], user_id="ann") == f"ab{names.of('v', user_id='ann')}cd"
    with pytest.raises(ValueError, match="spans 2 to 60"):
        names.mask("ab12345cd", [Span(2, 60)], user_id="ann")


# Logs


@pytest.fixture
def log(names):
    """A child's logger, whose records come to the root's handler with the filter, and what that wrote."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s %(extra)s", defaults={"extra": ""}))
    masking = MaskIds(names, users=["ann", "李", "a/b"])
    handler.addFilter(masking)
    root = logging.getLogger("privacy_test")
    root.propagate = False
    root.addHandler(handler)
    yield logging.getLogger("privacy_test.child"), written, masking
    root.removeHandler(handler)


def fail(text: str) -> None:
    raise KeyError(text)


def test_ids_in_a_message_its_arguments_what_is_attached_and_an_exception_are_masked(log, names):
    logger, written, _ = log
    try:
        try:
            fail("case MC-3061 of ann")
        except KeyError as inner:
            raise RuntimeError("case MC-3062 of 李") from inner
    except RuntimeError:
        extra = {"extra": {"case MC-3063": ["MC-3064", ("ann", 7, None)], "key": RuntimeError("MC-3065")}}
        logger.exception("user %s, case %s of %d", "ann", "MC-3066", 3, extra=extra, stack_info=True)

    text = written.getvalue()
    assert not any(f"MC-306{digit}" in text for digit in "123456")
    assert "ann" not in text.replace("channel", "")
    assert "李" not in text
    assert names.of_user("ann") in text
    assert names.of("MC-3066", user_id="log") in text
    assert "RuntimeError: case id_" in text
    assert "of 3" in text


@pytest.mark.parametrize("user", ["a/b", "李"])
def test_a_users_id_is_masked_in_a_sessions_key_and_in_json(log, names, user):
    logger, written, _ = log
    logger.warning("%s/2026-01-01 and %s", quote(user, safe=""), json.dumps({"user": user}))

    assert written.getvalue().count(names.of_user(user)) == 2
    assert quote(user, safe="") not in written.getvalue()


def test_a_users_id_is_not_found_inside_another_word(log):
    logger, written, _ = log
    logger.warning("planned by joann and 小李")

    assert "planned by joann" in written.getvalue()
    assert "李" not in written.getvalue()  # a Chinese name has no edges, and hiding too much is the safer error


def test_a_user_who_comes_later_is_masked_once_known(log):
    logger, written, masking = log
    masking.know("bob.k")
    logger.warning("bob.k came")

    assert "bob" not in written.getvalue()


def test_a_message_that_cant_be_formatted_costs_nobody_an_answer(log):
    logger, written, _ = log
    logger.warning("case %d of %s", "MC-3061")

    assert "could not be formatted" in written.getvalue()
    assert "MC-3061" not in written.getvalue()
