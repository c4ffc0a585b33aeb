"""Whole files of every format, drawn at random, and damage to them."""

import copy
import gzip
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st
from tests.damage.plain import CUSTOMER, HELPDESK, SCALE, Choices, Examples

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
