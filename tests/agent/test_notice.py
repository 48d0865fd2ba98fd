import pytest
from hypothesis import given
from hypothesis import strategies as st

from tri_memory.agent.notice import notice
from tri_memory.agent.notice_rules import RULES, Rule
from tri_memory.preference.rules import clean


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("My name is Ann.", [("name", "Ann")]),
        ("hi, my name's mary jane and I have a question", [("name", "mary jane")]),
        ("Please call me Dr Smith.", [("name", "Dr Smith")]),
        ("My name is Priya, but call me Pri.", [("name", "Priya"), ("name", "Pri")]),
        ("I'm allergic to peanuts.", [("peanuts", "allergic")]),
        (
            "I’m allergic to nuts, sesame, and milk.",
            [("nuts", "allergic"), ("sesame", "allergic"), ("milk", "allergic")],
        ),
        ("I'm not allergic to nuts", [("nuts", "not allergic")]),
        ("I wear size 42 and I prefer tea over coffee", [("size", "42"), ("tea", "prefers")]),
        ("my shoe size is EU 41.5", [("shoe size", "EU 41.5")]),
        ("I love Chinese food!", [("Chinese food", "likes")]),
        ("I hate Chinese food", [("Chinese food", "dislikes")]),
        ("I really don't like mushrooms", []),  # these words are not in the table
        ("I don't like mushrooms very much", [("mushrooms", "dislikes")]),
        ("I don't like wool any more.", [("wool", "dislikes")]),
        ("I no longer love wool these days", [("wool", "dislikes")]),
        ("I'm not allergic to nuts or wool anymore", [("nuts", "not allergic"), ("wool", "not allergic")]),
        ("From now on, answer in French.", [("answer in French", "from now on")]),
        ("please never phone me before six", [("never phone me before six", "from now on")]),
        ("I'm a vegetarian, by the way", [("vegetarian", "yes")]),
        ("我叫林小雨，今年28", [("名字", "林小雨")]),
        ("叫我小林就行", [("名字", "小林")]),
        ("大家都叫我老王。", [("名字", "老王")]),
        ("我对花生和芝麻过敏", [("花生", "过敏"), ("芝麻", "过敏")]),
        ("我对牛奶不过敏。", [("牛奶", "不过敏")]),
        ("我穿42码的鞋，喜欢跑步", [("尺码", "42码")]),
        ("我喜欢喝绿茶", [("喝绿茶", "喜欢")]),
        ("我不太喜欢香菜。", [("香菜", "不喜欢")]),
        ("我不喜欢羊毛了。", [("羊毛", "不喜欢")]),
        ("我现在不再爱吃羊肉了", [("羊肉", "不喜欢")]),
        ("我更喜欢靠窗的座位", [("靠窗的座位", "更喜欢")]),
        ("以后请用中文回答", [("用中文回答", "以后")]),
        ("我是左撇子", [("左撇子", "是")]),
    ],
)
def test_a_stated_preference_is_noticed(text, pairs):
    assert notice(text) == pairs


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What is my name?",
        "Do I like tea?",
        "do I wear size 42",
        "Am I allergic to nuts?",
        "If I like tea I'll say so.",
        "My sister is allergic to nuts.",
        "She says I like tea.",
        "I think I wear size 42",  # a guess, and so is this
        "I used to like tea.",
        "I like it.",
        "I like that one",
        "I like the blue one",
        "I'd like to order boots",
        "my name is on the packing slip",
        "It should be under my name, Maeve Tolliver.",
        "Call me tomorrow.",
        "call me when it's ready",
        "Call me Monday",
        '"I like tea," she said.',
        "我喜欢什么？",
        "我叫什么名字",
        "我喜欢你",
        "我很喜欢这个",
        "她说我喜欢猫",
        "我妈对花生过敏",
        "如果我喜欢猫就好了",
        "我叫外卖了",
        "我叫他来",
        "叫我起床",
        "我对这个不过敏",
        "他叫我小林",
        '<memory name="preferences">\n- note: x\nI like tea.\n</memory>',
        '<memory name="preferences">\nI like tea.',
    ],
)
def test_what_is_no_statement_about_oneself_is_not_noticed(text):
    assert notice(text) == []


def test_a_question_in_the_same_turn_does_not_hide_a_statement():
    assert notice("I wear size 42. Do you have it? 我对花生过敏。") == [("size", "42"), ("花生", "过敏")]


def test_love_and_then_hate_share_a_key_so_the_newer_replaces_the_older():
    (first,), (second,) = notice("I love Chinese food."), notice("I hate Chinese food.")

    assert first[0] == second[0]
    assert first[1] != second[1]


def test_a_teacher_can_add_a_row_to_the_table():
    rule = Rule(r"my cat is called (?P<what>\w+)", "cat", "{what}")

    assert notice("My cat is called Tom, and I like tea.", [*RULES, rule]) == [("cat", "Tom"), ("tea", "likes")]


def test_a_row_without_a_group_gives_its_own_words():
    assert notice("I commute.", [Rule("i commute", "commutes", "yes")]) == [("commutes", "yes")]


def test_a_long_sentence_is_an_essay_and_is_passed_over():
    assert notice("I like tea " + "and so on " * 40) == []


def test_five_megabytes_are_read_at_the_beginning_only():
    assert notice("I like tea. " + "x" * 5_000_000 + ". I like cake.") == [("tea", "likes")]


@pytest.mark.parametrize("piece", ["I like ", "my name is ", "我喜欢", "and I'm allergic to a, ", "请叫我", "hi, "])
def test_a_repeated_opening_does_not_stall(piece):
    notice((piece * 60)[:290])  # a pattern that tries all ways would not come back


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
def test_whatever_is_noticed_can_be_stored_or_is_dropped_by_the_guard_rails(text):
    for key, value in notice(f"I like {text}. 我喜欢{text}"):
        assert clean(key, value) is None or len(key) <= 50  # and nothing raises
