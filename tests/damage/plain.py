"""Tiny readers and scorers that share no code with the package: what do files say, and do they keep every rule?

`judge` returns the scores by example, and whether the content keeps every rule.
"""

import gzip
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Answers = dict[str, tuple[set[str], set[str] | None]]
"""By example: the correct options, and all options where they are known."""
Examples = dict[str, tuple[list[str], list[str]]]
"""By example: all options, and the correct ones."""
Choices = dict[str, list[tuple[str, float]]]
Listing = list[tuple[str, list[tuple[str, float]]]]
Verdict = tuple[dict[str, tuple[float, ...]], bool]


class BrokenRuleError(Exception):
    """The content breaks a rule that nothing mends."""


def parse_json(raw: bytes) -> list[Any]:
    text = raw.decode("utf-8-sig", "replace")
    if text.lstrip()[0] == "[":
        return json.loads(text, strict=False)
    return [json.loads(line, strict=False) for line in re.split("[\r\n]+", text) if line.strip()]


def parse_lines(raw: bytes) -> list[str]:
    return [line.rstrip("\r") for line in raw.decode("utf-8-sig").split("\n") if line.strip()]


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise BrokenRuleError("an id is given twice")
    return dict(pairs)


def unquote(field: str) -> str:
    codes = {"%20": " ", "%09": "\t", "%0A": "\n", "%0B": "\v", "%0C": "\f", "%0D": "\r", "%25": "%"}
    return re.sub("%(20|09|0A|0B|0C|0D|25)", lambda found: codes[found[0]], field)


def answers_of_examples(raw: bytes) -> Answers:
    answers = []
    for record in parse_json(raw):
        correct = [option["candidate-id"] for option in record["options-for-correct-answers"]]
        options = [option["candidate-id"] for option in record.get("options-for-next", [])]
        if len(set(correct)) < len(correct) or len(set(options)) < len(options):
            raise BrokenRuleError("a candidate is given twice")
        if options and not set(correct) <= set(options):
            raise BrokenRuleError("an answer is no option")
        answers.append((str(record["example-id"]), (set(correct) or {"NONE"}, set(options) or None)))
    return unique(answers)


def answers_of_key(raw: bytes) -> Answers:
    pairs = [line.split("\t") for line in parse_lines(raw)]
    answers = unique([(id_.strip(), [answer.strip() for answer in given.split(",")]) for id_, given in pairs])
    if any(len(set(given)) < len(given) or ("NONE" in given and len(given) > 1) for given in answers.values()):
        raise BrokenRuleError("an answer is given twice, or beside NONE")
    return {id_: (set(given), None) for id_, given in answers.items()}


def answers_of_qrels(raw: bytes) -> Answers:
    fields = [re.split(r"[ \t\v\f\r]+", line.strip(" \t\v\f\r")) for line in parse_lines(raw)]
    judged = unique([((unquote(topic), unquote(option)), int(relevance)) for topic, _, option, relevance in fields])
    topics = dict.fromkeys(topic for topic, _ in judged)
    relevant = {topic: {o for (t, o), grade in judged.items() if t == topic and grade > 0} for topic in topics}
    return {topic: (options or {"NONE"}, None) for topic, options in relevant.items()}


def answers_of_films(raw: bytes) -> Answers:
    answers: Answers = {}
    previous = 0
    for line in raw.decode("utf-8-sig").split("\n"):
        if not line.strip():
            previous = 0
            continue
        number, _, said = line.rstrip("\r").partition(" ")
        if int(number) not in (1, previous + 1):
            raise BrokenRuleError("lines are not in order")
        previous = int(number)
        if "\t" in said:
            answers[str(len(answers) + 1)] = set(said.split("\t")[1].split(", ")), None
    if any("" in given for given, _ in answers.values()):
        raise BrokenRuleError("an answer is empty")
    return answers


ANSWERS: dict[str, Callable[[bytes], Answers]] = {
    "dstc7": answers_of_examples,
    "key": answers_of_key,
    "qrels": answers_of_qrels,
    "moviedialog": answers_of_films,
}


def listing_of_rankings(raw: bytes) -> Listing:
    return [
        (str(record["example-id"]), [(c["candidate-id"], c["confidence"]) for c in record["candidate-ranking"]])
        for record in parse_json(raw)
    ]


def listing_of_trec(raw: bytes) -> Listing:
    fields = [re.split(r"[ \t\v\f\r]+", line.strip(" \t\v\f\r")) for line in parse_lines(raw)]
    rows = [(unquote(topic), unquote(option), float(score)) for topic, _, option, _, score, _ in fields]
    return [(id_, [(o, s) for i, o, s in rows if i == id_]) for id_ in dict.fromkeys(row[0] for row in rows)]


