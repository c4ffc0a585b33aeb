"""Columns for Movie Dialog's break-downs (Dodge et al. 2016): question class (table 8), entity match (table 10)."""

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rejoinder.corpora.entities import Parser
from rejoinder.corpora.films import RELATIONS, KnowledgeBase
from rejoinder.corpora.ragged import Ints, Numbers
from rejoinder.corpora.tokens import tokenise

CLASSES = {
    ("directed_by", True): "movie to director",
    ("written_by", True): "movie to writer",
    ("starred_actors", True): "movie to actors",
    ("release_year", True): "movie to year",
    ("has_genre", True): "movie to genre",
    ("has_tags", True): "movie to tags",
    ("in_language", True): "movie to language",
    ("has_imdb_rating", True): "movie to rating",
    ("has_imdb_votes", True): "movie to votes",
    ("directed_by", False): "director to movie",
    ("written_by", False): "writer to movie",
    ("starred_actors", False): "actor to movie",
    ("has_tags", False): "tag to movie",
}
"""The classes of table 8, and two more of the official files, by relation and whether a film is asked about."""

LATER = 3
"""The third and all later responses of a discussion are one group (table 10)."""

_BATCH = 20_000
_CUES = {
    "directed_by": r"direct|film-?maker",
    "written_by": r"writ|wrote|screen ?play|author|script|penned",
    "starred_actors": r"\bact|\bstar|appear|\bcast\b|\bplay",
    "release_year": r"year|when|releas|\bdate",
    "has_genre": r"genre|type of|kind of|sort of|what type|what kind",
    "has_tags": r"about|describ|topic|words|tag|theme|relat|deal",
    "in_language": r"language|spoken|speak",
    "has_imdb_rating": r"rating|rated|how good|opinion|popular|like it|think",
    "has_imdb_votes": r"votes|popular|famous|well.known|known",
}
_CUE = {relation: re.compile(words, re.IGNORECASE) for relation, words in _CUES.items()}


Way = tuple[str, int]
"""A class of questions, and the entity that is asked about."""


def question_classes(
    kb: KnowledgeBase, parser: Parser, questions: Sequence[str], answers: Sequence[Sequence[str]]
) -> list[str | None]:
    """Say of which class each question is; None: of no class."""
    return [None if way is None else way[0] for way in question_ways(kb, parser, questions, answers)]


def question_ways(
    kb: KnowledgeBase, parser: Parser, questions: Sequence[str], answers: Sequence[Sequence[str]]
) -> list[Way | None]:
    """Find the way through the knowledge base from an entity of each question that best leads to its answers.

    Where two ways lead there (people who direct what they write), the question's own words decide. None: no way.
    """
    mentioned = _mentions(parser, questions)
    return [
        _way(kb, question, found, {kb.numbers.get(answer, -1) for answer in given})
        for question, found, given in zip(questions, mentioned, answers, strict=True)
    ]


def _mentions(parser: Parser, texts: Sequence[str]) -> list[list[int]]:
    """Return the entities that start at any word of each text, all of a symbol."""
    tokens = tokenise(texts)
    _, symbols = parser.match(tokens.starts, parser.numbers(tokens))
    places = np.flatnonzero(symbols >= 0)
    bounds = np.searchsorted(places, tokens.starts).tolist()
    members = parser.members.take(symbols[places])
    edges = members.starts[bounds].tolist()
    flat = members.values.tolist()
    return [flat[start:end] for start, end in pairwise(edges)]


def _way(kb: KnowledgeBase, question: str, entities: Sequence[int], answers: set[int]) -> Way | None:
    best, chosen = (0.0, False, 0.0), None
    for entity in entities:
        rest = question.replace(kb.entities[entity], "")  # "who wrote Directed by John Ford?" asks for a writer
        for (relation, forward), name in CLASSES.items():
            index = kb.forward if forward else kb.backward
            found = index[entity * len(RELATIONS) + RELATIONS.index(relation)]
            common = len(answers.intersection(found.tolist())) if len(found) else 0
            if not common:
                continue
            cued = _CUE[relation].search(rest) is not None
            quality = (common / len(answers), cued, common / len(found))
            if quality > best:
                best, chosen = quality, (name, entity)
    return chosen


def match_names(parser: Parser, inputs: Sequence[str], replies: Sequence[str]) -> list[str]:
    """Return the column of table 10: `matched` where entities match, else `other`."""
    return ["matched" if hit else "other" for hit in entity_matches(parser, inputs, replies)]


def entity_matches(parser: Parser, inputs: Sequence[str], replies: Sequence[str]) -> list[bool]:
    """Say where two different entities stand, one in the input and one in the reply (section 2.4).

    Everyday words are titles and tags too (`Up`, `great`), so that an entity counts only where it is written like its
    name, has a capital letter or a figure, and is written so in most places where its symbol is found in these texts.
    """
    everywhere = np.zeros(parser.symbols, np.int64)
    sides = [_names(parser, texts, everywhere) for texts in (inputs, replies)]
    so_written = np.bincount(np.concatenate([symbols for _, symbols, _ in sides]), minlength=parser.symbols)
    usual = 2 * so_written > everywhere
    found: list[list[set[int]]] = []
    for texts, symbols, entities in sides:
        sets: list[set[int]] = [set() for _ in inputs]
        for text, entity in zip(texts[usual[symbols]].tolist(), entities[usual[symbols]].tolist(), strict=True):
            sets[text].add(entity)
        found.append(sets)
    return [bool(one and other) and len(one | other) > 1 for one, other in zip(*found, strict=True)]


def _names(parser: Parser, texts: Sequence[str], everywhere: Ints) -> tuple[Ints, Numbers, Numbers]:
    """Return which text has which symbol and entity written like a name; add up how often symbols are found at all."""
    parts = []
    for start in range(0, len(texts), _BATCH):
        parsed = parser.parse(texts[start : start + _BATCH])
        everywhere += np.bincount(parsed.symbols[parsed.symbols >= 0], minlength=parser.symbols)
        named = parsed.exact & parser.capital[parsed.entities]
        owner = start + np.repeat(np.arange(len(parsed)), np.diff(parsed.starts))
        parts.append((owner[named], parsed.symbols[named], parsed.entities[named]))
    owners, symbols, entities = (np.concatenate(column) for column in zip(*parts, strict=True))
    return owners, symbols, entities
