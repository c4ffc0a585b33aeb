"""Pages to register, sign in, make a team and get tokens."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, HTTPException, Response
from sqlalchemy import delete, select

from rejoinder.board import accounts, audit, teams
from rejoinder.board.models import Token, User
from rejoinder.board.names import key_of
from rejoinder.board.web.visitor import Anyone, SignedIn, Visitor, guarded, redirect
from rejoinder.errors import UserError

router = APIRouter(include_in_schema=False)
form = [Depends(guarded)]
Text = Annotated[str, Form(max_length=1000)]
Mark = Annotated[bool, Form()]


def _sign_in(visitor: Visitor, user: User, path: str) -> Response:
    with visitor.board.site.database.writing() as session:
        accounts.end_visit(session, visitor.secret)
        secret = accounts.start_visit(session, user)
    response = redirect(path)
    visitor.remember(response, secret)
    return response


def _local(path: str) -> str:
    """Return a path on this board, whatever a link said."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) else "/"


@router.get("/register")
def register_page(visitor: Anyone, next: str = "/team") -> Response:  # noqa: A002
    """Show the form to register."""
    return visitor.page("register.html", next=_local(next))


@router.post("/register", dependencies=form)
def register(visitor: Anyone, name: Text = "", password: Text = "", next: Text = "/team") -> Response:  # noqa: A002
    """Add a user."""
    visitor.board.limits.register.check(visitor.address)
    try:
        hashed = accounts.hash_password(password)
        with visitor.board.site.database.writing() as session:
            user = accounts.register(session, name, hashed)
    except UserError as error:
        return visitor.page("register.html", 400, error=error, name=name, next=_local(next))
    return _sign_in(visitor, user, _local(next))


@router.get("/login")
def login_page(visitor: Anyone, next: str = "/") -> Response:  # noqa: A002
    """Show the form to sign in."""
    return visitor.page("login.html", next=_local(next))


@router.post("/login", dependencies=form)
def login(visitor: Anyone, name: Text = "", password: Text = "", next: Text = "/") -> Response:  # noqa: A002
    """Sign in."""
    visitor.board.limits.sign_in.check(visitor.address)
    visitor.board.limits.sign_in_name.check(key_of(name))
    try:
        with visitor.board.site.database.reading() as session:
            user = accounts.check_password(session, name, password)
    except UserError as error:
        return visitor.page("login.html", 400, error=error, name=name, next=_local(next))
    return _sign_in(visitor, user, _local(next))


@router.post("/logout", dependencies=form)
def logout(visitor: SignedIn) -> Response:
    """Sign out."""
    with visitor.board.site.database.writing() as session:
        accounts.end_visit(session, visitor.secret)
    response = redirect("/")
    response.delete_cookie(visitor.board.cookie, path="/", secure=visitor.board.secure, httponly=True, samesite="lax")
    return response


@router.get("/link/{secret}")
def link_page(visitor: Anyone, secret: str) -> Response:
    """Show the form behind a one-time link."""
    visitor.board.limits.secrets.check(visitor.address)
    return _link(visitor, secret)


def _link(visitor: Visitor, secret: str, status: int = 200, **values: Any) -> Response:
    with visitor.board.site.database.reading() as session:
        link = accounts.find_link(session, secret)
        user = session.get(User, link.user_id) if link and link.user_id else None
    if link is None:
        raise HTTPException(404, "this link was used already, or is too old")
    return visitor.page("link.html", status, secret=secret, owner=user, **values)


@router.post("/link/{secret}", dependencies=form)
def link(visitor: Anyone, secret: str, name: Text = "", password: Text = "", revoke: Mark = False) -> Response:
    """Become the first administrator, or set a new password."""
    visitor.board.limits.secrets.check(visitor.address)
    try:
        hashed = accounts.hash_password(password)
        with visitor.board.site.database.writing() as session:
            user = accounts.use_link(session, secret, name, hashed, revoke)
            audit.note(session, user, "used a one-time link", user.name)
    except UserError as error:
        return _link(visitor, secret, 400, error=error, name=name)
    return _sign_in(visitor, user, "/admin" if user.admin else "/")


