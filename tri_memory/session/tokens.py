"""How many tokens a text costs, without a tokenizer; and how many a model's context window holds.

A byte-level BPE tokenizer first cuts text into pieces (a word with the space before it, three digits, some marks) and
keeps a frequent piece whole. `estimate_tokens` cuts in nearly the same way with one regular expression and counts the
pieces, where one piece stands for one token. The sizes below were chosen on public conversations, reviews and source
code against o200k (GPT-4o and later), DeepSeek V4 and Qwen; the tests measure on other texts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from tri_memory.contracts import shown

# The longest piece that usually is one token, in characters.
SPACED_WORD = 12  # a word and the space before it: " conversation"
BARE_WORD = 8  # a word without one: the parts of camelCaseNames and snake_case_names
CAPITALS = 3
DIGITS = 3  # Qwen and Gemini pay for each digit: texts full of numbers cost them up to a third more
MARKS = 3  # punctuation: "):", "...", "！？"
RULE = 32  # a drawn line: "-----"
BLANKS = 32  # indentation and blank lines
CYRILLIC = 4
ARABIC = 3  # and Hebrew, Armenian, Syriac
GREEK = KANA = HANGUL = INDIC = 2  # INDIC reaches to Thai, Lao and Tibetan

# A Chinese character costs one token, unless it is one of these and follows another: then it mostly ends a word (是:
# 但是, 还是; 们: 我们) that is one token as a whole. Formal text is full of such words and chat is not, so one flat
# rate a character would be wrong for either. Chosen by what the three tokenizers save on reviews, news and MemoryBank.
HAN_WORD_ENDS = (
    "是个店的有么们务以间人错到了常能好来觉己得些一果样子要会然较为欢国时业于多次题者面理点道天本动格度过在话定家统"
    "现置候作行后上员种议友施法般望且力量事体生知容便年荐餐件展前情场济方用何说求西品什意境别择级际习心活示始位论影"
    "识持部程该费术化育视馆解备助他少民里下式实易分色住音区合近物续京谢诉直外趣导脑司计亮待供受二钟口够界通况准学修"
    "明器台此义史经虑字平验府代算绍长究象元盘响午央单系起户足片华像师院车乐产息言价划幕门观同步期馈众着决织想关高革"
)

_MARKS = rf"[!-/:-@\[-`{{-~\u2010-\u205e\u3001-\u303f\uff00-\uffef]{{1,{MARKS}}}[\r\n]{{0,4}}"
_OTHER_LETTERS = rf"""
    [\u01a0\u01a1\u01af\u01b0\u1ea0-\u1ef9]+[a-z]{{0,2}}  # the second half of a Vietnamese syllable
  | [\u00c0-\u024f\u0300-\u036f]
  | [\u0400-\u052f]{{1,{CYRILLIC}}}
  | [\u0370-\u03ff]{{1,{GREEK}}}
  | [\u0530-\u08ff]{{1,{ARABIC}}}
  | [\u0900-\u0fff]{{1,{INDIC}}}
