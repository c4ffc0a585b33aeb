"""Teams, and what one person can do at once."""

import time
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import func, select

from rejoinder.board import accounts, teams
from rejoinder.board.models import Token, User
from rejoinder.errors import UserError


def count_done(world, act):
    """Do something four times at once, each in a transaction that takes a while, and count how often it could be."""

    def attempt(number):
        with world.site.database.writing() as session:
            try:
                act(session, number)
            except UserError:
                return False
            session.flush()
            time.sleep(0.1)
            return True

    with ThreadPoolExecutor(4) as threads:
        return sum(threads.map(attempt, range(4)))


def test_nobody_makes_two_teams_at_once(make_world, database_url):
    world = make_world(database_url)
    anna = world.user("Anna")

    def make(session, number):
        teams.create_team(session, session.get_one(User, anna.id), f"Team {number}")

    assert count_done(world, make) == 1


def test_nobody_makes_too_many_tokens_at_once(make_world, database_url):
    world = make_world(database_url)
    anna = world.user("Anna")
    with world.site.database.writing() as session:
        for _ in range(accounts.MOST_TOKENS - 1):
            accounts.create_token(session, anna, "token")
            session.flush()
    assert count_done(world, lambda session, _: accounts.create_token(session, anna, "token")) == 1
    with world.site.database.reading() as session:
        assert session.scalar(select(func.count()).select_from(Token)) == accounts.MOST_TOKENS
