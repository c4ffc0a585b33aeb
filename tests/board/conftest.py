"""Boards to test: in this process behind a test client, or as real processes on SQLite and PostgreSQL."""

import asyncio
import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from rejoinder.board import accounts, submissions, teams
from rejoinder.board.competitions import Place, Rules, add_track, create_competition, store_truth
from rejoinder.board.jobs import Jobs
from rejoinder.board.models import Submission, Track, User, now
from rejoinder.board.scorer_process import ScorerProcess
from rejoinder.board.site import Site, create_site
from rejoinder.board.web.app import Options, create_app
from rejoinder.runs import dialeval as runs
from rejoinder.runs.judgement import JudgementRun
from rejoinder.sample import helpdesk
from rejoinder.tasks import dialeval

POSTGRES = max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/usr/lib/postgresql/15/bin"))
PASSWORD = "correct horse"
MEASURES = ["NMD(A)", "RSNOD(A)"]


@functools.cache
def hashed() -> str:
    return accounts.hash_password(PASSWORD)


@pytest.fixture(scope="session")
def truth_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("truth")
    helpdesk.write(folder, 60, 0)
    return folder / "test_en.json"


@pytest.fixture(scope="session")
def make_run(truth_file: Path) -> Callable[..., bytes]:
    """Return a run that mixes the truth with the uniform distribution: the nearer to 1, the better."""
    truth = dialeval.read_task(truth_file).truth()
    folder = truth_file.parent / "runs"

    def make(nearness: float, seed: int = 0) -> bytes:
        rng = np.random.default_rng(seed)
        answers = {}
        for name, asked in truth.answers.items():
            mixed = asked.distribution.copy()
            share = nearness * rng.uniform(0.9, 1, size=(len(mixed), 1))
            mixed = share * mixed + (1 - share) * (asked.votes >= 0) / mixed.shape[1]
            if asked.question.roles:
                continue
            answers[name] = mixed
        path = folder / f"{nearness}-{seed}.json"
        runs.write(path, JudgementRun("run", answers), truth)
        return path.read_bytes()

    return make


@pytest.fixture(scope="session")
def bad_run(make_run: Callable[..., bytes]) -> bytes:
    records = json.loads(make_run(0.5))
    records[6]["quality"]["A"]["0"] += 0.5
    return json.dumps(records).encode()


class World:
    """A board with what a test needs on it."""

    def __init__(self, site: Site, truth_file: Path, scorer: ScorerProcess) -> None:
        self.site, self.truth_file, self.scorer = site, truth_file, scorer

    def competition(self, **rules: object) -> Track:
        """Add a competition on helpdesk dialogues, with one track."""
        return self.track(self.truth_file, MEASURES, Place("English", "Quality"), **rules)

    def user(self, name: str, team: str | None = None, admin: bool = False) -> User:
        """Add somebody, and perhaps a team of his own."""
        with self.site.database.writing() as session:
            user = accounts.register(session, name, hashed(), admin)
            if team:
                teams.create_team(session, user, team)
        with self.site.database.reading() as session:
            return session.get_one(User, user.id)

    def bearer(self, user: User) -> dict[str, str]:
        """Return the headers with a new token."""
        with self.site.database.writing() as session:
            return {"Authorization": f"Bearer {accounts.create_token(session, user, 'test')}"}

    def track(self, truth: Path, measures: list[str], place: Place | None = None, **rules: object) -> Track:
        """Add a competition on a truth, with one track."""
        start = now()
        usual = {"name": "Contest", "opens": start - timedelta(1), "closes": start + timedelta(1), "private": False}
        with self.site.database.writing() as session:
            competition = create_competition(session, Rules(**{**usual, **rules}))
        files = store_truth(self.site, [truth])
        return add_track(self.site, self.scorer, competition, files, place or Place(), measures)

    def hand_in(self, user: User, track: Track, content: bytes, name: str = "run") -> Submission:
        """Hand a run in and score it, without a server."""

        async def chunks() -> AsyncIterator[bytes]:
            yield content

        # in a thread of its own: a browser under test has a loop running in this one
        with ThreadPoolExecutor(1) as thread:
            stored = thread.submit(asyncio.run, submissions.receive(self.site, name, chunks(), 1 << 30)).result()
        try:
            submission = submissions.accept(self.site, stored, user, track.id)
        except BaseException:
            submissions.discard(self.site, stored)
            raise
        jobs = Jobs(self.site, 0, 64 << 20)
        with self.site.database.reading() as session:
            jobs._score(self.scorer, session.get_one(Submission, submission.id))
        with self.site.database.reading() as session:
            return session.get_one(Submission, submission.id)

    def wait(self, until: Callable[[Session], object], seconds: float = 60) -> object:
        """Wait until something in the database holds, and return it."""
        for _ in range(int(seconds / 0.05)):
            with self.site.database.reading() as session:
                if found := until(session):
                    return found
            time.sleep(0.05)
        raise AssertionError("waited in vain")


@pytest.fixture(scope="session")
def scorer() -> Iterator[ScorerProcess]:
    with ScorerProcess() as process:
        yield process


@pytest.fixture(scope="session")
def world_type() -> type[World]:
    return World


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = create_site(tmp_path / "board")
    yield made
    made.close()


@pytest.fixture
def world(site: Site, truth_file: Path, scorer: ScorerProcess) -> World:
    return World(site, truth_file, scorer)


