"""Signs that somebody may ask for a clause later: ids, dates, amounts, names; wishes, decisions, changes.

Each sign is a pattern for English and one for Chinese, about the language and never about a trade.
"""

from __future__ import annotations

import regex as re

from tri_memory.session.clauses import Language

_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
)
_NUMBER = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen"
    r"|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|half|a quarter|a dozen)"
)
_UNIT = (
    r"(?:%|°|[mck]m|mm/s|k?g|lbs?|oz|ml|l|bar|psi|[kM]?[WVA]|amps?|volts?|watts?|degrees?|inch(?:es)?|f(?:oo|ee)t"
    r"|yards?|centimet\w+|millimet\w+|met(?:er|re)s?|miles?|kilos?|grams?|lit(?:re|er)s?|seconds?|minutes?|mins?"
    r"|hours?|days?|weeks?|months?|years?|points?|marks?|pages?|pieces?|pairs?|copies|cards?|sets?|times|drops?"
    r"|lessons?|questions?|per cent|percent)"
)
_VERB = (
    r"(?:text|write|call|ring|phone|email|mail|send|message|put|leave|keep|make|use|take|set|wear|bring|give|tell|ask"
    r"|try|stop|start|wait|avoid|go|come|book|pay|get|turn|feed|pull|count|load|read|drop|add|hold|stick|change"
    r"|copy|skip|order|check|measure|wrap|post|deliver|remind|pick|show|speak|do|begin|plan|clean|switch|mark|say"
    r"|print|charge|replace|return|eat|drink|sleep|sit|run|walk|learn|study|practi[sc]e|park|open|close|store)"
)

ENGLISH = {
    "id": re.compile(
        r"\b(?=[\w-]*\d)(?=[\w-]*[A-Z])[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)+\b"
        r"|\b(?=[A-Z0-9]*\d[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])[A-Z0-9]{4,}\b"
        r"|(?<![\d-])\d{3,}-\d{4,}\b|\b\d{3,4}-\d{3,4}-\d{3,4}\b|\b\d{6,}\b"
    ),
    "date": re.compile(
        rf"\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}|\b{_MONTH} \d{{1,2}}\b|\b\d{{4}}-\d\d-\d\d\b"
        r"|\b\d{1,2}(?:st|nd|rd|th)\b"
    ),
    "day": re.compile(
        rf"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b|\b{_MONTH}\b(?! \d)"
        r"|\b(?:Christmas|Easter|New Year|tomorrow|weekends?"
        r"|(?:next|last|this) (?:week|month|year|weekend|spring|summer|autumn|winter))\b"
    ),
    "clock": re.compile(
        r"\b\d{1,2}[:.]\d\d\b|\b\d{1,2} ?[ap]\.?m\b|\bo'clock\b|\bnoon\b|\bmidnight\b|\bhalf past\b"
        rf"|\b(?:at|before|after|until|till|by|from|between|past)\s+(?:half past )?(?:\d{{1,2}}|{_NUMBER})\b"
        rf"(?!\s*{_UNIT}\b|[-%°,.]\d|\s+(?:of|more|other))",
        re.IGNORECASE,
    ),
    "money": re.compile(r"[£$€¥]\s?\d|\b\d[\d,.]*\s?(?:pounds|dollars|euros|quid|pence)\b", re.IGNORECASE),
    "measure": re.compile(rf"\b(?:\d[\d,./]*|{_NUMBER})[\s-]?{_UNIT}(?!\w)", re.IGNORECASE),
    "number": re.compile(r"\d+"),
    "name": re.compile(r"(?<=[\w,’')\"]\s)(?!I\b|I'|OK\b|God\b)(?:[A-Z][\w’'-]*[a-z]\w*|Dr\.?|Mr\.?|Mrs\.?)"),
    "place": re.compile(
        r"\b(?:[Ss]treet|[Rr]oad|[Ll]ane|[Cc]ourt|[Aa]venue|[Ss]quare|[Yy]ard|Row|Hill|[Ff]loor|[Rr]oom|[Ss]eat|[Gg]ate"
        r"|[Dd]oor|[Dd]epot|[Ss]tation|[Hh]all|address|building)\b"
    ),
    "health": re.compile(
        r"\b(?:allerg\w+|asthma\w*|rash|deaf|blind|pregnan\w+|diabet\w+|vegan|vegetarian|intoleran\w+|co?eliac"
        r"|dyslexi\w+|colou?r-?blind|left-?handed|disab\w+|wheelchair|migraines?|insulin|medication|injur\w+|surgery"
        r"|operation)\b",
        re.IGNORECASE,
    ),
    "wish": re.compile(
        r"\b(?:prefer\w*|I(?:'d)? (?:really )?(?:like|love|hate|loathe|need|want)|favou?rite|always|never|only|please"
        r"|can't (?:stand|bear|wear|eat|do|read|drink|take|have|use|sleep|hear|see)|rather|no more|avoid|as long as"
        r"|has to be|have to be|must be|works? best|too \w+ for me|(?:gives?|makes?|brings?) me)\b",
        re.IGNORECASE,
    ),
    "refusal": re.compile(
        r"^(?:no|nothing|without|never|not|don't|do not)\b"
        r"(?! (?:idea|problem|worries|bother|luck|wonder|sure|yet|bad|mad|at all|one)\b)(?:\s+\S+){1,4}$",
        re.IGNORECASE,
    ),
    "order": re.compile(
        rf"^(?:(?:always|never|please|only|just|don't|do not)\s+)*{_VERB}\b(?!\s+(?:I|we|you|it|to|thing|matter)\b)",
        re.IGNORECASE,
    ),
    "change": re.compile(
        r"\b(?:(?<!^)now|new|chang(?:e|ed|ing)|moved|moving|move to|switch\w*|instead|any ?more|no longer|from now"
        r"|these days|turned into|replaced|swap\w*|postponed|cancel\w+|brought forward|forget what|used to)\b",
        re.IGNORECASE,
    ),
    "decision": re.compile(
        r"\b(?:(?:I|we)'ll (?:take|have|go)|going for|go for|decided|booked|ordered|agreed|settled|chose|bought|paid"
        r"|signed)\b",
        re.IGNORECASE,
    ),
    "label": re.compile(
        r"\b(?:number|code|serial|reference|order|account|case|ticket|model|size|file|policy|deadline|booking|target"
        r"|goal|password|version|budget)\b",
        re.IGNORECASE,
    ),
    "contact": re.compile(
        r"\b(?:texts?|phone|calls?|ring|e-?mails?|messages?|write to me|(?:by|in the) post"
        r"|in (?:\w+ )?(?:print|writing)|on paper|(?:reach|contact) me)\b",
        re.IGNORECASE,
    ),
    "promise": re.compile(
        r"\b(?:I|[Ww]e)(?:'ll| will) (?:\w+ ){0,2}(?:send|give|refund|write|change|replace|hold|post|draw|make|find"
        r"|lend|have|do|book|check|remind|bring|move)\b"
    ),
    "hedge": re.compile(
        r"\b(?:maybe|perhaps|I think|I guess|suppose|might|sort of|kind of|feel like|imagine|hope|probably"
        r"|something)\b",
        re.IGNORECASE,
    ),
}

