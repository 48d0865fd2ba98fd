"""Sentences for which the words are near and the meaning is not: negation, numbers, ids, names.

Each is a triple: what was said, the same in other words, and a trap that says something else in nearly the same words.
"""

from __future__ import annotations

from typing import NamedTuple


class Triple(NamedTuple):
    """`same` means what `said` means; `trap` does not."""

    said: str
    same: str
    trap: str


KINDS = ("negation", "number", "id", "name")

TRIPLES: dict[tuple[str, str], tuple[Triple, ...]] = {
    ("English", "negation"): (
        Triple("I eat fish", "Fish is fine for me", "I do not eat fish"),
        Triple("The heating works", "We have warm rooms again", "The heating does not work"),
        Triple("Call me in the evening", "Ring after work, please", "Never call me in the evening"),
        Triple("She is allergic to latex", "Latex makes her ill", "She is not allergic to latex"),
        Triple("The parcel has arrived", "I got my delivery", "The parcel has not arrived"),
        Triple("I passed the exam", "My result was good enough", "I did not pass the exam"),
    ),
    ("English", "number"): (
        Triple("The exam is on 9 June", "I sit the paper on the ninth of June", "The exam is on 6 September"),
        Triple("The budget is 150 pounds", "I can spend £150", "The budget is 510 pounds"),
        Triple("We meet at 8:15", "The meeting starts at a quarter past eight", "We meet at 18:50"),
        Triple("My shoe size is 38", "I take a 38 in shoes", "My shoe size is 43"),
        Triple("Two people ride in the lift", "The lift carries a couple of persons", "Ten people ride in the lift"),
        Triple("I need 42 centimetres", "It has to be 42 cm long", "I need 24 centimetres"),
    ),
    ("English", "id"): (
        Triple("Where is order BX-2207?", "What became of parcel BX-2207?", "Where is order BX-2270?"),
        Triple("Ticket MR-4410 is open", "Nobody has closed MR-4410 yet", "Ticket MR-4401 is open"),
        Triple("The lift has the number L-319", "L-319 stands on our lift", "The lift has the number L-391"),
        Triple("Error E04 is on the display", "The screen shows E04", "Error E40 is on the display"),
        Triple("My candidate number is CN-70583", "I am candidate CN-70583", "My candidate number is CN-70538"),
        Triple("Please cancel booking QK-8831", "I don't want QK-8831 any more", "Please cancel booking QK-8813"),
    ),
    ("English", "name"): (
        Triple("Maeve likes green tea", "Green tea is what Maeve prefers", "Priya likes green tea"),
        Triple("Mr Osgood has the key", "Ask Mr Osgood to open the door", "Mr Bellamy has the key"),
        Triple("The parcel goes to York", "Send it to an address in York", "The parcel goes to Leeds"),
        Triple("Hazel is my tutor", "I am taught by Hazel", "Hannah is my tutor"),
        Triple("Anna lent Ben 50 pounds", "Ben owes Anna 50 pounds", "Ben lent Anna 50 pounds"),
        Triple("Colette signs the form", "The signature is Colette's", "Gwen signs the form"),
    ),
    ("Chinese", "negation"): (
        Triple("我吃鱼", "鱼我是可以的", "我不吃鱼"),
        Triple("空调能用了", "屋里又凉快了", "空调不能用了"),
        Triple("晚上可以给我打电话", "下班以后来电都行", "晚上别给我打电话"),
        Triple("她对乳胶过敏", "她一碰乳胶就起疹子", "她对乳胶不过敏"),
        Triple("包裹到了", "东西我收到了", "包裹没到"),
        Triple("我考过了", "成绩够上线了", "我没考过"),
    ),
    ("Chinese", "number"): (
        Triple("考试在6月9日", "六月九号我上考场", "考试在9月6日"),
        Triple("预算是150元", "我最多花一百五", "预算是510元"),
        Triple("我们8点15分见", "八点一刻碰头", "我们18点50分见"),
        Triple("我穿38码的鞋", "鞋子我要三十八号的", "我穿43码的鞋"),
        Triple("电梯里有两个人", "一共俩人在电梯里", "电梯里有十个人"),
        Triple("我需要42厘米的", "长度得有42公分", "我需要24厘米的"),
    ),
    ("Chinese", "id"): (
        Triple("订单BX-2207到哪了", "BX-2207那个包裹怎么样了", "订单BX-2270到哪了"),
        Triple("工单MR-4410还开着", "MR-4410没人关掉", "工单MR-4401还开着"),
        Triple("电梯编号是L-319", "我们那部电梯上写着L-319", "电梯编号是L-391"),
        Triple("屏幕上报错E04", "机器显示E04", "屏幕上报错E40"),
        Triple("我的准考证号是CN-70583", "考生CN-70583就是我", "我的准考证号是CN-70538"),
        Triple("请取消预约QK-8831", "QK-8831我不要了", "请取消预约QK-8813"),
    ),
    ("Chinese", "name"): (
        Triple("沈雨桐喜欢喝绿茶", "绿茶是沈雨桐的最爱", "罗建国喜欢喝绿茶"),
        Triple("王师傅有钥匙", "开门找王师傅", "李师傅有钥匙"),
        Triple("包裹寄到苏州", "收货地址在苏州", "包裹寄到兰州"),
        Triple("小康是我的老师", "教我的人是小康", "小周是我的老师"),
        Triple("小安借给小白五十块", "小白欠小安五十块", "小白借给小安五十块"),
        Triple("闻老师签字", "字由闻老师来签", "陈老师签字"),
    ),
}
