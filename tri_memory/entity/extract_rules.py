"""The table of `extract`: how ids are written in English and in Chinese. A teacher adds a row, here or in a lesson:
`extract(text, (*RULES, Rule(…)))`. What a pattern may be says `rule.py`.

A person's number, a thing's (serial, label, batch) and an affair's (order, repair, quote, contract, course) look alike.
The word before it tells: surely, where it stands right before; less so a few words away; without one, an affair is
the likeliest. A product's name, a seat, a fault code and a form are none of the three.
"""

from __future__ import annotations

from tri_memory.entity.preference_rules import PREFERENCES
from tri_memory.entity.rule import Rule, code, phone, plain

# What an id looks like. It ends where no letter, digit, hyphen, combining mark or unit goes on.
_LEFT, _RIGHT = r"(?<![\w-])", r"(?![\w\u0300-\u036f\u20d0-\u20ff]|-\w|[.:]\d| ?[元块字])"
_NOT = (  # standards, what is sold, and words before a number
    r"(?!(?:ISO|DIN|EN|IEC|IEEE|ANSI|GB|RFC|SHA|AES|MD|UTF|HTTP|CVE|COVID|USB|GPT|UTC|GMT|EU|UK|US)[- ]?\d)"
    r"(?!(?:SKU|ISBN|EAN|UPC|ASIN|GTX|RTX)[- ]?\d)"
    r"(?!(?:in|on|at|for|by|of|to|from|is|was|the|and|or|no|my|has|than|over|until|till|about|since)[ -])"
)
_SHAPE = (
    r"(?-i:(?:[A-Z]{2,5}\d?|[A-Z]\d|\d[A-Z]\d?)(?:-[A-Z0-9]{1,4})?-\d{3,12}[A-Z]?(?:-[A-Z])?"
    r"|[A-Z]-\d{4,12}[A-Z]?|[A-Z]{2,5}-[A-Z0-9]{1,4}-\d{2})"
)
CODE = rf"{_LEFT}{_NOT}(?P<what>{_SHAPE}){_RIGHT}"
# Behind a word that says what it is, small letters, many digits, or two letters and a space will do; behind "number",
# more letters and a space, or few digits, too.
_TWO = r"(?!(?:am|an|as|be|do|go|he|if|it|me|so|up|us|we) )[A-Z]{2} \d{3,16}"
_PARTS = r"[A-Z]{2,5}(?:[-_/]\d{2,12}){2,3}|1Z[A-Z0-9]{16}"  # a year between two parts; a parcel
NAMED = rf"{_LEFT}{_NOT}(?P<what>{_SHAPE}|{_PARTS}|[A-Z]{{1,5}}[-_]?\d{{3,16}}[A-Z]?|{_TWO}|\d{{6,20}}){_RIGHT}"
_LOOSE = r"[A-Z]{1,5}[-_ ]?\d{2,16}[A-Z]?(?:-[A-Z0-9]{1,4})?|\d{4,20}"
NUMBERED = rf"{_LEFT}{_NOT}(?P<what>{_SHAPE}|{_PARTS}|{_LOOSE}){_RIGHT}"

# The words that say of what kind an id is, and what stands between the word and the id.
_CASE = (
    r"\b(?:order|ticket|case|repair|refund|return|exchange|booking|reservation|reference|ref|quote|invoice|voucher|claim"
    r"|RMA|PO|contract|tracking|job|file|log entry|course|exam)"
)
_THING = r"\b(?:serial|asset(?: tag)?|machine|device|unit|meter)"
_PERSON = r"\b(?:member(?:ship)?|customer|client|employee|staff|student|candidate|patient|passport|account|user)"
_CASE_ZH = r"(?:订单|工单|[退换补报维运快][^\s\d,。]{0,2}单|合同|预约|快递|发票|报名|课程|案|单|课)"
_THING_ZH = r"(?:序列|设备|机身|机器|机|资产|铭牌|批次)"
_PERSON_ZH = r"(?:会员|客户|用户|员工|工|学|准考证|考|护照|病历)"
_IS = r"(?: (?:is|was|are|says|it's)\b)?[ :#=(\"']{1,4}"
_CALL = r"_\w{1,20}\([\"']?"  # of a tool, as in order_lookup(
_NUMBER = rf"(?: ?\b(?:number|no\.?|num|code|id)(?:['’]s\b)?{_IS}| ?#{{1,2}} ?)"
_HAO = r"(?:号码?|编号)(?:是|为)?[ :#]{0,3}"
_NEAR = r"\b[^\n.!?;\d]{0,45}?"
_NEAR_ZH = r"[^\n。!?;\d]{0,15}?"

