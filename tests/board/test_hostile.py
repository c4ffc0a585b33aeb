"""Hostile files, names and texts: refused with a clear error, and nothing else happens."""

import asyncio
import gzip
import http.client
import io
import json
import re

import numpy as np
import polars as pl
import pytest

from rejoinder.board.archive import write_archive
from rejoinder.board.leaderboard import lines_of
from rejoinder.board.models import Competition, Track, now
from rejoinder.board.names import clean_filename
from rejoinder.board.scorer import LONGEST_ERROR, Files, Score
from rejoinder.board.scorer_process import UNLIMITED, ScorerDiedError, ScorerProcess
from rejoinder.board.standings import finish
from rejoinder.board.vectors import pack_chosen
from rejoinder.board.web.cache import MOST, PageCache
from rejoinder.board.web.markdown import to_html


def parquet(table):
    file = io.BytesIO()
    table.write_parquet(file, compression="zstd")
    return file.getvalue()


def good_parquet(ids):
    rows = [
        {"example": id_, "question": question, "turn": 0, "label": label, "probability": 0.2}
        for id_ in ids
        for question in "ASE"
        for label in ("2", "1", "0", "-1", "-2")
    ]
    return parquet(pl.DataFrame(rows))


def damaged(content, seed):
    """Flip bytes in the middle, which has made readers crash."""
    raw = bytearray(content)
    rng = np.random.default_rng(seed)
    for place in rng.integers(8, len(raw) - 8, size=20):
        raw[place] = int(rng.integers(256))
    return bytes(raw)


