import re
import time
import tracemalloc
from itertools import islice, pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from rejoinder.sample import irc
from rejoinder.sample.grammar import Slots, Template, mistype, tidy
from rejoinder.sample.irc_talk import topics

MESSAGE = re.compile(r"\[\d\d:\d\d\] (?:<(?P<nick>\S+)> (?P<text>.+)| \* (?P<actor>\S+) .+)")
RENAME = re.compile(r"=== (\S+) is now known as (\S+)")


class Day:
    def __init__(self, raw: Path) -> None:
        self.lines = raw.read_text().splitlines()
        links = raw.with_name(raw.name.replace("raw", "annotation")).read_text().splitlines()
        assert all(link.endswith(" -") for link in links)
        self.links = [(int(a), int(b)) for a, b, _ in map(str.split, links)]
        self.messages = {i: MESSAGE.fullmatch(line) for i, line in enumerate(self.lines) if line.startswith("[")}

    def speaker(self, line: int) -> str:
        match = self.messages[line]
        assert match is not None, self.lines[line]
        return match["nick"] or match["actor"]

    def conversations(self) -> dict[int, int]:
        """The first line of the conversation that each message belongs to."""
        first: dict[int, int] = {}
        for a, b in sorted(self.links, key=lambda link: link[1]):
            first[b] = b if a == b else first[a]
        return first


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("irc")
    irc.write(out, 20_000, seed=1)
    return out


@pytest.fixture(scope="module")
def days(folder: Path) -> list[Day]:
    return [Day(path) for path in sorted(folder.glob("*.raw.txt"))]


@pytest.fixture(scope="module")
def text(days: list[Day]) -> str:
    return "\n".join(line for day in days for line in day.lines) + "\n"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_seed_decides_every_byte(tmp_path: Path) -> None:
    for name, seed in (("one", 3), ("two", 3), ("other", 4)):
        irc.write(tmp_path / name, 500, seed)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert contents(tmp_path / "one") != contents(tmp_path / "other")


def test_a_longer_run_starts_with_the_whole_days_of_a_shorter_one(folder: Path, tmp_path: Path) -> None:
    irc.write(tmp_path, 9_000, seed=1)
    short, long = contents(tmp_path), contents(folder)
    whole = sorted(short)[:-2]
    assert len(whole) >= 2
    assert all(short[name] == long[name] for name in whole)


def test_dialogues_depend_on_the_seed_and_not_on_the_size() -> None:
    assert list(irc.dialogues(20, 5)) == list(islice(irc.dialogues(10**9, 5), 20))
    assert list(irc.dialogues(20, 5)) != list(irc.dialogues(20, 6))


def test_nothing_wanted_nothing_written(tmp_path: Path) -> None:
    irc.write(tmp_path, 0, seed=1)
    assert list(tmp_path.iterdir()) == []
    assert list(irc.dialogues(0, 1)) == []


def test_about_as_many_messages_as_asked_for_in_days_of_a_busy_channel(days: list[Day]) -> None:
    counts = [len(day.messages) for day in days]
    assert 20_000 <= sum(counts) < 20_100
    assert all(4_000 <= count <= 9_000 for count in counts[:-1])


def test_every_message_has_a_link_and_no_system_line_has_one(days: list[Day]) -> None:
    for day in days:
        assert {b for _, b in day.links} == set(day.messages)
        assert all(a in day.messages and a <= b for a, b in day.links)
        assert all(line.startswith(("[", "=== ")) for line in day.lines)


def test_time_never_runs_backwards(days: list[Day]) -> None:
    for day in days:
        stamps = [line[1:6] for line in day.lines if line.startswith("[")]
        assert stamps == sorted(stamps)
        assert stamps[-1] <= "23:59"


