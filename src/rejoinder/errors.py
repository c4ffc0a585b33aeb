"""The one kind of error that is the user's to mend."""


class UserError(ValueError):
    """A mistake that the person at the keyboard can mend; the command line shows it as one line."""
