"""A small phrase grammar: `[a|b|]` chooses, `<2-9>` is a number, `{name}` a slot, `{@name}` a macro.

A slot keeps its value for the whole conversation; a number and a macro are drawn afresh at every use.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_NUMBER = re.compile(r"<(\d+)-(\d+)>")
_SHORT = {
    "you": "u",
    "are": "r",
    "please": "plz",
    "because": "cuz",
    "thanks": "thx",
    "with": "w/",
    "what": "wat",
    "don't": "dont",
    "can't": "cant",
    "won't": "wont",
    "doesn't": "doesnt",
    "that's": "thats",
    "it's": "its",
    "really": "rly",
    "something": "smth",
    "people": "ppl",
    "before": "b4",
    "and": "n",
    "about": "abt",
    "message": "msg",
}


class Template:
    """A phrase with choices, compiled once so that one use costs one random number per choice."""

    __slots__ = ("parts",)

    def __init__(self, text: str) -> None:
        pieces = _CHOICE.split(_NUMBER.sub(r"{#\1-\2}", text))
        # re.split puts what the group caught at the odd places
        options = [tuple(piece.split("|")) if i % 2 else (piece,) for i, piece in enumerate(pieces)]
        self.parts: tuple[tuple[str, ...], ...] = tuple(option for option in options if option != ("",))

    def draw(self, random: Callable[[], float]) -> str:
        """Return the phrase with its choices made and its slots still open."""
        parts = self.parts
        return "".join([p[0] if len(p) == 1 else p[int(random() * len(p))] for p in parts])


def compiled(kind: type, text: str) -> Template:
    """Make msgspec read a string as a template (its `dec_hook`)."""
    return Template(text)


class Slots(dict[str, str]):
    """What fills the slots of one conversation, drawn when first needed."""

    __slots__ = ("case", "common", "macros", "random")

    def __init__(
        self,
        rng: Random,
        case: Mapping[str, Template],
        common: Mapping[str, Template],
        macros: Mapping[str, Template],
    ) -> None:
        super().__init__()
        self.random, self.case, self.common, self.macros = rng.random, case, common, macros

    def __missing__(self, key: str) -> str:
        if key[0] == "#":
            low, count = _span(key)
            return str(low + int(self.random() * count))
        if key[0] == "@":
            return self.fill(self.macros[key[1:]])
        value = self[key] = self.fill(self.case.get(key) or self.common[key])
        return value

    def fill(self, template: Template) -> str:
        """Return the phrase complete."""
        text = template.draw(self.random)
        return text.format_map(self) if "{" in text else text


@cache
def _span(key: str) -> tuple[int, int]:
    low, high = key[1:].split("-")
    return int(low), int(high) - int(low) + 1


def pick(random: Callable[[], float], options: Sequence[Template]) -> Template:
    """Choose one of the templates."""
    return options[int(random() * len(options))]


def tidy(text: str) -> str:
    """Remove what empty choices leave behind: doubled spaces and commas, spaces before them."""
    text = " ".join(text.split())
    return text.replace(" ,", ",").replace(",,", ",").replace(" ?", "?").replace("?.", "?").strip(", ")


def shorten(text: str) -> str:
    """Write the way people in a hurry do."""
    return " ".join([_SHORT.get(word, word) for word in text.split(" ")])


def mistype(text: str, random: Callable[[], float]) -> str:
    """Swap, drop or double one letter, unless chance points between words."""
    if len(text) < 4:
        return text
    at = 1 + int(random() * (len(text) - 3))
    if not text[at : at + 2].isalpha():
        return text
    kind = random()
    if kind < 0.5:
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
    return text[:at] + (text[at + 1 :] if kind < 0.8 else text[at] + text[at:])
