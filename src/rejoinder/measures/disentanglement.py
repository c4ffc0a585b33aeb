"""How well reply links and the conversations that they make agree with those drawn by people.

As in Kummerfeld et al. (2019), "A Large-Scale Corpus for Conversation Disentanglement", section 5: links and
conversations are pooled over the files, and only annotated lines count - those before them are context. All scores
run from 0 to 100, and 100 is perfect.
"""

from collections.abc import Iterable, Mapping, Set
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from rejoinder.corpora.link_files import Link, annotation_files, conversations, read_annotations
from rejoinder.files import BadInputError

Ints = NDArray[np.int64]
Partition = list[frozenset[int]]


def score_folders(gold: Path, predicted: Path) -> dict[str, float]:
    """Score the annotations of one folder against those of the same names in another."""
    truth = annotation_files(gold)
    found = annotation_files(predicted)
    for name in truth:
        if name not in found:
            raise BadInputError(predicted, f"{name}.annotation.txt is missing; {gold} has it")
    return score(
        {name: read_annotations(path) for name, path in truth.items()},
        {name: read_annotations(found[name]) for name in truth},
    )


def score(gold: Mapping[str, Iterable[Link]], predicted: Mapping[str, Iterable[Link]]) -> dict[str, float]:
    """Return all measures over files of links (line answered, line that answers)."""
    truth = {name: set(links) for name, links in gold.items()}
    lines = {name: {b for _, b in links} for name, links in truth.items()}
    found = {name: {link for link in predicted[name] if link[1] in lines[name]} for name in truth}
    matched = sum(len(truth[name] & found[name]) for name in truth)
    counts = matched, sum(map(len, found.values())), sum(map(len, truth.values()))
    real = {name: partition(truth[name], lines[name]) for name in truth}
    ours = {name: partition(found[name], lines[name]) for name in truth}
    tables = [contingency(real[name], ours[name]) for name in truth]
    return {
        **_named("link", *counts),
        "variation of information": variation_of_information(tables),
        "one-to-one": one_to_one(tables),
        **_named("exact match", *exact_matches(real, ours)),
    }


def _named(name: str, matched: int, found: int, real: int) -> dict[str, float]:
    precision, recall, f = precision_recall_f(matched, found, real)
    return {f"{name} precision": precision, f"{name} recall": recall, f"{name} F": f}


def precision_recall_f(matched: int, found: int, real: int) -> tuple[float, float, float]:
    """Return precision, recall and their harmonic mean, 0 where nothing matches."""
    if not matched:
        return 0.0, 0.0, 0.0
    return 100 * matched / found, 100 * matched / real, 200 * matched / (found + real)


def partition(links: Iterable[Link], lines: Set[int]) -> Partition:
    """Return the conversations among `lines`, joined also by way of lines outside; an unlinked line stands alone."""
    known = [*links, *((line, line) for line in lines)]
    groups = (frozenset(line for line in group if line in lines) for group in conversations(known))
    return [group for group in groups if group]


def contingency(gold: Partition, predicted: Partition) -> Ints:
    """Count the lines that each conversation of one partition shares with each of the other."""
    column = {line: j for j, group in enumerate(predicted) for line in group}
    table = np.zeros((len(gold), len(predicted)), dtype=np.int64)
    for i, group in enumerate(gold):
        for line in group:
            table[i, column[line]] += 1
    return table


def variation_of_information(tables: list[Ints]) -> float:
    """Return 100 (1 - VI / log2 n), where VI = 2 H(gold, predicted) - H(gold) - H(predicted)."""
    total = sum(int(table.sum()) for table in tables)
    if total < 2:
        return 100.0
    joint, rows, columns = (
        sum(_entropy(counts, total) for counts in parts)
        for parts in (tables, [table.sum(1) for table in tables], [table.sum(0) for table in tables])
    )
    return float(100 * (1 - (2 * joint - rows - columns) / np.log2(total)))


def _entropy(counts: Ints, total: int) -> float:
    shares = counts[counts > 0] / total
    return float(-(shares * np.log2(shares)).sum())


def one_to_one(tables: list[Ints]) -> float:
    """Return the share of lines that agree under the best pairing of conversations."""
    # no conversation spans two files, so the best pairing overall is the best in each
    agreed = sum(int(table[linear_sum_assignment(table, maximize=True)].sum()) for table in tables)
    total = sum(int(table.sum()) for table in tables)
    return 100 * agreed / total if total else 100.0


def exact_matches(gold: Mapping[str, Partition], predicted: Mapping[str, Partition]) -> tuple[int, int, int]:
    """Count conversations found whole, predicted and real, leaving out those of one message (section 5.1)."""
    real = {(name, group) for name, groups in gold.items() for group in groups if len(group) > 1}
    ours = {(name, group) for name, groups in predicted.items() for group in groups if len(group) > 1}
    return len(real & ours), len(ours), len(real)
