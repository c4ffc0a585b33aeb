"""The benchmarks run, on tiny sizes, without the peers that only `make bench` installs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

QUICK = ("files", "judgement", "sample", "scoring", "startup", "statistics")
"""Topics that are quick on tiny sizes; `ubuntu` trains a model first."""
ROOT = Path(__file__).parent.parent


def bench(*arguments: str | Path, missing: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    if missing is not None:
        environment["PYTHONPATH"] = str(missing)
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
    assert titles[0] == "Goals"
    assert titles[1:] == sorted(titles[1:])
    assert len(titles) == 1 + len(QUICK)
    agreements = [line for line in text.splitlines() if "to 1e-9 |" in line]
    assert len(agreements) == 2
    assert all(line.endswith("| yes |") for line in agreements)
    assert "ranx is left out: it is not installed." in text
    assert str(ROOT) not in text
    assert str(tmp_path) not in text
    assert {line.partition(":")[0] for line in done.stderr.splitlines()} == set(QUICK)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["scores"], "no topic 'scores'"), (["scoring"], "say with --out where to write some of them")],
)
def test_wrong_arguments(arguments: list[str], message: str) -> None:
    done = bench(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