@pytest.fixture
def make_world(tmp_path: Path, truth_file: Path, scorer: ScorerProcess) -> Iterator[Callable[..., World]]:
    """Make boards on this or that database."""
    made: list[World] = []

    def make(database: str | None = None) -> World:
        made.append(World(create_site(tmp_path / f"board-{len(made)}", database), truth_file, scorer))
        return made[-1]

    yield make
    for each in made:
        each.site.close()


class Browser:
    """A person's browser without scripts: keeps cookies, and fills the form's token in."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def get(self, path: str, **options: object):
        return self.client.get(path, **options)

    def token(self, path: str = "/help") -> str:
        return re.search(r'name="csrf" value="([0-9a-f]+)"', self.get(path).text)[1]

    def post(self, path: str, data: dict | None = None, at: str | None = None, **options: object):
        csrf = self.token(at or "/account") if at != "" else ""
        return self.client.post(path, data={"csrf": csrf, **(data or {})}, **options)

    def sign_in(self, name: str) -> "Browser":
        done = self.post("/login", {"name": name, "password": PASSWORD}, at="/login")
        assert done.status_code == 303, done.text
        return self


@contextmanager
def served(site: Site) -> Iterator[TestClient]:
    """Serve a board in this process."""
    app = create_app(site, Options(url="http://testserver", scorers=1))
    with TestClient(app, follow_redirects=False) as client:
        yield client


@pytest.fixture
def application(site: Site) -> Iterator[TestClient]:
    with served(site) as client:
        yield client


@pytest.fixture
def browse(application: TestClient) -> Callable[[], Browser]:
    return lambda: Browser(TestClient(application.app, follow_redirects=False))


@pytest.fixture
def somewhere(make_world: Callable[..., World], database_url: str | None) -> Iterator[tuple[World, Browser]]:
    """Return a board on SQLite, then one on PostgreSQL, and the browser of its administrator."""
    world = make_world(database_url)
    world.user("Olga", admin=True)
    with served(world.site) as client:
        yield world, Browser(client).sign_in("Olga")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A board in a process of its own."""

    def __init__(
        self, folder: Path, database: str | None = None, scorers: int = 2, url: str = "", trusted: str = ""
    ) -> None:
        self.folder, self.database, self.scorers = folder, database, scorers
        self.more = ["--url", url] if url else []
        self.environment = {**os.environ, "FORWARDED_ALLOW_IPS": trusted} if trusted else None
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.output = folder.parent / f"server-{self.port}.txt"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Server":
        command = [sys.executable, "-c", "from rejoinder.cli import main; main()", "board", "serve", str(self.folder)]
        command += ["--port", str(self.port), "--scorers", str(self.scorers), *self.more]
        command += ["--database", self.database] if self.database else []
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, env=self.environment)
        for _ in range(600):
            try:
                with urllib.request.urlopen(self.url, timeout=5):
                    return self
            except OSError:
                assert self.process.poll() is None, self.output.read_text()
                time.sleep(0.1)
        raise AssertionError(self.output.read_text())

    def link(self) -> str:
        return re.findall(r"http://\S+/link/\S+", self.output.read_text())[-1]

    def kill(self, how: int = signal.SIGKILL) -> None:
        if self.process:
            self.process.send_signal(how)
            self.process.wait(30)


@pytest.fixture
def make_server() -> Iterator[Callable[..., Server]]:
    made: list[Server] = []

    def make(*arguments: object, **options: object) -> Server:
        made.append(Server(*arguments, **options))
        return made[-1].start()

    yield make
    for server in made:
        server.kill()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a PostgreSQL server of our own, and return its URL without a database's name."""
    if not (POSTGRES / "initdb").exists():
        pytest.skip(f"no PostgreSQL server: {POSTGRES}/initdb is missing")
    folder = Path(tempfile.mkdtemp(prefix="board-postgres-"))
    nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    if nobody:
        shutil.chown(folder, "nobody", "nogroup")
    folder.chmod(0o700)
    data, port = folder / "data", free_port()
    process = None
    try:
        make = [
            *nobody,
            POSTGRES / "initdb",
            "-D",
            data,
            "-U",
            "board",
            "-A",
            "trust",
            "-N",
            "--no-locale",
            "-E",
            "UTF8",
        ]
        subprocess.run(list(map(str, make)), check=True, capture_output=True, cwd="/")
        run = [*nobody, POSTGRES / "postgres", "-D", data, "-p", port, "-k", folder, "-c", "listen_addresses=127.0.0.1"]
        run += ["-c", "max_connections=300", "-c", "fsync=off"]
        output = tmp_path_factory.mktemp("postgres") / "output.txt"
        with output.open("wb") as file:
            process = subprocess.Popen(list(map(str, run)), stdout=file, stderr=file, cwd="/")
        for _ in range(300):
            ready = [str(POSTGRES / "pg_isready"), "-h", "127.0.0.1", "-p", str(port), "-U", "board", "-q"]
            if subprocess.run(ready, check=False).returncode == 0:
                break
            assert process.poll() is None, output.read_text()
            time.sleep(0.1)
        yield f"postgresql://board@127.0.0.1:{port}"
    finally:
        if process:
            process.terminate()
            process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres: str) -> str:
    import psycopg

    name = f"board_{os.urandom(6).hex()}"
    with psycopg.connect(f"{postgres}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"{postgres}/{name}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str | None:
    return None if request.param == "sqlite" else request.getfixturevalue("postgres_url")
