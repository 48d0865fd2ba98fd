"""Extraction: spans to the letter, one value for every spelling, no overlap, and time in proportion to the text."""

from __future__ import annotations

import doctest
import re
import unicodedata
from itertools import pairwise
from re import _parser as parser
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tri_memory.contracts import ChatTurn
from tri_memory.entity import extract as extract_module
from tri_memory.entity import rule as rule_module
from tri_memory.entity.extract import Entity, Saving, extract, saving, without_overlaps
from tri_memory.entity.extract_rules import RULES
from tri_memory.entity.rule import KINDS, Rule, code, phone

MEGABYTE = 1_000_000
ALPHABET = (
    "".join(chr(n) for n in range(32, 127))
    + "ＢＸ－２２０７：订单号序列号是，。我喜欢别打电话有事发微信\u200b\ufe0f\u0301😀ﷺ㈱ﬁ½\n\t"
)
SNIPPETS = [
    "Order #bx 2207",
    "ＢＸ-2207",
    "138-0000-4417",
    "PUMP-17",
    "I like tea",
    "我对芝麻过敏",
    "<memory",
    "</memory>",
]
WORDS = st.lists(st.sampled_from(SNIPPETS) | st.text(ALPHABET, max_size=12), max_size=12).map("".join)


def named(text: str, rules: tuple[Rule, ...] = RULES) -> list[tuple[str, str]]:
    return [(entity.kind, entity.value) for entity in extract(text, rules)]


@pytest.mark.parametrize(
    ("rule", "shown"), [(r, e) for r in RULES for e in r.examples], ids=lambda v: getattr(v, "name", v)
)
def test_a_rule_finds_what_its_example_has_in_brackets_and_so_does_the_whole_table(rule: Rule, shown: str) -> None:
    before, wanted, after = re.split(r"[\[\]]", shown)
    text = before + wanted + after
    assert [entity.text for entity in extract(text, [rule])] == [wanted]
    assert (rule.kind, wanted) in {(entity.kind, entity.text) for entity in extract(text)}


@pytest.mark.parametrize(
    ("rule", "miss"), [(r, m) for r in RULES for m in r.misses], ids=lambda v: getattr(v, "name", v)
)
def test_a_rule_passes_over_what_only_looks_alike(rule: Rule, miss: str) -> None:
    assert extract(miss, [rule]) == []


def test_every_rule_has_an_example_a_near_miss_and_a_name_of_its_own() -> None:
    assert all(rule.examples and rule.misses for rule in RULES)
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert {rule.kind for rule in RULES} == set(KINDS)


@pytest.mark.parametrize(
    "text",
    [
        "Order #bx 2207",
        "order number is BX2207",
        "ORDER NO. bx_2207",
        "订单号ＢＸ－２２０７。",
        "订单号：bx2207，还没到",
        "it's BX\u20112207",
        "it's BX\u20132207",
        "BX-22\u200b07",
        "📦BX-2207📦",
        "\u202aBX-2207\u202c",
        "order_lookup(BX-2207)",
    ],
)
def test_every_spelling_of_an_order_has_one_value(text: str) -> None:
    assert named(text) == [("CASE_ID", "BX-2207")]


def test_every_spelling_of_a_mobile_number_has_one_value() -> None:
    spellings = [
        "138-0000-4417",
        "13800004417",
        "138 0000 4417",
        "+86 138 0000 4417",
        "+8613800004417",
        "１３８-0000-4417",
    ]
    assert {tuple(named(f"电话{spelling}，谢谢")) for spelling in spellings} == {(("PERSON_ID", "13800004417"),)}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", []),
        ("   \n", []),
        ("Thanks, see you at 10.30 on 2026-03-01, flat 3.", []),
        ("3栋B梯18楼，5月6号下午2点，328元", []),
        ("BX-2207-Y-2207-Z, AA-BX-2207-Q-1, BX-2207.5", []),
        ("BX-2207\u0301", []),
        ("order BX-2207, serial KW-448120, from PUMP-17", ["CASE_ID", "DEVICE_ID", "DEVICE_ID"]),
        ("换新单 HX-0389｜新机序列号 M6-0067720｜", ["CASE_ID", "DEVICE_ID"]),
        ("BX-2207 and BX-2207", ["CASE_ID", "CASE_ID"]),
    ],
)
def test_what_is_found_stands_in_order(text: str, wanted: list[str]) -> None:
    assert [kind for kind, _ in named(text)] == wanted