_COUNT = r"[零〇一二两三四五六七八九十百千万半几]"
# Not "一" alone, which is an article ("一点", "一个"), nor "几" and "半" ("几个", "半天").
_SOME = (
    r"(?:\d[\d,.]*|(?!一(?![二两三四五六七八九十百千万]))[一二两三四五六七八九十百千万]{1,6}[多几来]?"
    r"|半(?=年|斤|小时|个月))"
)
_MEASURE = (
    r"(?:点|年|周|天|小时|分钟|秒|度|米|厘米|毫米|公分|公里|里|斤|公斤|千克|克|升|毫升|寸|只|个|件|台|套|本|册|讲|题|道|页|张|箱|盒|包|瓶"
    r"|袋|支|根|次|遍|趟|回|成|折|倍|层|人|座|科|组|段|篇|字|格|档|转|伏|安|瓦|兆|帕|分|%|mm|cm|km|kg|g|ml|L)"
)

CHINESE = {
    "id": re.compile(
        r"(?<![A-Za-z0-9])(?=[A-Za-z0-9-]*\d)(?=[A-Za-z0-9-]*[A-Z])[A-Z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+"
        r"|(?<![A-Za-z0-9])(?=[A-Z0-9]*\d[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])[A-Z0-9]{4,}"
        r"|(?<![\d-])\d{3,}-\d{4,}|\d{3,4}-\d{3,4}-\d{3,4}|\d{6,}"
    ),
    "date": re.compile(
        rf"(?:\d{{1,2}}|{_COUNT}{{1,3}})月(?:\d{{1,2}}|{_COUNT}{{1,3}})[号日]?|\d{{4}}-\d\d-\d\d|(?<!\d)\d{{1,2}}[号日](?!楼|线|店|门|院|桌|机)"
        rf"|(?<![\d\u4e00-\u9fff]){_COUNT}{{1,3}}号(?!楼|线|店|门)"
    ),
    "day": re.compile(
        r"(?:周|星期|礼拜)[一二三四五六日天末]|[明后]天|[上下](?:周|个?月|礼拜|星期)|月底|月初|年底|年初|端午|春节|元旦|国庆|中秋|清明|过年"
        r"|暑假|寒假|(?:十[一二]?|[一二三四五六七八九]|\d+)月(?![\d一二三四五六七八九十])|开学"
    ),
    "clock": re.compile(
        rf"\d{{1,2}}[:：]\d\d|(?:\d+|一(?=点[半钟])|[二两三四五六七八九十][一二]?)点(?!儿)(?:半|钟|{_COUNT}{{1,3}}|\d+)?"
    ),
    "money": re.compile(rf"[¥￥]\s?\d|{_SOME}(?:块|元)|\d万"),
    "measure": re.compile(rf"{_SOME}\s?{_MEASURE}"),
    "number": re.compile(r"\d+"),
    "name": re.compile(
        r"[\u4e00-\u9fff](?:老师|师傅|经理|老板|医生|阿姨|主任)|我叫|姓[\u4e00-\u9fff]"
        r"|(?<![\u4e00-\u9fff])[老小阿][\u4e00-\u9fff](?![\u4e00-\u9fff])|[是找叫给换][老小阿](?![师板家区])[\u4e00-\u9fff]"
    ),
    "place": re.compile(
        r"[\u4e00-\u9fff][路街巷镇区县市省苑园府庄村里]\d|\d+号?[栋楼层室弄]|门口|门卫|地址|负[一二]层|座位"
        r"|[\u4e00-\u9fff]{2}(?:[路街巷镇县市省苑府村]|大学|公司|花园|花苑|小区|大厦|中心|广场)"
    ),
    "health": re.compile(
        r"过敏|哮喘|怀孕|糖尿|素食|吃素|清真|忌口|色盲|听不见|近视|残疾|高血压|心脏|腰椎|颈椎|膝盖|骨折|手术|[肿痛]|(?<!心)疼"
    ),
    "wish": re.compile(
        r"喜欢|讨厌|爱[吃喝看听用说]|最烦|过敏|不[吃喝爱接看听]|不能|不要|别|不用|只[要能用收吃喝看写发做想]|千万|必须|一定|习惯|怕|最好|要求"
        r"|想要|要[^是]{1,6}的$|宁可|受不了|忌|烦|原装|必|就行|就好"
    ),
    "refusal": re.compile(r"^(?:别|不要?|没|无)[^是事关].{1,7}$"),
    "order": re.compile(
        r"^(?:以后|往后|下回|下次|还是|都|就|先|一定|千万|最好|尽量|每[天周次页月])*"
        r"(?:别|要|给|放|寄|找|发|用|叫|换|改|写|做|填|算|带|留|拿|送|打|约|定|订|选|按|先|拍|当|让|试|控制|建议)"
    ),
    "change": re.compile(
        r"改[成到在为用放约名期考走]?|换[成了到]|搬|现在|(?<![点号日月年半钟天周期])[以往]后|从[^，]{1,6}起|不再|变成?|新[的地店家]|推[迟到]|延[到期]|调[到整成]|升|降"
        r"|退休|取消"
    ),
    "decision": re.compile(r"定[了在到下]|决定|就[要选定用报]|选|说好|约|订|买|下单|报名|签|付|直接"),
    "label": re.compile(
        r"编号|单号|订单|序列|抬头|型号|尺寸|电话|微信|密码|账号|工单|批次|编码|预算|目标|期限|到期|合同"
    ),
    "contact": re.compile(r"[发回]?(?:短信|消息|微信|邮件)|[打接]?电话|寄[到给]|送[到给]|放[在到门]|联系"),
    "promise": re.compile(
        r"(?:我|我们)(?:[给帮替让派把]|去|会|来).{0,8}(?:给|寄|送|发|换|申请|安排|提醒|改|查|留|对|找)|给[你您](?:寄|送|发|留|换|申请|改)"
    ),
    "hedge": re.compile(r"可能|也许|大概|估计|好像|觉得|应该|说不定|希望|看看|想想"),
}

