"""Text in any language: its tokens, whether it is Chinese, and how many of a thing there are."""

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

HAN = "㐀-鿿"
"""Chinese characters, as a part of a pattern's brackets."""
WORD_OR_MARK = r"\w+|[^\w\s]"
"""A pattern, of Python's and of polars', by which a stretch of Chinese is one word."""
TOKEN = rf"[{HAN}]|[^\W{HAN}]+|[^\w\s]"
"""Nearly what `tokens` finds, as a pattern of polars', to which signs that stand with a letter are parts of its word.

Numbers such as `²` are marks to polars and parts of a word to Python, and signs without a letter begin a word.
"""

_MARK = r"|[^\w\s]"
_JOINERS = "\u200c\u200d"
_CHINESE = re.compile(f"[{HAN}]")
_LETTER = re.compile(r"[^\W\d_]")


def counted(number: int, noun: str) -> str:
    """Return a number of things in words: `1 dialogue`, `1,200 dialogues`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def lowered(text: str) -> str:
    """Return a text in lower case, and with each accent as a part of its letter however it was typed (NFC)."""
    return unicodedata.normalize("NFC", text).lower()


def words(text: str) -> list[str]:
    """Split into words and Chinese characters, in lower case."""
    return _pattern("").findall(lowered(text))


def tokens(text: str) -> list[str]:
    """Split into words, Chinese characters and marks, in lower case.

    Others split otherwise, with reason: `word_vectors` Chinese by jieba, since vectors are of words; `systems.words`
    leaves marks out, which say nothing in retrieval; `link_lexicon` keeps nicks, paths and commands whole.
    """
    return _pattern(_MARK).findall(lowered(text))


def stretches(text: str) -> list[str]:
    """Split into words, marks and whole stretches of Chinese, in lower case."""
    return _pattern(_MARK, chinese="+").findall(lowered(text))


@cache
def _pattern(more: str, chinese: str = "") -> re.Pattern[str]:
    """Return a pattern of words; Python's `\\w` lacks what stands with a letter.

    Hindi's vowels do (Unicode's M), and the joiners of Persian and Sinhala. Python is slow to tell whether a letter is
    among some of which one lies beyond the basic plane, so these are asked about only where one of those is next.
    """
    near, far = _signs(0x300, 0x10000) + _JOINERS, _signs(0x10000, 0x20000)
    sign = rf"[{near}]+|(?=[\U00010000-\U0001ffff])[{far}]+"
    return re.compile(rf"[{HAN}]{chinese}|[^\W{HAN}]+(?:(?:{sign})[^\W{HAN}]*)*{more}")


@cache
def _signs(first: int, end: int) -> str:
    return "".join(sign for sign in map(chr, range(first, end)) if unicodedata.category(sign).startswith("M"))


def is_chinese(texts: Iterable[str]) -> bool:
    """Whether at least half of the letters are Chinese characters."""
    chinese = letters = 0
    for text in texts:
        chinese += len(_CHINESE.findall(text))
        letters += len(_LETTER.findall(text))
    return letters > 0 and 2 * chinese >= letters
