"""The promises of the Ubuntu subtasks, on real logs with links by hand."""

import itertools

import pytest
from tests.real.data import DATA, needs

from rejoinder.corpora.irc import read_log
from rejoinder.corpora.link_files import annotation_files, read_annotations
from rejoinder.corpora.ubuntu import addressee
from rejoinder.tasks.knowledge import knowledge_files, read_pages
from rejoinder.tasks.ubuntu import UbuntuPlan, build_subtasks, split_by_day
from rejoinder.tasks.ubuntu_logs import find_logs, gather

LINKS = DATA / "irc-links" / "train"

pytestmark = needs("irc-links")


@pytest.fixture(scope="module")
def gathered():
    links = annotation_files(LINKS)
    return gather(
        find_logs([LINKS]),
        lambda path, posts: read_annotations(links[path.name.removesuffix(".raw.txt")]),
        pool_size=20_000,
        seed=0,
        advance=lambda _: None,
    )


def test_real_dialogues_pass_every_filter(gathered):
    assert gathered.funnel.kept == len(gathered.dialogues) > 1_000
    nicks = {post.nick.lower() for path in find_logs([LINKS])[:20] for post in read_log(path) if post.nick}
    for support in gathered.dialogues:
        turns = support.dialogue.turns
        assert {turn.speaker for turn in turns} <= {"participant_1", "participant_2"}
        assert turns[0].speaker == "participant_1"
        assert all(first.speaker != second.speaker for first, second in itertools.pairwise(turns))
    directed = sum(addressee(support.messages[0], nicks) is not None for support in gathered.dialogues)
    assert directed / len(gathered.dialogues) < 0.02
    addressed = sum(addressee(text, nicks) is not None for text in gathered.utterances)
    assert addressed / len(gathered.utterances) < 0.02


def test_real_tasks_keep_their_promises(gathered):
    tasks = {(s, side): task for s, side, task in build_subtasks(gathered, UbuntuPlan(seed=3, pool_size=20_000))}
    days = {
        side: {one.day for one in dialogues}
        for side, dialogues in split_by_day(gathered.dialogues, (0.8, 0.1, 0.1)).items()
    }
    assert max(days["train"]) < min(days["dev"]) <= max(days["dev"]) < min(days["test"])
    for side in ("train", "dev", "test"):
        assert set(tasks[1, side].examples["options"].list.n_unique()) == {100}
        assert set(tasks[1, side].examples["correct"].list.len()) == {1}
        assert set(tasks[4, side].examples["correct"].list.len()) == {0, 1}
        assert (tasks[4, side].examples["correct"].list.len() == 0).mean() == pytest.approx(0.2, abs=0.01)
        assert tasks[2, side].options.equals(tasks[2, "train"].options)
        assert all(turns[-1]["speaker"] == "participant_1" for turns in tasks[1, side].examples["turns"])


def test_real_manual_pages_are_read(tmp_path):
    archive = DATA / "manpages.tar.xz"
    if not archive.is_file():
        pytest.skip(f"no manual pages at {archive}")
    import tarfile

    with tarfile.open(archive) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # from Python 3.11.4 on
        packed.extractall(tmp_path, members=packed.getmembers()[:50])
    pages = read_pages(knowledge_files(str(tmp_path)))
    assert pages.height > 30
    assert (pages["text"].str.len_chars() > 100).mean() > 0.9
