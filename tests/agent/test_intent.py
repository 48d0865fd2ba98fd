import pytest
from hypothesis import given
from hypothesis import strategies as st

from tri_memory.agent.intent import INTENTS, Intent, by_need, need, next_tags, tags


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("What shall we have for dinner?", ["food"]),
        ("Do these boots fit?", ["size"]),
        ("Where is my parcel", ["delivery"]),
        ("I'd like a refund.", ["return"]),
        ("The printer is broken", ["repair"]),
        ("Can you recommend a gift?", ["choice"]),
        ("hello there", ["greeting"]),
        ("晚饭吃什么？", ["food"]),
        ("鞋子太小了，想换货", ["size", "return"]),
        ("快递到哪了", ["delivery"]),
        ("打印机坏了", ["repair"]),
        ("有什么推荐吗", ["choice"]),
        ("您好", ["greeting"]),
        ("", []),
        ("The weather is nice.", []),
        ("今天天气不错", []),
        ("outfit and prefix", []),
    ],
)
def test_a_message_has_the_tags_of_the_table(text, found):
    assert tags(text) == found


def test_what_comes_next_follows_the_table_and_is_nothing_that_is_asked_already():
    assert next_tags("Where is my parcel?") == ["return"]
    assert next_tags("Where is my parcel? I want a refund") == ["size"]
    assert next_tags("nothing of the kind") == []


def test_a_need_that_shares_no_word_with_the_question_comes_before_the_newest():
    known = {"nuts": "allergic", "size": "42", "tea": "likes"}

    assert list(by_need(known, "What shall I cook for dinner?")) == ["nuts", "tea", "size"]
    assert list(by_need({"花生": "过敏", "尺码": "42码"}, "晚饭吃什么")) == ["花生", "尺码"]
    assert list(by_need(known, "I want to return the boots")) == ["size", "tea", "nuts"]
    assert list(by_need(known, "Good weather today")) == ["tea", "size", "nuts"]


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=8)), st.text(max_size=40))
def test_ordering_loses_nothing(preferences, text):
    assert by_need(preferences, text) == preferences


def test_a_teachers_row_counts_like_the_others():
    table = (*INTENTS, Intent("cat", r"\bcat\b", r"\bvet\b", then=("no such tag",)))

    assert need("vet: Dr Lee", "My cat sneezes", table) == 2
    assert need("vet: Dr Lee", "My cat sneezes") == 0


def test_every_tag_that_comes_next_is_in_the_table_and_every_tag_once():
    names = [intent.tag for intent in INTENTS]

    assert len(set(names)) == len(names)
    assert {then for intent in INTENTS for then in intent.then} <= set(names)
