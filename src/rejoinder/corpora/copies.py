"""Messages that stand in two logs: the same hours of a channel may come from two sources, under two names."""

from collections.abc import Sequence

from rejoinder.corpora.irc import Post

ROW = 5
"""So many messages in a row, by the same people, are no chance; fewer may be, or were sent to two channels."""


class Copies:
    """Knows the messages of all logs so far."""

    def __init__(self) -> None:
        self._rows: set[int] = set()

    def find(self, posts: Sequence[Post]) -> set[int]:
        """Return the lines of a log's messages that an earlier log has too; from now on this one counts as well."""
        said = [(post.nick, post.text) for post in posts]
        rows = [hash(tuple(said[first : first + ROW])) for first in range(len(said) - ROW + 1)]
        known = [first for first, row in enumerate(rows) if row in self._rows]
        self._rows.update(rows)
        return {post.line for first in known for post in posts[first : first + ROW]}
