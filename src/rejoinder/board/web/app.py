"""The board's web application: pages for people, an API for programs, background work beside them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import IntegrityError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware

from rejoinder import __version__
from rejoinder.board.jobs import Jobs
from rejoinder.board.site import Site
from rejoinder.board.web import account_pages, admin_pages, api, board_pages, run_pages
from rejoinder.board.web.cache import PageCache
from rejoinder.board.web.headers import Headers
from rejoinder.board.web.limits import DESCRIPTION, FORM, SizeLimit
from rejoinder.board.web.templates import make_templates
from rejoinder.board.web.visitor import Board, Limits, SignInError, anyone, redirect

MOST_TRUTH = 2 << 30


class Options(msgspec.Struct, frozen=True):
    """How a board is served."""

    url: str = "http://127.0.0.1:8000"
    scorers: int = 2
    most_bytes: int = 64_000_000
    limits: Limits = msgspec.field(default_factory=Limits)


def create_app(site: Site, options: Options) -> FastAPI:
    """Return the application, which starts its background work with the server."""
    jobs = Jobs(site, options.scorers, options.most_bytes)
    url = options.url.rstrip("/")
    board = Board(site, jobs, make_templates(), url, options.most_bytes, options.limits, PageCache())
    sizes = {
        "/api/competitions/[^/]+/[^/]+/runs": options.most_bytes,
        "/c/[^/]+/[^/]+/runs": options.most_bytes + FORM,
        "/admin/(new|c/[^/]+)": DESCRIPTION,
        "/admin/c/[^/]+/tracks": MOST_TRUTH,
    }

    @asynccontextmanager
    async def alive(app: FastAPI) -> AsyncIterator[None]:
        jobs.start()
        yield
        await run_in_threadpool(jobs.stop)

    app = FastAPI(
        title="Rejoinder board",
        version=__version__,
        description="Hand runs in to competitions and ask for their scores.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=alive,
        middleware=[
            Middleware(Headers, secure=board.secure),
            Middleware(GZipMiddleware, minimum_size=2000, compresslevel=4),
            Middleware(SizeLimit, limits=sizes),
        ],
    )
    app.state.board = board
    for part in (board_pages, account_pages, run_pages, admin_pages, api):
        app.include_router(part.router)
    app.mount("/static", StaticFiles(packages=[("rejoinder.board", "static")]), name="static")
    _handle_errors(app)
    return app


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(SignInError)
    async def sign_in(request: Request, error: SignInError) -> Response:
        return redirect(f"/login?next={quote(request.url.path)}")

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        return await _problem(request, error.status_code, error.detail, dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        told = [{"loc": list(each["loc"]), "msg": each["msg"], "type": each["type"]} for each in error.errors()]
        return await _problem(request, 422, told if request.url.path.startswith("/api/") else "not understood")

    @app.exception_handler(IntegrityError)
    async def conflict(request: Request, error: IntegrityError) -> Response:
        return await _problem(request, 409, "somebody else did the same at the same moment; try again")


async def _problem(request: Request, status: int, detail: Any, headers: dict[str, str] | None = None) -> Response:
    if request.url.path.startswith("/api/") or "application/json" in request.headers.get("accept", ""):
        key = "detail" if request.url.path.startswith("/api/") else "error"
        return JSONResponse({key: detail}, status, headers)
    visitor = await anyone(request)
    response = await run_in_threadpool(visitor.page, "problem.html", status, detail=detail, code=status)
    response.headers.update(headers or {})
    return response
