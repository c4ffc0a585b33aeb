import zipfile
from itertools import count, pairwise

import numpy as np
import pytest

from rejoinder.corpora.disentangle import link_logs, train
from rejoinder.corpora.irc import parse, read_log
from rejoinder.corpora.link_block import WINDOW, Block
from rejoinder.corpora.link_boosting import Trees, fit
from rejoinder.corpora.link_features import PRUNING, pair_features
from rejoinder.corpora.link_files import annotated_logs, conversations, read_annotations, write_annotations
from rejoinder.corpora.link_lexicon import BUCKETS, Lexicon, bucket, rarities, vectors
from rejoinder.corpora.link_messages import FACTS, MessageReader, seems_bot
from rejoinder.corpora.link_model import _FORMAT, QUICK, LinkModel
from rejoinder.corpora.link_structure import NEEDED
from rejoinder.files import BadInputError
from rejoinder.measures.disentanglement import score
from rejoinder.sample import irc as sample


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """A folder of three generated logs with their links, and the path of one more."""
    folder = tmp_path_factory.mktemp("known")
    for seed in range(4):
        sample.write(folder / str(seed), 900, seed)
        for ending in ("raw", "annotation"):
            (made,) = (folder / str(seed)).glob(f"*.{ending}.txt")
            made.rename(folder / f"day{seed}.{ending}.txt" if seed else folder / "0" / f"day.{ending}.txt")
    return folder, folder / "0" / "day.raw.txt"


@pytest.fixture(scope="module")
def model(split):
    return train(split[0], settings=QUICK)


@pytest.fixture(scope="module")
def some_posts(split):
    return list(read_log(split[1]))[:1200]


def f_of(links, gold):
    return score({"day": gold}, {"day": links})["link F"]


def test_a_trained_model_links_an_unseen_day_far_better_than_chronology(model, split):
    posts = list(read_log(split[1]))
    gold = read_annotations(split[1].with_name(split[1].name.replace("raw", "annotation")))
    said = [post.line for post in posts if post.kind != "event"]
    before = list(pairwise(said))
    figures = score({"day": gold}, {"day": list(model.links(posts))})
    assert figures["link F"] > f_of(before, gold) + 40
    assert figures["link F"] > 75
    assert figures["exact match F"] > 30


def test_every_line_gets_a_link_in_order_and_events_answer_nothing(model, some_posts):
    links = list(model.links(some_posts))
    assert [b for _, b in links] == sorted(b for _, b in links)
    assert {b for _, b in links} == {post.line for post in some_posts}
    kinds = {post.line: post.kind for post in some_posts}
    assert all(a == b for a, b in links if kinds[b] == "event")
    assert all(kinds[a] != "event" for a, b in links if a != b)
    assert all(a <= b for a, b in links)


@pytest.mark.parametrize("block", [1, 37, 100, 5000])
def test_blocks_make_no_difference(model, some_posts, block):
    posts = some_posts[:400] if block == 1 else some_posts
    assert list(model.links(posts, block)) == list(model.links(posts))


def test_a_log_is_read_as_a_stream(model):
    read = count()
    posts = parse(f"[{i // 60 % 24:02}:{i % 60:02}] <ann{i % 7}> word{i}" for i in iter(read.__next__, None))
    links = model.links(posts)
    for _ in range(2000):
        next(links)
    assert next(read) < 2000 + 2 * 512 + 100


def test_small_logs(model):
    assert list(model.links([])) == []
    assert list(model.links(parse(["[10:00] <ann> hi"]))) == [(0, 0)]
    events = ["=== ann [~a@example.net]  has joined #ubuntu", "=== ann is now known as anna"]
    assert list(model.links(parse(events))) == [(0, 0), (1, 1)]


def test_a_model_survives_its_file_and_the_seed_fixes_its_bytes(split, model, some_posts, tmp_path):
    model.save(tmp_path / "one.model")
    train(split[0], settings=QUICK).save(tmp_path / "two.model")
    assert (tmp_path / "one.model").read_bytes() == (tmp_path / "two.model").read_bytes()
    assert list(LinkModel.load(tmp_path / "one.model").links(some_posts)) == list(model.links(some_posts))
    train(split[0], seed=1, settings=QUICK).save(tmp_path / "other.model")
    assert (tmp_path / "one.model").read_bytes() != (tmp_path / "other.model").read_bytes()


def test_progress_is_told(split):
    said = []
    train(split[0], progress=said.append, settings=QUICK)
    assert len(said) == 3


