"""Logs of the sample world, and what is gathered from them by their true links."""

import pytest

from rejoinder.corpora.link_files import read_annotations
from rejoinder.sample import irc
from rejoinder.tasks.ubuntu_logs import Gathered, find_logs, gather


def _true_links(path, posts):
    return read_annotations(path.with_name(path.name.replace(".raw.txt", ".annotation.txt")))


@pytest.fixture(scope="session")
def true_links():
    return _true_links


@pytest.fixture(scope="session")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    irc.write(folder, 30_000, seed=4)
    return find_logs([folder])


@pytest.fixture(scope="session")
def gathered(logs) -> Gathered:
    return gather(logs, _true_links, pool_size=6_000, seed=1, advance=lambda _: None, turns=True)