def test_whoever_is_addressed_takes_part_in_the_conversation(days: list[Day]) -> None:
    for day in days:
        first = day.conversations()
        alias = {new: old for old, new in RENAME.findall("\n".join(day.lines))}
        present: dict[int, set[str]] = {}
        for line, start in first.items():
            nick = day.speaker(line)
            present.setdefault(start, set()).update({nick, alias.get(nick, nick)})
        nicks = set().union(*present.values())
        checked = 0
        for line, start in first.items():
            match = day.messages[line]
            addressed = re.match(r"(\S+)[:,] ", (match and match["text"]) or "")
            if addressed and addressed[1] in nicks and line != start:
                checked += 1
                assert addressed[1] in present[start], day.lines[line]
        assert checked > 0.2 * len(first)


def test_an_abandoned_nick_is_silent(days: list[Day]) -> None:
    for day in days:
        gone: set[str] = set()
        for i, line in enumerate(day.lines):
            if rename := RENAME.fullmatch(line):
                gone.add(rename[1])
            elif i in day.messages:
                assert day.speaker(i) not in gone


def test_some_conversations_go_on_under_a_new_nick(days: list[Day]) -> None:
    renames = {pair for day in days for pair in RENAME.findall("\n".join(day.lines))}
    speakers = {day.speaker(i) for day in days for i in day.messages}
    assert sum(old in speakers and new in speakers for old, new in renames) > 10


def test_conversations_interleave(days: list[Day]) -> None:
    first = days[0].conversations()
    switches = [first[a] != first[b] for a, b in pairwise(sorted(first))]
    assert np.mean(switches) > 0.6


@pytest.mark.parametrize(
    "pattern",
    [
        r"^=== \S+ \[~\S+@\S+\]  has joined #ubuntu$",
        r"^=== \S+ \[~\S+@\S+\]  has left #ubuntu \[.*\]$",
        r"^=== \S+ \[~\S+@\S+\]  has quit \[.+\]$",
        r"^=== \S+ is now known as \S+$",
        r"^\[\d\d:\d\d\]  \* \S+ \w+",
        r"^\[\d\d:\d\d\] <\S+> !\w+ \| \S+$",
        r"^\[\d\d:\d\d\] <\S+> !\w+ > \S+$",
        r"^\[\d\d:\d\d\] <\S+> !\w+$",
        r"^\[\d\d:\d\d\] <ubottu> \S+: .*https?://",
        r"^\[\d\d:\d\d\] <ubottu> \S+, please see my private message$",
    ],
)
def test_the_log_shows(pattern: str, text: str) -> None:
    assert len(re.findall(pattern, text, re.MULTILINE)) >= 5


def test_conversations_of_every_shape(days: list[Day]) -> None:
    sizes: dict[int, set[str]] = {}
    lengths: dict[int, int] = {}
    for line, start in days[0].conversations().items():
        sizes.setdefault(start, set()).add(days[0].speaker(line).rstrip("_|`-"))
        lengths[start] = lengths.get(start, 0) + 1
    crowds = [len(nicks - {"ubottu"}) for start, nicks in sizes.items() if lengths[start] > 2]
    assert sum(length == 1 for length in lengths.values()) > 100, "chatter that nobody answers"
    assert np.mean([crowd > 2 for crowd in crowds]) > 0.1, "more than two take part"
    assert np.mean([crowd == 2 for crowd in crowds]) > 0.4, "a questioner and a helper"
    starts = [start for start in sizes if re.match(r"\[.{5}\] <\S+> \S+[:,] ", days[0].lines[start])]
    regulars = irc._regulars(1)
    directed = [start for start in starts if re.split(r"[:,] ", days[0].lines[start].split()[2] + " ")[0] in regulars]
    assert 5 < len(directed) < 0.2 * len(crowds), "some first messages are directed"
    assert len(days[0].links) > len(days[0].messages), "some messages answer two"


def test_dialogues_are_between_an_asker_and_a_helper() -> None:
    for dialogue in irc.dialogues(200, 2):
        speakers = [turn.speaker for turn in dialogue.turns]
        assert speakers[:2] == ["participant_1", "participant_2"]
        assert all(a != b for a, b in pairwise(speakers))
        assert len(dialogue.turns) >= 3
        assert not re.search(r"[{}<\[]|  ", "".join(turn.text for turn in dialogue.turns))
    assert dialogue.id == "irc-000200"
    assert any(len(turn.posts) > 1 for dialogue in irc.dialogues(20, 2) for turn in dialogue.turns)


