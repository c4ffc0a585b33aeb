"""Task 1 (Dodge et al. 2016, section 2.1): questions of eleven classes about all of a knowledge base.

Patterns are learned from annotated questions, in which the entity stands in brackets (`who directed [Alien]`, TAB,
answers parted by `|`): the entity is taken out, and any other of its kind put in. Every question that the knowledge
base can answer is asked once, so that splits share no question; their answers are complete.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from rejoinder.corpora.entities import Parser
from rejoinder.corpora.films import RELATIONS, KnowledgeBase
from rejoinder.corpora.ragged import Ints
from rejoinder.files import BadInputError, read_lines
from rejoinder.tasks.film_groups import CLASSES, question_classes, question_ways
from rejoinder.tasks.film_templates import QUESTIONS
from rejoinder.tasks.moviedialog import read_exchanges

ASKED = {name: way for way, name in CLASSES.items() if name in QUESTIONS}
"""The eleven classes of table 8, with their relation and whether a film is asked about."""

Patterns = dict[str, Counter[str]]
"""For each class the patterns, `[]` for the entity, and how often each was used."""


class Questions(msgspec.Struct, frozen=True):
    """Questions by number: of which class, about which entity."""

    class_: Ints
    entity: Ints

    def __len__(self) -> int:
        return len(self.entity)

    def take(self, chosen: Ints) -> "Questions":
        """Return some of them."""
        return Questions(self.class_[chosen], self.entity[chosen])

    def keys(self, kb: KnowledgeBase) -> Ints:
        """Return one number for each question, the same for the same one."""
        return self.class_ * len(kb) + self.entity


def packaged_patterns() -> Patterns:
    """Return the patterns that come with the package, each as likely as another."""
    return {name: Counter(patterns) for name, patterns in QUESTIONS.items()}


def read_patterns(path: Path, kb: KnowledgeBase, parser: Parser) -> Patterns:
    """Learn patterns from annotated questions; those of no known class are passed over."""
    patterns, questions, answers = [], [], []
    for number, line in read_lines(path):
        matched = re.fullmatch(r"([^\t]*)\[(.+)\]([^\t]*)\t(.+)", line)
        if line.strip() and not matched:
            problem = "expected a question with an entity in brackets, a TAB and answers parted by |"
            raise BadInputError(path, problem, f"line {number}")
        if matched:
            before, name, after, given = matched.groups()
            patterns.append(f"{before}[]{after}")
            questions.append(f"{before}{name}{after}")
            answers.append(given.split("|"))
    learned: Patterns = {name: Counter() for name in ASKED}
    for pattern, name in zip(patterns, question_classes(kb, parser, questions, answers), strict=True):
        if name in learned:
            learned[name][pattern] += 1
    if not any(learned.values()):
        raise BadInputError(path, "holds no question that the knowledge base can answer")
    return {name: found for name, found in learned.items() if found}


def question_keys(path: Path, kb: KnowledgeBase, parser: Parser) -> Iterator[int]:
    """Yield what an official file asks, as `Questions.keys` numbers it."""
    exchanges = list(read_exchanges(path, frozenset(kb.entities)))
    places = {name: place for place, name in enumerate(ASKED)}
    ways = question_ways(kb, parser, [one.message for one in exchanges], [one.answers for one in exchanges])
    yield from (places[way[0]] * len(kb) + way[1] for way in ways if way and way[0] in places)


def all_questions(kb: KnowledgeBase, patterns: Patterns) -> Questions:
    """Return every question that can be asked and answered."""
    entities, classes = [], []
    for place, (name, (relation, forward)) in enumerate(ASKED.items()):
        if name in patterns:
            index = kb.forward if forward else kb.backward
            found = np.flatnonzero(index.lengths[RELATIONS.index(relation) :: len(RELATIONS)])
            entities.append(found)
            classes.append(np.full(len(found), place))
    return Questions(np.concatenate(classes), np.concatenate(entities))


def mixed(questions: Questions, patterns: Patterns, wanted: int, rng: np.random.Generator) -> Questions:
    """Return `wanted` questions with the classes' mix of the annotations, or all if there are no more."""
    weight = np.array([patterns.get(name, Counter()).total() for name in ASKED], float)
    available = np.bincount(questions.class_, minlength=len(ASKED))
    goal = wanted * weight / weight.sum()
    quota = np.minimum(np.round(goal), available)
    while quota.sum() < min(wanted, available.sum()):  # classes that are used up leave their share to the others
        room = available - quota
        share = (wanted - quota.sum()) * room / room.sum()
        quota += np.minimum(np.maximum(np.floor(share), (share > 0) & (share < 1)), room)
    order = rng.permutation(len(questions))
    rank = np.empty(len(questions), np.int64)
    for place in range(len(ASKED)):
        own = order[questions.class_[order] == place]
        rank[own] = np.arange(len(own))
    kept = order[rank[order] < quota[questions.class_[order]]]
    return questions.take(kept[:wanted])


def divide(questions: Questions, sizes: Sequence[int], by_entity: bool, rng: np.random.Generator) -> list[Questions]:
    """Cut into dev, test and train: no question is in two of them, or, with `by_entity`, no entity."""
    order = rng.permutation(len(questions))
    if by_entity:
        place = rng.permutation(int(questions.entity.max()) + 1)
        order = np.argsort(place[questions.entity], kind="stable")
    parts: list[Questions] = []
    ends = np.cumsum([0, *sizes])
    for start, end in zip(ends, [*ends[1:], len(questions)], strict=True):
        part = questions.take(order[start:end])
        for earlier in parts if by_entity else ():
            part = part.take(np.flatnonzero(~np.isin(part.entity, earlier.entity)))
        parts.append(part)
    return parts


def ask(
    kb: KnowledgeBase, questions: Questions, patterns: Patterns, rng: np.random.Generator
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Put questions into words, and return them as examples with their classes."""
    texts, correct = np.empty(len(questions), object), np.empty(len(questions), object)
    for place, (name, (relation, forward)) in enumerate(ASKED.items()):
        chosen = np.flatnonzero(questions.class_ == place)
        if not len(chosen):
            continue
        known = list(patterns[name])
        weight = np.array(list(patterns[name].values()), float)
        used = rng.choice(len(known), len(chosen), p=weight / weight.sum())
        index = kb.forward if forward else kb.backward
        for number, entity, pattern in zip(
            chosen.tolist(), questions.entity[chosen].tolist(), used.tolist(), strict=True
        ):
            texts[number] = _worded(known[pattern], kb.entities[entity])
            correct[number] = index[entity * len(RELATIONS) + RELATIONS.index(relation)].tolist()
    names = list(ASKED)
    examples = pl.DataFrame(
        {"turns": [[{"speaker": "user", "text": text}] for text in texts], "correct": list(correct)}
    )
    return examples, pl.DataFrame({"response": 1, "question": [names[place] for place in questions.class_.tolist()]})


def _worded(pattern: str, name: str) -> str:
    text = pattern.replace("[]", name, 1)
    return text if pattern.rstrip().endswith(("?", ".", "!")) else f"{text}?"
