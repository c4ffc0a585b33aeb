"""Hand a run in to a board from the command line, with nothing but the standard library."""

import http.client
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from rejoinder.board.names import clean_filename
from rejoinder.errors import UserError
from rejoinder.files import read_start
from rejoinder.report.tables import NO_INTERVAL, Cell, Table
from rejoinder.watch import Watch

CHUNK = 1 << 16
PATIENCE = 600.0


def hand_in(run: Path, to: str, token: str, watch: Watch) -> Table:
    """Send a run file and return its scores; what the board has against it is an error."""
    base, competition, track = _parse(to)
    token = _checked(token)
    read_start(run, 1)  # a file that cannot be read is told before the board is asked
    path = f"/api/competitions/{competition}/{track}/runs?name={quote(clean_filename(run.name))}"
    with watch("handing in", run.stat().st_size) as advance:

        def body() -> Iterator[bytes]:
            with run.open("rb") as file:
                while chunk := file.read(CHUNK):
                    yield chunk
                    advance(len(chunk))

        answer = _ask(base, "POST", path, token, body(), run.stat().st_size)
    end = time.monotonic() + PATIENCE
    while answer["status"] == "waiting" and time.monotonic() < end:
        time.sleep(1)
        answer = _ask(base, "GET", f"/api/runs/{answer['id']}", token)
    if answer["status"] != "scored":
        raise UserError(answer["error"] or "the board is still busy with the run; look at its page later")
    return _table(answer)


def _parse(to: str) -> tuple[str, str, str]:
    found = re.fullmatch(r"(https?://[^/]+)/c/([a-z0-9-]+)/([a-z0-9-]+)(?:/runs)?/?(?:[?#].*)?", to)
    if not found:
        raise UserError(f"--to {to}: expected a track's address such as https://board.example.org/c/NAME/TRACK")
    return found[1], found[2], found[3]


def _checked(token: str) -> str:
    if not re.fullmatch(r"[\w-]+", token := token.strip(), re.ASCII):
        raise UserError("--token: expected letters, digits, - and _ alone, as the board's account page shows them")
    return token


def _ask(
    base: str, method: str, path: str, token: str, body: Iterator[bytes] | None = None, size: int = 0
) -> dict[str, Any]:
    address = urlsplit(base)
    kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
    connection = kind(address.netloc, timeout=120)
    headers = {"Authorization": f"Bearer {token}", **({"Content-Length": str(size)} if body else {})}
    try:
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        text = response.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        raise UserError(f"{base}: cannot be reached ({error})") from None
    finally:
        connection.close()
    return _understood(base, response.status, text)


def _understood(base: str, status: int, text: str) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(text)
        if status < 300:
            return answer
        detail = answer["detail"]
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{base}: answered {status}, and not as a board would") from None
    raise UserError(str(detail))


def _interval(low: float | None, high: float | None) -> str:
    return NO_INTERVAL if low is None else f"[{low:g}, {high:g}]"


def _table(answer: dict[str, Any]) -> Table:
    rows = [
        (Cell(measure), Cell(f"{found['score']:g}", _interval(found["low"], found["high"])))
        for measure, found in answer["scores"].items()
    ]
    left = f"{answer['runs_left']} run{'' if answer['runs_left'] == 1 else 's'} left"
    note = left if rows else f"no score is released: no better than your best by more than noise; {left}"
    title = f"{answer['file']}: run {answer['number']}, scored"
    return Table(title, ("measure", "online score [95% interval]"), rows, note)