SIGNS: dict[Language, dict[str, re.Pattern[str]]] = {"en": ENGLISH, "zh": CHINESE}

VALUES = ("id", "date", "day", "clock", "money", "measure", "number")

# An answer that takes note of what the other one has just said.
NOTED: dict[Language, re.Pattern[str]] = {
    "en": re.compile(
        r"\b(?:noted|done|changed|on (?:your|the) (?:card|account|file|sheet|list)|from now on|that goes"
        r"|I've (?:put|changed|added|noted)|[Nn]o \w+, then|[Oo]nly, then|it is[.,]"
        r"|I'll (?:put|tell|change|pass|make|remember|keep|leave|ask)|[Cc]an do)\b|, then\."
    ),
    "zh": re.compile(
        r"记下|备注|改好|记住|记好|记着|收到|明白|^好[的，。]|^行[，。]|^可以[，。]|没问题|理解|懂了|有数"
    ),
}


# A wish put as a question, or with a word that is trimmed off the clause.
REQUEST: dict[Language, re.Pattern[str]] = {
    "en": re.compile(r"\b(?:please|(?:could|would|can|will) you)\b", re.IGNORECASE),
    "zh": re.compile(r"麻烦|请(?!问)|能不能|可不可以|帮我"),
}


def signs(clause: str, language: Language) -> frozenset[str]:
    """The names of the signs that the clause shows."""
    return frozenset(name for name, pattern in SIGNS[language].items() if pattern.search(clause))


def values(clause: str, language: Language) -> frozenset[str]:
    """The ids, dates, times, amounts and numbers in the clause, as they are written."""
    found = (match.group() for name in VALUES for match in SIGNS[language][name].finditer(clause))
    return frozenset(value.casefold() for value in found)
