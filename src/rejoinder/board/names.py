"""Names of people, teams and competitions: short, printable, and the same however they are typed."""

import re
import unicodedata

from rejoinder.errors import UserError
from rejoinder.files import printable

_NAME = re.compile(r"[^\W_][\w .+'-]*")
LONGEST = 40


def clean_name(text: str, what: str) -> str:
    """Return a name in its normal form; it starts with a letter or digit, so that no table takes it for a formula."""
    name = " ".join(unicodedata.normalize("NFKC", text).split())
    if not 2 <= len(name) <= LONGEST or not _NAME.fullmatch(name):
        raise UserError(
            f"{what}: expected 2 to {LONGEST} letters, digits, spaces or . _ + ' -, with a letter or digit first"
        )
    return name


def key_of(name: str) -> str:
    """Return a name as it is compared: two that differ in letter case, width or white space alone are one."""
    return " ".join(unicodedata.normalize("NFKC", name).split()).casefold()


def slug_of(name: str, taken: set[str]) -> str:
    """Return a name for an address that is not taken yet."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:LONGEST] or "x"
    numbered = (slug if number == 1 else f"{slug}-{number}" for number in range(1, len(taken) + 2))
    return next(each for each in numbered if each not in taken)


def clean_filename(text: str) -> str:
    """Return the last part of a file's name without what cannot be printed; it is shown and never opened."""
    last = re.split(r"[/\\]", text)[-1]
    return printable(last[:100]) or "run"