def test_what_memory_put_into_the_prompt_names_nothing() -> None:
    assert named('<memory name="cases">BX-2207 I like tea</memory> and KF-0931') == [("CASE_ID", "KF-0931")]
    assert named("＜Memory＞ BX-2207") == []
    assert named("memory of BX-2207") == [("CASE_ID", "BX-2207")]


@given(WORDS)
@example("ﷺＢＸ-2207ﷺ")
@example("㈱订单号ＢＸ－22\u200b07é")
@example("I like café \u0301crème, é")
def test_a_span_is_the_text_to_the_letter_and_spans_do_not_overlap(text: str) -> None:
    found = extract(text)
    assert all(text[entity.start : entity.end] == entity.text for entity in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert all(0 < entity.confidence <= 1 and entity.value for entity in found)
    assert extract(text) == found


@given(st.text("ABX", min_size=2, max_size=4), st.integers(100, 10**9), st.sampled_from(["", "-", "_", " "]))
def test_an_id_has_the_same_value_whatever_its_dress(letters: str, number: int, between: str) -> None:
    plain = named(f"order number: {letters}-{number}")
    assert plain == [("CASE_ID", f"{letters}-{number}")]
    assert named(f"Order #{letters.lower()}{between}{number}") == plain
    wide = "".join(chr(ord(c) + 0xFEE0) for c in f"{letters}-{number}")
    assert unicodedata.normalize("NFKC", wide) == f"{letters}-{number}"
    assert named(f"订单号{wide}") == plain


@given(st.sampled_from(["BX-2207", "7V-2093", "ZT-60937-B", "K17", "LIFT-3B-0719"]))
def test_a_value_normalised_again_stays(value: str) -> None:
    assert code(code(value)) == code(value)
    assert phone(phone("+44 20 7946 0018")) == phone("+44 20 7946 0018") == "+442079460018"


def test_of_two_that_overlap_the_surer_then_the_longer_then_the_earlier_stays() -> None:
    def entity(start: int, end: int, confidence: float) -> Entity:
        return Entity("CASE_ID", "x" * (end - start), "X", start, end, confidence)

    assert without_overlaps([entity(0, 5, 0.5), entity(4, 6, 0.9)]) == [entity(4, 6, 0.9)]
    assert without_overlaps([entity(0, 2, 0.5), entity(1, 5, 0.5)]) == [entity(1, 5, 0.5)]
    assert without_overlaps([entity(1, 3, 0.5), entity(0, 2, 0.5)]) == [entity(0, 2, 0.5)]
    assert without_overlaps([entity(2, 4, 0.5), entity(0, 2, 0.5)]) == [entity(0, 2, 0.5), entity(2, 4, 0.5)]
    assert without_overlaps([]) == []


def test_a_teacher_extends_the_table_by_a_line() -> None:
    locker = Rule("locker", "DEVICE_ID", r"\blocker (?P<what>\d{1,4})\b", "LOCKER-{what}", 0.9, ("at locker [27]",))
    assert named("locker 27, order BX-2207", (*RULES, locker)) == [("DEVICE_ID", "LOCKER-27"), ("CASE_ID", "BX-2207")]
    assert named("locker 27", (locker,)) == [("DEVICE_ID", "LOCKER-27")]
    assert extract("order BX-2207", iter(RULES)) == extract("order BX-2207")
    assert extract("order BX-2207", []) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "PLACE"}, "kind must be one of PERSON_ID, DEVICE_ID, CASE_ID, PREFERENCE; got 'PLACE'"),
        ({"confidence": 0}, "confidence must be above 0 and at most 1; got 0"),
        ({"confidence": 1.1}, "got 1.1"),
        ({"confidence": float("nan")}, "got nan"),
        ({"pattern": "(?P<what>"}, "rule 'x' is no regular expression"),
        ({"pattern": "what"}, "rule 'x' has no group"),
    ],
)
def test_a_rule_that_cannot_work_is_refused_with_its_name(change: dict[str, Any], message: str) -> None:
    fields = {
        "name": "x",
        "kind": "CASE_ID",
        "pattern": "(?P<what>x)",
        "value": code,
        "confidence": 1.0,
        "examples": (),
    }
    with pytest.raises(ValueError, match=re.escape(message)):
        Rule(**(fields | change))