"""
# The commonest first. The one group is around what costs two tokens: emoji and whatever is rare.
_PIECE = rf"""
    [\u4e00-\u9fff][{HAN_WORD_ENDS}]?
  | [ ](?: [A-Z]?[a-z]{{1,{SPACED_WORD - 1}}} | [A-Z]{{1,{CAPITALS}}} | {_MARKS} | {_OTHER_LETTERS} )
  | [a-z]{{1,{BARE_WORD}}}
  | [A-Z](?: [a-z]{{1,{BARE_WORD - 1}}} | [A-Z]{{0,{CAPITALS - 1}}} )
  | ['./][A-Z]?[a-z]{{1,{BARE_WORD}}}  # "'s", ".com", "/home"
  | \d{{1,{DIGITS}}}
  | [-=_*\#~.]{{4,{RULE}}}
  | {_MARKS}
  | \s{{1,{BLANKS}}}
  | ([\u1200-\u1cff\u3400-\u4dbf\ue000-\uf8ff\U00010000-\U0010ffff])
  | [\u3040-\u30ff]{{1,{KANA}}}
  | [\uac00-\ud7af]{{1,{HANGUL}}}
  | {_OTHER_LETTERS}
  | .
"""
_pieces = re.compile(_PIECE, re.VERBOSE | re.DOTALL).findall


def estimate_tokens(text: str) -> int:
    """About how many tokens a chat model's tokenizer makes of `text`: 0 for "", at least 1 for any other text.

    Mean error a turn on the kit's own conversations: English 4 % (o200k, DeepSeek) and 5 % (Qwen); Chinese 13 % (o200k,
    too low), 9 % (DeepSeek) and 8 % (Qwen). Tokenizers differ more than that among themselves: on Chinese, o200k spends
    20 to 35 % more than DeepSeek, and the old cl100k (GPT-4, GPT-3.5) 55 to 70 % more than this says. On very formal
    Chinese the estimate is up to 30 % above DeepSeek. Where a limit is hard, count with the model's own tokenizer.

    Linear in the length; any string is counted, lone surrogates and NUL included. Raises ValueError for anything else.

    >>> estimate_tokens("Hello, world!"), estimate_tokens("你好，世界！")
    (4, 4)
    """
    if not isinstance(text, str):
        raise ValueError(f"text must be a string; got {shown(text)}")
    found = _pieces(text)  # for each piece its two-token character, mostly ""
    return len(found) + len("".join(found))


# Published context windows, input and output together, as of 2026-11-30: tokens, then the beginnings of model names;
# the longest that fits wins. Where the members of a family, or the hosts that serve it, differ, the smaller figure
# stands. A server may be started with less (Ollama's num_ctx): then say so in MODEL_CONTEXT_TOKENS.
_WINDOWS = {
    4_096: "llama-2 deepseek-llm",
    8_192: "gpt-4 llama-3 gemma chatglm moonshot-v1",
    16_384: "gpt-3.5 gpt-35 deepseek-coder",
    32_768: "gpt-4-32k gemma-3-1b gemma-3n qwen qwq mistral mixtral codestral moonshot-v1-32k",
    65_536: "glm-4.5v mixtral-8x22b",
    100_000: "claude-2.0 claude-instant",
    128_000: "gpt-4-0125 gpt-4-1106 gpt-4-turbo gpt-4.5 gpt-4o chatgpt-4o gpt-5-chat gpt-5.1-chat gpt-5.2-chat gpt-5.3 "
    "gpt-oss o1-mini o1-preview gemma-3 gemma-4 deepseek deepseek-coder-v2 glm-4 glm-4.6v glm-4.7-flash llama-3.1 "
    "llama-3.2 llama-3.3 llama-4 mistral-large mistral-medium mistral-nemo ministral magistral devstral grok",
    131_072: "qwen-plus qwen-turbo kimi-k2 moonshot-v1-128k",
    196_608: "minimax-m2",
    200_000: "o1 o3 o4 claude glm-4.6 glm-4.7 glm-5",
    262_144: "qwen3-coder qwen3-max qwen3-next qwen3.5 qwen3.6 qwen3.7 qwen3.8 kimi-k2-0905 kimi-k2-thinking kimi-k2.5 "
    "kimi-k2.6 kimi-k2.7",
    400_000: "gpt-5 gpt-5.4",
    1_000_000: "claude-opus-4-6 claude-opus-4-7 claude-opus-4-8 claude-opus-5 claude-sonnet-4-6 claude-sonnet-5 "
    "claude-haiku-5 claude-fable qwen-flash deepseek-v4 glm-5.2 glm-5.3 kimi-k3",
    1_047_576: "gpt-4.1",
    1_048_576: "gemini-1.5 gemini-2 gemini-3 gemini-4 gemini-flash gemini-pro-latest",
    1_050_000: "gpt-5.5 gpt-5.6 gpt-6",
}
_WINDOW_OF = {name.replace("-", ""): tokens for tokens, names in _WINDOWS.items() for name in names.split()}


def context_tokens(model: str | None = None, env: Mapping[str, str] | None = None) -> int | None:
    """How many tokens the model's context window holds; None where nobody knows (then compress by count of turns).

    `MODEL_CONTEXT_TOKENS` in `env` (default: the process environment) is believed first: `131072`, `128_000`, `128k`
    (128,000). Next comes the table, by `model` or else by `OPENAI_MODEL` in `env`; upper case and a provider's prefix
    are forgiven. Raises ValueError, quoting it, for a `MODEL_CONTEXT_TOKENS` that is no positive number.

    >>> context_tokens("openai/GPT-4o-mini", env={}), context_tokens("llama3.1:8b", env={"MODEL_CONTEXT_TOKENS": "8k"})
    (128000, 8000)
    """
    env = os.environ if env is None else env
    stated = env.get("MODEL_CONTEXT_TOKENS", "").strip()
    if stated:
        return _stated_window(stated)
    name = env.get("OPENAI_MODEL", "") if model is None else model
    if not isinstance(name, str):
        raise ValueError(f"model must be a model's name, such as 'gpt-4o-mini', or None; got {shown(name)}")
    return _published_window(name)


def _stated_window(stated: str) -> int:
    number = re.fullmatch(r"(\d[\d_,]{0,15}) ?([km]?)", stated.lower())
    tokens = int(re.sub("[_,]", "", number[1])) * {"": 1, "k": 1_000, "m": 1_000_000}[number[2]] if number else 0
    if tokens < 1:
        raise ValueError(
            f"MODEL_CONTEXT_TOKENS must be a positive number of tokens, such as 128000 or 128k; got {shown(stated)}"
        )
    return tokens


def _published_window(name: str) -> int | None:
    """The window of the longest name in the table that `name`, without its provider, begins with."""
    bare = name.lower().rsplit("/", 1)[-1].strip().replace("-", "").replace("_", "")
    # "ft:gpt-4o:…" and Bedrock's "us.anthropic.claude-…" have more before the name than a path
    for start in (match.end() for match in re.finditer(r"^|[.:]", bare)):
        part = bare[start:].removeprefix("meta")
        known = [beginning for beginning in _WINDOW_OF if part.startswith(beginning)]
        if known:
            return _WINDOW_OF[max(known, key=len)]
    return None
