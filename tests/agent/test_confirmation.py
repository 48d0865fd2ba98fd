import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tri_memory.agent.confirmation import LONGEST, confirmation, is_clear_yes

YES = """
yes|Yes.|YES!|yes please|Yes, please!|yes, thanks|yes thank you very much|yeah|yep|sure|Sure, go ahead.|ok
OK|okay|of course|Of course!|certainly|absolutely|definitely|exactly|correct|right|Right.|that's right
That’s still right.|yes, that is correct|yes, it is|it still is|it is|yes I do|go ahead|please do|yes 👍
yes! 😊|ＹＥＳ|i agree|yes, go ahead, please|是|是的|是的。|是啊|对|对的|对啊|对，没错|嗯，是的|嗯是的
嗯，对|好|好的|好的，谢谢|好的谢谢你|好啊|行|可以|可以的|没错|没问题|当然|当然可以|要|要的|需要|确定
是的，没错！|还是这样|是的，还是这样|同意|对👍|好的，请说|正确
"""
NO = """
no|nope|not now|no thanks|not really|yes and no|yes but no|yes, but not now|yes, no|no, yes|yes?|right?|ok?
is it|is it right|do I|maybe|I guess|I suppose so|probably|perhaps|fine|whatever|yeah, right|yeah right
yeah sure|oh sure|sure, sure|yes yes yes|ok...|yes...|yes…|well|hmm|mhm|uh-huh|yes if you delete it
sure about that|sure thing, as if|not yes|don't|never|yes 🙄|yes 😂|🙄|👍|yes👎|please|thanks|thank you|, .
it isn't|that's not right|right now|I don't agree|not ok|no problem|y|n|1|true|yes\u200bno|y e s|ye s|yesno
yesplease|yesterday|okay-ish|yes, delete everything|rights|yes it|不是|不对|不|不好|不行|不可以|不要|不用
不用了|不需要|没有|没|不同意|不确定|别|不是的|不是，是的|是不是|对不对|好不好|是吗|对吗|好吗|可以吗|要吗
行吗|对吧|是吧|嗯|嗯嗯|嗯？|哦|哦好吧|好吧|行吧|算了|随便|也许|可能吧|差不多|是的，但是|是的但不要
好的，不过|是也不是|好像是|应该是|对对对|啊对对对|当然不|当然不是|没错吗|是的？|不错|还是算了|还是不要
我不要|要不|要不要|好烦|行不行|好难|对手|谢谢|麻烦了|请说|是谁|要死|同意吗|错|确定吗|确定不|是的…|好的。。。
对不起
"""
YES, NO = ([each for line in table.split("\n") for each in line.split("|") if each] for table in (YES, NO))
ANYTHING = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@pytest.mark.parametrize("text", YES)
def test_a_clear_yes_is_one(text):
    assert is_clear_yes(text)


@pytest.mark.parametrize("text", [*NO, "", " ", "\n", ".", "yes " * 20, None, True, 1, ["yes"], b"yes"])
def test_anything_else_is_a_no(text):
    assert not is_clear_yes(text)


@given(st.sampled_from(YES), st.data())
def test_a_negation_a_doubt_or_a_question_anywhere_makes_a_yes_a_no(text, data):
    spoiler = data.draw(
        st.sampled_from(["?", "？", "...", "not", "no", "but", "maybe", "不", "没", "别", "吗", "吧", "可能", "🙄"])
    )
    text = text.strip()
    at = data.draw(st.integers(0, len(text)))

    assert not is_clear_yes(text[:at] + spoiler + text[at:])
    assert not is_clear_yes(text[:at] + f" {spoiler} " + text[at:])


@given(st.sampled_from(YES), ANYTHING)
def test_a_yes_with_anything_of_substance_behind_it_is_a_no(text, more):
    letters = "".join(sign for sign in more.casefold() if sign.isalnum())
    assume(letters)
    known = set("".join(YES).casefold()) | set("please do thank you i agree consent certainly")
    assume(not set(letters) <= known)

    assert not is_clear_yes(f"{text} {more}")
    assert not is_clear_yes(f"{more} {text}")


@given(st.text(st.characters(exclude_categories=["Cs", "Ll", "Lm", "Lo", "Lt", "Lu"]), max_size=30))
@example("⾏")  # a radical, no letter; only NFKC makes it 行
def test_noise_is_never_a_yes_and_never_an_error(text):
    assert not is_clear_yes(text)


@given(st.lists(st.sampled_from(NO), min_size=1, max_size=3), st.sampled_from([" ", ", ", "，"]))
def test_several_noes_never_add_up_to_a_yes(noes, between):
    assert not is_clear_yes(between.join(noes))


@given(st.sampled_from(YES), st.sampled_from([str.upper, str.title, str.lower, lambda t: f"  {t} "]))
def test_case_and_blanks_around_it_do_not_matter(text, change):
    assert is_clear_yes(change(text))


def test_the_phrase_says_what_will_be_used_in_both_languages():
    assert confirmation("you wear size 42.") == "I remember that you wear size 42; is that still right?"
    assert confirmation("你穿42码。") == "我记得：你穿42码。现在还是这样吗？"
    assert confirmation("you wear 42", "you like tea") == (
        "I remember that you wear 42; and that you like tea; is that still right?"
    )
    assert confirmation("size 42", language="zh") == "我记得：size 42。现在还是这样吗？"


def test_a_long_memory_or_one_with_line_breaks_stays_a_short_line():
    phrase = confirmation("a\n\nb " + "x" * 1_000 + " {}")

    assert "\n" not in phrase
    assert phrase.startswith("I remember that a b xxx")
    assert len(phrase) < LONGEST + 60


@pytest.mark.parametrize("memories", [[], [""], ["size 42", " \n"], ["."]])
def test_a_phrase_about_nothing_is_refused(memories):
    with pytest.raises(ValueError, match="memories that say something"):
        confirmation(*memories)


@given(ANYTHING)
def test_a_confirmation_phrase_is_no_yes_of_its_own(text):
    assume(text.strip(" .。;；\n\t\r\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029").split())

    try:
        phrase = confirmation(text)
    except ValueError:
        return
    assert not is_clear_yes(phrase)
