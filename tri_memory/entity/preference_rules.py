"""How a preference is stated, in English and in Chinese: part of the table of `extract`. See `rule.py`.

A rule speaks for the beginning of a clause and ends with it, and not where a question mark does.
"""

from __future__ import annotations

from tri_memory.entity.rule import Rule

_BEGIN = r"(?:^|[\n.,;:!?] {0,2}|\b(?:and|but|so|also|please|kindly|messages,) )"
_STOP = r"(?= ?(?:$|[.,;:!()\n](?!\d)|-|\b(?:and(?! \d)|but|because|so|since|when|if|as|please|rather|instead)\b))"
_ANY_MORE = r"(?: (?:any ?more|any longer|now|nowadays|these days))?"  # says when, and not what
_W = r"[^\s.,;:!?()。、]{1,20}"
_THING = (
    rf"(?P<what>(?!(?:it|that|this|these|those|them|you|your|to|how|what|not)\b){_W}(?: {{1,3}}{_W}){{0,4}}?)"
    rf"{_ANY_MORE}{_STOP}"
)
_REACH = r"(?:phone|ring|call|text|write(?: to)?|message|e-?mail)"
_WHEN = r"(?:about|after|at|before|between|by|in|only|on|instead)\b"
_BEGIN_ZH = r"(?:^|[\n。,;:!?、 ]|还有|对了|以后|今后|但是?|而且|平时)"
_STOP_ZH = r"(?=$|[\s。,;!、()]|吧|哦|啊|呀|哈|就行|就好|就可以)"
_HAN = rf"(?P<what>(?![你您它他她这那的不])[^\s。,;!?、]{{1,15}}?)了?{_STOP_ZH}"

PREFERENCES: tuple[Rule, ...] = (
    Rule(
        "likes",
        "PREFERENCE",
        rf"{_BEGIN}I (?:really |just |absolutely )?(?:like|love|enjoy|adore) {_THING}",
        "likes {what}",
        0.8,
        ("I really like [green  tea], thanks", "Hi. I love [Chinese food]"),
        ("Do I like green tea?", "I like it", "she says I like tea", "I like tea?"),
    ),
    Rule(
        "dislikes",
        "PREFERENCE",
        rf"{_BEGIN}I (?:really )?(?:hate|dislike|detest|loathe|can't stand"
        rf"|(?:don't (?:really )?|no longer )(?:like|love|enjoy)) {_THING}",
        "dislikes {what}",
        0.8,
        ("I can't stand [loud music].", "and I hate [wool]", "I don't like [wool] any more.", "I no longer love [tea]"),
        ("I hate it when", "why do I hate wool?"),
    ),
    Rule(
        "prefers",
        "PREFERENCE",
        rf"{_BEGIN}I(?:'d| would)? (?:much |really )?prefer {_THING}",
        "prefers {what}",
        0.8,
        ("I'd prefer [paper], please",),
        ("I prefer not to say",),
    ),
    Rule(
        "is allergic",
        "PREFERENCE",
        r"\bI(?:'m| am) allergic to " + _THING,
        "allergic to {what}",
        0.9,
        ("I'm allergic to [latex].",),
        ("am I allergic to latex?", "I'm not allergic to latex."),
    ),
    Rule(
        "cannot have",
        "PREFERENCE",
        rf"{_BEGIN}I (?:can't|cannot|don't|never) (?P<what>(?:wear|eat|drink|take) {_W}(?: {_W}){{0,3}}?)"
        rf"{_ANY_MORE}{_STOP}",
        "does not {what}",
        0.75,
        ("I can't [wear wool], it itches", "I don't [eat red meat] now."),
        ("I can't wear it?", "you don't eat meat"),
    ),
    Rule(
        "no calls",
        "PREFERENCE",
        rf"{_BEGIN}(?P<what>(?:don't|do not|never|no) {_REACH}\b(?: me)?(?: {_WHEN}[^.,;!?\n]{{1,35}}?)?){_STOP}",
        "{what}",
        0.8,
        ("please [don't ring]. I never hear it", "[No phone], please", "And please [don't phone before six]."),
        ("I don't ring bells", "no phone number?"),
    ),
    Rule(
        "how to reach",
        "PREFERENCE",
        rf"{_BEGIN}(?:only )?(?P<what>{_REACH} me(?: {_WHEN}[^.,;!?\n]{{1,35}}?| only| instead)?){_STOP}",
        "{what}",
        0.75,
        ("[Text me], please don't", "so [text me about 4] and", "please only [message me between 12:30 and 1]."),
        ("he'll call me", "could you text me?", "write me a letter"),
    ),
    Rule(
        "喜欢",
        "PREFERENCE",
        rf"{_BEGIN_ZH}我(?:很|最|挺|特别|非常|一直|就|也|真的?){{0,3}}(?:喜欢|爱吃|爱喝|爱看|爱听){_HAN}",
        "喜欢{what}",
        0.8,
        ("我最喜欢[红茶]。", "对了我也爱吃[辣]，"),
        ("我喜欢红茶吗？", "你喜欢红茶", "我喜欢你"),
    ),
    Rule(
        "不喜欢",
        "PREFERENCE",
        rf"{_BEGIN_ZH}我(?:很|最|特别|非常|一直|就|也|真的?|现在|已经|再也){{0,3}}"
        rf"(?:讨厌|受不了|不(?:太|怎么|大|再)?(?:喜欢|爱吃|爱喝|吃|喝)){_HAN}",
        "不喜欢{what}",
        0.8,
        ("我不太喜欢[香菜]，", "我受不了[香精]", "我不再喜欢[羊毛]了。", "我现在不喝[咖啡]了"),
        ("我讨厌香菜吗？",),
    ),
    Rule(
        "更喜欢",
        "PREFERENCE",
        rf"{_BEGIN_ZH}我(?:还是)?(?:更|比较|偏)(?:喜欢|爱){_HAN}",
        "更喜欢{what}",
        0.8,
        ("我更喜欢[纸质的]。",),
        ("我更喜欢哪个？",),
    ),
    Rule(
        "过敏",
        "PREFERENCE",
        r"我对(?P<what>(?![你您这那不])[^\s。,;!?、]{1,10}?)(?:严重|都|也|有点)?过敏(?![吗?])",
        "对{what}过敏",
        0.9,
        ("我对[芝麻]过敏，",),
        ("我对芝麻过敏吗", "我对这个过敏"),
    ),
    Rule(
        "怎么联系",
        "PREFERENCE",
        rf"有(?:急)?事(?:请|就|都|可以)?(?P<what>(?:[上下]午|晚上|中午|早上|打|发|写|给我|微信|短信|邮件)[^\s。,;!?]{{1,18}}?){_STOP_ZH}",
        "有事{what}",
        0.75,
        ("有事[发短信]。", "有事[给我发消息]就行，", "有事[下午四点以后找我]，"),
        ("有事吗", "有事打给谁？"),
    ),
    Rule(
        "别打电话",
        "PREFERENCE",
        rf"{_BEGIN_ZH}(?:请|也|就|千万|都){{0,2}}(?P<what>(?:别|不要|莫)(?:再)?(?:给我)?(?:打电话|打|发[^\s。,;!?]{{1,6}}?)){_STOP_ZH}",
        "{what}",
        0.75,
        ("[别打电话]，我在开会", "晚上。也[别给我发东西]，"),
        ("别打了个喷嚏", "他说别打电话"),
    ),
)
