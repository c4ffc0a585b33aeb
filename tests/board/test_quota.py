"""Quotas with real servers and real databases: never exceeded, and nothing accepted is lost, even by kill -9."""

import http.client
import json
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import select

from rejoinder.board.models import Competition, Entry, Submission, SubmissionScores, Track, now
from rejoinder.board.scorer_process import UNLIMITED, ScorerProcess
from rejoinder.board.standings import finish
from rejoinder.board.submissions import QuotaError, runs_left


def post(server, track, headers, content):
    """Hand a run in by plain HTTP and return (status, answer); None: the server died."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        path = f"/api/competitions/{track.competition.slug}/{track.slug}/runs"
        connection.request("POST", path, content, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()


def nothing_waits(session):
    return not session.scalar(select(Submission.id).where(Submission.status == "waiting"))


def test_parallel_submissions_at_the_limit(make_world, make_server, database_url, make_run, bad_run):
    world = make_world(database_url)
    track = world.competition(quota=10)
    teams = [world.bearer(world.user(f"User {number}", f"Team {number}")) for number in range(2)]
    servers = [make_server(world.site.folder, database_url, scorers=1) for _ in range(2)]
    jobs = [(servers[n % 2], teams[n // 2 % 2], bad_run if n % 8 > 5 else make_run(0.5, n)) for n in range(64)]
    with ThreadPoolExecutor(32) as threads:
        answers = list(threads.map(lambda job: post(job[0], track, job[1], job[2]), jobs))
    codes = Counter(status for status, _ in answers)
    world.wait(nothing_waits)
    with world.site.database.reading() as session:
        counted = Counter(session.scalars(select(Submission.team_id).where(Submission.status == "scored")))
        scores = set(session.scalars(select(SubmissionScores.submission_id)))
        scored = set(session.scalars(select(Submission.id).where(Submission.status == "scored")))
    assert sorted(counted.values()) == [10, 10]
    assert scores == scored
    assert set(codes) <= {201, 202, 409, 422}
    # a bad run that was still waiting when its answer was sent was accepted, too
    assert scored <= {answer["id"] for status, answer in answers if status in (201, 202)}
    refusals = {answer["detail"] for status, answer in answers if status == 409}
    assert refusals == {"the quota is used up: your team has handed in all 10 runs of this track"}


def test_kill_loses_nothing(make_world, make_server, database_url, make_run):
    world = make_world(database_url)
    track = world.competition(quota=1000)
    headers = world.bearer(world.user("Anna", "Team A"))
    runs = [make_run(0.5, number) for number in range(8)]
    server = make_server(world.site.folder, database_url)
    accepted, cut_off = set(), 0
    chance = random.Random(0)
    for _ in range(2):
        threads = ThreadPoolExecutor(8)
        asked = [threads.submit(post, server, track, headers, chance.choice(runs)) for _ in range(400)]
        time.sleep(chance.uniform(0.5, 2.0))
        server.kill()
        threads.shutdown(cancel_futures=True)
        answers = [each.result() for each in asked if not each.cancelled()]
        cut_off += answers.count(None)
        accepted |= {answer["id"] for status, answer in filter(None, answers) if status in (201, 202)}
        server.start()
    assert cut_off
    world.wait(nothing_waits)
    with world.site.database.reading() as session:
        states = dict(session.execute(select(Submission.id, Submission.status)).all())
        scores = set(session.scalars(select(SubmissionScores.submission_id)))
        numbers = list(session.scalars(select(Submission.number).order_by(Submission.number)))
        best = session.scalars(select(Entry)).one().best
    assert accepted <= set(states)
    assert set(states.values()) == {"scored"}
    assert scores == set(states)
    assert numbers == list(range(1, len(numbers) + 1))
    assert {holder["run"] for holder in best.values()} <= scores
    assert {path.name for path in world.site.runs.iterdir()} >= set(states)


def test_a_refused_run_costs_nothing(world, make_run, bad_run):
    track, user = world.competition(quota=1), world.user("Anna", "Team A")
    assert world.hand_in(user, track, bad_run).status == "refused"
    assert world.hand_in(user, track, b"").error == "run: is empty"
    assert world.hand_in(user, track, make_run(0.5)).status == "scored"
    with pytest.raises(QuotaError):
        world.hand_in(user, track, make_run(0.6))
    assert len(list(world.site.runs.iterdir())) == 1  # what was refused or turned away leaves no file


def test_daily_quota(world, make_run):
    track, user = world.competition(quota=5, daily=2), world.user("Anna", "Team A")
    for _ in range(2):
        world.hand_in(user, track, make_run(0.5))
    with pytest.raises(QuotaError, match="today's 2 runs"):
        world.hand_in(user, track, make_run(0.5))
    with world.site.database.writing() as session:
        for submission in session.scalars(select(Submission)):
            submission.created = now() - timedelta(days=1)
    with world.site.database.reading() as session:
        assert runs_left(session, track.competition, track.id, user.team_id) == 2
    assert world.hand_in(user, track, make_run(0.5)).status == "scored"
    with world.site.database.reading() as session:
        assert runs_left(session, track.competition, track.id, user.team_id) == 1


def test_quotas_are_by_team_and_track(world, make_run):
    first, second = world.competition(quota=1), world.competition(name="Contest 2", quota=1)
    anna, bert = world.user("Anna", "Team A"), world.user("Bert", "Team B")
    for user, track in ((anna, first), (bert, first), (anna, second)):
        assert world.hand_in(user, track, make_run(0.5)).status == "scored"
    with pytest.raises(QuotaError):
        world.hand_in(anna, second, make_run(0.5))


def test_a_run_of_the_last_moment_is_in_the_final_table(world, make_run):
    track, users = world.competition(), [world.user(name, f"Team {name}") for name in ("Anna", "Bert")]
    world.hand_in(users[0], track, make_run(0.5))

    class Late(ScorerProcess):
        """Compares runs while one more is accepted, which was on its way when the competition closed."""

        def ask(self, request):
            for closes in (now() + timedelta(1), now()):
                with world.site.database.writing() as session:
                    session.get_one(Competition, track.competition_id).closes = closes
                if closes > now():
                    world.hand_in(users[1], track, make_run(0.6))
            return super().ask(request)

    with world.site.database.writing() as session:
        session.get_one(Competition, track.competition_id).closes = now()
    with Late(UNLIMITED) as late:
        finish(world.site, late)
    with world.site.database.reading() as session:
        assert session.get_one(Track, track.id).final is None
    with ScorerProcess(UNLIMITED) as scorer:
        finish(world.site, scorer)
    with world.site.database.reading() as session:
        rows = session.get_one(Track, track.id).final["measures"][0]["rows"]
    assert {"Team Anna-run1", "Team Bert-run1"} <= set(rows)
    assert len(list(world.site.results.iterdir())) == 1
