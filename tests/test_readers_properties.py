"""Damaged files of every format: they are refused with a clear error, or scored for exactly what they still say.

What they say is found out by the tiny readers and scorers below, which share no code with the package: `judge_*` return
the scores by example and whether the content keeps every rule. A strict reader may accept only what keeps them all, a
lenient one must say what it mended.
"""

import copy
import gzip
import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.files import BadInputError
from rejoinder.formats import recognise_truth
from rejoinder.measures.scoring import read_run, score_run
from rejoinder.runs.convert import write_run, write_truth_as_qrels
from rejoinder.tasks import dialeval, dstc7
from rejoinder.tasks.truth import Truth, read_truth

Answers = dict[str, tuple[set[str], set[str] | None]]
"""By example: the correct options, and all options where they are known."""
Examples = dict[str, tuple[list[str], list[str]]]
"""By example: all options, and the correct ones."""
Choices = dict[str, list[tuple[str, float]]]
Listing = list[tuple[str, list[tuple[str, float]]]]
Verdict = tuple[dict[str, tuple[float, ...]], bool]


class BrokenRuleError(Exception):
    """The content breaks a rule that nothing mends."""


# --- what a truth says ---


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


# --- what a run says, and what it is worth ---


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


# --- what the package makes of it ---


def unpacked(path: Path) -> bytes:
    raw = path.read_bytes()
    return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw


def judge(truth: Path, truth_format: str, run: Path, run_format: str) -> Verdict:
    if truth_format == "dialeval":
        return judge_judgement(parse_votes(unpacked(truth)), parse_json(unpacked(run)))
    listing = listing_of_rankings if run_format == "dstc7" else listing_of_trec
    limit = 100 if run_format == "dstc7" else None
    return judge_selection(ANSWERS[truth_format](unpacked(truth)), listing(unpacked(run)), limit)


def package_scores(truth: Truth, run: Path, format_: str | None, lenient: bool) -> tuple[Any, Any]:
    """Return the scores by example, and the notes."""
    found = read_run(run, truth, format_, lenient)
    names = ["MRR", "MAP"] if hasattr(truth, "correct") else ["NMD(A)", "NMD(S)", "NMD(E)", "RNSS"]
    scored = score_run(found, truth, names)
    columns = [scored[name].tolist() for name in names if name in scored]
    return {id_: tuple(column[n] for column in columns) for n, id_ in enumerate(truth.ids)}, found.notes


WHOLE_FILE = re.compile(
    "is empty|not JSON|JSON, but|damaged|nested too deeply|holds no|no such column|a column of|no annotations|"
    "which does not|conversion from"
)


def assert_error_is_clear(error: BadInputError, *paths: Path) -> None:
    assert error.source in paths
    assert error.record is not None or WHOLE_FILE.search(error.problem), str(error)
    assert "\n" not in error.problem


def assert_equal_scores(found: dict[str, tuple[float, ...]], expected: dict[str, tuple[float, ...]]) -> None:
    assert found.keys() == expected.keys()
    for id_, values in expected.items():
        assert found[id_] == pytest.approx(values, abs=1e-9)


def assert_refused_or_right(truth: Path, truth_format: str, run: Path, run_format: str, forced: bool) -> None:
    for lenient in (False, True):
        try:
            format_ = truth_format if forced else recognise_truth(truth)
            known = read_truth(truth, format_)
            found, notes = package_scores(known, run, run_format if forced else None, lenient)
        except BadInputError as error:
            assert_error_is_clear(error, truth, run)
            continue
        expected, clean = judge(truth, format_, run, run_format)
        assert_equal_scores(found, expected)
        assert clean or (lenient and notes)
        assert not (clean and notes)


# --- valid files ---

NAMES = st.text("abCé ,%*9", min_size=1, max_size=5).map(str.strip).filter(bool)
WORDS = st.text("ab .?é\u00a0{}\"'\\", max_size=8)
SCORES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0]))


def dumped(records: list[Any], lines: bool) -> bytes:
    if lines:
        return "\n".join(json.dumps(record, ensure_ascii=False) for record in records).encode()
    return json.dumps(records, ensure_ascii=False).encode()