BOMB = gzip.compress(b"[" + b" " * (300 << 20), compresslevel=9)
HOSTILE = {
    "empty": (b"", "is empty"),
    "white space": (b"  \n\n", "is empty"),
    "bytes": (bytes(range(256)) * 10, "of no known format"),
    "a page": (b"<html><script>alert(1)</script>", "of no known format"),
    "empty list": (b"[]", "holds no record"),
    "empty gzip": (gzip.compress(b""), "is empty"),
    "broken gzip": (gzip.compress(b"x" * 10_000)[:-20], "damaged gzip file"),
    "gzip bomb": (BOMB, "unpacks to more than"),
    "gzip in gzip": (gzip.compress(gzip.compress(b"[]")), "packed twice"),
    "deep JSON": (b"[" * 200_000, "nested too deeply"),
    "deep object": (b'[{"id":' * 100_000, "nested too deeply"),
    "NaN": (b'[{"id": "1", "quality": {"A": {"2": NaN}}}]', "NaN is not a number"),
    "huge number": (b'[{"id": "1", "quality": {"A": {"2": 1e999}}}]', ""),
    "long integer": (b'[{"id": ' + b"9" * 5000 + b', "quality": {}}]', ""),
    "half a surrogate": (rb'[{"id": "\ud800", "quality": {}}]', ""),
    "NUL in an id": (b'[{"id": "a\\u0000b\\u202e", "quality": {}}]', "record 1 (id a\ufffdb\ufffd)"),
    "endless name": (b'[{"id": "1", "quality": {"' + b"x" * 3_000_000 + b'": {}}}]', "criteria xxx"),
    "UTF-16": ('[{"id": 1, "quality": {}}]'.encode("utf-16"), ""),
    "NUL": (b"\0" * 5000, ""),
    "fake Parquet": (b"PAR1" + b"\0" * 200 + b"PAR1", "not a Parquet table"),
    "another zip": (b"PK\x03\x04" + b"\0" * 100, ""),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_uploads_are_refused(shared, kind):
    world, track, user = shared
    content, expected = HOSTILE[kind]
    run = world.hand_in(user, track, content, "my file")
    assert run.status == "refused"
    assert expected in run.error
    assert run.error.startswith("my file")
    assert str(world.site.folder) not in run.error
    assert run.id not in run.error
    assert "/tmp" not in run.error
    assert run.error.isprintable()
    assert len(run.error) <= LONGEST_ERROR
    assert not (world.site.runs / run.id).exists()  # or mistakes, which cost nothing, would fill the disk


@pytest.fixture(scope="module")
def shared(tmp_path_factory, truth_file, scorer, world_type):
    from rejoinder.board.site import create_site

    world = world_type(create_site(tmp_path_factory.mktemp("hostile") / "board"), truth_file, scorer)
    yield world, world.competition(quota=1), world.user("Anna", "Team A")
    world.site.close()


def test_damaged_parquet_never_harms(shared, truth_file):
    world, track, user = shared
    ids = [record["id"] for record in json.loads(truth_file.read_text())]
    good = good_parquet(ids)
    for seed in range(6):
        run = world.hand_in(user, track, damaged(good, seed), "run.parquet")
        assert run.status == "refused", run.error


def test_a_table_that_claims_billions_of_rows(shared):
    world, track, user = shared
    table = pl.DataFrame({"example": pl.repeat("1", 21_000_000, eager=True)})
    content = parquet(table)
    assert len(content) < 1_000_000
    run = world.hand_in(user, track, content)
    assert "21,000,000 rows; expected at most 20,000,000" in run.error


def test_memory_and_time_are_limited(tmp_path, truth_file):
    """A run that needs too much ends the scorer, and only that."""
    run = tmp_path / "run"
    record = json.dumps({"id": "1", "quality": {name: {"2": 1.0} for name in "ASE"}}).encode()
    run.write_bytes(b"[" + (record + b",") * 600_000 + b"0]")
    online = pack_chosen(np.ones(30, dtype=bool))
    request = Score(Files(str(truth_file)), ["NMD(A)"], online, str(run), "run", 1 << 30)
    with ScorerProcess(memory=800 << 20) as scorer, pytest.raises(ScorerDiedError, match="limits of memory and time"):
        scorer.ask(request)
    with ScorerProcess(seconds=0.05) as scorer, pytest.raises(ScorerDiedError):
        scorer.ask(request)
    run.write_bytes(b"[]")
    with ScorerProcess() as scorer:
        assert "holds no record" in scorer.ask(request)["error"]


def chunked(content, size=1 << 16):
    """Send without saying how much there is."""
    for start in range(0, len(content), size):
        yield content[start : start + size]


def test_sizes_are_limited_while_streaming(world, site, truth_file):
    from starlette.testclient import TestClient

    from rejoinder.board.web.app import Options, create_app

    track, user = world.competition(), world.user("Anna", "Team A")
    headers = world.bearer(user)
    path = f"/competitions/{track.competition.slug}/{track.slug}/runs"
    app = create_app(site, Options(url="http://testserver", scorers=1, most_bytes=1 << 20))
    with TestClient(app, follow_redirects=False) as client:
        for content in (b"x" * ((1 << 20) + 1), chunked(b"x" * (3 << 20))):
            answer = client.post(f"/api{path}", content=content, headers=headers)
            assert answer.status_code == 413
            assert "which is the limit" in answer.json()["detail"]
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        large = client.post("/login", content=chunked(b"name=" + b"x" * (1 << 20)), headers=form)
        assert large.status_code == 413
        assert client.post("/api/nothing", content=b"x" * (1 << 19)).status_code in (404, 413)
    assert list(site.runs.iterdir()) == []


NAMES = ["../../etc/passwd", "..\\..\\boot.ini", "/etc/passwd", "a\0b", "<img src=x>", "\u202egnp.exe", "x" * 500]


@pytest.mark.parametrize("name", NAMES)
def test_file_names_are_shown_and_never_opened(name):
    cleaned = clean_filename(name)
    assert not set("/\\\0\u202e") & set(cleaned)
    assert 0 < len(cleaned) <= 100


def test_injection_through_names_files_and_markdown(world, browse, make_run, bad_run):
    evil = "<script>alert(1)<x>"
    text = f"{evil}\n\n[x](javascript:alert(1)) <img src=x onerror=alert(1)>\n\n![y](//evil/z)"
    track = world.competition(description=text)
    anna = browse()
    assert anna.post("/register", {"name": evil, "password": "correct horse"}, at="/register").status_code == 400
    world.user("Anna", "Team A")
    anna = browse().sign_in("Anna")
    assert browse().get(f"/c/{track.competition.slug}").text.count("<script") == 1  # the board's own
    path = f"/c/{track.competition.slug}/{track.slug}/runs"
    for content in (make_run(0.5), bad_run, f'[{{"{evil}": 1, "quality": {{}}}}]'.encode()):
        sent = anna.client.post(path, data={"csrf": anna.token(path)}, files={"run": (f"{evil}.json", content)})
        page = anna.get(sent.headers["location"]).text
        assert "&lt;script&gt;" in page
        assert page.count("<script") == 1
    assert anna.get(path).text.count("<script") == 1
    assert anna.get(f"{path}?by=%3Cscript%3E").text.count("<script") == 1
    lost = anna.get("/c/%3Cscript%3Ealert(1)%3C/script%3E")
    assert (lost.status_code, lost.text.count("<script")) == (404, 1)


RULES = {
    "opens": "2020-01-01T00:00",
    "closes": "2120-01-01T00:00",
    "quota": "5",
    "share": "50",
    "digits": "3",
    "finals": "1",
}


def test_a_text_that_postgresql_refuses(somewhere, make_run):
    world, olga = somewhere
    track, user = world.competition(), world.user("Anna", "Team A")
    world.hand_in(user, track, make_run(0.5), "run\0.json")
    refused = [
        ("/login", {"name": "An\0na", "password": "correct horse"}, "no such name and password"),
        ("/register", {"name": "An\0na", "password": "correct horse"}, "name: expected 2 to 40 letters"),
        ("/team", {"name": "Team\0"}, "team: expected 2 to 40 letters"),
        ("/account/tokens", {"name": "\0\0"}, "token&#39;s name: expected 2 to 40 letters"),
        ("/admin/new", {**RULES, "name": "Con\0test"}, "name: expected 2 to 40 letters"),
    ]
    for path, sent, error in refused:
        answer = olga.post(path, sent)
        assert (answer.status_code, error in answer.text) == (400, True), (path, answer.text)
    made = olga.post("/admin/new", {**RULES, "name": "Second", "description": "some\0thing"})
    assert "some\ufffdthing" in olga.get(made.headers["location"]).text
    path = f"/admin/c/{track.competition.slug}/tracks"
    for sent in ({"language": "En\0glish"}, {"measures": "NMD(\0)"}):
        files = {"truth": ("t\0.json", world.truth_file.read_bytes())}
        answer = olga.client.post(path, data={"csrf": olga.token("/account"), **sent}, files=files)
        assert answer.status_code == 400
    for path in (
        "/c/%00",
        "/c/contest/%00",
        "/runs/%00",
        "/join/%00",
        "/link/%00",
        "/c/contest/english-quality/tables/%00",
    ):
        assert olga.get(path).status_code == 404, path
    for path in ("/admin/users/%00/link", "/admin/c/%00", "/admin/c/%00/close"):
        assert olga.post(path).status_code == 404, path
    assert olga.post("/account/tokens/%00/revoke").status_code == 303
    assert olga.get("/api/me", headers={"Authorization": "Bearer a%00"}).status_code == 401


def test_a_long_description_is_told_so_and_kept(world, browse):
    olga = browse().sign_in(world.user("Olga", admin=True).name)
    sent = {**RULES, "name": "Long"}
    for letter in ("长", "𠮷"):  # 9 and 12 bytes on the way
        answer = olga.post("/admin/new", {**sent, "description": letter * 50_001})
        assert (answer.status_code, "50,001 letters; expected at most 50,000" in answer.text) == (400, True)
        assert letter * 50_001 in answer.text
        assert 'value="Long"' in answer.text
        assert olga.post("/admin/new", {**sent, "description": letter * 50_000}).status_code == 303


@pytest.mark.parametrize(
    ("text", "forbidden"),
    [
        ("<script>alert(1)</script>", "<script"),
        ("[x](javascript:alert(1))", "href"),
        ("[x](data:text/html,<script>)", "href"),
        ("![x](https://evil.example/x.png)", "<img"),
        ('<a href="https://x" onclick="alert(1)">x</a>', "<a"),
        ("<style>*{}</style>", "<style"),
        ("[x]: javascript:alert(1)\n\n[x]", "href"),
    ],
)
def test_markdown_is_harmless(text, forbidden):
    assert forbidden not in to_html(text)


def test_markdown_still_says_something():
    html = to_html("# Title\n\n**bold** [link](https://a.example) `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |")
    assert "<h3>Title</h3>" in html
    assert "<strong>bold</strong>" in html
    assert 'href="https://a.example"' in html
    assert "<td>1</td>" in html


def test_errors_do_not_depend_on_the_truth(truth_file, tmp_path, make_run, bad_run, scorer):
    """The same mistakes against other votes give the same words: no error tells anything of what is right."""
    records = json.loads(truth_file.read_text())
    other = [{**record, "annotations": shifted(record["annotations"])} for record in records]
    turned = tmp_path / "other.json"
    turned.write_text(json.dumps(other))
    online = pack_chosen(np.ones(len(records), dtype=bool))
    good = json.loads(make_run(0.5))
    files = [bad_run, *mistakes(good)]
    for content in files:
        run = tmp_path / "run"
        run.write_bytes(content)
        errors = {
            scorer.ask(Score(Files(str(truth)), ["NMD(A)"], online, str(run), "run", 1 << 30))["error"]
            for truth in (truth_file, turned)
        }
        assert len(errors) == 1
    assert len(files) == 8


def shifted(annotations):
    return [
        {**each, "quality": {name: -2 if score == 2 else score + 1 for name, score in each["quality"].items()}}
        for each in annotations
    ]


def mistakes(good):
    def changed(change):
        records = json.loads(json.dumps(good))
        change(records)
        return json.dumps(records).encode()

    yield changed(lambda records: records.pop())
    yield changed(lambda records: records.append(records[0]))
    yield changed(lambda records: records[0].update(id="unknown"))
    yield changed(lambda records: records[3]["quality"].pop("S"))
    yield changed(lambda records: records[3]["quality"]["S"].update({"7": 0.1}))
    yield changed(lambda records: records[3]["quality"]["S"].update({"2": -1}))
    yield changed(lambda records: records[3].update(nugget=[{"CNUG": 1.0}]))


def test_selection_errors_do_not_depend_on_the_truth(tmp_path, scorer):
    from rejoinder.tasks.build import Cut, build_task

    words = [f"w{number}" for number in range(30)]
    task = build_task([Cut((("a", f"q {w}"),), (w,)) for w in words], [(w,) for w in words], candidates=5)
    turned = task.examples.with_columns(correct=pl.col("options").list.slice(0, 1))
    task.save(tmp_path / "first")
    type(task)(turned, task.options).save(tmp_path / "second")
    ids = task.examples["id"].to_list()
    options = [[task.options["id"][row] for row in rows] for rows in task.examples["options"].to_list()]
    lines = [f"{id_} Q0 {choices[0]} 1 1.0 x" for id_, choices in zip(ids, options, strict=True)]
    more = (lines[0], "999 Q0 x 1 1 x", f"{ids[0]} Q0 nothing 1 1 x", "x")
    files = [lines[:-1], *([*lines, line] for line in more)]
    run, online = tmp_path / "run", pack_chosen(np.ones(30, dtype=bool))
    for file in files:
        run.write_text("\n".join(file))
        errors = {
            scorer.ask(Score(Files(str(tmp_path / truth)), ["R@1"], online, str(run), "run", 1 << 30))["error"]
            for truth in ("first", "second")
        }
        assert len(errors) == 1


def test_nothing_by_example_in_any_answer(world, browse, make_run):
    """Whatever a team can load, it holds rounded means and no list as long as the test."""
    track, user = world.competition(digits=3, ladder=False), world.user("Anna", "Team A")
    run = world.hand_in(user, track, make_run(0.5))
    browser, headers = browse().sign_in("Anna"), world.bearer(user)
    slug = f"{track.competition.slug}/{track.slug}"
    world.wait(lambda session: "Team A" in browse().get(f"/c/{slug}").text)
    pages = [f"/c/{slug}", f"/c/{slug}/runs", f"/runs/{run.id}"]
    pages += [f"/api/runs/{run.id}", f"/api/competitions/{slug}/runs", f"/api/competitions/{slug}/leaderboard"]
    for text in (browser.get(page, headers=headers).text for page in pages):
        assert not re.search(r"\d\.\d{4}", re.sub(r'"received":"[^"]*"|"(opens|closes)":"[^"]*"', "", text))
        assert track.competition.secret not in text
    answer = browser.get(f"/api/runs/{run.id}", headers=headers).json()
    assert set(answer) == {"id", "number", "file", "status", "error", "scores", "received", "runs_left"}
    assert set(answer["scores"]["NMD(A)"]) == {"score", "low", "high"}


@pytest.fixture
def closed(world, make_run):
    """Return a track with its final table."""
    track = world.competition(digits=3)
    for name, nearness in (("Anna", 0.5), ("Bert", 0.8)):
        world.hand_in(world.user(name, f"Team {name}"), track, make_run(nearness))
    with world.site.database.writing() as session:
        session.get_one(Competition, track.competition_id).closes = now()
    with ScorerProcess(UNLIMITED) as scorer:
        finish(world.site, scorer)
    return track


OUTWARDS = [
    "/static/../board.db", "/static/..%2fscorer.py", "/static/%2e%2e/scorer.py", "/static//etc/passwd",
    "{0}/tables/..%2freport.html", "{0}/tables/..%5creport.html", "{0}/tables/%2e%2e", "{0}/charts/..%2fscores.json",
    "{0}/tables/../report.html", "{0}/charts/..%2f..%2f..%2fboard.db", "{0}/tables/" + "x" * 300, "{0}/charts/%00",
    "{0}/charts/%2e",
]  # fmt: skip


def test_no_path_leads_out(world, closed, make_server):
    server = make_server(world.site.folder, scorers=1)
    board = f"/c/{closed.competition.slug}/{closed.slug}"

    def ask(path):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)  # sends a path as it is
        connection.request("GET", path.format(board))
        status = connection.getresponse().status
        connection.close()
        return status

    assert [ask(path) for path in ("{0}/report", "{0}/tables/scores.csv", "{0}/charts/means.svg")] == [200, 200, 200]
    for path in OUTWARDS:
        assert ask(path) == 404, path


