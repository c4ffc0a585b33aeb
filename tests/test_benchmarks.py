"""The benchmarks run, on tiny sizes, without the peers that only `make bench` installs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.results import Goal, Section, Table, to_markdown

QUICK = ("files", "film_retrieval", "films", "judgement", "rankers_speed", "sample", "scoring", "startup", "statistics")
"""Topics that are quick on tiny sizes; `growth` trains a model first, `ubuntu` needs real logs."""
ROOT = Path(__file__).parent.parent


def bench(*arguments: str | Path, missing: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    if missing is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(missing), environment.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "benchmarks", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def no_ranx(tmp_path: Path) -> Path:
    folder = tmp_path / "missing"
    folder.mkdir()
    (folder / "ranx.py").write_text("raise ImportError\n")
    return folder


def test_quick_run(tmp_path: Path, no_ranx: Path) -> None:
    out = tmp_path / "results.md"
    done = bench("--quick", out, *QUICK, missing=no_ranx)
    assert done.returncode == 0, done.stderr
    text = out.read_text(encoding="utf-8")
    titles = re.findall("^## (.*)", text, re.MULTILINE)
    assert titles == sorted(titles)
    assert len(titles) == len(QUICK)
    agreements = [line for line in text.splitlines() if "to 1e-9 |" in line]
    assert len(agreements) == 2
    assert all(line.endswith("| yes |") for line in agreements)
    assert "ranx is left out: it is not installed." in text
    assert str(ROOT) not in text
    assert str(tmp_path) not in text
    assert {line.partition(":")[0] for line in done.stderr.splitlines()} == set(QUICK)


def test_some_topics_leave_the_others_as_they_were() -> None:
    first = Section("A", [Table("t", ("x",), [["1"]])], [Goal("aim", "found", True)])
    second = Section("B", [Table("t", ("x",), [["2"]], ["A note."])])
    page = to_markdown([second, first], quick=False)
    assert to_markdown([second], quick=False, page=page) == page
    changed = to_markdown([first._replace(tables=[])], quick=False, page=page)
    assert "| 1 |" not in changed
    assert changed.partition("## B")[2] == page.partition("## B")[2]
    absent = [Section("B", needs="a GPU"), Section("C", needs="a GPU")]
    assert to_markdown(absent, quick=False, page=page) == page + "\n## C\n\nNot measured: it needs a GPU.\n"


def test_an_unknown_topic() -> None:
    done = bench("scores")
    assert done.returncode == 2
    assert "no topic 'scores'" in done.stderr


def test_the_readme_says_what_was_measured_of_rankers() -> None:
    results, readme = ((ROOT / name).read_text() for name in ("docs/results.md", "README.md"))
    said = " ".join(readme.split())
    table = results.partition("\n## Rankers\n")[2].partition("**Ubuntu, subtask 1**")[2].partition("\n**")[0]
    for system, words in (
        ("cascade-read-mpnet", "comes first in {} of the cases"),
        ("bm25", "(BM25: {};"),
        ("sentence-transformers", "sentence-transformers' own trainer: {};"),
        ("cascade-taught", "or in {} with no encoder larger than MiniLM once it is trained"),
        ("cascade-quick-mpnet", "and in {} after ten minutes of training on two cores"),
    ):
        first = next(row for row in table.splitlines() if row.startswith((f"| {system} |", f"| {system} †")))
        assert words.format(f"{float(first.split('|')[2].split()[0]):.0%}") in said