@st.composite
def selections(draw: st.DrawFn, names: st.SearchStrategy[str] = NAMES) -> tuple[Examples, Choices]:
    ids = draw(st.lists(st.integers(0, 20).map(str), min_size=1, max_size=3, unique=True))
    examples, choices = {}, {}
    for id_ in ids:
        options = draw(st.lists(names, min_size=1, max_size=4, unique=True))
        correct = draw(st.lists(st.sampled_from(options), max_size=2, unique=True))
        chosen = draw(st.lists(st.sampled_from([*options, "NONE"]), min_size=1, max_size=4, unique=True))
        examples[id_] = options, correct
        choices[id_] = [(option, draw(SCORES)) for option in chosen]
    return examples, choices


def candidates(options: list[str]) -> list[dict[str, str]]:
    return [{"candidate-id": option, "utterance": f"say {option}"} for option in options]


def example_records(examples: Examples) -> list[Any]:
    turn = {"speaker": "participant_1", "utterance": "hi {"}
    return [
        {
            "data-split": "test",
            "example-id": int(id_),
            "messages-so-far": [turn],
            "options-for-correct-answers": candidates(correct),
            "options-for-next": candidates(options),
            "profile": {"Courses": {"Taken": []}},
            "scenario": 1,
        }
        for id_, (options, correct) in examples.items()
    ]


def ranking_records(choices: Choices) -> list[Any]:
    return [
        {"example-id": int(id_), "candidate-ranking": [{"candidate-id": o, "confidence": s} for o, s in chosen]}
        for id_, chosen in choices.items()
    ]


def quoted(name: str) -> str:
    return name.replace("%", "%25").replace(" ", "%20")


def trec_lines(choices: Choices) -> bytes:
    rows = [(id_, quoted(option), score) for id_, chosen in choices.items() for option, score in chosen]
    return "".join(f"{id_} Q0 {option} 1 {score!r} run\n" for id_, option, score in rows).encode()


def distributions(labels: list[str]) -> st.SearchStrategy[dict[str, float]]:
    weights = st.lists(st.integers(0, 5), min_size=len(labels), max_size=len(labels)).filter(any)
    return weights.map(lambda given: {label: w / sum(given) for label, w in zip(labels, given, strict=True)})


@st.composite
def judgements(draw: st.DrawFn) -> tuple[list[Any], list[Any]]:
    """Return dialogues and a submission."""
    ids = draw(st.lists(st.integers(0, 20).map(str), min_size=1, max_size=2, unique=True))
    parts = draw(st.sampled_from([("quality", "nugget"), ("quality",), ("nugget",)]))
    data, run = [], []
    for id_ in ids:
        senders = draw(st.lists(st.sampled_from(["customer", "helpdesk"]), min_size=1, max_size=3))
        labels = [CUSTOMER if sender == "customer" else HELPDESK for sender in senders]
        votes = st.fixed_dictionaries(
            {
                "quality": st.fixed_dictionaries({name: st.integers(-2, 2) for name in "ASE"}),
                "nugget": st.tuples(*[st.sampled_from(own) for own in labels]),
            }
        )
        turns = [{"sender": sender, "utterances": ["hi"]} for sender in senders]
        data.append({"id": id_, "turns": turns, "annotations": draw(st.lists(votes, min_size=1, max_size=3))})
        answers = {
            "quality": {name: draw(distributions(SCALE)) for name in "ASE"},
            "nugget": [draw(distributions(own)) for own in labels],
        }
        run.append({"id": id_} | {part: answers[part] for part in parts})
    return data, run


# --- damage ---