def test_apply_writes_annotations_by_the_names_of_the_logs(model, split, tmp_path):
    model.save(tmp_path / "model")
    (path,) = link_logs([split[1]], tmp_path / "model", tmp_path / "out")
    assert path == tmp_path / "out" / split[1].name.replace("raw", "annotation")
    assert read_annotations(path) == list(model.links(read_log(split[1])))


def test_apply_refuses_two_logs_of_one_name_before_it_writes(model, split, tmp_path):
    model.save(tmp_path / "model")
    with pytest.raises(BadInputError, match="another log is named day too"):
        list(link_logs([split[1], tmp_path / split[1].name], tmp_path / "model", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_log_that_turns_out_bad_leaves_the_old_links(model, tmp_path, save, complaint):
    model.save(tmp_path / "model")
    write_annotations(tmp_path / "out" / "day.annotation.txt", [(0, 0)])
    bad = save("day.txt", "not a log\n")
    said = complaint(lambda: list(link_logs([bad], tmp_path / "model", tmp_path / "out")))
    assert said.startswith("day.txt: line 1: not an IRC log")
    assert read_annotations(tmp_path / "out" / "day.annotation.txt") == [(0, 0)]


def test_links_survive_their_file(tmp_path):
    links = [(0, 0), (0, 3), (2, 3)]
    write_annotations(tmp_path / "day.annotation.txt", links)
    assert (tmp_path / "day.annotation.txt").read_text() == "0 0 -\n0 3 -\n2 3 -\n"
    assert read_annotations(tmp_path / "day.annotation.txt") == links


def test_links_may_be_written_the_other_way_round(save):
    assert read_annotations(save("day.annotation.txt", "5 3 -\n\n4 4\n")) == [(3, 5), (4, 4)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 0 -\n1 -\n", "day.annotation.txt: line 2: expected `a b -`, the numbers of two lines, got '1 -'"),
        ("0 x -\n", "day.annotation.txt: line 1: expected `a b -`, the numbers of two lines, got '0 x -'"),
        ("-1 0 -\n", "day.annotation.txt: line 1: the number of a line is negative: -1"),
        ("0 0 -\n1 7 -\n", "day.annotation.txt: link 2: line 7 does not exist: the log has 2 lines from 0"),
        ("", "day.annotation.txt: no links; expected `a b -`, the numbers of two lines"),
    ],
)
def test_bad_annotations_are_named(save, complaint, tmp_path, text, expected):
    save("day.raw.txt", "[10:00] <ann> hi\n[10:01] <bob> hello\n")
    save("day.annotation.txt", text)
    assert complaint(lambda: list(annotated_logs(tmp_path))) == expected


def test_what_is_missing_is_named(save, complaint, tmp_path):
    assert complaint(train, tmp_path / "nowhere") == "nowhere: no such folder"
    (tmp_path / "empty").mkdir()
    assert complaint(train, tmp_path / "empty") == "empty: no annotations; expected files NAME.annotation.txt"
    save("day.annotation.txt", "0 0 -\n")
    assert complaint(train, tmp_path) == "day.annotation.txt: the log day.raw.txt is missing beside it"


def test_links_between_events_alone_teach_nothing(save, complaint, tmp_path):
    save("day.raw.txt", "=== ann is now known as bob\n=== bob is now known as ann\n")
    save("day.annotation.txt", "0 0 -\n1 1 -\n")
    assert "no link answers a message" in complaint(train, tmp_path)


@pytest.mark.parametrize("content", [b"", b"not a model", b"PK\x05\x06" + bytes(18)])
def test_a_file_that_is_no_model_is_refused(save, complaint, content):
    assert complaint(LinkModel.load, save("model", content)).startswith("model: not a model of reply links")


def test_an_archive_of_other_sizes_is_refused(complaint, tmp_path):
    with zipfile.ZipFile(tmp_path / "model", "w") as archive:
        archive.writestr("format", _FORMAT)
        archive.writestr("rarity", b"x")
    assert complaint(LinkModel.load, tmp_path / "model").startswith("model: not a model of reply links (buffer size")


def test_conversations_are_connected_components():
    assert conversations([(0, 0), (0, 2), (1, 1), (2, 5), (1, 4), (3, 3)]) == [[0, 2, 5], [1, 4], [3]]
    assert conversations([(3, 9), (4, 9)]) == [[3, 4, 9]]
    assert conversations([]) == []


def messages_of(*lines):
    words = np.full_like(rarities(["x"] * 3000), 8.0)
    return list(MessageReader(words).read(parse(lines)))


@pytest.mark.parametrize(
    "text",
    ["Jack_Sparrow: try it", "jack_sparrow, try it", "jack: try it", "@Jack_Sparrow: try", "try it Jack_Sparrow"],
)
def test_who_is_addressed(text):
    first, _, last = messages_of("[10:00] <Jack_Sparrow> hi", "[10:01] <bob> hi", f"[10:02] <ann> {text}")
    assert last.addressees == (first.person,)


def test_an_address_follows_a_change_of_nick():
    first, last = messages_of("[10:00] <jill> hi", "=== jill is now known as jane", "[10:02] <ann> jill: hello")
    assert last.addressees == (first.person,)


def test_nobody_is_addressed_by_a_word_that_is_everywhere():
    rarity = rarities(["will it work"] * 500 + ["rare words only"] * 9)
    found = list(MessageReader(rarity).read(parse(["[10:00] <will> hi", "[10:01] <ann> when will it work"])))
    assert found[1].addressees == ()
    found = list(MessageReader(rarity).read(parse(["[10:00] <will> hi", "[10:01] <ann> will: yes"])))
    assert found[1].addressees == (found[0].person,)


@pytest.mark.parametrize(
    ("nick", "expected"), [("ubottu", True), ("ubotu", True), ("FloodBot2", True), ("bottle", False), ("ann", False)]
)
def test_bots(nick, expected):
    assert seems_bot(nick) == expected


def test_features_of_a_pair():
    lines = [
        "[10:00] <ann> how do I mount a floppy?",
        "[10:01] <bob> anyone knows vim?",
        "[10:03] <cat> ann: mount the floppy",
        "[10:04] <ann> cat: thanks",
    ]
    flat = np.full(BUCKETS, 8.0, dtype=np.float32)
    lexicon = Lexicon(flat, np.eye(4, dtype=np.float32)[np.full(BUCKETS, 1)])
    block = Block(messages_of(*lines), 2, 4, lexicon)
    table = pair_features(block)

    def at(name, row, back):
        return table.features[name][row, back]

    assert {feature.shape for feature in table.features.values()} == {(2, WINDOW + 1)}
    assert set(PRUNING) | set(NEEDED) <= set(table.features)
    assert (at("mentions them", 0, 2), at("mentions them", 0, 1)) == (1, 0)
    assert (at("mentions me", 1, 1), at("mentions me", 1, 2)) == (1, 0)
    assert (at("minutes apart", 0, 2), at("messages apart", 0, 2)) == (3, 2)
    assert (at("same person", 1, 3), at("recency: own", 1, 3), at("recency: own", 1, 2)) == (1, 1, 0)
    assert at("shared words", 0, 2) == 2
    assert at("similar words", 0, 2) > at("similar words", 0, 1) == 0
    assert (at("other", 0, 0), at("other", 0, 1)) == (0, 1)
    assert at("theirs: asks", 0, 1) == 1
    assert at("author addressed since", 1, 3) == 1
    assert at("author addressed since", 1, 2) == 0
    assert at("they will address me", 0, 2) == 1
    assert at("mine: thanks", 1, 0) == 1
    assert f"mine: {FACTS[-1]}" in table.features


def test_words_used_together_are_alike():
    pools = [[bucket(f"{topic}{i}") for i in range(12)] for topic in ("disk", "sound", "chat")]
    random = np.random.default_rng(0)
    documents = [sorted(random.choice(pools[i % 3], 4, replace=False).tolist()) for i in range(600)]
    documents += [[bucket(f"noise{i}")] for i in range(4000)]
    found = vectors(documents)
    one, same, other = found[pools[0][0]], found[pools[0][1]], found[pools[1][0]]
    assert one @ same > 3 * abs(one @ other)
    assert not found[bucket("noise1")].any()
    assert not vectors([]).any()


def test_trees_learn_to_choose_within_a_group():
    random = np.random.default_rng(0)
    values = random.random((3000, 3), dtype=np.float32)
    groups = values[:, 0].reshape(-1, 5)
    correct = (groups == groups.max(1, keepdims=True)).astype(np.float32)
    model = fit(values, correct.ravel(), np.full(600, 5), Trees(trees=40, leaves=8, rate=0.3), 0)
    chosen = np.asarray(model.predict(values)).reshape(-1, 5).argmax(1)
    assert (chosen == groups.argmax(1)).mean() > 0.95