IDS = (
    Rule(
        "e-mail address",
        "PERSON_ID",
        r"(?<![\w.+-])(?P<what>[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4})",
        plain,
        0.97,
        ("write to [Ann.Lee@example.org], please", "邮箱是[ann@example.cn]。"),
        ("meet @ 5.30", "a@b"),
    ),
    Rule(
        "mainland mobile number",
        "PERSON_ID",
        r"(?<![\w-])(?P<what>(?:(?:\+|00)?86[- ]?)?1[3-9]\d[- ]?\d{4}[- ]?\d{4})(?![\w-])",
        phone,
        0.97,
        ("微信就是手机号[138-0000-4417]。", "call [+86 138 0000 4417]"),
        ("流水13800004417000", "118-0000-4417"),
    ),
    Rule(
        "phone number with a plus",
        "PERSON_ID",
        r"(?<![\w+])(?P<what>\+[1-9]\d{0,2}(?:[ -]?\(?\d{2,4}\)?){2,4})(?![\w-])",
        phone,
        0.96,
        ("my number is [+44 20 7946 0018]",),
        ("it rose by +20 %", "+1 -1"),
    ),
    Rule(
        "phone number with an area code",
        "PERSON_ID",
        r"(?<![\w-])(?P<what>0\d{2,3}[- ]\d{3,4}[- ]?\d{4})(?![\w-])",
        phone,
        0.85,
        ("座机[0571-88881234]，", "ring [020 7946 0018]"),
        ("03-04 2026", "version 0571-8888-12"),
    ),
    Rule(
        "North American phone number",
        "PERSON_ID",
        r"(?<![\w-])(?P<what>(?:\(?[2-9]\d{2}\)?[- ])?[2-9]\d{2}-\d{4})(?![\w-])",
        phone,
        0.8,
        ("ring [555-0142], between 2 and 4", "or [212-555-0142]"),
        ("on 2026-0105", "155-0142"),
    ),
    Rule(
        "phone extension",
        "PERSON_ID",
        r"(?:\bext(?:ension|\.)? |内线|分机)[号是:]{0,2} ?(?P<what>\d{3,5})(?!\d)",
        "EXT-{what}",
        0.9,
        ("on extension [2041]", "找我打内线[8206]。"),
        ("an extension of 30 days", "内线很忙"),
    ),
    Rule(
        "identity card",
        "PERSON_ID",
        r"(?<!\w)(?P<what>[1-9]\d{5}(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dX])(?!\w)",
        code,
        0.97,
        ("身份证[11010519491231002X]",),
        ("流水110105194913310021",),
    ),
    Rule(
        "a person's number",
        "PERSON_ID",
        rf"(?:{_PERSON}{_NUMBER}|{_PERSON_ZH}{_HAO}){NUMBERED}",
        code,
        0.95,
        ("my candidate number is [CN-70583]", "Member no. [mb 3391]", "我姓叶，工号[K17]。", "考号[ＥＶ-0077]，"),
        ("our customer number one", "工号忘了", "a student in 2026"),
    ),
    Rule(
        "a thing's number",
        "DEVICE_ID",
        rf"(?:{_THING}{_NUMBER}|{_THING_ZH}{_HAO}|\bS/N[ :]{{1,2}}|\bSN ?: ?){NUMBERED}",
        code,
        0.95,
        (
            "serial number: [KW-448120]",
            "S/N [zt 60937]",
            "设备SN：[KW448120]，",
            "序列号[7K2-40931]，",
            "机身号：[BK-07]，",
        ),
        ("the serial number is under the lid", "序列号在背面", "unit no 3", "SN 1987 was a supernova"),
    ),
    Rule(
        "an affair's number",
        "CASE_ID",
        rf"(?:{_CASE}{_NUMBER}|{_CASE_ZH}{_HAO}){NUMBERED}",
        code,
        0.95,
        (
            "Order #[bx 2207]",
            "My order number's [AX 99120].",
            "order number’s [AX 99120]",
            "the case number is [100234]",
            "订单号 [ＢＸ-2207]",
            "退货单编号：[rt0917]",
        ),
        ("order number in 2026", "a file no 3", "订单号没记", "单号2000元", "booking number 2026-06-30"),
    ),
    Rule(
        "a thing and its id",
        "DEVICE_ID",
        rf"(?:{_THING}{_IS}|(?:序列|标签|批次|批号)[ :]{{0,2}}|\b(?:device|serial|asset|recall){_CALL}){NAMED}",
        code,
        0.9,
        ("Serial [KW-448120].", "serial_check([TN-40913])", "device [lft2093]", "烧制批次 [G-2603]"),
        ("unit off", "device_lookup(17号泵)", "a machine from 2019"),
    ),
    Rule(
        "an affair and its id",
        "CASE_ID",
        rf"(?:{_CASE}{_IS}|{_CASE_ZH}[ :是]{{0,2}}|\b(?:order|case|booking|refund){_CALL}){NAMED}",
        code,
        0.9,
        (
            "the quote is [Q-664]",
            "order [bx2207]",
            "where is order [bx 2207] now",
            "工单[MT-3359]，",
            "我的订单是[bx2207]",
            "order_lookup([BX-2207])",
            "订单[20260105123456]还没发",
            "my refund is [RF/2026/0091], still open",
            "tracking [1Z999AA10123456784]",
            "order is [ORD_2026_88417]",
        ),
        (
            "order in 2026",
            "order me 2000 tiles",
            "order up 2207",
            "case law 2019",
            "an order of 1,200",
            "in case covid-19 returns",
            "order SKU-12345 again",
            "合同100000元",
        ),
    ),
    Rule(
        "a thing by its name",
        "DEVICE_ID",
        rf"{_LEFT}(?P<what>(?:PUMP|LIFT|LFT|ELEV|PRN|PRINTER|AC|HVAC|FAN|MOTOR|VALVE|BOILER|CHILLER|ROUTER)"
        rf"[-_](?:[A-Z0-9]{{1,3}}-)?[A-Z]?\d{{2,6}}(?:-[A-Z])?){_RIGHT}",
        code,
        0.85,
        ("[PUMP-17], behind the washer", "[LIFT-3B-0719]。", "[pump-e08]，22年装的", "[AC-12-K]。"),
        ("pump 17 bar", "the AC-DC unit", "a fan of 2026"),
    ),
    Rule(
        "an id near a thing",
        "DEVICE_ID",
        rf"(?:\b(?:serial|label|stamped|plate|underneath){_NEAR}|(?:序列号|铭牌|标签|机身|设备号){_NEAR_ZH}){CODE}",
        code,
        0.75,
        ("a label inside, I copied it out for you: [VC-7716]", "铭牌上写的是[VC-7716]"),
        ("the label came off", "标签在背面。单号没有"),
    ),
    Rule(
        "an id",
        "CASE_ID",
        CODE,
        code,
        0.6,
        ("Right: [BX-2207]. My sister paid", "[ZB-2207]，林晓蓓", "[B2-88417]", "[ＤＥ-B1-306]"),
        (
            "encrypted with AES-256",
            "fault E-14 on the A3 printer",
            "seat F-114",
            "6308-C3",
            "UTF-8",
            "X-BX-2207-Y",
            "a GTX-1080",
        ),
    ),
)

RULES: tuple[Rule, ...] = IDS + PREFERENCES
