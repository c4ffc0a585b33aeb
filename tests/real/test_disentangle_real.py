import shutil

import pytest
from tests.real.data import DATA, needs

from rejoinder.corpora.disentangle import train
from rejoinder.corpora.irc import read_log
from rejoinder.corpora.link_files import annotation_files, read_annotations
from rejoinder.corpora.link_model import QUICK
from rejoinder.measures.disentanglement import score

LINKS = DATA / "irc-links"
LOGS = DATA / "ubuntu-logs"

needs_links = needs("irc-links")
needs_logs = needs("ubuntu-logs")


@needs_links
def test_a_model_of_twenty_real_logs_links_the_development_logs(tmp_path):
    for path in list(annotation_files(LINKS / "train").values())[::8]:
        shutil.copy(path, tmp_path)
        shutil.copy(path.with_name(path.name.replace("annotation", "raw")), tmp_path)
    model = train(tmp_path, settings=QUICK)
    gold = {name: read_annotations(path) for name, path in annotation_files(LINKS / "dev").items()}
    found = {name: list(model.links(read_log(LINKS / "dev" / f"{name}.raw.txt"))) for name in gold}
    figures = score(gold, found)
    assert figures["link F"] > 66
    assert figures["variation of information"] > 88
    assert figures["one-to-one"] > 68
    assert figures["exact match F"] > 25


@needs_links
def test_real_annotations_agree_with_themselves_and_cover_each_line_from_1000():
    for name, path in annotation_files(LINKS / "dev").items():
        links = read_annotations(path)
        assert list(score({name: links}, {name: links}).values()) == pytest.approx([100] * 8)
        lines = sum(1 for _ in read_log(LINKS / "dev" / f"{name}.raw.txt"))
        assert {b for _, b in links} == set(range(1000, lines))


@needs_links
def test_real_logs_of_fourteen_years_are_understood():
    for path in sorted((LINKS / "train").glob("*.raw.txt")):
        posts = list(read_log(path))
        strange = [post for post in posts if post.kind == "other"]
        assert len(strange) <= max(3, len(posts) // 30), (path.name, strange[:3])
        minutes = [post.minute for post in posts]
        assert minutes == sorted(minutes)


@needs_logs
def test_real_days_last_a_day():
    for path in sorted(LOGS.glob("*.txt.gz")):
        minutes = [post.minute for post in read_log(path) if post.kind == "message"]
        assert minutes[-1] - minutes[0] < 1440, path.name