JUNK: list[Any] = [
    None, True, float("nan"), float("inf"), -1, -0.5, 0, 1, 2, 0.25, 1e308, 10**30, "", "x", "1", "NaN", "NONE", [], {},
    [[[]]], {"a": {}}, "CNUG", "HNUG", "customer",
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything within."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, part in inside:
        yield (*path, key)
        yield from places(part, (*path, key))


def reach(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


@st.composite
def damaged_records(draw: st.DrawFn, records: list[Any]) -> list[Any]:
    """Drop, double, exchange or replace a few values."""
    records = json.loads(json.dumps(records))
    for _ in range(draw(st.integers(1, 2))):
        known = list(places(records))
        if not known:
            break
        *above, key = draw(st.sampled_from(known))
        parent = reach(records, tuple(above))
        act = draw(st.sampled_from(["drop", "double", "junk", "exchange", "rename", "stretch"]))
        if act == "drop":
            del parent[key]
        elif act == "junk":
            parent[key] = copy.deepcopy(draw(st.sampled_from(JUNK)))
        elif act == "exchange":
            *others, other = draw(st.sampled_from([place for place in known if place[-1] == key]))
            one, two = copy.deepcopy(parent[key]), copy.deepcopy(reach(records, (*others, other)))
            reach(records, tuple(others))[other] = one
            parent[key] = two
        elif act == "rename" and isinstance(key, str):
            parent[draw(st.sampled_from(["x", "", "2", "CNUG", "id"]))] = parent.pop(key)
        elif act == "double" and isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        elif act == "stretch" and isinstance(parent, list) and isinstance(parent[key], dict):
            parent += [parent[key] | {"candidate-id": f"more {n}"} for n in range(100)]
    return records


@st.composite
def damaged_bytes(draw: st.DrawFn, raw: bytes) -> bytes:
    """Drop, double or replace a few bytes, double a JSON field, cut the end off, or change the encoding."""
    act = draw(st.sampled_from(["bytes", "bytes", "bytes", "field", "line", "cut", "encoding"]))
    if act == "field":
        fields = list(re.finditer(rb'("[^"]+": )[^,\[\]{}]+', raw))
        found = draw(st.sampled_from(fields)) if fields else None
        junk = json.dumps(draw(st.sampled_from(JUNK))).encode()
        return raw if found is None else raw[: found.end()] + b", " + found[1] + junk + raw[found.end() :]
    if act == "line":
        lines = raw.splitlines(keepends=True)
        place = draw(st.integers(0, len(lines) - 1))
        return b"".join([*lines[:place], draw(st.sampled_from([b"", b"\n", lines[place] * 2])), *lines[place + 1 :]])
    if act == "cut":
        return raw[: draw(st.integers(0, len(raw) - 1))]
    if act == "encoding":
        return draw(st.sampled_from(ENCODINGS))(raw)
    changed = bytearray(raw)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(changed)))
        size = draw(st.integers(0, 3))
        with_ = draw(st.sampled_from(INSERTS) | st.binary(max_size=2))
        changed[place : place + size] = with_
    return bytes(changed)


