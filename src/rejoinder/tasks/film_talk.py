"""Task 4 (Dodge et al. 2016, section 2.4): which of 10,001 replies is the true one in a discussion.

The wrong ones are replies of other discussions that are used for nothing else, the same for all examples of a split.
"""

from collections.abc import Sequence
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import polars as pl

from rejoinder.corpora.entities import Parser
from rejoinder.tasks.build import option_id
from rejoinder.tasks.film_groups import LATER, match_names
from rejoinder.tasks.writer import TaskWriter

Dialogue = tuple[str, ...]
FEWEST = 10
"""So many dialogues there must be."""


def divide_discussions(
    dialogues: Sequence[Dialogue], train: int, evaluation: int, candidates: int, rng: np.random.Generator
) -> tuple[dict[str, list[Dialogue]], dict[str, list[str]]]:
    """Return the dialogues of each split, and the candidates of dev and test, which no dialogue has.

    Where there are too few, a tenth goes to each of dev, test and their candidates.
    """
    order = rng.permutation(len(dialogues)).tolist()
    tenth = len(order) // 10
    evaluation, reserve = min(evaluation, tenth), min(2 * candidates, tenth)
    ends = np.cumsum([evaluation, evaluation, min(train, len(order) - 2 * evaluation - 2 * reserve)]).tolist()
    dev, test, trained, rest = (
        [dialogues[place] for place in order[start:end]] for start, end in pairwise([0, *ends, len(order)])
    )
    used = {text for dialogue in (*dev, *test, *trained) for text in dialogue}
    fresh = dict.fromkeys(text for dialogue in rest for text in dialogue[1::2] if text not in used)
    count = min(candidates, len(fresh) // 2)
    wrong = {"dev": list(islice(fresh, count)), "test": list(islice(fresh, count, 2 * count))}
    return {"train": trained, "dev": dev, "test": test}, wrong


def write_talk(
    folder: Path, dialogues: Sequence[Dialogue], candidates: Sequence[str], parser: Parser
) -> tuple[int, int]:
    """Write one split of task 4 and return how many examples and options it has."""
    asked: list[str] = []
    given: list[str] = []
    responses: list[int] = []
    with TaskWriter(folder) as writer:
        for text in candidates:
            writer.row((option_id(text), text))
        writer.shared = len(writer.rows)
        for dialogue in dialogues:
            for place in range(1, len(dialogue), 2):
                turns = [("model" if number % 2 else "user", text) for number, text in enumerate(dialogue[:place])]
                correct = [(option_id(dialogue[place]), dialogue[place])]
                writer.add(str(len(asked) + 1), turns, correct if candidates else None, correct)
                asked.append(dialogue[place - 1])
                given.append(dialogue[place])
                responses.append(min((place + 1) // 2, LATER))
        entities = match_names(parser, asked, given)
        writer.store_groups(pl.DataFrame({"response": responses, "entities": entities}))
    return writer.examples, len(writer.rows)
