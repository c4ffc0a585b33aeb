"""People: passwords (argon2), signed-in browsers, API tokens and one-time links; of secrets only hashes are kept."""

import hashlib
import secrets
import threading
from datetime import timedelta

import argon2
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from rejoinder.board.models import Link, Token, User, Visit, now
from rejoinder.board.names import clean_name, key_of
from rejoinder.errors import UserError

VISIT = timedelta(days=14)
LINK = timedelta(days=2)
SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 200
MOST_TOKENS = 20

_hasher = argon2.PasswordHasher()
_few_at_once = threading.Semaphore(2)  # each takes 64 MB: a flood of guesses must not take all memory
_NOBODY = _hasher.hash(secrets.token_hex())


def hash_secret(secret: str) -> str:
    """Return what is kept of a random secret; being random, it needs no salt."""
    return hashlib.sha256(secret.encode()).hexdigest()


def hash_password(password: str) -> str:
    """Return what is kept of a password; it takes a while, so do it outside of a transaction."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise UserError(f"password: expected {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters")
    with _few_at_once:
        return _hasher.hash(password)


def _matches(hashed: str, password: str) -> bool:
    try:
        with _few_at_once:
            return _hasher.verify(hashed, password[: LONGEST_PASSWORD + 1])
    except argon2.exceptions.VerificationError:
        return False


def register(session: Session, name: str, hashed: str, admin: bool = False) -> User:
    """Add a user, given the hash of the password."""
    name = clean_name(name, "name")
    if session.scalar(select(User.id).where(User.key == key_of(name))):
        raise UserError(f"the name {name!r} is taken")
    user = User(name=name, key=key_of(name), password=hashed, admin=admin, team=None)
    session.add(user)
    session.flush()
    return user


def check_password(session: Session, name: str, password: str) -> User:
    """Return the user of this name and password; it takes as long to find that there is none."""
    user = session.scalar(select(User).where(User.key == key_of(name)))
    right = _matches(user.password if user else _NOBODY, password)
    if user is None or not right or user.disabled:
        raise UserError("no such name and password")
    return user


def set_password(session: Session, user: User, hashed: str, revoke: bool) -> None:
    """Set a new password, and sign the user out everywhere; whoever fears a thief revokes the API tokens, too."""
    user.password = hashed
    for kind in (Visit, Token) if revoke else (Visit,):
        session.execute(delete(kind).where(kind.user_id == user.id))


def start_visit(session: Session, user: User) -> str:
    """Sign a browser in and return the secret for its cookie."""
    session.execute(delete(Visit).where(Visit.expires < now()))
    secret = secrets.token_urlsafe(32)
    session.add(Visit(key=hash_secret(secret), user_id=user.id, expires=now() + VISIT))
    return secret


def end_visit(session: Session, secret: str) -> None:
    """Sign a browser out."""
    session.execute(delete(Visit).where(Visit.key == hash_secret(secret)))


def find_visitor(session: Session, secret: str) -> User | None:
    """Return who is signed in with this cookie."""
    visit = session.get(Visit, hash_secret(secret))
    return None if visit is None or visit.expires < now() or visit.user.disabled else visit.user


def create_token(session: Session, user: User, name: str) -> str:
    """Make an API token and return it; it is not shown again."""
    session.get_one(User, user.id, with_for_update={"of": User})  # whoever makes several at once waits here
    if len(list(session.scalars(select(Token.id).where(Token.user_id == user.id)))) >= MOST_TOKENS:
        raise UserError(f"you have {MOST_TOKENS} tokens; revoke one first")
    secret = f"rjb_{secrets.token_urlsafe(32)}"
    session.add(Token(key=hash_secret(secret), name=clean_name(name, "token's name"), user_id=user.id))
    return secret


def find_bearer(session: Session, secret: str) -> User | None:
    """Return whose API token this is."""
    token = session.scalar(select(Token).where(Token.key == hash_secret(secret)))
    return None if token is None or token.user.disabled else token.user


def create_link(session: Session, user: User | None) -> str:
    """Make a one-time link: to become the first administrator, or for a user to set a new password."""
    session.execute(delete(Link).where(Link.user_id == (user.id if user else None)))
    secret = secrets.token_urlsafe(32)
    session.add(Link(key=hash_secret(secret), user_id=user.id if user else None, expires=now() + LINK))
    return secret


def find_link(session: Session, secret: str) -> Link | None:
    """Return the link, if it still works."""
    link = session.get(Link, hash_secret(secret), with_for_update=True)
    return None if link is None or link.expires < now() else link


def use_link(session: Session, secret: str, name: str, hashed: str, revoke: bool) -> User:
    """Make the first administrator, or set the user's new password; the link is used up."""
    link = find_link(session, secret)
    if link is None:
        raise UserError("this link was used already, or is too old")
    user = session.get(User, link.user_id) if link.user_id else None
    if user is None:
        user = register(session, name, hashed, admin=True)
    else:
        set_password(session, user, hashed, revoke)
    session.delete(link)
    return user


def first_link(session: Session) -> str | None:
    """Return a new link to become the administrator, unless there is one."""
    if session.scalar(select(User.id).where(User.admin, ~User.disabled)):
        return None
    return create_link(session, None)
