"""Teams: made by one person, joined by others through a secret link."""

import secrets

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from rejoinder.board.accounts import hash_secret
from rejoinder.board.models import Team, User
from rejoinder.board.names import clean_name, key_of
from rejoinder.errors import UserError

LARGEST = 30


def create_team(session: Session, user: User, name: str) -> Team:
    """Make a team with its first member."""
    _refuse_member(session, user)
    name = clean_name(name, "team")
    if session.scalar(select(Team.id).where(Team.key == key_of(name))):
        raise UserError(f"the team name {name!r} is taken")
    team = Team(name=name, key=key_of(name))
    session.add(team)
    session.flush()
    user.team_id = team.id
    return team


def invite(session: Session, team_id: str) -> str:
    """Return a new secret by which people join; the one before it works no more."""
    secret = secrets.token_urlsafe(24)
    session.get_one(Team, team_id).invitation = hash_secret(secret)
    return secret


def find_invitation(session: Session, secret: str) -> Team | None:
    """Return the team that this secret invites to."""
    return session.scalar(select(Team).where(Team.invitation == hash_secret(secret)))


def join_team(session: Session, user: User, secret: str) -> Team:
    """Add a user to the team that invited."""
    _refuse_member(session, user)
    team = session.scalar(select(Team).where(Team.invitation == hash_secret(secret)).with_for_update())
    if team is None:
        raise UserError("this invitation works no more; ask the team for a new one")
    if (session.scalar(select(func.count()).where(User.team_id == team.id)) or 0) >= LARGEST:
        raise UserError(f"the team has {LARGEST} members, which is the most there can be")
    user.team_id = team.id
    return team


def _refuse_member(session: Session, user: User) -> None:
    # whoever makes or joins two teams at once waits here
    locked = session.get_one(User, user.id, with_for_update={"of": User}, populate_existing=True)
    if locked.team_id is not None:
        raise UserError("you are in a team already")


def taking_part() -> Select[str | None]:
    """Return the ids of the teams that tables show: those with a member whom no organiser has disabled."""
    return select(User.team_id).where(User.team_id.is_not(None), ~User.disabled)


def members(session: Session, team_id: str) -> list[User]:
    """Return the team's members."""
    return list(session.scalars(select(User).where(User.team_id == team_id).order_by(User.created)))