@router.get("/account")
def account_page(visitor: SignedIn) -> Response:
    """Show tokens and the form for a new password."""
    return _account(visitor)


def _account(visitor: Visitor, status: int = 200, **values: Any) -> Response:
    assert visitor.user
    with visitor.board.site.database.reading() as session:
        own = select(Token).where(Token.user_id == visitor.user.id).order_by(Token.created)
        tokens = list(session.scalars(own))
    return visitor.page("account.html", status, tokens=tokens, url=visitor.board.url, **values)


@router.post("/account/tokens", dependencies=form)
def create_token(visitor: SignedIn, name: Text = "") -> Response:
    """Make an API token and show it, once."""
    assert visitor.user
    try:
        with visitor.board.site.database.writing() as session:
            secret = accounts.create_token(session, visitor.user, name or "token")
    except UserError as error:
        return _account(visitor, 400, error=error)
    return _account(visitor, secret=secret)


@router.post("/account/tokens/{token_id}/revoke", dependencies=form)
def revoke_token(visitor: SignedIn, token_id: str) -> Response:
    """Take a token back."""
    assert visitor.user
    with visitor.board.site.database.writing() as session:
        session.execute(delete(Token).where(Token.id == token_id, Token.user_id == visitor.user.id))
    return redirect("/account")


@router.post("/account/password", dependencies=form)
def change_password(visitor: SignedIn, old: Text = "", new: Text = "", revoke: Mark = False) -> Response:
    """Set a new password, which signs out every browser but this one."""
    assert visitor.user
    visitor.board.limits.sign_in_name.check(visitor.user.key)
    try:
        with visitor.board.site.database.reading() as session:
            accounts.check_password(session, visitor.user.name, old)
        hashed = accounts.hash_password(new)
        with visitor.board.site.database.writing() as session:
            accounts.set_password(session, session.get_one(User, visitor.user.id), hashed, revoke)
    except UserError as error:
        return _account(visitor, 400, error=error)
    return _sign_in(visitor, visitor.user, "/account")


@router.get("/team")
def team_page(visitor: SignedIn) -> Response:
    """Show the team, or the form to make one."""
    return _team(visitor)


def _team(visitor: Visitor, status: int = 200, **values: Any) -> Response:
    assert visitor.user
    with visitor.board.site.database.reading() as session:
        people = teams.members(session, visitor.user.team_id) if visitor.user.team_id else []
    return visitor.page("team.html", status, members=people, **values)


@router.post("/team", dependencies=form)
def create_team(visitor: SignedIn, name: Text = "") -> Response:
    """Make a team."""
    assert visitor.user
    try:
        with visitor.board.site.database.writing() as session:
            teams.create_team(session, session.get_one(User, visitor.user.id), name)
    except UserError as error:
        return _team(visitor, 400, error=error, name=name)
    return redirect("/team")


@router.post("/team/invitation", dependencies=form)
def invite(visitor: SignedIn) -> Response:
    """Make a new invitation and show it, once."""
    if visitor.user is None or visitor.user.team_id is None:
        raise HTTPException(403, "make a team first")
    with visitor.board.site.database.writing() as session:
        secret = teams.invite(session, visitor.user.team_id)
    return _team(visitor, invitation=f"{visitor.board.url}/join/{secret}")


@router.get("/join/{secret}")
def join_page(visitor: SignedIn, secret: str) -> Response:
    """Ask whether to join."""
    visitor.board.limits.secrets.check(visitor.address)
    with visitor.board.site.database.reading() as session:
        team = teams.find_invitation(session, secret)
    if team is None:
        raise HTTPException(404, "this invitation works no more; ask the team for a new one")
    return visitor.page("join.html", team=team, secret=secret)


@router.post("/join/{secret}", dependencies=form)
def join(visitor: SignedIn, secret: str) -> Response:
    """Join a team."""
    visitor.board.limits.secrets.check(visitor.address)
    assert visitor.user
    try:
        with visitor.board.site.database.writing() as session:
            teams.join_team(session, session.get_one(User, visitor.user.id), secret)
    except UserError as error:
        return _team(visitor, 400, error=error)
    return redirect("/team")
