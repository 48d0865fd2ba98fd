"""The words that weigh nothing in a question about what was said, in English and Chinese.

English as whole words; Chinese as a pattern with the longer ones first, since nothing parts one word from the next.
What reports speech (say, tell, 说过, 记得) is among them: every question about a conversation has it.
"""

from __future__ import annotations

import re

ENGLISH = frozenset(
    """
    a an the and or but if so as at by for from in into of off on onto out over to up with about than then that
    this these those there here it its i me my mine we us our you your yours he him his she her they them their
    am is are was were be been being do does did done has have had having will would shall should can could may
    might must what which who whom whose when where why how please tell remind again ever just also too very not no
    yes ok okay hi hello thanks s t ll ve re d m i'm i've i'd i'll you're you've it's that's what's don't can't
    got get gets let go going went one ones any some much many remember recall know said say says told ask asked
    sort kind thing things still now
""".split()
)
CHINESE = re.compile(
    "什么时候|为什么|怎么样|是不是|有没有|能不能|记不记得|多少|几多|什么|怎么|哪里|哪儿|哪个|哪样|哪天|哪位|哪种|"
    "哪款|哪些|请问|告诉|记得|还是|一下|来着|咱们|我们|你们|他们|她们|自己|这个|那个|那些|这些|现在|之前|当时|"
    "上次|上回|那回|那次|到底|就是|应该|可以|需要|知道|说过|提过|讲过|一个|"
    "[我你您他她它的了吗呢吧呀啊哦嘛是在有和跟与及把被给让叫要会能可也都就还又再很最太多几哪谁这那个些么说讲得地着过来]|"
    "[去到从对向为没不]"
)
