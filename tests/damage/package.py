"""What the package makes of a file: refused with a clear error, or scored for exactly what it still says."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.damage.plain import judge

from rejoinder.files import BadInputError
from rejoinder.formats import recognise_truth
from rejoinder.measures.scoring import read_run, score_run
from rejoinder.tasks.truth import Truth, read_truth


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


def put(path: Path, raw: bytes) -> Path:
    path.unlink(missing_ok=True)
    path.write_bytes(raw)
    return path