def test_nothing_by_example_after_closing(world, closed, tmp_path):
    """Nor do the final reports: a run can be made such that sorted or exact scores tell what is right where."""
    write_archive(world.site, tmp_path / "archive")
    files = [path for path in (tmp_path / "archive").rglob("*.*") if path.suffix not in (".png", ".css")]
    assert {path.suffix for path in files} == {".html", ".svg", ".csv", ".md", ".tex", ".json"}
    for path in files:
        text = says(path.read_text()) if path.suffix in (".html", ".svg") else path.read_text()
        exact = [float(found) for found in re.findall(r"\d\.\d{5,}(?:e-\d+)?", text)]
        # a p-value is a number of trials over that of all, and tells nothing more
        assert not [each for each in exact if each != round(each, 4) and not (each * 10_001 + 1e-6) % 1 < 1e-5], path
        assert "example by example" not in text
        assert "differences" not in path.name


def says(page):
    """Return the text of a page or a chart, and what it says to a screen reader; not where its lines are."""
    return " ".join(re.findall(r'aria-label="([^"]*)"', page)) + re.sub(r"<[^>]*>", " ", page)


def test_bars_tell_no_more_than_the_rounded_numbers():
    track = Track(competition=Competition(digits=2, log2=False))

    def bars(score):
        rows = {
            "uniform": {"score": 0.5, "low": 0.4, "high": 0.6},
            "team:A": {"score": score, "low": 0.44, "high": 0.46},
        }
        return [
            line.scores["NMD(A)"].bar
            for line in lines_of(track, {"measures": [{"name": "NMD(A)", "rows": rows}]}, "NMD(A)")
        ]

    assert bars(0.446) == bars(0.454) != bars(0.456)


def test_addresses_without_a_page_are_not_remembered():
    cache = PageCache()

    def missing():
        raise LookupError

    async def ask():
        for number in range(3 * MOST):
            with pytest.raises(LookupError):
                await cache.get(f"/c/{number}?", missing)

    asyncio.run(ask())
    assert len(cache._locks) <= MOST + 1