def test_hardly_anything_is_said_twice() -> None:
    posts = [post for dialogue in irc.dialogues(11_600, 1) for turn in dialogue.turns for post in turn.posts][:100_000]
    assert len(posts) == 100_000
    assert len(posts) / len(set(posts)) < 1.3


def test_every_template_can_be_filled() -> None:
    known = topics()
    for problem in known.problems:
        outcomes = [template for outcome in problem.outcomes for template in outcome.answer + outcome.fix]
        own = [
            problem.doubt,
            problem.reassure,
            *problem.ask,
            *problem.more,
            *problem.check,
            *problem.fallback,
            *outcomes,
        ]
        assert problem.factoid is None or problem.factoid in known.factoids
        for case in problem.cases:
            slots = Slots(Random(1), {**case, "topic": problem.topic}, known.slots, known.macros)
            for template in own + [template for group in known.talk.values() for template in group]:
                for option in {option for part in template.parts for option in part}:
                    assert "{" not in option.format_map(slots), problem.name


def test_the_grammar_chooses_counts_and_remembers() -> None:
    slots = Slots(Random(1), {}, {"disk": Template("sd[a|b|c]")}, {"go": Template("[do|run]")})
    texts = {slots.fill(Template("{@go} {disk} <3-5>[!|]")) for _ in range(200)}
    assert len({text.split()[1] for text in texts}) == 1
    assert {text.split()[0] for text in texts} == {"do", "run"}
    assert {text.split()[2] for text in texts} == {"3", "4", "5", "3!", "4!", "5!"}
    assert tidy("well ,  try , , this ?. ") == "well, try, this?"
    assert {len(mistype("grub2", Random(i).random)) for i in range(50)} == {4, 5, 6}
    assert mistype("ok", Random(1).random) == "ok"


def recalls(scores: np.ndarray, rng: Random) -> float:
    """Recall at 1 with 99 other replies drawn at random; a tie counts against the right one."""
    size = len(scores)
    hits = 0
    for i in range(size):
        others = rng.sample([j for j in range(size) if j != i], 99)
        hits += bool(scores[i, i] > scores[i, others].max())
    return hits / size


def test_replies_can_be_learnt_but_not_found_by_shared_words_alone() -> None:
    rng = Random(7)
    pairs = []
    for dialogue in irc.dialogues(5_000, 1):
        cut = rng.randrange(1, len(dialogue.turns), 2)
        pairs.append((" ".join(turn.text for turn in dialogue.turns[:cut]), dialogue.turns[cut].text))
    vectors = TfidfVectorizer(sublinear_tf=True)
    vectors.fit([text for pair in pairs for text in pair])
    contexts, replies = (vectors.transform(side) for side in zip(*pairs, strict=True))
    test = slice(4_500, 5_000)
    overlap = (contexts[test] @ replies[test].T).toarray()
    similar = (contexts[test] @ contexts[:4_500].T).toarray()
    similar[similar < np.sort(similar)[:, -15:-14]] = 0
    learnt = similar**2 @ (replies[:4_500] @ replies[test].T).toarray()
    by_words, by_example = recalls(overlap, Random(1)), recalls(learnt, Random(1))
    assert 0.15 < by_words < 0.45
    assert by_words + 0.05 < by_example < 0.95


def test_it_is_fast_and_needs_no_more_memory_for_more_days(tmp_path: Path) -> None:
    begin = time.process_time()
    irc.write(tmp_path / "timed", 10_000, seed=1)
    # about 0.15 s is usual; the bound only catches a change of order
    assert time.process_time() - begin < 3
    peaks = []
    for size in (6_000, 24_000):
        tracemalloc.start()
        irc.write(tmp_path / str(size), size, seed=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]
