"""The guard rails that every preference engine shares: what a key and a value look like before they are stored."""

from __future__ import annotations

import unicodedata

import regex

from tri_memory.contracts import refuse_surrogates, shown

LONGEST_KEY = 50
LONGEST_VALUE = 500

_BREAKS = regex.compile(r"[\t\n\v\f\r\x85\u2028\u2029]+")
# What prints nothing: controls, zero-width spaces, direction marks, tags; but emoji need their variation selectors.
_INVISIBLE = regex.compile(r"[\p{Cc}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb--[\u200d\ufe00-\ufe0f]]", regex.V1)
# A zero-width joiner belongs between two pictures (a family is one emoji); anywhere else it only hides something.
_STRAY_JOINER = regex.compile(
    r"(?<![\p{Extended_Pictographic}\ufe0f\p{EMod}])\u200d|\u200d(?!\p{Extended_Pictographic})"
)
_GRAPHEME = regex.compile(r"\X")


def clean(key: str, value: str) -> tuple[str, str] | None:
    """Key and value as they are stored, or None where one of them is blank: then nothing is stored.

    Both: NFC, invisible characters removed, line breaks and tabs become one space, trimmed, cut to 50 and 500 code
    points but not through a grapheme. Raises ValueError for what is not a string or has a lone surrogate.
    """
    tidy_key = clean_text("key", key, LONGEST_KEY)
    tidy_value = clean_text("value", value, LONGEST_VALUE)
    return (tidy_key, tidy_value) if tidy_key and tidy_value else None


def clean_key(key: str) -> str:
    """The form under which `key` is stored; "" for a blank one."""
    return clean_text("key", key, LONGEST_KEY)


def clean_text(name: str, text: str, longest: int) -> str:
    """`text` tidied and cut to at most `longest` code points."""
    if not isinstance(text, str):
        raise ValueError(f"{name} must be a string; got {shown(text)}")
    refuse_surrogates(name, text)
    text = _INVISIBLE.sub("", _BREAKS.sub(" ", text)).strip()
    text = unicodedata.normalize("NFC", text[: 8 * longest])  # on a long run of accents its time grows with the square
    text = _STRAY_JOINER.sub("", text).strip()
    return cut(unicodedata.normalize("NFC", text), longest)


def cut(text: str, longest: int) -> str:
    """The longest run of whole graphemes within `longest` code points.

    A single grapheme beyond that, such as a letter under hundreds of accents, is cut at a code point.
    """
    if len(text) <= longest:
        return text
    end = 0
    for grapheme in _GRAPHEME.finditer(text, endpos=longest + 64):
        if grapheme.end() > longest:
            break
        end = grapheme.end()
    return text[: end or longest].rstrip()
