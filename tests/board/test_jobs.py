"""Background work: what is left when a server stops, and what a start tidies up."""

import asyncio
import json
import os
import time
from contextlib import closing

import pytest
from sqlalchemy import select

from rejoinder.board import submissions
from rejoinder.board.jobs import Jobs
from rejoinder.board.models import Submission, now
from rejoinder.board.scorer import Compare
from rejoinder.board.scorer_process import ScorerDiedError, ScorerProcess
from rejoinder.board.site import open_site
from rejoinder.board.sweep import OLD, sweep


def test_tables_may_take_longer_than_a_run(world):
    jobs = Jobs(world.site, 1, 64 << 20)
    assert jobs._keeper.seconds > 10 * max(scorer.seconds for scorer in jobs._scorers)


def test_a_server_that_stops_leaves_its_run_to_the_next(world):
    track, user = world.competition(), world.user("Anna", "Team A")
    record = json.dumps({"id": "1", "quality": {name: {"2": 1.0} for name in "ASE"}}).encode()

    async def slow():
        yield b"[" + (record + b",") * 200_000 + b"0]"

    stored = asyncio.run(submissions.receive(world.site, "slow.json", slow(), 1 << 30))
    run = submissions.accept(world.site, stored, user, track.id)

    def look(session):
        return session.get_one(Submission, run.id)

    jobs = Jobs(world.site, 1, 64 << 20)
    jobs.start()
    world.wait(lambda session: look(session).lease)
    start = time.monotonic()
    jobs.stop()
    assert time.monotonic() - start < 5
    assert world.wait(look).status == "waiting"  # not refused because its scorer was killed
    with world.site.database.writing() as session:
        look(session).lease = now()
    jobs = Jobs(world.site, 1, 64 << 20)
    jobs.start()
    assert "record 200001" in world.wait(lambda session: look(session).error)
    jobs.stop()


def test_a_scorer_that_was_killed_reads_no_more():
    with ScorerProcess() as scorer:
        scorer.kill()
        with pytest.raises(ScorerDiedError):
            scorer.ask(Compare("title", [], [], 4))


def test_a_start_removes_what_nobody_speaks_of(world, make_run):
    track, user = world.competition(), world.user("Anna", "Team A")
    world.hand_in(user, track, make_run(0.5))
    folders = (world.site.runs, world.site.truths, world.site.results)
    kept = [sorted(folder.iterdir()) for folder in folders]
    for folder in folders:
        (folder / "half").mkdir()
        (folder / "half" / "file").touch()
        (folder / "rest").touch()
        (folder / "young").touch()
        for path in folder.iterdir():
            if path.name != "young":
                os.utime(path, times=(0, time.time() - OLD - 1))
    sweep(world.site)
    assert [sorted(folder.iterdir()) for folder in folders] == [
        [*own, folder / "young"] for own, folder in zip(kept, folders, strict=True)
    ]
    with world.site.database.reading() as session:
        assert session.scalars(select(Submission)).one().status == "scored"


def test_another_database_costs_a_board_no_file(world, make_run, tmp_path):
    track, user = world.competition(), world.user("Anna", "Team A")
    world.hand_in(user, track, make_run(0.5))
    files = sorted(world.site.folder.rglob("*"))
    for path in files:
        os.utime(path, times=(0, 0))
    with closing(open_site(world.site.folder, f"sqlite:///{tmp_path}/other.db")) as other:
        sweep(other)
    assert sorted(world.site.folder.rglob("*")) == files
