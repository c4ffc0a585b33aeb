"""The board under load: pages over 64 connections, and 1,000 submissions scored, all over real HTTP."""

import asyncio
import json
import os
import re
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from benchmarks.measuring import PYTHON
from benchmarks.results import Goal, Section, Table, ratio, seconds

CONNECTIONS = 64
PEER = "a bare FastAPI route"
P95 = 0.5
P95_SIGNED_IN = 1.0
RATE = 10.0

_BARE = """
import sys, uvicorn
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
app = FastAPI()
page = open(sys.argv[2]).read()
@app.get("/", response_class=HTMLResponse)
def index() -> str:
    return page
uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")
"""


def measure(quick: bool) -> Section:
    requests, submissions = (200, 20) if quick else (4_000, 1_000)
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        track, tokens, visit, runs = _prepare(folder / "board", submissions)
        cookie = f"Cookie: board={visit}\r\n"
        serve = [PYTHON, "-c", "from rejoinder.cli import main; main()", "board", "serve", str(folder / "board")]
        with _served(serve) as (at, process):
            before = _processor_seconds(process)
            taken, bad = _hand_in(at, track, tokens, runs, submissions)
            worked = _processor_seconds(process) - before
            _wait_for_standings(at, track)
            page = _body(at, f"/c/{track}")
            teams = page.count('role="rowheader"')
            loads = {
                f"leaderboard of {teams} rows": asyncio.run(_load(at, f"/c/{track}", requests)),
                "the same, signed in": asyncio.run(_load(at, f"/c/{track}", requests // 4, cookie)),
                "a team's own runs": asyncio.run(_load(at, f"/c/{track}/runs", requests // 4, cookie)),
            }
        (folder / "page.html").write_text(page)
        with _served([PYTHON, "-c", _BARE], [str(folder / "page.html")]) as (at, _):
            loads[f"{PEER} with the leaderboard's page"] = asyncio.run(_load(at, "/", requests))
    scored = [f"{submissions:,}", seconds(taken), f"{submissions / taken:.1f}", f"{submissions / worked:.1f}", str(bad)]
    return _section(loads, scored, submissions / taken, load)


def _section(loads: dict[str, tuple[list[float], float]], scored: list[str], rate: float, load: float) -> Section:
    rates = {name: len(times) / total for name, (times, total) in loads.items()}
    bare = list(rates.values())[-1]
    rows = [
        [name, f"{rates[name]:,.0f}", seconds(statistics.median(times)), seconds(_p95(times)), ratio(rates[name], bare)]
        for name, (times, _) in loads.items()
    ]
    header = ("page", "requests a second", "median", "95th percentile", f"rate against {PEER}")
    late, signed_in, *_ = (_p95(times) for times, _ in loads.values())
    goals = [
        Goal(f"leaderboard under {CONNECTIONS} connections: p95 in {seconds(P95)}", seconds(late), late <= P95),
        Goal(f"the same, signed in: p95 in {seconds(P95_SIGNED_IN)}", seconds(signed_in), signed_in <= P95_SIGNED_IN),
        Goal(f"submissions scored: {RATE:.0f} a second", f"{rate:.1f}", rate >= RATE),
    ]
    note = [
        "Server and clients share the cores. Visitors share a leaderboard for a second, as do a team's members.",
        f"Load average of the machine before: {load:.1f}.",
    ]
    tables = [
        Table(f"Pages, {CONNECTIONS} connections kept open", header, rows, note),
        Table(
            "Submissions of 300 dialogues by 40 teams over 16 connections, until the last is scored",
            ("submissions", "time", "a second", "a second of a processor", "lost or refused"),
            [scored],
        ),
    ]
    return Section("Board", tables, goals)


def _p95(times: list[float]) -> float:
    return sorted(times)[int(0.95 * len(times))]


def _prepare(folder: Path, submissions: int) -> tuple[str, list[str], str, list[bytes]]:
    """Make a board with 40 teams, their tokens, a signed-in browser, and runs for them."""
    import numpy as np

    from rejoinder.board import accounts, teams
    from rejoinder.board.competitions import Place, Rules, add_track, create_competition, store_truth
    from rejoinder.board.models import now
    from rejoinder.board.sample import QUALITY
    from rejoinder.board.scorer_process import ScorerProcess
    from rejoinder.board.site import create_site
    from rejoinder.runs import dialeval as runs
    from rejoinder.runs.judgement import JudgementRun
    from rejoinder.sample import helpdesk
    from rejoinder.tasks import dialeval

    site = create_site(folder)
    data = folder.parent / "data"
    helpdesk.write(data, 3_000, 0)
    rules = Rules(name="Load", opens=now(), closes=now() + timedelta(days=1), quota=submissions, private=False)
    with site.database.writing() as session:
        competition = create_competition(session, rules)
        users = [accounts.register(session, f"user {number}", "-") for number in range(40)]
        for user in users:
            teams.create_team(session, user, f"Team {user.name}")
        tokens = [accounts.create_token(session, user, "load") for user in users]
        visit = accounts.start_visit(session, users[0])
    with ScorerProcess() as scorer:
        track = add_track(site, scorer, competition, store_truth(site, [data / "test_en.json"]), Place(), QUALITY)
    truth = dialeval.read_task(data / "test_en.json").truth()
    made = []
    for number, near in enumerate(np.linspace(0, 0.9, 40)):
        mixed = {
            name: near * asked.distribution + (1 - near) / asked.votes.shape[1]
            for name, asked in truth.answers.items()
            if not asked.question.roles
        }
        runs.write(data / f"{number}.json", JudgementRun("run", mixed), truth)
        made.append((data / f"{number}.json").read_bytes())
    site.close()
    return f"{competition.slug}/{track.slug}", tokens, visit, made


@contextmanager
def _served(command: list[str], more: list[str] | None = None) -> Iterator[tuple[int, int]]:
    """Serve, and yield the port and the process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = ["--port", str(port)] if more is None else [str(port), *more]
    process = subprocess.Popen([*command, *place], stdout=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                _body(port, "/")
                break
            except OSError:
                time.sleep(0.1)
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(60)


def _processor_seconds(process: int) -> float:
    """Return how long a server and its scorers have worked, also those that were replaced."""

    def spent(process: str, of_children: bool) -> float:
        ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]
        return sum(map(int, ticks if of_children else ticks[:2])) / os.sysconf("SC_CLK_TCK")

    children = [path.read_text().split() for path in Path(f"/proc/{process}/task").glob("*/children")]
    return spent(str(process), True) + sum(spent(child, False) for each in children for child in each)


def _body(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        return answer.read().decode()


def _wait_for_standings(port: int, track: str) -> None:
    while _body(port, f"/c/{track}").count('role="rowheader"') < 20:
        time.sleep(0.2)


def _hand_in(port: int, track: str, tokens: list[str], runs: list[bytes], submissions: int) -> tuple[float, int]:
    """Hand runs in over 16 connections and return how long that took, and how many were not scored."""
    path = f"/api/competitions/{track}/runs"

    async def client(numbers: Iterator[int], answers: list[int]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in numbers:
            head = f"Authorization: Bearer {tokens[number % 40]}\r\nContent-Length: {len(runs[number % 40])}\r\n"
            status, _ = await _ask(reader, writer, f"POST {path}", head, runs[number % 40])
            answers.append(status)
        writer.close()

    async def all_clients() -> list[int]:
        numbers, answers = iter(range(submissions)), []
        await asyncio.gather(*(client(numbers, answers) for _ in range(16)))
        return answers

    start = time.perf_counter()
    answers = asyncio.run(all_clients())
    while (states := _states(port, path, tokens)).count("waiting"):
        time.sleep(0.2)
    taken = time.perf_counter() - start
    return taken, len(answers) - states.count("scored")


def _states(port: int, path: str, tokens: list[str]) -> list[str]:
    """Return what became of every submission."""
    states = []
    for token in tokens:
        asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            states += [run["status"] for run in json.load(answer)]
    return states


async def _load(port: int, path: str, requests: int, head: str = "") -> tuple[list[float], float]:
    """Ask for a page over and over and return the time of each answer, and the time of all."""
    times: list[float] = []
    numbers = iter(range(requests))

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in numbers:
            start = time.perf_counter()
            status, _ = await _ask(reader, writer, f"GET {path}", head)
            assert status == 200
            times.append(time.perf_counter() - start)
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))
    return times, time.perf_counter() - start


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, what: str, head: str, body: bytes = b""
) -> tuple[int, bytes]:
    writer.write(f"{what} HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}\r\n".encode() + body)
    await writer.drain()
    top = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = re.search(r"content-length: (\d+)", top, re.IGNORECASE)
    assert length, top
    return int(top.split(" ", 2)[1]), await reader.readexactly(int(length[1]))


if __name__ == "__main__":
    print(json.dumps(measure(quick=True)))
