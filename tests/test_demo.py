import re

import pytest

from rejoinder.demo import run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo")
    run(out, size=60, seed=2)
    return out


def test_the_demo_leaves_data_tasks_runs_and_a_report(folder):
    assert (folder / "sample/films/movie_kb.txt").exists()
    assert (folder / "tasks/ubuntu_test_subtask_4.json").exists()
    assert (folder / "runs/advising_3/BM25.json").exists()
    assert (folder / "runs/ubuntu_1/dual encoder.json").exists()
    assert (folder / "runs/films_1/film answers.parquet").exists()
    assert (folder / "runs/films_2/mixture.parquet").exists()
    assert (folder / "runs/helpdesk_cn/kernel.json").exists()


def test_the_report_opens_offline(folder):
    page = (folder / "report.html").read_text()
    assert "<svg" in page
    # no script and nothing fetched: the only addresses are names of XML vocabularies
    assert "<script" not in page
    assert "<link" not in page
    addresses = set(re.findall(r'(?:src|href)="(?!#)([^"]*)"', page)) | set(re.findall(r"url\((?!#)[^)]*\)", page))
    assert addresses == set()


def test_the_report_says_at_its_top_what_came_out(folder):
    top = (folder / "report.html").read_text().partition("</header>")[0]
    assert re.search(
        r"<strong>Ubuntu, subtask 1: dual encoder 0\.\d+, BM25 0\.\d+ \(MRR, p [^)]*\): [^<]+</strong>", top
    )


def test_a_system_that_can_say_none_answers_subtask_4(folder):
    assert '"NONE"' in (folder / "runs/ubuntu_4/words or none.json").read_text()
    section = (folder / "report.html").read_text().split("Ubuntu, subtask 4: perhaps none</h2>")[1]
    assert re.findall(r'<th scope="row">([^<]*)</th>', section.split("</table>")[0])[0] == "words or none"


def test_better_systems_score_better_in_the_report(folder):
    page = (folder / "report.html").read_text()
    overview = re.findall(r'<th scope="row">([^<]*)</th>', page.split("Overview by DSTC7</h2>")[1].split("</table>")[0])
    assert overview[-1] == "random"
    judges = re.findall(r'<th scope="row">([^<]*)</th>', page.split("Overview by NMD(A)</h2>")[1].split("</table>")[0])
    assert judges[0] == "kernel"
    assert judges.index("train mean") < judges.index("uniform")
