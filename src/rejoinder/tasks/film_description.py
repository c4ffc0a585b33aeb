"""What `rejoinder build movies` says of what it built."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from rejoinder.corpora.entities import Parser
from rejoinder.corpora.films import KnowledgeBase
from rejoinder.tasks.description import write_description
from rejoinder.tasks.film_comparison import compare, profile_file, profile_task
from rejoinder.tasks.film_transfer import Source


class FilmDescription(msgspec.Struct):
    """How many examples each task has, and how they compare with official files, by the files' names."""

    films: int
    facts: int
    entities: int
    users: int
    tasks: dict[str, int]
    comparisons: dict[str, dict[str, tuple[str, str]]]
    """Property: generated, official."""


def compare_files(out: Path, official: Sequence[Source], kb: KnowledgeBase) -> dict[str, dict[str, tuple[str, str]]]:
    """Compare the training data of each task with the official files of that task."""
    parser = Parser(kb.entities, kb.rank)
    return {
        source.path.name: compare(
            profile_task(out / f"task_{source.task}" / "train", parser), profile_file(source, kb, parser)
        )
        for source in official
        if (out / f"task_{source.task}" / "train").is_dir()
    }


def describe_films(out: Path, description: FilmDescription) -> None:
    """Write `description.json` and `description.md`."""
    write_description(out, description, _markdown(description))


def _markdown(description: FilmDescription) -> Iterator[str]:
    yield "# movies\n"
    yield "| source | count |\n|---|---|"
    for name in ("films", "facts", "entities", "users"):
        yield f"| {name} | {getattr(description, name):,} |"
    yield "\n| task | examples |\n|---|---|"
    yield from (f"| {name} | {count:,} |" for name, count in description.tasks.items())
    for file, figures in description.comparisons.items():
        yield f"\n| {file} | generated | official |\n|---|---|---|"
        yield from (f"| {name} | {made} | {given} |" for name, (made, given) in figures.items())
    yield ""