INSERTS = [b"", b"\t", b" ", b",", b"-", b"9", b'"', b"\xff", b"nan", b"\n"]
ENCODINGS: list[Callable[[bytes], bytes]] = [
    lambda raw: b"\xef\xbb\xbf" + raw,
    lambda raw: raw.replace(b"\n", b"\r\n"),
    lambda raw: raw.decode().encode("utf-16"),
    lambda raw: raw.decode().encode("latin-1", "replace"),
    gzip.compress,
    lambda raw: gzip.compress(raw)[:-5],
    lambda raw: gzip.compress(raw)[: len(gzip.compress(raw)) // 2],
    lambda raw: gzip.compress(raw) + b"more",
]


@st.composite
def damaged_pair(draw: st.DrawFn, truth: bytes, run: bytes) -> tuple[bytes, bytes]:
    first = draw(st.booleans())
    return (draw(damaged_bytes(truth)), run) if first else (truth, draw(damaged_bytes(run)))


@st.composite
def damaged_selection(draw: st.DrawFn, truth_format: str, run_format: str) -> tuple[bytes, bytes]:
    examples, choices = draw(selections())
    lines = draw(st.booleans())
    truth: Any = example_records(examples)
    run: Any = ranking_records(choices)
    records = draw(st.sampled_from(["truth", "run", "neither"]))
    if records == "truth" and truth_format == "dstc7":
        truth = draw(damaged_records(truth))
    if records == "run" and run_format == "dstc7":
        run = draw(damaged_records(run))
    pair = (
        dumped(truth, lines) if truth_format == "dstc7" else truth_lines(truth_format, examples),
        dumped(run, lines) if run_format == "dstc7" else trec_lines(choices),
    )
    untouched = records == "neither" or "dstc7" not in (truth_format, run_format)
    return draw(damaged_pair(*pair)) if untouched else pair


def truth_lines(format_: str, examples: Examples) -> bytes:
    if format_ == "key":
        listed = {id_: ",".join(c.replace(",", ";") for c in correct) for id_, (_, correct) in examples.items()}
        rows = [f"{id_}\t{correct or 'NONE'}\n" for id_, correct in listed.items()]
    elif format_ == "qrels":
        judged = [(id_, o, o in correct) for id_, (options, correct) in examples.items() for o in options]
        rows = [f"{id_} 0 {quoted(option)} {relevance:d}\n" for id_, option, relevance in judged]
    else:
        rows = [f"1 what?\t{', '.join(correct or options)}\n" for options, correct in examples.values()]
    return "".join(rows).encode()


# --- the tests ---


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged")


def put(path: Path, raw: bytes) -> Path:
    path.unlink(missing_ok=True)
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("run_format", ["dstc7", "trec"])
@pytest.mark.parametrize("truth_format", ["dstc7", "key", "qrels", "moviedialog"])
@settings(max_examples=200)
@given(data=st.data())
def test_damaged_selections(folder, data, truth_format, run_format):
    truth, run = data.draw(damaged_selection(truth_format, run_format))
    paths = put(folder / "truth", truth), put(folder / "run", run)
    assert_refused_or_right(paths[0], truth_format, paths[1], run_format, data.draw(st.booleans()))


@settings(max_examples=600)
@given(data=st.data())
def test_damaged_judgements(folder, data):
    records = list(data.draw(judgements()))
    damaged = data.draw(st.sampled_from([0, 1, None]))
    if damaged is not None:
        records[damaged] = data.draw(damaged_records(records[damaged]))
    raw = tuple(dumped(part, data.draw(st.booleans())) for part in records)
    truth, run = raw if damaged is not None else data.draw(damaged_pair(*raw))
    paths = put(folder / "truth", truth), put(folder / "run", run)
    assert_refused_or_right(paths[0], "dialeval", paths[1], "dialeval", data.draw(st.booleans()))


@pytest.mark.parametrize("run_format", ["dstc7", "trec"])
@pytest.mark.parametrize("truth_format", ["dstc7", "key", "qrels"])
@settings(max_examples=25)
@given(pair=selections(NAMES.filter(lambda name: "," not in name)))
def test_whole_selections_are_accepted(folder, pair, truth_format, run_format):
    examples, choices = pair
    truth = dumped(example_records(examples), False) if truth_format == "dstc7" else truth_lines(truth_format, examples)
    run = dumped(ranking_records(choices), True) if run_format == "dstc7" else trec_lines(choices)
    paths = put(folder / "truth", truth), put(folder / "run", run)
    found, notes = package_scores(read_truth(paths[0]), paths[1], None, False)
    expected, clean = judge(paths[0], truth_format, paths[1], run_format)
    assert clean
    assert not notes
    assert_equal_scores(found, expected)


@settings(max_examples=50)
@given(pair=judgements())
def test_whole_judgements_are_accepted(folder, pair):
    truth, run = (put(folder / name, dumped(part, False)) for name, part in zip(("truth", "run"), pair, strict=True))
    found, notes = package_scores(read_truth(truth), run, None, False)
    expected, clean = judge(truth, "dialeval", run, "dialeval")
    assert clean
    assert not notes
    assert_equal_scores(found, expected)


def written(folder: Path, ending: str, write: Callable[[Path], None]) -> Path:
    """Write twice, see that the bytes are equal, and return the file."""
    first, second = (folder / f"{name}{ending}" for name in ("first", "second"))
    for path in (first, second):
        path.unlink(missing_ok=True)
        write(path)
    assert first.read_bytes() == second.read_bytes()
    return second


@pytest.mark.parametrize("ending", ["", ".gz"])
@settings(max_examples=40)
@given(pair=selections(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)))
def test_selections_come_back_from_every_format(folder, pair, ending):
    examples, choices = pair
    path = put(folder / "truth", dumped(example_records(examples), False))
    truth = read_truth(path)
    again = read_truth(written(folder, ending, lambda out: dstc7.write_examples(out, dstc7.read_examples(path))))
    assert list(dstc7.read_examples(path)) == list(dstc7.read_examples(folder / f"second{ending}"))
    assert again.correct.equals(truth.correct)
    assert again.options.equals(truth.options)
    judged = read_truth(written(folder, ending, lambda out: write_truth_as_qrels(out, truth)))
    assert judged.ids.equals(truth.ids)
    assert judged.correct.equals(truth.correct)
    run = read_run(put(folder / "run", dumped(ranking_records(choices), False)), truth)
    for format_ in ("dstc7", "trec", "parquet"):
        file = written(folder, ending, lambda out, format_=format_: write_run(out, run, truth, format_))
        assert read_run(file, truth).choices.equals(run.choices)


