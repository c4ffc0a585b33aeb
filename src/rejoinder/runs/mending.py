"""Mistakes in a run that lenient reading mends, and says so."""

from rejoinder.files import BadInputError
from rejoinder.text import counted


def mend(lenient: bool, notes: list[str], error: BadInputError, mended: str) -> None:
    """Note what was done about a mistake, or refuse it."""
    if not lenient:
        raise error
    notes.append(f"{error}: {mended}")


def shortened(notes: list[str], most: int = 10) -> tuple[str, ...]:
    """Return the first notes, and how many more there are."""
    more = (f"and {counted(len(notes) - most, 'more such mistake')}",) if len(notes) > most else ()
    return (*notes[:most], *more)
