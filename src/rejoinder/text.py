"""Text in any language: its tokens, whether it is Chinese, and how many of a thing there are."""

import re
from collections.abc import Iterable

HAN = "㐀-鿿"
"""Chinese characters, as a part of a pattern's brackets."""
WORD_OR_MARK = r"\w+|[^\w\s]"
"""A pattern, of Python's and of polars', by which a stretch of Chinese is one word."""

_TOKEN = re.compile(rf"[{HAN}]|[^\W{HAN}]+|[^\w\s]")
_CHINESE = re.compile(f"[{HAN}]")
_LETTER = re.compile(r"[^\W\d_]")


def counted(number: int, noun: str) -> str:
    """Return a number of things in words: `1 dialogue`, `1,200 dialogues`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def tokens(text: str) -> list[str]:
    """Split into words, Chinese characters and marks, in lower case.

    Others split otherwise, with reason: `word_vectors` Chinese by jieba, since vectors are of words; `systems.words`
    leaves marks out, which say nothing in retrieval; `link_lexicon` keeps nicks, paths and commands whole.
    """
    return _TOKEN.findall(text.lower())


def is_chinese(texts: Iterable[str]) -> bool:
    """Whether at least half of the letters are Chinese characters."""
    chinese = letters = 0
    for text in texts:
        chinese += len(_CHINESE.findall(text))
        letters += len(_LETTER.findall(text))
    return letters > 0 and 2 * chinese >= letters