def test_an_entity_whose_span_does_not_fit_its_text_is_refused() -> None:
    with pytest.raises(ValueError, match="start and end must span the 2 characters of text; got 3 and 4"):
        Entity("CASE_ID", "BX", "BX", 3, 4, 1.0)
    with pytest.raises(ValueError, match="text must be a string; got a NoneType"):
        extract(None)


def test_an_error_holds_no_id() -> None:
    for wrong in (lambda: Entity("CASE_ID", "BX-2207", "BX-2207", 3, 4, 1.0), lambda: extract(b"BX-2207")):
        with pytest.raises(ValueError, match="must") as caught:
            wrong()
        assert "2207" not in str(caught.value)


def test_a_sign_that_stands_for_a_sentence_does_not_swell_the_text() -> None:
    text = "㈱ﷺ½" * 10
    assert len(extract_module._fold(text)[0]) <= extract_module.LONGEST_FOLD * len(text)
    assert extract_module._fold("ﷺ")[0] == "ﷺ"


def test_no_rule_repeats_without_bound() -> None:
    """A pattern that can match only so much text at a place takes time in proportion to the number of places."""
    unbounded = [rule.name for rule in RULES if _longest_repeat(parser.parse(rule.pattern)) > 64]
    assert not unbounded
    assert _longest_repeat(parser.parse(r"a(?=(?:b|c*))")) == int(parser.MAXREPEAT)


def _longest_repeat(parsed: Any) -> int:
    """The most that anything in a parsed pattern may be repeated, look-arounds included."""
    longest = 0
    for item in parsed:
        if isinstance(item, tuple) and item and str(item[0]) in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            longest = max(longest, int(item[1][1]), _longest_repeat(item[1][2]))
        elif isinstance(item, list | tuple | parser.SubPattern):
            longest = max(longest, _longest_repeat(item))
    return longest


@pytest.mark.parametrize(
    ("unit", "found"),
    [
        ("order number is ", 0),
        ("A1-", 0),
        ("BX-2207 ", MEGABYTE // 8),
        ("serial aaa ", 0),
        ("and I like a b ", MEGABYTE // 15),
        ("a.", 0),
        ("序列号", 0),
        ("<memory ", 0),
        ("ﷺ", 0),
    ],
)
def test_a_megabyte_of_hostile_text_ends(unit: str, found: int) -> None:
    """Were any rule quadratic, this would take hours."""
    text = (unit * (MEGABYTE // len(unit) + 1))[:MEGABYTE]
    assert len(extract(text)) == found


def test_the_saving_counts_what_is_kept_of_what_was_said() -> None:
    turns = [ChatTurn("user", "Right: BX-2207."), "nothing here", ChatTurn("user", "BX-2207")]
    assert saving(turns) == Saving(kept_characters=14, all_characters=34, entities=2, turns=3)
    assert saving(turns).share == 14 / 34
    assert saving([]) == Saving(0, 0, 0, 0)
    assert saving([]).share == 0.0
    assert saving(turns, lambda text: []).kept_characters == 0


@pytest.mark.parametrize("module", [extract_module, rule_module])
def test_the_examples_in_the_docstrings_hold(module: Any) -> None:
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed
