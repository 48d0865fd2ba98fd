"""The table of `notice`: how a preference is stated in English and in Chinese, and as which pair it is kept.

A thing that somebody likes is the key and the attitude the value: "I love Chinese food" and later "I hate Chinese food"
end as one preference, the newer one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    r"""One row.

    `pattern` matches from the beginning of a clause on, whatever the case, and may name a group `what`, for which
    `{what}` stands in `key` and `value`. Where `several`, each of the things listed in `what` gives a pair.

    >>> Rule(r"my cat is called (?P<what>\w+)", "cat", "{what}").key
    'cat'
    """

    pattern: str
    key: str
    value: str
    several: bool = False


# English. A thing is 1 to 5 words up to the end of its clause, and not a word that only points at something.
_STOP = r"\s*(?:$|[.;:!?()，。；！？…,]|\s-|\s(?:and|but|because|so|since|though|although|when|if|as|please)\b)"
_POINTING = (
    r"(?!(?:it|that|this|these|those|them|him|her|you|your|to|how|what|when|where|why|not|being|one"
    r"|the (?:way|idea|first|second|other|same|\w+ ones?))\b)"
)
_WORD = r"(?!(?:and|but|or|because|so)\b)[\w'’&-]+"
_ANY_MORE = r"(?: (?:any ?more|any longer|now|nowadays|these days))?"
_EMPHASIS = rf"(?: (?:very much|a lot|too|best|most|more|better))?{_ANY_MORE}"
_ELSE = r" (?:over|rather than|instead of|to)\b"
_THING = rf"{_POINTING}(?P<what>{_WORD}(?: {_WORD}){{0,4}}?){_EMPHASIS}(?={_STOP}|{_ELSE})"
_OTHER = r"(?!(?:i|we|he|she|they|it|my|also|what|which|that|please|can)\b)"
_ITEM = rf"{_OTHER}{_WORD}(?: {_WORD})??"
# A comma goes on to another thing only where "and" or "or" ends the list.
_THINGS = (
    rf"{_POINTING}(?P<what>{_WORD}(?: {_WORD}){{0,2}}?(?:(?:, {_ITEM}){{0,5}},? (?:and|or) {_ITEM})?)"
    rf"{_ANY_MORE}(?={_STOP})"
)
_NAME = (
    r"(?!(?:not|no|on|in|at|under|the|an?|wrong|missing|spel[lt]\w*|still|already|also|too|there|here|now)\b)"
    rf"(?P<what>[\p{{L}}][\p{{L}}'’-]*(?: (?!and\b|but\b)[\p{{L}}][\p{{L}}'’-]*){{0,2}}?)(?={_STOP})"
)
_CAPITALISED = (
    r"(?!(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|today\b|tomorrow\b|asap\b|i\b)"
    rf"(?-i:(?P<what>\p{{Lu}}[\p{{L}}'’-]*(?: \p{{Lu}}[\p{{L}}'’-]*){{0,2}}))(?={_STOP})"
)
_SIZE = r"(?P<what>(?:(?:eu|uk|us) ?)?\d{1,3}(?:\.5|½)?|x{0,3}[sl]|m|small|medium|large)\b"
_TRAIT = r"(?P<what>vegetarian|vegan|coeliac|celiac|diabetic|left-handed|colou?r-?blind)\b"
_ORDER = rf"(?P<what>\w[^,.;:!?，。]{{2,45}}?)(?={_STOP})"
_AM = r"i(?: am|['’]m)"

ENGLISH = (
    Rule(rf"my name(?: is|['’]s) {_NAME}", "name", "{what}"),
    Rule(rf"(?:please |you can |just |(?:people|friends) )?call me {_CAPITALISED}", "name", "{what}"),
    Rule(rf"every(?:one|body) calls me {_CAPITALISED}", "name", "{what}"),
    Rule(rf"{_AM} allergic to {_THINGS}", "{what}", "allergic", several=True),
    Rule(rf"{_AM} not allergic to {_THINGS}", "{what}", "not allergic", several=True),
    Rule(rf"i (?:usually |normally |always )?(?:wear|take)(?: a)? size {_SIZE}", "size", "{what}"),
    Rule(rf"(?:{_AM} a size|my (?:clothes |jacket )?size is) {_SIZE}", "size", "{what}"),
    Rule(rf"my shoe size is {_SIZE}", "shoe size", "{what}"),
    Rule(rf"{_AM} (?:an? )?{_TRAIT}", "{what}", "yes"),
    Rule(rf"i (?:would |much |really )*prefer {_THING}", "{what}", "prefers"),
    Rule(rf"i (?:really |just |absolutely )?(?:like|love|enjoy|adore) {_THING}", "{what}", "likes"),
    Rule(rf"i (?:really )?(?:hate|dislike|detest|loathe|can(?:not|['’]t) stand) {_THING}", "{what}", "dislikes"),
    Rule(rf"i (?:(?:do not|don['’]t) (?:really )?|no longer )(?:like|love|enjoy) {_THING}", "{what}", "dislikes"),
    Rule(rf"(?:from now on|in (?:the )?future),? (?:please )?{_ORDER}", "{what}", "from now on"),
    Rule(rf"please (?:(?=never\b)|always ){_ORDER}", "{what}", "from now on"),
)

# Chinese. A thing is up to 15 characters to the end of its clause.
_END = r"(?=$|[\s，。；！？、,.;!?…～~（）()]|吧|哦|啊|呀|哈)"
_HAN_THING = rf"(?![你您它他她这那的不]|上了)(?P<what>[^\s，。；！？、,.;!?“”]{{1,15}}?)了?{_END}"
_HAN_THINGS = r"(?![你您这那不])(?P<what>[^，。；！？,.;!?“”]{1,30}?)"
_LATIN_NAME = r"(?-i:\p{Lu}[\p{Latin}'’-]*(?: \p{Lu}[\p{Latin}'’-]*){0,2})"
_HAN_NAME = rf"(?![了他她它你您去来车外不过着起吃别一])(?P<what>[\p{{Han}}·]{{2,4}}?|{_LATIN_NAME})"
_WILL_DO = "(?:就行|就好|就可以|即可)?"
_ORDER_HAN = r"(?P<what>[^，。；！？,.;!?]{2,30}?)"
_MUCH = r"(?:很|最|挺|特别|非常|一直|就|也|真的?)*"

CHINESE = (
    Rule(rf"(?:我叫|我的名字是|我名叫){_HAN_NAME}{_END}", "名字", "{what}"),
    Rule(rf"(?:请|你|您|大家|朋友|同事|以后|就|都|可以)*叫我{_HAN_NAME}{_WILL_DO}{_END}", "名字", "{what}"),
    Rule(rf"我对{_HAN_THINGS}(?:严重|都|也|有点)*(?<![不没有])过敏", "{what}", "过敏", several=True),
    Rule(rf"我对{_HAN_THINGS}(?:并?不|没有?)过敏", "{what}", "不过敏", several=True),
    Rule(
        r"我(?:一般|平时|平常|都)*(?:穿|的?尺码是|的?鞋码是)(?P<what>\d{2}(?:\.5)?码?|x{0,3}[sml]码?)(?=的鞋|[^\w]|$)",
        "尺码",
        "{what}",
    ),
    Rule(r"我是(?:一?个)?(?P<what>素食者|素食主义者|左撇子|色盲|糖尿病人)", "{what}", "是"),
    Rule(rf"我(?:一直|向来)?(?P<what>吃素){_END}", "{what}", "是"),
    Rule(rf"我(?:更|比较|偏)(?:喜欢|爱|偏好){_HAN_THING}", "{what}", "更喜欢"),
    Rule(rf"我{_MUCH}(?:喜欢|爱吃|爱喝|爱看|爱听){_HAN_THING}", "{what}", "喜欢"),
    Rule(
        rf"我(?:现在|已经|再也)?{_MUCH}(?:讨厌|受不了|不(?:太|怎么|大|再|是很)?(?:喜欢|爱吃|爱喝)){_HAN_THING}",
        "{what}",
        "不喜欢",
    ),
    Rule(rf"(?:请以后|以后(?:请|麻烦|都请))(?:都|你|您|一律)*{_ORDER_HAN}{_END}", "{what}", "以后"),
)

RULES: tuple[Rule, ...] = ENGLISH + CHINESE
