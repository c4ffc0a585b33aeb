"""Who is asking, and what they may do: each route depends on one of the roles below."""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from ipaddress import IPv6Address
from types import SimpleNamespace
from typing import Annotated, Any

import jinja2
import msgspec
from fastapi import Depends, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import escape
from starlette.concurrency import run_in_threadpool

from rejoinder.board import accounts
from rejoinder.board.jobs import Jobs
from rejoinder.board.models import User
from rejoinder.board.site import Site
from rejoinder.board.web.cache import PageCache
from rejoinder.board.web.limits import RateLimit

_NAME, _CSRF = secrets.token_hex(), secrets.token_hex()


class Limits(msgspec.Struct, frozen=True):
    """How often something may be tried: by address, and where guessing is the danger by name too."""

    sign_in: RateLimit = msgspec.field(default_factory=lambda: RateLimit(20, 60))
    sign_in_name: RateLimit = msgspec.field(default_factory=lambda: RateLimit(10, 60))
    register: RateLimit = msgspec.field(default_factory=lambda: RateLimit(30, 3600))
    secrets: RateLimit = msgspec.field(default_factory=lambda: RateLimit(60, 60))
    upload: RateLimit = msgspec.field(default_factory=lambda: RateLimit(60, 60))


class Board(msgspec.Struct, frozen=True):
    """A board that is being served."""

    site: Site
    jobs: Jobs
    templates: jinja2.Environment
    url: str
    most_bytes: int
    limits: Limits
    pages: PageCache

    @property
    def secure(self) -> bool:
        """Whether people come through HTTPS."""
        return self.url.startswith("https:")

    @property
    def cookie(self) -> str:
        """Return the cookie's name; the prefix binds it to this very host."""
        return "__Host-board" if self.secure else "board"


class Visitor(msgspec.Struct, frozen=True):
    """Somebody's browser, signed in or not."""

    board: Board
    request: Request
    secret: str
    """The cookie's content: a signed-in visit's, or a random one that only guards forms."""
    user: User | None

    @property
    def csrf(self) -> str:
        """Return what forms carry along, so that no other site can send them."""
        return hmac.new(self.secret.encode(), b"form", hashlib.sha256).hexdigest()

    def render(self, template: str, **values: Any) -> str:
        """Render a page."""
        found = self.board.templates.get_template(template)
        return found.render({"user": self.user, "csrf": self.csrf, "path": self.request.url.path, **values})

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """Answer with a page; one with a form needs the cookie that the form is made for."""
        text = self.render(template, **values)
        response = HTMLResponse(text, status)
        if 'name="csrf"' in text and self.request.cookies.get(self.board.cookie) != self.secret:
            self.remember(response, self.secret)
        return response

    async def public_page(self, template: str, values: Callable[[], dict[str, Any]]) -> Response:
        """Answer with a page that all who have not signed in share for a moment, and so do the members of a team.

        Members' pages are made with something random in the place of what is each one's own. Organisers share none:
        they look whether what they changed is as they wanted it.
        """
        if self.user is not None and self.user.admin:
            return await run_in_threadpool(lambda: self.page(template, **values()))
        member = self.user and SimpleNamespace(name=_NAME, team=self.user.team, admin=False)
        seen_by = ("team", self.user.team_id) if self.user else "anyone"
        text = await self.board.pages.get(
            (self.request.url.path, self.request.url.query, seen_by),
            lambda: self.render(template, user=member, csrf=_CSRF, **values()),
        )
        if self.user:
            text = text.replace(_NAME, escape(self.user.name)).replace(_CSRF, self.csrf)
        return HTMLResponse(text)

    def remember(self, response: Response, secret: str) -> None:
        """Set the cookie."""
        response.set_cookie(
            self.board.cookie, secret, max_age=int(accounts.VISIT.total_seconds()), path="/",
            secure=self.board.secure, httponly=True, samesite="lax",
        )  # fmt: skip

    def check_form(self, token: object) -> None:
        """Refuse a form that was not made for this browser."""
        site = self.request.headers.get("sec-fetch-site", "same-origin")
        if site not in ("same-origin", "none") or not hmac.compare_digest(str(token).encode(), self.csrf.encode()):
            raise HTTPException(403, "this form is too old, or came from another site; load the page again")

    @property
    def address(self) -> str:
        """Return where the request comes from, for rate limits."""
        return address_of(self.request)


def address_of(request: Request) -> str:
    """Return where a request comes from; of an IPv6 address the first half, as one person has all of the second."""
    host = request.client.host if request.client else "unknown"
    try:
        address = IPv6Address(host)
    except ValueError:
        return host
    return str(address.ipv4_mapped or IPv6Address(int(address) >> 64 << 64))


class SignInError(Exception):
    """The page is for people who have signed in."""


def get_board(request: Request) -> Board:
    """Return the board that this request is for."""
    board: Board = request.app.state.board
    return board


async def anyone(request: Request) -> Visitor:
    """Let everybody in."""
    board = get_board(request)
    secret = request.cookies.get(board.cookie, "")
    user = await run_in_threadpool(_find, board, secret) if secret else None
    return Visitor(board, request, secret if len(secret) >= 32 else secrets.token_urlsafe(32), user)


def _find(board: Board, secret: str) -> User | None:
    with board.site.database.reading() as session:
        return accounts.find_visitor(session, secret)


async def signed_in(visitor: Annotated[Visitor, Depends(anyone)]) -> Visitor:
    """Let people in who have signed in."""
    if visitor.user is None:
        raise SignInError
    return visitor


async def in_team(visitor: Annotated[Visitor, Depends(signed_in)]) -> Visitor:
    """Let members of a team in."""
    if visitor.user is None or visitor.user.team_id is None:
        raise HTTPException(403, "make or join a team first")
    return visitor


async def administrator(visitor: Annotated[Visitor, Depends(signed_in)]) -> Visitor:
    """Let administrators in."""
    if visitor.user is None or not visitor.user.admin:
        raise HTTPException(403, "this is for administrators")
    return visitor


def token_holder(request: Request) -> User:
    """Let people in who show an API token."""
    board = get_board(request)
    problem = "expected the header `Authorization: Bearer TOKEN`"
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and secret:
        with board.site.database.reading() as session:
            user = accounts.find_bearer(session, secret.strip())
        if user:
            return user
        board.limits.secrets.check(address_of(request))
        problem = "the board does not know this token; make one on your account page"
    raise HTTPException(401, problem, {"WWW-Authenticate": "Bearer"})


Anyone = Annotated[Visitor, Depends(anyone)]
SignedIn = Annotated[Visitor, Depends(signed_in)]
InTeam = Annotated[Visitor, Depends(in_team)]
Administrator = Annotated[Visitor, Depends(administrator)]
TokenHolder = Annotated[User, Depends(token_holder)]


async def guarded(request: Request, visitor: Anyone) -> None:
    """Check that a form was made for the browser that sends it; for small forms, files are checked as they come."""
    visitor.check_form((await request.form()).get("csrf", ""))


def redirect(path: str) -> RedirectResponse:
    """Go on to another page after a form."""
    return RedirectResponse(path, 303)
