import pytest

from tri_memory.agent.sentences import is_chinese, is_question, split


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        (" \n ", []),
        ("One. Two!", ["One.", "Two!"]),
        ("It costs 3.50, e.g. here. Fine?", ["It costs 3.50, e.g. here.", "Fine?"]),
        ("我叫小林。穿42码！行吗？", ["我叫小林。", "穿42码！", "行吗？"]),
        ("他说“好。”我走了。", ["他说“好。”", "我走了。"]),
        ("a\u2028b\r\nc", ["a", "b", "c"]),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text, sentences):
    assert split(text) == sentences


@pytest.mark.parametrize(
    "text",
    [
        "What size?",
        "what's my name",
        "Tell me my order number.",
        "do you remember me",
        "which day was it delivered",
        "I moved. Where do my boots go now?",
        "我叫什么",
        "我的尺码是多少？",
        "你还记得我吗",
        "单号多少",
        "订单号发我一下。",
        "我的尺码呢",
    ],
)
def test_a_question_is_one_with_or_without_its_mark(text):
    assert is_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "I wear size 42.",
        "Call me Ann.",
        "Do it in pictures.",
        "Did my first mock on Saturday.",
        "I know what I like.",
        "我穿42码。",
        "我什么都吃。",
        "谁都可以。",
        "我还以为自己会呢。",
        "快合上那一下。",
        "",
    ],
)
def test_a_statement_is_no_question(text):
    assert not is_question(text)


def test_the_language_is_that_of_most_of_the_text():
    assert is_chinese("我的 BX-2207 到了吗")
    assert not is_chinese("Where is my 面包机 now please")
