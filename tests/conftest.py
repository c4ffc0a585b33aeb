import gzip
import json
import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side; threads of one would wait for another's

import pytest
from hypothesis import settings

from rejoinder.cli import main
from rejoinder.files import BadInputError

settings.register_profile("rejoinder", deadline=None, derandomize=True)
settings.load_profile("rejoinder")

Save = Callable[[str, object], Path]
Complaint = Callable[..., str]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write text, bytes, or anything else as JSON; gzipped if the name says so."""

    def save_(name: str, content: object) -> Path:
        path = tmp_path / name
        text = content if isinstance(content, str | bytes) else json.dumps(content, ensure_ascii=False)
        raw = text.encode() if isinstance(text, str) else text
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return path

    return save_


@pytest.fixture
def complaint(tmp_path: Path) -> Complaint:
    """Call a function and return what it says of its input, without the folder."""

    def complaint_(function: Callable[..., object], *arguments: object, **options: object) -> str:
        with pytest.raises(BadInputError) as caught:
            function(*arguments, **options)
        return str(caught.value).replace(f"{tmp_path}/", "")

    return complaint_


@pytest.fixture
def full_disk():
    """Let no file grow beyond some bytes, as if the disk were full."""

    @contextmanager
    def full_disk_(size: int) -> Iterator[None]:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return full_disk_


@pytest.fixture
def cli(monkeypatch, capsys):
    """Run the command line and return (exit code, standard output, error output)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["rejoinder", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as stopped:
            main()
        out, err = capsys.readouterr()
        return stopped.value.code or 0, out, err

    return run
