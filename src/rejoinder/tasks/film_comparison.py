"""Compare generated film dialogues with official ones: length, answers, words, forms, classes of questions."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from pathlib import Path

import msgspec
import polars as pl

from rejoinder.corpora.entities import Parser
from rejoinder.corpora.films import KnowledgeBase
from rejoinder.corpora.tokens import tokenise
from rejoinder.tasks.film_groups import question_classes
from rejoinder.tasks.film_transfer import Source
from rejoinder.tasks.moviedialog import read_exchanges

MOST = 10_000
"""So many messages are looked at."""
_LIST = re.compile(r"\[\](?:(?: ,)?(?: and)? \[\])+")


class Profile(msgspec.Struct, frozen=True):
    """What some messages look like."""

    messages: int
    words_per_message: float
    entities_per_message: float
    answers_per_message: float
    words: frozenset[str]
    """The distinct words that are part of no entity."""
    forms: Counter[str]
    """Messages with every entity, or list of entities, replaced by `[]`."""
    classes: Counter[str]


def profile(parser: Parser, messages: Sequence[str], answers: Iterable[int], classes: Iterable[str | None]) -> Profile:
    """Describe messages."""
    tokens = tokenise(messages)
    parsed, places = parser.parse_tokens(tokens)
    words = tokens.lower().gather(tokens.codes[places]).to_list()
    items = ["[]" if symbol >= 0 else word for symbol, word in zip(parsed.symbols.tolist(), words, strict=True)]
    bounds = parsed.starts.tolist()
    forms = Counter(_LIST.sub("[]", " ".join(items[start:end])) for start, end in pairwise(bounds))
    count = max(len(messages), 1)
    return Profile(
        len(messages),
        len(tokens) / count,
        items.count("[]") / count,
        sum(answers) / count,
        frozenset(item for item in items if item != "[]"),
        forms,
        Counter(name for name in classes if name),
    )


def profile_file(source: Source, kb: KnowledgeBase, parser: Parser) -> Profile:
    """Describe the first exchanges of an official file."""
    read = read_exchanges(source.path, frozenset(kb.entities), whole=source.task == 4)
    exchanges = list(islice(read, MOST))
    messages, answers = [e.message for e in exchanges], [e.answers for e in exchanges]
    classes = question_classes(kb, parser, messages, answers) if source.task == 1 else ()
    return profile(parser, messages, map(len, answers), classes)


def profile_task(folder: Path, parser: Parser) -> Profile:
    """Describe the first examples of a task folder."""
    examples = pl.scan_parquet(folder / "examples.parquet").head(MOST)
    table = examples.select(
        pl.col("turns").list.last().struct.field("text"), pl.col("correct").list.len().alias("answers")
    ).collect()
    groups = pl.read_parquet(folder / "groups.parquet").head(MOST)
    classes = groups["question"] if "question" in groups.columns else ()
    return profile(parser, table["text"].to_list(), table["answers"], classes)


def compare(generated: Profile, official: Profile) -> dict[str, tuple[str, str]]:
    """Return the rows of a table: property, generated, official."""
    figures = {
        "messages looked at": (f"{generated.messages:,}", f"{official.messages:,}"),
        "words per message": (f"{generated.words_per_message:.1f}", f"{official.words_per_message:.1f}"),
        "entities per message": (f"{generated.entities_per_message:.1f}", f"{official.entities_per_message:.1f}"),
        "answers per message": (f"{generated.answers_per_message:.2f}", f"{official.answers_per_message:.2f}"),
        "distinct words outside entities": (f"{len(generated.words):,}", f"{len(official.words):,}"),
        "of these, the other has too": (
            _shared(generated.words, official.words),
            _shared(official.words, generated.words),
        ),
        "distinct forms": (f"{len(generated.forms):,}", f"{len(official.forms):,}"),
        "messages in a form that the other has": (
            _covered(generated.forms, official.forms),
            _covered(official.forms, generated.forms),
        ),
    }
    for name in sorted(generated.classes | official.classes):
        figures[name] = (_part(generated.classes, name), _part(official.classes, name))
    return figures


def _shared(words: frozenset[str], others: frozenset[str]) -> str:
    return f"{len(words & others) / max(len(words), 1):.1%}"


def _covered(forms: Counter[str], others: Counter[str]) -> str:
    return f"{sum(count for form, count in forms.items() if form in others) / max(forms.total(), 1):.1%}"


def _part(classes: Counter[str], name: str) -> str:
    return f"{classes[name] / max(classes.total(), 1):.1%}"
