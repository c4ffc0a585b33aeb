"""Text in any language: its tokens, and whether it is Chinese."""

import re
from collections.abc import Iterable

_TOKEN = re.compile(r"[㐀-鿿]|[^\W㐀-鿿]+|[^\w\s]")
_CHINESE = re.compile(r"[㐀-鿿]")
_LETTER = re.compile(r"[^\W\d_]")


def tokens(text: str) -> list[str]:
    """Split into words, Chinese characters and marks, in lower case."""
    return _TOKEN.findall(text.lower())


def is_chinese(texts: Iterable[str]) -> bool:
    """Whether at least half of the letters are Chinese characters."""
    chinese = letters = 0
    for text in texts:
        chinese += len(_CHINESE.findall(text))
        letters += len(_LETTER.findall(text))
    return letters > 0 and 2 * chinese >= letters