def judge_selection(answers: Answers, listing: Listing, limit: int | None) -> Verdict:
    """Score by MRR and MAP, mending as the lenient rules say."""
    first: dict[str, list[tuple[str, float]]] = {}
    for id_, choices in listing:
        first.setdefault(id_, choices)
    clean = len(first) == len(listing) and first.keys() == answers.keys()
    scores = {}
    for id_, (correct, known) in answers.items():
        ranked = sorted(first.get(id_, []), key=lambda choice: -choice[1])[:limit]
        options = list(dict.fromkeys(option for option, _ in ranked))
        clean &= len(options) == len(first.get(id_, []))
        clean &= known is None or set(options) <= known | {"NONE"}
        clean &= limit is None or all(score >= 0 for _, score in ranked)
        ranks = [rank for rank, option in enumerate(options, 1) if option in correct]
        precision = sum(place / rank for place, rank in enumerate(ranks, 1)) / len(correct)
        scores[id_] = (1 / ranks[0] if ranks else 0.0, precision)
    if not all(math.isfinite(score) for _, choices in first.items() for _, score in choices):
        raise BrokenRuleError("a score is no number")
    return scores, clean


SCALE = ["2", "1", "0", "-1", "-2"]
CUSTOMER = ["CNUG0", "CNUG", "CNUG*", "CNaN"]
HELPDESK = ["HNUG", "HNUG*", "HNaN"]


def shares(votes: list[str], labels: list[str]) -> list[float]:
    if not votes or not set(votes) <= set(labels):
        raise BrokenRuleError("no vote, or an unknown label")
    return [votes.count(label) / len(votes) for label in labels]


def parse_votes(raw: bytes) -> dict[str, tuple[list[list[float]], list[tuple[str, list[float]]]]]:
    """Return, by id, the distributions of A, S and E, and of each turn with its sender."""
    dialogues = []
    for record in parse_json(raw):
        votes = record["annotations"]
        turns = [turn["sender"] for turn in record["turns"]]
        if not turns or any(len(vote["nugget"]) != len(turns) for vote in votes):
            raise BrokenRuleError("no turn, or not one label a turn")
        quality = [shares([str(vote["quality"][name]) for vote in votes], SCALE) for name in "ASE"]
        nuggets = [
            (
                sender,
                shares([vote["nugget"][n] for vote in votes], {"customer": CUSTOMER, "helpdesk": HELPDESK}[sender]),
            )
            for n, sender in enumerate(turns)
        ]
        dialogues.append((str(record["id"]), (quality, nuggets)))
    return unique(dialogues)


def normalised(given: dict[str, float], labels: list[str]) -> tuple[list[float], bool]:
    total = sum(given.values())
    if not set(given) <= set(labels) or min(given.values(), default=0) < 0 or not 0 < total < math.inf:
        raise BrokenRuleError("an unknown label, or no distribution")
    return [given.get(label, 0) / total for label in labels], abs(total - 1) <= 1e-3


def match_distance(p: list[float], q: list[float]) -> float:
    return sum(abs(sum(p[: n + 1]) - sum(q[: n + 1])) for n in range(len(p))) / (len(p) - 1)


def root_of_squares(p: list[float], q: list[float]) -> float:
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(p, q, strict=True)) / 2)


def judge_judgement(truth: dict[str, Any], run: list[dict[str, Any]]) -> Verdict:
    """Score by NMD of A, S and E, and by RNSS of the nuggets, as far as the run answers them."""
    first: dict[str, dict[str, Any]] = {}
    for record in run:
        first.setdefault(str(record["id"]), record)
    clean = len(first) == len(run) and first.keys() == truth.keys()
    known = [record for id_, record in first.items() if id_ in truth]
    asked = [[part for part in ("quality", "nugget") if record.get(part) is not None] for record in known]
    if any(parts != asked[0] for parts in asked):
        raise BrokenRuleError("a part is left out of some dialogues")
    scores = {}
    for id_, (quality, nuggets) in truth.items():
        record = first.get(id_, {})
        values: list[float] = []
        if known and "quality" in asked[0]:
            if record and record["quality"].keys() != {"A", "S", "E"}:
                raise BrokenRuleError("other criteria")
            for name, q in zip("ASE", quality, strict=True):
                p, sums = normalised(record["quality"][name], SCALE) if record else ([0.2] * 5, True)
                clean &= sums
                values.append(match_distance(p, q))
        if known and "nugget" in asked[0]:
            distances: dict[str, list[float]] = {}
            given = record["nugget"] if record else [None] * len(nuggets)
            for own, (sender, q) in zip(given, nuggets, strict=True):
                labels = CUSTOMER if sender == "customer" else HELPDESK
                p, sums = ([1 / len(labels)] * len(labels), True) if own is None else normalised(own, labels)
                clean &= sums
                distances.setdefault(sender, []).append(root_of_squares(p, q))
            values.append(float(np.mean([np.mean(of_sender) for of_sender in distances.values()])))
        scores[id_] = tuple(values)
    return scores, clean


def unpacked(path: Path) -> bytes:
    raw = path.read_bytes()
    return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw


def judge(truth: Path, truth_format: str, run: Path, run_format: str) -> Verdict:
    if truth_format == "dialeval":
        return judge_judgement(parse_votes(unpacked(truth)), parse_json(unpacked(run)))
    listing = listing_of_rankings if run_format == "dstc7" else listing_of_trec
    limit = 100 if run_format == "dstc7" else None
    return judge_selection(ANSWERS[truth_format](unpacked(truth)), listing(unpacked(run)), limit)
