import re
import tracemalloc
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge

from rejoinder.sample import helpdesk
from rejoinder.sample.helpdesk import dialogues, write
from rejoinder.sample.helpdesk_script import phrases
from rejoinder.sample.helpdesk_votes import ANNOTATORS
from rejoinder.tasks.dialeval import CUSTOMER_LABELS, HELPDESK_LABELS, DialogueRecord

CRITERIA = ("a", "s", "e")
NAMES = {f"{split}_{language}.json" for split in ("train", "dev", "test") for language in ("en", "cn")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("helpdesk")
    write(out, 1000, seed=3)
    return out


def read(path: Path) -> list[DialogueRecord]:
    return msgspec.json.decode(path.read_bytes(), type=list[DialogueRecord])


def openings(corpus: list[DialogueRecord]) -> set[tuple[str, ...]]:
    return {tuple(dialogue.turns[0].utterances) for dialogue in corpus}


def scores(corpus: list[DialogueRecord]) -> np.ndarray:
    rows = [[[getattr(vote.quality, c) for c in CRITERIA] for vote in one.annotations] for one in corpus]
    return np.array(rows, dtype=float)


def marked_text(one: DialogueRecord) -> str:
    words = [(turn.sender[0], word) for turn in one.turns for post in turn.utterances for word in post.split()]
    return " ".join(f"{sender}_{word}" for sender, word in words)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    for name, seed in (("one", 1), ("two", 1), ("three", 2)):
        write(tmp_path / name, 40, seed)
    one, two, three = ({p.name: p.read_bytes() for p in (tmp_path / n).iterdir()} for n in ("one", "two", "three"))
    assert set(one) == NAMES
    assert one == two
    assert all(one[name] != three[name] for name in NAMES)


def test_a_smaller_sample_is_the_beginning_of_a_larger_one() -> None:
    assert list(dialogues(20, 5)) == list(islice(dialogues(700, 5), 20))


def test_the_file_has_exactly_the_official_fields(folder: Path) -> None:
    records = msgspec.json.decode((folder / "train_cn.json").read_bytes())
    assert len(records) == 1000
    for record in records:
        assert list(record) == ["id", "turns", "annotations"]
        assert all(set(turn) == {"sender", "utterances"} for turn in record["turns"])
        assert all(set(vote) == {"quality", "nugget"} for vote in record["annotations"])
        assert all(set(vote["quality"]) == {"A", "S", "E"} for vote in record["annotations"])


@pytest.mark.parametrize("language", ["english", "chinese"])
def test_every_dialogue_is_well_formed(language: str) -> None:
    for one in dialogues(400, 9, language):
        assert 2 <= len(one.turns) <= 7
        assert [turn.sender for turn in one.turns] == (["customer", "helpdesk"] * 4)[: len(one.turns)]
        posts = [post for turn in one.turns for post in turn.utterances]
        assert all(post.strip() for post in posts)
        assert not any("{" in post or "}" in post for post in posts)
        assert len(one.annotations) == ANNOTATORS
        for vote in one.annotations:
            assert all(-2 <= getattr(vote.quality, c) <= 2 for c in CRITERIA)
            assert all(label in CUSTOMER_LABELS for label in vote.nugget[::2])
            assert all(label in HELPDESK_LABELS for label in vote.nugget[1::2])
            assert len(vote.nugget) == len(one.turns)


def test_some_turns_have_several_posts() -> None:
    sizes = [len(turn.utterances) for one in dialogues(300, 1) for turn in one.turns]
    assert 0.03 < np.mean(np.array(sizes) > 1) < 0.2


def test_english_and_chinese_are_translations(folder: Path) -> None:
    for split in ("train", "dev", "test"):
        pairs = list(zip(read(folder / f"{split}_en.json"), read(folder / f"{split}_cn.json"), strict=True))
        for english, chinese in pairs:
            assert english.id == chinese.id
            assert english.annotations == chinese.annotations
            shape = [len(turn.utterances) for turn in english.turns]
            assert shape == [len(turn.utterances) for turn in chinese.turns]
            # order numbers and amounts survive translation; short numbers may be dates
            numbers = [set(re.findall(r"\d{4,}", str(one.turns))) for one in (english, chinese)]
            assert numbers[0] == numbers[1]
            assert not re.search(r"[一-鿿]", str(english.turns))
            assert re.search(r"[一-鿿]", str(chinese.turns))


def test_every_phrase_has_the_same_slots_in_both_languages() -> None:
    def walk(node: object) -> list[list[str]]:
        if isinstance(node, list) and node and isinstance(node[0], str):
            return [node]
        children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        return [pair for child in children for pair in walk(child)]

    pairs = walk(msgspec.json.decode(msgspec.json.encode(phrases())))
    assert len(pairs) > 300
    for english, chinese in pairs:
        slots = [{s.removesuffix("_start") for s in re.findall(r"{(\w+)}", text)} for text in (english, chinese)]
        assert slots[0] == slots[1], english


def test_splits_have_their_sizes_and_share_neither_ids_nor_openings(folder: Path) -> None:
    splits = {name: read(folder / f"{name}_en.json") for name in ("train", "dev", "test")}
    assert {name: len(split) for name, split in splits.items()} == {"train": 1000, "dev": 100, "test": 100}
    for one, other in (("train", "dev"), ("train", "test"), ("dev", "test")):
        assert not {d.id for d in splits[one]} & {d.id for d in splits[other]}
        assert not openings(splits[one]) & openings(splits[other])


def test_a_tiny_sample_still_has_thirty_to_test_on(tmp_path: Path) -> None:
    write(tmp_path, 0, seed=1)
    assert [len(read(tmp_path / f"{name}_en.json")) for name in ("train", "dev", "test")] == [0, 30, 30]


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="'klingon'"):
        dialogues(1, 1, "klingon")
    with pytest.raises(ValueError, match="-5"):
        write(Path("nowhere"), -5, 1)