@settings(max_examples=40)
@given(pair=selections(NAMES.filter(lambda name: "," not in name)))
def test_keys_and_tasks_come_back(folder, pair):
    path = put(folder / "truth", dumped(example_records(pair[0]), False))
    truth = read_truth(path)
    for ending in ("", ".gz"):
        key = read_truth(written(folder, ending, lambda out: dstc7.write_answer_key(out, truth)))
        assert key.ids.equals(truth.ids)
        assert key.correct.equals(truth.correct)
    task = dstc7.read_task(path)
    task.save(folder / "task")
    assert read_truth(folder / "task").correct.equals(truth.correct)
    assert read_truth(folder / "task").options.equals(truth.options)


@pytest.mark.parametrize("ending", ["", ".gz"])
@settings(max_examples=40)
@given(pair=judgements())
def test_judgements_come_back_from_every_format(folder, pair, ending):
    path = put(folder / "truth", dumped(pair[0], False))
    truth = read_truth(path)
    again = written(folder, ending, lambda out: dialeval.write_dialogues(out, dialeval.read_dialogues(path)))
    assert list(dialeval.read_dialogues(again)) == list(dialeval.read_dialogues(path))
    run = read_run(put(folder / "run", dumped(pair[1], False)), truth)
    for format_ in ("dialeval", "parquet"):
        file = written(folder, ending, lambda out, format_=format_: write_run(out, run, truth, format_))
        back = read_run(file, truth).distributions
        assert back.keys() == run.distributions.keys()
        for question, values in run.distributions.items():
            assert np.allclose(back[question], values, rtol=0, atol=1e-15)


CHANGES: list[pl.Expr] = [
    pl.lit(None, pl.String), pl.lit(float("nan")), pl.lit(-1.0), pl.lit(1e308), pl.lit("x"), pl.lit(0), pl.lit(True),
    pl.lit(""), pl.lit([1]), pl.lit("NONE"),
]  # fmt: skip


@settings(max_examples=150)
@given(data=st.data())
def test_damaged_tables(folder, data):
    """Parquet has no text to damage: columns are dropped, retyped or shifted, rows dropped, doubled or emptied."""
    examples, choices = data.draw(selections())
    truth = read_truth(put(folder / "truth", dumped(example_records(examples), False)))
    rows = [(id_, option, score) for id_, chosen in choices.items() for option, score in chosen]
    table = pl.DataFrame(rows, schema=["example", "option", "score"], orient="row")
    column = data.draw(st.sampled_from(table.columns))
    row = data.draw(st.integers(0, table.height - 1))
    cell = pl.int_range(pl.len()) == row
    table = data.draw(
        st.sampled_from(
            [
                lambda: table.drop(column),
                lambda: table.rename({column: "other"}),
                lambda: table.with_columns(data.draw(st.sampled_from(CHANGES)).alias(column)),
                lambda: table.with_columns(pl.when(cell).then(None).otherwise(pl.col(column)).alias(column)),
                lambda: table.with_columns(pl.col(column).reverse()),
                lambda: table.with_columns(pl.when(cell).then(-pl.col("score")).otherwise("score").alias("score")),
                lambda: table.filter(~cell),
                lambda: pl.concat([table, table[row]]),
                lambda: table.clear(),
            ]
        )
    )()
    path = folder / "run.parquet"
    table.write_parquet(path)
    answers = {id_: (set(correct) or {"NONE"}, set(options)) for id_, (options, correct) in examples.items()}
    for lenient in (False, True):
        try:
            found, notes = package_scores(truth, path, None, lenient)
        except BadInputError as error:
            assert_error_is_clear(error, path)
            continue
        read = table.select("example", "option", "score").rows()
        listing = [(id_, [(o, s) for i, o, s in read if i == id_]) for id_ in dict.fromkeys(i for i, _, _ in read)]
        expected, clean = judge_selection(answers, listing, None)
        assert_equal_scores(found, expected)
        assert clean or (lenient and notes)