def test_text_predicts_mean_quality(folder: Path) -> None:
    train, test = read(folder / "train_en.json"), read(folder / "test_en.json")
    words = TfidfVectorizer(token_pattern=r"\S+", ngram_range=(1, 2))
    known, truth = scores(train).mean(1), scores(test).mean(1)
    model = Ridge(alpha=1.0).fit(words.fit_transform(map(marked_text, train)), known)
    error = ((model.predict(words.transform(map(marked_text, test))) - truth) ** 2).mean(0)
    assert (error < 0.6 * ((known.mean(0) - truth) ** 2).mean(0)).all()


def test_text_predicts_nuggets(folder: Path) -> None:
    def turns(corpus: list[DialogueRecord]) -> tuple[list[str], np.ndarray]:
        spoken = [(one, place) for one in corpus for place in range(1, len(one.turns), 2)]
        votes = [[vote.nugget[place] == "HNaN" for vote in one.annotations] for one, place in spoken]
        return [" ".join(one.turns[place].utterances) for one, place in spoken], np.mean(votes, 1) > 0.5

    (seen, useless), (unseen, truth) = (turns(read(folder / f"{name}_cn.json")) for name in ("train", "test"))
    characters = TfidfVectorizer(analyzer="char", ngram_range=(1, 3))
    model = LogisticRegression(C=10, max_iter=300).fit(characters.fit_transform(seen), useless)
    found = model.predict(characters.transform(unseen)) == truth
    assert found.mean() > max(truth.mean(), 1 - truth.mean()) + 0.1


def test_annotators_disagree_but_less_than_chance(folder: Path) -> None:
    votes = scores(read(folder / "train_en.json"))
    within, total = votes.var(1).mean(0), votes.var((0, 1))
    assert (within > 0.4).all()
    assert (within < 0.85 * total).all()


def test_annotators_keep_their_habits(folder: Path) -> None:
    votes = scores(read(folder / "train_en.json"))[..., 0]
    halves = votes[:500].mean(0), votes[500:].mean(0)
    assert np.corrcoef(halves)[0, 1] > 0.9
    assert np.std(halves[0]) > 0.2


def test_label_mix_looks_like_the_real_corpus(folder: Path) -> None:
    # marginals of the 3,700 training dialogues of DCH-1
    real = np.array([[155, 182, 420, 164, 80], [146, 175, 453, 158, 68], [151, 143, 305, 302, 98]]) / 1000
    votes = scores(read(folder / "train_en.json"))
    mix = np.array([[(votes[..., c] == score).mean() for score in range(-2, 3)] for c in range(3)])
    assert np.abs(mix - real).max() < 0.09


def test_memory_does_not_grow_with_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(helpdesk, "CHUNK", 32)
    peaks = []
    for size in (40, 400):
        write(tmp_path, 1, seed=1)
        tracemalloc.start()
        write(tmp_path, size, seed=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
